"""Wrappers: what they publish, what it costs, and what they refuse."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.accounting.neighbours import needed_price, order_at
from tests.goodness import BufferedEntropy, assert_only, drawn, draws_to_tell
from tests.mechanisms.paths import law_of_paths

import targetcharge as tc
from targetcharge.mechanisms import (
    above_threshold,
    between_thresholds,
    exponential,
    noisy_count,
    noisy_max,
    permute_and_flip,
)
from targetcharge.outcomes import UnpublishableError

SIDES = (tc.Side.BELOW, tc.Side.BETWEEN, tc.Side.ABOVE)


def itself(data):
    return data


@tc.private(0.1)
def constant(data):
    return data


@tc.private(0.1, 1e-9)
def approximate(data):
    return data


def sides(epsilon):
    return between_thresholds(itself, 0, 4, epsilon)


def law_of(algorithm, data, outcomes):
    return [algorithm.oracle.probability(data, outcome) for outcome in outcomes]


def boundary_law(law):
    """Return the mark's probability and the rest, as the paper's Algorithm 3 has it."""
    rest = 1 - max(law)
    mark = min(1 / 3, rest / (1 + rest))
    return [mark, *((1 - mark) * mass for mass in law)]


class Remembered:
    """An oracle that computed its answer before: asking it anew for each draw would take most of the time."""

    def __init__(self, rest, asked=None):
        self._rest = rest
        self._asked = asked

    def rest(self, data):
        if self._asked is not None:
            self._asked.append(data)
        return self._rest


# What they publish.


def published_by_boundary(count):
    return dict(zip([tc.BOUNDARY, *SIDES], boundary_law(law_of(sides(0.3), count, SIDES)), strict=True))


def with_mark(law, mark):
    """Return a law with another probability of the mark, and the rest in proportion."""
    return {side: mass * (1 - mark) / (1 - law[tc.BOUNDARY]) for side, mass in law.items()} | {tc.BOUNDARY: mark}


@pytest.mark.parametrize("count", [-5, -2, 2, 9])
def test_the_paths_of_all_draws_give_the_law_of_boundary(count):
    assert law_of_paths(tc.boundary(sides(0.3)), count) == pytest.approx(published_by_boundary(count), abs=1e-9)


def test_boundary_draws_its_law_and_no_other():
    law = published_by_boundary(2)
    wrong = [with_mark(law, law[tc.BOUNDARY] * factor) for factor in (1.05, 1 / 1.05)]
    assert_only(drawn(tc.boundary(sides(0.3)), 2, draws_to_tell(law, *wrong)), law, *wrong)


def law_of_pairs(count, epsilon):
    law = dict(zip(SIDES, law_of(sides(epsilon), count, SIDES), strict=True))
    return {pair: law[pair[0]] * law[pair[1]] for pair in itertools.product(SIDES, repeat=2)}


@pytest.mark.parametrize("wrapper", [tc.twice, tc.agreement])
@pytest.mark.parametrize("count", [-3, 2])
def test_the_paths_of_all_draws_are_those_of_two_independent_runs(wrapper, count):
    assert law_of_paths(wrapper(sides(0.9)), count) == pytest.approx(law_of_pairs(count, 0.9), abs=1e-9)


def test_two_runs_draw_independently():
    pairs = law_of_pairs(2, 0.3)
    alike = {pair: mass * (1.05 if pair[0] == pair[1] else 1) for pair, mass in pairs.items()}
    alike = {pair: mass / sum(alike.values()) for pair, mass in alike.items()}
    assert_only(drawn(tc.twice(sides(0.3)), 2, draws_to_tell(pairs, alike)), pairs, alike)


@pytest.mark.parametrize(
    ("wrapped", "data"),
    [
        (noisy_count(itself, 0.5), 3),
        (permute_and_flip(itself, 0.5, 3), (0, 4, 9)),
        (noisy_max(itself, 1.0, 2), (0, 4)),
    ],
)
def test_boundary_of_other_algorithms(wrapped, data):
    rest = wrapped.oracle.rest(data)
    mark = min(1 / 3, rest / (1 + rest))
    law = law_of_paths(tc.boundary(replace(wrapped, oracle=Remembered(rest))), data)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-9)
    for outcome, mass in law.items():
        alone = wrapped.oracle.probability(data, outcome)
        assert mass == pytest.approx(mark if outcome is tc.BOUNDARY else (1 - mark) * alone, abs=1e-9)


@pytest.mark.parametrize("wrapped", [noisy_count, exponential, noisy_max, permute_and_flip])
def test_boundary_asks_the_oracle_of_these_data(wrapped):
    if wrapped is noisy_count:
        algorithm, data = wrapped(itself, 0.5), 3
    else:
        algorithm, data = wrapped(itself, 0.5, 3), (0, 4, 9)
    asked = []
    spy = Remembered(algorithm.oracle.rest(data), asked)
    tc.boundary(replace(algorithm, oracle=spy)).run(data, BufferedEntropy(1))
    assert asked == [data]


@pytest.mark.parametrize(
    ("rest", "mark"),
    [(0.0, 0.0), (1e-300, 1e-300), (0.25, 0.2), (0.5, 1 / 3), (0.9, 1 / 3), (1e-9, 1e-9 / (1 + 1e-9))],
)
def test_the_probability_of_the_mark(rest, mark):
    assert tc.Boundary().mark_probability(rest) == pytest.approx(mark, rel=1e-15)


def test_a_sure_outcome_is_never_marked():
    sure = tc.boundary(above_threshold(itself, 0, 1.0))
    assert drawn(sure, -(10**6), 2000) == {None: 2000}


def test_agreement_tells_less_than_twice():
    both, less = tc.twice(constant), tc.agreement(constant)
    assert both.run("a", BufferedEntropy(1)) == less.run("a", BufferedEntropy(1)) == ("a", "a")
    assert both.publish(("a", "a"), hit=False) == ("a", "a")
    assert both.publish(("a", "b"), hit=True) == ("a", "b")
    assert less.publish(("a", "a"), hit=False) == "a"
    assert less.publish(("a", "b"), hit=True) is tc.BOUNDARY


def alternating(*values):
    """Return an algorithm that gives one value after the other."""
    source = itertools.cycle(values)
    return tc.private(0.1)(lambda _: next(source))


@pytest.mark.parametrize(
    ("first", "second", "hit"),
    [
        (1, True, True),
        (1, 1.0, True),
        ((1,), (True,), True),
        (0.0, -0.0, False),
        ([1, 2], (1, 2), False),
        (np.int64(3), 3, False),
        (np.float64(0.5), 0.5, False),
        ("below", tc.Side.BELOW, True),
    ],
)
def test_runs_agree_if_their_outcomes_look_alike(first, second, hit):
    for wrapper in (tc.twice, tc.agreement):
        outcome = wrapper(alternating(first, second)).run(None, None)
        assert (outcome in tc.Disagreement()) is hit
        assert hit or repr(outcome[0]) == repr(outcome[1])


@pytest.mark.parametrize("value", [math.nan, object(), {1}])
def test_what_cannot_be_published_breaks_the_run(value):
    with pytest.raises(UnpublishableError):
        tc.twice(alternating(value, value)).run(None, None)


# What it costs: their target's price covers every pair of neighbouring counts.


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("width", [1, 5, 30])
def test_the_price_of_boundary_covers_bands(epsilon, width):
    band = between_thresholds(itself, 0, width - 1, epsilon)
    reach = math.ceil(15 / epsilon)
    published = []
    for count in range(-reach, width + reach):
        law, rest = law_of(band, count, SIDES), band.oracle.rest(count)
        mark = min(1 / 3, rest / (1 + rest))
        published.append([mark, *((1 - mark) * mass for mass in law)])
    laws = np.array(published)
    members = np.array([True, False, False, False])
    for fraction in (0.01, 0.3, 0.9, 0.999):
        order = order_at(tc.Boundary(), epsilon, fraction)
        needed = needed_price(laws[:-1], laws[1:], members, order).max()
        assert 0 < needed <= tc.Boundary().price(order, epsilon)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("width", [1, 5, 30])
def test_the_price_of_disagreement_covers_bands(epsilon, width):
    band = between_thresholds(itself, 0, width - 1, epsilon)
    reach = math.ceil(15 / epsilon)
    laws = np.array(
        [
            np.outer(law, law).ravel()
            for law in (law_of(band, count, SIDES) for count in range(-reach, width + reach))
        ]
    )
    members = ~np.eye(3, dtype=bool).ravel()
    for fraction in (0.01, 0.3, 0.9, 0.999):
        order = order_at(tc.Disagreement(), epsilon, fraction)
        needed = needed_price(laws[:-1], laws[1:], members, order).max()
        assert 0 < needed <= tc.Disagreement().price(order, epsilon) * (1 + 1e-9)


# What they declare.


@pytest.mark.parametrize(
    ("wrapper", "target"),
    [(tc.boundary, tc.Boundary()), (tc.twice, tc.Disagreement()), (tc.agreement, tc.Disagreement())],
)
def test_declarations(wrapper, target):
    algorithm = wrapper(sides(0.3))
    assert algorithm.name == f"{wrapper.__name__}(between_thresholds(itself))"
    assert (algorithm.epsilon, algorithm.delta) == (0.3, 0.0)
    assert algorithm.default_target == target
    assert algorithm.oracle is None
    assert [algorithm.supports(t) for t in (target, tc.NotPrior(0), tc.Everything(), tc.Between(0, 4))] == [
        True,
        False,
        False,
        False,
    ]


def test_the_delta_of_two_runs():
    assert tc.twice(approximate).delta == tc.agreement(approximate).delta == 2e-9


# What they refuse.


@pytest.mark.parametrize("wrapper", [tc.boundary, tc.twice, tc.agreement])
@pytest.mark.parametrize("inner", [tc.boundary, tc.twice, tc.agreement])
def test_wrappers_are_not_wrapped(wrapper, inner):
    with pytest.raises(tc.NotAllowed, match="not wrapped"):
        wrapper(inner(sides(0.3)))


def test_boundary_needs_to_know_the_law():
    with pytest.raises(tc.NotAllowed, match=r"constant cannot tell .* try twice or agreement"):
        tc.boundary(constant)
    with pytest.raises(tc.NotAllowed, match="noisy_max"):
        tc.boundary(noisy_max(itself, 1e-6, 3))


def test_boundary_has_no_price_for_delta():
    with pytest.raises(tc.NotAllowed, match="approximate has 1e-09"):
        tc.boundary(approximate)


@pytest.mark.parametrize(("wrapper", "epsilon"), [(tc.boundary, 1.01), (tc.twice, 5.01), (tc.agreement, 5.01)])
def test_epsilon_beyond_the_target_price(wrapper, epsilon):
    with pytest.raises(tc.InvalidParameter, match=f"epsilon is {epsilon}"):
        wrapper(sides(epsilon))


def test_a_delta_that_doubles_to_one():
    with pytest.raises(tc.InvalidParameter, match="delta is 1"):
        tc.twice(tc.private(0.1, 0.5)(lambda data: data))


@pytest.mark.parametrize("wrapper", [tc.boundary, tc.twice, tc.agreement])
@pytest.mark.parametrize("value", [None, len, "count", 0.1])
def test_only_algorithms_are_wrapped(wrapper, value):
    with pytest.raises(tc.InvalidParameter, match="algorithm is"):
        wrapper(value)
