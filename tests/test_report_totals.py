"""The headline of a privacy report is the cost of all that it names, whatever the ledgers are."""

import math

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPStandardScaler,
    PrivacyAccountant,
    privacy_report,
)

X = np.random.default_rng(0).uniform(size=(60, 2))
Y = (X[:, 0] > 0.5).astype(int)
SCALER = (0.5, 0.0)
MODEL = (0.25, 1e-6)
N_FITS = 2 * 3 + 1


def scaler(accountant):
    return DPStandardScaler(SCALER[0], bounds=(0, 1), accountant=accountant)


def model(accountant):
    return DPLogisticRegression(
        MODEL[0], delta=MODEL[1], data_norm=2.0, accountant=accountant, mechanism="output", C=1.0
    )


def ledger(**config):
    return PrivacyAccountant(50.0, 0.01, **config)


def accountants(places):
    """Return the accountants of the two releases."""
    if places == "same ledger":
        return (ledger(),) * 2
    return (ledger(), ledger()) if places == "two ledgers" else (None, None)


def reported(kind, first, second):
    """Return the sources of a report, and how often each of the two releases was made."""
    if kind == "two models":
        return (scaler(first).fit(X), model(second).fit(X, Y)), (1, 1)
    pipe = make_pipeline(scaler(first), model(second))
    if kind == "pipeline":
        return (pipe.fit(X, Y),), (1, 1)
    name = "dplogisticregression__C"
    search = GridSearchCV(pipe, {name: [0.1, 1.0]}, cv=KFold(3)).fit(X, Y)
    return (search,), (N_FITS, N_FITS)


@pytest.mark.parametrize("places", ["same ledger", "two ledgers", "no accountant"])
@pytest.mark.parametrize("kind", ["pipeline", "two models", "search"])
def test_the_headline_is_the_sum_of_all_charges(kind, places):
    first, second = accountants(places)
    sources, counts = reported(kind, first, second)
    epsilon = SCALER[0] * counts[0] + MODEL[0] * counts[1]
    delta = SCALER[1] * counts[0] + MODEL[1] * counts[1]
    report = privacy_report(*sources)
    (total,) = report.totals
    assert total.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert total.delta == pytest.approx(delta, rel=1e-9)
    assert total.n_charges == sum(counts)
    spent = {id(a): a.epsilon_spent for a in (first, second) if a is not None}
    if spent:
        assert total.epsilon == pytest.approx(math.fsum(spent.values()), rel=1e-9)
    assert report.to_text().count("Total:") == 1


@pytest.mark.parametrize("other", [{"relation": "replace_one"}, {"unit": "group", "max_rows": 2}])
def test_costs_of_other_relations_or_units_do_not_add_up(other):
    report = privacy_report(scaler(ledger()).fit(X), model(ledger(**other)).fit(X, Y))
    assert [total.epsilon for total in report.totals] == [SCALER[0], MODEL[0]]
    for total, name in zip(report.totals, ["DPStandardScaler", "DPLogisticReg"], strict=True):
        assert total.of.startswith(name) and " and DP" not in total.of
        assert "no single total: 2 ledgers" in total.composition
    assert "no single total" in " ".join(report.to_text().split())


def test_other_compositions_and_releases_in_no_ledger_add_up():
    """The total of one ledger may be less than a sum; beside others it is added."""
    accountant = ledger(composition="zcdp")
    sources = [scaler(accountant).fit(X) for _ in range(5)]
    own = accountant.epsilon_spent
    report = privacy_report(*sources, model(None).fit(X, Y))
    (total,) = report.totals
    assert total.epsilon == pytest.approx(own + MODEL[0], rel=1e-9)
    assert total.delta == pytest.approx(accountant.delta_spent + MODEL[1], rel=1e-9)
    assert len(total.parts) == 2 and "releases in no ledger" in total.composition


def test_a_single_best_model_is_not_the_total():
    """One statement, but a search that charged for every candidate and fold."""
    accountant = ledger()
    search = GridSearchCV(model(accountant), {"C": [0.1, 1.0]}, cv=KFold(3)).fit(X, Y)
    text = " ".join(privacy_report(search).to_text().split())
    assert "Total: the private part of GridSearchCV is (1.75, 7e-06)" in text
    assert text.index("GridSearchCV is (1.75, 7e-06)") < text.index("DPLogisticRegression")


def test_fits_of_an_unknown_cost_are_named():
    """Candidates with other budgets and without a ledger leave nothing to compute a total from."""
    search = GridSearchCV(model(None), {"epsilon": [0.1, 0.25]}, cv=KFold(3)).fit(X, Y)
    (total,) = privacy_report(search).totals
    assert "without the other fits of GridSearchCV, which cost more" in total.of
    accountant = ledger()
    search = GridSearchCV(model(accountant), {"epsilon": [0.1, 0.25]}, cv=KFold(3)).fit(X, Y)
    (total,) = privacy_report(search).totals
    assert total.epsilon == pytest.approx(accountant.epsilon_spent)


def test_a_private_search_counts_once():
    accountant = ledger()
    search = DPGridSearchCV(
        model(None), {"C": [0.1, 1.0]}, epsilon=2.0, delta=1e-5, accountant=accountant, cv=2
    ).fit(X, Y)
    (total,) = privacy_report(search).totals
    assert total.epsilon == pytest.approx(accountant.epsilon_spent) and total.n_charges == 1
