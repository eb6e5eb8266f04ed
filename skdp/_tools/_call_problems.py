"""Privacy problems of calls of tools; each is a function of the call's local variables.

A function of a `KnownCaller` returns the problem as the end of a sentence that begins with the
tool's name, or "" if this call has none. It reads parameters and shapes, and no rows.
"""

import sys
from numbers import Integral

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from skdp._data._classes import too_many_classes_problem
from skdp._data._tables import target_array
from skdp._tools._classes import is_of_classes
from skdp._tools._functions import refers_to_table
from skdp._tools._parts import holds_private, is_frozen, is_step, learns_raw, parts_in, parts_of
from skdp._tools._scores_and_folds import (
    RAW_SCORES,
    declares_labels,
    declares_some_labels,
    folds_problem,
    has_private_scores,
    is_by_person,
    number_of_rows,
    repeated_rows_problem,
    score_problem,
    scores_refusal,
    splits_by_values,
    tuned_estimator,
    unread_folds_problem,
)

LABEL_COUNTS = (
    "gives each fit the rows of two labels, so that the exact number of rows of each label "
    "becomes public"
)
GROUP_SIZES = (
    "gives each fit, or release, the rows of one group, so that the exact number of rows of each "
    "group becomes public"
)
ENCODED_LABELS = (
    "replaces each label by its position among the labels that occur, so that one row with a rare "
    "label can change the labels of other rows, while a private classifier with declared classes "
    "keeps secret which labels occur (leave out classes if this is public, or fit each classifier "
    "separately)"
)
# Private estimators whose fits publish an attribute by which features can be selected.
IMPORTANCES = {
    "coef_": frozenset(
        "DPLinearRegression DPLinearSVC DPLogisticRegression DPPoissonRegressor DPRidge "
        "DPSGDClassifier DPSGDRegressor".split()
    ),
    "feature_importances_": frozenset(
        "DPAdditiveClassifier DPAdditiveRegressor DPHistogramNB".split()
    ),
}
# Learners of causalml that fit each model to all rows, or to the rows of one treatment.
CAUSALML_BY_ARM = tuple(
    f"causalml.Base{arm}{kind}" for arm in "ST" for kind in ("Learner", "Regressor", "Classifier")
)
# Selections in feature-engine that read only scores and importances of their model.
SCORED_SELECTIONS = (
    "feature_engine.RecursiveFeatureElimination",
    "feature_engine.RecursiveFeatureAddition",
    "feature_engine.SelectBySingleFeaturePerformance",
)


def no_problem(variables):
    """Return "": no call of the tool has a problem."""
    return ""


def if_scored_by_classes(*names):
    """Return a `problem` function that reports problems with scores for the named classes."""

    def problem(variables):
        """Return the problem of the scores, or "" for other classes."""
        is_named = is_of_classes(variables.get("self"), *names)
        if is_named:
            return score_problem(variables)
        return ""

    return problem


def if_of_classes(*names, wrong):
    """Return a `problem` function with a constant text for classes with these names."""

    def problem(variables):
        """Return the problem, or "" for other classes."""
        if is_of_classes(variables.get("self"), *names):
            return wrong
        return ""

    return problem


def unless_of_classes(*names, wrong):
    """Return a `problem` function with a constant text for all but the named classes."""

    def problem(variables):
        """Return the problem, or "" for the named classes."""
        if is_of_classes(variables.get("self"), *names):
            return ""
        return wrong

    return problem


def refused_unless_frozen(wrong, seeds=""):
    """Return a `refusal` function for tools that fit their estimator to rows that depend on others.

    A frozen estimator is not fitted, so its call is not refused.

    Parameters
    ----------
    wrong : str
        Problem of the rows.
    seeds : str, default=""
        Description of how the tool uses the seeds of estimators that have one.
    """

    def refusal(variables):
        """Return the reason to refuse the fit of the members, or "" if they are frozen."""
        estimator = _fitted_member(variables)
        if is_frozen(estimator):
            return ""
        return wrong + seeds if _takes_seed(estimator) else wrong

    return refusal


def if_frozen(wrong):
    """Return a `problem` function for a tool that reads raw rows without fitting a model."""

    def problem(variables):
        return wrong if is_frozen(_fitted_member(variables)) else ""

    return problem


def bagging_problem(variables):
    """Return the problem of bagging with a frozen estimator, which it does not fit, or ""."""
    if getattr(_owner(variables), "oob_score", False):
        return "publishes exact scores and answers for raw rows (oob_score=True)"
    return ""


def _owner(variables):
    """Return the tool; functions that run in workers receive it as an argument."""
    return variables.get("self", variables.get("ensemble"))


def _fitted_member(variables):
    return tuned_estimator(_owner(variables))


def _takes_seed(estimator):
    """Return True if an estimator, or a part of it, has a parameter for a seed."""
    if not hasattr(estimator, "get_params"):
        return True
    return any(name.rpartition("__")[2] == "random_state" for name in estimator.get_params())


def prediction_problem(variables):
    """Return the problem of cross-validated predictions, or ""."""
    problems = [
        "returns an answer for each raw row",
        folds_problem(variables.get("cv"), variables.get("estimator")),
    ]
    return " and ".join(filter(None, problems))


def prediction_refusal(variables):
    """Return the reason to refuse cross-validated predictions, or ""."""
    problem = too_many_classes_problem(variables.get("estimator"), variables.get("le"))
    return problem or repeated_rows_problem(variables)


def raw_members_problem(variables):
    """Return the problem of an ensemble's members that are not private, or ""."""
    members = list(parts_in("estimators", getattr(variables.get("self"), "estimators", None)))
    raw = [(name, member) for name, member in members if learns_raw(member)]
    learning = [name for name, member in raw if _is_of_sklearn(member)]
    unknown = [name for name, member in raw if not _is_of_sklearn(member)]
    fitted = [name for name, m in members if is_frozen(m) and not holds_private(m)]
    problems = []
    if learning:
        problems.append(f"has members {learning} that learn from raw rows without privacy")
    if unknown:
        problems.append(
            f"has members {unknown} that skdp does not know, and that may learn from raw rows"
        )
    if fitted:
        problems.append(f"has members {fitted} that learned from rows which skdp does not know")
    return " and ".join(problems)


def _is_of_sklearn(value):
    return type(value).__module__.partition(".")[0] == "sklearn"


def encoded_labels_problem(owner):
    """Return the problem of a tool that passes positions of labels to its classifiers, or "".

    Such a tool sorts the labels that occur. Without declared classes, private classifiers publish
    these labels. scikit-learn's tools are refused if a declared label does not occur; this is
    checked together with their members' parameters.
    """
    if is_classifier(owner) and declares_some_labels(owner):
        return ENCODED_LABELS
    return ""


def stacking_problem(variables):
    """Return the problem of a stack with raw members, a raw final estimator or other folds, or "".

    With a string as `cv` ("prefit"), the stack has no folds.
    """
    owner = variables.get("self")
    problems = [raw_members_problem(variables)]
    final = getattr(owner, "final_estimator", None)
    if is_frozen(final):
        if not holds_private(final):
            problems.append("has a final_estimator that learned from rows which skdp does not know")
    elif not holds_private(final):
        problems.append("fits its final_estimator to raw rows")
    if owner is not None and not isinstance(owner.cv, str):
        problems.append(folds_problem(owner.cv, owner))
    return " and ".join(filter(None, problems))


def chain_refusal(variables):
    """Return the reason to refuse a chain: its folds receive no person ids, or are read late."""
    owner = variables.get("self")
    if getattr(owner, "cv", None) is not None and is_by_person(tuned_estimator(owner)):
        return "does not pass groups to the fits of its folds (use cv=None)"
    return unread_folds_problem(variables)


def _chain_problem(variables):
    """Return the problem of the folds by which a chain predicts its earlier targets, or "".

    With `cv=None`, the chain trains on the true targets and has no folds.
    """
    owner = variables.get("self")
    cv = getattr(owner, "cv", None)
    # A chain that is given a word is refused.
    if cv is None or isinstance(cv, str):
        return ""
    return folds_problem(cv, tuned_estimator(owner))


def _width(target):
    """Return the number of columns of a target; 1 for a list of labels."""
    shape = getattr(target, "shape", None)
    if shape is None and isinstance(target, list | tuple) and len(target):
        shape = (len(target), *(len(row) for row in target[:1] if isinstance(row, list | tuple)))
    if shape is not None and len(shape) == 2:
        return shape[1]
    return 1


def multiclass_problem(variables):
    """Return the problem of one-vs-one, or of one-vs-rest with several columns, or ""."""
    if is_of_classes(variables.get("self"), "sklearn.OneVsOneClassifier"):
        return one_versus_one_problem(variables)
    # `Y` has a column for each label of `y`. The labels of a single column are public.
    if _width(variables.get("y")) < 2:
        return ""
    return if_of_classes(
        "sklearn.OneVsRestClassifier",
        wrong=(
            "fits no model for a label that no row or every row has, and publishes this fact, "
            "which can reveal the label of one row"
        ),
    )(variables)


def one_versus_one_problem(variables):
    """Return the problem of one-vs-one, or of a fit in its worker; "" if there are two labels.

    Then its only classifier receives all rows. Without declared classes, this classifier publishes
    the labels that occur, so these count as public.
    """
    estimator = variables.get("estimator", tuned_estimator(variables.get("self")))
    y = variables.get("y")
    is_first_batch = "classes" in variables or "partial_fit_params" in variables
    if is_first_batch or y is None or _width(y) > 1 or declares_some_labels(estimator):
        return LABEL_COUNTS
    try:
        n_labels = len(np.unique(target_array(y)))
    except (TypeError, ValueError):
        # scikit-learn refuses labels that it cannot sort.
        return LABEL_COUNTS
    return LABEL_COUNTS if n_labels > 2 else ""


def outputs_problem(variables):
    """Return the problem of a fit with several outputs, or ""."""
    problems = [_chain_problem(variables)]
    estimator = tuned_estimator(variables.get("self"))
    # `partial_fit` declares the labels of each output by its argument `classes`.
    is_declared = "classes" in variables or declares_labels(estimator)
    # If there is a variable `Y`, then `y` is one of its columns.
    if _width(variables.get("Y", variables.get("y"))) > 1 and not is_declared:
        wrong = (
            "refuses an output with a single label after other outputs were charged, which can "
            "reveal the label of one row"
        )
        classes = ("sklearn.MultiOutputClassifier", "sklearn.ClassifierChain")
        problems.append(if_of_classes(*classes, wrong=wrong)(variables))
    return " and ".join(filter(None, problems))


def importance_refusal(variables):
    """Return the reason to refuse a selection that would fail after its first charge, or ""."""
    owner = variables.get("self")
    estimator = getattr(owner, "estimator", None)
    getter = getattr(owner, "importance_getter", None)
    is_fitted = getattr(owner, "prefit", False) is True or is_frozen(estimator)
    if not isinstance(getter, str) or is_fitted or not holds_private(estimator):
        return ""
    if getter != "auto":
        return _named_importances_refusal(estimator, getter)
    if _may_have_importances(estimator, IMPORTANCES):
        return ""
    return (
        f"selects by coef_ or feature_importances_, but {type(estimator).__name__} has neither, "
        "which is detected only after its fit was charged (set importance_getter, such as "
        "'named_steps.dplogisticregression.coef_' for a pipeline, or select by another model)"
    )


def _named_importances_refusal(estimator, getter):
    """Return the reason to refuse an `importance_getter` that names a missing attribute, or "".

    Parameters
    ----------
    estimator : estimator
        An unfitted estimator. The attributes of its fit are known only for private estimators.
    getter : str
        Names of attributes, separated by dots.
    """
    *holders, attribute = getter.split(".")
    model = estimator
    for name in holders:
        if name.endswith("_"):
            # A fitted attribute, such as `best_estimator_`, does not exist yet.
            return ""
        inner = getattr(model, name, None)
        if inner is None:
            return _missing_attribute(getter, type(model).__name__, name)
        model = inner
    is_known = attribute in IMPORTANCES and holds_private(model)
    if not is_known or _may_have_importances(model, [attribute]):
        return ""
    return _missing_attribute(getter, type(model).__name__, attribute)


def _missing_attribute(getter, owner, name):
    """Return the reason to refuse a selection by an attribute that its model will not have."""
    return (
        f"selects by importance_getter={getter!r}, but {owner} has no {name}, which is detected "
        "only after its fit was charged (correct the name, or select by another model)"
    )


def _may_have_importances(estimator, attributes):
    """Return True unless the fit of an estimator is known to publish none of the attributes."""
    kind = type(estimator)
    if kind.__module__.partition(".")[0] not in ("sklearn", "imblearn", "skdp"):
        return True
    return any(hasattr(kind, name) or kind.__name__ in IMPORTANCES[name] for name in attributes)


def elimination_refusal(variables):
    return importance_refusal(variables) or scores_refusal(variables)


def sampler_problem(variables):
    """Return the problem of imbalanced-learn steps that repeat or create rows, or ""."""
    steps = getattr(variables.get("self"), "steps", None) or ()
    samplers = [
        f"{type(step).__name__} in step {name!r}"
        for name, step in steps
        if hasattr(step, "fit_resample")
    ]
    if not samplers:
        return ""
    if _fits_no_private(steps):
        return f"has {', '.join(samplers)}, which stores rows or label counts of a raw table"
    return f"has {', '.join(samplers)}: other rows decide which rows a fit receives, and how often"


def sampler_refusal(variables):
    """Return the reason to refuse a pipeline with a resampler, or "" if it fits nothing private."""
    steps = getattr(variables.get("self"), "steps", None) or ()
    return "" if _fits_no_private(steps) else sampler_problem(variables)


def _fits_no_private(steps):
    """Return True if all private estimators of a pipeline are frozen, and no class is unknown."""
    parts = [step for _, step in steps if not (is_frozen(step) or hasattr(step, "fit_resample"))]
    return any(is_frozen(step) for _, step in steps) and not any(map(is_step, parts))


def selection_problem(variables):
    """Return the problem of a selection by a function that may read rows, or ""."""
    owner = variables.get("self")
    problems = [importance_problem(variables)]
    if callable(getattr(owner, "max_features", None)):
        problems.append("computes max_features from raw rows")
    return " and ".join(filter(None, problems))


def elimination_problem(variables):
    """Return the problem of a recursive elimination, or ""."""
    problems = [importance_problem(variables), if_scored_by_classes("sklearn.RFECV")(variables)]
    if problems[0]:
        problems[0] += " (give it the name of an attribute, such as 'coef_')"
    return " and ".join(filter(None, problems))


def importance_problem(variables):
    """Return the problem of an `importance_getter` that reads more than its model, or ""."""
    getter = getattr(variables.get("self"), "importance_getter", None)
    if refers_to_table(getter, number_of_rows(variables)):
        return (
            "chooses by an importance_getter that may read rows, since it refers to a table, a "
            "column or a fitted model"
        )
    return ""


def window_problem(variables):
    """Return the problem of windows of rows whose sizes depend on values, or ""."""
    window = getattr(variables.get("self"), "window", None)
    if window is None or isinstance(window, Integral):
        return ""
    return GROUP_SIZES


def econml_problem(variables):
    """Return the problem of an estimator of econml, or "" if all its models are private."""
    owner = variables.get("self")
    if owner is None:
        # A function inside the fit of an estimator, which was checked.
        return ""
    if not is_of_classes(owner, "econml.SLearner", "econml.TLearner", "econml.XLearner"):
        return "computes its final stage, or its weights, from raw rows"
    return raw_parts_problem(variables)


def encoded_parts_problem(variables):
    """Return the problem of a tool of mlxtend that encodes labels, as `raw_parts_problem` does."""
    problems = [raw_parts_problem(variables), encoded_labels_problem(variables.get("self"))]
    return " and ".join(filter(None, problems))


def raw_parts_problem(variables):
    """Return the problem of non-private models in any parameter of a tool, or ""."""
    owner = variables.get("self")
    if owner is None:
        return ""
    # mlxtend can skip the fits of all models but the last one.
    is_prefit = getattr(owner, "fit_base_estimators", True) is False
    raw = [
        name
        for name, part in parts_of(owner)
        if learns_raw(part) and (name.startswith("meta_") or not is_prefit)
    ]
    if raw:
        return f"fits its {' and '.join(dict.fromkeys(raw))} to raw rows"
    return ""


def econml_refusal(variables):
    """Return the reason to refuse an econml fit that would fail or repeat after charges, or ""."""
    owner = variables.get("self")
    final = getattr(variables.get("self"), "model_final", None)
    if is_of_classes(owner, "econml.NonParamDML", "econml.KernelDML") and holds_private(final):
        return "gives its private model_final a sample_weight"
    if is_of_classes(owner, "econml.DomainAdaptationLearner"):
        return "gives its private models a sample_weight"
    return bootstrap_problem(variables)


def bootstrap_problem(variables):
    """Return the problem of intervals by a bootstrap in causal inference, or ""."""
    inference = variables.get("inference")
    is_asked = variables.get("return_ci") is True or variables.get("bootstrap_ci") is True
    if inference == "bootstrap" or type(inference).__name__ == "BootstrapInference" or is_asked:
        return "draws rows again and again for its intervals, so that a person's row counts often"
    return ""


def causalml_refusal(variables):
    """Return the reason to refuse a model of causalml, or ""."""
    if is_of_classes(variables.get("self"), "causalml.BaseRLearner"):
        return "gives its private models a sample_weight"
    return bootstrap_problem(variables)


def causalml_problem(variables):
    """Return the problem of a model of causalml, or ""."""
    owner = variables.get("self")
    if is_of_classes(owner, *CAUSALML_BY_ARM):
        return raw_parts_problem(variables)
    return "fits its propensity model, or its last stage, to raw rows"


def stacked_folds_problem(variables):
    """Return the problem of a stack of another library whose folds depend on the labels, or ""."""
    owner = variables.get("self")
    problems = [encoded_parts_problem(variables)]
    cv = getattr(owner, "cv", None)
    if getattr(owner, "stratify", False) or (
        not isinstance(cv, Integral) and splits_by_values(cv, 0)
    ):
        problems.append("splits the rows by folds that depend on their labels")
    return " and ".join(filter(None, problems))


def feature_engine_problem(variables):
    """Return the problem of a selection of feature-engine, or ""."""
    is_scored = is_of_classes(variables.get("self"), *SCORED_SELECTIONS)
    if is_scored:
        return score_problem(variables)
    return RAW_SCORES


def paired_test_problem(variables):
    """Return the problem of a test that compares two models by their scores, or "".

    mlxtend's tests split the rows by row numbers, without looking at labels.
    """
    scoring = variables.get("scoring")
    if not has_private_scores(scoring):
        return RAW_SCORES
    return folds_problem(KFold(), None, scoring)


def autolog_problem(variables):
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
    if raw:
        return f"logs {', '.join(raw)}"
    return ""
