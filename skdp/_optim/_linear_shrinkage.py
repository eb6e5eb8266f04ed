r"""Shrinkage of a linear model's weights, with an estimate of the part explained by chance.

Weights that were fitted to the same rows have a smaller loss there, even if the features are not
related to the target. The expected decrease is the variance of residuals times the effective
degrees of freedom (Efron 2004), divided by the number of rows. The degrees of freedom are
:math:`\sum_j h_j / (h_j + \alpha)` for the eigenvalues :math:`h_j` of the loss's mean curvature
under a penalty :math:`\alpha`. No eigenvalue is released.

Only the bound R on a row's norm is public: the eigenvalues of the second moment of p features sum
to at most :math:`R^2`. Real rows are shorter and lie in few directions. The curvature along the
released weights is computed from the released decreases themselves. Between the start and weights
at a displacement w, residuals change by the loss's curvature times the changes s of the scores, and
the mean of s² is :math:`w^\top H w`. Divided by :math:`R^2 \|w\|^2 / p`, its value for rows of norm
R that are equally distributed over all directions, it is the *relative curvature* a. It is assumed
that there are :math:`\min(p, p / a)` directions of curvature :math:`a R^2 / p` each, so their sum
is at most :math:`R^2`. It is small for short rows and large for rows in few directions.

Noise in the released numbers leaves an interval for a. So does the curvature of a logistic loss,
which is only known to lie between a typical value and a bound. The value in the interval that is
nearest to 1 is used, so a is 1 if nothing is known.

All of this is post-processing of released numbers. The derivation is in ``docs/theory/dp_sgd.md``.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skdp._optim._noisy_gradients import DISPLACEMENT_CLIP, ShrinkageRule

# Grid of standard deviations, in units of the clip, on which means of clipped normal numbers are
# computed.
STDS = np.geomspace(1e-3, 1e3, 601)
# Smallest relative curvature that can be distinguished from noise.
MIN_RELATIVE_CURVATURE = 0.02
# Smallest fraction of residuals that are assumed to be unclipped.
MIN_UNCLIPPED = 0.05
# Half width of the interval for the relative curvature, in standard deviations of the noise.
N_NOISE_STDS = 3.0


def _probability_within(ratio):
    """Return the probability that a standard normal number is within plus or minus a ratio."""
    return 2.0 * ndtr(ratio) - 1.0


def _clipped_square(std):
    """Return the mean square of a normal number with this standard deviation, clipped at 1."""
    ratio = 1.0 / std
    density = np.exp(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
    unclipped = _probability_within(ratio)
    return std**2 * (unclipped - 2.0 * ratio * density) + 1.0 - unclipped


# By Stein's lemma, E[s clip(s)] of a normal number s clipped at 1 is its variance times the
# probability that it is not clipped.
CLIPPED_PRODUCTS = STDS**2 * _probability_within(1.0 / STDS)
CLIPPED_SQUARES = _clipped_square(STDS)


def _interpolate_std(means, mean):
    """Return the standard deviation at which the tabulated mean has a given value."""
    logarithm = np.interp(math.log(max(mean, 1e-300)), np.log(means), np.log(STDS))
    return math.exp(logarithm)


@dataclass(frozen=True, kw_only=True)
class LinearShrinkageRule(ShrinkageRule):
    """The shrinkage rule of a linear model; see `ShrinkageRule` for the other parameters.

    Parameters
    ----------
    n_rows, n_features : int
    row_curvature : float
        Typical curvature of the loss times the square of the bound on a row's norm.
    curvature : float
        Typical curvature of the loss.
    alpha : float
        L2 regularization strength with which weights were fitted to the mean loss.
    curvature_from : {"residuals", "curvature", None}
        Assumption from which the relative curvature is estimated. "residuals": residuals are
        roughly normally distributed, many of them are clipped, and they change by as much as the
        scores. "curvature": the loss's curvature determines the changes of residuals, and few are
        clipped. None: the relative curvature is 1.
    max_curvature : float
        Upper bound on the loss's curvature.
    noise_std : float, default=0.0
        Standard deviation of the noise in the released means.
    """

    n_rows: int
    n_features: int
    row_curvature: float
    curvature: float
    alpha: float
    curvature_from: str | None
    max_curvature: float
    noise_std: float = 0.0

    def effective_dof(self, relative_curvature):
        """Return the effective degrees of freedom of weights that are fitted with the L2 penalty.

        They determine how much the loss decreases on average if no feature is related to the
        target. The number of directions and their curvature are those assumed in the docstring of
        this module.

        Parameters
        ----------
        relative_curvature : float
            Curvature along the weights, relative to that for rows whose norm is the bound and which
            are equally distributed over all directions.

        Returns
        -------
        float
        """
        curvature = relative_curvature * self.row_curvature / self.n_features
        n_directions = self.n_features / max(relative_curvature, 1.0)
        return n_directions * curvature / (curvature + self.alpha)

    def relative_curvature(self, decreases, displacement):
        """Return the relative curvature along the weights.

        Parameters
        ----------
        decreases : (float, float, float)
            Released means over the rows, with the squared residuals in units of their clip.
        displacement : ndarray
            The weights minus the start.

        Returns
        -------
        float
        """
        if self.curvature_from is None:
            return 1.0
        first, last, squares = decreases
        change, residual = self.clip_norms(displacement)
        if self.curvature_from == "residuals":
            unclipped = _probability_within(1.0 / _interpolate_std(CLIPPED_SQUARES, squares))
            min_loss_curvature = max(unclipped, MIN_UNCLIPPED)
            max_loss_curvature = min_loss_curvature
        else:
            min_loss_curvature = self.curvature
            max_loss_curvature = self.max_curvature
        # The sum of two released values has sqrt(2) times the noise of one.
        margin = N_NOISE_STDS * math.sqrt(2.0) * self.noise_std
        low = (first + last - margin) * residual / change / max_loss_curvature
        high = (first + last + margin) * residual / change / min_loss_curvature
        return min(max(1.0, _relative_curvature(low)), _relative_curvature(high))

    def estimate_null_fraction(self, decreases, displacement):
        dof = self.effective_dof(self.relative_curvature(decreases, displacement))
        return dof / (self.n_rows * self.curvature)


def _relative_curvature(product):
    """Return the variance of changes in scores, relative to the typical variance.

    `product` is the mean of a score's change times the clipped change.
    """
    std = DISPLACEMENT_CLIP * _interpolate_std(CLIPPED_PRODUCTS, product)
    return max(std**2, MIN_RELATIVE_CURVATURE)
