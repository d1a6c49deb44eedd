"""`tct attack` and `tct certify`: researchers attack our own sessions and our own prices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from targetcharge.audit import attack as search
from targetcharge.audit import certify as tried
from targetcharge.audit.exact import opener
from targetcharge.cli.exits import AUDIT_FAILED
from targetcharge.cli.meters import MeterName
from targetcharge.cli.plan import TargetName, target_of
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from targetcharge.audit import Verdict

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Seed = Annotated[int, typer.Option(help="The search is reproducible from it.")]


def attack(
    *,
    query_epsilon: Annotated[float, typer.Option(help="ε of one computation.")] = 1.0,
    hits: Annotated[int, typer.Option(help="Hits that the session covers.")] = 1,
    delta: Annotated[float, typer.Option(help="δ of the session.")] = 0.02,
    meter: Annotated[MeterName, typer.Option(help="How the session adds up.")] = MeterName.EXACT,
    target: Annotated[TargetName, typer.Option(help="The declared target.")] = TargetName.NOT_PRIOR,
    width: Annotated[int | None, typer.Option(help="Integers in the band, for --target between.")] = None,
    q: Annotated[float | None, typer.Option(help="The declared q, for --target q.")] = None,
    restarts: Annotated[int | None, typer.Option(help="Strategies to start from; else two for each tool.")] = None,
    steps: Annotated[int, typer.Option(help="Changes to try on each.")] = 10,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Search for the game that tells the most through real sessions, and compare it with the meter's claim.

    Every path of every game is enumerated on two neighbouring datasets; exit code 6 if one tells more than that.
    """
    opened = opener(query_epsilon, hits, delta, meter=meter.value, targets=(target_of(target, width, q),))
    found = search(opened, epsilons=(query_epsilon,), restarts=restarts, steps=steps, seed=seed)
    _tell([found], as_json=as_json)


def certify(
    *,
    epsilon: Annotated[float, typer.Option(help="ε of one computation.")],
    target: Annotated[TargetName, typer.Option(help="What a hit is.")] = TargetName.NOT_PRIOR,
    width: Annotated[int | None, typer.Option(help="Integers in the band, for --target between.")] = None,
    q: Annotated[float | None, typer.Option(help="The declared q, for --target q.")] = None,
    order: Annotated[float, typer.Option(help="Rényi order at which to try the price.")] = 2.0,
    pairs: Annotated[int, typer.Option(help="Random pairs, beside a dense family.")] = 200_000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Try a target's q and price on many neighbouring pairs and show the worst; exit code 6 if one is beyond."""
    chosen = target_of(target, width, q)
    found = [tried(chosen, epsilon, pairs=pairs, seed=seed)]
    try:
        found.append(tried(chosen, epsilon, order, pairs=pairs, seed=seed))
    except InvalidParameter as error:
        if error.name != "order" or not order > 1:
            raise
        typer.echo(f"the price is not tried: {error}", err=True)
    _tell(found, as_json=as_json)


def _tell(verdicts: list[Verdict], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([verdict.as_dict() for verdict in verdicts], indent=2))
    else:
        console = Console(soft_wrap=True)
        for verdict in verdicts:
            console.print(str(verdict), style="green" if verdict.passed else "red", markup=False, highlight=False)
    if not all(verdict.passed for verdict in verdicts):
        raise typer.Exit(AUDIT_FAILED)
