"""Votes: how many teachers chose each class, for many public requests, and how they become labels and hits.

The private data is split among the teachers, so a changed record changes one teacher: on every request that
teacher may vote for another class, which moves two counts of the row by one. Votes are as secret as the data.

From a row to one outcome is one ε-DP computation: it may first test whether enough teachers agree (ε₁), then
choose a class (ε₂): together ε₁ + ε₂. A mode says which outcomes cost.

>>> from targetcharge.mechanisms.choice import CHOICES
>>> from targetcharge.randomness import SystemEntropy
>>> votes = Votes([[0, 250], [125, 125]], teachers=250)
>>> votes
<votes of 250 teachers on 2 requests, 2 classes>
>>> aggregator = Aggregator(CHOICES["exponential"](1.0), Agreement(threshold=190, epsilon=1.0))
>>> aggregator.draw(votes.rows(0, 2), SystemEntropy()).tolist()  # the second: too few agree
[1, 2]
>>> Votes([[3, 1, 0], [0, 0, 5]], teachers=4)
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: votes is <list>; it must be rows that sum to teachers=4: row 1 does not
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets import Boundary, Disagreement, Everything, NotPrior
from targetcharge.accounting.targets.boundary import LEAST_DOUBT
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.ledger.answer import MOST_OUTCOMES
from targetcharge.markup import counted
from targetcharge.mechanisms.choice import CHOICES
from targetcharge.mechanisms.noise import NoiseLaw
from targetcharge.randomness import Rate, bernoulli_array, discrete_laplace_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms.choice import Choice
    from targetcharge.randomness import Entropy

MODES: Final = ("boundary", "prior", "twice", "plain")

CAUTION: Final = 2.0
"""Of the boundary wrapper, if nobody chooses: it buys the most labels on real votes."""

MOST_TEACHERS: Final = 10**6

_CHECKED: Final = 2**20
"""Counts that are checked at a time."""

_DRAWN: Final = 2**18
"""Counts that are drawn from at a time: what bounds the memory."""

_MARKS: Final = 2
"""Outcomes that are no class: too few agree, too close to call."""


def target_of(mode: str, caution: float = CAUTION) -> Target:
    """Return what costs in a mode; the caution is the boundary wrapper's."""
    if mode == "boundary":
        return Boundary(caution)
    return {"prior": NotPrior(prior=None), "twice": Disagreement(), "plain": Everything()}[mode]


@final
class Votes:
    """A table of counts: a row for each request, a column for each class, every row with all teachers.

    A table for NumPy, which no traceback or log shows.

    Attributes:
        teachers: how many there are; declared, so public.
    """

    def __init__(self, votes: ArrayLike, teachers: int | None = None) -> None:
        """Check a table of counts.

        The checks are for the curator, who has the votes: they name a row that no honest vote can give, and no
        count. Teachers that are left out are as many as the first row sums to: no change of votes changes that.
        """
        self._counts = _table(votes)
        if teachers is None:
            teachers = _first_sum(votes, self._counts)
        if checks.positive_integer(teachers, "teachers") > MOST_TEACHERS:
            raise InvalidParameter("teachers", teachers, f"an integer from 1 to {MOST_TEACHERS:,}")
        self.teachers = int(teachers)
        rows = max(1, _CHECKED // self.classes)
        for first in range(0, len(self), rows):
            _check(votes, self._counts[first : first + rows], self.teachers, first)

    def __array__(self, dtype: np.dtype | None = None, *, copy: bool | None = None) -> NDArray[np.generic]:
        """Return the counts."""
        return np.array(self._counts, dtype=dtype, copy=copy)

    def __getitem__(self, requests: slice) -> Votes:
        """Return the votes on some requests."""
        return Votes(self._counts[requests], self.teachers)

    def rows(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the counts of some requests."""
        return self._counts[first:last].astype(np.int64)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return int(self._counts.shape[1])

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self._counts)

    def __repr__(self) -> str:
        """Return public facts only."""
        teachers, requests = counted(self.teachers, "teacher"), counted(len(self), "request")
        return f"<votes of {teachers} on {requests}, {self.classes} classes>"


def _table(votes: ArrayLike) -> NDArray[np.generic]:
    try:
        counts = np.asarray(votes)
    except ValueError:  # rows of different lengths; its text is not shown
        counts = np.empty(0)
    if counts.ndim != 2 or counts.dtype.kind not in "iuf":
        raise InvalidParameter(
            "votes", votes, "a table of counts: a row for each request, a column for each class"
        )
    if not 2 <= counts.shape[1] <= MOST_OUTCOMES - _MARKS:
        columns = f"a table with 2 to {MOST_OUTCOMES - _MARKS:,} columns, one for each class, and this has"
        raise InvalidParameter("votes", votes, f"{columns} {counts.shape[1]}")
    return counts


def _first_sum(votes: ArrayLike, counts: NDArray[np.generic]) -> int:
    """Return what the first row sums to."""
    if not len(counts):
        raise InvalidParameter("teachers", None, "given where there are no votes")
    total = float(counts[0].astype(np.float64).sum())
    if not total.is_integer():
        raise InvalidParameter("votes", votes, "whole numbers: row 0 has one that is not")
    return int(total)


def _check(votes: ArrayLike, block: NDArray[np.generic], teachers: int, start: int) -> None:
    with np.errstate(invalid="ignore", over="ignore"):  # infinite ones, which do not sum to it
        numbers = block.astype(np.float64)  # exact for whole numbers up to 2^53; larger ones are wrong anyway
        wrong = {
            "whole numbers: row {} has one that is not": ~(numbers == np.floor(numbers)).all(axis=1),
            "at least 0: row {} has a negative count": (numbers < 0).any(axis=1),
            f"rows that sum to teachers={teachers}: row {{}} does not": numbers.sum(axis=1) != teachers,
        }
    for expected, rows in wrong.items():
        if rows.any():
            raise InvalidParameter("votes", votes, expected.format(start + int(rows.argmax())))


@final
class Agreement:
    """The test that the largest count, with discrete Laplace noise of rate ε, reaches a threshold.

    A changed record moves the largest count by at most one, so it is ε-DP.
    """

    def __init__(self, threshold: float, epsilon: float) -> None:
        """Test against a threshold."""
        self._least = math.ceil(threshold)
        self._rate = Rate.at_most(epsilon)
        self._noise = NoiseLaw.of(self._rate)

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.bool_]:
        """Return which rows pass."""
        noise = discrete_laplace_array(entropy, self._rate, len(counts))
        passed: NDArray[np.bool_] = counts.max(axis=1) + noise >= self._least
        return passed

    def law(self, counts: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the probabilities to pass and to fail, each without cancellation."""
        distance = self._least - counts.max(axis=1)
        return self._noise.at_least_array(distance), self._noise.at_least_array(1 - distance)


@final
@dataclass(frozen=True)
class Aggregator:
    """A choice, perhaps after a test of agreement.

    Attributes:
        choice: of a class.
        agreement: the test before it, if there is one.
    """

    choice: Choice
    agreement: Agreement | None = None

    def draw(self, counts: NDArray[np.int64], entropy: Entropy) -> NDArray[np.intp]:
        """Return a column for each row, or the number of columns where too few agree."""
        chosen = self.choice.choose_rows(counts, entropy)
        if self.agreement is None:
            return chosen
        return np.where(self.agreement.draw(counts, entropy), chosen, counts.shape[1])

    def rest(self, counts: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """Return the probability of all outcomes but the likeliest: what the boundary wrapper needs."""
        rest = self.choice.rest_of_rows(counts)
        if rest is None or self.agreement is None:
            return rest
        passed, low = self.agreement.law(counts)
        return np.where(low >= passed * (1 - rest), passed, low + passed * rest)


def aggregator_of(
    mechanism: str, mode: str, epsilon: float, threshold: float | None, threshold_epsilon: float | None
) -> Aggregator:
    """Return the aggregator of checked parameters, as `label` takes them."""
    choice = CHOICES[checks.choice(mechanism, "mechanism", tuple(CHOICES))]
    if mechanism == "noisy_max" and mode == "boundary":
        msg = "noisy_max cannot tell its probabilities quickly, which mode 'boundary' needs: take permute_and_flip"
        raise NotAllowed(msg)
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    if threshold is None:
        if threshold_epsilon is not None:
            raise InvalidParameter("threshold_epsilon", threshold_epsilon, "left out where there is no threshold")
        return Aggregator(choice(epsilon))
    least = checks.threshold(threshold, "threshold")
    share = epsilon / 2 if threshold_epsilon is None else threshold_epsilon
    # The difference is rounded to nearest, which may be up: a step down keeps the sum within ε.
    rest = float(np.nextafter(epsilon - checks.real(share, "threshold_epsilon", "a number"), 0.0))
    if not min(share, rest) >= checks.MIN_QUERY_EPSILON:
        expected = f"below epsilon={epsilon:g}, with {checks.MIN_QUERY_EPSILON:g} or more for each of the two"
        raise InvalidParameter("threshold_epsilon", share, expected)
    return Aggregator(choice(rest), Agreement(least, share))


@final
@dataclass(frozen=True, repr=False, eq=False)
class VoteDrawing:
    """Draws the outcomes of requests: the index of a class, then that of "too few agree" and "too close to call".

    Attributes:
        votes: on all requests.
        aggregator: from a row of votes to an outcome.
        target: which outcomes are hits.
        prior: the index of the class that is expected for each request; -1 where none is.
    """

    votes: Votes
    aggregator: Aggregator
    target: Target
    prior: NDArray[np.intp]

    def draw(
        self, _: object, entropy: Entropy, first: int, last: int
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Return the outcomes of the requests from one up to another, and which of them are hits."""
        rows = max(1, _DRAWN // self.votes.classes)
        parts = [self._block(start, min(start + rows, last), entropy) for start in range(first, last, rows)]
        outcomes, hits = zip(*parts, strict=True)
        return np.concatenate(outcomes), np.concatenate(hits)

    def _block(self, first: int, last: int, entropy: Entropy) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        counts, too_close = self.votes.rows(first, last), self.votes.classes + 1
        drawn = self.aggregator.draw(counts, entropy)
        match self.target:
            case Boundary(caution):
                marked = bernoulli_array(entropy, _mark_probability(self.aggregator.rest(counts), caution))
                return np.where(marked, too_close, drawn), marked
            case Disagreement():
                differ = drawn != self.aggregator.draw(counts, entropy)
                return np.where(differ, too_close, drawn), differ
            case NotPrior():
                return drawn, drawn != self.prior[first:last]
            case _:
                return drawn, np.ones(len(drawn), dtype=np.bool_)


def _mark_probability(rest: NDArray[np.float64] | None, caution: float) -> NDArray[np.float64]:
    """Return what `Boundary.mark_probability` does, for many rows: cπ/(1+cπ), at most c/(2+c)."""
    if rest is None:
        msg = "the boundary wrapper needs the probabilities of the outcomes"
        raise TypeError(msg)
    doubt = caution * np.clip(rest, LEAST_DOUBT, 0.5)
    marks: NDArray[np.float64] = doubt / (1 + doubt)
    return marks
