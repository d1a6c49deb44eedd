"""The comparison: the same session under other accountings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.cli.report.accountings import EXACT, PAPER, PLAIN, RENYI, SHARED, Row, rows_of
from targetcharge.cli.report.drawing import bar
from targetcharge.cli.report.elements import (
    Html,
    aside,
    element,
    foreign,
    joined,
    paragraph,
    scrolling,
    section,
    table,
)
from targetcharge.cli.report.targets import share_of
from targetcharge.cli.report.words import counted, epsilon, small
from targetcharge.cli.standing import roomiest
from targetcharge.errors import TargetChargeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.cli.report.findings import Findings

_TITLE: Final = "Under other accountings"
_MEANING: Final = {
    EXACT: "The smallest ε that is true of such sessions, certified.",
    RENYI: "One number that adds up any mix of questions; a little dearer.",
    SHARED: "What the hits published so far would have needed, had all units shared one budget.",
    PAPER: "The best form of Cohen and Lyu’s theorem, which this software builds on.",
    PLAIN: "Pays for every answer, hit or not, and rises with every further one.",
}
_HEADS: Final = ("Accounting", "For", "ε", element("span", "ε as a bar", class_="unseen"), "The budget buys")


def comparison(findings: Findings) -> Html:
    """Return the section."""
    which = 0 if findings.individual else roomiest(findings.found)
    try:
        rows = rows_of(findings, which)
    except TargetChargeError as error:
        return section("compared", _TITLE, aside(foreign(f"Cannot be computed: {error}", 500)))
    if not rows:
        return section("compared", _TITLE, aside("Cannot be computed: the declared targets are not known."))
    most = max(row.epsilon or 0.0 for row in rows)
    made = table(_HEADS, [_row(row, most) for row in rows], numbers=(1, 2, 4), stacked=True)
    return section(
        "compared",
        _TITLE,
        *_introduction(findings, which, rows[0].count),
        scrolling(made, "Accountings"),
        *_remark(findings, rows),
    )


def _introduction(findings: Findings, which: int, hits: int) -> list[Html]:
    terms = findings.found.terms
    delta = small(share_of(terms).delta)
    whose = "buys each unit" if findings.individual else "buys"
    made = [
        paragraph(
            f"The ε that each accounting needs, at query ε {terms.query_epsilon:g} and δ = {delta}, for the"
            f" {counted(hits, 'hit')} that this budget {whose}, or for every answer published so far."
            " The last column turns it round: what the same budget would have bought."
        )
    ]
    if terms.alternatives:
        made.append(
            aside("For the alternative with the most room left: ", foreign(terms.alternatives[which]), ".")
        )
    return made


def _row(row: Row, most: float) -> list[object]:
    what = "answer" if row.every else "hit"
    tag = element("span", "this ledger", class_="tag") if row.ours else ""
    drawn = ""
    if row.epsilon is not None and most:
        part = bar([(row.epsilon / most, "used" if row.ours else "other")])
        drawn = element("svg", part, width="100%", height=12, aria_hidden="true")
    return [
        joined([element("strong", row.name) if row.ours else row.name, tag, element("small", _MEANING[row.name])]),
        counted(row.count, what),
        "too large to compute" if row.epsilon is None else element("strong", epsilon(row.epsilon)),
        element("div", drawn, class_="bar"),
        "too many to compute" if row.buys is None else counted(row.buys, what),
    ]


def _remark(findings: Findings, rows: Sequence[Row]) -> list[Html]:
    """Say how much was free; and, honestly, if paying for every answer would have been cheaper."""
    own = next((row for row in rows if row.ours), rows[0])
    plain = next((row for row in rows if row.every), None)
    if plain is None or plain.epsilon is None or own.epsilon is None:
        return []
    if plain.epsilon >= own.epsilon:
        free = counted(findings.answers - findings.hits, "answer")
        return [aside(f"Paying only for hits made {free} free, and any number of further ones.")]
    until = f", and will be up to {counted(plain.buys, 'answer')}" if plain.buys is not None else ""
    return [aside(f"Few answers were published so far: paying for each of them would have been cheaper{until}.")]
