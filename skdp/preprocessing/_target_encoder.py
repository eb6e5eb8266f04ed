"""Encoding of categories by private means of the target."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from skdp._data._classes import LABEL_SET, check_classes
from skdp._data._columns import read_columns, split_by_column
from skdp._data._labels import UNDECLARED, category_codes
from skdp._data._parts import sum_over
from skdp._data._persons import n_units, row_weights_of
from skdp._data._sums import range_weights
from skdp._data._tables import read_numeric_target, read_target
from skdp._fitting._findings import ONE_ENCODING, report_finding
from skdp.accounting._guarantee import split_epsilon
from skdp.base import plans_for_groups, private_fit, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import PrivateClassifierMixin
from skdp.mechanisms._plan import join_plans, noise_of_cell_weights, plan_release
from skdp.preprocessing._planned import PlannedTransformer
from skdp.stats._categories import (
    Declared,
    MixedCategories,
    StabilityThreshold,
    category_lists,
    check_declared,
    check_encoded,
    encoded_categories,
    first_labels,
    plan_discovery,
    report_constant,
    report_no_match,
)
from skdp.utils._types import Categories, Classes
from skdp.utils._validation import check_target_bounds, check_within
from skdp.utils._values import FrozenValue

# Fraction of epsilon for finding categories.
KEY_SELECTION_FRACTION = 0.5


class DPTargetEncoder(PlannedTransformer):
    """Encode each category by a private mean of the target, shrunk to the overall mean.

    Noisy sums of all categories of all columns are released jointly. They determine the number of
    rows and the mean target of each category. The mean of a binary target is the fraction of the
    second class; with more classes there is one fraction per class.

    Parameters
    ----------
    epsilon : float, default=1.0
        Epsilon of a fit, positive, for all columns together.
    delta : float, default=0.0
        Delta of a fit, in [0, 1). With declared categories, 0 adds Laplace noise and a positive
        delta adds Gaussian noise. Finding categories needs a positive delta and spends it.
    categories : list, dict of column to list or "auto", or "auto", default=None
        Declared categories, which must not be taken from the data: a list with one list per column,
        a dict from a column's name or position to its list, or one flat list for every column. None
        or "auto" finds the numbers and strings that many rows contain, for half of epsilon. "auto"
        instead of a column's list finds the categories of this column.
    target_bounds : tuple of (low, high), default=None
        Range of a continuous target, which is clipped to it in `fit`. It must not be computed from
        the data. If None, y contains classes.
    classes : array-like, default=None
        Possible class labels. None uses the labels of y and thereby declares them public.
    smooth : float, default=10.0
        Number of pseudo-rows with the overall mean that are added to each category, at least 0, as
        in scikit-learn. Noise shrinks the mean further, according to its known variance.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    encodings_ : list of ndarray
        Encodings of each column's categories. With more than two classes there are n_classes arrays
        per column, one after another.
    categories_ : list of ndarray
        Categories of each column, declared or found privately.
    target_mean_ : float or ndarray of shape (n_classes,)
        Noisy overall mean of the rows whose values are known categories. It encodes all other
        values.
    classes_ : ndarray or None
        Class labels; None with a continuous target.
    target_type_ : {"continuous", "binary", "multiclass"}
        Type of the target.
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
    row, including its target, as the unit. The proof is in ``docs/theory/encoders.md``.

    ``fit_transform(X, y)`` is ``fit(X, y).transform(X)``. scikit-learn's encoder uses cross-fitting
    there, so no row is encoded with its own target. Here epsilon bounds what an encoding reveals
    about one row's target, and cross-fitting would have to be charged for every fold.

    References
    ----------
    D. Micci-Barreca. A preprocessing scheme for high-cardinality categorical attributes in
    classification and prediction problems. SIGKDD Explorations 3, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPTargetEncoder
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice(["cat", "dog"], size=(10_000, 1))
    >>> y = rng.random(10_000) < np.where(X[:, 0] == "cat", 0.8, 0.3)
    >>> encoder = DPTargetEncoder(epsilon=1.0, categories=["cat", "dog"]).fit(X, y)
    >>> encoder.transform([["cat"], ["dog"]]).round(1)
    array([[0.8],
           [0.3]])
    """

    _accepts = ("categorical", "string", "allow_nan")
    _shape_dependent_if_auto = ()
    _public = ("categories", "target_bounds")

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        categories: Categories | Literal["auto"] | None = None,
        target_bounds: tuple[float, float] | None = None,
        classes: Classes | None = None,
        smooth: float = 10.0,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.categories = categories
        self.target_bounds = target_bounds
        self.classes = classes
        self.smooth = smooth
        self.accountant = accountant
        self.random_state = random_state

    def _read(self, X, reset=True):
        """Return validated columns of labels."""
        return read_columns(self, X, reset=reset, allow_nan=True)

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and release the noisy sums of all categories.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of numbers, strings or other category labels.
        y : array-like of shape (n_samples,)
            Targets: numbers with `target_bounds`, else class labels.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.

        Returns
        -------
        self : DPTargetEncoder
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
            released = fit.run(plan, table)
            outcomes = self._outcomes(table.shape)
            fit.publish(
                plan,
                categories_=released.categories,
                encodings_=released.encodings,
                target_mean_=released.target_mean,
                classes_=outcomes.classes,
                target_type_=outcomes.target_type,
            )
        return self

    def _read_target(self, y, n_rows):
        """Return the classes and codes of a target, or None and the numbers of a continuous one."""
        if self.target_bounds is None:
            return check_classes(self.classes, read_target(self, y, n_rows))
        return None, read_numeric_target(self, y, n_rows)

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a data set of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table; with its class labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape; parameters
            that need no shape are still checked.
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
        smooth = check_within(self.smooth, "smooth", 0.0, np.inf, "[)")
        outcomes = self._outcomes(shape)
        categories = category_lists(self.categories, shape)
        n_cells = 0
        for labels in categories:
            if labels is None:
                # A found category has at least one row, so a column has at most n_rows of them.
                n_cells += shape.n_rows
            else:
                n_cells += len(labels)
        if any(labels is None for labels in categories):
            first, second = split_epsilon(guarantee.epsilon, KEY_SELECTION_FRACTION)
            selection_guarantee = replace(guarantee, epsilon=first)
            discovery_plan = plan_discovery(categories, None, selection_guarantee, is_counted=False)
            discovery = discovery_plan.mechanism
            rest = replace(guarantee, epsilon=second, delta=0.0)
        else:
            discovery_plan = None
            discovery = Declared(categories)
            rest = guarantee
        noise = noise_of_cell_weights(shape.n_columns, rest, whole=False)
        noise.check_size(outcomes.n_outcomes * n_cells)
        release = OutcomeSums(discovery=discovery, noise=noise, outcomes=outcomes, smooth=smooth)
        mechanism = join_plans((discovery_plan, noise), guarantee)
        unit = ""
        if self.target_bounds is not None:
            unit = "target_bounds"
        stage_name = "sums of outcomes by category"
        plan = plan_release(mechanism, release.run, stage_name=stage_name, unit=unit)
        return replace(plan, mechanism=release)

    def _check_rows(self, rows, plan):
        check_declared(rows.X, plan.mechanism.discovery)

    def _assumptions(self):
        """Return descriptions of the facts that a fit assumes to be public."""
        # A continuous target has no labels.
        labels = ()
        if self.target_bounds is None:
            labels = (LABEL_SET,)
        return (*super()._assumptions(), *labels)

    _planned_classes = PrivateClassifierMixin._planned_classes

    def _outcomes(self, shape):
        """Return the `Outcomes` of the target, from the parameters and the label set of y."""
        if self.target_bounds is None:
            return Outcomes(0.0, 1.0, self._planned_classes(shape))
        if self.classes is not None:
            raise ValueError("give target_bounds for a continuous target, or classes, not both")
        return Outcomes(*check_target_bounds(self.target_bounds), None)

    @row_wise_answer
    def transform(self, X):
        """Replace categories by their encodings.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features) or (n_samples, n_features * n_classes), float64
            Encoded values. With more than two classes, there are n_classes columns per feature.
        """
        table = self._read_samples(X)
        check_encoded(self, table)
        means = np.atleast_1d(self.target_mean_)
        encoded = np.empty((table.shape[0], len(self.encodings_)))
        columns = range(len(self.categories_))
        others = [UNDECLARED] * len(self.categories_)
        for j, codes in enumerate(table.codes(columns, self.categories_, others).T):
            for k, mean in enumerate(means):
                i = j * len(means) + k
                # Unknown categories have the code -1, which selects the overall mean at the end.
                encoded[:, i] = np.append(self.encodings_[i], mean)[codes]
        return encoded

    def _example_labels(self):
        return first_labels(encoded_categories(self))

    def _parts_of_columns(self):
        if self.target_type_ == "multiclass":
            return [self.classes_] * self.n_features_in_

    def _planned_parts(self, form):
        """Return the labels of each column's outputs, or None if each column has one."""
        if self.target_bounds is None and self.classes is None and form.classes is None:
            return [None] * form.n_columns
        outcomes = self._outcomes(form)
        if outcomes.target_type == "multiclass":
            return [outcomes.classes] * form.n_columns

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of a target: ends of its range, or classes. The weights of a target sum to 1."""

    low: float
    high: float
    classes: np.ndarray | None

    @property
    def n_outcomes(self):
        """Number of outcomes, whose sums are released."""
        if self.classes is None:
            # The two ends of the target's range.
            return 2
        return len(self.classes)

    @property
    def target_type(self):
        """The type of the target, as scikit-learn's encoder names it."""
        if self.classes is None:
            return "continuous"
        if len(self.classes) == 2:
            return "binary"
        return "multiclass"

    @property
    def encoded(self):
        """Indices of the outcomes that have a column; if there are two, only the second has one."""
        if self.n_outcomes == 2:
            return [1]
        return list(range(self.n_outcomes))

    def scaled(self, weights):
        """Return values of the target's range from the weights of its upper end."""
        return self.low + weights * (self.high - self.low)

    def weights(self, target, n_rows, row_weights):
        """Yield the weights of each outcome for the targets of a block of rows."""
        if self.classes is None:
            yield from range_weights(target, self.low, self.high, n_rows, row_weights)
        else:
            yield from ((target == k) * row_weights for k in range(len(self.classes)))


@dataclass(frozen=True, eq=False)
class ReleasedEncodings(FrozenValue):
    """Encodings of categories, from noisy sums of outcomes.

    Parameters
    ----------
    categories : list of ndarray
        Categories of each column.
    encodings : list of ndarray
        Encodings of the categories, for each column and, within a column, for each encoded class.
    target_mean : float or ndarray of shape (n_classes,)
        Noisy mean of the target, or the noisy class frequencies.
    """

    categories: list
    encodings: list
    target_mean: float | np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class OutcomeSums(FrozenValue):
    """The release made by a fit: categories, unless declared, then noisy sums of outcome weights.

    Parameters
    ----------
    discovery : StabilityThreshold, MixedCategories or Declared
        Release of the categories.
    noise : mechanism
        Mechanism of the sums.
    outcomes : Outcomes
    smooth : float
    """

    discovery: StabilityThreshold | MixedCategories | Declared
    noise: object
    outcomes: Outcomes
    smooth: float

    def run(self, table, source, persons=None):
        """Release the categories and the sums of their outcomes, and return the encodings.

        Parameters
        ----------
        table : RowsAndTarget
            A `ColumnTable`, and the codes or numbers of the target.
        source : RandomSource
            Source of the noise, which the charge returned.
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        ReleasedEncodings
        """
        outcomes = self.outcomes
        categories, _ = self.discovery.run(table.X, source, persons)
        sums = self.noisy_sums(table, categories, source, persons)
        # The weights of a row's outcomes sum to 1.
        counts = dict(enumerate(split_by_column(sums.sum(axis=1), categories)))
        others = dict.fromkeys(counts, UNDECLARED)
        report_no_match(counts, others, self.noise, n_units(table.X, persons))
        report_constant(counts, others, self.noise, n_units(table.X, persons))
        variance = self.noise.deviation(max(1, sums.size)) ** 2
        means, prior = _shrunk_means(sums, variance, self.smooth)
        outcome_indices = outcomes.encoded
        encodings = []
        for column_means in split_by_column(means, categories):
            encodings += [outcomes.scaled(column_means[:, k]) for k in outcome_indices]
        target_mean = outcomes.scaled(prior[outcome_indices]).squeeze()[()]
        if len(categories) == 1 and len(categories[0]) == 1:
            # The mean of the only category is the mean that encodes all other values.
            report_finding(ONE_ENCODING, [0])
        return ReleasedEncodings(categories, encodings, target_mean)

    def noisy_sums(self, table, categories, source, persons=None):
        """Return the noisy sums of all columns, with one row per category."""
        rows = table.X.select(range(len(categories)))
        row_args = (table.y, row_weights_of(persons))
        labels = table.X.as_labels(range(len(categories)), categories)
        args = (labels, self.outcomes, n_units(table.X, persons))
        exact = np.zeros((sum(map(len, categories)), self.outcomes.n_outcomes))
        sum_over(rows, _add_weights, exact, *args, row_args=row_args)
        if exact.size == 0:
            return exact
        return self.noise.release(exact, random_state=source)


def _add_weights(sums, columns, target, row_weights, categories, outcomes, n_rows):
    """Add the outcomes' weights of a block's rows to the sums of their categories, in place.

    `sums` has one row per category, one column of the table after another, and one column per
    outcome. Rows with a category that is not known are left out.
    """
    codes = [*map(category_codes, columns, categories)]
    # The sums of each column are views, which are updated in place.
    totals = split_by_column(sums, categories)
    if row_weights is None:
        row_weights = 1.0
    for k, weight in enumerate(outcomes.weights(target, n_rows, row_weights)):
        for total, column_codes in zip(totals, codes, strict=True):
            is_known = column_codes >= 0
            total[:, k] += np.bincount(column_codes[is_known], weight[is_known], len(total))


def _shrunk_means(sums, variance, smooth):
    """Return the shrunk means of the outcomes in each category, and the overall means.

    Let N be the noisy number of a category's rows, S the noisy sum of an outcome's weights, p its
    overall mean and V the variance of the noise in S - N p. The mean is
    ``p + N (S - N p) / (N**2 + smooth N + 4 max(smooth, 1) V)``. Without noise, this is the formula
    of scikit-learn.
    """
    n_outcomes = sums.shape[1]
    total = sums.sum(axis=0)
    prior = np.full(n_outcomes, 1.0 / n_outcomes)
    if total.sum() > np.sqrt(variance * sums.size):
        clipped = np.clip(total, 0.0, None)
        prior = clipped / clipped.sum()
    noise_variance = variance * ((1.0 - prior) ** 2 + (n_outcomes - 1) * prior**2)
    count = np.maximum(sums.sum(axis=1, keepdims=True), 0.0)
    denominator = count**2 + smooth * count + 4.0 * max(smooth, 1.0) * noise_variance
    shift = count * (sums - count * prior) / denominator
    return np.clip(prior + shift, 0.0, 1.0), prior
