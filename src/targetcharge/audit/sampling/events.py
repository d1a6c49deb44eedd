"""Events: sets of published values that are likelier on one input than on the other.

An event is "the score is at least (at most) a cut". Scores are the numbers themselves, or log-likelihood
ratios learnt for labels; by the lemma of Neyman and Pearson the best events are of this form.

>>> from targetcharge.audit.sampling.features import default_features
>>> from targetcharge.audit.sampling.published import published_of
>>> learn = choose = tuple(
...     Counter({published_of("a"): often, published_of("b"): 1000 - often}) for often in (900, 100)
... )
>>> best = candidates(learn, choose, default_features(learn[0]), 0.0, 0.05, runs=1_000)[0]
>>> best.name, best.swapped, round(best.expected, 2)
("everything published is one of 'a'", False, 1.99)
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.sampling.bounds import Counts, by_intervals, by_tilting
from targetcharge.audit.sampling.published import Published, float_of, label

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from targetcharge.audit.sampling.features import Feature
    from targetcharge.audit.sampling.runs import Tallies

    Histogram = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
    """Scores that occur, and how often on the first and on the second input; last, how often there was none."""

_MOST_LABELS: Final = 64
_BINS: Final = 24
_SHOWN: Final = 4
_LONGEST: Final = 60

_MOST_CUTS: Final = 192
"""Cuts with about as many scores between each two, besides those in the tail."""

_GROWTH: Final = 1.1
"""In the tail each cut leaves so many times as many scores beyond it as the one before."""

_TILTS: Final = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6])


# Scores.


@final
@dataclass(frozen=True)
class FeatureNumber:
    """The feature's number itself."""

    feature: Feature

    def of(self, published: Published) -> float:
        """Return the number; NaN where there is none."""
        number = float_of(self.feature.of(published))
        return math.nan if number is None else number

    def words(self, cut: float, *, upwards: bool) -> str:
        """Return for example "answer 2 ≥ 5"."""
        return f"{self.feature.name} {'≥' if upwards else '≤'} {cut:g}"


@final
@dataclass(frozen=True)
class RatioTable:
    """The log-likelihood ratio of the feature's label; of a number that has too many values, of the bin it is in.

    Attributes:
        feature: what is looked at.
        edges: the bins' lower edges; none if labels are few.
        ratios: of labels, or of bins.
    """

    feature: Feature
    edges: tuple[float, ...]
    ratios: dict[Hashable, float] = field(repr=False)

    def label(self, value: Hashable) -> Hashable:
        """Return the label of the feature's value, or its bin."""
        number = float_of(value) if self.edges else None
        return label(value) if number is None else bisect.bisect_right(self.edges, number)

    def of(self, published: Published) -> float:
        """Return the ratio, 0 for what was not seen."""
        return self.ratios.get(self.label(self.feature.of(published)), 0.0)

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
class RatioSum:
    """The sum of the log-likelihood ratios of many answers, as if they were independent."""

    tables: tuple[RatioTable, ...]

    def of(self, published: Published) -> float:
        """Return the sum, to six digits so that equal sums are equal."""
        return round(math.fsum(table.of(published) for table in self.tables), 6)

    def words(self, cut: float, *, upwards: bool) -> str:
        """Return the event in words."""
        what = f"the log-likelihood ratios of {len(self.tables)} answers"
        return f"{what} add up to {'at least' if upwards else 'at most'} {cut:.3g}"


Score = FeatureNumber | RatioTable | RatioSum
"""A number for everything that may be published."""


def scores(learn: Tallies, features: Sequence[Feature]) -> Iterator[Score]:
    """Yield the scores of all features that vary."""
    alone: list[RatioTable] = []
    for feature in features:
        table, numbers = _learnt(feature, learn)
        if len(numbers) > 1:
            yield FeatureNumber(feature)
        if len(table.ratios) > 1:
            yield table
            if feature.alone:
                alone.append(table)
    if len(alone) > 1:
        yield RatioSum(tuple(alone))


def _learnt(feature: Feature, learn: Tallies) -> tuple[RatioTable, Counter[float]]:
    """Return the table of a feature, and the numbers that it was."""
    values = [[(feature.of(published), times) for published, times in tally.items()] for tally in learn]
    numbers: Counter[float] = Counter()
    for value, times in itertools.chain(*values):
        number = float_of(value)
        if number is not None:
            numbers[number] += times
    table = RatioTable(feature, _edges(numbers) if len(numbers) > _MOST_LABELS else (), {})
    labels: tuple[Counter[Hashable], Counter[Hashable]] = Counter(), Counter()
    for counts, seen in zip(labels, values, strict=True):
        for value, times in seen:
            counts[table.label(value)] += times
    first, second = labels
    ratio = (learn[1].total() + 1) / (learn[0].total() + 1)
    for key in first | second:
        table.ratios[key] = math.log((first[key] + 0.5) / (second[key] + 0.5) * ratio)
    return table, numbers


def _edges(numbers: Counter[float]) -> tuple[float, ...]:
    """Return bin edges with about as many runs between each two."""
    values = sorted(numbers)
    shares = np.cumsum([numbers[value] for value in values]) / numbers.total()
    places = np.searchsorted(shares, np.arange(1, _BINS) / _BINS)
    return tuple(sorted({values[place] for place in places}))


# Events.


@final
@dataclass(frozen=True)
class Event:
    """A set of published values.

    Attributes:
        score: what is compared with the cut.
        cut: where.
        upwards: whether the event is the scores from the cut on, or those up to it.
        swapped: whether it is likelier on the second input.
        expected: the bound on ε that it would give if it were seen as often as where it was chosen: too good to be
            true, as the best of many.
        tilt: the bound that is taken when it is counted: that of intervals if None.
        never: whether it was not seen on the input where it should be rarer.
    """

    score: Score
    cut: float
    upwards: bool
    swapped: bool
    expected: float
    tilt: float | None = None
    never: bool = False

    @property
    def name(self) -> str:
        """Return the event in words."""
        return self.score.words(self.cut, upwards=self.upwards)

    @property
    def family(self) -> str:
        """Return what sort of event it is: events of one sort have much in common."""
        if not isinstance(self.score, RatioSum) and self.score.feature.low_bits:
            return "low bits"
        return "never" if self.never else "often"

    def counts(self, tallies: Tallies) -> tuple[Counts, Counts]:
        """Return how often it was seen: on the input where it should be likelier, and on the other."""
        first, second = (Counts(self._seen(tally), tally.total()) for tally in tallies)
        return (second, first) if self.swapped else (first, second)

    def _seen(self, tally: Counter[Published]) -> int:
        sign = 1 if self.upwards else -1
        return sum(times for value, times in tally.items() if sign * self.score.of(value) >= sign * self.cut)


def candidates(
    learn: Tallies, choose: Tallies, features: Sequence[Feature], delta: float, alpha: float, *, runs: int
) -> list[Event]:
    """Return for every feature, tail and direction the events that promise the most, the best first.

    Log-likelihood ratios are learnt from one part of the samples, and cuts are chosen in another; those of
    numbers, which are not learnt, in both. The events will be counted in so many runs on each input, and the
    bound of each may fail with probability α.
    """
    events: list[Event] = []
    for score in scores(learn, features):
        histogram = _histogram(score, [learn, choose] if isinstance(score, FeatureNumber) else [choose])
        for upwards in (True, False):
            events += _cut(score, histogram, upwards=upwards, delta=delta, alpha=alpha, runs=runs)
    return sorted(events, key=lambda event: event.expected, reverse=True)


def varied(events: Sequence[Event], count: int) -> list[Event]:
    """Return so many of the events, of which the best come first: the best of each family, then each direction.

    Events that are alike fall together. One that is rare, or about low bits, is no better than chance where it was
    chosen as long as there is nothing to be seen, and would never be counted beside those that happen often.
    """
    chosen: list[Event] = []
    for key in (lambda event: event.family, lambda event: (event.family, event.swapped), id):
        seen = {key(event) for event in chosen}
        for event in events:
            if key(event) not in seen and len(chosen) < count:
                seen.add(key(event))
                chosen.append(event)
    return chosen


def _histogram(score: Score, parts: list[Tallies]) -> Histogram:
    counts: dict[float, list[int]] = {}
    without = [0, 0]
    for tallies in parts:
        for side, tally in enumerate(tallies):
            for published, times in tally.items():
                value = score.of(published)
                slot = without if math.isnan(value) else counts.setdefault(value, [0, 0])
                slot[side] += times
    values = sorted(counts)
    first, second = np.array([*(counts[value] for value in values), without], dtype=np.int64).T
    return np.array(values), first, second


def _cut(
    score: Score, histogram: Histogram, *, upwards: bool, delta: float, alpha: float, runs: int
) -> Iterator[Event]:
    """Yield the cuts that promise the most in both directions, and those beyond all that the other input gave."""
    values, *counts = histogram
    if not len(values):
        return
    order = slice(None, None, -1) if upwards else slice(None)  # from the tail on
    sums = [np.cumsum(side[:-1][order]) for side in counts]
    totals = [int(side.sum()) for side in counts]
    for swapped in (False, True):
        likely, rare = sums[swapped], sums[not swapped]
        beyond = int(np.searchsorted(rare, 1)) - 1  # the last cut with nothing of the other input's
        places = _places(len(values), beyond)
        expected, tilts = _expected(
            Counts(likely[places] * (runs / totals[swapped]), runs),
            Counts((rare[places] + 0.5) * (runs / totals[not swapped]), runs),
            delta,
            alpha,
        )
        best = {int(np.argmax(expected))} | ({int(np.searchsorted(places, beyond))} if beyond >= 0 else set())
        for place in sorted(best):
            cut, tilt = float(values[order][places[place]]), float(tilts[place])
            used = None if math.isnan(tilt) else tilt
            yield Event(score, cut, upwards, swapped, float(expected[place]), used, never=places[place] <= beyond)


def _places(count: int, beyond: int) -> NDArray[np.int64]:
    """Return which of so many cuts to try: ever closer ones in the tail, and the last with nothing beyond it."""
    tail = _GROWTH ** np.arange(math.log(count + 1, _GROWTH))
    even = np.linspace(0, count - 1, min(count, _MOST_CUTS))
    places = np.concatenate([tail - 1, even, [max(beyond, 0)]]).round().astype(np.int64)
    return np.unique(np.minimum(places, count - 1))


def _expected(
    likely: Counts, rare: Counts, delta: float, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds on ε of events that are seen so often, and the tilts that give them, NaN for intervals."""
    columns = [Counts(np.asarray(counts.seen)[:, None], counts.runs) for counts in (likely, rare)]
    tilted = by_tilting(columns[0], columns[1], delta, alpha, _TILTS)
    intervals = by_intervals(likely, Counts(np.minimum(rare.seen, rare.runs), rare.runs), delta, alpha)
    best = tilted.max(axis=1)
    return np.maximum(best, intervals), np.where(intervals >= best, math.nan, _TILTS[tilted.argmax(axis=1)])
