r"""How much weights of a linear model explain by chance, from what their check releases.

Weights that were fitted to the same rows have a smaller loss there, also where rows say nothing.
The decrease to expect is the variance of residuals times the "effective degrees of freedom" (Efron
2004) over the number of rows: :math:`\sum_j h_j / (h_j + \alpha)` for the eigenvalues
:math:`h_j` of the loss's mean curvature under a penalty :math:`\alpha`. No eigenvalue is released.

Only the bound R on a row's norm is public: the eigenvalues of the second moment of p features sum
to at most :math:`R^2`. Real rows are shorter, and lie in few directions. The curvature along the
released weights follows from the check itself: on the way from the start to weights that are w
away residuals change by the loss's curvature times the scores' moves s, and the mean of s² is
:math:`w^\top H w`. Over :math:`R^2 \|w\|^2 / p`, its value for rows of norm R that lie in all
directions alike, it is the *spread along the weights* a. There are taken to be
:math:`\min(p, p / a)` directions of curvature :math:`a R^2 / p` each: then their sum is at most
:math:`R^2`. Rows that are short make a small, and rows in few directions make it large.

Noise in the released numbers, and the curvature of a logistic loss, which is known only between
a usual value and a bound, leave an interval for a. The value in it that is nearest to 1 is taken,
so that a is 1 where nothing is known.

All of this is post-processing of released numbers. The derivation is in ``docs/dp_sgd.md``.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from skdp._sgd._updates import USUAL_MOVES, Check

# Standard deviations, over where a number is clipped, at which means of clipped normal numbers are
# computed.
SPREADS = np.geomspace(1e-3, 1e3, 601)
# The least spread along weights that is told from noise, and the least part of residuals that is
# taken to be unclipped.
LEAST_SPREAD = 0.02
LEAST_UNCLIPPED = 0.05
# How many standard deviations of the noise an interval for the spread along weights reaches.
DEVIATIONS = 3.0


def _within(ratio):
    """Return the chance that a normal number of variance 1 is within plus or minus a ratio."""
    return 2.0 * ndtr(ratio) - 1.0


def _clipped_square(spread):
    """Return the mean square of a normal number that is clipped at 1."""
    ratio = 1.0 / spread
    density = np.exp(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
    return spread**2 * (_within(ratio) - 2.0 * ratio * density) + 1.0 - _within(ratio)


# E s clip(s) of a normal number s clipped at 1 is its variance times the chance of no clip (Stein).
CLIPPED_PRODUCTS = SPREADS**2 * _within(1.0 / SPREADS)
CLIPPED_SQUARES = _clipped_square(SPREADS)


def _spread(means, mean):
    """Return the standard deviation at which a mean of a clipped normal number has a value."""
    logarithm = np.interp(math.log(max(mean, 1e-300)), np.log(means), np.log(SPREADS))
    return math.exp(logarithm)


@dataclass(frozen=True, kw_only=True)
class LinearCheck(Check):
    """The check of a linear model's weights; see `Check` for the other parameters.

    Parameters
    ----------
    n_rows, n_features : int
    row_curvature : float
        A usual curvature of the loss times the square of the bound on a row's norm.
    curvature : float
        That usual curvature.
    alpha : float
        The penalty on the mean loss that weights were fitted under.
    spread_from : {"residuals", "curvature", None}
        How the spread along weights follows. "residuals": residuals are numbers of about normal
        law, many of which are clipped, and change as the scores do. "curvature": they change by
        the loss's curvature and few are clipped. None: the spread is taken to be 1.
    largest_curvature : float
        The bound on the loss's curvature.
    deviation : float, default=0.0
        The standard deviation of the noise in the released means.
    """

    n_rows: int
    n_features: int
    row_curvature: float
    curvature: float
    alpha: float
    spread_from: str | None
    largest_curvature: float
    deviation: float = 0.0

    def degrees(self, spread):
        """Return the effective degrees of freedom of the weights.

        Parameters
        ----------
        spread : float
            That along the weights: 1 for rows of the bound's norm in all directions alike.
        """
        along = spread * self.row_curvature / self.n_features
        n_directions = self.n_features / max(spread, 1.0)
        return n_directions * along / (along + self.alpha)

    def spread_along(self, gains, moved):
        """Return the spread of rows along the weights.

        Parameters
        ----------
        gains : (float, float, float)
            Released means over the rows, the squared residuals in units of their clip.
        moved : ndarray

        Returns
        -------
        float
        """
        if self.spread_from is None:
            return 1.0
        first, last, squares = gains
        move, residual = self.units(moved)
        if self.spread_from == "residuals":
            unclipped = _within(1.0 / _spread(CLIPPED_SQUARES, squares))
            least = largest = max(unclipped, LEAST_UNCLIPPED)
        else:
            least = self.curvature
            largest = self.largest_curvature
        # The noise in the sum of two values.
        doubt = DEVIATIONS * math.sqrt(2.0) * self.deviation
        lowest = _spread_of_moves((first + last - doubt) * residual / move / largest)
        highest = _spread_of_moves((first + last + doubt) * residual / move / least)
        return min(max(1.0, lowest), highest)

    def chance_of(self, gains, moved):
        degrees = self.degrees(self.spread_along(gains, moved))
        return degrees / (self.n_rows * self.curvature)


def _spread_of_moves(product):
    """Return the variance of moves in usual ones, from a mean of moves times clipped moves."""
    spread = USUAL_MOVES * _spread(CLIPPED_PRODUCTS, product)
    return max(spread**2, LEAST_SPREAD)
