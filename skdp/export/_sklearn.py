"""Conversion of fitted private estimators to scikit-learn's, which can be exported to ONNX.

There is one function for each kind of estimator, including the limits and links that turn scores
into predictions. The cells and scores of models that read raw tables are in
`skdp.export._raw_tables`.
"""

import copy

import numpy as np
from scipy.linalg import block_diag
from sklearn import cluster, decomposition, impute, linear_model, naive_bayes, preprocessing
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp.export._raw_tables import (
    Sums,
    cells_of,
    export_error,
    offset_step,
    scores_of,
    with_attributes,
)
from skdp.pipeline._checked_fits import (
    CHECKED,
    SplitColumnTransformer,
    SplitFeatureUnion,
    SplitPipeline,
)
from skdp.pipeline._steps import holds_private

# Classifiers that clip residuals. With two classes, their probabilities are not a logistic function
# of the scores; with several, they are the softmax of the scores only if delta = 0.
CLIPPED = (skdp.DPAdditiveClassifier, skdp.DPRandomForestClassifier, skdp.DPDecisionTreeClassifier)
NO_HISTOGRAM = (
    "scikit-learn has no histograms with categories, pairs, densities or cumulative fractions"
)
NO_OTHER = "scikit-learn's encoders have no column for undeclared values like that of other="
ONE_TYPE = "the encoders of scikit-learn need categories of one type, with numbers in order"
# Encodings of DPHistogramTransformer that KBinsDiscretizer supports, with their names there.
BIN_ENCODINGS = {"onehot": "onehot-dense", "ordinal": "ordinal"}


def to_sklearn(model: BaseEstimator) -> BaseEstimator:
    """Return a scikit-learn estimator with the same predictions as a fitted private estimator.

    It is computed from the released values, so it costs no budget and has the guarantee of
    the fitted model. Loading it and predicting with it require only scikit-learn, and converters
    such as skl2onnx can read it.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skdp, a search, a `Pipeline`, a `ColumnTransformer` or a
        `FeatureUnion`. Other estimators are returned unchanged, including any rows that they store,
        unless they contain an skdp estimator.

    Returns
    -------
    estimator
        The estimator has no `privacy_`: keep the statement of `model` with it. Its outputs are
        arrays and agree with those of `model` for float64 input. Single-precision input and
        `set_output` are handled as in scikit-learn.

    Raises
    ------
    ValueError
        If scikit-learn has no such estimator. The message names the estimator and the reason.
    NotFittedError
        If the model is not fitted.

    Notes
    -----
    Predictions are a function of the released values (post-processing).
    ``docs/reference/plain_models.md`` lists the result for each estimator and which converters
    support it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression, DPStandardScaler
    >>> from skdp.export import to_sklearn
    >>> X = np.random.default_rng(0).uniform(17, 90, size=(1000, 2))
    >>> pipe = make_pipeline(DPStandardScaler(bounds=(17, 90)), DPLogisticRegression())
    >>> exported = to_sklearn(pipe.fit(X, X[:, 0] > 40))
    >>> [type(step).__name__ for step in exported[0]], type(exported[1]).__name__
    (['MinMaxScaler', 'MinMaxScaler'], 'LogisticRegression')
    >>> bool(np.allclose(exported.predict_proba(X), pipe.predict_proba(X)))
    True
    """
    if isinstance(model, str | None):
        return model
    check_is_fitted(model)
    if type(model) in SEARCHES and hasattr(model, "best_estimator_"):
        return to_sklearn(model.best_estimator_)
    if type(model) is skdp.DPTunedThresholdClassifierCV:
        return _tuned_threshold(model)
    if type(model) in RULES:
        exported = RULES[type(model)](model)
        if hasattr(model, "feature_names_in_"):
            first = exported
            if hasattr(exported, "steps"):
                first = exported[0]
            with_attributes(first, feature_names_in_=model.feature_names_in_)
        return exported
    if holds_private(model):
        raise export_error(model, "skdp has no conversion for it")
    return model


def _with_attributes_of(exported, model, *names, **released):
    """Copy named attributes of `model` to an estimator, and set further released values."""
    copied = {name: getattr(model, name) for name in (*names, "n_features_in_")}
    return with_attributes(exported, **copied, **released)


def _exported_steps(named):
    """Return named steps with exported estimators; a step without columns was never fitted."""
    exported = []
    for name, part, *columns in named:
        if columns and np.size(columns[0]) == 0:
            exported.append((name, "drop", *columns))
        else:
            exported.append((name, to_sklearn(part), *columns))
    return exported


def _pipeline(model):
    return _copied(model, steps=_exported_steps(model.steps))


def _feature_union(model):
    return _copied(model, transformer_list=_exported_steps(model.transformer_list))


def _tuned_threshold(model):
    """Return the `FixedThresholdClassifier` of a `DPTunedThresholdClassifierCV`."""
    exported = FixedThresholdClassifier(
        to_sklearn(model.estimator_),
        threshold=model.best_threshold_,
        response_method=model.response_method_,
    )
    return with_attributes(exported, estimator_=exported.estimator)


def _frozen(model):
    return to_sklearn(model.estimator)


def _columns(model):
    """Return a `ColumnTransformer` whose fitted parts are exported."""
    fitted = _exported_steps(model.transformers_)
    remainder = {name: part for name, part, _ in fitted}.get("remainder", "drop")
    named = [part for part in fitted if part[0] != "remainder"]
    attributes = {"transformers": named, "transformers_": fitted, "remainder": remainder}
    # Exported transformers may return dense output where that of the private ones was sparse.
    attributes["sparse_output_"] = False
    # The other attributes that contain a private estimator are tuples (name, remainder, columns).
    for name, value in vars(model).items():
        if name not in attributes and holds_private(value):
            parts = []
            for part in value:
                if holds_private(part):
                    part = remainder
                parts.append(part)
            attributes[name] = tuple(parts)
    return _copied(model, **attributes)


def _copied(model, **attributes):
    """Return a copy with changed attributes that outputs arrays: column names would differ."""
    exported = copy.copy(model)
    if type(model) in UNCHECKED:
        # The subclass that checks parameters belongs to skdp, which may not be installed.
        exported = UNCHECKED[type(model)].__new__(UNCHECKED[type(model)])
        vars(exported).update(vars(model))
    exported = with_attributes(exported, **attributes)
    vars(exported).pop("_sklearn_output_config", None)
    return exported


def _scores(model):
    """Return the scores of a linear or additive model as a `Sums`."""
    if hasattr(model, "shape_functions_"):
        return scores_of(model)
    coef = np.atleast_2d(model.coef_)
    return Sums(steps=[], weights=coef, constants=np.zeros(len(coef)) + model.intercept_)


def _classifier(model):
    """Return a classifier with the scores of a model.

    It has no `predict_proba` if scikit-learn has no estimator with the probabilities of `model`.
    """
    scores = _scores(model)
    clipped = type(model) in CLIPPED
    if clipped and len(scores.weights) == 1:
        return make_pipeline(*scores.as_steps(), _clipped_logistic(model))
    loss = getattr(model, "loss", "log_loss")
    if type(model) is skdp.DPLinearSVC or (clipped and model.privacy_.delta > 0.0):
        # For scores without probabilities, SGDClassifier is used instead of LinearSVC, which
        # skl2onnx converts neither in double precision nor in a pipeline.
        loss = "hinge"
    exported = _linear_classifier(model, scores.weights, scores.constants, loss)
    if scores.steps:
        return make_pipeline(*scores.steps, exported)
    return exported


def _linear_classifier(model, coef, intercept, loss="log_loss"):
    """Return a linear classifier with given coefficients and the classes of `model`."""
    if loss == "log_loss":
        exported = linear_model.LogisticRegression()
    else:
        exported = linear_model.SGDClassifier(loss=loss)
    return with_attributes(
        exported,
        coef_=coef,
        intercept_=intercept,
        classes_=model.classes_,
        n_features_in_=coef.shape[1],
    )


def _regressor(model):
    """Return a pipeline of the scores, clipped to the target's bounds, and the identity link."""
    if getattr(model, "loss", None) == "poisson":
        return _poisson(model)
    return _clipped_scores(model, *model.target_bounds_, linear_model.LinearRegression())


def _poisson(model):
    """Return a pipeline of the scores, clipped to the log bounds, and the exponential link."""
    low, high = np.log(np.maximum(model.target_bounds_, np.nextafter(0.0, 1.0)))
    # A fit to arbitrary rows sets the exponential link.
    link = linear_model.PoissonRegressor(alpha=0.0).fit(np.zeros((2, 1)), np.ones(2))
    return _clipped_scores(model, low, high, link)


def _clipped_scores(model, low, high, link):
    """Return a pipeline that clips the model's scores to [low, high] and applies the link.

    `link` is a linear model that receives the clipped score as its only feature.
    """
    link = with_attributes(link, coef_=np.ones(1), intercept_=np.float64(0.0))
    return make_pipeline(*_scores(model).as_steps((low, high)), link)


def _clipped_logistic(model):
    """Return the weighted mean of three logistic models: for scores below 0, above 0, and at 0.

    If residuals are clipped to 1/2, the probability of the second class is 2/3 s(score + log 3) for
    negative scores and 1/3 + 2/3 s(score - log 3) for others, where s is the logistic function.
    """
    start = np.log([3.0])
    parts = ((-1e3, 0.0, start), (0.0, 1e3, -start), (0.0, 0.0, 0.0 * start))
    voters = []
    for low, high, intercept in parts:
        clip = offset_step(np.zeros(1), [low, high])
        voters.append(make_pipeline(clip, _linear_classifier(model, np.ones((1, 1)), intercept)))
    # skl2onnx needs the weights as an array, and does not convert flatten_transform=True.
    exported = VotingClassifier(
        [*zip("abc", voters, strict=True)],
        voting="soft",
        weights=np.array([2.0, 2.0, -1.0]),
        flatten_transform=False,
    )
    codes = preprocessing.LabelEncoder().fit(model.classes_)
    return with_attributes(exported, estimators_=voters, le_=codes, classes_=model.classes_)


def _vectorizer(model):
    """Return a pipeline that computes the features of a `DPTableVectorizer`.

    The cells of the columns are mapped to one-hot codes of their groups, which have a weight.
    """
    cells = cells_of(model, model.kinds_, model.bin_edges_, scaled=model.counts_ is None)
    features = []
    for groups, weight in zip(model._groups(), model._weights(), strict=True):
        one_hot = [np.arange(codes[-1] + 1)[:, np.newaxis] == codes for codes in groups]
        features.append(weight * np.vstack(one_hot))
    return make_pipeline(*cells.compose(block_diag(*features)).as_steps())


def _to_unit(model):
    """Return a scaler that clips to a model's bounds, and maps these to 0 and 1."""
    return preprocessing.MinMaxScaler(clip=True).fit(np.array(model.bounds_))


def _scaler(model):
    """Return a pipeline that clips to the bounds and maps them linearly, as the model does."""
    unclipped = with_attributes(copy.copy(model), clip=False)
    vars(unclipped).pop("feature_names_in_", None)
    ends = np.asarray(unclipped.transform(np.array(model.bounds_)))
    exported = preprocessing.MinMaxScaler(getattr(model, "feature_range", (-1, 1)))
    exported.set_params(clip=getattr(model, "clip", False))
    exported = _with_attributes_of(exported, model, scale_=ends[1] - ends[0], min_=ends[0])
    return make_pipeline(_to_unit(model), exported)


def _gaussian(model):
    """Return a pipeline that clips to the bounds, scales to [0, 1] and applies a `GaussianNB`."""
    low, high = model.bounds_
    exported = _with_attributes_of(
        naive_bayes.GaussianNB(),
        model,
        "class_prior_",
        "classes_",
        theta_=(model.theta_ - low) / (high - low),
        var_=model.var_ / (high - low) ** 2,
    )
    return make_pipeline(_to_unit(model), exported)


def _quantiles(model):
    """Return the `QuantileTransformer` of released quantiles."""
    exported = preprocessing.QuantileTransformer(output_distribution=model.output_distribution)
    # QuantileTransformer maps the outermost quantiles to 0 and 1 even if they repeat (for a normal
    # output, values within 1e-7 of them). Therefore, quantiles are added outside them.
    ends = model.quantiles_[[0, -1]]
    margin = 0.0
    if model.output_distribution == "normal":
        margin = 2e-7
    below, above = ends + [[-1.0], [1.0]] * np.maximum(np.spacing(np.abs(ends)), margin)
    exported = _with_attributes_of(
        exported, model, quantiles_=np.vstack([below, model.quantiles_, above])
    )
    references = np.pad(model.references_, 1, mode="edge")
    return with_attributes(exported, references_=references, n_quantiles_=len(references))


def _pca(model):
    """Return the `PCA` of a private one."""
    names = ("components_", "mean_", "explained_variance_", "n_components_")
    return _with_attributes_of(decomposition.PCA(model.n_components_), model, *names)


def _imputer(model):
    """Return the `SimpleImputer` of the released statistics."""
    strategy = model.strategy
    if strategy == "constant":
        # The constant is unknown until the fit below finds it as the only value.
        strategy = "most_frequent"
    # The imputer is fitted to a row of the statistics, and to a missing row if indicators are
    # added.
    rows = np.tile(model.statistics_, (1 + model.add_indicator, 1))
    rows[1:] = np.nan
    return impute.SimpleImputer(strategy=strategy, add_indicator=model.add_indicator).fit(rows)


def _kmeans(model):
    """Return a pipeline of a shift by the mean of the centers and the `KMeans` of the centers."""
    # KMeans expands squared distances, which loses digits if the centers are far from 0.
    centering = preprocessing.StandardScaler(with_std=False)
    centers = centering.fit_transform(model.cluster_centers_)
    exported = cluster.KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(centers)
    return make_pipeline(centering, with_attributes(exported, cluster_centers_=centers))


def _bins(model, encode):
    """Return a `KBinsDiscretizer` with the model's bin edges and this encoding."""
    sizes = model.n_bins_
    exported = preprocessing.KBinsDiscretizer(
        np.maximum(sizes, 2), encode=encode, strategy="uniform"
    )
    # KBinsDiscretizer needs at least two bins, but its fit gives a constant column a single bin.
    return with_attributes(exported.fit([0 * sizes, sizes > 1]), bin_edges_=model.bin_edges_)


def _discretizer(model):
    return _bins(model, model.encode)


def _mean_transformer(model):
    return preprocessing.StandardScaler(with_std=False).fit([model.mean_])


def _histogram(model):
    """Return a pipeline that computes the one-hot or ordinal features of a histogram.

    `MaxAbsScaler` divides by 1 / factor, so the features are multiplied by the model's factor.
    """
    if model.categories is not None or model.interactions or model.encode not in BIN_ENCODINGS:
        raise export_error(model, NO_HISTOGRAM)
    width = len(model.n_bins_)
    if model.encode == "onehot":
        width = model.n_bins_.sum()
    scaler = preprocessing.MaxAbsScaler().fit(np.full((1, width), 1.0 / model._factor))
    return make_pipeline(_bins(model, BIN_ENCODINGS[model.encode]), scaler)


def _one_hot(model):
    """Return the `OneHotEncoder` of a `DPOneHotEncoder` without a column for other categories."""
    if model.other is not None:
        raise export_error(model, NO_OTHER)
    encoder = preprocessing.OneHotEncoder(
        handle_unknown="ignore", sparse_output=model.sparse_output
    )
    return _with_categories(encoder, model, model._encoded_labels())


def _target_encoder(model):
    """Return the `TargetEncoder` of a `DPTargetEncoder`."""
    labels = model.classes_
    if labels is None:
        # The encoder is fitted to targets that are replaced below; 0.5 makes them continuous.
        labels = (0.0, 0.5)
    exported = preprocessing.TargetEncoder(target_type=model.target_type_)
    exported = _with_categories(exported, model, model.categories_, labels)
    return with_attributes(exported, encodings_=model.encodings_, target_mean_=model.target_mean_)


def _with_categories(exported, model, categories, labels=()):
    """Return an encoder that is fitted to rows in which each category occurs."""
    for labels_of_column in categories:
        types = set(map(type, labels_of_column.tolist()))
        is_numeric = labels_of_column.dtype.kind in "biuf"
        if len(types) != 1 or (is_numeric and (np.diff(labels_of_column) < 0).any()):
            raise export_error(model, ONE_TYPE)
    size = max(len(labels), *map(len, categories))
    rows = np.column_stack([np.resize(column.astype(object), size) for column in categories])
    exported.set_params(categories=categories).fit(rows, np.resize(labels, size))
    return with_attributes(exported, categories_=categories)


UNCHECKED = {checked: kind for kind, checked in CHECKED.items()}
# Exported classes, with the function that exports each of them. Subclasses are not exported,
# because their predictions may differ.
SEARCHES = (skdp.DPGridSearchCV, skdp.DPRandomizedSearchCV, GridSearchCV, RandomizedSearchCV)
RULES = {
    Pipeline: _pipeline,
    FeatureUnion: _feature_union,
    ColumnTransformer: _columns,
    SplitPipeline: _pipeline,
    SplitFeatureUnion: _feature_union,
    SplitColumnTransformer: _columns,
    FrozenEstimator: _frozen,
    **dict.fromkeys([*CLIPPED, skdp.DPHistogramNB, skdp.DPLogisticRegression], _classifier),
    **dict.fromkeys([skdp.DPLinearSVC, skdp.DPSGDClassifier], _classifier),
    **dict.fromkeys([skdp.DPLinearRegression, skdp.DPRidge, skdp.DPSGDRegressor], _regressor),
    **dict.fromkeys([skdp.DPAdditiveRegressor, skdp.DPRandomForestRegressor], _regressor),
    skdp.DPTableVectorizer: _vectorizer,
    skdp.DPPoissonRegressor: _poisson,
    skdp.DPGaussianNB: _gaussian,
    skdp.DPKMeans: _kmeans,
    **dict.fromkeys([skdp.DPStandardScaler, skdp.DPRobustScaler], _scaler),
    **dict.fromkeys([skdp.DPMinMaxScaler, skdp.DPMaxAbsScaler], _scaler),
    skdp.DPMeanTransformer: _mean_transformer,
    skdp.DPQuantileTransformer: _quantiles,
    skdp.DPPCA: _pca,
    skdp.DPSimpleImputer: _imputer,
    skdp.DPKBinsDiscretizer: _discretizer,
    skdp.DPHistogramTransformer: _histogram,
    skdp.DPOneHotEncoder: _one_hot,
    skdp.DPTargetEncoder: _target_encoder,
}
