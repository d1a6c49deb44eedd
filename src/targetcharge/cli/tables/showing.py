"""Showing: results and previews on the standard output; notes on the error stream."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from targetcharge import markup
from targetcharge.cli.exits import INTERRUPTED
from targetcharge.cli.mistakes import Mistake
from targetcharge.cli.tables.results import COLUMNS
from targetcharge.outcomes import BOUNDARY, UNCHANGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import targetcharge as tc
    from targetcharge.cli.tables.options import OutputOptions
    from targetcharge.cli.tables.results import Results
    from targetcharge.tables.previewing import Preview

_WIDE: Final = 100_000
_MOST_LISTED: Final = 20


def console() -> Console:
    """Return the standard output; if it is no terminal, as wide as its tables."""
    found = Console(highlight=False, markup=False, soft_wrap=False)
    return found if found.is_terminal else Console(highlight=False, markup=False, width=_WIDE)


def grid(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    """Return a table whose cells are folded where they must be, and never cut."""
    table = Table(*(Column(Text(head), overflow="fold") for head in heads))
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def check_output(output: OutputOptions) -> None:
    """Refuse two formats at once.

    Raises:
        Mistake: if there are two.
    """
    if output.as_json and output.as_csv:
        raise Mistake("--json", "not together with --csv")
    if output.preview and output.as_csv:
        raise Mistake("--preview", "not together with --csv: a preview is text, or JSON")


def show(results: Results, output: OutputOptions) -> None:
    """Print what was answered, and what was not; then end as the asking ended.

    Raises:
        TargetChargeError: what ended the asking early.
        typer.Exit: if Ctrl-C did.
    """
    if output.as_json:
        typer.echo(json.dumps(results.plain(), indent=2))
    elif output.as_csv:
        typer.echo(_csv(results), nl=False)
    else:
        _show(results)
    _end(results)


def _end(results: Results) -> None:
    outcome = results.outcome
    if outcome.error is not None:
        raise outcome.error
    if outcome.interrupted:
        hits = sum(answer.hit for answer in outcome.answers)
        many = counted(len(outcome.answers), "answer")
        told = f"tct: {outcome.stopped}: {counted(hits, 'hit')} of {many} published"
        more = f"; what was paid for and is not shown is in {results.ledger}" if outcome.hurried else ""
        typer.echo(f"{told} and paid for{more}", err=True)
        raise typer.Exit(INTERRUPTED)


def _csv(results: Results) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*results.heads, *COLUMNS])
    writer.writerows([_plain(cell) for cell in row] for row in results.rows())
    return text.getvalue()


def _plain(cell: object) -> object:
    return str(cell).lower() if isinstance(cell, bool) else cell


def _show(results: Results) -> None:
    out, answers = console(), results.outcome.answers
    if results.by_key:
        _show_keys(out, results)
    elif len(answers) == 1 and not results.unanswered and not results.names:
        out.print(f"{answers[0].algorithm}: {_sentence(answers[0])}")
    elif answers:
        rows = [[*map(str, results.label(index)), *_words(answer)] for index, answer in enumerate(answers)]
        out.print(grid([*results.heads, "answer", "95% interval", "cost"], rows))
    if results.unanswered:
        out.print(f"not answered: {listed([_shown(label) for label in results.unanswered])}")
    if answers or results.unanswered or not results.outcome.stopped:
        out.print(_closing(results))


def _show_keys(out: Console, results: Results) -> None:
    answers = results.outcome.answers
    hits = [(results.label(index), answer) for index, answer in enumerate(answers) if answer.hit]
    if answers:
        out.print(answers[0].algorithm)
    if hits:
        out.print(
            grid(
                [*results.heads, "noisy value", "95% interval"],
                [[*map(str, label), *_words(answer)[:2]] for label, answer in hits],
            )
        )
    elif answers or not results.outcome.stopped:
        out.print("no key reached the threshold")


def _words(answer: tc.Answer) -> tuple[str, str, str]:
    """Return answer, interval and cost."""
    cost = f"{answer.price:.4g}" if answer.hit else "free"
    return outcome_in_words(answer), markup.interval(answer.interval), cost


def _sentence(answer: tc.Answer) -> str:
    said, interval, cost = _words(answer)
    wide = f" (95% interval: {interval})" if interval else ""
    return f"{said}{wide}, {'a hit, which costs ' + cost if answer.hit else 'free'}"


def outcome_in_words(answer: tc.Answer) -> str:
    """Return what an answer says.

    >>> import targetcharge as tc
    >>> outcome_in_words(tc.Answer(2003, True, 1.0, 1)), outcome_in_words(tc.Answer(None, False, 0.0, 2))
    ('2,003', 'below the threshold')
    """
    if answer.outcome is None:
        return "below the threshold"
    if answer.outcome is BOUNDARY:
        return "too close to call"
    if answer.outcome is UNCHANGED:
        return f"unchanged from {markup.number(answer.prior)}"
    return markup.number(answer.outcome)


def _closing(results: Results) -> str:
    standing: dict[str, Any] = results.standing
    answers, budget = results.outcome.answers, standing["guarantee"]
    hits = sum(answer.hit for answer in answers)
    left = "" if standing["hits_left"] is None else f", {counted(standing['hits_left'], 'hit')} left"
    if standing["charging"] == "individual":
        left = f"; each unit takes part in {counted(standing['hits_left'], 'hit')} at most"
    return (
        f"{len(answers):,} answered, {counted(hits, 'hit')}{left}."
        f" All that is ever published with {results.ledger} is"
        f" ({budget['epsilon']:g}, {budget['delta']:g})-differentially private for {standing['unit']}."
    )


def counted(number: int, what: str) -> str:
    """Return how many there are of something.

    >>> counted(1, "hit"), counted(2000, "hit")
    ('1 hit', '2,000 hits')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _shown(label: Sequence[object]) -> str:
    return " ".join(str(part) for part in label if part != "")


def listed(parts: Sequence[str]) -> str:
    """Return the first few of many, and how many more there are."""
    more = f" and {len(parts) - _MOST_LISTED:,} more" if len(parts) > _MOST_LISTED else ""
    return ", ".join(parts[:_MOST_LISTED]) + more


def show_previews(previews: Sequence[Preview], output: OutputOptions) -> None:
    """Print what questions would cost and how well they would work."""
    if output.as_json:
        typer.echo(json.dumps([preview.as_dict() for preview in previews], indent=2))
        return
    out = console()
    for number, preview in enumerate(previews):
        out.print(*([""] if number else []), str(preview), sep="\n")


def note(sentence: str) -> None:
    """Tell something on the error stream that is no answer."""
    typer.echo(f"tct: {sentence}", err=True)
