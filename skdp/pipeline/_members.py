"""The check of the parameters of the private members of scikit-learn's tools."""

from dataclasses import replace
from itertools import islice

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import column_or_1d, get_tags
from sklearn.utils.multiclass import check_classification_targets

from skdp._data._forms import UNKNOWN_FORM
from skdp._data._lengths import check_lengths, n_rows_of
from skdp._data._tables import target_array
from skdp.pipeline._fit_params import check_fit_params_of_charges, fits_members, params_of_steps
from skdp.pipeline._forms import form_of_table
from skdp.pipeline._instances import is_estimator, of_skdp, sklearn_name, step_message, with_params
from skdp.pipeline._kinds import is_private
from skdp.pipeline._known import inner_parts, join_names
from skdp.pipeline._parameters import ANY_TABLE, PublicTable, check_parameters

# Maximum number of combinations of a grid that are checked.
MOST_COMBINATIONS = 256
# Tools of scikit-learn whose members receive its target, or the positions of its sorted labels.
PASS_TARGET_ON = frozenset(
    {"Pipeline", "FeatureUnion", "ColumnTransformer", "SelectFromModel", "GridSearchCV"}
)
ENCODE_LABELS = frozenset({"VotingClassifier", "StackingClassifier"})
# Tools that refuse targets that are no labels, and those that pass their table on unchanged.
NEED_LABELS = ENCODE_LABELS | {"OneVsRestClassifier", "OneVsOneClassifier", "OutputCodeClassifier"}
PASS_TABLE_ON = frozenset(
    "FeatureUnion VotingClassifier VotingRegressor StackingClassifier StackingRegressor "
    "OneVsRestClassifier MultiOutputClassifier MultiOutputRegressor SelectFromModel "
    "TransformedTargetRegressor".split()
)
# Members of these tools that receive another table.
RECEIVE_OTHER_TABLES = frozenset({"final_estimator", "transformer"})


def check_tool(tool, y=None, params=None, method="fit", X=None):
    """Raise the errors of a tool's private members for their parameters, and those of their fits.

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
    is_checked = hasattr(tool, "judges_steps")
    is_container = isinstance(tool, Pipeline | FeatureUnion | ColumnTransformer)
    if (is_container or fits_members(tool)) and not is_checked:
        check_fit_params_of_charges(params_of_steps(tool, params or {}, method))
        n_rows = n_rows_of(X)
        if n_rows is not None:
            check_lengths(n_rows, y=y)
    has_target = sklearn_name(tool) in PASS_TARGET_ON
    check_members(tool, PublicTable(form=_known_form(X), has_target=has_target, y=y))


def _known_form(X):
    try:
        return form_of_table(X)
    except (TypeError, ValueError):
        # The member that receives the table refuses it.
        return UNKNOWN_FORM


def check_members(tool, table=ANY_TABLE, name=""):
    """Raise `ValueError` if a private estimator inside a tool refuses a parameter or the target.

    Members may receive any number of rows. Their columns are known if the tool passes its table on
    unchanged.

    Parameters
    ----------
    tool : estimator
        An estimator of scikit-learn that fits other estimators.
    table : PublicTable, default=ANY_TABLE
        Known facts of the table and the target of its fit.
    name : str, default=""
        Name of the tool, as in `set_params`.
    """
    # The model of a prefit tool was fitted before, and a checked container checks its own steps.
    is_prefit = getattr(tool, "prefit", None) is True or _is_text(tool, "cv", "prefit")
    if is_prefit or isinstance(tool, FrozenEstimator):
        return
    if of_skdp(tool) and is_private(tool):
        has_target = table.has_target or table.y is not None
        check_parameters(tool, replace(table, has_target=has_target), prefix=name)
        return
    _check_target(tool, table, name)
    form = table.form
    y = _target_of_members(tool, table.y)
    has_target = table.has_target and sklearn_name(tool) in PASS_TARGET_ON
    if hasattr(tool, "param_grid") or hasattr(tool, "param_distributions"):
        # With another `error_score`, a search goes on after an error.
        if _is_text(tool, "error_score", "raise"):
            inner_name = join_names(name, "estimator")
            for candidate in listed_candidates(tool):
                inner = PublicTable(form=form, has_target=has_target, y=y)
                check_members(candidate, inner, inner_name)
        return
    for position, (part, member) in enumerate(inner_parts(tool)):
        if is_estimator(member):
            inner_form = form if _passes_table_on(tool, part, position) else UNKNOWN_FORM
            inner = PublicTable(form=inner_form, has_target=has_target, y=y)
            check_members(member, inner, join_names(name, part))


def _passes_table_on(tool, part, position):
    """Return True if a tool passes its table on to a member, with the same columns."""
    if part in RECEIVE_OTHER_TABLES:
        return False
    is_first_step = isinstance(tool, Pipeline) and position == 0
    return is_first_step or sklearn_name(tool) in PASS_TABLE_ON


def _check_target(tool, table, name):
    """Raise `ValueError` if a tool of scikit-learn behind other steps has no valid target."""
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


def _target_of_members(tool, y):
    """Return the target that a tool passes to its members, or None if it is unknown."""
    kind = sklearn_name(tool)
    if kind in PASS_TARGET_ON or y is None:
        return y
    if kind not in ENCODE_LABELS:
        return None
    try:
        return np.unique(column_or_1d(target_array(y)), return_inverse=True)[1]
    except (TypeError, ValueError):
        # The tool refuses such a target itself, before its first fit.
        return None


def listed_candidates(search):
    """Yield the estimators that a search of scikit-learn may fit, with the settings it lists.

    Of the parameters with a distribution, those of the search's estimator are taken.
    """
    grids = getattr(search, "param_grid", None)
    if grids is None:
        grids = getattr(search, "param_distributions", {})
    grids = [grids] if isinstance(grids, dict) else grids
    try:
        listed = [
            {name: values for name, values in grid.items() if not hasattr(values, "rvs")}
            for grid in grids
        ]
        combinations = ParameterGrid(listed)
    except (TypeError, ValueError, AttributeError):
        # The search refuses the grid itself, before its first fit.
        return
    for params in islice(combinations, MOST_COMBINATIONS):
        try:
            yield with_params(search.estimator, params)
        except (TypeError, ValueError, AttributeError):
            # scikit-learn names the parameter that does not exist.
            continue


def _is_text(tool, parameter, text):
    value = getattr(tool, parameter, None)
    return isinstance(value, str) and value == text
