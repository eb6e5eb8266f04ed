"""Linear classification with noisy stochastic gradients."""

import math
from functools import partial
from typing import Literal

import numpy as np
from sklearn.utils.metaestimators import available_if

from skdp._data._row_wise import row_sums
from skdp._optim import _classification_losses
from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model import _classifier
from skdp.linear_model._balanced import is_balanced, plan_balanced, weighted_result
from skdp.linear_model._baseline import MAX_SCORE, reserve_for_class_baseline
from skdp.linear_model._dp_sgd import PartialFit, PrivateSGDModel
from skdp.utils._types import Classes
from skdp.utils._validation import check_choice

# Half the width of the hinge's rounded corner. A rounding error in a score changes the residual by
# the error divided by this width.
HINGE_CORNER = 2.0**-10

# The losses, each with its derivative at zero weights. Step sizes use it as the curvature too,
# because the hinge has no useful curvature.
HINGES = {
    "hinge": (_classification_losses.BinaryHuberizedHingeLoss(HINGE_CORNER), 1.0),
    "squared_hinge": (_classification_losses.SquaredHingeLoss(), 2.0),
    "modified_huber": (_classification_losses.ModifiedHuberLoss(), 2.0),
}
LOSSES = ("log_loss", *HINGES)


def _has_probabilities(estimator):
    """Return True; raise `AttributeError` if the loss has no probabilities (for `available_if`)."""
    if estimator.loss not in ("log_loss", "modified_huber"):
        raise AttributeError(
            f"loss is {estimator.loss!r}, which has no probabilities; use 'log_loss' or "
            "'modified_huber'"
        )
    return True


def _has_fixed_weights(estimator):
    """Return True, or raise `AttributeError` if class weights are balanced (for `available_if`)."""
    # scikit-learn also refuses balanced weights in `partial_fit`, because later rows are unknown.
    if is_balanced(estimator.class_weight):
        raise AttributeError(
            "class_weight='balanced' is not supported by partial_fit, because its calls would "
            "have different weights; pass a dict of public weights"
        )
    return True


class DPSGDClassifier(
    PrivateSGDModel, _classifier.LogisticProbabilitiesMixin, _classifier.PrivateLinearClassifier
):
    """Linear classifier fitted with noisy stochastic gradients (DP-SGD).

    Each step draws a batch of rows, clips each row's gradient to `max_grad_norm`, adds noise to
    their sum and updates the weights with the result. The parameter `sampling` determines the
    batches, the noise and the privacy cost together. All settings that are "auto" are
    computed from public quantities by a rule documented in ``docs/theory/dp_sgd.md``. With two
    classes and automatic settings, `fit` first releases the mean row, which is then subtracted from
    the rows, and standard deviations, by which columns are divided if a class is rare. The last
    steps of `fit` test the weights: to the extent that these explain no more than chance, they are
    shrunk towards noisy class frequencies, by a factor of at least 0.1.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a call of `fit` or of `partial_fit`, positive.
    delta : float, default=1e-6
        The delta of a call, in [0, 1). With 0, gradients are clipped in L1 norm and the noise is
        Laplace noise.
    data_norm : float, default=1.0
        Expected norm of rows, between 1e-50 and 1e50, which determines the automatic settings. It
        must not be computed from the data. Longer rows are not scaled down: their gradients are
        clipped, so the guarantee does not depend on this parameter.
    fit_intercept : bool, default=True
        Whether to fit an intercept, with a constant feature of value
        ``intercept_scaling * data_norm``. The feature is part of a gradient's norm.
    intercept_scaling : float, default=0.3
        Value of the constant feature relative to `data_norm`.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None uses the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"}, default="log_loss"
        "log_loss" is logistic regression, with the softmax for several classes. The other losses
        fit each class against the rest, jointly for all classes and with one clip. The corner of
        "hinge" is rounded between the margins 1 - 2**-10 and 1 + 2**-10.
    penalty : {"l2", None}, default="l2"
        Penalty that is added to the mean loss: alpha times half the squared norm of `coef_`. In
        `fit`, the intercept is penalized by its distance from noisy class frequencies, and more
        strongly the more noise there is. A fraction of epsilon is spent on these frequencies.
    alpha : float or "auto", default="auto"
        Regularization strength as in scikit-learn, at least 0. "auto" balances regularization and
        noise.
    max_grad_norm : float or "auto", default="auto"
        Norm to which the gradient of a row, for all classes and the intercept together, is clipped:
        the L2 norm, or L1 with delta = 0. For classes with smaller weights, this norm is multiplied
        by their weight over the largest one. "auto" clips rows of norm `data_norm` whose residual
        exceeds the one at zero weights.
    sampling : {"auto", "full", "poisson", "without_replacement"}, default="auto"
        "full": all rows in each step. "poisson" (delta > 0): each row with the same probability,
        independently. "without_replacement" (delta = 0): batches of fixed size. "auto" uses partial
        batches if `batch_size` is less than the number of rows, or if steps on all rows would take
        too long.
    batch_size : int or "auto", default="auto"
        Number of rows per step, at most the number of rows of the table; the expected number with
        "poisson".
    max_iter : int or "auto", default="auto"
        Number of epochs. In an epoch, the batches of `batch_size` rows together have as many rows
        as the table. There is no early stopping.
    optimizer : {"nesterov", "sgd", "adam"}, default="nesterov"
        Optimizer: Nesterov's accelerated gradient, gradient descent with momentum, or Adam.
    learning_rate : {"constant", "invscaling", "linear"}, default="constant"
        Step size of step t of T: eta0, ``eta0 / t**power_t`` or ``eta0 * (T + 1 - t) / T``.
    eta0 : float or "auto", default="auto"
        First step size. "auto" uses the largest one that the smoothness of the loss allows.
    power_t : float, default=0.5
        Exponent of "invscaling".
    momentum : float or "auto", default="auto"
        Momentum, in [0, 1). "auto" depends on the condition number for "nesterov", and is 0 for
        "sgd" and 0.9 for "adam".
    average : bool, default=True
        Whether to return the mean of the last half of the iterates instead of the last one.
    projection_radius : float, default=None
        If not None, weights are projected onto the ball of this norm after each step.
    partial_fit_rows : {"any", "disjoint"}, default="any"
        How the rows of several calls of `partial_fit` are related. "any": nothing is declared, and
        the costs of the calls add up. "disjoint" declares that no row is in two calls. The calls
        are then charged by parallel composition: only the most expensive one counts, or the two
        most expensive ones with "replace_one". For groups of k rows, k times as many count. With
        persons as the unit, costs still add up, because a person may have rows in any call.
    class_weight : dict or "balanced", default=None
        Weights of classes. A dict has public weights between 1e-50 and 1e50; classes that are not
        in it have weight 1. "balanced" weights class c by n / (k n_c), as scikit-learn does, from
        class counts that the fit releases first, for at most a tenth of epsilon. Counts are raised
        to the standard deviation of their noise and to n / (100 k), so a weight is at most
        100. The noise grows with the largest weight. `partial_fit` does not support "balanced".
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws batches and noise from the operating system's cryptographic generator. An int
        makes them reproducible, for tests and examples: anyone who knows it can remove the noise.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    class_weight_ : ndarray of shape (n_classes,)
        The released weight of each class; only with ``class_weight="balanced"``.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Noisy coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts, 0 without `fit_intercept`.
    n_iter_ : int
        Number of epochs.
    alpha_, max_grad_norm_, eta0_, momentum_ : float
        Settings that were used. Those of centered rows refer to rows that are divided by their
        released size, and those of whitened rows to the whitened rows, whose steps are scaled by
        their released second moment. `alpha_`, `eta0_` and `momentum_` then depend on the released
        class frequencies, too.
    batch_size_ : int
        Batch size that was used.
    sampling_ : str
        Sampling that was used.
    noise_multiplier_ : float
        Noise scale of a step divided by the sensitivity of the step's sum to one row or person.
    n_partial_fits_ : int
        Number of calls of `partial_fit` since the last `fit`; only after `partial_fit`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the model, for all calls together, and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit, for any rows. The numbers of rows and columns are public. The proofs are in
    ``docs/theory/dp_sgd.md``.

    References
    ----------
    R. Bassily, A. Smith and A. Thakurta. Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS 2014.

    M. Abadi et al. Deep learning with differential privacy. CCS 2016.

    I. Mironov, K. Talwar and L. Zhang. Rényi differential privacy of the sampled Gaussian
    mechanism. 2019.

    B. Balle, G. Barthe and M. Gaboardi. Privacy amplification by subsampling: tight analyses via
    couplings and divergences. NeurIPS 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPSGDClassifier
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPSGDClassifier(epsilon=1.0, data_norm=3.0).fit(X, y)
    >>> model.coef_.shape
    (1, 5)
    >>> bool(model.score(X, y) > 0.75)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        classes: Classes | None = None,
        loss: Literal["log_loss", "hinge", "squared_hinge", "modified_huber"] = "log_loss",
        penalty: Literal["l2"] | None = "l2",
        alpha: float | Literal["auto"] = "auto",
        max_grad_norm: float | Literal["auto"] = "auto",
        sampling: Literal["auto", "full", "poisson", "without_replacement"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        max_iter: int | Literal["auto"] = "auto",
        optimizer: Literal["nesterov", "sgd", "adam"] = "nesterov",
        learning_rate: Literal["constant", "invscaling", "linear"] = "constant",
        eta0: float | Literal["auto"] = "auto",
        power_t: float = 0.5,
        momentum: float | Literal["auto"] = "auto",
        average: bool = True,
        projection_radius: float | None = None,
        partial_fit_rows: Literal["any", "disjoint"] = "any",
        class_weight: dict | Literal["balanced"] | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.classes = classes
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.max_grad_norm = max_grad_norm
        self.sampling = sampling
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.momentum = momentum
        self.average = average
        self.projection_radius = projection_radius
        self.partial_fit_rows = partial_fit_rows
        self.class_weight = class_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. Linear models also accept sparse rows. Data larger than memory are read block by
            block.
        y : array-like of shape (n_samples,)
            Labels.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, y, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            weights, class_weight, plan = weighted_result(fit.run(plan, table), plan)
            self._publish_weights(
                fit,
                plan,
                weights.solver,
                classes_=table.shape.classes,
                coef_=weights.coef,
                intercept_=weights.intercept,
            )
            if class_weight is not None:
                self.class_weight_ = class_weight
        return self

    @available_if(_has_fixed_weights)
    @private_fit_method
    def partial_fit(self, X, y, classes=None, *, groups=None):
        """Continue from the released weights with more rows, in another private run.

        Each call runs as many gradient steps as a fit to its rows and is charged like a fit (see
        `partial_fit_rows`). Calls after the first one neither release class frequencies nor test
        the weights. If a call fails or is refused, the estimator is unchanged.

        Parameters
        ----------
        X : array-like, DataFrame, sparse matrix or ChunkedArray of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels; rows of one class are accepted.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur. Required in the first call unless the parameter `classes`
            lists them. If they are already known, the two lists must be equal.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : DPSGDClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; the estimator is unchanged.
        """
        labels = _agreed_classes(getattr(self, "classes_", None), self.classes, classes)
        with PartialFit(self) as fit:
            table = fit.read(X, y, groups=groups, reset=fit.is_first_call, classes=labels)
            plan = self._plan_call(table.shape, fit.guarantee, with_baseline=fit.is_first_call)
            weights = fit.run(plan, table, start=self._start_of_call(plan))
            self._publish_weights(
                fit,
                plan,
                weights.solver,
                classes_=table.shape.classes,
                coef_=weights.coef,
                intercept_=weights.intercept,
                n_partial_fits_=fit.call_number,
            )
        return self

    def _reserve_for_baseline(self, rows, shape):
        """Return the `RowsFit` with noisy class frequencies as the baseline."""
        class_weight = self._class_weights(shape)
        return self._reserve_for_classes(rows, shape, class_weight)

    def _reserve_for_classes(self, rows, shape, class_weight):
        """Return the `RowsFit` with the baseline of weighted classes."""
        max_abs_score = 1.0
        if self.loss == "log_loss":
            max_abs_score = MAX_SCORE
        return reserve_for_class_baseline(rows, shape.n_rows, class_weight, max_abs_score)

    @plans_for_groups
    def _plan_call(self, shape, guarantee, with_baseline=True):
        """Return the plan of a call of `fit` or `partial_fit`.

        With balanced class weights, it begins with the release of the class counts.
        """
        if not is_balanced(self.class_weight):
            return super()._plan_call(shape, guarantee, with_baseline=with_baseline)
        n_classes = len(self._planned_classes(shape))
        return plan_balanced(
            partial(self._plan_balanced_run, shape), shape.n_rows, n_classes, guarantee
        )

    def _plan_balanced_run(self, shape, guarantee, class_weight, planned):
        """Return the plan of a run with balanced weights; see `plan_balanced`."""
        loss_spec = self._weighted_loss_spec(shape, class_weight)
        rows = self._plan_rows(shape, guarantee)
        rows = self._reserve_for_classes(rows, shape, class_weight)
        return self._plan_steps(shape, rows, loss_spec, planned)

    def _whitens_rows(self, requested):
        """Return True if all settings are automatic and classes have equal weights.

        The second moment of the rows is not that of the weighted loss.
        """
        return self.class_weight is None and super()._whitens_rows(requested)

    def _centers_rows(self, requested, loss_spec):
        """Return True if the run may center and scale the rows; see `descent_candidate`."""
        in_units_of_rows = (requested.clip, requested.alpha, requested.eta0)
        has_one_output = loss_spec.loss.weights_shape == ()
        is_automatic = all(value is None for value in in_units_of_rows)
        # The steps of Adam have the unit of the weights, and those of the others that of gradients.
        has_gradient_steps = requested.optimizer != "adam"
        has_penalty = self.penalty == "l2" and self.projection_radius is None
        return has_one_output and is_automatic and has_gradient_steps and has_penalty

    def _loss_spec(self, shape):
        """Return the `LossSpec` of the parameters `loss` and `class_weight`."""
        return self._weighted_loss_spec(shape, self._class_weights(shape))

    def _weighted_loss_spec(self, shape, class_weight):
        """Return the `LossSpec` of the `loss` parameter for the given class weights."""
        n_classes = len(self._planned_classes(shape))
        if check_choice(self.loss, "loss", LOSSES) == "log_loss":
            return _classifier.logistic_loss_spec(class_weight)
        loss, curvature = HINGES[self.loss]
        residual_norm = curvature
        if n_classes > 2:
            loss = _classification_losses.OneVersusRestLoss(loss, n_classes)
            residual_norm *= math.sqrt(n_classes)
        loss, typical_weight = _classifier.weighted_loss(loss, class_weight)
        max_weight = _classifier.max_class_weight(class_weight)
        return _classifier.hinge_loss_spec(
            loss, max_weight * residual_norm, typical_weight * curvature, class_weight
        )

    @available_if(_has_probabilities)
    @np.errstate(all="ignore")
    def predict_proba(self, X):
        """Return the class probabilities of samples.

        Only for "log_loss" and "modified_huber".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        if self.loss == "modified_huber":
            return _modified_huber_probabilities(self.decision_function(X))
        return super().predict_proba(X)

    @available_if(_has_probabilities)
    @np.errstate(all="ignore")
    def predict_log_proba(self, X):
        """Return the logarithms of the class probabilities of samples.

        Only for "log_loss" and "modified_huber".

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities, in the order of `classes_`.
        """
        if self.loss == "modified_huber":
            return np.log(self.predict_proba(X))
        return super().predict_log_proba(X)


def _agreed_classes(*declarations):
    """Return the classes, after a check that all declarations that are not None are equal."""
    sets = [np.unique(labels) for labels in declarations if labels is not None]
    if not sets:
        raise ValueError(
            "classes are not known: the first call of partial_fit needs classes, as its argument "
            "or as the parameter of the estimator"
        )
    if not all(np.array_equal(labels, sets[0]) for labels in sets[1:]):
        described = " and ".join(str(labels) for labels in sets)
        raise ValueError(
            f"classes differ: {described}; all calls of partial_fit and the parameter classes "
            "must agree"
        )
    return sets[0]


def _modified_huber_probabilities(scores):
    """Return (clip(score, -1, 1) + 1) / 2, normalized over classes (Zadrozny and Elkan 2002)."""
    values = 0.5 * (np.clip(scores, -1.0, 1.0) + 1.0)
    if values.ndim == 1:
        return np.column_stack([1.0 - values, values])
    total = row_sums(values)[:, np.newaxis]
    # If no class has a positive value, all have the same probability.
    uniform = 1.0 / values.shape[1]
    return np.where(total > 0.0, values / np.where(total > 0.0, total, 1.0), uniform)
