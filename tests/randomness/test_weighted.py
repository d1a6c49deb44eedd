"""One of many with weights e^{-rate·gap}: proposals and coins are exact, wherever digits lie; and the law."""

import importlib
import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.goodness import BufferedEntropy, assert_only, draws_to_tell
from tests.refusals import every
from tests.sizes import size

from targetcharge import InvalidParameter
from targetcharge.randomness import SystemEntropy, exponential_choice

module = importlib.import_module("targetcharge.randomness.weighted")

WORD = 2**64
ONES = WORD - 1
FARTHEST = 2**62

RATES = {
    "a hair": Fraction(1, 10**30),
    "1e-9": Fraction(1, 10**9),
    "0.01": Fraction(1, 100),
    "1/3": Fraction(1, 3),
    "1": Fraction(1),
    "a double": Fraction(0.7),
    "20": Fraction(20),
    "a long one": Fraction(2**61 + 1, 3**38),
}

EXPONENTS = {
    "none": Fraction(0),
    "a hair": Fraction(1, 10**40),
    "1e-25": Fraction(1, 10**25),
    "1e-12": Fraction(1, 10**12),
    "ln 2": Fraction(math.log(2)),
    "1": Fraction(1),
    "a weight of 1": Fraction(277, 10),
    "fewer digits than a word": Fraction(40),
    "about a word": Fraction(4436, 100),
    "more digits than a word": Fraction(50),
    "two words": Fraction(8872, 100),
    "300": Fraction(300),
    "just below 700": Fraction(700) - Fraction(1, 2**60),
    "700": Fraction(700),
    "just above 700": Fraction(700) + Fraction(1, 2**40),
    "what no double holds": Fraction(746),
    "50,000": Fraction(50_000),
    "the farthest": Fraction(FARTHEST, 5),
}
each_exponent = pytest.mark.parametrize("exponent", EXPONENTS.values(), ids=EXPONENTS)


class Scripted:
    """Gives words that are written down."""

    def __init__(self, *words):
        self.left = list(words)

    def word(self):
        return self.left.pop(0)


def share_and_bound(exponent):
    """Return the double next to e^{-exponent} and the integer weight that such a candidate is proposed with."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "below", lambda *_: 0)
        patch.setattr(module, "_taken", lambda _, *rest: seen.append(rest) or True)
        gap, rate = (1, exponent) if exponent else (0, Fraction(1))
        assert exponential_choice(None, np.array([gap]), rate) == 0
    ((asked, share, bound),) = seen
    assert asked == exponent
    return share, bound


def scaled(exponent, places):
    """Return ⌊2^{64·places}·e^{-exponent}⌋ by mpmath: 0 from two million on, for any places that are asked for."""
    if exponent > 2_000_000:
        return 0
    with mpmath.workprec(64 * places + 200):
        return int(
            mpmath.floor(
                mpmath.ldexp(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), 64 * places)
            )
        )


# Proposals.


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_every_candidate_is_proposed_with_a_weight_above_its_own_and_a_coin_for_the_rest(monkeypatch, rate):
    """A weight b and a coin of 2^40·e^{-x}/b make e^{-x} together: so b must be at least 2^40·e^{-x}.

    Places from 0 to the sum of all weights less one propose each candidate as often as its weight says.
    """
    unit = max(1, round(1 / rate))
    gaps = [0, 1, unit // 2, unit, 3 * unit, 28 * unit, 0, 44 * unit, 699 * unit, 701 * unit, FARTHEST, 2**40]
    gaps = np.array([min(gap, FARTHEST) for gap in gaps])
    places, proposed = [], []

    def below(_, bound):
        places.append(bound)
        return place

    def taken(_, *proposal):
        proposed.append(proposal)
        return True

    monkeypatch.setattr(module, "below", below)
    monkeypatch.setattr(module, "_taken", taken)
    start = place = 0
    for index, gap in enumerate(gaps.tolist()):
        place = start
        assert exponential_choice(None, gaps, rate) == index
        exponent, share, bound = proposed.pop()
        assert exponent == gap * rate
        with mpmath.workprec(200):
            exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
            assert mpmath.ldexp(exact, 40) <= bound <= mpmath.ldexp(exact, 40) * (1 + 2.0**-34) + 1
            assert exponent > 700 or abs(share - exact) <= exact * 2.0**-38
        start += bound
        place = start - 1
        assert exponential_choice(None, gaps, rate) == index
        assert proposed.pop() == (exponent, share, bound)
    assert set(places) == {start}


def test_a_proposal_whose_coin_fails_leaves_nothing_behind(monkeypatch):
    drawn, coins = iter([2**40 + 20, 5, 2**40 + 20]), iter([False, False, True])
    monkeypatch.setattr(module, "below", lambda *_: next(drawn))
    monkeypatch.setattr(module, "_taken", lambda *_: next(coins))
    assert exponential_choice(None, np.array([0, 1]), Fraction(1)) == 1
    assert next(coins, None) is None


# Coins: is a uniform number U below 2^64·bound/2^40 also below 2^64·e^{-x}?


def taken(exponent, uniform, *words):
    """Return the coin for a U that begins with a whole number and goes on with words; and how many are left."""
    share, bound = share_and_bound(exponent)
    assert 0 <= uniform < bound << 24
    source, whole = Scripted(*words), [uniform]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "below", lambda _, most: whole.pop() if most == bound << 24 else None)
        coin = module._taken(source, exponent, share, bound)
    assert not whole
    return coin, len(source.left)


def decided(exponent, uniform, *words):
    """Return whether U is below 2^64·e^{-exponent}, and how many of the words it takes to know that."""
    digits = uniform
    for place, word in enumerate((*words, 0), start=1):
        weight = scaled(exponent, place)
        if digits != weight or exponent == 0:  # 2^64 is whole: U is below it or not, whatever its words are
            return digits < weight, place - 1
        digits = digits << 64 | word
    raise AssertionError(words)


def rightly(exponent, uniform, *words):
    """Return whether the coin is what it must be, and takes as many words as that needs."""
    try:
        coin, left = taken(exponent, uniform, *words)
    except IndexError:  # more words than there are
        return False
    below, needed = decided(exponent, uniform, *words)
    return coin == below and left == len(words) - needed


def around(exponent):
    """Yield numbers U: at both ends, where floating point begins and ends to decide, and around the weight.

    These follow its digits for a while, and then lie just below or just above it.
    """
    _, bound = share_and_bound(exponent)
    weight, most, other = scaled(exponent, 1), (bound << 24) - 1, [ONES // 3] * 2
    margin = weight >> 36
    for centre in (0, weight - margin, weight, weight + margin, most):
        for uniform in range(centre - 3, centre + 4):
            if 0 <= uniform <= most and uniform != weight:
                yield uniform, *other
    if exponent == 0:
        yield weight, *other
        return
    digits = scaled(exponent, 4)
    words = [digits >> 64 * place & ONES for place in (2, 1, 0)]
    for place, word in enumerate(words):
        for near in {max(word - 1, 0), min(word + 1, ONES)} - {word}:
            yield weight, *words[:place], near, *other


@each_exponent
def test_coins_around_every_kind_of_border_are_decided_as_they_must(exponent):
    asked = list(around(exponent))
    assert len(asked) > 8
    for uniform, *words in asked:
        assert rightly(exponent, uniform, *words), (uniform, words)


@each_exponent
def test_any_coins_are_decided_as_they_must(exponent):
    _, bound = share_and_bound(exponent)
    source = np.random.default_rng(1)
    for _ in range(size(100, 2000)):
        uniform = int(source.integers(0, 2**63)) * (bound << 24) >> 63
        assert rightly(exponent, uniform, ONES // 3, ONES // 3, ONES // 3)


@each_exponent
def test_random_exponents_around_each_are_decided_as_they_must(exponent):
    source = np.random.default_rng(2)
    for _ in range(size(5, 100)):
        other = exponent * (1 + Fraction(int(source.integers(-1000, 1000)), 10**5))
        assert all(rightly(other, uniform, *words) for uniform, *words in around(other)), other


def test_the_nearest_candidate_is_taken_also_where_its_coin_needs_digits():
    """2^64·e^0 has no digits: U is below 2^64, or not. Both are drawn once in 2^36 times."""
    highest = (2**40 + 16) * 2**24 - 1
    for uniform, coin in ((0, True), (WORD - 1, True), (WORD, False), (WORD + 1, False), (highest, False)):
        assert taken(Fraction(0), uniform) == (coin, 0)
    # From the bits on: a place of 41 bits, and a number of 65; U = 2^64 - 1 is taken, 2^64 is not.
    accepted, refused = (0, 0, ONES), (0, 1 << 63, 0)
    assert exponential_choice(Scripted(*refused, *accepted), np.array([0, 9]), Fraction(2)) == 0
    assert exponential_choice(Scripted(*refused, *accepted), np.array([0]), Fraction(2)) == 0


def sound(exponent):
    """Return whether all is as it must be of a candidate: its weight is one from above, and so are its coins."""
    try:
        _, bound = share_and_bound(exponent)
    except IndexError:  # its weight is 0: it is never proposed
        return False
    with mpmath.workprec(200):
        exact = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        if bound < mpmath.ldexp(exact, 40):
            return False
    return all(rightly(exponent, *asked) for asked in around(exponent))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("_ERROR", 0.0), ("_ERROR", 2.0**-60), ("_FAR", 1000.0)],
    ids=["no margin", "too small a margin", "weights of 0"],
)
def test_power_a_filter_that_dares_more_is_noticed(monkeypatch, name, wrong):
    exponents = [Fraction(float(number)) for number in np.random.default_rng(3).uniform(0, 30, 60)]
    exponents.append(Fraction(750))
    assert all(sound(exponent) for exponent in exponents)
    monkeypatch.setattr(module, name, wrong)
    assert not all(sound(exponent) for exponent in exponents)


def test_the_exponential_of_numpy_is_as_right_as_the_margin_takes_it_to_be():
    exponents = np.random.default_rng(4).uniform(0, 700, size(2000, 50_000))
    with mpmath.workprec(200):
        worst = max(
            abs(share / mpmath.exp(-mpmath.mpf(exponent)) - 1)
            for exponent, share in zip(exponents.tolist(), np.exp(-exponents).tolist(), strict=True)
        )
    assert worst < 2.0**-46


# The law.


def law_of(gaps, rate):
    """Return {index: probability}, from the definition."""
    weights = {index: math.exp(-float(rate) * gap) for index, gap in enumerate(gaps)}
    total = math.fsum(weights.values())
    return {index: weight / total for index, weight in weights.items()}


LAWS = {
    "a ladder": (range(12), Fraction(1, 3)),
    "from the farthest on": (range(40, -1, -1), Fraction(1, 10)),
    "one and many": ([0, *[30] * 200], Fraction(1, 5)),
    "large gaps": ([10**15 * step for step in range(8)], Fraction(1, 2 * 10**15)),
    "some out of reach": ([0, 1, FARTHEST, 2, 10**6, 3], Fraction(2, 3)),
    "a small rate": ([round(10**9 * share) for share in np.linspace(0, 3, 30)], Fraction(1, 10**9)),
}


@pytest.mark.parametrize(("gaps", "rate"), LAWS.values(), ids=LAWS)
def test_choices_have_the_right_rate_and_no_other(gaps, rate):
    law, *wrong = (law_of(gaps, rate * factor) for factor in (1, Fraction(105, 100), Fraction(100, 105)))
    entropy, candidates = BufferedEntropy(5), np.array(gaps)
    count = draws_to_tell(law, *wrong)
    assert_only(Counter(exponential_choice(entropy, candidates, rate) for _ in range(count)), law, *wrong)


def test_equal_candidates_are_equally_likely():
    law, wrong = dict.fromkeys(range(7), 1 / 7), law_of([0, 0, 0, 1, 1, 1, 1], 0.1)
    entropy, gaps = BufferedEntropy(6), np.zeros(7, dtype=np.int64)
    count = draws_to_tell(law, wrong)
    assert_only(Counter(exponential_choice(entropy, gaps, Fraction(3)) for _ in range(count)), law, wrong)


def test_what_is_out_of_reach_is_never_chosen():
    """Each of a million candidates is proposed with the least weight, and its coin is e^{-700} and less."""
    gaps = np.full(1_000_000, FARTHEST)
    gaps[::2] = 1400
    gaps[777_777] = 0
    entropy = SystemEntropy()
    assert {exponential_choice(entropy, gaps, Fraction(1, 2)) for _ in range(size(10, 200))} == {777_777}


def test_a_candidate_beyond_double_precision_is_not_left_out():
    """At 746 times the rate its weight is no double but 0; the digits say that it is e^{-746} all the same."""
    digits = scaled(Fraction(746), 18)
    words = [digits >> 64 * place & ONES for place in reversed(range(18))]
    first = next(place for place, word in enumerate(words) if word)
    assert first == 16
    assert rightly(Fraction(746), *words[:first], words[first] - 1, ONES)
    assert taken(Fraction(746), *words[:first], words[first] - 1, ONES) == (True, 1)
    assert taken(Fraction(746), *words[:first], words[first] + 1, ONES) == (False, 1)


def test_one_candidate_is_always_chosen():
    entropy = SystemEntropy()
    for rate in RATES.values():
        assert {exponential_choice(entropy, np.array([0]), rate) for _ in range(50)} == {0}


def test_as_many_candidates_as_there_may_be():
    """4,194,304 equal ones: their weights add up to 2^62 and a little, and each end is chosen where it must be."""
    gaps = np.zeros(2**22, dtype=np.int64)
    weight = 2**40 + 16
    for index in (0, 1, 2**21, 2**22 - 1):
        for place in (index * weight, (index + 1) * weight - 1):
            # 63 bits for the place, then 65 for the coin.
            assert exponential_choice(Scripted(place << 1, 0, 0), gaps, Fraction(1, 7)) == index


def test_none_and_more_candidates_than_there_may_be_are_refused():
    def check(count):
        with pytest.raises(InvalidParameter, match=r"gaps is .* those of 1 to 4,194,304 candidates"):
            exponential_choice(Scripted(), np.zeros(count, dtype=np.int64), Fraction(1))

    every([0, 2**22 + 1], check)
