import pytest

from tests.ledger._windows import simulate_windows

# Before it is imported: a check that fails then shows both sides of what it compares.
pytest.register_assert_rewrite("tests.ledger._ledger_contract")


@pytest.fixture
def short_waits(monkeypatch):
    """Let ledgers wait for other writers for a moment only."""
    monkeypatch.setattr("skdp.ledger._sqlite.BUSY_TIMEOUT_SECONDS", 0.05)
    monkeypatch.setattr("skdp.ledger._postgres.LOCK_TIMEOUT_SECONDS", 0.05)


@pytest.fixture(params=["this system", "windows"])
def any_system(request):
    """Run a test of ledgers in files on this system, and on a simulation of Windows."""
    # Apart from the patches of a test, which it may undo.
    with pytest.MonkeyPatch.context() as patches:
        if request.param == "windows":
            simulate_windows(patches)
        yield request.param
