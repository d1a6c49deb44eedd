"""Answers: what a batch published, in the order of its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, cast, final, overload

from targetcharge import checks, markup
from targetcharge.errors import BudgetSpent, InvalidParameter, NotAllowed, Refused
from targetcharge.frames import Columns, Type
from targetcharge.ledger import Answer, words
from targetcharge.outcomes import with_nulls
from targetcharge.tables.column_types import ColumnTypes

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from targetcharge.mechanisms.accuracy import Accuracy
    from targetcharge.tables.difference import Difference

    Compare = Callable[[Answer, Answer], Difference]

_SHOWN = 50
_LISTED = 3
_OTHERS = ("outcome", "text", "hit", "low", "high", "scale", "seq", "repeat")


@final
class Answers(Sequence["Answer"]):
    """A list of answers that knows its hits.

    Attributes:
        unanswered: the keys (or questions) that were not answered, as they are published.
        refusal: why not, if that was refused; None if all were answered, or as many hits as were wanted.
    """

    def __init__(
        self,
        answers: Sequence[Answer],
        types: ColumnTypes = ColumnTypes(),  # noqa: B008 - frozen
        unanswered: Sequence[object] = (),
        refusal: Refused | None = None,
        compare: Compare | None = None,
        stopped: str = "",
    ) -> None:
        """Hold answers with columns of these types.

        Args:
            answers: in the order of what was asked.
            types: of the columns.
            unanswered: the keys (or questions) that were not answered.
            refusal: why not, if that was refused.
            compare: tells how two answers differ.
            stopped: why not, in a sentence; left out for what the refusal says.
        """
        self._answers = tuple(answers)
        self._types = types
        self._compare = compare
        self.unanswered = tuple(unanswered)
        self.refusal = refusal
        self._stopped = stopped

    @property
    def stopped(self) -> str:
        """Return why not all keys were answered, in a sentence; empty if they were."""
        return self._stopped or ("" if self.refusal is None else str(self.refusal))

    @property
    def hits(self) -> list[Answer]:
        """Return the answers that hit, repeats among them."""
        return [answer for answer in self._answers if answer.hit]

    def difference(self, first: object, second: object) -> Difference:
        """Return how much larger the number of one key is than that of another.

        Where all answers of a table carry a secret offset, a part of their errors is the same in all: here it
        cancels out.

        Args:
            first: a key of these answers, as it is published, or an answer.
            second: another.

        Raises:
            InvalidParameter: if there is no published number for one of them.
            NotAllowed: if a unit may add more to one than to the other.
        """
        if self._compare is None:
            msg = "these answers have no table any more: compare them with `Table.difference`"
            raise NotAllowed(msg)
        return self._compare(self._answer("first", first), self._answer("second", second))

    def __getstate__(self) -> dict[str, object]:
        """Return what is kept of a copy: all but the table, which cannot be copied."""
        return {**vars(self), "_compare": None}

    def _answer(self, name: str, wanted: object) -> Answer:
        """Return the answer of a key, or one that was given."""
        for answer in self._answers:
            if answer is wanted or (answer.key is not None and answer.key == wanted):
                return answer
        raise InvalidParameter(name, wanted, "one of these answers, or the key of one")

    def __len__(self) -> int:
        """Return how many were answered."""
        return len(self._answers)

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Answer]: ...

    def __getitem__(self, index: int | slice) -> Answer | Sequence[Answer]:
        """Return one answer, or some."""
        return self._answers[index]

    def columns(self) -> dict[str, list[object]]:
        """Return the answers by column: the keys', then outcome, hit, low, high, scale, seq and repeat.

        Answers of `ask_many`, which may be "unchanged" or "above" instead of a number, have a column `text` for
        that after the outcome. A column of keys that is called like one of these gets an underscore.
        """
        return self._columns().values()

    def _columns(self) -> Columns:
        types, answers = self._types, self._answers
        keys = [tuple(map(with_nulls, _key(answer))) for answer in answers]
        ends = [answer.interval or (None, None) for answer in answers]
        outcomes = [_plain(answer.outcome) for answer in answers]
        texts: list[object] = [outcome if isinstance(outcome, str) else None for outcome in outcomes]
        numbers = [None if isinstance(outcome, str) else outcome for outcome in outcomes]
        typed: dict[str, tuple[Type, list[object]]] = {
            name: (kind, [key[place] for key in keys])
            for place, (name, kind) in enumerate(zip(_different(types.by), types.keys, strict=True))
        }
        return Columns(
            {
                **typed,
                "outcome": (types.number, numbers),
                **({"text": (Type.TEXT, texts)} if types.marks else {}),
                "hit": (Type.BOOLEAN, [answer.hit for answer in answers]),
                "low": (types.number, [low for low, _ in ends]),
                "high": (types.number, [high for _, high in ends]),
                "scale": (Type.NUMBER, [answer.scale for answer in answers]),
                "seq": (Type.INTEGER, [answer.seq for answer in answers]),
                "repeat": (Type.BOOLEAN, [answer.repeat for answer in answers]),
            }
        )

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame; its types follow from what was asked, whatever came of it."""
        return self._columns().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame; its types follow from what was asked, whatever came of it."""
        return self._columns().to_polars()

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table; its types follow from what was asked, whatever came of it."""
        return self._columns().to_arrow()

    def __repr__(self) -> str:
        """Return how it went; public."""
        return f"<{self._counted()}{self._whose()}{self._left_out()}>"

    def __str__(self) -> str:
        """Return what was asked, the first hits with their outcomes, and the cost, in a line."""
        names = list(dict.fromkeys(answer.algorithm for answer in self._answers))
        asked = f"{names[0]}: " if len(names) == 1 else ""
        whose = "" if asked else self._whose()  # else the name of the question says it
        cost = sum(answer.price for answer in self._answers)
        paid = f", price {cost:.4g}" if cost else ", free"
        hits = [f"{_about(answer)} {words.outcome(answer)}" for answer in self.hits[:_LISTED]]
        more = f" and {len(self.hits) - _LISTED:,} more" if len(self.hits) > _LISTED else ""
        listed = f" ({'; '.join(hits)}{more})" if hits else ""
        return f"{asked}{self._counted()}{whose}{listed}{paid}{self._left_out()}"

    def _counted(self) -> str:
        hits = {answer.seq: answer.repeat for answer in self.hits}  # all numbers of a histogram are one
        before = f", {repeats:,} of them published before" if (repeats := sum(hits.values())) else ""
        return f"{markup.counted(len(self), 'answer')}, {markup.counted(len(hits), 'hit')}{before}"

    def _whose(self) -> str:
        return f", {self._types.whose}" if self._types.whose else ""

    def _left_out(self) -> str:
        return f"; {len(self.unanswered):,} not answered: {self.stopped}" if self.stopped else ""

    def _repr_html_(self) -> str:
        """Return the hits as a table."""
        shown = self.hits[:_SHOWN]
        rows = [[_about(answer), words.outcome(answer), markup.interval(answer.interval)] for answer in shown]
        more = f", {len(self.hits) - _SHOWN:,} of them not shown" if len(self.hits) > _SHOWN else ""
        caption = f"{self._counted()}{self._whose()}{more}. {self.stopped}".strip()
        return markup.table([", ".join(self._types.by), "noisy value", "95% interval"], rows, caption)


Part = tuple[Sequence["Answer | None"], Iterator["Answer"]]
"""Questions in a row: the repeat of each that was published, and the answers to the others as they leave."""


@final
class LazyAnswers(Iterator["Answer"]):
    """Answers as they leave, one by one.

    Attributes:
        refusal: why not all were asked; None if they were, or may still be.
    """

    def __init__(
        self,
        parts: Iterator[Part],
        types: ColumnTypes,
        asked: Sequence[object],
        compare: Compare | None = None,
        max_hits: int | None = None,
    ) -> None:
        """Ask for answers with columns of these types.

        Args:
            parts: of what is asked. BudgetSpent ends the asking, and NotAllowed does after the first answer;
                repeats are given all the same.
            types: of the columns of the answers.
            asked: the keys (or questions), one for each answer.
            compare: tells how two answers differ.
            max_hits: how many hits that are no repeats end the asking; None for any number.
        """
        self._answers = self._run(parts)
        self._compare = compare
        self._types = types
        self._asked = asked
        self._count = 0
        self._skipped: list[object] = []
        self._max_hits = max_hits if max_hits is None else checks.integer(max_hits, "max_hits", 0, checks.MAX_HITS)
        self._hits_left = self._max_hits
        self.refusal: Refused | None = None

    def _run(self, parts: Iterator[Part]) -> Iterator[Answer]:
        for repeats, answers in parts:
            for repeat in repeats:
                answer = self._asked_anew(answers) if repeat is None else repeat
                if answer is None:
                    self._skipped.append(self._asked[self._count])
                self._count += 1
                if answer is not None:
                    yield answer

    def _asked_anew(self, answers: Iterator[Answer]) -> Answer | None:
        """Return the next answer; None if no more are asked for."""
        if self.refusal is not None or self._hits_left == 0:
            return None
        try:
            answer = next(answers)
        except BudgetSpent as spent:
            self.refusal = spent.with_traceback(None)
            return None
        except NotAllowed as refusal:  # such as data that was appended elsewhere meanwhile
            if not self._count:
                raise
            self.refusal = refusal.with_traceback(None)
            return None
        if self._hits_left is not None and answer.hit:
            self._hits_left -= 1
        return answer

    def __next__(self) -> Answer:
        """Return the next answer."""
        return next(self._answers)

    @property
    def stopped(self) -> str:
        """Return why not all keys were answered, in a sentence; empty if they were, or may still be."""
        if self.refusal is not None:
            return str(self.refusal)
        return enough(self._max_hits) if self._max_hits is not None and self._skipped else ""

    @property
    def unanswered(self) -> tuple[object, ...]:
        """Return the keys (or questions) that were not answered, as they are published."""
        return (*self._skipped, *self._asked[self._count :])

    def all(self) -> Answers:
        """Return all answers that are left."""
        answers = list(self)
        return Answers(answers, self._types, self.unanswered, self.refusal, self._compare, self.stopped)


def enough(max_hits: int) -> str:
    """Return that the asking ended after as many new hits as were wanted, as a sentence."""
    return f"stopped after {markup.counted(max_hits, 'new hit')}, as many as were wanted"


def of_keys(answer: Answer, keys: Sequence[object], accuracy: Accuracy | None) -> list[Answer]:
    """Return an answer with the numbers of many keys as an answer for each key: the first one has its price."""
    common = {name: getattr(answer, name) for name in Answer.__slots__}  # by hand: `replace` takes twice as long
    free = common | {"price": 0.0, "grains": (0,) * len(answer.grains)}
    numbers = zip(keys, cast("tuple[object, ...]", answer.outcome), strict=True)
    return [
        Answer(
            **(free if place else common)
            | {"key": key, "outcome": number, "interval": None if accuracy is None else accuracy.interval(number)}
        )
        for place, (key, number) in enumerate(numbers)
    ]


def _key(answer: Answer) -> tuple[object, ...]:
    """Return a key's values, one for each column; of a question in a batch, its words."""
    key = answer.algorithm if answer.key is None else answer.key
    return key if isinstance(key, tuple) else (key,)


def _different(names: Sequence[str]) -> list[str]:
    """Return names that are all different, also from those of the other columns."""
    different: list[str] = []
    for name in names:
        while name in (*_OTHERS, *different):
            name += "_"  # noqa: PLW2901 - until it is free
        different.append(name)
    return different


def _plain(outcome: object) -> object:
    return outcome.value if isinstance(outcome, Enum) else outcome


def _about(answer: Answer) -> str:
    """Return the key that an answer is about; of a question in a batch, its words."""
    return words.key(answer) or answer.algorithm
