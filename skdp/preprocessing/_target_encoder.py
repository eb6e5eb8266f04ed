"""Encoding categories by private means of the target."""

from dataclasses import dataclass, replace

import numpy as np

from skdp._data._columns import read_columns, split_by_column
from skdp._data._parts import sum_over
from skdp._data._persons import n_units, shares_of
from skdp._data._tables import read_numeric_target, read_target
from skdp.base import plans_for_groups, private_fit_method, row_wise_answer
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import PrivateClassifierMixin
from skdp.mechanisms._plan import one_charge, plan_cell_weights
from skdp.preprocessing._categories import (
    Declared,
    MixedCategories,
    StabilityThreshold,
    category_lists,
    check_declared,
    check_encoded,
    encoded_categories,
    first_labels,
    plan_discovery,
    report_no_match,
)
from skdp.preprocessing._planned import PlannedTransformer, TransformerPlan
from skdp.utils._labels import UNDECLARED, category_codes
from skdp.utils._sums import range_shares, split_epsilon
from skdp.utils._validation import check_classes, check_target_bounds, check_within

# What part of epsilon goes to the discovery of categories.
DISCOVERY_SHARE = 0.5


class DPTargetEncoder(PlannedTransformer):
    """Encode each category by a private mean of the target, shrunk towards the overall mean.

    One joint release holds, for each category of each column, noisy sums from which the number of
    its rows and the mean of their targets follow. Of classes, the mean is the share of the second
    of two, or the shares of each of more.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive, for all columns together.
    delta : float, default=0.0
        The delta of a fit, in [0, 1). With declared categories 0 adds Laplace noise and a
        positive delta Gaussian noise. Discovery needs a positive one, and spends it.
    categories : list, dict of column to list or "auto", or "auto", default=None
        One list of categories a column, in their order or by name or place, or one flat list for
        every column; declared, never read off the data. None or "auto" discovers numbers and
        strings that many rows hold, for half of epsilon; "auto" instead of a column's list those
        of this column.
    target_bounds : tuple of (low, high), default=None
        The range of a continuous target, which is clipped to it in `fit`; it must not be computed
        from the data. None takes y to be classes.
    classes : array-like, default=None
        The class labels. None takes those of y, as public.
    smooth : float, default=10.0
        By how many rows of the overall mean each category's mean is shrunk, at least 0, as in
        scikit-learn. Noise shrinks it further, as much as its known variance calls for.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    encodings_ : list of ndarray
        The encodings of each column's categories; of more than two classes, n_classes arrays a
        column, one after another.
    categories_ : list of ndarray
        The categories of each column, declared or discovered.
    target_mean_ : float or ndarray of shape (n_classes,)
        The noisy overall mean, over values that are categories. It encodes all others.
    classes_ : ndarray or None
        The class labels, None of a continuous target.
    target_type_ : {"continuous", "binary", "multiclass"}
        What y was taken to be.
    n_features_in_ : int
        Number of columns of X.
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
    row, its target included, as the unit. The proof is in ``docs/encoders.md``.

    ``fit_transform(X, y)`` is ``fit(X, y).transform(X)``. scikit-learn's encoder cross-fits there,
    so that no row is encoded by its own target; here epsilon bounds what an encoding can tell of
    one row's target, and cross-fitting would have to be charged for every fold.

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
    _read = read_columns
    _of_shape_if_auto = ()
    _public = ("categories", "target_bounds")
    _also_public = ("the label set",)

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 0.0,
        categories: list | dict | np.ndarray | str | None = None,
        target_bounds: tuple[float, float] | None = None,
        classes: list | np.ndarray | None = None,
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

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Release noisy sums of each category and charge the accountant.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, of numbers, strings or other labels.
        y : array-like of shape (n_samples,)
            Targets: numbers with `target_bounds`, else class labels.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

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
        return self._fit(X, y, groups)

    def _read_target(self, y, n_rows):
        if self.target_bounds is None:
            return check_classes(self.classes, read_target(self, y, n_rows))
        return None, read_numeric_target(self, y, n_rows)

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
        smooth = check_within(self.smooth, "smooth", 0.0, np.inf, "[)")
        outcomes = self._outcomes(shape)
        found = None
        rest = guarantee
        categories = category_lists(self.categories, shape)
        # Each discovered category has a row at least.
        n_cells = sum(shape.n_rows if own is None else len(own) for own in categories)
        if any(own is None for own in categories):
            first, second = split_epsilon(guarantee.epsilon, DISCOVERY_SHARE)
            own = replace(guarantee, epsilon=first)
            discovery = found = plan_discovery(categories, None, own, is_counted=False)
            rest = replace(guarantee, epsilon=second, delta=0.0)
        else:
            discovery = Declared(categories)
        noise = plan_cell_weights(shape.n_columns, rest, whole=False)
        noise.check_size(outcomes.number * n_cells)
        return TargetPlan(
            discovery=discovery,
            noise=noise,
            mechanism=one_charge((found, noise), guarantee),
            outcomes=outcomes,
            smooth=smooth,
        )

    def _check_rows(self, rows, plan):
        check_declared(rows.X, plan.discovery)

    _planned_classes = PrivateClassifierMixin._planned_classes

    def _outcomes(self, shape):
        """Return what a target's weights are of, from the parameters and y's label set."""
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
            The latter of more than two classes.
        """
        table = self._table(X)
        check_encoded(self, table)
        means = np.atleast_1d(self.target_mean_)
        encoded = np.empty((table.shape[0], len(self.encodings_)))
        columns = range(len(self.categories_))
        others = [UNDECLARED] * len(self.categories_)
        for j, codes in enumerate(table.codes(columns, self.categories_, others).T):
            for k, mean in enumerate(means):
                place = j * len(means) + k
                # What is no category has the code -1, which finds the end.
                encoded[:, place] = np.append(self.encodings_[place], mean)[codes]
        return encoded

    def _example_labels(self):
        return first_labels(encoded_categories(self))

    def _parts_of_columns(self):
        if self.target_type_ == "multiclass":
            return [self.classes_] * self.n_features_in_

    def _planned_parts(self, form):
        if self.target_bounds is None and self.classes is None and form.classes is None:
            return [None] * form.n_columns
        outcomes = self._outcomes(form)
        if outcomes.kind == "multiclass":
            return [outcomes.classes] * form.n_columns

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(frozen=True, eq=False)
class Outcomes:
    """What a target's weights, which sum to 1, are of: the ends of its range, or classes."""

    low: float
    high: float
    classes: np.ndarray | None

    @property
    def number(self):
        return 2 if self.classes is None else len(self.classes)

    @property
    def kind(self):
        if self.classes is None:
            return "continuous"
        return "binary" if len(self.classes) == 2 else "multiclass"

    @property
    def of_interest(self):
        return [1] if self.number == 2 else list(range(self.number))

    def scaled(self, shares):
        """Return shares of the upper end as numbers of the target's range."""
        return self.low + shares * (self.high - self.low)

    def weights(self, target, n_rows, shares):
        """Yield the weights of each outcome, of the targets of some of the rows."""
        if self.classes is None:
            yield from range_shares(target, self.low, self.high, n_rows, shares)
        else:
            yield from ((target == k) * shares for k in range(len(self.classes)))


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetPlan(TransformerPlan):
    """Categories, unless they are declared, then the noisy sums of their outcomes' weights."""

    discovery: StabilityThreshold | MixedCategories | Declared
    noise: object
    outcomes: Outcomes
    smooth: float

    released = "sums of outcomes by category"

    def run(self, table, source, persons=None):
        """Return the released attributes."""
        outcomes = self.outcomes
        categories, _ = self.discovery.run(table.X, source, persons)
        sums = self.noisy_sums(table, categories, source, persons)
        # The weights of a row's outcomes sum to 1.
        counts = dict(enumerate(split_by_column(sums.sum(axis=1), categories)))
        others = dict.fromkeys(counts, UNDECLARED)
        report_no_match(counts, others, self.noise, n_units(table.X, persons))
        variance = self.noise.deviation(max(1, sums.size)) ** 2
        shares, prior = _shrunk_means(sums, variance, self.smooth)
        encodings = split_by_column(shares, categories)
        chosen = outcomes.of_interest
        return {
            "categories_": categories,
            "encodings_": [outcomes.scaled(e[:, k]) for e in encodings for k in chosen],
            "target_mean_": outcomes.scaled(prior[chosen]).squeeze()[()],
            "classes_": outcomes.classes,
            "target_type_": outcomes.kind,
        }

    def noisy_sums(self, table, categories, source, persons=None):
        """Return the noisy sums of all columns, one row for each category."""
        rows = table.X.several(range(len(categories)))
        along = (table.y, shares_of(persons))
        small = categories, self.outcomes, n_units(table.X, persons)
        exact = np.zeros((sum(map(len, categories)), self.outcomes.number))
        sum_over(rows, _add_weights, exact, *small, along=along)
        return self.noise.release(exact, random_state=source) if exact.size else exact


def _add_weights(sums, columns, target, shares, categories, outcomes, n_rows):
    codes = [*map(category_codes, columns, categories)]
    # What belongs to a column is a view.
    totals = split_by_column(sums, categories)
    for k, weight in enumerate(outcomes.weights(target, n_rows, 1.0 if shares is None else shares)):
        for total, places in zip(totals, codes, strict=True):
            known = places >= 0
            total[:, k] += np.bincount(places[known], weight[known], len(total))


def _shrunk_means(sums, variance, smooth):
    """Return the shrunk shares of outcomes of each category, and the overall ones.

    With N the noisy number of a category's rows, S the noisy sum of an outcome's weights, p its
    overall share and V the variance of the noise in S - N p, the share is
    ``p + N (S - N p) / (N**2 + smooth N + 4 max(smooth, 1) V)``: scikit-learn's where there is no
    noise.
    """
    n_outcomes = sums.shape[1]
    total = sums.sum(axis=0)
    prior = np.full(n_outcomes, 1.0 / n_outcomes)
    if total.sum() > np.sqrt(variance * sums.size):
        clipped = np.clip(total, 0.0, None)
        prior = clipped / clipped.sum()
    spread = variance * ((1.0 - prior) ** 2 + (n_outcomes - 1) * prior**2)
    count = np.maximum(sums.sum(axis=1, keepdims=True), 0.0)
    denominator = count**2 + smooth * count + 4.0 * max(smooth, 1.0) * spread
    moved = count * (sums - count * prior) / denominator
    return np.clip(prior + moved, 0.0, 1.0), prior
