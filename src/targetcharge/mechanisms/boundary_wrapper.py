"""The boundary wrapper: free while one outcome is clearly the most likely, a mark near the boundary.

>>> from targetcharge.mechanisms.between import between_thresholds
>>> from targetcharge.randomness import SystemEntropy
>>> algorithm = boundary(between_thresholds(len, low=90, high=110, epsilon=1.0))
>>> algorithm.run(range(10), SystemEntropy())
<Side.BELOW: 'below'>
>>> algorithm.default_target
Boundary()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.accounting.targets import Boundary
from targetcharge.errors import NotAllowed
from targetcharge.mechanisms.algorithm import Algorithm, unwrapped
from targetcharge.outcomes import BOUNDARY
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
    inner = unwrapped(algorithm, "boundary")
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
