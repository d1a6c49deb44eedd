"""Questions: an algorithm and its target, priced; all that is decided before the data is touched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from targetcharge.accounting.targets import NotPrior, Target
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.ledger import Answer, Most
from targetcharge.mechanisms import Algorithm, Series
from targetcharge.numerics.rounding import up
from targetcharge.outcomes import PUBLISHABLE, UnpublishableError, publishable
from targetcharge.sessions.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.accounting.meter import Meter
    from targetcharge.ledger import Pending
    from targetcharge.randomness import Entropy

_REMEMBERED: Final = 1024

_MOST_DELTA: Final = math.nextafter(1.0, 0.0)

_RELEASE: Final = NotPrior(prior=None)
"""What a release, a revision and a released candidate are priced as."""


def no_snapshot() -> int:
    """Return 0: plain data has no snapshots."""
    return 0


@final
@dataclass(frozen=True)
class Question:
    """What will be run, which outcomes cost, and how much.

    Attributes:
        algorithm: what to run.
        targets: one for each meter.
        most: the most it could charge.
        text: the targets, in words.
        nothing: what a miss charges.
        says_yes: whether only "hit or not" is published.
        snapshot: tells which snapshot of the data it is asked on; called when it is drawn.
    """

    algorithm: Algorithm
    targets: tuple[Target, ...]
    most: Most
    text: str
    nothing: tuple[int, ...]
    says_yes: bool = False
    snapshot: Callable[[], int] = no_snapshot

    def judge(self, outcome: object) -> tuple[object, tuple[bool, ...]]:
        """Return what is published of an outcome, and which meters it hits.

        A free outcome is published in its one canonical form: as the prior itself, not as something equal to it.
        """
        for target in self.targets:
            if type(target) is NotPrior and outcome == target.prior:
                outcome = target.prior
                break
        hits = tuple([outcome in target for target in self.targets])
        if self.says_yes:
            return hits[0], hits
        return self.algorithm.publish(outcome, hit=any(hits)), hits

    def draw(self, data: object, entropy: Entropy) -> object:
        """Run the algorithm: the data is touched here, and nowhere else."""
        return publishable(self.algorithm.run(data, entropy))

    def answer(
        self,
        published: object,
        hits: tuple[bool, ...],
        seq: int,
        received: float,
        *,
        candidate: int | None = None,
        release: int | None = None,
    ) -> Answer:
        """Return the answer, with what it charges."""
        price, units = 0.0, self.nothing
        hit = True in hits
        if hit:
            paid = [
                (each.value, each.units) if on else (0.0, 0)
                for each, on in zip(self.most.prices, hits, strict=True)
            ]
            price, units = max(value for value, _ in paid), tuple(unit for _, unit in paid)
        by, text, accuracy = self.algorithm, self.text, self.algorithm.accuracy
        scale, interval = (0.0, None) if accuracy is None else (accuracy.scale, accuracy.interval(published))
        return Answer(
            published,
            hit,
            price,
            seq,
            by.name,
            text,
            by.epsilon,
            by.delta,
            received,
            units,
            candidate,
            release,
            scale=scale,
            interval=interval,
            prior=by.prior,
            question=by.question,
            snapshot=self.snapshot(),
        )


@final
class Questions:
    """Makes the questions of one session. The last few are remembered: most are asked again and again."""

    def __init__(
        self,
        alternatives: tuple[Target, ...],
        meters: tuple[Meter, ...],
        snapshot: Callable[[], int] = no_snapshot,
    ) -> None:
        """Ask on these meters."""
        self._snapshot = snapshot
        self._alternatives = tuple(canonical(target) for target in alternatives)
        self._meters = meters
        self._memory: dict[tuple[str, int, int], tuple[Question, Target | None]] = {}

    def ask(self, algorithm: Algorithm, target: Target | None) -> Question:
        """Return the question of `Session.ask`."""
        return self._known("ask", algorithm, target) or self._remember("ask", self._ask(algorithm, target), target)

    def _ask(self, algorithm: Algorithm, target: Target | None) -> Question:
        check_algorithm(algorithm)
        if self._alternatives:
            if target is not None:
                msg = "this session has alternatives, which are its targets: ask(algorithm), without a target"
                raise NotAllowed(msg)
            return self._question(algorithm, *self._alternatives)
        chosen = algorithm.default_target if target is None else target
        if not isinstance(chosen, Target):
            expected = "a target, such as tc.NotPrior(prior) or tc.Everything()"
            raise InvalidParameter("target", chosen, f"{expected}: {algorithm.name} has none of its own")
        return self._question(algorithm, canonical(chosen))

    def test(self, algorithm: Algorithm) -> Question:
        """Return the question of `Session.test`: free is False, or the algorithm's own "nothing to say"."""
        return self._known("test", algorithm) or self._remember("test", self._test(algorithm))

    def _test(self, algorithm: Algorithm) -> Question:
        own = check_algorithm(algorithm).default_target
        if own is not None and not isinstance(own, NotPrior):
            msg = f"{algorithm.name} does not answer yes or no: ask it with {words(own)}"
            raise NotAllowed(msg)
        free = own if isinstance(own, NotPrior) else NotPrior(prior=False)
        return replace(self._alone(algorithm, free), says_yes=True)

    def prior(self, algorithm: Algorithm, prior: object) -> Question:
        """Return the question of `Session.ask_prior`."""
        return self._alone(algorithm, canonical(NotPrior(prior)))

    def release(self, algorithm: Algorithm) -> Question:
        """Return the question of `Session.release`: nothing is free but silence."""
        return self._alone(algorithm, _RELEASE, "release")

    def candidate(self, algorithm: Algorithm) -> Question:
        """Return the question of one candidate of `Session.select`."""
        return self._known("select", algorithm) or self._remember(
            "select", self._alone(algorithm, _RELEASE, "select")
        )

    def battery(self, test: Algorithm) -> Question:
        """Return the question of one test of `Session.ask_each`."""
        return self._known("battery", test) or self._remember("battery", self._alone(test, _RELEASE))

    def series(self, series: Series) -> Question:
        """Return the question of every request of `Session.ask_series`."""
        if not isinstance(series, Series):
            raise InvalidParameter("series", series, "made by tc.learning")
        algorithm = series.algorithm
        target = algorithm.default_target
        if target is None:
            raise InvalidParameter("series", series, "one whose algorithm names its target")
        return self._alone(algorithm, target, series.text)

    def revision(self, kept: Pending) -> Question:
        """Return the question of a revision: priced as the release was; its δ is spent already."""
        return self._alone(Algorithm(kept.algorithm, kept.epsilon, 0.0, _never_again), _RELEASE, "revise")

    def _known(self, kind: str, algorithm: Algorithm, target: Target | None = None) -> Question | None:
        # By identity: quick, and safe because what is remembered keeps its parts alive.
        found = self._memory.get((kind, id(algorithm), id(target)))
        return found and found[0]

    def _remember(self, kind: str, asked: Question, target: Target | None = None) -> Question:
        if target is None or _lasting(target, asked):
            if len(self._memory) >= _REMEMBERED:
                self._memory.clear()
            self._memory[kind, id(asked.algorithm), id(target)] = asked, target
        return asked

    def _alone(self, algorithm: Algorithm, target: Target, text: str = "") -> Question:
        if self._alternatives:
            msg = (
                "this session has alternatives: it answers ask(algorithm) only; open another session for the rest"
            )
            raise NotAllowed(msg)
        return self._question(algorithm, target, text=text)

    def _question(self, algorithm: Algorithm, *targets: Target, text: str = "") -> Question:
        for target in targets:
            if not check_algorithm(algorithm).supports(target):
                msg = f"{algorithm.name} does not support {words(target)}: ask with {_supported(algorithm)}"
                raise NotAllowed(msg)
        pairs = zip(targets, self._meters, strict=True)
        prices = tuple(meter.quote(target, algorithm.epsilon) for target, meter in pairs)
        told = text or " or ".join(words(target) for target in targets)
        most = Most(prices, 1, algorithm.delta)
        return Question(algorithm, targets, most, told, (0,) * len(prices), snapshot=self._snapshot)


def most_of_all(asked: Sequence[Question], count: int) -> Most:
    """Return the most that `count` hits among several questions could charge, and the δ of all of them."""
    dearest = max((question.most.prices for question in asked), key=lambda prices: prices[0].units)
    return Most(dearest, count, min(_MOST_DELTA, up(math.fsum(question.algorithm.delta for question in asked))))


def check_algorithm(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm; refuse anything else."""
    if not isinstance(algorithm, Algorithm):
        expected = "made by tc.mechanisms, @tc.private(epsilon), tc.from_opendp or a wrapper"
        raise InvalidParameter("algorithm", algorithm, expected)
    return algorithm


def canonical(target: Target) -> Target:
    """Return the target with its prior in the form in which outcomes are compared and published."""
    if not isinstance(target, NotPrior):
        return target
    try:
        prior = publishable(target.prior)
    except (UnpublishableError, RecursionError):
        raise InvalidParameter("prior", target.prior, PUBLISHABLE) from None
    return target if prior is target.prior else NotPrior(prior)


def _lasting(target: Target, asked: Question) -> bool:
    """Return whether a question can be known by its target: not if what it is made of was copied or may change."""
    try:
        hash(target)
    except TypeError:
        return False
    return any(target is each for each in asked.targets)


def _supported(algorithm: Algorithm) -> str:
    named = (f"{each.__name__}(…)" if isinstance(each, type) else words(each) for each in algorithm.targets)
    return " or ".join(named)


def _never_again(*_: object) -> object:
    msg = "a release is drawn once"
    raise AssertionError(msg)
