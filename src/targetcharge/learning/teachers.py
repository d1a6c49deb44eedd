"""Teachers: one model for each part of the private data, and their votes on the public requests.

One record or unit reaches one teacher only. Without units a random permutation of the positions deals the records;
it depends on their number alone, and sizes differ by at most one. With units a keyed hash of a unit's value names
its part, so that units come, go and change without moving any other. (Dealing units in sorted or first-seen order
would not do: a new one shifts all that follow, and so changes many teachers.)

Whatever happens inside a teacher may depend on its part: an error, a warning, something printed. All of it is
dropped, and a teacher that has no usable prediction votes by a fixed public rule, so one part moves one vote.
Each has arrays of its own, since some estimators work in place: what one wrote, the next would read.

>>> choices = RandomChoices(0, teachers=3)
>>> np.bincount(deal(10, 3, choices.generator)).tolist()
[4, 3, 3]
>>> before = deal_units(["ann", "bob", "cid"], 1000, choices.key)
>>> after = deal_units(["bob", "abe", "cid"], 1000, choices.key)
>>> bool(before[1] == after[0]), bool(before[2] == after[2])
(True, True)
>>> from sklearn.tree import DecisionTreeClassifier
>>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
>>> private, requests = PrivateRecords(X, y, part=np.array([0, 0, 1, 1])), np.array([[0.0], [3.0]])
>>> count_votes(DecisionTreeClassifier(), private, requests, np.array(["no", "yes"]), (1, 2)).tolist()
[[2, 0], [0, 2]]
"""

from __future__ import annotations

import ctypes
import io
import logging
import os
import random
import sys
import threading
import warnings
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, final

import numpy as np
from joblib import parallel_config
from rich.console import Console
from rich.progress import track
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from targetcharge.errors import InvalidParameter
from targetcharge.identity import canonical
from targetcharge.sessions.heart import Failure, attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    Codes = NDArray[np.intp]
    Features = NDArray[np.floating]

LEFT_OUT: Final = -1
"""The part of a record whose unit is missing: no teacher learns from it."""

_MOST_SEED: Final = 2**31 - 1
_KEY_BYTES: Final = 32

_PROCESS_LOCK: Final = threading.RLock()
"""Held by who changes what all threads of the process share: global generators, what is shown and where."""


# Parts.


@final
class RandomChoices:
    """Everything random about the teachers that is no noise, drawn before any data is looked at.

    It may be repeated (`random_state`), since privacy never hangs on it. Each teacher has a seed of its own: if
    teachers shared a stream, what the first draws would depend on its records and change what the second draws.

    Attributes:
        key: of the hash that deals units.
        seeds: one for each teacher.
        generator: deals records.
    """

    def __init__(self, random_state: object, teachers: int) -> None:
        """Make the choices of a random state; fresh ones for None."""
        try:
            source = check_random_state(random_state)
        except ValueError:
            raise InvalidParameter(
                "random_state", random_state, "None, an integer from 0 to 2^32 - 1 or a RandomState"
            ) from None
        words = None if random_state is None else source.randint(_MOST_SEED, size=8).tolist()
        self.generator = np.random.default_rng(words)
        self.seeds: tuple[int, ...] = tuple(self.generator.integers(_MOST_SEED, size=teachers).tolist())
        self.key = self.generator.bytes(_KEY_BYTES)


def deal(records: int, parts: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Return the part of each position: sizes differ by at most one, and nothing depends on the records."""
    dealt = np.empty(records, np.intp)
    dealt[generator.permutation(records)] = np.arange(records) % parts
    return dealt


def deal_units(units: Iterable[object], parts: int, key: bytes) -> NDArray[np.intp]:
    """Return the part of each record by the unit it belongs to.

    A unit's part depends on its own value and the key only. Parts have random sizes and may be empty. The type of
    a whole column can hang on one of its values, so units are told apart as in tables: by value, however typed.
    Records whose unit is missing, or is none, are left out. The key of the hash, at most 64 bytes, is chosen
    without looking at the units.
    """
    names = [canonical(unit) for unit in _plain(units)]
    dealt = {name: LEFT_OUT if name is None else _part(name, parts, key) for name in set(names)}
    return np.array([dealt[name] for name in names], np.intp)


def _part(unit: str, parts: int, key: bytes) -> int:
    return int.from_bytes(blake2b(unit.encode(), digest_size=16, key=key).digest()) % parts


def count_units(units: Iterable[object]) -> int:
    """Return how many different units there are, as `deal_units` tells them apart."""
    return len({canonical(unit) for unit in _plain(units)} - {None})


def _plain(units: Iterable[object]) -> Iterable[object]:
    """Return the values as Python's own, as fast as can be; times stay as they are, to the nanosecond."""
    return units.tolist() if isinstance(units, np.ndarray) and units.dtype.kind != "M" else units


# Votes.


@final
@dataclass(frozen=True, repr=False)
class PrivateRecords:
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
    private: PrivateRecords,
    requests: Features,
    classes: NDArray[np.generic],
    seeds: Sequence[int],
    *,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> NDArray[np.int64]:
    """Train a teacher on each part and return their votes: one row for each request, one column for each class.

    There are as many teachers as seeds, in `n_jobs` processes, as in scikit-learn. Never threads: they would share
    random numbers and what is printed.

    Raises:
        InvalidParameter: if a teacher ends its process.
    """
    # No memory maps: parts of the private data would lie in temporary files.
    run = Parallel(n_jobs=n_jobs, backend="loky", max_nbytes=None, return_as="generator_unordered")
    tasks = (
        delayed(ballot)(estimator, private.features[rows], private.codes[rows], requests, classes, seed)
        for rows, seed in zip(_rows(private.part, len(seeds)), seeds, strict=True)
    )
    with suppress(BrokenProcessPool):
        ballots: Iterable[Codes] = run(tasks)
        if verbose:
            # No thread that draws the bar: it would draw while a teacher is silenced, so nowhere.
            console = Console(file=sys.stderr)
            ballots = track(ballots, "training teachers", len(seeds), auto_refresh=False, console=console)
        return _counted(ballots, len(requests), len(classes))
    # Raised out here, so that the error has no context, and no traceback holds votes.
    raise InvalidParameter("estimator", type(estimator), "one that does not end its process, or run out of memory")


def _counted(ballots: Iterable[Codes], requests: int, classes: int) -> NDArray[np.int64]:
    votes, rows = np.zeros((requests, classes), np.int64), np.arange(requests)
    for codes in ballots:
        votes[rows, codes] += 1
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
    seed: int,
) -> Codes:
    """Return the vote of one teacher, trained on one part, on each request, as an index into the classes.

    A part with one class votes for it, since many classifiers refuse to learn from it. An empty part, and a
    teacher that fails or predicts what is no class, votes for the index of the request modulo the number of
    classes.
    """
    otherwise = np.arange(len(requests)) % len(classes)
    present = np.unique(codes)
    if len(present) == 0:
        return otherwise
    if len(present) == 1:
        return np.full(len(requests), present[0])
    predicted = attempt(partial(_predict, estimator, features, classes[codes], requests, classes, seed))
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
    seed: int,
) -> Codes:
    with silence(), own_random_state(seed):
        teacher = clone(estimator)
        set_random_states(teacher, seed)
        switch_off_verbose(teacher)
        predicted = np.asarray(teacher.fit(features, y).predict(requests.copy()))
        if predicted.shape != (len(requests),):
            raise TypeError
        return encode(predicted, classes)


def encode(labels: NDArray[np.generic], classes: NDArray[np.generic]) -> Codes:
    """Return the index of each label among the classes; -1 for what is none of them."""
    index = {name: code for code, name in enumerate(classes.tolist())}
    names, inverse = np.unique(labels, return_inverse=True)
    codes = np.array([index.get(name, -1) for name in names.tolist()], np.intp)
    encoded: Codes = codes[inverse.reshape(labels.shape)]
    return encoded


def set_random_states(estimator: BaseEstimator, seed: int) -> None:
    """Give every `random_state` inside an estimator a value of its own."""
    names = _parameters(estimator, "random_state")
    seeds = np.random.default_rng(seed).integers(_MOST_SEED, size=len(names)).tolist()
    estimator.set_params(**dict(zip(names, seeds, strict=True)))


def switch_off_verbose(estimator: BaseEstimator) -> None:
    """Switch off every `verbose` inside an estimator."""
    values = estimator.get_params(deep=True)
    estimator.set_params(**{name: False for name in _parameters(estimator, "verbose") if values[name]})


def _parameters(estimator: BaseEstimator, name: str) -> list[str]:
    """Return the parameters of this name, of the estimator and of those inside it."""
    names = sorted(estimator.get_params(deep=True))
    return [parameter for parameter in names if parameter == name or parameter.endswith(f"__{name}")]


@contextmanager
def own_random_state(seed: int) -> Iterator[None]:
    """Give the block its own state of the global generators of `random` and NumPy, and put theirs back.

    One thread at a time; others wait at its door.
    """
    with _PROCESS_LOCK:
        shared = check_random_state(None)
        theirs, pythons = shared.get_state(), random.getstate()
        shared.seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            shared.set_state(theirs)
            random.setstate(pythons)


@contextmanager
def silence() -> Iterator[None]:
    """Drop warnings, log records and what is printed, by Python, C and programs begun within.

    Joblib begins no processes within: they are shared and stay, with random numbers and a terminal of their own.
    One thread at a time; others wait at its door. What a thread that does not wait prints meanwhile is lost.
    """
    with ExitStack() as block:
        block.enter_context(_PROCESS_LOCK)
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
        for descriptor in (1, 2):
            with suppress(OSError):  # it may be closed
                kept = os.dup(descriptor)
                block.callback(os.close, kept)
                block.callback(os.dup2, kept, descriptor)
                os.dup2(nowhere, descriptor)
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
