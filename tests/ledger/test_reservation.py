"""TODO doc."""

import contextlib
import itertools
import math
import multiprocessing
import os
import pickle
import random
import re
import threading
import time
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp import DPStandardScaler, PrivacyAccountant
from skdp.accounting import ApproximateDP, Composed, Gaussian, Laplace, PureDP
from skdp.exceptions import BudgetExceededError, LedgerError
from skdp.ledger import Allowance, PlannedCharge, Reservation, chain_end, plan_event
from skdp.ledger._reservation import ReservedStep, covering_event
from skdp.ledger._state import PlanRuns
from tests._private import describe_part, privacy_line
from tests._processes import Child, read_first_byte, read_to_end

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
        (Gaussian(2.0), Gaussian(20.0) * 100, True),
        (Gaussian(2.0) * 25, Gaussian(0.4), True),
        (Gaussian(2.0), Gaussian(20.0) * 101, False),
        (Gaussian(2.0), Gaussian(4.0) + Laplace(1e-9), False),
        (Gaussian(2.0), Gaussian(3.0) + Gaussian(3.0), True),
        (Gaussian(2.0), Gaussian(3.0) + Gaussian(2.6), False),
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


def test_gaussians_that_cost_the_same_are_covered_by_one():
    events = [Gaussian(3.7 * math.sqrt(n)) * n for n in (1, 7, 75, 20_000)]
    covering = covering_event(events)
    assert covering.noise_multiplier == pytest.approx(3.7, rel=2e-9)
    planned = PlannedCharge("step", covering, 1.0, 1e-5)
    assert all(planned.covers(event, "add_remove") for event in events)
    assert covering_event([Gaussian(3.7), Gaussian(3.70001)]) is None
    assert covering_event([Gaussian(3.7), Laplace(1.0)]) is None


def test_a_plan_covers_a_release_that_may_reserve_a_delta():
    events = [Gaussian(3.7), Composed((Gaussian(3.72), ApproximateDP(0.0, 1e-7)))]
    planned = PlannedCharge("step", covering_event(events), 1.0, 1e-5)
    assert all(planned.covers(event, "add_remove") for event in events)
    for more in (
        Gaussian(3.6),
        Composed((Gaussian(3.72), ApproximateDP(0.0, 2e-7))),
        Composed((Gaussian(3.72), ApproximateDP(0.0, 1e-7) * 2)),
        Composed((Gaussian(3.72), Laplace(0.1))),
    ):
        assert not planned.covers(more, "add_remove")
    assert covering_event([Gaussian(3.7), Gaussian(3.0), ApproximateDP(0.0, 1e-7)]) is None


def test_an_allowance_is_used_once():
    accountant = PrivacyAccountant(1.0, 0.0)
    spend = accountant.charge(plan_event(PLAN), label="search", epsilon=1.0)
    allowance = Allowance(PLAN[1], accountant.config, spend, steps=2)
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
    assert accountant.epsilon_spent == 1.0 and len(accountant.charges) == 1


def test_a_reservation_charges_whole_rounds():
    accountant = PrivacyAccountant(2.0, 0.0)
    a, b = Reservation(accountant, PLAN, 1.0, 0.0, "pipeline").steps
    first = a.charge(Laplace(0.25), epsilon=0.25, label="scaler")
    assert accountant.epsilon_spent == 1.0
    second = b.charge(PureDP(0.75), epsilon=0.75, label="model")
    assert accountant.epsilon_spent == 1.0
    assert first.hash == second.hash == accountant.charges[0].hash
    assert [draw.label for draw in accountant.reuses] == ["b (model)"]
    b.charge(PureDP(0.75), epsilon=0.75)
    assert accountant.epsilon_spent == 2.0
    with pytest.raises(BudgetExceededError):
        b.charge(PureDP(0.75), epsilon=0.75)
    a.charge(Laplace(0.25), epsilon=0.25)
    assert a.reservation.rounds == 2
    report = accountant.report()
    assert accountant.verify() == report.head_hash and len(report.reuses) == 2
    assert str(report).count("already charged") == 2
    assert report._repr_html_() and len(report.to_dict()["reuses"]) == 2


def test_estimators_take_handles():
    accountant = PrivacyAccountant(2.0, 0.0)
    scaler = DPStandardScaler(0.25, bounds=(0, 1))
    step = Reservation(accountant, PLAN, 1.0, 0.0).steps[0]
    fitted = scaler.set_params(accountant=step).fit([[0.0], [1.0]])
    assert clone(fitted).get_params()["accountant"] is step
    assert pickle.loads(pickle.dumps(fitted)).accountant == step
    assert fitted.privacy_.epsilon == 0.25 and "a plan of 2" in fitted.privacy_.composition
    assert fitted.privacy_.record == accountant.charges[0].hash
    allowance = Allowance(PLAN[0], accountant.config, None, steps=2)
    assert scaler.set_params(accountant=allowance).fit([[0.0], [1.0]]).privacy_.record == ""
    with pytest.raises(BudgetExceededError):
        scaler.fit([[0.0], [1.0]])
    assert not hasattr(scaler, "privacy_")


def test_another_plan_is_another_reservation():
    accountant = PrivacyAccountant(9.0, 0.0)
    other = (PLAN[0], PlannedCharge("b", PureDP(0.5), 0.5))
    Reservation(accountant, PLAN, 1.0, 0.0, name="one").steps[0].charge(Laplace(0.25))
    Reservation(accountant, other, 0.75, 0.0, name="one").steps[1].charge(PureDP(0.5))
    assert accountant.epsilon_spent == 1.75 and not accountant.reuses


def many(steps, accountant, name="one"):
    plan = tuple(PlannedCharge(str(i), PureDP(1.0), 1.0) for i in range(steps))
    return Reservation(accountant, plan, float(steps), 0.0, name=name)


def check_rounds(accountant, reservation, uses):
    """Check the ledger against how often each step of a reservation was let run."""
    rounds = len(accountant.charges)
    steps = len(reservation.planned)
    assert all(used <= rounds for used in uses), f"{uses} uses of {rounds} rounds"
    assert rounds == max(uses), f"{rounds} rounds were charged for {uses}"
    assert accountant.epsilon_spent == rounds * steps
    assert rounds + len(accountant.reuses) == sum(uses), "something ran that no record shows"
    assert accountant.recompose("basic") == pytest.approx(rounds * steps, rel=1e-9)
    accountant.verify()


def run_steps(order, steps):
    accountant = PrivacyAccountant(1e6, 0.0)
    reservation = many(steps, accountant)
    uses = [0] * steps
    for step in order:
        reservation.steps[step].charge(PureDP(1.0))
        uses[step] += 1
        check_rounds(accountant, reservation, uses)


@pytest.mark.parametrize("steps", [1, 2])
def test_no_order_of_steps_runs_more_than_was_charged(steps):
    for order in itertools.product(range(steps), repeat=4):
        run_steps(order, steps)


def test_long_random_orders_of_steps():
    rng = random.Random(0)
    for _ in range(3):
        run_steps([rng.randrange(4) for _ in range(25)], 4)


def test_every_interleaving_of_whole_fits_costs_one_round_each():
    for order in set(itertools.permutations([0] * 3 + [1] * 3)):
        place = [0, 0]
        accountant = PrivacyAccountant(6.0, 0.0)
        reservation = many(3, accountant)
        for fit in order:
            reservation.steps[place[fit]].charge(PureDP(1.0))
            place[fit] += 1
        assert reservation.rounds == 2 and accountant.epsilon_spent == 6.0


def forgotten_draw(self, step, position=None):
    charged = self.charged if position is None else (*self.charged, position)
    uses = [used + (position is not None) * (i == step) for i, used in enumerate(self.step_counts)]
    return PlanRuns(charged, tuple(uses))


def always_free(self, step):
    return self.charged[0] if self.charged else None


def one_round_too_many(self, step):
    used = max(self.step_counts[step] - 1, 0)
    return self.charged[used] if used < len(self.charged) else None


@pytest.mark.parametrize(
    ("method", "mutant"),
    [
        ("with_step", forgotten_draw),
        ("first_without", always_free),
        ("first_without", one_round_too_many),
    ],
)
def test_a_rule_that_counts_wrongly_is_caught(monkeypatch, method, mutant):
    monkeypatch.setattr(PlanRuns, method, mutant)
    with pytest.raises((AssertionError, LedgerError)):
        for order in itertools.product(range(2), repeat=4):
            run_steps(order, 2)


def test_a_round_that_is_not_charged_is_caught(monkeypatch):
    monkeypatch.setattr(
        ReservedStep,
        "_paying_charge",
        lambda self, _, *args: self.reservation.accountant._make_request(*args),
    )
    with pytest.raises(AssertionError):
        run_steps([0, 1], 2)


def test_a_forged_draw_makes_the_ledger_unreadable():
    accountant = PrivacyAccountant(9.0, 0.0)
    reservation = many(2, accountant)
    reservation.steps[0].charge(PureDP(1.0))
    reservation.steps[1].charge(PureDP(1.0))
    forged = accountant._ledger.read("default")[-1].body
    accountant._ledger.append("default", chain_end([]), lambda records: ("reuse", forged))
    with pytest.raises(LedgerError, match="cannot be read"):
        assert accountant.epsilon_spent
    accountant.verify()


def test_records_of_plain_charges_are_as_before():
    accountant = PrivacyAccountant(9.0, 0.0)
    accountant.charge(PureDP(1.0))
    body = accountant._ledger.read("default")[-1].body
    names = {"label", "event", "epsilon", "delta", "seeded", "time", "version", "part"}
    assert set(body) == names


def test_a_refused_round_changes_nothing():
    accountant = PrivacyAccountant(2.5, 0.0)
    reservation = many(2, accountant)
    reservation.steps[0].charge(PureDP(1.0))
    before = accountant.verify()
    for event in (PureDP(1.5), Gaussian(1.0)):
        with pytest.raises(ValueError, match="not planned"):
            reservation.steps[1].charge(event)
    with pytest.raises(BudgetExceededError) as refused:
        reservation.steps[0].charge(PureDP(1.0))
    assert refused.value.asked == (2.0, 0.0) and refused.value.remaining == (0.5, 0.0)
    assert accountant.verify() == before


def test_reservations_on_parts_compose_in_parallel():
    accountant = PrivacyAccountant(2.0, 0.0)
    for part in accountant.disjoint("clinic", 3, by_index=True):
        for step in many(2, part).steps:
            assert step.charge(PureDP(1.0)).part.partition == "clinic"
    assert accountant.epsilon_spent == 2.0 and len(accountant.charges) == 3
    assert "part 3 of 3" in str(accountant.report())


def test_one_part_does_not_draw_on_the_round_of_another():
    accountant = PrivacyAccountant(9.0, 0.0)
    left, right = accountant.disjoint("clinic", 2, by_index=True)
    many(2, left).steps[0].charge(PureDP(1.0))
    many(2, right).steps[1].charge(PureDP(1.0))
    many(2, accountant).steps[1].charge(PureDP(1.0))
    assert len(accountant.charges) == 3 and not accountant.reuses
    assert accountant.epsilon_spent == 4.0


def test_a_round_is_priced_for_the_group():
    accountant = PrivacyAccountant(6.0, 0.0, unit="group", max_rows=3)
    step = Reservation(accountant, (PlannedCharge("a", PureDP(1.0), 1.0),), 3.0, 0.0).steps[0]
    assert step.charge(PureDP(1.0), epsilon=1.0).epsilon == 3.0
    assert accountant.epsilon_spent == 3.0
    terms = accountant.config
    allowance = Allowance(PlannedCharge("a", PureDP(1.0), 1.0), terms, None)
    assert allowance.charge(PureDP(1.0), epsilon=1.0).epsilon == 3.0


def test_a_group_of_an_approximate_release_has_a_finite_price():
    terms = PrivacyAccountant(6.0, 1e-3, unit="group", max_rows=3).config
    event = ApproximateDP(0.5, 1e-6)
    spend = Allowance(PlannedCharge("a", event, 0.5, 1e-6), terms, None).charge(event)
    assert spend.epsilon == pytest.approx(1.5)
    assert spend.delta == pytest.approx(1e-6 * (1.0 + math.exp(0.5) + math.exp(1.0)))


def test_handles_without_their_ledger(tmp_path):
    accountant = PrivacyAccountant(6.0, 0.0, ledger=tmp_path / "budget.db")
    step = pickle.dumps(many(2, accountant).steps[1])
    del accountant
    (tmp_path / "budget.db").unlink()
    step = pickle.loads(step)
    assert step.planned.name == "1" and "a plan of 2" in step.plan
    with pytest.raises(LedgerError):
        step.charge(PureDP(1.0))


def _run_rounds(reservation, fits, write_end=None):
    for _ in range(fits):
        for step in reservation.steps:
            step.charge(PureDP(1.0))
            if write_end is not None:
                os.write(write_end, bytes([step.index]))


def _spawned(target, *arguments):
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    return process


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("begin", [Child, _spawned])
def test_processes_share_rounds(tmp_path, begin):
    accountant = PrivacyAccountant(1e6, 0.0, ledger=tmp_path / "budget.db")
    reservation = many(3, accountant)
    workers = [begin(_run_rounds, reservation, 4) for _ in range(2)]
    _run_rounds(reservation, 4)
    for worker in workers:
        worker.join()
    check_rounds(accountant, reservation, [12] * 3)


def test_threads_share_rounds():
    reservation = many(3, PrivacyAccountant(1e6, 0.0))
    allowance = Allowance(reservation.planned[0], reservation.accountant.config, None)
    used = []

    def use():
        _run_rounds(reservation, 4)
        with contextlib.suppress(BudgetExceededError):
            used.append(allowance.charge(PureDP(1.0)))

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_rounds(reservation.accountant, reservation, [16] * 3)
    assert len(used) == 1


def test_a_killed_fit_loses_no_release(tmp_path):
    accountant = PrivacyAccountant(1e6, 0.0, ledger=tmp_path / "budget.db")
    reservation = many(3, accountant)
    moments = random.Random(0)
    released = [0] * 3
    for _ in range(12):
        read_end, write_end = os.pipe()
        child = Child(_run_rounds, reservation, 10**6, write_end)
        os.close(write_end)
        data = read_first_byte(read_end)
        time.sleep(moments.uniform(0.0, 0.03))
        child.kill()
        data += read_to_end(read_end)
        for step in data:
            released[step] += 1
        assert max(released) <= reservation.rounds
        accountant.verify()
    # Each child may have died between a record and its word of it, in a round of its own.
    assert reservation.rounds <= max(released) + 12
    assert accountant.epsilon_spent == 3 * reservation.rounds


@pytest.mark.parametrize("by_index", [True, False])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("unit", "max_rows"), [("row", 1), ("person", 1), ("group", 2)])
@pytest.mark.parametrize("n_parts", [2, 3, 5])
def test_what_a_part_says_is_what_the_ledger_adds(n_parts, unit, max_rows, relation, by_index):
    accountant = PrivacyAccountant(99.0, 0.0, unit=unit, max_rows=max_rows, relation=relation)
    parts = accountant.disjoint("clinic", n_parts, by_index=by_index)
    for part in parts:
        part.charge(PureDP(1.0), epsilon=1.0, delta=0.0)
    text = describe_part(parts[0].part, accountant.config)
    one = parts[0].charges[0].epsilon
    n_added = round(accountant.epsilon_spent / one)
    if "all parts add up" in text:
        assert n_added == n_parts
    elif "most expensive part" in text and " parts add up" not in text:
        assert n_added == 1
    else:
        (number,) = re.findall("costs of the ([0-9]+) most expensive parts", text)
        assert n_added == int(number) < n_parts
    assert "do not add up" not in text


# Lines of costs.


N_ROWS = 60


X = np.random.default_rng(0).uniform(size=(N_ROWS, 3))


Y = np.arange(N_ROWS) % 2


def accountant_of(dataset, **config):
    return PrivacyAccountant(1e3, 0.5, dataset=dataset, **config)


@pytest.mark.parametrize("unit", ["row", "person", "group"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_costs_of_other_relations_and_units_are_not_added_in_one_line(relation, unit):
    config = {"max_rows": 2} if unit == "group" else {}
    other = accountant_of("b", relation=relation, unit=unit, **config)
    groups = {"groups": Y} if unit == "person" else {}
    first = skdp.DPStandardScaler(0.5, bounds=(0, 1), accountant=accountant_of("a")).fit(X)
    second = skdp.DPStandardScaler(0.25, bounds=(0, 1), accountant=other).fit(X, **groups)
    line = privacy_line(make_pipeline(first, second))
    is_same = (relation, unit) == ("add_remove", "row")
    assert ("epsilon = 0.75" in line) is is_same
    assert ("epsilon = 0.5, delta = 0 per row under add_remove" in line) is not is_same
    assert (f"under {relation} (costs under other relations" in line) is not is_same
