"""Always-paid computations the slow way: levels of games from their definition, and whole games that pay for them.

A level V_s says what an adversary with s hits left can do, at losses anywhere. It is iterated from its
definition, on a lattice that is shifted to where it is needed. A computation costs n hits if
E V_{t-n}(loss + what it tells) is never above V_t(loss): `shortfall` compares them, level by level and node by
node. Nothing here knows which computations cost how much.

>>> values = levels(moves(1.0), 1.0, hits=2, cells=30)
>>> response = losses_of(two_ratios(2.0, 1.0))
>>> shortfall(values, values, 1, on_lattice(response, 1.0), nodes=3) > 0  # DP at ε is cheaper than a hit
True
>>> shortfall(values, values, 1, on_lattice(losses_of(two_ratios(4.0, 2.0)), 1.0), nodes=3) > 0
False
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from tests.accounting.interactions import Node, _follow
from tests.accounting.naive_exact import moves
from tests.accounting.offset_games import Branch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.accounting.interactions import Action
    from tests.accounting.offset_games import Mechanism

Moves = list[tuple[dict[int, float], dict[int, float]]]
"""What an adversary may play: (miss, hit), each the chances of steps on the lattice."""

Pair = tuple[tuple[float, float], ...]
"""Outcome by outcome its chances on either dataset."""

Losses = tuple[np.ndarray, np.ndarray]
"""What may be told, as log-ratios, and their chances on the first dataset."""


# Pairs


def two_ratios(length: float, upper: float) -> Pair:
    """Return the pair with the log-ratios upper and upper - length: randomised response if upper is half of it."""
    first = (math.exp(length) - math.exp(upper)) / math.expm1(length)
    return (first, first * math.exp(-upper)), (1 - first, (1 - first) * math.exp(length - upper))


def exponential_mechanism(rate: float, scores: Sequence[int], moved: Sequence[int]) -> Pair:
    """Return the pair of a choice with chances proportional to e^{rate·score}, if the unit raises some scores."""
    first, second = (np.exp(rate * np.array(values)) for values in (scores, np.add(scores, moved)))
    return tuple(zip((first / first.sum()).tolist(), (second / second.sum()).tolist(), strict=True))


def cut_gaussian(shift: int, variance: float, most: int) -> Pair:
    """Return the pair of a number with discrete Gaussian noise; beyond so many values only the side is told."""
    reach = math.ceil(13 * math.sqrt(variance)) + shift + most
    values = np.arange(-reach, reach + 1)
    laws = [np.exp(-((values - center) ** 2) / (2 * variance)) for center in (0, shift)]
    cells = np.clip(values, -most, most + shift) + most
    first, second = (np.bincount(cells, weights=weights / weights.sum()) for weights in laws)
    return tuple(zip(first.tolist(), second.tolist(), strict=True))


def losses_of(pair: Pair) -> Losses:
    """Return what a pair tells."""
    first, second = np.array([chances for chances in pair if chances[0] > 0]).T
    return np.log(first / second), first


def gaussian_losses(shifts: Sequence[int], variance: float) -> Losses:
    """Return what numbers with discrete Gaussian noise tell, which a unit moves by these steps.

    A number that is moved by c tells c²/(2σ²) - c·k/σ² where the noise is k: the sum is a convolution.
    """
    reach = math.ceil(13 * math.sqrt(variance)) + max(shifts)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * variance))
    chances = np.ones(1)
    for shift in shifts:
        spaced = np.zeros(2 * reach * shift + 1)
        spaced[::shift] = weights / weights.sum()
        chances = np.convolve(chances, spaced)
    multiples = np.arange(len(chances)) - len(chances) // 2
    possible = chances > 0
    squared = sum(shift**2 for shift in shifts)
    return (squared / 2 + multiples[possible]) / variance, chances[possible]


# Levels


def two_rates(above: int, below: int, width: float) -> Moves:
    """Return the moves of at-least questions under Laplace noise: B and C at one rate, A and C at the other."""
    played: Moves = []
    for cells, harmless in ((above, 1), (below, 0)):
        if cells:
            of_rate = moves(cells * width)
            played += scaled([of_rate[harmless], of_rate[2]], cells)
    return played


def scaled(played: Moves, cells: int) -> Moves:
    """Return moves on a lattice so many times as fine."""
    return [tuple({cells * step: chance for step, chance in part.items()} for part in move) for move in played]


def levels(played: Moves, width: float, hits: int, cells: int, shifts: Sequence[float] = (0.0,)) -> np.ndarray:
    """Return V_0, V_1, … at the losses shift + j·width, j = -cells, …, cells: by level, shift and cell.

    Each is iterated from the level before, with 0 below the lattice and the payoff above it: from below. Cells
    that are further than the hits' longest steps from either end are not touched by that.
    """
    most = max(abs(step) for move in played for part in move for step in part)
    losses = np.arange(-cells, cells + most + 1) * width + np.array(shifts)[:, None]
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    top, iterated = payoff[:, -most:], [payoff[:, :-most]]

    def expect(steps: dict[int, float], level: np.ndarray) -> np.ndarray:
        ghosted = np.concatenate((np.zeros((len(level), most)), level, top), axis=1)
        parts = (chance * ghosted[:, most + step :][:, : level.shape[1]] for step, chance in steps.items())
        return sum(parts, np.zeros_like(level))

    for _ in range(hits):
        level, previous = iterated[-1], None
        after_hits = [expect(hit, level) for _, hit in played]
        while previous is None or (level > previous * (1 + 1e-15)).any():
            previous = level
            options = [expect(miss, level) + after for (miss, _), after in zip(played, after_hits, strict=True)]
            level = np.maximum.reduce([level, *options])
        iterated.append(level)
    return np.array(iterated)


def gumbel_levels(above: int, below: int, width: float, hits: int, cells: int) -> np.ndarray:
    """Return levels of the game of Gumbel noise, in the same form, iterated from above.

    Each is the least function whose straight line in y = e^{-loss}, in any cell, is above the level before at
    both ends of the cell moved by a hit: +above cells, or -below. So it is one that is worth at least every bet
    that keeps the mean of y: a hit for +a or a-1 cells, a miss for -1; a hit for -b or 1-b, a miss for +1.
    """
    losses = np.arange(-cells, cells + 1) * width
    payoff = -np.expm1(-np.maximum(losses, 0.0))
    bets = [(hit, -1) for hit in (above, above - 1) if above] + [(-hit, 1) for hit in (below, below - 1) if below]
    chances = [
        math.expm1(-miss * width) / (math.exp(-miss * width) - math.exp(-hit * width)) for hit, miss in bets
    ]

    def moved(level: np.ndarray, step: int) -> np.ndarray:
        ghosted = np.pad(level, abs(step), constant_values=((level[0], 1.0),))
        return ghosted[abs(step) + step :][: len(level)]

    iterated = [payoff]
    for _ in range(hits):
        level, previous = np.ones_like(payoff), None
        after = [chance * moved(iterated[-1], hit) for chance, (hit, _) in zip(chances, bets, strict=True)]
        while previous is None or np.abs(level - previous).max() > 1e-15:
            previous = level
            options = [
                hit + (1 - chance) * moved(level, miss)
                for hit, chance, (_, miss) in zip(after, chances, bets, strict=True)
            ]
            level = np.maximum.reduce([iterated[-1], *options])
        iterated.append(level)
    return np.array(iterated)[:, None, :]


Reader = tuple[np.ndarray, np.ndarray, np.ndarray]
"""How E V(node + loss) is read off levels: cells, counted from the node, their shifts and their weights."""


def on_lattice(law: Losses, width: float, shifts: Sequence[float] = (0.0,)) -> Reader:
    """Return where losses lie that are a shift plus a whole number of cells."""
    losses, chances = law
    steps = (losses[:, None] - np.array(shifts)) / width
    nearest = np.abs(steps - np.round(steps)).argmin(axis=1)
    places = steps[np.arange(len(losses)), nearest]
    if np.abs(places - np.round(places)).max() > 1e-6:
        msg = "a loss is not on the lattice"
        raise ValueError(msg)
    return np.round(places).astype(int), nearest, chances


def between_nodes(law: Losses, width: float) -> Reader:
    """Return the two nodes next to each loss, weighted so that the mean of e^{-loss} is kept.

    That is exact for levels that are straight in e^{-loss} between nodes, and too much for convex ones.
    """
    losses, chances = law
    cell = np.floor(losses / width).astype(int)
    share = np.expm1((cell + 1) * width - losses) / math.expm1(width)
    cells = np.concatenate((cell, cell + 1))
    return cells, np.zeros(len(cells), int), np.concatenate((chances * share, chances * (1 - share)))


def shortfall(values: np.ndarray, others: np.ndarray, hits: int, reader: Reader, nodes: int) -> float:
    """Return the least of (V_t(j) - E V_{t-hits}(j + loss))/V_t(j), over all levels t and all cells |j| ≤ nodes.

    Above the lattice a level counts as 1, below it as in its lowest cell: as too much.

    Args:
        values: levels whose first shift is that of the cells.
        others: levels of the same game, at the shifts where the losses lead.
        hits: what the computation costs.
        reader: of what it tells.
        nodes: how far from loss 0 is looked, in cells.
    """
    middle, (cells, shifts, chances) = values.shape[2] // 2, reader
    least, highest = math.inf, others.shape[2] - 1
    for node in range(middle - nodes, middle + nodes + 1):
        places = node + cells
        reached = others[: len(values) - hits][:, shifts, np.clip(places, 0, highest)]
        after, before = np.where(places > highest, 1.0, reached) @ chances, values[hits:, 0, node]
        larger = np.maximum(np.maximum(before, after), 1e-290)
        least = min(least, float(((before - after) / larger).min()))
    return least


# Whole games


@dataclass(frozen=True)
class Paid:
    """A computation whose every outcome is published and paid for; also a question of a session with an offset.

    Attributes:
        pair: its laws on the two datasets.
        hits: what it costs.
    """

    pair: Pair
    hits: int = 1

    def branches(self, mechanism: Mechanism) -> Iterator[Branch]:
        """Yield its outcomes: fresh noise does not see the offset."""
        every = np.ones(len(mechanism.weights))
        first, second = np.array(self.pair).T[::-1] if mechanism.removed else np.array(self.pair).T
        yield Branch(first[:, None] * every, second[:, None] * every, self.hits)


def play(strategy: Callable[[Node], Action | Paid | None], hits: int) -> list[Node]:
    """Return every way an interaction can end, as `interactions.play` does, always-paid computations included."""
    leaves, waiting = [], deque([Node(1.0, 1.0, hits)])
    while waiting:
        node = waiting.popleft()
        action = strategy(node) if node.hits_left else None
        if action is None:
            leaves.append(node)
        elif isinstance(action, Paid):
            waiting.extend(node.after(place, chances, action.hits) for place, chances in enumerate(action.pair))
        else:
            waiting.extend(_follow(node, action))
    return leaves
