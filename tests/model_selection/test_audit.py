"""Is a record in the table? From the choice, the noisy scores and the coefficients together."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdp.accounting import Neighbors
from skdp.base import DEFAULT_CONFIG
from skdp.model_selection import _runs as runs
from skdp.model_selection._candidates import Rows
from skdp.noise import RandomSource
from tests._attacks import epsilon_lower_bound
from tests._private import FitProgress
from tests.model_selection.test_plans import make_task, plan

N, EPSILON = 24, 1.0


def outputs(made, y, n_runs):
    """Return what searches publish, and functions of it, a row each."""
    rows = []
    X = np.zeros((N, 1))
    for _ in range(n_runs):
        terms = replace(DEFAULT_CONFIG, relation=made.task.guarantee.relation)
        run = runs.SearchRun(made, Rows(X, y, terms=terms), None, RandomSource())
        outcome = runs.run_search(run, FitProgress(None))
        scores = np.nan_to_num(outcome.scores, nan=-1.0)
        coef, off = outcome.model.coef_[0], (scores[outcome.best] - 0.5) ** 2
        rows.append([outcome.best, *scores, off, coef, *scores * np.sign(coef)])
    return np.array(rows)


def certified(first, second, confidence=1.0 - 1e-6):
    """The epsilon that a learned linear test certifies on the half that it did not see."""
    half = len(first) // 2
    scale = np.vstack([first, second]).std(axis=0) + 1e-12
    center = np.vstack([first, second]).mean(axis=0)
    first, second = (first - center) / scale, (second - center) / scale
    labels = np.repeat([1, 0], half)
    test = LogisticRegression().fit(np.vstack([first[:half], second[:half]]), labels)
    seen = [test.decision_function(part[:half]) for part in (first, second)]
    new = [test.decision_function(part[half:]) for part in (first, second)]
    best, chosen = -1.0, None
    for threshold in np.quantile(np.concatenate(seen), np.linspace(0.02, 0.98, 33)):
        for sign in (1, -1):
            counts = [int(np.sum(sign * s > sign * threshold)) for s in seen[::sign]]
            bound = epsilon_lower_bound(counts[0], half, counts[1], half)
            if bound > best:
                best, chosen = bound, (threshold, sign)
    threshold, sign = chosen
    counts = [int(np.sum(sign * s > sign * threshold)) for s in new[::sign]]
    size = len(first) - half
    return epsilon_lower_bound(counts[0], size, counts[1], size, confidence=confidence)


def neighbors(made, role):
    """Return two label vectors that differ in one record, trained on or scored."""
    splits = made.layout.splits
    row = (splits.train[0] if role == "train" else splits.test[0])[0]
    y = np.arange(N) % 2
    one, two = y.copy(), y.copy()
    one[row], two[row] = 0, 1
    return one, two


def audit(strategy, role, n_runs=300, mutate=None):
    task = make_task((np.zeros((N, 1)), np.arange(N) % 2), m=2, epsilon=EPSILON, delta=0.0)
    changed = Neighbors(relation="replace_one")
    task = replace(task, guarantee=replace(task.guarantee, neighbors=changed))
    made = plan(task, strategy, mean_runs=2 if strategy == "random_stopping" else None)
    made = made if mutate is None else mutate(made)
    tables = neighbors(made, role)
    return certified(*(outputs(made, y, n_runs) for y in tables))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("strategy", "role"),
    [
        ("disjoint", "train"),
        ("holdout", "test"),
        ("random_stopping", "test"),
        *(
            pytest.param(strategy, role, marks=pytest.mark.slow)
            for strategy, role in (
                ("disjoint", "test"),
                ("holdout", "train"),
                ("cv", "test"),
                ("random_stopping", "train"),
            )
        ),
    ],
)
def test_what_a_search_publishes_tells_no_more_than_it_claims(strategy, role):
    # False alarms in 1e-6 of runs, if the search is as private as it says.
    assert audit(strategy, role) < EPSILON


class Raw:
    """Releases scores as they are."""

    scale, delta = 1.0, 0.0

    def release(self, values, *, random_state=None):
        return np.asarray(values)


@pytest.mark.thorough
@pytest.mark.parametrize("strategy", ["holdout", "random_stopping"])
def test_raw_scores_are_found(strategy):
    assert audit(strategy, "test", 300, lambda made: replace(made, noisy=Raw())) > EPSILON
