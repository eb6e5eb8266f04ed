"""What a step of a pipeline learns from the table, and at whose cost."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import (
    FunctionTransformer,
    maxabs_scale,
    minmax_scale,
    power_transform,
    quantile_transform,
    robust_scale,
    scale,
)
from sklearn.utils import get_tags

__all__ = ["KINDS", "REASONS", "is_estimator", "is_private", "step_kind"]

REASONS = {
    "private": "its fit is charged",
    "local": "each row's transform is charged, in predictions too",
    "stateless": "learns nothing",
    "frozen": "was fitted before and is not fitted again",
    "declared": "learns nothing beyond what its parameters declare",
    "learns": "learns from the data without privacy",
    "wrapper": "fits the estimators inside it in ways that cannot be checked",
    "cross_validates": "chooses by scores on private rows, which are raw",
}
KINDS = tuple(REASONS)
FITTING_FUNCTIONS = (
    maxabs_scale,
    minmax_scale,
    power_transform,
    quantile_transform,
    robust_scale,
    scale,
)


def is_estimator(value):
    """Say whether a value is an estimator and not a class or a word."""
    return hasattr(value, "fit") and hasattr(value, "get_params") and not isinstance(value, type)


def is_private(estimator):
    """Say whether an estimator has what every private one has: a price and an accountant."""
    names = estimator.get_params(deep=False) if is_estimator(estimator) else {}
    return {"epsilon", "accountant"} <= set(names)


def step_kind(estimator):
    """Say what an estimator learns from the table, and at whose cost.

    An estimator says so itself by an attribute ``__skdp_kind__``, one of `KINDS`; otherwise

    - "private" has parameters `epsilon` and `accountant`; "local" moreover releases in
      `transform`, as its tag ``non_deterministic`` says,
    - "frozen" is a `sklearn.frozen.FrozenEstimator`,
    - "stateless" transforms without being fitted, as its tag ``requires_fit`` says, predicts
      nothing, and calls no function that fits an estimator; or is "passthrough",
    - "declared" is one of scikit-learn's whose parameters leave it nothing to learn but the
      table's width, as ``OneHotEncoder(categories=[["a", "b"]])``,
    - "cross_validates" has a parameter `cv`, "wrapper" has estimators as parameters,
    - "learns" is everything else, so also every unknown estimator.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step.

    Returns
    -------
    str

    Examples
    --------
    >>> from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler
    >>> from skdp import DPStandardScaler
    >>> from skdp.pipeline import step_kind
    >>> step_kind(DPStandardScaler()), step_kind(StandardScaler()), step_kind(Normalizer())
    ('private', 'learns', 'stateless')
    >>> step_kind(OneHotEncoder()), step_kind(OneHotEncoder(categories=[["no", "yes"]]))
    ('learns', 'declared')
    """
    if estimator is None or isinstance(estimator, str):
        return "stateless"
    declared = getattr(estimator, "__skdp_kind__", None)
    if declared is not None:
        if declared not in KINDS:
            raise ValueError(f"__skdp_kind__ must be one of {KINDS}, got {declared!r}")
        if declared in ("private", "local") and not is_private(estimator):
            raise ValueError(f"{estimator!r} says it is {declared} but has no epsilon to set")
        return declared
    if isinstance(estimator, FrozenEstimator):
        return "frozen"
    if is_private(estimator):
        return "local" if _tag(estimator, "non_deterministic", False) else "private"
    if is_estimator(estimator):
        params = estimator.get_params(deep=False)
        if "cv" in params:
            return "cross_validates"
        if any(map(_holds_estimator, params.values())):
            return "wrapper"
        if _learns_nothing(estimator, params):
            return "declared"
    return "stateless" if _is_stateless(estimator) else "learns"


def _is_stateless(estimator):
    # What predicts before it is fitted, as a Gaussian process does, learns when it is.
    if hasattr(estimator, "predict") or _tag(estimator, "requires_fit", True):
        return False
    if not isinstance(estimator, FunctionTransformer):
        return True
    return not (_fits(estimator.func) or _fits(estimator.inverse_func))


def _fits(function):
    """Say whether a function is known to compute something from all rows that it is given."""
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", "")
    of_estimator = is_estimator(getattr(function, "__self__", None))
    return function in FITTING_FUNCTIONS or (of_estimator and name.startswith("fit"))


def _tag(estimator, name, default):
    try:
        return getattr(get_tags(estimator), name)
    except (AttributeError, TypeError):
        return default


def _holds_estimator(value):
    values = value if isinstance(value, list | tuple) else [value]
    parts = [p for v in values for p in (v if isinstance(v, tuple) else [v])]
    return any(map(is_estimator, parts))


def _categories_declared(params):
    rare = params.get("min_frequency"), params.get("max_categories")
    return not isinstance(params["categories"], str) and rare == (None, None)


def _knots_declared(params):
    return not isinstance(params["knots"], str)


def _whole_number(name):
    return lambda params: isinstance(params[name], Integral)


def _number(name):
    return lambda params: not isinstance(params[name], str)


def _constant(params):
    kept = params["keep_empty_features"] and not params["add_indicator"]
    return params["strategy"] == "constant" and params["fill_value"] is not None and kept


# The condition under which an estimator of scikit-learn learns no more than the table's shape.
NOTHING_TO_LEARN = {
    "GaussianRandomProjection": _whole_number("n_components"),
    "MissingIndicator": lambda params: params["features"] == "all",
    "OneHotEncoder": _categories_declared,
    "OrdinalEncoder": _categories_declared,
    "PolynomialCountSketch": lambda params: True,
    "PolynomialFeatures": lambda params: True,
    "RBFSampler": _number("gamma"),
    "SimpleImputer": _constant,
    "SkewedChi2Sampler": lambda params: True,
    "SparseRandomProjection": _whole_number("n_components"),
    "SplineTransformer": _knots_declared,
}


def _learns_nothing(estimator, params):
    kind = type(estimator)
    if not (isinstance(estimator, BaseEstimator) and kind.__module__.startswith("sklearn.")):
        return False
    condition = NOTHING_TO_LEARN.get(kind.__name__)
    return condition is not None and bool(np.all(condition(params)))
