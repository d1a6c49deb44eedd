"""What aggregators draw follows the law of small_votes, and so does what they say about it."""

from collections import Counter

import numpy as np
import pytest
from tests.goodness import DRAWS, BufferedEntropy, assert_only, draws_to_tell, pvalue
from tests.learning.small_votes import LAWS, noisy_max, published, tables, with_test

from targetcharge.learning.votes import MODES, Aggregator, Agreement, VoteDrawing, Votes, target_of
from targetcharge.mechanisms import noisy_max as scalar
from targetcharge.mechanisms.choice import CHOICES

TWO = ("exponential", "permute_and_flip")


def aggregator(mechanism, epsilon, test=None):
    if test is None:
        return Aggregator(CHOICES[mechanism](epsilon))
    threshold, share = test
    return Aggregator(CHOICES[mechanism](epsilon * (1 - share)), Agreement(threshold, epsilon * share))


def law_of(mechanism, epsilon, row, test=None):
    if test is None:
        return LAWS[mechanism](row, epsilon)
    return with_test(LAWS[mechanism](row, epsilon * (1 - test[1])), row, test[0], epsilon * test[1])


@pytest.mark.parametrize("mechanism", TWO)
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("test", [None, (3, 0.5), (5, 0.25)])
def test_the_rest_is_all_but_the_likeliest(mechanism, epsilon, test):
    for teachers, classes in ((1, 2), (6, 2), (5, 3), (4, 5)):
        rows = tables(teachers, classes)
        found = aggregator(mechanism, epsilon, test).rest(np.array(rows))
        expected = [sum(sorted(law_of(mechanism, epsilon, row, test))[:-1]) for row in rows]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("mechanism", TWO)
def test_a_small_rest_keeps_its_digits(mechanism):
    """e^{-125} and less, where 1 - peak would be 0."""
    found = aggregator(mechanism, 1.0).rest(np.array([[250, 0, 0], [240, 9, 1]]))
    shares = {
        "exponential": 1.0,
        "permute_and_flip": 0.5,
    }  # of two candidates the better is first in half the orders
    assert found[0] == pytest.approx(2 * shares[mechanism] * np.exp(-125), rel=1e-8)
    assert found[1] == pytest.approx(shares[mechanism] * (np.exp(-115.5) + np.exp(-119.5)), rel=1e-8)


def test_noisy_max_cannot_tell():
    assert aggregator("noisy_max", 1.0).rest(np.array([[3, 1]])) is None


SAMPLED = [
    *[(mechanism, row, None) for mechanism in TWO for row in [(6, 2, 0), (4, 4, 0), (3, 3, 2)]],
    *[(mechanism, (5, 2, 1), (5, 0.5)) for mechanism in TWO],
    ("noisy_max", (5, 3), None),
]


@pytest.mark.parametrize(("mechanism", "row", "test"), SAMPLED)
@pytest.mark.parametrize("epsilon", [0.6])
def test_draws_follow_the_law_and_no_other_scale(mechanism, row, test, epsilon):
    law, *wrong = (dict(enumerate(law_of(mechanism, epsilon * by, row, test))) for by in (1, 1.05, 1 / 1.05))
    if row == (3, 3, 2):  # nearly alike: it would take millions
        wrong = []
    votes = np.tile(row, (draws_to_tell(law, *wrong) if wrong else DRAWS, 1))
    counts = Counter(aggregator(mechanism, epsilon, test).draw(votes, BufferedEntropy(1)).tolist())
    assert_only(counts, law, *wrong)


def test_rows_are_drawn_independently_of_each_other():
    """A mixed table: each row has its own law, whatever stands beside it."""
    rows = [(6, 2, 0), (0, 8, 0), (3, 3, 2), (1, 1, 6)]
    votes = np.tile(rows, (DRAWS, 1))
    for mechanism in TWO:
        drawn = aggregator(mechanism, 0.6).draw(votes, BufferedEntropy(2)).reshape(-1, len(rows))
        for place, row in enumerate(rows):
            counts = Counter(drawn[:, place].tolist())
            assert pvalue(counts, dict(enumerate(law_of(mechanism, 0.6, row)))) > 1e-9
        pairs = Counter(zip(drawn[:, 0].tolist(), drawn[:, 2].tolist(), strict=True))
        first, second = law_of(mechanism, 0.6, rows[0]), law_of(mechanism, 0.6, rows[2])
        both = {(i, j): p * q for i, p in enumerate(first) for j, q in enumerate(second)}
        assert pvalue(pairs, both) > 1e-9


@pytest.mark.parametrize(("mode", "caution"), [*((mode, 2.0) for mode in MODES), ("boundary", 1.0)])
@pytest.mark.parametrize("mechanism", TWO)
@pytest.mark.parametrize("test", [None, (5, 0.5)])
def test_modes_publish_their_law_and_hit_where_it_says(mode, caution, mechanism, test):
    row, epsilon, prior = (5, 2, 1), 0.6, 1
    law = law_of(mechanism, epsilon, row, test)
    names = [*range(len(law)), 4]  # the three classes, low, too close to call
    expected = dict(zip(names, published(law, mode, prior, caution), strict=False))
    fits, wrong = {code: mass for code, (mass, _) in expected.items()}, []
    if mode in {"boundary", "twice"}:
        wrong = [with_mark(fits, fits[4] * factor) for factor in (1.05, 1 / 1.05)]
    count = draws_to_tell(fits, *wrong) if wrong else DRAWS
    votes, priors = Votes(np.tile(row, (count, 1)), sum(row)), np.full(count, prior, dtype=np.intp)
    drawing = VoteDrawing(votes, aggregator(mechanism, epsilon, test), target_of(mode, caution), priors)
    codes, hits = drawing.draw(None, BufferedEntropy(3), 0, count)
    counts = Counter(codes.tolist())
    assert set(counts) <= set(expected)
    assert_only(counts, fits, *wrong)
    assert hits.tolist() == [expected[code][1] for code in codes.tolist()]


def with_mark(law, mark):
    """Return a law with another probability of the mark, and the rest in proportion."""
    return {code: mark if code == 4 else mass * (1 - mark) / (1 - law[4]) for code, mass in law.items()}


def test_equal_counts_are_equally_likely():
    drawn = CHOICES["permute_and_flip"](1.0).choose_rows(np.tile((4, 0, 4, 4), (DRAWS, 1)), BufferedEntropy(5))
    counts = Counter(code for code in drawn.tolist() if code != 1)
    assert pvalue(counts, {0: 1 / 3, 2: 1 / 3, 3: 1 / 3}) > 1e-9
    for wrong in ({0: 0.35, 2: 0.325, 3: 0.325}, {0: 0.325, 2: 0.325, 3: 0.35}):
        assert pvalue(counts, wrong) < 1e-9


def test_noisy_max_of_three_against_the_scalar_mechanism():
    row = (6, 4, 4)
    oracle = scalar(lambda data: data, 0.6, 3).oracle
    law = {index: oracle.probability(row, index) for index in range(3)}
    votes = np.tile(row, (2 * DRAWS, 1))
    counts = Counter(aggregator("noisy_max", 0.6).draw(votes, BufferedEntropy(6)).tolist())
    assert pvalue(counts, law) > 1e-9
    assert noisy_max((6, 4), 0.6) == pytest.approx(
        [scalar(lambda data: data, 0.6, 2).oracle.probability((6, 4), index) for index in range(2)], abs=1e-9
    )
