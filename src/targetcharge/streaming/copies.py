"""Copies of a sketch: equal in kind, independent in their randomness, fed the same stream.

What a copy knows of its own randomness is the secret that a robust stream protects. So nothing that happens to one
copy may show, but through a private choice: a copy that fails has no estimate from then on, and the stream goes
on. What is wrong with an item shows on a *spare*, one more copy that never votes, before any other sees the item.

>>> class Counter:
...     def __init__(self):
...         self.count = 0
...     def update(self, item):
...         self.count += 1
...     def estimate(self):
...         return self.count
>>> copies = SketchCopies([Counter(), Counter()], spare=Counter())
>>> copies.follow(["a", "b", "c"], None).tolist()
[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, final, runtime_checkable

import numpy as np

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

    Item = Any
    """An element of a stream: whatever its sketch takes."""

    Items = Sequence[Any] | NDArray[Any]
    """Elements of a stream, in order."""

    Weights = NDArray[Any] | None
    """How much of each element there is; None for once."""


class Sketch(Protocol):
    """What summarises a stream in little memory. With weights, `update(item, weight)`."""

    def update(self, item: Item, /) -> object:
        """Take in one element of the stream."""
        ...

    def estimate(self) -> float:
        """Return what the stream is estimated to have: a number of at least 0."""
        ...


class Copies(Protocol):
    """All copies of a sketch at once."""

    def check(self, items: Items, weights: Weights, /) -> Items:
        """Return the items as `follow` takes them, or raise; no copy has changed.

        Raises:
            InvalidParameter: naming the first that cannot be an element of this stream.
        """
        ...

    def follow(self, items: Items, weights: Weights, /) -> NDArray[np.float64]:
        """Take in some items; return all estimates after each of them, a row for each item."""
        ...

    def update(self, items: Items, weights: Weights, /) -> None:
        """Take in some items."""
        ...

    def estimates(self) -> NDArray[np.float64]:
        """Return the estimate of each copy; NaN if it has none."""
        ...


@runtime_checkable
class Kind(Protocol):
    """A kind of sketch that makes all its copies at once."""

    def copies(self, count: int, entropy: Entropy) -> Copies:
        """Return independent copies."""
        ...


@final
class SketchCopies:
    """Copies that are objects of their own, fed one after another."""

    def __init__(self, sketches: Sequence[Sketch], spare: Sketch) -> None:
        """Take over sketches that nothing else will update.

        Args:
            sketches: the copies.
            spare: one more; its randomness is not protected.
        """
        self._copies: list[Sketch | None] = list(sketches)
        self._spare = spare

    def check(self, items: Items, weights: Weights) -> Items:
        """Feed the spare: whatever it raises is the caller's to see. Items before that are in the spare only.

        So a sketch may refuse an item for what it is, not for what came before it.
        """
        for arguments in _calls(items, weights):
            try:
                self._spare.update(*arguments)
            except TypeError as error:
                if weights is None:
                    raise
                raise InvalidParameter(
                    "weights", weights, f"left out if the sketch takes none ({error})"
                ) from None
        return items

    def follow(self, items: Items, weights: Weights) -> NDArray[np.float64]:
        """Take in items one by one."""
        rows = np.empty((len(items), len(self._copies)))
        for row, arguments in zip(rows, _calls(items, weights), strict=True):
            self._feed(arguments)
            row[:] = self.estimates()
        return rows

    def update(self, items: Items, weights: Weights) -> None:
        """Take in items one by one."""
        for arguments in _calls(items, weights):
            self._feed(arguments)

    def _feed(self, arguments: tuple[Any, ...]) -> None:
        for place, sketch in enumerate(self._copies):
            if sketch is not None:
                try:
                    sketch.update(*arguments)
                except Exception:  # noqa: BLE001 - whatever it is, it may depend on this copy's randomness
                    self._copies[place] = None

    def estimates(self) -> NDArray[np.float64]:
        """Return the estimates; a copy that fails has none, now and later."""
        return np.array([self._estimate(place) for place in range(len(self._copies))])

    def _estimate(self, place: int) -> float:
        sketch = self._copies[place]
        if sketch is None:
            return math.nan
        try:
            return float(sketch.estimate())
        except Exception:  # noqa: BLE001 - as above
            self._copies[place] = None
            return math.nan


def _calls(items: Items, weights: Weights) -> Iterator[tuple[Any, ...]]:
    """Return the arguments of each update: plain Python values, which is what sketches take."""
    plain = items.tolist() if isinstance(items, np.ndarray) else items
    return ((item,) for item in plain) if weights is None else zip(plain, weights.tolist(), strict=True)
