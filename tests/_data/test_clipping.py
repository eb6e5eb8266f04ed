from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from skdp.base import clip_features, clip_rows


def squared_norm(row):
    return sum(Fraction(float(v)) ** 2 for v in row)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("norm", [1.0, 0.1, 3.7e-4, 1e6, 2.0**-20])
@pytest.mark.parametrize("d", [1, 3, 100])
def test_no_norm_exceeds_the_bound_exactly(dtype, norm, d):
    rng = np.random.default_rng(0)
    rows = 200 if d < 100 else 50
    X = rng.standard_normal((rows, d)) * np.exp(rng.uniform(-12, 12, (rows, 1)))
    near = X / np.linalg.norm(X, axis=1, keepdims=True) * norm
    X = np.concatenate([X, near, near * (1 + 2.0**-50)]).astype(dtype)
    clipped = clip_rows(X, norm)
    assert clipped.dtype == dtype
    assert all(squared_norm(row) <= Fraction(norm) ** 2 for row in clipped)
    assert np.array_equal(clip_rows(clipped, norm), clipped)
    small = np.linalg.norm(X.astype(float), axis=1) < norm * (1 - 1e-6)
    assert np.array_equal(clipped[small], X[small])
    large = np.linalg.norm(clipped[~small].astype(float), axis=1)
    np.testing.assert_allclose(large, norm, rtol=2e-6)


@pytest.mark.parametrize("norm", [1e-130, 1e-138, 1e-145])
def test_clipping_twice_changes_nothing_at_tiny_norms(norm):
    X = np.random.default_rng(0).standard_normal((500, 3)) * norm
    clipped = clip_rows(X, norm)
    assert np.array_equal(clip_rows(clipped, norm), clipped)
    assert all(squared_norm(row) <= Fraction(norm) ** 2 for row in clipped)


def test_a_plain_clip_does_exceed_it():
    """The check above can fail: the textbook expression breaks it for many rows."""
    X = np.random.default_rng(0).standard_normal((500, 20))
    plain = X * np.minimum(1.0, 0.1 / np.linalg.norm(X, axis=1))[:, None]
    assert sum(squared_norm(row) > Fraction(0.1) ** 2 for row in plain) > 50


def test_direction_is_kept():
    X = np.random.default_rng(1).standard_normal((50, 4)) * 10
    clipped = clip_rows(X, 1.0)
    np.testing.assert_allclose(clipped, X / np.linalg.norm(X, axis=1, keepdims=True), rtol=1e-13)


def test_a_norm_that_overflows_zeroes_its_row():
    X = np.array([[1e200, 1.0], [np.inf, 0.0], [1.0, 1.0], [1e150, 1e150]])
    clipped = clip_rows(X, 10.0)
    assert np.array_equal(clipped[:3], [[0, 0], [0, 0], [1, 1]])
    np.testing.assert_allclose(clipped[3], np.sqrt(50), rtol=1e-12)
    wide = clip_rows(np.full((1, 2), 3e38, dtype=np.float32), 1.0)
    np.testing.assert_allclose(wide, np.sqrt(0.5), rtol=1e-6)


def test_tiny_values_do_not_escape_by_underflow():
    X = np.full((1, 4), 2.0**-530)
    with pytest.raises(ValueError, match="too small"):
        clip_rows(X, 2.0**-531)
    assert squared_norm(clip_rows(X * 2.0**60, 2.0**-480)[0]) <= Fraction(2) ** -960


def test_clip_rows_input():
    assert clip_rows([[3, 4]], 1).dtype == np.float64
    # One row that is of float64 has no say in the others.
    for first in (np.float32, np.float64):
        rows = [np.zeros(2, first), np.array([1 / 3, 2 / 3], np.float32)]
        assert clip_rows(rows, 1.0).dtype == clip_features(rows, (0, 1)).dtype == np.float64
    frame = pd.DataFrame(np.zeros((2, 2), np.float32))
    assert clip_rows(frame, 1.0).dtype == np.float32
    X = np.full((2, 2), 9.0)
    clip_rows(X, 1.0)
    assert np.all(X == 9.0)
    for bad in ([[np.nan, 1.0]], [1.0], [["a"]], [[None]], [[1j]]):
        with pytest.raises(ValueError):
            clip_rows(bad, 1.0)
    for bad in (0, -1, np.nan, np.inf, None, "1", True, [1.0, 2.0]):
        with pytest.raises(ValueError, match="norm"):
            clip_rows([[1.0]], bad)


def test_clip_features():
    X = np.array([[-5.0, 5.0], [0.25, 0.25], [np.inf, -np.inf]])
    clipped = clip_features(X, ([-1.0, 0.0], 1.0))
    assert np.array_equal(clipped, [[-1, 1], [0.25, 0.25], [1, 0]])


def test_clip_features_rounds_float32_bounds_inwards():
    X = np.array([[-9.0], [9.0]], dtype=np.float32)
    for low, high in ((0.1, 0.7), (-0.7, -0.1), (1 / 3, 2 / 3), (0.0, 1e-50)):
        clipped = clip_features(X, (low, high)).astype(float)
        assert low <= clipped.min() and clipped.max() <= high
    with pytest.raises(ValueError, match="float32"):
        clip_features(X, (0.1, 0.1))


@pytest.mark.parametrize(
    "bad", [None, 1.0, (1.0, 0.0), (0.0, np.inf), (np.nan, 1.0), ([0, 0, 0], 1), ("a", "b"), (1,)]
)
def test_bad_bounds(bad):
    with pytest.raises(ValueError, match="bounds"):
        clip_features([[1.0, 2.0]], bad)


def test_clip_features_refuses_nan():
    with pytest.raises(ValueError, match="NaN"):
        clip_features([[np.nan]], (0, 1))
