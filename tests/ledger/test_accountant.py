import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sklearn.base import clone

from skdp import BudgetExceededError, LedgerError, PrivacyAccountant
from skdp.accounting import (
    ApproximateDP,
    Gaussian,
    NonPrivate,
    PureDP,
    gaussian_noise_multiplier,
    get_epsilon,
    zcdp_to_epsilon,
)
from tests._processes import PATIENCE_SECONDS


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def test_ten_tenths_are_one_and_no_more():
    accountant = PrivacyAccountant(1.0, 0.0)
    for _ in range(10):
        accountant.charge(PureDP(0.1))
    assert accountant.epsilon_spent == 1.0
    assert accountant.epsilon_remaining == 0.0
    with pytest.raises(BudgetExceededError):
        accountant.charge(PureDP(1e-12))


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
@pytest.mark.parametrize("budget", [(1.0, 1e-5), (0.1, 1e-9), (8.0, 1e-6), (50.0, 1e-5)])
def test_a_budget_pays_for_one_release_calibrated_to_it(composition, budget):
    gaussian = Gaussian(gaussian_noise_multiplier(*budget))
    for event in (gaussian, PureDP(budget[0]), ApproximateDP(*budget)):
        accountant = PrivacyAccountant(*budget, composition=composition)
        assert accountant.can_afford(event)
        accountant.charge(event, epsilon=budget[0], delta=budget[1])
        assert accountant.epsilon_spent <= budget[0]
        assert not accountant.can_afford(PureDP(0.2 * budget[0]))
        unstated = PrivacyAccountant(*budget, composition=composition)
        unstated.charge(event)
        assert unstated.epsilon_spent <= budget[0]


def test_a_refused_charge_changes_nothing():
    accountant = PrivacyAccountant(1.0, 1e-5)
    accountant.charge(PureDP(0.75), label="first")
    head = accountant.verify()
    with pytest.raises(BudgetExceededError) as refusal:
        accountant.charge(PureDP(0.5))
    assert refusal.value.asked == (0.5, 0.0)
    assert refusal.value.remaining == (0.25, 1e-5)
    assert refusal.value.total == (1.0, 1e-5)
    for amount in ("0.5", "0.25", "1e-05", "epsilon=1"):
        assert amount in str(refusal.value)
    assert accountant.verify() == head
    assert [spend.label for spend in accountant.charges] == ["first"]
    assert pickle.loads(pickle.dumps(refusal.value)).remaining == (0.25, 1e-5)


def test_basic_composition_adds_deltas():
    accountant = PrivacyAccountant(10.0, 1e-5)
    for _ in range(5):
        accountant.charge(ApproximateDP(1.0, 2e-6))
    assert accountant.epsilon_spent == 5.0
    assert accountant.delta_spent == 1e-5
    with pytest.raises(BudgetExceededError):
        accountant.charge(ApproximateDP(1.0, 1e-12))
    accountant.charge(PureDP(1.0))


def test_basic_composition_prices_a_gaussian_at_half_of_the_delta_left():
    accountant = PrivacyAccountant(10.0, 1e-5)
    accountant.charge(Gaussian(4.0))
    accountant.charge(Gaussian(4.0))
    assert [spend.delta for spend in accountant.charges] == [5e-6, 2.5e-6]
    expected = get_epsilon(Gaussian(4.0), 5e-6) + get_epsilon(Gaussian(4.0), 2.5e-6)
    assert accountant.epsilon_spent == pytest.approx(expected, rel=1e-12)


def test_zcdp_composition_adds_rho():
    accountant = PrivacyAccountant(10.0, 1e-5, composition="zcdp")
    for _ in range(50):
        accountant.charge(Gaussian(20.0))
    assert accountant.epsilon_spent == pytest.approx(zcdp_to_epsilon(50 / 800, 1e-5), rel=1e-9)
    assert accountant.epsilon_remaining == 10.0 - accountant.epsilon_spent


def test_a_claim_is_checked():
    accountant = PrivacyAccountant(10.0, 1e-5)
    with pytest.raises(ValueError, match="not"):
        accountant.charge(PureDP(1.0), epsilon=0.9)
    with pytest.raises(ValueError, match="not"):
        accountant.charge(Gaussian(1.0), epsilon=1.0, delta=1e-5)
    assert accountant.charges == []
    accountant.charge(PureDP(1.0), epsilon=1.0)


def test_what_has_no_privacy_is_never_affordable():
    accountant = PrivacyAccountant(1e6, 0.5)
    assert not accountant.can_afford(NonPrivate())
    assert not PrivacyAccountant(1e6, 0.0).can_afford(Gaussian(100.0))


def test_copies_clones_and_pickles_are_the_handle(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    assert clone(accountant, safe=False) is accountant
    assert copy.copy(accountant) is accountant
    assert copy.deepcopy([accountant])[0] is accountant
    assert pickle.loads(pickle.dumps(accountant)) is accountant
    assert PrivacyAccountant(1.0, 0.0, ledger=str(path)) is accountant
    assert not hasattr(accountant, "get_params")
    assert repr(accountant) == "PrivacyAccountant(dataset='default')"


def test_a_loader_that_knows_no_pickles_makes_a_handle_of_the_same_state(path):
    """As skops does: it makes an empty object of the class, and then sets its state."""
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    for handle in (accountant, accountant.disjoint("clinic", 2)[1]):
        loaded = type(handle).__new__(type(handle))
        loaded.__setstate__(handle.__getstate__())
        assert (loaded.part, loaded.config) == (handle.part, handle.config)
        assert vars(loaded) is vars(handle)
        assert pickle.loads(pickle.dumps(loaded)) is handle
    loaded.charge(PureDP(0.5))
    assert accountant.epsilon_spent == 0.5


@pytest.mark.parametrize("cap", [{}, {"ledger": "memory://"}, {"epsilon": None, "delta": None}])
def test_an_accountant_needs_a_cap(cap):
    with pytest.raises(TypeError, match="missing 2 required|must be numbers, got None"):
        PrivacyAccountant(**cap)


def test_an_accountant_whose_ledger_is_elsewhere_opens_nothing(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path, dataset="gone")
    pickled = pickle.dumps(accountant)
    del accountant
    path.unlink()
    handle = pickle.loads(pickled)
    assert "gone" in repr(handle)
    for use in (
        lambda: handle.epsilon_spent,
        lambda: handle.charges,
        lambda: handle.can_afford(PureDP(0.1)),
        lambda: handle.charge(PureDP(0.1)),
        lambda: handle.report(),
    ):
        with pytest.raises(LedgerError, match="no ledger"):
            use()
    assert not path.exists()


@pytest.mark.parametrize(
    "other",
    [{"epsilon": 2.0}, {"delta": 1e-6}, {"relation": "replace_one"}, {"composition": "zcdp"}],
)
def test_terms_cannot_differ(path, other):
    terms = {"epsilon": 1.0, "delta": 1e-5, "ledger": path}
    accountant = PrivacyAccountant(**terms)
    with pytest.raises(LedgerError, match="another configuration"):
        PrivacyAccountant(**(terms | other))
    assert accountant.can_afford(PureDP(1.0))


def test_data_sets_have_budgets_of_their_own(path):
    first = PrivacyAccountant(1.0, 0.0, ledger=path, dataset="first")
    second = PrivacyAccountant(2.0, 0.0, ledger=path, dataset="second", relation="replace_one")
    first.charge(PureDP(1.0))
    second.charge(PureDP(0.5))
    assert (first.epsilon_spent, second.epsilon_spent) == (1.0, 0.5)
    assert first.verify() == second.verify()


def test_the_cap_can_be_changed_with_a_reason(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    accountant.charge(PureDP(1.0))
    with pytest.raises(ValueError, match="reason"):
        accountant.change_limit(2.0, 0.0, reason=" ")
    accountant.change_limit(2.0, 0.0, reason="agreed by the data board")
    accountant.charge(PureDP(0.5))
    assert (accountant.epsilon, accountant.epsilon_remaining) == (2.0, 0.5)
    accountant.change_limit(1.0, 0.0, reason="withdrawn")
    assert accountant.epsilon_remaining == 0.0
    assert not accountant.can_afford(PureDP(1e-9))
    accountant.verify()


@pytest.mark.parametrize(
    "terms",
    [
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "1"},
        {"epsilon": True},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"delta": "small"},
        {"relation": "neighbors"},
        {"composition": "best"},
        {"unit": "family"},
        {"dataset": ""},
        {"ledger": b"bytes"},
        {"ledger": 3},
        {"ledger": ":memory:"},
        {"dataset": "\ud800"},
        {"delta": 1e-320},
    ],
)
def test_bad_terms_are_refused(terms):
    with pytest.raises(ValueError):
        PrivacyAccountant(**({"epsilon": 1.0, "delta": 1e-5} | terms))


def test_the_report_says_everything(path):
    accountant = PrivacyAccountant(1.0, 1e-5, ledger=path)
    accountant.charge(PureDP(0.25), label="mean of <age>", seeded=True)
    report = accountant.report()
    text, html = str(report), report._repr_html_()
    for words in ("0.25 spent of 1", "mean of <age>", "seeded", "Stratified", accountant.verify()):
        assert words in text
    assert "mean of &lt;age&gt;" in html and "<age>" not in html
    values = json.loads(json.dumps(report.to_dict()))
    assert values["epsilon"] == {"limit": 1.0, "spent": 0.25}
    assert values["charges"][0]["seeded"] is True


def _charge_many(path, times):
    accountant = PrivacyAccountant(400.0, 0.0, ledger=path)
    done = 0
    for _ in range(times):
        try:
            accountant.charge(PureDP(1.0))
            done += 1
        except BudgetExceededError:
            pass
    return done


# A process that is spawned imports everything anew, which takes longer than its charges.
@pytest.mark.parametrize(
    "method",
    [
        pytest.param("fork", marks=pytest.mark.thorough),
        pytest.param("spawn", marks=pytest.mark.slow),
    ],
)
def test_racing_processes_never_pass_the_cap(path, method):
    PrivacyAccountant(400.0, 0.0, ledger=path)
    with multiprocessing.get_context(method).Pool(4) as pool:
        race = pool.starmap_async(_charge_many, [(path, 200)] * 4)
        done = race.get(timeout=PATIENCE_SECONDS)
    accountant = PrivacyAccountant(400.0, 0.0, ledger=path)
    assert sum(done) == 400 == len(accountant.charges)
    assert accountant.epsilon_spent == 400.0
    accountant.verify()


def test_racing_threads_never_pass_the_cap(path):
    accountant = PrivacyAccountant(100.0, 0.0, ledger=path)
    barrier = threading.Barrier(16)

    def charge(_):
        barrier.wait()
        done = 0
        for _ in range(12):
            try:
                accountant.charge(PureDP(1.0))
                done += 1
            except BudgetExceededError:
                pass
        return done

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(charge, range(16))) == 100
    assert accountant.epsilon_spent == 100.0
    accountant.verify()


def test_threads_never_take_each_other_back(path):
    """A thread that folds slowly must not hide from the others what they have seen."""
    accountant = PrivacyAccountant(10.0, 0.0, ledger=path)
    accountant.charge(PureDP(1.0))
    old = accountant._shared.state
    accountant.charge(PureDP(5.0))
    append = accountant._ledger.append

    def slow_append(dataset, after, decide):
        # Another thread puts back an older state between the reading of it and the decision.
        accountant._shared.state = old
        return append(dataset, after, decide)

    accountant._ledger.append = slow_append
    with pytest.raises(BudgetExceededError):
        accountant.charge(PureDP(8.0))
    accountant._shared.state = old
    assert accountant.epsilon_spent == 6.0


def test_delta_alone_is_where_an_event_is_priced():
    accountant = PrivacyAccountant(10.0, 1e-3)
    spend = accountant.charge(Gaussian(2.0), delta=1e-5)
    assert (spend.epsilon, spend.delta) == (get_epsilon(Gaussian(2.0), 1e-5), 1e-5)


@pytest.mark.thorough
def test_a_temporary_ledger_goes_with_the_process_that_made_it():
    script = (
        "import os\n"
        "from skdp import PrivacyAccountant\n"
        "accountant = PrivacyAccountant(1.0, 0.0)\n"
        "if os.fork() == 0:\n"
        "    raise SystemExit\n"
        "os.wait()\n"
        "print(accountant._address, os.path.exists(accountant._address))\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout.split()
    assert output[-1] == "True"
    assert not os.path.exists(output[-2])
