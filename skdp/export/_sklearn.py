"""The plain scikit-learn model of each private one."""

import copy

import numpy as np
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    SGDClassifier,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, QuantileTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import skdp
from skdp.export._cells import (
    CellSum,
    binning,
    clipping,
    holding,
    label_cells,
    matrix,
    nameless,
    number_cells,
)
from skdp.pipeline._steps import holds_private

SMALLEST = np.nextafter(0.0, 1.0)


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
    if type(model) in CONTAINERS:
        return CONTAINERS[type(model)](model)
    if type(model) in RULES:
        return holding(RULES[type(model)](model), getattr(model, "feature_names_in_", None))
    if holds_private(model):
        raise _refusal(model, "scikit-learn has no estimator that predicts the same")
    return model


def _refusal(model, why):
    return ValueError(f"{type(model).__name__} has no plain counterpart: {why}")


def _parts(named):
    """Return named parts with plain estimators; what a part of no columns is was never fitted."""
    return [
        (name, "drop" if columns and not np.size(columns[0]) else to_sklearn(part), *columns)
        for name, part, *columns in named
    ]


def _columns(model):
    fitted = _parts(model.transformers_)
    remainder = {name: part for name, part, _ in fitted}.get("remainder", "drop")
    transformers = [part for part in fitted if part[0] != "remainder"]
    known = {"transformers": transformers, "transformers_": fitted, "remainder": remainder}
    return holding(copy.copy(model), **known)


def _taken(plain, model, *names):
    """Return a plain estimator with some of a model's attributes."""
    return holding(plain, **{name: getattr(model, name) for name in (*names, "n_features_in_")})


def _linear(plain, weights, classes):
    known = {"coef_": np.atleast_2d(weights.coef_), "classes_": classes}
    known["intercept_"] = np.zeros(len(known["coef_"])) + weights.intercept_
    return holding(plain, **known, n_features_in_=known["coef_"].shape[1])


def _within(weights, low, high, link=None, before=()):
    """Return scores that are clipped, and then linked: by the identity if no link is given."""
    known = {"scale_": np.ones(1), "min_": np.ravel(weights.intercept_), "n_features_in_": 1}
    clip = holding(MinMaxScaler((low, high), clip=True), **known)
    link = holding(link or LinearRegression(), coef_=np.ones(1), intercept_=0.0)
    return make_pipeline(*before, matrix(np.atleast_2d(weights.coef_)), clip, link)


def _sgd(model):
    logistic = model.loss == "log_loss"
    plain = LogisticRegression() if logistic else SGDClassifier(loss=model.loss)
    return _linear(plain, model, model.classes_)


def _poisson(model):
    # A fit makes the link known, here to rows that have no say in anything else.
    link = PoissonRegressor(alpha=0.0).fit(np.zeros((2, 1)), np.ones(2))
    return _within(model, *np.log(np.maximum(model.target_bounds_, SMALLEST)), link)


def _scaled(model):
    """Return a scaler that clips to the bounds: what becomes of them says the rest."""
    ends = holding(nameless(model), clip=False).transform(np.array(model.bounds_))
    plain = MinMaxScaler(getattr(model, "feature_range", (-1, 1)))
    plain.set_params(clip=getattr(model, "clip", False))
    known = {"scale_": ends[1] - ends[0], "min_": ends[0]}
    return make_pipeline(clipping(*model.bounds_), holding(plain, **known))


def _gaussian(model):
    low, high = model.bounds_
    known = {"theta_": (model.theta_ - low) / (high - low), "var_": model.var_ / (high - low) ** 2}
    plain = _taken(GaussianNB(), model, "classes_", "class_prior_", "class_count_")
    return make_pipeline(clipping(low, high), holding(plain, **known))


def _mean(model):
    known = {"mean_": model.mean_, "scale_": None, "n_features_in_": model.n_features_in_}
    return holding(StandardScaler(with_std=False), **known)


def _quantiles(model):
    params = {"n_quantiles": model.n_quantiles_, "output_distribution": model.output_distribution}
    names = ("quantiles_", "references_", "n_quantiles_")
    return _taken(QuantileTransformer(**params), model, *names)


def _pca(model):
    names = ("components_", "mean_", "explained_variance_", "explained_variance_ratio_")
    return _taken(PCA(model.n_components_), model, *names, "n_components_")


def _kmeans(model):
    centers = model.cluster_centers_
    plain = KMeans(len(centers), init=centers, n_init=1, max_iter=1).fit(centers)
    return holding(plain, cluster_centers_=centers)


def _imputer(model):
    strategy = "most_frequent" if model.strategy == "constant" else model.strategy
    made = np.tile(model.statistics_, (1 + model.add_indicator, 1))
    made[1:] = np.nan
    return SimpleImputer(strategy=strategy, add_indicator=model.add_indicator).fit(made)


def _histogram(model):
    kinds = {True: number_cells, False: label_cells}
    numeric = any(each.is_numeric for each in model._bins)
    if model.interactions or (model.encode == "cumulative" and numeric):
        raise _refusal(model, "its output is no sum of what the cell of each column adds")
    cells = [kinds[each.is_numeric](each.limits) for each in model._bins]
    return CellSum.of(model, cells, _transformed).transformer()


def _encoded(model):
    drops = getattr(model, "other", "") is None
    kept = model._kept() if drops else model.categories_
    return CellSum.of(model, list(map(label_cells, kept)), _transformed).transformer()


def _vectorized(model):
    if model.counts_ is None and set(model.kinds_) != {"label"}:
        raise _refusal(model, "it scales numbers; numbers='bins' has one")
    cells = _raw_cells(model, model.bin_edges_, model.kinds_)
    return CellSum.of(model, cells, _transformed).transformer()


def _sum_of_curves(model):
    shapes = model.shape_functions_
    if any(len(shape.features) > 1 for shape in shapes):
        raise _refusal(model, "it has interactions; interactions=0 has one")
    limits, kinds = zip(*((shape.edges[0], shape.kinds[0]) for shape in shapes), strict=True)
    return CellSum.of(model, _raw_cells(model, limits, kinds), _scores)


def _raw_cells(model, limits, kinds):
    if {"date", "duration"} & set(kinds):
        raise _refusal(model, "it reads dates; of numbers made of them it has one")
    cells_of = {True: label_cells, False: number_cells}
    pairs = zip(limits, kinds, strict=True)
    return [cells_of[kind == "label"](own, missing=True) for own, kind in pairs]


def _classifier_of_cells(plain, model):
    cells = _sum_of_curves(model)
    return make_pipeline(cells.encoder, _linear(plain, cells, model.classes_))


def _regressor_of_cells(model):
    cells = _sum_of_curves(model)
    return _within(cells, *model.target_bounds_, before=[cells.encoder])


def _transformed(model, X):
    made = model.transform(X)
    return made.toarray() if hasattr(made, "toarray") else np.asarray(made, dtype=np.float64)


def _scores(model, X):
    return (model.explain(X).sum(axis=1) + model.intercept_).reshape(len(X), -1)


# What maps, by the very class: one that is derived may predict otherwise.
CONTAINERS = {
    Pipeline: lambda m: holding(copy.copy(m), steps=_parts(m.steps)),
    FeatureUnion: lambda m: holding(copy.copy(m), transformer_list=_parts(m.transformer_list)),
    ColumnTransformer: _columns,
    FrozenEstimator: lambda m: to_sklearn(m.estimator),
}
RULES = {
    skdp.DPAdditiveClassifier: lambda m: _classifier_of_cells(LinearSVC(), m),
    skdp.DPAdditiveRegressor: _regressor_of_cells,
    skdp.DPGaussianNB: _gaussian,
    skdp.DPHistogramNB: lambda m: _classifier_of_cells(LogisticRegression(), m),
    skdp.DPHistogramTransformer: _histogram,
    skdp.DPKBinsDiscretizer: lambda m: binning(m.bin_edges_, m.encode),
    skdp.DPKMeans: _kmeans,
    skdp.DPLinearRegression: lambda m: _within(m, *m.target_bounds_),
    skdp.DPLinearSVC: lambda m: _linear(LinearSVC(), m, m.classes_),
    skdp.DPLogisticRegression: lambda m: _linear(LogisticRegression(), m, m.classes_),
    skdp.DPMaxAbsScaler: _scaled,
    skdp.DPMeanTransformer: _mean,
    skdp.DPMinMaxScaler: _scaled,
    skdp.DPOneHotEncoder: _encoded,
    skdp.DPPCA: _pca,
    skdp.DPPoissonRegressor: _poisson,
    skdp.DPQuantileTransformer: _quantiles,
    skdp.DPRidge: lambda m: _within(m, *m.target_bounds_),
    skdp.DPRobustScaler: _scaled,
    skdp.DPSGDClassifier: _sgd,
    skdp.DPSGDRegressor: lambda m: _within(m, *m.target_bounds_),
    skdp.DPSimpleImputer: _imputer,
    skdp.DPStandardScaler: _scaled,
    skdp.DPTableVectorizer: _vectorized,
    skdp.DPTargetEncoder: _encoded,
}
