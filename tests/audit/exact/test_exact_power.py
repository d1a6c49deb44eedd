"""Which mistakes the search finds by itself, with all tools and a modest length; and which it does not."""

from __future__ import annotations

import pytest
from tests.audit.exact.broken import MISTAKES, ORDER, broken

from targetcharge.audit.exact import Claim, attack, opener
from targetcharge.audit.exact.player import Player

LENGTH = {"questions": 8, "steps": 6, "limit": 120}
FOUND = {
    "last_hit_not_charged": 0,
    "delta_not_charged_on_misses": 0,
    "cancelled_call_returns_its_reservation": 1,
    "failures_are_free": 1,
    "refusal_depends_on_the_data": 0,
    "ties_in_the_order_of_the_data": 0,
    "price_of_half_epsilon": 0,
    "prior_published_as_it_looks": 0,
    "revisions_are_free": 1,
}
"""And a seed with which this takes seconds."""

NOT_FOUND = {
    "rule_sees_the_next_score",  # the stopping rules of the tools read released answers, not bare scores
    "revise_redraws",  # needs several revisions of one leaky release
}


def sessions(name):
    if name == "price_of_half_epsilon":
        return opener(0.5, 1), (1.0,)
    return opener(1.0, 1, computation_delta=0.05 if name == "delta_not_charged_on_misses" else 0.0), None


def test_every_mistake_is_listed():
    assert set(FOUND) | NOT_FOUND == set(MISTAKES)


@pytest.mark.parametrize("name", FOUND)
def test_the_search_finds_the_mistake_by_itself(monkeypatch, name):
    opened, epsilons = sessions(name)
    claim = Claim.of(opened())
    select = Player.select

    def remembered(player, *arguments, **options):
        ORDER["player"] = player  # the mistake about ties draws from it
        return select(player, *arguments, **options)

    monkeypatch.setattr(Player, "select", remembered)
    broken(name, monkeypatch)
    verdict = attack(opened, claim=claim, epsilons=epsilons, seed=FOUND[name], **LENGTH)
    assert not verdict.passed
    assert verdict.ratio > 1
