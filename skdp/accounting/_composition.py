"""How charges that are made one after another add up, and when the next one is refused.

Between charges an analyst chooses the next release after seeing the results of the last ones.
The compositions here are filters that stay valid then: their costs are plain sums, so that a
total is kept up to date by one addition. All are pure functions of totals; none opens a file.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from skdp.accounting._bounds import delta as event_delta
from skdp.accounting._bounds import epsilon as event_epsilon
from skdp.accounting._conversions import zcdp_to_epsilon
from skdp.accounting._events import ApproximateDP, leaves
from skdp.accounting._leaf import zcdp
from skdp.utils._validation import check_privacy_parameters

__all__ = ["BasicComposition", "ZCDPComposition", "claimed_price", "composition_rule"]


def exact(number):
    """Return the fraction that a float's shortest decimal text denotes: 0.1 is 1/10."""
    return Fraction(repr(float(number)))


def _floor(fraction):
    value = float(fraction)
    return math.nextafter(value, 0.0) if exact(value) > fraction else value


def _own_delta(event):
    """Return the sum of the deltas that an event's (epsilon, delta)-DP parts state."""
    parts = leaves(event).items()
    return min(1.0, math.fsum(n * p.delta for p, n in parts if isinstance(p, ApproximateDP)))


def claimed_price(event, epsilon, delta, relation):
    """Return the (epsilon, delta) that a release was calibrated to, once it is checked.

    Raises
    ------
    ValueError
        If the event costs more.
    """
    epsilon, delta = check_privacy_parameters(epsilon, 0.0 if delta is None else delta)
    if event_delta(event, epsilon, relation=relation) > delta * (1 + 1e-9):
        raise ValueError(f"the event is not ({epsilon:g}, {delta:g})-differentially private")
    return epsilon, delta


@dataclass(frozen=True)
class BasicComposition:
    r"""Sums of :math:`\varepsilon_i` and :math:`\delta_i`, kept as exact fractions.

    Valid when each release is chosen after seeing the ones before it (Rogers, Roth, Ullman and
    Vadhan 2016). A release whose event has no :math:`\delta` of its own, a Gaussian say, and
    for which none is stated, is priced at half of the :math:`\delta` that is left, or at all of
    it if the budget can pay only so.
    """

    relation: str
    group_size: int = 1

    zero = (Fraction(0), Fraction(0))

    def price(self, event, total, cap):
        """Return the (epsilon, delta) at which an event is booked, chosen before its release."""
        delta = _own_delta(event) if self.group_size == 1 else 0.0
        price = self._epsilon(event, delta)
        if price < math.inf:
            return price, delta
        left = max(exact(cap[1]) - total[1], Fraction(0))
        for delta in (_floor(left / 2), _floor(left)):
            price = self._epsilon(event, delta)
            if price < math.inf and total[0] + exact(price) <= exact(cap[0]):
                break
        return price, delta

    def add(self, total, spend):
        """Return the total after one more spend."""
        return total[0] + exact(spend.epsilon), total[1] + exact(spend.delta)

    def spent(self, total, cap):
        """Return the (epsilon, delta) spent so far."""
        return float(total[0]), float(total[1])

    def left(self, total, cap):
        """Return what the cap has left."""
        return tuple(float(max(exact(c) - t, 0)) for c, t in zip(cap, total, strict=True))

    def within(self, total, cap):
        """Say whether a total is within the cap."""
        return all(t <= exact(c) for c, t in zip(cap, total, strict=True))

    def _epsilon(self, event, delta):
        return event_epsilon(event, delta, relation=self.relation, group_size=self.group_size)


@dataclass(frozen=True)
class _ZCDPTotal:
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    count: int = 0
    only: tuple = (0.0, 0.0)


@dataclass(frozen=True)
class ZCDPComposition:
    r"""Sums of :math:`\rho_i`, turned into :math:`\varepsilon` at the cap's :math:`\delta`.

    A valid filter for (approximate) zero-concentrated differential privacy (Whitehouse, Ramdas,
    Rogers and Wu 2023). A ledger with one release is priced by that release's own curve: which
    of the two prices lets the first release through is known before any noise is drawn, and a
    second release is held against the sum alone.
    """

    relation: str
    group_size: int = 1

    zero = _ZCDPTotal()

    def price(self, event, total, cap):
        """Return the (epsilon, delta) that an event would cost alone."""
        return (
            event_epsilon(event, cap[1], relation=self.relation, group_size=self.group_size),
            cap[1],
        )

    def add(self, total, spend):
        """Return the total after one more spend."""
        rho, delta = zcdp(spend.event, relation=self.relation, group_size=self.group_size)
        return _ZCDPTotal(
            rho=total.rho + Fraction(rho),
            delta=total.delta + Fraction(delta),
            count=total.count + 1,
            only=(spend.epsilon, spend.delta),
        )

    def spent(self, total, cap):
        """Return the (epsilon, delta) spent so far; delta is the cap's."""
        if total.count == 0:
            return 0.0, 0.0
        composed = zcdp_to_epsilon(float(total.rho), cap[1], float(total.delta))
        if total.count == 1 and total.only[1] <= cap[1]:
            composed = min(composed, total.only[0])
        return composed, cap[1]

    def left(self, total, cap):
        """Return what the cap has left."""
        return max(cap[0] - self.spent(total, cap)[0], 0.0), cap[1]

    def within(self, total, cap):
        """Say whether a total is within the cap."""
        return self.spent(total, cap)[0] <= cap[0]


_RULES = {"basic": BasicComposition, "zcdp": ZCDPComposition}


def composition_rule(terms):
    """Return the rule of a ledger's terms.

    Raises
    ------
    ValueError
        If there is no composition of that name.
    """
    if terms.composition not in _RULES:
        raise ValueError(f"composition must be one of {sorted(_RULES)}, got {terms.composition!r}")
    return _RULES[terms.composition](relation=terms.relation)
