"""The course of `tct ask`, `watch` and `top`: open, check, ask or preview, print.

The first Ctrl-C ends the asking after what is under way, which wastes nothing; the second ends it at once.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from targetcharge.cli.opening import Opening, opened
from targetcharge.cli.results import Results, check_output, note, show, show_previews, standing
from targetcharge.errors import ComputationFailed, InvalidParameter, TargetChargeError
from targetcharge.sessions.batch import MOST_TOGETHER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import targetcharge as tc
    from targetcharge.cli.options import OutputOptions, TableOptions
    from targetcharge.tables.answers import LazyAnswers
    from targetcharge.tables.preview import Preview

_STDERR: Final = 2
_STOPPING: Final = (
    b"\nStopping after what is under way. Ctrl-C again stops at once, and spends what that holds back.\n"
)
_CSV: Final = re.compile(r"[.][ct]sv(\.gz)?$", re.IGNORECASE)
_TEXT: Final = re.compile(r"\bis text\b|\(text\)")


@final
@dataclass(frozen=True)
class Checked:
    """Questions that were checked against a table, and not asked yet.

    Attributes:
        previews: what they would cost.
        heads: what tells their answers apart: see `Results`.
        labels: of each question a value for each head; none if it is not known before the answers.
        names: of the questions, if they have any.
        most: how many answers there will be at most.
        batches: asks them, and yields answers that leave together.
    """

    previews: Sequence[Preview]
    heads: tuple[str, ...]
    labels: Sequence[tuple[object, ...]]
    names: Sequence[str]
    most: int
    batches: Callable[[], Iterable[Sequence[tc.Answer]]]


@final
class Stop:
    """Whether the user wants to stop.

    Attributes:
        wanted: after what is under way.
        hurried: at once.
    """

    def __init__(self) -> None:
        """Go on."""
        self.wanted = False
        self.hurried = False

    def signalled(self, *_: object) -> None:
        """Remember it, and the second time stop at once. A third must not keep answers from being printed."""
        if self.wanted and not self.hurried:
            self.hurried = True
            raise KeyboardInterrupt
        if not self.wanted:
            self.wanted = True
            os.write(
                _STDERR, _STOPPING
            )  # unbuffered: a signal may come while the error stream is being written to


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Take Ctrl-C for a wish, while questions are asked. A process that ignores it goes on ignoring it."""
    stop = Stop()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, stop.signalled)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)


def run(source: str, table: TableOptions, output: OutputOptions, check: Callable[[tc.Table], Checked]) -> None:
    """Open a table, check the questions, and ask or preview them."""
    check_output(output)
    opening = Opening.of(source, table)
    try:
        if output.preview:
            with opening.open(trial=opening.first) as trial:
                show_previews(check(trial).previews, output)
            return
        with ExitStack() as until_printed:
            show(_asked(opening, check, until_printed), output)
    except InvalidParameter as error:
        if _TEXT.search(str(error)) and _CSV.search(source):
            note("columns of a CSV file are text unless they are declared, as --type age=integer")
        raise


def _asked(opening: Opening, check: Callable[[tc.Table], Checked], until_printed: ExitStack) -> Results:
    """Return what came of asking. From then on until all is printed, Ctrl-C waits."""
    results: Results | None = None
    first = opening.first
    try:
        with opened(opening, check) as (table, checked):
            if first:
                note(f"made the ledger {opening.ledger}")
            described = table.describe()
            stop = until_printed.enter_context(stoppable())
            answers, error = _gather(checked, table, stop)
            interrupted, hurried = stop.wanted and error is None, stop.hurried
            results = Results(
                answers,
                checked.heads,
                checked.labels[len(answers) :],
                checked.names,
                standing(table, described),
                opening.ledger,
                error,
                interrupted,
                hurried,
            )
    except TargetChargeError as error:
        if results is None:
            raise
        results = replace(results, error=results.error or error)  # it broke while closing: all is published
    return results


def _gather(checked: Checked, table: tc.Table, stop: Stop) -> tuple[list[tc.Answer], TargetChargeError | None]:
    """Return all answers, and what ended the asking early; with a bar if the error stream is a terminal."""
    answers: list[tc.Answer] = []
    error: TargetChargeError | None = None
    with _bar() as bar:
        task = bar.add_task("scanning", total=checked.most, hits=0, left=_left(table))
        try:
            for batch in checked.batches():
                answers += batch
                if not bar.disable:
                    hits = sum(answer.hit for answer in batch) + bar.tasks[task].fields["hits"]
                    bar.update(task, description="asking", completed=len(answers), hits=hits, left=_left(table))
                if stop.wanted:
                    break
        except KeyboardInterrupt:
            stop.wanted = stop.hurried = True
        except ComputationFailed as failed:  # also what an engine makes of the second Ctrl-C
            error = None if stop.hurried else failed
        except TargetChargeError as other:
            error = other
    return answers, error


def _left(table: tc.Table) -> str:
    return "" if table.meter.individual else f", {table.meter.hits_left:,} hits left"


def leaving(answers: LazyAnswers) -> Iterator[list[tc.Answer]]:
    """Yield the answers of a lazy batch as they leave: misses up to a hit, and so many at most."""
    batch: list[tc.Answer] = []
    for answer in answers:
        batch.append(answer)
        if answer.hit or len(batch) == MOST_TOGETHER:
            yield batch
            batch = []
    if batch:
        yield batch
    if answers.refusal is not None:
        raise answers.refusal


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
