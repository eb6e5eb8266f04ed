"""What skdp offers, found in its `__init__`: lists of tests are compared with it."""

import inspect

import skdp


def public_names(package):
    """Return the names that the `__init__` of a package re-exports, sorted."""
    exported = dict(vars(package))
    if package is skdp:
        # These names are imported when they are used.
        exported |= {name: getattr(skdp, name) for name in skdp.__all__}
    return sorted(
        name
        for name, value in exported.items()
        if name == "__version__" or not name.startswith("_") and not inspect.ismodule(value)
    )


ESTIMATORS = [
    kind
    for kind in (getattr(skdp, name) for name in public_names(skdp))
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
