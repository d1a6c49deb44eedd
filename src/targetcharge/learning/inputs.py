"""Inputs: checks of what `PrivateLabeler.fit` is given, and a rehearsal on made-up data, before any training.

Checks are for the curator, who holds the data: that one fails may tell something about it. The errors hold the
type of what was given and no values. A teacher that fails votes by a fixed rule and says nothing, because whether
it fails may depend on private data. So a mistake in the estimator itself must show before: in the rehearsal it
meets only random numbers, and its error may be told.

>>> public_classes(["yes", "no"]).tolist()
['no', 'yes']
>>> class_codes(["yes", "no", "maybe"], public_classes(["yes", "no"]))
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: y is <class 'list'>; it must be made of the classes only
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from targetcharge.errors import InvalidParameter
from targetcharge.learning.teachers import count_units, encode, own_random_state, silence

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray
    from sklearn.base import BaseEstimator

    from targetcharge.learning.teachers import Codes, Features

_INCIDENTAL: Final = frozenset({"random_state", "verbose", "n_jobs"})
"""Parameters that say nothing about what an estimator learns."""

_RECORDS_OF_A_CLASS: Final = 10
"""The most made-up records of each class: enough for five folds or five neighbours."""

_COLUMNS: Final = "of as many columns as X"
_PROBLEMS: Final = {
    "Complex data": "made of real numbers. Complex data not supported",
    "contains NaN": "finite, and it contains NaN",
    "infinity": "finite, and it contains infinity or a number too large",
    "2D array": "a table of two dimensions, a row for each record",
    "0 sample(s)": "of at least one row, and it has 0 sample(s)",
    "features, but": _COLUMNS,
    "Feature names are only": "a table whose columns all have names that are text, or none has",
    "feature names": "of the same columns as X, in the same order",
}
"""What to say when scikit-learn says something with these words. Its own texts can hold the array."""


def features(estimator: BaseEstimator, name: str, table: ArrayLike, *, reset: bool) -> Features:
    """Return a table of finite floats, whose columns the estimator learns (`reset`) or has learned.

    Raises:
        InvalidParameter: with a text that holds no values.
        TypeError: if an entry is neither a number nor text that reads as one.
    """
    if issparse(table):
        raise InvalidParameter(name, type(table), "dense, and it is sparse")
    try:
        # Always floats: that a list has only whole numbers may hang on one record, and reach every teacher.
        checked: Features = validate_data(estimator, table, reset=reset, dtype=[np.float64, np.float32])
    except (TypeError, ValueError) as error:
        problem, wrong_type = str(error), isinstance(error, TypeError)
    else:
        return checked
    # Raised out here, so that scikit-learn's error is not the context.
    if "0 feature(s)" in problem:
        expected = f"wider: 0 feature(s) (shape={np.asarray(table).shape}) while a minimum of 1 is required."
        raise InvalidParameter(name, type(table), expected)
    expected = next((phrase for words, phrase in _PROBLEMS.items() if words in problem), "a table of numbers")
    if wrong_type and expected not in _PROBLEMS.values():
        msg = f"{name} must be made of numbers: each argument must be a number or a string that reads as a number"
        raise TypeError(msg)
    if expected == _COLUMNS:
        expected += f": it has {np.shape(table)[1]:,} and X has {estimator.n_features_in_:,}"
    raise InvalidParameter(name, type(table), expected)


def labels(y: object, records: int, *, public: bool) -> NDArray[np.generic]:
    """Return the labels as one column of discrete values, one for each record, whose number may be public."""
    if y is None:
        expected = "given: PrivateLabeler requires y to be passed, but the target y is None"
        raise InvalidParameter("y", type(y), expected)
    if _is_incomplete(y):
        raise InvalidParameter("y", type(y), "a class for each record, and it has missing values (NaN or None)")
    column, kind = _discrete(y)
    if column is None:
        raise InvalidParameter("y", type(y), f"one column of discrete labels. Unknown label type: {kind}")
    if len(column) != records:
        lengths = f": it has {len(column):,} labels and X has {records:,} rows" if public else ""
        raise InvalidParameter("y", type(y), f"as long as X{lengths}")
    return column


def _is_incomplete(y: object) -> bool:
    """Return whether a value is None or not equal to itself."""
    if isinstance(y, np.ndarray) and y.dtype != np.object_:
        return y.dtype.kind in "fc" and bool(np.isnan(y).any())
    return isinstance(y, Iterable) and any(map(_is_missing, y))


def _is_missing(label: object) -> bool:
    try:
        return label is None or bool(label != label)  # NaN is not equal to itself
    except TypeError:  # the missing value of pandas, which is neither equal nor different
        return True
    except ValueError:  # an array: no label, as the next check says
        return False


def _discrete(y: object) -> tuple[NDArray[np.generic] | None, str]:
    """Return the labels as an array, or None, and what scikit-learn calls their type."""
    try:
        column: NDArray[np.generic] = column_or_1d(y, warn=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kind = str(type_of_target(column))
    except (TypeError, ValueError):
        return None, "unknown"
    return (column if kind in {"binary", "multiclass"} else None), kind


def public_classes(classes: ArrayLike) -> NDArray[np.generic]:
    """Return the classes sorted; refuse fewer than two, duplicates and mixed types."""
    expected = "two different classes or more, all numbers or all text"
    try:
        given = np.asarray(classes)
        different: NDArray[np.generic] = np.unique(given)
    except (TypeError, ValueError):
        raise InvalidParameter("classes", classes, expected) from None
    # A list of mixed types becomes text on its way into an array, and NaN is not equal to itself.
    kept = given.ndim == 1 and given.tolist() == np.asarray(classes, dtype=np.object_).tolist()
    if not kept or not 2 <= len(different) == len(given):
        raise InvalidParameter("classes", classes, expected)
    return different


def classes_of(y: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the classes that occur."""
    classes: NDArray[np.generic] = np.unique(y)
    if len(classes) < 2:
        raise InvalidParameter("y", type(y), "of two classes or more, and it has one class")
    return classes


def class_codes(y: ArrayLike, classes: NDArray[np.generic]) -> Codes:
    """Return each label as an index into the classes."""
    codes = encode(np.asarray(y), classes)
    if (codes < 0).any():
        raise InvalidParameter("y", type(y), "made of the classes only")
    return codes


def unit_values(units: ArrayLike, records: int, teachers: int) -> list[object]:
    """Return the unit of each record, each value as it was given."""
    listed = getattr(units, "to_pylist", None)  # of Arrow
    values = listed() if callable(listed) else list(units) if isinstance(units, Iterable) else None
    if not isinstance(values, list) or isinstance(units, str | bytes) or len(values) != records:
        raise InvalidParameter("units", type(units), "one value for each record")
    if count_units(values) < teachers:
        raise InvalidParameter("teachers", teachers, "at most the number of units")
    return values


def check_no_cache(estimator: BaseEstimator) -> None:
    """Refuse an estimator with a cache: it would keep private records, and teachers would share what is in it."""
    parameters = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    for name, value in parameters.items():
        if (name == "memory" or name.endswith("__memory")) and value is not None:
            raise InvalidParameter("estimator", estimator, f"one that keeps nothing outside itself: {name}=None")


def rehearse(
    name: str, estimator: BaseEstimator, columns: int, classes: NDArray[np.generic], records: int | None = None
) -> None:
    """Refuse an estimator, a parameter of this name, that cannot learn from made-up data and predict classes.

    It learns from as many made-up records as given, if that is known; a few of each class suffice.

    Raises:
        InvalidParameter: with what the estimator said; its own error is the cause.
    """
    generator = np.random.default_rng(0)
    y = _made_up_labels(classes, records)
    made_up = generator.random((len(y), columns))
    try:
        with silence(), own_random_state(0):
            predicted = np.asarray(clone(estimator).fit(made_up, y).predict(made_up))
            known = predicted.shape == y.shape and bool((encode(predicted, classes) >= 0).all())
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        # Not how many records: with units that number is private.
        expected = f"a classifier that can learn from made-up records of {columns} columns; it said: {text}"
        raise InvalidParameter(name, estimator, expected) from error
    if not known:
        raise InvalidParameter(name, estimator, "a classifier: on made-up data it predicts what is no class")


def _made_up_labels(classes: NDArray[np.generic], records: int | None) -> NDArray[np.generic]:
    """Return made-up labels: all classes, or as many as a small part may have, most of them twice."""
    most = _RECORDS_OF_A_CLASS * len(classes)
    wanted = most if records is None else min(max(records, 2), most)
    made_up: NDArray[np.generic] = classes[np.arange(wanted) // (1 if wanted < 4 else 2) % len(classes)]
    return made_up


def stable_text(value: object) -> str:
    """Return a parameter as text that is the same in every process; of an estimator, its class and parameters.

    >>> from sklearn.dummy import DummyClassifier
    >>> stable_text(DummyClassifier(random_state=7))
    "sklearn.dummy.DummyClassifier(constant=None, strategy='prior')"
    """
    match value:
        case type():
            return f"{value.__module__}.{value.__qualname__}"
        case np.generic():
            return repr(value.item())
        case np.ndarray() if value.dtype == np.object_:
            return stable_text(value.tolist())
        case np.ndarray():
            content = blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
            return f"array({value.shape}, {value.dtype.str}, {content})"
        case list() | tuple():
            return f"[{', '.join(map(stable_text, value))}]"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(stable_text, value)))}}}"
        case dict():
            return f"{{{', '.join(sorted(map(stable_text, value.items())))}}}"
    if hasattr(value, "get_params"):
        parameters = sorted(value.get_params(deep=False).items())
        known = (f"{name}={stable_text(value)}" for name, value in parameters if name not in _INCIDENTAL)
        return f"{stable_text(type(value))}({', '.join(known)})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
