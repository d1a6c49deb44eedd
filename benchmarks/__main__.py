"""Print every benchmark's tables."""

from __future__ import annotations

from rich.console import Console

from benchmarks import accounting, distinct, individual, pate, randomness, selection, sessions, streams, tables

console = Console(width=140)
for part in (accounting, selection, randomness, sessions, tables, individual, pate, distinct, streams):
    for table in part.tables():
        console.print(table)
console.print(
    "Optimal composition pays for every question asked; the others for hits only, however many questions miss."
)
