"""Randomness: OS entropy and exact samplers. The source of bits is always an argument."""

from targetcharge.randomness.bernoulli import bernoulli, bernoulli_exp
from targetcharge.randomness.entropy import Entropy, SystemEntropy, below
from targetcharge.randomness.laplace import Rate, discrete_laplace, discrete_laplace_array, geometric

__all__ = [
    "Entropy",
    "Rate",
    "SystemEntropy",
    "below",
    "bernoulli",
    "bernoulli_exp",
    "discrete_laplace",
    "discrete_laplace_array",
    "geometric",
]
