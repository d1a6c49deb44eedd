"""Commands as a user runs them: in this process, with exit code and both streams; or in a process of their own."""

import contextlib
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from unittest import mock

from targetcharge.cli.app import run as tct

CODE = (  # a shell may have started us with Ctrl-C ignored
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    " from targetcharge.cli import main; main()"
)


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def rows(self):
        return [line.split(",") for line in self.out.splitlines()]


def run(*arguments):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.object(sys, "argv", ["tct", *map(str, arguments)]),
        mock.patch.object(sys, "excepthook", sys.excepthook),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            tct()
        except SystemExit as end:
            code = end.code or 0
    assert "Traceback" not in out.getvalue() + err.getvalue()
    return Result(code, out.getvalue(), err.getvalue())


def start(*arguments, **options):
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(command, **streams)  # noqa: S603 - our own code
