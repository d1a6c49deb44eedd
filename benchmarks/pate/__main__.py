"""Print the tables about private labels."""

from __future__ import annotations

from rich.console import Console

from benchmarks.pate import tables

console = Console(width=140)
for table in tables():
    console.print(table)
