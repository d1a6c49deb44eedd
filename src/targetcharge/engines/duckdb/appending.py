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

from targetcharge.engines.duckdb.connection import read_as_table
from targetcharge.engines.duckdb.files import Files
from targetcharge.engines.duckdb.frames import copy_frame
from targetcharge.engines.duckdb.loading import connected, files_on, files_or_frame, load_files, view_of
from targetcharge.engines.duckdb.parquet_files import one_shape
from targetcharge.engines.duckdb.table import Copy, LoadedTable, Snapshot, describe, drop
from targetcharge.engines.duckdb.types import RELATION
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.predicates import text_literal
from targetcharge.queries.values import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.frames import Frame
    from targetcharge.engines.duckdb.table import Shape
    from targetcharge.engines.duckdb.types import Unit

_SMALLER: Final = 2
"""A copy with at most so many times the rows that come after it is copied again with them: so there are few."""

_LIKE_THE_TABLE: Final = "a table with the columns of the one that is open"

Result = TypeVar("Result")


def appended(before: LoadedTable, source: object) -> LoadedTable:
    """Return a table with one more snapshot. The table before stays as it is, whatever happens.

    Raises:
        InvalidParameter: if the source does not have the columns of the table, or is part of it already.
        EngineError: if it cannot be read.
    """
    data = files_or_frame(source, before.options)
    if isinstance(data, Files):
        return _with_files(before, data)
    return read_as_table(f"{data.kind} table", partial(_with_frame, before, data, type(source)))


def _of_its_columns(source: object, call: Callable[[], Result]) -> Result:
    """Return what a call returns; if a column was not found that the table has, say that the source lacks it."""
    try:
        return call()
    except InvalidParameter as error:
        if error.name not in ("unit", "types"):
            raise
        name = error.value
    raise InvalidParameter("source", source, f"{_LIKE_THE_TABLE}: it lacks {name}")


# Frames


def _with_frame(before: LoadedTable, frame: Frame, source: type) -> LoadedTable:
    link, token = before.link, secrets.token_hex(4)
    table, view = f"staged_{token}", f"shown_{token}"
    try:
        names, unit = copy_frame(link, table, frame, before.options)
        view_of(link, view, table, names)
        shape = _of_its_columns(source, partial(describe, link, view, before.options, unit, copied=True))
        shape.other.update(frame.other)
        check_alike(before.shape, shape, source)
        return _copied(before, f"SELECT {shape.copied(before.shape.schema)} FROM {view}", None)
    finally:
        drop(link, "VIEW", view)
        drop(link, "TABLE", table)


# Files


def _with_files(before: LoadedTable, files: Files) -> LoadedTable:
    known = [snapshot.files for snapshot in before.snapshots if snapshot.files is not None]
    own = {stat[:2] for part in known for stat in part.stats}
    again = [path for path, stat in zip(files.paths, files.stats, strict=True) if stat[:2] in own]
    if again:
        raise InvalidParameter("source", str(again[0]), "of files that are not part of the table already")
    options = before.options if files.kind == "duckdb" else replace(before.options, table=None)
    # In a folder within the table's own, so that its connection reaches what is handed over there.
    apart = _of_its_columns(files.root, partial(load_files, [files], options, before.link.spill))
    try:
        check_alike(before.shape, apart.shape, files.root)
        after = _in_place(before, [*known, files])
        return after or read_as_table(str(files.root), partial(_handed_over, before, files, apart))
    finally:
        apart.link.close()


def _in_place(before: LoadedTable, snapshots: Sequence[Files]) -> LoadedTable | None:
    """Return a table on a new connection that reads all files where they are; None if that cannot be."""
    copied = before.first.parquet is None or before.snapshots[-1].end > before.first.end
    if copied or any(files.kind != "parquet" for files in snapshots) or len(set(map(_folders, snapshots))) > 1:
        return None
    return connected(str(snapshots[-1].root), before.options, partial(_on_new, before, snapshots))


def _on_new(before: LoadedTable, snapshots: Sequence[Files], link: Connection) -> LoadedTable | None:
    if not one_shape(link, [path for files in snapshots for path in files.paths]):
        link.close()
        return None
    return replace(files_on(snapshots, before.options, link), root=before.root, opened=before.opened)


def _folders(files: Files) -> frozenset[str]:
    """Return the columns that folders are; DuckDB looks for them in the whole path once there is one."""
    if not any("=" in part for part in files.folders):
        return frozenset()
    return frozenset(part.partition("=")[0] for part in files.paths[0].parent.parts if "=" in part)


def _handed_over(before: LoadedTable, files: Files, apart: LoadedTable) -> LoadedTable:
    handed, path = f"handed_{secrets.token_hex(4)}", text_literal(str(apart.link.spill / "handed.duckdb"))
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


def _copied(before: LoadedTable, rows: str, files: Files | None) -> LoadedTable:
    """Return a table with a copy more, of these rows and of the small copies before them."""
    link, name = before.link, f"part_{secrets.token_hex(4)}"
    start = max(before.first.after, before.snapshots[-1].end)
    end = start + link.number(f"SELECT count(*) FROM ({rows})")
    kept = list(before.copies)
    sources = [rows]
    while kept and before.used(kept[-1]) <= _SMALLER * (end - start):
        last = kept.pop()
        start = last.start
        sources.insert(0, f"SELECT * FROM {last.name} WHERE rowid < {before.used(last)}")
    try:
        for place, source in enumerate(sources):
            # One after another: so a row's number is its place.
            link.rows(f"INSERT INTO {name} {source}" if place else f"CREATE TABLE {name} AS {source}")
        held, top = link.rows(f"SELECT count(*), max(rowid) FROM {name}")[0]
        _check(held, top, end - start)
    except BaseException:
        drop(link, "TABLE", name)
        raise
    copies = (*kept, Copy(name, start, held))
    return replace(before, snapshots=(*before.snapshots, Snapshot(files, end)), copies=copies)


def _check(held: int, top: int | None, expected: int) -> None:
    if held != expected or (held and top != held - 1):
        msg = "rows were not copied one after another: nothing was appended"
        raise EngineError(msg)


# Likeness


def check_alike(table: Shape, other: Shape, source: object) -> None:
    """Refuse rows whose shape is not that of a table: a column is missing, too many or of another type, say."""
    problem = _other_columns(table, other) or _other_units(table.unit, other.unit)
    if problem:
        raise InvalidParameter("source", source, f"{_LIKE_THE_TABLE}: {problem}")


def _other_columns(table: Shape, other: Shape) -> str:
    wanted, given = _kinds(table), _kinds(other)
    for name in (*wanted, *given):
        if name not in given:
            return f"it lacks {name}"
        if name not in wanted:
            return f"it has {name}, which that one lacks"
        asked_about = name in table.schema or name in other.schema
        if asked_about and wanted[name] != given[name]:
            return f"{name} must be {wanted[name]}, and is {given[name]}"
    return ""


def _kinds(shape: Shape) -> dict[str, str]:
    return {name: in_words(column) for name, column in shape.schema.items()} | shape.other


def _other_units(wanted: Unit | None, given: Unit | None) -> str:
    """Return how units are told apart in another way: one and the same might be taken for two, or two for one."""
    if wanted is None or given is None or (wanted.kind, wanted.rule) == (given.kind, given.rule):
        return ""
    first, second = (f"{unit.kind} ({unit.rule or 'equal values'})" for unit in (wanted, given))
    return (
        f"units must be told apart by {first}, and are by {second}; a column that is declared with types is read"
        " in the same way everywhere"
    )
