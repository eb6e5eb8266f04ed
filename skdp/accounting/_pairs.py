"""Dominating pairs of single events, as distributions of the privacy loss.

A pair (P, Q) is kept as what P and Q say about the loss L = ln(dP/dQ) (Sommer, Meiser and
Mohammadi 2019; Zhu, Dong and Wang 2022), so that sampling is a change of variable.
"""

import math
from collections.abc import Callable
from dataclasses import field

import numpy as np
from scipy.special import ndtr

from skdp.utils._values import FrozenValue

_MAX_ATOMS = 4_000_000


class LossPair(FrozenValue):
    """Losses of a pair (P, Q).

    `tails` maps losses l to (P(L <= l), P(L > l), Q(L <= l), Q(L > l)) of the continuous part
    (None: there is none), whose support is [low, high], each tail accurate where it is the
    smaller one. `p_inf` is P(L = inf) and `q_inf` is Q(L = -inf).
    """

    tails: Callable | None = None
    low: float = 0.0
    high: float = 0.0
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))
    p: np.ndarray = field(default_factory=lambda: np.zeros(0))
    q: np.ndarray = field(default_factory=lambda: np.zeros(0))
    p_inf: float = 0.0
    q_inf: float = 0.0
    spacing: float | None = None

    def reversed(self) -> "LossPair":
        """The pair (Q, P)."""

        def tails(loss):
            p_cdf, p_sf, q_cdf, q_sf = self.tails(-loss)
            return q_sf, q_cdf, p_sf, p_cdf

        atoms = -self.losses[::-1], self.q[::-1], self.p[::-1], self.q_inf, self.p_inf
        return LossPair(self.tails and tails, -self.high, -self.low, *atoms, self.spacing)


def gaussian(mu):
    def tails(loss):
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
    small = 0.5 * math.exp(-epsilon)

    def far(width):
        if epsilon > 600.0:
            return 0.5 * (np.exp(width - epsilon) - math.exp(-epsilon))
        return small * np.expm1(width)

    def tails(loss):
        above = np.clip(0.5 * (epsilon - loss), 0.0, epsilon)
        below = np.clip(0.5 * (epsilon + loss), 0.0, epsilon)
        return far(below), -0.5 * np.expm1(-above), -0.5 * np.expm1(-below), far(above)

    losses, p = np.array([-epsilon, epsilon]), np.array([small, 0.5])
    return LossPair(tails, -epsilon, epsilon, losses, p, p[::-1], spacing=epsilon)


def bounded_range(epsilon):
    """The largest of the two-point curves, e^epsilon (1 - e^((l-epsilon)/2))^2 / (e^epsilon - 1).

    Dong, Durfee and Rogers (2020) give the two-point pairs; the largest delta over them, in
    closed form, is itself a privacy curve (Zhu, Dong and Wang 2022).
    """
    whole = -math.expm1(-epsilon)

    def tails(loss):
        loss = np.clip(loss, -epsilon, epsilon)
        upper, lower = -np.expm1(0.5 * (loss - epsilon)), -np.expm1(-0.5 * (loss + epsilon))
        q_sf = np.exp(-0.5 * (loss + epsilon)) * upper
        p_cdf = np.exp(0.5 * (loss - epsilon)) * lower
        return p_cdf / whole, upper / whole, lower / whole, q_sf / whole

    return LossPair(tails, -epsilon, epsilon)


def _atoms(losses, p, q, p_inf=0.0, q_inf=0.0, spacing=None):
    losses, p, q = (np.asarray(values, dtype=float) for values in (losses, p, q))
    order = np.argsort(losses, kind="stable")
    return LossPair(None, 0.0, 0.0, losses[order], p[order], q[order], p_inf, q_inf, spacing)


def response(epsilon, num_categories=2, delta=0.0):
    """Randomised response; with delta the four-point pair (Kairouz, Oh and Viswanath 2015)."""
    if epsilon == 0.0:
        return _atoms([0.0], [1.0 - delta], [1.0 - delta], delta, delta)
    others = (num_categories - 1.0) * math.exp(-epsilon)
    top = (1.0 - delta) / (1.0 + others)
    low = top * math.exp(-epsilon)
    middle = (num_categories - 2.0) * low
    return _atoms(
        [-epsilon, 0.0, epsilon], [low, middle, top], [top, middle, low], delta, delta, epsilon
    )


def discrete_laplace(scale, sensitivity):
    a = 1.0 / scale
    if sensitivity > _MAX_ATOMS:
        return response(sensitivity * a)
    x = np.arange(1, sensitivity, dtype=float)
    edge, inside = 1.0 / (1.0 + math.exp(-a)), -math.expm1(-a) / (1.0 + math.exp(-a))
    far = edge * math.exp(-a * sensitivity)
    losses = np.concatenate(([a * sensitivity], a * (sensitivity - 2.0 * x), [-a * sensitivity]))
    p = np.concatenate(([edge], inside * np.exp(-a * x), [far]))
    return _atoms(losses, p, p[::-1], spacing=a)


def discrete_gaussian(sigma, sensitivity):
    reach = math.ceil((38.0 if sigma < 1e4 else 14.0) * sigma) + sensitivity + 1
    if 2 * reach > _MAX_ATOMS:
        raise ValueError(
            f"a discrete Gaussian of sigma={sigma:g} grid units has too many atoms for its "
            "exact distribution; use method 'rdp' or 'zcdp', or a Gaussian event"
        )
    x = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-0.5 * (x / sigma) ** 2)
    total = math.fsum(weights) if len(x) < 10_000 else float(weights.sum())
    losses = (0.5 * sensitivity - x) * (sensitivity / sigma**2)
    p = weights / total
    q = np.exp(-0.5 * ((x - sensitivity) / sigma) ** 2) / total
    # Beyond 38 sigma there is less than e^-722, and what has underflowed is off by less than this.
    tail = 1e-314 if sigma < 1e4 else 1e-40
    keep = (p > 0.0) | (q > 0.0)
    return _atoms(losses[keep], p[keep], q[keep], tail, tail, sensitivity / sigma**2)
