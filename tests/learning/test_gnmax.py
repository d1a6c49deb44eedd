"""The accounting and the probabilities behind the comparison of private labels with the peers' aggregators."""

import itertools
import math

import numpy as np
import pytest
from benchmarks.pate import laws, offers, ours, peers, running, votes
from benchmarks.pate.dependent import dependent_epsilon
from benchmarks.pate.gnmax import (
    AUTHORS,
    Confident,
    authors_cost,
    authors_epsilon,
    gaussian_cost,
    gaussian_delta,
    gaussian_epsilon,
    renyi_epsilon,
)
from scipy.integrate import quad
from scipy.stats import norm
from tests.sizes import size

import targetcharge as tc
from targetcharge.accounting.baselines import optimal_hits
from targetcharge.mechanisms.choice import NoisyMax

PAIRS = [  # a vote moves from one class to another
    ([9, 1, 0], [8, 2, 0]),
    ([5, 5, 0], [4, 6, 0]),
    ([5, 5, 0], [5, 4, 1]),
    ([4, 3, 3], [3, 4, 3]),
    ([10, 0, 0], [9, 0, 1]),
    ([2, 2, 6], [1, 3, 6]),
]
ORDERS = (1.5, 2.0, 4.0, 9.0)


def divergence(first, second, order):
    return math.log(float(np.sum(first**order * second ** (1 - order)))) / (order - 1)


def gaussian_law(counts, sigma):
    rows = np.array([counts], dtype=float)
    return np.array([laws.gaussian_maximum(rows, sigma, np.array([index]))[0] for index in range(len(counts))])


def test_the_authors_figure():
    assert authors_epsilon(AUTHORS.cost(640, 282.721), 1e-5) == pytest.approx(3.157, abs=5e-4)
    assert AUTHORS.cost(640, 282.721) == pytest.approx(640 / 45_000 + 282.721 / 1_600)


def test_plain_gnmax_pays_for_no_test():
    assert Confident(-math.inf, 30, 40).cost(100, 100) == pytest.approx(100 / 1_600)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pair", PAIRS)
def test_an_answer_and_a_test_cost_no_less_than_they_tell(pair, order):
    parameters = Confident(threshold=6, test_sigma=1.5, answer_sigma=2.0)
    answers = [gaussian_law(counts, parameters.answer_sigma) for counts in pair]
    passed = [norm.sf(parameters.threshold, max(counts), parameters.test_sigma) for counts in pair]
    tests = [np.array([chance, 1 - chance]) for chance in passed]
    for one, other in ((0, 1), (1, 0)):
        assert divergence(answers[one], answers[other], order) <= order * parameters.cost(0, 1) * (1 + 1e-6)
        assert divergence(tests[one], tests[other], order) <= order * parameters.cost(1, 0)


def test_a_gaussian_that_moves_by_one_costs_just_that():
    cost = Confident(200, 1.5, 40).cost(1, 0)
    for order in ORDERS:

        def moment(point, order=order):
            return math.exp(order * norm.logpdf(point, 0, 1.5) + (1 - order) * norm.logpdf(point, 1, 1.5))

        found = math.log(quad(moment, -40, 40, limit=400)[0]) / (order - 1)
        assert found == pytest.approx(order * cost, rel=1e-6)


@pytest.mark.parametrize(("cost", "epsilon"), [(0.02, 0.5), (0.2, 2.5), (1.4, 8.0), (3.0, 0.0)])
def test_the_exact_conversion_is_the_integral(cost, epsilon):
    mu = math.sqrt(2 * cost)

    def excess(point):
        return max(0.0, norm.pdf(point, mu) - math.exp(epsilon) * norm.pdf(point))

    start = mu / 2 + epsilon / mu  # where the likelihood ratio is e^ε
    assert gaussian_delta(cost, epsilon) == pytest.approx(quad(excess, start, start + 40)[0], rel=1e-6)


@pytest.mark.parametrize("cost", [0.01, 0.1, 0.19, 0.7, 1.4])
def test_each_conversion_is_better_than_the_one_before(cost):
    exact, renyi, classic = (convert(cost, 1e-5) for convert in (gaussian_epsilon, renyi_epsilon, authors_epsilon))
    assert exact < renyi < classic
    assert gaussian_delta(cost, exact) == pytest.approx(1e-5, rel=1e-6)


@pytest.mark.parametrize("epsilon", offers.BUDGETS)
def test_a_budget_covers_what_converts_to_it(epsilon):
    assert gaussian_epsilon(gaussian_cost(epsilon, 1e-5), 1e-5) == pytest.approx(epsilon)
    assert authors_epsilon(authors_cost(epsilon, 1e-5), 1e-5) == pytest.approx(epsilon)


def test_the_data_dependent_figure_is_no_larger_and_smaller_where_votes_are_clear():
    clear, tied = np.tile([250.0, 0.0, 0.0], (100, 1)), np.tile([125.0, 125.0, 0.0], (100, 1))
    sharp = Confident(threshold=125, test_sigma=150, answer_sigma=20)
    passed = {"clear": norm.cdf(125 / 150), "tied": 0.5}
    worst = {name: authors_epsilon(sharp.cost(100, 100 * chance), 1e-5) for name, chance in passed.items()}
    assert dependent_epsilon(tied, sharp, 1e-5) == pytest.approx(worst["tied"])
    assert dependent_epsilon(clear, sharp, 1e-5) < 0.5 * worst["clear"]


def test_permute_and_flip_is_its_enumeration():
    counts, epsilon = [6, 5, 3, 3], 0.8
    coins = [math.exp(epsilon / 2 * (count - max(counts))) for count in counts]
    chances = np.zeros(len(counts))
    for order in itertools.permutations(range(len(counts))):
        left = 1 / math.factorial(len(counts))
        for index in order:
            chances[index] += left * coins[index]
            left *= 1 - coins[index]
    assert laws.permute_and_flip(np.array([counts], dtype=float), epsilon)[0] == pytest.approx(chances, abs=1e-12)


def test_the_noisy_maximum_is_that_of_the_package():
    counts = [12, 9, 9, 0]
    expected = NoisyMax(0.3).law(counts)
    assert laws.noisy_maximum(np.array([counts], dtype=float), 0.3)[0] == pytest.approx(expected, abs=1e-8)


def test_the_gaussian_maximum_of_two_is_the_normal_tail_and_of_many_sums_to_one():
    assert gaussian_law([7, 4], 3.0)[0] == pytest.approx(norm.cdf(3 / (3 * math.sqrt(2))), abs=1e-9)
    assert gaussian_law([50, 40, 30, 20, 10, 0, 0, 0, 0, 100], 25.0).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("threshold", [90, 99.5, 100, 101, 140])
def test_a_threshold_is_reached_as_often_as_the_noise_says(threshold):
    decay = math.exp(-0.2)
    noise = np.arange(-400, 401)
    mass = (1 - decay) / (1 + decay) * decay ** np.abs(noise)
    expected = mass[100 + noise >= threshold].sum()
    assert laws.reaches(np.array([100.0]), threshold, 0.2)[0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("caution", [1.0, 2.0, 22.0])
def test_marks_are_those_of_the_wrapper(caution):
    likeliest = np.array([0.9, 0.5, 0.3, 1.0])
    expected = [tc.Boundary(caution).mark_probability(1 - chance) for chance in likeliest]
    assert laws.marks(likeliest, caution) == pytest.approx(expected)
    assert laws.marks(likeliest, 2.0) == pytest.approx([1 / 6, 1 / 2, 1 / 2, 0])


@pytest.mark.parametrize("query", [0.05, 0.1, 0.3])
def test_bounded_range_allows_what_concentrated_privacy_does_and_hardly_more(query):
    budget = tc.Budget(3.157, 1e-5)
    found = peers.bounded_range_requests(query, budget)
    exponents = np.geomspace(1e-2, 1e3, 4_000)
    orders = 1 + exponents
    totals = exponents * (3.157 - np.log1p(-1 / orders)) + math.log(1e-5) + np.log(orders)
    concentrated = float(np.max(totals / (orders * exponents * query**2 / 8)))
    assert concentrated - 1 <= found <= 1.03 * concentrated + 1
    assert found > 2 * optimal_hits(query, budget)


@pytest.mark.parametrize("pair", PAIRS)
def test_the_exponential_mechanism_has_the_bounded_range(pair):
    first, second = (laws.exponential(np.array([counts], dtype=float), 0.7)[0] for counts in pair)
    ratios = np.log(first / second)
    assert ratios.max() - ratios.min() == pytest.approx(0.7)
    for order in ORDERS:
        assert (order - 1) * divergence(first, second, order) <= order * (order - 1) * 0.7**2 / 8


def test_the_best_offer_and_the_frontier():
    made = [
        offers.Offer(100, 0.90, 1, "a", ""),
        offers.Offer(80, 0.95, 1, "a", ""),
        offers.Offer(70, 0.94, 1, "a", ""),
        offers.Offer(500, 0.99, 1, "b", ""),
        offers.Offer(0.5, 0.99, 1, "a", ""),
    ]
    assert offers.best(made, "a", 0.94) == made[1]
    assert offers.best(made, "a", 0.96) is None
    assert offers.frontier(made, "a") == made[:2]


@pytest.mark.parametrize("setting", running.SETTINGS, ids=str)
def test_real_sessions_give_what_was_computed(setting):
    random = np.random.default_rng()
    shares = random.dirichlet([6.0, 1.0, 1.0], 300)
    given = votes.Votes(random.multinomial(250, shares).astype(float), random.integers(0, 3, 300))
    guesses = given.counts.argmax(axis=1)
    expected = setting.expected(given, running.EPSILON, guesses)
    sessions = size(40, 400)
    found = [running.session(given, setting, expected, guesses, random)[0] for _ in range(sessions)]
    error = np.std(found, ddof=1) / math.sqrt(sessions)
    assert abs(np.mean(found) - expected.labels) < 7 * error + 0.5
    assert abs(np.mean(found) - 2 * expected.labels) > 7 * error  # and would tell twice as many apart


def test_without_votes_the_benchmark_says_what_it_needs(monkeypatch, tmp_path):
    monkeypatch.delenv("PATE_VOTES", raising=False)
    with pytest.raises(votes.MissingError, match="set PATE_VOTES"):
        votes.load()
    np.save(tmp_path / "votes.npy", np.array([[250, 0], [249, 0]]))
    monkeypatch.setenv("PATE_VOTES", str(tmp_path / "votes.npy"))
    with pytest.raises(votes.MissingError, match="do not sum to 250"):
        votes.load()


def test_without_digits_and_npm_the_benchmark_says_what_it_needs(monkeypatch, tmp_path):
    np.save(tmp_path / "votes.npy", np.array([[250, 0], [249, 1]]))
    monkeypatch.setenv("PATE_VOTES", str(tmp_path / "votes.npy"))
    monkeypatch.delenv("MNIST_DATA", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(votes.MissingError, match="set MNIST_DATA"):
        votes.load()


def test_the_truth_is_read_from_the_digits(monkeypatch, tmp_path):
    np.save(tmp_path / "votes.npy", np.array([[250, 0], [100, 150]]))
    (tmp_path / "t10k-labels-idx1-ubyte").write_bytes(bytes(8) + bytes([1, 0, 1]))
    monkeypatch.setenv("PATE_VOTES", str(tmp_path / "votes.npy"))
    monkeypatch.setenv("MNIST_DATA", str(tmp_path))
    loaded = votes.load()
    assert loaded.truth.tolist() == [1, 0]
    assert loaded.of_truth(loaded.counts).tolist() == [0, 100]


def test_hits_are_those_that_sessions_have():
    for setting in running.SETTINGS:
        meter = "renyi" if setting.mode == "boundary" else "exact"
        budget = tc.Budget(running.EPSILON, offers.DELTA)
        with tc.Session(None, budget, setting.query, meter=meter, targets=[setting.target]) as session:
            query = (running.EPSILON, setting.query)
            counted = {
                "boundary": ours.boundary_hits(*query, setting.caution),
                "twice": ours.twice_hits(*query),
                "prior": ours.prior_hits(*query),
            }
            assert session.meter.hits_left == counted[setting.mode]


def test_every_budget_gets_the_best_offers_of_its_own_hits():
    random = np.random.default_rng()
    counts = random.multinomial(250, random.dirichlet([6.0, 1.0, 1.0], 20)).astype(float)
    given = votes.Votes(counts, counts.argmax(axis=1))
    found: dict[float, list[offers.Offer]] = {1.0: [], 3.157: []}
    ours.add(found, ours.boundary(given, "exponential", 0.1, 2.0, 1), 0.1, 2.0)
    assert found[1.0] == []  # buys no hit
    (offer,) = found[3.157]
    hits = ours.boundary_hits(3.157, 0.1, 2.0)
    assert offer.labels == pytest.approx(ours.boundary(given, "exponential", 0.1, 2.0, hits).labels)
    assert offer.settings == f"ε 0.1, caution 2, {hits} hits"
