"""Kinds of steps from the registry of tools, and parts of an estimator that learn from raw rows.

A class that is not in the registry (`skdp/_tools`) is "unknown": it is accepted only if it declares
its kind with an attribute ``__skdp_kind__``.
"""

from dataclasses import dataclass, replace

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdp._data._forms import DENSE, SPARSE_MATRIX
from skdp._tools._advice import (
    CALLBACKS,
    COLUMNS,
    DECLARE,
    DENSITY,
    FITTED,
    LISTS,
    MEMORY,
    PRODUCTS,
    ROW_WISE_REMEDIES,
    SELECTOR,
)
from skdp._tools._entries import ACCEPTED
from skdp._tools._functions import depends_on_type
from skdp._tools._parts import is_step, parts_of, raw_callbacks
from skdp._tools._registry import UNKNOWN, find_entry
from skdp._tools._step_conditions import selects_by_values
from skdp.base import PrivateEstimator
from skdp.pipeline._instances import gives_numbers, is_estimator
from skdp.utils._values import FrozenValue

# Private steps that store one entry for each cell, even if its value is 0.
ONE_ENTRY_PER_CELL = frozenset({"DPKBinsDiscretizer", "DPTableVectorizer"})


@dataclass(frozen=True, eq=False)
class RawStep(FrozenValue):
    """A part of an estimator that may reveal more about rows than the charges cover.

    Parameters
    ----------
    name : str
        Name, as in `set_params`; "" for the estimator itself.
    estimator : object
        An estimator, or the parameter through which a container learns.
    kind : str
        "learns", "resamples", "calibrates", "cross_validates", "unknown" or "not_row_wise"; see
        `REASONS`.
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
    advice = entry.advice_on(estimator) or entry.advice
    try:
        fulfilled = entry.condition(estimator) and all(
            _is_private_part(getattr(estimator, name)) for name in entry.private_parts
        )
    except (TypeError, ValueError, AttributeError):
        # The condition cannot read the parameters, so the check of the class itself will refuse
        # them.
        fulfilled = False
    if fulfilled:
        return entry.kind, advice
    return entry.otherwise, advice


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


def find_raw_steps(estimator, with_fitted=False, sparsity=DENSE, is_list=False):
    """Return the parts of an estimator that learn from rows without privacy, or may do so.

    Steps before a release in which the number of rows is private are also returned if they may
    round a row differently when this number changes: a bin or threshold behind them could turn the
    rounding of other rows into a whole unit. Nothing is fitted or copied. Private steps, other
    steps that learn nothing, frozen steps and subclasses of skdp's estimators are omitted.

    Parameters
    ----------
    estimator : estimator
        A pipeline, a search or another estimator, fitted or not. It is inspected together with the
        estimators inside it.
    with_fitted : bool, default=False
        If True, frozen estimators and the model of a selection with ``prefit=True`` are included,
        with the kind "opaque".
    sparsity : {DENSE, SPARSE_MATRIX, SPARSE_FRAME}, default=DENSE
        Sparsity of its table, which is `DENSE` if unknown.
    is_list : bool, default=False
        True if its table is a list of rows.

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
    table = _Table(sparsity=sparsity, is_list=is_list)
    _add_raw_steps(estimator, "", raw_steps, with_fitted, table, later=())
    return raw_steps


@dataclass(frozen=True)
class _Table(FrozenValue):
    """Known facts about the table that a step receives.

    Parameters
    ----------
    sparsity : {DENSE, SPARSE_MATRIX, SPARSE_FRAME}
    has_inferred_types : bool, default=False
        True if it may be a frame whose types pandas inferred from the values that an earlier step
        returned.
    is_list : bool, default=False
        True for a list of rows, whose type NumPy infers from all cells.
    """

    sparsity: str
    has_inferred_types: bool = False
    is_list: bool = False

    def behind(self, step):
        """Return the table that a step of a pipeline returns for this one."""
        sparsity = possible_sparsity(step, self.sparsity)
        is_list = self.is_list and _passes_on(step)
        return _Table(sparsity, self._infers_types_behind(step), is_list)

    def _infers_types_behind(self, step):
        if isinstance(step, FrozenEstimator):
            return self._infers_types_behind(step.estimator)
        if _passes_on(step):
            return self.has_inferred_types
        return not gives_numbers(step)


def _passes_on(step):
    """Return True for a placeholder in a pipeline, whose output is its table itself."""
    return step is None or (isinstance(step, str) and step == "passthrough")


def _add_raw_steps(estimator, name, raw_steps, with_fitted, table, later):
    """Add the parts of an estimator that learn from rows without privacy to the list `raw_steps`.

    Parameters
    ----------
    estimator : object
        Other objects than steps and models are skipped.
    name : str
        Name of the estimator, which begins the names of its parts.
    raw_steps : list of RawStep
    with_fitted : bool
        As in `find_raw_steps`.
    table : _Table
        Known facts about the table that the estimator receives.
    later : tuple
        The steps of all enclosing pipelines that receive the output of the estimator.
    """
    # Some classes have no `get_params`, or methods other than those of steps.
    is_part = is_step(estimator) or find_entry(estimator) is not UNKNOWN
    if not is_part or isinstance(estimator, PrivateEstimator):
        return
    if isinstance(estimator, FrozenEstimator):
        # An estimator that is frozen twice has learned from unknown rows, too.
        if with_fitted and find_raw_steps(estimator.estimator, with_fitted=True):
            raw_steps.append(RawStep(name, estimator, "opaque", FITTED))
        elif _is_rounding_released(estimator, later):
            raw_steps.append(_not_row_wise(name, estimator))
        return
    kind = vars(type(estimator)).get("__skdp_kind__")
    advice = DECLARE
    if kind is None:
        kind, advice = kind_by_table(estimator)
    if kind not in (*ACCEPTED, "container", "wrapper", "local"):
        raw_steps.append(RawStep(name, estimator, kind, advice))
    elif _is_rounding_released(estimator, later):
        raw_steps.append(_not_row_wise(name, estimator))
    for part, value, reason in _raw_choices(estimator, table):
        raw_steps.append(RawStep(join_names(name, part), value, "learns", reason))
    is_prefit = getattr(estimator, "prefit", None) is True
    earlier = []
    parts = [*inner_parts(estimator), *candidates_of(estimator)]
    for i, (part, inner) in enumerate(parts):
        if is_prefit and is_estimator(inner):
            inner = FrozenEstimator(inner)
        # Once rows are reported privately, later steps compute only from the reports.
        if not (_ignores_targets(inner) and any(map(_reports_rows, earlier))):
            reads_table = part not in ("final_estimator", "transformer")
            inner_name = join_names(name, part)
            behind = later
            if hasattr(estimator, "steps"):
                behind = (*(step for _, step in parts[i + 1 :]), *later)
            inner_table = table if reads_table else _Table(DENSE)
            if isinstance(estimator, ColumnTransformer):
                # It converts a list to an array of objects.
                inner_table = replace(inner_table, is_list=False)
            _add_raw_steps(inner, inner_name, raw_steps, with_fitted, inner_table, behind)
        if hasattr(estimator, "steps"):
            earlier.append(inner)
            table = table.behind(inner)


def is_row_wise(estimator):
    """Return True if each output row of a step depends on its input row alone, to the last bit.

    This holds for skdp's estimators. A declaration with ``__skdp_kind__`` is trusted. Only an entry
    of the list of accepted classes can say that it does not hold, so the result is also True for
    classes without such an entry, such as PCA, bare or frozen. It is of no use for these: a bare
    one is reported by `_add_raw_steps`, because it learns from rows.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step that is stateless, declared or frozen. For a frozen step, its estimator decides.
    """
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    entry = accepted_entry(estimator)
    return entry is None or bool(entry.is_row_wise(estimator))


def row_wise_remedy(estimator):
    """Return advice on a replacement for a step that is not row-wise."""
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return ROW_WISE_REMEDIES.get(type(estimator).__name__, PRODUCTS)


def _not_row_wise(name, estimator):
    """Return the `RawStep` of a step that may round a row differently if their number changes."""
    return RawStep(name, estimator, "not_row_wise", row_wise_remedy(estimator))


def hides_number_of_rows(accountant, count):
    """Return True if a private estimator with these parameters treats the number as private."""
    config = getattr(accountant, "config", None)
    is_noisy = isinstance(count, str) and count == "noisy"
    return getattr(config, "unit", None) == "person" or is_noisy


def _is_rounding_released(estimator, later):
    """Return True if a step is not row-wise and a later release hides the number of rows.

    The ledger of an accountant is read only for such a step.
    """
    return not is_row_wise(estimator) and any(map(_releases_hidden_rows, later))


def _releases_hidden_rows(step):
    """Return True if a fit of a step makes a release in which the number of rows is private."""
    if not is_step(step) or isinstance(step, FrozenEstimator):
        return False
    if hasattr(step, "epsilon") and hasattr(step, "accountant"):
        return hides_number_of_rows(step.accountant, getattr(step, "count", None))
    return any(_releases_hidden_rows(inner) for _, inner in inner_parts(step))


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


def _raw_choices(estimator, table):
    """Yield name, value and advice for parameters with which a container learns or stores rows.

    Parameters
    ----------
    estimator : estimator
    table : _Table
    """
    if getattr(estimator, "memory", None) is not None and hasattr(estimator, "steps"):
        yield "memory", estimator.memory, MEMORY
    if isinstance(estimator, ColumnTransformer):
        for part in estimator.transformers:
            if _selects_by_table(part[-1], table):
                yield f"{part[0]}__columns", part[-1], COLUMNS
        if possible_sparsity(estimator, table.sparsity):
            yield "sparse_threshold", estimator.sparse_threshold, DENSITY
    elif is_skrub_container(estimator) and selects_by_values(estimator.cols):
        yield "cols", estimator.cols, SELECTOR
    elif table.is_list and type(estimator) is FunctionTransformer:
        if depends_on_type(estimator.func):
            yield "func", estimator.func, LISTS
    for callback in raw_callbacks(estimator):
        yield "callbacks", callback, CALLBACKS


def _selects_by_table(columns, table):
    """Return True if columns are chosen by values, or by types that were inferred from values."""
    if type(columns) is not make_column_selector:
        return callable(columns)
    return table.has_inferred_types and selects_by_type(columns)


def selects_by_type(columns):
    """Return True for a selector that chooses columns by their types."""
    if type(columns) is not make_column_selector:
        return False
    return columns.dtype_include is not None or columns.dtype_exclude is not None


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


def possible_sparsity(step, sparsity):
    """Return the sparsity that the output of a step may have.

    scikit-learn converts a frame of Sparse columns to a sparse matrix when it checks it. So a step
    that checks its table returns a matrix, and one that passes its table on returns a frame. A
    container that joins the outputs of its parts returns a matrix only if one part does.

    Parameters
    ----------
    step : estimator, "passthrough", "drop" or None
    sparsity : {DENSE, SPARSE_MATRIX, SPARSE_FRAME}
        Sparsity of its table.

    Returns
    -------
    {DENSE, SPARSE_MATRIX, SPARSE_FRAME}
    """
    if isinstance(step, FrozenEstimator):
        return possible_sparsity(step.estimator, sparsity)
    if step is None or isinstance(step, str):
        return DENSE if step == "drop" else sparsity
    if isinstance(step, Pipeline):
        for _, inner in step.steps:
            sparsity = possible_sparsity(inner, sparsity)
        return sparsity
    if isinstance(step, FeatureUnion):
        return _joined_sparsity([part for _, part in step.transformer_list], sparsity)
    if isinstance(step, ColumnTransformer):
        # Its density is compared with the threshold if one of its parts returns a sparse matrix.
        if not step.sparse_threshold:
            return DENSE
        parts = [step.remainder, *(part for _, part, _ in step.transformers)]
        return _joined_sparsity([part for part in parts if not _has_fixed_density(part)], sparsity)
    if isinstance(step, PrivateEstimator):
        return SPARSE_MATRIX if getattr(step, "_makes_sparse", False) else DENSE
    sparse_output = getattr(step, "sparse_output", None)
    if isinstance(sparse_output, bool):
        return SPARSE_MATRIX if sparse_output else DENSE
    treatment = find_entry(step).sparse
    if treatment == "made":
        return SPARSE_MATRIX
    if not sparsity or not (treatment == "kept" or isinstance(step, SelectorMixin)):
        return DENSE
    if isinstance(step, FunctionTransformer) and not step.validate:
        return sparsity
    return SPARSE_MATRIX


def _has_fixed_density(part):
    """Return True for a step whose output has the same number of entries for all values."""
    while isinstance(part, Pipeline) and part.steps:
        part = part.steps[-1][1]
    if isinstance(part, FrozenEstimator):
        part = part.estimator
    return isinstance(part, PrivateEstimator) and type(part).__name__ in ONE_ENTRY_PER_CELL


def _joined_sparsity(parts, sparsity):
    """Return the possible sparsity of the joined outputs of parts that read the same table."""
    if any(possible_sparsity(part, sparsity) == SPARSE_MATRIX for part in parts):
        return SPARSE_MATRIX
    return DENSE


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
