"""Preparing: from a question to what is known of it before the data is touched; and back from a ledger's record.

>>> from targetcharge.queries.tree import Column, Kind
>>> from targetcharge.tables import questions
>>> schema = {"age": Column("age", Kind.NUMBER)}
>>> prepared = prepare(questions.above("age > 65", threshold=100), schema, epsilon=0.1)
>>> prepared.name, prepared.record
('count(age > 65) >= 100', '{"what":{"count":"age > 65"},"above":100}')
>>> read_back(prepared.record, 0.1, schema).measure == prepared.measure
True
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from targetcharge import checks
from targetcharge.errors import InvalidParameter, NotAllowed, TargetChargeError
from targetcharge.queries import measures
from targetcharge.queries.keys import declare, from_published
from targetcharge.queries.measures import Count, Sketch, UnitValue
from targetcharge.sessions.select import check_selection
from targetcharge.tables.measured import check_figures, check_grid, coarse, measured
from targetcharge.tables.prepared import Prepared, additive
from targetcharge.tables.questions import Above, Histogram, Keyed, Mean, Quantiles, Question, Top, Watch, What
from targetcharge.tables.records import record_of, recorded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from targetcharge.queries.keys import Keys
    from targetcharge.queries.measures import Measure
    from targetcharge.queries.tree import Column

_MOST_CELLS: Final = 2**20
"""That a quantile is picked from."""


def prepare(
    question: Question, schema: Mapping[str, Column], epsilon: float, *, individual: bool = False
) -> Prepared:
    """Return a question, ready to be asked: its predicate is parsed here, and nowhere else.

    Args:
        question: made by `tc.questions`.
        schema: the columns there are.
        epsilon: of one computation.
        individual: whether every unit has a meter of its own: then a selection records its candidates, and
            distinct values are refused.

    Raises:
        InvalidParameter: if it makes no sense on these columns; it names what.
        NotAllowed: if it cannot be asked.
    """
    if isinstance(question, What):
        expected = "a question about that, such as tc.questions.above(tc.questions.sum(…), threshold)"
        raise InvalidParameter("question", question, expected)
    if not isinstance(question, Question):
        raise InvalidParameter("question", question, "made by tc.questions, such as tc.questions.above(…)")
    if isinstance(question, Watch | Top) and question.threshold is not None:
        checks.threshold(question.threshold, "threshold")
    if isinstance(question, Quantiles):
        question = replace(question, what=coarse(question.what, schema))
    threshold = question.threshold if isinstance(question, Above | Watch) else None
    measure, gauge, words = measured(question.what, schema, threshold)
    check_figures(question, gauge)
    _check_values(question, measure)
    keys = None
    if isinstance(question, Keyed):
        if isinstance(measure, Sketch):
            msg = "distinct values are not counted key by key: ask for those of one key at a time"
            raise NotAllowed(msg)
        keys = declare(question.by, question.keys, schema)
        if isinstance(question, Top):
            question = _selection(question, keys)
    if isinstance(question, Histogram):
        measure = _histogram(question, measure)
    if individual:
        additive(measure)
    candidates = isinstance(question, Histogram) or (individual and isinstance(question, Top))
    record = record_of(question, measure, keys, candidates=candidates)
    prepared = Prepared(question, epsilon, measure, gauge, words, keys, record, schema, individual)
    check_grid(measure, gauge, epsilon, always_paid=prepared.always_paid)
    return prepared


def _selection(question: Top, keys: Keys) -> Top:
    """Return a selection with a plain k; refuse what goes with values only where they are not wanted."""
    if not checks.flag(question.values, "values") and question.threshold is not None:
        expected = "left out where values are not wanted: picks have none to compare with it"
        raise InvalidParameter("threshold", question.threshold, expected)
    return replace(question, k=check_selection(keys.values, question.k, None, question.threshold))


def read_back(record: str, epsilon: float, schema: Mapping[str, Column]) -> Prepared | None:
    """Return the question that a ledger keeps; None if this version reads none, or the table lacks its columns."""
    kept = recorded(record)
    if kept is None:
        return None
    question = kept.question
    try:
        keys = None
        if isinstance(question, Keyed):
            keys = from_published(question.by, question.keys, kept.period, schema)
        measure, gauge, words = measured(question.what, schema, 1.0)
        if isinstance(question, Histogram):
            measure = _histogram(question, measure)
        return Prepared(question, epsilon, measure, gauge, words, keys, record)
    except TargetChargeError:
        return None


def _check_values(question: Question, measure: Measure) -> None:
    """Refuse one number for each unit where it is not averaged or picked from, and too many cells to pick from."""
    if isinstance(measure, UnitValue) != isinstance(question, Mean | Quantiles):
        expected = "asked with tc.questions.mean or quantile, and nothing else"
        raise InvalidParameter("what", question.what, expected)
    if (
        isinstance(question, Quantiles)
        and isinstance(measure, UnitValue)
        and measure.upper - measure.lower >= _MOST_CELLS
    ):
        least = float((measure.upper - measure.lower) * measure.grid / _MOST_CELLS)
        raise InvalidParameter("grid", question.what.grid, f"coarser: at least {least:.3g} for a quantile")


def _histogram(question: Histogram, measure: Measure) -> measures.Histogram:
    """Return the measure of a histogram; refuse what does not count units."""
    if not isinstance(measure, Count):
        raise InvalidParameter("where", question.what, "a predicate: a histogram counts units")
    return measures.Histogram(measure.where, checks.positive_integer(question.per_unit, "per_unit"), "")
