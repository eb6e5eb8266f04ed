"""Fitted private estimators as scikit-learn's own, with the released coefficients."""

import pickle
from copy import copy
from functools import singledispatch

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from skdp.base import PrivateMixin
from skdp.decomposition import DPPCA
from skdp.impute import DPSimpleImputer
from skdp.linear_model import DPPoissonRegressor
from skdp.linear_model._classifier import PrivateLinearClassifier
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.preprocessing import (
    DPKBinsDiscretizer,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPTargetEncoder,
)
from skdp.preprocessing._planned import BoundedColumnsTransformer
from skdp.svm import DPLinearSVC


def to_sklearn(estimator):
    """Return scikit-learn's own estimator with what a private one released.

    What it returns needs no skdp to load or to predict, so that converters (ONNX, PMML), SHAP and
    model servers take it. Its answers are those of `estimator`. This is post-processing: it reads
    no data, spends nothing and is as private as the estimator. ``docs/serving.md`` has the table
    of what becomes what.

    Parameters
    ----------
    estimator : estimator
        Fitted. Of a `Pipeline`, `ColumnTransformer` or `FeatureUnion` each step is converted;
        scikit-learn's own steps are kept; of a search the best estimator is taken.

    Returns
    -------
    estimator
        Fitted. Clipping to bounds is a `MinMaxScaler` with ``clip=True`` before; a regressor whose
        predictions are clipped is an `MLPRegressor` of rectified units, which is what a clipped
        linear function is.

    Raises
    ------
    ValueError
        If scikit-learn has no estimator that answers the same, of which the text names the class.
    sklearn.exceptions.NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression, DPStandardScaler
    >>> from skdp.export import to_sklearn
    >>> X, y = load_iris(return_X_y=True)
    >>> scaler = DPStandardScaler(bounds=(0, 8), random_state=0)
    >>> pipe = make_pipeline(scaler, DPLogisticRegression(random_state=0)).fit(X, y)
    >>> plain = to_sklearn(pipe)
    >>> [type(step).__name__ for step in plain]
    ['Pipeline', 'LogisticRegression']
    >>> bool((plain.predict(X) == pipe.predict(X)).all())
    True
    """
    check_is_fitted(estimator)
    if hasattr(estimator, "best_estimator_"):
        return to_sklearn(estimator.best_estimator_)
    plain = _plain(estimator)
    if isinstance(estimator, PrivateMixin):
        names = [
            name for name in vars(estimator) if name in ("n_features_in_", "feature_names_in_")
        ]
        _with(plain[0] if isinstance(plain, Pipeline) else plain, estimator, *names)
    return plain


def _with(plain, model, *names, **attributes):
    """Return a plain estimator with some of a private one's attributes, and with others."""
    vars(plain).update({name: getattr(model, name) for name in names}, **attributes)
    return plain


@singledispatch
def _plain(model):
    if b"skdp" in pickle.dumps(model):
        raise ValueError(f"scikit-learn has no estimator that answers as {type(model).__name__}")
    return model


@_plain.register
def _(model: Pipeline):
    return Pipeline([(name, _part(step)) for name, step in model.steps])


@_plain.register
def _(model: ColumnTransformer):
    parts = [(name, _part(step), columns) for name, step, columns in model.transformers_]
    return _with(copy(model), model, transformers_=parts)


@_plain.register
def _(model: FeatureUnion):
    parts = [(name, _part(step)) for name, step in model.transformer_list]
    return _with(copy(model), model, transformer_list=parts)


def _part(step):
    return step if step is None or isinstance(step, str) else to_sklearn(step)


@_plain.register
def _(model: PrivateLinearClassifier):
    loss = getattr(model, "loss", "log_loss")
    plain = LogisticRegression() if loss == "log_loss" else SGDClassifier(loss=loss)
    if isinstance(model, DPLinearSVC):
        plain = LinearSVC()
    return _with(plain, model, "coef_", "intercept_", "classes_", n_iter_=np.zeros(1, int))


@_plain.register
def _(model: PrivateLinearRegressor):
    low, high = model.target_bounds_
    rates = isinstance(model, DPPoissonRegressor)
    if rates:
        with np.errstate(divide="ignore"):
            low, high = np.log([low, high])
    coef, intercept = np.reshape(model.coef_, (-1, 1)), np.ravel(model.intercept_)
    # min(max(z, low), high) = low + max(z - low, 0) - max(z - high, 0)
    ends = np.array([low, high])
    if low == -np.inf:  # min(z, high) = max(z, 0) - max(-z, 0) - max(z - high, 0)
        coef, hidden = coef * [[1.0, -1.0, 1.0]], intercept * [1.0, -1.0, 1.0] - [0.0, 0.0, high]
        out, low = np.array([[1.0], [-1.0], [-1.0]]), 0.0
    else:
        coef, hidden, out = coef * [[1.0, 1.0]], intercept - ends, np.array([[1.0], [-1.0]])
    return _with(
        MLPRegressor(hidden_layer_sizes=(len(hidden),)),
        model,
        coefs_=[coef, out],
        intercepts_=[hidden, np.array([low])],
        n_layers_=3,
        n_outputs_=1,
        out_activation_="exp" if rates else "identity",
    )


@_plain.register
def _(model: BoundedColumnsTransformer):
    model, ends = copy(model), np.array(np.broadcast_arrays(*model.bounds_))
    vars(model).pop("feature_names_in_", None)  # the ends are no frame
    if getattr(model, "clip", False):
        span = getattr(model, "feature_range", (-1.0, 1.0))
        ends = np.clip(
            ends, *model.inverse_transform(np.multiply.outer(span, np.ones(ends.shape[1])))
        )
    # From low to high a scaler is the line through its answers to them.
    first, last = model.transform(ends)
    unit = MinMaxScaler(clip=True).fit(ends)
    width = last - first
    line = {"mean_": -first / width, "scale_": 1.0 / width, "var_": width**-2.0}
    return make_pipeline(unit, _with(StandardScaler(), unit, "n_features_in_", **line))


@_plain.register
def _(model: DPMeanTransformer):
    return _with(StandardScaler(with_std=False), model, "mean_", scale_=None, var_=None)


@_plain.register
def _(model: DPPCA):
    return _with(PCA(), model, "components_", "mean_", "n_components_", "explained_variance_")


@_plain.register
def _(model: DPSimpleImputer):
    if model.add_indicator:
        raise ValueError("scikit-learn's SimpleImputer marks only columns that had gaps in fit")
    numeric = model.statistics_.dtype.kind == "f"
    plain = SimpleImputer(strategy="mean" if numeric else "most_frequent")
    return plain.fit(model.statistics_[None])


@_plain.register
def _(model: DPKBinsDiscretizer):
    ends = np.array([[edges[0], edges[-1]] for edges in model.bin_edges_]).T
    plain = KBinsDiscretizer(model.n_bins_, encode=model.encode, strategy="uniform").fit(ends)
    return _with(plain, model, "bin_edges_")


@_plain.register
def _(model: DPOneHotEncoder):
    if model.other is not None or any(len(few) for few in model.infrequent_categories_):
        raise ValueError("scikit-learn's OneHotEncoder has no column of its own for other values")
    sparse = {"sparse_output": model.sparse_output}
    plain = OneHotEncoder(categories=model.categories_, handle_unknown="ignore", **sparse)
    return plain.fit(_made_rows(model, 1))


def _made_rows(model, n_rows):
    """Return rows of an encoder's categories, for a plain one to be fitted to."""
    numbers = all(labels.dtype.kind in "biuf" for labels in model.categories_)
    columns = [np.resize(labels, n_rows).tolist() for labels in model.categories_]
    return np.array(columns, dtype=None if numbers else object).T


@_plain.register
def _(model: DPTargetEncoder):
    target = np.arange(6.0) if model.classes_ is None else np.resize(model.classes_, 6)
    plain = TargetEncoder(categories=model.categories_, target_type=model.target_type_, cv=2)
    return _with(plain.fit(_made_rows(model, 6), target), model, "encodings_", "target_mean_")


@_plain.register
def _(model: DPQuantileTransformer):
    plain = QuantileTransformer(output_distribution=model.output_distribution)
    n_quantiles = len(model.references_)
    return _with(plain, model, "quantiles_", "references_", n_quantiles_=n_quantiles)
