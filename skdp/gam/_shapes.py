"""Shape functions of a fitted additive model, operations on them, and the HTML document."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.optimize import isotonic_regression

from skdp._data._columns import column_entries
from skdp.stats._column_cells import TermCells
from skdp.utils._documents import count_of, html_fragment, html_table, html_text, with_bar


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapeFunction(TermCells):
    """Values that one, two or three columns add to the score of an additive model.

    Parameters
    ----------
    features : tuple of int
        Positions of the columns in the table.
    kinds : tuple of {"number", "date", "duration", "label"}
        Kinds of the columns. Durations are in days, dates in days since 1970. "label" means a
        categorical column.
    edges : tuple of ndarray
        Edges of the bins, or categories, of each column.
    counts : ndarray of shape (n_cells,), with one axis per column
        Noisy, non-negative numbers of rows in the cells. The cells of a numeric column are its bins
        and one for missing values. Those of a categorical column are its categories, one for all
        other values and one for missing values. The counts of several columns are computed as if
        they were independent.
    name : str
        Name of the column, or the names of the columns with " x " between them.
    values : ndarray
        Value of each cell. With several classes, there is one more axis of length n_classes.
    standard_errors : ndarray, default=None
        Standard error of each value, in an array of the same shape: how much the noise in the fit's
        steps changes the value. None if unknown: with delta = 0, for values that `edit` replaced,
        and for models without steps. It does not cover sampling, the penalty or the choice of bins.

    Attributes
    ----------
    shape : tuple of int
        Shape of `counts`.

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
    values: np.ndarray
    standard_errors: np.ndarray | None = None


def make_shape_functions(terms, values, names, stds=None):
    """Return the `ShapeFunction` of each term.

    Parameters
    ----------
    terms : list of Term
    values : list of ndarray of shape (*counts.shape, n_outputs)
        Values of the terms, without the last axis if there is only one output.
    names : sequence of str
        Names of the columns.
    stds : list of ndarray, default=None
        Standard errors of the values.
    """
    shapes = []
    if stds is None:
        stds = [None] * len(terms)
    for term, term_values, term_stds in zip(terms, values, stds, strict=True):
        shape = ShapeFunction(
            name=" x ".join(str(names[j]) for j in term.features),
            values=term_values,
            standard_errors=term_stds,
            features=term.features,
            kinds=term.kinds,
            edges=term.edges,
            counts=term.counts,
        )
        shapes.append(shape)
    return shapes


def centered(shapes, constant):
    """Return shape functions with mean 0 over the noisy counts, and the adjusted constant."""
    result = []
    for shape in shapes:
        weights = shape.counts / max(shape.counts.sum(), 1.0)
        mean = np.tensordot(weights, shape.values, axes=weights.ndim)
        result.append(replace(shape, values=shape.values - mean))
        constant = constant + mean
    return result, constant


def importance(shape):
    """Return the mean absolute value of a shape function over the noisy counts and the classes."""
    magnitudes = np.abs(shape.values)
    if magnitudes.ndim > shape.counts.ndim:
        magnitudes = magnitudes.mean(axis=-1)
    return float((magnitudes * shape.counts).sum() / max(shape.counts.sum(), 1.0))


def term_index(shapes, term):
    """Return the index of a term, from its name or index, or raise `ValueError`."""
    names = [shape.name for shape in shapes]
    index = term
    if term in names:
        index = names.index(term)
    is_index = isinstance(index, int | np.integer) and not isinstance(index, bool)
    if not is_index or not -len(names) <= index < len(names):
        raise ValueError(f"term must be an index or one of {names}, got {term!r}")
    return index


def check_monotonic_cst(monotonic_cst, names, columns):
    """Return the constraint of each column, -1, 0 or 1, or raise `ValueError`."""
    is_vector = isinstance(monotonic_cst, np.ndarray) and monotonic_cst.ndim == 1
    if not (is_vector or isinstance(monotonic_cst, Mapping | list | tuple | None)):
        raise ValueError(
            f"monotonic_cst must be a dict of columns or a flat list, got {monotonic_cst!r}"
        )
    signs = column_entries(monotonic_cst, names, len(columns), "monotonic_cst")
    for j, (sign, column) in enumerate(zip(signs, columns, strict=True)):
        if sign not in (None, -1, 0, 1):
            raise ValueError(f"monotonic_cst must be -1, 0 or 1, got {sign!r} for column {j}")
        if sign and column.is_categorical:
            raise ValueError(f"monotonic_cst: column {j} is categorical")
    return tuple(int(sign or 0) for sign in signs)


def monotone(shape, sign):
    """Return a shape function of one column that is non-decreasing (1) or non-increasing (-1).

    The value for missing values does not change.
    """
    values = shape.values.copy()
    bins = slice(0, len(values) - 1)
    weights = shape.counts[bins] + 1.0
    values[bins] = isotonic_regression(sign * values[bins], weights=weights).x * sign
    return replace(shape, values=values)


# Minimum fraction of the rows for which the cells of missing values and of other values are shown.
# Smaller counts are mostly noise.
MIN_SHOWN_FRACTION = 0.02
# Days before and after 1970 that are printed as dates: the years from 54 to 3886.
MAX_DAY = 700_000
# Limits of an HTML document, which reports how many items are left out.
MAX_TERMS = 30
MAX_CELLS = 40
MAX_OUTPUTS = 10


def ranked(shapes, n_shapes):
    """Return the `n_shapes` most important shape functions, the most important first."""
    return sorted(shapes, key=importance, reverse=True)[:n_shapes]


def output_names(model):
    """Return the names of the outputs of a model's scores."""
    classes = getattr(model, "classes_", ["the target"])
    return [str(label) for label in classes][-np.size(model.intercept_) :]


def shown_cells(shape, max_cells=None):
    """Return the indices, in the flattened array, of the cells that are shown to a reader.

    Parameters
    ----------
    shape : ShapeFunction
    max_cells : int, default=None
        Maximum number of cells; those with the largest noisy counts are shown. None shows all.

    Returns
    -------
    ndarray of int
        Increasing indices.
    """
    frequencies = shape.counts / max(shape.counts.sum(), 1.0)
    axes_shown = []
    for j, (edges, kind) in enumerate(zip(shape.edges, shape.kinds, strict=True)):
        other_axes = tuple({*range(frequencies.ndim)} - {j})
        margin = frequencies.sum(axis=other_axes)
        # Bins and categories are shown even if they are empty.
        n_bins = len(edges) - 1
        if kind == "label":
            n_bins = len(edges)
        is_bin = np.arange(len(margin)) < n_bins
        axes_shown.append(is_bin | (margin >= MIN_SHOWN_FRACTION))
    is_shown = reduce(np.logical_and.outer, axes_shown)
    order = np.argsort(-np.where(is_shown, frequencies, -1.0), axis=None, kind="stable")
    return np.sort(order[: is_shown.sum()][:max_cells])


def dates_of(days):
    """Return days since 1970 as dates, or unchanged if they are too far from 1970."""
    if np.abs(days).max() >= MAX_DAY:
        return days
    return np.round(86_400 * days).astype("M8[s]")


def edge_names(kind, edges):
    """Return the edges of bins as text, with the fewest digits that distinguish them."""
    if kind == "date":
        edges = dates_of(edges)
    if edges.dtype.kind == "M":
        candidates = [edges.astype(f"M8[{unit}]").astype(str) for unit in "Dms"]
    else:
        candidates = [[f"{edge:.{digits}g}" for edge in edges] for digits in range(5, 18)]
    for names in candidates:
        if len({*names}) == len(edges):
            return names
    return candidates[-1]


def cell_names(shape):
    """Return the names of the cells of each column of a shape function."""
    names = []
    for kind, edges in zip(shape.kinds, shape.edges, strict=True):
        if kind == "label":
            column_names = [*map(str, edges), "others"]
        else:
            pairs = itertools.pairwise(edge_names(kind, edges))
            column_names = [f"{low} to {high}" for low, high in pairs]
        names.append([*column_names, "missing"])
    return names


def model_document(model):
    """Return a fitted model as HTML: its guarantee, and its terms in order of importance.

    Parameters
    ----------
    model : DPAdditiveClassifier or DPAdditiveRegressor

    Returns
    -------
    str
    """
    shapes = ranked(model.shape_functions_, MAX_TERMS)
    outputs = output_names(model)
    head = [f"score of {label}" for label in outputs[:MAX_OUTPUTS]]
    intercept = [f"{value:+.4g}" for value in np.ravel(model.intercept_)[:MAX_OUTPUTS]]
    n_terms = (
        f"{len(shapes)} of {count_of(len(model.shape_functions_), 'term')}, the most important "
        "first"
    )
    return html_fragment(
        f"<p>{html_text(str(model.privacy_).splitlines()[0])}.</p>",
        html_table([["intercept", *intercept]], head=["", *head]),
        f"<p>Values that terms add to the intercept: {n_terms}; "
        f"{len(head)} of {len(outputs)} scores.</p>",
        *(_term_table(shape, head, importance(shapes[0])) for shape in shapes),
    )


def _term_table(shape, head, max_importance):
    """Return the table of one term, collapsed under its name and importance."""
    names = [", ".join(cells) for cells in itertools.product(*cell_names(shape))]
    values = shape.values.reshape(len(names), -1)[:, : len(head)]
    counts = shape.counts.ravel()
    shown = shown_cells(shape, MAX_CELLS)
    n_all = len(shown_cells(shape))
    max_value = np.abs(values[shown]).max(initial=0.0)
    rows = []
    for i in shown:
        bars = [_bar(value, max_value) for value in values[i]]
        rows.append([names[i], *bars, f"{counts[i]:.0f}"])
    count_head = "rows (noisy)"
    if n_all > len(shown):
        count_head = f"rows (noisy; the {len(shown)} of {n_all} cells with the most)"
    table = html_table(rows, head=["", *head, count_head])
    name = f"{html_text(_bar(importance(shape), max_importance))} {html_text(shape.name)}"
    return f"<details><summary>{name}</summary>{table}</details>"


def _bar(value, max_value):
    """Return a number with a bar to the right of the middle, or to the left if negative."""
    return with_bar(f"{value:+.4g}", value, max_value, middle=50.0)
