"""`tct count`, `sum`, `mean`, `quantile`, `histogram`: numbers that are published whatever they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, final

import typer

import targetcharge as tc
from targetcharge.cli.asking import run
from targetcharge.cli.keys import KeyOptions, WrittenKeys
from targetcharge.cli.options import CallOptions, OutputOptions, Source, TableOptions, grouped
from targetcharge.cli.questions import Item, whole
from targetcharge.cli.results import Checked
from targetcharge.cli.tables import Where, checked_items, checked_keys

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from targetcharge.tables.preview import Preview
    from targetcharge.tables.questions import Single

Column = Annotated[str, typer.Argument(metavar="COLUMN", help="A column of numbers.", show_default=False)]
Rows = Annotated[
    str | None, typer.Argument(metavar="WHERE", help='Which rows count, such as "age > 65"; all if left out.')
]


@final
@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Between what the numbers lie."""

    lower: Annotated[
        float, typer.Option(help="What is less counts as this: of a sum a unit's total, else each row.")
    ]
    upper: Annotated[float, typer.Option(help="What is more counts as this.")]
    grid: Annotated[str | None, typer.Option(help="Round to multiples of this, such as 0.01.")] = None

    @property
    def given(self) -> tuple[float, float]:
        """Return both as people write them."""
        return whole(self.lower), whole(self.upper)


@grouped
def count(
    source: Source, where: Rows = None, *, call: CallOptions, table: TableOptions, output: OutputOptions
) -> None:
    """Publish the noisy number of units with a row that counts; it costs a hit, whatever it is.

    Example: tct count visits.parquet "age > 65" --unit patient --epsilon 3 --delta 1e-6
    """
    _ask(source, tc.questions.count(where), call, table, output)


@grouped
def total(
    source: Source,
    column: Column,
    where: Rows = None,
    *,
    bounds: Bounds,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Publish a noisy sum of what units contribute, each between the bounds; it costs a hit.

    Example: tct sum visits.parquet cost --lower 0 --upper 500
    """
    asked = tc.questions.sum(column, *bounds.given, where, grid=bounds.grid)
    _ask(source, tc.questions.count(asked), call, table, output)


@grouped
def mean(
    source: Source,
    column: Column,
    where: Rows = None,
    *,
    bounds: Bounds,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Publish the noisy mean of one number for each unit, the mean of its rows; it costs a hit.

    Example: tct mean visits.parquet cost --lower 0 --upper 500
    """
    _ask(source, tc.questions.mean(column, *bounds.given, where, grid=bounds.grid), call, table, output)


@grouped
def quantile(
    source: Source,
    column: Column,
    where: Rows = None,
    *,
    q: Annotated[list[float], typer.Option("-q", help="A share of the units, such as 0.5; each costs a hit.")],
    bounds: Bounds,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Publish about where shares of the units lie, by one number for each, the mean of its rows.

    Example: tct quantile visits.parquet cost -q 0.5 -q 0.9 --lower 0 --upper 500
    """
    question = tc.questions.quantiles(column, q, *bounds.given, where, grid=bounds.grid)

    def checked(opened: tc.Table) -> Checked:
        prepared = opened.prepare(question)
        labels = [(float(share),) for share in question.shares]

        def batches(asked: tc.Table) -> Iterator[Sequence[tc.Answer]]:
            answers = asked.ask_quantiles(prepared, again=call.again)
            yield answers
            if answers.refusal is not None:
                raise answers.refusal

        def preview(asked: tc.Table) -> Sequence[Preview]:
            return [asked.preview(prepared)]

        many = len(labels), ("q",), labels
        return Checked(preview(opened), preview, batches, *many, by_key=True, selects=True)

    run(source, table, output, checked)


@grouped
def histogram(
    source: Source,
    *,
    where: Where = None,
    per_unit: Annotated[int, typer.Option(help="How many keys a unit counts for at most.")] = 1,
    keys: KeyOptions,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Publish the noisy counts of all declared keys at once, in one scan, for one hit.

    Example: tct histogram visits.parquet --by county --keys-file counties.csv
    """
    declared = WrittenKeys.of(keys)
    question = tc.questions.histogram(where, declared.by, None, per_unit)
    run(source, table, output, lambda opened: checked_keys(opened, declared, question, again=call.again))


def _ask(source: str, question: Single, call: CallOptions, table: TableOptions, output: OutputOptions) -> None:
    run(source, table, output, lambda opened: checked_items(opened, [Item(question, again=call.again)]))
