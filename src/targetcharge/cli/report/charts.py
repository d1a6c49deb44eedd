"""Charts: pictures that are as wide as the page, with text that keeps its size.

Shapes are drawn on a field of 1000 units across that is stretched to the page; words stand on top of it, at
percentages. The template draws a `Chart`, panel below panel; here is what is on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from targetcharge import markup
from targetcharge.cli.words import instant
from targetcharge.markup import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.cli.report.history import Contents, History, Noise

_ACROSS: Final = 1000
_BINS: Final = 100
_BETWEEN_BARS: Final = 4
_MOST_METERS: Final = 4
_MOST_SNAPSHOTS: Final = 12
_TICKS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_INNER: Final = (0.25, 0.75)  # ticks that a narrow page leaves out
_REACH: Final = 6  # how many times the scale the picture of noise reaches either way
_POINTS: Final = 120


class Panel(NamedTuple):
    """A field above its axis: shapes (a style and a path each), words above it, whether its top is a limit."""

    height: int
    shapes: tuple[tuple[str, str], ...]
    heading: str
    note: str = ""
    right: str = ""
    limit: bool = False


class Words(NamedTuple):
    """Words at a place along the page, from 0 to 1: a tick, or the mark of a line, whose style it is then."""

    along: float
    words: str
    style: str = "quiet"


class Chart(NamedTuple):
    """A picture: panels from top to bottom, marks across all of them, ticks below, and the ends of its curve."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    marks: tuple[Words, ...]
    ticks: tuple[Words, ...]
    ends: tuple[float, float] = (0.0, 0.0)


def timeline(history: History) -> Chart:
    """Return answers, hits, and what was charged against the capacity, over time; there must be an answer."""
    contents = history.contents
    places, hits = contents.positions(), [charge for charge in contents.charges if charge.hits]
    hit_places = places[np.array([charge.entry for charge in hits], dtype=np.int64)]
    if contents.timed:
        counts = (
            np.array(contents.counts, dtype=np.float64),
            np.array([charge.hits for charge in hits], dtype=np.float64),
        )
        above = [_bars("Answers", places, counts[0]), _bars("Hits", hit_places, counts[1])]
    else:
        strokes = np.unique(np.round(hit_places * (_ACROSS - 2)).astype(int) + 1)  # those in one place are one
        path = "".join(f"M{place} 0v20" for place in strokes)
        above = [Panel(20, (("stroke", path),), "Hits", "each a stroke")]
    later = list(contents.snapshots.items())[1 : _MOST_SNAPSHOTS + 1]
    marks = tuple(Words(float(places[entry]), f"data {snapshot}", "snapshot") for snapshot, entry in later)
    return Chart(
        "when", "Answers and hits over time", (*above, _steps(history, places)), marks, tuple(_ticks(contents))
    )


def _bars(what: str, places: NDArray[np.float64], counts: NDArray[np.float64]) -> Panel:
    """Return how many there were, in a hundred equal times."""
    totals = np.bincount(np.minimum((places * _BINS).astype(np.int64), _BINS - 1), counts, _BINS)
    most, width, height = max(1.0, totals.max()), _ACROSS // _BINS, 48
    heights = np.where(totals > 0, np.maximum(2, np.round(totals / most * height)), 0).astype(int)
    path = "".join(
        f"M{place * width + _BETWEEN_BARS / 2:g} {height}v{-high}h{width - _BETWEEN_BARS}v{high}z"
        for place, high in enumerate(heights)
        if high
    )
    return Panel(height, ((what.lower(), path),), what, f"up to {most:,.0f} a bar")


def _steps(history: History, places: NDArray[np.float64]) -> Panel:
    """Return what was charged so far on each meter, as a share of its capacity."""
    inspection, terms, height = history.inspection, history.inspection.terms, 150
    exact = terms.meter != "renyi"
    if inspection.individual:
        right = counted(history.contents.hits, "hit")
    elif exact and len(set(terms.capacities)) == 1:
        right = f"capacity: {counted(terms.capacities[0], 'hit')}"
    else:
        right = "capacity"
    shapes = []
    for which, capacity in enumerate(terms.capacities[:_MOST_METERS]):
        charged = _charged(history.contents, which, places)
        full = charged[-1][1] if inspection.individual else capacity
        heights = [height - round(height * min(1.0, grains / full)) if full else height for _, grains in charged]
        steps = (f"H{place}V{high}" for (place, _), high in zip(charged[1:], heights[1:], strict=True))
        line = f"M0 {heights[0]}{''.join(steps)}H{_ACROSS}"
        if len(terms.capacities) == 1:
            shapes.append(("area", f"{line}V{height}H0z"))
        shapes.append((f"charged meter-{which}", line))
    heading = "Hits so far" if inspection.individual or exact else "Charged so far"
    return Panel(height, tuple(shapes), heading, "", right, not inspection.individual)


def _charged(contents: Contents, which: int, places: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return where a meter was charged, from 0 to 1000, and the grains charged by then."""
    at = np.array([places[charge.entry] if len(places) else 0.5 for charge in contents.charges])
    sums, total = [(0, 0)], 0
    for charge in np.argsort(at, kind="stable").tolist():
        total += contents.charges[charge].grains[which]
        place = round(float(at[charge]) * _ACROSS)
        if place == sums[-1][0] and len(sums) > 1:
            sums.pop()
        sums.append((place, total))
    return sums


def _ticks(contents: Contents) -> Iterator[Words]:
    """Return moments or numbers of answers; the same one only once."""
    start, end = contents.ends
    span = end - start
    values = {tick: start + tick * span for tick in reversed(_TICKS)}
    texts = {instant(at, span) if contents.timed else f"no. {round(at):,}": tick for tick, at in values.items()}
    for words, tick in texts.items():
        yield Words(tick, words, "quiet inner" if tick in _INNER else "quiet")


def curve(noise: Noise) -> Chart:
    """Return the chance of a hit, by how far the true number is from the threshold."""
    reach, height = noise.distance(_REACH), 200
    chances = [noise.at_least((2 * point / _POINTS - 1) * reach) for point in range(_POINTS + 1)]
    first, *rest = (
        f"{round(_ACROSS * point / _POINTS)} {height * (1 - value):.4g}" for point, value in enumerate(chances)
    )
    line = f"M{first}L{' '.join(rest)}"
    shapes, note = (("area", f"{line}V{height}H0z"), ("charged", line)), f"at scale {markup.number(noise.scale)}"
    panel = Panel(height, shapes, "Chance of reaching it", note, "100%", limit=True)
    away = markup.number(reach)
    ticks = Words(0, f"{away} below"), Words(0.5, "threshold"), Words(1, f"{away} above")
    marks, ends = (Words(0.5, "", "limit"),), (chances[0], chances[-1])
    return Chart("curve", "Chance of reaching the threshold", (panel,), marks, ticks, ends)
