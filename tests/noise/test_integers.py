import numpy as np
import pytest
from scipy import stats

from skdp.noise import RandomSource, random_order, uniform_integers
from skdp.noise._integers import uniform_integer
from tests.noise._scripted import Scripted


def test_uniform_integers_and_orders_are_uniform():
    source = RandomSource(1)
    for bound in (1, 2, 7, 1000):
        draws = uniform_integers(bound, (100, 300), source.stream())
        assert draws.shape == (100, 300)
        counts = np.bincount(draws.ravel(), minlength=bound)
        assert counts.size == bound
        assert bound == 1 or stats.chisquare(counts).pvalue > 1e-4
    orders = [tuple(random_order(3, source.stream())) for _ in range(6000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert counts.size == 6 and stats.chisquare(counts).pvalue > 1e-4


def test_words_beyond_the_last_multiple_are_drawn_again():
    bound = 2**63 - 1
    script = Scripted([2**64 - 1, 5], [2**64 - 2], [bound + 3])
    assert uniform_integers(bound, 2, script).tolist() == [3, 5]
    assert script.batches == []


def test_one_integer_is_that_of_an_array_of_one():
    for bound in (1, 7, 2**61 + 3, 2**63 - 1, 2**63):
        one, other = RandomSource(bound).stream(), RandomSource(bound).stream()
        draws = [uniform_integer(bound, one) for _ in range(50)]
        assert draws == [int(uniform_integers(bound, 1, other)[0]) for _ in range(50)]
    bound = 2**63 - 1
    script = Scripted(2**64 - 1, 2**64 - 2, bound + 3)
    assert uniform_integer(bound, script) == 3
    assert script.batches == []


def test_equal_words_are_drawn_again():
    script = Scripted([4, 4, 1], [3, 2, 1])
    assert random_order(3, script).tolist() == [2, 1, 0]


@pytest.mark.parametrize("bad", [0, -1, 1.5, 2**63 + 1])
def test_bad_bound(bad):
    with pytest.raises(ValueError, match="bound"):
        uniform_integers(bad, 1, RandomSource().stream())
