import importlib.util
from pathlib import Path

import pytest

from tests.ledger._windows import simulate_windows

# Before it is imported: a check that fails then shows both sides of what it compares.
pytest.register_assert_rewrite("tests.ledger._ledger_contract")


def _load_golden():
    spec = importlib.util.spec_from_file_location(
        "accounting_golden", Path(__file__).with_name("golden.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GOLDEN = {row[0]: row for row in _load_golden().rows()}


def pytest_generate_tests(metafunc):
    if "golden_row" in metafunc.fixturenames:
        metafunc.parametrize("golden_row", GOLDEN.values(), ids=GOLDEN.keys())


@pytest.fixture
def golden():
    """All golden rows by their id."""
    return GOLDEN


@pytest.fixture(params=["this system", "windows"])
def any_system(request):
    """Run a test of ledgers in files on this system, and on a simulation of Windows."""
    # Apart from the patches of a test, which it may undo.
    with pytest.MonkeyPatch.context() as patches:
        if request.param == "windows":
            simulate_windows(patches)
        yield request.param
