"""Targets that would make a hit free: each must be refused, or count as a hit."""

import pytest

import targetcharge as tc

BUDGET = tc.Budget(10.0, 1e-6)


def opened(*targets):
    return tc.Session([1] * 57, BUDGET, 0.1, targets=targets or None)


def test_members_are_compared_in_the_form_in_which_outcomes_are_published():
    target = tc.QTarget(0.3, [[0, 1]])
    pair = tc.private(0.1, targets=[target])(lambda _: [0, 1])
    assert opened(target).ask(pair, target).hit


def test_members_cannot_be_changed_afterwards():
    members = {"yes"}
    target = tc.QTarget(0.3, members)
    yes = tc.private(0.1, targets=[target])(lambda _: "yes")
    session = opened(target)
    members.clear()
    assert session.ask(yes, target).hit


def test_a_container_that_denies_its_members_is_copied():
    class Never(frozenset):
        def __contains__(self, _):
            return False

    target = tc.QTarget(0.3, frozenset({"yes"}))
    yes = tc.private(0.1, targets=[target])(lambda _: "yes")
    assert opened(target).ask(yes, tc.QTarget(0.3, Never({"yes"}))).hit


@pytest.mark.parametrize(
    "base", [tc.NotPrior, tc.QTarget, tc.Everything, tc.Between, tc.Boundary, tc.Disagreement]
)
def test_a_target_from_elsewhere_cannot_be_made(base):
    with pytest.raises(TypeError, match="Cheap is no target of targetcharge"):
        type("Cheap", (base,), {"__module__": "elsewhere", "__contains__": lambda *_: False})


@pytest.mark.parametrize("members", ["yes", b"yes", {"yes": 1}, 3, None, [float("nan")]], ids=repr)
def test_what_is_no_set_of_outcomes_is_refused(members):
    with pytest.raises(tc.InvalidParameter, match="members is"):
        tc.QTarget(0.3, members)


def test_a_smaller_q_is_supported_and_a_larger_one_is_not():
    declared = tc.QTarget(0.3, {"yes"})
    yes = tc.private(0.1, targets=[declared])(lambda _: "yes")
    assert yes.supports(tc.QTarget(0.2, {"yes"}))
    assert not yes.supports(tc.QTarget(0.4, {"yes"}))
    assert not yes.supports(tc.QTarget(0.3, {"yes", "no"}))
