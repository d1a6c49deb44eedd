"""The file of a monitor: a table, its budget, and rules.

table: flights
unit: tailnum
epsilon: 4
delta: 1.0e-6
day: date
rules:
  - {name: late, where: dep_delay > 60, threshold: 150}
  - {name: flying, tolerance: 15%}
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.cli.meters import MeterName
from targetcharge.cli.mistakes import Mistake
from targetcharge.cli.tables.fields import what_of, whole
from targetcharge.cli.tables.options import Charging, TableOptions
from targetcharge.cli.tables.question_files import check_names, loaded, value_of
from targetcharge.errors import InvalidParameter
from targetcharge.tables.monitor import Rule

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_TEXTS: Final = ("table", "unit", "ledger", "memory", "name", "day", "alerts")
_NUMBERS: Final = ("epsilon", "delta", "query_epsilon")
_FIELDS: Final = (*_TEXTS, *_NUMBERS, "rows", "meter", "charging", "types", "rules")
_NEEDED: Final = ("table", "epsilon", "delta", "rules")

_NUMBER: Final = ("where", "sum", "lower", "upper", "grid", "distinct", "per_unit")
_BOUNDS: Final = ("lower", "upper")
_FIGURES: Final = ("threshold", "margin", "prior")
_RULE: Final = ("name", *_NUMBER, *_FIGURES, "tolerance", "so_far", "anew", "by", "keys")


@final
@dataclass(frozen=True)
class MonitorFile:
    """What a file says.

    Attributes:
        path: of the file.
        source: the table.
        options: how it is opened.
        name: of the monitor.
        day: the column of days, if there is one.
        alerts: where alerts are kept, if they are to be.
        rules: with the place of each in the file.
    """

    path: Path
    source: str
    options: TableOptions
    name: str
    day: str | None
    alerts: Path | None
    rules: tuple[tuple[str, Rule], ...]


def read_file(path: Path) -> MonitorFile:
    """Return what a file says.

    Raises:
        Mistake: naming the file, and the item if there is one.
    """
    found = loaded(path)
    if not isinstance(found, dict):
        raise Mistake(str(path), "it must have fields, such as table: visits.parquet")
    check_names(str(path), found, _FIELDS)
    given = {name: value for name, value in found.items() if value is not None}
    missing = [name for name in _NEEDED if name not in given]
    if "unit" not in given and not given.get("rows"):
        missing.append("unit (or rows: true)")
    if missing:
        raise Mistake(str(path), f"there is no {', no '.join(missing)}")
    try:
        return _file(path, given)
    except InvalidParameter as error:
        raise (error if isinstance(error, Mistake) else Mistake(str(path), str(error))) from None


def _file(path: Path, given: Mapping[str, Any]) -> MonitorFile:
    texts = {name: _text(name, given.get(name)) for name in _TEXTS}
    epsilon, delta, query_epsilon = (_number(name, given.get(name)) for name in _NUMBERS)
    rows, meter, charging = _flag("rows", given.get("rows", False)), given.get("meter"), given.get("charging")
    if rows and texts["unit"] is not None:
        raise InvalidParameter("rows", rows, "left out where a unit is given")
    beside = {name: None if (text := texts[name]) is None else path.parent / text for name in ("ledger", "alerts")}
    options = TableOptions(
        unit=texts["unit"],
        rows=rows,
        epsilon=epsilon,
        delta=delta,
        query_epsilon=query_epsilon,
        meter=None if meter is None else MeterName(_word("meter", meter, [each.value for each in MeterName])),
        charging=None
        if charging is None
        else Charging(_word("charging", charging, [each.value for each in Charging])),
        ledger=None if beside["ledger"] is None else str(beside["ledger"]),
        types=_types(given.get("types", {})),
        memory=texts["memory"],
        new_data=True,
    )
    source, name = str(path.parent / str(texts["table"])), texts["name"] or path.stem
    return MonitorFile(path, source, options, name, texts["day"], beside["alerts"], _rules(path, given["rules"]))


def _rules(path: Path, found: object) -> tuple[tuple[str, Rule], ...]:
    if not isinstance(found, list) or not found:
        raise InvalidParameter("rules", found, "a list of rules, each with fields such as name and threshold")
    places = [f"{path}, item {number}" for number, _ in enumerate(found, 1)]
    rules = [(place, _rule(place, fields)) for place, fields in zip(places, found, strict=True)]
    for number, (place, rule) in enumerate(rules):
        for other, same in rules[:number]:
            if same.name == rule.name:
                raise Mistake(place, f"its name {rule.name!r} is that of {other} too")
    return tuple(rules)


def _rule(place: str, fields: object) -> Rule:
    if not isinstance(fields, dict):
        raise Mistake(place, "it must have fields, such as name: late")
    check_names(place, fields, _RULE)
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        return _rule_of(given)
    except InvalidParameter as error:
        raise Mistake(place, str(error)) from None


def _rule_of(given: Mapping[str, Any]) -> Rule:
    if "name" not in given:
        raise InvalidParameter("name", None, "given: alerts carry it")
    threshold, margin, prior = (_figure(name, given.get(name)) for name in _FIGURES)
    return Rule(
        value_of("name", given["name"]),
        what_of({name: _part(name, given[name]) for name in _NUMBER if name in given}),
        threshold=threshold,
        tolerance=_tolerance(given.get("tolerance")),
        margin=margin,
        prior=prior,
        so_far=_flag("so_far", given.get("so_far", False)),
        anew=_flag("anew", given.get("anew", False)),
        by=_listed(given.get("by")),
        keys=_listed(given.get("keys")),
    )


def _part(name: str, value: object) -> Any:  # noqa: ANN401 - of each field its own kind
    """Return a field of what is asked; an integer that is no double is none."""
    found = value_of(name, value)
    return _number(name, found) if name in _BOUNDS else found


def _tolerance(value: object) -> float | str | None:
    share = isinstance(value, str) and value.strip().endswith("%")
    return str(value).strip() if share else _figure("tolerance", value)


def _figure(name: str, value: object) -> float | None:
    number = _number(name, value)
    return number if number is None or not math.isfinite(number) else whole(number)


def _listed(value: object) -> Any:  # noqa: ANN401 - keys are of any kind
    """Return a list with pairs as tuples; what is no list as it is, for the rule to refuse."""
    return (
        [tuple(each) if isinstance(each, list) else each for each in value] if isinstance(value, list) else value
    )


def _text(name: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and value.strip()):
        return value
    raise InvalidParameter(name, value, "text; write it in quotes")


def _number(name: str, value: object) -> float | None:
    """Return a number; YAML takes 1e-6 for text."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidParameter(name, value, "a number")
    try:
        number = float(value)
    except ValueError:
        raise InvalidParameter(name, value, "a number") from None
    except OverflowError:
        raise InvalidParameter(name, value, "a number below 1e308") from None
    return number if isinstance(value, str) else value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(name, value, "true or false")
    return value


def _word(name: str, value: object, words: list[str]) -> str:
    if value not in words:
        raise InvalidParameter(name, value, f"one of {', '.join(words)}")
    return str(value)


def _types(found: object) -> list[str]:
    if not isinstance(found, dict) or not all(isinstance(word, str) for pair in found.items() for word in pair):
        raise InvalidParameter("types", found, "columns with their kinds, such as {age: integer}")
    return [f"{column}={kind}" for column, kind in found.items()]
