"""Steps, learning rates, averages and projections."""

import math

import numpy as np
import pytest

from skdp._optim._noisy_gradients import LEARNING_RATES, OPTIMIZERS, Update

CURVATURES = np.array([1.0, 0.1])
MINIMIZER = np.array([2.0, -1.0])


def make_update(
    optimizer="sgd", learning_rate="constant", eta0=0.5, momentum=0.0, n_steps=400, **k
):
    settings = {"power_t": 0.5, "n_averaged": 1} | k
    return Update(
        optimizer=optimizer,
        learning_rate=learning_rate,
        eta0=eta0,
        momentum=momentum,
        n_steps=n_steps,
        **settings,
    )


def descend(update, start=(0.0, 0.0)):
    state = update.begin(np.array(start))
    for _ in range(update.n_steps):
        state.step(CURVATURES * (state.lookahead - MINIMIZER))
    return state.average


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("n_averaged", [1, 50])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("learning_rate", LEARNING_RATES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_finds_a_minimum(optimizer, learning_rate, momentum, n_averaged):
    eta0 = 0.1 if optimizer == "adam" else 0.5
    update = make_update(
        optimizer, learning_rate, eta0, momentum, 4000, power_t=0.2, n_averaged=n_averaged
    )
    np.testing.assert_allclose(descend(update), MINIMIZER, atol=1e-2)


def test_learning_rates():
    rates = {name: make_update(learning_rate=name, n_steps=4).rate for name in LEARNING_RATES}
    assert [rates["constant"](t) for t in (1, 4)] == [0.5, 0.5]
    assert [rates["invscaling"](t) for t in (1, 4)] == [0.5, 0.25]
    assert [rates["linear"](t) for t in (1, 4)] == [0.5, 0.125]


def test_a_learning_rate_that_vanishes():
    rate = make_update(learning_rate="invscaling", n_steps=4, power_t=1e50).rate
    assert [rate(t) for t in (1, 2, 4)] == [0.5, 0.0, 0.0]


def test_first_steps_by_hand():
    gradient = np.array([1.0, 2.0])
    heavy = make_update("sgd", momentum=0.5).begin(np.zeros(2))
    ahead = make_update("nesterov", momentum=0.5).begin(np.zeros(2))
    for state in (heavy, ahead):
        state.step(gradient)
        state.step(gradient)
    # Velocities 1 and 1.5 times the gradient; Nesterov's look-ahead is half a step further.
    np.testing.assert_allclose(heavy.iterate, -0.5 * 2.5 * gradient)
    np.testing.assert_allclose(ahead.iterate, -0.5 * 2.5 * gradient)
    np.testing.assert_allclose(ahead.lookahead, ahead.iterate - 0.25 * 1.5 * gradient)


def test_adam_by_its_definition():
    rng, beta1, beta2, eta = np.random.default_rng(0), 0.9, 0.999, 0.01
    state = make_update("adam", eta0=eta, momentum=beta1).begin(np.zeros(3))
    w, m, v = np.zeros(3), np.zeros(3), np.zeros(3)
    for t in range(1, 30):
        g = rng.normal(size=3)
        state.step(g)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - eta * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + 1e-8)
    np.testing.assert_allclose(state.iterate, w, rtol=1e-10)


@pytest.mark.parametrize("n_averaged", [1, 3, 10])
def test_the_result_is_the_mean_of_the_last_iterates(n_averaged):
    update = make_update(n_steps=10, n_averaged=n_averaged)
    state, iterates = update.begin(np.zeros(2)), []
    for step in range(10):
        state.step(np.array([1.0, step]))
        iterates.append(state.iterate.copy())
    np.testing.assert_allclose(state.average, np.mean(iterates[-n_averaged:], axis=0))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_projection(optimizer):
    update = make_update(optimizer, radius=0.7, momentum=0.3)
    state = update.begin(np.array([5.0, 0.0]))
    assert np.linalg.norm(state.lookahead) == pytest.approx(0.7)
    for _ in range(20):
        state.step(np.array([-3.0, 4.0]))
        assert np.linalg.norm(state.lookahead) <= 0.7 * (1 + 1e-12)
        assert np.linalg.norm(state.iterate) <= 0.7 * (1 + 1e-12)
    assert np.linalg.norm(state.average) <= 0.7 * (1 + 1e-12)
    np.testing.assert_array_equal(update.project(np.array([0.1, 0.2])), [0.1, 0.2])


@pytest.mark.parametrize("momentum", [0.0, 0.99])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weights_stay_finite_whatever_happens(optimizer, momentum):
    state = make_update(optimizer, eta0=1e50, momentum=momentum, n_averaged=5, n_steps=50).begin(
        np.zeros(2)
    )
    rng = np.random.default_rng(0)
    for _ in range(50):
        state.step(rng.normal(size=2) * 1e200 + 1e50 * state.lookahead)
        assert np.isfinite(state.lookahead).all()
    assert np.isfinite(state.average).all() and math.isfinite(np.linalg.norm(state.average))
