"""One-hot encoding of declared or privately discovered categories."""

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_columns
from skdp._data._labels import category_codes
from skdp._data._persons import n_units
from skdp.base import (
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import plan_release
from skdp.mechanisms._randomized_response import labels_array
from skdp.preprocessing._binning import ColumnBins, bin_codes, one_hot
from skdp.preprocessing._planned import PlannedTransformer
from skdp.stats._categories import (
    Declared,
    category_lists,
    check_declared,
    check_encoded,
    encoded_categories,
    first_labels,
    plan_counts,
    plan_discovery,
    position_of,
    report_constant,
)
from skdp.utils._types import Categories
from skdp.utils._validation import check_boolean, check_real


class DPOneHotEncoder(PlannedTransformer):
    """Encode categories as indicator columns, one for each category.

    Categories are declared, or found by a stability threshold on their noisy counts. Rare and
    unknown categories are encoded as zeros, or as the category `other`.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for all columns together.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). Finding categories needs a positive delta. With declared
        categories, 0 adds discrete Laplace noise to the counts and a positive delta adds Gaussian
        noise.
    categories : list, dict of column to list or "auto", or "auto", default=None
        Declared categories, which must not be taken from the data: a list with one list per column,
        a dict from a column's name or position to its list, or one flat list for every column. None
        or "auto" finds the numbers and strings that many rows contain. "auto" instead of a column's
        list finds the categories of this column.
    other : label, default=None
        Category of the values that are unknown or infrequent. It is the last output column, unless
        it is a declared category. None encodes these values as zeros. A column in which no category
        was found then has no output column. A model behind the encoder may refuse this after the
        encoder was charged.
    min_frequency : int or float, default=None
        Noisy count (int) or fraction of the rows (float below 1) below which a category is
        infrequent and has no output column.
    sparse_output : bool, default=True
        If True, `transform` returns a CSR matrix, else an array.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    categories_ : list of ndarray
        Categories of each column: the declared ones, or those found, sorted with numbers before
        strings; then `other`, if it is not one of them. Equal numbers are one category: True, 1 and
        1.0 are found as 1. A search for categories accepts only text and numbers of magnitude below
        2**53. Other values (dates, intervals, long identifiers) are refused before the charge.
    counts_ : list of ndarray
        Noisy counts of each column's categories, without an appended `other`. If categories are
        declared and `min_frequency` is None, nothing is counted; the attribute, or the entry of
        such a column, is then None.
    infrequent_categories_ : list of ndarray
        Categories of each column that have no output column.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they are all strings.
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
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. With declared categories and no `min_frequency`, nothing is computed from the
    data: nothing is charged and the statement's epsilon is 0. Missing values are treated as unknown
    categories. The proof is in ``docs/theory/encoders.md``.

    References
    ----------
    A. Korolova, K. Kenthapadi, N. Mishra and A. Ntoulas. Releasing search queries and clicks
    privately. WWW 2009.

    R. J. Wilson, C. Y. Zhang, W. Lam, D. Desfontaines, D. Simmons-Marengo and B. Gipson.
    Differentially private SQL with bounded user contribution. PoPETs 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPOneHotEncoder
    >>> X = np.array([["tea"]] * 500 + [["coffee"]] * 400 + [["my secret recipe"]])
    >>> encoder = DPOneHotEncoder(epsilon=1.0, delta=1e-6, sparse_output=False).fit(X)
    >>> encoder.get_feature_names_out()
    array(['x0_coffee', 'x0_tea'], dtype=object)
    >>> encoder.transform([["tea"], ["water"]])
    array([[0., 1.],
           [0., 0.]])
    """

    _public = ("categories", "other")
    _accepts = ("categorical", "string", "allow_nan")

    _may_release_nothing = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        categories: Categories | Literal["auto"] | None = None,
        other: object = None,
        min_frequency: float | None = None,
        sparse_output: bool = True,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.other = other
        self.min_frequency = min_frequency
        self.sparse_output = sparse_output
        self.accountant = accountant
        self.random_state = random_state

    def _read(self, X, reset=True):
        """Return validated columns of labels."""
        return read_columns(self, X, reset=reset, allow_nan=True)

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. A table that is larger than memory is read block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            categories, counts = fit.run(plan, table)
            min_count = _min_count(self.min_frequency, table.shape.n_rows)
            fit.publish(
                plan,
                categories_=[_with_other(labels, self.other) for labels in categories],
                counts_=counts,
                infrequent_categories_=_infrequent(categories, counts, min_count, self.other),
            )
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table. If the number of rows or of columns is None, the plan's event
            holds for every shape; parameters that need no shape are still checked.
        guarantee : Guarantee
            Guarantee that the fit must meet. It replaces `epsilon`, `delta` and `accountant`, which
            are not read.

        Returns
        -------
        Plan
            Plan made from public information only. No data is read, nothing is charged and no noise
            is drawn.

        Raises
        ------
        ValueError
            If a parameter is invalid, as in `fit`.
        """
        check_boolean(self.sparse_output, "sparse_output")
        _check_other(self.other)
        min_count = _min_count(self.min_frequency, shape.n_rows)
        categories = category_lists(self.categories, shape)
        if min_count is not None:
            plan = plan_counts(self.categories, self.other, shape, guarantee)
        elif any(labels is None for labels in categories):
            plan = plan_discovery(categories, self.other, guarantee, is_counted=False)
        else:
            declared = Declared(categories)
            plan = plan_release(declared, declared.run)
        run = partial(_release_categories, plan.mechanism)
        return replace(plan, run=run, sparse_output=bool(self.sparse_output))

    def _check_rows(self, rows, plan):
        check_declared(rows, plan.mechanism)

    @row_wise_answer
    def transform(self, X):
        """Return indicators of each row's categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray or csr_matrix of shape (n_samples, n_encoded_features), float64
        """
        table = self._read_samples(X)
        check_encoded(self, table)
        bins = [
            ColumnBins("categories", labels, position_of(self.other, labels))
            for labels in self._encoded_labels()
        ]
        widths = np.array([column.size for column in bins])
        encoded = one_hot(bin_codes(table, bins), widths, 1.0, self.sparse_output)
        if self.sparse_output:
            # scikit-learn's encoder also returns a matrix.
            return csr_matrix(encoded)
        return encoded

    @private_answer
    def inverse_transform(self, X):
        """Return the category of each indicator.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_encoded_features)
            Output of `transform`.

        Returns
        -------
        ndarray of shape (n_samples, n_features), object
            Categories; None where no indicator is set.
        """
        check_is_fitted(self)
        if hasattr(X, "toarray"):
            X = X.toarray()
        X = np.asarray(X)
        indicators = [
            (j, label)
            for j, labels in enumerate(self._encoded_labels())
            for label in labels.tolist()
        ]
        if X.ndim != 2 or X.shape[1] != len(indicators):
            raise ValueError("X must have one column for each encoded feature")
        decoded = np.empty((len(X), self.n_features_in_), dtype=object)
        for column, (j, label) in zip(X.T, indicators, strict=True):
            decoded[column != 0, j] = label
        return decoded

    def _example_labels(self):
        return first_labels(encoded_categories(self))

    def _parts_of_columns(self):
        return [labels.tolist() for labels in self._encoded_labels()]

    def _planned_parts(self, form):
        """Return the labels of each column's indicators before a fit; None where they are found."""
        if self.min_frequency is not None:
            return [None] * form.n_columns
        parts = []
        for labels in category_lists(self.categories, form):
            if labels is not None:
                labels = _with_other(labels, self.other).tolist()
            parts.append(labels)
        return parts

    @property
    def _makes_sparse(self):
        """True if the output is sparse."""
        # Other values are refused by `plan_fit`, whose error names the step.
        return self.sparse_output is True or bool(
            isinstance(self.sparse_output, np.bool_) and self.sparse_output
        )

    def _encoded_labels(self):
        """Return, for each column, the categories that have an indicator."""
        encoded_labels = []
        for labels, infrequent in zip(self.categories_, self.infrequent_categories_, strict=True):
            if len(infrequent):
                labels = labels[category_codes(labels, infrequent) < 0]
            encoded_labels.append(labels)
        return encoded_labels


def _check_other(other):
    """Raise `ValueError` unless `other` is None or a label: a hashable value, not NaN."""
    try:
        usable = np.ndim(other) == 0 and other == other and hash(other) is not None
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise ValueError(f"other must be one label or None, got {other!r}")


def _release_categories(release, table, source, persons=None):
    """Return the categories of each column, and their noisy counts or None.

    Parameters
    ----------
    release : DeclaredCounts, MixedCategories, StabilityThreshold or Declared
    table : ColumnTable
    source : RandomSource
    persons : Persons, default=None
        Persons of the rows.
    """
    categories, counts = release.run(table, source, persons=persons)
    if counts is not None:
        counted = {j: values for j, values in enumerate(counts) if values is not None}
        other = getattr(release, "other", None)
        others = {j: position_of(other, categories[j]) for j in counted}
        report_constant(counted, others, release.noise, n_units(table, persons))
    return categories, counts


def _min_count(min_frequency, n_rows):
    """Return the noisy count below which a category is infrequent, or None."""
    if min_frequency is None:
        return None
    min_count = check_real(min_frequency, "min_frequency")
    is_share = isinstance(min_frequency, float) and 0.0 < min_count < 1.0
    if not (is_share or (min_count.is_integer() and min_count >= 1)):
        raise ValueError(
            f"min_frequency must be a count or a fraction in (0, 1), got {min_frequency!r}"
        )
    if is_share:
        min_count *= n_rows
    return min_count


def _infrequent(categories, counts, min_count, other):
    """Return the infrequent categories of each column; `other` is never one of them."""
    if min_count is None:
        return [labels[:0] for labels in categories]
    return [
        labels[(noisy < min_count) & (np.arange(len(labels)) != position_of(other, labels))]
        for labels, noisy in zip(categories, counts, strict=True)
    ]


def _with_other(labels, other):
    """Return labels, followed by `other` unless it is None or among them."""
    if other is None or position_of(other, labels) >= 0:
        return labels
    return labels_array([*labels.tolist(), other])
