"""Private histograms of features, and features encoded by their bins."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from skdp._data import _columns
from skdp._data._containers import as_numbers
from skdp._data._frames import objects
from skdp._data._labels import UNDECLARED
from skdp._data._persons import n_units, row_weights_of
from skdp._data._sums import project_on_simplex
from skdp._fitting._findings import (
    CERTAIN_NOISE,
    ONE_BIN,
    is_in_one_bin,
    report_finding,
    report_resolved_bins,
)
from skdp.base import (
    guarantee_of,
    plans_for_groups,
    private_fit,
    private_fit_method,
    row_wise_answer,
)
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import counting_mechanism, join_plans, plan_release
from skdp.preprocessing import _binning
from skdp.preprocessing._kbins_discretizer import ReleasedBins
from skdp.preprocessing._planned import PlannedTransformer
from skdp.stats._categories import first_labels, report_constant, report_no_match
from skdp.utils._types import Bounds, Categories
from skdp.utils._validation import (
    check_boolean,
    check_choice,
    check_integer,
    check_within,
    is_auto,
    is_choice,
)
from skdp.utils._values import FrozenValue

# Default fraction of epsilon spent on the edges: large if the output depends on them alone, smaller
# if it also depends on the counts.
EDGES_FRACTION = {"onehot": 0.9, "ordinal": 0.9, "density": 0.5, "cumulative": 0.5}
UNDECLARED_CUMULATIVE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class BinsAndCounts(FrozenValue):
    """The release made by a fit: the edges that are not declared, and the counts of all columns.

    Parameters
    ----------
    edges : EdgesSearch
    counts : mechanism or None
        Mechanism of all counts together; None if no counts are released.
    """

    edges: _binning.EdgesSearch
    counts: object

    def run(self, table, source, persons=None):
        """Release the edges and the counts, and return the `ReleasedBins`.

        Parameters
        ----------
        table : ColumnTable
        source : RandomSource
            Source of the noise, which the charge returned.
        persons : Persons, default=None
            Persons of the rows.
        """
        bins = self.edges.run(table, source, persons=persons)
        counts = None
        if self.counts is not None:
            total = n_units(table, persons)
            noisy = self.noisy_counts(table, bins, source, row_weights_of(persons))
            labels = {j: column for j, column in enumerate(bins) if not column.is_numeric}
            label_counts = {j: noisy[j] for j in labels}
            others = {j: column.other for j, column in labels.items()}
            report_no_match(label_counts, others, self.counts, total)
            report_constant(label_counts, others, self.counts, total)
            self._report_one_bin(bins, noisy, total)
            column_counts = []
            for column, noisy_column in zip(bins, noisy, strict=True):
                # Every value is in a bin, unless it may be an undeclared category.
                is_complete = column.is_numeric or column.other >= 0
                column_counts.append(consistent_counts(noisy_column, total, is_complete))
            counts = objects(column_counts)
        return ReleasedBins(bins, counts)

    def _report_one_bin(self, bins, noisy, n_units):
        """Report numeric columns with nearly all values in one bin.

        Edges at quantiles are chosen so that no bin contains nearly all values, unless a single
        value is that frequent. With declared edges, the outermost bins contain the values beyond
        the edges.
        """
        noise_std = self.counts.deviation(sum(map(len, noisy)))
        undeclared = self.edges.columns_with_found_bounds
        reported = []
        for j, (column, counts) in enumerate(zip(bins, noisy, strict=True)):
            is_outermost = counts.argmax() in (0, len(counts) - 1)
            if column.kind != "uniform" and not (column.kind == "declared" and is_outermost):
                continue
            # The number of rows is public, so only the largest count is noisy. The column is
            # reported only if the other counts are small even allowing for the noise.
            others = n_units - counts.max() + CERTAIN_NOISE * noise_std
            is_declared = j not in undeclared
            if is_in_one_bin(
                counts, others, column.limits, noise_std, n_units, is_declared=is_declared
            ):
                reported.append(j)
        report_finding(ONE_BIN, reported)
        uniform = [j for j, column in enumerate(bins) if column.kind == "uniform"]
        report_resolved_bins({j: noisy[j].max() for j in uniform}, noise_std, n_units)

    def noisy_counts(self, table, bins, source, row_weights=None):
        """Return the noisy counts of each column's bins."""
        exact = _binning.count_columns(table, bins, row_weights)
        released = self.counts.release(np.concatenate(exact), random_state=source)
        return _columns.split_by_column(np.asarray(released, dtype=np.float64), exact)


class DPHistogramTransformer(PlannedTransformer):
    """Encode features by the bins of noisy histograms.

    Each numeric column is divided into bins with edges that are declared or found privately. The
    bins of a categorical column are its declared categories. The counts of all bins are released
    with noise. `transform` replaces each value with its bin.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for bounds, edges and counts together.
    delta : float, default=0.0
        Largest delta of a fit, in [0, 1). With many columns, Gaussian noise, which needs a positive
        delta, is smaller. If the bins are known and other noise is smaller, a fit is charged, and
        `privacy_` states, a delta of 0.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of the numeric columns without declared edges: numbers or arrays of shape
        (n_features,), or one pair per column. It must not be computed from the data. "auto" finds
        it privately for a fifth of epsilon and at most a fifth of delta.
    edges : {"quantile", "uniform"}, array, list or dict, default="quantile"
        "quantile": bins with about equal numbers of rows, found privately. "uniform": bins of equal
        width. An array: declared edges for every numeric column. A list with one entry per column,
        or a dict of column to entry, sets each column separately. Declared edges are within -1e150
        and 1e150 and at least 1e-150 apart. Values beyond the outermost edges belong to the
        outermost bins.
    n_bins : int or "auto", default=32
        Number of bins of columns without declared edges, from 2 to 2**20. A column with only a few
        common values has fewer bins. "auto" is 32 for "uniform". For "quantile" it is the largest
        number from 8 to 32 for which each bin has at least 2.5 times as many rows as the noise
        scale of a quantile's rank. It is small for few rows, many columns or a small epsilon.
    categories : dict of column to list, list, default=None
        Declared categories of categorical columns, which must not be taken from the data: a dict
        from a column's name or position to its list, a list with one entry per column (None for a
        numeric column), or one flat list for every column. If None, every column is numeric.
    other : label, default=None
        Category that represents all undeclared values in the columns whose list contains it. In
        other columns, an undeclared value is in no bin.
    encode : {"onehot", "ordinal", "density", "cumulative"}, default="onehot"
        "onehot": one column per bin. "ordinal": the index of the bin, from 0. "density": the
        fraction of rows in the bin, divided by its width if the column is numeric. "cumulative":
        the fraction of rows below the value, linear within the bin; a category counts half of its
        rows. A value that is not in any bin becomes zeros, -1, 0 and 0.5 respectively.
    interactions : list of pairs of columns, default=None
        For "onehot": pairs of columns, named by position or name. For each combination of a bin of
        one feature and a bin of the other, a pair adds one column, which is useful to linear
        models. Combining released bins is post-processing.
    unit_norm : bool or "auto", default="auto"
        If True, divide the output by a bound on the Euclidean norm of its rows. The norm is then at
        most 1, the default `data_norm` of linear models. "auto" divides only for "onehot", whose
        nonzero entries are then ``1 / sqrt(n_features + n_pairs)``.
    edges_fraction : float or "auto", default="auto"
        Fraction, in (0, 1], of the epsilon left by the bounds that is spent on "quantile" edges.
        With 1, no counts are released and `counts_` is None. "auto" is 0.9 for "onehot" and
        "ordinal", which do not use the counts, and 0.5 for the others. Without "quantile" columns
        it must be "auto".
    sparse_output : bool, default=False
        If True, `transform` returns a CSR array; only for "onehot".
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    bin_edges_ : ndarray of shape (n_features,), of ndarray
        Bin edges of each numeric column and categories of each categorical column.
    counts_ : ndarray of shape (n_features,), of ndarray, or None
        Noisy counts of each column's bins. They are non-negative, need not be integers, and sum to
        n (at most n in columns where a value may be outside all bins).
    n_bins_ : ndarray of shape (n_features,)
        Number of bins of each column.
    output_norm_ : float
        Bound on the Euclidean norm of every row that `transform` returns, computed from the
        parameters and released values alone. It is a valid `data_norm` for a model fitted to the
        output.
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
    DPKBinsDiscretizer : Releases edges only.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The number of rows is public. The proof is in
    ``docs/theory/transformers.md``.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith. Calibrating noise to sensitivity in private
    data analysis. TCC 2006.

    H. Kaplan, S. Schnapp and U. Stemmer. Differentially private approximate quantiles. ICML 2022.

    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPHistogramTransformer, DPLogisticRegression
    >>> age = np.random.default_rng(0).integers(17, 90, size=10_000)
    >>> job = np.where(age < 60, "works", "retired")
    >>> X = np.array([age, job], dtype=object).T
    >>> histogram = DPHistogramTransformer(
    ...     epsilon=1.0, bounds=(17, 90), n_bins=4, categories={1: ["retired", "works"]}
    ... )
    >>> histogram.fit_transform(X).shape
    (10000, 6)
    >>> histogram.output_norm_
    1.0
    >>> model = make_pipeline(histogram, DPLogisticRegression()).fit(X, age > 40)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        bounds: Bounds | Literal["auto"] = "auto",
        edges: Literal["quantile", "uniform"] | list | dict | np.ndarray = "quantile",
        n_bins: int | Literal["auto"] = 32,
        categories: Categories | None = None,
        other: object = None,
        encode: Literal["onehot", "ordinal", "density", "cumulative"] = "onehot",
        interactions: list | None = None,
        unit_norm: bool | Literal["auto"] = "auto",
        edges_fraction: float | Literal["auto"] = "auto",
        sparse_output: bool = False,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.edges = edges
        self.n_bins = n_bins
        self.categories = categories
        self.other = other
        self.encode = encode
        self.interactions = interactions
        self.unit_norm = unit_norm
        self.edges_fraction = edges_fraction
        self.sparse_output = sparse_output
        self.accountant = accountant
        self.random_state = random_state

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
            released = fit.run(plan, table)
            pairs = self._planned_pairs(table.shape)
            norm = _norm_bound(self.encode, released.bins, released.counts, pairs)
            output_norm = norm
            factor = 1.0
            if self._divides():
                output_norm = 1.0
                # Rounded down, so the norm of a row is at most 1.
                factor = math.nextafter(1.0 / norm, 0.0) * (1.0 - 2.0**-50)
            fit.publish(
                plan,
                public=self._assumptions_of(plan),
                bin_edges_=released.bin_edges,
                n_bins_=released.n_bins,
                counts_=released.counts,
                output_norm_=output_norm,
                _bins=released.bins,
                _pairs=pairs,
                _factor=factor,
            )
        return self

    def _assumptions_of(self, plan):
        """Return descriptions of the facts that a fit by this plan assumes to be public."""
        kinds = {column.kind for column in plan.mechanism.edges.bins}
        parameters = []
        if "categories" in kinds:
            parameters.append("categories")
        if "declared" in kinds:
            parameters.append("edges")
        sizes, *bounds = self._assumptions()
        return (sizes, *parameters, *bounds)

    def _check_rows(self, rows, plan):
        self._check_values(rows, plan.mechanism.edges.bins, is_fit=True)

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
        check_choice(self.encode, "encode", tuple(EDGES_FRACTION))
        if check_boolean(self.sparse_output, "sparse_output") and self.encode != "onehot":
            raise ValueError("sparse_output is for encode='onehot' only")
        self._divides()  # Raises `ValueError` if `unit_norm` is invalid.
        n_features = shape.n_columns
        names = shape.names
        pairs = self._planned_pairs(shape)
        if pairs and self.encode != "onehot":
            raise ValueError("interactions are for encode='onehot' only")
        bins = _binning.column_bins(self.categories, self.other, self.edges, names, n_features)
        quantiles = len(_binning.columns_of(bins, ("quantile",))) > 0
        if not len(_binning.columns_of(bins, _binning.AUTOMATIC)) and not is_auto(self.bounds):
            raise ValueError(
                "bounds are not read if every column has declared edges or categories; leave "
                "bounds out"
            )
        if not quantiles and not is_auto(self.edges_fraction):
            raise ValueError("edges_fraction is for edges='quantile' only")
        edges_fraction = EDGES_FRACTION[self.encode]
        if not is_auto(self.edges_fraction):
            edges_fraction = check_within(self.edges_fraction, "edges_fraction", 0.0, 1.0, "(]")
        if edges_fraction == 1.0 and self.encode in ("density", "cumulative"):
            raise ValueError(f"encode={self.encode!r} needs counts: edges_fraction must be below 1")
        edges = _binning.EdgesSearch.make(
            bins, self.n_bins, self.bounds, shape, guarantee, edges_fraction
        )
        counts = None
        if edges_fraction < 1.0:
            counts = counts_mechanism(n_features, _max_n_counts(edges), edges.remaining)
        release = BinsAndCounts(edges=edges, counts=counts)
        plan = plan_release(
            join_plans((edges.search, edges.quantiles, counts), guarantee),
            release.run,
            stage_name="counts of bins",
            sparse_output=bool(self.sparse_output),
        )
        return replace(plan, mechanism=release)

    def expected_error(self, n_features):
        """Return the expected error of the noisy counts of the released bins.

        Parameters
        ----------
        n_features : int
            Number of columns. The error does not depend on the number of rows.

        Returns
        -------
        float
            Root mean squared error of each count, before counts are made consistent.

        Raises
        ------
        ValueError
            If a parameter is invalid or no counts are released.

        Examples
        --------
        >>> from skdp import DPHistogramTransformer
        >>> histogram = DPHistogramTransformer(epsilon=1.0, edges="uniform", bounds=(0, 1))
        >>> round(histogram.expected_error(n_features=2), 2)
        2.8
        """
        n_features = check_integer(n_features, "n_features", low=1)
        plan = self.plan_fit(self._shape_of_size(1, n_features), guarantee_of(self))
        release = plan.mechanism
        if release.counts is None:
            raise ValueError("with edges_fraction=1 no counts are released")
        return release.counts.deviation(_max_n_counts(release.edges))

    @row_wise_answer
    def transform(self, X):
        """Encode each value by its bin.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs), float64, or csr_array
            Encoded values, as described for `encode`. `n_outputs` is `n_features`; for "onehot" it
            is the sum of `n_bins_` plus the products of the pairs' numbers of bins.
        """
        table = self._read_samples(X)
        self._check_values(table, self._bins)
        codes = _binning.bin_codes(table, self._bins)
        factor = self._factor
        if self.encode == "onehot":
            crosses = _binning.crossed(codes, self.n_bins_, self._pairs)
            return _binning.one_hot(*crosses, factor, self.sparse_output)
        if self.encode == "ordinal":
            return codes * factor
        encoded = np.empty(table.shape)
        for j, (bins, counts) in enumerate(zip(self._bins, self.counts_, strict=True)):
            if self.encode == "cumulative" and bins.is_numeric:
                column = as_numbers(table.column(j).to_array())
                below = np.append(0, np.cumsum(counts))
                cumulative = np.minimum(below / max(below[-1], 1.0), 1.0)
                encoded[:, j] = np.interp(column, bins.limits, cumulative)
                continue
            values = np.append(densities(bins, counts), 0.0)
            if self.encode == "cumulative":
                values = np.cumsum(values) - 0.5 * values
                values[UNDECLARED] = UNDECLARED_CUMULATIVE
            encoded[:, j] = values[codes[:, j]]
        return encoded * factor

    def _names_made(self, names, parts, form=None):
        """Return the names of the output's columns, of which those of pairs of cells are last.

        The parameters are those of `PlannedTransformer._names_made`.
        """
        output_names = super()._names_made(names, parts)
        if parts is None:
            return output_names
        if form is None:
            pairs = self._pairs
        else:
            pairs = self._planned_pairs(form)
        cells = np.split(output_names, np.cumsum([len(column_parts) for column_parts in parts]))
        return output_names + [f"{a} {b}" for i, j in pairs for a in cells[i] for b in cells[j]]

    def _parts_of_columns(self):
        if self.encode == "onehot":
            return [_bin_labels(column, column.size) for column in self._bins]

    def _planned_parts(self, form):
        """Return the names of each column's bins before a fit, or None where they are found.

        The result is None if every column has one output.
        """
        if not is_choice(self.encode, "onehot"):
            return None
        bins = _binning.column_bins(
            self.categories, self.other, self.edges, form.names, form.n_columns
        )
        return [_bin_labels(column, _binning.planned_size(column, self.n_bins)) for column in bins]

    def _planned_pairs(self, form):
        """Return the declared pairs of columns, by positions, for a table of this form or shape."""
        interactions = self.interactions
        if interactions is None:
            interactions = []
        return _binning.column_pairs(interactions, form.names, form.n_columns)

    @property
    def _makes_sparse(self):
        """True if the output is sparse."""
        # Other values are refused by `plan_fit`, whose error names the step.
        return self.sparse_output is True or bool(
            isinstance(self.sparse_output, np.bool_) and self.sparse_output
        )

    def _read(self, X, reset=True):
        """Return the columns of a table, which must be numbers unless categories are declared."""
        if self.categories is None:
            return _columns.read_numeric_columns(self, X, reset=reset)
        return _columns.read_columns(self, X, reset=reset)

    def _example_labels(self):
        labels = {j: column.limits for j, column in enumerate(self._bins) if not column.is_numeric}
        return first_labels(labels)

    def _check_values(self, table, bins, *, is_fit=False):
        """Raise an error for values whose kind differs from that of their column's declaration.

        In a fit, an error is also raised if a column's type cannot hold a declared category.
        """
        if self.categories is not None:
            checks = {}
            labels = {}
            expected = {}
            for j, column in enumerate(bins):
                if column.is_numeric:
                    checks[j] = _columns.check_numbers
                else:
                    checks[j] = _columns.check_labels
                    labels[j] = column.limits
                    # The category that represents undeclared values need not occur in the column.
                    is_expected = np.arange(len(column.limits)) != column.other
                    expected[j] = column.limits[is_expected]
            if not is_fit:
                expected = None
            table.check(checks, labels, expected=expected)

    def _divides(self):
        """Return True if encoded values are divided, so that a row has at most norm 1."""
        if is_auto(self.unit_norm):
            return is_choice(self.encode, "onehot")
        return check_boolean(self.unit_norm, "unit_norm")

    @property
    def _accepts(self):
        """Input tags of scikit-learn that are True."""
        if self.categories is None:
            return ()
        return ("string", "categorical")


def _bin_labels(bins, size):
    """Return the indices of a column's bins, or its categories; None if `size` is None."""
    if size is None:
        return None
    if bins.is_numeric:
        return range(size)
    return bins.limits.tolist()


def counts_mechanism(n_features, size, guarantee):
    """Return the mechanism that releases the counts of all features' bins together.

    A row is in one bin of each feature. If a row replaces another one, two counts can change.
    """
    sensitivity = guarantee.neighbors.sensitivity_factor * n_features
    # The mechanism refuses an epsilon that is too small for this number of counts.
    return counting_mechanism(sensitivity, guarantee, error=lambda noise: noise.deviation(size))


def consistent_counts(noisy, total, exactly=True):
    """Return the least squares estimate of non-negative counts with a known total.

    Parameters
    ----------
    noisy : ndarray of shape (n_bins,)
    total : float
        Public total.
    exactly : bool, default=True
        True if the sum must equal the total; otherwise it may be smaller.
    """
    positive = np.maximum(noisy, 0.0)
    if not exactly and positive.sum() <= total:
        return positive
    return project_on_simplex(noisy, total)


def densities(bins, counts):
    """Return the fraction of rows in each bin, divided by its width if the column is numeric."""
    frequencies = counts / max(counts.sum(), 1.0)
    if bins.is_numeric:
        frequencies = frequencies / np.diff(bins.limits)
    return frequencies


def _norm_bound(encode, bins, counts, pairs):
    """Return a bound on the norm of an encoded row, computed from released values only."""
    if encode in ("onehot", "cumulative"):
        # Each column has one 1 or, with "cumulative", a fraction of at most 1; so does each pair,
        # which only "onehot" has.
        root = math.sqrt(len(bins) + len(pairs))
        if root.is_integer():
            return root
        return math.nextafter(root, math.inf)
    if encode == "ordinal":
        largest = [max(column.size - 1, 1) for column in bins]
    else:
        largest = [
            densities(*column_counts).max() for column_counts in zip(bins, counts, strict=True)
        ]
    # The factor covers the rounding errors of `hypot` and of a norm computed from encoded rows,
    # which are far below 2^-40. If no count is positive, all densities are 0 and every bound is
    # valid.
    return math.hypot(*largest) * (1.0 + 2.0**-40) or 1.0


def _max_n_counts(edges):
    """Return an upper bound on the number of counts that holds for all released edges."""
    size = 0
    for column in edges.bins:
        if column.limits is None:
            size += edges.n_bins
        else:
            size += len(column.limits)
    return size
