"""Calls of `partial_fit` on separate rows: a forked process adds none to a part of its parent."""

import math
import multiprocessing

import numpy as np
import pytest

from skdp import DPSGDClassifier, PrivacyAccountant

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 2))
y = np.arange(90) % 2


def fork_available():
    return "fork" in multiprocessing.get_all_start_methods()


@pytest.mark.skipif(not fork_available(), reason="this system cannot fork")
def test_a_forked_process_begins_a_partition_of_its_own():
    accountant = PrivacyAccountant(300.0, 1e-3)
    params = {"delta": 1e-6, "max_iter": 1, "partial_fit_rows": "disjoint", "random_state": 0}
    model = DPSGDClassifier(0.01, accountant=accountant, **params)
    model.partial_fit(X[:30], y[:30], classes=[0, 1])

    def child():
        model.set_params(epsilon=1.0).partial_fit(X[30:60], y[30:60])

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
    model.partial_fit(X[60:], y[60:])
    model.set_params(epsilon=1.0).partial_fit(X[30:60], y[30:60])
    # The rows 30 to 60 were used by both processes.
    assert accountant.epsilon_spent >= 2.0


def test_a_statement_is_finite_where_the_rule_of_the_last_ledger_has_no_finite_price():
    first = PrivacyAccountant(300.0, 1e-3)
    second = PrivacyAccountant(300.0, 1e-3, composition="zcdp")
    second.change_limit(300.0, 0.0, reason="delta is no longer accepted")
    model = DPSGDClassifier(1.0, delta=0.0, max_iter=1, accountant=first, random_state=0)
    model.partial_fit(X, y, classes=[0, 1])
    model.set_params(accountant=second).partial_fit(X, y)
    assert model.privacy_.delta == 0.0 and 2.0 <= model.privacy_.epsilon < math.inf
    assert model.privacy_.epsilon == pytest.approx(2.0)
