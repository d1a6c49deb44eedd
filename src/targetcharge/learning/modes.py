"""Modes: which outcomes of a request cost.

>>> mode_of("boundary").target, mode_of("prior").plain_target
(Boundary(caution=2), ('NotPrior',))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.accounting.targets import Boundary, Disagreement, Everything, NotPrior
from targetcharge.accounting.targets.boundary import LEAST_DOUBT
from targetcharge.accounting.targets.plain import ANY_PRIOR
from targetcharge.randomness import bernoulli_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from targetcharge.accounting.targets import Target
    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.learning.aggregating import Aggregator
    from targetcharge.randomness import Entropy

    Drawn = tuple[NDArray[np.intp], NDArray[np.bool_]]
    """The index of each request's outcome, and whether it is a hit."""

    Draw = Callable[[Aggregator, NDArray[np.int64], NDArray[np.intp], Entropy], Drawn]
    """From an aggregator, rows of counts and the classes expected for them to outcomes and hits."""


def too_close(classes: int) -> int:
    """Return the code of "too close to call": after the classes and "too few agree"."""
    return classes + 1


@final
@dataclass(frozen=True)
class Mode:
    """What is published of a request, and what of that costs.

    Attributes:
        target: what a request is priced by.
        draw: the outcomes of some rows, and which of them are hits.
        plain_target: what is told of the target, if it is another one for each request.
    """

    target: Target
    draw: Draw
    plain_target: PlainTarget | None = None


def _boundary(caution: float) -> Mode:
    """Return the boundary wrapper: a mark with probability cπ/(1+cπ), at most c/(2+c), else an outcome."""
    target = Boundary(caution)

    def draw(aggregator: Aggregator, counts: NDArray[np.int64], _: NDArray[np.intp], entropy: Entropy) -> Drawn:
        rest = aggregator.rest(counts)
        if rest is None:
            msg = "the boundary wrapper needs the probabilities of the outcomes"
            raise TypeError(msg)
        doubt = target.caution * np.clip(rest, LEAST_DOUBT, 0.5)
        marked = bernoulli_array(entropy, doubt / (1 + doubt))
        return np.where(marked, too_close(counts.shape[1]), aggregator.draw(counts, entropy)), marked

    return Mode(target, draw)


def _prior(aggregator: Aggregator, counts: NDArray[np.int64], prior: NDArray[np.intp], entropy: Entropy) -> Drawn:
    drawn = aggregator.draw(counts, entropy)
    return drawn, drawn != prior


def _twice(aggregator: Aggregator, counts: NDArray[np.int64], _: NDArray[np.intp], entropy: Entropy) -> Drawn:
    first, second = aggregator.draw(counts, entropy), aggregator.draw(counts, entropy)
    differ = first != second
    return np.where(differ, too_close(counts.shape[1]), first), differ


def _plain(aggregator: Aggregator, counts: NDArray[np.int64], _: NDArray[np.intp], entropy: Entropy) -> Drawn:
    return aggregator.draw(counts, entropy), np.ones(len(counts), dtype=np.bool_)


_OTHERS: Final = {
    "prior": Mode(NotPrior(prior=None), _prior, ANY_PRIOR),
    "twice": Mode(Disagreement(), _twice),
    "plain": Mode(Everything(), _plain),
}

MODES: Final = ("boundary", *_OTHERS)
"""Their names."""

CAUTION: Final = 2.0
"""Of the boundary wrapper, if nobody chooses: it buys the most labels on real votes."""


def mode_of(name: str, caution: float = CAUTION) -> Mode:
    """Return the mode of a name; the caution is the boundary wrapper's."""
    return _boundary(caution) if name == "boundary" else _OTHERS[name]
