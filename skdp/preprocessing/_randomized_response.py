"""Local differential privacy: categories that each row reports with randomized response."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from skdp._data._columns import read_columns
from skdp._data._frames import objects
from skdp._data._labels import UNDECLARED
from skdp._data._output import check_output_setting
from skdp._privacy_statement import LOCAL
from skdp.base import (
    TableEstimator,
    plans_for_groups,
    private_answer,
    private_fit,
    private_fit_method,
    private_release,
)
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms import JointMechanism, NoRelease, RandomizedResponse
from skdp.mechanisms._plan import Plan
from skdp.mechanisms._stages import Stage
from skdp.stats._categories import check_categories
from skdp.stats._quantiles import epsilon_of_each
from skdp.utils._documents import count_of
from skdp.utils._types import Categories
from skdp.utils._units import UnitText
from skdp.utils._validation import SIZES
from skdp.utils._values import FrozenValue

EACH_ALONE = UnitText(lambda unit: f"every {unit} by itself, at each transform")


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnwiseResponse(FrozenValue):
    """Randomized response on each column of a row.

    Parameters
    ----------
    columns : tuple of RandomizedResponse
    categories : list of ndarray
        Categories of each column.
    """

    columns: tuple
    categories: list

    def plan(self, epsilon):
        """Return the plan of one report of every row, with one epsilon for all columns."""
        joint = JointMechanism(self.columns, epsilon)
        name = "k-ary randomized response on each column"
        # Largest noise in a debiased count of any column, for one row.
        scale = max(column.scale for column in self.columns)
        # There is only one stage, because each `transform` is one release.
        stage = Stage(
            name="reports of the rows",
            law=name,
            scale=scale,
            sensitivity=joint.sensitivity,
            event=joint.event,
            reads=EACH_ALONE,
        )
        return Plan(
            name=name,
            event=joint.event,
            epsilon=joint.epsilon,
            delta=joint.delta,
            scale=scale,
            sensitivity=joint.sensitivity,
            stages=(stage,),
            run=self.run,
            by_person=False,
            mechanism=self,
        )

    def run(self, table, source):
        """Return the reports of the rows."""
        kinds = {labels.dtype.kind for labels in self.categories}
        dtype = np.dtype(object)
        if len(kinds) == 1:
            dtype = np.result_type(*self.categories)
        reports = np.empty(table.shape, dtype=dtype)
        for j, column in enumerate(self.columns):
            values = table.column(j).to_array()
            if j in table.float_types:
                # A value that its dtype rounds is reported as the category that it equals in this
                # dtype.
                labels = self.categories[j]
                codes = table.codes([j], [labels], [UNDECLARED])[:, 0]
                values = objects([*labels.tolist(), None])[codes]
            reports[:, j] = column.release(values, random_state=source)
        return reports


class RandomizedResponseTransformer(OneToOneFeatureMixin, TransformerMixin, TableEstimator):
    r"""Report each row's categories with k-ary randomized response.

    The release is `transform`: each call charges once, before its noise, and its output is a
    new report of every row. `fit` reads the number of columns, charges nothing and learns
    nothing.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of one `transform`, positive, for all columns of a row together. Each of the d
        columns receives epsilon / d.
    categories : list or dict of column to list
        Declared categories, which must not be taken from the data: a list with one list per column,
        a dict from a column's name or position to its list, or one flat list for every column.
        Other values are treated as the null record, which reports uniformly. So are missing values,
        except None if it is a declared category.
    accountant : PrivacyAccountant, default=None
        Accountant that is charged by each `transform`. If None, nothing is recorded.
    random_state : int or None, default=None
        None draws from the operating system's cryptographic generator. An int makes the reports
        reproducible, for tests only: anyone who knows it can undo them.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each column.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of X, if they are all strings.
    privacy_ : PrivacyStatement
        The guarantee of each `transform` and its assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant refuses a `transform`; nothing was reported.

    Notes
    -----
    Each row's report is `epsilon`-differentially private: with k categories the true one is
    reported with probability :math:`e^{\varepsilon'} / (k - 1 + e^{\varepsilon'})`,
    :math:`\varepsilon' = \varepsilon / d`. The guarantee holds under either relation, also against
    the collector of the reports. Several reports of the same rows compose.

    The proof is in ``docs/theory/local_privacy.md``.

    References
    ----------
    S. L. Warner. Randomized response: a survey technique for eliminating evasive answer bias.
    JASA 60, 1965.

    P. Kairouz, K. Bonawitz and D. Ramage. Discrete distribution estimation under local privacy.
    ICML 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import RandomizedResponseTransformer
    >>> X = np.array([["yes"], ["no"], ["no"], ["no"]] * 2500)
    >>> transformer = RandomizedResponseTransformer(epsilon=2.0, categories=["no", "yes"])
    >>> reports = transformer.fit_transform(X)
    >>> no, yes = transformer.estimate_frequencies(reports)[0]
    >>> bool(abs(no - 0.75) < 0.1)
    True
    """

    _accepts = ("string", "allow_nan")

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        categories: Categories | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.categories = categories
        self.accountant = accountant
        self.random_state = random_state

    def _read(self, X, reset=True):
        """Return validated columns of labels."""
        return read_columns(self, X, reset=reset, allow_nan=True)

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Check the parameters against the number of columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; their values are not used.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : RandomizedResponseTransformer
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            fit.check_table(plan, table)
            # Nothing is released here, and `NoRelease` charges nothing; the context requires the
            # call before it publishes. The statement describes `transform`, which charges.
            fit.charge(NoRelease())
            fit.publish(
                plan,
                public=(SIZES, "categories"),
                sampler=plan.sampler,
                trust_model=LOCAL,
                categories_=plan.mechanism.categories,
            )
            self._plan = plan
            self._fitted_with = self._statement_depends_on()
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of one `transform` of a table with this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table.
        guarantee : Guarantee
            Guarantee of each report; `epsilon` and `accountant` are not read.

        Returns
        -------
        Plan
            Immutable, without any data. Nothing is charged, and no noise is drawn.

        Raises
        ------
        ValueError
            If a fit refuses a parameter.
        """
        categories = check_categories(self.categories, shape)
        epsilon = guarantee.epsilon
        share = epsilon_of_each(guarantee, len(categories))
        if share == 0.0:
            raise ValueError(
                f"epsilon={epsilon!r} cannot be shared by {count_of(len(categories), 'column')}"
            )
        columns = [RandomizedResponse(share, tuple(labels.tolist())) for labels in categories]
        response = ColumnwiseResponse(columns=tuple(columns), categories=categories)
        return response.plan(epsilon)

    @private_answer
    def transform(self, X):
        """Charge, and report each row's categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Reports. Each is one of its column's categories.

        Raises
        ------
        ValueError
            If epsilon, accountant or random_state changed after `fit`.
        BudgetExceededError
            If the accountant refuses; nothing was reported.
        TypeError
            After the charge, if the output is a polars frame and a column's categories have several
            types.
        """
        table = self._read_samples(X)
        categories = dict(enumerate(self._plan.mechanism.categories))
        table.check({}, categories, expected=categories)
        if self._statement_depends_on() != self._fitted_with:
            raise ValueError(
                "epsilon, accountant or random_state changed after fit, but privacy_ states the "
                "old one; fit again"
            )
        check_output_setting(self)
        label = type(self).__name__
        with private_release(
            label, self.accountant, self.random_state, are_callers_checked=True
        ) as release:
            release.make_guarantee(self.epsilon, 0.0)
            table.check_readable()
            return self._plan.run(table, release.charge(self._plan))

    def estimate_frequencies(self, reports):
        """Return an unbiased estimate of each category's fraction of the true values.

        Parameters
        ----------
        reports : array-like of shape (n_samples, n_features)
            Output of `transform`.

        Returns
        -------
        list of ndarray of shape (n_categories,)
            One array per column. Fractions sum to 1 and may be outside [0, 1].
        """
        return [column.estimate_frequencies(values) for column, values in self._columns_of(reports)]

    def confidence_intervals(self, reports, confidence=0.95):
        """Return a confidence interval for each category's fraction of the true values.

        The intervals are computed for the epsilon of the fit, at which the reports must have been
        made. A value outside the declared categories was reported uniformly; such values count as
        if they were distributed equally over the categories, so the fractions sum to 1.

        Parameters
        ----------
        reports : array-like of shape (n_samples, n_features)
            Output of `transform`.
        confidence : float, default=0.95
            Coverage probability of each interval, in (0, 1).

        Returns
        -------
        list of ndarray of shape (n_categories, 2)
            One array per column with the lower and upper ends.
        """
        pairs = self._columns_of(reports)
        return [column.confidence_interval(values, confidence) for column, values in pairs]

    def _columns_of(self, reports):
        """Return pairs of a column's mechanism and its reports, after a check of their kinds."""
        table = self._read_samples(reports)
        table.check({}, dict(enumerate(self._plan.mechanism.categories)))
        columns = (table.column(j).to_array() for j in range(table.shape[1]))
        return zip(self._plan.mechanism.columns, columns, strict=True)

    def _statement_depends_on(self):
        return self.epsilon, self.accountant, self.random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.transformer_tags.preserves_dtype = []
        return tags
