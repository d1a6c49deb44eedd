"""The text of a question with what is needed to read it, and to say what is wrong with it.

>>> from targetcharge.queries.columns import Column, Kind
>>> raise Source("ages > 65", {"age": Column("age", Kind.NUMBER)}, "where").error(0, "there is no column ages")
Traceback (most recent call last):
targetcharge.errors.InvalidQuestion: where, character 1: there is no column ages
    ages > 65
    ^
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from targetcharge.errors import InvalidQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.queries.columns import Column


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A text to be read.

    Attributes:
        text: what the caller wrote.
        schema: the columns there are.
        parameter: what the caller calls the text.
    """

    text: str
    schema: Mapping[str, Column]
    parameter: str

    def error(self, position: int, problem: str) -> InvalidQuestion:
        """Return the error that points at a character of the text, for the caller to raise."""
        return InvalidQuestion(self.parameter, self.text, position, problem)
