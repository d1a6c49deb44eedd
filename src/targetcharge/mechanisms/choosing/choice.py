"""What every mechanism that chooses by counts does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy


class Choice(Protocol):
    """An ε-DP choice of one column for each row of counts."""

    def __init__(self, epsilon: float) -> None:
        """Choose with this ε."""
        ...

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row, drawn exactly."""
        ...

    def rest(self, counts: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the probability of all columns but the likeliest, for each row; None if it takes too long."""
        ...
