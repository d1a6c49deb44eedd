"""Questions from a file: one a row in CSV, or one an item in YAML.

name,where,threshold,sum,lower,upper
old,age > 65,1200,,,
dear,,50000,fare,0,100

- name: old
  where: age > 65
  threshold: 1200
- {name: dear, sum: fare, lower: 0, upper: 100, threshold: 50000}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import yaml

from targetcharge.cli.mistakes import Mistake, line
from targetcharge.cli.tables.fields import question_of
from targetcharge.cli.tables.reading import csv_rows, text_of
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from targetcharge.tables.questions import Question

_TEXTS: Final = ("name", "where", "sum", "distinct")
_NUMBERS: Final = ("threshold", "low", "high", "near", "lower", "upper", "prior", "tolerance")
_FIELDS: Final = (*_TEXTS, *_NUMBERS, "grid", "per_unit")


@final
@dataclass(frozen=True)
class Item:
    """A question, and where it comes from.

    Attributes:
        question: what is asked.
        name: what the user calls it; empty if that is nothing.
        place: such as "questions.csv, line 3"; empty for the command line.
    """

    question: Question
    name: str = ""
    place: str = ""


def read_items(path: Path) -> list[Item]:
    """Return the questions of a file.

    Raises:
        Mistake: naming the place of the first that is none.
    """
    match path.suffix.lower():
        case ".csv":
            found = _csv(path)
        case ".yaml" | ".yml":
            found = _yaml(path)
        case _:
            raise InvalidParameter("--questions", path, "a file that ends in .csv, .yaml or .yml")
    items = [_item(place, fields) for place, fields in found]
    if not items:
        raise Mistake(str(path), "there are no questions in it")
    return items


def _csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    names, rows = csv_rows(path)
    check_names(line(path, 1), names, _FIELDS)
    for row in rows:
        yield line(path, row.line), row.cells


def loaded(path: Path) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return what a YAML file holds.

    Raises:
        Mistake: naming the line where it is no YAML.
    """
    try:
        return yaml.safe_load(text_of(path))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = str(path) if mark is None else line(path, mark.line + 1)
        problem = getattr(error, "problem", None) or "see there"
        raise Mistake(where, f"this is not YAML ({problem})") from None
    except ValueError as error:  # a day such as 2024-02-30, thousands of digits
        raise Mistake(str(path), f"it holds a value that cannot be read: {error}") from None
    except RecursionError:
        raise Mistake(str(path), "it holds lists in lists too deep to be read") from None


def _yaml(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    found = loaded(path)
    if isinstance(found, dict) and list(found) == ["questions"]:
        found = found["questions"]
    if not isinstance(found, list):
        raise Mistake(str(path), "it must be a list of questions, each with fields such as where and threshold")
    for number, fields in enumerate(found, 1):
        place = f"{path}, item {number}"
        if not isinstance(fields, dict):
            raise Mistake(place, "it must have fields, such as where: age > 65")
        check_names(place, fields, _FIELDS)
        yield place, {name: value for name, value in fields.items() if value is not None}


def check_names(place: str, names: Iterable[object], known: Sequence[str]) -> None:
    """Refuse fields that there are not.

    Raises:
        Mistake: naming the first of them.
    """
    for name in names:
        if name not in known:
            raise Mistake(place, f"there is no field {name!r}; there are {', '.join(known)}")


def _item(place: str, fields: Mapping[str, Any]) -> Item:
    try:
        given = _joined({name: value_of(name, value) for name, value in fields.items()})
        name = given.pop("name", "")
        return Item(question_of(given), name, place)
    except InvalidParameter as error:
        raise Mistake(place, str(error)) from None


def _joined(given: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with low and high as one."""
    if ("low" in given) != ("high" in given):
        alone, other = ("low", "high") if "low" in given else ("high", "low")
        raise InvalidParameter(other, None, f"given with {alone}")
    if "low" not in given:
        return given
    rest = {name: value for name, value in given.items() if name not in ("low", "high")}
    return {**rest, "between": (given["low"], given["high"])}


def value_of(name: str, value: object) -> Any:  # noqa: ANN401 - of each field its own kind
    """Return the value of a field of a question.

    Raises:
        InvalidParameter: if it is not of the field's kind.
    """
    if name in _TEXTS:
        if not isinstance(value, str):
            raise InvalidParameter(name, value, "text; write it in quotes")
        return value
    number = name in _NUMBERS
    if isinstance(value, str):
        return value.strip() if name == "grid" else _number(name, value, whole=not number)
    if isinstance(value, bool) or not isinstance(value, int | float if number or name == "grid" else int):
        raise InvalidParameter(name, value, "a number" if number or name == "grid" else "a whole number")
    return value


def _number(name: str, text: str, *, whole: bool) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        if not whole:
            return float(text)
    except ValueError:
        pass
    raise InvalidParameter(name, text, "a whole number" if whole else "a number")
