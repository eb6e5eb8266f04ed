"""The smallest number of rows, or epsilon, whose expected error meets a target."""

import math
from collections.abc import Callable
from functools import partial
from inspect import isroutine

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from skdp.stats import expected_error
from skdp.utils._validation import as_doubles, check_integer, check_positive

# The expected error at a smaller number (of rows, or epsilon) is at most JUMP times the error at a
# larger number, times the ratio of the larger to the smaller number to this power. The error jumps
# because numbers of steps are integers.
POWER = 4.0
JUMP = 1.25
# Relative step of the search through the smaller numbers that this bound does not exclude.
STEP = 2.0**-7
# A rank is an integer, so the error of a quantile is not monotonic in the number of rows. The
# result is verified for up to this number of additional rows.
PERIOD = 16
MIN_EPSILON = 1e-4
# Relative tolerance of the returned epsilon.
EPSILON_TOLERANCE = 1e-3


def required_samples(
    planned: BaseEstimator | Callable | str,
    *,
    excess_loss: float | None = None,
    error: float | ArrayLike | None = None,
    max_samples: int = 10**6,
    **public: object,
) -> int:
    """Return the number of rows at which an expected loss or error meets a target.

    Nothing is charged and no data are read. The result is sufficient, and so is every larger number
    up to `max_samples`. An expected loss may rise with the number of rows where a fit switches to
    another mechanism or to a faster computation.

    Parameters
    ----------
    planned : estimator, function or str
        An estimator with `expected_excess_loss` and the parameters of the fit, whose accountant
        determines the relation and the privacy unit. Or a statistic, as in
        `skdp.stats.expected_error`.
    excess_loss : float, default=None
        For an estimator: the maximum of its `expected_excess_loss`.
    error : float or array-like of shape (n_columns,), default=None
        For a statistic: the maximum of `expected_error`, in its units.
    max_samples : int, default=10**6
        Largest possible number of rows.
    **public : object
        Further arguments of `expected_excess_loss` or `expected_error`, such as ``n_features=20``
        or ``epsilon=0.5, bounds=(0, 100)``.

    Returns
    -------
    int
        The smallest number of rows that, with all larger numbers, meets the target.

    Raises
    ------
    ValueError
        If `max_samples` rows do not meet the target, if there is no formula for `planned`, or if a
        parameter is invalid.

    Examples
    --------
    >>> from skdp import DPRidge
    >>> from skdp.planning import required_samples
    >>> model = DPRidge(epsilon=1.0, delta=1e-6, data_norm=3.0, target_bounds=(0, 10))
    >>> n = required_samples(model, excess_loss=0.1, n_features=20)
    >>> bool(model.expected_excess_loss(n, 20) <= 0.1 < model.expected_excess_loss(n - 1, 20))
    True
    >>> required_samples("mean", error=0.5, epsilon=0.1, bounds=(0, 100)) // 10
    100
    """
    max_samples = check_integer(max_samples, "max_samples", low=1)
    ratio_to_target = _make_ratio_to_target(planned, excess_loss, error, public)
    n = _smallest_sufficient(ratio_to_target, max_samples, 1, f"max_samples={max_samples}")
    while True:
        candidates = range(n + 1, min(n + PERIOD, max_samples))
        insufficient = [m for m in candidates if ratio_to_target(m) > 1.0]
        if not insufficient:
            return n
        n = insufficient[-1] + 1


def required_epsilon(
    planned: BaseEstimator | Callable | str,
    *,
    n_samples: int,
    excess_loss: float | None = None,
    error: float | ArrayLike | None = None,
    max_epsilon: float = 10.0,
    **public: object,
) -> float:
    """Return the epsilon at which an expected loss or error meets a target.

    Nothing is charged and no data are read. The result is sufficient, and so is every larger
    epsilon up to `max_epsilon`. Delta is unchanged.

    Parameters
    ----------
    planned : estimator, function or str
        An estimator or statistic as in `required_samples`. The estimator's epsilon is not used.
    n_samples : int
        Number of rows.
    excess_loss : float, default=None
        For an estimator: the maximum of its `expected_excess_loss`.
    error : float or array-like of shape (n_columns,), default=None
        For a statistic: the maximum of `expected_error`, in its units.
    max_epsilon : float, default=10.0
        Largest possible epsilon.
    **public : object
        Further arguments of `expected_excess_loss` or `expected_error`.

    Returns
    -------
    float
        An epsilon at most 0.1 % above the smallest sufficient one, and at least 1e-4.

    Raises
    ------
    ValueError
        If `max_epsilon` does not meet the target, if there is no formula for `planned`, or if a
        parameter is invalid.

    Examples
    --------
    >>> from skdp.planning import required_epsilon
    >>> epsilon = required_epsilon("mean", n_samples=10_000, error=0.05, bounds=(0, 100))
    >>> round(epsilon, 2)
    0.1
    """
    max_epsilon = float(check_positive(max_epsilon, "max_epsilon"))
    ratio_to_target = _make_ratio_to_target(planned, excess_loss, error, public)
    min_epsilon = min(MIN_EPSILON, max_epsilon)
    description = f"max_epsilon={max_epsilon:g}"
    return _smallest_sufficient(
        partial(ratio_to_target, n_samples), max_epsilon, min_epsilon, description
    )


def _smallest_sufficient(ratio_to_target, maximum, minimum, description):
    """Return the smallest number from which on the ratio is at most 1.

    The maximum is tried first. Each next number is the largest smaller one that the bound from
    `POWER` and `JUMP` does not prove sufficient. Once a number is not sufficient, the interval
    between the last two is halved until it is small.

    Parameters
    ----------
    ratio_to_target : callable
        Returns the expected error at a number, divided by the target.
    maximum, minimum : int or float
    description : str
        Name and value of the maximum, for the error message.

    Raises
    ------
    ValueError
        If the maximum does not meet the target.
    """
    number_type = type(maximum)
    sufficient = maximum
    ratio = ratio_to_target(maximum)
    if not ratio <= 1.0:
        raise ValueError(
            f"{description} does not meet the target: the expected value is {ratio:.6g} times as "
            "large"
        )
    while sufficient > minimum:
        factor = min((JUMP * ratio) ** (1.0 / POWER), 1.0 - STEP)
        insufficient = max(number_type(sufficient * factor), minimum)
        ratio = _ratio_or_infinity(ratio_to_target, insufficient)
        if ratio > 1.0:
            break
        sufficient = insufficient
    while ratio > 1.0:
        tolerance = 1
        if number_type is not int:
            tolerance = EPSILON_TOLERANCE * sufficient
        if sufficient - insufficient <= tolerance:
            break
        middle = number_type(0.5 * (sufficient + insufficient))
        if _ratio_or_infinity(ratio_to_target, middle) > 1.0:
            insufficient = middle
        else:
            sufficient = middle
    return sufficient


def _ratio_or_infinity(ratio_to_target, number):
    """Return the ratio to the target, or infinity if a fit would be refused."""
    try:
        return ratio_to_target(number)
    except ValueError:
        return math.inf


def _make_ratio_to_target(planned, excess_loss, error, public):
    """Return a function of n_rows and epsilon: the expected loss or error over its target."""
    is_model = hasattr(planned, "expected_excess_loss")
    if not (is_model or isinstance(planned, str) or isroutine(planned)):
        raise ValueError(
            "planned must be a statistic or an estimator with expected_excess_loss, and "
            f"{type(planned).__name__} has no formula for its expected loss or error"
        )
    if is_model:
        target, other = excess_loss, error
    else:
        target, other = error, excess_loss
    if target is None or other is not None:
        raise ValueError("pass only excess_loss with an estimator, and only error with a statistic")
    name = "excess_loss" if is_model else "error"
    numbers = as_doubles(target)
    if not (numbers.size and np.all((numbers > 0.0) & np.isfinite(numbers))):
        raise ValueError(f"{name} must be positive and finite, got {target!r}")

    def ratio_to_target(n_rows, epsilon=None):
        """Return the largest ratio; above 1, more rows or a larger epsilon is needed."""
        if is_model:
            model = clone(planned)
            if epsilon is not None:
                model.set_params(epsilon=epsilon)
            expected = model.expected_excess_loss(n_rows, **public)
        else:
            name = getattr(planned, "__name__", planned).removeprefix("dp_")
            params = dict(public)
            if epsilon is not None:
                params["epsilon"] = epsilon
            expected = expected_error(name, n_rows, **params)
        return float(np.max(expected / numbers))

    return ratio_to_target
