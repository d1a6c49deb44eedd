"""`tct describe`, `ask`, `watch` and `top`: the commands on tables."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from glob import has_magic
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast, final

import typer

import targetcharge as tc
from targetcharge.cli.asking import leaving, rehearsed, run, types_of
from targetcharge.cli.errors import Mistake, given_by, option, written_at
from targetcharge.cli.keys import KeyOptions, WrittenKeys
from targetcharge.cli.options import (
    CallOptions,
    Json,
    MaxHits,
    NumberOptions,
    OutputOptions,
    Source,
    TableOptions,
    given,
    grouped,
)
from targetcharge.cli.questions import Item, names_of, question_of, read_items, tolerance, what_of, whole
from targetcharge.cli.results import Checked, console, grid, is_new_hit
from targetcharge.errors import InvalidKey
from targetcharge.sessions.opening import MEMORY
from targetcharge.tables.numbers import grouped as grouped_counts
from targetcharge.tables.opening import TableOpening, ledger_place
from targetcharge.tables.questions import (
    Above,
    BetweenQuestion,
    CountQuestion,
    Quantiles,
    SideQuestion,
    Top,
    Watch,
)
from targetcharge.tables.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from targetcharge.errors import Refused
    from targetcharge.tables import Answers
    from targetcharge.tables.prepared import Prepared
    from targetcharge.tables.preview import Preview
    from targetcharge.tables.questions import Keyed, Single

_MOST_AT_ONCE: Final = 25  # questions that are asked together, as many as share a scan: Ctrl-C waits for no more

Where = Annotated[str | None, typer.Option(help='Which rows count, such as "late > 60".')]


def describe(
    source: Source,
    *,
    table: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a DuckDB file with several tables.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="COLUMN=KIND", help="What a CSV file's column is.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show a table's columns and what kind they are: what a question may name. No row is looked at.

    Types that are left out are those of the ledger beside the table, if there is one.
    """
    beside = None if has_magic(source) else ledger_place(source)
    known = Snapshots(beside if isinstance(beside, Path) else None, anew=True)
    known.declare(types_of(types), None, new_data=False)
    unasked = tc.Budget(1.0, 1e-6)  # nothing is asked, so it is spent on nothing and kept nowhere
    opening = TableOpening(
        source,
        tc.ROW,
        unasked,
        query_epsilon=0.05,
        meter="exact",
        ledger=MEMORY,
        table=table,
        types=known.types,
    )
    with rehearsed(opening, lambda opened: opened.describe().columns) as (_, columns):
        pass
    if as_json:
        typer.echo(json.dumps({"columns": dict(columns)}, indent=2))
    else:
        console().print(grid(["column", "kind"], columns))


@final
@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What costs, and what else a question is about."""

    threshold: Annotated[
        float | None, typer.Option(help="Publish the noisy number if it is at least this; that costs.")
    ] = None
    between: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="Publish below, between or above; between costs. --meter renyi."),
    ] = None
    side: Annotated[
        float | None, typer.Option(help="Publish the side of this number; too close to call costs. --meter renyi.")
    ] = None
    prior: Annotated[
        float | None, typer.Option(help="What was known: only a change costs. With --threshold or without.")
    ] = None
    tolerance: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", help="How far from --prior is no change; or a share: 20%."),
    ] = None
    distinct: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Count distinct values of this column. With --threshold.")
    ] = None
    per_unit: Annotated[
        int | None, typer.Option(help="With --distinct: the most values of one unit that count; 1.")
    ] = None
    questions: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Many questions, from a .csv or .yaml file.")
    ] = None


@grouped
def ask(
    source: Source,
    where: Annotated[
        str | None, typer.Argument(help='Which rows count, such as "age > 65"; all if left out.')
    ] = None,
    *,
    asked: QuestionOptions,
    max_hits: MaxHits = None,
    number: NumberOptions,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Ask a table a question, or many from a file; pay only for hits.

    Example: tct ask visits.parquet "age > 65" --threshold 1200 --unit patient --epsilon 3 --delta 1e-6

    A miss is free and no error, and so is what was published before.

    Exit codes: 2 mistake, 3 refused or budget spent, 4 ledger, 5 computation failed,
    7 table cannot be read, 130 Ctrl-C.
    """
    fields = given(asked, number, where=where)
    if "tolerance" in fields:
        fields["tolerance"] = tolerance("--tolerance", fields["tolerance"])
    file = fields.pop("questions", None)
    if file is None:
        question = question_of(fields, option)
        items = [Item(question, names=names_of(question, option), again=call.again)]
        if max_hits is not None:
            raise Mistake("--max-hits", "only with --questions: this is one question")
    elif fields:
        written = "WHERE" if where is not None else option(next(iter(fields)))
        raise Mistake(written, "not together with --questions: the file says it for each question")
    else:
        items = [item._replace(again=item.again or call.again) for item in read_items(file)]
    run(source, table, output, lambda opened: checked_items(opened, items, max_hits))


@grouped
def watch(
    source: Source,
    *,
    threshold: Annotated[
        float, typer.Option(help="Publish the noisy number of a key if it is at least this; that costs.")
    ],
    where: Where = None,
    max_hits: MaxHits = None,
    keys: KeyOptions,
    number: NumberOptions,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Test every declared key against a threshold, in one scan; pay only for the keys that reach it.

    Example: tct watch flights.parquet --where "late > 60" --by day --days 2013-01-01:2013-12-31 --threshold 150
    """
    what = what_of(given(number, where=where), option)
    declared = WrittenKeys.of(keys)
    question, again = tc.questions.watch(what, declared.by, None, whole(threshold)), call.again
    run(source, table, output, lambda opened: checked_keys(opened, declared, question, max_hits, again=again))


@grouped
def top(
    source: Source,
    *,
    k: Annotated[int, typer.Option("-k", min=1, help="How many keys to publish; each costs a hit.")] = 1,
    values: Annotated[
        bool, typer.Option("--values/--no-values", help="With their noisy numbers, or only the keys.")
    ] = True,
    where: Where = None,
    threshold: Annotated[float | None, typer.Option(help="Publish no number below this.")] = None,
    keys: KeyOptions,
    number: NumberOptions,
    call: CallOptions,
    table: TableOptions,
    output: OutputOptions,
) -> None:
    """Publish the k declared keys with the largest noisy numbers, best first, in one scan; each costs a hit.

    Example: tct top visits.parquet --by county --keys-file counties.csv -k 5
    """
    what = what_of(given(number, where=where), option)
    declared = WrittenKeys.of(keys)
    least = None if threshold is None else whole(threshold)
    question = tc.questions.top(what, declared.by, None, k, values=values, threshold=least)
    run(source, table, output, lambda opened: checked_keys(opened, declared, question, again=call.again))


def checked_items(table: tc.Table, items: Sequence[Item], max_hits: int | None = None) -> Checked:
    """Return questions with one answer each; a mistake in one of them names its place."""
    prepared, previews = zip(*(_checked_item(table, item) for item in items), strict=True)
    named = any(item.name for item in items)
    pairs = list(zip(items, prepared, strict=True))
    labels = [(item.name, question.name) if named else (question.name,) for item, question in pairs]
    heads = ("name", "question") if named else ("question",)
    asked = [(question, item.again) for item, question in pairs]

    def batches(opened: tc.Table) -> Iterator[Sequence[tc.Answer | None]]:
        return _batches(opened, asked, max_hits)

    def preview(opened: tc.Table) -> Sequence[Preview]:
        return [opened.preview(question) for question in prepared]

    facts, each = (previews, preview, batches, len(items), heads, labels), _hits_of(table, previews)
    return Checked(*facts, by_key=False, of_a_unit=each, max_hits=max_hits)


def _checked_item(table: tc.Table, item: Item) -> tuple[Prepared, Preview]:
    """Return a question and what it would cost; a mistake in it names its place."""
    with written_at(item.place), given_by(item.names):
        _check_meter(table, item.question)
        prepared = table.prepare(item.question)
        return prepared, table.preview(prepared)


def _check_meter(table: tc.Table, question: Single | Quantiles) -> None:
    """Refuse a question that the meter has no price for; say which has one."""
    tariff, problem, meter = table.meter.tariff, "", "renyi"
    if isinstance(question, BetweenQuestion | SideQuestion) and tariff.name != "renyi":
        problem = "only the Rényi meter has a price for between and side"
    elif isinstance(question, Above | CountQuestion) and question.prior is not None and tariff.at_least:
        problem = "with individual charging only the Rényi meter has a price for a prior"
        if tariff.name == "sparse":
            problem, meter = "a sparse meter has no price for a prior", "exact"
    if problem:
        keeps = "A ledger keeps its meter, so choose another --ledger if there is one already"
        msg = f"{problem}: ask with --meter {meter}. {keeps}"
        raise tc.NotAllowed(msg)


def _batches(
    table: tc.Table, asked: Sequence[tuple[Prepared, bool]], max_hits: int | None
) -> Iterator[Sequence[tc.Answer | None]]:
    """Ask counts above thresholds together, and the others one by one: an error loses no answer before it.

    Where the budget ends on the way, what is published of the others is told all the same.
    """
    left, refusal = max_hits, None
    for again, neighbours in groupby(asked, itemgetter(1)):
        for group in grouped_counts(question for question, _ in neighbours):
            for start in range(0, len(group), _MOST_AT_ONCE):
                some = group[start : start + _MOST_AT_ONCE]
                answers, refused = _asked(table, some, left, again=again)
                refusal = refusal or refused
                left = left if left is None else left - sum(map(is_new_hit, answers))
                yield answers
    if refusal is not None:
        raise refusal


def _asked(
    table: tc.Table, questions: Sequence[Prepared], max_hits: int | None, *, again: bool
) -> tuple[Sequence[tc.Answer | None], Refused | None]:
    """Return the answers to some questions, None for each that was not asked, and why not, if that was refused."""
    if isinstance(questions[0].question, Quantiles):
        if max_hits == 0 and not (table.preview(questions[0]).repeats and not again):
            return [None], None
        quantiles = table.ask_quantiles(questions[0], again=again)
        return [replace(answer, key=None) for answer in quantiles] or [None], quantiles.refusal
    answers = table.ask_many(questions, max_hits=max_hits, again=again)
    left, given = {id(question) for question in answers.unanswered}, iter(answers)
    return [None if id(question) in left else next(given) for question in questions], answers.refusal


def _at_once(answers: Answers) -> Iterator[Answers]:
    yield answers
    if answers.refusal is not None:
        raise answers.refusal


def checked_keys(
    table: tc.Table, keys: WrittenKeys, question: Keyed, max_hits: int | None = None, *, again: bool = False
) -> Checked:
    """Return a question about keys with these; a mistake in one of them names its place."""
    try:
        with given_by(names_of(question, option)):
            prepared = table.prepare(replace(question, keys=keys.typed(table)))
    except InvalidKey as error:
        raise keys.mistake(error) from None
    published = prepared.keys.published() if prepared.keys else ()
    labels = [key if isinstance(key, tuple) else (key,) for key in published]

    def preview(opened: tc.Table) -> Sequence[Preview]:
        return [opened.preview(prepared)]

    def batches(opened: tc.Table) -> Iterator[Sequence[tc.Answer]]:
        if isinstance(question, Watch):
            return leaving(opened.iter_ask(prepared, max_hits=max_hits, again=again))
        return _at_once(cast("Answers", opened.ask(prepared, again=again)))

    k, selects = question.k if isinstance(question, Top) else 0, not isinstance(question, Watch)
    previews = preview(table)
    most, each = k or len(labels), (k or 1) * _hits_of(table, previews)
    facts = previews, preview, batches, most, keys.by, labels
    return Checked(*facts, by_key=True, selects=selects, of_a_unit=each, max_hits=max_hits)


def _hits_of(table: tc.Table, previews: Sequence[Preview]) -> int:
    """Return how many hits of the declared kind the dearest hit of some questions is."""
    dearest = max(preview.price for preview in previews)
    return max(1, math.ceil(round(dearest / table.meter.tariff.typical.value, 9)))
