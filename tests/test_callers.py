"""Tools around a private estimator are named before the charge; private ones are not."""

import copy
import pickle
import re
import sys
import threading
import types
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import (
    RFE,
    RFECV,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RANSACRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPOneHotEncoder,
    DPRidge,
    DPStandardScaler,
    LedgerError,
    PrivacyAccountant,
    RandomizedResponseTransformer,
    RawDataWarning,
)
from skdp.model_selection import make_dp_scorer
from skdp.pipeline import split_budget

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (300, 3))
y = (X[:, 0] > 0).astype(int)
three = np.arange(300) % 3
two_outputs = np.c_[y, 1 - y]
target = X[:, 0]
FOLDS = KFold(3, shuffle=True, random_state=0)
GRID = {"C": [0.1, 1.0]}


def budget(name="", **more):
    # Other processes do not have this one's memory.
    ledger = None if "in processes" in name else "memory://"
    return PrivacyAccountant(100.0, 1e-2, ledger=ledger, **more)


def classifier(accountant, **more):
    return DPLogisticRegression(0.1, delta=1e-6, data_norm=2.0, accountant=accountant, **more)


def regressor(accountant):
    return DPRidge(0.1, delta=1e-6, data_norm=2.0, target_bounds=(-1, 1), accountant=accountant)


def scaler(accountant):
    return DPStandardScaler(0.1, bounds=(-1, 1), accountant=accountant)


def scorer(accountant):
    return make_dp_scorer("accuracy", epsilon=0.1, accountant=accountant)


def around_classifier(wrapper, target=y, **options):
    """Return a fit of a wrapper of a private classifier, as a function of an accountant."""
    return lambda accountant: wrapper(classifier(accountant), **options).fit(X, target)


def around_regressor(wrapper, **options):
    return lambda accountant: wrapper(regressor(accountant), **options).fit(X, target)


def behind(*steps):
    """Return a fit of a pipeline with a private classifier at its end."""
    return lambda accountant: make_pipeline(
        *(clone(step) for step in steps), classifier(accountant)
    ).fit(X, y)


def evaluated(function, *more, **options):
    return lambda accountant: function(classifier(accountant), X, y, *more, **options)


def frozen(accountant):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return FrozenEstimator(classifier(accountant).fit(X, y))


def planned(accountant, *, scaled=False):
    steps = [DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(data_norm=2.0)]
    pipe = split_budget(make_pipeline(*steps), 0.1, 1e-6, accountant)
    return make_pipeline(StandardScaler(), pipe) if scaled else pipe


# What is refused whatever the user says of warnings: (fit, name of the tool, word of the remedy).
REFUSED = {
    "bagging": (around_classifier(BaggingClassifier, n_estimators=2), "VotingClassifier"),
    "bagging of seeds": (
        around_classifier(BaggingClassifier, n_estimators=2, random_state=0),
        "DPRandomForestClassifier",
    ),
    "bagging without repeats": (
        around_classifier(BaggingClassifier, n_estimators=2, bootstrap=False),
        "DPRandomForestClassifier",
    ),
    "bagging of regressors": (around_regressor(BaggingRegressor, n_estimators=2), "Voting"),
    "bagging of pipelines": (
        lambda accountant: BaggingClassifier(
            make_pipeline(scaler(accountant), classifier(accountant)), n_estimators=2
        ).fit(X, y),
        "VotingClassifier",
    ),
    "bagging in processes": (
        around_classifier(BaggingClassifier, n_estimators=2, n_jobs=2),
        "VotingClassifier",
    ),
    "bagging in a pipeline": (
        lambda accountant: make_pipeline(
            scaler(accountant), BaggingClassifier(classifier(accountant))
        ).fit(X, y),
        "VotingClassifier",
    ),
    "bagging in a search": (
        lambda accountant: GridSearchCV(
            make_pipeline(scaler(accountant), BaggingClassifier(classifier(accountant))),
            {},
            scoring=scorer(accountant),
            cv=FOLDS,
        ).fit(X, y),
        "VotingClassifier",
    ),
    "boosting of regressors": (around_regressor(AdaBoostRegressor), "VotingRegressor"),
    "tuned threshold": (around_classifier(TunedThresholdClassifierCV, cv=3), "FixedThreshold"),
    "tuned threshold of a frozen model": (
        lambda accountant: TunedThresholdClassifierCV(
            frozen(accountant), cv="prefit", refit=False
        ).fit(X, y),
        "FixedThresholdClassifier",
    ),
    "ransac": (around_regressor(RANSACRegressor, min_samples=50), "target_bounds"),
    "iterative imputer": (
        lambda accountant: IterativeImputer(regressor(accountant), max_iter=1).fit(
            np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
        ),
        "DPSimpleImputer",
    ),
}

# Wrappers are warned of once for each fit: (fit, words of the warning).
WARNED = {
    "calibration": (around_classifier(CalibratedClassifierCV, cv=3), "calibrators"),
    "calibration by one model": (
        around_classifier(CalibratedClassifierCV, cv=FOLDS, ensemble=False),
        "calibrators",
    ),
    "calibration of a frozen model": (
        lambda accountant: CalibratedClassifierCV(frozen(accountant), ensemble=False).fit(X, y),
        "calibrators",
    ),
    "stacking": (
        lambda accountant: StackingClassifier([("a", classifier(accountant))], cv=FOLDS).fit(X, y),
        "final_estimator",
    ),
    "stacking in processes": (
        lambda accountant: StackingClassifier(
            [("a", classifier(accountant))], cv=FOLDS, n_jobs=2
        ).fit(X, y),
        "final_estimator",
    ),
    "stacking by labels": (
        lambda accountant: StackingClassifier(
            [("a", classifier(accountant))], classifier(accountant), cv=3
        ).fit(X, y),
        "depend on their labels",
    ),
    "stacking of frozen models": (
        lambda accountant: StackingClassifier([("a", frozen(accountant))], cv="prefit").fit(X, y),
        "final_estimator",
    ),
    "stacking of regressors": (
        lambda accountant: StackingRegressor([("a", regressor(accountant))]).fit(X, target),
        "final_estimator",
    ),
    "voting with a raw member": (
        lambda accountant: VotingClassifier(
            [("raw", LogisticRegression()), ("private", classifier(accountant))]
        ).fit(X, y),
        "members ['raw']",
    ),
    "boosted trees on a private start": (
        lambda accountant: GradientBoostingRegressor(
            init=regressor(accountant), n_estimators=2
        ).fit(X, target),
        "trees",
    ),
    "grid search": (around_classifier(GridSearchCV, param_grid=GRID, cv=FOLDS), "DPGridSearchCV"),
    "grid search by labels": (
        lambda accountant: GridSearchCV(
            classifier(accountant), GRID, scoring=scorer(accountant), cv=3
        ).fit(X, y),
        "depend on their labels",
    ),
    "grid search in processes": (
        around_classifier(GridSearchCV, param_grid=GRID, cv=FOLDS, n_jobs=2),
        "scores of the raw rows",
    ),
    "grid search of a pipeline": (
        lambda accountant: GridSearchCV(
            make_pipeline(StandardScaler(), classifier(accountant)),
            {"dplogisticregression__C": [0.1, 1.0]},
            cv=FOLDS,
        ).fit(X, y),
        "use DPStandardScaler",
    ),
    "grid search of a plan": (
        lambda accountant: GridSearchCV(
            planned(accountant), {"dplogisticregression__C": [0.1, 1.0]}, cv=FOLDS
        ).fit(X, y),
        "scores of the raw rows",
    ),
    "grid search in a pipeline": (
        lambda accountant: make_pipeline(
            scaler(accountant), GridSearchCV(classifier(accountant), GRID, cv=FOLDS)
        ).fit(X, y),
        "scores of the raw rows",
    ),
    "random search": (
        around_classifier(RandomizedSearchCV, param_distributions=GRID, n_iter=2, cv=FOLDS),
        "scores of the raw rows",
    ),
    "halving": (
        around_classifier(HalvingGridSearchCV, param_grid=GRID, cv=FOLDS, min_resources=100),
        "scores of the raw rows",
    ),
    "halving at random": (
        around_classifier(
            HalvingRandomSearchCV, param_distributions=GRID, cv=FOLDS, min_resources=100
        ),
        "scores of the raw rows",
    ),
    "cross_val_score": (evaluated(cross_val_score), "dp_cross_val_score"),
    "cross_val_score in processes": (evaluated(cross_val_score, n_jobs=2), "dp_cross_val_score"),
    "cross_validate": (evaluated(cross_validate, cv=FOLDS), "scores of the raw rows"),
    "cross_validate by labels": (
        lambda accountant: cross_validate(
            classifier(accountant), X, y, scoring=scorer(accountant), cv=StratifiedKFold(3)
        ),
        "depend on their labels",
    ),
    "cross_validate by one raw score": (
        lambda accountant: cross_validate(
            classifier(accountant),
            X,
            y,
            scoring={"private": scorer(accountant), "raw": "accuracy"},
            cv=FOLDS,
        ),
        "scores of the raw rows",
    ),
    "cross_val_score of a pipeline": (
        lambda accountant: cross_val_score(
            make_pipeline(StandardScaler(), classifier(accountant)),
            X,
            y,
            scoring=scorer(accountant),
            cv=FOLDS,
        ),
        "use DPStandardScaler",
    ),
    "cross_val_score of a pipeline in processes": (
        lambda accountant: cross_val_score(
            make_pipeline(StandardScaler(), classifier(accountant)),
            X,
            y,
            scoring=scorer(accountant),
            cv=FOLDS,
            n_jobs=2,
        ),
        "use DPStandardScaler",
    ),
    "learning_curve of a calibration in processes": (
        lambda accountant: learning_curve(
            CalibratedClassifierCV(classifier(accountant), cv=2),
            X,
            y,
            scoring=scorer(accountant),
            cv=FOLDS,
            train_sizes=[0.5],
            n_jobs=2,
        ),
        "calibrators",
    ),
    "cross_validate of a raw member": (
        lambda accountant: cross_validate(
            VotingClassifier(
                [
                    ("a", classifier(accountant)),
                    ("b", make_pipeline(StandardScaler(), classifier(accountant))),
                ]
            ),
            X,
            y,
            scoring=scorer(accountant),
            cv=FOLDS,
        ),
        "use DPStandardScaler",
    ),
    "folds by labels, whose number is one of NumPy": (
        lambda accountant: cross_val_score(
            classifier(accountant), X, y, scoring=scorer(accountant), cv=np.int64(3)
        ),
        "depend on their labels",
    ),
    "stacking by labels, by a number of NumPy": (
        lambda accountant: StackingClassifier(
            [("a", classifier(accountant))], classifier(accountant), cv=np.int64(3)
        ).fit(X, y),
        "depend on their labels",
    ),
    "candidates of a curve": (
        lambda accountant: validation_curve(
            Pipeline([("scale", scaler(accountant)), ("model", classifier(accountant))]),
            X,
            y,
            param_name="scale",
            param_range=[scaler(accountant), StandardScaler()],
            scoring=scorer(accountant),
            cv=FOLDS,
        ),
        "use DPStandardScaler",
    ),
    "candidates in an array": (
        lambda accountant: GridSearchCV(
            Pipeline([("scale", scaler(accountant)), ("model", classifier(accountant))]),
            {"scale": np.array([scaler(accountant), StandardScaler()], dtype=object)},
            scoring=scorer(accountant),
            cv=FOLDS,
        ).fit(X, y),
        "use DPStandardScaler",
    ),
    "candidates for the steps": (
        lambda accountant: GridSearchCV(
            Pipeline([("scale", scaler(accountant)), ("model", classifier(accountant))]),
            {"steps": [[("scale", StandardScaler()), ("model", classifier(accountant))]]},
            scoring=scorer(accountant),
            cv=FOLDS,
        ).fit(X, y),
        "use DPStandardScaler",
    ),
    "cross_val_predict": (evaluated(cross_val_predict), "an answer for each raw row"),
    "permutation_test_score": (
        evaluated(permutation_test_score, cv=FOLDS, n_permutations=2),
        "rows of others",
    ),
    "learning_curve": (
        evaluated(learning_curve, cv=FOLDS, train_sizes=[0.5]),
        "scores of the raw rows",
    ),
    "validation_curve": (
        evaluated(validation_curve, param_name="C", param_range=[0.1, 1.0], cv=FOLDS),
        "scores of the raw rows",
    ),
    "RFECV": (around_classifier(RFECV, cv=FOLDS), "scores of the raw rows"),
    "sequential selection": (
        around_classifier(SequentialFeatureSelector, n_features_to_select=1, cv=FOLDS),
        "scores of the raw rows",
    ),
    "selection of a number that depends on rows": (
        around_classifier(SelectFromModel, max_features=lambda rows: int(rows.mean() > 0) + 1),
        "give max_features as a number",
    ),
    "such a selection in a pipeline": (
        lambda accountant: make_pipeline(
            SelectFromModel(classifier(accountant), max_features=lambda rows: 1),
            classifier(accountant),
        ).fit(X, y),
        "give max_features as a number",
    ),
    "self-training": (
        around_classifier(SelfTrainingClassifier, target=np.where(np.arange(300) % 5, y, -1)),
        "label of each raw row",
    ),
    "one versus one": (around_classifier(OneVsOneClassifier, target=three), "OneVsRestClassifier"),
    "one versus one in processes": (
        around_classifier(OneVsOneClassifier, target=three, n_jobs=2),
        "OneVsRestClassifier",
    ),
    "one versus one behind a private step": (
        lambda accountant: make_pipeline(
            scaler(accountant), OneVsOneClassifier(classifier(accountant))
        ).fit(X, three),
        "OneVsRestClassifier",
    ),
    "chain by labels": (
        around_classifier(ClassifierChain, target=two_outputs, cv=3),
        "depend on their labels",
    ),
    "scaler": (behind(StandardScaler()), "use DPStandardScaler"),
    "imputer and encoder": (
        behind(make_pipeline(SimpleImputer(), SplineTransformer())),
        "SplineTransformer",
    ),
    "quantiles": (behind(QuantileTransformer(n_quantiles=10)), "QuantileTransformer"),
    "selection": (behind(SelectKBest(k=2)), "SelectKBest"),
    "scaler in a column transformer": (
        behind(ColumnTransformer([("scale", StandardScaler(), [0])], remainder="passthrough")),
        "use DPStandardScaler",
    ),
    "encoder in a column transformer": (
        behind(ColumnTransformer([("words", OneHotEncoder(max_categories=3), [0])])),
        "OneHotEncoder",
    ),
    "scaler in a union": (
        behind(FeatureUnion([("scale", StandardScaler()), ("same", "passthrough")])),
        "use DPStandardScaler",
    ),
    "scaler beside a private step": (
        lambda accountant: ColumnTransformer(
            [("private", scaler(accountant), [0]), ("raw", StandardScaler(), [1])]
        ).fit(X, y),
        "use DPStandardScaler",
    ),
    "scaler before a plan": (
        lambda accountant: planned(accountant, scaled=True).fit(X, y),
        "use DPStandardScaler",
    ),
    "scaler of the target": (
        lambda accountant: TransformedTargetRegressor(
            regressor(accountant), transformer=StandardScaler()
        ).fit(X, target),
        "StandardScaler",
    ),
    "a scaler that was fitted before": (
        lambda accountant: make_pipeline(
            FrozenEstimator(StandardScaler().fit(X)), classifier(accountant)
        ).fit(X, y),
        "rows that skdp does not know",
    ),
    "a selection by a raw model that was fitted before": (
        lambda accountant: make_pipeline(
            SelectFromModel(LogisticRegression().fit(X, y), prefit=True), classifier(accountant)
        ).fit(X, y),
        "rows that skdp does not know",
    ),
    "voting with a raw member that was fitted before": (
        lambda accountant: VotingClassifier(
            [
                ("raw", FrozenEstimator(LogisticRegression().fit(X, y))),
                ("private", classifier(accountant)),
            ]
        ).fit(X, y),
        "members ['raw'] that learned from rows which skdp does not know",
    ),
    "a raw model behind private reports": (
        lambda accountant: make_pipeline(
            RandomizedResponseTransformer(0.1, categories=[[0.0, 1.0]] * 3, accountant=accountant),
            LogisticRegression(),
        ).fit(np.sign(X), y),
        "LogisticRegression",
    ),
    "a raw selection behind private reports": (
        lambda accountant: make_pipeline(
            RandomizedResponseTransformer(0.1, categories=[[0.0, 1.0]] * 3, accountant=accountant),
            SelectKBest(k=1),
        ).fit(np.sign(X), y),
        "SelectKBest",
    ),
    "a raw model behind a private step": (
        lambda accountant: make_pipeline(scaler(accountant), LogisticRegression()).fit(X, y),
        "LogisticRegression",
    ),
    "a scaler around a private search": (
        lambda accountant: make_pipeline(
            StandardScaler(),
            DPGridSearchCV(DPLogisticRegression(data_norm=2.0), GRID, accountant=accountant),
        ).fit(X, y),
        "use DPStandardScaler",
    ),
}


class Own(ClassifierMixin, BaseEstimator):
    """A user's own class around a private classifier, which gets the rows as they are."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X):
        return self.estimator_.predict(X)


class OwnPipeline(Pipeline):
    """A user's own class derived from one of scikit-learn."""


# What is private, as all of it is charged and no row tells of another: no word.
PRIVATE = {
    "a private score of a class around a private classifier": lambda accountant: cross_val_score(
        Own(classifier(accountant)), X, y, scoring=scorer(accountant), cv=FOLDS
    ),
    "a private score of a class derived from a pipeline": lambda accountant: cross_val_score(
        OwnPipeline([("scale", scaler(accountant)), ("model", classifier(accountant))]),
        X,
        y,
        scoring=scorer(accountant),
        cv=FOLDS,
    ),
    "a fit": lambda accountant: classifier(accountant).fit(X, y),
    "answers": lambda accountant: classifier(accountant).fit(X, y).predict_proba(X),
    "voting": lambda accountant: VotingClassifier(
        [("a", classifier(accountant)), ("b", classifier(accountant))]
    ).fit(X, y),
    "voting in processes": lambda accountant: VotingClassifier(
        [("a", classifier(accountant)), ("b", classifier(accountant))], n_jobs=2
    ).fit(X, y),
    "voting of regressors": lambda accountant: VotingRegressor([("a", regressor(accountant))]).fit(
        X, target
    ),
    "stacking of private stages": lambda accountant: StackingClassifier(
        [("a", classifier(accountant))], classifier(accountant), cv=FOLDS
    ).fit(X, y),
    "one versus rest": around_classifier(OneVsRestClassifier, target=three),
    "output codes": around_classifier(OutputCodeClassifier, target=three, random_state=0),
    "several outputs": lambda accountant: MultiOutputClassifier(
        classifier(accountant, classes=[0, 1])
    ).fit(X, two_outputs),
    "chain": lambda accountant: ClassifierChain(classifier(accountant, classes=[0, 1])).fit(
        X, two_outputs
    ),
    "selection by a private model": around_classifier(SelectFromModel),
    "elimination by a private model": around_classifier(RFE, n_features_to_select=1),
    "fixed threshold": around_classifier(FixedThresholdClassifier, threshold=0.3),
    "target by a function": around_regressor(
        TransformedTargetRegressor, func=np.tanh, inverse_func=np.arctanh, check_inverse=False
    ),
    "private steps": lambda accountant: make_pipeline(
        scaler(accountant), SelectFromModel(classifier(accountant)), classifier(accountant)
    ).fit(X, y),
    "steps that learn nothing": behind(Normalizer(), FunctionTransformer(np.abs)),
    "private columns": lambda accountant: make_pipeline(
        ColumnTransformer(
            [
                ("number", scaler(accountant), [0, 1]),
                (
                    "word",
                    DPOneHotEncoder(0.1, delta=1e-6, categories=[[0.0]], accountant=accountant),
                    [2],
                ),
            ],
            sparse_threshold=0,
        ),
        classifier(accountant),
    ).fit(X, y),
    "a plan": lambda accountant: planned(accountant).fit(X, y),
    "a plan with public steps": lambda accountant: split_budget(
        make_pipeline(StandardScaler(), DPLogisticRegression(data_norm=2.0)),
        0.1,
        1e-6,
        accountant,
        public_steps=["standardscaler"],
    ).fit(X, y),
    "clusters of private reports": lambda accountant: make_pipeline(
        RandomizedResponseTransformer(0.1, categories=[[0.0, 1.0]] * 3, accountant=accountant),
        StandardScaler(),
        KMeans(2),
    ).fit(np.sign(X), y),
    "selection by a fitted private model": lambda accountant: make_pipeline(
        SelectFromModel(classifier(accountant).fit(X, y), prefit=True), classifier(accountant)
    ).fit(X, y),
    "a frozen private step": lambda accountant: make_pipeline(
        FrozenEstimator(make_pipeline(scaler(accountant), Normalizer()).fit(X)),
        classifier(accountant),
    ).fit(X, y),
    "a plan with a frozen public step": lambda accountant: split_budget(
        make_pipeline(
            FrozenEstimator(StandardScaler().fit(X)), DPLogisticRegression(data_norm=2.0)
        ),
        0.1,
        1e-6,
        accountant,
        public_steps=["frozenestimator"],
    ).fit(X, y),
    "a private search": lambda accountant: DPGridSearchCV(
        DPLogisticRegression(data_norm=2.0), GRID, accountant=accountant
    ).fit(X, y),
    "a private search of a pipeline": lambda accountant: DPGridSearchCV(
        make_pipeline(DPStandardScaler(bounds=(-1, 1)), DPLogisticRegression(data_norm=2.0)),
        {"dplogisticregression__C": [0.1, 1.0]},
        accountant=accountant,
        n_jobs=2,
    ).fit(X, y),
    "grid search by a private score": lambda accountant: GridSearchCV(
        classifier(accountant), GRID, scoring=scorer(accountant), cv=FOLDS
    ).fit(X, y),
    "grid search by two private scores": lambda accountant: GridSearchCV(
        classifier(accountant),
        GRID,
        scoring={"a": scorer(accountant), "b": scorer(accountant)},
        refit="a",
        cv=FOLDS,
    ).fit(X, y),
    "grid search of a plan by a private score": lambda accountant: GridSearchCV(
        planned(accountant),
        {"dplogisticregression__C": [0.1, 1.0]},
        scoring=scorer(accountant),
        cv=FOLDS,
    ).fit(X, y),
    "a private search of scikit-learn in a pipeline": lambda accountant: make_pipeline(
        scaler(accountant),
        GridSearchCV(classifier(accountant), GRID, scoring=scorer(accountant), cv=FOLDS),
    ).fit(X, y),
    "halving by a private score": lambda accountant: HalvingGridSearchCV(
        classifier(accountant), GRID, scoring=scorer(accountant), cv=FOLDS, min_resources=100
    ).fit(X, y),
    "RFECV by a private score": lambda accountant: RFECV(
        classifier(accountant), scoring=scorer(accountant), cv=FOLDS
    ).fit(X, y),
    "sequential selection by a private score": lambda accountant: SequentialFeatureSelector(
        classifier(accountant), n_features_to_select=1, scoring=scorer(accountant), cv=FOLDS
    ).fit(X, y),
    "cross_val_score by a private score": lambda accountant: cross_val_score(
        classifier(accountant), X, y, scoring=scorer(accountant), cv=FOLDS
    ),
    "learning_curve by a private score": lambda accountant: learning_curve(
        classifier(accountant), X, y, scoring=scorer(accountant), cv=FOLDS, train_sizes=[0.5]
    ),
    "validation_curve by a private score": lambda accountant: validation_curve(
        classifier(accountant),
        X,
        y,
        param_name="C",
        param_range=[0.1],
        scoring=scorer(accountant),
        cv=FOLDS,
    ),
    "a copy": lambda accountant: pickle.loads(pickle.dumps(clone(classifier(accountant)))).fit(
        X, y
    ),
}


def happens(fit, accountant):
    """Return the texts of skdp's warnings about raw data, and the error that a fit raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit(accountant)
            error = None
        except (ValueError, RuntimeError) as raised:
            error = raised
    return [str(w.message) for w in caught if issubclass(w.category, RawDataWarning)], error


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", REFUSED)
def test_who_sets_seeds_or_repeats_rows_is_refused_before_the_charge(name):
    fit, remedy = REFUSED[name]
    accountant = budget(name)
    _, error = happens(fit, accountant)
    assert "Nothing was computed or charged" in str(error)
    assert remedy in str(error)
    spent = 0.1 if "frozen" in name else 0.0
    assert accountant.epsilon_spent == pytest.approx(spent)


@pytest.mark.quick_cases(every=32)
@pytest.mark.parametrize("name", WARNED)
def test_a_tool_that_computes_from_raw_rows_is_warned_of_once(name):
    fit, words = WARNED[name]
    accountant = budget(name)
    texts, error = happens(fit, accountant)
    assert error is None
    assert accountant.epsilon_spent > 0.0
    assert len(texts) == 1
    assert words in texts[0]


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("name", WARNED)
def test_the_warning_comes_before_the_charge(name):
    """Made an error it costs nothing, also where a tool goes on after the errors of its fits."""
    fit, words = WARNED[name]
    accountant = budget(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RawDataWarning)
        with pytest.raises((RawDataWarning, ValueError), match=re.escape(words)):
            fit(accountant)
    # A frozen model was fitted before.
    spent = 0.1 if "frozen" in name else 0.0
    assert accountant.epsilon_spent == pytest.approx(spent)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize("name", WARNED)
def test_a_ledger_can_refuse(name):
    fit, _ = WARNED[name]
    accountant = budget(name, on_raw_data="raise")
    _, error = happens(fit, accountant)
    assert "on_raw_data='raise'" in str(error)
    assert accountant.epsilon_spent == pytest.approx(0.1 if "frozen" in name else 0.0)


# Tools that give a private estimator to their workers as it is, without a copy.
SENT = {
    "one versus rest": lambda accountant: make_pipeline(
        StandardScaler(), OneVsRestClassifier(classifier(accountant), n_jobs=2)
    ).fit(X, three),
    "several outputs": lambda accountant: make_pipeline(
        StandardScaler(), MultiOutputClassifier(classifier(accountant), n_jobs=2)
    ).fit(X, two_outputs),
    "output codes": lambda accountant: make_pipeline(
        StandardScaler(), OutputCodeClassifier(classifier(accountant), random_state=0, n_jobs=2)
    ).fit(X, three),
    "a union": lambda accountant: FeatureUnion(
        [("private", scaler(accountant)), ("raw", StandardScaler())], n_jobs=2
    ).fit(X),
    "a union in a pipeline": lambda accountant: make_pipeline(
        StandardScaler(),
        FeatureUnion([("private", scaler(accountant)), ("same", "passthrough")], n_jobs=2),
        LogisticRegression(),
    ).fit(X, y),
    "calibration of a frozen model": lambda accountant: CalibratedClassifierCV(
        frozen(accountant), n_jobs=2
    ).fit(X, y),
}


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
@pytest.mark.parametrize("name", SENT)
def test_what_is_around_a_tool_is_seen_before_its_workers_charge(name, backend):
    spent = 0.1 if "frozen" in name else 0.0
    for rule in ("warn", "raise"):
        ledger = "memory://" if backend == "threading" else None
        accountant = PrivacyAccountant(100.0, 1e-2, ledger=ledger, on_raw_data=rule)
        with joblib.parallel_config(backend), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if rule == "warn":
                SENT[name](accountant)
                assert accountant.epsilon_spent > spent or "frozen" in name
            else:
                with pytest.raises(ValueError, match="on_raw_data='raise'"):
                    SENT[name](accountant)
                assert accountant.epsilon_spent == pytest.approx(spent)
        texts = [w for w in caught if issubclass(w.category, RawDataWarning)]
        assert len(texts) == (rule == "warn")


@pytest.mark.thorough
@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "threading"])
def test_private_tools_in_workers_are_not_warned_of(backend):
    accountant = PrivacyAccountant(100.0, 1e-2, on_raw_data="raise")
    with joblib.parallel_config(backend):
        texts, error = happens(
            lambda a: make_pipeline(
                FeatureUnion([("private", scaler(a)), ("same", "passthrough")], n_jobs=2),
                OneVsRestClassifier(classifier(a), n_jobs=2),
            ).fit(X, three),
            accountant,
        )
    assert (texts, error) == ([], None)


def test_a_pickle_that_is_no_task_is_not_looked_at(tmp_path):
    """A step of a raw pipeline may store a private model, in any thread."""
    model = classifier(budget("in processes", on_raw_data="raise"))

    class Stores(Normalizer):
        def fit(self, X, y=None):
            for store in (
                lambda: pickle.dumps(model),
                lambda: copy.deepcopy(model),
                lambda: joblib.dump(model, tmp_path / "model.joblib"),
                lambda: joblib.hash(model),
            ):
                store()
                results = joblib.Parallel(2, backend="threading")([joblib.delayed(store)()] * 2)
                assert len(results) == 2
            return self

    pipe = Pipeline([("scale", StandardScaler()), ("stores", Stores())])
    texts, error = happens(lambda _: pipe.fit(X), None)
    assert (texts, error) == ([], None)


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_private_is_not_warned_of(name):
    accountant = budget(name, on_raw_data="raise")
    texts, error = happens(PRIVATE[name], accountant)
    assert (texts, error) == ([], None)
    assert accountant.epsilon_spent > 0.0


TOOL = """
from sklearn.base import BaseEstimator, ClassifierMixin, clone

class Wrapper(ClassifierMixin, BaseEstimator):
    def __init__(self, estimator, seed=None):
        self.estimator = estimator
        self.seed = seed

    def fit(self, X, y):
        self.model_ = clone(self.estimator)
        if self.seed is not None:
            self.model_.set_params(random_state=self.seed)
        self.model_.fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)

def call(function):
    return function()
"""


def installed(path, monkeypatch, more=""):
    """Return a module as a package of that path would define it."""
    module = types.ModuleType("some_tool")
    monkeypatch.setitem(sys.modules, "some_tool", module)
    exec(compile(more + TOOL, path, "exec"), vars(module))
    return module


def test_an_unknown_tool_is_named_and_a_script_is_not(monkeypatch):
    path = "/usr/lib/python3/site-packages/some_tool.py"
    tool = installed(path, monkeypatch)
    texts, error = happens(lambda a: tool.Wrapper(classifier(a)).fit(X, y), budget())
    assert error is None
    assert len(texts) == 1
    assert (
        "Wrapper of some_tool around DPLogisticRegression is a tool that skdp does not know"
        in (texts[0])
    )
    # It calls what the user wrote.
    assert happens(lambda a: tool.call(lambda: classifier(a).fit(X, y)), budget()) == ([], None)
    # Code that was written for skdp, and the user's own.
    for own in (
        installed(path, monkeypatch, "import skdp\n"),
        installed(path, monkeypatch, "import skdp.linear_model as private_models\n"),
        installed(path, monkeypatch, "from skdp import DPLogisticRegression\n"),
        installed("/home/me/scripts/some_tool.py", monkeypatch),
    ):
        assert happens(lambda a, own=own: own.Wrapper(classifier(a)).fit(X, y), budget()) == (
            [],
            None,
        )


def test_an_unknown_tool_is_seen_around_classes_of_the_users(monkeypatch):
    """What the user's own `fit` gets is what the tool gives."""
    tool = installed("/usr/lib/python3/site-packages/some_tool.py", monkeypatch)

    class Own(DPLogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    class Around(tool.ClassifierMixin, tool.BaseEstimator):
        def __init__(self, estimator):
            self.estimator = estimator

        def fit(self, X, y):
            clone(self.estimator).fit(X, y)
            return self

    def own(accountant):
        return Own(0.1, delta=1e-6, data_norm=2.0, accountant=accountant)

    for build in (own, lambda a: Around(classifier(a)), lambda a: Around(own(a))):
        texts, error = happens(lambda a, b=build: tool.Wrapper(b(a)).fit(X, y), budget())
        assert error is None
        assert len(texts) == 1
        assert "Wrapper of some_tool" in texts[0]
        # By themselves, in one's own function, and in a tool that only calls functions.
        assert happens(lambda a, b=build: b(a).fit(X, y), budget()) == ([], None)
        assert happens(
            lambda a, b=build: tool.call(lambda: b(a).fit(X, y)), budget(on_raw_data="raise")
        ) == ([], None)


def test_a_seed_that_an_unknown_tool_sets_is_refused(monkeypatch):
    tool = installed("/usr/lib/python3/site-packages/some_tool.py", monkeypatch)
    accountant = budget()
    # A tool may also set a generator, which skdp refuses for a reason that would not name the tool.
    for seed in (3, np.random.RandomState(3)):
        _, error = happens(
            lambda a, seed=seed: tool.Wrapper(classifier(a), seed=seed).fit(X, y), accountant
        )
        assert "Wrapper of some_tool around DPLogisticRegression sets the seed" in str(error)
        assert accountant.epsilon_spent == 0.0
    # One's own is passed on, and warned of by another warning.
    texts, error = happens(
        lambda a: tool.Wrapper(classifier(a, random_state=3), seed=3).fit(X, y), accountant
    )
    assert error is None
    assert "is a tool that skdp does not know" in texts[0]


def test_each_call_of_a_tool_is_warned_of():
    search = GridSearchCV(classifier(budget()), GRID, cv=FOLDS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
        search.fit(X, y)
        clone(search).fit(X, y)
    assert sum(issubclass(w.category, RawDataWarning) for w in caught) == 3
    # The warning points to the line that called the tool.
    assert {w.filename for w in caught if issubclass(w.category, RawDataWarning)} == {__file__}


@pytest.mark.quick_cases(every=14)
@pytest.mark.parametrize("name", WARNED)
def test_a_loop_over_one_object_is_warned_of_each_time(name):
    """The frames of its calls have the same address, one after the other."""
    if "in processes" in name:
        pytest.skip("one start of processes is enough")
    fit, _ = WARNED[name]
    accountant = budget(name)
    fitted = []
    texts, error = happens(lambda a: fitted.extend(fit(a) for _ in range(2)), accountant)
    assert error is None
    assert len(texts) == 2
    model = fitted[0]
    if not hasattr(model, "get_params"):
        return

    def again(_):
        for _ in range(3):
            labels = target if "regressors" in name or "target" in name else y
            model.fit(X, three if "one versus one" in name else labels)

    if not any(word in name for word in ("chain", "frozen", "start", "self-training")):
        assert len(happens(again, None)[0]) == 3


THREADED = {
    "grid search": lambda a: GridSearchCV(
        make_pipeline(StandardScaler(), classifier(a)), {}, cv=FOLDS, n_jobs=2
    ),
    "private scores": lambda a: GridSearchCV(
        make_pipeline(StandardScaler(), classifier(a)), {}, scoring=scorer(a), cv=FOLDS, n_jobs=2
    ),
    "private scores of a raw model": lambda a: GridSearchCV(
        LogisticRegression(), GRID, scoring=scorer(a), cv=FOLDS, n_jobs=2
    ),
    "voting": lambda a: VotingClassifier(
        [(name, make_pipeline(StandardScaler(), classifier(a))) for name in ("a", "b")], n_jobs=2
    ),
    "one versus rest": lambda a: OneVsRestClassifier(
        make_pipeline(StandardScaler(), classifier(a)), n_jobs=2
    ),
    "a search inside": lambda a: OneVsRestClassifier(
        GridSearchCV(classifier(a), GRID, cv=FOLDS), n_jobs=2
    ),
    "stacking": lambda a: StackingClassifier(
        [("a", make_pipeline(StandardScaler(), classifier(a))), ("b", classifier(a))],
        cv=FOLDS,
        n_jobs=2,
    ),
    "calibration": lambda a: CalibratedClassifierCV(
        make_pipeline(StandardScaler(), classifier(a)), cv=FOLDS, n_jobs=2
    ),
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", THREADED)
def test_threads_of_one_tool_warn_once(name):
    labels = three if name in ("one versus rest", "a search inside") else y
    for _ in range(3):
        with joblib.parallel_config("threading"):
            texts, error = happens(lambda a: THREADED[name](a).fit(X, labels), budget())
        assert error is None
        assert len(texts) == 1


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", ["private scores", "voting", "one versus rest"])
def test_workers_do_not_repeat_the_warning_of_their_tool(name, capfd):
    labels = three if name == "one versus rest" else y
    accountant = budget("in processes")
    texts, error = happens(lambda a: THREADED[name](a).fit(X, labels), accountant)
    assert error is None
    assert len(texts) == 1
    assert "RawDataWarning" not in capfd.readouterr().err


class OwnScaled(ClassifierMixin, BaseEstimator):
    """A class of the user that fits a scaler and then a classifier, several times."""

    def __init__(self, scale, model):
        self.scale = scale
        self.model = model

    def fit(self, X, y):
        for _ in range(2):
            self.scale_ = self.scale if hasattr(self.scale, "n_features_in_") else clone(self.scale)
            if not isinstance(self.scale, FrozenEstimator):
                self.scale_.fit(X)
            self.model_ = clone(self.model).fit(self.scale_.transform(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(self.scale_.transform(X))


class OwnAround(OwnScaled):
    """A class of the user that creates another one in its fit."""

    def fit(self, X, y):
        self.model_ = OwnScaled(StandardScaler(), clone(self.model)).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X):
        return self.model_.predict(X)


OWN = {
    "raw": lambda a: OwnScaled(StandardScaler(), classifier(a)),
    "raw in a pipeline": lambda a: OwnScaled(
        Normalizer(), make_pipeline(StandardScaler(), classifier(a))
    ),
    "a search by raw scores": lambda a: OwnScaled(
        Normalizer(), GridSearchCV(classifier(a), {}, cv=FOLDS)
    ),
    "created in fit": lambda a: OwnAround(None, classifier(a)),
    "created in the fit of a tool": lambda a: VotingClassifier(
        [(name, OwnAround(None, classifier(a))) for name in ("a", "b")]
    ),
}
OWN_PRIVATE = {
    "private": lambda a: OwnScaled(scaler(a), classifier(a)),
    "stateless": lambda a: OwnScaled(Normalizer(), classifier(a)),
    "frozen": lambda a: OwnScaled(FrozenEstimator(StandardScaler().fit(X)), classifier(a)),
    "a search by private scores": lambda a: OwnScaled(
        Normalizer(), GridSearchCV(classifier(a), GRID, scoring=scorer(a), cv=FOLDS)
    ),
}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("name", OWN)
def test_raw_steps_of_a_class_of_the_user_are_named_before_the_charge(name):
    accountant = budget()
    texts, error = happens(lambda a: OWN[name](a).fit(X, y), accountant)
    assert error is None
    assert len(texts) == 1
    assert "Own" in texts[0]
    assert ("GridSearchCV in" if "search" in name else "StandardScaler in") in texts[0]
    strict = budget(on_raw_data="raise")
    _, error = happens(lambda a: OWN[name](a).fit(X, y), strict)
    assert "on_raw_data='raise'" in str(error)
    assert strict.epsilon_spent == 0.0


@pytest.mark.parametrize("name", OWN_PRIVATE)
def test_private_and_stateless_parts_of_a_class_of_the_user_raise_no_warning(name):
    texts, error = happens(lambda a: OWN_PRIVATE[name](a).fit(X, y), budget(on_raw_data="raise"))
    assert error is None
    assert not texts


def test_what_was_warned_of_is_refused_once_warnings_are_errors():
    accountant = budget()
    search = GridSearchCV(classifier(accountant), GRID, cv=FOLDS)
    spent = []
    for action in ("always", "error", "error"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter(action, RawDataWarning)
            try:
                search.fit(X, y)
            except RawDataWarning:
                pass
        spent.append(accountant.epsilon_spent)
    assert spent[0] > 0.0
    assert spent[1:] == [spent[0]] * 2


PRICED = {
    # 2 candidates, 3 folds and the fit at the end charge .1 each, and 6 scores as much.
    "grid": (lambda m, s: GridSearchCV(m, GRID, scoring=s, cv=FOLDS), 0.7, 0.6, True),
    "random": (
        lambda m, s: RandomizedSearchCV(m, GRID, n_iter=2, scoring=s, cv=FOLDS),
        0.7,
        0.6,
        True,
    ),
    "without refit": (
        lambda m, s: GridSearchCV(m, GRID, scoring=s, cv=FOLDS, refit=False),
        0.6,
        0.6,
        True,
    ),
    "with scores of training rows": (
        lambda m, s: GridSearchCV(m, GRID, scoring=s, cv=FOLDS, return_train_score=True),
        0.7,
        1.2,
        True,
    ),
    # 3 + 2 features are tried in 3 folds.
    "sequential": (
        lambda m, s: SequentialFeatureSelector(m, n_features_to_select=2, scoring=s, cv=FOLDS),
        1.5,
        1.5,
        True,
    ),
    "sequential backward": (
        lambda m, s: SequentialFeatureSelector(
            m, n_features_to_select=1, direction="backward", scoring=s, cv=FOLDS
        ),
        1.5,
        1.5,
        True,
    ),
    "sequential by default": (
        lambda m, s: SequentialFeatureSelector(m, scoring=s, cv=FOLDS),
        0.9,
        0.9,
        True,
    ),
    # 3 features are eliminated in 3 folds, and at the end as many as the scores say.
    "RFECV": (lambda m, s: RFECV(m, scoring=s, cv=FOLDS), 1.1, 0.9, False),
    "RFECV by two": (
        lambda m, s: RFECV(m, scoring=s, cv=FOLDS, step=2, min_features_to_select=1),
        0.8,
        0.6,
        False,
    ),
    # It scores training rows by default.
    "halving": (
        lambda m, s: HalvingGridSearchCV(m, GRID, scoring=s, cv=FOLDS, min_resources=100),
        0.7,
        1.2,
        False,
    ),
    # The number of labels is a matter of the rows.
    "one against the rest": (
        lambda m, s: GridSearchCV(OneVsRestClassifier(m), {}, scoring=s, cv=FOLDS),
        0.4,
        0.3,
        False,
    ),
}


@pytest.mark.quick_cases(every=22)
@pytest.mark.parametrize("is_private", [True, False])
@pytest.mark.parametrize("name", PRICED)
def test_a_search_that_the_budget_cannot_pay_is_refused_before_its_first_fit(name, is_private):
    build, fits, scores, is_exact = PRICED[name]
    asked = fits + scores * is_private
    labels = three if name == "one against the rest" else y
    words = f"epsilon {asked:.6g} " + ("in all" if is_exact else "or more")
    for cap in (10.0, asked + 1e-9, asked - 0.05):
        accountant = PrivacyAccountant(cap, 1e-2, ledger="memory://")
        scoring = scorer(accountant) if is_private else "accuracy"
        search = build(classifier(accountant), scoring)
        texts, error = happens(lambda a, s=search: s.fit(X, labels), accountant)
        if cap < asked:
            assert f"{words}, and the budget has {cap:.6g} left" in str(error)
            assert accountant.epsilon_spent == 0.0
        elif is_exact or cap == 10.0:
            assert error is None
            spent = accountant.epsilon_spent
            assert spent == pytest.approx(asked) if is_exact else spent >= asked - 1e-9
            assert is_private or f"{words}, of {cap:.6g} left" in texts[0]


def test_a_search_whose_candidates_are_estimators_has_no_price():
    """The model in the place of which they are tried may ask for more than all of them."""
    accountant = PrivacyAccountant(2.0, 1e-2, ledger="memory://")
    large = DPLogisticRegression(1.9, delta=1e-6, data_norm=2.0, accountant=accountant)
    candidates = [classifier(accountant), classifier(accountant, C=0.1)]
    search = GridSearchCV(
        Pipeline([("model", large)]), {"model": candidates}, scoring=scorer(accountant), cv=FOLDS
    )
    texts, error = happens(lambda a: search.fit(X, y), accountant)
    assert (texts, error) == ([], None)
    assert accountant.epsilon_spent == pytest.approx(1.3)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("is_alone", [True, False])
def test_what_is_frozen_costs_a_search_nothing(is_alone):
    """It was paid when it was fitted: only the scores and the other steps are."""
    accountant = PrivacyAccountant(3.0, 1e-2, ledger="memory://")
    fitted = DPLogisticRegression(1.0, delta=1e-6, data_norm=2.0, accountant=accountant).fit(X, y)
    first = FrozenEstimator(fitted)
    if is_alone:
        model, more = Pipeline([("model", first)]), 0.3
    else:
        model = make_pipeline(SelectFromModel(first), classifier(accountant))
        more = 0.7
    search = GridSearchCV(model, {}, scoring=scorer(accountant), cv=FOLDS)
    texts, error = happens(lambda a: search.fit(X, y), accountant)
    assert (texts, error) == ([], None)
    assert accountant.epsilon_spent == pytest.approx(1.0 + more)


def test_a_subclass_of_a_tool_is_judged_as_the_tool_is():
    class OwnRFECV(RFECV):
        pass

    accountant = budget()
    texts, error = happens(around_classifier(OwnRFECV, cv=FOLDS), accountant)
    assert error is None
    assert [text for text in texts if "OwnRFECV around DPLogisticRegression publishes" in text]
    _, error = happens(around_classifier(OwnRFECV, cv=FOLDS), budget(on_raw_data="raise"))
    assert "scores of the raw rows" in str(error)


BOOTSTRAP = [(np.r_[np.arange(150), np.arange(50)], np.arange(150, 300))] * 2
TWICE_SCORED = [(np.arange(150), np.r_[np.arange(150, 300), 299])] * 2
WITH_FOLDS = {
    "grid search": lambda a, cv: GridSearchCV(classifier(a), GRID, scoring=scorer(a), cv=cv).fit(
        X, y
    ),
    "halving": lambda a, cv: HalvingGridSearchCV(
        classifier(a), GRID, scoring=scorer(a), cv=cv, min_resources=300
    ).fit(X, y),
    "cross_val_score": lambda a, cv: cross_val_score(classifier(a), X, y, scoring=scorer(a), cv=cv),
    "cross_validate": lambda a, cv: cross_validate(classifier(a), X, y, scoring=scorer(a), cv=cv),
    "RFECV": lambda a, cv: RFECV(classifier(a), scoring=scorer(a), cv=cv).fit(X, y),
    "sequential selection": lambda a, cv: SequentialFeatureSelector(
        classifier(a), n_features_to_select=1, scoring=scorer(a), cv=cv
    ).fit(X, y),
    "calibration": lambda a, cv: CalibratedClassifierCV(classifier(a), cv=cv).fit(X, y),
    "stacking": lambda a, cv: StackingClassifier([("a", classifier(a))], classifier(a), cv=cv).fit(
        X, y
    ),
    "chain": lambda a, cv: ClassifierChain(classifier(a), cv=cv).fit(X, two_outputs),
}


@pytest.mark.parametrize("name", WITH_FOLDS)
def test_listed_folds_with_a_row_twice_are_refused(name):
    as_array = np.array([(np.arange(150) // 2, np.arange(150, 300))] * 2)
    all_folds = [BOOTSTRAP, TWICE_SCORED, tuple(BOOTSTRAP), list(as_array), as_array]
    if name == "calibration" and sklearn.__version__.startswith("1.7"):
        # It compared an array with a word and raised an error of its own.
        all_folds = all_folds[:4]
    for folds in all_folds:
        # These two have read an iterator only after the first charge, or not at all.
        for cv in (folds, iter(folds))[: 1 if name in ("stacking", "chain") else 2]:
            accountant = budget()
            _, error = happens(lambda a, cv=cv: WITH_FOLDS[name](a, cv), accountant)
            assert "list rows more than once" in str(error)
            assert "Nothing was computed or charged" in str(error)
            assert accountant.epsilon_spent == 0.0


GENERATORS = {
    "stratified": lambda: StratifiedKFold(3).split(X, y),
    "repeated": lambda: RepeatedStratifiedKFold(n_splits=2, n_repeats=1).split(X, y),
    "shuffled": lambda: StratifiedShuffleSplit(2, random_state=0).split(X, y),
    "expression": lambda: (fold for fold in StratifiedKFold(3).split(X, y)),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("name", sorted(set(WITH_FOLDS) - {"calibration"}))
def test_generated_folds_are_judged_by_their_splitter(name, generator):
    """It is seen before the folds are read, and so before the charge."""
    accountant = budget(on_raw_data="raise")
    _, error = happens(lambda a: WITH_FOLDS[name](a, GENERATORS[generator]()), accountant)
    assert "depend on their labels" in str(error)
    assert accountant.epsilon_spent == 0.0
    # A shuffle makes no partition, which some of the tools ask for. Halving in scikit-learn 1.7
    # takes no generators.
    if generator == "stratified" and name != "halving":
        texts, error = happens(lambda a: WITH_FOLDS[name](a, GENERATORS[generator]()), budget())
        assert error is None
        assert len(texts) == 1


@pytest.mark.parametrize("name", sorted(set(WITH_FOLDS) - {"calibration", "chain", "halving"}))
def test_generated_folds_by_row_numbers_are_private(name):
    accountant = budget(on_raw_data="raise")
    assert happens(lambda a: WITH_FOLDS[name](a, FOLDS.split(X)), accountant) == ([], None)


@pytest.mark.parametrize("name", ["stacking", "chain"])
def test_folds_that_are_read_after_a_charge_are_refused_before_it(name):
    def own():
        yield from FOLDS.split(X)

    values = dict(enumerate(FOLDS.split(X))).values()
    for folds in (iter(list(FOLDS.split(X))), own(), values):
        accountant = budget()
        _, error = happens(lambda a, cv=folds: WITH_FOLDS[name](a, cv), accountant)
        assert "give it a list of folds, or a splitter" in str(error)
        assert accountant.epsilon_spent == 0.0


SCORED = {
    "grid search": lambda s, **more: GridSearchCV(
        LogisticRegression(), GRID, scoring=s, cv=FOLDS, **more
    ).fit(X, y),
    "two scores": lambda s, **more: GridSearchCV(
        LogisticRegression(), GRID, scoring={"a": s, "b": s}, refit="a", cv=FOLDS, **more
    ).fit(X, y),
    "random search": lambda s, **more: RandomizedSearchCV(
        LogisticRegression(), GRID, n_iter=2, scoring=s, cv=FOLDS, **more
    ).fit(X, y),
    "halving": lambda s, **more: HalvingGridSearchCV(
        LogisticRegression(), GRID, scoring=s, cv=FOLDS, min_resources=100, **more
    ).fit(X, y),
    "cross_val_score": lambda s, **more: cross_val_score(
        LogisticRegression(), X, y, scoring=s, cv=FOLDS, **more
    ),
    "learning_curve": lambda s, **more: learning_curve(
        LogisticRegression(), X, y, scoring=s, cv=FOLDS, **more
    ),
}


# Workers are started for one search: that takes the time of hundreds of fits.
@pytest.mark.parametrize(
    "more", [{}, {"error_score": "raise"}, pytest.param({"n_jobs": 2}, marks=pytest.mark.thorough)]
)
@pytest.mark.parametrize("name", SCORED)
def test_a_refused_score_ends_a_search(name, more):
    """It is no score of NaN, after which the search would fit the raw model."""
    accountant = PrivacyAccountant(100.0, 1e-2, on_raw_data="raise")
    _, error = happens(lambda a: SCORED[name](scorer(a), **more), accountant)
    text = "DPScorer scores a model that learns from raw rows"
    if "n_jobs" in more:
        # It is refused when the scorer's accountant is sent, before a score.
        text = "around a private release has steps that learn from raw rows: LogisticRegression"
    assert text in str(error)
    assert ("score a private model" in str(error)) == ("n_jobs" not in more)
    assert accountant.epsilon_spent == 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RawDataWarning)
        with pytest.raises((RawDataWarning, ValueError), match=text):
            SCORED[name](scorer(budget(" in processes")), **more)


def test_listed_folds_with_each_row_once_are_taken():
    masks = [(np.arange(300) % 2 == i, np.arange(300) % 2 != i) for i in (0, 1)]
    for cv in (list(FOLDS.split(X)), masks):
        accountant = budget(on_raw_data="raise")
        texts, error = happens(lambda a, cv=cv: WITH_FOLDS["grid search"](a, cv), accountant)
        assert (texts, error) == ([], None)


MEMBERS = {
    "a pipeline": (lambda a: make_pipeline(StandardScaler(), classifier(a)), False),
    "a deep pipeline": (
        lambda a: VotingClassifier([("p", make_pipeline(StandardScaler(), classifier(a)))]),
        False,
    ),
    "a calibration": (lambda a: CalibratedClassifierCV(classifier(a)), False),
    "a bagging": (lambda a: BaggingClassifier(classifier(a)), True),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_all_members_are_looked_at_before_the_first_is_charged(name):
    build, is_refused = MEMBERS[name]
    for ensemble in (
        lambda a: VotingClassifier([("first", classifier(a)), ("last", build(a))]),
        lambda a: StackingClassifier(
            [("first", classifier(a)), ("last", build(a))], classifier(a), cv=FOLDS
        ),
        lambda a: StackingClassifier([("first", classifier(a))], build(a), cv=FOLDS),
    ):
        accountant = budget(on_raw_data="warn" if is_refused else "raise")
        _, error = happens(lambda a, e=ensemble: e(a).fit(X, y), accountant)
        assert "of the member" in str(error)
        assert accountant.epsilon_spent == 0.0


CANDIDATES = {
    "a raw step": lambda a: ("s", [scaler(a), StandardScaler()]),
    "a raw step inside a pipeline": lambda a: (
        "s",
        [scaler(a), make_pipeline(Normalizer(), StandardScaler())],
    ),
    "a raw model": lambda a: ("c", [classifier(a), LogisticRegression()]),
    "a calibration": lambda a: ("c", [classifier(a), CalibratedClassifierCV(classifier(a))]),
    "a bagging": lambda a: ("c", [classifier(a), BaggingClassifier(classifier(a))]),
}


@pytest.mark.parametrize("kind", [GridSearchCV, RandomizedSearchCV])
@pytest.mark.parametrize("name", CANDIDATES)
def test_raw_candidates_of_a_search_are_found_before_the_first_charge(name, kind):
    """Also where all scores are private, and in a list of grids."""
    accountant = budget(on_raw_data="raise")
    step, values = CANDIDATES[name](accountant)
    more = {"n_iter": 2} if kind is RandomizedSearchCV else {}
    for grid in ({step: values}, [{step: values[:1]}, {step: values}]):
        pipe = Pipeline([("s", scaler(accountant)), ("c", classifier(accountant))])
        search = kind(pipe, grid, scoring=scorer(accountant), cv=FOLDS, **more)
        _, error = happens(lambda a, s=search: s.fit(X, y), accountant)
        assert f"among the candidates for {step!r}" in str(error)
        assert accountant.epsilon_spent == 0.0


def test_resamplers_among_candidates_are_refused():
    imblearn = pytest.importorskip("imblearn")
    accountant = budget()
    pipe = imblearn.pipeline.Pipeline([("o", "passthrough"), ("c", classifier(accountant))])
    grid = {"o": ["passthrough", imblearn.over_sampling.RandomOverSampler()]}
    search = GridSearchCV(pipe, grid, scoring=scorer(accountant), cv=FOLDS)
    _, error = happens(lambda _: search.fit(X, y), accountant)
    assert "RandomOverSampler" in str(error)
    assert "Nothing was computed or charged" in str(error)
    assert accountant.epsilon_spent == 0.0


def test_a_verbose_search_says_its_price(capsys):
    accountant = budget()
    GridSearchCV(classifier(accountant), GRID, scoring=scorer(accountant), cv=FOLDS, verbose=1).fit(
        X, y
    )
    words = "GridSearchCV: its 7 fits and their scores charge epsilon 1.3 in all, of 100 left"
    assert capsys.readouterr().out.count(words) == 1


@pytest.mark.parametrize("is_private", [True, False])
def test_a_selection_with_a_frozen_model_says_what_its_scores_charge(is_private):
    accountant = budget()
    model = FrozenEstimator(classifier(accountant).fit(X[:, :1], y))
    scoring = scorer(accountant) if is_private else "accuracy"
    # Its folds raise a warning.
    selection = SequentialFeatureSelector(model, n_features_to_select=1, scoring=scoring, cv=3)
    texts, _ = happens(lambda _: selection.fit(X, y), accountant)
    assert len(texts) == 1
    assert ("its scores charge epsilon" in texts[0]) == is_private
    assert "fits and their scores" not in texts[0]


def test_a_fit_in_a_thread_sees_what_is_around_it_there():
    texts = []

    def run():
        texts.extend(happens(WARNED["calibration"][0], budget())[0])

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(texts) == 1


def test_the_rule_is_kept_in_the_ledger(tmp_path):
    path = tmp_path / "ledger.db"
    PrivacyAccountant(1.0, 1e-6, on_raw_data="raise", ledger=path)
    with pytest.raises(LedgerError, match="opened with another configuration"):
        PrivacyAccountant(1.0, 1e-6, ledger=path)
    again = PrivacyAccountant(1.0, 1e-6, on_raw_data="raise", ledger=path)
    assert again.config.on_raw_data == "raise"
    assert pickle.loads(pickle.dumps(again)).config.on_raw_data == "raise"
    assert again.reserve(0.5).config.on_raw_data == "raise"
    with pytest.raises(ValueError, match="on_raw_data"):
        PrivacyAccountant(1.0, 1e-6, on_raw_data="ignore")


def test_steps_of_a_plan_follow_the_rule_of_their_ledger():
    accountant = budget(on_raw_data="raise")
    _, error = happens(lambda a: planned(a, scaled=True).fit(X, y), accountant)
    assert "on_raw_data='raise'" in str(error)
    assert accountant.epsilon_spent == 0.0


def test_what_a_warning_says_is_not_computed_from_rows():
    """Neighboring tables, of any values, get the same words."""
    texts = set()
    for rows, labels in ((X, y), (np.zeros_like(X), 1 - y), (1e6 * X, np.roll(y, 1))):
        model = CalibratedClassifierCV(classifier(budget()), cv=FOLDS)
        found, _ = happens(lambda a, m=model, r=rows, z=labels: m.fit(r, z), None)
        texts |= set(found)
    assert len(texts) == 1
