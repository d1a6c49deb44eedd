"""Sketches of Apache DataSketches as copies of a robust stream: distinct counts by HLL, CPC and theta.

They need the extra `sketches`. Items are integers of 64 bits, floats or text.

>>> import targetcharge as tc
>>> stream = tc.streaming.RobustStream(tc.streaming.apache.hll(), copies=200, budget=tc.Budget(5.0, 1e-6))
>>> stream.update("a")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, final

from targetcharge import checks
from targetcharge.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    Item = int | float | str


class _Native(Protocol):
    def update(self, item: Any, /) -> None: ...  # noqa: ANN401 - a number or text
    def get_estimate(self) -> float: ...


@final
@dataclass(frozen=True, repr=False, eq=False, slots=True)
class Counter:
    """A sketch of DataSketches.

    Attributes:
        native: the sketch.
    """

    native: _Native

    def update(self, item: Item) -> None:
        """Take in an item."""
        self.native.update(item)

    def estimate(self) -> float:
        """Return about how many distinct items there were."""
        return self.native.get_estimate()


@final
@dataclass(frozen=True, repr=False, eq=False, slots=True)
class SaltedCounter:
    """A sketch that has no seed of its own: items get a salt, so that its hash values are others for each copy.

    Attributes:
        native: the sketch.
        salt: of this copy; secret.
    """

    native: _Native
    salt: str

    def update(self, item: Item) -> None:
        """Take in an item."""
        if isinstance(item, bool) or not isinstance(item, int | float | str):
            raise InvalidParameter("item", item, "an integer, a float or text")
        self.native.update(f"{self.salt}{item!r}")

    def estimate(self) -> float:
        """Return about how many distinct items there were."""
        return self.native.get_estimate()


def hll(lg_k: int = 11) -> Callable[[int], SaltedCounter]:
    """Return what makes HyperLogLog sketches with 2^lg_k registers.

    All of them hash alike, with one fixed seed, so anybody can find items that they do not count: each copy gets
    a salt.
    """
    size, library = _size(lg_k, 7, 21), _library()
    return lambda seed: SaltedCounter(library.hll_sketch(size), f"{seed:016x} ")


def cpc(lg_k: int = 10) -> Callable[[int], Counter]:
    """Return what makes compressed probabilistic counting sketches with 2^lg_k rows."""
    size, library = _size(lg_k, 4, 26), _library()
    return lambda seed: Counter(library.cpc_sketch(size, seed))


def theta(lg_k: int = 10) -> Callable[[int], Counter]:
    """Return what makes theta sketches that keep about 2^lg_k hash values."""
    size, library = _size(lg_k, 5, 26), _library()
    return lambda seed: Counter(library.update_theta_sketch(size, 1.0, seed))


def _size(lg_k: int, least: int, most: int) -> int:
    if not least <= checks.positive_integer("lg_k", lg_k) <= most:
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
