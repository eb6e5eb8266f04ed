"""What the checks of `skdp.testing` try an estimator on: a table, fits, released numbers."""

from functools import partial
from unittest import SkipTest, TestCase
from warnings import catch_warnings

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from skdp.base import fitted_names
from skdp.exceptions import SeededNoiseWarning
from skdp.ledger import PrivacyAccountant

N_ROWS = 60
N_FEATURES = 4
# With these two tables of 60 rows look alike: 60 removed and 60 added, e^0.12 is nearly 1.
UNTELLING = {"epsilon": 1e-3}
TRIES = 3

# A context that says nothing of seeds, which the checks use on tables of no one.
quiet_seeds = partial(catch_warnings, action="ignore", category=SeededNoiseWarning)


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


class Case:
    """An estimator under a check, with a table, and what is published of fits to it.

    A check of one that lacks a parameter that it sets, or its price, is skipped.

    Parameters
    ----------
    estimator : estimator
        Unfitted.
    """

    def __init__(self, estimator):
        self.estimator, self.params = estimator, estimator.get_params()
        self.tags = get_tags(estimator)
        self.X, self.y = make_table(estimator)
        # Of other rows, for the same targets.
        self.other_X, _ = make_table(estimator, seed=1)

    def needs(self, *names):
        """Skip the check of an estimator that lacks a parameter."""
        missing = [name for name in names if name not in self.params]
        if missing:
            raise SkipTest(f"{type(self.estimator).__name__} has no parameter {missing[0]}")

    def made(self, **params):
        """Return a clone with some parameters changed."""
        self.needs(*params)
        return clone(self.estimator).set_params(**params)

    def fit(self, X=None, y=None, groups=None, **params):
        """Fit a clone with some parameters changed, to the table if no other is given."""
        X, y = self.X if X is None else X, self.y if y is None else y
        given = {} if groups is None else {"groups": groups}
        table = (X, y) if self.tags.target_tags.required else (X,)
        return self.made(**params).fit(*table, **given)

    def published(self, fitted, X=None):
        """Return every number that an estimator released, as one vector."""
        return np.concatenate([np.empty(0), *self.published_parts(fitted, X).values()])

    def published_parts(self, fitted, X=None):
        """Return the released numbers of each fitted attribute, or of `transform` alone."""
        if self.releases_in_transform:
            table = self.X if X is None else X
            return {"transform": np.asarray(fitted.transform(table), dtype=float).ravel()}
        return {name: _numbers(getattr(fitted, name)) for name in sorted(fitted_names(fitted))}

    def refit(self, estimator):
        """Fit an estimator to the table and return what it released."""
        return self.published(estimator.fit(self.X, self.y))

    def release(self, X=None, **params):
        """Return what a clone releases with some parameters changed."""
        return self.published(self.fit(X, **params), X)

    def stated(self, fitted):
        """Return what a fitted estimator states; skip the check of one that states nothing."""
        if not hasattr(fitted, "privacy_"):
            raise SkipTest(f"{type(fitted).__name__} publishes no privacy_ statement")
        return fitted.privacy_

    @property
    def releases_in_transform(self):
        return self.tags.non_deterministic and hasattr(self.estimator, "transform")

    @property
    def price(self):
        """What a release claims, (epsilon, delta)."""
        self.needs("epsilon")
        return self.params["epsilon"], self.params.get("delta", 0.0)

    def budget(self, releases):
        """Return an accountant that can pay for so many releases."""
        epsilon, delta = self.price
        return PrivacyAccountant(releases * epsilon, min(releases * delta, 0.5))

    def check_booked(self, charges, releases):
        """Break a check's rule if a ledger's charges are not those of so many releases."""
        prices = {(charge.epsilon, charge.delta) for charge in charges}
        assert len(charges) == releases, f"{releases} releases made {len(charges)} records"
        assert prices == {self.price}, f"prices are {prices}"

    def seeded(self, seed):
        """Return the parameters with which fits draw noise of a seed; of their own for None."""
        return {"random_state": seed} if "random_state" in self.params else {}

    def repeats_noise(self, releases):
        """Say whether two of some releases are the same, and not because a few integers are.

        A count with geometric noise often has the same value twice. At epsilon = 0.001 two of four
        such counts are the same with a probability below 4e-3, in three tries each below 1e-7.

        Parameters
        ----------
        releases : callable
            Makes releases of a case.
        """
        if not _has_two_alike(releases(self)):
            return False
        if "epsilon" not in self.params:
            return True
        noisy = Case(self.made(**UNTELLING))
        return all(_has_two_alike(releases(noisy)) for _ in range(TRIES))


def _has_two_alike(results):
    return any(np.array_equal(a, b) for i, a in enumerate(results) for b in results[:i])


def must_raise(error, otherwise):
    """Return a context that breaks a check's rule if its block does not raise."""
    return TestCase().assertRaises(error, msg=otherwise)


def _numbers(value):
    """Return the numbers of an attribute, those of lists and of estimators in it included."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _joined(getattr(value, name) for name in sorted(fitted_names(value)))
    is_ragged = isinstance(value, list | tuple) or getattr(value, "dtype", None) == np.dtype(object)
    if is_ragged:
        return _joined(np.ravel(value) if isinstance(value, np.ndarray) else value)
    value = np.asarray(value)
    return value.ravel().astype(float) if value.dtype.kind in "iuf" else np.empty(0)


def _joined(values):
    return np.concatenate([np.empty(0), *map(_numbers, values)])
