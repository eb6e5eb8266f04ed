r"""Joint tables of two or three columns, and the score used to choose an interaction.

A table groups the released cells of its columns. Let S be the sums of residuals in its cells, and
p, q the frequencies of its rows and columns, from noisy counts. The part of S that the margins do
not explain is

.. math:: R = (I - p 1^\top)\, S\, (I - 1 q^\top) ,

with one more factor for a third column. The score of the table is

.. math:: s(S) = \sqrt{\sum_{kl} w_{kl} R_{kl}^2}, \qquad w = 1 / (n \max(p q^\top, \tau)) .

It is a seminorm of S. So a row whose residual r is added to one cell changes the score by at most
:math:`\|r\|` times the largest score of a table with a single 1 (`score_sensitivity`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp._data._dyadic import merge_cells
from skdp._data._parts import sum_over
from skdp.gam._blocks import Block
from skdp.gam._joint_codes import JointCodes
from skdp.gam._smooth_blocks import SmoothBlock, axis_loadings, table_loadings
from skdp.stats._column_cells import Term
from skdp.utils._values import FrozenValue

# Approximate number of cells in a table of two and of three columns, not counting cells of missing
# and other values: while tables are chosen, and in the model. Tuned on training rows of
# california_housing and of five simulated tables of 17,000 rows (docs/benchmarks/pairs.py).
CHOICE_CELLS = {2: 64, 3: 125}
TABLE_CELLS = {2: 144, 3: 216}
# Above this n mu, the number of cells of a pair grows with its square root: in two dimensions, the
# mean squared error is smallest with n^(1/4) bins per axis (Stone 1982). There are at most
# MAX_PAIR_CELLS cells, so that with the cells of missing values all have standard errors.
CELL_GROWTH_SIGNAL = 5_000.0
MAX_PAIR_CELLS = 324.0
# Maximum number of published cells of a table. The least frequent categories in long lists share
# the cell of other values, so that a table of three columns stays small.
MAX_PUBLISHED_CELLS = 1 << 14
# Cells with fewer rows than this multiple of the average are weighted like cells with this
# multiple. This bounds the sensitivity of the score: with 1/4, it would be twice as large.
MIN_CELL_RATIO = 1.0
# For the step size, a cell is assumed to have at most this multiple of the rows that it would have
# with independent columns. Even if a cell has more, iterates stay in the ball that contains the
# optimum.
MAX_DEPENDENCE = 2.0
# Unit roundoff of double precision.
UNIT_ROUNDOFF = 2.0**-53


@dataclass(frozen=True, kw_only=True, eq=False)
class Table(FrozenValue):
    """Two or three terms of one column each, and the cells of their joint table.

    Parameters
    ----------
    indices : tuple of int
        Indices of the terms of its columns.
    edges : tuple of ndarray
        Edges of the bins, or categories, of each axis as published.
    groups : tuple of ndarray
        For each axis, the table's cell of each cell of its term.
    margins : tuple of ndarray
        Noisy counts of the cells of each axis.
    published : tuple of ndarray
        For each axis, the table's cell of each published cell. Categories that share a cell of the
        table are published separately, with equal values.
    published_margins : tuple of ndarray
        Noisy counts of the published cells of each axis.
    n_rows : int
        Public number of rows.
    kinds : tuple of str
        Kinds of the columns.
    is_smooth : bool, default=False
        True if neighboring cells of numeric columns have similar values.
    """

    indices: tuple
    edges: tuple
    groups: tuple
    margins: tuple
    published: tuple
    published_margins: tuple
    n_rows: int
    kinds: tuple
    is_smooth: bool = False

    @property
    def shape(self):
        return tuple(map(len, self.margins))

    @property
    def size(self):
        """Number of cells."""
        return math.prod(self.shape)

    @property
    def frequencies(self):
        """Frequencies of the cells of each axis, from noisy counts."""
        return [margin / max(margin.sum(), 1.0) for margin in self.margins]

    @property
    def expected_counts(self):
        """Counts that the cells would have with independent columns."""
        return self.n_rows * outer_product(self.frequencies).ravel()

    @property
    def most_counts(self):
        """Upper bounds on the cells' counts: those of their margins, and `MAX_DEPENDENCE`."""
        bounds = self.margins[0]
        for margin in self.margins[1:]:
            bounds = np.minimum.outer(bounds, margin)
        return np.minimum(bounds.ravel(), MAX_DEPENDENCE * self.expected_counts + 1.0)

    @cached_property
    def loadings(self):
        """Features of the cells with a smooth prior, before they are weighted and truncated."""
        return table_loadings(self.shape, self.kinds)

    @cached_property
    def max_moment(self):
        """Upper bound on the second moment of the loadings in each direction, over the rows.

        If no cell of an axis has more than 1 / `MAX_DEPENDENCE` of the rows, the bounds on the
        counts are products of frequencies plus 1. The second moment is then a sum of two Kronecker
        products, each of whose largest eigenvalues is the product of those of its axes.
        """
        if max(p.max() for p in self.frequencies) > 1.0 / MAX_DEPENDENCE:
            moment = self.loadings.T @ (self.most_counts[:, np.newaxis] * self.loadings)
            return float(np.linalg.eigvalsh(moment)[-1])
        expected = MAX_DEPENDENCE * self.n_rows
        one_per_cell = 1.0
        for n_cells, kind, p in zip(self.shape, self.kinds, self.frequencies, strict=True):
            loadings = axis_loadings(n_cells, kind)
            expected *= np.linalg.eigvalsh(loadings.T @ (p[:, np.newaxis] * loadings))[-1]
            one_per_cell *= np.linalg.eigvalsh(loadings.T @ loadings)[-1]
        return float(expected + one_per_cell)

    @cached_property
    def decomposition(self):
        """Eigenvalues of the loadings' covariance, summed over the rows, and its eigenvectors.

        Truncated features are not exact multiples of the loadings, but nearly. The table's weight
        changes from stage to stage, and with this approximation only the eigenvalues change.
        """
        counts = self.expected_counts
        sums = counts @ self.loadings
        moment = self.loadings.T @ (counts[:, np.newaxis] * self.loadings)
        values, vectors = np.linalg.eigh(moment - np.outer(sums, sums) / max(counts.sum(), 1.0))
        return np.maximum(values, 0.0), vectors

    def block(self, term, weight):
        """Return the features of the table's cells, as a block of a model's design.

        Parameters
        ----------
        term : int
            Index of the table's term in the design, where tables follow the terms of single
            columns. (`indices` are those of the table's columns.)
        weight : float
            Norm of a row's features in the block: without a smooth prior, the value of the one
            feature that is not 0, which is that of the row's cell.
        """
        if self.is_smooth:
            return SmoothBlock(
                term=term,
                weight=weight,
                loadings=self.loadings,
                cell_counts=self.expected_counts,
                most_counts=self.most_counts,
                table=self,
            )
        return Block(
            term=term,
            weight=weight,
            groups=np.arange(self.size),
            counts=self.expected_counts,
            most_counts=self.most_counts,
        )

    def cells(self, column_cells):
        """Return the table's cell of each row of the data, from the cells of the terms."""
        cells = 0
        for j, groups, length in zip(self.indices, self.groups, self.shape, strict=True):
            cells = cells * length + groups[column_cells[j]]
        return cells

    def term(self, terms, n_rows):
        """Return the published term of the table, with the counts expected of independent columns.

        Parameters
        ----------
        terms : list of Term
            Terms of single columns.
        n_rows : int
            Public number of rows.
        """
        columns = [terms[j] for j in self.indices]
        counts = outer_product(self.published_margins) / float(n_rows) ** (len(columns) - 1)
        return Term(
            features=sum((column.features for column in columns), ()),
            kinds=sum((column.kinds for column in columns), ()),
            edges=self.edges,
            counts=counts,
        )

    def expand(self, values):
        """Return the values of the published cells from an array of shape (size, n_outputs)."""
        return values.reshape(*self.shape, -1)[np.ix_(*self.published)]


def table_cells(n_columns, signal_to_noise):
    """Return the approximate number of cells of a table in the model.

    Parameters
    ----------
    n_columns : int
        Number of its columns, 2 or 3.
    signal_to_noise : float
        Number of rows over the noise, n mu.
    """
    cells = TABLE_CELLS[n_columns]
    if n_columns > 2:
        return cells
    growth = math.sqrt(max(signal_to_noise / CELL_GROWTH_SIGNAL, 1.0))
    return min(cells * growth, MAX_PAIR_CELLS)


def outer_product(vectors):
    """Return the array of products of one entry of each vector."""
    result = np.ones(())
    for vector in vectors:
        result = np.multiply.outer(result, vector)
    return result


def make_table(terms, indices, n_cells, n_rows, values=None, *, is_smooth=False, axes=None):
    """Return a table of about `n_cells` cells, not counting those of missing and other values.

    Columns with few cells keep them all. The bins of other numeric columns are merged into bins of
    about equal counts, and categories with similar values are merged.

    Parameters
    ----------
    terms : list of Term
        Terms of single columns, with noisy counts.
    indices : tuple of int
        Indices of the terms.
    n_cells : int
    n_rows : int
        Public number of rows.
    values : list of ndarray of shape (n_cells, n_outputs), default=None
        Released values of the terms. Without them, the rarest categories are merged.
    is_smooth : bool, default=False
        True if neighboring cells of numeric columns have similar values.
    axes : dict, default=None
        Cache of the axes of other tables of the same terms, which share most axes. New axes are
        added.
    """
    columns = [terms[j] for j in indices]
    if axes is None:
        axes = {}
    lengths = _axis_lengths([_n_values(column) for column in columns], n_cells)
    max_labels = int(MAX_PUBLISHED_CELLS ** (1.0 / len(columns)))
    table_axes = []
    for j, column, length in zip(indices, columns, lengths, strict=True):
        key = j, length, max_labels
        if key not in axes:
            column_values = None
            if values is not None:
                column_values = values[j]
            axes[key] = _table_axis(column, length, max_labels, column_values)
        table_axes.append(axes[key])
    edges, groups, published, published_margins, margins = zip(*table_axes, strict=True)
    return Table(
        indices=tuple(indices),
        edges=edges,
        groups=groups,
        margins=margins,
        published=published,
        published_margins=published_margins,
        n_rows=n_rows,
        kinds=sum((column.kinds for column in columns), ()),
        is_smooth=is_smooth,
    )


def _table_axis(column, length, max_labels, values):
    """Return the edges, groups, published cells and counts of an axis, see `Table`."""
    if "label" in column.kinds:
        axis = _label_axis(column, length, max_labels, values)
    else:
        axis = _numeric_axis(column, length)
    groups = axis[1]
    return *axis, np.bincount(groups, weights=np.maximum(column.counts, 0.0))


def _n_values(term):
    """Return the number of bins or categories of a term."""
    if "label" in term.kinds:
        return len(term.counts) - 2
    return int(term.bins[-1])


def _axis_lengths(n_values, n_cells):
    """Return the number of cells of each axis; columns with few values leave cells to others."""
    lengths = [0] * len(n_values)
    remaining = float(n_cells)
    order = sorted(range(len(n_values)), key=lambda axis: n_values[axis])
    for position, axis in enumerate(order):
        equal_length = remaining ** (1.0 / (len(order) - position))
        length = max(min(n_values[axis], max(equal_length, 2.0)), 1.0)
        lengths[axis] = round(length)
        remaining = max(remaining / length, 1.0)
    return lengths


def _numeric_axis(term, length):
    """Return the edges, the groups and the published cells of an axis of a numeric column."""
    (edges,) = term.edges
    counts = np.maximum(term.counts, 0.0)
    bins = term.bins
    bin_counts = np.bincount(bins, weights=counts)
    n_bins = len(bin_counts) - 1
    first_bins = np.arange(n_bins)
    if length < n_bins:
        first_bins = merge_cells(bin_counts[:-1], length, 0.0)
    starts = np.searchsorted(bins, first_bins)
    groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(counts) - 1))
    groups = np.append(groups, len(starts))
    margins = np.bincount(groups, weights=counts)
    return np.append(edges[starts], edges[-1]), groups, np.arange(len(margins)), margins


def _label_axis(term, length, max_labels, values):
    """Return the categories, the groups and the published cells of an axis of categories.

    Parameters
    ----------
    term : Term
        Term of the categorical column.
    length : int
        Maximum number of groups of listed categories.
    max_labels : int
        Maximum number of listed categories; the others share one group.
    values : ndarray or None
        Values of the shape function, by which categories are merged; None merges none, so that
        at most `length` are listed.

    Returns
    -------
    categories : ndarray
        The listed categories.
    groups : ndarray of int
        Group of each cell of the column: of a listed category, "other" or "missing".
    published : ndarray of int
        Group of each published cell: the listed categories, then "other" and "missing".
    margins : ndarray
        Noisy counts of the published cells, at least 0.
    """
    (categories,) = term.edges
    counts = np.maximum(term.counts, 0.0)
    n_categories = len(categories)
    by_count = np.argsort(-counts[:n_categories], kind="stable")
    n_listed = min(max_labels, n_categories)
    if values is None:
        n_listed = min(n_listed, length)
    listed = np.sort(by_count[:n_listed])
    listed_groups = np.arange(n_listed)
    if n_listed > length:
        listed_groups = _merged_by_value(values[listed], counts[listed], length)
    n_groups = int(listed_groups.max(initial=-1)) + 1
    groups = np.full(len(counts), n_groups)
    groups[listed] = listed_groups
    groups[-1] = n_groups + 1
    published = np.append(listed_groups, [n_groups, n_groups + 1])
    rest = counts[:-1].sum() - counts[listed].sum()
    margins = np.concatenate([counts[listed], [max(rest, 0.0), counts[-1]]])
    return categories[listed], groups, published, margins


def _merged_by_value(values, counts, length):
    """Return a group for each category; groups have similar values and about equal counts.

    Several outputs are ordered by the direction in which the values vary most.
    """
    # The small constant keeps ranks defined even if all counts are 0.
    weights = counts + 1e-9
    centered = values - weights @ values / weights.sum()
    direction = np.linalg.svd(np.sqrt(weights)[:, np.newaxis] * centered, full_matrices=False)[2][0]
    order = np.argsort(centered @ direction, kind="stable")
    ranks = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    groups = np.empty(len(counts), dtype=np.intp)
    positions = np.minimum((ranks * length).astype(np.intp), length - 1)
    groups[order] = np.unique(positions, return_inverse=True)[1]
    return groups


def append_joint_terms(cells, joint_terms):
    """Return joint codes that also contain the cells of tables, or of trees.

    The cells of all rows are read and encoded again, in a new object. It costs a pass over the
    rows, so all joint terms of a stage are appended at once.

    Parameters
    ----------
    cells : JointCodes
    joint_terms : list of Table or of Tree
        Terms of several columns. The cell of a row is computed from its cells in the columns.

    Returns
    -------
    JointCodes
        Codes of the columns of `cells`, followed by one column for each joint term.
    """
    sizes = [*cells.sizes, *(math.prod(joint.shape) for joint in joint_terms)]
    return JointCodes(
        cells,
        _all_cells,
        joint_terms,
        sizes=sizes,
        n_units=cells.n_units,
        targets=cells.targets,
        loops=cells.loops,
        row_weights=cells.row_weights,
    )


def _all_cells(block, joint_terms):
    """Return the cells of a block's rows in each column, and then in each joint term."""
    column_cells = block.column_cells()
    return [*column_cells, *(joint.cells(column_cells) for joint in joint_terms)]


def table_sums(cells, tables, scores, residuals, step):
    """Return the exact sums of residuals in the cells of all tables, one after another.

    Parameters
    ----------
    cells : JointCodes
    tables : list of Table
    scores : Scores
    residuals : Residuals
    step : float
        Grid to which residuals are rounded.

    Returns
    -------
    list of ndarray of shape (*table.shape, n_outputs)
    """
    ends = np.cumsum([table.size for table in tables])
    totals = np.zeros((ends[-1], scores.bin_values[-1].shape[1]))
    totals = step * sum_over(cells, _add_to_tables, totals, tables, ends, scores, residuals, step)
    sums = np.split(totals, ends[:-1])
    return [total.reshape(*table.shape, -1) for table, total in zip(tables, sums, strict=True)]


def _add_to_tables(totals, block, tables, ends, scores, residuals, step):
    """Add the residuals of a block's rows to the cells of all tables, in units of `step`.

    Parameters
    ----------
    totals : ndarray of shape (n_cells, n_outputs)
        Sums, changed in place: the cells of one table after another.
    block : JointCodes
        A part of the `cells` of `table_sums`, with the loops of its process.
    tables : list of Table
    ends : ndarray of int
        Number of cells up to the end of each table.
    scores : Scores
    residuals : Residuals
    step : float
        Grid to which residuals are rounded.
    """
    all_scores = scores(block) + residuals.baseline
    steps = residuals.in_steps(step, block.loops, all_scores, block.targets, block.row_weights)
    column_cells = block.column_cells()
    # Tables share most axes, so the rows' cells on each axis are looked up once.
    axis_cells = {}
    for table, total in zip(tables, np.split(totals, ends[:-1]), strict=True):
        codes = 0
        for j, groups, length in zip(table.indices, table.groups, table.shape, strict=True):
            key = j, groups.tobytes()
            if key not in axis_cells:
                axis_cells[key] = groups[column_cells[j]]
            codes = codes * length + axis_cells[key]
        # Steps are whole numbers, and their sums are exact in any order.
        for k, output_steps in enumerate(steps.T):
            total[:, k] += np.bincount(codes, weights=output_steps, minlength=len(total))


@dataclass(frozen=True, eq=False)
class InteractionScore(FrozenValue):
    """Score of a table of residual sums, with its sensitivity and null distribution.

    Parameters
    ----------
    frequencies : list of ndarray
        Released frequencies of the cells of each axis.
    n_rows : int
        Public number of rows.
    """

    frequencies: list
    n_rows: int

    @cached_property
    def weights(self):
        """Weight of each cell: 1 / max(expected rows, average rows per cell).

        Cells with no rows according to the noisy counts have weight 0.
        """
        expected = outer_product(self.frequencies)
        floor = MIN_CELL_RATIO / CHOICE_CELLS[expected.ndim]
        return np.where(expected > 0.0, 1.0 / (self.n_rows * np.maximum(expected, floor)), 0.0)

    def value(self, sums):
        """Return the score of an array of residual sums of shape (*shape, n_outputs)."""
        rest = sums
        for axis, p in enumerate(self.frequencies):
            shape = [1] * rest.ndim
            shape[axis] = -1
            rest = rest - p.reshape(shape) * rest.sum(axis=axis, keepdims=True)
        return math.sqrt(float(np.sum(self.weights[..., np.newaxis] * rest**2)))

    @property
    def sensitivity(self):
        """Largest change in the score if a residual vector of norm 1 is added to one cell."""
        squares = self.weights
        for axis, p in enumerate(self.frequencies):
            # Column k is the part of a 1 in cell k that the margin does not explain.
            left = (np.eye(len(p)) - p[:, np.newaxis]) ** 2
            squares = np.moveaxis(np.tensordot(left.T, squares, axes=(1, axis)), 0, axis)
        return math.sqrt(float(squares.max()))

    @property
    def rounding(self):
        """Bound on the rounding error of `value`, if the norm of each row's residual is 1.

        Each cell is a sum of fewer products than twice the number of cells, and a row contributes
        at most 2 per axis to the L1 norm of the added magnitudes.
        """
        n_cells = math.prod(map(len, self.frequencies))
        n_operations = 4.0 * n_cells + 64.0
        magnitude = 2.0 ** len(self.frequencies) * math.sqrt(float(self.weights.max()))
        return n_operations * UNIT_ROUNDOFF * magnitude * self.n_rows

    @property
    def null_dof(self):
        """Expected squared score per unit of variance, if columns have no joint effect."""
        dof = self.n_rows * self.weights * outer_product(self.frequencies)
        for axis, p in enumerate(self.frequencies):
            shape = [1] * dof.ndim
            shape[axis] = -1
            dof = dof * (1.0 - p).reshape(shape)
        return float(dof.sum())
