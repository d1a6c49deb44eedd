"""How a ledger stands: what `tct ledger show` and `tct meter` tell of it, in words and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.accounting.targets.plain import in_words, kind_in_words
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.ledger import Terms
    from targetcharge.ledger.sqlite import Inspection


def declared_targets(terms: Terms) -> str:
    """Return the targets that a ledger was opened for, in words."""
    if terms.alternatives:
        return ", ".join(map(in_words, terms.alternatives))
    return ", ".join(map(kind_in_words, terms.targets))


def facts(found: Inspection) -> dict[str, str]:
    """Return all facts, in words."""
    terms, state = found.terms, found.state
    return {
        "budget": f"({terms.epsilon:g}, {terms.delta:g})",
        "unit": str(terms.unit) or "not said",
        "meter": f"{terms.meter}, query ε {terms.query_epsilon:g}, order {terms.order:.4g}",
        "targets": declared_targets(terms),
        "charging": terms.charging,
        "hits used": " / ".join(f"{hits:,}" for hits in state.sums.hits),
        "hits left": f"{found.hits_left:,}" + (" for each unit, in all" if found.individual else ""),
        "held back by open sessions": f"{found.held.count} hits",
        "releases pending": f"{found.pending}",
        "δ of computations": f"{from_grains(state.sums.delta):g} of {terms.computation_delta:g}",
        "last entry": f"{state.number}",
        "its hash": state.head.hex(),
    }


def plain(found: Inspection) -> dict[str, object]:
    """Return all facts as plain data."""
    terms, state = found.terms, found.state
    return {
        "budget": {"epsilon": terms.epsilon, "delta": terms.delta},
        "unit": {terms.unit.kind: terms.unit.name},
        "meter": terms.meter,
        "query_epsilon": terms.query_epsilon,
        "order": terms.order,
        "targets": terms.targets,
        "alternatives": terms.alternatives,
        "charging": terms.charging,
        "hits": state.sums.hits,
        "hits_left": found.hits_left,
        "held": found.held.count,
        "pending": found.pending,
        "computation_delta": {"spent": from_grains(state.sums.delta), "of": terms.computation_delta},
        "number": state.number,
        "head": state.head.hex(),
        "restored": found.restored or None,
    }


def roomiest(found: Inspection) -> int:
    """Return which meter has the most hits left: 0, unless there are alternatives."""
    terms, spent = found.terms, found.state.sums.spent
    left = [(most - used) // one for most, used, one in zip(terms.capacities, spent, terms.typical, strict=True)]
    return left.index(max(left))
