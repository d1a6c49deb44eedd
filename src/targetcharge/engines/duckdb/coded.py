"""Counts of many predicates in DuckDB: values become codes, and every code's answers are looked up in lists.

Asked alone, every predicate takes a scan. Here one scan finds the codes of all columns (`engines/coding.py`), by a
binary search among the constants, and for each a mask with a bit for every predicate. Of a column that is matched
with patterns, every different value is: it has masks of its own. Then rows with the same codes are one cell, or
the masks of a unit's rows are joined to one. As secret as the data.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import or_
from typing import TYPE_CHECKING, Final, final

import duckdb
import numpy as np

from targetcharge.engines import sql
from targetcharge.engines.coding import Constants, constants_of, has_pattern, terms
from targetcharge.engines.duckdb.cubes import chunks
from targetcharge.engines.duckdb.measuring import parameter_of
from targetcharge.engines.duckdb.types import stored
from targetcharge.queries.tree import columns as columns_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from targetcharge.engines.coding import Term
    from targetcharge.engines.duckdb.connection import Connection
    from targetcharge.engines.sql import Relation
    from targetcharge.queries.tree import Column, Predicate

    Asked = Mapping[int, Sequence[Term]]
    """From a predicate's name to its terms."""
    Bits = Mapping[int, Predicate | None]
    """From the bit of a predicate to what must be true of a column; None if that may be anything."""
    Place = tuple[int, int]
    """A mask, and which of the terms of its predicates."""
    Integers = NDArray[np.int64]

_FEWEST_OF_ROWS: Final = 32
_FEWEST_OF_UNITS: Final = 16
"""Predicates that are worth a scan of codes: it takes about as long as they do by themselves."""
_BITS: Final = 62
"""Predicates of one mask."""
_MOST_MASKS: Final = 20
"""Masks of one scan."""
_MOST_CONSTANTS: Final = 5_000
"""Constants of one scan."""
_MOST_CELLS: Final = 2**20
"""Cells up to which predicates over different columns share a scan of rows."""
_MOST_VALUES: Final = 2**20
"""Different values of a column that is matched with patterns."""
_READ: Final = 2**19
"""Cells or units whose masks are read at once."""
_BYTES: Final = 8
"""Of a mask."""
_MASKED: Final = "coded_rows"
_VALUES: Final = "coded_values"
_BITS_OF_BYTES: Final = (np.arange(256)[:, None] >> np.arange(8)) & 1


def fewest(relation: Relation) -> int:
    """Return how many counts are worth a scan of codes."""
    return _FEWEST_OF_ROWS if relation.unit is None else _FEWEST_OF_UNITS


def count_coded(link: Connection, relation: Relation, wheres: Mapping[int, Predicate | None]) -> dict[int, int]:
    """Return how many units have a row of which each predicate is true, for those that scans of codes count."""
    known = {index: where for index, where in wheres.items() if where is not None}
    columns = {column.name: column for where in known.values() for column in columns_of(where)}
    asked = {index: split for index, where in known.items() if (split := _coded(where)) is not None}
    matched = {name for split in asked.values() for name in _matched(split)}
    too_many = {name for name in matched if _different(link, relation, name) > _MOST_VALUES}
    asked = {index: split for index, split in asked.items() if not too_many & _matched(split)}
    counts: dict[int, int] = {}
    for group in _groups(asked) if relation.unit is None else [asked]:
        for scan in _scans(group) if len(group) >= fewest(relation) else []:
            counts |= _counted(link, relation, columns, scan)
    return counts


def _coded(where: Predicate) -> list[Term] | None:
    """Return a predicate's terms; None if it has too many of them, or too many constants."""
    few = sum(1 for _ in constants_of(where)) <= _MOST_CONSTANTS
    return terms(where) if few else None


def _matched(split: Sequence[Term]) -> set[str]:
    """Return the columns that terms match with patterns."""
    return {name for term in split for name, part in term.items() if has_pattern(part)}


def _different(link: Connection, relation: Relation, name: str) -> int:
    """Return about how many different values a column has."""
    return link.integer(f"SELECT approx_count_distinct({relation.by[name]}) FROM {relation.rows}")


def _columns(split: Sequence[Term]) -> tuple[str, ...]:
    """Return the columns of terms, in order."""
    return tuple(sorted({name for term in split for name in term}))


def _groups(asked: Asked) -> Iterator[Asked]:
    """Yield predicates over the same columns, or over columns that make few cells: those share a scan of rows."""
    alike: dict[tuple[str, ...], dict[int, Sequence[Term]]] = defaultdict(dict)
    for index, split in asked.items():
        alike[_columns(split)][index] = split
    groups: list[tuple[dict[str, int], dict[int, Sequence[Term]]]] = []
    for columns, members in sorted(alike.items(), key=lambda item: -len(item[0])):
        sizes = dict.fromkeys(columns, 1)
        for split in members.values():
            for term in split:
                for name, part in term.items():
                    sizes[name] += _MOST_VALUES if has_pattern(part) else sum(1 for _ in constants_of(part))
        for other, group in groups:
            joined = {name: other.get(name, 0) + sizes.get(name, 0) for name in other.keys() | sizes.keys()}
            if prod(joined.values()) <= _MOST_CELLS:
                other.update(joined)
                group.update(members)
                break
        else:
            groups.append((sizes, members))
    for _, group in groups:
        yield group


def _scans(asked: Asked) -> Iterator[Asked]:
    """Yield as many predicates as one scan takes; those over the same columns are next to each other."""
    scan: dict[int, Sequence[Term]] = {}
    constants, most = 0, -(-len(asked) // -(-len(asked) // (_BITS * _MOST_MASKS)))  # about as many in every scan
    for index, split in sorted(asked.items(), key=lambda item: (len(item[1]), _columns(item[1]))):
        own = sum(1 for term in split for part in term.values() for _ in constants_of(part))
        if scan and (len(scan) == most or constants + own > _MOST_CONSTANTS):
            yield scan
            scan, constants = {}, 0
        scan[index], constants = split, constants + own
    if scan:
        yield scan


# One scan


@final
@dataclass(frozen=True)
class _Lists:
    """What a column decides, by the codes of its values.

    Attributes:
        constants: that have codes.
        masks: for each place, a mask of every code.
        possible: whether any predicate may be true of a row, by the code of its value.
    """

    constants: Constants
    masks: Mapping[Place, Integers]
    possible: NDArray[np.bool_]


@final
@dataclass(frozen=True)
class _Looked:
    """How the masks of a column are looked up.

    Attributes:
        rows: the query of all rows of which a predicate may be true, with the columns that a look needs.
        kept: the names of these columns.
        masks: for each place the SQL of a row's mask.
        searched: parameters of the rows.
        listed: parameters of the masks.
    """

    rows: str
    kept: list[str]
    masks: Mapping[Place, str]
    searched: Mapping[str, object]
    listed: Mapping[str, object]


def _counted(link: Connection, relation: Relation, columns: Mapping[str, Column], asked: Asked) -> dict[int, int]:
    """Return how many units have a row of which each predicate is true, for as many as one scan takes."""
    matched = {name for split in asked.values() for name in _matched(split)}
    bits = {name: _bits(asked, name) for name in {name for split in asked.values() for name in _columns(split)}}
    places = sorted({place for decided in bits.values() for place in decided})
    lists = {name: _lists(decided, places) for name, decided in bits.items() if name not in matched}
    # What leaves few rows comes first.
    names = [*sorted(lists, key=lambda name: (lists[name].possible.mean(), name)), *sorted(matched)]
    values = ", ".join(f"{relation.by[name]} AS v{number}" for number, name in enumerate(names))
    rows = f"SELECT {values} FROM {relation.rows}"
    if relation.unit is not None:
        rows = f"SELECT * FROM (SELECT {relation.unit} AS u, {values} FROM {relation.rows}) WHERE u IS NOT NULL"
    looked: list[_Looked] = []
    try:
        for number, name in enumerate(names):
            if name in matched:
                looked.append(_by_values(link, relation, rows, number, name, bits[name], places))
            else:
                looked.append(_by_constants(rows, number, columns[name], lists[name]))
            rows = looked[-1].rows
        counts = _added(link, relation, looked, places)
    finally:
        with suppress(duckdb.Error):  # what is left over takes memory, and is read by nobody
            for table in (_MASKED, *(f"{_VALUES}_{number}" for number, _ in enumerate(names))):
                link.rows(f"DROP TABLE IF EXISTS {table}")
    return dict(zip(asked, counts, strict=False))


def _bits(asked: Asked, name: str) -> dict[Place, Bits]:
    """Return what a column decides, for each mask and term of which it decides something."""
    bits: dict[Place, Bits] = {}
    for mask, chunk in enumerate(chunks(list(asked.values()), _BITS)):
        for term in range(max(map(len, chunk))):
            decided = {bit: split[term].get(name) for bit, split in enumerate(chunk) if term < len(split)}
            if any(decided.values()):
                bits[mask, term] = decided
    return bits


def _lists(bits: Mapping[Place, Bits], places: Sequence[Place]) -> _Lists:
    """Return what a column decides, by the codes of its values."""
    constants = Constants.of(part for decided in bits.values() for part in decided.values() if part is not None)
    masks = {place: np.zeros(constants.most + 1, np.int64) for place in bits}
    for place, decided in bits.items():
        for bit, part in decided.items():
            masks[place][slice(None) if part is None else constants.true_of(part)] |= 1 << bit
    everywhere = len(bits) == len(places)  # or another column alone decides a mask
    possible = reduce(or_, masks.values()) != 0 if everywhere else np.ones(constants.most + 1, np.bool_)
    return _Lists(constants, masks, possible)


def _by_constants(rows: str, number: int, column: Column, lists: _Lists) -> _Looked:
    """Return how the masks of a column are looked up by its codes."""
    constants = [parameter_of(column, value) for value in lists.constants.codes]
    searched: dict[str, object] = {f"k{number}": constants} if constants else {}
    rows = sql.coded(rows, number, f"CAST($k{number} AS {stored(column)}[])", len(constants))
    if not lists.possible.all():
        searched[f"p{number}"] = lists.possible.tolist()
        rows = f"SELECT * FROM ({rows}) WHERE {_listed(f'p{number}', 'BOOLEAN', number)}"
    names = {place: f"a{number}_{place[0]}_{place[1]}" for place in lists.masks}
    masks = {place: _listed(name, "BIGINT", number) for place, name in names.items()}
    listed: dict[str, object] = {names[place]: mask.tolist() for place, mask in lists.masks.items()}
    return _Looked(rows, [f"c{number}"], masks, searched, listed)


def _listed(name: str, kind: str, number: int) -> str:
    """Return the SQL of what a list that is a parameter has for a row's code."""
    return f"list_extract(CAST(${name} AS {kind}[]), c{number} + 1)"


def _by_values(
    link: Connection,
    relation: Relation,
    rows: str,
    number: int,
    name: str,
    bits: Mapping[Place, Bits],
    places: Sequence[Place],
) -> _Looked:
    """Return how the masks of a column are looked up by its values: a table of them is made, with their masks."""
    masks = {place: f"x{number}_{place[0]}_{place[1]}" for place in bits}
    made = {
        masks[place]: sql.mask({bit: sql.condition(part, {name: "v"}) for bit, part in decided.items()})
        for place, decided in bits.items()
    }
    values = f"SELECT DISTINCT {relation.by[name]} AS v FROM {relation.rows}"
    answers = f"SELECT v, {', '.join(f'{mask} AS {masked}' for masked, mask in made.items())} FROM ({values})"
    table = f"{_VALUES}_{number}"
    link.rows(f"CREATE OR REPLACE TEMP TABLE {table} AS {answers}")
    # Here and not above, where DuckDB would move it before DISTINCT.
    possible = f"({' | '.join(made)}) <> 0" if len(bits) == len(places) else "TRUE"
    joined = f"({rows}) r JOIN (FROM {table} WHERE {possible}) a ON r.v{number} IS NOT DISTINCT FROM a.v"
    rows = f"SELECT r.*, {', '.join(f'a.{masked}' for masked in made)} FROM {joined}"
    return _Looked(rows, list(made), masks, {}, {})


def _added(link: Connection, relation: Relation, looked: Sequence[_Looked], places: Sequence[Place]) -> list[int]:
    """Return how many units have each bit of the masks."""
    terms_of: dict[int, list[str]] = defaultdict(list)
    for place in places:
        terms_of[place[0]].append(f"({' & '.join(one.masks[place] for one in looked if place in one.masks)})")
    masks = ", ".join(f"{' | '.join(parts)} AS m{mask}" for mask, parts in terms_of.items())
    names = [f"m{mask}" for mask in terms_of]
    searched = {name: values for one in looked for name, values in one.searched.items()}
    listed = {name: values for one in looked for name, values in one.listed.items()}
    rows = looked[-1].rows
    if relation.unit is None:
        kept = ", ".join(name for one in looked for name in one.kept)
        cells = f"SELECT {kept}, count(*) AS n FROM ({rows}) GROUP BY {kept}"
        link.rows(f"CREATE OR REPLACE TEMP TABLE {_MASKED} AS {cells}", searched)
        query = f"SELECT n, {masks} FROM {_MASKED}"
    else:
        joint = ", ".join(f"bit_or({name}) AS {name}" for name in names)
        of_units = f"SELECT {joint} FROM (SELECT u, {masks} FROM ({rows})) GROUP BY u"
        link.rows(f"CREATE OR REPLACE TEMP TABLE {_MASKED} AS {of_units}", searched | listed)
        query, listed = f"SELECT {', '.join(names)} FROM {_MASKED}", {}
    end = link.integer(f"SELECT coalesce(max(rowid) + 1, 0) FROM {_MASKED}")
    counts = np.zeros((len(names), 8 * _BYTES), np.int64)
    for start in range(0, end, _READ):
        columns = link.arrays(f"{query} WHERE rowid >= {start} AND rowid < {start + _READ}", listed)
        for mask, name in enumerate(names):
            counts[mask] += _bit_counts(columns[name], columns.get("n"))
    in_order: list[int] = counts[:, :_BITS].ravel().tolist()
    return in_order


def _bit_counts(masks: Integers, times: Integers | None) -> Integers:
    """Return how many masks have each of 64 bits, counted as often as they are there."""
    data = masks.astype("<i8", copy=False).view(np.uint8).reshape(-1, _BYTES)
    # Sums are below 2^53, so that they are exact in floating point too.
    of_bytes = [np.bincount(data[:, place], times, minlength=256) for place in range(_BYTES)]
    return np.concatenate([counts @ _BITS_OF_BYTES for counts in of_bytes]).astype(np.int64)
