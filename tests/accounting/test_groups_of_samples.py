"""Groups of records under Poisson sampling, and sampled Laplace noise under replace-one."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

from skdp.accounting import (
    Gaussian,
    Laplace,
    PoissonSampled,
    RandomStopping,
    SampledWithoutReplacement,
    calibrate,
    event_from_json,
    get_delta,
    get_epsilon,
    rdp,
    zcdp,
)

RELATIONS = ("add_remove", "replace_one")

# Epsilon of dp-accounting 0.6.0, `from_mixture_gaussian_mechanism` with the shifts 0, ..., size and
# binomial weights, the larger order of the pair, at a value_discretization_interval of 1e-4 (3e-4
# for 10,000 steps and 1e-3 for the last). Its bounds are pessimistic, too.
GOLDEN = [
    (0.01, 1.0, 1000, 1e-5, 5, 11.637976520190229),
    (0.01, 1.0, 1000, 1e-5, 10, 27.899559737681763),
    (0.01, 2.0, 100, 1e-5, 5, 1.1134097953257567),
    (0.001, 0.6, 10_000, 1e-6, 5, 13.21528680700411),
    (0.05, 3.0, 1000, 1e-5, 2, 4.906327985151166),
    (0.1, 1.0, 1, 1e-5, 5, 9.71620712208757),
    (0.3, 20.0, 50, 1e-9, 10, 6.695100799590644),
]


def event_of(noise, scale, rate):
    return PoissonSampled(rate, noise(scale if noise is Gaussian else 1.0 / scale))


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def cell_masses(noise, scale, center, edges):
    """Masses of one axis of noise about a center, by differences of the smaller tail."""
    z = (edges - center) / scale
    if noise is Gaussian:
        below, above = ndtr(z), ndtr(-z)
    else:
        small = 0.5 * np.exp(-abs(z))
        below, above = np.where(z < 0, small, 1 - small), np.where(z > 0, small, 1 - small)
    return np.maximum(np.where(z[:-1] > 0, above[:-1] - above[1:], below[1:] - below[:-1]), 0.0)


def masses_of_records(noise, scale, rate, vectors, edges):
    """Masses of cells, on the line or in the plane, of a sum of sampled vectors with noise."""
    vectors = np.asarray(vectors, dtype=float)
    total = 0.0
    for chosen in itertools.product((False, True), repeat=len(vectors)):
        probability = math.prod(rate if is_in else 1.0 - rate for is_in in chosen)
        center = np.asarray(chosen, dtype=float) @ vectors
        axes = [cell_masses(noise, scale, each, edges) for each in center]
        cells = axes[0] if len(axes) == 1 else np.multiply.outer(*axes)
        total = total + probability * cells
    return np.ravel(total)


def masses_of_ones(noise, scale, rate, number, edges):
    """Masses on the line of as many sampled records of 1, or of -1 for a negative number."""
    ones = np.full((max(abs(number), 1), 1), float(np.sign(number)))
    return masses_of_records(noise, scale, rate, ones, edges)


def ways(relation, size):
    """The numbers of records of one table and of the other, in every way that a group changes."""
    if relation == "replace_one":
        return [(size, size)]
    return [(gained, size - gained) for gained in range(size + 1)]


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("rate", "sigma", "count", "k"),
    [(0.5, 2.0, 2, 3), (0.2, 2.5, 2, 4), (0.33, 2.2, 3, 3), (0.74, 3.0, 2, 4)],
)
def test_a_price_at_the_least_delta_is_finite(rate, sigma, count, k):
    event = PoissonSampled(rate, Gaussian(sigma)) * count
    assert get_epsilon(event, 1e-300, group_size=k) < np.inf
    assert 0.0 <= get_delta(event, 1.0, group_size=k) <= 1.0


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(("rate", "sigma", "steps", "delta", "size", "golden"), GOLDEN)
def test_groups_cost_what_the_mixture_of_gaussians_of_another_library_costs(
    rate, sigma, steps, delta, size, golden
):
    event = PoissonSampled(rate, Gaussian(sigma)) * steps
    assert get_epsilon(event, delta, group_size=size) == pytest.approx(golden, rel=1e-4)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("noise", [Gaussian, Laplace])
@pytest.mark.parametrize("relation", RELATIONS)
def test_two_releases_cost_what_their_cells_do(noise, relation):
    """Cells of two releases are post-processing: their divergence is a lower bound."""
    scale, rate, size = 1.3, 0.2, 3
    edges = np.concatenate(([-np.inf], np.linspace(-9 * scale, 9 * scale, 601), [np.inf]))
    tables = []
    for way in ways(relation, size):
        p, q = (masses_of_ones(noise, scale, rate, n, edges) for n in (way[0], -way[1]))
        tables.append([np.multiply.outer(each, each) for each in (p, q)])
    event = event_of(noise, scale, rate) * 2
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        found = get_delta(event, epsilon, relation=relation, group_size=size, method="pld")
        lower = max(hockey_stick(*two, epsilon) for two in tables)
        assert lower <= found <= lower * 1.02 + 1e-6


@pytest.mark.quick_cases(every=48)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("noise", [Gaussian, Laplace])
@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize(("rate", "scale"), [(1e-3, 0.7), (0.1, 4.0), (0.6, 0.7), (0.6, 4.0)])
def test_the_curve_is_the_largest_integral(noise, relation, size, rate, scale):
    """The hockey-stick divergence of the mixtures by brute force, on a fine grid of one axis."""
    edges = np.concatenate(([-np.inf], np.linspace(-40 * scale, 40 * scale, 100_001), [np.inf]))
    event = event_of(noise, scale, rate)
    masses = {n: masses_of_ones(noise, scale, rate, n, edges) for n in range(-size, size + 1)}
    for epsilon in (0.001, 0.1, 0.7, 2.0):
        exact = max(
            hockey_stick(masses[gained], masses[-lost], epsilon)
            for gained, lost in ways(relation, size)
        )
        found = get_delta(event, epsilon, relation=relation, group_size=size)
        assert exact * (1 - 1e-12) - 1e-15 <= found <= exact * (1 + 1e-4) + 1e-13


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize(
    ("noise", "scale", "rate", "size", "epsilon"),
    [
        (Gaussian, 1.0, 0.01, 4, 3.0),
        (Gaussian, 0.05, 0.1, 2, 900.0),
        (Gaussian, 2e4, 1e-9, 3, 1e-13),
        (Gaussian, 3.0, 0.9, 4, 6.0),
        (Gaussian, 1.0, 1e-12, 2, 1e-11),
        (Laplace, 2.0, 0.2, 3, 0.3),
        (Laplace, 0.3, 1e-9, 2, 1e-8),
        (Laplace, 50.0, 0.7, 3, 0.02),
    ],
)  # fmt: skip
@pytest.mark.parametrize("relation", RELATIONS)
def test_one_release_is_never_below_forty_digits(noise, scale, rate, size, epsilon, relation):
    """Above by as much as a loss moves that is off by 1e-12, and no more: the bound of the code."""
    found = get_delta(event_of(noise, scale, rate), epsilon, relation=relation, group_size=size)
    assert in_forty_digits(noise, scale, rate, size, epsilon, relation) <= found
    less = epsilon * (1.0 - 1e-12)
    assert found <= in_forty_digits(noise, scale, rate, size, less, relation) * (1 + 1e-11)


def in_forty_digits(noise, scale, rate, size, epsilon, relation):
    with mpmath.workdps(40):
        a, r = mpmath.mpf(scale if noise is Gaussian else 1.0 / (1.0 / scale)), mpmath.mpf(rate)

        def above(z):
            if noise is Gaussian:
                return mpmath.ncdf(-z / a)
            return mpmath.exp(-z / a) / 2 if z > 0 else 1 - mpmath.exp(z / a) / 2

        def log_ratio(i, x):
            if noise is Gaussian:
                return i * (x - mpmath.mpf(i) / 2) / a**2
            return (2 * min(max(x, 0), i) - i) / a

        def weights(n):
            return [mpmath.binomial(n, i) * r**i * (1 - r) ** (n - i) for i in range(n + 1)]

        def divergence(gained, lost):
            up, down = weights(gained), weights(lost)

            def loss(x):
                one = sum(w * mpmath.exp(log_ratio(i, x)) for i, w in enumerate(up))
                two = sum(w * mpmath.exp(log_ratio(j, -x)) for j, w in enumerate(down))
                return mpmath.log(one / two)

            low, high = (-lost, gained) if noise is Laplace else (-1000 * a - 100, 1000 * a + 100)
            low, high = mpmath.mpf(low), mpmath.mpf(high)
            if loss(high) <= epsilon:
                return mpmath.mpf(0)
            for _ in range(130):
                x = (low + high) / 2
                low, high = (low, x) if loss(x) > epsilon else (x, high)
            p = sum(w * above(x - i) for i, w in enumerate(up))
            q = sum(w * above(x + j) for j, w in enumerate(down))
            return p - mpmath.exp(epsilon) * q

        return max(divergence(*way) for way in ways(relation, size))


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("noise", [Gaussian, Laplace])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_directions_of_contributions_cost_more(noise, size):
    """Vectors of the plane of random directions and lengths: added, removed, both, and replaced."""
    rng = np.random.default_rng(0)
    for trial in range(9):
        rate, scale = rng.choice([0.05, 0.3, 0.7]), rng.choice([0.6, 1.0, 3.0])
        edges = np.concatenate(([-np.inf], np.linspace(-9 * scale, 9 * scale, 241), [np.inf]))
        one, two = rng.normal(size=(2, size, 2))
        if trial % 3 == 0:
            # The records of each table on an axis of their own.
            one, two = np.eye(2)[[0] * size], np.eye(2)[[1] * size]
        if trial % 3 == 1:
            two = -one
        order = 2 if noise is Gaussian else 1
        one, two = (v / np.linalg.norm(v, ord=order, axis=1, keepdims=True) for v in (one, two))
        if trial % 2:
            two = two * rng.uniform(0.5, 1.0, (size, 1))
        gained = int(rng.integers(0, size + 1))
        none = np.zeros((1, 2))
        changes = {
            "add_remove": [
                (one if gained == size else one[:gained] if gained else none,
                 two[gained:] if gained < size else none),
                (two, none),
                (none, one),
            ],
            "replace_one": [(one, two), (two, one)],
        }  # fmt: skip
        event = event_of(noise, scale, rate)
        for relation, tables in changes.items():
            p_and_q = [
                [masses_of_records(noise, scale, rate, v, edges) for v in pair] for pair in tables
            ]
            for epsilon in (0.01, 0.2, 0.6, 1.5):
                worst = max(hockey_stick(*pair, epsilon) for pair in p_and_q)
                found = get_delta(event, epsilon, relation=relation, group_size=size)
                assert worst <= found + 1e-13, (relation, trial, epsilon)


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_sampled_laplace_noise_under_replace_one_costs_its_own_pair(rate, epsilon):
    """Never more than the curve of joint convexity, which sampling without replacement has."""
    event = PoissonSampled(rate, Laplace(epsilon))
    joint = SampledWithoutReplacement(1000, round(1000 * rate), Laplace(epsilon))
    for steps in (1, 100):
        found = get_epsilon(event * steps, 1e-6, relation="replace_one")
        assert 0.0 < found <= get_epsilon(joint * steps, 1e-6, relation="replace_one") * (1 + 1e-6)
        assert found >= get_epsilon(event * steps, 1e-6) * (1 - 1e-6)


def test_sampled_laplace_noise_under_replace_one_is_not_loose():
    """0.01 x 100 releases at epsilon 3 cost 4 times as much by joint convexity."""
    event = PoissonSampled(0.01, Laplace(3.0)) * 100
    joint = SampledWithoutReplacement(1000, 10, Laplace(3.0)) * 100
    found, loose = (get_epsilon(e, 1e-6, relation="replace_one") for e in (event, joint))
    assert found < 0.5 * loose


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_group_costs_more_than_a_smaller_one_and_less_than_without_sampling(relation):
    event = PoissonSampled(0.1, Gaussian(4.0)) * 30
    sizes = [1, 2, 3, 5, 8]
    costs = [get_epsilon(event, 1e-6, relation=relation, group_size=k) for k in sizes]
    assert costs == sorted(costs)
    shift = 2 if relation == "replace_one" else 1
    for k, cost in zip(sizes, costs, strict=True):
        assert cost <= get_epsilon(Gaussian(4.0 / shift) * 30, 1e-6, group_size=k)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "event", [PoissonSampled(0.05, Gaussian(1.5)), PoissonSampled(0.2, Laplace(0.4))]
)
def test_renyi_divergences_of_groups_are_integrals(relation, event):
    inner, rate = event.event, event.sampling_rate
    noise, scale = type(inner), 1.5 if isinstance(inner, Gaussian) else 2.5
    edges = np.concatenate(([-np.inf], np.linspace(-60.0, 60.0, 100_001), [np.inf]))
    masses = {n: masses_of_ones(noise, scale, rate, n, edges) for n in range(-3, 4)}
    for order in (1.01, 1.5, 2.0, 8.0):
        moments = []
        for gained, lost in ways(relation, 3):
            p, q = masses[gained], masses[-lost]
            both = (p > 0.0) & (q > 0.0)
            logs = order * np.log(p[both]) + (1 - order) * np.log(q[both])
            moments.append(float(np.exp(logs).sum()))
        exact = math.log(max(moments)) / (order - 1.0)
        found = rdp(event, order, relation=relation, group_size=3)
        assert exact * (1 - 1e-9) - 1e-12 <= found <= exact * (1 + 1e-3)


@pytest.mark.thorough
def test_noise_for_a_group_is_less_than_the_general_bound_asks_for():
    """At epsilon 8 the general bound prices one record at 1.6 and the delta that is left."""

    def made(noise):
        return PoissonSampled(0.01, Gaussian(noise)) * 1000

    noise = calibrate(made, 8.0, 1e-5, group_size=5, rtol=1e-3)
    assert get_epsilon(made(noise), 1e-5, group_size=5) <= 8.0
    general = calibrate(made, 1.6, 1e-5 * math.expm1(1.6) / math.expm1(8.0))
    assert noise < 0.95 * general


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["auto", "pld", "rdp", "zcdp", "basic", "advanced"])
@pytest.mark.parametrize(
    "event",
    [
        PoissonSampled(0.01, Gaussian(1.0)) * 100,
        PoissonSampled(0.2, Gaussian(0.3)),
        PoissonSampled(0.05, Laplace(0.5)) * 20 + Gaussian(3.0),
        RandomStopping(PoissonSampled(0.05, Gaussian(2.0)) * 10, mean=5.0),
    ],
)
def test_a_group_never_costs_more_than_the_general_bound(event, method, relation):
    """k epsilon at the delta of one record that adds up to the group's."""
    if method == "pld" and isinstance(event, RandomStopping):
        return
    options = {"method": method, "relation": relation}
    delta, k = 1e-6, 3
    found = get_epsilon(event, delta, group_size=k, **options)
    for share in (1e-2, 1e-4, 1e-6, 1e-9, 1e-14):
        one = get_epsilon(event, delta * share, **options)
        if one < math.inf and k * one < 700.0:
            grown = delta * share * math.expm1(k * one) / math.expm1(one)
            assert grown > delta or found <= k * one * (1 + 1e-9)


def test_zcdp_of_a_group_of_samples_is_that_of_the_unsampled_group():
    assert zcdp(PoissonSampled(0.1, Gaussian(2.0)), group_size=3) == pytest.approx((9 / 8, 0.0))


def test_the_event_of_a_group_is_not_read_from_a_ledger():
    with pytest.raises(ValueError, match="unknown event type"):
        event_from_json(
            '{"event":{"noise_multiplier":1.0,"type":"Gaussian"},"type":"SampledGroup"}'
        )
