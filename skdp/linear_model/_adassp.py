r"""Linear regression from noisy sufficient statistics: AdaSSP (Wang 2018, algorithm 2).

For rows :math:`z_i = (x_i, c)` of norm at most R and centered targets :math:`|u_i| \le 1`, the
release is one vector: :math:`A = \sum z_i z_i^\top`, :math:`b = \sum u_i z_i` and the smallest
eigenvalue of A. The noise in A requires a certain regularization strength; what this eigenvalue
does not already provide is added.

Three differences from the paper are derived in ``docs/theory/guarantees.md``. The noise in the
three statistics is calibrated jointly, instead of with a third of epsilon each. An off-diagonal
entry of A represents two entries, so its noise is smaller by :math:`\sqrt 2`. A row longer than the
bound is multiplied by a factor q, together with its constant feature and its target. Therefore, the
last entry of A, :math:`c^2 \sum q^2`, is also released.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.special import ndtri

from skdp._data._bounded import max_bounded_additions
from skdp._data._parts import sum_over
from skdp._data._symmetric import (
    FAILURE_PROBABILITY,
    pack_symmetric,
    spectral_margin,
    unpack_symmetric,
)
from skdp.linear_model._planning import UNIT_ROUNDOFF, PrivateSolver, quadratic_excess
from skdp.mechanisms._plan import vector_noise

# Fractions of the squared sensitivity of A, b and the eigenvalue. Tuned on California housing.
SENSITIVITY_FRACTIONS = (0.5, 0.4, 0.1)


@dataclass(frozen=True)
class AdaSSP(PrivateSolver):
    """The plan of a fit from sufficient statistics.

    Parameters
    ----------
    n_rows : int
    data_norm, constant : float
        Upper bound on the norm of a row, and the value of the constant feature; 0 for none.
    alpha : float
        Smallest regularization strength, which applies to the coefficients only.
    mechanism : GaussianMechanism or GammaNormMechanism
        Mechanism that releases the scaled statistics.
    """

    n_rows: int
    data_norm: float
    constant: float
    alpha: float
    mechanism: object

    def run(self, loss, rows, targets, source, start=None):
        """Return the weights; the weight of the constant feature is last.

        Parameters
        ----------
        loss : HuberLoss
            Not used: the loss is the squared error.
        rows : BoundedRows
        targets : ndarray of shape (n_rows,)
            Centered targets, at most 1 in magnitude.
        source : RandomSource
        start : ndarray
            Not used: the statistics determine the weights.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        p = rows.n_features
        scale_A, scale_b, scale_eigenvalue = self._scales
        equations = rows.as_equations()
        total = sum_over(equations, _add_statistics, np.zeros((p + 1, p)), row_args=(targets,))
        A = total[:p].T
        b = total[p]
        # LAPACK's error is a few rounding errors of ||A||, which the sensitivity covers.
        min_eigenvalue = eigvalsh(A, lower=False, subset_by_index=[0, 0], check_finite=False)
        vector = pack_symmetric(A)
        scaled = [vector / scale_A, b / scale_b, min_eigenvalue / scale_eigenvalue]
        released = self.mechanism.release(np.concatenate(scaled), random_state=source)
        A = unpack_symmetric(released[: -p - 1] * scale_A, p)
        b = released[-p - 1 : -1] * scale_b
        return self._solve(A, b, released[-1] * scale_eigenvalue)

    def expected_excess(self, problem, weights_norm):
        """Return the expected excess loss, summed over rows, relative to weights of this norm."""
        noise_A, noise_b, _ = self._noise(problem.n_features)
        margin = spectral_margin(noise_A, problem.n_features)
        noise = math.hypot(noise_b, noise_A * weights_norm)
        return quadratic_excess(problem, max(self.alpha, margin), weights_norm, noise)

    def _noise(self, p):
        """Return the standard deviations of the noise in entries of A and b and the eigenvalue."""
        noise = self.mechanism.deviation(_n_values(p))
        return tuple(noise * scale for scale in self._scales)

    @property
    def _scales(self):
        """Divisors of A, b and the eigenvalue: their bounds over the square roots of fractions."""
        R = math.hypot(self.data_norm, self.constant)
        fraction_A, fraction_b, fraction_eigenvalue = SENSITIVITY_FRACTIONS
        return (
            R**2 / math.sqrt(fraction_A),
            R / math.sqrt(fraction_b),
            R**2 / math.sqrt(fraction_eigenvalue),
        )

    def _solve(self, A, b, min_eigenvalue):
        """Compute the weights from the released statistics, which is post-processing."""
        noise_A, _, noise_eigenvalue = self._noise(len(b))
        n_stds = float(-ndtri(FAILURE_PROBABILITY))
        margin = spectral_margin(noise_A, len(b))
        min_eigenvalue = max(0.0, min_eigenvalue - noise_eigenvalue * n_stds)
        l2_reg_strength = max(self.alpha, margin - min_eigenvalue)
        if not self.constant:
            return _ridge_solution(A, b, l2_reg_strength, margin)
        # The sum of the row weights. It is the number of rows, unless some rows are longer than the
        # bound; a difference within the noise is ignored.
        n_equations = A[-1, -1] / self.constant**2
        uncertainty = n_stds * noise_A / self.constant**2
        if n_equations + uncertainty >= self.n_rows:
            n_equations = self.n_rows
        n_equations = max(n_equations, 1.0)
        size = n_equations * self.constant
        mean = A[:-1, -1] / size
        # The mean is sum q (q x) / sum q^2 with |q x| <= data_norm, so by the Cauchy-Schwarz
        # inequality it is no longer than this.
        max_norm = self.data_norm * math.sqrt(self.n_rows / n_equations)
        mean *= min(1.0, max_norm / max(np.linalg.norm(mean), 1e-300))
        target = float(np.clip(b[-1] / size, -1.0, 1.0))
        A = A[:-1, :-1] - n_equations * np.outer(mean, mean)
        b = b[:-1] - n_equations * target * mean
        coef = _ridge_solution(A, b, l2_reg_strength, margin)
        return np.append(coef, (target - mean @ coef) / self.constant)


def plan_adassp(rows, shape, alpha):
    r"""Plan a fit from public quantities alone.

    Parameters
    ----------
    rows : RowsFit
        Its remaining guarantee is used for the release. With delta = 0, the release uses the
        Gamma-norm mechanism.
    shape : TableShape
    alpha : float
        Smallest regularization strength.

    Returns
    -------
    AdaSSP
    """
    n_features = rows.n_features(shape.n_columns)
    sensitivity = _weighted_sensitivity(rows.remaining.relation)
    sensitivity = (sensitivity + 2.0 * _rounding(shape.n_rows, n_features)) * (1.0 + 1e-12)
    mechanism = vector_noise(rows.remaining, sensitivity)
    mechanism.check_size(_n_values(n_features))
    return AdaSSP(shape.n_rows, rows.data_norm, rows.constant, alpha, mechanism)


def _weighted_sensitivity(relation):
    r"""Return the L2 sensitivity of the statistics, divided by `AdaSSP._scales`.

    The scales are such that rows may be assumed to have norm 1, and that the squared changes of A,
    b and the eigenvalue are multiplied by the weights w in `SENSITIVITY_FRACTIONS`.

    Add/remove: A changes by :math:`\|zz^\top\|_F = 1`, its smallest eigenvalue therefore by at most
    1 (Weyl), and b by :math:`\|uz\| \le 1`.

    Replace-one: let t be the cosine of the angle between the two rows z and z'. The squared change
    of A is :math:`\|zz^\top - z'z'^\top\|_F^2 = 2 - 2t^2`. That of b, :math:`\|uz - u'z'\|^2`, is
    largest for targets u = 1 and u' = -1, where it is :math:`\|z + z'\|^2 = 2 + 2t`. The weighted
    sum :math:`w_A (2 - 2t^2) + w_b (2 + 2t)` has its maximum over t at :math:`t = w_b / (2 w_A)`,
    or at 1 if that is larger. The eigenvalue again changes by at most 1, which adds its weight.
    Shorter rows change less; see ``docs/theory/guarantees.md``.
    """
    w_A, w_b, w_eigenvalue = SENSITIVITY_FRACTIONS
    if relation == "add_remove":
        return math.sqrt(w_A + w_b + w_eigenvalue)
    t = min(1.0, w_b / (2.0 * w_A))
    return math.sqrt(w_A * (2.0 - 2.0 * t**2) + w_b * (2.0 + 2.0 * t) + w_eigenvalue)


def _rounding(n_rows, n_features):
    """Return an upper bound on the rounding error in the statistics (Higham 2002, section 3.1)."""
    additions = max_bounded_additions(n_features) + 16
    # The error in the eigenvalue is the error in A plus that of the eigenvalue solver.
    return 1.1 * UNIT_ROUNDOFF * n_rows * (3.0 * additions + 16.0 * n_features)


def _add_statistics(total, block, targets):
    """Add the statistics of a block: A to all rows of `total` but the last, b to the last one."""
    block.add_weighted_gram(np.ones(len(targets)), total[:-1])
    total[-1] += block.weighted_sum(block.equation_factors * targets)


def _n_values(p):
    """Return the number of released values: a triangle of A, b, and the eigenvalue."""
    return p * (p + 1) // 2 + p + 1


def _ridge_solution(A, b, l2_reg_strength, floor):
    """Return the solution of the regularized system, with eigenvalues raised to a floor.

    The floor is the margin for the noise: without noise, no eigenvalue would be below it.
    """
    values, vectors = eigh(A, check_finite=False)
    return vectors @ ((vectors.T @ b) / np.maximum(values + l2_reg_strength, floor))
