"""One list of instances of every estimator, from which other tests compute theirs.

A new class is in all of them by itself, by what its constructor takes: nothing has to be listed
for a class that can be fitted with its default parameters. A class that needs others (labels,
the bounds of a target) has an instance in `LISTED`. Tests list what is special beyond that.
"""

import inspect

from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPCalibratedClassifierCV,
    DPDecisionTreeClassifier,
    DPGaussianNB,
    DPGridSearchCV,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMaxAbsScaler,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPQuantileTransformer,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPRandomizedSearchCV,
    DPRidge,
    DPRobustScaler,
    DPSGDClassifier,
    DPSGDRegressor,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableSynthesizer,
    DPTableVectorizer,
    DPTargetEncoder,
    DPTunedThresholdClassifierCV,
    RandomizedResponseTransformer,
)
from tests import _public

# The first instance of a class is the one from which other tests make theirs.
LISTED = [
    DPLogisticRegression(),
    DPLogisticRegression(epsilon=2.0, delta=0.0, C=0.5, data_norm=3.0),
    DPLogisticRegression(mechanism="output"),
    DPLogisticRegression(mechanism="objective"),
    DPLogisticRegression(mechanism="objective", delta=0.0),
    DPLogisticRegression(mechanism="gradient"),
    DPLogisticRegression(standard_errors="total"),
    DPLogisticRegression(data_norm="auto"),
    DPLogisticRegression(class_weight="balanced"),
    DPLogisticRegression(class_weight="balanced", mechanism="gradient", C=1.0),
    DPLinearSVC(),
    DPLinearSVC(data_norm="auto"),
    DPLinearSVC(class_weight="balanced"),
    DPLinearSVC(epsilon=2.0, delta=0.0, C=0.5, huber_threshold=0.1, data_norm=3.0),
    DPLinearRegression(target_bounds=(-10, 10)),
    DPRidge(target_bounds=(-10, 10), alpha=0.5, data_norm=3.0),
    DPRidge(target_bounds=(-10, 10), mechanism="gradient"),
    DPRidge(delta=0.0, target_bounds=(-10, 10), fit_intercept=False),
    DPPoissonRegressor(target_bounds=(0, 10)),
    DPPoissonRegressor(delta=0.0, target_bounds=(1, 10), alpha=0.1, data_norm=3.0),
    DPRidge(data_norm="auto", target_bounds=(-10, 10)),
    DPLinearRegression(data_norm="auto", target_bounds=(-10, 10)),
    DPPoissonRegressor(data_norm="auto", target_bounds=(0, 10)),
    DPStandardScaler(),
    DPSGDClassifier(),
    DPSGDClassifier(loss="hinge", data_norm=3.0),
    DPSGDClassifier(delta=0.0),
    DPSGDClassifier(class_weight="balanced", sampling="poisson", max_iter=2),
    DPSGDClassifier(sampling="poisson", max_iter=2, optimizer="adam"),
    DPSGDRegressor(target_bounds=(-10, 10)),
    DPSGDRegressor(target_bounds=(-10, 10), loss="huber", sampling="poisson", max_iter=2),
    DPStandardScaler(bounds=(-10, 10)),
    DPStandardScaler(delta=1e-6, bounds=(-10, 10), with_std=False),
    RandomizedResponseTransformer(categories=[0, 1, 2]),
    DPGridSearchCV(
        make_pipeline(DPStandardScaler(bounds=(-10, 10)), DPLinearSVC(C=0.1)),
        {"dplinearsvc__huber_threshold": [0.5, 1.0]},
        delta=0.0,
        cv=2,
    ),
    DPGridSearchCV(DPLogisticRegression(), {"C": [0.01, 0.1]}, strategy="holdout"),
    DPRandomizedSearchCV(
        DPRidge(target_bounds=(-10, 10)),
        {"alpha": [0.1, 1.0]},
        n_iter=2,
        strategy="random_stopping",
        mean_runs=1,
    ),
    DPTunedThresholdClassifierCV(DPLogisticRegression()),
    DPTunedThresholdClassifierCV(
        make_pipeline(DPStandardScaler(bounds=(-10, 10)), DPLinearSVC(class_weight="balanced")),
        epsilon=8.0,
        delta=0.0,
        cv=2,
        refit=True,
    ),
    DPCalibratedClassifierCV(DPLogisticRegression()),
    DPCalibratedClassifierCV(
        DPAdditiveClassifier(bounds=(-10, 10)), epsilon=8.0, method="isotonic", refit=True
    ),
    DPMeanTransformer(),
    DPMeanTransformer(bounds=(-10, 10)),
    # The noise that is chosen needs no delta, so a fit spends less than it may.
    DPMeanTransformer(delta=1e-6, bounds=(-10, 10)),
    DPMeanTransformer(delta=1e-6, bounds=(-10, 10), mechanism="gaussian"),
    DPHistogramTransformer(),
    DPHistogramTransformer(epsilon=2.0, bounds=(-10, 10), edges="uniform", encode="cumulative"),
    DPHistogramTransformer(edges=[-1.0, 0.0, 1.0], encode="density"),
    # As for `DPMeanTransformer(delta=1e-6)`: the noise that is chosen needs no delta.
    DPHistogramTransformer(delta=1e-6, edges=[-1.0, 0.0, 1.0]),
    DPHistogramTransformer(categories=[0, 1, 2], other=2, encode="ordinal"),
    DPKBinsDiscretizer(),
    DPKBinsDiscretizer(delta=1e-6, bounds=(-10, 10), encode="ordinal"),
    DPKBinsDiscretizer(n_bins=3, encode="onehot-dense"),
    DPSimpleImputer(),
    DPSimpleImputer(strategy="median", bounds=(-10, 10), add_indicator=True),
    DPSimpleImputer(strategy="most_frequent", categories=[0, 1, 2]),
    DPTargetEncoder(categories=[0, 1, 2]),
    DPTargetEncoder(categories=[0, 1, 2], target_bounds=(0, 1), delta=1e-6),
    DPTargetEncoder(epsilon=6.0, delta=1e-6),
    DPMinMaxScaler(),
    DPMinMaxScaler(bounds=(-10, 10), delta=1e-6, quantile_range=(1, 98), clip=True),
    DPMaxAbsScaler(),
    DPMaxAbsScaler(bounds=(-10, 10), delta=1e-6, quantile=95, clip=True),
    DPRobustScaler(),
    DPRobustScaler(bounds=(-10, 10), with_scaling=False),
    DPQuantileTransformer(bounds=(-10, 10), n_quantiles=9, output_distribution="normal"),
    DPQuantileTransformer(),
    DPPCA(),
    DPOneHotEncoder(epsilon=6.0, delta=1e-6),
    DPOneHotEncoder(categories=[0, 1, 2], min_frequency=0.2, sparse_output=False),
    DPOneHotEncoder(delta=1e-6, categories=[0, 1, 2], min_frequency=5, other=7),
    DPPCA(data_norm="auto", center=None),
    DPPCA(delta=0.0, n_components=2, data_norm=3.0, center=0.1),
    DPKMeans(n_clusters=2),
    DPKMeans(delta=1e-6, bounds=(-10, 10)),
    DPAdditiveClassifier(),
    DPAdditiveClassifier(delta=0.0, bounds=(-10, 10)),
    DPAdditiveClassifier(categories=[0, 1, 2]),
    DPAdditiveClassifier(class_weight="balanced"),
    DPAdditiveRegressor(target_bounds=(-10, 10)),
    DPAdditiveRegressor(target_bounds=(-10, 10), bounds=(-10, 10), n_bins=8),
    DPAdditiveRegressor(target_bounds=(0, 10), loss="poisson"),
    DPTableSynthesizer(),
    DPTableSynthesizer(delta=0.0, bounds=(-10, 10)),
    DPTableVectorizer(),
    DPTableVectorizer(delta=0.0, bounds=(-10, 10), n_bins=8),
    DPGaussianNB(),
    DPGaussianNB(delta=0.0, bounds=(-10, 10)),
    DPHistogramNB(),
    DPHistogramNB(delta=0.0, bounds=(-10, 10)),
    DPRandomForestClassifier(n_estimators=20),
    DPRandomForestClassifier(delta=0.0, bounds=(-10, 10), max_depth=2),
    DPRandomForestRegressor(n_estimators=20, target_bounds=(-10, 10)),
    DPDecisionTreeClassifier(max_depth=3),
    DPDecisionTreeClassifier(class_weight="balanced", delta=0.0, bounds=(-10, 10), max_depth=2),
    DPDecisionTreeClassifier(delta=0.0, bounds=(-10, 10), max_depth=2),
]


def takes(kind, *names):
    """Return whether the constructor of a class has all these parameters."""
    return set(names) <= set(inspect.signature(kind).parameters)


def defaults(kind):
    """Return instances of a class that is not listed: found and declared bounds, if it has them."""
    return [kind(), kind(bounds=(-10, 10))] if takes(kind, "bounds") else [kind()]


ESTIMATORS = LISTED + [
    estimator
    for kind in _public.ESTIMATORS
    if _public.missing([kind], LISTED)
    for estimator in defaults(kind)
]


def firsts(key, estimators):
    """Return the first estimator for each value of a key."""
    first = {}
    for estimator in estimators:
        first.setdefault(key(estimator), estimator)
    return list(first.values())


FIRST_OF_CLASS = firsts(type, ESTIMATORS)
# Transformers whose fit is the release. Local reports release every row that they transform.
CENTRAL_TRANSFORMERS = [
    kind for kind in _public.TRANSFORMERS if kind is not RandomizedResponseTransformer
]
# Transformers whose columns can have declared bounds.
BOUNDED_TRANSFORMERS = [kind for kind in _public.TRANSFORMERS if takes(kind, "bounds")]


def instance(kind, **params):
    """Return the first listed instance of a class, with those parameters that it takes."""
    first = next(estimator for estimator in FIRST_OF_CLASS if type(estimator) is kind)
    params = {name: value for name, value in params.items() if takes(kind, name)}
    return clone(first).set_params(**params)


def completed(listed, kinds, **params):
    """Return a list of estimators, followed by an instance of each class that has none in it."""
    return [
        *listed,
        *(instance(kind, **params) for kind in kinds if _public.missing([kind], listed)),
    ]
