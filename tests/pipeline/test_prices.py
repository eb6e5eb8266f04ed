"""What check_pipeline says that wrappers cost, against what their fits charge."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import DPLinearRegression, DPLogisticRegression, DPStandardScaler, PrivacyAccountant
from skdp.pipeline import check_pipeline

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 3)) / 4
TWO, THREE = (X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.1, 0.1])
BOTH = np.column_stack([TWO, (X[:, 1] > 0).astype(int)])
FOLDS = KFold(4, shuffle=True, random_state=0)
GRID = {"C": [0.1, 1.0, 10.0]}


def wrappers(model, regressor):
    scaled = make_pipeline(DPStandardScaler(bounds=(-1, 1), accountant=model.accountant), model)
    return {
        "grid": (GridSearchCV(model, GRID, cv=FOLDS), TWO, True),
        "grid without refit": (GridSearchCV(model, GRID, cv=3, refit=False), TWO, True),
        "grid of a pipeline": (
            GridSearchCV(scaled, {"dplogisticregression__C": [1.0, 2.0]}, cv=FOLDS),
            TWO,
            True,
        ),
        "grid of budgets": (GridSearchCV(model, {"epsilon": [0.1, 0.2]}, cv=FOLDS), TWO, False),
        "random": (RandomizedSearchCV(model, GRID, n_iter=2, cv=FOLDS), TWO, True),
        "random, all": (RandomizedSearchCV(model, GRID, n_iter=9, cv=FOLDS), TWO, True),
        "halving": (HalvingGridSearchCV(model, GRID, cv=2, random_state=0), TWO, False),
        "halving at random": (
            HalvingRandomSearchCV(model, GRID, cv=2, random_state=0),
            TWO,
            False,
        ),
        "bagging": (BaggingClassifier(model, 7), TWO, True),
        "bagging a pipeline": (make_pipeline(BaggingClassifier(scaled, 2)), TWO, True),
        "bagging behind a scaler": (
            make_pipeline(clone_of(scaled[0]), BaggingClassifier(model, 3)),
            TWO,
            True,
        ),
        "bagging regressors": (BaggingRegressor(regressor, 3), X[:, 0], True),
        "votes": (VotingClassifier([("a", model), ("b", scaled)]), TWO, True),
        "stacking": (
            StackingClassifier([("a", model), ("b", scaled)], LogisticRegression(), cv=3),
            TWO,
            True,
        ),
        "stacking, final": (StackingClassifier([("a", model)], model, cv=FOLDS), TWO, True),
        "stacking, default folds": (
            StackingRegressor([("a", regressor)], LinearRegression()),
            X[:, 0],
            True,
        ),
        "calibrated": (CalibratedClassifierCV(model, cv=3, ensemble=True), TWO, True),
        "calibrated once": (CalibratedClassifierCV(model, cv=3, ensemble=False), TWO, True),
        "calibrated, default": (CalibratedClassifierCV(model, cv=3), TWO, False),
        "target": (TransformedTargetRegressor(regressor), X[:, 0], True),
        "selection": (SelectFromModel(model), TWO, True),
        "fixed threshold": (FixedThresholdClassifier(model), TWO, True),
        "tuned threshold": (TunedThresholdClassifierCV(model, cv=3), TWO, False),
        "rest": (OneVsRestClassifier(model), THREE, False),
        "rest of two": (OneVsRestClassifier(model), TWO, False),
        "one against one": (OneVsOneClassifier(model), THREE, False),
        "codes": (OutputCodeClassifier(model, random_state=0), THREE, False),
        "outputs": (MultiOutputClassifier(model), BOTH, False),
        "chain": (ClassifierChain(model), BOTH, False),
        "elimination": (RFE(model, n_features_to_select=1), TWO, False),
        "sequential": (SequentialFeatureSelector(model, cv=2), TWO, False),
        "self-training": (SelfTrainingClassifier(model), TWO, False),
        "folds that are read once": (
            GridSearchCV(model, GRID, cv=iter(list(FOLDS.split(X)))),
            TWO,
            False,
        ),
        "nested": (BaggingClassifier(GridSearchCV(model, GRID, cv=2), 2), TWO, True),
        "a rest in a search": (
            GridSearchCV(OneVsRestClassifier(model), {"estimator__C": [1.0, 2.0]}, cv=FOLDS),
            THREE,
            False,
        ),
    }


def clone_of(estimator):
    return type(estimator)(**estimator.get_params())


FAST = ("grid", "grid of budgets", "halving", "bagging behind a scaler", "votes", "rest", "outputs")
CASES = [
    name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
    for name in wrappers(DPLogisticRegression(), DPLinearRegression())
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_wrappers_cost_what_is_said_or_more(name):
    accountant = PrivacyAccountant(1e4, 0.9)
    model = DPLogisticRegression(1.0, delta=0.0, accountant=accountant)
    regressor = DPLinearRegression(1.0, delta=0.0, target_bounds=(-1, 1), accountant=accountant)
    wrapper, y, exact = wrappers(model, regressor)[name]
    result = check_pipeline(wrapper)
    assert not accountant.spends and result.exact is exact and result.to_dict()["exact"] is exact
    wrapper.fit(X, y)
    said = result.fits * result.epsilon
    assert accountant.epsilon_spent >= said
    assert (accountant.epsilon_spent == said) is exact or not exact
    for text in (str(result), result._repr_html_()):
        assert ("at least" in text) is not exact


def test_the_price_of_what_is_not_verified_is_no_price():
    class Odd(DPLogisticRegression):
        pass

    result = check_pipeline(make_pipeline(DPStandardScaler(bounds=(0, 1)), Odd()))
    assert not result.accepted and not result.exact and "at least" in str(result)
