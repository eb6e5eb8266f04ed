"""Checks of the contract of private estimators, in addition to scikit-learn's checks.

Each check receives an unfitted estimator with parameters `epsilon`, `accountant` and
`random_state`, and makes releases on small tables with clones of it. It raises `AssertionError` if
the contract is broken, and `unittest.SkipTest` with a reason if the estimator lacks something that
the check needs. The release is `fit`, or `transform` if the estimator's tags say that its output is
not deterministic (local differential privacy). Features are drawn from [-1, 1] and rows have norm
at most 1, so declared bounds that are at least as wide clip nothing. If categories are declared,
features are drawn from 0, 1 and 2.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Literal
from unittest import SkipTest

from sklearn.base import BaseEstimator
from sklearn.exceptions import EstimatorCheckFailedWarning, SkipTestWarning

from skdp.testing import _charges, _claims
from skdp.testing._case import Case
from skdp.utils._validation import check_choice


def dp_checks(*, n_fits: int = 100, reference: BaseEstimator | None = None) -> list[Callable]:
    """Return the list of checks, which are functions of an unfitted estimator.

    Parameters
    ----------
    n_fits : int, default=100
        Number of fits to each of two tables in `check_neighbors`, at least 60. A hundred fits
        detect missing noise; thousands detect noise with half the correct scale.
    reference : estimator, default=None
        Estimator without privacy, for `check_limit`: at epsilon = 1e10, fitted attributes with the
        same name and shape must agree with the reference to 1e-3. Give none for quantiles: every
        number between two rows is a valid answer.

    Returns
    -------
    list of callable

    Examples
    --------
    >>> from skdp.testing import dp_checks
    >>> dp_checks()[0].__name__
    'check_refused_charge'
    """
    options: dict[str, dict] = {
        "check_limit": {"reference": reference},
        "check_neighbors": {"n_fits": n_fits},
        "check_persons": {"n_fits": n_fits},
    }
    checks: list[Callable] = []
    for module in (_charges, _claims):
        for name, check in vars(module).items():
            # Skip the functions that the module imports.
            if name.startswith("check_") and check.__module__ == module.__name__:
                function = partial(_run_check, check, **options.get(name, {}))
                checks.append(update_wrapper(function, check))
    return checks


def _run_check(check, estimator, **options):
    """Run a check. The message of a failure starts with the summary of the check."""
    try:
        check(Case(estimator), **options)
    except AssertionError as error:
        rule = (check.__doc__ or "").partition("\n")[0]
        raise AssertionError(f"{rule} But: {error}") from error


def check_dp_estimator(
    estimator: BaseEstimator,
    *,
    reference: BaseEstimator | None = None,
    on_fail: Literal["raise", "warn"] | None = "raise",
    on_skip: Literal["warn"] | None = "warn",
    expected_failed_checks: dict[str, str] | None = None,
    n_fits: int = 100,
    callback: Callable | None = None,
) -> list[dict]:
    """Check that an estimator fulfills the contract of private estimators.

    This is the counterpart of `sklearn.utils.estimator_checks.check_estimator` for differential
    privacy, with the same options.

    Parameters
    ----------
    estimator : estimator
        Unfitted instance. Checks that need a parameter or a statement that it lacks are skipped
        with a reason.
    reference : estimator, default=None
        Estimator without privacy with which the estimator should agree as epsilon grows; see
        `dp_checks`.
    on_fail : {"raise", "warn", None}, default="raise"
        "raise" raises the first failure. "warn" runs all checks and warns about failures. None only
        reports them.
    on_skip : {"warn", None}, default="warn"
        Whether to warn about checks that are skipped.
    expected_failed_checks : dict of str to str, default=None
        Names of checks that may fail, each with a reason; their status is "xfail".
    n_fits : int, default=100
        Number of fits in `check_neighbors`; see `dp_checks`.
    callback : callable, default=None
        Function that is called after each check with the items of its result as keyword arguments,
        to show progress. With `on_fail="raise"`, the last call is for the first failure.

    Returns
    -------
    list of dict
        One dict per check: "estimator", "check_name", "exception", "status" ("passed", "failed",
        "skipped" or "xfail"), "expected_to_fail" and "expected_to_fail_reason".

    Raises
    ------
    TypeError
        If the estimator is a class and not an instance.
    ValueError
        If an option is invalid.
    Exception
        With `on_fail="raise"`, the exception of the first check that failed. If the contract is
        broken, it is an `AssertionError` whose message starts with the rule.

    Warns
    -----
    EstimatorCheckFailedWarning
        If a check fails and `on_fail="warn"`.
    SkipTestWarning
        If a check is skipped and `on_skip="warn"`.

    Notes
    -----
    The requirements of the checks and the mistakes that each of them finds are documented in
    ``docs/reference/checks.md``. In short, an estimator has parameters `epsilon` and
    `accountant`, and `delta` and `random_state` if it uses them. Its `fit` charges the accountant
    once, with ``accountant.charge(event, epsilon=..., delta=..., seeded=...)``, after reading the
    shape of its input and before reading the values. Its attributes contain only released values.
    `skdp.base.PrivateFit` keeps that order and writes the statement `privacy_`.

    An estimator that passes may still not be private: the checks find mistakes, but prove nothing.
    A proof and an audit (`skdp.audit`) are also needed.

    The false-alarm rate of the statistical checks, `check_neighbors` and `check_no_raw_statistic`,
    is 1e-6 per estimator.

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
        raise TypeError(f"estimator must be an instance, got the class {estimator.__name__}")
    check_choice(on_fail, "on_fail", ("raise", "warn", None))
    check_choice(on_skip, "on_skip", ("warn", None))
    results = []
    expected = expected_failed_checks or {}
    for check in dp_checks(n_fits=n_fits, reference=reference):
        name = check.__name__
        status = "passed"
        exception: Exception | None = None
        try:
            check(estimator)
        except SkipTest as error:
            status = "skipped"
            exception = error
        except Exception as error:
            status = "failed"
            if name in expected:
                status = "xfail"
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
        if exception is not None and status == "failed" and on_fail == "raise":
            raise exception
        if status == "failed" and on_fail == "warn":
            warnings.warn(EstimatorCheckFailedWarning(**result), stacklevel=2)
        if status == "skipped" and on_skip == "warn":
            warnings.warn(f"{name}: {exception}", SkipTestWarning, stacklevel=2)
    return results


def parametrize_with_dp_checks(
    estimators: Sequence[BaseEstimator],
    *,
    references: Callable | None = None,
    expected_failed_checks: Callable | None = None,
    n_fits: int = 100,
) -> Callable:
    """Return a pytest decorator that runs a test for each pair of an estimator and a check.

    Parameters
    ----------
    estimators : list of estimators
        Unfitted instances.
    references : callable, default=None
        Function that maps an estimator to its counterpart without privacy, or None; see
        `dp_checks`.
    expected_failed_checks : callable, default=None
        Function that maps an estimator to a dict as in `check_dp_estimator`. These checks are
        marked as xfail.
    n_fits : int, default=100
        Number of fits in `check_neighbors`; see `dp_checks`.

    Returns
    -------
    pytest.MarkDecorator
        Decorator for a test with parameters `estimator` and `check`.

    Raises
    ------
    TypeError
        If one of the estimators is a class.

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
        raise TypeError("estimators must be instances, got a class")
    pairs = []
    for estimator in estimators:
        expected = {}
        if expected_failed_checks:
            expected = expected_failed_checks(estimator)
        reference = None
        if references:
            reference = references(estimator)
        for check in dp_checks(n_fits=n_fits, reference=reference):
            name = check.__name__
            marks = []
            if name in expected:
                marks.append(pytest.mark.xfail(reason=expected[name]))
            pairs.append(pytest.param(estimator, check, marks=marks, id=f"{estimator}-{name}"))
    return pytest.mark.parametrize(("estimator", "check"), pairs)
