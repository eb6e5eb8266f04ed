"""Privacy loss distributions against curves found in other ways."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skdp.accounting import (
    DiscreteGaussian,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
    _bounds,
    _pld,
    get_delta,
    get_epsilon,
)
from skdp.accounting._events import leaves
from skdp.accounting._laws import privacy_of
from skdp.accounting._pairs import discretize
from skdp.accounting._pld import pld_epsilon


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
