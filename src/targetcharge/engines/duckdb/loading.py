"""Loading: from a source to a table on a connection that can reach nothing else.

The order of steps matters: first what needs the file system, then the lock. Parquet and DuckDB files stay where
they are. CSV files and frames are copied, typed, into a table whose columns are named by numbers, so that no name
of theirs hides the number of a row.
"""

from __future__ import annotations

from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from targetcharge.engines.duckdb.connection import Connection, read_as_table
from targetcharge.engines.duckdb.csv_files import copy_csv
from targetcharge.engines.duckdb.files import Files, find, split
from targetcharge.engines.duckdb.frames import copy_frame, frame_of
from targetcharge.engines.duckdb.parquet_files import ROW_BITS, patterns, view_parquet
from targetcharge.engines.duckdb.table import SPAN, First, LoadedTable, Snapshot, describe
from targetcharge.engines.duckdb.types import NUMBERED, RELATION, identifier, unused
from targetcharge.errors import InvalidParameter
from targetcharge.queries.predicates import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.engines.duckdb.frames import Frame
    from targetcharge.engines.duckdb.table import Options

_KEPT: Final = "kept"
_ROW: Final = "rowid"

Result = TypeVar("Result")


def load(source: object, options: Options, snapshots: Sequence[Sequence[str]] | None = None) -> LoadedTable:
    """Return a table, locked in; snapshots are files by their names. Raises what `open_duckdb` does."""
    data = files_or_frame(source, options)
    if options.table is not None and not (isinstance(data, Files) and data.kind == "duckdb"):
        raise InvalidParameter("table", options.table, "left out: only a DuckDB file has tables with names")
    if isinstance(data, Files):
        return load_files(split(data, snapshots), options)
    if snapshots is not None:
        raise InvalidParameter("snapshots", snapshots, "left out: they are of files")
    return connected(f"{data.kind} table", options, partial(_frame_on, data, options))


def files_or_frame(source: object, options: Options) -> Files | Frame:
    """Return the files or the frame that a caller gave."""
    if isinstance(source, str | Path) or hasattr(source, "__fspath__"):
        return find(source)
    return frame_of(source, options)


def connected(
    what: str, options: Options, loaded: Callable[[Connection], Result], within: Path | None = None
) -> Result:
    """Return what is loaded on a new connection, which is closed if that fails: errors say of what."""
    link = Connection(options.memory, within)
    try:
        return read_as_table(what, partial(loaded, link))
    except BaseException:
        link.close()
        raise


def load_files(snapshots: Sequence[Files], options: Options, within: Path | None = None) -> LoadedTable:
    """Return a table of files, all of one kind."""
    return connected(str(snapshots[0].root), options, partial(files_on, snapshots, options), within)


def files_on(snapshots: Sequence[Files], options: Options, link: Connection) -> LoadedTable:
    """Return a table of files on a connection, which is locked."""
    kind = snapshots[0].kind
    reached: list[str] = []
    unit = None
    if kind == "parquet":
        rows = view_parquet(link, snapshots)
        ends = [count << ROW_BITS for count in accumulate(len(files.paths) for files in snapshots)]
        first = First(ends[-1], SPAN, rows.place, parquet=rows)
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
    first = _view(link, names, link.number(f"SELECT count(*) FROM {_KEPT}"))
    link.lock(())
    shape = describe(link, RELATION, options, unit, copied=True)
    shape.other.update(frame.other)
    return LoadedTable(link, shape, first, (Snapshot(None, first.end),), options, None, 1)


def _view(link: Connection, names: Sequence[str], end: int) -> First:
    """Make the views of rows that were copied."""
    place = unused(names, "place")
    view_of(link, RELATION, _KEPT, names)
    view_of(link, NUMBERED, _KEPT, names, place)
    return First(end, end, place)


def view_of(link: Connection, view: str, table: str, names: Sequence[str], place: str | None = None) -> None:
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
    names = {f"{schema}.{name}" if schema != "main" else name: (schema, name, made) for schema, name, made in rows}
    if table is None and len(names) == 1:
        table = next(iter(names))
    if table not in names:
        expected = f"one of the tables of {files.paths[0]}: {', '.join(names) or 'it has none'}"
        raise InvalidParameter("table", table, expected)
    schema, name, made = names[table]
    full = f"source.{identifier(schema)}.{identifier(name)}"
    types = {column: kind for column, kind, *_ in link.rows(f"DESCRIBE {full}")}
    replaced: dict[str, str] = {}
    for column, kind in types.items():
        raw = identifier(column)
        # A collation would make = and GROUP BY disagree on what is the same text, and so on what is the same unit.
        value = f"{raw} COLLATE C" if kind == "VARCHAR" else raw
        value = f"TRY({value})" if made else value  # a column that is computed when it is read may fail for a row
        replaced |= {raw: value} if value != raw else {}
    listing = ", ".join(f"{value} AS {raw}" for raw, value in replaced.items())
    plain = f"* REPLACE ({listing})" if listing else "*"
    link.rows(f"CREATE VIEW {RELATION} AS SELECT {plain} FROM {full}")
    if any(column.lower() == _ROW for column in types):
        return First(SPAN, SPAN, None, gaps=True)
    place = unused(types, "place")
    link.rows(f"CREATE VIEW {NUMBERED} AS SELECT {plain}, {_ROW} AS {identifier(place)} FROM {full}")
    return First(SPAN, SPAN, place, gaps=True)
