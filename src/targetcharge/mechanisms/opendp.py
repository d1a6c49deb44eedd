"""Measurements of OpenDP as algorithms.

>>> import opendp.prelude as dp
>>> dp.enable_features("contrib")
>>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
>>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
>>> from_opendp(count, d_in=1, name="visits")
<visits, epsilon=0.1, delta=0>
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from targetcharge import checks
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.mechanisms.algorithm import Algorithm, checked_name

if TYPE_CHECKING:
    from targetcharge.randomness import Entropy

_ADD_OR_REMOVE = ("SymmetricDistance", "InsertDeleteDistance", "SymmetricIdDistance", "FrameDistance(Symmetric")
_OF_AGGREGATES = (
    "AbsoluteDistance",
    "L1Distance",
    "L2Distance",
    "L01InfDistance",
    "L02InfDistance",
    "LInfDistance",
)


def from_opendp(measurement: object, d_in: float = 1, *, name: str | None = None) -> Algorithm:
    """Return an OpenDP measurement as an algorithm with the ε and δ of its privacy map.

    The measurement draws from OpenDP's own source of randomness. One that answers with a queryable (an
    interactive one) cannot be told beforehand: it fails when it is run.

    Args:
        measurement: a measurement whose privacy is told in pure or approximate DP.
        d_in: how far apart neighbouring datasets are in its input metric: the most rows of a unit.
        name: what the transcript calls it.

    Raises:
        NotAllowed: if `opendp` is not installed, or the measurement has another privacy measure (zCDP, Rényi,
            a privacy curve) or a metric of replaced rows.
        InvalidParameter: if it is no measurement, or its privacy map does not take `d_in`.
    """
    opendp = _opendp()
    if not isinstance(measurement, opendp.Measurement):
        raise InvalidParameter("measurement", measurement, "an OpenDP Measurement (an odometer is none)")
    label = "opendp" if name is None else checked_name(name)
    _check_metric(str(measurement.input_metric))
    epsilon, delta = _privacy(opendp, measurement, d_in)

    def run(data: object, entropy: Entropy) -> object:  # noqa: ARG001 - OpenDP draws its own randomness
        outcome = measurement(data)
        if isinstance(outcome, opendp.Queryable):
            msg = "an interactive measurement has no outcome to publish"
            raise TypeError(msg)
        return outcome

    try:
        return Algorithm(label, checks.query_epsilon(epsilon), checks.delta(delta), run)
    except InvalidParameter as out_of_range:
        expected = (
            f"one whose privacy map gives {out_of_range.expected}; at d_in {d_in!r} it gives {(epsilon, delta)}"
        )
        raise InvalidParameter("measurement", label, expected) from None


def _opendp() -> Any:  # noqa: ANN401 - an optional module
    try:
        return import_module("opendp.prelude")
    except ImportError:
        msg = "from_opendp needs the package opendp: pip install 'targetcharge[opendp]'"
        raise NotAllowed(msg) from None


def _errors() -> tuple[type[Exception], ...]:
    module: Any = import_module("opendp.mod")
    return module.OpenDPException, module.UnknownTypeException


def _check_metric(metric: str) -> None:
    if not metric.startswith((*_ADD_OR_REMOVE, *_OF_AGGREGATES)):
        msg = (
            f"its input metric is {metric}, and here a neighbour has one unit more or less, none replaced: build"
            " the measurement on symmetric_distance()"
        )
        raise NotAllowed(msg)


def _privacy(opendp: Any, measurement: Any, d_in: float) -> tuple[float, float]:  # noqa: ANN401 - an optional module
    """Return (ε, δ) by the privacy map, which rounds up."""
    measure = measurement.output_measure
    pure = opendp.max_divergence()
    if measure not in (pure, opendp.approximate(pure)):
        msg = (
            f"its privacy is told in {measure}; only MaxDivergence and Approximate(MaxDivergence), ε and (ε, δ),"
            " can be charged: see opendp.combinators.make_fix_delta and make_zCDP_to_approxDP"
        )
        raise NotAllowed(msg)
    errors: tuple[type[Exception], ...] = (TypeError, ValueError, ArithmeticError, *_errors())
    try:
        loss = measurement.map(d_in)
    except errors as error:
        expected = f"a distance that the measurement's privacy map takes, in {measurement.input_metric}"
        raise InvalidParameter("d_in", d_in, expected) from error
    return (loss, 0.0) if measure == pure else loss
