"""The audit's picture: the δ(ε) that a claim implies, and the δ(ε) that the runs show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.cli.figures import new_figure, save

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.audit import Verdict


def draw(verdict: Verdict, name: str, file: Path) -> None:
    """Draw a verdict into a file; its ending chooses the format.

    Raises:
        InvalidParameter: if matplotlib is missing or cannot write such a file.
    """
    figure = new_figure(file)
    axes = figure.add_subplot()
    epsilons, claimed, attained = zip(*verdict.curve, strict=True)
    colour = "#08519c" if verdict.passed else "tab:red"
    axes.plot(epsilons, claimed, color="black", linestyle="--", linewidth=1.5, label="claimed: no more than this")
    axes.fill_between(epsilons, attained, color=colour, alpha=0.15)
    axes.plot(epsilons, attained, color=colour, linewidth=2.2, label="attained: at least this")
    axes.axvline(verdict.claimed, color="0.6", linewidth=1, label=f"claimed ε = {verdict.claimed:g}")
    word = "passed" if verdict.passed else "FAILED"
    axes.set(
        xlabel="ε",
        ylabel="δ",
        ylim=(0, None),
        xlim=(0, max(epsilons)),
        title=f"{name}: {word}, {verdict.runs:,} runs on each input, confidence {verdict.confidence:g}",
    )
    axes.grid(visible=True, alpha=0.2)
    axes.legend(fontsize="small")
    save(figure, file)
