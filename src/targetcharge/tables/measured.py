"""What an engine computes for a question: a measure, how its steps are shown, its words; its figures in steps.

>>> from targetcharge.queries.tree import Column, Kind
>>> measure, gauge, words = measured(Sum("fare", 0, 100, grid="0.01"), {"fare": Column("fare", Kind.NUMBER)})
>>> words, measure.upper
('sum(fare from 0 to 100)', 10000)
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from targetcharge import checks
from targetcharge.errors import InvalidParameter, Parameter
from targetcharge.ledger import Answer
from targetcharge.markup import number as written
from targetcharge.mechanisms.gauge import COUNTED, grid, occupancy
from targetcharge.outcomes import UNCHANGED, UnpublishableError, publishable
from targetcharge.queries.measures import MOST_STEPS, Count, Sketch, Total, UnitValue
from targetcharge.queries.parser import parse
from targetcharge.queries.tree import Kind, Predicate, column_of, columns, listed
from targetcharge.queries.values import read_as
from targetcharge.sessions import Release
from targetcharge.tables.questions import (
    Above,
    BetweenQuestion,
    CountQuestion,
    Distinct,
    SideQuestion,
    Sum,
    Watch,
    figure,
)
from targetcharge.tables.questions import Count as CountOf
from targetcharge.tables.questions import Value as ValueOf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.mechanisms.gauge import Gauge
    from targetcharge.queries.measures import Measure
    from targetcharge.queries.tree import Column
    from targetcharge.tables.questions import Question, What, Where

_MOST: Final = 10.0**15
_MOST_STEPS: Final = 2**50
_WHOLE_STEPS: Final = 2**30
_FEWEST_BUCKETS: Final = 2**14
_MOST_BUCKETS: Final = 2**30
_DIGITS: Final = 6
"""Of a sum or a mean, from the first digit of its bounds on."""
_COARSE_DIGITS: Final = 3
_MOST_WHOLE: Final = 10_000
"""Whole numbers that picks are made among, if nobody says otherwise."""
_ROOM: Final = 16
"""Buckets of a sketch for each value at the threshold: so few share one that the estimate is sharp there."""


TOLERANCE: Final = (
    "given with a prior: how far from it nothing has changed, at least as far as the noise goes. With 0 nearly"
    " every answer is a change, and costs"
)

Measured = tuple["Measure", "Gauge", str]
"""What an engine computes, how its steps are shown, and what the transcript calls it."""


def measured(what: What | ValueOf, schema: Mapping[str, Column], threshold: float | None = None) -> Measured:
    """Return what an engine computes for a question.

    Args:
        what: as the caller said it.
        schema: the columns there are.
        threshold: that it is compared with, if there is one: a sketch is made to be sharp there.

    Raises:
        InvalidParameter: if it makes no sense on these columns.
    """
    if not isinstance(what, CountOf | Sum | Distinct | ValueOf):
        raise InvalidParameter(
            "what", what, "made by tc.questions.sum or distinct; tc.questions.above takes a text"
        )
    where = _tree(what.where, schema)
    match what:
        case CountOf():
            return Count(where), COUNTED, f"count({where if where is not None else '*'})"
        case Sum():
            return _sum(what, where, schema)
        case ValueOf():
            return _value(what, where, schema)
        case Distinct():
            return _distinct(what, where, schema, threshold)


def _tree(where: Where, schema: Mapping[str, Column]) -> Predicate | None:
    """Return a predicate as a tree; one that was parsed before must be about columns of this table."""
    if where is None or isinstance(where, str) or not isinstance(where, Predicate):
        return None if where is None else parse(where, schema)
    if any(schema.get(column.name) != column for column in columns(where)):
        raise InvalidParameter("where", str(where), f"about columns of the table: {listed(schema)}")
    return where


def _text(name: str, inside: str, where: Predicate | None) -> str:
    return f"{name}({_inside(inside, where)})"


def _inside(words: str, where: Predicate | None) -> str:
    return words if where is None else f"{words} where {where}"


def _numbers_of(what: Sum | ValueOf, schema: Mapping[str, Column]) -> tuple[Column, Fraction, Fraction]:
    """Return a column of numbers, and the bounds of what a unit contributes."""
    column = column_of(what.column, schema)
    if column.kind is not Kind.NUMBER:
        declared = read_as(column, Kind.NUMBER) if column.kind is Kind.TEXT else ()
        raise InvalidParameter("column", what.column, f"a column of numbers, and it is {column.kind}", *declared)
    lower, upper = _bound("lower", what.lower), _bound("upper", what.upper)
    if lower > upper:
        raise InvalidParameter("lower", what.lower, "at most ", Parameter("upper"), f", {what.upper!r}")
    return column, lower, upper


def _value(what: ValueOf, where: Predicate | None, schema: Mapping[str, Column]) -> Measured:
    column, lower, upper = _numbers_of(what, schema)
    if lower == upper:
        raise InvalidParameter("upper", what.upper, "above ", Parameter("lower"), f", {what.lower!r}")
    step = _decimals(upper - lower) if what.grid is None else _step(what.grid)
    least, most = math.ceil(lower / step), math.floor(upper / step)
    if most <= least:
        raise InvalidParameter("grid", what.grid, f"fine enough for the bounds {what.lower!r} to {what.upper!r}")
    if most - least > _MOST_STEPS or max(abs(least), abs(most)) > MOST_STEPS:
        raise InvalidParameter("grid", what.grid, f"coarser: at least {float((upper - lower) / _MOST_STEPS):.3g}")
    inside = f"{column.name} from {figure(what.lower)} to {figure(what.upper)}"
    return UnitValue(column, least, most, step, where), grid(step), _inside(inside, where)


def _sum(what: Sum, where: Predicate | None, schema: Mapping[str, Column]) -> Measured:
    column, lower, upper = _numbers_of(what, schema)
    largest = max(abs(lower), abs(upper))
    if not largest:
        expected = " below 0: else every contribution is 0"
        raise InvalidParameter("upper", what.upper, "above 0, or ", Parameter("lower"), expected)
    step = _fitting(column, largest) if what.grid is None else _step(what.grid)
    least, most = math.ceil(lower / step), math.floor(upper / step)
    if most < least or not max(abs(least), abs(most)):
        raise InvalidParameter("grid", what.grid, f"fine enough for the bounds {what.lower!r} to {what.upper!r}")
    if max(abs(least), abs(most)) > _MOST_STEPS:
        raise InvalidParameter("grid", what.grid, f"coarser: at least {float(largest / _MOST_STEPS):.3g}")
    text = _text("sum", f"{column.name} from {figure(what.lower)} to {figure(what.upper)}", where)
    return Total(column, least, most, step, where), grid(step), text


def _bound(name: str, value: float) -> Fraction:
    expected = f"a number between {written(-_MOST)} and {written(_MOST)}"
    number = checks.real(value, name, expected)
    if not abs(number) <= _MOST:
        raise InvalidParameter(name, value, expected)
    return Fraction(value) if isinstance(value, int) else Fraction(number)


def _step(value: object) -> Fraction:
    """Return a grid as it was written: 0.01 is a hundredth, not the double next to it."""
    expected = 'a number above 0, such as 0.01, 5 or "0.01"; at least 1e-15'
    try:
        text = "" if isinstance(value, bool) else str(value)
        # First as a double: the fraction of "1e999999999" would take all memory.
        step = Fraction(text) if "/" in text or 0 < float(text) < math.inf else Fraction(0)
    except (ValueError, ZeroDivisionError):
        raise InvalidParameter("grid", value, expected) from None
    if not Fraction(1, 10**15) <= step <= 10**15:
        raise InvalidParameter("grid", value, expected)
    return step


def _fitting(column: Column, largest: Fraction) -> Fraction:
    """Return a grid for the bounds: whole numbers where they are, else a millionth of the largest contribution."""
    if column.exact is not None and column.exact.scale == 0 and largest <= _WHOLE_STEPS:
        return Fraction(1)
    return _decimals(largest)


def _decimals(largest: Fraction, digits: int = _DIGITS) -> Fraction:
    """Return a power of ten that is so many digits below a number's first one."""
    return Fraction(10) ** (math.floor(math.log10(largest)) - digits)


def coarse(what: ValueOf, schema: Mapping[str, Column]) -> ValueOf:
    """Return a number with a grid for picks: the one given, whole numbers, or a thousand steps at least."""
    column, lower, upper = _numbers_of(what, schema)
    if what.grid is not None or lower == upper:
        return what
    whole = column.exact is not None and column.exact.scale == 0 and upper - lower <= _MOST_WHOLE
    return replace(what, grid=Fraction(1) if whole else _decimals(upper - lower, _COARSE_DIGITS))


def _distinct(
    what: Distinct, where: Predicate | None, schema: Mapping[str, Column], threshold: float | None
) -> Measured:
    column = column_of(what.column, schema)
    per_unit = checks.positive_integer(what.per_unit, "per_unit")
    if threshold is None:
        expected = "asked with `above`: a sketch is sharp near a threshold, and released only above it"
        raise InvalidParameter("where", what, expected)
    expected = f"from 1 to {_MOST_BUCKETS // _ROOM:,} for distinct values"
    if not 1 <= checks.threshold(threshold, "threshold") <= _MOST_BUCKETS // _ROOM:
        raise InvalidParameter("threshold", threshold, expected)
    buckets = max(_FEWEST_BUCKETS, 1 << math.ceil(math.log2(_ROOM * threshold)))
    text = _text("distinct", f"{column.name}, {per_unit} for each unit" if per_unit > 1 else column.name, where)
    return Sketch(column, where, per_unit, buckets, ""), occupancy(buckets), text


def check_grid(measure: Measure, gauge: Gauge, epsilon: float, *, always_paid: bool) -> None:
    """Refuse a grid so fine that the noise of one step would be lost in double precision.

    What is always paid for may have noise of half the rate.
    """
    least = checks.MIN_QUERY_EPSILON * (2 if always_paid else 1)
    if isinstance(measure, Total | UnitValue) and epsilon / measure.sensitivity < least:
        step = gauge.value(1)
        coarser = step * measure.sensitivity * least / epsilon
        digit = 10.0 ** (math.floor(math.log10(coarser)) - 1)
        expected = f"at least {math.ceil(coarser / digit) * digit:.2g} for these bounds at query ε {epsilon:g}"
        raise InvalidParameter("grid", step, expected)


# In steps.


def check_figures(question: Question, gauge: Gauge) -> None:
    """Refuse a threshold, a band or a prior that makes no sense, by name."""
    match question:
        case Above(threshold=threshold) | Watch(threshold=threshold) | SideQuestion(threshold=threshold):
            least_steps(gauge, "threshold", threshold)
        case BetweenQuestion():
            band_steps(gauge, question)
    if isinstance(question, Above | CountQuestion):
        unchanged_steps(gauge, question)


def least_steps(gauge: Gauge, name: str, value: float) -> int:
    """Return the fewest steps that are worth at least a value; refuse more than are exact in doubles."""
    steps = gauge.least(checks.threshold(value, name))
    if not abs(steps) <= checks.MAX_THRESHOLD:
        most = gauge.value(int(checks.MAX_THRESHOLD))
        raise InvalidParameter(
            name, value, f"at most {written(float(most), 4)} either way on this grid: choose a coarser one"
        )
    return steps


def band_steps(gauge: Gauge, question: BetweenQuestion) -> tuple[int, int]:
    """Return the ends of a band, in steps."""
    least, high = least_steps(gauge, "low", question.low), checks.threshold(question.high, "high")
    if high < checks.threshold(question.low, "low"):
        raise InvalidParameter("high", high, "at least ", Parameter("low"), f", {question.low!r}")
    most = gauge.most(high)
    if most < least:
        expected = f", {question.low!r}, that a value lies in between"
        raise InvalidParameter("high", high, "so far above ", Parameter("low"), expected)
    return least, most


def unchanged_steps(gauge: Gauge, question: Above | CountQuestion) -> tuple[Fraction, Fraction] | None:
    """Return the middle and the reach, in steps, of what counts as unchanged; None if there is no prior."""
    if question.prior is not None and question.tolerance is None:
        raise InvalidParameter("tolerance", None, TOLERANCE)
    given = reach_of(question, 1)
    if question.prior is None and given:
        raise InvalidParameter(
            "tolerance", question.tolerance, "left out, or given with the prior that it is about"
        )
    prior = prior_value(question.prior)
    if prior is None:
        return None
    reach = reach_of(question, checks.threshold(prior, "prior"))
    low, high = gauge.least(prior - reach), gauge.most(prior + reach)
    if low > high:
        low = high = gauge.steps(prior)
    return Fraction(low + high, 2), Fraction(high - low, 2)


def reach_of(question: Above | CountQuestion, prior: float) -> float:
    """Return how far from a prior is unchanged."""
    tolerance = 0 if question.tolerance is None else question.tolerance
    expected = 'a number of at least 0, or a share of the prior such as "20%"'
    if isinstance(tolerance, str):
        reach = checks.percent_of(tolerance, prior, "tolerance", expected)
    else:
        checks.real(tolerance, "tolerance", expected)
        reach = tolerance
    if not 0 <= reach <= checks.MAX_THRESHOLD:
        raise InvalidParameter("tolerance", tolerance, expected)
    return reach


def prior_value(prior: object) -> float | None:
    """Return the number that a prior stands for: an answer's outcome, or what an unchanged one was before."""
    if isinstance(prior, Release) and not prior.released:
        raise InvalidParameter("prior", prior, "something that was published: this release is pending")
    if isinstance(prior, Answer | Release):
        unchanged = isinstance(prior, Answer) and prior.outcome is UNCHANGED
        number = prior.prior if unchanged and isinstance(prior, Answer) else prior.outcome
    else:
        number = _plain_prior(prior)
    if number is None or type(number) is int or type(number) is float:
        return number
    raise InvalidParameter("prior", prior, "a number, an earlier answer with one, or None")


def _plain_prior(prior: object) -> object:
    """Return a prior in the form in which it is kept: one of Python's own numbers for one of numpy's."""
    try:
        return publishable(prior)
    except UnpublishableError:
        return prior
