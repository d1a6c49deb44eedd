"""Batches: many private questions of one ε that are answered in order by one computation, such as one scan.

>>> from targetcharge.randomness import SystemEntropy
>>> batch = batch_by_key(lambda data: [0, len(data)], keys=["none", "all"], threshold=100, epsilon=1.0)
>>> drawn = batch.drawing.start(range(1000), SystemEntropy())(0, 2)
>>> drawn.hits.tolist(), abs(drawn.outcomes[1] - 1000) < 50
([False, True], True)
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import InvalidParameter
from targetcharge.markup import counted
from targetcharge.mechanisms.accuracy import Accuracy, above
from targetcharge.mechanisms.algorithm import algorithm_name, batch_algorithm, checked_name, row_of
from targetcharge.mechanisms.gauge import COUNTED
from targetcharge.mechanisms.noise import Carried, CountNoise
from targetcharge.outcomes import PUBLISHABLE, UnpublishableError, publishable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.mechanisms.algorithm import Algorithm
    from targetcharge.mechanisms.gauge import Gauge
    from targetcharge.mechanisms.noise import NoiseOf
    from targetcharge.randomness import Entropy

    CountsWhenDue = Callable[[Any], Callable[[int, int], Iterable[int]]]

MOST_HITS: Final = 32
"""Hits of public requests that leave together at most."""

_BLOCK: Final = 256
"""Draws of noise at a time, where not all tests are drawn at once."""


class Drawn(NamedTuple):
    """Outcomes of consecutive questions. As secret as the data.

    Attributes:
        outcomes: those that there are, each once.
        indices: which of them each question has.
        hits: whether that is a hit.
    """

    outcomes: tuple[object, ...]
    indices: NDArray[np.intp]
    hits: NDArray[np.bool_]

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<outcomes of {counted(len(self.indices), 'question')}>"


@final
@dataclass(frozen=True)
class Batch:
    """Questions that are asked one after another.

    Attributes:
        algorithms: to price and name the questions by, one for each or one for all; never run on their own.
        keys: what each is about, as it is published; None where its name says it.
        drawing: how they are drawn.
        target: what is told of the targets, if each question has another one.
        most_hits: how many hits may leave together: what a crash would cost.
        durable: whether misses too are made durable before they leave.
    """

    algorithms: tuple[Algorithm, ...]
    keys: Sequence[object]
    drawing: NoisyCounts | Requests
    target: PlainTarget | None = None
    most_hits: int = 1
    durable: bool = False

    def __len__(self) -> int:
        """Return how many questions there are."""
        return len(self.keys)

    def redrawn(self, noise_of: NoiseOf) -> Batch:
        """Return the batch with a session's noise in place of its own."""
        if not isinstance(self.drawing, NoisyCounts):
            raise InvalidParameter("batch", self.drawing, "one of noisy counts")
        drawing = self.drawing.redrawn(noise_of)
        shared = Accuracy.of(drawing.noise, above(0)).through(drawing.gauge)
        algorithms = tuple(
            replace(test, accuracy=replace(shared, span=above(least - 1)))
            for test, least in zip(self.algorithms, drawing.least, strict=False)
        )
        return replace(self, algorithms=algorithms, drawing=drawing)

    @property
    def named(self) -> bool:
        """Return whether each question has an algorithm with a name of its own, and no key."""
        return len(self.algorithms) == len(self.keys) and self.keys[0] is None


@final
@dataclass(frozen=True)
class NoisyCounts:
    """Draws noisy counts of one computation: each is published from its least on, else nothing.

    Attributes:
        counts: a function of the data: one integer for each question.
        least: the least noisy count that each publishes, in steps.
        noise: of each.
        gauge: how steps are shown.
        counts_when_due: a function of the data whose value gives the counts of the questions from one index up to
            another, each when it is due; None if no count depends on what was published before it.
        adds: the most that a unit adds to a count, if it lowers none: then they may get a session's noise.
    """

    counts: Callable[[Any], Iterable[int]]
    least: tuple[int, ...]
    noise: CountNoise
    gauge: Gauge = COUNTED
    counts_when_due: CountsWhenDue | None = None
    adds: int | None = None

    def start(self, data: object, entropy: Entropy) -> _CountsDraw:
        """Count what does not depend on what will be published."""
        bare, offset = (data.data, data.offset) if isinstance(data, Carried) else (data, 0)
        if self.counts_when_due is not None:
            return _CountsDraw(self, self.counts_when_due(bare), _noise(entropy, self.noise), offset)
        noisy = self._noisy(bare, offset, entropy)
        return _CountsDraw(self, lambda first, last: noisy[first:last])

    def draw(self, data: object, entropy: Entropy) -> list[int]:
        """Return all noisy counts, in steps of the noise's lattice."""
        bare, offset = (data.data, data.offset) if isinstance(data, Carried) else (data, 0)
        return self._noisy(bare, offset, entropy)

    def _noisy(self, data: object, offset: int, entropy: Entropy) -> list[int]:
        counts = row_of(self.counts(data), len(self.least))
        lattice, moved, index = self.noise.lattice, self.noise.weight * offset, operator.index
        noise = self.noise.draws(entropy, len(counts))
        if lattice == 1 and not moved:
            return [index(count) + shift for count, shift in zip(counts, noise, strict=True)]
        return [lattice * index(count) - moved + shift for count, shift in zip(counts, noise, strict=True)]

    def value(self, noisy: int) -> object:
        """Return a noisy count as it is published."""
        return self.gauge.value(self.noise.shown(noisy))

    def redrawn(self, noise_of: NoiseOf) -> NoisyCounts:
        """Return the counts with a session's noise in place of their own."""
        if self.adds is None:
            raise InvalidParameter("batch", self.counts, "counts that are declared monotone")
        return replace(self, noise=noise_of(self.adds))


@final
@dataclass(frozen=True, repr=False)
class _CountsDraw:
    """The counts of a batch as they are drawn: noisy, or to be made so. As secret as the data."""

    source: NoisyCounts
    counts: Callable[[int, int], Iterable[int]]
    noise: Iterator[int] | None = None
    offset: int = 0

    def __call__(self, first: int, last: int) -> Drawn:
        """Return the outcomes up to the first hit."""
        noisy_counts, least = self._noisy(first, last), self.source.least[first:last]
        lattice = self.source.noise.lattice
        for place, (noisy, enough) in enumerate(zip(noisy_counts, least, strict=True)):
            if noisy >= lattice * enough:
                hits = np.arange(place + 1) == place
                return Drawn((None, self.source.value(noisy)), hits.astype(np.intp), hits)
        count = last - first
        return Drawn((None,), np.zeros(count, np.intp), np.zeros(count, np.bool_))

    def _noisy(self, first: int, last: int) -> Iterable[int]:
        counts, noise = self.counts(first, last), self.noise
        if noise is None:
            return counts
        lattice, moved = self.source.noise.lattice, self.source.noise.weight * self.offset
        return (lattice * operator.index(count) - moved + next(noise) for count in counts)


@final
@dataclass(frozen=True)
class Requests:
    """Draws one of a few outcomes for each public request, such as a label by the vote of private teachers.

    Attributes:
        outcomes: all that may be published, each once.
        draw: the indices of the requests' outcomes from one up to another, and which of them are hits; asked for
            in order, once each. Each is drawn with fresh randomness, by an ε-DP law that may depend on the
            outcomes before it and nothing else that was drawn; whether it is a hit follows from the outcomes and
            public facts.
    """

    outcomes: tuple[object, ...]
    draw: Callable[[object, Entropy, int, int], tuple[NDArray[np.intp], NDArray[np.bool_]]]

    def start(self, data: object, entropy: Entropy) -> Callable[[int, int], Drawn]:
        """Draw nothing yet."""
        bare = data.data if isinstance(data, Carried) else data  # whatever is asked here carries no offset

        def draw(first: int, last: int) -> Drawn:
            indices, hits = self.draw(bare, entropy, first, last)
            within = ((indices >= 0) & (indices < len(self.outcomes))).all()
            if indices.shape != (last - first,) or hits.shape != indices.shape or not within:
                msg = "a batch draws one outcome for each request"
                raise ValueError(msg)
            return Drawn(self.outcomes, indices, hits)

        return draw


def batch_by_key(
    counts: Callable[[Any], Iterable[int]],
    keys: Sequence[object],
    threshold: float,
    epsilon: float,
    *,
    sensitivity: int = 1,
    monotone: bool = False,
    gauge: Gauge = COUNTED,
    name: str | None = None,
    question: str = "",
    counts_when_due: CountsWhenDue | None = None,
) -> Batch:
    """Return tests of every key of a computation against one threshold.

    Each is an ε-DP computation of its own: a unit may change every count, and only hits are charged.

    Args:
        counts: a function of the data whose value is one integer for each key, in steps.
        keys: what the tests are about; each once, declared beforehand.
        threshold: the least noisy value that is published, as it is shown.
        epsilon: ε of one test; the noise has rate ε/sensitivity.
        sensitivity: the most any one count changes when a unit is added or removed, in steps.
        monotone: whether adding a unit lowers none of them; then they carry the offset of a session that has one.
        gauge: how steps are shown.
        name: what the transcript calls them.
        question: what was asked, as the ledger keeps it.
        counts_when_due: see `NoisyCounts`.
    """
    checks.function_of_data(counts, "counts")
    if not isinstance(keys, list | tuple | range):
        raise InvalidParameter("keys", keys, "a list of at least one key, each once")
    try:
        declared = tuple(publishable(key) for key in keys)
    except UnpublishableError:
        raise InvalidParameter("keys", keys, f"a list whose members are each {PUBLISHABLE}") from None
    if not declared or len(set(declared)) < len(declared):
        raise InvalidParameter("keys", keys, "a list of at least one key, each once")
    noise = CountNoise.natural(epsilon, sensitivity)
    least = gauge.least(checks.threshold(threshold, "threshold"))
    test = _test(algorithm_name(name, "batch_by_key", counts), least, noise, epsilon, gauge, question)
    adds = sensitivity if checks.flag(monotone, "monotone") else None
    drawing = NoisyCounts(counts, (least,) * len(declared), noise, gauge, counts_when_due, adds)
    return Batch((test,), declared, drawing)


def batch_by_name(
    counts: Callable[[Any], Iterable[int]],
    names: Sequence[str],
    thresholds: Sequence[float],
    epsilon: float,
    *,
    monotone: bool = False,
    questions: Sequence[str] | None = None,
    counts_when_due: CountsWhenDue | None = None,
) -> Batch:
    """Return tests of counts with names and thresholds of their own.

    Args:
        counts: a function of the data whose value is one integer for each test, which a unit changes by at most 1.
        names: what the transcript calls them.
        thresholds: the least noisy count that each publishes.
        epsilon: ε of one test.
        monotone: whether adding a unit lowers none of them; then they carry the offset of a session that has one.
        questions: what each test asks, as the ledger keeps it.
        counts_when_due: see `NoisyCounts`.
    """
    checks.function_of_data(counts, "counts")
    lists = {"names": names, "thresholds": thresholds} | ({} if questions is None else {"questions": questions})
    for parameter, given in lists.items():
        if not isinstance(given, list | tuple) or not given or len(given) != len(names):
            raise InvalidParameter(parameter, given, "a list with one for each test, all of one length")
    noise = CountNoise.natural(epsilon, 1)
    least = tuple(COUNTED.least(checks.threshold(threshold, "threshold")) for threshold in thresholds)
    tests = tuple(
        _test(checked_name(name), enough, noise, epsilon, COUNTED, question)
        for name, enough, question in zip(names, least, questions or repeat("", len(names)), strict=True)
    )
    adds = 1 if checks.flag(monotone, "monotone") else None
    drawing = NoisyCounts(counts, least, noise, counts_when_due=counts_when_due, adds=adds)
    return Batch(tests, (None,) * len(tests), drawing)


def _test(name: str, least: int, noise: CountNoise, epsilon: float, gauge: Gauge, question: str) -> Algorithm:
    """Return one test of a batch, to price and name it by."""
    accuracy = Accuracy.of(noise, above(least - 1)).through(gauge)
    return batch_algorithm(name, epsilon, NotPrior(None), accuracy, question)


def _noise(entropy: Entropy, noise: CountNoise) -> Iterator[int]:
    while True:
        yield from noise.draws(entropy, _BLOCK)
