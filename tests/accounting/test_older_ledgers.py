"""A ledger that an older version wrote opens, goes on, and keeps its chain."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from skdp.accounting import PrivacyAccountant, PureDP
from skdp.exceptions import BudgetExceededError

# What that version said of each data set: what it takes to open it, and what was spent.
PEOPLE = {"epsilon": 4.0, "delta": 1e-4, "dataset": "people"}
OTHERS = {"epsilon": 2.0, "delta": 1e-5, "dataset": "others"}
TERMS = {"composition": "zcdp", "relation": "replace_one"}
HEAD = "6d46fc684f052b8a7a817c2ea3b0a5a5d1f361e89f8f4035332562fbc65cb60c"


@pytest.fixture
def ledger(tmp_path):
    path, written = tmp_path / "old.db", Path(__file__).with_name("ledger_of_0.1.0.dev0.sql")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(written.read_text())
    return path


def test_a_ledger_of_the_development_version_opens_and_goes_on(ledger):
    people = PrivacyAccountant(**PEOPLE, ledger=ledger)
    others = PrivacyAccountant(**OTHERS, **TERMS, ledger=ledger)
    assert people.verify() == HEAD
    assert (people.epsilon_spent, people.delta_spent) == (2.25, 1.1e-05)
    assert others.epsilon_spent == pytest.approx(0.5457255482740032, rel=1e-9)
    assert [spend.version for spend in people.spends] == ["0.1.0.dev0"] * 5
    people.charge(PureDP(1.5))
    with pytest.raises(BudgetExceededError):
        people.charge(PureDP(0.5))
    assert people.verify() != HEAD and len(people.spends) == 6
