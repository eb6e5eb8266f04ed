"""What a fitted additive model is made of: one table a term, and what can be done with it."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression

from skdp.gam._columns import entries_of


@dataclass(frozen=True, eq=False, kw_only=True)
class ShapeFunction:
    """What a column, or two together, add to an additive model's answer.

    Parameters
    ----------
    name : str
        Of the column; of two, their names with " x " between them.
    features : tuple of int
        Their positions in the table.
    kinds : tuple of {"number", "date", "duration", "label"}
        Durations count days, dates those from 1970 on.
    edges : tuple of ndarray
        One a column: the edges of its bins, or its categories.
    values : ndarray of shape (n_cells,), or (n_cells, n_cells) of two columns
        Of each cell. A number's cells are its bins and one of missing values. A label's are its
        categories, one of all other labels and one of missing values. With several classes there
        is one more axis, of length n_classes.
    counts : ndarray
        Noisy numbers of rows in the cells, not negative. Of two columns they are what the columns'
        own counts say if the columns are independent.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier
    >>> X = np.arange(1000)[:, None]
    >>> model = DPAdditiveClassifier(bounds=(0, 1000)).fit(X, X[:, 0] > 500)
    >>> shape = model.shape_functions_[0]
    >>> shape.name, shape.kinds, len(shape.values) == len(shape.edges[0])
    ('x0', ('number',), True)
    """

    name: str
    features: tuple
    kinds: tuple
    edges: tuple
    values: np.ndarray
    counts: np.ndarray


def shape_functions(terms, values, names):
    """Return a `ShapeFunction` for each term.

    Parameters
    ----------
    terms : list of Term
    values : list of ndarray of shape (*counts.shape, n_outputs)
        Without the last axis if there is one output only.
    names : sequence of str
    """
    return [
        ShapeFunction(
            name=" x ".join(str(names[j]) for j in term.positions),
            features=term.positions,
            kinds=tuple(column.kind for column in term.columns),
            edges=term.edges,
            values=own,
            counts=term.counts,
        )
        for term, own in zip(terms, values, strict=True)
    ]


def centred(shapes, constant):
    """Return shapes whose values have the mean 0 over the noisy counts, and the new constant."""
    result = []
    for shape in shapes:
        weights = shape.counts / max(shape.counts.sum(), 1.0)
        mean = np.tensordot(weights, shape.values, axes=weights.ndim)
        result.append(replace(shape, values=shape.values - mean))
        constant = constant + mean
    return result, constant


def importance(shape):
    """Return the mean magnitude of a shape's values over the noisy counts; of classes, the mean."""
    size = np.abs(shape.values)
    size = size.mean(axis=-1) if size.ndim > shape.counts.ndim else size
    return float((size * shape.counts).sum() / max(shape.counts.sum(), 1.0))


def place_of(shapes, term):
    """Return the place of a term, which is given by its name or place, or raise `ValueError`."""
    names = [shape.name for shape in shapes]
    place = names.index(term) if term in names else term
    is_place = isinstance(place, int | np.integer) and not isinstance(place, bool)
    if not is_place or not -len(names) <= place < len(names):
        raise ValueError(f"there is no term {term!r}, only {names}")
    return place


def directions(monotonic_cst, names, columns):
    """Return -1, 0 or 1 for each column, or raise `ValueError`; as scikit-learn's parameter."""
    found = entries_of(monotonic_cst, names, len(columns), "monotonic_cst")
    for j, (sign, column) in enumerate(zip(found, columns, strict=True)):
        if sign not in (None, -1, 0, 1):
            raise ValueError(f"monotonic_cst must be -1, 0 or 1, got {sign!r} for column {j}")
        if sign and column.is_label:
            raise ValueError(f"monotonic_cst: column {j} is categorical")
    return tuple(int(sign or 0) for sign in found)


def monotone(shape, sign):
    """Return a shape of one column whose values at bins never fall (1) or never rise (-1)."""
    values = shape.values.copy()
    bins = slice(0, len(values) - 1)
    weights = shape.counts[bins] + 1.0
    values[bins] = isotonic_regression(sign * values[bins], weights=weights).x * sign
    return replace(shape, values=values)
