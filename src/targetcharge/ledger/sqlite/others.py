"""The other tenants of a ledger: what they hold back, taken from those who live and spent for those who died."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, final

from targetcharge.ledger.entries import Spent
from targetcharge.ledger.sqlite.tenancy import Neighbour

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.ledger.sqlite.commits import Commits, Draft
    from targetcharge.ledger.sqlite.state import Held
    from targetcharge.ledger.sqlite.store import Store


@final
class Others:
    """All tenants but one."""

    def __init__(self, store: Store, commits: Commits, ledger: Path) -> None:
        """Look at all tenants but the one that commits."""
        self._store = store
        self._commits = commits
        self._ledger = ledger

    def held(self, nothing: Held) -> tuple[int, ...]:
        """Return what they hold back together, on each meter."""
        others = (held.units for held in self._store.tenants(but=self._commits.tenant).values())
        return tuple(map(sum, zip(nothing.units, *others, strict=True)))

    def take_back(self, nothing: Held) -> None:
        """Wait for their running calls, then take what they hold back."""
        for name in self._store.tenants(but=self._commits.tenant):
            with Neighbour(self._ledger, name) as neighbour:
                if neighbour.wait():
                    self._commits.write(partial(self._take, name, neighbour, nothing))

    def _take(self, name: str, neighbour: Neighbour, nothing: Held) -> None:
        if self._store.held_by(name):
            neighbour.tell()  # before the commit: it may hold less than it thinks, never more
            self._store.hold(name, nothing)

    def bury(self, *, spare_idle: bool) -> None:
        """Spend what sessions held back that ended without closing.

        Args:
            spare_idle: whether those that died between two calls spend nothing. Where a broken call charges every
                unit, a kernel that is shut down in the evening would cost everybody a hit.
        """
        for name in self._store.tenants(but=self._commits.tenant):
            with Neighbour(self._ledger, name) as neighbour:
                if neighbour.died():
                    spend = not (spare_idle and neighbour.idle)
                    self._commits.commit(partial(self._gone, name, spend=spend))
                    neighbour.remove()

    def _gone(self, name: str, draft: Draft, *, spend: bool) -> None:
        held = self._store.remove_tenant(name)
        if held and spend:
            draft.append([Spent("abandoned", held.units, held.count)])
