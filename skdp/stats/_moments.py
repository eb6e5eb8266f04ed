"""Plans of sums, means, variances, counts and histograms of all columns in one release."""

import math
from functools import lru_cache, partial

import numpy as np

from skdp._data._histogram import check_edges, count_bins, count_cells, uniform_edges
from skdp._data._parts import Rows, max_additions, sum_over
from skdp._data._persons import count_over, row_weights_of, times_row_weights, weighted_bincount
from skdp._data._sums import exact_sum
from skdp._fitting._findings import (
    report_no_values,
    report_unfilled_means,
    report_unfilled_variances,
)
from skdp.mechanisms import PermuteAndFlip
from skdp.mechanisms._plan import bounded_noise, counting_mechanism, plan_release
from skdp.utils._validation import check_integer

# Number of rows per block; ten columns of a block fit into a processor's cache.
BLOCK_ROWS = 4096

# The (L1, L2) sensitivities of one column's sums of u (1 moment), and of u and u^2 - 1/2 (2
# moments), for u in [-1, 1]. Derived in docs/theory/guarantees.md.
SENSITIVITY = {
    ("add_remove", 1): (1.0, 1.0),
    ("replace_one", 1): (2.0, 2.0),
    ("add_remove", 2): (1.5, math.sqrt(1.25)),
    ("replace_one", 2): (2.25, 2.0),
}
# Variance of the uniform distribution on [-1, 1].
UNIFORM_VARIANCE = 1.0 / 3.0
# Name of the released values in privacy statements.
SUMS = "sums of columns"
# Unit of the released sums.
UNIT_OF_SUMS = "the bounds"
# Maximum number of cells of a histogram: 1 GB of counts.
MAX_CELLS = 2**27


def plan_moments(shape, guarantee, *, n_moments=1, counted=False):
    """Return the plan of the means, or the means and variances, of columns within bounds.

    Columns are scaled from their bounds to [-1, 1], so the cost does not depend on the bounds.
    `plan_means` of `DPMeanTransformer` chooses its noise instead.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
        With delta > 0, the noise is Gaussian, otherwise Laplace noise.
    n_moments : {1, 2}, default=1
        1 for means, 2 for means and variances.
    counted : bool, default=False
        True if values may be NaN, so the other values of each column are counted.

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,). It
        returns the noisy means, and the noisy variances or None, in the units of the columns.
    """
    size = (n_moments + counted) * shape.n_columns
    mechanism = noise_of_moments(shape, guarantee, n_moments, counted)
    noise_std = mechanism.deviation(size)
    run = partial(_release_moments, mechanism, noise_std, shape.n_rows, n_moments, counted)
    return plan_release(
        mechanism, run, guarantee=guarantee, stage_name=SUMS, unit=UNIT_OF_SUMS, size=size
    )


def _release_moments(
    mechanism, noise_std, n_rows, n_moments, counted, X, source, low, high, persons=None
):
    """Release the sums of all columns, and return their moments.

    The first five parameters are those of the plan, `noise_std` the deviation of its `mechanism`.

    Returns
    -------
    means : ndarray of shape (n_columns,)
        Noisy means in the units of the columns.
    variances : ndarray of shape (n_columns,) or None
        Noisy variances, if `n_moments` is 2.
    """
    row_weights = None
    if persons is not None:
        row_weights = persons.row_weights
    sums = _centered_sums(X, low, high, n_moments, row_weights, counted)
    noisy = mechanism.release(sums, random_state=source)
    n_values = n_rows
    if counted:
        *noisy, n_values = noisy
        report_no_values(n_values, noise_std, n_rows)
    report_unfilled_moments(noisy, n_values, noise_std, low, high)
    return moments_of_sums(noisy, n_values, noise_std, low, high)


def noise_of_moments(shape, guarantee, n_moments=1, counted=False):
    """Return the mechanism for the sums of `plan_moments`, which has the same parameters."""
    l1, l2 = SENSITIVITY[guarantee.neighbors.relation, n_moments]
    if counted:
        # Replacing a value with a missing one removes its contribution to the sums, and 1 from the
        # count.
        removed_l1, removed_l2 = SENSITIVITY["add_remove", n_moments]
        l1 = max(l1, removed_l1 + 1.0)
        l2 = max(l2, math.hypot(removed_l2, 1.0))
    size = (n_moments + counted) * shape.n_columns
    l1 *= shape.n_columns
    l2 *= math.sqrt(shape.n_columns)
    return noise_of_sums(guarantee, l1, l2, size, shape.n_rows)


# Cached, as folds and audits plan many fits for the same public numbers.
@lru_cache(maxsize=256)
def noise_of_sums(guarantee, l1, l2, size, n_rows):
    """Return the noise for `size` sums over rows of values scaled to [-1, 1].

    Parameters
    ----------
    guarantee : Guarantee
    l1, l2 : float
        Sensitivities of all sums together, without rounding errors.
    size : int
    n_rows : int
        Public number of privacy units.

    Returns
    -------
    LaplaceMechanism or GaussianMechanism
    """
    # Bound on the rounding errors of both neighbors' sums. Each value is rounded five times before
    # it is added.
    additions = max_additions(BLOCK_ROWS) + 5
    rounding = 2.0 * additions * n_rows * np.finfo(np.float64).eps
    return bounded_noise(guarantee, l1 + rounding * size, l2 + rounding * math.sqrt(size))


def report_unfilled_moments(sums, n_values, noise_std, low, high):
    """Report columns whose noisy sums show that their values do not fill the bounds.

    Parameters
    ----------
    sums : sequence of ndarray of shape (n_columns,)
        Noisy sums, as in `moments_of_sums`.
    n_values : float or ndarray of shape (n_columns,)
        Number of values of each column, public or noisy.
    noise_std : float
        Standard deviation of the noise of a sum.
    low, high : ndarray of shape (n_columns,)
        Bounds.
    """
    n_values = np.maximum(n_values, noise_std)
    noise = noise_std / n_values
    means = np.clip(sums[0] / n_values, -1.0, 1.0)
    if len(sums) == 1:
        report_unfilled_means(means, noise, low, high)
    else:
        mean_squares = sums[1] / n_values + 0.5
        report_unfilled_variances(means, mean_squares, noise, low, high)


def moments_of_sums(sums, n_values, noise_std, low, high):
    """Return the means, and the variances or None, from noisy sums of scaled values.

    Parameters
    ----------
    sums : sequence of ndarray of shape (..., n_columns)
        Noisy sums of u, and of u^2 - 1/2 for variances.
    n_values : float or ndarray
        Number of values of each column, public or noisy.
    noise_std : float
        Standard deviation of the noise of a sum.
    low, high : ndarray of shape (n_columns,)
        Bounds, which were scaled to -1 and 1.
    """
    n_values = np.maximum(n_values, noise_std)
    relative_noise = noise_std / n_values
    half_range = (high - low) / 2
    # The result is then that of a uniform distribution over the bounds.
    is_hidden = relative_noise > UNIFORM_VARIANCE
    mean = np.where(is_hidden, 0.0, np.clip(sums[0] / n_values, -1.0, 1.0))
    # Rounding in the addition could move the result outside the bounds.
    means = np.clip(low + half_range + half_range * mean, low, high)
    if len(sums) == 1:
        return means, None
    variance = np.clip(sums[1] / n_values + 0.5 - mean**2, relative_noise, 1.0)
    return means, np.where(is_hidden, UNIFORM_VARIANCE, variance) * half_range**2


def plan_sums(shape, guarantee):
    """Return the plan of the sums of columns within bounds.

    Under add/remove, a null row counts as 0, and the sensitivity of a sum is the larger magnitude
    of its bounds. Each column is divided by it, which gives the sensitivity of values scaled to
    [-1, 1]. Under replace-one, the number of rows is the same in both datasets, and the sums are
    computed from the centered sums.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    Plan
        Its `run` also receives the bounds, arrays `low` and `high` of shape (n_columns,). It
        returns the noisy sums.
    """
    n_rows = shape.n_rows
    mechanism = noise_of_moments(shape, guarantee)

    run = partial(_release_sums, mechanism, guarantee.relation, n_rows)
    size = shape.n_columns
    return plan_release(
        mechanism, run, guarantee=guarantee, stage_name=SUMS, unit=UNIT_OF_SUMS, size=size
    )


def _release_sums(mechanism, relation, n_rows, X, source, low, high, persons=None):
    """Return the noisy sums of clipped values, in the units of the columns.

    Under replace-one, values are measured from the middle of their bounds, in units of half the
    range: a replaced row then changes a sum by at most 2, wherever the bounds are. The public sum
    of the middles is added after the noise.
    """
    row_weights = row_weights_of(persons)
    unit = unit_of_sums(low, high, relation)
    if relation == "replace_one":
        sums = _centered_sums(X, low, high, n_moments=1, row_weights=row_weights)[0]
        offset = n_rows * (low + (high - low) / 2)
    else:
        sums = np.zeros(X.shape[1])
        sum_over(Rows(X), _add_exactly, sums, (low, high), n_rows, row_args=(row_weights,))
        sums = sums / unit
        offset = 0.0
    return offset + mechanism.release(sums, random_state=source) * unit


def unit_of_sums(low, high, relation):
    """Return the factor by which each column's sum is divided before noise is added."""
    if relation == "replace_one":
        return (high - low) / 2
    return np.maximum(np.abs(low), np.abs(high))


def _add_exactly(sums, block, row_weights, bounds, n_rows):
    """Add the exact sums of a block's values, clipped to the bounds, in place."""
    sums += exact_sum(block, bounds, n_samples=n_rows, row_weights=row_weights)


def unit_sums(X, add, sums, low, high, row_weights=None):
    """Sum a function of the rows of X, whose values are first clipped and scaled to [-1, 1].

    Parameters
    ----------
    X : array or ChunkedArray of shape (n_rows, n_features)
        Numbers.
    add : callable
        Called as ``add(sums, block, row_weights)``. It may change the block.
    sums : ndarray
        Array of zeros to which `add` adds.
    low, high : ndarray of shape (n_features,)
        Bounds of the columns, which become -1 and 1.
    row_weights : ndarray of shape (n_rows,), default=None
        Weights of the rows; None means 1.

    Returns
    -------
    ndarray
        `sums`.
    """
    rows = Rows(X, BLOCK_ROWS)
    small = (add, low, high)
    return sum_over(rows, _add_unit_rows, sums, *small, row_args=(row_weights,))


def _add_unit_rows(sums, block, row_weights, add, low, high):
    """Scale a block's values from their bounds to [-1, 1], and let `add` add them to `sums`."""
    # Values that overflow are clipped. A NumPy warning would reveal them.
    with np.errstate(all="ignore"):
        u = block - (low + (high - low) / 2)
        u *= 2.0 / (high - low)
        np.clip(u, -1.0, 1.0, out=u)
    add(sums, u, row_weights)


def _centered_sums(X, low, high, n_moments, row_weights=None, counted=False):
    """Return the sums over rows of u and of u^2 - 1/2, for X clipped and scaled to u in [-1, 1].

    With `counted`, NaNs are left out of the sums, and the last row contains the numbers of other
    values.
    """
    sums = np.zeros((n_moments + counted, X.shape[1]))
    # `sum_over` calls `_add_unit_rows` for each block, in this process or on a worker. That
    # function scales the block and calls `_add_moments` or `_add_present`.
    add = _add_moments
    if counted:
        add = _add_present
    unit_sums(X, add, sums, low, high, row_weights)
    if counted:
        n_rows = sums[-1]
    elif row_weights is None:
        n_rows = X.shape[0]
    else:
        n_rows = row_weights.sum()
    sums[1:n_moments] -= n_rows / 2
    return sums


def _add_present(sums, u, row_weights):
    """Add the sums of present values, as `_add_moments` does, and their numbers to the last row."""
    sums[-1] += times_row_weights(~np.isnan(u), row_weights).sum(axis=0)
    _add_moments(sums[:-1], np.nan_to_num(u, nan=0.0), row_weights)


def _add_moments(sums, u, row_weights):
    """Add a block's weighted sums of u to row 0, and of u^2 to row 1 if there is one, in place."""
    weighted = u
    if row_weights is not None:
        weighted = times_row_weights(u, row_weights)
    sums[0] += np.ones(len(u)).dot(weighted)
    if len(sums) == 2:
        sums[1] += np.einsum("ij,ij->j", weighted, u)


def release_counts(mechanism, counts, source):
    """Return noisy counts as integers; Gaussian noise is rounded afterwards."""
    return np.rint(mechanism.release(counts, random_state=source)).astype(np.int64)


def plan_nonzero_counts(shape, guarantee):
    """Return the plan of the number of nonzero values of each column.

    A row changes the count of each column by at most 1 under either relation.
    """
    mechanism = counting_mechanism(shape.n_columns, guarantee)

    run = partial(_release_nonzero_counts, mechanism)
    return plan_release(mechanism, run, guarantee=guarantee, size=shape.n_columns)


def _release_nonzero_counts(mechanism, X, source, persons=None):
    """Return the noisy counts."""
    row_weights = row_weights_of(persons)
    counts = count_over(Rows(X), _add_nonzero, X.shape[1], row_weights=row_weights)
    return release_counts(mechanism, counts, source)


def _add_nonzero(counts, block, row_weights):
    counts += times_row_weights(np.not_equal(block, 0), row_weights).sum(axis=0)


def plan_mode(shape, guarantee, *, n_categories):
    """Return the plan that chooses the most frequent category by permute-and-flip on the counts.

    A row changes each count by at most 1, under add/remove all of them in the same direction. The
    plan's `run` returns the index of the chosen category.
    """
    mechanism = PermuteAndFlip(guarantee.epsilon, 1.0, guarantee.relation == "add_remove")
    run = partial(_choose_mode, mechanism, n_categories)
    return plan_release(mechanism, run, guarantee=guarantee)


def _choose_mode(mechanism, n_categories, codes, source, persons=None):
    """Return the index of the chosen category."""
    # Undeclared labels have the code -1 and are counted in the first entry, which is left out.
    counts = weighted_bincount(codes + 1, row_weights_of(persons), n_categories + 1)
    return mechanism.release(counts[1:], random_state=source)


def plan_histogram(shape, guarantee, *, bins, joint=False):
    """Return the plan of the counts of the bins of each column, or of all columns jointly.

    A row is in one bin of each column, or in one cell of the joint histogram. Two counts change by
    1 under replace-one, one count under add/remove.

    Parameters
    ----------
    shape : TableShape
    guarantee : Guarantee
    bins : tuple of int or ndarray, of length n_columns
        Number of bins of equal width, or the edges, of each column.
    joint : bool, default=False
        True counts the cells of the joint histogram.

    Returns
    -------
    Plan
        Its `run` also receives arrays `low` and `high` of shape (n_columns,), the range of the bins
        of columns for which `bins` is a number. It returns the noisy counts, as a list of arrays or
        a joint array, and the edges.
    """
    n_bins = [_n_bins(column_bins) for column_bins in bins]
    count = sum
    described = "a histogram"
    if joint:
        count = math.prod
        described = "a joint histogram"
    size = count(n_bins)
    # Each column has two more bins, for values outside its range.
    sizes = [n + 2 for n in n_bins]
    if count(sizes) > MAX_CELLS:
        raise ValueError(
            f"bins: {described} of {size} cells is too large to count, as there may be at most "
            f"{MAX_CELLS:,} cells; use fewer bins or fewer columns"
        )
    n_histograms = len(bins)
    if joint:
        n_histograms = 1
    mechanism = noise_of_histogram(guarantee, n_histograms)

    run = partial(_release_histogram, mechanism, bins, joint)
    return plan_release(mechanism, run, guarantee=guarantee, size=size)


def _release_histogram(mechanism, bins, joint, X, source, low, high, persons=None):
    """Return the noisy counts of a histogram and its edges; this is the `run` of its plan.

    Parameters
    ----------
    mechanism : LaplaceMechanism or GaussianMechanism
    bins : tuple of int or ndarray, of length n_columns
        As in `plan_histogram`.
    joint : bool
        True for one array of counts with an axis per column, False for a list of arrays, one per
        column.
    X : array-like of shape (n_rows, n_columns)
    source : RandomSource
    low, high : ndarray of shape (n_columns,)
        Range of the bins of columns for which `bins` is a number.
    persons : Persons, default=None
        Person of each row, if the privacy unit is a person.
    """
    edges = bin_edges(low, high, bins)
    row_weights = row_weights_of(persons)
    if joint:
        counts = count_cells(X, edges, row_weights)
        return release_counts(mechanism, counts, source), edges
    counts = count_bins(X, edges, row_weights=row_weights)
    released = release_counts(mechanism, np.concatenate(counts), source)
    ends = np.cumsum([len(column_counts) for column_counts in counts])
    return np.split(released, ends[:-1]), edges


def noise_of_histogram(guarantee, n_histograms):
    """Return the mechanism with the smallest error for the counts of `n_histograms` histograms."""
    l1_sensitivity = guarantee.neighbors.sensitivity_factor * n_histograms
    return counting_mechanism(l1_sensitivity, guarantee)


def bin_edges(low, high, bins):
    """Return the edges of the bins of each column.

    Parameters
    ----------
    low, high : ndarray of shape (n_columns,)
        Range of the bins of columns for which `bins` is a number.
    bins : tuple of int or ndarray, of length n_columns
        Number of bins of equal width, or the edges, of each column.
    """
    edges = []
    for column_low, column_high, column_bins in zip(low, high, bins, strict=True):
        if isinstance(column_bins, int):
            column_bins = uniform_edges(column_low, column_high, column_bins)
        edges.append(column_bins)
    return edges


def _n_bins(bins):
    """Return the number of bins of a column, from their number or their edges."""
    if isinstance(bins, int):
        return bins
    return len(bins) - 1


def check_bins(bins):
    """Return a validated number of bins, or validated edges."""
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        return check_integer(bins, "bins", 1, MAX_CELLS)
    return check_edges(bins)
