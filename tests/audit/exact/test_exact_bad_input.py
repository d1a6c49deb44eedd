"""What the exact audit refuses, by name."""

from __future__ import annotations

import math
import random

import pytest

import targetcharge as tc
from targetcharge.audit import certify
from targetcharge.audit.exact import Claim, Twin, attack, check_pair, explore, judge, opener, response
from targetcharge.errors import InvalidParameter, TooLarge

OPENED = opener(0.5, hits=2)


@pytest.mark.parametrize(
    ("pair", "epsilon", "delta", "words"),
    [
        pytest.param(response(1.0, "a", "b"), 0.5, 0.0, "'[ab]' is e\\^1 = 2.71828 times as likely", id="ratio"),
        pytest.param({"a": (1.0, 0.5), "b": (0.0, 0.5)}, 0.5, 0.1, "'b' is e\\^inf", id="one-sided"),
        pytest.param({"a": (0.5, 0.5), "b": (0.6, 0.5)}, 0.5, 0.0, "the first one sums to 1.1", id="first-sum"),
        pytest.param({"a": (0.5, 0.5), "b": (0.5, 0.4)}, 0.5, 0.0, "the second one sums to 0.9", id="second-sum"),
        pytest.param({"a": (1.5, 0.5), "b": (-0.5, 0.5)}, 0.5, 0.0, "the first one", id="negative"),
        pytest.param({"a": (math.nan, 0.5), "b": (0.5, 0.5)}, 0.5, 0.0, "the first one", id="nan"),
        pytest.param({}, 0.5, 0.0, "a mapping", id="empty"),
        pytest.param({"a": 1.0}, 0.5, 0.0, "a mapping", id="one-law"),
        pytest.param([0.5, 0.5], 0.5, 0.0, "a mapping", id="a-list"),
        pytest.param(response(0.5, "a", "b"), 0.0, 0.0, "epsilon is 0.0", id="epsilon-0"),
        pytest.param(response(0.5, "a", "b"), 0.5, 1.5, "delta is 1.5", id="delta"),
    ],
)
def test_a_pair_that_is_not_as_declared_is_refused(pair, epsilon, delta, words):
    with pytest.raises(InvalidParameter, match=words):
        check_pair(pair, epsilon, delta)
    with pytest.raises(InvalidParameter, match=words):
        explore(OPENED, lambda player: player.algorithm(pair, epsilon, delta))


def test_a_delta_makes_up_for_the_ratio():
    pair = {"a": (0.75, 0.5), "b": (0.25, 0.5)}
    check_pair(pair, 0.5, 0.1)
    with pytest.raises(InvalidParameter, match=r"or a delta of at least 0\.0878"):
        check_pair(pair, 0.5, 0.05)


def test_a_q_above_the_pairs_own_is_refused():
    pair = response(0.5, 0, 1)
    with pytest.raises(InvalidParameter, match=r"at most 0\.37754"):
        explore(OPENED, lambda player: player.algorithm(pair, 0.5, targets=(tc.QTarget(0.5, {1}),)))


@pytest.mark.parametrize("target", [tc.Boundary(), tc.Between(0, 1), tc.Disagreement()], ids=repr)
def test_a_target_that_is_true_of_a_wrapper_only_is_refused(target):
    with pytest.raises(InvalidParameter, match="targets"):
        explore(OPENED, lambda player: player.algorithm(response(0.5, 0, 1), 0.5, targets=(target,)))


def test_counts_that_are_not_neighbours_are_refused():
    with pytest.raises(InvalidParameter, match="counts"):
        explore(OPENED, lambda player: player.between(tc.Between(0, 1), (0, 2), 0.5))


# Games that know more than they saw.


def with_a_memory():
    asked = []

    def game(player):
        asked.append(None)
        prior = 0 if len(asked) % 2 else 1
        player.ask_prior(player.algorithm(response(0.5, 0, 1), 0.5), prior)

    return game


def with_a_randomness(player):
    share = random.random()
    player.ask_prior(player.algorithm({0: (share, share), 1: (1 - share, 1 - share)}, 0.5), 0)


def with_secrets(player):
    """Ask on only if the outcome that was not released is 1."""
    drawn = []
    pair = response(0.5, 0, 1)

    def run(_data, _entropy):
        drawn.append(player.draw(pair))
        return drawn[0]

    secret = tc.mechanisms.Algorithm("secret", 0.5, 0.0, run)
    player.release(secret, frozenset())
    if drawn == [1]:
        player.test(player.algorithm(response(0.5, False, True), 0.5))


@pytest.mark.parametrize(
    "game", [with_a_memory(), with_a_randomness, with_secrets], ids=["memory", "random", "secret"]
)
def test_a_game_that_does_not_follow_from_what_was_seen_is_refused(game):
    with pytest.raises(InvalidParameter, match="a function of what was seen"):
        explore(OPENED, game)


def test_too_many_paths_are_refused_with_their_number():
    def game(player):
        for _ in range(20):
            player.ask_prior(player.algorithm({0: (0.5, 0.5), 1: (0.5, 0.5)}, 0.5), 0)

    with pytest.raises(TooLarge, match=r"larger, or the game shorter: it has about [\d.e+]+ paths") as caught:
        explore(OPENED, game, limit=100)
    assert caught.value.name == "limit"
    assert len(explore(OPENED, game, limit=211)) == 211


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("tools", {"tools": ["knock"]}),
        ("tools", {"tools": []}),
        ("epsilons", {"epsilons": []}),
        ("epsilons", {"epsilons": [math.nan]}),
        ("questions", {"questions": 0}),
        ("restarts", {"restarts": 0}),
    ],
)
def test_an_attack_refuses_what_makes_no_sense(name, arguments):
    with pytest.raises(InvalidParameter) as caught:
        attack(OPENED, **arguments)
    assert caught.value.name == name


def test_an_attack_on_a_renyi_meter_needs_to_know_the_epsilons():
    with pytest.raises(InvalidParameter, match="epsilons"):
        attack(opener(0.3, hits=1, meter="renyi"))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: explore(OPENED, "game"), "game"),
        (lambda: explore(OPENED, lambda _: None, limit=0), "limit"),
        (lambda: judge(explore(OPENED, lambda _: None), 0.5), "claim"),
        (lambda: opener(0.5, hits=0), "hits"),
        (lambda: opener(0.5, hits=1, meter="odometer"), "meter"),
        (lambda: certify("NotPrior", 0.5), "target"),
        (lambda: certify(tc.NotPrior(0), -1.0), "epsilon"),
        (lambda: certify(tc.NotPrior(0), 0.5, order=99.0), "order"),
        (lambda: certify(tc.NotPrior(0), 0.5, pairs=0), "pairs"),
    ],
)
def test_other_parameters_are_refused_by_name(call, name):
    with pytest.raises(InvalidParameter) as caught:
        call()
    assert caught.value.name == name


def test_a_game_that_asks_nothing_tells_nothing():
    verdict = judge(explore(OPENED, lambda _: None), Claim.of(OPENED()))
    assert (verdict.passed, verdict.ratio, verdict.runs) == (True, 0.0, 1)


def test_twins_look_different_and_are_equal():
    assert Twin(1) != Twin(True)
    assert Twin((1, 2)) == Twin((1, 2))
    assert hash(Twin(1)) == hash(Twin(1))
