"""Cells and scores of models of raw tables as scikit-learn steps, from maps clipped to [0, 1].

The steps are two layers of linear maps whose results are clipped, as in a neural network. The
limits and links of predictions that follow the scores, such as those of Poisson models, are in
`skdp.export._sklearn`.

Missing values are represented by a large single-precision number, and strings by codes. The first
layer returns, for each value and each threshold of its column, 1 if the value has reached the
threshold, else 0. The indicators of a column's cells are weighted sums of these. The second layer
returns an indicator for each leaf of a tree, or cell of a pair of columns: 1 if the column cells
pass all of its tests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import block_diag as sparse_blocks
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler

from skdp._data._frames import objects
from skdp.stats._column_cells import Column
from skdp.utils._values import FrozenValue

# Number that represents a missing value: the largest in single precision.
MISSING = float(np.finfo("f4").max)
# Minimum width of a threshold: its indicator rises linearly from 0 to 1 over this distance.
MIN_WIDTH = float(np.finfo("f4").tiny)
# Largest magnitude of numeric categories: above it, single precision cannot separate a whole number
# from the thresholds next to it.
MAX_CATEGORY = 2.0**22
# Distance between a numeric category and the threshold above it, relative to the number.
CATEGORY_WIDTH = 2.0**-23
# Maximum number of cells whose indicators are computed separately before they are added up.
MAX_INDICATORS = 1500


def export_error(model, reason):
    """Return the error about a model that cannot be exported."""
    return ValueError(f"{type(model).__name__} cannot be exported to scikit-learn: {reason}")


def with_attributes(estimator, **attributes):
    """Set fitted attributes of a scikit-learn estimator in place, and return the estimator."""
    vars(estimator).update(attributes)
    return estimator


def linear_step(components):
    """Return a transformer that multiplies rows by a matrix of shape (n_outputs, n_inputs)."""
    return with_attributes(TruncatedSVD(len(components)), components_=components)


def offset_step(offsets, limits=None):
    """Return a transformer that adds a number to each column, and clips to any limits."""
    scaler = MinMaxScaler(limits or (0, 1), clip=limits is not None)
    n_columns = len(offsets)
    return with_attributes(
        scaler, scale_=np.ones(n_columns), min_=offsets, n_features_in_=n_columns
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums(FrozenValue):
    """Weighted sums of the outputs of scikit-learn transformers.

    Parameters
    ----------
    steps : list of transformers
    weights : ndarray or CSR matrix of shape (n_sums, n_outputs)
        Weights, with a column for each output of the last step.
    constants : ndarray of shape (n_sums,)
    """

    steps: list
    weights: np.ndarray
    constants: np.ndarray

    def compose(self, weights, constants=0.0):
        """Return weighted sums of these sums."""
        constants = weights @ self.constants + constants
        return replace(self, weights=weights @ self.weights, constants=constants)

    def as_steps(self, limits=None):
        """Return transformers that output the sums, clipped to limits if there are any."""
        return [*self.steps, linear_step(self.weights), offset_step(self.constants, limits)]


@dataclass(frozen=True, kw_only=True, eq=False)
class CellThresholds(FrozenValue):
    """Thresholds that determine the cell of a column's value.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        Thresholds, in increasing order.
    cells : ndarray of shape (n_thresholds + 1, n_cells)
        Row k is the vector of cell indicators of a value that has reached k thresholds.
    width : float
        The indicator of a threshold rises linearly over this distance below it, or over the
        distance to the next double if that is larger.
    labels : list, default=()
        Labels that the column's codes represent, if the column has strings.
    """

    thresholds: np.ndarray
    cells: np.ndarray
    width: float = MIN_WIDTH
    labels: Sequence[object] = ()


def _thresholds_of(model, kind, edges, scaled):
    """Return the `CellThresholds` of a column, from the kind and edges of its `ShapeFunction`."""
    values = edges.tolist()
    # The last two cells are for undeclared values and for missing values.
    other = len(edges)
    missing = len(edges) + 1
    if kind == "number" and max(-values[0], values[-1]) >= MISSING:
        raise export_error(model, "a column has bounds beyond the range of single precision")
    if kind == "number" and scaled:
        # The two "cells" are the position in the range and the indicator of a missing value. A
        # single threshold, as wide as the range, turns the value into its position.
        cells = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        thresholds = np.array([values[1], MISSING])
        return CellThresholds(thresholds=thresholds, cells=cells, width=values[1] - values[0])
    if kind == "number":
        thresholds = np.append(edges[1:-1], MISSING)
        return CellThresholds(thresholds=thresholds, cells=np.eye(len(values)))
    if kind == "label" and all(isinstance(label, str) for label in values):
        # Strings get the codes 0, 1, …, NaN gets -2 and undeclared labels get -1; None gets the
        # next code after the strings.
        labels = [*values, None, np.nan]
        thresholds = np.arange(-1.0, len(values) + 1)
        cell_of_code = [missing, other, *range(len(values)), missing]
        cells = np.eye(len(values) + 2)[cell_of_code]
        return CellThresholds(thresholds=thresholds, cells=cells, labels=labels)
    is_exportable = kind == "label" and all(
        isinstance(value, int | float) and abs(value) <= MAX_CATEGORY for value in values
    )
    if not is_exportable:
        raise export_error(
            model, "a column has dates, or labels other than strings and numbers up to 2^22"
        )
    # A numeric category has a threshold at the number and another one just above it.
    low = np.sort(np.array(values, dtype=float))
    width = np.maximum(CATEGORY_WIDTH * np.abs(low), MIN_WIDTH)
    above = np.minimum(low + width, [*low[1:], MISSING])
    cell_of_count = [other]
    for j in np.argsort(values):
        cell_of_count += [j, other]
    cell_of_count.append(missing)
    thresholds = np.append(np.column_stack([low, above]), MISSING)
    return CellThresholds(thresholds=thresholds, cells=np.eye(len(values) + 2)[cell_of_count])


def cells_of(model, kinds, edges, *, scaled=False):
    """Return the `Sums` for the cell indicators of all columns, one column after another.

    Parameters
    ----------
    model : estimator
    kinds, edges : sequence
        The kind and the edges of each column, as in a `ShapeFunction`.
    scaled : bool, default=False
        If True, a numeric column has two outputs instead of cells. The first is the position in the
        range, from -1 to 1, or 0 for a missing value; the second is 1 for a missing value, else 0.
    """
    columns = []
    for kind, column_edges in zip(kinds, edges, strict=True):
        columns.append(_thresholds_of(model, kind, column_edges, scaled))
    strings = [j for j, column in enumerate(columns) if column.labels]
    numbers = [j for j, column in enumerate(columns) if not column.labels]
    encoder = OrdinalEncoder(
        categories=[objects(columns[j].labels) for j in strings],
        handle_unknown="use_encoded_value",
        unknown_value=-1,
        encoded_missing_value=-2,
    )
    if strings:
        transformers = [("numbers", SimpleImputer(), numbers), ("labels", encoder, strings)]
        front = ColumnTransformer([part for part in transformers if part[-1]])
    else:
        # Behind other steps of a pipeline, skl2onnx converts an imputer, but not a
        # ColumnTransformer.
        front = SimpleImputer()
    front.fit(np.full((1, len(columns)), MISSING, dtype=object))
    if strings and hasattr(model, "feature_names_in_"):
        for _, transformer, indices in front.transformers_:
            with_attributes(transformer, feature_names_in_=model.feature_names_in_[indices])
    sizes = [len(column.thresholds) for column in columns]
    thresholds = np.hstack([column.thresholds for column in columns])
    # This step repeats each column once per threshold, and restores the order of the columns.
    repeat = linear_step(np.repeat(np.eye(len(columns))[:, numbers + strings], sizes, axis=0))
    widths = np.repeat([column.width for column in columns], sizes)
    widths = np.maximum(thresholds - np.nextafter(thresholds, -np.inf), widths)
    n_thresholds = len(thresholds)
    scaler = with_attributes(
        StandardScaler(), mean_=thresholds, scale_=widths, n_features_in_=n_thresholds
    )
    weights = [np.diff(column.cells, axis=0).T for column in columns]
    return Sums(
        steps=[front, repeat, scaler, offset_step(np.ones(n_thresholds), (0, 1))],
        weights=sparse_blocks(weights, format="csr"),
        constants=np.hstack([column.cells[0] for column in columns]),
    )


def scores_of(model):
    """Return the `Sums` for the scores of an additive model, a tree or a forest.

    The model has `shape_functions_`, and `trees_` if it has trees.
    """
    shapes = model.shape_functions_
    trees = getattr(model, "trees_", [])
    curves = shapes[: model.n_features_in_]
    kinds = [curve.kinds[0] for curve in curves]
    edges = [curve.edges[0] for curve in curves]
    # Row j marks the cells of column j.
    blocks = block_diag(*(np.ones(curve.counts.size, dtype=bool) for curve in curves))
    values = np.vstack([shape.values.reshape(shape.counts.size, -1) for shape in shapes])
    cells = cells_of(model, kinds, edges)
    # With many cells, the values are applied to the thresholds directly. With few cells, each
    # indicator is computed, because sums over many thresholds lose digits in single precision.
    if not trees and len(shapes) == len(curves) and len(values) > MAX_INDICATORS:
        return cells.compose(values.T, np.ravel(model.intercept_))
    # Weights of column cells whose sum is 1 if all tests are passed, and at most 0 otherwise.
    tests = []
    for shape in shapes:
        shape_tests = np.zeros((shape.counts.size, blocks.shape[1]))
        cell_indices = np.indices(shape.counts.shape).reshape(shape.counts.ndim, -1, 1)
        for j, shape_edges, index in zip(shape.features, shape.edges, cell_indices, strict=True):
            # An example value from each cell of the column determines which cell of the term
            # contains it.
            if kinds[j] == "number":
                examples = [*edges[j][:-1], np.nan]
            else:
                examples = [*edges[j], object(), None]
            term_cells = Column(kind=kinds[j]).cells(objects(examples), shape_edges)
            shape_tests[:, blocks[j]] += index == term_cells
        # A row is in exactly one cell of a column, so this subtracts a constant.
        shape_tests[:, blocks[0]] -= shape.counts.ndim - 1
        tests.append(shape_tests)
    for tree in trees:
        depth = len(tree.values).bit_length() - 1
        tree_tests = np.zeros((len(tree.values), blocks.shape[1]))
        # Nodes of a complete binary tree are numbered from 1, level by level; leaves come last.
        for leaf, leaf_tests in enumerate(tree_tests, start=len(tree.values)):
            for height in range(depth):
                node = (leaf >> height + 1) - 1
                block = blocks[tree.columns[node]]
                leaf_tests[block] += tree.sides[node, : block.sum()] == leaf >> height & 1
        tree_tests[:, blocks[0]] -= depth - 1
        tests.append(tree_tests)
    values = np.vstack([values, *(tree.values.reshape(len(tree.values), -1) for tree in trees)])
    indicators = cells.compose(np.vstack(tests)).as_steps((0, 1))
    return Sums(steps=indicators, weights=values.T, constants=np.ravel(model.intercept_))
