"""Copies whose estimates are written down beforehand, and what a stream makes of them, computed naively."""

from __future__ import annotations

import itertools
import math

import numpy as np

from targetcharge.streaming.consensus import Grid

GRID = Grid(1.0, 4.0, 1.0)
"""0, 1, 2 and 4."""


class ScriptedCopies:
    """A kind of sketch whose copies have the estimates of the next row after each item."""

    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=np.float64)
        self.next = 0
        self.asked = []

    def copies(self, count, _entropy):
        assert self.rows.shape[1] == count
        return self

    def check(self, items, _weights):
        return items

    def follow(self, items, _weights):
        first, self.next = self.next, self.next + len(items)
        self.asked.append((first, self.next))
        return self.rows[first : self.next]

    def update(self, items, weights):
        self.follow(items, weights)

    def estimates(self):
        return self.rows[self.next - 1]


def cells_of(estimates, moves):
    """Return the cell of each estimate, by comparing with one edge after another; None for NaN."""
    return [
        None if math.isnan(number) else sum(number >= edge for edge in moves.edges.tolist())
        for number in estimates
    ]


def naive_scores(estimates, moves, bonus):
    """Return the scores by their definition."""
    cells = [cell for cell in cells_of(estimates, moves) if cell is not None]
    return [
        min(sum(cell <= place for cell in cells), sum(cell >= place for cell in cells))
        + bonus * (place == moves.here)
        for place in range(len(moves.places))
    ]


def law_of(scores, rate):
    """Return the law of permute-and-flip that takes each with probability e^{-rate·gap}.

    One wins if its coin falls and those of all before it do not; it comes after all of m others in one order of
    m + 1. By inclusion and exclusion over the sets of others whose coins fall before it.
    """
    scores = np.atleast_2d(scores)
    coins = np.exp(-rate * (scores.max(axis=1, keepdims=True) - scores))
    law = np.zeros_like(coins)
    for place in range(coins.shape[1]):
        others = np.delete(coins, place, axis=1)
        for size in range(others.shape[1] + 1):
            for chosen in itertools.combinations(range(others.shape[1]), size):
                law[:, place] += (-1) ** size / (size + 1) * others[:, chosen].prod(axis=1)
        law[:, place] *= coins[:, place]
    return law


def next_place(estimates, place, consensus, rate=None):
    """Return {place: probability} of where a stream goes."""
    moves = consensus.grid.moves(place)
    scores = naive_scores(estimates, moves, consensus.bonus)
    law = law_of(scores, consensus.epsilon / 2 if rate is None else rate)[0]
    return dict(zip(moves.places.tolist(), law.tolist(), strict=True))
