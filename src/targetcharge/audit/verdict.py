"""Verdicts: what an audit found, in words, as plain data, as a curve.

>>> verdict = Verdict(
...     passed=False, mode="exact", quantity="delta", claimed=0.1, attained=0.125, at=0.2, runs=96,
...     worst="a rule that sees the next score",
... )
>>> print(verdict)
FAILED (exact, 96 runs): at epsilon = 0.2 the claim is delta = 0.1 and 0.125 is attained, 1.25 of it
worst: a rule that sees the next score
>>> verdict.ratio, verdict.as_dict()["passed"]
(1.25, False)
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Final, Literal, final

Mode = Literal["exact", "sampling", "certificate"]

_GIVEN: Final = {"delta": "epsilon", "epsilon": "delta", "moment": "order", "price": "order", "q": "epsilon"}
"""A quantity, and what it is told at."""

_FIGURES: Final = ("{:.6g}", "{:.4g}")
"""How a figure and a ratio are written."""


@final
@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What an audit compared and what came out.

    Attributes:
        passed: whether nothing was found above the claim.
        mode: how it was found out: every path enumerated, sampled runs, or pairs of laws tried.
        quantity: what `claimed` and `attained` are: "delta" at an ε, "epsilon" at a δ, "moment" or "price" at a
            Rényi order, "q" at an ε (there the claim is a lower bound).
        claimed: what was promised.
        attained: what was found; with a confidence, a bound that holds with this confidence.
        at: where: the ε, δ or order.
        confidence: None if the figures are exact.
        runs: how many paths, runs or pairs it rests on.
        worst: the worst case, in words.
        curve: rows of (ε, claimed δ, attained δ).
    """

    passed: bool
    mode: Mode
    quantity: str
    claimed: float
    attained: float
    at: float
    runs: int
    confidence: float | None = None
    worst: str = ""
    curve: tuple[tuple[float, float, float], ...] = ()

    @property
    def ratio(self) -> float:
        """Return attained/claimed: above 1 the claim is false. For "q", claimed/attained."""
        above, below = (self.claimed, self.attained) if self.quantity == "q" else (self.attained, self.claimed)
        if below > 0:
            return above / below
        return 0.0 if above <= 0 else math.inf

    def as_dict(self) -> dict[str, object]:
        """Return the verdict as plain data, for JSON; the ratio included."""
        return {**asdict(self), "curve": [list(row) for row in self.curve], "ratio": self.ratio}

    def __str__(self) -> str:
        """Return one sentence, and the worst case."""
        how = self.mode if self.confidence is None else f"{self.mode}, confidence {self.confidence:g}"
        given = _GIVEN.get(self.quantity, "point")
        counted = "pairs" if self.mode == "certificate" else "runs"
        # The digits show on which side of the claim it is.
        fine = self.mode == "certificate" or (not self.passed and abs(self.ratio - 1) < 1e-3)
        figure, ratio = ("{:.10g}", "{:.10g}" if abs(self.ratio - 1) < 1e-3 else "{:.4g}") if fine else _FIGURES
        sentence = (
            f"{'passed' if self.passed else 'FAILED'} ({how}, {self.runs:,} {counted}): at {given} = {self.at:.6g}"
            f" the claim is {self.quantity} = {figure.format(self.claimed)}"
            f" and {figure.format(self.attained)} is attained, {ratio.format(self.ratio)} of it"
        )
        return f"{sentence}\nworst: {self.worst}" if self.worst else sentence
