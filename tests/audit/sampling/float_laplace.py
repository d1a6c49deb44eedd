"""Laplace noise as code found in the wild draws it in floating point, and cut off; and the same on a safe grid."""

import math
import random

import numpy as np
from tests.audit.sampling.shared_generator import shared_laplace


def by_logarithm(scale):
    uniform = random.random() - 0.5
    return -scale * math.copysign(1, uniform) * math.log(max(1 - 2 * abs(uniform), 2**-60))


def by_sign(scale):
    return random.choice((-1, 1)) * random.expovariate(1 / scale)


def by_difference(scale):
    return random.expovariate(1 / scale) - random.expovariate(1 / scale)


def by_single_precision(scale):
    uniform = np.float32(random.randrange(1, 2**24)) / np.float32(2**24)
    return np.float32(scale) * np.float32(random.choice((-1, 1))) * np.log(uniform)


def by_numpy(scale):
    return shared_laplace(scale=scale)


def clamped(scale, cut):
    return max(-cut * scale, min(cut * scale, by_logarithm(scale)))


def drawn_again(scale, cut):
    while abs(noise := by_logarithm(scale)) > cut * scale:
        pass
    return noise


def on_a_grid(value):
    """Return a number on a grid so coarse that all of its points can be reached from every input."""
    return round(value * 256) / 256
