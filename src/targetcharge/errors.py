"""Every error the package raises on purpose.

    TargetChargeError
    ├── InvalidParameter      the caller's slip; no data was touched (a stopping rule's: it says what is charged)
    │   └── TooLarge          the numbers are legal but the computation would not fit
    ├── Refused               legal, and declined before any data was touched
    │   ├── BudgetSpent       the budget does not cover it
    │   └── NotAllowed        this session cannot price or answer such a question
    ├── ComputationFailed     it broke after the data was touched: its reservation is spent; says nothing of why
    └── LedgerError           the ledger could not be read or written: no answer leaves

An error carries its values as attributes and says one plain sentence: what was asked, what was expected,
what to do.

>>> raise InvalidParameter("epsilon", -1.0, "finite and above 0")
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: epsilon is -1.0; it must be finite and above 0
"""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from pathlib import PurePath


class TargetChargeError(Exception):
    """The root of the tree; never raised itself."""


class InvalidParameter(TargetChargeError, ValueError):  # noqa: N818 - the public name, fixed by the design
    """A parameter was outside its range.

    Attributes:
        name: the parameter.
        value: what was given.
        expected: what it must be, as a phrase that completes "it must be".
    """

    def __init__(self, name: str, value: object, expected: str) -> None:
        """Say which parameter, which value and what was expected."""
        self.name = name
        self.value = value
        self.expected = expected
        super().__init__(f"{name} is {shown(value)}; it must be {expected}")


_MOST_SHOWN = 100
_PLAIN = (int, float, complex, str, bytes, type(None), Fraction, Enum, PurePath, type)


def shown(value: object) -> str:
    """Return a value for an error's text: short plain values and our own objects; of anything else only the type.

    A caller who mixes up parameters must not find the data in a log.
    """
    if _ours(value) or isinstance(value, _PLAIN) or callable(value):
        try:
            text = repr(value)
        except Exception:  # noqa: BLE001 - an integer of 5,000 digits, say; the error is about the parameter
            return f"<{type(value).__name__}>"
        return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"
    return f"<{type(value).__name__}>"


def _ours(value: object) -> bool:
    """Return whether a value is made by this package, or a collection of nothing else."""
    if isinstance(value, tuple | list | set | frozenset | dict):
        return all(_ours(member) for member in value)
    return type(value).__module__.partition(".")[0] == __name__.partition(".")[0]


class TooLarge(InvalidParameter):
    """A legal parameter asks for a computation that would not fit in memory or time."""


class Refused(TargetChargeError):  # noqa: N818 - the public name, fixed by the design
    """The question is well formed, and declined before any data was touched."""


class BudgetSpent(Refused):
    """The budget left does not cover what the question could cost.

    Attributes:
        asked: the most the question could charge, on the meter's scale.
        left: what the meter has left on that scale.
    """

    def __init__(self, sentence: str, *, asked: float, left: float) -> None:
        """Carry what was asked and what is left beside the sentence."""
        self.asked = asked
        self.left = left
        super().__init__(sentence)


class NotAllowed(Refused):
    """The session cannot price or answer this kind of question."""


class ComputationFailed(TargetChargeError):  # noqa: N818 - it says what happened, as its siblings do
    """A computation broke after the data was touched. What it reserved stays spent.

    Why it broke may depend on the data, so this error has one sentence for all failures, no cause and no context.
    """

    def __init__(self) -> None:
        """Say the same whatever happened."""
        super().__init__(
            "the computation did not give an outcome that can be published; what it reserved stays spent."
            " Try the algorithm on made-up data to see why"
        )


class LedgerError(TargetChargeError):
    """The ledger could not be read or written, or was tampered with. It fails closed: no answer leaves."""
