"""Warnings of columns of which little was released: free, as they follow from the release."""

import re
import uuid
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import skdp
from skdp import (
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPHistogramNB,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    PrivacyAccountant,
    tabular_pipeline,
)
from skdp.stats import dp_mean

N_ROWS = 400
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"age": RNG.integers(17, 56, N_ROWS), "code": [f"person {i}" for i in range(N_ROWS)]}
)
Y = FRAME["age"] > 30
LITTLE = "released little about some columns"

# Fits of which little is released, and the columns that the warning must name.
FITS = {
    "scaler": (lambda **t: DPStandardScaler(0.01, **t), ["age"], ["age"]),
    "imputer": (lambda **t: DPSimpleImputer(0.01, **t), ["age"], ["age"]),
    "frequent": (
        lambda **t: DPSimpleImputer(0.1, delta=1e-6, strategy="most_frequent", **t),
        ["code"],
        ["code"],
    ),
    "encoder": (lambda **t: DPOneHotEncoder(1.0, delta=1e-6, **t), ["code"], ["code"]),
    "target": (lambda **t: DPTargetEncoder(1.0, delta=1e-6, **t), ["code"], ["code"]),
    "vectorizer": (
        lambda **t: DPTableVectorizer(0.1, delta=1e-6, **t),
        ["age", "code"],
        ["age", "code"],
    ),
    "additive": (
        lambda **t: DPAdditiveClassifier(0.1, delta=1e-6, **t),
        ["age", "code"],
        ["age", "code"],
    ),
    "naive Bayes": (lambda **t: DPHistogramNB(0.1, delta=1e-6, **t), ["code"], ["code"]),
    "forest": (
        lambda **t: skdp.DPRandomForestClassifier(0.1, delta=1e-6, n_estimators=2, **t),
        ["code"],
        ["code"],
    ),
    "pipeline": (
        lambda **t: tabular_pipeline("classifier", epsilon=0.1, delta=1e-6, **t),
        ["age", "code"],
        ["age", "code"],
    ),
}


def said(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in caught if LITTLE in str(w.message)]


@pytest.mark.parametrize("name", FITS)
def test_one_warning_names_all_columns_of_which_little_was_released(name):
    make, columns, named = FITS[name]
    (message,) = said(lambda: make().fit(FRAME[columns], Y))
    assert all(repr(column) in message for column in named)


@pytest.mark.parametrize("name", FITS)
def test_what_was_paid_for_stays_if_the_warning_is_an_error(name):
    make, columns, _ = FITS[name]
    accountant = PrivacyAccountant(10.0, 1e-3)
    model = make(accountant=accountant)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", f".*{LITTLE}")
        with pytest.raises(UserWarning, match=LITTLE):
            model.fit(FRAME[columns], Y)
    fitted = model[0] if hasattr(model, "steps") else model
    assert fitted.privacy_.epsilon > 0 and accountant.epsilon_spent > 0
    answer = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    answer(FRAME[columns])


def test_positions_stand_where_there_are_no_names():
    X = np.column_stack([RNG.random(N_ROWS) < 0.5, FRAME["age"]]).astype(float)
    (message,) = said(lambda: DPStandardScaler(0.01).fit(X))
    assert "columns 0, 1" in message


def test_many_columns_are_counted():
    (message,) = said(lambda: DPStandardScaler(0.01).fit(RNG.random((50, 200))))
    # Each column is found by chance with probability 1e-4, so that one may be missing.
    assert int(re.search(r"and (\d+) more", message)[1]) in range(175, 181)
    assert len(message) < 600


@pytest.mark.thorough
def test_nothing_is_said_of_columns_that_were_found():
    n = 50_000
    X = pd.DataFrame(
        {
            "age": RNG.integers(17, 90, n),
            "share": RNG.random(n),
            "seconds": 1_717_200_000 + RNG.integers(0, 86_400, n),
            "job": RNG.choice(["a", "b"], n),
        }
    )
    y = X["age"] > 40
    numbers = X.drop(columns="job")
    for run in (
        lambda: DPStandardScaler(2.0).fit(numbers),
        lambda: DPTableVectorizer(2.0).fit(X),
        lambda: DPAdditiveClassifier(2.0).fit(X, y),
        lambda: DPOneHotEncoder(2.0, delta=1e-6).fit(X[["job"]]),
        lambda: tabular_pipeline("classifier", epsilon=2.0, delta=1e-6).fit(X, y),
    ):
        assert said(run) == []


@pytest.mark.parametrize(
    "kind", [DPAdditiveClassifier, DPHistogramNB, DPTableVectorizer, skdp.DPDecisionTreeClassifier]
)
def test_bounds_that_are_much_too_wide_are_reported(kind):
    X = pd.DataFrame({"x": RNG.random(20_000), "y": RNG.random(20_000)})
    bounds = {"x": (0, 1e6), "y": (0, 1)}
    model = kind(2.0, delta=1e-6, bounds=bounds)
    (message,) = said(lambda: model.fit(X, X["x"] > 0.5))
    assert "column 'x' are in one bin" in message and "'y'" not in message


def test_bounds_that_noise_leaves_open_are_reported():
    years = RNG.integers(1950, 2025, (1000, 1)).astype(float)
    (message,) = said(lambda: DPStandardScaler(0.4, random_state=0).fit(years))
    assert "The values of column 0 have similar magnitudes" in message


@pytest.mark.parametrize("kind", [DPAdditiveClassifier, DPHistogramNB])
def test_a_column_nearly_all_of_whose_values_are_in_one_bin_is_reported(kind):
    n = 20_000
    rare = RNG.random(n) < 0.04
    X = pd.DataFrame(
        {
            "far": np.where(rare, 1e6, RNG.uniform(20.0, 60.0, n)),
            "flag": rare.astype(float),
            "amount": np.where(rare, RNG.uniform(0, 5000, n), 0.0),
            "age": RNG.uniform(20.0, 60.0, n),
        }
    )
    (message,) = said(lambda: kind(4.0, delta=1e-6).fit(X, X["age"] > 40.0))
    assert "'far'" in message and "in one bin" in message
    assert "'flag'" not in message and "'age'" not in message
    # An amount that is 0 in most rows is what its declared bounds say.
    bounds = {"far": (0, 2e6), "flag": (0, 1), "amount": (0, 5000), "age": (0, 100)}
    assert said(lambda: kind(4.0, delta=1e-6, bounds=bounds).fit(X, X["age"] > 40.0)) == []


FAR = {"all": np.linspace(1e300, 1.7e308, 2000), "codes": np.where(np.arange(2000) % 4, 5.0, -1e40)}


@pytest.mark.parametrize("values", FAR)
@pytest.mark.parametrize(
    "kind", [DPAdditiveClassifier, DPTableVectorizer, DPStandardScaler, skdp.DPTableSynthesizer]
)
def test_values_beyond_the_search_for_bounds_are_reported(kind, values):
    frame = pd.DataFrame({"far": FAR[values], "near": np.linspace(0, 1e20, 2000)})
    with pytest.warns(UserWarning, match="search for bounds ends") as caught:
        kind(5.0, delta=1e-6).fit(frame, np.arange(2000) % 2)
    (message,) = {str(warning.message) for warning in caught if LITTLE in str(warning.message)}
    (line,) = (line for line in message.splitlines() if "search for bounds ends" in line)
    assert "column 'far'" in line and "near" not in line


def test_a_norm_that_was_not_found_is_reported():
    X = RNG.normal(size=(N_ROWS, 2))
    model = DPLogisticRegression(0.01, data_norm="auto")
    (message,) = said(lambda: model.fit(X, X[:, 0] > 0))
    assert "data_norm=1 was used" in message


def test_functions_warn_likewise():
    (message,) = said(lambda: dp_mean(FRAME["age"].to_numpy(), epsilon=0.01))
    assert "dp_mean" in message and "the bounds are a guess" in message


def test_searches_keep_the_warnings_of_their_fits():
    search = DPGridSearchCV(
        DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=0.1, delta=1e-6, cv=2
    )
    assert said(lambda: search.fit(RNG.normal(size=(N_ROWS, 2)), Y)) == []


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("name", ["customer_id", "customerID", "ID", "uuid", "SSN", "user.id"])
def test_columns_whose_names_are_those_of_identifiers_are_reported(name):
    n = 20_000
    frame = pd.DataFrame({name: np.arange(n), "grid": RNG.random(n), "valid": RNG.random(n) < 0.5})
    y = frame["valid"]
    (message,) = said(lambda: DPAdditiveClassifier(2.0).fit(frame, y))
    assert f"Judging by the name, column {name!r} may hold identifiers" in message
    # Bounds do not make numbers of it that mean something.
    bounds = {name: (0, n), "grid": (0, 1)}
    (message,) = said(lambda: DPAdditiveClassifier(2.0, bounds=bounds).fit(frame, y))
    assert f"Judging by the name, column {name!r} may hold identifiers" in message
    # A short list of categories does: it is the place of a shop, say.
    frame[name] = np.arange(n) % 5
    categories = {name: [*range(5)]}
    model = DPAdditiveClassifier(2.0, categories=categories, bounds={"grid": (0, 1)})
    assert said(lambda: model.fit(frame, y)) == []


READERS = {
    "one-hot": DPOneHotEncoder(delta=1e-6),
    "target": skdp.DPTargetEncoder(delta=1e-6),
    "vectorizer": skdp.DPTableVectorizer(delta=1e-6),
    "additive": DPAdditiveClassifier(delta=1e-6),
    "naive Bayes": skdp.DPHistogramNB(delta=1e-6),
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("name", READERS)
def test_as_many_categories_as_rows_are_reported(name, unit):
    """Whether they are declared or found, whatever the column is called, and not of fewer."""
    n = 400
    frame = pd.DataFrame({"customer": [f"c{i}" for i in range(n)], "shop": ["x", "y"] * (n // 2)})
    y = np.arange(n) % 2
    groups = {"groups": np.arange(n) // 2} if unit == "person" else {}
    n_units = n // 2 if groups else n
    few = {"shop": ["x", "y"]}

    def fit(customers, **params):
        own = {"categories": few | {"customer": customers}} | params
        model = clone(READERS[name]).set_params(**own)
        return said(lambda: model.fit(frame, y, **groups))

    (message,) = fit([f"c{i}" for i in range(n_units)])
    assert "nearly as many categories of column 'customer' as rows" in message
    assert fit([f"c{i}" for i in range(n_units - 1)]) == []
    if name != "target":
        # So much epsilon finds values of a few rows.
        frame["customer"] = [f"c{i // 4}" for i in range(n)]
        (message,) = fit("auto", epsilon=200.0, delta=0.1)
        assert "nearly as many categories of column 'customer' as rows" in message
    frame["customer"] = [f"c{i % 4}" for i in range(n)]
    assert fit("auto", epsilon=200.0, delta=0.1) == []


@pytest.mark.parametrize("name", READERS)
def test_a_column_of_a_type_of_identifiers_is_refused_with_this_remedy(name):
    accountant = PrivacyAccountant(10.0, 0.1)
    frame = pd.DataFrame({"key": [uuid.UUID(int=i) for i in range(60)]})
    with pytest.raises(ValueError, match="leave a column of identifiers out"):
        clone(READERS[name]).set_params(accountant=accountant).fit(frame, np.arange(60) % 2)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("declared", [None, {"user_id": (0, 400), "age": (0, 400)}, (0, 400)])
@pytest.mark.parametrize(
    "model",
    [DPStandardScaler(100.0), skdp.DPKMeans(100.0, n_clusters=2), skdp.DPGaussianNB(100.0)],
    ids=lambda model: type(model).__name__,
)
def test_readers_of_numbers_report_names(model, declared):
    n = 400
    frame = pd.DataFrame({"user_id": np.arange(n), "age": np.arange(n) % 90})
    model = clone(model).set_params(bounds="auto" if declared is None else declared)
    messages = said(lambda: model.fit(frame, np.arange(n) % 2))
    assert any(
        "Judging by the name, column 'user_id' may hold identifiers" in each for each in messages
    )
    frame = frame.rename(columns={"user_id": "height"})
    if isinstance(declared, dict):
        model.set_params(bounds={"height": (0, 400), "age": (0, 400)})
    messages = said(lambda: model.fit(frame, np.arange(n) % 2))
    assert not any("identifiers, from" in each for each in messages)


def test_columns_of_as_many_values_as_rows_are_to_be_left_out():
    (message,) = said(lambda: DPOneHotEncoder(1.0, delta=1e-6).fit(FRAME[["code"]]))
    assert "leave out a column whose values are nearly all different" in message


def test_audits_fit_synthetic_tables_and_warn_of_none():
    from skdp.audit import audit_epsilon

    assert said(lambda: audit_epsilon(DPStandardScaler(0.01), n_fits=20, random_state=0)) == []


PADDED = pd.DataFrame({"job": RNG.choice([" a", " b", " c"], 3000), "x": RNG.random(3000)})
JOBS = {"job": ["a", "b", "c"]}
RAW = {"categories": JOBS, "bounds": {"x": (0, 1)}, "delta": 1e-6}
# Estimators that count the rows of declared categories, and the columns that they read.
COUNTING = {
    "encoder": (lambda: DPOneHotEncoder(2.0, categories=JOBS, min_frequency=5), ["job"]),
    "encoder with other": (
        lambda: DPOneHotEncoder(2.0, categories=JOBS, other="rest", min_frequency=5),
        ["job"],
    ),
    "target": (lambda: DPTargetEncoder(2.0, categories=JOBS), ["job"]),
    "imputer": (lambda: DPSimpleImputer(2.0, strategy="most_frequent", categories=JOBS), ["job"]),
    "histogram": (
        lambda: skdp.DPHistogramTransformer(2.0, categories=JOBS, bounds={"x": (0, 1)}),
        ["job", "x"],
    ),
    "vectorizer": (lambda: DPTableVectorizer(2.0, **RAW), ["job", "x"]),
    "additive": (lambda: DPAdditiveClassifier(2.0, **RAW), ["job", "x"]),
    "naive Bayes": (lambda: DPHistogramNB(2.0, **RAW), ["job", "x"]),
    "forest": (lambda: skdp.DPRandomForestClassifier(2.0, n_estimators=2, **RAW), ["job", "x"]),
    "tree": (lambda: skdp.DPDecisionTreeClassifier(2.0, **RAW), ["job", "x"]),
}


@pytest.mark.parametrize("name", COUNTING)
def test_categories_that_no_value_matches_are_reported(name):
    """As where a file has a blank before each word, and the declared list has none."""
    make, columns = COUNTING[name]
    y = PADDED["x"] > 0.5
    (message,) = said(lambda: make().fit(PADDED[columns], y))
    assert "column 'job' is one of the column's categories" in message and "'x'" not in message
    stripped = PADDED.assign(job=PADDED["job"].str.strip())
    assert said(lambda: make().fit(stripped[columns], y)) == []


def test_categories_are_not_reported_where_noise_hides_how_many_match():
    model = DPOneHotEncoder(0.001, categories=JOBS, min_frequency=5)
    assert said(lambda: model.fit(PADDED[["job"]])) == []


# Estimators that read declared bounds, and whether they can tell values in the middle of wide
# bounds from others: a mean is in the middle for both, and so is a median.
BOUNDED = {
    "standard scaler": (DPStandardScaler, {}, True),
    "centering": (DPStandardScaler, {"with_std": False}, False),
    "min-max scaler": (skdp.DPMinMaxScaler, {}, False),
    "robust scaler": (skdp.DPRobustScaler, {}, True),
    "quantile transformer": (skdp.DPQuantileTransformer, {}, True),
    "quantile bins": (skdp.DPKBinsDiscretizer, {"strategy": "quantile"}, True),
    "histogram": (skdp.DPHistogramTransformer, {}, True),
    "means": (skdp.DPMeanTransformer, {}, False),
    "imputed means": (DPSimpleImputer, {}, False),
    "imputed medians": (DPSimpleImputer, {"strategy": "median"}, False),
    "Gaussian naive Bayes": (skdp.DPGaussianNB, {}, True),
    "clusters": (skdp.DPKMeans, {"n_clusters": 2}, True),
}
UNFILLED = "at one end of the bounds, to which values beyond are clipped, or fill only a small part"
N_BOUNDED = 20_000
FILLED = {"score": (0, 100), "gain": (0, 1e5), "flag": (0, 1), "hours": (1, 99)}


def filled_table(n, seed):
    """Return ordinary columns: even, of rare amounts, a flag, and with a frequent value."""
    rng = np.random.default_rng(seed)
    amounts = np.minimum(rng.lognormal(9.5, 1.0, n), 1e5)
    return pd.DataFrame(
        {
            "score": rng.uniform(0, 100, n),
            "gain": np.where(rng.random(n) < 0.08, amounts, 0.0),
            "flag": (rng.random(n) < 0.03).astype(float),
            "hours": np.where(rng.random(n) < 0.5, 40.0, rng.uniform(10, 80, n)),
        }
    )


def fit_bounded(name, values, bounds, unit):
    """Return the warnings of a fit to a column beside one that fills its bounds."""
    kind, params, _ = BOUNDED[name]
    frame = pd.DataFrame({"far": values, "score": RNG.uniform(0, 100, len(values))})
    y = (frame["score"] > 50).astype(int)
    own = {"far": bounds, "score": (0, 100)}
    model = kind(1.0, bounds=own, random_state=0, **params)
    groups = {"groups": np.arange(len(values)) // 2} if unit == "person" else {}
    return said(lambda: model.fit(frame, y, **groups))


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("bounds", [(1.0, 2.5), (70, 90), (16, 1e6)])
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_that_no_value_fills_are_reported(name, bounds, unit):
    """Of values above them, below them, and near one end of bounds that are too wide."""
    if name == "min-max scaler" and bounds == (16, 1e6):
        # Its quantiles are extreme ones: of three the middle one alone is certain.
        bounds = (16, 1e7)
    (message,) = fit_bounded(name, RNG.uniform(20, 60, N_BOUNDED), bounds, unit)
    assert UNFILLED in message and "'far'" in message and "'score'" not in message


@pytest.mark.parametrize("name", [name for name, (*_, tells) in BOUNDED.items() if tells])
def test_bounds_of_which_a_small_part_is_filled_are_reported(name):
    (message,) = fit_bounded(name, RNG.uniform(0.1, 0.3, N_BOUNDED), (-1e4, 1e4), "row")
    assert UNFILLED in message and "'far'" in message and "'score'" not in message


@pytest.mark.parametrize("bounds", [(1.0, 2.5), (70, 90), (0, 1e6), (0, 1)])
def test_equal_bins_that_no_value_fills_are_reported(bounds):
    frame = pd.DataFrame({"far": RNG.uniform(20, 60, N_BOUNDED), "score": RNG.random(N_BOUNDED)})
    for edges in ("uniform", {"far": np.linspace(*bounds, 9), "score": [0, 0.5, 1]}):
        own = {"bounds": {"far": bounds, "score": (0, 1)}} if edges == "uniform" else {}
        model = skdp.DPHistogramTransformer(1.0, edges=edges, random_state=0, **own)
        (message,) = said(lambda model=model: model.fit(frame))
        assert "column 'far' are in one bin" in message


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("name", BOUNDED)
def test_columns_that_fill_their_bounds_are_not_reported(name):
    """For a column above the limits the probability of a warning is at most 0.7 %."""
    kind, params, _ = BOUNDED[name]
    n_reported = 0
    n_columns = 0
    for seed, (n, epsilon) in enumerate([(300, 1.0), (2000, 0.3), (2000, 4.0), (20_000, 1.0)] * 2):
        frame = filled_table(n, seed)
        y = (frame["score"] > 50).astype(int)
        model = kind(epsilon, bounds=FILLED, random_state=seed, **params)
        messages = said(lambda model=model, frame=frame, y=y: model.fit(frame, y))
        n_reported += sum(repr(column) in str(messages) for column in FILLED)
        n_columns += len(FILLED)
    # Two of 32 are reported with a probability of 2 % at most.
    assert n_reported <= 1, (n_reported, n_columns)


def test_functions_report_bounds_that_no_value_fills():
    ages = RNG.uniform(20, 60, N_BOUNDED)
    own = {"epsilon": 1.0, "random_state": 0}
    for function in (dp_mean, skdp.stats.dp_var, skdp.stats.dp_median):
        (message,) = said(lambda function=function: function(ages, bounds=(70, 90), **own))
        assert UNFILLED in message and "column 0" in message
        assert said(lambda function=function: function(ages, bounds=(0, 90), **own)) == []


def columns_of_all_sizes(n, seed):
    """Return ordinary columns, and narrow ones of large numbers, by name."""
    rng = np.random.default_rng(seed)
    columns = {
        "order numbers": 4.5e9 + rng.integers(0, 2000, n),
        "ten minutes": 1.76e9 + rng.uniform(0, 600, n),
        "three hours": 1.76e9 + rng.uniform(0, 10_800, n),
        "large integers": 1e12 + rng.integers(0, 999, n),
        "at the limit of doubles": 1e15 + rng.integers(0, 5, n),
        "orders of a year": 20_240_000 + rng.integers(0, 9000, n),
        "years": rng.integers(1950, 2025, n),
        "prices": np.round(rng.lognormal(3, 0.7, n), 2),
        "flag": rng.random(n) < 0.3,
        "normal": rng.normal(size=n),
        "rare amounts": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
        "ages": rng.integers(17, 90, n),
    }
    return {name: values.astype(float) for name, values in columns.items()}


# Estimators that search bounds.
SEARCHING = {
    "standard scaler": DPStandardScaler,
    "min-max scaler": skdp.DPMinMaxScaler,
    "robust scaler": skdp.DPRobustScaler,
    "quantile transformer": skdp.DPQuantileTransformer,
    "quantile bins": skdp.DPKBinsDiscretizer,
    "histogram": skdp.DPHistogramTransformer,
    "vectorizer": DPTableVectorizer,
    "additive": DPAdditiveClassifier,
}


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("name", SEARCHING)
def test_estimators_report_bounds_that_are_useless(name):
    """Integers at the limit of doubles are lost, with a warning; others are told apart, without."""
    model = SEARCHING[name](2.0, random_state=0)
    options = {"bounds": "auto", "delta": 1e-6, "n_quantiles": 10}
    model.set_params(**{key: options[key] for key in options.keys() & model.get_params().keys()})
    n = 20_000
    columns = columns_of_all_sizes(n, 0)
    y = np.random.default_rng(0).random(n) < 0.5
    (message,) = said(lambda: model.fit(columns["at the limit of doubles"][:, None], y))
    assert "column" in message
    others = np.column_stack([columns[k] for k in ("order numbers", "ten minutes", "years")])
    assert said(lambda: model.set_params(epsilon=6.0).fit(others, y)) == []


@pytest.mark.parametrize("kind", [skdp.DPKBinsDiscretizer, skdp.DPRobustScaler])
def test_quantiles_that_tell_values_apart_are_not_reported(kind):
    """Their grid resolves values within bounds that are ten thousand times as wide."""
    for seed in range(5):
        values = columns_of_all_sizes(2000, seed)["order numbers"][:, None]
        model = kind(1.0, bounds="auto", random_state=seed)
        assert said(lambda m=model, x=values: m.fit(x)) == []
        transformed = model.transform(values)
        if kind is skdp.DPKBinsDiscretizer:
            assert transformed.sum(axis=0).max() < 0.6 * len(values)
        else:
            assert 1.0 < np.quantile(transformed, 0.99) - np.quantile(transformed, 0.01) < 5.0


ONE_LABEL = "are one category"
LABEL_FITS = {
    "additive": lambda: DPAdditiveClassifier(2.0, delta=1e-6),
    "naive Bayes": lambda: DPHistogramNB(2.0, delta=1e-6),
    "tree": lambda: skdp.DPDecisionTreeClassifier(2.0, delta=1e-6),
    "forest": lambda: skdp.DPRandomForestClassifier(2.0, delta=1e-6, n_estimators=2),
    "vectorizer": lambda: DPTableVectorizer(2.0, delta=1e-6),
    "encoder": lambda: DPOneHotEncoder(2.0, delta=1e-6, categories="auto"),
    "declared": lambda: DPOneHotEncoder(2.0, categories=["a", "b"], min_frequency=2),
    "mixed": lambda: DPOneHotEncoder(2.0, delta=1e-6, categories={"c": "auto", "d": ["a", "b"]}),
    "target": lambda: DPTargetEncoder(2.0, delta=1e-6, categories="auto"),
    "bins": lambda: skdp.DPHistogramTransformer(2.0, categories={"c": ["a"], "d": ["a", "b"]}),
}


@pytest.mark.parametrize("name", LABEL_FITS)
def test_a_column_with_one_category_is_reported(name):
    X = pd.DataFrame({"c": ["a"] * 4000, "d": ["a", "b"] * 2000})
    (message,) = said(lambda: LABEL_FITS[name]().fit(X, X["d"] == "b"))
    assert f"column 'c' {ONE_LABEL}" in message and "'d'" not in message


@pytest.mark.parametrize("name", sorted(LABEL_FITS.keys() - {"bins"}))
def test_a_column_with_a_rare_category_is_not_reported(name):
    X = pd.DataFrame({"c": ["a"] * 19 + ["b"], "d": ["a", "b"] * 10})
    X = pd.concat([X] * 1000, ignore_index=True)
    assert said(lambda: LABEL_FITS[name]().fit(X, X["d"] == "b")) == []


@pytest.mark.parametrize(("categories", "value"), [("auto", None), ([["a"]], None), ([["a"]], "b")])
def test_a_column_with_one_encoding_is_reported(categories, value):
    """A target encoder encodes other values by the mean of the categories, here of one."""
    X = pd.DataFrame({"c": ["a", value] * 2000})
    y = np.array([0, 1] * 2000)
    encoder = DPTargetEncoder(2.0, delta=1e-6, categories=categories)
    (message,) = said(lambda: encoder.fit(X, y))
    assert len(np.unique(encoder.transform(X).round(9))) == 1
    assert "column 'c' have the same encoding" in message


def test_several_encodings_are_not_reported():
    X = pd.DataFrame({"c": ["a", None] * 2000, "d": ["a", "b"] * 2000})
    encoder = DPTargetEncoder(2.0, delta=1e-6, categories="auto")
    assert said(lambda: encoder.fit(X, X["d"] == "b")) == []
    encoder = DPTargetEncoder(2.0, categories=[["a", "b"]])
    assert said(lambda: encoder.fit(X[["d"]], X["d"] == "b")) == []


def test_the_most_frequent_value_of_a_constant_column_is_no_finding():
    X = pd.DataFrame({"c": ["a"] * 4000})
    model = DPSimpleImputer(2.0, delta=1e-6, strategy="most_frequent")
    assert said(lambda: model.fit(X)) == []


@pytest.mark.parametrize("name", ["Unnamed: 0", "index", "idx", "row_number", "userid", "Index"])
def test_columns_that_number_the_rows_are_reported(name):
    X = pd.DataFrame({name: np.arange(N_ROWS), "x": RNG.random(N_ROWS)})
    (message,) = said(lambda: DPAdditiveClassifier(20.0).fit(X, Y))
    assert f"Judging by the name, column {name!r}" in message


@pytest.mark.parametrize("name", ["price_index", "indexed", "paid", "unnamed", "grid", "rows"])
def test_similar_names_are_not_reported(name):
    X = pd.DataFrame({name: RNG.random(N_ROWS), "x": RNG.random(N_ROWS)})
    assert said(lambda: DPAdditiveClassifier(20.0).fit(X, Y)) == []
