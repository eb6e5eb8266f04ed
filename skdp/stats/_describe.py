"""Private description of a table: all columns and pairs of columns in one charge."""

from __future__ import annotations

from functools import partial
from typing import Literal

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from skdp._data._dask import in_one_run
from skdp._data._frames import non_positional_labels
from skdp._data._kinds import read_kinds
from skdp._data._lengths import opened_table
from skdp._data._tables import names_for_keys
from skdp.base import PrivateFit, ReadTable, TableShape
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import plan_for
from skdp.stats._column_cells import declared_columns
from skdp.stats._column_plan import plan_columns
from skdp.stats._describe_plan import N_GROUPS, DescriptionFit
from skdp.stats._profile import TableProfile
from skdp.utils._types import Bounds, Categories, TableLike
from skdp.utils._validation import check_boolean, public_inputs


class _TableDescription(BaseEstimator):
    """Estimator behind `dp_describe`, which is a function.

    `PrivateFit` needs an estimator: for the accountant, the seed and the label of the charge, and
    as the object on which the privacy statement is published. Reading a table sets the labels by
    which `bounds` and `categories` may name the columns.

    Parameters
    ----------
    bounds, categories, accountant, random_state
        As in `dp_describe`.
    """

    _release_label = "dp_describe"

    def __init__(self, bounds, categories, accountant, random_state):
        self.bounds = bounds
        self.categories = categories
        self.accountant = accountant
        self.random_state = random_state

    def read(self, table):
        """Return the `ReadTable`; only its types, names and shape are read."""
        table = opened_table(table)
        self._labels_in = non_positional_labels(table)
        columns, kinds = read_kinds(self, table)
        n_rows, n_columns = columns.shape
        shape = TableShape(
            n_rows=n_rows, n_columns=n_columns, names=names_for_keys(self), kinds=kinds
        )
        return ReadTable(rows=columns, shape=shape)


@in_one_run
def dp_describe(
    table: TableLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    bounds: Bounds | Literal["auto"] = "auto",
    categories: Categories | Literal["auto"] | None = "auto",
    associations: bool = True,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> TableProfile:
    """Describe a table with differential privacy in one charge; see `pandas.DataFrame.describe`.

    The release contains the missing values of all columns, the mean, standard deviation, quantiles
    and histogram of numeric columns, the frequencies of categories, and one association for each
    pair of columns. Bounds and categories that are not declared are found privately in the same
    charge; the result stores them as `schema`, which can be passed to fits at no further cost.

    Parameters
    ----------
    table : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_rows, n_columns)
        Columns of numbers, dates, durations, booleans, strings or categories, with or without
        missing values. A column's type or its declaration determines its kind.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With 0, the noise is Laplace, and all categories must be
        declared. Otherwise it is Gaussian, which is much smaller for several columns.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of the numeric and date columns, by position or name. It must not be computed from the
        data. Values outside the bounds are clipped. Ranges that are not declared are found
        privately.
    categories : dict of column to list, list or "auto", default="auto"
        Categories of the categorical columns, which must not be read off the data. "auto", for the
        whole table or instead of a column's list, finds them privately.
    associations : bool, default=True
        If False, the associations of pairs of columns are left out, and their part of the budget is
        spent on the columns. Associations are also left out if noise would hide them.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    TableProfile
        A document in text (`print`) and HTML, with `plot`, `to_pandas`, `to_dict`, `schema` and
        `privacy`.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    See Also
    --------
    schema_from : Draft of a schema from names and types, without a charge.
    dp_histogram : Histogram of one column.
    dp_correlation : Linear correlations of numeric columns.

    Notes
    -----
    The release is (`epsilon`, `delta`)-differentially private under the accountant's relation.
    With a positive delta, all stages together form one Gaussian release, and a tenth of delta is
    for the selection of categories. The proof is in ``docs/theory/describe.md``. A standard error
    covers the noise and the widths of the cells in which values are counted. It does not cover
    clipping to the bounds or sampling: the true value is that of the given rows, after clipping.
    The number of rows is public unless the unit is a person. In that case the number of persons is
    public, and the numbers of rows per person are released as a histogram.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.stats import dp_describe
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(17, 90, size=20_000)
    >>> job = np.where(age < 60, "works", "retired")
    >>> profile = dp_describe(pd.DataFrame({"age": age, "job": job}), epsilon=1.0, delta=1e-6)
    >>> bool(abs(profile["age"].mean - age.mean()) < 1.0)
    True
    >>> sorted(profile.schema["categories"]["job"])
    ['retired', 'works']
    """
    description = _TableDescription(bounds, categories, accountant, random_state)
    check_boolean(associations, "associations")
    with PrivateFit(description) as fit:
        data = description.read(table)
        data = data.with_n_units(fit.read_groups(groups, data.shape.n_rows))
        plan_for_unit = partial(
            _plan_description, data.shape, bounds, categories, associations, _integers(data.rows)
        )
        plan = plan_for(plan_for_unit, fit.make_guarantee(epsilon, delta))
        plan.mechanism.check(data.rows)
        fit.check_table(plan, data)
        source = fit.charge(plan)
        released = fit.run_charged(plan, data.rows, source)
        public = public_inputs(description, "bounds", "categories")
        fit.publish(plan, public=(*public, "the columns' types and names"))
    names = data.shape.names
    if names is None:
        names = range(data.shape.n_columns)
    return TableProfile(list(names), released, data.shape.n_rows, description.privacy_)


def _integers(columns):
    """Return True for each column that has an integer type."""
    return tuple(columns.has_integers(j) for j in range(columns.shape[1]))


def _plan_description(shape, bounds, categories, associations, is_integer, guarantee):
    """Return the plan of the description of a table of this shape."""
    fit = DescriptionFit(
        columns=declared_columns(shape.kinds, bounds, categories, shape.names),
        n_rows=shape.n_rows,
        n_bins=N_GROUPS,
        guarantee=guarantee,
        is_integer=is_integer,
        uses_associations=associations,
    )
    return plan_columns(fit)
