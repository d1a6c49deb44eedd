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
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeVar, final

import numpy as np

from targetcharge.accounting.targets import Between, Boundary, NotPrior, QTarget, Target
from targetcharge.audit.exact import pairs
from targetcharge.audit.exact.numbers import Published, law_of
from targetcharge.audit.exact.shown import (
    answers_yes,
    error_facts,
    looks,
    result_facts,
    selected_like,
    still_possible,
)
from targetcharge.errors import InvalidParameter, TargetChargeError
from targetcharge.ledger import Answer
from targetcharge.mechanisms import Algorithm
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Counted
from targetcharge.mechanisms.noise import Carried, CountNoise
from targetcharge.mechanisms.wrappers import agreement, twice

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from targetcharge.audit.exact.explore import Choices, MeterFacts, Tree
    from targetcharge.audit.exact.pairs import Chance, Law, Pair
    from targetcharge.mechanisms.algorithm import Support
    from targetcharge.mechanisms.noise import NoiseOf
    from targetcharge.sessions import Release, Session
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop

Result = TypeVar("Result")


@dataclass
class PendingRelease:
    """A release that waits for a revision.

    Attributes:
        release: the session's.
        law: the outcomes it may still have.
        told: their probabilities together.
    """

    release: Release
    law: Law
    told: tuple[Chance, Chance]


@final
class Player:
    """Asks a session, and keeps all that comes back: answers, refusals, failures, meters.

    Every call returns what the session returned, or None if it raised. Outcomes come from pairs of laws.

    Attributes:
        session: the real one.
        pending: releases that can be revised.
        refused: how many calls in a row raised an error.
    """

    def __init__(self, session: Session, choices: Choices, tree: Tree) -> None:
        """Play one run; `explore` does this."""
        self.session = session
        self.pending: list[PendingRelease] = []
        self.refused = 0
        self._events: list[tuple[object, ...]] = []
        self._choices, self._tree, self._node = choices, tree, 0
        self._drawn_before = 0
        self._laws: dict[int, tuple[Algorithm, Law]] = {}
        self._told = choices.weights  # of each offset and all that was told, pending releases left out

    # Algorithms.

    def draw(self, pair: Pair) -> object:
        """Draw an outcome, inside an algorithm of one's own; whether it is private is not checked."""
        return self._draw(pair, tuple(pair.items()))

    def _draw(self, law: Law, known_by: Hashable) -> object:
        place = tuple(self._choices.taken[self._drawn_before :])
        self._tree.note(self._node, ("draw", place), known_by)
        return self._choices.draw(law)

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

    def number(self, published: Published, counts: tuple[int, int], epsilon: float) -> Algorithm:
        """Return a noisy count that is declared monotone, on two datasets with these counts.

        It is drawn with natural noise, or with that of a session which has its own for such counts.

        Raises:
            InvalidParameter: if a unit would change it by more than its sensitivity, or lower it.
        """
        self._check_counts(published, counts)
        law = law_of(published, counts, CountNoise.natural(epsilon, published.sensitivity))

        def redrawn(noise_of: NoiseOf) -> Algorithm:
            noise = noise_of(published.sensitivity)

            def run(data: object, _entropy: object) -> object:
                given = published, counts, noise, data.offset if isinstance(data, Carried) else None
                self._with_law(algorithm, law_of(*given))
                return self._draw(law_of(*given), given)

            return Algorithm("", 0.0, 0.0, run, carries=noise.offset is not None)

        own = published.target
        algorithm = Algorithm(
            name=f"number of {counts[0]} or {counts[1]}",
            epsilon=epsilon,
            delta=0.0,
            run=lambda _data, _entropy: self._draw(law, (published, counts, epsilon)),
            targets=(*ANY_PRIOR, own) if isinstance(own, Between) else ANY_PRIOR,
            default_target=own,
            counted=Counted(redrawn, published.at_least, published.always),
        )
        return self._with_law(algorithm, law)

    def _check_counts(self, published: Published, counts: tuple[int, int]) -> None:
        first, second = counts
        if abs(first - second) > published.sensitivity:
            raise InvalidParameter("counts", counts, f"counts that differ by at most {published.sensitivity}")
        larger = int(first < second)
        if first != second and self.larger(larger) != larger:
            expected = "larger where those before were: what adds to one count lowers none"
            raise InvalidParameter("counts", counts, expected)

    def larger(self, dataset: int) -> int:
        """Return on which dataset the numbers of this game are larger, 0 or 1: on the one that was named first."""
        if self._tree.larger is None:
            self._tree.larger = dataset
        return self._tree.larger

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

    def _with_law(self, algorithm: Algorithm, law: Law) -> Algorithm:
        self._laws[id(algorithm)] = algorithm, law
        return algorithm

    def _law(self, algorithm: Algorithm) -> Law:
        return self._laws.get(id(algorithm), (algorithm, {}))[1]

    # Calls.

    def test(self, algorithm: Algorithm) -> Answer | None:
        """Call `Session.test`."""
        own = algorithm.default_target or NotPrior(prior=False)
        return self._ask("test", lambda: self.session.test(algorithm), algorithm, partial(answers_yes, own))

    def ask(self, algorithm: Algorithm, target: Target | None = None) -> Answer | None:
        """Call `Session.ask`."""
        return self._ask(f"ask {target!r}", lambda: self.session.ask(algorithm, target), algorithm, looks)

    def ask_prior(self, algorithm: Algorithm, prior: object) -> Answer | None:
        """Call `Session.ask_prior`."""
        return self._ask(f"prior {prior!r}", lambda: self.session.ask_prior(algorithm, prior), algorithm, looks)

    def _ask(
        self, label: str, call: Callable[[], Answer], algorithm: Algorithm, same: Callable[[object, object], bool]
    ) -> Answer | None:
        def event(result: object) -> Law:
            shown = result.outcome if isinstance(result, Answer) else result
            law = self._law(algorithm)
            return {outcome: chances for outcome, chances in law.items() if same(outcome, shown)}

        return self.call(call, event, label)

    def release(self, algorithm: Algorithm, when: When) -> Release | None:
        """Call `Session.release`; what is not released can be revised."""
        release, told = self._called(
            lambda: self.session.release(algorithm, when),
            lambda result: still_possible(self._law(algorithm), result, when),
            f"release {when!r}",
        )
        if release is None or release.released:
            self._told = _together(self._told, told)
        else:
            self.pending.append(PendingRelease(release, still_possible(self._law(algorithm), release, when), told))
        return release

    def revise(self, which: int, when: When) -> Release | None:
        """Call `Release.revise` of a pending one."""
        pending = self.pending[which]
        release, told = self._called(
            lambda: pending.release.revise(when),
            lambda result: still_possible(pending.law, result, when),
            f"revise {which} {when!r}",
        )
        if release is None:
            return None
        if release.released:
            del self.pending[which]
            self._told = _together(self._told, told)
        else:
            pending.law, pending.told = still_possible(pending.law, release, when), told
        return release

    def select(
        self, candidates: Sequence[Algorithm], k: int = 1, stop: Stop | None = None, threshold: float | None = None
    ) -> list[Answer] | None:
        """Call `Session.select`."""

        def event(result: object) -> Law:
            laws = [self._law(algorithm) for algorithm in candidates]
            return selected_like(result, laws, k, stop, threshold) if isinstance(result, list) else {}

        label = f"select {k} {threshold}"
        return self.call(lambda: self.session.select(candidates, k, stop, threshold), event, label)

    def call(
        self, call: Callable[[], Result], event: Callable[[object], Law] | None = None, label: Hashable = "call"
    ) -> Result | None:
        """Make any call and look at all there is to see.

        Args:
            call: calls the session.
            event: from what it returned (or the type of error it raised) to the part of a law that looks so.
            label: what is asked, to notice a game that asks something else after the same view.
        """
        result, told = self._called(call, event, label)
        self._told = _together(self._told, told)
        return result

    def _called(
        self, call: Callable[[], Result], event: Callable[[object], Law] | None, label: Hashable
    ) -> tuple[Result | None, tuple[Chance, Chance]]:
        """Return what a call returned, and the probabilities of what it showed."""
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
        known = self._tree.told
        if self._node not in known:
            looking_so = list(event(type(error) if error else result).values()) if event else []
            known[self._node] = reduce(_added, looking_so) if looking_so else (1.0, 1.0)
        return result, known[self._node]

    def _follow(self, label: Hashable) -> None:
        self._tree.note(self._node, "label", label)
        self._tree.check()

    # What was seen.

    @property
    def loss(self) -> float:
        """Return the privacy loss so far, of calls and algorithms made by the methods here.

        The offset is integrated out; what gives the dataset away is left out. It is rounded, so that games may
        compare it with multiples of an ε.
        """
        first, second = reduce(_together, (pending.told for pending in self.pending), self._told)
        return round(math.log(np.sum(first) / np.sum(second)), 12)

    def expected(self, law: Law) -> Pair:
        """Return a law with the offset integrated out, as it stands after what was told."""
        parts = (
            [
                float(np.sum(weight * chance) / np.sum(weight))
                for weight, chance in zip(self._told, chances, strict=True)
            ]
            for chances in law.values()
        )
        return {outcome: (first, second) for outcome, (first, second) in zip(law, parts, strict=True)}

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


def _added(one: tuple[Chance, Chance], other: tuple[Chance, Chance]) -> tuple[Chance, Chance]:
    """Return the probabilities of either."""
    return one[0] + other[0], one[1] + other[1]


def _together(one: tuple[Chance, Chance], other: tuple[Chance, Chance]) -> tuple[Chance, Chance]:
    """Return the probabilities of both; of the first alone, if on one of the datasets not both are possible."""
    first, second = one[0] * other[0], one[1] * other[1]
    return (first, second) if np.any(first) and np.any(second) else one
