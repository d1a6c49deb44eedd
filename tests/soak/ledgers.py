"""Trials of ledgers on disk: writers that are killed, races for the last hits, backups that are restored."""

import random
import shutil
import signal
import time
from contextlib import ExitStack, suppress

from tests.ledger import children
from tests.ledger.asking import hits, opened, spent, yes
from tests.ledger.client import Client
from tests.ledger.processes import child
from tests.soak.tally import Tally

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify

WRITERS = 3
KILLINGS = 3
MOST_HITS = 229
RACES = 8


def kills(seed, folder, writes=children.asks_until_killed):
    """Kill -9 several writers of one ledger at random moments, and compare it with what they told."""
    path, choose = folder / "ledger.db", random.Random(seed)
    client, tally, before = Client(), Tally(), (0, 0)
    for killing in range(KILLINGS):
        with ExitStack() as stack:
            writers = [
                stack.enter_context(child(writes, path, 1000 * seed + 10 * killing + number))
                for number in range(WRITERS)
            ]
            for writer in writers:
                if choose.random() < 0.8:
                    with suppress(EOFError):  # everything is spent
                        client.sees(*writer.hear())
            for writer in writers:
                time.sleep(choose.random() * 0.05)
                writer.kill()
                tally.tried += 1
            for writer in writers:
                for message in writer.heard():
                    client.sees(*message)
                _note_ending(writer, tally)
        with opened(path, MOST_HITS) as session:
            before = _compare(session, client, before, tally)
        verify(path)
    return tally


def _note_ending(process, tally):
    """Note a process that ended neither because it was done nor by our kill, with what it wrote to stderr."""
    code = process.ends()
    tally.note("wrong", code not in (0, -signal.SIGKILL), f"a process ended with {code}: {process.wrote()}")


def _compare(session, client, before, tally):
    lost, wrong, charged = client.lost(session), client.wrong(session), session.meter.hits
    tally.note("lost", len(lost), lost)
    tally.note("wrong", len(wrong), wrong)
    tally.note("free", max(0, len(hits(session)) - charged), f"{len(hits(session))} hits, {charged} charged")
    tally.note("free", max(0, charged - MOST_HITS), f"{charged} hits charged to a budget for {MOST_HITS}")
    after = client.unseen(session)
    for name, old, new in zip(("unseen hits", "abandoned hits"), before, after, strict=True):
        tally.note("wrong", not 0 <= new - old <= 2 * WRITERS, f"{new - old} more {name} after {WRITERS} kills")
    return after


def races(seed, folder, racing=children.races):
    """Let processes race for the last hits of many ledgers: each hit has one winner."""
    choose, tally = random.Random(seed), Tally()
    capacity = choose.choice([1, 2])
    with ExitStack() as stack:
        racers = [stack.enter_context(child(racing, capacity)) for _ in range(capacity + choose.choice([1, 2]))]
        for race in range(RACES):
            path = folder / f"{race}.db"
            for racer in racers:
                racer.tell(path)
            try:
                won = [racer.hear() for racer in racers].count(True)
            except EOFError:
                tally.note("wrong", 1, "a racer left the race")
                break
            tally.tried += 1
            tally.note("free", max(0, won - capacity), f"{won} hits of a budget for {capacity}")
            tally.note("lost", max(0, capacity - won), f"{won} hits of {capacity} that were left")
            with opened(path, capacity) as session:
                charged, held = session.meter.hits, spent(session)
            tally.note("wrong", (charged, held) != (capacity, []), f"{charged} of {capacity} hits charged, {held}")
        for racer in racers:
            with suppress(OSError):  # it has left
                racer.tell(None)
        for racer in racers:
            _note_ending(racer, tally)
    return tally


def _hit(path, count):
    """Hit so many times; return the last entry's number and hash."""
    with opened(path, 15) as session:
        for _ in range(count):
            session.test(yes)
    state = inspect(path).state
    return state.last_entry, state.head.hex()


def _witness(path):
    return path.with_name(path.name + "-witness")


def _put_back(path, backup):
    shutil.copyfile(backup, path)
    return path


def _put_back_with_its_witness(path, backup):
    backup.replace(path)
    _witness(backup).replace(_witness(path))
    return path


def _open_elsewhere(_, backup):
    return backup


def _open_elsewhere_without_witness(_, backup):
    _witness(backup).unlink()
    return backup


WAYS = (_put_back, _put_back_with_its_witness, _open_elsewhere, _open_elsewhere_without_witness)


def restores(seed, folder):
    """Take a backup, hit on, and restore it in some way: it opens as spent, unless it is all that there was."""
    choose, tally = random.Random(seed), Tally(tried=1)
    path, backup = folder / "ledger.db", folder / "backup.db"
    first, more = choose.randint(1, 5), choose.randint(1, 5)
    last = _hit(path, first)
    shutil.copy(path, backup)
    shutil.copy(_witness(path), _witness(backup))
    way = choose.choice(WAYS)
    if choose.random() < 0.7:
        _hit(path, more)
        restored = way(path, backup)
        won = _wins(restored)
        tally.note("free", won, f"{way.__name__}: a restored ledger gave {first} of {first + more} hits again")
    else:
        restored = _open_elsewhere_without_witness(path, backup)
        with opened(restored, 15, restored=last) as session:
            tally.note(
                "lost", max(0, first - session.meter.hits), f"{session.meter.hits} of {first} hits are left"
            )
            tally.note(
                "wrong", not session.test(yes).hit, "the complete copy that its owner vouches for stands still"
            )
    return tally


def _wins(path):
    """Return whether a ledger publishes a hit."""
    with opened(path, 15) as session:
        try:
            return session.test(yes).hit
        except tc.BudgetSpent:
            return False
