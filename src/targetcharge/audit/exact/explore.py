"""Exploring: every way a game against a real session can go, on two neighbouring datasets at once.

`explore` plays the same game against a fresh session for every sequence of outcomes, and adds up the
probabilities, on either dataset, of everything the analyst got to see. Nothing here knows how sessions charge.

>>> from targetcharge.audit.exact import explore, hockey_stick, opener, response
>>> def game(player):
...     player.test(player.algorithm(response(0.5, False, True), 0.5))
...     player.test(player.algorithm(response(0.5, False, True), 0.5))
>>> views = explore(opener(0.5, hits=2), game)
>>> len(views), views.paths, hockey_stick(views, [0.5]).round(4).tolist()
(4, 4, [0.1525])
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from targetcharge import checks
from targetcharge.audit.exact.chance import Chance, Strayed, Tree, not_a_function
from targetcharge.audit.exact.looks import facts_of
from targetcharge.audit.exact.player import Player
from targetcharge.audit.exact.views import View, Views
from targetcharge.errors import InvalidParameter, TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.sessions import Session

    Opened = Callable[[], Session]
    """Opens a fresh session, the same each time."""

    Game = Callable[[Player], None]
    """What an analyst does: calls that follow from what was seen."""

LIMIT: Final = 100_000
"""The most runs through a game, unless told otherwise."""


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
    limit = checks.positive_integer("limit", limit)
    if not callable(game):
        raise InvalidParameter("game", game, "a function of a Player")
    seen: dict[View, tuple[float, float]] = {}
    tree, paths, chance = Tree(), 0, Chance([])
    given: list[int] | None = []
    while given is not None:
        if paths == limit:
            raise _too_many(limit, chance)
        chance = Chance(given)
        try:
            view = _play(opened, game, chance, tree)
        except Strayed:
            raise not_a_function(game) from None
        before = seen.get(view, (0.0, 0.0))
        seen[view] = (before[0] + chance.weights[0], before[1] + chance.weights[1])
        paths += 1
        given = chance.following()
    for side in (0, 1):
        if abs(math.fsum(weights[side] for weights in seen.values()) - 1) > 1e-9:
            raise not_a_function(game)
    return Views(seen, paths)


def _play(opened: Opened, game: Game, chance: Chance, tree: Tree) -> View:
    """Return what is seen of a game with these choices."""
    with opened() as session:
        player = Player(session, chance, tree)
        game(player)
        player.end()
        transcript = tuple(facts_of(answer) for answer in session.transcript)
        pending = tuple(release.seq for release in session.pending)
        return View(player.view, player.meters(), transcript, pending)


def _too_many(limit: int, chance: Chance) -> TooLarge:
    about = limit / max(chance.progress(), 1e-300)
    expected = f"larger, or the game shorter: it has about {about:.2g} paths"
    return TooLarge("limit", limit, expected)
