"""Whole interactions, enumerated exactly on two neighbouring datasets.

A computation is a pair of laws over a few outcomes. A strategy chooses the next action from what has been
published so far; `play` follows every branch and returns all transcripts with their probabilities under both
datasets, from which `hockey_stick` reads the smallest δ at any ε. Nothing here knows the theory of exact
accounting: it is what that theory is tested against.

>>> def strategy(node):
...     return Fresh({0: (0.6, 0.4), 1: (0.4, 0.6)}, frozenset({1})) if not node.transcript else None
>>> [(leaf.transcript, leaf.weight0, leaf.hits_left) for leaf in play(strategy, hits=1)]
[((1,), 0.4, 0), (('nothing',), 0.6, 1)]
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Pair = Mapping[int, tuple[float, float]]
"""Outcome -> its probability on either dataset."""

Ranking = tuple[tuple[int, int], ...]
"""Candidates as (index, score), best score first, ties by index."""

NOTHING = "nothing"

Table = Mapping[tuple[int, int], str]
"""(hits left, loss as a multiple of ε) -> how randomised response is asked."""

HITS_OF = {"A": (False, True), "B": (True, False), "C": (True, True)}
"""Whether the outcome that raises the loss is a hit, and whether the one that lowers it is."""


@dataclass(frozen=True)
class Fresh:
    """A new computation. An outcome in the target is published and a hit; any other remains pending."""

    pair: Pair
    target: frozenset[int]


@dataclass(frozen=True)
class Revise:
    """Add outcomes to the target of a pending computation, named by its place among the pending ones."""

    which: int
    extra: frozenset[int]


@dataclass(frozen=True)
class Selection:
    """Run every candidate once, rank the scores, publish a prefix of the ranking; each entry is a hit.

    Attributes:
        candidates: the pair of laws of each candidate's score.
        most: the most entries that can be published.
        rule: the prefix to publish: `floor_rule` or, to show why it is not allowed, `largest_gap_rule`.
    """

    candidates: tuple[Pair, ...]
    most: int
    rule: Callable[[Ranking], Ranking]


@dataclass(frozen=True)
class Twice:
    """Run twice and publish both outcomes: free if they are equal, a hit if they differ."""

    pair: Pair


@dataclass(frozen=True)
class Published:
    """Publish the outcome whatever it is; it is a hit if it is in the target."""

    pair: Pair
    target: frozenset[int]


Action = Fresh | Revise | Selection | Twice | Published


@dataclass(frozen=True, slots=True)
class Node:
    """An interaction so far.

    Attributes:
        weight0: the probability of the transcript on the first dataset.
        weight1: the same on its neighbour.
        hits_left: how many hits may still occur.
        pending: the conditional laws of the outcomes not yet published, computation by computation.
        transcript: everything published.
    """

    weight0: float
    weight1: float
    hits_left: int
    pending: tuple[Pair, ...] = ()
    transcript: tuple[object, ...] = ()

    @property
    def loss(self) -> float:
        """Return the privacy loss of the transcript."""
        return math.log(self.weight0 / self.weight1)

    def after(
        self,
        published: object,
        chances: tuple[float, float],
        hits: int,
        pending: tuple[Pair, ...] | None = None,
    ) -> Node:
        """Return the node that follows when something is published that has these chances."""
        return Node(
            self.weight0 * chances[0],
            self.weight1 * chances[1],
            self.hits_left - hits,
            self.pending if pending is None else pending,
            (*self.transcript, published),
        )


Strategy = Callable[[Node], Action | None]


def play(strategy: Strategy, hits: int) -> list[Node]:
    """Return every way the interaction can end: no hits left or the strategy returned None.

    The strategy is asked once per transcript, short ones first, so it may draw its choices at random.
    """
    leaves, waiting = [], deque([Node(1.0, 1.0, hits)])
    while waiting:
        node = waiting.popleft()
        action = strategy(node) if node.hits_left else None
        if action is None:
            leaves.append(node)
        else:
            waiting.extend(_follow(node, action))
    return leaves


def hockey_stick(leaves: Iterable[Node], epsilons: Sequence[float]) -> np.ndarray:
    """Return, for each ε, the smallest δ with which the transcripts are (ε, δ)-indistinguishable."""
    weights = np.array([(leaf.weight0, leaf.weight1) for leaf in leaves])
    factors = np.exp(np.asarray(epsilons, dtype=float))[:, None]
    forward = np.maximum(0.0, weights[:, 0] - factors * weights[:, 1]).sum(axis=1)
    backward = np.maximum(0.0, weights[:, 1] - factors * weights[:, 0]).sum(axis=1)
    return np.maximum(forward, backward)


def floor_rule(most: int, floor: Callable[[Ranking], int | None]) -> Callable[[Ranking], Ranking]:
    """Return the rule that releases scores while the best remaining one is at least a floor.

    The floor is a function of the released prefix; None means to stop without asking.
    """

    def rule(ranking: Ranking) -> Ranking:
        released = 0
        while released < min(most, len(ranking)):
            level = floor(ranking[:released])
            if level is None or ranking[released][1] < level:
                break
            released += 1
        return ranking[:released]

    return rule


def largest_gap_rule(looked_at: int) -> Callable[[Ranking], Ranking]:
    """Return the rule that stops before the largest gap among the first scores: it peeks at the next one."""

    def rule(ranking: Ranking) -> Ranking:
        gaps = [ranking[i][1] - ranking[i + 1][1] for i in range(looked_at - 1)]
        return ranking[: gaps.index(max(gaps)) + 1]

    return rule


def response(epsilon: float, plus: int = 1, minus: int = -1) -> Pair:
    """Return randomised response: the outcome `plus` speaks for the first dataset, `minus` for the other."""
    up, down = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    return {plus: (up, down), minus: (down, up)}


def random_pair(rng: np.random.Generator, epsilon: float, outcomes: Sequence[int], extreme: float) -> Pair:
    """Return an ε-close pair over some of the outcomes: randomised response with probability `extreme`."""
    outcomes = rng.permutation(outcomes).tolist()
    if rng.random() < extreme:
        return response(epsilon, *outcomes[:2])
    return (_saturated_pair if rng.random() < 0.5 else _tilted_pair)(rng, epsilon, outcomes)


def random_subset(rng: np.random.Generator, members: Iterable) -> frozenset:
    """Return some of the members, at least one."""
    members = list(members)
    return frozenset(rng.permutation(members)[: rng.integers(1, len(members) + 1)].tolist())


def random_floor(rng: np.random.Generator, levels: int) -> Callable[[Ranking], int | None]:
    """Return a random function of the released prefix: a level or, seldom, None."""
    return functools.cache(lambda _: None if rng.random() < 0.1 else int(rng.integers(levels)))


def _saturated_pair(rng: np.random.Generator, epsilon: float, outcomes: Sequence[int]) -> Pair:
    """Return a pair whose likelihood ratio is e^ε or e^{-ε} at every outcome."""
    cut = int(rng.integers(1, len(outcomes)))
    shares = [*rng.dirichlet(np.ones(cut)), *rng.dirichlet(np.ones(len(outcomes) - cut))]
    signs = response(epsilon)
    return {
        outcome: tuple(float(share) * p for p in signs[1 if place < cut else -1])
        for place, (outcome, share) in enumerate(zip(outcomes, shares, strict=True))
    }


def _tilted_pair(rng: np.random.Generator, epsilon: float, outcomes: Sequence[int]) -> Pair:
    """Return any law and its random tilting by factors within e^ε of each other."""
    law1 = rng.dirichlet(np.ones(len(outcomes))) + 1e-9
    law0 = law1 * np.exp(rng.uniform(-epsilon / 2, epsilon / 2, len(outcomes)))
    chances = zip((law0 / law0.sum()).tolist(), (law1 / law1.sum()).tolist(), strict=True)
    return dict(zip(outcomes, chances, strict=True))


def table_strategy(table: Table, epsilon: float, steps: int) -> Strategy:
    """Return the strategy of randomised responses that looks only at the hits left and at the loss."""

    def strategy(node: Node) -> Action | None:
        if len(node.transcript) == steps:
            return None
        plus, minus = HITS_OF[table[node.hits_left, round(node.loss / epsilon)]]
        return Fresh(response(epsilon), frozenset([1] * plus + [-1] * minus))

    return strategy


def table_delta(table: Table, epsilon: float, hits: int, steps: int, whole_epsilon: float) -> float:
    """Return δ of a table's strategy, following the probability of every (hits left, loss) step by step."""
    up, down = response(epsilon)[1]
    masses = {(hits, 0): 1.0}
    for _ in range(steps):
        following: dict[tuple[int, int], float] = {}
        for (left, place), mass in masses.items():
            if left:
                plus, minus = HITS_OF[table[left, place]]
                steps_on = (((left - plus, place + 1), up), ((left - minus, place - 1), down))
            else:
                steps_on = (((0, place), 1.0),)
            for state, chance in steps_on:
                following[state] = following.get(state, 0.0) + mass * chance
        masses = following
    worth = {place: max(0.0, 1 - math.exp(whole_epsilon - place * epsilon)) for _, place in masses}
    return sum(mass * worth[place] for (_, place), mass in masses.items())


def searched_table(
    rng: np.random.Generator, epsilon: float, hits: int, steps: int, whole_epsilon: float
) -> tuple[Table, float]:
    """Return a table, improved cell by cell from a random one until no change helps, and its δ."""
    cells = [(left, place) for left in range(1, hits + 1) for place in range(-steps, steps + 1)]
    table = {cell: str(rng.choice(list(HITS_OF))) for cell in cells}
    near = [cell for cell in cells if -3 <= cell[1] <= 7]
    best, before = table_delta(table, epsilon, hits, steps, whole_epsilon), 0.0
    while best > before * (1 + 1e-6):
        before = best
        for cell in (near[i] for i in rng.permutation(len(near))):
            trials = {move: {**table, cell: move} for move in HITS_OF}
            values = {m: table_delta(t, epsilon, hits, steps, whole_epsilon) for m, t in trials.items()}
            move = max(values, key=values.__getitem__)
            if values[move] > best:
                best, table = values[move], trials[move]
    return table, best


def _follow(node: Node, action: Action) -> list[Node]:
    """Return the nodes to which an action leads."""
    match action:
        case Fresh(pair, target):
            return _ask(node, (*node.pending, pair), len(node.pending), target)
        case Revise(which, extra):
            return _ask(node, node.pending, which, extra)
        case Selection():
            return _select(node, action)
        case Twice(pair):
            return [
                node.after((first, second), (p[0] * q[0], p[1] * q[1]), hits=int(first != second))
                for (first, p), (second, q) in itertools.product(pair.items(), repeat=2)
            ]
        case Published(pair, target):
            return [node.after(outcome, p, hits=int(outcome in target)) for outcome, p in pair.items()]


def _ask(node: Node, pending: tuple[Pair, ...], which: int, targeted: frozenset[int]) -> list[Node]:
    """Return what follows when a pending computation is asked whether its outcome is among the targeted."""
    law, done = pending[which], pending[:which] + pending[which + 1 :]
    nodes = [
        node.after(outcome, chances, hits=1, pending=done)
        for outcome, chances in law.items()
        if outcome in targeted
    ]
    rest = {outcome: chances for outcome, chances in law.items() if outcome not in targeted}
    if rest:
        mass = (sum(p for p, _ in rest.values()), sum(p for _, p in rest.values()))
        left = {outcome: (p0 / mass[0], p1 / mass[1]) for outcome, (p0, p1) in rest.items()}
        nodes.append(node.after(NOTHING, mass, 0, (*pending[:which], left, *pending[which + 1 :])))
    return nodes


def _select(node: Node, action: Selection) -> list[Node]:
    """Return what follows a selection, by running through all combinations of the candidates' scores."""
    if action.most > node.hits_left:
        msg = f"a selection of {action.most} needs as many hits, {node.hits_left} are left"
        raise ValueError(msg)
    chances: dict[Ranking, tuple[float, float]] = {}
    for combination in itertools.product(*(pair.items() for pair in action.candidates)):
        scores = ((index, score) for index, (score, _) in enumerate(combination))
        released = action.rule(tuple(sorted(scores, key=lambda entry: (-entry[1], entry[0]))))
        p0, p1 = chances.get(released, (0.0, 0.0))
        chances[released] = (
            p0 + math.prod(p for _, (p, _) in combination),
            p1 + math.prod(p for _, (_, p) in combination),
        )
    return [node.after(released, p, hits=len(released)) for released, p in chances.items()]
