"""Histograms of features with differential privacy, and features encoded by their bins."""

import math
from dataclasses import dataclass

import numpy as np

from skdp._data import _columns
from skdp._data._containers import as_numbers
from skdp._data._persons import n_units, shares_of
from skdp.base import plans_for_groups, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import counting_mechanism, one_charge
from skdp.preprocessing import _binning
from skdp.preprocessing._categories import first_labels, report_no_match
from skdp.preprocessing._kbins_discretizer import BinningPlan
from skdp.preprocessing._planned import PlannedTransformer
from skdp.utils._frames import objects
from skdp.utils._labels import UNDECLARED
from skdp.utils._sums import project_on_simplex
from skdp.utils._validation import check_boolean, check_choice, check_integer, check_within, is_auto

# What the edges get of epsilon where the output is made of them alone, and where counts are read.
EDGES_FRACTION = {"onehot": 0.9, "ordinal": 0.9, "density": 0.5, "cumulative": 0.5}
UNDECLARED_CUMULATIVE = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramPlan(BinningPlan):
    """The edges that have to be found, and the counts of all columns.

    Parameters
    ----------
    edges : EdgesPlan
    counts : mechanism or None
        Adds noise to all counts together; None releases none.
    mechanism : plan
        What is charged.
    pairs : list of (int, int)
    sparse_output : bool
    """

    counts: object
    pairs: list

    released = "counts of bins"

    def run(self, table, source, persons=None):
        """Return the released attributes."""
        released = super().run(table, source, persons=persons)
        counts = None
        bins = released["_bins"]
        if self.counts is not None:
            total = n_units(table, persons)
            noisy = self.noisy_counts(table, bins, source, shares_of(persons))
            labels = {j: own for j, own in enumerate(bins) if not own.is_numeric}
            report_no_match(
                {j: noisy[j] for j in labels},
                {j: own.other for j, own in labels.items()},
                self.counts,
                total,
            )
            pairs = zip(noisy, (each.is_numeric or each.other >= 0 for each in bins), strict=True)
            counts = objects([consistent_counts(own, total, exactly) for own, exactly in pairs])
        return released | {"counts_": counts, "_pairs": self.pairs}

    def noisy_counts(self, table, bins, source, shares=None):
        """Return the noisy counts of each column's bins."""
        exact = _binning.count_columns(table, bins, shares)
        released = self.counts.release(np.concatenate(exact), random_state=source)
        return _columns.split_by_column(np.asarray(released, dtype=np.float64), exact)


class DPHistogramTransformer(PlannedTransformer):
    """Encode features by the bins of noisy histograms.

    Each numeric column is cut into bins, whose edges are declared or found privately; each
    categorical column has its declared categories for bins. The counts of all bins are released
    with noise. `transform` replaces each value by its bin.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive: bounds, edges and counts together.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). A positive one makes the noise smaller where there are many
        columns.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        The range of numeric columns whose edges are not declared: numbers or arrays of shape
        (n_features,), or one pair for each column. It must not be computed from the data.
        "auto" finds it privately for a fifth of epsilon and at most of delta.
    edges : {"quantile", "uniform"}, array, list or dict, default="quantile"
        "quantile": edges between which there are about as many rows, found privately.
        "uniform": bins of equal width. An array: declared edges for every numeric column. A list
        of one entry a column, or a dict of column to entry, may give each column its own.
        Declared edges are within -1e150 and 1e150 and at least 1e-150 apart. Values beyond the
        outermost edges belong to the outermost bins.
    n_bins : int or "auto", default=32
        The number of bins of columns without declared edges, at least 2. Columns in which a few
        values are common get fewer. "auto" is 32 for "uniform"; for "quantile" as many, from 8 to
        32, as leave each bin 2.5 times as many rows as the scale of the noise in a quantile's
        rank: few for few rows, many columns or a small epsilon.
    categories : dict of column to list, list, default=None
        The categories of categorical columns, declared, never read off the data: a dict, a list
        of one entry a column (None for a numeric one), or one flat list for every column. None
        takes every column as numeric. In a dict, columns are named by their position or name.
    other : label, default=None
        The category that takes the values that are not among a column's categories, in columns
        that have it. Elsewhere such a value is in no bin.
    encode : {"onehot", "ordinal", "density", "cumulative"}, default="onehot"
        "onehot": a column for each bin. "ordinal": the number of the bin, from 0. "density": the
        share of the rows in the bin, by its width if the column is numeric. "cumulative": the
        share of the rows below the value, linear within the bin; for a category half of its own
        rows count. A value in no bin is all zeros, -1, 0 and 0.5.
    interactions : list of pairs of columns, default=None
        For "onehot": a column for each bin of one feature and each bin of another, for models
        that only add up what features say. Columns are named by their position or name. These
        cells are products of the released bins, so that they cost no privacy.
    unit_norm : bool or "auto", default="auto"
        Whether to divide the output by the bound on its rows' Euclidean norm, so that it is at
        most 1, the `data_norm` that linear models take by default. "auto" does so for "onehot":
        an entry is then ``1 / sqrt(n_features + n_pairs)``.
    edges_fraction : float or "auto", default="auto"
        What "quantile" edges take of the epsilon that the bounds leave, in (0, 1]. With 1 no counts
        are released and `counts_` is None. "auto" is 0.9 for "onehot" and "ordinal", which do not
        read the counts, and 0.5 for the others. Without "quantile" columns it must be "auto".
    sparse_output : bool, default=False
        Whether `transform` returns a CSR array, for "onehot" only.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    bin_edges_ : ndarray of shape (n_features,), of ndarray
        The edges of each numeric column; the categories of each categorical one.
    counts_ : ndarray of shape (n_features,), of ndarray, or None
        Noisy counts of each column's bins: not negative, not whole, and of sum n (at most n where a
        value may be in no bin).
    n_bins_ : ndarray of shape (n_features,)
        The number of bins of each column.
    output_norm_ : float
        A bound on the Euclidean norm of every row that `transform` returns, from the parameters
        and released values alone: a `data_norm` for the model that follows.
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
    DPKBinsDiscretizer : Finds edges only.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The number of rows is public. The proof is in ``docs/transformers.md``.

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
        bounds: tuple | dict | str = "auto",
        edges: object = "quantile",
        n_bins: int | str = 32,
        categories: dict | list | None = None,
        other: object = None,
        encode: str = "onehot",
        interactions: list | None = None,
        unit_norm: bool | str = "auto",
        edges_fraction: float | str = "auto",
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
        """Release statistics of each feature and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Rows; `DPPCA` takes a sparse matrix too. They are read block by block where what is
            released is a sum.
        y : None
            Ignored, present for pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

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
        return self._fit(X, y, groups)

    def _statement(self, plan):
        kinds = {each.kind for each in plan.edges.bins}
        said = {"categories": "categories", "declared": "edges"}
        words = [word for kind, word in said.items() if kind in kinds]
        sizes, *bounds = super()._statement(plan)["public"]
        return {"public": (sizes, *words, *bounds)}

    def _check_rows(self, rows, plan):
        self._check_values(rows, plan.edges.bins, is_fit=True)

    def _released(self, run, plan):
        norm = _norm_bound(self.encode, run["_bins"], run["counts_"], plan.pairs)
        if not self._divides():
            return run | {"output_norm_": norm, "_factor": 1.0}
        # Rounded down, so that no row's norm exceeds 1.
        factor = math.nextafter(1.0 / norm, 0.0) * (1.0 - 2.0**-50)
        return run | {"output_norm_": 1.0, "_factor": factor}

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. Where the
            number of rows or of columns is None, the plan's event holds for every shape, and
            parameters that need no shape are checked all the same.
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
        check_choice(self.encode, "encode", tuple(EDGES_FRACTION))
        if check_boolean(self.sparse_output, "sparse_output") and self.encode != "onehot":
            raise ValueError("sparse_output is for encode='onehot' only")
        self._divides()  # It refuses what is neither true nor false.
        n_features = shape.n_columns
        names = shape.names
        pairs = self._planned_pairs(shape)
        if pairs and self.encode != "onehot":
            raise ValueError("interactions are for encode='onehot' only")
        bins = _binning.column_bins(self.categories, self.other, self.edges, names, n_features)
        quantiles = len(_binning.columns_of(bins, ("quantile",))) > 0
        if not len(_binning.columns_of(bins, _binning.AUTOMATIC)) and not is_auto(self.bounds):
            raise ValueError("bounds are not read where all edges are declared; leave them out")
        if not quantiles and not is_auto(self.edges_fraction):
            raise ValueError("edges_fraction is for edges='quantile' only")
        share = EDGES_FRACTION[self.encode]
        if not is_auto(self.edges_fraction):
            share = check_within(self.edges_fraction, "edges_fraction", 0.0, 1.0, "(]")
        if share == 1.0 and self.encode in ("density", "cumulative"):
            raise ValueError(f"encode={self.encode!r} needs counts: edges_fraction must be below 1")
        edges = _binning.EdgesPlan.make(bins, self.n_bins, self.bounds, shape, guarantee, share)
        counts = None
        if share < 1.0:
            counts = counts_mechanism(n_features, _largest_size(edges), edges.left)
        return HistogramPlan(
            edges=edges,
            counts=counts,
            mechanism=one_charge((edges.search, edges.quantiles, counts), guarantee),
            pairs=pairs,
            sparse_output=bool(self.sparse_output),
        )

    def expected_error(self, n_features):
        """Return how far the noisy counts will be from those of the released bins.

        Parameters
        ----------
        n_features : int
            The number of columns. The error does not depend on the number of rows.

        Returns
        -------
        float
            The root mean square of each count's error, before counts are made consistent.

        Raises
        ------
        ValueError
            If a parameter is not as described, or no counts are released.

        Examples
        --------
        >>> from skdp import DPHistogramTransformer
        >>> histogram = DPHistogramTransformer(epsilon=1.0, edges="uniform", bounds=(0, 1))
        >>> round(histogram.expected_error(n_features=2), 2)
        2.8
        """
        n_features = check_integer(n_features, "n_features", low=1)
        plan = self._plan_of_size(1, n_features)
        if plan.counts is None:
            raise ValueError("with edges_fraction=1 no counts are released")
        return plan.counts.deviation(_largest_size(plan.edges))

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
            As `encode` says; `n_outputs` is `n_features`, for "onehot" the sum of `n_bins_` and of
            the products of pairs.
        """
        table = self._table(X)
        self._check_values(table, self._bins)
        codes = _binning.bin_codes(table, self._bins)
        factor = self._factor
        if self.encode == "onehot":
            crosses = _binning.crossed(codes, self.n_bins_, self._pairs)
            return _binning.one_hot(*crosses, factor, self.sparse_output)
        if self.encode == "ordinal":
            return codes * factor
        encoded = np.empty(table.shape)
        for j, (each, counts) in enumerate(zip(self._bins, self.counts_, strict=True)):
            if self.encode == "cumulative" and each.is_numeric:
                column = as_numbers(table.column(j).whole())
                below = np.append(0, np.cumsum(counts))
                shares = np.minimum(below / max(below[-1], 1.0), 1.0)
                encoded[:, j] = np.interp(column, each.limits, shares)
                continue
            values = np.append(densities(each, counts), 0.0)
            if self.encode == "cumulative":
                values = np.cumsum(values) - 0.5 * values
                values[UNDECLARED] = UNDECLARED_CUMULATIVE
            encoded[:, j] = values[codes[:, j]]
        return encoded * factor

    def _names_made(self, names, parts, form=None):
        made = super()._names_made(names, parts)
        if parts is None:
            return made
        pairs = self._pairs if form is None else self._planned_pairs(form)
        cells = np.split(made, np.cumsum([len(own) for own in parts]))
        return made + [f"{a} {b}" for i, j in pairs for a in cells[i] for b in cells[j]]

    def _parts_of_columns(self):
        if self.encode == "onehot":
            return [_parts_of(each, each.size) for each in self._bins]

    def _planned_parts(self, form):
        if self.encode != "onehot":
            return None
        bins = _binning.column_bins(
            self.categories, self.other, self.edges, form.names, form.n_columns
        )
        return [_parts_of(each, _binning.planned_size(each, self.n_bins)) for each in bins]

    def _planned_pairs(self, form):
        return _binning.column_pairs(self.interactions or [], form.names, form.n_columns)

    @property
    def _makes_sparse(self):
        return bool(self.sparse_output)

    def _read(self, X, reset=True):
        read = _columns.read_numeric_columns if self.categories is None else _columns.read_columns
        return read(self, X, reset=reset)

    def _example_labels(self):
        labels = {j: each.limits for j, each in enumerate(self._bins) if not each.is_numeric}
        return first_labels(labels)

    def _check_values(self, table, bins, *, is_fit=False):
        if self.categories is not None:
            checks = _columns.check_labels, _columns.check_numbers
            labels = {j: each.limits for j, each in enumerate(bins) if not each.is_numeric}
            # The category of other values is not one of the column's own.
            expected = {j: own[np.arange(len(own)) != bins[j].other] for j, own in labels.items()}
            of_values = {j: checks[each.is_numeric] for j, each in enumerate(bins)}
            table.check(of_values, labels, expected=expected if is_fit else None)

    def _divides(self):
        if is_auto(self.unit_norm):
            return self.encode == "onehot"
        return check_boolean(self.unit_norm, "unit_norm")

    @property
    def _accepts(self):
        return () if self.categories is None else ("string", "categorical")


def _parts_of(each, size):
    """Return the numbers of a column's bins or its categories; None where `size` is None."""
    if size is None:
        return None
    return range(size) if each.is_numeric else each.limits.tolist()


def counts_mechanism(n_features, size, guarantee):
    """Return the mechanism for the counts of all features' bins together.

    A row is in one bin of each feature; one that replaces another can change two.
    """
    moved = guarantee.neighbors.sensitivity_factor * n_features
    # An epsilon too small for so many counts is refused here.
    return counting_mechanism(moved, guarantee, error=lambda noise: noise.deviation(size))


def consistent_counts(noisy, total, exactly=True):
    """Return the nearest counts, by least squares, that are not negative and sum to a total.

    Parameters
    ----------
    noisy : ndarray of shape (n_bins,)
    total : float
        Public.
    exactly : bool, default=True
        Whether the sum must be the total, or may be less.
    """
    positive = np.maximum(noisy, 0.0)
    fits = not exactly and positive.sum() <= total
    return positive if fits else project_on_simplex(noisy, total)


def densities(each, counts):
    """Return the share of the rows in each bin of a column, by its width if it is of numbers."""
    shares = counts / max(counts.sum(), 1.0)
    return shares / np.diff(each.limits) if each.is_numeric else shares


def _norm_bound(encode, bins, counts, pairs):
    """Return a bound on the norm of an encoded row, from released values alone."""
    if encode in ("onehot", "cumulative"):
        root = math.sqrt(len(bins) + len(pairs))
        return root if root.is_integer() else math.nextafter(root, math.inf)
    if encode == "ordinal":
        largest = [max(each.size - 1, 1) for each in bins]
    else:
        largest = [densities(*column).max() for column in zip(bins, counts, strict=True)]
    # Where no count is positive all densities are 0, and any bound is one.
    return math.hypot(*largest) * (1.0 + 2.0**-40) or 1.0


def _largest_size(edges):
    """An upper bound on the number of counts, known before any edges are."""
    return sum(edges.n_bins if each.limits is None else len(each.limits) for each in edges.bins)
