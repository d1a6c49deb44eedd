"""The player: what an analyst has in a game. It asks a real session, and keeps all that comes back.

>>> from targetcharge.audit.exact import explore, opener, response
>>> def game(player):
...     pair = response(1.0, "same", "changed")
...     while player.loss < 2 and not player.refused:
...         player.ask_prior(player.algorithm(pair, 1.0), "same")
>>> len(explore(opener(1.0, hits=1), game))
3
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, final

from targetcharge.accounting.targets import Between, Boundary, NotPrior, QTarget, Target
from targetcharge.audit.exact import pairs
from targetcharge.audit.exact.pairs import value_of
from targetcharge.errors import ComputationFailed, InvalidParameter, TargetChargeError
from targetcharge.ledger import Answer
from targetcharge.mechanisms import Algorithm
from targetcharge.mechanisms.algorithm import ANY_PRIOR
from targetcharge.mechanisms.wrappers import agreement, twice
from targetcharge.sessions import Release
from targetcharge.sessions.select import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from targetcharge.audit.exact.explore import Choices, MeterFacts, Tree
    from targetcharge.audit.exact.pairs import Pair
    from targetcharge.mechanisms.algorithm import Support
    from targetcharge.sessions import Session
    from targetcharge.sessions.select import Stop

_MOST_JOINT: Final = 1024
"""Selections with more joint outcomes leave the loss as it was."""

Result = TypeVar("Result")


@dataclass
class PendingRelease:
    """A release that waits for a revision.

    Attributes:
        release: the session's.
        law: the outcomes it may still have.
        loss: the part of the player's loss that it told so far.
    """

    release: Release
    law: Pair
    loss: float


@final
class Player:
    """Asks a session, and keeps all that comes back: answers, refusals, failures, meters.

    Every call returns what the session returned, or None if it raised. Outcomes come from pairs of laws.

    Attributes:
        session: the real one.
        loss: the privacy loss so far, of calls made by the methods here on algorithms made by the methods here.
        pending: releases that can be revised.
        refused: how many calls in a row raised an error.
    """

    def __init__(self, session: Session, choices: Choices, tree: Tree) -> None:
        """Play one run; `explore` does this."""
        self.session = session
        self.loss = 0.0
        self.pending: list[PendingRelease] = []
        self.refused = 0
        self._events: list[tuple[object, ...]] = []
        self._choices, self._tree, self._node = choices, tree, 0
        self._drawn_before = 0
        self._laws: dict[int, tuple[Algorithm, Pair]] = {}

    # Algorithms.

    def draw(self, pair: Pair) -> object:
        """Draw an outcome, inside an algorithm of one's own; whether it is private is not checked."""
        place = tuple(self._choices.taken[self._drawn_before :])
        self._tree.note(self._node, ("draw", place), tuple(pair.items()))
        return self._choices.draw(pair)

    def algorithm(
        self, pair: Pair, epsilon: float, delta: float = 0.0, *, targets: tuple[Support, ...] = ANY_PRIOR
    ) -> Algorithm:
        """Return an algorithm that draws from a pair.

        Raises:
            InvalidParameter: if the pair is not (ε, δ)-indistinguishable, or a q-target's q is not its own.
        """
        pairs.check_pair(pair, epsilon, delta)
        for target in targets:
            if isinstance(target, QTarget):
                pairs.check_q(pair, epsilon, target)
            elif target not in ANY_PRIOR and not isinstance(target, NotPrior):
                raise InvalidParameter(
                    "targets", target, "NotPrior, Everything or a QTarget; else use `between`, …"
                )
        return self._drawing(pair, epsilon, delta, targets)

    def between(self, band: Between, counts: tuple[int, int], epsilon: float) -> Algorithm:
        """Return a noisy count against a band, on two datasets with these counts."""
        return self._drawing(pairs.sides(band, counts, epsilon), epsilon, 0.0, (*ANY_PRIOR, band), band)

    def boundary(self, pair: Pair, epsilon: float) -> Algorithm:
        """Return the boundary wrapper around an algorithm that draws from a pair."""
        pairs.check_pair(pair, epsilon)
        return self._drawing(pairs.wrapped(pair), epsilon, 0.0, (Boundary(),), Boundary())

    def twice(self, pair: Pair, epsilon: float, delta: float = 0.0) -> Algorithm:
        """Return `tc.twice` of an algorithm that draws from a pair."""
        return self._with_law(twice(self.algorithm(pair, epsilon, delta)), pairs.both_runs(pair))

    def agreement(self, pair: Pair, epsilon: float) -> Algorithm:
        """Return `tc.agreement` of an algorithm that draws from a pair."""
        return self._with_law(agreement(self.algorithm(pair, epsilon)), pairs.agreed(pair))

    def _drawing(
        self, pair: Pair, epsilon: float, delta: float, targets: tuple[Support, ...], own: Target | None = None
    ) -> Algorithm:
        run = Algorithm("finite", epsilon, delta, lambda _data, _entropy: self.draw(pair), targets, own)
        return self._with_law(run, pair)

    def _with_law(self, algorithm: Algorithm, law: Pair) -> Algorithm:
        self._laws[id(algorithm)] = algorithm, law
        return algorithm

    def _law(self, algorithm: Algorithm) -> Pair:
        return self._laws.get(id(algorithm), (algorithm, {}))[1]

    # Calls.

    def test(self, algorithm: Algorithm) -> Answer | None:
        """Call `Session.test`."""
        return self._ask("test", lambda: self.session.test(algorithm), algorithm, answers_yes)

    def ask(self, algorithm: Algorithm, target: Target | None = None) -> Answer | None:
        """Call `Session.ask`."""
        return self._ask(f"ask {target!r}", lambda: self.session.ask(algorithm, target), algorithm, looks)

    def ask_prior(self, algorithm: Algorithm, prior: object) -> Answer | None:
        """Call `Session.ask_prior`."""
        return self._ask(f"prior {prior!r}", lambda: self.session.ask_prior(algorithm, prior), algorithm, looks)

    def _ask(
        self, label: str, call: Callable[[], Answer], algorithm: Algorithm, same: Callable[[object, object], bool]
    ) -> Answer | None:
        law = self._law(algorithm)

        def event(result: object) -> Pair:
            shown = result.outcome if isinstance(result, Answer) else result
            return {outcome: chances for outcome, chances in law.items() if same(outcome, shown)}

        return self.call(call, event, label)

    def release(self, algorithm: Algorithm, when: Collection[object]) -> Release | None:
        """Call `Session.release`; what is not released can be revised."""
        law, before = self._law(algorithm), self.loss
        release = self.call(
            lambda: self.session.release(algorithm, when),
            lambda result: still_possible(law, result, when),
            f"release {when!r}",
        )
        if release is not None and not release.released:
            self.pending.append(PendingRelease(release, still_possible(law, release, when), self.loss - before))
        return release

    def revise(self, which: int, when: Collection[object]) -> Release | None:
        """Call `Release.revise` of a pending one."""
        pending = self.pending[which]
        self.loss -= pending.loss
        before = self.loss
        release = self.call(
            lambda: pending.release.revise(when),
            lambda result: still_possible(pending.law, result, when),
            f"revise {which} {when!r}",
        )
        if release is None:
            self.loss = before + pending.loss
        elif release.released:
            del self.pending[which]
        else:
            pending.law, pending.loss = still_possible(pending.law, release, when), self.loss - before
        return release

    def select(
        self, candidates: Sequence[Algorithm], k: int = 1, stop: Stop | None = None, threshold: float | None = None
    ) -> list[Answer] | None:
        """Call `Session.select`."""
        laws = [self._law(algorithm) for algorithm in candidates]

        def event(result: object) -> Pair:
            return selected_like(result, laws, k, stop, threshold) if isinstance(result, list) else {}

        label = f"select {k} {threshold}"
        return self.call(lambda: self.session.select(candidates, k, stop, threshold), event, label)

    def call(
        self, call: Callable[[], Result], event: Callable[[object], Pair] | None = None, label: Hashable = "call"
    ) -> Result | None:
        """Make any call and look at all there is to see.

        Args:
            call: calls the session.
            event: from what it returned (or the type of error it raised) to the part of a pair that looks so.
            label: what is asked, to notice a game that asks something else after the same view.
        """
        self._drawn_before = len(self._choices.taken)
        self._follow(label)
        error: BaseException | None = None
        result: Result | None = None
        try:
            result = call()
        except (TargetChargeError, KeyboardInterrupt, SystemExit) as caught:
            error = caught
        self._follow(label)
        self.refused = self.refused + 1 if error else 0
        self._events.append((*(error_facts(error) if error else result_facts(result)), *self.meters()))
        self._node = self._tree.after(self._node, self._events[-1])
        if event is not None:
            self._add_loss(event, type(error) if error else result)
        return result

    def _add_loss(self, event: Callable[[object], Pair], result: object) -> None:
        known = self._tree.losses
        if self._node not in known:
            chances = [sum(side) for side in zip(*event(result).values(), strict=True)]
            known[self._node] = math.log(chances[0] / chances[1]) if chances and min(chances) > 0 else 0.0
        self.loss += known[self._node]

    def _follow(self, label: Hashable) -> None:
        self._tree.note(self._node, "label", label)
        self._tree.check()

    # What was seen.

    @property
    def view(self) -> tuple[tuple[object, ...], ...]:
        """Return everything seen so far."""
        return tuple(self._events)

    @property
    def hits_left(self) -> int:
        """Return the hits that are left, on the meter that has the most."""
        return max(meter.hits_left for meter in self.session.meters)

    def meters(self) -> tuple[MeterFacts, ...]:
        """Return what the meters show."""
        return tuple((meter.totals, meter.hits_left, meter.odometer()) for meter in self.session.meters)

    def end(self) -> None:
        """Note that the game ends after what was seen."""
        self._follow("end")


# What an analyst sees of answers and errors.


def facts_of(answer: Answer) -> tuple[object, ...]:
    """Return what an answer shows; outcomes that look different are different."""
    return (
        repr(answer.outcome), answer.hit, answer.price, answer.grains, answer.seq, answer.candidate,
        answer.release, answer.algorithm, answer.targets, answer.call,
    )  # fmt: skip


def error_facts(error: BaseException) -> tuple[object, ...]:
    """Return what an error shows: its type and text, and what it drags along."""
    return type(error).__name__, str(error), repr(error.args), repr(error.__cause__), repr(error.__context__)


def result_facts(result: object) -> tuple[object, ...]:
    """Return what a call's result shows."""
    match result:
        case Answer():
            return facts_of(result)
        case Release():
            return result.released, repr(result.outcome), result.price, result.seq
        case list() | tuple():
            return tuple(result_facts(answer) for answer in result)
        case _:
            return (repr(result),)


# Which outcomes look so.


def looks(outcome: object, shown: object) -> bool:
    """Return whether an outcome is published as this, or raises this type of error.

    Example:
        >>> looks(pairs.Twin(True), 1), looks(0, 1), looks(ValueError, ComputationFailed)
        (True, False, True)
    """
    if isinstance(outcome, type) and isinstance(shown, type):
        return shown is (outcome if outcome in (KeyboardInterrupt, SystemExit) else ComputationFailed)
    if isinstance(outcome, type) or isinstance(shown, type):
        return False
    return bool(value_of(outcome) == shown)


def answers_yes(outcome: object, shown: object) -> bool:
    """Return whether a test answers an outcome with this."""
    if isinstance(outcome, type) or isinstance(shown, type):
        return looks(outcome, shown)
    return bool(value_of(outcome)) is shown


def still_possible(law: Pair, result: object, when: Collection[object]) -> Pair:
    """Return the outcomes of a release that are possible after a result: a release, or a type of error."""
    if isinstance(result, Release) and not result.released:
        return {
            outcome: chances
            for outcome, chances in law.items()
            if not isinstance(outcome, type) and value_of(outcome) not in when
        }
    shown = result.outcome if isinstance(result, Release) else result
    return {outcome: chances for outcome, chances in law.items() if looks(outcome, shown)}


def selected_like(
    answers: Sequence[object], laws: Sequence[Pair], k: int, stop: Stop | None, threshold: float | None
) -> Pair:
    """Return the joint outcomes of the candidates that would have been published like these answers."""
    if math.prod(map(len, laws)) > _MOST_JOINT:
        return {}
    shown = [repr((answer.candidate, answer.outcome)) for answer in answers if isinstance(answer, Answer)]
    same: dict[object, tuple[float, float]] = {}
    for joint in itertools.product(*(law.items() for law in laws)):
        outcomes = [value_of(outcome) for outcome, _ in joint]
        if any(isinstance(outcome, type) for outcome in outcomes):
            continue
        released, _ = sweep(outcomes, k, threshold, stop, partial(_answer, outcomes))
        if [repr((answer.candidate, answer.outcome)) for answer in released] == shown:
            first, second = (math.prod(chances[side] for _, chances in joint) for side in (0, 1))
            same[len(same)] = first, second
    return same


def _answer(outcomes: list[object], candidate: int) -> Answer:
    return Answer(outcomes[candidate], hit=True, price=0.0, seq=0, candidate=candidate)
