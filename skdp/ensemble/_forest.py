"""Random forests: public random tests over private bins, and all leaves in one fit.

Derived in ``docs/forests.md``.
"""

import numpy as np
from sklearn.utils import check_random_state

from skdp.gam._models import RawTableClassifier, RawTableRegressor
from skdp.tree._decision_tree import PrivateTrees, TreePlan, tree_of
from skdp.utils._validation import check_integer, is_auto

# What the cells of single columns have of the squares of a row's weights, beside the trees. This
# and the numbers of trees were chosen on training rows, see docs/forests.md.
MAIN_SHARE, PURE_MAIN_SHARE = 0.2, 0.5
# With delta = 0 noise grows with the number of trees: one for so many n epsilon, at least five.
N_TREES, PURE_ROWS, FEWEST_TREES = 300, 500, 5
# And few rows are left in a leaf: a number is cut where its noisy counts have such a part below.
PURE_CUTS = 0.25, 0.75
MOST_TREES = 4000


def random_tree(terms, depth, draws, cuts=None):
    """Return a tree of random columns; bins are cut at random, labels and gaps thrown.

    With `cuts`, two numbers, a part of the rows between them is below a cut, by noisy counts.
    """
    columns, sides = draws.randint(len(terms), size=(1 << depth) - 1), []
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

    main_share = property(lambda self: PURE_MAIN_SHARE if self.budget.pure else MAIN_SHARE)
    _choice_shares = {}

    def _joined(self, terms, *fit):
        draws = check_random_state(self.seed)
        cuts = PURE_CUTS if self.budget.pure else None
        return None, [random_tree(terms, self.depth, draws, cuts) for _ in range(self.n_trees)]


class PrivateForest(PrivateTrees):
    """The parameters of forests, and their plan.

    Parameters
    ----------
    n_estimators : int or "auto", default="auto"
        The number of random trees, at most 4000. "auto" is 300; with delta = 0, where noise grows
        with it, one for each 500 / epsilon rows, from 5 to 300.
    max_depth : int, default=3
        How many tests lead to a leaf, from 1 to 12.
    structure_seed : int, default=0
        Of the trees' tests. It is public and must not be chosen by looking at the data; noise
        never comes from it.

    Attributes
    ----------
    trees_ : list of Tree
        The trees.
    shape_functions_ : list of ShapeFunction
        Of each column its cells, and what they add to a score beside the trees.
    """

    n_estimators: int | str = "auto"
    max_depth: int = 3
    structure_seed: int = 0

    _public = (*PrivateTrees._public, "structure_seed")

    def _plan(self, task, shape, guarantee):
        most = shape.n_rows * guarantee.epsilon / PURE_ROWS if guarantee.delta == 0.0 else N_TREES
        n_trees = int(np.clip(most, FEWEST_TREES, N_TREES))
        if not is_auto(self.n_estimators):
            n_trees = check_integer(self.n_estimators, "n_estimators", 1, MOST_TREES)
        seed = check_integer(self.structure_seed, "structure_seed", 0, 2**32 - 1)
        return super()._plan(task, shape, guarantee, ForestPlan, n_trees=n_trees, seed=seed)


class DPRandomForestClassifier(RawTableClassifier, PrivateForest):
    r"""Classifier by a forest of random trees, all of whose leaves are fitted together.

    Each column is cut into bins by private counts, or has categories. Each tree tests random
    columns at random cuts, which follow from a public seed: its structure costs nothing. A row
    is in one leaf of each tree, and its score is the sum of their values, which noisy gradients
    find together. So what trees have in common is learnt once, and trees of products of columns
    are found where no column tells anything alone. Tables are taken as they are: numbers, strings,
    dates and gaps.

    Parameters
    ----------
    {epsilon}
    {delta}
    {bounds}
    {categories}
    {n_estimators}
    {max_depth}
    {structure_seed}
    {classes}
    {class_weight}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {trees_}
    intercept_ : float or ndarray of shape (n_classes,)
        What is added to the sums of the leaves' and the cells' values.
    {shape_functions_}
    {noise_multiplier_}
    {classes_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    See Also
    --------
    DPAdditiveClassifier : One curve a column, which can be read; faster.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns, the columns' names and types are public.
    There are no `feature_importances_` and no out-of-bag estimates: the latter would be computed
    from raw rows. With delta = 0 take a forest for products of columns only: where columns tell
    something alone `DPAdditiveClassifier` is as good or better. The proof is in
    ``docs/forests.md``.

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

    classes: list | np.ndarray | None = None
    class_weight: dict | None = None


class DPRandomForestRegressor(RawTableRegressor, PrivateForest):
    r"""Regressor by a forest of random trees, all of whose leaves are fitted together.

    Each column is cut into bins by private counts, or has categories. Each tree tests random
    columns at random cuts, which follow from a public seed: its structure costs nothing. A row
    is in one leaf of each tree, and its prediction is the sum of their values, which noisy
    gradients find together. Tables are taken as they are: numbers, strings, dates and gaps.

    Parameters
    ----------
    {epsilon}
    {delta}
    {bounds}
    {categories}
    {n_estimators}
    {max_depth}
    {structure_seed}
    {target_bounds}
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {trees_}
    intercept_ : float
        What is added to the sums of the leaves' and the cells' values.
    {shape_functions_}
    {noise_multiplier_}
    {target_bounds_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    See Also
    --------
    DPAdditiveRegressor : One curve a column, which can be read; faster.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns, the columns' names and types are public.
    Residuals are clipped to an eighth of the span of `target_bounds`: where errors are larger,
    predictions are between the mean and the median. With delta = 0 take a forest for products of
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

    target_bounds: tuple[float, float] | None = None
