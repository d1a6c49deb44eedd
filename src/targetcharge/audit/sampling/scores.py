"""Scores: numbers for published things, learnt from piles: their own, or how much likelier they are on one input.

>>> from targetcharge.audit.sampling.features import Feature
>>> from targetcharge.audit.sampling.piles import Pair, Pile
>>> learn = Pair(Pile.of([1, 1, 2]), Pile.of([2, 2, 1]))
>>> for score in scores(learn, [Feature("the answer", lambda thing: thing.value, alone=True)]):
...     print(score.words(1.0, upwards=True))
the answer ≥ 1
the answer is one of
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final, Protocol, final

import numpy as np

from targetcharge.audit.sampling.leaves import label as looks
from targetcharge.audit.sampling.leaves import number
from targetcharge.audit.sampling.published import Published

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from targetcharge.audit.sampling.features import Feature
    from targetcharge.audit.sampling.piles import Pair

_MOST_LABELS: Final = 64
_BINS: Final = 24
_SHOWN: Final = 4
_LONGEST: Final = 60


class Score(Protocol):
    """A number for everything that may be published."""

    @property
    def low_bits(self) -> bool:
        """Return whether it is about low bits."""
        ...

    @property
    def learnt(self) -> bool:
        """Return whether its numbers depend on how often something was seen."""
        ...

    def of(self, thing: Published) -> float:
        """Return it; NaN where there is none."""
        ...

    def words(self, cut: float, *, upwards: bool) -> str:
        """Return the event "at least (at most) the cut" in words."""
        ...


@final
@dataclass(frozen=True)
class Value:
    """The feature's number itself."""

    feature: Feature
    learnt: ClassVar[bool] = False

    @property
    def low_bits(self) -> bool:
        """Return whether the feature is about low bits."""
        return self.feature.low_bits

    def of(self, thing: Published) -> float:
        """Return the number."""
        found = number(self.feature.of(thing))
        return math.nan if found is None else found

    def words(self, cut: float, *, upwards: bool) -> str:
        """Return for example "answer 2 ≥ 5"."""
        return f"{self.feature.name} {'≥' if upwards else '≤'} {cut:g}"


@final
@dataclass(frozen=True)
class Table:
    """The log-likelihood ratio of the feature's label; of a number that has too many values, of the bin it is in.

    Attributes:
        feature: what is looked at.
        edges: the bins' lower edges; none if labels are few.
        ratios: of labels, or of bins.
    """

    feature: Feature
    edges: tuple[float, ...]
    ratios: dict[Hashable, float] = field(repr=False)
    learnt: ClassVar[bool] = True

    @property
    def low_bits(self) -> bool:
        """Return whether the feature is about low bits."""
        return self.feature.low_bits

    def label(self, value: Hashable) -> Hashable:
        """Return the label of the feature's value, or its bin."""
        if not self.edges:
            return looks(value)
        found = number(value)
        return looks(value) if found is None else bisect.bisect_right(self.edges, found)

    def of(self, thing: Published) -> float:
        """Return the ratio, 0 for what was not seen."""
        return self.ratios.get(self.label(self.feature.of(thing)), 0.0)

    def words(self, cut: float, *, upwards: bool) -> str:
        """Return a few of the values."""
        sign = 1 if upwards else -1
        inside = sorted((label for label, ratio in self.ratios.items() if sign * ratio >= sign * cut), key=repr)
        shown = ", ".join(self._shown(label) for label in inside[:_SHOWN])
        return f"{self.feature.name} is one of {shown}{', …' if len(inside) > _SHOWN else ''}"

    def _shown(self, label: Hashable) -> str:
        if isinstance(label, int):
            low = f"[{self.edges[label - 1]:.4g}" if label else "(-∞"
            high = f"{self.edges[label]:.4g}" if label < len(self.edges) else "∞"
            return f"{low}, {high})"
        value = label[0] if isinstance(label, tuple) else label
        text = repr(value.value if isinstance(value, Published) else value)
        return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


@final
@dataclass(frozen=True)
class Together:
    """The sum of the log-likelihood ratios of many answers, as if they were independent."""

    tables: tuple[Table, ...]
    learnt: ClassVar[bool] = True
    low_bits: ClassVar[bool] = False

    def of(self, thing: Published) -> float:
        """Return the sum, to six digits so that equal sums are equal."""
        return round(math.fsum(table.of(thing) for table in self.tables), 6)

    def words(self, cut: float, *, upwards: bool) -> str:
        """Return it in words."""
        what = f"the log-likelihood ratios of {len(self.tables)} answers"
        return f"{what} add up to {'at least' if upwards else 'at most'} {cut:.3g}"


@final
@dataclass(frozen=True)
class Nothing:
    """0 for everything."""

    learnt: ClassVar[bool] = False
    low_bits: ClassVar[bool] = False

    def of(self, thing: Published) -> float:  # noqa: ARG002 - it is 0 for everything
        """Return 0."""
        return 0.0

    def words(self, cut: float, *, upwards: bool) -> str:  # noqa: ARG002 - the words are the same for every event
        """Say that there is nothing to say."""
        return "nothing in the first half of the runs told the inputs apart"


def scores(learn: Pair, features: Sequence[Feature]) -> Iterator[Score]:
    """Yield the scores of all features that vary."""
    alone: list[Table] = []
    for feature in features:
        table, numbers = _table(feature, learn)
        if len(numbers) > 1:
            yield Value(feature)
        if len(table.ratios) > 1:
            yield table
            if feature.alone:
                alone.append(table)
    if len(alone) > 1:
        yield Together(tuple(alone))


def _table(feature: Feature, learn: Pair) -> tuple[Table, set[float]]:
    values = [[(feature.of(thing), times) for thing, times in learn[index].counts.items()] for index in (0, 1)]
    seen: Counter[float] = Counter()
    for value, times in itertools.chain(*values):
        found = number(value)
        if found is not None:
            seen[found] += times
    table = Table(feature, _edges(seen) if len(seen) > _MOST_LABELS else (), {})
    first, second = (_labels(table, each) for each in values)
    ratio = (learn.second.runs + 1) / (learn.first.runs + 1)
    for label in first | second:
        table.ratios[label] = math.log((first[label] + 0.5) / (second[label] + 0.5) * ratio)
    return table, set(seen)


def _labels(table: Table, values: list[tuple[Hashable, int]]) -> Counter[Hashable]:
    found: Counter[Hashable] = Counter()
    for value, times in values:
        found[table.label(value)] += times
    return found


def _edges(seen: Counter[float]) -> tuple[float, ...]:
    """Return bin edges with about as many runs between each two."""
    values = sorted(seen)
    shares = np.cumsum([seen[value] for value in values]) / seen.total()
    places = np.searchsorted(shares, np.arange(1, _BINS) / _BINS)
    return tuple(sorted({values[place] for place in places}))
