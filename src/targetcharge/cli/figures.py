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
        InvalidParameter: if matplotlib is missing, or the name has no ending to choose the format by.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        expected = "left out, or matplotlib installed: pip install 'targetcharge[plot]'"
        raise InvalidParameter("--plot", str(file), expected) from None
    if not file.suffix:
        raise InvalidParameter("--plot", str(file), "a file name with an ending, such as plan.png or plan.svg")
    return Figure(figsize=(8, 5), layout="constrained")


def save(figure: Figure, file: Path) -> None:
    """Write the figure.

    Raises:
        InvalidParameter: if that fails.
    """
    try:
        figure.savefig(file, dpi=120)
    except (OSError, ValueError) as error:
        raise InvalidParameter("--plot", str(file), f"a file that can be written ({error})") from None
