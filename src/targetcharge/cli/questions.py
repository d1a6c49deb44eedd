"""Questions from named fields: given as options, one a row in a CSV file, or one an item in a YAML file.

name,where,threshold,sum,lower,upper
old,age > 65,1200,,,
dear,,50000,fare,0,100

- name: old
  where: age > 65
  threshold: 1200
- {name: dear, sum: fare, lower: 0, upper: 100, threshold: 50000}

>>> question_of({"where": "age > 65", "threshold": 1200})
Above(what=Count(where='age > 65'), threshold=1200, prior=None, tolerance=0)
>>> question_of({"sum": "fare", "lower": 0})
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: upper is None; it must be given with sum
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge.cli.errors import Mistake, line
from targetcharge.cli.fields import number, read_csv, read_fields, read_yaml, text, whole_number
from targetcharge.errors import InvalidParameter
from targetcharge.tables import questions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from targetcharge.cli.fields import Reader
    from targetcharge.tables.questions import Question, What

    Spell = Callable[[str], str]

_FORMS: Final = ("threshold", "between", "side")
_BELONGS: Final = {"lower": "sum", "upper": "sum", "grid": "sum", "per_unit": "distinct", "tolerance": "prior"}


def _grid(name: str, value: object) -> str | float:
    return value.strip() if isinstance(value, str) else number(name, value)


NUMBER_FIELDS: Final[dict[str, Reader]] = (
    dict.fromkeys(("where", "sum", "distinct"), text)
    | dict.fromkeys(("lower", "upper"), number)
    | {"grid": _grid, "per_unit": whole_number}
)
"""What a question is about, in files."""

_FIELDS: Final[dict[str, Reader]] = (
    {"name": text}
    | NUMBER_FIELDS
    | dict.fromkeys(("threshold", "low", "high", "side", "prior", "tolerance"), number)
)


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


def option(name: str) -> str:
    """Return a field as it is spelled on the command line.

    >>> option("per_unit")
    '--per-unit'
    """
    return "--" + name.replace("_", "-")


def question_of(fields: Mapping[str, Any], spell: Spell = str) -> Question:
    """Return the question that fields describe. What is not given is not there.

    Args:
        fields: where, threshold, between (low and high), side, sum, lower, upper, grid, distinct, per_unit, prior,
            tolerance, by name.
        spell: how the user wrote a name.
    """
    what = what_of(fields, spell)
    forms = [name for name in _FORMS if name in fields]
    if len(forms) > 1:
        value = fields[forms[1]]
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
        raise InvalidParameter(spell(forms[1]), shown, f"left out where {spell(forms[0])} is given")
    if "distinct" in fields and forms != ["threshold"]:
        raise InvalidParameter(spell("threshold"), None, f"given with {spell('distinct')}")
    if "prior" in fields and forms not in ([], ["threshold"]):
        raise InvalidParameter(spell("prior"), fields["prior"], f"left out where {spell(forms[0])} is given")
    change = fields.get("prior"), fields.get("tolerance", 0)
    match forms:
        case ["threshold"]:
            return questions.above(what, fields["threshold"], *change)
        case ["between"]:
            return questions.between(what, *fields["between"])
        case ["side"]:
            return questions.side(what, fields["side"])
        case _:
            return questions.value(what, *change)


def what_of(fields: Mapping[str, Any], spell: Spell = str) -> What:
    """Return the number that fields describe: of units, a sum or of distinct values."""
    for name, owner in _BELONGS.items():
        if name in fields and owner not in fields:
            raise InvalidParameter(spell(name), fields[name], f"given with {spell(owner)}, and only with it")
    where = fields.get("where")
    if "sum" in fields:
        if "distinct" in fields:
            expected = f"left out where {spell('sum')} is given"
            raise InvalidParameter(spell("distinct"), fields["distinct"], expected)
        for name in ("lower", "upper"):
            if name not in fields:
                raise InvalidParameter(spell(name), None, f"given with {spell('sum')}")
        return questions.sum(fields["sum"], fields["lower"], fields["upper"], where, grid=fields.get("grid"))
    if "distinct" in fields:
        return questions.distinct(fields["distinct"], where, per_unit=fields.get("per_unit", 1))
    return questions.count(where)


def read_items(path: Path) -> list[Item]:
    """Return the questions of a file; a mistake names the place of the first that is none."""
    match path.suffix.lower():
        case ".csv":
            places = _csv_items(path)
        case ".yaml" | ".yml":
            places = _yaml_items(path)
        case _:
            raise InvalidParameter("--questions", path, "a file that ends in .csv, .yaml or .yml")
    items = [_item(place, fields) for place, fields in places]
    if not items:
        raise Mistake(str(path), "there are no questions in it")
    return items


def _csv_items(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    names, rows = read_csv(path)
    read_fields(line(path, 1), dict.fromkeys(names), _FIELDS)
    for row, cells in rows:
        yield line(path, row), read_fields(line(path, row), cells, _FIELDS)


def _yaml_items(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    content = read_yaml(path)
    if isinstance(content, dict) and list(content) == ["questions"]:
        content = content["questions"]
    if not isinstance(content, list):
        raise Mistake(str(path), "it must be a list of questions, each with fields such as where and threshold")
    for item, fields in enumerate(content, 1):
        place = f"{path}, item {item}"
        if not isinstance(fields, dict):
            raise Mistake(place, "it must have fields, such as where: age > 65")
        yield place, read_fields(place, fields, _FIELDS)


def _item(place: str, fields: dict[str, Any]) -> Item:
    """Return a question of a file, where low and high stand for between."""
    ends = [name for name in ("low", "high") if name in fields]
    if len(ends) == 1:
        missing = InvalidParameter("high" if ends == ["low"] else "low", None, f"given with {ends[0]}")
        raise Mistake(place, str(missing))
    if ends:
        fields["between"] = fields.pop("low"), fields.pop("high")
    name = fields.pop("name", "")
    try:
        return Item(question_of(fields), name, place)
    except InvalidParameter as error:
        raise Mistake(place, str(error)) from None
