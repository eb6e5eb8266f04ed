"""What fitted estimators answer of a table in parts: computed where the parts are."""

from copy import copy
from dataclasses import replace
from functools import partial, wraps
from operator import getitem

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data._parts import Rows, map_over
from skdp.utils._chunked import as_chunked, form_of
from skdp.utils._output import asks_for_frame


def by_parts(method):
    """Make a method that answers of each row by itself do so where the parts of a table are.

    `transform` gives of a table in parts another one, which is made when it is read, unless a frame
    is to be made. Of the others the answers of all rows come back in one array.

    Parameters
    ----------
    method : callable
        Of a fitted estimator and a table of numbers.
    """
    name = method.__name__

    @wraps(method)
    def answer(self, X):
        chunked = as_chunked(X)
        if chunked is None:
            return method(self, X)
        is_lazy = name == "transform" and not asks_for_frame(self)
        is_done = False
        try:
            if name == "transform" and not is_lazy:
                made = method(self, chunked)
            else:
                made = _answer_by_parts(self, name, chunked, is_lazy=is_lazy)
            is_done = True
            return made
        finally:
            # Temporary files of a table that was opened here: a lazy answer reads them later. An
            # error that is kept would keep them, by its frames.
            if chunked is not X and not (is_lazy and is_done):
                chunked.close()

    return answer


def _example_row(estimator, chunked):
    """Return a row that the estimator takes: of labels a category, of numbers zeros."""
    row = np.zeros((1, chunked.shape[1]), chunked.dtype)
    if chunked.dtype.kind == "O":
        for j, label in getattr(estimator, "_example_labels", dict)().items():
            row[0, j] = label
    return row


def _answer_by_parts(estimator, name, chunked, *, is_lazy):
    """Return the answer of a method, as a table in parts if it is lazy."""
    check_is_fitted(estimator)
    validate_data(estimator, form_of(chunked), reset=False, skip_check_array=True)
    # Whoever reads the rows needs what was released, and must not get what it was charged to.
    bare = copy(estimator)
    bare.accountant = bare.random_state = bare._skl_callbacks = None
    if (statement := getattr(estimator, "privacy_", None)) is not None:
        bare.privacy_ = replace(statement, dataset="", record="", charges=(), calls=())
    names = vars(bare).pop("feature_names_in_", None)
    if names is not None:
        # Blocks have no names, but parameters may call columns by them.
        bare._labels_in = names.tolist()
    answers = partial(_answers, bare=bare, name=name, dtype=chunked.dtype)
    # The shape and type of the answers, without a look at the rows.
    known = answers(_example_row(estimator, chunked))
    shape = known.shape[1:]
    dtype = known.dtype
    if is_lazy:
        return chunked.mapped(partial(answers, of_none=known[:0]), *shape, dtype)
    return map_over(Rows(chunked, read=getitem), answers, shape=shape, dtype=dtype)


def _answers(block, bare, name, dtype, of_none=None):
    made = getattr(bare, name)(np.asarray(block, dtype)) if len(block) else of_none
    return np.asarray(made.toarray() if issparse(made) else made)
