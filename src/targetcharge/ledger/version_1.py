"""The first format of ledgers: read for ever, never written.

It kept targets and units as words, and two kinds of entries for answers that left together.
"""

from __future__ import annotations

import ast
import base64
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from targetcharge.accounting.targets.plain import in_words, kind_in_words
from targetcharge.errors import shown
from targetcharge.outcomes import Mark, to_plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from targetcharge.accounting.targets.plain import PlainTarget

_NUMBER: Final = r"(-?[\d.]+(?:e[-+]?\d+)?)"
_WIDTH: Final = re.compile(r"Between of (\d+) integers(?: with sensitivity (\d+))?")
_BAND: Final = re.compile(rf"Between\({_NUMBER}, {_NUMBER}(?:, sensitivity=(\d+))?\)")
_CAUTION: Final = re.compile(rf"Boundary\({_NUMBER}\)")
_Q: Final = re.compile(rf"QTarget\({_NUMBER}(?:, (.*))?\)", re.DOTALL)
_PRIOR: Final = re.compile(r"NotPrior\((.*)\)", re.DOTALL)
_NAME: Final = re.compile(r"(\w+)(?:\(\))?")
_LONGEST: Final = 200
_OF_EACH: Final = ("what is expected of each request", "what was published last")
_CALLS: Final = {
    "release": "release",
    "revise": "revise",
    "select": "select",
    "select: no more reach the floor": "select ended",
    "select: its rule broke": "select broke",
}


def entry(kind: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the kind and the body that an entry has now."""
    match kind:
        case "answer":
            return kind, _answer(body)
        case "run":
            return "batch", _run(_answer(body["missed"]), _answer(body["last"]), body["keys"])
        case "sheet":
            sheet = {name: body[name] for name in ("outcomes", "codes")}
            return "batch", {"first": _answer(body["first"]), "hit_places": body["hits"], **sheet}
        case "spent":
            body["grains"] = body.pop("units")
    return kind, body


def _answer(body: dict[str, Any]) -> dict[str, Any]:
    words, body["grains"] = body.pop("target"), body.pop("units")
    if words in _CALLS:
        return {**body, "call": _CALLS[words], "targets": [["NotPrior", None]]}
    several = words.split(" or ")
    parts = several if len(several) == len(body["grains"]) else [words]
    return {**body, "targets": [to_plain(target(part)) for part in parts]}


def _run(missed: dict[str, Any], last: dict[str, Any], keys: list[object]) -> dict[str, Any]:
    """Return misses that are alike and a last answer: a batch of one or two outcomes."""
    count, hit = len(keys) + 1, last["hit"]
    answers = [missed, last] if hit else [missed]
    accurate = any("interval" in answer for answer in answers)
    first = {**missed, **{name: last[name] for name in ("price", "grains")}, "hit": True}
    return {
        "first": first,
        "outcomes": [answer["outcome"] for answer in answers],
        "intervals": [answer.get("interval") for answer in answers] if accurate else [],
        "codes": base64.b64encode(bytes(count - 1) + bytes([len(answers) - 1])).decode("ascii"),
        "hit_places": [count - 1] if hit else [],
        "keys": [*keys, last.get("key")],
    }


def target(words: str) -> PlainTarget:
    """Return a target, or a kind of targets, that was kept as words."""
    if match := _WIDTH.fullmatch(words):
        return "Between", 1, int(match[1]), int(match[2] or 1)
    if match := _BAND.fullmatch(words):
        return "Between", _number(match[1]), _number(match[2]), int(match[3] or 1)
    if match := _CAUTION.fullmatch(words):
        return "Boundary", float(match[1])
    if match := _Q.fullmatch(words):
        return ("QTarget", float(match[1])) if match[2] is None else ("QTarget", float(match[1]), match[2])
    if match := _PRIOR.fullmatch(words):
        return ("NotPrior",) if match[1] in _OF_EACH else ("NotPrior", _prior(match[1]))
    name = _NAME.fullmatch(words)
    return ("Boundary", 1.0) if name and name[1] == "Boundary" else (name[1] if name else words,)


def _number(text: str) -> int | float:
    return int(text) if text.lstrip("-").isdecimal() else float(text)


def _prior(text: str) -> object:
    if text in Mark.__members__:
        return Mark[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # it was shortened
        return text


def unit(words: str) -> tuple[Literal["column", "row", "words"], str]:
    """Return whose privacy is protected, which was kept as words: the kind and the name of a unit."""
    if words == "rows":
        return "row", ""
    column = words.removeprefix("units of ")
    return ("words", words) if column == words else ("column", column)


def header(targets: Iterable[PlainTarget], alternatives: Iterable[PlainTarget], unit: str) -> dict[str, object]:
    """Return those terms as words that a header had as words; the unit as its words."""
    return {
        "targets": sorted(map(kind_in_words, targets)),
        "alternatives": list(map(_in_words, alternatives)),
        "unit": unit,
    }


def _in_words(known: PlainTarget) -> str:
    match known:
        case ("QTarget", q, tuple(members)):
            words = f"QTarget({q!r}, {list(map(shown, members))})"
        case ("QTarget", q, tuple(beginning), _):
            words = f"QTarget({q!r}, {list(beginning)})"
        case _:
            words = in_words(known)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
