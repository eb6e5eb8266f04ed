"""The word "auto" for one column, beside bounds and categories that are declared for others."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skdp
from skdp import PrivacyAccountant
from skdp.accounting import Guarantee, Neighbors
from skdp.base import TableShape
from tests._estimators import BOUNDED_TRANSFORMERS

N_ROWS = 4000
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(17, 90, N_ROWS),
        "income": RNG.lognormal(3, 0.5, N_ROWS).round(2),
        "years": RNG.integers(0, 12, N_ROWS),
    }
)
WORDS = pd.DataFrame(
    {
        "job": RNG.choice(["care", "law", "crafts"], N_ROWS),
        "region": RNG.choice(["north", "south"], N_ROWS),
        "grade": RNG.integers(1, 4, N_ROWS),
    }
)
Y = FRAME["age"] > 40
BOUNDS = {"age": (17, 90), "income": "auto", "years": (0, 12)}
CATEGORIES = {"job": "auto", "region": ["north", "south", "west"], "grade": "auto"}

BOUNDED = {kind.__name__: {} for kind in BOUNDED_TRANSFORMERS} | {
    "DPSimpleImputer of medians": {"strategy": "median"},
    "DPGaussianNB": {},
    "DPKMeans": {"n_clusters": 2},
    "DPAdditiveClassifier": {},
    "DPHistogramNB": {},
    "DPRandomForestClassifier": {"n_estimators": 2},
}
CATEGORICAL = {
    "DPOneHotEncoder": {},
    "DPOneHotEncoder with counts": {"min_frequency": 5},
    "DPTargetEncoder": {},
    "DPSimpleImputer": {"strategy": "most_frequent"},
    "DPTableVectorizer": {},
    "DPAdditiveClassifier": {},
    "DPHistogramNB": {},
}


def make(name, params, **terms):
    kind = getattr(skdp, name.split()[0])
    if "delta" in kind().get_params():
        terms = {"delta": 1e-6} | terms
    return kind(4.0, **params, **terms)


def frames(frame):
    return {
        "pandas": frame,
        "polars": pl.DataFrame(frame.to_dict("list")),
        "arrow": pa.table(frame.to_dict("list")),
    }


@pytest.mark.quick_cases(every=16)
@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_of_one_column_are_found(name):
    released = []
    for form, table in frames(FRAME).items():
        accountant = PrivacyAccountant(4.0, 1e-6)
        terms = {"bounds": BOUNDS, "random_state": 0, "accountant": accountant}
        fitted = make(name, BOUNDED[name], **terms).fit(table, Y)
        assert len(accountant.charges) == 1 and accountant.epsilon_spent <= 4.0
        if hasattr(fitted, "bounds_"):
            low, high = fitted.bounds_
            assert (low[0], high[0], low[2], high[2]) == (17, 90, 0, 12), form
            assert 1 < high[1] <= 512
            released.append((low[1], high[1]))
    assert len(set(released)) <= 1


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", BOUNDED)
def test_all_auto_is_auto(name):
    every = dict.fromkeys(FRAME.columns, "auto")
    if name == "DPKBinsDiscretizer":
        BOUNDED[name]["strategy"] = "uniform"
    one, two = (
        make(name, BOUNDED[name], bounds=bounds, random_state=0).fit(FRAME, Y)
        for bounds in (every, "auto")
    )
    answer = "transform" if hasattr(one, "transform") else "predict"
    first, second = (getattr(model, answer)(FRAME) for model in (one, two))
    if hasattr(first, "toarray"):
        first, second = first.toarray(), second.toarray()
    np.testing.assert_array_equal(first, second)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", CATEGORICAL)
def test_categories_of_one_column_are_found(name):
    answers = []
    for table in frames(WORDS).values():
        accountant = PrivacyAccountant(4.0, 1e-6)
        terms = {"categories": CATEGORIES, "random_state": 0, "accountant": accountant}
        fitted = make(name, CATEGORICAL[name], **terms).fit(table, Y)
        assert len(accountant.charges) == 1 and accountant.epsilon_spent <= 4.0
        if hasattr(fitted, "categories_"):
            found = [own.tolist() for own in fitted.categories_]
            assert found == [["care", "crafts", "law"], ["north", "south", "west"], [1, 2, 3]]
        if hasattr(fitted, "statistics_"):
            assert fitted.statistics_[0] in ("care", "law", "crafts")
            assert [len(own) for own in fitted.counts_] == [3, 3, 3]
        answer = fitted.transform if hasattr(fitted, "transform") else fitted.predict
        answers.append(answer(table))
    answers = [a.toarray() if hasattr(a, "toarray") else np.asarray(a) for a in answers]
    assert all(np.array_equal(answers[0], other) for other in answers[1:])


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPOneHotEncoder with counts"])
def test_counts_of_declared_and_found_categories_have_the_same_noise(name):
    encoder = make(name, CATEGORICAL[name], categories=CATEGORIES).fit(WORDS)
    exact = WORDS["job"].value_counts().sort_index().to_numpy()
    np.testing.assert_allclose(encoder.counts_[0], exact, atol=60)
    if CATEGORICAL[name]:
        exact = [*WORDS["region"].value_counts().sort_index(), 0]
        np.testing.assert_allclose(encoder.counts_[1], exact, atol=60)
        assert encoder.infrequent_categories_[1].tolist() in ([], ["west"])
    else:
        # Nothing was counted where categories are declared.
        assert encoder.counts_[1] is None


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity_of_mixed_categories(relation, monkeypatch):
    from skdp.mechanisms import GeometricMechanism

    guarantee = Guarantee(epsilon=1.0, delta=1e-6, neighbors=Neighbors(relation=relation))
    encoder = make("DPOneHotEncoder", {"min_frequency": 1}, categories=["auto", ["a", "b"], "auto"])
    plan = encoder.plan_fit(TableShape(n_rows=3, n_columns=3), guarantee)
    mechanism, released = plan.mechanism.threshold, []
    assert mechanism.sensitivity == 3 * (1 if relation == "add_remove" else 2)
    # The noise is left out, and what is seen is all counts of one table, by their labels.
    monkeypatch.setattr(
        GeometricMechanism, "release", lambda self, values, **kw: np.asarray(values)
    )
    monkeypatch.setattr(type(mechanism), "threshold", property(lambda self: 1))
    others = np.array([["z", "a", "x"], ["y", "b", "x"]], dtype=object)
    rows = [np.array([row], dtype=object) for row in itertools.product("zy", "abq", "xw")]
    for row in rows:
        read = encoder._read(np.vstack([others, row]))
        categories, counts = plan.mechanism.run(read, None)
        pairs = zip(categories, counts, strict=True)
        released.append(
            {
                (j, label): count
                for j, (labels, own) in enumerate(pairs)
                for label, count in zip(labels.tolist(), own.tolist(), strict=True)
            }
        )

    def distance(one, two):
        return sum(abs(one.get(key, 0) - two.get(key, 0)) for key in one.keys() | two.keys())

    read = encoder._read(others)
    without = plan.mechanism.run(read, None)
    base = {
        (j, label): count
        for j, (labels, own) in enumerate(zip(*without, strict=True))
        for label, count in zip(labels.tolist(), own.tolist(), strict=True)
    }
    moves = (
        [distance(base, one) for one in released]
        if relation == "add_remove"
        else [distance(one, two) for one, two in itertools.combinations(released, 2)]
    )
    assert max(moves) == mechanism.sensitivity


def test_a_person_counts_one_value_of_a_declared_column_too():
    person = np.repeat(np.arange(400), 10)
    accountant = PrivacyAccountant(4.0, 1e-6, unit="person")
    encoder = make(
        "DPOneHotEncoder", {"min_frequency": 1}, categories=CATEGORIES, accountant=accountant
    ).fit(WORDS, groups=person)
    assert encoder.counts_[1].sum() == pytest.approx(400, abs=40)
    assert encoder.counts_[0].sum() == pytest.approx(400, abs=40)


@pytest.mark.parametrize("name", ["DPAdditiveClassifier", "DPTableVectorizer"])
def test_errors_of_raw_tables_name_all_columns_at_once(name):
    accountant = PrivacyAccountant(4.0, 1e-6)
    bounds = {"age": (90, 17), "income": "auto", "years": (3, 3)}
    with pytest.raises(ValueError, match=r"(?s)'age'.*'years'"):
        make(name, {}, bounds=bounds, accountant=accountant).fit(FRAME, Y)
    categories = {"job": ["a", "a"], "region": "north", "grade": "auto"}
    with pytest.raises(ValueError, match=r"(?s)'job'.*'region'"):
        make(name, {}, categories=categories, accountant=accountant).fit(WORDS, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPTargetEncoder"])
def test_errors_of_encoders_name_all_columns_at_once(name):
    accountant = PrivacyAccountant(4.0, 1e-6)
    for last in ("auto", [1, 2, 3]):
        categories = {"job": ["a", "a"], "region": ["b", "b"], "grade": last}
        with pytest.raises(ValueError, match=r"(?s)'job'.*'region'"):
            make(name, {}, categories=categories, accountant=accountant).fit(WORDS, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("name", ["DPStandardScaler", "DPHistogramTransformer"])
def test_errors_name_all_columns_at_once(name):
    accountant = PrivacyAccountant(4.0, 1e-6)
    bounds = {"age": (90, 17), "income": "auto", "years": (3, 3)}
    with pytest.raises(ValueError, match=r"(?s)'age'.*'years'"):
        make(name, {}, bounds=bounds, accountant=accountant).fit(FRAME)
    with pytest.raises(ValueError, match=r"no entry for the columns \['age', 'years'\]"):
        make(name, {}, bounds={"income": "auto"}, accountant=accountant).fit(FRAME)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("name", ["DPOneHotEncoder", "DPTargetEncoder"])
def test_discovery_of_one_column_needs_delta(name):
    with pytest.raises(ValueError, match="needs delta > 0"):
        make(name, {}, categories=CATEGORIES, delta=0.0).fit(WORDS, Y)


@pytest.mark.parametrize("word", ["Auto", "AUTO", "found", ""])
def test_another_word_is_refused_with_the_word_that_is_meant(word):
    accountant = PrivacyAccountant(9.0, 0.1)
    X = pd.DataFrame({"c": ["a", "b"] * 50, "x": np.linspace(0.0, 1.0, 100)})
    for model, columns in (
        (skdp.DPStandardScaler(bounds=word), ["x"]),
        (skdp.DPStandardScaler(bounds={"x": word}), ["x"]),
        (skdp.DPOneHotEncoder(delta=1e-6, categories=word), ["c"]),
    ):
        with pytest.raises(ValueError, match='"auto"'):
            model.set_params(accountant=accountant).fit(X[columns])
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_encoders_say_what_reads_dates(unit):
    X = pd.DataFrame({"day": np.datetime64("2024-01-01") + np.arange(100) % 3})
    X = X.astype(f"datetime64[{unit}]")
    accountant = PrivacyAccountant(9.0, 0.1)
    encoder = skdp.DPOneHotEncoder(delta=1e-6, categories="auto", accountant=accountant)
    with pytest.raises(ValueError, match="DPTableVectorizer and the models of raw tables"):
        encoder.fit(X)
    assert accountant.epsilon_spent == 0.0
