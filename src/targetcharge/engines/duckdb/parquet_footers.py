"""Footers of Parquet files with values that DuckDB cannot read: it refuses a whole column for one of them.

Milliseconds are read as microseconds, a thousand times as many, and there DuckDB stops at what does not fit; a
text that is annotated as JSON and is none it refuses. In a copy whose footer says microseconds, and text, it reads
the values as they are, and SQL makes times of the integers that are some. A copy is made only where a file could
not be read at all.

The footer is in Thrift's compact protocol: a byte for a field's number (as the step from the one before) and its
type, then its value. https://parquet.apache.org/docs/file-format/metadata/
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from targetcharge.engines.duckdb.quoting import identifier
from targetcharge.engines.duckdb.types import time_from
from targetcharge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_TAIL: Final = 8
"""Bytes at the end of a file: the length of the footer, and a magic word."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
_CONVERTED: Final = (2, 6)
"""FileMetaData.schema[].converted_type."""
_UNIT: Final = (2, 10, 8, 2, 1)
"""FileMetaData.schema[].logicalType.TIMESTAMP.unit.MILLIS."""
_JSON: Final = (2, 10, 12)
"""FileMetaData.schema[].logicalType.JSON; STRING is field 1."""
_TYPES: Final = {9 << 1: 10 << 1, 19 << 1: 0}
"""ConvertedType.TIMESTAMP_MILLIS and TIMESTAMP_MICROS, JSON and UTF8, as Thrift writes integers."""


def copy_without_doubt(path: Path, copy: Path) -> None:
    """Copy a file, and let its footer say microseconds where it says milliseconds, and text where it says JSON.

    Raises:
        EngineError: if it has no footer that can be read, or there is no room for it.
    """
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            end = file.seek(-_TAIL, 2)
            length = int.from_bytes(file.read(4), "little")
            file.seek(end - length)
            footer = bytearray(file.read(length))
            for place, byte in _changes(footer):
                footer[place] = byte
            file.seek(end - length)
            file.write(footer)
    except (OSError, IndexError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its footer is damaged"
    else:
        return
    msg = f"{path} can be read only from a copy, and that cannot be made: {reason}"
    raise EngineError(msg)


def time_of(name: str) -> str:
    """Return the SQL of the time that a column of such a copy holds."""
    return time_from(f"epoch_us({identifier(name)})", "ms")


def _changes(footer: bytearray) -> Iterator[tuple[int, int]]:
    """Yield the bytes to change, and what to: no length changes."""
    for path, header, value in _fields(footer, [0], ()):
        if path == _CONVERTED and footer[value] in _TYPES:
            yield value, _TYPES[footer[value]]
        elif path in (_UNIT, _JSON):  # fields of unions: another number names another member
            number = 2 if path == _UNIT else 1
            if footer[header] >> 4:
                yield header, number << 4 | footer[header] & 15
            else:
                yield header + 1, number << 1


def _fields(data: bytearray, at: list[int], path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Yield each field of a struct and of all structs in it: its path, where it begins, where its value does."""
    number = 0
    while data[at[0]]:
        header = at[0]
        step, kind = data[header] >> 4, data[header] & 15
        at[0] += 1
        number = number + step if step else _integer(data, at)
        yield (*path, number), header, at[0]
        yield from _value(data, at, kind, (*path, number))
    at[0] += 1


def _value(
    data: bytearray, at: list[int], kind: int, path: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], int, int]]:
    """Go past a value; yield the fields of the structs in it."""
    match kind:
        case _ if kind in (_TRUE, _FALSE):
            pass
        case _ if kind == _STRUCT:
            yield from _fields(data, at, path)
        case _ if kind in (_LIST, _SET):
            size, inner = data[at[0]] >> 4, data[at[0]] & 15
            at[0] += 1
            size = _varint(data, at) if size == 15 else size
            for _ in range(size):
                at[0] += inner in (_TRUE, _FALSE)
                yield from _value(data, at, inner, path)
        case _ if kind == _BINARY:
            length = _varint(data, at)
            at[0] += length
        case _ if kind in (_BYTE, _DOUBLE):
            at[0] += 1 if kind == _BYTE else 8
        case _ if kind == _MAP:
            raise IndexError  # no footer has one
        case _:
            _varint(data, at)


def _varint(data: bytearray, at: list[int]) -> int:
    number = shift = 0
    while True:
        byte = data[at[0]]
        at[0] += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return number


def _integer(data: bytearray, at: list[int]) -> int:
    number = _varint(data, at)
    return (number >> 1) ^ -(number & 1)
