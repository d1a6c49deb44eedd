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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from targetcharge.ledger import QuestionId
    from targetcharge.queries.tree import Column
    from targetcharge.sessions import Release, Session
    from targetcharge.sessions.release import When
    from targetcharge.sessions.select import Stop
    from targetcharge.tables.answers import Part
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

    def one(self, prepared: Prepared, *, again: bool) -> Answer:
        """Return the one answer to a question: the published one, unless it is asked again."""
        if isinstance(prepared.question, Quantiles):
            (answer,) = self._quantiles(prepared, again=again)
            return answer
        for repeat in () if again else self._published(prepared):
            return repeat
        algorithm = prepared.algorithm()
        self._numbers.engine.check_unchanged()
        return self._session.ask(algorithm)

    def _published(self, prepared: Prepared, most: int = 1) -> tuple[Answer, ...]:
        """Return what a question published when it last hit."""
        return self._session.published([prepared.question_id(self._numbers.snapshot)], most)[0]

    def release(self, prepared: Prepared, when: When) -> Release:
        """Draw a number, and publish it if a condition holds."""
        if not isinstance(prepared.question, CountQuestion) or prepared.question.prior is not None:
            expected = "a count without a prior: its condition says what is published"
            raise InvalidParameter("where", prepared.question, expected)
        self._numbers.engine.check_unchanged()
        return self._session.release(replace(prepared, conditional=True).algorithm(), when)

    def watch(self, prepared: Prepared, max_hits: int | None, *, again: bool) -> LazyAnswers:
        """Ask the tests of all keys, lazily; those that are published are not asked unless it is wanted."""
        keys = () if prepared.keys is None else prepared.keys.published()
        compare = partial(self.difference, prepared)
        parts = self._watch_parts(prepared, keys, again=again)
        return LazyAnswers(parts, types_of_keys(prepared), keys, compare, max_hits)

    def _watch_parts(self, prepared: Prepared, keys: Sequence[object], *, again: bool) -> Iterator[Part]:
        repeats: Mapping[int, Answer] = {}
        if not again:
            repeats = self._session.published_keys(prepared.question_id(self._numbers.snapshot), keys)
        asked = prepared
        if repeats and prepared.keys is not None:
            left = [place for place in range(len(keys)) if place not in repeats]
            asked = replace(prepared, keys=prepared.keys.at(left))
        calls = [asked.batch()] if asked.count else []
        yield [repeats.get(place) for place in range(len(keys))], self._answers(calls)

    def many(
        self, prepared: Sequence[Prepared], asked: Sequence[object], max_hits: int | None, *, again: bool
    ) -> Answers:
        """Ask questions with one answer each, sharing scans where they can; `asked` is what the caller gave."""
        for call in self._calls(prepared, None):
            self._session.check_price(call)  # all of them are priced before the first is asked
        parts = self._parts([prepared] if again else different(prepared), again=again)
        compare, types = partial(self.difference, None), types_of_questions(prepared)
        return LazyAnswers(parts, types, asked, compare, max_hits).all()

    def _parts(self, lists: Iterable[Sequence[Prepared]], *, again: bool) -> Iterator[Part]:
        """Yield questions list by list: what of each is published, and the answers to the others."""
        for prepared in lists:
            snapshot = self._numbers.snapshot
            ids = [] if again else [one.question_id(snapshot) for one in prepared]
            published = self._session.published(ids) if ids else [()] * len(prepared)
            left = [one for one, repeats in zip(prepared, published, strict=True) if not repeats]
            scans = SharedScans(self._numbers) if isinstance(self._numbers, SharedNumbers) else None
            try:
                answers = self._answers(self._calls(left, scans))
                yield [repeats[0] if repeats else None for repeats in published], answers
            finally:
                if scans is not None:
                    scans.forget()

    def _calls(self, prepared: Sequence[Prepared], scans: SharedScans | None) -> list[Batch | Algorithm]:
        return calls_of(prepared, scans, batches=len(self._session.meters) == 1)

    def _answers(self, calls: Sequence[Batch | Algorithm]) -> Iterator[Answer]:
        """Yield the answers of one call after another, each on files that are what they were."""
        for call in calls:
            self._numbers.engine.check_unchanged()
            if isinstance(call, Batch):
                yield from self._session.ask_each(call)
            else:
                yield self._session.ask(call)

    def top(self, prepared: Prepared, stop: Stop | None, *, again: bool) -> Answers:
        """Publish the keys with the largest numbers; what a rule ended is never a repeat."""
        question = cast("Top", prepared.question)
        types, compare = types_of_keys(prepared), partial(self.difference, prepared)
        if stop is not None:
            prepared = prepared.stopped_by_rule()
        elif not again and (repeats := self._published(prepared, question.k)):
            return Answers(repeats, types, compare=compare)
        batch, picked = prepared.batch(), self._picks(prepared, stop)
        self._numbers.engine.check_unchanged()
        try:
            if picked:
                answers = self._session.ask_several(prepared.several())
            else:
                answers = self._session.select(batch, question.k, stop, question.threshold, values=question.values)
        except BudgetSpent as spent:
            return Answers((), types, batch.keys, spent.with_traceback(None))
        return Answers(answers, types, compare=compare)

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
        shown = preview(prepared, self._session, distances, picks=picks)
        if isinstance(prepared.question, Watch) and prepared.keys is not None:
            asked, keys = prepared.question_id(self._numbers.snapshot), prepared.keys.published()
            return shown.with_repeats(len(self._session.published_keys(asked, keys)))
        parts = self._quantile_parts(prepared) if isinstance(prepared.question, Quantiles) else [prepared]
        return shown.with_repeats(shown.keys if all(map(self._published, parts)) else 0)

    def histogram(self, prepared: Prepared, *, again: bool) -> Answers:
        """Publish the numbers of all keys, for one hit."""
        algorithm, types = prepared.algorithm(), types_of_keys(prepared)
        keys = () if prepared.keys is None else prepared.keys.published()
        try:
            answer = self.one(prepared, again=again)
        except BudgetSpent as spent:
            return Answers((), types, keys, spent.with_traceback(None))
        answers = of_keys(answer, keys, self._session.drawn(algorithm).accuracy)
        return Answers(answers, types, compare=partial(self.difference, prepared))

    def quantiles(self, prepared: Prepared, *, again: bool) -> Answers:
        """Publish quantiles, a hit each."""
        shares = [float(share) for share in cast("Quantiles", prepared.question).shares]
        try:
            answers = self._quantiles(prepared, again=again)
        except BudgetSpent as spent:
            return Answers((), types_of_keys(prepared), shares, spent.with_traceback(None))
        keyed = [replace(answer, key=share) for answer, share in zip(answers, shares, strict=True)]
        return Answers(keyed, types_of_keys(prepared), compare=partial(self.difference, prepared))

    def _quantiles(self, prepared: Prepared, *, again: bool) -> list[Answer]:
        answers: list[Answer] = []
        for part in self._quantile_parts(prepared):
            repeats = () if again else self._published(part, part.shares)
            answers += repeats if len(repeats) == part.shares else self._asked_quantiles(part)
        return answers

    def _quantile_parts(self, prepared: Prepared) -> list[Prepared]:
        """Return all at once; where every unit has a meter one by one, each charged to those who took part."""
        return prepared.one_by_one() if self._numbers.individual else [prepared]

    def _asked_quantiles(self, part: Prepared) -> list[Answer]:
        self._numbers.engine.check_unchanged()
        return self._session.ask_several(part.several())

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


def different(prepared: Sequence[Prepared]) -> Iterator[list[Prepared]]:
    """Yield lists of questions, in order, none of them twice in a list: the second time it may be a repeat."""
    some: dict[QuestionId, Prepared] = {}
    for one in prepared:
        known = one.question_id(0)
        if known in some:
            yield list(some.values())
            some = {}
        some[known] = one
    yield list(some.values())
