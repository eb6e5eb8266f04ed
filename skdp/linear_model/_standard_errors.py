r"""Standard errors of released weights: privacy noise plus sampling, from a noisy Hessian.

Let :math:`F = \sum_i \nabla^2 \ell_i` at the released weights. If the model holds, the weights that
minimize :math:`C \sum \ell + \tfrac q2 \|w\|^2` have the sampling covariance
:math:`(C F + q)^{-1} C^2 F (C F + q)^{-1}` (Huber 1967; the information identity). The covariance
of the privacy noise in the weights is also a function of F. The noise in F is isotropic, so both
are diagonal in the eigenvectors of the released matrix. The derivation is in
``docs/theory/standard_errors.md``.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh, helmert

from skdp._data._bounded import max_bounded_additions
from skdp._data._symmetric import pack_symmetric, spectral_margin, unpack_symmetric
from skdp._optim._linear_objective import summed_hessian
from skdp.accounting import (
    Composed,
    _guarantee,
    gaussian_noise_multiplier,
    gdp_to_delta,
    gdp_to_epsilon,
)
from skdp.mechanisms._plan import Plan, vector_noise
from skdp.mechanisms._stages import stages_of
from skdp.utils._documents import count_of

# Fraction of the budget spent on the Hessian: of the squared mu if both releases are Gaussian,
# otherwise of epsilon and of delta.
HESSIAN_FRACTION = 0.125
# Frobenius norm of the difference between neighbors' Hessians. Under add/remove, it is one row's
# Hessian. Under replace-one, the Hessians of two rows are positive semidefinite, so their
# squared norms add.
FROBENIUS_SENSITIVITY = {"add_remove": 1.0, "replace_one": math.sqrt(2.0)}
# The Hessian is computed at weights so short that rounding errors in the scores change it by at
# most this fraction.
SCORE_ROUNDING = 2.0**-8
# Largest number of weights; the size of the Hessian is the square of this number.
MAX_WEIGHTS = 5000
UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2
SLACK = 1e-12


@dataclass(frozen=True)
class HessianRelease:
    """Noisy release of the summed loss's Hessian.

    Parameters
    ----------
    shape : tuple of int
        Numbers of contrasts and features. There is one contrast less than outputs, but at least
        one.
    radius : float
        The Hessian is computed at weights of at most this norm.
    norm : float
        Upper bound on a row's norm.
    mechanism : GaussianMechanism or GammaNormMechanism
        Mechanism for the upper triangle, with off-diagonal entries multiplied by the square root of
        two.
    """

    shape: tuple
    radius: float
    norm: float
    mechanism: object

    def run(self, loss, rows, y, weights, source):
        """Return the noisy Hessian in coordinates of contrasts.

        Parameters
        ----------
        loss : BoundedLoss
        rows : BoundedRows
        y : array of shape (n_rows,)
        weights : ndarray
            Released weights.
        source : RandomSource

        Returns
        -------
        ndarray of shape (size, size), size the product of `shape`
        """
        shortened = weights / max(1.0, np.linalg.norm(weights) / self.radius)
        exact = pack_symmetric(summed_hessian(loss, rows, y, shortened))
        released = self.mechanism.release(exact, random_state=source)
        return unpack_symmetric(released, math.prod(self.shape))

    def standard_error(self, hessian, weights, plan, max_class_weight):
        """Return the standard errors of all weights, of shape (n_outputs, n_features).

        They combine the noise, the sampling variance and the squared bias of averaged iterates. An
        eigenvalue that may be due to noise alone is not used. In its place, the sampling variance
        is the largest over all curvatures, and the noise is divided by the regularizer alone.

        Parameters
        ----------
        hessian : ndarray
            As released by `run`.
        weights : ndarray
            Released weights.
        plan : PrivateSolver
            Plan of the weights.
        max_class_weight : float
            Largest class weight.

        Returns
        -------
        ndarray of shape (n_outputs, n_features)
        """
        n_contrasts, n_features = self.shape
        size = len(hessian)
        noise_std = self.mechanism.deviation(size * (size + 1) // 2)
        values, vectors = eigh(hessian, check_finite=False)
        is_significant = values > spectral_margin(noise_std, size)
        values = np.where(is_significant, values, 0.0)
        sampling = plan.C**2 * values / (plan.C * values + plan.quadratic) ** 2
        sampling = np.where(is_significant, sampling, 0.25 * plan.C / plan.quadratic)
        noise = plan.noise_variance(np.append(values, 0.0))
        variance = noise[:-1] + max_class_weight * sampling
        bias = plan.averaging_bias(values, self.norm) * weights
        vectors = vectors.reshape(n_contrasts, n_features, size)
        if n_contrasts == 1:
            return np.sqrt(vectors**2 @ variance + bias**2)
        # The mean of the weights over the classes is not determined by the data: it is pure noise.
        loadings = np.tensordot(helmert(n_contrasts + 1).T, vectors, axes=1)
        bias -= bias.mean(axis=0)
        return np.sqrt(loadings**2 @ variance + noise[-1] / (n_contrasts + 1) + bias**2)

    def compose_after(self, weights, guarantee):
        """Return the composed cost of both releases, with the scale and sensitivity of the weights.

        Parameters
        ----------
        weights : Plan
            Plan of the weights.
        guarantee : Guarantee
            Guarantee of both releases.

        Returns
        -------
        Plan
        """
        hessian_stages = stages_of(self.mechanism, "Hessian for standard errors")
        return Plan(
            name=f"{weights.name}, then {self.mechanism.name} on the Hessian",
            event=Composed((weights.event, self.mechanism.event)),
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            stages=weights.stages + hessian_stages,
            # The sensitivity of the Hessian is proved only for the row as the unit.
            by_person=False,
            scale=weights.scale,
            sensitivity=weights.sensitivity,
        )


def split_guarantee(mechanism, guarantee):
    """Return the guarantees of the weights and of the Hessian.

    Parameters
    ----------
    mechanism : {"output", "objective", "gradient"}
    guarantee : Guarantee
        Guarantee of both releases.

    Returns
    -------
    weights, hessian : Guarantee
    """
    if mechanism != "objective" and guarantee.delta > 0.0:
        mu = (1.0 - SLACK) / gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)
        weights = _guarantee_of_mu(math.sqrt(1.0 - HESSIAN_FRACTION) * mu, guarantee)
        hessian = _guarantee_of_mu(math.sqrt(HESSIAN_FRACTION) * mu, guarantee)
        return weights, hessian
    hessian, weights = _guarantee.split_guarantee(guarantee, HESSIAN_FRACTION)
    return weights, hessian


def _guarantee_of_mu(mu, guarantee):
    """Return the guarantee of a mu-GDP release at the delta, or else epsilon, of `guarantee`.

    If delta is large relative to epsilon, a part of mu has epsilon = 0 at this delta.
    """
    epsilon = gdp_to_epsilon(mu, guarantee.delta)
    if epsilon > 0.0:
        return replace(guarantee, epsilon=epsilon)
    return replace(guarantee, delta=gdp_to_delta(mu, guarantee.epsilon))


def plan_hessian(problem, guarantee):
    """Plan the release from public quantities alone.

    Parameters
    ----------
    problem : PerturbationProblem
        Problem of a logistic loss.
    guarantee : Guarantee
        Guarantee of the release.

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
    if size > MAX_WEIGHTS:
        raise ValueError(
            f"standard_errors is 'total' and the model has {count_of(size, 'weight')}: 'total' "
            "needs at most "
            f"{MAX_WEIGHTS}; use 'noise'"
        )
    # The Gram matrix is summed in blocks, and classes are then transformed to contrasts.
    additions = max_bounded_additions(n_features) + 96 + 8 * n_outputs**2
    rounding = 1.1 * UNIT_ROUNDOFF * n_rows * additions + SCORE_ROUNDING
    radius = SCORE_ROUNDING / (3.3 * UNIT_ROUNDOFF * n_rows * (n_features + 4) * problem.norm)
    sensitivity = FROBENIUS_SENSITIVITY[guarantee.relation] + 2.0 * rounding
    mechanism = vector_noise(guarantee, problem.smoothness * sensitivity * (1.0 + SLACK))
    mechanism.check_size(size * (size + 1) // 2)
    return HessianRelease(shape, radius, problem.norm, mechanism)
