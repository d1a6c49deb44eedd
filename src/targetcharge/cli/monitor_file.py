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

from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from targetcharge.cli.errors import Mistake, written_at
from targetcharge.cli.options import Charging, MeterName, TableOptions
from targetcharge.cli.questions import (
    NUMBER_FIELDS,
    flag,
    number,
    read_fields,
    read_yaml,
    text,
    tolerance,
    what_of,
    whole_number,
)
from targetcharge.errors import InvalidParameter
from targetcharge.tables.monitor import Rule

if TYPE_CHECKING:
    from pathlib import Path

    from targetcharge.cli.questions import Reader


class MonitorFile(NamedTuple):
    """What a file says: the table and how it is opened, name, column of days, file of alerts, rules and places."""

    path: Path
    source: str
    options: TableOptions
    name: str
    day: str | None
    alerts: Path | None
    rules: tuple[tuple[str, Rule], ...]


def read_file(path: Path) -> MonitorFile:
    """Return what a file says; a mistake in it names the file, and the item if there is one."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise Mistake(str(path), "it must have fields, such as table: visits.parquet")
    given = read_fields(str(path), content, _FIELDS)
    all_rows = given.pop("all_rows", False)
    if "unit" in given and given.get("rows"):
        raise Mistake(str(path), "rows is True; it must be left out where a unit is given")
    if "day" in given and all_rows:
        raise Mistake(str(path), "all_rows is True; it must be left out where a day is given")
    missing = [name for name in ("table", "epsilon", "delta", "rules") if name not in given]
    if "unit" not in given and not given.get("rows"):
        missing.append("unit (or rows: true)")
    if "day" not in given and not all_rows:
        missing.append("day, the column of dates (or all_rows: true, if a look is about all rows)")
    if missing:
        raise Mistake(str(path), f"there is no {', no '.join(missing)}")
    table, name, day, alerts = (given.pop(field, None) for field in ("table", "name", "day", "alerts"))
    rules = _rules(path, given.pop("rules"))
    if "ledger" in given:
        given["ledger"] = str(path.parent / given["ledger"])
    options, beside = TableOptions(**given, new_data=True), None if alerts is None else path.parent / alerts
    return MonitorFile(path, str(path.parent / table), options, name or path.stem, day, beside, rules)


def _rules(path: Path, items: list[object]) -> tuple[tuple[str, Rule], ...]:
    rules: dict[str, tuple[str, Rule]] = {}
    for item, fields in enumerate(items, 1):
        place = f"{path}, item {item}"
        if not isinstance(fields, dict):
            raise Mistake(place, "it must have fields, such as name: late")
        given = read_fields(place, fields, _RULE_FIELDS)
        if "name" not in given:
            raise Mistake(place, "name is None; it must be given: alerts carry it")
        what = {name: given.pop(name) for name in NUMBER_FIELDS if name in given}
        with written_at(place):
            rule = Rule(given.pop("name"), what_of(what), **given)
        if rule.name in rules:
            raise Mistake(place, f"its name {rule.name!r} is that of {rules[rule.name][0]} too")
        rules[rule.name] = place, rule
    return tuple(rules.values())


def _words(name: str, value: object) -> str:
    if not text(name, value).strip():
        raise InvalidParameter(name, value, "text; write it in quotes")
    return str(value)


def _choice(name: str, value: object) -> str:
    words = get_args(MeterName if name == "meter" else Charging)
    if value not in words:
        raise InvalidParameter(name, value, f"one of {', '.join(words)}")
    return str(value)


def _types(name: str, value: object) -> list[str]:
    if not isinstance(value, dict) or not all(isinstance(word, str) for pair in value.items() for word in pair):
        raise InvalidParameter(name, value, "columns with their kinds, such as {age: number}")
    return [f"{column}={kind}" for column, kind in value.items()]


def _items(name: str, value: object) -> list[object]:
    if not isinstance(value, list) or not value:
        raise InvalidParameter(name, value, "a list of rules, each with fields such as name and threshold")
    return value


def _listed(_: str, value: object) -> Any:  # noqa: ANN401 - keys are of any kind
    """Return a list with pairs as tuples; what is no list as it is, for the rule to refuse."""
    return [tuple(key) if isinstance(key, list) else key for key in value] if isinstance(value, list) else value


_FIELDS: Final[dict[str, Reader]] = (
    dict.fromkeys(("table", "unit", "ledger", "memory", "name", "day", "alerts"), _words)
    | dict.fromkeys(("epsilon", "delta", "query_epsilon"), number)
    | {
        "rows": flag,
        "all_rows": flag,
        "hits": whole_number,
        "meter": _choice,
        "charging": _choice,
        "types": _types,
        "rules": _items,
    }
)
_RULE_FIELDS: Final[dict[str, Reader]] = (
    {"name": text}
    | NUMBER_FIELDS
    | dict.fromkeys(("threshold", "margin", "prior"), number)
    | {"tolerance": tolerance, "so_far": flag, "anew": flag, "by": _listed, "keys": _listed}
)
