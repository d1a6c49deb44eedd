"""Float noise: how to see that a number is a sum with Laplace noise that was computed in floating point.

Such noise is ±scale·ln(t) for a t that has few binary digits, since a generator of random numbers gives so many.
Where t is small, neighbouring t lead to sums that lie apart: most floats between them cannot be reached from this
centre, and can from another (Mironov 2012). From a published float follows an interval of t, for a centre and a
scale; the feature is how many binary digits the shortest number in it has. From the true centre these are never
more than the generator gives; from a wrong one they are as many as a random interval of this width needs.

>>> published = 10 - math.log((2**45 + 9) * 2.0**-52)
>>> digits(published, FloatNoise(10.0, 1.0)), digits(published, FloatNoise(9.0, 1.0))
(52, 56)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from targetcharge.audit.sampling.published import float_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_SINGLE: Final = 2.0**-23
_DOUBLE: Final = 2.0**-52

_SCALED: Final = 62
"""Binary digits of t that are looked at where many noises are tried."""

_MOST_DIGITS: Final = 96
"""Binary digits of t that are looked at in a single number."""

_FARTHEST: Final = 400
"""Numbers of each input by which noises are tried: those farthest out, where reachable floats are few."""

_SMALLEST: Final = 2.0**-40
"""A t that nobody will see."""

_FEWEST: Final = 50
"""Numbers by which a centre can be told."""

_WINDOW: Final = 5.0
"""How many standard errors centre and scale may be from their estimates."""

_MOST_CENTRES: Final = 48
_MOST_SCALES: Final = 48
_PER_UNIT: Final = (1, 2, 10, 100)
"""How many round numbers there are from one integer to the next."""

_GENERATORS: Final = (15, 23, 24, 31, 32, 48, 52, 53)
"""Binary digits that t has, by the generators in use."""

_OTHERWISE: Final = 0.1
"""The share of what is published that may come about in another way, such as a cut at 0."""

_EVIDENCE: Final = 20.0
"""From how many bits of evidence on a noise is believed: a chance of 1% if 1,000 are tried, each in 8 ways."""


@final
@dataclass(frozen=True)
class FloatNoise:
    """Laplace noise around a centre.

    Attributes:
        centre: the number that it was added to.
        scale: its mean absolute value.
        precision: the distance from 1 to the next float in the arithmetic that computed it.
    """

    centre: float
    scale: float
    precision: float = _DOUBLE


def digits(value: object, noise: FloatNoise) -> int | None:
    """Return how many binary digits t = exp(-|value - centre|/scale) has at least, with room for what was rounded.

    None for what is no finite number, or too far out.
    """
    published = float_of(value)
    if published is None or not math.isfinite(published):
        return None
    distance = abs(published - noise.centre)
    t = math.exp(-distance / noise.scale)
    if t < _SMALLEST:
        return None
    # Half of the sum's last place, and some of the noise's: for the logarithm and the product with the scale.
    binade = math.ldexp(0.5, math.frexp(published)[1]), math.ldexp(0.5, math.frexp(distance)[1])
    off = noise.precision * (0.5 * binade[0] + 1.5 * binade[1])
    error = off / noise.scale + _DOUBLE * (1 + distance / noise.scale)
    low = int(math.ldexp(t * (1 - error), _MOST_DIGITS))
    high = int(math.ldexp(t * (1 + error), _MOST_DIGITS))
    return max(0, _MOST_DIGITS + 1 - (high ^ (low - 1)).bit_length())


def likely_noises(
    values: tuple[Sequence[float], Sequence[float]], data: tuple[object, object], epsilon: float
) -> list[FloatNoise]:
    """Return for each input the noise that its floats look like a sum with; none where they look like nothing.

    Centres are tried that somebody would release: round numbers and statistics of the data, near the median. The
    scales are round numbers, such numbers over the claimed ε, or 1 over them.
    """
    noises = (
        _likely(np.array(published, dtype=np.float64), rows, epsilon)
        for published, rows in zip(values, data, strict=True)
    )
    return [noise for noise in noises if noise]


def _likely(values: NDArray[np.float64], data: object, epsilon: float) -> FloatNoise | None:
    if len(values) < _FEWEST:
        return None
    middle = float(np.median(values))
    spread = float(np.abs(values - middle).mean())
    if not 0 < spread < math.inf:
        return None
    farthest = values[np.argsort(np.abs(values - middle))[-_FARTHEST:]]
    precision = _SINGLE if np.array_equal(farthest.astype(np.float32), farthest) else _DOUBLE
    window = _WINDOW / math.sqrt(len(values))
    centres = list(dict.fromkeys(_centres(middle, window * spread, data)))[:_MOST_CENTRES]
    scales = list(dict.fromkeys(_scales(spread, window, epsilon)))[:_MOST_SCALES]
    if not centres or not scales:
        return None
    evidence = np.array([_evidence(farthest, centre, np.array(scales), precision) for centre in centres])
    centre, scale = np.unravel_index(evidence.argmax(), evidence.shape)
    return FloatNoise(centres[centre], scales[scale], precision) if evidence.max() >= _EVIDENCE else None


def _evidence(
    values: NDArray[np.float64], centre: float, scales: NDArray[np.float64], precision: float
) -> NDArray[np.float64]:
    """Return for each scale how many bits speak for noise around a centre: the logarithm of a likelihood ratio.

    An interval of the width w has a number of m digits in it with probability about w·2^m by chance, and surely if
    the numbers t have m digits.
    """
    distance = np.abs(values - centre)
    relative = np.minimum(distance / scales[:, None], -math.log(_SMALLEST))
    off = precision * (0.5 * _binades(values) + 1.5 * _binades(distance))
    error = off / scales[:, None] + _DOUBLE * (1 + relative)
    t = np.exp(-relative)
    low, high = (np.ldexp(t * (1 + sign * error), _SCALED).astype(np.int64) for sign in (-1, 1))
    shortest = _SCALED + 1 - np.frexp((high ^ (low - 1)).astype(np.float64))[1]
    width = 2 * t * error
    return np.asarray(np.max([_bits(shortest, width, most) for most in _GENERATORS], axis=0))


def _bits(shortest: NDArray[np.int32], width: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    chance = np.minimum(width * 2.0**most, 1.0)
    fits = (1 - _OTHERWISE) / chance + _OTHERWISE
    return np.asarray(np.log2(np.where(shortest <= most, fits, _OTHERWISE)).sum(axis=1))


def _binades(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the largest powers of 2 up to numbers' sizes: times the precision, the distances of floats there."""
    return np.ldexp(0.5, np.frexp(values)[1])


def _centres(middle: float, window: float, data: object) -> Iterator[float]:
    """Return centres in the window, the likeliest first."""
    centres = itertools.chain([float(round(middle))], _statistics(data), _round_near(middle, window))
    return (centre for centre in centres if abs(centre - middle) <= window)


def _round_near(middle: float, window: float) -> Iterator[float]:
    for per in _PER_UNIT:
        nearest = round(middle * per)
        most = min(int(window * per) + 1, _MOST_CENTRES)
        for step in sorted(range(-most, most + 1), key=abs):
            yield (nearest + step) / per


def _statistics(data: object) -> Iterator[float]:
    """Yield what is usually released of such data, as floating point computes it."""
    members = list(data.values()) if isinstance(data, Mapping) else data
    if isinstance(members, np.ndarray):
        members = members.tolist()
    if isinstance(members, Sized):
        yield float(len(members))
    given = list(members) if isinstance(members, Sequence) and not isinstance(members, str | bytes) else [members]
    numbers = [number for value in given if (number := float_of(value)) is not None and math.isfinite(number)]
    if numbers:
        total = math.fsum(numbers)
        yield from (sum(numbers), total, float(np.sum(numbers)), sum(numbers) / len(numbers), total / len(numbers))
        yield from (float(np.mean(numbers)), float(np.median(numbers)))
        yield from numbers


def _scales(spread: float, window: float, epsilon: float) -> Iterator[float]:
    """Return scales in the window, the likeliest first."""
    claimed = (number / epsilon for number in _short(spread * epsilon, window))
    inverse = (1 / number for number in _short(1 / spread, window))
    scales = itertools.chain(claimed, _short(spread, window), inverse)
    return (scale for scale in scales if abs(scale / spread - 1) <= window)


def _short(near: float, window: float) -> Iterator[float]:
    """Yield the numbers of one and two decimal digits near one, the nearest first."""
    for places in (0, 1):
        power = places - math.floor(math.log10(near))
        nearest = round(near * 10.0**power)
        most = int(window * near * 10.0**power) + 1
        for step in sorted(range(-most, most + 1), key=abs):
            if nearest + step > 0:
                yield float(f"{nearest + step}e{-power}")
