"""What is audited: an algorithm or any function of the data, seen from outside; its claim; its inputs.

>>> from targetcharge.mechanisms import noisy_count
>>> subject = Subject.of(noisy_count(len, epsilon=0.5))
>>> subject.name, subject.claim
('noisy_count(len)', Budget(epsilon=0.5, delta=0.0))
>>> check_neighbours([1, 2, 3], [1, 3])
>>> check_neighbours([1, 2, 3], [4, 3])
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: data1 is ...: it lacks 2 and has 1 more; with relation 'any' you vouch...
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.accounting.budget import Budget
from targetcharge.accounting.targets import Everything
from targetcharge.audit.sampling.published import CannotCountError, Published, Raised, plain_answer, published_of
from targetcharge.errors import ComputationFailed, InvalidParameter, Refused
from targetcharge.mechanisms import Algorithm
from targetcharge.mechanisms.algorithm import function_name, takes_entropy
from targetcharge.sessions import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy

_EXPECTED: Final = "an algorithm, or a function of the data that returns what it publishes or the session that did"
_GIVEN: Final = "given, an ε and a δ: only an algorithm that is not wrapped and a session know theirs"
INTERACTION: Final = (
    "A session's answers before an error are lost to the audit: catch it and return the session, or use"
    " targetcharge.audit.interaction(opening, script), which keeps them"
)
_RELATIONS: Final = {"add-remove": ({(0, 1), (1, 0)}, "added or removed"), "replace-one": ({(1, 1)}, "replaced")}
"""How many elements the second of two neighbours may lack and have more; in words."""


@final
@dataclass(frozen=True)
class Subject:
    """What is audited.

    Attributes:
        name: in words.
        draw: one run: from data and entropy to what comes out.
        claim: what it promises, if it says so itself.
    """

    name: str
    draw: Callable[[object, Entropy], object]
    claim: Budget | None = None

    @classmethod
    def of(cls, run: object) -> Subject:
        """Return the subject that an algorithm or a function is."""
        if isinstance(run, Algorithm):
            whole = Everything in run.targets  # else its ε is that of one of several runs inside
            return cls(run.name, _published_by(run), Budget(run.epsilon, run.delta) if whole else None)
        if not callable(run) or inspect.isclass(run):
            raise InvalidParameter("run", run, _EXPECTED)
        if takes_entropy(run):
            return cls(function_name(run), run)
        function: Callable[[object], object] = run
        return cls(function_name(run), lambda data, _: function(data))

    def promised(self, claim: Budget | None, data: tuple[object, object], entropy: Entropy) -> Budget:
        """Return the claim to audit: the one given, its own, or that of the session that it returns."""
        if claim is not None and not isinstance(claim, Budget):
            raise InvalidParameter("claim", claim, "a tc.Budget(epsilon, delta)")
        known = claim or self.claim
        if known:
            return known
        first, second = (self._guarantee(rows, entropy) for rows in data)
        if first is None or first != second:
            raise InvalidParameter("claim", claim, _GIVEN)
        return first

    def _guarantee(self, data: object, entropy: Entropy) -> Budget | None:
        try:
            session = self.draw(data, entropy)
        except KeyboardInterrupt:  # the user's
            raise
        except (Refused, ComputationFailed) as error:
            expected = f"{_GIVEN}, and a run of this one ended in {type(error).__name__}. {INTERACTION}"
            raise InvalidParameter("claim", None, expected) from None
        except BaseException as error:  # noqa: BLE001 - whatever it is, the caller learns that no claim was read
            expected = f"{_GIVEN}, and a run of this one ended: {Raised.of(error)!r}"
            raise InvalidParameter("claim", None, expected) from None
        if not isinstance(session, Session):
            return None
        with session:
            return session.meter.guarantee

    def run(self, data: object, entropy: Entropy) -> Published:
        """Return what one run publishes; an error is an outcome too, and so is leaving by sys.exit.

        Raises:
            CannotCountError: if it cannot be counted.
        """
        try:
            outcome = self.draw(data, entropy)
        except KeyboardInterrupt:  # the user's
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises, who asked can see it
            return published_of(Raised.of(error))
        return published_of(outcome)


def _published_by(algorithm: Algorithm) -> Callable[[object, Entropy], object]:
    target = algorithm.default_target

    def draw(data: object, entropy: Entropy) -> object:
        outcome = algorithm.run(data, entropy)
        return algorithm.publish(outcome, hit=target is not None and outcome in target)

    return draw


def interaction(opening: Callable[[Any], Session], script: Callable[[Session], object]) -> Callable[[Any], object]:
    """Return the function of the data that opens a session, plays a script and publishes the transcript.

    A refusal or a failed computation ends the script, and that is part of what is published.

    Args:
        opening: opens a session on the data; it is called once for every run.
        script: asks questions; it sees the session and nothing of the data.

    Example:
        >>> import targetcharge as tc
        >>> count = tc.mechanisms.above_threshold(len, threshold=0, epsilon=0.1)
        >>> budget = tc.Budget(3.0, 1e-6)
        >>> run = interaction(lambda rows: tc.Session(rows, budget, 0.1), lambda session: session.test(count))
        >>> run([1] * 1000)
        (((True, True, None, 'above_threshold(len)'),), 'ended')
    """

    def play(data: object) -> object:
        with opening(data) as session:
            ended = "ended"
            try:
                script(session)
            except (Refused, ComputationFailed) as error:
                ended = type(error).__name__
            return tuple(map(plain_answer, session.transcript)), ended

    return play


def check_neighbours(data0: object, data1: object, relation: str = "add-remove") -> None:
    """Refuse inputs that are not neighbours: a claim is about such pairs, and about no others.

    Args:
        data0: a list, tuple, set or dict of units; anything if the relation is "any".
        data1: the other one.
        relation: "add-remove" (one unit more or fewer), "replace-one", or "any": the caller vouches.

    Raises:
        InvalidParameter: if they are not; it says how they differ.
    """
    checks.choice(relation, "relation", (*_RELATIONS, "any"))
    if relation == "any":
        return
    allowed, change = _RELATIONS[relation]
    vouch = "with relation 'any' you vouch for others"
    units0, units1 = _units("data0", data0, vouch), _units("data1", data1, vouch)
    lacks, more = (units0 - units1).total(), (units1 - units0).total()
    if (lacks, more) not in allowed:
        how = f"it lacks {lacks} and has {more} more" if lacks or more else "both are the same"
        raise InvalidParameter("data1", data1, f"data0 with one element {change}: {how}; {vouch}")


def _units(name: str, data: object, vouch: str) -> Counter[Published]:
    match data:
        case list() | tuple() | AbstractSet():
            units: list[object] = list(data)
        case Mapping():
            units = list(data.items())
        case _:
            raise InvalidParameter(name, data, f"a list, tuple, set or dict of units; {vouch}")
    try:
        return Counter(published_of(unit) for unit in units)
    except CannotCountError as error:
        expected = f"of units that can be compared, and {error} cannot; {vouch}"
        raise InvalidParameter(name, data, expected) from None
