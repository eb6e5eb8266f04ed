"""Instances of every loss that the package holds, and rows for them."""

import dataclasses
import importlib
import inspect
import itertools
import math
import pkgutil

import numpy as np

from skdp import _losses
from skdp._losses._base import BoundedLoss, ClippableLoss
from skdp._losses._classes import (
    BinaryHuberisedHingeLoss,
    BinaryLogisticLoss,
    ClassWeightedLoss,
    MultinomialLogisticLoss,
    OneVersusRestLoss,
    SquaredHingeLoss,
)

# Values of a parameter, by its annotation.
VALUES = {float: (0.3, 1.7, 9.0), int: (2, 5)}
# Losses of other losses.
COMPOSED = {
    ClassWeightedLoss: [
        ClassWeightedLoss(BinaryLogisticLoss(), (0.2, 3.0)),
        ClassWeightedLoss(BinaryHuberisedHingeLoss(0.5), (2.0, 1.0)),
        ClassWeightedLoss(MultinomialLogisticLoss(3), (0.5, 1.0, 4.0)),
    ],
    OneVersusRestLoss: [
        OneVersusRestLoss(BinaryLogisticLoss(), 3),
        OneVersusRestLoss(SquaredHingeLoss(), 4),
    ],
}


def _kinds(base):
    for kind in base.__subclasses__():
        if not inspect.isabstract(kind):
            yield kind
        yield from _kinds(kind)


def _instances(kind):
    if kind in COMPOSED:
        return COMPOSED[kind]
    fields = dataclasses.fields(kind)
    return [
        kind(*values) for values in itertools.product(*(VALUES[f.type] for f in fields if f.init))
    ]


NAMES = [f"skdp._losses.{module.name}" for module in pkgutil.iter_modules(_losses.__path__)]
CLASSES = [
    kind
    for name in NAMES
    for kind in vars(importlib.import_module(name)).values()
    if inspect.isclass(kind) and kind.__module__ == name
]
KINDS = list(dict.fromkeys(_kinds(ClippableLoss)))
LOSSES = [loss for kind in KINDS for loss in _instances(kind)]
BOUNDED = [loss for loss in LOSSES if isinstance(loss, BoundedLoss)]


def draw(loss, n=400, seed=0):
    """Return scores and targets, those at the ends of their range included."""
    rng = np.random.default_rng(seed)
    scores = 3.0 * rng.normal(size=(n, *loss.weights_shape))
    if loss.target_bounds is None:
        return scores, rng.integers(max((2, *loss.weights_shape)), size=n)
    low, high = loss.target_bounds
    if math.isinf(high):
        return scores, 3.0 * rng.normal(size=n)
    return scores, np.clip(
        rng.uniform(1.5 * low - 0.5 * high, 1.5 * high - 0.5 * low, n), low, high
    )


def draw_far(loss, n=20_000):
    """Return scores of all sizes up to about 100, and targets."""
    scores, y = draw(loss, n)
    sizes = np.random.default_rng(2).uniform(0, 30, size=n) ** 2 / 30.0
    return scores * sizes.reshape(-1, *[1] * len(loss.weights_shape)), y


def norms(rows):
    """Return the norm of each row's numbers."""
    return np.linalg.norm(rows.reshape(len(rows), -1), axis=1)
