import json

import pytest
from typer.testing import CliRunner

from targetcharge.accounting import prices
from targetcharge.cli.app import app
from targetcharge.cli.errors import AUDIT_FAILED


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_attack_comes_close_and_never_above():
    result = run("attack", "--hits", "1", "--restarts", "3", "--steps", "3", "--seed", "1", "--json")
    assert result.exit_code == 0
    (verdict,) = json.loads(result.output)
    assert 0.98 < verdict["ratio"] <= 1


@pytest.mark.parametrize(
    "options",
    [
        ["not-prior"],
        ["disagreement"],
        ["boundary"],
        ["everything"],
        ["between", "--width", "5"],
        ["q", "--q", "0.3"],
    ],
    ids=lambda options: options[0],
)
def test_certify_shows_the_worst_pair(options):
    result = run("certify", "--epsilon", "0.1", "--pairs", "2000", "--target", *options)
    assert result.exit_code == 0
    assert result.output.count("passed (certificate") == 2
    assert result.output.count("worst: ") == 2


def test_certify_fails_a_price_that_is_too_small(monkeypatch):
    right = prices.not_prior
    monkeypatch.setattr(prices, "not_prior", lambda order, epsilon: 0.99 * right(order, epsilon))
    result = run("certify", "--epsilon", "0.1", "--pairs", "2000")
    assert result.exit_code == AUDIT_FAILED
    assert "FAILED (certificate" in result.output


def test_certify_shows_q_where_the_price_is_infinite():
    result = run("certify", "--epsilon", "0.1", "--pairs", "2000", "--target", "q", "--q", "0.01")
    assert result.exit_code == 0
    assert result.output.count("passed (certificate") == 1
    assert "the price is not tried: order is 2.0; it must be at most 1.93" in result.output


def test_certify_refuses_what_is_no_order():
    result = run("certify", "--epsilon", "0.1", "--pairs", "2000", "--order", "0.5")
    assert result.exit_code != 0
    assert "passed" not in result.output


@pytest.mark.parametrize(
    "options",
    [
        ["--meter", "renyi"],
        ["--meter", "renyi", "--target", "boundary"],
        ["--target", "disagreement"],
        ["--target", "q", "--q", "0.3"],
    ],
    ids=" ".join,
)
def test_other_sessions_can_be_attacked(options):
    result = run("attack", "--query-epsilon", "0.3", "--restarts", "2", "--steps", "1", "--json", *options)
    assert result.exit_code == 0
    assert json.loads(result.output)[0]["passed"]
