"""Values that parameters of private estimators must refuse, by the kind of the parameter."""

import math

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import SplineTransformer

from skdp.cluster import DPKMeans
from skdp.decomposition import DPPCA
from skdp.gam import DPAdditiveClassifier
from skdp.preprocessing import (
    DPHistogramTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPStandardScaler,
    DPTargetEncoder,
)

# Values that no parameter of a kind accepts, whatever the table is.
BOOLEAN = ("yes", 2)
CHOICE = ("no such choice", 7.5)
COUNT = (0, -1, 1.5, "many")
COUNT_OR_AUTO = (-1, 1.5, "many")
POSITIVE = (-1.0, math.nan, "much")
RANGE = ((1.0, 0.0), (0.0,), (math.nan, 1.0), "wide")
FRACTION = (-0.5, 1.5, "half")

#: By kind: the parameters of that kind, and the values that they must refuse.
WRONG_VALUES = {
    "boolean": (
        (
            "add_indicator average clip fit_intercept sparse_output unit_norm "
            "with_centering with_mean with_scaling with_std"
        ).split(),
        BOOLEAN,
    ),
    "choice": (
        (
            "count encode learning_rate loss mechanism numbers optimizer output_distribution "
            "penalty sampling strategy"
        ).split(),
        CHOICE,
    ),
    "count": (["max_iter", "n_clusters", "n_components", "n_estimators", "n_quantiles"], COUNT),
    "count or 'auto'": (["batch_size", "max_depth", "n_bins"], COUNT_OR_AUTO),
    "positive number": (
        ["C", "alpha", "eta0", "intercept_scaling", "max_grad_norm", "smooth", "huber_threshold"],
        POSITIVE,
    ),
    "norm": (["data_norm"], (0.0, *POSITIVE)),
    "fraction": (["edges_fraction", "momentum"], FRACTION),
    "quantile": (["quantile"], (-1.0, 101.0, "half")),
    "range": (["bounds", "feature_range", "target_bounds"], RANGE),
    "range of quantiles": (["quantile_range"], ((75.0, 25.0), (-1.0, 50.0), "wide")),
    "required range of the target": (["target_bounds"], (None,)),
    "categories": (["categories"], ([], [["a", "a"]] * 2, 3)),
    "classes": (["classes"], ([0], [0, 0], 3)),
    "weights of classes": (["class_weight"], ({"no such class": 1.0}, {0: -1.0, 1: 1.0}, 3)),
    "directions of columns": (["monotonic_cst"], ([2, 0], {0: 2}, {10**6: 1}, "up")),
    "pairs of columns": (["interactions"], ([(0, 0)], [(0, 10**6)], "no such choice", -1)),
    "probabilities of classes": (["priors"], ([0.5, 0.6], [1.5, -0.5], "even")),
}


def wrong_values(estimator):
    """Yield each parameter of an estimator that is of a known kind, with values it must refuse.

    Parameters
    ----------
    estimator : estimator
        Unfitted.

    Yields
    ------
    name : str
        A parameter of the estimator.
    value : object
        A value that a fit must refuse by a `ValueError` before its charge.

    Examples
    --------
    >>> from skdp import DPStandardScaler
    >>> from skdp.testing import wrong_values
    >>> sorted({name for name, value in wrong_values(DPStandardScaler())})
    ['bounds', 'with_mean', 'with_std']
    """
    params = estimator.get_params(deep=False)
    for names, values in WRONG_VALUES.values():
        for name in names:
            if name in params:
                # A transformer that has no range of targets may read labels.
                accepted = name == "target_bounds" and not hasattr(estimator, "predict")
                yield from ((name, v) for v in values if v is not None or not accepted)


def wrong_widths(n_columns):
    """Yield steps whose parameters fit no table of some number of columns of numbers.

    Parameters
    ----------
    n_columns : int
        At least 2.

    Yields
    ------
    step : estimator
        Unfitted.
    parameter : str
        The parameter that a fit must refuse by a `ValueError` before the charge.

    Examples
    --------
    >>> from skdp.testing import wrong_widths
    >>> step, parameter = next(iter(wrong_widths(3)))
    >>> step, parameter
    (DPStandardScaler(bounds=([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])), 'bounds')
    """
    n_others = n_columns + 1
    beyond = {n_columns: (0.0, 1.0)}
    yield DPStandardScaler(bounds=([0.0] * n_others, [1.0] * n_others)), "bounds"
    yield DPMinMaxScaler(bounds={j: (0.0, 1.0) for j in range(n_columns - 1)}), "bounds"
    yield DPKMeans(n_clusters=2, bounds=beyond), "bounds"
    yield DPPCA(n_components=n_others), "n_components"
    yield DPPCA(center=[0.0] * n_others), "center"
    yield DPOneHotEncoder(categories=[[0.0, 1.0]] * n_others), "categories"
    yield DPTargetEncoder(categories={n_columns: [0.0, 1.0]}), "categories"
    yield DPHistogramTransformer(bounds=(0, 1), interactions=[(0, n_columns)]), "interactions"
    yield DPHistogramTransformer(edges=[[0.0, 1.0, 2.0]] * n_others), "edges"
    yield DPAdditiveClassifier(monotonic_cst=[1] * n_others), "monotonic_cst"
    yield DPAdditiveClassifier(interactions=[(0, n_columns)]), "interactions"
    yield DPAdditiveClassifier(bounds=beyond), "bounds"
    yield ColumnTransformer([("part", DPStandardScaler(bounds=(0, 1)), [n_columns])]), "columns"
    yield SplineTransformer(knots=np.linspace(0, 1, 4)[:, None].repeat(n_others, 1)), "knots"
