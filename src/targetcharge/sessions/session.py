"""Sessions: ask one dataset many questions on one budget.

>>> import targetcharge as tc
>>> ages = [34, 71, 68, 80, 25, 90] * 50
>>> with tc.Session(ages, tc.Budget(4.0, 1e-6), query_epsilon=0.2) as session:
...     old = tc.mechanisms.above_threshold(lambda rows: sum(age > 65 for age in rows), 120, epsilon=0.2)
...     answer = session.ask(old)
...     answer.hit, answer.price, session.meter.hits
(True, 1.0, 1)
"""

from __future__ import annotations

import time
import weakref
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NoReturn, final

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import BudgetSpent, InvalidParameter, LedgerError, NotAllowed
from targetcharge.ledger import Answer, Pending, Settlement
from targetcharge.mechanisms import Batch
from targetcharge.outcomes import publishable
from targetcharge.randomness import SystemEntropy
from targetcharge.sessions.batch import BatchCall
from targetcharge.sessions.heart import Failure, Heart, OffsetDataset, PlainData, Turn, attempt
from targetcharge.sessions.opening import MEMORY, Declaration, open_ledger
from targetcharge.sessions.priced import Priced, PriceList
from targetcharge.sessions.reading import Reading, Transcript
from targetcharge.sessions.release import Condition, Release, is_least
from targetcharge.sessions.select import STOP, Candidates, check_selection, sweep

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from targetcharge.accounting.budget import Budget
    from targetcharge.accounting.meter import Meter
    from targetcharge.accounting.targets import Target
    from targetcharge.ledger import BatchEntry, Ledger, QuestionId
    from targetcharge.mechanisms import Algorithm
    from targetcharge.mechanisms.picks import Parts, Several
    from targetcharge.sessions.heart import Dataset
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop

_PATIENCE = 2.0
"""Seconds that a session which was dropped waits for others: it may be in the way of the one it waits for."""


@final
class Session:
    """One dataset, one budget, one ledger, one transcript.

    Calls from several threads take turns. A session cannot be pickled or copied, nor used after a fork: open
    another one on the same ledger.

    Attributes:
        targets: its alternatives, or examples of what it was opened to be asked; none of a table's.
    """

    def __init__(
        self,
        data: object,
        budget: Budget,
        query_epsilon: float | None = None,
        *,
        hits: int | None = None,
        offset_epsilon: float | None = None,
        ledger: str | os.PathLike[str] = MEMORY,
        meter: str = "exact",
        alternatives: Sequence[Target] | None = None,
        targets: Sequence[Target] | Target | None = None,
        computation_delta: float = 0.0,
        transcript: int | None = None,
        restored: tuple[int, str] | None = None,
        unit: str = "",
    ) -> None:
        """Open a session.

        Args:
            data: any Python object; the algorithms know what to do with it.
            budget: the (ε, δ) of everything the session will ever publish, reopened or not.
            query_epsilon: the ε of one computation: the largest for the exact and the sparse meter, a typical one
                for Rényi's.
            hits: how many to cover; with the query ε left out, the one with the least noise for them is chosen.
            offset_epsilon: the rate of one secret offset in all counts that are declared monotone: it costs a
                little of the budget, and halves their own noise. Left out for none.
            ledger: ":memory:", or the path of a file that keeps the budget across restarts and processes.
            meter: "exact" counts hits, the most a budget can buy, for computations of at most the query ε; "renyi"
                prices each computation by its own ε and target; "sparse" takes only questions whether a count that
                no unit lowers is at least a threshold, with far less noise: one secret offset in all of them.
            alternatives: several targets with a meter each, for `ask(algorithm)`: the session goes on until all
                are spent.
            targets: examples of the targets that will be asked; NotPrior stands for tests, priors, releases and
                selections, and is the default.
            computation_delta: the part of the budget's δ that is kept for algorithms with a δ of their own.
            transcript: with a ledger in memory, how many entries to remember; None for all.
            restored: the number and hash of the last published entry, to open a restored copy of a ledger.
            unit: whose privacy the algorithms protect, in words; a ledger is for one unit.

        Warns:
            BudgetWarning: where a file is made for a budget so large that it hardly protects anybody.
        """
        given = budget, query_epsilon, meter, targets, alternatives, computation_delta, unit
        declared = Declaration.of(*given, hits=hits, offset_epsilon=offset_epsilon)
        ledger_opened = open_ledger(ledger, declared, transcript, restored)
        self._open(PlainData(data), ledger_opened, declared.alternatives)
        self.targets = declared.alternatives or declared.targets

    @classmethod
    def over(cls, dataset: Dataset, ledger: Ledger, alternatives: tuple[Target, ...] = ()) -> Session:
        """Return a session over a dataset that knows its snapshots and units, on an open ledger: a table's."""
        session = cls.__new__(cls)
        session._open(dataset, ledger, alternatives)  # noqa: SLF001 - its own
        session.targets = alternatives
        return session

    def _open(self, dataset: Dataset, ledger: Ledger, alternatives: tuple[Target, ...]) -> None:
        self._dataset = dataset if ledger.meters[0].tariff.offset is None else OffsetDataset(dataset, ledger)
        self._ledger = ledger
        self._meters = ledger.meters
        self._entropy = SystemEntropy()
        self._turn = Turn()
        self._heart = Heart(ledger, self._dataset)
        self._prices = PriceList(alternatives, self._meters)
        self._examples: dict[int, tuple[object, ...]] = {}  # of the outcomes of releases that wait, by seq
        self._finalizer = weakref.finalize(self, _close, ledger, self._turn)

    def ask(self, algorithm: Algorithm, target: Target | None = None) -> Answer:
        """Run an algorithm once; pay if the outcome is in the target.

        Args:
            algorithm: from `tc.mechanisms`, `@tc.private`, `tc.from_opendp` or a wrapper.
            target: the outcomes that cost; left out for the algorithm's own, or the session's alternatives.

        Raises:
            BudgetSpent: if a hit is not covered; the data was not touched.
            NotAllowed: if the algorithm does not support the target, or the meter has no price for it.
            ComputationFailed: if it gave nothing that can be published; the price of a hit is spent.
            LedgerError: if the ledger fails; there is no answer.
        """
        return self._ask(self._prices.ask(algorithm, target))

    def test(self, algorithm: Algorithm) -> Answer:
        """Ask a yes-or-no question; pay for yes. The outcome is True or False.

        An algorithm that has something to say only on a hit, such as `above_threshold`, says yes if it speaks. One
        whose outcomes are known to be others, such as `noisy_count`, is refused. A function that was declared with
        `tc.private` must return True or False: any other outcome is a failed computation, for the price of a hit.

        Raises (others as in `ask`):
            NotAllowed: if the algorithm does not answer yes or no; the data was not touched.
            ComputationFailed: if the outcome is neither; the price of a hit is spent.
        """
        return self._ask(self._prices.test(algorithm))

    def ask_prior(self, algorithm: Algorithm, prior: object) -> Answer:
        """Pay only for change: the prior is free, any other outcome costs.

        Args:
            algorithm: what to run.
            prior: the expected outcome, or an earlier answer (of this dataset or an older one) that holds it.
        """
        if isinstance(prior, Release) and not prior.released:
            raise InvalidParameter("prior", prior, "an outcome that was published: this release is pending")
        expected = prior.outcome if isinstance(prior, Answer | Release) else prior
        return self._ask(self._prices.prior(algorithm, expected))

    def ask_each(self, batch: Batch) -> Iterator[Answer]:
        """Ask the questions of a batch one after another, lazily; pay for each hit.

        Its computation runs once, when the first answer is asked for. Answers up to the next hit leave together,
        once that hit is paid for; a budget that is spent in between is told after the last answer it covers.

        Args:
            batch: from `tc.mechanisms.batch_by_key` or `batch_by_name`.

        Raises:
            BudgetSpent: when a further hit is not covered; what was answered is published and charged.
            ComputationFailed: if the computation gave nothing that can be published; the price of a hit is spent.
        """
        for entry in self.ask_batch(batch):
            yield from entry.answers

    def check_price(self, asked: Algorithm | Batch) -> None:
        """Refuse what has no price on this session, as `ask` and `ask_batch` would. The data is not touched.

        Args:
            asked: an algorithm that will be asked with its own target, or a batch.

        Raises:
            NotAllowed: if the algorithm does not support the target, or the meter has no price for it.
        """
        if isinstance(asked, Batch):
            self._drawn_batch(asked)
        else:
            self._prices.ask(asked, None)

    def price_of(self, drawn: Algorithm) -> float:
        """Return what a hit of an algorithm costs that was drawn for this session, with its own target."""
        target = drawn.default_target or NotPrior(None)
        return self._meters[0].quote(target, drawn.epsilon, carried=drawn.carries).value

    def price_of_several(self, several: Several) -> tuple[float, Parts]:
        """Return what each of several outcomes costs, and how they are drawn here."""
        parts, asked = self._prices.several(several)
        return asked.most.prices[0].value, parts

    def covers_several(self, several: Several) -> bool:
        """Return whether what is left of the budget covers several outcomes; public."""
        _, asked = self._prices.several(several)
        try:
            self._one(0).check(asked.most.prices[0], several.count)
        except BudgetSpent:
            return False
        return True

    def drawn(self, algorithm: Algorithm) -> Algorithm:
        """Return an algorithm as this session draws it with its own target, or for a hit whatever comes."""
        return self._prices.own(algorithm, algorithm.default_target or NotPrior(None))

    def check_target(self, target: Target, epsilon: float, *, monotone: bool) -> None:
        """Refuse a target that has no price on this session.

        Args:
            target: the outcomes that would cost.
            epsilon: of the computation.
            monotone: whether its count carries the offset of a session that has one.
        """
        meter = self._meters[0]
        meter.quote(target, epsilon, carried=monotone and meter.tariff.offset is not None)

    def ask_batch(self, batch: Batch, start: int = 0) -> Iterator[BatchEntry]:
        """Ask the questions of a batch, lazily; yield answers as the ledger keeps them: thousands in one entry.

        Args:
            batch: what to ask.
            start: the question to begin with.

        Raises:
            InvalidParameter: if there is no such question.
        """
        call = BatchCall(*self._drawn_batch(batch), self._dataset, start, received=time.time())
        while call.left:
            with self._turn.wait():
                self._turn.begin()
                entries = call.publish(self._heart, self._ledger, self._entropy)
            yield from entries

    def published(self, asked: Sequence[QuestionId], most: int = 1) -> list[tuple[Answer, ...]]:
        """Return what questions of a table published when they last hit; data and meter are not touched.

        Args:
            asked: the questions.
            most: how many answers of one call each has at most.
        """
        with self._turn.wait():
            self._turn.begin()
            return self._ledger.published(asked, most)

    def published_keys(self, asked: QuestionId, keys: Sequence[object]) -> dict[int, Answer]:
        """Return what a question about keys published for those that hit, by place among the keys, for nothing."""
        with self._turn.wait():
            self._turn.begin()
            return self._ledger.published_keys(asked, keys)

    def _drawn_batch(self, batch: Batch) -> tuple[Batch, list[Priced]]:
        """Return a batch as this session draws it, and what its questions cost."""
        if self._dataset.individual and getattr(batch, "most_hits", 1) > 1:
            msg = "such a batch is not asked where every unit has a meter of its own: open a session for it"
            raise NotAllowed(msg)
        drawn = self._prices.as_drawn(batch)
        return drawn, self._prices.batch(drawn)

    def _ask(self, asked: Priced) -> Answer:
        def compute() -> tuple[Settlement, Answer]:
            drawn, snapshot = asked.draw(self._dataset.data, self._entropy), self._dataset.snapshot
            published, hits = asked.judge(drawn)
            seq = self._ledger.next_seq()
            answer = asked.answer(published, hits, seq, received, snapshot, drawn=drawn)
            return Settlement((answer,)), answer

        received = time.time()
        with self._turn.wait():
            self._turn.begin()
            return self._heart.publish(asked.most, asked.algorithm.name, compute)

    def ask_several(self, several: Several) -> list[Answer]:
        """Publish several outcomes of one computation, each of them paid for; all must be covered.

        Args:
            several: such as picks or quantiles.

        Raises:
            BudgetSpent: if they are not all covered; the data was not touched.
            ComputationFailed: if it gave nothing that can be published; the price of all is spent.
        """
        parts, asked = self._prices.several(several)

        def compute() -> tuple[Settlement, list[Answer]]:
            outcomes, snapshot = parts.draw(asked.data(self._dataset.data), self._entropy), self._dataset.snapshot
            answers = [
                asked.answer(publishable(outcome), (True,), self._ledger.next_seq(), received, snapshot, key=key)
                for key, outcome in outcomes
            ]
            return Settlement(answers), answers

        received = time.time()
        with self._turn.wait():
            self._turn.begin()
            return self._heart.publish(asked.most, several.name, compute)

    def release(self, algorithm: Algorithm, when: When) -> Release:
        """Draw an outcome; publish and pay for it if the condition holds, else keep it for revisions.

        Args:
            algorithm: what to run, once.
            when: a function of the outcome, a set of outcomes, or the least number. One that raises counts as
                false. It is tried first on made-up outcomes, where the algorithm declares what it gives.

        Raises:
            InvalidParameter: if the condition raises on those; nothing was drawn.
        """
        asked, holds = self._prices.release(algorithm), self._condition(when)
        examples = algorithm.examples()

        def compute() -> tuple[Settlement, Answer]:
            outcome, seq = asked.draw(self._dataset.data, self._entropy), self._ledger.next_seq()
            hit = holds(outcome)
            answer = asked.answer(outcome, (hit,), seq, received, self._dataset.snapshot, release=seq)
            if hit:
                return Settlement((answer,)), answer
            facts = (algorithm.name, algorithm.epsilon, algorithm.delta, answer.scale, answer.interval)
            silence = replace(answer, outcome=None, interval=None)
            return Settlement((silence,), pending=Pending(seq, outcome, *facts, answer.snapshot)), silence

        received = time.time()
        with self._turn.wait():
            self._turn.begin()
            self._rehearse(partial(holds.rehearse, examples))
            release = self._released(self._heart.publish(asked.most, algorithm.name, compute))
            if not release.released:
                self._examples[release.seq] = examples
            return release

    def revise(self, seq: int, when: When) -> Release:
        """Add values to those that a pending release may publish; `Release.revise` calls this.

        Args:
            seq: of the release.
            when: a function of the outcome, a set of outcomes, or the least number; tried first as in `release`.
        """
        holds, seq = self._condition(when), checks.positive_integer(seq, "seq")

        def compute() -> tuple[Settlement, Answer]:
            kept = self._pending_outcome(seq)  # read again: a refusal's traceback must not hold it
            if kept is None:  # another session was quicker: to settle is to be refused, and nothing is charged
                return Settlement((), closes=seq), Answer(outcome=None, hit=False, price=0.0, seq=seq)
            hit = holds(kept.outcome)
            outcome, interval = (kept.outcome, kept.interval) if hit else (None, None)
            answer = asked.answer(outcome, (hit,), self._ledger.next_seq(), received, kept.snapshot, release=seq)
            answer = replace(answer, scale=kept.scale, interval=interval)
            return Settlement((answer,), closes=seq if hit else None), answer

        received = time.time()
        with self._turn.wait():
            self._turn.begin()
            asked = self._revision(seq)
            known = self._examples.get(seq)
            examples = asked.algorithm.examples() if known is None else known
            self._rehearse(partial(holds.rehearse, examples, known=known is not None))
            return self._released(self._heart.publish(asked.most, asked.algorithm.name, compute))

    def _rehearse(self, try_out: Callable[[], None]) -> None:
        """Try a caller's condition or rule on what is made up, under the locks that it will be called under."""
        if not self._dataset.individual:
            return try_out()
        with self._ledger.exclusive():
            return try_out()

    def _condition(self, when: When) -> Condition:
        tariff = self._meters[0].tariff
        if tariff.at_least and not is_least(when):
            asked = "a release with another condition than a number"
            raise tariff.refusal(asked)
        return Condition.of(when)

    def _revision(self, seq: int) -> Priced:
        """Return what a revision costs; refuse that of a release which is not pending."""
        kept = self._pending_outcome(seq)
        if kept is None:
            msg = f"no release {seq} is pending: it was published, or never made on this ledger"
            raise NotAllowed(msg)
        return self._prices.revision(kept)

    def _pending_outcome(self, seq: int) -> Pending | None:
        """Return a pending outcome, if it is there; whatever goes wrong on the way shows nothing of it."""
        kept = attempt(partial(self._ledger.pending_outcome, seq), public=(LedgerError,))
        if isinstance(kept, Failure):
            raise kept.error()
        return kept

    def _released(self, answer: Answer) -> Release:
        seq, accuracy = answer.release or answer.seq, (answer.scale, answer.interval)
        return Release(answer.hit, answer.outcome, answer.price, seq, self, *accuracy, answer.algorithm)

    @property
    def pending(self) -> tuple[Release, ...]:
        """Return the releases that wait for a revision, also those from before a restart."""
        with self._turn.wait():
            self._turn.begin()
            waiting = self._ledger.pending()
        return tuple(Release(released=False, outcome=None, price=0.0, seq=seq, _session=self) for seq in waiting)

    def select(
        self,
        candidates: Sequence[Algorithm] | Batch,
        k: int = 1,
        stop: Stop | None = None,
        threshold: float | None = None,
        *,
        values: bool = True,
    ) -> list[Answer]:
        """Run every candidate once and publish the best: one-shot top-k, a hit for each that is published.

        An outcome is a score or a tuple that begins with one; ties go to the earlier candidate.

        Args:
            candidates: the algorithms, or a batch of noisy counts.
            k: the most to publish; all of them must be covered.
            stop: from the answers so far to the lowest score that may follow, or None; see `tc.sessions.gap`. It
                is tried first on made-up answers, where the candidates are noisy counts.
            threshold: no score below it is published.
            values: whether outcomes are published; else only which candidates are the best, at the same price.
                Then `stop` is left out: it would see them.
        """
        values = checks.flag(values, "values")
        if stop is not None and not values:
            raise InvalidParameter("stop", stop, "left out where values are not wanted: there are none to see")
        names = candidates.keys if isinstance(candidates, Batch) else candidates
        most = check_selection(names, k, stop, threshold)
        asked = Candidates.of(candidates, self._prices, values=values)

        def compute() -> tuple[Settlement, tuple[list[Answer], str]]:
            outcomes, snapshot = asked.draw(self._dataset.data, self._entropy), self._dataset.snapshot

            def release(index: int) -> Answer:
                seq, rank = self._ledger.next_seq(), len(numbered) + 1
                answer = asked.answer(index, rank, outcomes[index], seq, received, snapshot)
                later = bool(numbered)
                numbered.append(answer.seq)
                return replace(answer, question="") if later else answer

            numbered: list[int] = []
            released, problem = sweep(outcomes, most, threshold, stop, release)
            if len(released) == most:
                return Settlement(released), (released, problem)
            end = asked.end(self._ledger.next_seq(), received, snapshot, broke=bool(problem))
            end = replace(end, question="") if released else end
            return Settlement([*released, end]), (released, problem)

        received = time.time()
        with self._turn.wait():
            self._turn.begin()
            if stop is not None:
                self._rehearse(partial(asked.rehearse, stop, most, threshold))
            released, problem = self._heart.publish(asked.most(most), "select", compute)
        if problem:
            expected = f"{STOP}; {problem}. What was released is charged and in the transcript"
            raise InvalidParameter("stop", stop, expected)
        return released

    @property
    def meter(self) -> Reading:
        """Return the meter, to look at; in a session with alternatives the one that has the most left."""
        return Reading(lambda: max(self._read(), key=lambda meter: meter.hits_left))

    @property
    def meters(self) -> tuple[Reading, ...]:
        """Return all meters, to look at: one, or one for each alternative."""
        return tuple(Reading(partial(self._one, index)) for index in range(len(self._meters)))

    def _one(self, index: int) -> Meter:
        return self._read()[index]

    def _read(self) -> tuple[Meter, ...]:
        self._turn.check()
        return self._ledger.meters

    @property
    def transcript(self) -> Transcript:
        """Return all that was published on this session's ledger, in order."""
        self._turn.check()
        return Transcript(self._ledger)

    def up_to_date(self, act: Callable[[], object]) -> None:
        """Let the dataset read the ledger, and do something with it; other calls wait."""
        with self.exclusive():
            self._dataset.read_ledger()
            act()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other calls waiting, of this session and of all others on its ledger."""
        with self._turn.wait():
            self._turn.begin()
            with self._ledger.exclusive():
                yield

    @property
    def closed(self) -> bool:
        """Return whether it was closed."""
        return self._turn.closed

    def close(self) -> None:
        """Let go of what is reserved and not used, and close the ledger. A crash spends it."""
        if not self._turn.closed:
            with self._turn.wait():
                self._turn.close()
                self._finalizer.detach()
                self._ledger.close()

    def __enter__(self) -> Session:
        """Return the session; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the session."""
        self.close()

    def __repr__(self) -> str:
        """Return public facts only."""
        budget = self._meters[0].guarantee
        return f"<session, budget ({budget.epsilon:g}, {budget.delta:g}), {self._meters[0].tariff.name} meter>"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: two sessions would spend one budget twice."""
        msg = "a session cannot be pickled or copied: open another one on the same ledger"
        raise NotAllowed(msg)


def _close(ledger: Ledger, turn: Turn) -> None:
    """Close a ledger, unless this process only inherited it by a fork."""
    if not turn.foreign:
        ledger.close(_PATIENCE)
