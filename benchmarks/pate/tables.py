"""The tables about private labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from scipy.special import ndtr

from benchmarks.pate import ours, peers
from benchmarks.pate.dependent import dependent_epsilon
from benchmarks.pate.gnmax import (
    AUTHORS,
    AUTHORS_QUERIES,
    authors_epsilon,
    gaussian_epsilon,
    renyi_epsilon,
)
from benchmarks.pate.laws import gaussian_maximum
from benchmarks.pate.offers import BUDGETS, DELTA, Offer, best
from benchmarks.pate.running import confirmed
from benchmarks.pate.speed import speed
from benchmarks.pate.students import guesses, priors, students
from benchmarks.pate.votes import MissingError, Votes, images, load

if TYPE_CHECKING:
    from collections.abc import Iterator

PEERS = (peers.AS_PUBLISHED, peers.EXACT, peers.TUNED, peers.EXPONENTIAL, peers.PERMUTE, peers.LAPLACE)
MODES = ("boundary", ours.PAPER, "boundary, low", "twice")
OURS = tuple(ours.way(mode, name) for mode in MODES for name in ours.MECHANISMS)
LEVELS = (0.93, 0.944, 0.95, 0.96, 0.97)
"""Accuracies to compare at; the second is that of Confident-GNMax with the authors' parameters."""


def tables() -> Iterator[Table | str]:
    """Yield the tables, one after another; a line that says what is missing instead."""
    yield speed()
    try:
        votes = load()
        digits, truth = images()
    except MissingError as missing:
        yield str(missing)
        return
    yield published(votes)
    offers = bids(votes)
    for level in LEVELS:
        yield bought(offers, level)
    yield settings(offers)
    yield confirmed(votes, guesses(votes, digits, truth))
    yield priors(votes, digits, truth)
    yield students(votes, digits, truth)


def bids(votes: Votes) -> dict[float, list[Offer]]:
    """Return all offers for each ε'."""
    mine, theirs = ours.offers(votes, BUDGETS), peers.offers(votes, BUDGETS)
    return {epsilon: theirs[epsilon] + mine[epsilon] for epsilon in BUDGETS}


def published(votes: Votes) -> Table:
    """Reproduce the authors' figures, and convert their ρ better."""
    title = f"Confident-GNMax, T = 200, σ₁ = 150, σ₂ = 40, the first {AUTHORS_QUERIES} votes, δ = {DELTA:g}"
    table = Table("figure", "here", "authors", "what it is", title=title, title_justify="left")
    first = votes.counts[:AUTHORS_QUERIES]
    answered = ndtr((first.max(axis=1) - AUTHORS.threshold) / AUTHORS.test_sigma)
    right = gaussian_maximum(first, AUTHORS.answer_sigma, votes.truth[:AUTHORS_QUERIES])
    expected = float(answered.sum())
    cost = AUTHORS.cost(AUTHORS_QUERIES, expected)
    table.add_row("answered", f"{expected:.1f}", "282.7", "expected; the number itself depends on the votes")
    table.add_row("accuracy", f"{(answered * right).sum() / expected:.1%}", "", "of these labels")
    worst = "data-independent, by the authors' conversion"
    table.add_row("ε", f"{authors_epsilon(cost, DELTA):.3f}", "3.157", worst)
    table.add_row("ε", f"{renyi_epsilon(cost, DELTA):.3f}", "", "the same by a better conversion from Rényi DP")
    table.add_row("ε", f"{gaussian_epsilon(cost, DELTA):.3f}", "", "the same exactly, as Gaussian DP")
    dependent = f"{dependent_epsilon(first, AUTHORS, DELTA):.3f}"
    table.add_row("ε", dependent, "1.999", "data-dependent: itself not private, no promise can rest on it")
    return table


def bought(offers: dict[float, list[Offer]], level: float) -> Table:
    """Show the labels that each way buys at no less than an accuracy; δ' = 1e-5."""
    title = f"labels that (ε', {DELTA:g}) buys, at least {level:.1%} of them right; expected, every way tuned"
    table = Table("way", *(f"ε' = {epsilon:g}" for epsilon in offers), title=title, title_justify="left")
    for way in (*PEERS, *OURS):
        found = (best(offers[epsilon], way, level) for epsilon in offers)
        table.add_row(way, *("-" if offer is None else f"{offer.labels:,.0f}" for offer in found))
    table.add_section()
    for name, against in (("as published", (peers.AS_PUBLISHED,)), ("any peer", PEERS)):
        ratios = (ratio(offers[epsilon], against, level) for epsilon in offers)
        table.add_row(f"our best to {name}", *("-" if each is None else f"{each:.2f}" for each in ratios))
    return table


def ratio(offers: list[Offer], against: tuple[str, ...], level: float) -> float | None:
    """Return our most labels divided by theirs; None if they have none."""
    most = max((offer.labels for way in OURS if (offer := best(offers, way, level))), default=0.0)
    theirs = max((offer.labels for way in against if (offer := best(offers, way, level))), default=0.0)
    return most / theirs if theirs else None


def settings(offers: dict[float, list[Offer]]) -> Table:
    """Show the parameters behind the second comparison."""
    title = f"the parameters at {LEVELS[1]:.1%}"
    columns = ("ε'", "way", "labels", "asked", "accuracy", "parameters")
    table = Table(*columns, title=title, title_justify="left")
    for epsilon, found in offers.items():
        for way in (peers.AS_PUBLISHED, peers.EXACT, peers.TUNED, *OURS):
            if offer := best(found, way, LEVELS[1]):
                figures = f"{offer.labels:,.0f}", f"{offer.asked:,.0f}", f"{offer.accuracy:.2%}"
                table.add_row(f"{epsilon:g}", way, *figures, offer.settings)
        table.add_section()
    return table
