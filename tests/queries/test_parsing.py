"""Texts that are predicates, and what they become; what `str` writes is read back as the same."""

import datetime as dt
import sys
from fractions import Fraction

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.patients import SCHEMA
from tests.queries.trees import check

from targetcharge.errors import InvalidParameter, InvalidQuestion
from targetcharge.queries.grammar import Part
from targetcharge.queries.parser import DEEPEST, LONGEST, LONGEST_LIST, compare, one_of, parse
from targetcharge.queries.tree import (
    All,
    Any,
    Column,
    Compare,
    Exact,
    Kind,
    Like,
    Missing,
    Not,
    OneOf,
    Operator,
    Settled,
    quoted,
    text_literal,
)
from targetcharge.queries.values import literal_of

AGE, VISITS, PRICE, BMI, DIAGNOSIS, TOWN, BORN, DATE, SEEN, SMOKER = SCHEMA.values()
EQ, NE, LT, LE, GT, GE = Operator
FLU = Compare(DIAGNOSIS, EQ, "flu")
OLD = Compare(AGE, GT, 65)
SMOKES = Compare(SMOKER, EQ, True)

ACCEPTED = [
    # Operators and literals.
    ("age = 65", Compare(AGE, EQ, 65)),
    ("age == 65", Compare(AGE, EQ, 65)),
    ("age <> 65", Compare(AGE, NE, 65)),
    ("age != 65", Compare(AGE, NE, 65)),
    ("age<65", Compare(AGE, LT, 65)),
    ("age <= 65", Compare(AGE, LE, 65)),
    ("age>65", OLD),
    ("age >= 65", Compare(AGE, GE, 65)),
    ("age >-1", Compare(AGE, GT, -1)),
    ("age > - 1", Compare(AGE, GT, -1)),
    ("age > +1", Compare(AGE, GT, 1)),
    ("age = 6.5e1", Compare(AGE, EQ, 65)),
    ("age = 65.", Compare(AGE, EQ, 65)),
    ("age = 0e999999999999", Compare(AGE, EQ, 0)),
    ("price = 1.5", Compare(PRICE, EQ, 150)),
    ("price > -0.01", Compare(PRICE, GT, -1)),
    ("visits = 9223372036854775807", Compare(VISITS, EQ, 2**63 - 1)),
    ("visits = 9007199254740993", Compare(VISITS, EQ, 2**53 + 1)),
    ("bmi = 1", Compare(BMI, EQ, 1.0)),
    ("bmi > 1e300", Compare(BMI, GT, 1e300)),
    ("bmi > -0.0", Compare(BMI, GT, 0.0)),
    ("bmi = 0.1000000000000000000000000000000000000000000001", Compare(BMI, EQ, 0.1)),
    ("diagnosis = 'it''s'", Compare(DIAGNOSIS, EQ, "it's")),
    ("diagnosis = ''", Compare(DIAGNOSIS, EQ, "")),
    ("diagnosis >= '-- /* ; \" \\n é'", Compare(DIAGNOSIS, GE, '-- /* ; " \\n é')),
    ("diagnosis = 'two\nlines'", Compare(DIAGNOSIS, EQ, "two\nlines")),
    ("born >= '2024-02-29'", Compare(BORN, GE, dt.date(2024, 2, 29))),
    ("born = '0001-01-01'", Compare(BORN, EQ, dt.date(1, 1, 1))),
    ("seen < '2024-01-31'", Compare(SEEN, LT, dt.datetime(2024, 1, 31))),
    ("seen < '2024-01-31 08:30'", Compare(SEEN, LT, dt.datetime(2024, 1, 31, 8, 30))),
    ("seen < '2024-01-31T08:30:15'", Compare(SEEN, LT, dt.datetime(2024, 1, 31, 8, 30, 15))),
    ("seen < '2024-01-31 08:30:15.25'", Compare(SEEN, LT, dt.datetime(2024, 1, 31, 8, 30, 15, 250000))),
    ("smoker = TRUE", SMOKES),
    ("smoker <> false", Compare(SMOKER, NE, False)),
    # Names.
    ("AGE > 65", OLD),
    ('"age" > 65', OLD),
    ('"Age" > 65', OLD),
    ("\"home town\" = 'Kent'", Compare(TOWN, EQ, "Kent")),
    ("date = '2024-01-31'", Compare(DATE, EQ, dt.date(2024, 1, 31))),
    # Lists, ranges, patterns, missing values.
    ("age IN (1, -2)", OneOf(AGE, (1, -2))),
    ("age NOT IN (1, 2, 1)", Not(OneOf(AGE, (1, 2)))),
    ("NOT age IN (1)", Not(OneOf(AGE, (1,)))),
    ("diagnosis IN ('flu', '')", OneOf(DIAGNOSIS, ("flu", ""))),
    ("smoker IN (TRUE, FALSE)", OneOf(SMOKER, (True, False))),
    ("age BETWEEN 18 AND 65", All((Compare(AGE, GE, 18), Compare(AGE, LE, 65)))),
    ("age NOT BETWEEN 18 AND 65", Not(All((Compare(AGE, GE, 18), Compare(AGE, LE, 65))))),
    ("age BETWEEN 18 AND 65 AND age > 65", All((All((Compare(AGE, GE, 18), Compare(AGE, LE, 65))), OLD))),
    ("diagnosis LIKE 'f%_'", Like(DIAGNOSIS, "f%_")),
    ("diagnosis NOT LIKE '\\%'", Not(Like(DIAGNOSIS, "\\%"))),
    ("age IS NULL", Missing(AGE)),
    ("age IS NOT NULL", Not(Missing(AGE))),
    # Logic.
    ("age > 65 AND diagnosis = 'flu' OR smoker = TRUE", Any((All((OLD, FLU)), SMOKES))),
    ("age > 65 AND (diagnosis = 'flu' OR smoker = TRUE)", All((OLD, Any((FLU, SMOKES))))),
    ("NOT age > 65 AND diagnosis = 'flu'", All((Not(OLD), FLU))),
    ("NOT (age > 65 AND diagnosis = 'flu')", Not(All((OLD, FLU)))),
    ("NOT NOT age > 65", Not(Not(OLD))),
    ("((age > 65))", OLD),
    ("age > 65 or age > 65\n\tOr age > 65", Any((OLD, OLD, OLD))),
    ("(age > 65 AND age > 65) AND age > 65", All((All((OLD, OLD)), OLD))),
    # What whole numbers, and numbers with two digits, make of other literals.
    ("age < 1.5", Compare(AGE, LE, 1)),
    ("age <= 1.5", Compare(AGE, LE, 1)),
    ("age > 1.5", Compare(AGE, GE, 2)),
    ("age >= 1.5", Compare(AGE, GE, 2)),
    ("age < -1.5", Compare(AGE, LE, -2)),
    ("age > -1.5", Compare(AGE, GE, -1)),
    ("price < 0.005", Compare(PRICE, LE, 0)),
    ("price > 0.005", Compare(PRICE, GE, 1)),
    ("age > 1e-300", Compare(AGE, GE, 1)),
    ("age = 1.5", Settled(AGE, False, "age = 1.5")),
    ("age <> 1.5", Settled(AGE, True, "age <> 1.5")),
    ("age = 128", Settled(AGE, False, "age = 128")),
    ("age != - 129", Settled(AGE, True, "age <> -129")),
    ("age < 128", Settled(AGE, True, "age < 128")),
    ("age > 127.5", Settled(AGE, False, "age > 127.5")),
    ("age < 127.5", Compare(AGE, LE, 127)),
    ("age > -128.5", Compare(AGE, GE, -128)),
    ("age >= -129", Settled(AGE, True, "age >= -129")),
    ("age < -128.5", Settled(AGE, False, "age < -128.5")),
    ("age IN (1.5, 2, 300)", OneOf(AGE, (2,))),
    ("AGE NOT IN (1.5, 300)", Not(Settled(AGE, False, "age IN (1.5, 300)"))),
    ("age BETWEEN 64.5 AND 300", All((Compare(AGE, GE, 65), Settled(AGE, True, "age <= 300")))),
]


@pytest.mark.parametrize(("text", "tree"), ACCEPTED, ids=[str(number) for number in range(len(ACCEPTED))])
def test_a_text_and_its_tree(text, tree):
    found = parse(text, SCHEMA)
    assert repr(found) == repr(tree)
    check(found)
    assert repr(parse(str(found), SCHEMA)) == repr(tree)


def test_the_text_of_a_tree():
    assert (
        str(parse("not (age not in (70) and age is not null or diagnosis not like 'x') and not age=1", SCHEMA))
        == "NOT ((age NOT IN (70) AND age IS NOT NULL) OR diagnosis NOT LIKE 'x') AND NOT age = 1"
    )
    assert (
        str(parse("\"home town\" between 'a' and 'b'", SCHEMA)) == "\"Home Town\" >= 'a' AND \"Home Town\" <= 'b'"
    )


# Any tree.

NAMES = [
    "age",
    "select",
    "and",
    "Home Town",
    'a"b',
    "é",
    "x.y",
    "date",
    "",
    "1st",
    "a'b",
    "--",
    "show",
    "if",
    "null",
]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
VALUES = {
    Kind.TEXT: TEXT,
    Kind.DATE: st.dates(),
    Kind.TIME: st.datetimes().map(lambda time: time.replace(fold=0)),
    Kind.BOOLEAN: st.booleans(),
}
NUMBERS = st.decimals(-(10**6), 10**6, places=3).map(lambda number: f"{number:f}")


@st.composite
def columns(draw):
    kind, exact = draw(st.sampled_from(Kind)), None
    if kind is Kind.NUMBER:
        exact = draw(
            st.one_of(st.none(), st.builds(Exact, st.integers(0, 4), st.just(-(2**31)), st.just(2**31 - 1)))
        )
    return Column(draw(st.sampled_from(NAMES)), kind, exact)


@st.composite
def leaves(draw, column):
    if draw(st.integers(0, 5)) == 0:
        return Missing(column)
    if column.kind is Kind.TEXT and draw(st.booleans()):
        return Like(column, draw(TEXT))
    many = draw(st.booleans())
    if column.exact:
        numbers = draw(st.lists(NUMBERS, min_size=1, max_size=4))
        literals = [literal_of(column, Part.NUMBER, number) for number in numbers]
        if many:
            return one_of(column, literals)
        return compare(column, draw(st.sampled_from(Operator)), literals[0])
    floats = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: number + 0.0)
    values = draw(st.lists(VALUES.get(column.kind, floats), min_size=1, max_size=4, unique=True))
    if many:
        return OneOf(column, tuple(values))
    operators = [EQ, NE] if column.kind is Kind.BOOLEAN else list(Operator)
    return Compare(column, draw(st.sampled_from(operators)), values[0])


@st.composite
def trees(draw, schema, depth):
    shape = draw(st.integers(0, 3)) if depth else 0
    if shape == 0:
        return draw(leaves(draw(st.sampled_from(list(schema.values())))))
    if shape == 1:
        return Not(draw(trees(schema, depth - 1)))
    parts = draw(st.lists(trees(schema, depth - 1), min_size=2, max_size=3))
    return (All if shape == 2 else Any)(tuple(parts))


@given(st.data())
def test_the_text_of_any_tree_is_read_as_that_tree(data):
    schema = {column.name: column for column in data.draw(st.lists(columns(), min_size=1, max_size=4))}
    tree = data.draw(trees(schema, 4))
    assert repr(parse(str(tree), schema)) == repr(tree)


@given(NUMBERS, st.sampled_from(Operator), st.integers(0, 3), st.integers(-50, 50))
def test_comparisons_off_the_grid_are_decided_exactly(number, operator, scale, near):
    column = Column("x", Kind.NUMBER, Exact(scale, -(10**7), 10**7))
    literal = Fraction(number) * 10**scale
    units = max(-(10**7), min(10**7, round(literal) + near))
    expected = {EQ: units == literal, NE: units != literal, LT: units < literal}
    expected |= {LE: units <= literal, GT: units > literal, GE: units >= literal}
    match parse(f"x {operator} {number}", {"x": column}):
        case Settled(_, holds, _):
            assert holds == expected[operator]
        case Compare(_, found, value):
            assert column.exact.low <= value <= column.exact.high
            compared = {EQ: units == value, NE: units != value, LT: units < value}
            compared |= {LE: units <= value, GT: units > value, GE: units >= value}
            assert compared[found] == expected[operator]


def test_any_word_of_sql_can_name_a_column():
    with duckdb.connect() as connection:
        words = [word for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()]
    assert len(words) > 200
    for word in words:
        schema = {word: Column(word, Kind.NUMBER, Exact(0, 0, 9)), "x": Column("x", Kind.TEXT)}
        column = schema[word]
        tree = All(
            (Compare(column, EQ, 1), Not(OneOf(column, (1, 2))), Compare(schema["x"], EQ, "a"), Missing(column))
        )
        assert parse(str(tree), schema) == tree, word
        assert parse(str(tree).upper().replace("'A'", "'a'"), schema) == tree, word
        assert parse(str(tree).replace(quoted(word), f'"{word}"'), schema) == tree, word


# Limits.


def test_long_chains_are_flat():
    for word, joined in (("OR", Any), ("AND", All)):
        text = f" {word} ".join(["age = 1", "age = 2"] * 350)
        assert parse(text, SCHEMA) == joined((Compare(AGE, EQ, 1), Compare(AGE, EQ, 2)) * 350)
    assert len(parse(" OR ".join(["age=1 AND NOT age=2"] * 400), SCHEMA).parts) == 400
    assert len(parse("OR".join(["(age=1)"] * 1000), SCHEMA).parts) == 1000


@pytest.mark.parametrize(
    ("before", "after", "levels"),
    [
        ("(", ")", 1),
        ("NOT ", "", 1),
        ("NOT (", ")", 2),
        ("(age = 1 AND ", ")", 1),
        ("(smoker = TRUE OR NOT ", ")", 2),
    ],
    ids=["parentheses", "not", "both", "and", "or-not"],
)
def test_nesting(before, after, levels):
    most = DEEPEST // levels
    tree = parse(before * most + "age = 1" + after * most, SCHEMA)
    assert repr(parse(str(tree), SCHEMA)) == repr(tree)
    for deep in (most + 1, 45, (LONGEST - 7) // len(before + after)):
        with pytest.raises(InvalidQuestion, match="nested more than 20 deep") as refusal:
            parse(before * deep + "age = 1" + after * deep, SCHEMA)
        assert refusal.value.position >= most * len(before)


def test_what_is_written_out_counts_as_nested():
    for inner in ("age BETWEEN 1 AND 2", "age NOT BETWEEN 1 AND 2"):
        deepest = max(deep for deep in range(DEEPEST + 1) if parses("(age = 1 OR " * deep + inner + ")" * deep))
        tree = parse("(age = 1 OR " * deepest + inner + ")" * deepest, SCHEMA)
        assert deepest >= DEEPEST - 2
        assert repr(parse(str(tree), SCHEMA)) == repr(tree)


def parses(text):
    try:
        parse(text, SCHEMA)
    except InvalidQuestion:
        return False
    return True


def test_a_deep_stack_is_refused_and_does_not_break():
    def under(frames):
        return under(frames - 1) if frames else parse("(" * DEEPEST + "age = 1" + ")" * DEEPEST, SCHEMA)

    parse("age = 1", SCHEMA)
    with pytest.raises(InvalidQuestion, match="nested too deep for the calls that led here") as refusal:
        under(sys.getrecursionlimit() - 100)
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


def test_the_longest_list_and_text():
    listed = ",".join(str(number) for number in range(LONGEST_LIST))
    assert len(parse(f"visits IN ({listed})", SCHEMA).values) == LONGEST_LIST
    with pytest.raises(InvalidQuestion, match="more than 1,000 literals"):
        parse(f"visits IN ({listed},0)", SCHEMA)
    text = text_literal("x" * (LONGEST - len("diagnosis = ''")))
    parse(f"diagnosis = {text}", SCHEMA)
    with pytest.raises(
        InvalidParameter, match=r"where is .*…; it must be at most 10,000 characters long, not 10,001"
    ):
        parse(f"diagnosis =  {text}", SCHEMA)


@pytest.mark.parametrize("text", ["", " ", "\n\t \u00a0"], ids=["empty", "space", "spaces"])
def test_no_text(text):
    with pytest.raises(InvalidParameter, match="or None for all rows") as refusal:
        parse(text, SCHEMA)
    assert refusal.value.name == "where"
    assert refusal.value.value is text


@pytest.mark.parametrize(
    "text", [None, 5, b"age > 65", ["age > 65"], True], ids=["none", "5", "bytes", "list", "true"]
)
def test_what_is_no_text(text):
    with pytest.raises(InvalidParameter, match='it must be a text such as "age > 65') as refusal:
        parse(text, SCHEMA)
    assert refusal.value.name == "where"
