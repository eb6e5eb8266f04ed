"""Synthetic tables to which steps that learn nothing are fitted before the first charge.

A scikit-learn step checks some of its parameters only when it is fitted, or when it transforms: for
example, that knots are sorted, or that a threshold is valid for a sparse table. Behind a private
step, this happens after the charge. Therefore a copy of the step first receives a few synthetic
rows in the form that its table will have. No row of a user's table is read.
"""

from itertools import product
from warnings import catch_warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from skdp._tools._functions import is_elementwise
from skdp.mechanisms._unknown_shape import SHAPES, sizes_in
from skdp.pipeline._known import accepted_entry

# Errors that a step may raise when it checks its parameters. Values of the wrong type cause many
# kinds of errors.
REFUSALS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, ImportError)
N_ROWS = 2
# Maximum number of cells of a synthetic table, or of a random matrix that a step draws.
MOST_CELLS = 10**6
# Number of widths that are tried if the table's width is unknown.
MOST_WIDTHS = 8
# scikit-learn modules with transformers whose errors do not depend on the values of rows, and the
# exceptions among their classes.
LEARNING_MODULES = (
    "sklearn.decomposition",
    "sklearn.feature_selection",
    "sklearn.impute",
    "sklearn.kernel_approximation",
    "sklearn.preprocessing",
)
FAIL_BY_VALUES = {"VarianceThreshold", "TargetEncoder", "FunctionTransformer"}
# Limits on a synthetic table to which a step is fitted, since that must not take long.
N_FITTED_ROWS = 50
MOST_FITTED_ROWS = 1_000
MOST_FITTED_COLUMNS = 200


def check_on_templates(step, form):
    """Raise the error that a scikit-learn step raises for every table of a form.

    Parameters
    ----------
    step : estimator
        A step that learns nothing. It is not changed.
    form : TableForm
        Form of the step's table. If properties are unknown, several tables are tried, and it is
        sufficient that the step works on one of them.

    Raises
    ------
    ValueError, TypeError, ArithmeticError, LookupError, AttributeError, ImportError
        The error that the step raises for the first of the tables.
    """
    entry = accepted_entry(step)
    if entry is None or not _can_be_tried(step, form):
        return
    refusal = None
    for width, is_sparse, kinds in product(
        _widths(step, form), _sparsities(form), _kinds(step, form)
    ):
        if _n_cells(step, width, entry.width(step, width) or 0) > MOST_CELLS:
            return
        if len(kinds) == 1:
            kinds = kinds * width
        table = made_up_rows(kinds, step, form.examples)
        if is_sparse and table.dtype.kind == "f":
            table = csr_array(table)
        try:
            _try(step, table)
            return
        except REFUSALS as error:
            # The first width occurs in the parameters, so the error for it is the most helpful one.
            refusal = refusal or error
    raise refusal


def check_on_synthetic_rows(step, form, n_rows):
    """Raise the error, on synthetic rows, of a scikit-learn step that learns from public rows.

    A fit checks some parameters, such as a number of components, against the table's shape.

    Parameters
    ----------
    step : estimator
        It is not changed.
    form : TableForm
    n_rows : int or None
        Number of rows of its table.
    """
    kind = type(step)
    is_known = kind.__module__.startswith(LEARNING_MODULES) and kind.__name__ not in FAIL_BY_VALUES
    holds_others = any(hasattr(value, "fit") for value in step.get_params(deep=False).values())
    if not (is_known and form.holds_numbers and form.n_columns) or holds_others:
        return
    _, integers = sizes_in(step.get_params(deep=False))
    size = max([2 * N_FITTED_ROWS, 2 * form.n_columns, *(2 * n for n in integers)])
    if n_rows is not None:
        size = min(size, n_rows)
    if size > MOST_FITTED_ROWS or form.n_columns > MOST_FITTED_COLUMNS:
        return
    # Values in [0, 1) without repetitions or linear relations: fractional parts of k sqrt(j + 2).
    numbers = np.arange(1.0, size + 1.0)[:, np.newaxis] * np.sqrt(np.arange(form.n_columns) + 2.0)
    table = np.modf(numbers + np.sqrt(3.0) * numbers**2)[0]
    _try(step, table, np.arange(size) % 2)


def _n_cells(step, width, width_out):
    """Return the number of cells of the largest table or matrix that a synthetic table needs."""
    # Projections draw a matrix.
    n_components = getattr(step, "n_components", 0)
    if n_components > N_ROWS:
        return n_components * width
    return N_ROWS * max(width, width_out)


def _can_be_tried(step, form):
    """Return False for user-defined functions, and for steps that read no table."""
    if type(step) is FunctionTransformer:
        # A user-defined function may need particular rows, or a particular container.
        return is_elementwise(step.func, step.kw_args)
    reads_texts = hasattr(step, "n_features") or hasattr(step, "vocabulary")
    return not reads_texts or form.holds_numbers


def _widths(step, form):
    """Return the numbers of columns to try: the known one, or those that the parameters suggest."""
    if form.n_columns is not None:
        return [form.n_columns]
    lengths, _ = sizes_in(step.get_params(deep=False))
    knots = step.get_params(deep=False).get("knots")
    if np.ndim(knots) == 2:
        lengths = [np.shape(knots)[1], *lengths]
    return [*dict.fromkeys([*lengths, *(width for _, width in SHAPES)])][:MOST_WIDTHS]


def _sparsities(form):
    """Return whether to try a dense table, a sparse one, or both if it is unknown."""
    if form.is_sparse is None:
        return [False, True]
    return [form.is_sparse]


def _kinds(step, form):
    """Return the kinds of columns to try: one for all columns or one per column."""
    if form.holds_numbers:
        return [("number",)]
    if form.has_known_cells:
        return [form.kinds]
    # For an encoder, an error about strings is the most helpful.
    reads_words = isinstance(step, OneHotEncoder | OrdinalEncoder)
    if reads_words:
        return [("text",), ("number",)]
    return [("number",), ("text",)]


def made_up_rows(kinds, step=None, examples=None):
    """Return a few rows with columns of the given kinds.

    Parameters
    ----------
    kinds : sequence of {"number", "text", "mixed"}
    step : estimator, default=None
        Step that can transform the rows if its parameters are valid.
    examples : dict of int to list, default=None
        Values of the "mixed" columns, by position.

    Returns
    -------
    ndarray of shape (n_rows, n_columns)
        Floats, or objects if some columns contain strings.
    """
    values = {j: (examples or {}).get(j, [0.5]) for j, kind in enumerate(kinds) if kind == "mixed"}
    n_rows = max([N_ROWS, *map(len, values.values())])
    rows = np.tile(_numbers_for(step, len(kinds)), (n_rows, 1))
    if not {"text", "mixed"} & set(kinds):
        return rows
    rows = rows.astype(object)
    for j, word in enumerate(_words_for(step, len(kinds))):
        if kinds[j] == "text":
            rows[:, j] = word
    for j, column_values in values.items():
        for i in range(n_rows):
            rows[i, j] = column_values[i % len(column_values)]
    return rows


def _numbers_for(step, width):
    """Return a row of numbers that a step with valid parameters can transform."""
    knots = getattr(step, "knots", None)
    if np.ndim(knots) == 2 and np.shape(knots)[1] == width:
        # With extrapolation="error" a value beyond the knots is refused.
        return np.mean(knots, axis=0)
    return np.full(width, 0.5)


def _words_for(step, width):
    """Return a row of declared strings, since an encoder may refuse others."""
    if isinstance(step, OneHotEncoder | OrdinalEncoder) and len(step.categories) == width:
        return [labels[0] if len(labels) else "a" for labels in step.categories]
    return ["a"] * width


def _try(step, table, y=None):
    """Fit a copy of a step to a synthetic table, so that the step raises its errors."""
    step = clone(step)
    if "random_state" in step.get_params(deep=False):
        # None draws from NumPy's global generator, whose state is the user's.
        step.set_params(random_state=0)
    if hasattr(step, "set_output"):
        step.set_output(transform="default")
    with catch_warnings(action="ignore"), np.errstate(all="ignore"):
        step.fit(table, y).transform(table)
