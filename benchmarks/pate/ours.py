"""What `targetcharge.learning.label` buys: expected numbers for every mode, over a grid of its parameters."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Final

import numpy as np

import targetcharge as tc
from benchmarks.pate.laws import exponential, marks, permute_and_flip, reaches
from benchmarks.pate.offers import DELTA, Offer
from targetcharge.accounting import exact_hits, renyi_hits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.pate.votes import Votes

MECHANISMS: Final = {"permute-and-flip": permute_and_flip, "exponential": exponential}
PAPER: Final = "boundary as in the paper"
_COARSE: Final = (0.03, *np.round(np.arange(0.04, 0.13, 0.01), 3), 0.14, 0.16, 0.18, 0.2)
_MIDDLING: Final = (0.03, 0.04, 0.05, *np.round(np.arange(0.06, 0.11, 0.005), 3), 0.11, 0.12, 0.14, 0.16, 0.2)
_FINE: Final = (*np.round(np.arange(0.03, 0.2, 0.002), 3), *np.round(np.arange(0.2, 0.52, 0.02), 3))
QUERIES: Final = {
    1.0: _FINE,
    **dict.fromkeys((1.5, 2.0, 2.5, 3.0, 4.0), _MIDDLING),
    **dict.fromkeys((6.0, 8.0, 10.0, 14.0, 18.0, 22.0, 30.0, 50.0, 100.0), _COARSE),
}
"""For each caution the query ε to try. The price of the paper's mark, caution 1, is quick to compute."""

_SHARES: Final = (0.2, 0.3, 0.5)
_THRESHOLDS: Final = (75, 100, 125, 150, 175, 200)


@cache
def boundary_hits(epsilon: float, query: float, caution: float) -> int:
    """Return how many marks a budget buys."""
    return renyi_hits(tc.Boundary(caution), query, tc.Budget(epsilon, DELTA))


def twice_hits(epsilon: float, query: float) -> int:
    """Return how many disagreements a budget buys."""
    return exact_hits(query, tc.Budget(epsilon, DELTA), tc.Disagreement().kind(query))


def prior_hits(epsilon: float, query: float, delta: float = DELTA) -> int:
    """Return how many labels other than the prior a budget buys."""
    return exact_hits(query, tc.Budget(epsilon, delta))


def way(mode: str, mechanism: str) -> str:
    """Return the name of a mode with a mechanism."""
    return f"{mode}, {mechanism}"


def offers(votes: Votes, epsilons: tuple[float, ...]) -> dict[float, list[Offer]]:
    """Return the offers for each ε'; modes boundary (as in the paper, with caution, with a threshold), twice."""
    found: dict[float, list[Offer]] = {epsilon: [] for epsilon in epsilons}
    for name in MECHANISMS:
        for caution, queries in QUERIES.items():
            for query in queries:
                one = boundary(votes, name, query, caution, 1)
                add(found, one, query, caution)
                if caution == 1:
                    add(found, replace(one, way=way(PAPER, name)), query, caution)
        for query in _COARSE:
            for epsilon in epsilons:
                found[epsilon].append(twice(votes, name, query, twice_hits(epsilon, query)))
            for share, threshold in product(_SHARES, _THRESHOLDS):
                tested = Thresholded(votes, name, query, share, threshold)
                for caution in QUERIES:
                    add(found, tested.offer(caution, 1), query, caution)
    return found


def add(found: dict[float, list[Offer]], one: Offer, query: float, caution: float) -> None:
    """Add what each budget buys, given what one hit buys; what the larger one cannot buy, the smaller cannot."""
    for epsilon in sorted(found, reverse=True):
        hits = boundary_hits(epsilon, query, caution)
        if not hits:
            return
        settings = _with(one.settings.rsplit(",", 1)[0], hits)
        found[epsilon].append(Offer(hits * one.labels, one.accuracy, hits * one.asked, one.way, settings))


def boundary(votes: Votes, mechanism: str, query: float, caution: float, hits: int) -> Offer:
    """Return what mode "boundary" buys with so many hits."""
    law = MECHANISMS[mechanism](votes.counts, query)
    mark = marks(law.max(axis=1), caution)
    chosen = (1 - mark) * votes.of_truth(law)
    settings = f"ε {query:g}, caution {caution:g}"
    return _offer(mark, 1 - mark, chosen, hits, way("boundary", mechanism), settings)


def twice(votes: Votes, mechanism: str, query: float, hits: int) -> Offer:
    """Return what mode "twice" buys with so many hits."""
    law = MECHANISMS[mechanism](votes.counts, query)
    agree = (law**2).sum(axis=1)
    return _offer(
        1 - agree, agree, votes.of_truth(law) ** 2, hits, way("twice", mechanism), f"ε {query:g}, two runs"
    )


def prior(votes: Votes, mechanism: str, query: float, hits: int, guesses: NDArray[np.int64]) -> Offer:
    """Return what mode "prior" buys with so many hits and these guesses; every request gets a label."""
    law = MECHANISMS[mechanism](votes.counts, query)
    other = 1 - law[np.arange(len(guesses)), guesses]
    return _offer(other, np.ones(len(other)), votes.of_truth(law), hits, way("prior", mechanism), f"ε {query:g}")


class Thresholded:
    """Mode "boundary" with a share of ε for a threshold on the top count."""

    def __init__(self, votes: Votes, mechanism: str, query: float, share: float, threshold: float) -> None:
        """Compute what does not depend on the caution."""
        law = MECHANISMS[mechanism](votes.counts, (1 - share) * query)
        self._passed = reaches(votes.counts.max(axis=1), threshold, share * query)
        self._likeliest = np.maximum(law.max(axis=1) * self._passed, 1 - self._passed)
        self._right = votes.of_truth(law)
        self._way = way("boundary, low", mechanism)
        self._settings = f"ε {query:g}, {share:.0%} of it for the threshold {threshold:g}"

    def offer(self, caution: float, hits: int) -> Offer:
        """Return what so many hits buy."""
        mark = marks(self._likeliest, caution)
        kept = (1 - mark) * self._passed
        settings = f"{self._settings}, caution {caution:g}"
        return _offer(mark, kept, kept * self._right, hits, self._way, settings)


def _offer(
    hit: NDArray[np.float64],
    labelled: NDArray[np.float64],
    right: NDArray[np.float64],
    hits: int,
    name: str,
    settings: str,
) -> Offer:
    asked = hits / hit.mean()
    return Offer(asked * labelled.mean(), right.sum() / labelled.sum(), asked, name, _with(settings, hits))


def _with(settings: str, hits: int) -> str:
    return f"{settings}, {hits} hit{'s' * (hits != 1)}"
