"""Predictions and transforms of partitioned tables, computed on the partitions."""

from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial, wraps
from operator import getitem

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data._chunked import as_chunked, meta_of
from skdp._data._columns import check_zones, float_types_of, rounded_columns_of
from skdp._data._frames import (
    check_labels_match,
    has_time_zone,
    is_frame,
    label_kind_of,
    map_types,
    time_type_of,
    types_of,
    with_plain_names,
)
from skdp._data._output import asks_for_frame
from skdp._data._parts import Rows, map_over
from skdp._data._tables import check_types_of_numbers


def partitionwise(method):
    """Decorate a row-wise method so that it computes its output partition by partition.

    A partitioned table is one that `as_chunked` accepts, such as a dask array or Parquet files. Its
    `transform` returns a lazy partitioned table, unless `set_output` asks for a frame. Other
    methods return an array with the output of all rows. The method itself receives all other
    tables unchanged.

    Parameters
    ----------
    method : callable
        Method of a fitted estimator, with a table as its argument: of numbers, or of objects for
        estimators that accept categorical columns.
    """
    name = method.__name__

    @wraps(method)
    def compute_output(self, X):
        """Return the method's output for X, in the form that `partitionwise` describes."""
        chunked = as_chunked(X)
        if chunked is None:
            return method(self, X)
        is_lazy = name == "transform" and not asks_for_frame(self)
        is_done = False
        try:
            if name == "transform" and not is_lazy:
                output = method(self, chunked)
            else:
                output = _partitionwise_output(self, name, chunked, is_lazy=is_lazy)
            is_done = True
            return output
        finally:
            # A table that was opened here is closed, which removes its temporary files, unless the
            # output is lazy and reads them later. It is closed after an error, too: the traceback
            # of an exception that is stored would keep the table, and so the files.
            if chunked is not X and not (is_lazy and is_done):
                chunked.close()

    return compute_output


def _example_row(estimator, chunked):
    """Return a row that the estimator accepts: zeros, and a category in each categorical column."""
    row = np.zeros((1, chunked.shape[1]), chunked.dtype)
    meta = meta_of(chunked)
    if chunked.dtype.kind == "O" and is_frame(meta):
        for j, dtype in enumerate(types_of(meta)):
            if has_time_zone(dtype):
                row[0, j] = datetime.fromtimestamp(0, UTC)
            elif (time_type := time_type_of(dtype)) is not None:
                row[0, j] = np.zeros((), time_type)[()]
    if chunked.dtype.kind == "O" and hasattr(estimator, "_example_labels"):
        for j, label in estimator._example_labels().items():
            row[0, j] = label
    return row


def _partitionwise_output(estimator, name, chunked, *, is_lazy):
    """Return the output of a method, as a partitioned table if it is lazy."""
    check_is_fitted(estimator)
    meta = meta_of(chunked)
    validate_data(estimator, with_plain_names(meta), reset=False, skip_check_array=True)
    check_labels_match(estimator, meta)
    # Blocks are arrays, so error messages about them would not name the columns.
    check_zones(estimator, chunked)
    if not {"string", "categorical"}.intersection(getattr(estimator, "_accepts", ("string",))):
        # A block of rows, which is an array, does not show the types of the columns.
        check_types_of_numbers(chunked, after_fit=True)
    # Workers need only the released values: the copy that is sent to them has no accountant, no
    # seed and no ledger record.
    bare = copy(estimator)
    bare.accountant = bare.random_state = bare._skl_callbacks = None
    if (statement := getattr(estimator, "privacy_", None)) is not None:
        bare.privacy_ = replace(statement, dataset="", ledger="", record="", charges=(), calls=())
    names = vars(bare).pop("feature_names_in_", None)
    if names is not None:
        # Blocks have no column names, but dicts in parameters may use them.
        bare._labels_in = names.tolist()
    # Blocks are arrays, which do not show the types of the columns.
    bare._float_types_of_samples = float_types_of(chunked)
    if is_frame(meta):
        bare._label_kinds_of_samples = map_types(label_kind_of, types_of(meta))
    bare._rounded_columns_of_samples = rounded_columns_of(chunked)
    compute = partial(_output_of_block, bare=bare, name=name, dtype=chunked.dtype)
    # An example row gives the shape and type of the output, without reading the table.
    example = compute(_example_row(estimator, chunked))
    shape = example.shape[1:]
    dtype = example.dtype
    if is_lazy:
        return chunked.mapped(partial(compute, empty_output=example[:0]), *shape, dtype)
    return map_over(Rows(chunked, read=getitem), compute, shape=shape, dtype=dtype)


def _output_of_block(block, bare, name, dtype, empty_output=None):
    """Return the dense output of a method; `empty_output` for a block without rows."""
    output = empty_output
    if len(block):
        output = getattr(bare, name)(np.asarray(block, dtype))
    if issparse(output):
        output = output.toarray()
    return np.asarray(output)
