"""`tct audit`: run your own mechanism or session script on two neighbours, and see whether its claim holds."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

import targetcharge as tc
from targetcharge.audit.sampling import black_box
from targetcharge.cli.exits import AUDIT_FAILED
from targetcharge.cli.figures import new_figure
from targetcharge.cli.source import load, value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.audit import Verdict


class Relation(StrEnum):
    """What makes two inputs neighbours."""

    ADD_REMOVE = "add-remove"
    REPLACE_ONE = "replace-one"
    ANY = "any"


def command(
    what: Annotated[
        str, typer.Argument(metavar="FILE.py:FUNCTION", help="A @tc.private algorithm, or a function of the data.")
    ],
    *,
    data0: Annotated[str, typer.Option(help="An input: a Python literal, a JSON file, or a name in FILE.py.")],
    data1: Annotated[str, typer.Option(help="A neighbour of it, likewise.")],
    epsilon: Annotated[float | None, typer.Option(help="The claimed ε, if the function does not know it.")] = None,
    delta: Annotated[float | None, typer.Option(help="The claimed δ; 0 if only ε is given.")] = None,
    relation: Annotated[
        Relation,
        typer.Option("--relation", "--neighbours", help="What makes the inputs neighbours; any: you vouch."),
    ] = Relation.ADD_REMOVE,
    runs: Annotated[int, typer.Option(help="Runs on each input.")] = 20_000,
    confidence: Annotated[float, typer.Option(help="How sure a failure is.")] = 0.999,
    seed: Annotated[int, typer.Option(help="Of everything the audit decides.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw claimed against attained δ(ε) into this file.")] = None,
) -> None:
    """Run a mechanism many times on two neighbours and bound its ε from below; exit code 6 if its claim fails.

    FUNCTION is an algorithm, or a function of the data (or of the data and `entropy`) that returns what is
    published or the session that did. Algorithms and sessions know their claim; other functions need --epsilon.
    """
    if plot is not None:
        new_figure(plot)  # whether it can be drawn, before the wait
    with redirect_stdout(sys.stderr), _progress(quiet=as_json) as progress:  # what the audited code prints
        module = load(what)
        verdict = black_box(
            module.function,
            value_of("--data0", data0, module),
            value_of("--data1", data1, module),
            _claim(epsilon, delta),
            relation=relation.value,
            runs=runs,
            confidence=confidence,
            seed=seed,
            workers=workers,
            progress=_teller(progress),
        )
    _show(verdict, module.name, as_json=as_json)
    if plot is not None:
        _draw(verdict, module.name, plot, as_json=as_json)
    if not verdict.passed:
        raise typer.Exit(AUDIT_FAILED)


def _draw(verdict: Verdict, name: str, plot: Path, *, as_json: bool) -> None:
    """Draw the picture; that it cannot be drawn does not hide that the audit failed."""
    from targetcharge.cli.audit_plot import draw  # noqa: PLC0415 - matplotlib is an extra and slow to import

    try:
        draw(verdict, name, plot)
    except tc.InvalidParameter as error:
        if verdict.passed:
            raise
        typer.echo(f"tct: {error}", err=True)
        return
    if not as_json:
        Console(soft_wrap=True, highlight=False).print(f"picture: {plot}", markup=False)


def _claim(epsilon: float | None, delta: float | None) -> tc.Budget | None:
    if epsilon is None:
        if delta is not None:
            raise tc.InvalidParameter("--delta", delta, "given with --epsilon, and only with it")
        return None
    return tc.Budget(epsilon, delta or 0.0)


def _progress(*, quiet: bool) -> Progress:
    """Return a bar on a terminal's error stream; it starts no thread, since workers are forked."""
    columns = TextColumn("running"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    return Progress(
        *columns, console=console, transient=True, auto_refresh=False, disable=quiet or not console.is_terminal
    )


def _teller(progress: Progress) -> Callable[[int, int], None]:
    task = progress.add_task("runs")

    def tell(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total, refresh=True)

    return tell


def _show(verdict: Verdict, name: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"function": name, **verdict.as_dict()}, indent=2, ensure_ascii=False))
        return
    console = Console(soft_wrap=True, highlight=False)
    style, word = ("green", "passed") if verdict.passed else ("bold red", "FAILED")
    console.print(f"[{style}]{word}[/] ", end="")
    console.print(
        f"{name} claims ε = {verdict.claimed:g} at δ = {verdict.at:g}; {verdict.runs:,} runs on each input show"
        f" that it is at least {verdict.attained:.3g}, with confidence {verdict.confidence:g}.",
        markup=False,
    )
    console.print(f"Most telling: {verdict.worst}.", markup=False)
    if verdict.passed:
        console.print("A pass is no proof: other inputs, other events and smaller excesses were not seen.")
