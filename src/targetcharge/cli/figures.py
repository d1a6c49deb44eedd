"""Figures: what all pictures of the command share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure


def new_figure(file: Path) -> Figure:
    """Return an empty figure that will be saved in this file.

    Raises:
        InvalidParameter: if matplotlib is missing, the folder is, or the name has no ending that it knows.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        expected = "left out, or matplotlib installed: pip install 'targetcharge[plot]'"
        raise InvalidParameter("--plot", str(file), expected) from None
    if not file.suffix:
        raise InvalidParameter("--plot", str(file), "a file name with an ending, such as plan.png or plan.svg")
    if not file.parent.is_dir():
        raise InvalidParameter("--plot", str(file), f"in a folder that exists; there is no {file.parent}")
    figure = Figure(figsize=(8, 5), layout="constrained")
    known = figure.canvas.get_supported_filetypes()
    if file.suffix[1:].lower() not in known:
        expected = f"a file that can be written: one of {', '.join(sorted(known))}"
        raise InvalidParameter("--plot", str(file), expected)
    return figure


def save(figure: Figure, file: Path) -> None:
    """Write the figure.

    Raises:
        InvalidParameter: if that fails.
    """
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter("--plot", str(file), f"a file that can be written ({error})") from None
