"""The scikit-learn tools that call the fits of private estimators."""

from dataclasses import replace

from skdp._tools._advice import (
    CALIBRATION,
    IF_PUBLIC,
    LABELS_INSTEAD,
    PRIVATE_SCORES,
    SEARCH,
    SELECTION,
    SKDP_ENSEMBLES,
    THRESHOLD,
)
from skdp._tools._call_problems import (
    RAW_SCORES,
    bagging_problem,
    chain_refusal,
    elimination_problem,
    elimination_refusal,
    if_frozen,
    if_of_classes,
    importance_refusal,
    multiclass_problem,
    no_problem,
    outputs_problem,
    prediction_problem,
    prediction_refusal,
    raw_members_problem,
    refused_unless_frozen,
    selection_problem,
    stacking_problem,
    unless_of_classes,
)
from skdp._tools._entries import FITS, KnownCaller, KnownStep, Tool
from skdp._tools._entry_kinds import (
    CROSS_VALIDATION,
    ONE_VERSUS_ONE,
    SEARCH_CALL,
    ensemble,
    search,
    selection,
    stacking,
    wrapper,
)
from skdp._tools._scores_and_folds import (
    repeated_rows_problem,
    score_problem,
    scores_refusal,
    subset_problem,
    unread_folds_problem,
)

SETS_SEEDS = ", and sets and keeps the seed of each fit's noise, also with random_state=None"

TOOLS: tuple[Tool, ...] = (
    Tool(
        classes=("sklearn.ensemble.BaggingClassifier", "sklearn.ensemble.BaggingRegressor"),
        step=ensemble("estimator"),
        modules=("sklearn.ensemble._bagging",),
        call=KnownCaller(
            wrong="repeats or leaves out rows",
            instead=SKDP_ENSEMBLES,
            problem=bagging_problem,
            refusal=refused_unless_frozen("repeats or leaves out rows", SETS_SEEDS),
            functions=FITS | {"_parallel_build_estimators"},
        ),
    ),
    Tool(
        classes=("sklearn.ensemble.AdaBoostClassifier", "sklearn.ensemble.AdaBoostRegressor"),
        step=ensemble("estimator"),
        modules=("sklearn.ensemble._weight_boosting",),
        call=KnownCaller(
            wrong="draws or weights rows by the errors on other rows",
            instead=SKDP_ENSEMBLES,
            problem=if_frozen("weights its members by their errors on raw rows"),
            refusal=refused_unless_frozen(
                "draws or weights rows by the errors on other rows", SETS_SEEDS
            ),
            functions=FITS | {"_boost"},
        ),
    ),
    Tool(
        classes=("sklearn.ensemble.StackingClassifier", "sklearn.ensemble.StackingRegressor"),
        step=stacking(),
        modules=("sklearn.ensemble._stacking",),
        call=KnownCaller(
            wrong="fits its final_estimator to raw rows",
            instead=(
                "use VotingClassifier or VotingRegressor of private estimators; or give it a "
                "private final_estimator and cv=KFold(5, shuffle=True, random_state=0)"
            ),
            problem=stacking_problem,
            refusal=unread_folds_problem,
        ),
    ),
    Tool(
        classes=("sklearn.ensemble.VotingClassifier", "sklearn.ensemble.VotingRegressor"),
        step=wrapper("estimators"),
        modules=("sklearn.ensemble._voting",),
        call=KnownCaller(
            wrong="has members that learn from raw rows without privacy",
            instead=(
                "use private estimators for all members; if frozen ones were fitted to public "
                "rows, ignore this warning"
            ),
            problem=raw_members_problem,
        ),
    ),
    Tool(
        classes=("sklearn.calibration.CalibratedClassifierCV",),
        step=KnownStep(kind="calibrates", advice=CALIBRATION, inner=("estimator",)),
        modules=("sklearn.calibration",),
        call=KnownCaller(
            wrong="fits its calibrators to raw rows",
            instead=(
                "use DPCalibratedClassifierCV, or predict_proba of the private classifier as it "
                "is, or calibrate on public rows; " + IF_PUBLIC
            ),
            problem=unless_of_classes(
                "sklearn.CalibrationDisplay", wrong="fits its calibrators to raw rows"
            ),
            refusal=repeated_rows_problem,
            # Workers that call this function cannot detect the tool.
            functions=FITS | {"_fit_classifier_calibrator_pair"},
            name="CalibratedClassifierCV",
        ),
    ),
    Tool(
        classes=("sklearn.model_selection.TunedThresholdClassifierCV",),
        step=KnownStep(kind="calibrates", advice=THRESHOLD, inner=("estimator",)),
        modules=("sklearn.model_selection._classification_threshold",),
        call=KnownCaller(
            wrong="chooses its threshold by scores of the raw rows",
            instead=(
                "use DPTunedThresholdClassifierCV, or FixedThresholdClassifier with a threshold "
                "that you choose without these rows, or class_weight='balanced'"
            ),
            refused=True,
            problem=if_of_classes(
                "sklearn.TunedThresholdClassifierCV",
                wrong="chooses its threshold by scores of the raw rows",
            ),
        ),
    ),
    Tool(
        classes=(
            "sklearn.model_selection.GridSearchCV",
            "sklearn.model_selection.RandomizedSearchCV",
        ),
        step=search("estimator"),
        modules=("sklearn.model_selection._search",),
        call=SEARCH_CALL,
    ),
    Tool(
        classes=(
            "sklearn.model_selection.HalvingGridSearchCV",
            "sklearn.model_selection.HalvingRandomSearchCV",
        ),
        step=KnownStep(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
        modules=("sklearn.model_selection._search_successive_halving",),
        call=replace(SEARCH_CALL, problem=subset_problem),
    ),
    Tool(
        classes=("sklearn.feature_selection.RFECV",),
        step=search("estimator", advice=SELECTION),
        modules=("sklearn.feature_selection._rfe",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead=(
                "use RFE or SelectFromModel, which choose by released coefficients, or "
                f"{PRIVATE_SCORES}"
            ),
            problem=elimination_problem,
            refusal=elimination_refusal,
        ),
    ),
    Tool(
        classes=("sklearn.feature_selection.SelectFromModel",),
        step=selection(),
        modules=("sklearn.feature_selection._from_model",),
        call=KnownCaller(
            wrong="",
            instead="give max_features as a number and importance_getter as a name",
            problem=selection_problem,
            refusal=importance_refusal,
        ),
    ),
    Tool(
        classes=("sklearn.feature_selection.SequentialFeatureSelector",),
        step=search("estimator", advice=SELECTION),
        modules=("sklearn.feature_selection._sequential",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead=(
                f"use SelectFromModel, which chooses by released coefficients, or {PRIVATE_SCORES}"
            ),
            problem=score_problem,
            refusal=scores_refusal,
        ),
    ),
    Tool(
        classes=("sklearn.semi_supervised.SelfTrainingClassifier",),
        step=KnownStep(
            kind="resamples",
            advice="it chooses the rows of later fits: leave it out, and fit the labeled rows",
            inner=("estimator", "base_estimator"),
        ),
        modules=("sklearn.semi_supervised._self_training",),
        call=KnownCaller(
            wrong="publishes a label of each raw row, and how often it fits depends on raw rows",
            instead="fit the private classifier to the labeled rows",
        ),
    ),
    Tool(
        classes=("sklearn.linear_model.RANSACRegressor",),
        step=KnownStep(
            kind="resamples",
            advice="use DPRidge or DPLinearRegression, whose targets are clipped",
            inner=("estimator",),
        ),
        modules=("sklearn.linear_model._ransac",),
        call=KnownCaller(
            wrong="chooses rows by their raw residuals",
            instead="use DPRidge with target_bounds, which limit the effect of an outlier",
            problem=if_frozen("publishes which rows have small raw residuals"),
            refusal=refused_unless_frozen(
                "chooses rows by their raw residuals", ", and sets the noise's seed"
            ),
        ),
    ),
    Tool(
        classes=("sklearn.impute.IterativeImputer",),
        step=KnownStep(kind="learns", advice="use DPSimpleImputer"),
        modules=("sklearn.impute._iterative",),
        call=KnownCaller(
            wrong="fills gaps from raw statistics of other rows, and stops by raw values",
            instead="use DPSimpleImputer",
            refused=True,
        ),
    ),
    # Functions that fit a private estimator, and modules whose classes are steps of other entries.
    Tool(
        modules=("sklearn.ensemble._gb",),
        call=KnownCaller(
            wrong="fits its trees to raw rows",
            instead="use DPAdditiveClassifier, DPAdditiveRegressor or a private forest",
        ),
    ),
    Tool(
        modules=(
            "sklearn.model_selection._validation:cross_validate",
            "sklearn.model_selection._validation:cross_val_score",
            "sklearn.model_selection._validation:validation_curve",
        ),
        call=CROSS_VALIDATION,
    ),
    Tool(
        modules=("sklearn.model_selection._validation:learning_curve",),
        call=replace(CROSS_VALIDATION, problem=subset_problem),
    ),
    Tool(
        modules=("sklearn.model_selection._validation:cross_val_predict",),
        call=KnownCaller(
            wrong="returns an answer for each raw row",
            instead=(
                f"score by cross_val_score: {PRIVATE_SCORES}; what it returns is for your eyes "
                "alone"
            ),
            problem=prediction_problem,
            refusal=prediction_refusal,
        ),
    ),
    Tool(
        modules=("sklearn.model_selection._validation:permutation_test_score",),
        call=KnownCaller(
            wrong=(
                "gives labels to the rows of others, so that one person changes two rows of a fit"
            ),
            instead=(
                f"compare with the noisy score of a private model of few features: {PRIVATE_SCORES}"
            ),
        ),
    ),
    # The rows to which its model was fitted are unknown, so its scores are checked, but not the
    # fit.
    Tool(
        modules=("sklearn.inspection._permutation_importance",),
        call=KnownCaller(
            wrong="",
            instead="",
            problem=no_problem,
            functions=None,
            name="permutation_importance",
            wrong_scores=(
                "puts a cell of each person into the row of another one, so that one person "
                "changes two rows of a score, and each charge covers one: give it public or "
                "synthetic rows. With an accountant of relation='replace_one' whose unit is a "
                "group of twice as many rows as a person has (unit='group', max_rows=2 for one "
                "row), the charges cover both: then ignore this warning"
            ),
        ),
    ),
    # OneVsOneClassifier calls these functions in its worker processes.
    Tool(
        modules=(
            "sklearn.multiclass:_fit_ovo_binary",
            "sklearn.multiclass:_partial_fit_ovo_binary",
        ),
        call=ONE_VERSUS_ONE,
    ),
    Tool(
        modules=("sklearn.multiclass",),
        call=KnownCaller(wrong="", instead=LABELS_INSTEAD, problem=multiclass_problem),
    ),
    Tool(
        modules=("sklearn.multioutput",),
        call=KnownCaller(
            wrong="",
            instead=(
                "use classes=[...] of the private classifier, and cv=None or cv=KFold(5, "
                "shuffle=True, random_state=0) of a chain"
            ),
            problem=outputs_problem,
            refusal=chain_refusal,
        ),
    ),
)
