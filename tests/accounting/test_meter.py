import math

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import targetcharge as tc
from targetcharge.accounting import Meter, exact_delta, exact_hits, renyi_hits
from targetcharge.accounting.meter import Price
from targetcharge.accounting.renyi import epsilon_of_total

BUDGET = tc.Budget(1.0, 1e-6)
PLAIN = tc.NotPrior(False)


def test_exact_meter_grants_what_exact_accounting_says():
    meter = Meter.exact(BUDGET, 0.01)
    price = meter.quote(PLAIN, 0.01)
    assert meter.hits_left == exact_hits(0.01, BUDGET)
    for _ in range(meter.hits_left):
        meter.check(price)
        meter.charge(price)
    assert (meter.hits_left, meter.guarantee) == (0, BUDGET)
    with pytest.raises(tc.BudgetSpent, match="could cost 1 hit on the exact meter and nothing is left") as refusal:
        meter.check(price)
    assert (refusal.value.asked, refusal.value.left) == (1.0, 0.0)


def test_renyi_meter_grants_what_renyi_accounting_says():
    meter = Meter.renyi(BUDGET, 0.01, tc.Boundary())
    assert meter.hits_left == renyi_hits(tc.Boundary(), 0.01, BUDGET)
    price = meter.quote(tc.Boundary(), 0.01)
    meter.charge(price, meter.hits_left)
    with pytest.raises(tc.BudgetSpent):
        meter.charge(price)
    assert meter.hits == renyi_hits(tc.Boundary(), 0.01, BUDGET)


def test_renyi_meter_mixes_everything():
    meter = Meter.renyi(BUDGET, 0.01)
    order, total = meter.tariff.order, 0.0
    questions = [
        (PLAIN, 0.01),
        (PLAIN, 0.02),
        (tc.Boundary(), 0.01),
        (tc.Between(3, 40), 0.015),
        (tc.Disagreement(), 0.005),
    ]
    for target, epsilon in questions:
        meter.charge(meter.quote(target, epsilon))
        total += target.price(order, epsilon)
    expected = (total + math.log(1e6)) / (order - 1)
    assert meter.odometer().epsilon == pytest.approx(expected, rel=1e-12)
    assert meter.hits == len(questions)


def test_what_the_renyi_meter_grants_fits_the_budget():
    meter = Meter.renyi(BUDGET, 0.01)
    total = meter.tariff.total(meter.tariff.capacity)
    assert epsilon_of_total(total, meter.tariff.order, 1e-6) == pytest.approx(1.0, rel=1e-9)


def test_exact_meter_refuses_what_was_not_declared():
    meter = Meter.exact(BUDGET, 0.01)
    with pytest.raises(tc.NotAllowed, match=r"epsilon 0.02, above the declared query_epsilon 0.01"):
        meter.quote(PLAIN, 0.02)
    with pytest.raises(tc.NotAllowed, match=r"was not opened to pay for two runs that differ"):
        meter.quote(tc.Disagreement(), 0.01)
    with pytest.raises(tc.NotAllowed, match="does not cover the boundary wrapper"):
        meter.quote(tc.Boundary(), 0.01)
    with pytest.raises(tc.NotAllowed, match="was not opened to pay for one of "):
        meter.quote(tc.QTarget(0.9, {1}), 0.01)


def test_exact_meter_allows_what_is_covered():
    meter = Meter.exact(BUDGET, 0.01)
    assert meter.quote(tc.Everything(), 0.01) == meter.quote(PLAIN, 0.004)


def test_exact_meter_of_a_mixed_session():
    targets = (PLAIN, tc.Disagreement(), tc.QTarget(0.3, {1}))
    meter = Meter.exact(BUDGET, 0.01, targets)
    assert 0 < meter.hits_left <= exact_hits(0.01, BUDGET)
    for target in (*targets, tc.QTarget(0.5, {2})):
        assert meter.quote(target, 0.01).grains == 1
    with pytest.raises(tc.NotAllowed):
        meter.quote(tc.QTarget(0.29, {1}), 0.01)
    # A smaller ε makes a band hit less often: its q falls below the declared one.
    band = Meter.exact(BUDGET, 0.01, (tc.Between(1, 50),))
    assert band.quote(tc.Between(1, 50), 0.01).grains == 1
    with pytest.raises(tc.NotAllowed):
        band.quote(tc.Between(1, 50), 0.005)


def test_renyi_meter_refuses_an_infinite_price_by_name():
    meter = Meter.renyi(BUDGET, 0.01)
    with pytest.raises(tc.NotAllowed, match="no finite price on this session's Rényi meter"):
        meter.quote(PLAIN, 0.5)
    with pytest.raises(tc.InvalidParameter, match=r"epsilon is 2\.0; it must be a number from 1e-09 to 1,"):
        meter.quote(tc.Boundary(), 2.0)


@pytest.mark.parametrize("open_meter", [Meter.exact, Meter.renyi])
def test_a_budget_too_small_for_one_hit_says_what_would_work(open_meter):
    with pytest.raises(tc.InvalidParameter) as refusal:
        open_meter(tc.Budget(0.1, 1e-6), 0.1)
    assert refusal.value.name == "query_epsilon"
    workable = float(refusal.value.expected.split("at most ")[1].split(",")[0])
    assert open_meter(tc.Budget(0.1, 1e-6), workable * 0.99).hits_left >= 1
    with pytest.raises(tc.InvalidParameter):
        open_meter(tc.Budget(0.1, 1e-6), workable * 1.02)


def test_a_hopeless_budget_says_so():
    with pytest.raises(tc.InvalidParameter, match="raise the budget"):
        Meter.renyi(tc.Budget(1e-9, 1e-80), 0.1)


@pytest.mark.parametrize("open_meter", [Meter.exact, Meter.renyi])
def test_computations_spend_their_own_delta(open_meter):
    meter = open_meter(BUDGET, 0.01, computation_delta=5e-7)
    plain = open_meter(tc.Budget(1.0, 5e-7), 0.01)
    assert abs(meter.hits_left - plain.hits_left) <= 1
    price = meter.quote(PLAIN, 0.01)
    meter.check(price, delta=2e-7)
    meter.spend_delta(2e-7)
    meter.spend_delta(2e-7)
    with pytest.raises(tc.BudgetSpent, match="spends delta 2e-07 and 1e-07 is left"):
        meter.check(price, delta=2e-7)
    with pytest.raises(tc.BudgetSpent):
        meter.spend_delta(2e-7)
    assert meter.odometer().delta == pytest.approx(5e-7 + 4e-7)
    with pytest.raises(tc.BudgetSpent):
        open_meter(BUDGET, 0.01).spend_delta(1e-12)


def test_a_meter_takes_only_its_own_prices():
    exact, renyi = Meter.exact(BUDGET, 0.01), Meter.renyi(BUDGET, 0.01)
    other = Meter.renyi(tc.Budget(2.0, 1e-6), 0.01)
    looser = Meter.exact(tc.Budget(9.0, 1e-6), 0.1)
    for meter, foreign in ((renyi, exact), (exact, renyi), (renyi, other), (exact, looser)):
        with pytest.raises(tc.InvalidParameter, match=r"price is Price\(.*it must be one quoted by this meter"):
            meter.charge(foreign.quote(PLAIN, 0.01))
    with pytest.raises(tc.InvalidParameter, match="price is"):
        renyi.charge(Price(-1, -1.0, renyi.tariff.typical.scale))
    assert renyi.hits == exact.hits == 0


@pytest.mark.parametrize("targets", [(), ("yes",), [PLAIN, 3]])
def test_targets_are_checked(targets):
    with pytest.raises(tc.InvalidParameter, match="targets is"):
        Meter.exact(BUDGET, 0.01, targets)


def test_one_target_may_stand_alone():
    assert (
        Meter.exact(BUDGET, 0.01, tc.Disagreement()).hits_left
        == Meter.exact(BUDGET, 0.01, [tc.Disagreement()]).hits_left
    )


def test_a_target_that_hits_too_rarely_is_refused_with_what_would_work():
    with pytest.raises(tc.InvalidParameter, match=r"query_epsilon is 0\.1; it must be at most .*one hit costs"):
        Meter.exact(BUDGET, 0.1, tc.QTarget(1e-7, {1}))


def test_delta_reserved_must_be_less_than_all():
    with pytest.raises(
        tc.InvalidParameter, match="computation_delta is 1e-06; it must be below the budget's delta"
    ):
        Meter.exact(BUDGET, 0.01, computation_delta=1e-6)


def test_a_meter_needs_delta():
    for open_meter in (Meter.exact, Meter.renyi):
        with pytest.raises(tc.InvalidParameter, match="delta is 0"):
            open_meter(tc.Budget(1.0, 0.0), 0.01)


def test_selections_are_covered_as_a_whole():
    meter = Meter.exact(tc.Budget(1.0, 1e-6), 0.05)
    price = meter.quote(PLAIN, 0.05)
    meter.check(price, count=2)
    with pytest.raises(tc.BudgetSpent, match="this could cost 3 hits on the exact meter and 2 are left"):
        meter.check(price, count=3)
    with pytest.raises(tc.InvalidParameter, match="count is 0"):
        meter.check(price, count=0)


@pytest.mark.parametrize("open_meter", [Meter.exact, Meter.renyi])
def test_odometer_holds_at_all_times_at_once(open_meter):
    """Ville, by exact enumeration: the chance that the loss ever exceeds the running figure is at most δ.

    The adversary plays a test whose "+" misses, up to a horizon, and may look at the figure at any time.
    """
    epsilon, budget = 0.5, tc.Budget(30.0, 1e-3)
    meter = open_meter(budget, epsilon)
    figures = []
    while meter.hits_left:
        figures.append(meter.odometer().epsilon)
        meter.charge(meter.quote(PLAIN, epsilon))
    up = 1 / (1 + math.exp(-epsilon))
    alive, exceeded = {(0, 0): 1.0}, 0.0
    for _ in range(400):
        after: dict[tuple[int, int], float] = {}
        for (hits, place), mass in alive.items():
            for state, probability in (((hits, place + 1), up), ((hits + 1, place - 1), 1 - up)):
                if state[0] >= len(figures):
                    continue
                if state[1] * epsilon > figures[state[0]]:
                    exceeded += mass * probability
                else:
                    after[state] = after.get(state, 0.0) + mass * probability
        alive = after
    assert 1e-3 * budget.delta < exceeded <= budget.delta
    assert exact_delta(epsilon, len(figures), budget.epsilon) <= budget.delta


class MeterMachine(RuleBasedStateMachine):
    """A meter agrees with plain arithmetic whatever is charged and refused."""

    @initialize(exact=st.booleans())
    def open(self, exact):
        reserve = 4e-7
        self.meter = (Meter.exact if exact else Meter.renyi)(BUDGET, 0.02, computation_delta=reserve)
        self.capacity = self.meter.tariff.capacity
        self.spent, self.hits, self.delta = 0, 0, 0.0

    @rule(count=st.integers(1, 9), epsilon=st.sampled_from([0.005, 0.01, 0.02]))
    def charge(self, count, epsilon):
        price = self.meter.quote(PLAIN, epsilon)
        if self.spent + count * price.grains > self.capacity:
            with pytest.raises(tc.BudgetSpent):
                self.meter.charge(price, count)
        else:
            self.meter.charge(price, count)
            self.spent += count * price.grains
            self.hits += count

    @rule(delta=st.sampled_from([0.0, 1e-8, 7e-8]))
    def spend_delta(self, delta):
        if self.delta + delta > 4e-7 * (1 + 1e-12):
            with pytest.raises(tc.BudgetSpent):
                self.meter.spend_delta(delta)
        elif self.delta + delta < 4e-7 * (1 - 1e-12):
            self.meter.spend_delta(delta)
            self.delta += delta

    @invariant()
    def agrees(self):
        if not hasattr(self, "meter"):
            return
        assert self.meter.hits == self.hits
        assert self.meter.hits_left == (self.capacity - self.spent) // self.meter.tariff.typical.grains
        assert self.meter.delta_left == pytest.approx(4e-7 - self.delta, abs=1e-15)
        assert self.meter.guarantee == BUDGET


TestMeterMachine = MeterMachine.TestCase
