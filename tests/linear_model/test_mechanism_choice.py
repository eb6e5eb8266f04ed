import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, PrivacyAccountant

# Gradients are taken where they save at least so much; and the same for centered rows, for which
# their expected loss is multiplied by a factor.
MIN_IMPROVEMENT = 0.02
MIN_IMPROVEMENT_OF_CENTERED = 0.001
CENTERED_LOSS_FACTOR = 0.7
NAMES = ("output", "objective", "gradient")


def make_table(n=2000, d=5, n_classes=2, seed=0):
    X, y = make_classification(
        n, d, n_informative=d, n_redundant=0, n_classes=n_classes, random_state=seed
    )
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("epsilon", [1.0, 100.0])
@pytest.mark.parametrize("C", ["auto", 0.1])
def test_auto_takes_gradients_where_they_are_expected_to_save_a_share(C, epsilon, delta, n_classes):
    def expected(mechanism):
        model = DPLogisticRegression(epsilon, delta=delta, mechanism=mechanism, C=C)
        return model.expected_excess_loss(2000, 5, n_classes)

    losses = {name: expected(name) for name in ("objective", "gradient")}
    X, y = make_table(n_classes=n_classes)
    fitted = DPLogisticRegression(epsilon, delta=delta, C=C).fit(X, y)
    factor, margin = 1.0, MIN_IMPROVEMENT
    if n_classes == 2 and delta > 0.0 and C == "auto":
        factor, margin = CENTERED_LOSS_FACTOR, MIN_IMPROVEMENT_OF_CENTERED
    saves = factor * losses["gradient"] + margin < losses["objective"]
    assert fitted.mechanism_ == ("gradient" if saves else "objective")
    assert expected("auto") == losses[fitted.mechanism_]


def test_gradients_are_taken_where_noise_is_much_and_not_where_it_is_little():
    X, y = make_table(n=300)
    assert [
        DPLogisticRegression(epsilon, delta=1e-5).fit(X, y).mechanism_ for epsilon in (1.0, 1e4)
    ] == ["gradient", "objective"]


def test_the_choice_uses_public_and_released_quantities_alone():
    """The strength depends on noisy class frequencies, and not on anything else in the table."""
    (first, y), (second, _) = make_table(seed=0), make_table(seed=1)
    one, other = (DPLogisticRegression(random_state=0).fit(X, y) for X in (first, second))
    assert (one.mechanism_, one.C_) == (other.mechanism_, other.C_)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("mechanism", ["auto", *NAMES])
def test_the_expected_loss_falls_with_rows_and_with_epsilon(mechanism):
    def expected(epsilon, n_samples):
        model = DPLogisticRegression(epsilon, mechanism=mechanism)
        return model.expected_excess_loss(n_samples, 20)

    by_epsilon = [expected(e, 10**4) for e in 10.0 ** np.arange(-2, 5)]
    assert (np.diff(by_epsilon) < 0).all()
    # Steps on more rows than a run may read are sampled, and sampled rows are not whitened, so the
    # loss of gradients may rise once between 10**6 and 10**7 rows.
    for exponents in (np.arange(2, 7), np.arange(7, 9)):
        by_rows = [expected(1.0, n) for n in 10**exponents]
        assert (np.diff(by_rows) < 0).all()


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("mechanism", NAMES)
def test_the_expected_loss_is_not_exceeded(mechanism):
    """The mean of 20 fits stays below it, against weights of the norm that it supposes."""
    X, _ = make_table(5000)
    y = np.random.default_rng(0).random(5000) < expit(X @ [6.0, -3.0, 1.0, 0.0, 0.0])
    y = y.astype(int)
    best = LogisticRegression(C=1e4, max_iter=10_000).fit(X, y)
    assert np.linalg.norm(best.coef_) < 10.0
    model = DPLogisticRegression(1.0, delta=1e-5, mechanism=mechanism)

    def loss(fitted):
        return -np.mean(fitted.predict_log_proba(X)[np.arange(len(y)), y])

    excess = np.mean([loss(model.fit(X, y)) for _ in range(20)]) - loss(best)
    assert 0 < excess < model.expected_excess_loss(5000, 5)


@pytest.mark.parametrize("mechanism", NAMES)
def test_class_weights_are_those_of_sklearn(mechanism):
    X, y = make_table(n_classes=3)
    weight = {0: 2.0, 2: 0.5}
    model = DPLogisticRegression(
        1e10, mechanism=mechanism, C=0.1, fit_intercept=False, class_weight=weight
    ).fit(X, y)
    options = {"C": 0.1, "fit_intercept": False, "tol": 1e-10, "max_iter": 10_000}
    expected = LogisticRegression(class_weight=weight, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)
    y = y > 0
    weight = {True: 3.0}
    model.set_params(class_weight=weight).fit(X, y)
    expected = LogisticRegression(class_weight=weight, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-3)
    assert "class_weight" in model.privacy_.public


@pytest.mark.parametrize("mechanism", NAMES)
def test_the_sensitivity_is_that_of_the_largest_class_weight(mechanism):
    X, y = make_table()
    model = DPLogisticRegression(mechanism=mechanism, C=0.01)
    plain = model.fit(X, y).privacy_.sensitivity
    weighted = model.set_params(class_weight={0: 5.0, 1: 0.1}).fit(X, y).privacy_.sensitivity
    assert weighted == pytest.approx(5.0 * plain, rel=1e-3)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"mechanism": "laplace"}, "mechanism"),
        ({"mechanism": None}, "mechanism"),
        ({"penalty": "l1"}, "penalty"),
        ({"class_weight": "even"}, "balanced"),
        ({"class_weight": {7: 1.0}}, "not one of the classes"),
        ({"class_weight": {0: 0.0}}, "class_weight"),
        ({"class_weight": {0: -1.0}}, "class_weight"),
        ({"class_weight": [1.0, 2.0]}, "dict"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params, words):
    X, y = make_table(50)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=words):
        DPLogisticRegression(accountant=accountant, **params).fit(X, y)
    assert accountant.charges == []


def test_noise_of_output_perturbation_has_a_standard_error():
    X, y = np.zeros((50, 400)), np.arange(50) % 2
    for delta in (0.0, 1e-6):
        model = DPLogisticRegression(delta=delta, mechanism="output", C=1e-9).fit(X, y)
        assert model.coef_standard_error_.shape == model.coef_.shape
        # As in the tests of the noise's law: false alarms are below 1e-7.
        spread = np.sqrt(np.mean(model.coef_**2))
        assert 0.75 < spread / model.coef_standard_error_[0, 0] < 1.3
    assert DPLogisticRegression(mechanism="objective").fit(X, y).coef_standard_error_ is None


def accuracies(mechanism, epsilons, n_fits, table, test):
    results = []
    for epsilon in epsilons:
        model = DPLogisticRegression(epsilon, delta=1e-5, mechanism=mechanism)
        results.append([model.fit(*table).score(*test) for _ in range(n_fits)])
    results = np.array(results)
    return results.mean(axis=1), results.std(axis=1, ddof=1) / np.sqrt(n_fits)


def check_monotone(mechanism, epsilons, n_fits):
    X, y = make_table(4000, 10)
    means, errors = accuracies(
        mechanism, epsilons, n_fits, (X[:3000], y[:3000]), (X[3000:], y[3000:])
    )
    # The answer without noise moves a little with C, by less than 0.002 here.
    fall = means[:-1] - means[1:]
    assert (fall <= 4 * np.hypot(errors[1:], errors[:-1]) + 2e-3).all()
    assert means[-1] > means[0] + 0.1


@pytest.mark.thorough
@pytest.mark.parametrize("mechanism", ["auto", *NAMES])
def test_accuracy_grows_with_epsilon(mechanism):
    check_monotone(mechanism, [0.01, 1.0, 1e4], 10)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["auto", *NAMES])
def test_accuracy_never_falls_as_epsilon_grows(mechanism):
    check_monotone(mechanism, 10.0 ** np.arange(-2, 4.5, 0.5), 20)


def check_softmax(epsilon, n_fits):
    """The joint softmax against ten models with a tenth of the budget each."""
    X, y = load_digits(return_X_y=True)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    train, test = slice(0, None, 2), slice(1, None, 2)
    joint, split = [], []
    for _ in range(n_fits):
        model = DPLogisticRegression(epsilon, delta=1e-5).fit(X[train], y[train])
        joint.append(model.score(X[test], y[test]))
        one = DPLogisticRegression(epsilon / 10, delta=1e-6)
        scores = [one.fit(X[train], y[train] == k).decision_function(X[test]) for k in range(10)]
        split.append(np.mean(np.argmax(scores, axis=0) == y[test]))
    error = np.hypot(np.std(joint, ddof=1), np.std(split, ddof=1)) / np.sqrt(n_fits)
    assert np.mean(joint) - np.mean(split) > 2 * error


def test_softmax_beats_one_vs_rest():
    check_softmax(2.0, 3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_softmax_beats_one_vs_rest_at_every_epsilon(epsilon):
    check_softmax(epsilon, 20)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("mechanism", ["output", "objective"])
def test_a_C_at_which_norms_of_gradients_underflow_is_refused(mechanism, delta):
    """The solver would stop at 0 or not by whether a square underflows, which one row decides."""
    X, y = np.ones((100, 1)), np.ones(100, dtype=int)
    for C in (1e-164, 1e-200, 1e-102):
        accountant = PrivacyAccountant(1.0, 1e-5)
        model = DPLogisticRegression(
            delta=delta, mechanism=mechanism, C=C, classes=[0, 1], accountant=accountant
        )
        with pytest.raises(ValueError, match="too small"):
            model.fit(X, y)
        assert accountant.epsilon_spent == 0.0
    model.set_params(C=1e-98, epsilon=1e8, accountant=None, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, 0.5 * 100 * 1e-98, rtol=1e-3)


@pytest.mark.parametrize("epsilon, delta", [(1e-5, 1e-20), (62.7, 0.0139), (742.0, 1e-21)])
@pytest.mark.parametrize("mechanism", ["objective", "gradient"])
def test_a_norm_search_and_many_steps_are_charged_at_any_guarantee(mechanism, epsilon, delta):
    accountant = PrivacyAccountant(epsilon, delta)
    X, y = make_table(n=30, d=2)
    DPLogisticRegression(
        epsilon,
        delta=delta,
        mechanism=mechanism,
        C=1e-3,
        data_norm="auto",
        standard_errors="total",
        accountant=accountant,
    ).fit(X, y)
    assert accountant.epsilon_spent == epsilon
