"""What a way to label buys with a budget: how many labels, and how many of them are right.

*How labels are counted.* Requests are rows of the votes, drawn at random with replacement. A session that pays for
hits and stops at the τ-th asks τ/m requests on average, where m is the mean probability of a hit (Wald's identity:
exact). One that pays for every request or for every answer stops when the budget is spent: its number of requests
is the budget divided by the mean cost of one. Labels are requests times the mean probability of a label; their
accuracy is the probability that a label is the true class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

DELTA = 1e-5
BUDGETS = (1.0, 2.0, 3.157, 5.0, 8.0)


@dataclass(frozen=True)
class Offer:
    """Labels and their accuracy, expected.

    Attributes:
        labels: how many requests get a label.
        accuracy: the share of right ones.
        asked: how many requests are made.
        way: the aggregator and how it is accounted for.
        settings: its parameters, in words.
    """

    labels: float
    accuracy: float
    asked: float
    way: str
    settings: str


def best(offers: Iterable[Offer], way: str, accuracy: float) -> Offer | None:
    """Return the offer of a way with the most labels among those of at least this accuracy."""
    good = [offer for offer in offers if offer.way == way and offer.accuracy >= accuracy and offer.labels >= 1]
    return max(good, key=lambda offer: offer.labels, default=None)


def frontier(offers: Iterable[Offer], way: str) -> list[Offer]:
    """Return the offers of a way that no other one of it beats in both labels and accuracy; most labels first."""
    found: list[Offer] = []
    for offer in sorted(offers, key=lambda offer: -offer.labels):
        if offer.way == way and offer.labels >= 1 and (not found or offer.accuracy > found[-1].accuracy):
            found.append(offer)
    return found
