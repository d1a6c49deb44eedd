"""Many cases in one test: all of them are checked, and all that fail are told at once."""

import traceback
from collections.abc import Callable, Iterable, Mapping

import pytest


def every(cases: Iterable | Mapping, check: Callable) -> None:
    """Check every case; raise one AssertionError that lists all the cases that failed, and why.

    `cases` maps the name of a case to its value, or lists values that are shown as they are.
    A value that is a tuple is passed as several arguments.
    """
    named = cases.items() if isinstance(cases, Mapping) else [(repr(case)[:200], case) for case in cases]
    checked, failures = 0, []
    for name, case in named:
        checked += 1
        try:
            check(*case) if isinstance(case, tuple) else check(case)
        except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told below, with all others
            failures.append(f"{name}: {''.join(traceback.format_exception(error, limit=-2)).strip()}")
    assert checked, "there was no case to check"
    if failures:
        raise AssertionError(f"{len(failures)} of {checked} cases failed:\n\n" + "\n\n".join(failures))
