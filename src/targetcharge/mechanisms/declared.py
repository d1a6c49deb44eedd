"""Declared algorithms: any function of the data that its author vouches to be private.

>>> @private(epsilon=0.5)
... def busy(data, entropy):
...     "Tell whether there are many visits."
...     return len(data) + discrete_laplace(entropy, Rate.at_most(0.5)) > 100
>>> busy
<busy, epsilon=0.5, delta=0>
>>> busy.__doc__
'Tell whether there are many visits.'
>>> from targetcharge.randomness import Rate, SystemEntropy, discrete_laplace
>>> busy.run([], SystemEntropy())
False
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from targetcharge import checks
from targetcharge.accounting.targets import QTarget
from targetcharge.errors import InvalidParameter
from targetcharge.mechanisms.algorithm import ANY_PRIOR, Algorithm
from targetcharge.mechanisms.naming import checked, function_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from targetcharge.randomness import Entropy

_SIGNATURE = "a function of `data`, or of `data` and `entropy`, that returns an outcome"


def private(
    epsilon: float,
    delta: float = 0.0,
    *,
    targets: Sequence[QTarget] = (),
    name: str | None = None,
) -> Callable[[Callable[..., object]], Algorithm]:
    """Return a decorator that turns a function into an algorithm.

    The declaration is taken at its word: for any two neighbouring datasets the function's outcomes are
    (ε, δ)-indistinguishable, it keeps nothing of the data, and every run draws fresh, independent randomness
    (`tc.twice` relies on it). A second parameter called `entropy` receives the session's source of random bits;
    the samplers of `targetcharge.randomness` take it.

    Args:
        epsilon: ε of one run.
        delta: δ of one run.
        targets: q-targets the author vouches for, besides any prior and everything.
        name: what the transcript calls it; the function's name if None.
    """
    if callable(epsilon):
        raise InvalidParameter("epsilon", epsilon, "a number: write @private(epsilon=0.1) above the function")
    epsilon, delta = checks.query_epsilon(epsilon, "epsilon"), checks.delta(delta)
    if not isinstance(targets, tuple | list) or not all(isinstance(target, QTarget) for target in targets):
        raise InvalidParameter("targets", targets, "a list of QTarget")
    if name is not None:
        checked(name)

    def declare(function: Callable[..., object]) -> Algorithm:
        algorithm = Algorithm(
            name=name or function_name(function),
            epsilon=epsilon,
            delta=delta,
            run=function if takes_entropy(function) else _without_entropy(function),
            targets=(*ANY_PRIOR, *targets),
        )
        for attribute, value in (("__doc__", function.__doc__), ("__wrapped__", function)):
            object.__setattr__(algorithm, attribute, value)
        return algorithm

    return declare


def _without_entropy(function: Callable[[Any], object]) -> Callable[[object, Entropy], object]:
    def run(data: object, entropy: Entropy) -> object:  # noqa: ARG001 - it draws its own randomness
        return function(data)

    return run


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
