"""Random forests: public random tests over private bins, and all leaves in one fit.

Derived in ``docs/forests.md``.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state

from skdp.base import private_fit_method
from skdp.gam._models import RawTableClassifier, RawTableRegressor
from skdp.ledger import PrivacyAccountant
from skdp.tree._decision_tree import PrivateTrees, TreePlan, tree_of
from skdp.utils._validation import check_integer, is_auto

# What the cells of single columns have of the squares of a row's weights, beside the trees. This
# and the numbers of trees were chosen on training rows, see docs/forests.md.
MAIN_SHARE = 0.2
PURE_MAIN_SHARE = 0.5
# With delta = 0 noise grows with the number of trees: one for so many n epsilon, at least five.
N_TREES = 300
PURE_ROWS = 500
FEWEST_TREES = 5
# And few rows are left in a leaf: a number is cut where its noisy counts have such a part below.
PURE_CUTS = 0.25, 0.75
MOST_TREES = 4000


def random_tree(terms, depth, draws, cuts=None):
    """Return a tree of random columns; bins are cut at random, labels and gaps thrown.

    With `cuts`, two numbers, a part of the rows between them is below a cut, by noisy counts.
    """
    columns = draws.randint(len(terms), size=(1 << depth) - 1)
    sides = []
    for j in columns:
        n_bins = len(terms[j].counts) - 1
        sides.append(draws.randint(2, size=n_bins + 1))
        if "label" not in terms[j].kinds:
            first = draws.randint(1, max(n_bins, 2))
            if cuts and n_bins > 1:
                below = np.cumsum(terms[j].counts[:-1])
                first = 1 + np.abs(below[:-1] - draws.uniform(*cuts) * below[-1]).argmin()
            sides[-1][:n_bins] = np.arange(n_bins) >= first
    return tree_of(terms, columns, sides)


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestPlan(TreePlan):
    """A fit's plan; the trees' tests follow from a public seed and the released bins.

    Parameters
    ----------
    n_trees : int
    seed : int
        Noise never comes from it.
    """

    n_trees: int
    seed: int

    @property
    def main_share(self):
        return PURE_MAIN_SHARE if self.budget.pure else MAIN_SHARE

    _choice_shares = {}

    def _joined(self, terms, *fit):
        draws = check_random_state(self.seed)
        cuts = PURE_CUTS if self.budget.pure else None
        return None, [random_tree(terms, self.depth, draws, cuts) for _ in range(self.n_trees)]


class PrivateForest(PrivateTrees):
    """The parameters of forests, and their plan."""

    _public = (*PrivateTrees._public, "structure_seed")

    def _plan(self, task, shape, guarantee):
        most = shape.n_rows * guarantee.epsilon / PURE_ROWS if guarantee.delta == 0.0 else N_TREES
        n_trees = int(np.clip(most, FEWEST_TREES, N_TREES))
        if not is_auto(self.n_estimators):
            n_trees = check_integer(self.n_estimators, "n_estimators", 1, MOST_TREES)
        seed = check_integer(self.structure_seed, "structure_seed", 0, 2**32 - 1)
        return super()._plan(task, shape, guarantee, ForestPlan, n_trees=n_trees, seed=seed)


class DPRandomForestClassifier(RawTableClassifier, PrivateForest):
    """Random forest classifier whose leaves are fitted together.

    A column is cut into bins by private counts, or has categories. The tests of a tree are random
    columns and random cuts from a public seed, so its structure is data-independent. A row is in
    one leaf of each tree, and its score is the sum of their values, which are fitted together by
    noisy gradients. Effects that trees share are learned once, and products of columns are found
    even if no column has an effect alone. Tables need no preprocessing: numbers, strings, dates and
    missing values are accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0 the noise is Laplace noise, the model is less accurate and
        categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair for all columns, of numbers or of arrays of
        shape (n_features,), or a pair for some columns. It must not be computed from the data.
        Ranges that are not declared are found privately within the same budget. Values outside are
        clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be read off the data: a dict from
        a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values are one further category. A data frame's column of dtype object is categorical unless
        `bounds` names it.
    n_estimators : int or "auto", default="auto"
        Number of random trees, at most 4000. "auto" is 300. With delta = 0, where the noise grows
        with the number of trees, "auto" is one tree per 500 / epsilon rows, from 5 to 300.
    max_depth : int, default=3
        Maximum number of tests on the path to a leaf, from 1 to 12.
    structure_seed : int, default=0
        Seed of the trees' tests. It is public and must not be chosen by looking at the data. Noise
        is never drawn from it.
    classes : array-like of shape (n_classes,), default=None
        Possible class labels. None takes the labels of y and thereby declares them public, which
        the privacy statement reports. A declared class without rows is fitted like any other.
    class_weight : dict, default=None
        Public positive weights of the classes. The loss of a row is multiplied by the weight of its
        class. A class that is not named has weight 1. "balanced" would be computed from the data
        and is refused.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
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
        Noise scale divided by the sensitivity of a gradient, of the single step that would cost as
        much as all steps together. The sensitivity is that of one row, or of one person. None with
        delta = 0, where no gradient is noisy.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
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
    raw rows. With delta = 0 use a forest for products of columns only: if columns have an effect
    alone, `DPAdditiveClassifier` is as good or better. The proof is in ``docs/forests.md``.

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
        bounds: tuple | dict | str = "auto",
        categories: dict | list | str | None = None,
        n_estimators: int | str = "auto",
        max_depth: int = 3,
        structure_seed: int = 0,
        classes: list | np.ndarray | None = None,
        class_weight: dict | None = None,
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


class DPRandomForestRegressor(RawTableRegressor, PrivateForest):
    """Random forest regressor whose leaves are fitted together.

    A column is cut into bins by private counts, or has categories. The tests of a tree are random
    columns and random cuts from a public seed, so its structure is data-independent. A row is in
    one leaf of each tree, and its prediction is the sum of their values, which are fitted together
    by noisy gradients. Tables need no preprocessing: numbers, strings, dates and missing values are
    accepted.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive. It covers everything that is learned from the data.
    delta : float, default=1e-6
        Delta of a fit, in [0, 1). With 0 the noise is Laplace noise, the model is less accurate and
        categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of numeric and date columns: one pair for all columns, of numbers or of arrays of
        shape (n_features,), or a pair for some columns. It must not be computed from the data.
        Ranges that are not declared are found privately within the same budget. Values outside are
        clipped.
    categories : dict of column to list, list or "auto", default=None
        Declared categories of categorical columns, which must not be read off the data: a dict from
        a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. Categories that are not declared, or are
        "auto", are found privately within the same budget, which needs a positive delta. All other
        values are one further category. A data frame's column of dtype object is categorical unless
        `bounds` names it.
    n_estimators : int or "auto", default="auto"
        Number of random trees, at most 4000. "auto" is 300. With delta = 0, where the noise grows
        with the number of trees, "auto" is one tree per 500 / epsilon rows, from 5 to 300.
    max_depth : int, default=3
        Maximum number of tests on the path to a leaf, from 1 to 12.
    structure_seed : int, default=0
        Seed of the trees' tests. It is public and must not be chosen by looking at the data. Noise
        is never drawn from it.
    target_bounds : tuple of (float, float)
        Range of the targets, required. It must not be computed from the data. Targets and
        predictions are clipped to it.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
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
        Noise scale divided by the sensitivity of a gradient, of the single step that would cost as
        much as all steps together. The sensitivity is that of one row, or of one person. None with
        delta = 0, where no gradient is noisy.
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
    predictions are between the mean and the median. With delta = 0 use a forest for products of
    columns only: elsewhere `DPAdditiveRegressor` is as good or better. The proof is in
    ``docs/forests.md``.

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
        bounds: tuple | dict | str = "auto",
        categories: dict | list | str | None = None,
        n_estimators: int | str = "auto",
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
