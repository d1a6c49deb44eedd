"""Days with so many people each, far from every threshold: the noise has scale 1, thresholds are 50 away."""

import contextlib
import datetime as dt
from unittest import mock

import pandas as pd

import targetcharge as tc

FIRST = dt.date(2024, 1, 1)
BUDGET = tc.Budget(200.0, 1e-6)


def day(number):
    return FIRST + dt.timedelta(days=number)


def people(number, many, kind="a", start=0):
    """Rows of a day, one for each of so many people."""
    columns = {"person": range(start, start + many), "kind": [kind] * many, "cost": [2.5] * many}
    return pd.DataFrame(columns | {"day": pd.Series([day(number)] * many, dtype=object)})


def opened(rows=None, **options):
    options = {
        "budget": BUDGET,
        "query_epsilon": 1.0,
        "meter": "exact",
        "types": {"day": "date", "kind": "text"},
        **options,
    }
    return tc.open(people(0, 0) if rows is None else rows, "person", **options)


def kinds(look):
    return [(alert.rule, str(alert.kind)) for alert in look.alerts]


@contextlib.contextmanager
def breaking(table, after):
    """Let the ledger break when so many settlements are done."""
    ledger = table._session._ledger
    settle, done = ledger.settle, []

    def broken(settlement):
        if len(done) == after:
            msg = "the disk is full"
            raise tc.LedgerError(msg)
        done.append(settlement)
        return settle(settlement)

    with mock.patch.object(ledger, "settle", broken):
        yield
