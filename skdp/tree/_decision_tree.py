"""Trees over private bins as terms of an additive model, and a tree grown from shape functions.

The derivation is in ``docs/theory/forests.md``.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from skdp.base import private_fit, private_fit_method
from skdp.gam._additive import N_BINS, FittedTerms, RawTableModel
from skdp.gam._blocks import Block
from skdp.gam._models import RawTableClassifier
from skdp.gam._plan import AdditiveFit, plan_additive
from skdp.gam._shapes import make_shape_functions
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing._binning import input_names
from skdp.utils._types import Bounds, Categories, Classes
from skdp.utils._validation import check_integer, check_verbose
from skdp.utils._values import FrozenValue

# Fraction of the remaining budget for the shape functions from which a tree is grown.
SHAPES_FRACTION = 0.3
# Maximum depth of a tree.
MAX_DEPTH = 12


@dataclass(frozen=True, kw_only=True, eq=False)
class Tree(FrozenValue):
    """Complete binary tree of tests, with the values that its leaves add to a score.

    Parameters
    ----------
    columns : ndarray of shape (n_tests,)
        Positions of the tested columns, level by level from the root.
    sides : ndarray of shape (n_tests, n_cells)
        Branch of each cell of the tested column: 0 or 1.
    most_counts : ndarray of shape (n_leaves,)
        Upper bounds on the number of rows per leaf, from noisy counts.
    values : ndarray of shape (n_leaves,) or (n_leaves, n_classes), default=None
        Values of the leaves; None before they are fitted.

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
    values: np.ndarray | None = None

    @property
    def shape(self):
        """Number of leaves, as a tuple."""
        return self.most_counts.shape

    def block(self, term, weight):
        """Return the block of the leaves in the design of all terms.

        Parameters
        ----------
        term : int
            Index of the term.
        weight : float
            Value of the feature that represents a row's leaf.

        Returns
        -------
        Block
            The block of the leaves.
        """
        groups = np.arange(len(self.most_counts))
        return Block(term=term, weight=weight, groups=groups, counts=self.most_counts)

    def cells(self, column_cells):
        """Return the leaf of each row.

        Parameters
        ----------
        column_cells : ndarray of shape (n_columns, n_rows), or list of ndarray of shape (n_rows,)
            Cells of the rows in each column.

        Returns
        -------
        ndarray of shape (n_rows,)
            Indices of the leaves, from left to right.
        """
        column_cells = np.asarray(column_cells)
        first = 0
        nodes = np.zeros(column_cells.shape[1], dtype=np.intp)
        rows = np.arange(column_cells.shape[1])
        while first < len(self.columns):
            tests = first + nodes
            nodes = 2 * nodes + self.sides[tests, column_cells[self.columns[tests], rows]]
            first = 2 * first + 1
        return nodes

    def term(self, terms, n_rows):
        """Return the tree itself, which serves as the released term.

        Parameters
        ----------
        terms : list of Term
            Terms of single columns.
        n_rows : int
            Public number of rows.

        Returns
        -------
        Tree
            The same object.
        """
        return self

    def expand(self, values):
        """Return the values of the leaves unchanged; only tables are published with more cells.

        Parameters
        ----------
        values : ndarray of shape (n_leaves, n_outputs)
            Fitted values.

        Returns
        -------
        ndarray
            The same object.
        """
        return values


def make_tree(terms, columns, sides):
    """Return the tree with these tests and upper bounds on the counts of its leaves.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns, with noisy counts.
    columns : sequence of int
        Tested column of each test.
    sides : list of ndarray
        For each test, the branch of each cell of its column.
    """
    max_counts = np.array([np.inf])
    while len(max_counts) <= len(columns):
        level = range(len(max_counts) - 1, 2 * len(max_counts) - 1)
        counts = [np.bincount(sides[t], terms[columns[t]].counts, minlength=2) for t in level]
        max_counts = np.minimum(max_counts[:, np.newaxis], counts).ravel()
    width = max(map(len, sides))
    padded = [np.pad(side, (0, width - len(side))) for side in sides]
    return Tree(
        columns=np.array(columns), sides=np.array(padded, dtype=np.int8), most_counts=max_counts
    )


def grow_tree(terms, values, depth):
    """Return the tree that is grown greedily from released shape functions.

    Each test splits the cells that reach it so as to maximize the variance of the released values
    between the two sides. Columns are treated as independent. All leaves have the same depth: a
    node in which no split has a variance is split after the first cell of the first column.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns, with noisy counts, which are the weights of the cells.
    values : list of ndarray of shape (n_cells, n_outputs)
        Values of the shape functions.
    depth : int

    Returns
    -------
    Tree
        Its `values` are None: the values of the leaves are fitted later.
    """
    columns = []
    sides = []
    node_counts = [[term.counts for term in terms]]
    for node in range((1 << depth) - 1):
        counts = node_counts[node]
        variances = []
        splits = []
        for term, column_counts, column_values in zip(terms, counts, values, strict=True):
            variance, split = best_split(term, column_counts, column_values)
            variances.append(variance)
            splits.append(split)
        j = int(np.argmax(variances))
        for branch in (~splits[j], splits[j]):
            node_counts.append([*counts[:j], counts[j] * branch, *counts[j + 1 :]])
        columns.append(j)
        sides.append(splits[j])
    return make_tree(terms, columns, sides)


def best_split(term, counts, values):
    """Return the largest variance between two sides of a split, and the cells of the second side.

    The cells of a numeric column are split in their order. Cells of a categorical column are first
    sorted by their value for the first output.
    """
    sort_keys = np.arange(len(values))
    if "label" in term.kinds:
        sort_keys = values[:, 0]
    order = np.argsort(sort_keys, kind="stable")
    left_counts = np.cumsum(counts[order])[:, np.newaxis]
    left_sums = np.cumsum((counts[:, np.newaxis] * values)[order], axis=0)
    total = max(left_counts[-1, 0], 1e-300)
    products = left_counts * (total - left_counts)
    expected_sums = left_sums[-1] * (left_counts / total)
    squares = ((left_sums - expected_sums) ** 2).sum(axis=1, keepdims=True)
    variances = np.divide(squares, products, out=np.zeros_like(products), where=products > 0.0)
    return variances.max(), np.argsort(order) > variances.argmax()


@dataclass(frozen=True, kw_only=True, eq=False)
class TreeFit(AdditiveFit):
    """A fit of an additive model and of the tree that is grown from its shape functions.

    Parameters
    ----------
    depth : int
    """

    depth: int
    n_bins: int = N_BINS

    n_trees = 1
    main_fraction = 0.0
    finds_variance = False
    has_trends = False
    _extra_fractions = {"first_steps": SHAPES_FRACTION}

    @property
    def _max_joint_cells(self):
        return self.n_trees << self.depth

    def _joint_terms(self, state, source):
        """Take the first steps, and return the tree that is grown from their shape functions."""
        weights = self._take_steps(state, "first_steps", source).weights
        bin_values = state.design.bin_values(weights)
        values = [bin_values[j] for j in range(len(state.terms))]
        return [grow_tree(state.terms, values, self.depth)]


class PrivateTrees(RawTableModel):
    """Base of tree models: their plan, and scores from `trees_` and `intercept_`."""

    def _plan(self, task, shape, guarantee, fit_class=TreeFit, **params):
        """Return the plan of a task on a table of this shape."""
        check_verbose(self.verbose)
        depth = check_integer(self.max_depth, "max_depth", 1, MAX_DEPTH)
        fit = self._make_fit(fit_class, shape, guarantee, task=task, depth=depth, **params)
        return plan_additive(fit)

    def _shapes_and_trees(self, fitted):
        """Return the shape functions of columns and the trees with the values of their leaves.

        Parameters
        ----------
        fitted : FittedTerms
            The terms of columns come first.
        """
        n_columns = self.n_features_in_
        terms = fitted.terms
        values = fitted.values
        trees = []
        for tree, leaf_values in zip(terms[n_columns:], values[n_columns:], strict=True):
            trees.append(replace(tree, values=leaf_values))
        names = input_names(self, None)
        return make_shape_functions(terms[:n_columns], values[:n_columns], names), trees

    def _scores(self, X):
        """Return the intercept plus the values of each row in all shape functions and trees.

        Each score depends, to the last bit, only on its own row.
        """
        scores = []
        for cells, contributions in self._iter_contributions(X):
            # The order in which `sum` adds depends on the number of rows; `accumulate` adds the
            # contributions of a row in sequence.
            column_scores = np.add.accumulate(contributions, axis=1)[:, -1]
            tree_scores = sum(tree.values[tree.cells(cells)] for tree in self.trees_)
            scores.append(column_scores + tree_scores)
        return self.intercept_ + np.concatenate(scores)


class DPDecisionTreeClassifier(RawTableClassifier, PrivateTrees):
    """Decision tree classifier that is grown from private shape functions.

    A shape function is fitted to each column by noisy gradients, as in `DPAdditiveClassifier`. The
    tree is split where rows differ most according to these functions, which is post-processing.
    Then the values of all leaves are fitted together by noisy gradients. Tables need no
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
    max_depth : int, default=6
        Maximum number of tests on the path to a leaf, from 1 to 12.
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
        The fitted tree, as the only item of a list.
    intercept_ : float or ndarray of shape (n_classes,)
        Constant that is added to the value of a leaf.
    shape_functions_ : list of ShapeFunction
        Bins or categories of each column. Their values are 0, because scores come only from the
        tree.
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
    DPRandomForestClassifier : Many random trees, more accurate.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. The numbers of rows and columns and the columns' names and dtypes are public.
    Columns without a separate effect are not chosen: if classes depend on a product of columns, use
    a forest. The proof is in ``docs/theory/forests.md``.

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
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        max_depth: int = 6,
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
