"""Copies of a sketch: equal in kind, independent in their randomness, fed the same stream.

What a copy knows of its own randomness is the secret that a robust stream protects. So nothing that happens to one
copy may show, but through a private choice: a copy that fails has no estimate from then on, and the stream goes
on. What is wrong with an item shows on a *spare*, one more copy that never votes, before any other sees the item.

Copies with other seeds must differ, or a private choice among them protects nothing. So before a stream begins,
twins of the copies are fed random items until no two of them have had the same estimates throughout. Two that
never differ have the same seed, or ignore it, or count exactly and need no copies.

>>> from targetcharge.randomness import SystemEntropy
>>> class Exact:
...     def __init__(self, seed):
...         self.seen = set()
...     def update(self, item):
...         self.seen.add(item)
...     def estimate(self):
...         return len(self.seen)
>>> SketchCopies([Exact(1), Exact(2)], spare=Exact(3)).follow(["a", "b", "a"], None).tolist()
[[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
>>> seeded_copies(Exact, 2, SystemEntropy())
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: sketch is <class '...Exact'>; it must be a function of a seed whose sketches
differ: two with different seeds had the same estimates on all of 1,048,576 random items
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, final, runtime_checkable

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.randomness import below
from targetcharge.streaming.sketches import PRIME

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

_SEEDS: Final = 2**63
"""Seeds are below this: it fits in signed 64-bit integers."""

_COMPARED: Final = 1_024
"""Estimates are compared after each of so many items, later half as many times while their number doubles."""

_MOST_ITEMS: Final = 2**20
"""Items on which two copies must differ. A large sketch counts exactly up to its size."""


class Sketch(Protocol):
    """What summarises a stream in little memory. With weights, `update(item, weight)`."""

    def update(self, item: Item, /) -> object:
        """Take in one element of the stream."""
        ...

    def estimate(self) -> float:
        """Return what the stream is estimated to have: a number of at least 0."""
        ...


Make = Callable[[int], Sketch]
"""From a seed to a sketch of an empty stream."""


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
class SketchKind(Protocol):
    """A kind of sketch that makes all its copies at once."""

    def copies(self, count: int, entropy: Entropy) -> Copies:
        """Return independent copies."""
        ...


@final
class SketchCopies:
    """Copies that are objects of their own, fed one after another."""

    def __init__(self, sketches: Sequence[Sketch], spare: Sketch) -> None:
        """Take over sketches that nothing else will update; the randomness of the spare is not protected."""
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


def seeded_copies(make: Make, count: int, entropy: Entropy) -> SketchCopies:
    """Return copies of a sketch with fresh seeds, and a spare.

    Raises:
        InvalidParameter: if it makes no sketches, or such that do not differ.
    """
    if not callable(make):
        raise InvalidParameter("sketch", make, "a kind of sketch, or a function that makes one of a seed")
    seeds = [below(entropy, _SEEDS) for _ in range(count + 1)]
    sketches = [_made(make, seed) for seed in seeds]
    if len({id(sketch) for sketch in sketches}) <= count:
        raise InvalidParameter("sketch", make, "a function that makes another sketch each time: it gave one twice")
    _check_different(make, seeds[:count], entropy)
    return SketchCopies(sketches[:count], sketches[count])


def _made(make: Make, seed: int) -> Sketch:
    sketch = make(seed)
    if not callable(getattr(sketch, "update", None)) or not callable(getattr(sketch, "estimate", None)):
        raise InvalidParameter("sketch", make, "a function that makes objects with `update` and `estimate`")
    return sketch


def _check_different(make: Make, seeds: list[int], entropy: Entropy) -> None:
    """Feed two that do not differ yet until they do, then the others; go on with those that still agree."""
    key = below(entropy, int(PRIME))
    groups = [[_Trial(make, seed, key) for seed in seeds]]
    while groups:
        group = groups.pop()
        needed = _items_to_differ(make, *group[:2])
        agreeing: dict[tuple[float, ...], list[_Trial]] = {}
        for trial in group:
            agreeing.setdefault(trial.after(needed), []).append(trial)
        groups += [trials for trials in agreeing.values() if len(trials) > 1]


def _items_to_differ(make: Make, first: _Trial, second: _Trial) -> int:
    """Return after how many items two trials differ."""
    items = _COMPARED
    while first.after(items) == second.after(items):
        if items >= _MOST_ITEMS:
            alike = "two with different seeds had the same estimates on all"
            expected = f"a function of a seed whose sketches differ: {alike} of {items:,} random items"
            raise InvalidParameter("sketch", make, expected)
        items *= 2
    return items


def _is_compared(items: int) -> bool:
    """Return whether estimates are compared after so many items."""
    return not items % (2 ** (items - 1).bit_length() // _COMPARED or 1)


@final
class _Trial:
    """A twin of a copy, fed with items that are the same for all twins."""

    def __init__(self, make: Make, seed: int, key: int) -> None:
        self._make = make
        self._sketch = _made(make, seed)
        self._key = key
        self._items = 0
        self._estimates: list[float] = []

    def after(self, items: int) -> tuple[float, ...]:
        """Return all estimates that are compared, the last one after so many items, a power of two."""
        while self._items < items:
            self._items += 1
            self._update((self._items * self._key) % int(PRIME))
            if _is_compared(self._items):
                self._estimates.append(self._estimate())
        return tuple(self._estimates)

    def _update(self, item: int) -> None:
        try:
            self._sketch.update(item)
        except Exception as error:
            expected = f"a function that makes sketches of integers: one refused {item} ({type(error).__name__})"
            raise InvalidParameter("sketch", self._make, expected) from error

    def _estimate(self) -> float:
        try:
            estimate = float(self._sketch.estimate())
        except Exception:  # noqa: BLE001 - it has no estimate, whatever the reason
            estimate = math.nan
        if not math.isfinite(estimate):
            expected = "a function that makes sketches with finite estimates: one gave"
            raise InvalidParameter("sketch", self._make, f"{expected} {estimate} after {self._items} items")
        return estimate
