"""Batteries: many private tests of one ε whose counts come from one computation, such as one scan of a table.

>>> from targetcharge.randomness import SystemEntropy
>>> tests = battery(lambda data: [len(data), 0], keys=["all", "none"], threshold=100, epsilon=1.0)
>>> scores = tests.draw(range(1000), SystemEntropy())
>>> [score >= least for score, least in zip(scores, tests.least)]
[True, False]
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.accuracy import COUNTED, Accuracy, above
from targetcharge.mechanisms.algorithm import algorithm_name, checked_name, together
from targetcharge.mechanisms.choice import row_of
from targetcharge.mechanisms.noise import rate_for
from targetcharge.outcomes import PUBLISHABLE, UnpublishableError, publishable
from targetcharge.randomness import discrete_laplace_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from targetcharge.mechanisms.accuracy import Gauge
    from targetcharge.mechanisms.algorithm import Algorithm
    from targetcharge.randomness import Entropy, Rate

    Draws = Callable[[int, int], Iterable[int]]
    """The noisy counts from one test up to another."""

_BLOCK: Final = 256
"""Draws of noise at a time, where not all tests are drawn at once."""


@final
@dataclass(frozen=True)
class Battery:
    """Tests that are asked one after another; each publishes its noisy count from its threshold on, else nothing.

    Attributes:
        tests: to be priced and named by, one for each; never run on their own.
        keys: what each is about, as it is published; None where its name says it.
        least: the least noisy count that each publishes, in steps.
        counts: a function of the data: one integer for each test.
        rate: of the noise.
        gauge: how steps are shown.
        later: a function of the data whose value gives the counts of the tests from one index up to another, each
            when it is due; None if no count depends on what was published before it.
    """

    tests: tuple[Algorithm, ...]
    keys: tuple[object, ...]
    least: tuple[int, ...]
    counts: Callable[[Any], Iterable[int]]
    rate: Rate
    gauge: Gauge = COUNTED
    later: Callable[[Any], Callable[[int, int], Iterable[int]]] | None = None

    def __len__(self) -> int:
        """Return how many tests there are."""
        return len(self.tests)

    def draws(self, data: object, entropy: Entropy) -> Draws:
        """Return what gives the noisy counts from one test up to another, in order, each once."""
        if self.later is None:
            return _kept(self.draw(data, entropy))
        counts, noise = self.later(data), _noise(entropy, self.rate)

        def due(first: int, last: int) -> Iterator[int]:
            for count in counts(first, last):
                yield operator.index(count) + next(noise)

        return due

    def draw(self, data: object, entropy: Entropy) -> list[int]:
        """Return all noisy counts: the data is touched here, once."""
        counts = row_of(self.counts(data), len(self.tests))
        noise = discrete_laplace_array(entropy, self.rate, len(counts)).tolist()
        return [operator.index(count) + shift for count, shift in zip(counts, noise, strict=True)]


def battery(
    counts: Callable[[Any], Iterable[int]],
    keys: Sequence[object],
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    gauge: Gauge = COUNTED,
    name: str | None = None,
) -> Battery:
    """Return tests of every key of a computation against one threshold.

    Each is an ε-DP computation of its own: a unit may change every count, and only hits are charged.

    Args:
        counts: a function of the data whose value is one integer for each key, in steps.
        keys: what the tests are about; each once, declared beforehand.
        threshold: the least noisy value that is published, as it is shown.
        epsilon: ε of one test; the noise has rate ε/sensitivity.
        sensitivity: the most any one count changes when a unit is added or removed, in steps.
        gauge: how steps are shown.
        name: what the transcript calls them.
    """
    checks.function_of_data("counts", counts)
    if not isinstance(keys, list | tuple | range):
        raise InvalidParameter("keys", keys, "a list of at least one key, each once")
    try:
        declared = tuple(publishable(key) for key in keys)
    except UnpublishableError:
        raise InvalidParameter("keys", keys, f"a list whose members are each {PUBLISHABLE}") from None
    if not declared or len(set(declared)) < len(declared):
        raise InvalidParameter("keys", keys, "a list of at least one key, each once")
    rate = rate_for(epsilon, sensitivity)
    least = gauge.least(checks.threshold("threshold", threshold))
    test = one_of(algorithm_name(name, "battery", counts), least, rate, epsilon, gauge)
    every = len(declared)
    return Battery((test,) * every, declared, (least,) * every, counts, rate, gauge)


def batch(
    counts: Callable[[Any], Iterable[int]], names: Sequence[str], thresholds: Sequence[float], epsilon: float
) -> Battery:
    """Return tests of counts with names and thresholds of their own.

    Args:
        counts: a function of the data whose value is one integer for each test, which a unit changes by at most 1.
        names: what the transcript calls them.
        thresholds: the least noisy count that each publishes.
        epsilon: ε of one test.
    """
    checks.function_of_data("counts", counts)
    for parameter, given in (("names", names), ("thresholds", thresholds)):
        if not isinstance(given, list | tuple) or not given or len(given) != len(names):
            raise InvalidParameter(parameter, given, "a list with a name, or a threshold, for each test")
    rate = rate_for(epsilon, 1)
    least = tuple(COUNTED.least(checks.threshold("threshold", each)) for each in thresholds)
    pairs = zip(names, least, strict=True)
    tests = tuple(one_of(checked_name(name), each, rate, epsilon, COUNTED) for name, each in pairs)
    return Battery(tests, (None,) * len(tests), least, counts, rate)


def one_of(name: str, least: int, rate: Rate, epsilon: float, gauge: Gauge) -> Algorithm:
    """Return one test of a battery, to price and name it by."""
    accuracy = Accuracy.of(rate, above(least - 1)).through(gauge)
    return together(name, epsilon, NotPrior(None), accuracy)


def _noise(entropy: Entropy, rate: Rate) -> Iterator[int]:
    while True:
        yield from discrete_laplace_array(entropy, rate, _BLOCK).tolist()


def _kept(drawn: list[int]) -> Draws:
    return lambda first, last: drawn[first:last]
