"""Students: what a classifier learns from the labels, and what its guesses save."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from sklearn.svm import SVC

import targetcharge as tc
from benchmarks.pate import ours, peers
from benchmarks.pate.gnmax import AUTHORS, Confident, authors_cost, gaussian_cost
from benchmarks.pate.offers import BUDGETS, DELTA, Offer
from benchmarks.pate.running import RUNS, Setting, run
from targetcharge.accounting import renyi_hits

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from benchmarks.pate.votes import Votes

    Labelled = tuple[NDArray[np.int64], NDArray[np.int64]]
    """Rows and their labels."""

    Drawn = Callable[[np.random.Generator], Labelled]

_REPEATS = max(2, RUNS // 20)
_QUERIES = np.round(np.arange(0.04, 0.31, 0.01), 3)
_LEAST = 0.93


def student(images: NDArray[np.float64], labels: NDArray[np.int64]) -> SVC:
    """Return a support vector machine that has learned labels of images."""
    return SVC(C=5.0, gamma="scale").fit(images, labels)


def priors(votes: Votes, images: NDArray[np.float64], truth: NDArray[np.int64]) -> Table:
    """Tell what mode "prior" buys with students of two kinds."""
    title = f"mode prior, permute-and-flip: labels and their accuracy (at least {_LEAST:.0%}); δ = {DELTA:g}"
    table = Table("student", *(f"ε' = {epsilon:g}" for epsilon in BUDGETS), title=title, title_justify="left")
    public = guesses(votes, images, truth)
    right = float((public == votes.truth).mean())
    cells = (_cell(_best_prior(votes, public, epsilon, DELTA)) for epsilon in BUDGETS)
    table.add_row(f"learned 1,000 public labels ({right:.1%} right)", *cells)
    table.add_row(
        "learned labels bought with half of ε' and δ", *(_halves(votes, images, each) for each in BUDGETS)
    )
    return table


def guesses(votes: Votes, images: NDArray[np.float64], truth: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what a student guesses who has learned the true labels of the digits that nobody voted on."""
    count = len(votes.counts)
    return np.asarray(student(images[count:], truth[count:]).predict(images[:count]))


def _best_prior(votes: Votes, guessed: NDArray[np.int64], epsilon: float, delta: float) -> Offer | None:
    found = (
        ours.prior(votes, "permute-and-flip", query, ours.prior_hits(epsilon, query, delta), guessed)
        for query in _QUERIES
    )
    good = [offer for offer in found if offer.labels >= 1 and offer.accuracy >= _LEAST]
    return max(good, key=lambda offer: offer.labels, default=None)


def _halves(votes: Votes, images: NDArray[np.float64], epsilon: float) -> str:
    """Return what is bought by mode "boundary" and then, with a student of those labels, by mode "prior"."""
    half, delta = epsilon / 2, DELTA / 2
    settings = [Setting("boundary", "permute-and-flip", query) for query in (0.04, 0.05, 0.06, 0.07, 0.08)]
    targets = [
        (setting, renyi_hits(setting.target, setting.query, tc.Budget(half, delta))) for setting in settings
    ]
    bought = [
        (ours.boundary(votes, setting.mechanism, setting.query, setting.caution, hits).labels, setting)
        for setting, hits in targets
        if hits
    ]
    if not bought:
        return "-"
    labels, setting = max(bought, key=lambda pair: pair[0])
    rows = np.random.default_rng().permutation(len(votes.counts))
    first = run(votes.counts[rows], setting, tc.Budget(half, delta))
    learned = student(images[rows[first.rows]], first.values.astype(np.int64))
    guessed = np.asarray(learned.predict(images[: len(rows)]))
    then = _best_prior(votes, guessed, half, delta)
    if then is None:
        return f"{labels:,.0f} + 0"
    return f"{labels:,.0f} + {then.labels:,.0f} ({then.accuracy:.1%})"


def _cell(offer: Offer | None) -> str:
    return "-" if offer is None else f"{offer.labels:,.0f} ({offer.accuracy:.1%}) {offer.settings}"


def students(votes: Votes, images: NDArray[np.float64], truth: NDArray[np.int64]) -> Table:
    """Train a student on labels of several origins and test it on digits that nobody voted on."""
    title = f"a student (support vector machine) and its accuracy on 1,000 other digits; {_REPEATS} runs each"
    columns = ("labels from", "ε'", "labels", "of them right", "student's accuracy")
    table = Table(*columns, title=title, title_justify="left")
    tuned = Confident(threshold=200, test_sigma=110, answer_sigma=44)
    setting = Setting("boundary", "permute-and-flip", 0.08)
    for epsilon in (3.157, 8.0):
        ways: dict[str, Drawn] = {
            peers.AS_PUBLISHED: partial(_gnmax, votes, AUTHORS, authors_cost(epsilon, DELTA)),
            peers.TUNED: partial(_gnmax, votes, tuned, gaussian_cost(epsilon, DELTA)),
            f"boundary, {setting.mechanism}, caution {setting.caution:g}": partial(
                _ours, votes, setting, tc.Budget(epsilon, DELTA)
            ),
        }
        for name, draw in ways.items():
            table.add_row(name, f"{epsilon:g}", *_learned(draw, votes, images, truth))
    return table


def _learned(
    draw: Drawn,
    votes: Votes,
    images: NDArray[np.float64],
    truth: NDArray[np.int64],
) -> tuple[str, str, str]:
    random = np.random.default_rng()
    count = len(votes.counts)
    found = []
    for _ in range(_REPEATS):
        rows, labels = draw(random)
        score = student(images[rows], labels).score(images[count:], truth[count:])
        found.append((len(rows), float((labels == truth[rows]).mean()), float(score)))
    means = np.mean(found, axis=0)
    error = np.std(found, axis=0, ddof=1)[2] / math.sqrt(_REPEATS)
    return f"{means[0]:,.0f}", f"{means[1]:.1%}", f"{means[2]:.1%} ± {error:.1%}"


def _ours(votes: Votes, setting: Setting, budget: tc.Budget, random: np.random.Generator) -> Labelled:
    rows = random.permutation(len(votes.counts))
    labels = run(votes.counts[rows], setting, budget)
    return rows[labels.rows], labels.values.astype(np.int64)


def _gnmax(votes: Votes, parameters: Confident, cost: float, random: np.random.Generator) -> Labelled:
    """Run Confident-GNMax in a random order until its budget is spent."""
    rows = random.permutation(len(votes.counts))
    counts = votes.counts[rows]
    noisy = counts.max(axis=1) + parameters.test_sigma * random.standard_normal(len(rows))
    answered = noisy >= parameters.threshold
    spent = np.cumsum(parameters.cost(1.0, 0.0) + answered / parameters.answer_sigma**2)
    kept = answered & (spent <= cost)
    labels = (counts + parameters.answer_sigma * random.standard_normal(counts.shape)).argmax(axis=1)
    return rows[kept], labels[kept]
