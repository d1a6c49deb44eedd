"""Whom an answer is about is found again from its key, whatever the key's type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.tables.individuals import counters, opened
from tests.tables.noise import silence

import targetcharge as tc

KINDS = {
    "integer": (pa.int64(), [2**63 - 1, -(2**63), 2**53 + 1, 2**53, 0]),
    "small": (pa.uint8(), [0, 255, 7]),
    "number": (pa.float64(), [0.1, -0.0, 1e300, 5e-324, 2.0, 1 / 3, 2.0**60, -1.5]),
    "single": (pa.float32(), [0.25, 0.5, 2.0**30, 3.0]),
    "decimal": (pa.decimal128(20, 2), [Decimal("0.10"), Decimal("99999999999999.99"), Decimal("-3.00")]),
    "long": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), Decimal("0.1")]),
    "text": (pa.string(), ["a", "A", " a", "", "é", "e\u0301", "it's", "1", "\U0001f600", "a\nb", "%_"]),
    "flag": (pa.bool_(), [True, False]),
    "date": (pa.date32(), [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    "time": (
        pa.timestamp("us"),
        [dt.datetime(2024, 2, 29, 12, 0, 0, 1), dt.datetime(1970, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59)],
    ),
}
"""Every kind of column that can have keys, and values of it."""

RANGES = (tc.days("2024-02-28", "2024-03-01"), tc.hours("2024-02-29 11:00", "2024-02-29 13:00"))
PAIRS = (("flag", "text"), ("number", "date"), ("decimal", "single"), ("time", "long"))


def everything_by_key(t):
    """Ask about every key of every kind, so that each unit is charged for each of its values."""
    for name, (_, values) in KINDS.items():
        t.watch(None, name, values, 1)
        t.top(None, name, values, len(values))
    for first, second in PAIRS:
        pairs = [(a, b) for a in KINDS[first][1] for b in KINDS[second][1]]
        t.watch(None, [first, second], pairs, 1)
        t.top(None, [first, second], pairs, 3, threshold=10**5)
    for keys in RANGES:
        t.watch(None, "time", keys, 1)
        t.top(None, "time", keys, 1)


def hits_by_key(rows):
    """Return how many hits that is, for a unit with these rows."""
    singly = sum(2 * len({row[name] for row in rows}) for name in KINDS)
    pairwise = sum(len({(row[first], row[second]) for row in rows}) for first, second in PAIRS)
    return singly + pairwise + 4 * any(row["time"].year == 2024 for row in rows)


@pytest.mark.parametrize("remembered", [True, False], ids=["remembered", "found again"])
@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_whom_an_answer_is_about_is_found_again_whatever_the_key(monkeypatch, tmp_path, meter, remembered):
    """From the published key alone, without a checkpoint; many answers are looked for in one scan."""
    silence(monkeypatch)
    path, most = tmp_path / "ledger.db", 3 * max(len(values) for _, values in KINDS.values())
    rows = [
        {name: values[place % len(values)] for name, (_, values) in KINDS.items()} | {"unit": unit}
        for unit in range(most)
        for place in (unit, unit // 3)
    ]
    arrays = {name: pa.array([row[name] for row in rows], kind) for name, (kind, _) in KINDS.items()}
    source = pa.table({"unit": pa.array([row["unit"] for row in rows]), **arrays})
    with opened(source, 200, meter=meter, ledger=path) as t:
        everything_by_key(t)
        price = t._numbers.allowance.prices(tc.NotPrior(None), 0.1, 1).full
        ours = [price * hits_by_key([row for row in rows if row["unit"] == unit]) for unit in range(most)]
        assert max(ours) <= t._numbers.allowance.capacity
        if remembered:
            assert counters(t) == ours
    path.with_name("ledger.db-counters").unlink(missing_ok=True)
    with opened(source, 200, meter=meter, ledger=path) as t:
        assert counters(t) == ours
