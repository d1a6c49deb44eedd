"""Elements: HTML that is escaped by construction. Whatever is not markup already becomes text.

>>> element("p", "a < b ", element("b", "c"), class_="note")
'<p class="note">a &lt; b <b>c</b></p>'
>>> element("input", disabled=True, value=None)
'<input disabled>'
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_EMPTY: Final = frozenset({"input", "meta", "br", "hr"})

_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Controls, halves of characters, and marks that turn the text around them: shown by their number instead."""


@final
class Html(str):
    """Markup, to be put into a page as it is."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return anything as text; markup as it is.

    >>> text("a" + chr(0) + "<") == chr(92).join(["a", "x00&lt;"])
    True
    """
    if isinstance(value, Html):
        return value
    return Html(escape(_HARMFUL.sub(_by_number, str(value))))


def _by_number(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; attributes that are None or False are left out, those that are True stand alone.

    A trailing underscore of an attribute's name is dropped, others become hyphens.
    """
    inside = "".join(f" {_attribute(key, value)}" for key, value in attributes.items() if _said(value))
    if name in _EMPTY:
        return Html(f"<{name}{inside}>")
    return Html(f"<{name}{inside}>{''.join(map(text, children))}</{name}>")


def _said(value: object) -> bool:
    return value is not None and value is not False


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return name if value is True else f'{name}="{text(str(value))}"'


def joined(parts: Iterable[object], between: object = "") -> Html:
    """Return parts one after another."""
    return Html(text(between).join(map(text, parts)))


def foreign(words: object, most: int = 300) -> Html:
    """Return words that a user wrote, cut to a length, so that their direction does not reach what is around."""
    said = str(words)
    return element("bdi", said if len(said) <= most else said[: most - 1] + "…")


def table(
    heads: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Iterable[int] = (),
    stacked: bool = False,
) -> Html:
    """Return a table; the first cell of a row names it.

    Args:
        heads: of the columns.
        rows: of cells.
        numbers: the columns that hold numbers, from 0.
        stacked: whether a narrow page shows the cells of a row below each other, each with its head.
    """
    right = frozenset(numbers)
    kinds = ["number" if column in right else None for column in range(len(heads))]
    labels = [head if stacked and not isinstance(head, Html) else None for head in heads]
    top = [element("th", head, scope="col", class_=kind) for head, kind in zip(heads, kinds, strict=True)]
    body = []
    for row in rows:
        first, *rest = zip(row, kinds, labels, strict=True)
        named = element("th", first[0], scope="row", class_=first[1])
        cells = [element("td", cell, class_=kind, data_label=label) for cell, kind, label in rest]
        body.append(element("tr", named, *cells))
    return element(
        "table",
        element("thead", element("tr", *top)),
        element("tbody", *body),
        class_="stacked" if stacked else None,
    )


def scrolling(what: Html, label: str, *, long: bool = False) -> Html:
    """Return something wide or long in a frame that scrolls, also by keyboard; on paper it is whole."""
    kind = "scroll long" if long else "scroll"
    return element("div", what, class_=kind, role="region", aria_label=label, tabindex=0)


def facts(pairs: Iterable[tuple[object, object]]) -> Html:
    """Return names and what they are."""
    return element(
        "dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs), class_="facts"
    )


def section(name: str, title: str, *children: object) -> Html:
    """Return a section with a heading."""
    return element("section", element("h2", title, id=name), *children, aria_labelledby=name)


def paragraph(*children: object, class_: str | None = None) -> Html:
    """Return a paragraph."""
    return element("p", *children, class_=class_)


def aside(*children: object) -> Html:
    """Return a paragraph in a lower voice."""
    return paragraph(*children, class_="note")
