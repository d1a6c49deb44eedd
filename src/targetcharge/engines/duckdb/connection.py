"""A connection: a database in memory, with a private folder to spill to, closed when nobody holds it any more."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

import duckdb
import numpy as np

from targetcharge.engines.duckdb.types import listed
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.tree import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

_AMOUNT: Final = re.compile(r"[0-9]+(\.[0-9]+)? ?[KMGT]i?B", re.IGNORECASE)
_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}
_INTERRUPTED: Final = "Query interrupted"

Parameters = list[object] | dict[str, object]
"""By their places in a query, or by their names."""

Result = TypeVar("Result")

_open: Final[weakref.WeakSet[Connection]] = weakref.WeakSet()


def _keep_for_ever() -> None:
    """In the child of a fork: DuckDB's threads are gone, and taking its connection apart there would crash."""
    for connection in list(_open):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection.raw))


os.register_at_fork(after_in_child=_keep_for_ever)


@final
class Connection:
    """A connection to a database of its own.

    Attributes:
        raw: DuckDB's own.
        spill: the folder that it may write to when memory is short; private, removed with it.
        failed: whether DuckDB has failed in a way after which it answers nothing any more.
    """

    def __init__(self, memory: str | None, within: Path | None = None) -> None:
        """Connect, with so much memory at most; the private folder is made within another."""
        self.raw = duckdb.connect(":memory:", config=_CONFIG)
        _open.add(self)
        self.failed = False
        self.spill = Path(tempfile.mkdtemp(prefix="targetcharge-", dir=within))
        self._finalizer = weakref.finalize(self, _close, self.raw, self.spill, os.getpid())
        try:
            self._limit(memory)
        except BaseException:
            self.close()
            raise

    def _limit(self, memory: str | None) -> None:
        self.raw.execute(f"SET temp_directory = {text_literal(str(self.spill))}")
        with contextlib.suppress(duckdb.Error):  # a DuckDB that knows no zones has this one
            self.raw.execute("SET TimeZone = 'UTC'")
        if memory is None:
            return
        refused = InvalidParameter("memory", memory, "an amount of memory, such as '4GB'")
        if not _AMOUNT.fullmatch(str(memory)):
            raise refused
        try:
            self.raw.execute(f"SET memory_limit = {text_literal(str(memory))}")
        except duckdb.Error:
            raise refused from None

    def lock(self, paths: Iterable[str]) -> None:
        """From here on it reaches these files and its folder, and cannot be told otherwise."""
        allowed = list(paths)
        if allowed:
            self.raw.execute(f"SET allowed_paths = {listed(allowed)}")
        self.raw.execute("SET enable_external_access = false")
        self.raw.execute("SET lock_configuration = true")

    def rows(self, sql: str, parameters: Parameters | None = None) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._run(lambda: self.raw.execute(sql, parameters).fetchall())

    def integer(self, sql: str) -> int:
        """Return the only value of a query, an integer."""
        return int(self.rows(sql)[0][0])

    def arrays(self, sql: str, parameters: Parameters | None = None) -> dict[str, NDArray[np.int64]]:
        """Return the columns of a query, which are integers of 64 bits or less and never NULL."""
        columns = self._run(lambda: self.raw.execute(sql, parameters).fetchnumpy())
        for column in columns.values():
            # DuckDB gives wider integers as floating point, and NULL as a mask that is easily lost.
            if np.ma.isMaskedArray(column) or np.asarray(column).dtype.kind not in "iu":
                msg = "a query did not give integers"
                raise EngineError(msg)
        return {name: np.asarray(column).astype(np.int64, copy=False) for name, column in columns.items()}

    def _run(self, call: Callable[[], Result]) -> Result:
        try:
            return _interruptible(call)
        except (duckdb.FatalException, duckdb.InternalException):
            self.failed = True
            raise

    def close(self) -> None:
        """Disconnect and remove what was spilled; a child of a fork has neither."""
        _open.discard(self)
        self._finalizer()


def _close(raw: duckdb.DuckDBPyConnection, spill: Path, process: int) -> None:
    if os.getpid() == process:
        raw.close()
        shutil.rmtree(spill, ignore_errors=True)


def _interruptible(call: Callable[[], Result]) -> Result:
    """Return what a call returns; raise KeyboardInterrupt, which DuckDB hides, if Ctrl-C came during a query."""
    try:
        return call()
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from None
        raise


def read_as_table(what: str, call: Callable[[], Result]) -> Result:
    """Return what a call returns.

    Raises:
        EngineError: if DuckDB fails; what it says may quote the table, and is neither its text nor its context.
    """
    try:
        return _interruptible(call)
    except duckdb.Error as error:
        problem = type(error).__name__
    msg = f"{what} cannot be read as a table: DuckDB says {problem}"
    raise EngineError(msg)
