"""Series: one private question about each of many requests, drawn together.

A request is public, the answer is not: "which digit is on this public image, by the vote of private teachers?"
Each request is a computation of its own with the series' ε.

>>> import numpy as np
>>> from targetcharge.accounting.targets import Everything
>>> from targetcharge.mechanisms.algorithm import together
>>> coins = Series(
...     together("coins", epsilon=0.1, target=Everything()),
...     outcomes=("heads", "tails"),
...     count=1000,
...     draw=lambda data, entropy, first, last: (np.zeros(last - first, np.intp), np.ones(last - first, np.bool_)),
... )
>>> len(coins)
1000
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from targetcharge.mechanisms.algorithm import Algorithm
    from targetcharge.randomness import Entropy

    Drawn = tuple[NDArray[np.intp], NDArray[np.bool_]]
    """The index of each request's outcome, and whether it is a hit."""


@final
@dataclass(frozen=True)
class Series:
    """Requests that are answered in order.

    Attributes:
        algorithm: to be priced and named by; never run on its own.
        outcomes: all that may be published, each once.
        count: how many requests there are.
        draw: the outcomes of the requests from one up to another, in order, each once. Each is drawn with fresh
            randomness, by an ε-DP law that may depend on the outcomes before it and nothing else that was drawn;
            whether it is a hit follows from the outcomes and public facts.
        text: the target in words, if it is another one for each request.
    """

    algorithm: Algorithm
    outcomes: tuple[object, ...]
    count: int
    draw: Callable[[object, Entropy, int, int], Drawn]
    text: str = ""

    def __len__(self) -> int:
        """Return how many requests there are."""
        return self.count
