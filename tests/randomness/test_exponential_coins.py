import math
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import binomtest
from tests.randomness.sources import SeededEntropy

from targetcharge.errors import InvalidParameter
from targetcharge.randomness import ExponentialCoins
from targetcharge.randomness.coins import digits


class Scripted:
    """Gives the words it was told to."""

    def __init__(self, *words):
        self.left = list(words)

    def word(self):
        return self.left.pop(0)

    def words(self, count):
        return np.array([self.word() for _ in range(count)], dtype=np.uint64)


@pytest.mark.parametrize(
    "exponent", [Fraction(1, 10), Fraction(1), Fraction(44), Fraction(2**53 - 1, 2**53), Fraction(5000)]
)
@pytest.mark.parametrize("count", [1, 2, 5])
def test_digits_are_those_of_mpmath(exponent, count):
    with mpmath.workdps(300 + int(exponent)):
        truth = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        assert digits(exponent, count) == int(mpmath.floor(truth * mpmath.mpf(2) ** (64 * count)))


@pytest.mark.parametrize("power", [1, 7, 500])
def test_the_digits_of_the_probability_decide(power):
    coins, powers = ExponentialCoins(1, 10), np.array([power])
    first, second = divmod(digits(Fraction(power, 10), 2), 2**64)
    third = digits(Fraction(power, 10), 3) % 2**64
    for words, outcome in (
        ([first + 1], False),
        ([first, second + 1], False),
        ([first, second, third + 1], False),
        ([first, second, third - 1], True),
        ([first, second - 1], True),
    ):
        source = Scripted(*words)
        assert coins.draw(powers, source).tolist() == [outcome]
        assert not source.left
    assert first == 0 or coins.draw(powers, Scripted(first - 1)).tolist() == [True]


@pytest.mark.parametrize("power", [1, 3, 20, 9_000])
def test_the_rate_and_no_other(power):
    coins = ExponentialCoins(3, 100 if power < 9_000 else 50_000)
    truth = math.exp(-power * (3 / (100 if power < 9_000 else 50_000)))
    heads = int(coins.draw(np.full((300, 1_000), power), SeededEntropy(1)).sum())
    assert binomtest(heads, 300_000, truth).pvalue > 1e-9
    assert binomtest(heads, 300_000, truth * 0.95).pvalue < 1e-9


def test_power_zero_is_certain_and_shapes_are_kept():
    drawn = ExponentialCoins(1, 3).draw(np.array([[0, 400], [400, 0]]), SeededEntropy(2))
    assert drawn.tolist() == [[True, False], [False, True]]
    assert ExponentialCoins(1, 3).draw(np.zeros((0, 4), dtype=np.int64), SeededEntropy(2)).shape == (0, 4)


def test_threads_extend_the_table_by_the_same_digits():
    coins, start = ExponentialCoins(1, 10), threading.Barrier(8)

    def draw(power):
        start.wait()
        coins.draw(np.array([power]), SeededEntropy(power))

    threads = [threading.Thread(target=draw, args=(600 + 10 * place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    known = coins._first.tolist()
    assert known[1:] == [digits(Fraction(power, 10), 1) for power in range(1, len(known))]


@pytest.mark.parametrize("rate", [(0, 1), (1, 0), (-1, 2), (1, 2**53 + 1), (3, 5 * 2**53)])
def test_rates_that_would_overflow_are_refused(rate):
    with pytest.raises(InvalidParameter, match="a denominator up to 2\\^53"):
        ExponentialCoins(*rate)
