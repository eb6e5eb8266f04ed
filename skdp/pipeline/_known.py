"""Kinds of steps from the registry of tools, and parts of an estimator that learn from raw rows.

A class that is not in the registry (`skdp/_tools`) is "unknown": it is accepted only if it declares
its kind with an attribute ``__skdp_kind__``.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skdp._tools._advice import CALLBACKS, COLUMNS, DECLARE, DENSITY, FITTED, MEMORY, SELECTOR
from skdp._tools._entries import ACCEPTED
from skdp._tools._parts import is_step, parts_of, raw_callbacks
from skdp._tools._registry import UNKNOWN, find_entry
from skdp._tools._step_conditions import selects_by_values
from skdp.base import PrivateEstimator
from skdp.pipeline._instances import is_estimator
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, eq=False)
class RawStep(FrozenValue):
    """A part of an estimator that learns from rows without privacy, or may do so.

    Parameters
    ----------
    name : str
        Name, as in `set_params`; "" for the estimator itself.
    estimator : object
        An estimator, or the parameter through which a container learns.
    kind : str
        "learns", "resamples", "calibrates", "cross_validates" or "unknown"; see `REASONS`.
    advice : str
        Advice on a replacement.
    """

    name: str
    estimator: object
    kind: str
    advice: str

    @property
    def bracketed_advice(self):
        """The advice in brackets after a space, for messages; "" without advice."""
        if self.advice:
            return f" ({self.advice})"
        return ""


def kind_by_table(estimator):
    """Return the kind of a step by its class and parameters, and advice on a replacement.

    Output settings and inner estimators are ignored.

    Parameters
    ----------
    estimator : estimator
        An estimator that is neither private nor frozen and does not declare its kind.

    Returns
    -------
    kind : str
        A key of `REASONS`.
    advice : str
    """
    entry = find_entry(estimator)
    try:
        fulfilled = entry.condition(estimator) and all(
            _is_private_part(getattr(estimator, name)) for name in entry.private_parts
        )
    except (TypeError, ValueError, AttributeError):
        # The condition cannot read the parameters, so the check of the class itself will refuse
        # them.
        fulfilled = False
    if fulfilled:
        return entry.kind, entry.advice
    return entry.otherwise, entry.advice


def _is_private_part(part):
    """Return True if a part is set and learns nothing from rows without privacy."""
    return part is not None and not find_raw_steps(part)


def accepted_entry(estimator):
    """Return the registry entry of a step that, with its parameters, learns nothing, or None.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None

    Returns
    -------
    Known or None
    """
    entry = find_entry(estimator)
    if entry.kind not in ("stateless", "declared"):
        return None
    if kind_by_table(estimator)[0] == entry.kind:
        return entry
    return None


def find_raw_steps(estimator, with_fitted=False, is_sparse=False):
    """Return the parts of an estimator that learn from rows without privacy, or may do so.

    Nothing is fitted or copied. Private steps, steps that learn nothing, frozen steps and
    subclasses of skdp's estimators are omitted.

    Parameters
    ----------
    estimator : estimator
        A pipeline, a search or another estimator, fitted or not. It is inspected together with the
        estimators inside it.
    with_fitted : bool, default=False
        If True, frozen estimators and the model of a selection with ``prefit=True`` are included,
        with the kind "opaque".
    is_sparse : bool, default=False
        True if its table is known to be a sparse matrix.

    Returns
    -------
    list of RawStep
        The parts, in order from the outside in.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPLogisticRegression
    >>> from skdp.pipeline._known import find_raw_steps
    >>> for step in find_raw_steps(make_pipeline(StandardScaler(), DPLogisticRegression())):
    ...     print(step.name, "|", step.kind, "|", step.advice)
    standardscaler | learns | use DPStandardScaler
    """
    raw_steps = []
    _add_raw_steps(estimator, "", raw_steps, with_fitted, is_sparse)
    return raw_steps


def _add_raw_steps(estimator, name, raw_steps, with_fitted, is_sparse):
    """Add the parts of an estimator that learn from rows without privacy to the list `raw_steps`.

    Parameters
    ----------
    estimator : object
        Other objects than steps and models are skipped.
    name : str
        Name of the estimator, which begins the names of its parts.
    raw_steps : list of RawStep
    with_fitted, is_sparse : bool
        As in `find_raw_steps`.
    """
    # Some classes have no `get_params`, or methods other than those of steps.
    is_part = is_step(estimator) or find_entry(estimator) is not UNKNOWN
    if not is_part or isinstance(estimator, PrivateEstimator):
        return
    if isinstance(estimator, FrozenEstimator):
        # An estimator that is frozen twice has learned from unknown rows, too.
        if with_fitted and find_raw_steps(estimator.estimator, with_fitted=True):
            raw_steps.append(RawStep(name, estimator, "opaque", FITTED))
        return
    kind = vars(type(estimator)).get("__skdp_kind__")
    advice = DECLARE
    if kind is None:
        kind, advice = kind_by_table(estimator)
    if kind not in (*ACCEPTED, "container", "wrapper", "local"):
        raw_steps.append(RawStep(name, estimator, kind, advice))
    for part, value, reason in _raw_choices(estimator, is_sparse):
        raw_steps.append(RawStep(join_names(name, part), value, "learns", reason))
    is_prefit = getattr(estimator, "prefit", None) is True
    earlier = []
    for part, inner in (*inner_parts(estimator), *candidates_of(estimator)):
        if is_prefit and is_estimator(inner):
            inner = FrozenEstimator(inner)
        # Once rows are reported privately, later steps compute only from the reports.
        if not (_ignores_targets(inner) and any(map(_reports_rows, earlier))):
            reads_table = part not in ("final_estimator", "transformer")
            inner_name = join_names(name, part)
            _add_raw_steps(inner, inner_name, raw_steps, with_fitted, is_sparse and reads_table)
        if hasattr(estimator, "steps"):
            earlier.append(inner)
            is_sparse = may_give_sparse(inner, is_sparse)


def _reports_rows(step):
    """Return True for a step whose `transform` charges, so its output may be published."""
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    return isinstance(step, PrivateEstimator) and get_tags(step).non_deterministic


# An estimator's tags show whether it requires targets, but not whether it reads optional ones.
IGNORE_TARGETS = frozenset(
    "sklearn.cluster sklearn.covariance sklearn.decomposition sklearn.manifold sklearn.mixture "
    "sklearn.impute.SimpleImputer sklearn.preprocessing.KBinsDiscretizer "
    "sklearn.preprocessing.MaxAbsScaler sklearn.preprocessing.MinMaxScaler "
    "sklearn.preprocessing.OneHotEncoder sklearn.preprocessing.OrdinalEncoder "
    "sklearn.preprocessing.PowerTransformer sklearn.preprocessing.QuantileTransformer "
    "sklearn.preprocessing.RobustScaler sklearn.preprocessing.SplineTransformer "
    "sklearn.preprocessing.StandardScaler".split()
)


def _ignores_targets(step):
    """Return True for a step of scikit-learn that ignores the targets."""
    module = type(step).__module__
    name = type(step).__name__
    package = ".".join(module.split(".")[:2])
    return package in IGNORE_TARGETS or f"{package}.{name}" in IGNORE_TARGETS


def _raw_choices(estimator, is_sparse):
    """Yield name, value and advice for parameters with which a container learns or stores rows.

    Parameters
    ----------
    estimator : estimator
    is_sparse : bool
        True if its table is known to be sparse.
    """
    if getattr(estimator, "memory", None) is not None and hasattr(estimator, "steps"):
        yield "memory", estimator.memory, MEMORY
    if isinstance(estimator, ColumnTransformer):
        for part in estimator.transformers:
            if callable(part[-1]) and type(part[-1]) is not make_column_selector:
                yield f"{part[0]}__columns", part[-1], COLUMNS
        if may_give_sparse(estimator, is_sparse):
            yield "sparse_threshold", estimator.sparse_threshold, DENSITY
    elif is_skrub_container(estimator) and selects_by_values(estimator.cols):
        yield "cols", estimator.cols, SELECTOR
    for callback in raw_callbacks(estimator):
        yield "callbacks", callback, CALLBACKS


def candidates_of(search):
    """Yield the names of a search's parameters and the estimators that it tries for them.

    Parameters
    ----------
    search : estimator
        A search. For other estimators, nothing is yielded.

    Yields
    ------
    name : str
    candidate : object
    """
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    if isinstance(grids, dict):
        grids = [grids]
    if not isinstance(grids, list | tuple):
        return
    for grid in grids:
        for name, values in grid.items():
            # Other values are distributions, which are sampled.
            if isinstance(values, list | tuple | np.ndarray):
                for value in values:
                    yield f"estimator__{name}", value


def may_give_sparse(step, is_sparse):
    """Return True if a step may return a sparse table.

    Parameters
    ----------
    step : estimator, "passthrough", "drop" or None
    is_sparse : bool
        True if its table is known to be sparse; False if it is dense or unknown.
    """
    if isinstance(step, FrozenEstimator):
        return may_give_sparse(step.estimator, is_sparse)
    if step is None or isinstance(step, str):
        return is_sparse and step != "drop"
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            is_sparse = may_give_sparse(inner, is_sparse)
        return is_sparse
    if isinstance(step, FeatureUnion):
        return any(may_give_sparse(part, is_sparse) for _, part in step.transformer_list)
    if isinstance(step, ColumnTransformer):
        # Its density is compared with the threshold if one of its parts returns a sparse table.
        parts = [step.remainder, *(part for _, part, _ in step.transformers)]
        return bool(step.sparse_threshold) and any(may_give_sparse(p, is_sparse) for p in parts)
    sparse_output = getattr(step, "sparse_output", None)
    if isinstance(sparse_output, bool):
        return sparse_output
    sparsity = find_entry(step).sparse
    keeps_sparse = sparsity == "kept" or isinstance(step, SelectorMixin)
    return sparsity == "made" or (keeps_sparse and is_sparse)


def is_skrub_container(estimator):
    """Return True for skrub's `ApplyToCols` and `ApplyToFrame`."""
    return find_entry(estimator).inner == ("transformer",)


def inner_parts(estimator):
    """Yield names and values of the steps, or other estimators, that an estimator fits.

    Parameters
    ----------
    estimator : estimator

    Yields
    ------
    name : str
        Name as in `set_params`.
    part : estimator, "passthrough", "drop" or None
        If the parameter is None, the estimator that is fitted by default, if any.
    """
    entry = find_entry(estimator)
    if entry is UNKNOWN:
        yield from parts_of(estimator)
        return
    for name in entry.inner:
        value = getattr(estimator, name, None)
        if value is None and name in entry.defaults:
            value = entry.defaults[name]()
        if is_step(value):
            yield name, value
        if not isinstance(value, list | tuple):
            continue
        for part in value:
            # Steps are pairs (name, step), or triples that also contain columns.
            if isinstance(part, list | tuple):
                yield part[0], part[1]
            else:
                yield name, part


def join_names(*names):
    """Return the name of a nested estimator, as in `set_params`."""
    return "__".join(filter(None, names))
