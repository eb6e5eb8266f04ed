"""What an event costs in zero-concentrated, Renyi and Gaussian differential privacy."""

import math

from skdp.accounting import _events as ev
from skdp.accounting._divergences import pure_mu
from skdp.accounting._laws import composed_zcdp, group_event, law
from skdp.utils._rounding import sum_up
from skdp.utils._validation import check_integer, check_relation, check_within

_MAX_GROUP_SIZE = 10**9


def check_neighbours(relation: str, group_size: int) -> None:
    """Refuse what is no relation and no number of records that are protected together."""
    check_relation(relation)
    check_integer(group_size, "group_size", 1, _MAX_GROUP_SIZE)


def zcdp(
    event: ev.Event, *, relation: str = "add_remove", group_size: int = 1
) -> tuple[float, float]:
    """Cost in approximate zero-concentrated differential privacy.

    Costs add up, also for parameters chosen after seeing earlier results (Whitehouse et al.
    2023).

    Parameters
    ----------
    event : Event
        What was released.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    group_size : int, default=1
        The number of records protected together; rho grows with its square.

    Returns
    -------
    rho, delta : float
        The release is delta-approximate rho-zCDP (Bun and Steinke 2016). `rho` is infinite
        where no bound is known. A sampled event costs what it costs without sampling, which
        does not fit zCDP, or what its amplified (epsilon, delta) does where that is less.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, zcdp
    >>> rho, delta = zcdp(Gaussian(1.0) * 4)
    >>> round(rho, 12), delta
    (2.0, 0.0)
    """
    check_neighbours(relation, group_size)
    return composed_zcdp(ev.leaves(event), relation, group_size)


def rdp(
    event: ev.Event, order: float, *, relation: str = "add_remove", group_size: int = 1
) -> float:
    """Renyi differential privacy of an event at one order.

    Costs at one fixed order add up, also for parameters chosen after seeing earlier results
    (Feldman and Zrnic 2021).

    Parameters
    ----------
    event : Event
        What was released.
    order : float > 1
        At which the divergence is wanted.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        An upper bound on the Renyi divergence of this order, in nats; infinite where none is
        finite (an event with a delta of its own, such as `ApproximateDP`).

    Examples
    --------
    >>> from skdp.accounting import Gaussian, rdp
    >>> round(rdp(Gaussian(2.0) * 4, 8.0), 12)
    4.0
    """
    check_within(order, "order", 1.0, ends="()")
    check_neighbours(relation, group_size)
    parts = ev.leaves(event).items()
    costs = ((n, _group_rdp(part, float(order), relation, group_size)) for part, n in parts)
    return sum_up(costs) * (1.0 + 2.0**-50)


def _group_rdp(part, order, relation, k):
    grouped = group_event(part, k)
    if law(grouped or part, relation).delta > 0.0:
        return math.inf
    if grouped is not None:
        return law(grouped, relation).divergence(order)
    # Mironov (2017), proposition 2: a group of 2^c at order a costs 3^c r(2^c a), for a >= 2.
    c = math.ceil(math.log2(k))
    return 3.0**c * law(part, relation).divergence(2.0**c * max(order, 2.0))


def gdp(event: ev.Event, *, relation: str = "add_remove", group_size: int = 1) -> float:
    """Cost in Gaussian differential privacy, for a filter on the sum of mu^2.

    Parameters
    ----------
    event : Event
        Composed of Gaussian and of pure events.
    relation : {"add_remove", "replace_one"}, default="add_remove"
    group_size : int, default=1
        The number of records protected together.

    Returns
    -------
    float
        mu: 1 / noise_multiplier for a Gaussian release, 2 Phi^-1(e^epsilon / (1 + e^epsilon))
        for an epsilon-DP one (Dong, Roth and Su 2022), the root of the sum of squares for
        several.

    Raises
    ------
    ValueError
        For events that are neither; no central-limit approximation is made.

    Examples
    --------
    >>> from skdp.accounting import Gaussian, gdp
    >>> gdp(Gaussian(2.0) * 4)
    1.0
    """
    check_neighbours(relation, group_size)
    squares = []
    for part, count in ev.leaves(event).items():
        if isinstance(part, ev.Gaussian):
            squares.append(count * (group_size / part.noise_multiplier) ** 2)
            continue
        epsilon = group_size * law(part, relation).pure
        if epsilon == math.inf:
            raise ValueError(f"{type(part).__name__} has no cost in Gaussian DP")
        squares.append(count * pure_mu(epsilon) ** 2)
    return math.sqrt(math.fsum(squares))
