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

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, final

from targetcharge.accounting.targets import Between, Boundary, NotPrior, QTarget, Target
from targetcharge.audit.exact import pairs
from targetcharge.audit.exact.chance import Strayed
from targetcharge.audit.exact.looks import error_facts, looks, part, says_yes, seen_of, selected
from targetcharge.errors import InvalidParameter, TargetChargeError
from targetcharge.ledger import Answer
from targetcharge.mechanisms import Algorithm
from targetcharge.mechanisms.algorithm import ANY_PRIOR
from targetcharge.mechanisms.wrappers import agreement, twice
from targetcharge.sessions import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from targetcharge.audit.exact.chance import Chance, Tree
    from targetcharge.audit.exact.pairs import Pair
    from targetcharge.audit.exact.views import Reading
    from targetcharge.mechanisms.algorithm import Support
    from targetcharge.sessions import Session
    from targetcharge.sessions.selection import Stop


@dataclass
class Waiting:
    """A release that waits for a revision.

    Attributes:
        release: the session's.
        law: the outcomes it may still have.
        told: what it told so far.
    """

    release: Release
    law: Pair
    told: float


Found = TypeVar("Found")


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

    def __init__(self, session: Session, chance: Chance, tree: Tree) -> None:
        """Play one run; `explore` does this."""
        self.session = session
        self.loss = 0.0
        self.pending: list[Waiting] = []
        self.refused = 0
        self._events: list[tuple[object, ...]] = []
        self._chance, self._tree, self._node = chance, tree, 0
        self._call = 0
        self._laws: dict[int, tuple[Algorithm, Pair]] = {}
        self._strayed = False

    # Algorithms.

    def draw(self, pair: Pair) -> object:
        """Draw an outcome, inside an algorithm of one's own; whether it is private is not checked."""
        place = tuple(self._chance.taken[self._call :])
        if not self._tree.follows(self._node, ("draw", place), tuple(pair.items())):
            self._strayed = True
        return self._chance.draw(pair)

    def algorithm(
        self,
        pair: Pair,
        epsilon: float,
        delta: float = 0.0,
        *,
        targets: tuple[Support, ...] = ANY_PRIOR,
        default_target: Target | None = None,
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
        return self._made(pair, epsilon, delta, targets, default_target)

    def between(self, band: Between, counts: tuple[int, int], epsilon: float) -> Algorithm:
        """Return a noisy count against a band, on two datasets with these counts."""
        pair = pairs.sides(band, counts, epsilon)
        return self._made(pair, epsilon, 0.0, (*ANY_PRIOR, band), band)

    def boundary(self, pair: Pair, epsilon: float) -> Algorithm:
        """Return the boundary wrapper around an algorithm that draws from a pair."""
        pairs.check_pair(pair, epsilon)
        return self._made(pairs.wrapped(pair), epsilon, 0.0, (Boundary(),), Boundary())

    def twice(self, pair: Pair, epsilon: float, delta: float = 0.0) -> Algorithm:
        """Return `tc.twice` of an algorithm that draws from a pair."""
        return self._know(twice(self.algorithm(pair, epsilon, delta)), pairs.both_runs(pair))

    def agreement(self, pair: Pair, epsilon: float, delta: float = 0.0) -> Algorithm:
        """Return `tc.agreement` of an algorithm that draws from a pair."""
        return self._know(agreement(self.algorithm(pair, epsilon, delta)), pairs.agreed(pair))

    def _made(
        self, pair: Pair, epsilon: float, delta: float, targets: tuple[Support, ...], own: Target | None
    ) -> Algorithm:
        made = Algorithm("finite", epsilon, delta, lambda _data, _entropy: self.draw(pair), targets, own)
        return self._know(made, pair)

    def _know(self, algorithm: Algorithm, law: Pair) -> Algorithm:
        self._laws[id(algorithm)] = algorithm, law
        return algorithm

    def _law(self, algorithm: Algorithm) -> Pair:
        return self._laws.get(id(algorithm), (algorithm, {}))[1]

    # Calls.

    def test(self, algorithm: Algorithm) -> Answer | None:
        """Call `Session.test`."""
        return self._ask("test", lambda: self.session.test(algorithm), algorithm, says_yes)

    def ask(self, algorithm: Algorithm, target: Target | None = None) -> Answer | None:
        """Call `Session.ask`."""
        return self._ask(f"ask {target!r}", lambda: self.session.ask(algorithm, target), algorithm, looks)

    def ask_prior(self, algorithm: Algorithm, prior: object) -> Answer | None:
        """Call `Session.ask_prior`."""
        return self._ask(f"prior {prior!r}", lambda: self.session.ask_prior(algorithm, prior), algorithm, looks)

    def _ask(
        self,
        label: str,
        call: Callable[[], Answer],
        algorithm: Algorithm,
        same: Callable[[object, object], bool],
    ) -> Answer | None:
        law = self._law(algorithm)

        def event(found: object) -> Pair:
            shown = found.outcome if isinstance(found, Answer) else found
            return {outcome: chances for outcome, chances in law.items() if same(outcome, shown)}

        return self.call(call, event, label)

    def release(self, algorithm: Algorithm, when: Collection[object]) -> Release | None:
        """Call `Session.release`; what is not released can be revised."""
        law = self._law(algorithm)
        before = self.loss
        found = self.call(
            lambda: self.session.release(algorithm, when), lambda seen: part(law, seen, when), f"release {when!r}"
        )
        if isinstance(found, Release) and not found.released:
            self.pending.append(Waiting(found, part(law, found, when), self.loss - before))
        return found if isinstance(found, Release) else None

    def revise(self, which: int, when: Collection[object]) -> Release | None:
        """Call `Release.revise` of a pending one."""
        waiting = self.pending[which]
        self.loss -= waiting.told
        before = self.loss
        found = self.call(
            lambda: waiting.release.revise(when),
            lambda seen: part(waiting.law, seen, when),
            f"revise {which} {when!r}",
        )
        if not isinstance(found, Release):
            self.loss = before + waiting.told
            return None
        if found.released:
            del self.pending[which]
        else:
            waiting.law, waiting.told = part(waiting.law, found, when), self.loss - before
        return found

    def select(
        self, candidates: Sequence[Algorithm], k: int = 1, stop: Stop | None = None, threshold: float | None = None
    ) -> list[Answer] | None:
        """Call `Session.select`."""
        laws = [self._law(algorithm) for algorithm in candidates]

        def event(found: object) -> Pair:
            return selected(laws, k, stop, threshold, found) if isinstance(found, list) else {}

        label = f"select {k} {threshold}"
        return self.call(lambda: self.session.select(candidates, k, stop, threshold), event, label)

    def call(
        self, call: Callable[[], Found], event: Callable[[object], Pair] | None = None, label: Hashable = "call"
    ) -> Found | None:
        """Make any call and look at all there is to see.

        Args:
            call: calls the session.
            event: from what it returned (or the type of error it raised) to the part of a pair that looks so.
            label: what is asked, to notice a game that asks something else after the same view.
        """
        self._call = len(self._chance.taken)
        self._follow(label)
        error: BaseException | None = None
        found: Found | None = None
        try:
            found = call()
        except (TargetChargeError, KeyboardInterrupt, SystemExit) as caught:
            error = caught
        self._follow(label)
        self.refused = self.refused + 1 if error else 0
        self._see(*(error_facts(error) if error else seen_of(found)))
        if event is not None:
            self._learn(event, type(error) if error else found)
        return found

    def _see(self, *facts: object) -> None:
        self._events.append((*facts, *self.meters()))
        self._node = self._tree.after(self._node, self._events[-1])

    def _learn(self, event: Callable[[object], Pair], found: object) -> None:
        known = self._tree.losses
        if self._node not in known:
            chances = [sum(p) for p in zip(*event(found).values(), strict=True)]
            known[self._node] = math.log(chances[0] / chances[1]) if chances and min(chances) > 0 else 0.0
        self.loss += known[self._node]

    # What was seen.

    @property
    def view(self) -> tuple[tuple[object, ...], ...]:
        """Return everything seen so far."""
        return tuple(self._events)

    @property
    def hits_left(self) -> int:
        """Return the hits that are left, on the meter that has the most."""
        return max(meter.hits_left for meter in self.session.meters)

    def meters(self) -> tuple[Reading, ...]:
        """Return what the meters show."""
        return tuple((meter.totals, meter.hits_left, meter.odometer()) for meter in self.session.meters)

    def end(self) -> None:
        """Note that the game ends after what was seen."""
        self._follow("end")

    def _follow(self, label: Hashable) -> None:
        self._strayed |= not self._tree.follows(self._node, "label", label)
        if self._strayed:
            raise Strayed
