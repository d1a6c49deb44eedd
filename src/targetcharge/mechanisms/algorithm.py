"""Algorithms: differentially private functions of the data, with their own ε and δ.

An algorithm declares the targets it supports; a session refuses it with any other. It gets its randomness as an
argument, so the same code runs on the operating system's entropy and, in tests, on a seeded source.

>>> from targetcharge.accounting.targets import Boundary
>>> from targetcharge.randomness import Rate, discrete_laplace
>>> @private(epsilon=0.5)
... def busy(data, entropy):
...     "Tell whether there are many visits."
...     return len(data) + discrete_laplace(entropy, Rate.at_most(0.5)) > 100
>>> busy, busy.__doc__
(<busy, epsilon=0.5, delta=0>, 'Tell whether there are many visits.')
>>> busy.supports(NotPrior(False)), busy.supports(Boundary())
(True, False)
>>> busy.rehearse(["made up"] * 1000)
True
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from targetcharge import checks
from targetcharge.accounting.curves import BoundedRange, Concentrated, Gaussian
from targetcharge.accounting.targets import Everything, NotPrior, QTarget
from targetcharge.errors import InvalidParameter, Parameter
from targetcharge.outcomes import PUBLISHABLE, Mark, UnpublishableError, publishable
from targetcharge.randomness import SystemEntropy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from targetcharge.accounting.curves import Curve
    from targetcharge.accounting.targets import Target
    from targetcharge.mechanisms.accuracy import Accuracy, Range
    from targetcharge.mechanisms.noise import NoiseOf
    from targetcharge.mechanisms.oracles import Oracle
    from targetcharge.mechanisms.paid import PaidNoise
    from targetcharge.randomness import Entropy

    Support = type[Target] | Target
    """All targets of a type, or one target."""

ANY_PRIOR: Final[tuple[Support, ...]] = (NotPrior, Everything)
"""What every (ε, δ)-DP algorithm supports: one free outcome, or none (docs/theory/exact.md#exact-accounting)."""

Outcomes = int | Sequence[object]
"""Declared by the caller, so that their number tells nothing about the data; n stands for 0 … n-1."""

_OUTCOMES: Final = "a list of different outcomes, or their number"
_SIGNATURE: Final = "a function of `data`, or of `data` and `entropy`, that returns an outcome"


def _as_drawn(outcome: object, *, hit: bool) -> object:  # noqa: ARG001 - the same for both
    return outcome


@final
@dataclass(frozen=True)
class Algorithm:
    """A private function of the data. To vary one, wrap it.

    Attributes:
        name: what the transcript calls it; public.
        epsilon: its ε; infinite if it has none, and its curve says all. For a wrapped algorithm that of one run,
            which is what the wrapper's target prices.
        delta: the δ of everything that one call runs.
        run: draws one outcome. Only a session calls it, once what it may cost is reserved.
        targets: the targets whose price is true of it: a type stands for all targets of that type.
        default_target: the one to ask with when the caller names none, if there is a natural one.
        oracle: the probabilities of its outcomes, if it can tell them.
        publish: what leaves of an outcome.
        accuracy: what an outcome says about the true value, if that can be told.
        prior: the earlier value that UNCHANGED stands for, if it publishes that.
        question: what it answers, as canonical JSON, if it is about a table.
        counted: how it is drawn with other noise, if what it makes noisy is a count that no unit lowers.
        paid: how it is drawn where its every outcome is paid for, with what a session's meter lets it be.
        interval: where the true value lies, from an outcome as it was drawn, if that says more than its accuracy.
        margin: of a mean: it is off by at most so much divided by the number of units, in 95% of draws.
        carries: whether its data comes with the offset of a session.
        examples: a few outcomes that it may give, known without any data; none if it declares none.
    """

    name: str
    epsilon: float
    delta: float
    run: Callable[[object, Entropy], object]
    targets: tuple[Support, ...] = ANY_PRIOR
    default_target: Target | None = None
    oracle: Oracle | None = None
    publish: Callable[..., object] = _as_drawn
    accuracy: Accuracy | None = None
    prior: float | None = None
    question: str = ""
    counted: Counted | None = None
    paid: Callable[[PaidNoise], Algorithm] | None = None
    interval: Callable[[Any], Range] | None = None
    margin: float = 0.0
    carries: bool = False
    examples: Callable[[], tuple[object, ...]] = tuple

    def rehearse(self, data: object) -> object:
        """Run it once on made-up data, outside any budget, and return what a session would publish.

        **Never on the guarded data**: nothing is charged, nothing is kept, and errors say all that they know.

        Raises:
            InvalidParameter: if the outcome cannot be published; all else is what the run itself raises.
        """
        outcome, target = self.run(data, SystemEntropy()), self.default_target
        try:
            outcome = publishable(outcome)
        except UnpublishableError:
            raise InvalidParameter("outcome", outcome, PUBLISHABLE) from None
        return self.publish(outcome, hit=target is not None and outcome in target)

    def supports(self, target: Target) -> bool:
        """Return whether this target's price is true of this algorithm."""
        return any(_implies(support, target) for support in self.targets)

    def __repr__(self) -> str:
        """Return the name and what it costs; public."""
        curve = self.default_target.curve if isinstance(self.default_target, Everything) else None
        private = f"epsilon={self.epsilon:g}" if curve is None else str(curve)
        return f"<{self.name}, {private}, delta={self.delta:g}>"


def _implies(declared: Support, asked: Target) -> bool:
    """Return whether a declared target makes the asked one true: itself, or the same members with a smaller q.

    A curve is true only of what has declared it.
    """
    if isinstance(declared, type):
        return type(asked) is declared and getattr(asked, "curve", None) is None
    if isinstance(declared, QTarget) and isinstance(asked, QTarget):
        return asked.q <= declared.q and asked.members == declared.members
    return type(declared) is type(asked) and declared == asked


@final
@dataclass(frozen=True)
class Counted:
    """What an algorithm publishes of a noisy count that no unit lowers: it may get a session's noise.

    Attributes:
        redrawn: from the noise for each sensitivity to the same algorithm with it.
        at_least: whether it publishes the count from some value on, and nothing below.
        always: whether it publishes the count whatever it is.
    """

    redrawn: Callable[[NoiseOf], Algorithm]
    at_least: bool = False
    always: bool = False


def redrawn(algorithm: Algorithm, noise_of: NoiseOf) -> Algorithm:
    """Return an algorithm with a session's noise in place of its own, the same in all else."""
    if algorithm.counted is None:
        raise InvalidParameter("algorithm", algorithm, "one whose count is declared monotone")
    drawn = algorithm.counted.redrawn(noise_of)
    return _with_run_of(algorithm, drawn)


def paid(algorithm: Algorithm, noise: PaidNoise) -> Algorithm:
    """Return an algorithm as it is drawn where its every outcome is paid for, the same in name and question."""
    if algorithm.paid is None:
        return algorithm
    drawn = algorithm.paid(noise)
    return replace(
        _with_run_of(algorithm, drawn),
        targets=drawn.targets,
        default_target=drawn.default_target,
        publish=drawn.publish,
        interval=drawn.interval,
        margin=drawn.margin,
    )


def _with_run_of(algorithm: Algorithm, drawn: Algorithm) -> Algorithm:
    """Return an algorithm that draws as another does."""
    return replace(
        algorithm,
        run=drawn.run,
        oracle=drawn.oracle,
        accuracy=drawn.accuracy,
        counted=None,
        paid=None,
        carries=drawn.carries,
    )


def batch_algorithm(
    name: str, epsilon: float, target: Target, accuracy: Accuracy | None = None, question: str = ""
) -> Algorithm:
    """Return an algorithm by which the questions of a batch are priced and named; it is never run on its own."""
    return Algorithm(
        name=name,
        epsilon=float(epsilon),
        delta=0.0,
        run=_never_run,
        targets=(type(target),),
        default_target=target,
        accuracy=accuracy,
        question=question,
    )


def _never_run(*_: object) -> object:
    msg = "computations that are drawn together are not run one by one"
    raise AssertionError(msg)


def private(
    epsilon: float | None = None,
    delta: float = 0.0,
    *,
    rho: float | None = None,
    bounded_range: float | None = None,
    gaussian: float | None = None,
    targets: Sequence[QTarget] = (),
    name: str | None = None,
) -> Callable[[Callable[..., object]], Algorithm]:
    """Return a decorator that turns a function into an algorithm.

    The declaration is taken at its word: for any two neighbouring datasets the function's outcomes are
    (ε, δ)-indistinguishable (or what else is declared, but for δ), it keeps nothing of the data, and every run
    draws fresh, independent randomness (`tc.twice` relies on it). A second parameter called `entropy` receives the
    session's source of random bits; the samplers of `targetcharge.randomness` take it.

    Args:
        epsilon: ε of one run. Give this, rho, bounded_range or gaussian.
        delta: δ of one run.
        rho: ρ of one run that is ρ-zCDP, such as Gaussian noise: its every outcome is paid for.
        bounded_range: the length of an interval that all log-ratios of one run lie in, as of the exponential
            mechanism. It is ε-DP too; asked without a target, or with Everything(), its every outcome is paid for,
            which costs less.
        gaussian: of Gaussian noise by how many of its standard deviations one unit moves the outcome at most, as a
            vector; at least one step of the lattice if the noise is discrete. Its every outcome is paid for.
        targets: q-targets the author vouches for, besides any prior and everything.
        name: what the transcript calls it; the function's name if None.
    """
    if callable(epsilon):
        raise InvalidParameter("epsilon", epsilon, "a number: write @private(epsilon=0.1) above the function")
    epsilon, curve, delta = *_declared_curve(epsilon, rho, bounded_range, gaussian), checks.delta(delta)
    if not isinstance(targets, tuple | list) or not all(isinstance(target, QTarget) for target in targets):
        raise InvalidParameter("targets", targets, "a list of QTarget")
    if targets and epsilon == math.inf:
        given = "gaussian" if rho is None else "rho"
        raise InvalidParameter("targets", targets, "left out where ", Parameter(given), " is given")
    if name is not None:
        checked_name(name)
    supported = (*ANY_PRIOR, *targets) if epsilon < math.inf else ()

    def declare(function: Callable[..., object]) -> Algorithm:
        algorithm = Algorithm(
            name=name or function_name(function),
            epsilon=epsilon,
            delta=delta,
            run=function if takes_entropy(function) else lambda data, _: function(data),
            targets=supported if curve is None else (*supported, Everything(curve)),
            default_target=None if curve is None else Everything(curve),
        )
        for attribute, value in (("__doc__", function.__doc__), ("__wrapped__", function)):
            object.__setattr__(algorithm, attribute, value)
        return algorithm

    return declare


def _declared_curve(
    epsilon: float | None, rho: float | None, bounded_range: float | None, gaussian: float | None
) -> tuple[float, Curve | None]:
    """Return the ε of what was declared, infinite if it has none, and its curve if that says more."""
    given = {"epsilon": epsilon, "rho": rho, "bounded_range": bounded_range, "gaussian": gaussian}
    said = [name for name, value in given.items() if value is not None]
    if len(said) != 1:
        first = said[0] if said else "epsilon"
        expected = "given alone: one of epsilon, rho, bounded_range and gaussian"
        raise InvalidParameter(
            first, given[first], expected if said else "given, or rho, bounded_range or gaussian"
        )
    if rho is not None:
        return math.inf, Concentrated(rho)
    if gaussian is not None:  # as discrete noise on a lattice of the shift's length: no less private than it is
        return math.inf, Gaussian(1, 1 / Fraction(checks.query_epsilon(gaussian, "gaussian")) ** 2)
    if bounded_range is not None:
        return BoundedRange(bounded_range).epsilon, BoundedRange(bounded_range)
    return checks.query_epsilon(epsilon, "epsilon"), None  # type: ignore[arg-type]  # it is not None


def takes_entropy(function: object) -> bool:
    """Return whether a function's second parameter is called `entropy`; refuse other signatures."""
    if not callable(function) or inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise InvalidParameter("function", function, _SIGNATURE)
    try:
        signature = inspect.signature(function)
    except ValueError:  # some built-in functions have none
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [key for key, parameter in signature.parameters.items() if parameter.kind in positional]
    entropy = names[1:2] == ["entropy"]
    if "entropy" in signature.parameters and not entropy:
        raise InvalidParameter("function", function, _SIGNATURE)
    try:
        signature.bind(*range(2 if entropy else 1))
    except TypeError:
        raise InvalidParameter("function", function, _SIGNATURE) from None
    return entropy


def algorithm_name(name: str | None, mechanism: str, function: object) -> str:
    """Return the name given, or one made of the mechanism's and the function's: public, never from the data."""
    if name is None:
        return f"{mechanism}({function_name(function)})"
    return checked_name(name)


def checked_name(name: object) -> str:
    """Return a name if it is a text that is not blank."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidParameter("name", name, "a text, or None for a name made from the function's")
    return name


def function_name(function: object) -> str:
    """Return a function's own name, or its type's if it has none."""
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def declared_outcomes(outcomes: Outcomes, name: str = "outcomes") -> tuple[object, ...]:
    """Return the outcomes in canonical form: 0 … n-1 for a number n.

    Outcomes that Python calls equal (1 and True) are refused: a prior could not tell them apart.
    """
    if isinstance(outcomes, np.ndarray):
        outcomes = outcomes.tolist()
    if not isinstance(outcomes, Sequence):
        try:
            return tuple(range(checks.positive_integer(outcomes, name)))
        except InvalidParameter:
            raise InvalidParameter(name, outcomes, _OUTCOMES) from None
    if isinstance(outcomes, str | bytes | bytearray) or not len(outcomes):
        raise InvalidParameter(name, outcomes, _OUTCOMES)
    try:
        declared = tuple(publishable(outcome) for outcome in outcomes)
    except UnpublishableError:
        raise InvalidParameter(name, outcomes, f"a list whose members are each {PUBLISHABLE}") from None
    if len(set(declared)) < len(declared) or not set(Mark).isdisjoint(declared):
        marks = " or ".join(map(repr, Mark))
        raise InvalidParameter(name, outcomes, f"{_OUTCOMES}, none of them {marks}")
    return declared


def row_of(scores: Iterable[Any], count: int) -> list[Any]:
    """Return the scores as a list, one for each outcome."""
    row: list[Any] = scores.tolist() if isinstance(scores, np.ndarray) else list(scores)
    if len(row) != count:
        msg = f"{len(row)} scores for {count} outcomes"
        raise ValueError(msg)
    return row
