"""Noisy clipped gradients (runs of `skdp._sgd`) of a loss that is bounded over bounded rows.

The guarantee is that of DP-SGD (``docs/dp_sgd.md``, section 3): it rests on no bound of the loss
or of the rows. These bounds make the settings.
"""

import math
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from skdp._sgd._plan import plan_sgd
from skdp.linear_model._dp_sgd import SGDFit, plan_run
from skdp.linear_model._planning import Perturbation

RESPONSE_BLOCK = 256
# Of the largest scale of noise in steps of its grid. In another unit it is up to 2**44 steps more,
# an eighth of the largest Gaussian one.
ROOM_FOR_UNITS = 0.85


@dataclass(frozen=True)
class ClippedDescent(Perturbation):
    """What a fit by clipped gradients will do.

    Parameters
    ----------
    fit : SGDFit
        For rows whose norm is given, or is found to be 1.
    C : float
        Inverse regularisation strength, as in scikit-learn.
    """

    fit: SGDFit
    C: float
    quadratic = 1.0

    mechanism = property(attrgetter("fit.sgd"))
    sampler = property(attrgetter("fit.sampler"))

    def run(self, loss, rows, y, source, start=0.0):
        """Return the weights of rows in their unit; the rows are read as they are.

        Parameters
        ----------
        loss : loss
            That of the plan.
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource
        start : ndarray of shape (*loss.weights_shape, n_features), default=0.0

        Returns
        -------
        ndarray of shape (*loss.weights_shape, n_features)
        """
        fit = _in_units(self.fit, rows.unit)
        start = start + np.zeros((*loss.weights_shape, rows.n_features))
        weights = fit.weights(rows.X, y, source, start / rows.unit, persons=rows.persons)
        return rows.unit * weights.reshape(start.shape)

    def noise_variance(self, curvature):
        """Return the variance of the noise in the weights, where the summed loss has a curvature.

        It is exact for a quadratic loss: how far the noise of each step moves each later iterate.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian.

        Returns
        -------
        ndarray
        """
        edges = range(RESPONSE_BLOCK, len(curvature), RESPONSE_BLOCK)
        return np.concatenate([self._noise_variance(one) for one in np.split(curvature, edges)])

    def _noise_variance(self, curvature):
        n_steps, averaged = self.mechanism.n_steps, self.fit.update.n_averaged
        summed = np.zeros((n_steps + 1, len(curvature)))
        for step, response in enumerate(self._responses(curvature)):
            summed[step + 1] = summed[step] + response
        of_average = summed[:0:-1].copy()
        first = n_steps - averaged
        of_average[:first] -= summed[first:0:-1]
        return np.sum((of_average * (self._deviation / averaged)) ** 2, axis=0)

    @property
    def _deviation(self):
        """The standard deviation of the noise on a mean gradient."""
        return self.mechanism.noise.deviation / self.mechanism.batches.expected_size

    def _responses(self, curvature):
        """Yield what a step's noise of size 1 adds to the iterates, from the next on."""
        rate, momentum = self.fit.update.eta0, self.fit.update.momentum
        kept = 1.0 - rate * (curvature / self.mechanism.model.n_rows + self.fit.settings.alpha)
        current, previous = np.full(len(kept), rate), 0.0
        for _ in range(self.mechanism.n_steps):
            yield current
            point = current + momentum * (current - previous)
            previous, current = current, kept * point

    def lengthening(self, curvature, norm):
        r"""Return by which share noise in the iterates lengthens their average, about.

        Iterates whose scores vary by :math:`s^2` see the loss blurred. A logistic slope blurred by
        a Gaussian is about that of scores divided by :math:`\sqrt{1 + \pi s^2 / 8}` (Spiegelhalter
        and Lauritzen 1990), and so the iterates are longer by that factor where it vanishes.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian, at least 0.
        norm : float
            The bound on a row's norm; shorter rows have a smaller s².

        Returns
        -------
        float
        """
        total = np.sum(curvature)
        if total == 0.0:
            return 0.0
        spread = sum(response**2 for response in self._responses(curvature)) * self._deviation**2
        variance = norm**2 * float(curvature @ spread) / total
        return math.sqrt(1.0 + math.pi * variance / 8.0) - 1.0


def _in_units(fit, unit):
    """Return the same run, at the same price, for rows that are to be divided by a unit."""
    if unit == 1.0:
        return fit
    model = replace(fit.model, clip=unit * fit.model.clip, constant=unit * fit.model.constant)
    plan, of = fit.sgd, fit.settings
    return replace(
        fit,
        sgd=plan_sgd(of.sampling, of.batch_size, plan.n_steps, model, plan.guarantee),
        update=replace(fit.update, eta0=fit.update.eta0 / unit**2),
        settings=replace(of, alpha=unit**2 * of.alpha, tie=unit**2 * of.tie),
        check=replace(fit.check, norm=unit * fit.check.norm),
    )


def plan_clipped_descent(problem, settings):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : Problem
        Of a run, see `RowPlan.sgd_problem`.
    settings : Settings
        With everything decided.

    Returns
    -------
    ClippedDescent
    """
    fit = plan_run(problem, settings)
    # The unit is found after the charge.
    fit.sgd.noise.check_steps(ROOM_FOR_UNITS)
    return ClippedDescent(fit, 1.0 / (problem.shape.n_rows * settings.alpha))
