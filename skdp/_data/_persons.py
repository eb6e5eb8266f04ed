"""Whose the rows of a table are, where the unit is a person, and what share of one a row is."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.utils import check_consistent_length

from skdp._data._parts import sum_over
from skdp.utils._limit_rows import person_codes

# Shares are multiples of this, so that sums of shares of up to as many persons are exact.
STEP = 2.0**-26
MOST_PERSONS = 2**26


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Persons:
    """Whose each row is.

    Parameters
    ----------
    n_persons : int
        Public.
    codes : ndarray of shape (n_rows,), dtype int64
        The number of each row's person, by the order of their first rows.
    shares : ndarray of shape (n_rows,)
        One over the number of rows of the row's person, rounded down to a multiple of 2**-26:
        those of a person add up to 1 at most, without rounding, and a single row's is 1.
    """

    n_persons: int
    codes: np.ndarray
    shares: np.ndarray

    def one_each(self, column):
        """Return the entries of a column in each person's first row."""
        return column[np.unique(self.codes, return_index=True)[1]]

    def rows_of(self, persons):
        """Return the sorted numbers of the rows of some persons."""
        return np.sort(self._rows[persons].indices)

    @cached_property
    def _rows(self):
        n_rows = len(self.codes)
        marks = np.ones(n_rows, dtype=bool), self.codes, np.arange(n_rows + 1)
        return csr_array(marks, shape=(n_rows, self.n_persons)).T.tocsr()


def read_persons(groups, n_rows, missing="error"):
    """Return whose the rows are, by one id a row; ids are compared as labels are, and not kept.

    Raises
    ------
    ValueError
        If there are not as many ids as rows, one is missing and `missing` is not "distinct", or
        there are too many persons.
    """
    codes = person_codes(groups, missing)
    check_consistent_length(np.empty(n_rows), codes)
    counts = np.bincount(codes)
    n_persons = int(np.count_nonzero(counts))
    if n_persons > MOST_PERSONS:
        raise ValueError("groups names more than 2**26 persons: no sum of so many is exact")
    # Of what is assigned to one place several times the last stays: here the first row.
    first = np.full(len(counts), n_rows)
    first[codes[::-1]] = np.arange(n_rows)[::-1]
    place = np.empty(len(counts), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(counts))
    shares = np.floor(1.0 / STEP / np.maximum(counts, 1)) * STEP
    return Persons(n_persons=n_persons, codes=place[codes], shares=shares[codes])


def shares_of(persons):
    """Return the rows' shares; None, for ones, where each row is a unit."""
    return None if persons is None else persons.shares


def n_units(table, persons):
    """Return the public number of units of a table: of its rows, or of persons."""
    return table.shape[0] if persons is None else persons.n_persons


def no_counts(size, shares):
    """Return the counts of no rows: whole numbers where each row counts as one."""
    return np.zeros(size, dtype=np.int64 if shares is None else np.float64)


def count_over(table, add, size, *small, shares=None):
    """Return counts of no rows, to which a function added its of each block, as `sum_over` does."""
    return sum_over(table, add, no_counts(size, shares), *small, along=(shares,))


def counts_of(places, shares, size):
    """Return the counts of places, one or several of each row, by the rows' shares."""
    if shares is not None:
        shares = np.repeat(shares, places.size // max(len(places), 1))
    return np.bincount(places.ravel(), shares, size)


def times_shares(values, shares):
    """Return values of rows, along their first axis, times the rows' shares."""
    if shares is None:
        return values
    return values * shares.reshape(-1, *[1] * (values.ndim - 1))


def units_of_labels(codes, size, persons):
    """Return how many units each of `size` labels is of: rows, or persons, who have one at most.

    Of the labels of a person's rows the most frequent one counts, the first of several; so it does
    not depend on other persons' rows.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), dtype int64
        The place of each row's label in an order of all that could be, negative for none.
    size : int
    persons : Persons or None
    """
    known = codes >= 0
    labels = codes[known]
    if persons is not None:
        # A person of a larger share has fewer rows than 2**15: a small table is counted faster.
        ones = np.ones(len(labels), np.int16 if persons.shares.min() > 2.0**-15 else np.int64)
        pairs = persons.codes[known], labels
        counts = coo_array((ones, pairs), shape=(persons.n_persons, size))
        if 0 < size * persons.n_persons <= 8 * len(codes):
            counts = counts.toarray()
            labels = counts.argmax(axis=1)
            labels = labels[counts[np.arange(len(labels)), labels] > 0]
        else:
            counts = counts.tocsr()
            first = counts.indptr[:-1][np.diff(counts.indptr) > 0]
            ranks = counts.data.astype(np.int64) * size - counts.indices
            labels = -np.maximum.reduceat(ranks, first) % size
    return np.bincount(labels, minlength=size)
