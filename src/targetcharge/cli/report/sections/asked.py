"""What was asked, question by question; and the hits, one by one."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Final

from targetcharge import markup
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
from targetcharge.cli.report.words import counted, interval_of, key_of, moment, said

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.cli.report.findings import Findings
    from targetcharge.cli.report.tallies import Tally
    from targetcharge.ledger import Answer

_MOST_QUESTIONS: Final = 100
_NONE: Final = "–"


def asked(findings: Findings) -> Html:
    """Return the section."""
    if not findings.answers:
        return section("asked", "What was asked", paragraph("Nothing yet."))
    return section("asked", "What was asked", *_questions(findings), element("h3", "The hits"), *_hits(findings))


def _questions(findings: Findings) -> list[Html]:
    """Return the questions with the most hits, then those most often asked, in the order of asking."""
    numbered = list(enumerate(findings.tallies.values(), 1))
    ranked = sorted(numbered, key=lambda each: (-each[1].hits, -each[1].asked, each[0]))
    shown, rest = sorted(ranked[:_MOST_QUESTIONS], key=operator.itemgetter(0)), ranked[_MOST_QUESTIONS:]
    exact = findings.found.terms.meter == "exact"
    heads = ["Question", "Costs when", "Asked", "Hits", "Price of a hit", "Noise scale", "In 95% of answers"]
    rows = [_row(number, tally, exact=exact) for number, tally in shown]
    made = [
        paragraph(
            "Every question names a target, the outcomes that cost. An answer in it is a hit; any other is free,"
            " however often the question is asked."
        ),
        scrolling(table(heads, rows, numbers=(2, 3, 4, 5), stacked=True), "Questions"),
    ]
    if rest:
        answers, hits = sum(tally.asked for _, tally in rest), sum(tally.hits for _, tally in rest)
        more = f"{counted(len(rest), 'question')} with {counted(answers, 'answer')} and {counted(hits, 'hit')}"
        made.append(aside(f"Not shown: {more}. These are the {len(shown)} with the most hits."))
    return made


def _row(number: int, tally: Tally, *, exact: bool) -> Sequence[object]:
    price = "1 hit" if exact and tally.hits else _few([float(f"{each:.4g}") for each in sorted(tally.prices)])
    keys = element("small", f" {counted(len(tally.keys), 'key')}") if tally.keys else ""
    return (
        element(
            "span",
            element("span", number, class_="index", id=f"q{number}"),
            element("span", foreign(tally.question), class_="code"),
            class_="question",
        ),
        foreign(tally.costs, 60),
        joined([f"{tally.asked:,}", keys]),
        f"{tally.hits:,}" if tally.hits else _NONE,
        price,
        _few(sorted(tally.scales)),
        _reach(tally),
    )


def _few(values: Sequence[float]) -> str:
    """Return a value or, of several, the range."""
    words = map(markup.number, (*values[:1], *values[-1:]))
    return " to ".join(dict.fromkeys(words)) or _NONE


def _reach(tally: Tally) -> str:
    """Return how far a published value may be off, and what a miss says of the true one."""
    parts = [f"± {_few(sorted(tally.margins))}"] if tally.margins else []
    if len(tally.misses) == 1:
        parts.append(f"a miss: {next(iter(tally.misses))}")
    return "; ".join(parts) or _NONE


def _hits(findings: Findings) -> list[Html]:
    """Return the last hits, oldest first."""
    last = list(findings.last_hits)
    if not last:
        return [paragraph("None: every answer was free.")]
    keyed = any(key_of(answer) for _, answer in last)
    heads = ["No.", "Question", *(["Key"] if keyed else []), "Outcome", "95% interval", "Received (UTC)"]
    made = [scrolling(table(heads, [_hit(*each, keyed=keyed) for each in last], numbers=(0,)), "Hits", long=True)]
    if findings.hits > len(last):
        entries = findings.found.state.number
        command = f"tct ledger show {findings.name} --json --last {entries}"
        told = f"The last {len(last):,} of {findings.hits:,} hits. All answers: "
        made.append(aside(told, element("code", foreign(command))))
    return made


def _hit(number: int, answer: Answer, *, keyed: bool) -> list[object]:
    question = element("a", number, href=f"#q{number}", title=answer.algorithm[:120])
    return [
        f"{answer.seq:,}",
        question,
        *([foreign(key_of(answer))] if keyed else []),
        element("strong", foreign(said(answer))),
        interval_of(answer) or _NONE,
        moment(answer.received),
    ]
