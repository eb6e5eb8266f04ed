"""How many columns a step makes, and whether they may be sparse: from its parameters alone."""

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdp.accounting import Guarantee
from skdp.base import TableShape
from skdp.pipeline._instances import is_estimator, of_skdp
from skdp.pipeline._kinds import plans_its_fit, step_kind
from skdp.pipeline._verified import verified


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
    # Of no columns nothing is fitted, and nothing made.
    if not n_features or estimator is None or isinstance(estimator, str):
        return n_features
    if step_kind(estimator) not in ("private", "stateless", "declared"):
        return None
    found = verified(estimator)
    params = estimator.get_params(deep=False)
    if found is not None:
        return found.width(params, n_features)
    if not (of_skdp(estimator) and plans_its_fit(estimator)):
        return None
    if isinstance(estimator, OneToOneFeatureMixin):
        return n_features
    # What it plans whatever else of the table is not known.
    sizes = ((1, 2), (10**6, 3))
    shapes = [TableShape(n_rows=n, n_columns=n_features, classes=np.arange(k)) for n, k in sizes]
    try:
        guarantee = Guarantee(epsilon=params["epsilon"], delta=params.get("delta", 0.0))
        widths = {estimator.plan_fit(shape, guarantee).n_features_out for shape in shapes}
    except ValueError:
        return None
    return widths.pop() if len(widths) == 1 else None


def sparsity(estimator):
    """Say how what a step makes may be sparse, and so its density be compared with a threshold.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step, with nothing nested in it.

    Returns
    -------
    {"made", "kept", "dense", "refused"}
        "made" also of arrays, or of a data frame with columns of a Sparse type, or if that is not
        known; "kept" of sparse matrices alone; "refused" if a fit is known to raise on these.
    """
    if not is_estimator(estimator):
        return "kept" if estimator is None or estimator == "passthrough" else "dense"
    kind = step_kind(estimator)
    if kind == "frozen":
        # What its fit would refuse, its transform may not.
        made = sparsity(estimator.estimator)
        return "dense" if made == "refused" else made
    params = estimator.get_params(deep=False)
    asked = params.get("sparse_output", params.get("sparse", params.get("encode") == "onehot"))
    if asked is not False and asked != "auto":
        return "made"
    if of_skdp(estimator):
        refuses = not get_tags(estimator).input_tags.sparse
        return "made" if estimator._always_sparse else "refused" if refuses else "dense"
    found = verified(estimator)
    if found is None:
        # What is excused may be sparse for one table and dense for its neighbour.
        return "made"
    # A known function is given the frame itself.
    as_it_is = type(estimator) is FunctionTransformer and params["validate"] is False
    return "made" if found.sparse == "kept" and not as_it_is else found.sparse


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
