import json
from decimal import Decimal

import pandas as pd
import pytest
from tests.cli.commands import run
from tests.cli.conftest import TERMS, hits
from tests.refusals import every

LIMIT = ("--threshold", 5000)


def watch(*options):
    return run("watch", "visits.parquet", *LIMIT, *options)


def outcome(result):
    return [(answer["key"], answer["hit"]) for answer in result.json["answers"]]


@pytest.fixture
def file(opened):
    def write(text, name="keys.csv"):
        (opened / name).write_text(text, encoding="utf-8")
        return name

    return write


@pytest.mark.usefixtures("opened")
def test_hits_are_a_table_and_the_end_is_a_line():
    result = watch("--where", "age > 65", "--by", "county", "--keys", "Kent,Devon,Essex,Rutland")
    question, *table, closing = result.out.splitlines()
    assert question == "count(age > 65) by county >= 5000"
    assert [line.split("│")[1].strip() for line in table if line.startswith("│")] == ["Devon", "Essex"]
    assert closing.startswith("4 answered, 2 hits, 8 hits left. All that is ever published with visits.parquet")
    assert (result.code, result.err) == (0, "")


@pytest.mark.usefixtures("opened")
def test_no_hits():
    result = watch("--by", "county", "--keys", "Rutland")
    assert result.out.splitlines()[1] == "no key reached the threshold"


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        (["--by", "age", "--keys", "20,21"], [(20, True), (21, False)]),
        (["--by", "AGE", "--keys", " 20 , -1"], [(20, True), (-1, False)]),
        (["--by", "fare", "--keys", "1.5,2e0"], [(1.5, True), (2, False)]),
        (["--by", "ill", "--keys", "true,FALSE"], [(True, True), (False, True)]),
        (["--by", "county", "--keys", 'Kent,"A, B"'], [("Kent", True), ("A, B", False)]),
        (["--by", "seen", "--keys", "2013-01-01,2013-01-03"], [("2013-01-01", True), ("2013-01-03", False)]),
        (["--by", "seen", "--keys", "2013-01-02 06:00"], [("2013-01-02 06:00:00", True)]),
        (["--by", "seen", "--days", "2013-01-02:2013-01-03"], [("2013-01-02", True), ("2013-01-03", False)]),
        (
            ["--by", "seen", "--hours", "2013-01-02 05:00:2013-01-02 06:00"],
            [("2013-01-02 05:00:00", False), ("2013-01-02 06:00:00", True)],
        ),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
@pytest.mark.usefixtures("opened")
def test_keys_are_of_the_columns_kind(options, keys):
    result = watch(*options, "--json")
    assert (result.code, outcome(result)) == (0, keys)
    assert result.json["by"] == [options[1]]


def test_a_file_of_keys(file):
    result = watch("--by", "county", "--keys-file", file('note,County\nfirst,Kent\n,"A, B"\n\n'), "--json")
    assert outcome(result) == [("Kent", True), ("A, B", False)]


def missing(folder, **columns):
    """Let the rows of Kent have no value of some columns."""
    frame = pd.read_parquet(folder / "visits.parquet")
    for name, kind in columns.items():
        frame[name] = frame[name].astype(kind).mask(frame["county"] == "Kent")
    frame["county"] = frame["county"].mask(frame["county"] == "Kent")
    frame.to_parquet(folder / "gaps.parquet")
    run("ask", "gaps.parquet", "age > 200", "--threshold", 9000, *TERMS)


def test_null_is_the_key_of_rows_without_a_value(folder):
    missing(folder, age="Int64", ill="boolean")
    gaps = ("watch", "gaps.parquet", *LIMIT, "--by")
    assert outcome(run(*gaps, "county", "--keys", "NULL,Devon", "--json")) == [(None, True), ("Devon", True)]
    for written in ("'NULL'", '"NULL"'):
        asked = run(*gaps, "county", "--keys", f"Rutland, {written},null", "--json")
        assert outcome(asked) == [("Rutland", False), ("NULL", False), ("null", False)]
    assert outcome(run(*gaps, "age", "--keys", "NULL,20", "--json")) == [(None, True), (20, False)]
    assert outcome(run(*gaps, "ill", "--keys", "false,NULL", "--json")) == [(False, True), (None, True)]
    assert run(*gaps, "age", "--keys", "'NULL'").err.count("rows without a value are NULL") == 1
    (folder / "pairs.csv").write_text("county,age\nNULL,NULL\nDevon,70\nDevon,NULL\n'NULL',70\n")
    pairs = (*gaps, "county,age", "--keys-file", "pairs.csv")
    result = run(*pairs, "--json")
    keys = [([None, None], True), (["Devon", 70], True), (["Devon", None], False), (["NULL", 70], False)]
    assert outcome(result) == keys
    assert run(*pairs, "--csv").rows[1][:2] == ["", ""]
    assert "│ NULL   │ NULL │" in run(*pairs).out
    left = run(*gaps, "county", "--keys", "Essex,NULL", "--threshold", 4000, "--max-hits", 1, "--json")
    assert left.json["unanswered"] == [None]


def test_a_file_of_pairs(file):
    pairs = file("age,county\n20,Kent\n20,Devon\n70,Devon\n")
    result = watch("--by", "county,age", "--keys-file", pairs, "--json")
    assert outcome(result) == [(["Kent", 20], True), (["Devon", 20], False), (["Devon", 70], True)]
    rows = watch("--by", "county,age", "--keys-file", pairs, "--csv").rows
    assert rows[0] == ["county", "age", "outcome", "hit", "price", "low", "high", "scale", "seq", "repeat"]
    assert [(*row[:2], row[3]) for row in rows[1:]] == [
        ("Kent", "20", "true"),
        ("Devon", "20", "false"),
        ("Devon", "70", "true"),
    ]
    assert "│ Kent   │ 20  │" in watch("--by", "county,age", "--keys-file", pairs).out


@pytest.mark.usefixtures("opened")
def test_sums():
    result = watch(
        "--by", "county", "--keys", "Kent,Rutland", "--sum", "fare", "--lower", 0, "--upper", 2, "--json"
    )
    assert outcome(result) == [("Kent", True), ("Rutland", False)]
    assert result.json["answers"][0]["question"] == "sum(fare from 0 to 2) by county >= 5000"


MISTAKES = [
    ([], "Missing option '--by'"),
    (["--by", "county"], "keys: they must be declared by one of --keys-file, --keys, --days, --hours"),
    (["--by", "county", "--keys", "a", "--days", "2013-01-01:2013-01-02"], "--keys and --days: they must be"),
    (["--by", "county", "--keys", "a,,b"], "--keys is 'a,,b'; it must be words with commas between"),
    (["--by", "county", "--keys", '"a'], "it must be words with commas between"),
    (["--by", "", "--keys", "a"], "--by is ''; it must be"),
    (["--by", "kounty", "--keys", "a"], "tct: --by is 'kounty'; it must be one of the columns patient (number)"),
    (["--by", "kounty", "--keys", "a"], "; did you mean county?"),
    (
        ["--by", "conty", "--keys-file", "keys.csv"],
        "keys.csv, line 1: it must name the column conty, and names",
    ),
    (["--by", "conty", "--keys-file", "keys.csv"], "; did you mean county?"),
    (["--by", "county,age", "--keys", "a"], "--keys: it is for one column"),
    (["--by", "county,county", "--keys-file", "keys.csv"], "two different columns"),
    (["--by", "county,age,ill", "--keys-file", "keys.csv"], "--by is 'county,age,ill'; it must be one or two"),
    (["--by", "county,fare", "--keys-file", "keys.csv"], "line 1: it must name the columns county, fare, and"),
    (["--by", "age", "--keys", "20,many"], "--keys, key 2: 'many' must be a number from"),
    (["--by", "age", "--keys", "20,1.5"], "--keys, key 2: '1.5' must be a number from"),
    (["--by", "fare", "--keys", "nan"], "--keys, key 1: 'nan' must be a finite number"),
    (["--by", "fare", "--keys", "0.12345678901234567891"], "must be a finite number in double precision"),
    (["--by", "ill", "--keys", "yes"], "--keys, key 1: 'yes' must be True or False, as ill is"),
    (["--by", "seen", "--keys", "1.1.2013"], "--keys, key 1: '1.1.2013' must be a time"),
    (["--by", "age", "--keys", "20,70,20"], "--keys, key 3: '20' is the same key as in --keys, key 1"),
    (["--by", "seen", "--days", "2013-01-01"], "--days is '2013-01-01'; it must be two dates"),
    (["--by", "seen", "--days", "2013-01-05:2013-01-01"], "2013-01-05 or later"),
    (["--by", "seen", "--days", "2013-02-30:2013-03-01"], "--days FIRST is '2013-02-30'; it must be a date"),
    (["--by", "seen", "--days", "2013-03-01:2013-02-01"], "2013-03-01 or later, since --days FIRST is that"),
    (["--by", "seen", "--hours", "2013-01-01 00:30:2013-01-02"], "a time on the hour"),
    (
        ["--by", "county", "--days", "2013-01-01:2013-01-05"],
        "--by is county (text); it must be a date or a time",
    ),
    (["--by", "county", "--keys-file", "no.csv"], "no.csv: it cannot be read: No such file"),
    (
        ["--by", "county", "--keys-file", "keys.csv"],
        "keys.csv, line 4: 'Kent' is the same key as in keys.csv, li",
    ),
    (["--by", "age", "--keys-file", "keys.csv"], "keys.csv, line 3: 'x' must be a number"),
    (
        ["--by", "fare", "--keys-file", "keys.csv"],
        "keys.csv, line 1: it must name the column fare, and names co",
    ),
    (["--by", "ill", "--keys-file", "keys.csv"], "keys.csv, line 2: there is no value of ill"),
    (["--by", "county", "--keys-file", "empty.csv"], "empty.csv: there are no keys in it"),
    (
        ["--by", "county", "--keys", "a", "--where", "agee > 5"],
        "tct: --where, character 1: there is no column agee",
    ),
    (["--by", "county", "--keys", "a", "--threshold", "nan"], "tct: --threshold is nan"),
    (["--by", "county", "--keys", "a", "--threshold", "many"], "Invalid value for '--threshold'"),
]


def test_mistakes(file):
    file("county,age,ill\nKent,20,\nDevon,x,\nKent,20,\n")
    file("county\n", "empty.csv")

    def is_told(options, sentence):
        result = watch(*options)
        assert (result.code, result.out) == (2, "")
        assert sentence in " ".join(result.err.split())

    every(MISTAKES, is_told)
    assert hits() == 0


@pytest.mark.usefixtures("opened")
def test_a_budget_that_is_spent_on_the_way_loses_nothing():
    result = watch("--by", "seen", "--days", "2013-01-01:2013-01-04", "--json")
    assert result.json["meter"]["hits_left"] == 7
    result = watch("--by", "patient", "--keys", ",".join(map(str, range(9))), "--threshold", -5000, "--json")
    assert (result.code, outcome(result)) == (3, [(patient, True) for patient in range(7)])
    assert result.json["unanswered"] == [7, 8]
    assert "does not cover it" in result.err
    rows = watch("--by", "seen", "--days", "2013-01-01:2013-01-02", "--csv", "--again").rows
    assert rows[1:] == [["2013-01-01", *[""] * 8], ["2013-01-02", *[""] * 8]]
    result = watch("--by", "county", "--keys", "Kent,Devon")
    assert result.out.startswith("not answered: Kent, Devon\n0 answered, 0 hits, 0 hits left.")
    assert hits() == 10


def test_decimals_are_keys_to_the_last_digit(folder):
    prices = [Decimal("0.12345678901234567891"), Decimal("1.5")]
    pd.DataFrame({"patient": range(2), "price": prices}).to_parquet(folder / "prices.parquet")
    options = ("--by", "price", "--keys", "0.12345678901234567891,1.5", *TERMS, "--hits", 7, "--again")
    result = run("watch", "prices.parquet", *options, "--threshold", -5000, "--json")
    assert [key for key, _ in outcome(result)] == ["0.12345678901234567891", 1.5]
    for _ in range(3):
        result = run("watch", "prices.parquet", *options, "--threshold", -5000, "--json")
    assert result.json["unanswered"] == [1.5]
    result = run("watch", "prices.parquet", *options, "--threshold", -5000, "--json")
    assert result.json["unanswered"] == ["0.12345678901234567891", 1.5]


def test_long_tables_are_not_cut(file):
    long = "x" * 300
    result = watch("--by", "county", "--keys-file", file(f"county\n{long}\n"), "--threshold", -5000)
    assert f"│ {long} │" in result.out


def test_brackets_are_no_markup(file):
    result = watch("--by", "county", "--keys-file", file("county\n[red]Kent[/red]\n"), "--threshold", -5000)
    assert "│ [red]Kent[/red] │" in result.out


@pytest.mark.usefixtures("opened")
def test_a_preview():
    result = watch("--by", "county", "--keys", "Kent,Devon", "--preview")
    assert "price of a hit: 1 (at most 2 of 2 tests)" in result.out
    assert hits() == 0


@pytest.mark.usefixtures("folder")
def test_terms_of_a_new_ledger():
    result = watch("--by", "county", "--keys", "Kent", *TERMS)
    assert (result.code, "1 hit" in result.out) == (0, True)


def top(*options):
    return run("top", "visits.parquet", "--by", "county", "--keys", "Rutland,Kent,Devon", *options)


@pytest.mark.usefixtures("opened")
def test_the_largest_keys():
    result = top("-k", 2)
    question, *table, closing = result.out.splitlines()
    assert question == "count(*) by county"
    assert {line.split("│")[1].strip() for line in table if line.startswith("│")} == {"Kent", "Devon"}
    assert closing.startswith("2 answered, 2 hits, 8 hits left.")
    result = top("--where", "age > 65", "--json")
    assert outcome(result) == [("Devon", True)]
    assert top("--csv").rows[1][2:4] == ["true", "1.0"]


@pytest.mark.usefixtures("opened")
def test_the_largest_keys_above_a_threshold():
    result = top("-k", 3, "--threshold", 5000, "--json")
    assert {key for key, _ in outcome(result)} == {"Kent", "Devon"}
    result = top("-k", 3, "--threshold", 90_000)
    assert result.out.splitlines()[0].startswith("no key reached the threshold")


@pytest.mark.usefixtures("opened")
def test_the_largest_keys_must_all_be_covered():
    top("-k", 1)
    for _ in range(4):
        top("-k", 2, "--again")
    result = top("-k", 2, "--again")
    assert result.code == 3
    assert result.out.startswith("not answered: Rutland, Kent, Devon\n0 answered, 0 hits, 1 hit left.")
    assert "this could cost 2" in result.err
    plain = json.loads(top("-k", 2, "--json", "--again").out)
    assert (plain["answers"], plain["unanswered"]) == ([], ["Rutland", "Kent", "Devon"])
    assert [row[0] for row in top("-k", 2, "--csv", "--again").rows] == ["county", *plain["unanswered"]]
    assert hits() == 9


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-k", 4], "tct: -k is 4; it must be an integer from 1 to 3"),
        (["-k", 0], "Invalid value for '-k'"),
        (["--threshold", "nan"], "tct: --threshold is nan"),
        (["--where", "agee > 5"], "tct: --where, character 1: there is no column agee"),
        (["--by", "age"], "--keys, key 1: 'Rutland' must be a number"),
    ],
)
@pytest.mark.usefixtures("opened")
def test_mistakes_about_the_largest(options, sentence):
    result = top(*options)
    assert (result.code, result.out) == (2, "")
    assert sentence in " ".join(result.err.split())


@pytest.mark.usefixtures("folder")
def test_a_preview_of_the_largest():
    result = top("-k", 2, "--preview", *TERMS)
    assert "the 2 largest" in result.out
    assert "(at most 2 of 3 tests)" in result.out


@pytest.mark.usefixtures("opened")
def test_keys_whose_hit_is_published_are_told_for_nothing_at_their_place():
    first = watch("--by", "county", "--keys", "Kent", "--json").json["answers"][0]
    told = watch("--by", "county", "--keys", "Devon,Rutland,Kent", "--json").json["answers"]
    assert [answer["repeat"] for answer in told] == [False, False, True]
    assert told[2] == {**first, "price": 0.0, "repeat": True}
    shown = watch("--by", "county", "--keys", "Kent,Rutland,Devon").out
    assert "cost" in shown
    assert "published before, free" in shown
    assert "published before" not in watch("--by", "county", "--keys", "Kent", "--again").out


@pytest.mark.usefixtures("opened")
def test_a_watch_ends_after_as_many_new_hits_as_are_wanted():
    days = ("--by", "seen", "--days", "2013-01-01:2013-01-04")
    watch("--by", "seen", "--days", "2013-01-03:2013-01-03", "--threshold", -5000)
    result = watch(*days, "--threshold", -5000, "--max-hits", 1, "--json")
    assert (result.code, result.err) == (0, "tct: stopped after 1 new hit, as many as were wanted\n")
    assert [answer["key"] for answer in result.json["answers"]] == ["2013-01-01", "2013-01-03"]
    assert result.json["unanswered"] == ["2013-01-02", "2013-01-04"]
    assert result.json["stopped"] == "stopped after 1 new hit, as many as were wanted"
    shown = watch(*days, "--threshold", -5000, "--max-hits", 1)
    assert "not answered: 2013-01-04" in shown.out
    assert shown.err == "tct: stopped after 1 new hit, as many as were wanted\n"
    assert hits() == 3


@pytest.mark.usefixtures("opened")
def test_a_preview_says_how_many_keys_are_published():
    watch("--by", "county", "--keys", "Kent")
    words = ("--by", "county", "--keys", "Kent,Devon", "--preview")
    assert "published before: 1 of 2: asked again it is free" in watch(*words).out
    assert watch(*words, "--json").json[0]["repeats"] == 1
