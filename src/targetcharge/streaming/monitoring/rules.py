"""Rules: what a monitor asks at every look, and what it reports.

>>> Rule("late", "delay > 60", threshold=150)
Rule(name='late', what='delay > 60', threshold=150)
>>> Rule("flying", tolerance="15%").reach(3000)
450
>>> Rule("late", threshold=150, margin=-1)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: margin is -1; it must be a number of at least 0
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.tables.questions import Distinct, what_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.tables.questions import Asked

_PERCENT: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?%")
_TOLERANCE: Final = 'a number of at least 0, or a share of the last value such as "15%"'


@final
@dataclass(frozen=True, repr=False)
class Rule:
    """A question that is asked at every look.

    Attributes:
        name: of the rule; alerts carry it.
        what: a predicate, None for all units, or made by `tc.questions.total` or `tc.questions.distinct`.
        threshold: reaching it is reported, and so is falling below it again.
        tolerance: a number that is further from the last published one has moved: in units of the number, or a
            share such as "15%". Left out, only the threshold counts.
        margin: a number that has risen falls only below threshold - margin. Left out for four times the scale of
            the noise: so one that stays at the threshold falls by noise alone in less than 1% of looks.
        prior: what is known before the first look, such as last year's number.
        so_far: whether it is about all rows up to the day, and not only about those of the day.
        anew: whether every day stands for itself: each that reaches the threshold is reported, and no fall.
        by: a column, or two: then the rule is about each of the keys by itself.
        keys: their declared values. Those below the threshold are asked in one scan, and all others in another.
            Of distinct values each takes one; with a budget for every individual, each of the others.
    """

    name: str
    what: Asked = None
    threshold: float | None = None
    tolerance: float | str | None = None
    margin: float | None = None
    prior: float | None = None
    so_far: bool = False
    anew: bool = False
    by: str | Sequence[str] | None = None
    keys: object = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, whatever the table."""
        check_name(self.name, "rule")
        what = what_of(self.what)
        checks.flag("so_far", self.so_far)
        checks.flag("anew", self.anew)
        self._check_figures()
        if self.threshold is None and isinstance(what, Distinct):
            raise InvalidParameter("threshold", None, "given for distinct values")
        if self.threshold is None and self.tolerance is None:
            raise InvalidParameter("threshold", None, "given, or a tolerance: else every look would cost")
        if self.threshold is None and self.anew:
            raise InvalidParameter("anew", self.anew, "left out where there is no threshold")
        if self.threshold is None and self.margin is not None:
            raise InvalidParameter("margin", self.margin, "left out where there is no threshold")
        for name in ("tolerance", "margin", "prior"):
            if self.anew and (value := getattr(self, name)) is not None:
                raise InvalidParameter(name, value, "left out where every day is looked at anew")
        if (self.by is None) != (self.keys is None):
            name, other = ("by", "keys") if self.by is None else ("keys", "by")
            raise InvalidParameter(name, None, f"given with {other}")

    def _check_figures(self) -> None:
        for name in ("threshold", "prior"):
            if (value := getattr(self, name)) is not None:
                checks.threshold(name, value)
        if self.margin is not None and checks.threshold("margin", self.margin) < 0:
            raise InvalidParameter("margin", self.margin, "a number of at least 0")
        if self.threshold is not None and self.margin is not None:
            checks.threshold("threshold - margin", self.threshold - self.margin)
        if isinstance(self.tolerance, str):
            if not _PERCENT.fullmatch(self.tolerance):
                raise InvalidParameter("tolerance", self.tolerance, _TOLERANCE)
        elif self.tolerance is not None and (
            not 0 <= checks.real("tolerance", self.tolerance, _TOLERANCE) <= checks.MAX_THRESHOLD
        ):
            raise InvalidParameter("tolerance", self.tolerance, _TOLERANCE)

    def reach(self, value: float) -> float:
        """Return how far from a published value is not moved; as far as one likes without a tolerance."""
        if not isinstance(self.tolerance, str):
            return math.inf if self.tolerance is None else self.tolerance
        found = _PERCENT.fullmatch(self.tolerance)
        assert found is not None  # noqa: S101 - checked when it was made
        exact = abs(Fraction(value)) * Fraction(found[1]) / 100
        return int(exact) if exact.denominator == 1 else float(exact)

    def __repr__(self) -> str:
        """Return what was given."""
        given = ((part.name, getattr(self, part.name), part.default) for part in fields(self))
        told = (f"{name}={value!r}" for name, value, default in given if value is not default)
        return f"Rule({', '.join(told)})"


def check_name(name: object, what: str) -> None:
    """Refuse a name that is none."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameter("name", name, f"text that says which {what} it is")
