"""Tables of two columns: their cells, and which pairs are worth one."""

import itertools
import math
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skdp.gam._bins import merged_cells
from skdp.gam._columns import PackedCells, Term
from skdp.preprocessing._binning import column_pairs
from skdp.utils._validation import check_integer, is_auto

TABLE_CELLS, CHOICE_CELLS = 12, 8
# A pair is chosen if its statistic, about standard normal without interaction, exceeds this.
LEAST_EVIDENCE = 4.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Pair:
    """Two terms of one column each, and the cells of their table.

    Parameters
    ----------
    places : tuple of (int, int)
        Of the terms.
    edges : tuple of (ndarray, ndarray)
    groups : tuple of (ndarray, ndarray)
        Of each cell of a term, the row or column of the table.
    margins : tuple of (ndarray, ndarray)
        Noisy counts of the table's rows and columns.
    """

    places: tuple
    edges: tuple
    groups: tuple
    margins: tuple

    @property
    def shape(self):
        return tuple(map(len, self.margins))

    def cells(self, cells, rows):
        """Return the cells of a slice of rows, from those of the terms."""
        one, two = (g[cells.column(j, rows)] for g, j in zip(self.groups, self.places, strict=True))
        return one * self.shape[1] + two


def pair_of(terms, places, n_cells=TABLE_CELLS):
    """Return a pair whose table has about `n_cells` rows and columns, without what is missing."""
    edges, groups = zip(*(_axis(terms[j], n_cells) for j in places), strict=True)
    counts = (terms[j].counts for j in places)
    margins = tuple(np.bincount(g, weights=c) for g, c in zip(groups, counts, strict=True))
    return Pair(places=places, edges=edges, groups=groups, margins=margins)


def _axis(term, n_cells):
    """Return coarser edges of a term, and the coarse cell of each of its cells."""
    (edges,), counts = term.edges, term.counts
    if not term.columns[0].is_label:
        starts = merged_cells(counts[:-1], n_cells, 0.0)
        groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(counts) - 1))
        return np.append(edges[starts], edges[-1]), np.append(groups, len(starts))
    # The most frequent categories; the others are other ones.
    kept = np.sort(np.argsort(-counts[: len(edges)], kind="stable")[: n_cells - 1])
    groups = np.full(len(counts), len(kept))
    groups[kept], groups[-1] = np.arange(len(kept)), len(kept) + 1
    return edges[kept], groups


def extended(cells, pairs):
    """Return packed cells with those of pairs behind them."""
    sizes = [*cells.sizes, *(math.prod(pair.shape) for pair in pairs)]
    result = PackedCells(sizes, cells.n_rows, cells.shares, cells.n_units)
    for rows in cells.blocks():
        own = [cells.column(j, rows) for j in range(len(cells.sizes))]
        result.set(rows, np.array([*own, *(pair.cells(cells, rows) for pair in pairs)]))
    return result


def pair_sums(cells, pairs, scores, residuals, step):
    """Return the exact sums of residuals in the cells of all pairs' tables, one after another.

    Parameters
    ----------
    cells : PackedCells
    pairs : list of Pair
    scores : callable
        Maps a slice of rows to their scores.
    residuals : callable
        Maps (scores, rows) to clipped residuals of shape (rows, n_outputs).
    step : float
        Their grid.
    """
    totals = None
    for rows in cells.blocks():
        steps = cells.steps(rows, residuals(scores(rows), rows), step)
        own = [
            [np.bincount(places, weights=each, minlength=math.prod(pair.shape)) for each in steps]
            for pair in pairs
            for places in [pair.cells(cells, rows)]
        ]
        block = np.concatenate([np.stack(sums, axis=1) for sums in own])
        totals = block if totals is None else totals + block
    return step * totals


def chosen_pairs(pairs, noisy, deviation, most):
    """Return the pairs of most evidence for an interaction: post-processing of noisy sums."""
    evidence, start = [], 0
    for pair in pairs:
        size = math.prod(pair.shape)
        table = noisy[start : start + size].reshape(*pair.shape, -1)
        start += size
        one, two = (margin / max(margin.sum(), 1.0) for margin in pair.margins)
        one, two = one[:, None, None], two[None, :, None]
        rest = table - one * table.sum(axis=0, keepdims=True)
        rest = rest - two * rest.sum(axis=1, keepdims=True)
        weights = np.broadcast_to(one * two, table.shape)
        spread = deviation**2 * math.sqrt(2.0 * np.sum(weights**2))
        evidence.append(np.sum(weights * (rest**2 - deviation**2)) / max(spread, 1e-300))
    order = np.argsort(evidence)[::-1][:most]
    return [pairs[i] for i in order if evidence[i] > LEAST_EVIDENCE]


def check_interactions(interactions, names, n_features):
    """Return the declared pairs of positions, and how many are to be chosen.

    Raises
    ------
    ValueError
        If it is neither a number, nor "auto", nor a list of pairs of columns.
    """
    if is_auto(interactions):
        return [], None
    if isinstance(interactions, Integral):
        return [], check_integer(interactions, "interactions", 0)
    return column_pairs(interactions, names, n_features), 0


def all_pairs(terms, left_out):
    """Return every pair of terms but those with a column that is left out, of few cells."""
    places = [j for j in range(len(terms)) if j not in left_out]
    return [pair_of(terms, both, CHOICE_CELLS) for both in itertools.combinations(places, 2)]


def pair_term(terms, pair, n_rows):
    """Return the term of a pair; its counts are those of independent columns."""
    one, two = (terms[j] for j in pair.places)
    return Term(
        columns=one.columns + two.columns,
        positions=one.positions + two.positions,
        edges=pair.edges,
        counts=np.multiply.outer(*pair.margins) / n_rows,
    )
