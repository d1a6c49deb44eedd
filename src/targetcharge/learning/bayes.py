"""Naive Bayes from noisy counts: a classifier and how often it is right, in one private computation.

A session publishes the outcome if a condition on it holds, such as "right at least nine times in ten". Models that
do not pass are free, whatever their number; the bar may be lowered later; a model that is published costs one hit.

>>> import targetcharge as tc
>>> heights, groups = [[150.0], [160.0], [175.0], [185.0]] * 500, ["child", "child", "adult", "adult"] * 500
>>> model = naive_bayes([Edges(0, [155, 170])], ["child", "adult"], epsilon=0.2)
>>> with tc.Session((heights, groups), tc.Budget(4.0, 1e-6), query_epsilon=0.2) as session:
...     pending = session.release(model, when=lambda outcome: quality(outcome) > 2)
...     release = pending.revise(lambda outcome: quality(outcome) > 0.8)
...     pending.released, release.released, session.meter.hits
(False, True, 1)
>>> NaiveBayes.of(release.outcome).predict([[150.0], [190.0], [float("nan")]]).tolist()[:2]
['child', 'adult']

**Why it is ε-DP.** Neighbours differ by one record, added or removed. Let there be F features. (1) The counts are
one table for each feature, classes × cells. A record has one class and one cell of each feature, so it adds 1 to
one count of each table: F counts move by 1, none if its label is not a declared class. Discrete Laplace noise of
rate a on every count is (F·a)-DP. Class totals are not counted: they are sums of the noisy counts. (2) Fix any
value of the noisy counts. It fixes the model, and the model's answer for a record depends on that record alone.
So a record adds 1 to one of `right` and `wrong`, and noise of rate b on both is b-DP, for every value of (1). (3)
The probability of an outcome is the product of (1) and (2), so it changes by a factor of at most e^{F·a + b}; the
rates are rounded down such that F·a + b ≤ ε exactly. An outcome that lies beyond all counts that move attains F·a
+ b: no less is true. A unit of up to c records moves c times as much, so the rates are divided by c.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.learning.cells import Codes, Edges, Feature, declared, place
from targetcharge.mechanisms.algorithm import Algorithm, checked_name
from targetcharge.mechanisms.noise import rate_for
from targetcharge.randomness import discrete_laplace_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from targetcharge.learning.cells import Column, Rows
    from targetcharge.randomness import Entropy, Rate

    Counts = tuple[tuple[tuple[int, ...], ...], ...]
    """For each feature, for each class, for each cell."""

_KINDS: Final = {"edges": Edges, "codes": Codes}
_LEAST_RATE: Final = 2 * checks.MIN_QUERY_EPSILON
_PUBLISHED: Final = "what a naive_bayes algorithm published; a pending release has published nothing"


def naive_bayes(
    features: Sequence[Feature],
    classes: Sequence[object],
    epsilon: float,
    *,
    score_share: float = 0.25,
    records_per_unit: int = 1,
    name: str | None = None,
) -> Algorithm:
    """Return the algorithm that counts, makes a model of the noisy counts and tells how often the model is right.

    The session's data is a pair: rows (an array, a data frame or a list) and a label for each row. An outcome is
    (right, wrong, classes, features, counts), of which the first two are the noisy numbers of records on which the
    model is right and wrong: all that `NaiveBayes.of` needs, also after a restart. It begins with a score, so the
    algorithm can be a candidate of `session.select` as well.

    Args:
        features: which columns to use and their cells, declared: `Edges` or `Codes`.
        classes: the labels, declared; a record with another label is counted nowhere.
        epsilon: ε of one run, counts and score together.
        score_share: the part of ε that is spent on the score, between 0 and 1.
        records_per_unit: the most records that a unit has; an integer.
        name: what the transcript calls it.
    """
    features, classes = _features(features), _classes(classes)
    score_rate, rate = _rates(epsilon, score_share, len(features), records_per_unit)

    def run(data: object, entropy: Entropy) -> tuple[object, ...]:
        rows, labels = cast("tuple[Rows, Column]", data)
        labelled = place(labels, classes)
        known = labelled < len(classes)
        cells = [feature.place(rows)[known] for feature in features]
        labelled = labelled[known]
        counts = _noisy_counts(cells, labelled, features, len(classes), rate, entropy)
        right = int((NaiveBayes(0, 0, classes, features, counts).decide(cells) == labelled).sum())
        noise = discrete_laplace_array(entropy, score_rate, 2).tolist()
        return NaiveBayes(right + noise[0], len(labelled) - right + noise[1], classes, features, counts).outcome

    def example() -> tuple[object]:
        counts = tuple(tuple((10,) * feature.size for _ in classes) for feature in features)
        return (NaiveBayes(900, 100, classes, features, counts).outcome,)

    columns = ", ".join(str(feature.column) for feature in features)
    return Algorithm(
        name=f"naive_bayes({columns})" if name is None else checked_name(name),
        epsilon=float(epsilon),
        delta=0.0,
        run=run,
        examples=example,
    )


def quality(outcome: object) -> float:
    """Return the share of records on which a published model is right, as its noisy score tells it.

    For conditions: `session.release(algorithm, when=lambda outcome: quality(outcome) >= 0.9)`. It is from 0 to 1,
    and 0 if the noisy numbers say that there are no records.
    """
    model = NaiveBayes.of(outcome)
    total = model.right + model.wrong
    return min(max(model.right / total, 0.0), 1.0) if total > 0 else 0.0


@final
@dataclass(frozen=True)
class NaiveBayes:
    """A classifier of a published outcome. It has scikit-learn's manners of a fitted one: what it is, is public.

    Attributes:
        right: the noisy number of records on which it is right.
        wrong: the noisy number of records on which it is wrong.
        classes: the declared labels.
        features: the declared features.
        counts: the noisy counts, as published; negative ones count as 0.
    """

    right: int
    wrong: int
    classes: tuple[object, ...]
    features: tuple[Feature, ...]
    counts: Counts

    @classmethod
    def of(cls, outcome: object) -> NaiveBayes:
        """Return the classifier of an outcome that was published.

        Raises:
            InvalidParameter: if it is no such outcome.
        """
        try:
            right, wrong, classes, features, counts = cast("tuple[Any, ...]", outcome)
            declared_features = _features([_KINDS[kind](column, values) for kind, column, values in features])
            tables = tuple(tuple(tuple(map(operator.index, row)) for row in table) for table in counts)
            scores = operator.index(right), operator.index(wrong)
            model = cls(*scores, _classes(classes), declared_features, tables)
            shapes = [np.shape(table) for table in tables]
        except (InvalidParameter, KeyError, TypeError, ValueError):
            raise InvalidParameter("outcome", outcome, _PUBLISHED) from None
        if shapes != [(len(model.classes), feature.size) for feature in model.features]:
            raise InvalidParameter("outcome", outcome, _PUBLISHED)
        return model

    @property
    def outcome(self) -> tuple[object, ...]:
        """Return the outcome that publishes this classifier."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        features = tuple((kinds[type(feature)], feature.column, feature.values) for feature in self.features)
        return self.right, self.wrong, self.classes, features, self.counts

    @property
    def classes_(self) -> NDArray[Any]:
        """Return the labels as an array, as scikit-learn's classifiers do."""
        alike = len({type(label) for label in self.classes}) == 1
        return np.array(self.classes, dtype=None if alike else object)

    def predict(self, rows: ArrayLike) -> NDArray[Any]:
        """Return the most likely label of every row; the one declared first, of several."""
        return self.classes_[self.decide([feature.place(rows) for feature in self.features])]

    def predict_proba(self, rows: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of every label, as the model sees it: rows × classes."""
        logs = self._logs([feature.place(rows) for feature in self.features])
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    def score(self, rows: ArrayLike, labels: ArrayLike) -> float:
        """Return the share of rows that get their label. It is not private: for public or held-out data."""
        decided = self.decide([feature.place(rows) for feature in self.features])
        if not len(decided):
            raise InvalidParameter("rows", len(decided), "at least one")
        return float((decided == place(labels, self.classes)).mean())

    def decide(self, cells: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the index of the label of every row, given its cells."""
        return np.asarray(self._logs(cells).argmax(axis=1), dtype=np.int64)

    def _logs(self, cells: Sequence[NDArray[np.int64]]) -> NDArray[np.float64]:
        """Return the logarithm of label and cells together: rows × classes.

        Added up feature by feature: so a row's answer has the same bits whatever other rows there are. A matrix
        product could round differently, and the privacy proof needs an answer that depends on its row alone.
        """
        priors, tables = self._tables
        logs = np.tile(priors, (len(cells[0]), 1))
        for table, cell in zip(tables, cells, strict=True):
            logs += table[cell]
        return logs

    @cached_property
    def _tables(self) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        """Return the logarithms of the labels' shares, and of the cells' for each feature: cells × classes.

        A label's total is the mean of what the features' tables say, each weighted by the inverse of its noise,
        which grows with its cells. One is added to every count, so that nothing is impossible.
        """
        weights = [Fraction(1, feature.size) for feature in self.features]
        totals = [
            sum(weight * sum(table[label]) for weight, table in zip(weights, self.counts, strict=True))
            for label in range(len(self.classes))
        ]
        shares = np.array([max(float(total / sum(weights)), 0.0) + 1 for total in totals])
        tables = []
        for table in self.counts:
            kept = np.maximum(np.array(table, dtype=np.float64).T, 0) + 1
            tables.append(np.log(kept / kept.sum(axis=0)))
        return np.log(shares / shares.sum()), tables


def _noisy_counts(
    cells: Sequence[NDArray[np.int64]],
    labelled: NDArray[np.int64],
    features: Sequence[Feature],
    classes: int,
    rate: Rate,
    entropy: Entropy,
) -> Counts:
    tables = []
    for cell, feature in zip(cells, features, strict=True):
        counts = np.bincount(labelled * feature.size + cell, minlength=classes * feature.size)
        noisy = counts + discrete_laplace_array(entropy, rate, len(counts))
        tables.append(tuple(map(tuple, noisy.reshape(classes, feature.size).tolist())))
    return tuple(tables)


def _rates(epsilon: float, score_share: float, features: int, records: int) -> tuple[Rate, Rate]:
    """Return the rates of the score's and the counts' noise: records·(score + features·counts) ≤ ε, exactly."""
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    checks.positive_integer(records, "records_per_unit")
    checks.fitting(score_share, "score_share", "a number above 0 and below 1", lambda share: 0 < share < 1)
    if min(score_share, (1 - score_share) / features) * epsilon / records < _LEAST_RATE:
        expected = f"larger: its parts leave a rate below {_LEAST_RATE:g} for some of the noise"
        raise InvalidParameter("epsilon", epsilon, expected)
    score = rate_for(score_share * epsilon, records)
    left = Fraction(epsilon) - records * Fraction(score.numerator, score.denominator)
    return score, rate_for(math.nextafter(float(left), 0.0), features * records)


def _features(features: object) -> tuple[Feature, ...]:
    listed = features if isinstance(features, list | tuple) else ()
    columns = {feature.column for feature in listed if isinstance(feature, Edges | Codes)}
    if not listed or len(columns) < len(listed):
        raise InvalidParameter(
            "features", features, "a list of Edges and Codes, at least one, each of another column"
        )
    return tuple(listed)


def _classes(classes: object) -> tuple[object, ...]:
    labels = declared("classes", classes)
    if len(labels) < 2:
        raise InvalidParameter("classes", classes, "at least two labels")
    return labels
