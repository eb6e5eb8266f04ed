"""Scores: their values, and their sensitivities by brute force on neighboring tables."""

import datetime
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    mean_absolute_error,
    mean_squared_error,
    recall_score,
    roc_auc_score,
)

from skdp import BudgetExceededError, PrivacyAccountant
from skdp.model_selection import BoundedScore, bounded_score, make_dp_scorer
from tests._containers import GONE, Raises
from tests.model_selection._scored import SCORES, Oracle, make_rows

NULL = -99  # A label of no class: such a row is right nowhere and in no pair.


def without(score, X, y, row):
    """The score when a row is null: the number of rows stays, the row counts nowhere."""
    n, kept = len(y), np.arange(len(y)) != row
    if score.name in ("roc_auc", "f1"):
        return score.value(Oracle(), X, np.where(kept, y, NULL))
    rest = score.value(Oracle(), X[kept], y[kept])
    if score.name == "neg_error_count":
        return rest
    if score.name == "r2":
        return 1.0 - (1.0 - rest) * (n - 1) / n
    return rest * (n - 1) / n


def largest_move(score, relation, trials=400, n=10):
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(trials):
        X, y = make_rows(rng, n)
        row = int(rng.integers(n))
        if relation == "add_remove":
            other = without(score, X, y, row)
        else:
            Z, z = X.copy(), y.copy()
            Z[row], z[row] = (part[0] for part in make_rows(rng, 1))
            other = score.value(Oracle(), Z, z)
        largest = max(largest, abs(score.value(Oracle(), X, y) - other))
    return largest


@pytest.mark.quick_cases(every=13)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
def test_no_neighbor_moves_a_score_by_more_than_its_sensitivity(score, relation):
    claimed = score.sensitivity(10, relation)
    moved = largest_move(score, relation)
    assert moved <= claimed
    # The search by chance comes near it, so that half the sensitivity would be caught.
    assert moved > 0.55 * claimed


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("score", SCORES, ids=lambda s: s.name)
def test_a_row_moves_monotonic_scores_in_one_direction(score):
    rng = np.random.default_rng(1)
    moves = set()
    for _ in range(200):
        X, y = make_rows(rng, 10)
        difference = score.value(Oracle(), X, y) - without(score, X, y, 3)
        moves |= {np.sign(difference)} if abs(difference) > 1e-12 else set()
    assert not score.monotonic("replace_one")
    assert not score.monotonic("add_remove") or len(moves) == 1


def test_values_are_those_of_sklearn():
    X, y = make_rows(np.random.default_rng(2), 500)
    X[:, 1] = np.clip(X[:, 1], 0.06, 0.94)
    oracle, counts = Oracle(), {label: int(np.sum(y == label)) for label in (0, 1)}
    proba = oracle.predict_proba(X)
    expected = {
        "accuracy": accuracy_score(y, X[:, 0]),
        "neg_error_count": -np.sum(y != X[:, 0]),
        "neg_log_loss": -log_loss(y, proba),
        "neg_brier_score": -brier_score_loss(y, proba[:, 1]),
    }
    for name, value in expected.items():
        assert bounded_score(name).value(oracle, X, y) == pytest.approx(value, rel=1e-12)
    balanced = bounded_score("balanced_accuracy", class_counts=counts)
    assert balanced.value(oracle, X, y) == pytest.approx(balanced_accuracy_score(y, X[:, 0]))
    auc = bounded_score("roc_auc", class_counts=counts)
    assert auc.value(oracle, X, y) == pytest.approx(roc_auc_score(y, X[:, 2]))
    for name, metric in (("recall", recall_score), ("f1", f1_score)):
        for params in ({}, {"class_counts": counts}):
            value = bounded_score(name, **params).value(oracle, X, y)
            assert value == pytest.approx(metric(y, X[:, 0]))
    bounds = {"target_bounds": (0, 1)}
    mae = bounded_score("mean_absolute_error", **bounds)
    assert mae.value(oracle, X, y) == pytest.approx(-mean_absolute_error(y, X[:, 0]))
    mse = bounded_score("neg_mean_squared_error", **bounds)
    assert mse.value(oracle, X, y) == pytest.approx(-mean_squared_error(y, X[:, 0]))
    r2 = bounded_score("r2", target_variance=0.25, **bounds)
    assert r2.value(oracle, X, y) == pytest.approx(1 - mean_squared_error(y, X[:, 0]) / 0.25)


def test_losses_that_are_no_numbers_stay_within_the_bound():
    X, y = np.full((4, 3), np.nan), np.array([0.0, 1.0, 1.0, 7.0])
    for score in SCORES:
        assert np.isfinite(score.value(Oracle(), X, y))
    assert bounded_score("neg_log_loss").value(Oracle(), X, y) >= -5.0


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("f1", {"class_counts": {0: 1, 1: 2, 2: 3}}),
        ("recall", {"class_counts": {0: 1, 1: 2, 2: 3}}),
        ("average_precision", {}),
        ("precision", {}),
        ("root_mean_squared_error", {}),
        (accuracy_score, {}),
        (None, {}),
        ("roc_auc", {"class_counts": {0: 1, 1: 2, 2: 3}}),
        ("balanced_accuracy", {"class_counts": {0: 1}}),
        ("balanced_accuracy", {"class_counts": {0: 1, 1: -1}}),
        ("r2", {}),
        ("r2", {"target_bounds": (0, 1), "target_variance": 0}),
        ("neg_log_loss", {"bound": np.inf}),
        ("accuracy", {"bound": 1.0}),
    ],
)
def test_scores_of_unknown_sensitivity_are_refused(name, params):
    with pytest.raises(ValueError):
        bounded_score(name, **params)


def test_a_scorer_charges_each_call_and_is_noisy():
    accountant = PrivacyAccountant(1.0, 0.0)
    scorer = make_dp_scorer("accuracy", epsilon=0.5, accountant=accountant)
    X, y = make_rows(np.random.default_rng(3), 1000)
    values = {scorer(Oracle(), X, y) for _ in range(2)}
    assert len(values) == 2 and accountant.epsilon_spent == 1.0
    exact = accuracy_score(y, X[:, 0])
    # Laplace noise of scale 0.002: beyond 0.05 with probability e^-25.
    assert all(0 < abs(value - exact) < 0.05 for value in values)
    with pytest.raises(RuntimeError):
        scorer(Oracle(), X, y)


def test_nothing_is_predicted_before_the_charge():
    accountant = PrivacyAccountant(0.5, 0.0)
    X, y = make_rows(np.random.default_rng(3), 100)
    spent = []

    def predict(X):
        spent.append(accountant.epsilon_spent)
        return X[:, 0]

    model = SimpleNamespace(predict=predict, n_features_in_=3)
    scorer = make_dp_scorer("accuracy", epsilon=0.5, accountant=accountant)
    with pytest.raises(ValueError, match="fitted to 3 features"):
        scorer(model, X[:, :2], y)
    scorer(model, X, y)
    with pytest.raises(BudgetExceededError):
        scorer(model, X, y)
    assert spent == [0.5]


class Point:
    """A label that is compared with others of its kind only."""

    x = 1

    def __eq__(self, other):
        return self.x == other.x


# pytest asks a parameter's value for its class.
ODD_LABELS = [pd.NA, np.array([1, 2]), Raises(), 10**400, np.void(b"1"), Point(), GONE]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.name)
@pytest.mark.parametrize("number", range(len(ODD_LABELS)))
def test_a_target_that_cannot_be_scored_is_refused_before_the_charge(score, number):
    X, y = make_rows(np.random.default_rng(3), 10)
    labels = y.astype(object)
    labels[0] = ODD_LABELS[number]
    accountant = PrivacyAccountant(1.0, 0.0, ledger="memory://")
    scorer = make_dp_scorer(score, accountant=accountant)
    try:
        scorer(Oracle(), X, labels)
    except Exception:
        assert accountant.charges == []


def test_a_row_is_of_one_class():
    """A date and its midnight are two keys of a dict and one label."""
    day, midnight = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)
    score = bounded_score("balanced_accuracy", class_counts={day: 1, midnight: 1})
    y = np.array([day, midnight], dtype=object)
    assert score.value(SimpleNamespace(predict=lambda X: y), y, y) == 1.0
    with pytest.raises(ValueError, match="NaN"):
        bounded_score("balanced_accuracy", class_counts={np.nan: 1, 1: 1})


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"delta": 1}, {"accountant": "budget.db"}])
def test_a_scorer_refuses_bad_parameters(bad):
    with pytest.raises(ValueError):
        make_dp_scorer("accuracy", **bad)


def test_the_brute_force_catches_half_a_sensitivity():
    score = SimpleNamespace(**{"name": "accuracy", "value": SCORES[0].value})
    assert largest_move(score, "replace_one") > 0.5 * SCORES[0].sensitivity(10)


@pytest.mark.parametrize(
    "score",
    [
        score
        for score in SCORES
        if score.name in ("accuracy", "neg_error_count", "balanced_accuracy", "recall", "f1")
    ],
)
def test_a_column_of_predictions_is_one_entry_a_row(score):
    X, y = np.array([[1], [0], [1], [1]]), np.array([1, 0, 0, 1])
    column, flat = (SimpleNamespace(predict=predict) for predict in (lambda X: X, np.ravel))
    assert score.value(column, X, y) == score.value(flat, X, y)
    with pytest.raises(ValueError, match="predict returned 1 label for 4 rows"):
        score.value(SimpleNamespace(predict=lambda X: [1]), X, y)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", ["balanced_accuracy", "roc_auc"])
@pytest.mark.parametrize(("kind", "first"), [(np.float32, 2**24), (np.float64, 2**53)])
def test_two_labels_that_are_one_in_the_targets_type_count_a_row_once(name, kind, first, relation):
    score = bounded_score(name, class_counts={first: 1, first + 1: 1})
    X, y = np.arange(10.0)[:, np.newaxis], np.array([first] * 5 + [0] * 5, dtype=kind)
    model = SimpleNamespace(
        predict=lambda X: np.full(len(X), first, dtype=kind), decision_function=lambda X: X[:, 0]
    )
    value = score.value(model, X, y)
    for row in range(10):
        neighbor = y.copy()
        neighbor[row] = 0 if y[row] else first
        moved = abs(score.value(model, X, neighbor) - value)
        assert moved <= score.sensitivity(10, relation)


def test_what_a_score_of_ones_own_does_not_say_is_not_taken_from_another():
    """The sum of a column is neither moved by 1 / n at most, nor in one direction."""

    def value(self, estimator, X, y):
        return float(np.sum(X))

    def sensitivity(self, n_samples, relation="add_remove"):
        return 1.0

    Accuracy = type(bounded_score("accuracy"))
    for base in (Accuracy, BoundedScore):
        with pytest.raises(TypeError, match="sensitivity"):
            type("Own", (base,), {"value": value})
        own = type("Own", (base,), {"name": "own", "value": value, "sensitivity": sensitivity})
        assert not own().monotonic("add_remove")
        assert bounded_score(own()).sensitivity(3) == 1.0
    mixin = type("Mixin", (), {"value": value})
    with pytest.raises(TypeError, match="sensitivity"):
        type("Own", (mixin, Accuracy), {})
    renamed = type("Renamed", (Accuracy,), {"name": "renamed"})
    assert renamed().monotonic("add_remove") and not renamed().monotonic("replace_one")
