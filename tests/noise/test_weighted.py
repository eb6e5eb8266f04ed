from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from skdp.noise import RandomSource, choose_by_distance
from skdp.noise import _integers as module


def draw(weights, distances, rate, n, seed=0):
    stream = RandomSource(seed).stream()
    found = [choose_by_distance(weights, distances, rate, stream) for _ in range(n)]
    return np.bincount(found, minlength=len(weights))


def law(weights, distances, rate):
    distances = np.array(distances) - min(distances)
    weights = np.array(weights) * np.exp(-float(rate) * distances)
    return weights / weights.sum()


CASES = [
    ([1, 1, 1], [0, 1, 2], Fraction(1, 2)),
    ([5, 0, 3, 7], [7, 0, 9, 8], Fraction(1, 3)),
    # Far candidates that are many are as likely as near ones that are few.
    ([1, 2**40], [0, 277], Fraction(1, 10)),
    ([2**50, 2**50], [10**15, 10**15 + 1], Fraction(1, 1)),
]


@pytest.mark.parametrize(("weights", "distances", "rate"), CASES)
def test_the_law_is_the_stated_one(weights, distances, rate):
    # False alarm: 1e-7 each.
    counts, expected = draw(weights, distances, rate, 5_000), law(weights, distances, rate)
    assert np.all(counts[expected == 0] == 0)
    possible = expected > 0
    assert chisquare(counts[possible], 5_000 * expected[possible]).pvalue > 1e-7


def test_integers_decide_as_floats_do(monkeypatch):
    fast = [draw(*case, 200, seed=3) for case in CASES]
    compare = module._is_below_scaled_exp

    def doubtful(approximate, factor, exponent, stream):
        word = stream.words(1)
        both = [
            compare(value, factor, exponent, _Replay(word, stream))
            for value in (approximate, float(word[0]) * 2.0**-64)
        ]
        # The second approximation is the number itself, which leaves it to the integers.
        assert both[0] == both[1]
        return both[0]

    monkeypatch.setattr(module, "_is_below_scaled_exp", doubtful)
    for case, counts in zip(CASES, fast, strict=True):
        np.testing.assert_array_equal(draw(*case, 200, seed=3), counts)


class _Replay:
    def __init__(self, word, stream):
        self._word, self._stream = word, stream

    def words(self, n):
        word, self._word = self._word, None
        return self._stream.words(n) if word is None else word


@pytest.mark.parametrize("weights", [[0, 0], [2**56, 1]])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        choose_by_distance(weights, [0, 1], Fraction(1), RandomSource().stream())
