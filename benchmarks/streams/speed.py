"""Updates per second, with a published value after each: against the copies alone, in turns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from rich.table import Table

import targetcharge as tc
from benchmarks.timing import medians
from targetcharge.randomness import SystemEntropy
from targetcharge.streaming import DistinctValues, RobustStream, SecondMoment, apache
from targetcharge.streaming.copies import seeded_copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.streaming.copies import Copies, Make, SketchKind

_PLENTY: Final = 30_000.0
"""Over the copies, an ε' under which nothing ends: this is about speed."""


def speed_table(updates: int = 50_000) -> Table:
    """Return the table for 30 and 300 copies."""
    table = Table("sketch", "copies", "updates/s", "the copies alone", "share of time in private consensus")
    table.title, table.title_justify = f"{updates:,} updates, a value published after each", "left"
    cases: list[tuple[str, SketchKind | Make, int, int]] = [
        ("DistinctValues(256)", DistinctValues(256), 30, updates),
        ("SecondMoment(61)", SecondMoment(61), 30, updates),
        ("SecondMoment(122)", SecondMoment(122), 30, updates),
        ("apache.hll(11)", apache.hll(11), 30, updates // 10),
        ("apache.theta(10)", apache.theta(10), 30, updates // 10),
        ("DistinctValues(256)", DistinctValues(256), 300, updates // 5),
    ]
    for name, kind, copies, count in cases:
        items = np.arange(count)
        calls = {"stream": partial(_stream, kind, copies, items), "alone": partial(_alone, kind, copies, items)}
        times = medians({**calls, **_making(kind, copies)}, repeats=3)
        stream, alone = times["stream"] - times["make stream"], times["alone"] - times["make copies"]
        share = max(0.0, 1 - alone / stream)
        table.add_row(name, str(copies), f"{count / stream:,.0f}", f"{count / alone:,.0f}", f"{share:.0%}")
    return table


def _making(kind: SketchKind | Make, copies: int) -> dict[str, Callable[[], object]]:
    return {"make stream": partial(_new_stream, kind, copies), "make copies": partial(_new_copies, kind, copies)}


def _new_stream(kind: SketchKind | Make, copies: int) -> RobustStream:
    return RobustStream(kind, copies, tc.Budget(min(500.0, _PLENTY / copies**1.5), 1e-6), smallest=100.0)


def _new_copies(kind: SketchKind | Make, copies: int) -> Copies:
    entropy = SystemEntropy()
    return kind.copies(copies, entropy) if hasattr(kind, "copies") else seeded_copies(kind, copies, entropy)


def _stream(kind: SketchKind | Make, copies: int, items: np.ndarray) -> None:
    if len(_new_stream(kind, copies).follow(items)) < len(items):
        msg = "the budget ended on the way"
        raise RuntimeError(msg)


def _alone(kind: SketchKind | Make, copies: int, items: np.ndarray) -> None:
    made = _new_copies(kind, copies)
    made.follow(made.check(items, None), None)
