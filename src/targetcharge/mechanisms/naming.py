"""Names of algorithms, as the transcript shows them: public, so never made from the data.

>>> title(None, "noisy_count", len), title("beds taken", "noisy_count", len)
('noisy_count(len)', 'beds taken')
"""

from __future__ import annotations

from targetcharge.errors import InvalidParameter


def title(name: str | None, mechanism: str, function: object) -> str:
    """Return the name given, or one made of the mechanism's and the function's."""
    if name is None:
        return f"{mechanism}({function_name(function)})"
    return checked(name)


def checked(name: object) -> str:
    """Return a name if it is one."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameter("name", name, "a text, or None for a name made from the function's")
    return name


def function_name(function: object) -> str:
    """Return a function's own name, or its type's if it has none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__
