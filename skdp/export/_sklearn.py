"""The plain scikit-learn model of each private one."""

import copy

import numpy as np
from scipy.linalg import block_diag
from sklearn import cluster, decomposition, impute, linear_model, naive_bayes, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp.export._raw_tables import Sums, cells_of, holding, refusal, scores_of, shifted
from skdp.pipeline._checked_fits import (
    CHECKED,
    SplitColumnTransformer,
    SplitFeatureUnion,
    SplitPipeline,
)
from skdp.pipeline._steps import holds_private

# Their residuals are clipped.
CLIPPED = (skdp.DPAdditiveClassifier, skdp.DPRandomForestClassifier, skdp.DPDecisionTreeClassifier)
BY_BIN = {"onehot": "onehot-dense", "ordinal": "ordinal"}


def to_sklearn(model):
    """Return a plain scikit-learn model that predicts what a private one predicts.

    It is made of what the fit released, costs nothing and is as private as the fitted model is. To
    load it and to predict one needs scikit-learn alone, and converters such as skl2onnx know it.

    Parameters
    ----------
    model : estimator
        Fitted: an estimator of skdp, a search, a `Pipeline`, a `ColumnTransformer` or a
        `FeatureUnion`. Of estimators that are not skdp's those are returned which hold none, with
        whatever they keep of the rows.

    Returns
    -------
    estimator
        It has no `privacy_`: keep that of the model with it. Outputs are those for doubles, as
        arrays: single precision, and what `set_output` asked for, are the plain estimators' own.

    Raises
    ------
    ValueError
        If scikit-learn has no such estimator; the message names it and says why.
    NotFittedError
        If the model is not fitted.

    Notes
    -----
    Predictions are a function of the released values (post-processing). Which estimator becomes
    what, and what converters make of it, is in ``docs/serving.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression, DPStandardScaler
    >>> from skdp.export import to_sklearn
    >>> X = np.random.default_rng(0).uniform(17, 90, size=(1000, 2))
    >>> pipe = make_pipeline(DPStandardScaler(bounds=(17, 90)), DPLogisticRegression())
    >>> plain = to_sklearn(pipe.fit(X, X[:, 0] > 40))
    >>> [type(step).__name__ for step in plain[0]], type(plain[1]).__name__
    (['MinMaxScaler', 'MinMaxScaler'], 'LogisticRegression')
    >>> bool(np.allclose(plain.predict_proba(X), pipe.predict_proba(X)))
    True
    """
    if isinstance(model, str | None):
        return model
    check_is_fitted(model)
    if type(model) in SEARCHES and hasattr(model, "best_estimator_"):
        return to_sklearn(model.best_estimator_)
    if type(model) in RULES:
        plain = RULES[type(model)](model)
        if hasattr(model, "feature_names_in_"):
            first = plain[0] if hasattr(plain, "steps") else plain
            holding(first, feature_names_in_=model.feature_names_in_)
        return plain
    if holds_private(model):
        raise refusal(model, "scikit-learn has no estimator of its kind")
    return model


def _taken(plain, model, *names, **released):
    own = {name: getattr(model, name) for name in (*names, "n_features_in_")}
    return holding(plain, **own, **released)


def _parts(named):
    """Return named parts with plain estimators; a part of no columns was never fitted."""
    return [
        (name, "drop" if columns and not np.size(columns[0]) else to_sklearn(part), *columns)
        for name, part, *columns in named
    ]


def _columns(model):
    fitted = _parts(model.transformers_)
    remainder = {name: part for name, part, _ in fitted}.get("remainder", "drop")
    named = [part for part in fitted if part[0] != "remainder"]
    known = {"transformers": named, "transformers_": fitted, "remainder": remainder}
    # Plain parts may be dense where private ones were sparse.
    known["sparse_output_"] = False
    # What else holds a private estimator is the remainder among its name and its columns.
    for name, value in vars(model).items():
        if name not in known and holds_private(value):
            known[name] = tuple(remainder if holds_private(part) else part for part in value)
    return _copied(model, **known)


def _copied(model, **known):
    """Return a copy that holds plain parts and makes arrays: names of columns would be others."""
    plain = copy.copy(model)
    if type(model) in UNCHECKED:
        # Without skdp there is no subclass whose fits check parameters.
        plain = UNCHECKED[type(model)].__new__(UNCHECKED[type(model)])
        vars(plain).update(vars(model))
    plain = holding(plain, **known)
    vars(plain).pop("_sklearn_output_config", None)
    return plain


def _scores(model):
    if hasattr(model, "shape_functions_"):
        return scores_of(model)
    coef = np.atleast_2d(model.coef_)
    return Sums(steps=[], weights=coef, constants=np.zeros(len(coef)) + model.intercept_)


def _classifier(model):
    """Return a model of its scores; without chances where no plain one has them."""
    scores = _scores(model)
    clipped = type(model) in CLIPPED
    if clipped and len(scores.weights) == 1:
        return make_pipeline(*scores.as_steps(), _clipped_logistic(model))
    # Not LinearSVC: skl2onnx does not convert it in double precision, nor in a pipeline.
    margins = type(model) is skdp.DPLinearSVC or (clipped and model.privacy_.delta > 0.0)
    loss = "hinge" if margins else getattr(model, "loss", "log_loss")
    plain = _of_scores(model, scores.weights, scores.constants, loss)
    return make_pipeline(*scores.steps, plain) if scores.steps else plain


def _of_scores(model, coef, intercept, loss="log_loss"):
    logistic = loss == "log_loss"
    plain = linear_model.LogisticRegression() if logistic else linear_model.SGDClassifier(loss=loss)
    known = {"classes_": model.classes_, "n_features_in_": coef.shape[1]}
    return holding(plain, coef_=coef, intercept_=intercept, **known)


def _regressor(model):
    """Return the scores, clipped to the bounds of the target, and a link that is the identity."""
    return _clipped_scores(model, *model.target_bounds_, linear_model.LinearRegression())


def _poisson(model):
    """Return the scores, clipped to the bounds' logarithms, and a link that is the exponential."""
    low, high = np.log(np.maximum(model.target_bounds_, np.nextafter(0.0, 1.0)))
    # A fit makes the link known, here to rows that have no say in anything else.
    link = linear_model.PoissonRegressor(alpha=0.0).fit(np.zeros((2, 1)), np.ones(2))
    return _clipped_scores(model, low, high, link)


def _clipped_scores(model, low, high, link):
    link = holding(link, coef_=np.ones(1), intercept_=np.float64(0.0))
    return make_pipeline(*_scores(model).as_steps((low, high)), link)


def _clipped_logistic(model):
    """Return the weighted mean of logistic models of the score below 0, above it, and at 0.

    Where residuals are clipped to 1/2, the chance of the second class is 2/3 s(score + log 3) at
    negative scores and 1/3 + 2/3 s(score - log 3) at others; s is the logistic function.
    """
    start = np.log([3.0])
    parts = ((-1e3, 0.0, start), (0.0, 1e3, -start), (0.0, 0.0, 0.0 * start))
    voters = [
        make_pipeline(shifted(np.zeros(1), ends), _of_scores(model, np.ones((1, 1)), start))
        for *ends, start in parts
    ]
    # skl2onnx wants the weights as an array, and not to be asked for transformed rows.
    options = {"weights": np.array([2.0, 2.0, -1.0]), "flatten_transform": False}
    plain = VotingClassifier([*zip("abc", voters, strict=True)], voting="soft", **options)
    codes = preprocessing.LabelEncoder().fit(model.classes_)
    return holding(plain, estimators_=voters, le_=codes, classes_=model.classes_)


def _vectorizer(model):
    cells = cells_of(model, model.kinds_, model.bin_edges_, scaled=model.counts_ is None)
    features = [
        weight * np.vstack([np.arange(one[-1] + 1)[:, np.newaxis] == one for one in own])
        for own, weight in zip(model._groups(), model._weights(), strict=True)
    ]
    return make_pipeline(*cells.then(block_diag(*features)).as_steps())


def _to_unit(model):
    """Return a plain scaler that clips to a model's bounds, and maps the bounds to 0 and 1."""
    return preprocessing.MinMaxScaler(clip=True).fit(np.array(model.bounds_))


def _scaler(model):
    """Return a scaler that clips to the bounds; what becomes of the bounds says the rest."""
    unclipped = holding(copy.copy(model), clip=False)
    vars(unclipped).pop("feature_names_in_", None)
    ends = np.asarray(unclipped.transform(np.array(model.bounds_)))
    plain = preprocessing.MinMaxScaler(getattr(model, "feature_range", (-1, 1)))
    plain.set_params(clip=getattr(model, "clip", False))
    plain = _taken(plain, model, scale_=ends[1] - ends[0], min_=ends[0])
    return make_pipeline(_to_unit(model), plain)


def _gaussian(model):
    low, high = model.bounds_
    known = {"theta_": (model.theta_ - low) / (high - low), "var_": model.var_ / (high - low) ** 2}
    plain = _taken(naive_bayes.GaussianNB(), model, "class_prior_", "classes_", **known)
    return make_pipeline(_to_unit(model), plain)


def _quantiles(model):
    plain = preprocessing.QuantileTransformer(output_distribution=model.output_distribution)
    # It sends the outermost quantiles (a normal one what is within 1e-7 of them) to 0 and 1, also
    # where they repeat. So further ones are put around them.
    ends = model.quantiles_[[0, -1]]
    least = 2e-7 if model.output_distribution == "normal" else 0.0
    below, above = ends + [[-1.0], [1.0]] * np.maximum(np.spacing(np.abs(ends)), least)
    plain = _taken(plain, model, quantiles_=np.vstack([below, model.quantiles_, above]))
    references = np.pad(model.references_, 1, mode="edge")
    return holding(plain, references_=references, n_quantiles_=len(references))


def _pca(model):
    names = ("components_", "mean_", "explained_variance_", "n_components_")
    return _taken(decomposition.PCA(model.n_components_), model, *names)


def _imputer(model):
    strategy = "most_frequent" if model.strategy == "constant" else model.strategy
    made = np.tile(model.statistics_, (1 + model.add_indicator, 1))
    made[1:] = np.nan
    return impute.SimpleImputer(strategy=strategy, add_indicator=model.add_indicator).fit(made)


def _kmeans(model):
    # Its expanded squares cancel far from 0.
    middle = preprocessing.StandardScaler(with_std=False)
    centers = middle.fit_transform(model.cluster_centers_)
    plain = cluster.KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(centers)
    return make_pipeline(middle, holding(plain, cluster_centers_=centers))


def _bins(model, encode):
    sizes = model.n_bins_
    plain = preprocessing.KBinsDiscretizer(np.maximum(sizes, 2), encode=encode, strategy="uniform")
    # A constant column gets one bin.
    return holding(plain.fit([0 * sizes, sizes > 1]), bin_edges_=model.bin_edges_)


def _histogram(model):
    if model.categories is not None or model.interactions or model.encode not in BY_BIN:
        raise refusal(model, "categories, pairs, densities and shares below are its own")
    width = model.n_bins_.sum() if model.encode == "onehot" else len(model.n_bins_)
    scaler = preprocessing.MaxAbsScaler().fit(np.full((1, width), 1.0 / model._factor))
    return make_pipeline(_bins(model, BY_BIN[model.encode]), scaler)


def _one_hot(model):
    if model.other is not None:
        raise refusal(model, "no plain encoder gives undeclared values the column of other=")
    options = {"handle_unknown": "ignore", "sparse_output": model.sparse_output}
    return _of_categories(preprocessing.OneHotEncoder(**options), model, model._encoded_labels())


def _target_means(model):
    labels = (0.0, 0.5) if model.classes_ is None else model.classes_
    plain = preprocessing.TargetEncoder(target_type=model.target_type_)
    plain = _of_categories(plain, model, model.categories_, labels)
    return holding(plain, encodings_=model.encodings_, target_mean_=model.target_mean_)


def _of_categories(plain, model, categories, labels=()):
    """Return a plain encoder of categories, fitted to made rows that hold each of them."""
    for own in categories:
        kinds = set(map(type, own.tolist()))
        if len(kinds) != 1 or (own.dtype.kind in "biuf" and (np.diff(own) < 0).any()):
            raise refusal(model, "a column of it has categories of one type, numbers in order")
    size = max(len(labels), *map(len, categories))
    made = np.column_stack([np.resize(own.astype(object), size) for own in categories])
    plain.set_params(categories=categories).fit(made, np.resize(labels, size))
    return holding(plain, categories_=categories)


UNCHECKED = {checked: kind for kind, checked in CHECKED.items()}
# What maps, by the very class: one that is derived may predict otherwise.
SEARCHES = (skdp.DPGridSearchCV, skdp.DPRandomizedSearchCV, GridSearchCV, RandomizedSearchCV)
RULES = {
    Pipeline: lambda m: _copied(m, steps=_parts(m.steps)),
    FeatureUnion: lambda m: _copied(m, transformer_list=_parts(m.transformer_list)),
    ColumnTransformer: _columns,
    SplitPipeline: lambda m: _copied(m, steps=_parts(m.steps)),
    SplitFeatureUnion: lambda m: _copied(m, transformer_list=_parts(m.transformer_list)),
    SplitColumnTransformer: _columns,
    FrozenEstimator: lambda m: to_sklearn(m.estimator),
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
    skdp.DPMeanTransformer: lambda m: preprocessing.StandardScaler(with_std=False).fit([m.mean_]),
    skdp.DPQuantileTransformer: _quantiles,
    skdp.DPPCA: _pca,
    skdp.DPSimpleImputer: _imputer,
    skdp.DPKBinsDiscretizer: lambda m: _bins(m, m.encode),
    skdp.DPHistogramTransformer: _histogram,
    skdp.DPOneHotEncoder: _one_hot,
    skdp.DPTargetEncoder: _target_means,
}
