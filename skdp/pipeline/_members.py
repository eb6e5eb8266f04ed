"""The check of the parameters of the private members of scikit-learn's tools."""

from itertools import islice

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import column_or_1d

from skdp._data._tables import target_array
from skdp.pipeline._fit_params import check_fit_params_of_charges, fits_members, params_of_steps
from skdp.pipeline._instances import is_estimator, of_skdp, sklearn_name, with_params
from skdp.pipeline._kinds import is_private
from skdp.pipeline._known import inner_parts, join_names
from skdp.pipeline._parameters import PublicTable, check_parameters

# Maximum number of combinations of a grid that are checked.
MOST_COMBINATIONS = 256
# Tools of scikit-learn whose members receive its target, or the positions of its sorted labels.
PASS_TARGET_ON = frozenset(
    {"Pipeline", "FeatureUnion", "ColumnTransformer", "SelectFromModel", "GridSearchCV"}
)
ENCODE_LABELS = frozenset({"VotingClassifier", "StackingClassifier"})


def check_tool(tool, y=None, params=None, method="fit"):
    """Raise the errors of a tool's private members for their parameters, and those of their fits.

    Parameters
    ----------
    tool : estimator
        An estimator of scikit-learn that fits other estimators.
    y : array-like, default=None
        Target of its fit, None if unknown.
    params : dict, default=None
        Further parameters of its fit, which containers, and the tools of `TOOLS`, pass on by
        known rules.
    method : str, default="fit"
        The method of the tool that was called.
    """
    is_checked = hasattr(tool, "judges_steps")
    is_container = isinstance(tool, Pipeline | FeatureUnion | ColumnTransformer)
    if (is_container or fits_members(tool)) and not is_checked:
        check_fit_params_of_charges(params_of_steps(tool, params or {}, method))
    check_members(tool, y)


def check_members(tool, y=None, name=""):
    """Raise `ValueError` if a private estimator inside a tool refuses a parameter or the labels.

    Each member is checked as for a table of unknown shape, as members may receive any rows.

    Parameters
    ----------
    tool : estimator
        An estimator of scikit-learn that fits other estimators.
    y : array-like, default=None
        Target of its fit, None if unknown.
    name : str, default=""
        Name of the tool, as in `set_params`.
    """
    # The model of a prefit tool was fitted before, and a checked container checks its own steps.
    is_prefit = getattr(tool, "prefit", None) is True or _is_text(tool, "cv", "prefit")
    if is_prefit or isinstance(tool, FrozenEstimator):
        return
    if of_skdp(tool) and is_private(tool):
        check_parameters(tool, PublicTable(has_target=y is not None, y=y), prefix=name)
        return
    y = _target_of_members(tool, y)
    if hasattr(tool, "param_grid") or hasattr(tool, "param_distributions"):
        # With another `error_score`, a search goes on after an error.
        if _is_text(tool, "error_score", "raise"):
            inner_name = join_names(name, "estimator")
            for candidate in listed_candidates(tool):
                check_members(candidate, y, inner_name)
    else:
        for part, inner in inner_parts(tool):
            if is_estimator(inner):
                check_members(inner, y, join_names(name, part))


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
            {
                name: values
                for name, values in grid.items()
                if not hasattr(values, "rvs")
            }
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
