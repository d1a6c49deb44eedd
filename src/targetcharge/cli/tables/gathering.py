"""Asking: batch after batch of answers that leave together, until all are there, or an error or Ctrl-C ends it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from targetcharge.cli.mistakes import spelled
from targetcharge.errors import ComputationFailed, TargetChargeError
from targetcharge.sessions.batch import MOST_TOGETHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import targetcharge as tc
    from targetcharge.cli.tables.stopping import Stop

_STOPPED: Final = "stopped by Ctrl-C"


@final
@dataclass(frozen=True)
class Outcome:
    """What came of asking.

    Attributes:
        answers: all that were published, in the order of the questions.
        error: what ended it early; None if nothing or Ctrl-C did.
        interrupted: whether Ctrl-C did.
        hurried: whether it was pressed twice: then the ledger may hold more than the answers.
    """

    answers: list[tc.Answer]
    error: TargetChargeError | None = None
    interrupted: bool = False
    hurried: bool = False

    @property
    def stopped(self) -> str:
        """Return why it ended early; empty if it did not."""
        return _STOPPED if self.interrupted else spelled(str(self.error or ""))


def gather(batches: Iterable[Sequence[tc.Answer]], total: int, table: tc.Table, stop: Stop) -> Outcome:
    """Return all answers, with a progress bar if the error stream is a terminal.

    Args:
        batches: answers that leave together: what is published at all is in a batch as a whole.
        total: how many answers there will be.
        table: whose meter to show.
        stop: asked after every batch.
    """
    answers: list[tc.Answer] = []
    error: TargetChargeError | None = None
    with _bar() as bar:
        task = bar.add_task("scanning", total=total, hits=0, left=_left(table))
        try:
            for batch in batches:
                answers += batch
                if not bar.disable:
                    hits = sum(answer.hit for answer in batch) + bar.tasks[task].fields["hits"]
                    bar.update(task, description="asking", completed=len(answers), hits=hits, left=_left(table))
                if stop.wanted:
                    break
        except KeyboardInterrupt:
            stop.wanted = stop.hurried = True
        except ComputationFailed as found:  # also what an engine makes of the second Ctrl-C
            error = None if stop.hurried else found
        except TargetChargeError as found:
            error = found
    return Outcome(answers, error, interrupted=stop.wanted and error is None, hurried=stop.hurried)


def _left(table: tc.Table) -> str:
    return "" if table.meter.individual else f", {table.meter.hits_left:,} hits left"


def together(answers: Iterable[tc.Answer]) -> Iterator[list[tc.Answer]]:
    """Yield the answers of a lazy batch as they leave: misses up to a hit, and so many at most."""
    batch: list[tc.Answer] = []
    for answer in answers:
        batch.append(answer)
        if answer.hit or len(batch) == MOST_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch


def _bar() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[hits]:,} hits{task.fields[left]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
