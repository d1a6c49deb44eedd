"""The headline: whose privacy, which guarantee, and what was done with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.cli.report.elements import Html, element, foreign, joined, paragraph
from targetcharge.cli.report.words import budget, counted, small, times

if TYPE_CHECKING:
    from targetcharge.cli.report.findings import Findings
    from targetcharge.ledger import Terms


def headline(findings: Findings) -> Html:
    """Return the head of the page."""
    return element(
        "header",
        paragraph("Privacy report", element("span", foreign(findings.name), class_="file"), class_="eyebrow"),
        element("h1", _title(findings)),
        paragraph(_meaning(findings), class_="lede"),
        _status(findings),
        _tiles(findings),
    )


def _title(findings: Findings) -> Html:
    terms = findings.found.terms
    promise = joined([element("span", budget(terms), class_="whole"), "-differentially private"])
    whose = joined([" for ", foreign(str(terms.unit))]) if str(terms.unit) else ""
    if not findings.verdict.problem:
        return joined(["Everything published through this ledger is ", promise, whose])
    what = "it may have lost charges" if findings.verdict.copied else "it was damaged or changed"
    return joined(["This ledger was made for answers that are ", promise, whose, ", but ", what])


def _meaning(findings: Findings) -> Html:
    """Return the guarantee in plain words. It is the whole budget's: never a figure made from the hits so far."""
    terms = findings.found.terms
    if findings.verdict.problem:
        begin = "A complete ledger would cover all that was and will be published together: "
    else:
        begin = "This covers all that was and will be published together, however it ends: "
    factor = [element("i", "e"), element("sup", f"{terms.epsilon:g}"), f" ≈ {times(terms.epsilon)} times as high"]
    return joined(
        [
            begin,
            "whatever one looks for in the answers, its probability is at most ",
            element("strong", *factor),
            f" with {_one(terms)} in the data as without, plus ",
            element("strong", small(terms.delta), class_="whole"),
            ", and the other way round. ",
            _unit(terms),
        ]
    )


def _one(terms: Terms) -> str:
    return "any one row" if terms.unit.kind == "row" else "all rows of any one unit"


def _unit(terms: Terms) -> object:
    """Return what a unit is."""
    unit = terms.unit
    if unit.kind == "row":
        return "Every row is a unit of its own."
    if unit.kind == "column":
        return joined(["A unit is all rows with the same ", element("strong", foreign(unit.name)), "."])
    if unit.name:
        return joined(["The units, whose privacy is protected, are ", element("strong", foreign(unit.name)), "."])
    return "What one unit is, the ledger does not say: its session was opened by a program that knows."


def _status(findings: Findings) -> Html:
    verdict, unread = findings.verdict, findings.unread
    if not verdict.problem:
        entries = counted(findings.found.state.number, "entry", "entries")
        words = f"Verified: {entries}, every hash and every total is right."
        if findings.vouched:
            words += " Its owner vouched for a restored copy: see the fine print."
        return paragraph(element("span", "✓", aria_hidden="true", class_="mark"), words, class_="status good")
    more = joined([" Not read: ", foreign(unread)]) if unread else ""
    return element(
        "p",
        element("span", "!", aria_hidden="true", class_="mark"),
        element("strong", "Not verified. "),
        foreign(_sentence(verdict.problem), 1000),
        more,
        class_="status bad",
        role="alert",
    )


def _sentence(words: str) -> str:
    return words if words.endswith(".") else f"{words}."


def _tiles(findings: Findings) -> Html:
    lost = len(findings.lost)
    cost = f", {counted(sum(each.count for each in findings.lost), 'hit')}" if lost else ""
    tiles = [
        (findings.answers, "answers", _questions(findings), ""),
        (findings.hits, "hits", "answers that cost", "hits"),
        (findings.answers - findings.hits, "free answers", "outside their target", ""),
        (lost, "spent in vain", f"failed or abandoned reservations{cost}", ""),
    ]
    return element(
        "dl",
        *(
            element(
                "div",
                element("dt", name),
                element("dd", f"{number:,}", class_="figure"),
                element("dd", about, class_="about"),
                class_=style or None,
            )
            for number, name, about, style in tiles
        ),
        class_="tiles",
    )


def _questions(findings: Findings) -> str:
    return f"to {counted(len(findings.tallies), 'question')}" if findings.answers else "nothing was asked"
