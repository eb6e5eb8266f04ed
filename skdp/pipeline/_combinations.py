"""Parameters of scikit-learn's tools that are each valid, but not together or for their table.

scikit-learn finds such errors only in the fit of the tool. In a pipeline, this comes after the
charges of the steps before it.
"""

from inspect import signature
from numbers import Integral, Real

import numpy as np
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import ParameterGrid, ParameterSampler

from skdp._tools._parts import copy_parts, nested_parts
from skdp.pipeline._instances import is_estimator, of_skdp, sklearn_name
from skdp.utils._documents import count_of

# The estimators that stacks fit if `final_estimator` is None.
DEFAULT_FINALS = {"StackingClassifier": LogisticRegression, "StackingRegressor": RidgeCV}
# Tools that fit a model to predictions for each row by models which have not seen the row.
NEED_PREDICTIONS = frozenset(
    {"StackingClassifier", "StackingRegressor", "ClassifierChain", "RegressorChain"}
)
# Splitters of scikit-learn whose test sets do not contain each row once. Those that need groups are
# recognized by their names.
INCOMPLETE_FOLDS = frozenset(
    {
        "RepeatedKFold",
        "RepeatedStratifiedKFold",
        "ShuffleSplit",
        "StratifiedShuffleSplit",
        "TimeSeriesSplit",
    }
)
USE_FOLDS = "use cv=KFold(5, shuffle=True, random_state=0)"


def check_combination(tool, table):
    """Raise `ValueError` for parameters of a tool that its fit is known to refuse.

    Parameters
    ----------
    tool : estimator
    table : PublicTable
        Known facts about the table and the target of its fit.
    """
    check = CHECKS.get(sklearn_name(tool))
    if check is not None:
        check(tool, table)


def check_members_can_be_used(tool, table):
    """Raise `ValueError` if a tool cannot use its members once they are fitted.

    A member lacks a method or an attribute that the tool reads, or the folds do not yield the
    predictions that the tool needs. scikit-learn detects this only after the charges of the
    members.

    Parameters
    ----------
    tool : estimator
    table : PublicTable
        Known facts about the table and the target of its fit.
    """
    name = sklearn_name(tool)
    if name in METHOD_CHECKS:
        METHOD_CHECKS[name](tool)
    if name in NEED_PREDICTIONS:
        _check_folds_of_predictions(tool, table)


def _check_folds_of_predictions(tool, table):
    """Raise `ValueError` unless folds put each row into one test set, without knowing groups."""
    cv = tool.cv
    name = type(tool).__name__
    kind = sklearn_name(cv)
    n_rows = _n_rows(table)
    if isinstance(cv, str) and "Chain" in name:
        raise ValueError(f"cv={cv!r}, but a {name} always fits its members: use None, or folds")
    if "Group" in kind:
        raise ValueError(f"cv is a {kind}, but a {name} passes no groups to it: {USE_FOLDS}")
    if kind in INCOMPLETE_FOLDS or _repeats_tests(cv) or _lists_no_partition(cv, n_rows):
        described = kind or "list of folds"
        raise ValueError(
            f"cv is a {described} in which a row is not in exactly one test set, so a {name} has "
            f"no prediction, or several, for this row: {USE_FOLDS}"
        )
    _check_number_of_folds(tool, table)


def _check_number_of_folds(tool, table):
    """Raise `ValueError` if there are more folds than rows."""
    n_rows = _n_rows(table)
    n_folds = tool.cv
    if sklearn_name(tool.cv) in ("KFold", "StratifiedKFold"):
        n_folds = tool.cv.n_splits
    if n_rows is not None and isinstance(n_folds, Integral) and n_folds > n_rows:
        raise ValueError(f"cv has {count_of(n_folds, 'fold')}, more than the {n_rows} rows")


def _repeats_tests(cv):
    """Return True for a splitter that leaves out several rows at a time, in all combinations."""
    return sklearn_name(cv) == "LeavePOut" and cv.p > 1


def _lists_no_partition(cv, n_rows):
    """Return True for listed folds, which are public, whose test sets are no partition."""
    if sklearn_name(cv) == "PredefinedSplit":
        return bool(np.any(np.asarray(cv.test_fold) == -1))
    if not isinstance(cv, list | tuple) or n_rows is None:
        return False
    try:
        tests = np.concatenate([test for _, test in cv])
        if tests.dtype == bool:
            # scikit-learn refuses masks, too.
            return True
        # Negative numbers count from the end.
        tested = np.sort(np.arange(n_rows)[tests])
    except (TypeError, ValueError, IndexError):
        # The tool itself refuses other values.
        return False
    return not np.array_equal(tested, np.arange(n_rows))


def _check_methods_of_stack(stack):
    """Raise `ValueError` if a member of a stack lacks the method that its `stack_method` names."""
    method = stack.stack_method
    if method == "auto":
        return
    for name, member in stack.estimators:
        # scikit-learn also looks at the member before its fit.
        if not isinstance(member, str) and not hasattr(member, method):
            remedy = "use stack_method='auto'"
            raise _missing_method(f"stack_method={method!r}", name, member, method, remedy)


def _check_methods_of_votes(ensemble):
    """Raise `ValueError` if a voter lacks the probabilities that soft votes need."""
    if ensemble.voting != "soft":
        return
    method = "predict_proba"
    for name, member in ensemble.estimators:
        if not isinstance(member, str) and not _has_method(member, method):
            remedy = "use voting='hard', or leave this classifier out"
            raise _missing_method("voting='soft'", name, member, method, remedy)


def _check_method_of_threshold(classifier):
    """Raise `ValueError` if the classifier lacks the method that `response_method` names."""
    method = classifier.response_method
    member = classifier.estimator
    if method != "auto" and not _has_method(member, method):
        setting = f"response_method={method!r}"
        remedy = "use response_method='auto'"
        raise _missing_method(setting, "estimator", member, method, remedy)


def _check_method_of_self_training(classifier):
    """Raise `ValueError` if the classifier of a self-training one lacks probabilities."""
    method = "predict_proba"
    member = classifier.estimator
    if not _has_method(member, method):
        setting = "SelfTrainingClassifier chooses labels by probabilities"
        remedy = "use a classifier that has it"
        raise _missing_method(setting, "estimator", member, method, remedy)


def _check_covariance(model):
    """Raise `ValueError` if the covariance estimator is a private one."""
    estimator = model.covariance_estimator
    if of_skdp(estimator):
        raise ValueError(
            f"covariance_estimator is a {type(estimator).__name__}, whose fit has no attribute "
            "covariance_: use DPGaussianNB or DPLogisticRegression in place of the discriminant "
            "analysis"
        )


def _missing_method(setting, name, member, method, remedy):
    """Return the error of a setting for which a member has no method."""
    return ValueError(
        f"{setting}, but {name!r}, a {type(member).__name__}, has no {method}: {remedy}"
    )


def _has_method(member, method):
    """Return True if an estimator will have a method once it is fitted.

    A stack without a `final_estimator` lacks the methods of its default one before its fit.
    """
    if hasattr(member, method):
        return True
    if not is_estimator(member):
        return False
    filled = copy_parts(member)
    for part in (filled, *nested_parts(filled).values()):
        name = sklearn_name(part)
        if name in DEFAULT_FINALS and part.final_estimator is None:
            part.final_estimator = DEFAULT_FINALS[name]()
    return hasattr(filled, method)


def _check_target_functions(regressor, table):
    """Raise `ValueError` if a target has both a transformer and functions, or only one function."""
    functions = (regressor.func, regressor.inverse_func)
    n_functions = sum(function is not None for function in functions)
    if regressor.transformer is not None and n_functions:
        raise ValueError("transformer and func or inverse_func are both set: set one of them")
    if n_functions == 1:
        raise ValueError("func and inverse_func must be set together: one of them is None")


def _check_members(ensemble, table):
    """Raise `ValueError` if names of members repeat, or if weights are of another number."""
    ensemble._validate_names([name for name, _ in ensemble.estimators])
    weights = getattr(ensemble, "weights", None)
    n_members = len(ensemble.estimators)
    if weights is not None and len(weights) != n_members:
        raise ValueError(
            f"weights has {count_of(len(weights), 'number')} for {count_of(n_members, 'estimator')}"
        )


def _check_votes(ensemble, table):
    """Raise `ValueError` for wrong members, or for a target of several columns."""
    _check_members(ensemble, table)
    if _n_outputs(table) not in (None, 1):
        raise ValueError(f"y has {count_of(_n_outputs(table), 'column')}, but one is expected")


def _check_sklearn_search(search, table):
    """Raise `ValueError` for parameters that a search of scikit-learn refuses only in its fit."""
    _check_number_of_folds(search, table)
    if hasattr(search, "param_grid"):
        ParameterGrid(search.param_grid)
    else:
        ParameterSampler(search.param_distributions, 1)
    scoring = search.scoring
    if isinstance(scoring, dict | list | tuple | set):
        names = list(scoring)
        is_named = search.refit is False or callable(search.refit) or search.refit in names
        if not is_named:
            raise ValueError(f"refit={search.refit!r} is not one of the scores {names}, or False")
    n_rows = None
    if table.y is not None:
        n_rows = len(table.y)
    smallest = getattr(search, "min_resources", None)
    counts_rows = getattr(search, "resource", None) == "n_samples"
    if counts_rows and n_rows and isinstance(smallest, Integral) and smallest > n_rows:
        raise ValueError(f"min_resources={smallest} is more than the {n_rows} rows")


def _check_two_columns(selector, table):
    """Raise `ValueError` if the table is known to have fewer than two columns."""
    n_columns = table.form.n_columns
    if n_columns is not None and n_columns < 2:
        raise ValueError(
            f"the table has {count_of(n_columns, 'column')}, but at least 2 are needed"
        )


def _check_scored_selection(selector, table):
    """Raise `ValueError` for fewer than two columns, or for more folds than rows."""
    _check_two_columns(selector, table)
    _check_number_of_folds(selector, table)


def _check_number_of_features(selector, table):
    """Raise `ValueError` if a sequential selection would select all columns or more."""
    _check_scored_selection(selector, table)
    n_columns = table.form.n_columns
    n_selected = selector.n_features_to_select
    is_number = isinstance(n_selected, Integral) and not isinstance(n_selected, bool)
    if is_number and n_columns and n_selected >= n_columns:
        raise ValueError(
            f"n_features_to_select={n_selected} must be less than the number of columns, "
            f"{n_columns}"
        )


def n_selected_columns(selector, n_columns):
    """Return the number of columns that a selection keeps, or the minimum for `RFECV`.

    Parameters
    ----------
    selector : RFE, RFECV, SelectFromModel or SequentialFeatureSelector
    n_columns : int or None
        Number of columns of its table; None if unknown.

    Returns
    -------
    int or None
        None if it is unknown or not valid.
    """
    if sklearn_name(selector) == "RFECV":
        n_selected = selector.min_features_to_select
    elif sklearn_name(selector) == "SelectFromModel":
        # With any other threshold, the importances also decide.
        n_selected = selector.max_features if selector.threshold == -np.inf else None
    else:
        n_selected = selector.n_features_to_select
        is_half = n_selected is None or (n_selected == "auto" and selector.tol is None)
        if is_half and n_columns is not None:
            n_selected = n_columns // 2
    if isinstance(n_selected, Integral):
        return int(n_selected)
    if isinstance(n_selected, Real) and n_columns is not None:
        return int(n_columns * n_selected)
    return None


def selected_widths(selector, n_columns):
    """Return the numbers of columns to which a selection first and last fits its estimator.

    The estimator's parameters are checked for tables of both widths. The other widths of the
    selection are between the two, and limits such as that of `n_components` grow with the width.

    Parameters
    ----------
    selector : RFE, RFECV or SequentialFeatureSelector
    n_columns : int or None
        Number of columns of its table; None if unknown.

    Returns
    -------
    list of int
        Unknown numbers are left out; the list is empty if both are unknown, and nothing is then
        known about the estimator's table.
    """
    first = n_columns
    if sklearn_name(selector) == "SequentialFeatureSelector":
        if selector.direction == "forward":
            first = 1
        elif n_columns is not None:
            first = n_columns - 1
    widths = (first, n_selected_columns(selector, n_columns))
    return [width for width in widths if width is not None and width > 0]


def stacked_width(stack, n_columns, n_labels):
    """Return the number of columns that the last estimator of a stack receives.

    Parameters
    ----------
    stack : StackingClassifier or StackingRegressor
    n_columns : int or None
        Number of columns of its table; None if unknown.
    n_labels : int or None
        Number of labels of its target; None if it is unknown, or if there are no labels.

    Returns
    -------
    int or None
        None if it is unknown.
    """
    predicts_labels = (
        sklearn_name(stack) == "StackingClassifier" and stack.stack_method != "predict"
    )
    # With two labels, the second one's probability or the decision function is one column. With
    # more labels, the methods that members have decide how many columns there are.
    if predicts_labels and n_labels != 2:
        return None
    width = sum(1 for _, member in stack.estimators if member != "drop")
    if not stack.passthrough:
        return width
    return None if n_columns is None else width + n_columns


def _check_score_function(selector, table):
    """Raise `ValueError` if `score_func` cannot be called with a table and a target."""
    function = selector.score_func
    try:
        signature(function).bind("X", "y")
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        raise ValueError(
            f"score_func is {name}, which cannot be called with X and y ({error})"
        ) from error
    except ValueError:
        # The signature of a compiled function may be unknown.
        return


def _check_selection(selector, table):
    """Raise `ValueError` for a limit or a threshold that `SelectFromModel` refuses in its fit."""
    n_columns = table.form.n_columns
    if isinstance(selector.max_features, Integral) and n_columns:
        if selector.max_features > n_columns:
            raise ValueError(
                f"max_features={selector.max_features} is more than the number of columns, "
                f"{n_columns}"
            )
    if isinstance(selector.threshold, str):
        _check_threshold(selector.threshold)


def _check_threshold(threshold):
    """Raise `ValueError` for text that is neither a statistic nor a multiple of one."""
    scale, has_scale, statistic = threshold.rpartition("*")
    is_number = True
    if has_scale:
        statistic = statistic.strip()
        try:
            float(scale.strip())
        except ValueError:
            is_number = False
    if not is_number or statistic not in ("mean", "median"):
        raise ValueError(
            f"threshold must be 'mean', 'median' or a multiple such as '1.5*mean', got "
            f"{threshold!r}"
        )


def _check_columns_of_target(tool, table):
    """Raise `ValueError` if the target does not suit a tool with several outputs."""
    n_outputs = _n_outputs(table)
    if n_outputs is None:
        return
    if np.ndim(table.y) == 1:
        raise ValueError("y has one dimension, but two are expected: one column for each output")
    order = getattr(tool, "order", None)
    is_listed = order is not None and not isinstance(order, str)
    if is_listed and sorted(order) != list(range(n_outputs)):
        raise ValueError(
            f"order={order!r} does not list each of the {count_of(n_outputs, 'output')} once"
        )


def _n_rows(table):
    """Return the number of rows of the target; None if it is unknown."""
    if table.y is None or not np.shape(table.y):
        return None
    return np.shape(table.y)[0]


def _n_outputs(table):
    """Return the number of columns of the target; None if it is unknown."""
    if table.y is None:
        return None
    shape = np.shape(table.y)
    return shape[1] if len(shape) == 2 else 1


UNIVARIATE_SELECTIONS = (
    "GenericUnivariateSelect",
    "SelectFdr",
    "SelectFpr",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
)
CHECKS = {
    "TransformedTargetRegressor": _check_target_functions,
    "VotingClassifier": _check_votes,
    "VotingRegressor": _check_members,
    "StackingClassifier": _check_members,
    "StackingRegressor": _check_members,
    "GridSearchCV": _check_sklearn_search,
    "RandomizedSearchCV": _check_sklearn_search,
    "HalvingGridSearchCV": _check_sklearn_search,
    "HalvingRandomSearchCV": _check_sklearn_search,
    "SequentialFeatureSelector": _check_number_of_features,
    "SelectFromModel": _check_selection,
    "RFE": _check_two_columns,
    "RFECV": _check_scored_selection,
    **dict.fromkeys(UNIVARIATE_SELECTIONS, _check_score_function),
    "MultiOutputClassifier": _check_columns_of_target,
    "MultiOutputRegressor": _check_columns_of_target,
    "ClassifierChain": _check_columns_of_target,
    "RegressorChain": _check_columns_of_target,
}
METHOD_CHECKS = {
    "StackingClassifier": _check_methods_of_stack,
    "StackingRegressor": _check_methods_of_stack,
    "VotingClassifier": _check_methods_of_votes,
    "FixedThresholdClassifier": _check_method_of_threshold,
    "SelfTrainingClassifier": _check_method_of_self_training,
    "LinearDiscriminantAnalysis": _check_covariance,
    "QuadraticDiscriminantAnalysis": _check_covariance,
}
