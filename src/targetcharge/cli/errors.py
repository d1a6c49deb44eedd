"""Errors on the command line: mistakes in one sentence each, and one table from errors to exit codes.

>>> raise Mistake("questions.csv, line 3", "threshold is 'many'; it must be a number")
Traceback (most recent call last):
targetcharge.cli.errors.Mistake: questions.csv, line 3: threshold is 'many'; it must be a number
>>> exit_code(InvalidParameter("epsilon", 0, "above 0"))
2
>>> sentence(NotAllowed("open it with ", Setting("new_data", True)))
'open it with --new-data'
>>> sentence(NotAllowed("open it with ", Setting("types", {"age": "number"})))
'open it with --type age=number'
"""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, final

from targetcharge.errors import (
    BudgetWarning,
    ComputationFailed,
    EngineError,
    InvalidParameter,
    LedgerError,
    NotAllowed,
    Parameter,
    Refused,
    Setting,
    TargetChargeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

EXIT_CODES: Final[dict[type[TargetChargeError], int]] = {
    InvalidParameter: 2,
    Refused: 3,
    LedgerError: 4,
    ComputationFailed: 5,
    EngineError: 7,
}

AUDIT_FAILED: Final = 6  # no error: the audit ran, and the claim it was about is false
FIRED: Final = 8  # no error: a monitor looked, and something fired
INTERRUPTED: Final = 130  # no error: Ctrl-C; what was published before it is printed, and paid for


@final
class Mistake(InvalidParameter):
    """A mistake in an option or a file."""

    def __init__(self, where: str, problem: str) -> None:
        """Say where it is, and what is wrong or what to write."""
        super().__init__(where, None, problem)
        self.args = (f"{where}: {problem}",)


@contextmanager
def written_at(place: str) -> Iterator[None]:
    """Let errors about what was written in a file name the place; no place is the command line."""
    try:
        yield
    except InvalidParameter as error:
        named = place and not isinstance(error, Mistake)
        raise (Mistake(place, sentence(error)) if named else error) from None
    except NotAllowed as error:
        raise NotAllowed(f"{place}: " if place else "", *error.args) from None


@contextmanager
def given_by(options: Mapping[str, str]) -> Iterator[None]:
    """Let errors about parameters name the options that gave them; a mistake names its place already."""
    try:
        yield
    except InvalidParameter as error:
        error.args = tuple(options.get(part, part) if isinstance(part, Parameter) else part for part in error.args)
        raise


def line(path: Path, number: int) -> str:
    """Return where a line of a file is."""
    return f"{path}, line {number}"


def exit_code(error: TargetChargeError) -> int:
    """Return the exit code of an error."""
    return next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))


def sentence(error: TargetChargeError | BudgetWarning) -> str:
    """Return what an error or a warning says, with options in place of the parameters that it says to set."""
    return "".join(_setting(part) if isinstance(part, Setting) else str(part) for part in error.args)


def _setting(setting: Setting) -> str:
    """Return a parameter and the value to give it, as options."""
    if isinstance(setting.value, dict):  # types
        return " ".join(f"--type {shlex.quote(f'{name}={kind}')}" for name, kind in setting.value.items())
    return option(setting.name) + ("" if setting.value is True else f" {setting.value}")


def option(name: str) -> str:
    """Return a parameter as it is spelled on the command line: per_unit is --per-unit."""
    return "--" + name.replace("_", "-")
