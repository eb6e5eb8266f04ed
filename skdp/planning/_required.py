"""The inverse of expected losses and errors: what suffices, and all that is larger too."""

import math
from functools import partial
from inspect import isroutine

import numpy as np
from sklearn.base import clone

from skdp.stats import expected_error
from skdp.utils._validation import check_integer, check_positive

# What is expected of a smaller number, of rows or epsilon, is at most JUMP times what is expected
# of a larger one, times the ratio of the two to this power. Steps are whole: hence the jumps.
POWER = 4.0
JUMP = 1.25
# Where that leaves open whether smaller numbers suffice they are looked at in steps of this.
STEP = 2.0**-7
# A rank is whole, and so a quantile's error goes up and down from one number of rows to the next.
PERIOD = 16
SMALLEST_EPSILON = 1e-4
# How close epsilon is to the least one.
CLOSE = 1e-3


def required_samples(planned, *, excess_loss=None, error=None, max_samples=10**6, **public):
    """Return how many rows bring an expected loss or error down to a target.

    Nothing is charged and no data are read. The answer suffices, and so does every larger number
    up to `max_samples`: an expected loss may rise with the number of rows where a fit changes its
    mechanism or saves time.

    Parameters
    ----------
    planned : estimator, function or str
        An estimator with `expected_excess_loss`, whose parameters are those of the fit; its
        accountant says which relation and unit are protected. Or a statistic as
        `skdp.stats.expected_error` takes it.
    excess_loss : float, default=None
        For an estimator: what its `expected_excess_loss` is to be at most.
    error : float or array-like of shape (n_columns,), default=None
        For a statistic: what `expected_error` is to be at most, in its units.
    max_samples : int, default=10**6
        The largest number of rows that comes into question.
    **public : object
        What `expected_excess_loss`, or `expected_error`, takes beside the number of rows, such as
        ``n_features=20`` or ``epsilon=0.5, bounds=(0, 100)``.

    Returns
    -------
    int
        The least number of rows from which on the target is met.

    Raises
    ------
    ValueError
        If `max_samples` rows do not meet the target, if there is no formula for what is planned, or
        if a parameter is not as described.

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
    share_of = _share_of_target(planned, excess_loss, error, public)
    n = _least(share_of, max_samples, 1, f"{max_samples} rows")
    while worse := [m for m in range(n + 1, min(n + PERIOD, max_samples)) if share_of(m) > 1.0]:
        n = worse[-1] + 1
    return n


def required_epsilon(
    planned, *, n_samples, excess_loss=None, error=None, max_epsilon=10.0, **public
):
    """Return the epsilon that brings an expected loss or error down to a target.

    Nothing is charged and no data are read. The answer suffices, and so does every larger epsilon
    up to `max_epsilon`; delta stays as it is.

    Parameters
    ----------
    planned : estimator, function or str
        As in `required_samples`; an estimator's own epsilon is not read.
    n_samples : int
        The number of rows.
    excess_loss : float, default=None
        For an estimator: what its `expected_excess_loss` is to be at most.
    error : float or array-like of shape (n_columns,), default=None
        For a statistic: what `expected_error` is to be at most, in its units.
    max_epsilon : float, default=10.0
        The largest epsilon that comes into question.
    **public : object
        What `expected_excess_loss`, or `expected_error`, takes beside the number of rows.

    Returns
    -------
    float
        At most a thousandth above the least one, and at least 1e-4.

    Raises
    ------
    ValueError
        If `max_epsilon` does not meet the target, if there is no formula for what is planned, or
        if a parameter is not as described.

    Examples
    --------
    >>> from skdp.planning import required_epsilon
    >>> epsilon = required_epsilon("mean", n_samples=10_000, error=0.05, bounds=(0, 100))
    >>> round(epsilon, 2)
    0.1
    """
    max_epsilon = float(check_positive(max_epsilon, "max_epsilon"))
    share_of = _share_of_target(planned, excess_loss, error, public)
    smallest = min(SMALLEST_EPSILON, max_epsilon)
    return _least(partial(share_of, n_samples), max_epsilon, smallest, f"epsilon={max_epsilon:g}")


def _least(share_of, largest, smallest, what):
    """Return the least number from which on shares are at most 1, or raise `ValueError`.

    The largest is looked at first, then the next that the rule of `POWER` and `JUMP` leaves open,
    and so on, until one does not suffice; the last gap is halved.
    """
    kind = type(largest)
    sufficient = largest
    share = share_of(largest)
    if not share <= 1.0:
        raise ValueError(f"the target is not met: {what} leave {share:.6g} times as much")
    while sufficient > smallest:
        reach = min((JUMP * share) ** (1.0 / POWER), 1.0 - STEP)
        failed = max(kind(sufficient * reach), smallest)
        if (share := _share_or_refusal(share_of, failed)) > 1.0:
            break
        sufficient = failed
    while share > 1.0 and sufficient - failed > (1 if kind is int else CLOSE * sufficient):
        middle = kind(0.5 * (sufficient + failed))
        if _share_or_refusal(share_of, middle) > 1.0:
            failed = middle
        else:
            sufficient = middle
    return sufficient


def _share_or_refusal(share_of, number):
    """Return the share; it is infinite where a fit would be refused."""
    try:
        return share_of(number)
    except ValueError:
        return math.inf


def _share_of_target(planned, excess_loss, error, public):
    """Return a function of rows and epsilon: what is expected, over what was asked for."""
    model = hasattr(planned, "expected_excess_loss")
    if not (model or isinstance(planned, str) or isroutine(planned)):
        raise ValueError(f"{type(planned).__name__} has no formula for its expected loss or error")
    target, other = (excess_loss, error) if model else (error, excess_loss)
    if target is None or other is not None:
        raise ValueError("an estimator takes excess_loss, a statistic takes error: give that alone")
    target = np.asarray(target, dtype=np.float64)
    if not (target.size and np.all((target > 0.0) & np.isfinite(target))):
        raise ValueError(f"the target must be positive, got {target}")

    def share_of(n_rows, epsilon=None):
        given = {} if epsilon is None else {"epsilon": epsilon}
        if model:
            found = clone(planned).set_params(**given).expected_excess_loss(n_rows, **public)
        else:
            name = getattr(planned, "__name__", planned).removeprefix("dp_")
            found = expected_error(name, n_rows, **public | given)
        return float(np.max(found / target))

    return share_of
