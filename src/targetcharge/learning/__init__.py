"""Learning: private labels for public examples, and models that are released only if they are good.

`label` and `recall` need nothing but the core; `PrivateLabeler` needs the extra `learning`.

>>> from targetcharge import learning
>>> learning.LOW
LOW
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from targetcharge.learning.labelling import label
from targetcharge.learning.labels import Labels, recall
from targetcharge.outcomes import LOW

if TYPE_CHECKING:
    from targetcharge.learning.labeler import PrivateLabeler

__all__ = ["LOW", "Labels", "PrivateLabeler", "label", "recall"]


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
