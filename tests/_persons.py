"""Persons of rows, for plans that are run without a fit."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Persons:
    """The person and the weight of each row, as a plan reads them."""

    n_persons: int
    codes: np.ndarray
    row_weights: np.ndarray

    def first_entries(self, column):
        return np.array([column[self.codes == person][0] for person in range(self.n_persons)])

    def rows_of(self, persons):
        return np.flatnonzero(np.isin(self.codes, persons))


def persons_of(ids):
    """Return the persons of rows: a row of a person with k rows has the weight 1 / k.

    Weights are rounded down to multiples of 2**-26, and persons are numbered by their first rows.
    """
    _, first, codes, counts = np.unique(
        ids, return_index=True, return_inverse=True, return_counts=True
    )
    row_weights = np.floor(2.0**26 / counts) / 2.0**26
    return Persons(len(first), np.argsort(np.argsort(first))[codes], row_weights[codes])
