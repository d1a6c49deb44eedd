"""Opening: from what the owner declares to meters, terms and a ledger."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.accounting.budget import Budget, check_budget, warn_of_large
from targetcharge.accounting.meter import Meter
from targetcharge.accounting.meter.choosing import (
    LARGEST_WITH_OFFSET,
    ExactSession,
    GumbelSession,
    RenyiSession,
    SessionToOpen,
    rates,
)
from targetcharge.accounting.meter.meter import budget_for_hits, share_of_budget
from targetcharge.accounting.offsets import OffsetNoise, least_noise
from targetcharge.accounting.offsets.least_noise import best_offset
from targetcharge.accounting.targets import NotPrior, Target
from targetcharge.accounting.targets.plain import kind, plain
from targetcharge.errors import InvalidParameter, Parameter
from targetcharge.ledger import Ledger, MemoryLedger, SqliteLedger, Terms, Unit, terms_at
from targetcharge.mechanisms.noise import draw_offset
from targetcharge.randomness import SystemEntropy
from targetcharge.sessions.priced import canonical_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.randomness.laws import Noise

MEMORY: Final = ":memory:"

METERS: Final = ("exact", "renyi", "sparse")

HITS: Final = 10
"""That a new ledger of a table covers, where the owner says neither how many nor which query ε."""

_PLAIN: Final = NotPrior(prior=False)


@final
@dataclass(frozen=True)
class Declaration:
    """What the owner of the data declares when opening a session; checked when made.

    Attributes:
        budget: the (ε, δ) of everything the session will ever publish.
        query_epsilon: the ε of one computation: the largest for the exact and the sparse meter, a typical one for
            Rényi's; None to choose it for the hits.
        meter: "exact", "renyi" or "sparse".
        targets: examples of the targets that will be asked.
        alternatives: targets of which each has a meter of its own; none for one meter.
        computation_delta: the part of the budget's δ that is kept for the computations' own δ.
        unit: whose privacy is protected.
        individual: whether each unit has a meter of its own.
        hits: how many to cover; None for what the query ε buys.
        offset_epsilon: the rate of the offset that counts carry on an exact or a Rényi meter; None for none.
        counts: whether it is asked for counts: then new ledgers get the offset, or the law, with the least noise.
        offset: the laws and rates of the secret offset and the noise beside it, once they are chosen.
        noise: the law of the noise of counts without an offset.
        settled: whether they are chosen.
    """

    budget: Budget
    query_epsilon: float | None
    meter: str
    targets: tuple[Target, ...]
    alternatives: tuple[Target, ...]
    computation_delta: float
    unit: Unit = field(default_factory=Unit)
    individual: bool = False
    hits: int | None = None
    offset_epsilon: float | None = None
    counts: bool = False
    offset: OffsetNoise | None = None
    noise: Noise = "laplace"
    settled: bool = False

    @classmethod
    def of(
        cls,
        budget: Budget,
        query_epsilon: float | None,
        meter: str,
        targets: Sequence[Target] | Target | None,
        alternatives: Sequence[Target] | None,
        computation_delta: float,
        unit: str | Unit = "",
        *,
        individual: bool = False,
        hits: int | None = None,
        offset_epsilon: float | None = None,
        counts: bool = False,
    ) -> Declaration:
        """Return what was declared, refusing what makes no sense by name."""
        check_budget(budget)
        checks.choice(meter, "meter", METERS)
        if hits is not None:
            hits = checks.hits(hits)
        if meter == "sparse":
            _check_sparse(targets, alternatives, offset_epsilon, individual=individual)
        if offset_epsilon is not None:
            _check_offset(budget, offset_epsilon, query_epsilon)
        if query_epsilon is not None or not (counts or hits is not None or meter == "sparse"):
            query_epsilon = checks.query_epsilon(query_epsilon)  # type: ignore[arg-type]  # None is refused by name
        computation_delta = checks.delta(computation_delta, "computation_delta")
        chosen = (targets,) if isinstance(targets, Target) else _targets("targets", targets, (_PLAIN,))
        rivals = tuple(map(canonical_target, _targets("alternatives", alternatives, ())))
        if alternatives is not None and len(rivals) < 2:
            raise InvalidParameter("alternatives", alternatives, "at least two targets")
        if rivals and targets is not None:
            raise InvalidParameter(
                "targets", targets, "left out where alternatives are given: they are the targets"
            )
        if rivals and hits is not None:
            raise InvalidParameter("hits", hits, "left out where alternatives are given: each has hits of its own")
        if not isinstance(unit, str | Unit):
            raise InvalidParameter("unit", unit, "a text that says whose privacy is protected")
        if individual and rivals:
            raise InvalidParameter("alternatives", alternatives, "left out where each unit has a meter of its own")
        whose = Unit("words", unit) if isinstance(unit, str) else unit
        declared = budget, query_epsilon, meter, chosen, rivals, computation_delta, whose, individual
        at_least = counts and individual and meter == "exact" and targets is None
        return cls(*declared, hits, offset_epsilon, counts, noise="gumbel" if at_least else "laplace")

    def chosen(self, made: Terms | None, path: Path | None = None) -> Declaration:
        """Return what was declared, with the laws and rates of a ledger, or the ones to make it with.

        Args:
            made: what the ledger was made for; None if it is to be made.
            path: of the ledger.

        Raises:
            NotAllowed: if it was made with another meter.
        """
        if self.settled:
            return self
        if made is not None and path is not None:
            made.check(replace(made, meter=self.meter), path)  # before anything is priced on it
        return replace(self._chosen() if made is None else self._as_made(made), settled=True)

    def _chosen(self) -> Declaration:
        """Return what was declared, with the laws and rates to make a ledger with."""
        if self.meter == "sparse":
            return self._sparse()
        query, hits = self.query_epsilon, self._wanted
        if self.noise == "gumbel":
            chosen = rates(GumbelSession(self._left), query_epsilon=query, hits=hits)
            return replace(self, query_epsilon=chosen.query_epsilon, hits=chosen.hits)
        if self.alternatives:
            return self if query is not None else replace(self, query_epsilon=self._query_of_alternatives())
        session = self._session(self._left, self.targets)
        if self.offset_epsilon is not None:
            assert query is not None  # noqa: S101 - checked when it was declared
            if self.hits is not None and not session.affords(query, self.hits, self.offset_epsilon):
                expected = f"fewer at query ε {query:g} beside an offset with rate {self.offset_epsilon:g}"
                raise InvalidParameter("hits", self.hits, expected)
            return replace(self, offset=OffsetNoise(self.offset_epsilon, 2 * query))
        offset = self.counts and not self.individual
        if not offset and hits is None:
            return self  # nothing else is to be chosen
        chosen = rates(session, query_epsilon=query, hits=hits, offset=offset)
        return replace(self, query_epsilon=chosen.query_epsilon, offset=chosen.offset, hits=chosen.hits)

    def _session(self, budget: Budget, targets: tuple[Target, ...]) -> SessionToOpen:
        return ExactSession(budget, targets) if self.meter == "exact" else RenyiSession(budget, targets[0])

    def _query_of_alternatives(self) -> float:
        """Return the largest query ε at which every alternative's meter covers as many hits as usual."""
        share = share_of_budget(self._left, len(self.alternatives))
        sessions = [self._session(share, (target,)) for target in self.alternatives]
        return min(rates(session, hits=HITS).query_epsilon for session in sessions)

    @property
    def _wanted(self) -> int | None:
        """Return how many hits a new ledger is to cover; None for what the query ε buys."""
        return HITS if self.hits is None and self.query_epsilon is None else self.hits

    @property
    def _left(self) -> Budget:
        """Return the budget that is left for hits."""
        return budget_for_hits(self.budget, self.computation_delta)

    def _as_made(self, made: Terms) -> Declaration:
        """Return what was declared as an existing ledger has it: what was left out is the ledger's."""
        covered = made.capacities[0] // made.typical[0]
        if self.hits is not None and self.hits > covered:
            expected = f"at most {covered:,}, which the ledger was made for, or left out"
            raise InvalidParameter("hits", self.hits, expected)
        query, offset = made.query_epsilon if self.query_epsilon is None else self.query_epsilon, made.offset
        if offset is not None:
            offset = replace(
                offset.for_computation(query), offset_epsilon=self.offset_epsilon or offset.offset_epsilon
            )
        elif self.offset_epsilon is not None:
            raise InvalidParameter(
                "offset_epsilon", self.offset_epsilon, "left out: the ledger was made without one"
            )
        return replace(self, query_epsilon=query, offset=offset, hits=covered, noise=made.noise)

    def _sparse(self) -> Declaration:
        """Return the laws and rates of a new sparse meter."""
        budget = self._left if self.budget.delta or self.computation_delta else self.budget
        if self.query_epsilon is not None and not budget.delta:
            expected = "left out where delta is 0: give "
            raise InvalidParameter("query_epsilon", self.query_epsilon, expected, Parameter("hits"))
        hits = self._wanted
        if self.query_epsilon is not None:
            offset = best_offset(budget, self.query_epsilon, hits)
        elif hits is not None and (self.counts or self.hits is not None):
            offset = least_noise(budget, hits).law
        else:
            instead = Parameter("query_epsilon")
            raise InvalidParameter(
                "hits", None, "given for a new sparse meter; ", instead, " may be given instead"
            )
        return replace(self, query_epsilon=offset.query_epsilon, offset=offset, hits=hits)

    def meters(self, order: float | None = None) -> tuple[Meter, ...]:
        """Return the meters: one, or one for each alternative.

        Args:
            order: the Rényi order, if it was chosen before.
        """
        budget, epsilon, offset = self.budget, self.query_epsilon, self.offset
        assert epsilon is not None  # noqa: S101 - it was given or chosen
        if self.meter == "sparse":
            assert offset is not None  # noqa: S101 - it was chosen
            return (Meter.sparse(budget, offset, self.hits, computation_delta=self.computation_delta),)
        if self.noise == "gumbel":
            return (Meter.gumbel(budget, epsilon),)
        common: dict[str, Any] = {
            "computation_delta": self.computation_delta,
            "alternatives": max(1, len(self.alternatives)),
            "individual": self.individual,
            "offset": offset,
        }
        if self.meter == "exact":
            groups = self.alternatives or (self.targets,)
            return tuple(Meter.exact(budget, epsilon, targets, **common, hits=self.hits) for targets in groups)
        targets = self.alternatives or self.targets[:1]
        meters = tuple(Meter.renyi(budget, epsilon, target, order=order, **common) for target in targets)
        if len(meters) > 1 and order is None:
            # One order for all; the smallest of the best, where each of the prices is finite.
            return self.meters(min(meter.tariff.order for meter in meters))
        return meters

    def terms(self, meters: tuple[Meter, ...]) -> Terms:
        """Return what the ledger's header fixes."""
        assert self.query_epsilon is not None  # noqa: S101 - it was given or chosen
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
            offset=self.offset,
            noise=self.noise,
        )

    def _kinds(self) -> tuple[PlainTarget, ...]:
        """Return the kinds of target that decide the terms: all on the exact meter, the first on Rényi's."""
        if self.alternatives or self.meter == "sparse":
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
        declared = declared.chosen(None)
        return MemoryLedger(declared.meters(), keep, _fresh_offset(declared))
    if keep is not None:
        raise InvalidParameter("transcript", keep, "left out: a ledger file keeps the whole transcript")
    head = _head(restored)
    made = made or terms_at(path)
    if made is None:
        warn_of_large(declared.budget)
    declared = declared.chosen(made, path)
    meters = declared.meters()
    terms = declared.terms(meters)
    if made is not None and made.order != terms.order and not made.differences(terms):
        # Another version chose another order: the ledger's stands. Other terms are refused by the ledger.
        meters = declared.meters(made.order)
        terms = declared.terms(meters)
    return SqliteLedger(path, terms, meters, head, _fresh_offset(declared))


def _fresh_offset(declared: Declaration) -> int | None:
    """Return an offset for a ledger that is to be made. As secret as the data."""
    return None if declared.offset is None else draw_offset(SystemEntropy(), declared.offset)


def _check_sparse(targets: object, alternatives: object, offset_epsilon: object, *, individual: bool) -> None:
    """Refuse what a sparse meter cannot be opened with."""
    for name, given in (("targets", targets), ("alternatives", alternatives)):
        if given is not None:
            raise InvalidParameter(name, given, "left out: a sparse meter takes at-least questions")
    if offset_epsilon is not None:
        raise InvalidParameter("offset_epsilon", offset_epsilon, "left out: a sparse meter chooses its offset")
    if individual:
        raise InvalidParameter("meter", "sparse", "exact or renyi where each unit has a meter of its own")


def _check_offset(budget: Budget, offset_epsilon: float, query_epsilon: float | None) -> None:
    """Refuse an offset that a budget does not cover, or that has no query ε beside it."""
    rate = checks.query_epsilon(offset_epsilon, "offset_epsilon")
    if rate > budget.epsilon:
        raise InvalidParameter(
            "offset_epsilon", offset_epsilon, f"at most the budget's epsilon, {budget.epsilon:g}"
        )
    if query_epsilon is None:
        raise InvalidParameter("query_epsilon", None, "given where ", Parameter("offset_epsilon"), " is")
    if checks.query_epsilon(query_epsilon) > LARGEST_WITH_OFFSET:
        raise InvalidParameter("query_epsilon", query_epsilon, f"at most {LARGEST_WITH_OFFSET:g} with an offset")


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
