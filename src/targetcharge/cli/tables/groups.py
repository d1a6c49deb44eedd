"""Groups of options: a command's parameter that is a dataclass stands for one option for each of its fields.

>>> from dataclasses import dataclass
>>> @dataclass(frozen=True, kw_only=True)
... class Size:
...     width: int = 3
...     height: int = 4
>>> @grouped
... def area(name: str, *, size: Size) -> None:
...     print(name, size.width * size.height)
>>> list(inspect.signature(area).parameters)
['name', 'width', 'height']
>>> area(name="door", width=2, height=5)
door 10
"""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose groups of options are taken apart for the command line, and put together for it."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _options(groups[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401 - as the options are declared
        whole = {
            name: group(**{part.name: given.pop(part.name) for part in fields(group)})
            for name, group in groups.items()
        }
        command(**whole, **given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    return run


def _options(group: Any) -> list[Parameter]:  # noqa: ANN401 - any dataclass
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            part.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if part.default is MISSING else part.default,
            annotation=hints[part.name],
        )
        for part in fields(group)
    ]
