"""`tct ask`: one question from arguments, or many from a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

import targetcharge as tc
from targetcharge.cli.mistakes import Mistake
from targetcharge.cli.tables.fields import option, question_of
from targetcharge.cli.tables.groups import grouped
from targetcharge.cli.tables.options import NumberOptions, OutputOptions, Source, TableOptions  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.tables.question_files import Item, read_items
from targetcharge.cli.tables.running import Prepared, run
from targetcharge.tables.batteries import runs
from targetcharge.tables.questions import Between, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from targetcharge.tables.previewing import Preview
    from targetcharge.tables.questions import Question

_TOGETHER: Final = 25
"""Questions that are asked together: as many as share a scan. Ctrl-C waits for no more than these."""


@final
@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What costs, and what else a question is about. With none of them the noisy count is published, and costs."""

    threshold: Annotated[
        float | None, typer.Option(help="Publish the noisy number if it is at least this; that costs.")
    ] = None
    between: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Publish below, between or above; between costs. --meter renyi."),
    ] = None
    near: Annotated[
        float | None,
        typer.Option(help="Publish the side of this number; too close to call costs. --meter renyi."),
    ] = None
    prior: Annotated[
        float | None, typer.Option(help="What was known: only a change costs. With --threshold or without.")
    ] = None
    tolerance: Annotated[float | None, typer.Option(help="How far from --prior is no change.")] = None
    distinct: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Count distinct values of this column. With --threshold."),
    ] = None
    per_unit: Annotated[
        int | None, typer.Option(help="With --distinct: the most values of one unit that count; 1.")
    ] = None
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Many questions, from a .csv or .yaml file.")
    ] = None

    def given(self) -> dict[str, object]:
        """Return what was given of one question, by name."""
        return {name: value for name, value in vars(self).items() if value is not None and name != "questions"}


@grouped
def command(
    source: Source,
    where: Annotated[
        str | None, typer.Argument(help='Which rows count, such as "age > 65"; all if left out.')
    ] = None,
    *,
    asked: QuestionOptions,
    number: NumberOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Ask a table a question, or many from a file; pay only for hits.

    Example: tct ask visits.parquet "age > 65" --threshold 1200 --unit patient --epsilon 3 --delta 1e-6

    A miss is free and no error. Exit codes: 2 mistake, 3 refused or budget spent, 4 ledger, 5 computation failed,
    7 table cannot be read, 130 Ctrl-C.
    """
    items = _items(where, asked, number)
    run(source, table, output, lambda found: _prepared(found, items))


def _items(where: str | None, asked: QuestionOptions, number: NumberOptions) -> list[Item]:
    given = {**({} if where is None else {"where": where}), **asked.given(), **number.given()}
    if asked.questions is None:
        return [Item(question_of(given, option))]
    if given:
        name = next(iter(given))
        written = "WHERE" if name == "where" else option(name)
        raise Mistake(written, "not together with --questions: the file says it for each question")
    return read_items(asked.questions)


def _prepared(table: tc.Table, items: Sequence[Item]) -> Prepared:
    previews = [_check(table, item) for item in items]
    named = any(item.name for item in items)
    pairs = zip(items, previews, strict=True)
    return Prepared(
        previews=previews,
        heads=("name", "question") if named else ("question",),
        labels=[(item.name, each.question) if named else (each.question,) for item, each in pairs],
        names=[item.name for item in items] if named else [],
        most=len(items),
        batches=lambda: _batches(table, items),
    )


def _check(table: tc.Table, item: Item) -> Preview:
    """Return what a question would cost; a mistake in it names its place."""
    place = f"{item.place}: " if item.place else ""
    if isinstance(item.question, Between | Side) and table.meter.tariff.name == "exact":
        msg = (
            f"{place}only the Rényi meter has a price for between and near: ask with --meter renyi. A ledger"
            " keeps its meter, so choose another --ledger if there is one already"
        )
        raise tc.NotAllowed(msg)
    try:
        return table.preview(item.question)
    except tc.InvalidParameter as error:
        raise (Mistake(item.place, str(error)) if place else error) from None
    except tc.NotAllowed as error:
        msg = f"{place}{error}"
        raise tc.NotAllowed(msg) from None


def _batches(table: tc.Table, items: Sequence[Item]) -> Iterator[Sequence[tc.Answer]]:
    """Ask counts above thresholds together, and the others one by one: an error loses no answer before it."""
    for alike in runs([item.question for item in items]):
        asked: Sequence[Question] = alike if isinstance(alike, list) else [alike]
        for start in range(0, len(asked), _TOGETHER):
            answers = table.ask_many(asked[start : start + _TOGETHER])
            yield answers
            if answers.stopped:
                raise tc.Refused(answers.stopped)
