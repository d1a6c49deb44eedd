"""Small files that belong to a command, CSV or YAML, and their named fields: each value of its field's kind.

>>> read_fields("rules.yaml, item 1", {"threshold": "4e4", "where": None}, {"threshold": number, "where": text})
{'threshold': 40000}
>>> read_fields("rules.yaml, item 1", {"threshold": True}, {"threshold": number})
Traceback (most recent call last):
targetcharge.cli.errors.Mistake: rules.yaml, item 1: threshold is True; it must be a number
"""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import yaml

from targetcharge.cli.errors import Mistake, line
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Reader = Callable[[str, object], Any]


def read_fields(place: str, fields: Mapping[Any, object], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the fields that are given, each as its reader returns it; a mistake names the place."""
    for name in fields:
        if name not in readers:
            raise Mistake(place, f"there is no field {name!r}; there are {', '.join(readers)}")
    try:
        return {name: readers[name](name, value) for name, value in fields.items() if value is not None}
    except InvalidParameter as error:
        raise Mistake(place, str(error)) from None


def text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InvalidParameter(name, value, "text; write it in quotes")
    return value


def number(name: str, value: object) -> float:
    """Return a number, also one that is written as text: YAML takes 1e-6 for that."""
    if isinstance(value, str):
        for kind in (int, float):
            with suppress(ValueError):
                return whole(kind(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidParameter(name, value, "a number")
    try:
        float(value)
    except OverflowError:
        raise InvalidParameter(name, value, "a number below 1e308") from None
    return whole(value)


def whole(value: float) -> float:
    """Return a number as people write it: 1200, not 1200.0."""
    return value if isinstance(value, int) or not value.is_integer() else int(value)


def whole_number(name: str, value: object) -> int:
    """Return a whole number, also one that is written as text."""
    if isinstance(value, str):
        with suppress(ValueError):
            return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidParameter(name, value, "a whole number")
    return value


def flag(name: str, value: object) -> bool:
    """Return yes or no."""
    if not isinstance(value, bool):
        raise InvalidParameter(name, value, "true or false")
    return value


def read_csv(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the names in a CSV file's first line, and its rows: the line, and the cells that are not empty."""
    lines = csv.reader(io.StringIO(_text_of(path), newline=""), strict=True)
    try:
        rows = [(lines.line_num, cells) for cells in lines]
    except csv.Error as error:
        raise Mistake(line(path, lines.line_num), f"this is not CSV ({error})") from None
    names = [name.strip() for name in rows[0][1]] if rows else []
    if not names or "" in names or len(set(names)) < len(names):
        raise Mistake(line(path, 1), "it must name every column, each once")
    filled = [(number, cells) for number, cells in rows[1:] if any(cell.strip() for cell in cells)]
    for number, cells in filled:
        if len(cells) != len(names):
            problem = f"it has {len(cells)} cells, and the first line names {len(names)} columns"
            hint = 'a cell with a comma in it is written in quotes, as "a, b"'
            raise Mistake(line(path, number), f"{problem}; {hint}")
    return names, [
        (number, {name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()})
        for number, cells in filled
    ]


def read_yaml(path: Path) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return what a YAML file holds; a mistake names the line where it is no YAML."""
    try:
        return yaml.safe_load(_text_of(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = str(path) if mark is None else line(path, mark.line + 1)
        problem = getattr(error, "problem", None) or "see there"
        raise Mistake(where, f"this is not YAML ({problem})") from None
    except ValueError as error:  # a day such as 2024-02-30, thousands of digits
        raise Mistake(str(path), f"it holds a value that cannot be read: {error}") from None
    except RecursionError:
        raise Mistake(str(path), "it holds lists in lists too deep to be read") from None


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = error.strerror
    except UnicodeDecodeError:
        problem = "it is not text in UTF-8"
    raise Mistake(str(path), f"it cannot be read: {problem}")
