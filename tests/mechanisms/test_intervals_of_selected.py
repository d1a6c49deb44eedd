"""Intervals of what was selected: at any rank 95 of 100 hold the truth, by the exact law of what was drawn."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from tests.goodness import FAR, BufferedEntropy
from tests.sizes import size, spread

from targetcharge.accounting import OffsetNoise
from targetcharge.mechanisms.accuracy import Accuracy, exactly
from targetcharge.mechanisms.gauge import COUNTED
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.randomness import Rate

NOISES = {
    "laplace": CountNoise.natural(0.3, 1),
    "gumbel": CountNoise.gumbel(0.3, 1),
    "geometric": CountNoise("geometric", Rate.at_most(0.3)),
    "laplace, any question": CountNoise.carried(OffsetNoise(0.3, 0.4), 1),
    "laplace, any question, a large offset": CountNoise.carried(OffsetNoise(0.1, 2.0), 1),
    "laplace, at least": CountNoise.carried(OffsetNoise(0.4, 0.4, "laplace", "at least"), 1),
    "geometric, at least": CountNoise.carried(OffsetNoise(1.0, 1.0, "geometric", "at least"), 1),
    "gumbel, at least": CountNoise.carried(OffsetNoise(0.4, 0.4, "gumbel", "at least"), 1),
    "gumbel, at least, a geometric offset": CountNoise.carried(
        OffsetNoise(1.0, 1.0, "gumbel", "at least", "geometric"), 3
    ),
}
each_noise = pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)


# The law of the noise of what is selected, from the definitions.


@cache
def law_of(kind, rate):
    """Return integers and their probabilities: less the integer next to the mean, which noise is drawn without."""
    reach = math.ceil(30 / rate)
    values = np.arange(-reach, reach + 1)
    if kind == "laplace":
        masses = np.exp(-rate * np.abs(values))
    elif kind == "geometric":
        masses = np.where(values >= 0, np.exp(-rate * np.maximum(values, 0)), 0.0)
    else:  # Pr[ν ≤ k] is exp(-e^{-rate·k})
        masses = np.diff(np.exp(-np.exp(-rate * np.append(values[0] - 1, values))))
    masses = masses / masses.sum()
    return values - round(float(values @ masses)), masses


def fresh_of(noise):
    return law_of(noise.noise, noise.rate.numerator / noise.rate.denominator)


def offsets_of(noise):
    """Return what the offset takes off every count, and how likely that is."""
    if noise.offset is None:
        return np.zeros(1, dtype=int), np.ones(1)
    values, masses = law_of(noise.offset.offset_noise, noise.offset.offset_epsilon / noise.offset.lattice)
    return noise.weight * values, masses


def of_equal(noise, count, rank):
    """Return Pr[ν = x] of the noise that is the largest, second largest, … of so many: by the binomial law.

    That one is at most x where less than `rank` are above it.
    """
    values, masses = fresh_of(noise)
    above = np.maximum(0.0, 1 - np.cumsum(masses))
    return values, np.diff(binom.cdf(rank - 1, count, above), prepend=0.0)


def of_counts(laws, counts, rank):
    """Return Pr[the candidate is the `rank`th, and its noise x] for each candidate: others are added one by one.

    Of equal noisy counts the first is the larger one.
    """
    chosen = []
    for place, (values, masses) in enumerate(laws):
        ahead = np.zeros((rank, len(values)))  # so many others are above it
        ahead[0] = masses
        for other, (other_values, other_masses) in enumerate(laws):
            if other == place:
                continue
            tail = np.append(np.cumsum(other_masses[::-1])[::-1], 0.0)
            needed = values + counts[place] - counts[other] + (other > place)
            above = tail[np.clip(needed - other_values[0], 0, len(other_masses))]
            ahead[1:], ahead[0] = ahead[1:] * (1 - above[None]) + ahead[:-1] * above[None], ahead[0] * (1 - above)
        chosen.append((values, ahead[rank - 1]))
    return chosen


def coverage(noise, chosen, holding):
    """Return how likely the selected one's error is one of those, which lie from the first to the last.

    The offset is taken off all of them, and so changes no order.
    """
    values, masses = chosen
    offsets, likely = offsets_of(noise)
    up_to = np.append(0.0, np.cumsum(masses))
    first, last = (np.clip(end + offsets - values[0], 0, len(values)) for end in (holding[0], holding[1] + 1))
    return float(likely @ (up_to[last] - up_to[first]))


@cache
def errors_held(noise, margins):
    """Return from which to which error, in steps of the lattice, the interval of what is shown holds the truth."""
    accuracy = Accuracy(1.0, margins, exactly, COUNTED, noise)
    reach = sum(margins) + 3 * noise.lattice
    held = [error for error in range(-reach, reach + 1) if _holds(accuracy.interval(noise.shown(error)), 0)]
    assert held == list(range(held[0], held[-1] + 1))
    assert held[0] <= -margins[0]
    assert held[-1] >= margins[1]
    return held[0], held[-1]


def _holds(interval, truth):
    return interval[0] <= truth <= interval[1]


def of_rank(noise, rank, candidates):
    """Return the errors that the interval of a selected count holds."""
    accuracy = Accuracy.of(noise, exactly).of_rank(rank, candidates)
    assert accuracy.margins == noise.margins_of_rank(rank, candidates)
    return errors_held(noise, accuracy.margins)


# Equal counts.


@each_noise
def test_intervals_of_equal_counts_hold_at_every_rank(noise):
    found = []
    for candidates in (1, 7, 50):
        for rank in spread(range(1, candidates + 1), 6):
            chosen = of_equal(noise, candidates, rank)
            found.append(coverage(noise, chosen, of_rank(noise, rank, candidates)))
    assert min(found) >= 0.95


@each_noise
def test_the_upper_end_is_as_near_as_it_can_be_at_the_first_rank(noise):
    """Also with a thousand candidates: the largest noise is above its margin in 2.5% of draws, and no fewer."""
    for candidates in (1, 2, 50, 1000):
        below, above = noise.margins_of_rank(1, candidates)
        chosen = of_equal(noise, candidates, 1)
        far = 10**9
        assert coverage(noise, chosen, (-far, above)) >= 0.975
        assert coverage(noise, chosen, (-far, above - 1)) < 0.975
        assert below == noise.margins[0]
    assert coverage(noise, of_equal(noise, 50, 1), noise.margins_of_rank(1, 50)) < 0.98


@each_noise
def test_the_lower_end_is_as_near_as_it_can_be_where_all_with_larger_counts_are_above(noise):
    """The smallest of j noises: for powers of two; those between get the next one's."""
    for rank in (1, 2, 8, 64):
        below, _ = noise.margins_of_rank(rank, 100)
        chosen = of_equal(noise, rank, rank)
        far = 10**9
        assert coverage(noise, chosen, (-below, far)) >= 0.975
        assert coverage(noise, chosen, (-below + 1, far)) < 0.975
    assert [noise.margins_of_rank(rank, 100)[0] for rank in (3, 5, 6, 7, 33)] == [
        noise.margins_of_rank(rank, 100)[0] for rank in (4, 8, 8, 8, 64)
    ]


@pytest.mark.parametrize(("name", "noise"), NOISES.items(), ids=NOISES)
def test_power_the_interval_of_a_count_that_was_not_selected_would_hold_less_often(name, noise):
    held = coverage(noise, of_equal(noise, 50, 1), errors_held(noise, noise.margins))
    assert held < (0.955 if "large offset" in name else 0.8)  # that is nearly all of a large one
    if name == "laplace":
        assert 0.3 < held < 0.4  # a third


@each_noise
def test_margins_grow_with_the_candidates_and_the_rank(noise):
    assert noise.margins_of_rank(1, 1) == noise.margins
    above = [noise.margins_of_rank(1, candidates)[1] for candidates in (1, 2, 3, 50, 3000, 10**6)]
    below = [noise.margins_of_rank(rank, 10**6)[0] for rank in (1, 2, 3, 50, 3000, 10**6)]
    assert above == sorted(above)
    assert below == sorted(below)
    assert above[0] < above[2] < above[-1]


# Other counts.


def counts_of(source, candidates, deviation):
    """Yield counts, in steps of the lattice: spaced, in two groups, and random ones."""
    for gap in (0.02, 0.3, 2.0):
        step = max(1, round(gap * deviation))
        yield [step * place for place in range(candidates)]
        yield [step * place**2 for place in reversed(range(candidates))]
    for better in range(1, candidates):
        for gap in (1.0, 40.0):
            yield [round(gap * deviation)] * better + [0] * (candidates - better)
    for _ in range(size(4, 60)):
        yield np.round(source.normal(0, source.choice([0.3, 1, 3]) * deviation, candidates)).astype(int).tolist()


@each_noise
def test_intervals_of_any_counts_hold_at_every_rank(noise):
    source, lowest, candidates = np.random.default_rng(1), 1.0, 5
    laws = [fresh_of(noise)] * candidates
    for counts in counts_of(source, candidates, noise.standard_deviation * noise.lattice):
        for rank in range(1, candidates + 1):
            total = sum(masses for _, masses in of_counts(laws, counts, rank))
            assert total.sum() == pytest.approx(1, abs=1e-9)
            found = coverage(noise, (laws[0][0], total), of_rank(noise, rank, candidates))
            assert found >= 0.95, (counts, rank)
            lowest = min(lowest, found)
    assert lowest < 0.98


@each_noise
def test_both_laws_of_selected_noise_agree_where_counts_are_equal(noise):
    """The binomial law, and candidates added one by one."""
    for rank in (1, 2, 4):
        values, masses = of_equal(noise, 4, rank)
        total = sum(chosen for _, chosen in of_counts([fresh_of(noise)] * 4, [3] * 4, rank))
        assert values.tolist() == fresh_of(noise)[0].tolist()
        assert np.abs(total - masses).max() < 1e-12


# Candidates with different noise.


MIXED = {
    "different rates": (OffsetNoise(0.1, 1.0), (1.0, *[0.02] * 5)),
    "half and half": (OffsetNoise(0.1, 1.0), (1.0, 1.0, 0.02, 0.02)),
    "two": (OffsetNoise(0.05, 1.0), (1.0, 0.02)),
}


def held_of_mixed(noises, counts, rank, margins):
    laws = [fresh_of(noise) for noise in noises]
    chosen = of_counts(laws, counts, rank)
    return sum(
        coverage(noise, one, (-below, above))
        for noise, one, (below, above) in zip(noises, chosen, margins, strict=True)
    )


@pytest.mark.parametrize(("law", "epsilons"), MIXED.values(), ids=MIXED)
def test_intervals_hold_where_candidates_have_different_noise(law, epsilons):
    """Questions with smaller ε beside others: of the largest noises of all that is beyond most often."""
    noises = [CountNoise.carried(law.for_computation(epsilon), 1) for epsilon in epsilons]
    many, widest = len(noises), max(noise.margins[1] for noise in noises)
    lowest = of_ranks = 1.0
    for share in (-1.0, -0.6, -0.2, 0.0, 0.3, 0.7, 1.0):
        counts = [round(share * widest) if epsilon == 1.0 else 0 for epsilon in epsilons]
        for rank in (1, many):
            margins = [noise.margins_of_any(many) for noise in noises]
            lowest = min(lowest, held_of_mixed(noises, counts, rank, margins))
            margins = [noise.margins_of_rank(many, many) for noise in noises]
            of_ranks = min(of_ranks, held_of_mixed(noises, counts, rank, margins))
    assert lowest >= 0.95
    assert of_ranks < 0.95  # margins for noise of one law are not enough: they share the offset


@each_noise
def test_any_of_many_is_beyond_its_margin_in_5_of_100_draws_by_adding_up(noise):
    values, masses = fresh_of(noise)
    for candidates in (1, 4, 1000):
        below, above = noise.margins_of_any(candidates)
        assert 1 - coverage(noise, (values, masses), (-below, above)) <= 0.05 / candidates * (1 + 1e-6)
        assert 1 - coverage(noise, (values, masses), (-below, above - 1)) > 0.025 / candidates
        accuracy = Accuracy.of(noise, exactly)
        assert accuracy.of_any(candidates).margins == (below, above)
        assert accuracy.of_any(candidates).scale == accuracy.scale
        assert below >= noise.margins_of_rank(candidates, candidates)[0] - 1
    assert noise.margins_of_any(1) == noise.margins


def test_what_has_no_noise_has_the_same_accuracy_at_any_rank():
    accuracy = Accuracy(1.0, (3, 5), exactly)
    assert accuracy.of_rank(7, 100) is accuracy
    assert accuracy.of_any(100) is accuracy


# Real draws.


@pytest.mark.parametrize("name", ["laplace", "gumbel", "geometric"])
def test_intervals_of_the_largest_of_fifty_real_draws(name):
    noise, candidates, rounds = NOISES[name], 50, size(400, 4000)
    entropy = BufferedEntropy(2)
    first = Accuracy.of(noise, exactly).of_rank(1, candidates)
    third = Accuracy.of(noise, exactly).of_rank(3, candidates)
    held = np.zeros(3, dtype=int)
    for _ in range(rounds):
        noisy = sorted((1000 + value for value in noise.draws(entropy, candidates)), reverse=True)
        held += [
            _holds(first.interval(noisy[0]), 1000),
            _holds(third.interval(noisy[2]), 1000),
            _holds(Accuracy.of(noise, exactly).interval(noisy[0]), 1000),
        ]
    for right in held[:2].tolist():
        assert binomtest(right, rounds, 0.95, alternative="less").pvalue > FAR
    assert binomtest(int(held[2]), rounds, 0.95, alternative="less").pvalue < FAR
