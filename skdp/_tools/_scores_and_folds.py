"""A tool's scores and folds: private scores, and folds that depend on other persons' rows.

Everything is read from parameters. The rows of folds count as public only where a list declares
them.
"""

from collections.abc import Iterator
from functools import partial
from numbers import Integral
from types import GeneratorType

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier

from skdp._tools._classes import behaves_as, is_of_classes
from skdp._tools._functions import refers_to_table
from skdp._tools._parts import is_estimator, is_private
from skdp.exceptions import LedgerError

RAW_SCORES = "publishes or chooses by scores of the raw rows"
UNKNOWN_SCORES = (
    "publishes or chooses by scores of a function that skdp does not know, which reads the raw rows"
)
UNKNOWN_FOLDS = (
    "splits the rows by folds from an iterator about which nothing is known (give it a list of "
    "folds, or a splitter)"
)
# Splitters whose folds depend only on row numbers, or on a keyed hash of a person's id.
PERSON_FOLDS = frozenset({"skdp.model_selection.PersonKFold"})
INDEX_SPLITTERS = PERSON_FOLDS | {
    f"sklearn.model_selection.{name}"
    for name in (
        "KFold RepeatedKFold ShuffleSplit LeaveOneOut LeavePOut TimeSeriesSplit PredefinedSplit"
    ).split()
}
# The class in which scikit-learn wraps listed folds, which count as public.
LISTED_FOLDS = frozenset({"sklearn.model_selection._CVIterableWrapper"})
# Splitters that draw the rows of a fold with replacement.
BOOTSTRAP_SPLITTERS = ("mlxtend.BootstrapOutOfBag",)
# Python iterators that reveal, without being read, the object over which they iterate.
LAZY_ITERATORS = (map, filter, zip, enumerate)


def has_private_scores(scoring):
    """Return True if all scores that scikit-learn would compute are private."""
    scorers = scorers_of(scoring)
    return len(scorers) > 0 and all(map(releases_privately, scorers))


def releases_privately(scorer):
    """Return True for a private scorer, even if scikit-learn made it from a private metric.

    A scorer that `make_scorer` creates from a function in `skdp.metrics` returns that function's
    release, which charges the accountant that it was given.
    """
    if getattr(scorer, "releases_privately", False) is True:
        return True
    function = _metric_of(scorer)
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and module.startswith("skdp.metrics.")


def _metric_of(scorer):
    """Return the metric of a scorer of scikit-learn, or None."""
    if type(scorer).__module__ != "sklearn.metrics._scorer":
        return None
    function = getattr(scorer, "_score_func", None)
    while isinstance(function, partial):
        function = function.func
    return function


def is_unknown_function(scorer):
    """Return True for a user-defined scorer, about which nothing is known."""
    if scorer is None or isinstance(scorer, str) or releases_privately(scorer):
        return False
    function = _metric_of(scorer)
    if function is None:
        function = scorer
    return callable(function) and getattr(function, "__module__", "").partition(".")[0] != "sklearn"


def scorers_of(scoring):
    """Return a list of the scorers in the parameter `scoring`."""
    if isinstance(scoring, dict):
        return list(scoring.values())
    return list(scoring) if isinstance(scoring, list | tuple | set) else [scoring]


def is_by_person(*charging):
    """Return True if the privacy unit of an estimator or scorer is a person."""
    for accountant in {id(a): a for value in charging for a in _accountants_in(value)}.values():
        try:
            unit = accountant.config.unit
        except (AttributeError, LedgerError, ValueError):
            continue
        if unit == "person":
            return True
    return False


def _accountants_in(value):
    """Yield the accountants in a scorer or an estimator, and in the estimators inside it.

    Parameters are read as attributes, because `get_params` takes as long as a small fit.
    """
    if isinstance(value, list | tuple):
        for part in value:
            yield from _accountants_in(part)
    elif is_estimator(value) or releases_privately(value):
        # A scorer of scikit-learn has the arguments of its metric.
        params = getattr(value, "__dict__", {})
        params = params | params.get("_kwargs", {})
        for name, part in params.items():
            if name == "accountant":
                yield part
            elif not name.endswith("_"):
                yield from _accountants_in(part)


def folds_problem(cv, estimator, scoring=None):
    """Return the problem of folds whose rows depend on those of others, or ""."""
    splitter = splitter_of(cv)
    # Listed folds count as public. scikit-learn wraps them in an object with a `split` method.
    is_listed = behaves_as(splitter, LISTED_FOLDS) or not (
        cv is None or isinstance(cv, Integral) or hasattr(splitter, "split")
    )
    is_by_row = not is_listed and not behaves_as(splitter, PERSON_FOLDS)
    if is_by_row and is_by_person(estimator, *scorers_of(scoring)):
        return (
            "splits the rows of persons by row numbers, which depend on how many rows others have "
            "(use cv=PersonKFold(k))"
        )
    if _is_unknown_iterator(cv):
        return UNKNOWN_FOLDS
    if splits_by_values(cv, estimator):
        is_unknown = hasattr(splitter, "split") and not _is_of_sklearn(splitter)
        more = ", or in which rows may repeat" if is_unknown else ""
        may = "may depend" if is_unknown else "depend"
        return f"splits the rows by folds that {may} on their {_read_by(splitter)}{more}"
    return ""


def _read_by(splitter):
    """Return a description of the values of rows that a splitter reads."""
    name = type(splitter).__name__
    if not _is_of_sklearn(splitter) or "Group" not in name:
        return "labels"
    return "labels and groups" if "Stratified" in name else "groups"


def _is_of_sklearn(value):
    return type(value).__module__.partition(".")[0] == "sklearn"


def _is_unknown_iterator(cv):
    """Return True for an iterator of folds that does not read the generator of a splitter.

    A generator that has ended was already judged before it was read.
    """
    if not isinstance(cv, Iterator) or hasattr(splitter_of(cv), "split"):
        return False
    return all(generator.gi_frame is not None for generator in generators_in(cv))


def splits_by_values(cv, estimator):
    """Return True if the rows of a fold may depend on values."""
    if cv is None or isinstance(cv, Integral):
        # scikit-learn uses stratified folds for classifiers.
        return is_classifier(estimator)
    cv = splitter_of(cv)
    if not hasattr(cv, "split"):
        # A list of folds counts as a declaration that they are public.
        return False
    return not behaves_as(cv, INDEX_SPLITTERS | LISTED_FOLDS)


def tuned_estimator(owner):
    """Return the estimator that a tool fits, or None.

    Before scikit-learn 1.9, chains also accept it as `base_estimator`.
    """
    estimator = getattr(owner, "estimator", None)
    if estimator is None:
        estimator = getattr(owner, "base_estimator", None)
    # The default of a deprecated parameter is a string.
    return None if isinstance(estimator, str) else estimator


def splitter_of(cv):
    """Return the splitter of an iterator of folds that is not read, and `cv` otherwise."""
    for generator in generators_in(cv):
        splitter = generator.gi_frame and generator.gi_frame.f_locals.get("self")
        if hasattr(splitter, "split"):
            return splitter
    return cv


def generators_in(iterator):
    """Yield a generator and the generators from which it, or an iterator of Python, reads."""
    if isinstance(iterator, GeneratorType):
        yield iterator
        if iterator.gi_frame is not None:
            # The iterable of a generator expression is its variable ".0".
            yield from generators_in(iterator.gi_frame.f_locals.get(".0"))
    elif type(iterator) in LAZY_ITERATORS:
        for inner in iterator.__reduce__()[1]:
            yield from generators_in(inner)


def is_unread(cv):
    """Return True for an iterator of folds from generators that have not ended."""
    return any(generator.gi_frame is not None for generator in generators_in(cv))


def score_problem(variables):
    """Return the problem of a search or a cross-validation, or ""."""
    owner = variables.get("self")
    if owner is None:
        scoring = variables.get("scoring")
        cv = variables.get("cv")
        estimator = variables.get("estimator")
    else:
        scoring = getattr(owner, "scoring", None)
        cv = getattr(owner, "cv", None)
        estimator = getattr(owner, "estimator", None)
    problems = []
    unknown = [scorer for scorer in scorers_of(scoring) if not releases_privately(scorer)]
    if unknown and all(map(is_unknown_function, unknown)):
        problems.append(UNKNOWN_SCORES)
    elif not has_private_scores(scoring):
        problems.append(RAW_SCORES)
    if refers_to_table(getattr(owner, "refit", None), number_of_rows(variables)):
        problems.append(
            "chooses by a function refit that may read rows, since it refers to a table, a column "
            "or a fitted model (let it read the scores alone)"
        )
    problems.append(folds_problem(cv, estimator, scoring))
    return " and ".join(filter(None, problems))


def subset_problem(variables):
    """Return the problem of a tool that fits subsets of its rows and scores the fits, or "".

    These are halving searches and learning curves. A halving search whose resource is another
    parameter than the number of rows fits no subsets, so only its scores can be a problem.

    Parameters
    ----------
    variables : dict
        Local variables of the tool's call. The parameters of a search are read from its "self".
    """
    problems = [score_problem(variables)]
    owner = variables.get("self")
    source = variables if owner is None else vars(owner)
    estimator = source.get("estimator")
    if source.get("resource", "n_samples") != "n_samples":
        return problems[0]
    if is_by_person(estimator, *scorers_of(source.get("scoring"))):
        problems.append(
            "fits a limited number of rows, so how many rows others have decides whose rows a fit "
            "receives (use dp_learning_curve or DPGridSearchCV)"
        )
    # The smallest number of rows is computed from the labels that occur. A private classifier
    # without `classes` publishes these labels anyway, so this reveals something new only if a
    # classifier declares its labels.
    is_counted = source.get("min_resources") in ("smallest", "exhaust")
    if is_counted and is_classifier(estimator) and declares_some_labels(estimator):
        problems.append(
            "computes min_resources from the labels that occur, which a private classifier with "
            "declared classes does not publish (give min_resources as a number)"
        )
    return " and ".join(filter(None, problems))


def scores_refusal(variables):
    """Return the reason to refuse a search or a cross-validation, or "".

    Rows may be repeated, or scores may receive no person ids, which they would refuse only after
    the first fit was charged.
    """
    owner = variables.get("self")
    scoring = variables.get("scoring") if owner is None else getattr(owner, "scoring", None)
    private = [scorer for scorer in scorers_of(scoring) if releases_privately(scorer)]
    if not get_config()["enable_metadata_routing"] and is_by_person(*private):
        return (
            "does not pass groups to private scores (call "
            "sklearn.set_config(enable_metadata_routing=True) first)"
        )
    return repeated_rows_problem(variables)


def repeated_rows_problem(variables):
    """Return the problem of listed folds in which a row occurs twice, or "".

    The lists are public, but a repeated row changes a fit or a score by several times as much as
    the charge covers.
    """
    owner = variables.get("self")
    # The folds as scikit-learn checked them: an attribute of a search, and a variable of its `fit`
    # before scikit-learn 1.9.
    checked = getattr(owner, "_checked_cv_orig", variables.get("cv_orig"))
    cv = variables.get("cv", getattr(owner, "cv", None) if checked is None else checked)
    # scikit-learn wraps listed folds in an object with a `split` method.
    folds = getattr(cv, "cv", cv)
    if is_of_classes(splitter_of(cv), *BOOTSTRAP_SPLITTERS):
        return (
            f"receives the folds of {type(splitter_of(cv)).__name__}, which repeat rows, so a "
            "person's row counts repeatedly"
        )
    is_listed = isinstance(folds, list | tuple | np.ndarray) and all(map(_is_fold, folds))
    n_rows = number_of_rows(variables)
    if is_listed and any(_repeats(rows, n_rows) for fold in folds for rows in fold):
        return "receives folds that list rows more than once, so a person's row counts repeatedly"
    return ""


def unread_folds_problem(variables):
    """Return the problem of folds that are read after the first charge, or "".

    The rows of an iterator's folds are unknown before they are read. Its splitter is known if the
    iterator is the generator of a splitter.
    """
    cv = getattr(variables.get("self"), "cv", None)
    # A generator without a frame has already been read, after its splitter was checked.
    is_read = any(generator.gi_frame is None for generator in generators_in(cv))
    is_known = not hasattr(cv, "__iter__") or isinstance(cv, list | tuple | np.ndarray)
    # The string "prefit" has a `split` method too.
    is_known = is_known or hasattr(splitter_of(cv), "split")
    if not is_known and not is_read:
        return (
            "reads its folds from an iterator after the first fits were charged (give it a list of "
            "folds, or a splitter)"
        )
    return repeated_rows_problem(variables)


def repeats_rows(variables):
    """Return True if a scikit-learn function passed repeated rows to the fit of one fold."""
    train = variables.get("train")
    is_listed = isinstance(train, list | tuple | np.ndarray)
    return is_listed and _repeats(train, number_of_rows(variables))


def _is_fold(value):
    return isinstance(value, list | tuple | np.ndarray) and len(value) == 2


def number_of_rows(variables):
    """Return the number of rows in a call's table or target; None if it has neither."""
    for name in ("X", "y"):
        shape = getattr(variables.get(name), "shape", None)
        if shape and isinstance(shape[0], Integral):
            return int(shape[0])
        if isinstance(variables.get(name), list | tuple):
            return len(variables[name])
    return None


def _repeats(rows, n_rows):
    """Return True if an array of row indices names a row twice; a mask never does.

    Negative indices count from the end of the `n_rows` rows, so -1 is the same row as n_rows - 1.
    """
    rows = np.asarray(rows)
    if rows.dtype == bool:
        return False
    if n_rows and rows.dtype.kind == "i":
        rows = np.where(rows < 0, rows + n_rows, rows)
    return len(np.unique(rows)) < rows.size


def declared_labels_of(estimator):
    """Return the parameters `classes` of the private classifiers in an estimator."""
    params = estimator.get_params() if is_estimator(estimator) else {}
    private = (part for part in (estimator, *params.values()) if is_private(part))
    return [part.classes for part in private if "classes" in part.get_params(deep=False)]


def declares_labels(estimator):
    """Return True if all private classifiers of an estimator declare their labels."""
    return all(classes is not None for classes in declared_labels_of(estimator))


def declares_some_labels(estimator):
    """Return True if a private classifier of an estimator declares its labels."""
    return any(classes is not None for classes in declared_labels_of(estimator))
