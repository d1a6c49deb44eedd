"""A whole session against a tiny model: hits, units, δ, what is pending, the transcript."""

from __future__ import annotations

from contextlib import contextmanager
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.sessions.scripted import budget_of, gives

import targetcharge as tc

EPSILONS = (0.1, 0.05, 0.02)
DELTAS = (0.0, 1e-7, 3e-7)
KEPT = 1e-6
ROOM = Fraction(KEPT) * (1 + Fraction(1, 2**40))
"""A hair more, so that ten times 1e-7 fits into 1e-6."""

epsilons, deltas = st.sampled_from(EPSILONS), st.sampled_from(DELTAS)
values = st.integers(0, 3)
value_sets = st.sets(values)


class SessionMachine(RuleBasedStateMachine):
    """The model keeps exact sums; a call is refused exactly if the model says so."""

    @initialize(meter=st.sampled_from(["exact", "renyi"]), hits=st.integers(1, 6))
    def open(self, meter, hits):
        self.session = tc.Session(
            None, budget_of(hits, kept=KEPT, meter=meter), 0.1, meter=meter, computation_delta=KEPT
        )
        tariff = self.session.meter.tariff
        self.capacity = tariff.capacity
        self.prices = {epsilon: tariff.quote(tc.NotPrior(0), epsilon) for epsilon in EPSILONS}
        self.spent = self.hits = 0
        self.delta = Fraction(0)
        self.pending: dict[int, tuple[int, float]] = {}
        self.published = []

    @contextmanager
    def call(self, most, delta=0.0):
        """Expect a refusal if the most that a call could charge is not covered."""
        refused = self.spent + most > self.capacity or self.delta + Fraction(delta) > ROOM
        if not refused:
            self.delta += Fraction(delta)
            yield True
            return
        with pytest.raises(tc.BudgetSpent):
            yield False
        assert refused

    def charge(self, epsilon):
        self.spent += self.prices[epsilon].grains
        self.hits += 1

    @rule(yes=st.booleans(), epsilon=epsilons, delta=deltas)
    def test(self, yes, epsilon, delta):
        with self.call(self.prices[epsilon].grains, delta) as goes_on:
            answer = self.session.test(gives(yes, epsilon=epsilon, delta=delta))
            assert goes_on
            assert (answer.outcome, answer.price) == (yes, self.prices[epsilon].value * yes)
            self.published.append(yes)
            if yes:
                self.charge(epsilon)

    @rule(outcome=values, prior=values, epsilon=epsilons)
    def ask_prior(self, outcome, prior, epsilon):
        with self.call(self.prices[epsilon].grains):
            answer = self.session.ask_prior(gives(outcome, epsilon=epsilon), prior)
            assert answer.hit == (outcome != prior)
            self.published.append(outcome)
            if answer.hit:
                self.charge(epsilon)

    @rule(epsilon=epsilons, delta=deltas, broken=st.sampled_from([ValueError(), SystemExit(), object()]))
    def fail(self, epsilon, delta, broken):
        with self.call(self.prices[epsilon].grains, delta) as goes_on:
            shown = SystemExit if isinstance(broken, SystemExit) else tc.ComputationFailed
            with pytest.raises(shown if goes_on else tc.BudgetSpent):
                self.session.test(gives(broken, epsilon=epsilon, delta=delta))
            if not goes_on:
                self.session.test(gives(False, epsilon=epsilon, delta=delta))
            self.charge(epsilon)

    @rule(outcome=values, when=value_sets, epsilon=epsilons, delta=deltas)
    def release(self, outcome, when, epsilon, delta):
        with self.call(self.prices[epsilon].grains, delta):
            release = self.session.release(gives(outcome, epsilon=epsilon, delta=delta), when)
            self.settle(release, outcome, when, epsilon)

    @precondition(lambda self: self.pending)
    @rule(data=st.data(), when=value_sets)
    def revise(self, data, when):
        seq = data.draw(st.sampled_from(sorted(self.pending)))
        outcome, epsilon = self.pending[seq]
        with self.call(self.prices[epsilon].grains):
            self.settle(self.session.revise(seq, when), outcome, when, epsilon)

    def settle(self, release, outcome, when, epsilon):
        assert release.released == (outcome in when)
        self.published.append(outcome if release.released else None)
        if release.released:
            self.pending.pop(release.seq, None)
            self.charge(epsilon)
        else:
            self.pending[release.seq] = (outcome, epsilon)

    @rule(
        scores=st.lists(st.tuples(values, epsilons, deltas), min_size=1, max_size=4),
        data=st.data(),
        threshold=st.none() | values,
        floor=st.none() | values,
    )
    def select(self, scores, data, threshold, floor):
        k = data.draw(st.integers(1, len(scores)))
        most = k * max(self.prices[epsilon].grains for _, epsilon, _ in scores)
        delta = sum(Fraction(delta) for _, _, delta in scores)
        candidates = [gives(score, epsilon=epsilon, delta=delta) for score, epsilon, delta in scores]
        with self.call(most, delta):
            before = Fraction(self.session.meter.totals.delta, 2**128)
            answers = self.session.select(candidates, k, None if floor is None else lambda _: floor, threshold)
            self.delta += Fraction(self.session.meter.totals.delta, 2**128) - before - delta  # rounded up
            expected = []
            for index in sorted(range(len(scores)), key=lambda i: (-scores[i][0], i))[:k]:
                least = max(-1 if threshold is None else threshold, -1 if floor is None or not expected else floor)
                if scores[index][0] < least:
                    break
                expected.append(index)
                self.charge(scores[index][1])
            assert [answer.candidate for answer in answers] == expected
            self.published += [scores[index][0] for index in expected] + [None] * (len(expected) < k)

    @invariant()
    def the_session_agrees(self):
        if not hasattr(self, "session"):
            return
        totals = self.session.meter.totals
        assert (totals.spent, totals.hits) == (self.spent, self.hits)
        assert Fraction(totals.delta, 2**128) == pytest.approx(self.delta, abs=1e-30)
        assert totals.spent <= self.capacity
        assert [release.seq for release in self.session.pending] == list(self.pending)
        assert [answer.outcome for answer in self.session.transcript] == self.published
        seqs = [answer.seq for answer in self.session.transcript]
        assert seqs == sorted(set(seqs))

    def teardown(self):
        if hasattr(self, "session"):
            self.session.close()


TestSession = SessionMachine.TestCase
TestSession.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
