"""Scores of pairs of columns: one number per pair that measures how far they are from independence.

The score of a pair is the L1 distance between its table of counts and the table that independent
columns would have. The latter is computed from released counts of the single columns. All scores
are sums of whole numbers, so a row changes each score by at most 1, exactly. Noise that hides one
number per pair is much smaller than noise that hides the tables. A caller

1. counts the tables of all pairs in one pass over the rows (`pair_tables`),
2. computes the tables of independent columns from released counts (`independent_tables`),
3. computes the exact scores (`pair_scores`), and adds noise for the sensitivity
   (`score_sensitivity`),
4. compares the noisy scores with those of independent columns (`chance_scores`,
   `max_scores`), which is post-processing.

Callers choose among pairs by the noisy scores, the synthesizer in `skdp.synthesis._pair_choice`.
The exact tables and scores are private: no attribute, cache or pickle may hold them.
The proof of the sensitivity is in ``docs/theory/describe.md``.
"""

import math
from functools import partial
from itertools import combinations

import numpy as np

from skdp._data._parts import block_size, sum_over
from skdp._data._persons import STEP, weighted_bincount, zero_counts

# Row weights are multiples of this step, so a weighted count divided by it is a whole number.
STEPS_PER_ROW = round(1.0 / STEP)
# Mean of the magnitude of a standard normal variable.
MEAN_ABS_NORMAL = math.sqrt(2.0 / math.pi)


def all_pairs(n_columns):
    """Return the pairs (j, k) of columns with j < k, in lexicographic order."""
    return list(combinations(range(n_columns), 2))


def pair_tables(cells, groups, sizes, pairs, row_weights=None):
    """Return the exact table of counts for each pair of columns, in one pass over the rows.

    Parameters
    ----------
    cells : Rows
        Cells of the rows; a block is an integer array of shape (n_columns, n_rows).
    groups : list of (ndarray of int or None), of length n_columns
        Group of each cell of a column; None if each cell is a group.
    sizes : list of int
        Number of groups of each column.
    pairs : list of (int, int)
        Pairs of columns.
    row_weights : ndarray of shape (n_rows,), default=None
        Row weights of persons; None gives every row the weight 1.

    Returns
    -------
    list of ndarray of shape (sizes[j], sizes[k])
        Exact counts, without noise: int64 or, with row weights, multiples of 2**-26 in float64.
    """
    counts = _sum_pair_counts(cells, groups, sizes, pairs, row_weights)
    return _split_tables(counts, sizes, pairs)


def pair_scores_of_rows(cells, groups, sizes, pairs, expected_counts, n_units, row_weights=None):
    """Return the exact score of each pair, in one pass over the rows.

    The scores are those of `pair_scores`, to the last bit. They are computed where the tables are
    summed up, so workers send one number per pair.

    Parameters
    ----------
    cells, groups, sizes, pairs, row_weights
        As in `pair_tables`.
    expected_counts : list of ndarray of shape (n_groups,)
        Released counts of the groups of each column, as in `independent_tables`.
    n_units : int
        Public number of rows, or of persons.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Exact scores, without noise.
    """
    finalize = partial(_scores_of_sum, sizes, pairs, expected_counts, n_units)
    return _sum_pair_counts(cells, groups, sizes, pairs, row_weights, finalize)


def _sum_pair_counts(cells, groups, sizes, pairs, row_weights, finalize=None):
    """Return the counts of all tables, one after another, or `finalize` of these counts."""
    lengths = [sizes[j] * sizes[k] for j, k in pairs]
    ends = np.cumsum(lengths, dtype=np.int64)
    total = zero_counts(sum(lengths), row_weights)
    # Each partial sum has the length of all tables together, so blocks with few rows would be slow.
    n_rows = max(block_size(cells.shape[1]) // 8, len(total) // max(cells.shape[1], 1))
    return sum_over(
        cells.with_block_size(n_rows),
        _add_pair_counts,
        total,
        groups,
        sizes,
        pairs,
        ends,
        row_args=(row_weights,),
        finalize=finalize,
    )


def _split_tables(counts, sizes, pairs):
    """Return the table of each pair from the counts of all of them."""
    ends = np.cumsum([sizes[j] * sizes[k] for j, k in pairs], dtype=np.int64)
    tables = np.split(counts, ends[:-1])
    return [table.reshape(sizes[j], sizes[k]) for table, (j, k) in zip(tables, pairs, strict=True)]


def _scores_of_sum(sizes, pairs, expected_counts, n_units, counts):
    tables = _split_tables(counts, sizes, pairs)
    return pair_scores(tables, independent_tables(expected_counts, pairs, n_units), n_units)


def _add_pair_counts(counts, cells, row_weights, groups, sizes, pairs, ends):
    """Add the counts of one block of rows to the tables of all pairs, one table after another."""
    codes = {}
    for j in sorted({j for pair in pairs for j in pair}):
        codes[j] = cells[j]
        if groups[j] is not None:
            codes[j] = groups[j][cells[j]]
    start = 0
    for (j, k), end in zip(pairs, ends, strict=True):
        joint_codes = codes[j] * sizes[k] + codes[k]
        counts[start:end] += weighted_bincount(joint_codes, row_weights, end - start)
        start = end


def independent_tables(counts, pairs, n_units):
    """Return the table that each pair would have if its columns were independent, in whole numbers.

    Parameters
    ----------
    counts : list of ndarray of shape (n_groups,)
        Released counts of the groups of each column. Negative ones are read as 0.
    pairs : list of (int, int)
    n_units : int
        Public number of rows, or of persons.

    Returns
    -------
    list of ndarray of int64, of shape (n_groups of j, n_groups of k)
        Entries are rounded to whole numbers. A score is then a sum of whole numbers, and its
        sensitivity is exactly 1, without a rounding error.
    """
    frequencies = _frequencies(counts)
    tables = []
    for j, k in pairs:
        expected = n_units * np.outer(frequencies[j], frequencies[k])
        tables.append(np.rint(expected).astype(np.int64))
    return tables


def _frequencies(counts):
    """Return each column's noisy counts as frequencies that are not negative and add up to 1.

    Negative counts are read as 0. If no count is positive, all frequencies are equal.
    """
    frequencies = []
    for column_counts in counts:
        positive = np.maximum(np.asarray(column_counts, dtype=np.float64), 0.0)
        if not positive.sum() > 0.0:
            positive = np.ones(len(positive))
        frequencies.append(positive / positive.sum())
    return frequencies


def pair_scores(tables, expected, n_units):
    """Return the exact score of each pair: the L1 distance between two tables, at most 2 n.

    Parameters
    ----------
    tables : list of ndarray
        Result of `pair_tables`. It contains no noise, and neither do the scores.
    expected : list of ndarray of int64
        Result of `independent_tables`.
    n_units : int
        Public number of rows, or of persons.

    Returns
    -------
    ndarray of shape (n_pairs,), dtype float64
        Whole numbers or, for persons, multiples of 2**-26, without rounding errors.
    """
    scores = []
    for table, independent in zip(tables, expected, strict=True):
        if table.dtype.kind == "f":
            # Sums of doubles would be rounded above 2**27 persons; sums of integers are exact.
            steps = np.rint(table * STEPS_PER_ROW).astype(np.int64)
            distance = int(np.abs(steps - independent * STEPS_PER_ROW).sum()) / STEPS_PER_ROW
        else:
            distance = int(np.abs(table - independent).sum())
        # Clipping does not increase the sensitivity. Integers up to 2 n steps are exact in float64.
        scores.append(min(distance, 2 * n_units))
    return np.array(scores, dtype=np.float64)


def score_sensitivity(n_pairs, sensitivity_factor):
    """Return the L1 and L2 sensitivity of all pair scores together.

    A row, or all weighted rows of a person, changes the entries of a table by at most 1 in total,
    so each score changes by at most 1. Under replace-one, two entries of each table change, and a
    score changes by at most 2.

    Parameters
    ----------
    n_pairs : int
    sensitivity_factor : {1, 2}
        1 under add/remove, 2 under replace-one; `Neighbors.sensitivity_factor`.

    Returns
    -------
    l1, l2 : float
        The L2 sensitivity is rounded up.
    """
    l2 = sensitivity_factor * math.nextafter(math.sqrt(n_pairs), math.inf)
    return float(sensitivity_factor * n_pairs), l2


def chance_scores(counts, pairs, n_units, count_stds=None):
    """Return the expected score of each pair if its columns are independent.

    The rows are a sample, and the released counts are noisy, so the score of independent
    columns is not 0. Given the counts of the columns p and q, an entry of their table has
    variance n p q (1 - p) (1 - q). The noise of a count changes an expected entry by its product
    with the other column's frequency.

    Parameters
    ----------
    counts, pairs, n_units
        As in `independent_tables`.
    count_stds : list of (float or ndarray of shape (n_groups,)), default=None
        Standard deviations of the noise in each column's counts; None means 0.

    Returns
    -------
    ndarray of shape (n_pairs,)
    """
    frequencies = _frequencies(counts)
    if count_stds is not None:
        squared_stds = [
            np.broadcast_to(np.square(std), len(f))
            for std, f in zip(count_stds, frequencies, strict=True)
        ]
    scores = []
    for j, k in pairs:
        expected = n_units * np.outer(frequencies[j], frequencies[k])
        # The mean absolute deviation of a Poisson variable with a mean below 1 is below twice its
        # mean, which is less than that of a normal variable with this variance.
        sampling = np.minimum(MEAN_ABS_NORMAL * np.sqrt(expected), 2.0 * expected)
        variance = sampling**2 * np.outer(1.0 - frequencies[j], 1.0 - frequencies[k])
        if count_stds is not None:
            noise_variances = np.outer(squared_stds[j], frequencies[k] ** 2)
            noise_variances += np.outer(frequencies[j] ** 2, squared_stds[k])
            variance = variance + MEAN_ABS_NORMAL**2 * noise_variances
        scores.append(np.sqrt(variance).sum())
    return np.array(scores)


def max_scores(counts, pairs, n_units):
    """Return the largest score that each pair can have, given the frequencies of its columns.

    It is reached if the value of one column determines that of the other.

    Parameters
    ----------
    counts, pairs, n_units
        As in `independent_tables`.

    Returns
    -------
    ndarray of shape (n_pairs,)
        A score divided by it is a number between 0, for independent columns, and 1, up to noise.
    """
    concentrations = [float((f**2).sum()) for f in _frequencies(counts)]
    return np.array(
        [2.0 * n_units * (1.0 - max(concentrations[j], concentrations[k])) for j, k in pairs]
    )
