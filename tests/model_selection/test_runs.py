"""Fits that are heard by nobody, however loud the estimator is."""

import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from skdp import DPGridSearchCV, DPLogisticRegression, DPStandardScaler, PrivacyAccountant
from skdp.model_selection import _runs as runs
from skdp.model_selection import dp_cross_val_score
from tests.model_selection.toys import NoisyVote


class LoudVote(NoisyVote):
    """Says what no one should hear, of its rows and of each fit."""

    __skdp_kind__ = "private"

    def fit(self, X, y):
        super().fit(X, y)
        warnings.warn(f"the sum is {np.sum(y)}", stacklevel=1)
        return self

    def predict(self, X):
        warnings.warn(f"{len(X)} rows are predicted", stacklevel=1)
        return super().predict(X)


def loud_pipeline(verbose=True):
    same = [("one", FunctionTransformer()), ("two", FunctionTransformer())]
    steps = [("same", FeatureUnion(same)), ("vote", LoudVote())]
    return Pipeline(steps, verbose=verbose)


def search(n_jobs=None, **params):
    given = {"strategy": "random_stopping", "delta": 1e-6, "n_jobs": n_jobs} | params
    return DPGridSearchCV(loud_pipeline(), {"vote__shift": [0.0, 1.0]}, **given)


@pytest.fixture
def table():
    return np.zeros((60, 1)), np.arange(60) % 2


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_neither_prints_nor_warnings_tell_the_number_of_runs(table, monkeypatch, capfd, n_jobs):
    heard = set()
    for count in (1, 9):
        monkeypatch.setattr(runs, "_number_of_runs", lambda mean, stream, count=count: count)
        with warnings.catch_warnings(record=True) as told, joblib.parallel_config(verbose=50):
            warnings.simplefilter("always")
            found = search(n_jobs).fit(*table)
        heard.add((str([str(w.message) for w in told]), *capfd.readouterr()))
        assert found.best_estimator_.verbose is True
    assert heard == {("[]", "", "")}


def test_the_loud_estimator_is_loud(table, capsys):
    with pytest.warns(UserWarning, match="the sum is 30"):
        loud_pipeline().fit(*table)
    assert capsys.readouterr().out


class Fixed:
    """A mechanism that releases the same, whatever it is given."""

    def __init__(self, released):
        self.released = released

    def release(self, values, *, random_state):
        return self.released


def test_a_search_takes_what_the_mechanisms_released():
    splits = SimpleNamespace(train=[0], test=[0])
    layout = SimpleNamespace(splits=splits, candidate_splits=((0,), (0,)))
    layout.score = lambda score, values, candidate: values[candidate, 0]
    made = SimpleNamespace(layout=layout, runs={(0, 0): None, (1, 0): None}, refits=(), releases=2)
    made.choice, made.noisy = Fixed(1), Fixed(np.array([0.7, 0.3]))
    made.task = SimpleNamespace(score=None)
    run = SimpleNamespace(
        search=made, source=None, fit=lambda *plans, **options: [(0.9, "a"), (0.1, "b")]
    )
    found = runs._choose(run)
    assert (found.best, found.scores.tolist(), found.model) == (1, [0.7, 0.3], "b")


def test_no_rows_are_kept_on_disk(tmp_path):
    X, y = np.random.default_rng(0).uniform(size=(60, 2)), np.arange(60) % 2
    steps = [("scale", DPStandardScaler(bounds=(0, 1))), ("model", DPLogisticRegression())]
    pipe = Pipeline([("unit", Normalizer()), *steps], memory=str(tmp_path))
    found = DPGridSearchCV(pipe, {"model__C": [0.1, 1.0]}, strategy="holdout").fit(X, y)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert found.best_estimator_.memory is None and pipe.memory == str(tmp_path)


def test_scores_that_cannot_be_released_are_not_charged(table):
    accountant = PrivacyAccountant(1.0, 1e-5)
    tiny = {"epsilon": 1e-13, "delta": 0.0, "accountant": accountant}
    found = DPGridSearchCV(NoisyVote(), {"shift": [0.0, 1.0]}, strategy="cv", **tiny)
    with pytest.raises(ValueError, match="too small for 2"):
        found.fit(*table)
    with pytest.raises(ValueError, match="too small for 5"):
        dp_cross_val_score(NoisyVote(), *table, **(tiny | {"epsilon": 2.5e-14}))
    assert not accountant.charges
