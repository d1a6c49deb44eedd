"""Questions about a table, as values: made without data, checked against a schema, asked or previewed later.

A question is about a number: how many units have a row that counts (a predicate as text, or `count`), what their
contributions add up to (`sum`), or how many distinct values a column has (`distinct`). A `count` by itself is a
question too: the number is published, and always paid for. So are `histogram`, `mean` and `quantiles`. A label is
public, and kept with the answers.

>>> above("age > 65 AND diagnosis = 'flu'", threshold=1200)
Above(what=Count(where="age > 65 AND diagnosis = 'flu'"), threshold=1200, prior=None, tolerance=None)
>>> between(sum("fare", lower=0, upper=100, where="rain = TRUE"), 5_000, 10_000).what.upper
100
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING, Any, Final, cast, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from decimal import Decimal

    from targetcharge.queries.tree import Predicate

    Grid = int | float | str | Decimal | Fraction
    By = str | Sequence[str]
    """One or two columns."""
    Where = str | Predicate | None
    """Which rows count: a predicate as text, or as the tree that was parsed from one; None for all rows."""


_LARGEST_DENOMINATOR: Final = 10**6
"""Of a share of units: ranks of so many parts fit into 64 bits."""


@final
@dataclass(frozen=True)
class Count:
    """How many units have a row that counts; all rows count if there is no predicate."""

    where: Where = None


@final
@dataclass(frozen=True)
class Sum:
    """What units contribute, added up; each unit's contribution lies between the bounds."""

    column: str
    lower: float
    upper: float
    where: Where = None
    grid: Grid | None = None


@final
@dataclass(frozen=True)
class Distinct:
    """How many distinct values a column has, of each unit at most `per_unit`."""

    column: str
    where: Where = None
    per_unit: int = 1


@final
@dataclass(frozen=True)
class Value:
    """One number for each unit: the mean of its rows, between the bounds."""

    column: str
    lower: float
    upper: float
    where: Where = None
    grid: Grid | None = None


What = Count | Sum | Distinct


@final
@dataclass(frozen=True)
class Above:
    """The noisy number if it is at least the threshold; with a prior, if it has changed."""

    what: What
    threshold: float
    prior: object = None
    tolerance: float | str | None = None
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class CountQuestion:
    """The noisy number, always paid for; with a prior, if it has changed."""

    what: What
    prior: object = None
    tolerance: float | str | None = None
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class BetweenQuestion:
    """On which side of a band the noisy number lies; inside costs."""

    what: What
    low: float
    high: float
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class SideQuestion:
    """On which side of a threshold the number lies; free unless it is too close to call."""

    what: What
    threshold: float
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Mean:
    """The mean of one number for each unit, always paid for."""

    what: Value
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Quantiles:
    """Where shares of all units lie, by one number for each; every one is paid for.

    Attributes:
        what: the number.
        shares: of the units that are at most there.
        label: what the caller wrote on it.
    """

    what: Value
    shares: tuple[Fraction, ...]
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Histogram:
    """The noisy counts of all declared keys, always paid for; a unit counts for at most `per_unit` of them."""

    what: What
    by: str | tuple[str, ...]
    keys: Any
    per_unit: int = 1
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Watch:
    """`Above` for every declared key."""

    what: What
    by: str | tuple[str, ...]
    keys: Any
    threshold: float
    label: str = field(default="", repr=False)


@final
@dataclass(frozen=True)
class Top:
    """The k keys with the largest numbers, and the noisy numbers if values are wanted."""

    what: What
    by: str | tuple[str, ...]
    keys: Any
    k: int
    threshold: float | None = None
    values: bool = True
    label: str = field(default="", repr=False)


Single = Above | CountQuestion | BetweenQuestion | SideQuestion | Mean
"""Questions with one answer, as are those for one quantile."""

Keyed = Watch | Top | Histogram
"""Questions about declared keys."""

Question = Single | Quantiles | Keyed
"""Everything a table can be asked."""

Asked = str | What | CountQuestion | None
"""What a question is about: a predicate, None for all units, or made by `count`, `sum` or `distinct`."""


def count(
    where: Asked = None, prior: object = None, tolerance: float | str | None = None, *, label: str = ""
) -> CountQuestion:
    """Return the question of `Table.count`.

    It can also be what another question is about: `above(count("age > 65"), 1200)` is `above("age > 65", 1200)`.
    """
    return CountQuestion(what_of(where), prior, tolerance, label)


def sum(  # noqa: A001 - the word for it everywhere
    column: str, lower: float, upper: float, where: str | None = None, *, grid: Grid | None = None
) -> Sum:
    """Return the sum of what units contribute.

    Args:
        column: a number.
        lower: the least a unit contributes; what is less counts as this.
        upper: the most a unit contributes.
        where: which rows count.
        grid: values are rounded to multiples of it, such as 0.01 or "0.01"; left out for one that fits the bounds.
    """
    return Sum(column, lower, upper, where, grid)


def distinct(column: str, where: str | None = None, *, per_unit: int = 1) -> Distinct:
    """Return the number of distinct values of a column, by a sketch of bounded size.

    Args:
        column: any column.
        where: which rows count.
        per_unit: the most values of one unit that are counted; noise grows with it.
    """
    return Distinct(column, where, per_unit)


def mean(
    column: str,
    lower: float,
    upper: float,
    where: str | None = None,
    *,
    grid: Grid | None = None,
    label: str = "",
) -> Mean:
    """Return the question of `Table.mean`.

    Args:
        column: a number; each unit's value is the mean of its rows.
        lower: the least value; what is less counts as this.
        upper: the largest value.
        where: which rows count.
        grid: values are rounded to multiples of it; left out for one that fits the bounds.
        label: a text that is kept with the answer.
    """
    return Mean(Value(column, lower, upper, where, grid), label)


def quantile(
    column: str,
    q: float,
    lower: float,
    upper: float,
    where: str | None = None,
    *,
    grid: Grid | None = None,
    label: str = "",
) -> Quantiles:
    """Return the question of `Table.quantile`: see `quantiles`."""
    return quantiles(column, [q], lower, upper, where, grid=grid, label=label)


def quantiles(
    column: str,
    qs: Sequence[float],
    lower: float,
    upper: float,
    where: str | None = None,
    *,
    grid: Grid | None = None,
    label: str = "",
) -> Quantiles:
    """Return the question of `Table.quantiles`.

    Args:
        column: a number; each unit's value is the mean of its rows.
        qs: shares of the units, above 0 and below 1.
        lower: the least value; what is less counts as this.
        upper: the largest value.
        where: which rows count.
        grid: answers are multiples of it; left out for whole numbers, or a thousand to ten thousand of them.
        label: a text that is kept with the answers.
    """
    if not isinstance(qs, list | tuple) or not qs:
        raise InvalidParameter("qs", qs, "a list of numbers above 0 and below 1, such as [0.25, 0.5, 0.75]")
    return Quantiles(Value(column, lower, upper, where, grid), tuple(map(_share, qs)), label)


def histogram(where: Asked, by: By, keys: object, per_unit: int = 1, *, label: str = "") -> Histogram:
    """Return the question of `Table.histogram`."""
    return Histogram(what_of(where), _columns(by), keys, per_unit, label)


def above(
    where: Asked, threshold: float, prior: object = None, tolerance: float | str | None = None, *, label: str = ""
) -> Above:
    """Return the question of `Table.above`."""
    return Above(what_of(where), threshold, prior, tolerance, label)


def between(where: Asked, low: float, high: float, *, label: str = "") -> BetweenQuestion:
    """Return the question of `Table.between`."""
    return BetweenQuestion(what_of(where), low, high, label)


def side(where: Asked, threshold: float, *, label: str = "") -> SideQuestion:
    """Return the question of `Table.side`."""
    return SideQuestion(what_of(where), threshold, label)


def watch(where: Asked, by: By, keys: object, threshold: float, *, label: str = "") -> Watch:
    """Return the question of `Table.watch`."""
    return Watch(what_of(where), _columns(by), keys, threshold, label)


def top(
    where: Asked,
    by: By,
    keys: object,
    k: int = 1,
    *,
    values: bool = True,
    threshold: float | None = None,
    label: str = "",
) -> Top:
    """Return the question of `Table.top`."""
    return Top(what_of(where), _columns(by), keys, k, threshold, values, label)


def what_of(where: Asked) -> What:
    """Return what a question is about.

    Raises:
        InvalidParameter: if it is none.
    """
    if where is None or isinstance(where, str):
        return Count(where)
    if isinstance(where, Count | Sum | Distinct):
        return where
    if isinstance(where, CountQuestion):
        if where != CountQuestion(where.what):
            raise InvalidParameter("where", where, "a count without prior, tolerance and label of its own")
        return where.what
    raise InvalidParameter("where", where, "a predicate such as 'age > 65', or made by count, sum or distinct")


def _share(share: float) -> Fraction:
    """Return a share of units as it was written: 0.9 is nine tenths, not the double next to it."""
    expected = "a number above 0 and below 1, with at most six decimals"
    written, given = checks.fitting(share, "q", expected, lambda number: 0 < number < 1), cast("object", share)
    exact = Fraction(given) if isinstance(given, Rational) else Fraction(f"{written:.12g}")
    if exact.denominator > _LARGEST_DENOMINATOR:
        raise InvalidParameter("q", share, expected)
    return exact


def _columns(by: By) -> str | tuple[str, ...]:
    return by if isinstance(by, str) or not isinstance(by, Sequence) else tuple(by)


def figure(value: float) -> int | float | str:
    """Return a number that was checked as JSON and names have it, 100.0 as 100: or a fraction as text."""
    if isinstance(value, float) or not isinstance(value, Rational):
        number = float(value)
        return int(number) if number.is_integer() and abs(number) <= checks.MAX_THRESHOLD else number
    return int(value) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"
