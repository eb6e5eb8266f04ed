"""The case of a check: an estimator with a small table, its fits and the released numbers."""

from functools import partial
from itertools import combinations
from unittest import SkipTest, TestCase
from warnings import catch_warnings

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, get_tags

from skdp.base import fitted_names
from skdp.exceptions import SeededNoiseWarning
from skdp.ledger import PrivacyAccountant
from skdp.utils._documents import count_of

# Size of the synthetic table to which estimators are fitted: a fit takes milliseconds.
N_ROWS = 60
N_FEATURES = 4
# Parameters that add so much noise that two tables of 60 rows cannot be distinguished: by group
# privacy for 60 removed and 60 added rows, probabilities differ by a factor of at most e^0.12.
HIGH_NOISE = {"epsilon": 1e-3}
N_TRIES = 3

# Suppresses warnings about seeds, which are harmless for synthetic tables.
ignore_seed_warnings = partial(catch_warnings, action="ignore", category=SeededNoiseWarning)


def make_table(estimator, seed=0):
    """Return X and a target that depends on X: a label, or an end of the declared range."""
    rng = check_random_state(seed)
    X = rng.uniform(-0.5, 0.5, size=(N_ROWS, N_FEATURES))
    y = (X[:, 0] + 0.1 * rng.normal(size=N_ROWS) > 0).astype(int)
    y[:2] = 0, 1
    if needs_categories(estimator):
        X = np.floor(3.0 * (X + 0.5))
    bounds = estimator.get_params().get("target_bounds")
    if isinstance(bounds, tuple | list) and not is_classifier(estimator):
        y = np.asarray(bounds, dtype=float)[y]
    return X, y


def needs_categories(estimator):
    """Return True if an estimator expects categories: they are declared, or it has no `bounds`."""
    parameters = estimator.get_params(deep=False)
    if "categories" not in parameters:
        return False
    return parameters["categories"] is not None or "bounds" not in parameters


class Case:
    """The estimator that a check tests, a table, and the values that its fits release.

    Checks are skipped if the estimator lacks a parameter that they set.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator.
    """

    def __init__(self, estimator):
        self.estimator = estimator
        self.params = estimator.get_params()
        self.tags = get_tags(estimator)
        self.X, self.y = make_table(estimator)
        # Other rows for the same targets.
        self.other_X, _ = make_table(estimator, seed=1)

    def needs(self, *names):
        """Skip the check if the estimator lacks one of these parameters."""
        missing = [name for name in names if name not in self.params]
        if missing:
            raise SkipTest(f"{type(self.estimator).__name__} has no parameter {missing[0]}")

    def clone_with(self, **params):
        """Return a clone with changed parameters."""
        self.needs(*params)
        return clone(self.estimator).set_params(**params)

    def fit(self, X=None, y=None, groups=None, **params):
        """Return a clone with changed parameters, fitted to the table or to another one."""
        if X is None:
            X = self.X
        if y is None:
            y = self.y
        table = (X,)
        if self.tags.target_tags.required:
            table = (X, y)
        estimator = self.clone_with(**params)
        if groups is None:
            return estimator.fit(*table)
        return estimator.fit(*table, groups=groups)

    def published(self, fitted, X=None):
        """Return all numbers that an estimator released, as one vector."""
        return np.concatenate([np.empty(0), *self.published_by_attribute(fitted, X).values()])

    def published_by_attribute(self, fitted, X=None):
        """Return the released numbers of each fitted attribute, or of `transform`."""
        if self.releases_in_transform:
            if X is None:
                X = self.X
            return {"transform": np.asarray(fitted.transform(X), dtype=float).ravel()}
        return {name: _numbers(getattr(fitted, name)) for name in sorted(fitted_names(fitted))}

    def refit(self, estimator):
        """Fit an estimator to the table and return the released numbers."""
        return self.published(estimator.fit(self.X, self.y))

    def release(self, X=None, **params):
        """Return the numbers that a clone with changed parameters releases."""
        return self.published(self.fit(X, **params), X)

    def statement_of(self, fitted):
        """Return the privacy statement of a fitted estimator; skip the check if there is none."""
        if not hasattr(fitted, "privacy_"):
            raise SkipTest(f"{type(fitted).__name__} publishes no privacy_ statement")
        return fitted.privacy_

    @property
    def releases_in_transform(self):
        """True if the release is `transform` (local differential privacy)."""
        return self.tags.non_deterministic and hasattr(self.estimator, "transform")

    @property
    def privacy_cost(self):
        """The claimed cost of a release, (epsilon, delta). A fit may spend less delta."""
        self.needs("epsilon")
        return self.params["epsilon"], self.params.get("delta", 0.0)

    def budget(self, n_releases):
        """Return an accountant with a budget for this number of releases."""
        epsilon, delta = self.privacy_cost
        return PrivacyAccountant(n_releases * epsilon, min(n_releases * delta, 0.5))

    def check_charges(self, charges, n_releases):
        """Check that a ledger contains the charges of this number of releases, and return the cost.

        Each must cost the epsilon of the parameters and at most their delta: a fit that may choose
        its noise spends no delta if it chooses noise that needs none. The choice depends on public
        facts alone, so all these releases cost the same.

        Returns
        -------
        tuple of (epsilon, delta)
            The cost of each charge.
        """
        costs = {(charge.epsilon, charge.delta) for charge in charges}
        assert len(charges) == n_releases, (
            f"{count_of(n_releases, 'release')} caused {count_of(len(charges), 'charge')}"
        )
        assert len(costs) == 1, f"releases with the same parameters cost {sorted(costs)}"
        cost = costs.pop()
        epsilon, delta = self.privacy_cost
        assert cost[0] == epsilon and cost[1] <= delta, (
            f"each charge costs {cost}, but the claim is {self.privacy_cost}"
        )
        return cost

    def seed_params(self, seed):
        """Return the parameters of a fit with this seed; None for noise that is not seeded."""
        if "random_state" in self.params:
            return {"random_state": seed}
        return {}

    def repeats_noise(self, releases):
        """Return True if two of the releases are equal because they share their noise.

        Counts with geometric noise are often equal by chance. At epsilon = 0.001, the probability
        that two of four such counts are equal is below 4e-3, and it is below 1e-7 for three tries
        in a row.

        Parameters
        ----------
        releases : callable
            Function that returns a list of releases for a case.

        Returns
        -------
        bool
        """
        if not _has_equal_pair(releases(self)):
            return False
        if "epsilon" not in self.params:
            return True
        noisy = Case(self.clone_with(**HIGH_NOISE))
        return all(_has_equal_pair(releases(noisy)) for _ in range(N_TRIES))


def _has_equal_pair(results):
    """Return True if two of the arrays are equal."""
    return any(np.array_equal(a, b) for a, b in combinations(results, 2))


def must_raise(error, otherwise):
    """Return a context that fails with a message if its block does not raise this error."""
    return TestCase().assertRaises(error, msg=otherwise)


def _numbers(value):
    """Return the numbers in an attribute, including those in lists and estimators."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        return _concatenate(getattr(value, name) for name in sorted(fitted_names(value)))
    is_ragged = isinstance(value, list | tuple) or getattr(value, "dtype", None) == np.dtype(object)
    if is_ragged:
        if isinstance(value, np.ndarray):
            value = value.ravel()
        return _concatenate(value)
    value = np.asarray(value)
    if value.dtype.kind in "iuf":
        return value.ravel().astype(float)
    return np.empty(0)


def _concatenate(values):
    """Return the numbers in all values as one vector."""
    return np.concatenate([np.empty(0), *map(_numbers, values)])
