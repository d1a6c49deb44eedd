"""Features: what an event may be about. Each turns a published value into a number to cut at, or a label.

>>> from targetcharge.audit.sampling.published import published_of
>>> seen = [published_of(value) for value in [("no", 3), ("yes", 5), ("no", 4)]]
>>> sorted(feature.name for feature in default_features(seen))[:3]
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
from targetcharge.audit.sampling.published import (
    MOST_LEAVES,
    Label,
    Path,
    Published,
    Raised,
    at,
    float_of,
    label,
    leaves,
    lowest_bit,
    published_of,
    shape,
    shapes,
)
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from targetcharge.audit.sampling.runs import Tallies

_MOST_POSITIONS: Final = 128
"""Places that change and are looked at one by one."""

_MOST_FLOATS: Final = 8
"""Places with floats where noise is looked for."""

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
        of: from a published value to a label or a number; None where there is nothing to see.
        alone: whether it is one value of many, to be weighed together with the others.
        low_bits: whether it is about the low bits of a number.
    """

    name: str
    of: Callable[[Published], Hashable]
    alone: bool = False
    low_bits: bool = False


def default_features(seen: Iterable[Published]) -> list[Feature]:
    """Return what to look at in values like these: all of it, every place that changes, counts, sums, low bits."""
    outcomes = list(seen)
    labels = _labels([_leaf_labels(published) for published in outcomes])
    features = [Feature("everything published", lambda published: published)]
    if any(isinstance(published.value, Raised) for published in outcomes):
        features.append(Feature("the kind of error", _error))
    if len(labels) > 1:
        features += _of_many(outcomes)
    for path in _changing(labels)[:_MOST_POSITIONS]:
        features.append(Feature(_named(path), _inside(path), alone=True))
        features += _of_bits(path, [leaf for leaf, _ in labels[path]])
    for path in _changing(_labels([shapes(published.value) for published in outcomes]))[:_MOST_POSITIONS]:
        features.append(Feature(f"the kind and length of {_named(path)}", _inside(path, shape)))
    return features


def left_out(seen: Iterable[Published]) -> str:
    """Return in words what was not looked at one by one, nothing if everything was."""
    labels = [_leaf_labels(published) for published in seen]
    changing = len(_changing(_labels(labels)))
    if any(len(leaf_labels) >= MOST_LEAVES for leaf_labels in labels):
        return f"what comes after the first {MOST_LEAVES} values was not looked at by itself"
    if changing > _MOST_POSITIONS:
        return f"{changing - _MOST_POSITIONS} of {changing} values that change were not looked at by themselves"
    return ""


def given_features(functions: Sequence[Callable[[object], object]]) -> list[Feature]:
    """Return the caller's own features: functions of the published value, seen as plain data."""
    for function in functions:
        if not callable(function):
            raise InvalidParameter("features", function, "functions of what is published")
    return [
        Feature(getattr(function, "__name__", repr(function)), partial(_checked, function))
        for function in functions
    ]


def _checked(function: Callable[[object], object], published: Published) -> Hashable:
    try:
        result = published_of(function(published.value))
    except Exception as error:
        expected = f"able to take everything that is published: {error!r} on {published.value!r}"
        raise InvalidParameter("features", function, expected) from error
    return result if isinstance(result.value, tuple) else result.value


def noise_features(parts: Sequence[Tallies], data: tuple[object, object], epsilon: float) -> list[Feature]:
    """Return the features of floats that look like sums with noise of floating point, in uncounted runs."""
    floats: dict[Path, tuple[list[float], list[float]]] = {}
    for tallies, side in itertools.product(parts, (0, 1)):
        for published in tallies[side]:
            for path, leaf in _leaves(published).items():
                number = float_of(leaf) if isinstance(leaf, float | np.floating) else None
                if number is not None and math.isfinite(number):
                    floats.setdefault(path, ([], []))[side].append(number)
    return [
        Feature(
            f"the binary digits behind {_named(path)} as {noise.centre:g} and noise of scale {noise.scale:g}",
            _inside(path, lru_cache(maxsize=1 << 16, typed=True)(partial(digits, noise=noise))),
            low_bits=True,
        )
        for path in sorted(floats)[:_MOST_FLOATS]
        for noise in likely_noises(floats[path], data, epsilon)
    ]


# What changes.


@lru_cache(maxsize=1 << 15)
def _leaves(published: Published) -> dict[Path, Hashable]:
    """Return the values inside; kept, since many features ask for them."""
    return leaves(published.value)


def _leaf_labels(published: Published) -> dict[Path, Label]:
    return {path: label(leaf) for path, leaf in _leaves(published).items()}


def _labels(outcomes: Sequence[Mapping[Path, Label]]) -> dict[Path, set[Label]]:
    """Return what was seen at each place; that there was nothing in some of the outcomes is seen too."""
    labels: dict[Path, list[Label]] = {}
    for inside in outcomes:
        for path, seen in inside.items():
            labels.setdefault(path, []).append(seen)
    return {
        path: {*seen, ("nothing here", None)} if len(seen) < len(outcomes) else set(seen)
        for path, seen in labels.items()
    }


def _changing(labels: dict[Path, set[Label]]) -> list[Path]:
    """Return the places where not always the same was seen, on both inputs together."""
    return [path for path in sorted(labels) if len(labels[path]) > 1]


# Features of one place.


def _named(path: Path) -> str:
    return "answer " + ".".join(str(index + 1) for index in path) if path else "the answer"


def _inside(
    path: Path, function: Callable[[Hashable], Hashable] = lambda value: value
) -> Callable[[Published], Hashable]:
    """Return a function of what is published at a place."""
    return lambda published: function(at(published.value, path))


def _of_bits(path: Path, values: list[Hashable]) -> list[Feature]:
    """Return the features of a number's low bits: the lowest, and of a float also how it goes with the size.

    The sum of a count and of noise in floating point has the coarser bits of the two. Near 0 these are the
    noise's: finer where the count is smaller, so that less noise makes up for it.
    """
    name, features = _named(path), []
    if any(float_of(value) is not None for value in values):
        features.append(Feature(f"the lowest bit of {name}", _inside(path, lowest_bit), low_bits=True))
    if any(isinstance(value, float | np.floating) and float_of(value) is not None for value in values):
        name = f"the size and the lowest bit (as powers of 2) of {name}"
        features.append(Feature(name, _inside(path, _lowest_of_size), low_bits=True))
    return features


def _lowest_of_size(value: Hashable) -> tuple[int, int] | None:
    lowest = lowest_bit(value)
    return None if lowest is None else (math.frexp(float_of(value) or 0.0)[1], lowest)


# Features of many values.


def _error(published: Published) -> str | None:
    return published.value.kind if isinstance(published.value, Raised) else None


def _of_many(outcomes: list[Published]) -> list[Feature]:
    common = Counter(leaf for published in outcomes for leaf in _leaf_labels(published).values())
    features = [Feature("the number of answers", lambda published: len(_leaves(published)))]
    for (value, kind), times in common.most_common(_MOST_COMMON):
        if times == 1:
            continue
        features += [
            Feature(f"how many are {value!r}", partial(_times, wanted=(value, kind))),
            Feature(f"where the first {value!r} is", partial(_first, wanted=(value, kind))),
        ]
    if any(float_of(value) is not None for value, _ in common):
        for name, fold in _FOLDS.items():
            features.append(Feature(f"{name} of the numbers", partial(_folded, fold=fold)))
    return features


def _times(published: Published, wanted: Label) -> int:
    return sum(label(leaf) == wanted for leaf in _leaves(published).values())


def _first(published: Published, wanted: Label) -> int | None:
    places = enumerate(_leaves(published).values(), 1)
    return next((place for place, leaf in places if label(leaf) == wanted), None)


def _folded(published: Published, fold: Callable[[list[float]], float | None]) -> float | None:
    numbers = [number for leaf in _leaves(published).values() if (number := float_of(leaf)) is not None]
    folded = fold(numbers) if numbers else None
    return None if folded is None or math.isnan(folded) else folded
