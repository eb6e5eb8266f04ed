"""Composition of privacy loss distributions with one tilted transform."""

import math
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from skdp.accounting import _events as ev
from skdp.accounting._advanced import total_delta
from skdp.accounting._laws import privacy_of
from skdp.accounting._pairs import GridLoss, discretize, loss_range
from skdp.utils._rounding import sum_up
from skdp.utils._types import Relation
from skdp.utils._values import FrozenValue

# Maximum number of grid cells for one event.
_MAX_CELLS = 1 << 21
# Maximum number of cells for all distinct events together.
_MAX_TOTAL_CELLS = 1 << 24
# Maximum number of cells times densities per cell, for all distinct events and all pairs of an
# event together. For the mixtures of a group, finding the position of a loss takes several
# evaluations of every density. A grid with fewer cells is coarser, but its bound is still an upper
# bound. With this number, the price of a group of 32 records in 1e9 samples takes about ten
# seconds; with half of it, it takes 2.5 seconds, and its epsilon is 12.5 instead of 9.7.
_MAX_TERMS = 31 << 20
# Number of cells for a composition without a transform, whose time is quadratic in this number.
_DIRECT_CELLS = 1 << 13
# Bounds with a tolerance of at least _ROUGH use at most _MAX_ROUGH_CELLS cells.
_ROUGH = 1e-3
_MAX_ROUGH_CELLS = 1 << 18
# A lattice of atoms is used unless its spacing is smaller than the step by this factor.
_LATTICE_CELLS = 16.0
# Maximum number of products of masses in a composition without a transform.
_MAX_PRODUCTS = 1 << 31
# Deltas of compositions are rounded up to this value, because the masses in smaller sums lose
# digits.
_MIN_DELTA = 1e-300
# The fraction of delta that one release, or one convolution, may move to infinity.
_TRIMMED = 1e-6
# Half a unit in the last place, as a relative error.
_UNIT = 2.0**-53
# Number of cells in the coarse grids on which tilts are chosen.
_COARSE_CELLS = 3000
# Tilts to try; a tilt is a Renyi order minus 1.
_TILTS = np.concatenate(([0.0], np.geomspace(1e-3, 1e5, 49)))
# Width of the losses that are kept after a transform; e^-600 is near the smallest float.
_MAX_WIDTH = 600.0
# Maximum number of releases: a composition of T releases multiplies round-off by T.
_MAX_RELEASES = 10**9


@dataclass(frozen=True)
class _Part(FrozenValue):
    """One distinct event of a composition: its pair, count, loss range and coarse grid."""

    pair: object
    count: int
    low: float
    high: float
    coarse: GridLoss


@dataclass(frozen=True)
class _Total(FrozenValue):
    """The distribution of the total loss for one order of the tables.

    Parameters
    ----------
    step : float
        The spacing of the grid.
    losses, masses : ndarray
        The losses of the grid, and their probabilities under P.
    beyond : float
        The probability of losses beyond the grid, which count as infinite.
    log_round_off : float
        The round-off of one release adds about c e^(-tilt epsilon) to delta; this is ln c.
    width : float
        The width of the window of the transform.
    """

    step: float
    losses: np.ndarray
    masses: np.ndarray
    beyond: float
    log_round_off: float = -math.inf
    width: float = math.inf

    @cached_property
    def profile(self):
        """The deltas at the losses, and e^loss times the Q-mass from each loss up."""
        # Imported here, because scipy.signal takes a twentieth of the time of importing skdp.
        from scipy.signal import lfilter

        # The deltas are sums of positive terms. The factor e^loss alone could overflow, so a
        # recursion computes the product.
        decay = math.nextafter(math.exp(-self.step), 1.0)
        q_above = lfilter([1.0], [1.0, -decay], self.masses[::-1])[::-1]
        pieces = q_above * -math.expm1(-self.step)
        return np.append(np.cumsum(pieces[::-1])[::-1][1:], 0.0), q_above

    def epsilon(self, delta):
        """Return the smallest epsilon at delta; delta is linear in e^epsilon between losses."""
        losses = self.losses
        grid_delta = delta - self.beyond
        if grid_delta < 0.0 or not len(losses):
            return math.inf
        deltas, q_above = self.profile
        index = int(np.argmax(deltas <= grid_delta))
        if index == 0:
            return max(0.0, float(losses[0]))
        # Below losses[index], delta increases by (e^l - e^epsilon) times the Q-mass of larger
        # losses.
        growth = (grid_delta - deltas[index]) / q_above[index]
        if growth >= 1.0:
            return max(0.0, float(losses[index - 1]))
        return max(0.0, float(losses[index]) + math.log1p(-growth))

    def delta(self, epsilon):
        """Return delta at epsilon."""
        above = self.losses > epsilon
        grid_delta = self.masses[above] @ -np.expm1(epsilon - self.losses[above])
        return min(1.0, float(grid_delta) + self.beyond)

    def decay_rate(self, epsilon, delta):
        """Return -d ln delta / d epsilon, the analogue of order - 1 in a Renyi bound."""
        above = self.losses > epsilon
        return float(self.masses[above] @ np.exp(epsilon - self.losses[above])) / delta

    def noise(self, releases, tilt, epsilon):
        """Return a bound on the round-off in delta due to the releases and one transform."""
        log_noise = math.log(releases + 100.0) + self.log_round_off - tilt * epsilon
        return math.exp(min(0.0, log_noise))


def _directions(parts, relation):
    """Return the (pair, count) of every event, for each order of the two tables."""
    pairs = [(privacy_of(event, relation).pairs(), count) for event, count in parts.items()]
    width = max(len(pair) for pair, _ in pairs)
    return [[(pair[min(i, len(pair) - 1)], count) for pair, count in pairs] for i in range(width)]


def _coarse_parts(direction, delta):
    """Return a `_Part` for every (pair, count), whose loss range is wide enough for delta."""
    total = sum(count for _, count in direction)
    result = []
    for pair, count in direction:
        mass = max(delta, 1e-290) * 1e-9 / total
        low, high = loss_range(pair, mass)
        # The range has width 0 if all losses are beyond the ladder of `loss_range`.
        step = max(high - low, 1e-12 * abs(high), 1e-300) / _COARSE_CELLS
        result.append(_Part(pair, count, low, high, discretize(pair, step, low, high)))
    return result


def _log_moment(parts, tilts):
    """Return the logarithms of the moments E_P[e^(tilt L)] of the total loss, on coarse grids."""
    with np.errstate(over="ignore"):
        return sum(part.count * part.coarse.log_moment(tilts) for part in parts)


def _least_over_tilts(bound):
    """Return (tilt, value) at the minimum of a function of tilts, on nested grids.

    A tilt is a Renyi order minus 1; every tilt gives a valid bound.
    """
    tilts = _TILTS[1:]
    for _ in range(2):
        values = bound(tilts)
        best = int(np.nanargmin(values))
        low, high = tilts[max(best - 1, 0)], tilts[min(best + 1, len(tilts) - 1)]
        result = float(tilts[best]), float(values[best])
        tilts = np.geomspace(low, high, 13)
    return result


def _rdp_tilt(parts, delta):
    """Return (tilt, epsilon) of the best Renyi order of the coarse distributions."""

    def bound(tilts):
        """Return the epsilons that the Renyi divergences at orders 1 + tilt imply."""
        orders = 1.0 + tilts
        slack = np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / tilts
        return _log_moment(parts, tilts) / tilts + slack

    return _least_over_tilts(bound)


def _delta_tilt(parts, epsilon):
    """Return (tilt, delta) of the best Renyi order at an epsilon."""

    def log_delta(tilts):
        """Return the logarithms of the deltas that the Renyi divergences imply."""
        orders = 1.0 + tilts
        values = _log_moment(parts, tilts) - tilts * epsilon
        return values + tilts * np.log1p(-1.0 / orders) - np.log(orders)

    tilt, value = _least_over_tilts(log_delta)
    return tilt, math.exp(min(0.0, value))


def _step(parts, tilt, epsilon, tolerance, width, max_cells=_MAX_CELLS):
    """Return a grid step for an error in epsilon of about tolerance * min(1, epsilon).

    Each release adds at most about step^2 / 12 to the variance of the total loss, which changes
    epsilon by about (tilt + 1) / 2 times as much. The factor below was checked against finer
    grids. If epsilon is far below 1 / tilt, delta barely depends on it, and the error is about
    tolerance * 0.01 / tilt. If all atoms are on a common lattice, the grid contains it.
    """
    total = sum(part.count for part in parts)
    order = max(1.0, tilt + 1.0)
    max_error = tolerance * min(1.0, max(epsilon, 1e-2 / order))
    step = math.sqrt(6.0 * max_error / (order * (total + 6.0)))
    max_cells = min(max_cells, max(_MAX_TOTAL_CELLS // len(parts), _COARSE_CELLS))
    num_terms = sum(part.pair.num_terms for part in parts if part.pair.num_terms > 1)
    if num_terms:
        max_cells = min(max_cells, max(_MAX_TERMS // num_terms, _COARSE_CELLS))
    if tolerance >= _ROUGH:
        max_cells = min(max_cells, _MAX_ROUGH_CELLS)
    max_width = max(width, *(part.high - part.low for part in parts))
    step = max(step, max_width / max_cells)
    spacings = {part.pair.spacing for part in parts} - {None}
    # A lattice far finer than the step would need too many cells.
    if len(spacings) == 1 and min(spacings) > step / _LATTICE_CELLS:
        spacing = spacings.pop()
        if all(part.pair.spacing and part.pair.tails is None for part in parts):
            # The losses of atoms are multiples of half the spacing.
            step = max(step, 0.5 * spacing)
        step = spacing / max(1, math.ceil(spacing / step))
        step = max(step, max_width / (2.0 * max_cells))
    return step


def _window(parts, tilt, epsilon, delta):
    """Return the ends of a window of the total loss, and ln P(loss > its upper end).

    P has at most delta * 1e-9 above the window. The transform is periodic, so mass beyond one end
    of the window reappears at the other end. The tilted mass below the window is 1e-12. The window
    is long enough that all but 1e-12 of the tilted mass above it reappears below epsilon, where it
    does not count.
    """
    tilts = np.unique(np.concatenate((_TILTS[1:], max(tilt, 1e-3) * np.geomspace(0.5, 8.0, 9))))
    moments = _log_moment(parts, tilts)
    log_tail = math.log(max(delta, 1e-300)) - 21.0
    high = float(np.min((moments - log_tail) / tilts))
    here = float(_log_moment(parts, np.array([tilt]))[0])
    spread = np.geomspace(1e-2, 1e4, 25)
    lower = _log_moment(parts, tilt - spread)
    upper = _log_moment(parts, tilt + spread)
    min_loss = math.fsum(part.count * part.low for part in parts)
    max_loss = math.fsum(part.count * part.high for part in parts)
    low = min(epsilon, max_loss, max(min_loss, float(np.max((here - lower - 28.0) / spread))))
    tilted_end = min(max_loss, float(np.min((upper - here + 28.0) / spread)))
    high = min(max(high, low, low + tilted_end - 0.5 * (low + epsilon)), max_loss)
    if high == max_loss:
        return low, high, -math.inf
    return low, high, float(np.min(moments - tilts * high))


def _power(values, count):
    """Return values**count by repeated squaring; the array of values is overwritten."""
    result = None
    # Products are written into reused arrays, because allocating long arrays takes longer than the
    # arithmetic. NumPy rounds a product differently if it overwrites one of its factors.
    spare = spare_result = None
    while count:
        if count & 1:
            if result is None:
                result = values
                if count > 1:
                    result = values.copy()
            else:
                product = np.multiply(result, values, out=spare_result)
                result, spare_result = product, result
        count >>= 1
        if count:
            square = np.multiply(values, values, out=spare)
            values, spare = square, values
    return result


def _compose(parts, tilt, epsilon, delta, tolerance, order):
    """Return the total loss inside a window, with a Fourier transform.

    Losses far above epsilon count as infinite. The tolerance and the Renyi order determine the
    grid step.
    """
    low, high, log_tail = _window(parts, tilt, epsilon, delta)
    step = _step(parts, order - 1.0, epsilon, tolerance, high - low)
    grids = [discretize(part.pair, step, part.low, part.high) for part in parts]
    # The grid may extend below the smallest loss by up to one step per release, but usually by far
    # less.
    total = sum(part.count for part in parts)
    start = math.floor(low / step) - 1 - math.ceil(min(total, 20.0 * total**0.5, 1 << 16))
    stop = math.ceil(high / step) + 2
    if log_tail == -math.inf:
        stop = sum(p.count * (g.first + len(g.mass)) for p, g in zip(parts, grids, strict=True))
    if stop - start >= _MAX_TOTAL_CELLS:
        # Losses of this size are covered by other bounds.
        return _Total(step, np.zeros(0), np.zeros(0), 1.0)
    length = next_fast_len(stop - start + 1, real=True)
    log_total = 0.0
    offset = 0
    log_finite = 0.0
    product = 1.0
    for part, grid in zip(parts, grids, strict=True):
        tilted, log_moment = _tilted(grid, tilt)
        # Masses beyond the end reappear at the start; `rfft` pads shorter ones with zeros.
        folded = tilted
        if len(tilted) > length:
            folded = np.pad(tilted, (0, -len(tilted) % length)).reshape(-1, length).sum(axis=0)
        product = product * _power(rfft(folded, length), part.count)
        log_total += part.count * log_moment
        offset += part.count * grid.first
        log_finite += part.count * math.log1p(-min(grid.infinite, 1.0 - 1e-16))
    density = np.roll(irfft(product, length), -((start - offset) % length))
    del product
    losses = step * np.arange(start, start + length)
    # The arrays are long, so allocating new arrays would take longer than the arithmetic.
    masses = tilt * losses
    np.subtract(log_total, masses, out=masses)
    np.minimum(masses, 700.0, out=masses)
    masses = np.exp(masses)
    largest_density = float(density.max())
    masses *= np.maximum(density, 0.0, out=density)
    # Far below the tilted mean, the weight magnifies round-off, so probabilities are limited to 1.
    np.minimum(masses, 1.0, out=masses)
    mass_beyond = -math.expm1(log_finite) + math.exp(min(0.0, log_tail))
    round_off = math.exp(1e-14 * (total + 1e4))
    n_cells = min(high - low, 1.0 / max(tilt, 1e-300)) / step + 1.0
    noise = math.log(2.0**-52 * largest_density * n_cells)
    cut = max(epsilon, low) + 0.5 * _MAX_WIDTH
    is_near = np.abs(losses - cut + 0.5 * _MAX_WIDTH) <= 0.5 * _MAX_WIDTH
    mass_beyond += float(masses[losses > cut].sum())
    losses = losses[is_near]
    masses = masses[is_near] * round_off
    mass_beyond = mass_beyond * round_off
    return _Total(step, _raised(losses, parts), masses, mass_beyond, log_total + noise, high - low)


def _compose_directly(parts, step, delta):
    """Return an upper bound on the total loss without a transform; None if it would be too slow.

    The round-off of a transform is relative to the largest tilted mass. If delta is due only to
    rare samples, this round-off is larger than delta for every tilt. If a convolution is summed
    term by term, the relative error of every mass is small, even for tiny masses.

    Mass trimmed at the upper end, at most about 1e-5 of delta, is moved to infinity. Mass trimmed
    at the lower end is moved up to the lowest remaining loss.
    """
    total = sum(part.count for part in parts)
    trimmed_mass = _TRIMMED * delta / total
    result = None
    cells = 0
    products = 0
    for part in parts:
        grid = discretize(part.pair, step, *loss_range(part.pair, trimmed_mass))
        if _needs_more_cells(grid, part.count):
            return None
        count = part.count
        releases = 1
        while count:
            if count & 1:
                if result is None:
                    result = grid
                else:
                    products += len(result.mass) * len(grid.mass)
                    result = _convolve(result, grid, trimmed_mass * total)
            count >>= 1
            if count:
                releases *= 2
                products += len(grid.mass) ** 2
                grid = _convolve(grid, grid, trimmed_mass * releases)
            cells = max(cells, len(grid.mass))
            if result is not None:
                cells = max(cells, len(result.mass))
            if cells > 4 * _DIRECT_CELLS or products > _MAX_PRODUCTS:
                return None
    # A mass of n releases is an n-fold convolution, each with at most as many products as cells.
    # The last term covers underflows.
    round_off = math.exp(2.0 * _UNIT * total * (cells + 100.0))
    mass_beyond = min(1.0, result.infinite * round_off + 1e-300 * total)
    return _Total(step, _raised(result.losses, parts), result.mass * round_off, mass_beyond)


def _needs_more_cells(grid, count):
    """Return True if a composition of `count` grids cannot fit into the largest number of cells.

    The standard deviation of a loss on N cells is at most N / 2 cells. The losses that are trimmed
    have too little mass to change it by a half.
    """
    cells = np.arange(len(grid.mass))
    mean = float(grid.mass @ cells)
    variance = float(grid.mass @ (cells - mean) ** 2)
    return math.sqrt(count * variance) > 4 * _DIRECT_CELLS


def _convolve(first: GridLoss, second: GridLoss, trimmed_mass: float) -> GridLoss:
    """Return the distribution of the sum of two losses, trimmed by at most a mass at each end."""
    mass = np.convolve(first.mass, second.mass)
    infinite = first.infinite + second.infinite
    above = np.cumsum(mass[::-1])
    below = np.cumsum(mass)
    cut = int(np.searchsorted(above, trimmed_mass, side="right"))
    low = min(int(np.searchsorted(below, trimmed_mass, side="right")), len(mass) - cut - 1)
    if cut:
        infinite += float(above[cut - 1])
        mass = mass[:-cut]
    if low > 0:
        mass = mass[low:].copy()
        mass[0] += float(below[low - 1])
    return GridLoss(first.step, first.first + second.first + max(low, 0), mass, infinite)


def _tilted(grid, tilt):
    """Return the masses tilted by e^(tilt L) and normalized, and the logarithm of their sum."""
    if tilt == 0.0:
        return grid.mass, 0.0
    nonzero = np.flatnonzero(grid.mass)
    exponent = np.log(grid.mass[nonzero]) + tilt * (grid.step * (grid.first + nonzero))
    top = float(exponent.max())
    tilted = np.zeros(len(grid.mass))
    tilted[nonzero] = np.exp(exponent - top)
    total = float(tilted.sum())
    return tilted / total, top + math.log(total)


def pld_epsilon(
    parts: dict[ev.Event, int], delta: float, relation: Relation, tolerance: float
) -> float:
    """Return an upper bound on epsilon of a composition at a delta above 0.

    Each direction (order of the two tables) is composed separately, and the largest epsilon is
    used. A direction needs no transform if its Renyi bound is at most the epsilon of another.

    Parameters
    ----------
    parts : dict
        Maps events to their counts, as `leaves` returns it.
    delta : float
        The delta.
    relation : {"add_remove", "replace_one"}
        The relation between neighboring tables.
    tolerance : float
        The accuracy, relative to min(1, epsilon).
    """
    directions = _directions(parts, relation)
    pure = max(_max_total_loss(direction) for direction in directions)
    if pure == 0.0:
        return pure
    if sum(parts.values()) > _MAX_RELEASES:
        return math.inf
    prepared = []
    for direction in directions:
        coarse = _coarse_parts(direction, delta)
        if any(part.coarse.infinite >= 1.0 for part in coarse):
            return math.inf
        infinite = sum(part.count * part.coarse.infinite for part in coarse)
        tilt, epsilon = _rdp_tilt(coarse, max(delta - infinite, delta * 1e-3))
        prepared.append((epsilon, _max_total_loss(direction), tilt, coarse, infinite))
    prepared.sort(key=itemgetter(0), reverse=True)
    result = 0.0
    for epsilon, max_loss, tilt, coarse, infinite in prepared:
        if max_loss <= result or (epsilon <= result and infinite < delta * (1.0 - 1e-3)):
            continue
        result = max(result, _composed_epsilon(coarse, tilt, epsilon, delta, tolerance))
    return min(result, pure)


def _composed_epsilon(coarse, tilt, epsilon, delta, tolerance):
    """Return epsilon of one direction.

    The tilt is reduced while the window is above the result, and the step while the grid is too
    coarse.
    """
    best = math.inf
    order = 1.0 + tilt
    last_noise = math.inf
    total = sum(part.count for part in coarse)
    # For a large delta, a smaller tilt is sufficient against round-off and gives a shorter window.
    tilt *= min(1.0, max(0.0, -4.0 - math.log10(delta)) / 8.0)
    for _ in range(8):
        composed = _compose(coarse, tilt, epsilon, delta, tolerance, order)
        # The epsilon without a correction for round-off.
        raw_epsilon = composed.epsilon(delta)
        if raw_epsilon == math.inf:
            # Too much mass is beyond the window, or no mass is within it because losses are huge.
            return best
        noise = composed.noise(total, tilt, raw_epsilon)
        best = min(best, composed.epsilon(delta - noise))
        if best == 0.0:
            return best
        if 0.0 < raw_epsilon <= composed.losses[0] + composed.step:
            tilt = 0.25 * tilt
            epsilon = 0.0
        elif 1e-5 * delta < noise < last_noise and tilt > 0.01:
            tilt = 0.5 * tilt
            epsilon = 0.5 * raw_epsilon
            last_noise = noise
        elif noise > 1e-4 * delta:
            break
        else:
            order = 1.0 + composed.decay_rate(raw_epsilon, delta)
            max_step = 1.5 * _step(coarse, order - 1.0, raw_epsilon, tolerance, composed.width)
            if composed.step <= max_step:
                return best
            epsilon = raw_epsilon
    return min(best, _direct_epsilon(coarse, delta, tolerance))


def _direct_epsilon(coarse, delta, tolerance):
    """Return epsilon of one direction without a transform, on successively finer grids."""
    best = math.inf
    width = max(part.high - part.low for part in coarse)
    step = width / 256.0
    for _ in range(12):
        composed = _compose_directly(coarse, step, delta)
        if composed is None or composed.beyond > delta:
            break
        epsilon = composed.epsilon(delta)
        best = min(best, epsilon)
        if epsilon == 0.0:
            break
        tilt = composed.decay_rate(epsilon, delta)
        target_step = _step(coarse, tilt, epsilon, tolerance, width, _DIRECT_CELLS)
        if step <= 1.5 * target_step:
            break
        step = max(target_step, 0.25 * step)
    return best


def _raised(losses, parts):
    """Return the losses, raised by a bound on the round-off of a composition."""
    # The round-off of a tail in the mass of a cell is equivalent to an equally small change of its
    # loss. Grid points and their sums have relative errors.
    largest = sum(part.count * max(abs(part.low), abs(part.high)) for part in parts)
    return losses + 1e-14 * (sum(part.count for part in parts) + 10.0) + 2.0**-51 * largest


def _max_total_loss(direction):
    """Return the largest total loss of one direction, rounded up."""
    losses = []
    for pair, count in direction:
        max_loss = -math.inf
        if len(pair.losses):
            max_loss = float(pair.losses[-1])
        if pair.tails:
            max_loss = max(max_loss, pair.high)
        if pair.p_inf > 0.0:
            max_loss = math.inf
        losses.append(count * max_loss)
    return max(0.0, math.fsum(losses)) * (1.0 + 2.0**-49)


def pld_delta(parts: dict[ev.Event, int], epsilon: float, relation: Relation, tolerance: float):
    """Return an upper bound on delta of a composition at epsilon; see `pld_epsilon`."""
    if sum(parts.values()) > _MAX_RELEASES:
        return 1.0
    result = 0.0
    for direction in _directions(parts, relation):
        # The delta for which the coarse grids are computed; it is updated until it is close to the
        # result.
        grid_delta = 1e-12
        tilt = 0.0
        delta = 1.0
        for _ in range(3):
            coarse = _coarse_parts(direction, grid_delta)
            if any(part.coarse.infinite >= 1.0 for part in coarse):
                return 1.0
            tilt, delta = _delta_tilt(coarse, epsilon)
            if delta >= 0.1 * grid_delta:
                break
            grid_delta = max(delta, 1e-290)
        max_loss = sum_up((part.count, part.high) for part in coarse)
        if epsilon >= max_loss * (1.0 + 2.0**-50):
            # Delta is the probability that some loss is infinite.
            infinite = [(p.count, p.coarse.infinite) for p in coarse if p.coarse.infinite > 0.0]
            if len(infinite) == 1 and infinite[0][0] == 1:
                # The probability of a single release needs no rounding.
                direction_delta = infinite[0][1]
            else:
                direction_delta = total_delta(infinite)
        else:
            composed_delta = _composed_delta(coarse, tilt, epsilon, delta, tolerance)
            direction_delta = max(composed_delta, _MIN_DELTA)
        result = max(result, direction_delta)
        if result >= 1.0:
            break
    return result


def _composed_delta(coarse, tilt, epsilon, delta, tolerance):
    """Return delta of one direction; the step is reduced while it is too coarse."""
    order = 1.0 + tilt
    total = sum(part.count for part in coarse)
    for _ in range(3):
        composed = _compose(coarse, tilt, epsilon, max(delta * 1e-2, 1e-300), tolerance, order)
        noise = composed.noise(total, tilt, epsilon)
        bound = min(1.0, composed.delta(epsilon) + noise)
        if composed.beyond >= 1.0:
            return 1.0
        if noise > 1e-4 * bound:
            return _direct_delta(coarse, epsilon, bound, tolerance)
        if bound == 0.0:
            break
        order = 1.0 + composed.decay_rate(epsilon, bound)
        if composed.step <= 1.5 * _step(coarse, order - 1.0, epsilon, tolerance, composed.width):
            break
    return bound


def _direct_delta(coarse, epsilon, best, tolerance):
    """Return delta for one direction without a transform, using finer and finer grids.

    The result is at most `best`, another upper bound.
    """
    width = max(part.high - part.low for part in coarse)
    step = width / 256.0
    for _ in range(16):
        composed = _compose_directly(coarse, step, max(best, 1e-290))
        if composed is None:
            break
        delta = composed.delta(epsilon)
        if delta <= 1e-290:
            return delta
        # The trimmed mass is a fraction of the previous bound, which must be close to the new
        # bound.
        is_settled = delta >= 1e-2 * best
        best = min(best, delta)
        tilt = composed.decay_rate(epsilon, delta)
        target_step = _step(coarse, tilt, epsilon, tolerance, width, _DIRECT_CELLS)
        if step > 1.5 * target_step:
            step = max(target_step, 0.25 * step)
        elif is_settled:
            break
    return best
