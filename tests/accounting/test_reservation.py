import pickle
from copy import deepcopy

import pytest
from sklearn.base import clone

from skdp import DPStandardScaler, PrivacyAccountant
from skdp.accounting import (
    Allowance,
    ApproximateDP,
    Gaussian,
    Laplace,
    PlannedCharge,
    PureDP,
    Reservation,
    plan_event,
)
from skdp.exceptions import BudgetExceededError, LedgerError

PLAN = (PlannedCharge("a", Laplace(0.25), 0.25), PlannedCharge("b", PureDP(0.75), 0.75))


@pytest.mark.parametrize(
    ("planned", "event", "covered"),
    [
        (Gaussian(2.0), Gaussian(2.0), True),
        (Gaussian(2.0), Gaussian(3.0), True),
        (Gaussian(2.0), Gaussian(1.999), False),
        (Gaussian(2.0), Laplace(1e-9), False),
        (Gaussian(2.0) * 10, Gaussian(2.0) * 10, True),
        (Gaussian(2.0) * 10, Gaussian(2.0) * 9, True),
        (Gaussian(2.0) * 10, Gaussian(2.0) * 11, False),
        (Gaussian(2.0) + Laplace(1.0), Laplace(1.0) + Gaussian(2.0), True),
        (PureDP(1.0), Laplace(1.0), True),
        (PureDP(1.0), Laplace(1.001), False),
        (PureDP(1.0), Gaussian(1e6), False),
        (ApproximateDP(1.0, 1e-5), Gaussian(3.8), True),
        (ApproximateDP(1.0, 1e-5), Gaussian(3.6), False),
        (ApproximateDP(1.0, 1e-5), ApproximateDP(0.5, 2e-5), False),
    ],
)
def test_a_plan_covers_what_costs_no_more(planned, event, covered):
    assert PlannedCharge("step", planned, 1.0, 1e-5).covers(event, "add_remove") is covered


def test_an_allowance_is_used_once():
    accountant = PrivacyAccountant(1.0, 0.0)
    spend = accountant.charge(plan_event(PLAN), label="search", epsilon=1.0)
    allowance = Allowance(PLAN[1], accountant.terms, spend, steps=2)
    sent = pickle.loads(pickle.dumps(allowance))
    assert clone(allowance, safe=False) is allowance is deepcopy(allowance)
    with pytest.raises(ValueError, match="not planned"):
        allowance.charge(PureDP(0.76), epsilon=0.76)
    used = allowance.charge(PureDP(0.5), epsilon=0.5)
    assert (used.epsilon, used.delta, used.hash) == (0.5, 0.0, spend.hash)
    with pytest.raises(BudgetExceededError):
        allowance.charge(PureDP(0.5), epsilon=0.5)
    with pytest.raises(BudgetExceededError):
        pickle.loads(pickle.dumps(allowance)).charge(PureDP(0.5))
    assert sent.charge(PureDP(0.75)).epsilon == 0.75
    assert accountant.epsilon_spent == 1.0 and len(accountant.spends) == 1


def test_a_reservation_charges_whole_rounds():
    accountant = PrivacyAccountant(2.0, 0.0)
    a, b = Reservation(accountant, PLAN, 1.0, 0.0, "pipeline").steps
    first = a.charge(Laplace(0.25), epsilon=0.25, label="scaler")
    assert accountant.epsilon_spent == 1.0
    second = b.charge(PureDP(0.75), epsilon=0.75, label="model")
    assert accountant.epsilon_spent == 1.0
    assert first.hash == second.hash == accountant.spends[0].hash
    assert [draw.label for draw in accountant.draws] == ["b (model)"]
    b.charge(PureDP(0.75), epsilon=0.75)
    assert accountant.epsilon_spent == 2.0
    with pytest.raises(BudgetExceededError):
        b.charge(PureDP(0.75), epsilon=0.75)
    a.charge(Laplace(0.25), epsilon=0.25)
    assert a.reservation.rounds == 2
    report = accountant.report()
    assert accountant.verify() == report.head_hash and len(report.draws) == 2
    assert str(report).count("already charged") == 2
    assert report._repr_html_() and len(report.to_dict()["draws"]) == 2


def test_estimators_take_handles():
    accountant = PrivacyAccountant(2.0, 0.0)
    scaler = DPStandardScaler(0.25, bounds=(0, 1))
    step = Reservation(accountant, PLAN, 1.0, 0.0).steps[0]
    fitted = scaler.set_params(accountant=step).fit([[0.0], [1.0]])
    assert clone(fitted).get_params()["accountant"] is step
    assert pickle.loads(pickle.dumps(fitted)).accountant == step
    assert fitted.privacy_.epsilon == 0.25 and "a plan of 2" in fitted.privacy_.composition
    assert fitted.privacy_.record == accountant.spends[0].hash
    allowance = Allowance(PLAN[0], accountant.terms, None, steps=2)
    assert scaler.set_params(accountant=allowance).fit([[0.0], [1.0]]).privacy_.record == ""
    with pytest.raises(BudgetExceededError):
        scaler.fit([[0.0], [1.0]])
    assert not hasattr(scaler, "privacy_")


def test_another_plan_of_that_name_is_refused():
    accountant = PrivacyAccountant(9.0, 0.0)
    Reservation(accountant, PLAN, 1.0, 0.0, name="one").steps[0].charge(Laplace(0.25))
    with pytest.raises((ValueError, LedgerError), match="another plan"):
        Reservation(accountant, PLAN[:1], 0.25, 0.0, name="one").steps[0].charge(Laplace(0.25))
