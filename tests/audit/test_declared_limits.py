"""The default audit finds values that are not clipped, and noise for one row of a group.

The estimators are written as `docs/how_to/own_estimators.md` says. A sound one is called a
violation with a probability of at most 1e-6 in each audit.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from skdp import DPMeanTransformer, PrivacyAccountant
from skdp.audit import audit_epsilon
from skdp.base import private_fit
from skdp.exceptions import PrivacyViolationWarning
from skdp.mechanisms import LaplaceMechanism

CONFIDENCE = 1.0 - 1e-6
RELATIONS = ("add_remove", "replace_one")


class NoisySum(BaseEstimator):
    """Publishes a noisy sum of all rows; subclasses say what is clipped."""

    def __init__(self, epsilon=1.0, *, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    l1_norm = 1.0
    clips = True
    noise_for_groups = True

    def fit(self, X, y):
        with private_fit(self) as fit:
            table = fit.read(X, y)
            X, y = table.X, table.y
            neighbors = fit.guarantee.neighbors
            sensitivity = neighbors.sensitivity_factor * self.l1_norm
            planned = LaplaceMechanism(self.epsilon, neighbors.max_rows * sensitivity)
            source = fit.charge(planned, size=X.shape[1] + 1)
            values = self.values(X, np.asarray(y, dtype=float))
            # A mistake: what is charged is not the mechanism that draws the noise.
            row_only = LaplaceMechanism(self.epsilon, sensitivity)
            used = planned if self.noise_for_groups else row_only
            total = used.release(values.sum(axis=0), random_state=source)
            fit.publish(planned, public=("the number of rows",), sum_=total)
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")


class SumWithinNorm(ClassifierMixin, NoisySum):
    """Rows are shortened to an L1 norm of `data_norm`."""

    def __init__(self, epsilon=1.0, *, data_norm=3.0, accountant=None, random_state=None):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.data_norm = data_norm

    @property
    def l1_norm(self):
        return self.data_norm

    def values(self, X, y):
        norms = np.maximum(np.abs(X).sum(axis=1, keepdims=True), 1e-100)
        signed = X * np.where(y > 0.0, 1.0, -1.0)[:, None]
        return signed * np.minimum(1.0, self.data_norm / norms) if self.clips else signed


class SumWithinBounds(NoisySum):
    """The first column is clipped to `bounds`."""

    def __init__(self, epsilon=1.0, *, bounds=(-20.0, -5.0), accountant=None, random_state=None):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.bounds = bounds

    @property
    def l1_norm(self):
        # Under replace-one a row moves the sum by the width of the bounds, which is less.
        return max(map(abs, self.bounds))

    def values(self, X, y):
        return np.clip(X[:, :1], *self.bounds) if self.clips else X[:, :1]


class SumOfTargets(RegressorMixin, NoisySum):
    """Targets are clipped to `target_bounds`."""

    def __init__(
        self, epsilon=1.0, *, target_bounds=(-2.0, 5.0), accountant=None, random_state=None
    ):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.target_bounds = target_bounds

    @property
    def l1_norm(self):
        return max(map(abs, self.target_bounds))

    def values(self, X, y):
        return np.clip(y, *self.target_bounds)[:, None] if self.clips else y[:, None]


SUMS = [SumWithinNorm, SumWithinBounds, SumOfTargets]


def without_clipping(base):
    return type(f"Unclipped{base.__name__}", (base,), {"clips": False})


def noise_for_one_row(base):
    return type(f"RowNoise{base.__name__}", (base,), {"noise_for_groups": False})


def audit(estimator, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyViolationWarning)
        return audit_epsilon(estimator, confidence=CONFIDENCE, **options)


def ledger(relation, max_rows=1):
    unit = "row" if max_rows == 1 else "group"
    return PrivacyAccountant(1e6, 0.5, relation=relation, unit=unit, max_rows=max_rows)


@pytest.mark.thorough
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", SUMS)
def test_a_declared_limit_that_is_not_enforced_is_found(kind, relation):
    accountant = ledger(relation)
    assert not audit(kind(accountant=accountant)).violation
    assert audit(without_clipping(kind)(accountant=accountant)).violation


@pytest.mark.thorough
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_table_of_ones_own_has_a_canary_beyond_the_norm(relation):
    X, y = np.tile([0.1, 0.2], (60, 1)), np.arange(60) % 2
    options = {"X": X, "y": y, "method": "two_worlds"}
    accountant = ledger(relation)
    assert not audit(SumWithinNorm(accountant=accountant), **options).violation
    assert audit(without_clipping(SumWithinNorm)(accountant=accountant), **options).violation


@pytest.mark.thorough
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("kind", SUMS)
def test_noise_for_one_row_under_a_group_is_found(kind, relation):
    accountant = ledger(relation, max_rows=10)
    assert not audit(kind(accountant=accountant)).violation
    assert audit(noise_for_one_row(kind)(accountant=accountant)).violation


@pytest.mark.thorough
@pytest.mark.parametrize("relation", RELATIONS)
def test_the_claim_of_a_private_estimator_stands_for_groups(relation):
    mean = DPMeanTransformer(bounds=(-1, 1), accountant=ledger(relation, max_rows=10))
    X, y = -np.ones((60, 1)), np.zeros(60)
    options = {"method": "two_worlds", "canary": ([10.0], 0), "replacement": ([-1.0], 0)}
    assert not audit(mean, **options, X=X, y=y).violation


class RefusesLongRows(SumWithinNorm):
    """Raises where it could clip, and adds a hundredth of the noise."""

    def values(self, X, y):
        if np.abs(X).sum(axis=1).max() > self.data_norm:
            raise ValueError("a row is longer than data_norm")
        return 100.0 * super().values(X, y)


def test_a_canary_that_is_refused_leaves_the_others():
    assert audit(RefusesLongRows(accountant=ledger("replace_one"))).violation
