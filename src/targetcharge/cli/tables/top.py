"""`tct top`: the declared keys with the largest noisy numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

import targetcharge as tc
from targetcharge.cli.tables.fields import option, what_of, whole
from targetcharge.cli.tables.groups import grouped
from targetcharge.cli.tables.keys import KeyOptions, Keys
from targetcharge.cli.tables.options import NumberOptions, OutputOptions, Source, TableOptions  # noqa: TC001 - typer reads the annotations
from targetcharge.cli.tables.running import Prepared, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from targetcharge.tables.questions import What


@grouped
def command(
    source: Source,
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="How many keys to publish; each costs a hit.")] = 1,
    where: Annotated[str | None, typer.Option(help='Which rows count, such as "late > 60".')] = None,
    threshold: Annotated[float | None, typer.Option(help="Publish no number below this.")] = None,
    keys: KeyOptions,
    number: NumberOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Publish the k declared keys with the largest noisy numbers, best first, in one scan; each costs a hit.

    Example: tct top visits.parquet --by county --keys-file counties.csv -k 5
    """
    what = what_of({**({} if where is None else {"where": where}), **number.given()}, option)
    declared = Keys.of(keys)
    least = None if threshold is None else whole(threshold)
    run(source, table, output, lambda found: _prepared(found, what, declared, k, least))


def _prepared(table: tc.Table, what: What, keys: Keys, k: int, threshold: float | None) -> Prepared:
    typed = keys.typed(table)
    try:
        preview = table.preview(tc.questions.top(what, keys.columns, typed, k, threshold))
    except tc.InvalidParameter as error:
        raise keys.explained(error) from None

    def asked() -> Iterator[list[tc.Answer]]:
        yield table.top(keys.columns, typed, k, what, threshold=threshold)

    return Prepared([preview], keys.by, [], [], k, asked)
