"""Handles, pickles and fitted models know their ledger, and refuse another one in its place."""

import pickle
import uuid
from contextlib import closing

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp import DPStandardScaler, LedgerError, PrivacyAccountant
from skdp.accounting import PureDP
from skdp.ledger import PlannedCharge, Reservation
from skdp.pipeline import split_budget
from tests._memory_ledger import MemoryLedger
from tests.ledger._ledger_contract import forget_handles
from tests.ledger._postgres_server import running_server

X = np.linspace(0.0, 1.0, 30)[:, None]


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running_server() as server:
        yield server


def files_of(ledger):
    """Return the paths of a ledger and of its lock, which lies beside it."""
    paths = sorted(ledger.parent.glob(f"{ledger.name}*"))
    assert len(paths) == 2
    return paths


def move(ledger, name):
    """Give a ledger and its lock another name."""
    for path in files_of(ledger):
        path.rename(path.with_name(path.name.replace(ledger.name, name)))


class InFile:
    """A ledger in a file, and how it goes away with its lock."""

    def __init__(self, request):
        self.path = request.getfixturevalue("tmp_path") / "budget.db"
        self.address = str(self.path)

    def remove(self):
        for path in files_of(self.path):
            path.unlink()


class InMemory:
    def __init__(self, request):
        self.address = f"memory://{uuid.uuid4().hex[:8]}"

    def remove(self):
        del MemoryLedger.kept[MemoryLedger.address_of(self.address)]


class InPostgreSQL:
    def __init__(self, request):
        self.address = request.getfixturevalue("server").new_database()

    def remove(self):
        with closing(pytest.importorskip("psycopg").connect(self.address)) as connection:
            connection.execute("DROP SCHEMA skdp CASCADE")
            connection.commit()


@pytest.fixture(params=[InFile, InMemory, InPostgreSQL])
def place(request):
    return request.param(request)


def opened(place, charges=1):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=place.address)
    for _ in range(charges):
        accountant.charge(PureDP(0.125), label="a count")
    return accountant


def forgotten(accountant):
    """Return the pickle of a handle that this process has forgotten, as another one loads it."""
    pickled = pickle.dumps(accountant)
    forget_handles()
    return pickled


USES = {
    "a charge": lambda accountant: accountant.charge(PureDP(0.125)),
    "a step of a plan": lambda accountant: (
        Reservation(accountant, (PlannedCharge("a", PureDP(0.125), 0.125),), 0.125, 0.0)
        .steps[0]
        .charge(PureDP(0.125))
    ),
    "a part of the rows": lambda accountant: accountant.disjoint("p", 2)[0].charge(PureDP(0.125)),
    "a user": lambda accountant: accountant.as_user("ann").charge(PureDP(0.125)),
    "a reservation": lambda accountant: accountant.reserve(0.125),
    "a cap": lambda accountant: accountant.change_limit(2.0, 0.0, reason="more"),
    "closing": lambda accountant: accountant.close(reason="over"),
    "what may be charged": lambda accountant: accountant.can_afford(PureDP(0.125)),
    "what was spent": lambda accountant: accountant.epsilon_spent,
    "the charges": lambda accountant: accountant.charges,
    "the draws": lambda accountant: accountant.reuses,
    "the report": lambda accountant: accountant.report(),
    "the chain": lambda accountant: accountant.verify(),
    "a method": lambda accountant: accountant.recompose(),
    "a fit": lambda accountant: DPStandardScaler(
        epsilon=0.125, bounds=(0, 1), accountant=accountant
    ).fit(X),
}


def check_refused(accountant, *messages):
    for name, use in USES.items():
        try:
            use(accountant)
        except LedgerError as error:
            assert any(message in str(error) for message in messages), name
        else:
            raise AssertionError(f"{name} is answered by another ledger")


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("charges", [1, 3])
def test_a_pickle_refuses_another_ledger_at_its_address(place, charges):
    first = opened(place)
    pickled = forgotten(first)
    identity = first.identity
    place.remove()
    # With as many records of the same kind: only the opening record tells them apart.
    other = opened(place, charges)
    before = other.verify()
    restored = pickle.loads(pickled)
    assert restored.identity == identity != other.identity
    check_refused(restored, "is not the ledger of this accountant")
    assert other.verify() == before and other.charge(PureDP(0.125)).epsilon == 0.125
    # The handle of the ledger that is there is another one.
    assert pickle.loads(pickle.dumps(other)) is other is not restored


def test_a_pickle_refuses_a_ledger_in_which_nothing_was_opened(place):
    pickled = forgotten(opened(place))
    place.remove()
    PrivacyAccountant(1.0, 0.0, ledger=place.address, dataset="another")
    check_refused(pickle.loads(pickled), "holds no such data set")


def test_a_missing_ledger_is_not_an_empty_one(place):
    pickled = forgotten(opened(place))
    place.remove()
    restored = pickle.loads(pickled)
    check_refused(restored, "there is no ledger")
    # As long as a handle of it is there, none is begun in its place.
    with pytest.raises(LedgerError, match="there is no ledger"):
        PrivacyAccountant(1.0, 0.0, ledger=place.address)
    del restored
    assert opened(place).epsilon_spent == 0.125


def test_a_live_handle_refuses_another_ledger_at_its_address(place):
    live = opened(place)
    place.remove()
    forget_handles()
    opened(place)
    check_refused(live, "replaced or cut", "is not the ledger of this accountant")


def test_a_fitted_model_knows_its_ledger(place):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=place.address)
    model = DPStandardScaler(epsilon=0.125, bounds=(0, 1), accountant=accountant).fit(X)
    pickled = forgotten(model)
    del model, accountant
    place.remove()
    opened(place)
    loaded = pickle.loads(pickled)
    assert np.isfinite(loaded.transform(X)).all()
    with pytest.raises(LedgerError, match="is not the ledger of this accountant"):
        loaded.fit(X)


def test_a_pipeline_with_a_split_budget_knows_its_ledger(place):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=place.address)
    steps = [DPStandardScaler(bounds=(0, 1)), DPStandardScaler(bounds=(0, 1))]
    pipe = split_budget(make_pipeline(*steps), epsilon=0.25, delta=0.0, accountant=accountant)
    pickled = forgotten(pipe.fit(X))
    del pipe, steps, accountant
    place.remove()
    opened(place)
    with pytest.raises(LedgerError, match="is not the ledger of this accountant"):
        pickle.loads(pickled).fit(X)


def test_a_ledger_that_was_moved_keeps_its_identity(tmp_path):
    first, second = tmp_path / "first.db", tmp_path / "second.db"
    accountant = PrivacyAccountant(1.0, 0.0, ledger=first)
    accountant.charge(PureDP(0.125))
    pickled = forgotten(accountant)
    identity = accountant.identity
    del accountant
    move(first, second.name)
    moved = PrivacyAccountant(1.0, 0.0, ledger=second)
    assert moved.identity == identity and moved.epsilon_spent == 0.125
    with pytest.raises(LedgerError, match="there is no ledger"):
        pickle.loads(pickled).charge(PureDP(0.125))
    move(second, first.name)
    assert pickle.loads(pickled).charge(PureDP(0.125)).sequence == 3


def test_ledgers_that_are_alike_differ(tmp_path):
    made = [PrivacyAccountant(1.0, 0.0, ledger=tmp_path / f"{i}.db") for i in range(3)]
    made += [PrivacyAccountant(1.0, 0.0, ledger=tmp_path / "0.db", dataset="another")]
    assert len({accountant.identity for accountant in made}) == 4
