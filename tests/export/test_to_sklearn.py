"""Plain models answer as the private ones do, and hold nothing but what was released."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPGaussianNB,
    DPGridSearchCV,
    DPKMeans,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPQuantileTransformer,
    DPSGDClassifier,
    DPStandardScaler,
)
from skdp.export import to_sklearn
from tests.export._models import (
    ESTIMATORS,
    PIPELINES,
    Model,
    answers,
    contract_model,
    model,
    people,
)

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "plain_models.md"
# scikit-learn's has no such method, or of other numbers.
OWN = dict.fromkeys(
    [
        "DPAdditiveClassifier",
        "DPDecisionTreeClassifier",
        "DPGaussianNB",
        "DPRandomForestClassifier",
    ],
    {"decision_function"},
)


def check_same_answers(private, plain):
    """The methods that both have; a plain model lacks only what `OWN` says."""
    expected, found = private.answers, answers(plain, private.X)
    assert expected.keys() - found.keys() == OWN.get(type(private.fitted).__name__, set())
    for name in expected.keys() & found.keys():
        assert found[name].shape == expected[name].shape
        if expected[name].dtype.kind in "fc":
            np.testing.assert_allclose(found[name], expected[name], rtol=1e-6, atol=1e-9)
        else:
            np.testing.assert_array_equal(found[name], expected[name])


def exported(fitted):
    """Return a plain model, or the sentence that refuses it."""
    try:
        return to_sklearn(fitted)
    except ValueError as error:
        assert str(error).startswith(f"{type(fitted).__name__} cannot be exported to scikit-learn:")
        return str(error).split(": ")[1]


@pytest.mark.quick_cases(every=21)
@pytest.mark.parametrize("name", [*map(repr, ESTIMATORS), *PIPELINES])
def test_answers_are_equal(name):
    private = model(name)
    plain = exported(private.fitted)
    if isinstance(plain, str):
        pytest.skip(plain)
    check_same_answers(private, plain)
    kept = pickle.dumps(plain)
    assert b"skdp" not in kept and b"ledger" not in kept


def words(plain):
    """Return the classes of a plain model's steps."""
    if isinstance(plain, str):
        return f"refused: {plain}"
    steps = [words(step) for _, step in plain.steps] if isinstance(plain, Pipeline) else None
    return ", ".join(steps or [f"`{type(plain).__name__}`"])


NO_COUNTERPART = "refused: skdp has no conversion for it"


@pytest.mark.thorough
def test_the_page_says_what_maps():
    rows = {}
    for estimator in ESTIMATORS:
        found = rows.setdefault(type(estimator).__name__, [])
        plain = words(exported(contract_model(repr(estimator)).fitted))
        if plain not in found:
            found.append(plain)
    # A class without a counterpart needs no row.
    rows = {name: found for name, found in rows.items() if found != [NO_COUNTERPART]}
    table = [f"| `{name}` | {'; or '.join(found)} |" for name, found in sorted(rows.items())]
    shown = re.findall(r"^\| `[A-Z]\w+` \| .* \|$", PAGE.read_text(), flags=re.M)
    assert shown == table, "the table of docs/reference/plain_models.md should be\n" + "\n".join(
        table
    )


@pytest.mark.parametrize(
    "estimator", [DPLogisticRegression(), DPSGDClassifier(loss="hinge"), DPGaussianNB()], ids=str
)
def test_labels_may_be_strings_of_three_classes(estimator):
    table, labels = people()
    X = table[["age", "rooms"]].to_numpy() / 100.0
    private = Model(estimator.fit(X, labels), X)
    check_same_answers(private, to_sklearn(private.fitted))


@pytest.mark.parametrize("output", ["uniform", "normal"])
def test_quantiles_that_repeat_at_an_end_share_the_middle_of_their_ranks(output):
    rng = np.random.default_rng(0)
    gains = np.where(rng.random(5000) < 0.85, 0.0, rng.uniform(0, 1000, 5000))
    X = np.column_stack([gains, rng.integers(1, 6, 5000), gains * 1e-12])
    bounds = ([0, 1, 0], [1000, 5, 1e-9])
    fitted = DPQuantileTransformer(bounds=bounds, output_distribution=output).fit(X)
    assert (np.diff(fitted.quantiles_, axis=0)[0] == 0).any()
    asked = np.vstack([X, X[::5] - 1e-8, X[::5] + 1e-8, fitted.quantiles_, -X[::5], 1e4 + X[::5]])
    check_same_answers(Model(fitted, asked), to_sklearn(fitted))
    shares = fitted.transform(X[:100])
    found = to_sklearn(fitted).inverse_transform(shares)[:, :2]
    np.testing.assert_allclose(found, fitted.inverse_transform(shares)[:, :2], atol=1e-5)


def test_clusters_far_from_0_are_told_apart():
    rng = np.random.default_rng(0)
    X = 1e6 + rng.integers(0, 3, (3000, 1)) * [0.4, 0.3] + rng.normal(0, 0.02, (3000, 2))
    fitted = DPKMeans(n_clusters=3, epsilon=10.0, bounds=(1e6, 1e6 + 1)).fit(X)
    check_same_answers(Model(fitted, X), to_sklearn(fitted))


def test_a_frame_is_taken_by_the_names_of_its_columns():
    private = model("columns")
    plain = to_sklearn(private.fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = plain.predict_proba(private.X.iloc[:, ::-1])
    np.testing.assert_allclose(found, private.fitted.predict_proba(private.X), rtol=1e-9)
    encoder = plain[0].named_transformers_["work"]
    assert encoder.get_feature_names_out().tolist() == ["work_state", "work_firm"]


def test_the_private_model_stays_as_it_is():
    fitted = model("columns").fitted
    before = pickle.dumps(fitted)
    to_sklearn(fitted)
    assert pickle.dumps(fitted) == before


def test_steps_name_what_comes_out():
    private, plain = model("scaler").fitted, to_sklearn(model("scaler").fitted)
    assert plain[:-1].get_feature_names_out().tolist() == ["age", "rooms"]
    assert private[:-1].get_feature_names_out().tolist() == ["age", "rooms"]


def test_a_scaler_that_makes_frames_is_exported():
    X = people()[0][["age", "rooms"]]
    scaler = DPStandardScaler(bounds=(0, 90)).set_output(transform="pandas").fit(X)
    found = to_sklearn(scaler).transform(X)
    np.testing.assert_allclose(found, scaler.transform(X).to_numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("form", [csr_array, np.float32])
@pytest.mark.parametrize("name", ["DPLogisticRegression()", "DPSGDClassifier", "DPRidge"])
def test_tables_may_be_sparse_or_of_single_precision(name, form):
    name = next(known for known in map(repr, ESTIMATORS) if known.startswith(name))
    private = contract_model(name)
    plain, X = to_sklearn(private.fitted), form(private.X)
    found = plain.predict(X)
    if hasattr(private.fitted, "target_bounds"):
        np.testing.assert_allclose(found, private.answers["predict"], rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found, private.answers["predict"])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: OneVsRestClassifier(DPLogisticRegression()).fit(X, y), "OneVsRestClassifier"),
        (lambda X, y: make_pipeline(Derived()).fit(X, y), "Derived cannot be exported"),
        (
            lambda X, y: DerivedSearch(DPLogisticRegression(), {"C": [1.0]}).fit(X, y),
            "DerivedSearch",
        ),
        (
            lambda X, y: DPOneHotEncoder(categories=[1, "a"]).fit(np.array([[1, "a"]], object)),
            "DPOneHotEncoder .* of one type",
        ),
        (lambda X, y: DPOneHotEncoder(categories=[2, 1, 0]).fit(np.floor(X)), "numbers in order"),
        (lambda X, y: DPOneHotEncoder(categories=[0], other=9).fit(np.floor(X)), "other="),
    ],
)
@pytest.mark.filterwarnings("ignore:the categories of column")
def test_what_does_not_map_is_refused_by_name(make, words):
    table, labels = people()
    fitted = make(table[["age", "rooms"]].to_numpy() / 100.0, labels == "old")
    with pytest.raises(ValueError, match=words):
        to_sklearn(fitted)


class Derived(DPLogisticRegression):
    """Might predict otherwise than the class that it is derived from."""


class DerivedSearch(DPGridSearchCV):
    """As is this one."""


def test_what_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError):
        to_sklearn(make_pipeline(DPLogisticRegression()))


def test_what_is_not_private_is_returned():
    plain = StandardScaler().fit([[0.0], [1.0]])
    assert to_sklearn(plain) is plain
