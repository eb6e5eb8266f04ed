"""Models of raw tables as layers of plain steps: each layer is linear and clips to 0 and 1.

A number of single precision stands for a gap, and codes for strings. The first layer tells of each
value which starts it has reached; the cells of columns, 0 or 1, are sums of these. The second one
says of each leaf of a tree, or cell of a pair of columns, whether cells pass all of its tests.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import block_diag
from scipy.sparse import block_diag as sparse_blocks
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler

from skdp.gam._columns import Column
from skdp.utils._frames import objects
from skdp.utils._values import FrozenValue

# What stands for a gap, and how much each start takes to be reached, at least.
GAP, NARROWEST = (float(end) for end in (np.finfo("f4").max, np.finfo("f4").tiny))
# Of categories that are numbers: up to there single precision knows whole ones' neighbors.
LARGEST = 2.0**22
NEAR = 2.0**-23
# So many cells are told one by one, before they are added up.
FEW_CELLS = 1500


def refusal(model, why):
    """Return the error about a model that does not map."""
    return ValueError(f"{type(model).__name__} has no plain counterpart: {why}")


def holding(plain, **released):
    """Return a plain estimator with released values as its fitted attributes."""
    vars(plain).update(released)
    return plain


def linear(components):
    """Return the plain step that multiplies rows by a matrix of shape (n_outputs, n_inputs)."""
    return holding(TruncatedSVD(len(components)), components_=components)


def shifted(offsets, limits=None):
    """Return the plain step that adds a number to each column and clips to limits, if any."""
    plain = MinMaxScaler(limits or (0, 1), clip=limits is not None)
    return holding(plain, scale_=np.ones(len(offsets)), min_=offsets, n_features_in_=len(offsets))


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums(FrozenValue):
    """Weighted sums of what plain steps return.

    Parameters
    ----------
    steps : list of transformers
    weights : ndarray or CSR matrix of shape (n_sums, n_outputs of the steps)
    constants : ndarray of shape (n_sums,)
    """

    steps: list
    weights: np.ndarray
    constants: np.ndarray

    def then(self, weights, constants=0.0):
        """Return weighted sums of the sums."""
        constants = weights @ self.constants + constants
        return replace(self, weights=weights @ self.weights, constants=constants)

    def as_steps(self, limits=None):
        """Return the plain steps that end in the sums, clipped to limits if there are any."""
        return [*self.steps, linear(self.weights), shifted(self.constants, limits)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reading(FrozenValue):
    """How plain steps tell the cell of a column.

    Parameters
    ----------
    starts : ndarray of shape (n_starts,)
        Increasing.
    cells : ndarray of shape (n_starts + 1, n_cells)
        What the cells are for a value that has reached none of them, the first, the first two, …
    width : float
        From how far below a start it is reached little by little, if doubles are closer.
    labels : list, default=()
        What the column's codes stand for, if it has strings.
    """

    starts: np.ndarray
    cells: np.ndarray
    width: float = NARROWEST
    labels: list = ()


def _reading(model, kind, edges, scaled):
    """Return the `Reading` of a column, from its kind and edges as a `ShapeFunction` has them."""
    own = edges.tolist()
    other = len(edges)
    missing = len(edges) + 1
    if kind == "number" and max(-own[0], own[-1]) >= GAP:
        raise refusal(model, "of a column with bounds beyond single precision")
    if kind == "number" and scaled:
        cells = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        return Reading(starts=np.array([own[1], GAP]), cells=cells, width=own[1] - own[0])
    if kind == "number":
        return Reading(starts=np.append(edges[1:-1], GAP), cells=np.eye(len(own)))
    if kind == "label" and all(isinstance(label, str) for label in own):
        # Below their codes, from 0 on, are those of other labels and of NaN; None's is above.
        labels = [*own, None, np.nan]
        starts = np.arange(-1.0, len(own) + 1)
        found = [missing, other, *range(len(own)), missing]
        return Reading(starts=starts, cells=np.eye(len(own) + 2)[found], labels=labels)
    if kind != "label" or not all(isinstance(n, int | float) and abs(n) <= LARGEST for n in own):
        raise refusal(model, "it reads dates, or labels beside strings and numbers up to 2^22")
    low = np.sort(np.array(own, dtype=float))
    above = np.minimum(low + np.maximum(NEAR * np.abs(low), NARROWEST), [*low[1:], GAP])
    found = [other, *(cell for j in np.argsort(own) for cell in (j, other)), missing]
    starts = np.append(np.column_stack([low, above]), GAP)
    return Reading(starts=starts, cells=np.eye(len(own) + 2)[found])


def cells_of(model, kinds, edges, *, scaled=False):
    """Return the `Sums` that are the cells of all columns of raw rows, one column after another.

    Parameters
    ----------
    model : estimator
    kinds, edges
        Of each column, as those of a `ShapeFunction`.
    scaled : bool, default=False
        Whether the cells of a number are where it is in its range, from -1 to 1, or 0 if it is
        missing, and whether it is.
    """
    columns = [_reading(model, *pair, scaled) for pair in zip(kinds, edges, strict=True)]
    words = [j for j, own in enumerate(columns) if own.labels]
    numbers = [j for j, own in enumerate(columns) if not own.labels]
    labels = [objects(columns[j].labels) for j in words]
    codes = OrdinalEncoder(categories=labels, handle_unknown="use_encoded_value")
    codes.set_params(unknown_value=-1, encoded_missing_value=-2)
    parts = [("numbers", SimpleImputer(), numbers), ("labels", codes, words)]
    # Behind other steps skl2onnx converts the imputer alone.
    front = ColumnTransformer([part for part in parts if part[-1]]) if words else SimpleImputer()
    front.fit(np.full((1, len(columns)), GAP, dtype=object))
    if words and hasattr(model, "feature_names_in_"):
        for _, part, own in front.transformers_:
            holding(part, feature_names_in_=model.feature_names_in_[own])
    sizes = [len(own.starts) for own in columns]
    starts = np.hstack([own.starts for own in columns])
    picks = linear(np.repeat(np.eye(len(columns))[:, numbers + words], sizes, axis=0))
    widths = np.repeat([own.width for own in columns], sizes)
    widths = np.maximum(starts - np.nextafter(starts, -np.inf), widths)
    below = holding(StandardScaler(), mean_=starts, scale_=widths, n_features_in_=len(starts))
    return Sums(
        steps=[front, picks, below, shifted(np.ones(len(starts)), (0, 1))],
        weights=sparse_blocks([np.diff(own.cells, axis=0).T for own in columns], format="csr"),
        constants=np.hstack([own.cells[0] for own in columns]),
    )


def scores_of(model):
    """Return the `Sums` that are the scores of a model with `shape_functions_`, and maybe trees."""
    shapes = model.shape_functions_
    trees = getattr(model, "trees_", [])
    curves = shapes[: model.n_features_in_]
    kinds = [own.kinds[0] for own in curves]
    edges = [own.edges[0] for own in curves]
    blocks = block_diag(*(np.ones(own.counts.size, dtype=bool) for own in curves))
    values = np.vstack([own.values.reshape(own.counts.size, -1) for own in shapes])
    cells = cells_of(model, kinds, edges)
    passed = []
    # Few cells are told one by one: single precision adds up many starts less well.
    if not trees and len(shapes) == len(curves) and len(values) > FEW_CELLS:
        return cells.then(values.T, np.ravel(model.intercept_))
    for shape in shapes:
        passed.append(np.zeros((shape.counts.size, blocks.shape[1])))
        places = np.indices(shape.counts.shape).reshape(shape.counts.ndim, -1, 1)
        for j, own, place in zip(shape.features, shape.edges, places, strict=True):
            # A pair's cells are made of those of its columns.
            numeric = kinds[j] == "number"
            known = [*edges[j][:-1], np.nan] if numeric else [*edges[j], object(), None]
            passed[-1][:, blocks[j]] += place == Column(kind=kinds[j]).cells(objects(known), own)
        # Of each column a row has one cell.
        passed[-1][:, blocks[0]] -= shape.counts.ndim - 1
    for tree in trees:
        depth = len(tree.values).bit_length() - 1
        passed.append(np.zeros((len(tree.values), blocks.shape[1])))
        for leaf, own in enumerate(passed[-1], start=len(tree.values)):
            for height in range(depth):
                test = (leaf >> height + 1) - 1
                block = blocks[tree.columns[test]]
                own[block] += tree.sides[test, : block.sum()] == leaf >> height & 1
        passed[-1][:, blocks[0]] -= depth - 1
    values = np.vstack([values, *(own.values.reshape(len(own.values), -1) for own in trees)])
    leaves = cells.then(np.vstack(passed)).as_steps((0, 1))
    return Sums(steps=leaves, weights=values.T, constants=np.ravel(model.intercept_))
