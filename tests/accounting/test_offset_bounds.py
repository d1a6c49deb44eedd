"""Sessions with an offset: golden values, recomputed the slow way, monotone, and what is refused."""

import itertools
import math

import pytest
from tests.accounting.offset_games import laplace_delta, misses_delta, points_delta
from tests.refusals import every
from tests.sizes import size, spread

import targetcharge as tc
from targetcharge import accounting as ac
from targetcharge.accounting.exact import exact_delta
from targetcharge.accounting.offsets import bounds
from targetcharge.accounting.offsets.bounds import Coupling
from targetcharge.accounting.offsets.noise import OffsetNoise
from targetcharge.errors import shown

SESSIONS = [(0.1, 0.1, 20), (0.3, 0.1, 100), (0.2, 0.05, 50), (0.1, 0.01, 300)]
GOLDEN = {
    ("laplace", (100, 100, 100, 100)): (1.93465, 6.05035, 1.89388, 1.01395),
    ("laplace", (70, 60, 60, 55)): (1.41788, 3.52408, 1.18372, 0.54331),
    ("gumbel", (100, 100, 100, 100)): (1.43415, 4.26690, 1.39513, 0.73388),
    ("gumbel", (70, 60, 60, 55)): (1.02208, 2.48184, 0.85179, 0.3928),
}
GOLDEN_ANY = {(0.1, 0.1, 20): 1.95314, (0.3, 0.1, 100): 4.03644, (0.2, 0.05, 50): 1.38178}
GOLDEN_NO_MOVE = {
    "laplace": {(0.1, 20): 1.87071, (0.1, 100): 5.85254, (0.05, 50): 1.73365, (0.01, 100): 0.48933},
    "gumbel": {(0.1, 20): 1.36213, (0.1, 100): 4.04742, (0.05, 50): 1.22442, (0.01, 100): 0.34312},
}
GOLDEN_INDIVIDUAL = {
    (0.1, 1): 1.10561,
    (0.1, 5): 1.68727,
    (0.1, 10): 2.14053,
    (0.1, 20): 2.80521,
    (0.1, 100): 5.86045,
    (0.05, 50): 1.91310,
    (0.01, 100): 0.45517,
    (0.5, 20): 20.9711,
}
LAWS = [
    ("laplace", "any", None),
    ("laplace", "at least", None),
    ("geometric", "at least", None),
    ("gumbel", "at least", None),
    ("gumbel", "at least", "geometric"),
]


def is_golden(epsilon, expected):
    assert expected - 2e-5 <= epsilon <= expected + 2e-4


def test_golden_epsilon_at_a_given_coupling():
    cases = [
        (noise, session, share, expected)
        for (noise, shares), epsilons in GOLDEN.items()
        for session, share, expected in zip(SESSIONS, shares, epsilons, strict=True)
    ]

    def check(noise, session, share, expected):
        offset, query, hits = session
        law = OffsetNoise(offset, query, noise, "at least")
        is_golden(Coupling(law, share).epsilon(hits, 1e-6), expected)

    every(cases, check)


def test_the_best_coupling_is_no_worse_than_the_golden_ones():
    def check(noise, session, expected):
        assert ac.offset_epsilon(*session, 1e-6, noise, "at least") <= expected + 2e-4

    every(
        [
            (noise, session, expected)
            for (noise, _), epsilons in GOLDEN.items()
            for session, expected in itertools.islice(zip(SESSIONS, epsilons, strict=True), size(1, 4))
        ],
        check,
    )


def test_golden_epsilon_of_any_question():
    every(list(GOLDEN_ANY.items()), lambda session, golden: is_golden(ac.offset_epsilon(*session, 1e-6), golden))


def test_golden_epsilon_without_the_first_move():
    """An offset with hardly any rate has hardly a first move: x₁ is ½ and both of its losses are 0."""

    def check(noise, query, hits, expected):
        law = OffsetNoise(1e-7, query, noise, "at least")
        is_golden(Coupling(law, 100).epsilon(hits, 1e-6), expected)

    every(
        [
            (noise, *session, golden)
            for noise, values in GOLDEN_NO_MOVE.items()
            for session, golden in values.items()
        ],
        check,
    )


def test_golden_epsilon_without_an_offset():
    every(
        list(GOLDEN_INDIVIDUAL.items()),
        lambda session, golden: (
            is_golden(ac.gumbel_epsilon(*session, 1e-6), golden)
            if golden < 20
            else is_golden(ac.gumbel_epsilon(*session, 1e-6) / 10, golden / 10)
        ),
    )


@pytest.mark.parametrize(("offset", "query", "hits"), [(0.1, 0.1, 1), (0.5, 0.1, 7), (3.0, 0.25, 1000)])
def test_geometric_noise_is_pure(offset, query, hits):
    whole = offset + hits * query
    epsilon = ac.offset_epsilon(offset, query, hits, 0.0, "geometric", "at least")
    assert whole <= epsilon <= whole * (1 + 1e-8)
    assert ac.offset_delta(offset, query, hits, whole * (1 + 1e-9), "geometric", "at least") == 0
    assert ac.offset_delta(offset, query, hits, 0.9 * whole, "geometric", "at least") == pytest.approx(
        -math.expm1(-0.1 * whole)
    )


@pytest.mark.parametrize("draws", [1, 2, 5, 20])
def test_golden_epsilon_of_several_first_moves(draws):
    golden = {1: 1.93465, 2: 1.99402, 5: 2.18856, 20: 2.95572}[draws]

    def delta(epsilon):
        x = 1 / (1 + math.exp(-0.1))
        return sum(
            math.comb(draws, up)
            * x**up
            * (1 - x) ** (draws - up)
            * float(misses_delta(0.1, 20, epsilon - move * 0.1))
            for up in range(draws + 1)
            for move in [2 * up - draws]
        )

    assert delta(golden - 2e-5) > 1e-6 > delta(golden + 2e-5)


# Recomputed


def first_move(profile, first, epsilon):
    """Return δ' after randomised response at a rate, whose losses are ± it."""
    x = 1 / (1 + math.exp(-first))
    return x * profile(epsilon - first) + (1 - x) * profile(epsilon + first)


GAMES = [
    (offset, query, share, hits, epsilon)
    for offset, query in [(0.5, 1.0), (0.6, 1.0), (0.2, 0.5)]
    for share, hits in [(50, 2), (60, 1), (70, 3), (75, 2), (90, 2)]
    for epsilon in (0.0, 0.4, 0.45, 1.3)
]


def slow_laplace(offset, query, share, hits, epsilon, *, from_above):
    """Return δ' of at-least questions under Laplace noise by value iteration."""
    cells = 100 // math.gcd(share, 100)
    rates = query * share / 100, query * (100 - share) / 100
    return first_move(
        lambda whole: laplace_delta(*rates, cells, hits, whole, from_above=from_above),
        offset * share / 100,
        epsilon,
    )


def is_between(offset, query, share, hits, epsilon):
    """Check a coupling against slow iteration from both sides."""
    least = slow_laplace(offset, query, share, hits, epsilon, from_above=False)
    most = slow_laplace(offset, query, share, hits, epsilon, from_above=True)
    assert most == pytest.approx(least, rel=1e-9)
    coupling = Coupling(OffsetNoise(offset, query, "laplace", "at least"), share)
    assert least * (1 - 1e-12) <= coupling.delta(hits, epsilon)
    # Twice the first move is seldom a whole number of cells: then a chord is read, which is above.
    exactly = abs(math.remainder(2 * coupling.first, cell_of(query, share))) < 1e-9 and epsilon >= coupling.first
    loose = 0.15 if reaches_below_the_lattice(offset, query, share, hits, epsilon) else 0.07
    assert coupling.delta(hits, epsilon) <= most * (1 + (1e-9 if exactly else loose))


def cell_of(query, share):
    """Return the width of the lattice of a game."""
    return query * math.gcd(share, 100) / 100


def reaches_below_the_lattice(offset, query, share, _hits, epsilon):
    """Return whether a first move leads to where the lattice, which stands at ε' + λε1, has no point above 0."""
    first = offset * share / 100
    return epsilon - first < (epsilon + first) % cell_of(query, share) - 1e-9


def test_laplace_games_lie_where_slow_iteration_from_both_sides_puts_them():
    every(spread([game for game in GAMES if not reaches_below_the_lattice(*game)], 20), is_between)


def test_laplace_games_do_so_below_the_first_point_of_their_lattice():
    every(spread([game for game in GAMES if reaches_below_the_lattice(*game)], 6), is_between)


def test_any_question_is_the_symmetric_game_with_every_target():
    """Both ways may hit on either side: the game of section 3 at half the rate, after the first move."""

    def check(offset, query, hits, epsilon):
        expected = first_move(
            lambda whole: exact_delta(query / 2, hits, whole) if whole >= 0 else None, offset / 2, epsilon
        )
        assert ac.offset_delta(offset, query, hits, epsilon) == pytest.approx(expected, rel=1e-9)

    every(list(itertools.product([0.2, 1.0], [0.1, 0.8], [1, 4], [0.5, 1.7])), check)


def test_the_closed_forms_are_sums_and_integrals():
    def check(query, hits, epsilon):
        whole = epsilon * hits * query
        for slow, fast in (
            (misses_delta(query, hits, whole), bounds._one_sided_delta(query, hits, whole)),
            (points_delta(query, hits, whole, rising=False), bounds.falling_delta(query, hits, whole)),
            (points_delta(query, hits, whole, rising=True), bounds.rising_delta(query, hits, whole)),
        ):
            assert float(slow) * (1 - 1e-11) <= fast <= float(slow) * (1 + 1e-6) + 1e-13

    every(spread(itertools.product([0.05, 0.4, 2.0], [1, 4, 30], [-0.2, 0.0, 0.3, 0.9]), 9), check)


def test_without_an_offset_the_worse_direction_counts():
    def check(query, hits, epsilon):
        slow = max(float(points_delta(query, hits, epsilon, rising=rising)) for rising in (False, True))
        assert slow * (1 - 1e-11) <= ac.gumbel_delta(query, hits, epsilon) <= slow * (1 + 1e-6) + 1e-13

    every([(0.1, 1, 0.4), (0.7, 6, 2.0), (0.7, 6, 0.0)], check)


def test_always_asking_where_misses_lower_the_loss_is_the_best_laplace_game_at_one():
    for query, hits, epsilon in itertools.product([0.5, 1.5], [1, 3], [0.0, 0.7]):
        slow = laplace_delta(query, 0.0, 1, hits, epsilon, from_above=True)
        assert float(misses_delta(query, hits, epsilon)) == pytest.approx(slow, rel=1e-12)


def test_power_a_game_at_another_coupling_or_a_tenth_lower_is_noticed():
    for offset, query, share, hits, epsilon in [(0.6, 1.0, 70, 3, 1.3), (0.2, 0.5, 60, 1, 0.45)]:
        truth = slow_laplace(offset, query, share, hits, epsilon, from_above=False)
        law = OffsetNoise(offset, query, "laplace", "at least")
        assert 0.9 * Coupling(law, share).delta(hits, epsilon) < truth
        swapped = slow_laplace(offset, query, 100 - share, hits, epsilon, from_above=False)
        assert abs(Coupling(law, share).delta(hits, epsilon) / swapped - 1) > 0.05


# The best coupling, and the calls among each other


@pytest.mark.parametrize(("noise", "questions", "offset_noise"), LAWS)
def test_epsilon_delta_and_hits_agree(noise, questions, offset_noise):
    arguments = {"noise": noise, "questions": questions, "offset_noise": offset_noise}
    for hits, delta in [(1, 1e-6), (12, 1e-6)]:
        epsilon = ac.offset_epsilon(0.3, 0.2, hits, delta, **arguments)
        assert ac.offset_delta(0.3, 0.2, hits, epsilon * (1 + 1e-3), **arguments) <= delta
        assert ac.offset_delta(0.3, 0.2, hits, epsilon * (1 - 2e-3), **arguments) > delta
        assert ac.offset_hits(0.3, 0.2, tc.Budget(epsilon * (1 + 1e-3), delta), **arguments) == hits


@pytest.mark.parametrize("noise", ["laplace", "gumbel"])
def test_a_budget_buys_all_hits_that_it_covers(noise):
    """Where some couplings buy as many hits as their neighbours, the search for the best must not stop there."""
    epsilon = ac.offset_epsilon(0.3, 0.2, 3, 1e-3, noise, "at least") * (1 + 1e-3)
    assert ac.offset_delta(0.3, 0.2, 3, epsilon, noise, "at least") <= 1e-3
    assert ac.offset_hits(0.3, 0.2, tc.Budget(epsilon, 1e-3), noise, "at least") == 3


@pytest.mark.parametrize("noise", ["laplace", "gumbel"])
def test_no_coupling_on_the_grid_is_better_than_the_one_that_is_found(noise):
    for hits, epsilon in [(1, 0.5), (4, 1.0), (20, 1.0)]:
        found = ac.offset_delta(0.3, 0.1, hits, epsilon, noise, "at least")
        law, step = OffsetNoise(0.3, 0.1, noise, "at least"), bounds.share_step(noise, "at least")
        couplings = [Coupling(law, share, 200_000) for share in range(50, 101, 5 * step // math.gcd(5, step))]
        assert found <= min(coupling.delta(hits, epsilon) for coupling in couplings) * (1 + 1e-9)


def test_budgets_without_an_offset_buy_what_they_cover():
    for query, hits in [(0.1, 1), (0.1, 20), (0.5, 7)]:
        epsilon = ac.gumbel_epsilon(query, hits, 1e-6)
        assert ac.gumbel_hits(query, tc.Budget(epsilon * (1 + 1e-8), 1e-6)) == hits
        assert ac.gumbel_hits(query, tc.Budget(epsilon * (1 - 1e-8), 1e-6)) == hits - 1


# Monotone

HITS = spread([1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 20], 3)
RATES = spread([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8], 3)
DELTAS = spread([1e-3, 1e-4, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12], 3)
EPSILONS = spread([0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0], 4)


def rises(values, tolerance=3e-4):
    """Check that values rise, but for the tolerance: couplings and lattices change from one to the next."""
    for before, after in itertools.pairwise(values):
        assert after >= before * (1 - tolerance) - 1e-95, values


@pytest.mark.parametrize(("noise", "questions", "offset_noise"), LAWS)
def test_a_guarantee_is_monotone_in_every_parameter(noise, questions, offset_noise):
    law = {"noise": noise, "questions": questions, "offset_noise": offset_noise}
    rises([ac.offset_epsilon(0.2, 0.1, hits, 1e-6, **law) for hits in HITS])
    rises([ac.offset_epsilon(offset, 0.1, 5, 1e-6, **law) for offset in RATES])
    rises([ac.offset_epsilon(0.2, query, 5, 1e-6, **law) for query in RATES])
    rises([ac.offset_epsilon(0.2, 0.1, 5, delta, **law) for delta in DELTAS])
    rises([ac.offset_delta(0.2, 0.1, hits, 0.5, **law) for hits in HITS])
    rises([ac.offset_delta(offset, 0.1, 5, 0.5, **law) for offset in RATES])
    rises([ac.offset_delta(0.2, query, 5, 0.5, **law) for query in RATES])
    rises([ac.offset_delta(0.2, 0.1, 5, epsilon, **law) for epsilon in reversed(EPSILONS)])
    rises([ac.offset_hits(0.4, 0.4, tc.Budget(epsilon, 1e-6), **law) for epsilon in EPSILONS[1:]])
    rises([ac.offset_hits(0.4, 0.4, tc.Budget(2.0, delta), **law) for delta in reversed(DELTAS)])


def test_without_an_offset_a_guarantee_is_monotone_in_every_parameter():
    rises([ac.gumbel_epsilon(0.1, hits, 1e-6) for hits in HITS], 1e-9)
    rises([ac.gumbel_epsilon(query, 5, 1e-6) for query in RATES], 1e-9)
    rises([ac.gumbel_epsilon(0.1, 5, delta) for delta in DELTAS], 1e-9)
    rises([ac.gumbel_delta(0.1, 5, epsilon) for epsilon in reversed(EPSILONS)], 1e-9)
    rises([ac.gumbel_hits(0.1, tc.Budget(epsilon, 1e-6)) for epsilon in EPSILONS[1:]])


# Bad input

RATE = [math.nan, math.inf, -math.inf, 0.0, -0.1, 11.0, 1e300, 10**400, 1e-12, "0.1", None, True, 1j]
BAD = {
    "offset_epsilon": RATE,
    "query_epsilon": RATE,
    "epsilon": [math.nan, math.inf, -1.0, 1e5, 10**400, "1", None, False],
    "delta": [math.nan, -1e-9, 1.0, 2.0, math.inf, "0", None, 0.0, 1e-120],
    "hits": [0, -1, 10**400, 1.0, 2.5, math.nan, "3", None, True],
    "noise": ["", "Laplace", "gauss", None, 1],
    "questions": ["", "all", "at most", None, 1],
    "offset_noise": ["gumbel", "Laplace", 1],
}
GOOD = {"offset_epsilon": 0.1, "query_epsilon": 0.1, "noise": "laplace", "questions": "at least"}
FUNCTIONS = [
    (ac.offset_epsilon, {**GOOD, "hits": 2, "delta": 1e-6, "offset_noise": None}),
    (ac.offset_delta, {**GOOD, "hits": 2, "epsilon": 1.0, "offset_noise": None}),
    (ac.offset_hits, {**GOOD, "budget": tc.Budget(1.0, 1e-6), "offset_noise": None}),
    (ac.gumbel_epsilon, {"query_epsilon": 0.1, "hits": 2, "delta": 1e-6}),
    (ac.gumbel_delta, {"query_epsilon": 0.1, "hits": 2, "epsilon": 1.0}),
    (ac.gumbel_hits, {"query_epsilon": 0.1, "budget": tc.Budget(1.0, 1e-6)}),
    (OffsetNoise, GOOD),
]


@pytest.mark.parametrize(("function", "good"), FUNCTIONS, ids=[function.__name__ for function, _ in FUNCTIONS])
def test_refused_by_name_and_value(function, good):
    def is_refused(name, value):
        with pytest.raises(tc.InvalidParameter) as refusal:
            function(**{**good, name: value})
        error = refusal.value
        assert error.name == name
        assert error.value is value or error.value == value
        assert str(error) == f"{name} is {shown(value)}; it must be {error.expected}"

    function(**good)
    every([(name, value) for name in good for value in BAD.get(name, [])], is_refused)


@pytest.mark.parametrize("budget", [None, 1.0, (1.0, 1e-6)])
def test_a_budget_that_is_none_is_refused(budget):
    for call in (
        lambda: ac.offset_hits(0.1, 0.1, budget),
        lambda: ac.offset_hits(0.1, 0.1, budget, "geometric", "at least"),
        lambda: ac.gumbel_hits(0.1, budget),
    ):
        with pytest.raises(tc.InvalidParameter, match="budget is"):
            call()


@pytest.mark.parametrize("noise", ["gumbel", "geometric"])
def test_one_sided_noise_is_refused_where_any_question_may_be_asked(noise):
    for call in (
        lambda: ac.offset_epsilon(0.1, 0.1, 2, 1e-6, noise),
        lambda: ac.offset_delta(0.1, 0.1, 2, 1.0, noise, "any"),
        lambda: ac.offset_hits(0.1, 0.1, tc.Budget(1.0, 1e-6), noise),
    ):
        with pytest.raises(tc.InvalidParameter, match=f"noise is '{noise}'; it must be 'laplace'"):
            call()


def test_laws_of_offsets_that_do_not_go_with_the_noise_are_refused():
    for noise, offset_noise in [("laplace", "geometric"), ("geometric", "laplace")]:
        with pytest.raises(tc.InvalidParameter, match=f"offset_noise is '{offset_noise}'"):
            ac.offset_delta(0.1, 0.1, 2, 1.0, noise, "at least", offset_noise=offset_noise)


@pytest.mark.parametrize("noise", ["laplace", "gumbel"])
def test_no_delta_no_guarantee_unless_the_noise_is_geometric(noise):
    with pytest.raises(tc.InvalidParameter, match="delta is 0"):
        ac.offset_epsilon(0.1, 0.1, 2, 0.0, noise, "at least")
    with pytest.raises(tc.InvalidParameter, match="delta is 0"):
        ac.offset_hits(0.1, 0.1, tc.Budget(1.0, 0.0), noise, "at least")
    assert ac.offset_hits(0.125, 0.125, tc.Budget(1.0, 0.0), "geometric", "at least") == 7


@pytest.mark.parametrize("questions", ["any", "at least"])
def test_a_lattice_that_is_too_large_is_refused_before_it_starts(questions):
    with pytest.raises(tc.TooLarge):
        ac.offset_epsilon(0.001, 0.00001, 10_000_000, 1e-6, "laplace", questions)


def test_a_gumbel_lattice_that_is_too_large_is_refused_before_it_starts():
    with pytest.raises(tc.TooLarge, match=r"hits is 10000000; it must be at most \d+ at query_epsilon 1e-05"):
        ac.offset_epsilon(0.001, 0.00001, 10_000_000, 1e-6, "gumbel", "at least")
    with pytest.raises(tc.TooLarge):
        ac.offset_epsilon(0.001, 0.00001, 100_000, 1e-6, "gumbel", "at least")
