"""How many elements a sketch of maxima holds: the most likely number, and how far off it may be.

Each of n elements falls into a given bucket of m with probability 1/m. With k phantoms, and F(i) the probability
of a level up to i,

    Pr[maximum ≤ i] = F(i)^k · (1 - (1-F(i))/m)^n,

which is exact about phantoms and floor. The logarithm of a difference of two such terms is concave in n.

>>> from fractions import Fraction
>>> from targetcharge.mechanisms.maxima import MaximaLaw
>>> estimate = DistinctEstimate.of(MaximaLaw.of(Fraction(1, 2)), buckets=1024)
>>> sketch = np.zeros(1024, np.uint8)
>>> estimate.most_likely(sketch)
0
>>> 690 < estimate.deviation(20_000) < 700
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.numerics.search import largest_integer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.mechanisms.maxima import MaximaLaw

MOST_ELEMENTS: Final = 2**53

_DEVIATIONS: Final = 2
_FAR: Final = 700.0
"""The exponential of more is too large for a double; the term that has it is 0."""


@final
@dataclass(frozen=True, eq=False)
class DistinctEstimate:
    """Reads sketches of one law and size. Public: it knows nothing of the elements.

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
