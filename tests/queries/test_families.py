"""Families: which measures one GROUP BY tells, and that it tells the same."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from targetcharge.queries.measures import Count, Sketch, Total, families
from targetcharge.queries.tree import All, Any, Column, Compare, Exact, Kind, Missing, Not, Operator

COLUMNS = [Column(name, Kind.NUMBER, Exact(0, 0, 9)) for name in "abcd"]
A, B, C, D = COLUMNS


def equal(column, value):
    return Compare(column, Operator.EQ, value)


def parts(where):
    """What must all be true, as a set."""
    if where is None:
        return set()
    return {inner for part in where.parts for inner in parts(part)} if isinstance(where, All) else {where}


leaves = st.builds(equal, st.sampled_from(COLUMNS), st.integers(0, 2)) | st.sampled_from(
    [Missing(A), Not(equal(A, 1)), Any((equal(A, 1), equal(B, 1))), Compare(D, Operator.LE, 1)]
)
wheres = st.none() | st.recursive(
    leaves, lambda inner: st.lists(inner, min_size=2, max_size=3).map(tuple).map(All), max_leaves=4
)


def total(where, upper=5):
    return Total(C, 0, upper, Fraction(1), where)


measures = (
    st.builds(Count, wheres)
    | st.builds(total, wheres, st.sampled_from([5, 6]))
    | st.builds(Sketch, st.just(A), wheres, st.just(1), st.just(8), st.just("k"))
)


@settings(max_examples=300, deadline=None)
@given(st.lists(measures, max_size=40))
def test_a_member_is_its_familys_measure_on_the_rows_of_its_key(asked):
    seen = set()
    for family in families(dict(enumerate(asked))):
        assert len(family.keys.values) == len(set(family.keys.values)) >= 2
        assert len(family.keys.columns) in (1, 2)
        assert set(family.members.values()) == set(range(len(family.keys.values)))
        for place, key in family.members.items():
            assert place not in seen
            seen.add(place)
            member = asked[place]
            assert parts(member.where) == parts(family.measure.where) | parts(family.keys.where(key))
            assert type(member) is type(family.measure)
            if isinstance(member, Total):
                assert member.upper == family.measure.upper
    assert not any(isinstance(asked[place], Sketch) for place in seen)


def members(asked):
    return [set(family.members) for family in families(dict(enumerate(asked)))]


def test_what_is_common_may_be_anything_and_in_any_order():
    common, more = Not(Any((Missing(B), Compare(D, Operator.GT, 3)))), Missing(C)
    asked = [
        Count(All((equal(A, 1), common))),
        Count(All((common, equal(A, 2)))),
        Count(All((common, All((equal(A, 3), more))))),
        Count(All((more, common, equal(A, 4)))),
        Count(common),
    ]
    assert members(asked) == [{0, 1}, {2, 3}]


def test_a_family_differs_in_two_columns_at_most_those_with_the_most_values():
    pairs = [Count(All((equal(A, a), equal(B, b), equal(C, 7)))) for a in (1, 2) for b in (1, 2)]
    assert members(pairs) == [{0, 1, 2, 3}]
    [family] = families(dict(enumerate(pairs)))
    assert family.measure == Count(equal(C, 7))
    assert family.keys.columns == (A, B)
    assert members([*pairs, Count(All((equal(A, 1), equal(B, 1), equal(C, 8))))]) == [{0, 1, 2, 3}]
    cube = [
        Count(All((equal(B, b), equal(A, a), equal(C, c)))) for a in range(2) for b in range(3) for c in range(4)
    ]
    assert members(cube) == [set(range(12)), set(range(12, 24))]


def test_one_alone_twice_the_same_and_contradictions_are_no_family():
    assert members([Count(equal(A, 1))]) == []
    assert members([Count(equal(A, 1)), Count(equal(A, 1)), Count(None), Count(None)]) == []
    assert members([Count(All((equal(A, 1), equal(A, 2)))), Count(All((equal(A, 2), equal(A, 3))))]) == []
    assert members([Count(equal(A, 1)), Count(equal(B, 2)), total(equal(A, 2)), total(equal(A, 3), 6)]) == []


def test_counts_and_totals_are_families_of_their_own():
    asked = [make(equal(A, value)) for value in (1, 2) for make in (Count, total)]
    assert members(asked) == [{0, 2}, {1, 3}]
