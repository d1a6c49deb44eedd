"""Tables of individuals under everything that can happen to them; the model is the naive table."""

from __future__ import annotations

import gc
import random
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from tests.sizes import size
from tests.tables.individuals import Drawn, opened
from tests.tables.naive_units import random_rows
from tests.tables.paired import Pair, noise_of
from tests.tables.test_individual_simulation import Player

import targetcharge as tc
from targetcharge.ledger.entries import Spent
from targetcharge.tables.individual import UnitMeters, unit_meters

SEEDS = st.integers(0, 2**32)
MOST_TABLES, MOST_SNAPSHOTS = 3, 3


class Units(RuleBasedStateMachine):
    """One ledger, up to three tables on it."""

    @initialize(
        seed=SEEDS, meter=st.sampled_from(["exact", "renyi"]), by_row=st.booleans(), hits=st.integers(1, 6)
    )
    def start(self, seed, meter, by_row, hits):
        self.rng = random.Random(seed)
        self.patch = pytest.MonkeyPatch()
        self.folder = Path(tempfile.mkdtemp())
        noise_of(self.patch, self.rng)
        self.patch.setattr(unit_meters, "_CHARGES_A_SCAN", 3)  # so that checkpoints are made on the way
        path = self.folder / "ledger.db"
        self.saved = self.folder / "ledger.db-counters"

        def open_one(source):
            return opened(source, hits, unit=tc.ROW if by_row else "unit", meter=meter, ledger=path)

        rows = random_rows(self.rng, 15, 30)
        self.pair = Pair(open_one, [rows], Drawn(self.patch), by_row=by_row)
        self.player = Player(self.pair, self.rng, meter)
        self.old = None

    @rule(seed=SEEDS)
    def ask(self, seed):
        self.rng.seed(seed)
        self.player.step()

    @rule(seed=SEEDS, place=st.integers(0, MOST_TABLES - 1))
    def watch_a_little(self, seed, place):
        self.rng.seed(seed)
        self.player.begin(self.pair.tables[place % len(self.pair.tables)])

    @rule(seed=SEEDS)
    def watch_on(self, seed):
        self.rng.seed(seed)
        self.player.go_on(None)

    @rule(place=st.integers(0, MOST_TABLES - 1), kind=st.sampled_from([ValueError, KeyboardInterrupt]))
    def break_a_call(self, place, kind):
        t = self.pair.tables[place % len(self.pair.tables)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(UnitMeters, "one", lambda *_: (_ for _ in ()).throw(kind))
            with pytest.raises((tc.ComputationFailed, KeyboardInterrupt)):
                t.count()
        last = [entry for entry in t._session._ledger.entries() if isinstance(entry, Spent)][-1]
        assert last.count == 1
        self.pair.naive.broken(t._numbers.allowance.scaled(last.grains[0]))

    @rule()
    def compare(self):
        self.pair.settled()

    @precondition(lambda self: len(self.pair.tables) < MOST_TABLES)
    @rule()
    def open_another(self):
        self.pair.tables.append(self.pair.open())

    @rule(place=st.integers(0, MOST_TABLES - 1), closed=st.booleans(), damage=st.integers(0, 5))
    def reopen(self, place, closed, damage):
        """End a table, by closing or by forgetting it; do something to the checkpoint; open it again."""
        place %= len(self.pair.tables)
        t = self.pair.tables.pop(place)
        self.player.watching = [each for each in self.player.watching if each[0] is not t]
        self.pair.t = None
        if closed:
            t.close()
        del t
        gc.collect()
        self.harm(damage)
        self.pair.tables.insert(place, self.pair.open())
        self.pair.t = self.pair.tables[0]

    def harm(self, damage):
        if damage == 1:
            self.saved.unlink(missing_ok=True)
        elif damage == 2 and self.saved.exists():
            body = bytearray(self.saved.read_bytes())
            body[self.rng.randrange(len(body))] ^= 1 << self.rng.randrange(8)
            self.saved.write_bytes(body)
        elif damage == 3 and self.saved.exists():
            self.old = self.saved.read_bytes()
        elif damage == 4 and self.old is not None:
            self.saved.write_bytes(self.old)
        elif damage == 5 and self.saved.exists():
            self.saved.write_bytes(self.saved.read_bytes()[: self.rng.randrange(200)])

    @precondition(lambda self: len(self.pair.snapshots) < MOST_SNAPSHOTS)
    @rule(seed=SEEDS)
    def append(self, seed):
        self.rng.seed(seed)
        self.pair.append(random_rows(self.rng, 12, 8, first=10))

    def teardown(self):
        if not hasattr(self, "pair"):
            return
        try:
            self.pair.settled()
        finally:
            for t in self.pair.tables:
                with suppress(Exception):
                    t.close()
            self.patch.undo()
            shutil.rmtree(self.folder, ignore_errors=True)


TestUnits = Units.TestCase
TestUnits.settings = settings(
    max_examples=size(8, 50),
    stateful_step_count=size(20, 40),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
