"""Chance: the choices of one run through a game, and the tree of all runs.

>>> chance = Chance([1])
>>> pair = {"a": (0.75, 0.25), "b": (0.25, 0.75)}
>>> chance.draw(pair), chance.draw(pair), chance.weights
('b', 'a', (0.1875, 0.1875))
>>> chance.following(), chance.progress()
([1, 1], 0.5)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, final

from targetcharge.audit.exact.pairs import value_of
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Hashable

    from targetcharge.audit.exact.pairs import Chances, Pair


@final
@dataclass
class Chance:
    """The choices of one run: the first ones are given, further ones take the first outcome.

    Attributes:
        given: which outcome each of the first draws takes.
        taken: for each draw, the outcome taken and how many there were.
        weights: the probability of these choices on either dataset.
    """

    given: list[int]
    taken: list[tuple[int, int]] = field(default_factory=list)
    weights: Chances = (1.0, 1.0)

    def draw(self, pair: Pair) -> object:
        """Return the outcome whose turn it is; raise it if it is an exception."""
        possible = [item for item in pair.items() if max(item[1]) > 0]
        place = len(self.taken)
        index = self.given[place] if place < len(self.given) else 0
        self.taken.append((index, len(possible)))
        outcome, chances = possible[index]
        self.weights = (self.weights[0] * chances[0], self.weights[1] * chances[1])
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
        nodes: a number for each view so far, by the view before it and what was seen then.
        asked: what was asked after a view, and drawn in that call.
        losses: what a call told, by the view after it.
    """

    nodes: dict[tuple[int, Hashable], int] = field(default_factory=dict)
    asked: dict[tuple[int, Hashable], Hashable] = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)

    def after(self, node: int, facts: Hashable) -> int:
        """Return the view that follows."""
        return self.nodes.setdefault((node, facts), len(self.nodes) + 1)

    def follows(self, node: int, place: Hashable, what: Hashable) -> bool:
        """Return whether this is what was asked (or drawn, at this place) after the same view in other runs."""
        return self.asked.setdefault((node, place), what) == what


class Strayed(Exception):  # noqa: N818 - ends a run; `explore` says why
    """The game does not follow from what was seen."""


def not_a_function(game: object) -> InvalidParameter:
    """Return the error of a game that knows more than it saw."""
    expected = (
        "a function of what was seen: after the same answers it asked different things, so it uses a randomness"
        " or a memory of its own, or an outcome that was not published"
    )
    return InvalidParameter("game", game, expected)
