"""Sketches of Apache DataSketches as copies of a robust stream: distinct counts by HLL, CPC and theta.

They need the extra `sketches`. Their hash function, MurmurHash3, has texts that collide under every seed. So items
go through a hash with a secret key first, one for all copies; then each copy hashes with a seed of its own.

>>> import targetcharge as tc
>>> stream = tc.streaming.RobustStream(tc.streaming.apache.hll(), copies=200, budget=tc.Budget(5.0, 1e-6))
>>> stream.update("a")
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.keyed_hash import KeyedHash

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_LEFT_OUT: Final = 65
"""Of the 128 bits of a hash: the sketches take numbers below 2^63."""


@final
class _Keyed:
    """A keyed hash to 63 bits. All copies are fed the same item one after another, so the last is remembered."""

    def __init__(self) -> None:
        self._hash = KeyedHash(secrets.token_bytes(32))
        self._last: tuple[object, int] = (None, 0)

    def __call__(self, item: object) -> int:
        last, known = self._last
        if item is last and item is not None:
            return known
        try:
            number = self._hash.number(item) >> _LEFT_OUT
        except TypeError:
            raise InvalidParameter("item", item, "an integer, a float, text or bytes, and not NaN") from None
        self._last = (item, number)
        return number


@final
@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Counter:
    """A sketch of DataSketches.

    Attributes:
        native: the sketch.
        keyed: from items to numbers.
        salt: changes the numbers, for a sketch that has no seed of its own; else 0.
    """

    native: Any
    keyed: _Keyed
    salt: int = 0

    def update(self, item: object) -> None:
        """Take in an item; equal ones are told as a Python set tells them."""
        self.native.update(self.keyed(item) ^ self.salt)

    def estimate(self) -> float:
        """Return about how many distinct items there were."""
        return float(self.native.get_estimate())


def hll(lg_k: int = 11) -> Callable[[int], Counter]:
    """Return what makes HyperLogLog sketches with 2^lg_k registers. All have one fixed seed: copies get a salt."""
    size, library, keyed = _size(lg_k, 7, 16), _library(), _Keyed()
    return lambda seed: Counter(library.hll_sketch(size), keyed, salt=seed)


def cpc(lg_k: int = 10) -> Callable[[int], Counter]:
    """Return what makes compressed probabilistic counting sketches with 2^lg_k rows."""
    size, library, keyed = _size(lg_k, 4, 16), _library(), _Keyed()
    return lambda seed: Counter(library.cpc_sketch(size, seed), keyed)


def theta(lg_k: int = 10) -> Callable[[int], Counter]:
    """Return what makes theta sketches that keep about 2^lg_k hash values."""
    size, library, keyed = _size(lg_k, 5, 16), _library(), _Keyed()
    return lambda seed: Counter(library.update_theta_sketch(size, 1.0, seed), keyed)


def _size(lg_k: int, least: int, most: int) -> int:
    if not least <= checks.positive_integer(lg_k, "lg_k") <= most:
        raise InvalidParameter("lg_k", lg_k, f"an integer from {least} to {most}")
    return int(lg_k)


def _library() -> ModuleType:
    try:
        import datasketches  # noqa: PLC0415 - the extra may be missing
    except ModuleNotFoundError as error:
        msg = "Apache's sketches need datasketches: pip install 'targetcharge[sketches]'"
        raise ModuleNotFoundError(msg, name=error.name) from None
    module: ModuleType = datasketches
    return module
