"""What a step of a pipeline learns from the table, at whose cost, and how wide a table it makes."""

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdp.accounting import Guarantee
from skdp.base import TableShape
from skdp.pipeline._functions import is_plain
from skdp.pipeline._instances import infers_types, is_changed, is_estimator, named_parts, of_skdp
from skdp.pipeline._verified import verified

REASONS = {
    "private": "its fit is charged",
    "local": "each row's transform is charged, in predictions too",
    "stateless": "learns nothing",
    "frozen": "was fitted before and is not fitted again",
    "opaque": "was fitted before, and what it makes of a row may depend on other rows",
    "declared": "learns nothing beyond what its parameters declare",
    "learns": "learns from the data without privacy",
    "not_row_wise": (
        "may round a row by how many rows stand beside it, and their number is private here"
    ),
    "wrapper": "fits the estimators inside it in ways that cannot be checked",
    "cross_validates": "chooses by scores on private rows, which are raw",
}
# What a step is by its class and parameters. That it is "not_row_wise" matters behind some only.
KINDS = tuple(kind for kind in REASONS if kind != "not_row_wise")
ACCEPTED = ("private", "stateless", "frozen", "declared")


def is_private(estimator):
    """Say whether an estimator has what every private one has: a price and an accountant."""
    names = estimator.get_params(deep=False) if is_estimator(estimator) else {}
    return {"epsilon", "accountant"} <= set(names)


def plans_its_fit(estimator):
    """Say whether a private estimator says beforehand what its fit releases.

    Its ``plan_fit`` is that of the class whose `fit` runs, or of one derived from that. A search
    is planned by its epsilon and delta.
    """
    if is_estimator(estimator.get_params(deep=False).get("estimator")):
        return False
    own = (vars(kind).keys() & {"fit", "plan_fit"} for kind in type(estimator).__mro__)
    return "plan_fit" in next(filter(None, own), ())


def step_kind(estimator):
    """Say what an estimator learns from the table, and at whose cost.

    What was verified is known by its exact class and its parameters. A class of your own says
    what it is by an attribute ``__skdp_kind__``, one of `KINDS`; subclasses do not inherit it.

    - "private" is an estimator of skdp with parameters `epsilon` and `accountant`; "local"
      moreover releases in `transform`, as its tag ``non_deterministic`` says,
    - "frozen" is a `sklearn.frozen.FrozenEstimator` of one that is "private", "stateless" or
      "declared", with no other inside; of others it is "opaque", or "local" if one of them is,
    - "stateless" is one of scikit-learn's that treats each row by itself and keeps nothing, as
      `sklearn.preprocessing.Normalizer`; or is "passthrough",
    - "declared" is one of scikit-learn's whose parameters leave it nothing to learn but the
      table's width, as ``OneHotEncoder(categories=[["a", "b"]])``,
    - "cross_validates" has a parameter `cv`, "wrapper" has estimators as parameters,
    - "learns" is everything else, so also every unknown estimator, and one told by `set_output`
      to make a frame that is not of skdp's numbers, because pandas infers types from all cells.

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
        If ``__skdp_kind__`` is no kind, or says "private" where there is no price to set.

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
    if estimator is None or (type(estimator) is str and estimator in ("passthrough", "drop")):
        return "stateless"
    declared = vars(type(estimator)).get("__skdp_kind__")
    if declared is not None and declared not in KINDS:
        raise ValueError(f"__skdp_kind__ must be one of {KINDS}, got {declared!r}")
    if declared in ("private", "local") and not is_private(estimator):
        raise ValueError(f"{estimator!r} says it is {declared} but has no epsilon to set")
    if is_changed(estimator):
        return "learns"
    if declared is not None:
        return declared
    if type(estimator) is FrozenEstimator:
        return _frozen_kind(estimator.estimator)
    if of_skdp(estimator) and is_private(estimator):
        if get_tags(estimator).non_deterministic:
            return "local"
        return "learns" if infers_types(estimator) else "private"
    found = verified(estimator)
    if found is not None:
        return "learns" if infers_types(estimator) else found.kind
    if not is_estimator(estimator):
        return "learns"
    if "cv" in estimator.get_params(deep=False):
        return "cross_validates"
    return "wrapper" if any(is_estimator(part) for _, part in named_parts(estimator)) else "learns"


def _frozen_kind(estimator):
    """Return the kind of a frozen estimator: what its `transform` would do with a table."""
    parts = held(estimator)
    charged = {step_kind(part) for part in parts if is_private(part)}
    if charged - {"private"}:
        return "local" if "local" in charged else "learns"
    if len(parts) != 1 or step_kind(estimator) not in ("private", "stateless", "declared"):
        return "opaque"
    # A result that is no plain data can take over an operation with the table.
    results = vars(estimator).keys() - estimator.get_params(deep=False).keys() - {"privacy_"}
    return "frozen" if all(is_plain(vars(estimator)[name]) for name in results) else "opaque"


def held(value):
    """Return the estimators that a value is or holds, as parameters, results, or deeper inside."""
    stack, seen = [value], {}
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        if is_estimator(part):
            part = vars(part)
        if isinstance(part, np.ndarray) and part.dtype == object:
            part = part.ravel().tolist()
        if isinstance(part, dict | list | tuple):
            stack += part.values() if isinstance(part, dict) else part
    return list(filter(is_estimator, seen.values()))


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
