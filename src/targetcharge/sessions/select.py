"""Selections: the best of many candidates, each run once, published in the order of their scores.

A stopping rule sees what was released so far and names a floor; the sweep ends when the next score is below it. It
never sees a score that is not released: a rule that does breaks the guarantee
(docs/theory/exact.md#exact-accounting).

>>> from targetcharge.ledger import Answer
>>> gap(5)([Answer(30, True, 1.0, seq=1, candidate=2), Answer(28, True, 1.0, seq=2, candidate=0)])
23
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter, NotAllowed, shown
from targetcharge.mechanisms import Batch
from targetcharge.mechanisms.batch import NoisyCounts
from targetcharge.mechanisms.gauge import COUNTED
from targetcharge.sessions.priced import most_of_all

if TYPE_CHECKING:
    from targetcharge.ledger import Answer, Most
    from targetcharge.mechanisms import Algorithm
    from targetcharge.randomness import Entropy
    from targetcharge.sessions.priced import Priced, PriceList


class Released(Protocol):
    """What a rule sees of a released candidate: an Answer has it."""

    @property
    def outcome(self) -> object:
        """Return what was published: a score, or a tuple that begins with it."""
        ...


Score = int | float | Fraction
"""Comparisons between these are exact."""

Stop = Callable[[Sequence[Any]], Score | None]
"""From the released answers, best first, to the lowest score that may follow; None for any."""

STOP: Final = "a function from the released answers to a number or None"

_Answer = TypeVar("_Answer", bound=Released)


def gap(size: float) -> Stop:
    """Return the rule that stops before the first score that lies more than `size` below the one before it.

    It asks for the *next* score only whether it reaches the floor, which is free if it does not.
    """
    expected = "a number of at least 0"
    if not 0 <= checks.real(size, "size", expected) < math.inf:
        raise InvalidParameter("size", size, expected)

    def floor(released: Sequence[Released]) -> Score:
        return score_of(released[-1].outcome) - size

    return floor


def score_of(outcome: object) -> Score:
    """Return the score of an outcome: a number, or the first member of a tuple.

    Raises:
        ValueError: if there is none, or it is NaN.
    """
    score = plain_number(outcome[0] if isinstance(outcome, tuple) and outcome else outcome)
    if score is None:
        msg = "a candidate's outcome is a number, or a tuple that begins with one"
        raise ValueError(msg)
    return score


@final
@dataclass(frozen=True)
class Candidates:
    """All candidates of one selection: algorithms, or the keys of a batch with one computation.

    Attributes:
        priced: one for each, or one for all.
        batch: whose keys they are, if they are.
        values: whether outcomes are published, and not only which candidates are the best.
    """

    priced: Sequence[Priced]
    batch: Batch | None = None
    values: bool = True

    @classmethod
    def of(cls, candidates: Sequence[Algorithm] | Batch, prices: PriceList, *, values: bool) -> Candidates:
        """Return the candidates that a caller gave, priced."""
        if not isinstance(candidates, Batch):
            return cls([prices.candidate(algorithm) for algorithm in candidates], values=values)
        if not isinstance(candidates.drawing, NoisyCounts):
            msg = "a selection is made among algorithms or noisy counts, and this batch has neither"
            raise NotAllowed(msg)
        batch = prices.as_drawn(candidates)
        return cls(prices.candidates(batch), batch, values)

    def most(self, count: int) -> Most:
        """Return the most that the release of `count` candidates could charge, at the dearest one's price."""
        return most_of_all(self.priced, count)

    def draw(self, data: object, entropy: Entropy) -> list[object]:
        """Return the outcome of every candidate, each run once."""
        if self.batch is None:
            return [priced.draw(data, entropy) for priced in self.priced]
        drawing = self.batch.drawing
        assert isinstance(drawing, NoisyCounts)  # noqa: S101 - checked when it was made
        return [drawing.value(noisy) for noisy in drawing.draw(data, entropy)]

    def answer(self, index: int, rank: int, outcome: object, seq: int, received: float, snapshot: int) -> Answer:
        """Return the answer that releases a candidate, the `rank`th: its interval holds for what was selected."""
        priced = self.priced[index if len(self.priced) > 1 else 0]
        key, count = None if self.batch is None else self.batch.keys[index], len(self)
        answer = priced.answer(outcome, (True,), seq, received, snapshot, key=key, candidate=index)
        accuracy = priced.algorithm.accuracy
        if not self.values:
            return replace(answer, outcome=None, scale=0.0, interval=None)
        if accuracy is None:
            return answer
        # Candidates that were given one by one may have noise of different laws.
        selected = accuracy.of_any(count) if self.batch is None else accuracy.of_rank(rank, count)
        return replace(answer, interval=selected.interval(outcome))

    def rehearse(self, stop: Stop, most: int, threshold: float | None) -> None:
        """Refuse a stopping rule that breaks on made-up answers: on those of the data something would be paid.

        Only where the candidates are noisy counts: of others it is not known what they give.

        Args:
            stop: the stopping rule.
            most: the largest number to release.
            threshold: no score below it is released.
        """
        drawing = None if self.batch is None else self.batch.drawing
        if isinstance(drawing, NoisyCounts):
            gauge = drawing.gauge
        elif all(any(type(example) is int for example in priced.algorithm.examples()) for priced in self.priced):
            gauge = COUNTED
        else:
            return
        least = 0 if threshold is None or math.isinf(threshold) else gauge.least(threshold)
        made_up = [gauge.value(least + 1_000), gauge.value(least)][: most - 1]
        answers = [self.answer(rank - 1, rank, score, rank, 0.0, 0) for rank, score in enumerate(made_up, 1)]
        for count in range(1, len(answers) + 1):
            _, problem = _floor(stop, answers[:count])
            if problem:
                raise InvalidParameter("stop", stop, f"{STOP}; of made-up answers {problem}. Nothing was charged")

    def __len__(self) -> int:
        """Return how many candidates there are."""
        return len(self.priced) if self.batch is None else len(self.batch)

    def end(self, seq: int, received: float, snapshot: int, *, broke: bool) -> Answer:
        """Return the answer that says that no more candidates reach the floor, or that the rule broke."""
        first = self.priced[0]
        alone = self.batch is not None and len(self.priced) == 1
        name = first.algorithm.name if alone else f"{len(self.priced)} candidates"
        ended = first.answer(None, (False,), seq, received, snapshot)
        return replace(ended, algorithm=name, call="select broke" if broke else "select ended", interval=None)


def check_selection(candidates: Sequence[object], k: int, stop: Stop | None, threshold: float | None) -> int:
    """Return k as a plain integer; refuse parameters that make no sense, before anything is run."""
    if not isinstance(candidates, list | tuple) or not candidates:
        raise InvalidParameter("candidates", candidates, "a list of at least one algorithm")
    expected = f"an integer from 1 to {len(candidates)}, the number of candidates"
    if isinstance(k, bool) or not isinstance(k, numbers.Integral) or not 1 <= k <= len(candidates):
        raise InvalidParameter("k", k, expected)
    if stop is not None and not callable(stop):
        raise InvalidParameter("stop", stop, STOP)
    if threshold is not None and plain_number(threshold) is None:
        raise InvalidParameter("threshold", threshold, "a number, the lowest score to publish")
    return int(k)


def plain_number(value: object) -> Score | None:
    """Return a number as one of Python's own; None if it is none.

    A floor of a caller's own class could look at the unreleased score that it is compared with.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, numbers.Rational):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):
        number = float.__float__(value)
    elif isinstance(value, numbers.Real):
        number = float(value)
    else:
        return None
    return None if math.isnan(number) else number


def sweep(
    outcomes: Sequence[object],
    most: int,
    threshold: float | None,
    stop: Stop | None,
    release: Callable[[int], _Answer],
) -> tuple[list[_Answer], str]:
    """Release the best outcomes one by one, in the order (score descending, index ascending).

    Returns what was released, and what the stopping rule did wrong, if it did: it had seen published values only.

    Args:
        outcomes: of all candidates.
        most: the largest number to release.
        threshold: no score below it is released.
        stop: the stopping rule, called after each release.
        release: makes a candidate's answer.
    """
    scores = [score_of(outcome) for outcome in outcomes]
    order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)  # stable: ties by index
    least = plain_number(threshold) if threshold is not None else None
    if least is None:
        least = -math.inf
    floor, released = least, list[_Answer]()
    for index in order[:most]:
        if scores[index] < floor:
            break
        released.append(release(index))
        if stop is not None and len(released) < most:
            named, problem = _floor(stop, released)
            if problem:
                return released, problem
            floor = least if named is None else max(least, named)
    return released, ""


def _floor(stop: Stop, released: Sequence[Released]) -> tuple[Score | None, str]:
    """Return the floor that a rule names, or what it did wrong."""
    try:
        floor = stop(tuple(released))
    except Exception as error:  # noqa: BLE001 - whatever a caller's rule raises is told as its mistake
        return None, f"it raised {type(error).__name__}: {error}"
    if floor is None:
        return None, ""
    lowest = plain_number(floor)
    return lowest, "" if lowest is not None else f"it returned {shown(floor)}"
