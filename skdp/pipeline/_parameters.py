"""Check of every step's parameters before the first charge, and that a budget plan still holds.

A parameter that was changed after `split_budget`, such as epsilon, is refused here.
"""

import warnings
from dataclasses import dataclass, field, replace
from numbers import Real

import numpy as np
from sklearn import config_context, get_config
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import ColumnTable, check_label_kinds
from skdp._data._errors import column_name, message_without_hint, non_numeric_error, times_error
from skdp._data._forms import UNKNOWN_FORM, TableForm
from skdp._data._frames import TIME_KINDS
from skdp._data._lengths import check_lengths, n_rows_of, shape_of
from skdp._data._output import check_output_setting, frame_library
from skdp._data._persons import read_persons
from skdp._data._tables import RowsAndTarget, target_array
from skdp.accounting import ApproximateDP, PureDP
from skdp.base import TableEstimator, TableShape, guarantee_of, terms_of
from skdp.mechanisms._randomized_response import categories_array
from skdp.mechanisms._unknown_shape import (
    columns_named,
    holds_for_every_shape,
    kinds_of_bounds,
    names_in,
)
from skdp.noise._source import check_seed
from skdp.pipeline._containers import check_unique_names
from skdp.pipeline._fit_params import check_fit_params, params_of_steps
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
from skdp.pipeline._steps import possible_names, walk_through
from skdp.pipeline._templates import (
    REFUSALS,
    check_on_synthetic_rows,
    check_on_templates,
    made_up_rows,
)
from skdp.stats._categories import declared_labels
from skdp.utils._documents import count_of
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicTable(FrozenValue):
    """Public information about the table to which a pipeline is fitted, and its target.

    Parameters
    ----------
    form : TableForm, default=UNKNOWN_FORM
        Form of the table. If the unit is a person, its number of rows is the number of persons. Its
        labels are used if the target is unknown.
    has_target : bool, default=False
        True if the target is known, or known not to exist.
    y : array-like, default=None
        The target. Its labels are public for estimators that assume this; other values are only
        checked for errors.
    groups : array-like, default=None
        The person id of each row, which all private steps receive.
    step_params : dict of str to dict, default={}
        Other parameters of the fit of each step, by the step's name.
    """

    form: TableForm = UNKNOWN_FORM
    has_target: bool = False
    y: object = None
    groups: object = None
    step_params: dict = field(default_factory=dict)

    @classmethod
    def of_fit(cls, pipe, X, y, steps):
        """Return the public information contained in the arguments of a pipeline's fit.

        Parameters
        ----------
        pipe : estimator
        X, y
            Table and target of the fit.
        steps : list of StepParams
            The parameters of the fit of each step, which are checked.
        """
        n_rows = n_rows_of(X)
        if n_rows is not None:
            check_lengths(n_rows, y=y)
            for step in steps:
                check_lengths(n_rows, groups=step.groups)
        groups = check_fit_params(steps, n_rows=n_rows)
        step_params = {step.name: step.params for step in steps}
        table = cls(has_target=True, y=y, groups=groups, step_params=step_params)
        shape = shape_of(X)
        if len(shape) != 2:
            return table
        terms = map(terms_of, fitted_params(pipe, "accountant").values())
        by_person = [config for config in terms if config.unit == "person"]
        if by_person:
            n_rows = _number_of_persons(groups, n_rows, by_person[0].missing_ids)
        if hasattr(X, "shape"):
            form = form_of_table(X)
        else:
            form = form_of_table(np.empty((0, shape[1])))
            form = replace(form, kinds=None, holds_numbers=False)
        form = replace(form, n_rows=n_rows, n_columns=shape[1] or None)
        return replace(table, form=form)

    def form_with_labels(self, pipe):
        """Return the form, with the labels of the target if a transformer in `pipe` needs a target.

        The plan of such a step, for example of a `DPTargetEncoder`, depends on the labels. If there
        is none, the form is returned unchanged.
        """
        if self.y is None or not any(map(_encodes_target, [pipe, *fitted_params(pipe).values()])):
            return self.form
        try:
            labels = np.unique(target_array(self.y))
        except (TypeError, ValueError):
            # The check of the step raises a better error.
            return self.form
        return replace(self.form, classes=labels)


def _number_of_persons(groups, n_rows, missing_ids):
    """Return the number of persons of a fit, None without `groups`."""
    if groups is None or n_rows is None:
        return None
    return read_persons(groups, n_rows, missing_ids).n_persons


def _encodes_target(part):
    """Return True for a transformer of skdp that needs a target."""
    is_transformer = hasattr(part, "transform") and is_estimator(part)
    return is_transformer and of_skdp(part) and get_tags(part).target_tags.required


ANY_TABLE = PublicTable()


def check_parameters(pipe, table=ANY_TABLE, *, prefix="", before=()):
    """Check the parameters of every step of a pipeline, and the target against them.

    Nothing is fitted or charged. Each step's ``plan_fit`` receives the known shape, names and
    dtypes of its input. Properties that depend on an earlier release are unknown, and only the
    step's own fit checks them, after the charge. An example is the length of a list in
    `monotonic_cst` behind a `DPOneHotEncoder` that finds categories.

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
    """Yield each step that would refuse its parameters or the target, with its error.

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
        # A ColumnTransformer does not fit a part that receives no column.
        if is_estimator(step.estimator) and not (step.n_features == 0 and step.fits == 0):
            try:
                _check_step(step, table)
            except REFUSALS as error:
                if _fails_by_fill_values(step, table):
                    error = _with_fill_values(error, step, walk.steps)
                yield step, error


def _fails_by_fill_values(step, table):
    """Return True if a failing step would succeed but for the values that imputers fill in."""
    if "mixed" not in (step.form.kinds or ()):
        return False
    form = replace(step.form, kinds=_container_kinds(step.form), examples={})
    try:
        _check_step(replace(step, form=form), table)
    except REFUSALS:
        return False
    return True


def _with_fill_values(error, step, steps):
    """Return an error that names the imputers whose `fill_value` a step receives in some columns.

    The step's own fit would raise the error only if a cell were missing. Whether one is missing is
    private, so the parameters are always refused.
    """
    imputers = [
        earlier
        for earlier in steps
        if earlier.name in step.before and type(earlier.estimator).__name__ == "DPSimpleImputer"
    ]
    fills = " and ".join(
        f"fill_value={imputer.estimator.fill_value!r} of step {imputer.title!r}"
        for imputer in imputers
    )
    columns = ", ".join(str(j) for j in step.form.examples if step.form.kinds[j] == "mixed")
    # The name of the imputer is known here, so the general hint is not needed.
    text = message_without_hint(error)
    if not text.endswith("."):
        text += "."
    return ValueError(
        f"{text} Columns {columns} may hold {fills}: use a fill_value of "
        "the same kind as the other values, and declare the categories of string columns, e.g. "
        "categories={column: 'auto'} in a step that has this parameter"
    )


def _check_step(step, table):
    """Raise an error if the step's fit would refuse its parameters or its input."""
    estimator = step.estimator
    if step.n_features == 0 and step.kind == "private":
        raise ValueError("the step receives no column, because the step before it returns none")
    if step.form.is_sparse and refuses_sparse(estimator):
        raise ValueError(
            f"{type(estimator).__name__} does not accept the sparse table that it receives; make "
            "the output of the step before dense, with sparse_output=False if it has this "
            "parameter and otherwise with set_output(transform='pandas'), or use a step that "
            "accepts sparse tables"
        )
    if step.kind in ("private", "local"):
        check_seed(step.params.get("random_state"))
        # Raises the error of a wrong epsilon or delta, which may have been set after the plan.
        guarantee_of(estimator)
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(estimator)
        _check_frozen(step)
    elif hasattr(estimator, "_candidate_params"):
        _check_private_search(step, table)
    elif step.kind in ("private", "local") and plans_its_fit(estimator):
        _check_plan(step, table)
    elif sklearn_name(estimator):
        _check_of_sklearn(step, table)
    output = output_form(estimator, step.form)
    if output.names is not None:
        check_unique_names(output.names, frame_library(estimator))


def _check_frozen(step):
    """Raise `ValueError` if a frozen step was fitted to other columns."""
    fitted = step.estimator.estimator
    check_fitted_columns(fitted, step.form)
    if step.kind == "frozen" and of_skdp(fitted) and hasattr(fitted, "transform"):
        _check_frozen_words(fitted, step.form)


def check_fitted_columns(fitted, form):
    """Raise `ValueError` if an estimator was fitted to other columns than those of a table.

    Parameters
    ----------
    fitted : estimator
    form : TableForm
        Known facts about the table.
    """
    width = getattr(fitted, "n_features_in_", None)
    if None not in (width, form.n_columns) and width != form.n_columns:
        raise ValueError(
            f"estimator was fitted to {count_of(width, 'column')}, but the step receives "
            f"{form.n_columns}"
        )
    names = getattr(fitted, "feature_names_in_", None)
    if names is not None and form.is_frame and form.names is not None:
        fitted_names = [*names]
        table_names = [*form.names]
        if table_names != fitted_names and all(isinstance(name, str) for name in table_names):
            raise ValueError(
                f"estimator was fitted to columns {fitted_names}, but the step receives "
                f"{table_names}; pass the same columns in the same order"
            )


def _check_frozen_words(fitted, form):
    """Raise `ValueError` if columns are known to have other kinds than a frozen transformer's."""
    if form.has_known_cells and form.n_columns:
        with warnings.catch_warnings():
            # The template rows have no column names.
            warnings.simplefilter("ignore")
            fitted.transform(made_up_rows(form.kinds, examples=form.examples))


def _check_private_search(step, table):
    """Check a step that is a private search: parameters, candidates, score and splits.

    Raises `ValueError` for what the fit of the search would refuse after other steps were charged.
    """
    search = step.estimator
    search._check_parameters()
    # The plan of a split budget knows the epsilon and delta of a search only.
    _check_planned(search, guarantee_of(search).per_row.event, only_placeholders=True)
    # The fits of a search use parts of the rows.
    inner = replace(table, form=replace(step.form, n_rows=None))
    name = "estimator"
    if step.name:
        name = f"{step.name}__estimator"
    candidates = [with_params(search.estimator, params) for params in search._candidate_params()]
    params = search._routed(
        {
            key: value
            for key, value in table.step_params.get(step.name, {}).items()
            if key != "groups"
        }
    )
    # If the unit is a person, a search passes the ids by metadata routing.
    is_routed = get_config()["enable_metadata_routing"]
    if table.groups is not None:
        params = {"groups": table.groups} | params
        is_routed = True
    terms = terms_of(search.accountant)
    with config_context(enable_metadata_routing=is_routed):
        for candidate in candidates:
            # Before a fit, nothing is known about the fit's parameters.
            if table.step_params:
                charged = candidate
                if table.groups is not None:
                    # Steps request groups if the unit of their accountant is a person.
                    names = fitted_params(candidate, "accountant")
                    charged = with_params(candidate, dict.fromkeys(names, search.accountant))
                steps = params_of_steps(charged, params, name=name)
                check_fit_params(steps, ids=table.groups, terms=terms)
                inner = replace(inner, step_params={inside.name: inside.params for inside in steps})
            check_parameters(candidate, inner, prefix=name, before=step.before)
    search._check_score_and_splits(candidates, table, step.n_features)


def _check_of_sklearn(step, table):
    """Check the parameters of a step of scikit-learn."""
    estimator = step.estimator
    params = step.params
    if hasattr(estimator, "_validate_params"):
        estimator._validate_params()
    categories = params.get("categories")
    if isinstance(categories, list | tuple) and step.n_features not in (None, len(categories)):
        raise ValueError(
            f"categories has {count_of(len(categories), 'list')}, but the step receives "
            f"{count_of(step.n_features, 'column')}"
        )
    if isinstance(categories, list | tuple) and step.form.holds_numbers:
        # Only encoders whose categories are strings are accepted.
        raise ValueError(
            "categories are strings, but the step receives numeric columns, which never match; "
            "remove the step, or apply it to string columns"
        )
    check_on_templates(estimator, step.form)
    if step.kind == "learns":
        # A step named in `public_steps` is fitted to rows of this shape.
        check_on_synthetic_rows(estimator, step.form, table.form.n_rows)


def _check_declared_categories(step, plan):
    """Raise `ValueError` for declared categories that no value of the step's columns can match.

    They are strings for columns of numbers, or numbers for columns of strings. If the kinds of the
    columns are known, the step checks example rows of these kinds.
    """
    params = step.params
    form = step.form
    if form.has_known_cells and form.n_columns and not holds_for_every_shape(plan):
        rows = made_up_rows(form.kinds, examples=form.examples)
        table = ColumnTable(rows.shape, rows, names=form.names)
        # The step checks these rows, like real ones, before a charge.
        is_supervised = get_tags(step.estimator).target_tags.required
        if is_supervised:
            table = RowsAndTarget(table, np.zeros(len(rows)))
        step.estimator._check_rows(table, plan)
    elif form.holds_numbers and params.get("strategy") not in ("mean", "median", "constant"):
        # Without a known shape, there is no plan. An imputer reads categories for only one
        # strategy.
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
            "verbose_feature_names_out=True adds the names of the parts as prefixes"
        )
    accepts_labels = tags.string or tags.categorical
    for j, kind in enumerate(kinds):
        if accepts_labels:
            continue
        if kind in TIME_KINDS:
            raise times_error(column_name(j, step.form.names), kind)
        # A column of labels or objects that is known to contain strings has a string as its
        # example.
        known = kind in ("mixed", "label", "object")
        values = []
        if known:
            values = step.form.examples.get(j, [])
        elif kind == "text":
            values = ["a"]
        if not all(isinstance(value, Real) for value in values):
            raise non_numeric_error(column_name(j, step.form.names))


def _check_has_names(step):
    """Raise `ValueError` if a parameter names a column that the step's table cannot have.

    This covers arrays that an earlier step returns or whose width is unknown, and frames in which
    some names have yet to be found. Otherwise, the plan itself raises the error.
    """
    for parameter, column in columns_named(step.params):
        if step.form.names is None and isinstance(column, str) and step.form.lacks(column):
            raise ValueError(
                f"{parameter} names column {column!r}, but {possible_names(step.form)}"
            )
    if step.form.library != "" or (step.n_features is not None and not step.before):
        return
    for parameter, column in columns_named(step.params):
        if isinstance(column, str):
            raise ValueError(
                f"{parameter} names column {column!r}, but the step receives an array, whose "
                "columns have no names; call set_output(transform='pandas') on the step before, "
                "or use column positions"
            )


def _check_plan(step, table):
    """Check a private step's parameters, and the target against them, by making its plan."""
    estimator = step.estimator
    params = step.params
    guarantee = guarantee_of(estimator)
    classes = labels_of(params, table.form.classes)
    if table.has_target and get_tags(estimator).target_tags.required:
        if table.y is None:
            raise ValueError("y is required, but is None")
        if isinstance(estimator, TableEstimator):
            y = target_array(table.y)
            n_rows = n_rows_of(y)
            if n_rows is None:
                # An object that only NumPy can convert, or a single value, which the step refuses.
                n_rows = np.atleast_1d(np.asarray(y)).shape[0]
            classes, _ = estimator._read_target(y, n_rows)
    elif table.has_target and table.y is not None and hasattr(estimator, "_check_target"):
        # The step does not need a target, but uses one that is passed.
        estimator._check_target(table.y)
    unit = terms_of(estimator.accountant).unit
    shape = TableShape(
        n_rows=table.form.n_rows,
        n_columns=step.n_features,
        classes=classes,
        names=_names(step),
        kinds=_container_kinds(step.form),
    )
    _check_has_names(step)
    plan = _plan_of_any_kinds(estimator, shape, guarantee)
    _check_columns(step)
    if of_skdp(estimator) and isinstance(estimator, TableEstimator):
        _check_declared_categories(step, plan)
    if unit == "person" and not getattr(plan, "by_person", False):
        raise ValueError(
            "these parameters do not support unit='person': use an accountant with unit='row' or "
            "unit='group'"
        )
    check_output_setting(estimator, sparse=getattr(plan, "sparse_output", False))
    if None not in (shape.n_rows, shape.n_columns):
        _check_planned(estimator, plan.event)
    elif isinstance(plan.event, ApproximateDP | PureDP):
        # Otherwise the cost of a plan for an unknown shape may differ from the cost of the fit.
        _check_planned(estimator, plan.event, only_placeholders=True)


def _check_planned(estimator, event, *, only_placeholders=False):
    """Raise `ValueError` if a step's plan of a split budget does not cover a release.

    Parameters
    ----------
    estimator : estimator
    event : Event
    only_placeholders : bool, default=False
        True to skip the check if the mechanism of the release was planned.
    """
    planned = getattr(estimator.accountant, "planned", None)
    if planned is None or (only_placeholders and planned.exact):
        return
    if not planned.covers(event, terms_of(estimator.accountant).relation):
        raise ValueError(
            f"the release {event} was not planned; the plan is {planned.event}. The table's shape "
            "or dtypes, its labels or a parameter, such as epsilon, changed. Split the budget "
            "again; omit n_samples and n_features if dtypes are unknown. With unit='person', "
            "n_samples is the number of persons"
        )


def _container_kinds(form):
    """Return the kinds that the container itself shows; objects may be values of any kind."""
    if form.kinds is None:
        return None
    return ["cells" if kind == "mixed" else kind for kind in form.kinds]


def _names(step):
    """Return the names of the columns that a step receives; None if they are unknown."""
    if step.form.names is not None:
        return np.array(step.form.names, dtype=object)
    if step.form.library == "" or step.n_features is None:
        return None
    if step.form.has_names is False and step.form.empty is not None:
        return step.form.labels
    return names_in(step.params, step.n_features)


def _plan_of_any_kinds(estimator, shape, guarantee):
    """Return a plan in which columns of unknown dtype may be dates if their bounds are dates."""
    try:
        return estimator.plan_fit(shape, guarantee)
    except ValueError:
        if shape.kinds is not None or shape.n_columns is None:
            raise
        names = shape.names
        if shape.names is None:
            names = [None] * shape.n_columns
        for kinds in kinds_of_bounds(estimator.get_params(deep=False).get("bounds"), names):
            try:
                return estimator.plan_fit(replace(shape, kinds=kinds), guarantee)
            except ValueError:
                continue
        raise
