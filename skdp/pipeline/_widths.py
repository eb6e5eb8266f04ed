"""How many columns a step makes, and whether they may be sparse: from its parameters alone."""

from contextlib import suppress
from warnings import catch_warnings

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import OneToOneFeatureMixin
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdp.accounting import Guarantee
from skdp.base import TableShape
from skdp.pipeline._functions import is_known
from skdp.pipeline._instances import is_estimator, of_skdp, of_sklearn_function, parts_of
from skdp.pipeline._kinds import plans_its_fit, step_kind
from skdp.pipeline._verified import sklearn_name, verified


def output_width(estimator, n_features):
    """Return how many columns a transformer makes, None where that is learnt or not known.

    Nothing is fitted or transformed: the answer follows from the exact class and its parameters.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step, with nothing nested in it.
    n_features : int or None
        How many columns it is given.

    Returns
    -------
    int or None
    """
    if isinstance(estimator, str) and estimator == "drop":
        return 0
    if n_features is None or estimator is None or isinstance(estimator, str):
        return n_features
    if step_kind(estimator) not in ("private", "stateless", "declared"):
        return None
    found = verified(estimator)
    if found is not None:
        return found.width(estimator.get_params(deep=False), n_features)
    if not of_skdp(estimator):
        return None
    if isinstance(estimator, OneToOneFeatureMixin):
        return n_features
    return _planned_width(estimator, n_features)


def _planned_width(estimator, n_columns):
    """Return the width that an estimator plans whatever else of the table is not known."""
    if not plans_its_fit(estimator):
        return None
    params = estimator.get_params(deep=False)
    shapes = [
        TableShape(n_rows=n_rows, n_columns=n_columns, classes=np.arange(n_classes))
        for n_rows, n_classes in ((1, 2), (10**6, 3))
    ]
    try:
        guarantee = Guarantee(epsilon=params["epsilon"], delta=params.get("delta", 0.0))
        widths = {estimator.plan_fit(shape, guarantee).n_features_out for shape in shapes}
    except ValueError:
        return None
    return widths.pop() if len(widths) == 1 else None


def may_be_sparse(estimator, table=None):
    """Say how what a step makes of a table may be sparse.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step, in which others may be nested.
    table : {"frame", "matrix"} or None, default=None
        How the table may be sparse: a data frame with columns of a Sparse type, or a matrix.

    Returns
    -------
    {"frame", "matrix"} or None
        "matrix" also where it is not known.
    """
    if not is_estimator(estimator):
        return None if estimator == "drop" else table
    kind = type(estimator)
    if step_kind(estimator) == "frozen":
        return may_be_sparse(estimator.estimator, table)
    if kind is Pipeline:
        for _, step in estimator.steps:
            table = may_be_sparse(step, table)
        return table
    if kind in (FeatureUnion, ColumnTransformer):
        made = {may_be_sparse(part, table) for part in parts_of(estimator)}
        if getattr(estimator, "sparse_threshold", 1.0) > 0 and "matrix" in made:
            return "matrix"
        return "frame" if "frame" in made else None
    params = estimator.get_params(deep=False)
    asked = params.get("sparse_output", params.get("sparse", params.get("encode") == "onehot"))
    asked = asked is not False and asked != "auto"
    if of_skdp(estimator):
        return "matrix" if asked or estimator._always_sparse else None
    found = verified(estimator)
    if kind is FunctionTransformer and found is not None and params["validate"] is False:
        # A known function is given the frame itself; scikit-learn's make an array.
        if not of_sklearn_function(params["func"]):
            return table
    if found is not None:
        made = asked or found.sparse == "made"
        return "matrix" if made or (table and found.sparse == "kept") else None
    unknown = step_kind(estimator) in ("private", "opaque", "stateless", "declared")
    return "matrix" if table or unknown else None


def stacks_entries(union):
    """Say whether a FeatureUnion may stack a sparse table as it came beside something else.

    What is beside it may have another format: then scipy adds up the entries for one cell.
    """
    if type(union) is not FeatureUnion or refuses_sparse(union):
        return False
    parts = [part for part in parts_of(union) if part != "drop"]
    kept = [may_be_sparse(part, "matrix") and not may_be_sparse(part) for part in parts]
    return len(parts) > 1 and any(kept)


def adds_entries(estimator):
    """Say whether it adds up a sparse table's entries for one cell, as scipy does, on its copy.

    If one row is not sorted, scipy sorts all, and changes the order of equal places.
    """
    name = sklearn_name(estimator)
    function = name == "FunctionTransformer"
    known = is_known(estimator.func, estimator.kw_args) if function else name == "Normalizer"
    with suppress(Exception), catch_warnings(action="ignore"):
        once, twice = csr_array([[2.0]]), csr_array(([1.0, 1.0], [0, 0], [0, 2]))
        return known and estimator.transform(twice).nnz == estimator.transform(once).nnz
    return False


def refuses_sparse(estimator, n_features=None):
    """Say whether a step's fit is known to raise on a sparse matrix.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step, in which others may be nested.
    n_features : int, default=None
        How many columns it is given.

    Returns
    -------
    bool
    """
    kind = type(estimator)
    if kind is Pipeline:
        return any(refuses_sparse(step) for _, step in estimator.steps[:1])
    if kind is FeatureUnion:
        return any(map(refuses_sparse, parts_of(estimator)))
    if kind is ColumnTransformer:
        for _, part, columns in estimator.transformers:
            # Of a table of unknown width only the first column is sure to be there.
            width = n_features or (1 if isinstance(columns, slice) else None)
            if are_names(columns) or (chosen_places(columns, width) and refuses_sparse(part)):
                return True
        return False
    if not is_estimator(estimator):
        return False
    if of_skdp(estimator):
        return not get_tags(estimator).input_tags.sparse
    found = verified(estimator)
    return found is not None and found.sparse == "refused"


def density_decides(transformer, n_features=None):
    """Say whether a ColumnTransformer may compare its density with its threshold.

    It keeps the answer as `sparse_output_`: an exact count of what is stored, above or below a
    limit.

    Parameters
    ----------
    transformer : ColumnTransformer
    n_features : int, default=None
        How many columns it is given.

    Returns
    -------
    bool
    """
    # Of a frame, each part is given columns of other types, so that none refuses for another.
    return "matrix" in (may_be_sparse(transformer), may_be_sparse(transformer, "frame")) or (
        may_be_sparse(transformer, "matrix") and not refuses_sparse(transformer, n_features)
    )


def are_names(columns):
    """Say whether columns are chosen by name, which only a data frame has."""
    if isinstance(columns, slice):
        return any(isinstance(end, str) for end in (columns.start, columns.stop))
    values = [] if callable(columns) else np.atleast_1d(np.asarray(columns, object))
    return any(isinstance(value, str) for value in values)


def chosen_places(columns, width):
    """Return the columns that are meant, each a name or a position, None if that is not known.

    A column that is chosen twice is there twice.
    """
    if callable(columns):
        return None
    if isinstance(columns, slice):
        known = width is not None and not are_names(columns)
        return list(range(*columns.indices(width))) if known else None
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    if values and all(isinstance(value, bool | np.bool_) for value in values):
        if width is not None and len(values) != width:
            raise ValueError(f"{len(values)} columns are chosen from, but there are {width}")
        return [place for place, chosen in enumerate(values) if chosen]
    if width is None:
        return values
    beyond = [v for v in values if not isinstance(v, str) and not -width <= v < width]
    if beyond:
        raise ValueError(f"column {beyond[0]} is chosen, but there are {width} columns")
    return [value if isinstance(value, str) else value % width for value in values]
