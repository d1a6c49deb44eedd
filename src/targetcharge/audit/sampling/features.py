"""Features: what an event may be about. Each turns a published thing into a number to cut at, or a label.

>>> from targetcharge.audit.sampling.published import published_of
>>> pile = [published_of(thing) for thing in [("no", 3), ("yes", 5), ("no", 4)]]
>>> sorted(feature.name for feature in default_features(pile))[:3]
['answer 1', 'answer 2', 'everything published']
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.sampling.float_noise import digits, likely_noises
from targetcharge.audit.sampling.leaves import MOST_LEAVES, Path, form, forms, label, leaves, lowest_bit, number
from targetcharge.audit.sampling.published import Published, Raised, published_of
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from targetcharge.audit.sampling.float_noise import Noise
    from targetcharge.audit.sampling.piles import Pair

    Labels = dict[Path, set[tuple[Hashable, Hashable]]]
    """What was seen at each place."""

_MOST_POSITIONS: Final = 128
"""Places that change and are looked at one by one."""

_MOST_FLOATS: Final = 8
"""Places with floats where noise is looked for."""

_NOTHING: Final = ("nothing here", None)
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
        low_bits: whether it is about the low bits of a number.
    """

    name: str
    of: Callable[[Published], Hashable]
    alone: bool = False
    low_bits: bool = False


def default_features(seen: Iterable[Published]) -> list[Feature]:
    """Return what to look at in things like these: all of it, every place that changes, counts, sums, low bits."""
    things = list(seen)
    inside = [_leaves(thing) for thing in things]
    values = _labels([{path: label(leaf) for path, leaf in each.items()} for each in inside])
    found = [Feature("everything published", lambda thing: thing)]
    if any(isinstance(thing.value, Raised) for thing in things):
        found.append(Feature("the kind of error", _error))
    if len(values) > 1:
        found += _of_many(inside)
    for path in _changing(values)[:_MOST_POSITIONS]:
        found.append(Feature(_named(path), _leaf(path), alone=True))
        found += _of_bits(path, [leaf for leaf, _ in values[path]])
    for path in _changing(_labels([forms(thing.value) for thing in things]))[:_MOST_POSITIONS]:
        found.append(Feature(f"the kind and length of {_named(path)}", _form(path)))
    return found


def _of_bits(path: Path, leaves: list[Hashable]) -> list[Feature]:
    """Return the features of a number's low bits: the lowest, and of a float also how it goes with the size.

    The sum of a count and of noise in floating point has the coarser bits of the two. Near 0 these are the
    noise's: finer where the count is smaller, so that less noise makes up for it.
    """
    name, found = _named(path), []
    if any(number(leaf) is not None for leaf in leaves):
        found.append(Feature(f"the lowest bit of {name}", _lowest(path), low_bits=True))
    if any(isinstance(leaf, float | np.floating) and number(leaf) is not None for leaf in leaves):
        name = f"the size and the lowest bit (as powers of 2) of {name}"
        found.append(Feature(name, _lowest_of_size(path), low_bits=True))
    return found


def noise_features(pairs: Sequence[Pair], data: tuple[object, object], epsilon: float) -> list[Feature]:
    """Return the features of floats that look like sums with noise of floating point.

    Args:
        pairs: what was published on the inputs, in runs that are not counted.
        data: the inputs.
        epsilon: the ε of the claim.
    """
    floats: dict[Path, tuple[list[float], list[float]]] = {}
    for pair, index in itertools.product(pairs, (0, 1)):
        for thing in pair[index].counts:
            for path, leaf in _leaves(thing).items():
                found = number(leaf) if isinstance(leaf, float | np.floating) else None
                if found is not None and math.isfinite(found):
                    floats.setdefault(path, ([], []))[index].append(found)
    return [
        Feature(
            f"the binary digits behind {_named(path)} as {noise.centre:g} and noise of scale {noise.scale:g}",
            _digits(path, noise),
            low_bits=True,
        )
        for path in sorted(floats)[:_MOST_FLOATS]
        for noise in likely_noises(floats[path], data, epsilon)
    ]


def left_out(seen: Iterable[Published]) -> str:
    """Return in words what was not looked at one by one, nothing if everything was."""
    inside = [_leaves(thing) for thing in seen]
    changing = len(_changing(_labels([{path: label(leaf) for path, leaf in each.items()} for each in inside])))
    if any(len(each) >= MOST_LEAVES for each in inside):
        return f"what comes after the first {MOST_LEAVES} values was not looked at by itself"
    if changing > _MOST_POSITIONS:
        return f"{changing - _MOST_POSITIONS} of {changing} values that change were not looked at by themselves"
    return ""


def _labels(things: Sequence[Mapping[Path, tuple[Hashable, Hashable]]]) -> Labels:
    """Return what was seen at each place; that there was nothing in some of the things is seen too."""
    found: Labels = {}
    times: Counter[Path] = Counter()
    for thing in things:
        for path, each in thing.items():
            found.setdefault(path, set()).add(each)
            times[path] += 1
    for path, labels in found.items():
        if times[path] < len(things):
            labels.add(_NOTHING)
    return found


def _changing(values: Labels) -> list[Path]:
    """Return the places where not always the same was seen, on both inputs together."""
    return [path for path in sorted(values) if len(values[path]) > 1]


def _error(thing: Published) -> str | None:
    return thing.value.kind if isinstance(thing.value, Raised) else None


def _of_many(inside: list[dict[Path, Hashable]]) -> list[Feature]:
    common = Counter(label(leaf) for each in inside for leaf in each.values())
    found = [Feature("the number of answers", lambda thing: len(_leaves(thing)))]
    for (leaf, _), times in common.most_common(_MOST_COMMON):
        if times == 1:
            continue
        found += [
            Feature(f"how many are {leaf!r}", partial(_times, leaf=leaf)),
            Feature(f"where the first {leaf!r} is", partial(_first, leaf=leaf)),
        ]
    if any(number(leaf) is not None for leaf, _ in common):
        for name, fold in _FOLDS.items():
            found.append(Feature(f"{name} of the numbers", partial(_folded, fold=fold)))
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
            found = published_of(function(thing.value))
        except Exception as error:
            expected = f"able to take everything that is published: {error!r} on {thing.value!r}"
            raise InvalidParameter("features", function, expected) from error
        return found if isinstance(found.value, tuple) else found.value

    return of


@lru_cache(maxsize=1 << 15)
def _leaves(thing: Published) -> dict[Path, Hashable]:
    """Return the values inside; kept, since many features ask for them."""
    return leaves(thing.value)


def _named(path: Path) -> str:
    return "answer " + ".".join(str(index + 1) for index in path) if path else "the answer"


def _leaf(path: Path) -> Callable[[Published], Hashable]:
    return lambda thing: _at(thing.value, path)


def _lowest(path: Path) -> Callable[[Published], Hashable]:
    return lambda thing: lowest_bit(_at(thing.value, path))


def _digits(path: Path, noise: Noise) -> Callable[[Published], Hashable]:
    kept = lru_cache(maxsize=1 << 16, typed=True)(partial(digits, noise=noise))
    return lambda thing: kept(_at(thing.value, path))


def _lowest_of_size(path: Path) -> Callable[[Published], Hashable]:
    def of(thing: Published) -> Hashable:
        value = _at(thing.value, path)
        lowest = lowest_bit(value)
        return None if lowest is None else (math.frexp(number(value) or 0.0)[1], lowest)

    return of


def _form(path: Path) -> Callable[[Published], Hashable]:
    def of(thing: Published) -> Hashable:
        found = _at(thing.value, path)
        return form(found) if isinstance(found, tuple) else None

    return of


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
    return type(one) is type(other) and one == other and label(one) == label(other)


def _folded(thing: Published, fold: Callable[[list[float]], float | None]) -> float | None:
    numbers = [found for leaf in _leaves(thing).values() if (found := number(leaf)) is not None]
    found = fold(numbers) if numbers else None
    return None if found is None or math.isnan(found) else found
