"""Distinct elements, counted by a sketch that is private by its own randomness: no noise is added.

The sketch (Smith, Song, Thakurta 2020): every element falls into a random bucket and has a random level. A bucket
keeps the highest level of its elements and of some phantoms, which are always there. Levels up to a floor count as
the floor, here level 0.

>>> from targetcharge.randomness import SystemEntropy
>>> visits = [f"patient {number % 20_000}" for number in range(50_000)]
>>> algorithm = distinct_count(lambda rows: rows, epsilon=0.5, threshold=10_000)
>>> 15_000 < algorithm.run(visits, SystemEntropy()) < 25_000
True
>>> algorithm.run(visits[:100], SystemEntropy()) is None, algorithm.default_target
(True, NotPrior(prior=None))
>>> law = MaximaLaw.of(Fraction(1, 10))
>>> law.phantoms, len(law.tails)
(10, 224)
>>> law.levels(np.array([2**63, 2**60, 2**10], np.uint64)).tolist()  # a word's level is higher the smaller it is
[0, 3, 203]
>>> estimate = DistinctEstimate.of(MaximaLaw.of(Fraction(1, 2)), buckets=1024)
>>> estimate.most_likely(np.zeros(1024, np.uint8)), 690 < estimate.deviation(20_000) < 700
(0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.accuracy import Accuracy, above, exactly
from targetcharge.mechanisms.algorithm import Algorithm, algorithm_name
from targetcharge.mechanisms.gauge import Gauge
from targetcharge.mechanisms.keyed_hash import KeyedHash
from targetcharge.numerics.rounding import down
from targetcharge.numerics.search import largest_integer
from targetcharge.randomness.entropy import WORD_BITS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

MOST_ELEMENTS: Final = 2**53

_BUCKETS: Final = 1024
"""Without a threshold: an error of about 3% of the elements and phantoms together."""

_FEWEST_CHOSEN: Final = 64
_MOST_CHOSEN: Final = 2**14
_FEWEST: Final = 16
_MOST: Final = 2**20

_MOST_PHANTOMS: Final = 2**26
"""In all buckets together: half a gigabyte of entropy for every run, in pieces."""

_LEAST_EPSILON: Final = 2.5e-7
"""For one element: with less, 16 buckets would need more phantoms."""

_WHOLE: Final = 1 << WORD_BITS
_STEPS_AN_OCTAVE: Final = 4
"""A level must fit in a byte, and twice as many would lower the error by 0.2% only."""

_SMALLEST_TAIL: Final = 1 << 5
_CHUNK_WORDS: Final = 1 << 16

_DEVIATIONS: Final = 2
_FAR: Final = 700.0
"""The exponential of more is too large for a double; the term that has it is 0."""


def distinct_count(
    elements: Callable[[Any], object],
    epsilon: float,
    *,
    threshold: float | None = None,
    per_unit: int = 1,
    buckets: int | None = None,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes about how many distinct elements there are.

    With m buckets and k = 1/(e^{ε/per_unit} - 1) phantoms in each, rounded up, the estimate is off by about
    (elements + m·k)/√m. One pass over the elements, in memory that does not depend on them: a byte a bucket.

    The ε is exact for a random function in the place of the hash. The hash is BLAKE2b with a secret key, drawn
    anew for every run: ε holds against all who cannot tell it from one (docs/theory/labels.md#distinct-counts).

    Args:
        elements: a function of the data that returns an array or any other iterable of integers, floats, texts or
            bytes. None and NaN are missing; equal elements count once, as in a Python set.
        epsilon: ε of one run.
        threshold: the least estimate that is published, else None. Then it costs only when it publishes one:
            `default_target` is NotPrior(None). Left out, every estimate is published.
        per_unit: the most distinct elements that a unit adds. **It is not checked**: where a unit has more,
            `elements` must leave some out, and choose them by the unit's own rows alone.
        buckets: from 16 to 2^20; left out, threshold/2k and from 64 to 2^14, or 1,024 without a threshold.
        name: what the transcript calls it.
    """
    checks.function_of_data(elements, "elements")
    law = _law(epsilon, per_unit)
    least = None if threshold is None else _least(threshold)
    size = fitting_buckets(law.phantoms, least) if buckets is None else _checked(buckets, law.phantoms)
    estimate = DistinctEstimate.of(law, size)

    def run(data: object, entropy: Entropy) -> int | None:
        sketch = law.only_phantoms(size, entropy)
        for words in KeyedHash.draw(entropy).words(elements(data)):
            law.put(sketch, (words[:, 0] % np.uint64(size)).astype(np.intp), words[:, 1])
        distinct = estimate.most_likely(sketch)
        return distinct if least is None or distinct >= least else None

    gauge = Gauge(lambda steps: max(0, steps), int, math.ceil, blur=estimate.margin)
    return Algorithm(
        name=algorithm_name(name, "distinct_count", elements),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        default_target=None if least is None else NotPrior(None),
        accuracy=Accuracy(0.0, (0, 0), exactly if least is None else above(least - 1), gauge),
        examples=lambda: (0, 1_000) if least is None else (None, least),
    )


def _law(epsilon: float, per_unit: int) -> MaximaLaw:
    """Return the law for one element of ε/per_unit: a unit's elements may fall into as many buckets."""
    one = Fraction(checks.query_epsilon(epsilon, "epsilon")) / checks.positive_integer(per_unit, "per_unit")
    if one < _LEAST_EPSILON:
        least = _LEAST_EPSILON * per_unit
        expected = f"at least {least:g} at per_unit {per_unit}: with less it says nothing"
        raise InvalidParameter("epsilon", epsilon, expected)
    return MaximaLaw.of(one)


def _least(threshold: float) -> int:
    if checks.threshold(threshold, "threshold") < 1:
        raise InvalidParameter("threshold", threshold, "at least 1, or None to publish every estimate")
    return math.ceil(threshold)


def fitting_buckets(phantoms: int, least: int | None) -> int:
    """Return a number of buckets whose error is near the smallest at the threshold, 2·√(threshold·phantoms)."""
    wanted = _BUCKETS if least is None else max(_FEWEST_CHOSEN, min(_MOST_CHOSEN, least // (2 * phantoms)))
    return min(wanted, _MOST_PHANTOMS // phantoms)


def _checked(buckets: int, phantoms: int) -> int:
    most = min(_MOST, _MOST_PHANTOMS // phantoms)
    whole = checks.positive_integer(buckets, "buckets")
    if not _FEWEST <= whole <= most:
        expected = f"an integer from {_FEWEST} to {most:,}, with {phantoms:,} phantoms in each"
        raise InvalidParameter("buckets", buckets, expected)
    return whole


@final
@dataclass(frozen=True)
class MaximaLaw:
    """How levels are drawn, and how many phantoms hide an element.

    An element has a level above i with probability tails[i]/2^64, exactly: its word, 64 fair bits, is below
    tails[i]. Adding an element to a bucket changes the probability of any maximum by a factor from F to
    1 + 1/phantoms, where F = 1 - tails[0]/2^64 is the probability of the floor
    (docs/theory/labels.md#distinct-counts).

    Attributes:
        phantoms: in every bucket.
        tails: of the levels, falling; the highest level is len(tails).
    """

    phantoms: int
    tails: tuple[int, ...]

    @staticmethod
    def of(epsilon: Fraction) -> MaximaLaw:
        """Return the law under which adding or removing an element has a loss of at most ε.

        Fewest phantoms and lowest floor: 1 + 1/phantoms ≤ e^ε and F ≥ e^-ε, rounded towards privacy.
        """
        least = down(float(epsilon))
        phantoms = math.ceil(1 / Fraction(down(math.expm1(least))))
        first = math.floor(Fraction(down(-math.expm1(-least))) * _WHOLE)
        octaves = (first // _SMALLEST_TAIL).bit_length() - 1
        steps = [2.0 ** (-step / _STEPS_AN_OCTAVE) for step in range(_STEPS_AN_OCTAVE)]
        tails = tuple(int(math.ldexp(first, -octave) * step) for octave in range(octaves + 1) for step in steps)
        return MaximaLaw(phantoms, tails)

    @cached_property
    def _rising(self) -> NDArray[np.uint64]:
        return np.array(self.tails[::-1], dtype=np.uint64)

    def levels(self, words: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return the levels of random words: how many tails are above each."""
        return (len(self.tails) - np.searchsorted(self._rising, words, side="right")).astype(np.uint8)

    def only_phantoms(self, buckets: int, entropy: Entropy) -> NDArray[np.uint8]:
        """Return a sketch without elements: in each bucket the highest level of its phantoms, a word for each."""
        smallest = entropy.words(buckets)
        left, rows = self.phantoms - 1, max(1, _CHUNK_WORDS // buckets)
        while left > 0:
            drawn = entropy.words(min(left, rows) * buckets).reshape(-1, buckets)
            smallest = np.minimum(smallest, drawn.min(axis=0))
            left -= len(drawn)
        return self.levels(smallest)

    def put(self, sketch: NDArray[np.uint8], buckets: NDArray[np.intp], words: NDArray[np.uint64]) -> None:
        """Put elements into a sketch by their buckets and words."""
        above = words < self._rising[-1]
        np.maximum.at(sketch, buckets[above], self.levels(words[above]))


@final
@dataclass(frozen=True, eq=False)
class DistinctEstimate:
    """How many elements a sketch of a law and size holds. Public: it knows nothing of the elements.

    Each of n elements falls into a given bucket of m with probability 1/m. With k phantoms, and F(i) the
    probability of a level up to i,

        Pr[maximum ≤ i] = F(i)^k · (1 - (1-F(i))/m)^n,

    which is exact about phantoms and floor. The logarithm of a difference of two such terms is concave in n.

    Attributes:
        buckets: their number.
        phantoms: in all buckets together.
        shrink: ln(1 - (1-F(i))/m) by level: what one more element adds to ln Pr[maximum ≤ i].
        odds: k·ln(F(i)/F(i-1)) by level, from level 1.
        reach: k·ln F(i) by level.
    """

    buckets: int
    phantoms: int
    shrink: NDArray[np.float64]
    odds: NDArray[np.float64]
    reach: NDArray[np.float64]

    @staticmethod
    def of(law: MaximaLaw, buckets: int) -> DistinctEstimate:
        """Return the estimate for sketches of a law with so many buckets."""
        tails = np.ldexp(np.array([*law.tails, 0], dtype=np.float64), -64)
        reach = law.phantoms * np.log1p(-tails)
        return DistinctEstimate(buckets, law.phantoms * buckets, np.log1p(-tails / buckets), np.diff(reach), reach)

    def most_likely(self, sketch: NDArray[np.uint8]) -> int:
        """Return the number of elements, at least 0, that makes a sketch's maxima most likely, one by one."""
        counts = np.bincount(sketch, minlength=len(self.shrink))

        def grows(elements: int) -> bool:
            return float(counts @ self._scores(elements - 0.5)) > 0  # so that it is rounded, not cut off

        return largest_integer(grows, MOST_ELEMENTS)

    def _scores(self, elements: float) -> NDArray[np.float64]:
        """Return the derivative of ln Pr[maximum = i] by the number of elements, for each level; it falls."""
        scores = self.shrink.copy()
        steps = np.diff(self.shrink)
        scores[1:] += steps / np.expm1(np.minimum(self.odds + steps * elements, _FAR))
        return scores

    def deviation(self, elements: float) -> float:
        """Return the estimate's standard deviation where there are so many elements, by Fisher's information.

        As if buckets were independent, which is a little more than the truth: they share the elements.
        """
        up_to = np.exp(self.reach + elements * self.shrink)
        masses = np.diff(up_to, prepend=0.0)
        information = self.buckets * float(masses @ self._scores(elements) ** 2)
        return 1 / math.sqrt(information)

    def margin(self, estimate: int) -> int:
        """Return how far the truth is from an estimate, either way, at most: in about 95% of runs or more.

        The logarithm of "elements and phantoms" is off by two relative deviations at most.
        """
        whole = estimate + self.phantoms
        return math.ceil(whole * math.expm1(_DEVIATIONS * self.deviation(estimate) / whole))
