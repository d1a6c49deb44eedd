r"""Commands: help that fits every terminal, and errors that name options.

>>> flowing("Say it.\n\nA longer text that is written on\nseveral lines.")
'Say it.\n\nA longer text that is written on several lines.'
"""

from __future__ import annotations

import inspect
from typing import Any

from typer.core import TyperCommand, TyperOption

from targetcharge.cli.errors import given_by


class Command(TyperCommand):
    """A command whose errors name its options, and not the parameters of the library."""

    def __init__(self, *args: Any, help: str | None = None, **more: Any) -> None:  # noqa: A002, ANN401 - click's name
        """Take the text of the help without the line breaks of the source, which it would keep."""
        super().__init__(*args, help=flowing(help or ""), **more)

    def invoke(self, ctx: Any) -> object:  # noqa: ANN401 - of click, or of the copy of it that typer has
        """Run the command."""
        named: dict[str, str] = {}
        for given in self.params:
            place = given.opts[0] if isinstance(given, TyperOption) else given.metavar
            if given.nargs > 1 and given.metavar:  # LOW HIGH of --between: a name for each of its values
                named |= {value.lower(): f"{place} {value}" for value in given.metavar.split()}
            elif given.name and place:
                named[given.name] = place
        with given_by(named):
            return super().invoke(ctx)


def flowing(text: str) -> str:
    """Return a text with each paragraph on a line of its own, to be broken where the terminal ends."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))
