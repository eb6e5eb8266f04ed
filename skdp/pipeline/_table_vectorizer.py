"""Vectorizer of raw tables, which returns rows of norm at most 1 for a private model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_columns
from skdp._data._errors import column_name
from skdp._data._frames import objects
from skdp._data._kinds import read_kinds
from skdp._data._labels import is_missing
from skdp._data._output import asks_for_frame
from skdp._data._tables import target_array
from skdp.accounting import Gaussian
from skdp.base import ReadTable, plans_for_groups, private_fit, private_fit_method, row_wise_answer
from skdp.gam._additive import N_BINS
from skdp.gam._blocks import dyadic_weight, resolutions
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms import NoRelease
from skdp.mechanisms._plan import Plan, plan_release
from skdp.mechanisms._unknown_shape import kinds_of_bounds, names_in
from skdp.preprocessing._planned import PlannedTransformer
from skdp.stats._categories import finds_all, first_labels, is_per_column
from skdp.stats._column_cells import (
    Column,
    Term,
    cell_reader,
    check_labels_served,
    declared_columns,
    n_cells,
    served_blocks,
)
from skdp.stats._column_plan import Budget, ColumnsFit
from skdp.utils._types import Bounds, Categories
from skdp.utils._validation import check_choice, check_integer, is_auto, is_choice
from skdp.utils._values import FrozenValue

NUMBERS = ("bins", "scaled")


def _check_for_some_kinds(possible_kinds, bounds, categories, names):
    """Raise `ValueError` if declarations are invalid under every assumption about the columns.

    The kinds are unknown before the fit, so a declaration is refused only if no table could make it
    valid. The error is that of the first assumption.

    Parameters
    ----------
    possible_kinds : list of list of str
        Each assumption is one list, with the kind of every column.
    bounds, categories, names
        As in `declared_columns`.
    """
    refusal = None
    for kinds in possible_kinds:
        try:
            declared_columns(kinds, bounds, categories, names)
            return
        except ValueError as error:
            refusal = refusal or error
    raise refusal


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorizerFit(ColumnsFit):
    """Search for undeclared bounds and categories, and, unless numbers are scaled, for bins.

    Parameters
    ----------
    binned : bool
    has_kinds : bool, default=True
        False if the kinds of the columns are unknown, so the event covers all kinds.
    """

    binned: bool
    has_kinds: bool = True

    @cached_property
    def budget(self):
        """The budget of the fit and its division."""
        # With delta > 0, a fraction of delta is reserved for the selection of categories even if no
        # column needs it, so that the noise does not depend on the columns.
        uses_key_selection = self.guarantee.delta > 0.0 or bool(self._undeclared(categorical=True))
        return Budget(guarantee=self.guarantee, uses_key_selection=uses_key_selection)

    @cached_property
    def budget_fractions(self):
        """Fraction of the budget for each stage; all are 0 if nothing is released.

        The fractions of `ColumnsFit.column_fractions` leave a part for the steps of a model. There
        is no model here, so they are divided by their sum.
        """
        weights = self.column_fractions
        if not self.binned:
            weights["counts"] = 0.0
        total = math.fsum(weights.values()) * (1.0 + 2.0**-50) or 1.0
        return {stage: weight / total for stage, weight in weights.items()}

    @property
    def stages(self):
        return self._column_stages

    @property
    def event(self):
        """Privacy event of all stages."""
        finds_categories = bool(self._undeclared(categorical=True)) or not self.has_kinds
        if self.budget.is_pure or finds_categories:
            return self.budget.event
        # No stage uses the reserved delta.
        return Gaussian(self.budget.multiplier)

    def plan(self, *, sparse_output):
        """Return the plan of the fit."""
        if not any(self.budget_fractions.values()):
            # The plan has the empty event of `NoRelease`, so nothing is charged and `run` draws no
            # noise. Its mechanism is this object nevertheless, because `_check_rows` checks the
            # rows by `plan.mechanism`.
            plan = plan_release(NoRelease(), self.run, sparse_output=sparse_output)
            return replace(plan, mechanism=self)
        if self.binned:
            noise = self._counts_mechanism
            name = f"{noise.name} on counts of cells"
        elif self.bounds_search is not None:
            noise = self.bounds_search.mechanism
            name = f"{self.bounds_search.name} on bounds"
        else:
            noise = self.key_selection
            name = f"{noise.name} on categories"
        return Plan(
            name=name,
            event=self.event,
            epsilon=self.guarantee.epsilon,
            delta=self.guarantee.delta,
            scale=noise.scale,
            sensitivity=noise.sensitivity,
            stages=self.stages,
            run=self.run,
            sparse_output=sparse_output,
            mechanism=self,
        )

    def run(self, table, source, persons=None):
        """Release the undeclared domains and the noisy counts of all columns.

        Both steps are private releases with noise from `source`: `_find_domains` of the bounds and
        categories that are not declared, `_count_cells` of the counts, from which bins are made.
        Nothing else is computed from the rows, so all results may be published.

        Returns
        -------
        kinds : list of str
        edges : ndarray of ndarray
            Bin edges, bounds or categories of each column.
        counts : ndarray of ndarray, or None
            Noisy counts of the cells of each column; None if numbers are scaled.
        """
        columns = self._find_domains(table, source, persons)
        counts = None
        edges = [np.asarray(column.domain) for column in columns]
        if self.binned:
            terms = self._count_cells(columns, table, source, persons)
            edges = [t.edges[0] for t in terms]
            counts = objects([t.counts for t in terms])
        kinds = [column.kind for column in columns]
        return kinds, objects(edges), counts


class DPTableVectorizer(PlannedTransformer):
    """Transform a raw table into rows of norm at most 1 for the model that follows.

    Numbers, dates, strings, categories and booleans, with or without missing values, are accepted.
    A column's dtype or its declaration determines its kind; its values never do. Bounds and
    categories that are not declared are found privately, in one charge.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). Finding categories needs a positive delta.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of the numeric and date columns, by position or name. It must not be computed from the
        data. Values outside the bounds are clipped. Ranges that are not declared are found
        privately.
    categories : dict of column to list, list or "auto", default=None
        Categories of the categorical columns, which must not be read off the data. "auto", for the
        whole table or instead of a column's list, finds them privately; this is also the default
        for columns of strings, categories and objects. An object column of a data frame is
        categorical unless `bounds` names it. Values in all other categories share a feature.
    numeric : {"bins", "scaled"}, default="bins"
        "bins": private bins of about equal counts, at several resolutions, as in the additive
        models. "scaled": the range is scaled to [-1, 1]. This suits models that release one number
        for each pair of features. If all bounds and categories are then declared, nothing is
        learned from the data and nothing is charged.
    n_bins : int or "auto", default="auto"
        Approximate number of bins of a numeric column. Small tables have fewer bins because of the
        noise. "auto" is 32.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    kinds_ : list of {"number", "date", "duration", "label"}
        Kind of each column.
    bin_edges_ : ndarray of shape (n_features_in_,), of ndarray
        Edges of the bins of each numeric column (bounds if it is scaled; dates in days since 1970),
        or the categories of a categorical column.
    counts_ : ndarray of shape (n_features_in_,), of ndarray, or None
        Noisy counts of each column's cells. The last entry counts missing values; in a categorical
        column, the one before counts other categories. None with numeric="scaled".
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has string names.
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
    tabular_pipeline : Puts this transformer before a model, in one budget.
    DPAdditiveClassifier : Accepts raw tables directly.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with the
    row as the unit. It is the first stage of an additive model, and the proof is in
    ``docs/theory/additive_models.md``. Missing values have a separate feature; nothing is imputed.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    J. Dong, A. Roth and W. Su. Gaussian differential privacy. JRSS B 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPTableVectorizer
    >>> age = np.random.default_rng(0).integers(17, 90, size=10_000)
    >>> job = np.where(age < 60, "works", "retired")
    >>> X = np.array([age, job], dtype=object).T
    >>> front = DPTableVectorizer(bounds={0: (17, 90)}, categories={1: ["retired", "works"]})
    >>> rows = front.fit_transform(X)
    >>> bool((rows.multiply(rows).sum(axis=1) <= 1.0).all())
    True
    """

    _accepts = ("categorical", "string", "allow_nan")
    _public = ("bounds", "categories")
    _also_public = ("the columns' types and names",)
    _may_release_nothing = True
    _shape_dependent_if_auto = ()

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        numeric: Literal["bins", "scaled"] = "bins",
        n_bins: int | Literal["auto"] = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.numeric = numeric
        self.n_bins = n_bins
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant, and release bins and all undeclared bounds and categories.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns.
        y : array-like of shape (n_samples,), default=None
            Not used, but checked before the charge for its length, missing values and labels of
            several kinds.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : DPTableVectorizer
            The fitted transformer.

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
            kinds, bin_edges, counts = fit.run(plan, table)
            fit.publish(plan, kinds_=kinds, bin_edges_=bin_edges, counts_=counts)
        return self

    def _read_table(self, X, y=None):
        """Return the `ReadTable` of the columns; the target is checked, but not used."""
        columns, kinds = read_kinds(self, X)
        if y is not None:
            self._check_target(y)
        return ReadTable(rows=columns, shape=self._shape_of(columns, kinds=kinds))

    def _check_target(self, y):
        """Raise an error for a target that a later model would refuse after the charge."""
        checked = check_array(target_array(y), ensure_2d=False, dtype=None, input_name="y")
        if checked.dtype.kind == "O" and any(map(is_missing, checked.ravel())):
            raise ValueError("Input y contains missing values.")

    def _check_rows(self, rows, plan):
        plan.mechanism.check(rows)

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of that shape.

        Parameters
        ----------
        shape : TableShape
            Public information about the table. If the kinds of columns are unknown, columns are
            treated as numeric, undeclared bounds are searched for, and the event also covers a
            search for categories. If a size is None, the plan's event holds for every shape.
        guarantee : Guarantee
            Guarantee of the fit; `epsilon`, `delta` and `accountant` are not read.

        Returns
        -------
        Plan
            Immutable, without any data. Nothing is charged, and no noise is drawn.

        Raises
        ------
        ValueError
            If a fit refuses a parameter.
        """
        binned = check_choice(self.numeric, "numeric", NUMBERS) == "bins"
        n_bins = N_BINS
        if not is_auto(self.n_bins):
            n_bins = check_integer(self.n_bins, "n_bins", 2, 1024)
        kinds = getattr(shape, "kinds", None)
        seeks = self._seeks()
        if kinds is None:
            self._check_declared(shape)
            finds_bounds = seeks
            if binned:
                finds_bounds = is_auto(self.bounds)
            default_bounds = None
            if not finds_bounds:
                default_bounds = (0.0, 1.0)
            columns = [Column(kind="number", domain=default_bounds)] * shape.n_columns
        else:
            columns = declared_columns(kinds, self.bounds, self.categories, shape.names)
            undeclared = [j for j, column in enumerate(columns) if column.domain is None]
            if undeclared and not (binned or seeks):
                labels = [column_name(j, shape.names) for j in undeclared]
                raise ValueError(
                    f"{', '.join(labels)}: not declared. Declare their bounds or categories, or "
                    "pass 'auto' to find them"
                )
        fit = VectorizerFit(
            columns=columns,
            n_rows=shape.n_rows,
            n_bins=n_bins,
            guarantee=guarantee,
            binned=binned,
            has_kinds=kinds is not None,
        )
        return fit.plan(sparse_output=self._makes_sparse)

    def _check_declared(self, shape):
        """Raise `ValueError` if `bounds` or `categories` suit no table of this shape.

        It takes the place of `declared_columns` where the dtypes are unknown. Declarations are
        accepted if they are valid under at least one assumption about the kinds of the columns.
        """
        names = shape.names
        if names is None:
            names = names_in(self.get_params(deep=False), shape.n_columns)
        # Lists with the kind of every column: one for dates and one for durations, or none.
        kinds_with_times = list(kinds_of_bounds(self.bounds, names))
        if not (is_auto(self.bounds) or isinstance(self.bounds, Mapping)):
            # One range for all columns is ignored for object columns, which are categorical. With
            # the kinds below, a wrong range would pass unchecked, so numeric columns are assumed.
            numeric_kinds = [["number"] * shape.n_columns, *kinds_with_times]
            _check_for_some_kinds(numeric_kinds, self.bounds, None, names)
        kinds = [["object"] * shape.n_columns, *kinds_with_times]
        _check_for_some_kinds(kinds, self.bounds, self.categories, names)

    def _seeks(self):
        """Return True if bounds or categories are to be found privately."""
        declarations = (self.bounds, self.categories)
        entries = [
            v
            for declaration in declarations
            if isinstance(declaration, Mapping)
            for v in declaration.values()
        ]
        if not isinstance(self.categories, Mapping) and is_per_column(self.categories):
            entries += [*self.categories]
        return is_auto(self.bounds) or finds_all(self.categories) or any(map(is_auto, entries))

    @row_wise_answer
    def transform(self, X):
        """Transform rows into features; each output row depends only on its input row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Samples. After a fit to a DataFrame, an array must have the same columns in the same
            order.

        Returns
        -------
        csr_array of shape (n_samples, n_outputs), float64
            The norm of a row is at most 1. If `set_output` requests a frame, the result is a dense
            frame.
        """
        check_is_fitted(self)
        table = read_columns(self, X, reset=False, allow_nan=True)
        columns = list(zip(self.kinds_, self.bin_edges_, strict=True))
        check_labels_served(self, table, self._served_categories())
        read = cell_reader(
            [Term(features=(j,), kinds=(kind,), edges=(e,)) for j, (kind, e) in enumerate(columns)],
            checks=True,
        )
        features = Features.of(self._groups())
        places = np.empty((table.shape[0], len(features.columns)), dtype=np.int64)
        values = np.tile(self._weights()[features.columns], (table.shape[0], 1))
        for rows in served_blocks(table, len(features.columns)):
            cells = read(table, rows)
            places[rows] = features.places_of(cells)
            if self.counts_ is None:
                values[rows] *= self._scaled(table, rows, cells)[:, features.columns]
        ends = np.arange(len(places) + 1) * len(features.columns)
        shape = len(places), features.number
        encoded = csr_array((values.ravel(), places.ravel(), ends), shape=shape)
        if self._makes_sparse:
            return encoded
        return encoded.toarray()

    def _served_categories(self):
        """Return the categories of each categorical column."""
        columns = enumerate(zip(self.kinds_, self.bin_edges_, strict=True))
        return {j: edges for j, (kind, edges) in columns if kind == "label"}

    def _example_labels(self):
        return first_labels(self._served_categories())

    def _scaled(self, table, rows, cells):
        """Return numbers scaled to [-1, 1], and 1 for missing values and categorical columns."""
        scaled = np.ones((cells.shape[1], len(self.kinds_)))
        of_numbers = [j for j, kind in enumerate(self.kinds_) if kind == "number"]
        if of_numbers:
            scaled[:, of_numbers] = table.numeric(of_numbers, rows)
        for j, kind in enumerate(self.kinds_):
            if kind not in ("number", "label"):
                scaled[:, j] = Column(kind=kind).numbers(table.values(j, rows))
        ranged = [j for j, kind in enumerate(self.kinds_) if kind != "label"]
        low, high = np.array([self.bin_edges_[j] for j in ranged]).reshape(-1, 2).T
        inside = (2.0 * scaled[:, ranged] - low - high) / (high - low)
        scaled[:, ranged] = np.where(cells[ranged].T, 1.0, np.clip(inside, -1.0, 1.0))
        return scaled

    @property
    def _makes_sparse(self):
        """True unless a data frame is requested, which cannot hold a sparse matrix."""
        return not asks_for_frame(self)

    def _parts_of_columns(self):
        """Return the names of the features of each column; see `_parts_of`."""
        columns = zip(self.kinds_, self.bin_edges_, self._groups(), strict=True)
        return [_parts_of(kind, edges, groups) for kind, edges, groups in columns]

    def _planned_parts(self, form):
        """Return the names of the planned features of each column; None where unknown."""
        if form.kinds is None:
            return [None] * form.n_columns
        columns = declared_columns(form.kinds, self.bounds, self.categories, form.names)
        return [self._planned_parts_of(column) for column in columns]

    def _planned_parts_of(self, column):
        """Return the parts of one column, or None if bins or categories have yet to be found."""
        if column.is_categorical:
            edges = column.domain
        else:
            # Bins are found later. A range always has two ends, even if they are unknown before the
            # fit.
            edges = None
            if is_choice(self.numeric, "scaled"):
                edges = np.zeros(2)
        if edges is None:
            return None
        groups = resolutions(n_cells(column.kind, edges), coarser=not column.is_categorical)
        return _parts_of(column.kind, edges, groups)

    def _groups(self):
        """Return the resolutions of each column."""
        # Columns with equal numbers of cells share one computation.
        sizes = [
            (n_cells(kind, edges), kind != "label")
            for kind, edges in zip(self.kinds_, self.bin_edges_, strict=True)
        ]
        resolutions_by_size = {size: resolutions(size[0], coarser=size[1]) for size in set(sizes)}
        return [resolutions_by_size[size] for size in sizes]

    def _weights(self):
        """Return the weight of each column's features."""
        levels = [len(groups) for groups in self._groups()]
        weights = {level: dyadic_weight(math.sqrt(1.0 / (len(levels) * level))) for level in levels}
        return np.array([weights[level] for level in levels])


def _parts_of(kind, edges, groups):
    """Return the names of one column's features in all its resolutions, before and after a fit."""
    parts = []
    for k, group in enumerate(groups):
        if kind == "label":
            cells = [*edges.tolist(), "other"]
        else:
            cells = range(group[-1])
        level = ""
        if k:
            level = f"coarser{k}_"
        parts += [f"{level}{cell}" for cell in (*cells, "missing")]
    return parts


@dataclass(frozen=True, eq=False)
class Features(FrozenValue):
    """Index arrays of the features of all resolutions of all columns.

    Parameters
    ----------
    columns : ndarray of shape (n_resolutions,)
        Column of each resolution.
    groups : ndarray of shape (n_all_cells,)
        Index of each cell's feature within its resolution.
    first_cells : ndarray of shape (n_resolutions,)
        Start of each resolution in `groups`.
    first_features : ndarray of shape (n_resolutions,)
        Start of each resolution's features among all features.
    number : int
        Number of features.
    """

    columns: np.ndarray
    groups: np.ndarray
    first_cells: np.ndarray
    first_features: np.ndarray
    number: int

    @classmethod
    def of(cls, groups):
        """Return the features of the columns' `resolutions`."""
        every = [group for column_groups in groups for group in column_groups]
        n_cells_of = np.array([len(group) for group in every])
        n_features = np.array([group[-1] + 1 for group in every])
        return cls(
            columns=np.repeat(
                np.arange(len(groups)), [len(column_groups) for column_groups in groups]
            ),
            groups=np.concatenate(every),
            first_cells=np.cumsum(n_cells_of) - n_cells_of,
            first_features=np.cumsum(n_features) - n_features,
            number=int(n_features.sum()),
        )

    def places_of(self, cells):
        """Return the indices of the features of each row, from the cells of each column.

        Parameters
        ----------
        cells : ndarray of shape (n_columns, n_rows)

        Returns
        -------
        ndarray of shape (n_rows, n_resolutions)
        """
        return self.groups[cells[self.columns].T + self.first_cells] + self.first_features
