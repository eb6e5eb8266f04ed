"""Who charged and why, caps inside a cap, and closed data sets."""

import json
import pickle
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from skdp import (
    BudgetExceededError,
    DPGridSearchCV,
    DPLogisticRegression,
    DPStandardScaler,
    LedgerError,
    PrivacyAccountant,
)
from skdp.__main__ import main
from skdp.accounting import Gaussian, PureDP, get_epsilon
from skdp.ledger import PlannedCharge, Reservation, open_ledger
from tests._calls import count_calls
from tests.ledger._ledger_contract import race_users

X = np.random.default_rng(0).uniform(size=(60, 2))
y = np.arange(60) % 2


@pytest.fixture(autouse=True)
def nobody(monkeypatch):
    for name in ("SKDP_USER", "SKDP_PURPOSE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def accountant(tmp_path):
    return PrivacyAccountant(4.0, 1e-5, ledger=tmp_path / "budget.db")


def test_the_environment_says_who_charges_and_why(tmp_path, monkeypatch):
    at = {"epsilon": 1.0, "delta": 0.0, "ledger": tmp_path / "budget.db"}
    before = PrivacyAccountant(**at)
    monkeypatch.setenv("SKDP_USER", "ann")
    monkeypatch.setenv("SKDP_PURPOSE", "report")
    handle = PrivacyAccountant(**at)
    assert (handle.user, handle.purpose, before.user) == ("ann", "report", "")
    assert handle.as_user("bob").purpose == handle.as_user(purpose="report").purpose == "report"
    assert handle.as_user(purpose="trial").user == "ann" and handle.as_user("").user == ""
    # The name goes with the handle, whatever the place where it is loaded says.
    monkeypatch.setenv("SKDP_USER", "bob")
    assert pickle.loads(pickle.dumps(handle)).charge(PureDP(0.5)).user == "ann"
    assert before.charge(PureDP(0.25)).user == ""
    monkeypatch.setenv("SKDP_USER", "line\nbreak")
    with pytest.raises(ValueError, match="user must be a name"):
        PrivacyAccountant(**at)


def test_copies_clones_and_parts_are_the_same_users(accountant):
    ann = accountant.as_user("ann", purpose="report")
    assert repr(ann) == "PrivacyAccountant(dataset='default', user='ann')"
    scaler = DPStandardScaler(0.5, bounds=(0, 1), accountant=ann)
    assert clone(scaler).accountant is ann
    clone(scaler).fit(X)
    for part in ann.disjoint("sites", 2):
        part.charge(PureDP(0.25))
    whole = ann.reserve(0.5)
    whole.charge(PureDP(0.25))
    assert {(s.user, s.purpose) for s in (*ann.charges, *whole.charges)} == {("ann", "report")}
    for name in ("bob", None):
        with pytest.raises(ValueError, match="reserved budget"):
            whole.as_user(name, purpose="trial")


def _fit(scaler):
    return scaler.fit(X).accountant.user


@pytest.mark.thorough
def test_a_user_goes_into_workers(accountant, monkeypatch):
    monkeypatch.setenv("SKDP_USER", "whoever started the workers")
    scaler = DPStandardScaler(0.5, bounds=(0, 1), accountant=accountant.as_user("ann"))
    assert (
        Parallel(2, backend="multiprocessing")(delayed(_fit)(clone(scaler)) for _ in range(3))
        == ["ann"] * 3
    )
    assert [spend.user for spend in accountant.charges] == ["ann"] * 3


@pytest.mark.thorough
def test_a_search_and_its_plan_keep_a_sub_cap(accountant):
    accountant.sub_limit("ann", 1.0, 1e-6, users=["ann"], reason="the board")
    ann = accountant.as_user("ann")
    search = DPGridSearchCV(
        DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=1.5, delta=1e-6, accountant=ann
    )
    with pytest.raises(BudgetExceededError, match="the limit 'ann'"):
        search.fit(X, y)
    assert accountant.charges == []
    search.set_params(epsilon=1.0).fit(X, y)
    plan = (PlannedCharge("a", PureDP(0.25), 0.25), PlannedCharge("b", PureDP(0.25), 0.25))
    with pytest.raises(BudgetExceededError, match="the limit 'ann'"):
        Reservation(ann, plan, 0.5, 0.0).steps[0].charge(PureDP(0.25))
    with pytest.raises(BudgetExceededError, match="the limit 'ann'"):
        ann.reserve(0.25)
    steps = Reservation(accountant.as_user("bob"), plan, 0.5, 0.0).steps
    used = [step.charge(PureDP(0.25)) for step in steps]
    assert {one.user for one in (*used, *accountant.reuses)} == {"bob"}


COMPOSITIONS = [
    {},
    {"composition": "zcdp"},
    {"composition": "rdp", "rdp_order": 16.0},
    {"composition": "gdp"},
    {"composition": "auto"},
]


@pytest.mark.parametrize("terms", COMPOSITIONS, ids=lambda terms: terms.get("composition"))
def test_a_sub_cap_is_spent_as_a_ledger_of_its_own(terms):
    """By the same rule: it pays for as many releases, and has as much left after each."""
    whole = PrivacyAccountant(50.0, 1e-5, ledger="memory://", **terms)
    alone = PrivacyAccountant(2.0, 1e-6, ledger="memory://", **terms)
    whole.sub_limit("ann", 2.0, 1e-6, users=["ann"], reason="the board")
    ann, others = whole.as_user("ann"), whole.as_user("bob")
    while True:
        others.charge(Gaussian(8.0), delta=1e-7)
        if not alone.can_afford(Gaussian(10.0), delta=1e-7):
            break
        alone.charge(Gaussian(10.0), delta=1e-7)
        ann.charge(Gaussian(10.0), delta=1e-7)
        (share,) = (one for one in whole.report().breakdown if "ann" in one["of"][:3])
        assert share["spent"] == (alone.epsilon_spent, alone.delta_spent)
        assert ann.epsilon_remaining == pytest.approx(alone.epsilon_remaining, abs=1e-15)
    assert len(ann.charges) > 5
    with pytest.raises(BudgetExceededError, match="the limit 'ann'"):
        ann.charge(Gaussian(10.0), delta=1e-7)


def test_parts_compose_in_parallel_within_a_sub_cap():
    accountant = PrivacyAccountant(4.0, 0.0)
    accountant.sub_limit("ann", 1.0, 0.0, users=["ann"], reason="the board")
    for handle in (accountant.as_user("ann"), accountant.as_user("bob")):
        for part in handle.disjoint("sites", 3):
            part.charge(PureDP(0.75))
    assert accountant.epsilon_spent == 1.5
    assert accountant.as_user("ann").epsilon_remaining == 0.25
    assert accountant.epsilon_remaining == 2.5


def test_a_gaussian_is_booked_at_a_delta_that_all_caps_can_pay():
    accountant = PrivacyAccountant(9.0, 1e-5)
    accountant.sub_limit("small delta", 9.0, 1e-7, users=["ann"], reason="the board")
    accountant.sub_limit("small epsilon", 1.0, 1e-6, purposes=["trial"], reason="the board")
    ann = accountant.as_user("ann", purpose="trial")
    assert ann.charge(Gaussian(8.0)).delta == 5e-8
    assert accountant.as_user("bob").charge(Gaussian(8.0)).delta == pytest.approx(5e-6, rel=0.02)
    # At half of what is left it would cost more than is left, at all of it no more.
    left = ann.epsilon_remaining
    z = next(z for z in np.arange(8.0, 99.0, 0.05) if get_epsilon(Gaussian(z), 5e-8) <= left)
    assert get_epsilon(Gaussian(z), 2.5e-8) > left
    assert ann.charge(Gaussian(z)).delta == 5e-8


@pytest.mark.parametrize(
    "terms",
    [
        {"users": [], "purposes": []},
        {"users": "ann"},
        {"users": [""]},
        {"users": ["a\n"]},
        {"purposes": [3]},
        {"users": ["ann"], "name": ""},
        {"users": ["ann"], "epsilon": 0.0},
        {"users": ["ann"], "delta": 1.0},
        {"users": ["ann"], "reason": " "},
    ],
)
def test_bad_sub_caps_are_refused(accountant, terms):
    head = accountant.verify()
    terms = {"name": "a", "epsilon": 1.0, "delta": 0.0, "reason": "the board"} | terms
    with pytest.raises(ValueError):
        accountant.sub_limit(**terms)
    assert accountant.verify() == head


def test_a_name_is_a_name(accountant):
    for name in (3, "a\x00", "\ud800"):
        with pytest.raises(ValueError, match="must be a name"):
            accountant.as_user(name)
        with pytest.raises(ValueError, match="must be a name"):
            accountant.as_user(purpose=name)
    with pytest.raises(ValueError, match="cannot be changed"):
        accountant.reserve(1.0).sub_limit("a", 1.0, 0.0, users=["ann"], reason="the board")
    with pytest.raises(ValueError, match="who decided"):
        accountant.close(reason="")


def test_a_part_that_is_reserved_while_its_data_set_is_closed_is_not_handed_out(accountant):
    opened = PrivacyAccountant._open

    def slow_open(self, *arguments):
        accountant.close(reason="over")
        return opened(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivacyAccountant, "_open", slow_open)
        with pytest.raises(LedgerError, match="closed"):
            accountant.reserve(0.5)


def _plan(*epsilons):
    return tuple(PlannedCharge(f"step {e}", PureDP(e), e) for e in epsilons)


@pytest.mark.parametrize(
    "use",
    [
        lambda part: part.charge(PureDP(0.25)),
        lambda part: part.reserve(0.25),
        lambda part: part.disjoint("sites", 2)[0].charge(PureDP(0.25)),
        lambda part: Reservation(part, _plan(0.25), 0.25, 0.0).steps[0].charge(PureDP(0.25)),
    ],
    ids=["charge", "reserve", "partition", "reuse"],
)
def test_a_part_is_refused_whose_data_set_is_closed_while_it_writes(accountant, use):
    """After every check before the writing, and before it."""
    part = accountant.reserve(1.0).reserve(0.5)
    ledger = type(part._ledger)
    append = ledger.append

    def closing(self, *decision):
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(ledger, "append", append)
            accountant.close(reason="over")
            return append(self, *decision)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "append", closing)
        with pytest.raises(LedgerError, match="was closed and accepts no charge: over"):
            use(part)
    head = accountant.verify()
    with pytest.raises(LedgerError, match="was closed and accepts no charge: over"):
        use(part)
    assert accountant.verify() == head
    assert (part.report().closed, part.epsilon_remaining) == ("over", 0.0)
    assert not part.can_afford(PureDP(0.125))


def test_a_reservation_that_failed_leaves_nothing_that_can_be_spent(accountant, monkeypatch):
    whole = accountant.reserve(1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrivacyAccountant, "_open", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            whole.reserve(0.5)
    monkeypatch.setenv("SKDP_USER", "line\nbreak")
    accountant.close(reason="over")
    monkeypatch.delenv("SKDP_USER")
    assert [record.kind for record in open_ledger(accountant._address).records()][-1] == "close"
    restore, (address, *_) = accountant.__reduce__()
    place = f"{whole.dataset} (reserved at {whole.charges[0].sequence})"
    with pytest.raises(LedgerError, match="no data set"):
        restore(address, place, None).charge(PureDP(0.25))
    # By its name alone it is a data set like any other.
    PrivacyAccountant(0.5, 0.0, ledger=accountant._address, dataset=place).charge(PureDP(0.5))


def test_a_data_set_is_no_part_because_of_its_name(accountant):
    spend = accountant.as_user("bob").charge(PureDP(0.25))
    names = ("default (reserved at the clinic)", "default (reserved at 1)", "(reserved at 2)")
    names += (f"default (reserved at {spend.sequence})",)
    others = [
        PrivacyAccountant(1.0, 0.0, ledger=accountant._address, dataset=name) for name in names
    ]
    accountant.close(reason="over")
    for other in others:
        assert other.as_user("ann").charge(PureDP(0.5)).user == "ann"
        other.change_limit(2.0, 0.0, reason="the board")
    nested = others[0].reserve(0.25)
    nested.charge(PureDP(0.125))
    others[0].close(reason="moved")
    with pytest.raises(LedgerError, match="moved"):
        nested.charge(PureDP(0.125))


@pytest.mark.parametrize("terms", [(0.5, 0.0), (9.0, 0.0)])
def test_a_reserved_part_is_not_the_data_set_that_had_its_name_before(accountant, terms):
    at = {"ledger": accountant._address, "dataset": f"default (reserved at {3})"}
    other = PrivacyAccountant(*terms, **at)
    part = accountant.reserve(0.5)
    assert part.dataset.startswith(at["dataset"]) and part.dataset != at["dataset"]
    part.charge(PureDP(0.5))
    assert (part.epsilon_spent, other.epsilon_spent) == (0.5, 0.0)
    accountant.close(reason="over")
    other.charge(PureDP(0.25))
    with pytest.raises(LedgerError, match="over"):
        part.charge(PureDP(0.0))


def test_a_reserved_part_whose_payment_is_not_there_is_refused(accountant):
    part = accountant.reserve(0.5)
    record = open_ledger(accountant._address).records()[-1]
    assert record.body["reserved_from"] == {
        "dataset": accountant.dataset,
        "hash": accountant.charges[-1].hash,
    }
    forged = dict(record.body, reserved_from={"dataset": accountant.dataset, "hash": "f" * 64})
    ledger = open_ledger(accountant._address)
    ledger.append("forged", (0, "0" * 64), lambda records: ("open", forged))
    with pytest.raises(LedgerError, match="does not hold the charge that covers"):
        PrivacyAccountant(0.5, 0.0, ledger=accountant._address, dataset="forged")
    assert part.charge(PureDP(0.5)).epsilon == 0.5


def test_rounds_of_one_user_are_not_drawn_by_another(accountant):
    accountant.sub_limit("bob", 0.125, 0.0, users=["bob"], reason="the board")
    plan = _plan(0.0625, 1.0)

    def steps(user, purpose):
        handle = accountant.as_user(user, purpose=purpose)
        return Reservation(handle, plan, 1.0625, 0.0, name="n").steps

    steps("ann", "trial")[0].charge(PureDP(0.0625))
    with pytest.raises(BudgetExceededError, match="the limit 'bob'"):
        steps("bob", "trial")[1].charge(PureDP(1.0))
    assert steps("ann", "trial")[1].charge(PureDP(1.0)).user == "ann"
    steps("ann", "report")[1].charge(PureDP(1.0))
    assert (len(accountant.reuses), len(accountant.charges)) == (1, 2)


def test_a_reserved_part_is_spent_by_whoever_reserved_it(accountant, monkeypatch):
    accountant.sub_limit("bob", 0.125, 0.0, users=["bob"], reason="the board")
    part = accountant.as_user("ann", purpose="trial").reserve(1.0)
    monkeypatch.setenv("SKDP_USER", "bob")
    opened = PrivacyAccountant(1.0, 0.0, ledger=accountant._address, dataset=part.dataset)
    assert opened is part
    assert (opened.charge(PureDP(0.5)).user, opened.purpose) == ("ann", "trial")


def test_names_have_one_spelling(accountant):
    accountant.sub_limit("u", 0.125, 0.0, users=["A\u0308nn "], reason="the board")
    for name in ("\u00c4nn", "A\u0308nn", " \u00c4nn "):
        assert accountant.as_user(name).user == "\u00c4nn"
        with pytest.raises(BudgetExceededError, match="the limit 'u'"):
            accountant.as_user(name).charge(PureDP(0.25))
    with pytest.raises(ValueError, match="must be a name"):
        accountant.as_user(" ")


def test_a_bad_environment_breaks_no_reading(accountant, monkeypatch, capsys):
    monkeypatch.setenv("SKDP_USER", "line\nbreak")
    assert main(["ledger", "show", accountant._address, "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert [report[name]["limit"] for name in ("epsilon", "delta")] == [4.0, 1e-5]
    made, (address, dataset, part, *_) = accountant.__reduce__()
    assert made(address, dataset, part).charge(PureDP(0.25)).user == ""
    pickle.loads(pickle.dumps(accountant)).charge(PureDP(0.25))


def _append(accountant, kind, **body):
    ledger = open_ledger(accountant._address)
    position = accountant._current_state().position
    ledger.append(accountant.dataset, position, lambda records: (kind, body))


def test_records_of_another_version_are_refused_and_not_half_read(accountant):
    cap = {"epsilon": 1.0, "delta": 0.0, "name": "n", "users": ["ann"], "purposes": []}
    _append(accountant, "sub_limit", **cap, reason="the board", time="", unless=["report"])
    with pytest.raises(LedgerError, match="unless"):
        accountant.charge(PureDP(0.25))


def test_a_closing_without_a_reason_closes(accountant):
    _append(accountant, "close", reason=None, time="")
    with pytest.raises(LedgerError, match="was closed"):
        accountant.charge(PureDP(0.25))


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_a_refusal_names_the_cap_that_makes_a_release_too_dear(composition):
    accountant = PrivacyAccountant(9.0, 1e-5, composition=composition)
    accountant.sub_limit("no delta", 9.0, 0.0, users=["ann"], reason="the board")
    with pytest.raises(BudgetExceededError, match="the limit 'no delta'"):
        accountant.as_user("ann").charge(Gaussian(8.0))
    accountant.as_user("bob").charge(Gaussian(8.0))


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_what_has_no_finite_price_is_null_in_json(composition):
    accountant = PrivacyAccountant(9.0, 1e-5, composition=composition)
    accountant.as_user("ann").charge(Gaussian(8.0), delta=1e-7)
    accountant.change_limit(9.0, 0.0, reason="the board")
    report = accountant.report()
    assert (report.spent[0] == np.inf) == (composition == "zcdp")
    spent = json.loads(json.dumps(report.to_dict(), allow_nan=False))["epsilon"]["spent"]
    assert (spent is None) == (composition == "zcdp")
    assert "nan" not in report._repr_html_()


class Unread:
    """A table of which nothing may be asked."""

    def __getattribute__(self, name):
        raise AssertionError(f"the table was asked for {name}")


def test_a_fit_on_a_closed_data_set_reads_nothing(accountant):
    ann = accountant.as_user("ann")
    step = Reservation(accountant, _plan(0.5), 0.5, 0.0).steps[0]
    accountant.close(reason="over")
    scaler = DPStandardScaler(0.5, bounds=(0, 1), accountant=ann)
    model = DPLogisticRegression(accountant=step)
    search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, delta=1e-6, accountant=ann)
    for estimator in (scaler, model, search):
        with pytest.raises(LedgerError, match="was closed"):
            estimator.fit(Unread(), y)


def test_handles_know_what_others_of_the_data_set_have_read(accountant):
    """The cost of a charge by a new handle does not grow with the ledger."""
    n_calls = []
    for user in ("bob", "cid", "dan", "eve"):
        for _ in range(4):
            accountant.as_user("ann").charge(PureDP(0.125))
        handle = accountant.as_user(user, purpose="trial")
        n_calls.append(count_calls(lambda handle=handle: handle.can_afford(PureDP(0.125))))
    assert max(n_calls) == n_calls[0]


def test_users_cut_a_partition_into_the_same_parts(accountant):
    accountant.as_user("ann").disjoint("sites", 2)[0].charge(PureDP(0.25))
    for other in (
        accountant.as_user("bob").disjoint("sites", 3)[0],
        accountant.as_user("ann", purpose="trial").disjoint("sites", 2, by_index=True)[1],
    ):
        with pytest.raises(ValueError, match="other parts before"):
            other.charge(PureDP(0.25))


@pytest.mark.slow
def test_8_processes_of_500_charges_never_pass_a_cap(tmp_path):
    race_users(tmp_path / "budget.db", 500)


def test_a_ledger_of_a_development_version_is_refused(tmp_path):
    path = tmp_path / "budget.db"
    PrivacyAccountant(3.0, 1e-5, ledger=path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(LedgerError, match="before 0.1.0 .* begin a new ledger"):
        PrivacyAccountant(3.0, 1e-5, ledger=path)
