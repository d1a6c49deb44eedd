"""Budgets: the ledgers of all tables that the registry knows, as they stand now. Nothing in them is changed.

>>> from dataclasses import replace
>>> gone = TableBudget("/x/v.csv", Path("/x/v.db"), Budget(3.0, 1e-6), since=0.0, problem="the file is gone")
>>> Budgets([gone, replace(gone, unit="rows", meter="sparse", hits=4, hits_left=6, used=90.0, problem="")])
/x/v.csv
  (3, 1e-06): the file is gone
    /x/v.db, since 1970-01-01
  (3, 1e-06) for rows, sparse meter: 4 hits, 6 left
    /x/v.db, since 1970-01-01, last used 1970-01-01 00:01
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from targetcharge import markup
from targetcharge.accounting.budget import Budget
from targetcharge.errors import InvalidParameter, LedgerError, NotAllowed, TargetChargeError
from targetcharge.ledger.registry import Registry
from targetcharge.ledger.sqlite.verify import Inspection, inspect
from targetcharge.ledger.sqlite.witness import WitnessFile

if TYPE_CHECKING:
    from targetcharge.ledger.registry import Registration

_GONE: Final = "the file is gone"
_REPLACED: Final = "the file is gone, and another ledger has its place"
_HEADINGS: Final = ("table", "ledger", "budget", "hits", "since", "last used")


@final
@dataclass(frozen=True)
class TableBudget:
    """A budget of a table, and the ledger that keeps it. Of a ledger that cannot be read only the rest is known.

    Attributes:
        table: the path of a file or folder, a pattern, or "a data frame".
        ledger: the file.
        budget: what all that is published with this ledger costs at most.
        since: when the ledger was made, in seconds since 1970; of one that an earlier version made, when it was
            first opened by one that has a registry.
        used: when it was last written to; None if that is not known.
        problem: why the ledger cannot be read, or counts as spent; empty if nothing is wrong.
        unit: whose privacy is protected, in words.
        meter: its name.
        charging: "shared", or "individual" if each unit has this budget.
        hits: how many were published.
        hits_left: how many more are covered: in all for each unit, if each has this budget.
    """

    table: str
    ledger: Path
    budget: Budget
    since: float
    used: float | None = None
    problem: str = ""
    unit: str | None = None
    meter: str | None = None
    charging: str | None = None
    hits: int | None = None
    hits_left: int | None = None

    @classmethod
    def of(cls, known: Registration) -> TableBudget:
        """Return how a ledger that the registry knows stands."""
        path, used = Path(known.path), _time_of(WitnessFile.at_home(known.ledger))
        inspection, budget = _inspected(known), Budget(known.epsilon, known.delta)
        if not isinstance(inspection, Inspection):
            return cls(known.table, path, budget, known.since, used, inspection)
        return cls(
            known.table,
            path,
            budget,
            known.since,
            max(used or 0.0, _time_of(WitnessFile.beside(path)) or 0.0) or None,
            inspection.restored,
            str(inspection.terms.unit),
            inspection.terms.meter,
            inspection.terms.charging,
            inspection.state.sums.hits[inspection.roomiest],
            inspection.hits_left,
        )

    @property
    def guarantee(self) -> str:
        """Return the budget and whom it protects, in words."""
        whom = "" if self.unit is None else f" for {self.unit}, {self.meter} meter"
        return f"({self.budget.epsilon:g}, {self.budget.delta:g}){whom}"

    @property
    def standing(self) -> str:
        """Return how many hits are used and left, and what is wrong, in words."""
        if self.hits is None or self.hits_left is None:
            return self.problem
        hits = f"{self.hits:,} hit{'s' * (self.hits != 1)}"
        left = f"{self.hits_left:,} {'for each unit in all' if self.charging == 'individual' else 'left'}"
        return f"{hits}, {left}{'; ' * bool(self.problem)}{self.problem}"

    @property
    def times(self) -> tuple[str, str]:
        """Return since when the ledger is known, and when it was last used, in words; empty if nobody knows."""
        return _moment(self.since)[:10], "" if self.used is None else _moment(self.used)

    def plain(self) -> dict[str, object]:
        """Return plain data."""
        return asdict(self) | {"ledger": str(self.ledger)}


@final
class Budgets(tuple[TableBudget, ...]):
    """Budgets of tables, those of one table one after another."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return two lines for each, below its table."""
        lines = []
        for table, budgets in groupby(self, attrgetter("table")):
            lines.append(table)
            for known in budgets:
                since, used = known.times
                lines.append(f"  {known.guarantee}: {known.standing}")
                lines.append(f"    {known.ledger}, since {since}{', last used ' * bool(used)}{used}")
        return "\n".join(lines) or "no table was opened with a ledger yet"

    def _repr_html_(self) -> str:
        """Return a table, for notebooks."""
        return markup.table(_HEADINGS, map(_cells, self))


def budgets() -> Budgets:
    """Return the budgets of all tables that were opened with a ledger by this user: also where it is gone since.

    Ledgers are read as they are. In memory there are none, and the registry knows nothing of other users.

    Raises:
        LedgerError: if the registry cannot be read.
    """
    return Budgets(TableBudget.of(known) for known in _known(Registry()))


def forget(path: str) -> Budgets:
    """Forget ledgers that are gone, at a path, of a table there, or in a folder: as their owner says.

    A new ledger of such a table warns of them no more.

    Raises:
        InvalidParameter: if the registry knows none there.
        NotAllowed: if all there still exist: they keep their budgets.
        LedgerError: if the registry cannot be read or written.
    """
    registry, place = Registry(), os.path.realpath(path)
    there = [known for known in _known(registry) if known.is_at(place)]
    if not there:
        raise InvalidParameter("path", path, "a table, a ledger or a folder that the registry knows")
    gone = [known for known in there if _inspected(known) in (_GONE, _REPLACED)]
    if not gone:
        msg = f"the ledger {there[0].path} is there and keeps its budget: only ledgers that are gone are forgotten"
        raise NotAllowed(msg)
    forgotten = Budgets(map(TableBudget.of, gone))
    try:
        registry.forget([known.ledger for known in gone])
    except OSError as error:
        raise _unusable(registry, error) from None
    return forgotten


def _inspected(known: Registration) -> Inspection | str:
    """Return what a ledger says of itself, or why it says nothing."""
    if not os.path.exists(known.path):  # noqa: PTH110 - never raises
        return _GONE
    try:
        inspection = inspect(Path(known.path))
    except TargetChargeError as error:
        return str(error)
    return inspection if inspection.state.ledger == known.ledger else _REPLACED


def _known(registry: Registry) -> list[Registration]:
    """Return what the registry knows, by table."""
    try:
        return sorted(registry.known(), key=attrgetter("table"))
    except OSError as error:
        raise _unusable(registry, error) from None


def _unusable(registry: Registry, error: OSError) -> LedgerError:
    return LedgerError(f"the registry of ledgers {registry.path} cannot be read or written: {error.strerror}")


def _time_of(witness: WitnessFile) -> float | None:
    """Return when a witness was last written: whenever its ledger was."""
    try:
        return witness.path.stat().st_mtime
    except OSError:
        return None


def _moment(seconds: float) -> str:
    """Return a moment in universal time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _cells(known: TableBudget) -> tuple[str, ...]:
    return (known.table, str(known.ledger), known.guarantee, known.standing, *known.times)
