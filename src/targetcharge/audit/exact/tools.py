"""Tools: everything a session can be asked, as single moves of a game.

A tool makes one call, with laws and parameters drawn from a random source. `towards` says which outcome is to be
free: one that moves the privacy loss up (1), down (-1), or any (0).

>>> import numpy as np
>>> from targetcharge.audit.exact import explore, opener, sparse_opener
>>> from targetcharge.audit.exact.tools import TOOLS, usable
>>> game = lambda player: TOOLS["select"](player, np.random.default_rng(3), 0.5, 1)
>>> len(explore(opener(0.5, hits=2), game)) > 1
True
>>> usable(opener(0.5, hits=2)(), 0.5)
('test', 'prior', 'twins', 'release', 'revise', 'select', 'everything', 'failing', 'constant')
>>> usable(sparse_opener(0.5, hits=2)(), 0.5)
('above', 'count', 'top', 'falling', 'everything')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.accounting.qvalues import best_q
from targetcharge.accounting.targets import Between, Boundary, Disagreement, Everything, NotPrior, QTarget
from targetcharge.audit.exact import numbers
from targetcharge.audit.exact.pairs import Pair, Twin, leaky, mixed, response, saturated
from targetcharge.audit.exact.player import Player
from targetcharge.errors import NotAllowed
from targetcharge.mechanisms.algorithm import ANY_PRIOR
from targetcharge.numerics.rounding import from_grains
from targetcharge.outcomes import Side
from targetcharge.sessions.select import score_of

if TYPE_CHECKING:
    from targetcharge.accounting.targets import Target
    from targetcharge.audit.exact.numbers import Published
    from targetcharge.mechanisms import Algorithm
    from targetcharge.sessions import Session
    from targetcharge.sessions.select import Released

Tool = Callable[[Player, np.random.Generator, float, int], object]

OUTCOMES: Final = (0, 1, 2)
_LEAK: Final = 0.4
"""Of the δ that a session keeps for its computations, what one leaky computation has."""

_ERRORS: Final = (ValueError, KeyboardInterrupt, ValueError, KeyboardInterrupt, SystemExit, GeneratorExit)


def random_pair(rng: np.random.Generator, epsilon: float, outcomes: Sequence[object] = OUTCOMES) -> Pair:
    """Return randomised response in most cases, else a saturated or any random pair."""
    shuffled = [outcomes[index] for index in rng.permutation(len(outcomes))]
    kind = rng.random()
    if kind < 0.6:
        return response(epsilon, *shuffled[:2])
    make = saturated if kind < 0.85 else mixed
    return make(rng, epsilon, shuffled[: int(rng.integers(2, len(outcomes) + 1))])


def free_outcome(rng: np.random.Generator, pair: Pair, towards: int) -> object:
    """Return an outcome that moves the loss towards where it should go; any if there is none."""
    clever = [outcome for outcome, (p0, p1) in pair.items() if towards * (p0 - p1) > 0]
    choices = clever or list(pair)
    return choices[int(rng.integers(len(choices)))]


def _steered(epsilon: float, free: object, other: object, towards: int) -> Pair:
    """Return randomised response whose free outcome moves the loss up, unless it should go down."""
    return response(epsilon, *((free, other) if towards >= 0 else (other, free)))


def _test(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    plus = free_outcome(rng, {"+": (1, 0), "-": (0, 1)}, towards) == "-"  # whether a hit speaks for the first
    player.test(player.algorithm(response(epsilon, plus=plus, minus=not plus), epsilon))


def _prior(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    pair = random_pair(rng, epsilon, (0, 1, "a"))
    player.ask_prior(player.algorithm(pair, epsilon), free_outcome(rng, pair, towards))


def _constant(player: Player, rng: np.random.Generator, epsilon: float, _: int) -> None:
    """Ask what ignores the data: a hit or a miss that tells nothing."""
    chance = float(rng.random())
    player.ask_prior(player.algorithm({0: (chance, chance), 1: (1 - chance, 1 - chance)}, epsilon), 0)


def _twins(player: Player, rng: np.random.Generator, epsilon: float, _: int) -> None:
    """Ask with a free outcome that has two looks, one for either dataset."""
    looks = [(1, True), (0.0, False), ((1, 2), (True, 2.0)), (Side.BELOW, "below")][int(rng.integers(4))]
    pair = response(epsilon, *(Twin(look) for look in looks))
    player.ask_prior(player.algorithm(pair, epsilon), looks[int(rng.integers(2))])


def _release(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    pair = random_pair(rng, epsilon)
    when = frozenset(pair) - {free_outcome(rng, pair, towards)} if rng.random() < 0.6 else frozenset()
    player.release(player.algorithm(pair, epsilon), when)


def _revise(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Revise what can still tell something; without such a release, make one that tells nothing yet."""
    telling = [place for place, pending in enumerate(player.pending) if len(pending.law) > 1]
    places = telling if telling or rng.random() < 0.8 else list(range(len(player.pending)))
    if not places:
        player.release(player.algorithm(random_pair(rng, epsilon), epsilon), frozenset())
        return
    which = places[int(rng.integers(len(places)))]
    rest = player.expected(player.pending[which].law)
    when = frozenset(rest) - {free_outcome(rng, rest, towards)} if rest else frozenset({0})
    player.revise(which, when if rng.random() < 0.7 else frozenset(rest))


def _select(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Select with ties, a threshold and a stopping rule; what may be left out is free."""
    count = int(rng.integers(2, 4))
    candidates = []
    for _ in range(count):
        pair = random_pair(rng, epsilon)
        lowest = next(pair[score] for score in OUTCOMES if score in pair)
        if towards and len(pair) == 2 and towards * (lowest[0] - lowest[1]) < 0:
            pair = dict(zip(pair, reversed(list(pair.values())), strict=True))  # the low score is the free one
        candidates.append(player.algorithm(pair, epsilon))
    threshold = None if rng.random() < 0.5 else float(rng.integers(0, 3))
    floors = rng.integers(-1, 3, 10)
    stop = None if rng.random() < 0.3 else lambda released: _floor(floors, released)
    player.select(candidates, int(rng.integers(1, count + 1)), stop, threshold)


def _floor(floors: np.ndarray, released: Sequence[Released]) -> float | None:
    """Return a random function of what was released: a floor, or None."""
    blend = sum((place + 1) * (1 + score_of(answer.outcome)) for place, answer in enumerate(released))
    level = int(floors[int(blend) % len(floors)])
    return None if level < 0 else level


def _failing(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Ask what may fail: an exception is an outcome too."""
    broken = _ERRORS[int(rng.integers(len(_ERRORS)))]
    free, way = int(rng.integers(2)), rng.random()
    pair = _steered(epsilon, free, broken, towards)
    if rng.random() < 0.25:
        pair = random_pair(rng, epsilon, (0, 1, broken))
    algorithm = player.algorithm(pair, epsilon)
    if way < 0.15:
        player.release(algorithm, frozenset({0}))
    elif way < 0.3:
        player.select([algorithm, player.algorithm(response(epsilon, 1, 0), epsilon)], threshold=1)
    else:
        player.ask_prior(algorithm, free)


def _leaky(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Ask what may give the dataset away, with a δ of its own."""
    spent = sum(from_grains(totals.delta) for totals, _, _ in player.meters())
    delta = (player.session.meter.delta_left + spent) * _LEAK
    if not delta > 0:
        return
    if player.pending and rng.random() < 0.7:
        player.revise(0, frozenset({2, 3}))
        return
    free, other = (0, 1) if rng.random() < 0.5 else (1, 0)
    pair = leaky(_steered(epsilon, free, other, towards), delta, 2, 3)
    way = rng.random()
    if way < 0.4:
        player.ask_prior(player.algorithm(pair, epsilon, delta), free)
    elif way < 0.7:
        player.release(player.algorithm(pair, epsilon, delta), frozenset({2, 3}))
    else:
        player.select([player.algorithm(pair, epsilon, delta) for _ in range(2)], threshold=1)


def _declared(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Ask with a q-target that has its true q."""
    pair = random_pair(rng, epsilon)
    members = frozenset(pair) - {free_outcome(rng, pair, towards)}
    laws = list(zip(*pair.values(), strict=True))
    q = best_q(laws[0], laws[1], [outcome in members for outcome in pair], epsilon)
    target: Target = QTarget(math.floor(q * 1e9) / 1e9, members) if q > 1e-6 else Everything()
    player.ask(player.algorithm(pair, epsilon, targets=(*ANY_PRIOR, target)), target)


def _between(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    count = int(rng.integers(-2, 3))
    counts = (count, count + 1) if towards >= 0 else (count + 1, count)
    player.ask(player.between(Between(0, int(rng.integers(0, 4))), counts, epsilon))


def _rivals(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Ask a session that has alternatives."""
    free, other = (0, 1) if rng.random() < 0.5 else (1, 0)
    player.ask(player.algorithm(_steered(epsilon, free, other, towards), epsilon))


# Numbers: counts that are declared monotone.


def _number(
    player: Player, rng: np.random.Generator, epsilon: float, towards: int, published: Published, *, low: bool
) -> Algorithm:
    """Return a count around 0, such that being low (or high) moves the loss where it should go.

    A low count speaks for the dataset without the unit, if the unit is counted. If it is not, it speaks for the
    other one, as soon as something was told of the offset.
    """
    larger, reach = player.larger(int(rng.integers(2))), math.ceil(1 / epsilon)
    count, moves = int(rng.integers(-reach, reach + 1)), int(rng.integers(2))
    if towards and rng.random() < 0.8:
        moves = int((larger == 1) == (low == (towards > 0)))
    moves *= published.sensitivity
    return player.number(published, (count, count + moves) if larger else (count + moves, count), epsilon)


def _sensitivity(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 1, 1, 2, 3]))


def _above(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    published = numbers.at_least(0, int(rng.integers(1, 4)), _sensitivity(rng))
    player.ask(_number(player, rng, epsilon, towards, published, low=True))


def _side(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Ask whether a count is on the other side of a threshold than expected."""
    below, published = bool(rng.integers(2)), numbers.side(0, _sensitivity(rng))
    number = _number(player, rng, epsilon, towards, published, low=below)
    player.ask_prior(number, Side.BELOW if below else Side.ABOVE)


def _changed(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    published = numbers.changed(int(rng.integers(-1, 2)), int(rng.integers(3)), 1, _sensitivity(rng))
    player.ask(_number(player, rng, epsilon, towards, published, low=bool(rng.integers(2))))


def _band(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    published = numbers.between(Between(0, int(rng.integers(4))))
    player.ask(_number(player, rng, epsilon, towards, published, low=bool(rng.integers(2))))


def _count(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    published = numbers.always(-1, 2, _sensitivity(rng))
    player.ask(_number(player, rng, epsilon, towards, published, low=True), Everything())


def _top(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Select among counts."""
    published = numbers.always(-1, 2, _sensitivity(rng))
    candidates = [_number(player, rng, epsilon, towards, published, low=True) for _ in range(2)]
    threshold = None if rng.random() < 0.5 else float(rng.integers(2))
    player.select(candidates, int(rng.integers(1, 3)), None, threshold)


def _falling(player: Player, rng: np.random.Generator, epsilon: float, towards: int) -> None:
    """Release a count from a threshold on, or lower that of a pending one."""
    if player.pending and rng.random() < 0.7:
        player.revise(int(rng.integers(len(player.pending))), int(rng.integers(-1, 1)))
        return
    published = numbers.always(-1, 2, _sensitivity(rng))
    player.release(_number(player, rng, epsilon, towards, published, low=True), int(rng.integers(1, 3)))


TOOLS: Final[dict[str, Tool]] = {
    "test": _test,
    "prior": _prior,
    "twins": _twins,
    "release": _release,
    "revise": _revise,
    "select": _select,
    "everything": lambda player, rng, epsilon, _: player.ask(
        player.algorithm(random_pair(rng, epsilon), epsilon), Everything()
    ),
    "failing": _failing,
    "constant": _constant,
    "leaky": _leaky,
    "twice": lambda player, rng, epsilon, _: player.ask(player.twice(random_pair(rng, epsilon), epsilon)),
    "agreement": lambda player, rng, epsilon, _: player.ask(player.agreement(random_pair(rng, epsilon), epsilon)),
    "declared": _declared,
    "between": _between,
    "boundary": lambda player, rng, epsilon, _: player.ask(player.boundary(random_pair(rng, epsilon), epsilon)),
    "rivals": _rivals,
    "above": _above,
    "side": _side,
    "changed": _changed,
    "band": _band,
    "count": _count,
    "top": _top,
    "falling": _falling,
}
_PLAIN: Final = ("test", "prior", "twins", "release", "revise", "select", "everything", "failing", "constant")
"""What every session without alternatives answers."""

_AT_LEAST: Final = ("above", "count", "top", "falling")
"""What sessions answer that take at-least questions only."""

_NUMBERS: Final = (*_AT_LEAST, "side", "changed")
"""What other sessions answer whose counts carry an offset."""

_NEEDS: Final[dict[str, Target]] = {
    "twice": Disagreement(),
    "agreement": Disagreement(),
    "declared": QTarget(0.9, ()),
    "between": Between(0, 3),
    "boundary": Boundary(),
}


def usable(session: Session, epsilon: float) -> tuple[str, ...]:
    """Return the tools that a session has a price for."""
    if len(session.meters) > 1:
        return ("rivals",)
    tariff = session.meter.tariff
    if tariff.at_least:
        return (*_AT_LEAST, *(("everything",) if _priced(session, Everything(), epsilon) else ()))
    more = [name for name, target in _NEEDS.items() if _priced(session, target, epsilon)]
    if tariff.offset is not None and _priced(session, Between(0, 3), epsilon, carried=True):
        more.append("band")
    plain = _PLAIN if _priced(session, NotPrior(prior=False), epsilon) else ()
    numbers = _NUMBERS if plain and tariff.offset is not None else ()
    return (*plain, *numbers, *more, *(("leaky",) if plain and session.meter.delta_left > 0 else ()))


def _priced(session: Session, target: Target, epsilon: float, *, carried: bool = False) -> bool:
    try:
        session.meter.quote(target, epsilon, carried=carried)
    except (NotAllowed, ValueError):
        return False
    return True
