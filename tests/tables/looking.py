"""Everything that a caller can see of a call: what it returns or raises, warns of and prints."""

from __future__ import annotations

import io
import re
import warnings
from contextlib import redirect_stderr, redirect_stdout

from targetcharge.ledger import Answer
from targetcharge.sessions import Release

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def look(call):
    """Return all there is to see of a call, as text, and the error if it raised one."""
    out, caught = io.StringIO(), None
    with warnings.catch_warnings(record=True) as warned, redirect_stdout(out), redirect_stderr(out):
        warnings.simplefilter("always")
        try:
            told = shown(call())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
            caught, told = error, raised(error)
    seen = [told, *(f"{each.category.__name__}: {each.message}" for each in warned), out.getvalue()]
    return _ADDRESS.sub("0x", "\n".join(seen)), caught


def raised(error, depth=0):
    """Return all that an error shows, and what hangs on it, suppressed or not."""
    if error is None or depth > 5:
        return repr(error)
    own = {name: shown(value) for name, value in vars(error).items()}
    parts = [
        type(error).__module__,
        type(error).__name__,
        str(error),
        repr(error),
        shown(error.args),
        repr(own),
        repr(getattr(error, "__notes__", None)),
        repr(error.__suppress_context__),
        f"cause: {raised(error.__cause__, depth + 1)}",
        f"context: {raised(error.__context__, depth + 1)}",
    ]
    return "\n".join(parts)


def shown(value):
    """Return how a value prints, also in a notebook; of answers and texts every part."""
    if isinstance(value, list | tuple):
        return repr([shown(each) for each in value])
    if isinstance(value, Answer | Release | str | int | float | bytes | None):
        return repr(value)
    if isinstance(value, type):
        return value.__name__
    html = getattr(value, "_repr_html_", None)
    plain = getattr(value, "as_dict", getattr(value, "columns", None))
    parts = [repr(value), str(value), html() if callable(html) and _ours(value) else ""]
    return "\n".join([*parts, repr(plain()) if callable(plain) and _ours(value) else ""])


def _ours(value):
    return type(value).__module__.startswith("targetcharge")
