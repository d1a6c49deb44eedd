"""The other tenants of a ledger: what they hold back, taken from those who live and spent for those who died."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

from targetcharge.ledger.entries import Spent
from targetcharge.ledger.sqlite.tenancy import Neighbour

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from targetcharge.ledger.sqlite.store import Held, State, Store


@final
class Others:
    """All tenants but one."""

    def __init__(self, store: Store, ledger: Path) -> None:
        """Look at all tenants; `own` is the name of the one that looks."""
        self._store = store
        self._ledger = ledger
        self.own = ""

    def held(self, nothing: Held) -> tuple[int, ...]:
        """Return what they hold back together, on each meter."""
        others = (held.units for held in self._store.tenants(but=self.own).values())
        return tuple(map(sum, zip(nothing.units, *others, strict=True)))

    def take_back(self, nothing: Held) -> None:
        """Wait for their running calls, then take what they hold back."""
        for name in self._store.tenants(but=self.own):
            with Neighbour(self._ledger, name) as neighbour:
                if neighbour.wait():
                    with self._store.transaction():
                        if self._store.tenants().get(name):
                            neighbour.tell()  # before the commit: it may hold less than it thinks, never more
                            self._store.hold(name, nothing)

    def bury(self, commit: Callable[[Callable[[State], State]], None], *, spare_idle: bool) -> None:
        """Spend what sessions held back that ended without closing.

        Args:
            commit: writes.
            spare_idle: whether those that died between two calls spend nothing. Where a broken call charges every
                unit, a kernel that is shut down in the evening would cost everybody a hit.
        """
        for name in self._store.tenants(but=self.own):
            with Neighbour(self._ledger, name) as neighbour:
                if neighbour.died():
                    commit(partial(self._gone, name, spend=not (spare_idle and neighbour.idle)))
                    neighbour.remove()

    def _gone(self, name: str, state: State, *, spend: bool) -> State:
        held = self._store.remove_tenant(name)
        return self._store.append(state, [Spent("abandoned", held.units, held.count)]) if held and spend else state
