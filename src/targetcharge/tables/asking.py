"""Asking: from a prepared question to a session's call, and from what it published to answers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast, final

from targetcharge.errors import BudgetSpent, InvalidParameter
from targetcharge.ledger import Answer
from targetcharge.mechanisms import Algorithm, Batch
from targetcharge.mechanisms.noise import CountNoise
from targetcharge.queries.measures import UnitValue
from targetcharge.sessions.priced import paid_noise, session_noise
from targetcharge.tables.answers import Answers, LazyAnswers, of_keys
from targetcharge.tables.column_types import types_of_keys, types_of_questions
from targetcharge.tables.difference import PublishedNumber, difference, noise_of
from targetcharge.tables.numbers import SharedNumbers, SharedScans, calls_of
from targetcharge.tables.preparing import read_back
from targetcharge.tables.preview import preview
from targetcharge.tables.questions import CountQuestion, Quantiles, Top, Watch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from targetcharge.queries.tree import Column
    from targetcharge.sessions import Release, Session
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop
    from targetcharge.tables.difference import Difference
    from targetcharge.tables.individual import UnitMeters
    from targetcharge.tables.prepared import Prepared
    from targetcharge.tables.preview import Preview


@final
class Asker:
    """Asks prepared questions of a session over the numbers of a table, on files that are what they were."""

    def __init__(
        self, session: Session, numbers: SharedNumbers | UnitMeters, schema: Mapping[str, Column]
    ) -> None:
        """Ask a session that is open on these numbers."""
        self._session = session
        self._numbers = numbers
        self._schema = schema

    def check_price(self, prepared: Prepared) -> None:
        """Refuse a question that has no price on the session; alternatives are its targets, and have theirs."""
        question, alternatives = prepared.question, len(self._session.meters) > 1
        if isinstance(question, Quantiles) or (isinstance(question, Top) and self._picks(prepared, None)):
            self._session.price_of_several(prepared.several())
        elif alternatives and isinstance(question, Watch | Top):
            self._session.check_price(prepared.batch())
        elif alternatives or prepared.always_paid:
            self._session.check_price(prepared.algorithm())
        else:
            self._session.check_target(prepared.target, prepared.epsilon, monotone=prepared.monotone)

    def one(self, prepared: Prepared) -> Answer:
        """Return the one answer to a question."""
        if isinstance(prepared.question, Quantiles):
            (answer,) = self._quantiles(prepared)
            return answer
        algorithm = prepared.algorithm()
        self._numbers.engine.check_unchanged()
        return self._session.ask(algorithm)

    def release(self, prepared: Prepared, when: When) -> Release:
        """Draw a number, and publish it if a condition holds."""
        if not isinstance(prepared.question, CountQuestion) or prepared.question.prior is not None:
            expected = "a count without a prior: its condition says what is published"
            raise InvalidParameter("where", prepared.question, expected)
        self._numbers.engine.check_unchanged()
        return self._session.release(replace(prepared, conditional=True).algorithm(), when)

    def watch(self, prepared: Prepared) -> LazyAnswers:
        """Ask the tests of all keys, lazily."""
        batch = prepared.batch()
        compare = partial(self.difference, prepared)
        return LazyAnswers(self._answers([batch]), types_of_keys(prepared), batch.keys, compare)

    def many(self, prepared: Sequence[Prepared], asked: Sequence[object]) -> Answers:
        """Ask questions with one answer each, sharing scans where they can; `asked` is what the caller gave."""
        scans = SharedScans(self._numbers) if isinstance(self._numbers, SharedNumbers) else None
        calls = calls_of(prepared, scans, batches=len(self._session.meters) == 1)
        for call in calls:
            self._session.check_price(call)  # all of them are priced before the first is asked
        try:
            compare = partial(self.difference, None)
            return LazyAnswers(self._answers(calls), types_of_questions(prepared), asked, compare).all()
        finally:
            if scans is not None:
                scans.forget()

    def _answers(self, calls: Sequence[Batch | Algorithm]) -> Iterator[Answer]:
        """Yield the answers of one call after another, each on files that are what they were."""
        for call in calls:
            self._numbers.engine.check_unchanged()
            if isinstance(call, Batch):
                yield from self._session.ask_each(call)
            else:
                yield self._session.ask(call)

    def top(self, prepared: Prepared, stop: Stop | None) -> Answers:
        """Publish the keys with the largest numbers."""
        question = cast("Top", prepared.question)
        batch, picked = prepared.batch(), self._picks(prepared, stop)
        self._numbers.engine.check_unchanged()
        try:
            if picked:
                answers = self._session.ask_several(prepared.several())
            else:
                answers = self._session.select(batch, question.k, stop, question.threshold, values=question.values)
            return Answers(answers, types_of_keys(prepared), compare=partial(self.difference, prepared))
        except BudgetSpent as spent:
            return Answers((), types_of_keys(prepared), batch.keys, spent.with_traceback(None))

    def _picks(self, prepared: Prepared, stop: Stop | None) -> bool:
        """Return whether keys are picked by the exponential mechanism; else by their noisy numbers, at once.

        Where each unit has a budget a pick would charge everybody, and a sparse meter takes all numbers at once
        that no unit lowers. A pick and a number are two hits for each key, and noisy numbers have half the
        variance for two hits: so picking pays where its variance is less.
        """
        question = cast("Top", prepared.question)
        if self._numbers.individual or stop is not None or question.threshold is not None:
            return False
        if not question.values:
            return True
        sensitivity, tariff = prepared.measure.sensitivity, self._session.meter.tariff
        if tariff.at_least:
            return not prepared.monotone
        own = session_noise(tariff, prepared.epsilon) if prepared.monotone else None
        at_once = (own or partial(CountNoise.natural, prepared.epsilon))(sensitivity)
        fresh, _ = paid_noise(tariff, prepared.epsilon).least(sensitivity, sensitivity**2)
        sharper = 2 * fresh.standard_deviation**2 < at_once.standard_deviation**2
        return sharper and self._session.covers_several(prepared.several())

    def preview(self, prepared: Prepared, distances: Sequence[float] | None) -> Preview:
        """Return what a question would cost and how well it would work; nothing is asked."""
        picks = isinstance(prepared.question, Top) and self._picks(prepared, None)
        return preview(prepared, self._session, distances, picks=picks)

    def histogram(self, prepared: Prepared) -> Answers:
        """Publish the numbers of all keys, for one hit."""
        algorithm = prepared.algorithm()
        keys = () if prepared.keys is None else prepared.keys.published()
        self._numbers.engine.check_unchanged()
        try:
            answer = self._session.ask(algorithm)
        except BudgetSpent as spent:
            return Answers((), types_of_keys(prepared), keys, spent.with_traceback(None))
        answers = of_keys(answer, keys, self._session.drawn(algorithm).accuracy)
        return Answers(answers, types_of_keys(prepared), compare=partial(self.difference, prepared))

    def quantiles(self, prepared: Prepared) -> Answers:
        """Publish quantiles, a hit each."""
        shares = [float(share) for share in cast("Quantiles", prepared.question).shares]
        try:
            answers = self._quantiles(prepared)
        except BudgetSpent as spent:
            return Answers((), types_of_keys(prepared), shares, spent.with_traceback(None))
        keyed = [replace(answer, key=share) for answer, share in zip(answers, shares, strict=True)]
        return Answers(keyed, types_of_keys(prepared), compare=partial(self.difference, prepared))

    def _quantiles(self, prepared: Prepared) -> list[Answer]:
        """Ask for all at once; where every unit has a meter one by one, each charged to those who took part."""
        parts = prepared.one_by_one() if self._numbers.individual else [prepared]
        self._numbers.engine.check_unchanged()
        return [answer for part in parts for answer in self._session.ask_several(part.several())]

    def difference(self, prepared: Prepared | None, *answers: Answer) -> Difference:
        """Return the difference of two answers to a question, or to those that the ledger keeps."""
        numbers = []
        for name, answer in zip(("first", "second"), answers, strict=True):
            if not isinstance(answer, Answer):
                raise InvalidParameter(name, answer, "an answer of this table")
            asked = prepared or read_back(answer.question, answer.epsilon, self._schema)
            if asked is None:
                raise InvalidParameter(
                    name,
                    answer,
                    "an answer whose question is known: give two answers of a selection to its own `difference`",
                )
            if isinstance(asked.measure, UnitValue):
                raise InvalidParameter(name, answer, "about a count or a sum, not about a mean or a quantile")
            own = session_noise(self._session.meter.tariff, answer.epsilon) if asked.monotone else None
            noise = noise_of(answer, asked.moved, own)
            numbers.append(PublishedNumber.of(name, answer, noise, asked.gauge))
        return difference(*numbers)
