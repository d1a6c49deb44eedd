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
from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING, BinaryIO, Final, cast, final

from targetcharge.engines.duckdb.quoting import RELATION, identifier, listed, text
from targetcharge.engines.duckdb.types import DECLARED
from targetcharge.errors import EngineError, InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from targetcharge.engines.duckdb.files import Files

_CHUNK: Final = 1 << 22
_ENDS: Final = re.compile(rb"\r\n|\r|\n")


@final
@dataclass(frozen=True)
class Header:
    """The first line of a CSV file.

    Attributes:
        names: of the columns.
        separator: between fields.
        end: of a line.
    """

    names: tuple[str, ...]
    separator: str
    end: bytes


def copy_csv(
    connection: duckdb.DuckDBPyConnection,
    files: Files,
    declared: dict[str, str],
    units: tuple[str, str] | None,
    folder: Path,
) -> None:
    """Make the table.

    Args:
        connection: to make it in.
        files: all with the same first line.
        declared: what columns are declared to be; text if they are not.
        units: the unit's column, and the name under which its text is kept as it is written.
        folder: for copies with plain ends of lines; the caller removes it.
    """
    header = _header(files.paths[0])
    for path in files.paths[1:]:
        if _header(path) != header:
            msg = f"{files.paths[0]} and {path} do not have the same columns: one table has one schema"
            raise EngineError(msg)
    unknown = [name for name in declared if name not in header.names]
    if unknown:
        raise InvalidParameter("types", unknown[0], f"about columns of the table: {', '.join(header.names)}")
    parts = []
    for name in header.names:
        # nullif() keeps the cast out of the reader, which would drop a row for a value that is none of its type.
        written, kind = f"nullif({identifier(name)}, '')", DECLARED[declared.get(name, "text")][0]
        parts.append(f"TRY_CAST({written} AS {kind}) AS {identifier(name)}")
        if units is not None and units[0] == name:
            parts.append(f"{written} AS {identifier(units[1])}")
    columns = "{" + ", ".join(f"{text(name)}: 'VARCHAR'" for name in header.names) + "}"
    options = (
        f"auto_detect = false, header = true, delim = {text(header.separator)}, quote = '\"', escape = '\"',"
        f" columns = {columns}, ignore_errors = true, null_padding = false, strict_mode = true, parallel = false,"
        " hive_partitioning = false"
    )
    paths = [_tamed(path, header.end, folder / f"{place}.csv") for place, path in enumerate(files.paths)]
    source = f"read_csv({listed(escape(str(path)) for path in paths)}, {options})"
    connection.execute(f"CREATE TABLE {RELATION} AS SELECT {', '.join(parts)} FROM {source}")
    for path in paths:
        if path.parent == folder:
            path.unlink()


def csv_names(files: Files) -> tuple[str, ...]:
    """Return the names of the columns."""
    return _header(files.paths[0]).names


def _header(path: Path) -> Header:
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
    return Header(tuple(names), separator, end)


def _opened(path: Path) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb")) if path.name.lower().endswith(".gz") else path.open("rb")


def _tamed(path: Path, end: bytes, copy: Path) -> Path:
    """Return a file in UTF-8 in which every end of line is the first line's own: itself, or a copy."""
    if end == b"\n" and _is_plain(path):
        return path
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with copy.open("wb") as file:
        for chunk in _chunks(path):
            ended = _ENDS.sub(lambda found: b"\n" if found[0] in (end, b"\r\n") else b" ", chunk)
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
