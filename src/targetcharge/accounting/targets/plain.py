"""Targets as plain data, as ledgers and answers keep them: a name, and what of the target decides.

>>> from targetcharge.accounting.targets import NotPrior
>>> plain(NotPrior("no")), in_words(plain(NotPrior("no"))), costs_in_words(plain(NotPrior("no")))
(('NotPrior', 'no'), "NotPrior('no')", "any outcome but 'no'")
>>> kind(Between(90, 110)), priced_like(kind(Between(90, 110))).width
(('Between', 1, 21, 1), 21)
"""

from __future__ import annotations

import hashlib
from itertools import accumulate
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

from targetcharge.accounting.curves import of_plain
from targetcharge.accounting.targets.between import Between
from targetcharge.accounting.targets.boundary import Boundary
from targetcharge.accounting.targets.target import Disagreement, Everything, NotPrior, QTarget
from targetcharge.errors import InvalidParameter, shown
from targetcharge.markup import counted
from targetcharge.outcomes import UnpublishableError, canonical_json, publishable, to_plain

if TYPE_CHECKING:
    from targetcharge.accounting.targets.target import Target

PlainTarget = tuple[Any, ...]
"""The name of a type of targets, and parameters: text, numbers, marks, or tuples of them."""

_LONGEST: Final = 200
"""Characters of a prior or of members that are kept: a transcript holds one for every answer.

What is longer is kept as its first characters, for people, and a hash of all of it, by which it is told apart.
"""

ANY_PRIOR: Final[PlainTarget] = ("NotPrior",)
"""Of answers that have a prior each."""


def plain(target: Target) -> PlainTarget:
    """Return a target as plain data, the same in every process and of bounded length."""
    match target:
        case NotPrior(prior):
            return ("NotPrior", prior) if _is_short(prior) else ("NotPrior", shown(prior), _hash(prior))
        case Between(low, high, sensitivity):
            return "Between", _number(low), _number(high), sensitivity
        case QTarget(q, members):
            ordered = tuple(sorted(members, key=_order))
            if _is_short(ordered):
                return "QTarget", q, ordered
            return "QTarget", q, _first_of(list(map(shown, ordered))), _hash(ordered)
        case _:
            return kind(target)


def kind(target: Target) -> PlainTarget:
    """Return what of a target decides its price: not which prior, which members or which band of its width."""
    match target:
        case Between():
            return "Between", 1, target.width, target.sensitivity
        case QTarget(q):
            return "QTarget", q
        case Boundary(caution):
            return "Boundary", caution
        case Everything(curve) if curve is not None:
            return "Everything", *curve.plain()
        case _:
            return (type(target).__name__,)


def priced_like(known: PlainTarget) -> Target | None:
    """Return a target with the price of one that is kept as plain data; None if this version knows none."""
    try:
        match known:
            case ("NotPrior", *_):
                return NotPrior(prior=None)
            case ("Between", low, high, sensitivity):
                return Between(low, high, sensitivity)
            case ("QTarget", q, *_):
                return QTarget(q, frozenset())
            case ("Boundary", caution):
                return Boundary(caution)
            case ("Everything",):
                return Everything()
            case ("Everything", *parameters):
                curve = of_plain(tuple(parameters))
                return None if curve is None else Everything(curve)
            case ("Disagreement",):
                return Disagreement()
            case _:
                return None
    except InvalidParameter:
        return None


def _is_short(value: object) -> bool:
    try:
        return len(repr(value)) <= _LONGEST
    except ValueError:  # an integer of 5,000 digits
        return False


def _hash(value: object) -> str:
    """Return a hash of a value that may be published; nothing for another one, which no outcome can be."""
    try:
        text = canonical_json(to_plain(publishable(value)))
    except (UnpublishableError, RecursionError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def _order(member: object) -> tuple[str, str]:
    """Return what members are sorted by: as people read them, and then as JSON."""
    return shown(member), canonical_json(to_plain(member))


def _first_of(texts: list[str]) -> tuple[str, ...]:
    """Return as many texts as are kept."""
    lengths = accumulate(map(len, texts))
    return tuple(text for text, length in zip(texts, lengths, strict=True) if length - len(text) <= _LONGEST)


def _number(end: float) -> int | float:
    return int(end) if isinstance(end, Integral) else float(end)  # type: ignore[redundant-expr]  # numpy has them


def in_words(*known: PlainTarget) -> str:
    """Return targets as they are written in Python, cut; ledgers of the first format keep them so."""
    return " or ".join(map(_words, known))


def _words(known: PlainTarget) -> str:
    match known:
        case ("NotPrior",):
            return "NotPrior(…)"
        case ("NotPrior", prior):
            return f"NotPrior({shown(prior)})"
        case ("NotPrior", str(beginning), _):
            return f"NotPrior({beginning})"
        case ("Between", low, high, 1):
            return f"Between({low!r}, {high!r})"
        case ("Between", low, high, sensitivity):
            return f"Between({low!r}, {high!r}, sensitivity={sensitivity})"
        case ("QTarget", q, *kept) if kept:
            return f"QTarget({q!r}, {_members(*kept)})"
        case ("Boundary", 1):
            return "Boundary()"
        case ("Everything", *curve) if curve:
            return f"Everything({of_plain(tuple(curve))})"
        case (str(name), *parameters):
            return f"{name}({', '.join(map(shown, parameters))})"
        case _:
            return shown(known)


def _members(kept: tuple[Any, ...] | str, hashed: str = "") -> str:
    """Return the members of a target in words; those of the first format are words already."""
    if isinstance(kept, str):
        return kept
    members = [*kept, "…"] if hashed else map(repr, kept)
    return f"{{{', '.join(members)}}}"


def kind_in_words(known: PlainTarget) -> str:
    """Return a kind of targets as it is written in Python, about."""
    match known:
        case ("Between", _, width, sensitivity):
            return f"Between of {width} integers" + (
                f" with sensitivity {sensitivity}" if sensitivity != 1 else ""
            )
        case ("QTarget", q):
            return f"QTarget({q!r})"
        case ("Boundary", caution) if caution != 1:
            return f"Boundary({caution!r})"
        case (name, *_):
            return str(name)
    return ""


_COSTS: Final[dict[PlainTarget, str]] = {
    ("NotPrior",): "any outcome but an expected one",
    ("NotPrior", None): "any published value",
    ("Boundary", 1): "what is too close to call",
    ("Everything",): "every outcome",
    ("Disagreement",): "two runs that differ",
}


def costs_in_words(*known: PlainTarget) -> str:
    """Return what costs, of targets or kinds of them, for people who do not write Python."""
    return " or ".join(_COSTS.get(target) or _costs(target) for target in known)


def _costs(known: PlainTarget) -> str:
    match known:
        case ("NotPrior", str(beginning), _):
            return f"any outcome but {beginning}"
        case ("NotPrior", prior):
            return f"any outcome but {shown(prior)}"
        case ("Between", 1, width, _):  # any band of this width
            return f"a number in a band of {counted(width, 'integer')}"
        case ("Between", low, high, _):
            return f"a number from {low!r} to {high!r}"
        case ("QTarget", q, *kept):
            return f"one of {_members(*kept)}" if kept else f"an outcome of a set with q {q!r}"
        case ("Boundary", caution):
            return f"what is too close to call, with caution {caution:g}"
        case ("Everything", *curve):
            return f"every outcome, with {of_plain(tuple(curve))}"
        case _:
            return shown(known)
