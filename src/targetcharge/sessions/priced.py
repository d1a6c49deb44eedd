"""Priced questions: an algorithm, its target and their price; all that is decided before the data is touched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, final

from targetcharge.accounting.meter import Price
from targetcharge.accounting.meter.price import check_query
from targetcharge.accounting.meter.tariff import ExactTariff
from targetcharge.accounting.targets import Everything, NotPrior, Target
from targetcharge.accounting.targets.plain import in_words, plain
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.ledger import Answer, Most
from targetcharge.mechanisms import Algorithm, Batch
from targetcharge.mechanisms.algorithm import batch_algorithm, redrawn
from targetcharge.mechanisms.batch import NoisyCounts
from targetcharge.mechanisms.noise import Carried, CountNoise
from targetcharge.mechanisms.paid import PaidNoise, paid
from targetcharge.numerics.rounding import up
from targetcharge.outcomes import PUBLISHABLE, UNCHANGED, Side, UnpublishableError, publishable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from targetcharge.accounting.meter import Meter
    from targetcharge.accounting.meter.tariff import Tariff
    from targetcharge.accounting.targets.plain import PlainTarget
    from targetcharge.ledger import Pending
    from targetcharge.ledger.answer import Call
    from targetcharge.mechanisms.algorithm import Support
    from targetcharge.mechanisms.noise import NoiseOf
    from targetcharge.mechanisms.picks import Parts, Several
    from targetcharge.randomness import Entropy

_REMEMBERED: Final = 1024

_MOST_DELTA: Final = math.nextafter(1.0, 0.0)

_RELEASE: Final = NotPrior(prior=None)
"""What a release, a revision and a released candidate are priced as."""

_NOISY: Final = (0, 1_000, 0.5, None, UNCHANGED, *Side)
"""What may come of noise: of a release from before a restart no more is known than that it had some."""


@final
@dataclass(frozen=True)
class Priced:
    """What will be run, which outcomes cost, and how much.

    Attributes:
        algorithm: what to run.
        targets: one for each meter.
        most: the most it could charge.
        plain_targets: the targets, as answers keep them.
        free: what a miss charges.
        call: what was called.
        says_yes: whether only "hit or not" is published.
    """

    algorithm: Algorithm
    targets: tuple[Target, ...]
    most: Most
    plain_targets: tuple[PlainTarget, ...]
    free: tuple[int, ...]
    call: Call = "ask"
    says_yes: bool = False

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
            if self._free_is_false and outcome not in (True, False):  # 1 and 0 will do
                msg = "neither yes nor no"
                raise TypeError(msg)
            return hits[0], hits
        return self.algorithm.publish(outcome, hit=any(hits)), hits

    @property
    def _free_is_false(self) -> bool:
        target = self.targets[0]
        return isinstance(target, NotPrior) and target.prior is False

    def draw(self, data: object, entropy: Entropy) -> object:
        """Run the algorithm: the data is touched here, and nowhere else."""
        return publishable(self.algorithm.run(self.data(data), entropy))

    def data(self, data: object) -> object:
        """Return what the algorithm gets of a session's data: the offset only if it carries it."""
        return data.data if type(data) is Carried and not self.algorithm.carries else data

    def answer(
        self,
        published: object,
        hits: tuple[bool, ...],
        seq: int,
        received: float,
        snapshot: int,
        *,
        key: object = None,
        candidate: int | None = None,
        release: int | None = None,
        drawn: object = None,
    ) -> Answer:
        """Return the answer, with what it charges; `drawn` is the outcome of which something is published."""
        price, grains = 0.0, self.free
        hit = True in hits
        if hit:
            paid = [
                (cost.value, cost.grains) if meter_hit else (0.0, 0)
                for cost, meter_hit in zip(self.most.prices, hits, strict=True)
            ]
            price, grains = max(value for value, _ in paid), tuple(charged for _, charged in paid)
        algorithm, accuracy = self.algorithm, self.algorithm.accuracy
        scale, interval = (0.0, None) if accuracy is None else (accuracy.scale, accuracy.interval(published))
        if algorithm.interval is not None:
            interval = algorithm.interval(drawn)
        return Answer(
            published,
            hit,
            price,
            seq,
            algorithm.name,
            self.plain_targets,
            algorithm.epsilon if algorithm.epsilon < math.inf else 0.0,
            algorithm.delta,
            received,
            grains,
            candidate,
            release,
            key,
            scale,
            interval,
            algorithm.prior,
            algorithm.question,
            snapshot,
            self.call,
        )


@final
class PriceList:
    """Prices the questions of one session. The last few are remembered: most are asked again and again."""

    def __init__(self, alternatives: tuple[Target, ...], meters: tuple[Meter, ...]) -> None:
        """Ask on these meters."""
        self._alternatives = alternatives
        self._meters = meters
        self._tariff = meters[0].tariff
        self._memory: dict[tuple[str, int, int], tuple[Priced, Target | None, Algorithm]] = {}

    def ask(self, algorithm: Algorithm, target: Target | None) -> Priced:
        """Return the question of `Session.ask`."""
        return self._known("ask", algorithm, target) or self._remember(
            "ask", algorithm, self._ask(algorithm, target), target
        )

    def _ask(self, algorithm: Algorithm, target: Target | None) -> Priced:
        check_algorithm(algorithm)
        if self._alternatives:
            if target is not None:
                msg = "this session has alternatives, which are its targets: ask(algorithm), without a target"
                raise NotAllowed(msg)
            return self._priced(self.own(algorithm, self._alternatives[0]), *self._alternatives)
        chosen = algorithm.default_target if target is None else target
        own = algorithm.default_target
        if isinstance(chosen, Everything) and chosen.curve is None and isinstance(own, Everything):
            chosen = own  # its curve, if it has declared one, costs no more than its ε
        if not isinstance(chosen, Target):
            expected = "a target, such as tc.NotPrior(prior) or tc.Everything()"
            raise InvalidParameter("target", chosen, f"{expected}: {algorithm.name} has none of its own")
        drawn = self.own(algorithm, chosen)
        if algorithm.paid is not None and isinstance(chosen, Everything) and drawn.default_target is not None:
            chosen = drawn.default_target  # what is paid for follows from how it is drawn here
        chosen = canonical_target(chosen)
        return self._priced(drawn, chosen)

    def test(self, algorithm: Algorithm) -> Priced:
        """Return the question of `Session.test`: free is False, or the algorithm's own "nothing to say"."""
        return self._known("test", algorithm) or self._remember("test", algorithm, self._test(algorithm))

    def _test(self, algorithm: Algorithm) -> Priced:
        own = check_algorithm(algorithm).default_target
        if own is not None and not isinstance(own, NotPrior):
            msg = f"{algorithm.name} does not answer yes or no: ask it with {_support_in_words(own)}"
            raise NotAllowed(msg)
        if own is None and not all(type(example) is bool for example in algorithm.examples()):
            msg = (
                f"{algorithm.name} does not answer yes or no, so whatever came out would cost: ask it with"
                f" {_targets_in_words(algorithm)}, or test one that has a threshold"
            )
            raise NotAllowed(msg)
        free = own if isinstance(own, NotPrior) else NotPrior(prior=False)
        return replace(self._alone(self.own(algorithm, free), free), says_yes=True)

    def prior(self, algorithm: Algorithm, prior: object) -> Priced:
        """Return the question of `Session.ask_prior`."""
        target = canonical_target(NotPrior(prior))
        return self._alone(self.own(algorithm, target), target)

    def release(self, algorithm: Algorithm) -> Priced:
        """Return the question of `Session.release`: nothing is free but silence."""
        return self._alone(self.own(_held(algorithm), _RELEASE), _RELEASE, "release")

    def candidate(self, algorithm: Algorithm) -> Priced:
        """Return the question of one candidate of `Session.select`.

        Where only at-least questions are asked it must have a score whatever it is: that all have one would tell
        of each that it is at least something, for the price of those that are released.
        """
        if self._tariff.at_least:
            counted = _with_epsilon(algorithm, _RELEASE).counted
            if counted is None or not counted.always:
                among = f"a selection among {algorithm.name}"
                raise self._tariff.refusal(among)
        return self._known("select", algorithm) or self._remember(
            "select", algorithm, self._alone(self.own(_held(algorithm), _RELEASE), _RELEASE, "select")
        )

    def candidates(self, batch: Batch) -> list[Priced]:
        """Return the questions of a batch whose members are the candidates of `Session.select`."""
        return [self._alone(algorithm, _RELEASE, "select") for algorithm in batch.algorithms]

    def several(self, several: Several) -> tuple[Parts, Priced]:
        """Return how several outcomes are drawn here, each of them always paid for, and the question of each."""
        if self._alternatives:
            raise _only_ask()
        parts = several.parts(paid_noise(self._tariff, several.epsilon))
        quoted = [self._meters[0].quote(target, several.epsilon) for target in parts.paid]
        price = Price(sum(one.grains for one in quoted), sum(one.value for one in quoted), quoted[0].scale)
        named = batch_algorithm(several.name, several.epsilon, parts.paid[-1], parts.accuracy, several.question)
        most = Most((price,), several.count)
        return parts, Priced(named, parts.paid[-1:], most, tuple(map(plain, parts.paid)), (0,), "ask")

    def batch(self, batch: Batch) -> list[Priced]:
        """Return the questions of a batch: one for each, or one for all."""
        return [self._question(algorithm, batch.target) for algorithm in batch.algorithms]

    def _question(self, algorithm: Algorithm, shown: PlainTarget | None) -> Priced:
        if algorithm.default_target is None:
            raise InvalidParameter("batch", algorithm, "algorithms that name their targets")
        priced = self._known("batch", algorithm) or self._remember(
            "batch", algorithm, self._alone(algorithm, algorithm.default_target)
        )
        return priced if shown is None else replace(priced, plain_targets=(shown,))

    def revision(self, kept: Pending) -> Priced:
        """Return the question of a revision: priced as the release was; its δ is spent already."""
        examples = (lambda: _NOISY) if kept.scale else tuple
        drawn = Algorithm(kept.algorithm, kept.epsilon, 0.0, _never_again, examples=examples)
        return self._priced(drawn, _RELEASE, call="revise")

    def _known(self, kind: str, algorithm: Algorithm, target: Target | None = None) -> Priced | None:
        # By identity: quick, and safe because what is remembered keeps its parts alive.
        remembered = self._memory.get((kind, id(algorithm), id(target)))
        return remembered and remembered[0]

    def _remember(self, kind: str, algorithm: Algorithm, asked: Priced, target: Target | None = None) -> Priced:
        if target is None or _lasting(target, asked):
            if len(self._memory) >= _REMEMBERED:
                self._memory.clear()
            self._memory[kind, id(algorithm), id(target)] = asked, target, algorithm
        return asked

    def _alone(self, algorithm: Algorithm, target: Target, call: Call = "ask") -> Priced:
        if self._alternatives:
            raise _only_ask()
        return self._priced(algorithm, target, call=call)

    def as_drawn(self, batch: Batch) -> Batch:
        """Return a batch as this session draws it: with its noise, and with the offset, where there is one."""
        if not isinstance(batch, Batch):
            raise InvalidParameter("batch", batch, "made by tc.mechanisms.batch_by_key, or by tc.learning")
        noise_of = session_noise(self._tariff, batch.algorithms[0].epsilon)
        if noise_of is None:
            return batch
        if isinstance(batch.drawing, NoisyCounts) and batch.drawing.adds is not None:
            return batch.redrawn(noise_of)
        if self._tariff.at_least:
            raise self._tariff.refusal(batch.algorithms[0].name)
        return batch

    def own(self, algorithm: Algorithm, target: Target) -> Algorithm:
        """Return an algorithm as this session draws it: with its noise, and with the offset, where there is one.

        Where only at-least questions are asked, what is always paid needs neither; all else must be one.
        """
        always_paid = isinstance(target, Everything)
        if _with_epsilon(algorithm, target).paid is not None and always_paid and not self._alternatives:
            return paid(algorithm, paid_noise(self._tariff, algorithm.epsilon))
        counted = algorithm.counted
        if counted is None and (always_paid or not self._tariff.at_least):
            return algorithm
        noise_of = session_noise(self._tariff, algorithm.epsilon)
        if noise_of is None:
            return algorithm
        if not self._tariff.at_least:
            return algorithm if counted is None else redrawn(algorithm, noise_of)
        if counted is not None and counted.at_least and (target == _RELEASE or always_paid):
            return redrawn(algorithm, noise_of)
        if always_paid:
            return algorithm
        if target != _RELEASE:
            self._tariff.quote(target, algorithm.epsilon)  # says which meter takes it
        raise self._tariff.refusal(algorithm.name)

    def _priced(self, algorithm: Algorithm, *targets: Target, call: Call = "ask") -> Priced:
        for target in targets:
            if not check_algorithm(algorithm).supports(target):
                raise _unsupported(algorithm, target)
        carried, pairs = algorithm.carries, zip(targets, self._meters, strict=True)
        prices = tuple(meter.quote(target, algorithm.epsilon, carried=carried) for target, meter in pairs)
        most, free = Most(prices, 1, algorithm.delta), (0,) * len(prices)
        return Priced(algorithm, targets, most, tuple(map(plain, targets)), free, call)


def _only_ask() -> NotAllowed:
    msg = "this session has alternatives: it answers ask(algorithm) only; open another session for the rest"
    return NotAllowed(msg)


def session_noise(tariff: Tariff, epsilon: float) -> NoiseOf | None:
    """Return the noise that counts of a computation with this ε get in a session; None if it is their own."""
    if tariff.offset is None:
        return partial(CountNoise.gumbel, epsilon) if tariff.at_least else None
    if tariff.at_least:
        check_query(epsilon, tariff.offset.query_epsilon)
    return partial(CountNoise.carried, tariff.offset.for_computation(epsilon))


def paid_noise(tariff: Tariff, epsilon: float) -> PaidNoise:
    """Return what a computation may draw that costs what a test with this ε costs, and is always paid for."""
    takes_tests = not isinstance(tariff, ExactTariff) or tariff.kind.not_prior
    return PaidNoise(tariff.paid(epsilon), session_noise(tariff, epsilon) if takes_tests else None)


def most_of_all(asked: Sequence[Priced], count: int) -> Most:
    """Return the most that `count` hits among several questions could charge, and the δ of all of them."""
    dearest = max((question.most.prices for question in asked), key=lambda prices: prices[0].grains)
    return Most(dearest, count, min(_MOST_DELTA, up(math.fsum(question.algorithm.delta for question in asked))))


def check_algorithm(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm; refuse anything else."""
    if not isinstance(algorithm, Algorithm):
        expected = "made by tc.mechanisms, @tc.private(epsilon), tc.from_opendp or a wrapper"
        raise InvalidParameter("algorithm", algorithm, expected)
    return algorithm


def _held(algorithm: Algorithm) -> Algorithm:
    """Return an algorithm whose outcome may wait for a condition; refuse one that publishes a part of it."""
    if check_algorithm(algorithm).interval is not None:
        msg = f"{algorithm.name} is published whatever it is: ask it, without a condition"
        raise NotAllowed(msg)
    return algorithm


def canonical_target(target: Target) -> Target:
    """Return the target with its prior in the form in which outcomes are compared and published."""
    if not isinstance(target, NotPrior):
        return target
    try:
        prior = publishable(target.prior)
    except (UnpublishableError, RecursionError):
        raise InvalidParameter("prior", target.prior, PUBLISHABLE) from None
    return target if prior is target.prior else NotPrior(prior)


def _lasting(target: Target, asked: Priced) -> bool:
    """Return whether a question can be known by its target: not if what it is made of was copied or may change."""
    try:
        hash(target)
    except TypeError:
        return False
    return any(target is priced_target for priced_target in asked.targets)


def _with_epsilon(algorithm: Algorithm, target: Target) -> Algorithm:
    """Return an algorithm; refuse one without an ε if it does not support the target, before ε is looked at."""
    if check_algorithm(algorithm).epsilon == math.inf and not algorithm.supports(target):
        raise _unsupported(algorithm, target)
    return algorithm


def _unsupported(algorithm: Algorithm, target: Target) -> NotAllowed:
    """Return the error of a target whose price is not true of an algorithm, which says what to ask with."""
    asked, own = in_words(plain(target)), algorithm.default_target
    msg = f"{algorithm.name} does not support {asked}: ask with {_targets_in_words(algorithm)}"
    if algorithm.epsilon == math.inf and isinstance(own, Everything):
        msg += f". It has {own.curve} and no epsilon, so its every outcome is paid for"
    return NotAllowed(msg)


def _targets_in_words(algorithm: Algorithm) -> str:
    """Return which targets an algorithm supports."""
    return " or ".join(dict.fromkeys(map(_support_in_words, algorithm.targets)))


def _support_in_words(support: Support) -> str:
    if support is Everything or isinstance(support, Everything):
        return "Everything()"  # also stands for the curve that is declared
    return f"{support.__name__}(…)" if isinstance(support, type) else in_words(plain(support))


def _never_again(*_: object) -> object:
    msg = "a release is drawn once"
    raise AssertionError(msg)
