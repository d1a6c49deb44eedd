import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.commands import run, start
from tests.cli.conftest import EXACT, TERMS, hits, least, most, noise

import targetcharge as tc
from targetcharge import engines
from targetcharge.engines.duckdb import DuckDBEngine
from targetcharge.ledger import words
from targetcharge.ledger.sqlite import database
from targetcharge.sessions.reading import Reading
from targetcharge.tables import measured

RENYI = (*TERMS, "--meter", "renyi", "--epsilon", 30)


@pytest.mark.usefixtures("folder")
def test_a_hit_is_told_with_its_interval_and_what_is_left():
    result = run("ask", "visits.parquet", "age > 65", "--threshold", 9000, *TERMS)
    assert result.code == 0
    answer, closing = result.out.splitlines()
    assert answer.startswith("count(age > 65) >= 9000: ")
    assert answer.endswith(", a hit, which costs 1")
    assert closing == (
        "1 answered, 1 hit, 9 hits left. All that is ever published with visits.parquet.ledger.db is"
        " (3, 1e-06)-differentially private for units of patient."
    )
    assert result.err == "tct: made the ledger visits.parquet.ledger.db\n"


@pytest.mark.usefixtures("opened")
def test_a_ledger_is_read_once_and_then_opened(monkeypatch):
    connect, connections = database.sqlite3.connect, []

    def counting(*given, **more):
        connections.append(given)
        return connect(*given, **more)

    monkeypatch.setattr(database.sqlite3, "connect", counting)
    assert run("ask", "visits.parquet", "age > 65", "--threshold", 20_000).code == 0
    assert len(connections) == 2


@pytest.mark.usefixtures("opened")
def test_a_miss_is_free_and_no_error():
    result = run("ask", "visits.parquet", "age > 75", "--threshold", 20_000)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(
        f"count(age > 75) >= 20000: below the threshold (95% interval: up to {most(20_000):,}), free\n"
    )
    assert "0 hits, 10 hits left" in result.out


@pytest.mark.usefixtures("opened")
def test_a_ledger_knows_what_is_left_out():
    run("ask", "visits.parquet", "age > 65", "--threshold", 9000)
    again = run("ask", "visits.parquet", "age > 65", "--threshold", 9000, "--epsilon", 3, "--again", "--json")
    assert (again.code, again.json["meter"]["hits_left"]) == (0, 8)


@pytest.mark.usefixtures("folder")
def test_rows_as_units():
    run("ask", "visits.parquet", "--threshold", 9000, "--rows", *TERMS[2:])
    assert run("ask", "visits.parquet", "--threshold", 9000, "--json").json["meter"]["unit"]["kind"] == "row"


@pytest.mark.parametrize(
    ("options", "difference"),
    [
        (["--epsilon", 4], "epsilon was 3.0 and is 4.0"),
        (["--delta", 1e-7], "delta was 1e-06 and is 1e-07"),
        (["--query-epsilon", 0.05], "query_epsilon was 0.3489"),
        (["--meter", "renyi"], "meter was 'sparse' and is 'renyi'"),
        (["--unit", "age"], "unit was column 'patient' and is column 'age'"),
        (["--rows"], "unit was column 'patient' and is every row"),
    ],
)
@pytest.mark.usefixtures("opened")
def test_what_is_given_must_agree_with_the_ledger(options, difference):
    result = run("ask", "visits.parquet", "--threshold", 9000, *options)
    assert (result.code, result.out) == (3, "")
    assert difference in result.err
    assert hits() == 0


@pytest.mark.usefixtures("opened")
def test_more_hits_than_a_ledger_covers_are_refused():
    result = run("ask", "visits.parquet", "--threshold", 9000, "--hits", 11)
    assert (result.code, result.out) == (2, "")
    assert "--hits is 11; it must be at most 10, which the ledger was made for" in result.err
    assert run("ask", "visits.parquet", "--threshold", 9000, "--hits", 10, "--meter", "auto").code == 0
    assert hits() == 1


@pytest.mark.parametrize(
    ("options", "meter", "left"),
    [
        ([], "sparse", 10),
        (["--meter", "auto", "--hits", 3], "sparse", 3),
        (["--query-epsilon", 0.3], "sparse", 17),
        (["--charging", "individual"], "exact", 10),
        (["--meter", "exact", "--query-epsilon", 0.1], "exact", 7),
        (["--query-epsilon", 0.03], "exact", 165),
    ],
)
@pytest.mark.usefixtures("folder")
def test_a_new_ledger_has_the_best_meter_and_ten_hits_if_nothing_else_is_said(options, meter, left):
    result = run("ask", "visits.parquet", "age > 200", "--threshold", 9000, *TERMS, *options, "--json")
    assert (result.json["meter"]["meter"], result.json["meter"]["hits_left"]) == (meter, left)


@pytest.mark.usefixtures("opened")
def test_json_is_one_document():
    result = run("ask", "visits.parquet", "age > 65", "--threshold", 9000, "--json")
    (answer,) = result.json["answers"]
    low, high = answer["interval"]
    assert low < answer["outcome"] < high
    assert (answer["question"], answer["hit"], answer["price"]) == ("count(age > 65) >= 9000", True, 1.0)
    assert (answer["key"], answer["seq"]) == (None, 2)
    assert answer["scale"] == pytest.approx(noise().scale)
    assert result.json["meter"] == {
        "unit": {"kind": "column", "name": "patient"},
        "meter": "sparse",
        "charging": "shared",
        "query_epsilon": pytest.approx(0.348957, abs=1e-6),
        "guarantee": {"epsilon": 3.0, "delta": 1e-6},
        "hits": 1,
        "hits_left": 9,
    }
    assert (result.json["stopped"], result.json["unanswered"]) == (None, [])
    assert result.err == ""


@pytest.mark.usefixtures("opened")
def test_csv_is_rows():
    result = run("ask", "visits.parquet", "county IN ('Kent', 'Devon')", "--threshold", 9000, "--csv")
    heads, cells = csv.reader(io.StringIO(result.out))
    assert heads == ["question", "outcome", "hit", "price", "low", "high", "scale", "seq", "repeat"]
    row = dict(zip(heads, cells, strict=True))
    assert (row["question"], row["hit"]) == ("count(county IN ('Kent', 'Devon')) >= 9000", "true")
    assert float(row["low"]) < float(row["outcome"]) < float(row["high"])


@pytest.mark.parametrize(
    ("options", "words", "hit"),
    [
        (["age > 65", "--between", 10_000, 30_000], "between 10000 and 30000: between", True),
        (["age > 65", "--between", 100, 200], "above (95% interval: from {least}), free", False),
        (["age > 65", "--side", 10_000], "side of 10000: above", False),
        (["--prior", 30_000, "--tolerance", 5000], "count(*): unchanged from 30,000", False),
        (["--prior", 30_000, "--tolerance", "20%"], "count(*): unchanged from 30,000", False),
        (["--prior", 10_000, "--tolerance", 5000], "count(*): ", True),
        (["--prior", 30_000, "--tolerance", 5000, "--threshold", 9000], "count(*) >= 9000: unchanged", False),
        (
            ["--prior", 60_000, "--tolerance", 0, "--threshold", 50_000],
            "count(*) >= 50000: below the threshold",
            True,
        ),
        (
            ["--sum", "fare", "--lower", 0, "--upper", 5, "--threshold", 9000],
            "sum(fare from 0 to 5) >= 9000: ",
            True,
        ),
        (
            ["ill = TRUE", "--sum", "fare", "--lower", 0, "--upper", 5, "--grid", 0.25, "--threshold", 5],
            "where ill = TRUE) >= 5: ",
            True,
        ),
        (["--distinct", "patient", "--threshold", 9000], "distinct(patient) >= 9000: ", True),
        (["--distinct", "age", "--per-unit", 2, "--threshold", 9000], "2 for each unit) >= 9000: below", False),
    ],
)
@pytest.mark.usefixtures("folder")
def test_every_form_of_question(options, words, hit):
    result = run("ask", "visits.parquet", *options, *RENYI)
    assert result.code == 0
    assert words.format(least=least(201)) in result.out
    assert ("a hit, which costs" in result.out) is hit


def test_marks_in_words():
    said = [words.outcome(tc.Answer(mark, True, 1.0, 1, prior=1234)) for mark in (tc.BOUNDARY, tc.UNCHANGED)]
    assert said == ["too close to call", "unchanged from 1,234"]


@pytest.mark.parametrize("terms", [TERMS, EXACT], ids=["sparse", "exact"])
@pytest.mark.parametrize("options", [["--between", 10, 20], ["--side", 10]])
@pytest.mark.usefixtures("folder")
def test_only_the_meter_of_renyi_has_a_price_for_bands(options, terms):
    result = run("ask", "visits.parquet", *options, *terms)
    assert result.code == 3
    assert "ask with --meter renyi" in result.err


@pytest.mark.usefixtures("folder")
def test_distinct_values_need_a_shared_budget_which_is_an_option():
    options = ["--charging", "individual", "--distinct", "age", "--threshold", 9]
    result = run("ask", "visits.parquet", *TERMS, *options)
    assert result.code == 3
    assert "that was made with --charging shared" in result.err


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["agee > 65", "--threshold", 5], "there is no column agee; did you mean age?"),
        (["age >", "--threshold", 5], "where, character"),
        (["--sum", "fare", "--lower", 0, "--threshold", 5], "--upper is None; it must be given with --sum"),
        (
            ["--sum", "fare", "--lower", 5, "--upper", 0, "--side", 5],
            "--lower is 5; it must be at most --upper, 0",
        ),
        (
            ["--sum", "fare", "--lower", 0, "--upper", 0, "--side", 5],
            "--upper is 0; it must be above 0, or --lower below 0",
        ),
        (
            ["--sum", "county", "--lower", 0, "--upper", 5, "--side", 5],
            "--sum is 'county'; it must be a column of numbers",
        ),
        (["--distinct", "agee", "--threshold", 5], "--distinct is 'agee'; it must be one of the columns"),
        (["--sum", "fare", "--lower", 0, "--upper", 5, "--grid", "x", "--side", 5], "--grid is 'x'"),
        (["--lower", 5, "--threshold", 5], "--lower is 5; it must be given with --sum"),
        (["--grid", 5], "--grid is '5'; it must be given with --sum"),
        (["--per-unit", 5], "--per-unit is 5; it must be given with --distinct"),
        (["--tolerance", 5], "--tolerance is 5; it must be given with --prior"),
        (["--tolerance", "much"], "--tolerance is 'much'; it must be a number, or a share such as 20%"),
        (["--distinct", "age"], "--threshold is None; it must be given with --distinct"),
        (["--distinct", "age", "--sum", "fare"], "--distinct is 'age'; it must be left out"),
        (["--threshold", 5, "--side", 5], "--side is 5; it must be left out where --threshold is given"),
        (["--side", 5, "--prior", 5], "--prior is 5; it must be left out where --side is given"),
        (["--prior", 5], "--tolerance is None; it must be given with a prior"),
        (["--prior", 5, "--threshold", 5], "--tolerance is None; it must be given with a prior"),
        (
            ["age > 65"],
            "--threshold is None; it must be given, or --between or --side or --prior. The number itself",
        ),
        (["age > 65"], "always costs, whatever it is: tct count publishes it"),
        (["--sum", "fare", "--lower", 0, "--upper", 5], "whatever it is: tct sum publishes it"),
        (["--threshold", 5, "--max-hits", 1], "--max-hits: only with --questions: this is one question"),
        (["--between", 5, 1], "tct: --between HIGH is 1; it must be at least --between LOW, 5"),
        (["--between", 5.2, 5.8], "--between HIGH is 5.8; it must be so far above --between LOW, 5.2"),
        (["--side", "1e300"], "tct: --side is 1000"),
        (["--threshold", "nan"], "tct: --threshold is nan"),
        (["--threshold", "inf"], "tct: --threshold is inf"),
        (["--threshold", "1e300"], "tct: --threshold is 1000"),
        (["--json", "--csv"], "--json: not together with --csv"),
        (["--preview", "--csv"], "--preview: not together with --csv"),
        (["--threshold", 5, "--table", "x"], "only a DuckDB file has tables with names"),
        (["--threshold", 5, "--type", "age"], "--type is 'age'; it must be COLUMN=KIND"),
        (["--threshold", 5, "--type", "age=big"], "one of integer, number, text"),
        (["--threshold", 5, "--memory", "much"], "an amount of memory, such as '4GB'"),
        (["--threshold", 5, "--rows"], "--rows: not together with --unit"),
        (["--threshold", 5, "--unit", "patent"], "tct: --unit is 'patent'; it must be one of the columns"),
        (["--threshold", 5, "--unit", "patent"], "; did you mean patient?"),
        (["--distinct", "agee", "--threshold", 5], "; did you mean age?"),
        (["--threshold", 5, "--epsilon", -1], "tct: --epsilon is -1.0"),
        (["--threshold", 5, "--ledger", ":memory:"], "--ledger is ':memory:'; it must be a file"),
        (["--threshold", 5, "--ledger", "."], "and this is a folder"),
    ],
)
def test_mistakes_leave_no_ledger_behind(folder, options, sentence):
    meter = ["--meter", "renyi"] if {"--side", "--between"} & set(options) else []
    result = run("ask", "visits.parquet", *TERMS, *meter, *options)
    assert sentence in result.err
    assert (result.code, result.out) == (2, "")
    assert not list(folder.glob("*ledger*"))


@pytest.mark.parametrize(
    "options", [["--threshold", "many"], ["--between", 5], ["--meter", "best"], ["--nothing"]]
)
@pytest.mark.usefixtures("folder")
def test_what_is_no_option_is_refused(options):
    result = run("ask", "visits.parquet", *TERMS, *options)
    assert (result.code, result.out) == (2, "")
    assert "Error" in result.err


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ([], "--unit COLUMN (or --rows), --epsilon, --delta: missing"),
        (TERMS[2:], "--unit COLUMN (or --rows): missing"),
        (["--rows"], "--epsilon, --delta: missing"),
        (TERMS[:4], "--delta: missing"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_is_missing_for_a_new_ledger_is_named(options, missing):
    result = run("ask", "visits.parquet", "--threshold", 9000, *options)
    assert result.code == 2
    assert result.err.startswith(f"tct: {missing}, since there is no ledger visits.parquet.ledger.db yet")


@pytest.mark.parametrize("options", [[], TERMS])
def test_a_table_that_is_not_there(folder, options):
    result = run("ask", "visit.parquet", "--threshold", 9, *options)
    assert result.code == 2
    assert result.err.startswith("tct: TABLE is 'visit.parquet'; it must be a")
    assert not list(folder.glob("*ledger*"))


def test_a_table_that_cannot_be_read(folder):
    (folder / "visits.parquet").write_bytes(b"PAR1 Kent is a secret PAR1")
    result = run("ask", "visits.parquet", "--threshold", 9, *TERMS)
    assert result.code == 7
    assert "cannot be read as a table" in result.err
    assert "Kent" not in result.err


def test_a_ledger_that_is_none(opened):
    (opened / "visits.parquet.ledger.db").write_text("not a database, but as long as one might well be")
    assert run("ask", "visits.parquet", "--threshold", 9).code == 4


@pytest.mark.usefixtures("folder")
def test_a_ledger_of_another_session_is_refused():
    tc.Session([], tc.Budget(3.0, 1e-6), 0.1, ledger="visits.parquet.ledger.db").close()
    result = run("ask", "visits.parquet", "--threshold", 9)
    assert result.code == 3
    assert "is not of a table: choose another with --ledger" in result.err


def test_a_ledger_elsewhere(folder):
    (folder / "ledgers").mkdir()
    run("ask", "visits.parquet", "--threshold", 9000, *TERMS, "--ledger", "ledgers/v.db")
    result = run("ask", "visits.parquet", "--threshold", 9000, "--ledger", "ledgers/v.db", "--json", "--again")
    assert (result.json["meter"]["hits_left"], result.json["ledger"]) == (8, "ledgers/v.db")
    assert not list(folder.glob("*ledger.db"))


@pytest.mark.usefixtures("folder")
def test_a_pattern_needs_a_ledger():
    assert "there is no place beside a pattern" in run("ask", "visits*.csv", "--threshold", 9, *TERMS).err
    result = run("ask", "visits*.csv", "--threshold", 9000, *TERMS, "--ledger", "v.db")
    assert (result.code, "1 hit" in result.out) == (0, True)


def test_changed_data_must_be_vouched_for(opened):
    table = opened / "visits.parquet"
    pd.read_parquet(table)[:-3].to_parquet(table)
    result = run("ask", "visits.parquet", "--threshold", 9000)
    assert result.code == 3
    assert "open it with --new-data" in result.err
    assert hits() == 0
    assert run("ask", "visits.parquet", "--threshold", 9000, "--new-data").code == 0
    assert hits() == 1


COUNTIES = ("--by", "county", "--keys", "Kent,Devon")


@pytest.mark.parametrize(
    "words",
    [
        ("ask", "visits.parquet", "age > 65", "--threshold", 9000),
        ("count", "visits.parquet", "age > 65"),
        ("watch", "visits.parquet", "--where", "age > 65", "--threshold", 9000, *COUNTIES),
        ("top", "visits.parquet", "--where", "age > 65", *COUNTIES),
    ],
)
@pytest.mark.parametrize("charging", ["shared", "individual"])
@pytest.mark.usefixtures("folder")
def test_a_table_is_opened_once_and_a_predicate_is_read_once(words, charging, monkeypatch):
    """Also where there is no ledger yet, and what is asked is checked before one is made."""
    calls = []

    def counting(module, name):
        function = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, **more: calls.append(name) or function(*given, **more))

    counting(engines.duckdb, "open_duckdb")
    counting(measured, "parse")
    for terms in ((*TERMS, "--charging", charging), (), ("--preview",)):
        assert run(*words, *terms).code == 0
        assert calls.count("open_duckdb") == 1
        assert calls.count("parse") == 1
        calls.clear()


@pytest.mark.usefixtures("folder")
def test_columns_of_a_csv_file_are_declared():
    result = run("ask", "visits.csv", "age > 65", "--threshold", 9000, *TERMS)
    assert result.code == 2
    declare = "age is text: if it holds numbers, open the table with --type age=number"
    said = f"{declare}; to compare it as text, write '65', not 65"
    assert said in result.err
    Path("q.csv").write_text("where,threshold\nage > 65,9\n")
    assert (
        f"q.csv, line 2: where, character 7: {said}"
        in run("ask", "visits.csv", "--questions", "q.csv", *TERMS).err
    )
    added = ("--sum", "fare", "--lower", 0, "--upper", 5, "--threshold", 9)
    said = "a column of numbers, and it is text: if it holds numbers, open the table with --type fare=number"
    assert said in run("ask", "visits.csv", *added, *TERMS).err
    by_days = ("--by", "seen", "--days", "2013-01-01:2013-01-02", "--threshold", 9)
    said = "if the keys are a range of days: if it holds dates, open the table with --type seen=date"
    assert said in run("watch", "visits.csv", *by_days, *TERMS).err
    result = run("ask", "visits.csv", "age > 65", "--threshold", 9000, *TERMS, "--type", "age=number")
    assert (result.code, "1 hit" in result.out) == (0, True)


def test_a_preview_asks_nothing_and_makes_no_ledger(folder):
    result = run("ask", "visits.parquet", "age > 65", "--threshold", 9000, *TERMS, "--preview")
    assert (result.code, result.err) == (0, "")
    assert "price of a hit: 1" in result.out
    assert "false alarm" in result.out
    assert not list(folder.glob("*ledger*"))


@pytest.mark.usefixtures("opened")
def test_a_preview_as_json():
    (result,) = run("ask", "visits.parquet", "age > 65", "--threshold", 9000, "--preview", "--json").json
    assert result["question"] == "count(age > 65) >= 9000"
    assert hits() == 0


@pytest.mark.usefixtures("opened")
def test_a_spent_budget_is_exit_code_3():
    for _ in range(10):
        assert run("ask", "visits.parquet", "--threshold", 9000, "--again").code == 0
    result = run("ask", "visits.parquet", "--threshold", 9000, "--again")
    assert result.code == 3
    assert result.out.startswith("not answered: count(*) >= 9000\n0 answered, 0 hits, 0 hits left.")
    assert "does not cover it" in result.err
    result = run("ask", "visits.parquet", "--threshold", 9000, "--again", "--json")
    assert (result.code, result.json["answers"]) == (3, [])
    assert result.json["unanswered"] == ["count(*) >= 9000"]
    assert "does not cover it" in result.json["stopped"]


@pytest.mark.usefixtures("opened")
def test_two_processes_share_a_budget():
    options = ("ask", "visits.parquet", "--threshold", 9000, "--again", "--json")
    running = [start(*options) for _ in range(3)]
    told = [(*process.communicate(timeout=100), process.returncode) for process in running]
    assert [(err, code) for _, err, code in told] == [("", 0)] * 3
    answers = [json.loads(out)["answers"][0] for out, *_ in told]
    assert len({answer["seq"] for answer in answers}) == 3
    assert hits() == 3


@pytest.mark.usefixtures("opened")
def test_answers_are_printed_though_closing_fails(monkeypatch):
    close = tc.Table.close

    def broken(table):
        close(table)
        msg = "the disk is full"
        raise tc.LedgerError(msg)

    monkeypatch.setattr(tc.Table, "close", broken)
    result = run("ask", "visits.parquet", "--threshold", 9000)
    assert (result.code, result.err) == (4, "tct: the disk is full\n")
    assert "1 answered, 1 hit" in result.out


@pytest.mark.usefixtures("opened")
def test_as_a_user_runs_it():
    process = start("ask", "visits.parquet", "age > 65", "--threshold", 9000, "--csv")
    out, err = process.communicate(timeout=100)
    assert (process.returncode, err) == (0, "")
    assert len(out.splitlines()) == 2


@pytest.mark.usefixtures("opened")
def test_what_has_no_price_is_not_allowed(monkeypatch):
    def refused(*_):
        msg = "this has no finite price"
        raise tc.NotAllowed(msg)

    monkeypatch.setattr(tc.Table, "preview", refused)
    result = run("ask", "visits.parquet", "--threshold", 9000)
    assert (result.code, result.out, result.err) == (3, "", "tct: this has no finite price\n")


def test_a_ledger_that_is_lost_on_the_way(opened, monkeypatch):
    measure = DuckDBEngine.measure_by

    def lost(*given):
        for file in opened.glob("*ledger*"):
            file.unlink()
        return measure(*given)

    monkeypatch.setattr(DuckDBEngine, "measure_by", lost)
    options = ("--by", "county", "--keys", "Kent", "--threshold", 5000)
    result = run("watch", "visits.parquet", *options, "--json")
    assert (result.code, result.json["answers"], result.json["unanswered"]) == (4, [], ["Kent"])


@pytest.mark.usefixtures("opened")
def test_a_meter_that_cannot_be_read_any_more(monkeypatch):
    def lost(_):
        msg = "the ledger is gone"
        raise tc.LedgerError(msg)

    monkeypatch.setattr(Reading, "hits", property(lost))
    assert "1 answered, 1 hit. All that" in run("ask", "visits.parquet", "--threshold", 9000).out
    assert run("ask", "visits.parquet", "--threshold", 9000, "--json").json["meter"]["hits_left"] is None
