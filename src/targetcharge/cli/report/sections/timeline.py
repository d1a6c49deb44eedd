"""The time line: answers, hits, and what was charged against the capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge.cli.report.drawing import ACROSS, field, level, path, picture, plumb, words
from targetcharge.cli.report.elements import Html, element, foreign, joined, paragraph, section
from targetcharge.cli.report.words import counted, instant, moment, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.cli.report.findings import Findings

_BINS: Final = 100
_ROOM: Final = 4
"""Units between two bars."""

_BARS: Final = 48
_RUG: Final = 20
_STEPS: Final = 150
_GAP: Final = 34
_MOST_METERS: Final = 4
_MOST_SNAPSHOTS: Final = 12
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_INNER: Final = (0.25, 0.75)
"""Ticks that a narrow page leaves out."""


def timeline(findings: Findings) -> Html:
    """Return the section; without a picture if there is nothing on it."""
    when = findings.chronology
    if not when.times:
        return section("timeline", "Over time", paragraph("Nothing was answered yet."))
    start, end = when.ends
    told = (
        f"From {moment(start)} to {moment(end)} UTC, by the time at which questions were received."
        if when.timed
        else f"All within a minute, on {moment(min(when.times))} UTC: in the order of the answers."
    )
    figure = element("figure", _picture(findings, told), element("figcaption", *_caption(findings)))
    return section("timeline", "Over time", paragraph(told), figure)


def _picture(findings: Findings, told: str) -> Html:
    when, places = findings.chronology, findings.chronology.positions()
    charges = [charge for charge in when.charges if charge.answered]
    hit = places[np.array([charge.index for charge in charges], dtype=np.int64)]
    parts: list[Html] = []
    down = 14
    if when.timed:
        parts += _bars("Answers", "answers", places, np.array(when.counts, dtype=np.float64), down)
        down += 10 + _BARS + _GAP
        parts += _bars("Hits", "hits", hit, np.array([charge.hits for charge in charges], dtype=np.float64), down)
        down += 10 + _BARS + _GAP
    else:
        parts += _rug(hit, down)
        down += 10 + _RUG + _GAP
    parts += _steps(findings, places, down)
    bottom = down + 10 + _STEPS
    parts += _snapshots(findings, places, bottom)
    parts += _ticks(findings, bottom)
    words = f"{told} {counted(findings.answers, 'answer')}, {counted(findings.hits, 'hit')}. {_standing(findings)}"
    return picture("when", "Answers and hits over time", words, bottom + 24, *parts)


def _bars(what: str, kind: str, places: NDArray[np.float64], counts: NDArray[np.float64], down: int) -> list[Html]:
    """Return how many there were, in a hundred equal times."""
    totals = np.bincount(np.minimum((places * _BINS).astype(np.int64), _BINS - 1), counts, _BINS)
    most, width = max(1.0, totals.max()), ACROSS // _BINS
    heights = np.where(totals > 0, np.maximum(2, np.round(totals / most * _BARS)), 0).astype(int)
    moves = [
        f"M{index * width + _ROOM / 2:g} {_BARS}v{-high}h{width - _ROOM}v{high}z"
        for index, high in enumerate(heights)
        if high
    ]
    return [
        words(0, down, joined([f"{what} ", element("tspan", f"up to {most:,.0f} a bar", class_="quiet")])),
        field(down + 10, _BARS, path(moves, kind)),
        level(down + 10 + _BARS, "axis"),
    ]


def _rug(places: NDArray[np.float64], down: int) -> list[Html]:
    """Return a stroke for every hit; for those in one place only one."""
    marks = np.unique(np.round(places * (ACROSS - 2)).astype(int) + 1)
    return [
        words(0, down, joined(["Hits ", element("tspan", "each a stroke", class_="quiet")])),
        field(down + 10, _RUG, path([f"M{mark} 0v{_RUG}" for mark in marks], "stroke")),
        level(down + 10 + _RUG, "axis"),
    ]


def _steps(findings: Findings, places: NDArray[np.float64], down: int) -> list[Html]:
    """Return what was charged so far on each meter, as a share of its capacity."""
    individual, terms = findings.individual, findings.found.terms
    sums = _charged(findings, places)
    top = down + 10
    exact = terms.meter == "exact"
    heading = "Hits so far" if individual or exact else "Charged so far"
    made = [words(0, down, heading)]
    if individual:
        made.append(words(1, down, counted(findings.hits, "hit"), "quiet"))
    else:
        room = f"capacity: {counted(terms.capacities[0], 'hit')}" if exact else "capacity"
        if len(set(terms.capacities)) > 1:
            room = "capacity"
        made += [level(top, "limit"), words(1, down, room, "quiet")]
    shapes = []
    for which, (at, charged) in enumerate(sums[:_MOST_METERS]):
        full = charged[-1] if individual else terms.capacities[which]
        heights = [_STEPS - round(_STEPS * min(1.0, units / full)) if full else _STEPS for units in charged]
        moves = list(_staircase(at, heights))
        if len(sums) == 1:
            shapes.append(path([*moves, f"V{_STEPS}H0z"], "area"))
        shapes.append(path(moves, f"charged meter-{which}"))
    made += [field(top, _STEPS, *shapes), level(top + _STEPS, "axis")]
    return made


def _charged(findings: Findings, places: NDArray[np.float64]) -> list[tuple[list[int], list[int]]]:
    """Return for each meter where it was charged, from 0 to 1000, and the units charged by then."""
    charges = findings.chronology.charges
    at = np.array([places[charge.index] if len(places) else 0.5 for charge in charges])
    order = np.argsort(at, kind="stable").tolist()
    found = []
    for which in range(len(findings.found.terms.capacities)):
        where, sums, total = [0], [0], 0
        for index in order:
            total += charges[index].units[which]
            place = round(float(at[index]) * ACROSS)
            if place == where[-1] and len(where) > 1:
                sums[-1] = total
            else:
                where.append(place)
                sums.append(total)
        found.append((where, sums))
    return found


def _staircase(at: list[int], heights: list[int]) -> Iterator[str]:
    yield f"M0 {heights[0]}"
    for place, high in zip(at[1:], heights[1:], strict=True):
        yield f"H{place}V{high}"
    yield f"H{ACROSS}"


def _snapshots(findings: Findings, places: NDArray[np.float64], bottom: int) -> list[Html]:
    """Return where answers about a new snapshot of the data begin."""
    found = findings.chronology.snapshots
    made = []
    for snapshot, index in list(found.items())[1 : _MOST_SNAPSHOTS + 1]:
        along = float(places[index])
        made += [plumb(along, 20, bottom, "snapshot"), words(along, 14, f"data {snapshot}", "quiet")]
    return made


def _ticks(findings: Findings, bottom: int) -> list[Html]:
    when = findings.chronology
    start, end = when.ends
    span = end - start
    told = {_place(start + tick * span, span, timed=when.timed): tick for tick in reversed(_TICKS)}
    kinds = {tick: "quiet inner" if tick in _INNER else "quiet" for tick in _TICKS}
    return [words(tick, bottom + 18, label, kinds[tick]) for label, tick in told.items()]


def _place(value: float, span: float, *, timed: bool) -> str:
    return instant(value, span) if timed else f"no. {round(value):,}"


def _standing(findings: Findings) -> str:
    terms, sums = findings.found.terms, findings.found.state.sums
    if findings.individual:
        return "There is no common limit: every unit has a capacity of its own."
    parts = []
    for which, (spent, room) in enumerate(zip(sums.spent, terms.capacities, strict=True)):
        name = f"{terms.alternatives[which]}: " if terms.alternatives else ""
        what = f"{spent:,} of {counted(room, 'hit')}" if terms.meter == "exact" else share(spent, room)
        parts.append(f"{name}{what} charged")
    return "; ".join(parts) + "."


def _caption(findings: Findings) -> list[object]:
    made: list[object] = [foreign(_standing(findings), 1000)]
    lost, snapshots = len(findings.lost), findings.chronology.snapshots
    if lost:
        made.append(f" {counted(lost, 'reservation')} without an answer counted where the answer before it is.")
    if len(snapshots) > 1:
        made.append(
            f" The data was added to: answers are about {counted(len(snapshots), 'snapshot')} of it; a dotted line"
            " is where a new one begins."
        )
    return made
