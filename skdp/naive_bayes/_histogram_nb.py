"""Naive Bayes on private bins of raw tables: noisy counts of cells by class, one release."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logit, softmax

from skdp._data._parts import sum_over
from skdp._data._persons import counts_of, no_counts, shares_of
from skdp.base import plans_for_groups, private_fit_method
from skdp.gam import DPAdditiveClassifier
from skdp.gam._additive import TermsModel
from skdp.gam._bins import CELLS, consistent_counts, nearest_masses
from skdp.gam._column_plan import ColumnsPlan
from skdp.gam._columns import cells_of, exact_counts
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._classifier import LogisticProbabilitiesMixin, PrivateClassifierMixin
from skdp.mechanisms._stages import stages_of
from skdp.naive_bayes._calibration import calibrated, evidence_bins, n_evidence_bins
from skdp.utils._row_wise import row_softmax, row_sums

# Fractions of mu squared, or of epsilon with delta = 0: for the histogram of the evidence of two
# classes, and for the temperature of several. With .1 in place of .05 the mean log loss on the
# training rows of ten tables (docs/benchmarks/many_tables.py) is lower by .003 and .006 at
# epsilon = .3 and 1.
CALIBRATION_FRACTION = 0.1
TEMPERATURE_SHARE = 0.05
# What the evidence is multiplied by, or by a mean of these: the inverses of the temperatures.
INVERSE_TEMPERATURES = 0.5 ** np.arange(5)
# A cell's classes count as much beside its parent's as so many standard deviations of its noise,
# and as much more as cells differ by chance: by so many of its deviations they do, and by this part
# of one they may, however few tell of it.
PARENTS_NOISES = 10.0
CHANCES = 2.0
LEAST_APART = 0.1
# With delta = 0 a cell holds so many standard deviations of the noise, on average.
PURE_CELL = 8.0
# Losses are rounded to this grid, so that their sums are exact.
STEP = 2.0**-20


@dataclass(frozen=True, kw_only=True, eq=False)
class HistogramNBPlan(ColumnsPlan):
    """A fit's plan; see `skdp.mechanisms._plan.Plan`.

    Parameters
    ----------
    n_classes : int
    """

    n_classes: int
    n_bins: int = CELLS

    def __post_init__(self):
        super().__post_init__()
        if self.has_two_classes:
            self._calibration_noise.check_size(2 * self.n_evidence_bins)
        else:
            self._losses_noise.check_size(len(INVERSE_TEMPERATURES))

    @property
    def name(self):
        return f"{self._cells_noise.name} on counts of cells by class"

    @property
    def has_two_classes(self):
        return self.n_classes == 2

    @property
    def stages(self):
        """All releases of a fit, in order."""
        if self.has_two_classes:
            last = stages_of(self._calibration_noise, "counts of the evidence")
        else:
            last = stages_of(self._losses_noise, "losses at each temperature")
        return (*self._stages_of_columns, *last)

    unpaired = ()
    n_others = 1

    @property
    def scale(self):
        return self._cells_noise.scale

    @property
    def sensitivity(self):
        return self._cells_noise.sensitivity

    @cached_property
    def shares(self):
        """What each stage gets of the whole."""
        last = CALIBRATION_FRACTION if self.has_two_classes else TEMPERATURE_SHARE
        shares = self.column_shares | {"temperature": last, "cells": 0.0}
        return shares | {"cells": 1.0 - math.fsum(shares.values()) - 2.0**-50}

    @property
    def _most_counts(self):
        return self.n_classes * (super()._most_counts + 1)

    @cached_property
    def levels(self):
        """How often a range is halved: until noise is too large beside a cell's mean count."""
        return self._levels_of(PURE_CELL if self.budget.pure else 1.0)

    @property
    def _losses_noise(self):
        size = len(INVERSE_TEMPERATURES)
        moved = 0.5 * self._moved
        l2 = math.nextafter(moved * math.sqrt(size), math.inf)
        return self.budget.mechanism(self.shares["temperature"], l1=moved * size, l2=l2)

    @property
    def _calibration_noise(self):
        # A row is in one bin of the evidence of its class.
        moved = float(self._moved)
        l2 = math.nextafter(math.sqrt(moved), math.inf)
        return self.budget.mechanism(self.shares["temperature"], l1=moved, l2=l2)

    @property
    def n_evidence_bins(self):
        """The number of bins in which the evidence of two classes is counted."""
        # The deviation is nearly the same for any number of bins, and is public.
        return n_evidence_bins(self.n_rows, self._calibration_noise.deviation(2))

    def run(self, read, source, persons=None):
        """Return the terms, their values and the constant; as `AdditivePlan.run`."""
        table = read.X
        codes = read.y
        columns = self._found(table, source, persons)
        shares = shares_of(persons)
        first = self.levels[0]
        terms = self._finest(columns)
        exact = exact_counts(terms, table, shares, codes, self.n_classes, first)
        exact.append(counts_of(codes, shares, self.n_classes)[:, np.newaxis])
        deviation = self._cells_noise.deviation(sum(each.size for each in exact))
        *noisy, sizes = self._noisy(exact, source)
        sizes = np.clip(_pooled(terms, noisy, sizes, first), deviation, None)
        sizes *= self.n_rows / sizes.sum()
        prior = sizes / self.n_rows
        strength = PARENTS_NOISES * deviation + 1.0
        # No cell says more against a class than if it held all rows, and none of that class.
        least = strength / (self.n_rows + strength)
        values = []
        moves = []
        held = np.eye(self.n_classes)[..., np.newaxis]
        for j, own in enumerate(noisy):
            counts, *told = _told(terms[j], own, sizes, deviation, first)
            terms[j] = replace(terms[j], counts=counts)
            chances = _chances(*told, prior, strength)
            without = [_chances(*told, prior, strength, one)[k] for k, one in enumerate(held)]
            values.append(np.log(np.maximum(chances.T / prior, least)))
            moves.append((logit(without) - logit(chances)).T)
        self._report_counts(terms, deviation)
        start = np.log(prior)
        rows = cells_of(table, terms)
        if not self.has_two_classes:
            weight = self._inverse_temperature(rows, values, moves, start, codes, shares, source)
            return terms, [weight * own for own in values], start
        values = [own[:, 1] - own[:, 0] for own in values]
        counts = [term.counts for term in terms]
        edges, evidence = evidence_bins(values, counts, self.n_evidence_bins)
        # What a row's own count changes has the sign of its class.
        moves = [own * (-1.0, 1.0) for own in moves]
        exact = no_counts(2 * len(evidence), shares)
        sum_over(rows, _count_evidence, exact, values, moves, edges, along=(codes, shares))
        noise = self._calibration_noise
        noisy = noise.release(exact.astype(float), random_state=source).reshape(2, -1)
        deviation = noise.deviation(noisy.size)
        shift, slope = calibrated(noisy, evidence, prior[1], deviation, self.n_rows)
        return terms, [slope * own[:, np.newaxis] for own in values], start[1:] - start[:1] + shift

    def _inverse_temperature(self, rows, values, moves, start, codes, shares, source):
        """Return what the evidence of several classes is multiplied by, from noisy losses."""
        losses = np.zeros(len(INVERSE_TEMPERATURES))
        sum_over(rows, _add_losses, losses, values, moves, start, along=(codes, shares))
        noisy = self._losses_noise.release(losses, random_state=source)
        return softmax(-noisy / self._losses_noise.deviation(len(noisy))) @ INVERSE_TEMPERATURES


def _count_evidence(counts, cells, codes, shares, values, moves, edges):
    """Add the counts of bins of the evidence, those of the first class and then of the second.

    As in `_add_losses`, what a row's own count adds to its class is taken away.
    """
    evidence = sum(own[places] for own, places in zip(values, cells, strict=True))
    codes = codes.astype(np.intp)
    evidence = evidence + sum(own[places, codes] for own, places in zip(moves, cells, strict=True))
    bins = np.searchsorted(edges, evidence) + (len(edges) + 1) * codes
    counts += counts_of(bins, shares, len(counts))


def _add_losses(losses, cells, codes, shares, values, moves, start):
    """Add the Brier score, less 1/2 a row, at each temperature; halved, exact.

    What a row's own count adds to its class is taken away: `moves`, of each cell and class.
    """
    evidence = sum(own[places] for own, places in zip(values, cells, strict=True))
    truth = np.eye(len(start))[codes]
    evidence += truth * sum(own[places] for own, places in zip(moves, cells, strict=True))
    for i, weight in enumerate(INVERSE_TEMPERATURES):
        errors = row_softmax(start + weight * evidence) - truth
        loss = np.clip(0.5 * row_sums(errors**2) - 0.5, -0.5, 0.5)
        steps = np.trunc(loss / STEP)
        losses[i] += STEP * (steps if shares is None else np.trunc(steps * shares)).sum()


def _pooled(terms, noisy, sizes, coarsest):
    """Return the classes' numbers of rows: their own counts, and each column's, which add up to it.

    Parameters
    ----------
    terms : list of Term
    noisy : list of ndarray of shape (n_classes, n_counts)
        Of each column, as `_chances` takes them.
    sizes : ndarray of shape (n_classes, 1)
        Noisy counts of the classes.
    coarsest : int
        The level of a number's coarsest cells.

    Returns
    -------
    ndarray of shape (n_classes,)
    """
    # Of a number its coarsest cells, and its gaps.
    last = -1 - 2**coarsest
    pairs = zip(terms, noisy, strict=True)
    parts = [sizes, *(own if "label" in term.kinds else own[:, last:] for term, own in pairs)]
    # Noise has one variance in all counts.
    weights = [1.0 / part.shape[1] for part in parts]
    return np.average([part.sum(axis=1) for part in parts], axis=0, weights=weights)


def _told(term, noisy, sizes, deviation, coarsest):
    """Return what a column's noisy counts tell.

    Parameters
    ----------
    term : Term
    noisy : ndarray of shape (n_classes, n_counts)
        Of a number at all levels that are counted.
    sizes : ndarray of shape (n_classes,)
        The classes' noisy numbers of rows.
    deviation : float
        Of the noise of a count.
    coarsest : int
        The level of a number's coarsest cells.

    Returns
    -------
    counts : ndarray of shape (n_cells,)
    levels : list of (ndarray of shape (n_classes, n_cells), ndarray of shape (n_cells,))
        The cells' counts, from the coarsest on, and what `_pull` returns of them.
    missing : ndarray of shape (n_classes, 0 or 1)
    """
    total = sizes.sum()
    variance = deviation**2
    if "label" in term.kinds:
        levels = [(noisy, _pull(noisy, 1, variance))]
        return np.clip(noisy.sum(axis=0), 0.0, total), levels, noisy[:, :0]
    missing = np.clip(noisy[:, -1], 0.0, sizes)
    levels = []
    own = zip(noisy[:, :-1], sizes - missing, strict=True)
    cells = np.stack([consistent_counts(*pair, coarsest) for pair in own])
    for level in range(1, cells.shape[1].bit_length()):
        counts = cells.reshape(len(cells), 2**level, -1).sum(axis=2)
        # Where all levels are counted, sums have less noise (Hay et al. 2010).
        width = cells.shape[1] >> level
        noise = variance * width / (2 * width - 1 if level >= coarsest else 1)
        levels.append((counts, _pull(counts, 2 ** (level - 1), noise)))
    masses = nearest_masses(cells.sum(axis=0), total - missing.sum())
    return np.append(masses, missing.sum()), levels, missing[:, np.newaxis]


def _pull(counts, n_parents, variance):
    """Return as how many more rows each cell's parent counts, as cells differ beyond chance.

    A cell that holds most of its parent's rows says little that is new. Else it is the
    method of moments for classes that are drawn, in each cell, from a Dirichlet distribution about
    its parent's proportions. Chance is what drawing rows and the noise of a count make.
    """
    k = len(counts)
    own = counts.reshape(len(counts), n_parents, -1)
    rows = np.maximum(own, 0.0)
    double = own.shape[2] / (own.shape[2] - 1.0)
    masses = rows.sum(axis=0)
    whole = np.maximum(rows.sum(axis=(0, 2))[:, np.newaxis], 1e-9)
    shares = rows.sum(axis=2, keepdims=True) / whole
    part = masses / whole
    # Half a row more of each class: where all are of one, noise alone would say how they are drawn.
    squares = (((shares * whole + 0.5) / (whole + 0.5 * k)) ** 2).sum(axis=0)
    size = masses * (1.0 - part)
    drawn = (1.0 - squares) * size * whole / np.maximum(whole - 1.0, 1.0)
    noise = (k - 2.0 + k * squares) * ((1.0 - part) ** 2 + part**2 / (double - 1.0)) * variance
    chance = np.maximum(drawn + noise, 1e-300)
    # A cell is compared with its siblings, of which it is one.
    reach = double * size * drawn / chance
    weights = reach / (1.0 + reach)
    found = np.sum(weights * (((own - shares * own.sum(axis=0)) ** 2).sum(axis=0) / chance - 1.0))
    spread = math.sqrt(2.0 * double * np.sum(weights**2) / max(k - 1, 1))
    apart = max(found - CHANCES * spread, LEAST_APART * spread) / np.sum(weights * reach + 1e-300)
    new = np.clip(double * (1.0 - part), 1e-12, 1.0).ravel()
    return 1.0 / (np.clip(apart, 1e-12, 1.0) * new) - 1.0


def _chances(levels, missing, prior, strength, held=0.0):
    """Return the chances of the classes in each cell, that of missing values last.

    Parameters
    ----------
    levels, missing
        Of `_told`.
    prior : ndarray of shape (n_classes,)
        Of all cells without a parent.
    strength : float
        How many rows a cell's parent counts as at least.
    held : ndarray of shape (n_classes, 1), default=0.0
        What is taken from the counts of a row's cells.
    """
    prior = chances = prior[:, np.newaxis]
    for counts, more in levels:
        parents = np.repeat(chances, counts.shape[1] // chances.shape[1], axis=1)
        chances = _shrunk(counts - held, parents, strength + more)
    without = _shrunk(missing - held, prior, strength)
    return np.clip(np.hstack([chances, without]), 1e-15, 1.0 - 1e-15)


def _shrunk(counts, parents, strength):
    """Return the chances of classes in cells, pulled to those of their parents."""
    pulled = np.maximum(counts, 0.0) + strength * parents
    return pulled / pulled.sum(axis=0)


class DPHistogramNB(LogisticProbabilitiesMixin, PrivateClassifierMixin, TermsModel):
    """Naive Bayes on private histograms of raw tables.

    Each column of numbers is halved again and again, each column of labels has its categories, and
    one release counts the rows of each class in all of these cells (with delta = 0, where noise
    grows with their number, in the finest ones). A cell's evidence is how much more frequent each
    class is in it than in the table; a row's score adds up the evidence of its cells. Where noise
    or chance hides what is in a cell, its evidence is that of the cell that it is half of. Tables
    are taken as they are: numbers, strings, dates and gaps.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a fit, positive: all that is learned of the data, together.
    delta : float, default=1e-6
        The delta of a fit, in [0, 1). With 0 noise is Laplace's, the model is less accurate and
        categories must be declared.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        The range of numbers and of dates: one pair for all columns, numbers or arrays of shape
        (n_features,), or a pair for some columns. It must not be computed from the data. What is
        not declared is found within the same budget. Values outside are clipped.
    categories : dict of column to list, list or "auto", default=None
        The categories of columns of labels, declared, never read off the data: a dict, a list of
        one entry a column (None for a column of numbers), or one flat list for every column. In a
        dict, columns are named by their position or name. What is not declared, or is "auto", is
        found within the same budget, which needs a positive delta. Other labels are a category
        of their own. A frame's column of objects is one of labels unless `bounds` names it.
    classes : array-like of shape (n_classes,), default=None
        The labels that can occur. None takes the labels of y and thereby declares them public;
        the privacy statement says so. A declared class without rows is fitted like any other.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Attributes
    ----------
    shape_functions_ : list of ShapeFunction
        What each column's cells add to a score, as in `DPAdditiveClassifier`.
    intercept_ : float or ndarray of shape (n_classes,)
        What is added to the sum of the shapes.
    feature_importances_ : ndarray of shape (n_features,)
        The mean magnitude of each column's values over the noisy counts, of sum 1.
    classes_ : ndarray of shape (n_classes,)
        The labels.
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
    DPAdditiveClassifier : Fits the values of all columns together, in many steps.
    DPGaussianNB : For columns of numbers whose classes are bell-shaped.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns, the columns' names and types are public.
    Columns are seldom independent, and naive Bayes counts what they share twice. So all evidence
    is scaled. With two classes a tenth of the budget is spent on a histogram of the evidence, by
    which the scale is found, and a shift with which the mean probability is the released
    frequency of the class. With more classes a twentieth is spent on a temperature. The proof is in
    ``docs/naive_bayes.md``.

    References
    ----------
    M. Hay, V. Rastogi, G. Miklau and D. Suciu. Boosting the accuracy of differentially private
    histograms through consistency. VLDB 2010.

    J. Platt. Probabilistic outputs for support vector machines and comparisons to regularized
    likelihood methods. 1999.

    C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger. On calibration of modern neural networks.
    ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPHistogramNB
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(17, 90, size=5000), rng.integers(0, 3, size=5000)])
    >>> y = X[:, 0] > 40
    >>> model = DPHistogramNB(epsilon=1.0, bounds={0: (17, 90)}, categories={1: [0, 1, 2]})
    >>> model.fit(X, y).score(X, y) > 0.9
    True
    """

    decision_function = DPAdditiveClassifier.decision_function

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        bounds: tuple | dict | str = "auto",
        categories: dict | list | str | None = None,
        classes: list | np.ndarray | None = None,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.categories = categories
        self.classes = classes
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Rows, of numbers, labels and dates. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Labels; of a regressor numbers, which are clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        return self._fit(X, y, groups)

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
        n_classes = len(self._planned_classes(shape))
        return self._plan_of(HistogramNBPlan, shape, guarantee, n_classes=n_classes)
