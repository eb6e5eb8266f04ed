"""Naive Bayes on private bins of raw tables."""

import numpy as np

from skdp.gam import DPAdditiveClassifier
from skdp.gam._additive import TermsModel
from skdp.linear_model._classifier import LogisticProbabilitiesMixin, PrivateClassifierMixin
from skdp.naive_bayes._histogram_plan import HistogramNBPlan


class DPHistogramNB(LogisticProbabilitiesMixin, PrivateClassifierMixin, TermsModel):
    r"""Naive Bayes on private histograms of raw tables.

    Each column of numbers is halved again and again, each column of labels has its categories, and
    one release counts the rows of each class in all of these cells. A cell's evidence is how much
    more frequent each class is in it than in the table; a row's score adds up the evidence of its
    cells. Where noise hides what is in a cell, its evidence is that of the cell that it is half
    of. Tables are taken as they are: numbers, strings, dates and gaps.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive: all that is learnt of the data, together.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). With 0 noise is Laplace's and categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high), default="auto"
        The range of numbers and of dates: one pair for all columns, numbers or arrays of shape
        (n_features,), or a pair for some columns. It must not be computed from the data. What is
        not declared is found within the same budget. Values outside are clipped.
    categories : dict of column to list, list, default=None
        The categories of columns of labels, declared, never read off the data: a dict, a list of
        one entry a column (None for a column of numbers), or one flat list for every column. In a
        dict, columns are named by their position or name. What is not declared, or is "auto", is
        found within the same budget, which needs a positive delta. Other labels are a category
        of their own.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None takes the labels of y and thereby declares them public;
        the privacy statement says so. A declared class without rows is fitted like any other.
    {accountant}
    {random_state}

    Attributes
    ----------
    shape_functions_ : list of ShapeFunction
        What each column's cells add to a score, as in `DPAdditiveClassifier`.
    intercept_ : float or ndarray of shape (n_classes,)
        What is added to the sum of the shapes.
    feature_importances_ : ndarray of shape (n_features,)
        The mean magnitude of each column's values over the noisy counts, of sum 1.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    See Also
    --------
    DPAdditiveClassifier : Fits the values of all columns together, in many steps.
    DPGaussianNB : For columns of numbers whose classes are bell-shaped.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns, the columns' names and types are public.
    Columns are seldom independent, and naive Bayes counts what they share twice. So all evidence
    is divided by a temperature, for which a twentieth of the budget is spent. The proof is in
    ``docs/naive_bayes.md``.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger. On calibration of modern neural networks.
    ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHistogramNB
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(17, 90, size=5000), rng.integers(0, 3, size=5000)])
    >>> y = X[:, 0] > 40
    >>> model = DPHistogramNB(epsilon=1.0, bounds={0: (17, 90)}, categories={1: [0, 1, 2]})
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    classes: list | np.ndarray | None = None

    decision_function = DPAdditiveClassifier.decision_function

    def plan_fit(self, shape, guarantee):
        return HistogramNBPlan(
            columns=self._columns(shape),
            n_rows=shape.n_rows,
            n_classes=len(self._planned_classes(shape)),
            guarantee=guarantee,
        )

    def _assumptions(self):
        return (*super()._assumptions(), self._known_labels)
