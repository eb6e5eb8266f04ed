"""What skdp offers, found in its `__all__`: lists of tests are compared with it."""

import inspect

import skdp

ESTIMATORS = [
    kind
    for kind in (getattr(skdp, name) for name in skdp.__all__)
    if inspect.isclass(kind) and hasattr(kind, "fit")
]
TRANSFORMERS = [
    kind for kind in ESTIMATORS if hasattr(kind, "transform") and not hasattr(kind, "predict")
]


def missing(kinds, estimators):
    """Return the names of the classes that none of some estimators, or classes, is of."""
    there = {each if inspect.isclass(each) else type(each) for each in estimators}
    return sorted(kind.__name__ for kind in kinds if kind not in there)


def takes_groups(kind):
    return "groups" in inspect.signature(kind.fit).parameters
