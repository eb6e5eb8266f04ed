"""Naive Bayes from noisy counts of cells by class: what a fit releases, and what is made of it."""

import math
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

import numpy as np
from scipy.special import softmax

from skdp._data._parts import row_blocks
from skdp._data._persons import counts_of, shares_of
from skdp.gam._bins import CELLS, LEVELS, consistent_counts, nearest_masses
from skdp.gam._cells import BLOCK_ROWS, Term, exact_counts, finest_edges
from skdp.gam._column_plan import ColumnsPlan

# Of mu squared, or of epsilon with delta = 0.
TEMPERATURE_SHARE = 0.05
# What the evidence is multiplied by: the inverses of the temperatures.
INVERSE_TEMPERATURES = 0.5 ** np.arange(5)
# A cell's classes count as much beside its parent's as so many standard deviations of its noise.
PARENTS_NOISES = 10.0
# Losses are rounded to this grid, so that their sums are exact.
STEP = 2.0**-20


@dataclass(frozen=True, eq=False, kw_only=True)
class HistogramNBPlan(ColumnsPlan):
    """A fit's plan; see `skdp.mechanisms._plan.Plan`.

    Parameters
    ----------
    n_classes : int
    """

    n_classes: int
    n_bins: int = CELLS

    name = "noisy counts of cells by class"
    sampler = "all rows, once for the counts and once for the temperature"
    n_features_out, sparse_output, by_person, unpaired = None, False, True, ()

    scale = property(attrgetter("_cells_noise.scale"))
    sensitivity = property(attrgetter("_cells_noise.sensitivity"))

    @cached_property
    def shares(self):
        """What each stage gets of the whole."""
        shares = self.column_shares | {"temperature": TEMPERATURE_SHARE, "cells": 0.0}
        return shares | {"cells": 1.0 - math.fsum(shares.values()) - 2.0**-50}

    @property
    def _most_counts(self):
        return self.n_classes * (super()._most_counts + 1)

    @cached_property
    def levels(self):
        """How often a range is halved: until noise is as large as a cell's mean count."""
        noise = self._noise_of_counts(LEVELS, others=1).deviation(1)
        return int(np.clip(round(math.log2(self.n_rows / noise)), 1, LEVELS))

    @property
    def _cells_noise(self):
        return self._noise_of_counts(self.levels, others=1)

    @property
    def _losses_noise(self):
        size, moved = len(INVERSE_TEMPERATURES), 0.5 * self._moved
        l2 = math.nextafter(moved * math.sqrt(size), math.inf)
        return self.budget.mechanism(self.shares["temperature"], l1=moved * size, l2=l2)

    def run(self, read, source, persons=None):
        """Return the terms, their values and the constant; as `AdditivePlan.run`."""
        table, codes = read.X, read.y
        columns = self._found(table, source, persons)
        shares = shares_of(persons)
        edges = [finest_edges(column, 1 << self.levels) for column in columns]
        exact = exact_counts(columns, edges, table, shares, codes, self.n_classes)
        exact.append(counts_of(codes, shares, self.n_classes)[:, np.newaxis])
        deviation = self._cells_noise.deviation(sum(each.size for each in exact))
        counts = np.concatenate(exact, axis=1).astype(np.float64)
        noisy = self._cells_noise.release(counts, random_state=source)
        *noisy, sizes = np.split(noisy, np.cumsum([each.shape[1] for each in exact])[:-1], axis=1)
        sizes = np.clip(sizes[:, 0], deviation, None)
        sizes *= self.n_rows / sizes.sum()
        prior = sizes / self.n_rows
        strength = PARENTS_NOISES * deviation + 1.0
        # No cell says more against a class than if it held all rows, and none of that class.
        least = strength / (self.n_rows + strength)
        terms, values = [], []
        for j, (column, own) in enumerate(zip(columns, noisy, strict=True)):
            counts, chances = _chances(column, own, sizes, strength)
            terms.append(Term(columns=(column,), positions=(j,), edges=(edges[j],), counts=counts))
            values.append(np.log(np.maximum(chances.T / prior, least)))
        start = np.log(prior)
        losses = self._losses(table, codes, terms, values, start, shares)
        noisy = self._losses_noise.release(losses, random_state=source)
        weight = INVERSE_TEMPERATURES[np.argmin(noisy)]
        values = [weight * own for own in values]
        if self.n_classes > 2:
            return terms, values, start
        return terms, [own[:, 1:] - own[:, :1] for own in values], start[1:] - start[:1]

    def _losses(self, table, codes, terms, values, start, shares):
        """Return the summed Brier score, less 1/2 a row, at each temperature; halved, exact."""
        losses = np.zeros(len(INVERSE_TEMPERATURES))
        for rows in row_blocks(table, BLOCK_ROWS):
            cells = (term.cells(table, rows) for term in terms)
            evidence = sum(own[places] for own, places in zip(values, cells, strict=True))
            truth = np.eye(self.n_classes)[codes[rows]]
            for i, weight in enumerate(INVERSE_TEMPERATURES):
                errors = softmax(start + weight * evidence, axis=1) - truth
                loss = np.clip(0.5 * (errors**2).sum(axis=1) - 0.5, -0.5, 0.5)
                steps = np.trunc(loss / STEP)
                losses[i] += (steps if shares is None else np.trunc(steps * shares[rows])).sum()
        return losses * STEP


def _chances(column, noisy, sizes, strength):
    """Return the noisy counts of a column's cells, and of each the chances of the classes.

    Parameters
    ----------
    column : Column
    noisy : ndarray of shape (n_classes, n_counts)
        Of a number at all levels.
    sizes : ndarray of shape (n_classes,)
        The classes' noisy numbers of rows.
    strength : float
        How many rows a cell's parent counts as; that of a label, or of all numbers, has the
        classes in the proportion of `sizes`.

    Returns
    -------
    counts : ndarray of shape (n_cells,)
    chances : ndarray of shape (n_classes, n_cells)
    """
    total, prior = sizes.sum(), (sizes / sizes.sum())[:, np.newaxis]
    if column.is_label:
        return np.clip(noisy.sum(axis=0), 0.0, total), _shrunk(noisy, prior, strength)
    missing = np.clip(noisy[:, -1], 0.0, sizes)
    own = zip(noisy[:, :-1], sizes - missing, strict=True)
    cells = np.stack([consistent_counts(*pair) for pair in own])
    chances = prior
    while chances.shape[1] < cells.shape[1]:
        parents = np.repeat(chances, 2, axis=1)
        counts = cells.reshape(*parents.shape, -1).sum(axis=2)
        chances = _shrunk(counts, parents, strength)
    masses = nearest_masses(cells.sum(axis=0), total - missing.sum())
    without = _shrunk(missing[:, np.newaxis], prior, strength)
    return np.append(masses, missing.sum()), np.hstack([chances, without])


def _shrunk(counts, parents, strength):
    """Return the chances of classes in cells, pulled to those of their parents."""
    pulled = np.maximum(counts, 0.0) + strength * parents
    return pulled / pulled.sum(axis=0)
