"""Robust streams: estimates that stay right on a stream which is chosen by who sees them.

A sketch is right on a stream that does not depend on its randomness. Who sees its estimates and chooses what comes
next can learn that randomness, and make it wrong. A robust stream keeps many independent copies and publishes one
value by a private choice among them. Differential privacy protects the randomness of each copy here, *not* the
elements of the stream. While the copies agree with the value it stays, for free; a change costs.

>>> import targetcharge as tc
>>> stream = tc.streaming.RobustStream(tc.streaming.DistinctValues(), copies=300, budget=tc.Budget(4.0, 1e-6))
>>> values = stream.follow(range(10))
>>> float(values[-1]) == stream.value, stream.changes <= stream.plan.changes
(True, True)
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import contextmanager
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, NoReturn, final

import numpy as np

from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.markup import counted
from targetcharge.randomness import SystemEntropy
from targetcharge.sessions import Session
from targetcharge.sessions.heart import attempt
from targetcharge.streaming import planning
from targetcharge.streaming.consensus import INERTIA, Consensus, Grid
from targetcharge.streaming.copies import SketchKind, seeded_copies
from targetcharge.streaming.publishing import ByAggregation, ByConsensus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from targetcharge.accounting.budget import Budget
    from targetcharge.sessions.reading import Reading
    from targetcharge.streaming.copies import Copies, Items, Make, Weights
    from targetcharge.streaming.publishing import Aggregate, Value, Values

_ENTRIES = 1_000
"""What the ledger in memory remembers of the past."""


@final
class RobustStream:
    """One stream, its copies, and the value that is published. Calls from several threads take turns."""

    def __init__(
        self,
        sketch: SketchKind | Make,
        copies: int,
        budget: Budget,
        *,
        query_epsilon: float | None = None,
        estimates: int = planning.ESTIMATES,
        tolerance: float | str = planning.TOLERANCE,
        inertia: float = INERTIA,
        smallest: float = planning.SMALLEST,
        largest: float = planning.LARGEST,
        start: Value = 0.0,
        aggregate: Aggregate | None = None,
    ) -> None:
        """Draw the copies' randomness from the operating system; the stream is empty.

        Args:
            sketch: `SecondMoment()`, `DistinctValues()`, one of `tc.streaming.apache`, or a function that makes of
                an integer seed an object with `update(item)` and `estimate()`.
            copies: how many.
            budget: for the randomness of each copy; what is published of it in all has this (ε, δ).
            query_epsilon: of one estimate; left out for one that makes false moves rare (see `plan`).
            estimates: how many will be asked for in all, about; for that.
            tolerance: how far from the published value the estimates may be, as a share of it: 0.1 or "10%".
            inertia: the bonus for staying, as a share of the copies, below 1.
            smallest: the smallest value that is published, but for 0.
            largest: the largest value that is published.
            start: the value to begin with.
            aggregate: another way to choose: from the published value to an algorithm of the copies' estimates (an
                array) that is ε-DP where one of them is replaced. Any outcome but the published one costs.
        """
        grid = Grid(smallest, largest, tolerance)
        settings: dict[str, Any] = {"tolerance": tolerance, "inertia": inertia}
        settings |= {"smallest": smallest, "largest": largest}
        self.plan = planning.plan(budget, copies, query_epsilon, estimates=estimates, **settings)
        if not self.plan.changes and query_epsilon is None:
            least = planning.fewest_copies(budget, estimates, grid, inertia)
            if least is None:
                raise InvalidParameter("budget", budget, "larger: with no number of copies it covers a change")
            expected = f"at least {least:,}, or the budget {budget} larger: it does not cover one change"
            raise InvalidParameter("copies", copies, expected)
        self._lock = RLock()
        self._inside = False
        self._whole = True
        self._copies = _copies(sketch, self.plan.copies)
        self._session = Session(
            None, budget, self.plan.query_epsilon, transcript=_ENTRIES, unit="the randomness of one copy"
        )
        self._publisher: ByConsensus | ByAggregation
        if aggregate is None:
            consensus = Consensus(grid, self.plan.copies, self.plan.query_epsilon, inertia)
            self._publisher = ByConsensus(self._session, consensus, grid.place("start", start))
        else:
            self._publisher = ByAggregation(self._session, aggregate, start, self.plan.query_epsilon)

    def update(self, item: object, weight: float | None = None) -> None:
        """Take in one element of the stream; publish nothing."""
        self.update_many([item], None if weight is None else [weight])

    def update_many(self, items: Iterable[Any], weights: ArrayLike | None = None) -> None:
        """Take in elements of the stream, in order; publish nothing.

        Raises:
            InvalidParameter: naming an item or weight that cannot be one; none was taken in.
        """
        with self._turn():
            checked, weight_array = self._checked(items, weights)
            self._whole = False
            # What it says is about one copy.
            failure = attempt(partial(self._copies.update, checked, weight_array))
            if failure is not None:
                raise failure.error()
            self._whole = True

    def estimate(self) -> Value:
        """Publish the value for the stream as it is; pay if it is another one.

        After a jump it may take a few changes until the value is the right one; all of them are paid for.

        Raises:
            BudgetSpent: if a change is not covered.
        """
        with self._turn():
            return self._publisher.look(self._copies.estimates)

    def follow(self, items: Iterable[Any], weights: ArrayLike | None = None) -> Values:
        """Take in elements in order and publish the value after each, in an array; pay for each change.

        When the budget is spent on the way, what was published is returned, if only an empty array, and `.stopped`
        says so.

        Args:
            items: elements of the stream.
            weights: how much of each, for sketches that weigh.

        Raises:
            InvalidParameter: naming an item or weight that cannot be one; none was taken in.
        """
        with self._turn():
            checked, weight_array = self._checked(items, weights)

            def rows(first: int, last: int) -> NDArray[np.float64]:
                self._whole = False  # until all is published: what fails on the way leaves nobody to know how far
                part = None if weight_array is None else weight_array[first:last]
                return self._copies.follow(checked[first:last], part)

            values = self._publisher.publish(len(checked), rows)
            self._whole = True
            return values

    def _checked(self, items: Iterable[Any], weights: ArrayLike | None) -> tuple[Items, Weights]:
        if isinstance(items, str | bytes):
            raise InvalidParameter("items", items, "a sequence of items; one text is one item, for `update`")
        if not isinstance(items, Iterable):
            raise InvalidParameter("items", items, "a sequence of items; one is for `update`")
        listed: Items = items if isinstance(items, np.ndarray) else list(items)
        if isinstance(listed, np.ndarray) and listed.ndim != 1:
            raise InvalidParameter("items", f"an array of shape {listed.shape}", "one-dimensional")
        weight_array = None if weights is None else _weights(weights, len(listed))
        return self._copies.check(listed, weight_array), weight_array

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one call after another in, unless an earlier one broke, or this one is made from within another."""
        with self._lock:
            if self._inside:
                msg = "a stream cannot be asked from within a call of its own, such as by its `aggregate`"
                raise NotAllowed(msg)
            if not self._whole:
                msg = "an update of this stream broke, and its copies may no longer be alike: make another one"
                raise NotAllowed(msg)
            self._inside = True
            try:
                yield
            finally:
                self._inside = False

    @property
    def value(self) -> Value:
        """Return what was published last; free."""
        return self._publisher.value

    @property
    def changes(self) -> int:
        """Return how many changes were paid for."""
        return self._session.meter.hits

    @property
    def meter(self) -> Reading:
        """Return the meter, to look at."""
        return self._session.meter

    def share_of_wrong_copies(self, failure: float) -> float:
        """Return how large a share of the copies is expected to be ever wrong, at most.

        Args:
            failure: the probability that one copy is ever wrong, on a stream that does not depend on it.
        """
        return planning.share_of_wrong_copies(self.meter.guarantee, failure)

    def __repr__(self) -> str:
        """Return public facts only."""
        meter = self.meter
        changes = f"{counted(meter.hits, 'change')}, {meter.hits_left:,} left"
        return f"<robust stream of {self.plan.copies} copies, {changes}>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two streams would show more of one randomness than a budget covers."""
        msg = "a stream cannot be pickled or copied: make another one, with copies of its own"
        raise NotAllowed(msg)


def _copies(sketch: SketchKind | Make, count: int) -> Copies:
    if not isinstance(sketch, SketchKind):
        return seeded_copies(sketch, count, SystemEntropy())
    if isinstance(sketch, type):
        raise InvalidParameter("sketch", sketch, f"one of this kind: {sketch.__name__}()")
    return sketch.copies(count, SystemEntropy())


def _weights(weights: ArrayLike, count: int) -> NDArray[np.float64]:
    expected = f"finite numbers, one for each of the {count} items"
    try:
        given = np.asarray(weights)
    except ValueError:  # lists of several lengths
        raise InvalidParameter("weights", weights, expected) from None
    if given.shape != (count,) or given.dtype.kind not in "iuf":
        raise InvalidParameter("weights", weights, expected)
    weight_array = given.astype(np.float64)
    wrong = weight_array[~np.isfinite(weight_array)]
    if len(wrong):
        raise InvalidParameter("weights", wrong[0].item(), expected)
    return weight_array
