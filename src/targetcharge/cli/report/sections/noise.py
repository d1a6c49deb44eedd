"""What the noise means: how wide it is, how often it misleads, and how to read an interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from targetcharge import markup
from targetcharge.cli.report.drawing import ACROSS, field, level, path, picture, plumb, words
from targetcharge.cli.report.elements import Html, aside, element, joined, paragraph, section, table
from targetcharge.cli.report.words import chance, counted
from targetcharge.mechanisms.noise import CONFIDENCE, NoiseLaw

if TYPE_CHECKING:
    from targetcharge.cli.report.findings import Findings
    from targetcharge.cli.report.tallies import Noise

_TIMES: Final = (1, 2, 3, 5, 10)
"""How many times the noise's scale a number is away from the threshold; as in previews."""

_MOST: Final = 6
_REACH: Final = 6
"""How many times the scale the picture reaches either way."""

_POINTS: Final = 120
_TOP: Final = 24
_HIGH: Final = 200
_HEADS: Final = ("Distance from the threshold", "If below: false alarm", "If above: missed")


def noise(findings: Findings) -> Html:
    """Return the section."""
    title = "What the noise means"
    found = sorted(findings.noises.values(), key=lambda each: (-each.answers, each.scale))
    if not found:
        return section("noise", title, aside("No answer so far tells the scale of its noise."))
    return section(
        "noise",
        title,
        paragraph(
            "Answers come from noisy numbers: discrete Laplace noise, drawn exactly, whose scale is the most that"
            " one unit can change, divided by ε. A number far from its threshold is on the right side almost"
            " surely; close to it, chance decides."
        ),
        element("div", _curve(found[0]), *map(_card, found[:_MOST]), class_="cards"),
        *_notes(findings, found[_MOST:]),
        element("h3", "How to read an interval"),
        paragraph(
            "A 95% interval holds the true number in at least 95% of all answers, published or not: of a hundred"
            " intervals expect up to five that do not. Among published hits alone it can be more, because"
            " what is published for being high was selected for being high, most of all where the true number"
            " lies just below the threshold. A miss says something, too: with “up to 180”, a true number above"
            " 180 would have been published in at least 95% of cases."
        ),
    )


def _notes(findings: Findings, rest: list[Noise]) -> list[Html]:
    notes = []
    if rest:
        answers = counted(sum(each.answers for each in rest), "answer")
        notes.append(f"{counted(len(rest), 'more scale')}, of {answers}, not shown.")
    if findings.unscaled:
        notes.append(f"{counted(findings.unscaled, 'answer')} came from algorithms that tell no scale.")
    if any(tally.question.startswith("distinct(") for tally in findings.tallies.values()):
        notes.append(
            "Distinct values are estimated by a sketch, whose own error comes on top. Intervals include it."
        )
    return [aside(" ".join(notes))] if notes else []


def _card(each: Noise) -> Html:
    """Return what one scale means."""
    if each.whole:
        wide = markup.number(NoiseLaw(1 / each.scale).margin())
    else:
        wide = f"about {markup.number(each.scale * -math.log(1 - CONFIDENCE))}"
    return element(
        "div",
        element("h3", f"Scale {markup.number(each.scale)}"),
        paragraph(
            f"{counted(each.answers, 'answer')}; the noise is within ",
            element("strong", f"± {wide}"),
            f" in {CONFIDENCE:.0%} of draws.",
        ),
        table(_HEADS, [_row(each, times) for times in _TIMES], numbers=range(len(_HEADS))),
        class_="card",
    )


def _row(each: Noise, times: int) -> list[str]:
    """Return a distance, and the chance that a number so far below, or above, is said to be on the other side."""
    distance: float = times * each.scale
    if each.whole:
        distance = max(1, round(distance))
    return [markup.number(distance), chance(_hit(each, -distance)), chance(_missed(each, distance))]


def _hit(each: Noise, distance: float) -> float:
    """Return the chance that a number so far above the threshold, or below if negative, is said to reach it."""
    if each.whole:
        return NoiseLaw(1 / each.scale).at_least(-round(distance))
    tail = math.exp(-abs(distance) / each.scale) / 2
    return tail if distance < 0 else 1 - tail


def _missed(each: Noise, distance: float) -> float:
    """Return the chance that a number so far above the threshold is not said to reach it."""
    if each.whole:
        return NoiseLaw(1 / each.scale).at_least(round(distance) + 1)
    return math.exp(-distance / each.scale) / 2


def _curve(each: Noise) -> Html:
    """Return a picture of the chance of a hit, by how far the true number is from the threshold."""
    reach: float = _REACH * each.scale
    if each.whole:
        reach = max(1, round(reach))
    away, bottom = markup.number(reach), _TOP + _HIGH
    chances = [_hit(each, (2 * index / _POINTS - 1) * reach) for index in range(_POINTS + 1)]
    first, *rest = (
        f"{round(ACROSS * index / _POINTS)} {_HIGH * (1 - value):.4g}" for index, value in enumerate(chances)
    )
    line = f"M{first}L{' '.join(rest)}"
    scale = element("tspan", f"at scale {markup.number(each.scale)}", class_="quiet")
    drawn = picture(
        "curve",
        "Chance of reaching the threshold",
        f"From {chance(chances[0])} at {away} below the threshold to {chance(chances[-1])} at {away} above it.",
        bottom + 30,
        words(0, 14, joined(["Chance of reaching it ", scale])),
        words(1, 14, "100%", "quiet"),
        level(_TOP, "limit"),
        plumb(0.5, _TOP, bottom, "limit"),
        field(_TOP, _HIGH, path([line, f"V{_HIGH}H0z"], "area"), path([line], "charged")),
        level(bottom, "axis"),
        words(0, bottom + 18, f"{away} below", "quiet"),
        words(0.5, bottom + 18, "threshold", "quiet"),
        words(1, bottom + 18, f"{away} above", "quiet"),
    )
    return element("figure", drawn, class_="card curve")
