"""One interrupt, wherever Python looks for signals, leaves nothing locked.

Whoever keeps the exception keeps what the frames of its traceback refer to, so that nothing is
given back by the garbage collector either.
"""

import contextlib
import gc
import itertools
import sys
import threading
import traceback
import uuid
from pathlib import Path

import pytest

import skdp
from skdp import PrivacyAccountant
from skdp.accounting import PureDP
from skdp.accounting._file_lock import locked
from tests.accounting._postgres_server import running_server

ACCOUNTING = Path(skdp.__file__).parent / "accounting"
FILES = {str(file) for file in ACCOUNTING.glob("*") if file.stem.endswith(("_ledger", "_lock"))}
FILES |= {contextlib.__file__, str(ACCOUNTING / "_records.py")}


def interrupt(work, place, names=None):
    """Return the interrupt of a call in the place of that number, None if there is none.

    Python looks for signals where a function written in Python begins and where one written in
    C has returned. Places in the ledgers count, in what contextlib does for them, and in what
    closes.
    """
    passed, caught = itertools.count(), None

    def look(frame, event, argument):
        nonlocal caught
        code = frame.f_code
        counts = code.co_filename in FILES or code.co_name == "close"
        counts = counts and (names is None or code.co_name in names)
        if counts and event in ("call", "c_return") and next(passed) == place:
            caught = KeyboardInterrupt()
            raise caught

    sys.setprofile(look)
    try:
        work()
    except KeyboardInterrupt:
        # Nobody sees one that comes while a generator is collected: it does not end the call.
        pass
    finally:
        sys.setprofile(None)
    return caught


def in_another_thread(work):
    told = []
    other = threading.Thread(target=lambda: told.append(work()), daemon=True)
    other.start()
    other.join(60.0)
    return told


def check_every_place(work, names=None):
    kept = []
    for place in itertools.count():
        kept.append(interrupt(work, place, names))
        if kept[-1] is None:
            break
        assert in_another_thread(work), traceback.format_exception(kept[-1])
    assert place > (3 if names else 50)
    kept.clear()
    gc.collect()


# An interrupt while a generator is collected is told and forgotten, and one that comes when a file
# has just been opened leaves it to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr("skdp.accounting._sqlite_ledger.BUSY_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr("skdp.accounting._postgres_ledger.LOCK_TIMEOUT_SECONDS", 0.5)


def charge_of(address):
    accountant = PrivacyAccountant(1e9, 0.0, ledger=address)
    return lambda: accountant.charge(PureDP(1.0))


GIVING_BACK = {"close", "__exit__", "locked", "_call", "_connected"}
PLACES = pytest.mark.parametrize("names", [GIVING_BACK, pytest.param(None, marks=pytest.mark.slow)])


@PLACES
def test_sqlite(tmp_path, names):
    check_every_place(charge_of(tmp_path / "budget.db"), names)


@PLACES
def test_postgresql(names):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with running_server() as server:
        check_every_place(charge_of(server.new_database()), names)


def test_memory():
    check_every_place(charge_of(f"memory://{uuid.uuid4().hex}"), GIVING_BACK)


def test_the_lock_of_a_file(tmp_path):
    path = tmp_path / "budget.db"
    names = {"locked", "take", "is_at_its_path", "__init__", "_descriptor", "close"}
    check_every_place(lambda: locked(path, 0.5, lambda lock: [lock]), names)


def test_a_cursor_that_is_kept_does_not_keep_the_file_locked(tmp_path):
    # Its last row was not fetched, so that closing the connection does not end its lock.
    check_every_place(charge_of(tmp_path / "budget.db"), {"_check_schema", "<listcomp>"})
