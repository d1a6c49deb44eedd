"""Appending: the rows of another source as the next snapshot. If that fails, nothing has changed.

Parquet files that follow Parquet files of the same shape stay where they are, on a new connection. Everything else
is copied. A frame is copied on the table's own connection and never touches the disk; files are read on one of
their own, which reaches them, and handed over in a file in the private folder of the table's.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import duckdb

from targetcharge.engines.duckdb.connecting import Connection, told
from targetcharge.engines.duckdb.describing import describe
from targetcharge.engines.duckdb.files import Files
from targetcharge.engines.duckdb.filling import copy_frame, in_files, sought, view_of
from targetcharge.engines.duckdb.likeness import check_alike
from targetcharge.engines.duckdb.loading import load_files, reached
from targetcharge.engines.duckdb.parquet_files import one_shape, view_parquet
from targetcharge.engines.duckdb.parts import Copy, Parts, Snapshot
from targetcharge.engines.duckdb.quoting import RELATION, text
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.engines.duckdb.frames import Frame
    from targetcharge.engines.duckdb.loading import Loaded

_SMALLER: Final = 2
"""A copy with at most so many times the rows that come after it is copied again with them: so there are few."""

Result = TypeVar("Result")


def appended(before: Loaded, source: object) -> Loaded:
    """Return a table with one more snapshot. The table before stays as it is, whatever happens.

    Raises:
        InvalidParameter: if the source does not have the columns of the table, or is part of it already.
        EngineError: if it cannot be read.
    """
    found = sought(source, before.options)
    if isinstance(found, Files):
        return _with_files(before, found)
    return told(f"{found.kind} table", partial(_with_frame, before, found, type(source)))


def tidy(before: Loaded, after: Loaded) -> None:
    """Let go of what a table had before something was appended, and has no more."""
    if before.link is not after.link:
        before.link.close()
        return
    kept = {copy.name for copy in after.parts.copies}
    for copy in before.parts.copies:
        if copy.name not in kept:
            _drop(before.link, f"TABLE {copy.name}")


def _drop(link: Connection, what: str) -> None:
    with suppress(duckdb.Error):  # what is left over takes memory, and is read by nobody
        link.rows(f"DROP {what.replace(' ', ' IF EXISTS ', 1)}")


def _of_its_columns(source: object, call: Callable[[], Result]) -> Result:
    """Return what a call returns; if a column was not found that the table has, say that the source lacks it."""
    try:
        return call()
    except InvalidParameter as error:
        if error.name not in ("unit", "types"):
            raise
        name = error.value
    raise InvalidParameter("source", source, f"a table with the columns of the one that is open: it lacks {name}")


# Frames


def _with_frame(before: Loaded, frame: Frame, source: type) -> Loaded:
    link, token = before.link, secrets.token_hex(4)
    table, view = f"staged_{token}", f"shown_{token}"
    try:
        names, own_column = copy_frame(link.raw, table, frame, before.options)
        view_of(link.raw, view, table, names)
        options = before.options
        found = partial(describe, link.raw, view, options.declared, options.unit, own_column, copied=True)
        shape = _of_its_columns(source, found)
        shape.other.update(frame.other)
        check_alike(before.shape, shape, source)
        return _copied(before, f"SELECT {shape.copied(before.shape.schema)} FROM {view}", None)
    finally:
        _drop(link, f"VIEW {view}")
        _drop(link, f"TABLE {table}")


# Files


def _with_files(before: Loaded, files: Files) -> Loaded:
    known = [snapshot.files for snapshot in before.parts.snapshots if snapshot.files is not None]
    own = {stat[:2] for each in known for stat in each.stats}
    again = [path for path, stat in zip(files.paths, files.stats, strict=True) if stat[:2] in own]
    if again:
        raise InvalidParameter("source", str(again[0]), "of files that are not part of the table already")
    options = before.options if files.kind == "duckdb" else replace(before.options, table=None)
    # In a folder within the table's own, so that its connection reaches what is handed over there.
    apart = _of_its_columns(files.root, partial(load_files, [files], options, before.spill))
    try:
        check_alike(before.shape, apart.shape, files.root)
        after = told(str(files.root), partial(_in_place, before, [*known, files]))
        return after or told(str(files.root), partial(_handed_over, before, files, apart))
    finally:
        apart.link.close()


def _in_place(before: Loaded, snapshots: Sequence[Files]) -> Loaded | None:
    """Return a table on a new connection that reads all files where they are; None if that cannot be."""
    parts = before.parts
    copied = parts.first.parquet is None or parts.snapshots[-1].end > parts.first.ends[-1]
    if copied or any(files.kind != "parquet" for files in snapshots) or len(set(map(_folders, snapshots))) > 1:
        return None
    link = Connection(before.options.memory)
    try:
        if one_shape(link.raw, [path for files in snapshots for path in files.paths]):
            first = in_files(view_parquet(link.raw, snapshots, link.spill), snapshots)
            link.lock(reached(first))
            options = before.options
            shape = describe(link.raw, RELATION, options.declared, options.unit, None, copied=False)
            ended = tuple(Snapshot(files, end) for files, end in zip(snapshots, first.ends, strict=True))
            return replace(before, link=link, shape=shape, parts=Parts(first, ended))
    except BaseException:
        link.close()
        raise
    link.close()
    return None


def _folders(files: Files) -> frozenset[str]:
    """Return the columns that folders are; DuckDB looks for them in the whole path once there is one."""
    if not any("=" in part for part in files.folders):
        return frozenset()
    return frozenset(part.partition("=")[0] for part in files.paths[0].parent.parts if "=" in part)


def _handed_over(before: Loaded, files: Files, apart: Loaded) -> Loaded:
    handed, path = f"handed_{secrets.token_hex(4)}", text(str(apart.spill / "handed.duckdb"))
    apart.link.rows(f"ATTACH {path} AS {handed}")
    columns = apart.shape.copied(before.shape.schema)
    apart.link.rows(f"CREATE TABLE {handed}.part AS SELECT {columns} FROM {RELATION}")
    apart.link.rows(f"DETACH {handed}")
    before.link.rows(f"ATTACH {path} AS {handed} (READ_ONLY)")
    try:
        return _copied(before, f"SELECT * FROM {handed}.part", files)
    finally:
        with suppress(duckdb.Error):
            before.link.rows(f"DETACH {handed}")


# Copies


def _copied(before: Loaded, rows: str, files: Files | None) -> Loaded:
    """Return a table with a copy more, of these rows and of the small copies before them."""
    parts, link, name = before.parts, before.link, f"part_{secrets.token_hex(4)}"
    number = link.number(f"SELECT count(*) FROM ({rows})")
    start = max(parts.first.after, parts.snapshots[-1].end)
    end = start + number
    kept = list(parts.copies)
    sources = [rows]
    while kept and kept[-1].rows <= _SMALLER * (end - start):
        last = kept.pop()
        start = last.start
        sources.insert(0, f"SELECT * FROM {last.name} WHERE rowid < {last.rows}")
    try:
        for place, source in enumerate(sources):
            # One after another: so a row's number is its place.
            link.rows(f"INSERT INTO {name} {source}" if place else f"CREATE TABLE {name} AS {source}")
        held, top = link.rows(f"SELECT count(*), max(rowid) FROM {name}")[0]
        _check(held, top, end - start)
    except BaseException:
        _drop(link, f"TABLE {name}")
        raise
    copy = Copy(name, start, held, held)
    return replace(before, parts=Parts(parts.first, (*parts.snapshots, Snapshot(files, end)), (*kept, copy)))


def _check(held: int, top: int | None, expected: int) -> None:
    if held != expected or (held and top != held - 1):
        msg = "rows were not copied one after another: nothing was appended"
        raise EngineError(msg)
