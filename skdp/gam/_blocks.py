"""Blocks: a term at one resolution, with a weight; all of them in one vector."""

import math
from dataclasses import dataclass, replace

import numpy as np

# Weights of blocks are multiples of this, so that a weight times a sum is exact.
WEIGHT_STEP = 2.0**-12
# The step size allows for counts that are larger than their noisy ones.
MARGIN = 1.1
COARSER = 4
# Below so many rows beside the noise, columns that hardly vary get less.
ROWS_FOR_ALL = 500.0
FEWEST_CELLS = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """One resolution of one term.

    Parameters
    ----------
    term : int
        -1 for the constant.
    weight : float
        What a row has in its cell of the block.
    groups : ndarray of int
        Of each of the term's finest cells, the block's cell.
    counts : ndarray of float
        Noisy counts of the block's cells, or a bound on them.
    """

    term: int
    weight: float
    groups: np.ndarray
    counts: np.ndarray

    @property
    def size(self):
        return len(self.counts)


def dyadic_weight(value):
    """Return the largest weight that is a multiple of `WEIGHT_STEP` and at most a value."""
    return math.floor(value / WEIGHT_STEP) * WEIGHT_STEP


class Layout:
    """All blocks, one after another in a vector; see ``docs/additive_models.md``.

    Parameters
    ----------
    blocks : list of Block
        Of weights whose squares add up to at most 1: the norm of a row's features.
    """

    def __init__(self, blocks):
        self.blocks = blocks
        if math.fsum(block.weight**2 for block in blocks) > 1.0:
            raise ValueError("the squares of the blocks' weights add up to more than 1")
        self.starts = np.cumsum([0, *(block.size for block in blocks)])
        self.size = int(self.starts[-1])

    def tables(self, weights):
        """Return each term's values at its finest cells.

        Parameters
        ----------
        weights : ndarray of shape (size, n_outputs)

        Returns
        -------
        dict of term to ndarray of shape (n_cells, n_outputs)
        """
        tables = {}
        for block, start in zip(self.blocks, self.starts, strict=False):
            own = block.weight * weights[start : start + block.size][block.groups]
            known = tables.get(block.term)
            tables[block.term] = own if known is None else known + own
        return tables

    def gather(self, sums):
        """Return the gradient from each term's sums at its finest cells; exact.

        Parameters
        ----------
        sums : dict of term to ndarray of shape (n_cells, n_outputs)

        Returns
        -------
        ndarray of shape (size, n_outputs)
        """
        parts = []
        for block in self.blocks:
            total = np.zeros((block.size, sums[block.term].shape[1]))
            np.add.at(total, block.groups, sums[block.term])
            parts.append(block.weight * total)
        return np.concatenate(parts)

    def moved_from(self, other, weights):
        """Return the weights by which the blocks of a shorter layout have the values they had."""
        pairs = zip(self.blocks, other.blocks, strict=False)
        factors = [
            np.full(block.size, old.weight / max(block.weight, WEIGHT_STEP)) for block, old in pairs
        ]
        result = np.zeros((self.size, weights.shape[1]))
        result[: other.size] = np.concatenate(factors)[:, None] * weights
        return result

    @property
    def diagonal(self):
        """The second moment of each feature, from noisy counts."""
        return np.concatenate([block.weight**2 * block.counts for block in self.blocks])

    @property
    def weights_sum(self):
        """The L1 norm of a row's features."""
        return math.fsum(block.weight for block in self.blocks)

    def bend(self, n_rows):
        """Return what bounds the largest eigenvalue of the features' second moment, up to noise."""
        largest = sum(block.weight**2 * block.counts.max() for block in self.blocks)
        return min(float(n_rows), MARGIN * largest)


def main_layout(terms, n_rows, clearness=1e12):
    """Return the blocks of the constant and of each column at several resolutions.

    Of the squares of the weights each has the same part, if noise is small beside the rows
    (`clearness`, n mu). Else a column gets the less, the less it varies.
    """
    constant_share = 1.0 / (len(terms) + 1)
    parts = np.sqrt([clearness / ROWS_FOR_ALL + term.variety for term in terms])
    shares = (1.0 - constant_share) * parts / parts.sum()
    constant = {"groups": np.zeros(1, dtype=np.intp), "counts": np.array([float(n_rows)])}
    blocks = [Block(term=-1, weight=dyadic_weight(math.sqrt(constant_share)), **constant)]
    for j, (term, share) in enumerate(zip(terms, shares, strict=True)):
        groups = resolutions(len(term.counts), coarser=not term.columns[0].is_label)
        weight = dyadic_weight(math.sqrt(share / len(groups)))
        for group in groups:
            counts = np.bincount(group, weights=term.counts)
            blocks.append(Block(term=j, weight=weight, groups=group, counts=counts))
    return Layout(blocks)


def resolutions(n_cells, *, coarser):
    """Return, finest first, the cell of each resolution in which each finest cell lies.

    Parameters
    ----------
    n_cells : int
        With that of missing values, which stays apart, at the end.
    coarser : bool
        Whether there are coarser ones: neighbours are alike.

    Returns
    -------
    list of ndarray of shape (n_cells,)
        Increasing, from 0 on.
    """
    groups = [np.arange(n_cells)]
    while coarser and math.ceil(groups[-1][-1] / COARSER) >= FEWEST_CELLS:
        coarse = groups[-1] // COARSER
        coarse[-1] = coarse[-2] + 1
        groups.append(coarse)
    return groups


def joint_layout(layout, pairs, main_share):
    """Return the blocks of a layout with those of pairs, which share the rest evenly."""
    factor = math.sqrt(main_share)
    blocks = [
        replace(block, weight=dyadic_weight(factor * block.weight)) for block in layout.blocks
    ]
    first, weight = blocks[-1].term + 1, dyadic_weight(math.sqrt((1.0 - main_share) / len(pairs)))
    for k, pair in enumerate(pairs):
        # A cell has no more rows than its row or column of the table.
        counts = np.minimum.outer(*pair.margins).ravel()
        groups = np.arange(len(counts))
        blocks.append(Block(term=first + k, weight=weight, groups=groups, counts=counts))
    return Layout(blocks)
