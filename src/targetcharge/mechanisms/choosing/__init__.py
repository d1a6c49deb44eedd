"""Choosing one of several by their counts, for whole tables of counts: mechanisms, one file each.

Each is ε-DP where a changed unit moves each count of a row by at most one, some up and some down, as one vote of
many does: the scores have sensitivity 1 and are not monotone, so the rate of decay is ε/2
(docs/theory/labels.md#votes).

>>> sorted(CHOICES)
['exponential', 'noisy_max', 'permute_and_flip']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from targetcharge.mechanisms.choosing.exponential import Exponential
from targetcharge.mechanisms.choosing.noisy_max import NoisyMax
from targetcharge.mechanisms.choosing.permute_and_flip import PermuteAndFlip

if TYPE_CHECKING:
    from targetcharge.mechanisms.choosing.choice import Choice

CHOICES: Final[dict[str, type[Choice]]] = {
    "permute_and_flip": PermuteAndFlip,
    "exponential": Exponential,
    "noisy_max": NoisyMax,
}

__all__ = ["CHOICES"]
