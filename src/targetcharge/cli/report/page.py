"""The page: one HTML file that needs nothing else. It loads nothing and runs nothing: browsers are told so.

Its words are in `templates/`. What is not markup there becomes text: every value is escaped.

>>> text("a" + chr(0) + "<") == chr(92).join(["a", "x00<"])
True
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined, TemplateError
from markupsafe import Markup

from targetcharge import __version__, markup
from targetcharge.cli import words
from targetcharge.cli.ledger import roomiest, targets_in_words
from targetcharge.cli.report.accountings import OpenedMeter
from targetcharge.cli.report.charts import curve, timeline
from targetcharge.errors import LedgerError, TargetChargeError
from targetcharge.mechanisms.noise import CONFIDENCE
from targetcharge.numerics.rounding import from_grains

if TYPE_CHECKING:
    from targetcharge.cli.report.history import History

_MOST_QUESTIONS: Final = 100
_MOST_SCALES: Final = 6
_HARMFUL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
"""Controls, halves of characters, and marks that turn the text around them: shown by their number instead."""


def text(value: object) -> object:
    """Return anything as harmless text, to be escaped; markup as it is."""
    return value if isinstance(value, Markup) else _HARMFUL.sub(_by_number, str(value))


def _by_number(character: re.Match[str]) -> str:
    number = ord(character[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


_TEMPLATES: Final = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=text,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters |= {
    name: getattr(words, name)
    for name in ("small", "times", "epsilon", "chance", "share", "several", "moment", "outcome", "key", "cut")
}
_TEMPLATES.filters |= {"counted": words.counted, "number": markup.number, "interval": markup.interval}


def signature(ledger: str) -> str:
    """Return what the page of a ledger with this id begins with, and nothing else does."""
    return _TEMPLATES.get_template("signature.html").render(identity=ledger)


def page(history: History, written: float) -> str:
    """Return the page about a ledger.

    Args:
        history: of the ledger.
        written: when, in seconds since 1970: the only thing on it that the ledger does not decide.

    Raises:
        LedgerError: if the ledger is known to be damaged and holds what no ledger does.
    """
    try:
        return _TEMPLATES.get_template("page.html").render(**_values(history), written=written)
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, TemplateError):
        if not history.problem:
            raise
    raise LedgerError(history.problem)


def _values(history: History) -> dict[str, object]:
    """Return what the templates say something about."""
    contents, found = history.contents, history.found
    tallies = sorted(contents.tallies.values(), key=lambda tally: (-tally.hits, -tally.asked, tally.number))
    noises = sorted(contents.noises.values(), key=lambda noise: (-noise.answers, noise.scale))
    meters = [OpenedMeter(found.terms, which) for which in range(len(found.terms.capacities))]
    odometers = [] if history.problem else [meter.odometer(found.state.sums) for meter in meters]
    which = 0 if found.individual else roomiest(found)
    try:
        rows, uncompared = meters[which].rows(contents), "the declared targets are not known."
    except TargetChargeError as error:
        rows, uncompared = [], str(error)
    return {
        "history": history,
        "identity": history.identity,
        "contents": contents,
        "found": found,
        "terms": found.terms,
        "targets": targets_in_words(found.terms),
        "version": __version__,
        "shown": sorted(tallies[:_MOST_QUESTIONS], key=lambda tally: tally.number),
        "rest": tallies[_MOST_QUESTIONS:],
        "timeline": timeline(history) if contents.answers else None,
        "meters": meters,
        "odometers": odometers if all(odometers) else [],
        "delta_spent": from_grains(found.state.sums.delta),
        "which": which,
        "rows": rows,
        "uncompared": uncompared,
        "curve": curve(noises[0]) if noises else None,
        "noises": noises[:_MOST_SCALES],
        "other_noises": noises[_MOST_SCALES:],
        "unscaled": contents.answers - sum(noise.answers for noise in noises),
        "confidence": CONFIDENCE,
    }
