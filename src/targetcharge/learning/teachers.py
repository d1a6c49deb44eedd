"""Teachers: one model for each part of the private data, and their votes on the public requests.

Whatever happens inside a teacher may depend on its part: an error, a warning, something printed. All of it is
dropped, and a teacher that has no usable prediction votes by a fixed public rule, so one part moves one vote.
Each has arrays of its own, since some estimators work in place: what one wrote, the next would read.

>>> import numpy as np
>>> from sklearn.tree import DecisionTreeClassifier
>>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
>>> part = np.array([0, 0, 1, 1])
>>> requests = np.array([[0.0], [3.0]])
>>> count_votes(DecisionTreeClassifier(), Private(X, y, part), requests, np.array(["no", "yes"]), (1, 2)).tolist()
[[2, 0], [0, 2]]
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import sys
import warnings
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

import numpy as np
from joblib import parallel_config
from rich.console import Console
from rich.progress import track
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from targetcharge.errors import InvalidParameter
from targetcharge.learning.parts import LEFT_OUT
from targetcharge.learning.random_streams import ALONE, own_stream, seed
from targetcharge.sessions.attempt import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    Codes = NDArray[np.intp]
    Features = NDArray[np.floating]


@final
@dataclass(frozen=True, repr=False)
class Private:
    """The private data, dealt into parts.

    Attributes:
        features: one row for each record.
        codes: the class of each record, as an index into the classes.
        part: of each record.
    """

    features: Features
    codes: Codes
    part: Codes


def count_votes(
    estimator: BaseEstimator,
    private: Private,
    requests: Features,
    classes: NDArray[np.generic],
    seeds: Sequence[int],
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> NDArray[np.int64]:
    """Train a teacher on each part and return their votes: one row for each request, one column for each class.

    Args:
        estimator: a classifier; clones of it are trained.
        private: the data.
        requests: features of the public examples.
        classes: sorted.
        seeds: of the random numbers of each teacher; there are as many teachers.
        n_jobs: processes, as in scikit-learn. Never threads: they would share random numbers and what is printed.
        verbose: whether to show a progress bar.

    Raises:
        InvalidParameter: if a teacher ends its process.
    """
    with suppress(BrokenProcessPool):
        return _counted(estimator, private, requests, classes, seeds, n_jobs, verbose=verbose)
    # Raised out here, so that the error has no context.
    raise InvalidParameter("estimator", type(estimator), "one that does not end its process, or run out of memory")


def _counted(
    estimator: BaseEstimator,
    private: Private,
    requests: Features,
    classes: NDArray[np.generic],
    seeds: Sequence[int],
    n_jobs: int | None,
    *,
    verbose: bool,
) -> NDArray[np.int64]:
    # No memory maps: parts of the private data would lie in temporary files.
    run = Parallel(n_jobs=n_jobs, backend="loky", max_nbytes=None, return_as="generator_unordered")
    tasks = (
        delayed(ballot)(estimator, private.features[rows], private.codes[rows], requests, classes, number)
        for rows, number in zip(_rows(private.part, len(seeds)), seeds, strict=True)
    )
    ballots: Iterable[Codes] = run(tasks)
    if verbose:
        # No thread that draws the bar: it would draw while a teacher is silenced, so nowhere.
        console = Console(file=sys.stderr)
        ballots = track(ballots, "training teachers", len(seeds), auto_refresh=False, console=console)
    votes = np.zeros((len(requests), len(classes)), np.int64)
    row = np.arange(len(requests))
    for each in ballots:
        votes[row, each] += 1
    return votes


def _rows(part: Codes, teachers: int) -> list[Codes]:
    """Return the rows of each part, in their order, without those that are left out."""
    ends = np.cumsum(np.bincount(part - LEFT_OUT, minlength=teachers + 1))[:-1]
    return np.split(np.argsort(part, kind="stable"), ends)[1:]


def ballot(
    estimator: BaseEstimator,
    features: Features,
    codes: Codes,
    requests: Features,
    classes: NDArray[np.generic],
    number: int,
) -> Codes:
    """Return one teacher's vote on each request, as an index into the classes.

    A part with one class votes for it, since many classifiers refuse to learn from it. An empty part, and a
    teacher that fails or predicts what is no class, votes for the index of the request modulo the number of
    classes.

    Args:
        estimator: a clone of it is trained.
        features: of the part.
        codes: their classes.
        requests: features of the public examples.
        classes: sorted.
        number: the seed of the teacher's random numbers.
    """
    otherwise = np.arange(len(requests)) % len(classes)
    present = np.unique(codes)
    if len(present) == 0:
        return otherwise
    if len(present) == 1:
        return np.full(len(requests), present[0])
    predicted = attempt(partial(_predict, estimator, features, classes[codes], requests, classes, number))
    if not isinstance(predicted, Failure):
        return np.where(predicted >= 0, predicted, otherwise)
    if predicted.error is KeyboardInterrupt:
        raise KeyboardInterrupt
    return otherwise


def _predict(
    estimator: BaseEstimator,
    features: Features,
    y: NDArray[np.generic],
    requests: Features,
    classes: NDArray[np.generic],
    number: int,
) -> Codes:
    with silence(), own_stream(number):
        teacher = clone(estimator)
        seed(teacher, number)
        hush(teacher)
        predicted = np.asarray(teacher.fit(features, y).predict(requests.copy()))
        if predicted.shape != (len(requests),):
            raise TypeError
        return encode(predicted, classes)


def encode(labels: NDArray[np.generic], classes: NDArray[np.generic]) -> Codes:
    """Return the index of each label among the classes; -1 for what is none of them."""
    index = {name: code for code, name in enumerate(classes.tolist())}
    found, inverse = np.unique(labels, return_inverse=True)
    codes = np.array([index.get(name, -1) for name in found.tolist()], np.intp)
    encoded: Codes = codes[inverse.reshape(labels.shape)]
    return encoded


def hush(estimator: BaseEstimator) -> None:
    """Switch off every `verbose` inside an estimator."""
    loud = (name for name, value in estimator.get_params(deep=True).items() if value and _is_verbose(name))
    estimator.set_params(**dict.fromkeys(loud, False))


def _is_verbose(name: str) -> bool:
    return name == "verbose" or name.endswith("__verbose")


@contextmanager
def silence() -> Iterator[None]:
    """Drop warnings, log records and what is printed, by Python, C and programs begun within.

    Joblib begins no processes within: they are shared and stay, with random numbers and a terminal of their own.
    One thread at a time; others wait at its door. What a thread that does not wait prints meanwhile is lost.
    """
    with ExitStack() as block:
        block.enter_context(ALONE)
        before = logging.root.manager.disable
        block.enter_context(_to_nowhere())
        block.enter_context(parallel_config(backend="sequential"))
        block.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        block.enter_context(redirect_stdout(io.StringIO()))
        block.enter_context(redirect_stderr(io.StringIO()))
        block.callback(logging.disable, before)
        logging.disable()
        yield


@contextmanager
def _to_nowhere() -> Iterator[None]:
    """Let the process write to the null device instead of standard output and error."""
    _flush()
    with ExitStack() as block:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        block.callback(os.close, nowhere)
        for number in (1, 2):
            with suppress(OSError):  # it may be closed
                kept = os.dup(number)
                block.callback(os.close, kept)
                block.callback(os.dup2, kept, number)
                os.dup2(nowhere, number)
        block.callback(_flush)
        yield


def _flush() -> None:
    """Write what waits in buffers to where it was meant to go."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(AttributeError, OSError, ValueError):  # something else, or closed
            if stream is not None:
                stream.flush()
    with suppress(AttributeError, OSError, TypeError):  # no C library of that name: not everywhere
        ctypes.CDLL(None).fflush(None)
