"""Noisy counts of scores: thresholds and pooled metrics, their price, and whose rows count."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from skdp import (
    DPCalibratedClassifierCV,
    DPLinearSVC,
    DPLogisticRegression,
    DPRidge,
    DPStandardScaler,
    DPTunedThresholdClassifierCV,
    PrivacyAccountant,
    dp_evaluate,
    privacy_report,
)
from skdp.accounting import Composed, DiscreteLaplace, Guarantee, Neighbors, get_epsilon
from skdp.export import to_sklearn
from skdp.model_selection import dp_cross_val_score
from skdp.model_selection._evaluation_task import (
    BINARY_METRICS,
    REGRESSION_METRICS,
    BinaryTask,
    ClassesTask,
    NumbersTask,
)
from skdp.model_selection._plans import plan_runs
from skdp.model_selection._pooled import PooledStatistics
from skdp.model_selection._score_cells import (
    PooledCells,
    ScoreCells,
    cell_counts,
    plan_counted_fits,
)
from skdp.model_selection._scores import LOSS_NAMES, UNBOUNDED
from skdp.model_selection._tuned_threshold import (
    METRICS,
    logistic_fractions,
    logistic_weight,
    threshold_scores,
)
from skdp.noise import RandomSource

RELATIONS = ("add_remove", "replace_one")
ALMOST_NONE = 1e9


@pytest.fixture(scope="module")
def table():
    return make_classification(4000, 5, n_redundant=0, weights=[0.9], random_state=0)


@pytest.fixture(scope="module")
def model(table):
    X, y = table
    return LogisticRegression().fit(X[:1000], y[:1000])


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
def test_without_noise_the_threshold_is_nearly_the_best(table, model, method):
    X, y = table
    tuned = DPTunedThresholdClassifierCV(
        FrozenEstimator(model), epsilon=ALMOST_NONE, response_method=method
    ).fit(X[1000:], y[1000:])
    scores = getattr(model, method)(X[1000:])
    if method == "predict_proba":
        scores = scores[:, 1]
    best = max(balanced_accuracy_score(y[1000:], scores >= t) for t in np.unique(scores)[::5])
    reached = balanced_accuracy_score(y[1000:], tuned.predict(X[1000:]))
    assert reached >= best - 0.01
    assert tuned.response_method_ == method
    assert np.array_equal(tuned.predict(X), (scores_of(model, method, X) >= tuned.best_threshold_))


def scores_of(model, method, X):
    scores = getattr(model, method)(X)
    return scores[:, 1] if scores.ndim == 2 else scores


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("params", "delta", "relation"),
    [
        ({}, 1e-6, "add_remove"),
        ({}, 0.0, "replace_one"),
        ({"refit": True}, 1e-6, "replace_one"),
        ({"cv": 3, "refit": True}, 1e-6, "add_remove"),
        ({"cv": 3, "refit": True}, 0.0, "replace_one"),
    ],
    ids=str,
)
def test_fits_and_counts_are_one_charge(table, params, delta, relation):
    X, y = table
    accountant = PrivacyAccountant(1.0, delta, relation=relation)
    tuned = DPTunedThresholdClassifierCV(
        DPLogisticRegression(), delta=delta, accountant=accountant, **params
    ).fit(X, y)
    assert len(accountant.charges) == 1
    assert accountant.epsilon_spent <= 1.0
    assert tuned.privacy_.epsilon == pytest.approx(1.0)
    names = [stage.name for stage in tuned.privacy_.stages]
    assert any("cells" in name for name in names)
    assert tuned.estimator_.privacy_.epsilon == tuned.privacy_.epsilon
    assert "DPTunedThresholdClassifierCV" in str(privacy_report(tuned))


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("params", [{}, {"refit": True}, {"cv": 3, "refit": True}], ids=str)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_rows_releases_are_within_the_budget(table, params, delta, monkeypatch):
    """What reads a row, composed here: its fits, the counts if it is in a test set, the refit."""
    X, y = table
    plans = []

    def recorded(task, layout):
        plans.append(plan_counted_fits(task, layout))
        return plans[-1]

    monkeypatch.setattr("skdp.model_selection._counted_scores.plan_counted_fits", recorded)
    DPTunedThresholdClassifierCV(DPLogisticRegression(), delta=delta, **params).fit(X, y)
    (plan,) = plans
    splits = plan.layout.splits
    largest = 0.0
    for row in (0, 1, 2, 3, 4, 5, 6, 7):
        events = [plan.runs[0, s].event for s, rows in enumerate(splits.train) if row in rows]
        events += [plan.noisy.event for rows in splits.test if row in rows]
        events += [refit.event for refit in plan.refits]
        largest = max(largest, get_epsilon(Composed(tuple(events)), delta))
    # Bounds on a composition differ by their discretization.
    assert 0.9 < largest <= 1.0 + 1e-4


def test_held_out_rows_cost_the_fit_nothing(table):
    """Each row is fitted to or counted, so that the fit has nearly the whole budget."""
    X, y = table
    tuned = DPTunedThresholdClassifierCV(DPLogisticRegression(), epsilon=1.0, delta=1e-6).fit(X, y)
    assert tuned.estimator_.get_params()["epsilon"] > 0.99
    assert tuned.score_counts_.sum() == pytest.approx(1000, abs=150)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_neighbor_moves_the_counts_by_more_than_the_sensitivity(relation):
    rng = np.random.default_rng(0)
    guarantee = Guarantee(epsilon=1.0, neighbors=Neighbors(relation=relation))
    task = BinaryTask(classes=np.array([0, 1]), metrics=BINARY_METRICS, method="predict_proba")
    pooled = PooledCells(task, guarantee, (10, 10, 10))
    l1, l2 = pooled.sensitivities
    for _ in range(100):
        folds = [(rng.integers(0, 2, 10), rng.random(10)) for _ in range(3)]
        counts = [pooled.statistics.statistics(rows) for rows in folds]
        codes, scores = (np.array(values) for values in folds[1])
        if relation == "add_remove":
            other = pooled.statistics.statistics((codes[1:], scores[1:]))
        else:
            codes[0], scores[0] = 1 - codes[0], rng.random()
            other = pooled.statistics.statistics((codes, scores))
        change = pooled.vector(counts) - pooled.vector([counts[0], other, counts[2]])
        assert np.abs(change).sum() <= l1
        assert np.linalg.norm(change) <= l2


@pytest.mark.parametrize("is_mutated", [False, True])
def test_the_counts_have_the_noise_of_their_epsilon(is_mutated):
    """The standard deviation is that of the budget; a mutated plan with a third of it is found."""
    guarantee = Guarantee(epsilon=0.5)
    task = BinaryTask(classes=np.array([0, 1]), metrics=BINARY_METRICS, method="predict_proba")
    plan = cell_counts(task, 200, guarantee)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, 200), rng.random(200)
    run = plan
    if is_mutated:
        run = replace(plan, guarantee=replace(guarantee, epsilon=1.5))
    source = RandomSource(0)
    exact = plan.statistics(rows)
    noise = np.concatenate([run.release_counts(rows, source) - exact for _ in range(100)])
    # One row is in one cell: two-sided geometric noise of epsilon.
    alpha = np.exp(-0.5)
    expected = np.sqrt(2.0 * alpha) / (1.0 - alpha)
    assert (abs(noise.std() / expected - 1.0) < 0.15) is not is_mutated


def test_labels_do_not_move_rows_between_fit_and_counts(table, monkeypatch):
    X, y = table
    counted = []
    statistics = PooledCells.value

    def value(self, estimator, X, y, persons=None):
        counted.append(np.array(X))
        return statistics(self, estimator, X, y, persons)

    monkeypatch.setattr(PooledCells, "value", value)
    for labels in (y, 1 - y):
        DPTunedThresholdClassifierCV(DPLogisticRegression()).fit(X, labels)
    assert np.array_equal(*counted)


REFUSED = [
    ({"cv": StratifiedKFold(3), "refit": True}, "private"),
    ({"cv": 3}, "refit=False"),
    ({"cv": 1.5}, "cv"),
    ({"cv": "folds"}, "cv"),
    ({"scoring": "roc_auc"}, "scoring"),
    ({"scoring": balanced_accuracy_score}, "scoring"),
    ({"response_method": "predict"}, "response_method"),
    ({"thresholds": [0.0, 2.0]}, "thresholds"),
    ({"thresholds": 100}, "thresholds"),
    ({"thresholds": "many"}, "thresholds"),
    ({"refit": "yes"}, "refit"),
    ({"estimator": DPRidge(target_bounds=(0, 1))}, "classifier"),
    ({"estimator": LogisticRegression()}, "without privacy"),
    ({"estimator": DPLinearSVC(), "response_method": "predict_proba"}, "predict_proba"),
    ({"epsilon": -1.0}, "epsilon"),
]


@pytest.mark.parametrize(("params", "words"), REFUSED, ids=range(len(REFUSED)))
@pytest.mark.filterwarnings("ignore::skdp.RawDataWarning")
def test_bad_parameters_are_refused_and_not_charged(table, params, words):
    X, y = table
    accountant = PrivacyAccountant(1.0, 1e-6)
    tuned = DPTunedThresholdClassifierCV(DPLogisticRegression(), accountant=accountant)
    with pytest.raises(ValueError, match=words):
        tuned.set_params(**params).fit(X[:200], y[:200])
    assert accountant.charges == []
    assert not hasattr(tuned, "estimator_")


def test_three_classes_are_refused_before_the_charge(table):
    X, _ = table
    accountant = PrivacyAccountant(1.0, 1e-6)
    tuned = DPTunedThresholdClassifierCV(DPLogisticRegression(), accountant=accountant)
    with pytest.raises(ValueError, match="two classes"):
        tuned.fit(X, np.arange(len(X)) % 3)
    assert accountant.charges == []


@pytest.mark.parametrize("cv", ["prefit", 0.25])
def test_a_fitted_model_is_not_fitted_again(table, cv):
    X, y = table
    accountant = PrivacyAccountant(3.0, 1e-6)
    fitted = DPLogisticRegression(epsilon=2.0, delta=1e-7, accountant=accountant).fit(
        X[:2000], y[:2000]
    )
    coef = np.array(fitted.coef_)
    inner = fitted if cv == "prefit" else FrozenEstimator(fitted)
    tuned = DPTunedThresholdClassifierCV(inner, delta=0.0, cv=cv, accountant=accountant)
    tuned.fit(X[2000:], y[2000:])
    assert [charge.epsilon for charge in accountant.charges] == [2.0, 1.0]
    assert tuned.estimator_ is fitted
    assert np.array_equal(fitted.coef_, coef)
    assert "the model" in tuned.privacy_.public
    assert tuned.score_counts_.sum() == pytest.approx(2000, abs=100)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("kind", [DPTunedThresholdClassifierCV, DPCalibratedClassifierCV])
def test_persons_are_held_out_with_all_their_rows(table, kind):
    X, y = table
    owners = np.arange(len(X)) // 4
    accountant = PrivacyAccountant(1.0, 1e-6, unit="person")
    for params in ({}, {"cv": 2, "refit": True}):
        model = kind(
            DPLogisticRegression(), epsilon=0.5, delta=5e-7, accountant=accountant, **params
        ).fit(X, y, groups=owners)
        n_persons = len(X) / 4 if params else len(X) / 16
        assert model.score_counts_.sum() == pytest.approx(n_persons, rel=0.6)
    assert accountant.epsilon_spent <= 1.0
    assert len(accountant.charges) == 2


def test_declared_thresholds_are_the_candidates(table):
    X, y = table
    tuned = DPTunedThresholdClassifierCV(
        DPLogisticRegression(), epsilon=50.0, thresholds=[0.1, 0.3, 0.5], store_cv_results=True
    ).fit(X, y)
    assert tuned.best_threshold_ in (0.1, 0.3, 0.5)
    np.testing.assert_allclose(tuned.cv_results_["thresholds"], [0.1, 0.3, 0.5])
    assert tuned.cv_results_["scores"].shape == (3,)
    edge = tuned.best_threshold_
    proba = tuned.predict_proba(X)[:, 1]
    assert np.array_equal(tuned.predict(X), (proba >= edge).astype(int))


def test_a_pipeline_of_private_steps_is_tuned(table):
    X, y = table
    accountant = PrivacyAccountant(2.0, 1e-6)
    pipe = make_pipeline(DPStandardScaler(bounds=(-5, 5)), DPLinearSVC(data_norm=4.0))
    tuned = DPTunedThresholdClassifierCV(pipe, epsilon=2.0, accountant=accountant).fit(X, y)
    assert len(accountant.charges) == 1
    assert tuned.response_method_ == "decision_function"
    assert set(tuned.predict(X)) <= {0, 1}


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("estimator", [DPLogisticRegression(), DPLinearSVC()])
def test_evaluation_and_export_use_the_threshold(table, estimator):
    X, y = table
    tuned = DPTunedThresholdClassifierCV(estimator, epsilon=20.0).fit(X[:3000], y[:3000])
    report = dp_evaluate(tuned, X[3000:], y[3000:], epsilon=ALMOST_NONE)
    expected = balanced_accuracy_score(y[3000:], tuned.predict(X[3000:]))
    assert float(report["balanced_accuracy"]) == pytest.approx(expected, abs=1e-6)
    exported = to_sklearn(tuned)
    assert np.array_equal(exported.predict(X), tuned.predict(X))


def test_the_logistic_fit_counts_where_noise_hides_the_rest_and_vanishes_without_it():
    """The weight of the logistic fractions is a half at most, and falls with the noise."""
    rng = np.random.default_rng(0)
    table = make_classification(20_000, 4, n_redundant=0, weights=[0.97], random_state=0)
    X, y = table
    scores = LogisticRegression().fit(X[:5000], y[:5000]).predict_proba(X)[:, 1]
    edges = np.concatenate([np.geomspace(1e-4, 0.1, 40), np.linspace(0.1, 0.99, 40)[1:]])
    cells = np.searchsorted(edges, scores) + y * (len(edges) + 1)
    counts = np.bincount(cells, minlength=2 * (len(edges) + 1)).reshape(2, -1).astype(float)
    stds = []
    for count_std in (1e-9, 3.0, 30.0):
        noisy = counts + count_std * rng.normal(size=counts.shape)
        bins = ScoreCells(
            counts=noisy, count_std=count_std, edges=edges, score_bounds=(0.0, 1.0)
        ).bins()
        values, noise_stds = threshold_scores(bins, METRICS["balanced_accuracy"])
        reached = balanced_accuracy_score(y, scores >= bins.thresholds[np.argmax(values)])
        assert reached > 0.7
        fractions = logistic_fractions(bins)
        assert (np.diff(fractions) >= 0.0).all() and 0.0 < fractions[0] < fractions[-1] < 1.0
        stds.append(noise_stds.max())
    assert stds[0] < 1e-6
    assert logistic_weight(np.full(5, 0.1), np.full(5, 1e-6)) < 1e-9
    assert logistic_weight(np.full(5, 0.1), np.full(5, 1.0)) == 0.5


# Metrics of folds, pooled, and what their denominators cost.


@pytest.fixture(scope="module")
def wide_table():
    X, y = make_classification(4000, 6, n_informative=4, random_state=0)
    return X, y


def pooled(kind, relation, delta):
    guarantee = Guarantee(epsilon=1.0, delta=delta, neighbors=Neighbors(relation=relation))
    if kind == "binary":
        task = BinaryTask(classes=np.array([0, 1]), metrics=("accuracy",), method="predict_proba")
    elif kind == "classes":
        task = ClassesTask(
            classes=np.arange(3), metrics=("accuracy", "roc_auc_ovr"), has_probabilities=True
        )
    else:
        task = NumbersTask(target_bounds=(0.0, 1.0), metrics=("r2",))
    return PooledStatistics(task, guarantee, (6, 6, 6))


def draw_rows(kind, rng, n=6):
    if kind == "binary":
        return rng.integers(0, 2, n), rng.choice([0.0, 0.3, 0.7, 1.0], n)
    if kind == "classes":
        return rng.integers(0, 3, n), rng.integers(0, 3, n), rng.dirichlet([0.3] * 3, n)
    return rng.choice([0.0, 0.5, 1.0], n), rng.choice([0.0, 1.0], n)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", ["binary", "classes", "numbers"])
def test_sensitivity_of_pooled_folds_by_brute_force(kind, relation, delta):
    score = pooled(kind, relation, delta)
    rng = np.random.default_rng(0)
    largest = np.zeros(2)
    for _ in range(100):
        folds = [draw_rows(kind, rng) for _ in range(3)]
        before = score.vector([score.statistics.statistics(rows) for rows in folds])
        changed = [value[1:] for value in folds[0]]
        if relation == "replace_one":
            new = draw_rows(kind, rng, 1)
            changed = [np.concatenate([a, b]) for a, b in zip(new, changed, strict=True)]
        folds[0] = changed
        after = score.vector([score.statistics.statistics(rows) for rows in folds])
        change = before - after
        largest = np.maximum(largest, [np.abs(change).sum(), np.sqrt((change**2).sum())])
    assert (largest <= score.sensitivities).all()
    assert (largest >= 0.6 * np.array(score.sensitivities)).all()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_record_path_pays_for_the_denominators(delta, wide_table, monkeypatch):
    plans = []

    def plan_and_store(*args):
        plans.append(plan_runs(*args))
        return plans[-1]

    monkeypatch.setattr("skdp.model_selection._fold_release.plan_runs", plan_and_store)
    estimator = DPLogisticRegression(mechanism="output")
    dp_cross_val_score(estimator, *wide_table, scoring="roc_auc", epsilon=4.0, delta=delta, cv=3)
    (plan,) = plans
    assert isinstance(plan.denominators.event, DiscreteLaplace)
    assert plan.denominators.event.scale == pytest.approx(1.0 / (0.05 * 4.0))
    for path in plan.record_paths:
        assert repr(plan.denominators.event) in repr(path)
        assert get_epsilon(path, delta) <= 4.0


@pytest.mark.thorough
def test_scoring_accepts_every_metric_of_dp_evaluate_or_names_the_remedy(wide_table):
    """Losses are negated; regressions take the target bounds of the model."""
    X, y = wide_table
    classifiers = (DPLogisticRegression(), BINARY_METRICS, y)
    regressor = DPRidge(target_bounds=(0.0, 1.0), data_norm=5.0)
    for estimator, names, target in (classifiers, (regressor, REGRESSION_METRICS, y.astype(float))):
        for name in names:
            if name in UNBOUNDED:
                continue
            scores = dp_cross_val_score(estimator, X, target, scoring=name, epsilon=1e4, cv=2)
            assert (scores.mean_ < 0.0) == (name in LOSS_NAMES)
