"""Kinds of steps, by the information that they learn, and the sparsity of their output."""

from typing import Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdp._tools._advice import DECLARE, FRAMES, FROZEN, LOCAL
from skdp._tools._entries import ACCEPTED, REASONS
from skdp.pipeline._instances import infers_types, is_estimator, of_skdp
from skdp.pipeline._known import accepted_entry, kind_by_table

# Allowed values of an attribute `__skdp_kind__`. Containers are inspected instead, and
# "not_row_wise" depends on the steps before.
KINDS = tuple(kind for kind in REASONS if kind not in ("not_row_wise", "container"))


def is_private(estimator):
    """Return True if an estimator has the parameters of a private one: epsilon and accountant."""
    names = {}
    if is_estimator(estimator):
        names = estimator.get_params(deep=False)
    return {"epsilon", "accountant"} <= set(names)


def plans_its_fit(estimator):
    """Return True if a private estimator plans the releases of its fit.

    This holds for skdp's classes. A user-defined class that overrides `fit` must also override
    ``plan_fit``. A search is planned by its epsilon and delta.
    """
    if is_estimator(estimator.get_params(deep=False).get("estimator")):
        return False
    for cls in type(estimator).__mro__:
        if "plan_fit" in vars(cls):
            return True
        if "fit" in vars(cls) and not cls.__module__.startswith("skdp."):
            return False
    return False


def step_kind(estimator: BaseEstimator | Literal["passthrough", "drop"] | None) -> str:
    """Return the kind of a step: the information that it learns, and whether it is charged.

    Classes of scikit-learn and other libraries are recognized by their names and parameters. A
    user-defined class declares its kind with an attribute ``__skdp_kind__``, which is one of the
    kinds below except "container". Subclasses do not inherit it.

    - "private" is an estimator of skdp with parameters `epsilon` and `accountant`; "local" also
      releases in `transform`, which its tag ``non_deterministic`` declares,
    - "frozen" is a `sklearn.frozen.FrozenEstimator` around a "private", "stateless" or "declared"
      estimator that contains no further estimator,
    - "opaque" is any other frozen estimator, such as a pipeline, whose output for a row may depend
      on other rows; it is "local" if it contains a "local" estimator,
    - "stateless" is a step of scikit-learn that is row-wise and stores nothing, such as
      `sklearn.preprocessing.Normalizer`, or "passthrough",
    - "declared" is a step of scikit-learn that, with its parameters, learns only the number of
      columns, such as ``OneHotEncoder(categories=[["a", "b"]])``,
    - "container" is a `Pipeline`, `ColumnTransformer` or `FeatureUnion`, whose steps are judged
      instead,
    - "learns" learns from the data without privacy, such as `sklearn.preprocessing.StandardScaler`,
      or returns a data frame (by `set_output`) whose dtypes pandas infers from all cells,
    - "resamples" fits repeated rows, or rows that depend on other rows, such as a
      `BaggingClassifier`,
    - "calibrates" fits its last stage to raw rows, such as a `CalibratedClassifierCV`,
    - "cross_validates" selects by raw scores, such as a `GridSearchCV` without a private scorer,
    - "wrapper" learns nothing beyond what its inner estimators learn, such as a `SelectFromModel`,
    - "unknown" is everything else.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If ``__skdp_kind__`` is not an allowed kind, or is "private" for a class without `epsilon`.

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
    return judge_step(estimator)[0]


def judge_step(estimator):
    """Return the kind of a step as in `step_kind`, and advice on a replacement.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None

    Returns
    -------
    kind : str
    advice : str
        For kinds that are not accepted.
    """
    if estimator is None or (isinstance(estimator, str) and estimator in ("passthrough", "drop")):
        return "stateless", ""
    declared = vars(type(estimator)).get("__skdp_kind__")
    if declared is not None and declared not in KINDS:
        raise ValueError(f"__skdp_kind__ must be one of {KINDS}, got {declared!r}")
    if declared in ("private", "local") and not is_private(estimator):
        raise ValueError(f"{estimator!r} declares the kind {declared} but has no parameter epsilon")
    if declared is not None:
        return declared, DECLARE
    if type(estimator) is FrozenEstimator:
        kind = _frozen_kind(estimator.estimator)
        if kind == "local":
            return kind, LOCAL
        return kind, FROZEN
    if of_skdp(estimator) and is_private(estimator):
        if get_tags(estimator).non_deterministic:
            return "local", LOCAL
        kind = "private"
        advice = ""
    else:
        kind, advice = kind_by_table(estimator)
    if kind in ACCEPTED and infers_types(estimator):
        return "learns", FRAMES
    return kind, advice


def _frozen_kind(estimator):
    """Return the kind of a frozen estimator, as in `step_kind`, or "unknown".

    It computes nothing in `fit`, so its kind depends on what its output may reveal. A private part
    that is neither "private" nor "local" may also release something whenever it transforms rows.
    The result is then "unknown" and not "opaque", because a user may declare an opaque step public.
    """
    parts = held(estimator)
    private_kinds = {step_kind(part) for part in parts if is_private(part)}
    if "local" in private_kinds:
        return "local"
    if private_kinds - {"private"}:
        return "unknown"
    accepted = step_kind(estimator) in ("private", "stateless", "declared")
    # The first part is the estimator itself. A container combines its parts in ways that are not
    # inspected here, so its output for a row may depend on other rows.
    if accepted and len(parts) == 1:
        return "frozen"
    return "opaque"


def held(value):
    """Return the estimators in a value: itself, its parameters, its results and nested ones."""
    stack = [value]
    seen = {}
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if is_estimator(part):
            part = vars(part)
        if isinstance(part, np.ndarray) and part.dtype == object:
            part = part.ravel().tolist()
        if isinstance(part, dict):
            part = [*part.values()]
        if isinstance(part, list | tuple):
            stack += part
    return list(filter(is_estimator, seen.values()))


def sparsity(estimator):
    """Return a keyword for the possible sparsity of a step's output.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step without nested estimators.

    Returns
    -------
    {"made", "kept", "dense", "refused"}
        "made": the output may be sparse for dense input, or this is unknown. "kept": only for
        sparse matrices. "refused": a fit raises an error on sparse matrices.
    """
    if not is_estimator(estimator):
        if estimator is None or estimator == "passthrough":
            return "kept"
        return "dense"
    kind = step_kind(estimator)
    if kind == "frozen":
        # `transform` may accept input that `fit` would refuse.
        inner_sparsity = sparsity(estimator.estimator)
        if inner_sparsity == "refused":
            return "dense"
        return inner_sparsity
    if of_skdp(estimator):
        if getattr(estimator, "_makes_sparse", False):
            return "made"
        if not get_tags(estimator).input_tags.sparse:
            return "refused"
        return "dense"
    params = estimator.get_params(deep=False)
    sparse_output = params.get("sparse_output", params.get("sparse", False))
    if sparse_output is not False and sparse_output != "auto":
        return "made"
    entry = accepted_entry(estimator)
    if entry is None:
        # The output of a step in `public_steps` may be sparse for one table and dense for its
        # neighbor.
        return "made"
    # A function that is known receives the frame itself.
    as_it_is = isinstance(estimator, FunctionTransformer) and params["validate"] is False
    if entry.sparse == "kept" and not as_it_is:
        return "made"
    return entry.sparse
