"""Elements become random words: a keyed hash of one canonical form, chunk by chunk.

Elements are told apart as a Python set tells them apart: 1, 1.0 and True are one, "1" and b"1" are two others.
None and NaN are missing.

>>> form(1) == form(True) == form(np.float32(1)), form("1") == form(b"1"), form(math.nan) is None
(True, False, True)
>>> [words.shape for words in hashed(["ann", "bob", None, "ann"], key=b"secret")]
[(3, 2)]
"""

from __future__ import annotations

import math
import numbers
import struct
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

KEY_WORDS: Final = 4
"""The length of a key: 256 bits."""

_CHUNK: Final = 1 << 13
_DIGEST_BYTES: Final = 16
_KINDS_OF_ARRAYS: Final = "biufUSO"
_ELEMENTS: Final = "elements are integers, floats, texts or bytes, in one iterable or an array of one dimension"


def hashed(elements: object, key: bytes) -> Iterator[NDArray[np.uint64]]:
    """Yield two words for each element that is not missing; the same ones for equal elements.

    BLAKE2b with a key, its first 128 bits: for whoever does not know the key as good as independent fair bits.

    Raises:
        TypeError: if something is no element. It does not say what: it runs on private data.
    """
    for chunk in _chunks(elements):
        digests = [
            blake2b(each, digest_size=_DIGEST_BYTES, key=key).digest()
            for each in map(form, chunk)
            if each is not None
        ]
        yield np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)


def form(element: object) -> bytes | None:
    """Return the canonical form of an element, another one for each that differs; None if it is missing."""
    if type(element) is int:
        return _integer(element)
    if type(element) is str:
        return b"t" + element.encode("utf-8", "surrogatepass")
    return None if element is None else _rarer(element)


def _rarer(element: object) -> bytes | None:
    if isinstance(element, float | np.floating):
        number = float(element)
        if math.isnan(number):
            return None
        return _integer(int(number)) if number.is_integer() else b"f" + struct.pack("<d", number)
    if isinstance(element, str):
        return b"t" + str.encode(element, "utf-8", "surrogatepass")
    if isinstance(element, bytes):
        return b"b" + element
    if isinstance(element, numbers.Integral | np.bool_):
        return _integer(int(element))
    raise TypeError(_ELEMENTS)


def _integer(number: int) -> bytes:
    return b"n" + number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)


def _chunks(elements: object) -> Iterator[list[object]]:
    if isinstance(elements, np.ndarray):
        if elements.ndim != 1 or elements.dtype.kind not in _KINDS_OF_ARRAYS:
            raise TypeError(_ELEMENTS)
        for start in range(0, len(elements), _CHUNK):
            yield elements[start : start + _CHUNK].tolist()
        return
    if (
        isinstance(elements, str | bytes)
        or not isinstance(elements, Iterable)
        or getattr(elements, "ndim", 1) != 1
    ):
        raise TypeError(_ELEMENTS)
    left = iter(elements)
    while chunk := list(islice(left, _CHUNK)):
        yield chunk
