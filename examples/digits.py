"""PATE end to end on scikit-learn's digits, in seconds: python examples/digits.py.

1,300 images are private and split among 100 teachers, 297 are public and get labels within the budget, and a
student that learns from those is tried on 200 others. With so few records privacy is dear: a teacher has 13
images, and ε is high. For what more data buys see examples/mnist.py.
"""

from __future__ import annotations

import argparse

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import targetcharge as tc
from targetcharge.learning import PrivateLabeler

PRIVATE, PUBLIC = 1_300, 297


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Private labels for scikit-learn's digits.")
    parser.add_argument("--teachers", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=8.0, help="of all labels together, at δ = 1e-5")
    parser.add_argument("--query-epsilon", type=float, default=0.2, help="of one label")
    parser.add_argument("--mode", choices=["boundary", "prior", "twice", "plain"], default="boundary")
    return parser.parse_args()


def main() -> None:
    """Label, learn, compare."""
    chosen = options()
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    private, public, rest = np.split(order, [PRIVATE, PRIVATE + PUBLIC])
    labeler = PrivateLabeler(
        SVC(C=5),
        teachers=chosen.teachers,
        budget=tc.Budget(chosen.epsilon, 1e-5),
        query_epsilon=chosen.query_epsilon,
        mode=chosen.mode,
        classes=range(10),
        verbose=True,
    )
    labeler.fit(images[private], digits[private], X_public=images[public])
    found = labeler.labels_

    shown = Table("digits", "", title="what is published")
    shown.add_row("teachers", f"{chosen.teachers}, with {PRIVATE // chosen.teachers} images each")
    shown.add_row("labels", f"{len(found.rows)} of {found.asked} asked, {PUBLIC} in all")
    shown.add_row("hits", f"{len(found.hits)}")
    shown.add_row("guarantee", f"ε = {labeler.guarantee_.epsilon:g}, δ = {labeler.guarantee_.delta:g}")
    shown.add_row("protects", labeler.unit_)
    console = Console()
    console.print(shown)

    right = float(np.mean(found.values == digits[public][found.rows]))
    open_model = SVC(C=5).fit(images[private], digits[private])
    compared = Table("accuracy", "", title="compared with the truth, because this data is public")
    compared.add_row("labels", f"{right:.1%}")
    compared.add_row("student", f"{labeler.score(images[rest], digits[rest]):.1%}")
    compared.add_row(
        "not private: the same model on all private images", f"{open_model.score(images[rest], digits[rest]):.1%}"
    )
    console.print(compared)


if __name__ == "__main__":
    main()
