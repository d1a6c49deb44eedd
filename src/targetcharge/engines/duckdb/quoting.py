"""Names and texts as SQL.

>>> identifier('a"b'), text("it's"), listed(["a", "b"])
('"a""b"', "'it''s'", "['a', 'b']")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

RELATION: Final = "data"
"""The table that a connection was opened with."""

NUMBERED: Final = "numbered"
"""The same rows, each with its place: a column more."""


def identifier(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return a text in single quotes."""
    return "'" + value.replace("'", "''") + "'"


def listed(values: Iterable[str]) -> str:
    """Return a list of texts."""
    return "[" + ", ".join(map(text, values)) + "]"


def unused(names: Iterable[str], name: str = "unit") -> str:
    """Return a name for a column that is none of these, in any capitals.

    >>> unused(["Unit", "x"])
    'unit_'
    """
    taken = {each.lower() for each in names}
    while name in taken:
        name += "_"
    return name
