"""Wrappers: algorithms that run others, and cost only where the outcome is in doubt.

>>> from targetcharge.mechanisms.counts import between_thresholds
>>> from targetcharge.randomness import SystemEntropy
>>> side = between_thresholds(len, low=90, high=110, epsilon=1.0)
>>> marked = boundary(side)
>>> marked.run(range(10), SystemEntropy()), marked.default_target
(<Side.BELOW: 'below'>, Boundary())
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
from targetcharge.accounting.targets import Boundary, Disagreement, NotPrior
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.mechanisms.algorithm import Algorithm
from targetcharge.outcomes import BOUNDARY, publishable, same
from targetcharge.randomness import bernoulli

if TYPE_CHECKING:
    from targetcharge.randomness import Entropy


def boundary(algorithm: Algorithm, caution: float = 1.0) -> Algorithm:
    """Return the algorithm that publishes BOUNDARY with probability cπ/(1+cπ), at most c/(2+c), else an outcome.

    π is the probability of all outcomes but the most likely one, c the caution. Only the mark costs.

    Args:
        algorithm: one that can tell the probabilities of its outcomes, with δ = 0 and ε of at most 1.
        caution: how readily it marks doubt; 1 is Algorithm 3 of the paper, more makes each mark cheaper.

    Raises:
        NotAllowed: if it cannot tell them, has a δ, or is wrapped already.
    """
    target = Boundary(caution)
    inner = _unwrapped(algorithm, "boundary")
    if inner.delta > 0:
        msg = f"boundary has no price for a δ above 0, and {inner.name} has {inner.delta:g}"
        raise NotAllowed(msg)
    oracle, draw = inner.oracle, inner.run
    if oracle is None:
        msg = f"{inner.name} cannot tell its outcomes' probabilities, which boundary needs: try twice or agreement"
        raise NotAllowed(msg)

    def run(data: object, entropy: Entropy) -> object:
        marked = bernoulli(entropy, target.mark_probability(oracle.rest(data)))
        return BOUNDARY if marked else draw(data, entropy)

    return Algorithm(
        name=f"boundary({inner.name})",
        epsilon=target.check_epsilon(inner.epsilon),
        delta=0.0,
        run=run,
        targets=(target,),
        default_target=target,
        accuracy=inner.accuracy,
    )


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
    inner = _unwrapped(algorithm, wrapper)
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


def _unwrapped(algorithm: object, wrapper: str) -> Algorithm:
    """Return an algorithm that a wrapper may wrap: one for which any outcome may be the free one."""
    if not isinstance(algorithm, Algorithm):
        expected = "an algorithm of tc.mechanisms, or a function declared with @tc.private"
        raise InvalidParameter("algorithm", algorithm, expected)
    if NotPrior not in algorithm.targets:
        msg = f"{wrapper} takes an algorithm that is not wrapped, and {algorithm.name} is: wrap what is inside it"
        raise NotAllowed(msg)
    return algorithm
