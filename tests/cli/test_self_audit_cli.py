import json

import pytest
from typer.testing import CliRunner

from targetcharge.accounting import prices
from targetcharge.cli.app import app
from targetcharge.cli.exits import AUDIT_FAILED


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_attack_comes_close_and_never_above():
    found = run("attack", "--hits", "1", "--restarts", "3", "--steps", "3", "--seed", "1", "--json")
    assert found.exit_code == 0
    (verdict,) = json.loads(found.output)
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
    found = run("certify", "--epsilon", "0.1", "--pairs", "2000", "--target", *options)
    assert found.exit_code == 0
    assert found.output.count("passed (certificate") == 2
    assert found.output.count("worst: ") == 2


def test_certify_fails_a_price_that_is_too_small(monkeypatch):
    right = prices.not_prior
    monkeypatch.setattr(prices, "not_prior", lambda order, epsilon: 0.99 * right(order, epsilon))
    found = run("certify", "--epsilon", "0.1", "--pairs", "2000")
    assert found.exit_code == AUDIT_FAILED
    assert "FAILED (certificate" in found.output
