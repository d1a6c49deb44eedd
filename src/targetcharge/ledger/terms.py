"""Terms: what a ledger was opened for. They are fixed in its header and never change.

>>> terms = Terms(1.0, 1e-6, "exact", 0.01, 0.0, ("NotPrior",), (), 12.5, (229,), (1,))
>>> Terms.of(terms.plain()) == terms
True
>>> terms.differences(Terms(2.0, 1e-6, "exact", 0.01, 0.0, ("NotPrior",), (), 12.5, (900,), (1,)))
['epsilon was 1.0 and is 2.0']
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.errors import LedgerError, NotAllowed
from targetcharge.ledger.entries import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_FORMAT: Final = "targetcharge ledger"
_CHOSEN: Final = ("order", "capacities", "typical")
_REALS: Final = ("epsilon", "delta", "query_epsilon", "computation_delta", "order")


@final
@dataclass(frozen=True)
class Terms:
    """What the owner declared, and what was chosen from it when the ledger was made.

    Attributes:
        epsilon: of the budget.
        delta: of the budget.
        meter: "exact" or "renyi".
        query_epsilon: declared for one computation.
        computation_delta: the part of δ that is kept for the computations' own δ.
        targets: the kinds of target that were declared, in words.
        alternatives: the alternative targets, in words; none if there is one meter.
        order: the Rényi order, chosen when the ledger was made.
        capacities: the most units each meter may charge.
        typical: the units of one hit of the declared kind, on each meter.
        unit: whose privacy is protected, in words; empty if the session does not know.
        charging: "shared", or "individual" if the capacity is each unit's own.
    """

    epsilon: float
    delta: float
    meter: str
    query_epsilon: float
    computation_delta: float
    targets: tuple[str, ...]
    alternatives: tuple[str, ...]
    order: float
    capacities: tuple[int, ...]
    typical: tuple[int, ...]
    unit: str = ""
    charging: str = "shared"

    def plain(self) -> dict[str, object]:
        """Return them as plain data; numbers in hexadecimal, to the last bit."""
        body = asdict(self)
        body |= {name: body[name].hex() for name in _REALS}
        body |= {name: [str(units) for units in body[name]] for name in ("capacities", "typical")}
        return {"format": _FORMAT, "version": VERSION, **body}

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Terms:
        """Return the terms that a header holds.

        Raises:
            LedgerError: if it is not the header of a ledger that this version reads.
        """
        if header.get("format") != _FORMAT:
            msg = "this is not a ledger"
            raise LedgerError(msg)
        if header.get("version") != VERSION:
            msg = (
                f"the ledger has format version {header.get('version')}, and this program reads version {VERSION}"
            )
            raise LedgerError(msg)
        try:
            body = {"unit": "", "charging": "shared", **header}
            body = {part.name: body[part.name] for part in fields(cls)}
            body |= {name: float.fromhex(body[name]) for name in _REALS}
            body |= {name: tuple(int(units) for units in body[name]) for name in ("capacities", "typical")}
            body |= {name: tuple(body[name]) for name in ("targets", "alternatives")}
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
        """Return, in words, how other declared terms differ from these."""
        names = [part.name for part in fields(self) if part.name not in _CHOSEN]
        return [
            f"{name} was {getattr(self, name)!r} and is {getattr(other, name)!r}"
            for name in names
            if getattr(self, name) != getattr(other, name)
        ]
