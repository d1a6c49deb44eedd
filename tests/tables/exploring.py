"""Exploring: every way a game against two tables can go, and what that tells of the unit that one of them has."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field

import numpy as np
from tests.tables.lockstep import Parted, Twins, facts, playing

from targetcharge.audit.exact import View, Views

LIMIT = 20_000


@dataclass
class Choices:
    """Which value each draw of one run takes: the first are given, and all further draws take their first value.

    Attributes:
        given: the place of the value that each of the first draws takes.
        places: the place that each draw took, and how many there were.
        weights: the probability of all that was drawn, on either table.
    """

    given: list[int]
    places: list[tuple[int, int]] = field(default_factory=list)
    weights: tuple[float, float] = (1.0, 1.0)

    def draw(self, pair):
        """Return the value whose turn it is, of those that can occur on either table."""
        possible = [value for value, chances in pair.items() if any(chances)]
        drawn = len(self.places)
        place = self.given[drawn] if drawn < len(self.given) else 0
        self.places.append((place, len(possible)))
        first, second = pair[possible[place]]
        self.weights = self.weights[0] * first, self.weights[1] * second
        return possible[place]

    def following(self):
        """Return what is given to the next run, where the last draw that can goes on; None after the last run."""
        for drawn in reversed(range(len(self.places))):
            place, count = self.places[drawn]
            if place + 1 < count:
                return [*(before for before, _ in self.places[:drawn]), place + 1]
        return None


@dataclass(frozen=True)
class Seen:
    """All that can be seen in a game, and what the unit was charged, which nobody sees.

    Attributes:
        views: with their probabilities on the table without the unit, and with it.
        charges: of the unit, by the view after which it had paid so much.
    """

    views: Views
    charges: dict[View, float]

    def delta(self, epsilon):
        """Return the smallest δ with which what is seen is (ε, δ)-indistinguishable, both directions."""
        pairs = self.views.seen.values()
        return max(
            math.fsum(max(0.0, one[side] - math.exp(epsilon) * one[1 - side]) for one in pairs) for side in (0, 1)
        )

    def excess(self, order, price=1.0):
        """Return E[e^{(order-1)·loss - charges}] - 1, the worse direction: at most 0 if all was paid for.

        Args:
            order: of the moment.
            price: of what the unit was charged, at this order.
        """
        weights = np.array(list(self.views.seen.values()))
        paid = np.exp([-price * self.charges[view] for view in self.views.seen])
        ends = ((weights[:, side], weights[:, 1 - side]) for side in (0, 1))
        return max(float((one**order * other ** (1 - order) * paid).sum()) for one, other in ends) - 1


def explore(opened, game, limit=LIMIT):
    """Return all that can be seen in a game: it is played against fresh tables for every way the noise may fall.

    Args:
        opened: opens a table: without the unit for 0, with it for 1. Runs in the thread that asks it.
        game: a function of `Twins`, which decides by what it saw.
        limit: the most runs.
    """
    seen, charges, paths = {}, {}, 0
    given = []

    def add(view, side, weight):
        before = seen.setdefault(view, [0.0, 0.0])
        before[side] += weight

    with playing() as players:
        while given is not None:
            if paths == limit:
                msg = f"more than {limit} ways"
                raise RuntimeError(msg)
            chance = Choices(given)
            views, paid = _played(players, opened, game, chance)
            for side, view in enumerate(views):
                add(view, side, chance.weights[side])
            assert charges.setdefault(views[1], paid) == paid
            paths += 1
            given = chance.following()
    for side in (0, 1):
        assert abs(math.fsum(weights[side] for weights in seen.values()) - 1) < 1e-9
    found = {view: tuple(weights) for view, weights in seen.items()}
    return Seen(Views(found, paths), {view: charges.get(view, 0.0) for view in seen})


def _played(players, opened, game, chance):
    """Return what is seen of either table in one run, and what the unit paid."""
    tables = [player.do(opened, side) for side, player in enumerate(players)]
    twins = Twins(players, tables, chance)
    other = ()
    try:
        game(twins)
    except Parted as parted:
        other = parted.args
    views = [_view(table, twins.events) for table in tables]
    if other:
        views[1] = dataclasses.replace(views[1], events=(*views[1].events[:-1], other))
    paid = players[1].do(paid_by_the_last, tables[1])
    for player, table in zip(players, tables, strict=True):
        player.do(table.close)
    return views, paid


def paid_by_the_last(table):
    """Return what the unit with the last id was charged: hits, or the sum of Rényi prices."""
    units, tariff = table._numbers, table.meter.tariff
    table._session.up_to_date(units.settle)
    spent = int(int(units._counters.spent[-1]) / units.allowance.scale)
    return tariff.total(spent) if tariff.name == "renyi" else float(spent)


def _view(table, events):
    meters = tuple((meter.totals, meter.hits_left, meter.odometer()) for meter in table.meters)
    return View(tuple(events), meters, tuple(facts(answer) for answer in table.transcript))
