"""Importing the package: a command that is run from cron should not wait for libraries that it may never use."""

import subprocess
import sys

LATER = {"duckdb", "sklearn", "scipy.stats", "scipy.signal", "matplotlib", "pandas", "datasketches"}


def test_large_libraries_are_imported_when_they_are_needed():
    script = f"import sys; import targetcharge; print(*({LATER} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603 - our own script
    assert told.stdout == "\n"
