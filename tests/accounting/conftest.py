import importlib.util
from pathlib import Path

import pytest


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
