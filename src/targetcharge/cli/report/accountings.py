"""Accountings: what the session of a ledger would have cost under each of them. Computed anew, from its terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar, final

from targetcharge.accounting.baselines import optimal_epsilon, optimal_hits
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.catalogue import catalogue
from targetcharge.accounting.exact import exact_epsilon, exact_hits
from targetcharge.accounting.meter import Meter, Price, Totals
from targetcharge.accounting.meter.at_least import GumbelTariff, sparse_tariff
from targetcharge.accounting.meter.tariff import ExactTariff, RenyiTariff, Tariff, first_move, kind_of_all
from targetcharge.accounting.offsets import gumbel_epsilon
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.renyi import (
    best_order_for_budget,
    best_order_for_hits,
    epsilon_of_total,
    renyi_epsilon,
    renyi_hits,
)
from targetcharge.accounting.targets import NOT_PRIOR, Boundary, Kind, NotPrior, Target
from targetcharge.accounting.targets.plain import plain, priced_like
from targetcharge.errors import TooLarge
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.accounting.meter import Odometer
    from targetcharge.cli.report.history import Contents
    from targetcharge.ledger import Terms
    from targetcharge.ledger.state import Sums

_Figure = TypeVar("_Figure")


class Row(NamedTuple):
    """What one accounting makes of the session; None is too large to compute.

    The ε of so many hits, or of every answer; how many the budget would have bought; whether our meter works so.
    """

    name: str
    epsilon: float | None
    number: int
    buys: int | None
    ours: bool = False
    every: bool = False


@final
@dataclass(frozen=True)
class OpenedMeter:
    """A meter of a ledger, made again from the terms: which of them, if there are alternatives."""

    terms: Terms
    which: int

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return targets priced like those that it was opened for; none if this version does not know one."""
        terms = self.terms
        declared = (terms.alternatives[self.which],) if terms.alternatives else terms.targets
        targets = [priced_like(target) for target in declared]
        return tuple(target for target in targets if target is not None) if None not in targets else ()

    @property
    def budget(self) -> Budget:
        """Return the part of the budget that it has for hits."""
        terms = self.terms
        return Budget(terms.epsilon, (terms.delta - terms.computation_delta) / max(1, len(terms.alternatives)))

    @property
    def kind(self) -> Kind:
        """Return what its exact accounting must cover; there must be targets."""
        return kind_of_all(self.terms.query_epsilon, self.targets, carried=self.terms.offset is not None)

    @property
    def bought(self) -> int:
        """Return how many hits of the declared kind the budget bought."""
        return self.terms.capacities[self.which] // self.terms.typical[self.which]

    def odometer(self, sums: Sums) -> Odometer | None:
        """Return the running figure; None if this version does not know what the meter was opened for."""
        terms, which = self.terms, self.which
        if terms.meter == "exact" and not self.targets:
            return None
        meters, individual = max(1, len(terms.alternatives)), terms.charging == "individual"
        budget = Budget(terms.epsilon, terms.delta)
        meter = Meter(budget, self._tariff(), terms.computation_delta, meters, individual=individual)
        meter.load(Totals(sums.spent[which], sums.hits[which], sums.delta))
        return meter.odometer()

    def _tariff(self) -> Tariff:
        terms, query = self.terms, self.terms.query_epsilon
        capacity, typical = terms.capacities[self.which], terms.typical[self.which]
        if terms.meter == "sparse" and terms.offset is not None:
            return sparse_tariff(self.budget, terms.offset, capacity)
        if terms.noise == "gumbel":
            return GumbelTariff(query, capacity, terms.order, Price(typical, 1.0, (query, terms.noise)))
        if terms.meter == "renyi":
            price = Price(typical, from_grains(typical), (terms.order,))
            return RenyiTariff(capacity, terms.order, price, terms.offset)
        # The header has the first meter's order. Others have the best of their own, as at the opening.
        order = best_order_for_budget(self.kind, query, self.budget) if self.which else terms.order
        return ExactTariff(
            query, self.kind, capacity, order, Price(typical, 1.0, (query, self.kind)), terms.offset
        )

    def rows(self, contents: Contents) -> list[Row]:
        """Return what each accounting that applies makes of the session; none if targets are not known."""
        if self.terms.meter == "sparse":
            return self._beside_sparse(contents.answers)
        if not self.targets or not self.bought:
            return []
        exact = None if any(isinstance(target, Boundary) for target in self.targets) else self._exact()
        rows = [exact]
        natural = self.terms.noise == "laplace"  # else it is no ε-DP computation that the others account for
        rows += [self._renyi(), self._paper()] if natural else []
        if exact and contents.hits and self.terms.charging == "individual":
            epsilon = self._exact_epsilon(contents.hits)
            rows.append(Row("exact, one budget for all", epsilon, contents.hits, self.bought))
        rows += [self._plain(contents)] if natural else []
        return [row for row in rows if row]

    @property
    def _first_move(self) -> float:
        """Return the ε that an offset adds to bounds of computations that carry it."""
        return 0.0 if self.terms.offset is None else self.terms.offset.offset_epsilon / 2

    def _beside_sparse(self, answers: int) -> list[Row]:
        """Return the ledger's own row, and those of Laplace noise with the same deviation and no offset."""
        terms, hits, delta = self.terms, self.bought, self.budget.delta
        query = 2 * math.asinh(1 / (math.sqrt(2) * (terms.standard_deviation or math.inf)))
        rows: list[Row | None] = [Row("sparse", terms.epsilon, hits, hits, ours=True)]
        if delta:
            targets = (plain(NotPrior(prior=False)),)
            natural = replace(terms, meter="", query_epsilon=query, offset=None, targets=targets)
            rows += OpenedMeter(natural, self.which).of_hits()
        if answers:
            epsilon, buys = (
                _tried(optimal_epsilon, query, answers, delta),
                _tried(optimal_hits, query, self.budget),
            )
            rows.append(Row("plain composition", epsilon, answers, buys, every=True))
        return [row for row in rows if row]

    def of_hits(self) -> list[Row | None]:
        """Return the accountings that pay for hits of ε-DP computations."""
        return [self._exact(), self._renyi(), self._paper()]

    def _exact(self) -> Row:
        terms, hits = self.terms, self.bought
        epsilon = self._exact_epsilon(hits)
        if terms.meter == "exact":  # the hits were counted so that it is no more than the budget's
            return Row("exact", terms.epsilon if epsilon is None else epsilon, hits, hits, ours=True)
        quick = hits <= _most_hits(self.kind)
        buys = _tried(exact_hits, terms.query_epsilon, self.budget, self.kind) if quick else None
        return Row("exact", epsilon, hits, buys)

    def _exact_epsilon(self, hits: int) -> float | None:
        """Return ε' of so many hits; None of several kinds at once, for which only hits can be computed."""
        query, delta, kind = self.terms.query_epsilon, self.budget.delta, self.kind
        if self.terms.noise == "gumbel":
            return gumbel_epsilon(query, hits, delta)
        if len(self.targets) > 1 or hits > _most_hits(kind):
            return None
        if self.terms.offset is not None:
            return _tried(Coupling.half(self.terms.offset, kind).epsilon, hits, delta)
        return _tried(exact_epsilon, query, hits, delta, kind.q, disagreement=kind.disagreement)

    def _renyi(self) -> Row:
        ours, query, hits = self.terms.meter == "renyi", self.terms.query_epsilon, self.bought
        priced = self.targets[0] if len(self.targets) == 1 else self.kind
        buys = hits if ours else _tried(renyi_hits, priced, query, self.budget)
        if self.terms.offset is None:
            return Row("Rényi", _tried(renyi_epsilon, priced, query, hits, self.budget.delta), hits, buys, ours)
        priced = priced.with_offset() if isinstance(priced, Target) else priced
        order = best_order_for_hits(priced, query, hits, self.budget.delta)
        total = first_move(self.terms.offset, order) + hits * priced.kappa(order, query)
        epsilon = epsilon_of_total(total, order, self.budget.delta)
        return Row("Rényi", epsilon, hits, buys if ours else None, ours)

    def _paper(self) -> Row | None:
        """Return the best of the paper's forms; of several targets the dearest."""
        query, budget, hits = self.terms.query_epsilon, self.budget, self.bought
        forms = [[form for form in catalogue(target) if form.of_paper] for target in self.targets]
        if not all(forms):
            return None
        costs = [[_tried(form.epsilon, query, hits, budget.delta) for form in of_target] for of_target in forms]
        bought = [[_tried(form.hits, query, budget) for form in of_target] for of_target in forms]
        least = [min((cost for cost in of_target if cost is not None), default=math.inf) for of_target in costs]
        most = [max((hits for hits in of_target if hits is not None), default=-1) for of_target in bought]
        epsilon, buys = self._first_move + max(least), min(most)
        return Row(
            "the paper’s theorem", None if epsilon == math.inf else epsilon, hits, None if buys < 0 else buys
        )

    def _plain(self, contents: Contents) -> Row | None:
        """Return plain composition of what was published; a revision is of an outcome that is paid for already."""
        alone, delta = contents.alone, self.terms.delta - self.terms.computation_delta
        count = alone.total()
        if not count:
            return None
        largest, most = max(alone)
        if largest < math.inf:
            buys = _tried(optimal_hits, largest, self.budget)
        else:  # n·ρ + 2√(n·ρ·ln 1/δ) is at most ε
            beyond = -math.log(self.budget.delta)
            buys = int((math.sqrt(beyond + self.budget.epsilon) - math.sqrt(beyond)) ** 2 / most)
        if len(alone) == 1 and largest < math.inf:
            optimal = _tried(optimal_epsilon, largest, count, delta)
            if optimal is not None:
                return Row("plain composition", self._first_move + optimal, count, buys, every=True)
        # Of different kinds: the sum of their ε, or of their ρ; whichever is smaller.
        basic = sum(epsilon * times for (epsilon, _), times in alone.items())
        rho = sum(rho * times for (_, rho), times in alone.items())
        concentrated = rho + 2 * math.sqrt(rho * math.log(1 / delta)) if delta else math.inf
        epsilon = self._first_move + min(basic, concentrated)
        return Row("plain composition", None if epsilon == math.inf else epsilon, count, buys, every=True)


def _most_hits(kind: Kind) -> int:
    """Return for how many hits exact accounting takes seconds, not minutes."""
    return 5_000 if kind == NOT_PRIOR else 500


def _tried(compute: Callable[..., _Figure], *given: object, **more: object) -> _Figure | None:
    """Return a figure; None if it is too large to compute."""
    try:
        return compute(*given, **more)
    except TooLarge:
        return None
