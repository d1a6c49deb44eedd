"""What the commands on tables have in common: their options."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final, final

import typer

from targetcharge.cli.meters import MeterName  # noqa: TC001 - typer reads the annotations

_NUMBER: Final = "What is counted"
_TABLE: Final = "Table and budget (a ledger that exists knows unit, ε, δ, query ε, meter and charging)"
_OUTPUT: Final = "Output"

Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A Parquet, CSV or DuckDB file, a folder, or a pattern.", show_default=False
    ),
]


class Charging(StrEnum):
    """Whose budget a hit is charged to."""

    SHARED = "shared"
    INDIVIDUAL = "individual"


@final
@dataclass(frozen=True, kw_only=True)
class NumberOptions:
    """Which number a question is about, if not how many units there are."""

    total: Annotated[
        str | None,
        typer.Option("--sum", metavar="COLUMN", help="Add up this column.", rich_help_panel=_NUMBER),
    ] = None
    lower: Annotated[
        float | None, typer.Option(help="With --sum: the least a unit contributes.", rich_help_panel=_NUMBER)
    ] = None
    upper: Annotated[
        float | None, typer.Option(help="With --sum: the most a unit contributes.", rich_help_panel=_NUMBER)
    ] = None
    grid: Annotated[
        str | None,
        typer.Option(help="With --sum: round to multiples of this, such as 0.01.", rich_help_panel=_NUMBER),
    ] = None

    def given(self) -> dict[str, object]:
        """Return what was given, by name."""
        named = {"sum": self.total, "lower": self.lower, "upper": self.upper, "grid": self.grid}
        return {name: value for name, value in named.items() if value is not None}


@final
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is opened."""

    unit: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Whose privacy is protected: all rows with the same value of this column.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    rows: Annotated[
        bool, typer.Option("--rows", help="Instead of --unit: every row alone.", rich_help_panel=_TABLE)
    ] = False
    epsilon: Annotated[
        float | None, typer.Option(help="ε of all that will ever be published.", rich_help_panel=_TABLE)
    ] = None
    delta: Annotated[
        float | None, typer.Option(help="δ of all that will ever be published.", rich_help_panel=_TABLE)
    ] = None
    query_epsilon: Annotated[
        float | None,
        typer.Option(
            help="ε of one computation; 0.1 for a new ledger if left out.",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None
    meter: Annotated[
        MeterName | None,
        typer.Option(
            help="How hits add up: exact (of a new ledger) buys the most; renyi also prices --between and --near.",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None
    charging: Annotated[
        Charging | None,
        typer.Option(
            help="One budget for all units (shared, of a new ledger), or one for each (individual).",
            show_default=False,
            rich_help_panel=_TABLE,
        ),
    ] = None
    ledger: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The file that keeps the budget; beside the table.", rich_help_panel=_TABLE
        ),
    ] = None
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of a DuckDB file with several tables.", rich_help_panel=_TABLE),
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=KIND",
            help="What a CSV file's column is: integer, number, text, date, time or boolean; text if left out.",
            rich_help_panel=_TABLE,
        ),
    ] = None
    new_data: Annotated[
        bool,
        typer.Option(
            "--new-data", help="The data has changed, and the same budget covers it.", rich_help_panel=_TABLE
        ),
    ] = False
    memory: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT", help="The most to use before spilling to disk.", rich_help_panel=_TABLE),
    ] = None


@final
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How answers are printed."""

    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.", rich_help_panel=_OUTPUT)] = False
    preview: Annotated[
        bool,
        typer.Option(
            "--preview", help="Ask nothing: tell what it would cost and how sharp it is.", rich_help_panel=_OUTPUT
        ),
    ] = False
