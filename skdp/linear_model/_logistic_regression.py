"""Logistic regression with differential privacy."""

import math
from numbers import Real

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import BaseEstimator

from skdp._losses import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp.base import PrivateFit, relation_of
from skdp.linear_model._classifier import PrivateLinearClassifierMixin
from skdp.linear_model._output_perturbation import (
    EXPECTED_WEIGHTS_NORM,
    balanced_C,
    plan_output_perturbation,
)
from skdp.linear_model._rows import BoundedRows
from skdp.utils._tables import validate_table
from skdp.utils._validation import (
    check_boolean,
    check_classes,
    check_positive,
    check_privacy_parameters,
)

__all__ = ["DPLogisticRegression"]


class DPLogisticRegression(PrivateLinearClassifierMixin, BaseEstimator):
    r"""Logistic regression by output perturbation.

    The regularised logistic loss is minimised to a certified gradient norm and noise is added
    to the weights. Rows longer than `data_norm` are scaled down to it, in `fit` only.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        with the number of weights.
    C : float or "auto", default="auto"
        Inverse regularisation strength as in scikit-learn: the objective is the summed loss
        times C plus half the squared norm of all weights, the intercept's included. The noise
        grows with C. "auto" balances regularisation against noise from public quantities: the
        numbers of rows, columns and classes, epsilon, delta and the norm bound.
    data_norm : float, default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
    fit_intercept : bool, default=True
        Whether to add a constant feature of value ``intercept_scaling * data_norm``, whose
        coefficient makes the intercept.
    intercept_scaling : float, default=0.3
        The size of the constant feature relative to `data_norm`. Larger values regularise
        the intercept less and cost more noise in every weight.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None takes the labels of y and thereby declares them public;
        the privacy statement says so. A declared class without rows is fitted like any other.
    accountant : PrivacyAccountant, default=None
        Where fits are charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes
        the noise reproducible and thereby removable by whoever knows it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Noisy coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts, 0 without `fit_intercept`.
    C_ : float
        The regularisation used, from public quantities.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features, where X has string names.
    privacy_ : PrivacyStatement
        What was guaranteed, and under which assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant refuses; the estimator is left unfitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/guarantees.md``.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    B. Balle and Y.-X. Wang. Improving the Gaussian mechanism for differential privacy. ICML
    2018.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLogisticRegression
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLogisticRegression(epsilon=1.0, delta=1e-6, data_norm=3.0).fit(X, y)
    >>> model.coef_.shape
    (1, 5)
    >>> model.privacy_.epsilon
    1.0
    """

    def __init__(
        self,
        epsilon=1.0,
        *,
        delta=1e-6,
        C="auto",
        data_norm=1.0,
        fit_intercept=True,
        intercept_scaling=0.3,
        classes=None,
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.C = C
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, sparse matrix, ChunkedArray or dask array of shape (n_samples, n_features)
            Rows; longer ones are scaled down to `data_norm`. Data larger than memory are read
            block by block.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : DPLogisticRegression
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant refuses; the estimator is left unfitted.
        """
        with PrivateFit(self) as fit:
            epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
            data_norm, constant = self._check_norms()
            X, y = validate_table(self, X, y)
            classes, codes = check_classes(self.classes, y)
            loss = _loss(len(classes))
            shape = (X.shape[0], X.shape[1] + (constant > 0))
            public = (loss, *shape, _row_norm(data_norm, constant))
            relation = relation_of(self.accountant)
            C = self._check_C(public, data_norm, epsilon, delta, relation)
            plan = plan_output_perturbation(*public, C, epsilon, delta, relation)

            source = fit.charge(plan.mechanism)
            rows = BoundedRows(X, data_norm, constant)
            weights = plan.run(loss, rows, codes, source)

            weights = np.atleast_2d(weights)
            n_outputs = len(weights)
            intercept = constant * weights[:, -1] if constant else np.zeros(n_outputs)
            fit.publish(
                plan.mechanism,
                public=self._assumptions(),
                classes_=classes,
                coef_=weights[:, : X.shape[1]].copy(),
                intercept_=intercept,
                C_=C,
            )
        return self

    def predict_proba(self, X):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    def predict_log_proba(self, X):
        """Return the logarithms of the classes' probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        return log_softmax(scores, axis=1)

    def _check_norms(self):
        data_norm = check_positive(self.data_norm, "data_norm")
        if not 1e-50 <= data_norm <= 1e50:
            raise ValueError(f"data_norm must be between 1e-50 and 1e50, got {data_norm!r}")
        scaling = check_positive(self.intercept_scaling, "intercept_scaling")
        if scaling > 1e50:
            raise ValueError(f"intercept_scaling must be at most 1e50, got {scaling!r}")
        fit_intercept = check_boolean(self.fit_intercept, "fit_intercept")
        return data_norm, scaling * data_norm if fit_intercept else 0.0

    def _check_C(self, public, data_norm, epsilon, delta, relation):
        if isinstance(self.C, str) and self.C == "auto":
            weights_norm = EXPECTED_WEIGHTS_NORM / data_norm
            return balanced_C(*public, weights_norm, epsilon, delta, relation)
        if not isinstance(self.C, Real):
            raise ValueError(f"C must be a positive number or 'auto', got {self.C!r}")
        return check_positive(self.C, "C")

    def _assumptions(self):
        labels = "the labels of y" if self.classes is None else "the declared classes"
        return ("the numbers of rows and columns", "data_norm", labels)


def _row_norm(data_norm, constant):
    """Return the bound on the norm of a row with its constant feature."""
    return math.hypot(data_norm, constant)


def _loss(n_classes):
    return BinaryLogisticLoss() if n_classes == 2 else MultinomialLogisticLoss(n_classes)
