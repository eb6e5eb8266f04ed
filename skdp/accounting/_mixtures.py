"""Loss distributions of a group of records under Poisson sampling: mixtures of shifted noise.

The proof that these pairs dominate, and its sources, are in ``docs/accounting.md``, section
"Groups of sampled records".
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from skdp.accounting import _events as ev
from skdp.accounting._gaussian import delta_of_mu
from skdp.accounting._pairs import LossPair
from skdp.utils._values import FrozenValue

# Larger groups, and noise or sampling rates beyond these, keep the general bound on groups.
_MAX_GROUP = 32
_NOISE_RANGE = 1e-2, 1e5
_LEAST_RATE = 1e-12
# Positions at which the loss is tabulated, to start the search for the position of a loss.
_TABLE = 4097
# Numbers of a block of positions times shifts.
_BLOCK = 1 << 20
# More than a loss is off by, relatively: the logarithm of a weight, down to that of the least rate
# to the largest group, and the ratio that makes up for it each have some hundred times 2^-52.
_LOSS_DOWN = 1.0 - 2.0**-43
# More than a sum of deltas is off by, relatively, of which each has the same logarithms.
_SUM_UP = 1.0 + 2.0**-40
# Positions of an integral on either side of 0, beyond which it is not computed.
_MAX_POSITIONS = 1 << 15
# ln of the relative error of the trapezoidal rule.
_LOG_QUADRATURE_ERROR = -36.0


@dataclass(frozen=True)
class GaussianShifts(FrozenValue):
    """Gaussian noise of standard deviation `sigma`, shifted by whole numbers."""

    sigma: float

    def log_ratio(self, shifts, x):
        """ln of the density shifted by each number over the density of no shift."""
        return shifts * (x - 0.5 * shifts) / self.sigma**2

    def slope(self, shifts, x):
        """Derivative of `log_ratio` in x."""
        return shifts / self.sigma**2 + 0.0 * x

    def interval_mass(self, low, high):
        """Probability of unshifted noise in an interval of which one end is infinite."""
        z = np.where(np.isneginf(low), high, -low) / self.sigma
        return ndtr(z)

    def log_delta(self, shift, epsilon):
        """ln of the hockey-stick divergence of the shifted noise from the unshifted one."""
        mu = shift / self.sigma
        delta = delta_of_mu(mu, epsilon)
        if delta > 1e-290:
            return math.log(delta)
        # delta is at most Phi(-a), and that at most the density over a.
        a = epsilon / mu - 0.5 * mu
        return -0.5 * a * a * (1.0 - 2.0**-50) - math.log(a * math.sqrt(2.0 * math.pi))

    def ends(self, gained, lost):
        """Positions between which the loss changes."""
        return -math.inf, math.inf

    def reach(self, largest, loss):
        """Position beyond which all losses up to this one are located."""
        return largest + 45.0 * self.sigma + self.sigma**2 * (1.0 + loss)


@dataclass(frozen=True)
class LaplaceShifts(FrozenValue):
    """Laplace noise of scale 1 / `epsilon`, shifted by whole numbers."""

    epsilon: float

    def log_ratio(self, shifts, x):
        """ln of the density shifted by each number over the density of no shift."""
        return self.epsilon * (2.0 * np.clip(x, 0.0, shifts) - shifts)

    def slope(self, shifts, x):
        """Derivative of `log_ratio` in x."""
        return np.where((x > 0.0) & (x < shifts), 2.0 * self.epsilon, 0.0)

    def interval_mass(self, low, high):
        """Probability of unshifted noise in an interval, relatively accurate."""
        # The parts below and above 0, each from its distances to 0.
        below = np.maximum(-high, 0.0), np.maximum(-low, 0.0)
        above = np.maximum(low, 0.0), np.maximum(high, 0.0)
        total = 0.0
        for near, far in (below, above):
            with np.errstate(invalid="ignore"):
                width = np.where(far > near, far - near, 0.0)
            total = total + 0.5 * np.exp(-self.epsilon * near) * -np.expm1(-self.epsilon * width)
        return total

    def log_delta(self, shift, epsilon):
        """ln of the hockey-stick divergence of the shifted noise from the unshifted one."""
        largest = shift * self.epsilon
        if epsilon >= largest:
            return -math.inf
        gap = epsilon if epsilon <= -largest else 0.5 * (epsilon - largest)
        return math.log(-math.expm1(gap))

    def ends(self, gained, lost):
        """Positions between which the loss changes."""
        return -float(lost), float(gained)


def has_mixture(event, size):
    """Return True if the mixtures of a group of records in a Poisson-sampled event are known."""
    if not isinstance(event.event, ev.Gaussian | ev.Laplace):
        return False
    noise = next(iter(vars(event.event).values()))
    in_range = _NOISE_RANGE[0] <= noise <= _NOISE_RANGE[1]
    return in_range and size <= _MAX_GROUP and _LEAST_RATE <= event.sampling_rate < 1.0


def mixtures(event, size, relation):
    """Return a `Mixture` for each way in which a group of records can change.

    Under replace-one all records have other values. Under add/remove the first table has the
    records that the second lacks, and conversely, of any numbers that add up to the size. Each
    way holds for a whole composition, and the list contains both orders of each.
    """
    inner = event.event
    if isinstance(inner, ev.Gaussian):
        noise = GaussianShifts(inner.noise_multiplier)
    else:
        noise = LaplaceShifts(inner.epsilon)
    if relation == "replace_one":
        numbers = [(size, size)]
    else:
        numbers = [(gained, size - gained) for gained in range(size, -1, -1)]
    return tuple(Mixture(noise, event.sampling_rate, *each) for each in numbers)


@lru_cache(maxsize=256)
def _log_weights(size, rate):
    """Logarithms of the binomial probabilities of the sampled number of records."""
    i = np.arange(size + 1)
    log_choices = np.log([float(math.comb(size, each)) for each in i])
    return log_choices + i * math.log(rate) + (size - i) * math.log1p(-rate)


@dataclass(frozen=True, eq=False)
class Mixture(FrozenValue):
    """Pair of mixtures of noise: shifted up by the sampled records of one table, or down.

    P is the noise shifted by i, where i of `gained` records are sampled, and Q the noise
    shifted by -j, where j of `lost` records are.

    Parameters
    ----------
    noise : GaussianShifts or LaplaceShifts
        In units of the contribution of one record.
    rate : float in (0, 1)
        The sampling rate.
    gained, lost : int
        Numbers of records.
    """

    noise: object
    rate: float
    gained: int
    lost: int

    def loss(self, x):
        """Privacy loss at positions and its derivative."""
        up, up_slope = self._log_mixture(x, self.gained)
        down, down_slope = self._log_mixture(-x, self.lost)
        return up - down, up_slope + down_slope

    def _log_mixture(self, x, size):
        """ln of the mixture of positive shifts over the density of no shift, and its slope."""
        value = np.zeros(x.shape)
        slope = np.zeros(x.shape)
        if size == 0:
            return value, slope
        log_weights = _log_weights(size, self.rate)[:, None]
        weights = np.exp(log_weights)
        shifts = np.arange(size + 1.0)[:, None]
        block = max(1, _BLOCK // (size + 1))
        for start in range(0, len(x), block):
            part = x[start : start + block][None, :]
            ratios = self.noise.log_ratio(shifts, part)
            terms = log_weights + ratios
            top = terms.max(axis=0)
            terms = np.exp(terms - top)
            total = terms.sum(axis=0)
            # The logarithm of a sum near 1 would lose the digits of a small loss.
            gain = (weights * np.expm1(np.minimum(ratios, 700.0))).sum(axis=0)
            near = np.log1p(np.clip(gain, -0.5, 1.0))
            is_near = (gain > -0.5) & (gain < 1.0)
            value[start : start + block] = np.where(is_near, near, top + np.log(total))
            slopes = self.noise.slope(shifts, part)
            slope[start : start + block] = (terms * slopes).sum(axis=0) / total
        return value, slope

    def position(self, losses):
        """Position of each loss; an infinite one, or an end, for a loss that is out of reach.

        By Newton's method within a bracket. The loss at the position found is the one wanted, up
        to round-off. The position itself is ill-conditioned where the loss hardly changes.
        """
        losses = np.asarray(losses, dtype=float)
        finite = np.abs(losses[np.isfinite(losses)])
        table, known = _table_of(self, math.ceil(math.log2(1.0 + finite.max(initial=0.0))))
        first, last = self.noise.ends(self.gained, self.lost)
        index = np.searchsorted(known, losses)
        lower = table[np.clip(index - 1, 0, len(table) - 1)]
        upper = table[np.clip(index, 0, len(table) - 1)]
        x = 0.5 * (lower + upper)
        wanted = np.flatnonzero((index > 0) & (index < len(table)))
        for _ in range(80):
            if not len(wanted):
                break
            value, slope = self.loss(x[wanted])
            miss = value - losses[wanted]
            upper[wanted] = np.where(miss > 0.0, x[wanted], upper[wanted])
            lower[wanted] = np.where(miss > 0.0, lower[wanted], x[wanted])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = x[wanted] - miss / slope
            is_inside = (step > lower[wanted]) & (step < upper[wanted])
            moved = np.where(is_inside, step, 0.5 * (lower[wanted] + upper[wanted]))
            # Small losses are relative to the sampling rate.
            is_open = np.abs(miss) > 1e-22 * self.rate + 4e-16 * np.abs(losses[wanted])
            is_open &= moved != x[wanted]
            x[wanted] = np.where(is_open, moved, x[wanted])
            wanted = wanted[is_open]
        x[index == 0] = first
        x[index == len(table)] = last
        return x

    def _masses(self, low, high, size, sign):
        """Probability of intervals where a number of records shifts the noise up or down."""
        total = 0.0
        for i, log_weight in enumerate(_log_weights(size, self.rate)):
            mass = self.noise.interval_mass(low - sign * i, high - sign * i)
            total = total + math.exp(log_weight) * mass
        return total

    def pair(self):
        """`LossPair` of the two mixtures."""
        first, last = self.noise.ends(self.gained, self.lost)

        def masses(low, high):
            return self._masses(low, high, self.gained, 1), self._masses(low, high, self.lost, -1)

        def tails(loss):
            x = self.position(loss)
            (p_cdf, q_cdf), (p_sf, q_sf) = masses(first, x), masses(x, last)
            return p_cdf, p_sf, q_cdf, q_sf

        if math.isinf(last):
            unsampled = math.log1p(-self.rate)
            low = -math.inf if self.lost else self.gained * unsampled
            high = math.inf if self.gained else -self.lost * unsampled
            return LossPair(tails, low, high)
        # The loss of Laplace noise is constant beyond its ends: two atoms.
        losses = self.loss(np.array([first, last]))[0]
        p, q = masses(np.array([-math.inf, last]), np.array([first, math.inf]))
        return LossPair(tails, float(losses[0]), float(losses[1]), losses, p, q)

    def delta(self, epsilon):
        """delta of one release at epsilon >= 0, without cancellation.

        At the position whose loss is epsilon, all terms of P - e^epsilon Q change their sign, so
        that the hockey-stick divergence is the weighted sum of those of the terms, each from the
        density of no shift and at its own ratio there.
        """
        if epsilon == math.inf:
            return 0.0
        # A computed loss can be above the one it represents.
        epsilon *= _LOSS_DOWN
        x = float(self.position(np.array([epsilon]))[0])
        if math.isinf(x):
            # Beyond the least upper bound of the losses, or of the table.
            return 1.0 if self.gained else 0.0
        total = 0.0
        for size, sign in ((self.gained, 1.0), (self.lost, -1.0)):
            log_weights = _log_weights(size, self.rate)
            ratios = self.noise.log_ratio(np.arange(size + 1.0), sign * x)
            factors = log_weights if sign > 0.0 else epsilon + log_weights + ratios
            for i in range(1, size + 1):
                log_term = float(factors[i]) + self.noise.log_delta(i, sign * float(ratios[i]))
                total += math.exp(min(0.0, log_term))
        return min(1.0, total * _SUM_UP)


@lru_cache(maxsize=128)
def _table_of(mixture, log_loss):
    """Positions and losses, increasing, that reach up to the loss 2^log_loss either way."""
    low, high = mixture.noise.ends(mixture.gained, mixture.lost)
    size = max(mixture.gained, mixture.lost)
    if math.isinf(high):
        largest = 2.0 ** min(log_loss, 40) - size * math.log(mixture.rate)
        high = mixture.noise.reach(size, largest)
        # Most of the mass is near 0, however far the largest loss asked for.
        near = min(high, mixture.noise.reach(size, 50.0))
        table = np.concatenate((np.linspace(-high, high, _TABLE), np.linspace(-near, near, _TABLE)))
        table = np.unique(table)
    else:
        table = np.linspace(low, high, _TABLE)
    return table, np.maximum.accumulate(mixture.loss(table)[0])


def gaussian_renyi(group, cap):
    """Function of orders: the largest Renyi divergence of mixtures of one noise, at most `cap`.

    By the trapezoidal rule with a step h. The density of an outcome at x + iy is at most
    e^(y^2 / (2 sigma^2)) cos(k y / sigma^2)^(1 - order) times that at x, so that the relative
    error is at most twice that times e^(-2 pi y / h), for every y < sigma^2 pi / (2 k) (Trefethen
    and Weideman 2014, theorem 5.1).
    """
    sigma = group[0].noise.sigma
    rate = group[0].rate
    size = max(max(each.gained, each.lost) for each in group)
    spread = max(each.gained + each.lost for each in group)
    sizes = sorted({number for each in group for number in (each.gained, each.lost)})

    def step_of(level):
        # (order - 1) -ln cos(angle) is at most 13 up to the order 1 + 20 * 4^level.
        angle = 2.0**-level
        y = min(angle * sigma**2 / size, 4.0 * sigma)
        return 2.0 * math.pi * y / (14.0 - _LOG_QUADRATURE_ERROR + 0.5 * (y / sigma) ** 2)

    @lru_cache(maxsize=4)
    def tabulated(level, count):
        x = step_of(level) * np.arange(-count, count + 1)
        log_density = -0.5 * (x / sigma) ** 2 + math.log(
            step_of(level) / (sigma * math.sqrt(2.0 * math.pi))
        )
        log_terms = group[0].noise.log_ratio(np.arange(size + 1.0)[:, None], x)
        ratios = {}
        for number in sizes:
            terms = log_terms[: number + 1] + _log_weights(number, rate)[:, None]
            top = terms.max(axis=0)
            ratios[number] = top + np.log(np.exp(terms - top).sum(axis=0))
        return log_density, ratios

    def curve(order):
        level = max(0, math.ceil(0.5 * math.log2((order - 1.0) / 20.0)))
        # The integrand is a mixture, or below one, of normal densities with means up to this.
        count = math.ceil((order * spread + 12.0 * sigma) / step_of(level))
        count = 1 << (count - 1).bit_length()
        if count > _MAX_POSITIONS:
            return cap(order)
        log_density, ratios = tabulated(level, count)
        log_moment = 0.0
        for each in group:
            exponents = log_density + order * ratios[each.gained]
            exponents = exponents + (1.0 - order) * ratios[each.lost][::-1]
            peak = float(exponents.max())
            log_moment = max(log_moment, peak + math.log(float(np.exp(exponents - peak).sum())))
        # Round-off of exponents of this size, which a low order would divide by order - 1.
        round_off = 1e-13 * (1.0 + abs(log_moment))
        return min(cap(order), (log_moment + round_off) / (order - 1.0))

    return curve
