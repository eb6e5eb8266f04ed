"""Advice that several tools share, mostly for checks of pipelines; the rest is in their entries."""

# Advice on steps.

# Advice on replacements.
DECLARE = (
    "if its output for a row depends only on that row, declare this by the class attribute "
    "__skdp_kind__ = 'stateless'; if its fit is charged, use 'private' and the parameters epsilon "
    "and accountant"
)
NO_PRIVATE_CLASS = (
    "there is no private version: leave it out, or fit it to public rows and pass it as "
    "FrozenEstimator(...)"
)
MEMORY = (
    "use None: it keeps rows on disk without encryption, and a cached private step repeats its "
    "release exactly if no row has changed, which reveals whether one has"
)
COLUMNS = (
    "list the columns, or choose them with make_column_selector; behind another step, use only "
    "its pattern, because pandas infers types from the values that a function returns"
)
SELECTOR = (
    "select columns by name or by dtype: a selection by cardinality, by missing values or by a "
    "user-defined function depends on the rows"
)
CALLBACKS = "it receives the rows and may store them, or scores of them; ProgressBar stores nothing"
WORDS = (
    "declare its categories as lists of words, without min_frequency and max_categories; "
    "for numeric categories, use DPOneHotEncoder(categories=...), which charges nothing for "
    "them. scikit-learn's encoders store them with the column's type, which a single missing "
    "value changes, and the fitted encoder reveals the change"
)
PRODUCTS = (
    "it multiplies matrices: use a function of your own that computes each row's products by "
    "np.multiply(X, weights, order='C').sum(axis=1), in a FunctionTransformer, and declare it by "
    "its attribute __skdp_kind__ = 'stateless'"
)
ROW_WISE_REMEDIES = {
    "Normalizer": "use Normalizer(norm='max'), or the data_norm of the private step",
    "FunctionTransformer": (
        "use a function of scipy.special, such as log1p or expm1, which takes one number at a "
        "time, or one of your own that begins with X = np.array(X, order='C') and declares itself "
        "by its attribute __skdp_kind__ = 'stateless'"
    ),
}
HASHES = (
    "the order in which it adds colliding numbers depends on other rows, so their sum may be "
    "rounded differently: use input_type='string', or an integer dtype"
)
IMPUTER = (
    "use DPSimpleImputer, which charges nothing with strategy='constant'. SimpleImputer stores "
    "a number with the column's type, which a single missing value changes, so it is accepted "
    "only with a word: strategy='constant', fill_value='?', keep_empty_features=True"
)
FUNCTION = (
    "use a ufunc of numpy or scipy without kw_args (np.clip and np.nan_to_num only in your own "
    "function, after it has converted the table to an array of doubles), or declare that your "
    "function treats each row independently by its attribute __skdp_kind__ = 'stateless'"
)
FUNCTION_INSTEAD = "use a FunctionTransformer with a function that declares its kind"
COLUMNS_INSTEAD = "choose columns with a ColumnTransformer, or before the pipeline"
DECLARED_COMPONENTS = "declare n_components as a number: 'auto' counts rows"
ENSEMBLE = (
    "a row is in several fits, or several times in one, and the ensemble sets and stores the seeds "
    "of the noise: use DPRandomForestClassifier, DPRandomForestRegressor, an additive model "
    "(DPAdditiveClassifier, DPAdditiveRegressor), or VotingClassifier or VotingRegressor of "
    "private models, which fit each row once in each model"
)
RESAMPLER = (
    "leave it out: a person's row is repeated or changes other rows, which the charge does not "
    "cover; weight rare classes with class_weight='balanced' in the private model"
)
CALIBRATION = (
    "use DPCalibratedClassifierCV, or predict_proba of the private model alone, or fit it to rows "
    "that are public"
)
THRESHOLD = (
    "use DPTunedThresholdClassifierCV, or FixedThresholdClassifier with a threshold that you "
    "choose without looking at rows, or weight the classes with the private model's class_weight"
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
    "select features with SelectFromModel and a private model, or give it "
    "scoring=make_dp_scorer(...) and cv=KFold(k, shuffle=True, random_state=0)"
)
MODEL_ALONE = (
    "give max_features as a number, and importance_getter as the name of an attribute or a "
    "function of the model alone: a function that refers to a table, a column or a fitted model "
    "may read rows"
)
RAW_SELECTION = "select features with SelectFromModel and a private model, or list them"
FINAL_STAGE = (
    "its last stage is computed from raw rows: fit it to public rows, or release its results with "
    "functions of skdp.stats"
)
VOCABULARY = (
    "use HashingVectorizer, or declare its vocabulary, with input='content' and a named analyzer, "
    "without functions of your own"
)
CHAIN = "use cv=None"
FRAMES = (
    "the types of a data frame that may contain words depend on all cells, so one cell can "
    "change the others: use set_output(transform='default')"
)
LISTS = (
    "NumPy infers the type of a list from all of its cells, and the values of a function depend on "
    "the type: pass np.asarray(X, dtype=float)"
)
DENSITY = "sparse_output_ reveals an exact count: use sparse_threshold=0, or dense steps"
LOCAL = "each transform is charged, even in predictions, so no plan of fits can cover it"
FROZEN = "name it in public_steps if its output for a row depends only on that row"
FITTED = (
    "it has learned from rows that skdp does not know: if these were private, use a private step; "
    "if they were public, name it in public_steps of split_budget, or ignore this warning"
)
TARGETS = (
    "use a ufunc of numpy or scipy as func and inverse_func, or declare that your functions treat "
    "each target independently by their attributes __skdp_kind__ = 'stateless'"
)
# Advice on callers.
IF_PUBLIC = "if the rows that it receives are public, ignore this warning"
PRIVATE_SCORES = "give it scoring=make_dp_scorer(...) and cv=KFold(5, shuffle=True, random_state=0)"
PRIVATE_SEARCH = f"use DPGridSearchCV or DPRandomizedSearchCV, or {PRIVATE_SCORES}"
SKDP_ENSEMBLES = (
    "use DPRandomForestClassifier or DPRandomForestRegressor, or VotingClassifier or "
    "VotingRegressor of private estimators"
)
LABELS_INSTEAD = (
    "for one column of labels, use the private classifier itself, which accepts several labels, or "
    "OneVsRestClassifier; for several columns, use MultiOutputClassifier of a private classifier "
    "that declares classes=[0, 1], or ignore this warning if it is public which labels occur"
)
