"""A search that publishes no model is refused where a model is needed, before any charge."""

import numpy as np
import pytest
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skdp import (
    DPCalibratedClassifierCV,
    DPGaussianNB,
    DPGridSearchCV,
    DPLogisticRegression,
    DPRandomizedSearchCV,
    DPStandardScaler,
    DPTunedThresholdClassifierCV,
    PrivacyAccountant,
    dp_cross_validate,
)
from skdp.model_selection import dp_cross_val_score, dp_learning_curve, dp_validation_curve

X = np.random.default_rng(0).random((90, 2))
Y = (X[:, 0] > 0.5).astype(int)


def grid(strategy, accountant=None):
    return DPGridSearchCV(
        DPLogisticRegression(),
        {"C": [0.1, 1.0]},
        refit=False,
        strategy=strategy,
        cv=3,
        accountant=accountant,
    )


def randomized(strategy, accountant=None):
    return DPRandomizedSearchCV(
        DPLogisticRegression(),
        {"C": [0.1, 1.0]},
        n_iter=2,
        refit=False,
        strategy=strategy,
        cv=3,
        accountant=accountant,
    )


def behind_a_scaler(strategy, accountant=None):
    return make_pipeline(
        DPStandardScaler(bounds=(0, 1), accountant=accountant), grid(strategy, accountant)
    )


def naive_bayes(accountant):
    return DPGaussianNB(bounds=(0, 1), accountant=accountant)


def curve(search, accountant):
    return dp_validation_curve(
        search, X, Y, param_name="refit", param_range=[False], accountant=accountant
    )


# What is around a search: functions and tools of skdp share one charge, and the members of others
# have the accountant.
OF_SKDP = {
    "dp_cross_val_score": lambda s, a: dp_cross_val_score(s, X, Y, cv=2, accountant=a),
    "dp_cross_validate": lambda s, a: dp_cross_validate(s, X, Y, cv=2, accountant=a),
    "dp_learning_curve": lambda s, a: dp_learning_curve(s, X, Y, cv=2, accountant=a),
    "dp_validation_curve": curve,
    "threshold": lambda s, a: DPTunedThresholdClassifierCV(s, accountant=a).fit(X, Y),
    "calibration": lambda s, a: DPCalibratedClassifierCV(s, accountant=a).fit(X, Y),
    "search": lambda s, a: DPGridSearchCV(s, {"refit": [False]}, accountant=a).fit(X, Y),
}
OF_SKLEARN = {
    "votes": lambda s, a: VotingClassifier([("first", naive_bayes(a)), ("search", s)]),
    "stack": lambda s, a: StackingClassifier(
        [("first", naive_bayes(a)), ("search", s)],
        final_estimator=naive_bayes(a),
        cv=KFold(2, shuffle=True, random_state=0),
    ),
    "one against rest": lambda s, a: OneVsRestClassifier(s),
    "search": lambda s, a: GridSearchCV(s, {"refit": [False]}, error_score="raise"),
}
SEARCHES = {"grid": grid, "randomized": randomized, "pipeline": behind_a_scaler}


@pytest.mark.parametrize("strategy", ["cv", "auto"])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("tool", OF_SKDP)
def test_tools_of_skdp_refuse_a_search_without_a_model(tool, search, strategy):
    accountant = PrivacyAccountant(100.0, 0.1)
    with pytest.raises(ValueError, match="refit=False|before it is fitted"):
        OF_SKDP[tool](SEARCHES[search](strategy), accountant)
    assert not accountant.charges


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("tool", OF_SKLEARN)
def test_tools_of_sklearn_refuse_a_search_without_a_model(tool, search):
    accountant = PrivacyAccountant(100.0, 0.1)
    model = OF_SKLEARN[tool](SEARCHES[search]("cv", accountant), accountant)
    with pytest.raises((ValueError, TypeError), match="refit=False|'score' method"):
        model.fit(X, Y)
    assert not accountant.charges


def test_functions_of_sklearn_refuse_a_search_without_a_model():
    accountant = PrivacyAccountant(100.0, 0.1)
    with pytest.raises(TypeError, match="'score' method"):
        cross_val_score(grid("cv", accountant), X, Y)
    assert not accountant.charges


def test_a_search_without_a_model_has_no_methods_of_models():
    for strategy in ("cv", "auto"):
        search = grid(strategy)
        assert not any(hasattr(search, name) for name in ("predict", "predict_proba", "score"))
        assert hasattr(search.set_params(refit=True), "predict")
    # The scores alone are a release.
    search = grid("cv", PrivacyAccountant(1.0, 1e-5)).fit(X, Y)
    assert len(search.cv_results_["params"]) == 2
    assert not hasattr(search, "predict")
    assert hasattr(grid("holdout").set_params(cv=None).fit(X, Y), "predict")
