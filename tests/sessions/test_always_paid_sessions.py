"""Whole sessions with algorithms whose every outcome is paid for: prices, what is refused, and what is kept."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from tests.refusals import every
from tests.sessions.scripted import budget_of, gives, opened

import targetcharge as tc
from targetcharge.accounting import Meter
from targetcharge.accounting.curves import BoundedRange, Concentrated, Gaussian, Pure
from targetcharge.ledger.entries import Spent
from targetcharge.mechanisms.paid import always_count, histogram
from targetcharge.mechanisms.picks import peeled, quantiles

BUDGET = tc.Budget(3.0, 1e-6)
QUERY = 0.1
RHO = 0.005
PEOPLE = range(5000)
EVERYTHING = tc.Everything()

LARGEST = {1: 1.333, 2: 1.889, 3: 2.288, 4: 2.615, 8: 3.598}
"""How many query ε of 0.1 so many hits pay for, to three decimals; of a range twice that.

Randomised response with twice that artanh of V_n: the value, at loss 0 and ε' = 0, of the game with n hits.
"""


def session(meter, budget=BUDGET, **options):
    query = {"hits": 20} if meter == "sparse" else {"query_epsilon": QUERY}
    return tc.Session(PEOPLE, budget, meter=meter, **(query | options))


def pure(epsilon, name="pure", **more):
    return tc.private(epsilon, name=name, **more)(lambda _: 7)


def of_rho(rho=RHO, **more):
    return tc.private(rho=rho, name="gaussian", **more)(lambda _: 7)


def of_range(length, **more):
    return tc.private(bounded_range=length, name="pick", **more)(lambda _: 7)


def three_picks(read=lambda data: [len(data), 0, 0, 10], name="picks"):
    return peeled(read, 3, QUERY, keys="abcd", width=1, name=name)


def middles(read, name="middles"):
    return quantiles(read, [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)], QUERY, cells=10, name=name)


def evenly(data):
    return np.arange(10), np.full(10, len(data))


# Prices


@pytest.mark.parametrize("hits", LARGEST)
def test_on_an_exact_meter_so_many_hits_pay_for_so_much(hits):
    largest = LARGEST[hits] * QUERY
    for declared, times in ((pure, 1), (of_range, 2)):
        for epsilon, cost in ((times * (largest - 1e-4), hits), (times * (largest + 1e-4), hits + 1)):
            with opened(hits + 3, epsilon=QUERY) as asked:
                answer = asked.ask(declared(epsilon), EVERYTHING)
                assert (answer.outcome, answer.hit, answer.price, answer.grains) == (7, True, cost, (cost,))
                assert (asked.meter.hits_left, asked.meter.totals.spent) == (3 + hits - cost, cost)
                assert asked.transcript[0] == answer


@pytest.mark.parametrize("query", [0.01, 0.5, 2.0])
def test_one_hit_pays_for_about_four_thirds_of_the_query_epsilon_and_for_twice_that_range(query):
    """ε + ln((2e^ε + 1)/(e^ε + 2)), at which randomised response is just below one hit."""
    largest = query + math.log((2 * math.exp(query) + 1) / (math.exp(query) + 2))
    with opened(3, epsilon=query) as asked:
        assert [asked.meter.quote(EVERYTHING, largest * times).grains for times in (0.5, 1 - 1e-9)] == [1, 1]
        assert asked.meter.quote(EVERYTHING, largest * (1 + 1e-9)).grains == 2
        assert asked.ask(of_range(2 * largest * (1 - 1e-9))).price == 1.0
        assert asked.ask(of_range(2 * largest * (1 + 1e-9))).price == 2.0
        assert asked.meter.hits_left == 0


def test_rho_costs_its_moment_on_a_renyi_meter_rounded_up():
    with session("renyi") as asked:
        order = Fraction(asked.meter.tariff.order)
        for rho in (RHO, 1e-18, 1e-9, 0.02, math.pi / 1000):
            price = asked.meter.quote(of_rho(rho).default_target, math.inf)
            exact = order * (order - 1) * Fraction(rho)
            assert exact <= Fraction(price.value) <= exact * (1 + Fraction(1, 10**12))
            assert (
                exact <= Fraction(price.grains, 2**128) <= exact * (1 + Fraction(1, 10**12)) + Fraction(1, 2**127)
            )
        before = asked.meter.totals.spent
        answer = asked.ask(of_rho())
        assert asked.meter.totals.spent - before == answer.grains[0]
        assert answer.price == asked.meter.quote(tc.Everything(Concentrated(RHO)), 1.0).value


def two_point_moment(order, length):
    """Return the largest ln E_P[(P/Q)^(order-1)] of pairs with the two log-ratios u and u - length."""

    def moment(upper):
        first = (math.exp(length) - math.exp(upper)) / math.expm1(length)
        ratios = (order - 1) * upper, (order - 1) * (upper - length)
        return math.log(first * math.exp(ratios[0]) + (1 - first) * math.exp(ratios[1]))

    found = minimize_scalar(
        lambda upper: -moment(upper), bounds=(0, length), method="bounded", options={"xatol": 1e-12}
    )
    return -found.fun


@pytest.mark.parametrize("length", [0.05, 0.2, 0.5, 1.5])
def test_a_range_costs_the_moment_of_the_worst_two_points_on_a_renyi_meter(length):
    with tc.Session(None, tc.Budget(30.0, 1e-6), QUERY, meter="renyi") as asked:
        order = asked.meter.tariff.order
        worst = two_point_moment(order, length)
        price = asked.ask(of_range(length)).price
        assert worst * (1 - 1e-9) <= price <= worst * (1 + 1e-6)
        assert price < asked.meter.quote(EVERYTHING, length).value / 2  # of ε-DP alone
        assert asked.ask(of_range(length), EVERYTHING).price == price


def test_pure_dp_costs_the_moment_of_randomised_response_on_a_renyi_meter():
    with tc.Session(None, tc.Budget(30.0, 1e-6), QUERY, meter="renyi") as asked:
        order = asked.meter.tariff.order
        for epsilon in (0.05, 0.3, 1.0):
            yes = 1 / (1 + math.exp(-epsilon))
            moment = math.log(yes * math.exp((order - 1) * epsilon) + (1 - yes) * math.exp((1 - order) * epsilon))
            price = asked.ask(pure(epsilon), EVERYTHING).price
            assert moment * (1 - 1e-12) <= price <= moment * (1 + 1e-9)


def test_on_a_sparse_meter_a_hit_pays_for_the_range_of_its_query_epsilon_and_for_half_of_that_epsilon():
    with session("sparse") as asked:
        query = asked.meter.tariff.offset.query_epsilon
        assert asked.ask(of_range(query)).price == 1.0
        assert asked.ask(pure(query / 2), EVERYTHING).price == 1.0
        for algorithm in (of_range(query * 1.0001), pure(query / 2 * 1.0001)):
            with pytest.raises(tc.NotAllowed, match="this sparse meter has no price"):
                asked.ask(algorithm, EVERYTHING)


def test_in_a_pure_session_everything_costs_the_hits_whose_epsilons_add_up_to_its_own():
    with tc.Session(PEOPLE, tc.Budget(3.0, 0.0), meter="sparse", hits=20) as asked:
        query = asked.meter.tariff.offset.query_epsilon
        for times, cost in ((0.5, 1), (1.0, 1), (1.001, 2), (3.5, 4)):
            assert asked.ask(of_range(times * query)).price == cost
            assert asked.ask(pure(times * query), EVERYTHING).price == cost


def test_quotes_are_for_a_curve_whatever_the_epsilon():
    curves = [Pure(0.05), BoundedRange(0.2), Gaussian(1, Fraction(400))]
    for meter in (session("exact").meter, Meter.exact(BUDGET, QUERY), Meter.renyi(BUDGET, QUERY)):
        for curve in curves:
            prices = {meter.quote(tc.Everything(curve), epsilon) for epsilon in (1e-3, QUERY, 5.0)}
            assert len(prices) == 1
            assert prices.pop().grains >= 1
    exact = Meter.exact(BUDGET, QUERY)
    assert [exact.quote(tc.Everything(curve), QUERY).value for curve in curves] == [1.0, 1.0, 1.0]
    assert exact.quote(tc.Everything(Pure(0.05)), QUERY) == exact.quote(EVERYTHING, 0.05)
    rough = Gaussian(1, Fraction(90))
    shift = 1.353 * QUERY  # of standard deviations, that one hit pays for; n hits for n times the square
    assert exact.quote(tc.Everything(rough), QUERY).grains == math.ceil(
        1 / (float(90 - Fraction(5, 2)) * shift**2)
    )


# What is declared


def test_gaussian_noise_is_declared_by_its_shift_and_has_a_price_on_exact_meters_too():
    noisy = tc.private(gaussian=0.1, name="gaussian")(lambda _: 7)
    assert noisy.default_target == tc.Everything(Gaussian(1, 1 / Fraction(0.1) ** 2))
    assert session("exact").ask(noisy).price == 1.0
    shift = 1.353 * QUERY
    dearer = tc.private(gaussian=0.3)(lambda _: 7)
    assert session("exact").ask(dearer).price == math.ceil(1 / ((1 / 0.3**2 - 2.5) * shift**2))
    with session("renyi") as opened:
        order = opened.meter.tariff.order
        assert opened.ask(noisy).price == pytest.approx(order * (order - 1) * 0.1**2 / 2, rel=1e-6)
    with pytest.raises(tc.NotAllowed, match="does not answer yes or no"):
        session("exact").test(noisy)
    for wrong in (0, -1, math.nan, math.inf, "0.1"):
        with pytest.raises(tc.InvalidParameter, match="gaussian is"):
            tc.private(gaussian=wrong)


def test_a_declaration_is_the_default_target():
    assert of_rho().default_target == tc.Everything(Concentrated(RHO))
    assert of_range(0.2).default_target == tc.Everything(BoundedRange(0.2))
    assert pure(0.2).default_target is None
    assert (of_rho(delta=1e-7).epsilon, of_rho(delta=1e-7).delta) == (math.inf, 1e-7)
    assert (of_range(0.2).epsilon, of_range(0.2).delta) == (0.2, 0.0)
    assert repr(of_rho()) == "<gaussian, rho 0.005, delta=0>"
    assert repr(of_range(0.2)) == "<pick, bounded range 0.2, delta=0>"


def test_everything_stands_for_the_curve_that_is_declared():
    with session("renyi") as asked:
        assert (
            asked.ask(of_rho(), EVERYTHING).targets == asked.ask(of_rho()).targets == (("Everything", "rho", RHO),)
        )
    with session("exact") as asked:
        assert asked.ask(of_range(0.2), EVERYTHING).price == asked.ask(of_range(0.2)).price == 1.0
        assert asked.ask(pure(0.2), EVERYTHING).price == 3.0


def test_what_has_a_range_is_as_private_as_that_and_may_be_asked_with_any_prior():
    with session("exact") as asked:
        assert asked.ask_prior(of_range(QUERY), 7).hit is False
        assert asked.ask(of_range(QUERY), tc.NotPrior(8)).hit
        assert asked.release(of_range(QUERY), lambda _: False).released is False
        assert tc.twice(of_range(QUERY)).epsilon == QUERY
        declared = of_range(QUERY, targets=[tc.QTarget(0.4, {7})])
        assert declared.supports(tc.QTarget(0.4, {7}))
        assert not declared.supports(tc.Everything(BoundedRange(0.2)))


BAD = {
    "none": ({}, "epsilon is None; it must be given, or rho, bounded_range or gaussian"),
    "epsilon and rho": (
        {"epsilon": 0.1, "rho": 0.1},
        "epsilon is 0.1; it must be given alone: one of epsilon, rho",
    ),
    "epsilon and range": ({"epsilon": 0.1, "bounded_range": 0.1}, "epsilon is 0.1; it must be given alone"),
    "rho and range": ({"rho": 0.1, "bounded_range": 0.2}, "rho is 0.1; it must be given alone: one of epsilon"),
    "all": ({"epsilon": 0.1, "rho": 0.1, "bounded_range": 0.1}, "epsilon is 0.1; it must be given alone"),
    "targets": (
        {"rho": 0.1, "targets": [tc.QTarget(0.4, {1})]},
        "targets is [QTarget(q=0.4, members=frozenset({1}))]; it must be left out where rho is given",
    ),
    "a type": ({"rho": 0.1, "targets": tc.NotPrior}, "targets is "),
    "δ": ({"rho": 0.1, "delta": math.nan}, "delta is nan; it must be a number in [0, 1)"),
    "δ of 1": ({"bounded_range": 0.1, "delta": 1}, "delta is 1; it must be a number in [0, 1)"),
    "name": ({"rho": 0.1, "name": ""}, "name is ''"),
}
VALUES = [math.nan, -1, 0, math.inf, -math.inf, "0.1", True, 1 + 2j, [0.1], 60, 1e-19, len, 10**400]


def test_what_declares_nothing_or_nonsense_is_refused_by_name_and_value():
    def is_refused(given, sentence):
        with pytest.raises(tc.InvalidParameter) as refusal:
            tc.private(**given)
        assert str(refusal.value).startswith(sentence)

    every(BAD, is_refused)
    cases = {
        f"{name}={value!r}"[:60]: ({name: value}, f"{name} is ")
        for name in ("rho", "bounded_range")
        for value in VALUES
    }
    every(cases, is_refused)
    for name, value in (("rho", math.nan), ("rho", -1), ("bounded_range", "0.1"), ("bounded_range", 60)):
        with pytest.raises(tc.InvalidParameter, match=f"^{name} is {value!r}; it must be a number from 1e-"):
            tc.private(**{name: value})


# Refusals


@pytest.mark.parametrize("meter", ["exact", "renyi", "sparse"])
def test_what_has_no_epsilon_is_asked_and_nothing_else_and_the_data_is_not_touched(meter):
    touched = []
    algorithm = tc.private(rho=RHO, name="noisy")(lambda data: touched.append(data) or 7)
    asked = session(meter)
    why = r"It has rho 0\.005 and no epsilon, so its every outcome is paid for$"
    calls = {
        "NotPrior": (
            lambda: asked.ask(algorithm, tc.NotPrior(0)),
            rf"^noisy does not support NotPrior\(0\): .*{why}",
        ),
        "Between": (
            lambda: asked.ask(algorithm, tc.Between(0, 9)),
            rf"^noisy does not support Between\(0, 9\): .*{why}",
        ),
        "QTarget": (
            lambda: asked.ask(algorithm, tc.QTarget(0.4, {7})),
            rf"^noisy does not support QTarget.*{why}",
        ),
        "Boundary": (
            lambda: asked.ask(algorithm, tc.Boundary()),
            rf"^noisy does not support Boundary\(\): .*{why}",
        ),
        "Disagreement": (
            lambda: asked.ask(algorithm, tc.Disagreement()),
            rf"^noisy does not support Disag.*{why}",
        ),
        "prior": (lambda: asked.ask_prior(algorithm, 3), rf"ask with Everything\(\)\. {why}"),
        "release": (lambda: asked.release(algorithm, 3), rf"^noisy does not support .*{why}"),
        "select": (lambda: asked.select([algorithm]), rf"^noisy does not support .*{why}"),
        "test": (lambda: asked.test(algorithm), r"^noisy does not answer yes or no: ask it with Everything\(\)$"),
        "twice": (
            lambda: tc.twice(algorithm),
            "^twice takes an ε-DP algorithm, and noisy has no epsilon: ask it as",
        ),
        "agreement": (
            lambda: tc.mechanisms.agreement(algorithm),
            "^agreement takes an ε-DP algorithm, and noisy has",
        ),
        "boundary": (
            lambda: tc.boundary(algorithm),
            "^boundary takes an ε-DP algorithm, and noisy has no epsilon",
        ),
    }

    def is_refused(call, sentence):
        with pytest.raises(tc.NotAllowed, match=sentence):
            call()

    every(calls, is_refused)
    assert (touched, asked.meter.hits, len(asked.transcript)) == ([], 0, 0)


@pytest.mark.parametrize(
    ("meter", "algorithm", "why"),
    [
        ("exact", of_rho(), "it has rho 0.005, and neither an epsilon nor a bounded range"),
        ("sparse", of_rho(), "it has rho 0.005, and neither an epsilon nor a bounded range"),
        (
            "exact",
            pure(0.5),
            "it has epsilon 0.5, for which its hits do not pay: one pays for epsilon up to 0.1333",
        ),
        (
            "exact",
            of_range(1.0),
            "it has bounded range 1, for which its hits do not pay: one pays for a range up to 0.2666",
        ),
        (
            "sparse",
            pure(0.2),
            "it has epsilon 0.2, for which its hits do not pay: one pays for epsilon up to 0.1252",
        ),
        (
            "sparse",
            of_range(0.4),
            "it has bounded range 0.4, for which its hits do not pay: one pays for a range up to 0.2504",
        ),
    ],
    ids=lambda value: getattr(value, "name", str(value)[:20]),
)
def test_what_a_meter_has_no_price_for_it_refuses_and_the_meter_that_it_names_takes_it(meter, algorithm, why):
    with session(meter) as asked:
        for call in (lambda: asked.ask(algorithm, EVERYTHING), lambda: asked.check_price(_with_target(algorithm))):
            with pytest.raises(tc.NotAllowed) as refusal:
                call()
            assert f"this {meter} meter has no price for this computation: {why}. " in str(refusal.value)
        setting = refusal.value.args[-1]
        assert (asked.meter.hits, len(asked.transcript)) == (0, 0)
    assert (setting.name, setting.value) == ("meter", "renyi")
    with tc.Session(PEOPLE, BUDGET, QUERY, **{setting.name: setting.value}) as other:
        assert other.ask(algorithm, EVERYTHING).outcome == 7


def _with_target(algorithm):
    own = algorithm.default_target or EVERYTHING
    return tc.mechanisms.Algorithm(
        algorithm.name, algorithm.epsilon, 0.0, algorithm.run, default_target=own, targets=(own,)
    )


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_more_than_is_left_is_refused_before_the_data_is_touched(meter):
    touched = []
    asked = opened(5, meter=meter)
    four = tc.private(0.26, name="four")(lambda data: touched.append(data) or 7)
    cost = asked.meter.quote(EVERYTHING, 0.26).value
    assert cost == 4 or meter == "renyi"
    while asked.meter.tariff.capacity - asked.meter.totals.spent >= asked.meter.quote(EVERYTHING, 0.26).grains:
        asked.ask(four, EVERYTHING)
    done, hits, left = len(touched), asked.meter.hits, asked.meter.hits_left
    assert done >= 1
    with pytest.raises(tc.BudgetSpent) as refusal:
        asked.ask(four, EVERYTHING)
    assert refusal.value.asked == pytest.approx(cost)
    assert refusal.value.left < cost
    assert (len(touched), asked.meter.hits, asked.meter.hits_left) == (done, hits, left)
    if meter == "exact":
        assert "this could cost 4 hits on the exact meter and 1 is left" in str(refusal.value)
        assert asked.ask(pure(0.13), EVERYTHING).price == 1.0
    with pytest.raises(tc.BudgetSpent):
        asked.ask(four, EVERYTHING)


def test_what_costs_more_hits_than_there_are_in_all_is_refused_for_good():
    asked, algorithm = opened(3), pure(0.26)
    with pytest.raises(tc.NotAllowed, match=r"no price .* it has epsilon 0\.26, .* meter='renyi'$"):
        asked.ask(algorithm, EVERYTHING)
    assert opened(4).ask(algorithm, EVERYTHING).price == 4.0


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_sessions_with_alternatives_refuse(meter):
    alternatives = [tc.NotPrior(0), tc.NotPrior(1)]
    with tc.Session(PEOPLE, BUDGET, QUERY, meter=meter, alternatives=alternatives) as asked:
        with pytest.raises(tc.NotAllowed, match="this session has alternatives, which are its targets"):
            asked.ask(of_range(0.1), EVERYTHING)
        with pytest.raises(
            tc.NotAllowed, match=r"gaussian does not support NotPrior\(0\): ask with Everything\(\)"
        ):
            asked.ask(of_rho())
        for call in (asked.ask_several, asked.price_of_several):
            with pytest.raises(tc.NotAllowed, match="this session has alternatives: it answers ask"):
                call(three_picks())
        assert asked.meter.hits == 0


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_where_everything_is_an_alternative_its_meter_charges_epsilon(meter):
    with tc.Session(
        None, tc.Budget(9.0, 1e-6), QUERY, meter=meter, alternatives=[tc.NotPrior(7), EVERYTHING]
    ) as asked:
        answer = asked.ask(pure(QUERY))
        assert answer.meters_hit == (False, True)
        assert answer.price == asked.meters[1].quote(EVERYTHING, QUERY).value


# δ


def test_the_delta_of_what_is_always_paid_is_spent_before_it_runs():
    with session("renyi", computation_delta=3e-7) as asked:
        asked.ask(of_rho(delta=1e-7))
        assert asked.meter.delta_left == pytest.approx(2e-7)
        assert asked.transcript[0].delta == 1e-7
        asked.ask(of_range(0.1, delta=1e-7), EVERYTHING)
        with pytest.raises(tc.BudgetSpent, match="spends delta 2e-07 and 1e-07 is left"):
            asked.ask(of_rho(delta=2e-7))
        assert asked.meter.delta_left == pytest.approx(1e-7)


# Several outcomes of one computation


@pytest.mark.parametrize("meter", ["exact", "renyi", "sparse"])
def test_several_outcomes_are_all_charged(meter):
    with session(meter, tc.Budget(30.0, 1e-6)) as asked:
        picks = asked.ask_several(
            peeled(lambda data: [len(data), 0, 900, 10], 3, QUERY, "abcd", width=1, name="picks")
        )
        assert [(answer.key, answer.outcome) for answer in picks[:2]] == [("a", None), ("c", None)]
        assert {answer.key for answer in picks} < set("abcd")
        assert [answer.seq for answer in picks] == [1, 2, 3]
        assert asked.meter.hits == 3
        shares = asked.ask_several(quantiles(evenly, [Fraction(1, 4), Fraction(2, 5)], QUERY, cells=10, name="q"))
        assert [(answer.key, answer.outcome) for answer in shares] in (
            [(0.25, 2), (0.4, 3)],
            [(0.25, 2), (0.4, 4)],
        )
        assert (asked.meter.hits, asked.transcript[:]) == (5, [*picks, *shares])
        assert sum(sum(answer.grains) for answer in asked.transcript) == asked.meter.totals.spent
        assert {answer.targets[0][:2] for answer in asked.transcript} == {("Everything", "bounded range")}
        test = asked.meter.tariff.typical.value
        assert all(answer.hit and answer.price <= test for answer in asked.transcript)


def test_picks_with_their_numbers_cost_two_hits_each():
    with opened(8) as asked:
        best = peeled(lambda _: [4000, 0, 2000], 2, QUERY, keys="abc", width=1, values=True, name="numbers")
        answers = asked.ask_several(best)
        assert [(answer.key, answer.price, answer.grains) for answer in answers] == [
            ("a", 2.0, (2,)),
            ("c", 2.0, (2,)),
        ]
        assert all(abs(answer.outcome - true) < 400 for answer, true in zip(answers, (4000, 2000), strict=True))
        assert (asked.meter.hits, asked.meter.hits_left) == (2, 4)


def test_several_that_are_not_all_covered_are_refused_as_a_whole_before_the_data_is_touched():
    touched = []
    for several in (
        three_picks(lambda data: touched.append(data) or [1, 2, 3, 4]),
        middles(lambda data: touched.append(data) or evenly(data)),
    ):
        with opened(2, PEOPLE) as asked:
            with pytest.raises(tc.BudgetSpent, match="this could cost 3 hits on the exact meter and 2 are left"):
                asked.ask_several(several)
            assert (touched, asked.meter.hits, len(asked.transcript)) == ([], 0, 0)
            assert asked.meter.hits_left == 2
        with opened(3, PEOPLE) as asked:
            assert len(asked.ask_several(several)) == 3
            assert asked.meter.hits_left == 0
            with pytest.raises(tc.BudgetSpent):
                asked.ask_several(several)
        assert touched.pop() is PEOPLE


def broken(error):
    def read(_):
        raise error

    return read


def test_what_breaks_while_several_are_drawn_keeps_all_of_them_spent(tmp_path):
    path = tmp_path / "ledger.db"
    with opened(9, PEOPLE, ledger=path) as asked:
        for place, several in enumerate(
            (three_picks(broken(ValueError("row 5"))), middles(broken(MemoryError()))), 1
        ):
            with pytest.raises(tc.ComputationFailed) as failure:
                asked.ask_several(several)
            assert (failure.value.__cause__, failure.value.__context__) == (None, None)
            assert "row 5" not in str(failure.value)
            assert asked.meter.hits == 3 * place
        with pytest.raises(KeyboardInterrupt):
            asked.ask_several(three_picks(broken(KeyboardInterrupt())))
        entries = list(asked._ledger.entries())
        assert entries == [Spent("failed", (3,), 3, name) for name in ("picks", "middles", "picks")]
        assert (asked.meter.hits_left, len(asked.transcript)) == (0, 0)
    with opened(9, PEOPLE, ledger=path) as asked:
        assert (asked.meter.hits, asked.meter.hits_left) == (9, 0)


@pytest.mark.parametrize("meter", ["exact", "renyi"])
def test_what_breaks_where_every_outcome_is_paid_for_keeps_its_whole_price_spent(meter):
    with opened(6, meter=meter) as asked:
        price = asked.meter.quote(EVERYTHING, 0.26)
        algorithm = gives(ValueError(), epsilon=0.26)
        with pytest.raises(tc.ComputationFailed):
            asked.ask(algorithm, EVERYTHING)
        assert asked.meter.totals.spent == price.grains
        assert list(asked._ledger.entries()) == [Spent("failed", (price.grains,), 1, "scripted")]


# What is kept


@pytest.mark.parametrize("meter", ["exact", "renyi", "sparse"])
def test_answers_are_pickled_and_a_ledger_file_replays_them(tmp_path, meter):
    def start():
        return session(meter, tc.Budget(30.0, 1e-6), ledger=tmp_path / "ledger.db")

    with start() as asked:
        answers = [asked.ask(of_range(QUERY)), asked.ask(pure(QUERY), EVERYTHING)]
        answers += [*asked.ask_several(three_picks()), *asked.ask_several(middles(evenly))]
        answers.append(asked.ask(histogram(lambda data: [len(data), 0], QUERY, keys=2, name="all")))
        answers.append(asked.ask(always_count(len, QUERY, name="count")))
        if meter == "renyi":
            answers.append(asked.ask(of_rho(1e-4)))
        totals, odometer = asked.meter.totals, asked.meter.odometer()
    assert all(answer.hit for answer in answers)
    assert pickle.loads(pickle.dumps(answers)) == copy.deepcopy(answers) == answers  # noqa: S301 - of a moment ago
    with start() as again:
        assert list(again.transcript) == answers
        assert (again.meter.totals, again.meter.odometer()) == (totals, odometer)
        assert again.ask(of_range(QUERY)).seq == len(answers) + 1


def test_reopened_sessions_go_on_charging_until_nothing_is_left(tmp_path):
    path, charged = tmp_path / "ledger.db", 0
    while charged < 9:
        with opened(9, PEOPLE, ledger=path) as asked:
            assert asked.meter.hits_left == 9 - charged
            asked.ask_several(three_picks())
            charged += 3
    with opened(9, PEOPLE, ledger=path) as asked, pytest.raises(tc.BudgetSpent):
        asked.ask_several(three_picks())


def test_always_paid_and_target_charged_share_one_budget():
    with tc.Session(PEOPLE, budget_of(5), QUERY) as asked:
        assert asked.test(gives(False)).price == 0.0
        asked.ask(of_range(0.25))
        asked.test(gives(True))
        asked.ask(pure(0.18), EVERYTHING)
        assert (asked.meter.hits, asked.meter.hits_left) == (3, 1)
        assert asked.meter.odometer().epsilon > 0
        asked.test(gives(True))
        with pytest.raises(tc.BudgetSpent):
            asked.ask(of_range(0.25))
