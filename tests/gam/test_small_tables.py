"""Small tables: the check of the weights keeps good ones, and a mean is worth its range."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from skdp import DPAdditiveClassifier, DPAdditiveRegressor


def twelve_columns(n_rows, seed):
    """Return normal columns of which six say something of two classes of equal size."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 12))
    y = (X[:, :6] @ np.full(6, 0.35) + rng.logistic(size=n_rows) > 0).astype(int)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(12)]), y


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_good_weights_are_kept_on_a_thousand_rows(epsilon):
    # Their log loss without noise is about .645; that of the class frequencies is .693. With the
    # decrease by chance subtracted as before the penalty was raised it is .67 and more.
    (X, y), (new, labels) = twelve_columns(1000, 0), twelve_columns(5000, 1)
    losses = []
    for seed in range(6):
        model = DPAdditiveClassifier(epsilon, delta=1e-6, bounds=(-4, 4), random_state=seed)
        losses.append(log_loss(labels, model.fit(X, y).predict_proba(new)))
    assert np.mean(losses) < 0.66


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 16.0])
def test_columns_of_noise_cost_little(epsilon):
    rng = np.random.default_rng(3)
    X, new = rng.normal(size=(2, 1000, 8))
    y, labels = rng.random((2, 1000)) < 0.3
    losses = []
    for seed in range(4):
        model = DPAdditiveClassifier(epsilon, delta=1e-6, bounds=(-4, 4), random_state=seed)
        losses.append(log_loss(labels, model.fit(X, y).predict_proba(new)[:, 1]))
    assert np.mean(losses) < log_loss(labels, np.full(1000, y.mean())) + 0.03


@pytest.mark.thorough
@pytest.mark.parametrize("n_rows", [300, 1000])
def test_more_budget_does_not_fit_chance(n_rows):
    # With little noise a table of few rows has about as many cells. Without the penalty by the
    # method of moments the log loss at 1000 was above that of the class frequencies.
    (X, y), (new, labels) = twelve_columns(n_rows, 0), twelve_columns(5000, 1)
    losses = {}
    for epsilon in (10.0, 1000.0):
        fits = [
            DPAdditiveClassifier(epsilon, delta=1e-6, bounds=(-4, 4), random_state=seed).fit(X, y)
            for seed in range(3)
        ]
        losses[epsilon] = np.mean([log_loss(labels, fit.predict_proba(new)) for fit in fits])
    assert losses[1000.0] < min(losses[10.0] + 0.02, 0.69)


@pytest.mark.thorough
def test_the_mean_of_targets_gets_more_exact_with_epsilon():
    # Targets are small beside their range: what is predicted is their mean, and its noise shows.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4500, 3)), np.full(4500, 1.0)
    off = {}
    for epsilon in (0.5, 8.0):
        params = {"delta": 1e-6, "bounds": (-4, 4), "target_bounds": (0, 60)}
        fits = [
            DPAdditiveRegressor(epsilon, random_state=seed, **params).fit(X, y)
            for seed in range(12)
        ]
        off[epsilon] = np.sqrt(np.mean([(fit.intercept_ - 1.0) ** 2 for fit in fits]))
    # The budget's share is the same, so that sixteen times epsilon makes it about fifteen times
    # as exact. A share that falls with epsilon made it three times as exact.
    assert off[8.0] < 0.15 * off[0.5]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("n_rows", "n_columns", "epsilon"),
    [(400, 10, 4.0), (400, 10, 100.0), (1000, 40, 16.0), (1000, 40, 100.0)],
)
def test_columns_of_noise_cost_regression_next_to_nothing(n_rows, n_columns, epsilon):
    # Without a penalty by the evidence R² is about -.5 on 400 rows at epsilon = 100.
    rng = np.random.default_rng(4)
    X, new = rng.normal(size=(n_rows, n_columns)), rng.normal(size=(2000, n_columns))
    y, targets = rng.normal(size=n_rows), rng.normal(size=2000)
    losses = []
    for seed in range(4):
        params = {"delta": 1e-6, "bounds": (-4, 4), "target_bounds": (-4, 4)}
        model = DPAdditiveRegressor(epsilon, random_state=seed, **params).fit(X, y)
        losses.append(np.mean((targets - model.predict(new)) ** 2))
    assert np.mean(losses) < 1.02 * np.mean((targets - y.mean()) ** 2)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("epsilon", "least"), [(4.0, 0.33), (16.0, 0.31), (100.0, 0.33), (1000.0, 0.33)]
)
def test_a_small_table_of_numbers_keeps_what_it_says(epsilon, least):
    # R² of a ridge regression is .59. With a penalty that is set by the noise alone, and the
    # decrease by chance subtracted twice, it falls with epsilon: .29, .26, .24, .20.
    rng = np.random.default_rng(5)
    X = rng.normal(size=(600, 12))
    y = X[:, :6] @ np.full(6, 0.5) + rng.normal(size=600)
    new = rng.normal(size=(4000, 12))
    truth = new[:, :6] @ np.full(6, 0.5) + rng.normal(size=4000)
    scores = []
    for seed in range(4):
        params = {"delta": 1e-6, "bounds": (-4, 4), "target_bounds": (-8, 8)}
        model = DPAdditiveRegressor(epsilon, random_state=seed, **params).fit(X, y)
        scores.append(model.score(new, truth))
    assert np.mean(scores) > least


def test_numbers_on_few_rows_get_better_with_budget():
    # The weights' degrees of freedom are a quarter of the rows. If the test of the weights
    # subtracts more than their decrease by chance, R² is .17 at epsilon = 1000.
    scores = {10.0: [], 1000.0: []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(300, 12)), rng.normal(size=(4000, 12))
        y = X[:, :6] @ np.full(6, 0.35) + rng.normal(size=300)
        truth = new[:, :6] @ np.full(6, 0.35) + rng.normal(size=4000)
        params = {"delta": 1e-6, "bounds": (-3, 3), "target_bounds": (-5, 5)}
        for epsilon, found in scores.items():
            model = DPAdditiveRegressor(epsilon, random_state=seed, **params).fit(X, y)
            found.append(model.score(new, truth))
    assert np.mean(scores[1000.0]) > max(0.25, np.mean(scores[10.0]) - 0.005)
