"""Results: what came of asking, as plain data, as rows, and for people on the standard output; and previews."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, final

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from targetcharge import markup
from targetcharge.cli.errors import INTERRUPTED, sentence
from targetcharge.cli.words import listed
from targetcharge.errors import TargetChargeError
from targetcharge.ledger import Unit, words
from targetcharge.markup import counted
from targetcharge.outcomes import with_nulls
from targetcharge.tables.answers import enough
from targetcharge.tables.individual.departures import in_words
from targetcharge.tables.prepared import TAKING_PART

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import targetcharge as tc
    from targetcharge.cli.options import OutputOptions
    from targetcharge.tables.description import Description
    from targetcharge.tables.preview import MarginOf, Preview

_COLUMNS: Final = ("outcome", "hit", "price", "low", "high", "scale", "seq", "repeat")
_WIDE: Final = 100_000

_NOTHING: Final = frozenset((words.PICKED, ""))
"""What a column of outcomes or intervals says of keys that were only picked."""

_ERRORS: Final[dict[MarginOf, str]] = {
    "rank": "at most {} units from the rank that was asked for, in 95% of draws",
    "beside the best": "at most {} below the best that was left, in 95% of picks",
}
"""How far off answers are that have no intervals, by what their preview says of it."""


@final
@dataclass(frozen=True)
class Checked:
    """Questions that were checked against a table, and not asked yet.

    Attributes:
        previews: of each question; of one about keys, of all of them.
        preview: tells them of a table with a ledger, which knows what is published.
        batches: asks a table for them, and yields answers that leave together; None for a question that was not
            asked, if they are not about keys.
        most: how many answers there will be at most.
        heads: what tells questions apart: ("question",), ("name", "question"), or the columns of the keys.
        labels: of each question a value for each head.
        by_key: whether the heads are the columns of keys.
        selects: whether only the best of the questions are answered, as by a top.
        of_a_unit: the most hits that one of the questions may charge a unit.
        max_hits: how many new hits end the asking; None for any number.
    """

    previews: Sequence[Preview]
    preview: Callable[[tc.Table], Sequence[Preview]]
    batches: Callable[[tc.Table], Iterable[Sequence[tc.Answer | None]]]
    most: int
    heads: tuple[str, ...]
    labels: Sequence[tuple[object, ...]]
    by_key: bool
    selects: bool = False
    of_a_unit: int = 1
    max_hits: int | None = None


@final
@dataclass(frozen=True)
class Results:
    """What came of asking.

    Attributes:
        gathered: the answers in order; None for a question that was not asked, if they are not about keys.
        checked: what was asked.
        standing: of the meter, as plain data.
        error: what ended the asking early; None if nothing or Ctrl-C did.
        hurried: whether Ctrl-C was pressed twice: then the ledger may hold more than the answers.
    """

    gathered: Sequence[tc.Answer | None]
    checked: Checked
    standing: dict[str, Any]
    ledger: str
    error: TargetChargeError | None = None
    interrupted: bool = False
    hurried: bool = False

    @property
    def stopped(self) -> str:
        """Return why the asking ended early; empty if it did not."""
        if self.interrupted:
            return "stopped by Ctrl-C"
        if self.error is None and self.unanswered and self.checked.max_hits is not None:
            return enough(self.checked.max_hits)
        return "" if self.error is None else sentence(self.error)

    @property
    def answers(self) -> Sequence[tc.Answer]:
        """Return the answers in order."""
        return [answer for answer in self.gathered if answer is not None]

    @property
    def unanswered(self) -> Sequence[tuple[object, ...]]:
        """Return a value for each head of every question without an answer."""
        labels = self.checked.labels
        if self.checked.selects:
            return () if self.answers or (self.error is None and not self.interrupted) else labels
        if self.checked.by_key:
            known = {answer.key for answer in self.answers}
            return [label for label in labels if (label if len(label) > 1 else label[0]) not in known]
        return [label for place, label in enumerate(labels) if self._given(place) is None]

    def _given(self, place: int) -> tc.Answer | None:
        return self.gathered[place] if place < len(self.gathered) else None

    @property
    def hits(self) -> int:
        """Return how many answers cost; all numbers of a histogram are one, and repeats none."""
        return len({answer.seq for answer in self.answers if is_new_hit(answer)})

    def labels(self) -> list[tuple[object, ...]]:
        """Return a value for each head of every answer."""
        if self.checked.by_key:
            return [answer.key if isinstance(answer.key, tuple) else (answer.key,) for answer in self.answers]
        pairs = zip(self.checked.labels, self.gathered, strict=False)
        return [(*label[:-1], answer.algorithm) for label, answer in pairs if answer is not None]

    def plain(self) -> dict[str, object]:
        """Return plain data."""
        by_key, heads = self.checked.by_key, self.checked.heads
        answers = [
            {
                **({} if by_key or len(heads) == 1 else {"name": label[0]}),
                "question": answer.algorithm,
                "key": with_nulls(answer.key),
                "outcome": _plain_outcome(answer.outcome),
                **{name: getattr(answer, name) for name in ("hit", "price", "interval", "scale", "seq", "repeat")},
            }
            for label, answer in zip(self.labels(), self.answers, strict=True)
        ]
        return {
            **({"by": list(heads)} if by_key else {}),
            "answers": answers,
            "unanswered": [with_nulls(label[0] if len(label) == 1 else label) for label in self.unanswered],
            "stopped": self.stopped or None,
            "meter": self.standing,
            "ledger": self.ledger,
        }

    def csv(self) -> str:
        """Return all answers and then what was not answered, which has no seq, as CSV."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        rows: list[tuple[object, ...]] = [(*self.checked.heads, *_COLUMNS)]
        for label, answer in zip(self.labels(), self.answers, strict=True):
            cost, ends = (answer.hit, answer.price), answer.interval or (None, None)
            facts = answer.scale, answer.seq, answer.repeat
            rows.append((*label, _plain_outcome(answer.outcome), *cost, *ends, *facts))
        rows += [(*label, *[None] * len(_COLUMNS)) for label in self.unanswered]
        for row in rows:
            cells = map(with_nulls, row)
            writer.writerow([str(cell).lower() if isinstance(cell, bool) else cell for cell in cells])
        return text.getvalue()


def is_new_hit(answer: tc.Answer | None) -> bool:
    """Return whether an answer cost something now: it is a hit, and was not published before."""
    return answer is not None and answer.hit and not answer.repeat


def _plain_outcome(outcome: object) -> object:
    """Return an outcome as plain data: marks and sides as words."""
    return outcome.value if isinstance(outcome, Enum) else outcome


def standing(table: tc.Table, described: Description, of_a_unit: int) -> dict[str, Any]:
    """Return how the meter stands, as plain data; without hits if the ledger cannot be read any more."""
    try:
        hits: tuple[int | None, int | None] = table.meter.hits, table.meter.hits_left
        left = table.may_have_left(of_a_unit) if described.charging == "individual" else 0
    except TargetChargeError:
        hits, left = (None, None), None
    return {
        "unit": described.unit.plain(),
        **{name: getattr(described, name) for name in ("meter", "charging", "query_epsilon")},
        "guarantee": {"epsilon": described.budget.epsilon, "delta": described.budget.delta},
        "hits": hits[0],
        "hits_left": hits[1],
        **({"may_have_left": left} if described.charging == "individual" else {}),
    }


def console() -> Console:
    """Return the standard output; if it is no terminal, as wide as its tables."""
    out = Console(highlight=False, markup=False, soft_wrap=False)
    return out if out.is_terminal else Console(highlight=False, markup=False, width=_WIDE)


def note(text: str) -> None:
    """Tell something on the error stream that is no answer."""
    typer.echo(f"tct: {text}", err=True)


def grid(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table whose cells are folded where they must be, and never cut."""
    table = Table(*(Column(Text(head), overflow="fold") for head in heads))
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def show_previews(previews: Sequence[Preview], output: OutputOptions) -> None:
    """Print what questions would cost and how well they would work."""
    if output.as_json:
        typer.echo(json.dumps([preview.as_dict() for preview in previews], indent=2))
    else:
        console().print("\n\n".join(map(str, previews)))


def show(results: Results, output: OutputOptions) -> None:
    """Print what was answered, and what was not; then end as the asking ended: with its error, or a code."""
    if output.as_json:
        typer.echo(json.dumps(results.plain(), indent=2))
    elif output.as_csv:
        typer.echo(results.csv(), nl=False)
        if whose := _whose(results.standing):
            note(whose.strip())
    else:
        _show(results)
    if results.error is not None:
        raise results.error
    if results.interrupted:
        published = f"{counted(results.hits, 'hit')} of {counted(len(results.answers), 'answer')} published"
        more = f"; what was paid for and is not shown is in {results.ledger}" if results.hurried else ""
        note(f"{results.stopped}: {published} and paid for{more}")
        raise typer.Exit(INTERRUPTED)
    if results.stopped:
        note(results.stopped)


def _show(results: Results) -> None:
    out, answers = console(), results.answers
    pairs = zip(results.labels(), answers, strict=True)
    rows = [(answer, [*map(str, label), *_words(answer)]) for label, answer in pairs]
    if results.checked.by_key:
        _show_keys(results, [row for answer, row in rows if answer.hit], out)
    elif len(answers) == 1 and not results.unanswered and len(results.checked.heads) == 1:
        out.print(str(answers[0]))
    elif answers:
        out.print(grid([*results.checked.heads, "answer", "95% interval", "cost"], [row for _, row in rows]))
    if results.unanswered:
        shown = [" ".join(str(part) for part in label if part != "") for label in results.unanswered]
        out.print(f"not answered: {listed(shown)}")
    if answers or results.unanswered or not results.stopped:
        out.print(_closing(results))


def _show_keys(results: Results, hits: list[list[str]], out: Console) -> None:
    """Print what was asked of all keys, and those that hit: a row each. Columns that say nothing are left out."""
    answers, (preview,) = results.answers, results.checked.previews
    if answers:
        names = {answer.algorithm for answer in answers}
        out.print(answers[0].algorithm if len(names) == 1 else preview.question)
    if hits:
        if not any(answer.repeat for answer in answers):
            hits = [row[:-1] for row in hits]
        heads = [*results.checked.heads, "noisy value", "95% interval", "cost"][: len(hits[0])]
        columns = [column for column in zip(heads, *hits, strict=True) if not _NOTHING.issuperset(column[1:])]
        out.print(grid([head for head, *_ in columns], zip(*(cells for _, *cells in columns), strict=True)))
        if preview.margin_of in _ERRORS and not any(answer.interval for answer in answers):
            out.print(_ERRORS[preview.margin_of].format(markup.number(preview.margin)))
    elif answers or not results.stopped:
        out.print("no key reached the threshold")


def _words(answer: tc.Answer) -> tuple[str, str, str]:
    """Return answer, interval and cost."""
    cost = f"{answer.price:.4g}" if is_new_hit(answer) else words.REPEAT if answer.repeat else "free"
    return words.outcome(answer), markup.interval(answer.interval), cost


def _closing(results: Results) -> str:
    standing, budget = results.standing, results.standing["guarantee"]
    left = "" if standing["hits_left"] is None else f", {counted(standing['hits_left'], 'hit')} left"
    if standing["charging"] == "individual":
        left = ""
    hits = f"{counted(results.hits, 'hit')}{_price(results)}{_before(results)}"
    return (
        f"{len(results.answers):,} answered, {hits}{left}.{_whose(standing)}"
        f" All that is ever published with {results.ledger} is"
        f" ({budget['epsilon']:g}, {budget['delta']:g})-differentially private for {Unit(**standing['unit'])}."
    )


def _whose(standing: dict[str, Any]) -> str:
    """Return whom the numbers are about where each unit has a budget of its own, as a sentence; else nothing."""
    if standing["charging"] != "individual" or standing["hits_left"] is None:
        return ""
    each, departed = counted(standing["hits_left"], "hit"), in_words(standing["may_have_left"])
    return f" Each unit takes part in {each} at most, and numbers are {TAKING_PART}; {departed}."


def _before(results: Results) -> str:
    """Return how many answers were published before, if any were."""
    repeats = len({answer.seq for answer in results.answers if answer.repeat})
    return f", {repeats:,} published before" if repeats else ""


def _price(results: Results) -> str:
    """Return what hits of keys cost, if not one of the meter's each; of other questions it is told already."""
    costs = sorted({f"{answer.price:.4g}" for answer in results.answers if answer.price})
    if not results.checked.by_key or costs in ([], ["1"]):
        return ""
    cost = " or ".join(costs)
    return f", which costs {cost}" if results.hits == 1 else f", which cost {cost} each"
