"""A noisy count that is published only if it differs from an earlier value: pay for change.

>>> from targetcharge.randomness import SystemEntropy
>>> algorithm = changed(len, prior=1000, tolerance=50, epsilon=1.0)
>>> algorithm.run(range(1010), SystemEntropy())
UNCHANGED
>>> abs(algorithm.run(range(2000), SystemEntropy()) - 2000) < 100
True
>>> algorithm.default_target
NotPrior(prior=UNCHANGED)
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, final

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.accuracy import Accuracy, Range, above
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.between import side_law
from targetcharge.mechanisms.naming import title
from targetcharge.mechanisms.noise import NoiseLaw, rate_for
from targetcharge.outcomes import UNCHANGED, Mark
from targetcharge.randomness import discrete_laplace

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy


def changed(
    count: Callable[[Any], int],
    prior: float | Fraction,
    tolerance: float | Fraction,
    epsilon: float,
    *,
    threshold: float | None = None,
    sensitivity: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that publishes UNCHANGED where a noisy count is close to an earlier value, else itself.

    It costs only when the count has changed: `default_target` is NotPrior(UNCHANGED). A changed count below the
    threshold, if there is one, is published as None, and costs too.

    Args:
        count: a function of the data whose value is an integer.
        prior: the earlier value: a published one, or a guess; never one that was read off the data.
        tolerance: how far the noisy count may be from the prior to be UNCHANGED, ends included.
        epsilon: ε of one run; the noise has rate ε/sensitivity.
        threshold: the least changed count that is published; None to publish all.
        sensitivity: the most the count changes when a unit is added or removed; an integer.
        name: what the transcript calls it.
    """
    checks.function_of_data("count", count)
    low, high = _unchanged(prior, tolerance)
    least = None if threshold is None else math.ceil(checks.threshold("threshold", threshold))
    rate = rate_for(epsilon, sensitivity)

    def run(data: object, entropy: Entropy) -> int | Mark | None:
        value = operator.index(count(data)) + discrete_laplace(entropy, rate)
        if low <= value <= high:
            return UNCHANGED
        return value if least is None or value >= least else None

    nothing = math.inf if least is None else least - 1
    published = above(low - 1 if low <= nothing <= high else nothing)

    def span(outcome: object) -> Range | None:
        return (low, high) if outcome is UNCHANGED else published(outcome)

    return Algorithm(
        name=title(name, "changed", count),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        default_target=NotPrior(UNCHANGED),
        oracle=ChangeOracle(count, low, high, least, NoiseLaw.of(rate)),
        accuracy=Accuracy.of(rate, span),
        prior=_plain(prior),
    )


def _plain(prior: float | Fraction) -> float:
    """Return a prior as one of Python's own numbers: a ledger keeps nothing else."""
    exact = _exact("prior", prior, "a finite number")
    whole = isinstance(prior, Rational) and exact.denominator == 1
    return int(exact) if whole else float(exact)


def _unchanged(prior: float | Fraction, tolerance: float | Fraction) -> tuple[int, int]:
    """Return the first and the last integer within the tolerance of the prior."""
    expected = "a finite number of at least 0"
    middle = _exact("prior", prior, "a finite number")
    reach = _exact("tolerance", tolerance, expected)
    if reach < 0:
        raise InvalidParameter("tolerance", tolerance, expected)
    low, high = math.ceil(middle - reach), math.floor(middle + reach)
    if low > high:
        needed = float(min(middle - math.floor(middle), math.ceil(middle) - middle))
        raise InvalidParameter("tolerance", tolerance, f"at least {needed:g}: no integer is closer to {prior!r}")
    return low, high


def _exact(name: str, value: float | Fraction, expected: str) -> Fraction:
    """Return a finite number as it was given, unrounded."""
    number = checks.real(name, value, expected)  # type: ignore[arg-type]  # a fraction is a real number too
    if not math.isfinite(number):
        raise InvalidParameter(name, value, expected)
    if isinstance(value, Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(number)


@final
@dataclass(frozen=True)
class ChangeOracle:
    """The law of a noisy count that is UNCHANGED from `low` to `high`, and else published from `least` on."""

    count: Callable[[Any], int]
    low: int
    high: int
    least: int | None
    noise: NoiseLaw

    def probability(self, data: object, outcome: object) -> float:
        """Return the mass of the integers close to the prior, of those that are not published, or of one count."""
        count = operator.index(self.count(data))
        if outcome is UNCHANGED:
            return self._unchanged(count)
        if outcome is None:
            return self._nothing(count)
        return self.noise.mass(outcome - count) if type(outcome) is int and self._is_published(outcome) else 0.0

    def peak(self, data: object) -> float:
        """Return the largest of UNCHANGED's mass, None's and that of the true count, if it is published.

        No other count is the peak: what stands for the true count has at least the noise's largest mass.
        """
        count = operator.index(self.count(data))
        return max(self._unchanged(count), self._nothing(count), self._itself(count))

    def rest(self, data: object) -> float:
        """Return the mass of everything else."""
        count = operator.index(self.count(data))
        unchanged, nothing, itself = self._unchanged(count), self._nothing(count), self._itself(count)
        if itself > max(unchanged, nothing):
            return 2 * self.noise.at_least(1)
        return min(unchanged, nothing) + self._published(count)

    def _is_published(self, value: int) -> bool:
        return not self.low <= value <= self.high and (self.least is None or value >= self.least)

    def _unchanged(self, count: int) -> float:
        return self._within(count, self.low, self.high)

    def _itself(self, count: int) -> float:
        return self.noise.mass(0) if self._is_published(count) else 0.0

    def _nothing(self, count: int) -> float:
        if self.least is None:
            return 0.0
        under = self.noise.at_least(count - min(self.low, self.least) + 1)
        return under + self._within(count, self.high + 1, self.least - 1)

    def _published(self, count: int) -> float:
        if self.least is None:
            return self.noise.at_least(count - self.low + 1) + self.noise.at_least(self.high + 1 - count)
        above = self.noise.at_least(max(self.least, self.high + 1) - count)
        return above + self._within(count, self.least, self.low - 1)

    def _within(self, count: int, first: int, last: int) -> float:
        return side_law(count, first, last, self.noise)[1] if first <= last else 0.0
