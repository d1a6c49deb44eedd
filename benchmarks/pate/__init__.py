"""Private labels on the votes of 250 teachers: what a budget buys here and with the peers' aggregators.

The votes are those of Papernot et al. (2018): 9,000 test digits of MNIST, 250 teachers, 10 classes.

    PATE_VOTES=mnist_250_teachers.npy python -m benchmarks.pate          # tables
    PATE_VOTES=mnist_250_teachers.npy python -m benchmarks.pate.plot     # docs/images/labels.svg
"""

from benchmarks.pate.tables import tables

__all__ = ["tables"]
