"""Entries shared by several tools, and functions that return entries of one kind."""

from skdp._tools._advice import (
    CHAIN,
    ENSEMBLE,
    LABELS_INSTEAD,
    MODEL_ALONE,
    NO_PRIVATE_CLASS,
    PRIVATE_SCORES,
    PRIVATE_SEARCH,
    SEARCH,
    STACKING,
)
from skdp._tools._call_problems import (
    GROUP_SIZES,
    LABEL_COUNTS,
    RAW_SCORES,
    bootstrap_problem,
    no_problem,
    one_versus_one_problem,
    paired_test_problem,
)
from skdp._tools._entries import KnownCaller, KnownStep
from skdp._tools._scores_and_folds import score_problem, scores_refusal
from skdp._tools._step_conditions import (
    scores_privately,
    selects_by_model_alone,
    stacks_with_index_folds,
    uses_true_labels,
)


def learns(private=None):
    """Return an entry for a class that learns from rows, with what to use instead, if anything."""
    return KnownStep(
        kind="learns", advice=NO_PRIVATE_CLASS if private is None else f"use {private}"
    )


def wrapper(*inner):
    """Return an entry for a class that learns nothing beyond what its inner estimators learn."""
    return KnownStep(kind="wrapper", inner=inner)


def ensemble(*inner):
    """Return an entry for a class that fits repeated rows."""
    return KnownStep(kind="resamples", advice=ENSEMBLE, inner=inner)


def search(*inner, advice=SEARCH):
    """Return an entry for a class that selects by scores, which may be private."""
    return KnownStep(
        kind="wrapper",
        condition=scores_privately,
        otherwise="cross_validates",
        advice=advice,
        inner=inner,
    )


def selection():
    """Return an entry for a class that selects features by what a model has released."""
    return KnownStep(
        kind="wrapper", condition=selects_by_model_alone, advice=MODEL_ALONE, inner=("estimator",)
    )


def stacking():
    """Return an entry for a class whose last stage is fitted to predictions of raw rows."""
    return KnownStep(
        kind="wrapper",
        condition=stacks_with_index_folds,
        otherwise="calibrates",
        advice=STACKING,
        inner=("estimators", "final_estimator"),
        private_parts=("final_estimator",),
    )


def chain():
    """Return an entry for a class that predicts targets one after the other."""
    return KnownStep(
        kind="wrapper",
        condition=uses_true_labels,
        otherwise="calibrates",
        advice=CHAIN,
        inner=("estimator", "base_estimator"),
    )


MAKES_ROWS_DEPEND = "fits to rows that were chosen, weighted or relabeled by other rows"
SEARCH_CALL = KnownCaller(
    wrong=RAW_SCORES, instead=PRIVATE_SEARCH, problem=score_problem, refusal=scores_refusal
)
CROSS_VALIDATION = KnownCaller(
    wrong=RAW_SCORES,
    instead=f"use dp_cross_val_score, or {PRIVATE_SCORES}",
    problem=score_problem,
    refusal=scores_refusal,
)
# OneVsOneClassifier calls these functions in its worker processes.
ONE_VERSUS_ONE = KnownCaller(
    wrong=LABEL_COUNTS,
    instead=LABELS_INSTEAD,
    problem=one_versus_one_problem,
    name="OneVsOneClassifier",
)
RAW_EFFECT = KnownCaller(
    wrong="averages over raw rows, with raw residuals for its interval",
    instead="use fit and, on public rows, predict",
    refusal=bootstrap_problem,
)
# The groups depend on values, and each release publishes the number of rows that it received.
GROUPS_OF_ROWS = KnownCaller(
    wrong=GROUP_SIZES,
    instead=(
        "count rows by dp_crosstab or dp_histogram, and give dp_sum all rows, with 0 in place of "
        "the values of other groups; if it is public which rows are in which group, ignore this "
        "warning"
    ),
    functions=None,
)
# A study calls user-defined functions, which are checked separately, once for all trials.
STUDY = KnownCaller(
    wrong="",
    instead=(
        "return score(model, X, y) of score = make_dp_scorer(...); if these rows are public, "
        "ignore this warning"
    ),
    problem=no_problem,
    functions=None,
)
# The tests call inner functions, which need not be judged separately.
PAIRED_TEST = KnownCaller(
    wrong=RAW_SCORES,
    instead="give it scoring=make_dp_scorer(...)",
    problem=paired_test_problem,
    functions=frozenset(
        "combined_ftest_5x2cv paired_ttest_5x2cv paired_ttest_kfold_cv "
        "paired_ttest_resampled".split()
    ),
)
