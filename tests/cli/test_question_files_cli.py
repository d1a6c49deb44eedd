import pytest
from tests.cli.commands import run
from tests.cli.conftest import TERMS, hits, most
from tests.refusals import every

from targetcharge.engines.duckdb import DuckDBEngine

CSV = """name,where,threshold,sum,lower,upper
old,age > 65,9000,,,
,"county IN ('Kent', 'Devon')",40000,,,
dear,ill = FALSE,9000,fare,0,5
"""
YAML = """
- name: old
  where: age > 65
  threshold: 9_000
- where: county IN ('Kent', 'Devon')
  threshold: 4e4
- {name: dear, where: ill = FALSE, sum: fare, lower: 0, upper: 5, threshold: 9000, prior: null}
"""
QUESTIONS = [
    ("old", "count(age > 65) >= 9000", True),
    ("", "count(county IN ('Kent', 'Devon')) >= 40000", False),
    ("dear", "sum(fare from 0 to 5 where ill = FALSE) >= 9000", True),
]


@pytest.fixture
def file(folder):
    def write(name, text):
        (folder / name).write_text(text, encoding="utf-8")
        return name

    return write


def ask(name, *options):
    return run("ask", "visits.parquet", "--questions", name, *options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.csv", CSV),
        ("q.CSV", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("q.yaml", YAML),
        ("q.yml", "questions:" + YAML),
    ],
)
def test_questions_are_asked_in_order(file, name, text):
    result = ask(file(name, text), *TERMS, "--json")
    told = [(answer["name"], answer["question"], answer["hit"]) for answer in result.json["answers"]]
    assert (result.code, told) == (0, QUESTIONS)
    assert hits() == 2


def test_a_table_of_answers(file):
    result = ask(file("q.csv", CSV), *TERMS)
    lines = [line for line in result.out.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in line.split("│")[1:3]] for line in lines] == [
        [name, question] for name, question, _ in QUESTIONS
    ]
    assert f"below the threshold │ up to {most(40_000):,}" in lines[1]
    assert "3 answered, 2 hits, 8 hits left" in result.out


def test_rows_of_answers_without_names(file):
    rows = ask(file("q.csv", "where,threshold\nage > 65,9000\nage > 99,9000\n"), *TERMS, "--csv").rows
    assert rows[0][:3] == ["question", "outcome", "hit"]
    assert [row[0::2][:2] for row in rows[1:]] == [
        ["count(age > 65) >= 9000", "true"],
        ["count(age > 99) >= 9000", "false"],
    ]


def test_every_field(file):
    questions = """
- {where: age > 65, low: 10000, high: 40000}
- {side: 10000}
- {prior: 30000, tolerance: 5000}
- {distinct: patient, per_unit: 1, threshold: 9000}
- {sum: fare, lower: 0, upper: 5, grid: 0.25, count: true}
- {sum: fare, lower: 0, upper: 5, grid: "0.25", threshold: 900000}
- {count: yes}
"""
    result = ask(file("q.yaml", questions), *TERMS, "--meter", "renyi", "--epsilon", 30, "--json")
    assert [answer["outcome"] for answer in result.json["answers"]][:3] == ["between", "above", "unchanged"]
    assert [answer["hit"] for answer in result.json["answers"]] == [True, False, False, True, True, False, True]
    assert result.json["answers"][-1]["question"] == "count(*)"


ALWAYS_PAID = {
    "q.csv": """name,where,mean,quantile,q,sum,lower,upper,grid,threshold,count
dear,ill = FALSE,fare,,,,0,5,,,
middle,,,fare,0.5,,0,5,0.25,,
old,age > 65,,,,,,,,9000,
total,,,,,fare,0,5,,,true
low,,,fare,0.1,,0,5,0.25,,
all,,,,,,,,,,TRUE
""",
    "q.yaml": """
- {name: dear, mean: fare, lower: 0, upper: 5, where: ill = FALSE}
- {name: middle, quantile: fare, q: 0.5, lower: 0, upper: 5, grid: 0.25}
- {name: old, where: age > 65, threshold: 9000}
- {name: total, sum: fare, lower: 0, upper: 5, count: true}
- {name: low, quantile: fare, q: 1e-1, lower: 0, upper: 5, grid: "0.25"}
- {name: all, count: true}
""",
}


@pytest.mark.parametrize("name", ALWAYS_PAID)
@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_means_and_quantiles_are_asked_among_others_in_order(file, name, charging):
    result = ask(file(name, ALWAYS_PAID[name]), *TERMS, "--charging", charging, "--json")
    assert (result.code, result.json["stopped"]) == (0, None)
    told = {answer["name"]: (answer["question"], answer["outcome"]) for answer in result.json["answers"]}
    assert list(told) == ["dear", "middle", "old", "total", "low", "all"]
    whose = ", of the units that still take part" if charging == "individual" else ""
    assert told["middle"] == (f"quantile(fare from 0 to 5) at 0.5{whose}", 2.25)
    assert told["low"] == (f"quantile(fare from 0 to 5) at 0.1{whose}", 1.5)
    question, mean = told["dear"]
    assert question == f"mean(fare from 0 to 5 where ill = FALSE){whose}"
    assert abs(mean - 2.625) < 0.1
    assert all(answer["hit"] and answer["key"] is None for answer in result.json["answers"])
    assert hits() == 6


def test_quantiles_that_the_budget_does_not_cover_lose_nothing_before_them(file):
    result = ask(file("q.yaml", ALWAYS_PAID["q.yaml"]), *TERMS, "--hits", 4, "--json")
    assert result.code == 3
    assert [answer["name"] for answer in result.json["answers"]] == ["dear", "middle", "old", "total"]
    assert result.json["unanswered"] == [["low", "quantile(fare from 0 to 5) at 0.1"], ["all", "count(*)"]]
    assert "this could cost 1 hit on the sparse meter and nothing is left" in result.err


def test_more_questions_than_are_asked_together(file):
    rows = [f"age > {age},{9000}" for age in (100, 65)] * 60
    result = ask(file("q.csv", "\n".join(["where,threshold", *rows])), *TERMS, "--hits", 60, "--again", "--json")
    assert [answer["hit"] for answer in result.json["answers"]] == [False, True] * 60
    assert [answer["seq"] for answer in result.json["answers"]] == list(range(1, 121))


@pytest.mark.parametrize("rows", [["age > 65"] * 12, ["age > 99"] * 30 + ["age > 65"] * 12])
def test_a_budget_that_is_spent_in_the_middle_loses_nothing(file, rows):
    name = file("q.csv", "\n".join(["name,where,threshold", *(f"q{n},{row},9000" for n, row in enumerate(rows))]))
    result = ask(name, *TERMS, "--again", "--json")
    assert result.code == 3
    told = [answer["name"] for answer in result.json["answers"]]
    assert told == [f"q{n}" for n in range(len(rows) - 2)]
    assert result.json["unanswered"] == [
        [f"q{n}", "count(age > 65) >= 9000"] for n in range(len(rows) - 2, len(rows))
    ]
    assert result.err.startswith("tct: made the ledger")
    assert "does not cover it" in result.err
    assert result.json["stopped"] in result.err
    assert hits() == 10


def test_what_was_not_answered_is_told(file):
    name = file("q.csv", "\n".join(["where,threshold", *["age > 65,9000"] * 9, *["age > 10,9000"] * 30]))
    result = ask(name, *TERMS, "--again")
    assert result.code == 3
    (told,) = [line for line in result.out.splitlines() if line.startswith("not answered: ")]
    assert told == "not answered: " + ", ".join(["count(age > 10) >= 9000"] * 20) + " and 9 more"
    rows = ask(name, "--csv", "--again").rows
    assert rows[1] == ["count(age > 65) >= 9000", *[""] * 8]
    assert len(rows) == 40


def test_an_error_on_the_way_loses_no_answer(file, monkeypatch):
    measure, calls = DuckDBEngine.measure, []

    def breaks(*given):
        calls.append(given)
        if len(calls) == 3:
            raise ValueError
        return measure(*given)

    monkeypatch.setattr(DuckDBEngine, "measure", breaks)
    result = ask(
        file("q.csv", "where,threshold,count\nage > 65,9000,\nage > 65,,true\nage > 75,,true\nage > 85,,true\n"),
        *TERMS,
        "--json",
    )
    assert (result.code, len(result.json["answers"]), len(result.json["unanswered"])) == (5, 2, 2)
    assert result.json["stopped"].startswith("the computation did not give an outcome")
    assert hits() == 3


BAD_QUESTIONS = [
    (
        "q.csv",
        "where,threshold\nage > 65,9000\nage > 65,many\n",
        "q.csv, line 3: threshold is 'many'; it must be",
    ),
    (
        "q.csv",
        "where,threshold\n\n\nagee > 65,9000\n",
        "q.csv, line 4: where, character 1: there is no column",
    ),
    (
        "q.csv",
        "where,limit\nage > 65,9000\n",
        "q.csv, line 1: there is no field 'limit'; there are name, where",
    ),
    (
        "q.csv",
        "where,threshold\nage > 65,9000,1\n",
        "q.csv, line 2: it has 3 cells, and the first line names 2",
    ),
    ("q.csv", "where,where\nage > 65,9000\n", "q.csv, line 1: it must name every column, each once"),
    ("q.csv", 'where,threshold\n"age > 65,9000\n', "q.csv, line 2: this is not CSV"),
    ("q.csv", "where,threshold\n", "q.csv: there are no questions in it"),
    ("q.csv", "", "q.csv, line 1: it must name every column"),
    ("q.csv", "low,high\n5,1\n", "q.csv, line 2: high is 1; it must be at least low, 5"),
    ("q.csv", "low,high\n5,\n", "q.csv, line 2: high is None; it must be given with low"),
    ("q.csv", "low,high\n,5\n", "q.csv, line 2: low is None; it must be given with high"),
    ("q.csv", "threshold,low,high\n5,1,5\n", "q.csv, line 2: between is '1 5'; it must be left out"),
    ("q.csv", "sum,lower,upper,count\nfare,5,0,true\n", "q.csv, line 2: lower is 5; it must be at most upper"),
    ("q.csv", "sum,lower\nfare,5\n", "q.csv, line 2: upper is None; it must be given with sum"),
    ("q.csv", "distinct,per_unit,threshold\nage,1.5,9\n", "per_unit is '1.5'; it must be a whole number"),
    ("q.csv", "threshold\nnan\n", "q.csv, line 2: threshold is nan"),
    ("q.csv", "sum,lower,upper,grid,count\nfare,0,5,x,true\n", "q.csv, line 2: grid is 'x'"),
    (
        "q.yaml",
        "- {where: age > 65, threshold: 5}\n- {where: agee > 65, threshold: 5}\n",
        "q.yaml, item 2: where, character 1: there is no column",
    ),
    ("q.yaml", "- age > 65\n", "q.yaml, item 1: it must have fields, such as where: age > 65"),
    ("q.yaml", "where: age > 65\n", "q.yaml: it must be a list of questions"),
    ("q.yaml", "- where: [\n", "q.yaml, line 2: this is not YAML"),
    ("q.yaml", "- where: true\n", "q.yaml, item 1: where is True; it must be text; write it in quotes"),
    ("q.yaml", "- threshold: true\n", "q.yaml, item 1: threshold is True; it must be a number"),
    ("q.yaml", f"- threshold: {'9' * 400}\n", "q.yaml, item 1: threshold is 9999"),
    ("q.yaml", f"- {{threshold: 5, prior: {'9' * 400}}}\n", "q.yaml, item 1: prior is 9999"),
    ("q.yaml", f"- threshold: {'9' * 5000}\n", "q.yaml: it holds a value that cannot be read: Exceeds"),
    ("q.yaml", "- where: 2024-02-30\n", "q.yaml: it holds a value that cannot be read: day is out of range"),
    ("q.yaml", "[" * 20_000, "q.yaml: it holds lists in lists too deep to be read"),
    ("q.yaml", "- threshold: [5]\n", "q.yaml, item 1: threshold is <list>; it must be a number"),
    (
        "q.yaml",
        "- {distinct: age, threshold: 5, per_unit: 1.5}\n",
        "per_unit is 1.5; it must be a whole number",
    ),
    ("q.yaml", "- 5: age\n", "q.yaml, item 1: there is no field 5"),
    ("q.yaml", "- treshold: 5\n", "; did you mean threshold?"),
    ("q.yaml", "- limit: 5\n", "q.yaml, item 1: there is no field 'limit'"),
    ("q.yaml", "", "q.yaml: it must be a list of questions"),
    ("q.yaml", "[]", "q.yaml: there are no questions in it"),
    ("q.txt", "", "it must be a file that ends in .csv, .yaml or .yml"),
    ("q.csv", "lower\n5\n", "q.csv, line 2: lower is 5; it must be given with sum, mean or quantile"),
    ("q.csv", "grid\n5\n", "q.csv, line 2: grid is '5'; it must be given with sum, mean or quantile"),
    ("q.csv", "q\n0.5\n", "q.csv, line 2: q is 0.5; it must be given with quantile, and only with it"),
    ("q.csv", "mean,lower\nfare,5\n", "q.csv, line 2: upper is None; it must be given with mean"),
    ("q.csv", "mean,lower,upper\nfair,0,5\n", "q.csv, line 2: mean is 'fair'; it must be one of the columns"),
    ("q.csv", "mean,lower,upper\nfare,5,5\n", "q.csv, line 2: upper is 5; it must be above lower, 5"),
    ("q.csv", "quantile,lower,upper\nfare,0,5\n", "q.csv, line 2: q is None; it must be given with quantile"),
    (
        "q.csv",
        "quantile,q,lower,upper\nfare,1,0,5\n",
        "q.csv, line 2: q is 1; it must be a number above 0 and below 1",
    ),
    ("q.csv", "quantile,q,lower,upper\ncounty,0.5,0,5\n", "q.csv, line 2: quantile is 'county'; it must be"),
    ("q.csv", "where,by,keys\n,county,Kent\n", "q.csv, line 1: there is no field 'by': questions here have one"),
    (
        "q.yaml",
        "- {histogram: county}\n",
        "q.yaml, item 1: there is no field 'histogram': questions here have one",
    ),
    ("q.yaml", "- {top: county, k: 5}\n", "ask about keys with tct histogram, tct watch or tct top"),
    (
        "q.yaml",
        "- {quantile: fare, q: [0.1, 0.5], lower: 0, upper: 5}\n",
        "q.yaml, item 1: q is <list>; it must be a number",
    ),
    (
        "q.yaml",
        "- {mean: fare, quantile: fare, q: 0.5, lower: 0, upper: 5}\n",
        "q.yaml, item 1: quantile is 'fare'; it must be left out where mean is given",
    ),
    (
        "q.yaml",
        "- {mean: fare, lower: 0, upper: 5, threshold: 5}\n",
        "q.yaml, item 1: threshold is 5; it must be left out where mean is given",
    ),
    (
        "q.yaml",
        "- {mean: fare, lower: 0, upper: 5, low: 1, high: 2}\n",
        "q.yaml, item 1: between is '1 2'; it must be left out where mean is given",
    ),
    (
        "q.csv",
        "where,threshold\nage > 65,5\nage > 75,\n",
        "q.csv, line 3: threshold is None; it must be given, or",
    ),
    ("q.yaml", "- where: age > 65\n", "always costs, whatever it is: count: true publishes it"),
    ("q.yaml", "- {where: age > 65, count: no}\n", "item 1: threshold is None; it must be given, or between"),
    (
        "q.yaml",
        "- {count: yes, threshold: 5}\n",
        "item 1: threshold is 5; it must be left out where count is given",
    ),
    ("q.yaml", "- {count: 1}\n", "item 1: count is 1; it must be true or false"),
    ("q.csv", "threshold,again\n5,maybe\n", "q.csv, line 2: again is 'maybe'; it must be true or false"),
    ("q.csv", "prior\n5\n", "q.csv, line 2: tolerance is None; it must be given with a prior"),
    (
        "q.yaml",
        "- {mean: fare, lower: 0, upper: 5, prior: 2}\n",
        "q.yaml, item 1: prior is 2; it must be left out where mean is given",
    ),
]


def test_a_bad_question_is_named_before_any_is_asked(file, folder):
    def is_named(name, text, sentence):
        result = ask(file(name, text), *TERMS, *(["--meter", "renyi"] if "low" in text else []))
        assert (result.code, result.out) == (2, "")
        assert sentence in result.err
        assert not list(folder.glob("*ledger*"))

    every(BAD_QUESTIONS, is_named)


def test_a_question_that_is_not_allowed_is_named_too(file):
    result = ask(file("q.csv", "where,side,count\nage > 65,,true\nage > 65,9,\n"), *TERMS)
    assert (result.code, result.out) == (3, "")
    assert "q.csv, line 3: only the Rényi meter has a price for" in result.err
    questions = "where,prior,tolerance,count\nage > 65,,,true\nage > 65,9,1,\n"
    result = ask(file("q.csv", questions), *TERMS)
    assert (result.code, result.out) == (3, "")
    assert "q.csv, line 3: a sparse meter has no price for a prior: ask with --meter exact" in result.err


@pytest.mark.usefixtures("folder")
def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "q.csv").write_bytes(b"where\n\xff\xfe\n")
    assert "q.csv: it cannot be read: it is not text in UTF-8" in ask("q.csv", *TERMS).err
    result = ask("no.csv", *TERMS)
    assert (result.code, result.err) == (2, "tct: no.csv: it cannot be read: No such file or directory\n")


@pytest.mark.parametrize(
    ("options", "name"),
    [(["age > 65"], "WHERE"), (["--threshold", 5], "--threshold"), (["--sum", "fare"], "--sum")],
)
def test_a_file_says_all_of_a_question(file, options, name):
    result = run("ask", "visits.parquet", *options, "--questions", file("q.csv", CSV), *TERMS)
    assert (result.code, result.err[:40]) == (2, f"tct: {name}: not together with --questions: the"[:40])


def test_a_preview_of_all(file):
    result = ask(file("q.csv", CSV), *TERMS, "--preview")
    assert result.out.count("question: ") == 3
    assert len(ask("q.csv", *TERMS, "--preview", "--json").json) == 3


AGAIN = """
- {name: old, where: age > 65, threshold: 9000}
- {name: none, where: age > 99, threshold: 9000}
- {name: all, count: true}
- {name: anew, where: age > 65, threshold: 9000, again: true}
- {name: middle, quantile: fare, q: 0.5, lower: 0, upper: 5, grid: 0.25}
"""


def told(result, *names):
    return [tuple(answer[name] for name in names) for answer in result.json["answers"]]


def test_a_file_that_is_asked_again_costs_what_it_says_is_asked_again(file):
    first = ask(file("q.yaml", AGAIN), *TERMS, "--json")
    assert [repeat for (repeat,) in told(first, "repeat")] == [False] * 5
    assert hits() == 4
    second = ask("q.yaml", "--json")
    assert [repeat for (repeat,) in told(second, "repeat")] == [True, False, True, False, True]
    assert told(second, "name", "price")[0::2] == [("old", 0), ("all", 0), ("middle", 0)]
    assert told(second, "outcome")[2::2] == told(first, "outcome")[2::2]
    assert second.json["answers"][0]["outcome"] == first.json["answers"][3]["outcome"]
    assert hits() == 5
    rows = ask("q.yaml", "--csv").rows
    assert [row[-1] for row in rows] == ["repeat", "true", "false", "true", "false", "true"]
    shown = ask("q.yaml").out
    assert shown.count("published before, free") == 3
    assert "5 answered, 1 hit, 3 published before, 3 hits left." in shown
    assert hits() == 7


def test_a_file_ends_after_as_many_new_hits_as_are_wanted(file):
    ask(file("first.csv", "where,threshold\nage > 40,9000\n"), *TERMS)
    text = "\n".join(["where,threshold", *(f"age > {age},9000" for age in range(10, 50)), "age > 99,9000"])
    result = ask(file("q.csv", text), "--max-hits", 2, "--json")
    assert (result.code, result.err) == (0, "tct: stopped after 2 new hits, as many as were wanted\n")
    assert told(result, "question", "repeat") == [
        ("count(age > 10) >= 9000", False),
        ("count(age > 11) >= 9000", False),
        ("count(age > 40) >= 9000", True),
    ]
    assert len(result.json["unanswered"]) == 38
    assert result.json["stopped"] == "stopped after 2 new hits, as many as were wanted"
    assert hits() == 3
    shown = ask("q.csv", "--max-hits", 0)
    assert (shown.code, shown.err) == (0, "tct: stopped after 0 new hits, as many as were wanted\n")
    assert "3 answered, 0 hits, 3 published before, 7 hits left." in shown.out


def test_a_spent_ledger_still_tells_what_was_published(file):
    name = file("q.yaml", AGAIN.replace(", again: true", ""))
    ask(name, *TERMS, "--hits", 3)
    assert hits() == 3
    more = file(
        "more.yaml",
        "- {where: age > 7, threshold: 9}\n"
        + AGAIN.replace(", again: true", "")
        + "- {where: age > 8, count: true}",
    )
    result = ask(more, "--json")
    assert result.code == 3
    assert told(result, "name", "repeat") == [("old", True), ("all", True), ("anew", True), ("middle", True)]
    assert [name for name, _ in result.json["unanswered"]] == ["", "none", ""]
    assert hits() == 3
