"""What trials came to: how many were tried, and what was lost, free or wrong."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

SHOWN = 20


@dataclass
class Tally:
    """Counts of one kind of trial.

    Attributes:
        tried: how many trials, or comparisons, were made.
        lost: charges, answers and pending releases that were there and are gone.
        free: hits that were published without being charged.
        wrong: anything else that is not as it must be.
        notes: what was found, with the seed that finds it again.
    """

    tried: int = 0
    lost: int = 0
    free: int = 0
    wrong: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def clean(self):
        return self.lost == self.free == self.wrong == 0

    def note(self, column, count, what):
        """Add to a column, with a reason; nothing if the count is 0."""
        if count:
            setattr(self, column, getattr(self, column) + count)
            self.notes.append(f"{column}: {what}")

    def add(self, other, seed):
        for column in ("tried", "lost", "free", "wrong"):
            setattr(self, column, getattr(self, column) + getattr(other, column))
        self.notes += [f"seed {seed}: {note}" for note in other.notes]


def soak(kinds, seconds, first_seed):
    """Run one trial of each kind after the other, again and again, for so long; return their tallies by name.

    `kinds` maps a name to a function of a seed and an empty folder that returns a Tally.
    """
    tallies = {name: Tally() for name in kinds}
    seed, end = first_seed, time.monotonic() + seconds
    while seed == first_seed or time.monotonic() < end:
        for name, trial in kinds.items():
            if seed != first_seed and time.monotonic() >= end:
                break
            with TemporaryDirectory() as folder:
                tallies[name].add(tally_of(trial, seed, Path(folder)), seed)
        seed += 1
    return tallies


def tally_of(trial, seed, folder):
    """Return the tally of a trial; one that breaks is wrong."""
    try:
        return trial(seed, folder)
    except Exception as error:  # noqa: BLE001 - told in the table, and below it
        found = Tally(tried=1)
        found.note("wrong", 1, "".join(traceback.format_exception(error, limit=-3)).strip())
        return found


def table_of(tallies):
    """Return the tallies as text: a line for each kind of trial, and below it what was found."""
    width = max(map(len, tallies)) + 2
    lines = [f"{'trials':<{width}}" + "".join(f"{head:>10}" for head in ("tried", "lost", "free", "wrong"))]
    for name, tally in tallies.items():
        counts = (tally.tried, tally.lost, tally.free, tally.wrong)
        lines.append(f"{name:<{width}}" + "".join(f"{count:>10,}" for count in counts))
    for name, tally in tallies.items():
        lines += [f"{name}, {note}" for note in tally.notes[:SHOWN]]
        if len(tally.notes) > SHOWN:
            lines.append(f"{name}: {len(tally.notes) - SHOWN:,} more")
    return "\n".join(lines)
