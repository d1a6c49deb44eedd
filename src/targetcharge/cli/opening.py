"""Opening a table from the command line: what is left out comes from the ledger, if there is one."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import targetcharge as tc
from targetcharge.cli.errors import Mistake
from targetcharge.ledger.sqlite import inspect
from targetcharge.sessions.opening import MEMORY
from targetcharge.tables.opening import new_ledger_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.cli.options import TableOptions
    from targetcharge.tables.opening import Row

_OF_NEW: Final[dict[str, Any]] = {"query_epsilon": 0.1, "meter": "exact", "charging": "shared"}
"""What a new ledger is made for if nobody says otherwise."""

_NEEDED: Final = {"unit": "--unit COLUMN (or --rows)", "epsilon": "--epsilon", "delta": "--delta"}

Checked = TypeVar("Checked")


@final
@dataclass(frozen=True)
class Opening:
    """A table that can be opened: all that it takes is known.

    Attributes:
        source: the table.
        ledger: the file that keeps the budget.
        unit: whose privacy is protected.
        budget: of everything that will ever be published.
        query_epsilon: of one computation.
        meter: "exact" or "renyi".
        charging: "shared" or "individual".
        options: all the others.
    """

    source: str
    ledger: str
    unit: str | Row
    budget: tc.Budget
    query_epsilon: float
    meter: str
    charging: str
    options: TableOptions

    @classmethod
    def of(cls, source: str, options: TableOptions) -> Opening:
        """Return how to open a table: as the options say, and where they are silent as its ledger does.

        Raises:
            Mistake: if neither says what is needed.
        """
        ledger = _place(source, options)
        made = Path(ledger).exists()
        known = {**(_of_ledger(ledger) if made else _OF_NEW), **_given(options)}
        missing = [option for name, option in _NEEDED.items() if name not in known]
        if missing and made:
            msg = f"the ledger {ledger} is not of a table: choose another with --ledger"
            raise tc.NotAllowed(msg)
        if missing:
            if not Path(source).exists() and not has_magic(source):
                raise tc.InvalidParameter("TABLE", source, "a file or folder that exists, or a pattern")
            problem = f"missing, since there is no ledger {ledger} yet that would know"
            raise Mistake(", ".join(missing), f"{problem}; tct plan shows what a budget buys")
        budget = tc.Budget(known["epsilon"], known["delta"])
        rest = known["query_epsilon"], known["meter"], known["charging"]
        return cls(source, ledger, known["unit"], budget, *rest, options)

    def check_terms(self) -> None:
        """Refuse terms that the ledger was not made for, without opening it.

        Raises:
            NotAllowed: if there is a ledger of another budget, ε, meter or charging.
        """
        if self.first:
            return
        mine = {**vars(self), "epsilon": self.budget.epsilon, "delta": self.budget.delta}
        made = {name: value for name, value in _of_ledger(self.ledger).items() if name != "unit"}
        others = [
            f"{name} was {value!r} and is {mine[name]!r}" for name, value in made.items() if mine[name] != value
        ]
        if others:
            msg = f"the ledger {self.ledger} was made for other terms: {'; '.join(others)}"
            raise tc.NotAllowed(msg)

    @property
    def first(self) -> bool:
        """Return whether there is no ledger yet."""
        return not Path(self.ledger).exists()

    def open(self, *, trial: bool = False) -> tc.Table:
        """Open the table; as a trial without its ledger, to look and not to ask."""
        options = self.options
        return tc.open(
            self.source,
            self.unit,
            self.budget,
            self.query_epsilon,
            ledger=MEMORY if trial else self.ledger,
            meter=self.meter,
            charging=self.charging,
            table=options.table,
            types=types_of(options.types),
            memory=options.memory,
            new_data=options.new_data,
        )


@contextmanager
def opened(opening: Opening, check: Callable[[tc.Table], Checked]) -> Iterator[tuple[tc.Table, Checked]]:
    """Open a table and check what will be asked. Before there is a ledger, a mistake must not make one."""
    rehearse(opening, check)
    with opening.open() as table:
        yield table, check(table)


def rehearse(opening: Opening, check: Callable[[tc.Table], object]) -> None:
    """Check what will be asked, if there is no ledger yet. Nothing is made."""
    if opening.first:
        with opening.open(trial=True) as table:
            check(table)


def types_of(given: list[str] | None) -> dict[str, str]:
    """Return the kinds of columns.

    >>> types_of(["age=integer", "a=b=date"])
    {'age': 'integer', 'a=b': 'date'}
    """
    found: dict[str, str] = {}
    for text in given or []:
        column, equals, kind = text.rpartition("=")
        if not equals or not column:
            raise tc.InvalidParameter("--type", text, "COLUMN=KIND, such as age=integer")
        found[column] = kind
    return found


def _place(source: str, options: TableOptions) -> str:
    ledger = options.ledger if options.ledger is not None else str(new_ledger_place(source))
    if ledger == MEMORY:
        raise tc.InvalidParameter("--ledger", ledger, "a file: else every command would have a fresh budget")
    if Path(ledger).is_dir():
        raise tc.InvalidParameter("--ledger", ledger, "the path of a file, and this is a folder")
    return ledger


def _given(options: TableOptions) -> dict[str, Any]:
    if options.rows and options.unit is not None:
        raise Mistake("--rows", "not together with --unit: units are rows, or the values of a column")
    found = {
        "unit": tc.ROW if options.rows else options.unit,
        "epsilon": options.epsilon,
        "delta": options.delta,
        "query_epsilon": options.query_epsilon,
        "meter": None if options.meter is None else options.meter.value,
        "charging": None if options.charging is None else options.charging.value,
    }
    return {name: value for name, value in found.items() if value is not None}


def _of_ledger(ledger: str) -> dict[str, Any]:
    """Return what a ledger was made for; without a unit if that is not one of a table."""
    terms = inspect(Path(ledger)).terms
    units: dict[str, dict[str, Any]] = {"column": {"unit": terms.unit.name}, "row": {"unit": tc.ROW}, "words": {}}
    return {
        **units[terms.unit.kind],
        "epsilon": terms.epsilon,
        "delta": terms.delta,
        "query_epsilon": terms.query_epsilon,
        "meter": terms.meter,
        "charging": terms.charging,
    }
