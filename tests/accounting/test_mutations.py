"""Each mutation of the library must make the check beside it fail."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.accounting import (
    ApproximateDP,
    Gaussian,
    Laplace,
    PoissonSampled,
    RandomizedResponse,
    _advanced,
    _bounds,
    _calibrate,
    _gaussian,
    _laws,
    _pairs,
    _pld,
    _rdp,
    _sampled,
    calibrate,
    get_epsilon,
)

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
