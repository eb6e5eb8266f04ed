"""Trees over private bins, as terms of an additive model; one that is grown on released curves.

Derived in ``docs/forests.md``.
"""

from dataclasses import dataclass, replace

import numpy as np

from skdp.base import private_fit_method
from skdp.gam._additive import N_BINS, RawTableModel
from skdp.gam._models import RawTableClassifier
from skdp.gam._plan import AdditivePlan
from skdp.gam._shapes import shape_functions
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing._binning import input_names
from skdp.utils._validation import check_integer, check_verbose
from skdp.utils._values import FrozenValue

# What the curves that a tree is grown on get of what is left for steps.
CURVES_SHARE = 0.3
DEEPEST = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree(FrozenValue):
    """Tests that lead a row to a leaf, and what the leaves add to its score.

    Parameters
    ----------
    columns : ndarray of shape (n_tests,)
        The positions of the columns that are tested, from the root on, level by level.
    sides : ndarray of shape (n_tests, n_cells)
        The branch for each cell of the column: 0 or 1.
    most_counts : ndarray of shape (n_leaves,)
        By noisy counts, no leaf has more rows.
    values : ndarray of shape (n_leaves,) or (n_leaves, n_classes), default=None
        What each leaf adds to a score; None before they are fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPDecisionTreeClassifier
    >>> X = np.arange(5000)[:, None]
    >>> model = DPDecisionTreeClassifier(bounds=(0, 5000), max_depth=1)
    >>> (tree,) = model.fit(X, X[:, 0] > 2500).trees_
    >>> tree.columns, tree.values.shape
    (array([0]), (2,))
    >>> tree.sides.shape == (1, len(model.shape_functions_[0].counts))
    True
    """

    columns: np.ndarray
    sides: np.ndarray
    most_counts: np.ndarray
    values: np.ndarray = None

    @property
    def shape(self):
        """The number of leaves, as a tuple."""
        return self.most_counts.shape

    def cells(self, own):
        """Return the leaf of each row.

        Parameters
        ----------
        own : ndarray of shape (n_columns, n_rows), or list of ndarray of shape (n_rows,)
            The rows' cells, of each column.

        Returns
        -------
        ndarray of shape (n_rows,)
            From 0 on, from left to right.
        """
        own = np.asarray(own)
        first = 0
        leaves = np.zeros(own.shape[1], dtype=np.intp)
        rows = np.arange(own.shape[1])
        while first < len(self.columns):
            tests = first + leaves
            leaves = 2 * leaves + self.sides[tests, own[self.columns[tests], rows]]
            first = 2 * first + 1
        return leaves

    def term(self, terms, n_rows):
        """Return what stands for the tree among released terms: itself.

        Parameters
        ----------
        terms : list of Term
            Those of single columns.
        n_rows : int
            The public number of rows.

        Returns
        -------
        Tree
            The same.
        """
        return self


def tree_of(terms, columns, sides):
    """Return the tree of some tests, and bounds of its leaves' counts.

    Parameters
    ----------
    terms : list of Term
    columns : sequence of int
    sides : list of ndarray
        One a test, of as many cells as its column has.
    """
    most = np.array([np.inf])
    while len(most) <= len(columns):
        level = range(len(most) - 1, 2 * len(most) - 1)
        masses = [np.bincount(sides[t], terms[columns[t]].counts, minlength=2) for t in level]
        most = np.minimum(most[:, np.newaxis], masses).ravel()
    width = max(map(len, sides))
    sides = np.array([np.pad(side, (0, width - len(side))) for side in sides], dtype=np.int8)
    return Tree(columns=np.array(columns), sides=sides, most_counts=most)


def grown_tree(terms, curves, depth):
    """Return the tree whose tests tell most apart by released curves, each within its branch.

    Parameters
    ----------
    terms : list of Term
    curves : list of ndarray of shape (n_cells, n_outputs)
    depth : int
    """
    columns = []
    sides = []
    reached = [[term.counts for term in terms]]
    for test in range((1 << depth) - 1):
        own = reached[test]
        gains, splits = zip(*map(best_split, terms, own, curves), strict=True)
        j = int(np.argmax(gains))
        for branch in (~splits[j], splits[j]):
            reached.append([*own[:j], own[j] * branch, *own[j + 1 :]])
        columns.append(j)
        sides.append(splits[j])
    return tree_of(terms, columns, sides)


def best_split(term, counts, values):
    """Return the variance of values between the best two sides of cells, and which are second.

    Bins are cut in two; labels are sorted by their (first) value before.
    """
    by_value = values[:, 0] if "label" in term.kinds else np.arange(len(values))
    order = np.argsort(by_value, kind="stable")
    masses = np.cumsum(counts[order])[:, np.newaxis]
    sums = np.cumsum((counts[:, np.newaxis] * values)[order], axis=0)
    total = max(masses[-1, 0], 1e-300)
    products = masses * (total - masses)
    squares = ((sums - sums[-1] * (masses / total)) ** 2).sum(axis=1, keepdims=True)
    gains = np.divide(squares, products, out=np.zeros_like(products), where=products > 0.0)
    return gains.max(), np.argsort(order) > gains.argmax()


@dataclass(frozen=True, kw_only=True, eq=False)
class TreePlan(AdditivePlan):
    """A fit's plan: an additive model's, whose released curves say where a tree is cut.

    Parameters
    ----------
    depth : int
    """

    depth: int
    n_bins: int = N_BINS

    n_trees = 1
    main_share = 0.0
    finds_variance = False
    has_trends = False
    _choice_shares = {"first": CURVES_SHARE}

    @property
    def _most_joint_cells(self):
        return self.n_trees << self.depth

    def _joined(self, terms, cells, layout, residuals, source):
        curves, _ = self._descent(cells, layout, residuals, source, share=self.shares["first"])
        curves = layout.tables(curves)
        return None, [grown_tree(terms, [curves[j] for j in range(len(terms))], self.depth)]


class PrivateTrees(RawTableModel):
    """The plan of trees, and scores from `trees_` and `intercept_`."""

    def _plan(self, task, shape, guarantee, kind=TreePlan, **more):
        check_verbose(self.verbose)
        depth = check_integer(self.max_depth, "max_depth", 1, DEEPEST)
        return self._plan_of(kind, shape, guarantee, task=task, depth=depth, **more)

    def _attributes(self, terms, values, constant, plan):
        columns = len(plan.columns)
        names = input_names(self, None)
        trees = zip(terms[columns:], values[columns:], strict=True)
        return {
            "shape_functions_": shape_functions(terms[:columns], values[:columns], names),
            "trees_": [replace(tree, values=own) for tree, own in trees],
            "intercept_": constant,
        }

    def _scores(self, X):
        scores = []
        for cells, parts in self._cells_and_parts(X):
            # One after another: how `sum` adds them up depends on how many rows there are.
            own = np.add.accumulate(parts, axis=1)[:, -1]
            scores.append(own + sum(tree.values[tree.cells(cells)] for tree in self.trees_))
        return self.intercept_ + np.concatenate(scores)


class DPDecisionTreeClassifier(RawTableClassifier, PrivateTrees):
    """Decision tree classifier that is grown from private shape functions.

    A shape function is fitted to each column by noisy gradients, as in `DPAdditiveClassifier`. The
    tree splits where rows differ most by these functions, which is post-processing. Then the values
    of all leaves are fitted together by noisy gradients. Tables need no preprocessing: numbers,
    strings, dates and missing values are accepted.

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
    max_depth : int, default=6
        Maximum number of tests on the path to a leaf, from 1 to 12.
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
        The fitted tree, in a list of one.
    intercept_ : float or ndarray of shape (n_classes,)
        Constant that is added to the value of a leaf.
    shape_functions_ : list of ShapeFunction
        Bins or categories of each column. Their values are 0, because scores come from the tree
        only.
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
    DPRandomForestClassifier : Many random trees, more accurate.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public.
    Columns without an effect of their own are not chosen: if classes depend on a product of
    columns, use a forest. The proof is in ``docs/forests.md``.

    References
    ----------
    S. Fletcher and M. Z. Islam. Decision tree classification with differential privacy: a survey.
    ACM Computing Surveys 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPDecisionTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> y = (X[:, 0] > 0) & (X[:, 1] > 0)
    >>> model = DPDecisionTreeClassifier(epsilon=1.0, bounds=(-1, 1), max_depth=3)
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
        max_depth: int = 6,
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
        self.max_depth = max_depth
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
