"""Permute-and-flip for tables of counts: never more error than the exponential mechanism, and down to half.

>>> import numpy as np
>>> from targetcharge.randomness import SystemEntropy
>>> choice = PermuteAndFlip(epsilon=1.0)
>>> choice.draw(np.array([[0, 250], [250, 0]]), SystemEntropy()).tolist()
[1, 0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from targetcharge.mechanisms.choosing.decay import Decay, gaps_of
from targetcharge.mechanisms.permute_and_flip import nodes
from targetcharge.randomness import below_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy


@final
class PermuteAndFlip:
    """Columns in random order; each is taken with probability e^{-ε·gap/2}, else the next is tried."""

    def __init__(self, epsilon: float) -> None:
        """Choose with this ε."""
        self._decay = Decay.of(epsilon)

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row: of those whose coin says so, the one whose turn comes first.

        Coins do not depend on the order, so they are thrown first; all orders of what they leave are as likely.
        """
        accepted = self._decay.coins(gaps_of(counts), entropy)
        chosen: NDArray[np.intp] = accepted.argmax(axis=1)
        several = np.flatnonzero(accepted.sum(axis=1) > 1)
        if len(several):
            ranks = accepted[several].cumsum(axis=1)
            turn = below_array(entropy, ranks[:, -1].astype(np.uint64)).astype(np.intp)
            chosen[several] = (ranks > turn[:, None]).argmax(axis=1)
        return chosen

    def rest(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return Σ_{r≠best} p_r·∫₀¹ Π_{s≠r} (1 - p_s·t) dt, by a rule that is exact for its degree."""
        accepted = self._decay.weights(gaps_of(counts))
        best = counts.argmax(axis=1)[:, None]
        total = np.zeros(len(counts))
        for node, weight in nodes(counts.shape[1]):
            refused = 1 - accepted * node
            odds = accepted / refused
            np.put_along_axis(odds, best, 0.0, axis=1)
            total += weight * refused.prod(axis=1) * odds.sum(axis=1)
        return total
