"""The person and the weight of each row, for user-level privacy (``unit="person"``)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array

from skdp._data._lengths import check_lengths
from skdp._data._limit_rows import person_codes
from skdp._data._parts import sum_over

# Row weights are multiples of this step, so that their sums over at most MAX_PERSONS persons are
# exact in double precision.
STEP = 2.0**-26
MAX_PERSONS = 2**26


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Persons:
    """The person and the weight of each row.

    Parameters
    ----------
    n_persons : int
        Number of persons, which is public.
    codes : ndarray of shape (n_rows,), dtype int64
        Index of each row's person. Persons are numbered in the order of their first rows.
    row_weights : ndarray of shape (n_rows,)
        1 / k for each row of a person with k rows, rounded down to a multiple of 2**-26. The
        weights of a person add up to at most 1, exactly, and a single row has weight 1.
    """

    n_persons: int
    codes: np.ndarray
    row_weights: np.ndarray

    def first_entries(self, column):
        """Return the entry of a column in the first row of each person."""
        return column[np.unique(self.codes, return_index=True)[1]]

    def rows_of(self, persons):
        """Return the sorted indices of the rows of some persons."""
        return np.sort(self._rows[persons].indices)

    @cached_property
    def _rows(self):
        """Sparse matrix whose row i marks the rows of person i."""
        n_rows = len(self.codes)
        # Row i of the matrix marks the person of row i; its transpose lists the rows of a person.
        entries = (np.ones(n_rows, dtype=bool), self.codes, np.arange(n_rows + 1))
        return csr_array(entries, shape=(n_rows, self.n_persons)).T.tocsr()


def read_persons(groups, n_rows, missing="error"):
    """Return the `Persons` of a table from one person id per row.

    Ids are compared in the same way as labels, and are not stored.

    Parameters
    ----------
    groups : array-like of shape (n_rows,)
        Person ids.
    n_rows : int
    missing : {"error", "distinct"}, default="error"
        "distinct" treats each row with a missing id as a separate person.

    Raises
    ------
    ValueError
        If the number of ids is not `n_rows`, if an id is missing and `missing` is "error", or if
        there are more than 2**26 persons.
    """
    codes = person_codes(groups, missing)
    check_lengths(n_rows, groups=codes)
    counts = np.bincount(codes)
    n_persons = int(np.count_nonzero(counts))
    if n_persons > MAX_PERSONS:
        raise ValueError(
            f"groups has {n_persons} persons, and sums are exact up to 2**26 persons only"
        )
    # Assignment keeps the last of several values with the same index. It runs backwards, so that
    # the first row of each person is kept.
    first_rows = np.full(len(counts), n_rows)
    first_rows[codes[::-1]] = np.arange(n_rows)[::-1]
    ranks = np.empty(len(counts), dtype=np.int64)
    ranks[np.argsort(first_rows)] = np.arange(len(counts))
    row_weights = np.floor(1.0 / STEP / np.maximum(counts, 1)) * STEP
    return Persons(n_persons=n_persons, codes=ranks[codes], row_weights=row_weights[codes])


def row_weights_of(persons):
    """Return the row weights of persons, or None (all weights are 1) if `persons` is None."""
    if persons is None:
        return None
    return persons.row_weights


def n_units(table, persons):
    """Return the public number of privacy units in a table: its rows, or persons."""
    if persons is None:
        return table.shape[0]
    return persons.n_persons


def zero_counts(size, row_weights):
    """Return an array of zero counts, which are integers unless rows have weights."""
    if row_weights is None:
        return np.zeros(size, dtype=np.int64)
    return np.zeros(size)


def count_over(table, add, size, *args, row_weights=None):
    """Return counts that `add` collects from each block, as in `sum_over`."""
    return sum_over(table, add, zero_counts(size, row_weights), *args, row_args=(row_weights,))


def weighted_bincount(codes, row_weights, size):
    """Return the weighted count of each code below `size`; a row may have several codes."""
    if row_weights is not None:
        row_weights = np.repeat(row_weights, codes.size // max(len(codes), 1))
    return np.bincount(codes.ravel(), row_weights, size)


def times_row_weights(values, row_weights):
    """Return values times the row weights; the first axis of the values is the row axis."""
    if row_weights is None:
        return values
    return values * row_weights.reshape(-1, *[1] * (values.ndim - 1))


def units_of_labels(codes, size, persons):
    """Return the number of privacy units with each of `size` labels.

    A unit is a row, or a person. A person counts for the most frequent label of their rows, or for
    the smallest code among equally frequent ones, so that the label does not depend on other
    persons' rows.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), dtype int64
        Index of each row's label in the list of all labels; negative for rows without a label.
    size : int
        Number of labels.
    persons : Persons or None
    """
    has_label = codes >= 0
    labels = codes[has_label]
    if persons is not None:
        # If row weights are above 2**-15, a person has fewer than 2**15 rows. The counts then fit
        # into int16, and small integers are counted faster.
        if persons.row_weights.min() > 2.0**-15:
            dtype = np.int16
        else:
            dtype = np.int64
        ones = np.ones(len(labels), dtype)
        pairs = persons.codes[has_label], labels
        counts = coo_array((ones, pairs), shape=(persons.n_persons, size))
        if 0 < size * persons.n_persons <= 8 * len(codes):
            counts = counts.toarray()
            labels = counts.argmax(axis=1)
            labels = labels[counts[np.arange(len(labels)), labels] > 0]
        else:
            # Count and label are combined into one key, so that the largest key belongs to the most
            # frequent label with the smallest code.
            counts = counts.tocsr()
            first = counts.indptr[:-1][np.diff(counts.indptr) > 0]
            ranks = counts.data.astype(np.int64) * size - counts.indices
            labels = -np.maximum.reduceat(ranks, first) % size
    return np.bincount(labels, minlength=size)
