"""Departures: at most how many units can have spent their budgets, told from what was published alone.

Who has left was charged for many hits, and each published number tells, but for its noise, how many units it
charged. Both are added up over all hits (docs/theory/tables.md#how-many-may-have-left).

>>> departures = Departures("exact", capacity=2, typical=1, order=2.0, query_epsilon=0.1, at_least=True)
>>> question = '{"what":{"count":"age > 65"},"above":500}'
>>> hit = Answer(1000, True, 1.0, 1, "", (("NotPrior", None),), 0.1, grains=(1,), question=question)
>>> departures.add(hit)
>>> departures.most()  # nobody has paid for two hits
0
>>> departures.add(hit)
>>> departures.most(), in_words(departures.most())  # the same thousand, but for noise
(1028, 'at most 1,028 no longer do, in at least 95% of draws')
>>> departures.add(Spent("failed", (2,), 2))
>>> departures.most(), in_words(None)
(None, 'how many no longer do, nothing that was published bounds')
"""

from __future__ import annotations

import math
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, final

import numpy as np
from scipy.special import gammaln

from targetcharge.accounting.meter.allowance import scale_of
from targetcharge.accounting.targets import NotPrior
from targetcharge.ledger import Answer, BatchEntry
from targetcharge.ledger.entries import Spent
from targetcharge.mechanisms.noise import CONFIDENCE, CountNoise, centre
from targetcharge.numerics.rounding import grains_up
from targetcharge.tables.difference import noise_of
from targetcharge.tables.questions import Above, Count, CountQuestion, Histogram, Top, Watch
from targetcharge.tables.records import recorded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.accounting.meter import Tariff
    from targetcharge.ledger import Ledger, Terms
    from targetcharge.ledger.entries import Entry

_TILTS: Final = 1.5 * 2.0 ** -np.arange(18)
"""The θ that are tried, over the query ε: one of them is near the best, whatever the number of hits."""

_UNSURE: Final = math.log(len(_TILTS) / (1 - CONFIDENCE))

_ROUNDED: Final = 1 + 1e-9


def in_words(most: int | None) -> str:
    """Return how many units may take no part any more, as the end of a sentence about those who do."""
    if most is None:
        return "how many no longer do, nothing that was published bounds"
    if not most:
        return "so far all do"
    return f"at most {most:,} no longer do, in at least {CONFIDENCE:.0%} of draws"


class _Counting(NamedTuple):
    """How the numbers of a question tell how many units were charged.

    Attributes:
        moved: how far a unit moves all numbers of one computation together at most.
        most: how many of them may be published because they are the largest.
    """

    moved: int = 1
    most: int = 1


@final
class Departures:
    """At most how many units can have left, brought up to date entry by entry, in O(1) for each hit."""

    def __init__(
        self, meter: str, capacity: int, typical: int, order: float, query_epsilon: float, *, at_least: bool
    ) -> None:
        """Begin with a ledger on which nothing was asked.

        Args:
            meter: "exact" or "renyi".
            capacity: of each unit, in grains.
            typical: the grains of one hit of the declared kind.
            order: of Rényi prices.
            query_epsilon: declared for one computation.
            at_least: whether counts have Gumbel noise.
        """
        self._meter, self._order, self._at_least, self._typical = meter, order, at_least, typical
        self._scale = scale_of(meter, capacity, typical)
        self._capacity = math.floor(capacity * self._scale)
        self._test = self._held(query_epsilon)  # the price of a test, which may be dearer than what was declared
        self._tilts: NDArray[np.float64] = np.asarray(query_epsilon * _TILTS, np.float64)
        self._everybody = 0  # what each unit may have paid for answers that do not tell how many they charged
        self._each = 0  # the most that one unit can have paid for those that do
        self._numbers = 0  # the numbers that were published, times their prices
        self._excess: NDArray[np.float64] = np.zeros(len(_TILTS))  # ψ(θ), added up
        self._waiting: dict[int, tuple[_Counting | None, int]] = {}  # releases: what they tell, what they hold
        self._selected: _Counting | None = None
        self._read = 0  # the number of the last entry that was read
        self._turn = Lock()

    @classmethod
    def of_tariff(cls, tariff: Tariff, query_epsilon: float) -> Departures:
        """Return those of a session with this tariff."""
        grains = tariff.capacity, tariff.typical.grains
        return cls(tariff.name, *grains, tariff.order, query_epsilon, at_least=tariff.at_least)

    @classmethod
    def of_terms(cls, terms: Terms) -> Departures:
        """Return those of a ledger that was made for these terms."""
        grains, at_least = (terms.capacities[0], terms.typical[0]), terms.noise == "gumbel"
        return cls(terms.meter, *grains, terms.order, terms.query_epsilon, at_least=at_least)

    def most(self, hits: int = 1) -> int | None:
        """Return at most how many units take no part any more in what may charge them for so many hits.

        A hit is what was declared, or that of a test if it is dearer. The bound holds in at least 95% of draws, at
        all moments together; None if there is none.
        """
        with self._turn:
            typical = self._price(self._typical)
            spent = self._capacity - hits * max(typical, self._test) + 1 - self._everybody
            if spent <= 0:
                return None
            if self._each < spent:
                return 0
            excess = float(np.min((self._excess * _ROUNDED + _UNSURE) / self._tilts))
            return max(0, self._numbers + math.ceil(excess * typical)) // spent

    def read(self, ledger: Ledger) -> None:
        """Take note of what is new in a ledger."""
        with self._turn:
            self._read, entries = ledger.since(self._read)
            for entry in entries:
                self.add(entry)

    def add(self, entry: Entry) -> None:
        """Take note of an entry that follows those before."""
        match entry:
            case Answer():
                self._add_answer(entry)
            case BatchEntry() if entry.hit_places:
                hits = entry.hits
                self._charge(hits, _counting(hits[0]), self._price(sum(hits[0].grains)))
            case Spent():
                self._everybody += min(self._price(sum(entry.grains)), self._capacity)

    def _add_answer(self, answer: Answer) -> None:
        """Take note of an answer: a hit, or a release, whose price is held from the draw on.

        The condition of a release may choose low noise: published or waiting, its factor is at most max(X, 1).
        """
        if answer.release is not None and answer.release == answer.seq and _counting(answer) is not None:
            self._excess = self._excess + math.log(2)
        if not answer.hit:
            if answer.release == answer.seq:
                price = self._held(answer.epsilon)
                self._waiting[answer.seq] = _counting(answer), price
                self._everybody += price
        elif answer.release in self._waiting:
            counting, price = self._waiting.pop(answer.release)
            self._everybody -= price
            self._charge((answer,), counting, price)
        else:
            counting = _counting(answer)
            if answer.candidate is not None:
                if answer.question:  # the first answer of a selection
                    self._excess = self._excess + math.log(counting.most if counting else 1)
                    self._selected = counting
                counting = self._selected
            self._charge((answer,), counting, self._price(sum(answer.grains)))

    def _charge(self, hits: tuple[Answer, ...], counting: _Counting | None, price: int) -> None:
        """Add what hits of one question charged: by their numbers, or each to everybody if these do not tell."""
        numbers = [
            number
            for hit in hits
            for number in (hit.outcome if isinstance(hit.outcome, tuple) else (hit.outcome,))
        ]
        if counting is None or not all(type(number) is int for number in numbers):
            self._everybody += price * len(hits)
            return
        own = partial(CountNoise.gumbel, hits[0].epsilon) if self._at_least else None
        noise = noise_of(hits[0], counting.moved, own)
        share = price / self._price(self._typical)
        self._each += price * len(hits)
        self._numbers += price * sum(numbers)
        moments = log_moment(noise, np.asarray(self._tilts * share, np.float64))
        self._excess = np.asarray(self._excess + len(numbers) * moments, np.float64)

    def _held(self, epsilon: float) -> int:
        """Return the price of a test with this ε, which a release holds back; the declared one if it has none."""
        kappa = NotPrior(None).kappa(self._order, epsilon) if self._meter == "renyi" else math.inf
        return self._price(self._typical if kappa == math.inf else grains_up(kappa))

    def _price(self, grains: int) -> int:
        """Return grains on the scale of the unit meters."""
        return math.ceil(grains * self._scale)


def _counting(answer: Answer) -> _Counting | None:
    """Return how the numbers of an answer's question tell how many units it charged; None if they do not.

    A number that is published since it has changed may have been chosen for low noise.
    """
    target = answer.targets[0] if answer.targets else ()
    known = target == ("NotPrior", None) or target[:1] == ("Everything",)
    return _counting_of(answer.question) if known and answer.question else None


@lru_cache(maxsize=256)
def _counting_of(record: str) -> _Counting | None:
    kept = recorded(record)
    if kept is None or not isinstance(kept.question.what, Count):
        return None
    match kept.question:
        case Above() | Watch() | CountQuestion():
            return _Counting()
        case Top(k=k):
            return _Counting(most=k)
        case Histogram(keys=keys, per_unit=per_unit):
            return _Counting(min(per_unit, len(keys)))
        case _:
            return None


def log_moment(noise: CountNoise, tilts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln E[exp(-θ·noise)] for each θ, from above; infinite where it is."""
    rate = noise.rate.numerator / noise.rate.denominator
    match noise.noise:
        case "laplace":
            ratio = np.sinh(np.minimum(tilts, rate) / 2) / np.sinh(rate / 2)
            moments = -np.log1p(-(np.where(tilts < rate, ratio, 0.0) ** 2))
            moments = np.where(tilts < rate, moments, np.inf)
        case "gaussian":  # no larger than the continuous one's
            moments = (tilts / rate) ** 2 / 2
        case _:  # rounded up from a continuous one
            moments = gammaln(1 + tilts / rate) + tilts * centre(noise.noise, noise.rate)
    return np.asarray(moments, np.float64)
