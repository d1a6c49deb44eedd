"""Randomness: OS entropy, exact samplers and their laws. The source of bits is always an argument."""

from targetcharge.randomness.coins import (
    ExponentialCoins,
    bernoulli,
    bernoulli_array,
    bernoulli_exp,
    bernoulli_exp_array,
)
from targetcharge.randomness.entropy import Entropy, SystemEntropy, below, below_array
from targetcharge.randomness.gaussian import discrete_gaussian, discrete_gaussian_array
from targetcharge.randomness.gumbel import discrete_gumbel, discrete_gumbel_array
from targetcharge.randomness.laplace import (
    Rate,
    discrete_laplace,
    discrete_laplace_array,
    geometric,
    geometric_array,
)
from targetcharge.randomness.laws import GaussianLaw, GeometricLaw, GumbelLaw, IntegerLaw, LaplaceLaw
from targetcharge.randomness.weighted import exponential_choice

__all__ = [
    "Entropy",
    "ExponentialCoins",
    "GaussianLaw",
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
    "discrete_gaussian",
    "discrete_gaussian_array",
    "discrete_gumbel",
    "discrete_gumbel_array",
    "discrete_laplace",
    "discrete_laplace_array",
    "exponential_choice",
    "geometric",
    "geometric_array",
]
