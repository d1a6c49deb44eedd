"""The registry: which tables have which ledgers, in the user's state folder. Who makes a second one is warned.

It outlives the ledgers: one that was deleted is still in it, with its budget, until its owner says that it may be
forgotten. Nothing from the data is in it: paths, ids of ledgers, budgets and times. Each fact is a line that is
appended under a lock, so processes that write at the same moment lose nothing; the last line about a ledger holds.

>>> from tempfile import TemporaryDirectory
>>> first = Registration("1a", "/x/v.db", "/x/v.csv", ("/x/v.csv",), file="", epsilon=1.0, delta=1e-6, since=0.0)
>>> with TemporaryDirectory() as folder:
...     registry = Registry(Path(folder, "ledgers"))
...     registry.add(first), registry.add(replace(first, path="/x/moved.db"))
...     [other.path for other in registry.add(replace(first, ledger="2b", places=("/x",)))]
...     registry.forget(["1a"])
...     [known.ledger for known in registry.known()]
([], [])
['/x/moved.db']
['2b']
"""

from __future__ import annotations

import errno
import json
import os
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.accounting.budget import Budget
from targetcharge.ledger.files import state_folder
from targetcharge.ledger.sqlite.locks import in_locked_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_KINDS: Final = (str, str, str, tuple, str, float, float, float)
"""Of what is known of a ledger, in order."""

_LATEST: Final = 1e11
"""A time that no ledger was made at, in seconds."""


@final
@dataclass(frozen=True)
class Registration:
    """What the registry knows of a ledger.

    Attributes:
        ledger: its id: a ledger that was moved keeps it.
        path: of its file.
        table: what it is about, for people: the path of a file or folder, a pattern, or what is no file.
        places: the paths of the file or folder, or of the files that a pattern matched; none of a data frame.
        file: which file it is and when that was changed, by which it is known under another name; empty if it is
            not one file.
        epsilon: of the budget.
        delta: of the budget.
        since: when it was registered, in seconds: at its making, unless an earlier version made it.
    """

    ledger: str
    path: str
    table: str
    places: tuple[str, ...]
    file: str
    epsilon: float
    delta: float
    since: float

    def shares_files_with(self, other: Registration) -> bool:
        """Return whether both are about the same file, or one is about a folder with a file of the other."""
        if self.file and self.file == other.file:
            return True
        return _reaches(self.places, other.places) or _reaches(other.places, self.places)

    def is_at(self, path: str) -> bool:
        """Return whether the ledger or its table is at a path, or in a folder there."""
        return _reaches((path,), (self.path, *self.places)) or self.table == path

    def after(self, before: Registration) -> Registration:
        """Return what is known of a ledger once it is opened again: it may have been moved, or copied."""
        path = before.path if os.path.exists(before.path) else self.path  # noqa: PTH110 - never raises
        places = tuple(dict.fromkeys((*before.places, *self.places)))
        return replace(self, path=path, places=places, since=before.since)

    @classmethod
    def of(cls, body: dict[str, Any]) -> Registration:
        """Return what a line holds.

        Raises:
            KeyError, TypeError, ValueError: if it is none of ours.
        """
        known = cls(**{**{part.name: body[part.name] for part in fields(cls)}, "places": tuple(body["places"])})
        kinds = [*map(type, vars(known).values()), *map(type, known.places)]
        if kinds != [*_KINDS, *[str] * len(known.places)] or not 0 <= known.since < _LATEST:
            raise TypeError
        Budget(known.epsilon, known.delta)
        return known


def _reaches(folders: Collection[str], paths: Collection[str]) -> bool:
    """Return whether one of some paths is one of some folders, or in it."""
    known = set(folders)
    return any(path in known or not known.isdisjoint(map(str, PurePath(path).parents)) for path in paths)


@final
class Registry:
    """The file of the registry; any call may raise OSError."""

    def __init__(self, path: Path | None = None) -> None:
        """Read and write the registry of the user, or another file."""
        self.path = path or state_folder() / "ledgers"

    def known(self) -> list[Registration]:
        """Return all that is known, in the order in which it was registered; nothing if there is no registry."""
        try:
            return list(in_locked_file(self.path, _read, shared=True).values())
        except FileNotFoundError:
            return []

    def add(self, registration: Registration) -> list[Registration]:
        """Register a ledger; return the others of the same table, and only of what was not known before."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        return in_locked_file(self.path, partial(_add, registration))

    def others(self, registration: Registration) -> list[Registration]:
        """Return the ledgers of the same table, without registering this one."""
        return [known for known in self.known() if known.shares_files_with(registration)]

    def forget(self, ledgers: Collection[str]) -> None:
        """Forget the ledgers with these ids."""
        in_locked_file(self.path, partial(_append, lines=[{"forgotten": ledger} for ledger in ledgers]))


def _add(registration: Registration, handle: int) -> list[Registration]:
    known, fresh = _read(handle), registration
    before = known.pop(registration.ledger, None)
    if before is not None:
        registration = registration.after(before)
        places = tuple(place for place in registration.places if place not in before.places)
        fresh = replace(registration, places=places, file="")
    if registration != before:
        _append(handle, [asdict(registration)])
    return [other for other in known.values() if other.shares_files_with(fresh)]


def _append(handle: int, lines: Sequence[Mapping[str, object]]) -> None:
    """Append lines, each after a line break: should a full disk have cut one, it spoils no other."""
    body = "".join("\n" + json.dumps(line) for line in lines).encode("ascii")
    if os.pwrite(handle, body, os.fstat(handle).st_size) < len(body):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _read(handle: int) -> dict[str, Registration]:
    """Return what is known, by the ids of ledgers. What cannot be understood is passed over."""
    known: dict[str, Registration] = {}
    for line in os.pread(handle, os.fstat(handle).st_size, 0).splitlines():
        try:
            body = json.loads(line)
            if "forgotten" in body:
                known.pop(body["forgotten"], None)
            else:
                registration = Registration.of(body)
                known[registration.ledger] = registration
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return known
