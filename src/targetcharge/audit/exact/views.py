"""Views: all that an analyst may see of a game, its probabilities on two neighbouring datasets, and measures.

>>> quiet = View((), (), ())
>>> loud = View((("yes",),), (), ())
>>> views = Views({quiet: (0.25, 0.75), loud: (0.75, 0.25)}, paths=2)
>>> hockey_stick(views, [0.0, 1.0]).round(6).tolist(), round(moment(views, 2.0), 6)
([0.5, 0.07043], 0.847298)
>>> losses(views).round(6).tolist()
[-1.098612, 1.098612]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Odometer, Totals

    Reading = tuple[Totals, int, Odometer]
    """What one meter shows: totals, hits left, the odometer."""


@final
@dataclass(frozen=True)
class View:
    """Everything that was seen in one way a game may go.

    Attributes:
        events: what came back from each call: answers, refusals, failures, and the meters after it.
        meters: what the meters show at the end.
        transcript: the session's, at the end.
        pending: the releases that wait for a revision, at the end.
    """

    events: tuple[tuple[object, ...], ...]
    meters: tuple[Reading, ...]
    transcript: tuple[tuple[object, ...], ...]
    pending: tuple[int, ...] = ()

    @property
    def hits(self) -> int:
        """Return the hits that the meters show; with alternatives the most."""
        return max(odometer.hits for _, _, odometer in self.meters)


@final
@dataclass(frozen=True)
class Views:
    """All that can be seen in a game.

    Attributes:
        seen: each view's probabilities on either dataset.
        paths: how many runs through the session they were gathered from.
    """

    seen: Mapping[View, tuple[float, float]]
    paths: int

    def __len__(self) -> int:
        """Return the number of views."""
        return len(self.seen)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Return the probabilities, a row for each view."""
        return np.array(list(self.seen.values()))


def losses(views: Views) -> NDArray[np.float64]:
    """Return the finite privacy losses of the views, each once, rising: there the curve δ(ε) bends."""
    weights = views.weights
    weights = weights[(weights > 0).all(axis=1)]
    found: NDArray[np.float64] = np.sort(np.log(weights[:, 0]) - np.log(weights[:, 1]))
    if not len(found):
        return found
    return np.asarray(found[np.append([True], np.diff(found) > 1e-12)])


def hockey_stick(views: Views, epsilons: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each ε, the smallest δ with which what is seen is (ε, δ)-indistinguishable, either way."""
    first, second = views.weights.T
    factors = np.exp(np.asarray(epsilons, dtype=np.float64))[:, None]
    forward = np.maximum(0.0, first - factors * second).sum(axis=1)
    backward = np.maximum(0.0, second - factors * first).sum(axis=1)
    return np.asarray(np.maximum(forward, backward))


def moment(views: Views, order: float) -> float:
    """Return ln E[e^{(order-1)·loss}], the worse direction; infinite if a view gives the dataset away."""
    weights = views.weights
    weights = weights[(weights > 0).any(axis=1)]
    if (weights == 0).any():
        return math.inf
    first, second = np.log(weights.T)
    ends = [np.exp(order * one + (1 - order) * other).sum() for one, other in ((first, second), (second, first))]
    return math.log(max(ends))


def curve(views: Views) -> list[tuple[float, float]]:
    """Return (ε, δ) where the exact curve δ(ε) bends; between them δ is linear in e^ε."""
    bends = np.unique(np.append(0.0, np.abs(losses(views))))
    return [(float(bend), float(delta)) for bend, delta in zip(bends, hockey_stick(views, bends), strict=True)]
