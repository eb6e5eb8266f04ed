"""The public grid of scores: its size, its edges and the cell of a score.

A cell contains its upper edge but not its lower one, so a score of exactly one half counts for
the negative class, as in the `predict` of classifiers.
"""

import math

import numpy as np
from scipy.special import logit

from skdp.utils._validation import check_increasing

# Cells have equal widths in a mixture of the probability and its logit. With equal widths in the
# probability, all scores of a rare class would be in the first cells; with equal widths in the
# logit, half of the cells would be in tails without rows. This weight and the factor below were
# chosen by the errors in AUC, average precision, Brier score and calibration on training rows of
# three tables and on simulated tables (`docs/benchmarks/metric_constants.py grid`). With a weight
# of 0.9, errors on the real tables are smaller, but errors in the AUC with 1 % of positives are
# twice as large.
PROBABILITY_WEIGHT = 0.8
# Range of the logit in which cells have equal widths.
MAX_LOGIT = 8.0
# The error due to the width of the cells falls with their number, and the noise grows with it.
# Their sum is smallest near CELLS_FACTOR (n epsilon)^(2/5) cells.
CELLS_FACTOR = 0.9
CELLS_EXPONENT = 0.4
MIN_CELLS = 16
MAX_CELLS = 512
# Number of halvings after which an edge is known to the precision of a double.
BISECTIONS = 60
# Number of bins of the calibration curve in reports; their edges are edges of every grid.
CALIBRATION_BINS = 8


def number_of_cells(n_units, guarantee, factor=CELLS_FACTOR):
    """Return the number of cells of the grid, an even number, from public numbers only.

    Parameters
    ----------
    n_units : int
        Number of rows, or of persons.
    guarantee : Guarantee
    factor : float, default=0.9
        Factor of the number of cells.
    """
    # Under replace-one, the noise is as large as with half the epsilon.
    signal = n_units * guarantee.epsilon / guarantee.neighbors.sensitivity_factor
    size = factor * min(signal, 1e12) ** CELLS_EXPONENT
    return 2 * round(min(max(size, MIN_CELLS), MAX_CELLS) / 2)


def probability_edges(n_cells, thresholds=(), n_bins=CALIBRATION_BINS):
    """Return the inner edges of the cells of a probability.

    Parameters
    ----------
    n_cells : int
        An even number.
    thresholds : tuple of float, default=()
        Probabilities that must be edges. For each of them, the nearest edge is set to it.
    n_bins : int, default=8
        Number of equal-width bins of the calibration curve. For each of their edges, the nearest
        edge of the grid is set to it.

    Returns
    -------
    ndarray of shape (n_edges,)
        Increasing, in (0, 1), and usually ``n_cells - 1`` long. 1/2 is one of them.
    """
    targets = np.arange(1, n_cells // 2) / n_cells
    low = np.zeros(len(targets))
    high = np.full(len(targets), 0.5)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_below = _position(middle) < targets
        low = np.where(is_below, middle, low)
        high = np.where(is_below, high, middle)
    edges = np.concatenate([high, [0.5], 1.0 - high[::-1]])
    for fixed in (*(np.arange(1, n_bins) / n_bins), 0.5, *thresholds):
        edges[np.argmin(np.abs(edges - fixed))] = fixed
    # Two fixed values may have replaced the same edge; the first of them is then lost.
    inner = [value for value in thresholds if 0.0 < value < 1.0]
    edges = np.union1d(edges, np.concatenate([np.arange(1, n_bins) / n_bins, [0.5], inner]))
    return edges[(edges > 0.0) & (edges < 1.0)]


def _position(probability):
    """Return the increasing map to positions in [0, 1], where all cells have equal width."""
    with np.errstate(divide="ignore"):
        scaled = np.clip(logit(probability) / (2.0 * MAX_LOGIT) + 0.5, 0.0, 1.0)
    return PROBABILITY_WEIGHT * probability + (1.0 - PROBABILITY_WEIGHT) * scaled


def score_cells(scores, edges, score_bounds=(0.0, 1.0)):
    """Return the cell of each score, each computed independently of the others.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,)
        NaN is in the first cell.
    edges : ndarray of shape (n_edges,)
        Of `probability_edges`.
    score_bounds : tuple of (low, high) or None, default=(0, 1)
        The range that corresponds to probabilities from 0 to 1. If None, a score's logistic
        function is its probability.

    Returns
    -------
    ndarray of int64
    """
    # The edges are converted instead of the scores, because the logistic function of a tiny
    # positive decision value is rounded to 1/2.
    if score_bounds is None:
        edges = logit(edges)
    else:
        low, high = score_bounds
        edges = low + edges * (high - low)
    scores = np.asarray(scores, dtype=np.float64)
    return np.searchsorted(edges, np.where(np.isnan(scores), -np.inf, scores), side="left")


def cell_probabilities(edges):
    """Return the probability that represents each cell: its middle."""
    borders = np.concatenate([[0.0], edges, [1.0]])
    return (borders[1:] + borders[:-1]) / 2


def thresholds_at(edges, score_bounds=(0.0, 1.0)):
    """Return decreasing thresholds; scores ``>=`` a threshold are the scores above its edge."""
    if score_bounds is None:
        edges = logit(edges)
    else:
        low, high = score_bounds
        edges = low + edges * (high - low)
    return np.concatenate([[math.inf], np.nextafter(edges, math.inf)[::-1], [-math.inf]])


def check_score_bounds(score_bounds):
    """Return (low, high), or None for scores without a public range."""
    if score_bounds is None:
        return None
    return check_increasing(score_bounds, "score_bounds", -math.inf, math.inf, 1e-100)
