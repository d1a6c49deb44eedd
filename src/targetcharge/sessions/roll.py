"""Rolls: who takes part, where every unit has a meter of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from targetcharge.ledger import Ledger


class Roll(Protocol):
    """What keeps a meter for each unit. As secret as the data, but for what it refuses."""

    def read(self, ledger: Ledger) -> None:
        """Take note of what the ledger holds, before a call draws; alone with the ledger, and telling nothing.

        Raises:
            NotAllowed: if that is about data that is not here.
        """
        ...
