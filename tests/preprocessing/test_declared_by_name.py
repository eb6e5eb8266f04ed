"""Bounds and categories by the names of columns: one way to write them, everywhere."""

from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline

import skdp
from skdp import PrivacyAccountant
from skdp.pipeline import check_pipeline, planned_charge, split_budget
from skdp.stats import dp_mean

RNG = np.random.default_rng(0)
NUMBERS = pd.DataFrame({"a": RNG.uniform(0, 5, 300), "b": RNG.uniform(1, 10, 300)})
WORDS = pd.DataFrame({"c": RNG.choice(["x", "y"], 300), "d": RNG.choice(["u", "v", "w"], 300)})
Y = RNG.integers(0, 2, 300)
BOUNDS, CATEGORIES = {"b": (1, 10), "a": (0, 5)}, {"d": ["u", "v", "w"], "c": ["x", "y"]}

RANGED = ["MaxAbsScaler", "MinMaxScaler", "QuantileTransformer", "RobustScaler", "StandardScaler"]
RANGED += ["MeanTransformer", "KBinsDiscretizer", "HistogramTransformer", "SimpleImputer"]
MAKERS = {name: (getattr(skdp, "DP" + name), {}, NUMBERS, "bounds") for name in RANGED}
MAKERS["median"] = (skdp.DPSimpleImputer, {"strategy": "median"}, NUMBERS, "bounds")
MAKERS["most frequent"] = (skdp.DPSimpleImputer, {"strategy": "most_frequent"}, WORDS, "categories")
MAKERS["one hot"] = (skdp.DPOneHotEncoder, {"min_frequency": 2}, WORDS, "categories")
MAKERS["target"] = (skdp.DPTargetEncoder, {}, WORDS, "categories")
MAKERS["responses"] = (skdp.RandomizedResponseTransformer, {}, WORDS, "categories")
by_name = pytest.mark.parametrize("name", MAKERS)


def ways(what):
    """Return what is declared as a dict by name, by place, and as lists or arrays."""
    if what == "bounds":
        low, high = np.array([BOUNDS["a"], BOUNDS["b"]]).T
        return BOUNDS, {1: (1, 10), 0: (0, 5)}, (low, high)
    return CATEGORIES, {1: ["u", "v", "w"], 0: ["x", "y"]}, [CATEGORIES["c"], CATEGORIES["d"]]


@pytest.mark.quick_cases(every=3)
@by_name
def test_names_places_and_arrays_declare_the_same(name):
    make, params, X, what = MAKERS[name]
    outputs, prices = [], []
    for declared in ways(what):
        accountant = PrivacyAccountant(epsilon=2.0, delta=0.0)
        terms = {"epsilon": 1.0, "random_state": 0, "accountant": accountant}
        estimator = make(**terms, **params, **{what: declared})
        prices.append(planned_charge(estimator, *X.shape).epsilon)
        output = estimator.fit(X, Y).transform(X)
        outputs.append(output.toarray() if hasattr(output, "toarray") else output)
        assert accountant.epsilon_spent == pytest.approx(prices[-1])
    assert len(set(prices)) == 1 and prices[0] == pytest.approx(1.0)
    assert np.array_equal(outputs[0], outputs[1]) and np.array_equal(outputs[0], outputs[2])


@pytest.mark.quick_cases(cover="values")
@by_name
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d | {"oops": next(iter(d.values()))}, "no column 'oops'"),
        (lambda d: {key: d[key] for key in list(d)[:1]}, "has no entry"),
        (lambda d: d | {next(iter(d)): None}, "has no entry"),
        (lambda d: d | {0: d[list(d)[1]]}, "twice"),
    ],
)
def test_another_column_or_a_blank_is_refused_before_the_charge(name, change, words):
    make, params, X, what = MAKERS[name]
    accountant = PrivacyAccountant(epsilon=2.0, delta=0.0)
    estimator = make(accountant=accountant, **params, **{what: change(ways(what)[0])})
    with pytest.raises(ValueError, match=words):
        estimator.fit(X, Y)
    assert not accountant.charges and not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize("name", [name for name, made in MAKERS.items() if made[3] == "categories"])
@pytest.mark.parametrize("labels", ["xy", "auto", 1])
def test_a_column_declared_by_name_has_a_list_of_categories(name, labels):
    """A word is not the first label of a list for every column; "auto" is to find them."""
    words = "categories must be a list or a vector"
    if labels == "auto":
        words += "|needs delta > 0"
    make, params, X, _ = MAKERS[name]
    accountant = PrivacyAccountant(epsilon=2.0, delta=0.0)
    for declared in ({"c": labels, "d": 2 * labels}, {**CATEGORIES, "c": labels}):
        with pytest.raises(ValueError, match=words):
            make(accountant=accountant, categories=declared, **params).fit(X, Y)
    assert not accountant.charges


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("shape_is_known", [False, True])
def test_a_pipeline_is_planned_by_the_names_of_its_columns(shape_is_known):
    front = make_column_transformer(
        (skdp.DPStandardScaler(bounds=BOUNDS), ["a", "b"]),
        (skdp.DPOneHotEncoder(categories=CATEGORIES, sparse_output=False), ["c", "d"]),
    )
    accountant, size = PrivacyAccountant(epsilon=1.0, delta=1e-6), {}
    if shape_is_known:
        size = {"n_samples": 300, "n_features": 4}
    pipe = make_pipeline(front, skdp.DPLogisticRegression(data_norm=3.0))
    pipe = split_budget(pipe, 1.0, 1e-6, accountant, **size)
    assert check_pipeline(pipe, **size).accepted
    pipe.fit(pd.concat([NUMBERS, WORDS], axis=1), Y)
    assert accountant.epsilon_spent == pytest.approx(1.0)


def test_an_expected_error_is_told_by_the_names_of_columns():
    errors = skdp.DPMeanTransformer(bounds=BOUNDS).expected_error(300)
    places = skdp.DPMeanTransformer(bounds={0: (1, 10), 1: (0, 5)}).expected_error(300)
    assert np.array_equal(errors, places)


AMBIGUOUS = [[(0, 5), (1, 10)], ([0, 5], [1, 10]), ((0, 5), [1, 10])]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("bounds", AMBIGUOUS)
@pytest.mark.parametrize("make", [*(MAKERS[name][0] for name in RANGED), skdp.DPTableVectorizer])
def test_two_pairs_for_two_columns_are_refused_with_the_remedy(make, bounds):
    accountant = PrivacyAccountant(epsilon=2.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"ambiguous.*\{0: \(0, 5\), 1: \(1, 10\)\}"):
        make(bounds=bounds, accountant=accountant).fit(NUMBERS)
    with pytest.raises(ValueError, match="ambiguous"):
        dp_mean(NUMBERS, bounds=bounds, axis=0, accountant=accountant)
    assert not accountant.charges


@pytest.mark.parametrize(
    ("bounds", "n_columns"),
    [
        ((0, 10), 2),
        (([0, 1], 10), 2),
        (np.array([[0, 1], [5, 10]]), 2),
        ((np.array([0, 1]), np.array([5, 10])), 2),
        (([17, 1], [90, 99]), 2),  # (17, 1) is no range
        (([0, 0], [5, 10]), 2),
        (([0, 1, 2], [5, 10, 11]), 3),
    ],
)
def test_what_has_one_meaning_is_read_as_lows_and_highs(bounds, n_columns):
    scaler = skdp.DPStandardScaler(bounds=bounds)
    low, high = (np.broadcast_to(end, (n_columns,)) for end in bounds)
    found_low, found_high = scaler.fit(np.zeros((100, n_columns))).bounds_
    assert np.array_equal(found_low, low) and np.array_equal(found_high, high)


ESTIMATORS = [
    made for made in (getattr(skdp, name) for name in skdp.__all__) if hasattr(made, "get_params")
]
EVERYTHING = [e for e in ESTIMATORS if {"bounds", "categories"} & signature(e).parameters.keys()]


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("make", EVERYTHING)
def test_every_estimator_takes_its_part_of_a_schema_that_was_signed(make, tmp_path):
    skdp.Schema(bounds=BOUNDS, categories=CATEGORIES).save(tmp_path / "schema.json")
    schema = skdp.Schema.load(tmp_path / "schema.json")
    takes = schema.keys() & signature(make).parameters.keys()
    both = len(takes) == 2 and make is not skdp.DPSimpleImputer
    given = {what: schema[what] for what in (takes if both else sorted(takes)[:1])}
    X = pd.concat([NUMBERS, WORDS], axis=1)[sorted(name for own in given.values() for name in own)]
    accountant = PrivacyAccountant(2.0, 1e-5)
    terms = {"accountant": accountant, "target_bounds": (0, 1)}
    terms = {name: terms[name] for name in terms.keys() & signature(make).parameters.keys()}
    assert hasattr(make(**given, **terms).fit(X, Y), "privacy_")
    spent = accountant.epsilon_spent
    for what in given:
        with pytest.raises(ValueError, match=f"{what}: X has no column 'oops'"):
            make(**given | {what: {"oops": None, **given[what]}}, **terms).fit(X, Y)
    assert accountant.epsilon_spent == spent


def test_what_declares_columns_is_all_here():
    assert len(EVERYTHING) >= 15
