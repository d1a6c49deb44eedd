"""Keyed hashes of items: one canonical form for each value, then BLAKE2b with a secret key.

Items are told apart as a Python set tells them apart: 1, 1.0 and True are one, "1" and b"1" are two others. None
and NaN are missing. (Outcomes are told apart by their looks, so 1 is not True; people by what files write, so "1"
is 1: those are other forms, of `outcomes` and `identity`.)

>>> canonical(1) == canonical(True) == canonical(np.float32(1)), canonical("1") == canonical(b"1")
(True, False)
>>> keyed = KeyedHash(b"secret")
>>> [words.shape for words in keyed.words(["ann", "bob", None, "ann"])]
[(3, 2)]
>>> keyed.number(1.0) == keyed.number(1) < 2**128
True
"""

from __future__ import annotations

import math
import numbers
import struct
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from targetcharge.randomness import Entropy

_KEY_WORDS: Final = 4
"""The length of a key: 256 bits."""

_CHUNK: Final = 1 << 13
_DIGEST_BYTES: Final = 16
_KINDS_OF_ARRAYS: Final = "biufUSO"
_ELEMENTS: Final = "elements are integers, floats, texts or bytes, in one iterable or an array of one dimension"


@final
class KeyedHash:
    """BLAKE2b with a key, its first 128 bits: as good as independent fair bits for whoever lacks the key."""

    def __init__(self, key: bytes) -> None:
        """Hash with a key of up to 64 bytes."""
        self._key = key

    @classmethod
    def draw(cls, entropy: Entropy) -> KeyedHash:
        """Return a hash with a fresh key."""
        return cls(entropy.words(_KEY_WORDS).tobytes())

    def number(self, item: object) -> int:
        """Return a number below 2^128, the same one for equal items.

        Raises:
            TypeError: if it is missing, or no integer, float, text or bytes. It does not say what it is.
        """
        form = canonical(item)
        if form is None:
            raise TypeError(_ELEMENTS)
        return int.from_bytes(self._digest(form))

    def words(self, items: object) -> Iterator[NDArray[np.uint64]]:
        """Yield two words for each item that is not missing, the same ones for equal items: chunks of rows.

        Raises:
            TypeError: if something is no item. It does not say what: it runs on private data.
        """
        for chunk in _chunks(items):
            digests = [self._digest(form) for form in map(canonical, chunk) if form is not None]
            yield np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)

    def _digest(self, form: bytes) -> bytes:
        return blake2b(form, digest_size=_DIGEST_BYTES, key=self._key).digest()


def canonical(item: object) -> bytes | None:
    """Return the canonical form of an item, another one for each that differs; None if it is missing."""
    if type(item) is int:
        return _integer(item)
    if type(item) is str:
        return b"t" + item.encode("utf-8", "surrogatepass")
    return None if item is None else _rarer(item)


def _rarer(item: object) -> bytes | None:
    if isinstance(item, float | np.floating):
        double = float(item)
        if math.isnan(double):
            return None
        return _integer(int(double)) if double.is_integer() else b"f" + struct.pack("<d", double)
    if isinstance(item, str):
        return b"t" + str.encode(item, "utf-8", "surrogatepass")
    if isinstance(item, bytes):
        return b"b" + item
    if isinstance(item, numbers.Integral | np.bool_):
        return _integer(int(item))
    raise TypeError(_ELEMENTS)


def _integer(value: int) -> bytes:
    return b"n" + value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


def _chunks(items: object) -> Iterator[list[object]]:
    if isinstance(items, np.ndarray):
        if items.ndim != 1 or items.dtype.kind not in _KINDS_OF_ARRAYS:
            raise TypeError(_ELEMENTS)
        for start in range(0, len(items), _CHUNK):
            yield items[start : start + _CHUNK].tolist()
        return
    if isinstance(items, str | bytes) or not isinstance(items, Iterable) or getattr(items, "ndim", 1) != 1:
        raise TypeError(_ELEMENTS)
    left = iter(items)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk
