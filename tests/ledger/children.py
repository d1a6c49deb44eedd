"""What the processes of the tests do. Each gets its end of a pipe first."""

import os
import random
import resource
import signal
import sqlite3
import sys
import time
from contextlib import suppress

from tests.ledger.asking import approximate, broken, no, opened, say, told, yes

import targetcharge as tc
from targetcharge.ledger.sqlite.database import Database
from targetcharge.ledger.sqlite.ledger import SqliteLedger
from targetcharge.ledger.sqlite.locks import OtherLocks, in_locked_file
from targetcharge.ledger.sqlite.witness import Witnesses, WitnessFile


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(owner, name, *, before):
    """Make a method the last thing that this process begins, or ends."""
    original = getattr(owner, name)

    def last(*arguments, **more):
        if before:
            die()
        original(*arguments, **more)
        die()

    setattr(owner, name, last)


@tc.private(epsilon=0.01)
def fatal(_):
    """Draw, and die."""
    die()


POINTS = {
    "before reserving": (SqliteLedger, "_hold_back", True),
    "after reserving": (SqliteLedger, "reserve", False),
    "before recording": (SqliteLedger, "settle", True),
    "before commit": (Database, "save", True),
    "after commit": (Witnesses, "tell", True),
    "before the witness": (WitnessFile, "remember", True),
    "after the witness": (WitnessFile, "remember", False),
    "before return": (SqliteLedger, "settle", False),
}


def dies_at(pipe, path, point, capacity, says, warm):
    """Ask a question and die at a named point of it; `warm` if a miss came before it."""
    session = opened(path, capacity, says)
    if warm:
        session.test(no)
    if point == "after drawing":
        session.test(fatal)
    owner, name, before = POINTS[point]
    _dying(owner, name, before=before)
    pipe.send(session.test(told).outcome)


def asks_until_killed(pipe, path, seed):
    """Ask all kinds of questions; tell every answer right after the call returned."""
    choose = random.Random(seed)
    with suppress(tc.BudgetSpent):
        session = opened(path, 229)
        pipe.send(("opened",))
        number = 0
        while True:
            number += 1
            say(session, (seed, number))
            kind = choose.choices(["miss", "hit", "keep", "revise", "select", "break"], [70, 12, 4, 6, 4, 4])[0]
            if kind == "miss":
                answers = [session.test(no)]
            elif kind == "hit":
                answers = [session.ask(told, tc.NotPrior(None))]
            elif kind == "keep":
                kept = session.release(told, when=lambda _: False)
                pipe.send(("kept", kept.seq, (seed, number)))
                continue
            elif kind == "revise":
                pending = session.pending
                if pending:
                    with suppress(tc.NotAllowed):  # another process was quicker
                        done = choose.choice(pending).revise(lambda _: True)
                        pipe.send(("published", done.seq, done.outcome))
                continue
            elif kind == "select":
                answers = session.select([_score(number), _score(number + 1)], k=2)
            else:
                with suppress(tc.ComputationFailed):
                    session.test(broken)
                continue
            for answer in answers:
                pipe.send(("answer", answer.seq, answer.hit, answer.outcome))


def _score(number):
    return tc.private(epsilon=0.01, name="score")(lambda _: number)


def spends_delta(pipe, path):
    """Miss a thousand times, with a δ each; then wait for the end."""
    session = tc.Session({"says": False}, tc.Budget(1.0, 2e-6), 0.03, ledger=path, computation_delta=1e-6)
    for _ in range(1000):
        assert not session.test(approximate).hit
    pipe.send("missed")
    time.sleep(60)


def races(pipe, capacity):
    """For each path: open it and ask for one hit, at once with others."""
    while (path := pipe.recv()) is not None:
        try:
            with opened(path, capacity) as session:
                pipe.send(session.test(yes).hit)
        except tc.BudgetSpent:
            pipe.send("refused")


def races_on_an_open_session(pipe, path, capacity):
    """Open; then ask for a hit, each time that it is told to, at once with others."""
    session = opened(path, capacity)
    pipe.send("opened")
    while pipe.recv() is not None:
        try:
            pipe.send(session.test(yes).seq)
        except tc.BudgetSpent:
            pipe.send("refused")
    session.close()
    pipe.send("closed")


def holds(pipe, path, capacity):
    """Miss, and so hold a hit back; then ask as it is told."""
    session = opened(path, capacity)
    session.test(no)
    pipe.send("holds")
    while (says := pipe.recv()) is not None:
        say(session, says)
        try:
            pipe.send(session.test(told).hit)
        except tc.BudgetSpent:
            pipe.send("refused")


def computes(pipe, path, capacity):
    """Compute until it is told the outcome."""

    @tc.private(epsilon=0.01)
    def slow(_):
        pipe.send("computes")
        return pipe.recv()

    with opened(path, capacity) as session:
        pipe.send(session.test(slow).hit)
        pipe.recv()


def misses_forever(pipe, path, capacity):
    """Miss without pause, holding a hit back."""
    session = opened(path, capacity)
    session.test(no)
    pipe.send("misses")
    with suppress(tc.BudgetSpent):
        while True:
            session.test(no)
    pipe.send("refused")


def writes_hits(pipe, path, capacity):
    """Hit until everything is spent."""
    pipe.send("writes")
    with opened(path, capacity) as session, suppress(tc.BudgetSpent):
        while True:
            session.test(no)
            session.test(yes)
    pipe.send("spent")


def _fill_the_disk(path):
    """Let no file grow beyond the ledger's size; return what undoes it."""
    most = max(file.stat().st_size for file in (path, path.with_name(path.name + "-wal")))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


def finds_the_disk_full(pipe, path, when):
    """Ask while nothing can be written; tell what came of it, what was computed, and what came after."""
    runs = []

    @tc.private(epsilon=0.01, delta=1e-9 if when == "delta" else 0.0)
    def counted(data):
        runs.append(1)
        return data["says"]

    session = tc.Session({"says": True}, tc.Budget(1.0, 2e-6), 0.04, ledger=path, computation_delta=1e-6)
    session.test(yes)
    if when == "after a failure":
        with suppress(tc.ComputationFailed):
            session.test(broken)
    undo = None if when == "in draw" else _fill_the_disk(path)

    @tc.private(epsilon=0.01)
    def fills(_):
        nonlocal undo
        undo = _fill_the_disk(path)
        raise ValueError

    question = {"failing": _unpublishable, "in draw": fills}.get(when, counted)
    pipe.send(_result(lambda: session.test(question)))
    pipe.send(len(runs))
    undo()
    pipe.send(_result(lambda: session.test(yes)))


@tc.private(epsilon=0.01)
def _unpublishable(_):
    return object()


def _result(call):
    try:
        answer = call()
    except tc.TargetChargeError as error:
        return type(error).__name__, str(error)
    return "answered", getattr(answer, "hit", None)


def closes_on_a_full_disk(pipe, path):
    session = opened(path)
    session.test(yes)
    for _ in range(200):
        session.test(no)
    _fill_the_disk(path)
    pipe.send(_result(session.close))


def opens_on_a_full_disk(pipe, path, most):
    """Open a ledger while no file may grow beyond so many bytes; tell what came of it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    pipe.send(_result(lambda: opened(path)))


def opens_as_nobody(pipe, path):
    """Open a ledger without the right to write it."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    pipe.send(_result(lambda: opened(path)))


def forks_and_goes_on(pipe, path, ending):
    """Fork a child that tries to use the session and ends; then go on."""
    session = opened(path)
    session.test(yes)
    transcript = session.transcript
    read, write = os.pipe()
    if os.fork() == 0:
        tried = [
            _result(lambda: session.test(yes)),
            _result(lambda: session.meter.hits),
            _result(lambda: session.transcript),
            _result(lambda: list(transcript)),
            _result(session.close),
            _result(lambda: opened(path)),
        ]
        os.write(write, repr(tried).encode())
        if ending == "exit":
            sys.exit(0)
        if ending == "collect":
            del session
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        pipe.send(file.read())
    with suppress(ChildProcessError):
        os.wait()
    pipe.send(_result(lambda: session.test(yes)))
    pipe.send(path.with_name(path.name + "-wal").exists())
    session.close()
    pipe.send(_result(lambda: opened(path).test(yes)))


def forks_in_a_computation(pipe, path):
    """Fork in the middle of a call: both processes come out of it with an answer, and only one may publish it."""
    parent = os.getpid()

    @tc.private(epsilon=0.01)
    def forks(_):
        os.fork()
        return True

    session = opened(path)
    session.test(no)
    result = _result(lambda: session.test(forks))
    if os.getpid() != parent:
        pipe.send(("child", *result))
        os._exit(0)
    os.wait()
    pipe.send(("parent", *result))
    pipe.send(_result(lambda: session.test(yes)))
    session.close()


def forks_and_is_killed(pipe, path):
    """Hold a hit back, fork a child that lives on, tell its pid, and wait."""
    session = opened(path, 1)
    session.test(no)
    pipe.send(_child_that_lives_on(pipe))
    time.sleep(60)


def forks_while_it_takes(pipe, path, kind):
    """Fork a child that lives on while this process has locked a neighbour's file, or the witness."""
    if kind == "witness":
        pid = in_locked_file(WitnessFile.beside(path).path, lambda _: _child_that_lives_on(pipe))
    else:
        name = next(file.stem for file in path.with_name(path.name + "-tenants").glob("*.run"))
        with OtherLocks(path, name) as locks:
            locks.wait_for_call()
            pid = _child_that_lives_on(pipe)
    pipe.send(pid)


def _child_that_lives_on(pipe):
    pid = os.fork()
    if pid == 0:
        pipe.close()
        time.sleep(60)
        os._exit(0)
    return pid


def interrupts(pipe, path, where, capacity, says):
    """Get Ctrl-C right after the COMMIT of a call, or of its failure; then go on."""
    session = opened(path, capacity, says)
    if where != "of the first reservation":
        session.test(no)
    count = 0
    execute = Database.transaction

    def interrupted(self):
        context = execute(self)

        class Interrupting:
            def __enter__(self):
                return context.__enter__()

            def __exit__(self, *arguments):
                nonlocal count
                context.__exit__(*arguments)
                count += 1
                if count == 1:
                    raise KeyboardInterrupt

        return Interrupting()

    Database.transaction = interrupted
    try:
        pipe.send(session.test(broken if where == "of a failure" else told).hit)
    except KeyboardInterrupt:
        pipe.send("interrupted")
    held = session._ledger._transactions.session.held.count
    with sqlite3.connect(path) as database:
        pipe.send((held, database.execute("SELECT sum(count) FROM sessions").fetchone()[0]))
    pipe.send(session.meter.hits)
    session.close()
