import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, PrivacyAccountant


def make_table(n=2000, d=5, seed=0, length=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= length * rng.uniform(0.2, 2.0, size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    y = (rng.random(n) < expit(X @ rng.normal(scale=3.0, size=d))).astype(int)
    return X, y


def clipped_with_constant(X, data_norm=1.0, intercept_scaling=0.3):
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X = X * np.minimum(1.0, data_norm / norms)
    return np.column_stack([X, np.full(len(X), intercept_scaling * data_norm)])


def sklearn_weights(X, y, C, data_norm=1.0, intercept_scaling=0.3):
    model = LogisticRegression(C=C, fit_intercept=False, tol=1e-10, max_iter=100_000)
    return model.fit(clipped_with_constant(X, data_norm, intercept_scaling), y).coef_


def weights(model, constant=0.3):
    return np.column_stack([model.coef_, model.intercept_ / constant])


WAYS = [("output", 0.0), ("output", 1e-5), ("objective", 0.0), ("objective", 1e-5)]
WAYS += [("gradient", 0.0), ("gradient", 1e-5), ("auto", 0.0), ("auto", 1e-5)]


@pytest.mark.parametrize(("mechanism", "delta"), WAYS)
@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_little_noise_gives_the_answer_of_sklearn(C, mechanism, delta):
    # Of longer rows "gradient" clips the gradients.
    X, y = make_table(length=0.5 if mechanism == "gradient" else 1.0)
    expected = sklearn_weights(X, y, C)
    model = DPLogisticRegression(1e10, delta=delta, mechanism=mechanism, C=C).fit(X, y)
    np.testing.assert_allclose(weights(model), expected, atol=1e-3)


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0])
def test_noise_is_centered_on_the_answer_of_sklearn(C):
    X, y = make_table()
    model = DPLogisticRegression(epsilon=1e6, delta=1e-5, mechanism="output", C=C).fit(X, y)
    deviations = (weights(model) - sklearn_weights(X, y, C)) / model.privacy_.noise_scale
    assert np.abs(deviations).max() < 6
    # That of the noise that is drawn, which pays for the grid by a factor of 1 + 2**-16 at most.
    raised = model.coef_standard_error_ / model.privacy_.noise_scale
    assert np.all((raised >= 1.0) & (raised <= 1.0 + 2.0**-16))


# With delta = 0 clips in L1 norm cut gradients of many weights, whatever the noise.
@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(("mechanism", "delta"), [*WAYS[:4], WAYS[5]])
def test_many_classes_give_the_answer_of_sklearn(mechanism, delta):
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    norm = 5.0 if mechanism == "gradient" else 3.0
    expected = sklearn_weights(X, y, 0.1, data_norm=norm)
    model = DPLogisticRegression(1e10, delta=delta, mechanism=mechanism, C=0.1, data_norm=norm)
    model.fit(X, y)
    np.testing.assert_allclose(weights(model, 0.3 * norm), expected, atol=1e-3)
    assert model.coef_.shape == (10, 64) and model.intercept_.shape == (10,)
    assert model.score(X, y) > 0.9
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(probabilities), model.predict_log_proba(X), atol=1e-12)


def test_two_class_probabilities_are_those_of_the_scores():
    X, y = make_table()
    model = DPLogisticRegression().fit(X, y)
    scores = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(X), scores)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(scores))
    np.testing.assert_allclose(
        np.exp(model.predict_log_proba(X)), model.predict_proba(X), atol=1e-15
    )
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, bool])
def test_every_type_of_number_is_computed_in_double_precision(dtype):
    X = np.random.default_rng(0).integers(0, 2, size=(500, 3)).astype(dtype)
    y = X[:, 0].astype(int)
    one = DPLogisticRegression(C=0.1, random_state=0).fit(X, y)
    other = DPLogisticRegression(C=0.1, random_state=0).fit(X.astype(np.float64), y)
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_order_in_memory_changes_nothing_but_rounding():
    X, y = make_table()
    one = DPLogisticRegression(C=0.1, random_state=0).fit(X, y)
    other = DPLogisticRegression(C=0.1, random_state=0).fit(np.asfortranarray(X), y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_declared_classes_need_no_rows():
    X, y = make_table()
    model = DPLogisticRegression(classes=[2, 0, 1], random_state=0).fit(X, y)
    assert list(model.classes_) == [0, 1, 2]
    assert model.coef_.shape == (3, 5)
    model = DPLogisticRegression(classes=["no", "yes"]).fit(X, np.full(len(X), "no"))
    assert (model.predict(X) == "no").mean() > 0.9
    assert "the declared classes" in model.privacy_.public


def test_the_label_set_is_said_to_be_public():
    X, y = make_table()
    assert "the label set" in DPLogisticRegression().fit(X, y).privacy_.public


def test_without_intercept():
    X, y = make_table()
    model = DPLogisticRegression(epsilon=1e10, C=0.1, fit_intercept=False).fit(X, y)
    expected = sklearn_weights(X, y, 0.1, intercept_scaling=0.0)[:, :-1]
    np.testing.assert_allclose(model.coef_, expected, atol=1e-3)
    np.testing.assert_array_equal(model.intercept_, [0.0])


def test_rows_whose_norm_overflows_count_as_zero():
    X, y = make_table()
    X[:7] = 1e200
    zeroed = X.copy()
    zeroed[:7] = 0.0
    one = DPLogisticRegression(C=0.1, random_state=0).fit(X, y)
    other = DPLogisticRegression(C=0.1, random_state=0).fit(zeroed, y)
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)


def test_automatic_C_uses_public_and_released_quantities_alone():
    """With gradients, it also depends on the noisy class frequencies, as those of equal labels."""
    X, y = make_table()
    other_X, other_y = make_table(seed=1, length=5.0)
    objective = DPLogisticRegression(mechanism="objective")
    assert objective.fit(X, y).C_ == objective.fit(other_X, other_y).C_
    gradient = DPLogisticRegression(mechanism="gradient", random_state=0)
    assert gradient.fit(X, y).C_ == gradient.fit(other_X, y).C_
    assert DPLogisticRegression(epsilon=4.0).fit(X, y).C_ > DPLogisticRegression().fit(X, y).C_


def test_automatic_C_does_not_depend_on_the_unit_of_X():
    X, y = make_table(n=5000)
    one = DPLogisticRegression(random_state=0).fit(X, y)
    other = DPLogisticRegression(data_norm=100.0, random_state=0).fit(100.0 * X, y)
    np.testing.assert_allclose(other.C_ * 1e4, one.C_)
    np.testing.assert_allclose(other.coef_ * 100.0, one.coef_, atol=1e-4)


@pytest.mark.parametrize("n_rows", [1, 2])
def test_one_row_is_enough_with_declared_classes(n_rows):
    model = DPLogisticRegression(classes=[0, 1]).fit(np.ones((n_rows, 2)), np.ones(n_rows, int))
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"C": 0.0}, "C must"),
        ({"C": "best"}, "C must"),
        ({"C": None}, "C must"),
        ({"data_norm": 0.0}, "data_norm"),
        ({"data_norm": None}, "data_norm"),
        ({"data_norm": np.inf}, "data_norm"),
        ({"data_norm": 1e-60}, "data_norm"),
        ({"C": 1e30}, "C=1e"),
        ({"intercept_scaling": 1e200}, "intercept_scaling"),
        ({"fit_intercept": "no"}, "fit_intercept"),
        ({"delta": 1e-320}, "delta"),
        ({"classes": [None, 1]}, "classes"),
        ({"classes": [[0, 1], [1, 0]]}, "classes"),
        ({"classes": [0.0, 1.0, np.nan]}, "classes"),
        ({"intercept_scaling": -1.0}, "intercept_scaling"),
        ({"classes": [1]}, "classes"),
        ({"classes": [0, 5]}, "not among"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": 1.0}, "delta"),
    ],
)
def test_bad_parameters_are_refused_and_not_charged(params, words):
    X, y = make_table(n=50)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match=words):
        DPLogisticRegression(accountant=accountant, **params).fit(X, y)
    assert accountant.charges == []


def test_one_class_is_refused_unless_others_are_declared():
    X, y = make_table(n=50)
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="one class"):
        DPLogisticRegression(accountant=accountant).fit(X, np.zeros(50))
    assert accountant.charges == []


@pytest.mark.parametrize("data_norm", [1e-50, 1e-9, 1e9, 1e50])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_every_norm_gives_a_model(data_norm, delta):
    X, y = make_table(n=200)
    model = DPLogisticRegression(delta=delta, data_norm=data_norm).fit(data_norm * X, y)
    assert np.isfinite(model.coef_).all() and model.C_ > 0


@pytest.mark.parametrize("epsilon", [1e-6, 1e6, 1e12, 1e15])
def test_every_epsilon_gives_a_model(epsilon):
    X, y = make_table(n=200)
    for delta in (0.0, 1e-6):
        assert np.isfinite(DPLogisticRegression(epsilon, delta=delta).fit(X, y).coef_).all()


def test_no_warning_depends_on_the_data(recwarn):
    X = np.zeros((30, 2), dtype=np.longdouble)
    X[3] = np.finfo(np.longdouble).max
    DPLogisticRegression(classes=range(30)).fit(X, np.arange(30))
    DPLogisticRegression(classes=[0, 1]).fit(X, np.arange(30) % 2)
    assert not recwarn.list


def test_collinear_columns_and_hardly_any_regularization():
    X = np.repeat(make_table(n=100, d=1)[0], 3, axis=1)
    model = DPLogisticRegression(C=1e9, epsilon=1e6).fit(X, np.arange(100) % 2)
    assert np.isfinite(model.coef_).all()
