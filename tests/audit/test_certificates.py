"""Certificates pass for every type of target, show a worst pair, and fail where a price or q is too small."""

from __future__ import annotations

import math
import re

import pytest
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting import prices, qvalues
from targetcharge.audit import certify

PAIRS = size(3_000, 30_000)
MANY = size(10_000, 80_000)
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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("q", [1e-4, 0.01, 0.05, 0.1, 0.3, 1.0])
def test_true_q_values_pass_on_many_pairs_without_warnings(q, epsilon):
    """Some of these pairs have hits of mass 1e-13, where differences of masses were rounding."""
    verdict = certify(tc.QTarget(q, ()), epsilon, pairs=MANY)
    assert verdict.passed, str(verdict)
    assert verdict.ratio == pytest.approx(1, abs=1e-8)
    price = certify(tc.QTarget(q, ()), epsilon, order=1.0001, pairs=MANY)
    assert price.passed, str(price)
    assert price.ratio == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("order", [1 + 1e-7, 1.001])
def test_orders_near_one_are_not_rounding(order):
    assert certify(tc.NotPrior(0), 0.01, order=order, pairs=PAIRS).passed


def test_a_failure_shows_in_the_digits(monkeypatch):
    monkeypatch.setattr(qvalues, "not_prior", lambda epsilon: (1 + 1e-6) / (math.exp(epsilon) + 1))
    words = str(certify(tc.NotPrior(0), 0.5, pairs=PAIRS))
    assert re.match(r"FAILED \(certificate, [\d,]+ pairs\): .* q = 0.377541046\d* and 0.3775406688 is", words)
    assert "1.000001 of it" in words
