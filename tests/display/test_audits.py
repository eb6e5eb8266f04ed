import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.audit import EpsilonAudit, membership_inference, success_bound
from skdp.display import EpsilonAuditDisplay, MembershipInferenceDisplay, PrivacyUtilityDisplay

pyplot = pytest.importorskip("matplotlib.pyplot")
pyplot.switch_backend("agg")


@pytest.fixture(scope="module")
def table():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def test_membership(table):
    tree = DecisionTreeClassifier(random_state=0)
    options = {"attack": "loss", "random_state": 0}
    display = MembershipInferenceDisplay.from_estimator(tree, *table, **options).plot()
    assert display.epsilon is None and len(display.lines_) == 1
    private = MembershipInferenceDisplay.from_estimator(
        DPLogisticRegression(epsilon=2.0), *table, name="private", **options
    )
    assert (private.epsilon, private.delta) == (2.0, 1e-6)
    results = {"tree": membership_inference(tree, *table, **options)} | private.results
    both = MembershipInferenceDisplay.from_results(results, epsilon=2.0)
    figure, ax = pyplot.subplots()
    assert both.plot(ax=ax).ax_ is ax
    assert [line.get_label().split(" (")[0] for line in both.lines_] == ["tree", "private"]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    pyplot.close("all")


def test_the_region_is_that_of_the_definition():
    rates = np.linspace(0.0, 1.0, 101)
    allowed = success_bound(rates, 1.0, 0.01)
    for fpr, tpr in zip(rates, allowed, strict=True):
        assert tpr <= np.e * fpr + 0.01 + 1e-12
        assert 1.0 - fpr <= np.e * (1.0 - tpr) + 0.01 + 1e-12
    assert allowed[0] == 0.01 and allowed[-1] == 1.0


def test_the_region_is_that_of_a_replaced_row():
    """Of two rows, +1 and -1, one is in: a sum with Laplace noise tells which, at 2 epsilon."""
    members = np.arange(2000) < 1000
    X, y = np.linspace(0.0, 1.0, 2000)[:, None], (np.arange(2000) % 2)
    found = membership_inference(
        DummyClassifier().fit(X[members], y[members]), X, y, attack="loss", members=members
    )
    tops = []
    for relation in ("add_remove", "replace_one"):
        shown = MembershipInferenceDisplay.from_results(
            {"any": found}, epsilon=1.0, relation=relation
        ).plot()
        outline = shown.ax_.collections[0].get_paths()[0].vertices
        tops.append(outline[np.isclose(outline[:, 0], 0.0005)][:, 1].max() / 0.0005)
    np.testing.assert_allclose(tops, np.exp([2.0, 1.0]), rtol=1e-6)


@pytest.mark.thorough
def test_epsilon_audits():
    model = DPLogisticRegression(mechanism="output", C=1.0)
    display = EpsilonAuditDisplay.from_estimator(model, epsilons=[4.0, 1.0], n_fits=40).plot()
    assert list(display.line_.get_xdata()) == [1.0, 4.0]
    assert model.epsilon == 1.0
    broken = EpsilonAudit(3.0, 1.0, 0.0, 0.95, "worst_case", "a weight", 100)
    display = EpsilonAuditDisplay.from_audits([broken]).plot()
    assert display.line_.get_ydata()[0] == 3.0
    pyplot.close("all")


def test_privacy_against_utility(table):
    accountant = PrivacyAccountant(100.0, 1e-3)
    display = PrivacyUtilityDisplay.from_estimator(
        DPLogisticRegression(accountant=accountant),
        *table,
        epsilons=[0.1, 10.0],
        n_repeats=3,
        reference=LogisticRegression(),
    ).plot()
    assert display.cost == pytest.approx(30.3) == pytest.approx(accountant.epsilon_spent)
    assert display.scores.shape == (2, 3)
    assert display.reference > 0.9
    assert "30.3" in display.ax_.get_title()
    pyplot.close("all")
