"""What is drawn follows the stated law, with the real hash; and the estimate is as good as it says."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency, chisquare
from tests.goodness import BufferedEntropy, assert_only, draws_to_tell, pvalue
from tests.mechanisms.maxima_samples import marginal, sample

from targetcharge.mechanisms import distinct_count
from targetcharge.mechanisms.distinct import DistinctEstimate, MaximaLaw

BUCKETS = 16


def itself(data):
    return data


class OneKey(BufferedEntropy):
    """A broken source: the key, and only the key, is always the same."""

    def words(self, count):
        return np.arange(4, dtype=np.uint64) if count == 4 else super().words(count)


@pytest.fixture
def two_buckets(monkeypatch):
    """Let an algorithm publish the levels of its first two buckets."""
    monkeypatch.setattr(
        DistinctEstimate, "most_likely", lambda _, sketch: int(sketch[0]) * 1000 + int(sketch[1]), raising=True
    )


def runs(epsilon, data, entropy, count):
    algorithm = distinct_count(itself, epsilon, buckets=BUCKETS)
    return np.array([divmod(algorithm.run(data, entropy), 1000) for _ in range(count)])


# The law of a bucket.


@pytest.mark.usefixtures("two_buckets")
@pytest.mark.parametrize(("epsilon", "elements"), [(0.5, 0), (0.5, 50), (0.2, 100), (2.0, 30)])
def test_a_buckets_maximum_follows_the_law_and_no_other(epsilon, elements):
    law = MaximaLaw.of(Fraction(epsilon))
    right = marginal(law, BUCKETS, elements)
    wrong = marginal(law, BUCKETS, elements, law.phantoms + 1), marginal(law, BUCKETS, elements + 4 * BUCKETS)
    count = draws_to_tell(right, *wrong)
    drawn = runs(epsilon, [f"element {number}" for number in range(elements)], BufferedEntropy(7), count)
    for bucket in range(2):
        assert_only(Counter(drawn[:, bucket].tolist()), right, *wrong)


@pytest.mark.usefixtures("two_buckets")
def test_no_key_serves_two_runs():
    """Runs one after another on the same data are independent; with one key for all they are not."""
    data = range(160)
    independent, dependent = (runs(2.0, data, entropy, 4_000)[:, 0] for entropy in (BufferedEntropy(3), OneKey(3)))
    assert len(set(dependent.tolist())) < len(set(independent.tolist()))
    median = np.median(independent)
    pairs = (independent > median).reshape(-1, 2)
    table = [[np.sum((pairs == (a, b)).all(axis=1)) for a in (False, True)] for b in (False, True)]
    assert chi2_contingency(table).pvalue > 1e-9
    law = MaximaLaw.of(Fraction(2))
    assert pvalue(Counter(independent.tolist()), marginal(law, BUCKETS, 160)) > 1e-9
    assert pvalue(Counter(dependent.tolist()), marginal(law, BUCKETS, 160)) < 1e-9


def test_a_words_level_is_told_exactly():
    law = MaximaLaw.of(Fraction(1, 2))
    assert all(low > high for low, high in zip(law.tails, law.tails[1:], strict=False))
    for level, tail in enumerate(law.tails):
        assert law.levels(np.array([tail, tail - 1], np.uint64)).tolist() == [level, level + 1]
    assert law.levels(np.array([0, 2**64 - 1], np.uint64)).tolist() == [len(law.tails), 0]


@pytest.mark.parametrize("phantoms", [1, 2, 4095, 4096, 4097, 10_000])
def test_every_phantom_takes_a_word_of_its_own(phantoms):
    class Counting(BufferedEntropy):
        taken = 0

        def words(self, count):
            self.taken += count
            return super().words(count)

    entropy, law = Counting(1), MaximaLaw(phantoms, (2**63, 2**50))
    sketch = law.only_phantoms(16, entropy)
    assert entropy.taken == 16 * phantoms
    again = BufferedEntropy(1).words(entropy.taken).reshape(-1, 16)
    assert sketch.tolist() == law.levels(again.min(axis=0)).tolist()


def test_bucket_and_level_come_from_words_of_their_own(monkeypatch):
    """The proof takes them as independent; a bucket that is the rest of the level's own word is not quite."""
    put = []
    monkeypatch.setattr(MaximaLaw, "put", lambda _law, _sketch, *places: put.append(places))
    distinct_count(itself, 0.5, buckets=1000).run(range(5_000), BufferedEntropy(4))
    buckets, words = (np.concatenate(parts) for parts in zip(*put, strict=True))
    assert len(set(words.tolist())) == 5_000
    assert np.mean(words % np.uint64(1000) == buckets) < 0.01
    assert chisquare(np.bincount(buckets % 100, minlength=100)).pvalue > 1e-9
    assert (buckets.min() < 20, buckets.max() > 980, len(set(buckets.tolist())) > 900) == (True, True, True)


# What an element is.


@pytest.mark.parametrize("data", [range(500), [f"{number}" for number in range(500)]])
def test_order_and_repetition_do_not_matter(data):
    algorithm = distinct_count(itself, 0.5)
    first = algorithm.run(data, BufferedEntropy(5))
    assert algorithm.run([*reversed(data), *data, None, *data], BufferedEntropy(5)) == first
    assert algorithm.run(iter(data), BufferedEntropy(5)) == first
    assert algorithm.run(np.array(data), BufferedEntropy(5)) == first


# The estimate.

SIZES = [(0.1, 64, 1300), (0.1, 1024, 0), (0.1, 1024, 20_000), (0.5, 256, 500)]
SIZES += [(1.0, 1024, 10**6), (1.0, 4096, 10**9)]


@pytest.mark.parametrize(("epsilon", "buckets", "elements"), SIZES)
def test_bias_error_and_coverage(epsilon, buckets, elements):
    law, generator = MaximaLaw.of(Fraction(epsilon)), np.random.default_rng(elements)
    estimate = DistinctEstimate.of(law, buckets)
    found = np.array([estimate.most_likely(sample(law, buckets, elements, generator)) for _ in range(1_000)])
    error, deviation = found - elements, estimate.deviation(elements)
    if elements:  # at 0 it cannot be too low
        assert abs(error.mean()) < deviation * (1 / np.sqrt(buckets) + 6.2 / np.sqrt(len(found)))
        assert 0.8 < error.std() / deviation < 1.2
    else:
        assert 0.2 < error.mean() / deviation < 0.7
        assert np.mean(found == 0) > 0.3
    margins = np.array([estimate.margin(int(each)) for each in found])
    assert binom.cdf(np.sum(abs(error) <= margins), len(found), 0.95) > 1e-9
    if elements:
        assert binom.cdf(np.sum(abs(error) <= 0.4 * margins), len(found), 0.95) < 1e-9


def test_the_estimate_is_the_most_likely_number():
    law, buckets = MaximaLaw.of(Fraction(1, 2)), 64
    estimate, generator = DistinctEstimate.of(law, buckets), np.random.default_rng(2)
    for elements in (0, 10, 300, 4_000):
        sketch = sample(law, buckets, elements, generator)

        def likelihood(number, sketch=sketch):
            masses = marginal(law, buckets, number)
            return sum(np.log(masses[int(level)]) for level in sketch)

        found = estimate.most_likely(sketch)
        best = likelihood(found)
        assert all(likelihood(other) <= best for other in range(max(0, found - 30), found + 30))
        assert likelihood(2 * found + 50) < best
        assert found == 0 or likelihood(found // 2 - 1) < best


def test_extreme_sketches_have_finite_estimates():
    law = MaximaLaw.of(Fraction(1, 2))
    estimate = DistinctEstimate.of(law, 16)
    assert estimate.most_likely(np.zeros(16, np.uint8)) == 0
    highest = estimate.most_likely(np.full(16, len(law.tails), np.uint8))
    assert highest == 2**53
    assert 0 < estimate.margin(highest) < 2**60


@pytest.mark.parametrize("elements", [0, 3_000, 40_000])
def test_the_whole_algorithm_on_real_elements(elements):
    """A few runs with the real hash: most intervals hold the truth, and outcomes differ."""
    algorithm = distinct_count(itself, 0.5, buckets=512)
    entropy = BufferedEntropy(elements)
    outcomes = [algorithm.run(range(elements), entropy) for _ in range(10)]
    intervals = [algorithm.accuracy.interval(outcome) for outcome in outcomes]
    assert sum(low <= elements <= high for low, high in intervals) >= 5
    assert len(set(outcomes)) > 1
    assert all(0 <= low <= outcome <= high for outcome, (low, high) in zip(outcomes, intervals, strict=True))
