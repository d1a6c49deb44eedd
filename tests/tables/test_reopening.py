"""Reopening from the ledger alone; and what columns are declared to be, which never changes on the way."""

import json
import warnings

import pandas as pd
import pytest

import targetcharge as tc
from targetcharge.tables import Monitor, Rule

BUDGET = tc.Budget(3.0, 1e-6)
ROWS = pd.DataFrame({"unit": range(500), "age": [40, 70] * 250})


@pytest.fixture
def table(tmp_path):
    ROWS.to_parquet(tmp_path / "visits.parquet")
    return tmp_path / "visits.parquet"


@pytest.fixture
def text(tmp_path):
    ROWS.to_csv(tmp_path / "visits.csv", index=False)
    return tmp_path / "visits.csv"


MADE = {
    "sparse": {},
    "rows": {"unit": tc.ROW},
    "hits": {"hits": 3},
    "exact": {"meter": "exact", "query_epsilon": 0.1},
    "renyi": {"meter": "renyi"},
    "targets": {"targets": [tc.NotPrior(None), tc.Between(10, 20)], "query_epsilon": 0.1},
    "boundary": {"meter": "renyi", "targets": tc.Boundary(2), "query_epsilon": 0.05},
    "individual": {"charging": "individual", "hits": 4},
    "individual, laplace": {"charging": "individual", "targets": [tc.NotPrior(None)], "query_epsilon": 0.1},
    "individual, renyi": {"charging": "individual", "meter": "renyi"},
}


def facts(t):
    described = t.describe()
    names = ("unit", "budget", "query_epsilon", "meter", "charging", "standard_deviation")
    return {name: getattr(described, name) for name in names}, t.meter.hits_left, t.meter.tariff, repr(t)


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_table_is_reopened_by_its_path_alone(table, made):
    with tc.open(table, **{"unit": "unit", "budget": BUDGET, **made}) as t:
        before = facts(t)
    with tc.open(table) as t:
        assert facts(t) == before
        assert t.above(None, 450).hit
    with tc.open(table, made.get("unit", "unit"), BUDGET) as t:  # or with what it was made with
        assert t.meter.hits == 1


def test_a_frame_is_reopened_by_its_ledger(tmp_path):
    tc.open(ROWS, "unit", BUDGET, ledger=tmp_path / "a.db").close()
    with tc.open(ROWS, ledger=tmp_path / "a.db") as t:
        assert t.meter.guarantee == BUDGET


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {},
            r"^unit is None; it must be given for a ledger .*visits.parquet.ledger.db, which is not there yet: ",
        ),
        (
            {"unit": "unit"},
            r"^budget is None; it must be given for a ledger .* there yet: tc.Budget\(epsilon, delta\)",
        ),
        ({"budget": BUDGET}, "^unit is None"),
        (
            {"ledger": ":memory:"},
            r"^unit is None; it must be given for a ledger in memory: the name of a column, or tc",
        ),
    ],
)
def test_without_a_ledger_it_says_what_to_give(table, given, said):
    with pytest.raises(tc.InvalidParameter, match=said):
        tc.open(table, **given)
    assert [path.name for path in table.parent.iterdir()] == ["visits.parquet"]


def test_a_mistyped_path_is_no_missing_ledger(tmp_path):
    with pytest.raises(tc.InvalidParameter, match=r"^source is .*nothing.parquet'; it must be a file or fol"):
        tc.open(str(tmp_path / "nothing.parquet"))


def test_a_ledger_of_no_table_is_refused(table, tmp_path):
    tc.Session([], BUDGET, 0.1, ledger=tmp_path / "a.db").close()
    with pytest.raises(tc.NotAllowed, match=r"a.db is not of a table: choose another with ledger='other.db'$"):
        tc.open(table, ledger=tmp_path / "a.db")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"unit": "age"}, "unit was column 'unit' and is column 'age'"),
        ({"budget": tc.Budget(4.0, 1e-6)}, "epsilon was 3.0 and is 4.0"),
        ({"charging": "individual"}, "charging was 'shared' and is 'individual'"),
    ],
)
def test_what_is_given_must_still_be_the_same(table, given, said):
    tc.open(table, "unit", BUDGET).close()
    with pytest.raises(tc.NotAllowed, match=said):
        tc.open(table, **given)


@pytest.mark.parametrize("rules", [{"threshold": 100, "anew": True}, {"threshold": 100}, {"tolerance": "20%"}])
def test_a_monitor_is_reopened_by_its_table_alone(table, rules):
    asked = [Rule("visits", **rules)]
    with Monitor.open(table, asked, unit="unit", budget=BUDGET) as monitor:
        meter = monitor.table.meter.tariff
        assert len(monitor.look("2024-01-01").alerts) == 1
    with Monitor.open(table, asked) as again:
        assert again.table.meter.tariff == meter
        assert str(again.last) == "2024-01-01"


# What columns are declared to be.

TYPES = {"unit": "text", "age": "number"}


def reopened(source, **given):
    return tc.open(source, **given)


@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_types_that_are_left_out_are_those_of_the_ledger(text, charging):
    with tc.open(text, "unit", BUDGET, types=TYPES, charging=charging) as t:
        assert t.above("age > 65", 100).hit
    for types in (None, {}, TYPES, {"age": "number"}):
        with tc.open(text, types=types) as t:
            assert t.schema["age"].kind == "number"
            assert t.above("age > 65", 100).hit


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"age": "integer"}, "age was number and is integer"),
        ({"age": "text"}, "age was number and is text"),
        ({"unit": "integer", "age": "text"}, "unit was not declared and is integer; age was number and is text"),
    ],
)
@pytest.mark.parametrize("charging", ["shared", "individual"])
def test_other_types_are_refused_by_name_with_both_values(text, charging, given, said):
    tc.open(text, "unit", BUDGET, types={"age": "number"}, charging=charging).close()
    with pytest.raises(
        tc.NotAllowed, match=f"was opened with other types: {said}. Leave them out, or "
    ) as refusal:
        tc.open(text, types=given)
    fixed = charging == "individual" or "unit" in given
    assert ("new_data=True" in str(refusal.value)) is not fixed
    if fixed:
        with pytest.raises(tc.NotAllowed, match=said):
            tc.open(text, types=given, new_data=True)
    with tc.open(text) as t:
        assert t.schema["age"].kind == "number"


def test_an_owner_may_have_shared_data_read_otherwise_as_new_data(text):
    with tc.open(text, "unit", BUDGET) as t:
        assert t.count("age = '70'").snapshot == 1
    with pytest.raises(tc.NotAllowed, match="age was not declared and is number"):
        tc.open(text, types={"age": "number"})
    with tc.open(text, types={"age": "number"}, new_data=True) as t:
        assert t.count("age > 65").snapshot == 2  # another answer to the same words is about another snapshot
    with tc.open(text) as t:
        assert t.count("age > 65").snapshot == 2


def test_a_ledger_from_before_takes_the_types_that_it_is_opened_with(text):
    note = text.with_name("visits.csv.ledger.db-private")
    with tc.open(text, "unit", BUDGET, types=TYPES) as t:
        t.count()
    kept = json.loads(note.read_text())
    assert kept.pop("types") == TYPES
    note.write_text(json.dumps({**kept, "version": 4}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tc.open(text, types=TYPES).close()
    assert json.loads(note.read_text())["types"] == TYPES
    with pytest.raises(tc.NotAllowed, match="age was number and is text"):
        tc.open(text, types={"age": "text"})


def test_types_that_are_none_are_refused_by_name(text):
    with pytest.raises(tc.InvalidParameter, match=r"^types is 'age=number'; it must be a dictionary"):
        tc.open(text, "unit", BUDGET, types="age=number")


def test_a_description_says_what_was_declared_and_that_integers_are_rounded(text):
    with tc.open(text, "unit", BUDGET, types={"age": "integer"}) as t:
        said = str(t.describe())
        assert "declared: age integer; numbers with a fraction are rounded to integers" in said
        assert "missing: what is not what its column is declared to be" in said
        assert t.describe().as_dict()["declared"] == {"age": "integer"}
    with tc.open(text) as t:
        assert str(t.describe()) == said


@pytest.mark.parametrize("types", [None, {"age": "number"}])
def test_a_description_says_of_no_rounding_where_there_is_none(text, types):
    with tc.open(text, "unit", BUDGET, types=types) as t:
        assert "rounded" not in str(t.describe())
        assert ("declared: age number\n" in str(t.describe())) is (types is not None)


@pytest.mark.parametrize("types", [{1: "number"}, {"age": 5}])
def test_what_is_no_text_in_types_is_refused_by_name_also_where_there_is_a_ledger(tmp_path, types):
    source = tmp_path / "visits.csv"
    source.write_text("unit,age\n1,2\n")
    tc.open(source, "unit", tc.Budget(1, 1e-6), types={"age": "number"}).close()
    with pytest.raises(tc.InvalidParameter, match=r"types is [15]; it must be texts: names of columns"):
        tc.open(source, types=types)
    with pytest.raises(tc.InvalidParameter, match="a file or folder that exists"):
        tc.open(tmp_path / "none.csv")
