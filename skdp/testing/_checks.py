"""Checks of the contract that every private estimator keeps, beside scikit-learn's own.

Each check takes an unfitted estimator with parameters `epsilon`, `accountant` and
`random_state`, makes releases with clones of it on small tables, and raises `AssertionError`
where the contract is broken, or `unittest.SkipTest` with a reason where it needs what the
estimator lacks. The release is `fit`, or `transform` where an estimator's tag says that its
output is not deterministic (local differential privacy). Features are drawn from [-1, 1] and rows
have norm at most 1, so that declared bounds of at least that range clip nothing; where categories
are declared, features are drawn from 0, 1 and 2.
"""

import warnings
from functools import partial, update_wrapper
from unittest import SkipTest

from sklearn.exceptions import EstimatorCheckFailedWarning, SkipTestWarning

from skdp.testing import _charges, _claims
from skdp.testing._case import Case
from skdp.utils._validation import check_choice


def dp_checks(*, n_fits=100, reference=None):
    """Return the checks, each a function of an unfitted estimator.

    Parameters
    ----------
    n_fits : int, default=100
        How often `check_neighbors` fits each of two tables, at least 60: a hundred fits find
        noise that is missing, thousands a noise scale that is half of what it should be.
    reference : estimator, default=None
        The estimator without privacy, for `check_limit`: at epsilon = 1e10 fitted attributes of
        the same name and shape must agree with its to 1e-3.

    Returns
    -------
    list of callable

    Examples
    --------
    >>> from skdp.testing import dp_checks
    >>> dp_checks()[0].__name__
    'check_refused_charge'
    """
    options = {"check_limit": {"reference": reference}, "check_neighbors": {"n_fits": n_fits}}
    options["check_persons"] = options["check_neighbors"]
    return [
        update_wrapper(partial(_state_rule, check, **options.get(name, {})), check)
        for module in (_charges, _claims)
        for name, check in vars(module).items()
        if name.startswith("check_") and check.__module__ == module.__name__
    ]


def _state_rule(check, estimator, **options):
    """Run a check; a failure starts with the rule that is broken, the check's own summary."""
    try:
        check(Case(estimator), **options)
    except AssertionError as error:
        rule = (check.__doc__ or "").partition("\n")[0]
        raise AssertionError(f"{rule} But: {error}") from error


def check_dp_estimator(
    estimator,
    *,
    reference=None,
    on_fail="raise",
    on_skip="warn",
    expected_failed_checks=None,
    n_fits=100,
    callback=None,
):
    """Check that an estimator keeps the contract of a private one.

    It is to differential privacy what `sklearn.utils.estimator_checks.check_estimator` is to
    scikit-learn's contract, and has its options.

    Parameters
    ----------
    estimator : estimator
        An instance, unfitted. Checks that need a parameter or a statement that it lacks are
        skipped with a reason.
    reference : estimator, default=None
        The one without privacy, whose answer it should give as epsilon grows; see `dp_checks`.
    on_fail : {"raise", "warn", None}, default="raise"
        Raise at the first failure, or run every check and warn of failures, or only report them.
    on_skip : {"warn", None}, default="warn"
        Whether to warn of a check that is skipped.
    expected_failed_checks : dict of str to str, default=None
        Names of checks that may fail, each with a reason; their status is "xfail".
    n_fits : int, default=100
        Of `check_neighbors`, see `dp_checks`.
    callback : callable, default=None
        Called after each check with the items of its result as keyword arguments, to show
        progress; with `on_fail="raise"` the first failure is the last.

    Returns
    -------
    list of dict
        One a check: "estimator", "check_name", "exception", "status" ("passed", "failed",
        "skipped" or "xfail"), "expected_to_fail" and "expected_to_fail_reason".

    Raises
    ------
    TypeError
        If it is a class and not an instance.
    ValueError
        If an option is not as described.
    Exception
        What the first check that failed raised, with `on_fail="raise"`; where the contract is
        broken this is an `AssertionError` whose message starts with the rule.

    Warns
    -----
    EstimatorCheckFailedWarning
        If a check fails and `on_fail="warn"`.
    SkipTestWarning
        If a check is skipped and `on_skip="warn"`.

    Notes
    -----
    What the checks ask of an estimator of one's own, and what each of them finds, is in
    ``docs/own_estimators.md``. In short: parameters `epsilon` and `accountant`, and if there are
    any `delta` and `random_state`; a `fit` that charges the accountant once, with
    ``accountant.charge(event, epsilon=..., delta=..., seeded=...)``, between looking at the shape
    and looking at the values of its input; and attributes that hold what was released, or nothing.
    `skdp.base.PrivateFit` keeps that order and writes the statement `privacy_`.

    An estimator that passes may still not be private: the checks find mistakes, they prove
    nothing. A proof and an audit (`skdp.audit`) are what remains to do.

    The false-alarm rate of the checks that are statistical, `check_neighbors` and
    `check_no_raw_statistic`, is 1e-6 an estimator.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPStandardScaler
    >>> from skdp.testing import check_dp_estimator
    >>> scaler = DPStandardScaler(bounds=(-1, 1))
    >>> found = check_dp_estimator(scaler, reference=StandardScaler(), on_skip=None)
    >>> {result["check_name"] for result in found if result["status"] != "passed"}
    {'check_noise_of_classes'}
    """
    if isinstance(estimator, type):
        raise TypeError("pass an instance, not a class")
    check_choice(on_fail, "on_fail", ("raise", "warn", None))
    check_choice(on_skip, "on_skip", ("warn", None))
    results = []
    expected = expected_failed_checks or {}
    for check in dp_checks(n_fits=n_fits, reference=reference):
        name = check.__name__
        status = "passed"
        exception = None
        try:
            check(estimator)
        except Exception as error:
            failed = "xfail" if name in expected else "failed"
            status = "skipped" if isinstance(error, SkipTest) else failed
            exception = error
        result = {
            "estimator": estimator,
            "check_name": name,
            "exception": exception,
            "status": status,
            "expected_to_fail": name in expected,
            "expected_to_fail_reason": expected.get(name),
        }
        results.append(result)
        if callback is not None:
            callback(**result)
        if status == "failed" and on_fail == "raise":
            raise exception
        if status == "failed" and on_fail == "warn":
            warnings.warn(EstimatorCheckFailedWarning(**result), stacklevel=2)
        if status == "skipped" and on_skip == "warn":
            warnings.warn(f"{name}: {exception}", SkipTestWarning, stacklevel=2)
    return results


def parametrize_with_dp_checks(
    estimators, *, references=None, expected_failed_checks=None, n_fits=100
):
    """Return a pytest decorator that gives a test every pair of an estimator and a check.

    Parameters
    ----------
    estimators : list of estimators
        Instances, unfitted.
    references : callable, default=None
        Takes an estimator and returns the one without privacy, or None; see `dp_checks`.
    expected_failed_checks : callable, default=None
        Takes an estimator and returns a dict as in `check_dp_estimator`; these are marked xfail.
    n_fits : int, default=100
        Of `check_neighbors`, see `dp_checks`.

    Returns
    -------
    pytest.MarkDecorator
        Of a test with parameters `estimator` and `check`.

    Raises
    ------
    TypeError
        If there is a class among the estimators.

    Examples
    --------
    >>> from skdp import DPLogisticRegression
    >>> from skdp.testing import parametrize_with_dp_checks
    >>> @parametrize_with_dp_checks([DPLogisticRegression(), DPLogisticRegression(delta=0.0)])
    ... def test_dp_contract(estimator, check):
    ...     check(estimator)
    """
    import pytest

    if any(isinstance(estimator, type) for estimator in estimators):
        raise TypeError("pass instances, not classes")
    pairs = []
    for estimator in estimators:
        expected = expected_failed_checks(estimator) if expected_failed_checks else {}
        reference = references(estimator) if references else None
        for check in dp_checks(n_fits=n_fits, reference=reference):
            name = check.__name__
            marks = [pytest.mark.xfail(reason=expected[name])] if name in expected else []
            pairs.append(pytest.param(estimator, check, marks=marks, id=f"{estimator}-{name}"))
    return pytest.mark.parametrize(("estimator", "check"), pairs)
