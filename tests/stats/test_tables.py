"""Statistics of several columns, of labels, and of columns with gaps."""

import numpy as np
import pandas as pd
import pytest

from skdp import BudgetExceededError, PrivacyAccountant, stats

RELATIONS = ["add_remove", "replace_one"]


def gappy(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform([0.0, -3.0], [1.0, 5.0], size=(n, 2))
    X[rng.uniform(size=X.shape) < [0.3, 0.6]] = np.nan
    return X


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_gaps_are_left_out(delta):
    X = gappy()
    options = {"epsilon": 1e10, "delta": delta, "axis": 0, "nan_policy": "omit"}
    for bounds in (([0.0, -3.0], [1.0, 5.0]), "auto"):
        mean = stats.dp_mean(X, bounds=bounds, **options)
        var = stats.dp_var(X, bounds=bounds, **options)
        np.testing.assert_allclose(mean, np.nanmean(X, axis=0), atol=1e-3)
        np.testing.assert_allclose(var, np.nanvar(X, axis=0), atol=1e-3)
    with pytest.raises(ValueError, match="NaN"):
        stats.dp_mean(X, axis=0)
    with pytest.raises(ValueError, match="nan_policy"):
        stats.dp_var(X, axis=0, nan_policy="propagate")
    table = pd.DataFrame({"a": pd.array([1.0, None] * 500, dtype="Float64")})
    assert abs(stats.dp_mean(table, 1e6, bounds=(0, 4), axis=0, nan_policy="omit")[0] - 1.0) < 0.01


def test_gaps_are_counted_by_persons():
    """Each person's mean of present cells would be no sum: cells count by the rows' shares."""
    X, ids = gappy(400)[:, :1], np.arange(400) // 4
    mean = stats.dp_mean(X, 1e8, bounds=(0, 1), axis=0, nan_policy="omit", groups=ids)
    np.testing.assert_allclose(mean, np.nanmean(X, axis=0), atol=1e-3)


def test_where_nothing_is_there_it_is_the_middle():
    """But for noise that looks like rows in one of 80: half of 20 do with less than 1e-13."""
    X = np.column_stack([np.full(1000, np.nan), np.full(1000, 3.0)])
    options = {"bounds": (0.0, 4.0), "axis": 0, "nan_policy": "omit"}
    means = np.array([stats.dp_mean(X, 1.0, **options) for _ in range(20)])
    # Laplace noise of scale 4 beside 1000 rows and beside none.
    assert np.isfinite(means).all() and (np.abs(means[:, 1] - 3.0) < 0.5).all()
    assert np.median(means[:, 0]) == 2.0
    variances = [stats.dp_var(X, 1.0, **options)[0] for _ in range(20)]
    assert np.median(variances) == pytest.approx(4.0 / 3.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_without_noise_they_are_numpys(delta):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) @ rng.normal(size=(3, 3))
    options = {"epsilon": 1e10, "delta": delta}
    within = options | {"bounds": (-20, 20)}
    np.testing.assert_allclose(stats.dp_covariance(X, **within), np.cov(X.T), atol=1e-3)
    np.testing.assert_allclose(stats.dp_correlation(X, **within), np.corrcoef(X.T), atol=1e-3)
    clipped = np.clip(X, -1, [1, 2, 3])
    ours = stats.dp_covariance(X, bounds=(-1, [1, 2, 3]), **options)
    np.testing.assert_allclose(ours, np.cov(clipped.T), atol=1e-3)
    arguments = {"bins": (2, [-9.0, 0.0, 1.0, 9.0], 3), "range": [(-5, 5)] * 3}
    ours = stats.dp_histogramdd(X, **arguments, **options)
    theirs = np.histogramdd(X, **arguments)
    np.testing.assert_array_equal(ours[0], theirs[0])
    for one, other in zip(ours[1], theirs[1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_matrices_are_those_of_some_table_whatever_the_noise():
    X = np.random.default_rng(0).uniform(size=(50, 4))
    for epsilon in (1e-3, 0.1, 10.0):
        for delta in (0.0, 1e-6):
            covariance = stats.dp_covariance(X, epsilon, delta=delta, bounds=(0, 1))
            correlation = stats.dp_correlation(X, epsilon, delta=delta, bounds=(0, 1))
            for matrix in (covariance, correlation):
                np.testing.assert_allclose(matrix, matrix.T, rtol=1e-9, atol=1e-300)
                assert np.linalg.eigvalsh(matrix).min() > -1e-12 * np.abs(matrix).max()
            assert (np.diag(covariance) > 0).all() and (np.diag(correlation) == 1.0).all()
            assert np.abs(correlation).max() <= 1.0


def test_too_many_cells_are_refused_before_the_charge():
    accountant = PrivacyAccountant(1.0, 0.0)
    with pytest.raises(ValueError, match="too large to count"):
        stats.dp_histogramdd(np.zeros((5, 10)), range=[(0, 1)] * 10, accountant=accountant)
    with pytest.raises(ValueError, match="one pair .low, high. per column"):
        stats.dp_histogramdd(np.zeros((5, 3)), range=(0, 1), accountant=accountant)
    assert accountant.epsilon_spent == 0.0


def labels(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    jobs = pd.Series(rng.choice(["works", "studies", "other", None], n), name="job")
    marks = pd.Series(rng.choice([1.0, 2.0, np.nan], n), name="mark")
    return jobs, marks


def test_crosstab_without_noise_is_that_of_pandas():
    jobs, marks = labels()
    categories = (["studies", "works"], [1.0, 2.0])
    ours = stats.dp_crosstab(jobs, marks, 1e10, categories=categories)
    theirs = pd.crosstab(jobs, marks).loc[categories]
    pd.testing.assert_frame_equal(ours, theirs, check_dtype=False, check_index_type=False)
    arrays = stats.dp_crosstab([*jobs], marks.to_numpy(), 1e10, categories=categories)
    np.testing.assert_array_equal(arrays, theirs)


def test_crosstab_is_a_table_of_counts_whatever_the_noise():
    jobs, marks = labels(100)
    for epsilon in (1e-3, 0.1, 1.0):
        for delta in (0.0, 1e-6):
            categories = ([f"job {i}" for i in range(20)], [1.0, 2.0])
            found = stats.dp_crosstab(jobs, marks, epsilon, delta=delta, categories=categories)
            assert (found.to_numpy() >= 0).all() and 0 <= found.to_numpy().sum() <= 100
    for wrong in (["a", "b", "c"], (["a"],), None):
        with pytest.raises(ValueError, match="categories"):
            stats.dp_crosstab(jobs, marks, categories=wrong)
    with pytest.raises(ValueError, match="inconsistent"):
        stats.dp_crosstab(jobs, marks[:7], categories=(["a"], [1.0]))


def test_a_crosstab_of_series_has_one_index():
    jobs, accountant = pd.Series(["a", "b"] * 5), PrivacyAccountant(1.0, 0.0)
    lists = ["a", "b"], ["a", "b"]
    with pytest.raises(ValueError, match="same index"):
        shuffled = jobs.sample(frac=1.0, random_state=0)
        stats.dp_crosstab(jobs, shuffled, categories=lists, accountant=accountant)
    assert accountant.epsilon_spent == 0.0
    # An array has none: it is taken by position.
    stats.dp_crosstab(jobs, shuffled.to_numpy(), categories=lists)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1e150, 1e150)])
def test_no_covariance_is_beyond_what_bounds_allow(bounds, delta):
    half = (bounds[1] / 2 - bounds[0] / 2) ** 2
    for n, epsilon in ((1, 1.0), (3, 1e-8), (20, 0.1), (20, 100.0)):
        X = np.random.default_rng(0).uniform(*np.divide(bounds, 2), size=(n, 3))
        options = {"bounds": bounds, "delta": delta}
        for _ in range(5):
            found = stats.dp_covariance(X, epsilon, **options)
            assert (np.diag(found) <= half * n / max(n - 1, 1) * (1.0 + 1e-9)).all()
            correlation = stats.dp_correlation(X, epsilon, **options)
            for matrix in (found / half, correlation):
                assert (np.linalg.eigvalsh(matrix) > 0.0).all()
            assert (np.diag(correlation) == 1.0).all() and (np.abs(correlation) <= 1.0).all()


@pytest.mark.parametrize("relation", RELATIONS)
def test_labels_cost_one_charge_of_what_was_asked_for(relation):
    jobs, marks = labels(50)
    accountant = PrivacyAccountant(1.0, 1e-5, relation=relation)
    lists = (["works"], [1.0, 2.0])
    stats.dp_crosstab(jobs, marks, 0.3, delta=1e-6, categories=lists, accountant=accountant)
    stats.dp_mode(jobs, 0.6, categories=lists[0], accountant=accountant)
    booked = [(spend.label, spend.epsilon, spend.delta) for spend in accountant.charges]
    assert booked == [("dp_crosstab", 0.3, 1e-6), ("dp_mode", 0.6, 0.0)]
    with pytest.raises(BudgetExceededError):
        stats.dp_mode(jobs, 0.6, categories=lists[0], accountant=accountant)
    for wrong in ([], ["a", "a"]):
        with pytest.raises(ValueError, match="categories"):
            stats.dp_mode(jobs, 0.01, categories=wrong, accountant=accountant)
    assert len(accountant.charges) == 2


def test_the_mode_is_found():
    jobs, marks = labels()
    assert stats.dp_mode(["a"] * 30 + ["b"] * 70, 10.0, categories=["a", "b", "c"]) == "b"
    found = stats.dp_mode(np.repeat([1, 2, 3], [10, 500, 20]), categories=[3, 2])
    assert found == 2 and isinstance(found, int)
    # The most frequent label is not among the categories.
    assert stats.dp_mode(jobs.fillna("x"), 1e-3, categories=["nothing"]) == "nothing"
    ids = np.repeat(np.arange(50), 40)
    assert stats.dp_mode(marks, 5.0, categories=[1.0, 2.0], groups=ids) in (1.0, 2.0)
