import json
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from skdp import (
    DPGaussianNB,
    DPLogisticRegression,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPRidge,
    DPSGDClassifier,
    PrivacyAccountant,
)
from skdp.audit import EpsilonAudit, audit_epsilon
from skdp.exceptions import PrivacyViolationWarning


def unit_rows(n=300, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(0, 2, n)


def quiet_audit(estimator, *args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyViolationWarning)
        return audit_epsilon(estimator, *args, **({"confidence": 1.0 - 1e-7} | options))


class HalfNoise(DPLogisticRegression):
    """An eighth of the noise that is claimed."""

    def fit(self, X, y):
        self.epsilon, claimed = 8.0 * self.epsilon, self.epsilon
        super().fit(X, y)
        self.epsilon = claimed
        return self


class SharedNoise(DPLogisticRegression):
    """One noise vector for all classes."""

    def fit(self, X, y):
        exact = LogisticRegression(C=1.0).fit(X, y)
        super().fit(X, y)
        self.coef_ = exact.coef_ + (self.coef_[0] - exact.coef_[0])
        return self


class CountedRows(DPLogisticRegression):
    """The number of rows of each class, as it is."""

    def fit(self, X, y):
        super().fit(X, y)
        self.class_count_ = np.unique(y, return_counts=True)[1].astype(float)
        return self


OUTPUT = {"mechanism": "output", "C": 1.0, "fit_intercept": False}


@pytest.mark.thorough
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_true_claim_stands(delta, relation):
    accountant = PrivacyAccountant(1e6, 0.5, relation=relation)
    model = DPLogisticRegression(epsilon=1.0, delta=delta, accountant=accountant, **OUTPUT)
    # So many fits without noise would certify 1.7.
    found = quiet_audit(model, n_fits=200)
    assert 0.0 <= found.lower_bound < 1.0 and not found.violation
    assert found.runs == 400
    assert accountant.epsilon_spent == 0.0
    assert "no attack can show that a claim holds" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["violation"] is False


@pytest.mark.thorough
def test_much_of_a_true_claim_is_found():
    model = DPLogisticRegression(epsilon=4.0, delta=0.0, **OUTPUT)
    found = quiet_audit(model, n_fits=600, n_samples=1700, confidence=0.999)
    assert found.lower_bound > 0.3 * 4.0


@pytest.mark.thorough
@pytest.mark.parametrize("broken", [HalfNoise, CountedRows])
def test_a_false_claim_is_called_a_violation(broken):
    with pytest.warns(PrivacyViolationWarning, match="VIOLATION"):
        found = audit_epsilon(broken(epsilon=1.0, delta=0.0, **OUTPUT), n_fits=300)
    assert found.violation and found.lower_bound > 1.0
    assert "VIOLATION" in str(found)


@pytest.mark.thorough
def test_noise_that_classes_share_is_found():
    X, y = unit_rows(200, 3)
    y = np.arange(200) % 3
    canary = np.array([1.0, 0.0, 0.0]), 0
    options = {"method": "two_worlds", "canary": canary, "n_fits": 100, "delta": 0.0}
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(SharedNoise(epsilon=1.0, **OUTPUT), X, y, **options)
    assert found.lower_bound > 1.0
    honest = DPLogisticRegression(epsilon=1.0, **OUTPUT)
    assert not quiet_audit(honest, X, y, **options).violation


def test_a_model_without_privacy_keeps_no_claim():
    X, y = unit_rows()
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(LogisticRegression(), X, y, method="two_worlds", epsilon=1, n_fits=50)
    assert found.violation
    with pytest.raises(ValueError, match="needs an estimator with a parameter epsilon"):
        audit_epsilon(LogisticRegression(), n_fits=50)


def test_one_run():
    X, y = unit_rows()
    model = DPLogisticRegression(
        epsilon=100.0, delta=1e-5, mechanism="gradient", fit_intercept=False
    )
    # The claim is far above what one run can certify.
    options = {"method": "one_run", "n_canaries": 1000, "random_state": 0, "confidence": 0.99}
    found = quiet_audit(model, X, y, **options)
    assert 0.5 < found.lower_bound < 100.0 and found.runs == 1
    with pytest.warns(PrivacyViolationWarning):
        audit_epsilon(model, X, y, epsilon=0.5, **options)
    gaussian = quiet_audit(model, X, y, gaussian=True, **options)
    assert gaussian.lower_bound > 0.5 and "Gaussian" in str(gaussian)


PLAIN_STEPS = {"average": False, "momentum": 0.0, "penalty": None, "fit_intercept": False}


@pytest.mark.parametrize(
    ("sampling", "claim"),
    [({"sampling": "full"}, 8.0), ({"sampling": "poisson", "batch_size": 400}, 8.0)],
    ids=["full", "poisson"],
)
def test_one_run_of_noisy_gradients(sampling, claim):
    """A fifth of the claim, in one fit; that the claim is not passed may fail once in 1e7."""
    X, y = unit_rows(1000, 5)
    model = DPSGDClassifier(claim, delta=1e-5, **sampling, **PLAIN_STEPS)
    found = quiet_audit(model, X, y, method="one_run", confidence=0.95, random_state=0)
    assert 0.2 * claim <= found.lower_bound < claim


@pytest.mark.parametrize("shift", [0.0, 1.0, -100.0])
def test_one_run_sees_a_regressor_without_privacy_wherever_its_targets_are(shift):
    X, _ = unit_rows(400, 3)
    y = X[:, 0] + shift
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(
            Ridge(), X, y, epsilon=1.0, delta=1e-5, method="one_run", n_canaries=400, random_state=0
        )
    assert found.lower_bound > 2.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("classes", [2, 3])
def test_one_run_under_replace_one(classes):
    X, _ = unit_rows(300, 3)
    y = np.arange(300) % classes
    accountant = PrivacyAccountant(1e6, 0.5, relation="replace_one")
    options = {"method": "one_run", "n_canaries": 400, "random_state": 0, "confidence": 0.99}
    model = DPSGDClassifier(50.0, accountant=accountant, sampling="full", **PLAIN_STEPS)
    found = quiet_audit(model, X, y, **options)
    assert 1.0 < found.lower_bound < 50.0 and accountant.epsilon_spent == 0.0
    with pytest.warns(PrivacyViolationWarning):
        audit_epsilon(model, X, y, epsilon=0.2, **options)


class NoNoise(DPLogisticRegression):
    """A millionth of the noise that is claimed."""

    def fit(self, X, y):
        self.epsilon, claimed = 1e6 * self.epsilon, self.epsilon
        super().fit(X, y)
        self.epsilon = claimed
        return self


@pytest.mark.thorough
def test_the_default_audit_goes_on_only_where_its_verdict_is_open():
    """No thousand fits certify 20. Two hundred cannot certify 4, a thousand without noise do."""
    options = OUTPUT | {"delta": 0.0}
    options["accountant"] = PrivacyAccountant(1e6, 0.5, relation="replace_one")
    found = audit_epsilon(DPLogisticRegression(20.0, **options))
    assert found.runs == 400 and not found.violation
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(NoNoise(4.0, **options))
    assert found.runs == 2000 and found.violation


@pytest.mark.parametrize("gaussian", [False, True])
@pytest.mark.parametrize("bound", [0.0, 2.0])
def test_an_audit_says_in_one_line_what_was_tried_and_what_it_shows(bound, gaussian):
    found = EpsilonAudit(bound, 1.0, 1e-6, 0.95, "worst_case", "a test", 400, gaussian)
    printed = str(found)
    assert "\n" not in printed and printed.endswith(".") and printed.count(". ") <= 4
    assert "trained the model 400 times" in printed and "differ in one record" in printed
    assert "proves that epsilon is at least" in printed
    assert printed.startswith("VIOLATION" if bound > 1.0 else "No violation was found")
    assert ("Gaussian" in printed) == gaussian and printed in found.to_dict()["words"]


CANARIES = {"row": "record", "group": "group of 3 equal rows", "person": "person"}


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", CANARIES)
@pytest.mark.parametrize("method", ["worst_case", "two_worlds", "one_run"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_an_audit_names_the_canary_of_its_unit(method, unit, relation, delta):
    config = {"max_rows": 3} if unit == "group" else {}
    accountant = PrivacyAccountant(9.0, 1e-4, unit=unit, relation=relation, **config)
    model = DPGaussianNB(1.0, delta=delta, bounds=(0, 1), classes=[0, 1], accountant=accountant)
    rows = np.random.default_rng(0).random((60, 2))
    groups = np.arange(60) // 2 if unit == "person" and method != "worst_case" else None
    options = {"n_canaries": 20} if method == "one_run" else {"n_fits": 40}
    found = quiet_audit(
        model, rows, np.arange(60) % 2, groups=groups, method=method, random_state=0, **options
    )
    text = str(found)
    replaced = relation == "replace_one"
    if method == "worst_case":
        assert f"tables that differ in one {CANARIES[unit]}, the one" in text
    elif method == "two_worlds":
        assert f"one conspicuous {CANARIES[unit]}" in text
        assert ("with another one in its place" in text) is replaced
    else:
        plurals = {"row": "records", "group": "groups of 3 equal rows", "person": "persons"}
        assert f" {plurals[unit]} " in text
        assert ("whose labels had been chosen by coin flips" in text) is replaced
        assert ("had been added by coin flips" in text) is not replaced
    assert ("and delta = 1e-06" in text) is (delta > 0)
    ((_, fits),) = found.section().rows
    assert f", {found.runs} fit{'s' if found.runs > 1 else ''}, by" in fits
    assert found.to_dict()["unit"] == unit


@pytest.mark.thorough
@pytest.mark.parametrize(
    "model", [RandomForestClassifier(5, bootstrap=False), KNeighborsClassifier(1)], ids=str
)
def test_models_without_coefficients(model):
    """Their trees, or the rows that they keep, tell the canary's label."""
    X, y = unit_rows(60, 3)
    canary = np.array([5.0, 5.0, 5.0]), 1
    options = {"method": "two_worlds", "canary": canary, "replacement": (canary[0], 0)}
    options["relation"] = "replace_one"
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(model, X, y, epsilon=0.5, n_fits=60, **options)
    assert found.lower_bound > 1.0


def test_fits_that_publish_differently_many_numbers():
    X, y = np.repeat(np.arange(4.0), 5)[:, None], np.arange(20) % 2
    model = DPOneHotEncoder(epsilon=1.0, delta=1e-3)
    options = {"method": "two_worlds", "n_fits": 60, "canary": (np.array([1.0]), 1)}
    assert not quiet_audit(model, X, y, **options).violation


MEAN_OF_ONES = {"method": "two_worlds", "canary": (np.array([-1.0]), 0)}


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("relation", "options"),
    [
        # Tables of two sizes certify more than 1 by as many, and are then given one size.
        ("add_remove", {"n_fits": 1500}),
        ("add_remove", {"n_fits": 1000, "replacement": (np.array([1.0]), 0)}),
        ("replace_one", {"n_fits": 2500, "replacement": (np.array([1.0]), 0)}),
    ],
)
def test_the_true_claim_of_a_mean_stands(relation, options):
    """Its divisor is the number of rows, and a replaced row moves it twice as far as a null row.

    An exact bound passes the claim with probability 1e-7. Bounds of 2500 fits were .56 ± .06, so .2
    is six standard deviations away.
    """
    accountant = PrivacyAccountant(1e6, 0.5, relation=relation)
    mean = DPMeanTransformer(1.0, bounds=(-1, 1), accountant=accountant)
    found = quiet_audit(mean, np.ones((200, 1)), np.zeros(200), **MEAN_OF_ONES, **options)
    assert 0.2 < found.lower_bound < 1.0


@pytest.mark.thorough
def test_a_mean_with_a_quarter_of_the_noise_is_found_whatever_the_tables():
    class QuarterOfTheNoise(DPMeanTransformer):
        def fit(self, X, y=None):
            claimed, self.epsilon = self.epsilon, 4.0 * self.epsilon
            super().fit(X, y)
            self.epsilon = claimed
            return self

    X, y = np.ones((200, 1)), np.zeros(200)
    for options in ({"n_fits": 600}, {"n_fits": 1000, "replacement": (np.array([1.0]), 0)}):
        with pytest.warns(PrivacyViolationWarning):
            found = audit_epsilon(
                QuarterOfTheNoise(1.0, bounds=(-1, 1)), X, y, **MEAN_OF_ONES, **options
            )
        assert 1.5 < found.lower_bound < 4.0


class Tail(BaseEstimator):
    """Keeps whether there is a large value, in one form or another, nearly without noise."""

    noise = np.random.default_rng(0)

    def __init__(self, form="int", epsilon=1.0):
        self.form = form
        self.epsilon = epsilon

    def fit(self, X, y):
        found, noise = int(np.sum(X[:, 0] > 4.0)), self.noise.normal(scale=0.01)
        self.tail_ = {
            "int": lambda: round(found + noise),
            "array of int": lambda: np.array([found]),
            "list": lambda: [np.array([found + noise])],
            "dict": lambda: {"a": found + noise},
            "objects": lambda: np.array([np.array([found + noise]), None], dtype=object),
            "infinite": lambda: np.array([np.inf if found and noise > 0.0 else noise, noise]),
            "estimators": lambda: [Tail("int").fit(X, y)],
        }[self.form]()
        return self


@pytest.mark.parametrize(
    "form", ["int", "array of int", "list", "dict", "objects", "infinite", "estimators"]
)
def test_numbers_are_seen_wherever_they_are_published(form, monkeypatch):
    monkeypatch.setattr(Tail, "noise", np.random.default_rng(0))
    X, y = unit_rows(60, 2)
    worlds = {"canary": (np.array([5.0, 0.0]), 1), "replacement": (np.zeros(2), 1)}
    options = {"method": "two_worlds", "relation": "replace_one", "n_fits": 200}
    with pytest.warns(PrivacyViolationWarning):
        found = audit_epsilon(Tail(form), X, y, **worlds, **options)
    assert found.lower_bound > 1.0


def test_one_run_passes_a_true_claim_seldom():
    """Bounds hold with confidence .95: P(Binomial(40, .05) > 11) < 1e-6."""
    X, y = unit_rows(100, 2)
    model = DPLogisticRegression(epsilon=1.0, delta=1e-5, mechanism="gradient")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyViolationWarning)
        found = [
            audit_epsilon(model, X, y, method="one_run", n_canaries=100, random_state=i)
            for i in range(40)
        ]
    assert sum(audit.violation for audit in found) <= 11


@pytest.mark.thorough
def test_a_true_claim_of_a_regressor_stands():
    # So many fits without noise would certify 0.43.
    ridge = DPRidge(epsilon=0.25, target_bounds=(-1.0, 1.0))
    assert not quiet_audit(ridge, n_fits=100).violation


@pytest.mark.thorough
def test_workers_and_a_seed_that_would_repeat_the_noise():
    # The same noise in every fit would certify 0.43.
    model = DPLogisticRegression(epsilon=0.25, random_state=0, **OUTPUT)
    assert not quiet_audit(model, n_fits=100, n_jobs=2).violation


@pytest.mark.parametrize(
    "options",
    [
        {"method": "guess"},
        {"method": "two_worlds"},
        {"relation": "removed"},
        {"method": "one_run"},
        {"n_fits": 1},
        {"gaussian": True, "delta": 0.0},
        {"epsilon": -1.0},
        {"confidence": 2.0},
    ],
)
def test_bad_options(options):
    with pytest.raises(ValueError):
        audit_epsilon(DPLogisticRegression(**OUTPUT), **({"n_fits": 20} | options))


def test_a_canary_of_a_label_that_only_its_world_has_is_refused():
    """A classifier takes the labels of y to be public, so that such worlds are no neighbors."""
    X, y = np.random.default_rng(0).uniform(size=(60, 2)), np.arange(60) % 2
    model, row = DPLogisticRegression(epsilon=0.1, **OUTPUT), [0.0, 1.0]
    options = {"method": "two_worlds", "n_fits": 20, "epsilon": 0.1, "delta": 1e-6}
    for given in ({"canary": (row, 2)}, {"canary": (row, 0), "replacement": (row, 7)}):
        with pytest.raises(ValueError, match="public"):
            audit_epsilon(model, X, y, **given, **options)
        with pytest.raises(ValueError, match="public"):
            audit_epsilon(make_pipeline(Normalizer(), model), X, y, **given, **options)
    declared = DPLogisticRegression(epsilon=0.1, classes=[0, 1, 2], **OUTPUT)
    assert not quiet_audit(declared, X, y, canary=(row, 2), **options).violation
    ridge = DPRidge(target_bounds=(0, 9), epsilon=0.1)
    assert not quiet_audit(ridge, X, y, canary=(row, 7), **options).violation
