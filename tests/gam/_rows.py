"""Rows of three columns, one of them categorical, and their classifier."""

import numpy as np
from scipy.special import expit

from skdp import DPAdditiveClassifier

BOUNDS, CATEGORIES = {0: (-1, 1), 1: (-1, 1)}, {2: [0, 1, 2]}


def make_table(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, 2)), rng.integers(0, 3, size=n)])
    score = 4 * np.abs(X[:, 0]) - 2 + 2 * X[:, 1] + np.array([0.0, 1.0, -1.0])[X[:, 2].astype(int)]
    return X, score, rng


def classifier(epsilon=1.0, **params):
    terms = {"bounds": BOUNDS, "categories": CATEGORIES} | params
    return DPAdditiveClassifier(epsilon, **terms)


def two_classes(n=4000, seed=0):
    X, score, rng = make_table(n, seed)
    return X, (rng.uniform(size=n) < expit(score)).astype(int)
