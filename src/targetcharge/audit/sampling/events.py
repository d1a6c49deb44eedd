"""Events: sets of published things that are likelier on one input than on the other.

An event is "the score is at least (at most) a cut". Scores are the numbers themselves, or log-likelihood
ratios learnt for labels; by the lemma of Neyman and Pearson the best events are of this form.

>>> from targetcharge.audit.sampling.features import default_features
>>> from targetcharge.audit.sampling.piles import Pair, Pile
>>> learn = choose = Pair(Pile.of(["a"] * 900 + ["b"] * 100), Pile.of(["a"] * 100 + ["b"] * 900))
>>> best = candidates(learn, choose, default_features(learn.first.counts), delta=0.0, alpha=0.05)[0]
>>> best.name, best.swapped, round(best.shown, 2)
("everything published is one of 'a'", False, 1.99)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.sampling.bounds import Counts, log_ratios
from targetcharge.audit.sampling.scores import Nothing, scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from targetcharge.audit.sampling.features import Feature
    from targetcharge.audit.sampling.piles import Pair, Pile
    from targetcharge.audit.sampling.scores import Score

_MOST_CUTS: Final = 512


@final
@dataclass(frozen=True)
class Event:
    """A set of published things.

    Attributes:
        score: what is compared with the cut.
        cut: where.
        upwards: whether the event is the scores from the cut on, or those up to it.
        swapped: whether it is likelier on the second input.
        shown: the bound on ε that it gave where it was chosen: too good to be true, as the best of many.
    """

    score: Score
    cut: float
    upwards: bool
    swapped: bool
    shown: float

    @property
    def name(self) -> str:
        """Return the event in words."""
        return self.score.words(self.cut, upwards=self.upwards)

    @classmethod
    def nothing(cls) -> Event:
        """Return the event that never happens, for when there is no better one."""
        return cls(Nothing(), 1.0, upwards=True, swapped=False, shown=-math.inf)

    def counts(self, pair: Pair) -> tuple[Counts, Counts]:
        """Return how often it was seen: on the input where it should be likelier, and on the other."""
        first, second = (Counts(self._seen(pile), pile.runs) for pile in (pair.first, pair.second))
        return (second, first) if self.swapped else (first, second)

    def _seen(self, pile: Pile) -> int:
        sign = 1 if self.upwards else -1
        return sum(times for thing, times in pile.counts.items() if sign * self.score.of(thing) >= sign * self.cut)


def candidates(learn: Pair, choose: Pair, features: Sequence[Feature], delta: float, alpha: float) -> list[Event]:
    """Return for every feature, tail and direction the event that shows the most, the best first."""
    found: list[Event] = []
    for score in scores(learn, features):
        values, first, second = _counted(score, choose)
        for upwards in (True, False):
            found += _cut(score, values, (first, second), upwards=upwards, delta=delta, alpha=alpha)
    return sorted(found, key=lambda event: event.shown, reverse=True)


def _counted(score: Score, pair: Pair) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the scores that occur, upwards, with their counts on both inputs; those without a score come last."""
    tally: dict[float, list[int]] = {}
    nothing = [0, 0]
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


def _cut(
    score: Score,
    values: NDArray[np.float64],
    counts: tuple[NDArray[np.int64], NDArray[np.int64]],
    *,
    upwards: bool,
    delta: float,
    alpha: float,
) -> list[Event]:
    if not len(values):
        return []
    runs = int(counts[0].sum()), int(counts[1].sum())
    sums = [np.cumsum(each[:-1][::-1])[::-1] if upwards else np.cumsum(each[:-1]) for each in counts]
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_CUTS)).round().astype(int))
    found = []
    for swapped in (False, True):
        likely, rare = (sums[swapped][places], sums[not swapped][places])
        shown = log_ratios(likely, rare, (runs[swapped], runs[not swapped]), delta, alpha)
        best = int(np.argmax(shown))
        found.append(Event(score, float(values[places[best]]), upwards, swapped, float(shown[best])))
    return found
