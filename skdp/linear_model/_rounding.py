"""The rounding error of a computed sum of gradients."""

import numpy as np

from skdp.linear_model._rows import most_additions

__all__ = ["gradient_rounding", "rounding_per_weight"]

UNIT_ROUNDOFF = np.finfo(np.float64).eps / 2
# Squares of what solvers compare must not underflow; they are far smaller than what one row moves.
SMALLEST_MOVE = 1e-100


def gradient_rounding(loss, n_rows, n_features, norm, C, weights_norm, penalised=True):
    r"""Bound the rounding error of the gradient of an objective at weights of bounded norm.

    A sum of m terms in any order is off by at most :math:`\gamma_m` times the sum of their
    magnitudes (Higham 2002, section 3.1); rows are added in blocks and blocks to a total. The
    error of a score, :math:`\gamma_p R \|w\|`, moves a residual by the loss's curvature. A
    residual has an error of its own even for exact scores.

    Parameters
    ----------
    loss : loss
        From `skdp._losses`.
    n_rows, n_features : int
    norm : float
        The bound R on a row's norm.
    C : float
        The factor of the summed loss.
    weights_norm : float
        The bound on the weights' norm.
    penalised : bool, default=True
        Whether the weights themselves are added to the gradient of the loss.

    Returns
    -------
    float
        Affine in `weights_norm`.
    """
    additions = most_additions(n_rows, n_features) + 16
    sums = n_rows * loss.slope_bound * norm * additions
    scores = n_rows * loss.curvature_bound * norm**2 * (n_features + 4) * weights_norm
    summed = 1.1 * UNIT_ROUNDOFF * (C * (sums + scores) + 4.0 * penalised * weights_norm)
    return summed + C * n_rows * norm * loss.residual_error


def rounding_per_weight(loss, n_rows, n_features, norm, C):
    """Return how `gradient_rounding` grows with the weights' norm.

    Raises
    ------
    ValueError
        If C is so large or so small that the bound, or a computed norm, loses its meaning.
    """
    if not C * loss.slope_bound * norm >= SMALLEST_MOVE:
        raise ValueError(f"C={C:g} is too small for rows of norm {norm:g}")
    table = loss, n_rows, n_features, norm, C
    per_weight = gradient_rounding(*table, 1.0) - gradient_rounding(*table, 0.0)
    if not per_weight <= 1.0 / 16.0:
        raise ValueError(f"C={C:g} is too large for {n_rows} rows of norm {norm:g}")
    return per_weight
