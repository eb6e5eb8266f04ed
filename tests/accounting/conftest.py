import pytest

# Before it is imported: a check that fails then shows both sides of what it compares.
pytest.register_assert_rewrite("tests.accounting._ledger_contract")
