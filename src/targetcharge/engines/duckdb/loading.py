"""Loading: from a source to a table on a connection that can reach nothing else; and appending to it.

The order of steps matters: first what needs the file system, then the lock. Parquet and DuckDB files stay where
they are. CSV files and frames are copied, typed, into a table whose columns are named by numbers, so that no name
of theirs hides the number of a row.

What is appended is the next snapshot; if that fails, nothing has changed. Parquet files that follow Parquet files
of the same shape stay where they are, on a new connection. Everything else is copied. A frame is copied on the
table's own connection and never touches the disk; files are read on one of their own, which reaches them, and
handed over in a file in the private folder of the table's.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import duckdb

from targetcharge.engines.duckdb.connection import Connection, read_as_table
from targetcharge.engines.duckdb.csv_files import copy_csv
from targetcharge.engines.duckdb.files import Files, find, split
from targetcharge.engines.duckdb.frames import copy_frame, frame_of
from targetcharge.engines.duckdb.parquet_files import ROW_BITS, one_shape, patterns, view_parquet
from targetcharge.engines.duckdb.table import SPAN, Copy, First, LoadedTable, Snapshot, describe, drop
from targetcharge.engines.duckdb.types import NUMBERED, RELATION, identifier, unused
from targetcharge.errors import EngineError, InvalidParameter
from targetcharge.queries.tree import text_literal
from targetcharge.queries.values import in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.engines.duckdb.frames import Frame
    from targetcharge.engines.duckdb.table import Options, Shape
    from targetcharge.engines.duckdb.types import Unit

_KEPT: Final = "kept"
_ROW: Final = "rowid"
_SMALLER: Final = 2
"""A copy with at most so many times the rows that come after it is copied again with them: so there are few."""
_LIKE_THE_TABLE: Final = "a table with the columns of the one that is open"

Result = TypeVar("Result")


def load(source: object, options: Options, snapshots: Sequence[Sequence[str]] | None = None) -> LoadedTable:
    """Return a table, locked in; snapshots are files by their names. Raises what `open_duckdb` does."""
    data = _files_or_frame(source, options)
    if options.table is not None and not (isinstance(data, Files) and data.kind == "duckdb"):
        raise InvalidParameter("table", options.table, "left out: only a DuckDB file has tables with names")
    if isinstance(data, Files):
        return _load_files(split(data, snapshots), options)
    if snapshots is not None:
        raise InvalidParameter("snapshots", snapshots, "left out: they are of files")
    return _connected(f"{data.kind} table", options, partial(_frame_on, data, options))


def _files_or_frame(source: object, options: Options) -> Files | Frame:
    """Return the files or the frame that a caller gave."""
    if isinstance(source, str | Path) or hasattr(source, "__fspath__"):
        return find(source)
    return frame_of(source, options)


def _connected(
    what: str, options: Options, loaded: Callable[[Connection], Result], within: Path | None = None
) -> Result:
    """Return what is loaded on a new connection, which is closed if that fails: errors say of what."""
    link = Connection(options.memory, within)
    try:
        return read_as_table(what, partial(loaded, link))
    except BaseException:
        link.close()
        raise


def _load_files(snapshots: Sequence[Files], options: Options, within: Path | None = None) -> LoadedTable:
    """Return a table of files, all of one kind."""
    return _connected(str(snapshots[0].root), options, partial(_files_on, snapshots, options), within)


def _files_on(snapshots: Sequence[Files], options: Options, link: Connection) -> LoadedTable:
    """Return a table of files on a connection, which is locked."""
    kind = snapshots[0].kind
    reached: list[str] = []
    unit = None
    if kind == "parquet":
        rows = view_parquet(link, snapshots)
        ends = [count << ROW_BITS for count in accumulate(len(files.paths) for files in snapshots)]
        first = First(ends[-1], rows.place, parquet=rows)
        reached = [*map(str, rows.paths), *patterns(rows.paths)]
    elif kind == "duckdb":
        first, ends = _attach(link, snapshots[0], options.table), [SPAN]
    else:
        names, unit, ends = copy_csv(link, _KEPT, snapshots, options)
        first = _view(link, names, ends[-1])
    link.lock(reached)
    shape = describe(link, RELATION, options, unit, copied=kind == "csv")
    parts = tuple(Snapshot(files, end) for files, end in zip(snapshots, ends, strict=True))
    return LoadedTable(link, shape, first, parts, options, snapshots[0].root, len(parts))


def _frame_on(frame: Frame, options: Options, link: Connection) -> LoadedTable:
    names, unit = copy_frame(link, _KEPT, frame, options)
    first = _view(link, names, link.integer(f"SELECT count(*) FROM {_KEPT}"))
    link.lock(())
    shape = describe(link, RELATION, options, unit, copied=True)
    shape.other.update(frame.other)
    return LoadedTable(link, shape, first, (Snapshot(None, first.end),), options, None, 1)


def _view(link: Connection, names: Sequence[str], end: int) -> First:
    """Make the views of rows that were copied."""
    place = unused(names, "place")
    _view_of(link, RELATION, _KEPT, names)
    _view_of(link, NUMBERED, _KEPT, names, place)
    return First(end, place)


def _view_of(link: Connection, view: str, table: str, names: Sequence[str], place: str | None = None) -> None:
    """Make a view of a table whose columns are named by numbers: with their names, and the place of every row."""
    columns = [f"c{number} AS {identifier(name)}" for number, name in enumerate(names)]
    columns += [] if place is None else [f"{_ROW} AS {identifier(place)}"]
    link.rows(f"CREATE VIEW {view} AS SELECT {', '.join(columns)} FROM {table}")


def _attach(link: Connection, files: Files, table: str | None) -> First:
    link.rows(f"ATTACH {text_literal(str(files.paths[0]))} AS source (READ_ONLY)")
    rows = link.rows(
        "SELECT schema_name, table_name, contains(upper(sql), 'GENERATED ALWAYS') FROM duckdb_tables()"
        " WHERE database_name = 'source' ORDER BY ALL"
    )
    names = {
        f"{schema}.{name}" if schema != "main" else name: (schema, name, generated)
        for schema, name, generated in rows
    }
    if table is None and len(names) == 1:
        table = next(iter(names))
    if table not in names:
        expected = f"one of the tables of {files.paths[0]}: {', '.join(names) or 'it has none'}"
        raise InvalidParameter("table", table, expected)
    schema, name, generated = names[table]
    full = f"source.{identifier(schema)}.{identifier(name)}"
    types = {column: kind for column, kind, *_ in link.rows(f"DESCRIBE {full}")}
    replaced: dict[str, str] = {}
    for column, kind in types.items():
        raw = identifier(column)
        # A collation would make = and GROUP BY disagree on what is the same text, and so on what is the same unit.
        value = f"{raw} COLLATE C" if kind == "VARCHAR" else raw
        value = f"TRY({value})" if generated else value  # what is computed when it is read may fail for a row
        replaced |= {raw: value} if value != raw else {}
    listing = ", ".join(f"{value} AS {raw}" for raw, value in replaced.items())
    plain = f"* REPLACE ({listing})" if listing else "*"
    link.rows(f"CREATE VIEW {RELATION} AS SELECT {plain} FROM {full}")
    if any(column.lower() == _ROW for column in types):
        return First(SPAN, None, gaps=True)
    place = unused(types, "place")
    link.rows(f"CREATE VIEW {NUMBERED} AS SELECT {plain}, {_ROW} AS {identifier(place)} FROM {full}")
    return First(SPAN, place, gaps=True)


# Appending


def appended(before: LoadedTable, source: object) -> LoadedTable:
    """Return a table with one more snapshot. The table before stays as it is, whatever happens.

    Raises:
        InvalidParameter: if the source does not have the columns of the table, or is part of it already.
        EngineError: if it cannot be read.
    """
    data = _files_or_frame(source, before.options)
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


def _with_frame(before: LoadedTable, frame: Frame, source: type) -> LoadedTable:
    link, token = before.link, secrets.token_hex(4)
    table, view = f"staged_{token}", f"shown_{token}"
    try:
        names, unit = copy_frame(link, table, frame, before.options)
        _view_of(link, view, table, names)
        shape = _of_its_columns(source, partial(describe, link, view, before.options, unit, copied=True))
        shape.other.update(frame.other)
        check_alike(before.shape, shape, source)
        return _copied(before, f"SELECT {shape.copied(before.shape.schema)} FROM {view}", None)
    finally:
        drop(link, "VIEW", view)
        drop(link, "TABLE", table)


def _with_files(before: LoadedTable, files: Files) -> LoadedTable:
    known = [snapshot.files for snapshot in before.snapshots if snapshot.files is not None]
    own = {stat[:2] for part in known for stat in part.stats}
    again = [path for path, stat in zip(files.paths, files.stats, strict=True) if stat[:2] in own]
    if again:
        raise InvalidParameter("source", str(again[0]), "of files that are not part of the table already")
    options = before.options if files.kind == "duckdb" else replace(before.options, table=None)
    # In a folder within the table's own, so that its connection reaches what is handed over there.
    apart = _of_its_columns(files.root, partial(_load_files, [files], options, before.link.spill))
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
    return _connected(str(snapshots[-1].root), before.options, partial(_on_new, before, snapshots))


def _on_new(before: LoadedTable, snapshots: Sequence[Files], link: Connection) -> LoadedTable | None:
    if not one_shape(link, [path for files in snapshots for path in files.paths]):
        link.close()
        return None
    return replace(_files_on(snapshots, before.options, link), root=before.root, opened=before.opened)


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


def _copied(before: LoadedTable, rows: str, files: Files | None) -> LoadedTable:
    """Return a table with a copy more, of these rows and of the small copies before them."""
    link, name = before.link, f"part_{secrets.token_hex(4)}"
    start = max(before.first.after, before.snapshots[-1].end)
    end = start + link.integer(f"SELECT count(*) FROM ({rows})")
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
    if wanted is None or given is None or (wanted.kind, wanted.identity) == (given.kind, given.identity):
        return ""
    first, second = (f"{unit.kind} ({unit.identity.words or 'equal values'})" for unit in (wanted, given))
    return (
        f"units must be told apart by {first}, and are by {second}; a column that is declared with types is read"
        " in the same way everywhere"
    )
