"""Other budgets for the same data: who opens a table with a new one is warned, by name, that they add up.

Tables in files are known by their paths, from the registry of ledgers. Frames have none: they are known by a keyed
hash, in the memory of this process only.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Final

from targetcharge.errors import BudgetWarning, Setting, TargetChargeError, warn_owner
from targetcharge.ledger.budgets import TableBudget
from targetcharge.ledger.registry import Registration, Registry
from targetcharge.sessions.heart import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from targetcharge.accounting.budget import Budget
    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Ledger

_MOST_NAMED: Final = 3

_TELLING_ROWS: Final = 10_000
"""So many rows of a frame, and how many there are, tell whether it was opened before, in no time."""

_KEY: Final = secrets.token_bytes(32)
_ledgers_of_frames: Final[dict[object, set[str]]] = {}
"""The ids of ledgers that were opened in this process, by the keyed hash of their frame."""


def warn_of_others(
    source: object, appended: Iterable[str], ledger: Ledger, path: Path | None, budget: Budget, *, new: bool
) -> None:
    """Register the ledger of a table, and warn of others for the same files. It makes no opening fail.

    Args:
        source: what was opened.
        appended: the paths of files that were appended to it before.
        ledger: with which; one in memory is not registered.
        path: of the ledger; None if it is in memory.
        budget: that it keeps.
        new: whether it was made just now.

    Warns:
        BudgetWarning: if there are others, or that cannot be found out.
    """
    registry = Registry()
    try:
        registration = _registration(source, ledger.id, path, budget)
        registration = replace(registration, places=(*registration.places, *appended))
        others = registry.others(registration) if path is None else registry.add(registration)
    except OSError as error:
        if new:
            unknown = "whether this table has another ledger, with a budget of its own, is not known"
            warn_owner(f"the registry {registry.path} cannot be read or written ({error.strerror}): {unknown}")
        return
    if others:
        try:
            warn_owner(*_sentence(registration, list(map(TableBudget.of, others))))
        except BudgetWarning:  # an error where the owner wants that: then it is one the next time, too
            with suppress(OSError):
                registry.forget([registration.ledger])
            raise


def warn_of_frame(engine: Engine, ledger: Ledger, *, forgotten: bool) -> None:
    """Warn of other budgets for the same frame in this process, or that this one is forgotten with the process.

    Args:
        engine: that has the frame.
        ledger: with which it was opened.
        forgotten: whether the ledger is in memory, and nobody said that it may be.

    Warns:
        BudgetWarning: if there are others, or else if it is forgotten.
    """
    digest = attempt(partial(engine.fingerprint, _KEY, 1, _TELLING_ROWS), public=(TargetChargeError,))
    if isinstance(digest, Failure):
        return
    ledgers = _ledgers_of_frames.setdefault(digest, set())
    if ledgers - {ledger.id} and ledger.id not in ledgers:
        warn_owner(
            f"this is budget {len(ledgers) + 1} for the same data in this process: what is published on all of"
            " them adds up for the same people. Go on with the table that is open, or keep one budget in a file:"
            " ledger='visits.db'"
        )
    elif forgotten:
        warn_owner(
            "this budget is kept in memory and forgotten when the process ends: to run it again spends a fresh one"
            " on the same people. ledger='visits.db' keeps it in a file; ledger=':memory:' says that this is meant"
        )
    ledgers.add(ledger.id)


def _sentence(registration: Registration, others: Sequence[TableBudget]) -> tuple[object, ...]:
    """Return which other ledgers a table has, and what to do."""
    named = "; ".join(_in_words(other, registration.table) for other in others[:_MOST_NAMED])
    more = f"; and {len(others) - _MOST_NAMED:,} more" if len(others) > _MOST_NAMED else ""
    adds = "What is published on all of them adds up for the same people"
    has = f"{registration.table} has another budget: {named}{more}. {adds}. "
    there = next((other for other in others if other.hits is not None), None)
    if there is not None:
        return f"{has}To go on with it instead: ", Setting("ledger", str(there.ledger))
    return (f"{has}Only if its table is no more may it be forgotten: tct budgets --forget {others[0].ledger}",)


def _in_words(other: TableBudget, table: str) -> str:
    """Return what is known of a budget."""
    since, used = other.times
    about = "" if other.table == table else f" of {other.table}"
    last = f", last used {used}" if used else ""
    return f"{other.guarantee}: {other.standing} (since {since}{last}), in {other.ledger}{about}"


def _registration(source: object, ledger: str, path: Path | None, budget: Budget) -> Registration:
    """Return what the registry keeps of a ledger and its table."""
    place = "" if path is None else str(path.resolve())
    return Registration(ledger, place, *_whereabouts(source), budget.epsilon, budget.delta, time.time())


def _whereabouts(given: object) -> tuple[str, tuple[str, ...], str]:
    """Return the path of a table, those of its files if it is a pattern, and which file it is if it is one."""
    if not isinstance(given, str | os.PathLike):
        return "a data frame", (), ""
    source = Path(os.fsdecode(given))
    if has_magic(str(source)) and not source.exists():
        files = sorted(glob(str(source), recursive=True))  # noqa: PTH207 - absolute patterns too
        return str(source.absolute()), tuple(str(Path(file).resolve()) for file in files), ""
    path = source.resolve()
    stat = path.stat()
    file = f"{stat.st_dev}:{stat.st_ino}:{stat.st_mtime_ns}" if path.is_file() else ""
    return str(path), (str(path),), file
