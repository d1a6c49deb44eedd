"""The fine print: what is not protected, and which ledger this is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge import __version__
from targetcharge.cli.report.elements import Html, aside, element, facts, foreign, joined, section
from targetcharge.cli.report.words import budget, counted, moment, small
from targetcharge.cli.standing import declared_targets

if TYPE_CHECKING:
    from targetcharge.cli.report.findings import Findings

_NOT_PROTECTED: Final = {
    "What went another way.": "The guarantee is about answers of this ledger. Row counts, file sizes, samples or"
    " statistics that anybody took from the data otherwise are not covered.",
    "How long an answer took.": "It may depend on the data. Times on this page are those of receipt.",
    "The questions.": "What was asked, by which keys and thresholds, and when, is taken to be public.",
    "What is true of many.": "Differential privacy hides whether a unit is in the data. It does not hide facts"
    " about a population, also where they say something about a person.",
    "Somebody who is several units.": "Two units of one person have twice the ε together.",
    "What somebody declared private.": "The algorithms of this software are proven and tested. Where a program"
    " brought its own, the guarantee rests on what that declared.",
}

_MOST: Final = 20


def fine_print(findings: Findings, written: float) -> Html:
    """Return the section.

    Args:
        findings: about the ledger.
        written: when the page is, in seconds since 1970: the only thing on it that the ledger does not decide.
    """
    at = moment(written)
    points = [element("li", element("strong", what), " ", why) for what, why in _NOT_PROTECTED.items()]
    return section(
        "fine-print",
        "Fine print",
        element("h3", "What is not protected"),
        element("ul", *points, class_="points"),
        element("h3", "This ledger"),
        facts(_identity(findings)),
        aside(
            "The hash covers every entry from the first on. Somebody who can rewrite the whole file can make"
            " another consistent history: compare number and hash with a copy kept elsewhere. The file also holds"
            " pending outcomes and is as secret as the data; this page holds public facts only."
        ),
        element(
            "footer",
            "Written ",
            element("time", f"{at} UTC", datetime=f"{at.replace(' ', 'T')}Z"),
            f" by tct report, targetcharge {__version__}",
        ),
    )


def _identity(findings: Findings) -> list[tuple[str, object]]:
    found, terms, state = findings.found, findings.found.terms, findings.found.state
    problem, reserved = findings.verdict.problem, terms.computation_delta
    whole = f"yes: {counted(state.number, 'entry', 'entries')}, every hash and every total is right"
    name = "Rényi" if terms.meter == "renyi" else terms.meter
    pairs: list[tuple[str, object]] = [
        ("file", foreign(findings.name)),
        ("identity", _code(findings.identity)),
        ("unit", foreign(str(terms.unit)) if str(terms.unit) else "not said"),
        ("budget", budget(terms)),
        ("meter", f"{name}, query ε {terms.query_epsilon:g}, order {terms.order:.4g}"),
        ("charging", terms.charging),
        ("declared targets", foreign(declared_targets(terms))),
        ("computations’ own δ", f"{small(reserved)} set aside" if reserved else "none"),
        ("last entry", f"{state.number:,}"),
        ("its hash", _code(state.head.hex())),
        ("verified", joined(["no: ", foreign(problem, 1000)]) if problem else whole),
        ("releases pending", f"{found.pending:,}" if found.pending else "none"),
        ("held back by open sessions", counted(found.held.count, "hit") if found.held.count else "nothing"),
    ]
    if findings.lost:
        pairs.append(("spent in vain", foreign(_lost(findings), 1000)))
    if findings.vouched:
        entries = ", ".join(f"{number:,}" for number in findings.vouched[-_MOST:])
        word = (
            f"at entry {entries} the owner vouched that a restored copy was complete: the guarantee rests on that"
        )
        pairs.append(("restored", word))
    return pairs


def _code(words: str) -> Html:
    return element("span", foreign(words), class_="hash")


def _lost(findings: Findings) -> str:
    """Return why reservations were spent without an answer, and how many hits that was."""
    kinds: dict[str, tuple[int, int]] = {}
    for each in findings.lost:
        times, hits = kinds.get(each.why, (0, 0))
        kinds[each.why] = times + 1, hits + each.count
    return "; ".join(f"{times:,} {why}, {counted(hits, 'hit')}" for why, (times, hits) in kinds.items())
