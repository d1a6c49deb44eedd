"""Terms: what a ledger was opened for, and for whose privacy. They are fixed in its header and never change.

>>> terms = Terms(1.0, 1e-6, "exact", 0.01, 0.0, (("NotPrior",),), (), 12.5, (229,), (1,), Unit("column", "id"))
>>> Terms.of(terms.plain()) == terms
True
>>> terms.differences(replace(terms, epsilon=2.0, capacities=(900,)))
['epsilon was 1.0 and is 2.0']
>>> terms.differences(replace(terms, offset=OffsetNoise(0.24, 0.09, "gumbel", "at least")))
['offset was none and is laplace with rate 0.24 beside gumbel noise with rate 0.09, for at-least questions']
>>> str(Unit("column", "patient")), str(Unit("row"))
('units of patient', 'rows')
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, final

from targetcharge import checks
from targetcharge.accounting.offsets.noise import NOISES, OffsetNoise
from targetcharge.accounting.targets.plain import costs_in_words, in_words, kind_in_words
from targetcharge.errors import LedgerError, NotAllowed
from targetcharge.ledger import version_1
from targetcharge.ledger.entries import VERSION
from targetcharge.outcomes import from_plain, to_plain
from targetcharge.randomness import Rate
from targetcharge.randomness.laws import law_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.randomness.laws import Noise

OFFSET_VERSION: Final = 3
"""Of the header of a ledger with an offset: programs that know no offsets refuse it."""

_FORMAT: Final = "targetcharge ledger"
_CHOSEN: Final = ("order", "capacities", "typical", "version")
_REALS: Final = ("epsilon", "delta", "query_epsilon", "computation_delta", "order")
_QUESTIONS: Final = {"any": "any question", "at least": "at-least questions"}
_REALS_OF_OFFSET: Final = ("offset_epsilon", "query_epsilon")


@final
@dataclass(frozen=True)
class Unit:
    """Whose privacy is protected.

    Attributes:
        kind: all rows that share the value of a "column", every "row" alone, or what "words" say.
        name: of the column, or the words; empty for rows, and where nothing was said.
    """

    kind: Literal["column", "row", "words"] = "words"
    name: str = ""

    def plain(self) -> dict[str, str]:
        """Return the unit as plain data, as the header of a ledger has it."""
        return asdict(self)

    def __str__(self) -> str:
        """Return the unit in words, for people."""
        return {"column": f"units of {self.name}", "row": "rows", "words": self.name}[self.kind]


@final
@dataclass(frozen=True)
class Terms:
    """What the owner declared, and what was chosen from it when the ledger was made.

    Attributes:
        epsilon: of the budget.
        delta: of the budget.
        meter: "exact", "renyi" or "sparse".
        query_epsilon: declared for one computation.
        computation_delta: the part of δ that is kept for the computations' own δ.
        targets: the kinds of target that were declared.
        alternatives: the alternative targets; none if there is one meter.
        order: the Rényi order, chosen when the ledger was made.
        capacities: the most grains each meter may charge.
        typical: the grains of one hit of the declared kind, on each meter.
        unit: whose privacy is protected.
        charging: "shared", or "individual" if the capacity is each unit's own.
        offset: the laws and rates of the session's secret offset and of the noise beside it; None without one.
        noise: the law of the noise of counts without an offset.
        version: of the header that they were read from, or will be written to.
    """

    epsilon: float
    delta: float
    meter: str
    query_epsilon: float
    computation_delta: float
    targets: tuple[PlainTarget, ...]
    alternatives: tuple[PlainTarget, ...]
    order: float
    capacities: tuple[int, ...]
    typical: tuple[int, ...]
    unit: Unit = field(default_factory=Unit)
    charging: str = "shared"
    offset: OffsetNoise | None = None
    noise: Noise = "laplace"
    version: int = field(default=VERSION, compare=False)

    def __post_init__(self) -> None:
        """Give terms with an offset, or with another noise than Laplace's, the version that knows them."""
        if self.offset is not None or self.noise != "laplace":
            object.__setattr__(self, "version", OFFSET_VERSION)

    def plain(self) -> dict[str, object]:
        """Return the terms as plain data; numbers in hexadecimal, to the last bit."""
        body = asdict(self)
        body |= {name: body[name].hex() for name in _REALS}
        body |= {name: [str(grains) for grains in body[name]] for name in ("capacities", "typical")}
        body |= {name: to_plain(getattr(self, name)) for name in ("targets", "alternatives")}
        if self.offset is None:
            del body["offset"]
        else:
            body["offset"] |= {name: body["offset"][name].hex() for name in _REALS_OF_OFFSET}
        if self.noise == "laplace":
            del body["noise"]
        if self.version == 1:
            body |= version_1.header(self.targets, self.alternatives, str(self.unit))
        return {"format": _FORMAT, **body}

    @property
    def targets_in_words(self) -> list[str]:
        """Return the alternatives that a ledger was made for, or else the kinds of targets, for people."""
        if self.meter == "sparse" or self.noise == "gumbel":
            return [_QUESTIONS["at least"]]
        return [costs_in_words(target) for target in self.alternatives or self.targets]

    @property
    def standard_deviation(self) -> float | None:
        """Return the standard deviation of a count of a table, or of one that carries an offset; else None."""
        if self.offset is not None:
            return self.offset.standard_deviation
        if self.unit.kind == "words":
            return None
        return math.sqrt(law_of(self.noise, Rate.at_most(self.query_epsilon)).variance)

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Terms:
        """Return the terms that a header holds.

        Raises:
            LedgerError: if it is not the header of a ledger that this version reads.
        """
        if header.get("format") != _FORMAT:
            msg = "this is not a ledger"
            raise LedgerError(msg)
        version = header.get("version")
        if version not in (1, VERSION, OFFSET_VERSION):
            msg = f"the ledger has format version {version}, and this program reads versions 1 to {OFFSET_VERSION}"
            raise LedgerError(msg)
        try:
            body = {"unit": "", "charging": "shared", "offset": None, "noise": "laplace", **header}
            body = {part.name: body[part.name] for part in fields(cls)}
            body |= {name: float.fromhex(body[name]) for name in _REALS}
            body |= {name: tuple(int(grains) for grains in body[name]) for name in ("capacities", "typical")}
            body |= {name: _targets(body[name], version) for name in ("targets", "alternatives")}
            body["unit"] = Unit(*version_1.unit(body["unit"])) if version == 1 else Unit(**body["unit"])
            body["offset"] = None if body["offset"] is None else _offset(body["offset"])
            _check_noise(body["noise"], body["offset"], version)
            return cls(**body)
        except (KeyError, ValueError, TypeError):
            msg = "the ledger's header cannot be read: it was damaged or changed"
        raise LedgerError(msg)

    def check(self, other: Terms, path: Path) -> None:
        """Refuse to open a ledger that was made for these terms with others."""
        differences = self.differences(other)
        if differences:
            sentence = (
                f"the ledger {path} was made for other terms: {'; '.join(differences)}."
                " Open it with the same ones, or start another ledger"
            )
            raise NotAllowed(sentence)

    def differences(self, other: Terms) -> list[str]:
        """Return, in words, how other declared terms differ from these; as their header would have them."""
        mine, theirs = (
            replace(terms, offset=None, noise="laplace", version=self.version).plain()
            | {"offset": terms.offset, "noise": terms.noise}
            for terms in (self, other)
        )
        names = [part.name for part in fields(self) if part.name not in _CHOSEN]
        return [
            f"{name} was {_shown(self, name)} and is {_shown(other, name)}"
            for name in names
            if mine[name] != theirs[name]
        ]


def _shown(terms: Terms, name: str) -> str:
    """Return a term in words, for people."""
    match getattr(terms, name):
        case tuple(targets):
            return ", ".join(map(kind_in_words if name == "targets" else in_words, targets)) or "none"
        case Unit(kind, name):
            return "every row" if kind == "row" else f"{kind} {name!r}"
        case OffsetNoise() as offset:
            laws = f"{offset.offset_noise} with rate {offset.offset_epsilon!r} beside {offset.noise} noise"
            return f"{laws} with rate {offset.query_epsilon!r}, for {_QUESTIONS[offset.questions]}"
        case None:
            return "none"
        case term:
            return repr(term)


def _targets(kept: Any, version: int) -> tuple[PlainTarget, ...]:  # noqa: ANN401 - of a header that may be damaged
    known = tuple(map(version_1.target, kept)) if version == 1 else from_plain(kept)
    if not isinstance(known, tuple) or not all(isinstance(one, tuple) and one for one in known):
        raise TypeError
    return known


def _check_noise(noise: Any, offset: OffsetNoise | None, version: int) -> None:  # noqa: ANN401 - may be damaged
    """Refuse a law of noise that there is none of, and a version that does not go with what it holds."""
    natural = checks.choice(noise, "noise", NOISES) == "laplace" and offset is None
    if natural == (version == OFFSET_VERSION):
        raise ValueError


def _offset(kept: Any) -> OffsetNoise:  # noqa: ANN401 - of a header that may be damaged
    return OffsetNoise(**{**kept, **{name: float.fromhex(kept[name]) for name in _REALS_OF_OFFSET}})
