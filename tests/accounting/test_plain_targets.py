"""Targets as plain data: bounded, the same in every process, and with the price of the target they stand for."""

import json
from dataclasses import replace

import pytest

import targetcharge as tc
from targetcharge.accounting.targets.plain import in_words, kind, plain, priced_like
from targetcharge.errors import shown
from targetcharge.ledger import Terms, Unit, version_1
from targetcharge.outcomes import from_plain, to_plain

TARGETS = {
    "NotPrior(None)": tc.NotPrior(None),
    "NotPrior('no')": tc.NotPrior("no"),
    "NotPrior(UNCHANGED)": tc.NotPrior(tc.UNCHANGED),
    "Everything()": tc.Everything(),
    "Disagreement()": tc.Disagreement(),
    "Boundary()": tc.Boundary(),
    "Boundary(2.5)": tc.Boundary(2.5),
    "Between(90, 110)": tc.Between(90, 110),
    "Between(0.5, 7.25, sensitivity=3)": tc.Between(0.5, 7.25, 3),
    "QTarget(0.25, {'high', 'low'})": tc.QTarget(0.25, {"low", "high"}),
}
ORDER, EPSILON = 1.5, 0.1


@pytest.mark.parametrize("words", TARGETS)
def test_a_target_as_data_is_read_by_people_kept_as_json_and_priced_as_the_target(words):
    target = TARGETS[words]
    for known in (plain(target), kind(target)):
        assert from_plain(json.loads(json.dumps(to_plain(known)))) == known
        assert priced_like(known).price(ORDER, EPSILON) == target.price(ORDER, EPSILON)
    assert in_words(plain(target)) == words


@pytest.mark.parametrize("words", TARGETS)
def test_words_of_the_first_format_stand_for_the_same_target(words):
    target = TARGETS[words]
    first = version_1.header([kind(target)], [plain(target)], Unit())
    assert version_1.target(first["targets"][0]) == kind(target)
    again = version_1.target(first["alternatives"][0])
    assert priced_like(again).price(ORDER, EPSILON) == target.price(ORDER, EPSILON)
    assert words.startswith("QTarget") or again == plain(target)


def test_long_priors_and_members_are_cut():
    known = [tc.NotPrior("x" * 10_000), tc.NotPrior(10**6000), tc.QTarget(0.5, set(range(10**4)))]
    assert all(len(json.dumps(to_plain(plain(target)))) < 1500 for target in known)
    assert plain(tc.NotPrior((1, "a", 2.5))) == ("NotPrior", (1, "a", 2.5))


ALIKE = {
    "tuples": ({("x", 1)}, {("z", 9)}),
    "looks": ({1}, {"1"}),
    "long members": ({"x" * 300}, {"x" * 300 + "y"}),
    "many members": (set(range(10**4)), set(range(10**4 + 1))),
}


@pytest.mark.parametrize("name", ALIKE)
def test_targets_with_other_members_are_other_data(name):
    known = [plain(tc.QTarget(0.3, members)) for members in ALIKE[name]]
    assert known[0] != known[1]
    assert all(from_plain(json.loads(json.dumps(to_plain(target)))) == target for target in known)
    assert all(len(in_words(target)) < 500 for target in known)


def test_members_are_kept_as_they_are_in_one_order():
    members = {("b", 1), "a", tc.UNCHANGED, None, 2.5}
    kept = plain(tc.QTarget(0.3, members))[2]
    assert set(kept) == members
    assert plain(tc.QTarget(0.3, list(members)[::-1]))[2] == kept


def test_long_priors_are_told_apart_and_from_texts():
    first, second = ("x" * 300 + end for end in "ab")
    known = plain(tc.NotPrior(first))
    assert known != plain(tc.NotPrior(second))
    assert known != plain(tc.NotPrior(known[1]))
    assert in_words(known).startswith("NotPrior('xxx")


@pytest.mark.parametrize(
    "members", [{"low", "high"}, {("x", 1), 7}, set(range(500))], ids=["few", "tuples", "many"]
)
def test_words_of_members_in_the_first_format_are_compared_as_they_were_written(members):
    target, other = tc.QTarget(0.25, members), tc.QTarget(0.25, {"other"})
    words = f"QTarget(0.25, {sorted(map(shown, members))})"  # as the first format had it
    words = words if len(words) <= 200 else words[:199] + "…"
    terms = Terms(1.0, 1e-6, "renyi", 0.1, 0.0, (), (plain(target),), 9.0, (5,), (1,))
    header = {**json.loads(json.dumps(replace(terms, version=1).plain())), "alternatives": [words]}
    read = Terms.of(header)
    assert read.differences(terms) == []
    assert len(read.differences(replace(terms, alternatives=(plain(other),)))) == 1


def test_a_ledger_does_not_open_with_other_members(tmp_path):
    def opened(members):
        rivals = [tc.QTarget(0.3, members), tc.Everything()]
        budget = tc.Budget(3.0, 1e-6)
        return tc.Session([1], budget, 0.05, meter="renyi", alternatives=rivals, ledger=tmp_path / "ledger.db")

    opened({("x", 1)}).close()
    opened({("x", 1)}).close()
    with pytest.raises(tc.NotAllowed, match="made for other terms"):
        opened({("z", 9)})


@pytest.mark.parametrize("known", [("Someday", 3), (), ("Between", 5, 1, 1), ("QTarget", 2.0), ("Boundary",)])
def test_what_a_later_version_wrote_has_no_price_here(known):
    assert priced_like(known) is None
    assert isinstance(in_words(known), str)


@pytest.mark.parametrize(
    ("words", "unit"),
    [
        ("rows", Unit("row")),
        ("units of id", Unit("column", "id")),
        ("people", Unit("words", "people")),
        ("", Unit()),
    ],
)
def test_units_of_the_first_format(words, unit):
    assert Unit(*version_1.unit(words)) == unit
    assert str(unit) == words


def test_terms_of_the_first_format_are_compared_as_they_were_written():
    targets = (("Between", 1, 21, 3), ("NotPrior",))
    terms = Terms(1.0, 1e-6, "exact", 0.1, 0.0, targets, (), 9.0, (5,), (1,), Unit("words", "rows"), version=1)
    header = json.loads(json.dumps(terms.plain()))
    assert header["targets"] == ["Between of 21 integers with sensitivity 3", "NotPrior"]
    assert (header["unit"], header["version"]) == ("rows", 1)
    read = Terms.of(header)
    same = Terms(1.0, 1e-6, "exact", 0.1, 0.0, targets, (), 9.0, (5,), (1,), Unit("words", "rows"))
    assert read.differences(same) == []
    others = Terms(1.0, 1e-6, "exact", 0.1, 0.0, targets[1:], (), 9.0, (5,), (1,), Unit("column", "rows"))
    assert read.differences(others) == [
        "targets was Between of 21 integers with sensitivity 3, NotPrior and is NotPrior",
        "unit was every row and is column 'rows'",
    ]
