"""Composition rules: the total cost of charges, and whether the next charge is within a limit.

An analyst may choose a release after seeing the results of earlier ones. A privacy *filter* is
valid for such adaptive choices. Its cost is a sum, so one addition updates a total. A *schedule*
composes more tightly, but holds only if all parameters were fixed beforehand. All rules are pure
functions of totals; none opens a file.
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
from skdp.accounting._laws import NoCostError, gdp, group_event, rdp, zcdp
from skdp.utils._rounding import sum_up
from skdp.utils._validation import check_delta, check_epsilon, check_real

# Renyi orders at which a quick bound is added up. Every order is valid for a schedule.
QUICK_ORDERS = 1.0 + np.geomspace(0.05, 2000.0, 24)

# If the bound at the default tolerance misses a claim by less than this relative error, finer
# tolerances are tried.
NEAR_MISS = 1e-3
FINE_TOLERANCES = (1e-6, 1e-9)

# An event whose epsilon at its own delta is larger by at most this factor than at the limit's delta
# is charged at its own delta. For a single pure release the factor is smaller; for many, it is far
# larger.
EVENT_DELTA_FACTOR = 1.01

# Schedules with more combinations of parts, one from each partition, are refused.
MAX_CHOICES = 1000


@lru_cache(maxsize=4096)
def exact(number):
    """Return the fraction of a float's shortest decimal text: 1/10 for 0.1."""
    return Fraction(repr(float(number)))


def _floor(fraction):
    """Return a float whose shortest decimal text is at most the fraction: a remaining budget."""
    value = float(fraction)
    if exact(value) > fraction:
        return math.nextafter(value, 0.0)
    return value


def _ceil(fraction, to_fraction=Fraction):
    """Return a float that is at least the fraction: a cost.

    `to_fraction` determines how the float is read: as its exact value, or by `exact` as its
    shortest decimal text, which users see.
    """
    value = float(fraction)
    if to_fraction(value) < fraction:
        return math.nextafter(value, math.inf)
    return value


@lru_cache(maxsize=1024)
def _rdp_at_quick_orders(event, relation, group_size):
    """Return an event's Renyi divergences at `QUICK_ORDERS`, for `_quick_epsilon`."""
    costs = [rdp(event, o, relation=relation, group_size=group_size) for o in QUICK_ORDERS]
    return np.array(costs)


@lru_cache(maxsize=1024)
def is_proved(event, epsilon, delta, relation):
    """Return True if a release is proved to be (epsilon, delta)-DP for one row.

    One of two bounds is enough: that on delta at this epsilon, or that on epsilon at this delta.
    They are rounded up independently, so either may succeed where the other fails.

    The proof is for a single row, or a person if that is the unit. It does not cover a group of
    `max_rows` rows: `LedgerConfig.holds_for_group` converts the claim for a group first.
    """
    # At delta = 0, a bound on delta may have underflowed to 0, so it proves nothing.
    if delta > 0.0 and get_delta(event, epsilon, relation=relation) <= delta:
        return True
    bound = get_epsilon(event, delta, relation=relation)
    if epsilon < bound <= epsilon * (1.0 + NEAR_MISS):
        # The default tolerance may be too coarse for a tight claim; try finer ones.
        for tolerance in FINE_TOLERANCES:
            if get_epsilon(event, delta, relation=relation, tolerance=tolerance) <= epsilon:
                return True
        return False
    return bound <= epsilon


def claimed_price(event, epsilon, delta, relation):
    """Check the (epsilon, delta) to which a release was calibrated, and return them as floats.

    Raises
    ------
    ValueError
        If they are out of range, or no bound proves that the event satisfies them.
    """
    # A release may have epsilon = 0 at a large delta, but a budget may not.
    if check_real(epsilon, "epsilon") == 0.0:
        epsilon, delta = 0.0, check_delta(delta)
    else:
        epsilon = check_epsilon(epsilon)
        delta = check_delta(delta)
    if not is_proved(event, epsilon, delta, relation):
        raise ValueError(
            f"the event is not ({epsilon:g}, {delta:g})-differentially private under "
            f"relation={relation!r}: {event}"
        )
    return epsilon, delta


@dataclass(frozen=True)
class _Sum:
    """The total cost of charges, and the (epsilon, delta) of the first two of them."""

    cost: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    prices: tuple = ()


@lru_cache(maxsize=1024)
def _single_epsilon(event, delta, relation, group_size):
    """Return the epsilon of an event alone, from a cache that all rules share."""
    return get_epsilon(event, delta, relation=relation, group_size=group_size)


@lru_cache(maxsize=1024)
def _claimed_delta(event, group_size):
    """Return the smallest delta at which an event can have a finite epsilon, for a group of rows.

    It is the sum of the deltas of all `ApproximateDP` in the event, which are larger for a group
    than for a row. A filter charges the event at this delta if its epsilon is then finite.
    """
    counts = leaves(group_event(event, group_size) or Composed(())).items()
    deltas = [(n, leaf.delta) for leaf, n in counts if isinstance(leaf, ApproximateDP)]
    if not deltas:
        return 0.0
    return min(1.0, sum_up(deltas))


@dataclass(frozen=True)
class _Rule:
    """Base class of composition rules; `config` is a `skdp.ledger` configuration."""

    config: object

    def single_epsilon(self, event, delta):
        """Return the epsilon of an event alone, for the unit of the configuration."""
        return _single_epsilon(event, delta, self.config.relation, self.config.max_rows)


class _SumRule(_Rule):
    """Base class of filters, whose totals are sums of exact fractions."""

    zero = _Sum()

    def add(self, *totals):
        """Return the sum of totals."""
        # Start from the first total, because adding fractions takes most of the time of a charge.
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
        """Return a bound on the sum of any `affected` of the totals."""
        totals = [total for total in totals if total.prices]
        if len(totals) <= affected:
            return self.add(self.zero, *totals)
        costs = sorted((total.cost for total in totals), reverse=True)
        deltas = sorted((total.delta for total in totals), reverse=True)
        # Two prices indicate a sum of several releases, to which the privacy profile of a single
        # release must not be applied.
        return _Sum(sum(costs[:affected]), sum(deltas[:affected]), ((0.0, 0.0),) * 2)


class BasicComposition(_SumRule):
    r"""Sums of :math:`\varepsilon_i` and :math:`\delta_i`, as exact fractions.

    The rule is valid if each release is chosen after seeing the earlier ones (Rogers, Roth, Ullman
    and Vadhan 2016). If neither the event (such as a Gaussian) nor the charge fixes a
    :math:`\delta`, the release is charged at half of the remaining :math:`\delta`, or at all of it
    if the budget suffices only then.
    """

    def cost(self, charge):
        """Return the total of one charge."""
        price = charge.epsilon, charge.delta
        return _Sum(exact(charge.epsilon), exact(charge.delta), (price,))

    def price(self, event, budgets, delta=None):
        """Return the (epsilon, delta) at which an event is charged, chosen before its release.

        Each budget is a pair of a total and the limit on it.
        """
        if delta is not None:
            price = self.single_epsilon(event, check_delta(delta))
            if price < math.inf or self.config.max_rows == 1:
                return price, float(delta)
        delta = _claimed_delta(event, self.config.max_rows)
        price = self.single_epsilon(event, delta)
        if price < math.inf:
            return price, delta
        epsilon_left = min(exact(limit[0]) - total.cost for total, limit in budgets)
        delta_left = min(exact(limit[1]) - total.delta for total, limit in budgets)
        delta_left = max(delta_left, Fraction(0))
        for delta in (_floor(delta_left / 2), _floor(delta_left)):
            price = self.single_epsilon(event, delta)
            if price < math.inf and exact(price) <= epsilon_left:
                break
        return price, delta

    def spent(self, total, limit):
        """Return the (epsilon, delta) of a total."""
        return _ceil(total.cost, exact), _ceil(total.delta, exact)

    def remaining(self, total, limit):
        """Return the (epsilon, delta) that remain of the limit."""
        epsilon = max(exact(limit[0]) - total.cost, Fraction(0))
        delta = max(exact(limit[1]) - total.delta, Fraction(0))
        return _floor(epsilon), _floor(delta)

    def is_within(self, total, limit):
        """Return True if a total is within the limit."""
        return total.cost <= exact(limit[0]) and total.delta <= exact(limit[1])


class _PricedAtLimit(_Rule):
    """Base class of rules whose totals are converted to epsilon at the limit's delta."""

    def price(self, event, budgets, delta=None):
        """Return the (epsilon, delta) of an event alone, at the delta of the smallest limit.

        The delta is not subtracted from that of the limit: totals are computed from the events, at
        this delta.
        """
        limit_delta = min(limit[1] for _, limit in budgets)
        if delta is not None:
            delta = check_delta(delta)
            epsilon = self.single_epsilon(event, delta)
            # A delta that is enough for a row may be too small for a group of rows.
            if epsilon < math.inf or self.config.max_rows == 1 or delta >= limit_delta:
                return epsilon, delta
        return self.single_epsilon(event, limit_delta), limit_delta

    def remaining(self, total, limit):
        """Return the (epsilon, delta) that remain of the limit."""
        return max(limit[0] - self.spent(total, limit)[0], 0.0), limit[1]

    def is_within(self, total, limit):
        """Return True if a total is within the limit."""
        return self.spent(total, limit)[0] <= limit[0]


@lru_cache(maxsize=1024)
def _additive_cost(event, composition, rdp_order, relation, group_size):
    """Return the two terms that an event adds: to the sum of a filter, and to its sum of deltas.

    It is cached, because a charge needs it when it is decided, written and read back.
    """
    if composition == "zcdp":
        return zcdp(event, relation=relation, group_size=group_size)
    if composition == "rdp":
        return rdp(event, rdp_order, relation=relation, group_size=group_size), 0.0
    return gdp(event, relation=relation, group_size=group_size) ** 2, 0.0


class AdditiveFilter(_SumRule, _PricedAtLimit):
    r"""Sums of :math:`\rho_i`, of :math:`r_i(\alpha)` at one order, or of :math:`\mu_i^2`.

    They are the costs in zero-concentrated differential privacy, also in its approximate form
    (Whitehouse, Ramdas, Rogers and Wu 2023), in Renyi differential privacy at one order fixed
    beforehand (Feldman and Zrnic 2021) and in Gaussian differential privacy (Smith and Thakurta
    2022; Koskela, Tobaben and Honkela 2023). All three are valid privacy filters. For a single
    release, the cost from its privacy profile is used if it is smaller. The rule remains a valid
    filter: the bound that accepts the first release is known before noise is drawn, and a second
    release is compared only with the sum.
    """

    def cost(self, charge):
        """Return the total of one charge."""
        cost, delta = self._cost_of(charge.event)
        if cost == math.inf:
            raise self._no_cost_error(charge.event)
        return _Sum(Fraction(cost), Fraction(delta), ((charge.epsilon, charge.delta),))

    def _cost_of(self, event):
        """Return the two terms that an event adds; the first is infinite if it has no cost."""
        config = self.config
        try:
            return _additive_cost(
                event, config.composition, config.rdp_order, config.relation, config.max_rows
            )
        except NoCostError:
            return math.inf, 0.0

    def _no_cost_error(self, event):
        """Return the error for an event without a finite cost, with the remedies."""
        without_cost = [leaf for leaf in leaves(event) if self._cost_of(leaf)[0] == math.inf]
        names = ", ".join(sorted({type(leaf).__name__ for leaf in without_cost}))
        subject = f"{names}, which is part of the charge"
        if not without_cost:
            # The delta of a part grows with the other parts for a group of rows.
            all_names = sorted({type(leaf).__name__ for leaf in leaves(event)})
            subject = f"the charge, which contains {', '.join(all_names)}"
        message = (
            f"composition={self.config.composition!r} has no finite cost for {subject}. Use a new "
            "ledger with composition='basic'"
        )
        if any(isinstance(leaf, ApproximateDP) for leaf in without_cost):
            message += (
                " or 'zcdp'. ApproximateDP is the event of categories that are found (declare "
                "them), of mechanism='objective', and of tuned or calibrated classifiers"
            )
        return ValueError(f"{message}.")

    def spent(self, total, limit):
        """Return the (epsilon, delta) of a total at the limit's delta."""
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

    def is_within(self, total, limit):
        """Return True if a total is within the limit; a quicker bound is tried first."""
        if self.config.composition == "zcdp" and 0.0 < limit[1] < 1.0 and not total.delta:
            # rho + 2 sqrt(rho ln(1 / delta)), Bun and Steinke 2016, Proposition 1.3. The tighter
            # conversion of `spent` minimizes over orders, which takes a third of a charge's time.
            rho = _ceil(total.cost)
            quick_epsilon = rho + 2.0 * math.sqrt(-rho * math.log(limit[1]))
            if quick_epsilon * (1.0 + 1e-12) <= limit[0]:
                return True
        return super().is_within(total, limit)


@dataclass(frozen=True)
class _Schedule:
    """The counts of events and of (epsilon, delta) pairs in a set of charges."""

    events: Counter
    prices: Counter

    @property
    def key(self):
        """A hashable value that is equal for equal schedules."""
        return (frozenset(self.events.items()), frozenset(self.prices.items()))


class FixedSchedule(_PricedAtLimit):
    """Composition of all events by one method; parameters must have been fixed beforehand.

    The (epsilon, delta) of the charges are also fixed, so the smaller of two bounds holds: the
    bound of the method on the events, and the bound on the (epsilon, delta) of the charges, by
    their sum or, for "advanced" and "auto", by advanced composition.

    A total is a tuple of schedules; its cost is the largest cost of one of them. It has several
    schedules after charges for disjoint parts of the rows (`worst`): a changed row affects only one
    of the parts (or two, if it may move), and which one costs most depends on the other charges.
    """

    zero = (_Schedule(Counter(), Counter()),)

    def price(self, event, budgets, delta=None):
        """Return the (epsilon, delta) of an event alone, at its own delta or the smallest limit's.

        A pure event is charged at delta = 0 unless a positive delta makes its epsilon much smaller:
        the sum of the charges' deltas has to be within the limit for their sum to be a bound.
        """
        price = super().price(event, budgets, delta)
        if delta is None or delta < price[1]:
            event_delta = _claimed_delta(event, self.config.max_rows)
            epsilon = self.single_epsilon(event, event_delta)
            if event_delta < price[1] and epsilon <= EVENT_DELTA_FACTOR * price[0]:
                return epsilon, event_delta
        return price

    def cost(self, charge):
        """Return the total of one charge."""
        price = charge.epsilon, charge.delta
        return (_Schedule(Counter(leaves(charge.event)), Counter([price])),)

    def add(self, *totals):
        """Return the total of charges that affect the same rows.

        The cost of a total is that of its worst schedule, which is unknown until all charges are
        added. So the result is not one sum: it has a schedule for every combination of one schedule
        from each total.
        """
        if math.prod(map(len, totals)) > MAX_CHOICES:
            raise ValueError(
                f"composition={self.config.composition!r} would compare more than {MAX_CHOICES} "
                "combinations of parts that were charged differently; use a filter such as "
                "composition='basic'"
            )
        return _distinct(_merge_schedules(choice) for choice in itertools.product(*totals))

    def worst(self, totals, affected):
        """Return the distinct sums of every choice of `affected` of the totals."""
        # Maps a number k to the sums of k of the visited totals. Equal sums are stored once, so
        # parts with equal charges do not multiply them.
        sums_by_size = {0: self.zero}
        affected = min(affected, len(totals))
        for n_left, total in zip(reversed(range(len(totals))), totals, strict=True):
            next_sums = {}
            for size, schedules in sums_by_size.items():
                if size + n_left >= affected:
                    next_sums[size] = _distinct((*next_sums.get(size, ()), *schedules))
                if size < affected:
                    sums = (*next_sums.get(size + 1, ()), *self.add(schedules, total))
                    next_sums[size + 1] = _distinct(sums)
            sums_by_size = next_sums
        return sums_by_size[affected]

    def spent(self, total, limit):
        """Return the (epsilon, delta) of a total at the limit's delta."""
        if not any(schedule.events for schedule in total):
            return 0.0, 0.0
        epsilons = []
        for schedule in total:
            by_method = self._epsilon_by_method(schedule, limit[1])
            epsilons.append(min(by_method, _sum_of_prices(schedule, limit[1])))
        return float(max(epsilons)), limit[1]

    def is_within(self, total, limit):
        """Return True if a total is within the limit; quicker bounds are tried first."""
        return all(self._is_schedule_within(schedule, limit) for schedule in total)

    def _is_schedule_within(self, schedule, limit):
        """Return True if one schedule is within the limit; quicker bounds are tried first."""
        epsilon, delta = limit
        is_sum_within = _sum_of_prices(schedule, delta) <= exact(epsilon)
        # Under "pld" an event without a loss distribution must be refused, regardless of its cost.
        if is_sum_within and self.config.composition != "pld":
            return True
        if self._quick_epsilon(schedule.events, delta) <= epsilon:
            return True
        return self._epsilon_by_method(schedule, delta) <= epsilon or is_sum_within

    def _quick_epsilon(self, counts, delta):
        """Return a bound on epsilon from RDP at a few orders, infinite if RDP does not apply."""
        if delta == 0.0 or self.config.composition != "auto":
            return math.inf
        config = self.config
        costs = sum(
            n * _rdp_at_quick_orders(event, config.relation, config.max_rows)
            for event, n in counts.items()
        )
        return min(map(rdp_to_epsilon, costs, QUICK_ORDERS, itertools.repeat(delta)))

    def _epsilon_by_method(self, schedule, delta):
        """Return the epsilon of the composed events, or of the composed prices if smaller."""
        method = self.config.composition
        if schedule.events.total() == 1:
            # The cost of a single release is computed from its privacy profile, under any method.
            method = "auto"
        events, prices = schedule.key
        event = Composed(tuple(leaf * count for leaf, count in events))
        epsilon = get_epsilon(
            event,
            delta,
            method=method,
            relation=self.config.relation,
            group_size=self.config.max_rows,
        )
        if self.config.composition in ("advanced", "auto"):
            pairs = ((*price, count) for price, count in sorted(prices))
            epsilon = min(epsilon, advanced_epsilon(pairs, delta))
        return epsilon


def _sum_of_prices(schedule, delta):
    """Return the sum of the epsilons of the charges, infinite if their deltas exceed delta."""
    total_epsilon = 0
    total_delta = 0
    for price, count in schedule.prices.items():
        total_epsilon += count * exact(price[0])
        total_delta += count * exact(price[1])
    if total_delta > exact(delta):
        return math.inf
    return total_epsilon


def _merge_schedules(schedules):
    """Return the schedule of all charges of several schedules."""
    events = sum((schedule.events for schedule in schedules), Counter())
    prices = sum((schedule.prices for schedule in schedules), Counter())
    return _Schedule(events, prices)


def _distinct(schedules):
    """Return the distinct schedules as a tuple."""
    return tuple({schedule.key: schedule for schedule in schedules}.values())


# The composition rules by name. Schedules hold only for parameters that were fixed beforehand.
SCHEDULES = dict.fromkeys(("advanced", "pld", "auto"), FixedSchedule)
FILTERS = {"basic": BasicComposition} | dict.fromkeys(("zcdp", "rdp", "gdp"), AdditiveFilter)
RULES = FILTERS | SCHEDULES
