"""Randomness: OS entropy, exact samplers and their laws. The source of bits is always an argument."""

from targetcharge.randomness.coins import (
    ExponentialCoins,
    bernoulli,
    bernoulli_array,
    bernoulli_exp,
    bernoulli_exp_array,
)
from targetcharge.randomness.entropy import Entropy, SystemEntropy, below, below_array
from targetcharge.randomness.gumbel import discrete_gumbel, discrete_gumbel_array
from targetcharge.randomness.laplace import (
    Rate,
    discrete_laplace,
    discrete_laplace_array,
    geometric,
    geometric_array,
)
from targetcharge.randomness.laws import GeometricLaw, GumbelLaw, IntegerLaw, LaplaceLaw

__all__ = [
    "Entropy",
    "ExponentialCoins",
    "GeometricLaw",
    "GumbelLaw",
    "IntegerLaw",
    "LaplaceLaw",
    "Rate",
    "SystemEntropy",
    "below",
    "below_array",
    "bernoulli",
    "bernoulli_array",
    "bernoulli_exp",
    "bernoulli_exp_array",
    "discrete_gumbel",
    "discrete_gumbel_array",
    "discrete_laplace",
    "discrete_laplace_array",
    "geometric",
    "geometric_array",
]
