"""Checks that releases are charged: before they are made, once, at the price that was asked."""

import copy
import pickle
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state, get_tags

from skdp import mechanisms
from skdp.accounting import Composed, PrivacyAccountant, get_epsilon
from skdp.base import fitted_names
from skdp.exceptions import BudgetExceededError
from skdp.testing._tables import (
    TableChanger,
    budget,
    fit,
    fresh_noise,
    make_table,
    need_accountant,
    need_parameters,
    price,
    published,
    quiet_seeds,
    release,
    releases_in_transform,
    repeats_noise,
)

# What `PrivateFit.publish` says of releases in which every row takes part.
ALL_ROWS = "all rows, once"


def check_refused_charge(estimator):
    """A refused charge releases nothing and leaves the ledger as it was.

    An estimator whose `fit` was refused is unfitted, whatever it was before.
    """
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = PrivacyAccountant(1e-6, 0.0)
    before = accountant.verify()
    fitted = fit(estimator, X, y, accountant=None).set_params(accountant=accountant)
    try:
        published(fitted.fit(X, y), X)
    except BudgetExceededError:
        pass
    else:
        raise AssertionError("a release that the budget cannot pay for was made")
    if not releases_in_transform(estimator):
        assert not fitted_names(fitted), f"a refused fit left {fitted_names(fitted)}"
    assert accountant.verify() == before, "a refused charge changed the ledger"


def check_charge_before_touch(estimator):
    """What is released depends on the data as they are after the charge, and on nothing else.

    The table is overwritten while the charge is made; the result must be that of a release
    from the new table with the same noise.
    """
    need_parameters(estimator, "random_state")
    need_accountant(estimator)
    X, y = make_table(estimator, seed=0)
    other, _ = make_table(estimator, seed=1)
    accountant = TableChanger(X, other)
    with quiet_seeds():
        expected = release(estimator, other, y, random_state=0)
        result = release(estimator, X, y, random_state=0, accountant=accountant)
    assert accountant.charges == 1, f"one release made {accountant.charges} charges"
    np.testing.assert_array_equal(
        result, expected, "something was computed from the data before the charge"
    )


def check_handle_identity(estimator):
    """Clones, copies, pickles and fitted estimators charge the accountant that was passed."""
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = budget(estimator, 1)
    original = clone(estimator).set_params(accountant=accountant)
    copies = {
        "a clone": clone(original),
        "a copy": copy.copy(original),
        "a deep copy": copy.deepcopy(original),
        "a pickled copy": pickle.loads(pickle.dumps(original)),
        "a fitted estimator": clone(original).fit(X, y),
    }
    for name, other in copies.items():
        same = other.get_params()["accountant"] is accountant
        assert same, f"{name} has another accountant"


def check_exact_spend(estimator):
    """Releases of clones and of pickled copies are all booked, each at the stated price."""
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = budget(estimator, 4)
    original = clone(estimator).set_params(accountant=accountant)
    copies = [original, clone(original), pickle.loads(pickle.dumps(original))]
    for other in [*copies, copies[0]]:
        assert other.get_params()["accountant"] is accountant, "a copy has another accountant"
        published(other.fit(X, y), X)
    spends = accountant.spends
    prices = {(spend.epsilon, spend.delta) for spend in spends}
    assert len(spends) == 4, f"four releases made {len(spends)} records"
    assert prices == {price(estimator)}, f"prices are {prices}"
    if hasattr(copies[0], "privacy_") and not releases_in_transform(estimator):
        assert copies[0].privacy_.record == spends[-1].hash, "the statement names another record"


def check_workers(estimator):
    """Fits in worker processes are all booked, and each draws noise of its own.

    What is sent to the workers was fitted before, and may have kept a generator.
    """
    need_accountant(estimator)
    same = repeats_noise(estimator, _fits_in_workers)
    assert not same, "releases in workers published the same numbers"


def _fits_in_workers(estimator):
    X, y = make_table(estimator)
    accountant = budget(estimator, 4)
    original = clone(estimator).set_params(accountant=accountant, **fresh_noise(estimator))
    results = [_refit(original, X, y)]
    results += Parallel(n_jobs=2)(delayed(_refit)(original, X, y) for _ in range(2))
    results.append(_refit(original, X, y))
    spends = accountant.spends
    assert len(spends) == 4, f"four releases, two in workers, made {len(spends)} records"
    prices = {(spend.epsilon, spend.delta) for spend in spends}
    assert prices == {price(estimator)}, f"prices are {prices}"
    return results


def _refit(estimator, X, y):
    return published(estimator.fit(X, y), X)


def check_cost_of_mechanisms(estimator):
    """The price is that of the booked event, which costs what the mechanisms that ran cost.

    The event must satisfy the price. The mechanisms of `skdp.mechanisms` that released something
    must together cost no more than the event, unless a statement's `sampler` says that they saw
    parts of the rows; one that releases the parts of a vector one by one counts once.
    """
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = budget(estimator, 1)
    with _recorded_mechanisms() as used:
        fitted = fit(estimator, X, y, accountant=accountant)
        published(fitted, X)
    epsilon, delta = price(estimator)
    booked = get_epsilon(accountant.spends[0].event, delta)
    assert booked <= epsilon * (1.0 + 1e-6), (
        f"the event that was booked costs {booked:g} at delta = {delta:g}; the claim is {epsilon:g}"
    )
    if not used or _sampler(fitted) != ALL_ROWS:
        return
    ran = get_epsilon(Composed(tuple(mechanism.event for mechanism in used)), delta)
    assert ran <= epsilon * (1.0 + 1e-6), (
        f"the mechanisms that ran cost {ran:g} at delta = {delta:g}; the claim is {epsilon:g}"
    )
    assert ran <= booked * (1.0 + 1e-6), (
        f"the mechanisms that ran cost {ran:g} at delta = {delta:g}; booked was {booked:g}"
    )


def _sampler(fitted):
    return getattr(getattr(fitted, "privacy_", None), "sampler", ALL_ROWS)


@contextmanager
def _recorded_mechanisms():
    """Collect the mechanisms that release something within a block, not those within others."""
    used, depth = [], 0

    def recorded(method):
        def run(mechanism, *args, **options):
            nonlocal depth
            if not (depth or any(mechanism is other for other in used)):
                used.append(mechanism)
            depth += 1
            try:
                return method(mechanism, *args, **options)
            finally:
                depth -= 1

        return run

    with ExitStack() as patches:
        for kind in (getattr(mechanisms, name) for name in mechanisms.__all__):
            for name in ("release", "release_codes"):
                if isinstance(kind, type) and hasattr(kind, name):
                    method = recorded(getattr(kind, name))
                    patches.enter_context(patch.object(kind, name, method))
        yield used


def check_failed_fit(estimator):
    """Bad input is a ValueError, charges nothing and leaves nothing of an earlier fit."""
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = budget(estimator, 4)
    fitted = clone(estimator).set_params(accountant=accountant).fit(X, y)
    spends = len(accountant.spends)
    tables = [X[:0]]
    if not get_tags(estimator).input_tags.allow_nan:
        tables.append(X.copy())
        tables[-1][3, 1] = np.nan
    for table in tables:
        try:
            fitted.fit(table, y[: len(table)])
        except ValueError:
            pass
        else:
            raise AssertionError("bad input was fitted")
        assert not fitted_names(fitted), f"a failed fit left {fitted_names(fitted)}"
    assert len(accountant.spends) == spends, "bad input was charged"


def check_privacy_parameters(estimator):
    """Impossible values of epsilon, delta and random_state are ValueErrors, uncharged."""
    need_parameters(estimator, "random_state")
    need_accountant(estimator)
    X, y = make_table(estimator)
    accountant = budget(estimator, 1)
    bad = [("epsilon", v) for v in (0, -1.0, "1", None, float("nan"), float("inf"), True)]
    bad += [("random_state", v) for v in (-1, 0.5, check_random_state(0), True)]
    bad += [("accountant", v) for v in ("budget.db", 1.0)]
    if "delta" in estimator.get_params():
        bad += [("delta", v) for v in (-1e-9, 1.0, "small", None, float("nan"))]
    for name, value in bad:
        try:
            release(estimator, X, y, **({"accountant": accountant} | {name: value}))
        except ValueError:
            pass
        else:
            raise AssertionError(f"{name}={value!r} was accepted")
    assert not accountant.spends, "a release with impossible parameters was charged"


def check_tiny_epsilon(estimator):
    """An epsilon too small to be of use gives a release all the same, or an uncharged error."""
    need_accountant(estimator)
    X, y = make_table(estimator)
    for epsilon in (1e-6, 1e-14, 1e-100, 1e-300):
        accountant = PrivacyAccountant(1.0, 0.5)
        try:
            result = release(estimator, X, y, epsilon=epsilon, accountant=accountant)
        except ValueError:
            assert not accountant.spends, f"a failure at epsilon={epsilon} was charged"
        else:
            assert np.isfinite(result.astype(float)).all(), f"not finite at epsilon={epsilon}"
