"""Publishing: from rows of estimates to the value of a stream, through a session that pays for changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.accounting.targets import NotPrior
from targetcharge.accounting.targets.plain import ANY_PRIOR
from targetcharge.errors import BudgetSpent, InvalidParameter
from targetcharge.mechanisms import Algorithm, Batch
from targetcharge.mechanisms.algorithm import batch_algorithm
from targetcharge.mechanisms.batch import MOST_HITS, Requests
from targetcharge.outcomes import PUBLISHABLE, UnpublishableError, publishable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.sessions import Session
    from targetcharge.streaming.consensus import Consensus

    Drawn = tuple[NDArray[np.intp], NDArray[np.bool_]]
    """The index of each moment's value, and whether it is a change."""

    Rows = Callable[[int, int], NDArray[np.float64]]
    """The estimates of all copies from one moment up to another, a row for each; asked for in order, once each."""

    Row = Callable[[], NDArray[np.float64]]
    """The estimates of all copies now."""

    Value = Any
    """What is published: a number, or whatever an aggregation publishes."""

    Aggregate = Callable[[Value], Algorithm]
    """From the published value to a private algorithm of the copies' estimates, an array."""

_ESTIMATES: Final = 2**18
"""Estimates of all copies that are held at a time, at most."""

_LEAST_PACE: Final = 16
_MOST_PACE: Final = 4_096

_MOST_MOVES: Final = 16
"""At one look; a move that misses its aim comes at least twice as close."""


class Values(np.ndarray[Any, np.dtype[Any]]):
    """The values of a stream: an array with one for each element, as far as the budget went.

    Attributes:
        refusal: why there are fewer than elements; None if there are not.
    """

    refusal: BudgetSpent | None = None

    @classmethod
    def of(cls, values: NDArray[Any], refusal: BudgetSpent | None = None) -> Values:
        """Return values, and why they ended early, if they did."""
        array = values.view(cls)
        array.refusal = refusal and refusal.with_traceback(None)
        return array

    @property
    def stopped(self) -> str:
        """Return why there are fewer values than elements, in a sentence; empty if there are not."""
        return "" if self.refusal is None else str(self.refusal)


def _only(values: Values) -> Value:
    """Return the value of one moment; raise BudgetSpent if it was not covered."""
    if values.refusal is not None:
        raise values.refusal
    return values[0]


@final
class ByConsensus:
    """Publishes by consensus: thousands of moments together."""

    def __init__(self, session: Session, consensus: Consensus, place: int) -> None:
        """Start at a place of the grid."""
        self._session = session
        self._consensus = consensus
        self._place = place

    @property
    def value(self) -> float:
        """Return what was published last."""
        return self._consensus.grid.values[self._place]

    def look(self, row: Row) -> float:
        """Return the value now: after a long move it looks again, since that may not have hit its aim."""
        before, value = self.value, self._look_once(row)
        for _ in range(_MOST_MOVES):
            if value == before:
                break
            try:
                before, value = value, self._look_once(row)
            except BudgetSpent:  # what was published before that holds
                break
        return value

    def _look_once(self, row: Row) -> float:
        return float(_only(self.publish(1, lambda *_: row()[None, :])))

    def publish(self, count: int, rows: Rows) -> Values:
        """Return the value at each moment: fewer or none, if the budget ends on the way."""
        values = self._consensus.grid.values
        batch = Batch(
            (batch_algorithm("robust stream", self._consensus.epsilon, NotPrior(prior=None)),),
            range(count),
            Requests(values, _Path(self._consensus, self._place, rows).draw),
            target=ANY_PRIOR,
            most_hits=MOST_HITS,
        )
        parts: list[NDArray[np.intp]] = []
        refusal: BudgetSpent | None = None
        try:
            for entry in self._session.ask_batch(batch):
                parts.append(entry.indices)
                self._place = int(parts[-1][-1])
        except BudgetSpent as spent:
            refusal = spent
        return Values.of(np.array(values)[np.concatenate([np.empty(0, np.intp), *parts])], refusal)


@final
class _Path:
    """Places of the grid as they are drawn, ahead of what is published. As secret as the copies."""

    def __init__(self, consensus: Consensus, place: int, rows: Rows) -> None:
        self._consensus = consensus
        self._place = place
        self._rows = rows
        self._pace = _LEAST_PACE

    def draw(self, _: object, entropy: Entropy, first: int, last: int) -> Drawn:
        """Return the place at each moment, and where it is another one than before."""
        block = max(1, _ESTIMATES // self._consensus.copies)
        parts = [np.array([self._place])]
        for start in range(first, last, block):
            parts += self._along(self._rows(start, min(start + block, last)), entropy)
        places = np.concatenate(parts)
        return places[1:], places[1:] != places[:-1]

    def _along(self, rows: NDArray[np.float64], entropy: Entropy) -> list[NDArray[np.intp]]:
        """Return the places for a block of rows. What is drawn after a move is drawn again, from where it went."""
        parts, done = [], 0
        while done < len(rows):
            drawn = self._consensus.draw(rows[done : done + self._pace], self._place, entropy)
            moves = np.flatnonzero(drawn != self._place)
            if len(moves):
                drawn = drawn[: moves[0] + 1]
                self._place = int(drawn[-1])
            self._pace = _LEAST_PACE if len(moves) else min(2 * self._pace, _MOST_PACE)
            parts.append(drawn)
            done += len(drawn)
        return parts

    def __repr__(self) -> str:
        """Return nothing of the path."""
        return "<path of a stream>"


@final
class ByAggregation:
    """Publishes by any private algorithm of the copies' estimates, one moment after another."""

    def __init__(self, session: Session, aggregate: Aggregate, value: object, query_epsilon: float) -> None:
        """Start with a public value."""
        if not callable(aggregate):
            expected = "a function of the published value that returns an algorithm"
            raise InvalidParameter("aggregate", aggregate, expected)
        self._session = session
        self._aggregate = aggregate
        self._query_epsilon = query_epsilon
        try:
            self._value = publishable(value)
        except UnpublishableError:
            raise InvalidParameter("start", value, PUBLISHABLE) from None

    @property
    def value(self) -> object:
        """Return what was published last."""
        return self._value

    def look(self, row: Row) -> object:
        """Return the value now."""
        return _only(self.publish(1, lambda *_: row()[None, :]))

    def publish(self, count: int, rows: Rows) -> Values:
        """Return the value at each moment, as `ByConsensus.publish` does."""
        values = np.empty(count, dtype=np.object_)
        for moment in range(count):
            try:
                self._value = self._session.ask_prior(self._algorithm(moment, rows), self._value).outcome
            except BudgetSpent as spent:
                return Values.of(values[:moment], spent)
            values[moment] = self._value
        return Values.of(values)

    def _algorithm(self, moment: int, rows: Rows) -> Algorithm:
        algorithm = self._aggregate(self._value)
        if not isinstance(algorithm, Algorithm):
            raise InvalidParameter("aggregate", self._aggregate, "a function that returns an algorithm")
        if algorithm.epsilon > self._query_epsilon or algorithm.delta:
            most = f"an epsilon of at most query_epsilon={self._query_epsilon:g} and a delta of 0"
            expected = f"a function that returns algorithms with {most}; {algorithm!r} has more"
            raise InvalidParameter("aggregate", self._aggregate, expected)

        def run(_: object, entropy: Entropy) -> object:
            return algorithm.run(rows(moment, moment + 1)[0], entropy)

        return replace(algorithm, run=run, oracle=None)
