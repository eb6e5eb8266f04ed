import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from skdp.mechanisms import (
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


def test_bounded_sum_is_rounded_up():
    found = bounded_sum_sensitivity((-1e-20, 1.0), "replace_one")
    assert Fraction(found) >= Fraction(1) + Fraction(1e-20)
    values = [0.1, 0.2, 0.7]
    found = bounded_sum_sensitivity((np.zeros(3), values), norm="l2")
    assert Fraction(found) ** 2 >= sum(Fraction(v) ** 2 for v in values)


def test_sum():
    assert sum_sensitivity(0.3) == 0.3
    assert sum_sensitivity(0.3, "replace_one") == 0.6


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
    for bad in ((0, 0), (1, 0), (0, np.inf), (np.nan, 1)):
        with pytest.raises(ValueError):
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
