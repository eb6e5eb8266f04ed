"""Check that the first private fits in an estimator accept each row, before a search charges.

scikit-learn's searches and validations replace the error of a fit with a score of NaN. If one row
has a missing value, the folds that contain it would have no score, and publish where the row is.
"""

import sys

import numpy as np
from joblib import parallel_config
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import check_array

from skdp._data._frames import take_rows
from skdp._tools._functions import treats_rows_alone
from skdp.base import TableEstimator
from skdp.pipeline._combinations import stacked_width
from skdp.pipeline._fit_params import SEARCHES, STACKS
from skdp.pipeline._instances import fitted_params, is_estimator, sklearn_name
from skdp.pipeline._kinds import is_private
from skdp.pipeline._known import accepted_entry, inner_parts
from skdp.pipeline._members import (
    CHAINS,
    PASS_TABLE_ON,
    RECEIVE_OTHER_TABLES,
    SELECT_COLUMNS,
    SPLIT_LABELS,
    check_members,
    count_labels,
    listed_candidates,
    targets_of_members,
)
from skdp.pipeline._parameters import PublicTable
from skdp.pipeline._steps import find_steps
from skdp.pipeline._trial import (
    make_dry_run,
    makes_polars_frames,
    strip_callbacks,
    supports_empty_rows,
    suppress_fit_output,
)

# scikit-learn tools whose members receive all rows, though perhaps not all columns.
PASS_ROWS_ON = PASS_TABLE_ON | SELECT_COLUMNS | SPLIT_LABELS | CHAINS


def check_rows(estimator, X, y=None):
    """Raise the errors that private fits in an estimator would raise for a row or a label.

    Of the rows, only those fits are checked that receive them, or what steps that learn nothing
    return for them. Nothing is released, charged or stored.

    Parameters
    ----------
    estimator : estimator
        A private estimator, or one that contains some.
    X : table
        All rows that its fits receive, in memory.
    y : array-like, default=None
        Target of its fit.

    Raises
    ------
    ValueError
        If a fit would refuse a row or its label.
    """
    # Other checks warn about the candidates of a search.
    with suppress_fit_output():
        try:
            check_members(estimator)
        except (TypeError, ValueError):
            # A fit refuses its parameters, for all rows.
            return
        check_members(estimator, PublicTable(y=y))
    _check_first_rows(estimator, X, y)


def _check_first_rows(estimator, X, y):
    """Raise the error of the first private fits for a row; see `check_rows`."""
    if isinstance(estimator, FrozenEstimator):
        if isinstance(estimator.estimator, TableEstimator):
            # It is not fitted, but a score reads its predictions.
            estimator.estimator._read_samples(X)
        return
    if not is_estimator(estimator):
        return
    kind = sklearn_name(estimator)
    if _is_private_search(estimator):
        _check_first_rows(estimator.estimator, X, y)
    elif isinstance(estimator, Pipeline | FeatureUnion | ColumnTransformer) or is_private(
        estimator
    ):
        _read_rows(estimator, X, y)
    elif kind in SEARCHES:
        for candidate in _candidates_by_class(estimator):
            check_rows(candidate, X, y)
    elif kind == "TransformedTargetRegressor":
        _check_transformed(estimator, X, y)
    elif kind in PASS_ROWS_ON and not _is_fitted_before(estimator):
        for part, member in inner_parts(estimator):
            if part not in RECEIVE_OTHER_TABLES:
                for target in targets_of_members(estimator, y):
                    if target is not None or y is None:
                        _check_first_rows(member, X, target)
        if kind in STACKS and estimator.passthrough:
            _check_passed_through(estimator, X, y)


def _candidates_by_class(search):
    """Return a candidate of a search for each combination of classes.

    Other settings of the same classes seldom decide which rows are accepted.
    """
    candidates = {}
    for candidate in [*listed_candidates(search)] or [search.estimator]:
        params = candidate.get_params()
        classes = tuple((name, type(part)) for name, part in params.items() if is_estimator(part))
        candidates.setdefault((type(candidate), classes), candidate)
    return candidates.values()


def _check_transformed(tool, X, y):
    """Raise the error of a fit to transformed targets for a row or a target."""
    if y is None:
        return
    y = check_array(y, ensure_2d=False, allow_nd=True, input_name="y")
    column = y.reshape(-1, 1) if y.ndim == 1 else y
    # Behind a private transformer, or an unknown function, only the rows are checked.
    transformed = np.zeros(y.shape)
    if tool.transformer is not None:
        _check_first_rows(tool.transformer, column, None)
    elif treats_rows_alone(tool.func):
        with np.errstate(all="ignore"):
            transformed = column if tool.func is None else tool.func(column)
        transformed = transformed.reshape(y.shape)
    _check_first_rows(tool.regressor, X, transformed)


def _check_passed_through(stack, X, y):
    """Raise the error of a stack's last stage for a row that it receives beside predictions."""
    if not hasattr(X, "shape") or issparse(X):
        return
    rows = np.asarray(X)
    width = stacked_width(stack, rows.shape[1], count_labels(stack, y))
    (target,) = targets_of_members(stack, y)
    if width is not None and target is not None:
        predictions = np.zeros((len(rows), width - rows.shape[1]))
        _check_first_rows(stack.final_estimator, np.hstack([predictions, rows]), target)


def _is_private_search(estimator):
    """Return True for a private estimator that fits another one, so it reads no cells itself."""
    return is_estimator(getattr(estimator, "estimator", None)) and is_private(estimator)


def _is_fitted_before(tool):
    return getattr(tool, "prefit", None) is True or isinstance(getattr(tool, "cv", None), str)


def _read_rows(container, X, y):
    """Read a table as the first private steps of a container, or a private estimator, would."""
    inside = [container, *container.get_params().values()]
    if any(map(makes_polars_frames, inside)) and not supports_empty_rows(sys.modules.get("polars")):
        return
    steps = [step for step in find_steps(container) if is_estimator(step.estimator)]
    private = {step.name for step in steps if step.kind == "private"}
    others = [step for step in steps if step.name not in private]
    unchecked = [step for step in others if not _applies_without_charge(step)]
    for step in unchecked:
        if private.intersection(step.before):
            continue
        # It would be fitted. A tool may pass the table on to private estimators, though.
        if steps[0] is step and step.estimator is not container:
            _check_first_rows(step.estimator, X, y)
        return
    if not private:
        return
    model = strip_callbacks(clone(container))
    model.set_params(**dict.fromkeys(fitted_params(model, "memory")))
    model.checks_fits = False
    table = X if hasattr(X, "shape") else _array_of(X)
    if others:
        # Steps of other libraries may write into the table that they receive.
        table = take_rows(table, np.arange(table.shape[0]))
    if _is_private_search(steps[0].estimator):
        _check_first_rows(steps[0].estimator, X, y)
    with suppress_fit_output(), parallel_config("sequential"):
        make_dry_run(model, steps, private, unplanned=private).fit(table, y)


def _array_of(rows):
    """Return a list of rows as an array of numbers, or of objects if there are other cells."""
    try:
        table = np.asarray(rows)
    except ValueError:
        # Rows of several lengths are not a table, which the first step finds.
        return np.asarray(rows, dtype=object)
    return table if table.dtype.kind in "biuf" else np.asarray(rows, dtype=object)


def _applies_without_charge(step):
    """Return True for a frozen step, or one of scikit-learn, whose output costs nothing."""
    if step.kind == "local":
        return False
    estimator = step.estimator
    is_known = sklearn_name(estimator) and accepted_entry(estimator) is not None
    return isinstance(estimator, FrozenEstimator) or bool(is_known)
