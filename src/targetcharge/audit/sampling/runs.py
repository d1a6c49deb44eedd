"""Runs: the audited code, run many times on two inputs, on all cores; what it published is counted.

Which run is on which input and in which part, and the bits of algorithms that take entropy, follow from the seed
alone: not from the number of workers.

>>> from targetcharge.audit.sampling.subject import Subject
>>> from targetcharge.mechanisms import noisy_count
>>> subject = Subject.of(noisy_count(len, epsilon=1.0))
>>> samples = collect(subject, ([1], [1, 2]), runs=100, seed=1, workers=1)
>>> samples.learn[0].total(), samples.choose[0].total(), samples.counted[1].total()
(25, 25, 50)
>>> PredictableEntropy(7).word() == PredictableEntropy(7).word()
True
"""

from __future__ import annotations

import itertools
import math
import multiprocessing
import os
import random
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np

from targetcharge.audit.sampling.published import COUNTABLE, CannotCountError, Published
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from numpy.random import SeedSequence
    from numpy.typing import NDArray

    from targetcharge.audit.sampling.subject import Subject

    Places = list[tuple[int, int]]
    """For every run of a chunk: its part and its input."""

_CHUNKS: Final = 64
_SMALLEST_CHUNK: Final = 25
_PROBE: Final = 48
"""Runs by which two workers that repeat each other are found out."""

_CHANCE: Final = 1e-12
"""Of two workers whose probes are the same by chance."""

_BUFFER_WORDS: Final = 512

Tallies = tuple[Counter[Published], Counter[Published]]
"""What was published in the runs on the first input and in those on the second, and how often."""


class Samples(NamedTuple):
    """All runs, in three parts that share none: an event is learnt, then chosen, then counted.

    What is counted was not seen before, so that the intervals around its counts are true.

    Attributes:
        learn: where likelihood ratios are learnt.
        choose: where events are cut out and the best are chosen.
        counted: where these are counted.
    """

    learn: Tallies
    choose: Tallies
    counted: Tallies

    def tallies(self) -> Iterator[Counter[Published]]:
        """Return the tallies of all parts and inputs."""
        return itertools.chain(*self)


@final
class PredictableEntropy:
    """Bits that anyone who knows the seed can tell beforehand. For made-up data only.

    It lives here and not in the tests because an audit that found something must find it again from its seed, for
    whoever runs it. Nothing below audits knows it, and no session takes it.
    """

    def __init__(self, seed: int | SeedSequence) -> None:
        """Start at the seed."""
        self._generator = np.random.default_rng(seed)
        self._buffer: list[int] = []

    def word(self) -> int:
        """Return 64 bits."""
        if not self._buffer:
            self._buffer = self.words(_BUFFER_WORDS).tolist()
        return self._buffer.pop()

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return an array of 64-bit words."""
        return self._generator.integers(0, 2**64, size=count, dtype=np.uint64)


class WorkerCounts(NamedTuple):
    """What a worker brings back.

    Attributes:
        counts: what was published, by part and input.
        worker: its process.
        probe: what its first runs on the first input gave, if this is its first chunk.
    """

    counts: dict[tuple[int, int], Counter[Published]]
    worker: int
    probe: tuple[Published, ...]


def collect(
    subject: Subject,
    data: tuple[object, object],
    runs: int,
    seed: int,
    workers: int,
    progress: Callable[[int, int], object] | None = None,
) -> Samples:
    """Return the samples of so many runs on each input: a quarter to learn, a quarter to choose, half to count."""
    samples = Samples(*((Counter(), Counter()) for _ in range(3)))
    probes, done = {}, 0
    try:
        with closing(_work(subject, data, _chunks(runs, seed), seed, workers)) as chunks:
            for chunk in chunks:
                for (part, side), counts in chunk.counts.items():
                    samples[part][side].update(counts)
                    done += counts.total()
                if chunk.probe:
                    probes[chunk.worker] = chunk.probe
                if progress:
                    progress(done, 2 * runs)
    except CannotCountError as error:
        expected = f"a function that publishes {COUNTABLE}; {error} is none of these"
        raise InvalidParameter("run", subject.name, expected) from None
    except BrokenProcessPool:
        expected = "able to finish: a process that ran it was killed, or ran out of memory"
        raise InvalidParameter("run", subject.name, expected) from None
    _check_probes(list(probes.values()), samples.counted[0], workers)
    return samples


def _chunks(runs: int, seed: int) -> list[Places]:
    quarter = runs // 4
    parts = [0] * quarter + [1] * quarter + [2] * (runs - 2 * quarter)
    places = [(part, side) for side in (0, 1) for part in parts]
    random.Random(seed).shuffle(places)  # noqa: S311 - the order of an audit
    size = max(_SMALLEST_CHUNK, math.ceil(len(places) / _CHUNKS))
    return [places[start : start + size] for start in range(0, len(places), size)]


def _work(
    subject: Subject, data: tuple[object, object], chunks: list[Places], seed: int, workers: int
) -> Generator[WorkerCounts]:
    if workers == 1 or "fork" not in multiprocessing.get_all_start_methods():  # most functions cannot be pickled
        worker = _Worker(subject, data, seed, probes=False)
        with _own_generators():
            yield from (worker.run(index, places) for index, places in enumerate(chunks))
        return
    with warnings.catch_warnings():
        # Python warns of threads and fork: a worker uses nothing that another thread may have locked.
        warnings.simplefilter("ignore", DeprecationWarning)
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _start, (subject, data, seed))
        try:
            futures = [pool.submit(_run, index, places) for index, places in enumerate(chunks)]
            for future in as_completed(futures):
                yield future.result()
        finally:  # else Python, at its end, may wake the pool through a pipe that it is just closing
            pool.shutdown(wait=True, cancel_futures=True)


class _Worker:
    def __init__(self, subject: Subject, data: tuple[object, object], seed: int, *, probes: bool) -> None:
        self._subject, self._data, self._seed, self._probes = subject, data, seed, probes

    def run(self, index: int, places: Places) -> WorkerCounts:
        counts: dict[tuple[int, int], Counter[Published]] = {}
        probe: tuple[Published, ...] = ()
        if self._probes:
            self._probes = False
            entropy = self._seeded(index, 1)
            probe = tuple(self._subject.run(self._data[0], entropy) for _ in range(_PROBE))
        entropy = self._seeded(index, 0)
        for part, side in places:
            counts.setdefault((part, side), Counter())[self._subject.run(self._data[side], entropy)] += 1
        return WorkerCounts(counts, os.getpid(), probe)

    def _seeded(self, *key: int) -> PredictableEntropy:
        """Return a chunk's own bits, and seed the generators that all code of a process shares with others."""
        own, shared = np.random.SeedSequence(self._seed, spawn_key=key).spawn(2)
        state = shared.generate_state(2)
        random.seed(int(state[0]))
        np.random.seed(int(state[1]))  # noqa: NPY002 - code under audit may use it
        return PredictableEntropy(own)


_worker: _Worker | None = None


def _start(subject: Subject, data: tuple[object, object], seed: int) -> None:
    global _worker  # noqa: PLW0603 - one for each process of the pool
    _worker = _Worker(subject, data, seed, probes=True)


def _run(index: int, places: Places) -> WorkerCounts:
    if _worker is None:
        raise RuntimeError
    return _worker.run(index, places)


@contextmanager
def _own_generators() -> Iterator[None]:
    """Give the process its shared generators back as they were."""
    pythons, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002 - code under audit may use it
    try:
        yield
    finally:
        random.setstate(pythons)
        np.random.set_state(numpys)  # noqa: NPY002 - code under audit may use it


def _check_probes(probes: list[tuple[Published, ...]], counts: Counter[Published], workers: int) -> None:
    """Refuse workers that repeat each other: code that keeps a generator of its own, copied into each of them."""
    runs = counts.total()
    for probe, times in Counter(probes).items():
        chance = math.fsum(math.log((counts[published] + 1) / (runs + 1)) for published in probe)
        if times > 1 and chance < math.log(_CHANCE):
            expected = "1: the audited code keeps a random generator of its own, which every worker would repeat"
            raise InvalidParameter("workers", workers, expected)
