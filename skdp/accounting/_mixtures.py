"""Loss distributions of groups of records under Poisson sampling: mixtures of shifted noise.

The proof that these pairs dominate, and its sources, are in ``docs/theory/accounting.md``, section
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

# Larger groups, and noise or sampling rates outside these ranges, use the general bound on groups.
_MAX_GROUP = 32
_NOISE_RANGE = 1e-2, 1e5
_MIN_RATE = 1e-12
# Number of tabulated losses, from which the search for the position of a loss starts.
_TABLE = 4097
# Maximum number of positions times shifts in one block.
_BLOCK = 1 << 20
# Larger groups end the search for a position at its round-off.
_LARGE_GROUP = 16
# Factor that rounds a loss down by more than its relative error. The logarithm of a weight (at
# least that of the smallest rate to the power of the largest group), and the ratio that cancels it,
# each have an error of a few hundred times 2^-52.
_LOSS_DOWN = 1.0 - 2.0**-43
# Factor that rounds a sum of deltas with the same logarithms up by more than its relative error.
_SUM_UP = 1.0 + 2.0**-40
# Integrals with more positions on either side of 0 are not computed.
_MAX_POSITIONS = 1 << 15
# Logarithm of the relative error of the trapezoidal rule.
_LOG_QUADRATURE_ERROR = -36.0


@dataclass(frozen=True)
class GaussianShifts(FrozenValue):
    """Gaussian noise with standard deviation `sigma`, shifted by integers."""

    sigma: float

    def log_ratio(self, shifts, x):
        """Return ln of the ratio of the shifted density to the unshifted one."""
        return shifts * (x - 0.5 * shifts) / self.sigma**2

    def log_ratio_derivative(self, shifts, x):
        """Return the derivative of `log_ratio` in x."""
        return shifts / self.sigma**2 + 0.0 * x

    def interval_mass(self, low, high):
        """Return the probability of unshifted noise in an interval with one infinite end."""
        z = np.where(np.isneginf(low), high, -low) / self.sigma
        return ndtr(z)

    def log_delta(self, shift, epsilon):
        """Return ln of the hockey-stick divergence of the shifted noise from the unshifted one."""
        mu = shift / self.sigma
        delta = delta_of_mu(mu, epsilon)
        if delta > 1e-290:
            return math.log(delta)
        # delta is at most Phi(-a), which is at most the normal density at a divided by a.
        a = epsilon / mu - 0.5 * mu
        return -0.5 * a * a * (1.0 - 2.0**-50) - math.log(a * math.sqrt(2.0 * math.pi))

    def ends(self, gained, lost):
        """Return the positions between which the loss changes."""
        return -math.inf, math.inf

    def max_position(self, largest, loss):
        """Return a position beyond which all losses are larger than a given loss."""
        return largest + 45.0 * self.sigma + self.sigma**2 * (1.0 + loss)


@dataclass(frozen=True)
class LaplaceShifts(FrozenValue):
    """Laplace noise with scale 1 / `epsilon`, shifted by integers."""

    epsilon: float

    def log_ratio(self, shifts, x):
        """Return ln of the ratio of the shifted density to the unshifted one."""
        return self.epsilon * (2.0 * np.clip(x, 0.0, shifts) - shifts)

    def log_ratio_derivative(self, shifts, x):
        """Return the derivative of `log_ratio` in x."""
        return np.where((x > 0.0) & (x < shifts), 2.0 * self.epsilon, 0.0)

    def interval_mass(self, low, high):
        """Return the probability of unshifted noise in an interval, with a small relative error."""
        # The parts of the interval below and above 0, by their distances from 0.
        below = np.maximum(-high, 0.0), np.maximum(-low, 0.0)
        above = np.maximum(low, 0.0), np.maximum(high, 0.0)
        total = 0.0
        for near, far in (below, above):
            with np.errstate(invalid="ignore"):
                width = np.where(far > near, far - near, 0.0)
            total = total + 0.5 * np.exp(-self.epsilon * near) * -np.expm1(-self.epsilon * width)
        return total

    def log_delta(self, shift, epsilon):
        """Return ln of the hockey-stick divergence of the shifted noise from the unshifted one."""
        largest = shift * self.epsilon
        if epsilon >= largest:
            return -math.inf
        gap = 0.5 * (epsilon - largest)
        if epsilon <= -largest:
            gap = epsilon
        return math.log(-math.expm1(gap))

    def ends(self, gained, lost):
        """Return the positions between which the loss changes."""
        return -float(lost), float(gained)


def has_mixture(event, size):
    """Return True if the mixtures for a group of records in a Poisson-sampled event are known."""
    if not isinstance(event.event, ev.Gaussian | ev.Laplace):
        return False
    noise = next(iter(vars(event.event).values()))
    in_range = _NOISE_RANGE[0] <= noise <= _NOISE_RANGE[1]
    return in_range and size <= _MAX_GROUP and _MIN_RATE <= event.sampling_rate < 1.0


def mixtures(event, size, relation):
    """Return a `Mixture` for each way in which a group of records can change.

    With size 1, it also prices a single replaced record under Laplace noise. Under replace-one, all
    records of the group have different values. Under add/remove, each table has some records that
    the other table lacks; the two numbers add up to the size.

    Parameters
    ----------
    event : PoissonSampled
        Event for which `has_mixture` is True.
    size : int
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    tuple of Mixture
        It contains both orders of the two tables. Its length and order depend only on `size` and
        `relation`: the same change applies to all events of a composition, which therefore composes
        the mixtures with the same index.
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
    return tuple(Mixture(noise, event.sampling_rate, gained, lost) for gained, lost in numbers)


@lru_cache(maxsize=256)
def _log_weights(size, rate):
    """Return the logarithms of the binomial probabilities of the number of sampled records."""
    i = np.arange(size + 1)
    log_choices = np.log([float(math.comb(size, number)) for number in i])
    return log_choices + i * math.log(rate) + (size - i) * math.log1p(-rate)


@dataclass(frozen=True, eq=False)
class Mixture(FrozenValue):
    """A pair (P, Q) of mixtures of noise that is shifted by the number of sampled records.

    P is the noise shifted by i if i of the `gained` records are sampled, and Q is the noise
    shifted by -j if j of the `lost` records are sampled.

    Parameters
    ----------
    noise : GaussianShifts or LaplaceShifts
        The noise, in units of the contribution of one record.
    rate : float in (0, 1)
        The sampling rate.
    gained, lost : int
        Numbers of records that are only in the first table and only in the second table.
    """

    noise: object
    rate: float
    gained: int
    lost: int

    def loss(self, x):
        """Return the privacy loss at positions x, and its derivative."""
        up, up_derivative = self._log_mixture(x, self.gained)
        down, down_derivative = self._log_mixture(-x, self.lost)
        return up - down, up_derivative + down_derivative

    def _log_mixture(self, x, size):
        """Return ln of the ratio of the mixture to the unshifted density, and its derivative."""
        value = np.zeros(x.shape)
        derivative = np.zeros(x.shape)
        if size == 0:
            return value, derivative
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
            values = top + np.log(total)
            # Near 1, the logarithm of the sum would lose digits of a small loss, so log1p is used.
            is_near = slice(None)
            if size > _LARGE_GROUP:
                # The other losses of a large group do not need expm1, which takes a third of the
                # time.
                is_near = np.abs(values) < 0.8
            gain = (weights * np.expm1(np.minimum(ratios[:, is_near], 700.0))).sum(axis=0)
            near = np.log1p(np.clip(gain, -0.5, 1.0))
            values[is_near] = np.where((gain > -0.5) & (gain < 1.0), near, values[is_near])
            value[start : start + block] = values
            derivatives = self.noise.log_ratio_derivative(shifts, part)
            derivative[start : start + block] = (terms * derivatives).sum(axis=0) / total
        return value, derivative

    def position(self, losses):
        """Return the position of each loss, by Newton's method within a bracket.

        The loss increases with the position, so a table of losses yields a bracket, and the sign of
        the residual says which end moves.

        A loss outside the range is set to the nearest end, which may be infinite. The loss at the
        result is the argument up to round-off. Finding the position is ill-conditioned if the loss
        is almost constant around it.
        """
        losses = np.asarray(losses, dtype=float)
        finite = np.abs(losses[np.isfinite(losses)])
        table, table_losses = _loss_table(self, math.ceil(math.log2(1.0 + finite.max(initial=0.0))))
        first, last = self.noise.ends(self.gained, self.lost)
        # After convergence, round-off of the loss can send Newton's method back to bisection, about
        # forty times. Large groups stop at the first step within round-off of the position.
        round_off = 0.0
        if max(self.gained, self.lost) > _LARGE_GROUP:
            round_off = 2.0**-51
        index = np.searchsorted(table_losses, losses)
        lower = table[np.clip(index - 1, 0, len(table) - 1)]
        upper = table[np.clip(index, 0, len(table) - 1)]
        x = 0.5 * (lower + upper)
        pending = np.flatnonzero((index > 0) & (index < len(table)))
        for _ in range(80):
            if not len(pending):
                break
            value, derivative = self.loss(x[pending])
            residual = value - losses[pending]
            upper[pending] = np.where(residual > 0.0, x[pending], upper[pending])
            lower[pending] = np.where(residual > 0.0, lower[pending], x[pending])
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x[pending] - residual / derivative
            is_inside = (newton > lower[pending]) & (newton < upper[pending])
            new_x = np.where(is_inside, newton, 0.5 * (lower[pending] + upper[pending]))
            # The tolerance scales with the sampling rate, as small losses do.
            is_pending = np.abs(residual) > 1e-22 * self.rate + 4e-16 * np.abs(losses[pending])
            is_pending &= new_x != x[pending]
            if round_off:
                is_pending &= np.abs(newton - x[pending]) > round_off * np.abs(x[pending])
            x[pending] = np.where(is_pending, new_x, x[pending])
            pending = pending[is_pending]
        x[index == 0] = first
        x[index == len(table)] = last
        return x

    def _masses(self, low, high, size, sign):
        """Return probabilities of intervals; sampled records shift noise up (1) or down (-1)."""
        total = 0.0
        for i, log_weight in enumerate(_log_weights(size, self.rate)):
            mass = self.noise.interval_mass(low - sign * i, high - sign * i)
            total = total + math.exp(log_weight) * mass
        return total

    def pair(self, num_pairs=1):
        """Return the `LossPair` of the two mixtures, one of `num_pairs` pairs of an event."""
        first, last = self.noise.ends(self.gained, self.lost)
        num_terms = num_pairs * (self.gained + self.lost + 2)

        def masses(low, high):
            return self._masses(low, high, self.gained, 1), self._masses(low, high, self.lost, -1)

        def tails(loss):
            """Return the probabilities below and above a loss, for both mixtures."""
            x = self.position(loss)
            p_cdf, q_cdf = masses(first, x)
            p_sf, q_sf = masses(x, last)
            return p_cdf, p_sf, q_cdf, q_sf

        if math.isinf(last):
            # On the side of the shifted records, their mixture dominates; on the other side, the
            # weight of the unshifted noise bounds the ratio.
            unsampled = math.log1p(-self.rate)
            if self.lost:
                low = -math.inf
            else:
                low = self.gained * unsampled
            if self.gained:
                high = math.inf
            else:
                high = -self.lost * unsampled
            return LossPair(tails, low, high, num_terms=num_terms)
        # The loss of Laplace noise is constant beyond its ends, which gives two atoms.
        losses = self.loss(np.array([first, last]))[0]
        p, q = masses(np.array([-math.inf, last]), np.array([first, math.inf]))
        ends = losses.tolist()
        return LossPair(tails, ends[0], ends[1], losses, p, q, num_terms=num_terms)

    def delta(self, epsilon):
        """Return delta of one release at epsilon >= 0, without cancellation.

        At the position where the loss is epsilon, all terms of P - e^epsilon Q change sign. So the
        hockey-stick divergence is the weighted sum of the divergences of the terms, each relative
        to the unshifted density and at the log ratio of the term at this position.
        """
        if epsilon == math.inf:
            return 0.0
        # A computed loss can be above the exact loss.
        epsilon *= _LOSS_DOWN
        x = float(self.position(np.array([epsilon]))[0])
        if math.isinf(x):
            # epsilon is beyond the supremum of the losses, or beyond the table.
            if self.gained:
                return 1.0
            return 0.0
        total = 0.0
        for size, sign in ((self.gained, 1.0), (self.lost, -1.0)):
            log_weights = _log_weights(size, self.rate)
            ratios = self.noise.log_ratio(np.arange(size + 1.0), sign * x)
            factors = log_weights
            if sign < 0.0:
                factors = epsilon + log_weights + ratios
            for i in range(1, size + 1):
                log_term = float(factors[i]) + self.noise.log_delta(i, sign * float(ratios[i]))
                total += math.exp(min(0.0, log_term))
        return min(1.0, total * _SUM_UP)


# A search for epsilon needs the tables of all mixtures of a group, at several sizes of losses. A
# table has at most 130 kB.
@lru_cache(maxsize=512)
def _loss_table(mixture, log_loss):
    """Return increasing positions and losses that cover losses from -2^log_loss to 2^log_loss."""
    low, high = mixture.noise.ends(mixture.gained, mixture.lost)
    size = max(mixture.gained, mixture.lost)
    if math.isinf(high):
        largest = 2.0 ** min(log_loss, 40) - size * math.log(mixture.rate)
        high = mixture.noise.max_position(size, largest)
        # Most of the mass is near 0, so a finer table covers this region.
        near = min(high, mixture.noise.max_position(size, 50.0))
        table = np.concatenate((np.linspace(-high, high, _TABLE), np.linspace(-near, near, _TABLE)))
        table = np.unique(table)
    else:
        table = np.linspace(low, high, _TABLE)
    return table, np.maximum.accumulate(mixture.loss(table)[0])


def mixtures_renyi(mixtures_of_group, cap):
    """Return a function that maps orders to the mixtures' largest Renyi divergence, at most `cap`.

    This uses the trapezoidal rule with a step h. The density of an outcome at x + iy is at most
    e^(y^2 / (2 sigma^2)) cos(k y / sigma^2)^(1 - order) times that at x, so the relative
    error is at most twice that times e^(-2 pi y / h), for every y < sigma^2 pi / (2 k) (Trefethen
    and Weideman 2014, theorem 5.1).
    """
    sigma = mixtures_of_group[0].noise.sigma
    rate = mixtures_of_group[0].rate
    size = max(max(mixture.gained, mixture.lost) for mixture in mixtures_of_group)
    spread = max(mixture.gained + mixture.lost for mixture in mixtures_of_group)
    sizes = set()
    for mixture in mixtures_of_group:
        sizes |= {mixture.gained, mixture.lost}
    sizes = sorted(sizes)

    def step_of(level):
        """Return the step of the quadrature for the orders of a level."""
        # -(order - 1) ln cos(angle) is at most 13 up to the order 1 + 20 * 4^level.
        angle = 2.0**-level
        y = min(angle * sigma**2 / size, 4.0 * sigma)
        return 2.0 * math.pi * y / (14.0 - _LOG_QUADRATURE_ERROR + 0.5 * (y / sigma) ** 2)

    @lru_cache(maxsize=4)
    def tabulated(level, count):
        """Return the log density of N(0, sigma^2), times the step, and log likelihood ratios.

        The ratios are a dict from each group size to those of its mixture and N(0, sigma^2). Both
        are tables on 2 * count + 1 positions, a step of the level apart. Several orders share them.
        """
        x = step_of(level) * np.arange(-count, count + 1)
        log_density = -0.5 * (x / sigma) ** 2 + math.log(
            step_of(level) / (sigma * math.sqrt(2.0 * math.pi))
        )
        log_terms = mixtures_of_group[0].noise.log_ratio(np.arange(size + 1.0)[:, None], x)
        ratios = {}
        for number in sizes:
            terms = log_terms[: number + 1] + _log_weights(number, rate)[:, None]
            top = terms.max(axis=0)
            ratios[number] = top + np.log(np.exp(terms - top).sum(axis=0))
        return log_density, ratios

    def divergence(order):
        """Return the largest Renyi divergence of the mixtures at an order.

        If the quadrature needs too many positions, it is the bound `cap`.
        """
        level = max(0, math.ceil(0.5 * math.log2((order - 1.0) / 20.0)))
        # The integrand is at most a mixture of normal densities with means up to order * spread.
        count = math.ceil((order * spread + 12.0 * sigma) / step_of(level))
        count = 1 << (count - 1).bit_length()
        if count > _MAX_POSITIONS:
            return cap(order)
        log_density, ratios = tabulated(level, count)
        log_moment = 0.0
        for mixture in mixtures_of_group:
            exponents = log_density + order * ratios[mixture.gained]
            exponents = exponents + (1.0 - order) * ratios[mixture.lost][::-1]
            peak = float(exponents.max())
            log_moment = max(log_moment, peak + math.log(float(np.exp(exponents - peak).sum())))
        # The round-off of exponents of this size, which is divided by order - 1.
        round_off = 1e-13 * (1.0 + abs(log_moment))
        return min(cap(order), (log_moment + round_off) / (order - 1.0))

    return divergence
