"""Privacy loss distributions on a grid by connect-the-dots (Doroshenko et al. 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from skdp.accounting._pairs import LossPair

__all__ = ["GridLoss", "discretise", "loss_range"]


@dataclass(frozen=True)
class GridLoss:
    """P-mass `mass[i]` at the loss (first + i) * step, and `infinite` at infinity."""

    step: float
    first: int
    mass: np.ndarray
    infinite: float

    @property
    def losses(self) -> np.ndarray:
        return self.step * np.arange(self.first, self.first + len(self.mass))

    def log_moment(self, tilts: np.ndarray) -> np.ndarray:
        """ln E_P[e^(t L); L finite] at each tilt t."""
        keep = self.mass > 0.0
        log_mass, losses = np.log(self.mass[keep]), self.losses[keep]
        result = np.empty(len(tilts))
        for i, tilt in enumerate(tilts):
            exponent = log_mass + tilt * losses
            top = float(exponent.max())
            result[i] = top + math.log(float(np.exp(exponent - top).sum()))
        return result


_LADDER = 2.0 ** np.arange(-44.0, 60.0)


def _quantile(tail, mass):
    """The least l found, on a fine ladder, beyond which `tail` (decreasing) is <= mass."""
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
    """The losses outside of which P has at most `mass` on each side, atoms included."""
    low = float(pair.losses[0]) if len(pair.losses) else math.inf
    high = float(pair.losses[-1]) if len(pair.losses) else -math.inf
    if len(pair.losses) > 100:
        above = np.cumsum(pair.p[::-1])[::-1]
        high = float(pair.losses[max(0, int(np.count_nonzero(above > mass)) - 1)])
        low = float(pair.losses[min(np.count_nonzero(np.cumsum(pair.p) <= mass), len(above) - 1)])
    if pair.tails is not None:
        bottom, top = pair.low, pair.high
        bottom = max(bottom, -_quantile(lambda x: pair.tails(-x)[0], mass))
        if top == math.inf or top > 1.0:
            top = min(top, _quantile(lambda x: pair.tails(x)[1], mass))
        low, high = min(low, bottom), max(high, top)
    return low, max(low, high)


def discretise(pair: LossPair, step: float, low: float, high: float) -> GridLoss:
    """The tightest pessimistic distribution on the grid of `step`, losses kept in [low, high].

    The mass of each cell [g, g + step] is split between its ends so that both P and Q keep
    theirs: (P - e^g Q) / (1 - e^-step) at g + step and the rest at g. What lies below the
    lowest point is moved up to it; what lies above the highest is mass at infinity.
    """
    # One point beyond the highest loss, so that rounding cannot push an atom to infinity.
    first, last = math.floor(low / step), math.floor(high / step) + 1
    mass = np.zeros(last - first + 1)
    infinite = pair.p_inf
    if pair.tails is not None:
        edges = step * np.arange(first, last + 1)
        p_cdf, p_sf, q_cdf, q_sf = pair.tails(edges)
        p_cell, q_cell = _cells(p_cdf, p_sf), _cells(q_cdf, q_sf)
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
    """Masses of the cells between edges, by differences of the smaller tail."""
    upper = sf[:-1] < cdf[1:]
    return np.maximum(np.where(upper, sf[:-1] - sf[1:], cdf[1:] - cdf[:-1]), 0.0)


def _upper_share(p, q, g, step):
    with np.errstate(over="ignore", invalid="ignore"):
        excess = (p - np.exp(g) * q) / -math.expm1(-step)
    excess[~np.isfinite(excess)] = math.inf
    return np.clip(excess, 0.0, p)


def _add_atoms(mass, pair, step, first, last):
    above = pair.losses > last * step
    inside = ~above
    losses, p = np.maximum(pair.losses[inside], first * step), pair.p[inside]
    index = np.clip(np.floor(losses / step).astype(np.int64), first, last - 1)
    share = np.clip(-np.expm1(index * step - losses) / -math.expm1(-step), 0.0, 1.0)
    position = index - first
    mass += np.bincount(position + 1, p * share, minlength=len(mass))[: len(mass)]
    mass += np.bincount(position, p * (1.0 - share), minlength=len(mass))[: len(mass)]
    return float(pair.p[above].sum())
