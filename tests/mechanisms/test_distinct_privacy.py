"""The ε of a sketch of maxima, by exact arithmetic on the law that the code draws."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from targetcharge.mechanisms.distinct import MaximaLaw, _law

WHOLE = 2**64
EPSILONS = [0.01, 0.03, 0.1, 0.25, 0.5, math.log(2), 0.7, 1.0, 1.5, 3.0, 10.0]


def exponential(number, terms=80):
    """Return a lower and an upper bound of e^number, from 0 to 10, by its series."""
    number, term, total = Fraction(number), Fraction(1), Fraction(1)
    for index in range(1, terms):
        term *= number / index
        total += term
    return total, total + 2 * term


def ratios(phantoms, tails, elements):
    """Yield by how much one more element changes the probability of each maximum of a bucket that has so many."""
    inside = phantoms + elements
    yield Fraction(WHOLE - tails[0], WHOLE)
    for low, high in itertools.pairwise((*tails, 0)):
        a, b = WHOLE - high, WHOLE - low
        yield Fraction(a ** (inside + 1) - b ** (inside + 1), WHOLE * (a**inside - b**inside))


def worst(phantoms, tails, elements=0):
    found = list(ratios(phantoms, tails, elements))
    return min(found), max(found)


@pytest.mark.parametrize("per_unit", [1, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_element_changes_no_probability_by_more_than_its_epsilon(epsilon, per_unit):
    law = _law(epsilon, per_unit)
    bound, _ = exponential(Fraction(epsilon) / per_unit)
    far = {0, 1, 2, law.phantoms, 10 * law.phantoms} if law.phantoms < 100 else {0, 1}
    for elements in far:
        least, most = worst(law.phantoms, law.tails, elements)
        assert most <= bound
        assert least * bound >= 1


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_bound_is_attained_and_a_phantom_fewer_or_a_lower_floor_break_it(epsilon):
    law = MaximaLaw.of(Fraction(epsilon))
    lower, upper = exponential(epsilon)
    least, most = worst(law.phantoms, law.tails)
    assert least * lower < 1 + Fraction(1, 10**9)  # the floor's own outcome has all of ε
    assert most > 1 + Fraction(1, law.phantoms) - Fraction(1, 10**12)  # and the highest level what phantoms allow
    if law.phantoms > 1:
        assert worst(law.phantoms - 1, law.tails)[1] > upper
    lower_floor = math.ceil(law.tails[0] * (1 + Fraction(1, 10**12)))
    assert worst(law.phantoms, (lower_floor, *law.tails[1:]))[0] * upper < 1


def test_no_number_of_elements_is_worse_than_none():
    """The largest factor falls with the elements that are there, at every level; the smallest is the floor's."""
    law = MaximaLaw.of(Fraction(1, 2))
    before = list(ratios(law.phantoms, law.tails, 0))
    for elements in range(1, 40):
        after = list(ratios(law.phantoms, law.tails, elements))
        assert after[0] == before[0] == min(after)
        assert all(new < old for new, old in zip(after[1:], before[1:], strict=True))
        before = after


@pytest.mark.parametrize("tails", [(3, 2, 1), (2**63, 2**62, 7), (2**64 - 1, 1), (2**40,)])
def test_the_proof_needs_nothing_of_the_law_but_its_floor(tails):
    for phantoms, elements in itertools.product((1, 2, 5), (0, 1, 4)):
        least, most = worst(phantoms, tails, elements)
        assert least == Fraction(WHOLE - tails[0], WHOLE)
        assert most < 1 + Fraction(1, phantoms)


# Several buckets: the whole law of a small sketch, over all ways in which elements fall into buckets.


def one_bucket(law, inside):
    """Return the law of the maximum of one bucket."""
    up_to = [Fraction(WHOLE - tail, WHOLE) ** inside for tail in (*law.tails, 0)]
    return [up_to[0], *(high - low for low, high in itertools.pairwise(up_to))]


def whole_sketch(law, buckets, elements):
    """Return the law of all maxima together."""
    found = Counter()
    fallen = Counter(
        tuple(places.count(bucket) for bucket in range(buckets))
        for places in itertools.product(range(buckets), repeat=elements)
    )
    for counts, ways in fallen.items():
        each = [one_bucket(law, law.phantoms + count) for count in counts]
        for levels in itertools.product(range(len(law.tails) + 1), repeat=buckets):
            mass = math.prod(each[bucket][level] for bucket, level in enumerate(levels))
            found[levels] += mass * Fraction(ways, buckets**elements)
    return found


@pytest.mark.parametrize(("epsilon", "per_unit"), [(0.4, 1), (1.0, 1), (0.8, 2)])
@pytest.mark.parametrize("buckets", [2, 3])
def test_a_whole_sketch_changes_by_no_more_than_epsilon_for_a_unit(epsilon, per_unit, buckets):
    whole = _law(epsilon, per_unit)
    law = MaximaLaw(whole.phantoms, (whole.tails[0], whole.tails[5], whole.tails[-1]))
    bound, _ = exponential(epsilon)
    reached = Fraction(1)
    for elements in range(4):
        before, after = whole_sketch(law, buckets, elements), whole_sketch(law, buckets, elements + per_unit)
        assert sum(before.values()) == sum(after.values()) == 1
        for levels, mass in before.items():
            assert after[levels] <= bound * mass
            assert mass <= bound * after[levels]
            reached = max(reached, after[levels] / mass, mass / after[levels])
    assert reached > 1 + (bound - 1) / 2
    fewer = MaximaLaw(law.phantoms, (round(law.tails[0] * 1.3), *law.tails[1:]))
    before, after = whole_sketch(fewer, buckets, 1), whole_sketch(fewer, buckets, 1 + per_unit)
    assert max(before[levels] / after[levels] for levels in before) > bound
