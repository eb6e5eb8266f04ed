"""Linear classification by noisy stochastic gradients."""

import math

import numpy as np
from sklearn.utils.metaestimators import available_if

from skdp._losses import _classes
from skdp.linear_model import _classifier
from skdp.linear_model._centre import LARGEST_SCORE, with_class_centre
from skdp.linear_model._dp_sgd import PrivateSGDModel
from skdp.utils._row_wise import row_sums
from skdp.utils._validation import check_choice

# Half the width of the hinge's corner: rounding errors of scores move a residual by no more
# than they are large, over this.
HINGE_CORNER = 2.0**-10

# Beside each the slope at zero weights, which is a curvature for step sizes, too; the hinge has
# none of its own.
HINGES = {
    "hinge": (_classes.BinaryHuberisedHingeLoss(HINGE_CORNER), 1.0),
    "squared_hinge": (_classes.SquaredHingeLoss(), 2.0),
    "modified_huber": (_classes.ModifiedHuberLoss(), 2.0),
}
LOSSES = ("log_loss", *HINGES)


def _has_probabilities(estimator):
    if estimator.loss not in ("log_loss", "modified_huber"):
        raise AttributeError(f"loss={estimator.loss!r} has no probabilities")
    return True


class DPSGDClassifier(
    PrivateSGDModel, _classifier.LogisticProbabilitiesMixin, _classifier.PrivateLinearClassifier
):
    r"""Linear classifier by noisy stochastic gradients (DP-SGD).

    Each step takes a batch of rows, clips each row's gradient to `max_grad_norm`, adds noise to
    their sum and moves the weights by the result. What batches are, which noise is added and what
    it costs are decided together, in one of the regimes of `sampling`; everything that is not
    given follows from public quantities by a rule that is written down in ``docs/dp_sgd.md``. The
    last steps of `fit` check the weights, which move back towards noisy class frequencies as far as
    they explain no more than chance; at least a tenth of them is kept.

    Parameters
    ----------
    {epsilon}
    {delta}
    {data_norm}
    {fit_intercept}
    {intercept_scaling}
    {classes}
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"}, default="log_loss"
        "log_loss" is logistic regression, for several classes that of the softmax. The others
        fit one class against the rest, all of them jointly under one clip. The corner of "hinge"
        is rounded over margins of 1 - 2**-10 to 1 + 2**-10.
    penalty : {"l2", None}, default="l2"
        What is added to the mean loss: alpha times half the squared norm of `coef_`. The
        intercept is not penalised; in `fit` it is held to noisy class frequencies, which a share of
        epsilon pays for, as far as there is noise.
    {alpha}
    max_grad_norm : float or "auto", default="auto"
        The bound on the norm of a row's gradient, all classes and the intercept together: L2, or
        L1 with delta = 0. "auto" clips rows of norm `data_norm` whose residual exceeds that of
        zero weights.
    {sampling}
    {batch_size}
    {max_iter}
    {optimizer}
    {learning_rate}
    {eta0}
    {power_t}
    {momentum}
    {average}
    projection_radius : float, default=None
        Weights are projected on the ball of this norm after each step. None: on none.
    {partial_fit_rows}
    {class_weight}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {classes_}
    {coef_}
    {intercept_}
    {n_iter_}
    alpha_, max_grad_norm_, eta0_, momentum_ : float
        The settings used.
    {batch_size_}
    {sampling_}
    {noise_multiplier_}
    {n_partial_fits_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant refuses.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit, whatever the rows. The numbers of rows and columns are public. The proofs
    are in ``docs/dp_sgd.md``.

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

    loss: str = "log_loss"
    class_weight: dict | None = None

    def partial_fit(self, X, y, classes=None, *, groups=None):
        """Go on from the released weights with more rows, as one more private run.

        Each call runs all the steps of a fit on its rows and is charged as one, see
        `partial_fit_rows`. If it fails or is refused the estimator stays as it was.

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels; one class alone will do.
        classes : array-like of shape (n_classes,), default=None
            All labels that can occur: needed in the first call unless the constructor has them,
            and equal to those that are known already.
        {groups}

        Returns
        -------
        self : DPSGDClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant refuses.
        """
        labels = _agreed(getattr(self, "classes_", None), self.classes, classes)
        return self._go_on(X, y, groups, classes=labels)

    def _with_centre(self, rows, shape):
        largest = LARGEST_SCORE if self.loss == "log_loss" else 1.0
        return with_class_centre(rows, shape.n_rows, self._class_weights(shape), largest)

    def _task(self, shape):
        class_weight = self._class_weights(shape)
        if check_choice(self.loss, "loss", LOSSES) == "log_loss":
            return _classifier.logistic_task(class_weight)
        loss, curvature = HINGES[self.loss]
        slope = curvature
        if len(class_weight) > 2:
            loss = _classes.OneVersusRestLoss(loss, len(class_weight))
            slope *= math.sqrt(len(class_weight))
        if any(weight != 1.0 for weight in class_weight):
            loss = _classes.ClassWeightedLoss(loss, tuple(class_weight))
        largest = max(class_weight)
        return _classifier.hinge_task(loss, largest * slope, largest * curvature)

    @available_if(_has_probabilities)
    @np.errstate(all="ignore")
    def predict_proba(self, X):
        """Return the probabilities of the classes.

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
        """Return the logarithms of the classes' probabilities.

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


def _agreed(*declared):
    """Return the classes that all declarations agree on."""
    sets = [np.unique(labels) for labels in declared if labels is not None]
    if not sets:
        raise ValueError("the first call of partial_fit needs classes, here or in the constructor")
    if not all(np.array_equal(labels, sets[0]) for labels in sets[1:]):
        raise ValueError(f"classes differ: {' and '.join(str(labels) for labels in sets)}")
    return sets[0]


def _modified_huber_probabilities(scores):
    """Return (clip(score, -1, 1) + 1) / 2, normalised over classes (Zadrozny and Elkan 2002)."""
    values = 0.5 * (np.clip(scores, -1.0, 1.0) + 1.0)
    if values.ndim == 1:
        return np.column_stack([1.0 - values, values])
    total = row_sums(values)[:, np.newaxis]
    even = 1.0 / values.shape[1]
    return np.where(total > 0.0, values / np.where(total > 0.0, total, 1.0), even)
