r"""The Poisson loss for amounts and counts: residuals in units of the released mean, and constants.

The mean of a row's target is :math:`m e^s`, where m is the released mean of all targets and s the
score. In units of m, half the deviance is :math:`e^s - t s` up to a constant, where t is the target
divided by m. The residual :math:`e^s - t` has mean 0 at the optimum, and the curvature :math:`e^s`
has mean 1. So noise, penalties and steps are those of the squared loss, which has curvature 1.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skdp._optim._loss import ClippableLoss
from skdp._optim._regression_losses import PoissonLoss
from skdp.gam._tasks import NumberTask

# Smallest mean of targets, in units of half their range. A smaller released mean is mostly noise.
MIN_MEAN = 2.0**-12
# Standard deviation that noise may cause in a score if columns are not related to the target, in
# standard deviations of the logarithm of targets.
SCORE_STDS = 2.0


@dataclass(frozen=True, kw_only=True)
class PoissonTask(NumberTask):
    """The Poisson loss of non-negative targets with a log link, with clipped residuals.

    Parameters
    ----------
    offset : float, default=1.0
        Number added to a scaled target in [-1, 1] to get an amount, in units of half the target
        range: the middle of the range over half its width, at least 1.
    mean : float, default=1.0
        The released mean amount, in units of half the target range. Residuals and their clip are in
        units of the mean. The attributes are as in `BinaryTask`.
    """

    offset: float = 1.0
    mean: float = 1.0

    loss: ClassVar[ClippableLoss] = PoissonLoss()
    has_log_link = True
    score_std: float = 2.0

    @property
    def clip_unit(self):
        """Half the target range in units of residuals."""
        return 1.0 / self.mean

    @property
    def max_target(self):
        """Largest target, in units of the mean."""
        return (self.offset + 1.0) / self.mean

    @property
    def max_mean_loss(self):
        """Bound on the mean decrease in loss from scores of 0, if the mean is exact.

        The decrease is at most the mean of t ln(t) for targets t with mean 1.
        """
        return 1.0 + math.log(max(self.max_target, 1.0))

    def at_baseline(self, means, variance):
        """Return the task, the baseline scores and the variance in units of the released mean."""
        mean = max(self.offset + float(means[0]), MIN_MEAN)
        relative_variance = variance / mean**2
        # The variance of the logarithm of a log-normal variable with the same mean and variance.
        score_std = SCORE_STDS * math.sqrt(math.log1p(relative_variance))
        task = replace(self, mean=mean, score_std=score_std)
        return task, np.array([math.log(mean)]), relative_variance

    def residuals(self, scores, targets):
        """Return the clipped residuals of rows; see `BinaryTask.residuals`."""
        log_means = scores[:, 0] - math.log(self.mean)
        amounts = (targets + self.offset) * self.clip_unit
        # Beyond this score, the residual of every target is clipped.
        log_means = np.minimum(log_means, math.log(self.max_target + self.clip) + 1.0)
        residuals = self.loss.residual(log_means, amounts)
        return np.clip(residuals, -self.clip, self.clip)[:, None]

    def curvatures(self, scores, spread):
        """Return the mean curvature of rows with these scores; see `standard_errors`."""
        return np.exp(scores - math.log(self.mean) + 0.5 * spread**2)
