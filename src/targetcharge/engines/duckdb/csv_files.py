"""CSV files: copied in, every column as text first, so that no value decides how another one is read.

A record ends where the first line's own end of line stands outside quotes. Other ends of line are spaces: some
writers do not quote them, and DuckDB would take what follows for rows of its own. A record with more or fewer
fields than the first line is dropped; what is not UTF-8 is read as a replacement character.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import re
import zlib
from glob import escape
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, cast

from targetcharge.engines.duckdb.types import declared_as, declared_unit, identifier, listed
from targetcharge.errors import EngineError, InvalidParameter, did_you_mean
from targetcharge.queries.tree import Kind, text_literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.duckdb.files import Files
    from targetcharge.engines.duckdb.table import Options
    from targetcharge.engines.duckdb.types import Unit

_CHUNK: Final = 1 << 22
_ENDS: Final = re.compile(rb"\r\n|\r|\n")


class _Header(NamedTuple):
    """The first line of a file: the names of the columns, what separates fields, and what ends a line."""

    names: tuple[str, ...]
    separator: str
    end: bytes


def copy_csv(
    link: Connection, table: str, snapshots: Sequence[Files], options: Options
) -> tuple[list[str], Unit | None, list[int]]:
    """Copy files into a table of columns c0, c1, …; those that are not declared are text.

    Copies with plain ends of lines are made in the connection's private folder.

    Returns:
        The names of the columns; what tells units apart; and the number of rows up to the end of each snapshot.
    """
    first, *others = [path for files in snapshots for path in files.paths]
    header = _header(first)
    for path in others:
        if _header(path) != header:
            msg = f"{first} and {path} do not have the same columns: one table has one schema"
            raise EngineError(msg)
    if unknown := [name for name in options.declared if name not in header.names]:
        hint = did_you_mean(unknown[0], header.names)
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(header.names)}{hint}")
    parts, unit = _columns(header, options)
    columns = ", ".join(f"{part} AS c{place}" for place, part in enumerate(parts.values()))
    ends: list[int] = []
    for files in snapshots:
        copies = [link.spill / f"{place}.csv" for place, _ in enumerate(files.paths)]
        paths = [_tamed(path, header.end, copy) for path, copy in zip(files.paths, copies, strict=True)]
        into = f"INSERT INTO {table}" if ends else f"CREATE TABLE {table} AS"
        link.rows(f"{into} SELECT {columns} FROM {_reader(paths, header)}")
        ends.append(link.integer(f"SELECT count(*) FROM {table}"))
        for copy in copies:
            copy.unlink(missing_ok=True)
    return list(parts), unit, ends


def _columns(header: _Header, options: Options) -> tuple[dict[str, str], Unit | None]:
    """Return the SQL of each column, and what tells units apart: a column of our own."""
    parts: dict[str, str] = {}
    unit = None
    for name in header.names:
        # nullif() keeps the cast out of the reader, which would drop a row for a value that is none of its type.
        written, kind = f"nullif({identifier(name)}, '')", options.declared.get(name, "text")
        parts[name] = declared_as(written, Kind.TEXT, kind)
        if options.is_unit(name):
            unit = declared_unit(written, Kind.TEXT, kind).copied_into(parts, header.names)
    return parts, unit


def _reader(paths: Sequence[Path], header: _Header) -> str:
    columns = "{" + ", ".join(f"{text_literal(name)}: 'VARCHAR'" for name in header.names) + "}"
    options = (
        f"auto_detect = false, header = true, delim = {text_literal(header.separator)}, quote = '\"',"
        f" escape = '\"', columns = {columns}, ignore_errors = true, null_padding = false, strict_mode = true,"
        " parallel = false, hive_partitioning = false"
    )
    return f"read_csv({listed(escape(str(path)) for path in paths)}, {options})"


def _header(path: Path) -> _Header:
    line = None
    with contextlib.suppress(OSError, EOFError, zlib.error, UnicodeDecodeError), _opened(path) as file:
        first, end, rest = file.readline().partition(b"\r")
        line = first.decode("utf-8-sig")  # not more: rows may hold anything
        end = (b"\r\n" if rest in (b"", b"\n") else b"\r") if end else b"\n"
    if line is None:  # raised here, where the text that could not be read is not its context
        msg = f"{path} cannot be read as text in UTF-8"
        raise EngineError(msg)
    line = line.removesuffix("\n")
    separator = max(",;\t|", key=line.count)
    names: list[str] = []
    with contextlib.suppress(csv.Error):  # a name longer than a hundred thousand characters
        names = next(csv.reader([line], delimiter=separator), [])
    broken = line.count('"') % 2 == 1  # a name with a line break
    if broken or not names or "" in names or len({name.lower() for name in names}) < len(names):
        raise InvalidParameter("source", str(path), "a CSV file whose first line names every column, each once")
    return _Header(tuple(names), separator, end)


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb")) if path.name.lower().endswith(".gz") else path.open("rb")


def _tamed(path: Path, end: bytes, copy: Path) -> Path:
    """Return a file in UTF-8 in which every end of line is the first line's own: itself, or a copy."""
    if end == b"\n" and _is_plain(path):
        return path
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with copy.open("wb") as file:
        for chunk in _chunks(path):
            ended = _ENDS.sub(lambda match: b"\n" if match[0] in (end, b"\r\n") else b" ", chunk)
            file.write(decoder.decode(ended).encode())
        file.write(decoder.decode(b"", final=True).encode())
    return copy


def _is_plain(path: Path) -> bool:
    """Return whether a file has one kind of line end and is UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for chunk in _chunks(path):
            if b"\r" in chunk:
                return False
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _chunks(path: Path) -> Iterator[bytes]:
    """Yield a file in parts, none of which ends in the middle of an end of line."""
    try:
        with _opened(path) as file:
            while chunk := file.read(_CHUNK):
                if chunk.endswith(b"\r"):
                    chunk += file.read(1)
                yield chunk
    except (EOFError, zlib.error):
        msg = f"{path} is damaged: its compressed text ends too early"
    else:
        return
    raise EngineError(msg)
