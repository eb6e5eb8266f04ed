"""Checks of scikit-learn's validations and searches with private scores, before a charge.

scikit-learn calls a scorer only after the fit has been charged, and replaces its errors with NaN.
"""

from skdp._data._tables import indexable_table, target_array
from skdp.model_selection._candidates import labels_of_candidate
from skdp.model_selection._scored_tables import check_class_counts, check_suits
from skdp.pipeline._first_rows import check_rows
from skdp.pipeline._fit_params import (
    SEARCHES,
    check_fit_params_of_charges,
    params_of_scorers,
    params_of_steps,
    private_scorers,
)
from skdp.pipeline._instances import is_estimator, sklearn_name, with_params
from skdp.pipeline._members import MOST_COMBINATIONS, check_members, listed_candidates
from skdp.pipeline._parameters import PublicTable

# Selections of scikit-learn that fit and score their estimator on folds.
ELIMINATIONS = frozenset({"RFECV", "SequentialFeatureSelector"})


def check_validation(variables):
    """Raise the errors of a call of `cross_validate`, `validation_curve` or a similar function.

    Parameters
    ----------
    variables : dict
        Local variables of the call.

    Raises
    ------
    ValueError
        If a private score does not suit the estimator, a fit and a score would protect different
        persons, a fit would refuse a row, or a value of `param_range` is wrong.
    """
    estimator = variables.get("estimator")
    if not is_estimator(estimator):
        return
    y = variables.get("y")
    scorers = private_scorers(variables.get("scoring"))
    _check_scores(scorers, [estimator], y)
    routed = variables.get("routed_params")
    if routed is not None:
        fit_params = routed.get("estimator", {}).get("fit", {})
        score_params = routed.get("scorer", {}).get("score", {})
        steps = params_of_steps(estimator, dict(fit_params))
        steps += params_of_scorers(variables.get("scoring"), dict(score_params))
        check_fit_params_of_charges(steps)
        # This is reached once in a call, and all its rows are read.
        _check_rows(estimator, variables.get("X"), y, scorers)
    name = variables.get("param_name")
    error_score = variables.get("error_score")
    if isinstance(name, str) and isinstance(error_score, str) and error_score == "raise":
        for value in list(variables.get("param_range", ()))[:MOST_COMBINATIONS]:
            check_members(_with_setting(estimator, name, value), PublicTable(y=y))


def _with_setting(estimator, name, value):
    """Return a copy with another parameter; the estimator itself if there is no such parameter."""
    try:
        return with_params(estimator, {name: value})
    except (TypeError, ValueError, AttributeError):
        # scikit-learn's error names the parameter that does not exist.
        return estimator


def check_searches(tool, y=None, params=None, method="fit", X=None):
    """Raise `ValueError` if a private score suits no candidate of a search, even inside a tool.

    With error_score="raise", the score must suit all candidates. A search or a selection by folds
    is also refused if a fit would refuse a row.
    """
    for part in tool.get_params().values():
        if sklearn_name(part) in SEARCHES:
            # The labels that the candidate receives are unknown here.
            _check_scores_of_search(part, None)
    if sklearn_name(tool) in SEARCHES:
        _check_scores_of_search(tool, y)
    if sklearn_name(tool) in SEARCHES | ELIMINATIONS:
        _check_rows(tool, X, y, private_scorers(tool.scoring))


def _check_rows(estimator, X, y, scorers):
    """Raise `ValueError` if a fit or a private score would refuse a row."""
    if X is None:
        return
    if scorers and isinstance(X, list | tuple):
        # One row can determine how the rows of a list are converted, which scores refuse.
        indexable_table(X)
    check_rows(estimator, X, y)


def _check_scores_of_search(search, y):
    """Raise `ValueError` if a search's private scores suit no candidate.

    With error_score="raise", they must suit all candidates.

    Parameters
    ----------
    search : estimator
        A search of scikit-learn.
    y : array-like or None
        Target of the fit; with None, the labels are unknown and not checked.
    """
    scorers = private_scorers(search.scoring)
    if not scorers:
        return
    candidates = list(listed_candidates(search)) or [search.estimator]
    error_score = search.error_score
    if isinstance(error_score, str) and error_score == "raise":
        _check_scores(scorers, candidates, y)
        return
    errors = []
    for candidate in candidates:
        try:
            _check_scores(scorers, [candidate], y)
        except ValueError as error:
            errors.append(error)
    if len(errors) == len(candidates):
        raise errors[0]


def _check_scores(scorers, candidates, y):
    """Raise `ValueError` if a private score does not suit an estimator or its labels."""
    for candidate in candidates if scorers else ():
        classes = _labels(candidate, y)
        for scorer in scorers:
            check_suits(scorer.score, candidate)
            scorer.score.check_methods(candidate)
            if scorer.score.of_labels and classes is not None:
                check_class_counts(scorer.score, classes)


def _labels(candidate, y):
    """Return the labels that a candidate would have; None if they are unknown."""
    try:
        if y is None:
            return None
        return labels_of_candidate(candidate, target_array(y))
    except (TypeError, ValueError):
        # The estimator refuses such a target itself.
        return None
