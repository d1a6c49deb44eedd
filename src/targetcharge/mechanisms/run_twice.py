"""Running twice: free while two independent runs agree.

>>> from targetcharge.mechanisms.between import between_thresholds
>>> from targetcharge.randomness import SystemEntropy
>>> side = between_thresholds(len, low=90, high=110, epsilon=1.0)
>>> outcome = twice(side).run(range(10), SystemEntropy())
>>> outcome
(<Side.BELOW: 'below'>, <Side.BELOW: 'below'>)
>>> algorithm = agreement(side)
>>> algorithm.publish(outcome, hit=False), algorithm.publish(("a", "b"), hit=True)
(<Side.BELOW: 'below'>, BOUNDARY)
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from targetcharge import checks
from targetcharge.accounting.targets import Disagreement
from targetcharge.mechanisms.algorithm import Algorithm, unwrapped
from targetcharge.outcomes import BOUNDARY, publishable, same

if TYPE_CHECKING:
    from targetcharge.randomness import Entropy


def twice(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm that runs another twice and publishes both outcomes. Only a disagreement costs.

    The two runs must be independent: an algorithm that remembers its noise would agree with itself, for free.
    Outcomes agree when they look alike: 1 and True do not. The ε it declares is that of one run, which
    `Disagreement` prices for two; its δ is that of both.

    Args:
        algorithm: any that is not wrapped, with ε of at most 5.
    """
    return _run_twice(algorithm, "twice")


def agreement(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm that runs another twice and publishes the outcome if both agree, else BOUNDARY.

    It tells less than `twice` at the same price.

    Args:
        algorithm: any that is not wrapped, with ε of at most 5.
    """
    return replace(_run_twice(algorithm, "agreement"), publish=_one_if_equal)


def _one_if_equal(outcome: object, *, hit: bool) -> object:
    return BOUNDARY if hit else cast("tuple[object, object]", outcome)[0]


def _run_twice(algorithm: Algorithm, wrapper: str) -> Algorithm:
    target = Disagreement()
    inner = unwrapped(algorithm, wrapper)
    draw = inner.run

    def run(data: object, entropy: Entropy) -> tuple[object, object]:
        first, second = publishable(draw(data, entropy)), publishable(draw(data, entropy))
        return (first, first) if same(first, second) else (first, second)

    return Algorithm(
        name=f"{wrapper}({inner.name})",
        epsilon=target.check_epsilon(inner.epsilon),
        delta=checks.delta(2 * inner.delta),
        run=run,
        targets=(target,),
        default_target=target,
    )
