"""`tct meter`: how the budget of a table stands, from its ledger alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final

import typer

from targetcharge.cli.place import ledger_of
from targetcharge.cli.standing import facts, roomiest
from targetcharge.cli.tables.showing import console, note
from targetcharge.ledger.sqlite import inspect
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.ledger.sqlite import Inspection

_HELD: Final = "held back by open sessions"
_SHOWN: Final = ("budget", "unit", "meter", "targets", "charging", "hits used", "hits left", _HELD)


def command(
    file: Annotated[
        str, typer.Argument(metavar="TABLE|LEDGER", help="The table, or its ledger.", show_default=False)
    ],
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show budget, unit, hits used and left, and what a further hit costs. The table itself is not opened."""
    ledger = ledger_of(file)
    found = inspect(ledger)
    if as_json:
        typer.echo(json.dumps({**_plain(found), "ledger": str(ledger)}, indent=2))
    else:
        told = facts(found)
        rows = {
            "ledger": str(ledger),
            **{name: told[name] for name in _SHOWN},
            "a further hit costs": _cost(found),
        }
        wide = max(map(len, rows))
        for name, value in rows.items():
            console().print(f"{name:<{wide}}  {value}")
        console().print("The budget holds for all that was and will be published, however it ends.")
    if found.restored:
        note(found.restored)


def _plain(found: Inspection) -> dict[str, object]:
    """Return how the meter stands, as `tct ask --json` does, and what a hit of the declared kind costs on it."""
    terms, which = found.terms, roomiest(found)
    return {
        "unit": terms.unit,
        "meter": terms.meter,
        "charging": terms.charging,
        "query_epsilon": terms.query_epsilon,
        "guarantee": {"epsilon": terms.epsilon, "delta": terms.delta},
        "hits": found.state.sums.hits[which],
        "hits_left": found.hits_left,
        "price": _shown(found, terms.typical[which]),
        "capacity": _shown(found, terms.capacities[which]),
        "restored": found.restored or None,
    }


def _shown(found: Inspection, units: int) -> float:
    """Return units for people: hits, or κ."""
    return float(units) if found.terms.meter == "exact" else from_grains(units)


def _cost(found: Inspection) -> str:
    plain = _plain(found)
    kind = "" if found.terms.meter == "exact" else ", if it is of the declared kind"
    whose = " to each unit that contributed" if found.individual else ""
    return f"{plain['price']:.4g} of {plain['capacity']:.4g}{kind}{whose}"
