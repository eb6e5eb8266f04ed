"""Invalid values of the parameters of private estimators, by the type of the parameter."""

import math
from collections.abc import Iterator

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import SplineTransformer

from skdp.cluster import DPKMeans
from skdp.decomposition import DPPCA
from skdp.gam import DPAdditiveClassifier
from skdp.ledger import PrivacyAccountant
from skdp.preprocessing import (
    DPHistogramTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPStandardScaler,
    DPTargetEncoder,
)

# Values that are invalid for all tables.
BOOLEAN = ("yes", 2, np.array([True, False]))
CHOICE = ("no such choice", 7.5, np.array(["auto", "none"]))
COUNT = (0, -1, 1.5, "many")
COUNT_OR_AUTO = (-1, 1.5, "many")
POSITIVE = (-1.0, math.nan, "much")
RANGE = ((1.0, 0.0), (0.0,), (math.nan, 1.0), (0.0, 1.0 + 2.0j), {0.0, 1.0}, b"ab", "01", "wide")
FRACTION = (-0.5, 1.5, "half")
FOLDS: tuple[object, ...] = (
    [([0], [10**9])],
    [([0, 1], [1, 2])],
    [([0, 0], [1])],
    [([0], [])],
    [([0.0], [1.0])],
    [([0], [1], [2])],
    {"fold": (0, 1)},
)
SEED = (-1, 1.5, "secret")

#: Mapping from a parameter's type to the names of such parameters and the values they must refuse.
WRONG_VALUES = {
    "epsilon": (["epsilon"], (0.0, *POSITIVE)),
    "delta": (["delta"], (-0.1, 1.0, math.nan, "small")),
    "accountant": (["accountant"], (3.0, "mine", PrivacyAccountant)),
    "seed": (["random_state", "sampling_seed", "structure_seed"], SEED),
    "verbosity": (["verbose"], (-1, 1.5, "loud")),
    "boolean": (
        (
            "add_indicator average clip fit_intercept refit sparse_output standard_errors "
            "store_cv_results unit_norm with_centering with_mean with_scaling with_std"
        ).split(),
        BOOLEAN,
    ),
    "choice": (
        (
            "count encode learning_rate loss mechanism method numeric optimizer "
            "output_distribution partial_fit_rows penalty response_method sampling selection "
            "strategy"
        ).split(),
        CHOICE,
    ),
    "count": (
        ("max_iter mean_runs n_clusters n_components n_estimators n_iter n_quantiles").split(),
        COUNT,
    ),
    "column": (["target"], (7.5, "no such column")),
    "tables of columns": (["workload"], (3, "pairs", [(0,)], [("no such column", 0)])),
    "dict of columns": (["decimals", "forbidden", "same_as"], (3, "some", {"no such column": 1})),
    "number of folds": (["cv"], (1, *COUNT)),
    "folds": (["cv"], FOLDS),
    "number of jobs": (["n_jobs"], (0, 1.5, "many")),
    "number of rows": (["min_frequency"], (-1, math.nan, "much")),
    "count or 'auto'": (["batch_size", "max_depth", "n_bins"], COUNT_OR_AUTO),
    "positive number": (
        ["C", "alpha", "eta0", "intercept_scaling", "max_grad_norm", "smooth", "huber_threshold"],
        POSITIVE,
    ),
    "number of at least 0": (["power_t"], POSITIVE),
    "norm": (["data_norm", "projection_radius"], (0.0, *POSITIVE)),
    # A center whose length differs from the table's width is one of `wrong_widths`.
    "center": (
        ["center"],
        ([math.nan], [[0.0], [0.0]], "middle", "0.5", True, np.datetime64("2020"), np.ma.masked),
    ),
    "edges": (["edges"], ([3.0, 2.0, 1.0], [[1.0]], [math.nan, 1.0], "wide")),
    "label": (["fill_value"], ([1, 2], {"a": 1}, math.nan)),
    "thresholds": (["thresholds"], ([], [math.nan], 100, True, [True], "many")),
    "scorer": (["scoring"], (3, "no such score")),
    "estimator": (["estimator"], (None, 3, "model")),
    "grid": (["param_grid", "param_distributions"], (3, "C", {0: [1.0]})),
    "names of steps": (["public_steps"], (3, "x", ["no such step"], [None], (0,))),
    "fraction": (["edges_fraction", "momentum"], FRACTION),
    "quantile": (["quantile"], (-1.0, 101.0, "half")),
    "range": (["bounds", "feature_range", "target_bounds"], RANGE),
    "range of quantiles": (["quantile_range"], ((75.0, 25.0), (-1.0, 50.0), "wide")),
    "range of a target without columns": (["target_bounds"], ({0: 0.0, 1: 1.0},)),
    "required range of the target": (["target_bounds"], (None,)),
    "categories": (["categories"], ([], [["a", "a"]] * 2, 3)),
    "classes": (["classes"], ([0], [0, 0], [None, None], 3)),
    "weights of classes": (["class_weight"], ({"no such class": 1.0}, {0: -1.0, 1: 1.0}, 3)),
    "directions of columns": (["monotonic_cst"], ([2, 0], {0: 2}, {10**6: 1}, "up")),
    "pairs of columns": (
        ["interactions"],
        ([(0, 0)], [(0, 10**6)], np.array([0, 1]), "no such choice", -1),
    ),
    "probabilities of classes": (["priors"], ([0.5, 0.6], [1.5, -0.5], "even")),
}


def wrong_values(estimator: BaseEstimator) -> Iterator[tuple[str, object]]:
    """Yield parameters of an estimator whose type is known, with values that they must refuse.

    Parameters
    ----------
    estimator : estimator
        Unfitted estimator.

    Yields
    ------
    name : str
        Parameter of the estimator.
    value : object
        Value for which a fit must raise `ValueError` before its charge.

    Examples
    --------
    >>> from skdp import DPStandardScaler
    >>> from skdp.testing import wrong_values
    >>> sorted({name for name, value in wrong_values(DPStandardScaler())})
    ['accountant', 'bounds', 'delta', 'epsilon', 'random_state', 'with_mean', 'with_std']
    """
    params = estimator.get_params(deep=False)
    for names, values in WRONG_VALUES.values():
        for name in names:
            if name in params:
                # A transformer without target_bounds expects labels.
                accepts_none = name == "target_bounds" and not hasattr(estimator, "predict")
                for value in values:
                    if value is not None or not accepts_none:
                        yield name, value


def wrong_widths(n_columns: int) -> Iterator[tuple[BaseEstimator, str]]:
    """Yield steps whose parameters do not fit a table of this number of numeric columns.

    Parameters
    ----------
    n_columns : int
        Number of columns, at least 2.

    Yields
    ------
    step : estimator
        Unfitted estimator.
    parameter : str
        Parameter for which a fit must raise `ValueError` before the charge.

    Examples
    --------
    >>> from skdp.testing import wrong_widths
    >>> step, parameter = next(iter(wrong_widths(3)))
    >>> step, parameter
    (DPStandardScaler(bounds=([0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0])), 'bounds')
    """
    n_others = n_columns + 1
    bounds = {n_columns: (0.0, 1.0)}
    yield DPStandardScaler(bounds=([0.0] * n_others, [1.0] * n_others)), "bounds"
    yield DPMinMaxScaler(bounds={j: (0.0, 1.0) for j in range(n_columns - 1)}), "bounds"
    yield DPKMeans(n_clusters=2, bounds=bounds), "bounds"
    yield DPPCA(n_components=n_others), "n_components"
    yield DPPCA(center=[0.0] * n_others), "center"
    yield DPOneHotEncoder(categories=[[0.0, 1.0]] * n_others), "categories"
    yield DPTargetEncoder(categories={n_columns: [0.0, 1.0]}), "categories"
    yield DPHistogramTransformer(bounds=(0, 1), interactions=[(0, n_columns)]), "interactions"
    yield DPHistogramTransformer(edges=[[0.0, 1.0, 2.0]] * n_others), "edges"
    yield DPAdditiveClassifier(monotonic_cst=[1] * n_others), "monotonic_cst"
    yield DPAdditiveClassifier(interactions=[(0, n_columns)]), "interactions"
    yield DPAdditiveClassifier(bounds=bounds), "bounds"
    yield ColumnTransformer([("part", DPStandardScaler(bounds=(0, 1)), [n_columns])]), "columns"
    yield SplineTransformer(knots=np.linspace(0, 1, 4)[:, None].repeat(n_others, 1)), "knots"
