"""Numbers at the edge: refused before the charge, or everything that comes out is finite."""

import inspect
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn import clone

import skdp.stats
from skdp import (
    DPHistogramTransformer,
    DPLinearRegression,
    DPLogisticRegression,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPSGDClassifier,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
)
from tests._estimators import ESTIMATORS
from tests._public import public_names

pytestmark = [pytest.mark.filterwarnings("ignore::RuntimeWarning")]

HUGE = 10**400
SCALARS = [
    *(5e-324, 1e-300, 1e-150, 1e-100, 1e-50, 1e-20, 1e20, 1e50, 1e100, 1e150, 1e300, 1.7e308),
    *(np.nan, np.inf, -np.inf, 0, 0.0, -0.0, -1, 1, 2, HUGE, -HUGE, True, "1", None, 1j, [1.0]),
    *(np.float16(0.1), np.float16(6e-8), np.float32(1e38), np.longdouble(1) / 3),
    *(Fraction(1, 3), Fraction(HUGE), Decimal("0.5"), Decimal("1e400"), np.array(2.0)),
]
ENDS = [-1.7e308, -1e150, -1.0, 0.0, 5e-324, 1e-150, 1.0, 1e100, 1e150, 1.7e308, np.inf, np.nan]
PAIRS = [
    *((a, b) for a in ENDS for b in ENDS if not b < a),
    *((0, HUGE), (0, Fraction(HUGE)), (Fraction(0), Decimal(1)), (False, True), ("0", "1")),
    *((1e16, 1e16 + 2), (1e150, np.nextafter(1e150, 2e150)), (np.float16(0), np.float16(1))),
    *((1,), (0, 1, 2), (0, np.longdouble(1))),
]
LISTS = [[0.0, value] for value in SCALARS] + [[0, 5e-324, 1.0], [-1.7e308, 0, 1.7e308]]
WEIGHTS = [{0: value} for value in SCALARS] + [{0: 1e-300, 1: 1e300}, {0: 1e50, 1: 1e-50}]
RANGES = {"bounds", "target_bounds", "feature_range", "quantile_range", "range"}
# What holds no number, or is somebody else's object.
OTHERS = {
    *("accountant", "callbacks", "estimator", "public_steps", "scoring", "cv", "random_state"),
    *("param_grid", "param_distributions", "n_jobs", "verbose", "a", "x", "y", "axis", "index"),
    *("columns", "table"),
}
FIRST = list({type(estimator): estimator for estimator in reversed(ESTIMATORS)}.values())[::-1]
STATISTICS = [
    name
    for name in public_names(skdp.stats)
    if "accountant" in inspect.signature(getattr(skdp.stats, name)).parameters
]


def values_of(name):
    more = {"class_weight": WEIGHTS, "bins": LISTS, "q": LISTS, "edges": LISTS}
    return SCALARS + (PAIRS if name in RANGES else more.get(name, []))


def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, size=(60, 3)).astype(float), np.arange(60) % 2


def is_finite(value):
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_finite, value))
    array = np.asarray(value.toarray() if hasattr(value, "toarray") else value)
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())


def outputs(estimator, X):
    """Yield the name and the value of all that a fitted estimator publishes."""
    for name, value in vars(estimator).items():
        # A search's models without a score have none.
        if name.endswith("_") and name not in ("privacy_", "cv_results_"):
            yield name, value
    for name in ("epsilon", "delta", "noise_scale", "sensitivity"):
        yield f"privacy_.{name}", getattr(estimator.privacy_, name)
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(estimator, name):
            yield name, getattr(estimator, name)(X)


def check_estimator(estimator, **params):
    X, y = table()
    accountant = PrivacyAccountant(1e15, 0.9, ledger="memory://")
    estimator = clone(estimator).set_params(accountant=accountant, **params)
    try:
        estimator.fit(X, y)
    except ValueError:
        assert accountant.epsilon_spent == 0.0, params
        return
    infinite = [name for name, value in outputs(estimator, X) if not is_finite(value)]
    assert not infinite, params


def check_statistic(name, **params):
    X, _ = table()
    function, accountant = (
        getattr(skdp.stats, name),
        PrivacyAccountant(1e15, 0.9, ledger="memory://"),
    )
    needed = {"bounds": (0, 1), "q": 0.5, "axis": 0}
    names = inspect.signature(function).parameters
    arguments = {key: value for key, value in needed.items() if key in names} | params
    rows = (X[:, 0], X[:, 1]) if {"y", "index"} & {*names} else (X,)
    if "categories" in names and name != "dp_describe":
        rows = [each.round().reshape(len(X), -1)[:, 0] for each in rows]
        arguments["categories"] = ([0.0, 1.0], [0.0]) if len(rows) == 2 else [0.0, 1.0]
    try:
        released = function(*rows, accountant=accountant, **arguments)
    except ValueError:
        assert accountant.epsilon_spent == 0.0, params
        return
    if name == "dp_describe":
        released = [
            *(released.to_pandas(table).select_dtypes("number") for table in ("columns", "cells")),
            [association.chance for association in released.associations],
        ]
    assert is_finite(released), params


def numbers_of(names, sample=None):
    """Yield names and values; of each name's a sample of some, always the same."""
    rng = np.random.default_rng(0)
    for name in sorted(set(names) - OTHERS):
        values = values_of(name)
        for i in rng.permutation(len(values))[:sample]:
            yield name, values[i]


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("estimator", FIRST, ids=lambda estimator: type(estimator).__name__)
def test_estimators_with_some_numbers(estimator):
    for name, value in numbers_of(estimator.get_params(deep=False), 1):
        check_estimator(estimator, **{name: value})


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_estimators_with_all_numbers(estimator):
    for name, value in numbers_of(estimator.get_params(deep=False)):
        check_estimator(estimator, **{name: value})


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    "sample", [3, pytest.param(None, marks=pytest.mark.slow)], ids=["some", "all"]
)
@pytest.mark.parametrize("statistic", STATISTICS)
def test_statistics(statistic, sample):
    names = inspect.signature(getattr(skdp.stats, statistic)).parameters
    for name, value in numbers_of(names, sample):
        check_statistic(statistic, **{name: value})


PRODUCTS = ("data_norm", "intercept_scaling", "C", "alpha", "epsilon", "max_grad_norm", "eta0")


@pytest.mark.slow
@pytest.mark.parametrize("estimator", FIRST, ids=lambda estimator: type(estimator).__name__)
def test_estimators_with_several_numbers_at_once(estimator):
    """Each is allowed alone; their products are what under- and overflows."""
    rng = np.random.default_rng(0)
    names = [name for name in PRODUCTS if name in estimator.get_params(deep=False)]
    for _ in range(60 if len(names) > 1 else 0):
        chosen = rng.permutation(names)[:3]
        check_estimator(
            estimator,
            **{name: 10.0 ** float(rng.choice([-50, -49, -20, 14, 20, 49, 50])) for name in chosen},
        )


# What was accepted once and then raised another error, ran without end, or was not finite.
@pytest.mark.parametrize(
    ("estimator", "params"),
    [
        (DPLogisticRegression(), {"epsilon": 1.7e308}),
        (DPLogisticRegression(data_norm="auto"), {"epsilon": 1e50}),
        (DPLogisticRegression(mechanism="output"), {"class_weight": {0: 1e150}}),
        (DPLinearRegression(target_bounds=(-1, 1)), {"intercept_scaling": 5e-324}),
        (DPStandardScaler(), {"bounds": (0, HUGE)}),
        (DPMeanTransformer(), {"bounds": (0, HUGE)}),
        (DPSGDClassifier(), {"max_iter": HUGE}),
        (RandomizedResponseTransformer(categories=[0, 1]), {"epsilon": 1e-300}),
        (RandomizedResponseTransformer(), {"categories": np.array(2.0)}),
        (DPHistogramTransformer(encode="density"), {"edges": [0.0, 5e-324]}),
        (DPMinMaxScaler(), {"feature_range": (-1.7e308, 1.7e308)}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_numbers_that_were_let_through(estimator, params):
    X, y = table()
    accountant = PrivacyAccountant(1e15, 0.9, ledger="memory://")
    estimator = clone(estimator).set_params(accountant=accountant, **params)
    with pytest.raises(ValueError):
        estimator.fit(X, y)
    assert accountant.epsilon_spent == 0.0
    assert not [name for name in vars(estimator) if name.endswith("_")]
