"""Open what cannot be opened: what is said of it, and what is left behind."""

import tempfile
from pathlib import Path
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sessions.leaks import chain, holds

from targetcharge.engines.duckdb import open_duckdb

SECRET = "swordfish"  # noqa: S105 - a value of the table
NUMBER = 987654321
ROW = f"1,{SECRET},{NUMBER}\n"
TABLE = pa.table({"id": [1, 2], "name": [SECRET, None], "number": [NUMBER, 1], "list": [[SECRET], []]})
FRAME = TABLE.select(["id", "name", "number"]).to_pandas()


def refused(kind, words, source, unit=None, **options):
    """Check that opening raises this kind of error, in one sentence with these words and without any value."""
    connect, made = duckdb.connect, []

    def connect_and_remember(*arguments, **settings):
        made.append(connect(*arguments, **settings))
        return made[-1]

    with (
        tempfile.TemporaryDirectory() as place,
        patch.object(tempfile, "tempdir", place),
        patch.object(duckdb, "connect", connect_and_remember),
    ):
        with pytest.raises(kind) as caught:
            open_duckdb(source, unit, **options)
        left = [path.name for path in Path(place).iterdir()]
    error = caught.value
    assert type(error) is kind
    assert [word for word in words if word not in str(error)] == [], str(error)
    assert "\n" not in str(error)
    assert let_out(error) == []
    assert [
        each for each in chain(error) if isinstance(each, duckdb.Error | UnicodeError)
    ] == []  # they quote values
    assert left == []
    assert [connection for connection in made if is_open(connection)] == []


def let_out(error):
    """Return the errors, of one and all that hang on it, that hold a value of the table."""
    found = []
    for each in chain(error):
        for secret in (SECRET, str(NUMBER)):
            texts = (str(each), repr(each), repr(each.args), *getattr(each, "__notes__", ()))
            found += [repr(each)] if any(secret in text for text in texts) or holds(vars(each), secret) else []
    return found


def is_open(connection):
    try:
        connection.execute("SELECT 1")
    except duckdb.ConnectionException:
        return False
    return True


def parquet(path, table=TABLE):
    pq.write_table(table, path)
    return path


def database(path, *statements):
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def folder(path, **files):
    """Make a folder of files; `a_csv` is the name of a.csv."""
    path.mkdir()
    for name, content in files.items():
        each = path / name.replace("_", ".")
        parquet(each, content) if isinstance(content, pa.Table) else written(each, content)
    return path
