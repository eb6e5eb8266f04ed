import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp.noise import RandomSource, geometric
from tests.noise._scripted import Scripted

SCALES = [0.03, 0.7, 1.0, 99.5, 1e4, 3e9]


def floor_of(scale, bits):
    """The exact draw for a uniform number known to 63 bits, if these decide it."""
    with mpmath.workdps(60):
        low, high = (
            mpmath.floor(-mpmath.mpf(scale) * mpmath.log(mpmath.mpf(b) / 2**63))
            for b in (bits + 1, bits)
        )
    return int(low) if low == high else None


def words_for(leading, further):
    """What a stream must give for these leading 32 and further 31 bits."""
    packed = np.zeros(len(leading) + len(leading) % 2, dtype=np.uint32)
    packed[: len(leading)] = leading
    return packed.view(np.uint64), further.astype(np.uint64) << np.uint64(33)


@pytest.mark.parametrize("scale", SCALES)
def test_draws_beside_a_border_take_further_bits(scale):
    rng = np.random.default_rng(0)
    ks = range(1, 60)
    leading, further, expected = [], [], []
    for k in ks:
        with mpmath.workdps(60):
            border = int(mpmath.floor(mpmath.exp(-mpmath.mpf(k) / scale) * 2**63))
        bits = border + int(rng.choice([-40, -3, -2, 2, 3, 40]))
        draw = floor_of(scale, bits) if 0 < bits < 2**63 else None
        if draw is not None:
            leading.append(bits >> 31)
            further.append(bits & (2**31 - 1))
            expected.append(draw)
    leading, further = np.array(leading, dtype=np.uint32), np.array(further, dtype=np.uint64)
    drawn = geometric(scale, len(leading), Scripted(*words_for(leading, further)))
    assert len(expected) > 5 or scale < 1.0
    np.testing.assert_array_equal(drawn, expected)


@pytest.mark.parametrize("scale", SCALES)
def test_draws_are_exact(scale):
    leading = np.random.default_rng(1).integers(2**32, size=400, dtype=np.uint32)

    class FirstWords:
        def words(self, n):
            return leading.view(np.uint64) if n == 200 else np.full(n, 2**64 - 1, dtype=np.uint64)

    drawn = geometric(scale, leading.size, FirstWords())
    for lead, draw in zip(leading.tolist(), drawn.tolist(), strict=True):
        with mpmath.workdps(60):
            low = mpmath.floor(-mpmath.mpf(scale) * mpmath.log(mpmath.mpf(lead + 1) / 2**32))
        if lead:
            with mpmath.workdps(60):
                high = mpmath.floor(-mpmath.mpf(scale) * mpmath.log(mpmath.mpf(lead) / 2**32))
            assert low <= draw <= high


@pytest.mark.parametrize("scale", [0.4, 5.0])
def test_law(scale):
    # False alarm rate 1e-7 for each scale.
    draws = geometric(scale, 200_001, RandomSource().stream())
    top = int(scale * 8) + 2
    counts = np.bincount(np.minimum(draws, top), minlength=top + 1)
    tails = np.exp(-np.arange(top + 1) / scale)
    expected = draws.size * np.append(tails[:-1] - tails[1:], tails[-1])
    assert stats.chisquare(counts, expected).pvalue > 1e-7


@pytest.mark.parametrize("size", [0, 1, 2, 16_384, 16_385, 40_000])
def test_sizes(size):
    assert geometric(3.0, size, RandomSource().stream()).shape == (size,)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.inf, np.nan, 2.0**49, None])
def test_bad_scales(scale):
    with pytest.raises(ValueError, match="scale"):
        geometric(scale, 1, RandomSource().stream())
