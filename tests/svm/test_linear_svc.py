import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from skdp import DPLinearSVC, PrivacyAccountant


def make_table(n=1000, d=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= rng.uniform(0.2, 2.0, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ rng.normal(size=(d, n_classes)) + 0.3 * rng.normal(size=(n, n_classes))
    return X, scores.argmax(axis=1)


def clipped_with_constant(X, constant=0.3):
    X = X * np.minimum(1.0, 1.0 / np.linalg.norm(X, axis=1, keepdims=True))
    return np.column_stack([X, np.full(len(X), constant)])


def weights(model, constant=0.3):
    return np.column_stack([model.coef_, model.intercept_ / constant])


@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("C", [0.001, 0.01, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_little_noise_and_rounding_give_the_answer_of_sklearn(n_classes, C, delta):
    X, y = make_table(n_classes=n_classes)
    kind = "ovr" if n_classes == 2 else "crammer_singer"
    peer = LinearSVC(
        loss="hinge", multi_class=kind, C=C, fit_intercept=False, tol=1e-8, max_iter=10**6
    )
    expected = peer.fit(clipped_with_constant(X), y).coef_
    model = DPLinearSVC(epsilon=1e10, delta=delta, C=C, huber_threshold=1e-4).fit(X, y)
    np.testing.assert_allclose(weights(model), expected, atol=1e-3)


def test_the_rounded_objective_is_minimized():
    X, y = make_table()
    Z, h, C = clipped_with_constant(X), 0.5, 0.1

    def objective(w):
        z = np.where(y == 1, 1, -1) * (Z @ w)
        loss = np.where(z < 1 - h, 1 - z, np.maximum(1 + h - z, 0.0) ** 2 / (4 * h))
        return C * loss.sum() + 0.5 * w @ w

    model = DPLinearSVC(epsilon=1e10, C=C).fit(X, y)
    found = minimize(objective, np.zeros(5), tol=1e-12).x
    np.testing.assert_allclose(weights(model)[0], found, atol=1e-4)


def test_many_classes():
    X, y = load_digits(return_X_y=True)
    model = DPLinearSVC(epsilon=1e6, C=0.1, data_norm=3.0).fit(X / 16.0, y)
    assert model.coef_.shape == (10, 64) and model.intercept_.shape == (10,)
    assert model.score(X / 16.0, y) > 0.93
    assert model.decision_function(X / 16.0).shape == (len(X), 10)


def test_several_classes_are_one_charge():
    X, y = make_table(n_classes=3)
    accountant = PrivacyAccountant(1.0, 1e-5)
    DPLinearSVC(epsilon=1.0, delta=1e-5, accountant=accountant).fit(X, y)
    assert [(s.epsilon, s.delta) for s in accountant.charges] == [(1.0, 1e-5)]


def test_declared_classes_need_no_rows():
    X, y = make_table()
    model = DPLinearSVC(classes=[2, 0, 1]).fit(X, y)
    assert list(model.classes_) == [0, 1, 2] and model.coef_.shape == (3, 4)
    assert "the declared classes" in model.privacy_.public


def test_the_noise_does_not_depend_on_the_threshold():
    X, y = make_table()
    scales = [
        DPLinearSVC(C=0.1, huber_threshold=h).fit(X, y).privacy_.noise_scale for h in (0.1, 1)
    ]
    assert scales[0] == pytest.approx(scales[1], rel=1e-3)


@pytest.mark.parametrize("C", [1e-3, 10.0])
@pytest.mark.parametrize("h", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_fit_ends_at_its_certified_norm(n_classes, h, C):
    """The solver has no branch that stops early: a fit that returns has certified its norm."""
    X, y = make_table(n=300, n_classes=n_classes)
    for table in (X, np.zeros_like(X), np.tile(X[:1], (300, 1)), X * 1e200):
        model = DPLinearSVC(C=C, huber_threshold=h, classes=range(n_classes)).fit(table, y)
        assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"C": 0.0}, "C must"),
        ({"C": "best"}, "C must"),
        ({"C": True}, "C must"),
        ({"huber_threshold": 0.0}, "huber_threshold"),
        ({"huber_threshold": None}, "huber_threshold"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"data_norm": 1e-120}, "data_norm"),
        ({"intercept_scaling": 0.0}, "intercept_scaling"),
        ({"classes": [0, 5]}, "not among"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params, words):
    X, y = make_table(n=50)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=words):
        DPLinearSVC(accountant=accountant, **params).fit(X, y)
    assert accountant.charges == []
