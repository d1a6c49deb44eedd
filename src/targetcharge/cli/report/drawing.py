"""Drawing: pictures that are as wide as the page, with text that keeps its size.

Shapes are drawn on a field of 1000 units across that is stretched to the page; words stand on top of it, at
percentages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.cli.report.elements import Html, element

if TYPE_CHECKING:
    from collections.abc import Iterable

ACROSS: Final = 1000
"""Units across a field."""


def picture(name: str, title: str, description: str, height: int, *parts: Html) -> Html:
    """Return a picture that is told in words, too."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *parts,
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        width="100%",
        height=height,
    )


def field(top: int, height: int, *shapes: Html) -> Html:
    """Return shapes on a field of 1000 across and `height` down, stretched to the page."""
    return element(
        "svg",
        *shapes,
        y=top,
        width="100%",
        height=height,
        viewBox=f"0 0 {ACROSS} {height}",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def path(moves: Iterable[str], class_: str) -> Html:
    """Return a path whose line is as thin as anywhere else."""
    return element("path", d="".join(moves), class_=class_)


def words(along: float, down: float, said: object, class_: str | None = None) -> Html:
    """Return words at a place from 0 to 1 along the line: on its right half they end there."""
    anchor = "start" if along < 0.1 else "end" if along > 0.9 else "middle"
    return element("text", said, x=f"{100 * along:.4g}%", y=f"{down:g}", text_anchor=anchor, class_=class_)


def level(down: float, class_: str) -> Html:
    """Return a line across the page."""
    return element("line", x1=0, x2="100%", y1=f"{down:g}", y2=f"{down:g}", class_=class_)


def plumb(along: float, top: float, bottom: float, class_: str) -> Html:
    """Return a line from top to bottom."""
    place = f"{100 * along:.4g}%"
    return element("line", x1=place, x2=place, y1=f"{top:g}", y2=f"{bottom:g}", class_=class_)


def bar(parts: Iterable[tuple[float, str]], height: int = 12) -> Html:
    """Return shares of a whole as one bar; what is left over is empty."""
    made, start = [], 0.0
    for share, class_ in parts:
        made.append(
            element("rect", x=f"{100 * start:.4g}%", width=f"{100 * share:.4g}%", height=height, class_=class_)
        )
        start += share
    return element("g", element("rect", width="100%", height=height, class_="empty"), *made)
