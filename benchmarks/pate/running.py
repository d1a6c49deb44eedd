"""Do real sessions give what was computed? `label` on the votes, many times."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

import targetcharge as tc
from benchmarks.pate import ours
from benchmarks.pate.offers import DELTA, Offer
from targetcharge.learning import Labels, label

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.pate.votes import Votes

RUNS = int(os.environ.get("PATE_RUNS", "60"))
EPSILON = 3.157
TEACHERS = 250
_SPELLED = {"permute-and-flip": "permute_and_flip", "exponential": "exponential"}
_PLENTY = 4
"""So many times the expected number of requests are ready: hardly a session gets to the end of them."""


@dataclass(frozen=True)
class Setting:
    """Parameters of `label`, with the names of these benchmarks for mechanisms."""

    mode: str
    mechanism: str
    query: float
    share: float | None = None
    threshold: int | None = None
    caution: float = 2.0

    @property
    def target(self) -> tc.Boundary | tc.Disagreement | tc.NotPrior:
        """Return what the session must price."""
        if self.mode == "twice":
            return tc.Disagreement()
        return tc.NotPrior(prior=None) if self.mode == "prior" else tc.Boundary(self.caution)

    def expected(self, votes: Votes, epsilon: float, guesses: NDArray[np.int64]) -> Offer:
        """Return what was computed."""
        if self.mode == "twice":
            return ours.twice(votes, self.mechanism, self.query, ours.twice_hits(epsilon, self.query))
        if self.mode == "prior":
            return ours.prior(votes, self.mechanism, self.query, ours.prior_hits(epsilon, self.query), guesses)
        hits = ours.boundary_hits(epsilon, self.query, self.caution)
        if self.share is None or self.threshold is None:
            return ours.boundary(votes, self.mechanism, self.query, self.caution, hits)
        tested = ours.Thresholded(votes, self.mechanism, self.query, self.share, self.threshold)
        return tested.offer(self.caution, hits)


SETTINGS = (
    Setting("boundary", "permute-and-flip", 0.08),
    Setting("boundary", "permute-and-flip", 0.09, caution=22.0),
    Setting("boundary", "exponential", 0.09),
    Setting("boundary", "permute-and-flip", 0.102, caution=1.0),
    Setting("boundary", "permute-and-flip", 0.1, share=0.3, threshold=75, caution=2.5),
    Setting("twice", "permute-and-flip", 0.08),
    Setting("prior", "permute-and-flip", 0.1),
)


def run(
    counts: NDArray[np.float64], setting: Setting, budget: tc.Budget, prior: NDArray[np.int64] | None = None
) -> Labels:
    """Return the labels of one session."""
    meter = "renyi" if setting.mode == "boundary" else "exact"
    targets = [setting.target]
    with tc.Session(None, budget, setting.query, meter=meter, targets=targets) as session:
        return label(
            counts.astype(np.int64),
            session,
            teachers=TEACHERS,
            epsilon=setting.query,
            mechanism=_SPELLED[setting.mechanism],
            mode=setting.mode,
            prior=prior,
            caution=setting.caution,
            threshold=setting.threshold,
            threshold_epsilon=None if setting.share is None else setting.share * setting.query,
        )


def confirmed(votes: Votes, guesses: NDArray[np.int64]) -> Table:
    """Run real sessions and compare the means with what was computed."""
    title = f"computed and run: {RUNS} sessions each at ({EPSILON}, {DELTA:g}), with standard errors"
    columns = (
        "way",
        "query ε",
        "caution",
        "labels, computed",
        "labels, run",
        "accuracy, computed",
        "accuracy, run",
    )
    table = Table(*columns, title=title, title_justify="left")
    random = np.random.default_rng()
    for setting in SETTINGS:
        expected = setting.expected(votes, EPSILON, guesses)
        found = np.array([session(votes, setting, expected, guesses, random) for _ in range(RUNS)])
        labels, right = found.T
        accuracy = right.sum() / labels.sum()
        spread = (right - accuracy * labels).std(ddof=1) / labels.mean()
        low = "" if setting.threshold is None else f", low below {setting.threshold}"
        table.add_row(
            f"{setting.mode}{low}, {setting.mechanism}",
            f"{setting.query:g}",
            f"{setting.caution:g}" if setting.mode == "boundary" else "",
            f"{expected.labels:.1f}",
            f"{labels.mean():.1f} ± {labels.std(ddof=1) / math.sqrt(RUNS):.1f}",
            f"{expected.accuracy:.2%}",
            f"{accuracy:.2%} ± {spread / math.sqrt(RUNS):.2%}",
        )
    return table


def session(
    votes: Votes,
    setting: Setting,
    expected: Offer,
    guesses: NDArray[np.int64],
    random: np.random.Generator,
) -> tuple[int, int]:
    """Return the labels of a session about random rows, and how many are right."""
    rows = random.integers(0, len(votes.counts), _PLENTY * math.ceil(expected.asked))
    prior = guesses[rows] if setting.mode == "prior" else None
    labels = run(votes.counts[rows], setting, tc.Budget(EPSILON, DELTA), prior)
    return len(labels.rows), int((labels.values == votes.truth[rows][labels.rows]).sum())
