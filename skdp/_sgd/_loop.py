"""The loop of noisy gradient steps."""

import numpy as np

__all__ = ["run_sgd"]


def run_sgd(plan, table, update, start, alpha, source, after_step=None):
    r"""Return the weights after all steps of a plan.

    The objective is the mean loss of a row plus :math:`\tfrac\alpha2 \|w\|^2` over the
    weights of features; that of the constant feature is not penalised.

    Parameters
    ----------
    plan : SGDPlan
        Charged.
    table : (X, y, loss)
    update : Update
        Of as many steps.
    start : ndarray of shape (..., n_features)
        Weights that do not depend on the rows, or were released.
    alpha : float
    source : RandomSource
        Of the charge.
    after_step : callable, default=None
        Called with the number of steps taken; it sees no iterate.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        If the update is for another number of steps.
    """
    if update.n_steps != plan.n_steps:
        raise ValueError(f"an update of {update.n_steps} steps for a plan of {plan.n_steps}")
    features = plan.model.n_columns
    walk = update.begin(np.array(start, dtype=np.float64))
    means = plan.noisy_means(*table, lambda: walk.point, source)
    for taken, gradient in enumerate(means, start=1):
        gradient[..., :features] += alpha * walk.point[..., :features]
        walk.step(gradient)
        if after_step is not None:
            after_step(taken)
    return walk.result()
