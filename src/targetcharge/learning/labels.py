"""Private labels: ask an ensemble of teachers about public examples, and pay only for doubt.

>>> import targetcharge as tc
>>> votes = np.array([[240, 10], [5, 245], [0, 250]] * 100)
>>> labels = label(votes, budget=tc.Budget(3.0, 1e-5), classes=["cat", "dog"])
>>> labels.complete, labels.values[:3].tolist()
(True, ['cat', 'dog', 'dog'])
>>> labels = Labels.nothing(("cat", "dog"), requests=4).with_codes(0, np.array([1, 3, 0]), np.array([1]))
>>> labels
<labels: 3 of 4 requests asked, 2 labelled, 1 too close to call, 0 with low agreement, 1 hit>
>>> labels.rows.tolist(), labels.values.tolist(), labels.hits.tolist(), labels.unanswered.tolist()
([0, 2], ['dog', 'cat'], [1], [False, False, False, True])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.targets.plain import ANY_PRIOR
from targetcharge.errors import BudgetSpent, InvalidParameter
from targetcharge.learning.opening import Payer
from targetcharge.learning.votes import MODES, VoteDrawing, Votes, aggregator_of, target_of
from targetcharge.markup import counted
from targetcharge.mechanisms import Batch
from targetcharge.mechanisms.algorithm import Outcomes, batch_algorithm, checked_name, declared_outcomes
from targetcharge.mechanisms.batch import MOST_HITS, Requests
from targetcharge.outcomes import BOUNDARY, LOW
from targetcharge.sessions import Session
from targetcharge.sessions.opening import MEMORY

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray

    from targetcharge.accounting.budget import Budget
    from targetcharge.errors import Refused
    from targetcharge.ledger import BatchEntry

_UNANSWERED: Final = -1


@final
@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Outcomes of the first `asked` requests; the rest is unanswered.

    Attributes:
        classes: their names.
        codes: for each request the index of its class; the number of classes for low agreement, one more for too
            close to call, -1 for no answer.
        hit: which requests were charged.
        asked: the request to go on with.
        refusal: why it went no further; None if it did not have to stop.
    """

    classes: tuple[object, ...]
    codes: NDArray[np.intp]
    hit: NDArray[np.bool_]
    asked: int = 0
    refusal: Refused | None = None

    @classmethod
    def nothing(cls, classes: tuple[object, ...], requests: int) -> Labels:
        """Return labels of requests of which none is answered."""
        return cls(classes, np.full(requests, _UNANSWERED, dtype=np.intp), np.zeros(requests, dtype=np.bool_))

    def with_entry(self, entry: BatchEntry) -> Labels:
        """Return labels with the outcomes that an entry of a ledger holds."""
        return self.with_codes(_first_request(entry), entry.indices, np.array(entry.hit_places, dtype=np.intp))

    def with_codes(self, first: int, codes: NDArray[np.intp], hits: NDArray[np.intp]) -> Labels:
        """Return labels with the outcomes of further requests; in place, to hold each array once.

        Of a request that was asked twice, as by two processes at once, the later outcome counts.
        """
        end = first + len(codes)
        self.codes[first:end] = codes
        self.hit[first:end] = False
        self.hit[first + hits] = True
        return replace(self, asked=max(self.asked, end))

    def resized(self, requests: int) -> Labels:
        """Return a copy with room for so many requests."""
        copied = Labels.nothing(self.classes, requests)
        copied.codes[: self.asked] = self.codes[: self.asked]
        copied.hit[: self.asked] = self.hit[: self.asked]
        return replace(copied, asked=self.asked)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Return which requests have a label."""
        return (self.codes >= 0) & (self.codes < len(self.classes))

    @property
    def rows(self) -> NDArray[np.intp]:
        """Return the requests that have a label, in order."""
        return np.flatnonzero(self.labelled)

    @property
    def values(self) -> NDArray[np.generic]:
        """Return the labels of `rows`."""
        names: NDArray[np.generic] = np.fromiter(self.classes, dtype=np.object_, count=len(self.classes))
        if len(set(map(type, self.classes))) == 1 and not isinstance(self.classes[0], tuple):
            packed: NDArray[np.generic] = np.array(self.classes)
            names = packed if packed.tolist() == list(self.classes) else names
        return names[self.codes[self.rows]]

    @property
    def boundary(self) -> NDArray[np.bool_]:
        """Return which requests were too close to call."""
        return np.equal(self.codes, len(self.classes) + 1)

    @property
    def low(self) -> NDArray[np.bool_]:
        """Return on which requests too few teachers agree."""
        return np.equal(self.codes, len(self.classes))

    @property
    def unanswered(self) -> NDArray[np.bool_]:
        """Return which requests have no answer."""
        return np.equal(self.codes, _UNANSWERED)

    @property
    def hits(self) -> NDArray[np.intp]:
        """Return the indices of the requests that were charged, in order; `hit` says it of every request."""
        return np.flatnonzero(self.hit)

    @property
    def stopped(self) -> str:
        """Return why it went no further, in a sentence; empty if it did not have to stop."""
        return "" if self.refusal is None else str(self.refusal)

    @property
    def complete(self) -> bool:
        """Return whether all requests were asked."""
        return self.asked == len(self.codes)

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.codes)

    def __repr__(self) -> str:
        """Return what was published, in numbers."""
        hits = counted(len(self.hits), "hit")
        return (
            f"<labels: {self.asked:,} of {len(self):,} requests asked, {len(self.rows):,} labelled,"
            f" {int(self.boundary.sum()):,} too close to call, {int(self.low.sum()):,} with low agreement, {hits}"
            f"{'; stopped: ' * bool(self.stopped)}{self.stopped}>"
        )


def label(
    votes: ArrayLike,
    session: Session | None = None,
    *,
    budget: Budget | None = None,
    teachers: int | None = None,
    epsilon: float | None = None,
    mechanism: str = "permute_and_flip",
    mode: str = "boundary",
    prior: ArrayLike | None = None,
    threshold: float | None = None,
    threshold_epsilon: float | None = None,
    caution: float | None = None,
    classes: Outcomes | None = None,
    start: int | Labels = 0,
    name: str = "labels",
    ledger: str | os.PathLike[str] = MEMORY,
) -> Labels:
    """Label public requests by the private votes of teachers, within a budget or that of a session.

    Each request is one ε-DP computation of the votes, in order, where a changed record changes one teacher's vote:
    two counts of a row move by one. The session's guarantee is about such a change (docs/theory/labels.md#votes).
    A budget that is spent on the way ends the call: the rest is unanswered.

    Args:
        votes: how many teachers chose each class: a row for each request, a column for each class.
        session: whose budget pays, and whose ledger keeps the labels; its own data is not looked at. Left out, one
            is opened for the budget.
        budget: of all these labels together, without a session.
        teachers: how many there are. Every row sums to it; left out for what the first one sums to, which no
            teacher's vote changes.
        epsilon: ε of one request, all in all; without a session it may be left out for 20/teachers, or less where
            the budget would cover fewer than 10 hits.
        mechanism: "permute_and_flip", "exponential" or "noisy_max", which chooses the class.
        mode: "boundary" pays for requests that are too close to call, "prior" for labels that differ from what
            was expected, "twice" for requests on which two draws differ, "plain" for all.
        prior: in mode "prior", the class that is expected for each request, such as a student's prediction.
        threshold: the least noisy number of teachers that must agree, else the outcome is `LOW`.
        threshold_epsilon: the part of ε that this test gets; half if left out.
        caution: in mode "boundary", how readily doubt is marked: 1 as in the paper; more makes each mark cheaper
            and the labels better, and gives fewer of them. Left out for that of the session, or else 2.
        classes: their names, in the order of the columns; 0, 1, … if left out.
        start: the request to begin with, or earlier labels of the same requests to go on from.
        name: what the transcript calls these requests; for `recall`.
        ledger: with a budget, where it is kept: ":memory:", or the path of a file.

    Raises:
        InvalidParameter: if a parameter is wrong; nothing was asked.
        NotAllowed: if the session's meter has no price for the mode.
    """
    payer = Payer.of(session, budget, epsilon, ledger)
    table = Votes(votes, teachers)
    names = tuple(range(table.classes)) if classes is None else declared_outcomes(classes, "classes")
    if len(names) != table.classes:
        expected = f"{table.classes} names, one for each column of votes, and there are {len(names)}"
        raise InvalidParameter("classes", classes, expected)
    target = target_of(checks.choice(mode, "mode", MODES), payer.caution(caution))
    epsilon = payer.epsilon_of(target, table.teachers)
    aggregator = aggregator_of(mechanism, mode, epsilon, threshold, threshold_epsilon)
    drawing = VoteDrawing(table, aggregator, target, _prior_codes(prior, mode, names, len(table)))
    labels = _started(start, names, len(table))
    batch = Batch(
        (batch_algorithm(checked_name(name), target.check_epsilon(epsilon), target),),
        range(len(table)),
        Requests((*names, LOW, BOUNDARY), drawing.draw),
        target=ANY_PRIOR if mode == "prior" else None,
        most_hits=MOST_HITS,
        durable=True,
    )
    with payer.opened(target, epsilon) as opened:
        try:
            for entry in opened.ask_batch(batch, labels.asked):
                labels = labels.with_entry(entry)
        except BudgetSpent as spent:
            return replace(labels, refusal=spent.with_traceback(None))
    return labels


def _prior_codes(prior: ArrayLike | None, mode: str, names: tuple[object, ...], requests: int) -> NDArray[np.intp]:
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
    places = np.array([seen.setdefault(value, len(seen)) for value in values.tolist()], dtype=np.intp)
    return list(seen), places


def _started(start: int | Labels, names: tuple[object, ...], requests: int) -> Labels:
    if isinstance(start, Labels):
        if start.classes != names or start.asked > requests:
            raise InvalidParameter("start", start, f"labels of these classes, of at most {requests} requests")
        return start.resized(requests)
    first = checks.integer(start, "start", 0, requests, "the number of requests, or earlier labels")
    return replace(Labels.nothing(names, requests), asked=first)


def recall(session: Session, name: str = "labels", requests: int | None = None) -> Labels:
    """Return the labels that a session's ledger has under a name: after a crash, say.

    One name is for one set of requests. A call of `label` that began with the first request began anew: what was
    answered under the name before it is left out.

    Args:
        session: open on the ledger.
        name: that `label` was given.
        requests: how many there are; left out, as many as were answered.

    Raises:
        InvalidParameter: if there are none, or fewer requests than were answered.
    """
    if not isinstance(session, Session):
        raise InvalidParameter("session", session, "a tc.Session")
    batches = [
        batch
        for batch in session.transcript.batches()
        if batch.first.algorithm == name and batch.outcomes[-2:] == (LOW, BOUNDARY)
    ]
    begun = max((place for place, batch in enumerate(batches) if batch.first.key == 0), default=0)
    batches = batches[begun:]
    outcomes = {batch.outcomes for batch in batches}
    if len(outcomes) != 1:
        expected = (
            "the name of labels on this ledger" if not outcomes else "a name that only one set of classes has"
        )
        raise InvalidParameter("name", name, expected)
    *classes, _, _ = outcomes.pop()
    answered = max(_first_request(batch) + len(batch) for batch in batches)
    if requests is not None and checks.positive_integer(requests, "requests") < answered:
        raise InvalidParameter("requests", requests, f"at least {answered}, as many as were answered")
    labels = Labels.nothing(tuple(classes), answered if requests is None else requests)
    for batch in batches:
        labels = labels.with_entry(batch)
    return labels


def _first_request(entry: BatchEntry) -> int:
    if not isinstance(entry.first.key, int):
        raise InvalidParameter("name", entry.first.algorithm, "the name of labels")
    return entry.first.key
