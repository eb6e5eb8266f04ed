"""The inverse of expected losses and errors: what suffices, and all that is larger too."""

import math
from inspect import isroutine

import numpy as np
from sklearn.base import clone

from skdp.stats import expected_error
from skdp.utils._validation import check_integer, check_positive

# Expected losses and errors fall no faster than with this power of the rows, or of epsilon.
POWER = 3.0
SMALLEST_EPSILON = 1e-4
# How close epsilon is to the least one.
ENOUGH = 0.999


def required_samples(planned, *, excess_loss=None, error=None, largest=10**7, **public):
    """Return how many rows bring an expected loss or error down to a target.

    Nothing is charged and no data are read. The answer suffices, and so does every larger number
    up to `largest`: an expected loss may rise with the number of rows where a fit changes its
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
    largest : int, default=10**7
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
        If `largest` rows do not meet the target, if there is no formula for what is planned, or
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
    n = check_integer(largest, "largest", low=1)
    share_of = _share_of_target(planned, excess_loss, error, public)
    share = share_of(n, what=f"{n} rows")
    while share <= 1.0:
        # All numbers from here down to n are covered: n**POWER times what is expected never falls.
        n = min(math.ceil(n * share ** (1.0 / POWER)), n) - 1
        share = share_of(n) if n else math.inf
    return n + 1


def required_epsilon(planned, *, n_samples, excess_loss=None, error=None, largest=10.0, **public):
    """Return the epsilon that brings an expected loss or error down to a target.

    Nothing is charged and no data are read. The answer suffices, and so does every larger epsilon
    up to `largest`; delta stays as it is.

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
    largest : float, default=10.0
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
        If `largest` does not meet the target, if there is no formula for what is planned, or if a
        parameter is not as described.

    Examples
    --------
    >>> from skdp.planning import required_epsilon
    >>> epsilon = required_epsilon("mean", n_samples=10_000, error=0.05, bounds=(0, 100))
    >>> round(epsilon, 2)
    0.1
    """
    sufficient = check_positive(largest, "largest")
    share_of = _share_of_target(planned, excess_loss, error, public)
    share = share_of(n_samples, sufficient, what=f"epsilon={sufficient:g}")
    while sufficient > SMALLEST_EPSILON:
        epsilon = max(sufficient * min(share, ENOUGH) ** (1.0 / POWER), SMALLEST_EPSILON)
        # Counts get better faster than any power of a large epsilon: half of the way back.
        while (share := share_of(n_samples, epsilon)) > 1.0 and epsilon < ENOUGH * sufficient:
            epsilon = math.sqrt(epsilon * sufficient)
        if share > 1.0:
            break
        sufficient = epsilon
    return sufficient


def _share_of_target(planned, excess_loss, error, public):
    """Return a function of rows and epsilon: what is expected, over what was asked for.

    Where a fit would be refused it is infinite; but for the first call, which has a `what` for
    its errors.
    """
    model = hasattr(planned, "expected_excess_loss")
    if not (model or isinstance(planned, str) or isroutine(planned)):
        raise ValueError(f"{type(planned).__name__} has no formula for its expected loss or error")
    target, other = (excess_loss, error) if model else (error, excess_loss)
    if target is None or other is not None:
        raise ValueError("an estimator takes excess_loss, a statistic takes error: give that alone")
    target = np.asarray(target, dtype=np.float64)
    if not np.all((target > 0.0) & np.isfinite(target)):
        raise ValueError(f"the target must be positive, got {target}")

    def expected(n_rows, epsilon):
        given = {} if epsilon is None else {"epsilon": epsilon}
        if model:
            return clone(planned).set_params(**given).expected_excess_loss(n_rows, **public)
        name = getattr(planned, "__name__", planned).removeprefix("dp_")
        return expected_error(name, n_rows, **public | given)

    def share_of(n_rows, epsilon=None, what=None):
        try:
            found = expected(n_rows, epsilon)
        except ValueError:
            if what is not None:
                raise
            return math.inf
        share = float(np.max(found / target))
        if what is not None and not share <= 1.0:
            raise ValueError(f"the target {target} is not met: {what} leave {found} to be expected")
        return share

    return share_of
