r"""Linear regression from noisy sufficient statistics: AdaSSP (Wang 2018, algorithm 2).

With rows :math:`z_i = (x_i, c)` of norm at most R and centered targets :math:`|u_i| \le 1` the
release is one vector: :math:`A = \sum z_i z_i^\top`, :math:`b = \sum u_i z_i` and A's least
eigenvalue. The ridge is what the noise in A needs beyond that eigenvalue.

Three departures from the paper, derived in ``docs/guarantees.md``: the three statistics get
noise of one joint calibration instead of a third of epsilon each; an off-diagonal entry of A
stands for two, so its noise is smaller by :math:`\sqrt 2`; the last entry of A is
:math:`n c^2`, which is public.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.special import ndtri

from skdp._data._bounded import max_bounded_additions
from skdp._data._parts import sum_over
from skdp.linear_model._planning import UNIT_ROUNDOFF, Perturbation, quadratic_excess
from skdp.mechanisms._plan import vector_noise
from skdp.utils._symmetric import (
    FAILURE_PROBABILITY,
    pack_symmetric,
    spectral_margin,
    unpack_symmetric,
)

# Parts of the squared sensitivity that go to A, to b and to the eigenvalue; chosen with the
# California housing table in view.
SHARES = (0.5, 0.4, 0.1)


@dataclass(frozen=True)
class AdaSSP(Perturbation):
    """What a fit from sufficient statistics will do.

    Parameters
    ----------
    n_rows : int
    data_norm, constant : float
        The bound on a row and its constant feature, 0 for none.
    alpha : float
        The least ridge, of the coefficients alone.
    mechanism : GaussianMechanism or GammaNormMechanism
        The noise on the weighted statistics, their sensitivity and event.
    """

    n_rows: int
    data_norm: float
    constant: float
    alpha: float
    mechanism: object

    def run(self, loss, rows, targets, source, start=None):
        """Return the weights, that of the constant feature last.

        Parameters
        ----------
        loss : loss
            The squared one; it is not read.
        rows : BoundedRows
        targets : ndarray of shape (n_rows,)
            Centered targets, at most 1 in magnitude.
        source : RandomSource
        start : ndarray
            It is not read.

        Returns
        -------
        ndarray of shape (n_features,)
        """
        p, (unit_A, unit_b, unit_eigenvalue) = rows.n_features, self._units
        equations = rows.as_equations()
        total = sum_over(equations, _add_statistics, np.zeros((p + 1, p)), row_args=(targets,))
        A = total[:p].T
        b = total[p]
        # LAPACK finds it to a few units of rounding of ||A||, which the sensitivity allows for.
        least = eigvalsh(A, lower=False, subset_by_index=[0, 0], check_finite=False)
        vector = pack_symmetric(A)
        weighted = np.concatenate([vector / unit_A, b / unit_b, least / unit_eigenvalue])
        released = self.mechanism.release(weighted, random_state=source)
        A = unpack_symmetric(released[: -p - 1] * unit_A, p)
        return self._solve(A, released[-p - 1 : -1] * unit_b, released[-1] * unit_eigenvalue)

    def expected_excess(self, problem, weights_norm):
        """Return the summed loss expected above that of weights of a norm."""
        noise_A, noise_b, _ = self._noise(problem.n_features)
        margin = spectral_margin(noise_A, problem.n_features)
        noise = math.hypot(noise_b, noise_A * weights_norm)
        return quadratic_excess(problem, max(self.alpha, margin), weights_norm, noise)

    def _noise(self, p):
        """Return the standard deviations of the noise in entries of A and b and the eigenvalue."""
        noise = self.mechanism.deviation(_n_values(p))
        return tuple(noise * unit for unit in self._units)

    @property
    def _units(self):
        """Return what A, b and the eigenvalue are divided by: their size over root share."""
        R = math.hypot(self.data_norm, self.constant)
        sizes = (R**2, R, R**2)
        return tuple(size / math.sqrt(share) for size, share in zip(sizes, SHARES, strict=True))

    def _solve(self, A, b, least):
        noise_A, _, noise_least = self._noise(len(b))
        allowed = float(-ndtri(FAILURE_PROBABILITY))
        margin = spectral_margin(noise_A, len(b))
        least = max(0.0, least - noise_least * allowed)
        ridge = max(self.alpha, margin - least)
        if not self.constant:
            return _ridge_solution(A, b, ridge, margin)
        # The summed weights of the equations: the number of rows, unless some rows are longer than
        # the bound. Noise below its number alone does not tell of such rows.
        n_equations = A[-1, -1] / self.constant**2
        doubt = allowed * noise_A / self.constant**2
        if n_equations + doubt >= self.n_rows:
            n_equations = self.n_rows
        n_equations = max(n_equations, 1.0)
        size = n_equations * self.constant
        mean = A[:-1, -1] / size
        mean *= min(1.0, self.data_norm / max(np.linalg.norm(mean), 1e-300))
        target = float(np.clip(b[-1] / size, -1.0, 1.0))
        A = A[:-1, :-1] - n_equations * np.outer(mean, mean)
        coef = _ridge_solution(A, b[:-1] - n_equations * target * mean, ridge, margin)
        return np.append(coef, (target - mean @ coef) / self.constant)


def plan_adassp(rows, shape, alpha):
    r"""Plan a fit from public quantities alone.

    Parameters
    ----------
    rows : RowPlan
        With the guarantee that is left for the fit; delta = 0 takes the Gamma-norm mechanism.
    shape : TableShape
    alpha : float
        The least ridge.

    Returns
    -------
    AdaSSP
    """
    n_features = rows.n_features(shape.n_columns)
    moved = _weighted_sensitivity(rows.left.relation)
    sensitivity = (moved + 2.0 * _rounding(shape.n_rows, n_features)) * (1.0 + 1e-12)
    mechanism = vector_noise(rows.left, sensitivity)
    mechanism.check_size(_n_values(n_features))
    return AdaSSP(shape.n_rows, rows.data_norm, rows.constant, alpha, mechanism)


def _weighted_sensitivity(relation):
    r"""Return the L2 sensitivity of the weighted statistics, for rows of norm 1.

    Add/remove: :math:`\|zz^\top\|_F` and :math:`\|uz\|`, and the eigenvalue's change, are at
    most 1. Replace-one: for rows at an angle of cosine t the first two move by at most
    :math:`w_A (2 - 2t^2) + w_b (2 + 2t)`, squared.
    """
    w_A, w_b, w_least = SHARES
    if relation == "add_remove":
        return math.sqrt(w_A + w_b + w_least)
    t = min(1.0, w_b / (2.0 * w_A))
    return math.sqrt(w_A * (2.0 - 2.0 * t**2) + w_b * (2.0 + 2.0 * t) + w_least)


def _rounding(n_rows, n_features):
    """Bound the error of the weighted statistics as computed (Higham 2002, section 3.1)."""
    additions = max_bounded_additions(n_features) + 16
    # The least eigenvalue adds the error of A to that of the eigenvalue solver.
    return 1.1 * UNIT_ROUNDOFF * n_rows * (3.0 * additions + 16.0 * n_features)


def _add_statistics(total, block, targets):
    block.add_weighted_gram(np.ones(len(targets)), total[:-1])
    total[-1] += block.weighted_sum(block.equation_factors * targets)


def _n_values(p):
    """Return the number of entries of a triangle of A, of b, and of the eigenvalue."""
    return p * (p + 1) // 2 + p + 1


def _ridge_solution(A, b, ridge, floor):
    """Solve with A + ridge, eigenvalues below a floor raised to it.

    With the margin of the noise as the floor: without noise none is smaller.
    """
    values, vectors = eigh(A, check_finite=False)
    return vectors @ ((vectors.T @ b) / np.maximum(values + ridge, floor))
