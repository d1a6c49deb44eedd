"""Mistakes on the command line and in the files it reads, in one sentence each.

>>> from pathlib import Path
>>> raise Mistake(line(Path("questions.csv"), 3), "threshold is 'many'; it must be a number")
Traceback (most recent call last):
targetcharge.cli.mistakes.Mistake: questions.csv, line 3: threshold is 'many'; it must be a number
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from pathlib import Path

_SPELLED: Final = {
    "new_data=True": "--new-data",
    "meter='renyi'": "--meter renyi",
    'meter="renyi"': "--meter renyi",
    "tc.ROW": "--rows",
}
"""What the library calls what the command line has options for."""


@final
class Mistake(InvalidParameter):
    """A mistake in an option or a file."""

    def __init__(self, where: str, problem: str) -> None:
        """Say where it is, and what is wrong or what to write."""
        super().__init__(where, None, problem)
        self.args = (f"{where}: {problem}",)


def line(path: Path, number: int) -> str:
    """Return where a line of a file is, for a mistake in it."""
    return f"{path}, line {number}"


def spelled(sentence: str) -> str:
    """Return a sentence of the library in the words of the command line.

    >>> spelled("open it with new_data=True")
    'open it with --new-data'
    """
    for python, option in _SPELLED.items():
        sentence = sentence.replace(python, option)
    return sentence
