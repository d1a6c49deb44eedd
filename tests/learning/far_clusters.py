"""Private records of three classes that are far apart, and a labeler that labels them right."""

import numpy as np
from sklearn.naive_bayes import GaussianNB

import targetcharge as tc
from targetcharge.learning import PrivateLabeler

PLENTY = tc.Budget(200.0, 1e-5)
NAMES = np.array(["cold", "mild", "warm"])


def clusters(records, spread=0.3):
    """Records of three classes that are far apart; each class is among any five in a row."""
    generator = np.random.default_rng()
    codes = generator.permuted(np.tile(np.arange(3), (records, 1)), axis=1).ravel()[:records]
    return generator.normal(scale=spread, size=(records, 2)) + 10 * codes[:, None], NAMES[codes]


FEATURES, LABELS = clusters(400)
REQUESTS, TRUTH = clusters(60)


def make(estimator=None, **changes):
    """A labeler that gives all labels, right."""
    options = {"teachers": 40, "budget": PLENTY, "query_epsilon": 1.0, "mode": "plain"} | changes
    return PrivateLabeler(GaussianNB() if estimator is None else estimator, **options)
