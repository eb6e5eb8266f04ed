"""Privacy loss distributions: dominating pairs of single events, and their discretization.

A pair (P, Q) is represented by the distributions of the loss L = ln(dP/dQ) under P and Q (Sommer,
Meiser and Mohammadi 2019; Zhu, Dong and Wang 2022), so sampling is a change of variable. The
discretization is connect-the-dots (Doroshenko et al. 2022).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtr

from skdp.utils._values import FrozenValue

# Discrete Laplace noise with more atoms is replaced by randomized response with the same epsilon.
_MAX_ATOMS = 4_000_000
# Absolute values at which a tail is evaluated to enclose a quantile.
_LADDER = 2.0 ** np.arange(-44.0, 60.0)


def _no_atoms():
    """Return an empty array."""
    return np.zeros(0)


@dataclass(frozen=True)
class LossPair(FrozenValue):
    """The distributions of the privacy loss under P and Q.

    Parameters
    ----------
    tails : callable or None
        Maps losses l to (P(L <= l), P(L > l), Q(L <= l), Q(L > l)) of the continuous part, None if
        there is none. The smaller of the two tails is accurate.
    low, high : float
        The support of the continuous part.
    losses, p, q : ndarray
        The losses of the atoms, in increasing order, and their probabilities under P and Q.
    p_inf, q_inf : float
        P(L = inf) and Q(L = -inf).
    spacing : float or None
        The spacing of the lattice on which the losses lie, if any.
    num_terms : int
        Number of densities from which the tails at one loss are computed, over all pairs of the
        event.
    """

    tails: Callable | None = None
    low: float = 0.0
    high: float = 0.0
    losses: np.ndarray = field(default_factory=_no_atoms)
    p: np.ndarray = field(default_factory=_no_atoms)
    q: np.ndarray = field(default_factory=_no_atoms)
    p_inf: float = 0.0
    q_inf: float = 0.0
    spacing: float | None = None
    num_terms: int = 1

    def reversed(self) -> "LossPair":
        """Return the pair (Q, P)."""

        def tails(loss):
            p_cdf, p_sf, q_cdf, q_sf = self.tails(-loss)
            return q_sf, q_cdf, p_sf, p_cdf

        atoms = -self.losses[::-1], self.q[::-1], self.p[::-1], self.q_inf, self.p_inf
        return LossPair(
            self.tails and tails, -self.high, -self.low, *atoms, self.spacing, self.num_terms
        )


def gaussian(mu):
    """Return the pair of a Gaussian release: N(mu, 1) and N(0, 1)."""

    def tails(loss):
        """Return the four tails of the loss, which is normal with mean mu^2 / 2 or -mu^2 / 2."""
        result = []
        for mean in (0.5 * mu, -0.5 * mu):
            z = loss / mu - mean
            small = ndtr(-np.abs(z))
            large = 1.0 - small
            below = z < 0.0
            result += [np.where(below, small, large), np.where(below, large, small)]
        return result

    return LossPair(tails, -math.inf, math.inf)


def laplace(epsilon):
    """Return the pair of a Laplace release: two atoms, and a continuous part between them."""
    atom = 0.5 * math.exp(-epsilon)

    def far(width):
        """Return half of e^-epsilon (e^width - 1), also where e^width overflows."""
        # The product would be 0 times infinity for a large epsilon.
        if epsilon > 600.0:
            return 0.5 * (np.exp(width - epsilon) - math.exp(-epsilon))
        return atom * np.expm1(width)

    def tails(loss):
        """Return the four tails of the continuous part, without the atoms at +-epsilon."""
        above = np.clip(0.5 * (epsilon - loss), 0.0, epsilon)
        below = np.clip(0.5 * (epsilon + loss), 0.0, epsilon)
        return far(below), -0.5 * np.expm1(-above), -0.5 * np.expm1(-below), far(above)

    losses = np.array([-epsilon, epsilon])
    p = np.array([atom, 0.5])
    return LossPair(tails, -epsilon, epsilon, losses, p, p[::-1], spacing=epsilon)


def bounded_range(epsilon):
    """Return the pair of the largest privacy profile of the two-point pairs of bounded range.

    Dong, Durfee and Rogers (2020) derive the two-point pairs. The largest delta over them at l is
    e^epsilon (1 - e^((l-epsilon)/2))^2 / (e^epsilon - 1), which is a privacy profile too (Zhu,
    Dong and Wang 2022).
    """
    scale = -math.expm1(-epsilon)

    def tails(loss):
        """Return the four tails of the loss: derivatives of the profile, in closed form."""
        loss = np.clip(loss, -epsilon, epsilon)
        upper = -np.expm1(0.5 * (loss - epsilon))
        lower = -np.expm1(-0.5 * (loss + epsilon))
        q_sf = np.exp(-0.5 * (loss + epsilon)) * upper
        p_cdf = np.exp(0.5 * (loss - epsilon)) * lower
        return p_cdf / scale, upper / scale, lower / scale, q_sf / scale

    return LossPair(tails, -epsilon, epsilon)


def _atoms(losses, p, q, p_inf=0.0, q_inf=0.0, spacing=None):
    """Return a pair with atoms only, sorted by loss."""
    losses = np.asarray(losses, dtype=float)
    p = np.asarray(p, dtype=float)
    q = np.asarray(q, dtype=float)
    order = np.argsort(losses, kind="stable")
    return LossPair(None, 0.0, 0.0, losses[order], p[order], q[order], p_inf, q_inf, spacing)


def response(epsilon, num_categories=2, delta=0.0):
    """Return the pair of randomized response.

    With a positive delta, it is the four-point pair of any (epsilon, delta)-DP release (Kairouz, Oh
    and Viswanath 2015).
    """
    if epsilon == 0.0:
        return _atoms([0.0], [1.0 - delta], [1.0 - delta], delta, delta)
    others = (num_categories - 1.0) * math.exp(-epsilon)
    top = (1.0 - delta) / (1.0 + others)
    low = top * math.exp(-epsilon)
    middle = (num_categories - 2.0) * low
    p = [low, middle, top]
    return _atoms([-epsilon, 0.0, epsilon], p, p[::-1], delta, delta, epsilon)


def discrete_laplace(scale, sensitivity):
    """Return the pair of an integer plus discrete Laplace noise."""
    a = 1.0 / scale
    if sensitivity > _MAX_ATOMS:
        return response(sensitivity * a)
    x = np.arange(1, sensitivity, dtype=float)
    edge = 1.0 / (1.0 + math.exp(-a))
    inside = -math.expm1(-a) / (1.0 + math.exp(-a))
    far = edge * math.exp(-a * sensitivity)
    losses = np.concatenate(([a * sensitivity], a * (sensitivity - 2.0 * x), [-a * sensitivity]))
    p = np.concatenate(([edge], inside * np.exp(-a * x), [far]))
    return _atoms(losses, p, p[::-1], spacing=a)


def discrete_gaussian(sigma, sensitivity):
    """Return the pair of an integer plus discrete Gaussian noise."""
    # Standard deviations beyond which atoms are omitted, and a bound on the omitted mass and on
    # the error by underflow.
    if sigma < 1e4:
        reach_in_sigma, tail = 38.0, 1e-314
    else:
        reach_in_sigma, tail = 14.0, 1e-40
    reach = math.ceil(reach_in_sigma * sigma) + sensitivity + 1
    x = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-0.5 * (x / sigma) ** 2)
    # The exact sum is slow for many terms.
    if len(x) < 10_000:
        total = math.fsum(weights)
    else:
        total = float(weights.sum())
    losses = (0.5 * sensitivity - x) * (sensitivity / sigma**2)
    p = weights / total
    q = np.exp(-0.5 * ((x - sensitivity) / sigma) ** 2) / total
    keep = (p > 0.0) | (q > 0.0)
    return _atoms(losses[keep], p[keep], q[keep], tail, tail, sensitivity / sigma**2)


@dataclass(frozen=True)
class GridLoss(FrozenValue):
    """A loss distribution on a grid under P: `mass[i]` at (first + i) * step, `infinite` at inf."""

    step: float
    first: int
    mass: np.ndarray
    infinite: float

    @property
    def losses(self) -> np.ndarray:
        """The losses of the grid."""
        return self.step * np.arange(self.first, self.first + len(self.mass))

    def log_moment(self, tilts: np.ndarray) -> np.ndarray:
        """Return ln E_P[e^(t L); L finite] at each tilt t."""
        keep = self.mass > 0.0
        return log_moments(np.log(self.mass[keep]), self.losses[keep], tilts)


def log_moments(log_mass: np.ndarray, losses: np.ndarray, tilts: np.ndarray) -> np.ndarray:
    """Return ln of the sum of e^(log_mass + t loss) at each tilt t."""
    result = np.empty(len(tilts))
    for i, tilt in enumerate(tilts):
        exponent = log_mass + tilt * losses
        top = float(exponent.max())
        result[i] = top + math.log(float(np.exp(exponent - top).sum()))
    return result


def _quantile(tail, mass):
    """Return a value l with tail(l) <= mass, close to the smallest one; `tail` is decreasing."""
    points = np.concatenate((-_LADDER[::-1], [0.0], _LADDER))
    below = np.nonzero(tail(points) <= mass)[0]
    if len(below) == 0:
        return float(points[-1])
    index = int(below[0])
    if index == 0:
        return float(points[0])
    inside = np.linspace(points[index - 1], points[index], 65)
    return float(inside[np.argmax(tail(inside) <= mass)])


def loss_range(pair: LossPair, mass: float) -> tuple[float, float]:
    """Return (low, high) outside which P has at most `mass` on each side, including atoms."""
    low = math.inf
    high = -math.inf
    if len(pair.losses):
        low = float(pair.losses[0])
        high = float(pair.losses[-1])
    if len(pair.losses) > 100:
        below = np.cumsum(pair.p)
        above = np.cumsum(pair.p[::-1])[::-1]
        first = min(int(np.count_nonzero(below <= mass)), len(below) - 1)
        last = max(int(np.count_nonzero(above > mass)) - 1, 0)
        low, high = float(pair.losses[first]), float(pair.losses[last])
    if pair.tails is not None:
        tails = pair.tails

        def below_negative(x):
            return tails(-x)[0]

        def above_value(x):
            return tails(x)[1]

        bottom = max(pair.low, -_quantile(below_negative, mass))
        top = pair.high
        if top > 1.0:
            top = min(top, _quantile(above_value, mass))
        low, high = min(low, bottom), max(high, top)
    return low, max(low, high)


def discretize(pair: LossPair, step: float, low: float, high: float) -> GridLoss:
    """Return the tightest pessimistic distribution on a grid of losses in [low, high].

    The mass of a cell [g, g + step] is split between its ends so that its total under both P and Q
    is preserved: (P - e^g Q) / (1 - e^-step) at g + step and the rest at g. Mass below the lowest
    point is moved up to it, and mass above the highest point is moved to infinity.
    """
    # One point beyond the highest loss, so rounding cannot push an atom to infinity.
    first = math.floor(low / step)
    last = math.floor(high / step) + 1
    mass = np.zeros(last - first + 1)
    infinite = pair.p_inf
    if pair.tails is not None:
        edges = step * np.arange(first, last + 1)
        p_cdf, p_sf, q_cdf, q_sf = pair.tails(edges)
        p_cell = _cells(p_cdf, p_sf)
        q_cell = _cells(q_cdf, q_sf)
        up = _upper_share(p_cell, q_cell, edges[:-1], step)
        mass[1:] += up
        mass[:-1] += p_cell - up
        if edges[0] > pair.low:
            mass[0] += p_cdf[0]
        if edges[-1] < pair.high:
            infinite += float(p_sf[-1])
    if len(pair.losses):
        infinite += _add_atoms(mass, pair, step, first, last)
    return GridLoss(step, first, mass, infinite)


def _cells(cdf, sf):
    """Return the masses of the cells between edges, by differences of the smaller tail."""
    upper = sf[:-1] < cdf[1:]
    return np.maximum(np.where(upper, sf[:-1] - sf[1:], cdf[1:] - cdf[:-1]), 0.0)


def _upper_share(p, q, g, step):
    """Return the part of each cell's mass that belongs at the upper end of [g, g + step]."""
    with np.errstate(over="ignore", invalid="ignore"):
        excess = (p - np.exp(g) * q) / -math.expm1(-step)
    excess[~np.isfinite(excess)] = math.inf
    return np.clip(excess, 0.0, p)


def _add_atoms(mass, pair, step, first, last):
    """Add the atoms of a pair to the masses of a grid, and return the mass at infinity."""
    above = pair.losses > last * step
    inside = ~above
    losses = np.maximum(pair.losses[inside], first * step)
    p = pair.p[inside]
    index = np.clip(np.floor(losses / step).astype(np.int64), first, last - 1)
    upper_fraction = np.clip(-np.expm1(index * step - losses) / -math.expm1(-step), 0.0, 1.0)
    position = index - first
    np.add.at(mass, position + 1, p * upper_fraction)
    np.add.at(mass, position, p * (1.0 - upper_fraction))
    return float(pair.p[above].sum())
