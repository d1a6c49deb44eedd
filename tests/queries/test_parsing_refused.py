"""Texts that are no predicates: each error points at the place and says what to write instead.

In the tables ¦ marks the place.
"""

import pytest
from tests.queries.patients import SCHEMA

from targetcharge.errors import InvalidParameter, InvalidQuestion
from targetcharge.queries.parser import parse
from targetcharge.queries.tree import Column, Kind


def is_text(name, kind, instead):
    """Return what is said of a column of text that is compared with something else: types come first."""
    types = {name.strip('"'): kind}
    declare = f"if it holds {kind}s, open the table with types={types}"
    return f"{name} is text: {declare}; to compare it as text, write {instead}"


REFUSED = {
    "names": [
        ("¦ages > 65", "there is no column ages; did you mean age? The columns are age (number), visits (number)"),
        ("¦diagnosos = 'flu'", "did you mean diagnosis?"),
        ("¦hometown = 'x'", 'did you mean "Home Town"?'),
        ("¦zzz = 1", "there is no column zzz. The columns are age (number)"),
        ('age > 1 AND ¦"zzz" = 1', 'there is no column "zzz". The columns are'),
        ("diagnosis = ¦flu", "there is no column flu; a text goes in single quotes: 'flu'"),
        ('diagnosis = ¦"flu"', "a text goes in single quotes: 'flu'"),
        ("diagnosis IN ('cold', ¦flu)", "a text goes in single quotes: 'flu'"),
        ("¦patients.age = 1", "write the column's name alone, without the table's"),
        ("age¦.x = 1", "write the column's name alone"),
        ("¦ａｇｅ = 1", "there is no column ａｇｅ"),
        ("age = 1 ¦ANDD smoker = TRUE", "here should be AND, OR or the end, not ANDD"),
        ("age ¦equals 1", "here should be an operator (= <> < <= > >=), IN, BETWEEN, LIKE or IS NULL, not equals"),
        ("¦ıs = 1", "there is no column ıs"),
        (f"¦{'x' * 100} = 1", f"there is no column {'x' * 39}…. The columns"),
    ],
    "bare": [
        ("¦smoker", "smoker alone is not a comparison: write smoker = TRUE"),
        ("¦smoker AND age > 65", "write smoker = TRUE"),
        ("NOT ¦smoker", "write smoker = TRUE"),
        ("(¦age)", "age alone is not a comparison: write age > 65"),
        ("(¦age) = 1", "write age > 65"),
        ("¦diagnosis", "write diagnosis = 'flu'"),
        ("¦born OR age = 1", "write born >= '2024-01-31'"),
        ('¦"home town"', '"Home Town" alone is not a comparison: write "Home Town" = \'flu\''),
        ("¦TRUE", "write the column first and the literal after the operator, as in age > 65"),
        ("¦1", "write the column first"),
        ("¦'x'", "write the column first"),
        ("¦65 < age", "write the column first"),
        ("NOT ¦-1 < age", "write the column first"),
        ("age = 1 AND ¦'flu' = diagnosis", "write the column first"),
    ],
    "comparisons": [
        ("age = ¦age", "a column is compared with a literal, not with a column"),
        ("age IN (1, ¦visits)", "not with a column"),
        ("age BETWEEN ¦visits AND 1", "not with a column"),
        ("age BETWEEN 1 AND ¦visits", "not with a column"),
        ("diagnosis LIKE ¦diagnosis", "here should be a pattern in single quotes, not a column"),
        ("age = ¦NULL", "nothing is equal to NULL: write IS NULL or IS NOT NULL"),
        ("age <> ¦null", "write IS NULL"),
        ("age IN (¦NULL)", "a list cannot hold NULL"),
        ("age IN (1, ¦NULL)", "a list cannot hold NULL"),
        ("smoker IS ¦TRUE", "write = TRUE or = FALSE instead"),
        ("smoker IS NOT ¦FALSE", "write = TRUE or = FALSE"),
        ("age IS ¦5", "here should be NULL or NOT NULL, not a number"),
        ("age IS NOT ¦5", "here should be NULL, not a number"),
        ("age IS ¦DISTINCT FROM 1", "there is no IS DISTINCT FROM"),
        ("age NOT ¦NULL", "write IS NOT NULL"),
        ("age ¦ISNULL", "write IS NULL"),
        ("age ¦NOTNULL", "write IS NOT NULL"),
        ("age NOT ¦= 1", "here should be IN, BETWEEN or LIKE"),
        ("age < 1 ¦< 2", "comparisons are not chained"),
        ("age = 1 ¦= TRUE", "comparisons are not chained"),
        ("(age = 1) ¦= TRUE", "comparisons are not chained"),
        ("age = 1 ¦IS NULL", "here should be AND, OR or the end, not IS"),
        ("age ¦<=> 1", "write = and IS NULL"),
        ("age < ¦> 1", "two operators side by side"),
        ("age = ¦(1)", "write the literal without parentheses"),
        ("age IN ((1))".replace("((", "(¦("), "without further parentheses"),
        ("diagnosis LIKE ¦('x')", "here should be a pattern in single quotes, not an opening parenthesis"),
        ("age IN (¦)", "the list is empty"),
        ("age IN (1,¦)", "a literal is missing after the comma"),
        ("age IN (¦,1)", "here should be a literal"),
        ("age IN ¦1", "here should be a list of literals in parentheses"),
        ("age IN ¦visits", "here should be a list of literals in parentheses"),
        ("age IN (1 ¦AND 2)", "a list holds literals, with commas between them"),
        ("age = 1¦, 2", "a comma goes between the literals of an IN list only"),
        ("age BETWEEN 1¦", "BETWEEN needs two literals: write BETWEEN 18 AND 65"),
        ("age BETWEEN 1 ¦OR age = 2", "BETWEEN needs two literals"),
        ("(age BETWEEN 1¦)", "BETWEEN needs two literals"),
        ("age BETWEEN ¦SYMMETRIC 1 AND 2", "write BETWEEN with the smaller literal first"),
        ("diagnosis ¦ILIKE 'x'", "there is only LIKE, with % and _"),
        ("diagnosis NOT ¦ILIKE 'x'", "there is only LIKE"),
        ("diagnosis ¦SIMILAR TO 'x'", "there is only LIKE"),
        ("diagnosis ¦GLOB 'x'", "there is only LIKE"),
        ("diagnosis ¦~ 'x'", "there is only LIKE"),
        ("diagnosis ¦~~ 'x'", "there is only LIKE"),
        ("diagnosis LIKE 'x' ¦ESCAPE '\\'", "there is no ESCAPE"),
        ("diagnosis LIKE ¦ANY ('x')", "write a list with IN"),
        ("diagnosis ¦COLLATE nocase = 'x'", "there is no COLLATE"),
        ("diagnosis = 'x' ¦COLLATE nocase", "there is no COLLATE"),
    ],
    "logic": [
        ("age = 1 AND¦", "the text ends where there should be a column, NOT or an opening parenthesis"),
        ("NOT¦", "the text ends where"),
        (
            "age =¦",
            "the text ends where there should be a literal: a number, a text in single quotes, TRUE or FALSE",
        ),
        ("age IS¦", "the text ends where there should be NULL or NOT NULL"),
        ("¦AND age = 1", "here should be a column, NOT or an opening parenthesis, not AND or OR"),
        ("age = 1 AND ¦OR age = 2", "not AND or OR"),
        ("age = 1 ¦age = 2", "here should be AND, OR or the end, not a column"),
        ("(age = 1) ¦(age = 2)", "here should be AND, OR or the end"),
        ("¦(age = 1", "this parenthesis is not closed"),
        ("¦(age = 1 AND (age = 2)", "this parenthesis is not closed"),
        ("age IN ¦(1, 2", "this parenthesis is not closed"),
        ("age = 1¦)", "this parenthesis closes nothing"),
        ("(¦)", "here should be a column"),
        ("age = 1 ¦XOR age = 2", "there is no XOR"),
        ("age = 1 ¦&& age = 2", "write AND"),
        ("age = 1 ¦|| age = 2", "there is no arithmetic"),
        ("¦! age = 1", "write NOT"),
    ],
    "more than a predicate": [
        ("¦length(diagnosis) > 3", "there are no functions: length(…) cannot be asked"),
        ("¦read_csv('/etc/passwd')", "there are no functions"),
        ("age = ¦abs(1)", "there are no functions"),
        ("age¦(1)", "there are no functions"),
        ("¦CAST(age AS INT) = 1", "there are no functions"),
        ("seen > ¦now()", "there are no functions"),
        ("age¦::int = 1", "there are no casts"),
        ("diagnosis = '1'¦::int", "there are no casts"),
        ("born = ¦DATE '2024-01-31'", "write dates and times as plain text, such as '2024-01-31'"),
        ("date = ¦date '2024-01-31'", "write dates and times as plain text"),
        ("seen = ¦TIMESTAMP '2024-01-31'", "write dates and times as plain text"),
        ("born > ¦INTERVAL 1 DAY", "there is no arithmetic"),
        ("born > '2024-01-31' ¦- INTERVAL 1 DAY", "there is no arithmetic"),
        ("age ¦+ 1 = 2", "there is no arithmetic"),
        ("age = 1 ¦- 1", "there is no arithmetic"),
        ("age ¦* 2 = 2", "there is no arithmetic"),
        ("age ¦% 2 = 0", "there is no arithmetic"),
        ("age = - ¦- 1", "here should be a number, not a sign"),
        ("age = -¦'1'", "here should be a number, not a text"),
        ("age IN (¦SELECT 1)", "there are no subqueries"),
        ("age = ¦(SELECT 1)", "there are no subqueries"),
        ("¦EXISTS (SELECT 1)", "there are no subqueries"),
        ("¦SELECT * FROM patients", "there are no subqueries"),
        ("age = ¦ANY (1)", "write a list with IN"),
        ("¦CASE WHEN age = 1 THEN TRUE END", "there is no CASE"),
        ("age = 1¦;", "there are no statements and no semicolons"),
        ("age = 1¦; DROP TABLE patients", "no semicolons"),
        ("age = 1 ¦-- comment", "there are no comments"),
        ("age = ¦--1", "there are no comments"),
        ("¦/* comment */ age = 1", "there are no comments"),
        ("age ¦/* comment */ = 1", "there are no comments"),
        ("age = 1 ¦/* comment", "there are no comments"),
        ("¦-- comment", "there are no comments"),
        ("age = 1 ¦AS x", "there are no aliases"),
        ("age = 1 ¦x", "here should be AND, OR or the end, not x"),
        ("age = ¦$1", "placeholders are not filled in"),
        ("age = ¦?", "placeholders are not filled in"),
        ("age = ¦:x", "placeholders are not filled in"),
        ("age = ¦@x", "placeholders are not filled in"),
        ("age = ¦{x}", "write a list with IN and parentheses"),
        ("age = ¦[1]", "write a list with IN and parentheses"),
        ("age¦[1] = 1", "write a list with IN and parentheses"),
        ("age ¦-> 'x' = 1", "-> has no meaning in a predicate"),
        ("¦`age` = 1", "write a column's name in double quotes"),
        ("¦current_date > '2024-01-31'", "there is no column current_date"),
        ("¦*", "there is no arithmetic"),
        ("age = 1 ¦\\", "\\ has no meaning in a predicate"),
    ],
    "texts": [
        ("diagnosis = 'a' ¦'b'", "two texts side by side: write them as one"),
        ("diagnosis = ¦e'a'", "write text in single quotes, with nothing before them"),
        ("diagnosis = ¦E'\\x'", "with nothing before them"),
        ("diagnosis = ¦x'00'", "with nothing before them"),
        ("diagnosis = ¦n'a'", "with nothing before them"),
        ("diagnosis = ¦$$a$$", "with nothing before them"),
        ("diagnosis = ¦$x$a$x$", "with nothing before them"),
        ("diagnosis = ¦'a", "the quote ' is not closed"),
        ("diagnosis = 'it's¦'", "the quote ' is not closed"),
        ('¦"age = 1', 'the quote " is not closed'),
        ("diagnosis = '\u00e9¦\0'", "this character cannot be part of a text"),
        ("diagnosis = '¦\ud800'", "this character cannot be part of a text"),
        (
            "diagnosis = ¦65",
            is_text("diagnosis", "number", "'65', not 65"),
        ),
        (
            "diagnosis = -¦6.5",
            is_text("diagnosis", "number", "'-6.5', not -6.5"),
        ),
        (
            "diagnosis = ¦TRUE",
            is_text("diagnosis", "boolean", "it in single quotes, such as 'flu', not TRUE"),
        ),
        (
            "\"home town\" IN ('x', ¦3)",
            is_text('"Home Town"', "number", "'3', not 3"),
        ),
    ],
    "numbers": [
        ("age > ¦'65'", "age is a number: write 65, not '65'"),
        ("bmi > ¦'-6.5e1'", "bmi is a number: write -6.5e1, not '-6.5e1'"),
        ("age > ¦'old'", "age is a number: write one without quotes, such as 65"),
        ("age = ¦TRUE", "age is a number"),
        ("¦age LIKE '6%'", "age is a number, and LIKE compares texts: write = or <>"),
        ("age = ¦NaN", "NaN counts as missing: write IS NULL"),
        ("bmi = ¦Infinity", "there is no literal for it"),
        ("bmi = -¦inf", "there is no literal for it"),
        ("age = ¦0x1F", "write numbers in decimal digits, such as 1000, -0.5 or 1e6"),
        ("age = ¦1_000", "write numbers in decimal digits"),
        ("age = ¦10kg", "write numbers in decimal digits"),
        ("age = ¦1e", "write numbers in decimal digits"),
        ("age = ¦.5", "write 0 before the point"),
        ("age = ¦1e400", "this number is beyond the range of numbers"),
        ("bmi = ¦1e400", "this number is beyond the range of numbers"),
        ("bmi = -¦1e400", "this number is beyond the range of numbers"),
        ("bmi = ¦1e99999999999999999999", "beyond the range"),
        ("bmi = ¦1e-400", "this number is too small to tell from 0: write 0"),
        ("age = ¦1e-99999999999999999999", "this number is too small"),
        ("age = ¦9223372036854775808", "this number is too large: write one between -9223372036854775808 and"),
        ("visits < -¦9223372036854775808", "this number is too large"),
        ("visits IN (1, ¦1e300)", "this number is too large"),
        ("age = ¦1.00000000000000000000000000000000000001", "this number has more than 38 digits"),
    ],
    "dates, times, booleans": [
        ("born = ¦'2024-1-31'", "born is a date: write one as text in the form '2024-01-31'"),
        ("born = ¦'20240131'", "born is a date"),
        ("born = ¦'2024-W05-3'", "born is a date"),
        ("born = ¦'2024-01-31 08:00'", "born is a date"),
        ("born = ¦'31.01.2024'", "born is a date"),
        ("born = ¦'٢٠٢٤-01-31'", "born is a date"),
        ("born = ¦20240131", "born is a date"),
        ("born = ¦'2023-02-29'", "the calendar has no such day"),
        ("born = ¦'0000-01-01'", "the calendar has no such day"),
        ("seen = ¦'2024-02-30 08:00'", "the calendar has no such day"),
        (
            "seen = ¦'2024-01-31 8:00'",
            "seen is a time: write one as text in the form '2024-01-31 08:00:00' or '2024-01-31'",
        ),
        ("seen = ¦'2024-01-31 24:00'", "seen is a time"),
        ("seen = ¦'2024-01-31 08:00:60'", "seen is a time"),
        ("seen = ¦'2024-01-31 08:00Z'", "without a zone"),
        ("seen = ¦'2024-01-31 08:00+01:00'", "without a zone"),
        ("seen = ¦'2024-01-31 08:00:00.1234567'", "seen is a time"),
        ("seen = ¦TRUE", "seen is a time"),
        ("smoker = ¦1", "smoker is a boolean: write TRUE or FALSE, without quotes"),
        ("smoker = ¦'TRUE'", "smoker is a boolean"),
        ("smoker = ¦yes", "there is no column yes"),
        ("¦smoker > TRUE", "smoker is a boolean: compare it with = or <>"),
        ("¦smoker BETWEEN FALSE AND TRUE", "smoker is a boolean: compare it with = or <>"),
        ("¦smoker LIKE 'T%'", "smoker is a boolean, and LIKE compares texts"),
    ],
}
CASES = [
    pytest.param(text, problem, id=f"{topic}-{number}")
    for topic, texts in REFUSED.items()
    for number, (text, problem) in enumerate(texts)
]


@pytest.mark.parametrize(("text", "problem"), CASES)
def test_refused_with_the_place_and_the_remedy(text, problem):
    position = text.index("¦")
    text = text.replace("¦", "")
    with pytest.raises(InvalidQuestion) as refusal:
        parse(text, SCHEMA)
    error = refusal.value
    assert problem in error.problem
    assert error.position == position
    assert (error.name, error.value, error.text) == ("where", text, text)
    assert str(error).startswith(f"where, character {position + 1}: {error.problem}\n")
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_columns_that_differ_in_capitals():
    schema = {name: Column(name, Kind.BOOLEAN) for name in ("A", "a")}
    assert str(parse("a = TRUE AND A = TRUE", schema)) == "a = TRUE AND A = TRUE"
    schema = {name: Column(name, Kind.BOOLEAN) for name in ("Ab", "aB")}
    with pytest.raises(InvalidQuestion, match="more than one column is spelled like this: write Ab or aB exactly"):
        parse("ab = TRUE", schema)


def test_a_table_without_columns():
    with pytest.raises(InvalidQuestion, match="the table has none that may be asked about"):
        parse("age = 1", {})


def message(text, **columns):
    with pytest.raises(InvalidQuestion) as refusal:
        parse(text, {name: Column(name, kind) for name, kind in columns.items()})
    return str(refusal.value)


def test_whole_messages():
    assert (
        message("ages > 65 AND diagnosis = 'flu'", age=Kind.NUMBER, diagnosis=Kind.TEXT)
        == """\
where, character 1: there is no column ages; did you mean age? The columns are age (number), diagnosis (text)
    ages > 65 AND diagnosis = 'flu'
    ^"""
    )
    assert (
        message("age > '65'", age=Kind.NUMBER)
        == """\
where, character 7: age is a number: write 65, not '65'
    age > '65'
          ^"""
    )
    assert (
        message("age > 65\n  AND\tsmoker", age=Kind.NUMBER, smoker=Kind.BOOLEAN)
        == """\
where, line 2, character 7: smoker alone is not a comparison: write smoker = TRUE
      AND smoker
          ^"""
    )
    assert (
        message("age > 65 AND", age=Kind.NUMBER)
        == """\
where, character 13: the text ends where there should be a column, NOT or an opening parenthesis
    age > 65 AND
                ^"""
    )


def test_messages_of_long_and_odd_texts():
    place = message("age = 1 AND " * 50 + "year = 2", age=Kind.NUMBER).split("\n")
    assert place[1][place[2].index("^") :].startswith("year = 2")
    assert max(map(len, place)) < 150
    odd = message("\x1b[31mage\x07 = \u202e1", age=Kind.NUMBER)
    assert all(line.isprintable() for line in odd.split("\n"))
    first, line, caret = odd.split("\n")
    assert first == "where, character 1: there is no column  . The columns are age (number)"
    assert line[caret.index("^") :] == " [31mage  =  1"


# Every other form of SQL, with names that the table has.


NOT_LISTED = [
    '"age"', "1", "'x'", "TRUE", "NULL", '"age" = "age"', '1 = "age"', '"age" = NULL', '"age" = (1)',
    '("age") = 1', '"age" = 1 + 1', '- "age" = 1', '"age" = - - 1', "\"age\" = - '1'", '"age" + 1 = 2',
    '"age" = 1 = 2', "f(1)", '"f"(1)', '"t"."age" = 1', '"age"::INT = 1', '"age" = $1', '"age" = ?',
    '"age" = :x', '"age" IN (SELECT 1)', '"age" IN ()', '"age" IN 1', '"age" IN "age"', '"age" IN ((1))',
    '"age" IN (1 AND 2)', '"age" IN (NULL)', '"age" IS TRUE', '"age" IS NOT TRUE', '"age" IS DISTINCT FROM 1',
    '"age" BETWEEN SYMMETRIC 1 AND 2', '"age" BETWEEN "age" AND 1', "\"diagnosis\" LIKE 'x' ESCAPE 'y'",
    "\"diagnosis\" LIKE ANY ('x')", '"diagnosis" LIKE "diagnosis"', '"diagnosis" LIKE 1',
    "\"diagnosis\" ILIKE 'x'", "\"diagnosis\" ~ 'x'", "\"diagnosis\" = 'a' 'b'", "\"diagnosis\" = e'a'",
    "\"diagnosis\" = n'a'", '"diagnosis" = $$a$$', "\"diagnosis\" = 'a' COLLATE nocase", '"age" = 1 AS "x"',
    '"age" = 1 "x"', '"age" = 1, 2', '("age" = 1, 2)', '"age" = 1; SELECT 1', "SELECT 1", "", ";", "*",
    '"zzz" = 1', "zzz = 1", '"age"[1] = 1', '[1] = "age"', "{'a': 1} = 1", '"age" -> 1',
    "CASE WHEN TRUE THEN TRUE END", "EXISTS (SELECT 1)", "\"born\" = DATE '2024-01-31'", "CURRENT_DATE = 1",
    '"age" = @1', '"age" = #1', '"age" = ANY (1)', '"age" =', "(", '("age" = 1', "NOT", 'NOT "age"',
    '"age" = 1 AND', "FROM x", "COPY x",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_LISTED, ids=[str(number) for number in range(len(NOT_LISTED))])
def test_other_forms_of_sql_are_refused(text):
    with pytest.raises(InvalidParameter):
        parse(text, SCHEMA)
