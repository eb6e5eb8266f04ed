"""Tables, fits and released numbers for the checks of `skdp.utils.estimator_checks`."""

import warnings
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import SkipTest

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from skdp.accounting import PrivacyAccountant
from skdp.base import fitted_names
from skdp.exceptions import SeededNoiseWarning

N_ROWS, N_FEATURES = 60, 4


def make_table(estimator, seed=0):
    """Return X and a label that depends on X."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, size=(N_ROWS, N_FEATURES))
    y = (X[:, 0] + 0.1 * rng.normal(size=N_ROWS) > 0).astype(int)
    y[:2] = 0, 1
    if "categories" in estimator.get_params():
        X = np.floor(3.0 * (X + 0.5))
    return X, y


def releases_in_transform(estimator):
    return get_tags(estimator).non_deterministic and hasattr(estimator, "transform")


def fit(estimator, X, y, **params):
    """Fit a clone with some parameters changed; nothing is said of seeds."""
    estimator = clone(estimator).set_params(**params)
    required = get_tags(estimator).target_tags.required
    return estimator.fit(X, y) if required else estimator.fit(X)


@contextmanager
def quiet_seeds():
    """Say nothing of seeds, which the checks use on tables of no one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        yield


def published(estimator, X):
    """Return every number that an estimator released, as one vector."""
    if releases_in_transform(estimator):
        return np.asarray(estimator.transform(X)).ravel()
    values = [_floats(getattr(estimator, name)) for name in sorted(fitted_names(estimator))]
    return np.concatenate([np.empty(0), *values])


def _floats(value):
    """Return the floating-point numbers of an attribute, of lists and of estimators in it."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return np.concatenate(
            [np.empty(0), *(_floats(getattr(value, n)) for n in sorted(fitted_names(value)))]
        )
    is_ragged = isinstance(value, list | tuple) or getattr(value, "dtype", None) == np.dtype(object)
    if is_ragged:
        items = value.ravel() if isinstance(value, np.ndarray) else value
        return np.concatenate([np.empty(0), *(_floats(item) for item in items)])
    if not isinstance(value, np.ndarray | np.generic | float):
        return np.empty(0)
    value = np.asarray(value)
    return value.ravel() if value.dtype.kind == "f" else np.empty(0)


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
    """Skip a check of an estimator that takes no skdp accountant."""
    need_parameters(estimator, "accountant")
    X, y = make_table(estimator)
    try:
        fit(estimator, X, y, accountant=PrivacyAccountant(1e9, 0.5))
    except TypeError as error:
        reason = f"{type(estimator).__name__} takes no PrivacyAccountant: {error}"
        raise SkipTest(reason) from error


def need_statement(fitted):
    """Skip a check of an estimator that makes no statement."""
    if not hasattr(fitted, "privacy_"):
        raise SkipTest(f"{type(fitted).__name__} publishes no privacy_ statement")


class TableChanger:
    """An accountant that overwrites the table at the moment of the charge."""

    terms = SimpleNamespace(relation="add_remove", unit="row", max_rows=1, composition="basic")
    hash, time, part, sequence = "0", "", None, 0

    def __init__(self, X, replacement):
        self.X, self.replacement, self.charges = X, replacement, 0

    def can_afford(self, event, **terms):
        return True

    def charge(self, event, **terms):
        self.charges += 1
        self.X[:] = self.replacement
        self.epsilon, self.delta = terms["epsilon"], terms.get("delta", 0.0)
        return self

    def __sklearn_clone__(self):
        return self
