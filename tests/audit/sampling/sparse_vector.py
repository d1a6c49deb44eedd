"""Sparse vector, right and wrong, after Lyu, Su and Li, "Understanding the Sparse Vector Technique" (VLDB 2017).

Data are the answers of all queries; between neighbours every answer differs by at most 1. The threshold is 0.
⊥ is None, ⊤ is True. A variant comes with its authors' claim, and with answers on two neighbours that expose it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.sizes import size

if TYPE_CHECKING:
    from collections.abc import Callable


def laplace(scale):
    """Return Laplace noise, a difference of two exponentials, on a grid: the low bits are fine."""
    return round(1024 * scale * (random.expovariate(1) - random.expovariate(1))) / 1024


def sweep(answers, threshold_scale, query_scale, cutoff=None, *, refresh=False, value=False, same_noise=False):
    """Run one sparse vector over all answers.

    refresh: draw the threshold's noise anew after each ⊤. value: publish the noisy answer that was compared.
    same_noise: publish the answer with the threshold's noise.
    """
    noise, hits, published = laplace(threshold_scale), 0, []
    for answer in answers:
        noisy = answer + (laplace(query_scale) if query_scale else 0)
        if noisy < noise:
            published.append(None)
            continue
        published.append(noisy if value else answer + noise if same_noise else True)
        hits += 1
        if hits == cutoff:
            break
        if refresh:
            noise = laplace(threshold_scale)
    return tuple(published)


@dataclass
class Variant:
    """A sweep with its authors' claim, answers on two neighbours, and how many runs expose it if it is wrong."""

    name: str
    epsilon: float
    run: Callable
    data: tuple[list, list]
    runs: int

    def __str__(self):
        return self.name


def algorithm_1(answers, epsilon, cutoff):
    """Theirs, right: half the ε for the threshold, half for the queries, whose noise grows with the cutoff."""
    return sweep(answers, 2 / epsilon, 4 * cutoff / epsilon, cutoff)


def algorithm_2(answers, epsilon, cutoff):
    """Dwork and Roth's book, right: a fresh threshold after each ⊤, all noise scaled with the cutoff."""
    return sweep(answers, 2 * cutoff / epsilon, 4 * cutoff / epsilon, cutoff, refresh=True)


def algorithm_3(answers, epsilon, cutoff):
    """Roth's lecture notes, wrong: the noisy answer that was compared is published, and the threshold is below."""
    return sweep(answers, 2 / epsilon, 2 * cutoff / epsilon, cutoff, value=True)


def algorithm_4(answers, epsilon, cutoff):
    """Lee and Clifton, wrong: the queries' noise does not grow with the cutoff."""
    return sweep(answers, 4 / epsilon, 4 / (3 * epsilon), cutoff)


def algorithm_5(answers, epsilon):
    """Stoddard, Chen and Machanavajjhala, wrong: no noise on the queries, no cutoff."""
    return sweep(answers, 2 / epsilon, 0)


def algorithm_6(answers, epsilon):
    """Chen, Xiao, Zhang and Xu, wrong: no cutoff."""
    return sweep(answers, 2 / epsilon, 2 / epsilon)


def gptt(answers, epsilon):
    """Generalised private threshold testing, wrong: any split of ε, no cutoff."""
    return sweep(answers, 4 / epsilon, 4 / (3 * epsilon))


def unscaled(answers, epsilon, cutoff):
    """Algorithm 2 without its scaling, wrong: a fresh threshold for each ⊤ at the price of one."""
    return sweep(answers, 2 / epsilon, 4 / epsilon, cutoff, refresh=True)


def same_noise(answers, epsilon, cutoff):
    """Algorithm 1, wrong: the noise of the threshold is used again for the answers that are published."""
    return sweep(answers, 2 / epsilon, 4 * cutoff / epsilon, cutoff, same_noise=True)


ONE_IS_HIGHER = [0] * 5 + [1], [1] * 5 + [0]
HALVES = [0] * 8 + [1] * 8, [1] * 8 + [0] * 8
AROUND = [0] * 16, [1] * 8 + [-1] * 8
ALL_RISE = [0] * 48, [1] * 48

WRONG = [
    Variant("Alg. 3", 2.0, lambda data: algorithm_3(data, 2.0, 1), ONE_IS_HIGHER, size(24_000, 80_000)),
    Variant("Alg. 4", 2.0, lambda data: algorithm_4(data, 2.0, 8), HALVES, size(3_000, 16_000)),
    Variant("Alg. 5", 1.0, lambda data: algorithm_5(data, 1.0), ([0, 1], [1, 0]), size(1_000, 8_000)),
    Variant("Alg. 6", 2.0, lambda data: algorithm_6(data, 2.0), AROUND, size(3_000, 16_000)),
    Variant("GPTT", 2.0, lambda data: gptt(data, 2.0), AROUND, size(3_000, 16_000)),
    Variant("Alg. 2 unscaled", 2.0, lambda data: unscaled(data, 2.0, 48), ALL_RISE, size(2_500, 10_000)),
    Variant("noise reused", 1.0, lambda data: same_noise(data, 1.0, 2), ([5, 5], [6, 5]), size(1_000, 8_000)),
]

ENOUGH = size(1_500, 12_000)
RIGHT = [
    Variant("Alg. 1, c = 1", 1.0, lambda data: algorithm_1(data, 1.0, 1), ONE_IS_HIGHER, ENOUGH),
    Variant("Alg. 1, c = 8", 2.0, lambda data: algorithm_1(data, 2.0, 8), HALVES, ENOUGH),
    Variant("Alg. 1, around", 2.0, lambda data: algorithm_1(data, 2.0, 2), AROUND, ENOUGH),
    Variant("Alg. 2, c = 8", 2.0, lambda data: algorithm_2(data, 2.0, 8), HALVES, ENOUGH),
]
