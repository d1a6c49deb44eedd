"""Private labels: ask an ensemble of teachers about public examples, and pay only for doubt.

>>> import numpy as np
>>> import targetcharge as tc
>>> votes = np.array([[240, 10], [5, 245], [0, 250]] * 100)
>>> session = tc.Session(None, tc.Budget(3.0, 1e-5), query_epsilon=0.1, meter="renyi", targets=[tc.Boundary(2)])
>>> labels = label(votes, session, teachers=250, epsilon=0.1, classes=["cat", "dog"])
>>> labels.complete, labels.values[:3].tolist()
(True, ['cat', 'dog', 'dog'])
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from targetcharge import checks
from targetcharge.errors import BudgetSpent, InvalidParameter, NotAllowed
from targetcharge.learning.aggregating import Aggregator, Agreement
from targetcharge.learning.labels import Labels, gathered
from targetcharge.learning.modes import CAUTION, MODES, Mode, mode_of
from targetcharge.learning.votes import Votes
from targetcharge.mechanisms import Batch
from targetcharge.mechanisms.algorithm import checked_name, together
from targetcharge.mechanisms.batch import MOST_HITS, Requests
from targetcharge.mechanisms.choice import CHOICES, Outcomes, declared_outcomes
from targetcharge.outcomes import BOUNDARY, LOW
from targetcharge.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from targetcharge.learning.modes import Drawn
    from targetcharge.randomness import Entropy

_CELLS: Final = 2**18
"""Counts that are drawn with together: what bounds the memory."""


def label(
    votes: ArrayLike,
    session: Session,
    *,
    teachers: int,
    epsilon: float,
    mechanism: str = "permute_and_flip",
    mode: str = "boundary",
    prior: ArrayLike | None = None,
    threshold: float | None = None,
    threshold_epsilon: float | None = None,
    caution: float = CAUTION,
    classes: Outcomes | None = None,
    start: int | Labels = 0,
    name: str = "labels",
) -> Labels:
    """Label public requests by the private votes of teachers, within a session's budget.

    Each request is one ε-DP computation of the votes, in order, where a changed record changes one teacher's vote:
    two counts of a row move by one. The session's guarantee is about such a change (docs/theory/labels.md#votes).
    A budget that is spent on the way ends the call: the rest is unanswered.

    Args:
        votes: how many teachers chose each class: a row for each request, a column for each class.
        session: whose budget pays, and whose ledger keeps the labels; its own data is not looked at.
        teachers: how many there are. Every row sums to it.
        epsilon: ε of one request, all in all.
        mechanism: "permute_and_flip", "exponential" or "noisy_max", which chooses the class.
        mode: "boundary" pays for requests that are too close to call, "prior" for labels that differ from what
            was expected, "twice" for requests on which two draws differ, "plain" for all.
        prior: in mode "prior", the class that is expected for each request, such as a student's prediction.
        threshold: the least noisy number of teachers that must agree, else the outcome is `LOW`.
        threshold_epsilon: the part of ε that this test gets; half if left out.
        caution: in mode "boundary", how readily doubt is marked: 1 as in the paper; more makes each mark cheaper
            and the labels better, and gives fewer of them.
        classes: their names, in the order of the columns; 0, 1, … if left out.
        start: the request to begin with, or earlier labels of the same requests to go on from.
        name: what the transcript calls these requests; for `recall`.

    Raises:
        InvalidParameter: if a parameter is wrong; nothing was asked.
        NotAllowed: if the session's meter has no price for the mode.
    """
    if not isinstance(session, Session):
        raise InvalidParameter("session", session, "a tc.Session")
    table = Votes(votes, teachers)
    names = tuple(range(table.classes)) if classes is None else declared_outcomes(classes, "classes")
    if len(names) != table.classes:
        expected = f"{table.classes} names, one for each column of votes, and there are {len(names)}"
        raise InvalidParameter("classes", classes, expected)
    chosen = mode_of(checks.choice("mode", mode, MODES), caution)
    aggregator = _aggregator(mechanism, mode, epsilon, threshold, threshold_epsilon)
    expected_codes = _prior(prior, mode, names, len(table))
    labels = _begun(start, names, len(table))
    batch = Batch(
        (together(checked_name(name), chosen.target.check_epsilon(epsilon), chosen.target),),
        range(len(table)),
        Requests((*names, LOW, BOUNDARY), _drawing(table, aggregator, chosen, expected_codes)),
        target=chosen.plain_target,
        most_hits=MOST_HITS,
        durable=True,
    )
    try:
        for entry in session.ask_batch(batch, labels.asked):
            labels = gathered(labels, [entry])
    except BudgetSpent as error:
        return replace(labels, stopped=str(error))
    return labels


def _aggregator(
    mechanism: str, mode: str, epsilon: float, threshold: float | None, threshold_epsilon: float | None
) -> Aggregator:
    choice = CHOICES[checks.choice("mechanism", mechanism, tuple(CHOICES))]
    if mechanism == "noisy_max" and mode == "boundary":
        msg = "noisy_max cannot tell its probabilities quickly, which mode 'boundary' needs: take permute_and_flip"
        raise NotAllowed(msg)
    epsilon = checks.query_epsilon(epsilon, "epsilon")
    if threshold is None:
        if threshold_epsilon is not None:
            raise InvalidParameter("threshold_epsilon", threshold_epsilon, "left out where there is no threshold")
        return Aggregator(choice(epsilon))
    least = checks.threshold("threshold", threshold)
    share = epsilon / 2 if threshold_epsilon is None else threshold_epsilon
    # The difference is rounded to nearest, which may be up: a step down keeps the sum within ε.
    rest = float(np.nextafter(epsilon - checks.real("threshold_epsilon", share, "a number"), 0.0))
    if not min(share, rest) >= checks.MIN_QUERY_EPSILON:
        expected = f"below epsilon={epsilon:g}, with {checks.MIN_QUERY_EPSILON:g} or more for each of the two"
        raise InvalidParameter("threshold_epsilon", share, expected)
    return Aggregator(choice(rest), Agreement(least, share))


def _prior(prior: ArrayLike | None, mode: str, names: tuple[object, ...], requests: int) -> NDArray[np.intp]:
    """Return the index of the class that is expected for each request; -1 where none is."""
    if mode != "prior":
        if prior is not None:
            raise InvalidParameter("prior", prior, "left out, unless mode is 'prior'")
        return np.full(requests, -1, dtype=np.intp)
    index = {value: code for code, value in enumerate(names)}
    try:
        different, places = _distinct(np.asarray(prior), requests)
        codes = [index[value] for value in different]
    except (ValueError, TypeError):  # of another shape, or with what cannot be a class
        raise InvalidParameter("prior", prior, f"a class for each of the {requests} requests") from None
    except KeyError as error:
        raise InvalidParameter("prior", error.args[0], "one of the classes for each request") from None
    return np.array(codes, dtype=np.intp)[places]


def _distinct(values: NDArray[np.generic], count: int) -> tuple[list[object], NDArray[np.intp]]:
    """Return the different values, and which of them each is."""
    if values.shape != (count,):
        raise ValueError
    if values.dtype != np.object_:
        different, places = np.unique(values, return_inverse=True)
        return different.tolist(), places
    seen: dict[object, int] = {}  # what has no order
    found = [seen.setdefault(value, len(seen)) for value in values.tolist()]
    return list(seen), np.array(found, dtype=np.intp)


def _begun(start: int | Labels, names: tuple[object, ...], requests: int) -> Labels:
    if isinstance(start, Labels):
        if start.classes != names or start.asked > requests:
            raise InvalidParameter("start", start, f"labels of these classes, of at most {requests} requests")
        return start.resized(requests)
    first = checks.place("start", start, requests, "the number of requests, or earlier labels")
    return replace(Labels.nothing(names, requests), asked=first)


def _drawing(
    votes: Votes, aggregator: Aggregator, mode: Mode, prior: NDArray[np.intp]
) -> Callable[[object, Entropy, int, int], Drawn]:
    """Return what draws the outcomes of the requests from one up to another, a bounded number at a time."""
    together_at_most = max(1, _CELLS // votes.classes)

    def draw(_: object, entropy: Entropy, first: int, last: int) -> Drawn:
        parts = [
            mode.draw(aggregator, votes.rows(start, end), prior[start:end], entropy)
            for start in range(first, last, together_at_most)
            if (end := min(start + together_at_most, last))
        ]
        codes, hits = zip(*parts, strict=True)
        return np.concatenate(codes), np.concatenate(hits)

    return draw
