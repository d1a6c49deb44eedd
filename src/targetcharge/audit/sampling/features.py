"""Features: what an event may be about. Each turns a published thing into a number to cut at, or a label.

>>> from targetcharge.audit.sampling.published import published_of
>>> pile = [published_of(thing) for thing in [("no", 3), ("yes", 5), ("no", 4)]]
>>> sorted(feature.name for feature in default_features(pile))[:3]
['answer 1', 'answer 2', 'everything published']
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, final

from targetcharge.audit.sampling.leaves import Path, leaves, lowest_bit, number
from targetcharge.audit.sampling.published import published_of
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from targetcharge.audit.sampling.published import Published

_MOST_POSITIONS: Final = 64
_MOST_COMMON: Final = 4
_FOLDS: Final[dict[str, Callable[[list[float]], float | None]]] = {
    "the sum": sum,
    "the largest": max,
    "the smallest": min,
    "the range": lambda numbers: max(numbers) - min(numbers),
    "the first less the second": lambda numbers: numbers[0] - numbers[1] if numbers[1:] else None,
}


@final
@dataclass(frozen=True)
class Feature:
    """Something to look at.

    Attributes:
        name: in words.
        of: from a published thing to a label or a number; None where there is nothing to see.
        alone: whether it is one value of many, to be weighed together with the others.
    """

    name: str
    of: Callable[[Published], Hashable]
    alone: bool = False


def default_features(seen: Iterable[Published]) -> list[Feature]:
    """Return what to look at in things like these: all of it, every place, counts, sums, low bits."""
    values: dict[Path, set[tuple[Hashable, type]]] = {}
    common: Counter[tuple[Hashable, type]] = Counter()
    for thing in seen:
        for path, leaf in _leaves(thing).items():
            values.setdefault(path, set()).add((leaf, type(leaf)))
            common[leaf, type(leaf)] += 1
    found = [Feature("everything published", lambda thing: thing)]
    if len(values) > 1:
        found += _of_many(values, common)
    changing = [path for path in sorted(values) if len(values[path]) > 1 or len(values) > 1]
    for path in changing[:_MOST_POSITIONS]:
        kinds = {kind for _, kind in values[path]}
        if len(values[path]) > 1:
            found.append(Feature(_named(path), _leaf(path), alone=True))
        if kinds & {int, float}:
            found.append(Feature(f"the lowest bit of {_named(path)}", _lowest(path)))
    return found


def _of_many(
    values: dict[Path, set[tuple[Hashable, type]]], common: Counter[tuple[Hashable, type]]
) -> list[Feature]:
    found = [Feature("the number of answers", lambda thing: len(_leaves(thing)))]
    for (leaf, _), times in common.most_common(_MOST_COMMON):
        if times == 1:
            continue
        found += [
            Feature(f"how many are {leaf!r}", lambda thing, leaf=leaf: _times(thing, leaf)),  # type: ignore[misc]
            Feature(f"where the first {leaf!r} is", lambda thing, leaf=leaf: _first(thing, leaf)),  # type: ignore[misc]
        ]
    if any(kind in (int, float) for kinds in values.values() for _, kind in kinds):
        for name, fold in _FOLDS.items():
            found.append(Feature(f"{name} of the numbers", lambda thing, fold=fold: _folded(thing, fold)))  # type: ignore[misc]
    return found


def given_features(given: Sequence[Callable[[object], object]]) -> list[Feature]:
    """Return the caller's own features: functions of the published value, seen as plain data."""
    for function in given:
        if not callable(function):
            raise InvalidParameter("features", function, "functions of what is published")
    return [Feature(getattr(function, "__name__", repr(function)), _checked(function)) for function in given]


def _checked(function: Callable[[object], object]) -> Callable[[Published], Hashable]:
    def of(thing: Published) -> Hashable:
        try:
            return published_of(function(thing.value)).value
        except Exception as error:
            expected = f"able to take everything that is published: {error!r} on {thing.value!r}"
            raise InvalidParameter("features", function, expected) from error

    return of


@lru_cache(maxsize=1 << 16)
def _leaves(thing: Published) -> dict[Path, Hashable]:
    """Return the values inside; kept, since many features ask for them."""
    return leaves(thing.value)


def _named(path: Path) -> str:
    return "answer " + ".".join(str(index + 1) for index in path) if path else "the answer"


def _leaf(path: Path) -> Callable[[Published], Hashable]:
    return lambda thing: _at(thing.value, path)


def _lowest(path: Path) -> Callable[[Published], Hashable]:
    return lambda thing: lowest_bit(_at(thing.value, path))


def _at(value: Hashable, path: Path) -> Hashable:
    for index in path:
        if not isinstance(value, tuple) or index >= len(value):
            return None
        value = value[index]
    return value


def _times(thing: Published, leaf: Hashable) -> int:
    return sum(_alike(each, leaf) for each in _leaves(thing).values())


def _first(thing: Published, leaf: Hashable) -> int | None:
    return next((place for place, each in enumerate(_leaves(thing).values(), 1) if _alike(each, leaf)), None)


def _alike(one: Hashable, other: Hashable) -> bool:
    return type(one) is type(other) and one == other


def _folded(thing: Published, fold: Callable[[list[float]], float | None]) -> float | None:
    numbers = [found for leaf in _leaves(thing).values() if (found := number(leaf)) is not None]
    return fold(numbers) if numbers else None
