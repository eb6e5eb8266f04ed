"""Private evaluation of models: one charge, the right numbers, whose rows are protected."""

import json
import warnings

import dask.array
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn import metrics as sk
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.dummy import DummyRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPGridSearchCV,
    DPHistogramNB,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPStandardScaler,
    PrivacyAccountant,
    RawDataWarning,
    dp_cross_validate,
    dp_evaluate,
)
from skdp.model_selection import bounded_score, dp_cross_val_score, make_dp_scorer

pytestmark = pytest.mark.filterwarnings(
    "ignore::skdp.SeededNoiseWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)

ALMOST_NONE = 1e9


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(4000, 6, n_informative=4, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def model(table):
    X, y = table
    return DPLogisticRegression(epsilon=4.0, delta=1e-6, random_state=0).fit(X[:2000], y[:2000])


@pytest.fixture(scope="module")
def three():
    X, y = make_classification(4000, 6, n_informative=4, n_classes=3, random_state=0)
    model = DPLogisticRegression(epsilon=8.0, delta=1e-6, random_state=0)
    return model.fit(X[:2000], y[:2000]), X[2000:], y[2000:]


def test_metrics_are_those_of_sklearn_without_noise(table, model):
    X, y = (part[2000:] for part in table)
    report = dp_evaluate(model, X, y, epsilon=ALMOST_NONE)
    predicted = model.predict(X)
    scores = model.predict_proba(X)[:, 1]
    exact = {
        "accuracy": sk.accuracy_score(y, predicted),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
        "precision": sk.precision_score(y, predicted),
        "recall": sk.recall_score(y, predicted),
        "f1": sk.f1_score(y, predicted),
    }
    for name, value in exact.items():
        assert report[name] == pytest.approx(value, abs=1e-6), name
    assert np.allclose(report.confusion_matrix_, sk.confusion_matrix(y, predicted), atol=1e-4)
    assert report["roc_auc"] == pytest.approx(sk.roc_auc_score(y, scores), abs=1e-3)
    low, high = report["average_precision"].noise_interval
    assert low <= sk.average_precision_score(y, scores) <= high
    assert report["brier_score"] == pytest.approx(sk.brier_score_loss(y, scores), abs=1e-3)
    clipped = np.clip(scores, np.exp(-5), 1 - np.exp(-5))
    assert report["log_loss"] == pytest.approx(sk.log_loss(y, clipped), abs=0.01)
    share = max(np.mean(y), 1 - np.mean(y))
    assert report.baselines_["accuracy"] == pytest.approx(share, abs=1e-6)
    assert report.is_better_than_guessing("accuracy")


def test_persons_count_as_one_row_each(table, model):
    X, y = (part[2000:] for part in table)
    persons = np.random.default_rng(0).integers(0, 600, len(y))
    accountant = PrivacyAccountant(1e10, 0.0, unit="person")
    report = dp_evaluate(model, X, y, epsilon=ALMOST_NONE, groups=persons, accountant=accountant)
    weights = 1.0 / np.bincount(persons)[persons]
    expected = sk.accuracy_score(y, model.predict(X), sample_weight=weights)
    assert report["accuracy"] == pytest.approx(expected, abs=1e-6)
    scores = model.predict_proba(X)[:, 1]
    expected = sk.roc_auc_score(y, scores, sample_weight=weights)
    assert report["roc_auc"] == pytest.approx(expected, abs=1e-3)
    assert "person" in report.privacy_.unit


def test_several_classes(three):
    model, X, y = three
    report = dp_evaluate(model, X, y, epsilon=ALMOST_NONE)
    assert list(report.scores_) == ["accuracy", "balanced_accuracy"]
    assert report["accuracy"] == pytest.approx(sk.accuracy_score(y, model.predict(X)), abs=1e-6)
    assert np.allclose(
        report.confusion_matrix_, sk.confusion_matrix(y, model.predict(X)), atol=1e-4
    )
    top = model.predict_proba(X).max(axis=1)
    is_right = model.predict(X) == y
    bin_of_row = np.clip(np.ceil(top * 8) - 1, 0, 7).astype(int)
    for number, fraction in enumerate(report.calibration_curve_.y):
        rows = bin_of_row == number
        if rows.sum() > 5:
            assert fraction == pytest.approx(is_right[rows].mean(), abs=1e-4)
    report = dp_evaluate(model, X, y, epsilon=ALMOST_NONE, metrics=["roc_auc_ovr"])
    expected = sk.roc_auc_score(y, model.predict_proba(X), multi_class="ovr")
    assert report["roc_auc_ovr"] == pytest.approx(expected, abs=5e-3)
    # The histograms of three classes raise the sensitivity from 2 to 5.
    plain, more = (
        dp_evaluate(model, X, y, epsilon=1.0, metrics=names).privacy_
        for names in (["accuracy"], ["accuracy", "roc_auc_ovr"])
    )
    assert (plain.sensitivity, more.sensitivity) == (2, 5)


def test_decision_values_are_evaluated_at_zero(table):
    X, y = table
    model = DPLinearSVC(epsilon=4.0, delta=1e-6, random_state=0).fit(X[:2000], y[:2000])
    report = dp_evaluate(model, X[2000:], y[2000:], epsilon=ALMOST_NONE)
    expected = sk.accuracy_score(y[2000:], model.predict(X[2000:]))
    assert report["accuracy"] == pytest.approx(expected, abs=1e-6)
    assert report.calibration_curve_ is None
    expected = sk.roc_auc_score(y[2000:], model.decision_function(X[2000:]))
    assert report["roc_auc"] == pytest.approx(expected, abs=2e-3)


def test_a_fixed_threshold_is_an_edge_of_the_grid(table, model):
    X, y = (part[2000:] for part in table)
    fixed = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=0.2345, response_method="predict_proba"
    ).fit(X, y)
    report = dp_evaluate(fixed, X, y, epsilon=ALMOST_NONE)
    assert report["recall"] == pytest.approx(sk.recall_score(y, fixed.predict(X)), abs=1e-6)


def hourly_counts(n=6000):
    """Counts that are far below their upper bound in most hours, as rentals of bicycles are."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (n, 3))
    weather = rng.gamma(4.0, 0.25, n)
    y = rng.poisson(weather * np.exp(2.0 + 2.5 * X[:, 0] + X[:, 1])).astype(float)
    return X, y


@pytest.mark.thorough
def test_r2_divides_by_the_variance_of_the_targets():
    X, y = hourly_counts()
    bounds = (0.0, 1000.0)
    model = DPPoissonRegressor(epsilon=4.0, delta=1e-6, target_bounds=bounds, random_state=0)
    model.fit(X[:3000], y[:3000])
    predicted = np.clip(model.predict(X[3000:]), *bounds)
    expected = sk.r2_score(y[3000:], predicted)
    # The variance of a uniform distribution over the bounds is 25 times that of the counts.
    wrong = 1 - np.mean((y[3000:] - predicted) ** 2) / (1000**2 / 12)
    assert wrong > 0.95 > expected + 0.1
    report = dp_evaluate(model, X[3000:], y[3000:], epsilon=ALMOST_NONE)
    assert report["r2"] == pytest.approx(expected, abs=1e-6)
    assert report["root_mean_squared_error"] == pytest.approx(
        sk.root_mean_squared_error(y[3000:], predicted), rel=1e-6
    )
    scorer = make_dp_scorer("r2", target_bounds=bounds, epsilon=ALMOST_NONE)
    assert scorer(model, X[3000:], y[3000:]) == pytest.approx(expected, abs=1e-6)
    narrow = dp_evaluate(model, X[3000:], y[3000:], epsilon=20.0, target_bounds=(0.0, 300.0))
    targets, outputs = (np.clip(part, 0.0, 300.0) for part in (y[3000:], predicted))
    assert narrow["r2"] == pytest.approx(sk.r2_score(targets, outputs), abs=0.05)
    scores = dp_cross_val_score(
        DPPoissonRegressor(target_bounds=(0.0, 300.0)), X, y, epsilon=100.0, delta=1e-3
    )
    assert scores.mean_ == pytest.approx(expected, abs=0.15)
    assert bounded_score("r2", target_bounds=bounds).value(
        model, X[3000:], y[3000:]
    ) == pytest.approx(expected, abs=1e-6)


class Guess(ClassifierMixin, BaseEstimator):
    """A model of public knowledge: the first column is the probability."""

    __skdp_kind__ = "declared"

    def __init__(self):
        self.classes_ = np.array([0, 1])

    def fit(self, X, y=None):
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return (X[:, 0] > 0.5).astype(int)


def rare_table(n, rate):
    rng = np.random.default_rng(0)
    y = (rng.random(n) < rate).astype(int)
    logits = np.log(rate / (1 - rate)) + 1.5 * (rng.normal(size=n) + 1.5 * y) - 1.125
    return (1 / (1 + np.exp(-logits)))[:, None], y


@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
def test_the_majority_stands_beside_the_accuracy_and_the_auc_needs_no_arguments():
    X, y = rare_table(20_000, 0.07)
    report = dp_evaluate(Guess(), X, y, epsilon=0.5)
    assert report.baselines_["accuracy"] == pytest.approx(1 - y.mean(), abs=0.005)
    assert "0.93" in str(report)
    area = make_dp_scorer("roc_auc", epsilon=0.5)(Guess(), X, y)
    assert area == pytest.approx(sk.roc_auc_score(y, X[:, 0]), abs=0.03)


@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
def test_the_report_says_if_the_area_is_not_known():
    X, y = rare_table(5000, 0.01)
    report = dp_evaluate(Guess(), X, y, epsilon=0.5)
    assert "roc_auc is not known" in " ".join(str(report).split())
    low, high = report["roc_auc"].noise_interval
    assert high - low > 0.1
    X, y = rare_table(5000, 0.3)
    assert "roc_auc is not known" not in str(dp_evaluate(Guess(), X, y, epsilon=0.5))


@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
def test_guessing_is_not_better_than_guessing():
    X, y = rare_table(5000, 0.01)
    never = np.full_like(X, 0.01)
    report = dp_evaluate(Guess(), never, y, epsilon=1.0)
    assert not report.is_better_than_guessing("accuracy")
    assert "accuracy is not clearly better than guessing" in " ".join(str(report).split())


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_all_metrics_are_one_charge(relation, table, model):
    X, y = (part[2000:] for part in table)
    accountant = PrivacyAccountant(0.5, 0.0, relation=relation)
    report = dp_evaluate(model, X, y, epsilon=0.5, accountant=accountant)
    assert [charge.label for charge in accountant.charges] == ["dp_evaluate"]
    assert accountant.epsilon_spent == report.privacy_.epsilon == 0.5
    assert report.privacy_.record == accountant.charges[0].hash
    assert "not the rows of the model's fit" in " ".join(str(report).split())
    with pytest.raises(BudgetExceededError):
        dp_evaluate(model, X, y, epsilon=0.1, accountant=accountant)


def test_reports_are_documents(table, model, three):
    X, y = (part[2000:] for part in table)
    report = dp_evaluate(model, X, y, epsilon=1.0, random_state=0)
    values = json.loads(json.dumps(report.to_dict()))
    assert values["scores"]["roc_auc"]["value"] == report["roc_auc"]
    assert values["privacy"]["seeded"]
    assert "roc_auc" in repr(report)
    assert "<table>" in report._repr_html_()
    other, X, y = three
    json.dumps(dp_evaluate(other, X, y, metrics=["accuracy", "roc_auc_ovr"]).to_dict())


WRONG = [
    ({"metrics": ["r2"]}, "the metrics of this model are"),
    ({"metrics": []}, "the metrics of this model are"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"target_bounds": (0, 1)}, "regressors"),
    ({"groups": [1, 2]}, "groups"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_wrong_options_are_refused_before_the_charge(options, message, table, model):
    X, y = table
    accountant = PrivacyAccountant(10.0, 0.0)
    with pytest.raises(ValueError, match=message):
        dp_evaluate(model, X, y, accountant=accountant, **options)
    with pytest.raises(ValueError, match="labels that the model does not know"):
        dp_evaluate(model, X, np.where(y == 1, 7, y), accountant=accountant)
    with pytest.raises(ValueError, match="features"):
        dp_evaluate(model, X[:, :2], y, accountant=accountant)
    assert accountant.epsilon_spent == 0.0


def test_a_regressor_needs_target_bounds(table):
    X, y = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RawDataWarning)
        with pytest.raises(ValueError, match="target_bounds"):
            dp_evaluate(DummyRegressor().fit(X, y), X, y)


def test_a_model_of_raw_rows_is_reported(table):
    X, y = table
    raw = LogisticRegression().fit(X[:2000], y[:2000])
    with pytest.warns(RawDataWarning, match="learns from raw rows"):
        dp_evaluate(raw, X[2000:], y[2000:])


def negative(X):
    return -X


@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
def test_by_persons_only_row_wise_models_are_evaluated(table, model):
    X, y = table
    persons = np.arange(len(y)) // 2
    accountant = PrivacyAccountant(100.0, 0.1, unit="person")
    options = {"groups": persons, "accountant": accountant}
    raw = LogisticRegression().fit(X, y)
    for refused in (raw, FrozenEstimator(raw), make_pipeline(FunctionTransformer(negative), raw)):
        with pytest.raises(ValueError, match="may compute a row's prediction differently"):
            dp_evaluate(refused, X, y, **options)
        with pytest.raises(ValueError, match="may compute a row's prediction differently"):
            make_dp_scorer("roc_auc", accountant=accountant)(refused, X, y, groups=persons)
        with pytest.raises(ValueError, match="may compute a row's prediction differently"):
            make_dp_scorer("accuracy", accountant=accountant)(refused, X, y, groups=persons)
    assert accountant.epsilon_spent == 0.0
    pipe = make_pipeline(DPStandardScaler(bounds=(-9, 9)), DPLogisticRegression(delta=1e-6))
    pipe.fit(X, y)
    for accepted in (model, FrozenEstimator(model), pipe):
        dp_evaluate(accepted, X, y, **options)
    assert accountant.epsilon_spent == 3.0
    dp_evaluate(raw, X, y)


def test_frames_and_labels_of_strings():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(0, 1, 3000), "b": rng.choice(["x", "y"], 3000)})
    y = np.where(frame["a"] + (frame["b"] == "x") * 0.3 > 0.6, "yes", "no")
    schema = {"bounds": {"a": (0, 1)}, "categories": {"b": ["x", "y"]}}
    for estimator in (DPHistogramNB(**schema), DPAdditiveClassifier(**schema)):
        model = estimator.set_params(epsilon=2.0, delta=1e-6).fit(frame, y)
        report = dp_evaluate(model, frame, pd.Series(y), epsilon=10.0)
        assert report["roc_auc"] == pytest.approx(
            sk.roc_auc_score(y == "yes", model.predict_proba(frame)[:, 1]), abs=0.01
        )


CONTAINERS = {
    "list": lambda X, y: (X.tolist(), y.tolist()),
    "polars": lambda X, y: (pl.DataFrame(X), pl.Series(y)),
    "lazy": lambda X, y: (pl.DataFrame(X).lazy(), y),
    "sparse": lambda X, y: (csr_array(X), y),
    "dask": lambda X, y: (
        dask.array.from_array(X, chunks=(700, 6)),
        dask.dataframe.from_pandas(pd.Series(y), npartitions=3),
    ),
}


@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_the_same_rows_give_the_same_report(name, table, model):
    X, y = (part[2000:] for part in table)
    expected = dp_evaluate(model, X, y, random_state=0)
    report = dp_evaluate(model, *CONTAINERS[name](X, y), random_state=0)
    assert report["roc_auc"] == expected["roc_auc"]


def test_pictures(table, model, three):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    X, y = (part[2000:] for part in table)
    display = dp_evaluate(model, X, y).plot()
    assert len(display.axes_) == 3
    other, X3, y3 = three
    assert len(dp_evaluate(other, X3, y3).plot().axes_) == 2
    ridge = DPRidge(epsilon=4.0, delta=1e-6, target_bounds=(-1, 2)).fit(*table)
    _, ax = pyplot.subplots()
    assert dp_evaluate(ridge, X, y).plot([ax]).axes_ == [ax]
    with pytest.raises(ValueError, match="axes must be 3 axes"):
        dp_evaluate(model, X, y).plot([ax])
    pyplot.close("all")


# Cross-validation


def test_cross_validation_is_one_charge_and_pools_the_folds(table):
    X, y = table
    accountant = PrivacyAccountant(3.0, 1e-6)
    report = dp_cross_validate(
        DPLogisticRegression(), X, y, epsilon=3.0, cv=3, accountant=accountant
    )
    assert [charge.label for charge in accountant.charges] == ["dp_cross_validate"]
    assert report.privacy_.epsilon == 3.0
    assert report["accuracy"] == pytest.approx(0.8, abs=0.15)
    assert report.fold_scores_["accuracy"].shape == (3,)
    assert np.mean(report.fold_scores_["accuracy"]) == pytest.approx(report["accuracy"], abs=0.05)
    assert "those used for fitting" in str(report)
    assert set(report.fold_spread_) <= set(report.fold_scores_)


def test_a_row_must_not_be_scored_twice(table):
    accountant = PrivacyAccountant(3.0, 1e-6)
    with pytest.raises(ValueError, match="several test sets"):
        dp_cross_validate(
            DPLogisticRegression(), *table, cv=RepeatedKFold(n_splits=2), accountant=accountant
        )
    with pytest.raises(ValueError, match="the metrics of this model are"):
        dp_cross_validate(DPLogisticRegression(), *table, metrics=["r2"], accountant=accountant)
    assert accountant.epsilon_spent == 0.0


def test_cross_validation_of_numbers_and_persons(table):
    X, y = table
    y = y.astype(float)
    model = DPRidge(epsilon=40.0, target_bounds=(-0.5, 1.5), data_norm=4.0)
    report = dp_cross_validate(model, X, y, epsilon=20.0, cv=3)
    assert 0.1 < report["r2"] < 0.25
    assert set(report.fold_scores_) == {"mean_squared_error", "mean_absolute_error"}
    accountant = PrivacyAccountant(150.0, 1e-5, unit="person", relation="replace_one")
    persons = np.arange(len(y)) // 2
    by_person = dp_cross_validate(
        model, X, y, epsilon=20.0, cv=3, groups=persons, accountant=accountant
    )
    assert by_person["r2"] == pytest.approx(report["r2"], abs=0.2)


@pytest.mark.thorough
def test_cross_validation_with_delta_zero_and_without_noise(table):
    X, y = table
    report = dp_cross_validate(
        DPLogisticRegression(mechanism="output"), X, y, epsilon=1e4, delta=0.0, cv=3
    )
    assert report["accuracy"].noise_std < 1e-3
    assert report["accuracy"] == pytest.approx(report.fold_scores_["accuracy"].mean(), abs=1e-2)


# Scores of searches whose denominators are not declared


@pytest.mark.quick_cases(every=9)
@pytest.mark.parametrize("strategy", ["disjoint", "holdout", "cv", "random_stopping"])
@pytest.mark.parametrize("scoring", ["roc_auc", "balanced_accuracy", "recall", "f1"])
def test_a_search_releases_the_class_counts_once(scoring, strategy, table):
    X, y = table
    accountant = PrivacyAccountant(4.0, 1e-6)
    search = DPGridSearchCV(
        DPLogisticRegression(),
        {"C": [0.01, 0.1]},
        scoring=scoring,
        strategy=strategy,
        mean_runs=5 if strategy == "random_stopping" else None,
        epsilon=4.0,
        delta=1e-6,
        accountant=accountant,
    ).fit(X, y)
    assert len(accountant.charges) == 1
    assert accountant.epsilon_spent == 4.0
    stages = [stage for stage in search.privacy_.stages if "denominators" in stage.name]
    assert len(stages) == 1
    assert search.best_score_ == pytest.approx(search.score(X, y), abs=0.25)


def test_metrics_of_unbounded_sensitivity_are_refused_in_a_search(table, model):
    X, y = table
    accountant = PrivacyAccountant(4.0, 1e-6)
    for name in ("average_precision", "precision", "root_mean_squared_error"):
        with pytest.raises(ValueError, match=r"skdp\.dp_evaluate"):
            dp_cross_val_score(DPLogisticRegression(), X, y, scoring=name, accountant=accountant)
    assert accountant.epsilon_spent == 0.0
    expected = {
        "average_precision": sk.average_precision_score(y, model.predict_proba(X)[:, 1]),
        "precision": sk.precision_score(y, model.predict(X)),
    }
    for name, value in expected.items():
        scorer = make_dp_scorer(name, epsilon=1.0, accountant=accountant)
        assert scorer(model, X, y) == pytest.approx(value, abs=0.05)


def test_undeclared_denominators_have_no_sensitivity():
    for name, options in (
        ("roc_auc", {}),
        ("balanced_accuracy", {}),
        ("recall", {}),
        ("f1", {}),
        ("r2", {"target_bounds": (0, 1)}),
    ):
        with pytest.raises(ValueError, match="no known sensitivity"):
            bounded_score(name, **options).sensitivity(100)
