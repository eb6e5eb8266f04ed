"""Everything that fits, once under metadata routing without any metadata."""

import signal
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn import clone, config_context
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from skdp import DPGridSearchCV, DPLogisticRegression, DPRidge, DPStandardScaler
from skdp.model_selection import dp_cross_val_score, dp_learning_curve, dp_validation_curve
from tests._estimators import ESTIMATORS

FIRST = list({type(estimator): estimator for estimator in reversed(ESTIMATORS)}.values())[::-1]
RIDGE = DPRidge(target_bounds=(0, 1))
KEPT = KFold(2, shuffle=True, random_state=0)


@contextmanager
def routing_that_ends(seconds=60):
    """Enable routing; turn a loop without end into an error, where the system has alarms."""

    def stop(*_):
        raise TimeoutError("still running under metadata routing")

    if not hasattr(signal, "SIGALRM"):
        with config_context(enable_metadata_routing=True):
            yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        with config_context(enable_metadata_routing=True):
            yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def table():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    return rng.integers(0, 2, size=(120, 3)).astype(float), y


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("estimator", FIRST, ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("within", ["alone", pytest.param("pipeline", marks=pytest.mark.slow)])
def test_estimators(estimator, within):
    X, y = table()
    estimator = clone(estimator)
    if within == "pipeline":
        estimator = make_pipeline(FunctionTransformer(), estimator)
    with routing_that_ends():
        check_is_fitted(estimator.fit(X, y))
        if is_classifier(estimator) or is_regressor(estimator):
            assert len(estimator.predict(X)) == len(X)
        elif hasattr(estimator, "sample"):
            assert len(estimator.sample()) == len(X)
        else:
            assert estimator.transform(X).shape[0] == len(X)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("strategy", "cv"),
    [("disjoint", None), ("holdout", None), ("random_stopping", None), ("cv", None), ("cv", KEPT)],
    ids=str,
)
def test_searches(strategy, cv):
    X, y = table()
    options = {"mean_runs": 1} if strategy == "random_stopping" else {}
    pipeline = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression())
    search = DPGridSearchCV(
        pipeline, {"dplogisticregression__C": [0.01, 0.1]}, strategy=strategy, cv=cv, **options
    )
    with routing_that_ends():
        assert search.fit(X, y).privacy_.epsilon == 1.0


def test_scores_and_curves():
    X, y = table()
    with routing_that_ends():
        assert dp_cross_val_score(DPLogisticRegression(), X, y).scores_.shape == (5,)
        dp_validation_curve(RIDGE, X, y, param_name="alpha", param_range=[0.1, 1.0], cv=2)
        dp_learning_curve(RIDGE, X, y, train_sizes=[0.5, 1.0], cv=2)


def test_scikit_learns_searches_and_scores_of_private_estimators():
    X, y = table()
    search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, strategy="holdout")
    with routing_that_ends():
        cross_val_score(search, X, y, cv=KEPT, error_score="raise")
        grid = GridSearchCV(RIDGE, {"alpha": [0.1, 1.0]}, cv=KEPT, error_score="raise")
        assert grid.fit(X, y).best_params_["alpha"] in (0.1, 1.0)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("estimator", FIRST, ids=lambda estimator: type(estimator).__name__)
def test_answers_for_numbers_of_any_size_raise_nothing(estimator):
    X, y = table()
    estimator = clone(estimator).fit(X, y)
    X[0], X[1] = 1e-310, 1e300
    with np.errstate(all="raise"):
        for name in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
            getattr(estimator, name, np.shape)(X)


@pytest.mark.parametrize("estimator", FIRST, ids=lambda estimator: type(estimator).__name__)
def test_a_third_positional_argument_is_not_read_as_groups(estimator):
    """In that place users of scikit-learn put weights."""
    X, y = table()
    for method in {"fit", "partial_fit"} & set(dir(estimator)):
        with pytest.raises(TypeError, match="positional argument"):
            getattr(clone(estimator), method)(X, y, *[np.ones(120)] * (1 + (method != "fit")))
