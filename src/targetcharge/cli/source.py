"""Where `tct audit` finds its function and its inputs.

>>> from types import ModuleType
>>> module = Source("f", print, ModuleType("mine"))
>>> value_of("--data0", "[1, 2]", module)
[1, 2]
"""

from __future__ import annotations

import ast
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms import Algorithm

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_FORM = "FILE.py:FUNCTION"


@final
@dataclass(frozen=True)
class Source:
    """A user's file.

    Attributes:
        name: of the function.
        function: the function or algorithm.
        module: the file, imported.
    """

    name: str
    function: object
    module: ModuleType


def load(what: str) -> Source:
    """Return the function that "FILE.py:function" names; the file is run, as a module.

    Raises:
        InvalidParameter: if there is no such file or function, or the file cannot be run.
    """
    text, colon, name = what.rpartition(":")
    if not colon or not name.isidentifier() or not text.endswith(".py"):
        raise InvalidParameter("FUNCTION", what, _FORM)
    file = Path(text)
    if not file.is_file():
        raise InvalidParameter("FUNCTION", what, f"{_FORM}, and there is no file {text}")
    alias = f"audited_{file.stem}"  # a file called random.py must not stand in for Python's own
    specification = importlib.util.spec_from_file_location(alias, file.resolve())
    if specification is None or specification.loader is None:
        raise InvalidParameter("FUNCTION", what, f"{_FORM}, and {text} cannot be imported")
    module = importlib.util.module_from_spec(specification)
    sys.modules[alias] = module
    sys.path.insert(0, str(file.resolve().parent))  # its neighbours may be imported, as if it were run
    try:
        specification.loader.exec_module(module)
    except KeyboardInterrupt:  # the user's
        raise
    except BaseException as error:
        raise InvalidParameter("FUNCTION", what, f"in a file that can be run: {error!r}") from error
    found = getattr(module, name, None)
    if not isinstance(found, Algorithm) and not callable(found):
        names = [key for key, value in vars(module).items() if _here(value, module)]
        raise InvalidParameter("FUNCTION", what, f"{_FORM}; {text} has {', '.join(names) or 'no functions'}")
    return Source(name, found, module)


def _here(value: object, module: ModuleType) -> bool:
    return isinstance(value, Algorithm) or getattr(value, "__module__", None) == module.__name__


def value_of(option: str, text: str, source: Source) -> object:
    """Return an input: a Python literal, what a JSON file holds, or a name in FILE.py (a function is called).

    Raises:
        InvalidParameter: if it is none of these.
    """
    if text.isidentifier() and hasattr(source.module, text):
        found = getattr(source.module, text)
        return _called(option, text, found) if callable(found) else found
    try:
        if text.endswith(".json"):
            return json.loads(Path(text).read_text(encoding="utf-8"))
        return ast.literal_eval(text)
    except (OSError, ValueError, SyntaxError, MemoryError, RecursionError) as error:
        expected = f"a Python literal, a JSON file that can be read, or a name in FILE.py ({error})"
        raise InvalidParameter(option, text, expected) from None


def _called(option: str, text: str, function: Callable[[], object]) -> object:
    try:
        return function()
    except KeyboardInterrupt:  # the user's
        raise
    except BaseException as error:
        expected = f"a variable, or a function without parameters that returns an input; it raised {error!r}"
        raise InvalidParameter(option, text, expected) from error
