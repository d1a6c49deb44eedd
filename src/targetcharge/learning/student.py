"""The student: what it expects of requests while labels come in, and what it learns from all of them in the end.

In mode "prior" the requests are asked in rounds, each about twice as long as the one before. Between rounds the
student learns from the labels published so far and predicts those of the next round; a label that is as predicted
is free. All of this is made from what is public.

>>> round_ends(700, 3)
[100, 300, 700]
>>> round_ends(2, 8)
[1, 2]
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Final

import numpy as np
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from targetcharge.learning.teachers import silence

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from targetcharge.learning.labels import Labels
    from targetcharge.learning.teachers import Features

MOST_ROUNDS: Final = 60
"""The last is then more than 10^17 times as long as the first."""


def round_ends(requests: int, rounds: int) -> list[int]:
    """Return the number of requests that have been asked after each round."""
    parts = 2**rounds - 1
    return sorted({-(-requests * (2**done - 1) // parts) for done in range(1, rounds + 1)})


def predictions(student: BaseEstimator, requests: Features, labels: Labels) -> NDArray[np.generic]:
    """Return what a clone of the student expects for every request: a function of the labels published so far.

    Before any label the classes are expected in turn.
    """
    if len(labels.rows) == 0:
        return np.array(labels.classes)[np.arange(len(requests)) % len(labels.classes)]
    values = labels.values
    names, counts = np.unique(values, return_counts=True)
    usual = np.full(len(requests), names[counts.argmax()])
    if len(names) == 1:
        return usual
    try:
        with silence():
            return np.asarray(clone(student).fit(requests[labels.rows], values).predict(requests.copy()))
    except Exception:  # noqa: BLE001 - a few labels are too few for some students; they get more in the next round
        return usual


def taught(
    student: BaseEstimator, requests: Features, rows: NDArray[np.intp], values: NDArray[np.generic]
) -> BaseEstimator:
    """Return a clone of a student that has learned from the labels of some rows, at least one.

    Warns:
        UserWarning: if all labels are of one class.
    """
    if len(np.unique(values)) > 1:
        return clone(student).fit(requests[rows], values)
    msg = "all labels are of one class, so the student always predicts it"
    warnings.warn(msg, UserWarning, stacklevel=3)
    return DummyClassifier(strategy="most_frequent").fit(requests[rows], values)
