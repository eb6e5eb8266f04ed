"""Runs of noisy clipped gradients (`skdp._optim`) as a solver of linear models.

The guarantee is that of DP-SGD (``docs/theory/dp_sgd.md``, section 3). It requires no bound on the
loss or on the rows; bounds determine only the settings.
"""

import math
import sys
from dataclasses import dataclass, replace

import numpy as np

from skdp._fitting._fit_progress import progress_callback
from skdp._optim._clipped_sums import MAX_DECREASE_NORM
from skdp._optim._default_settings import (
    LAPLACE_STEPS_PER_ROOT,
    Settings,
    automatic_settings,
    heavy_ball_rate,
    necessary_steps,
)
from skdp._optim._noisy_gradients import ShrinkageRule, Update, run_sgd
from skdp._optim._sgd_plan import SGDRun, plan_sgd
from skdp.linear_model._planning import PrivateSolver, quadratic_excess
from skdp.utils._validation import check_magnitude

# Fraction of the steps that release decreases in loss for the shrinkage rule. Tuned on regressions.
SHRINKAGE_STEPS_FRACTION = 0.08
# Smallest factor of the expected scores of a rare class; see `ClippedDescent.for_frequency`.
MIN_FREQUENCY_FACTOR = 0.02
# Number of curvatures for which responses to noise are computed at once.
RESPONSE_BLOCK = 256
# Largest scale of noise in steps of its grid, relative to the limit of the sampler. The rest is a
# margin for conversions to another unit, which add at most 2**44 steps, an eighth of the largest
# Gaussian scale.
SCALE_FRACTION = 0.85
# Name of the clip in messages: these models have no parameter for it.
CLIP_NAME = "the clip of gradients, which follows from data_norm and the range of the target,"
# Largest regularization strength in the data's units.
MAX_STRENGTH = sys.float_info.max


@dataclass(frozen=True, kw_only=True)
class ClippedDescent(PrivateSolver):
    """Plan of a run of noisy clipped gradients, and the settings from which it was made.

    Parameters
    ----------
    settings : Settings
        Complete settings, for rows with a declared norm or rows divided by a released norm.
    sgd : SGDRun
        Sampling, clipping, noise and event.
    update : Update
    shrinkage : ShrinkageRule
        Shrinkage of the weights by the last steps.
    rate_factor : float, default=1.0
        Factor of the step size for whitened rows, which follows from the released second moment.
        It is below 1 if `for_frequency` has shortened the steps.
    """

    settings: Settings
    sgd: SGDRun
    update: Update
    shrinkage: ShrinkageRule
    rate_factor: float = 1.0
    quadratic = 1.0
    choice = "gradient"

    @property
    def mechanism(self):
        """The mechanism that is charged."""
        return self.sgd

    @property
    def problem(self):
        """The public sizes and bounds."""
        return self.sgd.problem

    @property
    def C(self):
        """Inverse regularization strength, as in scikit-learn."""
        return 1.0 / (self.problem.n_rows * self.settings.alpha)

    def for_frequency(self, frequency):
        r"""Return the same run with the penalty for a frequency p of the second of two classes.

        The curvature of the logistic loss at the baseline is :math:`p (1 - p)`. Where a hinge loss
        is rounded, it is a square, and the scores that minimize it follow the probability of the
        rarer class, as in least squares. The weights are then proportional to the covariance of
        columns and class: :math:`p (1 - p)` times the difference between the mean rows of the
        classes. So the signal, the variance of scores times the curvature, and of hinge losses also
        the expected norm of the weights, depend on :math:`f = 4 p (1 - p)`, which is 1 for classes
        of the same size. The number of steps, the noise and the event are unchanged. The derivation
        is in ``docs/theory/dp_sgd.md``.

        Parameters
        ----------
        frequency : float
            Released, in (0, 1).

        Returns
        -------
        ClippedDescent
        """
        problem = self.problem
        factor = max(4.0 * frequency * (1.0 - frequency), MIN_FREQUENCY_FACTOR)
        loss_spec = problem.loss_spec
        exponent = loss_spec.score_exponent
        rare_spec = replace(
            loss_spec,
            weights_norm=factor**exponent * loss_spec.weights_norm,
            signal=factor ** (exponent + 1) * loss_spec.signal,
        )
        rare_problem = replace(problem, loss_spec=rare_spec)
        requested = Settings(self.settings.optimizer, clip=self.settings.clip)
        rare = automatic_settings(rare_problem, requested)
        if rare.alpha <= self.settings.alpha:
            return self
        # The planned number of steps, which the event depends on, is larger than necessary. Steps
        # of accelerated descent that are shorter by this ratio squared follow the same path, so the
        # iterates have the noise of the necessary number of steps.
        n_steps = self.sgd.n_steps
        ratio = min(1.0, necessary_steps(rare_problem, requested) / n_steps)
        root = (1.0 + rare.momentum) / (1.0 - rare.momentum) / ratio
        settings = replace(
            self.settings,
            alpha=rare.alpha,
            eta0=rare.eta0 * ratio**2,
            momentum=(root - 1.0) / (root + 1.0),
            intercept_l2_reg=rare.intercept_l2_reg,
        )
        scaled = plan_run(problem, settings)
        update = replace(self.update, eta0=settings.eta0, momentum=settings.momentum)
        return replace(
            self, settings=settings, update=update, shrinkage=scaled.shrinkage, rate_factor=ratio**2
        )

    def run(self, loss, rows, y, source, start=0.0):
        """Return the weights for rows divided by `rows.unit`, a released norm or 1.

        The rows themselves are read in the data's units, and the run is scaled accordingly: its
        weights are those of the result divided by the unit.

        Parameters
        ----------
        loss : ClippableLoss
            Loss of the plan.
        rows : BoundedRows
        y : array of shape (n_rows,)
        source : RandomSource
        start : ndarray of shape (*loss.weights_shape, n_features), default=0.0
            Released weights at which the run starts, in the unit of the result: the baseline, or
            those of an earlier call.

        Returns
        -------
        ndarray of shape (*loss.weights_shape, n_features)
        """
        unit = rows.unit
        scaled = self
        if unit != 1.0:
            scaled = plan_run(self.problem, self.settings, unit)
            update = replace(self.update, eta0=scaled.update.eta0)
            scaled = replace(scaled, update=update)
        if rows.whitening is not None:
            eta0 = self.rate_factor * self._whitened_rate(rows) / unit**2
            scaled = replace(scaled, update=replace(scaled.update, eta0=eta0))
        start = start + np.zeros((*loss.weights_shape, rows.n_features))
        sums = scaled.sgd.sums(
            rows.X,
            y,
            loss,
            rows.persons,
            center=rows.center,
            column_factors=rows.column_factors,
            whitening=rows.whitening,
        )
        report_progress = progress_callback(
            scaled.sgd.n_steps, scaled.settings.max_iter, scaled.sgd.spent_after
        )

        def strength_in_data_units(strength):
            """Return the strength whose penalty on weights / unit is the same as on the weights."""
            # An infinite strength times a weight of 0 would be NaN.
            return min(unit**2 * strength, MAX_STRENGTH)

        l2_reg_matrix = None
        if rows.whitening is not None and self.settings.alpha_of_columns > 0.0:
            transform = rows.whitening.transform
            alpha_of_columns = strength_in_data_units(self.settings.alpha_of_columns)
            l2_reg_matrix = alpha_of_columns * (transform.T @ transform)
        weights = run_sgd(
            scaled.sgd,
            sums,
            scaled.update,
            start / unit,
            strength_in_data_units(self.settings.alpha),
            source,
            after_step=report_progress,
            intercept_l2_reg=strength_in_data_units(self.settings.intercept_l2_reg),
            shrinkage=scaled.shrinkage,
            l2_reg_matrix=l2_reg_matrix,
        )
        return unit * weights

    def _whitened_rate(self, rows):
        """Return the step size for the released bound on the second moment of whitened rows."""
        second_moment = rows.data_norm**2 * rows.whitening.second_moment
        second_moment = max(second_moment, self.problem.constant**2)
        smoothness = self.problem.loss_spec.curvature * second_moment + self.settings.alpha
        if self.update.optimizer == "sgd":
            return heavy_ball_rate(smoothness, self.update.momentum)
        return 1.0 / smoothness

    @property
    def expected_excess(self):
        """Expected loss, summed over rows, minus the loss of weights of the expected norm."""
        problem = self.problem
        plan = self.sgd
        loss_spec = problem.loss_spec
        n_rows = problem.n_rows
        norm = problem.norm
        # The mean over the steps is as noisy as one release that costs as much as all steps
        # together.
        mean_noise = n_rows * plan.noise.deviation / plan.batches.expected_size
        mean_noise /= math.sqrt(plan.n_steps)
        # With few steps, weights are shrunk as if by a penalty.
        early_stopping = (LAPLACE_STEPS_PER_ROOT / plan.n_steps) ** 2 * problem.curvature
        l2_reg_strength = n_rows * max(self.settings.alpha, early_stopping)
        return quadratic_excess(problem, l2_reg_strength, loss_spec.weights_norm / norm, mean_noise)

    def noise_variance(self, curvature):
        """Return the variance of the noise in the weights along directions with given curvatures.

        The variance, which sums the effects of each step's noise on all later iterates, is exact
        for a quadratic loss.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian.

        Returns
        -------
        ndarray
        """
        edges = range(RESPONSE_BLOCK, len(curvature), RESPONSE_BLOCK)
        blocks = np.split(curvature, edges)
        return np.concatenate([self._noise_variance(block) for block in blocks])

    def _noise_variance(self, curvature):
        """Return the variance of the noise in the published weights for a block of curvatures.

        The published weights are the mean of the last `n_averaged` iterates. A step's noise changes
        this mean by the sum of its effects on these iterates, divided by their number.
        """
        n_steps = self.mechanism.n_steps
        n_averaged = self.update.n_averaged
        cumulative = np.zeros((n_steps + 1, len(curvature)))
        for step, response in enumerate(self._responses(curvature)):
            cumulative[step + 1] = cumulative[step] + response
        average_response = cumulative[:0:-1].copy()
        n_skipped = n_steps - n_averaged
        average_response[:n_skipped] -= cumulative[n_skipped:0:-1]
        return np.sum((average_response * (self._gradient_noise_std / n_averaged)) ** 2, axis=0)

    @property
    def _gradient_noise_std(self):
        """Standard deviation of the noise on a mean gradient."""
        return self.mechanism.noise.deviation / self.mechanism.batches.expected_size

    def _responses(self, curvature):
        """Yield the effect of unit noise in a step on the next and all later iterates."""
        rate = self.update.eta0
        momentum = self.update.momentum
        contraction = 1.0 - rate * (curvature / self.problem.n_rows + self.settings.alpha)
        current = np.full(len(contraction), rate)
        previous = 0.0
        for _ in range(self.mechanism.n_steps):
            yield current
            lookahead = current + momentum * (current - previous)
            previous = current
            current = contraction * lookahead

    def averaging_bias(self, curvature, norm):
        r"""Return the approximate relative bias of the mean of the iterates.

        Scores of the iterates with variance :math:`s^2` blur the loss. Blurred by a Gaussian, the
        derivative of the logistic loss is about its value at scores divided by
        :math:`\sqrt{1 + \pi s^2 / 8}` (Spiegelhalter and Lauritzen 1990). The iterates at which it
        vanishes are larger by that factor.

        Parameters
        ----------
        curvature : ndarray
            Eigenvalues of the summed loss's Hessian, at least 0.
        norm : float
            Upper bound on a row's norm; shorter rows have a smaller s².

        Returns
        -------
        float
        """
        total = np.sum(curvature)
        if total == 0.0:
            return 0.0
        squared_responses = sum(response**2 for response in self._responses(curvature))
        weight_variance = squared_responses * self._gradient_noise_std**2
        score_variance = norm**2 * float(curvature @ weight_variance) / total
        return math.sqrt(1.0 + math.pi * score_variance / 8.0) - 1.0


def plan_run(problem, settings, unit=1.0):
    """Plan a run with a constant step size, averaged over its last steps: half of them, mostly.

    Parameters
    ----------
    problem : SGDProblem
    settings : Settings
        Complete settings.
    unit : float, default=1.0
        Number by which rows are divided in `problem` and `settings`. The plan describes the same
        run, at the same cost, for undivided rows.

    Returns
    -------
    ClippedDescent

    Raises
    ------
    ValueError
        If the clip is too large or too small, or if epsilon is so small that the noise cannot be
        sampled.
    """
    n_steps = settings.n_steps(problem.n_rows)
    clip = unit * check_magnitude(settings.clip, CLIP_NAME)
    shrinkage = problem.loss_spec.shrinkage_rule(
        problem.norm, problem.n_features, problem.n_rows, settings.alpha
    )
    n_shrinkage_steps = round(SHRINKAGE_STEPS_FRACTION * n_steps * shrinkage.n_steps)
    shrinkage = replace(shrinkage, n_steps=n_shrinkage_steps, norm=unit * shrinkage.norm)
    n_descent_steps = n_steps - n_shrinkage_steps
    averaged_fraction = 0.5
    if problem.is_whitened:
        averaged_fraction = problem.loss_spec.whitened_average
    update = Update(
        optimizer=settings.optimizer,
        learning_rate="constant",
        eta0=settings.eta0 / unit**2,
        power_t=0.5,
        momentum=settings.momentum,
        n_steps=n_descent_steps,
        n_averaged=max(1, int(averaged_fraction * n_descent_steps)),
    )
    scaled_problem = replace(problem, constant=unit * problem.constant)
    sgd = plan_sgd(scaled_problem, clip, settings.sampling, settings.batch_size, n_steps)
    if shrinkage.n_steps:
        # Noise of the mean over the steps of the shrinkage rule, in the units of loss decreases.
        noise_std = sgd.noise.deviation / sgd.batches.expected_size / math.sqrt(shrinkage.n_steps)
        noise_std = noise_std * MAX_DECREASE_NORM[sgd.norm] / clip
        shrinkage = replace(shrinkage, noise_std=noise_std)
    return ClippedDescent(settings=settings, sgd=sgd, update=update, shrinkage=shrinkage)


def plan_clipped_descent(problem, settings):
    """Plan a fit from public quantities alone.

    Parameters
    ----------
    problem : SGDProblem
        Sizes and bounds of a run, see `RowsFit.sgd_problem`.
    settings : Settings
        Complete settings.

    Returns
    -------
    ClippedDescent

    Raises
    ------
    ValueError
        As in `plan_run`, or if it might be impossible to sample the noise in the unit released
        later.
    """
    plan = plan_run(problem, settings)
    # The unit of the rows is released after the charge.
    plan.sgd.noise.check_scale(SCALE_FRACTION)
    return plan
