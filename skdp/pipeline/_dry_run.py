"""What an estimator would charge for a table of some shape, found without a table."""

import warnings

import numpy as np
from sklearn.base import clone, is_classifier

from skdp.accounting import ApproximateDP, PlannedCharge, PureDP

__all__ = ["dry_run", "shapes", "stand_in"]

# Shapes (rows, columns) at which an estimator is tried whose table's shape is not known.
SHAPES = ((2_000, 8), (100_000, 4), (2_000, 1), (60, 100))


class _Stopped(Exception):
    """The charge was made; nothing after it is of interest."""


class _Probe:
    """An accountant that notes the first charge and ends the fit there."""

    def __init__(self, terms):
        self.terms, self.asked = terms, None

    def charge(self, event, *, label="", epsilon=None, delta=None, seeded=False):
        self.asked = event, epsilon, delta
        raise _Stopped

    def __sklearn_clone__(self):
        return self

    def __deepcopy__(self, memo):
        return self


def stand_in(name, epsilon, delta):
    """Return the planned charge of anything that is calibrated to (epsilon, delta)."""
    event = PureDP(epsilon) if delta == 0.0 else ApproximateDP(epsilon, delta)
    return PlannedCharge(name, event, epsilon, delta)


def dry_run(estimator, shape, terms, classes=None):
    """Return what a private estimator's fit would charge, or None if it cannot be found.

    A clone is fitted to a table of zeros that takes no memory, and stopped at its charge. A
    private estimator charges before it computes anything from the data, so that what it charges
    depends on its parameters and on the table's shape alone.

    Parameters
    ----------
    estimator : estimator
        Private, with `epsilon` set.
    shape : tuple of (int, int)
        Rows and columns.
    terms : Terms
        Of the accountant that will be charged.
    classes : array-like, default=None
        The labels of y; None takes the estimator's declared ones, or 0 and 1.

    Returns
    -------
    tuple of (Event, float or None, float or None), or None
        The event, and the epsilon and delta that it was calibrated to.
    """
    probe = _Probe(terms)
    params = {"accountant": probe}
    if "random_state" in estimator.get_params(deep=False):
        params["random_state"] = None
    y = _null_target(estimator, shape[0], classes)
    for X in _null_tables(estimator, shape):
        trial = clone(estimator).set_params(**params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                trial.fit(X, y)
            except Exception:
                # Stopped at its charge, or not to be tried without its own table.
                pass
        if probe.asked is not None:
            return probe.asked
    return None


def _null_tables(estimator, shape):
    """Yield tables of that shape that hold nothing, the likeliest to be accepted first."""
    yield np.broadcast_to(np.zeros(shape[1]), shape)
    categories = estimator.get_params(deep=False).get("categories")
    if isinstance(categories, list | tuple) and categories:
        flat = all(np.ndim(item) == 0 for item in categories)
        first = [categories[0]] * shape[1] if flat else [next(iter(c), "") for c in categories]
        if len(first) == shape[1]:
            yield np.broadcast_to(np.array(first, dtype=object), shape)


def _null_target(estimator, n_rows, classes):
    params = estimator.get_params(deep=False)
    bounds = params.get("target_bounds")
    if params.get("classes") is not None:
        classes = params["classes"]
    if classes is None and bounds is not None and not is_classifier(estimator):
        with np.errstate(all="ignore"):
            return np.full(n_rows, float(np.mean(np.asarray(bounds, dtype=float))))
    return np.resize(np.unique([0, 1] if classes is None else classes), n_rows)


def shapes(n_samples, n_features):
    """Return the shapes to try: the one shape if it is known, otherwise several."""
    tried = [
        (n if n_samples is None else n_samples, d if n_features is None else n_features)
        for n, d in SHAPES
    ]
    return list(dict.fromkeys(tried))
