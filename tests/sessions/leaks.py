"""Look for a secret in everything that an error lets out."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "swordfish"  # noqa: S105 - what an algorithm computes from the data
DATA = ["row one", "row two", SECRET]
"""The data itself, which a session may hold: it is not looked into."""

_PLAIN = (str, bytes, int, float, type(None))


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that hangs on it, suppressed or not."""
    waiting, seen = [error], set()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]


def frames(error: BaseException) -> Iterator[dict[str, object]]:
    """Yield the variables of the library's frames of a traceback."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "/targetcharge/" in frame.f_code.co_filename:
            yield dict(frame.f_locals)


def holds(value: object, secret: str, depth: int = 4) -> bool:
    """Return whether a secret is found in a value by printing it, or looking into containers and closures."""
    if value is DATA or depth == 0:
        return False
    if isinstance(value, _PLAIN):
        return secret in str(value)
    if isinstance(value, dict):
        return any(holds(part, secret, depth - 1) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds(part, secret, depth - 1) for part in value)
    cells = getattr(value, "__closure__", None) or ()
    library = str(getattr(value, "__module__", "")).startswith("targetcharge")
    if library and any(holds(cell.cell_contents, secret, depth - 1) for cell in cells if _filled(cell)):
        return True
    try:
        return secret in repr(value)
    except AttributeError:  # a dataclass that an interrupt left half made
        return False


def _filled(cell: object) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def lets_out(error: BaseException, secret: str = SECRET) -> list[str]:
    """Return where a secret was found, in words."""
    found = []
    for each in chain(error):
        found += [f"{type(each).__name__}'s text"] if secret in f"{each} {each.args!r} {each!r}" else []
        found += [f"{type(each).__name__}'s attributes"] if holds(vars(each), secret) else []
        notes = getattr(each, "__notes__", [])
        found += [f"{type(each).__name__}'s notes"] if holds(notes, secret) else []
        for variables in frames(each):
            found += [f"variable {name}" for name, value in variables.items() if holds(value, secret)]
    return found
