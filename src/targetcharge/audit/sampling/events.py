"""Events: sets of published things that are likelier on one input than on the other.

An event is "the score is at least (at most) a cut". Scores are the numbers themselves, or log-likelihood
ratios learnt for labels; by the lemma of Neyman and Pearson the best events are of this form.

>>> from targetcharge.audit.sampling.features import default_features
>>> from targetcharge.audit.sampling.piles import Pair, Pile
>>> learn = choose = Pair(Pile.of(["a"] * 900 + ["b"] * 100), Pile.of(["a"] * 100 + ["b"] * 900))
>>> best = candidates(learn, choose, default_features(learn.first.counts), 0.0, 0.05, runs=1_000)[0]
>>> best.name, best.swapped, round(best.expected, 2)
("everything published is one of 'a'", False, 1.99)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.sampling.bounds import Counts, log_ratios, tilted_log_ratios
from targetcharge.audit.sampling.scores import Nothing, scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from targetcharge.audit.sampling.bounds import Seen
    from targetcharge.audit.sampling.features import Feature
    from targetcharge.audit.sampling.piles import Pair, Pile
    from targetcharge.audit.sampling.scores import Score

    Tally = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]
    """Scores that occur, and how often on the first and on the second input."""

_MOST_CUTS: Final = 192
"""Cuts with about as many scores between each two, besides those in the tail."""

_GROWTH: Final = 1.1
"""In the tail each cut leaves so many times as many scores beyond it as the one before."""

_TILTS: Final = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6])


@final
@dataclass(frozen=True)
class Event:
    """A set of published things.

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

    @classmethod
    def nothing(cls) -> Event:
        """Return the event that never happens, for when there is no better one."""
        return cls(Nothing(), 1.0, upwards=True, swapped=False, expected=-math.inf)

    @property
    def family(self) -> str:
        """Return what sort of event it is: events of one sort have much in common."""
        return "low bits" if self.score.low_bits else "never" if self.never else "often"

    def counts(self, pair: Pair) -> tuple[Counts, Counts]:
        """Return how often it was seen: on the input where it should be likelier, and on the other."""
        first, second = (Counts(self._seen(pile), pile.runs) for pile in (pair.first, pair.second))
        return (second, first) if self.swapped else (first, second)

    def _seen(self, pile: Pile) -> int:
        sign = 1 if self.upwards else -1
        return sum(times for thing, times in pile.counts.items() if sign * self.score.of(thing) >= sign * self.cut)


def candidates(
    learn: Pair, choose: Pair, features: Sequence[Feature], delta: float, alpha: float, *, runs: int
) -> list[Event]:
    """Return for every feature, tail and direction the events that promise the most, the best first.

    Args:
        learn: where log-likelihood ratios are learnt.
        choose: where cuts are chosen; for numbers that were not learnt, besides where the others were.
        features: what to look at.
        delta: the δ of the claim.
        alpha: by which the bound of a counted event may fail.
        runs: on each input in which the events will be counted.
    """
    found: list[Event] = []
    for score in scores(learn, features):
        tally = _counted(score, [choose] if score.learnt else [learn, choose])
        for upwards in (True, False):
            found += _cut(score, tally, upwards=upwards, delta=delta, alpha=alpha, runs=runs)
    return sorted(found, key=lambda event: event.expected, reverse=True)


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


def _counted(score: Score, pairs: list[Pair]) -> Tally:
    """Return the scores that occur, upwards, with their counts on both inputs; those without a score come last."""
    tally: dict[float, list[int]] = {}
    nothing = [0, 0]
    for pair in pairs:
        for index in (0, 1):
            for thing, times in pair[index].counts.items():
                value = score.of(thing)
                slot = nothing if math.isnan(value) else tally.setdefault(value, [0, 0])
                slot[index] += times
    values = sorted(tally)
    table = np.array([tally[value] for value in values], dtype=np.int64).reshape(-1, 2)
    return (
        np.array(values),
        np.append(table[:, 0], nothing[0]),
        np.append(table[:, 1], nothing[1]),
    )


def _cut(score: Score, tally: Tally, *, upwards: bool, delta: float, alpha: float, runs: int) -> Iterator[Event]:
    """Yield the cuts that promise the most in both directions, and those beyond all that the other input gave."""
    values, *counts = tally
    if not len(values):
        return
    order = slice(None, None, -1) if upwards else slice(None)  # from the tail on
    sums = [np.cumsum(each[:-1][order]) for each in counts]
    totals = [int(each.sum()) for each in counts]
    for swapped in (False, True):
        likely, rare = sums[swapped], sums[not swapped]
        beyond = int(np.searchsorted(rare, 1)) - 1  # the last cut with nothing of the other input's
        places = _places(len(values), beyond)
        seen = likely[places] * (runs / totals[swapped]), (rare[places] + 0.5) * (runs / totals[not swapped])
        expected, tilts = _expected(*seen, runs, delta, alpha)
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
    likely: Seen, rare: Seen, runs: int, delta: float, alpha: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds on ε of events that are seen so often, and the tilts that give them, NaN for intervals."""
    both = runs, runs
    tilted = tilted_log_ratios(likely[:, None], rare[:, None], both, delta, alpha, _TILTS)
    best = tilted.argmax(axis=1)
    tilts, found = _TILTS[best], tilted.max(axis=1)
    rare = np.minimum(rare, runs)
    intervals = log_ratios(likely, rare, both, delta, alpha)
    return np.maximum(found, intervals), np.where(intervals >= found, math.nan, tilts)
