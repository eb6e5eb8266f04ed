"""What suffices, and all that is larger: the inverse of expected losses and errors."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline

from skdp import (
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPGridSearchCV,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    DPStandardScaler,
    PrivacyAccountant,
)
from skdp.planning import required_epsilon, required_samples
from skdp.stats import dp_mean, expected_error

TARGETS = {"target_bounds": (0, 2)}
FAST = [
    DPLogisticRegression(delta=0.0),
    DPSGDClassifier(),
    DPSGDRegressor(**TARGETS, delta=0.0),
    DPRidge(**TARGETS, delta=0.0, data_norm="auto"),
    DPLinearRegression(**TARGETS, mechanism="sufficient_statistics"),
    DPPoissonRegressor(target_bounds=(0, 20), delta=0.0),
    DPAdditiveRegressor(**TARGETS, delta=0.0),
]
SLOW = [
    DPLogisticRegression(),
    DPLinearSVC(),
    DPSGDClassifier(delta=0.0),
    DPSGDRegressor(**TARGETS, loss="huber"),
    DPRidge(**TARGETS),
    DPPoissonRegressor(target_bounds=(0, 20)),
    DPAdditiveClassifier(),
]
MODELS = [*FAST, *(pytest.param(model, marks=pytest.mark.slow) for model in SLOW)]
each_model = pytest.mark.parametrize("model", MODELS, ids=str)
SHAPE = {"n_features": 12}
LARGEST = 50_000


def with_epsilon(model, epsilon):
    return model.__class__(**model.get_params() | {"epsilon": epsilon})


@pytest.mark.quick_cases(every=3)
@each_model
def test_the_answer_and_every_larger_number_of_rows_suffice(model):
    target = 2.0 * model.expected_excess_loss(4000, **SHAPE)
    n = required_samples(model, excess_loss=target, max_samples=LARGEST, **SHAPE)
    assert isinstance(n, int) and 100 < n < LARGEST
    larger = np.unique(np.geomspace(n, LARGEST, 12).astype(int))
    assert all(model.expected_excess_loss(m, **SHAPE) <= target for m in larger)
    assert model.expected_excess_loss(n - 1, **SHAPE) > target


@pytest.mark.quick_cases(every=3)
@each_model
def test_the_answer_and_every_larger_epsilon_suffice(model):
    target = model.expected_excess_loss(3000, **SHAPE)
    epsilon = required_epsilon(model, n_samples=3000, excess_loss=target, **SHAPE)
    # With delta = 0 the number of steps moves what is expected up and down by some hundredths.
    assert 0.9 < epsilon < 1.05
    for larger in np.geomspace(epsilon, 10.0, 12):
        assert with_epsilon(model, larger).expected_excess_loss(3000, **SHAPE) <= target
    assert with_epsilon(model, 0.998 * epsilon).expected_excess_loss(3000, **SHAPE) > target


# What the search supposes, and what the sizes of `test_rows_suffice_beyond_a_rise` need.
POWER, JUMP = 4.0, 1.25


@each_model
def test_no_expected_loss_falls_faster_than_the_search_supposes(model):
    """All pairs of a smaller and a larger number, of neighbors and on a coarse grid."""
    rows = np.unique(np.append(np.geomspace(30, 1e5, 20), np.arange(300, 310)).astype(int))
    epsilons = np.geomspace(0.02, 10.0, 16)
    by_rows = [model.expected_excess_loss(n, **SHAPE) for n in rows]
    by_epsilon = [with_epsilon(model, e).expected_excess_loss(2000, **SHAPE) for e in epsilons]
    for numbers, losses in ((rows, by_rows), (epsilons, by_epsilon)):
        powered = np.array(losses) * (numbers / numbers[0]) ** POWER
        assert (np.maximum.accumulate(powered) <= JUMP * powered).all()


class Made(BaseEstimator):
    """A loss of 100 over the rows, times a factor for some sizes."""

    def __init__(self, epsilon=1.0, first=0, last=0, factor=1.0):
        self.epsilon, self.first, self.last, self.factor = epsilon, first, last, factor

    def expected_excess_loss(self, n_samples, n_features):
        if n_samples < 10:
            raise ValueError("too few rows")
        size = n_samples * self.epsilon
        return 100.0 / size * (self.factor if self.first <= size < self.last else 1.0)


MADE = {"excess_loss": 0.03, "n_features": 1}


@pytest.mark.parametrize(
    ("made", "sufficient"),
    [
        (Made(), 3334),
        # It rises for good; halving from 64,000 on would meet 8000 and 4000, and see no rise.
        (Made(first=5000, last=10**9, factor=1.6), 5334),
        # A jump as wide as a hundredth of the rows.
        (Made(first=3860, last=3920, factor=1.2), 3920),
        (Made(first=1, last=3500, factor=1.2), 3500),
        # A wide one: from 6000 rows on a search that supposed less would pass over it.
        (Made(first=5050, last=5450, factor=1.65), 5450),
    ],
)
def test_rows_suffice_beyond_a_rise(made, sufficient):
    assert required_samples(made, **MADE, max_samples=64_000) == sufficient
    epsilon = required_epsilon(made, n_samples=1000, **MADE, max_epsilon=64.0)
    assert sufficient / 1000 * (1.0 - 1e-9) <= epsilon < sufficient / 1000 * 1.002


def test_a_number_below_a_rise_suffices_if_no_larger_one_comes_into_question():
    rising = Made(first=5000, last=10**9, factor=1.6)
    assert required_samples(rising, **MADE, max_samples=4999) == 3334


def test_a_fit_that_would_be_refused_does_not_suffice():
    assert required_samples(Made(), excess_loss=50.0, n_features=1) == 10


@pytest.mark.parametrize("statistic", ["mean", "var", "quantile", dp_mean])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_errors_of_statistics_are_inverted(statistic, delta):
    name = statistic if isinstance(statistic, str) else "mean"
    terms = {"bounds": (0, 100), "delta": delta, "relation": "replace_one"}
    error = expected_error(name, 5000, 0.5, **terms)
    epsilon = required_epsilon(statistic, n_samples=5000, error=error, **terms)
    assert 0.5 <= epsilon * (1.0 + 1e-9) < 0.501
    n = required_samples(statistic, error=error, epsilon=0.5, **terms)
    # A median of an odd number of rows is a little worse.
    assert n == 5000 if name != "quantile" else 5000 <= n <= 5100
    for rows in (n, n + 1, n + 2, 2 * n):
        assert expected_error(name, rows, 0.5, **terms) <= error


def test_each_column_has_an_error():
    terms = {"epsilon": 1.0, "bounds": ((0, 0), (10, 1000)), "n_columns": 2}
    n = required_samples("mean", error=(1.0, 10.0), **terms)
    assert (expected_error("mean", n, **terms) <= (1.0, 10.0)).all()
    assert not (expected_error("mean", n - 1, **terms) <= (1.0, 10.0)).all()


def test_counts_have_no_number_of_rows_but_an_epsilon():
    assert required_samples("histogram", error=10.0) == 1
    epsilon = required_epsilon("histogram", n_samples=1, error=0.1)
    errors = [expected_error("histogram", 1, e) for e in (epsilon, 0.998 * epsilon)]
    assert errors[0] <= 0.1 < errors[1]


def test_nothing_is_charged_and_the_relation_is_the_accountants():
    accountant = PrivacyAccountant(1.0, 1e-5, relation="replace_one")
    model = DPLinearSVC(accountant=accountant)
    other = required_samples(DPLinearSVC(), excess_loss=0.1, **SHAPE)
    assert required_samples(model, excess_loss=0.1, **SHAPE) > 1.5 * other
    assert required_epsilon(model, n_samples=9000, excess_loss=0.1, **SHAPE) < 1.0
    assert accountant.epsilon_spent == 0.0 and model.epsilon == 1.0


@pytest.mark.parametrize(
    "planned", [DPStandardScaler(), make_pipeline(DPRidge()), DPGridSearchCV(DPRidge(), {}), 5]
)
def test_what_has_no_formula_says_so(planned):
    with pytest.raises(ValueError, match="has no formula"):
        required_samples(planned, excess_loss=0.1, n_features=3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "pass only excess_loss with an estimator"),
        ({"error": 1.0}, "pass only excess_loss with an estimator"),
        ({"excess_loss": 1.0, "error": 1.0}, "pass only excess_loss with an estimator"),
        ({"excess_loss": 0.0}, "must be positive"),
        ({"excess_loss": []}, "must be positive"),
        ({"excess_loss": float("nan")}, "must be positive"),
        ({"excess_loss": 1e-9}, "max_samples=1000 does not meet the target"),
        ({"excess_loss": 1.0, "n_features": 0}, "n_features"),
        ({"excess_loss": 1.0, "max_samples": 0}, "max_samples"),
    ],
)
def test_what_cannot_be_planned_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        required_samples(DPRidge(**TARGETS), **SHAPE | {"max_samples": 1000} | given)


def test_an_epsilon_that_does_not_suffice_is_refused():
    with pytest.raises(ValueError, match="max_epsilon=2 does not meet the target"):
        required_epsilon(Made(), n_samples=100, excess_loss=0.1, n_features=1, max_epsilon=2.0)
