"""Rehearsal: try an estimator on made-up data first.

A teacher that fails votes by a fixed rule and says nothing, because whether it fails may depend on private data.
So a mistake in the estimator itself must show before: here it meets only random numbers, and its error may be
told. This runs after the checks of the input and before any training.

>>> import numpy as np
>>> from sklearn.linear_model import LogisticRegression
>>> rehearse("estimator", LogisticRegression(C=-1), 3, np.array([0, 1]))
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: estimator is <LogisticRegression>; it must be a classifier that can learn ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from targetcharge.errors import InvalidParameter
from targetcharge.learning.random_streams import own_stream
from targetcharge.learning.teachers import encode, silence

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

_OF_A_CLASS = 10
"""The most made-up records of each class: enough for five folds or five neighbours."""


def rehearse(
    name: str, estimator: BaseEstimator, columns: int, classes: NDArray[np.generic], records: int | None = None
) -> None:
    """Refuse an estimator that cannot learn from made-up data and predict classes.

    Args:
        name: of the parameter.
        estimator: a clone of it is tried.
        columns: of the data.
        classes: sorted.
        records: how many it will learn from, if that is known; a few of each class suffice.

    Raises:
        InvalidParameter: with what the estimator said; its own error is the cause.
    """
    generator = np.random.default_rng(0)
    y = _labels(classes, records)
    made_up = generator.random((len(y), columns))
    try:
        with silence(), own_stream(0):
            predicted = np.asarray(clone(estimator).fit(made_up, y).predict(made_up))
            known = predicted.shape == y.shape and bool((encode(predicted, classes) >= 0).all())
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        # Not how many records: with units that number is private.
        expected = f"a classifier that can learn from made-up records of {columns} columns; it said: {said}"
        raise InvalidParameter(name, estimator, expected) from error
    if not known:
        raise InvalidParameter(name, estimator, "a classifier: on made-up data it predicts what is no class")


def _labels(classes: NDArray[np.generic], records: int | None) -> NDArray[np.generic]:
    """Return made-up labels: all classes, or as many as a small part may have, most of them twice."""
    most = _OF_A_CLASS * len(classes)
    wanted = most if records is None else min(max(records, 2), most)
    made_up: NDArray[np.generic] = classes[np.arange(wanted) // (1 if wanted < 4 else 2) % len(classes)]
    return made_up
