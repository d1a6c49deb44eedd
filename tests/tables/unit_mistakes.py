"""Budgets for individuals with one mistake each: what the audit must flag. `broken` makes all tables so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from targetcharge.accounting.meter.allowance import Allowance, Prices
from targetcharge.ledger.entries import answers_in
from targetcharge.numerics.rounding import grains_up
from targetcharge.tables.individual import unit_meters
from targetcharge.tables.individual.charges import ChargeReader
from targetcharge.tables.individual.contributors import Drawn
from targetcharge.tables.individual.counters import Counters
from targetcharge.tables.individual.unit_meters import UnitMeters

MISTAKES = {}


def mistake(function):
    MISTAKES[function.__name__] = function
    return function


def broken(name, monkeypatch):
    """Break all tables in this way."""
    MISTAKES[name](monkeypatch)


def spent_by(counters, units):
    return counters.spent[units].astype(np.int64)


def as_far_as_it_goes(counters, units, prices):
    paid = np.minimum(spent_by(counters, units) + prices, counters.allowance.capacity)
    counters.spent[units] = paid.astype(counters.allowance.counter)


class OwnEntries:
    """A ledger of which only the entries of one session are seen."""

    def __init__(self, ledger):
        self._ledger, self._seqs, self._number = ledger, set(), ledger.next_seq

    def next_seq(self, count=1):
        seq = self._number(count)
        self._seqs.update(range(seq, seq + count))
        return seq

    def since(self, number):
        last, entries = self._ledger.since(number)
        return last, [entry for entry in entries if any(told.seq in self._seqs for told in answers_in(entry))]

    def hash_at(self, number):
        return self._ledger.hash_at(number)


@mistake
def others_are_not_looked_at(monkeypatch):
    """A session charges what it published itself, not what others have published on the same ledger."""
    read = UnitMeters.read_ledger

    def selfish(units):
        if not isinstance(units.ledger, OwnEntries):
            ledger = units.ledger
            units.ledger = OwnEntries(ledger)
            ledger.next_seq = units.ledger.next_seq
        read(units)

    monkeypatch.setattr(UnitMeters, "read_ledger", selfish)


@mistake
def something_left_is_enough(monkeypatch):
    """Who has not spent everything takes part, and pays what there is."""

    def able(counters, units, _):
        return spent_by(counters, units) < counters.allowance.capacity

    monkeypatch.setattr(Counters, "able", able)
    monkeypatch.setattr(Counters, "charge", as_far_as_it_goes)


@mistake
def only_what_raises_a_sum_is_priced(monkeypatch):
    """Contributions below 0 are free, as if the paper's f(x) > 0 were meant for them."""
    of = Prices.of
    monkeypatch.setattr(Prices, "of", lambda prices, steps: of(prices, np.maximum(steps, 0)))


@mistake
def prices_are_those_of_small_epsilons(monkeypatch):
    """a(a-1)ε², which is what the price is about where ε is small."""
    right = Allowance.prices

    def rough(allowance, target, epsilon, sensitivity):
        order = allowance.tariff.order
        full = int(grains_up(order * (order - 1) * epsilon**2) * allowance.scale)
        return replace(right(allowance, target, epsilon, sensitivity), full=full)

    monkeypatch.setattr(Allowance, "prices", rough)


@mistake
def spent_units_are_in_a_sketch(monkeypatch):
    """A Bloom filter of two bits with one hash function: who shares a bit with a spent unit is taken for spent."""
    able = Counters.able

    def sketched(counters, units, prices):
        spent = np.flatnonzero(counters.spent >= counters.allowance.capacity)
        return able(counters, units, prices) & ~np.isin(units % 2, spent % 2)

    monkeypatch.setattr(Counters, "able", sketched)


@mistake
def only_who_tipped_the_scales_pays(monkeypatch):
    """A number that reaches its threshold without any one of its units charges nobody."""
    answer = ChargeReader._answer

    def tipped(dues, told):
        prepared = dues._prepared(told)
        threshold = getattr(prepared and prepared.question, "threshold", None)
        if isinstance(threshold, int) and isinstance(told.outcome, int) and told.outcome > threshold:
            return iter(())
        return answer(dues, told)

    monkeypatch.setattr(ChargeReader, "_answer", tipped)


@mistake
def pending_releases_are_not_held(monkeypatch):
    """A release is charged when it is published, to those who can still pay then."""
    read, answer, drawn = UnitMeters.read_ledger, ChargeReader._answer, {}

    def remembering(units):
        for entry in units.ledger.entries():
            drawn.update({told.seq: told for told in answers_in(entry) if told.release == told.seq})
        read(units)

    def late(dues, told):
        if told.release is None or told.hit:
            yield from answer(dues, drawn.get(told.release, told))

    monkeypatch.setattr(UnitMeters, "read_ledger", remembering)
    monkeypatch.setattr(ChargeReader, "_answer", late)
    monkeypatch.setattr(unit_meters, "_charges", lambda entry: any(told.hit for told in answers_in(entry)))


@mistake
def room_for_one_hit_is_enough_for_a_selection(monkeypatch):
    most = Drawn._most
    monkeypatch.setattr(Drawn, "_most", lambda draw, _: most(draw, 1))
    monkeypatch.setattr(Counters, "charge", as_far_as_it_goes)


@mistake
def sums_are_rounded_before_the_noise(monkeypatch):
    """Up to even steps: a unit that contributes one step moves them by two, or by none."""
    added = Drawn._added

    def rounded(draw, first, last, able):
        return [-(-total // 2) * 2 for total in added(draw, first, last, able)]

    monkeypatch.setattr(Drawn, "_added", rounded)


@mistake
def a_batch_counts_once(monkeypatch):
    """One scan, one list of counts: who is retired by a hit is still in those that follow."""
    by = UnitMeters.of_keys_when_due

    def once(units, prepared):
        numbers, kept = by(units, prepared), []

        def counted(first, last):
            if not kept:
                kept.extend(numbers(0, len(prepared.keys.values)))
            yield from kept[first:last]

        return counted

    monkeypatch.setattr(UnitMeters, "of_keys_when_due", once)


@mistake
def broken_calls_are_free(monkeypatch):
    charges = unit_meters._charges
    monkeypatch.setattr(unit_meters, "_charges", lambda entry: bool(answers_in(entry)) and charges(entry))


@mistake
def appended_rows_bring_new_budgets(monkeypatch):
    """Who has rows in a new snapshot starts afresh."""
    settle = UnitMeters.settle

    def fresh(units):
        counters = settle(units)
        if getattr(units, "counted", 1) < units.engine.snapshot:
            counters.spent[:] = 0
        units.counted = units.engine.snapshot
        return counters

    monkeypatch.setattr(UnitMeters, "settle", fresh)
