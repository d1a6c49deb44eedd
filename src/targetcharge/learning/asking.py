"""Asking: open the session that a mode needs, and label public requests through it.

>>> import numpy as np
>>> import targetcharge as tc
>>> asking = Asking(budget=tc.Budget(4, 1e-6), query_epsilon=0.1, teachers=500, classes=("a", "b"), unit="record")
>>> votes = np.array([[500, 0], [0, 500]])
>>> with asking.open() as session:
...     asking.label(votes, session, "labels", None, np.zeros((2, 1))).values.tolist()
['a', 'b']
"""

from __future__ import annotations

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
        if checks.positive_integer("rounds", self.rounds) > MOST_ROUNDS:
            raise InvalidParameter("rounds", self.rounds, f"at most {MOST_ROUNDS}")
        votes = np.zeros((1, len(self.classes)), np.int64)
        votes[0, 0] = self.teachers
        with replace(self, ledger=_MEMORY).open() as session:
            self._ask(votes, session, "rehearsal", 0, np.array([self.classes[0]]))

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

    def name(self, requests: Features) -> str:
        """Return what the ledger calls the labels of these requests, so that others do not get them."""
        digest = blake2b(repr((requests.shape, requests.dtype.str, self.classes)).encode(), digest_size=8)
        digest.update(np.ascontiguousarray(requests).tobytes())
        return f"labels of requests {digest.hexdigest()}"

    def label(
        self,
        votes: NDArray[np.int64],
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
        votes: NDArray[np.int64],
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
