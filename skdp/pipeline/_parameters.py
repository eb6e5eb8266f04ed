"""The check of every step's parameters, before the first step of a pipeline is charged."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import ColumnTable, check_label_kinds
from skdp._data._errors import column_name, non_numeric_error
from skdp._data._forms import UNKNOWN_FORM, TableForm
from skdp._data._lengths import check_lengths, n_rows_of, shape_of
from skdp._data._persons import read_persons
from skdp._data._tables import RowsAndTarget, target_array
from skdp.base import TableEstimator, TableShape, guarantee_of, terms_of
from skdp.mechanisms._randomized_response import categories_array
from skdp.mechanisms._unknown_shape import (
    UnknownShapePlan,
    columns_named,
    kinds_of_bounds,
    names_in,
)
from skdp.noise._source import check_seed
from skdp.pipeline._containers import check_unique_names
from skdp.pipeline._forms import form_of_table, output_form, refuses_sparse, repeated_names
from skdp.pipeline._instances import (
    changed_params,
    fitted_params,
    is_estimator,
    of_skdp,
    sklearn_name,
    step_message,
    with_params,
)
from skdp.pipeline._kinds import plans_its_fit
from skdp.pipeline._planning import labels_of
from skdp.pipeline._steps import walk_through
from skdp.pipeline._templates import REFUSALS, check_on_templates, made_up_rows
from skdp.preprocessing._categories import declared_labels
from skdp.utils._output import check_output_setting, frame_library
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicTable(FrozenValue):
    """Public information on the table that a pipeline is fitted to, and its target.

    Parameters
    ----------
    form : TableForm, default=UNKNOWN_FORM
        The table's. Its number of rows is that of persons, where these are the unit; its labels
        are read where the target is not known.
    has_target : bool, default=False
        True if the target is known, also if there is none.
    y : array-like, default=None
        The target. Its labels are public, where an estimator takes them to be; what else it holds
        is read for errors only.
    """

    form: TableForm = UNKNOWN_FORM
    has_target: bool = False
    y: object = None

    @classmethod
    def of_fit(cls, pipe, X, y, params):
        """Return the public information in the arguments of a pipeline's fit."""
        n_rows = n_rows_of(X)
        if n_rows is not None:
            check_lengths(n_rows, y=y)
            for ids in _groups_in(params):
                check_lengths(n_rows, groups=ids)
        shape = shape_of(X)
        if len(shape) != 2:
            return cls(has_target=True, y=y)
        terms = map(terms_of, fitted_params(pipe, "accountant").values())
        by_person = [each for each in terms if each.unit == "person"]
        if by_person:
            n_rows = _number_of_persons(params, n_rows, by_person[0].missing_ids)
        form = form_of_table(X if hasattr(X, "shape") else np.empty((0, shape[1])))
        if not hasattr(X, "shape"):
            form = replace(form, kinds=None, holds_numbers=False)
        form = replace(form, n_rows=n_rows, n_columns=shape[1] or None)
        return cls(form=form, has_target=True, y=y)

    def form_with_labels(self, pipe):
        """Return the form with the labels of the target, where a transformer encodes these."""
        if self.y is None or not any(map(_encodes_target, [pipe, *fitted_params(pipe).values()])):
            return self.form
        try:
            labels = np.unique(target_array(self.y))
        except (TypeError, ValueError):
            # The check of the step raises a better error.
            return self.form
        return replace(self.form, classes=labels)


def _groups_in(params):
    """Return the person ids among the parameters of a fit, once per step that receives them."""
    return [
        value
        for name, value in params.items()
        if name.rpartition("__")[2] == "groups" and value is not None
    ]


def _number_of_persons(params, n_rows, missing_ids):
    """Return the number of persons in the parameters of a fit, None without `groups`."""
    # All private steps are given the same ids.
    ids = _groups_in(params)
    if not ids or n_rows is None:
        return None
    return read_persons(ids[0], n_rows, missing_ids).n_persons


def _encodes_target(part):
    is_transformer = hasattr(part, "transform") and is_estimator(part)
    return is_transformer and of_skdp(part) and get_tags(part).target_tags.required


ANY_TABLE = PublicTable()


def check_parameters(pipe, table=ANY_TABLE, *, prefix="", before=()):
    """Check the parameters of every step of a pipeline, and the target against them.

    Nothing is fitted or charged. Each step's ``plan_fit`` is called with what is known of its
    input: shape, names and dtypes. What an earlier step finds is not known, and what only that
    can tell is checked by the step's own fit, after the charge: for example whether a list in
    `monotonic_cst` has as many entries as a `DPOneHotEncoder` finds categories.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, a search, or one
        estimator.
    table : PublicTable, default=ANY_TABLE
    prefix, before
        As in `find_steps`.

    Raises
    ------
    ValueError
        If a step would refuse its parameters, its columns or the target. The message names the
        step.
    """
    for step, error in find_refusals(pipe, table, prefix=prefix, before=before):
        params = changed_params(step.estimator)
        raise ValueError(step_message(step.title, error, params)) from error


def find_refusals(pipe, table=ANY_TABLE, *, prefix="", before=()):
    """Yield each step that would refuse its parameters or the target, and the error.

    Parameters
    ----------
    pipe, table, prefix, before
        As in `check_parameters`.

    Yields
    ------
    step : Step
    error : Exception
    """
    walk = walk_through(pipe, prefix, before, table.form_with_labels(pipe))
    yield from walk.refusals
    for step in walk.steps:
        # A part of a ColumnTransformer that gets no column is not fitted.
        if is_estimator(step.estimator) and not (step.n_features == 0 and step.fits == 0):
            try:
                _check_step(step, table)
            except REFUSALS as error:
                yield step, error


def _check_step(step, table):
    estimator = step.estimator
    if step.n_features == 0 and step.kind == "private":
        raise ValueError("the step gets no column: the step before it makes none")
    if step.is_series and step.kind == "private":
        raise ValueError(
            f"columns: {step.columns} is given without a list around it, as an array of one "
            "dimension: write [column] in the place of column"
        )
    if step.form.is_sparse and refuses_sparse(estimator):
        raise ValueError(
            f"{type(estimator).__name__} takes no sparse table, and gets one: let the step before "
            "it, if there is one, make a dense table (sparse_output=False), or take a step that "
            "accepts sparse tables"
        )
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
        _check_frozen(step)
    elif hasattr(estimator, "_candidate_params"):
        _check_search(step, table)
    elif step.kind == "private" and plans_its_fit(estimator):
        _check_plan(step, table)
    elif sklearn_name(estimator):
        _check_of_sklearn(step)
    made = output_form(estimator, step.form)
    if made.names is not None:
        check_unique_names(made.names, frame_library(estimator))


def _check_frozen(step):
    """Raise `ValueError` if a frozen step was fitted to other columns."""
    fitted = step.estimator.estimator
    form = step.form
    width = getattr(fitted, "n_features_in_", None)
    if None not in (width, step.n_features) and width != step.n_features:
        raise ValueError(
            f"estimator was fitted to {width} columns, but the step gets {step.n_features}"
        )
    names = getattr(fitted, "feature_names_in_", None)
    if names is not None and form.is_frame and form.names is not None:
        known = [*names]
        given = [*form.names]
        if given != known and all(isinstance(name, str) for name in given):
            raise ValueError(
                f"estimator was fitted to columns {known}, but the step gets {given}: give it the "
                "same columns in the same order"
            )
    if step.kind == "frozen" and of_skdp(fitted) and hasattr(fitted, "transform"):
        _check_frozen_words(fitted, form)


def _check_frozen_words(fitted, form):
    """Refuse a fitted transformer of words where the columns are known to be numbers, or so."""
    if form.has_known_cells and form.n_columns:
        with warnings.catch_warnings():
            # The rows have no names of columns.
            warnings.simplefilter("ignore")
            fitted.transform(made_up_rows(form.kinds))


def _check_search(step, table):
    """Check a search's parameters and those of its candidates."""
    search = step.estimator
    search._check_parameters()
    # Its fits are to parts of the rows.
    inner = replace(table, form=replace(step.form, n_rows=None))
    name = f"{step.name}__estimator" if step.name else "estimator"
    for params in search._candidate_params():
        candidate = with_params(search.estimator, params)
        check_parameters(candidate, inner, prefix=name, before=step.before)


def _check_of_sklearn(step):
    """Check the parameters of a step of scikit-learn that learns nothing."""
    estimator = step.estimator
    params = step.params
    if hasattr(estimator, "_validate_params"):
        estimator._validate_params()
    categories = params.get("categories")
    if isinstance(categories, list | tuple) and step.n_features not in (None, len(categories)):
        raise ValueError(
            f"categories has {len(categories)} lists, but the step gets {step.n_features} columns"
        )
    if isinstance(categories, list | tuple) and step.form.holds_numbers:
        # Only encoders of words are accepted steps.
        raise ValueError(
            "categories are words, but the columns that the step gets are numbers, which never "
            "equal a word: leave the step out, or put it where the words are"
        )
    check_on_templates(estimator, step.form)


def _check_declared_words(step, plan):
    """Raise `ValueError` for categories that match nothing: words for numbers, or the reverse."""
    params = step.params
    form = step.form
    if form.has_known_cells and form.n_columns and not isinstance(plan, UnknownShapePlan):
        rows = made_up_rows(form.kinds)
        table = ColumnTable(rows.shape, rows, names=form.names)
        # The step checks these rows like real ones before a charge.
        is_supervised = get_tags(step.estimator).target_tags.required
        if is_supervised:
            table = RowsAndTarget(table, np.zeros(len(rows)))
        step.estimator._check_rows(table, plan)
    elif form.holds_numbers and params.get("strategy") not in ("mean", "median", "constant"):
        # There is no plan of a table whose shape is not known. An imputer reads categories for its
        # other strategy alone.
        declared = declared_labels(params.get("categories"), _names(step), form.n_columns)
        for _, labels in declared:
            check_label_kinds(np.zeros(1), "the table", categories_array(labels))


def _check_columns(step):
    """Raise `ValueError` for text in a numeric step, and for duplicate column names."""
    tags = get_tags(step.estimator).input_tags
    kinds = step.form.kinds or ()
    if step.form.is_frame and repeated_names(step.form.names or ()):
        raise ValueError(
            f"the table has several columns named {repeated_names(step.form.names)[0]!r}: "
            "verbose_feature_names_out=True puts the names of the parts before them"
        )
    if "text" in kinds and not (tags.string or tags.categorical):
        raise non_numeric_error(column_name(kinds.index("text"), step.form.names))


def _check_has_names(step):
    """Refuse a column's name where the step gets an array, also one of a width that is found.

    A plan of a known width refuses it by itself.
    """
    if step.form.is_frame is not False or step.n_features is not None:
        return
    for parameter, column in columns_named(step.params):
        if isinstance(column, str):
            raise ValueError(
                f"{parameter} names column {column!r}, but the step gets an array, whose columns "
                "have no names: let the step before it make a data frame, by "
                "set_output(transform='pandas'), or name columns by their positions"
            )


def _check_plan(step, table):
    """Check the parameters of a private step, and the target against them, by its plan."""
    estimator = step.estimator
    params = step.params
    check_seed(params.get("random_state"))
    guarantee = guarantee_of(estimator)
    classes = labels_of(params, table.form.classes)
    if table.has_target and get_tags(estimator).target_tags.required:
        if table.y is None:
            raise ValueError("y is required, but is None")
        if isinstance(estimator, TableEstimator):
            y = target_array(table.y)
            classes, _ = estimator._read_target(y, len(y))
    unit = terms_of(estimator.accountant).unit
    shape = TableShape(
        n_rows=table.form.n_rows,
        n_columns=step.n_features,
        classes=classes,
        names=_names(step),
        kinds=None if step.form.kinds is None else list(step.form.kinds),
    )
    plan = _plan_of_any_kinds(estimator, shape, guarantee)
    _check_columns(step)
    _check_has_names(step)
    if of_skdp(estimator) and isinstance(estimator, TableEstimator):
        _check_declared_words(step, plan)
    if unit == "person" and not getattr(plan, "by_person", False):
        raise ValueError(
            "with these parameters there is no release whose unit is a person: use an accountant "
            "with unit='row' or unit='group'"
        )
    check_output_setting(estimator, sparse=getattr(plan, "sparse_output", False))
    planned = getattr(estimator.accountant, "planned", None)
    # What a plan of an unknown shape costs may not be what the fit will cost.
    if planned is not None and None not in (shape.n_rows, shape.n_columns):
        relation = terms_of(estimator.accountant).relation
        if not planned.covers(plan.event, relation):
            raise ValueError(
                f"it would release what was not planned: {plan.event} instead of {planned.event}. "
                "The table's shape or types, its labels or a parameter are not those of the plan: "
                "split the budget again, without n_samples and n_features if types are not known; "
                "n_samples is the number of persons, where these are the unit"
            )


def _names(step):
    if step.form.names is not None:
        return np.array(step.form.names, dtype=object)
    if step.form.is_frame is False or step.n_features is None:
        return None
    return names_in(step.params, step.n_features)


def _plan_of_any_kinds(estimator, shape, guarantee):
    """Return a plan; where dtypes are not known, columns may be dates if bounds say so."""
    try:
        return estimator.plan_fit(shape, guarantee)
    except ValueError:
        if shape.kinds is not None or shape.n_columns is None:
            raise
        names = shape.names if shape.names is not None else [None] * shape.n_columns
        for kinds in kinds_of_bounds(estimator.get_params(deep=False).get("bounds"), names):
            try:
                return estimator.plan_fit(replace(shape, kinds=kinds), guarantee)
            except ValueError:
                continue
        raise
