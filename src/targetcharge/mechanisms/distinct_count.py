"""Distinct elements, counted by a sketch that is private by its own randomness: no noise is added.

>>> from targetcharge.randomness import SystemEntropy
>>> visits = [f"patient {number % 20_000}" for number in range(50_000)]
>>> algorithm = distinct_count(lambda rows: rows, epsilon=0.5, threshold=10_000)
>>> 15_000 < algorithm.run(visits, SystemEntropy()) < 25_000
True
>>> algorithm.run(visits[:100], SystemEntropy()) is None
True
>>> algorithm.default_target
NotPrior(prior=None)
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.accuracy import Accuracy, above, exactly
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.mechanisms.distinct_estimate import DistinctEstimate
from targetcharge.mechanisms.element_hashing import KEY_WORDS, hashed
from targetcharge.mechanisms.gauge import Gauge
from targetcharge.mechanisms.maxima import MaximaLaw
from targetcharge.mechanisms.naming import title

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy

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
    checks.function_of_data("elements", elements)
    law = _law(epsilon, per_unit)
    least = None if threshold is None else _least(threshold)
    size = fitting_buckets(law.phantoms, least) if buckets is None else _checked(buckets, law.phantoms)
    estimate = DistinctEstimate.of(law, size)

    def run(data: object, entropy: Entropy) -> int | None:
        sketch = law.only_phantoms(size, entropy)
        key = entropy.words(KEY_WORDS).tobytes()
        for words in hashed(elements(data), key):
            law.put(sketch, (words[:, 0] % np.uint64(size)).astype(np.intp), words[:, 1])
        found = estimate.most_likely(sketch)
        return found if least is None or found >= least else None

    gauge = Gauge(lambda steps: max(0, steps), int, math.ceil, blur=estimate.margin)
    return Algorithm(
        name=title(name, "distinct_count", elements),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        default_target=None if least is None else NotPrior(None),
        accuracy=Accuracy(0.0, 0, exactly if least is None else above(least - 1), gauge),
    )


def _law(epsilon: float, per_unit: int) -> MaximaLaw:
    """Return the law for one element of ε/per_unit: a unit's elements may fall into as many buckets."""
    number = checks.query_epsilon(epsilon, "epsilon")
    one = Fraction(number) / checks.positive_integer("per_unit", per_unit)
    if one < _LEAST_EPSILON:
        least = _LEAST_EPSILON * per_unit
        expected = f"at least {least:g} at per_unit {per_unit}: with less it says nothing"
        raise InvalidParameter("epsilon", epsilon, expected)
    return MaximaLaw.of(one)


def _least(threshold: float) -> int:
    if checks.threshold("threshold", threshold) < 1:
        raise InvalidParameter("threshold", threshold, "at least 1, or None to publish every estimate")
    return math.ceil(threshold)


def fitting_buckets(phantoms: int, least: int | None) -> int:
    """Return a number of buckets whose error is near the smallest at the threshold, 2·√(threshold·phantoms)."""
    wanted = _BUCKETS if least is None else max(_FEWEST_CHOSEN, min(_MOST_CHOSEN, least // (2 * phantoms)))
    return min(wanted, _MOST_PHANTOMS // phantoms)


def _checked(buckets: int, phantoms: int) -> int:
    most = min(_MOST, _MOST_PHANTOMS // phantoms)
    whole = checks.positive_integer("buckets", buckets)
    if not _FEWEST <= whole <= most:
        expected = f"an integer from {_FEWEST} to {most:,}, with {phantoms:,} phantoms in each"
        raise InvalidParameter("buckets", buckets, expected)
    return whole
