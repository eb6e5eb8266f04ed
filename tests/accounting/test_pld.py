"""Privacy loss distributions against curves found in other ways."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skdp import PrivacyAccountant
from skdp.accounting import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
    _advanced,
    _bounds,
    _calibrate,
    _composition,
    _fewer,
    _gaussian,
    _laws,
    _pairs,
    _pld,
    _rdp,
    _sampled,
    calibrate,
    gaussian_noise_multiplier,
    gdp_to_delta,
    get_delta,
    get_epsilon,
    trade_off,
)
from skdp.accounting._advanced import optimal_epsilon
from skdp.accounting._events import SampledGroup, leaves
from skdp.accounting._gaussian import mean_delta, summed_noise_multiplier
from skdp.accounting._guarantee import split_epsilon
from skdp.accounting._laws import privacy_of
from skdp.accounting._pairs import discretize
from skdp.accounting._pld import _coarse_parts, _compose_directly, pld_epsilon
from skdp.accounting._rdp import stopping_gamma
from skdp.ledger import Charge


def hockey_stick(p, q, eps, breaks):
    """Integral of (p - e^eps q)_+ by quadrature on the intervals between breaks."""
    pieces = zip(breaks[:-1], breaks[1:], strict=True)
    function = lambda x: max(0.0, p(x) - math.exp(eps) * q(x))  # noqa: E731
    return math.fsum(
        quad(function, a, b, epsabs=1e-14, epsrel=1e-11, limit=400)[0] for a, b in pieces
    )


def densities(event, relation):
    """Densities of the pair (both orders are tried) and points to break the integral at."""
    inner = event.event
    if isinstance(inner, Gaussian):
        sigma = inner.noise_multiplier
        base, breaks = (lambda x, m: norm.pdf(x, m, sigma)), np.linspace(-14, 15, 59) * sigma
    else:
        scale = 1 / inner.epsilon
        base = lambda x, m: math.exp(-abs(x - m) / scale) / (2 * scale)  # noqa: E731
        breaks = np.concatenate((np.linspace(-60, 0, 7), [0.5], np.linspace(1, 61, 7))) * scale
        breaks = np.unique(np.concatenate((breaks, [-1.0, 0.0, 0.5, 1.0])))
    q = event.sampling_rate
    mixture = lambda m: lambda x: (1 - q) * base(x, 0.0) + q * base(x, m)  # noqa: E731
    other = mixture(-1.0) if relation == "replace_one" else lambda x: base(x, 0.0)
    return mixture(1.0), other, breaks


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("eps", [0.01, 0.1, 0.4])
@pytest.mark.parametrize(
    "event, relation",
    [
        (PoissonSampled(0.1, Gaussian(1.3)), "add_remove"),
        (PoissonSampled(0.1, Gaussian(1.3)), "replace_one"),
        (PoissonSampled(0.6, Gaussian(2.0)), "replace_one"),
        (PoissonSampled(0.3, Laplace(1.0)), "add_remove"),
    ],
)
def test_one_sampled_release_by_quadrature(event, relation, eps):
    p, q, breaks = densities(event, relation)
    truth = max(hockey_stick(p, q, eps, breaks), hockey_stick(q, p, eps, breaks))
    found = get_delta(event, eps, relation=relation, method="pld", tolerance=1e-6)
    assert truth * (1 - 1e-7) - 1e-13 <= found <= truth * (1 + 1e-3)


def test_replacing_under_general_noise_covers_the_attained_pair():
    event = PoissonSampled(0.3, Laplace(1.0))
    p, q, breaks = densities(event, "replace_one")
    for eps in (0.05, 0.3):
        assert get_delta(event, eps, relation="replace_one") >= hockey_stick(p, q, eps, breaks)


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_sampling_without_replacement_is_the_amplified_curve(rate):
    # Balle, Barthe and Gaboardi (2018): delta' = q delta at epsilon' = ln(1 + q (e^eps - 1)).
    event = SampledWithoutReplacement(1000, int(1000 * rate), Gaussian(2.0))
    for eps in (0.1, 1.0, 2.0):
        amplified = math.log1p(rate * math.expm1(eps))
        truth = rate * get_delta(Gaussian(1.0), eps)
        found = get_delta(event, amplified, relation="replace_one", method="pld", tolerance=1e-6)
        assert truth * (1 - 1e-7) <= found <= truth * (1 + 1e-3)


def certified_lower_delta(event, count, relation, eps, cells=30_000):
    """A lower bound: outcomes merged into cells (post-processing), their losses floored."""
    bounds = []
    for pair in privacy_of(event, relation).pairs():
        grid = discretize(pair, 8.0 / cells, -4.0, 4.0)
        edges = grid.losses
        p_cdf, p_sf, q_cdf, q_sf = pair.tails(edges)
        p = np.where(p_sf[:-1] < p_cdf[1:], p_sf[:-1] - p_sf[1:], p_cdf[1:] - p_cdf[:-1])
        q = np.where(q_sf[:-1] < q_cdf[1:], q_sf[:-1] - q_sf[1:], q_cdf[1:] - q_cdf[:-1])
        p, q = np.append(p, p_sf[-1]), np.append(q, q_sf[-1])
        p, q = np.append(p, pair.p), np.append(q, pair.q)
        keep = (p > 1e-290) & (q > 1e-290)
        losses = np.log(p[keep] / q[keep])
        floor = np.floor(losses / grid.step).astype(int)
        mass = np.bincount(floor - floor.min(), p[keep])
        size = 1 << (len(mass) * 2 * count).bit_length()
        total = np.fft.irfft(np.fft.rfft(mass, size) ** count, size)
        grid_losses = grid.step * (floor.min() * count + np.arange(size))
        bounds.append(float(total @ np.maximum(0.0, -np.expm1(eps - grid_losses))))
    return max(bounds)


@pytest.mark.parametrize(
    "event, relation",
    [
        (PoissonSampled(0.1, Gaussian(1.3)), "add_remove"),
        (PoissonSampled(0.2, Gaussian(2.0)), "replace_one"),
        (SampledWithoutReplacement(10, 2, Gaussian(2.0)), "replace_one"),
    ],
)
def test_between_a_certified_lower_bound_and_little_more(event, relation):
    lower = certified_lower_delta(event, 10, relation, 0.8)
    upper = get_delta(event * 10, 0.8, relation=relation, method="pld")
    assert lower - 1e-12 <= upper <= lower * 1.01 + 1e-9


@pytest.mark.parametrize("delta_", [1e-60, 1e-20, 1e-15, 1e-11, 1e-5, 0.1])
def test_gaussian_by_transform(delta_):
    exact = get_epsilon(Gaussian(1.0), delta_)
    found = pld_epsilon(leaves(Gaussian(2.0) * 4), delta_, "add_remove", 1e-6)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-5)


def test_randomized_response_by_enumeration():
    eps0, k, count = 1.0, 5, 3
    top, low = math.exp(eps0) / (k - 1 + math.exp(eps0)), 1 / (k - 1 + math.exp(eps0))
    p, q = np.array([top, low] + [low] * (k - 2)), np.array([low, top] + [low] * (k - 2))
    joint_p, joint_q = p, q
    for _ in range(count - 1):
        joint_p, joint_q = np.outer(joint_p, p).ravel(), np.outer(joint_q, q).ravel()
    for eps in (0.3, 1.5, 2.5):
        truth = np.maximum(joint_p - math.exp(eps) * joint_q, 0).sum()
        assert get_delta(RandomizedResponse(eps0, k) * count, eps) == pytest.approx(truth, rel=1e-9)


def test_discrete_gaussian_by_enumeration():
    sigma, shift = 1.7, 2
    x = np.arange(-80, 81)
    p = np.exp(-0.5 * (x / sigma) ** 2)
    q = np.exp(-0.5 * ((x - shift) / sigma) ** 2)
    p, q = p / p.sum(), q / p.sum()
    p2, q2 = np.outer(p, p), np.outer(q, q)
    for eps in (0.5, 3.0):
        truth = np.maximum(p2 - math.exp(eps) * q2, 0).sum()
        found = get_delta(DiscreteGaussian(sigma, shift) * 2, eps, method="pld")
        assert truth * (1 - 1e-10) <= found <= truth * (1 + 1e-6)


def test_exponential_mechanism_curve_is_the_largest_two_point_curve():
    eps0 = 1.0
    t = np.linspace(0, eps0, 20001)
    top = (math.exp(eps0) - np.exp(t)) / math.expm1(eps0)
    for eps in (0.1, 0.5, 0.9):
        truth = np.max(top * np.maximum(0.0, -np.expm1(eps - t)))
        found = get_delta(ExponentialMechanism(eps0), eps)
        assert truth * (1 - 1e-6) <= found <= truth * (1 + 1e-3)


def test_step_shrinks_with_the_tolerance():
    event = PoissonSampled(0.01, Gaussian(1.0)) * 1000
    values = [get_epsilon(event, 1e-5, method="pld", tolerance=t) for t in (1e-2, 1e-3, 1e-4, 1e-6)]
    assert values == sorted(values, reverse=True)
    assert values[0] - values[-1] < 1e-2


@pytest.mark.parametrize("count", [2, 5, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.83])
def test_atoms_on_a_lattice_are_composed_on_it(epsilon, count, monkeypatch):
    sizes = []

    def counted(*args):
        grid = discretize(*args)
        sizes.append(len(grid.mass))
        return grid

    monkeypatch.setattr(_pld, "discretize", counted)
    _bounds._epsilon.cache_clear()
    # The largest loss alone is above the answer.
    largest = (1.0 + math.exp(-epsilon)) ** -count
    delta = 0.5 * largest * -math.expm1(-2.0 * epsilon)
    truth = count * epsilon + math.log1p(-delta / largest)
    found = get_epsilon(PureDP(epsilon) * count, delta, method="pld")
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-6)
    # Distributions that only bound where the answer lies have some three thousand points.
    coarse, *fine = sizes
    assert coarse > 3000 and fine and max(fine) < 100


def test_atoms_on_no_lattice_keep_a_fine_grid_beside_those_on_one():
    sampled = PoissonSampled(0.3, RandomizedResponse(1.0)) * 4
    event = PureDP(3.0) * 2 + sampled
    usual, fine = (get_epsilon(event, 1e-2, method="pld", tolerance=t) for t in (1e-4, 1e-6))
    assert abs(usual - fine) < 1e-4 * fine
    assert usual < 6.0 + get_epsilon(sampled, 0.0, method="pld") - 0.1


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("d", [1e-3, 1e-8])
@pytest.mark.parametrize(
    "event, relation",
    [
        (PoissonSampled(0.3, Laplace(0.7)), "add_remove"),
        (PoissonSampled(0.2, ExponentialMechanism(1.0)), "replace_one"),
        (PoissonSampled(0.2, RandomizedResponse(1.0, 4)), "add_remove"),
        (PoissonSampled(0.2, PureDP(0.5) * 3), "replace_one"),
        (PoissonSampled(0.1, DiscreteGaussian(1.5, 2)), "replace_one"),
        (SampledWithoutReplacement(100, 7, Gaussian(1.2)), "add_remove"),
        (SampledWithoutReplacement(100, 7, Laplace(0.7)), "replace_one"),
        (DiscreteGaussian(1.5, 2), "add_remove"),
    ],
)
def test_closed_form_and_fine_grid_agree(event, relation, d):
    closed = get_epsilon(event, d, relation=relation, method="pld")
    grid = pld_epsilon(leaves(event), d, relation, 1e-6)
    assert grid * (1 - 1e-5) <= closed <= grid * (1 + 1e-9) < math.inf


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("noise", [1e-40, 1e-49])
def test_losses_beyond_every_grid_have_no_price_by_a_grid(noise, relation):
    """Of these `get_epsilon` takes another method's price (`test_rounding.py`)."""
    event = Gaussian(noise) + PureDP(0.1)
    assert pld_epsilon(leaves(event), 1e-5, relation, 1e-4) == math.inf


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_few_samples_have_a_finite_epsilon_at_tiny_deltas(relation):
    for rate, noise, count, delta in (
        (1e-6, 0.6, 1, 1e-18),
        (1e-4, 1.0, 10, 1e-16),
        (1e-3, 4.0, 100, 1e-14),
    ):
        event = PoissonSampled(rate, Gaussian(noise)) * count
        found = get_epsilon(event, delta, relation=relation, method="pld")
        assert found <= get_epsilon(event, delta, relation=relation, method="rdp") * (1 + 1e-9)
        assert found <= get_epsilon(event * 30, delta, relation=relation) * (1 + 1e-9)


# Noise multipliers of sums and means of losses, in closed form.


@pytest.mark.parametrize("delta_", [1e-100, 1e-15, 1e-5, 0.1, 0.9])
def test_noise_for_a_sum_of_curves_is_on_the_safe_side_and_tight(delta_):
    for eps, longest, n in itertools.product([1e-4, 0.1, 1, 8, 1e3], [1.0, 2.0], [1, 3, 50]):
        curves = [(1, longest / 64, 0.3 * eps), (n, 1.0, eps), (n * n, longest, eps)]
        z = summed_noise_multiplier(curves, delta_)

        def total(z, curves=curves):
            return sum(count * gdp_to_delta(move / z, eps) for count, move, eps in curves)

        assert total(z) <= delta_
        assert total(z * (1 - 1e-8)) > delta_


def exact_mean_delta(vectors, shares, epsilon):
    """By quadrature, for Gaussian losses of vectors in the plane, of the means that shares make."""
    axis = np.linspace(-9.0, 9.0, 241)
    b = np.stack(np.meshgrid(axis, axis), axis=-1)
    density = np.exp(-0.5 * (b**2).sum(axis=-1)) / (2 * np.pi) * (axis[1] - axis[0]) ** 2
    losses = [np.maximum(b @ v + 0.5 * (v @ v), 0.0) for v in vectors]
    loss = sum(share * each for share, each in zip(shares, losses, strict=True))
    return np.sum(density * -np.expm1(np.minimum(epsilon - loss, 0.0)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_delta_of_a_mean_of_losses_is_bounded(epsilon):
    for mu in (0.25, 1.0, 2.0):
        claim = mean_delta([(1.0, mu, epsilon)], 1.0)
        # The mean of losses that are alike is one of them.
        assert gdp_to_delta(mu, epsilon) <= claim
        angles = [[0.0], [0.0, 0.5], [0.0, 1.5, 3.0, 4.5], [0.0, 0.1, -0.1]]
        for angle in map(np.array, angles):
            vectors = mu * np.column_stack([np.cos(angle), np.sin(angle)])
            shares = np.full(len(angle), 1.0 / len(angle))
            assert exact_mean_delta(vectors, shares, epsilon) <= 1.001 * claim + 1e-9


def test_noise_for_a_mean_of_losses():
    """By mpmath and a search for the tangent, as docs say."""

    def bound(u, z, n=2, epsilon=1.0):
        mu = 1.0 / mpmath.mpf(z)
        t = (epsilon + u - mpmath.expm1(u)) / mu - mu / 2
        return n * mpmath.exp(-u) * mu * (mpmath.npdf(t) - t * mpmath.ncdf(-t))

    z = summed_noise_multiplier([(2, 1.0, 1.0)], 1e-6, mean_delta)
    least = min(bound(math.log(2.0) * k / 500, z) for k in range(1, 501))
    assert 0.998e-6 < least <= 1e-6
    more = [
        summed_noise_multiplier([(1, 1.0, epsilon)], 1e-6, mean_delta)
        / gaussian_noise_multiplier(epsilon, 1e-6)
        for epsilon in (0.1, 1.0, 4.0)
    ]
    np.testing.assert_allclose(more, [1.00019, 1.00113, 1.0029], rtol=1e-4)


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("mean", [1.0, 1.5, 10.0, 1000.0])
def test_stopping_parameter_has_the_mean(shape, mean):
    gamma = stopping_gamma(mean, shape)
    if gamma == 1.0:
        assert mean == 1.0
    elif shape == 0.0:
        assert (1 / gamma - 1) / math.log(1 / gamma) == pytest.approx(mean)
    else:
        assert shape * (1 - gamma) / (gamma * (1 - gamma**shape)) == pytest.approx(mean)


# Tiny epsilons, and composition term by term.


@pytest.mark.parametrize("mu", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("reach", [0.3, 2.0, 5.0])
def test_tolerance_is_relative_to_a_tiny_epsilon(mu, reach):
    """Four Gaussian releases on a grid against the closed form of one."""
    exact = reach * mu
    d = gdp_to_delta(mu, exact)
    found = pld_epsilon(leaves(Gaussian(2.0 / mu) * 4), d, "add_remove", 1e-4)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-4)


@pytest.mark.parametrize("eps, d", [(1e-3, 1e-7), (1e-5, 1e-9), (3e-6, 1e-6)])
def test_tolerance_of_a_tiny_epsilon_with_atoms(eps, d):
    exact = optimal_epsilon(eps, 30, d)
    found = get_epsilon(RandomizedResponse(eps) * 30, d, method="pld")
    assert exact * (1 - 1e-6) <= found <= exact * (1 + 1e-4)
    # Laplace releases cost no more than randomized response.
    found = get_epsilon(Laplace(eps) * 30, d, method="pld")
    finer = pld_epsilon(leaves(Laplace(eps) * 30), d, "add_remove", 1e-6)
    assert found == pytest.approx(finer, rel=1e-4)
    assert finer <= exact * (1 + 1e-5)


def test_direct_composition_of_gaussians():
    """A convolution term by term against the closed form, far below what a transform resolves."""
    (pair,) = privacy_of(Gaussian(2.0), "add_remove").pairs()
    for count in (1, 3, 4):
        mu, eps = math.sqrt(count) / 2.0, 6.0
        truth = gdp_to_delta(mu, eps)
        total = _compose_directly(_coarse_parts([(pair, count)], truth), 5e-3, truth)
        found = total.delta(eps)
        assert truth * (1 - 1e-10) <= found <= truth * (1 + 1e-3)


def test_direct_composition_loses_no_mass():
    (pair,) = privacy_of(Gaussian(2.0), "add_remove").pairs()
    for count in (1, 6, 7):
        total = _compose_directly(_coarse_parts([(pair, count)], 0.5), 5e-3, 0.5)
        assert 1e-8 < total.beyond < 1e-5
        assert total.beyond + float(total.masses.sum()) == pytest.approx(1.0, abs=1e-11)


# How much work a price takes at absurd sizes, counted in cells and products and not in time.


# About 5 and 10 seconds of one core: cells of grids, and products of masses.
MOST_CELLS, MOST_PRODUCTS = 1 << 26, 1 << 35


def many(make, number):
    return Composed(tuple(make(i) for i in range(number)))


SIZES = {
    "a lattice far below the step": (
        PoissonSampled(0.5, RandomizedResponse(0.0014, 2))
        + PoissonSampled(0.9995, PureDP(3.6)) * 38
        + Laplace(2.2e-9) * 88,
        2.6e-113,
        2,
    ),
    "a group of 1e9 rare samples": (PoissonSampled(1e-7, DiscreteGaussian(30.0)) * 10**9, 1e-9, 3),
    "100 events, 1e5 times each": (
        many(lambda i: PoissonSampled(0.01 + 1e-6 * i, Gaussian(1 + i * 1e-3)) * 10**5, 100),
        1e-6,
        1,
    ),
    "a group of 32 in 1e9 rare samples": (PoissonSampled(1e-8, Gaussian(0.5)) * 10**9, 1e-12, 32),
    "1,000 events": (
        many(lambda i: PoissonSampled(0.01 + 1e-6 * i, Laplace(0.1 + i * 1e-3)), 1000),
        1e-6,
        1,
    ),
    "1e9 releases of hardly any noise": (PoissonSampled(0.5, Gaussian(1e-12)) * 10**9, 1e-300, 1),
    "rare samples at a tiny delta": (
        PoissonSampled(4e-5, Gaussian(2.4)) * 659_021
        + PoissonSampled(1e-5, Gaussian(2.4)) * 659_021,
        4.7e-220,
        1,
    ),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("size", SIZES)
def test_the_work_of_a_price_is_bounded(monkeypatch, size, relation):
    event, delta, group_size = SIZES[size]
    work = {"cells": 0, "products": 0}
    discretize, convolve, next_fast_len = _pld.discretize, np.convolve, _pld.next_fast_len

    def counted(*args):
        grid = discretize(*args)
        work["cells"] += len(grid.mass)
        return grid

    def convolved(one, two):
        work["products"] += len(one) * len(two)
        return convolve(one, two)

    def transformed(length, **kinds):
        work["cells"] += length
        return next_fast_len(length, **kinds)

    monkeypatch.setattr(_pld, "discretize", counted)
    monkeypatch.setattr(_pld, "next_fast_len", transformed)
    monkeypatch.setattr(_pld.np, "convolve", convolved)
    found = get_epsilon(event, delta, relation=relation, group_size=group_size)
    assert found > 0.0
    assert work["cells"] <= MOST_CELLS
    assert work["products"] <= MOST_PRODUCTS


@pytest.mark.parametrize("size", [10, 32])
def test_the_densities_of_a_group_are_bounded(size):
    """Cells times densities of a cell, for all changes of a group together."""
    event = SampledGroup(PoissonSampled(1e-8, Gaussian(0.5)), size)
    (direction, *others) = _pld._directions({event: 10**9}, "add_remove")
    assert len(others) == size
    parts = _pld._coarse_parts(direction, 1e-12)
    width = parts[0].high - parts[0].low
    step = _pld._step(parts, 5.0, 1.0, 1e-9, width)
    densities = (width / step) * (size + 2) * (size + 1)
    assert 0.9 * _pld._MAX_TERMS <= densities <= 1.01 * _pld._MAX_TERMS


def test_a_trade_off_without_privacy_needs_no_search():
    event = PoissonSampled(0.999, Laplace(1.0 / 30.0)) * 10**8
    assert trade_off(event, 1e-12, relation="replace_one") == 0.0


@pytest.mark.thorough
def test_a_rough_trade_off_is_a_valid_bound():
    """More releases than `_MANY_RELEASES` are searched with a larger tolerance."""
    alpha = 0.05
    few = PoissonSampled(1e-4, Gaussian(300.0)) * 10**6
    many = PoissonSampled(1e-4, Gaussian(300.0)) * (10**6 + 1)
    assert 0.999 * trade_off(few, alpha) <= trade_off(many, alpha) <= trade_off(few, alpha)


@pytest.mark.thorough
def test_the_delta_of_a_large_group_needs_no_search():
    event = PoissonSampled(0.01, Gaussian(0.3)) * 10**8
    assert get_delta(event, 10.0, group_size=32) == 1.0


@pytest.mark.thorough
@pytest.mark.parametrize(
    "make",
    [
        lambda i: PoissonSampled(0.01 + 1e-6 * i, Gaussian(1 + i * 1e-3)),
        lambda i: PureDP(1e-4 * (1 + i)) + Laplace(1e-3 * (1 + i)),
        lambda i: SampledWithoutReplacement(1000, 10, Laplace(0.01 * (1 + i))),
        lambda i: PoissonSampled(0.5, Composed((PureDP(1e-3 * i), PureDP(0.1)))),
    ],
)
def test_thousands_of_different_events_become_few(make):
    parts = leaves(many(make, 3000))
    fewer = _fewer.with_fewer_events(parts)
    assert sum(fewer.values()) == sum(parts.values())
    if "Composed" not in str(next(iter(parts))):
        assert len(fewer) <= _fewer.MAX_DISTINCT
    few = leaves(many(make, 20))
    assert _fewer.with_fewer_events(few) is few


@pytest.mark.parametrize("noise", [Laplace, Gaussian])
def test_many_groups_under_sampling_become_few(noise):
    """Their mixtures take long, so that only a few different ones are computed."""
    parts = leaves(many(lambda i: PoissonSampled(1e-4 * (i + 1), noise(0.8 + 0.001 * i)), 300))
    groups = {SampledGroup(part, 10): count for part, count in parts.items()}
    fewer = _fewer.with_fewer_events(groups)
    assert len(fewer) <= _fewer.MAX_DISTINCT_GROUPS
    assert sum(fewer.values()) == sum(groups.values())
    few = dict(list(groups.items())[: _fewer.MAX_DISTINCT_GROUPS])
    assert _fewer.with_fewer_events(few) is few
    # Each costs no less than what it stands for: there is as much of a larger rate and less noise.
    for kept in groups:
        assert any(
            other.event.sampling_rate >= kept.event.sampling_rate
            and _cost(other.event.event) >= _cost(kept.event.event)
            for other in fewer
        )


def _cost(noise):
    return noise.epsilon if isinstance(noise, Laplace) else 1.0 / noise.noise_multiplier


@pytest.mark.thorough
def test_prices_of_many_groups_grow_with_their_number_and_method():
    prices = []
    for n in (8, 24):
        event = many(lambda i: PoissonSampled(1e-4 * (i + 1), Laplace(0.8 + 0.001 * i)), n)
        prices.append(get_epsilon(event, 1e-9, group_size=10, method="rdp"))
    assert prices[0] < prices[1] < 24 * prices[0]
    assert get_epsilon(event, 1e-9, group_size=10, method="pld") <= prices[1]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("method", ["auto", "basic", "pld"])
@pytest.mark.parametrize("size", [2, 5])
def test_pure_events_of_groups_have_pure_prices(size, method, relation):
    """The price of a group is at most that of one record times its size, at delta = 0 as well."""
    events = (
        Laplace(0.1),
        SampledWithoutReplacement(300, 50, Laplace(0.1)),
        PoissonSampled(0.2, Laplace(0.1)),
        SampledWithoutReplacement(300, 50, Laplace(0.1)) + ExponentialMechanism(0.2),
    )
    for event in events:
        one = get_epsilon(event, 0.0, relation=relation, method=method)
        group = get_epsilon(event, 0.0, relation=relation, method=method, group_size=size)
        assert one < group <= size * one * (1.0 + 1e-12)
    assert get_epsilon(Gaussian(1.0), 0.0, relation=relation, group_size=size) == math.inf


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("method", ["auto", "pld", "rdp"])
@pytest.mark.parametrize("group_size", [1, 2])
def test_fewer_events_never_cost_less_and_little_more(monkeypatch, method, relation, group_size):
    event = many(
        lambda i: (
            PoissonSampled(0.02 + 1e-4 * i, Gaussian(1 + 0.01 * i))
            + PureDP(0.01 + 1e-4 * i)
            + SampledWithoutReplacement(100, 5, Laplace(0.2 + 0.01 * i))
            + ExponentialMechanism(0.02 + 1e-3 * i)
        ),
        12,
    )
    options = {"relation": relation, "group_size": group_size, "method": method}
    exact = get_epsilon(event, 1.01e-6, **options)
    monkeypatch.setattr(_fewer, "MAX_DISTINCT", 16)
    # Another delta, as prices are cached.
    fewer = get_epsilon(event, 1.01e-6 * (1 - 1e-9), **options)
    assert exact * (1 - 1e-4) <= fewer <= exact * 1.3
    assert fewer < math.inf


# Compositions that are copied with a fault.


def test_parts_that_were_charged_the_same_are_tried_once(monkeypatch):
    joined, calls = _composition._merge_schedules, []

    def counted(schedules):
        calls.append(schedules)
        # All choices of 20 parts of 40 are 138 billion.
        assert len(calls) <= 20_000
        return joined(schedules)

    monkeypatch.setattr(_composition, "_merge_schedules", counted)
    rule = PrivacyAccountant(1.0, 0.0, composition="auto").config.rule
    two = [rule.cost(Charge("", PureDP(e), e, 0.0, False, "", "")) for e in (0.1, 0.2)]
    assert len(rule.worst(two * 20, 20)) == 21


# Each mutation of the library must make the check beside it fail.


APPROXIMATE = ApproximateDP(0.1, 1e-8) * 50  # exactly 2.856550165 at 1e-5


SAMPLED = PoissonSampled(0.01, Gaussian(1.0)) * 1000  # within [1.828235, 1.828237] at 1e-5


def check_sampled():
    assert get_epsilon(SAMPLED, 1e-5, method="pld") >= 1.828235


def check_mass_at_infinity():
    assert get_epsilon(APPROXIMATE, 1e-5, method="pld") >= 2.856550164


def check_deltas_are_summed():
    assert get_epsilon(APPROXIMATE, 1e-5, method="advanced") >= 2.856550164


def check_renyi_bound_sets_deltas_aside():
    assert get_epsilon(APPROXIMATE, 4e-7, method="rdp") == math.inf


def check_counts():
    assert get_epsilon(RandomizedResponse(0.2) * 100, 1e-6) >= 10.6765


def check_orders():
    event = Gaussian(100.0)
    zcdp = get_epsilon(event, 1e-5, method="zcdp")
    assert get_epsilon(event, 1e-5, method="rdp") <= zcdp * (1 + 1e-6)


def check_replaced():
    assert get_epsilon(SAMPLED, 1e-5, relation="replace_one") >= 2.8434394


def check_replaced_laplace():
    event = PoissonSampled(1.0, Laplace(0.5))
    assert get_epsilon(event, 0.0, relation="replace_one") >= 1.0


def check_noise_search():
    sigma = calibrate(lambda s: PoissonSampled(0.01, Gaussian(s)) * 1000, 1.0, 1e-5)
    assert get_epsilon(PoissonSampled(0.01, Gaussian(sigma)) * 1000, 1e-5) <= 1.0


def drop_remove_direction(monkeypatch):
    original = _pld._directions
    monkeypatch.setattr(_pld, "_directions", lambda *args: original(*args)[1:])


def drop_mass_at_infinity(monkeypatch):
    original = _pld.discretize
    monkeypatch.setattr(_pld, "discretize", lambda *args: replace(original(*args), infinite=0.0))


def halve_the_upper_tail(monkeypatch):
    original = _pld.loss_range

    def shorter(pair, mass):
        low, high = original(pair, mass)
        return low, 0.3 * high

    monkeypatch.setattr(_pld, "loss_range", shorter)
    drop_mass_at_infinity(monkeypatch)


def round_losses_down(monkeypatch):
    monkeypatch.setattr(_pairs, "_upper_share", lambda p, q, g, step: np.zeros_like(p))


def ignore_counts(monkeypatch):
    original = _bounds.ev.leaves
    monkeypatch.setattr(_bounds.ev, "leaves", lambda event: dict.fromkeys(original(event), 1))


def forget_deltas(monkeypatch):
    monkeypatch.setattr(_advanced, "remaining_delta", lambda deltas, counts, delta: delta)


def cut_orders(monkeypatch):
    original = _rdp.minimum_over_orders
    monkeypatch.setattr(_rdp, "minimum_over_orders", lambda f: original(f, high=63.0))


def never_double(monkeypatch):
    def inner_event(event, relation):
        return _sampled.ev.merged(event.event)

    monkeypatch.setattr(_sampled, "inner_event", inner_event)


def return_the_costly_end(monkeypatch):
    monkeypatch.setattr(_calibrate, "crossing", lambda *args: args[3])
    monkeypatch.setattr(_calibrate, "round_to_safe", lambda is_safe, value, step: value)


MUTATIONS = [
    (drop_remove_direction, check_sampled),
    (drop_mass_at_infinity, check_mass_at_infinity),
    (halve_the_upper_tail, check_sampled),
    (round_losses_down, check_sampled),
    (ignore_counts, check_counts),
    (ignore_counts, check_sampled),
    (forget_deltas, check_deltas_are_summed),
    (forget_deltas, check_renyi_bound_sets_deltas_aside),
    (cut_orders, check_orders),
    (never_double, check_replaced),
    (never_double, check_replaced_laplace),
    (return_the_costly_end, check_noise_search),
]


def forget_prices():
    """Let what was computed before a change say nothing after it, nor the other way round."""
    prices = (_bounds._epsilon, _bounds._group_epsilon, _bounds._delta, _gaussian._noise_multiplier)
    for known in (_laws.privacy_of, *prices):
        known.cache_clear()


@pytest.mark.parametrize(
    "mutate, check", MUTATIONS, ids=lambda function: getattr(function, "__name__", None)
)
def test_mutation_is_caught(monkeypatch, mutate, check):
    check()
    forget_prices()
    mutate(monkeypatch)
    try:
        with pytest.raises((AssertionError, ValueError)):
            check()
    finally:
        forget_prices()


# Budgets that are split.


def test_two_shares_never_exceed_the_whole():
    rng, rounded = np.random.default_rng(0), 0
    for epsilon, share in zip(rng.uniform(0, 9, 2000), rng.uniform(0, 1, 2000), strict=True):
        first, rest = split_epsilon(epsilon, share)
        assert Fraction(first) + Fraction(rest) <= Fraction(epsilon)
        rounded += Fraction(first) + Fraction(epsilon - first) > Fraction(epsilon)
    # The plain difference would exceed it in many cases, so that the test can fail.
    assert rounded > 50
