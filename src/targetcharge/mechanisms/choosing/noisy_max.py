"""Report noisy max for tables of counts: PATE's LNMax, with discrete noise.

>>> import numpy as np
>>> from targetcharge.randomness import SystemEntropy
>>> NoisyMax(epsilon=1.0).draw(np.array([[0, 250], [250, 0]]), SystemEntropy()).tolist()
[1, 0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from targetcharge.mechanisms.noise import rate_for
from targetcharge.randomness import discrete_laplace_array

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy


@final
class NoisyMax:
    """The column with the largest count plus discrete Laplace noise of rate ε/2; of equal ones the first."""

    def __init__(self, epsilon: float) -> None:
        """Choose with this ε."""
        self._rate = rate_for(epsilon, 1, shifts=2)

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row."""
        noise = discrete_laplace_array(entropy, self._rate, counts.size).reshape(counts.shape)
        chosen: NDArray[np.intp] = (counts + noise).argmax(axis=1)
        return chosen

    def rest(self, counts: NDArray[np.int64]) -> None:
        """Return nothing: a sum over all values of the noise for every row."""
