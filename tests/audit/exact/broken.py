"""Sessions with one mistake each: what the audit must flag. `broken(name, monkeypatch)` makes every session so."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import targetcharge as tc
from targetcharge.accounting.meter import tariff as tariffs
from targetcharge.accounting.meter.at_least import SparseTariff
from targetcharge.accounting.meter.tariff import ExactTariff, RenyiTariff
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.offsets.noise import SHARES
from targetcharge.audit.exact.player import Player
from targetcharge.ledger import MemoryLedger
from targetcharge.ledger.entries import DeltaSpent, charges
from targetcharge.ledger.ledger import check_room
from targetcharge.mechanisms.algorithm import redrawn
from targetcharge.mechanisms.noise import Carried
from targetcharge.numerics.rounding import grains_up
from targetcharge.sessions import session
from targetcharge.sessions.heart import Failure, Heart, OffsetDataset, attempt
from targetcharge.sessions.priced import Priced, PriceList, session_noise
from targetcharge.sessions.select import score_of

MISTAKES = {}
OFFSET_MISTAKES = {}
"""Those of sessions whose counts carry a secret offset."""


def mistake(function):
    MISTAKES[function.__name__] = function
    return function


def offset_mistake(function):
    OFFSET_MISTAKES[function.__name__] = function
    return function


def broken(name, monkeypatch):
    """Break all sessions in this way."""
    (MISTAKES | OFFSET_MISTAKES)[name](monkeypatch)


@mistake
def last_hit_not_charged(monkeypatch):
    add = MemoryLedger._add

    def forgetful(ledger, entry):
        spent = ledger.meters[0].totals.spent
        if (
            isinstance(entry, tc.Answer)
            and entry.hit
            and spent + entry.grains[0] >= ledger.meters[0].tariff.capacity
        ):
            ledger._entries.append(entry)
        else:
            add(ledger, entry)

    monkeypatch.setattr(MemoryLedger, "_add", forgetful)


@mistake
def delta_not_charged_on_misses(monkeypatch):
    settle = MemoryLedger.settle

    def reserve(ledger, most):
        ledger.forfeit("interrupted")
        check_room(ledger.meters, most)
        ledger._reserved = most

    def late(ledger, settlement):
        most = ledger._reserved
        if most.delta and any(map(charges, settlement.entries)):
            ledger._add(DeltaSpent(grains_up(most.delta)))
        settle(ledger, settlement)

    monkeypatch.setattr(MemoryLedger, "reserve", reserve)
    monkeypatch.setattr(MemoryLedger, "settle", late)


@mistake
def cancelled_call_returns_its_reservation(monkeypatch):
    def publish(self, most, name, compute):
        self._ledger.reserve(most)
        published = attempt(lambda: self._settled(compute))
        if isinstance(published, Failure):
            error = published.error()
            if isinstance(error, KeyboardInterrupt):
                self._ledger._reserved = None
            self._ledger.forfeit(name)
            raise error
        return published

    monkeypatch.setattr(Heart, "publish", publish)


@mistake
def failures_are_free(monkeypatch):
    monkeypatch.setattr(MemoryLedger, "forfeit", lambda ledger, _: setattr(ledger, "_reserved", None))


@mistake
def rule_sees_the_next_score(monkeypatch):
    """The rule names how many of the sorted scores to publish, having seen all."""

    def peeking(outcomes, most, _threshold, stop, release):
        scores = [score_of(outcome) for outcome in outcomes]
        order = sorted(range(len(scores)), key=scores.__getitem__, reverse=True)
        count = most if stop is None else stop([scores[index] for index in order])
        return [release(index) for index in order[:count]], ""

    monkeypatch.setattr(session, "sweep", peeking)


@mistake
def revise_redraws(monkeypatch):
    release, kept = tc.Session.release, tc.Session._pending_outcome
    drawn = {}

    def remembering(self, algorithm, when):
        drawn["last"] = algorithm
        return release(self, algorithm, when)

    def redrawn(self, seq):
        return replace(kept(self, seq), outcome=drawn["last"].run(None, None))

    monkeypatch.setattr(tc.Session, "release", remembering)
    monkeypatch.setattr(tc.Session, "_pending_outcome", redrawn)


@mistake
def refusal_depends_on_the_data(monkeypatch):
    """Only what turns out to be a hit is refused."""
    reserve, settle = MemoryLedger.reserve, MemoryLedger.settle

    def lenient(ledger, most):
        ledger.overdrawn = False
        try:
            reserve(ledger, most)
        except tc.BudgetSpent:
            ledger.overdrawn = True

    def strict(ledger, settlement):
        if ledger.overdrawn and any(map(charges, settlement.entries)):
            msg = "the budget does not cover it"
            raise tc.NotAllowed(msg)
        settle(ledger, settlement)

    monkeypatch.setattr(MemoryLedger, "reserve", lenient)
    monkeypatch.setattr(MemoryLedger, "settle", strict)


@mistake
def ties_in_the_order_of_the_data(monkeypatch):
    """Candidates of one score come in the order of the rows: `ORDER['player']` draws it, and it differs surely."""
    right = session.sweep

    def by_rows(outcomes, most, threshold, stop, release):
        reverse = ORDER["player"].draw({False: (1.0, 0.0), True: (0.0, 1.0)})
        if not reverse:
            return right(outcomes, most, threshold, stop, release)
        last = len(outcomes) - 1
        return right(outcomes[::-1], most, threshold, stop, lambda index: release(last - index))

    monkeypatch.setattr(session, "sweep", by_rows)


ORDER = {}


@mistake
def price_of_half_epsilon(monkeypatch):
    def halved(quote):
        return lambda tariff, target, epsilon, **carried: quote(tariff, target, epsilon / 2, **carried)

    for kind in (ExactTariff, RenyiTariff):
        monkeypatch.setattr(kind, "quote", halved(kind.quote))


@mistake
def prior_published_as_it_looks(monkeypatch):
    def judge(question, outcome):
        return outcome, tuple(outcome in target for target in question.targets)

    monkeypatch.setattr(Priced, "judge", judge)


@mistake
def revisions_are_free(monkeypatch):
    settle = MemoryLedger.settle

    def free(ledger, settlement):
        if settlement.closes is None:
            settle(ledger, settlement)
        else:
            ledger._pending.pop(settlement.closes)
            ledger._reserved = None

    monkeypatch.setattr(MemoryLedger, "settle", free)


@offset_mistake
def offset_drawn_for_every_question(monkeypatch):
    """`ORDER['player']` draws it, from its likely values: all others would only add paths."""

    def fresh(dataset):
        offsets = dataset.ledger.offset
        likely = offsets.masses > 0.01
        masses = offsets.masses[likely] / offsets.masses[likely].sum()
        law = {int(value): (mass, mass) for value, mass in zip(offsets.values[likely], masses, strict=True)}
        return Carried(dataset.dataset.data, ORDER["player"].draw(law))

    monkeypatch.setattr(OffsetDataset, "data", property(fresh))


@offset_mistake
def one_offset_for_at_least_and_at_most(monkeypatch):
    """A sparse session takes every question about a count."""

    def own(prices, algorithm, _target):
        return redrawn(algorithm, session_noise(prices._tariff, algorithm.epsilon))

    monkeypatch.setattr(PriceList, "own", own)
    monkeypatch.setattr(SparseTariff, "quote", lambda tariff, *_, **__: tariff.typical)


@offset_mistake
def counts_that_a_unit_lowers(monkeypatch):
    """They are declared monotone, and nobody looks."""
    monkeypatch.setattr(Player, "_check_counts", lambda *_: None)


@offset_mistake
def hits_without_the_unit_are_free(monkeypatch):
    """As with a budget for every individual: a number's name has its count on either dataset."""
    add = MemoryLedger._add

    def individual(ledger, entry):
        counts = entry.algorithm.removeprefix("number of ").split(" or ")
        if len(set(counts)) == 1:
            ledger._entries.append(entry)
        else:
            add(ledger, entry)

    monkeypatch.setattr(MemoryLedger, "_add", individual)


@offset_mistake
def at_least_rates_for_any_question(monkeypatch):
    """An exact session counts hits as if λ were 1."""

    def whole(offset, _kind):
        return Coupling(replace(offset, questions="at least"), SHARES)

    monkeypatch.setattr(Coupling, "half", whole)
    _forget_tariffs(monkeypatch)


@offset_mistake
def first_move_left_out(monkeypatch):
    """The offset is for free."""
    monkeypatch.setattr(Coupling, "after_first_move", lambda _coupling, _hits, questions: questions)
    monkeypatch.setattr(tariffs, "first_move", lambda *_: 0.0)
    _forget_tariffs(monkeypatch)


def _forget_tariffs(monkeypatch):
    for name in ("_exact_tariff", "_renyi_tariff"):
        monkeypatch.setattr(tariffs, name, lru_cache(getattr(tariffs, name).__wrapped__))
