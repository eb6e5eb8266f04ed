"""Parameters that are arrays of numbers: what is not a number costs nothing and is named."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skdp
from skdp import PrivacyAccountant, metrics, stats
from skdp.model_selection import dp_learning_curve
from skdp.planning import required_samples

ROWS = np.random.default_rng(0).random((60, 2))
Y = ROWS[:, 0] > ROWS[:, 1]
NAIVE_BAYES = skdp.DPGaussianNB(bounds=(0, 1))


def fit(name, parameter, target=False, **declared):
    """Return a function of an accountant and a value that fits an estimator with the value."""

    def fit_with(accountant, value):
        model = getattr(skdp, name)(accountant=accountant, **declared | {parameter: value})
        return model.fit(ROWS, Y) if target else model.fit(ROWS)

    return fit_with


def release(function, parameter, *data):
    """Return a function of an accountant and a value that calls a function of `skdp.stats`."""

    def release_with(accountant, value):
        return function(*data, accountant=accountant, **{parameter: value})

    return release_with


def learning_curve(accountant, value):
    return dp_learning_curve(
        NAIVE_BAYES, ROWS, Y, train_sizes=value, cv=2, scoring="accuracy", accountant=accountant
    )


def tuned_threshold(accountant, value):
    return skdp.DPTunedThresholdClassifierCV(
        NAIVE_BAYES, thresholds=value, accountant=accountant
    ).fit(ROWS, Y)


def quantiles(accountant, value):
    return stats.dp_quantile(ROWS[:, 0], value, bounds=(0, 1), accountant=accountant)


#: Parameter, and a function that uses it, of parameters that are two increasing numbers.
PARAMETERS = [
    ("bounds", fit("DPStandardScaler", "bounds")),
    ("bounds", fit("DPKMeans", "bounds")),
    ("bounds", fit("DPGaussianNB", "bounds", target=True)),
    ("bounds", fit("DPAdditiveClassifier", "bounds", target=True, delta=1e-6)),
    ("priors", fit("DPGaussianNB", "priors", target=True, bounds=(0, 1))),
    ("center", fit("DPPCA", "center", n_components=1, data_norm=2.0)),
    ("quantile_range", fit("DPRobustScaler", "quantile_range")),
    ("edges", fit("DPHistogramTransformer", "edges")),
    ("bounds", release(stats.dp_mean, "bounds", ROWS[:, 0])),
    ("bounds", release(stats.dp_covariance, "bounds", ROWS)),
    ("bins", release(stats.dp_histogram, "bins", ROWS[:, 0])),
    ("range", release(stats.dp_histogram, "range", ROWS[:, 0])),
    ("range", release(stats.dp_histogramdd, "range", ROWS[:, :1])),
    ("q", quantiles),
    ("train_sizes", learning_curve),
    ("thresholds", tuned_threshold),
]
#: Pairs that NumPy would read as numbers, although they are none or hide them.
WRONG_PAIRS = {
    "masked": np.ma.array([0.25, 0.75], mask=[True, False]),
    "a masked cell": [np.ma.masked, 0.75],
    "words": ("0.25", "0.75"),
    "array of words": np.array(["0.25", "0.75"]),
    "objects": np.array(["0.25", 0.75], dtype=object),
    "booleans": (False, True),
    "a boolean": [False, 0.75],
    "array of booleans": np.array([False, True]),
    "complex": np.array([0.25 + 1j, 0.75 + 1j]),
    "dates": np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"),
    "durations": np.array([0, 1], dtype="m8[D]"),
    "days": (datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)),
    "missing": (None, 0.75),
    "NA": pd.array([pd.NA, 0.75], dtype="Float64"),
    "ragged": [[0.25, 0.75], [0.5]],
}


@pytest.mark.parametrize("kind", WRONG_PAIRS)
@pytest.mark.parametrize(("name", "use"), PARAMETERS)
def test_what_is_no_number_costs_nothing_and_is_named(name, use, kind):
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=rf"\b{name}\b"):
        use(accountant, WRONG_PAIRS[kind])
    assert not accountant.charges


@pytest.mark.parametrize(
    "pair",
    [
        [0.25, 1],
        np.array([0.25, 1], dtype=object),
        np.array([0.25, 1], dtype=np.float32),
        pd.Series([0.25, 1.0], index=[5, 6]),
        pa.array([0.25, 1.0]),
        np.ma.array([0.25, 1.0]),
    ],
    ids=["list", "objects", "float32", "series", "arrow", "nothing masked"],
)
@pytest.mark.parametrize(
    "use", [use for name, use in PARAMETERS if name in ("bounds", "bins", "edges", "q")]
)
def test_arrays_of_numbers_of_other_libraries_are_read(use, pair):
    accountant = PrivacyAccountant(10.0, 1e-3)
    use(accountant, pair)
    assert accountant.charges


@pytest.mark.parametrize(
    "classes",
    [np.ma.array([False, True], mask=[True, False]), [[False], [True, False]], [False, [True]]],
    ids=["masked", "ragged", "nested"],
)
def test_classes_that_are_no_flat_list_cost_nothing(classes):
    accountant = PrivacyAccountant(10.0, 1e-3)
    for name in ("DPGaussianNB", "DPAdditiveClassifier", "DPLogisticRegression"):
        params = {"classes": classes, "accountant": accountant}
        if name == "DPGaussianNB":
            params["bounds"] = (0, 1)
        with pytest.raises(ValueError, match="classes must be a flat list"):
            getattr(skdp, name)(**params).fit(ROWS, Y)
    with pytest.raises(ValueError, match="classes must be a flat list"):
        metrics.dp_accuracy_score(Y, Y, classes=classes, accountant=accountant)
    assert not accountant.charges


@pytest.mark.parametrize("error", ["0.1", [True], np.ma.masked, 1j, -1.0, 10**400])
def test_a_target_that_is_no_number_is_named(error):
    with pytest.raises(ValueError, match="error must be positive and finite"):
        required_samples("mean", error=error)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("DPLogisticRegression", "epsilon"),
        ("DPLogisticRegression", "C"),
        ("DPDecisionTreeClassifier", "max_depth"),
    ],
)
@pytest.mark.parametrize("unit", ["ns", "D"])
def test_a_duration_is_no_number(name, parameter, unit):
    accountant = PrivacyAccountant(10.0, 1e-3)
    use = fit(name, parameter, target=True)
    with pytest.raises(ValueError, match=parameter):
        use(accountant, np.timedelta64(3, unit))
    assert not accountant.charges
