"""The scikit-learn classes that are known only as steps, and skdp's containers."""

from sklearn.linear_model import LinearRegression

from skdp._tools._advice import (
    DECLARED_COMPONENTS,
    FROZEN,
    FUNCTION,
    HASHES,
    IMPUTER,
    RAW_SELECTION,
    TARGETS,
    VOCABULARY,
    WORDS,
)
from skdp._tools._entries import KnownStep, Tool
from skdp._tools._entry_kinds import chain, learns, selection, wrapper
from skdp._tools._step_conditions import (
    adds_in_fixed_order,
    class_of_function,
    component_width,
    counts_listed_words,
    declares_components,
    declares_gamma,
    declares_knots,
    declares_words,
    fails_beyond_knots,
    fails_on_negative_numbers,
    fails_on_other_labels,
    fails_outside_domain,
    fills_a_word,
    function_width,
    has_row_function,
    hashed_width,
    indicator_width,
    marks_every_column,
    monomial_width,
    never,
    reads_words_itself,
    rounds_rows_alone,
    scales_by_largest,
    spline_width,
    transforms_targets_alone,
    vocabulary_width,
    weights_listed_words_alone,
    weights_rows_alone,
)

TOOLS: tuple[Tool, ...] = (
    # Containers, whose steps are checked one by one.
    Tool(
        classes=("sklearn.pipeline.Pipeline",), step=KnownStep(kind="container", inner=("steps",))
    ),
    Tool(
        classes=("sklearn.pipeline.FeatureUnion",),
        step=KnownStep(kind="container", inner=("transformer_list",)),
    ),
    Tool(
        classes=("sklearn.compose.ColumnTransformer",),
        step=KnownStep(kind="container", inner=("transformers", "remainder")),
    ),
    Tool(
        classes=("skdp.pipeline.SplitPipeline",), step=KnownStep(kind="container", inner=("steps",))
    ),
    Tool(
        classes=("skdp.pipeline.SplitFeatureUnion",),
        step=KnownStep(kind="container", inner=("transformer_list",)),
    ),
    Tool(
        classes=("skdp.pipeline.SplitColumnTransformer",),
        step=KnownStep(kind="container", inner=("transformers", "remainder")),
    ),
    # The kind depends on the frozen estimator and is determined before this table is read.
    Tool(classes=("sklearn.frozen.FrozenEstimator",), step=KnownStep(kind="opaque", advice=FROZEN)),
    # Steps that learn nothing, at least with some parameter values.
    Tool(
        classes=("sklearn.feature_extraction.FeatureHasher",),
        step=KnownStep(
            kind="stateless",
            condition=adds_in_fixed_order,
            advice=HASHES,
            width=hashed_width,
            sparse="made",
        ),
    ),
    Tool(
        classes=("sklearn.feature_extraction.text.HashingVectorizer",),
        step=KnownStep(
            kind="stateless",
            condition=reads_words_itself,
            otherwise="unknown",
            advice="use input='content' and a named analyzer, without functions of your own",
            width=hashed_width,
            sparse="made",
        ),
    ),
    Tool(
        classes=("sklearn.feature_extraction.text.CountVectorizer",),
        step=KnownStep(
            kind="declared",
            condition=counts_listed_words,
            advice=VOCABULARY,
            width=vocabulary_width,
            sparse="made",
        ),
    ),
    Tool(
        classes=("sklearn.feature_extraction.text.TfidfVectorizer",),
        step=KnownStep(
            kind="declared",
            condition=weights_listed_words_alone,
            advice=f"{VOCABULARY}, with use_idf=False",
            width=vocabulary_width,
            sparse="made",
            is_row_wise=never,
        ),
    ),
    Tool(
        classes=("sklearn.feature_extraction.text.TfidfTransformer",),
        step=KnownStep(
            kind="declared",
            condition=weights_rows_alone,
            advice="use use_idf=False, without sublinear_tf",
            sparse="made",
            is_row_wise=never,
        ),
    ),
    Tool(
        classes=("sklearn.impute.MissingIndicator",),
        step=KnownStep(
            kind="declared",
            condition=marks_every_column,
            advice="use features='all'",
            cells="boolean",
            sparse="kept",
        ),
    ),
    Tool(
        classes=("sklearn.impute.SimpleImputer",),
        step=KnownStep(kind="declared", condition=fills_a_word, advice=IMPUTER, cells="cells"),
    ),
    Tool(
        classes=("sklearn.kernel_approximation.PolynomialCountSketch",),
        step=KnownStep(kind="declared", width=component_width, sparse="dense", is_row_wise=never),
    ),
    Tool(
        classes=("sklearn.kernel_approximation.RBFSampler",),
        step=KnownStep(
            kind="declared",
            condition=declares_gamma,
            advice="declare gamma as a number: 'scale' is computed from the rows",
            width=component_width,
            sparse="dense",
            is_row_wise=never,
        ),
    ),
    Tool(
        classes=("sklearn.kernel_approximation.SkewedChi2Sampler",),
        step=KnownStep(
            kind="declared",
            fails_on=fails_on_negative_numbers,
            width=component_width,
            is_row_wise=never,
        ),
    ),
    Tool(
        classes=("sklearn.preprocessing.Binarizer",),
        step=KnownStep(kind="stateless", sparse="kept"),
    ),
    Tool(
        classes=("sklearn.preprocessing.FunctionTransformer",),
        step=KnownStep(
            kind="stateless",
            condition=has_row_function,
            otherwise="unknown",
            advice=FUNCTION,
            advice_on=class_of_function,
            fails_on=fails_outside_domain,
            width=function_width,
            # Its function may return a different container from the one that it receives.
            cells="",
            sparse="kept",
            is_row_wise=rounds_rows_alone,
        ),
    ),
    Tool(
        classes=("sklearn.preprocessing.Normalizer",),
        step=KnownStep(kind="stateless", sparse="kept", is_row_wise=scales_by_largest),
    ),
    Tool(
        classes=("sklearn.preprocessing.OneHotEncoder",),
        step=KnownStep(
            kind="declared",
            condition=declares_words,
            advice=WORDS,
            fails_on=fails_on_other_labels,
            width=indicator_width,
        ),
    ),
    Tool(
        classes=("sklearn.preprocessing.OrdinalEncoder",),
        step=KnownStep(
            kind="declared", condition=declares_words, advice=WORDS, fails_on=fails_on_other_labels
        ),
    ),
    Tool(
        classes=("sklearn.preprocessing.PolynomialFeatures",),
        step=KnownStep(kind="declared", width=monomial_width, sparse="kept"),
    ),
    Tool(
        classes=("sklearn.preprocessing.SplineTransformer",),
        step=KnownStep(
            kind="declared",
            condition=declares_knots,
            advice="declare its knots",
            fails_on=fails_beyond_knots,
            width=spline_width,
        ),
    ),
    Tool(
        classes=("sklearn.random_projection.GaussianRandomProjection",),
        step=KnownStep(
            kind="declared",
            condition=declares_components,
            advice=DECLARED_COMPONENTS,
            width=component_width,
            sparse="dense",
            is_row_wise=never,
        ),
    ),
    Tool(
        classes=("sklearn.random_projection.SparseRandomProjection",),
        step=KnownStep(
            kind="declared",
            condition=declares_components,
            advice=DECLARED_COMPONENTS,
            width=component_width,
            sparse="kept",
            is_row_wise=never,
        ),
    ),
    # Steps that learn from the rows, in modules whose other classes do not.
    Tool(
        classes=("sklearn.feature_extraction.DictVectorizer",),
        step=learns("FeatureHasher(input_type='string'), or a data frame and DPOneHotEncoder"),
    ),
    Tool(
        classes=("sklearn.feature_extraction.image.PatchExtractor",),
        step=KnownStep(
            kind="resamples", advice="extract patches before, so that a row is one patch or image"
        ),
    ),
    Tool(
        classes=(
            "sklearn.feature_selection.GenericUnivariateSelect",
            "sklearn.feature_selection.SelectFdr",
            "sklearn.feature_selection.SelectFpr",
            "sklearn.feature_selection.SelectFwe",
            "sklearn.feature_selection.SelectKBest",
            "sklearn.feature_selection.SelectPercentile",
            "sklearn.feature_selection.VarianceThreshold",
        ),
        step=KnownStep(kind="learns", advice=RAW_SELECTION),
    ),
    Tool(
        classes=("sklearn.impute.KNNImputer",),
        step=KnownStep(kind="learns", advice="use DPSimpleImputer"),
    ),
    Tool(
        classes=("sklearn.kernel_approximation.AdditiveChi2Sampler",),
        step=learns("RBFSampler(gamma=...), a number"),
    ),
    Tool(
        classes=("sklearn.kernel_approximation.Nystroem",),
        step=learns("RBFSampler(gamma=...), a number"),
    ),
    Tool(classes=("sklearn.preprocessing.KBinsDiscretizer",), step=learns("DPKBinsDiscretizer")),
    Tool(
        classes=(
            "sklearn.preprocessing.KernelCenterer",
            "sklearn.preprocessing.MultiLabelBinarizer",
        ),
        step=learns(),
    ),
    Tool(
        classes=("sklearn.preprocessing.LabelBinarizer",),
        step=learns("DPOneHotEncoder(categories=...)"),
    ),
    Tool(
        classes=("sklearn.preprocessing.LabelEncoder",),
        step=learns("the parameter classes of the private model"),
    ),
    Tool(classes=("sklearn.preprocessing.MaxAbsScaler",), step=learns("DPMaxAbsScaler")),
    Tool(classes=("sklearn.preprocessing.MinMaxScaler",), step=learns("DPMinMaxScaler")),
    Tool(
        classes=(
            "sklearn.preprocessing.PowerTransformer",
            "sklearn.preprocessing.QuantileTransformer",
        ),
        step=learns("DPQuantileTransformer"),
    ),
    Tool(classes=("sklearn.preprocessing.RobustScaler",), step=learns("DPRobustScaler")),
    Tool(classes=("sklearn.preprocessing.StandardScaler",), step=learns("DPStandardScaler")),
    Tool(classes=("sklearn.preprocessing.TargetEncoder",), step=learns("DPTargetEncoder")),
    # Modules in which all classes without an entry learn from the rows.
    Tool(classes=("sklearn.cluster",), step=learns("DPKMeans")),
    Tool(classes=("sklearn.covariance",), step=learns("functions of skdp.stats")),
    Tool(classes=("sklearn.cross_decomposition",), step=learns("DPPCA")),
    Tool(classes=("sklearn.decomposition",), step=learns("DPPCA")),
    Tool(classes=("sklearn.discriminant_analysis",), step=learns("DPGaussianNB")),
    Tool(classes=("sklearn.dummy",), step=learns("functions of skdp.stats")),
    Tool(
        classes=("sklearn.gaussian_process",),
        step=learns("DPAdditiveClassifier, DPAdditiveRegressor or another model of skdp"),
    ),
    Tool(classes=("sklearn.isotonic",), step=learns("DPAdditiveRegressor, with monotonic_cst")),
    Tool(classes=("sklearn.kernel_ridge",), step=learns("DPRidge")),
    Tool(
        classes=("sklearn.linear_model",),
        step=learns("DPLogisticRegression, DPRidge or another model of skdp"),
    ),
    Tool(classes=("sklearn.manifold",), step=learns("DPPCA")),
    Tool(classes=("sklearn.mixture",), step=learns("DPKMeans")),
    Tool(classes=("sklearn.naive_bayes",), step=learns("DPGaussianNB or DPHistogramNB")),
    Tool(
        classes=("sklearn.neighbors",),
        step=learns("DPAdditiveClassifier, DPAdditiveRegressor or another model of skdp"),
    ),
    Tool(classes=("sklearn.neural_network",), step=learns("DPSGDClassifier or DPSGDRegressor")),
    Tool(
        classes=("sklearn.semi_supervised",),
        step=learns("DPLogisticRegression or another model of skdp"),
    ),
    Tool(classes=("sklearn.svm",), step=learns("DPLinearSVC or another model of skdp")),
    Tool(
        classes=("sklearn.tree",),
        step=learns("DPDecisionTreeClassifier or an additive model of skdp"),
    ),
    Tool(
        classes=("sklearn.ensemble",),
        step=learns("DPRandomForestClassifier or DPRandomForestRegressor"),
    ),
    # Wrappers that learn nothing beyond what their inner estimators learn.
    Tool(
        classes=("sklearn.compose.TransformedTargetRegressor",),
        step=KnownStep(
            kind="wrapper",
            condition=transforms_targets_alone,
            otherwise="unknown",
            advice=TARGETS,
            inner=("regressor", "transformer"),
            defaults={"regressor": LinearRegression},
        ),
    ),
    Tool(classes=("sklearn.feature_selection.RFE",), step=selection()),
    Tool(classes=("sklearn.model_selection.FixedThresholdClassifier",), step=wrapper("estimator")),
    Tool(
        classes=(
            "sklearn.multiclass.OneVsRestClassifier",
            "sklearn.multiclass.OutputCodeClassifier",
        ),
        step=wrapper("estimator"),
    ),
    Tool(
        classes=(
            "sklearn.multioutput.MultiOutputClassifier",
            "sklearn.multioutput.MultiOutputRegressor",
        ),
        step=wrapper("estimator"),
    ),
    Tool(
        classes=("sklearn.multioutput.ClassifierChain", "sklearn.multioutput.RegressorChain"),
        step=chain(),
    ),
    # Wrappers that repeat or select training rows.
    Tool(
        classes=("sklearn.multiclass.OneVsOneClassifier",),
        step=KnownStep(
            kind="resamples",
            advice=(
                "each fit has the rows of two classes, whose number is a count that nothing "
                "protects: use OneVsRestClassifier"
            ),
            inner=("estimator",),
        ),
    ),
)
