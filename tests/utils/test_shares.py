from fractions import Fraction

import numpy as np

from skdp.utils._sums import split_epsilon


def test_two_shares_never_exceed_the_whole():
    rng, rounded = np.random.default_rng(0), 0
    for epsilon, share in zip(rng.uniform(0, 9, 2000), rng.uniform(0, 1, 2000), strict=True):
        first, rest = split_epsilon(epsilon, share)
        assert Fraction(first) + Fraction(rest) <= Fraction(epsilon)
        rounded += Fraction(first) + Fraction(epsilon - first) > Fraction(epsilon)
    # The plain difference would exceed it in many cases, so that the test can fail.
    assert rounded > 50
