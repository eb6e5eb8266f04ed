"""Random forests: public random tests over private bins, and all leaves fitted together.

The derivation is in ``docs/theory/forests.md``.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from sklearn.utils import check_random_state

from skdp.base import private_fit, private_fit_method
from skdp.gam._additive import FittedTerms
from skdp.gam._models import RawTableClassifier, RawTableRegressor
from skdp.ledger import PrivacyAccountant
from skdp.tree._decision_tree import PrivateTrees, TreeFit, make_tree
from skdp.utils._types import Bounds, Categories, Classes
from skdp.utils._validation import check_integer, is_auto

# The tuned constants were chosen on training rows, see docs/theory/forests.md. Fraction of the
# squared norm of a row that belongs to single columns, not to trees, first with delta > 0 and then
# with delta = 0.
MAIN_FRACTION = 0.2
PURE_MAIN_FRACTION = 0.5
# Default number of trees. With delta = 0, the noise grows with the number of trees, and there is
# one tree per PURE_ROWS_PER_TREE / epsilon rows, at least MIN_TREES.
N_TREES = 300
PURE_ROWS_PER_TREE = 500
MIN_TREES = 5
# Largest n_estimators.
MAX_TREES = 4000
# With delta = 0, range of the fraction of rows below the cut of a numeric column, according to
# noisy counts. With few trees, it is important that no leaf has too few rows.
PURE_CUTS = (0.25, 0.75)


def random_tree(terms, depth, rng, cuts=None):
    """Return a tree of random tests.

    Each test chooses a column. The bins of a numeric column are cut at a random bin; missing values
    and the categories of a categorical column are assigned to random branches.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns, with noisy counts.
    depth : int
    rng : RandomState
        Public generator.
    cuts : (float, float), default=None
        Range of the fraction of rows below the cut, according to noisy counts. If None, all bins
        are equally likely.
    """
    columns = rng.randint(len(terms), size=(1 << depth) - 1)
    sides = []
    for j in columns:
        n_bins = len(terms[j].counts) - 1
        branches = rng.randint(2, size=n_bins + 1)
        if "label" not in terms[j].kinds:
            cut = rng.randint(1, max(n_bins, 2))
            if cuts and n_bins > 1:
                below = np.cumsum(terms[j].counts[:-1])
                cut = 1 + np.abs(below[:-1] - rng.uniform(*cuts) * below[-1]).argmin()
            branches[:n_bins] = np.arange(n_bins) >= cut
        sides.append(branches)
    return make_tree(terms, columns, sides)


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestFit(TreeFit):
    """A fit of a forest, whose tests depend only on a public seed and the released bins.

    Parameters
    ----------
    n_trees : int
    seed : int
        Public seed of the tests. Noise is never drawn from it.
    """

    n_trees: int
    seed: int

    _extra_fractions = {}

    @property
    def main_fraction(self):
        """Fraction of the squared norm of a row that belongs to single columns, not to trees."""
        if self.budget.is_pure:
            return PURE_MAIN_FRACTION
        return MAIN_FRACTION

    def _joint_terms(self, state, source):
        """Return the trees, drawn from the public seed and the released terms."""
        rng = check_random_state(self.seed)
        cuts = None
        if self.budget.is_pure:
            cuts = PURE_CUTS
        return [random_tree(state.terms, self.depth, rng, cuts) for _ in range(self.n_trees)]


class PrivateForest(PrivateTrees):
    """Base of forests: their parameters and their plan."""

    _public = (*PrivateTrees._public, "structure_seed")

    def _plan(self, task, shape, guarantee):
        """Return the plan of a task on a table of this shape."""
        if not is_auto(self.n_estimators):
            n_trees = check_integer(self.n_estimators, "n_estimators", 1, MAX_TREES)
        elif guarantee.delta == 0.0:
            n_affordable = shape.n_rows * guarantee.epsilon / PURE_ROWS_PER_TREE
            n_trees = int(np.clip(n_affordable, MIN_TREES, N_TREES))
        else:
            n_trees = N_TREES
        seed = check_integer(self.structure_seed, "structure_seed", 0, 2**32 - 1)
        return super()._plan(task, shape, guarantee, ForestFit, n_trees=n_trees, seed=seed)


class DPRandomForestClassifier(RawTableClassifier, PrivateForest):
    """Random forest classifier with all leaves fitted together.

    A numeric column is divided into bins by private counts; a categorical column has categories.
    The tests of a tree are random columns and random cuts from a public seed, so its structure is
    data-independent. A row is in one leaf of each tree, and its score is the sum of these leaves'
    values. All values are fitted together by noisy gradients. Effects that trees share are learned
    once, and products of columns are found even if no single column has an effect. Tables need no
    preprocessing: numbers, strings, dates and missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0, the noise is Laplace noise, the model is less accurate
        and categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair of numbers or of arrays of shape (n_features,)
        for all columns, or a dict with a pair for some columns. It must not be computed from the
        data. Ranges that are not declared are found privately within the same budget. Values
        outside the bounds are clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values form one further category. A data frame's column of dtype object is categorical
        unless `bounds` names it.
    n_estimators : int or "auto", default="auto"
        Number of random trees, at most 4000. "auto" is 300. With delta = 0, where the noise grows
        with the number of trees, "auto" is one tree per 500 / epsilon rows, from 5 to 300.
    max_depth : int, default=3
        Maximum number of tests on the path to a leaf, from 1 to 12.
    structure_seed : int, default=0
        Seed of the trees' tests. It is public and must not be chosen by looking at the data. Noise
        is never drawn from it.
    classes : array-like of shape (n_classes,), default=None
        Possible class labels. None uses the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    class_weight : dict or "balanced", default=None
        Weights of classes, by which the loss of a row is multiplied. A dict has public positive
        weights; classes that are not in it have weight 1. "balanced" weights class c by
        n / (k n_c), as scikit-learn does, from class counts that the fit releases first, for at
        most a tenth of the budget. Counts are raised to the standard deviation of their noise and
        to n / (100 k), so a weight is at most 100. The noise grows with the largest weight.
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
    trees_ : list of Tree
        The fitted trees.
    intercept_ : float or ndarray of shape (n_classes,)
        Constant that is added to the sums of the values of leaves and shape functions.
    shape_functions_ : list of ShapeFunction
        Bins or categories of each column, with the values that they add to a score in addition to
        the trees.
    noise_multiplier_ : float or None
        Noise scale divided by the sensitivity of a gradient to one row or person, for a single step
        that would cost as much as all steps together. None with delta = 0, where no gradient is
        noisy.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    class_weight_ : ndarray of shape (n_classes,)
        The released weight of each class; only with ``class_weight="balanced"``.
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

    See Also
    --------
    DPAdditiveClassifier : One shape function per column; interpretable and faster.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public.
    `feature_importances_` and out-of-bag estimates do not exist; the latter would be computed from
    raw rows. With delta = 0, use a forest only for products of columns: if single columns have an
    effect, `DPAdditiveClassifier` is at least as good. The proof is in ``docs/theory/forests.md``.

    References
    ----------
    L. Breiman. Random forests. Machine Learning 2001.

    P. Geurts, D. Ernst and L. Wehenkel. Extremely randomized trees. Machine Learning 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRandomForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> y = X[:, 0] * X[:, 1] > 0  # no column tells anything alone
    >>> model = DPRandomForestClassifier(epsilon=1.0, bounds=(-1, 1))
    >>> model.fit(X, y).score(X, y) > 0.8
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        n_estimators: int | Literal["auto"] = "auto",
        max_depth: int = 3,
        structure_seed: int = 0,
        classes: Classes | None = None,
        class_weight: dict | Literal["balanced"] | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.structure_seed = structure_seed
        self.classes = classes
        self.class_weight = class_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Class labels of a classifier, or numeric targets of a regressor, which are clipped to
            `target_bounds`.
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
            fitted = FittedTerms(*fit.run(plan, table)).without_output_axis()
            shapes, trees = self._shapes_and_trees(fitted)
            fit.publish(
                plan,
                classes_=table.shape.classes,
                shape_functions_=shapes,
                trees_=trees,
                intercept_=fitted.constant,
                noise_multiplier_=plan.noise_multiplier,
            )
            if fitted.class_weight is not None:
                self.class_weight_ = fitted.class_weight
        return self


class DPRandomForestRegressor(RawTableRegressor, PrivateForest):
    """Random forest regressor with all leaves fitted together.

    A numeric column is divided into bins by private counts; a categorical column has categories.
    The tests of a tree are random columns and random cuts from a public seed, so its structure is
    data-independent. A row is in one leaf of each tree, and its prediction is the sum of these
    leaves' values. All values are fitted together by noisy gradients. Tables need no preprocessing:
    numbers, strings, dates and missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0, the noise is Laplace noise, the model is less accurate
        and categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair of numbers or of arrays of shape (n_features,)
        for all columns, or a dict with a pair for some columns. It must not be computed from the
        data. Ranges that are not declared are found privately within the same budget. Values
        outside the bounds are clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values form one further category. A data frame's column of dtype object is categorical
        unless `bounds` names it.
    n_estimators : int or "auto", default="auto"
        Number of random trees, at most 4000. "auto" is 300. With delta = 0, where the noise grows
        with the number of trees, "auto" is one tree per 500 / epsilon rows, from 5 to 300.
    max_depth : int, default=3
        Maximum number of tests on the path to a leaf, from 1 to 12.
    structure_seed : int, default=0
        Seed of the trees' tests. It is public and must not be chosen by looking at the data. Noise
        is never drawn from it.
    target_bounds : tuple of (float, float)
        Range of the targets, which is required and must not be computed from the data. Targets and
        predictions are clipped to it.
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
    trees_ : list of Tree
        The fitted trees.
    intercept_ : float
        Constant that is added to the sums of the values of leaves and shape functions.
    shape_functions_ : list of ShapeFunction
        Bins or categories of each column, with the values that they add to a score in addition to
        the trees.
    noise_multiplier_ : float or None
        Noise scale divided by the sensitivity of a gradient to one row or person, for a single step
        that would cost as much as all steps together. None with delta = 0, where no gradient is
        noisy.
    target_bounds_ : tuple of (float, float)
        Declared range of the targets.
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

    See Also
    --------
    DPAdditiveRegressor : One shape function per column; interpretable and faster.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public.
    Residuals are clipped to an eighth of the width of `target_bounds`. If errors are larger,
    predictions lie between the mean and the median. With delta = 0, use a forest only for products
    of columns: otherwise, `DPAdditiveRegressor` is at least as good. The proof is in
    ``docs/theory/forests.md``.

    References
    ----------
    L. Breiman. Random forests. Machine Learning 2001.

    P. Geurts, D. Ernst and L. Wehenkel. Extremely randomized trees. Machine Learning 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPRandomForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> model = DPRandomForestRegressor(epsilon=1.0, bounds=(-1, 1), target_bounds=(-1, 1))
    >>> model.fit(X, y).score(X, y) > 0.6
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        n_estimators: int | Literal["auto"] = "auto",
        max_depth: int = 3,
        structure_seed: int = 0,
        target_bounds: tuple[float, float] | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.n_estimators = n_estimators
        self.max_depth = max_depth
        self.structure_seed = structure_seed
        self.target_bounds = target_bounds
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Class labels of a classifier, or numeric targets of a regressor, which are clipped to
            `target_bounds`.
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
            scale = self._target_scale
            fitted = (
                FittedTerms(*fit.run(plan, table)).with_target_scale(scale).without_output_axis()
            )
            shapes, trees = self._shapes_and_trees(fitted)
            fit.publish(
                plan,
                target_bounds_=(scale.low, scale.high),
                shape_functions_=shapes,
                trees_=trees,
                intercept_=fitted.constant,
                noise_multiplier_=plan.noise_multiplier,
            )
        return self
