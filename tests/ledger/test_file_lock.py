"""The lock beside a ledger's file: it holds whatever is done to the file."""

import contextlib
import fcntl
import itertools
import os
import random
import signal
import sqlite3
import stat
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from skdp import BudgetExceededError, LedgerError, PrivacyAccountant
from skdp.accounting import PureDP
from skdp.ledger import open_ledger
from skdp.ledger._file_lock import LOCK_SUFFIX, LockFile, hold_file_lock
from skdp.ledger._sqlite import SQLiteLedger
from tests._processes import Child, read_to_end, wait_until
from tests.ledger._windows import simulate_windows, windows_path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def lock_of(path):
    return path.with_name(path.name + LOCK_SUFFIX)


def tries_to_charge(path, go, waits, told):
    take = LockFile.acquire

    def noted(lock):
        is_taken = take(lock)
        if not is_taken:
            waits.touch()
        return is_taken

    # This process ends with its charge.
    LockFile.acquire = noted
    wait_until(go.exists)
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    try:
        told.write_text(str(accountant.charge(PureDP(0.6)).sequence))
    except BudgetExceededError:
        told.write_text("refused")


def interposed(accountant, what):
    """Let a ledger do something inside each charge, after it was decided."""
    append = accountant._ledger.append

    def slow(dataset, after, decide):
        def decided(records):
            decision = decide(records)
            what()
            return decision

        return append(dataset, after, decided)

    accountant._ledger.append = slow


def read_in_a_thread(*paths):
    with ThreadPoolExecutor(1) as other:
        for path in paths:
            other.submit(path.read_bytes).result()


def test_a_file_that_is_read_during_a_charge_lets_nobody_in(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    go, waits, told = (path.with_name(name) for name in ("go", "waits", "told"))
    # It is forked now, and not inside a charge: a child must not inherit a connection.
    other = Child(tries_to_charge, path, go, waits, told)

    def during():
        read_in_a_thread(path, lock_of(path))
        go.touch()
        # The other process waits as long as we hold the lock, and has nothing to tell.
        wait_until(waits.exists)
        assert not told.exists()

    interposed(accountant, during)
    assert accountant.charge(PureDP(0.6)).sequence == 2
    other.join()
    assert told.read_text() == "refused"
    assert [spend.epsilon for spend in accountant.charges] == [0.6]
    accountant.verify()


@pytest.mark.parametrize("change_counter", ["older", "the same"])
def test_a_charge_that_is_not_there_afterwards_is_not_acknowledged(
    path, monkeypatch, change_counter
):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    before = path.read_bytes()
    stamp = SQLiteLedger._file_stamp
    stamps = []

    def undone(self):
        stamps.append(self)
        if len(stamps) == 2:
            # SQLite keeps pages in memory as long as this counter in the file stays as it was.
            counter = path.read_bytes()[24:28] if change_counter == "the same" else before[24:28]
            path.write_bytes(before[:24] + counter + before[28:])
        return stamp(self)

    monkeypatch.setattr(SQLiteLedger, "_file_stamp", undone)
    with pytest.raises(LedgerError, match="is missing"):
        accountant.charge(PureDP(0.5))


def test_a_lock_that_is_removed_while_held_is_noticed(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    append = accountant._ledger.append
    interposed(accountant, lock_of(path).unlink)
    with pytest.raises(LedgerError, match="removed while it was held"):
        accountant.charge(PureDP(0.5))
    accountant._ledger.append = append
    assert accountant.epsilon_spent == 0.0
    accountant.charge(PureDP(0.5))


def test_whoever_waited_for_a_lock_that_was_removed_takes_the_new_one(path, monkeypatch):
    path.touch()
    take, taken = LockFile.acquire, []

    def removed_before(lock):
        if not taken:
            lock_of(path).unlink()
        taken.append(take(lock))
        return taken[-1]

    monkeypatch.setattr(LockFile, "acquire", removed_before)
    with hold_file_lock(path, 60.0) as lock:
        assert lock.is_at_its_path()
    assert taken == [False, True]


def test_a_lock_that_is_held_for_ever_is_an_error(path, monkeypatch):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    monkeypatch.setattr("skdp.ledger._sqlite.BUSY_TIMEOUT_SECONDS", 0.05)
    with open(lock_of(path)) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="locked"):
            accountant.charge(PureDP(0.5))
        with pytest.raises(LedgerError, match="locked"):
            assert accountant.epsilon_spent
    monkeypatch.undo()
    accountant.charge(PureDP(0.5))
    assert accountant.epsilon_spent == 0.5


@pytest.mark.parametrize("is_charged", [True, False])
def test_waiting_ends_only_where_nothing_is_charged(path, monkeypatch, is_charged):
    path.touch()
    times, tries = itertools.count(), itertools.count(1)
    clock = SimpleNamespace(monotonic=lambda: float(next(times)), monotonic_ns=lambda: 0)
    clock.sleep = lambda seconds: None
    take = LockFile.acquire

    def held(lock):
        number = next(tries)
        if is_charged:
            os.utime(path, ns=(number, number))
        return number == 50 and take(lock)

    monkeypatch.setattr("skdp.ledger._file_lock.time", clock)
    monkeypatch.setattr(LockFile, "acquire", held)
    if is_charged:
        with hold_file_lock(path, 10.0) as lock:
            assert lock.is_at_its_path()
    else:
        with pytest.raises(LedgerError, match="charged nothing"), hold_file_lock(path, 10.0):
            pass


def test_a_lock_that_cannot_be_written_is_held(path, monkeypatch):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    before = lock_of(path).read_text()
    open_file = os.open

    def denied(name, flags, *mode, **options):
        if flags & os.O_RDWR and str(name).endswith(LOCK_SUFFIX):
            raise PermissionError(13, "denied")
        return open_file(name, flags, *mode, **options)

    monkeypatch.setattr(os, "open", denied)
    interposed(accountant, lambda: held.append(is_locked(lock)))
    held = []
    with open(lock_of(path)) as lock:
        accountant.charge(PureDP(0.5))
    assert held == [True]
    assert lock_of(path).read_text() == before
    assert accountant.epsilon_spent == 0.5


def test_who_may_write_the_ledger_may_write_its_lock(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    path.chmod(0o660)
    accountant.charge(PureDP(0.5))
    assert stat.S_IMODE(lock_of(path).stat().st_mode) == 0o660


def test_a_charge_from_a_signal_handler_inside_a_charge_raises_at_once(path):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    told = []

    def handler(*_):
        begun = time.monotonic()
        for use in (lambda: accountant.charge(PureDP(0.1)), lambda: accountant.epsilon_spent):
            with pytest.raises(LedgerError, match="in use by this thread"):
                use()
        told.append(time.monotonic() - begun)

    interposed(accountant, lambda: signal.raise_signal(signal.SIGUSR1))
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        accountant.charge(PureDP(0.5))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(told) == 1 and told[0] < 5.0
    assert accountant.epsilon_spent == 0.5


def test_a_child_that_is_forked_while_the_lock_is_held_does_not_keep_it(path):
    path.touch()

    with hold_file_lock(path, 60.0) as lock:
        child = Child(time.sleep, 60.0)
        # The lock ends with its last copy: closed without being given back, as at a crash.
        lock.close()
        with open(lock_of(path)) as other:
            # The child closes its copies as soon as it runs.
            wait_until(lambda: not is_locked(other))
    child.kill()


def test_who_may_not_write_in_the_folder_can_read(path, monkeypatch):
    PrivacyAccountant(1.0, 0.0, ledger=path).charge(PureDP(0.5))
    lock_of(path).unlink()
    open_file = os.open

    def denied(name, flags, *mode, **options):
        if flags & os.O_CREAT and str(name).endswith(LOCK_SUFFIX):
            raise PermissionError(13, "denied")
        return open_file(name, flags, *mode, **options)

    monkeypatch.setattr(os, "open", denied)
    ledger = open_ledger(str(path))
    assert [record.kind for record in ledger.read("default")] == ["open", "charge"]
    with pytest.raises(LedgerError, match="cannot be opened"):
        ledger.append("default", (0, "0" * 64), lambda records: ("charge", {}))


def test_no_lock_is_left_where_there_is_no_ledger(path):
    ledger = open_ledger(str(path))
    for use in (ledger.verify, ledger.records, lambda: ledger.append("default", (0, ""), None)):
        with pytest.raises(LedgerError, match="no ledger"):
            use()
    assert list(path.parent.iterdir()) == []


@pytest.fixture
def windows():
    """Simulate the locks and the paths of Windows."""
    with pytest.MonkeyPatch.context() as patches:
        simulate_windows(patches)
        yield


def test_a_ledger_works_with_the_locks_of_windows(path, windows, monkeypatch):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    accountant.charge(PureDP(0.5))
    assert lock_of(path).read_text().endswith(f" {accountant.verify()}\n")
    assert lock_of(path).stat().st_size < 1 << 20
    monkeypatch.setattr("skdp.ledger._sqlite.BUSY_TIMEOUT_SECONDS", 0.05)
    with open(lock_of(path)) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="locked"):
            accountant.charge(PureDP(0.5))
    accountant.charge(PureDP(0.5))
    assert accountant.epsilon_spent == 1.0


def test_charges_of_processes_with_the_locks_of_windows_are_all_there(path, windows):
    run_together(path, processes=4, times=10, pause=0.0005)


def test_one_file_in_any_case_and_with_any_separator_is_one_ledger_of_windows(path, windows):
    accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
    name = windows_path(path)
    assert accountant._address == name
    for spelling in (name, name.upper(), name.lower(), name.replace("\\", "/")):
        assert PrivacyAccountant(1.0, 0.0, ledger=spelling) is accountant
    accountant.charge(PureDP(0.5))
    for suffix in ("-JOURNAL", LOCK_SUFFIX.upper()):
        with pytest.raises(LedgerError, match="cannot end in"):
            PrivacyAccountant(1.0, 0.0, ledger=name + suffix)
    assert sorted(file.name for file in path.parent.iterdir()) == [path.name, lock_of(path).name]


def test_kills_with_the_locks_of_windows_lose_no_charge(path, windows):
    kill_chargers(path, kills=6, at_once=3)


@pytest.mark.parametrize("folder", ["me@home", "a=b", "me@home\\a b=c"])
def test_a_path_of_windows_is_not_taken_for_the_address_of_a_server(tmp_path, windows, folder):
    (tmp_path / folder.replace("\\", "/")).mkdir(parents=True)
    name = f"{windows_path(tmp_path)}\\{folder}\\budget.db"
    assert PrivacyAccountant(1.0, 0.0, ledger=name).charge(PureDP(0.5)).sequence == 2


def test_macos_is_told_to_write_through_the_cache_of_the_disk(path, monkeypatch):
    statements = []

    class Connection(sqlite3.Connection):
        def execute(self, statement, *parameters):
            statements.append(statement)
            return super().execute(statement, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, **o, factory=Connection))
    for system, expected in (("linux", 0), ("darwin", 1)):
        monkeypatch.setattr("skdp.ledger._sqlite.sys", SimpleNamespace(platform=system))
        accountant = PrivacyAccountant(1.0, 0.0, ledger=path)
        statements.clear()
        accountant.charge(PureDP(0.25))
        assert statements.count("PRAGMA fullfsync = 1") == expected
        # It is set before the transaction begins; SQLite takes it then.
        assert statements.index("BEGIN IMMEDIATE") == expected + 1
        assert statements.count("COMMIT") == 1
    with contextlib.closing(connect(path)) as connection:
        connection.execute("PRAGMA fullfsync = 1")
        assert connection.execute("PRAGMA fullfsync").fetchone() == (1,)


def test_a_system_without_file_locks_is_told_so(path, monkeypatch):
    monkeypatch.setattr("skdp.ledger._file_lock.fcntl", None)
    monkeypatch.setattr("skdp.ledger._file_lock.msvcrt", None)
    with pytest.raises(LedgerError, match="needs the file locks of POSIX"):
        PrivacyAccountant(1.0, 0.0, ledger=path)


def is_locked(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def charge_under_a_reader(path, acknowledged, name, times, pause):
    """Charge, and note each charge that returned, while a thread reads the ledger's files."""
    accountant = PrivacyAccountant(1e9, 0.0, ledger=path)
    stop = threading.Event()

    def read():
        while not stop.wait(pause):
            for file in (path, lock_of(path)):
                file.read_bytes()

    reader = threading.Thread(target=read)
    if pause:
        reader.start()
    with open(acknowledged, "a", buffering=1) as notes:
        for index in range(times):
            label = f"{name}-{index}"
            notes.write(f"{label} {accountant.charge(PureDP(1.0), label=label).hash}\n")
    stop.set()
    if pause:
        reader.join()


def run_together(path, processes, times, pause):
    """Return what was acknowledged, after checking that the ledger holds just that."""
    PrivacyAccountant(1e9, 0.0, ledger=path)
    acknowledged = path.with_name("acknowledged")
    running = [
        Child(charge_under_a_reader, path, acknowledged, i, times, pause) for i in range(processes)
    ]
    for child in running:
        # The largest of these takes half an hour on a slow disk.
        child.join(3600.0)
    accountant = PrivacyAccountant(1e9, 0.0, ledger=path)
    there = {f"{spend.label} {spend.hash}" for spend in accountant.charges}
    told = acknowledged.read_text().splitlines()
    assert len(told) == len(there) == processes * times
    assert set(told) == there
    accountant.verify()


def test_charges_under_readers_are_all_there(path):
    run_together(path, processes=4, times=10, pause=0.0005)


@pytest.mark.slow
def test_20000_charges_under_readers_are_all_there(path):
    run_together(path, processes=4, times=5000, pause=0.0005)


@pytest.mark.slow
def test_none_of_eight_processes_starves(path):
    run_together(path, processes=8, times=2000, pause=None)


def charge_until_killed(path, name, write_end):
    accountant = PrivacyAccountant(1e9, 0.0, ledger=path)
    for index in itertools.count():
        label = f"{name}-{index}"
        note = f"{label} {accountant.charge(PureDP(1.0), label=label).hash}\n"
        os.write(write_end, note.encode())


def begin_to_charge(path, name):
    read_end, write_end = os.pipe()
    child = Child(charge_until_killed, path, name, write_end)
    os.close(write_end)
    return child, read_end


def kill(child, read_end):
    """Return what a child has told before it was killed."""
    status = child.kill()
    told = read_to_end(read_end).decode().splitlines()
    assert os.WIFSIGNALED(status)
    return told


def kill_chargers(path, kills, at_once):
    """Kill processes that charge or wait for their turn, and check what the ledger holds."""
    moments = random.Random(0)
    PrivacyAccountant(1e9, 0.0, ledger=path)
    told, names = [], iter(range(kills))
    running = [begin_to_charge(path, next(names)) for _ in range(at_once)]
    while running:
        time.sleep(moments.uniform(0.0, 0.05))
        told += kill(*running.pop(0))
        running += [begin_to_charge(path, name) for name in itertools.islice(names, 1)]
    accountant = PrivacyAccountant(1e9, 0.0, ledger=path)
    accountant.charge(PureDP(1.0))
    there = {f"{spend.label} {spend.hash}" for spend in accountant.charges}
    assert told
    assert set(told) <= there
    # A process may die between a commit and its word of it, once each.
    assert len(there) <= len(told) + kills + 1
    accountant.verify()


def test_kills_of_holders_and_waiters_lose_no_charge(path):
    kill_chargers(path, kills=12, at_once=3)


@pytest.mark.slow
def test_200_kills_lose_no_charge(path):
    kill_chargers(path, kills=200, at_once=4)
