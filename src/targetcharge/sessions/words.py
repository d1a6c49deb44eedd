"""Targets in words, for the transcript and the ledger's header.

>>> from targetcharge.accounting.targets import NotPrior
>>> words(NotPrior("no"))
"NotPrior('no')"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.accounting.targets import Between, Boundary, NotPrior, QTarget
from targetcharge.errors import shown

if TYPE_CHECKING:
    from targetcharge.accounting.targets import Target

_MOST_WORDS: Final = 200


def kind_in_words(target: Target) -> str:
    """Return what of a target decides its price: not which prior, nor which members."""
    match target:
        case Between():
            return f"Between of {target.width} integers" + _sensitivity(target, " with sensitivity ")
        case QTarget(q):
            return f"QTarget({q!r})"
        case Boundary(caution) if caution != 1:
            return f"Boundary({caution!r})"
        case _:
            return type(target).__name__


def words(target: Target) -> str:
    """Return a target in words that are the same in every process, of bounded length."""
    match target:
        case NotPrior(prior):
            text = f"NotPrior({shown(prior)})"
        case Between(low, high):
            text = f"Between({low!r}, {high!r}{_sensitivity(target, ', sensitivity=')})"
        case QTarget(q, members):
            named = sorted(map(shown, members)) if isinstance(members, set | frozenset) else members
            text = f"QTarget({q!r}, {named})"
        case Boundary(caution) if caution != 1:
            text = f"Boundary({caution!r})"
        case _:
            text = f"{type(target).__name__}()"
    return text if len(text) <= _MOST_WORDS else text[: _MOST_WORDS - 1] + "…"


def _sensitivity(band: Between, before: str) -> str:
    """Return the sensitivity if it is not 1: it decides the price as the width does."""
    return "" if band.sensitivity == 1 else f"{before}{band.sensitivity}"
