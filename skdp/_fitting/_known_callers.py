"""Table of other tools that fit private estimators, with their problems and alternatives."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter, signature
from numbers import Integral
from types import GeneratorType

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold

from skdp.exceptions import LedgerError

VAR_POSITIONAL = Parameter.VAR_POSITIONAL
VAR_KEYWORD = Parameter.VAR_KEYWORD

# Splitters whose folds depend on row indices only.
INDEX_SPLITTERS = frozenset(
    "KFold RepeatedKFold ShuffleSplit LeaveOneOut LeavePOut TimeSeriesSplit PredefinedSplit "
    "PersonKFold _CVIterableWrapper".split()
)
# Splitters that draw the rows of a fold with replacement.
BOOTSTRAP_SPLITTERS = ("BootstrapOutOfBag", "Bootstrap")
# Methods and functions in which a tool learns from its rows.
FITS = frozenset(
    "fit _fit fit_transform fit_predict partial_fit _partial_fit fit_resample conformalize "
    "fit_conformalize calibrate find_label_issues".split()
)

IF_PUBLIC = "if the rows that it gets are public, ignore this warning"
PRIVATE_SCORES = "give it scoring=make_dp_scorer(...) and cv=KFold(5, shuffle=True, random_state=0)"
PRIVATE_SEARCH = f"use DPGridSearchCV or DPRandomizedSearchCV, or {PRIVATE_SCORES}"
SKDP_ENSEMBLES = (
    "use DPRandomForestClassifier or DPRandomForestRegressor, or VotingClassifier or "
    "VotingRegressor of private estimators"
)


@dataclass(frozen=True)
class KnownCaller:
    """Entry of the table: the privacy problem of a tool around private estimators.

    Parameters
    ----------
    wrong : str
        Problem of the tool, as the end of a sentence that begins with its name.
    instead : str
        Advice on a replacement.
    refused : bool, default=False
        True to refuse the fit, False to warn.
    problem : callable or None, default=None
        Function of the local variables of a call that returns the problem of this call, or "" if
        there is none. None means that each call has the problem `wrong`.
    refusal : callable or None, default=None
        Function of the local variables of a call that returns the reason to refuse it, or "".
    functions : frozenset of str or None, default=FITS
        Functions of the module that learn from rows; None for all functions. If the key of the
        entry names a function, the entry is about that function.
    name : str, default=""
        Name of the tool for users; "" takes the name of the class or function.
    wrong_scores : str, default=""
        Problem of private scores that the tool computes, with an advice; "" if there is none.
    """

    wrong: str
    instead: str
    refused: bool = False
    problem: Callable[[dict], str] | None = None
    refusal: Callable[[dict], str] | None = None
    functions: frozenset[str] | None = FITS
    name: str = ""
    wrong_scores: str = ""

    def problem_of(self, variables):
        """Return the problem of a call, "" if there is none, and True if the call is refused."""
        refusal = "" if self.refusal is None else self.refusal(variables)
        if refusal:
            return refusal, True
        problem = self.wrong if self.problem is None else self.problem(variables)
        return problem, self.refused

    def problem_of_part(self, part, y=None):
        """Return the problem of a part whose fit comes after other charges, as `problem_of` does.

        Parameters
        ----------
        part : estimator
        y : array-like, default=None
            Its targets, of which only the shape is used.
        """
        variables = {"self": part, "y": y}
        problem, is_refused = self.problem_of(variables)
        late_folds = "" if is_refused else _unread_folds(variables)
        return (late_folds, True) if late_folds else (problem, is_refused)


def is_private(value):
    """Return True for a private estimator, which has `epsilon` and `accountant`."""
    names = value.get_params(deep=False) if is_estimator(value) else ()
    return "epsilon" in names and "accountant" in names


def holds_private(value):
    """Return True for a private estimator, or a step or model that has one inside it."""
    if not is_step(value):
        return False
    return is_private(value) or any(map(is_private, nested_parts(value).values()))


def is_frozen(value):
    """Return True for a fitted estimator that is never fitted again."""
    return isinstance(value, FrozenEstimator)


def is_estimator(value):
    """Return True for an estimator that is not a class."""
    return hasattr(value, "get_params") and hasattr(value, "fit") and not isinstance(value, type)


# Methods of the objects that can be steps of a pipeline. Some classes have no `get_params`.
# Maximum number of values of a list among which steps are looked for. Lists of rows are longer.
MAX_PARTS = 1000
STEP_METHODS = ("fit", "transform", "fit_transform", "fit_resample", "fit_predict")


def is_step(value):
    """Return True for an object that a pipeline or an ensemble can fit or apply to rows."""
    if value is None or isinstance(value, type | str | float | int | np.ndarray):
        return False
    # Some objects have every attribute, such as the data ops of skrub, so the class is asked. Data
    # frames have `transform`, too.
    kind = type(value)
    return any(hasattr(kind, method) for method in STEP_METHODS) and not hasattr(kind, "iloc")


def parts_of(value):
    """Yield the names and the values of the steps and models that an object was given.

    They are found by their methods, in any parameter of the constructor, and in lists, tuples and
    dictionaries of such. An object that does not store its parameters under their names is searched
    in all of its attributes, without fitted ones.

    Parameters
    ----------
    value : object

    Yields
    ------
    name : str
        Name of the parameter, followed by names or positions inside lists and dictionaries.
    part : object
    """
    for name, param in _constructor_params(value).items():
        yield from parts_in(name, param)


def parts_in(name, value):
    """Yield the names and the values of the steps and models in one parameter; see `parts_of`."""
    if is_step(value):
        yield name, value
    elif type(value) is dict:
        # The lists in a dictionary are candidates of a search.
        for key, item in value.items():
            if is_step(item):
                yield f"{name}[{key!r}]", item
    elif type(value) in (list, tuple):
        for i, item in enumerate(value[:MAX_PARTS]):
            # Steps are pairs (name, step), or triples that also contain columns.
            is_named = isinstance(item, tuple) and len(item) > 1 and isinstance(item[0], str)
            if is_named and is_step(item[1]):
                yield item[0], item[1]
            else:
                yield from parts_in(f"{name}[{i}]", item)


def _constructor_params(value):
    """Return the parameters of an object by name, as `get_params(deep=False)` does."""
    if hasattr(type(value), "get_params"):
        try:
            return value.get_params(deep=False)
        except (TypeError, AttributeError):
            pass
    attributes = getattr(value, "__dict__", {})
    names = _constructor_names(type(value))
    if names is not None and all(name in attributes for name in names):
        return {name: attributes[name] for name in names}
    return {name: item for name, item in attributes.items() if not name.endswith("_")}


@cache
def _constructor_names(kind):
    """Return the names of a constructor's parameters; None if it takes arbitrary ones."""
    try:
        parameters = list(signature(kind).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(parameter.kind in (VAR_POSITIONAL, VAR_KEYWORD) for parameter in parameters):
        return None
    return tuple(parameter.name for parameter in parameters)


def nested_parts(value):
    """Return the steps and models inside an object at any depth, by their names.

    Parameters of private estimators are left out.
    """
    nested = {}
    _add_nested_parts(value, "", nested, {id(value)})
    return nested


def _add_nested_parts(value, prefix, nested, visited):
    for name, part in parts_of(value):
        path = f"{prefix}{name}"
        # A list may contain one object several times, and objects may contain each other.
        if id(part) in visited:
            nested.setdefault(path, part)
            continue
        nested[path] = part
        if not is_private(part):
            _add_nested_parts(part, f"{path}__", nested, visited | {id(part)})


def copy_parts(value):
    """Return a copy of an estimator and of those inside it, so that `set_params` changes no other.

    Everything else is shared. `clone` would ask the private estimators to be judged again.
    """
    if type(value) in (list, tuple):
        return type(value)(map(copy_parts, value))
    if not is_estimator(value) or is_frozen(value):
        return value
    copied = object.__new__(type(value))
    vars(copied).update(vars(value))
    for name, part in value.get_params(deep=False).items():
        vars(copied)[name] = copy_parts(part)
    return copied


def learns_raw(part):
    """Return True for a model or step without a private one inside it that learns when fitted."""
    if is_frozen(part) or not hasattr(part, "fit") or holds_private(part):
        return False
    # A class can declare that its fits are charged, or learn nothing.
    return vars(type(part)).get("__skdp_kind__") not in ("private", "stateless", "declared")


def _is_private_scorer(scoring):
    """Return True if all scores that scikit-learn would compute are private."""
    scorers = _scorers_of(scoring)
    return len(scorers) > 0 and all(
        getattr(scorer, "releases_privately", False) is True for scorer in scorers
    )


def _scorers_of(scoring):
    """Return a list of the scorers in the parameter `scoring`."""
    if isinstance(scoring, dict):
        return list(scoring.values())
    return list(scoring) if isinstance(scoring, list | tuple | set) else [scoring]


def _is_by_person(*charging):
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

    Parameters are read as attributes, since `get_params` takes as long as a small fit.
    """
    if isinstance(value, list | tuple):
        for part in value:
            yield from _accountants_in(part)
    elif is_estimator(value) or getattr(value, "releases_privately", False) is True:
        for name, part in getattr(value, "__dict__", {}).items():
            if name == "accountant":
                yield part
            elif not name.endswith("_"):
                yield from _accountants_in(part)


def _folds_problem(cv, estimator, scoring=None):
    """Return the problem of folds whose rows depend on those of others, or ""."""
    splitter = _splitter_of(cv)
    # Listed folds count as public. scikit-learn wraps them in an object with a `split` method.
    is_listed = type(splitter).__name__ == "_CVIterableWrapper" or not (
        cv is None or isinstance(cv, Integral) or hasattr(splitter, "split")
    )
    is_by_row = not is_listed and type(splitter).__name__ != "PersonKFold"
    if is_by_row and _is_by_person(estimator, *_scorers_of(scoring)):
        return (
            "splits the rows of persons by row numbers, which depend on how many rows others have "
            "(use cv=PersonKFold(k))"
        )
    if _splits_by_values(cv, estimator):
        is_unknown = hasattr(splitter, "split") and not _is_of_sklearn(splitter)
        more = ", or in which rows may repeat" if is_unknown else ""
        may = "may depend" if is_unknown else "depend"
        return f"splits the rows by folds that {may} on their labels{more}"
    return ""


def _is_of_sklearn(value):
    return type(value).__module__.partition(".")[0] == "sklearn"


def _splits_by_values(cv, estimator):
    """Return True if the rows of a fold may depend on values."""
    if cv is None or isinstance(cv, Integral):
        # scikit-learn uses stratified folds for classifiers.
        return is_classifier(estimator)
    cv = _splitter_of(cv)
    if not hasattr(cv, "split"):
        # A list of folds counts as a declaration that they are public.
        return False
    return type(cv).__name__ not in INDEX_SPLITTERS


def _splitter_of(cv):
    """Return the splitter of an iterator of folds that is not read, and `cv` otherwise."""
    for generator in _generators_in(cv):
        splitter = generator.gi_frame and generator.gi_frame.f_locals.get("self")
        if hasattr(splitter, "split"):
            return splitter
    return cv


# Iterators of Python that name what they iterate over, without reading it.
LAZY_ITERATORS = (map, filter, zip, enumerate)


def _generators_in(iterator):
    """Yield a generator and the ones that it, or an iterator of Python, reads from."""
    if isinstance(iterator, GeneratorType):
        yield iterator
        if iterator.gi_frame is not None:
            # The iterable of a generator expression is its variable ".0".
            yield from _generators_in(iterator.gi_frame.f_locals.get(".0"))
    elif type(iterator) in LAZY_ITERATORS:
        for inner in iterator.__reduce__()[1]:
            yield from _generators_in(inner)


def is_unread(cv):
    """Return True for an iterator of folds from generators that have not ended."""
    return any(generator.gi_frame is not None for generator in _generators_in(cv))


def _score_problem(variables):
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
    if not _is_private_scorer(scoring):
        problems.append("publishes or chooses by scores of the raw rows")
    problems.append(_folds_problem(cv, estimator, scoring))
    return " and ".join(filter(None, problems))


def _subset_problem(variables):
    """Return the problem of a tool that fits to subsets of its rows and scores them, or "".

    These are halving searches and learning curves.
    """
    problems = [_score_problem(variables)]
    owner = variables.get("self")
    source = variables if owner is None else vars(owner)
    estimator = source.get("estimator")
    if source.get("resource", "n_samples") != "n_samples":
        return problems[0]
    if _is_by_person(estimator, *_scorers_of(source.get("scoring"))):
        problems.append(
            "takes a number of rows, so that how many rows others have decides whose rows a fit "
            "gets (use dp_learning_curve or DPGridSearchCV)"
        )
    # The smallest number of rows is computed from the labels that occur. A classifier without
    # `classes` publishes these.
    is_counted = source.get("min_resources") in ("smallest", "exhaust")
    if is_counted and is_classifier(estimator) and _declares_some_labels(estimator):
        problems.append(
            "computes min_resources from the labels that occur, which a private classifier with "
            "declared classes does not publish (give min_resources as a number)"
        )
    return " and ".join(filter(None, problems))


def _scores_refusal(variables):
    """Return the reason to refuse a search or a cross-validation, or "".

    Rows may be repeated, or the scores may get no ids of persons, which they refuse after the
    first fit was charged.
    """
    owner = variables.get("self")
    scoring = variables.get("scoring") if owner is None else getattr(owner, "scoring", None)
    private = [s for s in _scorers_of(scoring) if getattr(s, "releases_privately", False) is True]
    if not get_config()["enable_metadata_routing"] and _is_by_person(*private):
        return (
            "does not pass groups to private scores (call "
            "sklearn.set_config(enable_metadata_routing=True) before)"
        )
    return _repeated_rows(variables)


def _repeated_rows(variables):
    """Return the problem of listed folds in which a row occurs twice, or "".

    The lists are public, but a repeated row changes a fit or a score several times as much as the
    charge covers.
    """
    owner = variables.get("self")
    # The folds as scikit-learn checked them: an attribute of a search, and a variable of its `fit`
    # before scikit-learn 1.9.
    checked = getattr(owner, "_checked_cv_orig", variables.get("cv_orig"))
    cv = variables.get("cv", getattr(owner, "cv", None) if checked is None else checked)
    # scikit-learn wraps listed folds in an object with a `split` method.
    folds = getattr(cv, "cv", cv)
    if _is_of_classes(_splitter_of(cv), *BOOTSTRAP_SPLITTERS):
        return (
            f"gets the folds of {type(_splitter_of(cv)).__name__}, which repeat rows, so that a "
            "person's row counts repeatedly"
        )
    is_listed = isinstance(folds, list | tuple | np.ndarray) and all(map(_is_fold, folds))
    if is_listed and any(_repeats(rows) for fold in folds for rows in fold):
        return "gets folds that list rows more than once, so that a person's row counts repeatedly"
    return ""


def _unread_folds(variables):
    """Return the problem of folds that are read after the first charge, or "".

    The rows of an iterator's folds are unknown before they are read. Its splitter is known if the
    iterator is the generator of a splitter.
    """
    cv = getattr(variables.get("self"), "cv", None)
    # A generator without a frame was read already, after its splitter was checked.
    is_read = any(generator.gi_frame is None for generator in _generators_in(cv))
    is_known = not hasattr(cv, "__iter__") or isinstance(cv, list | tuple | np.ndarray)
    # The string "prefit" has a `split` method too.
    is_known = is_known or hasattr(_splitter_of(cv), "split")
    if not is_known and not is_read:
        return (
            "reads its folds from an iterator after the first fits were charged (give it a list of "
            "folds, or a splitter)"
        )
    return _repeated_rows(variables)


def repeats_rows(variables):
    """Return True if the rows of one fold's fit, which a function of scikit-learn got, repeat."""
    train = variables.get("train")
    return isinstance(train, list | tuple | np.ndarray) and _repeats(train)


def _is_fold(value):
    return isinstance(value, list | tuple | np.ndarray) and len(value) == 2


def _repeats(rows):
    """Return True if an array of row indices contains an index twice; a mask never does."""
    rows = np.asarray(rows)
    return rows.dtype != bool and len(np.unique(rows)) < rows.size


def _is_of_classes(value, *names):
    """Return True if the class of a value, or a base class of it, has one of some names."""
    return any(cls.__name__ in names for cls in type(value).__mro__)


def _sees_only_scores(*names):
    """Return a `problem` function that reports problems of scores for classes with some names."""

    def problem(variables):
        is_named = _is_of_classes(variables.get("self"), *names)
        return _score_problem(variables) if is_named else ""

    return problem


def _of_classes(*names, wrong):
    """Return a `problem` function with a constant text for classes with some names."""

    def problem(variables):
        return wrong if _is_of_classes(variables.get("self"), *names) else ""

    return problem


def _not_of_classes(*names, wrong):
    """Return a `problem` function with a constant text for classes without some names."""

    def problem(variables):
        return "" if _is_of_classes(variables.get("self"), *names) else wrong

    return problem


def _prediction_problem(variables):
    """Return the problem of cross-validated predictions, or ""."""
    problems = [
        "returns an answer for each raw row",
        _folds_problem(variables.get("cv"), variables.get("estimator")),
    ]
    return " and ".join(filter(None, problems))


def _raw_members(variables):
    """Return the problem of an ensemble's members that are not private, or ""."""
    members = list(parts_in("estimators", getattr(variables.get("self"), "estimators", None)))
    learning = [name for name, member in members if learns_raw(member)]
    fitted = [name for name, m in members if is_frozen(m) and not holds_private(m)]
    problems = []
    if learning:
        problems.append(f"has members {learning} that learn from raw rows without privacy")
    if fitted:
        problems.append(f"has members {fitted} that learned from rows which skdp does not know")
    return " and ".join(problems)


def _stacking_problem(variables):
    owner = variables.get("self")
    problems = [_raw_members(variables)]
    if not holds_private(getattr(owner, "final_estimator", None)):
        problems.append("fits its final_estimator to raw rows")
    if owner is not None and not isinstance(owner.cv, str):
        problems.append(_folds_problem(owner.cv, owner))
    return " and ".join(filter(None, problems))


def _chain_refusal(variables):
    """Return the reason to refuse a chain: its folds get no ids of persons, or are read late."""
    owner = variables.get("self")
    if getattr(owner, "cv", None) is not None and _is_by_person(getattr(owner, "estimator", None)):
        return "does not pass groups to the fits of its folds (use cv=None)"
    return _unread_folds(variables)


def _chain_problem(variables):
    owner = variables.get("self")
    if getattr(owner, "cv", None) is None:
        return ""
    return _folds_problem(owner.cv, getattr(owner, "estimator", None))


def _width(target):
    """Return the number of columns of a target; 1 for a list of labels."""
    shape = getattr(target, "shape", None)
    if shape is None and isinstance(target, list | tuple) and len(target):
        shape = (len(target), *(len(row) for row in target[:1] if isinstance(row, list | tuple)))
    return shape[1] if shape is not None and len(shape) == 2 else 1


_LABEL_COUNTS = (
    "gives each fit the rows of two labels, so that the exact number of rows of each label "
    "becomes public"
)


def _multiclass_problem(variables):
    """Return the problem of one-against-one, or of one-against-rest with several columns, or ""."""
    if _is_of_classes(variables.get("self"), "OneVsOneClassifier"):
        return _LABEL_COUNTS
    # `Y` has a column for each label of `y`. The labels of a single column are public.
    if _width(variables.get("y")) < 2:
        return ""
    return _of_classes(
        "OneVsRestClassifier",
        wrong=(
            "fits nothing to a label that no row, or every row, has, and publishes that, so that "
            "the label of one row can be seen"
        ),
    )(variables)


def _outputs_problem(variables):
    """Return the problem of a fit of several outputs, or ""."""
    problems = [_chain_problem(variables)]
    estimator = getattr(variables.get("self"), "estimator", None)
    # If there is a variable `Y`, `y` is one column of it.
    if _width(variables.get("Y", variables.get("y"))) > 1 and not _declares_labels(estimator):
        wrong = (
            "refuses, after other outputs were charged, an output of which all rows have one "
            "label, so that the label of one row can be seen"
        )
        classes = ("MultiOutputClassifier", "ClassifierChain")
        problems.append(_of_classes(*classes, wrong=wrong)(variables))
    return " and ".join(filter(None, problems))


def _declared_labels(estimator):
    """Return the parameters `classes` of the private classifiers in an estimator."""
    params = estimator.get_params() if is_estimator(estimator) else {}
    private = (part for part in (estimator, *params.values()) if is_private(part))
    return [part.classes for part in private if "classes" in part.get_params(deep=False)]


def _declares_labels(estimator):
    """Return True if all private classifiers of an estimator declare their labels."""
    return all(classes is not None for classes in _declared_labels(estimator))


def _declares_some_labels(estimator):
    """Return True if a private classifier of an estimator declares its labels."""
    return any(classes is not None for classes in _declared_labels(estimator))


# Private estimators whose fits publish `coef_` or `feature_importances_`.
HAS_IMPORTANCES = frozenset(
    "DPAdditiveClassifier DPAdditiveRegressor DPHistogramNB DPLinearRegression DPLinearSVC "
    "DPLogisticRegression DPPoissonRegressor DPRidge DPSGDClassifier DPSGDRegressor".split()
)


def _importance_refusal(variables):
    """Return the reason to refuse a selection that would fail after its first charge, or ""."""
    owner = variables.get("self")
    estimator = getattr(owner, "estimator", None)
    is_default = getattr(owner, "importance_getter", "") == "auto"
    is_fitted = getattr(owner, "prefit", False) is True or is_frozen(estimator)
    if not is_default or is_fitted or not holds_private(estimator):
        return ""
    kind = type(estimator)
    is_known_class = kind.__module__.partition(".")[0] in ("sklearn", "imblearn", "skdp")
    has_names = hasattr(kind, "coef_") or hasattr(kind, "feature_importances_")
    if has_names or not is_known_class or kind.__name__ in HAS_IMPORTANCES:
        return ""
    return (
        f"selects by coef_ or feature_importances_, and {kind.__name__} has neither, which is "
        "found after its fit was charged (give importance_getter, such as "
        "'named_steps.dplogisticregression.coef_' for a pipeline, or select by another model)"
    )


def _elimination_refusal(variables):
    return _importance_refusal(variables) or _scores_refusal(variables)


def _sampler_problem(variables):
    """Return the problem of imbalanced-learn steps that repeat or create rows, or ""."""
    steps = getattr(variables.get("self"), "steps", None) or ()
    samplers = [
        f"{type(step).__name__} in step {name!r}"
        for name, step in steps
        if hasattr(step, "fit_resample")
    ]
    if not samplers:
        return ""
    return f"has {', '.join(samplers)}: which rows a fit gets, and how often, depends on other rows"


def _selection_problem(variables):
    """Return the problem of a number of selected features that depends on rows, or ""."""
    is_function = callable(getattr(variables.get("self"), "max_features", None))
    return "computes max_features from raw rows" if is_function else ""


def _econml_problem(variables):
    """Return the problem of an estimator of econml, or "" if all its models are private."""
    owner = variables.get("self")
    if owner is None:
        # A function inside the fit of an estimator, which was checked.
        return ""
    if not _is_of_classes(owner, "SLearner", "TLearner", "XLearner"):
        return "computes its final stage, or its weights, from raw rows"
    return _raw_parts_problem(variables)


def _raw_parts_problem(variables):
    """Return the problem of models in any parameter of a tool that are not private, or ""."""
    owner = variables.get("self")
    if owner is None:
        return ""
    # mlxtend can leave out the fits of all models but the last one.
    is_prefit = getattr(owner, "fit_base_estimators", True) is False
    raw = [
        name
        for name, part in parts_of(owner)
        if learns_raw(part) and (name.startswith("meta_") or not is_prefit)
    ]
    return f"fits its {' and '.join(dict.fromkeys(raw))} to raw rows" if raw else ""


def _econml_refusal(variables):
    """Return the reason to refuse an econml fit that would fail or repeat after charges, or ""."""
    owner = variables.get("self")
    final = getattr(variables.get("self"), "model_final", None)
    if _is_of_classes(owner, "NonParamDML", "KernelDML") and holds_private(final):
        return "gives its private model_final a sample_weight"
    if _is_of_classes(owner, "DomainAdaptationLearner"):
        return "gives its private models a sample_weight"
    return _bootstrap(variables)


def _bootstrap(variables):
    """Return the problem of intervals by a bootstrap in causal inference, or ""."""
    inference = variables.get("inference")
    is_asked = variables.get("return_ci") is True or variables.get("bootstrap_ci") is True
    if inference == "bootstrap" or type(inference).__name__ == "BootstrapInference" or is_asked:
        return "draws rows again and again for its intervals, so that a person's row counts often"
    return ""


def _causalml_refusal(variables):
    if _is_of_classes(variables.get("self"), "BaseRLearner"):
        return "gives its private models a sample_weight"
    return _bootstrap(variables)


def _causalml_problem(variables):
    owner = variables.get("self")
    names = ("BaseSLearner", "BaseTLearner", "BaseSRegressor", "BaseTRegressor")
    if _is_of_classes(owner, *names, "BaseSClassifier", "BaseTClassifier"):
        return _raw_parts_problem(variables)
    return "fits its propensity model, or its last stage, to raw rows"


def _stacked_folds_problem(variables):
    owner = variables.get("self")
    problems = [_raw_parts_problem(variables)]
    cv = getattr(owner, "cv", None)
    if getattr(owner, "stratify", False) or (
        not isinstance(cv, Integral) and _splits_by_values(cv, 0)
    ):
        problems.append("splits the rows by folds that depend on their labels")
    return " and ".join(filter(None, problems))


_RAW_SCORES = "publishes or chooses by scores of the raw rows"


# Selections of feature-engine that only read scores and importances of their model.
_SCORED_SELECTIONS = (
    "RecursiveFeatureElimination",
    "RecursiveFeatureAddition",
    "SelectBySingleFeaturePerformance",
)


def _feature_engine_problem(variables):
    """Return the problem of a selection of feature-engine, or ""."""
    is_scored = _is_of_classes(variables.get("self"), *_SCORED_SELECTIONS)
    return _score_problem(variables) if is_scored else _RAW_SCORES


def _paired_test_problem(variables):
    """Return the problem of a test that compares two models by their scores, or "".

    mlxtend's tests split the rows by their numbers, without labels.
    """
    scoring = variables.get("scoring")
    if not _is_private_scorer(scoring):
        return _RAW_SCORES
    return _folds_problem(KFold(), None, scoring)


def _autolog_problem(variables):
    """Return the problem of mlflow's autologging with its current settings, or ""."""
    settings = sys.modules.get("mlflow.utils.autologging_utils")
    read = getattr(settings, "get_autologging_config", None)
    raw = []
    if read is None or read("sklearn", "log_post_training_metrics", True):
        raw.append("exact scores of the training rows")
    if read is None or read("sklearn", "log_input_examples", False):
        raw.append("rows as input examples")
    if read is None or read("sklearn", "log_datasets", True):
        raw.append("a digest of the rows")
    return f"logs {', '.join(raw)}" if raw else ""


_MAKES_ROWS_DEPEND = "fits to rows that were chosen, weighted or relabeled by other rows"

_SEARCH = KnownCaller(_RAW_SCORES, PRIVATE_SEARCH, problem=_score_problem, refusal=_scores_refusal)

_CROSS_VALIDATION = KnownCaller(
    _RAW_SCORES,
    f"use dp_cross_val_score, or {PRIVATE_SCORES}",
    problem=_score_problem,
    refusal=_scores_refusal,
)

_LABELS_INSTEAD = (
    "for one column of labels use the private classifier as it is, which takes several labels, or "
    "OneVsRestClassifier; for several columns use MultiOutputClassifier of a private classifier "
    "that declares classes=[0, 1], or ignore this warning if it is public which labels occur"
)

# OneVsOneClassifier calls these functions in its worker processes.
_ONE_VERSUS_ONE = KnownCaller(_LABEL_COUNTS, _LABELS_INSTEAD, name="OneVsOneClassifier")

_RAW_EFFECT = KnownCaller(
    "averages over raw rows, with raw residuals for its interval",
    "use fit and, on public rows, predict",
    refusal=_bootstrap,
)

# A study calls functions of the user, which are checked separately, once for all trials.
_STUDY = KnownCaller(
    "",
    "return score(model, X, y) of score = make_dp_scorer(...); if these rows are public, ignore "
    "this warning",
    problem=lambda variables: "",
    functions=None,
)
# Problem of a study whose function asks a private model for predictions outside of other tools.
STUDY_ANSWERS = "compares trials by predictions for rows, and so publishes or chooses by raw scores"

# The tests call inner functions, which need no separate judgment.
_PAIRED_TEST = KnownCaller(
    _RAW_SCORES,
    "give it scoring=make_dp_scorer(...)",
    problem=_paired_test_problem,
    functions=frozenset(
        "combined_ftest_5x2cv paired_ttest_5x2cv paired_ttest_kfold_cv "
        "paired_ttest_resampled".split()
    ),
)

# Keys are "module:function", or prefixes of module names, of which the longest applies.
CALLERS = {
    "sklearn.ensemble._bagging": KnownCaller(
        "repeats or leaves out rows, and sets and keeps the seed of each fit's noise, also with "
        "random_state=None",
        SKDP_ENSEMBLES,
        refused=True,
        functions=FITS | {"_parallel_build_estimators"},
    ),
    "sklearn.ensemble._weight_boosting": KnownCaller(
        "draws or weights rows by the errors on other rows, and sets and keeps the seed of each "
        "fit's noise, also with random_state=None",
        SKDP_ENSEMBLES,
        refused=True,
        functions=FITS | {"_boost"},
    ),
    "sklearn.ensemble._gb": KnownCaller(
        "fits its trees to raw rows",
        "use DPAdditiveClassifier, DPAdditiveRegressor or a private forest",
    ),
    "sklearn.ensemble._stacking": KnownCaller(
        "fits its final_estimator to raw rows",
        "use VotingClassifier or VotingRegressor of private estimators; or give it a private "
        "final_estimator and cv=KFold(5, shuffle=True, random_state=0)",
        problem=_stacking_problem,
        refusal=_unread_folds,
    ),
    "sklearn.ensemble._voting": KnownCaller(
        "has members that learn from raw rows without privacy",
        "use private estimators for all members; if frozen ones were fitted to public rows, "
        "ignore this warning",
        problem=_raw_members,
    ),
    "sklearn.calibration": KnownCaller(
        "fits its calibrators to raw rows",
        "use predict_proba of the private classifier as it is, or calibrate on public rows; "
        + IF_PUBLIC,
        problem=_not_of_classes("CalibrationDisplay", wrong="fits its calibrators to raw rows"),
        refusal=_repeated_rows,
    ),
    "sklearn.model_selection._classification_threshold": KnownCaller(
        "chooses its threshold by scores of the raw rows",
        "use FixedThresholdClassifier with a threshold that you choose without these rows, or "
        "class_weight={label: weight}",
        refused=True,
        problem=_of_classes(
            "TunedThresholdClassifierCV", wrong="chooses its threshold by scores of the raw rows"
        ),
    ),
    "sklearn.model_selection._search": _SEARCH,
    "sklearn.model_selection._search_successive_halving": replace(_SEARCH, problem=_subset_problem),
    "sklearn.model_selection._validation:cross_validate": _CROSS_VALIDATION,
    "sklearn.model_selection._validation:cross_val_score": _CROSS_VALIDATION,
    "sklearn.model_selection._validation:learning_curve": replace(
        _CROSS_VALIDATION, problem=_subset_problem
    ),
    "sklearn.model_selection._validation:validation_curve": _CROSS_VALIDATION,
    "sklearn.model_selection._validation:cross_val_predict": KnownCaller(
        "returns an answer for each raw row",
        f"score by cross_val_score: {PRIVATE_SCORES}; what it returns is for your eyes alone",
        problem=_prediction_problem,
        refusal=_repeated_rows,
    ),
    "sklearn.model_selection._validation:permutation_test_score": KnownCaller(
        "gives labels to the rows of others, so that one person changes two rows of a fit",
        f"compare with the noisy score of a private model of few features: {PRIVATE_SCORES}",
    ),
    # The rows of its model's fit are unknown: its scores are checked, but no fit.
    "sklearn.inspection._permutation_importance": KnownCaller(
        "",
        "",
        problem=lambda variables: "",
        functions=None,
        name="permutation_importance",
        wrong_scores=(
            "puts a cell of each person into the row of another one, so that one person changes "
            "two rows of a score, and each charge covers one: give it public or synthetic rows. "
            "With an accountant of relation='replace_one' whose unit is a group of twice as many "
            "rows as a person has (unit='group', max_rows=2 for one row), the charges cover both: "
            "then ignore this warning"
        ),
    ),
    "sklearn.feature_selection._rfe": KnownCaller(
        _RAW_SCORES,
        f"use RFE or SelectFromModel, which choose by released coefficients, or {PRIVATE_SCORES}",
        problem=_sees_only_scores("RFECV"),
        refusal=_elimination_refusal,
    ),
    "sklearn.feature_selection._from_model": KnownCaller(
        "", "give max_features as a number", problem=_selection_problem, refusal=_importance_refusal
    ),
    "sklearn.feature_selection._sequential": KnownCaller(
        _RAW_SCORES,
        f"use SelectFromModel, which chooses by released coefficients, or {PRIVATE_SCORES}",
        problem=_score_problem,
        refusal=_scores_refusal,
    ),
    "sklearn.semi_supervised._self_training": KnownCaller(
        "publishes a label of each raw row, and how often it fits depends on raw rows",
        "fit the private classifier to the labeled rows",
    ),
    "sklearn.linear_model._ransac": KnownCaller(
        "chooses rows by their raw residuals, and sets the noise's seed",
        "use DPRidge with target_bounds, which bound what an outlier can do",
        refused=True,
    ),
    "sklearn.impute._iterative": KnownCaller(
        "fills gaps from raw statistics of other rows, and stops by raw values",
        "use DPSimpleImputer",
        refused=True,
    ),
    "sklearn.multiclass:_fit_ovo_binary": _ONE_VERSUS_ONE,
    "sklearn.multiclass:_partial_fit_ovo_binary": _ONE_VERSUS_ONE,
    "sklearn.multiclass": KnownCaller("", _LABELS_INSTEAD, problem=_multiclass_problem),
    "sklearn.multioutput": KnownCaller(
        "",
        "use classes=[...] of the private classifier, and cv=None or cv=KFold(5, shuffle=True, "
        "random_state=0) of a chain",
        problem=_outputs_problem,
        refusal=_chain_refusal,
    ),
    "imblearn.pipeline": KnownCaller(
        "has samplers: which rows a fit gets, and how often, depends on other rows",
        "leave the sampler out and weight the labels: class_weight={label: weight}",
        refused=True,
        problem=_sampler_problem,
    ),
    "imblearn": KnownCaller(
        _MAKES_ROWS_DEPEND,
        "leave it out and weight the labels: class_weight={label: weight}",
        refused=True,
    ),
    "optuna": _STUDY,
    "bayes_opt": _STUDY,
    "hyperopt": _STUDY,
    "optuna_integration": _SEARCH,
    "optuna.integration": _SEARCH,
    "sklearn_genetic": _SEARCH,
    "skopt": _SEARCH,
    "skopt.optimizer": _STUDY,
    "dask_ml.model_selection": _SEARCH,
    "mapie": KnownCaller(
        "keeps a raw residual, or score, of each row and computes its intervals from them",
        f"keep what it returns to yourself, or give it public rows; {IF_PUBLIC}",
        functions=None,
    ),
    "econml": KnownCaller(
        "",
        "use SLearner, TLearner or XLearner, with private estimators for all of their models",
        problem=_econml_problem,
        refusal=_econml_refusal,
        functions=None,
    ),
    "causalml": KnownCaller(
        "",
        "use an S or T learner of private estimators, without confidence intervals",
        problem=_causalml_problem,
        refusal=_causalml_refusal,
        functions=None,
    ),
    "causalml.inference.meta.slearner:estimate_ate": _RAW_EFFECT,
    "causalml.inference.meta.tlearner:estimate_ate": _RAW_EFFECT,
    "dowhy": KnownCaller(
        "computes its estimates from raw rows",
        "use a T learner of econml with private estimators; " + IF_PUBLIC,
        functions=None,
    ),
    "doubleml": KnownCaller(
        "computes its estimates from raw rows",
        "use a T learner of econml with private estimators; " + IF_PUBLIC,
        functions=None,
    ),
    "crepes": KnownCaller(
        "keeps a raw residual, or score, of each row",
        f"keep what it returns to yourself, or calibrate on public rows; {IF_PUBLIC}",
        functions=None,
    ),
    "venn_abers": KnownCaller(
        "fits its calibrators to raw rows",
        f"use predict_proba of the private classifier as it is; {IF_PUBLIC}",
        functions=None,
    ),
    "boruta": KnownCaller(
        "gives cells of each person to the rows of others, so that one person changes two rows of "
        "a fit, and sets the noise's seed",
        "use SelectFromModel, which chooses by released coefficients",
        refused=True,
    ),
    "skore": KnownCaller(
        "shows exact scores of the raw rows",
        "give EstimatorReport a fitted model and public rows, or use dp_cross_val_score",
        functions=None,
        name="a report of skore",
    ),
    # A graph of operations, of which skdp sees only the private ones.
    "skrub._data_ops": KnownCaller(
        "may compute other operations from raw rows",
        "write the private steps as a pipeline of scikit-learn; if all other operations treat each "
        "row by itself, ignore this warning",
        functions=None,
        name="a data op of skrub",
    ),
    "cleanlab": KnownCaller(
        _MAKES_ROWS_DEPEND,
        "fit the private classifier as it is, or clean labels by a rule that you choose without "
        "these rows",
        functions=None,
    ),
    "fairlearn": KnownCaller(
        "chooses thresholds, or weights, by raw rows",
        "choose thresholds for each group without these rows, or on public rows; " + IF_PUBLIC,
        functions=None,
    ),
    "fairlearn.reductions": KnownCaller(
        "weights rows by what other rows say",
        "choose thresholds for each group on public rows, or use class_weight={label: weight}",
        refused=True,
        functions=None,
    ),
    "mlflow": KnownCaller(
        "logs exact scores of the training rows",
        "use mlflow.sklearn.autolog(log_post_training_metrics=False, log_datasets=False), or log "
        "the released model by mlflow.sklearn.log_model",
        problem=_autolog_problem,
        functions=None,
        name="mlflow.sklearn.autolog",
    ),
    "feature_engine": KnownCaller(
        _RAW_SCORES, "use SelectFromModel, which chooses by released coefficients", functions=None
    ),
    "feature_engine.selection": KnownCaller(
        _RAW_SCORES,
        "use SelectFromModel, which chooses by released coefficients, or give "
        "RecursiveFeatureElimination, RecursiveFeatureAddition or "
        "SelectBySingleFeaturePerformance scoring=make_dp_scorer(...) and cv=KFold(5, "
        "shuffle=True, random_state=0)",
        problem=_feature_engine_problem,
        refusal=_repeated_rows,
    ),
    # Its steps are checked separately.
    "feature_engine.pipeline": KnownCaller("", "", problem=lambda variables: ""),
    "mlxtend": KnownCaller(
        _RAW_SCORES, "use dp_cross_val_score or DPGridSearchCV", functions=None, name="mlxtend"
    ),
    "mlxtend.classifier.ensemble_vote": KnownCaller(
        "", "use private estimators for all members", problem=_raw_parts_problem
    ),
    "mlxtend.classifier.stacking_classification": KnownCaller(
        "",
        "give it private classifiers and a private meta_classifier, or use VotingClassifier of "
        "private estimators",
        problem=_raw_parts_problem,
    ),
    "mlxtend.classifier.stacking_cv_classification": KnownCaller(
        "",
        "give it private classifiers, a private meta_classifier, stratify=False and an int as cv, "
        "or use "
        "VotingClassifier of private estimators",
        problem=_stacked_folds_problem,
        refusal=_repeated_rows,
    ),
    "mlxtend.regressor.stacking_regression": KnownCaller(
        "",
        "give it private regressors and a private meta_regressor, or use VotingRegressor of "
        "private estimators",
        problem=_raw_parts_problem,
    ),
    "mlxtend.regressor.stacking_cv_regression": KnownCaller(
        "",
        "give it private regressors and a private meta_regressor, or use VotingRegressor of "
        "private estimators",
        problem=_raw_parts_problem,
        refusal=_repeated_rows,
    ),
    "mlxtend.feature_selection": KnownCaller(
        _RAW_SCORES,
        f"use SelectFromModel, which chooses by released coefficients, or {PRIVATE_SCORES}",
        problem=_score_problem,
        refusal=_repeated_rows,
    ),
    "mlxtend.evaluate.f_test": _PAIRED_TEST,
    "mlxtend.evaluate.ttest": _PAIRED_TEST,
    "mlxtend.evaluate.bias_variance_decomp": KnownCaller(
        "draws rows again and again, so that a person's row counts repeatedly",
        "use dp_cross_val_score",
        refused=True,
        functions=None,
    ),
    "mlxtend.evaluate.bootstrap_point632": KnownCaller(
        "draws rows again and again, so that a person's row counts repeatedly",
        "use dp_cross_val_score",
        refused=True,
        functions=None,
    ),
    # FeatureImportances shows released coefficients.
    "yellowbrick": KnownCaller(
        _RAW_SCORES,
        f"give it public rows to score; {IF_PUBLIC}",
        problem=_not_of_classes("FeatureImportances", wrong=_RAW_SCORES),
        functions=None,
    ),
    "yellowbrick.model_selection": KnownCaller(
        _RAW_SCORES, PRIVATE_SCORES, problem=_score_problem, refusal=_repeated_rows
    ),
    "yellowbrick.model_selection.importances": KnownCaller("", "", problem=lambda variables: ""),
}

# Tools that call functions of the user and compute nothing from rows.
RUNNERS = frozenset(
    "joblib dask distributed ray pyspark cloudpickle loky multiprocess ipyparallel mpi4py "
    "IPython ipykernel pytest _pytest pluggy pytest_benchmark hypothesis tenacity tqdm wrapt "
    "decorator coverage threadpoolctl line_profiler memory_profiler typeguard beartype skdp".split()
)
# Modules of scikit-learn that pass rows on unchanged, or columns to each estimator.
PASSES_ON = (
    "sklearn.base",
    "sklearn.callback",
    "sklearn.compose",
    "sklearn.ensemble._base",
    "sklearn.feature_selection._base",
    "sklearn.frozen",
    "sklearn.inspection",
    "sklearn.metrics",
    "sklearn.model_selection._plot",
    "sklearn.pipeline",
    "sklearn.utils",
    "skrub._apply_to_cols",
    "skrub._apply_to_each_col",
    "skrub._apply_to_sub_frame",
    "skrub._wrap_transformer",
)


@cache
def is_known(module):
    """Return True if the table has an entry about a module or its functions."""
    packages = module.split(".")
    beginnings = {".".join(packages[: i + 1]) for i in range(len(packages))}
    return any(key.partition(":")[0] in beginnings for key in CALLERS)


@cache
def known_caller(module, function):
    """Return the entry of the table for a function of a module, or None.

    Parameters
    ----------
    module, function : str

    Returns
    -------
    KnownCaller or None
    """
    tool = CALLERS.get(f"{module}:{function}")
    if tool is not None:
        return tool
    packages = module.split(".")
    for length in range(len(packages), 0, -1):
        tool = CALLERS.get(".".join(packages[:length]))
        if tool is not None:
            return tool if tool.functions is None or function in tool.functions else None
    return None


def is_study(frame):
    """Return True for a call of a tool that compares the results of a function of the user."""
    return known_caller(frame.f_globals["__name__"], frame.f_code.co_name) is _STUDY


@cache
def passes_on(module):
    """Return True if functions of a module only call others, with unchanged rows."""
    package = module.partition(".")[0]
    # Python's own threads, pools and context managers run functions of others.
    if package in RUNNERS or package in sys.stdlib_module_names or is_known(module):
        return True
    return any(module == name or module.startswith(name + ".") for name in PASSES_ON)
