"""More budget never costs accuracy, and with next to no noise the answer is scikit-learn's."""

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression

DATA = os.environ.get("SKDP_DATA", "")
EPSILONS = (0.01, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
FITS = 20


def means_and_errors(mechanism, delta, X, y, X_test, y_test):
    """Return the mean accuracy at each epsilon and its standard error."""
    accuracy = [
        [
            DPLogisticRegression(epsilon, delta=delta, mechanism=mechanism)
            .fit(X, y)
            .score(X_test, y_test)
            for _ in range(FITS)
        ]
        for epsilon in EPSILONS
    ]
    return np.mean(accuracy, axis=1), np.std(accuracy, axis=1, ddof=1) / np.sqrt(FITS)


def falls(means, errors):
    """Return where a mean is below an earlier one by more than four standard errors."""
    return [
        (EPSILONS[i], EPSILONS[j])
        for j in range(len(means))
        for i in range(j)
        if means[j] < means[i] - 4.0 * np.hypot(errors[i], errors[j])
    ]


def make_tables(n=1000, held_out=8000, d=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + held_out, d)) / np.sqrt(d)
    y = rng.random(n + held_out) < 1 / (1 + np.exp(-X @ np.linspace(-6.0, 6.0, d)))
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mechanism", "delta"),
    [
        ("auto", 1e-5),
        ("auto", 0.0),
        # At three values of epsilon this is in test_mechanism_choice.py.
        pytest.param("gradient", 1e-5, marks=pytest.mark.slow),
        ("output", 1e-5),
        ("output", 0.0),
    ],
)
def test_accuracy_does_not_fall_as_epsilon_grows(mechanism, delta):
    """Twenty-one comparisons; false alarms are below 1e-3 only if all means were the same.

    They are far apart but for the last, whose errors are below a row of the test table.
    """
    means, errors = means_and_errors(mechanism, delta, *make_tables())
    assert falls(means, errors + 0.5 / 8000) == []
    assert means[-1] > means[0] + 4.0 * np.hypot(errors[0], errors[-1])


def test_a_flat_or_falling_curve_is_found():
    errors = np.full(len(EPSILONS), 1e-3)
    assert falls(np.linspace(0.7, 0.8, 7), errors) == []
    assert falls(np.array([0.7, 0.8, 0.8, 0.8, 0.8, 0.8, 0.79]), errors)


@pytest.fixture(scope="module")
def adult():
    if not (DATA and (Path(DATA) / "adult_train.csv.gz").is_file()):
        pytest.skip("SKDP_DATA names no folder with Adult")
    path = Path(__file__).parents[2] / "examples" / "example_table.py"
    spec = importlib.util.spec_from_file_location("example_table", path)
    example_table = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example_table)
    X, y, X_test, y_test = example_table.read_adult(DATA)
    encoder = example_table.make_encoder()
    return encoder.fit_transform(X), y, encoder.transform(X_test), y_test


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_accuracy_on_adult_does_not_fall_as_epsilon_grows(adult, delta):
    means, errors = means_and_errors("auto", delta, *adult)
    for line in zip(EPSILONS, means, errors, strict=True):
        print("delta = {}, epsilon = {:g}: {:.4f} ± {:.4f}".format(delta, *line))
    assert falls(means, errors) == []


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, "auto"])
@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_adult_without_noise_is_scikit_learns_answer(adult, delta, C):
    """C="auto" is about 1000 here, so that even at this epsilon Gaussian noise is felt.

    Its deviation is at most that of the linear term, where a category hardly occurs.
    """
    X, y, _, _ = adult
    model = DPLogisticRegression(1e10, delta=delta, C=C, fit_intercept=False).fit(X, y)
    rows = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    peer = LogisticRegression(
        C=model.C_, fit_intercept=False, solver="newton-cholesky", tol=1e-9, max_iter=1000
    ).fit(rows, y)
    noise = model.C_ * model.privacy_.noise_scale
    furthest = np.abs(model.coef_ - peer.coef_).max()
    print(f"C = {model.C_:g}: at most {furthest:.2g} apart, noise {noise:.2g}")
    assert furthest < (1e-3 if C == 1.0 else 1e-3 + 6.0 * noise)
