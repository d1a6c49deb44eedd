"""Importing the package waits for no library that a command run from cron may never use; helpers hide nothing."""

import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).parent
LATER = {"duckdb", "sklearn", "scipy.stats", "scipy.signal", "matplotlib", "pandas", "datasketches"}


def test_large_libraries_are_imported_when_they_are_needed():
    script = f"import sys; import targetcharge; print(*({LATER} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603 - our own script
    assert told.stdout == "\n"


def test_helpers_are_imported_only_as_parts_of_tests():
    files = {path.stem for path in HERE.rglob("*.py")} - {"conftest", "__main__"}
    folders = {path.parent.name for path in HERE.rglob("*.py")} - {"tests"}
    assert {"tables", "ledger", "sessions", "goodness", "naive"} <= files | folders
    assert [name for name in sorted(files | folders) if _is_in_tests(PathFinder.find_spec(name))] == []
    assert _is_in_tests(PathFinder.find_spec("tests")), "power: a helper that can be imported is noticed"


def _is_in_tests(spec):
    """Return whether a module, or a folder without an `__init__.py`, is in the folder of the tests."""
    if spec is None:
        return False
    places = [spec.origin] if spec.origin else spec.submodule_search_locations
    return any(HERE in [Path(place), *Path(place).parents] for place in places)
