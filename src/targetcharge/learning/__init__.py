"""Learning: private labels for public examples, and models that are released only if they are good.

Everything but `PrivateLabeler` needs the core only; that needs the extra `learning`.

>>> from targetcharge import learning
>>> learning.LOW
LOW
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.learning.bayes import NaiveBayes, naive_bayes, quality
from targetcharge.learning.cells import Codes, Edges
from targetcharge.learning.labels import Labels, label, recall
from targetcharge.outcomes import LOW

if TYPE_CHECKING:
    from targetcharge.learning.labeler import PrivateLabeler

__all__ = [
    "LOW",
    "Codes",
    "Edges",
    "Labels",
    "NaiveBayes",
    "PrivateLabeler",
    "label",
    "naive_bayes",
    "quality",
    "recall",
]


def __getattr__(name: str) -> object:
    """Import what needs scikit-learn when it is asked for."""
    if name != "PrivateLabeler":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    try:
        from targetcharge.learning.labeler import PrivateLabeler  # noqa: PLC0415 - the extra may be missing
    except ModuleNotFoundError as error:
        msg = f"PrivateLabeler needs {error.name}: pip install 'targetcharge[learning]'"
        raise ModuleNotFoundError(msg, name=error.name) from None
    return PrivateLabeler
