"""The course of `tct ask`, `watch` and `top`: open, check, ask or preview, print."""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from targetcharge.cli.tables.gathering import gather
from targetcharge.cli.tables.opening import Opening, opened
from targetcharge.cli.tables.results import Results, standing
from targetcharge.cli.tables.showing import check_output, note, show, show_previews
from targetcharge.cli.tables.stopping import stoppable
from targetcharge.errors import InvalidParameter, TargetChargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import targetcharge as tc
    from targetcharge.cli.tables.options import OutputOptions, TableOptions
    from targetcharge.tables.previewing import Preview

_CSV: Final = re.compile(r"[.][ct]sv(\.gz)?$", re.IGNORECASE)
_TEXT: Final = re.compile(r"\bis text\b|\(text\)")


@final
@dataclass(frozen=True)
class Prepared:
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


def run(source: str, table: TableOptions, output: OutputOptions, prepare: Callable[[tc.Table], Prepared]) -> None:
    """Open a table, and ask or preview what is prepared for it."""
    check_output(output)
    opening = Opening.of(source, table)
    try:
        if output.preview:
            with opening.open(trial=opening.first) as found:
                show_previews(prepare(found).previews, output)
            return
        with ExitStack() as until_printed:
            show(_asked(opening, prepare, until_printed), output)
    except InvalidParameter as error:
        if _TEXT.search(str(error)) and _CSV.search(source):
            note("columns of a CSV file are text unless they are declared, as --type age=integer")
        raise


def _asked(opening: Opening, prepare: Callable[[tc.Table], Prepared], until_printed: ExitStack) -> Results:
    """Return what came of asking. From then on until all is printed, Ctrl-C waits."""
    results: Results | None = None
    first = opening.first
    try:
        with opened(opening, prepare) as (found, prepared):
            if first:
                note(f"made the ledger {opening.ledger}")
            described = found.describe()
            stop = until_printed.enter_context(stoppable())
            outcome = gather(prepared.batches(), prepared.most, found, stop)
            unanswered = prepared.labels[len(outcome.answers) :]
            meter = standing(found, described)
            results = Results(outcome, prepared.heads, unanswered, prepared.names, meter, opening.ledger)
    except TargetChargeError as error:
        if results is None:
            raise
        results = results.ended(error)  # it broke while closing: the answers are published all the same
    return results
