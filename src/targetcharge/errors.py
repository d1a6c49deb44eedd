"""Every error the package raises on purpose.

    TargetChargeError
    ├── InvalidParameter      the caller's slip; no data was touched (a stopping rule's: it says what is charged)
    │   ├── InvalidQuestion   a text that is not a predicate: says where, and what to write
    │   ├── InvalidKey        a declared key that is none of its column's values, or is there twice
    │   └── TooLarge          the numbers are legal but the computation would not fit
    ├── Refused               legal, and declined before any data was touched
    │   ├── BudgetSpent       the budget does not cover it
    │   └── NotAllowed        this session cannot price or answer such a question
    ├── ComputationFailed     it broke after the data was touched: its reservation is spent; says nothing of why
    ├── LedgerError           the ledger could not be read or written: no answer leaves
    └── EngineError           the table could not be opened or read; never contains values from it

    BudgetWarning             nothing is refused, and a budget may be lost, spent twice, or mean little

An error carries its values as attributes and says one plain sentence: what was asked, what was expected,
what to do. Its arguments are the parts of the sentence. Parameters that it names are a `Parameter` among them, and
one that it says to set is a `Setting`, so that the command line can name its own options instead.

>>> raise InvalidParameter("epsilon", -1.0, "finite and above 0")
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: epsilon is -1.0; it must be finite and above 0
>>> raise NotAllowed("the data has changed: open it with ", Setting("new_data", True))
Traceback (most recent call last):
targetcharge.errors.NotAllowed: the data has changed: open it with new_data=True
"""

from __future__ import annotations

import datetime as dt
import difflib
import sys
import warnings
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PACKAGE = __name__.partition(".")[0]


class Parameter(str):
    """The name of a parameter in the sentence of an error."""

    __slots__ = ()


class Setting(NamedTuple):
    """A parameter and the value that an error says to give it."""

    name: str
    value: object

    def __str__(self) -> str:
        """Return the setting as a call in Python has it."""
        return f"{self.name}={self.value!r}"


class BudgetWarning(UserWarning):
    """What the owner of a budget should know. Its arguments are the parts of a sentence, as an error's are."""

    def __str__(self) -> str:
        """Return the sentence, with settings as Python spells them."""
        return "".join(map(str, self.args))


def warn_owner(*sentence: object) -> None:
    """Warn of a budget, in parts if the sentence names parameters; where this package was called is shown."""
    level, caller = 2, sys._getframe(1)  # noqa: SLF001 - as `warnings` does where it skips frames, from Python 3.12
    while caller.f_back is not None and caller.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, caller = level + 1, caller.f_back
    warnings.warn(BudgetWarning(*sentence), stacklevel=level)


class TargetChargeError(Exception):
    """The root of the tree; never raised itself."""

    def __str__(self) -> str:
        """Return the sentence, with settings as Python spells them."""
        return "".join(map(str, self.args))

    def __reduce__(self) -> tuple[Callable[..., TargetChargeError], tuple[object, ...]]:
        """Return how a pickle makes it again, with its values: constructors take other arguments than `args`."""
        return _made_again, (type(self), self.args, vars(self))


def _made_again(
    kind: type[TargetChargeError], parts: tuple[object, ...], values: dict[str, object]
) -> TargetChargeError:
    """Return an error with the parts of its sentence and its attributes."""
    error = kind.__new__(kind, *parts)
    error.__dict__.update(values)
    return error


class InvalidParameter(TargetChargeError, ValueError):  # noqa: N818 - the public name, fixed by the design
    """A parameter was outside its range.

    Attributes:
        name: the parameter.
        value: what was given.
        expected: what it must be, as a phrase that completes "it must be".
    """

    def __init__(self, name: str, value: object, *expected: str | Setting) -> None:
        """Say which parameter, which value and what was expected: a phrase, in parts if it names parameters."""
        self.name = name
        self.value = value
        self.expected = "".join(map(str, expected))
        super().__init__(Parameter(name), f" is {shown(value)}; it must be ", *expected)


def did_you_mean(name: object, known: Iterable[str], spell: Callable[[str], str] = str) -> str:
    """Return the end of a sentence about a name that is not known: which one is spelled like it; empty if none is.

    >>> did_you_mean("conty", ["county", "age"]), did_you_mean("x", ["county", "age"])
    ('; did you mean county?', '')
    """
    spelled = {one.lower(): one for one in known}
    close = difflib.get_close_matches(str(name).lower(), spelled, 1)
    return "".join(f"; did you mean {spell(spelled[one])}?" for one in close)


_MOST_SHOWN = 100
_PLAIN = (int, float, complex, str, bytes, type(None), Fraction, Enum, type)


def shown(value: object) -> str:
    """Return a value for an error's text: short plain values and our own objects; of anything else only the type.

    A caller who mixes up parameters must not find the data in a log.
    """
    if isinstance(value, PurePath):
        value = str(value)
    if _ours(value) or isinstance(value, _PLAIN) or callable(value):
        try:
            text = repr(value)
        except Exception:  # noqa: BLE001 - an integer of 5,000 digits, say; the error is about the parameter
            return f"<{type(value).__name__}>"
        return _clipped(text)
    return f"<{type(value).__name__}>"


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 1] + "…"


def _ours(value: object) -> bool:
    """Return whether a value is made by this package, or a collection of nothing else."""
    if isinstance(value, tuple | list | set | frozenset) or type(value) is dict:
        return all(_ours(member) for member in value)
    return type(value).__module__.partition(".")[0] == _PACKAGE


class InvalidQuestion(InvalidParameter):
    """A text that is not a predicate. Its message has the caller's own text and the table's columns: all public.

    Attributes:
        text: what was written.
        position: the index of the character where it went wrong, from 0; the length of the text for its end.
        problem: what is wrong there, and what to write instead.
    """

    def __init__(self, name: str, text: str, position: int, *problem: str | Setting) -> None:
        """Say where and what, in parts if it names parameters, and show the place."""
        super().__init__(name, text, "comparisons of a column with a literal, joined by AND, OR and NOT")
        self.text = text
        self.position = position
        parts = [part if isinstance(part, Setting) else _printable(part) for part in problem]
        self.problem = "".join(map(str, parts))
        line_start = text.rfind("\n", 0, position) + 1
        column = position - line_start
        place = f"character {column + 1}"
        if "\n" in text:
            place = f"line {text.count(chr(10), 0, position) + 1}, {place}"
        start = max(0, column - _MOST_SHOWN // 2)
        window = _printable(text[line_start:].partition("\n")[0][start : start + _MOST_SHOWN])
        self.args = (Parameter(name), f", {place}: ", *parts, f"\n    {window}\n    {' ' * (column - start)}^")


def _printable(text: str) -> str:
    """Return a text in which every character takes a place and none moves the cursor."""
    return "".join(character if character.isprintable() else " " for character in text)


class InvalidKey(InvalidParameter):
    """A declared key that is not a value of its column, or is there twice. The caller wrote it: it is public.

    Attributes:
        index: its place among the keys, from 0.
        column: of which column the value is, from 0, if the key is a pair; None for the whole key.
        same_as: the place of the key that it is the same as; None if that is not why.
    """

    def __init__(
        self,
        index: int,
        key: object,
        expected: str,
        *,
        column: int | None = None,
        same_as: int | None = None,
    ) -> None:
        """Say which key, and what was expected."""
        super().__init__(f"keys[{index}]" + ("" if column is None else f"[{column}]"), key, expected)
        self.index = index
        self.column = column
        self.same_as = same_as
        if isinstance(key, dt.date | Decimal):
            text = str(key)
        else:
            text = repr(key) if isinstance(key, tuple) and same_as is not None else shown(key)
        self.args = (Parameter(self.name), f" is {_clipped(text)}; it must be {expected}")


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
            " A function of yours shows why on made-up data: algorithm.rehearse(data)"
        )


class LedgerError(TargetChargeError):
    """The ledger could not be read or written, or was tampered with. It fails closed: no answer leaves."""


class EngineError(TargetChargeError):
    """The table could not be opened or read. It names files and columns, and never contains values."""
