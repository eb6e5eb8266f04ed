"""The classes of scikit-learn whose fits were read line by line, and under which parameters."""

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.frozen import FrozenEstimator

from skdp.pipeline._functions import (
    has_bounded_domain,
    is_elementwise,
    is_plain,
    rounds_elements_alone,
    treats_rows_alone,
)
from skdp.utils._values import FrozenValue


def sklearn_name(estimator):
    """Return the name of the class of scikit-learn's that an estimator is of, "" for others."""
    kind = type(estimator)
    # A class may only say that it is of a module.
    own = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind
    return kind.__name__ if own and kind.__module__.partition(".")[0] == "sklearn" else ""


class Verified(FrozenValue):
    """What was found of a class of scikit-learn.

    Parameters
    ----------
    kind : {"stateless", "declared"}
        What it is, under the condition.
    width : callable
        The number of columns that it makes of `d` columns, of (params, d); None if not known.
    condition : callable
        Of its parameters: whether a fit keeps nothing but these, the table's width and names.
    sparse : {"refused", "kept", "dense", "made"}
        What it makes of a sparse table; "made" makes one of a dense table too.
    is_row_wise : callable
        Of its parameters: whether each cell that it makes depends on its own row alone to the last
        bit, because it is made of the operations that `skdp.utils._row_wise` lists. A product of
        matrices is none of them: how it rounds a row depends on how many rows there are.
    """

    kind: str
    width: Callable = lambda params, d: d
    condition: Callable = lambda params: True
    sparse: str = "refused"
    is_row_wise: Callable = lambda params: True


def _exact_sums(params):
    # Where features collide, their order depends on whether other rows' are sorted.
    return params["input_type"] == "string" or np.dtype(params["dtype"]).kind in "iu"


def _hashed(params, d):
    return params["n_features"]


def _components(params, d):
    return int(params["n_components"])


def _whole_components(params):
    return isinstance(params["n_components"], Integral)


def _words(params):
    """Say whether every column's categories are words, which no column of numbers can hold.

    scikit-learn keeps declared categories in the dtype of the column, which one missing value
    turns: integers to floats, truth values to objects. Words that cannot be numbers, dates or
    truth values are kept as objects, or the fit fails.
    """
    rare = params.get("min_frequency"), params.get("max_categories")
    lists = params["categories"]
    if rare != (None, None) or not isinstance(lists, list | tuple | np.ndarray):
        return False
    return all(_only_words(labels) for labels in lists)


def _only_words(labels):
    known = all(isinstance(v, str) or v is None or v is np.nan for v in labels)
    if isinstance(labels, str) or not known:
        return False
    return not any(_converts(labels, dtype) for dtype in ("f8", "c16", "i8", "?", "M8", "m8"))


def _converts(labels, dtype):
    try:
        values = np.array(list(labels), dtype=dtype)
    except (TypeError, ValueError):
        return False
    return len(np.unique(values)) == len(values)


def _indicators(params, d):
    sizes, drop = [len(labels) for labels in params["categories"]], params["drop"]
    if len(sizes) != d:
        return None
    if drop is None or isinstance(drop, str):
        return sum(size - (drop == "first" or (bool(drop) and size == 2)) for size in sizes)
    return sum(sizes) - d if all(v is not None for v in drop) else None


def _monomials(params, d):
    degree = params["degree"]
    low, high = degree if isinstance(degree, tuple | list) else (0, degree)
    count = math.comb if params["interaction_only"] else lambda d, k: math.comb(d + k - 1, k)
    sizes = range(max(low, 1), high + 1)
    return sum(count(d, k) for k in sizes) + bool(params["include_bias"])


def _splines(params, d):
    n_knots, width = np.shape(params["knots"])
    degree = 0 if params["extrapolation"] == "periodic" else params["degree"]
    return d * (n_knots - 1 + degree - (not params["include_bias"])) if width == d else None


def _constant_word(params):
    # A number is kept in the table's dtype, which one missing value turns; a word as an object.
    kept = params["keep_empty_features"] and not params["add_indicator"]
    return params["strategy"] == "constant" and isinstance(params["fill_value"], str) and kept


def _plain_function(params):
    # A dict of another class may show other arguments to whoever looks first.
    given = {type(params["kw_args"]), type(params["inv_kw_args"])}
    return (
        given <= {dict, type(None)}
        and treats_rows_alone(params["func"], params["kw_args"])
        and treats_rows_alone(params["inverse_func"], params["inv_kw_args"])
    )


def _kept_by_function(params, d):
    # Numbers, one a column, beside the only column make more of it.
    kept = d != 1 or type(params["func"]) is not partial
    return d if kept and is_elementwise(params["func"], params["kw_args"]) else None


def _plain_words(params):
    callables = ("preprocessor", "tokenizer")
    own = isinstance(params["analyzer"], str) and all(params[name] is None for name in callables)
    # Two rows may hold one file, which can be read once.
    return own and params["input"] == "content"


def _never(params):
    return False


def _is_scaled_by_largest(params):
    # The other norms are sums, which NumPy adds by the layout and `einsum` by the number of rows.
    return params["norm"] == "max"


def _is_row_wise_function(params):
    return rounds_elements_alone(params["func"])


# By the names of classes.
VERIFIED = {
    "Binarizer": Verified("stateless", sparse="kept"),
    "FeatureHasher": Verified("stateless", _hashed, _exact_sums, "made"),
    "FunctionTransformer": Verified(
        "stateless", _kept_by_function, _plain_function, "kept", _is_row_wise_function
    ),
    "GaussianRandomProjection": Verified(
        "declared", _components, _whole_components, "dense", _never
    ),
    "HashingVectorizer": Verified("stateless", _hashed, _plain_words, "made"),
    "MissingIndicator": Verified(
        "declared", condition=lambda p: p["features"] == "all", sparse="kept"
    ),
    "Normalizer": Verified("stateless", sparse="kept", is_row_wise=_is_scaled_by_largest),
    "OneHotEncoder": Verified("declared", _indicators, _words),
    "OrdinalEncoder": Verified("declared", condition=_words),
    "PolynomialCountSketch": Verified("declared", _components, sparse="dense", is_row_wise=_never),
    "PolynomialFeatures": Verified("declared", _monomials, sparse="kept"),
    "RBFSampler": Verified(
        "declared", _components, lambda p: isinstance(p["gamma"], Real), "dense", _never
    ),
    "SimpleImputer": Verified("declared", condition=_constant_word),
    "SkewedChi2Sampler": Verified("declared", _components, is_row_wise=_never),
    "SparseRandomProjection": Verified("declared", _components, _whole_components, "kept", _never),
    "SplineTransformer": Verified("declared", _splines, lambda p: np.ndim(p["knots"]) == 2),
}

# Functions, which their condition judges or which are given names alone.
FUNCTIONS = "func inverse_func kw_args inv_kw_args feature_names_out feature_name_combiner".split()


def verified(estimator):
    """Return what was found of an estimator's class if its parameters meet the condition."""
    found = VERIFIED.get(sklearn_name(estimator))
    params = {} if found is None else estimator.get_params(deep=False)
    plain = all(is_plain(value) for name, value in params.items() if name not in FUNCTIONS)
    # Those that a condition cannot read scikit-learn will refuse; they were not verified.
    with suppress(TypeError, ValueError):
        return found if found is not None and plain and found.condition(params) else None
    return None


def is_row_wise(estimator):
    """Return whether a step's cells depend on their own rows alone, to the last bit.

    skdp's own estimators do. A class or a function that declares what it is by ``__skdp_kind__``
    is taken at its word.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step that is stateless, declared or frozen.

    Returns
    -------
    bool
    """
    if type(estimator) is FrozenEstimator:
        estimator = estimator.estimator
    found = VERIFIED.get(sklearn_name(estimator))
    return found is None or bool(found.is_row_wise(estimator.get_params(deep=False)))


def fails_on(estimator):
    """Return, in words, on which value an accepted step fails, with the remedy; or None."""
    name = sklearn_name(estimator)
    params = estimator.get_params(deep=False) if name in VERIFIED else {}
    if params.get("handle_unknown") == "error":
        remedy = "'use_encoded_value'" if name == "OrdinalEncoder" else "'ignore'"
        return f"an unknown category: use handle_unknown={remedy}"
    if params.get("extrapolation") == "error":
        return "a value beyond the knots: use another extrapolation"
    if name == "SkewedChi2Sampler":
        return "a value of -skewedness or less: bound the values before"
    if name == "FunctionTransformer" and has_bounded_domain(params["func"]):
        return "a value that its function turns to NaN or infinity: bound the values before"
    return None


def turned_by_nulls(estimator):
    """Say whether a function is given a table's cells in a type that one null may decide.

    Functions that are declared to treat rows alone do what their owner says.
    """
    if sklearn_name(estimator) != "FunctionTransformer" or estimator.validate:
        return False
    return estimator.func is not None and is_elementwise(estimator.func, estimator.kw_args)
