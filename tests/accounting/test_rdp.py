import math

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad, trapezoid
from scipy.special import comb
from scipy.stats import norm

from skdp.accounting import (
    ApproximateDP,
    DiscreteGaussian,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    RandomStopping,
    SampledWithoutReplacement,
    get_epsilon,
    rdp,
    rdp_to_delta,
    rdp_to_epsilon,
    zcdp,
)


@pytest.mark.parametrize("q, sigma", [(0.01, 1.0), (0.2, 0.7), (0.001, 5.0), (0.9, 2.0)])
@pytest.mark.parametrize("order", [2, 5, 32])
def test_sampled_gaussian_at_integer_orders(q, sigma, order):
    with mpmath.workdps(50):
        total = mpmath.fsum(
            mpmath.binomial(order, k)
            * mpmath.mpf(1 - mpmath.mpf(q)) ** (order - k)
            * mpmath.mpf(q) ** k
            * mpmath.exp(mpmath.mpf(k * (k - 1)) / (2 * mpmath.mpf(sigma) ** 2))
            for k in range(order + 1)
        )
        truth = float(mpmath.log(total) / (order - 1))
    found = rdp(PoissonSampled(q, Gaussian(sigma)), order)
    assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-9) + 2e-15


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("order", [1.01, 1.7, 3.3, 17.5])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_sampled_gaussian_by_quadrature(order, relation):
    q, sigma = 0.1, 1.1
    one = lambda x, m: (1 - q) * norm.pdf(x, 0, sigma) + q * norm.pdf(x, m, sigma)  # noqa: E731
    other = (lambda x: one(x, -1)) if relation == "replace_one" else lambda x: norm.pdf(x, 0, sigma)
    moments = []
    for p, r in ((lambda x: one(x, 1), other), (other, lambda x: one(x, 1))):
        function = lambda x: p(x) * (p(x) / r(x)) ** (order - 1)  # noqa: B023, E731
        edges = np.linspace(-14, order + 14, 60)
        moments.append(
            sum(
                quad(function, a, b, epsrel=1e-12)[0]
                for a, b in zip(edges, edges[1:], strict=False)
            )
        )
    truth = math.log(max(moments)) / (order - 1)
    found = rdp(PoissonSampled(q, Gaussian(sigma)), order, relation=relation)
    assert found == pytest.approx(truth, rel=1e-7)
    assert found >= truth * (1 - 1e-9)


@pytest.mark.parametrize("order", [1.5, 4.0, 20.0])
def test_without_replacement_is_below_the_published_sum(order):
    # Wang, Balle and Kasiviswanathan (2019), theorem 9, at integer orders above.
    q, z = 0.05, 2.0
    found = rdp(SampledWithoutReplacement(100, 5, Gaussian(z)), order, relation="replace_one")
    whole = math.ceil(order)
    base = lambda k: 2.0 * k / z**2  # noqa: E731
    total = 1.0
    for k in range(2, whole + 1):
        factor = min(4 * math.expm1(base(2)), 2 * math.exp(base(2))) if k == 2 else 2.0
        weight = factor if k == 2 else factor * math.exp((k - 1) * base(k))
        total += comb(whole, k) * q**k * weight
    assert found <= math.log(total) / (whole - 1)
    # The remove direction alone is attained.
    assert found >= rdp(PoissonSampled(q, Gaussian(z / 2.0)), order) * (1 - 1e-9)


def two_point(p, q, order):
    p, q = np.asarray(p), np.asarray(q)
    return math.log((p**order * q ** (1 - order)).sum()) / (order - 1)


@pytest.mark.parametrize("order", [1.2, 2.0, 9.0])
@pytest.mark.parametrize("eps", [0.01, 0.5, 3.0])
def test_closed_forms(order, eps):
    top = math.exp(eps) / (1 + math.exp(eps))
    truth = two_point([top, 1 - top], [1 - top, top], order)
    assert rdp(PureDP(eps), order) == pytest.approx(truth, rel=1e-9)
    assert rdp(DiscreteLaplace(1 / eps), order) == pytest.approx(truth, rel=1e-7)
    k, rest = 4, 1 / (3 + math.exp(eps))
    p = [rest * math.exp(eps)] + [rest] * (k - 1)
    assert rdp(RandomizedResponse(eps, k), order) == pytest.approx(
        two_point(p, p[::-1], order), rel=1e-9
    )
    x = np.linspace(0, 1, 200_001)
    density = 0.5 * np.exp(-eps * x) * eps
    middle = trapezoid(density * np.exp((order - 1) * eps * (1 - 2 * x)), x)
    ends = 0.5 * math.exp((order - 1) * eps) + 0.5 * math.exp(-eps - (order - 1) * eps)
    truth = math.log(middle + ends) / (order - 1)
    assert rdp(Laplace(eps), order) == pytest.approx(truth, rel=1e-6)
    t = np.linspace(1e-9, eps * (1 - 1e-9), 20_001)
    top = (math.exp(eps) - np.exp(t)) / math.expm1(eps)
    moments = top * np.exp((order - 1) * t) + (1 - top) * np.exp((order - 1) * (t - eps))
    truth = math.log(moments.max()) / (order - 1)
    assert truth * (1 - 1e-6) - 1e-12 <= rdp(ExponentialMechanism(eps), order)
    assert rdp(ExponentialMechanism(eps), order) <= truth * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 4.0, 20.0])
def test_zcdp_of_pure_events_covers_every_order(eps):
    orders = 1 + np.geomspace(1e-3, 1e4, 300)
    for event in (PureDP(eps), Laplace(eps), ExponentialMechanism(eps), RandomizedResponse(eps, 3)):
        rho, _ = zcdp(event)
        assert max(rdp(event, order) / order for order in orders) <= rho * (1 + 1e-9) + 1e-12


def test_discrete_gaussian_is_below_the_continuous_one():
    assert rdp(DiscreteGaussian(2.0, 3), 5.0) == pytest.approx(rdp(Gaussian(2 / 3), 5.0))
    sampled = PoissonSampled(0.1, DiscreteGaussian(2.0))
    assert rdp(sampled, 5.0) == pytest.approx(
        rdp(PoissonSampled(0.1, Gaussian(2.0)), 5.0), rel=0.05
    )


def test_orders_are_real_and_unbounded():
    # The best order of little noise lies near 1, that of much noise far above 64.
    for sigma in (0.01, 1.0, 100.0, 10_000.0):
        event = Gaussian(sigma) * 3
        assert get_epsilon(event, 1e-5, method="rdp") == pytest.approx(
            get_epsilon(event, 1e-5, method="zcdp"), rel=1e-6
        )


def test_approximate_events_have_no_renyi_divergence_but_a_bound():
    assert rdp(PoissonSampled(0.5, Gaussian(1.0)), 3.0, group_size=2) > 0.0
    assert rdp(ApproximateDP(1.0, 1e-9), 3.0, group_size=2) == math.inf
    event = ApproximateDP(0.1, 1e-9) * 20 + Gaussian(10.0)
    assert get_epsilon(event, 1e-6, method="rdp") < math.inf
    assert get_epsilon(event, 1e-9, method="rdp") == math.inf


def test_random_stopping():
    base = Gaussian(4.0)
    assert rdp(RandomStopping(base, 1.0), 3.0) == pytest.approx(rdp(base, 3.0), rel=1e-3)
    assert get_epsilon(RandomStopping(Laplace(0.1), 100), 0.0) == pytest.approx(0.3)
    costs = [get_epsilon(RandomStopping(base, mean), 1e-5) for mean in (2, 10, 100)]
    assert costs == sorted(costs)
    for beta in (1.5, 3.0, 20.0, 300.0):
        extra = 2 * ((1 - 1 / beta) * rdp(base, beta) + math.log(10) / beta)
        bound = rdp(base, 3.0) + extra + math.log(10) / 2
        assert rdp(RandomStopping(base, 10), 3.0) <= bound + 1e-12
    with pytest.raises(ValueError, match="no delta"):
        RandomStopping(ApproximateDP(1.0, 1e-9), 10)


def test_conversion_is_inverse_to_itself():
    for order in (1.5, 8.0, 100.0):
        eps = rdp_to_epsilon(0.3, order, 1e-6)
        assert rdp_to_delta(0.3, order, eps) == pytest.approx(1e-6, rel=1e-9)


@pytest.mark.parametrize("q, sigma, order", [(0.999, 20.0, 600.0), (1 - 1e-9, 3.0, 100.0)])
def test_replaced_gaussian_where_nearly_all_records_are_sampled(q, sigma, order):
    # With q near 1 the integrand has its mode near 2 order - 1, not near the order.
    x = np.linspace(-12.0 * sigma, 2.0 * order + 12.0 * sigma, 400_001)
    up, down = (
        np.logaddexp(math.log1p(-q), math.log(q) + (sign * x - 0.5) / sigma**2) for sign in (1, -1)
    )
    log_terms = norm.logpdf(x, scale=sigma) + order * up + (1.0 - order) * down
    peak = log_terms.max()
    truth = (peak + math.log(trapezoid(np.exp(log_terms - peak), x))) / (order - 1.0)
    found = rdp(PoissonSampled(q, Gaussian(sigma)), order, relation="replace_one")
    assert truth * (1.0 - 1e-12) <= found <= truth * (1.0 + 1e-9)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "q, sigma, order",
    [(4.2891207335274185e-06, 22.226458255978393, 2.3247764297893987), (1e-4, 3.0, 1.5)],
)
def test_a_divergence_near_zero_is_not_below_the_truth(relation, q, sigma, order):
    """The moment rounds to 1 or to its neighbors, so its logarithm alone would be too imprecise."""
    with mpmath.workdps(40):
        q_, sigma_, order_ = mpmath.mpf(q), mpmath.mpf(sigma), mpmath.mpf(order)

        def ratio(x):
            return 1 - q_ + q_ * mpmath.exp((2 * x - 1) / (2 * sigma_**2))

        def moment_minus_one(x):
            other, slope = mpmath.mpf(1), ratio(x) - 1
            if relation == "replace_one":
                other, slope = ratio(-x), ratio(x) - ratio(-x)
            power = other ** (1 - order_) * ratio(x) ** order_
            return mpmath.npdf(x, 0, sigma_) * (power - other - order_ * slope)

        ends = mpmath.linspace(-14 * sigma_, 14 * sigma_ + 2 * order_, 25)
        truth = mpmath.log1p(mpmath.quad(moment_minus_one, ends)) / (order_ - 1)
        found = mpmath.mpf(rdp(PoissonSampled(q, Gaussian(sigma)), order, relation=relation))
        assert truth <= found <= truth + 1e-14
