r"""Standard errors of released weights: privacy noise plus sampling, from a noisy Hessian.

With :math:`F = \sum_i \nabla^2 \ell_i` at the released weights and a model that holds, the
weights that minimize :math:`C \sum \ell + \tfrac q2 \|w\|^2` have the sampling covariance
:math:`(C F + q)^{-1} C^2 F (C F + q)^{-1}` (Huber 1967; the information identity). How the privacy
noise reaches the weights is a function of F too. Noise in F is isotropic, so everything is diagonal
in the eigenvectors of the released matrix. Derived in ``docs/standard_errors.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, helmert

from skdp._data._bounded import max_bounded_additions
from skdp.accounting import Composed, gaussian_noise_multiplier, gdp_to_delta, gdp_to_epsilon
from skdp.linear_model._objective import summed_hessian
from skdp.mechanisms._plan import Price, vector_noise
from skdp.utils import _sums
from skdp.utils._symmetric import pack_symmetric, spectral_margin, unpack_symmetric

# Of the budget of a fit: of the squared mu where both releases are Gaussian, else of epsilon
# and of delta.
HESSIAN_SHARE = 0.125
# Neighbors' Hessians differ by one row's under add/remove. Two rows' are positive semidefinite,
# so that the squares add up under replace-one.
FROBENIUS_MOVED = {"add_remove": 1.0, "replace_one": math.sqrt(2.0)}
# The Hessian is taken at weights so short that rounding of scores adds at most this share.
SCORE_ROUNDING = 2.0**-8
MOST_WEIGHTS = 5000
UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2
SLACK = 1e-12


@dataclass(frozen=True)
class HessianRelease:
    """The noisy release of the summed loss's Hessian.

    Parameters
    ----------
    shape : tuple of int
        Of the matrix of contrasts: outputs less one (or one) and features.
    radius : float
        The Hessian is taken at weights of at most this norm.
    norm : float
        The bound on a row's norm.
    mechanism : GaussianMechanism or GammaNormMechanism
        The noise on the upper triangle, with off-diagonal entries times the root of two.
    """

    shape: tuple
    radius: float
    norm: float
    mechanism: object

    def run(self, loss, rows, y, weights, source):
        """Return the noisy Hessian in coordinates of contrasts.

        Parameters
        ----------
        loss : loss
        rows : BoundedRows
        y : array of shape (n_rows,)
        weights : ndarray
            Released weights.
        source : RandomSource

        Returns
        -------
        ndarray of shape (size, size), size the product of `shape`
        """
        short = weights / max(1.0, np.linalg.norm(weights) / self.radius)
        exact = pack_symmetric(summed_hessian(loss, rows, y, short))
        released = self.mechanism.release(exact, random_state=source)
        return unpack_symmetric(released, math.prod(self.shape))

    def standard_error(self, hessian, weights, plan, largest_weight):
        """Return the standard errors of all weights, shape (n_outputs, n_features).

        An eigenvalue that noise alone could have made is taken as any: the sampling variance is
        then the largest over all curvatures and the noise is divided by the regularizer alone.

        Parameters
        ----------
        hessian : ndarray
            As released by `run`.
        weights : ndarray
            Released weights.
        plan : plan of a mechanism
            With `C`, `quadratic`, `noise_variance` and `lengthening`.
        largest_weight : float
            The largest class weight.
        """
        n_contrasts, n_features = self.shape
        size = len(hessian)
        deviation = self.mechanism.deviation(size * (size + 1) // 2)
        values, vectors = eigh(hessian, check_finite=False)
        resolved = values > spectral_margin(deviation, size)
        values = np.where(resolved, values, 0.0)
        sampling = plan.C**2 * values / (plan.C * values + plan.quadratic) ** 2
        sampling = np.where(resolved, sampling, 0.25 * plan.C / plan.quadratic)
        noise = plan.noise_variance(np.append(values, 0.0))
        variance = noise[:-1] + largest_weight * sampling
        bias = plan.lengthening(values, self.norm) * weights
        vectors = vectors.reshape(n_contrasts, n_features, size)
        if n_contrasts == 1:
            return np.sqrt(vectors**2 @ variance + bias**2)
        # No data speak about the mean of the classes' weights: it is noise.
        loadings = np.tensordot(helmert(n_contrasts + 1).T, vectors, axes=1)
        bias -= bias.mean(axis=0)
        return np.sqrt(loadings**2 @ variance + noise[-1] / (n_contrasts + 1) + bias**2)

    def price_after(self, weights, guarantee):
        """Return the price of both releases; the scale and sensitivity are those of the weights.

        Parameters
        ----------
        weights : mechanism
        guarantee : Guarantee
            Of both.
        """
        return Price(
            name=f"{weights.name}, then {self.mechanism.name} on the Hessian",
            event=Composed((weights.event, self.mechanism.event)),
            guarantee=guarantee,
            scale=weights.scale,
            sensitivity=weights.sensitivity,
        )


def split_guarantee(mechanism, guarantee):
    """Return what the weights and the Hessian may cost.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    guarantee : Guarantee
        Of the fit.

    Returns
    -------
    weights, hessian : Guarantee
    """
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if mechanism != "objective" and delta > 0.0:
        mu = (1.0 - SLACK) / gaussian_noise_multiplier(epsilon, delta)
        shares = 1.0 - HESSIAN_SHARE, HESSIAN_SHARE
        return tuple(_stated(math.sqrt(share) * mu, guarantee) for share in shares)
    return tuple(reversed(_sums.split_guarantee(guarantee, HESSIAN_SHARE)))


def _stated(mu, guarantee):
    """Return the guarantee of a release: at that delta, or at that epsilon if it has none.

    Where delta is large beside epsilon a share of mu has no epsilon at the whole of delta.
    """
    own = gdp_to_epsilon(mu, guarantee.delta)
    if own > 0.0:
        return replace(guarantee, epsilon=own)
    return replace(guarantee, delta=gdp_to_delta(mu, guarantee.epsilon))


def plan_hessian(problem, guarantee):
    """Plan the release from public quantities alone.

    Parameters
    ----------
    problem : Problem
        Of a logistic loss.
    guarantee : Guarantee
        Of the release.

    Returns
    -------
    HessianRelease

    Raises
    ------
    ValueError
        If there are too many weights.
    """
    n_rows = problem.n_rows
    n_features = problem.n_features
    n_outputs = math.prod(problem.loss.weights_shape)
    shape = (max(n_outputs - 1, 1), n_features)
    size = math.prod(shape)
    if size > MOST_WEIGHTS:
        raise ValueError(
            f"standard_errors='total' takes at most {MOST_WEIGHTS} weights, got {size}"
        )
    # The gram is summed in blocks, classes are turned into contrasts.
    additions = max_bounded_additions(n_features) + 96 + 8 * n_outputs**2
    rounding = 1.1 * UNIT_ROUNDOFF * n_rows * additions + SCORE_ROUNDING
    radius = SCORE_ROUNDING / (3.3 * UNIT_ROUNDOFF * n_rows * (n_features + 4) * problem.norm)
    moved = FROBENIUS_MOVED[guarantee.relation] + 2.0 * rounding
    mechanism = vector_noise(guarantee, problem.smoothness * moved * (1.0 + SLACK))
    mechanism.check_size(size * (size + 1) // 2)
    return HessianRelease(shape, radius, problem.norm, mechanism)
