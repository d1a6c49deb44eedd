"""The command line, `tct`."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run `tct`; say what to install if one of the command line's own dependencies, an extra, is missing."""
    for name in ("jinja2", "rich", "typer", "yaml"):
        if find_spec(name) is None:
            sys.exit(f"tct needs {name}, which is not installed: pip install 'targetcharge[cli]'")
    from targetcharge.cli.app import run  # noqa: PLC0415 - not without them

    run()
