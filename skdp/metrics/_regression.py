"""Private metrics of regressors, with the names and meanings of scikit-learn's."""

from __future__ import annotations

from numpy.typing import ArrayLike

from skdp._data._dask import in_one_run
from skdp.ledger import PrivacyAccountant
from skdp.metrics._read import read_numbers
from skdp.metrics._releases import ErrorSums, LossSums, release_metric
from skdp.metrics._sums import regression_values
from skdp.metrics._values import NoisyScore
from skdp.utils._validation import check_target_bounds


def _release_error(
    name,
    metric,
    y_true,
    y_pred,
    power,
    target_bounds,
    *,
    epsilon,
    delta,
    groups,
    accountant,
    random_state,
):
    """Return the noisy mean of the absolute errors (`power` 1) or of their squares (`power` 2).

    `name` is the public function, and `metric` the key of the released metric. The other parameters
    are those of `dp_mean_absolute_error` and `dp_mean_squared_error`.
    """
    low, high = check_target_bounds(target_bounds)
    y_true = read_numbers(y_true, "y_true")
    y_pred = read_numbers(y_pred, "y_pred", len(y_true))
    bound = (high - low) ** power

    def make_statistics(n_units, guarantee):
        """Return the `LossSums` of the metric for a number of rows, or persons."""
        return LossSums(
            n_units=n_units, guarantee=guarantee, name_of_metric=metric, loss=loss, bound=bound
        )

    def loss(y_true, y_pred):
        # The squared error in units of the bounds is column 0, the absolute one column 1.
        return bound * regression_values(y_true, y_pred, (low, high))[:, 2 - power]

    return release_metric(
        name,
        len(y_true),
        make_statistics,
        (y_true, y_pred),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_r2_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    target_bounds: tuple[float, float],
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the coefficient of determination with differential privacy.

    The coefficient is 1 minus the sum of squared errors divided by the sum of squared distances of
    the targets from their mean. Both come from one joint release of the sums of errors, of targets
    about the middle of the bounds and of their squares.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets. Their number is public.
    y_pred : array-like of shape (n_samples,)
        Predictions. Each must be computed from its row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    target_bounds : tuple of (low, high)
        Public range of the targets. Targets and predictions are clipped to it, and errors are not
        clipped any further.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals. Its range has no lower bound.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_r2_score
    >>> y = np.linspace(0.0, 10.0, 10_000)
    >>> predicted = y + np.where(np.arange(10_000) % 2 == 0, 1.0, -1.0)
    >>> score = dp_r2_score(y, predicted, epsilon=1.0, target_bounds=(0, 10))
    >>> bool(abs(score - 0.88) < 0.05)
    True
    """
    bounds = check_target_bounds(target_bounds)
    targets = read_numbers(y_true, "y_true")
    predictions = read_numbers(y_pred, "y_pred", len(targets))

    def make_statistics(n_units, guarantee):
        return ErrorSums(n_units=n_units, guarantee=guarantee, target_bounds=bounds)

    sums = release_metric(
        "dp_r2_score",
        len(targets),
        make_statistics,
        (targets, predictions),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return sums.r2()


@in_one_run
def dp_mean_absolute_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    target_bounds: tuple[float, float],
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the mean absolute error with differential privacy.

    The sum of the absolute errors is released.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets. Their number is public.
    y_pred : array-like of shape (n_samples,)
        Predictions. Each must be computed from its row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    target_bounds : tuple of (low, high)
        Public range of the targets. Targets and predictions are clipped to it, and errors are not
        clipped any further.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_mean_absolute_error
    >>> y = np.linspace(0.0, 10.0, 10_000)
    >>> predicted = y + np.where(np.arange(10_000) % 2 == 0, 1.0, -1.0)
    >>> score = dp_mean_absolute_error(y, predicted, epsilon=1.0, target_bounds=(0, 10))
    >>> bool(abs(score - 1.0) < 0.1)
    True
    """
    return _release_error(
        "dp_mean_absolute_error",
        "mean_absolute_error",
        y_true,
        y_pred,
        1,
        target_bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_mean_squared_error(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    target_bounds: tuple[float, float],
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the mean squared error with differential privacy.

    The sum of the squared errors is released.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Targets. Their number is public.
    y_pred : array-like of shape (n_samples,)
        Predictions. Each must be computed from its row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    target_bounds : tuple of (low, high)
        Public range of the targets. Targets and predictions are clipped to it, and errors are not
        clipped any further.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_mean_squared_error
    >>> y = np.linspace(0.0, 10.0, 10_000)
    >>> predicted = y + np.where(np.arange(10_000) % 2 == 0, 1.0, -1.0)
    >>> score = dp_mean_squared_error(y, predicted, epsilon=1.0, target_bounds=(0, 10))
    >>> bool(abs(score - 1.0) < 0.1)
    True
    """
    return _release_error(
        "dp_mean_squared_error",
        "mean_squared_error",
        y_true,
        y_pred,
        2,
        target_bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
