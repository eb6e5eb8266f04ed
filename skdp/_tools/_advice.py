"""Texts on what to write instead of a tool, which several entries share."""

# Advice on steps.

# Advice on replacements.
DECLARE = (
    "if what it makes of a row depends on that row alone, declare it by the attribute "
    "__skdp_kind__ = 'stateless' of its class; if its fit is charged, by 'private', with the "
    "parameters epsilon and accountant"
)
MEMORY = (
    "use None: it keeps rows on disk, in clear, and a private step that is remembered makes "
    "the same release again if no row has changed, and so tells of each"
)
COLUMNS = (
    "list the columns, or choose them by make_column_selector, behind another step by "
    "pattern alone: pandas makes types of the values of what a function returns"
)
SELECTOR = (
    "select columns by name or by dtype: which columns are selected by cardinality, by missing "
    "values or by a function of one's own depends on the rows"
)
CALLBACKS = "it is given the rows and may keep them, or scores of them: ProgressBar keeps nothing"
WORDS = (
    "declare its categories as lists of words, without min_frequency and max_categories; "
    "for categories that are numbers use DPOneHotEncoder(categories=...), which charges "
    "nothing for them: scikit-learn's keep them in the column's type, which one missing value "
    "changes, so that the fitted encoder tells of it"
)
HASHES = (
    "it adds colliding numbers in an order that other rows decide, so that their sum may round "
    "differently: use input_type='string', or an integer dtype"
)
IMPUTER = (
    "use DPSimpleImputer, which charges nothing with strategy='constant'; SimpleImputer "
    "keeps a number in the column's type, which one missing value changes, and is accepted "
    "only for a word: strategy='constant', fill_value='?', keep_empty_features=True"
)
FUNCTION = (
    "use a ufunc of numpy or scipy without kw_args (np.clip and np.nan_to_num only in "
    "one of yours that makes the table an array of doubles first), or declare that yours "
    "treats each row by itself by its own attribute __skdp_kind__ = 'stateless'"
)
FUNCTION_INSTEAD = "use a FunctionTransformer of a function that declares what it does"
COLUMNS_INSTEAD = "choose columns by a ColumnTransformer, or before the pipeline"
DECLARED_COMPONENTS = "declare n_components as a number: 'auto' counts rows"
ENSEMBLE = (
    "a row is in several fits, or several times in one, and the ensemble sets and keeps the seeds "
    "of the noise: use DPRandomForestClassifier, DPRandomForestRegressor, an additive model "
    "(DPAdditiveClassifier, DPAdditiveRegressor), or VotingClassifier or VotingRegressor of "
    "private models, which fit each row once in each model"
)
RESAMPLER = (
    "leave it out: one person's row is repeated or moves others, so that its charge does not "
    "cover it; weight rare classes by class_weight='balanced' of the private model"
)
CALIBRATION = (
    "use DPCalibratedClassifierCV, or predict_proba of the private model alone, or fit it to rows "
    "that are public"
)
THRESHOLD = (
    "use DPTunedThresholdClassifierCV, or set a threshold that you choose without looking at rows "
    "by FixedThresholdClassifier, or weight the classes by class_weight of the private model"
)
STACKING = (
    "give it a private final_estimator and cv='prefit' or cv=KFold(k, shuffle=True, "
    "random_state=0), or use VotingClassifier or VotingRegressor, whose last stage learns nothing"
)
SEARCH = (
    "use DPGridSearchCV or DPRandomizedSearchCV, or scoring=make_dp_scorer(...) with "
    "cv=KFold(k, shuffle=True, random_state=0)"
)
SELECTION = (
    "select features by SelectFromModel of a private model, or give it "
    "scoring=make_dp_scorer(...) and cv=KFold(k, shuffle=True, random_state=0)"
)
RAW_SELECTION = "select features by SelectFromModel of a private model, or list them"
FINAL_STAGE = (
    "its last stage is computed from raw rows: fit it to rows that are public, or release what it "
    "computes by functions of skdp.stats"
)
CHAIN = "use cv=None"
FRAMES = (
    "a data frame of what may be words takes its types from all cells, so that one changes "
    "the others: use set_output(transform='default')"
)
DENSITY = "sparse_output_ reveals an exact count: use sparse_threshold=0, or dense steps"
LOCAL = "each transform is a charge, predictions too; no plan of fits can hold it"
FROZEN = "name it in public_steps if what it makes of a row depends on that row alone"
FITTED = (
    "it has learned from rows that skdp does not know: if these were private, use a private step; "
    "if they were public, name it in public_steps of split_budget, or ignore this warning"
)
TARGETS = (
    "use a ufunc of numpy or scipy as func and inverse_func, or declare that yours treat each "
    "target by itself by their own attributes __skdp_kind__ = 'stateless'"
)
# Advice on callers.
IF_PUBLIC = "if the rows that it gets are public, ignore this warning"
PRIVATE_SCORES = "give it scoring=make_dp_scorer(...) and cv=KFold(5, shuffle=True, random_state=0)"
PRIVATE_SEARCH = f"use DPGridSearchCV or DPRandomizedSearchCV, or {PRIVATE_SCORES}"
SKDP_ENSEMBLES = (
    "use DPRandomForestClassifier or DPRandomForestRegressor, or VotingClassifier or "
    "VotingRegressor of private estimators"
)
LABELS_INSTEAD = (
    "for one column of labels use the private classifier as it is, which takes several labels, or "
    "OneVsRestClassifier; for several columns use MultiOutputClassifier of a private classifier "
    "that declares classes=[0, 1], or ignore this warning if it is public which labels occur"
)
