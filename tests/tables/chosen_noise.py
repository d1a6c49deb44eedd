"""Noise that is chosen for two tables at once: one of finitely many values, each for a range of them.

**No loss by ranges.** A number that is n on one table and m on the other, plus discrete Laplace noise of rate r,
is v with probabilities proportional to e^{-r|v-n|} and e^{-r|v-m|}. For v ≤ min(n, m) their ratio is e^{r(n-m)},
and for v ≥ max(n, m) it is e^{r(m-n)}, whatever v is. So, given that v is in one of these two ranges, its law is
the same on both tables: which v it is could as well be a public coin. An analyst who uses it mixes analysts who do
not, and the hockey-stick divergence is convex, so the best of those tells as much. What the real code does with v
(publish it, charge for it) depends only on which side of a threshold it is on, and ranges are cut at thresholds.
Values strictly between n and m are ranges of their own, where they are published; values that are published as
the same (None, or BELOW) are one range.

**Gaussian noise**, which some meters give to what is always paid for, has another ratio at every value. There a
range stands for a number that is rounded to one value of it: that is as private as it was, so the claim covers it.
It is cut in steps of σ around the numbers.

**Selections** compare numbers with each other after the noise: there a range stands for a candidate whose noisy
number is rounded to one value of it. That is as private as it was, so the claim covers it; cuts make it finer.

Probabilities are doubles. Each is right to a few units in the last place, and one run multiplies less than a
hundred of them: what is compared with a claim is right to 1e-13, and `judge` allows 1e-9 of the claim.

>>> ranges((3, 5), cuts={4}, told=ALL)
[(None, 3), (4, 4), (5, None)]
>>> from targetcharge.mechanisms.noise import CountNoise
>>> from targetcharge.randomness import Rate
>>> steps_of(CountNoise("gaussian", Rate(1, 4)), (3, 5))
[-5, -1, 3, 5, 9, 13]
"""

from __future__ import annotations

import importlib
import math
import threading
from functools import lru_cache

from tests.discrete_gaussian import DiscreteGaussian
from tests.discrete_laplace import DiscreteLaplace

from targetcharge.mechanisms.noise import CountNoise

LAWS = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}

ALL, NONE = (-math.inf, math.inf), (math.inf, -math.inf)
"""Ranges of numbers that are published as they are."""

HERE = threading.local()
"""`HERE.player` gives what is chosen to the table that runs in this thread."""


class _Noise:
    """What is added to it becomes what was chosen."""

    def __init__(self, noise):
        self._noise = noise

    def __radd__(self, count):
        return HERE.player.wait(("noise", count, self._noise))


def choose_noise(monkeypatch):
    """Let all noise of tables be chosen from now on; they have no offset."""
    monkeypatch.setattr(CountNoise, "draw", lambda noise, _: _Noise(noise))
    monkeypatch.setattr(CountNoise, "draws", lambda noise, _, count: [_Noise(noise)] * count)
    monkeypatch.setattr("targetcharge.sessions.opening.draw_offset", lambda *_: 0)
    wrapper = importlib.import_module("targetcharge.mechanisms.wrappers")
    monkeypatch.setattr(wrapper, "bernoulli", lambda _entropy, chance: HERE.player.wait(("coin", chance)))


def ranges(numbers, cuts, told):
    """Return the first and last value of each range; None where it has no end.

    Args:
        numbers: on either table.
        cuts: where what is published begins to be another.
        told: from which value up to which the value itself is published, or kept: there a range is one ratio.
    """
    inner = [start for start in range(min(numbers) + 1, max(numbers) + 1) if told[0] < start <= told[1]]
    starts = sorted({*inner, *cuts})
    return list(zip([None, *starts], [*(start - 1 for start in starts), None], strict=True))


def steps_of(noise, numbers):
    """Return where the ranges of Gaussian noise are cut, to tell more of it; those of other noise need not be."""
    if noise.noise != "gaussian":
        return []
    step = max(1, round(noise.rate.denominator / noise.rate.numerator))
    low, high = min(numbers), max(numbers)
    return sorted({low - 2 * step, low - step, low, high, high + step, high + 2 * step})


@lru_cache(maxsize=100_000)
def chance_of(first, last, number, noise):
    """Return the probability that a number with noise lies in a range; small ones as precise as large ones."""
    law = LAWS[noise.noise].of(noise.rate)
    if first is None:
        return 1.0 if last is None else law.at_least(number - last)
    if last is None:
        return law.at_least(first - number)
    if last - first < 64:
        return math.fsum(law.mass(value - number) for value in range(first, last + 1))
    return law.at_least(first - number) - law.at_least(last + 1 - number)


def pair_of(asked, cuts, told):
    """Return the law of what comes out, on either table: a coin, or a number with noise."""
    if asked[0][0] == "coin":
        first, second = (chance for _, chance in asked)
        return {True: (first, second), False: (1 - first, 1 - second)}
    (_, number, noise), (_, other, _) = asked
    cuts = {*cuts, *steps_of(noise, (number, other))}
    found = {}
    for first, last in ranges((number, other), cuts, told):
        value = next((end for end in (first, last) if end is not None), number)
        found[value] = chance_of(first, last, number, noise), chance_of(first, last, other, noise)
    return found
