"""How charges that are made one after another add up, and when the next one is refused.

Between charges an analyst chooses the next release after seeing the results of the last ones. A
*filter* stays valid then; its cost is a plain sum, so that a total is kept up to date by one
addition. A *schedule* composes more tightly and holds if all parameters were fixed beforehand.
All are pure functions of totals; none opens a file.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from skdp.accounting._advanced import advanced_epsilon
from skdp.accounting._bounds import get_delta, get_epsilon
from skdp.accounting._conversions import rdp_to_epsilon, zcdp_to_epsilon
from skdp.accounting._events import ApproximateDP, Composed, leaves
from skdp.accounting._gaussian import gdp_to_epsilon
from skdp.accounting._laws import gdp, group_event, rdp, zcdp
from skdp.utils._rounding import sum_up
from skdp.utils._validation import check_delta, check_privacy_parameters, check_real

# Orders of a bound that is quick to add up; any of them is valid for a schedule.
QUICK_ORDERS = 1.0 + np.geomspace(0.05, 2000.0, 24)

# A claim that the usual grid misses by less than this, relatively, is tried on finer grids.
NEARLY = 1e-3
FINE = (1e-6, 1e-9)

# More choices of one part from each partition than this are not looked through.
MOST_CHOICES = 1000


@lru_cache(maxsize=4096)
def exact(number):
    """Return the fraction that a float's shortest decimal text denotes: 0.1 is 1/10."""
    return Fraction(repr(float(number)))


def _floor(fraction):
    value = float(fraction)
    return math.nextafter(value, 0.0) if exact(value) > fraction else value


def _ceil(fraction, read=Fraction):
    value = float(fraction)
    return math.nextafter(value, math.inf) if read(value) < fraction else value


@lru_cache(maxsize=1024)
def _rdp_at_quick_orders(event, **neighbors):
    return np.array([rdp(event, order, **neighbors) for order in QUICK_ORDERS])


@lru_cache(maxsize=1024)
def is_proved(event, epsilon, delta, relation):
    """Return True if a release is proved to be (epsilon, delta)-DP for one row.

    A bound on delta and one on epsilon are each a proof by itself: they are rounded up apart from
    each other.
    """
    # At delta = 0 a bound on delta that has underflowed proves nothing.
    if delta > 0.0 and get_delta(event, epsilon, relation=relation) <= delta:
        return True
    found = get_epsilon(event, delta, relation=relation)
    if epsilon < found <= epsilon * (1.0 + NEARLY):
        # A finer grid may prove what the usual one leaves open by less than its tolerance.
        fine = (get_epsilon(event, delta, relation=relation, tolerance=t) for t in FINE)
        return any(bound <= epsilon for bound in fine)
    return found <= epsilon


def claimed_price(event, epsilon, delta, relation):
    """Return the (epsilon, delta) that a release was calibrated to, once it is proved.

    Raises
    ------
    ValueError
        If no bound proves that the event costs no more.
    """
    # A release may cost nothing at a large delta, though no budget is 0.
    if check_real(epsilon, "epsilon") == 0.0:
        epsilon, delta = 0.0, check_delta(delta)
    else:
        epsilon, delta = check_privacy_parameters(epsilon, delta)
    if not is_proved(event, epsilon, delta, relation):
        raise ValueError(f"the event is not ({epsilon:g}, {delta:g})-differentially private")
    return epsilon, delta


@dataclass(frozen=True)
class _Sum:
    """The cost of some charges together, and the prices of the first two of them."""

    cost: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    prices: tuple = ()


@lru_cache(maxsize=1024)
def _single_epsilon(event, delta, relation, group_size):
    return get_epsilon(event, delta, relation=relation, group_size=group_size)


@lru_cache(maxsize=1024)
def _stated_delta(event, group_size):
    """Return the sum of the deltas that the parts of an event state themselves.

    Several rows of an (epsilon, delta)-DP release have a larger delta than one.
    """
    parts = leaves(group_event(event, group_size) or Composed(())).items()
    deltas = [(n, p.delta) for p, n in parts if isinstance(p, ApproximateDP)]
    return min(1.0, sum_up(deltas)) if deltas else 0.0


@dataclass(frozen=True)
class _Rule:
    """The configuration whose charges add up by a rule, and the cost of an event alone."""

    config: object

    def single_epsilon(self, event, delta):
        """Return the epsilon of an event by itself."""
        return _single_epsilon(event, delta, self.config.relation, self.config.max_rows)


class _Summed(_Rule):
    """What filters share, whose totals are sums of exact fractions."""

    zero = _Sum()

    def add(self, *totals):
        """Return the sum of totals."""
        # From the first total on: adding fractions is the larger part of a charge's arithmetic.
        first, *others = totals
        cost = first.cost
        delta = first.delta
        prices = first.prices
        for total in others:
            cost += total.cost
            if total.delta:
                delta += total.delta
            prices = (*prices, *total.prices)[:2]
        return _Sum(cost, delta, prices)

    def worst(self, totals, affected):
        """Return a bound on any `affected` of some totals together."""
        used = [t for t in totals if t.prices]
        if len(used) <= affected:
            return self.add(self.zero, *used)
        costs = sorted((t.cost for t in used), reverse=True)
        deltas = sorted((t.delta for t in used), reverse=True)
        # Two prices stand for several releases: no release's own curve applies.
        return _Sum(sum(costs[:affected]), sum(deltas[:affected]), ((0.0, 0.0),) * 2)


class BasicComposition(_Summed):
    r"""Sums of :math:`\varepsilon_i` and :math:`\delta_i`, kept as exact fractions.

    Valid when each release is chosen after seeing the ones before it (Rogers, Roth, Ullman and
    Vadhan 2016). A release whose event has no :math:`\delta` of its own, a Gaussian say, and
    for which none is stated, is priced at half of the :math:`\delta` that is left, or at all of
    it if the budget can pay only so.
    """

    def cost(self, charge):
        """Return what one charge adds to a total."""
        price = charge.epsilon, charge.delta
        return _Sum(exact(charge.epsilon), exact(charge.delta), (price,))

    def price(self, event, budgets, delta=None):
        """Return the (epsilon, delta) at which an event is booked, chosen before its release.

        Each budget is a total and the limit on it; all must be able to pay.
        """
        if delta is not None:
            price = self.single_epsilon(event, check_delta(delta))
            if price < math.inf or self.config.max_rows == 1:
                return price, float(delta)
        delta = _stated_delta(event, self.config.max_rows)
        price = self.single_epsilon(event, delta)
        if price < math.inf:
            return price, delta
        left = min(exact(limit[0]) - total.cost for total, limit in budgets)
        spare = max(min(exact(limit[1]) - total.delta for total, limit in budgets), Fraction(0))
        for delta in (_floor(spare / 2), _floor(spare)):
            price = self.single_epsilon(event, delta)
            if price < math.inf and exact(price) <= left:
                break
        return price, delta

    def spent(self, total, limit):
        """Return the (epsilon, delta) that a total amounts to."""
        return _ceil(total.cost, exact), _ceil(total.delta, exact)

    def left(self, total, limit):
        """Return what the limit has left."""
        left = exact(limit[0]) - total.cost, exact(limit[1]) - total.delta
        return tuple(_floor(max(amount, Fraction(0))) for amount in left)

    def within(self, total, limit):
        """Say whether a total is within the limit."""
        return total.cost <= exact(limit[0]) and total.delta <= exact(limit[1])


class _PricedAtCap(_Rule):
    """Base of filters and schedules whose totals are turned into epsilon at the limit's delta."""

    def price(self, event, budgets, delta=None):
        """Return the (epsilon, delta) of an event alone, at the delta of the smallest limit."""
        delta = min(limit[1] for _, limit in budgets) if delta is None else check_delta(delta)
        return self.single_epsilon(event, delta), delta

    def left(self, total, limit):
        """Return what the limit has left."""
        return max(limit[0] - self.spent(total, limit)[0], 0.0), limit[1]

    def within(self, total, limit):
        """Say whether a total is within the limit."""
        return self.spent(total, limit)[0] <= limit[0]


@lru_cache(maxsize=1024)
def _additive_cost(event, composition, rdp_order, relation, group_size):
    """Return what an event adds to the sum of a filter, and to its sum of deltas.

    A charge asks for it three times: as it is decided, as it is written, and as it is read back.
    """
    neighbors = {"relation": relation, "group_size": group_size}
    if composition == "zcdp":
        return zcdp(event, **neighbors)
    if composition == "rdp":
        return rdp(event, rdp_order, **neighbors), 0.0
    return gdp(event, **neighbors) ** 2, 0.0


class AdditiveFilter(_Summed, _PricedAtCap):
    r"""Sums of :math:`\rho_i`, of :math:`r_i(\alpha)` at one order, or of :math:`\mu_i^2`.

    Valid filters: zero-concentrated differential privacy, also approximate (Whitehouse, Ramdas,
    Rogers and Wu 2023); Renyi differential privacy at one order fixed beforehand (Feldman and
    Zrnic 2021); Gaussian differential privacy (Smith and Thakurta 2022; Koskela, Tobaben and
    Honkela 2023). A ledger with one release is priced by that release's own curve: which of the
    two prices lets the first release through is known before any noise is drawn, and a second
    release is held against the sum alone.
    """

    def cost(self, charge):
        """Return what one charge adds to a total."""
        config = self.config
        cost, delta = _additive_cost(
            charge.event, config.composition, config.rdp_order, config.relation, config.max_rows
        )
        if cost == math.inf:
            raise ValueError(
                f"the event has no finite cost under composition={self.config.composition!r}: "
                f"{charge.event}"
            )
        return _Sum(Fraction(cost), Fraction(delta), ((charge.epsilon, charge.delta),))

    def spent(self, total, limit):
        """Return the (epsilon, delta) that a total amounts to; delta is the limit's."""
        if not total.prices:
            return 0.0, 0.0
        cost = _ceil(total.cost)
        delta = _ceil(total.delta)
        if self.config.composition == "zcdp":
            epsilon = zcdp_to_epsilon(cost, limit[1], delta)
        elif self.config.composition == "rdp":
            epsilon = rdp_to_epsilon(cost, self.config.rdp_order, limit[1])
        else:
            epsilon = gdp_to_epsilon(math.sqrt(cost) * (1 + 1e-15), limit[1])
        if len(total.prices) == 1 and total.prices[0][1] <= limit[1]:
            epsilon = min(epsilon, total.prices[0][0])
        return epsilon, limit[1]

    def within(self, total, limit):
        """Return True if a total is within the limit, by a quicker bound where that suffices."""
        if self.config.composition == "zcdp" and 0.0 < limit[1] < 1.0 and not total.delta:
            # rho + 2 sqrt(rho ln(1 / delta)), Bun and Steinke 2016, Proposition 1.3. The tighter
            # conversion of `spent` minimizes over orders, which takes a third of a charge's time.
            rho = _ceil(total.cost)
            quick_epsilon = rho + 2.0 * math.sqrt(-rho * math.log(limit[1]))
            if quick_epsilon * (1.0 + 1e-12) <= limit[0]:
                return True
        return super().within(total, limit)


@dataclass(frozen=True)
class _Schedule:
    """How often each event and each price occur in some charges."""

    events: Counter
    prices: Counter

    # All of it, hashable.
    @property
    def key(self):
        return (frozenset(self.events.items()), frozenset(self.prices.items()))


class FixedSchedule(_PricedAtCap):
    """Composition of all events by one method; parameters must have been fixed beforehand.

    Prices are fixed too, so that the least of two bounds holds: by the method, from what the
    mechanisms do, and from the (epsilon, delta) of each charge as one release, added up or, for
    "advanced" and "auto", by advanced composition.
    """

    # The schedules that a total is the worst of.
    zero = (_Schedule(Counter(), Counter()),)

    def cost(self, charge):
        """Return what one charge adds to a total."""
        price = charge.epsilon, charge.delta
        return (_Schedule(Counter(leaves(charge.event)), Counter([price])),)

    def add(self, *totals):
        """Return the sum of totals."""
        if math.prod(map(len, totals)) > MOST_CHOICES:
            raise ValueError("too many different parts to look through; use a filter")
        return _distinct(_joined(choice) for choice in itertools.product(*totals))

    def worst(self, totals, affected):
        """Return the schedules that any `affected` of some totals can have together."""
        # By how many parts were taken: parts that were charged the same are tried once.
        taken = {0: self.zero}
        affected = min(affected, len(totals))
        for left, total in zip(reversed(range(len(totals))), totals, strict=True):
            following = {}
            for size, schedules in taken.items():
                if size + left >= affected:
                    following[size] = _distinct((*following.get(size, ()), *schedules))
                if size < affected:
                    more = (*following.get(size + 1, ()), *self.add(schedules, total))
                    following[size + 1] = _distinct(more)
            taken = following
        return taken[affected]

    def spent(self, total, limit):
        """Return the (epsilon, delta) that a total amounts to; delta is the limit's."""
        if not any(schedule.events for schedule in total):
            return 0.0, 0.0
        each = (min(self._epsilon_by_method(s, limit[1]), _summed(s, limit[1])) for s in total)
        return float(max(each)), limit[1]

    def within(self, total, limit):
        """Say whether a total is within the limit, by a quicker bound where that suffices."""
        return all(self._is_within(schedule, limit) for schedule in total)

    def _is_within(self, schedule, limit):
        summed = _summed(schedule, limit[1]) <= exact(limit[0])
        # "pld" refuses an event whose loss distribution is not known, whatever its price.
        quick = summed and self.config.composition != "pld"
        quick = quick or self._quick_epsilon(schedule.events, limit[1]) <= limit[0]
        return quick or self._epsilon_by_method(schedule, limit[1]) <= limit[0] or summed

    def _quick_epsilon(self, counts, delta):
        if delta == 0.0 or self.config.composition != "auto":
            return math.inf
        costs = (n * _rdp_at_quick_orders(e, **self.config.options) for e, n in counts.items())
        return min(map(rdp_to_epsilon, sum(costs), QUICK_ORDERS, itertools.repeat(delta)))

    def _epsilon_by_method(self, schedule, delta):
        # A release by itself costs what its own curve says.
        method = "auto" if schedule.events.total() == 1 else self.config.composition
        events, prices = schedule.key
        event = Composed(tuple(part * count for part, count in events))
        epsilon = get_epsilon(event, delta, method=method, **self.config.options)
        if self.config.composition in ("advanced", "auto"):
            pairs = ((*price, count) for price, count in sorted(prices))
            epsilon = min(epsilon, advanced_epsilon(pairs, delta))
        return epsilon


def _summed(schedule, delta):
    """Return the sum of the prices' epsilons, infinite where their deltas exceed delta."""
    prices = schedule.prices.items()
    epsilons, deltas = (sum(n * exact(price[i]) for price, n in prices) for i in (0, 1))
    return epsilons if deltas <= exact(delta) else math.inf


def _joined(schedules):
    events = sum((s.events for s in schedules), Counter())
    return _Schedule(events, sum((s.prices for s in schedules), Counter()))


def _distinct(schedules):
    return tuple({schedule.key: schedule for schedule in schedules}.values())


# The rules by name: filters, and what holds for a schedule that was fixed beforehand.
SCHEDULES = dict.fromkeys(("advanced", "pld", "auto"), FixedSchedule)
FILTERS = {"basic": BasicComposition} | dict.fromkeys(("zcdp", "rdp", "gdp"), AdditiveFilter)
RULES = FILTERS | SCHEDULES
