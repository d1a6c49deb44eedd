"""Wrappers: algorithms that run others, and cost only where the outcome is in doubt; measurements of OpenDP.

>>> from targetcharge.mechanisms.counts import between_thresholds
>>> from targetcharge.randomness import SystemEntropy
>>> side = between_thresholds(len, low=90, high=110, epsilon=1.0)
>>> marked = boundary(side)
>>> marked.run(range(10), SystemEntropy()), marked.default_target
(<Side.BELOW: 'below'>, Boundary())
>>> outcome = twice(side).run(range(10), SystemEntropy())
>>> outcome
(<Side.BELOW: 'below'>, <Side.BELOW: 'below'>)
>>> algorithm = agreement(side)
>>> algorithm.publish(outcome, hit=False), algorithm.publish(("a", "b"), hit=True)
(<Side.BELOW: 'below'>, BOUNDARY)
>>> import opendp.prelude as dp
>>> dp.enable_features("contrib")
>>> space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
>>> count = space >> dp.t.then_count() >> dp.m.then_laplace(scale=10.0)
>>> from_opendp(count, d_in=1, name="visits")
<visits, epsilon=0.1, delta=0>
"""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from targetcharge import checks
from targetcharge.accounting.targets import Boundary, Disagreement, NotPrior
from targetcharge.errors import InvalidParameter, NotAllowed
from targetcharge.mechanisms.algorithm import Algorithm, Counted, checked_name, private, redrawn
from targetcharge.outcomes import BOUNDARY, publishable, same
from targetcharge.randomness import bernoulli

if TYPE_CHECKING:
    from collections.abc import Callable

    from targetcharge.randomness import Entropy

_ADD_OR_REMOVE: Final = (
    "SymmetricDistance",
    "InsertDeleteDistance",
    "SymmetricIdDistance",
    "FrameDistance(Symmetric",
)
_OF_AGGREGATES: Final = (
    "AbsoluteDistance",
    "L1Distance",
    "L2Distance",
    "L01InfDistance",
    "L02InfDistance",
    "LInfDistance",
)


def boundary(algorithm: Algorithm, caution: float = 1.0) -> Algorithm:
    """Return the algorithm that publishes BOUNDARY with probability cπ/(1+cπ), at most c/(2+c), else an outcome.

    π is the probability of all outcomes but the most likely one, c the caution. Only the mark costs.

    Args:
        algorithm: one that can tell the probabilities of its outcomes, with δ = 0 and ε of at most 1.
        caution: how readily it marks doubt; 1 is Algorithm 3 of the paper, more makes each mark cheaper.

    Raises:
        NotAllowed: if it cannot tell them, has a δ, or is wrapped already.
    """
    target = Boundary(caution)
    inner = _unwrapped(algorithm, "boundary")
    if inner.delta > 0:
        msg = f"boundary has no price for a δ above 0, and {inner.name} has {inner.delta:g}"
        raise NotAllowed(msg)
    oracle, draw = inner.oracle, inner.run
    if oracle is None:
        msg = f"{inner.name} cannot tell its outcomes' probabilities, which boundary needs: try twice or agreement"
        raise NotAllowed(msg)

    def run(data: object, entropy: Entropy) -> object:
        marked = bernoulli(entropy, target.mark_probability(oracle.rest(data)))
        return BOUNDARY if marked else draw(data, entropy)

    return Algorithm(
        name=f"boundary({inner.name})",
        epsilon=target.check_epsilon(inner.epsilon),
        delta=0.0,
        run=run,
        targets=(target,),
        default_target=target,
        accuracy=inner.accuracy,
        counted=rewrapped(inner, lambda redrawn_inner: boundary(redrawn_inner, caution)),
        carries=inner.carries,
    )


def rewrapped(inner: Algorithm, wrap: Callable[[Algorithm], Algorithm]) -> Counted | None:
    """Return how a wrapper is drawn with a session's noise, if what it wraps can be: around that with the noise.

    Given the offset of a session, what is wrapped is as private as it declares: so is the wrapper.
    """
    return None if inner.counted is None else Counted(lambda noise_of: wrap(redrawn(inner, noise_of)))


def twice(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm that runs another twice and publishes both outcomes. Only a disagreement costs.

    The two runs must be independent: an algorithm that remembers its noise would agree with itself, for free.
    Outcomes agree when they look alike: 1 and True do not. The ε it declares is that of one run, which
    `Disagreement` prices for two; its δ is that of both.

    Args:
        algorithm: any that is not wrapped, with ε of at most 5.
    """
    return _run_twice(algorithm, "twice")


def agreement(algorithm: Algorithm) -> Algorithm:
    """Return the algorithm that runs another twice and publishes the outcome if both agree, else BOUNDARY.

    It tells less than `twice` at the same price.

    Args:
        algorithm: any that is not wrapped, with ε of at most 5.
    """
    return replace(_run_twice(algorithm, "agreement"), publish=_one_if_equal)


def _one_if_equal(outcome: object, *, hit: bool) -> object:
    return BOUNDARY if hit else cast("tuple[object, object]", outcome)[0]


def _run_twice(algorithm: Algorithm, wrapper: str) -> Algorithm:
    target = Disagreement()
    inner = _unwrapped(algorithm, wrapper)
    draw = inner.run

    def run(data: object, entropy: Entropy) -> tuple[object, object]:
        first, second = publishable(draw(data, entropy)), publishable(draw(data, entropy))
        return (first, first) if same(first, second) else (first, second)

    return Algorithm(
        name=f"{wrapper}({inner.name})",
        epsilon=target.check_epsilon(inner.epsilon),
        delta=checks.delta(2 * inner.delta),
        run=run,
        targets=(target,),
        default_target=target,
        counted=rewrapped(inner, lambda redrawn_inner: _run_twice(redrawn_inner, wrapper)),
        carries=inner.carries,
    )


def _unwrapped(algorithm: object, wrapper: str) -> Algorithm:
    """Return an algorithm that a wrapper may wrap: one for which any outcome may be the free one."""
    if not isinstance(algorithm, Algorithm):
        expected = "an algorithm of tc.mechanisms, or a function declared with @tc.private"
        raise InvalidParameter("algorithm", algorithm, expected)
    if algorithm.epsilon == math.inf:
        msg = f"{wrapper} takes an ε-DP algorithm, and {algorithm.name} has no epsilon: ask it as it is"
        raise NotAllowed(msg)
    if NotPrior not in algorithm.targets:
        msg = f"{wrapper} takes an ε-DP algorithm that is not wrapped, and {algorithm.name} is none"
        raise NotAllowed(msg)
    return algorithm


# OpenDP


def from_opendp(measurement: object, d_in: float = 1, *, name: str | None = None) -> Algorithm:
    """Return an OpenDP measurement as an algorithm with the ε and δ of its privacy map.

    The measurement draws from OpenDP's own source of randomness. One that answers with a queryable (an
    interactive one) cannot be told beforehand: it fails when it is run.

    Args:
        measurement: a measurement whose privacy is told in ε, (ε, δ) or the ρ of zCDP, exact or approximate.
        d_in: how far apart neighbouring datasets are in its input metric: the most rows of a unit.
        name: what the transcript calls it.

    Raises:
        NotAllowed: if `opendp` is not installed, or the measurement has another privacy measure (Rényi, a privacy
            curve) or a metric of replaced rows.
        InvalidParameter: if it is no measurement, or its privacy map does not take `d_in`.
    """
    opendp = _opendp()
    if not isinstance(measurement, opendp.Measurement):
        raise InvalidParameter("measurement", measurement, "an OpenDP Measurement (an odometer is none)")
    label = "opendp" if name is None else checked_name(name)
    _check_metric(str(measurement.input_metric))
    loss, delta, of_zcdp = _privacy(opendp, measurement, d_in)

    def run(data: object, entropy: Entropy) -> object:  # noqa: ARG001 - OpenDP draws its own randomness
        outcome = measurement(data)
        if isinstance(outcome, opendp.Queryable):
            msg = "an interactive measurement has no outcome to publish"
            raise TypeError(msg)
        return outcome

    try:
        curve = {"rho": loss} if of_zcdp else {"epsilon": loss}
        return private(delta=delta, name=label, **curve)(run)  # type: ignore[arg-type]  # one of the two
    except InvalidParameter as out_of_range:
        expected = (
            f"one whose privacy map gives {out_of_range.expected}; at d_in {d_in!r} it gives {(loss, delta)}"
        )
        raise InvalidParameter("measurement", label, expected) from None


def _opendp() -> Any:  # noqa: ANN401 - an optional module
    try:
        return import_module("opendp.prelude")
    except ImportError:
        msg = "from_opendp needs the package opendp: pip install 'targetcharge[opendp]'"
        raise NotAllowed(msg) from None


def _check_metric(metric: str) -> None:
    if not metric.startswith((*_ADD_OR_REMOVE, *_OF_AGGREGATES)):
        msg = (
            f"its input metric is {metric}, and here a neighbour has one unit more or less, none replaced: build"
            " the measurement on symmetric_distance()"
        )
        raise NotAllowed(msg)


def _privacy(
    opendp: Any,  # noqa: ANN401 - an optional module
    measurement: Any,  # noqa: ANN401 - an optional module
    d_in: float,
) -> tuple[float, float, bool]:
    """Return ε or ρ, and δ, by the privacy map, which rounds up; and whether it is ρ."""
    measure = measurement.output_measure
    pure, concentrated = opendp.max_divergence(), opendp.zero_concentrated_divergence()
    exact = (pure, concentrated)
    if measure not in (*exact, *map(opendp.approximate, exact)):
        msg = (
            f"its privacy is told in {measure}; only MaxDivergence and ZeroConcentratedDivergence, exact or"
            " approximate, can be charged: see opendp.combinators.make_fix_delta"
        )
        raise NotAllowed(msg)
    module: Any = import_module("opendp.mod")
    errors = module.OpenDPException, module.UnknownTypeException
    try:
        loss = measurement.map(d_in)
    except (TypeError, ValueError, ArithmeticError, *errors) as error:
        expected = f"a distance that the measurement's privacy map takes, in {measurement.input_metric}"
        raise InvalidParameter("d_in", d_in, expected) from error
    of_zcdp = measure in (concentrated, opendp.approximate(concentrated))
    return (loss, 0.0, of_zcdp) if measure in exact else (*loss, of_zcdp)
