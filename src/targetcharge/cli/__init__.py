"""The command line, `tct`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run `tct`; say what to install if the command line's own dependencies are missing."""
    try:
        from targetcharge.cli.app import run  # noqa: PLC0415 - typer and rich are an extra
    except ModuleNotFoundError as missing:
        sys.exit(f"tct needs {missing.name}, which is not installed: pip install 'targetcharge[cli]'")
    run()
