"""Tables, fits and released numbers for the checks of `skdp.testing`."""

import warnings
from contextlib import contextmanager
from unittest import SkipTest

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from skdp.accounting import PrivacyAccountant
from skdp.base import UNACCOUNTED, fitted_names
from skdp.exceptions import SeededNoiseWarning

N_ROWS, N_FEATURES = 60, 4

# At this epsilon two tables of 60 rows look alike: 60 removed and 60 added, e^0.12 is nearly 1.
UNTELLING_EPSILON = 1e-3
TRIES = 3


def make_table(estimator, seed=0):
    """Return X and a target that depends on X: a label, or an end of the declared range."""
    rng = check_random_state(seed)
    X = rng.uniform(-0.5, 0.5, size=(N_ROWS, N_FEATURES))
    y = (X[:, 0] + 0.1 * rng.normal(size=N_ROWS) > 0).astype(int)
    y[:2] = 0, 1
    if takes_categories(estimator):
        X = np.floor(3.0 * (X + 0.5))
    bounds = estimator.get_params().get("target_bounds")
    if isinstance(bounds, tuple | list) and not is_classifier(estimator):
        y = np.asarray(bounds, dtype=float)[y]
    return X, y


def takes_categories(estimator):
    """Say whether an estimator is fitted to categories: declared, or with no bounds to declare."""
    parameters = estimator.get_params(deep=False)
    if "categories" not in parameters:
        return False
    return parameters["categories"] is not None or "bounds" not in parameters


def releases_in_transform(estimator):
    return get_tags(estimator).non_deterministic and hasattr(estimator, "transform")


def fit(estimator, X, y, **params):
    """Fit a clone with some parameters changed; nothing is said of seeds."""
    estimator = clone(estimator).set_params(**params)
    required = get_tags(estimator).target_tags.required
    return estimator.fit(X, y) if required else estimator.fit(X)


def repeats_noise(estimator, releases):
    """Say whether two of some releases are the same, and not because a few integers are.

    A count with geometric noise often has the same value twice. At epsilon = 0.001 two of four such
    counts are the same with a probability below 4e-3, in three tries each below 1e-7.
    """
    if not _has_two_alike(releases(estimator)):
        return False
    if "epsilon" not in estimator.get_params():
        return True
    noisy = clone(estimator).set_params(epsilon=UNTELLING_EPSILON)
    return all(_has_two_alike(releases(noisy)) for _ in range(TRIES))


def _has_two_alike(results):
    return any(np.array_equal(a, b) for i, a in enumerate(results) for b in results[:i])


@contextmanager
def quiet_seeds():
    """Say nothing of seeds, which the checks use on tables of no one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        yield


def published(estimator, X):
    """Return every number that an estimator released, as one vector."""
    return np.concatenate([np.empty(0), *published_parts(estimator, X).values()])


def published_parts(estimator, X):
    """Return the released numbers of each fitted attribute, or of `transform` alone."""
    if releases_in_transform(estimator):
        return {"transform": np.asarray(estimator.transform(X), dtype=float).ravel()}
    return {name: _numbers(getattr(estimator, name)) for name in sorted(fitted_names(estimator))}


def _numbers(value):
    """Return the numbers of an attribute, those of lists and of estimators in it included."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _joined(getattr(value, name) for name in sorted(fitted_names(value)))
    is_ragged = isinstance(value, list | tuple) or getattr(value, "dtype", None) == np.dtype(object)
    if is_ragged:
        return _joined(np.ravel(value) if isinstance(value, np.ndarray) else value)
    if not isinstance(value, np.ndarray | np.generic | float | int):
        return np.empty(0)
    value = np.asarray(value)
    return value.ravel().astype(float) if value.dtype.kind in "iuf" else np.empty(0)


def _joined(values):
    return np.concatenate([np.empty(0), *map(_numbers, values)])


def release(estimator, X, y, **params):
    return published(fit(estimator, X, y, **params), X)


def price(estimator):
    params = estimator.get_params()
    return params["epsilon"], params.get("delta", 0.0)


def budget(estimator, releases):
    epsilon, delta = price(estimator)
    return PrivacyAccountant(releases * epsilon, min(releases * delta, 0.5))


def need_parameters(estimator, *names):
    """Skip a check of an estimator that lacks a parameter."""
    missing = [name for name in names if name not in estimator.get_params()]
    if missing:
        raise SkipTest(f"{type(estimator).__name__} has no parameter {missing[0]}")


def need_accountant(estimator):
    """Skip a check of an estimator that takes no accountant."""
    need_parameters(estimator, "epsilon", "accountant")


def fresh_noise(estimator):
    """Return the parameters with which fits draw noise of their own."""
    return {"random_state": None} if "random_state" in estimator.get_params() else {}


def need_statement(fitted):
    """Skip a check of an estimator that makes no statement."""
    if not hasattr(fitted, "privacy_"):
        raise SkipTest(f"{type(fitted).__name__} publishes no privacy_ statement")


class TableChanger:
    """An accountant that overwrites the table at the moment of the charge."""

    terms = UNACCOUNTED
    hash, time, part, sequence = "0", "", None, 0

    def __init__(self, X, replacement):
        self.X, self.replacement, self.charges = X, replacement, 0

    def can_afford(self, event, **terms):
        return True

    def charge(self, event, **terms):
        self.charges += 1
        self.X[:] = self.replacement
        self.event, self.epsilon, self.delta = event, terms.get("epsilon"), terms.get("delta")
        return self

    def __sklearn_clone__(self):
        return self
