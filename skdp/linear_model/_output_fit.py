"""A fit by output perturbation, from an estimator's parameters to its coefficients."""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from skdp.base import relation_of
from skdp.linear_model._data_norm import check_data_norm, plan_norm
from skdp.linear_model._output_perturbation import balanced_C, plan_output_perturbation
from skdp.linear_model._rows import BoundedRows
from skdp.utils._validation import (
    check_boolean,
    check_magnitude,
    check_positive,
    check_privacy_parameters,
)

__all__ = [
    "LinearRelease",
    "LinearSettings",
    "check_linear_settings",
    "check_strength",
    "fit_by_output_perturbation",
]

# The norm of weights, times data_norm, that hinge and Poisson models are balanced for. Logistic
# regression's own, which is larger, was tuned for its mechanisms; this one with Adult in view.
BALANCED_WEIGHTS_NORM = 5.0


@dataclass(frozen=True)
class LinearSettings:
    """Checked parameters that linear estimators have in common.

    Parameters
    ----------
    epsilon, delta : float
    data_norm : float
    constant : float
        The value of the constant feature, 0 for none.
    """

    epsilon: float
    delta: float
    data_norm: float
    constant: float

    @property
    def norm(self):
        """The bound on the norm of a row with its constant feature."""
        return math.hypot(self.data_norm, self.constant)


@dataclass(frozen=True)
class LinearRelease:
    """Noisy coefficients of shape (n_outputs, n_columns), intercepts, and what they come from."""

    coef: np.ndarray
    intercept: np.ndarray
    C: float
    mechanism: object
    data_norm: float


def check_linear_settings(estimator):
    """Return an estimator's `LinearSettings`, or raise `ValueError`."""
    epsilon, delta = check_privacy_parameters(estimator.epsilon, estimator.delta)
    data_norm = check_data_norm(estimator.data_norm)
    scaling = check_magnitude(estimator.intercept_scaling, "intercept_scaling")
    fit_intercept = check_boolean(estimator.fit_intercept, "fit_intercept")
    constant = scaling * data_norm if fit_intercept else 0.0
    return LinearSettings(epsilon, delta, data_norm, constant)


def check_strength(value, name):
    """Return a regularisation strength as a positive float, or None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ValueError(f"{name} must be a positive number or 'auto', got {value!r}")
    return check_positive(value, name)


def fit_by_output_perturbation(estimator, fit, settings, loss, X, y, C=None):
    """Plan, charge and run a fit.

    Parameters
    ----------
    estimator : estimator
        With parameters `data_norm` and `accountant`.
    fit : PrivateFit
    settings : LinearSettings
    loss : loss
        From `skdp._losses`.
    X : array, CSR matrix or ChunkedArray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
        Targets as the loss takes them.
    C : float, default=None
        Inverse regularisation strength; None balances it against the noise.

    Returns
    -------
    LinearRelease
    """
    n_rows, n_columns = X.shape
    constant, relation = settings.constant, relation_of(estimator.accountant)
    public = (loss, n_rows, n_columns + (constant > 0), settings.norm)
    norm = plan_norm(estimator.data_norm, n_rows, settings.epsilon, settings.delta, relation)
    budget = (norm.epsilon, settings.delta, relation)
    if C is None:
        C = balanced_C(*public, BALANCED_WEIGHTS_NORM / settings.data_norm, *budget)
    plan = plan_output_perturbation(*public, C, *budget)

    n_weights = math.prod(loss.weights_shape) * (n_columns + (constant > 0))
    plan.mechanism.check_size(n_weights)
    mechanism = norm.joined(plan.mechanism)
    source = fit.charge(mechanism)
    unit = norm.run(X, source)
    rows = BoundedRows(X, settings.data_norm, constant, unit)
    weights = np.atleast_2d(plan.run(loss, rows, y, source))

    intercept = constant * weights[:, -1] if constant else np.zeros(len(weights))
    coef = weights[:, :n_columns] / unit
    return LinearRelease(coef, intercept, C, mechanism, unit * settings.data_norm)
