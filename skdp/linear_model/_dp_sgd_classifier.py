"""Linear classification by noisy stochastic gradients."""

import math

import numpy as np
from sklearn.utils.metaestimators import available_if

from skdp._losses import _classes
from skdp.base import private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model import _classifier
from skdp.linear_model._center import LARGEST_SCORE, with_class_center
from skdp.linear_model._dp_sgd import PrivateSGDModel
from skdp.utils._row_wise import row_sums
from skdp.utils._validation import check_choice

# Half the width of the hinge's corner: rounding errors of scores move a residual by no more
# than they are large, over this.
HINGE_CORNER = 2.0**-10

# Beside each the slope at zero weights, which is a curvature for step sizes, too; the hinge has
# none of its own.
HINGES = {
    "hinge": (_classes.BinaryHuberizedHingeLoss(HINGE_CORNER), 1.0),
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
    """Linear classifier by noisy stochastic gradients (DP-SGD).

    Each step takes a batch of rows, clips each row's gradient to `max_grad_norm`, adds noise to
    their sum and moves the weights by the result. What batches are, which noise is added and what
    it costs are decided together, in one of the regimes of `sampling`; everything that is not
    given follows from public quantities by a rule that is written down in ``docs/dp_sgd.md``. The
    last steps of `fit` check the weights, which move back towards noisy class frequencies as far as
    they explain no more than chance; at least a tenth of them is kept.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a call of `fit` or of `partial_fit`, positive.
    delta : float, default=1e-6
        Its delta, in [0, 1). With 0 gradients are clipped in L1 norm and noise is Laplace's.
    data_norm : float, default=1.0
        The norm that rows are expected to have, between 1e-50 and 1e50: automatic settings are
        made for it. Longer rows are not scaled, their gradients are clipped; no guarantee rests
        on it. It must not be computed from the data.
    fit_intercept : bool, default=True
        Whether to add a constant feature of value ``intercept_scaling * data_norm``, whose
        coefficient makes the intercept. It counts in a gradient's norm.
    intercept_scaling : float, default=0.3
        The size of the constant feature relative to `data_norm`.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None takes the labels of y and thereby declares them public;
        the privacy statement says so. A declared class without rows is fitted like any other.
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"}, default="log_loss"
        "log_loss" is logistic regression, for several classes that of the softmax. The others
        fit one class against the rest, all of them jointly under one clip. The corner of "hinge"
        is rounded over margins of 1 - 2**-10 to 1 + 2**-10.
    penalty : {"l2", None}, default="l2"
        What is added to the mean loss: alpha times half the squared norm of `coef_`. The
        intercept is not penalized; in `fit` it is held to noisy class frequencies, which a share of
        epsilon pays for, as far as there is noise.
    alpha : float or "auto", default="auto"
        The strength of the penalty as in scikit-learn, at least 0. "auto" balances it against
        the noise.
    max_grad_norm : float or "auto", default="auto"
        The bound on the norm of a row's gradient, all classes and the intercept together: L2, or
        L1 with delta = 0. "auto" clips rows of norm `data_norm` whose residual exceeds that of
        zero weights.
    sampling : {"auto", "full", "poisson", "without_replacement"}, default="auto"
        "full": all rows in each step. "poisson" (delta > 0): each row with the same probability,
        independently. "without_replacement" (delta = 0): batches of fixed size. "auto" takes all
        rows where that is affordable or no `batch_size` less than all is given.
    batch_size : int or "auto", default="auto"
        Rows of a step, under "poisson" expected ones, at most the number of rows.
    max_iter : int or "auto", default="auto"
        Epochs: the steps are as many as batches of `batch_size` make that many passes over as
        many rows as there are. There is no early stopping.
    optimizer : {"nesterov", "sgd", "adam"}, default="nesterov"
        How gradients move the weights.
    learning_rate : {"constant", "invscaling", "linear"}, default="constant"
        Of step t of T: eta0, ``eta0 / t**power_t`` or ``eta0 * (T + 1 - t) / T``.
    eta0 : float or "auto", default="auto"
        The first learning rate. "auto" takes what the curvature of the loss allows.
    power_t : float, default=0.5
        The exponent of "invscaling".
    momentum : float or "auto", default="auto"
        In [0, 1). "auto" is Nesterov's for the condition number, 0 for "sgd", .9 for "adam".
    average : bool, default=True
        Whether the weights are the mean of the iterates of the last half instead of the last.
    projection_radius : float, default=None
        Weights are projected on the ball of this norm after each step. None: on none.
    partial_fit_rows : {"any", "disjoint"}, default="any"
        What is known of the rows of several calls of `partial_fit`. "any": nothing, each call
        adds to the spend. "disjoint" declares that no row is in two of them: in the ledger the
        calls are parts of one partition, of which the worst counts (under "replace_one" the two
        worst).
    class_weight : dict, default=None
        Public weights of classes, positive: a row's loss counts by that of its class. A class
        that is not named has weight 1. "balanced" would be computed from the data and is refused.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws batches and noise from the operating system's cryptographic generator. An int
        makes them reproducible and the noise thereby removable by whoever knows it.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Noisy coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Noisy intercepts, 0 without `fit_intercept`.
    n_iter_ : int
        The epochs that were planned.
    alpha_, max_grad_norm_, eta0_, momentum_ : float
        The settings used.
    batch_size_ : int
        The batch size used.
    sampling_ : str
        The sampling used.
    noise_multiplier_ : float
        The scale of a step's noise over what one row, or person, moves its sum by.
    n_partial_fits_ : int
        After `partial_fit`: how many calls there were.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        What is guaranteed of the model: of all its calls together, and under which assumptions.

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

    B. Balle, G. Barthe and M. Gaboardi. Privacy amplification by subsampling: tight analyzes via
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
        data_norm: float | str = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        classes: list | np.ndarray | None = None,
        loss: str = "log_loss",
        penalty: str | None = "l2",
        alpha: float | str = "auto",
        max_grad_norm: float | str = "auto",
        sampling: str = "auto",
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        optimizer: str = "nesterov",
        learning_rate: str = "constant",
        eta0: float | str = "auto",
        power_t: float = 0.5,
        momentum: float | str = "auto",
        average: bool = True,
        projection_radius: float | None = None,
        partial_fit_rows: str = "any",
        class_weight: dict | None = None,
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
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Rows; linear models take a sparse matrix too. Data larger than memory are read block by
            block.
        y : array-like of shape (n_samples,)
            Labels; or targets, which are clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

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
        return self._fit(X, y, groups)

    @private_fit_method
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
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

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

    def _with_center(self, rows, shape):
        largest = LARGEST_SCORE if self.loss == "log_loss" else 1.0
        return with_class_center(rows, shape.n_rows, self._class_weights(shape), largest)

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
    """Return (clip(score, -1, 1) + 1) / 2, normalized over classes (Zadrozny and Elkan 2002)."""
    values = 0.5 * (np.clip(scores, -1.0, 1.0) + 1.0)
    if values.ndim == 1:
        return np.column_stack([1.0 - values, values])
    total = row_sums(values)[:, np.newaxis]
    even = 1.0 / values.shape[1]
    return np.where(total > 0.0, values / np.where(total > 0.0, total, 1.0), even)
