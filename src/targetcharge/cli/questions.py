"""Questions from named fields: given as options, one a row in a CSV file, or one an item in a YAML file.

Other small files of commands are read here, too: each value is of its field's kind.

name,where,threshold,sum,lower,upper
old,age > 65,1200,,,
dear,,50000,fare,0,100

- name: old
  where: age > 65
  threshold: 1200
- {name: dear, sum: fare, lower: 0, upper: 100, threshold: 50000}
- {name: middle, quantile: fare, q: 0.5, lower: 0, upper: 100}
- {name: all, count: true}

>>> question_of({"where": "age > 65", "threshold": 1200})
Above(what=Count(where='age > 65'), threshold=1200, prior=None, tolerance=None)
>>> question_of({"mean": "fare", "lower": 0, "upper": 100})
Mean(what=Value(column='fare', lower=0, upper=100, where=None, grid=None))
>>> read_fields("rules.yaml, item 1", {"threshold": "4e4", "where": None}, {"threshold": number, "where": text})
{'threshold': 40000}
>>> question_of({"sum": "fare", "lower": 0})
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: upper is None; it must be given with sum
"""

from __future__ import annotations

import csv
import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import yaml

from targetcharge.cli.errors import Mistake, line, written_at
from targetcharge.errors import InvalidParameter, did_you_mean
from targetcharge.markup import counted
from targetcharge.tables import questions
from targetcharge.tables.measured import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from targetcharge.tables.questions import Quantiles, Single, What

    Spell = Callable[[str], str]
    Reader = Callable[[str, object], Any]

_FORMS: Final = ("threshold", "between", "side")
_VALUES: Final = ("mean", "quantile")
_BOUNDS: Final = ("lower", "upper")
_HAVE_BOUNDS: Final = frozenset(("sum", *_VALUES))
_BELONGS: Final = {"lower": "sum", "upper": "sum", "grid": "sum", "per_unit": "distinct", "tolerance": "prior"}


def read_fields(place: str, fields: Mapping[Any, object], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the fields that are given, each as its reader returns it; a mistake names the place."""
    for name in fields:
        if name not in readers:
            hint = did_you_mean(name, readers)
            raise Mistake(place, f"there is no field {name!r}; there are {', '.join(readers)}{hint}")
    with written_at(place):
        return {name: readers[name](name, value) for name, value in fields.items() if value is not None}


def text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InvalidParameter(name, value, "text; write it in quotes")
    return value


def number(name: str, value: object) -> float:
    """Return a number, also one that is written as text: YAML takes 1e-6 for that."""
    if isinstance(value, str):
        for kind in (int, float):
            with suppress(ValueError):
                return whole(kind(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidParameter(name, value, "a number")
    try:
        float(value)
    except OverflowError:
        raise InvalidParameter(name, value, "a number below 1e308") from None
    return whole(value)


def tolerance(name: str, value: object) -> float | str:
    """Return a number, or the text of a share, such as 20%."""
    share = isinstance(value, str) and value.strip().endswith(("%", "percent"))
    if share:
        return str(value).strip()
    with suppress(InvalidParameter):
        return number(name, value)
    raise InvalidParameter(name, value, "a number, or a share such as 20%")


def whole(value: float) -> float:
    """Return a number as people write it: 1200, not 1200.0."""
    return value if isinstance(value, int) or not value.is_integer() else int(value)


def whole_number(name: str, value: object) -> int:
    """Return a whole number, also one that is written as text."""
    with suppress(ValueError):
        if isinstance(value, int | str) and not isinstance(value, bool):
            return int(value)
    raise InvalidParameter(name, value, "a whole number")


def flag(name: str, value: object) -> bool:
    """Return yes or no, also one that is written as text, as in CSV."""
    said = {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else value
    if not isinstance(said, bool):
        raise InvalidParameter(name, value, "true or false")
    return said


def read_csv(path: Path) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Return the names in a CSV file's first line, and its rows: the line, and the cells that are not empty."""
    lines = csv.reader(io.StringIO(_text_of(path), newline=""), strict=True)
    try:
        rows = [(lines.line_num, cells) for cells in lines]
    except csv.Error as error:
        raise Mistake(line(path, lines.line_num), f"this is not CSV ({error})") from None
    names = [name.strip() for name in rows[0][1]] if rows else []
    if not names or "" in names or len(set(names)) < len(names):
        raise Mistake(line(path, 1), "it must name every column, each once")
    filled = [(number, cells) for number, cells in rows[1:] if any(cell.strip() for cell in cells)]
    for number, cells in filled:
        if len(cells) != len(names):
            problem = (
                f"it has {counted(len(cells), 'cell')}, and the first line names {counted(len(names), 'column')}"
            )
            hint = 'a cell with a comma in it is written in quotes, as "a, b"'
            raise Mistake(line(path, number), f"{problem}; {hint}")
    return names, [
        (number, {name: cell for name, cell in zip(names, cells, strict=True) if cell.strip()})
        for number, cells in filled
    ]


def read_yaml(path: Path) -> Any:  # noqa: ANN401 - whatever YAML holds
    """Return what a YAML file holds; a mistake names the line where it is no YAML."""
    text = _text_of(path)
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = str(path) if mark is None else line(path, mark.line + 1)
        problem = getattr(error, "problem", None) or "see there"
        raise Mistake(where, f"this is not YAML ({problem})") from None
    except ValueError as error:  # a day such as 2024-02-30, thousands of digits
        raise Mistake(str(path), f"it holds a value that cannot be read: {error}") from None
    except RecursionError:
        raise Mistake(str(path), "it holds lists in lists too deep to be read") from None


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = error.strerror
    except UnicodeDecodeError:
        problem = "it is not text in UTF-8"
    raise Mistake(str(path), f"it cannot be read: {problem}")


NUMBER_FIELDS: Final[dict[str, Reader]] = (
    dict.fromkeys(("where", "sum", "distinct"), text)
    | dict.fromkeys(("lower", "upper"), number)
    | {"grid": lambda name, value: value.strip() if isinstance(value, str) else number(name, value)}
    | {"per_unit": whole_number}
)
"""What a question is about, in files."""

_FIELDS: Final[dict[str, Reader]] = (
    {"name": text}
    | NUMBER_FIELDS
    | dict.fromkeys(("threshold", "low", "high", "side", "prior"), number)
    | {"tolerance": tolerance}
    | dict.fromkeys(_VALUES, text)
    | {"q": number, "count": flag, "again": flag}
)

_OF_KEYS: Final = frozenset(("by", "keys", "k", "histogram", "watch", "top"))
"""What somebody would write who wants answers about many keys."""


class Item(NamedTuple):
    """A question with one answer, and how errors tell of it.

    Attributes:
        question: what is asked.
        name: what the user calls it.
        place: where it is written, such as "questions.csv, line 3"; empty on the command line.
        names: what parameters of the library are called there, if otherwise.
        again: whether it is asked also where its hit is published.
    """

    question: Single | Quantiles
    name: str = ""
    place: str = ""
    names: Mapping[str, str] = {}
    again: bool = False


def question_of(fields: Mapping[str, Any], spell: Spell = str) -> Single | Quantiles:
    """Return the question that fields describe; what is not given is not there. Errors name them as `spell` does.

    They are where, threshold, between (low and high), side, sum, lower, upper, grid, distinct, per_unit, prior and
    tolerance; or mean, or quantile and q, with where, lower, upper and grid. A number that is published whatever
    it is, which always costs, is asked by `count`.
    """
    values = [name for name in _VALUES if name in fields]
    if values:
        return _of_values(values[0], fields, spell)
    if "q" in fields:
        raise InvalidParameter(spell("q"), fields["q"], f"given with {spell('quantile')}, and only with it")
    what = what_of(fields, spell)
    forms = [name for name in _FORMS if name in fields]
    if len(forms) > 1:
        value = _written(fields[forms[1]])
        raise InvalidParameter(spell(forms[1]), value, f"left out where {spell(forms[0])} is given")
    if "distinct" in fields and forms != ["threshold"]:
        raise InvalidParameter(spell("threshold"), None, f"given with {spell('distinct')}")
    if "prior" in fields and forms not in ([], ["threshold"]):
        raise InvalidParameter(spell("prior"), fields["prior"], f"left out where {spell(forms[0])} is given")
    change = fields.get("prior"), fields.get("tolerance")
    if "prior" in fields and "tolerance" not in fields:
        raise InvalidParameter(spell("tolerance"), None, TOLERANCE)
    _check_count(forms, fields, spell)
    match forms:
        case ["threshold"]:
            return questions.above(what, fields["threshold"], *change)
        case ["between"]:
            return questions.between(what, *fields["between"])
        case ["side"]:
            return questions.side(what, fields["side"])
        case _:
            return questions.count(what, *change)


def _check_count(forms: Sequence[str], fields: Mapping[str, Any], spell: Spell) -> None:
    """Refuse a question with nothing that keeps its answer free, unless it says that it counts; and both."""
    free = [*forms, *(["prior"] if "prior" in fields else [])]
    if fields.get("count"):
        if free:
            raise InvalidParameter(spell(free[0]), _written(fields[free[0]]), "left out where count is given")
    elif not free:
        command = "tct sum" if "sum" in fields else "tct count"
        by_name = "count: true" if spell("count") == "count" else command
        others = " or ".join(map(spell, (*_FORMS[1:], "prior")))
        expected = f"given, or {others}. The number itself always costs, whatever it is: {by_name} publishes it"
        raise InvalidParameter(spell("threshold"), None, expected)


def _of_values(asked: str, fields: Mapping[str, Any], spell: Spell) -> Single | Quantiles:
    """Return the question for the mean of one number for each unit, or for a quantile."""
    needed = (*_BOUNDS, "q") if asked == "quantile" else _BOUNDS
    for name, value in fields.items():
        if name not in (asked, *needed, "where", "grid"):
            raise InvalidParameter(spell(name), _written(value), f"left out where {spell(asked)} is given")
    _check_given(needed, asked, fields, spell)
    bounds = fields["lower"], fields["upper"], fields.get("where")
    if asked == "mean":
        return questions.mean(fields["mean"], *bounds, grid=fields.get("grid"))
    return questions.quantile(fields["quantile"], fields["q"], *bounds, grid=fields.get("grid"))


def _written(value: object) -> object:
    """Return a value as it was written: the ends of a band beside each other."""
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


def _check_given(names: Sequence[str], owner: str, fields: Mapping[str, Any], spell: Spell) -> None:
    """Refuse a field without those that it needs."""
    for name in names:
        if name not in fields:
            raise InvalidParameter(spell(name), None, f"given with {spell(owner)}")


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
        _check_given(_BOUNDS, "sum", fields, spell)
        return questions.sum(fields["sum"], fields["lower"], fields["upper"], where, grid=fields.get("grid"))
    if "distinct" in fields:
        return questions.distinct(fields["distinct"], where, per_unit=fields.get("per_unit", 1))
    return questions.Count(where)


def names_of(asked: object, spell: Spell = str) -> dict[str, str]:
    """Return what parameters of the library are called here, of a question or what it is about, if otherwise."""
    names = {"threshold": spell("side")} if isinstance(asked, questions.SideQuestion) else {}
    of_value = "quantile" if isinstance(asked, questions.Quantiles) else "mean"
    of_columns = {questions.Sum: "sum", questions.Distinct: "distinct", questions.Value: of_value}
    of_column = of_columns.get(type(getattr(asked, "what", asked)))
    return names | ({"column": spell(of_column)} if of_column else {})


def read_items(path: Path) -> list[Item]:
    """Return the questions of a file; a mistake names the place of the first that is none."""
    readers = {".csv": _csv_items, ".yaml": _yaml_items, ".yml": _yaml_items}
    if path.suffix.lower() not in readers:
        raise InvalidParameter("--questions", path, "a file that ends in .csv, .yaml or .yml")
    items = [_item(place, fields) for place, fields in readers[path.suffix.lower()](path)]
    if not items:
        raise Mistake(str(path), "there are no questions in it")
    return items


def _csv_items(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    names, rows = read_csv(path)
    _check_keyless(line(path, 1), names)
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
        _check_keyless(place, fields)
        yield place, read_fields(place, fields, _FIELDS)


def _check_keyless(place: str, names: Iterable[object]) -> None:
    """Refuse a question about many keys: it has many answers."""
    if found := sorted(_OF_KEYS.intersection(names)):
        problem = "questions here have one answer each: ask about keys with tct histogram, tct watch or tct top"
        raise Mistake(place, f"there is no field {found[0]!r}: {problem}")


def _item(place: str, fields: dict[str, Any]) -> Item:
    """Return a question of a file, where low and high stand for between, and there are means and quantiles."""
    ends = [name for name in ("low", "high") if name in fields]
    if len(ends) == 1:
        other = "high" if ends == ["low"] else "low"
        raise Mistake(place, f"{other} is None; it must be given with {ends[0]}")
    if ends:
        fields["between"] = fields.pop("low"), fields.pop("high")
    name, again = fields.pop("name", ""), fields.pop("again", False)
    with written_at(place):
        if not fields.keys() & _HAVE_BOUNDS:
            for end in (*_BOUNDS, "grid"):
                if end in fields:
                    raise InvalidParameter(end, fields[end], "given with sum, mean or quantile")
        question = question_of(fields)
    return Item(question, name, place, names_of(question), again)
