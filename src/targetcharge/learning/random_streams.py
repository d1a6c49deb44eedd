"""Random choices that are no noise: who teaches from what, and how a teacher's own algorithm draws.

They may be repeated (`random_state`), since privacy never hangs on them. Each teacher has a stream of its own: if
teachers shared one, what the first draws would depend on its records and change what the second draws.

>>> choices = Choices.of(0, teachers=2)
>>> choices.seeds == Choices.of(0, teachers=2).seeds, len(set(choices.seeds))
(True, 2)
"""

from __future__ import annotations

import random
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, final

import numpy as np
from sklearn.utils import check_random_state

from targetcharge.errors import InvalidParameter
from targetcharge.learning.parts import KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sklearn.base import BaseEstimator

_MOST = 2**31 - 1

ALONE: Final = threading.RLock()
"""Held by who changes what all threads of the process share: global generators, what is shown and where."""


@final
@dataclass(frozen=True)
class Choices:
    """Everything random about the teachers, drawn before any data is looked at.

    Attributes:
        key: of the hash that deals units.
        seeds: one for each teacher.
        generator: deals records.
    """

    key: bytes
    seeds: tuple[int, ...]
    generator: np.random.Generator

    @classmethod
    def of(cls, random_state: object, teachers: int) -> Self:
        """Return the choices of a random state; fresh ones for None."""
        try:
            source = check_random_state(random_state)
        except ValueError:
            raise InvalidParameter(
                "random_state", random_state, "None, an integer from 0 to 2^32 - 1 or a RandomState"
            ) from None
        words = None if random_state is None else source.randint(_MOST, size=8).tolist()
        generator = np.random.default_rng(words)
        seeds = generator.integers(_MOST, size=teachers).tolist()
        return cls(generator.bytes(KEY_BYTES), tuple(seeds), generator)


def seed(estimator: BaseEstimator, number: int) -> None:
    """Give every `random_state` inside an estimator a value of its own."""
    names = [name for name in sorted(estimator.get_params(deep=True)) if _is_random_state(name)]
    numbers = np.random.default_rng(number).integers(_MOST, size=len(names)).tolist()
    estimator.set_params(**dict(zip(names, numbers, strict=True)))


def _is_random_state(name: str) -> bool:
    return name == "random_state" or name.endswith("__random_state")


@contextmanager
def own_stream(number: int) -> Iterator[None]:
    """Give the block its own state of the global generators of `random` and NumPy, and put theirs back.

    One thread at a time; others wait at its door.
    """
    with ALONE:
        shared = check_random_state(None)
        theirs, pythons = shared.get_state(), random.getstate()
        shared.seed(number)
        random.seed(number)
        try:
            yield
        finally:
            shared.set_state(theirs)
            random.setstate(pythons)
