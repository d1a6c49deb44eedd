"""Descriptions: what may be asked of a table. From the schema and what the owner declared, nothing from rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import markup
from targetcharge.accounting.targets import Between, Boundary, NotPrior
from targetcharge.errors import TargetChargeError
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.outcomes import UNCHANGED
from targetcharge.queries.tree import Kind, quoted
from targetcharge.sessions.priced import session_noise
from targetcharge.tables.individual.departures import in_words
from targetcharge.tables.prepared import TAKING_PART

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.targets import Target
    from targetcharge.engines.engine import Engine
    from targetcharge.ledger import Unit
    from targetcharge.sessions.reading import Reading

_HOW: Final = {
    Kind.NUMBER: "{0} > 5, {0} BETWEEN 1 AND 10, {0} IN (1, 2)",
    Kind.TEXT: "{0} = 'a', {0} IN ('a', 'b'), {0} LIKE 'a%'",
    Kind.DATE: "{0} >= '2024-01-31'",
    Kind.TIME: "{0} < '2024-01-31 12:00'",
    Kind.BOOLEAN: "{0} = TRUE",
}
_DISTINCT: Final = "distinct_above(column, threshold, where)"
_WIDE: Final = 10**6
_CHANGE: Final = "count(where, prior, tolerance)"
_BETWEEN: Final = "between(where, low, high)"
_SIDE: Final = "side(where, threshold)"
_TARGETS: Final = {_CHANGE: NotPrior(UNCHANGED), _BETWEEN: Between(0, _WIDE), _SIDE: Boundary()}
"""What costs of the calls that not every meter takes."""
_CALLS: Final = (
    ("above(where, threshold)", "the noisy count if it reaches the threshold", "reaching it"),
    ("count(where)", "a noisy count", "always"),
    ("sum(column, lower, upper, where)", "a noisy sum of what units contribute", "always"),
    ("mean(column, lower, upper, where)", "the noisy mean of one number for each unit", "always"),
    ("quantile(column, q, lower, upper, where)", "about where a share q of the units lie", "always"),
    ("histogram(where, by, keys, per_unit)", "the noisy counts of all keys at once", "always, one hit for all"),
    (_CHANGE, "the noisy count if it has changed", "a change"),
    (_BETWEEN, "below, between or above", "between"),
    (_SIDE, "below or above, or too close to call", "too close to call"),
    ("watch(where, by, keys, threshold)", "`above` for every key, in one scan", "keys that reach it"),
    ("top(where, by, keys, k)", "the k keys with the largest counts", "each of them"),
    ("release(where, when)", "a noisy count, once a condition holds", "the release"),
    ("sum_above(column, lower, upper, threshold, where)", "a noisy sum if it reaches it", "reaching it"),
    (_DISTINCT, "about how many distinct values", "reaching it"),
)
_OF_EACH: Final = {"release(where, when)": "its draw, published or not"}
"""What costs otherwise, where each unit has a budget of its own."""


@final
@dataclass(frozen=True)
class Description:
    """What may be asked.

    Attributes:
        unit: whose privacy is protected; `str` says it in words.
        budget: of everything that will ever be published.
        query_epsilon: of one computation.
        meter: "exact", "renyi" or "sparse".
        columns: name and kind of each.
        charging: "shared" or "individual".
        identity: how units are told apart, if not as equal values.
        standard_deviation: of the noise of a count.
        common_error: whether a part of it is the same in all answers: a secret offset.
        refused: the calls that the meter has no price for.
        may_have_left: at most how many units take no part any more, where each has a budget of its own; None if
            nothing bounds it.
        declared: what the owner declared columns to be.
    """

    unit: Unit
    budget: Budget
    query_epsilon: float
    meter: str
    columns: tuple[tuple[str, str], ...]
    charging: str = "shared"
    identity: str = ""
    standard_deviation: float = 0.0
    common_error: bool = False
    refused: tuple[str, ...] = ()
    may_have_left: int | None = 0
    declared: tuple[tuple[str, str], ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "unit": self.unit.plain(),
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "query_epsilon": self.query_epsilon,
            "meter": self.meter,
            "standard_deviation": self.standard_deviation,
            "common_error": self.common_error,
            "charging": self.charging,
            "may_have_left": self.may_have_left,
            "identity": self.identity,
            "missing": list(self._missing()),
            "columns": dict(self.columns),
            "declared": dict(self.declared),
        }

    def _facts(self) -> list[tuple[str, str]]:
        whose = ", one for each unit" if self.charging == "individual" else ""
        missing = [("missing", sentence) for sentence in self._missing()]
        common = ", a part of it common to all answers" if self.common_error else ""
        about = []
        if self.charging == "individual":
            about = [("numbers", f"{TAKING_PART}; {in_words(self.may_have_left)}")]
        if self.declared:
            rounded = (
                "; numbers with a fraction are rounded to integers"
                if "integer" in dict(self.declared).values()
                else ""
            )
            about.append(
                ("declared", ", ".join(f"{quoted(name)} {kind}" for name, kind in self.declared) + rounded)
            )
        return [
            ("unit", f"{self.unit}, {self.identity}" if self.identity else str(self.unit)),
            ("budget", f"({self.budget.epsilon:g}, {self.budget.delta:g}), {self.meter} meter" + whose),
            ("query ε", f"{self.query_epsilon:g}"),
            ("noise", f"standard deviation {self.standard_deviation:.4g} for a count{common}"),
            *about,
            *missing,
        ]

    def _missing(self) -> Iterator[str]:
        """Yield which values count as missing besides those that are, in words."""
        kinds = {kind for _, kind in self.columns}
        if kinds & {Kind.DATE, Kind.TIME}:
            yield "dates and times before the year 1 or after 9999, infinite ones too"
        if self.declared:
            yield "what is not what its column is declared to be"
        if Kind.NUMBER in kinds:
            yield "numbers that are NaN, or have more digits than their type"

    def _columns(self) -> list[tuple[str, str, str]]:
        return [(name, kind, _HOW[Kind(kind)].format(quoted(name))) for name, kind in self.columns]

    def _calls(self) -> list[tuple[str, str, str]]:
        calls = [call for call in _CALLS if call[0] not in self.refused]
        if self.charging != "individual":
            return calls
        return [(call, what, _OF_EACH.get(call, costs)) for call, what, costs in calls if call != _DISTINCT]

    def __str__(self) -> str:
        """Return the description as text."""
        wide = max((len(name) for name, _ in self.columns), default=0)
        lines = [f"{name}: {value}" for name, value in self._facts()]
        lines += ["columns, and how to compare them (joined by AND, OR, NOT and parentheses):"]
        lines += [f"  {name:<{wide}}  {kind:<8} {how}" for name, kind, how in self._columns()]
        lines += ["questions, and what costs a hit:"]
        lines += [f"  {call:<50} {what}; {costs}" for call, what, costs in self._calls()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return the description as HTML."""
        return (
            markup.table([], self._facts())
            + markup.table(["column", "kind", "compare"], self._columns())
            + markup.table(["question", "publishes", "costs"], self._calls())
        )


def describe(
    engine: Engine,
    unit: Unit,
    query_epsilon: float,
    meter: Reading,
    may_have_left: int | None = 0,
    types: Mapping[str, str] = MappingProxyType({}),
) -> Description:
    """Return what may be asked of a table whose columns were declared to be of these types."""
    schema = engine.schema
    columns = tuple((column.name, str(column.kind)) for column in schema.values())
    charging, tariff = "individual" if meter.individual else "shared", meter.tariff
    noise_of = session_noise(tariff, query_epsilon) or partial(CountNoise.natural, query_epsilon)
    return Description(
        unit,
        meter.guarantee,
        query_epsilon,
        tariff.name,
        columns,
        charging,
        engine.identity.words,
        noise_of(1).standard_deviation,
        tariff.offset is not None,
        tuple(call for call, target in _TARGETS.items() if not _takes(meter, target, query_epsilon)),
        may_have_left,
        tuple(types.items()),
    )


def _takes(meter: Reading, target: Target, epsilon: float) -> bool:
    """Return whether a meter has a price for questions with a target."""
    try:
        meter.quote(target, epsilon, carried=meter.tariff.offset is not None)
    except TargetChargeError:  # or the query ε is too large for it
        return False
    return True
