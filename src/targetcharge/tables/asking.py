"""Asking: from a question to its answers, on the session and the reader of one table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, final

from targetcharge import checks
from targetcharge.accounting.targets import NotPrior
from targetcharge.errors import BudgetSpent, InvalidParameter, NotAllowed
from targetcharge.mechanisms import Batch
from targetcharge.mechanisms.accuracy import gauged
from targetcharge.tables.answers import Answers
from targetcharge.tables.batteries import by_keys, runs, together
from targetcharge.tables.computing import Single, algorithm_of, number_asked
from targetcharge.tables.readers import Inquiry
from targetcharge.tables.records import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from targetcharge.ledger import Answer
    from targetcharge.mechanisms import Algorithm
    from targetcharge.queries.columns import Schema
    from targetcharge.tables.access import Access
    from targetcharge.tables.questions import Above, Question, Top, Watch
    from targetcharge.tables.readers import Read


class Stopped(Exception):  # noqa: N818 - not an error: an early end, with what was answered before it
    """The budget was spent on the way, or the table may not be asked any more."""

    def __init__(self, answers: list[Answer], why: BudgetSpent | NotAllowed) -> None:
        """Tell what was answered, and what stopped it."""
        super().__init__()
        self.answers = answers
        self.why = why


@final
class Asking:
    """Asks questions that were made by `tc.questions`."""

    def __init__(self, access: Access) -> None:
        """Ask with what was opened."""
        self._access = access

    @property
    def _schema(self) -> Schema:
        return self._access.engine.schema

    def query(self, epsilon: float | None) -> float:
        """Return the ε of one computation: the table's, unless a caller chose one."""
        return self._access.epsilon if epsilon is None else checks.query_epsilon(epsilon, "epsilon")

    def one(self, question: Question, epsilon: float | None = None) -> Answer:
        """Return the answer of a question with one."""
        return self._put(self.algorithm(question, epsilon))

    def _put(self, algorithm: Algorithm) -> Answer:
        self._access.engine.check_unchanged()
        return self._access.session.ask(algorithm)

    def algorithm(
        self, question: Question, epsilon: float | None, reading: Callable[[Inquiry], Read] | None = None
    ) -> Algorithm:
        """Return what answers a question with one answer; refuse what cannot be asked.

        Args:
            question: the question.
            epsilon: of one computation; None for the table's.
            reading: how numbers are read; None for each by itself.
        """
        if not isinstance(question, Single):
            expected = "a question with one answer; ask a watch or a top by itself, with `ask`"
            raise InvalidParameter("question", question, expected)
        number, query = number_asked(question, self._schema), self.query(epsilon)

        def read(data: object) -> int:
            return reader(data)

        made = gauged(algorithm_of(question, number, query, read), number.gauge)
        record = Record.of(question, number)  # of a question that makes sense, or the line above refuses it
        reader = (reading or self._access.reader.one)(Inquiry(number, record, query))
        return replace(made, default_target=made.default_target or NotPrior(None), question=record.text())

    def tests(self, question: Watch | Top, epsilon: float | None) -> tuple[Batch, tuple[str, ...]]:
        """Return the tests of a batch by keys, and the names of the keys' columns."""
        return by_keys(question, self.query(epsilon), self._schema, self._access.reader)

    def each(self, tests: Batch) -> Iterator[Answer]:
        """Yield the answers of a battery as they leave."""
        self._access.engine.check_unchanged()
        yield from self._access.session.ask_each(tests)

    def all(self, tests: Batch) -> list[Answer]:
        """Return all answers of a battery.

        Raises:
            Stopped: with those before the budget was spent.
        """
        answers: list[Answer] = []
        try:
            answers.extend(self.each(tests))
        except BudgetSpent as error:
            raise Stopped(answers, error) from None
        except NotAllowed as error:  # such as data that was appended elsewhere meanwhile
            if not answers:
                raise
            raise Stopped(answers, error) from None
        return answers

    def many(self, asked: Sequence[Question]) -> Answers:
        """Return the answers of several questions, and what was not answered when the budget was spent."""
        if not isinstance(asked, list | tuple) or not asked:
            raise InvalidParameter("asked", asked, "a list of questions, made by tc.questions")
        alone = len(self._access.session.meters) == 1
        with self._access.reader.sharing() as reading:
            prepared = [self._prepared(run, reading) for run in (runs(asked) if alone else asked)]
            return self._answered(asked, prepared)

    def _answered(self, asked: Sequence[Question], prepared: list[Batch | Algorithm]) -> Answers:
        answers: list[Answer] = []
        for each in prepared:
            try:
                answers.extend(self.all(each) if isinstance(each, Batch) else [self._put(each)])
            except Stopped as stop:
                answers += stop.answers
                why = stop.why
            except (BudgetSpent, NotAllowed) as error:
                why = error
            else:
                continue
            if not answers:
                raise why
            return Answers(answers, ("question",), asked[len(answers) :], str(why))
        return Answers(answers, ("question",))

    def _prepared(self, run: list[Above] | Question, reading: Callable[[Inquiry], Read]) -> Batch | Algorithm:
        """Return what answers some questions; refuse what cannot be asked, before any of a batch is."""
        if isinstance(run, list):
            return together(run, self._access.epsilon, self._schema, self._access.reader)
        algorithm, session = self.algorithm(run, None, reading), self._access.session
        if algorithm.default_target is not None and len(session.meters) == 1:
            session.meter.quote(algorithm.default_target, algorithm.epsilon)
        return algorithm
