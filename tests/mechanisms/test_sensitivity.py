import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.base import exact_sum
from skdp.mechanisms import (
    LaplaceMechanism,
    bounded_sum_sensitivity,
    convert_sensitivity,
    histogram_sensitivity,
    sum_sensitivity,
)

NORMS = {"l1": 1, "l2": 2, "linf": np.inf}


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_histogram_by_brute_force(norm, relation):
    rows = list(np.eye(3)) + ([np.zeros(3)] if relation == "add_remove" else [])
    pairs = itertools.combinations(rows, 2)
    if relation == "add_remove":
        pairs = [(row, rows[-1]) for row in rows[:-1]]
    worst = max(np.linalg.norm(a - b, NORMS[norm]) for a, b in pairs)
    assert worst <= histogram_sensitivity(relation, norm) <= worst * (1 + 1e-15)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_bounded_sum_by_brute_force(norm, relation):
    low, high = np.array([-1.0, 0.3, -2.5]), np.array([0.1, 0.7, -0.1])
    corners = [np.array(c) for c in itertools.product(*zip(low, high, strict=True))]
    others = corners if relation == "replace_one" else [np.zeros(3)]
    worst = max(np.linalg.norm(a - b, NORMS[norm]) for a in corners for b in others)
    found = bounded_sum_sensitivity((low, high), relation, norm)
    assert worst * (1 - 1e-15) <= found <= worst * (1 + 1e-14)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("bounds", [(-0.4, 0.1), (0, [0.1, 0.2, 0.3, 0.4, 0.7])])
def test_it_bounds_what_one_row_moves_in_exact_sum(norm, relation, bounds):
    low, high = np.zeros(5) + bounds[0], np.zeros(5) + bounds[1]
    X = np.random.default_rng(0).uniform(-1, 1, (20, 5))
    X[0] = np.where(-low > high, low, high)
    Z = X.copy()
    Z[0] = 0.0 if relation == "add_remove" else low + high - X[0]
    moved = [
        abs(Fraction(float(a)) - Fraction(float(b)))
        for a, b in zip(exact_sum(X, bounds), exact_sum(Z, bounds), strict=True)
    ]
    found = bounded_sum_sensitivity(bounds, relation, norm, n_features=5)
    power = {"l1": 1, "l2": 2}.get(norm)
    worst = sum(m**power for m in moved) if power else max(moved)
    assert worst <= Fraction(found) ** (power or 1) <= worst * (1 + Fraction(1, 10**12))
    assert LaplaceMechanism(2.0, found).scale == pytest.approx(found / 2)


def test_scalar_bounds_need_the_number_of_columns():
    assert bounded_sum_sensitivity((0.0, 1.0), n_features=5) == 5.0
    assert bounded_sum_sensitivity((0.0, 1.0), norm="linf", n_features=5) == 1.0
    assert bounded_sum_sensitivity((0.0, np.ones(5))) == 5.0
    for norm in NORMS:
        with pytest.raises(ValueError, match="n_features"):
            bounded_sum_sensitivity((0.0, 1.0), norm=norm)
    for bad in (0, 2.0, True, "5"):
        with pytest.raises(ValueError, match="n_features"):
            bounded_sum_sensitivity((0.0, 1.0), n_features=bad)
    with pytest.raises(ValueError, match="bounds"):
        bounded_sum_sensitivity((0.0, np.ones(5)), n_features=4)


@pytest.mark.parametrize("norm, power", [("l1", 1), ("l2", 2)])
@pytest.mark.parametrize("value", [5e-324, 1e-320, 2.3e-162, 1e-154, 0.1, 1e154, 1e300])
@pytest.mark.parametrize("d", [2, 3, 1000])
def test_bounded_sum_is_an_upper_bound_at_all_magnitudes(norm, power, value, d):
    values = value * np.linspace(0.5, 1.0, d)
    found = Fraction(bounded_sum_sensitivity((0.0, values), norm=norm))
    true = sum(Fraction(v) ** power for v in values)
    assert found**power >= true
    assert found**power <= true * (1 + Fraction(1, 10**13)) or found < 1e-310


def test_what_overflows_is_refused():
    for norm in ("l1", "l2"):
        with pytest.raises(ValueError, match="sensitivity"):
            bounded_sum_sensitivity((0.0, 1.7e308), norm=norm, n_features=2)
    for norm in NORMS:
        with pytest.raises(ValueError, match="sensitivity"):
            bounded_sum_sensitivity((-1.7e308, 1.7e308), "replace_one", norm, n_features=2)
    with pytest.raises(ValueError, match="sensitivity"):
        sum_sensitivity(1.7e308, "replace_one")
    with pytest.raises(ValueError, match="sensitivity"):
        convert_sensitivity(1.7e308, 3, "linf", "l1")


def test_bounded_sum_is_rounded_up():
    found = bounded_sum_sensitivity((-1e-20, 1.0), "replace_one", n_features=1)
    assert Fraction(found) >= Fraction(1) + Fraction(1e-20)
    values = [0.1, 0.2, 0.7]
    found = bounded_sum_sensitivity((np.zeros(3), values), norm="l2")
    assert Fraction(found) ** 2 >= sum(Fraction(v) ** 2 for v in values)


def test_sum():
    assert sum_sensitivity(0.3) == 0.3
    assert sum_sensitivity(0.3, "replace_one") == 0.6


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 1000])
@pytest.mark.parametrize("source", NORMS)
@pytest.mark.parametrize("target", NORMS)
def test_conversion_holds_and_is_tight(d, source, target):
    extremes = [np.ones(d), np.eye(d)[0]]
    worst = max(
        np.linalg.norm(v, NORMS[target]) / np.linalg.norm(v, NORMS[source]) for v in extremes
    )
    assert convert_sensitivity(0.3, d, source, target) == pytest.approx(0.3 * worst, rel=1e-12)
    if (source, target) == ("l2", "l1"):
        assert Fraction(convert_sensitivity(0.3, d, source, target)) ** 2 >= d * Fraction(0.3) ** 2


def test_bad_input():
    for bad in ((0, 0), (1, 0), (0, np.inf), (np.nan, 1), (0,), "ab", None):
        with pytest.raises(ValueError, match="bounds|sensitivity"):
            bounded_sum_sensitivity(bad, n_features=1)
    for bad in (([0, 0], [1, 1, 1]), ([[0]], 1), None, ([], [])):
        with pytest.raises(ValueError, match="bounds|n_features"):
            bounded_sum_sensitivity(bad)
    with pytest.raises(ValueError, match="relation"):
        sum_sensitivity(1.0, "swap")
    with pytest.raises(ValueError, match="norm"):
        histogram_sensitivity(norm="l3")
    with pytest.raises(ValueError, match="target"):
        convert_sensitivity(1.0, 2, "l1", "lp")
    for bad in (0, None, -1, math.nan):
        with pytest.raises(ValueError, match="norm"):
            sum_sensitivity(bad)
        with pytest.raises(ValueError, match="sensitivity"):
            convert_sensitivity(bad, 2, "l1", "l2")
