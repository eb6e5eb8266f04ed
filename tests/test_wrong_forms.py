"""Values of an unusual form are refused before the first charge, with the parameter's name."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline

import skdp
from skdp import PrivacyAccountant
from skdp.pipeline import split_budget

N = 40
X = pd.DataFrame({"a": np.linspace(0, 1, N), "b": np.linspace(1, 0, N), "word": ["x", "y"] * 20})
NUMBERS = X[["a", "b"]]
Y = np.arange(N) % 2
TARGETS = {
    "infinite": np.r_[np.inf, np.zeros(N - 1)],
    "not a number": np.r_[np.nan, np.zeros(N - 1)],
    "missing": [None, *range(N - 1)],
    "missing in pandas": pd.Series([None, *range(N - 1)], dtype="Int64"),
    "sparse": csr_array(np.ones((N, 1))),
    "a number": 3,
}


def scaler(**params):
    return skdp.DPStandardScaler(bounds=(0, 1), **params)


def behind(place, accountant):
    """Return a container in which a vectorizer receives the table that another step releases."""
    if place == "pipeline":
        return make_pipeline(
            scaler(delta=1e-6, accountant=accountant), skdp.DPTableVectorizer(accountant=accountant)
        )
    last = skdp.DPTableVectorizer()
    if place == "union":
        last = FeatureUnion([("bins", last), ("scaled", scaler())])
    if place == "columns":
        last = ColumnTransformer([("bins", last, [0])])
    return split_budget(make_pipeline(scaler(), last), 1.0, 1e-6, accountant)


@pytest.mark.quick_cases(every=24)
@pytest.mark.parametrize("place", ["pipeline", "split pipeline", "union", "columns"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_that_a_later_step_refuses_costs_nothing(place, target):
    accountant = PrivacyAccountant(10.0, 0.1)
    with pytest.raises((TypeError, ValueError)) as caught:
        behind(place, accountant).fit(NUMBERS, TARGETS[target])
    assert accountant.epsilon_spent == 0.0
    assert "tablevectorizer" in str(caught.value) or "bins" in str(caught.value)
    behind(place, accountant).fit(NUMBERS, Y)
    assert accountant.epsilon_spent > 0.0


CASES = [
    (skdp.DPAdditiveClassifier(bounds={"a": 2}), NUMBERS, "'a': bounds must be a pair"),
    (skdp.DPHistogramNB(bounds={"a": 2}), NUMBERS, "'a': bounds must be a pair"),
    (skdp.DPTableSynthesizer(bounds={"a": 2}), NUMBERS, "'a': bounds must be a pair"),
    (skdp.DPTableVectorizer(bounds={"a": 2}), NUMBERS, "'a': bounds must be a pair"),
    (skdp.DPOneHotEncoder(categories=int), X[["word"]], "categories must be"),
    (skdp.DPOneHotEncoder(categories={"x", "y"}), X[["word"]], "categories must be"),
    (skdp.DPTargetEncoder(categories=b"xy"), X[["word"]], "categories must be"),
    (
        skdp.DPRidge(data_norm=pd.Series([1.0, 2.0]), target_bounds=(0, 1)),
        NUMBERS,
        "data_norm must be",
    ),
    (
        skdp.DPPoissonRegressor(data_norm=np.ones(2), target_bounds=(0, 1)),
        NUMBERS,
        "data_norm must be",
    ),
    (
        skdp.DPGridSearchCV(skdp.DPLogisticRegression(), {"C": [1.0]}, scoring=pd.NA),
        NUMBERS,
        "scoring=",
    ),
    (
        skdp.DPGridSearchCV(skdp.DPLogisticRegression(), {"C": [1.0]}, public_steps=[["a"]]),
        NUMBERS,
        "public_steps contains",
    ),
]


@pytest.mark.parametrize(("estimator", "table", "message"), CASES)
def test_an_unusual_form_is_refused_with_the_name_of_the_parameter(estimator, table, message):
    accountant = PrivacyAccountant(10.0, 0.1)
    with pytest.raises(ValueError, match=message):
        estimator.set_params(accountant=accountant).fit(table, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("kind", [skdp.DPHistogramTransformer, skdp.DPOneHotEncoder])
@pytest.mark.parametrize("value", [np.array([1, 2]), "yes", 1])
def test_a_wrong_sparsity_in_a_column_transformer_names_its_step(kind, value):
    accountant = PrivacyAccountant(10.0, 0.1)
    encoder = kind(categories={"word": ["x", "y"]}, sparse_output=value)
    columns = ColumnTransformer([("bins", scaler(), ["a"]), ("words", encoder, ["word"])])
    with pytest.raises(ValueError, match="words': sparse_output must be True or False"):
        pipe = make_pipeline(columns, skdp.DPLogisticRegression(data_norm=2.0))
        split_budget(pipe, 1.0, 1e-6, accountant).fit(X, Y)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("labels", [[5, 3], [1, 0], [0, 1], [7, 0]])
@pytest.mark.parametrize("selects", [False, True])
def test_labels_that_are_no_positions_are_found_in_a_split_pipeline(labels, selects):
    frame = NUMBERS.set_axis(labels, axis=1)
    # With a table that is not known yet, a number may be a position or a label.
    bounds = {labels[1]: (0, 1)} if selects else dict.fromkeys(labels, (0, 1))
    first = skdp.DPStandardScaler(bounds=bounds)
    if selects:
        first = ColumnTransformer([("scaled", first, [1])])
    accountant = PrivacyAccountant(10.0, 0.1)
    pipe = make_pipeline(first, skdp.DPLogisticRegression(data_norm=2.0))
    split_budget(pipe, 1.0, 1e-6, accountant).fit(frame, Y)
    assert accountant.epsilon_spent == 1.0
    others = NUMBERS.set_axis(["a", "b"], axis=1)
    n_columns = len(labels) - selects
    if not all(0 <= key < n_columns for key in bounds):
        with pytest.raises(ValueError, match="bounds: X has no column"):
            split_budget(pipe, 1.0, 1e-6, accountant).fit(others, Y)
        assert accountant.epsilon_spent == 1.0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([1.0, 2.0] * 20, "a list of values"),
        (["a", "b"] * 20, "a list of values"),
        ([[1.0], [2.0, 3.0]] * 20, "rows of different lengths"),
        ([np.zeros(1), np.zeros(2)] * 20, "rows of different lengths"),
    ],
)
def test_a_list_without_rows_is_told_from_rows_of_different_lengths(rows, message):
    search = skdp.DPGridSearchCV(
        skdp.DPRidge(target_bounds=(0, 1)), {"alpha": [1.0]}, scoring=None, epsilon=1.0
    )
    with pytest.raises(ValueError, match=message):
        search.fit(rows, np.zeros(40))
