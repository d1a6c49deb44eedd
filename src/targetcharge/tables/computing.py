"""Computing: from a question to the private algorithm that answers it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.ledger import Answer
from targetcharge.mechanisms import (
    above_threshold,
    between_thresholds,
    boundary,
    changed,
    noisy_count,
    side_of_threshold,
)
from targetcharge.outcomes import UNCHANGED, UnpublishableError, publishable
from targetcharge.queries.measures import Total
from targetcharge.sessions import Release
from targetcharge.tables.numbers import Number, number_of
from targetcharge.tables.questions import Above, Between, Side, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from targetcharge.engines.engine import Engine
    from targetcharge.mechanisms import Algorithm
    from targetcharge.queries.columns import Column
    from targetcharge.randomness import Entropy
    from targetcharge.tables.readers import Read

Single = Above | Value | Between | Side
"""Questions with one answer."""


def number_asked(question: Single, schema: Mapping[str, Column]) -> Number:
    """Return the number that a question is about."""
    return number_of(question.what, schema, question.threshold if isinstance(question, Above) else None)


def one_scan(make: Callable[[Read], Algorithm], read: Read) -> Algorithm:
    """Return an algorithm that looks at its number twice, with one scan for each run; then it is forgotten."""
    known: list[int] = []

    def again(engine: Engine) -> int:
        if not known:
            known.append(read(engine))
        return known[0]

    inner = make(again)

    def run(data: object, entropy: Entropy) -> object:
        try:
            return inner.run(data, entropy)
        finally:
            known.clear()

    return replace(inner, run=run)


def algorithm_of(question: Single, number: Number, epsilon: float, read: Read) -> Algorithm:
    """Return the algorithm that answers a question, in steps: `gauged` shows them.

    Args:
        question: what was asked.
        number: what it is about.
        epsilon: ε of one computation.
        read: the number in the data.
    """
    check_grid(number, epsilon)
    if isinstance(question, Above | Value) and question.prior is None and question.tolerance != 0:
        expected = "left out, or given with the prior that it is about"
        raise InvalidParameter("tolerance", question.tolerance, expected)
    sensitivity, text = number.measure.sensitivity, number.text
    match question:
        case Above():
            least = steps_of(number, "threshold", question.threshold)
            name = f"{text} >= {question.threshold!r}"
            if (prior := prior_value(question.prior)) is not None:
                band = _unchanged(number, prior, question.tolerance)
                inner = changed(read, *band, epsilon, threshold=least, sensitivity=sensitivity, name=name)
                return replace(inner, prior=prior)
            return above_threshold(read, least, epsilon, sensitivity=sensitivity, name=name)
        case Value():
            if (prior := prior_value(question.prior)) is not None:
                band = _unchanged(number, prior, question.tolerance)
                inner = changed(read, *band, epsilon, sensitivity=sensitivity, name=text)
                return replace(inner, prior=prior)
            return noisy_count(read, epsilon, sensitivity=sensitivity, name=text)
        case Between():
            low, high = band_in_steps(number, question)
            name = f"{text} between {question.low!r} and {question.high!r}"
            return between_thresholds(read, low, high, epsilon, sensitivity=sensitivity, name=name)
        case Side():
            least = steps_of(number, "threshold", question.threshold)
            name = f"{text} near {question.threshold!r}"
            side = partial(side_of_threshold, threshold=least, epsilon=epsilon, sensitivity=sensitivity, name=name)
            return one_scan(lambda seen: boundary(side(seen)), read)


def steps_of(number: Number, name: str, value: float) -> int:
    """Return the fewest steps that are worth at least a value; refuse more than are exact in double precision."""
    steps = number.gauge.least(checks.threshold(name, value))
    if not abs(steps) <= checks.MAX_THRESHOLD:
        most = number.gauge.value(int(checks.MAX_THRESHOLD))
        raise InvalidParameter(name, value, f"at most {most:.4g} either way on this grid: choose a coarser one")
    return steps


def check_grid(number: Number, epsilon: float) -> None:
    """Refuse a grid so fine that the noise of one step would be lost in double precision."""
    if isinstance(number.measure, Total) and epsilon / number.measure.sensitivity < checks.MIN_QUERY_EPSILON:
        step = number.gauge.value(1)
        coarser = step * number.measure.sensitivity * checks.MIN_QUERY_EPSILON / epsilon
        raise InvalidParameter("grid", step, f"at least {coarser:.2g} for these bounds at query ε {epsilon:g}")


def prior_value(prior: object) -> float | None:
    """Return the number that a prior stands for: an answer's outcome, or what an unchanged one was before."""
    if isinstance(prior, Release) and not prior.released:
        raise InvalidParameter("prior", prior, "something that was published: this release is pending")
    if isinstance(prior, Answer | Release):
        unchanged = isinstance(prior, Answer) and prior.outcome is UNCHANGED
        found = prior.prior if unchanged and isinstance(prior, Answer) else prior.outcome
    else:
        found = plain(prior)
    if found is None or type(found) is int or type(found) is float:
        return found
    raise InvalidParameter("prior", prior, "a number, an earlier answer with one, or None")


def plain(prior: object) -> object:
    """Return a prior in the form in which it is kept: one of Python's own numbers for one of numpy's."""
    try:
        return publishable(prior)
    except UnpublishableError:
        return prior


def _unchanged(number: Number, prior: float, tolerance: float) -> tuple[Fraction, Fraction]:
    """Return the middle and the reach, in steps, of what counts as unchanged."""
    expected = "a number of at least 0"
    if not 0 <= checks.real("tolerance", tolerance, expected) <= checks.MAX_THRESHOLD:
        raise InvalidParameter("tolerance", tolerance, expected)
    checks.threshold("prior", prior)
    low, high = number.gauge.least(prior - tolerance), number.gauge.most(prior + tolerance)
    if low > high:
        low = high = number.gauge.steps(prior)
    return Fraction(low + high, 2), Fraction(high - low, 2)


def band_in_steps(number: Number, question: Between) -> tuple[int, int]:
    """Return the ends of a band, in steps."""
    return steps_of(number, "low", question.low), _most(number, question)


def _most(number: Number, question: Between) -> int:
    high = checks.threshold("high", question.high)
    if high < checks.threshold("low", question.low):
        raise InvalidParameter("high", high, f"at least low, {question.low!r}")
    most = number.gauge.most(high)
    if most < number.gauge.least(question.low):
        raise InvalidParameter("high", high, f"so far above low, {question.low!r}, that a value lies in between")
    return most
