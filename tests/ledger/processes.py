"""Real processes: forked from a server that has imported everything, so that hundreds of them are cheap."""

import multiprocessing
import os
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["__main__", "targetcharge", "tests.ledger.children", "tests.tables.unit_children"]
)


def _run(stderr, function, pipe, arguments):
    with stderr.open("wb") as file:
        os.dup2(file.fileno(), 2)
    function(pipe, *arguments)


class Child:
    """A process that runs a function of `ledger.children` with one end of a pipe, and the other end of it."""

    def __init__(self, function, *arguments):
        self.pipe, other = _context.Pipe()
        handle, name = mkstemp()
        os.close(handle)
        self._stderr = Path(name)
        run = (self._stderr, function, other, arguments)
        self._process = _context.Process(target=_run, args=run, daemon=True)
        self._process.start()
        other.close()

    def tell(self, message=None):
        self.pipe.send(message)

    def hear(self, seconds=30.0):
        assert self.pipe.poll(seconds), "the child said nothing"
        return self.pipe.recv()

    def is_silent(self, seconds):
        return not self.pipe.poll(seconds)

    def heard(self):
        """Return all that it said before it ended."""
        messages = []
        try:
            while True:
                messages.append(self.hear())
        except EOFError:
            return messages

    def kill(self):
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.join(30)

    def ends(self):
        """Wait for it; return its exit code."""
        self._process.join(30)
        return self._process.exitcode

    def wrote(self):
        """Return what it wrote to stderr so far."""
        return self._stderr.read_text()

    def stop(self):
        if self._process.is_alive():
            self.kill()
        sys.stderr.write(self.wrote())
        self._stderr.unlink()
        self.pipe.close()


@contextmanager
def child(function, *arguments):
    started = Child(function, *arguments)
    try:
        yield started
    finally:
        started.stop()
