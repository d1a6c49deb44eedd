"""Items of a stream as numbers below 2^61 - 1, for sketches that hash by polynomials.

Integers stand for themselves, text and bytes for a keyed hash: with a secret key nobody can look for two texts
with the same number. One stream has one kind of items, or else a text could be made to look like an integer.

>>> from targetcharge.randomness import SystemEntropy
>>> numbers = Numbers(SystemEntropy())
>>> numbers(range(3)).tolist()
[0, 1, 2]
>>> numbers(["a"])
Traceback (most recent call last):
targetcharge.errors.InvalidParameter: items is 'a'; it must be an integer, as the first item of this stream is
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge.errors import InvalidParameter
from targetcharge.streaming.hashing import PRIME

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy
    from targetcharge.streaming.copies import Items

_LARGEST: Final = int(PRIME) - 1
_KEY_WORDS: Final = 4
_INTEGER, _TEXT = "an integer", "text or bytes"


@final
class Numbers:
    """From the items of one stream to numbers."""

    def __init__(self, entropy: Entropy) -> None:
        """Draw a key."""
        self._key = entropy.words(_KEY_WORDS).tobytes()
        self._kind: str | None = None

    def __call__(self, items: Items) -> NDArray[np.uint64]:
        """Return a number for each item.

        Raises:
            InvalidParameter: if one is neither an integer from 0 to 2^61 - 2, nor text, nor bytes; or is not of
                the same kind as the first of the stream.
        """
        if isinstance(items, np.ndarray) and items.dtype.kind in "iu" and self._kind != _TEXT:
            return self._array(items)
        before = self._kind
        try:
            return np.array([self._number(item) for item in items], dtype=np.uint64)
        except InvalidParameter:  # none is taken in, so the next may be the first
            self._kind = before
            raise

    def _array(self, items: NDArray[Any]) -> NDArray[np.uint64]:
        wrong = items[(items < 0) | (items > _LARGEST)]
        if len(wrong):
            raise self._unfit(wrong[0].item())
        if len(items):
            self._kind = _INTEGER
        return items.astype(np.uint64)

    def _number(self, item: object) -> int:
        if isinstance(item, str | bytes):
            if self._kind == _INTEGER:
                raise self._unfit(item)
            self._kind = _TEXT
            told = b"t" + item.encode(errors="surrogatepass") if isinstance(item, str) else b"b" + item
            return int.from_bytes(blake2b(told, key=self._key, digest_size=16).digest()) % int(PRIME)
        if isinstance(item, bool) or not isinstance(item, int | np.integer) or self._kind == _TEXT:
            raise self._unfit(item)
        number = int(item)
        if not 0 <= number <= _LARGEST:
            raise self._unfit(item)
        self._kind = _INTEGER
        return number

    def _unfit(self, item: object) -> InvalidParameter:
        if self._kind is None:
            expected = f"{_INTEGER} from 0 to 2^61 - 2, {_TEXT}"
        elif self._kind == _INTEGER and isinstance(item, int | np.integer):
            expected = f"{_INTEGER} from 0 to 2^61 - 2"
        else:
            expected = f"{self._kind}, as the first item of this stream is"
        return InvalidParameter("items", item.item() if isinstance(item, np.generic) else item, expected)
