"""Regression by noisy clipped gradients: runs of `skdp._sgd` that are made for bounded losses.

The guarantee is that of DP-SGD (``docs/dp_sgd.md``, section 3): it rests on no bound of the loss
or of the rows. These bounds make the settings.
"""

import math
from dataclasses import dataclass, replace
from operator import attrgetter

from skdp._sgd._defaults import Problem, Settings, automatic_settings
from skdp._sgd._plan import plan_sgd
from skdp.linear_model._dp_sgd import SGDFit, plan_run
from skdp.linear_model._planning import Perturbation, quadratic_excess
from skdp.mechanisms._plan import vector_noise
from skdp.utils._validation import check_within

# The clip over the bound on a gradient, which grows where there is less noise than KNEE; at most
# it cuts nothing. Chosen with made tables and the training rows of California housing in view.
LEAST_CLIP, LARGEST_CLIP, KNEE = 0.05, 1.01, 0.03
LARGEST_SIGNAL = 100


@dataclass(frozen=True)
class ClippedDescent(Perturbation):
    """What a fit by clipped gradients will do.

    Parameters
    ----------
    fit : SGDFit
        For rows whose norm is given, or is found to be 1.
    C : float
        Inverse regularisation strength, as in scikit-learn.
    excess : float
        The summed loss expected above that of weights of the expected norm.
    """

    fit: SGDFit
    C: float
    excess: float

    mechanism = property(attrgetter("fit.mechanism"))
    sampler = property(attrgetter("fit.sampler"))

    def run(self, loss, rows, y, source):
        """Return the weights of rows in their unit; the rows are read as they are.

        Parameters
        ----------
        loss : loss
            That of the plan.
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource

        Returns
        -------
        ndarray
        """
        return rows.unit * _in_units(self.fit, rows.unit).weights(rows.X, y, source)[0]


def _in_units(fit, unit):
    """Return the same run, at the same price, for rows that are to be divided by a unit."""
    if unit == 1.0:
        return fit
    model = replace(fit.model, clip=unit * fit.model.clip, constant=unit * fit.model.constant)
    plan, of = fit.mechanism, fit.settings
    return replace(
        fit,
        mechanism=plan_sgd(of.sampling, of.batch_size, plan.n_steps, model, plan.guarantee),
        update=replace(fit.update, eta0=fit.update.eta0 / unit**2),
        alpha=unit**2 * fit.alpha,
    )


def plan_clipped_descent(rows, shape, expected, least_alpha):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    rows : RowPlan
        With the guarantee that is left for the fit.
    shape : TableShape
    expected : Task
        Of a bounded loss, with the bound on the slope, of which the clip is a share, and the
        signal of one column; many have more, by the root of their number up to a hundred.
    least_alpha : float
        The strength of the penalty on the mean loss, which is raised to the one that balances
        regularisation against noise.

    Returns
    -------
    ClippedDescent
    """
    given = {"shape": shape, "norm": rows.norm, "guarantee": rows.left, "constant": rows.constant}
    signal = expected.signal * math.sqrt(min(rows.n_features(shape.n_columns), LARGEST_SIGNAL))
    task = replace(expected, slope=expected.slope * _share(rows, shape), signal=signal)
    problem = Problem(task=task, **given)
    settings = automatic_settings(problem, Settings("nesterov"))
    if least_alpha > settings.alpha:
        settings = automatic_settings(problem, Settings("nesterov", alpha=least_alpha))
    if rows.search is not None:
        # The engine takes it times any norm that can be found, 2**-100 to 2**100.
        check_within(settings.clip, "the clip that target_bounds lead to", 1e-19, 1e19)
    fit = plan_run(problem, settings, rows.constant)
    n_rows, alpha = shape.n_rows, fit.alpha
    plan, of_rows = fit.mechanism, rows.problem(task.loss, shape)
    # The average over the steps has the noise of one release that is worth all of them.
    noise = n_rows * plan.noise.deviation / plan.batches.expected_size / math.sqrt(plan.n_steps)
    weights_norm = task.weights_norm / rows.norm
    excess = quadratic_excess(of_rows, n_rows * alpha, weights_norm, noise)
    return ClippedDescent(fit, 1.0 / (n_rows * alpha), excess)


def _share(rows, shape):
    """Return the clip over the bound on a gradient."""
    size = rows.n_features(shape.n_columns)
    noise = vector_noise(rows.left, rows.left.neighbours.rows_moved).deviation(size)
    noise *= math.sqrt(size) / shape.n_rows
    return min(LEAST_CLIP * max(1.0, math.sqrt(KNEE / noise)), LARGEST_CLIP)
