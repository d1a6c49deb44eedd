"""From named fields, given as options or in a file, to a question.

>>> question_of({"where": "age > 65", "threshold": 1200})
Above(what=Units(where='age > 65'), threshold=1200, prior=None, tolerance=0)
>>> question_of({"sum": "fare", "lower": 0.0})
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: upper is None; it must be given with sum
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from targetcharge.errors import InvalidParameter
from targetcharge.tables import questions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from targetcharge.tables.questions import Question, What

    Spell = Callable[[str], str]

_FORMS: Final = ("threshold", "between", "near")
_BELONGS: Final = {"lower": "sum", "upper": "sum", "grid": "sum", "per_unit": "distinct", "tolerance": "prior"}
_NUMBERS: Final = ("threshold", "near", "lower", "upper", "prior", "tolerance")


def option(name: str) -> str:
    """Return a field as it is spelled on the command line.

    >>> option("per_unit")
    '--per-unit'
    """
    return "--" + name.replace("_", "-")


def question_of(given: Mapping[str, object], spell: Spell = str) -> Question:
    """Return the question that fields describe.

    Args:
        given: by name: where, threshold, between (low and high), near, sum, lower, upper, grid, distinct,
            per_unit, prior, tolerance. What is not given is not there.
        spell: how the user wrote a name.

    Raises:
        InvalidParameter: if they do not go together.
    """
    fields = _tidy(given)
    what = what_of(given, spell)
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
        case ["near"]:
            return questions.side(what, fields["near"])
        case _:
            return questions.value(what, *change)


def what_of(given: Mapping[str, object], spell: Spell = str) -> What:
    """Return the number that fields describe: of units, a sum or of distinct values.

    Raises:
        InvalidParameter: if they do not go together.
    """
    fields = _tidy(given)
    for name, owner in _BELONGS.items():
        if name in fields and owner not in fields:
            raise InvalidParameter(spell(name), fields[name], f"given with {spell(owner)}, and only with it")
    where = fields.get("where")
    if "sum" in fields:
        if "distinct" in fields:
            raise InvalidParameter(
                spell("distinct"), fields["distinct"], f"left out where {spell('sum')} is given"
            )
        for name in ("lower", "upper"):
            if name not in fields:
                raise InvalidParameter(spell(name), None, f"given with {spell('sum')}")
        return questions.total(fields["sum"], fields["lower"], fields["upper"], where, grid=fields.get("grid"))
    if "distinct" in fields:
        return questions.distinct(fields["distinct"], where, per_unit=fields.get("per_unit", 1))
    return questions.units(where)


def whole(value: float) -> float:
    """Return a number as people write it: 1200, not 1200.0."""
    return value if isinstance(value, int) or not value.is_integer() else int(value)


def _tidy(given: Mapping[str, object]) -> dict[str, Any]:
    fields: dict[str, Any] = dict(given)
    fields |= {name: whole(fields[name]) for name in _NUMBERS if name in fields}
    if "between" in fields:
        fields["between"] = tuple(map(whole, fields["between"]))
    return fields
