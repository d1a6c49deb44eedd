"""`tct count`, `sum`, `mean`, `quantile`, `histogram`, and `top --no-values`: what is published whatever it is."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run
from tests.cli.conftest import COUNTY, EXACT, TERMS, hits, noise
from tests.cli.pages import Page
from tests.refusals import every

from targetcharge.engines.duckdb import DuckDBEngine

TABLE = "visits.parquet"
LEDGER = "visits.parquet.ledger.db"
BOUNDS = ("--lower", 0, "--upper", 5)
COUNTIES = ("--by", "county", "--keys", "Kent,Devon,Rutland")

COUNT = ("count", TABLE, "age > 65")
SUM = ("sum", TABLE, "fare", "ill = FALSE", *BOUNDS)
MEAN = ("mean", TABLE, "fare", *BOUNDS)
QUANTILES = ("quantile", TABLE, "fare", "-q", 0.1, "-q", 0.5, "-q", 0.9, *BOUNDS, "--grid", 0.25)
HISTOGRAM = ("histogram", TABLE, *COUNTIES)
PICKS = ("top", TABLE, "--where", "age > 65", *COUNTIES, "--no-values")

# What each is called, its hits, and for each key how large the number is and how far off it may be: of a count
# more than a hundred standard deviations; a quantile is thousands of units away from every other step.
ALL = {
    COUNT: ("count(age > 65)", 1, {None: (2 * COUNTY, 500)}),
    SUM: ("sum(fare from 0 to 5 where ill = FALSE)", 1, {None: (5.25 * COUNTY, 2500)}),
    MEAN: ("mean(fare from 0 to 5)", 1, {None: (2.25, 0.1)}),
    QUANTILES: ("quantile(fare from 0 to 5) at 0.1, 0.5, 0.9", 3, {0.1: (1.5, 0), 0.5: (2.25, 0), 0.9: (3.0, 0)}),
    HISTOGRAM: (
        "histogram of count(*) by county",
        1,
        {"Kent": (COUNTY, 700), "Devon": (COUNTY, 700), "Rutland": (0, 700)},
    ),
    PICKS: ("count(age > 65) by county", 1, {"Devon": None}),
}
COSTS = sum(cost for _, cost, _ in ALL.values())


def cells(text):
    """Return the cells of a printed table, row by row; the heads first."""
    rows = [line for line in text.splitlines() if line[:1] in ("┃", "│")]
    return [[cell.strip() for cell in row.replace("┃", "│").split("│")[1:-1]] for row in rows]


def kept(outcome):
    """Return an outcome from a ledger's entry, where floats are written to the last bit."""
    return float.fromhex(outcome["float"]) if isinstance(outcome, dict) else outcome


def report():
    return Page(run("report", TABLE, "--output", "-").out)


def each(check):
    """Check every command by its arguments, its name, its hits and its numbers."""
    every({asked[0]: (asked, *rest) for asked, rest in ALL.items()}, check)


# What is printed, and what it costs


@pytest.mark.parametrize("terms", [TERMS, (*EXACT, "--epsilon", 30)], ids=["sparse", "exact"])
@pytest.mark.usefixtures("folder")
def test_numbers_are_published_for_their_hits_and_the_transcript_keeps_all_of_them(terms):
    run("count", TABLE, *terms, "--hits", COSTS + 1)
    published = {}

    def is_published(asked, name, cost, numbers):
        before = hits()
        result = run(*asked, "--json")
        assert (result.code, result.err) == (0, "")
        assert {answer["question"] for answer in result.json["answers"]} == {name}
        assert (result.json["stopped"], result.json["unanswered"]) == (None, [])
        outcomes = {answer["key"]: answer["outcome"] for answer in result.json["answers"]}
        assert outcomes.keys() == numbers.keys()
        assert all(answer["hit"] for answer in result.json["answers"])
        assert sum(answer["price"] for answer in result.json["answers"]) == hits() - before == cost
        for key, near in numbers.items():
            if near is None:
                assert outcomes[key] is None
            else:
                assert abs(outcomes[key] - near[0]) <= near[1]
        published[name] = list(outcomes.values())

    each(is_published)
    told = run("ledger", "show", LEDGER, "--json").json["entries"]
    named = {}
    for entry in told:
        outcomes = entry["outcome"] if isinstance(entry["outcome"], list) else [entry["outcome"]]
        named.setdefault(entry["algorithm"], []).extend(map(kept, outcomes))
    assert named == {**published, "count(*)": named["count(*)"]}
    assert (
        run("ledger", "verify", LEDGER).out
        == f"{LEDGER}: {COSTS + 1} entries, every hash and every total is right\n"
    )
    meter = dict(line.split("  ", 1) for line in run("meter", TABLE).out.splitlines()[:-1])
    assert (meter["hits used"].strip(), meter["hits left"].strip()) == (str(COSTS + 1), "0")


@pytest.mark.usefixtures("folder")
def test_a_report_names_every_question_what_it_cost_and_its_key():
    run("count", TABLE, *TERMS, "--hits", COSTS + 1)
    for asked in ALL:
        assert run(*asked).code == 0
    page = report()
    heads, *rows = page.rows("asked")
    assert heads[:5] == ["Question", "Costs when", "Asked", "Hits", "Price of a hit"]
    assert [row[:5] for row in rows] == [
        ["1count(*)", "always", "1", "1", "1 hit"],
        ["2count(age > 65)", "always", "1", "1", "1 hit"],
        ["3sum(fare from 0 to 5 where ill = FALSE)", "always", "1", "1", "1 hit"],
        ["4mean(fare from 0 to 5)", "always", "1", "1", "1 hit"],
        ["5quantile(fare from 0 to 5) at 0.1, 0.5, 0.9", "always", "3 3 keys", "3", "1 hit"],
        ["6histogram of count(*) by county", "always", "1", "1", "1 hit"],
        ["7count(age > 65) by county", "always", "1 1 key", "1", "1 hit"],
    ]
    heads, *listed = page.rows("asked", 1)
    assert heads[2:4] == ["Key", "Outcome"]
    assert [row[2:4] for row in listed[4:]] == [
        ["0.1", "1.5"],
        ["0.5", "2.25"],
        ["0.9", "3"],
        ["", "3 counts"],
        ["Devon", "picked"],
    ]
    meter = "".join(page.section("meter").parts)
    assert meter.count(f"{COSTS + 1} hits used") == 2
    assert "0 hits left" in meter
    assert f"{COSTS + 1} of {COSTS + 1} hits charged" in page.text("figcaption")
    assert "What is always paid may have fresh noise of its own" in page.told("noise")


@pytest.mark.usefixtures("opened")
def test_a_number_is_a_sentence_with_its_interval_and_cost():
    for asked, start in ((COUNT, "count(age > 65): "), (SUM, "sum(fare from 0 to 5 where ill = FALSE): ")):
        answer, closing = run(*asked).out.splitlines()
        assert answer.startswith(start)
        assert answer.endswith("), a hit, which costs 1")
        assert "(95% interval: " in answer
        assert closing.startswith("1 answered, 1 hit, ")
    answer, closing = run(*MEAN).out.splitlines()
    words = answer.partition(": ")[2].replace("),", "").split()
    assert [words[1], words[2], words[4]] == ["(95%", "interval:", "to"]
    assert float(words[3]) < float(words[0]) < float(words[5])
    assert closing.startswith(
        "1 answered, 1 hit, 7 hits left. All that is ever published with visits.parquet.ledger"
    )


@pytest.mark.usefixtures("opened")
def test_a_count_has_the_noise_and_the_interval_of_its_session():
    """A count is shown as the whole number next to a value of the lattice; of two as near, the lower."""
    law = noise()
    lattice, (below, above) = law.lattice, law.margins
    for _ in range(3):
        (answer,) = run(*COUNT, "--json").json["answers"]
        number, (low, high) = answer["outcome"], answer["interval"]
        assert low == math.ceil((lattice * number - (lattice - 1) // 2 - above) / lattice)
        assert 0 <= high - (lattice * number + lattice // 2 + below) // lattice <= 1
        assert answer["scale"] == pytest.approx(law.scale)


@pytest.mark.usefixtures("opened")
def test_several_quantiles_are_a_table_and_how_far_their_ranks_may_be_off_is_told():
    result = run(*QUANTILES)
    name, *_, margin, closing = result.out.splitlines()
    assert name == "quantile(fare from 0 to 5) at 0.1, 0.5, 0.9"
    assert cells(result.out) == [["q", "noisy value"], ["0.1", "1.5"], ["0.5", "2.25"], ["0.9", "3"]]
    (preview,) = run(*QUANTILES, "--preview", "--json").json
    assert margin == f"at most {preview['margin']:.6g} units from the rank that was asked for, in 95% of draws"
    assert closing.startswith("3 answered, 3 hits, 7 hits left.")


@pytest.mark.usefixtures("opened")
def test_a_histogram_is_a_table_with_an_interval_for_each_key():
    result = run(*HISTOGRAM)
    assert result.out.startswith("histogram of count(*) by county\n")
    heads, *rows = cells(result.out)
    assert heads == ["county", "noisy value", "95% interval"]
    assert [row[0] for row in rows] == ["Kent", "Devon", "Rutland"]
    assert all(" to " in row[2] for row in rows)
    assert result.out.splitlines()[-1].startswith("3 answered, 1 hit, 9 hits left.")


@pytest.mark.usefixtures("opened")
def test_picks_are_keys_best_first_and_nothing_else():
    result = run(*PICKS, "-k", 3)
    assert cells(result.out)[:2] == [["county"], ["Devon"]]
    assert {row[0] for row in cells(result.out)[2:]} == {"Kent", "Rutland"}
    (preview,) = run(*PICKS, "-k", 3, "--preview", "--json").json
    *_, margin, closing = result.out.splitlines()
    assert margin == f"at most {preview['margin']:.6g} below the best that was left, in 95% of picks"
    assert closing.startswith("3 answered, 3 hits, 7 hits left.")


@pytest.mark.usefixtures("opened")
def test_numbers_are_rows_too():
    heads, row = run(*MEAN, "--csv").rows
    assert heads == ["question", "outcome", "hit", "price", "low", "high", "scale", "seq", "repeat"]
    assert float(row[4]) < float(row[1]) < float(row[5])
    heads, *rows = run(*QUANTILES, "--csv").rows
    assert heads == ["q", "outcome", "hit", "price", "low", "high", "scale", "seq", "repeat"]
    assert [row[:6] for row in rows] == [
        [share, number, "true", "1.0", "", ""] for share, number in (("0.1", "1.5"), ("0.5", "2.25"), ("0.9", "3"))
    ]
    heads, *rows = run(*HISTOGRAM, "--csv").rows
    assert [(row[0], row[2], row[3]) for row in rows] == [
        ("Kent", "true", "1.0"),
        ("Devon", "true", "0.0"),
        ("Rutland", "true", "0.0"),
    ]
    assert len({row[-1] for row in rows}) == 1
    assert run(*PICKS, "--csv").rows[1][:6] == ["Devon", "", "true", "1.0", "", ""]


@pytest.mark.usefixtures("folder")
def test_a_unit_counts_for_as_many_keys_as_per_unit_says():
    units = 4000
    visits = {"patient": np.repeat(np.arange(units), 2), "diagnosis": ["flu", "cold"] * units}
    pd.DataFrame(visits).to_parquet("pairs.parquet")
    asked = ("histogram", "pairs.parquet", "--by", "diagnosis", "--keys", "flu,cold", "--json")
    for options, flu, cold in (((), 2000, 2000), (("--per-unit", 2), 4000, 4000)):
        first, second = run(*asked, *options, *TERMS).json["answers"]
        assert abs(first["outcome"] - flu) < 700  # twenty standard deviations of what the hash chooses
        assert abs(first["outcome"] + second["outcome"] - flu - cold) < 1000


@pytest.mark.usefixtures("folder")
def test_keys_of_two_columns_in_a_file(tmp_path):
    (tmp_path / "pairs.csv").write_text("county,age\nKent,20\nDevon,70\nKent,70\n")
    asked = ("histogram", TABLE, "--by", "county,age", "--keys-file", "pairs.csv", *TERMS, "--json")
    result = run(*asked).json
    assert result["by"] == ["county", "age"]
    assert [answer["key"] for answer in result["answers"]] == [["Kent", 20], ["Devon", 70], ["Kent", 70]]
    assert [round(answer["outcome"], -3) for answer in result["answers"]] == [COUNTY, COUNTY, 0]


# Previews


def test_previews_ask_nothing_make_no_ledger_and_tell_how_far_off_it_will_be(folder):
    def is_told(asked, name, cost, _):
        result = run(*asked, *TERMS, "--preview")
        assert (result.code, result.err) == (0, "")
        (preview,) = run(*asked, *TERMS, "--preview", "--json").json
        assert result.out.startswith(f"question: {preview['question']}\nprice of a hit: 1")
        assert preview["question"].startswith(name)
        assert (preview["price"], preview["most_hits"]) == (1.0, cost)
        assert preview["margin"] > 0
        assert f"{preview['margin']:.6g}" in result.out

    each(is_told)
    assert not list(folder.glob("*ledger*"))


@pytest.mark.usefixtures("opened")
def test_what_was_previewed_is_how_far_off_it_is():
    previews = {asked: run(*asked, "--preview", "--json").json[0] for asked in (COUNT, SUM, MEAN, HISTOGRAM)}
    assert hits() == 0
    for asked, preview in previews.items():
        answer = run(*asked, "--json").json["answers"][0]
        low, high = answer["interval"]
        off = max(answer["outcome"] - low, high - answer["outcome"])
        if preview["margin_of"] == "times units":
            assert off * 3 * COUNTY == pytest.approx(preview["margin"], rel=0.01)
        else:
            assert preview["margin"] - 1 <= off <= preview["margin"] + 1e-6
    assert [previews[asked]["margin_of"] for asked in previews] == ["number", "number", "times units", "number"]


# Budgets


@pytest.mark.usefixtures("folder")
def test_what_is_not_covered_is_refused_as_a_whole_before_the_table_is_read(monkeypatch):
    run("count", TABLE, *TERMS, "--hits", 3)
    with monkeypatch.context() as unreadable:
        for name in ("distribution", "measure", "measure_by"):
            unreadable.setattr(DuckDBEngine, name, None)
        result = run(*QUANTILES)
    assert result.code == 3
    assert result.out.startswith("not answered: 0.1, 0.5, 0.9\n0 answered, 0 hits, 2 hits left.")
    assert "tct: this could cost 3 hits on the sparse meter and 2 are left" in result.err
    assert run(*QUANTILES[:5], *QUANTILES[7:]).code == 0  # two of them
    assert hits() == 3


@pytest.mark.usefixtures("folder")
def test_a_spent_budget_is_exit_code_3_and_says_what_was_not_answered():
    run("count", TABLE, *TERMS, "--hits", 1)
    unanswered = {
        COUNT: "count(age > 65)",
        SUM: "sum(fare from 0 to 5 where ill = FALSE)",
        MEAN: "mean(fare from 0 to 5)",
        QUANTILES: "0.1, 0.5, 0.9",
        HISTOGRAM: "Kent, Devon, Rutland",
        PICKS: "Kent, Devon, Rutland",
    }

    def is_refused(asked, name, cost, _):
        result = run(*asked)
        assert result.code == 3
        assert result.out.startswith(f"not answered: {unanswered[asked]}\n0 answered, 0 hits, 0 hits left.")
        assert f"this could cost {cost} hit" in result.err
        assert result.err.endswith("let the owner of the data decide on another budget\n")
        plain = run(*asked, "--json")
        assert (plain.code, plain.json["answers"]) == (3, [])
        assert f"tct: {plain.json['stopped']}\n" == plain.err
        assert ", ".join(map(str, plain.json["unanswered"])) == unanswered[asked], name
        assert all(set(row[1:]) == {""} for row in run(*asked, "--csv").rows[1:])

    each(is_refused)
    assert hits() == 1


@pytest.mark.usefixtures("opened")
def test_what_breaks_is_spent_and_exit_code_5(monkeypatch):
    def broken(*_):
        raise ValueError

    monkeypatch.setattr(DuckDBEngine, "distribution", broken)
    result = run(*QUANTILES)
    assert (result.code, result.out) == (5, "not answered: 0.1, 0.5, 0.9\n" + result.out.partition("\n")[2])
    assert "what it reserved stays spent" in result.err
    assert hits() == 3


# Ledgers


@pytest.mark.parametrize(
    ("options", "meter", "left"),
    [
        ((), "sparse", 9),
        (("--meter", "auto", "--hits", 4), "sparse", 3),
        (("--meter", "exact", "--hits", 4), "exact", 3),
        (("--meter", "renyi", "--hits", 4), "renyi", 3),
        (("--charging", "individual", "--hits", 4), "exact", 4),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_new_ledger_covers_the_hits_that_were_asked_for(options, meter, left):
    result = run(*COUNT, *TERMS, *options, "--json").json["meter"]
    assert (result["meter"], result["hits"], result["hits_left"]) == (meter, 1, left)


@pytest.mark.usefixtures("folder")
def test_fewer_hits_leave_less_noise_which_the_meter_and_the_report_tell():
    told = {}
    for wanted in (5, 20):
        for meter in ("sparse", "exact"):
            ledger = f"{meter}{wanted}.db"
            run(*COUNT, *TERMS, "--hits", wanted, "--meter", meter, "--ledger", ledger)
            plain = run("meter", ledger, "--json").json
            assert plain["standard_deviation"] == pytest.approx(noise(ledger).standard_deviation, rel=1e-6)
            shown = f"standard deviation {plain['standard_deviation']:.4g}"
            assert f"{shown} for a count, a part of it common to all answers" in run("meter", ledger).out
            assert Page(run("report", ledger, "--output", "-").out).facts()["noise of a count"].startswith(shown)
            told[meter, wanted] = plain["standard_deviation"]
    assert told["sparse", 5] < told["sparse", 20] < told["exact", 20]
    assert told["sparse", 5] < told["exact", 5] < told["exact", 20]


@pytest.mark.usefixtures("opened")
def test_hits_of_an_old_ledger_are_what_it_covers_at_most():
    result = run(*MEAN, "--hits", 11)
    assert (result.code, result.out) == (2, "")
    assert result.err == "tct: --hits is 11; it must be at most 10, which the ledger was made for, or left out\n"
    assert hits() == 0
    assert run(*MEAN, "--hits", 10, "--meter", "auto").code == 0
    assert run(*MEAN, "--hits", 4, "--again").code == 0
    assert hits() == 2


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (("--charging", "individual"), "charging was 'shared' and is 'individual'"),
        (("--charging", "individual", "--meter", "auto"), "charging was 'shared' and is 'individual'"),
        (("--meter", "renyi"), "meter was 'sparse' and is 'renyi'"),
        (("--query-epsilon", 0.1), "query_epsilon was 0.3489"),
    ],
)
@pytest.mark.usefixtures("opened")
def test_terms_that_a_ledger_was_not_made_for_are_named(options, difference):
    result = run(*HISTOGRAM, *options)
    assert (result.code, result.out) == (3, "")
    assert difference in result.err
    assert "or start another ledger" in result.err


@pytest.mark.usefixtures("folder")
def test_where_every_unit_has_a_budget_no_hits_are_left_over_or_missing():
    run("count", TABLE, *TERMS, "--charging", "individual")

    def is_published(asked, name, _, numbers):
        if asked is PICKS:  # nothing is picked where a pick would charge everybody
            return
        result = run(*asked)
        assert result.code == 0
        assert "Each unit takes part in 10 hits at most, and numbers are of the units that" in result.out
        assert name in result.out.splitlines()[0]
        answers = run(*asked, "--json").json["answers"]
        assert [answer["key"] for answer in answers] == list(numbers)

    each(is_published)


@pytest.mark.usefixtures("folder")
def test_hits_that_do_not_cost_one_say_what_they_cost():
    renyi = run(*HISTOGRAM, *TERMS, "--meter", "renyi", "--ledger", "renyi.db")
    price = run("meter", "renyi.db", "--json").json["price"]
    assert renyi.out.splitlines()[-1].startswith(f"3 answered, 1 hit, which costs {price:.4g}, 9 hits left.")
    assert (
        run(*QUANTILES, "--ledger", "renyi.db")
        .out.splitlines()[-1]
        .startswith(f"3 answered, 3 hits, which cost {price:.4g} each, 6 hits left.")
    )
    sums = ("top", TABLE, *COUNTIES, "-k", 2, "--sum", "fare", "--lower", -5, "--upper", 5)
    result = run(*sums, *TERMS, "--meter", "exact")  # each is picked, and then counted
    assert result.out.splitlines()[-1].startswith("2 answered, 2 hits, which cost 2 each, 6 hits left.")
    assert (
        "hits used                   2, which cost 4\nhits left                   6\n" in run("meter", TABLE).out
    )
    page = report()
    assert page.rows("asked")[1][1:5] == ["always", "2 2 keys", "2", "2 hits"]
    assert "4 of 10 hits charged" in page.text("figcaption")


@pytest.mark.usefixtures("opened")
def test_entries_of_a_ledger_tell_what_was_published_of_which_key():
    for asked in (QUANTILES, PICKS):
        run(*asked)
    run("top", TABLE, "--where", "age > 65", *COUNTIES, "--json")
    (number,) = (json.loads(run("ledger", "show", LEDGER, "--json").out)["entries"])[-1:]
    shown = [row[3] for row in cells(run("ledger", "show", LEDGER).out)]
    assert [cell for cell in shown if cell] == [
        "outcome",
        "below the",
        "threshold",
        "0.1: 1.5",
        "0.5: 2.25",
        "0.9: 3",
        "Devon",
        f"Devon: {number['outcome']}",
    ]


# Mistakes

SCHEMA = "one of the columns patient (number), age (number)"
MISTAKES = [
    (("count", TABLE, "agee > 65"), "WHERE, character 1: there is no column agee; did you mean age?"),
    (("count", TABLE, "age >"), "WHERE, character 6: the text ends where there should be a literal"),
    (("count", TABLE, "--hits", 0), "--hits is 0; it must be an integer from 1"),
    (("count", TABLE, "--hits", 10**9), "--hits is 1000000000; it must be fewer, or the budget larger"),
    (
        ("count", TABLE, "--charging", "individual", "--meter", "sparse"),
        "--meter is 'sparse'; it must be exact or renyi",
    ),
    (("sum", TABLE, "fair", *BOUNDS), f"COLUMN is 'fair'; it must be {SCHEMA}"),
    (("sum", TABLE, "county", *BOUNDS), "COLUMN is 'county'; it must be a column of numbers"),
    (("sum", TABLE, "fare", "--lower", 5, "--upper", 0), "--lower is 5; it must be at most --upper, 0"),
    (("sum", TABLE, "fare", "--lower", 0, "--upper", 0), "--upper is 0; it must be above 0, or --lower below 0"),
    (("sum", TABLE, "fare", "--lower", "nan", "--upper", 0), "--lower is nan; it must be a number between"),
    (("sum", TABLE, "fare", *BOUNDS, "--grid", "x"), "--grid is 'x'; it must be a number above 0"),
    (
        ("sum", TABLE, "fare", *BOUNDS, "--grid", 50),
        "--grid is '50'; it must be fine enough for the bounds 0 to 5",
    ),
    (("sum", TABLE, "fare", "agee > 65", *BOUNDS), "WHERE, character 1: there is no column agee"),
    (("mean", TABLE, "fair", *BOUNDS), f"COLUMN is 'fair'; it must be {SCHEMA}"),
    (("mean", TABLE, "county", *BOUNDS), "COLUMN is 'county'; it must be a column of numbers"),
    (("mean", TABLE, "fare", "--lower", 5, "--upper", 5), "--upper is 5; it must be above --lower, 5"),
    (("mean", TABLE, "fare", "--lower", 0, "--upper", "inf"), "--upper is inf; it must be a number between"),
    (("mean", TABLE, "fare", *BOUNDS, "--grid", 0), "--grid is '0'; it must be a number above 0"),
    (("mean", TABLE, "fare", "agee > 65", *BOUNDS), "WHERE, character 1: there is no column agee"),
    (("quantile", TABLE, "fair", "-q", 0.5, *BOUNDS), f"COLUMN is 'fair'; it must be {SCHEMA}"),
    (("quantile", TABLE, "county", "-q", 0.5, *BOUNDS), "COLUMN is 'county'; it must be a column of numbers"),
    (("quantile", TABLE, "fare", "-q", 0, *BOUNDS), "-q is 0.0; it must be a number above 0 and below 1"),
    (
        ("quantile", TABLE, "fare", "-q", 0.5, "-q", 1.5, *BOUNDS),
        "-q is 1.5; it must be a number above 0 and below",
    ),
    (("quantile", TABLE, "fare", "-q", "nan", *BOUNDS), "-q is nan; it must be a number above 0 and below 1"),
    (("quantile", TABLE, "fare", "-q", 0.1234567, *BOUNDS), "-q is 0.1234567; it must be a number above 0 and"),
    (("quantile", TABLE, "fare", "-q", 0.5, *BOUNDS, "--grid", 1e-6), "--grid is '1e-06'; it must be coarser"),
    (
        ("quantile", TABLE, "fare", "-q", 0.5, "--lower", 5, "--upper", 0),
        "--lower is 5; it must be at most --upper",
    ),
    (("histogram", TABLE, "--by", "county"), "keys: they must be declared by one of --keys-file, --keys, --days"),
    (("histogram", TABLE, "--by", "country", "--keys", "Kent"), f"--by is 'country'; it must be {SCHEMA}"),
    (("histogram", TABLE, "--by", "age", "--keys", "Kent"), "--keys, key 1: 'Kent' must be a number"),
    (("histogram", TABLE, "--by", "county", "--keys", "Kent,Kent"), "--keys, key 2: 'Kent' is the same key as in"),
    (("histogram", TABLE, *COUNTIES, "--per-unit", 0), "--per-unit is 0; it must be an integer from 1"),
    (("histogram", TABLE, *COUNTIES, "--per-unit", -2), "--per-unit is -2; it must be an integer from 1"),
    (("histogram", TABLE, *COUNTIES, "--where", "agee > 65"), "--where, character 1: there is no column agee"),
    (("top", TABLE, *COUNTIES, "--no-values", "-k", 4), "-k is 4; it must be an integer from 1 to 3"),
    (
        ("top", TABLE, *COUNTIES, "--no-values", "--threshold", 5),
        "--threshold is 5; it must be left out where values are not wanted",
    ),
    ((*COUNT, "--json", "--csv"), "--json: not together with --csv"),
    ((*MEAN, "--preview", "--csv"), "--preview: not together with --csv"),
]


def test_mistakes_name_the_option_and_what_it_must_be_and_make_no_ledger(folder):
    def is_named(asked, sentence):
        result = run(*asked, *TERMS)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"tct: {sentence}"), result.err
        assert not list(folder.glob("*ledger*"))

    every(MISTAKES, is_named)


@pytest.mark.parametrize(
    ("asked", "option"),
    [
        (("sum", TABLE, "fare"), "Missing option '--lower'"),
        (("mean", TABLE, "fare", "--lower", 0), "Missing option '--upper'"),
        (("quantile", TABLE, "fare", *BOUNDS), "Missing option '-q'"),
        (("quantile", TABLE, "fare", "-q", "half", *BOUNDS), "Invalid value for '-q'"),
        (("histogram", TABLE, "--keys", "Kent"), "Missing option '--by'"),
        (("histogram", TABLE, *COUNTIES, "--per-unit", 1.5), "Invalid value for '--per-unit'"),
        (("mean", TABLE), "Missing argument 'COLUMN'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_missing_or_no_number_is_named(asked, option):
    result = run(*asked, *TERMS)
    assert (result.code, result.out) == (2, "")
    assert option in result.err


def test_columns_of_a_csv_file_are_declared(folder):
    asked = {
        "mean": ("mean", "visits.csv", "fare", *BOUNDS),
        "sum": ("sum", "visits.csv", "fare", *BOUNDS),
        "quantile": ("quantile", "visits.csv", "fare", "-q", 0.5, *BOUNDS, "--grid", 0.25),
    }

    def is_declared(*command):
        result = run(*command, *TERMS)
        assert result.code == 2
        assert "if it holds numbers, open the table with --type fare=number" in result.err
        assert "COLUMN is 'fare'; it must be a column of numbers" in result.err
        assert not list(folder.glob("visits.csv.ledger*"))

    every(asked, is_declared)
    result = run(*asked["quantile"], *TERMS, "--type", "fare=number", "--json")
    assert [answer["outcome"] for answer in result.json["answers"]] == [2.25]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            (),
            "a sparse meter has no price for a prior: ask with --meter exact. A ledger keeps its meter, so choose",
        ),
        (
            ("--charging", "individual"),
            "with individual charging only the Rényi meter has a price for a prior: ask with --meter renyi.",
        ),
    ],
)
def test_a_prior_needs_another_meter_which_is_an_option(folder, options, sentence):
    for asked in (("--prior", 10), ("--prior", 10, "--threshold", 5)):
        result = run("ask", TABLE, *asked, "--tolerance", 0, *TERMS, *options)
        assert (result.code, result.out) == (3, "")
        assert result.err.startswith(f"tct: {sentence}")
        assert not list(folder.glob("*ledger*"))
