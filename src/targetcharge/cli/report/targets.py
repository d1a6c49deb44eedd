"""Targets and meters, made again from a ledger's header."""

from __future__ import annotations

import operator
from functools import reduce
from typing import TYPE_CHECKING

from targetcharge.accounting.budget import Budget
from targetcharge.accounting.meter import Meter, Price, Totals
from targetcharge.accounting.meter.tariff import ExactTariff, RenyiTariff, Tariff
from targetcharge.accounting.renyi import best_order_for_budget
from targetcharge.accounting.targets.plain import priced_like
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.accounting.targets import Kind, Target
    from targetcharge.cli.report.findings import Findings
    from targetcharge.ledger import Terms


def targets_of(terms: Terms, which: int) -> tuple[Target, ...]:
    """Return the targets that a meter was opened for; none if one of them is not known."""
    named = (terms.alternatives[which],) if terms.alternatives else terms.targets
    found = [priced_like(known) for known in named]
    return tuple(target for target in found if target is not None) if None not in found else ()


def share_of(terms: Terms) -> Budget:
    """Return the part of the budget that one meter has for hits."""
    count = max(1, len(terms.alternatives))
    return Budget(terms.epsilon, (terms.delta - terms.computation_delta) / count)


def kind_of(terms: Terms, which: int) -> Kind | None:
    """Return what the exact accounting of a meter must cover; None if it is not known."""
    kinds = [target.kind(terms.query_epsilon) for target in targets_of(terms, which)]
    return reduce(operator.or_, kinds) if kinds else None


def meters_of(findings: Findings) -> list[Meter]:
    """Return the meters as they stand; none if this version does not know what they were opened for."""
    terms, sums = findings.found.terms, findings.found.state.sums
    meters = []
    for which, (spent, hits) in enumerate(zip(sums.spent, sums.hits, strict=True)):
        tariff = _tariff(terms, which)
        if tariff is None:
            return []
        meter = Meter(
            Budget(terms.epsilon, terms.delta),
            tariff,
            terms.computation_delta,
            max(1, len(terms.alternatives)),
            individual=terms.charging == "individual",
        )
        meter.load(Totals(spent, hits, sums.delta))
        meters.append(meter)
    return meters


def _tariff(terms: Terms, which: int) -> Tariff | None:
    capacity, typical = terms.capacities[which], terms.typical[which]
    if terms.meter == "renyi":
        return RenyiTariff(capacity, terms.order, Price(typical, from_grains(typical), (terms.order,)))
    kind = kind_of(terms, which)
    if kind is None:
        return None
    query = terms.query_epsilon
    # The header has the first meter's order. Others have the best of their own, as when the session was opened.
    order = best_order_for_budget(kind, query, share_of(terms)) if which else terms.order
    return ExactTariff(query, kind, capacity, order, Price(typical, 1.0, (query, kind)))
