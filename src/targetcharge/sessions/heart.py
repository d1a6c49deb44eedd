"""The heart: reserve, touch the data, settle, publish. Everything that a session publishes goes through here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, final

from targetcharge.errors import LedgerError, NotAllowed
from targetcharge.sessions.attempt import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.ledger import Ledger, Most, Settlement
    from targetcharge.sessions.dataset import Dataset

Result = TypeVar("Result")


@final
class Heart:
    """One call at a time: a session takes turns."""

    def __init__(self, ledger: Ledger, dataset: Dataset) -> None:
        """Publish what is computed of a dataset through a ledger."""
        self._ledger = ledger
        self._dataset = dataset

    def publish(self, most: Most, name: str, compute: Callable[[], tuple[Settlement, Result]]) -> Result:
        """Publish what a call computes; with the exclusive lock if every unit has a meter of its own.

        Args:
            most: the most it could charge.
            name: what the ledger calls it, should it break.
            compute: touches the data; returns what to settle, and what to publish then.
        """
        if not self._dataset.individual:
            return self._published(most, name, compute)
        with self._ledger.exclusive():
            self._dataset.read_ledger(self._ledger)
            return self._published(most, name, compute)

    def _published(self, most: Most, name: str, compute: Callable[[], tuple[Settlement, Result]]) -> Result:
        """Reserve, touch the data, settle. What is reserved stays spent unless it settles."""
        try:
            self._ledger.reserve(most)
            published = attempt(partial(self._settled, compute))
            if isinstance(published, Failure):
                self._ledger.forfeit(name)
                raise published.error()
            return published
        finally:
            self._ledger.end_call()

    def _settled(self, compute: Callable[[], tuple[Settlement, Result]]) -> Result | Failure:
        """Compute and settle: inside `attempt`, so that no traceback of an interrupt holds these variables."""
        computed = attempt(compute)
        if isinstance(computed, Failure):
            return computed
        settlement, published = computed
        problem = attempt(partial(self._ledger.settle, settlement), public=(LedgerError, NotAllowed))
        return published if problem is None else problem
