"""What codes and terms say of predicates, against the truth of every row."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.engines.asking import predicates
from tests.engines.naive import truth, value_of
from tests.engines.rows import ALL, tables
from tests.engines.sources import SOURCES
from tests.sizes import size

from targetcharge.engines.coding import MOST_TERMS, Constants, constants_of, has_pattern, terms
from targetcharge.queries.tree import All, Any, Column, Compare, Exact, Kind, Like, Missing, Not, OneOf, Operator

A, B, C = (Column(name, Kind.NUMBER, Exact(0, 0, 255)) for name in "abc")
TEXT = Column("name", Kind.TEXT)


def code_of(value, constants):
    """Return the code of a value, from what a code is."""
    if value is None:
        return 0
    below = sum(constant <= value for constant in constants)
    return 2 * below if value in constants else 2 * below + 1


@settings(max_examples=size(100, 1000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_one_term_is_true_exactly_where_the_predicate_is(data):
    naive = SOURCES["duckdb-file"].naive(data.draw(tables(ALL), label="table"), None)
    for where in data.draw(predicates(naive, 6)):
        split = terms(where)
        if split is None:
            continue
        assert 1 <= len(split) <= MOST_TERMS
        for row in naive.rows:
            parts = [[truth(part, row) is True for part in term.values()] for term in split]
            assert any(map(all, parts)) is (truth(where, row) is True)


@settings(max_examples=size(100, 1000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_true_of_a_value_is_known_from_its_code(data):
    naive = SOURCES["duckdb-file"].naive(data.draw(tables(ALL), label="table"), None)
    split = [term for where in data.draw(predicates(naive, 6)) for term in terms(where) or ()]
    for name, column in naive.schema.items():
        parts = [term[name] for term in split if name in term and not has_pattern(term[name])]
        constants = Constants.of(parts)
        ascending = list(constants.codes)
        assert ascending == sorted({value for part in parts for value in constants_of(part)})
        for part in parts:
            answers = constants.true_of(part)
            assert len(answers) == constants.most + 1 == 2 * len(ascending) + 2
            for row in naive.rows:
                code = code_of(value_of(row, column), ascending)
                assert answers[code] == (truth(part, row) is True)


def conjunction(value):
    return All((Compare(A, Operator.EQ, value), Compare(B, Operator.LT, value)))


def test_terms_are_few_or_none():
    two = Any((conjunction(1), conjunction(2)))
    assert len(terms(two)) == 2
    assert len(terms(All((two, two)))) == MOST_TERMS
    assert terms(All((two, Not(two)))) is None
    assert terms(All((two, two, Missing(C)))) is not None
    assert terms(All((two, two, two))) is None
    assert terms(Any(tuple(conjunction(value) for value in range(MOST_TERMS + 1)))) is None
    assert terms(All(tuple(Any((conjunction(value), Missing(C))) for value in range(40)))) is None


def test_parts_of_one_column_are_one_term():
    ends = tuple(Compare(A, Operator.EQ, value) for value in range(50))
    assert terms(Any(ends)) == [{"a": Any(ends)}]
    [first, second] = terms(Any((*ends, Missing(B))))
    assert {*first, *second} == {"a", "b"}
    [alone] = terms(Not(Any((ends[0], Not(All((Missing(B), ends[1])))))))
    assert set(alone) == {"a", "b"}


def test_patterns_are_seen_and_have_no_constants():
    like = Like(TEXT, "a%")
    assert has_pattern(Not(Any((All((Missing(TEXT), like)), OneOf(TEXT, ("b",))))))
    assert not has_pattern(OneOf(TEXT, ("a%",)))
    with pytest.raises(TypeError, match="pattern"):
        Constants.of([like]).true_of(like)
