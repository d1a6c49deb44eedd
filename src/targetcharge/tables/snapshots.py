"""Snapshots: which data a ledger was used with, and how it grew.

The table as it was first opened is snapshot 1, and everything that is appended makes the next. A keyed hash of
each is kept beside the ledger, readable by the owner only. It is as secret as the data.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, final

from targetcharge.errors import (
    ComputationFailed,
    EngineError,
    InvalidParameter,
    LedgerError,
    NotAllowed,
    Setting,
    TargetChargeError,
    warn_owner,
)
from targetcharge.ledger.files import write_whole
from targetcharge.sessions.heart import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from targetcharge.engines.engine import Engine
    from targetcharge.sessions.reading import Transcript

_ENDING: Final = "-private"
_NEW_DATA: Final = Setting("new_data", value=True)
_VERSION: Final = 5
_FORMER: Final = 2
"""The version whose hashes of frames and of units were made in another way: they are made anew, once."""

_Columns = tuple[dict[str, object], ...]
"""What columns were declared to be, by name: plain data."""


@final
@dataclass(frozen=True)
class _Known:
    """One snapshot.

    Attributes:
        fingerprint: a keyed hash of its data.
        files: its files in the folder that was opened, if it was one.
        units: a keyed hash of who has which id, up to this snapshot; empty if nobody needs ids.
        former: whether both were made when units were told apart otherwise, and the data was not seen since.
        source: the path of what was appended, if that was files.
    """

    fingerprint: str
    files: tuple[str, ...] = ()
    units: str = ""
    former: bool = False
    source: str = ""


@final
@dataclass(frozen=True)
class _Note:
    """What is kept of the data beside a ledger.

    Attributes:
        key: of the hashes.
        gone: how many snapshots there were of data that was replaced.
        known: the snapshots of the data that there is.
        columns: what its columns are; in words if a version before 4 wrote it.
        types: what its owner declared columns to be; None if a version before 5 wrote it, which did not say.
    """

    key: bytes
    gone: int = 0
    known: tuple[_Known, ...] = ()
    columns: _Columns | str = ()
    types: dict[str, str] | None = None

    def text(self) -> str:
        facts = {"version": _VERSION, "key": self.key.hex(), "gone": self.gone, "columns": self.columns}
        facts["types"] = self.types
        return json.dumps({**facts, "snapshots": [asdict(snapshot) for snapshot in self.known]})

    @classmethod
    def of(cls, text: str) -> _Note:
        body = json.loads(text)
        old = body["version"] == _FORMER
        known = tuple(
            _Known(
                kept["fingerprint"],
                tuple(kept["files"]),
                kept["units"],
                bool(kept.get("former", old)),
                str(kept.get("source", "")),
            )
            for kept in body["snapshots"]
        )
        columns = body["columns"] if isinstance(body["columns"], str) else tuple(body["columns"])
        return cls(bytes.fromhex(body["key"]), int(body["gone"]), known, columns, body.get("types"))

    def has_columns(self, engine: Engine) -> bool:
        """Return whether the columns of an engine are declared as they were."""
        if isinstance(self.columns, str):
            return self.columns == _columns_in_words(engine)
        return self.columns == _columns(engine)


@final
class Snapshots:
    """The snapshots of a table."""

    def __init__(self, ledger: Path | None, *, individual: bool = False, anew: bool = False) -> None:
        """Read what is noted beside a ledger; None for one in memory, beside which nothing is.

        Args:
            ledger: its path.
            individual: whether each unit has a budget, which is known by its place in the data.
            anew: whether a note that cannot be read may be made anew.

        Raises:
            LedgerError: if the note cannot be read.
        """
        self._ledger = ledger
        self._path = None if ledger is None else ledger.with_name(ledger.name + _ENDING)
        self._note = _Note(secrets.token_bytes(32))
        self._individual = individual
        self._notice = ""
        self._reread = self._adopted = False
        if self._path is not None and self._path.exists():
            kept = _read(self._path)
            if kept is None and not anew:  # raised here, where what the note holds is not its context
                raise _unusable(self._path)
            self._note = kept or self._note

    @property
    def types(self) -> dict[str, str]:
        """Return what columns are declared to be, once that was said."""
        return self._note.types or {}

    def declare(self, given: Mapping[str, str], unit: str | None, *, new_data: bool) -> None:
        """Take what columns are declared to be: what was declared before, and does not change from call to call.

        Where the owner says that the data has changed, it may be read otherwise from now on: but not the column of
        the units, which would be others, and not where each unit has a budget.

        Raises:
            NotAllowed: if it was declared otherwise.
        """
        kept = self._note.types
        self._note = replace(self._note, types={**(kept or {}), **given})
        self._adopted = kept is None and bool(self._note.known)
        changed = [] if kept is None else [name for name, kind in given.items() if kept.get(name) != kind]
        if kept is None or not changed:
            return
        fixed = self._individual or str(unit).lower() in map(str.lower, changed)
        if new_data and not fixed:
            self._reread = True
            return
        others = "; ".join(f"{name} was {kept.get(name, 'not declared')} and is {given[name]}" for name in changed)
        sentence = f"the ledger {self._ledger} was opened with other types: {others}. Leave them out, or "
        read_anew = ("open it with ", _NEW_DATA, " to read the data otherwise, on the same budget")
        raise NotAllowed(sentence, *(("choose another ledger",) if fixed else read_anew))

    def warn(self) -> None:
        """Warn the owner of what happened to the note since the last warning, if anything did."""
        notice, self._notice = self._notice, ""
        if notice:
            warn_owner(notice)

    @property
    def key(self) -> bytes:
        """Return the key of the hashes: as secret as the data."""
        return self._note.key

    @property
    def files(self) -> list[tuple[str, ...]] | None:
        """Return which files of the folder belong to which snapshot, if that is how the table grows."""
        files = [snapshot.files for snapshot in self._note.known]
        return files if files and all(files) else None

    def ahead(self, engine: Engine) -> bool:
        """Return whether the ledger knows more snapshots than an engine has: they were appended."""
        return len(self._note.known) > engine.snapshot

    def appended(self, after: int) -> list[str]:
        """Return the paths of what was appended after a snapshot, in order, up to what was no file."""
        sources = [snapshot.source for snapshot in self._note.known[after:]]
        return sources[: sources.index("")] if "" in sources else sources

    def number(self, engine: Engine) -> int:
        """Return the number of the snapshot that an engine has now."""
        return self._note.gone + engine.snapshot

    def check(self, engine: Engine, transcript: Transcript, *, new_data: bool) -> None:
        """Refuse to go on with a ledger on other data than before, unless the owner says so.

        Args:
            engine: the table.
            transcript: what was published with the ledger.
            new_data: whether the owner says that the data has changed.

        Raises:
            NotAllowed: if the data is not what it was.
            LedgerError: if the note beside the ledger cannot be written, or is gone though answers were published.
        """
        known, individual = self._note.known, self._individual
        if not known and self._path is not None and transcript.last(1):
            if individual or not new_data:
                raise self._gone()
            # Else what is new would have the number of what was.
            self._note = replace(self._note, gone=max(answer.snapshot for answer in transcript))
        if individual and known and not self._note.has_columns(engine):
            msg = (
                f"the columns are declared otherwise than when the ledger {self._ledger} was last used, so who"
                " contributed to its answers cannot be told: open it with the same types, or choose another ledger"
            )
            raise NotAllowed(msg)
        same = all(self._is(engine, place, kept) for place, kept in enumerate(known[: engine.snapshot], 1))
        if same and self._adopted:
            self._keep(self._note)
        same = same and not self._reread
        if same:
            self._make_anew(engine)
        if same and (engine.snapshot <= len(known) or new_data or not known):
            self._add(engine)
        elif same:
            self._refuse("there are more files than", "the same budget is to cover them too")
        elif individual:
            msg = (
                f"the data is not what it was when the ledger {self._ledger} was last used, and with a budget for"
                " every individual it may only grow: by rows appended, or by further files in a folder. Where rows"
                " are the units, their order counts too. Else choose another ledger"
            )
            raise NotAllowed(msg)
        elif new_data:
            self._keep(replace(self._note, gone=self._note.gone + len(known), known=()))
            self._add(engine)
        else:
            reason = "it grew or was corrected, and the same budget is to cover the new data too"
            self._refuse("the data is not what it was", reason)

    def _gone(self) -> LedgerError:
        lost = f"the private note {self._path} is gone, which says what data the ledger was used with: restore it"
        if self._individual:
            why = ". With a budget for every individual who has paid cannot be told without it:"
            return LedgerError(f"{lost}{why} else choose another ledger, and the budgets add up")
        what = " goes on with the same budget and takes the data for new: whether it is what it was is not checked"
        return LedgerError(f"{lost}. If it is lost, ", _NEW_DATA, what)

    def _refuse(self, problem: str, reason: str) -> NoReturn:
        sentence = f"{problem} when the ledger {self._ledger} was last used. If {reason}, open it with "
        raise NotAllowed(sentence, _NEW_DATA, "; else choose another ledger")

    def append(self, engine: Engine, source: object) -> None:
        """Append rows to an engine and note them; if that fails, nothing was added.

        Raises:
            NotAllowed: if the ledger knows other data as this snapshot.
        """
        engine.check_unchanged()
        engine.append(source)
        try:
            curated(partial(self.grow, engine, source))
        except BaseException:
            engine.retract()
            raise
        self.warn()

    def append_again(self, engine: Engine) -> None:
        """Append what was appended before and is not part of an engine's table yet, where that was files.

        Raises:
            EngineError: if something is not what it was.
        """
        for source in self.appended(engine.snapshot):
            try:
                self.append(engine, source)
            except (InvalidParameter, NotAllowed, EngineError):
                msg = f"{source} was appended to the table, and is gone or not what it was: restore it, or choose"
                again = EngineError(f"{msg} another ledger")
            else:
                continue
            raise again

    def grow(self, engine: Engine, source: object) -> None:
        """Note what was appended to an engine, and from where."""
        if self._path is not None:
            # Another table on the same ledger may have grown meanwhile.
            self._note = _read(self._path) or self._note
        place = engine.snapshot
        if place <= len(self._note.known) and not self._is(engine, place, self._note.known[place - 1]):
            msg = (
                f"the ledger {self._ledger} knows other data as snapshot {self._note.gone + place}: append first"
                " what was appended before"
            )
            raise NotAllowed(msg)
        self._make_anew(engine)
        self._add(engine, path_of(source) if isinstance(source, str | os.PathLike) else "")

    def _is(self, engine: Engine, place: int, known: _Known) -> bool:
        if known.former:  # of frames there is nothing left to compare with
            return not engine.in_files(place) or self._unchanged(engine, place, known)
        same = self._unchanged(engine, place, known)
        return same and (not self._individual or hmac.compare_digest(self._units(engine, place), known.units))

    def _unchanged(self, engine: Engine, place: int, known: _Known) -> bool:
        return hmac.compare_digest(engine.fingerprint(self._note.key, place), known.fingerprint)

    def _make_anew(self, engine: Engine) -> None:
        """Hash by the way that units are told apart now what was hashed by another: once for each snapshot."""
        known = list(self._note.known)
        former = [place for place, kept in enumerate(known[: engine.snapshot], 1) if kept.former]
        for place in former:
            fingerprint, units = engine.fingerprint(self._note.key, place), self._units(engine, place)
            known[place - 1] = replace(known[place - 1], fingerprint=fingerprint, units=units, former=False)
        if former:
            anew = tuple(known)
            changed = any(
                (one.fingerprint, one.units) != (other.fingerprint, other.units)
                for one, other in zip(anew, self._note.known, strict=True)
            )
            self._keep(replace(self._note, known=anew))
            if changed:
                frames = not all(map(engine.in_files, former))
                self._notice = _made_anew(self._ledger, frames=frames)

    def _units(self, engine: Engine, place: int) -> str:
        return engine.digest_of_units(self._note.key, place) if self._individual else ""

    def _add(self, engine: Engine, source: str = "") -> None:
        """Note the snapshots that are not known yet, and where the rows of one came from that was appended."""
        new = range(len(self._note.known) + 1, engine.snapshot + 1)
        if self._path is not None and new:
            key, files = self._note.key, engine.files
            added = [
                _Known(engine.fingerprint(key, place), files[place - 1], self._units(engine, place), source=source)
                for place in new
            ]
            self._keep(replace(self._note, known=(*self._note.known, *added), columns=_columns(engine)))

    def _keep(self, note: _Note) -> None:
        self._note = note
        if self._path is None:
            return
        try:
            write_whole(self._path, note.text().encode())
        except OSError:
            pass
        else:
            return
        raise _unusable(self._path)


def path_of(source: str | os.PathLike[str]) -> str:
    """Return the path of a file, a folder or a pattern as the note has it, wherever it is written."""
    return os.path.abspath(os.fsdecode(source))  # noqa: PTH100 - a pattern is none of pathlib's


def curated(call: Callable[[], object]) -> None:
    """Do something with the data for its owner; what an engine says when it fails may quote it, and is dropped.

    Raises:
        EngineError: if the engine fails; errors of our own are raised as they are.
    """
    done = attempt(call, public=(TargetChargeError,))
    if isinstance(done, Failure):
        error = done.error()
        if isinstance(error, ComputationFailed):
            msg = "the table cannot be read: the engine failed"
            raise EngineError(msg)
        raise error


def _made_anew(ledger: Path | None, *, frames: bool) -> str:
    sentence = (
        f"the ledger {ledger} was written by an earlier version: a unit is now one unit however its id is written,"
        " and the keyed hashes of units and frames were made anew"
    )
    frame = ". A frame could not be compared with the one it was used with: make sure that it is the same"
    return sentence + (frame if frames else "")


def _columns(engine: Engine) -> _Columns:
    """Return what the columns are, as plain data."""
    return tuple({**asdict(column), "kind": str(column.kind)} for _, column in sorted(engine.schema.items()))


def _columns_in_words(engine: Engine) -> str:
    """Return what the columns are as notes before version 4 have it, to compare with those."""
    words = []
    for name, column in sorted(engine.schema.items()):
        exact = (
            column.exact and f"Exact(scale={column.exact.scale}, low={column.exact.low}, high={column.exact.high})"
        )
        words.append(f"{name} {column.kind.value} {exact}")
    return "; ".join(words)


def _read(path: Path) -> _Note | None:
    try:
        return _Note.of(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _unusable(path: Path) -> LedgerError:
    return LedgerError(
        f"the private note {path} cannot be read or written: make its folder writable, or restore it. Where all"
        " units share a budget, ",
        _NEW_DATA,
        " makes a new one",
    )
