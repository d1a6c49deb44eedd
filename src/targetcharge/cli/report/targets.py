"""Targets and meters, made again from the words and numbers in a ledger's header.

>>> from targetcharge.cli.report.targets import target_of
>>> target_of("Between of 21 integers"), target_of("NotPrior(False)"), target_of("something new")
(Between(low=1, high=21, sensitivity=1), NotPrior(prior=None), None)
"""

from __future__ import annotations

import operator
import re
from functools import reduce
from typing import TYPE_CHECKING, Final

from targetcharge.accounting.budget import Budget
from targetcharge.accounting.meter import Meter, Price, Totals
from targetcharge.accounting.meter.tariff import ExactTariff, RenyiTariff, Tariff
from targetcharge.accounting.renyi import best_order_for_budget
from targetcharge.accounting.targets import Between, Boundary, Disagreement, Everything, NotPrior, QTarget, Target
from targetcharge.errors import TargetChargeError
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.accounting.kind import Kind
    from targetcharge.cli.report.findings import Findings
    from targetcharge.ledger import Terms

_NUMBER: Final = r"(-?[\d.]+(?:e[-+]?\d+)?)"
_NAME: Final = re.compile(r"(\w+)")
_WIDTH: Final = re.compile(r"Between of (\d+) integers(?: with sensitivity (\d+))?")
_BAND: Final = re.compile(rf"Between\({_NUMBER}, {_NUMBER}(?:, sensitivity=(\d+))?\)")
_CAUTION: Final = re.compile(rf"Boundary\({_NUMBER}\)")
_Q: Final = re.compile(rf"QTarget\({_NUMBER}[,)]")
_PLAIN: Final[dict[str, Target]] = {
    "NotPrior": NotPrior(prior=None),
    "Everything": Everything(),
    "Boundary": Boundary(),
    "Disagreement": Disagreement(),
    "release": NotPrior(prior=None),
    "revise": NotPrior(prior=None),
    "select": NotPrior(prior=None),
}


def target_of(words: str) -> Target | None:
    """Return a target with the price of the one that the words name; None if this version knows no such words."""
    try:
        if found := _WIDTH.fullmatch(words):
            return Between(1, int(found[1]), int(found[2] or 1))
        if found := _BAND.fullmatch(words):
            return Between(float(found[1]), float(found[2]), int(found[3] or 1))
        if found := _CAUTION.fullmatch(words):
            return Boundary(float(found[1]))
        if found := _Q.match(words):
            return QTarget(float(found[1]), frozenset())
    except TargetChargeError:
        return None
    name = _NAME.match(words)
    return _PLAIN.get(name[1]) if name else None


def targets_of(terms: Terms, which: int) -> tuple[Target, ...]:
    """Return the targets that a meter was opened for; none if one of them is not known."""
    named = (terms.alternatives[which],) if terms.alternatives else terms.targets
    found = [target_of(words) for words in named]
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
