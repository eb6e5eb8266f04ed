"""Noisy clipped gradients (runs of `skdp._sgd`) of a loss that is bounded over bounded rows.

The guarantee is that of DP-SGD (``docs/dp_sgd.md``, section 3): it rests on no bound of the loss
or of the rows. These bounds make the settings.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._sgd._clipped_sums import LENGTH_OF_GAINS
from skdp._sgd._defaults import LAPLACE_STEPS_PER_ROOT, Settings
from skdp._sgd._plan import SGDPlan, plan_sgd
from skdp._sgd._updates import Check, Update, run_sgd
from skdp.linear_model._planning import Perturbation, quadratic_excess
from skdp.utils._fit_progress import progress_callback
from skdp.utils._validation import check_magnitude

# How many of the last steps check the weights, of those of a regression.
CHECKED = 0.08
RESPONSE_BLOCK = 256
# Of the largest scale of noise in steps of its grid. In another unit it is up to 2**44 steps more,
# an eighth of the largest Gaussian one.
ROOM_FOR_UNITS = 0.85


@dataclass(frozen=True, kw_only=True)
class ClippedDescent(Perturbation):
    """What a run of noisy clipped gradients will do, and the settings that led to it.

    Parameters
    ----------
    settings : Settings
        With everything decided, for rows whose norm is given, or is found to be 1.
    sgd : SGDPlan
        What is drawn and clipped, its noise and its price.
    update : Update
    check : Check
        Of the weights, by the last steps.
    """

    settings: Settings
    sgd: SGDPlan
    update: Update
    check: Check
    quadratic = 1.0

    @property
    def mechanism(self):
        return self.sgd

    @property
    def problem(self):
        return self.sgd.problem

    # Inverse regularization strength, as in scikit-learn.
    @property
    def C(self):
        return 1.0 / (self.problem.n_rows * self.settings.alpha)

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
        unit = rows.unit
        own = self if unit == 1.0 else plan_run(self.problem, self.settings, unit)
        start = start + np.zeros((*loss.weights_shape, rows.n_features))
        sums = own.sgd.sums(rows.X, y, loss, rows.persons)
        told = progress_callback(own.sgd.n_steps, own.settings.max_iter, own.sgd.spent_after)
        alpha = unit**2 * self.settings.alpha
        tie = unit**2 * self.settings.tie
        moves = {"after_step": told, "tie": tie, "check": own.check}
        return unit * run_sgd(own.sgd, sums, own.update, start / unit, alpha, source, **moves)

    @property
    def expected_excess(self):
        """The summed loss expected above that of weights of the expected norm."""
        problem = self.problem
        plan = self.sgd
        task = problem.task
        n_rows = problem.n_rows
        norm = problem.norm
        # The average over the steps has the noise of one release that is worth all of them, and
        # few steps shrink weights as a penalty does.
        noise = n_rows * plan.noise.deviation / plan.batches.expected_size / math.sqrt(plan.n_steps)
        stopped = (LAPLACE_STEPS_PER_ROOT / plan.n_steps) ** 2 * task.curvature * norm**2
        strength = n_rows * max(self.settings.alpha, stopped)
        return quadratic_excess(problem, strength, task.weights_norm / norm, noise)

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
        n_steps = self.mechanism.n_steps
        averaged = self.update.n_averaged
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
        rate = self.update.eta0
        momentum = self.update.momentum
        kept = 1.0 - rate * (curvature / self.problem.n_rows + self.settings.alpha)
        current = np.full(len(kept), rate)
        previous = 0.0
        for _ in range(self.mechanism.n_steps):
            yield current
            point = current + momentum * (current - previous)
            previous = current
            current = kept * point

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


def plan_run(problem, settings, unit=1.0):
    """Plan a run at a constant rate, averaged over its last half, or raise `ValueError`.

    Parameters
    ----------
    problem : Problem
    settings : Settings
        With everything decided.
    unit : float, default=1.0
        What rows are to be divided by: it is the same run, at the same price, of rows as they are.

    Returns
    -------
    ClippedDescent
    """
    n_steps = settings.n_steps(problem.n_rows)
    clip = unit * check_magnitude(settings.clip, "max_grad_norm")
    check = problem.task.check(problem.norm, problem.n_features, problem.n_rows, settings.alpha)
    check = replace(check, n_steps=round(CHECKED * n_steps * check.n_steps), norm=unit * check.norm)
    n_taken = n_steps - check.n_steps
    eta0 = settings.eta0 / unit**2
    momentum = settings.momentum
    averaged = max(1, n_taken // 2)
    own = replace(problem, constant=unit * problem.constant)
    sgd = plan_sgd(own, clip, settings.sampling, settings.batch_size, n_steps)
    if check.n_steps:
        # The noise of a mean over the steps of the check, in the units of gains.
        noise = sgd.noise.deviation / sgd.batches.expected_size / math.sqrt(check.n_steps)
        check = replace(check, deviation=noise * LENGTH_OF_GAINS[sgd.norm] / clip)
    return ClippedDescent(
        settings=settings,
        sgd=sgd,
        update=Update(settings.optimizer, "constant", eta0, 0.5, momentum, n_taken, averaged),
        check=check,
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
    plan = plan_run(problem, settings)
    # The unit is found after the charge.
    plan.sgd.noise.check_steps(ROOM_FOR_UNITS)
    return plan
