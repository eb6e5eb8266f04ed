"""Made-up tables, to which steps that learn nothing are fitted before the first charge.

A step of scikit-learn checks some of its parameters when it is fitted, or when it transforms: that
knots are in order, or that a threshold suits a sparse table. Behind a private step that is after
the charge. So a copy of the step is given a few made-up rows of the form that its table will have.
No row of a user's table is read.
"""

from itertools import product
from warnings import catch_warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder

from skdp.mechanisms._unknown_shape import SHAPES, sizes_in
from skdp.pipeline._functions import is_elementwise
from skdp.pipeline._known import accepted_entry

# What a step's own check of its parameters raises; values of a wrong type fail in many ways.
REFUSALS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, ImportError)
N_ROWS = 2
# Tables, and matrices that a step draws, with more cells than that are not made.
MOST_CELLS = 10**6
# Widths that are tried where the table's is not known.
MOST_WIDTHS = 8


def check_on_templates(step, form):
    """Raise what a step of scikit-learn raises for every table of a form.

    Parameters
    ----------
    step : estimator
        It learns nothing; it is not changed.
    form : TableForm
        That of its table. Where something is not known, several tables are tried, and one on which
        the step works is enough.

    Raises
    ------
    ValueError, TypeError, ArithmeticError, LookupError, AttributeError, ImportError
        What the step raises for the first of the tables.
    """
    entry = accepted_entry(step)
    if entry is None or not _can_be_tried(step, form):
        return
    refusal = None
    for width, is_sparse, words in product(_widths(step, form), _sparsities(form), _cells(form)):
        if N_ROWS * max(width, entry.width(step, width) or 0) > MOST_CELLS:
            return
        table = (
            _words_for(step, width) if words else np.tile(_numbers_for(step, width), (N_ROWS, 1))
        )
        try:
            _try(step, csr_array(table) if is_sparse and not words else table)
            return
        except REFUSALS as error:
            # The first width is one that the parameters mention: what it says fits best.
            refusal = refusal or error
    raise refusal


def _can_be_tried(step, form):
    """Return False for functions of one's own, and for steps that read no table."""
    if type(step) is FunctionTransformer:
        # Functions of one's own may need the rows, or the container, that they are written for.
        return is_elementwise(step.func, step.kw_args)
    return hasattr(step, "n_features") is False or form.holds_numbers


def _widths(step, form):
    if form.n_columns is not None:
        return [form.n_columns]
    lengths, _ = sizes_in(step.get_params(deep=False))
    knots = step.get_params(deep=False).get("knots")
    if np.ndim(knots) == 2:
        lengths = [np.shape(knots)[1], *lengths]
    return [*dict.fromkeys([*lengths, *(width for _, width in SHAPES)])][:MOST_WIDTHS]


def _sparsities(form):
    return [False, True] if form.is_sparse is None else [form.is_sparse]


def _cells(form):
    return [False] if form.holds_numbers else [False, True]


def _numbers_for(step, width):
    """Return a row of numbers that a step with right parameters transforms."""
    knots = step.get_params(deep=False).get("knots")
    if np.ndim(knots) == 2 and np.shape(knots)[1] == width:
        # With extrapolation="error" a value beyond the knots is refused.
        return np.mean(knots, axis=0)
    return np.full(width, 0.5)


def _words_for(step, width):
    table = np.full((N_ROWS, width), "a", dtype=object)
    if isinstance(step, OneHotEncoder | OrdinalEncoder) and len(step.categories) == width:
        # An unknown category may be refused.
        for j, labels in enumerate(step.categories):
            table[:, j] = [*labels][0] if len(labels) else "a"
    return table


def _try(step, table):
    step = clone(step)
    if "random_state" in step.get_params(deep=False):
        # None draws from NumPy's global generator, whose state is the user's.
        step.set_params(random_state=0)
    if hasattr(step, "set_output"):
        step.set_output(transform="default")
    with catch_warnings(action="ignore"), np.errstate(all="ignore"):
        step.fit(table).transform(table)
