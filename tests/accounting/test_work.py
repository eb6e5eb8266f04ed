"""How much work a price takes at absurd sizes, counted in cells and products and not in time."""

import math

import numpy as np
import pytest

from skdp.accounting import (
    Composed,
    DiscreteGaussian,
    ExponentialMechanism,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    SampledWithoutReplacement,
    _fewer,
    _pld,
    get_delta,
    get_epsilon,
    trade_off,
)
from skdp.accounting._events import SampledGroup, leaves

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
