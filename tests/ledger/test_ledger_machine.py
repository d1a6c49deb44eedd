"""A ledger file under everything that can happen to it, against a model that keeps three numbers and a few lists.

The model says what must be charged to the unit: every hit that was seen, every failure, and of a crash exactly the
reservation that was in the file.
"""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.ledger.asking import crash, say
from tests.sizes import size

import targetcharge as tc
from targetcharge.ledger.sqlite import inspect, verify
from targetcharge.numerics.rounding import grains_up

MACHINES = size(20, 200)

BUDGET = tc.Budget(1.0, 2e-6)
RESERVED_DELTA = 5e-9
SESSIONS = (0, 1)

sessions = st.sampled_from(SESSIONS)


def algorithm(delta=0.0):
    @tc.private(epsilon=0.01, delta=delta)
    def told(data):
        if data["says"] is None:
            raise RuntimeError
        return data["says"]

    return told


QUESTIONS = {False: algorithm(), True: algorithm(1e-9)}


class Model:
    """What the ledger must say, for one meter whose hits cost one unit (exact) or one price (Rényi)."""

    def __init__(self, capacity, price):
        self.capacity, self.price = capacity, price
        self.hits = 0
        self.delta_runs = 0
        self.held = dict.fromkeys(SESSIONS, 0)
        self.answers = {}
        self.lost = set()
        self.pending = {}

    @property
    def left(self):
        return self.capacity // self.price - self.hits

    def covers(self, count, *, delta):
        return count <= self.left and (not delta or self.delta_runs < 5)

    def reserve(self, session, count, *, delta):
        """Hold back what a call may cost: what is held already, or as much as needed, from the others too."""
        self.delta_runs += delta
        if count > self.left - sum(self.held[other] for other in SESSIONS if other != session) and (
            self.held[session] < count or delta
        ):
            for other in SESSIONS:
                self.held[other] = 0
        if self.held[session] < count or delta:
            self.held[session] = count

    def settle(self, session, charged, *, written):
        """Charge; one hit is held back for the next call, if it is left."""
        self.hits += charged
        if written:
            others = sum(self.held[other] for other in SESSIONS if other != session)
            self.held[session] = int(self.left > others)

    def forfeit(self, session, count):
        self.hits += count
        self.held[session] = 0

    def crash(self, session):
        self.hits += self.held[session]
        self.held[session] = 0


class LedgerMachine(RuleBasedStateMachine):
    """Two sessions on one file, one of them often closed."""

    @initialize(meter=st.sampled_from(["exact", "renyi"]), query=st.sampled_from([0.02, 0.03, 0.04, 0.05]))
    def begin(self, meter, query):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "ledger.db"
        self.terms = {"query_epsilon": query, "meter": meter, "computation_delta": RESERVED_DELTA}
        self.open = dict.fromkeys(SESSIONS)
        self.opens(0)
        shown = self.open[0].meter
        self.model = Model(shown.tariff.capacity, shown.quote(tc.NotPrior(False), 0.01).grains)

    def teardown(self):
        for session in SESSIONS:
            if getattr(self, "open", {}).get(session) is not None:
                self.open[session].close()
        if hasattr(self, "folder"):
            verify(self.path)
            assert inspect(self.path).held.count == 0
            shutil.rmtree(self.folder)

    def opens(self, session):
        self.open[session] = tc.Session({"says": False}, BUDGET, ledger=self.path, **self.terms)

    def using(self, session):
        if self.open[session] is None:
            self.opens(session)
        return self.open[session]

    def call(self, session, count, ask, *, delta=False, fails=False):
        """Make a call and follow it in the model; return what it gave, or None if it gave nothing."""
        if not self.model.covers(count, delta=delta):
            with pytest.raises(tc.BudgetSpent):
                ask()
            return None
        self.model.reserve(session, count, delta=delta)
        if fails:
            with pytest.raises(tc.ComputationFailed):
                ask()
            self.model.forfeit(session, count)
            return None
        return ask()

    def saw(self, session, answer):
        assert answer.seq not in self.model.answers
        assert answer.seq not in self.model.lost
        self.model.answers[answer.seq] = (session, answer)

    @rule(session=sessions, says=st.sampled_from([False, False, True, None]), delta=st.booleans())
    def test(self, session, says, delta):
        used = self.using(session)
        say(used, says)
        answer = self.call(session, 1, lambda: used.test(QUESTIONS[delta]), delta=delta, fails=says is None)
        if answer is not None:
            assert (answer.outcome, answer.hit) == (says, says)
            self.saw(session, answer)
            self.model.settle(session, int(says), written=says)

    @rule(session=sessions, outcome=st.integers(0, 9), hit=st.booleans())
    def release(self, session, outcome, hit):
        used = self.using(session)
        say(used, outcome)
        done = self.call(session, 1, lambda: used.release(QUESTIONS[False], when=lambda _: hit))
        if done is not None:
            assert (done.released, done.outcome) == (hit, outcome if hit else None)
            self.model.settle(session, int(hit), written=True)
            if not hit:
                self.model.pending[done.seq] = outcome

    @precondition(lambda self: self.model.pending)
    @rule(session=sessions, hit=st.booleans(), data=st.data())
    def revise(self, session, hit, data):
        used = self.using(session)
        seq = data.draw(st.sampled_from(sorted(self.model.pending)))
        (pending,) = [found for found in used.pending if found.seq == seq]
        done = self.call(session, 1, lambda: pending.revise(lambda _: hit))
        if done is not None:
            expected = self.model.pending.pop(seq) if hit else None
            assert (done.released, done.outcome) == (hit, expected)
            self.model.settle(session, int(hit), written=hit)

    @rule(session=sessions, k=st.integers(1, 3), reaching=st.integers(0, 3))
    def select(self, session, k, reaching):
        used = self.using(session)
        say(used, 5)
        scores = [tc.private(epsilon=0.01)(lambda _, n=n: n) for n in range(3)]
        found = self.call(session, k, lambda: used.select(scores, k=k, threshold=3 - reaching))
        if found is not None:
            assert [answer.outcome for answer in found] == [2, 1, 0][: min(k, reaching)]
            for answer in found:
                self.saw(session, answer)
            self.model.settle(session, len(found), written=bool(found))

    @rule(session=sessions)
    def close(self, session):
        if self.open[session] is not None:
            self.open[session].close()
            self.open[session] = None
            self.model.held[session] = 0

    @rule(session=sessions)
    def crash(self, session):
        if self.open[session] is not None:
            crash(self.open[session])
            self.open[session] = None
            written = {answer.seq for answer in self._written()}
            for seq, (by, answer) in list(self.model.answers.items()):
                if by == session and seq not in written:
                    assert not answer.hit
                    self.model.lost.add(seq)
                    del self.model.answers[seq]
            self.model.crash(session)
            self.opens(session)

    def _written(self):
        with tc.Session({}, BUDGET, ledger=self.path, **self.terms) as session:
            return list(session.transcript)

    @rule(other=st.sampled_from(["query_epsilon", "meter", "computation_delta"]))
    def open_with_other_terms(self, other):
        terms = {"query_epsilon": 0.01, "meter": {"exact": "renyi", "renyi": "exact"}[self.terms["meter"]]}
        changed = {**self.terms, other: terms.get(other, 1e-9)}
        with pytest.raises(tc.NotAllowed, match=f"{other} was"):
            tc.Session({}, BUDGET, ledger=self.path, **changed)

    @rule()
    def spend_everything(self):
        used = self.using(0)
        say(used, True)
        while self.model.left:
            assert self.call(0, 1, lambda: used.ask(QUESTIONS[False], tc.NotPrior(False))).hit
            self.model.settle(0, 1, written=True)
        for session in SESSIONS:
            with pytest.raises(tc.BudgetSpent):
                self.using(session).test(QUESTIONS[False])

    @invariant()
    def the_ledger_says_what_the_model_says(self):
        if not hasattr(self, "path"):
            return
        for session in SESSIONS:
            if self.open[session] is None:
                continue
            shown = self.open[session].meter
            assert shown.hits == self.model.hits
            assert shown.totals.spent == self.model.hits * self.model.price <= self.model.capacity
            assert shown.totals.delta == self.model.delta_runs * grains_up(1e-9)
            assert shown.hits_left == (self.model.capacity - shown.totals.spent) // shown.tariff.typical.grains
            assert {found.seq for found in self.open[session].pending} == set(self.model.pending)
            self._check_transcript(session)
        held = inspect(self.path).held
        assert held.count == sum(self.model.held.values())
        assert held.count <= self.model.left
        verify(self.path)

    def _check_transcript(self, session):
        seqs = [answer.seq for answer in self.open[session].transcript]
        assert len(seqs) == len(set(seqs))
        seen = {seq for seq, (by, answer) in self.model.answers.items() if by == session or answer.hit}
        assert seen <= set(seqs)


LedgerMachine.TestCase.settings = settings(
    max_examples=MACHINES, stateful_step_count=25, deadline=None, derandomize=False
)
test_the_ledger_agrees_with_the_model = LedgerMachine.TestCase
