"""`tct report`: one HTML page that needs nothing else. It loads nothing and runs nothing: browsers are told so.

Its words are in `templates/`. What is not markup there becomes text: every value is escaped.

>>> text("a" + chr(0) + "<") == chr(92).join(["a", "x00<"])
True
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from targetcharge import __version__, markup
from targetcharge.cli import words
from targetcharge.cli.errors import Mistake
from targetcharge.cli.ledger import TableOrLedger, ledger_of
from targetcharge.cli.report.accountings import OpenedMeter
from targetcharge.cli.report.charts import curve, timeline
from targetcharge.cli.report.history import about, read_history
from targetcharge.cli.results import note
from targetcharge.errors import LedgerError, TargetChargeError
from targetcharge.ledger.words import outcome
from targetcharge.mechanisms.noise import CONFIDENCE
from targetcharge.numerics.rounding import from_grains
from targetcharge.tables.individual.departures import in_words
from targetcharge.tables.prepared import TAKING_PART

if TYPE_CHECKING:
    from jinja2 import Environment

    from targetcharge.cli.report.history import History

_STANDARD: Final = Path("-")
_OPTION: Final = "--output"
_MOST_QUESTIONS: Final = 100
_MOST_SCALES: Final = 6
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Controls, halves of characters, and marks that turn the text around them: shown by their number instead."""


def report(
    file: TableOrLedger,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            help="The page, or - for the standard output. Left out: named as the ledger, in this folder.",
            show_default=False,
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
) -> None:
    """Write one HTML page about a ledger: guarantee, questions, hits, meter, what the noise means.

    It loads nothing, and holds public facts only: the table is not opened, pending outcomes are not read.
    """
    ledger = ledger_of(file)
    history = read_history(ledger)
    stem = ledger.name.removesuffix(".db").removesuffix(".ledger") or ledger.name
    place = Path(f"{stem}.report.html") if output is None else output
    if place != _STANDARD:
        _check(place, signature(history.inspection.state.ledger).encode())
    html = page(history, time.time())
    if place == _STANDARD:
        typer.echo(html, nl=False)
    else:
        _write(place, html)
        contents = history.contents
        typer.echo(
            f"{place}: {markup.counted(contents.answers, 'answer')}, {markup.counted(contents.hits, 'hit')}"
        )
        if show and typer.launch(str(place.resolve())):
            note(f"no browser was found: open {place} yourself")
    if history.problem:
        msg = f"{history.problem.rstrip('.')}. The report says so"
        raise LedgerError(msg)


def _check(output: Path, signature: bytes) -> None:
    """Refuse a place that holds anything but what begins with the signature of a page about the same ledger."""
    if not output.parent.is_dir():
        raise Mistake(_OPTION, f"there is no folder {output.parent}")
    if not os.path.lexists(output):
        return
    if not output.is_file():
        raise Mistake(_OPTION, f"{output} is no file that a report could replace: name another")
    try:
        with output.open("rb") as opened:
            begin = opened.read(len(signature))
    except OSError as error:
        raise Mistake(_OPTION, f"{output} cannot be read ({error.strerror})") from None
    if begin != signature:
        raise Mistake(_OPTION, f"{output} is no earlier report on this ledger: remove it, or name another file")


def _write(output: Path, page: str) -> None:
    """Write the page, as a whole or not at all."""
    target = output.resolve()
    made = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with made.open("x", encoding="utf-8", newline="\n") as opened:
            opened.write(page)
        os.replace(made, target)  # noqa: PTH105 - a test lets it fail
    except OSError as error:
        with suppress(OSError):
            made.unlink()
        raise Mistake(_OPTION, f"{output} cannot be written ({error.strerror})") from None


def text(value: object) -> object:
    """Return anything as harmless text, to be escaped; markup as it is."""
    if hasattr(value, "__html__"):
        return value
    return _HARMFUL.sub(lambda mark: mark[0].encode("unicode_escape").decode(), str(value))


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - other commands need none of it

    made = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    numbers = (words.small, words.times, words.epsilon, words.chance, words.share, words.several, words.moment)
    others = (outcome, about, markup.counted, markup.cut, markup.number, markup.interval)
    made.filters |= {function.__name__: function for function in (*numbers, *others)}
    return made


def signature(ledger: str) -> str:
    """Return what the page of a ledger with this id begins with, and nothing else does."""
    return _templates().get_template("signature.html").render(identity=ledger)


def page(history: History, written: float) -> str:
    """Return the page about a ledger; an error if it is known to be damaged, and holds what no ledger does.

    When it is written, in seconds since 1970, is the only thing on it that the ledger does not decide.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 - as above

    try:
        return _templates().get_template("page.html").render(**_values(history), written=written)
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, TemplateError):
        if not history.problem:
            raise
    raise LedgerError(history.problem)


def _values(history: History) -> dict[str, object]:
    """Return what the templates say something about."""
    contents, inspection = history.contents, history.inspection
    tallies = sorted(contents.tallies.values(), key=lambda tally: (-tally.hits, -tally.asked, tally.number))
    noises = sorted(contents.noises.values(), key=lambda noise: (-noise.answers, noise.scale))
    meters = [OpenedMeter(inspection.terms, which) for which in range(len(inspection.terms.capacities))]
    odometers = [] if history.problem else [meter.odometer(inspection.state.sums) for meter in meters]
    which = 0 if inspection.individual else inspection.roomiest
    try:
        rows, uncompared = meters[which].rows(contents), "the declared targets are not known."
    except TargetChargeError as error:
        rows, uncompared = [], str(error)
    return {
        "history": history,
        "identity": history.inspection.state.ledger,
        "contents": contents,
        "inspection": inspection,
        "terms": inspection.terms,
        "targets": inspection.terms.targets_in_words,
        "version": __version__,
        "shown": sorted(tallies[:_MOST_QUESTIONS], key=lambda tally: tally.number),
        "rest": tallies[_MOST_QUESTIONS:],
        "timeline": timeline(history) if contents.answers else None,
        "meters": meters,
        "odometers": odometers if all(odometers) else [],
        "delta_spent": from_grains(inspection.state.sums.delta),
        "which": which,
        "rows": rows,
        "uncompared": uncompared,
        "curve": curve(noises[0]) if noises else None,
        "noises": noises[:_MOST_SCALES],
        "other_noises": noises[_MOST_SCALES:],
        "unscaled": contents.answers - sum(noise.answers for noise in noises),
        "confidence": CONFIDENCE,
        "taking_part": TAKING_PART if inspection.individual else "",
        "departed": in_words(history.departures.most()) if history.departures and not history.problem else "",
    }
