"""Print the tables of robust streams."""

from __future__ import annotations

from rich.console import Console

from benchmarks.streams import tables

for table in tables():
    Console(width=140).print(table)
