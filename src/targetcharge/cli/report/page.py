"""The page: one HTML file that needs nothing else. It loads nothing and runs nothing: browsers are told so."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from targetcharge.cli.report.elements import Html, element, joined
from targetcharge.cli.report.sections.asked import asked
from targetcharge.cli.report.sections.comparison import comparison
from targetcharge.cli.report.sections.fine_print import fine_print
from targetcharge.cli.report.sections.headline import headline
from targetcharge.cli.report.sections.meter import meter
from targetcharge.cli.report.sections.noise import noise
from targetcharge.cli.report.sections.timeline import timeline

if TYPE_CHECKING:
    from targetcharge.cli.report.findings import Findings

_ALLOWED: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def signature(ledger: str) -> str:
    """Return what the page of a ledger with this id begins with, and nothing else does."""
    named = element("meta", name="generator", content="tct report")
    about = element("meta", name="ledger", content=ledger)
    return f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{named}\n{about}\n'


def page(findings: Findings, written: float) -> str:
    """Return the page about a ledger.

    Args:
        findings: about it.
        written: when, in seconds since 1970.
    """
    head = [
        element("meta", http_equiv="Content-Security-Policy", content=_ALLOWED),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"Privacy report: {findings.name}"),
        element("style", Html(_style())),
    ]
    body = [
        headline(findings),
        element(
            "main",
            asked(findings),
            timeline(findings),
            meter(findings),
            comparison(findings),
            noise(findings),
            fine_print(findings, written),
        ),
    ]
    lines = [*head, Html("</head>"), Html("<body>"), *body, Html("</body>"), Html("</html>")]
    return f"{signature(findings.identity)}{joined(lines, Html(chr(10)))}\n"


def _style() -> str:
    return files(__package__).joinpath("page.css").read_text("utf-8")
