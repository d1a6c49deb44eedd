"""`tct watch`: one test for every declared key, in one scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import targetcharge as tc
from targetcharge.cli.tables.fields import option, what_of, whole
from targetcharge.cli.tables.gathering import together
from targetcharge.cli.tables.groups import grouped
from targetcharge.cli.tables.keys import KeyOptions, Keys
from targetcharge.cli.tables.options import NumberOptions, OutputOptions, Source, TableOptions  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.tables.running import Prepared, run

if TYPE_CHECKING:
    from targetcharge.tables.questions import What


@grouped
def command(
    source: Source,
    *,
    threshold: Annotated[
        float, typer.Option(help="Publish the noisy number of a key if it is at least this; that costs.")
    ],
    where: Annotated[str | None, typer.Option(help='Which rows count, such as "late > 60".')] = None,
    keys: KeyOptions,
    number: NumberOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Test every declared key against a threshold, in one scan; pay only for the keys that reach it.

    Example: tct watch flights.parquet --where "late > 60" --by day --days 2013-01-01:2013-12-31 --threshold 150
    """
    what = what_of({**({} if where is None else {"where": where}), **number.given()}, option)
    declared = Keys.of(keys)
    run(source, table, output, lambda found: _prepared(found, what, declared, whole(threshold)))


def _prepared(table: tc.Table, what: What, keys: Keys, threshold: float) -> Prepared:
    typed = keys.typed(table)
    try:
        preview = table.preview(tc.questions.watch(what, keys.columns, typed, threshold))
    except tc.InvalidParameter as error:
        raise keys.explained(error) from None
    labels = keys.labels(typed)
    return Prepared(
        previews=[preview],
        heads=keys.by,
        labels=labels,
        names=[],
        most=len(labels),
        batches=lambda: together(table.iter_watch(what, keys.columns, typed, threshold)),
    )
