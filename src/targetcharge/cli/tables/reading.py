"""Reading small files that belong to a question: CSV with a first line of names, each row with its line."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.cli.mistakes import Mistake, line

if TYPE_CHECKING:
    from pathlib import Path


@final
@dataclass(frozen=True)
class Row:
    """A row of a CSV file: the line where it ends, and its cells by name; empty cells are not there."""

    line: int
    cells: dict[str, str]


def text_of(path: Path) -> str:
    """Return the text of a file.

    Raises:
        Mistake: if there is none.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = error.strerror
    except UnicodeDecodeError:
        problem = "it is not text in UTF-8"
    raise Mistake(str(path), f"it cannot be read: {problem}")


def csv_rows(path: Path) -> tuple[list[str], list[Row]]:
    """Return the names in the first line of a CSV file, and its rows.

    Raises:
        Mistake: if it is not such a file.
    """
    lines = csv.reader(io.StringIO(text_of(path), newline=""), strict=True)
    found: list[tuple[int, list[str]]] = []
    try:
        found = [(lines.line_num, cells) for cells in lines]
    except csv.Error as error:
        raise Mistake(line(path, lines.line_num), f"this is not CSV ({error})") from None
    names = [name.strip() for name in found[0][1]] if found else []
    if not names or "" in names or len(set(names)) < len(names):
        raise Mistake(line(path, 1), "it must name every column, each once")
    return names, [
        _row(path, number, names, cells) for number, cells in found[1:] if any(cell.strip() for cell in cells)
    ]


def _row(path: Path, number: int, names: list[str], cells: list[str]) -> Row:
    if len(cells) != len(names):
        told = f"it has {len(cells)} cells, and the first line names {len(names)} columns"
        raise Mistake(line(path, number), f'{told}; a cell with a comma in it is written in quotes, as "a, b"')
    return Row(number, {name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()})
