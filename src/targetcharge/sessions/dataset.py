"""Datasets: what a session asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

if TYPE_CHECKING:
    from targetcharge.ledger import Ledger


class Dataset(Protocol):
    """What a session asks. As secret as the data, but for what it refuses."""

    @property
    def data(self) -> object:
        """Return what algorithms get."""
        ...

    @property
    def snapshot(self) -> int:
        """Return which snapshot of the data that is; 0 where there are none."""
        ...

    @property
    def individual(self) -> bool:
        """Return whether every unit has a meter of its own."""
        ...

    def read_ledger(self, ledger: Ledger) -> None:
        """Where every unit has a meter: take note of what the ledger holds, before a call draws.

        Alone with the ledger, and telling nothing.

        Raises:
            NotAllowed: if that is about data that is not here.
        """
        ...


@final
@dataclass(frozen=True, repr=False, eq=False)
class PlainData:
    """Any Python object: it has no snapshots, and all units share a meter."""

    data: object
    snapshot: int = 0
    individual: bool = False

    def read_ledger(self, ledger: Ledger) -> None:
        """Do nothing: what was published changes nothing."""
