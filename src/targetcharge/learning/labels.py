"""Labels: what was published about many requests, as arrays.

>>> found = Labels.nothing(("cat", "dog"), requests=4).with_codes(0, np.array([1, 3, 0]), np.array([1]))
>>> found
<labels: 3 of 4 requests asked, 2 labelled, 1 too close to call, 0 with low agreement, 1 hit>
>>> found.rows.tolist(), found.values.tolist(), found.hits.tolist(), found.unanswered.tolist()
([0, 2], ['dog', 'cat'], [1], [False, False, False, True])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.learning.modes import too_close
from targetcharge.outcomes import BOUNDARY, LOW
from targetcharge.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

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
        stopped: why it went no further; empty if it did not have to stop.
    """

    classes: tuple[object, ...]
    codes: NDArray[np.intp]
    hit: NDArray[np.bool_]
    asked: int = 0
    stopped: str = ""

    @classmethod
    def nothing(cls, classes: tuple[object, ...], requests: int) -> Labels:
        """Return labels of requests of which none is answered."""
        return cls(classes, np.full(requests, _UNANSWERED, dtype=np.intp), np.zeros(requests, dtype=np.bool_))

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
        return np.equal(self.codes, too_close(len(self.classes)))

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
        """Return the requests that were charged, in order."""
        return np.flatnonzero(self.hit)

    @property
    def complete(self) -> bool:
        """Return whether all requests were asked."""
        return self.asked == len(self.codes)

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.codes)

    def __repr__(self) -> str:
        """Return what was published, in numbers."""
        hits = f"{len(self.hits):,} hit" + ("" if len(self.hits) == 1 else "s")
        return (
            f"<labels: {self.asked:,} of {len(self):,} requests asked, {len(self.rows):,} labelled,"
            f" {int(self.boundary.sum()):,} too close to call, {int(self.low.sum()):,} with low agreement, {hits}>"
        )


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
    answered = max(_first(batch) + len(batch) for batch in batches)
    if requests is not None and checks.positive_integer("requests", requests) < answered:
        raise InvalidParameter("requests", requests, f"at least {answered}, as many as were answered")
    return gathered(Labels.nothing(tuple(classes), answered if requests is None else requests), batches)


def gathered(labels: Labels, batches: Iterable[BatchEntry]) -> Labels:
    """Return labels with what batches hold."""
    for batch in batches:
        labels = labels.with_codes(_first(batch), batch.indices, np.array(batch.hit_places, dtype=np.intp))
    return labels


def _first(batch: BatchEntry) -> int:
    if not isinstance(batch.first.key, int):
        raise InvalidParameter("name", batch.first.algorithm, "the name of labels")
    return batch.first.key
