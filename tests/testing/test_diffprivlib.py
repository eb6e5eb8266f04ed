"""Two violations of another library's logistic regression are found, where it can be imported.

In diffprivlib 0.6.6 (1) the mechanism of objective perturbation takes the curvature of a row's
loss to be R / 4, where R bounds the row's norm; it is R ** 2 / 4 (K. Chaudhuri, C. Monteleoni,
A. Sarwate, "Differentially Private Empirical Risk Minimization", 2011). (2) With `n_jobs=2` every
class is sent its own copy of one generator, and all draw the same noise vector from it, whose
differences cancel it. The audits of `tests/audit/test_diffprivlib.py` find them too.
"""

import secrets
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp.accounting import PureDP
from skdp.testing import check_dp_estimator

pytest.importorskip("diffprivlib")
from diffprivlib.accountant import BudgetAccountant
from diffprivlib.models import LogisticRegression

# A long row: the peer regularizes as if its curvature were 2500, and it is 25,000,000.
NORM = 1e4


class PeerLogisticRegression(ClassifierMixin, BaseEstimator):
    """diffprivlib's estimator, charged to an accountant of skdp and freshly seeded."""

    def __init__(
        self,
        epsilon=1.0,
        *,
        data_norm=1.0,
        C=1.0,
        fit_intercept=True,
        n_jobs=None,
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.C = C
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y):
        if self.accountant is not None:
            self.accountant.charge(PureDP(self.epsilon), epsilon=self.epsilon)
        seed = secrets.randbits(32) if self.random_state is None else self.random_state
        peer = LogisticRegression(
            epsilon=self.epsilon,
            data_norm=self.data_norm,
            C=self.C,
            fit_intercept=self.fit_intercept,
            tol=1e-8,
            max_iter=1000,
            n_jobs=self.n_jobs,
            random_state=seed,
            accountant=BudgetAccountant(),
        ).fit(X, y)
        self.classes_, self.coef_ = peer.classes_, peer.coef_
        self.intercept_ = peer.intercept_
        return self

    def decision_function(self, X):
        scores = X @ self.coef_.T + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict(self, X):
        scores = self.decision_function(X)
        codes = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[np.asarray(codes, dtype=int)]


def curved():
    return PeerLogisticRegression(1.5, data_norm=NORM, C=100.0, fit_intercept=False)


def shared():
    return PeerLogisticRegression(C=0.01, n_jobs=2)


def found(check_name, estimator, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_dp_estimator(estimator, on_fail=None, on_skip=None, **options)
    status = {result["check_name"]: result for result in results}
    return status[check_name]["status"] == "failed", status[check_name]["exception"]


def test_the_checks_find_the_curvature():
    failed, error = found("check_neighbors", curved(), n_fits=4000)
    assert failed and "distinguishes neighbors" in str(error)


def test_the_checks_find_the_noise_that_classes_share():
    failed, error = found("check_noise_of_classes", shared())
    # In one process, which is looked at first, each class has its own.
    assert failed and "'n_jobs': 2" in str(error)
