"""Real OpenDP measurements."""

import math
import sys
from collections import Counter

import opendp.prelude as dp
import pytest
from tests.discrete_gaussian import DiscreteGaussian
from tests.goodness import DRAWS, assert_only, draws_to_tell, pvalue

import targetcharge as tc
from targetcharge.mechanisms import noisy_count

dp.enable_features("contrib", "honest-but-curious")

NUMBER = dp.atom_domain(T=int), dp.absolute_distance(T=int)
ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
LAPLACE = dp.m.make_laplace(*NUMBER, scale=10.0)
GAUSSIAN = dp.m.make_gaussian(*NUMBER, scale=10.0)


def test_pure():
    algorithm = tc.from_opendp(LAPLACE)
    assert (algorithm.name, algorithm.epsilon, algorithm.delta) == ("opendp", 0.1, 0.0)
    assert algorithm.oracle is None
    assert algorithm.supports(tc.NotPrior(0))
    assert isinstance(algorithm.run(5, None), int)
    assert tc.from_opendp(LAPLACE, d_in=3, name="three").epsilon == pytest.approx(0.3)
    count = ROWS >> dp.t.then_count() >> dp.m.then_laplace(scale=2.0)
    assert tc.from_opendp(count, 2).epsilon == 1.0
    assert abs(tc.from_opendp(count).run([1] * 500, None) - 500) < 100


def test_it_draws_what_it_says():
    """Many counts in one run; a vector's distance is the sum of its counts' distances."""
    many = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    algorithm = tc.from_opendp(dp.m.make_laplace(*many, scale=2.0))
    assert algorithm.epsilon == 0.5
    counts = Counter(algorithm.run([3] * DRAWS, None))
    for epsilon, fits in ((0.5, True), (0.525, False), (0.475, False)):
        oracle = noisy_count(lambda data: data, epsilon).oracle
        law = {value: oracle.probability(3, value) for value in range(-100, 100)}
        assert bool(pvalue(counts, law) > 1e-9) is fits


def test_approximate():
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(GAUSSIAN), 1e-6)
    algorithm = tc.from_opendp(fixed)
    assert algorithm.epsilon == fixed.map(1)[0]
    assert algorithm.delta == 1e-6
    assert tc.from_opendp(dp.c.make_approximate(LAPLACE)).delta == 0.0


def test_zero_concentrated():
    algorithm = tc.from_opendp(GAUSSIAN, name="noisy")
    rho = GAUSSIAN.map(1)
    assert algorithm.default_target.curve.rho == rho == pytest.approx(1 / 200)
    assert (algorithm.epsilon, algorithm.delta) == (math.inf, 0.0)
    assert repr(algorithm) == "<noisy, rho 0.005, delta=0>"
    assert tc.from_opendp(GAUSSIAN, d_in=2).default_target.curve.rho == pytest.approx(4 / 200)
    with_delta = tc.from_opendp(dp.c.make_approximate(GAUSSIAN))
    assert (with_delta.default_target.curve.rho, with_delta.epsilon, with_delta.delta) == (rho, math.inf, 0.0)
    with tc.Session(1000, tc.Budget(3.0, 1e-6), 0.1, meter="renyi") as session:
        answer = session.ask(algorithm)
        assert abs(answer.outcome - 1000) < 100
        order = session.meter.tariff.order
        assert answer.price == pytest.approx(order * (order - 1) * rho)
        assert (answer.epsilon, answer.targets) == (0.0, (("Everything", "rho", rho),))
        for call in (session.test, lambda one: session.ask_prior(one, 3), lambda one: session.release(one, 3)):
            with pytest.raises(tc.NotAllowed, match="noisy does not"):
                call(algorithm)
        with pytest.raises(tc.NotAllowed, match="an ε-DP algorithm"):
            tc.twice(algorithm)
    refused = pytest.raises(tc.NotAllowed, match=r"rho 0\.005.*meter='renyi'")
    with tc.Session(1000, tc.Budget(3.0, 1e-6), 0.1) as session, refused:
        session.ask(algorithm)


def test_gaussian_noise_is_what_its_rho_says():
    """Many counts in one run; a vector's distance is the root of the sum of its counts' squared distances."""
    many = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    algorithm = tc.from_opendp(dp.m.make_gaussian(*many, scale=4.0))
    right, *wrong = (
        {value: DiscreteGaussian((times * 4) ** 2).mass(value) for value in range(-60, 61)}
        for times in (1, 0.95, 1.05)
    )
    draws = draws_to_tell(right, *wrong)
    assert algorithm.default_target.curve.rho == pytest.approx(1 / (2 * 4**2))
    assert_only(Counter(algorithm.run([0] * draws, None)), right, *wrong)


def test_two_gaussians_of_one_number_add_up():
    both = dp.c.make_composition([GAUSSIAN, dp.m.make_gaussian(*NUMBER, scale=20.0)])
    algorithm = tc.from_opendp(both)
    assert algorithm.default_target.curve.rho == both.map(1) == pytest.approx(1 / 200 + 1 / 800)
    assert len(algorithm.run(5, None)) == 2


def test_approximate_zero_concentrated():
    """Keys with noisy counts from a threshold on: a key that only one unit has shows with probability δ."""
    counted = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int))
    distance = dp.l02inf_distance(dp.absolute_distance(T=int))
    found = dp.m.make_gaussian_threshold(counted, distance, scale=10.0, threshold=50)
    algorithm = tc.from_opendp(found >> (lambda keys: sorted(keys.items())), (1, 1, 1), name="keys")
    rho, delta = found.map((1, 1, 1))
    assert algorithm.default_target.curve.rho == rho == pytest.approx(1 / 200)
    assert (algorithm.epsilon, algorithm.delta) == (math.inf, delta)
    assert delta == pytest.approx(DiscreteGaussian(100.0).at_least(49), rel=0.5)  # P[1 + noise ≥ 50], about
    table, budget = {"Kent": 1000, "Devon": -1000}, tc.Budget(3.0, 1e-5)
    with tc.Session(table, budget, 0.1, meter="renyi", computation_delta=1.5 * delta) as session:
        answer = session.ask(algorithm, tc.Everything())
        ((key, number),) = answer.outcome
        assert key == "Kent"
        assert abs(number - 1000) < 100
        order = session.meter.tariff.order
        assert answer.price == pytest.approx(order * (order - 1) * rho)
        assert (answer.delta, session.meter.delta_left) == (delta, pytest.approx(delta / 2))
        with pytest.raises(tc.BudgetSpent, match="this computation spends delta"):
            session.ask(algorithm)
        assert session.meter.hits == 1
    with tc.Session(table, budget, 0.1, meter="renyi") as session, pytest.raises(tc.BudgetSpent):
        session.ask(algorithm)  # no δ was reserved


@pytest.mark.parametrize(("scale", "d_in"), [(10.0, 0), (0.0, 1), (0.05, 1), (1e10, 1), (10.0, 1000)])
def test_rho_out_of_range(scale, d_in):
    measurement = dp.m.make_gaussian(*NUMBER, scale=scale)
    for one in (measurement, dp.c.make_approximate(measurement)):
        with pytest.raises(tc.InvalidParameter, match=f"the ρ of one computation; at d_in {d_in} it gives"):
            tc.from_opendp(one, d_in)


@pytest.mark.parametrize(
    ("measurement", "measure"),
    [
        (dp.c.make_zCDP_to_approxDP(GAUSSIAN), "SmoothedMaxDivergence"),
        (
            dp.m.make_user_measurement(*NUMBER, dp.renyi_divergence(), lambda x: x, lambda _: lambda _: 0.1),
            "RenyiDivergence",
        ),
        (
            dp.m.make_user_measurement(*NUMBER, dp.user_divergence("mine"), lambda x: x, lambda _: 0.1),
            "UserDivergence|ExtrinsicDivergence|mine",
        ),
    ],
    ids=["curve", "renyi", "user"],
)
def test_other_measures_are_refused_by_name(measurement, measure):
    with pytest.raises(tc.NotAllowed, match=measure):
        tc.from_opendp(measurement)


def test_neighbours_that_replace_are_refused():
    replacing = dp.vector_domain(dp.atom_domain(T=bool), size=10), dp.change_one_distance()
    measurement = dp.m.make_user_measurement(*replacing, dp.max_divergence(), len, lambda _: 0.1)
    with pytest.raises(tc.NotAllowed, match="ChangeOneDistance"):
        tc.from_opendp(measurement)


@pytest.mark.parametrize(
    "value", [None, len, "laplace", dp.t.make_count(*ROWS), dp.max_divergence()], ids=lambda v: type(v).__name__
)
def test_what_is_no_measurement(value):
    with pytest.raises(tc.InvalidParameter) as refusal:
        tc.from_opendp(value)
    assert refusal.value.name == "measurement"


def test_an_odometer_is_no_measurement():
    odometer = dp.c.make_fully_adaptive_composition(*NUMBER, dp.max_divergence())
    with pytest.raises(tc.InvalidParameter, match="measurement is"):
        tc.from_opendp(odometer)


def test_interactive_measurements_break_the_run():
    interactive = dp.c.make_adaptive_composition(*NUMBER, dp.max_divergence(), d_in=1, d_mids=[1.0])
    with pytest.raises(TypeError, match="interactive"):
        tc.from_opendp(interactive).run(5, None)


@pytest.mark.parametrize("d_in", [-1, "1", None, 1.5, math.nan, object()])
def test_distances_the_map_does_not_take(d_in):
    for measurement in (LAPLACE, GAUSSIAN, dp.c.make_approximate(GAUSSIAN)):
        with pytest.raises(tc.InvalidParameter) as refusal:
            tc.from_opendp(measurement, d_in)
        assert refusal.value.name == "d_in"


@pytest.mark.parametrize(("scale", "d_in"), [(10.0, 0), (0.0, 1), (1e12, 1), (0.05, 1)])
def test_epsilon_out_of_range(scale, d_in):
    with pytest.raises(tc.InvalidParameter, match=f"measurement is .* at d_in {d_in} it gives"):
        tc.from_opendp(dp.m.make_laplace(*NUMBER, scale=scale), d_in)


def test_an_unknown_metric_is_refused():
    metric = dp.user_distance("replace one row")
    measurement = dp.m.make_user_measurement(NUMBER[0], metric, dp.max_divergence(), lambda _: 1, lambda _: 0.1)
    with pytest.raises(tc.NotAllowed, match="one unit more or less"):
        tc.from_opendp(measurement)


@pytest.mark.parametrize("name", ["", 3])
def test_names(name):
    with pytest.raises(tc.InvalidParameter, match="name is"):
        tc.from_opendp(LAPLACE, name=name)


def test_without_opendp(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(tc.NotAllowed, match=r"pip install 'targetcharge\[opendp\]'"):
        tc.from_opendp(LAPLACE)
