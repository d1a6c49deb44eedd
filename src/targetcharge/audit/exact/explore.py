"""Exploring: every way a game against a real session can go, on two neighbouring datasets at once.

`explore` plays the same game against a fresh session for every sequence of outcomes, and adds up the
probabilities, on either dataset, of everything the analyst got to see. A secret offset is integrated out. Nothing
here knows how sessions charge.

>>> from targetcharge.audit.exact import explore, hockey_stick, opener, response
>>> def game(player):
...     player.test(player.algorithm(response(0.5, False, True), 0.5))
...     player.test(player.algorithm(response(0.5, False, True), 0.5))
>>> views = explore(opener(0.5, hits=2), game)
>>> len(views), views.paths, hockey_stick(views, [0.5]).round(4).tolist()
(4, 4, [0.1525])
>>> losses(views).round(6).tolist(), round(moment(views, 2.0), 6)
([-1.0, 0.0, 1.0], 0.454673)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.audit.exact.numbers import hand_over
from targetcharge.audit.exact.pairs import value_of
from targetcharge.audit.exact.player import Player
from targetcharge.audit.exact.shown import facts_of
from targetcharge.errors import InvalidParameter, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Odometer, Totals
    from targetcharge.audit.exact.pairs import Chance, Chances, Law
    from targetcharge.sessions import Session

    Opened = Callable[[], Session]
    """Opens a fresh session, the same each time."""

    Game = Callable[[Player], None]
    """What an analyst does: calls that follow from what was seen."""

    MeterFacts = tuple[Totals, int, Odometer]
    """What one meter shows: totals, hits left, the odometer."""

LIMIT: Final = 100_000
"""The most runs through a game, unless told otherwise."""


# What was seen.


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
    meters: tuple[MeterFacts, ...]
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

    seen: Mapping[View, Chances]
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
    first, second = np.log(weights[(weights > 0).all(axis=1)]).T
    rising = np.sort(first - second)
    return rising[np.diff(rising, prepend=-np.inf) > 1e-12]


def hockey_stick(views: Views, epsilons: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each ε, the smallest δ with which what is seen is (ε, δ)-indistinguishable, either way."""
    return excess(views, np.asarray(epsilons, dtype=np.float64)[:, None])


def excess(views: Views, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Σ (law - e^ε·other)₊ over the views, either way: for an ε of each view, or for rows of them."""
    first, second = views.weights.T
    forward = np.maximum(0.0, first - np.exp(epsilons) * second).sum(axis=-1)
    backward = np.maximum(0.0, second - np.exp(epsilons) * first).sum(axis=-1)
    return np.asarray(np.maximum(forward, backward))


def moment(views: Views, order: float) -> float:
    """Return ln E[e^{(order-1)·loss}], the worse direction; infinite if a view gives the dataset away."""
    weights = views.weights
    weights = weights[(weights > 0).any(axis=1)]
    if (weights == 0).any():
        return math.inf
    first, second = np.log(weights.T)
    forward, backward = (
        np.exp(order * law + (1 - order) * other).sum() for law, other in ((first, second), (second, first))
    )
    return math.log(max(forward, backward))


def curve(views: Views) -> list[tuple[float, float]]:
    """Return (ε, δ) where the exact curve δ(ε) bends; between them δ is linear in e^ε."""
    bends = np.unique(np.append(0.0, np.abs(losses(views))))
    return [(float(bend), float(delta)) for bend, delta in zip(bends, hockey_stick(views, bends), strict=True)]


# One run, and the tree of all runs.


@final
@dataclass
class Choices:
    """Which outcome every draw of one run takes: the first choices are given, all further draws take the first.

    Attributes:
        given: which outcome each of the first draws takes.
        taken: for each draw, the outcome taken and how many there were.
        weights: the probability of these choices on either dataset, together with each offset if there is one.

    Example:
        >>> choices, pair = Choices([1]), {"a": (0.75, 0.25), "b": (0.25, 0.75)}
        >>> choices.draw(pair), choices.draw(pair), choices.weights
        ('b', 'a', (0.1875, 0.1875))
        >>> choices.following(), choices.progress()
        ([1, 1], 0.5)
    """

    given: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    weights: tuple[Chance, Chance] = (1.0, 1.0)

    def draw(self, law: Law) -> object:
        """Return the outcome whose turn it is; raise it if it is an exception."""
        first, second = self.weights
        after = ((outcome, (first * p0, second * p1)) for outcome, (p0, p1) in law.items())
        possible = [item for item in after if np.any(item[1][0]) or np.any(item[1][1])]
        place = len(self.taken)
        index = self.given[place] if place < len(self.given) else 0
        self.taken.append((index, len(possible)))
        outcome, self.weights = possible[index]
        if isinstance(outcome, type):
            raise outcome
        return value_of(outcome)

    def following(self) -> list[int] | None:
        """Return the first choices of the next run; None if this was the last."""
        taken = list(self.taken)
        while taken and taken[-1][0] + 1 == taken[-1][1]:
            taken.pop()
        return [index for index, _ in taken[:-1]] + [taken[-1][0] + 1] if taken else None

    def progress(self) -> float:
        """Return which part of the tree lies before this run, counting each outcome alike."""
        before, width = 0.0, 1.0
        for index, count in self.taken:
            width /= count
            before += index * width
        return before


@final
@dataclass
class Tree:
    """What has been seen and asked in all runs: what comes next must follow from what was seen.

    Attributes:
        game: what is played.
        nodes: a number for each view so far, by the view before it and what was seen then.
        asked: what was asked after a view, and drawn in that call.
        told: the probabilities of what a call showed, by the view after it.
        larger: on which dataset counts are larger, once one of them is; 0 or 1.
        strayed: whether something else was asked or drawn than in another run after the same view.
    """

    game: Game
    nodes: dict[tuple[int, Hashable], int] = field(default_factory=dict)
    asked: dict[tuple[int, Hashable], Hashable] = field(default_factory=dict)
    told: dict[int, tuple[Chance, Chance]] = field(default_factory=dict)
    larger: int | None = None
    strayed: bool = False

    def after(self, node: int, facts: Hashable) -> int:
        """Return the view that follows."""
        return self.nodes.setdefault((node, facts), len(self.nodes) + 1)

    def note(self, node: int, place: Hashable, what: Hashable) -> None:
        """Compare what is asked (or drawn, at this place) with other runs that saw the same."""
        self.strayed |= self.asked.setdefault((node, place), what) != what

    def check(self) -> None:
        """Refuse a game that strayed: outside of algorithms, whose errors are outcomes."""
        if self.strayed:
            expected = (
                "a function of what was seen: after the same answers it asked different things, so it uses a"
                " randomness or a memory of its own, or an outcome that was not published"
            )
            raise InvalidParameter("game", self.game, expected)


def explore(opened: Opened, game: Game, limit: int = LIMIT) -> Views:
    """Return all that could be seen in a game, with its probabilities.

    Args:
        opened: opens a fresh session, always the same.
        game: called with a `Player`; a function of what it sees, without a memory or randomness of its own.
        limit: the most runs.

    Raises:
        InvalidParameter: if a pair is not as declared, or the game does not follow from what was seen.
        TooLarge: if there are more runs than the limit, with an estimate of how many.
    """
    limit = checks.positive_integer(limit, "limit")
    if not callable(game):
        raise InvalidParameter("game", game, "a function of a Player")
    seen: dict[View, Chances] = {}
    tree, paths, choices = Tree(game), 0, Choices([])
    given: list[int] | None = []
    while given is not None:
        if paths == limit:
            about = limit / max(choices.progress(), 1e-300)
            raise TooLarge("limit", limit, f"larger, or the game shorter: it has about {about:.2g} paths")
        choices = Choices(given)
        view = _play(opened, choices, tree)
        before = seen.get(view, (0.0, 0.0))
        first, second = (float(np.sum(weight)) for weight in choices.weights)
        seen[view] = (before[0] + first, before[1] + second)
        paths += 1
        given = choices.following()
    sums = (math.fsum(weights[side] for weights in seen.values()) for side in (0, 1))
    tree.strayed |= any(abs(total - 1) > 1e-9 for total in sums)
    tree.check()
    return Views(seen, paths)


def _play(opened: Opened, choices: Choices, tree: Tree) -> View:
    """Return what is seen of a game with these choices."""
    with opened() as session:
        offsets = hand_over(session)
        if offsets is not None:
            choices.weights = offsets.masses, offsets.masses
        player = Player(session, choices, tree)
        tree.game(player)
        player.end()
        transcript = tuple(facts_of(answer) for answer in session.transcript)
        pending = tuple(release.seq for release in session.pending)
        return View(player.view, player.meters(), transcript, pending)
