"""Check that a `ColumnTransformer` can select columns from the table of a fit."""

import os

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._data._lengths import shape_of
from skdp._data._tables import check_not_empty
from skdp.pipeline._instances import check_parts, is_estimator

PASSED_ON = (None, "passthrough")


def check_selectable(pipe, X):
    """Raise `ValueError` for a table whose columns scikit-learn cannot select, with a remedy.

    scikit-learn selects columns only from two-dimensional tables in memory. Its errors do not
    explain this.

    Parameters
    ----------
    pipe : estimator
        The estimator that is fitted to the table.
    X : table

    Raises
    ------
    ValueError
        If a `ColumnTransformer` in `pipe` receives a polars LazyFrame, a dask DataFrame, an Arrow
        dataset or record batch, a path, or an object without columns.
    """
    if not _selects_columns(pipe):
        return
    in_memory = _how_to_read(type(X))
    if in_memory is None:
        shape = shape_of(X)
        if len(shape) != 2:
            raise ValueError(
                f"Expected 2D array, got a {type(X).__name__} instead: a ColumnTransformer "
                "selects columns from a data frame, a two-dimensional array or a list of rows of "
                "equal length"
            )
        check_not_empty(shape, X)
    else:
        name = f"{type(X).__module__.partition('.')[0]} {type(X).__name__}"
        raise ValueError(
            f"X is a {name}, and a ColumnTransformer selects columns only from tables in memory: "
            f"pass {in_memory}, or replace the ColumnTransformer with a DPTableVectorizer, with "
            "`bounds` and `categories` by column, which reads such tables in parts"
        )


def _how_to_read(kind):
    """Return the expression that reads a table into memory, None if it is in memory."""
    if hasattr(kind, "collect_schema") and hasattr(kind, "collect"):
        return "X.collect()"
    if hasattr(kind, "map_partitions") and hasattr(kind, "compute"):
        return "X.compute()"
    if hasattr(kind, "to_table") and hasattr(kind, "scanner"):
        return "X.to_table().to_pandas()"
    if hasattr(kind, "to_struct_array") and not hasattr(kind, "combine_chunks"):
        return "X.to_pandas(), since X is one batch of a table"
    if issubclass(kind, os.PathLike):
        return "pandas.read_parquet(X)"
    return None


def _selects_columns(step):
    """Return True if a step is, or begins with, a `ColumnTransformer`."""
    if not is_estimator(step):
        return False
    check_parts(step)
    if isinstance(step, ColumnTransformer):
        return True
    if isinstance(step, FeatureUnion):
        return any(_selects_columns(part[1]) for part in step.transformer_list)
    if isinstance(step, Pipeline):
        # Only the first step receives the table itself.
        first = next((part for _, part in step.steps if part not in PASSED_ON), None)
        return _selects_columns(first)
    # A search, or another wrapper, passes its table on.
    return _selects_columns(step.get_params(deep=False).get("estimator"))
