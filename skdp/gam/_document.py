"""What a reader of an additive model is shown, by pictures too; the model as a document."""

import itertools
from functools import reduce

import numpy as np

from skdp.gam._shapes import importance
from skdp.utils._documents import html_bar, html_fragment, html_table, html_text

# What is missing, and other labels, are shown if they are at least this share of the rows: fewer
# are as much as noise makes of none.
LEAST_SHARE = 0.02
# Days from 1970 on that are written as dates: the years from 54 to 3886.
LATEST_DAY = 700_000
# Of a document; what is left out is said.
MOST_TERMS, MOST_CELLS, MOST_OUTPUTS = 30, 40, 10


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
    shapes, outputs = ranked(model.shape_functions_, MOST_TERMS), output_names(model)
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
    values, counts = shape.values.reshape(len(names), -1)[:, : len(head)], shape.counts.ravel()
    shown, n_all = shown_cells(shape, MOST_CELLS), len(shown_cells(shape))
    highest = np.abs(values[shown]).max(initial=0.0)
    rows = [
        [names[i], *(html_bar(value, highest) for value in values[i]), f"{counts[i]:.0f}"]
        for i in shown
    ]
    words = f"rows (noisy; the {len(shown)} of {n_all} cells with the most)"
    table = html_table(rows, head=["", *head, words if n_all > len(shown) else "rows (noisy)"])
    name = f"{html_bar(importance(shape), largest)} {html_text(shape.name)}"
    return f"<details><summary>{name}</summary>{table}</details>"
