"""Plain estimators answer as the private ones that they were made of, wherever they are loaded."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import clone
from sklearn.base import MetaEstimatorMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import (
    DPGridSearchCV,
    DPKBinsDiscretizer,
    DPLogisticRegression,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
)
from skdp.export import to_sklearn
from tests.test_routing import FIRST

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"
OTHERS = [
    DPMinMaxScaler(bounds=(0, 1), clip=True, feature_range=(-1, 3), quantile_range=(20, 60)),
    DPPoissonRegressor(target_bounds=(0, 1)),
    DPOneHotEncoder(categories=[[0.0, 1.0]] * 3),
    DPOneHotEncoder(categories=[[0.0, 1.0]] * 3, other=2.0),
    DPSGDClassifier(loss="modified_huber"),
    DPSimpleImputer(add_indicator=True),
    DPKBinsDiscretizer(bounds=(0, 1), encode="ordinal"),
    DPTargetEncoder(categories=[[0.0, 1.0, 9.0]] * 3, classes=[0, 1]),
    DPTargetEncoder(categories=[[0.0, 1.0]] * 3, target_bounds=(0, 1)),
]
WORDS = pd.DataFrame({"size": [0.5, 7.0, 2.0, 9.0] * 40, "kind": ["a", "b", "b", "c"] * 40})
KINDS = np.array([0, 1, 1, 0] * 40)
ANSWERS = ("transform", "predict", "predict_proba", "predict_log_proba", "decision_function")


def table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, size=(120, 3)).astype(float), np.arange(120) % 2


def assert_same_answers(plain, private, X):
    for name in ANSWERS:
        assert hasattr(plain, name) == hasattr(private, name) or name.startswith("predict_")
        if hasattr(private, name) and hasattr(plain, name):
            mine, theirs = (getattr(each, name)(X) for each in (private, plain))
            mine, theirs = (v.toarray() if hasattr(v, "toarray") else v for v in (mine, theirs))
            if mine.dtype == object:
                assert (mine == theirs).all()
            else:
                np.testing.assert_allclose(theirs, mine, rtol=1e-9, atol=1e-8)


def kind_of(estimator):
    """Return what becomes of an estimator, after comparing its answers."""
    X, y = table()
    fitted = clone(estimator).set_params(random_state=0).fit(X, y)
    try:
        plain = to_sklearn(fitted)
    except ValueError as error:
        assert "scikit-learn" in str(error)
        return "refused"
    assert b"skdp" not in pickle.dumps(plain)
    seen = isinstance(estimator, DPOneHotEncoder | DPTargetEncoder)
    assert_same_answers(plain, fitted, X if seen else np.vstack([X, 3 * X - 1]))
    steps = [step for _, step in plain.steps] if isinstance(plain, Pipeline) else [plain]
    return " and ".join(f"`{type(step).__name__}`" for step in steps)


def test_the_page_says_what_becomes_of_each_estimator():
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", PAGE.read_text(), re.MULTILINE)
    written = {name: set(kinds.split(" or ")) for name, kinds in rows}
    seen = {}
    for estimator in (*FIRST, *OTHERS):
        if not isinstance(estimator, MetaEstimatorMixin):
            seen.setdefault(type(estimator).__name__, set()).add(kind_of(estimator))
    assert seen == written


def test_pipelines_of_named_columns():
    encoder = DPOneHotEncoder(categories={"kind": ["a", "b", "c"]}, random_state=0)
    scaler = DPStandardScaler(bounds={"size": (0, 10)}, random_state=0)
    columns = ColumnTransformer([("n", scaler, ["size"]), ("c", encoder, ["kind"])])
    model = DPLogisticRegression(random_state=0)
    pipe = make_pipeline(columns, model).fit(WORDS, KINDS)
    plain = to_sklearn(pipe)
    assert_same_answers(plain, pipe, WORDS)
    assert list(plain.feature_names_in_) == ["size", "kind"]
    numbers = WORDS[["size"]]
    union = FeatureUnion([("s", scaler), ("same", "passthrough")]).fit(numbers)
    assert_same_answers(to_sklearn(union), union, numbers)


def test_searches_give_their_best_estimator_and_imputers_their_fillings():
    X, y = table()
    search = DPGridSearchCV(DPRidge(target_bounds=(0, 1)), {"alpha": [0.1, 1.0]}, random_state=0)
    assert_same_answers(to_sklearn(search.fit(X, y)), search.best_estimator_, 5 * X)
    imputer = DPSimpleImputer(strategy="most_frequent", categories=[["a", "b", "c"]])
    imputer.set_params(random_state=0).fit(WORDS[["kind"]].to_numpy())
    gaps = np.array([["a"], [np.nan]], dtype=object)
    assert_same_answers(to_sklearn(imputer), imputer, gaps)


def test_what_has_no_equal_is_refused_by_name():
    X, y = table()
    with pytest.raises(NotFittedError):
        to_sklearn(DPLogisticRegression())
    other = DPOneHotEncoder(categories=[["a"]], other="rest").fit(WORDS[["kind"]].to_numpy())
    with pytest.raises(ValueError, match="OneHotEncoder"):
        to_sklearn(other)
    marked = DPSimpleImputer(bounds=(0, 1), add_indicator=True).fit(X)
    with pytest.raises(ValueError, match="SimpleImputer"):
        to_sklearn(marked)
    vote = VotingClassifier([("a", DPLogisticRegression()), ("b", LogisticRegression())])
    with pytest.raises(ValueError, match="VotingClassifier"):
        to_sklearn(vote.fit(X, y))
    same = make_pipeline(FunctionTransformer(), LogisticRegression()).fit(X, y)
    assert_same_answers(to_sklearn(same), same, X)


def test_a_plain_model_answers_where_skdp_is_not(tmp_path):
    X, y = table()
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression()).fit(X, y)
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(to_sklearn(pipe)))
    np.save(tmp_path / "X.npy", X)
    script = (
        "import sys, pickle, numpy as np\n"
        "sys.modules['skdp'] = None\n"
        "model = pickle.load(open('model.pkl', 'rb'))\n"
        "np.save('answers.npy', model.predict_proba(np.load('X.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "answers.npy"), pipe.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    "estimator",
    [DPLogisticRegression(), DPRidge(target_bounds=(0, 1))],
    ids=lambda e: type(e).__name__,
)
def test_converters_take_it(estimator):
    skl2onnx = pytest.importorskip("skl2onnx", reason="the extra test has it")
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y = table()
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), estimator).fit(X, y)
    graph = skl2onnx.to_onnx(to_sklearn(pipe), X[:1].astype(np.float32))
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    (predicted, *_) = session.run(None, {"X": X.astype(np.float32)})
    np.testing.assert_allclose(predicted.ravel(), pipe.predict(X), rtol=1e-6, atol=1e-6)
