"""Opening a table: a source, a unit, a budget."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast, final

from targetcharge import checks
from targetcharge.accounting import gumbel_hits
from targetcharge.accounting.budget import Budget, check_budget, warn_of_large
from targetcharge.accounting.targets.plain import priced_like
from targetcharge.errors import InvalidParameter, NotAllowed, Setting
from targetcharge.ledger import Unit, terms_at
from targetcharge.queries.tree import column_of
from targetcharge.sessions import Session
from targetcharge.sessions.opening import MEMORY, METERS, Declaration, file_of, open_ledger
from targetcharge.tables.individual import UnitMeters
from targetcharge.tables.individual.counters import Checkpoints
from targetcharge.tables.numbers import SharedNumbers
from targetcharge.tables.other_budgets import warn_of_frame, warn_of_others
from targetcharge.tables.snapshots import Snapshots, curated
from targetcharge.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.accounting.targets import Target
    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Ledger, Terms


class Row(Enum):
    """Stands for "every row is a unit of its own", which must be said."""

    ROW = "row"

    def __repr__(self) -> str:
        """Return the name it is imported by."""
        return "ROW"


ROW: Final = Row.ROW

_ENDING: Final = ".ledger.db"

_OTHER_LEDGER: Final = Setting("ledger", "other.db")

_UNIT: Final = "the name of a column, or tc.ROW for every row alone"

_MOST_COUNTED: Final = 50
"""Hits without an offset: a sparse meter buys about twice as many, and counts them in seconds."""

_MOST_SPARSE: Final = 1_000
"""Hits that a sparse meter's noise is chosen for in seconds; for some thousands it is not chosen well any more."""


def open_table(
    source: object,
    unit: str | Row | None = None,
    budget: Budget | None = None,
    *,
    hits: int | None = None,
    query_epsilon: float | None = None,
    meter: str = "auto",
    charging: str | None = None,
    ledger: str | os.PathLike[str] | None = None,
    targets: Sequence[Target] | Target | None = None,
    alternatives: Sequence[Target] | None = None,
    table: str | None = None,
    types: Mapping[str, str] | None = None,
    memory: str | None = None,
    new_data: bool = False,
    restored: tuple[int, str] | None = None,
) -> Table:
    """Open a table for questions. Where there is a ledger, what is left out is as it was made with.

    Args:
        source: the path of a Parquet, CSV or DuckDB file, of a folder or a pattern of Parquet or CSV files; or a
            pandas, polars or Arrow table, of which a copy is made.
        unit: whose privacy is protected: all rows with the same value of this column, or tc.ROW for every row
            alone. Rows without a unit are left out. It must be given for a new ledger.
        budget: the (ε, δ) of everything that will ever be published, reopened or not; of a new ledger too.
        hits: how many to cover, with the least noise; of a new ledger 10, if the query ε is left out too.
        query_epsilon: the ε of one computation; left out, the ledger's, or what fits the hits.
        meter: "auto": that of the ledger; of a new one "sparse", or "exact" with charging="individual", where
            targets or alternatives are given, for thousands of hits, and for a query ε that buys hundreds.
            "sparse" has the least noise, and takes `above`, `watch`, `top`, what is always paid, and releases from
            a number on; "exact" takes priors and other conditions too; "renyi" also prices `between` and `side`,
            and other ε.
        charging: "shared" (of a new ledger): one budget for all units, spent when it is. "individual": a budget
            for every unit, of which an answer charges those who contributed; who has spent theirs takes no part
            any more, and the questions never end.
        ledger: ":memory:", or a file that keeps the budget; left out for a file beside a file source, and memory
            for others.
        targets: examples of the targets that will be asked, if not those of `above`; see tc.Session.
        alternatives: several targets with a meter each; see tc.Session.
        table: of a DuckDB file with several.
        types: what columns are: "number", "text", "date", "time", "boolean", or "integer", which rounds. Those of
            a CSV file that are not named are text. The ledger keeps them: others are refused.
        memory: the most that DuckDB may use, such as "4GB", before it spills to a private temporary folder.
        new_data: go on with the ledger's budget although the data has changed since it was last used; with
            charging="individual" it may have grown by further files, and nothing else.
        restored: the number and hash of the last published entry, to open a restored copy of a ledger.

    Raises:
        InvalidParameter: if a parameter makes no sense; it names it.
        EngineError: if the source cannot be read.
        NotAllowed: if the ledger was made for other terms, or other data.

    Warns:
        BudgetWarning: if the same data has another budget, if this one is forgotten with the process, and where a
            ledger is made for a budget so large that it hardly protects anybody.
    """
    opening = TableOpening(
        source,
        unit,
        budget,
        hits=hits,
        query_epsilon=query_epsilon,
        meter=meter,
        charging=charging,
        ledger=ledger,
        targets=targets,
        alternatives=alternatives,
        table=table,
        types=types,
        memory=memory,
        new_data=new_data,
        restored=restored,
    )
    return opening.open(opening.engine())


@final
@dataclass(frozen=True)
class TableOpening:
    """The arguments of `tc.open`, checked. The steps are apart: a source is opened, and then a ledger with it.

    Between them what will be asked can be checked, so that a mistake makes no ledger. What a ledger was made for
    is not read again if `made` says it.
    """

    source: object = field(repr=False)
    unit: str | Row | None = None
    budget: Budget | None = None
    hits: int | None = None
    query_epsilon: float | None = None
    meter: str = "auto"
    charging: str | None = None
    ledger: str | os.PathLike[str] | None = None
    targets: Sequence[Target] | Target | None = None
    alternatives: Sequence[Target] | None = None
    table: str | None = None
    types: Mapping[str, str] | None = None
    memory: str | None = None
    new_data: bool = False
    restored: tuple[int, str] | None = None
    made: Terms | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, by name; take what was left out from the ledger."""
        if self.budget is not None:
            check_budget(self.budget)
        if self.query_epsilon is not None:
            object.__setattr__(self, "query_epsilon", checks.query_epsilon(self.query_epsilon))
        if self.charging is not None:
            checks.choice(self.charging, "charging", ("shared", "individual"))
        checks.choice(self.meter, "meter", ("auto", *METERS))
        checks.flag(self.new_data, "new_data")
        if self.unit is not None and not isinstance(self.unit, str | Row):
            raise InvalidParameter("unit", self.unit, _UNIT)
        if self.types is not None and not isinstance(self.types, Mapping):
            raise InvalidParameter("types", self.types, "a dictionary from columns to what they are")
        for pair in cast("Mapping[object, object]", self.types or {}).items():
            if odd := [word for word in pair if not isinstance(word, str)]:
                expected = "texts: names of columns, and what they are, such as 'number'"
                raise InvalidParameter("types", odd[0], expected)
        if self.ledger is None and isinstance(self.source, str | os.PathLike):
            object.__setattr__(self, "ledger", new_ledger_place(self.source))
        for name, value in self._left_out(file_of(self._place)).items():
            object.__setattr__(self, name, value)

    def _left_out(self, path: Path | None) -> dict[str, object]:
        """Return what was not given, as the ledger has it.

        Raises:
            InvalidParameter: if there is no ledger yet, and nothing says whose privacy is protected, or how well.
            NotAllowed: if it is not the ledger of a table.
        """
        missing = [name for name in ("unit", "budget", "charging") if getattr(self, name) is None]
        made = self._made() if missing else None
        if made is None or path is None:
            path_like = isinstance(self.source, str | os.PathLike)
            there = not path_like or os.path.exists(str(self.source))  # noqa: PTH110 - never raises
            if not there and not has_magic(str(self.source)):
                raise InvalidParameter("source", self.source, "a file or folder that exists, or a pattern")
            why = "in memory" if path is None else f"{path}, which is not there yet"
            for name, expected in (("unit", _UNIT), ("budget", "tc.Budget(epsilon, delta)")):
                if name in missing:
                    raise InvalidParameter(name, None, f"given for a ledger {why}: {expected}")
            return {"charging": "shared"} if missing else {}
        if made.unit.kind == "words":
            sentence = f"the ledger {path} is not of a table: choose another with "
            raise NotAllowed(sentence, _OTHER_LEDGER)
        known = {
            "unit": made.unit.name if made.unit.kind == "column" else ROW,
            "budget": Budget(made.epsilon, made.delta),
            "charging": made.charging,
        }
        return {"made": made, **{name: known[name] for name in missing}}

    @property
    def individual(self) -> bool:
        """Return whether each unit has a budget of its own."""
        return self.charging == "individual"

    @property
    def exists(self) -> bool:
        """Return whether there is a ledger already."""
        path = file_of(self._place)
        return self.made is not None or (path is not None and path.exists())

    @property
    def appended(self) -> list[str]:
        """Return the paths of the files that were appended to the table, in order."""
        return self._snapshots().appended(1)

    def engine(self) -> Engine:
        """Open the source; whoever calls this closes it, or opens the table with it."""
        from targetcharge.engines.duckdb import open_duckdb  # noqa: PLC0415 - only who opens a table waits for it

        snapshots = self._snapshots()
        files = snapshots.files if self.individual or not self.new_data else None
        return open_duckdb(
            self.source,
            self._unit_column,
            table=self.table,
            types=snapshots.types,
            memory=self.memory,
            snapshots=files,
        )

    def rehearse(self, engine: Engine) -> Table:
        """Return the table with a ledger in memory, to check and preview questions; it need not be closed.

        Raises:
            NotAllowed: if there is a ledger, and it was made for other terms.
        """
        path, made = file_of(self._place), self._made()
        declared = self._declaration(engine, made).chosen(made, file_of(self._place))
        ledger, snapshots = open_ledger(MEMORY, declared, None, None), Snapshots(None)
        if path is not None and made is not None:
            made.check(declared.terms(ledger.meters), path)
        numbers = self._numbers(engine, ledger, snapshots, None)
        session = Session.over(numbers, ledger, declared.alternatives)
        return Table(session, numbers, declared.unit, checks.query_epsilon(declared.query_epsilon or 0.0))

    def open(self, engine: Engine, *, grown: bool = False) -> Table:
        """Open the ledger, and the table with it; the engine is closed if that fails.

        Args:
            engine: the source.
            grown: whether files that were appended before are appended again; their paths are noted.
        """
        ledger: Ledger | None = None
        session: Session | None = None
        try:
            made, snapshots = self._made(), self._snapshots()
            if file_of(self._place) is None:
                warn_of_large(self._budget)
            declared = self._declaration(engine, made).chosen(made, file_of(self._place))
            ledger = open_ledger(self._place, declared, None, self.restored, made)
            beside = file_of(self._place)
            checkpoints = None if beside is None else Checkpoints(beside, snapshots.key)
            numbers = self._numbers(engine, ledger, snapshots, checkpoints)
            session = Session.over(numbers, ledger, declared.alternatives)
            curated(partial(snapshots.check, engine, session.transcript, new_data=self.new_data))
            snapshots.warn()
            appended = snapshots.appended(1)
            warn_of_others(self.source, appended, ledger, beside, self._budget, new=made is None)
            if not isinstance(self.source, str | os.PathLike):
                warn_of_frame(engine, ledger, forgotten=self.ledger is None)
            if isinstance(numbers, UnitMeters) and not snapshots.ahead(engine):  # else it must be appended first
                curated(partial(session.up_to_date, numbers.settle))
            if grown and snapshots.appended(engine.snapshot):
                with session.exclusive():
                    snapshots.append_again(engine)
            return Table(session, numbers, declared.unit, checks.query_epsilon(declared.query_epsilon or 0.0))
        except BaseException:
            try:
                if session is not None:
                    session.close()
                elif ledger is not None:
                    ledger.close()
            finally:
                engine.close()
            raise

    def _made(self) -> Terms | None:
        """Return what the ledger was made for; None if there is none yet."""
        path = file_of(self._place)
        return terms_at(path) if self.made is None and path is not None and path.exists() else self.made

    @property
    def _place(self) -> str | os.PathLike[str]:
        return MEMORY if self.ledger is None else self.ledger

    def _snapshots(self) -> Snapshots:
        anew = self.new_data and not self.individual
        snapshots = Snapshots(file_of(self._place), individual=self.individual, anew=anew)
        snapshots.declare(self.types or {}, self._unit_column, new_data=self.new_data)
        return snapshots

    @property
    def _budget(self) -> Budget:
        assert self.budget is not None  # noqa: S101 - it was given, or is the ledger's
        return self.budget

    @property
    def _unit_column(self) -> str | None:
        """Return the column whose values tell units apart; None if every row is one."""
        return self.unit if isinstance(self.unit, str) else None

    def _declaration(self, engine: Engine, made: Terms | None) -> Declaration:
        path, unit = file_of(self._place), Unit("row")
        if made is not None and path is not None:  # its meter may not fit another charging
            made.check(replace(made, charging=self.charging or made.charging), path)
        if self._unit_column is not None:
            unit = Unit("column", column_of(self._unit_column, engine.schema, "unit").name)
        meter = self._meter(made)
        given = self._budget, self.query_epsilon, meter, self._targets(made, meter), self.alternatives
        return Declaration.of(*given, 0.0, unit, individual=self.individual, hits=self.hits, counts=True)

    def _targets(self, made: Terms | None, meter: str) -> Sequence[Target] | Target | None:
        """Return the targets that were given, or else those that the ledger was made for."""
        if made is None or self.targets is not None or self.alternatives is not None or meter == "sparse":
            return self.targets
        known = [target for target in map(priced_like, made.targets) if target is not None]
        return known if known and made.noise != "gumbel" and len(known) == len(made.targets) else None

    def _meter(self, made: Terms | None) -> str:
        """Return the meter that was asked for, or else that of the ledger, or the best for a new one."""
        if self.meter != "auto":
            return self.meter
        if made is not None:
            return made.meter
        if self.individual or self.targets is not None or self.alternatives is not None or self._buys_many:
            return "exact"
        return "sparse"

    @property
    def _buys_many(self) -> bool:
        """Return whether so many hits are wanted, or bought, that a sparse meter would take long to count them."""
        if not self._budget.delta:
            return False  # only a sparse meter covers any
        if self.hits is not None:
            return checks.hits(self.hits) > _MOST_SPARSE
        return self.query_epsilon is not None and gumbel_hits(self.query_epsilon, self._budget) > _MOST_COUNTED

    def _numbers(
        self, engine: Engine, ledger: Ledger, snapshots: Snapshots, checkpoints: Checkpoints | None
    ) -> SharedNumbers | UnitMeters:
        if self.individual:
            return UnitMeters(engine, snapshots, ledger, checkpoints)
        return SharedNumbers(engine, snapshots)


def ledger_place(source: object) -> str | Path:
    """Return where the ledger of a source is kept if the owner does not say."""
    if not isinstance(source, str | os.PathLike):
        return MEMORY
    path = Path(os.fsdecode(source))
    if has_magic(str(path)) and not path.exists():
        raise InvalidParameter("ledger", None, "given: there is no place beside a pattern")
    real = path.resolve()
    if real != path.absolute() or not path.name:  # another name of the same file has the same ledger
        path = real
    if not path.name:
        raise InvalidParameter("ledger", None, "given: there is no place beside the root")
    return path.with_name(path.name + _ENDING)


def new_ledger_place(source: object) -> str | Path:
    """Return where the ledger of a source is kept, or is to be made, if the owner does not say.

    Raises:
        InvalidParameter: if there is none yet, and a folder that the source is in or a file in it has one: they
            may hold the same people, whose budgets would add up. That files exist is public.
    """
    place = ledger_place(source)
    if not isinstance(place, Path) or place.exists():
        return place
    path = place.with_name(place.name.removesuffix(_ENDING)).resolve()
    others = [folder.with_name(folder.name + _ENDING) for folder in path.parents if folder.name]
    others += sorted(path.rglob(f"*{_ENDING}")) if path.is_dir() else []
    for other in others:
        if other.is_file():
            table = other.with_name(other.name.removesuffix(_ENDING))
            whole, part = (table, path) if table in path.parents else (path, table)
            expected = (
                f"given: {part} is part of {whole}, and {other} keeps the budget of {table}. A second ledger would"
                " give the same people a second budget"
            )
            raise InvalidParameter("ledger", None, expected)
    return place
