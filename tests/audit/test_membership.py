import json
import re

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import ndtri
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_regression
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant
from skdp.audit import membership_inference
from skdp.audit._bounds import clopper_pearson
from skdp.audit._outputs import per_row_statistic
from skdp.audit._scores import area_under_curve, attack_accuracy, rate_at
from skdp.exceptions import SeededNoiseWarning

NOISE = np.random.default_rng(0)
ATTACKS = ("loss", "shadow", "lira", "rmia")


class Noise(ClassifierMixin, BaseEstimator):
    """A linear model that looks at no row."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.coef_ = NOISE.normal(size=np.shape(X)[1])
        return self

    def decision_function(self, X):
        return X @ self.coef_

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def random_labels(n=1000, classes=20):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 10)), rng.integers(0, classes, n)


def noisy_table(n=400, d=60):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, (X[:, 0] + 0.1 * rng.normal(size=n) > 0).astype(int)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(1), DecisionTreeClassifier(random_state=0)], ids=["1-NN", "tree"]
)
def test_models_that_remember_are_found_out(model, attack):
    X, y = random_labels()
    found = membership_inference(model, X, y, attack=attack, n_shadow=32, random_state=0)
    assert found.auc.value >= 0.95
    assert found.train_score == 1.0 and found.test_score < 0.2
    assert found.auc.low < found.auc.value <= found.auc.high
    assert 0.85 < found.accuracy.value <= (1.0 + found.advantage) / 2.0 + 0.01
    assert found.generalization_gap == found.train_score - found.test_score > 0.8
    risky = found.rows_at_risk(20)
    assert len(risky) == 20 and found.members[risky].all()


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("attack", ["lira", "rmia"])
def test_attacks_that_know_no_member_beforehand(attack, offline):
    X, y = random_labels()
    found = membership_inference(
        KNeighborsClassifier(1), X, y, attack=attack, offline=offline, n_shadow=16, random_state=0
    )
    assert found.auc.value >= 0.95
    assert found.tpr_at[0.01].value >= 0.3


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("attack", ATTACKS)
def test_noise_gives_no_attack_anything(attack):
    """A model that is all noise: the 95 % interval covers .5 in 90 of 100 repetitions.

    P(Binomial(100, .95) < 85) = 3e-5 for each of four exact intervals.
    """
    X, y = noisy_table(120, 4)
    covered = 0
    for i in range(100):
        auc = membership_inference(Noise(), X, y, attack=attack, n_shadow=4, random_state=i).auc
        covered += auc.low <= 0.5 <= auc.high
    assert covered >= 85


@pytest.mark.thorough
@pytest.mark.parametrize("access", ["probabilities", "labels", "parameters"])
def test_what_the_attacker_sees(access):
    X, y = noisy_table(300)
    options = {"attack": "lira", "access": access, "n_shadow": 24, "random_state": 0}
    private = membership_inference(DPLogisticRegression(epsilon=0.1), X, y, **options)
    for model in (LogisticRegression(C=1e3), LinearSVC(C=1e3)):
        found = membership_inference(model, X, y, **options)
        assert found.auc.low > 0.5
        assert private.auc.value < found.auc.value - 0.05


def test_a_private_model_charges_for_no_shadow():
    X, y = noisy_table(100, 4)
    accountant = PrivacyAccountant(1.0, 1e-5)
    model = make_pipeline(
        DPStandardScaler(epsilon=0.25, bounds=(-3, 3), accountant=accountant),
        DPLogisticRegression(epsilon=0.5, delta=1e-6, accountant=accountant),
    )
    members = np.arange(100) < 50
    model.fit(X[members], y[members])
    spent = accountant.epsilon_spent
    for attack in ATTACKS:
        membership_inference(model, X, y, attack=attack, members=members, n_shadow=4)
        membership_inference(model, X, y, attack=attack, n_shadow=4)
    assert accountant.epsilon_spent == spent == 0.75


def test_frames_regressors_and_constant_models():
    pandas = pytest.importorskip("pandas")
    X, y = make_regression(120, 60, noise=10.0, random_state=0)
    found = membership_inference(LinearRegression(), pandas.DataFrame(X), y, n_shadow=16)
    assert found.auc.low > 0.5
    assert membership_inference(LinearRegression(), X, y, access="parameters").auc.low > 0.5
    X, y = noisy_table(100, 4)
    for attack in ATTACKS:
        found = membership_inference(
            make_pipeline(StandardScaler(), DummyClassifier(strategy="prior")),
            X,
            y,
            attack=attack,
            n_shadow=4,
            random_state=0,
        )
        assert found.auc.low <= 0.5 <= found.auc.high


@pytest.mark.thorough
def test_noise_takes_from_an_attack_what_over_fitting_gave():
    X, y = noisy_table(400)
    options = {"attack": "lira", "n_shadow": 16, "random_state": 0}
    forest = membership_inference(RandomForestClassifier(10, random_state=0), X, y, **options)
    plain = membership_inference(LogisticRegression(C=1e4, max_iter=1000), X, y, **options)
    private = membership_inference(DPLogisticRegression(0.1), X, y, **options)
    assert forest.auc.low > 0.65 and forest.accuracy.low > 0.6 and forest.generalization_gap > 0.1
    assert plain.auc.low > 0.5
    # Five standard deviations above what guessing gives.
    assert (
        private.auc.low <= 0.6 and private.accuracy.low <= 0.6 and private.generalization_gap < 0.3
    )


def test_progress_is_shown(capsys):
    X, y = noisy_table(60, 3)
    membership_inference(LogisticRegression(), X, y, n_shadow=12, verbose=10)
    shown = capsys.readouterr()
    assert re.search(r"Done +12", shown.out + shown.err)


def test_the_gradient_of_a_softmax_is_the_true_one():
    """Against finite differences of the loss of one row."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    model = LogisticRegression().fit(X, y)
    found = -per_row_statistic(model, X, y, "parameters")
    parameters = np.column_stack([model.coef_, model.intercept_])

    def loss(flat, i):
        scores = flat.reshape(3, 5) @ np.append(X[i], 1.0)
        return np.log(np.exp(scores).sum()) - scores[y[i]]

    for i in (0, 7, 31):
        gradient = approx_fprime(parameters.ravel(), loss, 1e-7, i)
        assert found[i] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)


@pytest.mark.thorough
def test_the_accuracy_of_an_attack_on_noise_is_that_of_guessing():
    """P(Binomial(400, .95) < 350) < 1e-8; the best threshold of all would pass .5 always."""
    rng, covered = np.random.default_rng(0), 0
    members = np.repeat([True, False], 50)
    for _ in range(400):
        found = attack_accuracy(members, rng.normal(size=100), 0.95)
        covered += found.low <= 0.5 <= found.high
    assert covered >= 350


def test_results_repeat_and_speak_plainly():
    X, y = noisy_table(100, 4)
    one, two = (membership_inference(LogisticRegression(), X, y, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.scores, two.scores)
    values = json.loads(json.dumps(one.to_dict()))
    assert values["n_members"] == values["n_others"] == 50
    assert "not how private" in str(one)


def test_workers_change_nothing():
    X, y = noisy_table(100, 4)
    one, two = (
        membership_inference(LogisticRegression(), X, y, random_state=3, n_shadow=8, n_jobs=n)
        for n in (1, 2)
    )
    np.testing.assert_allclose(one.scores, two.scores)


@pytest.mark.parametrize(
    "options",
    [
        {"attack": "guess"},
        {"access": "everything"},
        {"variance": "none"},
        {"n_shadow": 1},
        {"members": np.ones(60, dtype=bool)},
        {"members": [True]},
    ],
)
def test_bad_options(options):
    X, y = noisy_table(60, 3)
    with pytest.raises(ValueError):
        membership_inference(LogisticRegression().fit(X, y), X, y, **options)


def test_members_of_what_is_not_fitted():
    X, y = noisy_table(60, 3)
    with pytest.raises(NotFittedError):
        membership_inference(LogisticRegression(), X, y, members=np.arange(60) < 30)
    with pytest.raises(ValueError, match="linear model"):
        membership_inference(KNeighborsClassifier(), X, y, access="parameters")
    with pytest.raises(ValueError, match="needs a classifier"):
        membership_inference(LinearRegression(), X, y, access="labels")


def test_the_interval_of_the_area_covers_it():
    """Two shifted normals with a known area; P(Binomial(400, .95) < 350) < 1e-8."""
    rng, covered = np.random.default_rng(0), 0
    members = np.repeat([True, False], 100)
    for _ in range(400):
        found = area_under_curve(members, rng.normal(size=200) + members, 0.95)
        covered += found.low <= 0.760249 <= found.high
    assert covered >= 350


def test_the_rate_at_a_false_alarm_rate_allows_no_more_alarms():
    members = np.repeat([True, False], [100, 200])
    scores = np.concatenate([np.full(100, 2.0), np.repeat([3.0, 2.0, 1.0], [2, 8, 190])])
    assert rate_at(members, scores, 0.01, 0.95).value == 0.0
    assert rate_at(members, scores, 0.05, 0.95).value == 1.0
    assert rate_at(members, scores, 0.001, 0.95).value == 0.0


def test_shadows_do_not_share_the_noise_of_a_seeded_target():
    """With its noise in every shadow the area was 0.80 here; it stays below .7 but for 1e-6."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 60)), rng.integers(0, 2, 200)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    model = DPLogisticRegression(1.0, mechanism="output", random_state=0)
    with pytest.warns(SeededNoiseWarning):
        found = membership_inference(model, X, y, n_shadow=32, random_state=0)
    assert found.auc.value < 0.7


@pytest.mark.parametrize(("n", "area"), [(5, 0.5), (10, 0.95), (30, 0.99), (100, 0.999)])
def test_the_interval_of_the_area_covers_near_one_as_well(n, area):
    """Of 400 repetitions at least 350 but for P(Binomial(400, .95) < 350) < 1e-8."""
    rng = np.random.default_rng(0)
    members = np.arange(2 * n) < n
    shift = np.sqrt(2.0) * ndtri(area)
    found = [
        area_under_curve(members, rng.normal(size=2 * n) + shift * members, 0.95)
        for _ in range(400)
    ]
    assert sum(one.low <= area <= one.high for one in found) >= 350


def test_a_perfect_separation_of_few_rows_is_no_certainty():
    members = np.arange(20) < 10
    scores = members.astype(float)
    area = area_under_curve(members, scores, 0.95)
    assert area.value == 1.0 and area.low == pytest.approx(0.025**0.1)
    assert area_under_curve(members, -scores, 0.95).high == pytest.approx(1.0 - 0.025**0.1)
    accuracy = attack_accuracy(members, scores, 0.95)
    assert accuracy.value == 1.0 and 0.7 < accuracy.low < 0.9 and accuracy.high == 1.0


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("n_others", [10, 100, 1000])
def test_few_others_raise_no_alarm_at_a_rate_that_they_do_not_show(n_others):
    """Of noise the rate found is the rate allowed. P(Binomial(400, .025) > 30) = 1e-7."""
    rng, members = np.random.default_rng(0), np.arange(2 * n_others) < n_others
    above, beyond = 0, 0
    for _ in range(400):
        found = rate_at(members, rng.normal(size=2 * n_others), 0.01, 0.95)
        above, beyond = above + (found.low > 0.01), beyond + (found.high < 0.01)
        assert found.low <= found.value <= found.high
    assert max(above, beyond) <= 30


def test_many_others_show_what_is_found_at_a_rate():
    members, scores = np.arange(4000) < 2000, np.random.default_rng(0).normal(size=4000)
    scores[:500] += 20.0
    found = rate_at(members, scores, 0.01, 0.95)
    assert 0.2 < found.low < 0.25 < found.high < 0.35


def test_limits_of_a_rate_are_exact():
    for n, hits in ((10, 0), (10, 10), (50, 7)):
        low, high = clopper_pearson(hits, n, 0.9)
        if hits:
            assert binom.sf(hits - 1, n, low) == pytest.approx(0.05)
        if hits < n:
            assert binom.cdf(hits, n, high) == pytest.approx(0.05)


def test_the_result_is_said_in_plain_words():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(300, 2)), rng.integers(0, 2, size=300)
    found = membership_inference(DecisionTreeClassifier(), X, y, attack="loss")
    words = " ".join(str(found).split())
    assert "tried to tell who was used to train the model" in words
    assert f"in {found.auc.value:.0%} of cases" in words and "Another attack may find more" in words
    assert ("learned something" in words) == (found.auc.low > 0.5)
