"""Certificates pass for every type of target, show a worst pair, and fail where a price or q is too small."""

from __future__ import annotations

import pytest

import targetcharge as tc
from targetcharge.accounting import prices, qvalues
from targetcharge.audit import certify

PAIRS = 3000
TARGETS = [
    tc.NotPrior(0),
    tc.Everything(),
    tc.Disagreement(),
    tc.Boundary(),
    tc.Between(0, 0),
    tc.Between(3, 7.5),
    tc.QTarget(0.1, ()),
    tc.QTarget(0.7, ()),
]
TIGHT_Q = (tc.NotPrior, tc.Everything, tc.Between, tc.QTarget)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_no_pair_has_less_than_the_q_of_its_target(target, epsilon):
    verdict = certify(target, epsilon, pairs=PAIRS)
    assert verdict.passed, str(verdict)
    assert (verdict.quantity, verdict.mode, verdict.at) == ("q", "certificate", epsilon)
    if isinstance(target, TIGHT_Q):
        assert verdict.ratio == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("target", TARGETS, ids=repr)
def test_no_pair_needs_more_than_the_price_and_some_need_nearly_that(target, epsilon):
    verdict = certify(target, epsilon, order=1.05, pairs=PAIRS)
    assert verdict.passed, str(verdict)
    assert verdict.quantity == "price"
    assert 0.99 < verdict.ratio <= 1 + 1e-7
    assert "(hit)" in verdict.worst


def one_percent_less(function):
    return lambda *arguments: 0.99 * function(*arguments)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("not_prior", tc.NotPrior(0)),
        ("disagreement", tc.Disagreement()),
        ("boundary", tc.Boundary()),
        ("q_target", tc.QTarget(0.2, ())),
        ("q_target", tc.Between(0, 2)),
    ],
)
def test_a_price_one_percent_too_small_fails(monkeypatch, name, target):
    monkeypatch.setattr(prices, name, one_percent_less(getattr(prices, name)))
    verdict = certify(target, 0.5, order=1.1, pairs=PAIRS)
    assert not verdict.passed
    assert verdict.ratio > 1.005


def test_a_q_too_large_fails_and_the_pair_is_shown(monkeypatch):
    monkeypatch.setattr(qvalues, "not_prior", lambda epsilon: 1.01 / (2.718281828**epsilon + 1))
    verdict = certify(tc.NotPrior(0), 0.5, pairs=PAIRS)
    assert not verdict.passed
    assert verdict.worst.startswith("NotPrior at epsilon 0.5: 0 ")


def test_a_certificate_is_reproducible_from_its_seed():
    assert certify(tc.Boundary(), 0.3, pairs=500, seed=3) == certify(tc.Boundary(), 0.3, pairs=500, seed=3)
