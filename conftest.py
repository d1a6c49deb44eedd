"""The Python blocks of the README and the docs are tests: `pytest README.md docs`."""

import atexit
import os
import shutil
import tempfile

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["*.md"]).pytest()

_state = tempfile.mkdtemp()
atexit.register(shutil.rmtree, _state, ignore_errors=True)
os.environ["XDG_STATE_HOME"] = _state  # ledgers of tests leave no witness in the user's home
