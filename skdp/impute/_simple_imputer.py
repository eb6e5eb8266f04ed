"""Filling in missing values with private statistics."""

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from skdp._data._columns import ColumnTable, check_not_infinite, read_columns
from skdp._data._containers import as_cells, is_sequence
from skdp._data._parts import Rows, sum_over
from skdp._data._persons import n_units, shares_of
from skdp._data._tables import indexable_table, read_table
from skdp.base import plans_for_groups, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import MechanismPlan, plan_cell_weights
from skdp.preprocessing._categories import Declared, category_lists, check_declared, plan_counts
from skdp.preprocessing._planned import PlannedTransformer, TransformerPlan
from skdp.stats._quantiles import QuantilePlan
from skdp.stats._release import plan_within_bounds
from skdp.utils._frames import TIMES, objects
from skdp.utils._labels import are_missing, is_missing, label_kinds
from skdp.utils._output import asks_for_frame
from skdp.utils._sums import range_shares
from skdp.utils._validation import check_boolean, check_choice, has_auto


class DPSimpleImputer(PlannedTransformer):
    """Fill in missing values with a private statistic of each column.

    Missing values are NaN and, in columns of objects, None and pandas' NA. Which values are
    missing is as private as the values.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive, for all columns together.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). A positive delta makes the noise smaller where there are
        many columns, and allows ``categories=None``.
    strategy : {"mean", "median", "most_frequent", "constant"}, default="mean"
        What missing values are replaced with. "mean" and "median" are for numbers. "constant"
        takes `fill_value`; nothing is computed from the data then, and nothing is charged.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        For "mean" and "median": the range of each column, numbers or arrays of shape (n_features,),
        or one pair for each column by its name or place; with low < high, within -1e150 and 1e150
        and at least 1e-150 apart; it must not be computed from the data. "auto" finds it privately,
        for a fifth of epsilon and at most of delta. Values are clipped to it in `fit`.
    categories : list, dict of column to list or "auto", or "auto", default=None
        For "most_frequent": one list of categories a column, in their order or by name or place, or
        one flat list for every column; declared, never read off the data. None or "auto" discovers
        numbers and strings that many rows hold, "auto" instead of a column's list those of this
        column; it needs a positive delta.
    fill_value : label, default=None
        For "constant", and for "most_frequent" where no category was discovered; None is 0.
    add_indicator : bool, default=False
        Whether `transform` appends, for every column, whether its value was missing.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    statistics_ : ndarray of shape (n_features,)
        What missing values of each column are replaced with. Of a column without a value it is
        noise: a mean is the middle of the bounds unless noise feigns a value, a median is
        anywhere within them, and the most frequent category is any.
    counts_ : list of ndarray or None
        For "most_frequent": noisy counts of each column's declared or discovered categories.
    bounds_ : tuple of ndarray of shape (n_features,) or None
        For "mean" and "median": the bounds, declared or found.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, where X has string names.
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
    row as the unit. The number of rows is public, the number of missing values is not. The proof
    is in ``docs/encoders.md``.

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
        strategy: str = "mean",
        bounds: tuple | dict | str = "auto",
        categories: list | dict | np.ndarray | str | None = None,
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

    def _charge_needs_no_shape(self):
        return self.strategy == "mean" and not has_auto(self.bounds)

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
        check_boolean(self.add_indicator, "add_indicator")
        check_choice(self.strategy, "strategy", ("mean", "median", "most_frequent", "constant"))
        _check_fill_value(self._fill)

        def location(low, high, guarantee):
            if self.strategy == "median":
                return QuantilePlan(quantiles=[0.5], low=low, high=high, guarantee=guarantee)
            noise = plan_cell_weights(shape.n_columns, guarantee, whole=False)
            return MeansOfPresent(low=low, high=high, mechanism=noise)

        if self.strategy == "constant":
            mechanism = Declared(_statistics([self._fill] * shape.n_columns))
        elif self.strategy == "most_frequent":
            mechanism = plan_counts(self.categories, None, shape, guarantee)
        else:
            mechanism = plan_within_bounds(location, self.bounds, shape, guarantee)
        return TransformerPlan(mechanism=mechanism)

    def _check_rows(self, rows, plan):
        if self.strategy == "most_frequent":
            check_declared(rows, plan.mechanism)

    @property
    def _fill(self):
        return 0 if self.fill_value is None else self.fill_value

    def _released(self, run, plan):
        if self.strategy in ("mean", "median"):
            statistics = np.ravel(run.released)
            counts = None
            bounds = run.bounds
        else:
            (statistics, counts), bounds = run, None
        if self.strategy == "most_frequent":
            columns = zip(statistics, counts, strict=True)
            found = (labels.tolist()[n.argmax()] if len(n) else self._fill for labels, n in columns)
            statistics = _statistics([*found])
        return {"statistics_": statistics, "counts_": counts, "bounds_": bounds}

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
            Of float64 where X and what is filled in are numbers, else of objects.
        """
        table = self._read_samples(X)
        if not isinstance(table, ColumnTable):
            table = ColumnTable(table.shape, table)
        if self.statistics_.dtype.kind == "f" and all(table.numeric_types):
            filled = table.numbers().whole()
            missing = np.isnan(filled)
            filled[missing] = np.broadcast_to(self.statistics_, filled.shape)[missing]
        else:
            missing = np.empty(table.shape, dtype=bool)
            filled = np.empty(table.shape, dtype=object)
            for j, statistic in enumerate(self.statistics_):
                column = table.whole_column(j)
                missing[:, j] = are_missing(column)
                # On the way to objects numpy turns dates of nanoseconds into integers.
                filled[:, j] = as_cells(column) if column.dtype.kind in TIMES else column
                filled[missing[:, j], j] = statistic
        if not self.add_indicator:
            return filled
        return np.hstack([filled, missing.astype(filled.dtype)])

    def _names_made(self, names, parts, form=None):
        indicators = [f"missingindicator_{name}" for name in names] if self.add_indicator else []
        return [*names, *indicators]

    def _makes_numbers(self, form):
        return self._fills_numbers(form) is True

    def _planned_kinds(self, form, n_columns):
        # A frame takes its types from its cells.
        if n_columns is None or self._fills_numbers(form) is not False or asks_for_frame(self):
            return None
        kinds = ["cells"] * form.n_columns
        if self.strategy == "most_frequent":
            # Values of another kind than the declared ones are refused.
            lists = category_lists(self.categories, form)
            kinds = ["text" if _are_words(own) else "cells" for own in lists]
        return (*kinds, *["cells"] * (n_columns - form.n_columns))

    def _fills_numbers(self, form):
        """Return whether `transform` makes an array of numbers or of objects, None if unknown."""
        if self.strategy in ("mean", "median"):
            return True
        if form.kinds is None:
            return None
        if set(form.kinds) - {"number", "boolean"}:
            return False
        lists = [None] * form.n_columns
        if self.strategy == "most_frequent":
            lists = category_lists(self.categories, form)
        # A column of numbers in which no category is found is filled with `fill_value`.
        fills = [[self._fill] if own is None else own.tolist() for own in lists]
        if all(isinstance(fill, Real) for own in fills for fill in own):
            return True
        return False if self.strategy == "constant" else None

    def _read(self, X, reset=True):
        if self.strategy in ("mean", "median"):
            return read_table(self, X, reset=reset, allow_nan=True)
        # What comes out is numbers or objects: one row of a list has no say in which.
        X = indexable_table(X) if is_sequence(X) else X
        table = read_columns(self, X, reset=reset, allow_nan=True)
        table.check(dict.fromkeys(range(table.shape[1]), check_not_infinite))
        return table

    @property
    def _accepts(self):
        takes_any = self.strategy in ("most_frequent", "constant")
        return ("allow_nan", "string", "categorical") if takes_any else ("allow_nan",)


@dataclass(frozen=True, kw_only=True, eq=False)
class MeansOfPresent(MechanismPlan):
    """The means of the values that are present, within bounds."""

    low: np.ndarray
    high: np.ndarray
    mechanism: object

    by_person = True
    released = "sums of the values that are present"

    @property
    def size(self):
        return 2 * len(self.low)

    def run(self, X, source, persons=None):
        """Release the mean of each column's values, clipped to bounds.

        Each value adds 1 in all to two sums, the weights of the ends of its range; a missing one
        adds nothing. So one release holds the sum of the values and their number.

        Parameters
        ----------
        X : array or ChunkedArray of shape (n_rows, n_columns)
        source : RandomSource
        persons : Persons, default=None
            By whose shares values count.

        Returns
        -------
        ndarray of shape (n_columns,)
            The middle of the bounds where the noisy number of values is below its own noise.
        """
        low = self.low
        high = self.high
        sums = np.zeros((2, X.shape[1]))
        small = low, high, n_units(X, persons)
        sum_over(Rows(X), _add_shares, sums, *small, along=(shares_of(persons),))
        below, above = self.mechanism.release(sums, random_state=source)
        count = below + above
        enough = count > math.sqrt(2.0) * self.mechanism.deviation(self.size)
        share = np.where(enough, above / np.where(enough, count, 1.0), 0.5)
        return low + np.clip(share, 0.0, 1.0) * (high - low)


def _check_fill_value(fill_value):
    if np.ndim(fill_value) != 0 or is_missing(fill_value):
        raise ValueError(f"fill_value must be one value that is not missing, got {fill_value!r}")


def _are_words(labels):
    """Return True for labels that are text, not all of which can be read as numbers."""
    if labels is None or label_kinds(labels) != {"text"}:
        return False
    try:
        labels.astype(np.float64)
    except ValueError:
        return True
    return False


def _statistics(values):
    """Return values as floats if all are numbers, else as objects."""
    if all(isinstance(value, Real) for value in values):
        return np.array(values, dtype=np.float64)
    return objects(values)


def _add_shares(sums, block, shares, low, high, n_rows):
    present = ~np.isnan(block)
    weights = range_shares(block, low, high, n_rows, 1.0 if shares is None else shares[:, None])
    sums += [(part * present).sum(axis=0) for part in weights]
