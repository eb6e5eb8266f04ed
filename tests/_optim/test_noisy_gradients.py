"""The loop takes the planned steps, penalizes what it says and shows nothing but their number."""

import numpy as np
import pytest

from skdp._optim._noisy_gradients import ShrinkageRule, Update, run_sgd
from skdp._optim._sgd_plan import plan_sgd
from skdp.noise import RandomSource
from tests._guarantees import meet, of_rows
from tests._private import BinaryLogisticLoss, HuberLoss

N, D = 200, 3


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    return X, (X[:, 0] > 0.3).astype(float), BinaryLogisticLoss()


def make_plan(epsilon=1.0, sampling="full", n_steps=25, delta=1e-6, clip=1.0):
    problem = of_rows(HuberLoss(), N, D, 1.0, meet(epsilon, delta), constant=0.5)
    return plan_sgd(problem, clip, sampling, 20, n_steps)


def make_update(n_steps=25, eta0=0.5):
    return Update("sgd", "constant", eta0, 0.5, 0.0, n_steps, 1)


def run(plan, table, alpha=0.0, start=None, seed=0, after_step=None, update=None):
    start = np.zeros(D + 1) if start is None else start
    update = update or make_update(plan.n_steps)
    return run_sgd(plan, plan.sums(*table), update, start, alpha, RandomSource(seed), after_step)


def test_without_noise_it_is_gradient_descent():
    X, y, loss = table = make_table()
    result = run(make_plan(1e12, clip=50.0), table, alpha=0.1)
    rows, weights = np.column_stack([X, np.full(N, 0.5)]), np.zeros(D + 1)
    for _ in range(25):
        gradient = loss.residual(rows @ weights, y) @ rows / N
        gradient[:D] += 0.1 * weights[:D]
        weights -= 0.5 * gradient
    np.testing.assert_allclose(result, weights, atol=1e-4)


def test_the_intercept_is_not_penalized():
    X, _, loss = make_table()
    plan, update = make_plan(1e12, n_steps=600), make_update(600, eta0=0.1)
    result = run(plan, (X, np.ones(N), loss), alpha=10.0, update=update)
    assert np.abs(result[:D]).max() < 0.02 < 1.0 < result[D]


def test_the_start_is_where_it_starts_and_stays_as_it_was():
    start = np.array([1.0, 2.0, 3.0, 4.0])
    update = make_update(1, eta0=1e-40)
    result = run(make_plan(n_steps=1), make_table(), start=start, update=update)
    np.testing.assert_array_equal(result, start)
    np.testing.assert_array_equal(start, [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_every_planned_step_is_taken_and_none_else(sampling):
    steps = []
    run(make_plan(sampling=sampling, n_steps=17), make_table(), after_step=steps.append)
    assert steps == list(range(1, 18))


def test_an_update_of_other_length_would_not_average_what_it_says():
    with pytest.raises(ValueError, match="steps"):
        run(make_plan(n_steps=5), make_table(), update=make_update(6))


def run_checked(y, sampling, start, epsilon, seed):
    """Return the weights of 60 steps, of which the last ten check them, and of the first 50."""
    X, weights = make_table()[0], []
    for n_checked in (10, 0):
        plan = make_plan(epsilon, sampling, 50 + n_checked, clip=2.0)
        rule = ShrinkageRule(
            n_checked, norm=1.5, residual=0.5, null_fraction=0.02, null_decrease_factor=2.0
        )
        given = make_update(50, eta0=0.1), start, 0.0, RandomSource(seed)
        sums = plan.sums(X, y, HuberLoss())
        weights.append(run_sgd(plan, sums, *given, shrinkage=rule))
    return weights


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_weights_that_explain_nothing_go_back_to_the_start(sampling):
    """What is kept of ten moves: about a tenth of the move, unchecked all of it."""
    start = np.array([0.3, -0.2, 0.1, 0.5])
    score = np.column_stack([make_table()[0], np.full(N, 0.5)]) @ start
    y = score + np.random.default_rng(4).choice([-0.5, 0.5], N)
    moves = [
        [np.linalg.norm(one - start) for one in run_checked(y, sampling, start, 0.5, seed)]
        for seed in range(10)
    ]
    checked, unchecked = np.mean(moves, axis=0)
    assert checked < 0.35 * unchecked


def test_weights_that_explain_much_stay():
    y = make_table()[0] @ [1.0, -1.0, 0.5]
    checked, unchecked = run_checked(y, "full", np.zeros(4), 5.0, 0)
    assert np.linalg.norm(unchecked) > 1.0
    np.testing.assert_allclose(checked, unchecked, atol=0.2)


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_a_whole_run_with_shared_noise(sampling, monkeypatch):
    """At the iterates of one run, batches and noise shared, the sums of a neighbor's run."""
    (X, y, loss), plan = make_table(), make_plan(sampling=sampling, n_steps=40)
    X[0] = [1e3, -1e3, 5.0]
    other = X.copy()
    other[0] = 0.0
    others, moved, seen = plan.sums(other, y, loss), [], []
    sums = type(others).sums

    def compared(self, weights, rows):
        total = sums(self, weights, rows)
        without = np.delete(np.arange(N), 0) if rows is None else rows[rows != 0]
        moved.append(np.linalg.norm(total - sums(others, weights, without)))
        seen.append(rows is None or 0 in rows)
        return total

    monkeypatch.setattr(type(others), "sums", compared)
    run(plan, (X, y, loss))
    moved, seen = np.array(moved), np.array(seen)
    assert len(moved) == 40 and seen.any()
    assert np.all(moved[seen] <= plan.sensitivity) and np.max(moved) > 0.99
    # Where the row is not in the batch nothing moves, but for rounding.
    assert np.all(moved[~seen] <= plan.sensitivity - plan.clip)
