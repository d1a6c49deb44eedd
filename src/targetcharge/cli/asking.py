"""The course of `tct ask`, `watch` and `top`: open, check, ask or preview, print.

What is not said of a table comes from its ledger, if there is one; a mistake makes none.
The first Ctrl-C ends the asking after what is under way, which wastes nothing; the second ends it at once.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

import targetcharge as tc
from targetcharge.cli.errors import Mistake
from targetcharge.cli.results import Results, is_new_hit, note, show, show_previews, standing
from targetcharge.errors import ComputationFailed, InvalidParameter, TargetChargeError
from targetcharge.ledger import terms_at
from targetcharge.markup import counted
from targetcharge.sessions.batch import MOST_ANSWERS
from targetcharge.sessions.opening import MEMORY
from targetcharge.tables.opening import TableOpening, new_ledger_place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.cli.options import OutputOptions, TableOptions
    from targetcharge.cli.results import Checked
    from targetcharge.tables.answers import LazyAnswers

    Check = Callable[[tc.Table], Checked]

_STDERR: Final = 2
_STOPPING: Final = (
    b"\nStopping after what is under way. Ctrl-C again stops at once, and spends what that holds back.\n"
)


_Checked = TypeVar("_Checked")


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


def opening_of(source: str, options: TableOptions) -> TableOpening:
    """Return how to open a table: as the options say, and where they are silent as its ledger does."""
    ledger = str(new_ledger_place(source)) if options.ledger is None else options.ledger
    if ledger == MEMORY:
        raise InvalidParameter("--ledger", ledger, "a file: else every command would have a fresh budget")
    if Path(ledger).is_dir():
        raise InvalidParameter("--ledger", ledger, "the path of a file, and this is a folder")
    if options.rows and options.unit is not None:
        raise Mistake("--rows", "not together with --unit: units are rows, or the values of a column")
    made = terms_at(Path(ledger)) if Path(ledger).exists() else None
    unit = tc.ROW if options.rows else options.unit
    epsilon, delta = options.epsilon, options.delta
    if made is not None:
        epsilon, delta = made.epsilon if epsilon is None else epsilon, made.delta if delta is None else delta
    needed = {"--unit COLUMN (or --rows)": unit, "--epsilon": epsilon, "--delta": delta}
    missing = [] if made else [option for option, value in needed.items() if value is None]
    if missing:
        if not Path(source).exists() and not has_magic(source):
            raise InvalidParameter("TABLE", source, "a file or folder that exists, or a pattern")
        problem = f"missing, since there is no ledger {ledger} yet that would know"
        raise Mistake(", ".join(missing), f"{problem}; tct plan shows what a budget buys")
    return TableOpening(
        source,
        unit,
        None if epsilon is None or delta is None else tc.Budget(epsilon, delta),
        hits=options.hits,
        query_epsilon=options.query_epsilon,
        meter=options.meter or "auto",
        charging=options.charging,
        ledger=ledger,
        table=options.table,
        types=types_of(options.types),
        memory=options.memory,
        new_data=options.new_data,
        made=made,
    )


def is_first(opening: TableOpening) -> bool:
    """Return whether there is no ledger yet."""
    return not Path(str(opening.ledger)).exists()


@contextmanager
def rehearsed(opening: TableOpening, check: Callable[[tc.Table], _Checked]) -> Iterator[tuple[tc.Table, _Checked]]:
    """Open a table for previews, without its ledger, and check what would be asked. Nothing is made."""
    engine = opening.engine()
    try:
        table = opening.rehearse(engine)
        yield table, check(table)
    finally:
        engine.close()


@contextmanager
def opened(opening: TableOpening, check: Callable[[tc.Table], _Checked]) -> Iterator[tuple[tc.Table, _Checked]]:
    """Open a table once what will be asked was checked: a mistake must not make a ledger."""
    engine = opening.engine()
    try:
        checked = check(opening.rehearse(engine))
    except BaseException:
        engine.close()
        raise
    with opening.open(engine, grown=True) as table:
        yield table, checked


def types_of(given: list[str] | None) -> dict[str, str]:
    """Return the kinds of columns."""
    types: dict[str, str] = {}
    for text in given or []:
        column, equals, kind = text.rpartition("=")
        if not equals or not column:
            raise InvalidParameter("--type", text, "COLUMN=KIND, such as age=number")
        types[column] = kind
    return types


def run(source: str, options: TableOptions, output: OutputOptions, check: Check) -> None:
    """Open a table, check the questions, and ask or preview them."""
    opening = opening_of(source, options)
    if output.preview:
        with (rehearsed if is_first(opening) else opened)(opening, check) as (table, checked):
            show_previews(checked.previews if is_first(opening) else checked.preview(table), output)
    else:
        with ExitStack() as until_printed:
            show(_asked(opening, check, until_printed), output)


def _asked(opening: TableOpening, check: Check, until_printed: ExitStack) -> Results:
    """Return what came of asking. From then on until all is printed, Ctrl-C waits."""
    results: Results | None = None
    first = is_first(opening)
    try:
        with opened(opening, check) as (table, checked):
            if first:
                note(f"made the ledger {opening.ledger}")
            described = table.describe()
            if first and (whole := [name for name, kind in described.declared if kind == "integer"]):
                note(f"in {', '.join(whole)} fractions are rounded to integers; as =number they are kept")
            stop = until_printed.enter_context(stoppable())
            answers, error = _gather(checked, table, stop)
            interrupted, hurried = stop.wanted and error is None, stop.hurried
            meter = standing(table, described, checked.of_a_unit)
            results = Results(answers, checked, meter, str(opening.ledger), error, interrupted, hurried)
    except TargetChargeError as error:
        if results is None:
            raise
        results = replace(results, error=results.error or error)  # it broke while closing: all is published
    return results


def _gather(
    checked: Checked, table: tc.Table, stop: Stop
) -> tuple[list[tc.Answer | None], TargetChargeError | None]:
    """Return all answers, and what ended the asking early; with a bar if the error stream is a terminal."""
    answers: list[tc.Answer | None] = []
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
                    meter = _meter(sum(map(is_new_hit, answers)), table)
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
    left = "" if table.meter.individual else f", {counted(table.meter.hits_left, 'hit')} left"
    return counted(hits, "hit") + left


def leaving(answers: LazyAnswers) -> Iterator[list[tc.Answer]]:
    """Yield the answers of a lazy batch as they leave: misses up to a hit, and so many at most."""
    batch: list[tc.Answer] = []
    for answer in answers:
        batch.append(answer)
        if answer.hit or len(batch) == MOST_ANSWERS:
            yield batch
            batch = []
    if batch:
        yield batch
    if answers.refusal is not None:
        raise answers.refusal
