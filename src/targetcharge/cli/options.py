"""Options that several commands have, in groups.

A command's parameter that is a dataclass stands for one option for each of its fields.

>>> @dataclass(frozen=True, kw_only=True)
... class Size:
...     width: int = 3
...     height: int = 4
>>> @grouped
... def area(name: str, *, size: Size) -> None:
...     print(name, size.width * size.height)
>>> list(inspect.signature(area).parameters)
['name', 'width', 'height']
>>> area(name="door", width=2, height=5)
door 10
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, final, get_type_hints

import typer

from targetcharge.cli.errors import Mistake
from targetcharge.cli.questions import whole

if TYPE_CHECKING:
    from collections.abc import Callable

_in_number = partial(typer.Option, rich_help_panel="What is counted")
_in_table = partial(
    typer.Option,
    rich_help_panel="Table and budget (a ledger that exists knows its terms)",
)
_in_output = partial(typer.Option, rich_help_panel="Output")

Source = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A Parquet, CSV or DuckDB file, a folder, or a pattern.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MeterName = Literal["auto", "exact", "renyi", "sparse"]
Charging = Literal["shared", "individual"]


@final
@dataclass(frozen=True, kw_only=True)
class NumberOptions:
    """Which number a question is about, if not how many units there are."""

    sum: Annotated[str | None, _in_number(metavar="COLUMN", help="Add up this column.")] = None
    lower: Annotated[float | None, _in_number(help="With --sum: the least a unit contributes.")] = None
    upper: Annotated[float | None, _in_number(help="With --sum: the most a unit contributes.")] = None
    grid: Annotated[str | None, _in_number(help="With --sum: round to multiples of this, such as 0.01.")] = None


@final
@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is opened."""

    unit: Annotated[
        str | None,
        _in_table(
            metavar="COLUMN", help="Whose privacy is protected: all rows with the same value of this column."
        ),
    ] = None
    rows: Annotated[bool, _in_table("--rows", help="Instead of --unit: every row alone.")] = False
    epsilon: Annotated[float | None, _in_table(help="ε of all that will ever be published.")] = None
    delta: Annotated[float | None, _in_table(help="δ of all that will ever be published.")] = None
    query_epsilon: Annotated[
        float | None,
        _in_table(help="ε of one computation; what fits the hits if left out.", show_default=False),
    ] = None
    hits: Annotated[
        int | None,
        _in_table(
            help="How many hits a new ledger covers, with the least noise; 10 if left out.", show_default=False
        ),
    ] = None
    meter: Annotated[
        MeterName | None,
        _in_table(
            metavar="METER",
            help="sparse: the least noise, for --threshold and what is always paid; exact: also --prior; renyi:"
            " also --between and --side; auto: what fits the rest, for a new ledger.",
            show_default=False,
        ),
    ] = None
    charging: Annotated[
        Charging | None,
        _in_table(
            metavar="WHOSE",
            help="shared: one budget for all units, as a new ledger has; individual: one for each.",
            show_default=False,
        ),
    ] = None
    ledger: Annotated[
        str | None, _in_table(metavar="FILE", help="The file that keeps the budget; beside the table.")
    ] = None
    table: Annotated[str | None, _in_table(metavar="NAME", help="Of a DuckDB file with several tables.")] = None
    types: Annotated[
        list[str] | None,
        _in_table(
            "--type",
            metavar="COLUMN=KIND",
            help="What a CSV file's column is: number, text, date, time, boolean, or integer, which rounds; text,"
            " or what the ledger knows, if left out.",
        ),
    ] = None
    new_data: Annotated[
        bool, _in_table("--new-data", help="The data has changed, and the same budget covers it.")
    ] = False
    memory: Annotated[str | None, _in_table(metavar="AMOUNT", help="The most to use before spilling to disk.")] = (
        None
    )


@final
@dataclass(frozen=True, kw_only=True)
class CallOptions:
    """How questions are asked."""

    again: Annotated[
        bool,
        typer.Option("--again", help="Ask, and pay, also where the answer is published: else that is told, free."),
    ] = False


MaxHits = Annotated[
    int | None,
    typer.Option(min=0, metavar="NUMBER", help="Stop after so many new hits.", show_default=False),
]


@final
@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How answers are printed."""

    as_json: Annotated[bool, _in_output("--json", help="Print JSON.")] = False
    as_csv: Annotated[bool, _in_output("--csv", help="Print CSV.")] = False
    preview: Annotated[
        bool, _in_output("--preview", help="Ask nothing: tell what it would cost and how sharp it is.")
    ] = False

    def __post_init__(self) -> None:
        """Refuse two formats at once."""
        if self.as_json and self.as_csv:
            raise Mistake("--json", "not together with --csv")
        if self.preview and self.as_csv:
            raise Mistake("--preview", "not together with --csv: a preview is text, or JSON")


def given(*groups: object, **more: object) -> dict[str, Any]:
    """Return the options of groups, and others, that were given, by name."""
    named = [(name, value) for values in (more, *map(vars, groups)) for name, value in values.items()]
    return {name: _tidy(value) for name, value in named if value is not None}


def _tidy(value: object) -> object:
    """Return numbers as people write them."""
    if isinstance(value, tuple):
        return tuple(map(_tidy, value))
    return whole(value) if isinstance(value, float) else value


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are taken apart for the command line, and put together for it."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parts = inspect.signature(groups[name]).parameters.values() if name in groups else [parameter]
        kinds = get_type_hints(groups.get(name, command), include_extras=True)
        parameters += [part.replace(annotation=kinds[part.name], kind=Parameter.KEYWORD_ONLY) for part in parts]

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - as the options are declared
        for name, group in groups.items():
            given[name] = group(**{part.name: given.pop(part.name) for part in fields(group)})
        command(**given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    return run
