"""A fitted additive model: a table of each term, what can be done with them, and a document."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.optimize import isotonic_regression

from skdp._data._columns import column_entries
from skdp.gam._columns import Term
from skdp.utils._documents import html_fragment, html_table, html_text, with_bar


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapeFunction(Term):
    """What a column, or two together, add to an additive model's answer.

    Parameters
    ----------
    features : tuple of int
        The columns' positions in the table.
    kinds : tuple of {"number", "date", "duration", "label"}
        Durations count days, dates those from 1970 on.
    edges : tuple of ndarray
        One a column: the edges of its bins, or its categories.
    counts : ndarray of shape (n_cells,), or (n_cells, n_cells) of two columns
        Noisy numbers of rows in the cells, not negative. A number's cells are its bins and one of
        missing values. A label's are its categories, one of all other labels and one of missing
        values. Of two columns they are what the columns' own counts say if the columns are
        independent.
    name : str
        Of the column; of two, their names with " x " between them.
    values : ndarray
        Of each cell. With several classes there is one more axis, of length n_classes.

    Attributes
    ----------
    shape : tuple of int
        That of `counts`.

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
        ShapeFunction(name=" x ".join(str(names[j]) for j in t.features), values=own, **vars(t))
        for t, own in zip(terms, values, strict=True)
    ]


def centered(shapes, constant):
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
    is_vector = isinstance(monotonic_cst, np.ndarray) and monotonic_cst.ndim == 1
    if not (is_vector or isinstance(monotonic_cst, Mapping | list | tuple | None)):
        raise ValueError(
            f"monotonic_cst must be a dict of columns or a flat list, got {monotonic_cst!r}"
        )
    found = column_entries(monotonic_cst, names, len(columns), "monotonic_cst")
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


# What is missing, and other labels, are shown if they are at least this share of the rows: fewer
# are as much as noise makes of none.
LEAST_SHARE = 0.02
# Days from 1970 on that are written as dates: the years from 54 to 3886.
LATEST_DAY = 700_000
# Of a document; what is left out is said.
MOST_TERMS = 30
MOST_CELLS = 40
MOST_OUTPUTS = 10


def ranked(shapes, most):
    """Return the most important of some shapes, the most important first."""
    return sorted(shapes, key=importance, reverse=True)[:most]


def output_names(model):
    """Return the labels to whose scores a model's values add."""
    return list(map(str, getattr(model, "classes_", ["the target"])))[-np.size(model.intercept_) :]


def shown_cells(shape, most=None):
    """Return the places of the cells that a reader is shown, among all cells in one row.

    Parameters
    ----------
    shape : ShapeFunction
    most : int, default=None
        So many cells are kept, those with the most rows by their noisy counts; None keeps all.

    Returns
    -------
    ndarray of int
        Increasing.
    """
    share = shape.counts / max(shape.counts.sum(), 1.0)
    margins = (share.sum(axis=tuple({*range(share.ndim)} - {j})) for j in range(share.ndim))
    # A bin or a category has its place whatever its count.
    axes = [
        (np.arange(len(margin)) < len(edges) - (kind != "label")) | (margin >= LEAST_SHARE)
        for margin, edges, kind in zip(margins, shape.edges, shape.kinds, strict=True)
    ]
    kept = reduce(np.logical_and.outer, axes)
    order = np.argsort(-np.where(kept, share, -1.0), axis=None, kind="stable")
    return np.sort(order[: kept.sum()][:most])


def dates_of(days):
    """Return days from 1970 on as dates, or as they are where these are no dates of ours."""
    seconds = np.round(86_400 * days)
    return seconds.astype("M8[s]") if np.abs(days).max() < LATEST_DAY else days


def edge_names(kind, edges):
    """Return edges of bins in words, as short as they can be told apart."""
    edges = dates_of(edges) if kind == "date" else edges
    if edges.dtype.kind == "M":
        written = [edges.astype(f"M8[{unit}]").astype(str) for unit in "Dms"]
    else:
        written = [[f"{edge:.{digits}g}" for edge in edges] for digits in range(5, 18)]
    return next((each for each in written if len({*each}) == len(edges)), written[-1])


def cell_names(shape):
    """Return the names of the cells of each of a shape's columns."""
    names = []
    for kind, edges in zip(shape.kinds, shape.edges, strict=True):
        if kind == "label":
            own = [*map(str, edges), "others"]
        else:
            own = map(" to ".join, itertools.pairwise(edge_names(kind, edges)))
        names.append([*own, "missing"])
    return names


def model_document(model):
    """Return a fitted model as HTML: its guarantee, its terms by importance, a table of each.

    Parameters
    ----------
    model : DPAdditiveClassifier or DPAdditiveRegressor

    Returns
    -------
    str
    """
    shapes = ranked(model.shape_functions_, MOST_TERMS)
    outputs = output_names(model)
    head = [f"score of {label}" for label in outputs[:MOST_OUTPUTS]]
    start = [f"{value:+.4g}" for value in np.ravel(model.intercept_)[:MOST_OUTPUTS]]
    words = f"{len(shapes)} of {len(model.shape_functions_)} terms, the most important first"
    return html_fragment(
        f"<p>{html_text(str(model.privacy_).splitlines()[0])}.</p>",
        html_table([["start", *start]], head=["", *head]),
        f"<p>What each adds to the start: {words}; {len(head)} of {len(outputs)} scores.</p>",
        *(_term(shape, head, importance(shapes[0])) for shape in shapes),
    )


def _term(shape, head, largest):
    """Return the table of one term, folded up behind its name and importance."""
    names = [", ".join(cells) for cells in itertools.product(*cell_names(shape))]
    values = shape.values.reshape(len(names), -1)[:, : len(head)]
    counts = shape.counts.ravel()
    shown = shown_cells(shape, MOST_CELLS)
    n_all = len(shown_cells(shape))
    highest = np.abs(values[shown]).max(initial=0.0)
    rows = [
        [names[i], *(_bar(value, highest) for value in values[i]), f"{counts[i]:.0f}"]
        for i in shown
    ]
    words = f"rows (noisy; the {len(shown)} of {n_all} cells with the most)"
    table = html_table(rows, head=["", *head, words if n_all > len(shown) else "rows (noisy)"])
    name = f"{html_text(_bar(importance(shape), largest))} {html_text(shape.name)}"
    return f"<details><summary>{name}</summary>{table}</details>"


def _bar(value, largest):
    """Return a number with a bar to the right of the middle, or the left of it if negative."""
    return with_bar(f"{value:+.4g}", value, largest, middle=50.0)
