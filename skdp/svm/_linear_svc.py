"""Linear support vector classification with differential privacy."""

from dataclasses import replace
from functools import partial
from typing import Literal

from skdp._optim._classification_losses import (
    BinaryHuberizedHingeLoss,
    MulticlassHuberizedHingeLoss,
)
from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._balanced import is_balanced, plan_balanced, weighted_result
from skdp.linear_model._baseline import reserve_for_class_baseline, reserve_for_shrinkage
from skdp.linear_model._classifier import PrivateLinearClassifier, hinge_loss_spec, weighted_loss
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import choose_mechanism
from skdp.linear_model._output_perturbation import check_reg_strength
from skdp.utils._types import Classes
from skdp.utils._validation import check_choice, check_within


class DPLinearSVC(PrivateLinearClassifier):
    """Linear support vector classifier fitted by noisy clipped gradients or output perturbation.

    The regularized Huberized hinge loss is minimized by noisy gradient steps. Alternatively, it is
    minimized without noise to a certified gradient norm, and noise is added to the weights. Several
    classes are fitted jointly, with the multiclass hinge of Crammer and Singer, rounded in the same
    way. With C="auto", a fraction of epsilon is spent on noisy class frequencies, to which the
    weights are regularized. Another fraction is spent on a test of the weights: to the extent that
    the weights explain no more than chance, they are shrunk towards these frequencies, by a factor
    of at least 0.1. Rows longer than `data_norm` are scaled down to it in `fit` only, or their
    gradients are clipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). 0 gives pure differential privacy with noise that grows
        with the number of weights.
    data_norm : float or "auto", default=1.0
        The bound on the Euclidean norm of a row of X, between 1e-50 and 1e50. It must not
        be computed from the data.
        "auto" spends a fifth of epsilon, in the same charge, on a norm that about 98 % of the rows
        do not exceed. Rows are divided by that norm, so the bound is 1 and regularization refers to
        the scaled rows. Coefficients are returned in the data's units.
    fit_intercept : bool, default=True
        Whether to fit an intercept, with a constant feature of value
        ``intercept_scaling * data_norm``.
    intercept_scaling : float, default=0.3
        Value of the constant feature relative to `data_norm`. Larger values regularize the
        intercept less and increase the noise in all weights.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None uses the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    class_weight : dict or "balanced", default=None
        Weights of classes. A dict has public weights between 1e-50 and 1e50; classes that are not
        in it have weight 1. "balanced" weights class c by n / (k n_c), as scikit-learn does, from
        class counts that the fit releases first, for at most a tenth of epsilon. Counts are raised
        to the standard deviation of their noise and to n / (100 k), so a weight is at most
        100. The noise grows with the largest weight.
    C : float or "auto", default="auto"
        Inverse regularization strength as in scikit-learn: the objective is the summed loss times C
        plus half the squared norm of all weights, including the intercept. The noise on the
        minimizer grows with C. "auto" balances regularization and noise using public quantities,
        and penalizes the intercept by its distance from noisy class frequencies.
    huber_threshold : float, default=0.5
        Half-width h of the interval of margins over which the hinge's corner is rounded, between
        1e-4 and 1e4. The loss exceeds the hinge by at most h / 4, or h / 2 with several classes.
        The noise does not depend on h. Fits with small values take longer.
    mechanism : {"auto", "output", "gradient"}, default="auto"
        "output" adds noise to the minimizer, "gradient" to the clipped gradients of an accelerated
        descent. If C is "auto" and the noise does not hide the mean row, the released mean is
        subtracted from the rows, and columns are divided by released standard deviations if one of
        two classes is rare. "auto" uses the mechanism with the smaller expected loss, computed from
        public quantities.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
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
    C_ : float
        Regularization strength that was used. It depends only on public quantities and, if C is
        "auto" and the mechanism is "gradient", on the released frequencies of two classes: weights
        are penalized more if one is rare.
    data_norm_ : float
        The declared `data_norm`, or the released one.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        The guarantee of the fit and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed and nothing is fitted.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/theory/guarantees.md``. With little noise and a small `huber_threshold`, the model agrees
    with scikit-learn's ``LinearSVC(loss="hinge")`` or, for several classes, with
    ``LinearSVC(multi_class="crammer_singer")``.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    K. Crammer and Y. Singer. On the algorithmic implementation of multiclass kernel-based
    vector machines. JMLR 2, 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLinearSVC
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLinearSVC(epsilon=1.0, delta=1e-6, data_norm=3.0).fit(X, y)
    >>> model.coef_.shape
    (1, 5)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float | Literal["auto"] = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        classes: Classes | None = None,
        class_weight: dict | Literal["balanced"] | None = None,
        C: float | Literal["auto"] = "auto",
        huber_threshold: float = 0.5,
        mechanism: Literal["auto", "output", "gradient"] = "auto",
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
        self.class_weight = class_weight
        self.C = C
        self.huber_threshold = huber_threshold
        self.mechanism = mechanism
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
            fit.publish(
                plan,
                classes_=table.shape.classes,
                coef_=weights.coef,
                intercept_=weights.intercept,
                C_=weights.solver.C,
                data_norm_=weights.data_norm,
            )
            if class_weight is not None:
                self.class_weight_ = class_weight
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape, and
            parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet; `epsilon`, `delta` and `accountant` are not read.

        Returns
        -------
        Plan
            Made from public information only: no data, no charge, no noise.

        Raises
        ------
        ValueError
            If `fit` would refuse a parameter.
        """
        if not is_balanced(self.class_weight):
            return self._plan_weights(shape, guarantee, self._class_weights(shape))
        n_classes = len(self._planned_classes(shape))
        return plan_balanced(partial(self._plan_weights, shape), shape.n_rows, n_classes, guarantee)

    def _plan_weights(self, shape, guarantee, class_weight, planned=None):
        """Return the plan of a fit with class weights; see `plan_balanced`."""
        h = check_within(self.huber_threshold, "huber_threshold", 1e-4, 1e4)
        C = check_reg_strength(self.C, "C")
        n_classes = len(self._planned_classes(shape))
        if n_classes == 2:
            loss = BinaryHuberizedHingeLoss(h)
        else:
            loss = MulticlassHuberizedHingeLoss(n_classes, h)
        loss, typical_weight = weighted_loss(loss, class_weight)
        loss_spec = hinge_loss_spec(loss, loss.loss_lipschitz, typical_weight, class_weight)
        rows = plan_rows(self, shape.n_rows, guarantee)
        if C is None:
            # A hinge loss gains nothing from scores beyond the margin 1.
            rows = reserve_for_class_baseline(rows, shape.n_rows, class_weight, max_abs_score=1.0)
        rows = reserve_for_shrinkage(rows, shape)
        mechanism = check_choice(self.mechanism, "mechanism", ("auto", "output", "gradient"))
        # Objective perturbation is not proved for the Huberized hinge.
        candidate = choose_mechanism(
            mechanism,
            C,
            rows,
            shape,
            loss_spec,
            alternative="output",
            planned=planned,
            class_weight=class_weight,
        )
        fit = WeightsFit.from_candidate(candidate)
        adapts_penalty = C is None and n_classes == 2 and candidate.mechanism == "gradient"
        return replace(fit, adapts_penalty=adapts_penalty).plan()
