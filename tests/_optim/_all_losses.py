"""Instances of every loss that the package holds, and rows for them."""

import dataclasses
import importlib
import inspect
import itertools
import math
import pkgutil

import numpy as np

from skdp import _optim
from skdp._optim import _loss
from skdp._optim._classification_losses import (
    BinaryHuberizedHingeLoss,
    BinaryLogisticLoss,
    ClassWeightedLoss,
    MultinomialLogisticLoss,
    OneVersusRestLoss,
    SquaredHingeLoss,
)
from skdp._optim._loss import BoundedLoss, ClippableLoss
from skdp._optim._regression_losses import HuberLoss

# Values of a parameter, by its annotation.
VALUES = {"float": (0.3, 1.7, 9.0), "int": (2, 5), "bool": (False, True)}
# Losses whose parameters are of other types, as are those of other losses, or have a value of
# their own: Huber's without a bound is the squared one.
COMPOSED = {
    HuberLoss: [HuberLoss(), *map(HuberLoss, VALUES["float"])],
    ClassWeightedLoss: [
        ClassWeightedLoss(BinaryLogisticLoss(), (0.2, 3.0)),
        ClassWeightedLoss(BinaryHuberizedHingeLoss(0.5), (2.0, 1.0)),
        ClassWeightedLoss(MultinomialLogisticLoss(3), (0.5, 1.0, 4.0)),
    ],
    OneVersusRestLoss: [
        OneVersusRestLoss(BinaryLogisticLoss(), 3),
        OneVersusRestLoss(SquaredHingeLoss(), 4),
    ],
}


def kinds_in(modules):
    """Return the losses that modules define, those that are unfinished too."""
    return [
        kind
        for module in modules
        for kind in vars(module).values()
        if inspect.isclass(kind) and kind.__module__ == module.__name__
    ]


def what_hinders(kind):
    """Return in words why no instance of a loss can be made here, or None."""
    if not issubclass(kind, ClippableLoss):
        return "it derives from neither ClippableLoss nor BoundedLoss"
    if inspect.isabstract(kind):
        return f"it lacks {', '.join(sorted(kind.__abstractmethods__))}"
    strange = [f"{name}: {type}" for name, type in _types(kind).items() if type not in VALUES]
    if strange and kind not in COMPOSED:
        return (
            f"nothing is known of {', '.join(strange)}: give parameters a type of VALUES, or put "
            "instances into COMPOSED"
        )
    try:
        _made(kind)
    except Exception as error:
        return f"none is made of VALUES ({error!r}): put instances into COMPOSED"
    return None


def instances(kind):
    """Return instances of a loss, none of one that something hinders."""
    return [] if what_hinders(kind) else _made(kind)


def _made(kind):
    if kind in COMPOSED:
        return COMPOSED[kind]
    return [kind(*values) for values in itertools.product(*map(VALUES.get, _types(kind).values()))]


def _types(kind):
    """Return the names of the types of a loss's parameters, which may be written as text."""
    fields = [field for field in dataclasses.fields(kind) if field.init]
    return {field.name: getattr(field.type, "__name__", field.type) for field in fields}


MODULES = [
    importlib.import_module(f"skdp._optim.{module.name}")
    for module in pkgutil.iter_modules(_optim.__path__)
    if module.name.endswith(("_loss", "_losses"))
]
# Unfinished classes to derive from have one place.
KINDS = kinds_in([module for module in MODULES if module is not _loss])
LOSSES = [loss for kind in KINDS for loss in instances(kind)]
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
