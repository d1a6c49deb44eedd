"""The course of `tct ask`, `watch` and `top`: open, check, ask or preview, print.

The first Ctrl-C ends the asking after what is under way, which wastes nothing; the second ends it at once.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from targetcharge.cli.opening import is_first, opened, opening_of, rehearsed
from targetcharge.cli.results import Results, check_output, note, show, show_previews, standing
from targetcharge.errors import ComputationFailed, InvalidParameter, TargetChargeError
from targetcharge.queries.columns import Kind
from targetcharge.sessions.batch import MOST_TOGETHER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import targetcharge as tc
    from targetcharge.cli.options import OutputOptions, TableOptions
    from targetcharge.cli.results import Checked
    from targetcharge.tables.answers import LazyAnswers
    from targetcharge.tables.opening import TableOpening

    Check = Callable[[tc.Table], Checked]

_STDERR: Final = 2
_STOPPING: Final = (
    b"\nStopping after what is under way. Ctrl-C again stops at once, and spends what that holds back.\n"
)
_CSV: Final = re.compile(r"[.][ct]sv(\.gz)?$", re.IGNORECASE)


@final
class Stop:
    """Whether the user wants to stop: after what is under way (`wanted`), or at once (`hurried`)."""

    wanted = False
    hurried = False

    def signalled(self, *_: object) -> None:
        """Remember it, and the second time stop at once. A third must not keep answers from being printed."""
        if self.wanted and not self.hurried:
            self.hurried = True
            raise KeyboardInterrupt
        if not self.wanted:
            self.wanted = True
            os.write(_STDERR, _STOPPING)  # unbuffered: a signal may come while the error stream is written to


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


def run(source: str, options: TableOptions, output: OutputOptions, check: Check) -> None:
    """Open a table, check the questions, and ask or preview them."""
    check_output(output)
    opening = opening_of(source, options)
    try:
        if output.preview:
            with (rehearsed if is_first(opening) else opened)(opening, check) as (_, checked):
                show_previews(checked.previews, output)
        else:
            with ExitStack() as until_printed:
                show(_asked(opening, check, until_printed), output)
    except InvalidParameter as error:
        if error.kind == Kind.TEXT and _CSV.search(source):
            note("columns of a CSV file are text unless they are declared, as --type age=integer")
        raise


def _asked(opening: TableOpening, check: Check, until_printed: ExitStack) -> Results:
    """Return what came of asking. From then on until all is printed, Ctrl-C waits."""
    results: Results | None = None
    first = is_first(opening)
    try:
        with opened(opening, check) as (table, checked):
            if first:
                note(f"made the ledger {opening.ledger}")
            described = table.describe()
            stop = until_printed.enter_context(stoppable())
            answers, error = _gather(checked, table, stop)
            interrupted, hurried = stop.wanted and error is None, stop.hurried
            meter = standing(table, described)
            results = Results(answers, checked, meter, str(opening.ledger), error, interrupted, hurried)
    except TargetChargeError as error:
        if results is None:
            raise
        results = replace(results, error=results.error or error)  # it broke while closing: all is published
    return results


def _gather(checked: Checked, table: tc.Table, stop: Stop) -> tuple[list[tc.Answer], TargetChargeError | None]:
    """Return all answers, and what ended the asking early; with a bar if the error stream is a terminal."""
    answers: list[tc.Answer] = []
    error: TargetChargeError | None = None
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[meter]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("scanning", total=checked.most, meter=_meter(0, table))
        try:
            for batch in checked.batches(table):
                answers += batch
                if not bar.disable:
                    meter = _meter(sum(answer.hit for answer in answers), table)
                    bar.update(task, description="asking", completed=len(answers), meter=meter)
                if stop.wanted:
                    break
        except KeyboardInterrupt:
            stop.wanted = stop.hurried = True
        except ComputationFailed as failed:  # also what an engine makes of the second Ctrl-C
            error = None if stop.hurried else failed
        except TargetChargeError as other:
            error = other
    return answers, error


def _meter(hits: int, table: tc.Table) -> str:
    return f"{hits:,} hits" + ("" if table.meter.individual else f", {table.meter.hits_left:,} hits left")


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
