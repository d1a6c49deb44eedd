import datetime as dt
import shutil
from pathlib import Path

import pandas as pd
import pytest
from tests.cli.commands import run
from tests.offset_noise import noise_of

from targetcharge.ledger import terms_at

COUNTY = 10_000  # patients in each of three counties, 500 noise scales from the thresholds of the tests
DAY = dt.datetime(2013, 1, 1)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """30,000 patients, one row each: aged 20, 70 and 80 in Kent, Devon and Essex, seen on three days."""
    folder = tmp_path_factory.mktemp("visits")
    columns = {
        "patient": range(3 * COUNTY),
        "age": [20, 70, 80] * COUNTY,
        "fare": [1.5, 2.25, 3.0] * COUNTY,
        "county": ["Kent", "Devon", "Essex"] * COUNTY,
        "ill": [True, False, False] * COUNTY,
        "seen": [DAY, DAY + dt.timedelta(hours=30), DAY + dt.timedelta(days=3)] * COUNTY,
    }
    frame = pd.DataFrame(columns)
    frame.to_parquet(folder / "visits.parquet")
    frame.to_csv(folder / "visits.csv", index=False)
    return folder


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """A folder of one's own with the tables in it; the commands run there."""
    for name in ("visits.parquet", "visits.csv"):
        shutil.copy(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def opened(folder):
    """The same, with a ledger for 10 hits beside the Parquet file."""
    asked = run("ask", "visits.parquet", "age > 200", "--threshold", 9000, *TERMS)
    assert (asked.code, hits()) == (0, 0)
    return folder


TERMS = ("--unit", "patient", "--epsilon", 3, "--delta", 1e-6)
EXACT = (*TERMS, "--meter", "exact", "--query-epsilon", 0.1)


def hits(table="visits.parquet"):
    return run("meter", table, "--json").json["hits"]


def noise(ledger="visits.parquet.ledger.db", sensitivity=1):
    """Return the law of a number's error, from the terms of a ledger."""
    terms = terms_at(Path(ledger))
    return noise_of(terms.offset, terms.query_epsilon, sensitivity)


def most(below, ledger="visits.parquet.ledger.db"):
    """Return the largest count that a noisy one below a threshold may stand for, in 95% of draws.

    On the lattice the noisy count is at most one step below the threshold.
    """
    law = noise(ledger)
    return (law.lattice * below - 1 + law.margins[0]) // law.lattice


def least(reached, ledger="visits.parquet.ledger.db"):
    """Return the smallest count that a noisy one from a threshold on may stand for, in 95% of draws."""
    law = noise(ledger)
    return -(-(law.lattice * reached - law.margins[1]) // law.lattice)
