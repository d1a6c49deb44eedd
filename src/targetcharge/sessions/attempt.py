"""Attempts: run code that sees the data, and let nothing of it out through an error.

An exception's text, cause, context and traceback may hold data. So whatever is raised inside is dropped there, and
the caller raises a fresh error that says the same for every failure.

>>> attempt(lambda: 1 / 0)
Failure(error=<class 'targetcharge.errors.ComputationFailed'>)
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, final

from targetcharge.errors import ComputationFailed, TargetChargeError

if TYPE_CHECKING:
    from collections.abc import Callable

Result = TypeVar("Result")


@final
@dataclass(frozen=True)
class Failure:
    """What to raise once nothing of the failed computation is on the stack."""

    error: Callable[[], BaseException]


def attempt(call: Callable[[], Result], public: tuple[type[TargetChargeError], ...] = ()) -> Result | Failure:
    """Return what a call returns, or what to raise instead of what it raised.

    Args:
        call: runs with the data.
        public: errors whose text the call's own code makes from public facts; they keep it.
    """
    try:
        return call()
    except public as error:
        kind, sentence = type(error), str(error)
    except KeyboardInterrupt:
        return Failure(KeyboardInterrupt)
    except SystemExit:
        return Failure(_exit)
    except asyncio.CancelledError:
        return Failure(asyncio.CancelledError)
    except BaseException:  # noqa: BLE001 - whatever it is, it may carry data
        return Failure(ComputationFailed)
    return Failure(lambda: kind(sentence))


def _exit() -> SystemExit:
    return SystemExit(1)
