"""The tools of libraries other than scikit-learn, with the advice in warnings of their calls."""

from dataclasses import replace

from skdp._tools._advice import (
    COLUMNS_INSTEAD,
    FINAL_STAGE,
    FUNCTION_INSTEAD,
    IF_PUBLIC,
    PRIVATE_SCORES,
    RAW_SELECTION,
    RESAMPLER,
    SEARCH,
    SELECTION,
    SELECTOR,
    STACKING,
    THRESHOLD,
)
from skdp._tools._call_problems import (
    RAW_SCORES,
    autolog_problem,
    causalml_problem,
    causalml_refusal,
    econml_problem,
    econml_refusal,
    encoded_parts_problem,
    feature_engine_problem,
    if_frozen,
    no_problem,
    raw_parts_problem,
    refused_unless_frozen,
    sampler_problem,
    sampler_refusal,
    stacked_folds_problem,
    unless_of_classes,
    window_problem,
)
from skdp._tools._entries import KnownCaller, KnownStep, Tool
from skdp._tools._entry_kinds import (
    GROUPS_OF_ROWS,
    MAKES_ROWS_DEPEND,
    PAIRED_TEST,
    RAW_EFFECT,
    SEARCH_CALL,
    STUDY,
    ensemble,
    learns,
    search,
    wrapper,
)
from skdp._tools._scores_and_folds import repeated_rows_problem, score_problem
from skdp._tools._step_conditions import selects_by_name_or_dtype, unknown_width

TOOLS: tuple[Tool, ...] = (
    # Libraries whose calls are known.
    Tool(
        classes=("imblearn.pipeline.Pipeline",),
        step=KnownStep(kind="container", inner=("steps",)),
        modules=("imblearn.pipeline",),
        call=KnownCaller(
            wrong="has samplers: other rows decide which rows a fit receives, and how often",
            instead="leave the sampler out and weight the labels: class_weight={label: weight}",
            problem=sampler_problem,
            refusal=sampler_refusal,
        ),
    ),
    Tool(
        classes=("imblearn",),
        step=KnownStep(kind="resamples", advice=RESAMPLER),
        modules=("imblearn",),
        call=KnownCaller(
            wrong=MAKES_ROWS_DEPEND,
            instead="leave it out and weight the labels: class_weight={label: weight}",
            problem=if_frozen("publishes which rows it chose by the labels of other rows"),
            refusal=refused_unless_frozen(MAKES_ROWS_DEPEND),
        ),
    ),
    Tool(
        classes=("sklearn_genetic", "skopt", "optuna_integration"),
        step=KnownStep(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
        modules=("sklearn_genetic", "skopt", "optuna_integration"),
        call=SEARCH_CALL,
    ),
    Tool(
        classes=("dask_ml.model_selection",),
        step=KnownStep(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
        modules=("dask_ml.model_selection",),
        call=SEARCH_CALL,
    ),
    # A study calls user-defined functions, which are checked separately, once for all trials.
    Tool(
        classes=("optuna",),
        step=KnownStep(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
        modules=("optuna",),
        call=STUDY,
    ),
    Tool(
        classes=("mapie",),
        step=KnownStep(
            kind="calibrates",
            advice="it keeps a raw residual of each row: fit it to rows that are public",
            inner=("estimator",),
        ),
        modules=("mapie",),
        call=KnownCaller(
            wrong=(
                "keeps a raw residual, or score, of each row and computes its intervals from them"
            ),
            instead=f"keep what it returns to yourself, or give it public rows; {IF_PUBLIC}",
            functions=None,
        ),
    ),
    Tool(
        classes=("econml",),
        step=KnownStep(kind="calibrates", advice=FINAL_STAGE),
        modules=("econml",),
        call=KnownCaller(
            wrong="",
            instead=(
                "use SLearner, TLearner or XLearner, with private estimators for all of their "
                "models"
            ),
            problem=econml_problem,
            refusal=econml_refusal,
            functions=None,
        ),
    ),
    Tool(
        classes=("boruta",),
        step=KnownStep(kind="cross_validates", advice=RAW_SELECTION, inner=("estimator",)),
        modules=("boruta",),
        call=KnownCaller(
            wrong=(
                "puts cells of each person into the rows of others, so that one person changes two "
                "rows of a fit, and sets the noise's seed"
            ),
            instead="use SelectFromModel, which chooses by released coefficients",
            refused=True,
        ),
    ),
    Tool(
        classes=("cleanlab",),
        step=KnownStep(
            kind="resamples",
            advice="it leaves out rows by what other rows say: fit the private model to all rows",
            inner=("clf",),
        ),
        modules=("cleanlab",),
        call=KnownCaller(
            wrong=MAKES_ROWS_DEPEND,
            instead=(
                "fit the private classifier itself, or clean labels by a rule that you choose "
                "without these rows"
            ),
            functions=None,
        ),
    ),
    Tool(
        classes=("fairlearn.reductions",),
        step=KnownStep(
            kind="calibrates",
            advice="it weighs rows by violations that it counts: use class_weight={label: weight}",
            inner=("estimator",),
        ),
        modules=("fairlearn.reductions",),
        call=KnownCaller(
            wrong="weights rows by what other rows say",
            instead=(
                "choose thresholds for each group on public rows, or use class_weight={label: "
                "weight}"
            ),
            refused=True,
            functions=None,
        ),
    ),
    Tool(
        classes=("feature_engine",),
        step=learns("DPTableVectorizer or another step of skdp"),
        modules=("feature_engine",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead="use SelectFromModel, which chooses by released coefficients",
            functions=None,
        ),
    ),
    Tool(
        classes=("feature_engine.selection",),
        step=KnownStep(kind="cross_validates", advice=RAW_SELECTION, inner=("estimator",)),
        modules=("feature_engine.selection",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead=(
                "use SelectFromModel, which chooses by released coefficients, or give "
                "RecursiveFeatureElimination, RecursiveFeatureAddition or "
                "SelectBySingleFeaturePerformance scoring=make_dp_scorer(...) and cv=KFold(5, "
                "shuffle=True, random_state=0)"
            ),
            problem=feature_engine_problem,
            refusal=repeated_rows_problem,
        ),
    ),
    # Its steps are checked separately.
    Tool(
        classes=("feature_engine.pipeline.pipeline.Pipeline",),
        step=KnownStep(kind="container", inner=("steps",)),
        modules=("feature_engine.pipeline",),
        call=KnownCaller(wrong="", instead="", problem=no_problem),
    ),
    Tool(
        classes=("mlxtend",),
        step=learns(),
        modules=("mlxtend",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead="use dp_cross_val_score or DPGridSearchCV",
            functions=None,
            name="mlxtend",
        ),
    ),
    Tool(
        classes=("mlxtend.classifier.EnsembleVoteClassifier",),
        step=wrapper("clfs"),
        modules=("mlxtend.classifier.ensemble_vote",),
        call=KnownCaller(
            wrong="",
            instead="use private estimators for all members",
            problem=encoded_parts_problem,
        ),
    ),
    Tool(
        classes=("mlxtend.classifier.StackingClassifier",),
        step=KnownStep(
            kind="calibrates", advice=STACKING, inner=("classifiers", "meta_classifier")
        ),
        modules=("mlxtend.classifier.stacking_classification",),
        call=KnownCaller(
            wrong="",
            instead=(
                "give it private classifiers and a private meta_classifier, or use "
                "VotingClassifier of private estimators"
            ),
            problem=encoded_parts_problem,
        ),
    ),
    Tool(
        classes=("mlxtend.classifier.StackingCVClassifier",),
        step=KnownStep(
            kind="calibrates", advice=STACKING, inner=("classifiers", "meta_classifier")
        ),
        modules=("mlxtend.classifier.stacking_cv_classification",),
        call=KnownCaller(
            wrong="",
            instead=(
                "give it private classifiers, a private meta_classifier, stratify=False and an "
                "int as cv, or use "
                "VotingClassifier of private estimators"
            ),
            problem=stacked_folds_problem,
            refusal=repeated_rows_problem,
        ),
    ),
    Tool(
        classes=("mlxtend.regressor.StackingRegressor",),
        step=KnownStep(kind="calibrates", advice=STACKING, inner=("regressors", "meta_regressor")),
        modules=("mlxtend.regressor.stacking_regression",),
        call=KnownCaller(
            wrong="",
            instead=(
                "give it private regressors and a private meta_regressor, or use VotingRegressor "
                "of private estimators"
            ),
            problem=raw_parts_problem,
        ),
    ),
    Tool(
        classes=("mlxtend.regressor.StackingCVRegressor",),
        step=KnownStep(kind="calibrates", advice=STACKING, inner=("regressors", "meta_regressor")),
        modules=("mlxtend.regressor.stacking_cv_regression",),
        call=KnownCaller(
            wrong="",
            instead=(
                "give it private regressors and a private meta_regressor, or use VotingRegressor "
                "of private estimators"
            ),
            problem=raw_parts_problem,
            refusal=repeated_rows_problem,
        ),
    ),
    Tool(
        classes=("mlxtend.feature_selection",),
        step=KnownStep(kind="cross_validates", advice=RAW_SELECTION, inner=("estimator",)),
        modules=("mlxtend.feature_selection",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead=(
                f"use SelectFromModel, which chooses by released coefficients, or {PRIVATE_SCORES}"
            ),
            problem=score_problem,
            refusal=repeated_rows_problem,
        ),
    ),
    Tool(modules=("bayes_opt", "hyperopt", "scipy.optimize", "skopt.optimizer"), call=STUDY),
    # Their statistic may be a user-defined function that releases something.
    Tool(
        modules=("scipy.stats._resampling",),
        call=KnownCaller(
            wrong="draws or exchanges rows again and again, so that a person's row counts often",
            instead="use the noise of one release for an interval",
            refused=True,
            functions=frozenset({"bootstrap", "permutation_test"}),
        ),
    ),
    # Functions that apply a function to the rows of each group.
    Tool(
        modules=(
            "pandas.core.groupby",
            "pandas.core.resample",
            "polars.dataframe.group_by",
            "scipy.ndimage._measurements:labeled_comprehension",
            "scipy.stats._binned_statistic",
        ),
        call=GROUPS_OF_ROWS,
    ),
    Tool(modules=("pandas.core.window",), call=replace(GROUPS_OF_ROWS, problem=window_problem)),
    Tool(modules=("optuna.integration",), call=SEARCH_CALL),
    Tool(
        modules=("causalml",),
        call=KnownCaller(
            wrong="",
            instead="use an S or T learner of private estimators, without confidence intervals",
            problem=causalml_problem,
            refusal=causalml_refusal,
            functions=None,
        ),
    ),
    Tool(
        modules=(
            "causalml.inference.meta.slearner:estimate_ate",
            "causalml.inference.meta.tlearner:estimate_ate",
        ),
        call=RAW_EFFECT,
    ),
    Tool(
        modules=("dowhy", "doubleml"),
        call=KnownCaller(
            wrong="computes its estimates from raw rows",
            instead="use a T learner of econml with private estimators; " + IF_PUBLIC,
            functions=None,
        ),
    ),
    Tool(
        modules=("crepes",),
        call=KnownCaller(
            wrong="keeps a raw residual, or score, of each row",
            instead=f"keep what it returns to yourself, or calibrate on public rows; {IF_PUBLIC}",
            functions=None,
        ),
    ),
    Tool(
        modules=("venn_abers",),
        call=KnownCaller(
            wrong="fits its calibrators to raw rows",
            instead=f"use predict_proba of the private classifier itself; {IF_PUBLIC}",
            functions=None,
        ),
    ),
    Tool(
        modules=("skore",),
        call=KnownCaller(
            wrong="shows exact scores of the raw rows",
            instead=(
                "give EstimatorReport a fitted model and public rows, or use dp_cross_val_score"
            ),
            functions=None,
            name="a report of skore",
        ),
    ),
    # A graph of operations; skdp sees only the private ones.
    Tool(
        modules=("skrub._data_ops",),
        call=KnownCaller(
            wrong="may compute other operations from raw rows",
            instead=(
                "write the private steps as a pipeline of scikit-learn; if all other operations "
                "treat each row independently, ignore this warning"
            ),
            functions=None,
            name="a data op of skrub",
        ),
    ),
    Tool(
        modules=("fairlearn",),
        call=KnownCaller(
            wrong="chooses thresholds, or weights, by raw rows",
            instead="choose thresholds for each group without these rows, or on public rows; "
            + IF_PUBLIC,
            functions=None,
        ),
    ),
    Tool(
        modules=("mlflow",),
        call=KnownCaller(
            wrong="logs exact scores of the training rows",
            instead=(
                "use mlflow.sklearn.autolog(log_post_training_metrics=False, log_datasets=False), "
                "or log the released model with mlflow.sklearn.log_model"
            ),
            problem=autolog_problem,
            functions=None,
            name="mlflow.sklearn.autolog",
        ),
    ),
    # The tests call inner functions, which do not have to be judged separately.
    Tool(modules=("mlxtend.evaluate.f_test", "mlxtend.evaluate.ttest"), call=PAIRED_TEST),
    Tool(
        modules=("mlxtend.evaluate.bias_variance_decomp", "mlxtend.evaluate.bootstrap_point632"),
        call=KnownCaller(
            wrong="draws rows again and again, so that a person's row counts repeatedly",
            instead="use dp_cross_val_score",
            refused=True,
            functions=None,
        ),
    ),
    # FeatureImportances shows released coefficients.
    Tool(
        modules=("yellowbrick",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead=f"give it public rows to score; {IF_PUBLIC}",
            problem=unless_of_classes("yellowbrick.FeatureImportances", wrong=RAW_SCORES),
            functions=None,
        ),
    ),
    Tool(
        modules=("yellowbrick.model_selection",),
        call=KnownCaller(
            wrong=RAW_SCORES,
            instead=PRIVATE_SCORES,
            problem=score_problem,
            refusal=repeated_rows_problem,
        ),
    ),
    Tool(
        modules=("yellowbrick.model_selection.importances",),
        call=KnownCaller(wrong="", instead="", problem=no_problem),
    ),
    # Libraries, and classes of the ones above, that are known as steps.
    Tool(classes=("catboost",), step=learns("DPAdditiveClassifier or DPAdditiveRegressor")),
    Tool(classes=("category_encoders",), step=learns("DPOneHotEncoder or DPTargetEncoder")),
    Tool(classes=("dask_ml",), step=learns()),
    Tool(classes=("econml.metalearners.SLearner",), step=wrapper("overall_model")),
    Tool(classes=("econml.metalearners.TLearner",), step=wrapper("models")),
    Tool(
        classes=("econml.metalearners.XLearner",),
        step=wrapper("models", "cate_models", "propensity_model"),
    ),
    Tool(classes=("fairlearn.adversarial",), step=learns()),
    Tool(
        classes=("fairlearn.postprocessing",),
        step=KnownStep(kind="calibrates", advice=THRESHOLD, inner=("estimator",)),
    ),
    Tool(classes=("fairlearn.preprocessing",), step=learns()),
    Tool(
        classes=(
            "feature_engine.creation.MathFeatures",
            "feature_engine.creation.RelativeFeatures",
        ),
        step=KnownStep(kind="unknown", advice=FUNCTION_INSTEAD),
    ),
    Tool(
        classes=("feature_engine.selection.DropFeatures",),
        step=KnownStep(kind="unknown", advice=COLUMNS_INSTEAD),
    ),
    Tool(
        classes=(
            "feature_engine.selection.RecursiveFeatureAddition",
            "feature_engine.selection.RecursiveFeatureElimination",
        ),
        step=search("estimator", advice=SELECTION),
    ),
    Tool(
        classes=("feature_engine.selection.SelectBySingleFeaturePerformance",),
        step=search("estimator", advice=SELECTION),
    ),
    Tool(classes=("imblearn.ensemble",), step=ensemble("estimator")),
    Tool(classes=("lightgbm",), step=learns("DPAdditiveClassifier or DPAdditiveRegressor")),
    Tool(
        classes=("mlxtend.preprocessing.CopyTransformer",),
        step=KnownStep(kind="stateless", sparse="kept"),
    ),
    Tool(
        classes=("mlxtend.feature_selection.ColumnSelector",),
        step=KnownStep(kind="unknown", advice=COLUMNS_INSTEAD),
    ),
    Tool(classes=("pyod",), step=learns()),
    Tool(classes=("skrub",), step=learns("DPTableVectorizer or another step of skdp")),
    Tool(
        classes=("skrub.ApplyToCols", "skrub.ApplyToFrame"),
        step=KnownStep(kind="container", inner=("transformer",)),
    ),
    Tool(
        classes=("skrub.DropCols", "skrub.SelectCols"),
        step=KnownStep(
            kind="declared",
            condition=selects_by_name_or_dtype,
            advice=SELECTOR,
            width=unknown_width,
            sparse="kept",
        ),
    ),
    Tool(classes=("tpot",), step=KnownStep(kind="cross_validates", advice=SEARCH)),
    Tool(
        classes=("tune_sklearn",),
        step=KnownStep(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    ),
    Tool(classes=("umap",), step=learns("DPPCA")),
    Tool(classes=("xgboost",), step=learns("DPAdditiveClassifier or DPAdditiveRegressor")),
)
