"""Opening: from what the owner declares to meters, terms and a ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.accounting.meter import Meter
from targetcharge.accounting.targets import NotPrior, Target
from targetcharge.accounting.targets.plain import kind, plain
from targetcharge.errors import InvalidParameter
from targetcharge.ledger import Ledger, MemoryLedger, SqliteLedger, Terms, Unit, terms_at
from targetcharge.sessions.priced import canonical_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.accounting.targets.plain import PlainTarget

MEMORY: Final = ":memory:"

_PLAIN: Final = NotPrior(prior=False)


@final
@dataclass(frozen=True)
class Declaration:
    """What the owner of the data declares when opening a session; checked when made.

    Attributes:
        budget: the (ε, δ) of everything the session will ever publish.
        query_epsilon: the ε of one computation: the largest for the exact meter, a typical one for Rényi's.
        meter: "exact" or "renyi".
        targets: examples of the targets that will be asked.
        alternatives: targets of which each has a meter of its own; none for one meter.
        computation_delta: the part of the budget's δ that is kept for the computations' own δ.
        unit: whose privacy is protected.
        individual: whether each unit has a meter of its own.
    """

    budget: Budget
    query_epsilon: float
    meter: str
    targets: tuple[Target, ...]
    alternatives: tuple[Target, ...]
    computation_delta: float
    unit: Unit = field(default_factory=Unit)
    individual: bool = False

    @classmethod
    def of(
        cls,
        budget: Budget,
        query_epsilon: float,
        meter: str,
        targets: Sequence[Target] | Target | None,
        alternatives: Sequence[Target] | None,
        computation_delta: float,
        unit: str | Unit = "",
        *,
        individual: bool = False,
    ) -> Declaration:
        """Return what was declared, refusing what makes no sense by name."""
        check_budget(budget)
        checks.choice(meter, "meter", ("exact", "renyi"))
        query_epsilon = checks.query_epsilon(query_epsilon)
        computation_delta = checks.delta(computation_delta, "computation_delta")
        chosen = (targets,) if isinstance(targets, Target) else _targets("targets", targets, (_PLAIN,))
        rivals = tuple(map(canonical_target, _targets("alternatives", alternatives, ())))
        if alternatives is not None and len(rivals) < 2:
            raise InvalidParameter("alternatives", alternatives, "at least two targets")
        if rivals and targets is not None:
            raise InvalidParameter(
                "targets", targets, "left out where alternatives are given: they are the targets"
            )
        if not isinstance(unit, str | Unit):
            raise InvalidParameter("unit", unit, "a text that says whose privacy is protected")
        if individual and rivals:
            raise InvalidParameter("alternatives", alternatives, "left out where each unit has a meter of its own")
        whose = Unit("words", unit) if isinstance(unit, str) else unit
        return cls(budget, query_epsilon, meter, chosen, rivals, computation_delta, whose, individual)

    def meters(self, order: float | None = None) -> tuple[Meter, ...]:
        """Return the meters: one, or one for each alternative.

        Args:
            order: the Rényi order, if it was chosen before.
        """
        common: dict[str, Any] = {
            "computation_delta": self.computation_delta,
            "alternatives": max(1, len(self.alternatives)),
            "individual": self.individual,
        }
        budget, epsilon = self.budget, self.query_epsilon
        if self.meter == "exact":
            groups = self.alternatives or (self.targets,)
            return tuple(Meter.exact(budget, epsilon, targets, **common) for targets in groups)
        targets = self.alternatives or self.targets[:1]
        meters = tuple(Meter.renyi(budget, epsilon, target, order=order, **common) for target in targets)
        if len(meters) > 1 and order is None:
            # One order for all; the smallest of the best, where each of the prices is finite.
            return self.meters(min(meter.tariff.order for meter in meters))
        return meters

    def terms(self, meters: tuple[Meter, ...]) -> Terms:
        """Return what the ledger's header fixes."""
        return Terms(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta,
            meter=self.meter,
            query_epsilon=self.query_epsilon,
            computation_delta=self.computation_delta,
            targets=self._kinds(),
            alternatives=tuple(map(plain, self.alternatives)),
            order=meters[0].tariff.order,
            capacities=tuple(meter.tariff.capacity for meter in meters),
            typical=tuple(meter.tariff.typical.grains for meter in meters),
            unit=self.unit,
            charging="individual" if self.individual else "shared",
        )

    def _kinds(self) -> tuple[PlainTarget, ...]:
        """Return the kinds of target that decide the terms: all on the exact meter, the first on Rényi's."""
        if self.alternatives:
            return ()
        deciding = self.targets if self.meter == "exact" else self.targets[:1]
        return tuple(sorted({kind(target) for target in deciding}))


def open_ledger(
    where: str | PathLike[str],
    declared: Declaration,
    keep: int | None,
    restored: tuple[int, str] | None,
    made: Terms | None = None,
) -> Ledger:
    """Return the ledger that a session was given, with its meters; what it was made for is read if not known."""
    if keep is not None:
        keep = checks.hits(keep, "transcript")
    path = file_of(where)
    if path is None:
        if restored is not None:
            raise InvalidParameter("restored", restored, "left out: a ledger in memory is never restored")
        return MemoryLedger(declared.meters(), keep)
    if keep is not None:
        raise InvalidParameter("transcript", keep, "left out: a ledger file keeps the whole transcript")
    head = _head(restored)
    made, meters = made or terms_at(path), declared.meters()
    terms = declared.terms(meters)
    if made is not None and made.order != terms.order and not made.differences(terms):
        # Another version chose another order: the ledger's stands. Other terms are refused by the ledger.
        meters = declared.meters(made.order)
        terms = declared.terms(meters)
    return SqliteLedger(path, terms, meters, head)


def file_of(where: str | PathLike[str]) -> Path | None:
    """Return the path of a ledger; None if it is in memory.

    Raises:
        InvalidParameter: if it is neither.
    """
    if not _is_path(where):
        address = isinstance(where, str) and "://" in where
        given = where.partition("://")[0] + "://…" if isinstance(where, str) and address else where
        raise InvalidParameter("ledger", given, f"{MEMORY!r} or the path of a file")
    if where == MEMORY:
        return None
    if Path(where).is_dir():
        raise InvalidParameter("ledger", where, "the path of a file, and this is a folder")
    return Path(where)


def _is_path(where: object) -> bool:
    return isinstance(where, str | PathLike) and bool(str(where)) and "://" not in str(where)


def _targets(name: str, given: Sequence[Target] | None, otherwise: tuple[Target, ...]) -> tuple[Target, ...]:
    """Return the targets that were given, or what stands for none."""
    if given is None:
        return otherwise
    if not isinstance(given, list | tuple) or not given:
        raise InvalidParameter(name, given, "a list of targets, such as [tc.NotPrior(False)]")
    for member in given:
        if not isinstance(member, Target):
            raise InvalidParameter(name, member, "a list of targets, such as [tc.NotPrior(False)]")
    return tuple(given)


def _head(restored: tuple[int, str] | None) -> tuple[int, str] | None:
    match restored:
        case None | (int(), str()):
            return restored
        case _:
            raise InvalidParameter("restored", restored, "the number and the hash of the last published entry")
