"""Choosing a class by votes: mechanisms for whole tables of counts, one file each.

Each is ε-DP where a changed record moves two counts of a row by one: the scores have sensitivity 1 and do not all
move the same way, so the rate of decay is ε/2 (docs/theory.md#votes).

>>> sorted(CHOICES)
['exponential', 'noisy_max', 'permute_and_flip']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.learning.choosing.exponential import Exponential
from targetcharge.learning.choosing.noisy_max import NoisyMax
from targetcharge.learning.choosing.permute_and_flip import PermuteAndFlip

if TYPE_CHECKING:
    from targetcharge.learning.choosing.choice import Choice

CHOICES: Final[dict[str, type[Choice]]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": Exponential,
    "noisy_max": NoisyMax,
}

__all__ = ["CHOICES"]
