"""One table from errors to exit codes.

>>> from targetcharge.errors import InvalidParameter
>>> exit_code(InvalidParameter("epsilon", 0, "above 0"))
2
"""

from __future__ import annotations

from typing import Final

from targetcharge.errors import (
    ComputationFailed,
    EngineError,
    InvalidParameter,
    LedgerError,
    Refused,
    TargetChargeError,
)

EXIT_CODES: Final[dict[type[TargetChargeError], int]] = {
    InvalidParameter: 2,
    Refused: 3,
    LedgerError: 4,
    ComputationFailed: 5,
    EngineError: 7,
}

AUDIT_FAILED: Final = 6
"""No error: the audit ran, and the claim it was about is false."""

FIRED: Final = 8
"""No error: a monitor looked, and something fired."""

INTERRUPTED: Final = 130
"""No error: Ctrl-C. What was published before it is printed, and paid for."""


def exit_code(error: TargetChargeError) -> int:
    """Return the exit code of an error."""
    return next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
