"""Profiles of a described table's columns: estimates with their standard errors."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from skdp.stats._describe_plan import MAX_BIN_LEVEL
from skdp.utils._values import FrozenValue

# Quantiles of a numeric column.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# Probability that an interval, or a band for all cells of a column, misses the true value.
ALPHA = 0.05
# A histogram has as many equal-width bins, from 8 to 2**MAX_BIN_LEVEL, as leave an average count of
# at least this many standard deviations of its noise.
MIN_BIN_STDS = 8.0
MIN_BIN_LEVEL = 3
# Microseconds per day. Cells of dates and durations are computed in days, and profiles show
# `numpy.datetime64` and `numpy.timedelta64` values in microseconds.
DAY = 86_400e6


def critical_value(n_values, *, is_gaussian, alpha=ALPHA):
    """Return the number of standard deviations that the error of any value rarely exceeds.

    Parameters
    ----------
    n_values : int
        Number of values, all of which should be inside the band.
    is_gaussian : bool
        False for sums of Laplace variables, whose tails are at most those of a single one.
    alpha : float, default=0.05
        Probability that some value is outside.

    Returns
    -------
    float
        By Sidak's inequality, which does not require independence, for normal errors; otherwise by
        the union bound.
    """
    if is_gaussian:
        return float(-ndtri(-math.expm1(math.log1p(-alpha) / n_values) / 2.0))
    return math.log(n_values / alpha) / math.sqrt(2.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyHistogram(FrozenValue):
    """Released histogram of a column.

    Parameters
    ----------
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins, dates as `numpy.datetime64` and durations as `numpy.timedelta64`. The
        outermost bins include the values beyond them.
    counts : ndarray of shape (n_bins,)
        Noisy numbers of rows, or of persons.
    stds : ndarray of shape (n_bins,)
        Standard deviations of the noise.
    band : ndarray of shape (2, n_bins)
        Lower and upper ends of a simultaneous 95 % band: with this probability it contains the
        counts of the raw rows in all bins.
    """

    edges: np.ndarray
    counts: np.ndarray
    stds: np.ndarray
    band: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class NumericProfile(FrozenValue):
    """Released description of a column of numbers, dates or durations.

    Values describe the raw rows, clipped to the bounds, with noise. Standard errors measure the
    noise; that of the mean also contains the unknown positions of values within their cells.
    Numbers that are whole are integers.

    Parameters
    ----------
    name : str or int
        Name of the column, or its position in a table without names.
    kind : {"number", "date", "duration"}
    bounds : tuple of (low, high)
        Declared or found bounds.
    is_declared : bool
        True if the bounds were declared.
    missing : float
        Fraction of missing values.
    missing_std : float
        Its standard error.
    mean : float, int, numpy.datetime64 or numpy.timedelta64
    mean_std : float or numpy.timedelta64
        Standard error of the mean: noise, and the widths of the cells.
    std : float or numpy.timedelta64
        Standard deviation of the values.
    quantiles : dict of float to value
        The quantiles .05, .25, .5, .75 and .95.
    quantile_intervals : dict of float to (low, high)
        Their 95 % intervals. They are at least one cell wide, because positions within a cell are
        unknown.
    histogram : NoisyHistogram
    """

    name: object
    kind: str
    bounds: tuple
    is_declared: bool
    missing: float
    missing_std: float
    mean: object
    mean_std: object
    std: object
    quantiles: dict
    quantile_intervals: dict
    histogram: NoisyHistogram


@dataclass(frozen=True, kw_only=True, eq=False)
class CategoricalProfile(FrozenValue):
    """Released description of a categorical column.

    Parameters
    ----------
    name : str or int
        Name of the column, or its position in a table without names.
    categories : list
        Declared or found categories, the most frequent first.
    is_declared : bool
        True if the categories were declared.
    missing : float
        Fraction of missing values.
    missing_std : float
        Its standard error.
    counts : ndarray of shape (n_categories,)
        Noisy numbers of rows, or of persons.
    frequencies : ndarray of shape (n_categories,)
        The counts, divided by the number of rows or persons.
    other : float
        Fraction of the rows with any other value.
    count_std : float
        Standard error of each count.
    band : ndarray of shape (2, n_categories)
        Simultaneous 95 % band of the counts.
    """

    name: object
    categories: list
    is_declared: bool
    missing: float
    missing_std: float
    counts: np.ndarray
    frequencies: np.ndarray
    other: float
    count_std: float
    band: np.ndarray

    kind = "label"


@dataclass(frozen=True, kw_only=True, eq=False)
class Association(FrozenValue):
    """Released association of two columns.

    Parameters
    ----------
    columns : tuple of (name, name)
    value : float
        Total variation distance between the table of the two columns and that of independent ones,
        divided by its maximum: 0 for independent columns, and 1 if one determines the other. The
        values of a column are divided into at most eight groups. NaN if nearly all values of one of
        the columns are equal.
    std : float
        Standard error of the noise.
    chance : float
        Expected value for independent columns.
    is_visible : bool
        True if the value exceeds that of independent columns by more than the noise of all pairs.
        With 95 % probability, no pair of independent columns is visible.
    """

    columns: tuple
    value: float
    std: float
    chance: float
    is_visible: bool


def profile_column(name, released, n_units, *, is_gaussian):
    """Return the profile of a column from its released counts.

    Parameters
    ----------
    name : str or int
    released : ColumnCounts
    n_units : int
        Public number of rows, or of persons.
    is_gaussian : bool
        False for Laplace noise.

    Returns
    -------
    NumericProfile or CategoricalProfile
    """
    if released.tree is None:
        return _categorical_profile(name, released, n_units, is_gaussian)
    return _numeric_profile(name, released, n_units, is_gaussian)


def _categorical_profile(name, released, n_units, is_gaussian):
    """Return the profile of a categorical column, for `profile_column`.

    The last two counts are those of other and of missing values.
    """
    counts = released.counts[:-2]
    order = np.argsort(-counts, kind="stable")
    counts = counts[order]
    std = released.count_std
    margin = critical_value(max(len(counts), 1), is_gaussian=is_gaussian) * std
    return CategoricalProfile(
        name=name,
        categories=[released.column.domain[i : i + 1].tolist()[0] for i in order],
        is_declared=released.is_declared,
        missing=float(released.counts[-1]) / n_units,
        missing_std=std / n_units,
        counts=counts,
        frequencies=counts / n_units,
        other=float(released.counts[-2]) / n_units,
        count_std=std,
        band=np.clip([counts - margin, counts + margin], 0.0, n_units),
    )


def _numeric_profile(name, released, n_units, is_gaussian):
    """Return the profile of a column of numbers, dates or durations, for `profile_column`.

    Moments are those of the centers of the cells, weighted by the noisy counts.
    """
    tree = released.tree
    kind = released.column.kind
    low, high = released.column.domain
    starts, ends = released.cell_ends()
    centers = 0.5 * (starts + ends)
    total = max(float(tree.counts.sum()), 1.0)
    mean = float(centers.dot(tree.counts)) / total
    variance = float(((centers - mean) ** 2).dot(tree.counts)) / total
    # The position of a value within its cell is unknown. If it is uniform, its variance is a
    # twelfth of the squared width of the cell (docs/theory/describe.md).
    resolution = math.sqrt(float(((ends - starts) ** 2).dot(tree.counts)) / total / 12.0)
    noise = tree.mean_std(centers, mean)
    z = critical_value(1, is_gaussian=is_gaussian)
    quantiles = {}
    intervals = {}
    for fraction in QUANTILES:
        value, start, end = tree.quantile(fraction, z, starts, ends)
        if released.is_integer:
            value = round(value)
        quantiles[fraction] = _value(value, kind)
        intervals[fraction] = (_value(min(start, value), kind), _value(max(end, value), kind))
    return NumericProfile(
        name=name,
        kind=kind,
        bounds=(_value(low, kind), _value(high, kind)),
        is_declared=released.is_declared,
        missing=tree.n_missing / n_units,
        # The missing values are the public number of units minus the noisy total, so both have the
        # same standard error.
        missing_std=tree.total_std / n_units,
        mean=_value(mean, kind),
        mean_std=_length(math.hypot(noise, resolution), kind),
        std=_length(math.sqrt(variance), kind),
        quantiles=quantiles,
        quantile_intervals=intervals,
        histogram=_histogram(released, n_units, is_gaussian),
    )


def _histogram(released, n_units, is_gaussian):
    """Return the histogram in equal-width bins whose counts are visible above the noise."""
    tree = released.tree
    edges = released.edges
    level = min(MAX_BIN_LEVEL, tree.n_levels)
    while level > min(MIN_BIN_LEVEL, tree.n_levels):
        _, stds = tree.bin_counts(level)
        if tree.total / 2**level >= MIN_BIN_STDS * stds[0]:
            break
        level -= 1
    step = tree.n_cells >> level
    # Cells beyond the bounds, which fill up to a power of two, belong to the last bin.
    high = released.column.domain[1]
    n_bins = int(np.searchsorted(edges[:-1:step], high, side="left"))
    n_bins = min(max(n_bins, 1), 2**level)
    counts, stds = tree.bin_counts(level, n_bins)
    margin = critical_value(len(counts), is_gaussian=is_gaussian) * stds
    shown = edges[::step][: len(counts) + 1].copy()
    if not released.is_integer:
        shown[-1] = high
    return NoisyHistogram(
        edges=_values(shown, released.column.kind),
        counts=counts,
        stds=stds,
        band=np.clip([counts - margin, counts + margin], 0.0, n_units),
    )


def _values(numbers, kind):
    """Return numbers converted to the type of a column of this kind."""
    if kind == "number":
        return np.asarray(numbers, dtype=np.float64)
    unit = "m8[us]"
    if kind == "date":
        unit = "M8[us]"
    return np.rint(np.asarray(numbers) * DAY).astype(np.int64).astype(unit)


def _value(number, kind):
    """Return a number converted to the type of a column.

    A whole number becomes an integer, so that a column of integers has the bounds 17 and 90, not
    17.0 and 90.0. Beyond 2**53, all doubles are whole, which says nothing about the column.
    """
    if kind == "number":
        number = float(number)
        if number.is_integer() and abs(number) < 2.0**53:
            return int(number)
        return number
    return _values([number], kind)[0]


def _length(number, kind):
    """Return a difference of values: a number, or a duration for dates and durations."""
    if kind == "number":
        return float(number)
    return _values([number], "duration")[0]
