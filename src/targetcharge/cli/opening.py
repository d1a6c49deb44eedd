"""Opening a table from the command line: what is left out comes from the ledger, if there is one.

>>> types_of(["age=integer", "a=b=date"])
{'age': 'integer', 'a=b': 'date'}
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import targetcharge as tc
from targetcharge.cli.errors import Mistake
from targetcharge.ledger.sqlite import inspect
from targetcharge.sessions.opening import MEMORY
from targetcharge.tables.opening import TableOpening, new_ledger_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.cli.options import TableOptions

_OF_NEW: Final[dict[str, Any]] = {"query_epsilon": 0.1, "meter": "exact", "charging": "shared"}
"""What a new ledger is made for if nobody says otherwise."""

_NEEDED: Final = {"unit": "--unit COLUMN (or --rows)", "epsilon": "--epsilon", "delta": "--delta"}

_Checked = TypeVar("_Checked")


def opening_of(source: str, options: TableOptions) -> TableOpening:
    """Return how to open a table: as the options say, and where they are silent as its ledger does."""
    ledger = str(new_ledger_place(source)) if options.ledger is None else options.ledger
    if ledger == MEMORY:
        raise tc.InvalidParameter("--ledger", ledger, "a file: else every command would have a fresh budget")
    if Path(ledger).is_dir():
        raise tc.InvalidParameter("--ledger", ledger, "the path of a file, and this is a folder")
    if options.rows and options.unit is not None:
        raise Mistake("--rows", "not together with --unit: units are rows, or the values of a column")
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
    return TableOpening(
        source,
        known.pop("unit"),
        tc.Budget(known.pop("epsilon"), known.pop("delta")),
        **known,
        ledger=ledger,
        table=options.table,
        types=types_of(options.types),
        memory=options.memory,
        new_data=options.new_data,
    )


def is_first(opening: TableOpening) -> bool:
    """Return whether there is no ledger yet."""
    return not Path(str(opening.ledger)).exists()


@contextmanager
def rehearsed(opening: TableOpening, check: Callable[[tc.Table], _Checked]) -> Iterator[tuple[tc.Table, _Checked]]:
    """Open a table for previews, without its ledger, and check what would be asked. Nothing is made."""
    engine = opening.engine()
    try:
        table = opening.rehearse(engine)
        yield table, check(table)
    finally:
        engine.close()


@contextmanager
def opened(opening: TableOpening, check: Callable[[tc.Table], _Checked]) -> Iterator[tuple[tc.Table, _Checked]]:
    """Open a table once what will be asked was checked: a mistake must not make a ledger."""
    engine = opening.engine()
    try:
        checked = check(opening.rehearse(engine))
    except BaseException:
        engine.close()
        raise
    with opening.open(engine) as table:
        yield table, checked


def types_of(given: list[str] | None) -> dict[str, str]:
    """Return the kinds of columns."""
    types: dict[str, str] = {}
    for text in given or []:
        column, equals, kind = text.rpartition("=")
        if not equals or not column:
            raise tc.InvalidParameter("--type", text, "COLUMN=KIND, such as age=integer")
        types[column] = kind
    return types


def _given(options: TableOptions) -> dict[str, Any]:
    names = ("epsilon", "delta", "query_epsilon", "meter", "charging")
    given = {"unit": tc.ROW if options.rows else options.unit, **{name: getattr(options, name) for name in names}}
    plain = {name: value.value if isinstance(value, StrEnum) else value for name, value in given.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _of_ledger(ledger: str) -> dict[str, Any]:
    """Return what a ledger was made for; without a unit if that is not one of a table."""
    terms = inspect(Path(ledger)).terms
    units: dict[str, dict[str, Any]] = {"column": {"unit": terms.unit.name}, "row": {"unit": tc.ROW}, "words": {}}
    names = ("epsilon", "delta", "query_epsilon", "meter", "charging")
    return {**units[terms.unit.kind], **{name: getattr(terms, name) for name in names}}
