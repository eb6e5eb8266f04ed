"""Noise on tables to whose cells each row adds weights that sum to 1, for each column."""

import math

from skdp.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism

__all__ = ["noise_variance", "plan_cell_weights"]


def plan_cell_weights(n_columns, guarantee, *, whole):
    """Plan noise on the cells of the tables of `n_columns` columns.

    A row adds weights of at least 0 that sum to 1, or nothing, to each table: m n_columns in L1
    norm and sqrt(m n_columns) in L2 norm between neighbours, with m = 1 under add/remove and 2
    under replace-one. The weights' sums must be exact.

    Parameters
    ----------
    n_columns : int
    guarantee : Guarantee
        delta = 0 takes Laplace noise, a positive one Gaussian noise.
    whole : bool
        Whether the weights are 0 or 1.

    Returns
    -------
    GeometricMechanism, LaplaceMechanism or GaussianMechanism
    """
    moved = guarantee.neighbours.rows_moved * n_columns
    if guarantee.delta > 0.0:
        norm = math.nextafter(math.sqrt(moved), math.inf)
        return GaussianMechanism(guarantee.epsilon, guarantee.delta, norm)
    return (GeometricMechanism if whole else LaplaceMechanism)(guarantee.epsilon, moved)


def noise_variance(mechanism):
    """Return the variance of the noise in a cell, a little above that of discrete noise."""
    return mechanism.scale**2 * (2.0 if mechanism.delta == 0.0 else 1.0)
