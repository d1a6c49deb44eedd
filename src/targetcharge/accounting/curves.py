"""Curves: what one run of a computation may tell where its every outcome is paid for.

A curve is a class of neighbouring pairs P, Q. Meters price the whole class: Rényi meters by its moment, exact and
sparse meters in hits (exchange.py).

>>> [round(curve.moment(3.0), 5) for curve in (Pure(0.1), BoundedRange(0.1), Concentrated(0.005))]
[0.02968, 0.00749, 0.03]
>>> noise = Gaussian(shift_squared=4, variance=Fraction(400))
>>> noise.rho, str(noise), of_plain(noise.plain()) == noise
(Fraction(1, 200), 'Gaussian noise of 10 times the shift', True)
>>> 0.05 <= Pure(0.1).of_share(0.5).epsilon < 0.0501
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, cast, final

from targetcharge import checks
from targetcharge.accounting import prices
from targetcharge.errors import InvalidParameter
from targetcharge.numerics.rounding import up

MIN_RHO: Final = 1e-18
"""Below this a computation says nothing that double precision could account for."""

MAX_RHO: Final = 50.0
"""Above this a single answer is all but the truth: the ρ of a computation with the largest ε."""

_ROUNDING: Final = 1e-14
"""More than what a sum of a few numbers is off by, relative to the sum of their sizes."""


@final
@dataclass(frozen=True)
class Pure:
    """ε-DP: every log-ratio ln P/Q lies in [-ε, ε].

    Attributes:
        epsilon: ε of one run.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Refuse an ε that no computation has."""
        object.__setattr__(self, "epsilon", checks.query_epsilon(self.epsilon, "epsilon"))

    def moment(self, order: float) -> float:
        """Return ln E_P[(P/Q)^(a-1)] of randomised response, the worst of them, from above."""
        return prices.q_target(checks.order(order), self.epsilon, 1.0)

    def of_share(self, share: float | Fraction) -> Pure:
        """Return the curve of a unit that moves the numbers by at most this share of what any unit may."""
        return Pure(_part(self.epsilon, _share(share)))

    @property
    def pure_epsilon(self) -> float:
        """Return the ε of the pure DP that it has."""
        return self.epsilon

    @property
    def concentrated(self) -> float:
        """Return the ρ of the zCDP that it has."""
        return self.epsilon**2 / 2

    def plain(self) -> tuple[Any, ...]:
        """Return the curve as plain data."""
        return "pure", self.epsilon

    def __str__(self) -> str:
        """Return the curve in words."""
        return f"epsilon {self.epsilon:.4g}"


@final
@dataclass(frozen=True)
class BoundedRange:
    """Log-ratios lie in an interval of length ε, wherever it lies: the exponential mechanism. It is ε-DP.

    Attributes:
        epsilon: the length of the interval.
    """

    epsilon: float

    def __post_init__(self) -> None:
        """Refuse a range that no computation has."""
        object.__setattr__(self, "epsilon", checks.query_epsilon(self.epsilon, "bounded_range"))

    def moment(self, order: float) -> float:
        """Return ln E_P[(P/Q)^(a-1)] of the worst pair, from above: that with two log-ratios, u and u-ε.

        With c = a-1 and w = e^u its moment is w^c·(A - B·w)/(e^ε - 1), A = e^ε - e^{-cε}, B = 1 - e^{-cε}, largest
        at w = cA/(aB). It is at most a(a-1)ε²/8, the smaller figure where the other is rounded
        (docs/theory/exchange.md#curves).
        """
        order = checks.order(order)
        length, exponent = self.epsilon, order - 1
        rest, log_b = _log_of_shortfall(order * length), _log_of_shortfall(exponent * length)  # ln A = ε + rest
        parts = (
            exponent * math.log1p(-1 / order),
            exponent * length,
            exponent * rest,
            -exponent * log_b,
            length,
            rest,
            -math.log(order),
            -math.log(math.expm1(length)),
        )
        sizes = sum(map(abs, parts))
        return min(sum(parts) + _ROUNDING * sizes, up(order * exponent * length**2 / 8))

    def of_share(self, share: float | Fraction) -> BoundedRange:
        """Return the curve of a unit that moves the scores by at most this share of what any unit may."""
        return BoundedRange(_part(self.epsilon, _share(share)))

    @property
    def pure_epsilon(self) -> float:
        """Return the ε of the pure DP that it has."""
        return self.epsilon

    @property
    def concentrated(self) -> float:
        """Return the ρ of the zCDP that it has."""
        return self.epsilon**2 / 8

    def plain(self) -> tuple[Any, ...]:
        """Return the curve as plain data."""
        return "bounded range", self.epsilon

    def __str__(self) -> str:
        """Return the curve in words."""
        return f"bounded range {self.epsilon:.4g}"


@final
@dataclass(frozen=True)
class Concentrated:
    """ρ-zCDP: at every order a the Rényi divergence is at most ρa, both ways. It is ε-DP for no ε.

    Attributes:
        rho: ρ of one run.
    """

    rho: float

    def __post_init__(self) -> None:
        """Refuse a ρ that no computation has."""
        expected = f"a number from {MIN_RHO:g} to {MAX_RHO:g}, the ρ of one computation"
        rho = checks.fitting(self.rho, "rho", expected, lambda number: MIN_RHO <= number <= MAX_RHO)
        object.__setattr__(self, "rho", rho)

    def moment(self, order: float) -> float:
        """Return a(a-1)ρ, from above."""
        order = checks.order(order)
        return up(order * (order - 1) * self.rho)

    def of_share(self, share: float | Fraction) -> Concentrated:
        """Return the same: how ρ falls with what a unit contributes is not known."""
        _share(share)
        return self

    @property
    def pure_epsilon(self) -> float:
        """Return infinity: it has no pure DP."""
        return math.inf

    @property
    def concentrated(self) -> float:
        """Return ρ."""
        return float(self.rho)

    def plain(self) -> tuple[Any, ...]:
        """Return the curve as plain data."""
        return "rho", self.rho

    def __str__(self) -> str:
        """Return the curve in words."""
        return f"rho {self.rho:.4g}"


@final
@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise on integers, as it is drawn: Pr[k] ∝ e^{-k²/(2·variance)}, for each number afresh.

    It is zCDP with ρ = shift_squared/(2·variance), also the discrete law (Canonne, Kamath, Steinke 2020).

    Attributes:
        shift_squared: the most that a unit moves the vector of numbers, squared and summed, in steps of the
            lattice of the noise. A unit moves each of them by a whole number of steps.
        variance: the parameter of the law, in squared steps.
    """

    shift_squared: int
    variance: Fraction

    def __post_init__(self) -> None:
        """Refuse a length or a variance that is none."""
        if type(self.shift_squared) is not int or self.shift_squared < 1:
            raise InvalidParameter("shift_squared", self.shift_squared, "an integer of at least 1")
        if type(self.variance) is not Fraction or self.variance <= 0:
            raise InvalidParameter("variance", self.variance, "a fraction above 0")
        if not MIN_RHO <= self.rho <= MAX_RHO:
            least, most = self.shift_squared / (2 * MAX_RHO), self.shift_squared / (2 * MIN_RHO)
            raise InvalidParameter("variance", self.variance, f"from {least:g} to {most:g}")

    @property
    def rho(self) -> Fraction:
        """Return ρ, exactly."""
        return self.shift_squared / (2 * self.variance)

    def moment(self, order: float) -> float:
        """Return a(a-1)ρ, from above."""
        order = checks.order(order)
        return up(order * (order - 1) * float(self.rho))

    def of_share(self, share: float | Fraction) -> Gaussian:
        """Return the curve of a unit that moves the numbers by at most this share of what any unit may."""
        moved = math.ceil(self.shift_squared * _share(share) ** 2)
        return Gaussian(moved, min(self.variance, moved / (2 * Fraction(MIN_RHO))))

    @property
    def pure_epsilon(self) -> float:
        """Return infinity: it has no pure DP."""
        return math.inf

    @property
    def concentrated(self) -> float:
        """Return ρ."""
        return float(self.rho)

    def plain(self) -> tuple[Any, ...]:
        """Return the curve as plain data."""
        return "gaussian", self.shift_squared, f"{self.variance.numerator}/{self.variance.denominator}"

    def __str__(self) -> str:
        """Return the curve in words."""
        times = math.sqrt(self.variance / self.shift_squared)
        return f"Gaussian noise of {times:.4g} times the shift"


Curve = Pure | BoundedRange | Concentrated | Gaussian
"""What a computation whose every outcome is paid for may declare."""


def of_plain(kept: tuple[Any, ...]) -> Curve | None:
    """Return the curve that was kept as plain data; None if this version knows none."""
    match kept:
        case ("pure", epsilon):
            return Pure(epsilon)
        case ("bounded range", epsilon):
            return BoundedRange(epsilon)
        case ("rho", rho):
            return Concentrated(rho)
        case ("gaussian", shift_squared, str(variance)):
            return Gaussian(shift_squared, Fraction(variance))
        case _:
            return None


def _log_of_shortfall(exponent: float) -> float:
    """Return ln(1 - e^{-x}), as precise where x is small as where it is large."""
    return math.log(-math.expm1(-exponent)) if exponent < 0.7 else math.log1p(-math.exp(-exponent))


def _share(share: float | Fraction) -> Fraction:
    """Return a share as the fraction that it stores."""
    checks.fitting(cast("float", share), "share", "a number above 0 and at most 1", lambda number: 0 < number <= 1)
    return Fraction(share)


def _part(epsilon: float, share: Fraction) -> float:
    """Return a share of an ε, rounded up; never more than all of it."""
    return max(checks.MIN_QUERY_EPSILON, min(epsilon, up(epsilon * float(share))))
