"""A table that any estimator of skdp can be fitted to."""

import numpy as np
from sklearn.base import is_classifier

N_ROWS = 120


def make_table(estimator):
    """Return X and a target that depends on X: a label, or a bound of the declared range.

    X has three integers where categories are declared or no bounds can be.
    """
    params = estimator.get_params(deep=False)
    rng = np.random.RandomState(0)
    X = rng.uniform(-0.5, 0.5, size=(N_ROWS, 3))
    y = (X[:, 0] + 0.1 * rng.normal(size=N_ROWS) > 0).astype(int)
    y[:2] = 0, 1
    if params.get("categories") is not None or ("categories" in params and "bounds" not in params):
        X = np.floor(3.0 * (X + 0.5))
    bounds = params.get("target_bounds")
    if isinstance(bounds, tuple | list) and not is_classifier(estimator):
        y = np.asarray(bounds, dtype=float)[y]
    return X, y
