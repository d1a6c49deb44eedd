"""The meter: what was charged and what is left; the odometer; the computations' own δ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.cli.report.accountings import bought
from targetcharge.cli.report.drawing import bar, picture
from targetcharge.cli.report.elements import Html, aside, element, facts, foreign, joined, paragraph, section
from targetcharge.cli.report.targets import meters_of
from targetcharge.cli.report.words import counted, epsilon, share, small
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.accounting.meter import Odometer
    from targetcharge.cli.report.findings import Findings
    from targetcharge.ledger import Terms


def meter(findings: Findings) -> Html:
    """Return the section."""
    standing = _individual(findings.found.terms) if findings.individual else _shared(findings)
    return section("meter", "The meter", *standing, *_odometer(findings), *_delta(findings))


def _individual(terms: Terms) -> list[Html]:
    kind = "" if terms.meter == "exact" else " of the declared kind"
    return [
        paragraph(
            "Every unit has a meter of its own, with room for ",
            element("strong", counted(bought(terms, 0), "hit")),
            f"{kind}. A hit charges only the units that contributed to it, and a unit that cannot pay any more is"
            " left out of further answers. So any number of hits may be published, and the session never stops.",
        ),
        aside(
            "Which units are spent, and how many, is as secret as the data: this page does not know. Numbers"
            " and their intervals are about the units that still took part."
        ),
    ]


def _shared(findings: Findings) -> list[Html]:
    found = findings.found
    made = [
        paragraph(
            "All units share one budget. It covers so many hits, fixed when the ledger was made; once they are"
            " used up, questions are refused before the data is looked at. Free answers use nothing."
        ),
        *(_bar(findings, which) for which in range(len(found.terms.capacities))),
    ]
    if found.restored:
        made.append(aside("A restored copy counts as spent: nothing is left of it."))
    elif found.terms.alternatives:
        made.append(aside("A question is answered as long as one of the meters has room; another may be overrun."))
    return made


def _bar(findings: Findings, which: int) -> Html:
    found, terms = findings.found, findings.found.terms
    room, spent, held = terms.capacities[which], found.state.sums.spent[which], found.held.grains[which]
    left = 0 if found.restored else max(0, room - spent - held)
    parts = [("used", f"{_amount(terms, which, spent)} used")]
    if held:
        parts.append(("held", f"{_amount(terms, which, held)} held back by open sessions"))
    declared = (
        "" if terms.meter == "exact" else f": {counted(left // terms.typical[which], 'hit')} of the declared kind"
    )
    parts.append(("left", f"{_amount(terms, which, left)} left{declared}"))
    used = min(1.0, spent / room)
    said = ", ".join(words for _, words in parts)
    label = paragraph(foreign(terms.alternatives[which]), class_="label") if terms.alternatives else ""
    return element(
        "figure",
        label,
        picture(
            f"meter-{which}", "The meter", said, 12, bar([(used, "used"), (min(1 - used, held / room), "held")])
        ),
        element("ul", *(element("li", words, class_=kind) for kind, words in parts), class_="legend"),
        class_="meter",
    )


def _amount(terms: Terms, which: int, units: int) -> str:
    """Return units in words: hits on an exact meter, a share of the capacity on Rényi's."""
    return counted(units, "hit") if terms.meter == "exact" else share(units, terms.capacities[which])


def _odometer(findings: Findings) -> list[Html]:
    """Return the running figure, and what it means: it is never the guarantee."""
    head, terms = element("h3", "The odometer"), findings.found.terms
    if findings.verdict.problem:
        return [head, aside("Not shown: it would be too low where charges are missing.")]
    meters = meters_of(findings)
    if not meters:
        return [head, aside("Not shown: this version does not know the declared targets.")]
    names = terms.alternatives or ("privacy loss so far",)
    own = " No unit's loss counts for more than what was published, nor for more than its own capacity."
    return [
        head,
        facts([(foreign(name), _figure(each.odometer())) for name, each in zip(names, meters, strict=True)]),
        paragraph(
            "With a probability of at least 1 − δ the privacy loss of all that was published so far is at most"
            " this, at every moment at once: also if somebody stops, or goes on, because of it.",
            own if findings.individual else "",
        ),
        aside(
            f"It is no guarantee. That is the budget’s ε = {terms.epsilon:g}, however few hits there were: their"
            " number depends on the data, so that no smaller promise can be made from it. The odometer may be"
            " above the budget’s ε, as it has to hold at all times and not only at the end."
        ),
    ]


def _figure(odometer: Odometer) -> Html:
    strong = element("strong", f"ε = {epsilon(odometer.epsilon)}")
    return joined(["at most ", strong, f" at δ = {small(odometer.delta)}"])


def _delta(findings: Findings) -> list[Html]:
    """Return the computations' own δ, if any was reserved."""
    reserved = findings.found.terms.computation_delta
    if not reserved:
        return []
    return [
        element("h3", "The computations’ own δ"),
        paragraph(
            element("strong", small(from_grains(findings.found.state.sums.delta))),
            f" of {small(reserved)} spent. Some computations have a δ of their own, which they cost whether they"
            " hit or miss. This part of the budget’s δ was set aside for them.",
        ),
    ]
