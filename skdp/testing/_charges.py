"""Checks of releases: charged first and once, each with noise of its own, and nothing else kept."""

import copy
import io
import pickle
import warnings
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import replace
from itertools import combinations, compress
from unittest import SkipTest
from unittest.mock import patch

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from skdp import mechanisms
from skdp.accounting import Composed, get_epsilon
from skdp.audit._outputs import NullAccountant
from skdp.audit._published import as_matrix, observe
from skdp.base import DEFAULT_CONFIG, fitted_names
from skdp.exceptions import BudgetExceededError, SeededNoiseWarning
from skdp.ledger import PrivacyAccountant
from skdp.testing._case import N_FEATURES, UNTELLING, must_raise, quiet_seeds

# What `PrivateFit.publish` says of releases in which every row takes part.
ALL_ROWS = "all rows, once"


def check_refused_charge(case):
    """A refused charge releases nothing and leaves the ledger as it was.

    An estimator whose `fit` was refused is unfitted, whatever it was before.
    """
    accountant = PrivacyAccountant(1e-6, 0.0)
    before = accountant.verify()
    fitted = case.fit(accountant=None).set_params(accountant=accountant)
    with must_raise(BudgetExceededError, "a release that the budget cannot pay for was made"):
        case.refit(fitted)
    if not case.releases_in_transform:
        assert not fitted_names(fitted), f"a refused fit left {fitted_names(fitted)}"
    assert accountant.verify() == before, "a refused charge changed the ledger"


def check_charge_before_touch(case):
    """What is released depends on the data as they are after the charge, and on nothing else.

    The table is overwritten while the charge is made; the result must be that of a release
    from the new table with the same noise.
    """
    charges = []
    book = NullAccountant.charge

    def charge(nobody, event, **terms):
        charges.append(event)
        case.X[:] = case.other_X
        return book(nobody, event, **terms)

    with quiet_seeds():
        expected = case.release(case.other_X, random_state=0)
        with patch.object(NullAccountant, "charge", charge):
            result = case.release(random_state=0, accountant=NullAccountant(DEFAULT_CONFIG))
    assert len(charges) == 1, f"one release made {len(charges)} charges"
    words = "something was computed from the data before the charge"
    np.testing.assert_array_equal(result, expected, words)


def check_handle_identity(case):
    """Clones, copies, pickles and fitted estimators charge the accountant that was passed."""
    accountant = case.budget(1)
    original = case.made(accountant=accountant)
    copies = {
        "a clone": clone(original),
        "a copy": copy.copy(original),
        "a deep copy": copy.deepcopy(original),
        "a pickled copy": pickle.loads(pickle.dumps(original)),
        "a fitted estimator": clone(original).fit(case.X, case.y),
    }
    for name, other in copies.items():
        same = other.get_params()["accountant"] is accountant
        assert same, f"{name} has another accountant"


def check_exact_spend(case):
    """Releases of clones and of pickled copies are all booked, each at the stated price."""
    accountant = case.budget(4)
    original = case.made(accountant=accountant)
    copies = [original, clone(original), pickle.loads(pickle.dumps(original))]
    for other in [*copies, copies[0]]:
        case.refit(other)
    charges = accountant.charges
    case.check_booked(charges, 4)
    if hasattr(copies[0], "privacy_") and not case.releases_in_transform:
        assert copies[0].privacy_.record == charges[-1].hash, "the statement names another record"


def check_workers(case):
    """Fits in worker processes are all booked, and each draws noise of its own.

    What is sent to the workers was fitted before, and may have kept a generator.
    """
    same = case.repeats_noise(_fits_in_workers)
    assert not same, "releases in workers published the same numbers"


def _fits_in_workers(case):
    accountant = case.budget(4)
    original = case.made(accountant=accountant, **case.seeded(None))
    results = [case.refit(original)]
    results += Parallel(n_jobs=2)(delayed(case.refit)(original) for _ in range(2))
    results.append(case.refit(original))
    case.check_booked(accountant.charges, 4)
    return results


def check_cost_of_mechanisms(case):
    """The price is that of the booked event, which costs what the mechanisms that ran cost.

    The event must satisfy the price. The mechanisms of `skdp.mechanisms` that released something
    must together cost no more than the event, unless a statement's `sampler` says that they saw
    parts of the rows; one that releases the parts of a vector one by one counts once.
    """
    accountant = case.budget(1)
    with _recorded_mechanisms() as used:
        fitted = case.fit(accountant=accountant)
        case.published(fitted)
    case.check_booked(accountant.charges, 1)
    epsilon, delta = case.price
    booked = get_epsilon(accountant.charges[0].event, delta)
    assert booked <= epsilon * (1.0 + 1e-6), (
        f"the event that was booked costs {booked:g} at delta = {delta:g}; the claim is {epsilon:g}"
    )
    sampler = getattr(getattr(fitted, "privacy_", None), "sampler", ALL_ROWS)
    if not used or sampler != ALL_ROWS:
        return
    ran = get_epsilon(Composed(tuple(mechanism.event for mechanism in used)), delta)
    assert ran <= min(epsilon, booked) * (1.0 + 1e-6), (
        f"the mechanisms that ran cost {ran:g} at delta = {delta:g}; the claim is {epsilon:g}, "
        f"booked was {booked:g}"
    )


@contextmanager
def _recorded_mechanisms():
    """Collect the mechanisms that release something within a block, not those within others."""
    used = []
    depth = 0

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
        for kind in vars(mechanisms).values():
            for name in ("release", "release_codes"):
                if isinstance(kind, type) and hasattr(kind, name):
                    method = recorded(getattr(kind, name))
                    patches.enter_context(patch.object(kind, name, method))
        yield used


def check_public_words(case):
    """What a fit books, warns of, prints and keeps on its class is the same for other rows."""
    told = []
    # What a warning may say of released numbers is alike: the noise drowns the rows.
    params = UNTELLING | case.seeded(0)
    for X, y in ((case.X, case.y), (case.other_X, case.y[::-1])):
        accountant = case.budget(1)
        printed = io.StringIO()
        recorded = warnings.catch_warnings(record=True, action="always")
        with recorded as caught, redirect_stdout(printed):
            case.published(case.fit(X, y, accountant=accountant, **params), X)
        booked = [replace(charge, time="", hash="") for charge in accountant.charges]
        words = sorted(str(warning.message) for warning in caught)
        told.append((booked, words, printed.getvalue(), repr(vars(type(case.estimator)))))
    assert told[0] == told[1], f"for one table it tells {told[0]}, for another {told[1]}"


def check_failed_fit(case):
    """Bad input is a ValueError, charges nothing and leaves nothing of an earlier fit."""
    accountant = case.budget(4)
    fitted = case.made(accountant=accountant).fit(case.X, case.y)
    charges = len(accountant.charges)
    tables = [case.X[:0]]
    if not case.tags.input_tags.allow_nan:
        tables.append(case.X.copy())
        tables[-1][3, 1] = np.nan
    for table in tables:
        with must_raise(ValueError, "bad input was fitted"):
            fitted.fit(table, case.y[: len(table)])
        assert not fitted_names(fitted), f"a failed fit left {fitted_names(fitted)}"
    assert len(accountant.charges) == charges, "bad input was charged"


def check_privacy_parameters(case):
    """Impossible values of epsilon, delta and random_state are ValueErrors, uncharged."""
    accountant = case.budget(1)
    bad = [("epsilon", v) for v in (0, -1.0, "1", None, float("nan"), float("inf"), True)]
    bad += [("random_state", v) for v in (-1, 0.5, check_random_state(0), True)]
    bad += [("accountant", v) for v in ("budget.db", 1.0)]
    if "delta" in case.params:
        bad += [("delta", v) for v in (-1e-9, 1.0, "small", None, float("nan"))]
    for name, value in bad:
        with must_raise(ValueError, f"{name}={value!r} was accepted"):
            case.release(**({"accountant": accountant} | {name: value}))
    assert not accountant.charges, "a release with impossible parameters was charged"


def check_tiny_epsilon(case):
    """An epsilon too small to be of use gives a release all the same, or an uncharged error."""
    for epsilon in (1e-6, 1e-14, 1e-100, 1e-300):
        accountant = PrivacyAccountant(1.0, 0.5)
        try:
            result = case.release(epsilon=epsilon, accountant=accountant)
        except ValueError:
            assert not accountant.charges, f"a failure at epsilon={epsilon} was charged"
        else:
            assert np.isfinite(result.astype(float)).all(), f"not finite at epsilon={epsilon}"


UNTELLING_FITS = 16
N_CLASSES = 5


def check_no_training_row(case):
    """No pickle of a fitted estimator holds a value of the table.

    The table is made of values whose eight bytes are all but impossible to meet by chance.
    """
    X = case.X + check_random_state(2).uniform(1e-10, 1e-9, size=case.X.shape)
    pickled = pickle.dumps(case.fit(X))
    found = sum(value.tobytes() in pickled for value in X.ravel())
    assert not found, f"a pickle holds {found} values of the table"


def check_no_raw_statistic(case):
    r"""No number that is kept, in any attribute, tells two tables apart without noise.

    With epsilon = 0.001 a release from a table of 60 other rows is nearly the same by group
    privacy. A number that is the same in sixteen fits to one table, and another in sixteen fits to
    the other, is then no release: for a private one, whose chances of the two values are p and at
    most :math:`e^{0.12} (1 - p)`, this happens with probability below 2e-9.
    """
    # Another number of rows of each class; the labels are the same two.
    labels = np.where(np.arange(len(case.y)) < 50, 1, 0)
    tables = (case.X, case.y), (case.other_X, labels)
    options = UNTELLING | case.seeded(None)
    runs = []
    for _ in range(UNTELLING_FITS):
        runs += [_kept_numbers(case.fit(*table, **options)) for table in tables]
        values, names = as_matrix(runs)
        one = values[::2]
        two = values[1::2]
        told = (np.ptp(one, axis=0) == 0.0) & (np.ptp(two, axis=0) == 0.0) & (one[0] != two[0])
        if not told.any():
            return
    suspects = list(compress(names, told))
    raise AssertionError(f"kept without noise, and not the same for other data: {suspects}")


def _kept_numbers(estimator):
    """Return every number and text within an estimator that is no parameter, by where it is."""
    params = estimator.get_params(deep=False)
    return observe({name: value for name, value in vars(estimator).items() if name not in params})


def check_fresh_noise(case):
    """Two releases of one estimator differ, and so do releases of two clones."""

    def releases(case):
        first = case.fit()
        return [case.published(first), case.refit(first), case.release()]

    same = case.repeats_noise(releases)
    assert not same, "two releases published the same numbers"


def check_noise_of_classes(case):
    """Each class has noise of its own, in one process and in several, with a seed and without.

    Every class has the same rows, so that its part of a model differs from another's by noise
    alone. Parts that are nearer to each other than a thousandth of what noise moves them from
    fit to fit, in every fit, share it.
    """
    if not (is_classifier(case.estimator) and case.tags.classifier_tags.multi_class):
        raise SkipTest("not for several classes")
    if case.params.get("classes") is not None:
        raise SkipTest("the classes are declared")
    X, y = np.tile(case.X[:12], (N_CLASSES, 1)), np.repeat(np.arange(N_CLASSES), 12)
    workers = [{"n_jobs": n} for n in (None, 2)] if "n_jobs" in case.params else [{}]
    for options in workers:
        for seeds in ((None,) * 3, range(3)):
            seeded = [options | case.seeded(seed) for seed in seeds]
            with quiet_seeds():
                alike = _sharing([case.fit(X, y, **params) for params in seeded])
            assert not alike, f"classes share their noise in {alike}, with {seeded[0]}"


def _sharing(fits):
    """Return (attribute, row, row) where rows of a matrix with a row a class go together."""
    found = []
    for name, value in vars(fits[0]).items():
        is_matrix = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2
        if not is_matrix or len(value) != N_CLASSES or value.shape[1] < N_FEATURES:
            continue
        values = np.stack([getattr(one, name) for one in fits])
        moved = np.linalg.norm(values - np.roll(values, 1, axis=0), axis=2).min(axis=0)
        for i, j in combinations(range(N_CLASSES), 2):
            gap = np.linalg.norm(values[:, i] - values[:, j], axis=1).max()
            if gap < 1e-3 * min(moved[i], moved[j]):
                found.append((name, i, j))
    return found


def check_seeded_flag(case):
    """A seed repeats the noise, and the statement, the ledger and a warning say so."""
    accountant = case.budget(3)
    fits = [case.made(random_state=seed, accountant=accountant) for seed in (7, 7, None)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        results = [case.refit(one) for one in fits]
    assert np.array_equal(results[0], results[1]), "a seed did not repeat"
    flags = [charge.seeded for charge in accountant.charges]
    assert flags == [True, True, False], f"the ledger says seeded: {flags}"
    warned = sum(issubclass(w.category, SeededNoiseWarning) for w in caught)
    assert warned == 2, f"two seeded releases warned {warned} times"
    flags = [case.stated(one).seeded for one in fits]
    assert flags == [True, True, False], f"statements say seeded: {flags}"
