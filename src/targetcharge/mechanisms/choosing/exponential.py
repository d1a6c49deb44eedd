"""The exponential mechanism for tables of counts.

>>> import numpy as np
>>> from targetcharge.randomness import SystemEntropy
>>> Exponential(epsilon=1.0).draw(np.array([[0, 250], [250, 0]]), SystemEntropy()).tolist()
[1, 0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import numpy as np

from targetcharge.mechanisms.choosing.decay import Decay, gaps_of
from targetcharge.randomness import below_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy


@final
class Exponential:
    """A column with probability proportional to e^{ε·count/2}."""

    def __init__(self, epsilon: float) -> None:
        """Choose with this ε."""
        self._decay = Decay.of(epsilon)

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row: uniform ones, taken with probability e^{-ε·gap/2}, until one is."""
        gaps = gaps_of(counts)
        chosen = np.empty(len(gaps), dtype=np.intp)
        waiting = np.arange(len(gaps))
        while len(waiting):
            bounds = np.full(len(waiting), gaps.shape[1], dtype=np.uint64)
            candidates = below_array(entropy, bounds).astype(np.intp)
            taken = self._decay.coins(gaps[waiting, candidates], entropy)
            chosen[waiting[taken]] = candidates[taken]
            waiting = waiting[~taken]
        return chosen

    def rest(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the weight of all but the best, over that of all."""
        weights = self._decay.weights(gaps_of(counts))
        np.put_along_axis(weights, counts.argmax(axis=1)[:, None], 0.0, axis=1)
        others: NDArray[np.float64] = weights.sum(axis=1)
        return others / (1 + others)
