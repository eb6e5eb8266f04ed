"""Checks of releases: charged first and once, with fresh noise, and nothing else is stored."""

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

import skdp.mechanisms as mechanisms
from skdp.accounting import Composed, get_epsilon
from skdp.audit._outputs import NullAccountant
from skdp.audit._published import as_matrix, observe
from skdp.base import DEFAULT_CONFIG, fitted_names
from skdp.exceptions import BudgetExceededError, SeededNoiseWarning
from skdp.ledger import PrivacyAccountant
from skdp.testing._case import HIGH_NOISE, N_FEATURES, ignore_seed_warnings, must_raise
from skdp.utils._documents import count_of
from skdp.utils._validation import is_auto

# The `sampler` that `PrivateFit.publish` writes for releases of all rows.
ALL_ROWS = "all rows, once"


def check_refused_charge(case):
    """A refused charge releases nothing and leaves the ledger unchanged.

    An estimator whose `fit` was refused is not fitted, even if it was before.
    """
    accountant = PrivacyAccountant(1e-6, 0.0)
    before = accountant.verify()
    fitted = case.fit(accountant=None).set_params(accountant=accountant)
    with must_raise(BudgetExceededError, "a release was made although its cost exceeds the budget"):
        case.refit(fitted)
    if not case.releases_in_transform:
        assert not fitted_names(fitted), f"a refused fit left {fitted_names(fitted)}"
    assert accountant.verify() == before, "a refused charge changed the ledger"


def check_charge_before_touch(case):
    """Check that a release uses the data present after the charge, and reads no data earlier.

    The table is overwritten during the charge. The result must be that of a release from the new
    table with the same noise.
    """
    charges = []
    original_charge = NullAccountant.charge

    def charge(accountant, event, **params):
        """Replace the rows of the table at the moment of the charge."""
        charges.append(event)
        case.X[:] = case.other_X
        return original_charge(accountant, event, **params)

    with ignore_seed_warnings():
        expected = case.release(case.other_X, random_state=0)
        with patch.object(NullAccountant, "charge", charge):
            result = case.release(random_state=0, accountant=NullAccountant(DEFAULT_CONFIG))
    assert len(charges) == 1, f"one release caused {count_of(len(charges), 'charge')}"
    message = "something was computed from the data before the charge"
    np.testing.assert_array_equal(result, expected, message)


def check_handle_identity(case):
    """Clones, copies, pickles and fitted estimators charge the accountant that was passed."""
    accountant = case.budget(1)
    original = case.clone_with(accountant=accountant)
    copies = {
        "a clone": clone(original),
        "a copy": copy.copy(original),
        "a deep copy": copy.deepcopy(original),
        "a pickled copy": pickle.loads(pickle.dumps(original)),
        "a fitted estimator": clone(original).fit(case.X, case.y),
    }
    for name, other in copies.items():
        is_same = other.get_params()["accountant"] is accountant
        assert is_same, f"{name} has a different accountant"


def check_exact_spend(case):
    """Releases of clones and pickled copies are all charged, each with the claimed cost."""
    accountant = case.budget(4)
    original = case.clone_with(accountant=accountant)
    copies = [original, clone(original), pickle.loads(pickle.dumps(original))]
    for other in [*copies, copies[0]]:
        case.refit(other)
    charges = accountant.charges
    case.check_charges(charges, 4)
    if hasattr(copies[0], "privacy_") and not case.releases_in_transform:
        assert copies[0].privacy_.record == charges[-1].hash, (
            "the statement refers to a different charge"
        )


def check_workers(case):
    """Fits in worker processes are all charged and have independent noise.

    The estimator that is sent to the workers was fitted before, and may have stored a generator.
    """
    is_repeated = case.repeats_noise(_fits_in_workers)
    assert not is_repeated, "releases in workers have the same noise"


def _fits_in_workers(case):
    """Return two releases in this process and two in workers; raise if one is not charged."""
    accountant = case.budget(4)
    original = case.clone_with(accountant=accountant, **case.seed_params(None))
    results = [case.refit(original)]
    results += Parallel(n_jobs=2)(delayed(case.refit)(original) for _ in range(2))
    results.append(case.refit(original))
    case.check_charges(accountant.charges, 4)
    return results


def check_cost_of_mechanisms(case):
    """The claimed cost covers the charged event, and the event covers the mechanisms that ran.

    The event must cost no more than the claim, at the delta that was charged. The mechanisms of
    `skdp.mechanisms` that released something must together cost no more than the event, unless the
    statement's `sampler` says that they used a sample of the rows. A mechanism that releases a
    vector element by element counts once.
    """
    accountant = case.budget(1)
    with _recorded_mechanisms() as mechanisms:
        fitted = case.fit(accountant=accountant)
        case.published(fitted)
    # A charge may have a smaller delta than the parameters, but only if the noise needs no more.
    epsilon, delta = case.check_charges(accountant.charges, 1)
    charged = get_epsilon(accountant.charges[0].event, delta)
    assert charged <= epsilon * (1.0 + 1e-6), (
        f"the charged event costs {charged:g} at delta = {delta:g}, but the claim is {epsilon:g}"
    )
    sampler = getattr(getattr(fitted, "privacy_", None), "sampler", ALL_ROWS)
    if not mechanisms or sampler != ALL_ROWS:
        return
    event = Composed(tuple(mechanism.event for mechanism in mechanisms))
    run_epsilon = get_epsilon(event, delta)
    assert run_epsilon <= min(epsilon, charged) * (1.0 + 1e-6), (
        f"the mechanisms that ran cost {run_epsilon:g} at delta = {delta:g}; the claim is "
        f"{epsilon:g}, and the charged event costs {charged:g}"
    )


@contextmanager
def _recorded_mechanisms():
    """Collect the mechanisms that release something within the block.

    Mechanisms that are used by another mechanism are part of its cost and are left out.
    """
    used = []
    depth = 0

    def recorded(method):
        """Return a method that also adds its mechanism to `used`, unless another one calls it."""

        def run(mechanism, *args, **options):
            """Run the method one level deeper; only mechanisms at depth 0 are added."""
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
    """Charges, warnings, printed text and class attributes of a fit do not depend on the rows."""
    observed = []
    # Warnings may depend on released numbers. With this much noise, these do not reveal the rows.
    params = HIGH_NOISE | case.seed_params(0)
    for X, y in ((case.X, case.y), (case.other_X, case.y[::-1])):
        accountant = case.budget(1)
        printed = io.StringIO()
        recorded = warnings.catch_warnings(record=True, action="always")
        with recorded as caught, redirect_stdout(printed):
            case.published(case.fit(X, y, accountant=accountant, **params), X)
        charges = [replace(charge, time="", hash="") for charge in accountant.charges]
        messages = sorted(str(warning.message) for warning in caught)
        class_attributes = repr(vars(type(case.estimator)))
        observed.append((charges, messages, printed.getvalue(), class_attributes))
    assert observed[0] == observed[1], (
        f"one table leads to {observed[0]}, another table to {observed[1]}"
    )


def check_failed_fit(case):
    """Invalid input raises ValueError, is not charged and leaves no trace of an earlier fit."""
    accountant = case.budget(4)
    fitted = case.clone_with(accountant=accountant).fit(case.X, case.y)
    n_charges = len(accountant.charges)
    tables = [case.X[:0]]
    if not case.tags.input_tags.allow_nan:
        tables.append(case.X.copy())
        tables[-1][3, 1] = np.nan
    for table in tables:
        with must_raise(ValueError, "invalid input was fitted"):
            fitted.fit(table, case.y[: len(table)])
        assert not fitted_names(fitted), f"a failed fit left {fitted_names(fitted)}"
    assert len(accountant.charges) == n_charges, "invalid input was charged"


def check_privacy_parameters(case):
    """Invalid epsilon, delta, random_state or accountant raises ValueError and is not charged."""
    accountant = case.budget(1)
    bad = [("epsilon", v) for v in (0, -1.0, "1", None, float("nan"), float("inf"), True)]
    bad += [("random_state", v) for v in (-1, 0.5, check_random_state(0), True)]
    bad += [("accountant", v) for v in ("budget.db", 1.0)]
    if "delta" in case.params:
        bad += [("delta", v) for v in (-1e-9, 1.0, "small", None, float("nan"))]
    for name, value in bad:
        params = {"accountant": accountant} | {name: value}
        with must_raise(ValueError, f"{name}={value!r} was accepted"):
            case.release(**params)
    assert not accountant.charges, "a release with invalid parameters was charged"


def check_tiny_epsilon(case):
    """A tiny epsilon leads to a finite release or to an error that is not charged."""
    for epsilon in (1e-6, 1e-14, 1e-100, 1e-300):
        accountant = PrivacyAccountant(1.0, 0.5)
        try:
            result = case.release(epsilon=epsilon, accountant=accountant)
        except ValueError:
            assert not accountant.charges, f"a failure at epsilon={epsilon} was charged"
        else:
            assert np.isfinite(result.astype(float)).all(), (
                f"the release at epsilon={epsilon} is not finite"
            )


# Numbers of fits per table and of classes of the checks below.
N_HIGH_NOISE_FITS = 16
N_CLASSES = 5


def check_no_training_row(case):
    """No pickle of a fitted estimator contains a value of the table.

    The values of the table have random digits, so their eight bytes do not occur by chance.
    """
    X = case.X + check_random_state(2).uniform(1e-10, 1e-9, size=case.X.shape)
    pickled = pickle.dumps(case.fit(X))
    n_values = sum(value.tobytes() in pickled for value in X.ravel())
    assert not n_values, f"the pickle contains {count_of(n_values, 'value')} of the table"


def check_no_raw_statistic(case):
    r"""No stored number, in any attribute, distinguishes two tables without noise.

    With epsilon = 0.001, by group privacy, releases from two tables of 60 rows have nearly the same
    distribution. A number that has one value in sixteen fits to one table, and another value in
    sixteen fits to the other, is then not private: for a private number, the probabilities of the
    two values are p and at most :math:`e^{0.12} (1 - p)`, so this happens with probability below
    2e-9.
    """
    # The same two labels with different numbers of rows.
    labels = np.where(np.arange(len(case.y)) < 50, 1, 0)
    tables = (case.X, case.y), (case.other_X, labels)
    options = HIGH_NOISE | case.seed_params(None)
    runs = []
    for _ in range(N_HIGH_NOISE_FITS):
        runs += [_stored_values(case.fit(*table, **options)) for table in tables]
        values, names = as_matrix(runs)
        one = values[::2]
        two = values[1::2]
        is_constant = (np.ptp(one, axis=0) == 0.0) & (np.ptp(two, axis=0) == 0.0)
        is_raw = is_constant & (one[0] != two[0])
        if not is_raw.any():
            return
    raw_names = list(compress(names, is_raw))
    raise AssertionError(f"these are stored without noise and differ for other data: {raw_names}")


def _stored_values(estimator):
    """Return all numbers and texts in the attributes of an estimator that are not parameters."""
    params = estimator.get_params(deep=False)
    return observe({name: value for name, value in vars(estimator).items() if name not in params})


def check_fresh_noise(case):
    """Two releases of one estimator differ, as do releases of two clones."""

    def releases(case):
        """Return the releases of two fits of one object and of a fit of another."""
        first = case.fit()
        return [case.published(first), case.refit(first), case.release()]

    is_repeated = case.repeats_noise(releases)
    assert not is_repeated, "two releases have the same noise"


def check_noise_of_classes(case):
    """Each class has independent noise, in one process or several, with or without a seed.

    All classes have the same rows, so their parameters differ by noise alone. Two classes share
    their noise if, in all fits, their distance is less than a thousandth of the distance between
    one class's parameters in different fits.
    """
    if not (is_classifier(case.estimator) and case.tags.classifier_tags.multi_class):
        raise SkipTest("the estimator is not a classifier for several classes")
    if case.params.get("classes") is not None:
        raise SkipTest("the classes are declared")
    X = np.tile(case.X[:12], (N_CLASSES, 1))
    y = np.repeat(np.arange(N_CLASSES), 12)
    params = {}
    if is_auto(case.params.get("bounds")):
        # Bounds that are found privately would be the same for all classes. With high noise, the
        # released values are then the midpoint of these bounds for every class.
        params["bounds"] = (-10.0, 10.0)
    variants = [params]
    if "n_jobs" in case.params:
        variants = [params | {"n_jobs": n_jobs} for n_jobs in (None, 2)]
    for variant in variants:
        for seeds in ((None,) * 3, range(3)):
            fit_params = [variant | case.seed_params(seed) for seed in seeds]
            with ignore_seed_warnings():
                shared = _shared_noise([case.fit(X, y, **params) for params in fit_params])
            assert not shared, f"classes share their noise in {shared}, with {fit_params[0]}"


def _shared_noise(fits):
    """Return (attribute, class, class) for classes that share their noise in all fits."""
    shared = []
    for name, value in vars(fits[0]).items():
        is_matrix = isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 2
        if not is_matrix or len(value) != N_CLASSES or value.shape[1] < N_FEATURES:
            continue
        values = np.stack([getattr(one, name) for one in fits])
        # The smallest distance between consecutive fits, for each class.
        distances = np.linalg.norm(values - np.roll(values, 1, axis=0), axis=2).min(axis=0)
        for i, j in combinations(range(N_CLASSES), 2):
            gap = np.linalg.norm(values[:, i] - values[:, j], axis=1).max()
            if gap < 1e-3 * min(distances[i], distances[j]):
                shared.append((name, i, j))
    return shared


def check_seeded_flag(case):
    """A seed repeats the noise, and is reported by the statement, the ledger and a warning."""
    accountant = case.budget(3)
    fits = [case.clone_with(random_state=seed, accountant=accountant) for seed in (7, 7, None)]
    with warnings.catch_warnings(record=True, action="always") as caught:
        results = [case.refit(one) for one in fits]
    assert np.array_equal(results[0], results[1]), "two fits with the same seed differ"
    flags = [charge.seeded for charge in accountant.charges]
    assert flags == [True, True, False], f"the charges have seeded = {flags}"
    n_warnings = sum(issubclass(w.category, SeededNoiseWarning) for w in caught)
    assert n_warnings == 2, f"two seeded releases raised {count_of(n_warnings, 'warning')}"
    flags = [case.statement_of(one).seeded for one in fits]
    assert flags == [True, True, False], f"the statements have seeded = {flags}"
