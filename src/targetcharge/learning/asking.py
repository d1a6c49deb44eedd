"""Asking: open the session that a mode needs, and label public requests through it.

A ledger keeps labels under a name that all settings are part of, so that no others get them. It cannot tell
private datasets apart, since they are secret: one ledger, one private dataset.

>>> import numpy as np
>>> import targetcharge as tc
>>> asking = Asking(budget=tc.Budget(4, 1e-6), query_epsilon=0.1, teachers=500, classes=("a", "b"), unit="record")
>>> votes = Ballots(np.array([[500, 0], [0, 500]]))
>>> with asking.open() as session:
...     asking.label(votes, session, "labels", None, np.zeros((2, 1))).values.tolist()
['a', 'b']
"""

from __future__ import annotations

import numbers
import re
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.learning.labelling import label
from targetcharge.learning.labels import Labels, recall
from targetcharge.learning.modes import CAUTION, mode_of
from targetcharge.learning.rounds import MOST_ROUNDS, ends, predictions
from targetcharge.sessions import Session

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray
    from sklearn.base import BaseEstimator

    from targetcharge.accounting.budget import Budget
    from targetcharge.learning.teachers import Features

_MEMORY: Final = ":memory:"

_METERS: Final = {"boundary": "renyi", "prior": "exact", "twice": "exact", "plain": "exact"}
"""The meter that buys the most labels in each mode."""

_INCIDENTAL: Final = frozenset({"random_state", "verbose", "n_jobs"})
"""Parameters that say nothing about what an estimator learns."""


@final
@dataclass(frozen=True, repr=False, eq=False)
class Ballots:
    """Votes of teachers, which no traceback or log shows; a table for NumPy.

    Attributes:
        counts: a row for each request, a column for each class.
    """

    counts: NDArray[np.int64]

    def __array__(self, dtype: np.dtype | None = None, *, copy: bool | None = None) -> NDArray[np.int64]:
        """Return the counts."""
        return np.array(self.counts, dtype=dtype, copy=copy)

    def __getitem__(self, rows: slice) -> Ballots:
        """Return the votes on some requests."""
        return Ballots(self.counts[rows])

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.counts)

    def __repr__(self) -> str:
        """Return public facts only."""
        return f"<votes on {len(self)} requests>"


@final
@dataclass(frozen=True, kw_only=True)
class Asking:
    """How labels are asked for; all of it public.

    Attributes:
        budget: of all labels together.
        query_epsilon: of one label.
        teachers: how many vote.
        classes: their names.
        unit: whose privacy is protected, in words.
        mechanism: chooses the label.
        mode: what costs.
        threshold: the least agreement, if any.
        threshold_epsilon: the part of the query ε that tests it.
        caution: of mode "boundary".
        rounds: of mode "prior".
        ledger: where charges and labels are kept.
    """

    budget: Budget
    query_epsilon: float
    teachers: int
    classes: tuple[object, ...]
    unit: str
    mechanism: str = "permute_and_flip"
    mode: str = "boundary"
    threshold: float | None = None
    threshold_epsilon: float | None = None
    caution: float = CAUTION
    rounds: int = 8
    ledger: str | os.PathLike[str] = _MEMORY

    def rehearse(self) -> None:
        """Ask about one made-up request on a budget of its own: what is wrong with the parameters shows here."""
        checks.choice("mode", self.mode, tuple(_METERS))
        whole = isinstance(self.rounds, numbers.Integral) and not isinstance(self.rounds, bool)
        if not whole or not 1 <= self.rounds <= MOST_ROUNDS:
            raise InvalidParameter("rounds", self.rounds, f"an integer from 1 to {MOST_ROUNDS}")
        votes = np.zeros((1, len(self.classes)), np.int64)
        votes[0, 0] = self.teachers
        with replace(self, ledger=_MEMORY).open() as session:
            self._ask(Ballots(votes), session, "rehearsal", 0, np.array([self.classes[0]]))

    def open(self) -> Session:
        """Open the session that the mode needs."""
        return Session(
            None,
            self.budget,
            self.query_epsilon,
            ledger=self.ledger,
            meter=_METERS[self.mode],
            targets=[mode_of(self.mode, self.caution).target],
            unit=self.unit,
        )

    def name(self, requests: Features, estimator: BaseEstimator) -> str:
        """Return what the ledger calls the labels of these requests by these teachers: others do not get them.

        Args:
            requests: features.
            estimator: of the teachers.
        """
        real = [None if each is None else float(each) for each in (self.threshold, self.threshold_epsilon)]
        settings = (self.classes, int(self.teachers), self.mechanism, self.mode, real, float(self.caution))
        digest = blake2b(f"{settings!r} {described(estimator)} {described(requests)}".encode(), digest_size=8)
        return f"labels of requests {digest.hexdigest()}"

    def label(
        self,
        votes: Ballots,
        session: Session,
        name: str,
        student: BaseEstimator | None,
        requests: Features,
    ) -> Labels:
        """Label the requests that have no answer yet, until the budget is spent.

        Args:
            votes: on all requests.
            session: from `open`.
            name: from `name`.
            student: learns between the rounds of mode "prior"; other modes need none.
            requests: features.
        """
        labels = self.known(session, name)
        if student is None or self.mode != "prior":
            return self._ask(votes, session, name, labels, None)
        for end in ends(len(votes), self.rounds):
            if end > labels.asked and not labels.stopped:
                prior = predictions(student, requests, labels.rows, labels.values, self.classes)
                labels = self._ask(votes[:end], session, name, labels, prior[:end])
        return replace(labels.resized(len(votes)), stopped=labels.stopped)

    def known(self, session: Session, name: str) -> Labels:
        """Return the labels that the ledger has under a name; of no request if there are none."""
        try:
            return recall(session, name)
        except InvalidParameter:
            return Labels.nothing(self.classes, 0)

    def _ask(
        self,
        votes: Ballots,
        session: Session,
        name: str,
        start: int | Labels,
        prior: NDArray[np.generic] | None,
    ) -> Labels:
        return label(
            votes,
            session,
            teachers=self.teachers,
            epsilon=self.query_epsilon,
            mechanism=self.mechanism,
            mode=self.mode,
            prior=prior if self.mode == "prior" else None,
            caution=self.caution,
            threshold=self.threshold,
            threshold_epsilon=self.threshold_epsilon,
            classes=self.classes,
            start=start,
            name=name,
        )


def described(value: object) -> str:
    """Return a parameter as text that is the same in every process; of an estimator, its class and parameters.

    >>> from sklearn.dummy import DummyClassifier
    >>> described(DummyClassifier(random_state=7))
    "sklearn.dummy.DummyClassifier(constant=None, strategy='prior')"
    """
    match value:
        case type():
            return f"{value.__module__}.{value.__qualname__}"
        case np.generic():
            return repr(value.item())
        case np.ndarray() if value.dtype == np.object_:
            return described(value.tolist())
        case np.ndarray():
            content = blake2b(np.ascontiguousarray(value).tobytes(), digest_size=16).hexdigest()
            return f"array({value.shape}, {value.dtype.str}, {content})"
        case list() | tuple():
            return f"[{', '.join(map(described, value))}]"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(described, value)))}}}"
        case dict():
            return f"{{{', '.join(sorted(map(described, value.items())))}}}"
    if hasattr(value, "get_params"):
        parameters = sorted(value.get_params(deep=False).items())
        told = (f"{name}={described(each)}" for name, each in parameters if name not in _INCIDENTAL)
        return f"{described(type(value))}({', '.join(told)})"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
