"""Composition of privacy loss distributions by one tilted transform."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from skdp.accounting import _events as ev
from skdp.accounting._advanced import total_delta
from skdp.accounting._laws import privacy_of
from skdp.accounting._pairs import GridLoss, discretize, loss_range
from skdp.utils._rounding import sum_up
from skdp.utils._values import FrozenValue

_MAX_CELLS = 1 << 21
# Cells of all events together: of many different events each gets fewer.
_MAX_TOTAL_CELLS = 1 << 24
# Of a composition by sums of terms, which takes the square of their number.
_DIRECT_CELLS = 1 << 13
# Cells of a price that is asked for at a tolerance as large as this.
_ROUGH = 1e-3
_MAX_ROUGH_CELLS = 1 << 18
_LATTICE_CELLS = 16.0
# Products of masses of such a composition, beyond which a finer grid is not tried.
_MAX_PRODUCTS = 1 << 31
# The share of delta that one release, or one convolution, may move to infinity.
_TRIMMED = 1e-6
_UNIT = 2.0**-53
_COARSE_CELLS = 3000
_TILTS = np.concatenate(([0.0], np.geomspace(1e-3, 1e5, 49)))
_MAX_WIDTH = 600.0
# Raising to the power T multiplies round-off by T, which then exceeds what is worth finding.
_MAX_RELEASES = 10**9


@dataclass(frozen=True)
class _Part(FrozenValue):
    pair: object
    count: int
    low: float
    high: float
    coarse: GridLoss


@dataclass(frozen=True)
class _Total(FrozenValue):
    """The total loss of one direction: P-masses on a grid, and what lies beyond it.

    Round-off of one release adds about c e^(-tilt epsilon) to delta, where `log_round_off` is ln c.
    `width` is that of the window that a transform was made for.
    """

    step: float
    losses: np.ndarray
    masses: np.ndarray
    beyond: float
    log_round_off: float = -math.inf
    width: float = math.inf

    def epsilon(self, delta):
        """The least epsilon at delta, -d delta / d e^epsilon being constant between losses."""
        # Here, where it is used: scipy.signal would be a twentieth of what importing skdp takes.
        from scipy.signal import lfilter

        losses = self.losses
        spare = delta - self.beyond
        if spare < 0.0 or not len(losses):
            return math.inf
        # delta at every loss, as a sum of positive terms, and e^loss times the Q-mass from there
        # up, which no factor e^loss by itself could hold: losses may lie thousands apart.
        decay = math.nextafter(math.exp(-self.step), 1.0)
        q_above = lfilter([1.0], [1.0, -decay], self.masses[::-1])[::-1]
        pieces = q_above * -math.expm1(-self.step)
        curve = np.append(np.cumsum(pieces[::-1])[::-1][1:], 0.0)
        index = int(np.argmax(curve <= spare))
        if index == 0:
            return max(0.0, float(losses[0]))
        # Below losses[index], delta grows by (e^l - e^epsilon) times the Q-mass from there up.
        room = (spare - curve[index]) / q_above[index]
        if room >= 1.0:
            return max(0.0, float(losses[index - 1]))
        return max(0.0, float(losses[index]) + math.log1p(-room))

    def delta(self, epsilon):
        """Delta at epsilon."""
        above = self.losses > epsilon
        kept = self.masses[above] @ -np.expm1(epsilon - self.losses[above])
        return min(1.0, float(kept) + self.beyond)

    def slope(self, epsilon, delta):
        """-d ln delta / d epsilon: what the order less 1 is to a Renyi bound."""
        above = self.losses > epsilon
        return float(self.masses[above] @ np.exp(epsilon - self.losses[above])) / delta

    def noise(self, releases, tilt, epsilon):
        """What round-off adds to delta at most, of that many releases and of one transform."""
        log_noise = math.log(releases + 100.0) + self.log_round_off - tilt * epsilon
        return math.exp(min(0.0, log_noise))


def _directions(parts, relation):
    """The pairs of every event, once for each direction."""
    pairs = [(privacy_of(event, relation).pairs(), count) for event, count in parts.items()]
    width = max(len(pair) for pair, _ in pairs)
    return [[(pair[min(i, len(pair) - 1)], count) for pair, count in pairs] for i in range(width)]


def _coarse_parts(direction, delta):
    total = sum(count for _, count in direction)
    result = []
    for pair, count in direction:
        mass = max(delta, 1e-290) * 1e-9 / total
        low, high = loss_range(pair, mass)
        # Losses that are all beyond the ladder of `loss_range` leave no width.
        step = max(high - low, 1e-12 * abs(high), 1e-300) / _COARSE_CELLS
        result.append(_Part(pair, count, low, high, discretize(pair, step, low, high)))
    return result


def _log_moment(parts, tilts):
    with np.errstate(over="ignore"):
        return sum(part.count * part.coarse.log_moment(tilts) for part in parts)


def _least_over_tilts(bound):
    """(tilt, value) at the least value found of a function of tilts, on nested grids.

    A tilt is a Renyi order less 1; any of them gives a bound.
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
    """(tilt, epsilon) of the best Renyi order of the coarse distributions."""

    def bound(tilts):
        orders = 1.0 + tilts
        slack = np.log1p(-1.0 / orders) - (math.log(delta) + np.log(orders)) / tilts
        return _log_moment(parts, tilts) / tilts + slack

    return _least_over_tilts(bound)


def _delta_tilt(parts, epsilon):
    """(tilt, delta) of the best Renyi order for a given epsilon."""

    def log_delta(tilts):
        orders = 1.0 + tilts
        values = _log_moment(parts, tilts) - tilts * epsilon
        return values + tilts * np.log1p(-1.0 / orders) - np.log(orders)

    tilt, value = _least_over_tilts(log_delta)
    return tilt, math.exp(min(0.0, value))


def _step(parts, tilt, epsilon, tolerance, width, max_cells=_MAX_CELLS):
    """Grid step for an error in epsilon of about tolerance * min(1, epsilon).

    Each release adds at most about step^2 / 12 to the variance of the total loss, which
    moves epsilon by about (tilt + 1) / 2 times as much; the factor below was checked against
    finer grids. Where epsilon is far below 1 / tilt, delta hardly depends on it, and the error
    is about tolerance * 0.01 / tilt. A lattice common to all atoms is met exactly where there is
    one.
    """
    total = sum(part.count for part in parts)
    slope = max(1.0, tilt + 1.0)
    wanted = tolerance * min(1.0, max(epsilon, 1e-2 / slope))
    step = math.sqrt(6.0 * wanted / (slope * (total + 6.0)))
    max_cells = min(max_cells, max(_MAX_TOTAL_CELLS // len(parts), _COARSE_CELLS))
    if tolerance >= _ROUGH:
        max_cells = min(max_cells, _MAX_ROUGH_CELLS)
    longest = max(width, *(part.high - part.low for part in parts))
    step = max(step, longest / max_cells)
    spacings = {part.pair.spacing for part in parts} - {None}
    # A lattice far finer than the step would ask for more cells than it is worth.
    if len(spacings) == 1 and min(spacings) > step / _LATTICE_CELLS:
        spacing = spacings.pop()
        if all(part.pair.spacing and part.pair.tails is None for part in parts):
            # Atoms lie at halves of it.
            step = max(step, 0.5 * spacing)
        step = spacing / max(1, math.ceil(spacing / step))
        step = max(step, longest / (2.0 * max_cells))
    return step


def _window(parts, tilt, epsilon, delta):
    """The ends of a window of the total loss, and ln P(loss > its upper end).

    Above it P has at most delta * 1e-9. What leaves the window on one side comes back on the
    other: on the lower side that is 1e-12 of the tilted mass; on the upper side the window
    is long enough that all but 1e-12 of the tilted mass comes back below epsilon, where it
    does not count.
    """
    tilts = np.unique(np.concatenate((_TILTS[1:], max(tilt, 1e-3) * np.geomspace(0.5, 8.0, 9))))
    moments = _log_moment(parts, tilts)
    log_tail = math.log(max(delta, 1e-300)) - 21.0
    high = float(np.min((moments - log_tail) / tilts))
    here = float(_log_moment(parts, np.array([tilt]))[0])
    spread = np.geomspace(1e-2, 1e4, 25)
    lower, upper = (_log_moment(parts, tilt + sign * spread) for sign in (-1.0, 1.0))
    least = math.fsum(part.count * part.low for part in parts)
    most = math.fsum(part.count * part.high for part in parts)
    low = min(epsilon, most, max(least, float(np.max((here - lower - 28.0) / spread))))
    returned = min(most, float(np.min((upper - here + 28.0) / spread)))
    high = min(max(high, low, low + returned - 0.5 * (low + epsilon)), most)
    log_tail = float(np.min(moments - tilts * high)) if high < most else -math.inf
    return low, high, log_tail


def _power(values, count):
    result = 1.0
    while count:
        if count & 1:
            result = result * values
        count >>= 1
        if count:
            values = values * values
    return result


def _compose(parts, tilt, epsilon, delta, tolerance, order):
    """The total loss inside a window, by a transform; far above epsilon it is as good as infinite.

    The grid is as fine as the tolerance asks for at a Renyi order.
    """
    low, high, log_tail = _window(parts, tilt, epsilon, delta)
    step = _step(parts, order - 1.0, epsilon, tolerance, high - low)
    grids = [discretize(part.pair, step, part.low, part.high) for part in parts]
    # The grid reaches below the least loss by up to one step a release, mostly far less.
    total = sum(part.count for part in parts)
    start = math.floor(low / step) - 1 - math.ceil(min(total, 20.0 * total**0.5, 1 << 16))
    stop = math.ceil(high / step) + 2
    if log_tail == -math.inf:
        stop = sum(p.count * (g.first + len(g.mass)) for p, g in zip(parts, grids, strict=True))
    if stop - start >= _MAX_TOTAL_CELLS:
        # Losses of this size are left to the other bounds of a price.
        return _Total(step, np.zeros(0), np.zeros(0), 1.0)
    length = next_fast_len(stop - start + 1, real=True)
    log_total = 0.0
    offset = 0
    log_kept = 0.0
    product = 1.0
    for part, grid in zip(parts, grids, strict=True):
        tilted, log_moment = _tilted(grid, tilt)
        folded = np.pad(tilted, (0, -len(tilted) % length)).reshape(-1, length).sum(axis=0)
        product = product * _power(rfft(folded, length), part.count)
        log_total += part.count * log_moment
        offset += part.count * grid.first
        log_kept += part.count * math.log1p(-min(grid.infinite, 1.0 - 1e-16))
    density = np.roll(irfft(product, length), -((start - offset) % length))
    losses = step * np.arange(start, start + length)
    log_weight = log_total - tilt * losses
    with np.errstate(over="ignore"):
        masses = np.maximum(density, 0.0) * np.exp(np.minimum(log_weight, 700.0))
    # Round-off far below the tilted mean is blown up; a probability is at most 1.
    masses = np.minimum(masses, 1.0)
    beyond = -math.expm1(log_kept) + math.exp(min(0.0, log_tail))
    round_off = math.exp(1e-14 * (total + 1e4))
    reach = min(high - low, 1.0 / max(tilt, 1e-300)) / step + 1.0
    noise = math.log(2.0**-52 * float(density.max()) * reach)
    cut = max(epsilon, low) + 0.5 * _MAX_WIDTH
    kept = np.abs(losses - cut + 0.5 * _MAX_WIDTH) <= 0.5 * _MAX_WIDTH
    beyond += float(masses[losses > cut].sum())
    losses = losses[kept]
    masses = masses[kept] * round_off
    beyond = beyond * round_off
    return _Total(step, _raised(losses, parts), masses, beyond, log_total + noise, high - low)


def _compose_directly(parts, step, delta):
    """The total loss without a transform, never below it; None if it would take too long.

    A transform's round-off is a share of the largest tilted mass. Where rare samples carry all of
    delta, no tilt brings that below delta; a convolution summed term by term errs relatively in
    every mass, however small.

    What is trimmed off the upper end, no more than about 1e-5 of delta, is mass at infinity;
    what is trimmed off the lower end moves up to the lowest loss kept.
    """
    total = sum(part.count for part in parts)
    share = _TRIMMED * delta / total
    result = None
    cells = 0
    products = 0
    for part in parts:
        grid = discretize(part.pair, step, *loss_range(part.pair, share))
        count = part.count
        releases = 1
        while count:
            if count & 1:
                products += len(result.mass) * len(grid.mass) if result else 0
                result = grid if result is None else _sum_of(result, grid, share * total)
            count >>= 1
            if count:
                releases *= 2
                products += len(grid.mass) ** 2
                grid = _sum_of(grid, grid, share * releases)
            cells = max(cells, len(grid.mass), len(result.mass) if result else 0)
            if cells > 4 * _DIRECT_CELLS or products > _MAX_PRODUCTS:
                return None
    # A mass of n releases is a sum of at most as many products as there are cells, n times over;
    # what underflows on the way is added.
    round_off = math.exp(2.0 * _UNIT * total * (cells + 100.0))
    beyond = min(1.0, result.infinite * round_off + 1e-300 * total)
    return _Total(step, _raised(result.losses, parts), result.mass * round_off, beyond)


def _sum_of(one: GridLoss, two: GridLoss, share: float) -> GridLoss:
    mass = np.convolve(one.mass, two.mass)
    infinite = one.infinite + two.infinite
    above = np.cumsum(mass[::-1])
    below = np.cumsum(mass)
    cut = int(np.searchsorted(above, share, side="right"))
    low = min(int(np.searchsorted(below, share, side="right")), len(mass) - cut - 1)
    if cut:
        infinite += float(above[cut - 1])
        mass = mass[:-cut]
    if low > 0:
        mass = mass[low:].copy()
        mass[0] += float(below[low - 1])
    return GridLoss(one.step, one.first + two.first + max(low, 0), mass, infinite)


def _tilted(grid, tilt):
    """Masses tilted by e^(tilt L), normalized, and the logarithm of what they summed to."""
    if tilt == 0.0:
        return grid.mass, 0.0
    kept = np.flatnonzero(grid.mass)
    exponent = np.log(grid.mass[kept]) + tilt * (grid.step * (grid.first + kept))
    top = float(exponent.max())
    tilted = np.zeros(len(grid.mass))
    tilted[kept] = np.exp(exponent - top)
    total = float(tilted.sum())
    return tilted / total, top + math.log(total)


def pld_epsilon(parts: dict[ev.Event, int], delta: float, relation: str, tolerance: float) -> float:
    """Upper bound on epsilon at a delta above 0 of the composition of all events.

    Each direction is composed for itself; the larger epsilon counts. A direction whose Renyi
    bound is no larger than what another one costs needs no transform.
    """
    directions = _directions(parts, relation)
    pure = max(_most(direction) for direction in directions)
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
        prepared.append((epsilon, _most(direction), tilt, coarse, infinite))
    result = 0.0
    for epsilon, most, tilt, coarse, infinite in sorted(prepared, key=lambda item: -item[0]):
        if most <= result or (epsilon <= result and infinite < delta * (1.0 - 1e-3)):
            continue
        result = max(result, _composed_epsilon(coarse, tilt, epsilon, delta, tolerance))
    return min(result, pure)


def _composed_epsilon(coarse, tilt, epsilon, delta, tolerance):
    """epsilon of one direction; the tilt is lowered while the window lies above the answer, and
    the step while it is too coarse for the answer."""
    best = math.inf
    order = 1.0 + tilt
    last_noise = math.inf
    total = sum(part.count for part in coarse)
    # Round-off is far below a large delta also without the whole tilt, and the window shorter.
    tilt *= min(1.0, max(0.0, -4.0 - math.log10(delta)) / 8.0)
    for _ in range(8):
        found = _compose(coarse, tilt, epsilon, delta, tolerance, order)
        bare = found.epsilon(delta)
        if bare == math.inf:
            # Too much lies beyond the window, or of huge losses none is left within it.
            return best
        noise = found.noise(total, tilt, bare)
        best = min(best, found.epsilon(delta - noise))
        if best == 0.0:
            return best
        if 0.0 < bare <= found.losses[0] + found.step:
            tilt = 0.25 * tilt
            epsilon = 0.0
        elif 1e-5 * delta < noise < last_noise and tilt > 0.01:
            tilt = 0.5 * tilt
            epsilon = 0.5 * bare
            last_noise = noise
        elif noise > 1e-4 * delta:
            break
        else:
            order = 1.0 + found.slope(bare, delta)
            if found.step <= 1.5 * _step(coarse, order - 1.0, bare, tolerance, found.width):
                return best
            epsilon = bare
    return min(best, _direct_epsilon(coarse, delta, tolerance))


def _direct_epsilon(coarse, delta, tolerance):
    """epsilon of one direction without a transform, on grids that grow finer."""
    best = math.inf
    width = max(part.high - part.low for part in coarse)
    step = width / 256.0
    for _ in range(12):
        found = _compose_directly(coarse, step, delta)
        if found is None or found.beyond > delta:
            break
        epsilon = found.epsilon(delta)
        best = min(best, epsilon)
        if epsilon == 0.0:
            break
        slope = found.slope(epsilon, delta)
        wanted = _step(coarse, slope, epsilon, tolerance, width, _DIRECT_CELLS)
        if step <= 1.5 * wanted:
            break
        step = max(wanted, 0.25 * step)
    return best


def _raised(losses, parts):
    # Cell masses are off by round-off of a tail, which shifts a loss by as little. Points of a grid
    # are rounded relatively, as is their sum.
    largest = sum(part.count * max(abs(part.low), abs(part.high)) for part in parts)
    return losses + 1e-14 * (sum(part.count for part in parts) + 10.0) + 2.0**-51 * largest


def _most(direction):
    """The largest total loss of one direction, rounded up."""
    losses = []
    for pair, count in direction:
        ends = [*pair.losses[-1:].tolist(), *([pair.high] if pair.tails else [])]
        losses.append(count * (math.inf if pair.p_inf > 0.0 else max(ends, default=-math.inf)))
    return max(0.0, math.fsum(losses)) * (1.0 + 2.0**-49)


def pld_delta(parts: dict[ev.Event, int], epsilon: float, relation: str, tolerance: float):
    """Upper bound on delta at epsilon of the composition of all events."""
    if sum(parts.values()) > _MAX_RELEASES:
        return 1.0
    result = 0.0
    for direction in _directions(parts, relation):
        rough = 1e-12
        tilt = 0.0
        delta = 1.0
        for _ in range(3):
            coarse = _coarse_parts(direction, rough)
            if any(part.coarse.infinite >= 1.0 for part in coarse):
                return 1.0
            tilt, delta = _delta_tilt(coarse, epsilon)
            if delta >= 0.1 * rough:
                break
            rough = max(delta, 1e-290)
        most = sum_up((part.count, part.high) for part in coarse)
        if epsilon >= most * (1.0 + 2.0**-50):
            # That some loss is infinite; one release's probability of it is its own.
            own = [(p.count, p.coarse.infinite) for p in coarse if p.coarse.infinite > 0.0]
            found = own[0][1] if [count for count, _ in own] == [1] else total_delta(own)
        else:
            found = _composed_delta(coarse, tilt, epsilon, delta, tolerance)
        result = max(result, found)
    return result


def _composed_delta(coarse, tilt, epsilon, delta, tolerance):
    """delta of one direction; the step is lowered while it is too coarse for the answer."""
    order = 1.0 + tilt
    total = sum(part.count for part in coarse)
    for _ in range(3):
        composed = _compose(coarse, tilt, epsilon, max(delta * 1e-2, 1e-300), tolerance, order)
        noise = composed.noise(total, tilt, epsilon)
        found = min(1.0, composed.delta(epsilon) + noise)
        if composed.beyond >= 1.0:
            return 1.0
        if noise > 1e-4 * found:
            return _direct_delta(coarse, epsilon, found, tolerance)
        if found == 0.0:
            break
        order = 1.0 + composed.slope(epsilon, found)
        if composed.step <= 1.5 * _step(coarse, order - 1.0, epsilon, tolerance, composed.width):
            break
    return found


def _direct_delta(coarse, epsilon, best, tolerance):
    """delta of one direction without a transform, on grids that grow finer; at most `best`."""
    width = max(part.high - part.low for part in coarse)
    step = width / 256.0
    for _ in range(16):
        total = _compose_directly(coarse, step, max(best, 1e-290))
        if total is None:
            break
        found = total.delta(epsilon)
        if found <= 1e-290:
            return found
        # What was trimmed is a share of the last bound on delta.
        settled = found >= 1e-2 * best
        best = min(best, found)
        slope = total.slope(epsilon, found)
        wanted = _step(coarse, slope, epsilon, tolerance, width, _DIRECT_CELLS)
        if step > 1.5 * wanted:
            step = max(wanted, 0.25 * step)
        elif settled:
            break
    return best
