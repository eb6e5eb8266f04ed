"""The plain scikit-learn model of each private one."""

import copy

import numpy as np
from sklearn import cluster, decomposition, impute, linear_model, naive_bayes, preprocessing, svm
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp.export._cells import CellSum, binning, clipping, holding, matrix, nameless
from skdp.pipeline._steps import holds_private


def to_sklearn(model):
    """Return a plain scikit-learn model that predicts what a private one predicts.

    It is made of what the fit released, costs nothing and is as private as the fitted model is. To
    load it and to predict one needs scikit-learn alone, and converters such as skl2onnx know it.

    Parameters
    ----------
    model : estimator
        Fitted: an estimator of skdp, a search, a `Pipeline`, a `ColumnTransformer` or a
        `FeatureUnion`. Of estimators that are not skdp's those are returned which hold none.

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
    (['MinMaxScaler', 'StandardScaler'], 'LogisticRegression')
    >>> bool(np.allclose(plain.predict_proba(X), pipe.predict_proba(X)))
    True
    """
    if isinstance(model, str | None):
        return model
    check_is_fitted(model)
    if hasattr(model, "best_estimator_"):
        return to_sklearn(model.best_estimator_)
    if type(model) in RULES:
        return holding(RULES[type(model)](model), getattr(model, "feature_names_in_", None))
    if holds_private(model):
        raise _refusal(model, "no estimator of scikit-learn predicts the same")
    return model


def _refusal(model, why):
    return ValueError(f"{type(model).__name__} has no plain counterpart: {why}")


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
    return holding(copy.copy(model), **known)


def _taken(plain, model, *names):
    return holding(plain, **{name: getattr(model, name) for name in (*names, "n_features_in_")})


def _classifier(plain, model, cells=None):
    """Return a plain classifier of linear scores, of cells if there are any."""
    scores = cells or model
    coef = np.atleast_2d(scores.coef_)
    known = {"coef_": coef, "intercept_": np.zeros(len(coef)) + scores.intercept_}
    known |= {"classes_": model.classes_, "n_features_in_": coef.shape[1]}
    plain = holding(plain, **known)
    return plain if cells is None else make_pipeline(cells.encoder, plain)


def _sgd(model):
    if model.loss == "log_loss":
        return _classifier(linear_model.LogisticRegression(), model)
    return _classifier(linear_model.SGDClassifier(loss=model.loss), model)


def _regressor(model, cells=None):
    """Return a plain regressor of linear scores that are clipped, and then linked."""
    scores, (low, high), link = (
        cells or model,
        model.target_bounds_,
        linear_model.LinearRegression(),
    )
    if type(model) is skdp.DPPoissonRegressor:
        low, high = np.log(np.maximum([low, high], np.nextafter(0.0, 1.0)))
        # A fit makes the link known, here to rows that have no say in anything else.
        link = linear_model.PoissonRegressor(alpha=0.0).fit(np.zeros((2, 1)), np.ones(2))
    known = {"scale_": np.ones(1), "min_": np.ravel(scores.intercept_), "n_features_in_": 1}
    clip = holding(preprocessing.MinMaxScaler((low, high), clip=True), **known)
    link = holding(link, coef_=np.ones(1), intercept_=0.0)
    before = [] if cells is None else [cells.encoder]
    return make_pipeline(*before, matrix(np.atleast_2d(scores.coef_)), clip, link)


def _scaler(model):
    """Return a scaler that clips to the bounds; what becomes of the bounds says the rest."""
    ends = holding(nameless(model), clip=False).transform(np.array(model.bounds_))
    plain = preprocessing.MinMaxScaler(getattr(model, "feature_range", (-1, 1)))
    plain.set_params(clip=getattr(model, "clip", False))
    known = {"scale_": ends[1] - ends[0], "min_": ends[0]}
    return make_pipeline(clipping(*model.bounds_), holding(plain, **known))


def _gaussian(model):
    low, high = model.bounds_
    known = {"theta_": (model.theta_ - low) / (high - low), "var_": model.var_ / (high - low) ** 2}
    plain = holding(naive_bayes.GaussianNB(), class_prior_=model.class_prior_, **known)
    return make_pipeline(clipping(low, high), holding(plain, classes_=model.classes_))


def _quantiles(model):
    plain = preprocessing.QuantileTransformer(output_distribution=model.output_distribution)
    return _taken(plain, model, "quantiles_", "references_", "n_quantiles_")


def _pca(model):
    names = ("components_", "mean_", "explained_variance_", "n_components_")
    return _taken(decomposition.PCA(model.n_components_), model, *names)


def _imputer(model):
    strategy = "most_frequent" if model.strategy == "constant" else model.strategy
    made = np.tile(model.statistics_, (1 + model.add_indicator, 1))
    made[1:] = np.nan
    return impute.SimpleImputer(strategy=strategy, add_indicator=model.add_indicator).fit(made)


def _kmeans(model):
    centers = model.cluster_centers_
    plain = cluster.KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(centers)
    return holding(plain, cluster_centers_=centers)


def _transformer(model, limits, kinds, missing=True):
    return _cells(model, limits, kinds, missing, lambda m, X: m.transform(X)).transformer()


def _encoder(model):
    drops = getattr(model, "other", "") is None
    limits = model._kept() if drops else model.categories_
    return _transformer(model, limits, ["label"] * len(limits), missing=False)


def _histogram(model):
    kinds = ["number" if each.is_numeric else "label" for each in model._bins]
    if model.interactions or (model.encode == "cumulative" and "number" in kinds):
        raise _refusal(model, "its output is no sum of what the cell of each column adds")
    return _transformer(model, model.bin_edges_, kinds, missing=False)


def _vectorizer(model):
    if model.counts_ is None and set(model.kinds_) != {"label"}:
        raise _refusal(model, "it scales numbers; numbers='bins' has one")
    return _transformer(model, model.bin_edges_, model.kinds_)


def _curves(model):
    shapes = model.shape_functions_
    if any(len(shape.features) > 1 for shape in shapes):
        raise _refusal(model, "it has interactions; interactions=0 has one")
    edges, kinds = [shape.edges[0] for shape in shapes], [shape.kinds[0] for shape in shapes]
    return _cells(model, edges, kinds, True, lambda m, X: m.explain(X).sum(axis=1) + m.intercept_)


def _cells(model, limits, kinds, missing, evaluate):
    if {"date", "duration"} & set(kinds):
        raise _refusal(model, "it reads dates; of numbers made of them it has one")
    return CellSum.of(model, limits, kinds, missing, evaluate)


# What maps, by the very class: one that is derived may predict otherwise.
RULES = {
    Pipeline: lambda m: holding(copy.copy(m), steps=_parts(m.steps)),
    FeatureUnion: lambda m: holding(copy.copy(m), transformer_list=_parts(m.transformer_list)),
    ColumnTransformer: _columns,
    FrozenEstimator: lambda m: to_sklearn(m.estimator),
    skdp.DPAdditiveClassifier: lambda m: _classifier(svm.LinearSVC(), m, _curves(m)),
    skdp.DPAdditiveRegressor: lambda m: _regressor(m, _curves(m)),
    skdp.DPGaussianNB: _gaussian,
    skdp.DPHistogramNB: lambda m: _classifier(linear_model.LogisticRegression(), m, _curves(m)),
    skdp.DPHistogramTransformer: _histogram,
    skdp.DPKBinsDiscretizer: lambda m: binning(m.bin_edges_, m.encode),
    skdp.DPKMeans: _kmeans,
    skdp.DPLinearRegression: _regressor,
    skdp.DPLinearSVC: lambda m: _classifier(svm.LinearSVC(), m),
    skdp.DPLogisticRegression: lambda m: _classifier(linear_model.LogisticRegression(), m),
    skdp.DPMaxAbsScaler: _scaler,
    skdp.DPMeanTransformer: lambda m: _taken(
        preprocessing.StandardScaler(with_std=False), m, "mean_"
    ),
    skdp.DPMinMaxScaler: _scaler,
    skdp.DPOneHotEncoder: _encoder,
    skdp.DPPCA: _pca,
    skdp.DPPoissonRegressor: _regressor,
    skdp.DPQuantileTransformer: _quantiles,
    skdp.DPRidge: _regressor,
    skdp.DPRobustScaler: _scaler,
    skdp.DPSGDClassifier: _sgd,
    skdp.DPSGDRegressor: _regressor,
    skdp.DPSimpleImputer: _imputer,
    skdp.DPStandardScaler: _scaler,
    skdp.DPTableVectorizer: _vectorizer,
    skdp.DPTargetEncoder: _encoder,
}
