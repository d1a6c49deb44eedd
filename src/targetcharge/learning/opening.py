"""Opening: who pays for labels: a session that was given, or one that is opened for a budget.

>>> payer = Payer.of(None, Budget(3.157, 1e-5), None, MEMORY)
>>> epsilon = payer.epsilon_of(Boundary(2), teachers=250)
>>> with payer.opened(Boundary(2), epsilon) as session:
...     epsilon, session.meter
(0.08, <renyi meter, 0 hits, 30 left>)
>>> from targetcharge.accounting.targets import NotPrior
>>> round(Payer.of(None, Budget(1.0, 1e-5), None, MEMORY).epsilon_of(NotPrior(None), 250), 3)  # it covers 10 hits
0.041
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from targetcharge.accounting.budget import Budget, check_budget
from targetcharge.accounting.meter.choosing import ExactSession, RenyiSession, rates
from targetcharge.accounting.targets import Boundary
from targetcharge.errors import InvalidParameter
from targetcharge.learning.votes import CAUTION
from targetcharge.sessions import Session
from targetcharge.sessions.opening import HITS, MEMORY

if TYPE_CHECKING:
    import os

    from targetcharge.accounting.targets import Target

_SHARPNESS: Final = 20.0
"""ε times the number of teachers where labels are best on real votes (docs/howto/labels.md#evidence)."""


@final
@dataclass(frozen=True)
class Payer:
    """A session, or a budget and where it is kept.

    Attributes:
        payer: one of the two.
        epsilon: of one label; None to choose it for a budget.
        ledger: of a budget.
    """

    payer: Session | Budget
    epsilon: float | None
    ledger: str | os.PathLike[str]

    @classmethod
    def of(
        cls, session: Session | None, budget: Budget | None, epsilon: float | None, ledger: str | os.PathLike[str]
    ) -> Payer:
        """Return who pays; refuse nobody, two at once, and a session's labels without an ε of their own."""
        if session is None:
            if budget is None:
                raise InvalidParameter("budget", None, "given, or a session that pays")
            return cls(check_budget(budget), epsilon, ledger)
        if not isinstance(session, Session):
            raise InvalidParameter("session", session, "a tc.Session")
        if budget is not None:
            raise InvalidParameter("budget", budget, "left out where a session pays: it has one")
        if ledger != MEMORY:
            raise InvalidParameter("ledger", ledger, "left out where a session pays: it has one")
        if epsilon is None:
            raise InvalidParameter("epsilon", None, "given where a session pays: the ε of one label")
        return cls(session, epsilon, ledger)

    def caution(self, caution: float | None) -> float:
        """Return the caution of labels: the session's, if it was opened for one; refuse any other."""
        targets = self.payer.targets if isinstance(self.payer, Session) else ()
        declared = [target.caution for target in targets if isinstance(target, Boundary)]
        if caution is None:
            return declared[0] if declared else CAUTION
        if declared and caution not in declared:
            expected = f"{declared[0]:g}, as in the targets that the session was opened for, or left out"
            raise InvalidParameter("caution", caution, expected)
        return caution

    def epsilon_of(self, target: Target, teachers: int) -> float:
        """Return the ε of one label: for a budget the best for so many teachers, or less if it covers 10 hits."""
        if self.epsilon is not None or isinstance(self.payer, Session):
            return self.epsilon  # type: ignore[return-value]  # a session's is given
        accounted = (
            RenyiSession(self.payer, target)
            if isinstance(target, Boundary)
            else ExactSession(self.payer, (target,))
        )
        best = min(_SHARPNESS / teachers, target.max_epsilon)
        with suppress(InvalidParameter):  # it covers none
            if accounted.hits(best) >= HITS:
                return best
        return min(best, rates(accounted, hits=HITS).query_epsilon)  # a search, which takes seconds

    def opened(self, target: Target, epsilon: float) -> AbstractContextManager[Session]:
        """Return the session; one that is opened here is closed at the end of the block."""
        if isinstance(self.payer, Session):
            return nullcontext(self.payer)
        meter = "renyi" if isinstance(target, Boundary) else "exact"
        try:
            return Session(None, self.payer, epsilon, meter=meter, targets=[target], ledger=self.ledger)
        except InvalidParameter as error:
            if error.name != "query_epsilon":
                raise
            raise InvalidParameter("epsilon", epsilon, error.expected) from None
