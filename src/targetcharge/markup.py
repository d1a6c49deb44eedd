"""Markup: public facts in words, and as a small HTML table for notebooks, in which everything is escaped.

>>> table(["a", "b"], [["<1>", 2]])
'<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>&lt;1&gt;</td><td>2</td></tr></tbody></table>'
"""

from __future__ import annotations

from enum import Enum
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST = 1e21
"""From here on a number has its power of ten: nobody counts so many digits."""


def table(headings: Iterable[object], rows: Iterable[Iterable[object]], caption: str = "") -> str:
    """Return a table with headings; none for facts that name themselves."""
    head = "".join(f"<th>{escape(str(heading))}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    top = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{top}{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def number(value: object, digits: int = 6) -> str:
    """Return a number as a reader likes it, with so many digits at least; anything else as it prints.

    >>> number(1234567), number(1234567.8), number(0.5), number(None)
    ('1,234,567', '1,234,568', '0.5', '')
    """
    if value is None:
        return ""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if 10 ** (digits - 1) <= abs(value) < _LARGEST else f"{value:,.{digits}g}"


def interval(ends: tuple[float | None, float | None] | None) -> str:
    """Return an interval in words.

    >>> interval((None, 1230)), interval((970, 1030)), interval(None)
    ('up to 1,230', '970 to 1,030', '')
    """
    match ends:
        case None | (None, None):
            return ""
        case (None, high):
            return f"up to {number(high)}"
        case (low, None):
            return f"from {number(low)}"
        case (low, high):
            return f"{number(low)} to {number(high)}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """Return a count of things.

    >>> counted(1, "hit"), counted(1200, "hit"), counted(2, "entry", "entries")
    ('1 hit', '1,200 hits', '2 entries')
    """
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def cut(text: str, longest: int) -> str:
    """Return a text of a length at most.

    >>> cut("a long text", 7)
    'a long…'
    """
    return text if len(text) <= longest else text[: longest - 1] + "…"
