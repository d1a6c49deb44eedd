"""Runs: the audited code, run many times on two inputs, on all cores.

Which run is on which input and in which part, and the bits of algorithms that take entropy, follow from the seed
alone: not from the number of workers.

>>> from targetcharge.mechanisms import noisy_count
>>> subject = Subject.of(noisy_count(len, epsilon=1.0))
>>> samples = collect(subject, ([1], [1, 2]), runs=100, seed=1, workers=1)
>>> samples.learn.first.runs, samples.choose.first.runs, samples.count.second.runs
(25, 25, 50)
"""

from __future__ import annotations

import math
import multiprocessing
import os
import random
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.sampling.piles import Samples
from targetcharge.audit.sampling.predictable import PredictableEntropy
from targetcharge.audit.sampling.subject import CannotCountError, Subject, uncountable
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from targetcharge.audit.sampling.published import Published

    Places = list[tuple[int, int]]
    """For every run of a batch: its part and its input."""

_BATCHES: Final = 64
_SMALLEST_BATCH: Final = 25
_GREETING: Final = 48
"""Runs by which two workers that repeat each other are found out."""

_CHANCE: Final = 1e-12
"""Of two workers whose greetings are the same by chance."""


@final
@dataclass(frozen=True)
class Batch:
    """What a worker brings back.

    Attributes:
        counts: what was published, by part and input.
        worker: its process.
        greeting: what its first runs on the first input gave, if this is its first batch.
        problem: the type of something that cannot be counted.
    """

    counts: dict[tuple[int, int], Counter[Published]] = field(default_factory=dict)
    worker: int = 0
    greeting: tuple[Published, ...] = ()
    problem: str = ""


def collect(
    subject: Subject,
    data: tuple[object, object],
    runs: int,
    seed: int,
    workers: int,
    progress: Callable[[int, int], object] | None = None,
) -> Samples:
    """Return the samples of so many runs on each input.

    Args:
        subject: what to run.
        data: the two inputs.
        runs: on each input; a quarter to learn, a quarter to choose, half to count.
        seed: of everything the audit decides.
        workers: processes.
        progress: told how many of how many runs are done.
    """
    batches = _batches(runs, seed)
    samples, greetings, done = Samples(), {}, 0
    for batch in _work(subject, data, batches, seed, workers):
        if batch.problem:
            raise uncountable(subject, batch.problem)
        for (part, index), counts in batch.counts.items():
            samples[part][index].counts.update(counts)
            done += counts.total()
        if batch.greeting:
            greetings[batch.worker] = batch.greeting
        if progress:
            progress(done, 2 * runs)
    _check_greetings(list(greetings.values()), samples, workers)
    return samples


def _batches(runs: int, seed: int) -> list[Places]:
    quarter = runs // 4
    parts = [0] * quarter + [1] * quarter + [2] * (runs - 2 * quarter)
    places = [(part, index) for index in (0, 1) for part in parts]
    random.Random(seed).shuffle(places)  # noqa: S311 - the order of an audit
    size = max(_SMALLEST_BATCH, math.ceil(len(places) / _BATCHES))
    return [places[start : start + size] for start in range(0, len(places), size)]


def _work(
    subject: Subject, data: tuple[object, object], batches: list[Places], seed: int, workers: int
) -> Iterator[Batch]:
    if workers == 1 or "fork" not in multiprocessing.get_all_start_methods():  # most functions cannot be pickled
        work = _Worker(subject, data, seed, greets=False)
        with _own_generators():
            yield from (work.batch(number, places) for number, places in enumerate(batches))
        return
    with warnings.catch_warnings():
        # Python warns of threads and fork: a worker uses nothing that another thread may have locked.
        warnings.simplefilter("ignore", DeprecationWarning)
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _start, (subject, data, seed))
        with pool:
            try:
                futures = [pool.submit(_batch, number, places) for number, places in enumerate(batches)]
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool:
                expected = "able to finish: a process that ran it was killed, or ran out of memory"
                raise InvalidParameter("run", subject.name, expected) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


class _Worker:
    def __init__(self, subject: Subject, data: tuple[object, object], seed: int, *, greets: bool) -> None:
        self._subject, self._data, self._seed, self._greets = subject, data, seed, greets

    def batch(self, number: int, places: Places) -> Batch:
        counts: dict[tuple[int, int], Counter[Published]] = {}
        greeting: tuple[Published, ...] = ()
        try:
            if self._greets:
                self._greets = False
                entropy = self._seeded(number, 1)
                greeting = tuple(self._subject.run(self._data[0], entropy) for _ in range(_GREETING))
            entropy = self._seeded(number, 0)
            for part, index in places:
                counts.setdefault((part, index), Counter())[self._subject.run(self._data[index], entropy)] += 1
        except CannotCountError as error:
            return Batch(problem=str(error))
        return Batch(counts, os.getpid(), greeting)

    def _seeded(self, *key: int) -> PredictableEntropy:
        """Return a batch's own bits, and seed the generators that all code of a process shares with others."""
        own, shared = np.random.SeedSequence(self._seed, spawn_key=key).spawn(2)
        state = shared.generate_state(2)
        random.seed(int(state[0]))
        np.random.seed(int(state[1]))  # noqa: NPY002 - code under audit may use it
        return PredictableEntropy(own)


_worker: _Worker | None = None


def _start(subject: Subject, data: tuple[object, object], seed: int) -> None:
    global _worker  # noqa: PLW0603 - one for each process of the pool
    _worker = _Worker(subject, data, seed, greets=True)


def _batch(number: int, places: Places) -> Batch:
    if _worker is None:
        raise RuntimeError
    return _worker.batch(number, places)


@contextmanager
def _own_generators() -> Iterator[None]:
    """Give the process its shared generators back as they were."""
    plain, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002 - code under audit may use it
    try:
        yield
    finally:
        random.setstate(plain)
        np.random.set_state(numpys)  # noqa: NPY002 - code under audit may use it


def _check_greetings(greetings: list[tuple[Published, ...]], samples: Samples, workers: int) -> None:
    """Refuse workers that repeat each other: code that keeps a generator of its own, copied into each of them."""
    for greeting, times in Counter(greetings).items():
        counts = samples.count.first.counts
        chance = math.fsum(math.log((counts[thing] + 1) / (counts.total() + 1)) for thing in greeting)
        if times > 1 and chance < math.log(_CHANCE):
            expected = "1: the audited code keeps a random generator of its own, which every worker would repeat"
            raise InvalidParameter("workers", workers, expected)
