"""More budget is not worse: a few cells of `docs/benchmarks/more_budget.py`, seeded."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def benchmark():
    path = Path(__file__).parents[2] / "docs" / "benchmarks" / "more_budget.py"
    spec = importlib.util.spec_from_file_location("more_budget", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize(
    ("estimator", "table", "n", "epsilons"),
    [
        ("DPRidge", "one normal column", 5000, (1.0, 3.0, 10.0, 100.0)),
        ("DPLinearRegression", "one normal column", 5000, (1.0, 10.0, 1000.0)),
        ("DPRidge", "linear", 1000, (0.3, 1.0, 3.0, 100.0)),
        ("DPRidge, bounds ten times too wide", "linear", 5000, (1.0, 10.0, 100.0)),
        ("DPSGDRegressor", "linear", 1000, (0.3, 1.0, 10.0)),
        ("DPLogisticRegression", "linear", 1000, (0.3, 1.0, 10.0)),
        ("DPLogisticRegression", "noise", 3000, (1.0, 10.0)),
        ("DPSGDClassifier", "linear", 1000, (0.3, 1.0, 10.0)),
    ],
)
def test_mean_scores_do_not_fall_with_epsilon(benchmark, estimator, table, n, epsilons):
    make, tables = benchmark.ESTIMATORS[estimator]
    scores = benchmark.cell_scores(make, tables[table][0], n, epsilons, range(5), is_seeded=True)
    assert benchmark.broken(scores, epsilons) == []


def test_a_fall_is_found(benchmark):
    scores = {"R²": np.array([[0.3, 0.2]] * 3), "constant": np.zeros((3, 2))}
    assert benchmark.broken(scores, (1.0, 10.0)) == ["R² at 10 after 1"]
    tests = [("one", 1e-6), ("other", 0.4), ("third", 0.004)]
    assert benchmark.rejected(tests) == ["one", "third"]
