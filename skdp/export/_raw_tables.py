"""Models of raw tables as layers of plain steps: each layer is linear and clips to 0 and 1.

A number of single precision stands for a gap, and codes for strings. The first layer tells of each
value which starts it has reached, and that is its column's cell. The second one counts of each leaf
of a tree, or cell of a pair of columns, whether a row's cells pass all of its tests.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler

from skdp.gam._columns import Column
from skdp.utils._frames import objects

# What stands for a gap, and how much each start takes to be reached, at least.
GAP, NARROWEST = (float(end) for end in (np.finfo("f4").max, np.finfo("f4").tiny))
# Of categories that are numbers: up to there single precision knows whole ones' neighbours.
LARGEST, NEAR = 2.0**22, 2.0**-23


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading:
    """How plain steps tell the cell of a column.

    Parameters
    ----------
    starts : ndarray of shape (n_starts,)
        Increasing.
    cells : ndarray of shape (n_starts + 1, n_cells)
        What the cells are for a value that has reached none of them, the first, the first two, …
    widths : float or ndarray of shape (n_starts,), default=0
        From how far below a start it is reached little by little.
    labels : list, default=None
        The strings that the column's codes stand for.
    """

    starts: np.ndarray
    cells: np.ndarray
    widths: np.ndarray | float = 0.0
    labels: list = None


def reading_of(model, kind, edges):
    """Return the `Reading` of a column's cells, from its kind and edges; as a `ShapeFunction`'s."""
    own, n_own = edges.tolist(), len(edges)
    other, missing, labels = n_own, n_own + 1, None
    if kind == "number":
        return Reading(starts=np.append(edges[1:-1], GAP), cells=np.eye(n_own))
    if kind != "label":
        raise refusal(model, "no plain step counts the days of dates and durations")
    if all(isinstance(label, str) for label in own):
        # What is missing comes first (NaN) or last (None), other labels before all categories.
        starts, labels = np.arange(-1.0, n_own + 1), own
        found = [missing, other, *range(n_own), missing]
    elif all(isinstance(number, int | float) and abs(number) <= LARGEST for number in own):
        order, low = np.argsort(own), np.sort(np.array(own, dtype=float))
        above = low + np.maximum(NEAR * np.abs(low), NARROWEST)
        above = np.minimum(above, np.append(low[1:], np.inf))
        starts = np.append(np.column_stack([low, above]), GAP)
        found = [other, *np.column_stack([order, np.full(n_own, other)]).ravel(), missing]
    else:
        raise refusal(model, "some categories are no strings, and no numbers that are small enough")
    return Reading(starts=starts, cells=np.eye(n_own + 2)[found], labels=labels)


def first_steps(readings):
    """Return the plain steps from raw rows to which starts of all columns they have reached."""
    words = {j: own.labels for j, own in enumerate(readings) if own.labels is not None}
    numbers = [j for j in range(len(readings)) if j not in words]
    front = SimpleImputer()
    if words:
        categories = [objects([*labels, None, np.nan]) for labels in words.values()]
        codes = OrdinalEncoder(categories=categories, handle_unknown="use_encoded_value")
        codes.set_params(unknown_value=-1, encoded_missing_value=-2)
        parts = [("numbers", front, numbers), ("labels", codes, [*words])]
        front = ColumnTransformer([part for part in parts if part[-1]])
    front.fit(np.full((1, len(readings)), GAP, dtype=object))
    sizes = [len(own.starts) for own in readings]
    columns = np.eye(len(readings))[[*numbers, *words]].T
    starts = np.concatenate([own.starts for own in readings])
    widths = np.concatenate([own.widths + 0.0 * own.starts for own in readings])
    widths = np.maximum.reduce(
        [widths, starts - np.nextafter(starts, -np.inf), np.full(len(starts), NARROWEST)]
    )
    below = holding(StandardScaler(), mean_=starts, scale_=widths, n_features_in_=len(starts))
    return [
        front,
        linear(np.repeat(columns, sizes, axis=0)),
        below,
        shifted(0.0 * starts + 1.0, (0, 1)),
    ]


def layer(weights, readings, offsets=0.0, limits=None):
    """Return the plain steps from reached starts to sums of cells, of (n_outputs, n_cells)."""
    parts = np.split(weights, np.cumsum([own.cells.shape[1] for own in readings])[:-1], axis=1)
    pairs = list(zip(parts, readings, strict=True))
    changes = np.hstack([part @ np.diff(own.cells, axis=0).T for part, own in pairs])
    offsets = offsets + sum(part @ own.cells[0] for part, own in pairs)
    return [linear(changes), shifted(offsets, limits)]


def leaf_steps(model):
    """Return plain steps from raw rows to leaves, and the leaves' values.

    Parameters
    ----------
    model : estimator
        With `shape_functions_`, of which the first ones are those of its columns.

    Returns
    -------
    steps : list of transformers
    values : ndarray of shape (n_outputs, n_leaves)
    """
    shapes, trees = model.shape_functions_, getattr(model, "trees_", [])
    curves = shapes[: model.n_features_in_]
    readings = [reading_of(model, own.kinds[0], own.edges[0]) for own in curves]
    sizes = [own.counts.size for own in curves]
    blocks = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    passed, n_tests = [], []
    for shape in shapes:
        passed.append(np.zeros((shape.counts.size, sum(sizes))))
        n_tests.append(np.full(shape.counts.size, shape.counts.ndim))
        places = np.indices(shape.counts.shape).reshape(shape.counts.ndim, -1)
        for own, j, kind, edges in zip(
            places, shape.features, shape.kinds, shape.edges, strict=True
        ):
            # A pair's cells are made of those of its columns.
            known = curves[j].edges[0]
            known = known[:-1].tolist() + [np.nan] if kind == "number" else [*known, object(), None]
            groups = Column(kind=kind).cells(objects(known), edges)
            passed[-1][:, blocks[j]] += own[:, np.newaxis] == groups
    for tree in trees:
        n_leaves = len(tree.values)
        passed.append(np.zeros((n_leaves, sum(sizes))))
        n_tests.append(np.full(n_leaves, n_leaves.bit_length() - 1))
        for leaf, own in enumerate(passed[-1], start=n_leaves):
            while leaf > 1:
                leaf, side = divmod(leaf, 2)
                block = blocks[tree.columns[leaf - 1]]
                own[block] += tree.sides[leaf - 1, : len(block)] == side
    steps = layer(np.vstack(passed), readings, 1.0 - np.concatenate(n_tests), (0, 1))
    values = [own.values.reshape(own.counts.size, -1) for own in shapes]
    values += [own.values.reshape(len(own.values), -1) for own in trees]
    return [*first_steps(readings), *steps], np.vstack(values).T
