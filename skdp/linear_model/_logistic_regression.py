"""Logistic regression with differential privacy."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from skdp.base import plans_for_groups, private_fit, private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model import _classifier
from skdp.linear_model._balanced import is_balanced, plan_balanced, weighted_result
from skdp.linear_model._baseline import reserve_for_class_baseline, reserve_for_shrinkage
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import MECHANISMS, choose_mechanism
from skdp.linear_model._output_perturbation import check_reg_strength
from skdp.linear_model._standard_errors import HessianRelease, plan_hessian, split_guarantee
from skdp.utils._types import Classes
from skdp.utils._validation import check_choice


class DPLogisticRegression(
    _classifier.LogisticProbabilitiesMixin, _classifier.PrivateLinearClassifier
):
    """Logistic regression with output, objective or gradient perturbation.

    The regularized logistic loss (the softmax loss for more than two classes) is minimized with
    noise added to the minimizer, the objective or each gradient. Nothing needs tuning: the
    mechanism, C, the number of steps and the step size are chosen from public quantities. A
    fraction of epsilon is spent on noisy class frequencies, to which the weights are regularized.
    Another fraction is spent on a test of the weights: to the extent that the weights explain no
    more than chance, they are shrunk towards these frequencies, by a factor of at least 0.1. Rows
    longer than `data_norm` are scaled down to it in `fit` only, or their gradients are clipped.

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
    mechanism : {"auto", "output", "objective", "gradient"}, default="auto"
        Where the noise is added. "output": to the minimizer. "objective": to the objective, as a
        random linear term; the minimizer of the sum is released. "gradient": to each clipped
        gradient of an accelerated descent. If C is "auto" and the noise does not hide the mean row,
        the released mean is then subtracted from the rows, and columns are divided by released
        standard deviations if one of two classes is rare. "auto" uses "gradient" if its expected
        loss is smaller by at least 0.02 nats per row, or 0.001 if rows are centered, which reduces
        the expected loss; otherwise, it uses "objective".
    C : float or "auto", default="auto"
        Inverse regularization strength as in scikit-learn: the objective is the summed loss times C
        plus half the squared norm of all weights, including the intercept. "auto" balances
        regularization and noise using public quantities: the numbers of rows, columns and classes,
        epsilon, delta, the relation and the norm bound. With "auto" the intercept is penalized by
        its distance from noisy class frequencies, which are released first. The weights are tested
        only with "auto", but not with the mechanism "output" or with total standard errors. If C is
        a number, the mechanism "objective" increases the regularization as much as its guarantee
        requires, which is not at all if epsilon is large.
    penalty : {"l2"}, default="l2"
        Norm of the penalty.
    class_weight : dict or "balanced", default=None
        Weights of classes. A dict has public weights between 1e-50 and 1e50; classes that are not
        in it have weight 1. "balanced" weights class c by n / (k n_c), as scikit-learn does, from
        class counts that the fit releases first, for at most a tenth of epsilon. Counts are raised
        to the standard deviation of their noise and to n / (100 k), so a weight is at most
        100. The noise grows with the largest weight.
    standard_errors : {"noise", "total"}, default="noise"
        Content of `coef_standard_error_`. "noise": the privacy noise alone, if its distribution is
        public, at no cost. "total": sampling error and privacy noise together. This requires the
        Hessian of the loss, which is released with noise for an eighth of the budget, in the same
        charge, and supports at most 5000 weights. The rest of the budget is spent on the weights.
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
        Inverse regularization strength that was used. It depends only on public quantities and, if
        C is "auto" and the mechanism is "gradient", on the released frequencies of two classes:
        weights are penalized more if one class is rare. If "gradient" centers the rows and divides
        them by their released size, or whitens them, it refers to the resulting rows.
    mechanism_ : str
        Mechanism that was used; it depends only on public quantities.
    coef_standard_error_ : ndarray of the shape of `coef_`, or None
        With ``standard_errors="noise"``, the standard deviation of the privacy noise in each
        coefficient, or None for "objective" and "gradient", for which it depends on the data. With
        "total", an estimate of the standard error around the minimizer of the population's
        regularized loss, valid if the model holds. It is large where the noisy Hessian is
        uninformative. See ``docs/theory/standard_errors.md``.
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
    the row as the unit. The numbers of rows and columns are public. The proofs are in
    ``docs/theory/guarantees.md`` and ``docs/theory/objective_perturbation.md``.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    D. Kifer, A. Smith and A. Thakurta. Private convex empirical risk minimization and
    high-dimensional regression. COLT 2012.

    R. Bassily, A. Smith and A. Thakurta. Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS 2014.

    R. Iyengar et al. Towards practical differentially private convex optimization. IEEE S&P
    2019.

    R. Redberg, A. Koskela and Y.-X. Wang. Improving the privacy and practicality of objective
    perturbation for differentially private linear learners. NeurIPS 2023.

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
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float | Literal["auto"] = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        classes: Classes | None = None,
        mechanism: Literal["auto", "output", "objective", "gradient"] = "auto",
        C: float | Literal["auto"] = "auto",
        penalty: Literal["l2"] = "l2",
        class_weight: dict | Literal["balanced"] | None = None,
        standard_errors: Literal["noise", "total"] = "noise",
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
        self.mechanism = mechanism
        self.C = C
        self.penalty = penalty
        self.class_weight = class_weight
        self.standard_errors = standard_errors
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
                coef_standard_error_=weights.standard_error,
                mechanism_=plan.mechanism.weights.choice,
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
        """Return the plan of a fit with class weights; see `plan_balanced`.

        Parameters
        ----------
        shape : TableShape
        guarantee : Guarantee
            Guarantee of the fit, without the release of class counts if there is one.
        class_weight : list of float or BalancedWeights
            Weight of each class.
        planned : WeightsFit, default=None
            The fit that was charged, whose mechanism and settings are used; None to choose them.
        """
        check_choice(self.mechanism, "mechanism", ("auto", *MECHANISMS))
        check_choice(self.penalty, "penalty", ("l2",))
        check_choice(self.standard_errors, "standard_errors", ("noise", "total"))
        C = check_reg_strength(self.C, "C")
        with_hessian = self.standard_errors == "total"
        rows = plan_rows(self, shape.n_rows, guarantee)
        if C is None:
            rows = reserve_for_class_baseline(rows, shape.n_rows, class_weight)
        if not with_hessian and self.mechanism != "output":
            rows = reserve_for_shrinkage(rows, shape)
        loss_spec = _classifier.logistic_loss_spec(class_weight)
        candidate = choose_mechanism(
            self.mechanism,
            C,
            rows,
            shape,
            loss_spec,
            with_hessian,
            planned=planned,
            class_weight=class_weight,
        )
        hessian = None
        if with_hessian:
            _, hessian_guarantee = split_guarantee(candidate.mechanism, rows.remaining)
            hessian = plan_hessian(candidate.problem, hessian_guarantee)
        fit = _LogisticFit(
            rows=candidate.rows,
            problem=candidate.problem,
            weights=candidate.plan(),
            total_excess_loss=candidate.bounded_excess_loss,
            hessian=hessian,
            max_class_weight=_classifier.max_class_weight(class_weight),
            adapts_penalty=C is None and not with_hessian and candidate.mechanism == "gradient",
        )
        return fit.plan()


@dataclass(frozen=True, kw_only=True)
class _LogisticFit(WeightsFit):
    """A fit of logistic regression: norm, baseline, weights and Hessian, as needed.

    Parameters
    ----------
    hessian : HessianRelease or None
        Release of the Hessian for total standard errors.
    max_class_weight : float
    """

    hessian: HessianRelease | None
    max_class_weight: float

    def weights_plan(self):
        """Return the plan that releases the weights and, if there is one, the Hessian."""
        weights = super().weights_plan()
        if self.hessian is None:
            return weights
        return self.hessian.compose_after(weights, self.rows.remaining)

    def _standard_errors(self, rows, y, weights, coef, source):
        """Return the standard errors of the coefficients, or None if they are unknown."""
        if self.hessian is None:
            errors = self.weights.standard_error(coef.shape)
        else:
            hessian = self.hessian.run(self.problem.loss, rows, y, weights, source)
            errors = self.hessian.standard_error(
                hessian, weights, self.weights, self.max_class_weight
            )
            errors = errors[:, : rows.n_columns]
        if errors is None:
            return None
        return errors / rows.unit
