"""Neighbours: inputs that differ by one unit. A claim is about such pairs, and about no others.

>>> check_neighbours([1, 2, 3], [1, 3])
>>> check_neighbours([1, 2, 3], [4, 3])
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: data1 is ...: it lacks 2 and has 1 more; with relation 'any' you vouch...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from targetcharge import checks
from targetcharge.audit.sampling.published import CannotCountError, published_of
from targetcharge.errors import InvalidParameter

RELATIONS: Final = ("add-remove", "replace-one", "any")
_ALLOWED: Final = {"add-remove": ({(0, 1), (1, 0)}, "added or removed"), "replace-one": ({(1, 1)}, "replaced")}


def check_neighbours(data0: object, data1: object, relation: str = "add-remove") -> None:
    """Refuse inputs that are not neighbours.

    Args:
        data0: a list, tuple, set or dict of units; anything if the relation is "any".
        data1: the other one.
        relation: "add-remove" (one unit more or fewer), "replace-one", or "any": the caller vouches.

    Raises:
        InvalidParameter: if they are not; it says how they differ.
    """
    checks.choice("relation", relation, RELATIONS)
    if relation == "any":
        return
    allowed, done = _ALLOWED[relation]
    vouch = "with relation 'any' you vouch for others"
    one, other = (_units(name, data, vouch) for name, data in (("data0", data0), ("data1", data1)))
    lacks, more = (one - other).total(), (other - one).total()
    if (lacks, more) not in allowed:
        how = f"it lacks {lacks} and has {more} more" if lacks or more else "both are the same"
        raise InvalidParameter("data1", data1, f"data0 with one element {done}: {how}; {vouch}")


def _units(name: str, data: object, vouch: str) -> Counter[object]:
    match data:
        case list() | tuple() | AbstractSet():
            units: list[object] = list(data)
        case Mapping():
            units = list(data.items())
        case _:
            raise InvalidParameter(name, data, f"a list, tuple, set or dict of units; {vouch}")
    try:
        return Counter(published_of(unit) for unit in units)
    except CannotCountError as error:
        expected = f"of units that can be compared, and {error} cannot; {vouch}"
        raise InvalidParameter(name, data, expected) from None
