"""Robust streams: what is paid for, how fast they are, how many changes they survive.

python -m benchmarks.streams          # tables
python -m benchmarks.streams.plot     # docs/images/streams.svg, in minutes; STREAM_UPDATES shortens it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.streams.changes import changes_table
from benchmarks.streams.speed import speed_table
from benchmarks.streams.survival import survival_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table


def tables() -> Iterator[Table]:
    """Yield the tables."""
    yield speed_table()
    yield survival_table()
    yield changes_table()
