"""Picks that are always paid for: their law, its log-ratios on neighbours, and how far off a pick is."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.discrete_gaussian import DiscreteGaussian
from tests.discrete_laplace import DiscreteLaplace
from tests.goodness import BufferedEntropy, assert_only, draws_to_tell
from tests.mechanisms.paths import EndOfPath, Path
from tests.refusals import every
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting.curves import BoundedRange, Pure
from targetcharge.accounting.exchange import PaidRates, exact_rates, hits_of
from targetcharge.accounting.targets import Everything
from targetcharge.mechanisms import picks as picking
from targetcharge.mechanisms.gauge import grid
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.mechanisms.paid import PaidNoise
from targetcharge.mechanisms.picks import quantiles

ROUNDING = 1 + 1e-9
RANGE = 2.0
RATES = PaidRates(1.0, RANGE)
WRONG = PaidRates(1.0, RANGE * 1.05)


def itself(data):
    return data


def peeled(*arguments, sensitivity=1, width=None, **options):
    """Return picks of counts that no unit lowers, if no width is given."""
    return picking.peeled(*arguments, sensitivity=sensitivity, width=width or sensitivity, **options)


def parts(several, rates=RATES):
    """Return what a session draws."""
    return several.parts(PaidNoise(rates))


def law_of(drawing, data):
    """Return {what is drawn: probability} over every path of choices, each with the law that it is asked for."""

    def choose(path, gaps, rate):
        weights = [math.exp(-float(int(gap) * rate)) for gap in gaps]
        assert max(weights) == 1.0  # or it would take long
        total = math.fsum(weights)
        return path.draw(lambda: [(place, weight / total) for place, weight in enumerate(weights)])

    law, todo = Counter(), [((), 1.0)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("targetcharge.mechanisms.picks.exponential_choice", choose)
        patch.setattr(CountNoise, "draw", lambda *_: 0)
        while todo:
            values, chance = todo.pop()
            try:
                law[tuple(drawing.draw(data, Path(values)))] += chance
            except EndOfPath as end:
                todo += [((*values, value), chance * more) for value, more in end.choices]
    return law


def distance(law, other):
    return math.fsum(abs(law[outcome] - other[outcome]) for outcome in {*law, *other})


def spread_of_ratios(law, other):
    """Return the length of the shortest interval with all log-ratios of two laws."""
    assert set(law) == set(other)
    ratios = [math.log(mass / other[outcome]) for outcome, mass in law.items()]
    return max(ratios) - min(ratios)


# Picks of keys.


def peeled_law(counts, k, rate):
    """Return {picks: probability}: each with a probability proportional to e^{rate·count} among those left."""
    law = Counter()
    for picks in itertools.permutations(range(len(counts)), k):
        mass, left = mpmath.mpf(1), set(range(len(counts)))
        for pick in picks:
            mass /= mpmath.fsum(mpmath.exp(rate * (counts[other] - counts[pick])) for other in left)
            left.remove(pick)
        law[picks] = float(mass)
    return law


def picked_law(counts, k, rates=RATES, **options):
    several = peeled(itself, k, 0.1, range(len(counts)), **options)
    return Counter(
        {tuple(key for key, _ in drawn): mass for drawn, mass in law_of(parts(several, rates), counts).items()}
    )


COUNTS = {
    "a ladder": (0, 1, 2, 3),
    "equal": (5, 5, 5),
    "negative": (-3, 0, 2, -1),
    "one": (7,),
    "far apart": (0, 40, 41),
    "far": (10**18, 10**18 + 1, 10**18 - 2),
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize(("sensitivity", "width"), [(1, None), (3, None), (3, 5)])
def test_picks_are_peeled_with_the_whole_range_over_the_width(counts, sensitivity, width):
    rate = mpmath.mpf(RANGE) / (width or sensitivity)
    for k in range(1, len(counts) + 1):
        found = picked_law(counts, k, sensitivity=sensitivity, width=width)
        assert distance(found, peeled_law(counts, k, rate)) < 1e-8
        if len(set(counts)) > 1 and k < len(counts):
            assert min(distance(found, peeled_law(counts, k, rate * factor)) for factor in (1.05, 0.95)) > 1e-9
    assert all(len(set(picks)) == len(picks) == len(counts) for picks in found)


def neighbours_of(source, keys, steps):
    """Yield random counts, before and after a unit: it moves each by one of so many steps."""
    counts = source.integers(0, 12, keys)
    moved = source.choice(steps, keys)
    yield tuple(counts.tolist())
    yield tuple((counts + moved).tolist())


def worst_range(source, steps, trials, rates=RATES, **options):
    """Return the largest range of a pick, given those before it."""
    worst = 0.0
    for _ in range(trials):
        keys = int(source.integers(2, 6))
        k = int(source.integers(1, min(keys, 3) + 1))
        one, other = (picked_law(counts, k, rates, **options) for counts in neighbours_of(source, keys, steps))
        for before in range(k):
            for prefix in {picks[:before] for picks in one}:
                laws = []
                for law in (one, other):
                    given = Counter()
                    for picks, mass in law.items():
                        if picks[:before] == prefix:
                            given[picks[before]] += mass
                    laws.append(given)
                worst = max(worst, spread_of_ratios(*laws))
    return worst


def test_the_range_of_picks_of_counts_is_what_is_paid_for():
    """Adding a unit moves each count by 0 or 1."""
    trials = size(60, 1000)
    assert 0.99 * RANGE < worst_range(np.random.default_rng(1), (0, 1), trials) <= RANGE * ROUNDING
    assert worst_range(np.random.default_rng(1), (0, 1), trials, WRONG) > 1.04 * RANGE
    assert parts(peeled(itself, 2, 0.1, "abc")).paid == (Everything(BoundedRange(RANGE)),)


@pytest.mark.parametrize(("lower", "upper"), [(-2, 3), (-4, 1), (0, 3), (-3, 0), (2, 5), (-5, -2)])
def test_the_range_of_picks_of_sums_is_what_is_paid_for(lower, upper):
    """A unit may raise one sum and lower another: then the sensitivity alone is not enough."""
    trials, steps = size(60, 1000), sorted({0, *range(lower, upper + 1)})
    options = {"sensitivity": max(abs(lower), abs(upper)), "width": steps[-1] - steps[0]}
    worst = worst_range(np.random.default_rng(2), steps, trials, **options)
    assert 0.99 * RANGE < worst <= RANGE * ROUNDING
    if lower < 0 < upper:
        del options["width"]
        assert worst_range(np.random.default_rng(2), steps, trials, **options) > 1.2 * RANGE


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_one_hit_of_an_exact_meter_pays_for_a_pick_and_another_for_its_value(epsilon):
    rates = exact_rates(epsilon)
    drawing = parts(peeled(itself, 2, epsilon, "abc", values=True), rates)
    assert [hits_of(target.curve, epsilon, most=3) for target in drawing.paid] == [1, 1]
    (pick,) = parts(peeled(itself, 2, epsilon, "abc"), rates).paid
    assert pick == drawing.paid[0]
    (wrong,) = parts(peeled(itself, 2, epsilon, "abc"), PaidRates(1.0, rates.bounded_range * 1.05)).paid
    assert hits_of(wrong.curve, epsilon, most=3) == 2


def test_counts_that_no_double_or_word_holds_are_picked_from():
    """What is 2^62 below the best one counts as so far: a unit moves it by no more than it did."""
    assert picked_law((2**80, 0, -(2**90), 2**80 - 1), 1)[(1,)] == 0.0
    drawing = parts(peeled(itself, 4, 0.1, "abcd"))
    drawn = drawing.draw((2**80, 0, -(2**90), 2**80 - 40), BufferedEntropy(1))
    assert sorted(key for key, _ in drawn) == list("abcd")
    assert [key for key, _ in drawn[:2]] == ["a", "d"]

    def gaps_of(counts):
        seen = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "targetcharge.mechanisms.picks.exponential_choice",
                lambda _, gaps, __: seen.append([int(gap) for gap in gaps]) or 0,
            )
            drawing.draw(counts, None)
        return seen

    far, source = 2**62, np.random.default_rng(3)
    for _ in range(size(200, 2000)):
        counts = [0, *(int(step) - far for step in source.integers(-2, 3, 3))]
        moved = [count + int(step) for count, step in zip(counts, source.integers(0, 2, 4), strict=True)]
        source.shuffle(order := list(range(4)))
        pair = [gaps_of([row[place] for place in order]) for row in (counts, moved)]
        for gaps, other in zip(*pair, strict=True):
            assert min(gaps) == min(other) == 0
            steps = [new - old for old, new in zip(gaps, other, strict=True)]
            assert max(steps) - min(steps) <= 1


def test_keys_are_what_is_published_each_once():
    keys, entropy = [f"key {place}" for place in range(30)], BufferedEntropy(2)
    for k in (1, 7, 30):
        several = peeled(itself, k, 0.1, keys, name="which", question="asked")
        assert (several.name, several.epsilon, several.count, several.question) == ("which", 0.1, k, "asked")
        drawn = parts(several).draw(range(30), entropy)
        assert len(drawn) == len({key for key, _ in drawn} & set(keys)) == k
        assert {value for _, value in drawn} == {None}


def test_what_picks_take_is_checked():
    def check(k):
        with pytest.raises(tc.InvalidParameter, match=r"k is .* 1 to 3, the number of keys"):
            peeled(itself, k, 0.1, "abc")

    every([0, 4, -1, 1.5, None], check)
    with pytest.raises(tc.InvalidParameter, match="counts is"):
        peeled([1, 2, 3], 1, 0.1, "abc")
    with pytest.raises(tc.InvalidParameter, match="distribution is"):
        quantiles([1, 2, 3], [Fraction(1, 2)], 0.1, 3)
    with pytest.raises(ValueError, match="2 scores for 3 outcomes"):
        parts(peeled(itself, 1, 0.1, "abc")).draw((1, 2), BufferedEntropy(3))


LADDER = tuple(range(14))


def test_real_picks_have_the_right_rate_and_no_other():
    law, *wrong = (peeled_law(LADDER, 2, 0.4 * factor) for factor in (1, 1.05, 1 / 1.05))
    drawing, entropy = parts(peeled(itself, 2, 0.1, range(14)), PaidRates(0.2, 0.4)), BufferedEntropy(4)
    found = Counter(
        tuple(key for key, _ in drawing.draw(LADDER, entropy)) for _ in range(draws_to_tell(law, *wrong))
    )
    assert_only(found, law, *wrong)


# Values beside them.

VALUES = {"laplace": PaidRates(0.4, 1.0), "gaussian": PaidRates(0.01, 1.0, 0.5, Fraction(5, 2))}
LAWS = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}


@pytest.mark.parametrize("step", [1, Fraction(1, 100)])
@pytest.mark.parametrize(("kind", "rates"), VALUES.items(), ids=VALUES)
def test_a_value_has_fresh_noise_and_an_interval_that_holds_in_95_of_100_draws(kind, rates, step):
    """Exactly, whatever was picked: all noise on it."""
    gauge, sensitivity = {} if step == 1 else {"gauge": grid(step)}, 3
    drawing = parts(peeled(itself, 1, 0.1, "ab", sensitivity=sensitivity, values=True, **gauge), rates)
    noise, target = PaidNoise(rates).least(sensitivity, sensitivity**2)
    law = LAWS[kind].of(noise.rate)
    reach = math.ceil(20 * noise.standard_deviation)
    assert drawing.paid == (Everything(BoundedRange(1.0)), target)
    held = narrower = 0.0
    for count in (1000, -7):
        truth, least = float(count * step), 0.9 * float(step)
        for value in range(-reach, reach + 1):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(CountNoise, "draw", lambda drawn, _, value=value: value if drawn == noise else None)
                ((key, outcome),) = drawing.draw((count, count - 10**6), BufferedEntropy(5))
            assert (key, outcome) == ("a", pytest.approx(float((count + value) * step)))
            low, high = drawing.accuracy.interval(outcome)
            held += law.mass(value) * (low <= truth <= high) / 2
            narrower += law.mass(value) * (low + least <= truth <= high - least) / 2
    assert 0.95 <= held < 0.98
    assert narrower < 0.95


def test_each_value_has_noise_of_its_own():
    drawing, entropy = parts(peeled(itself, 3, 0.1, "abc", values=True)), BufferedEntropy(6)
    drawn = [dict(drawing.draw((50, 50, 50), entropy)) for _ in range(2000)]
    noise = np.array([[row[key] - 50 for key in "abc"] for row in drawn])
    assert parts(peeled(itself, 3, 0.1, "abc", values=True)).paid[1] == Everything(Pure(1.0))
    covariance = np.cov(noise.T)
    variance = 1 / (2 * math.sinh(0.5) ** 2)
    assert np.diag(covariance) == pytest.approx([variance] * 3, rel=0.3)  # five deviations and more
    assert covariance[np.triu_indices(3, 1)] == pytest.approx([0] * 3, abs=0.3 * variance)


# How far a pick is off.


def beyond(counts, k, rate, margin):
    """Return for each of k picks the probability that another left was better by more than a margin."""
    chances = [0.0] * k
    for picks, mass in peeled_law(counts, k, rate).items():
        for place, pick in enumerate(picks):
            best = max(count for key, count in enumerate(counts) if key not in picks[:place])
            chances[place] += mass * (best - counts[pick] > margin)
    return chances


def test_95_of_100_picks_are_within_their_margin_of_the_best_key_left():
    source = np.random.default_rng(7)
    for _ in range(size(60, 600)):
        keys = int(source.integers(2, 6))
        counts = source.integers(0, int(source.choice([2, 6, 20])), keys).tolist()
        drawing = parts(peeled(itself, min(3, keys), 0.1, range(keys), width=4))
        assert drawing.accuracy is None
        assert max(beyond(counts, min(3, keys), RANGE / 4, drawing.margin)) <= 0.05


@pytest.mark.parametrize("keys", [2, 20, 1000, 100_000])
def test_power_a_margin_of_picks_could_not_be_much_less(keys):
    """Many keys just beyond it: they are picked in nearly 5% of draws together."""
    margin = parts(peeled(itself, 1, 0.1, range(keys)), PaidRates(0.001, 0.01)).margin

    def picked(gap):
        others = (keys - 1) * math.exp(-0.01 * gap)
        return others / (1 + others)

    assert picked(math.floor(margin) + 1) <= 0.05
    assert picked(math.floor(margin * 0.9) + 1) > (0.05 if keys > 2 else 0.025)


def test_margins_of_picks_are_shown_in_what_a_step_is_worth():
    plain, cents = (
        parts(peeled(itself, 1, 0.1, "abc", sensitivity=5, **gauge)).margin
        for gauge in ({}, {"gauge": grid(Fraction(1, 100))})
    )
    assert plain == pytest.approx(math.log(60) * 5 / RANGE)
    assert cents == pytest.approx(plain / 100)


# Quantiles.


def ranks(occupied, cells, share):
    """Return how many ranks each cell is away from the share: max(0, a - qn, qn - b), from its definition."""
    total, away = sum(occupied.values()), []
    for cell in range(cells):
        below = sum(units for other, units in occupied.items() if other < cell)
        wanted = share * total
        away.append(max(Fraction(0), below - wanted, wanted - below - occupied.get(cell, 0)))
    return away


def as_arrays(occupied):
    cells = sorted(occupied)
    return np.array(cells, dtype=np.int64), np.array([occupied[cell] for cell in cells], dtype=np.int64)


def quantile_law(occupied, cells, share, rates=RATES):
    drawing = parts(quantiles(as_arrays, [share], 0.1, cells), rates)
    return Counter({drawn[0][1]: mass for drawn, mass in law_of(drawing, occupied).items()})


def random_units(source, cells):
    """Return how many units are in each cell: none, one, a few or many; at times none at all."""
    most = int(source.choice([0, 1, 3, 300]))
    chosen = source.permutation(cells)[: int(source.integers(0, cells + 1))]
    units = {int(cell): int(source.integers(0, most + 1)) for cell in chosen}
    return {cell: number for cell, number in units.items() if number}


SHARES = [Fraction(text) for text in ("1/2", "1/4", "1/3", "3/4", "9/10", "99/100", "1/100", "2/7")]


def test_a_quantile_is_picked_by_how_many_ranks_cells_are_away():
    source = np.random.default_rng(8)
    for share in SHARES:
        rate = RANGE / (2 * max(share, 1 - share))
        for _ in range(size(15, 200)):
            cells = int(source.integers(1, 9))
            units = random_units(source, cells)
            away = ranks(units, cells, share)
            assert min(away) == 0
            weights = [mpmath.exp(-mpmath.mpf(float(rate)) * gap.numerator / gap.denominator) for gap in away]
            law = Counter({cell: float(weight / mpmath.fsum(weights)) for cell, weight in enumerate(weights)})
            assert distance(quantile_law(units, cells, share), law) < 1e-7
    assert quantile_law({}, 4, Fraction(1, 2)) == pytest.approx(dict.fromkeys(range(4), 0.25))


@pytest.mark.parametrize("share", [*SHARES, Fraction(1, 10**6), Fraction(999_999, 10**6)], ids=str)
def test_the_range_of_a_quantile_is_what_is_paid_for(share):
    """One unit more in any cell. Many units are needed to attain it where the share is that of few."""

    def worst(rates):
        source, largest = np.random.default_rng(9), 0.0
        for _ in range(size(60, 1000)):
            cells = int(source.integers(2, 8))
            many = 1 if min(share, 1 - share) >= Fraction(1, 100) else 10**6
            units = {cell: number * many for cell, number in random_units(source, cells).items()}
            cell = int(source.choice([0, cells - 1, source.integers(0, cells)]))
            more = units | {cell: units.get(cell, 0) + 1}
            logarithms = []
            for one in (units, more):
                gaps, rate = gaps_of(one, cells, share, rates)
                assert [Fraction(gap, share.denominator) for gap in gaps] == ranks(one, cells, share)
                logarithms.append([gap * rate for gap in gaps])
            # The logarithm of a quotient of two laws is that of the weights and a constant.
            ratios = [new - old for old, new in zip(*logarithms, strict=True)]
            largest = max(largest, float(max(ratios) - min(ratios)))
        return largest

    assert 0.99 * RANGE < worst(RATES) <= RANGE * ROUNDING
    assert worst(WRONG) > 1.04 * RANGE
    assert parts(quantiles(as_arrays, [share], 0.1, 4)).paid == (Everything(BoundedRange(RANGE)),)


def gaps_of(units, cells, share, rates=RATES):
    """Return the gaps of all cells and their rate, as a quantile is picked by them."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "targetcharge.mechanisms.picks.exponential_choice",
            lambda _, gaps, rate: seen.append(([int(gap) for gap in gaps], rate)) or 0,
        )
        parts(quantiles(as_arrays, [share], 0.1, cells), rates).draw(units, None)
    (pair,) = seen
    return pair


def test_the_laws_of_a_quantile_on_neighbours_have_that_range():
    """The same from all outcomes, no units among them, and with a rate that is 5% larger."""

    def worst(rates):
        source, largest = np.random.default_rng(10), 0.0
        for share in SHARES[:4]:
            for _ in range(size(40, 500)):
                cells = int(source.integers(2, 7))
                units = {cell: min(number, 9) for cell, number in random_units(source, cells).items()}
                cell = int(source.integers(0, cells))
                more = units | {cell: units.get(cell, 0) + 1}
                pair = (quantile_law(one, cells, share, rates) for one in (units, more))
                largest = max(largest, spread_of_ratios(*pair))
        return largest

    assert 0.99 * RANGE < worst(RATES) <= RANGE * ROUNDING
    assert worst(WRONG) > 1.04 * RANGE


def test_ranks_of_a_billion_units_are_exact():
    units, share = {2: 10**9 - 7, 5: 3, 6: 10**9 + 1}, Fraction(499_999, 10**6)
    gaps, _ = gaps_of(units, 8, share)
    assert [Fraction(gap, 10**6) for gap in gaps] == ranks(units, 8, share)


def test_several_quantiles_are_told_by_their_shares():
    shares, entropy = [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)], BufferedEntropy(11)
    units = {10: 1000, 20: 1000, 30: 1000, 40: 1000}
    several = quantiles(as_arrays, shares, 0.1, 50, lambda cell: cell / 2 - 1, name="thirds", question="asked")
    assert (several.name, several.count, several.question) == ("thirds", 3, "asked")
    drawn = parts(several).draw(units, entropy)
    assert [key for key, _ in drawn] == [0.25, 0.5, 0.9]
    # Between two cells that together have the share no unit is: each of them will do.
    assert [4.0 <= value <= 9.0 for _, value in drawn[:2]] == [True, True]
    assert drawn[2][1] == 19.0
    ((key, value),) = parts(quantiles(as_arrays, shares[2:], 0.1, 50)).draw(units, entropy)
    assert (key, value) == (None, 40)


def test_95_of_100_quantiles_are_within_their_margin():
    """Exactly, in ranks: on random distributions, and where as many cells as can be are just beyond it."""
    source = np.random.default_rng(12)
    for _ in range(size(100, 1000)):
        shares = [SHARES[place] for place in source.integers(0, len(SHARES), 2)]
        cells = int(source.integers(1, 30))
        units = random_units(source, cells)
        margin = parts(quantiles(as_arrays, shares, 0.1, cells)).margin
        assert margin == max(parts(quantiles(as_arrays, [share], 0.1, cells)).margin for share in shares)
        for share in shares:
            law, away = quantile_law(units, cells, share), ranks(units, cells, share)
            assert math.fsum(mass for cell, mass in law.items() if away[cell] > margin) <= 0.05


def test_power_a_margin_of_quantiles_could_not_be_much_less():
    """All units in one cell: the others are half of them away."""
    cells, rates = 200, PaidRates(0.005, 0.01)
    margin = parts(quantiles(as_arrays, [Fraction(1, 2)], 0.1, cells), rates).margin

    def picked(gap):
        law = quantile_law({70: 2 * gap}, cells, Fraction(1, 2), rates)
        assert ranks({70: 2 * gap}, cells, Fraction(1, 2))[0] == gap
        return 1 - law[70]

    assert 0.04 < picked(math.floor(margin) + 1) <= 0.05
    assert picked(math.floor(margin * 0.9) + 1) > 0.05


def test_real_quantiles_have_the_right_rate_and_no_other():
    units, share, cells = dict.fromkeys(range(30), 1), Fraction(1, 3), 30
    away = ranks(units, cells, share)

    def law(factor):
        weights = [math.exp(-0.5 / (2 * Fraction(2, 3)) * factor * gap) for gap in away]
        return {cell: weight / math.fsum(weights) for cell, weight in enumerate(weights)}

    right, *wrong = (law(factor) for factor in (1, 1.05, 1 / 1.05))
    drawing = parts(quantiles(as_arrays, [share], 0.1, cells), PaidRates(0.25, 0.5))
    entropy = BufferedEntropy(13)
    found = Counter(drawing.draw(units, entropy)[0][1] for _ in range(draws_to_tell(right, *wrong)))
    assert_only(found, right, *wrong)
