"""Check of the parameters of private members in scikit-learn's tools."""

from collections.abc import Sized
from dataclasses import replace
from itertools import islice, product

import numpy as np
from sklearn import get_config
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from skdp._data._forms import UNKNOWN_FORM
from skdp._data._lengths import check_lengths, n_rows_of
from skdp._data._tables import target_array
from skdp._tools._scores_and_folds import declared_labels_of
from skdp.pipeline._combinations import (
    check_combination,
    check_members_can_be_used,
    selected_widths,
    stacked_width,
)
from skdp.pipeline._fit_params import check_fit_params_of_charges, params_of_steps, passes_params_on
from skdp.pipeline._forms import form_of_table
from skdp.pipeline._instances import is_estimator, of_skdp, sklearn_name, step_message, with_params
from skdp.pipeline._kinds import is_private, step_kind
from skdp.pipeline._known import inner_parts, join_names
from skdp.pipeline._parameters import ANY_TABLE, PublicTable, check_fitted_columns, check_parameters
from skdp.pipeline._steps import walk_through
from skdp.utils._documents import count_of
from skdp.utils._warnings import warn_user

# Maximum number of combinations of a grid that are checked.
MOST_COMBINATIONS = 256
# scikit-learn tools whose members receive the target, or the positions of its sorted labels.
PASS_TARGET_ON = frozenset(
    "Pipeline FeatureUnion ColumnTransformer SelectFromModel RFE RFECV SequentialFeatureSelector "
    "FixedThresholdClassifier GridSearchCV RandomizedSearchCV HalvingGridSearchCV "
    "HalvingRandomSearchCV".split()
)
ENCODE_LABELS = frozenset({"VotingClassifier", "StackingClassifier"})
# Tools whose members receive one column of the target, or 1 for one label and 0 for the others.
SPLIT_COLUMNS = frozenset(
    {"MultiOutputClassifier", "MultiOutputRegressor", "ClassifierChain", "RegressorChain"}
)
SPLIT_LABELS = frozenset({"OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier"})
# Tools that accept only labels as the target, or only two, and tools that pass their table on
# unchanged.
NEED_LABELS = ENCODE_LABELS | SPLIT_LABELS
NEED_TWO_LABELS = frozenset({"FixedThresholdClassifier"})
PASS_TABLE_ON = frozenset(
    "FeatureUnion VotingClassifier VotingRegressor StackingClassifier StackingRegressor "
    "OneVsRestClassifier MultiOutputClassifier MultiOutputRegressor SelectFromModel "
    "TransformedTargetRegressor FixedThresholdClassifier".split()
)
# Tools that fit their member to some of the columns, and those whose members may be fitted before.
SELECT_COLUMNS = frozenset({"RFE", "RFECV", "SequentialFeatureSelector"})
PREFIT_BY_FOLDS = frozenset(
    {"StackingClassifier", "StackingRegressor", "TunedThresholdClassifierCV"}
)
CHAINS = frozenset({"ClassifierChain", "RegressorChain"})
# Members of these tools that receive a different table.
RECEIVE_OTHER_TABLES = frozenset({"final_estimator", "transformer"})


def check_tool(tool, y=None, params=None, method="fit", X=None):
    """Raise the errors that a tool's private members would raise for their parameters or fits.

    Parameters
    ----------
    tool : estimator
        An estimator of scikit-learn that fits other estimators.
    y : array-like, default=None
        Target of its fit, None if there is none.
    params : dict, default=None
        Further parameters of its fit, which containers, and the tools of `TOOLS`, pass on by
        known rules.
    method : str, default="fit"
        The method of the tool that was called.
    X : table, default=None
        Table of its fit, None if unknown.
    """
    if method == "partial_fit":
        # Members of other tools receive the same parameters and labels, so the first one fails.
        if sklearn_name(tool) == "MultiOutputClassifier":
            _check_outputs(tool, y, (params or {}).get("classes"))
        return
    is_checked = hasattr(tool, "judges_steps")
    is_container = isinstance(tool, Pipeline | FeatureUnion | ColumnTransformer)
    if (is_container or passes_params_on(tool)) and not is_checked:
        check_fit_params_of_charges(params_of_steps(tool, params or {}, method))
        n_rows = n_rows_of(X)
        if n_rows is not None:
            check_lengths(n_rows, y=y)
    has_target = _passes_target_on(tool)
    check_members(tool, PublicTable(form=_known_form(X), has_target=has_target, y=y))


def _check_outputs(tool, y, classes):
    """Raise `ValueError` if `partial_fit` of an output refuses its labels.

    Parameters
    ----------
    tool : MultiOutputClassifier
    y : array-like of shape (n_samples, n_outputs)
    classes : sequence of array-like, or None
        Labels of each output. The outputs of an earlier call have them.
    """
    members = getattr(tool, "estimators_", None)
    for i, column in enumerate(targets_of_members(tool, y)):
        member = tool.estimator if members is None else members[i]
        if column is None or not (of_skdp(member) and is_private(member)):
            continue
        declared = [member.classes, getattr(member, "classes_", None)]
        if classes is not None:
            declared.append(classes[i])
        sets = [np.unique(labels) for labels in declared if labels is not None]
        if not sets:
            # The first output refuses it.
            continue
        name = f"classes[{i}]"
        if not all(np.array_equal(labels, sets[0]) for labels in sets):
            described = " and ".join(map(str, sets))
            raise ValueError(
                f"{name}: classes differ: {described}; all calls of partial_fit and the parameter "
                "classes must have the same"
            )
        declaring = with_params(member, {"classes": sets[0].tolist()})
        check_parameters(declaring, PublicTable(has_target=True, y=column), prefix=name)


def _known_form(X):
    """Return the form of a table, with a string as the example of each object column of strings.

    Only checks use this form, never a plan. A single string makes a fit to numbers fail, just as it
    does in the member that receives the column, but that would be after the charges of earlier
    members.
    """
    try:
        form = form_of_table(X)
        examples = dict(form.examples)
        for j, kind in enumerate(form.kinds or ()):
            if kind == "object" and _holds_strings(X, j):
                examples[j] = ["a"]
    except (TypeError, ValueError):
        # The member that receives the table will refuse it.
        return UNKNOWN_FORM
    return replace(form, examples=examples)


def _holds_strings(X, j):
    """Return True if a cell of an object column of a pandas frame in memory is a string."""
    if not hasattr(X, "iloc") or not isinstance(X.index, Sized):
        return False
    return any(isinstance(value, str) for value in X.iloc[:, j].tolist())


def check_members(tool, table=ANY_TABLE, name=""):
    """Raise `ValueError` if a private estimator inside a tool refuses a parameter or the target.

    Members may receive any number of rows. Their columns are known if the tool passes its table on
    unchanged or, in a container, if the preceding steps state their output.

    Parameters
    ----------
    tool : estimator
        An estimator of scikit-learn that fits other estimators.
    table : PublicTable, default=ANY_TABLE
        Known facts about the table and the target of its fit.
    name : str, default=""
        Name of the tool, as in `set_params`.
    """
    if of_skdp(tool) and is_private(tool):
        has_target = table.has_target or table.y is not None
        check_parameters(tool, replace(table, has_target=has_target), prefix=name)
        return
    if isinstance(tool, FrozenEstimator):
        _check_fitted(tool, tool, table, name)
        return
    if name:
        # scikit-learn checked the tool's own parameters when its fit began.
        _check_of_sklearn(tool, name)
        try:
            check_combination(tool, table)
        except (TypeError, ValueError) as error:
            raise ValueError(step_message(name, error)) from error
    if _is_prefit(tool):
        _check_target(tool, table, name)
        for part, member in inner_parts(tool):
            if part not in RECEIVE_OTHER_TABLES:
                _check_fitted(member, tool, table, join_names(name, part))
        return
    try:
        check_members_can_be_used(tool, table)
    except ValueError as error:
        raise ValueError(step_message(name or sklearn_name(tool), error)) from error
    _check_target(tool, table, name)
    form = table.form
    has_target = table.has_target and _passes_target_on(tool)
    first, *others = targets_of_members(tool, table.y)
    inner = PublicTable(form=form, has_target=has_target, y=first)
    if step_kind(tool) != "container":
        _check_published_models(tool, name)
    if hasattr(tool, "param_grid") or hasattr(tool, "param_distributions"):
        _check_candidates(tool, inner, name)
        return
    if step_kind(tool) == "container":
        _check_steps(tool, inner, name)
        return
    for part, member in inner_parts(tool):
        if is_estimator(member):
            for inner_form, y in product(_forms_of_member(tool, part, table), (first, *others)):
                member_table = replace(inner, form=inner_form, y=y)
                check_members(member, member_table, join_names(name, part))


def _passes_target_on(tool):
    """Return True for a tool whose members receive its target, also for imblearn's pipeline."""
    is_container = isinstance(tool, Pipeline | FeatureUnion | ColumnTransformer)
    return is_container or sklearn_name(tool) in PASS_TARGET_ON


def _is_prefit(tool):
    """Return True for a tool whose members were fitted earlier and are not fitted again."""
    is_by_folds = sklearn_name(tool) in PREFIT_BY_FOLDS and _is_text(tool, "cv", "prefit")
    return getattr(tool, "prefit", None) is True or is_by_folds


def _check_fitted(model, tool, table, name):
    """Raise `ValueError` if a model that a tool does not fit is not fitted, or to other columns.

    Parameters
    ----------
    model : estimator, "passthrough" or "drop"
    tool : estimator
        The tool that uses the model, or the model itself.
    table : PublicTable
    name : str
        Name of the model, as in `set_params`.
    """
    if not is_estimator(model):
        return
    form = UNKNOWN_FORM
    if model is tool or sklearn_name(tool) in PASS_TABLE_ON:
        form = table.form
    try:
        check_is_fitted(model)
        check_fitted_columns(model, form)
    except ValueError as error:
        raise ValueError(step_message(name or sklearn_name(tool), error)) from error


def _forms_of_member(tool, part, table):
    """Return the forms of the tables that a tool may pass to a member, a list.

    Parameters
    ----------
    tool : estimator
    part : str
        Name of the member, or of the parameter that holds it.
    table : PublicTable
        Known facts about the table and the target of the tool's fit.
    """
    kind = sklearn_name(tool)
    form = table.form
    if part == "final_estimator":
        width = stacked_width(tool, form.n_columns, count_labels(tool, table.y))
        return [UNKNOWN_FORM if width is None else form_of_table(np.empty((0, width)))]
    widths = []
    if kind in SELECT_COLUMNS:
        widths = selected_widths(tool, form.n_columns)
    elif kind in CHAINS and form.n_columns is not None:
        # Each member also receives a column for each target before its own.
        n_targets = len(targets_of_members(tool, table.y))
        widths = sorted({form.n_columns, form.n_columns + n_targets - 1})
    # Selections and chains pass arrays on.
    if widths:
        return [
            replace(form_of_table(np.empty((0, width))), is_sparse=form.is_sparse)
            for width in widths
        ]
    if kind in PASS_TABLE_ON and part not in RECEIVE_OTHER_TABLES:
        return [form]
    return [UNKNOWN_FORM]


def count_labels(tool, y):
    """Return the number of labels of a tool's target; None if it is unknown.

    Labels that a private classifier declares must occur. Without a declaration, the labels that
    occur are public.
    """
    for labels in declared_labels_of(tool):
        if labels is not None:
            return len(labels)
    try:
        labels = target_array(y)
        return len(np.unique(labels)) if labels.ndim == 1 else None
    except (TypeError, ValueError, AttributeError):
        # The tool or its members raise an error for such a target.
        return None


def _check_published_models(tool, name):
    """Raise `ValueError` if a member of a tool is a private search that may publish no model.

    The tool would detect this after its members were charged, when it predicts or scores.
    """
    for part, member in inner_parts(tool):
        last = member
        while isinstance(last, Pipeline) and last.steps:
            last = last.steps[-1][1]
        if getattr(last, "may_publish_no_model", False):
            inner_name = join_names(name, part)
            raise ValueError(
                f"step {inner_name!r}: {type(tool).__name__} predicts with its members, but a "
                f"{type(last).__name__} with strategy='cv', which strategy='auto' may choose, "
                "publishes no model with refit=False: set refit=True"
            )


def _check_candidates(search, table, name):
    """Raise the error of the first candidate of a search that would fail, or warn about it.

    With an `error_score` other than "raise", a search continues after an error, and the other
    candidates are charged.
    """
    stops = _is_text(search, "error_score", "raise")
    _check_names_in_grids(search, name)
    # A search raises this error at the start of its fit. In a pipeline, earlier steps may have been
    # charged by then.
    for candidate in listed_candidates(search, name):
        try:
            check_members(candidate, table, join_names(name, "estimator"))
        except (TypeError, ValueError) as error:
            if stops:
                raise
            warn_user(
                f"{name or type(search).__name__}: a candidate would fail ({error}). The search "
                "continues after an error, and the other candidates are charged: correct the "
                "parameter, or set error_score='raise'"
            )
            return


def _check_names_in_grids(search, name):
    """Raise `ValueError` if a grid of a search names a parameter that its estimator does not have.

    A search sets the parameters of a candidate just before it fits this candidate, and raises the
    error for any value of `error_score`. By then, the candidates of other grids may have been
    charged. A grid is refused if all of its combinations fail, since a randomized search may never
    draw a single one.
    """
    for listed, drawn in _split_grids(search):
        first_error = None
        for params in _listed_combinations([listed]):
            try:
                candidate = with_params(search.estimator, params)
                for parameter in drawn:
                    with_params(candidate, {parameter: None})
            except (TypeError, ValueError, AttributeError) as error:
                first_error = first_error or error
            else:
                break
        else:
            if first_error is not None:
                title = name or type(search).__name__
                raise ValueError(step_message(title, first_error)) from first_error


def _split_grids(search):
    """Return a pair for each grid of a search: its listed values, and the names of the others.

    The values of the others are drawn from distributions.
    """
    grids = getattr(search, "param_grid", None)
    if grids is None:
        grids = getattr(search, "param_distributions", {})
    if isinstance(grids, dict):
        grids = [grids]
    try:
        return [
            (
                {name: values for name, values in grid.items() if not hasattr(values, "rvs")},
                [name for name, values in grid.items() if hasattr(values, "rvs")],
            )
            for grid in grids
        ]
    except (TypeError, AttributeError):
        # The search itself refuses the grid before its first fit.
        return []


def _listed_combinations(grids):
    """Return the first combinations of the listed values of grids, as an iterable of dicts."""
    try:
        return islice(ParameterGrid(grids), MOST_COMBINATIONS)
    except (TypeError, ValueError, AttributeError):
        # The search itself refuses the grid before its first fit.
        return []


def _check_steps(container, table, name):
    """Raise `ValueError` if a step of a container refuses a parameter or its columns.

    Each step is checked using the facts that previous steps state about the table that reaches it.
    """
    walk = walk_through(container, name, form=table.form_with_labels(container))
    for step, error in walk.refusals:
        raise ValueError(step_message(step.title, error)) from error
    for step in walk.steps:
        # A ColumnTransformer does not fit a part that receives no column.
        if is_estimator(step.estimator) and not (step.n_features == 0 and step.fits == 0):
            check_members(step.estimator, replace(table, form=step.form), step.name)


def _check_of_sklearn(estimator, name):
    """Raise `ValueError` for a parameter that the fit of a scikit-learn estimator refuses.

    A fit begins with the same check.
    """
    is_skipped = get_config()["skip_parameter_validation"]
    if is_skipped or not (sklearn_name(estimator) and hasattr(estimator, "_parameter_constraints")):
        return
    try:
        estimator._validate_params()
    except ValueError as error:
        raise ValueError(step_message(name, error)) from error


def _check_target(tool, table, name):
    """Raise `ValueError` if a scikit-learn tool that follows other steps has no valid target."""
    kind = sklearn_name(tool)
    if not kind or isinstance(tool, Pipeline | FeatureUnion | ColumnTransformer):
        return
    title = name or kind
    if table.has_target and table.y is None and get_tags(tool).target_tags.required:
        raise ValueError(step_message(title, "y is required, but is None"))
    if kind in NEED_LABELS and table.y is not None:
        try:
            check_classification_targets(target_array(table.y))
        except (TypeError, ValueError) as error:
            raise ValueError(step_message(title, error)) from error
    if kind in ENCODE_LABELS and np.ndim(table.y) == 1:
        _check_all_classes_occur(tool, table.y, title)
    if kind in SPLIT_LABELS | NEED_TWO_LABELS:
        _check_two_classes(tool, title)
    if kind in NEED_TWO_LABELS and np.ndim(table.y) == 1:
        n_labels = len(np.unique(target_array(table.y)))
        if n_labels > 2:
            refusal = ValueError(f"it accepts two labels, and y holds {n_labels}")
            raise ValueError(step_message(title, refusal))


def _check_two_classes(tool, title):
    """Raise `ValueError` if a classifier declares more labels than the two that it may receive.

    A tool that splits labels reads a single column of its scores, and would fail or return wrong
    labels.
    """
    for classes in declared_labels_of(tool):
        if classes is not None and len(np.unique(classes)) > 2:
            counted = count_of(len(np.unique(classes)), "class", "classes")
            if sklearn_name(tool) in NEED_TWO_LABELS:
                error = ValueError(f"it accepts two labels, but its classifier declares {counted}")
                raise ValueError(step_message(title, error))
            error = ValueError(
                f"its classifiers receive two labels, 0 and 1, but one declares {counted}: use "
                "classes=[0, 1] or, to keep secret which labels occur, the private classifier "
                "alone, which accepts several labels"
            )
            raise ValueError(step_message(title, error))


def _check_all_classes_occur(tool, y, title):
    """Raise `ValueError` if a member declares more classes than the target has.

    The tool replaces each label by its position among the labels that occur. If a declared label is
    missing, a single row with this label would change the labels of other rows. Also,
    `cross_val_predict`, which a stack calls, would fail after the member was charged.
    """
    n_labels = len(np.unique(target_array(y)))
    members = [*tool.estimators, ("final_estimator", getattr(tool, "final_estimator", None))]
    for name, member in members:
        for classes in declared_labels_of(member):
            if classes is not None and len(np.unique(classes)) > n_labels:
                error = ValueError(
                    f"{name!r} declares {count_of(len(np.unique(classes)), 'class', 'classes')}, "
                    f"and y holds {n_labels}: "
                    f"{type(tool).__name__} replaces each label by its position among the labels "
                    "that occur. Leave classes out if it is public which labels occur, or fit each "
                    "classifier alone"
                )
                raise ValueError(step_message(title, error))


def targets_of_members(tool, y):
    """Return the targets that a tool passes to its members, with None for unknown ones."""
    kind = sklearn_name(tool)
    if _passes_target_on(tool) or y is None:
        return [y]
    try:
        if kind in ENCODE_LABELS:
            return [np.unique(column_or_1d(target_array(y)), return_inverse=True)[1]]
        if kind in SPLIT_COLUMNS and np.ndim(y) == 2:
            return [target_array(column) for column in np.asarray(y).T] or [None]
        if kind in SPLIT_LABELS and np.ndim(y) == 1 and len(np.unique(y)) > 1:
            # All private classifiers receive the labels 0 and 1.
            return [np.arange(len(y)) % 2]
    except (TypeError, ValueError):
        # The tool itself refuses such a target before its first fit.
        pass
    return [None]


def listed_candidates(search, name=""):
    """Yield the estimators that a scikit-learn search may fit, with the settings that it lists.

    Parameters with a distribution keep the values of the search's estimator.

    Parameters
    ----------
    search : estimator
    name : str, default=""
        Name of the search in a pipeline or an ensemble. A parameter that does not exist raises
        `ValueError`, except for a search without a name that draws its candidates.
    """
    for params in _listed_combinations([listed for listed, _ in _split_grids(search)]):
        try:
            yield with_params(search.estimator, params)
        except (TypeError, ValueError, AttributeError) as error:
            # A grid search would raise the error after the charges of earlier candidates. A
            # randomized search may never draw this candidate.
            if name or hasattr(search, "param_grid"):
                title = name or type(search).__name__
                raise ValueError(step_message(title, error)) from error


def _is_text(tool, parameter, text):
    """Return True if a parameter is this text; other values need not be comparable with it."""
    value = getattr(tool, parameter, None)
    return isinstance(value, str) and value == text
