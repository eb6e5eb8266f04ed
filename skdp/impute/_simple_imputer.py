"""Imputation of missing values with private statistics."""

import math
from collections.abc import Mapping, Set
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Literal

import numpy as np
from sklearn.base import clone

from skdp._data._columns import ColumnTable, check_not_infinite, declared_bounds, read_columns
from skdp._data._containers import as_cells, is_sequence
from skdp._data._frames import TIMES, objects
from skdp._data._labels import are_missing, is_missing, label_kinds
from skdp._data._output import asks_for_frame
from skdp._data._parts import Rows, sum_over
from skdp._data._persons import n_units, row_weights_of
from skdp._data._sums import range_weights
from skdp._data._tables import indexable_table, read_table
from skdp._fitting._findings import report_no_values, report_unfilled_means
from skdp.base import plans_for_groups, private_fit, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import noise_of_cell_weights, plan_release
from skdp.preprocessing._planned import PlannedTransformer
from skdp.stats._categories import Declared, category_lists, check_declared, plan_counts
from skdp.stats._moments import UNIT_OF_SUMS
from skdp.stats._quantiles import plan_quantiles
from skdp.stats._release import plan_within_bounds
from skdp.utils._types import Bounds, Categories
from skdp.utils._validation import check_boolean, check_choice, has_auto, is_choice

STRATEGIES = ("mean", "median", "most_frequent", "constant")


class DPSimpleImputer(PlannedTransformer):
    """Fill in missing values with a private statistic of each column.

    Missing values are NaN and, in object columns, None and pandas' NA. The positions of missing
    values are as private as the values.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for all columns together.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With many columns, a positive delta makes the noise smaller.
        ``categories=None`` needs a positive delta.
    strategy : {"mean", "median", "most_frequent", "constant"}, default="mean"
        Statistic that replaces missing values. "mean" and "median" are for numeric columns.
        "constant" uses `fill_value`, so nothing is computed from the data and nothing is charged.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        For "mean" and "median": range of each column, numbers or arrays of shape (n_features,), or
        a dict from a column's name or position to its pair. low < high, both within -1e150 and
        1e150 and at least 1e-150 apart. It must not be computed from the data. "auto" finds it
        privately for a fifth of epsilon and at most a fifth of delta. Values are clipped to it in
        `fit`. Ignored by the other strategies.
    categories : list, dict of column to list or "auto", or "auto", default=None
        For "most_frequent": declared categories, which must not be read off the data: a list with
        one list per column, a dict from a column's name or position to its list, or one flat list
        for every column. None or "auto" finds the numbers and strings that many rows contain.
        "auto" instead of a column's list finds the categories of this column. Finding categories
        needs a positive delta. Ignored by the other strategies.
    fill_value : label, default=None
        Value for "constant", and for "most_frequent" in columns where no category was found. None
        means 0. Numbers must be finite. Whether a cell is missing is private, so a pipeline is
        refused if a later step does not accept this value. For a column of strings, use a string.
        Ignored by the other strategies.
    add_indicator : bool, default=False
        If True, `transform` appends one indicator of missing values per column.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        Replacement for the missing values in each column. In a column without values, it is
        arbitrary: a mean is usually the midpoint of the bounds, and a median is a random value
        within them.
    counts_ : list of ndarray or None
        For "most_frequent": noisy counts of each column's declared or found categories.
    bounds_ : tuple of ndarray of shape (n_features,) or None
        For "mean" and "median": bounds of each column, declared or found privately.
    n_features_in_ : int
        Number of columns.
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
    row as the unit. The number of rows is public, but the number of missing values is not. The
    proof is in ``docs/theory/encoders.md``.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith. Calibrating noise to sensitivity in private
    data analysis. TCC 2006.

    F. McSherry and K. Talwar. Mechanism design via differential privacy. FOCS 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSimpleImputer
    >>> ages = np.random.default_rng(0).uniform(17, 90, size=(10_000, 1))
    >>> ages[::7] = np.nan
    >>> imputer = DPSimpleImputer(epsilon=1.0, bounds=(17, 90)).fit(ages)
    >>> bool(abs(imputer.transform([[np.nan]])[0, 0] - np.nanmean(ages)) < 1.0)
    True
    """

    _public = ("bounds", "categories")

    _may_release_nothing = True

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        strategy: Literal["mean", "median", "most_frequent", "constant"] = "mean",
        bounds: Bounds | Literal["auto"] = "auto",
        categories: Categories | Literal["auto"] | None = None,
        fill_value: object = None,
        add_indicator: bool = False,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.strategy = strategy
        self.bounds = bounds
        self.categories = categories
        self.fill_value = fill_value
        self.add_indicator = add_indicator
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
            counts = None
            bounds = None
            if self.strategy in ("mean", "median"):
                statistics = np.ravel(released.released)
                bounds = released.bounds
            else:
                statistics, counts = released
            if self.strategy == "most_frequent":
                statistics = self._modes(statistics, counts)
            fit.publish(plan, statistics_=statistics, counts_=counts, bounds_=bounds)
        return self

    def _charge_needs_no_shape(self):
        return is_choice(self.strategy, "mean") and not has_auto(self.bounds)

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
        check_boolean(self.add_indicator, "add_indicator")
        check_choice(self.strategy, "strategy", STRATEGIES)
        _check_fill_value(self._fill)
        # Parameters are checked even if the strategy does not use them, so that a search over
        # strategies costs nothing if one of them is wrong.
        category_lists(self.categories, shape)
        declared_bounds(self.bounds, shape)

        if self.strategy == "constant":
            declared = Declared(_statistics([self._fill] * shape.n_columns))
            return plan_release(declared, declared.run)
        if self.strategy == "most_frequent":
            return plan_counts(self.categories, None, shape, guarantee)
        plan_statistics = plan_means_of_present
        if self.strategy == "median":
            plan_statistics = plan_medians_of_present
        return plan_within_bounds(plan_statistics, self.bounds, shape, guarantee)

    def _check_rows(self, rows, plan):
        if self.strategy == "most_frequent":
            check_declared(rows, plan.mechanism)

    @property
    def _fill(self):
        """The value for columns without a statistic: `fill_value`, or 0."""
        if self.fill_value is None:
            return 0
        return self.fill_value

    def _modes(self, categories, counts):
        """Return the category with the largest noisy count of each column."""
        modes = []
        for labels, label_counts in zip(categories, counts, strict=True):
            # A column in which no category was found has no counts.
            if len(label_counts):
                mode = labels.tolist()[label_counts.argmax()]
            else:
                mode = self._fill
            modes.append(mode)
        return _statistics(modes)

    @row_wise_answer
    def transform(self, X):
        """Fill in missing values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, 2 n_features)
            Array of float64 if X and the replacements are numbers, otherwise of objects.
        """
        table = self._read_samples(X)
        if not isinstance(table, ColumnTable):
            table = ColumnTable(table.shape, table)
        if self.statistics_.dtype.kind == "f" and all(table.numeric_types):
            filled = table.numbers().to_array()
            missing = np.isnan(filled)
            filled[missing] = np.broadcast_to(self.statistics_, filled.shape)[missing]
        else:
            missing = np.empty(table.shape, dtype=bool)
            filled = np.empty(table.shape, dtype=object)
            for j, statistic in enumerate(self.statistics_):
                column = table.whole_column(j)
                missing[:, j] = are_missing(column)
                if column.dtype.kind in TIMES:
                    # NumPy would convert dates in nanoseconds to integers when it creates objects.
                    column = as_cells(column)
                filled[:, j] = column
                filled[missing[:, j], j] = statistic
        if not self.add_indicator:
            return filled
        return np.hstack([filled, missing.astype(filled.dtype)])

    @property
    def _passes_cells_on(self):
        """True if the output is an array of the input's own cells, which may be of any kind."""
        keeps_kinds = is_choice(self.strategy, "most_frequent", "constant")
        return keeps_kinds and not self.add_indicator and not asks_for_frame(self)

    def _cells_passed_on(self, X):
        """Return X as a fitted imputer would, with some present cell in place of the missing ones.

        Later steps of a pipeline read this table before the first charge, so their errors are
        raised in time.
        """
        imputer = clone(self)
        table = imputer._read(X)
        if not isinstance(table, ColumnTable):
            table = ColumnTable(table.shape, table)
        cells = []
        for j in range(table.shape[1]):
            column = table.whole_column(j)
            present = np.flatnonzero(~are_missing(column))
            if len(present):
                cells.append(column[present[0]])
            else:
                cells.append(self._fill)
        imputer.statistics_ = _statistics(cells)
        # An estimator counts as fitted once it has a statement.
        imputer.privacy_ = None
        return imputer.transform(X)

    def _names_made(self, names, parts, form=None):
        """Return the names of the output columns: those of the input, then the indicators."""
        indicators = []
        if self.add_indicator:
            indicators = [f"missingindicator_{name}" for name in names]
        return [*names, *indicators]

    def _makes_numbers(self, form):
        return self._fills_numbers(form) is True

    def _planned_kinds(self, form, n_columns):
        """Return the kinds of the output's columns, or None if all are numeric or unknown."""
        # A data frame infers its dtypes from its cells, so they are unknown before the fit.
        if n_columns is None or self._fills_numbers(form) is not False or asks_for_frame(self):
            return None
        examples = self._planned_examples(form)
        kinds = ["mixed" if j in examples else "cells" for j in range(form.n_columns)]
        if is_choice(self.strategy, "most_frequent"):
            # `fit` and `transform` refuse values whose kind differs from that of the declared
            # categories.
            for j, labels in enumerate(category_lists(self.categories, form)):
                if _are_text(labels):
                    kinds[j] = "text"
        return (*kinds, *["cells"] * (n_columns - form.n_columns))

    def _planned_examples(self, form):
        """Return example values of the columns in which `fill_value` may be of another kind.

        Whether a cell is missing is private, so later steps must always accept the value.
        """
        if form.kinds is None or self._fills_numbers(form) or asks_for_frame(self):
            return {}
        lists = [None] * form.n_columns
        if is_choice(self.strategy, "most_frequent"):
            lists = category_lists(self.categories, form)
        examples = {}
        for j, (kind, labels) in enumerate(zip(form.kinds, lists, strict=True)):
            # Declared categories are of the column's own kind. If no categories are found, the
            # column is filled with `fill_value`.
            if labels is None and kind == "number":
                examples[j] = [0.5, self._fill]
            elif labels is None:
                # The type of the column may not determine the kind of other values.
                examples[j] = [*form.examples.get(j, []), self._fill]
        return examples

    def _fills_numbers(self, form):
        """Return True if `transform` certainly returns numbers, False if it may return objects.

        The result is None if the kinds of the columns are unknown.
        """
        if is_choice(self.strategy, "mean", "median"):
            return True
        if form.kinds is None:
            return None
        if set(form.kinds) - {"number", "boolean"}:
            return False
        lists = [None] * form.n_columns
        if is_choice(self.strategy, "most_frequent"):
            lists = category_lists(self.categories, form)
        replacements = []
        for labels in lists:
            if labels is None:
                # A numeric column in which no category is found is filled with `fill_value`.
                replacements.append(self._fill)
            else:
                replacements.extend(labels.tolist())
        return all(isinstance(replacement, Real) for replacement in replacements)

    def _read(self, X, reset=True):
        """Return the table as the strategy reads it: numbers, or columns that may have labels."""
        if check_choice(self.strategy, "strategy", STRATEGIES) in ("mean", "median"):
            return read_table(self, X, reset=reset, allow_nan=True)
        # The dtype of the output must not depend on the values in single rows of a list.
        if is_sequence(X):
            X = indexable_table(X)
        table = read_columns(self, X, reset=reset, allow_nan=True)
        table.check(dict.fromkeys(range(table.shape[1]), check_not_infinite))
        return table

    @property
    def _accepts(self):
        """Input tags of scikit-learn that are True."""
        if is_choice(self.strategy, "most_frequent", "constant"):
            return ("allow_nan", "string", "categorical")
        return ("allow_nan",)


def plan_medians_of_present(shape, guarantee):
    """Return the plan of the medians of the values that are not missing, within bounds.

    The number of these values is private, so the plan does not use the number of rows.
    """
    return plan_quantiles(replace(shape, n_rows=None), guarantee, quantiles=[0.5])


def plan_means_of_present(shape, guarantee):
    """Return the plan of the means of the values that are not missing, within bounds.

    A value is a weighted mean of the two bounds. The two weights, which add up to 1, are added to
    two sums; a missing value adds nothing. So one release determines the sum of the values and
    their number.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,). It
        returns the means, within the bounds. A mean is the midpoint of the bounds if the noisy
        number of values is below the standard deviation of its noise.
    """
    mechanism = noise_of_cell_weights(shape.n_columns, guarantee, whole=False)
    return plan_release(
        mechanism,
        partial(_release_means_of_present, mechanism),
        stage_name="sums of the values that are present",
        unit=UNIT_OF_SUMS,
        size=2 * shape.n_columns,
    )


def _release_means_of_present(mechanism, X, source, low, high, persons=None):
    """Release the columns' weights of their bounds, and return the means of present values.

    A value has a weight for each bound, of sum 1: the closer one has the larger weight. The noisy
    weights give the mean and the number of values.
    """
    sums = np.zeros((2, X.shape[1]))
    args = (low, high, n_units(X, persons))
    sum_over(Rows(X), _add_weights_of_bounds, sums, *args, row_args=(row_weights_of(persons),))
    low_weights, high_weights = mechanism.release(sums, random_state=source)
    noise_std = mechanism.deviation(sums.size)
    counts = low_weights + high_weights
    # The count is a sum of two noisy values.
    count_std = math.sqrt(2.0) * noise_std
    report_no_values(counts, count_std, n_units(X, persons))
    is_significant = counts > count_std
    divisors = np.where(is_significant, counts, 1.0)
    positions = np.clip(np.where(is_significant, high_weights / divisors, 0.5), 0.0, 1.0)
    # The noise in a mean at one end is that in the sum of weights for the other end. Means are
    # scaled to [-1, 1], which is twice as long.
    report_unfilled_means(2.0 * positions - 1.0, 2.0 * noise_std / divisors, low, high)
    return low + positions * (high - low)


def _check_fill_value(fill_value):
    """Raise `ValueError` if `fill_value` is not one present and finite value."""
    # Without this check, a dict of columns would be the value of every missing cell.
    is_collection = isinstance(fill_value, Mapping | Set)
    if is_collection or np.ndim(fill_value) != 0 or is_missing(fill_value):
        raise ValueError(f"fill_value must be a single non-missing value, got {fill_value!r}")
    if isinstance(fill_value, Real) and not math.isfinite(fill_value):
        raise ValueError(f"fill_value must be finite, got {fill_value!r}")


def _are_text(labels):
    """Return True if labels are text, which is never read as numbers."""
    return labels is not None and label_kinds(labels) == {"text"}


def _statistics(values):
    """Return an array of floats if all values are numbers, otherwise of objects."""
    if all(isinstance(value, Real) for value in values):
        return np.array(values, dtype=np.float64)
    return objects(values)


def _add_weights_of_bounds(sums, block, row_weights, low, high, n_all_units):
    """Add the weights of the two bounds to `sums`, in place; missing values have no weight.

    Parameters
    ----------
    sums : ndarray of shape (2, n_columns)
        Sums of the weights of `low` and of `high`; see `plan_means_of_present`.
    block : ndarray of shape (n_block_rows, n_columns)
    row_weights : ndarray of shape (n_block_rows,) or None
        Weights of the rows of persons.
    low, high : ndarray of shape (n_columns,)
    n_all_units : int
        Public number of rows, or of persons, in the table.
    """
    present = ~np.isnan(block)
    if row_weights is None:
        row_weights = 1.0
    else:
        row_weights = row_weights[:, None]
    weights = range_weights(block, low, high, n_all_units, row_weights)
    sums += [(bound_weights * present).sum(axis=0) for bound_weights in weights]
