import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdp import accounting
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import RandomizedResponse
from skdp.noise import RandomSource, truthful


def source(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_law_of_a_report(k, epsilon):
    n = 50_000
    mechanism = RandomizedResponse(epsilon, tuple(range(k)))
    for truth in (0, k - 1):
        counts = np.bincount(
            mechanism.release(np.full(n, truth), random_state=source(1)), minlength=k
        )
        law = np.full(k, 1 / (k - 1 + math.exp(epsilon)))
        law[truth] *= math.exp(epsilon)
        assert law[truth] == pytest.approx(mechanism.truth_probability, rel=1e-12)
        assert stats.chisquare(counts, law / law.sum() * n).pvalue > 1e-4
    null = np.bincount(mechanism.release(np.full(n, 99), random_state=source(2)), minlength=k)
    assert stats.chisquare(null).pvalue > 1e-4


@pytest.mark.parametrize("epsilon", [1e-9, 0.3, 2.0, 40.0, 5000.0])
@pytest.mark.parametrize("others", [1, 6, 10**6])
def test_fast_and_exact_decisions_agree(epsilon, others):
    fast = truthful(epsilon, others, 300, source(3).stream())
    exact = truthful(epsilon, others, 300, source(3).stream(), exact=True)
    assert np.array_equal(fast, exact)


@pytest.mark.parametrize(
    "categories, values",
    [
        (("a", "bb", "c"), ["a", "c", "bb", "zzz"]),
        ((3, 1, 2), [1, 2, 3, 9]),
        ((0.5, 1.5), np.array([0.5, np.nan, 1.5, 7.0])),
        ((True, False), [True, False]),
        (("a", 1, None), np.array(["a", 1, None, "1"], dtype=object)),
        (("a", "b"), pd.Series(["a", "b", "c"])),
        (("a", "b"), pd.Series(["a", "b", "c"], dtype="category")),
        ((1, 2), [[1, 2], [2, 7]]),
    ],
)
def test_categories_of_many_kinds(categories, values):
    mechanism = RandomizedResponse(50.0, categories)
    released = mechanism.release(values)
    assert released.shape == np.shape(values)
    for value, report in zip(
        np.ravel(np.asarray(values, dtype=object)), released.ravel(), strict=True
    ):
        assert report in categories
        if any(value == c and type(value) is type(c) for c in categories):
            assert report == value


@pytest.mark.parametrize(
    "categories, values", [(("a", "b"), [1, 2, 3]), ((1, 2), ["1", "2"]), ((1, 2), [1, b"2"])]
)
def test_values_of_another_kind_than_all_categories_are_refused(categories, values):
    with pytest.raises(ValueError, match="equal none of the categories"):
        RandomizedResponse(50.0, categories).release(values)


def test_scalars():
    assert RandomizedResponse(50.0, ("no", "yes")).release("yes") == "yes"
    report = RandomizedResponse(50.0).release(1)
    assert report == 1 and isinstance(report, int)


def test_every_report_has_its_own_randomness():
    reports = RandomizedResponse(0.1).release(np.zeros(1000, dtype=int))
    assert 300 < reports.sum() < 700
    again = RandomizedResponse(0.1).release(np.zeros(1000, dtype=int))
    assert not np.array_equal(reports, again)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("k, epsilon", [(2, 0.5), (2, 2.0), (5, 1.0)])
def test_estimate_is_unbiased_with_the_stated_variance_and_interval(k, epsilon):
    n, repeats = 2000, 1500
    share = np.arange(k, 0, -1) / (k * (k + 1) / 2)
    share = np.round(share * n) / n
    share[0] += 1 - share.sum()
    values = np.repeat(np.arange(k), np.round(share * n).astype(int))
    mechanism, root = RandomizedResponse(epsilon, tuple(range(k))), source(4)
    reports = [mechanism.release(values, random_state=root) for _ in range(repeats)]
    estimates = np.array([mechanism.estimate_frequencies(r) for r in reports])
    np.testing.assert_allclose(estimates.sum(axis=1), 1.0)
    variance = mechanism.variance(share, n)
    assert np.all(np.abs(estimates.mean(axis=0) - share) < 5 * np.sqrt(variance / repeats))
    relative = estimates.var(axis=0) / variance - 1
    assert np.all(np.abs(relative) < 5 * math.sqrt(2 / repeats))
    intervals = np.array([mechanism.confidence_interval(r) for r in reports])
    covered = (intervals[:, :, 0] <= share) & (share <= intervals[:, :, 1])
    # The lattice of counts and the normal approximation move the coverage by less than 0.01.
    for hits in covered.sum(axis=0):
        assert stats.binomtest(int(hits), repeats, 0.94, alternative="less").pvalue > 1e-5
        assert stats.binomtest(int(hits), repeats, 0.96, alternative="greater").pvalue > 1e-5
    error = np.abs(estimates - share) <= mechanism.expected_error(0.95, size=n)
    assert error.mean() > 0.94


def test_event_scale_and_round_trip():
    mechanism = RandomizedResponse(1.3, ("a", "b", "c"))
    assert mechanism.event == accounting.RandomizedResponse(1.3, 3)
    p, q = mechanism.truth_probability, mechanism.other_probability
    assert mechanism.scale == pytest.approx(math.sqrt(q * (1 - q)) / (p - q))
    assert p / q == pytest.approx(math.exp(1.3))
    back = RandomizedResponse.from_scale(mechanism.scale, ("a", "b", "c"))
    assert back.epsilon == pytest.approx(1.3)
    assert RandomizedResponse(2000.0).truth_probability == 1.0


BAD_CATEGORIES = [(), (1, 1), (1, 1.0), "ab", b"ab", None, 3, (np.nan, 1.0), ([1], [2])]
BAD_CATEGORIES += [("a", "a\0"), ("a\0", "b"), (b"a\0", b"b"), {"a", "b"}, {"a": 1, "b": 2}]
BAD_CATEGORIES += [(pd.NA, "a"), np.array(3), np.eye(2), iter("ab"), (np.float32("nan"), None)]


@pytest.mark.parametrize("bad", BAD_CATEGORIES)
def test_bad_category_lists(bad):
    with pytest.raises(ValueError, match="categories"):
        RandomizedResponse(1.0, bad)


@pytest.mark.parametrize(
    "categories, kind",
    [
        (("a", "bb"), "U"),
        (["a", 1], "O"),
        (["1", 1, None], "O"),
        ((1, 2), "i"),
        ((1, 2.5), "f"),
        ((True, "True"), "O"),
        ((2**53 + 1, 2.0**53), "O"),
        ((2**70, 1), "O"),
        (((1, 2), (1, 3)), "O"),
        (((1, 2), (3,)), "O"),
        ((b"a", b"b"), "O"),
        (("a", ""), "U"),
        (pd.Series(["a", "b"], index=[5, 3]), "U"),
        (pd.Index([3, 1]), "i"),
        (np.array(["a", 1], dtype=object), "O"),
        (np.array(["a", "bb"]), "U"),
    ],
)
def test_categories_are_held_unchanged(categories, kind):
    column = np.empty(len(categories), dtype=object)
    for place, category in enumerate(categories):
        column[place] = category
    array = RandomizedResponse(60.0, categories).release(column, random_state=source())
    assert array.dtype.kind == kind and array.ndim == 1
    assert array.tolist() == list(categories)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-8, 0.1, 1.0, 1e3, 1e200])
def test_from_scale_at_all_magnitudes(scale):
    for categories in ((0, 1), ("a", "b", "c")):
        mechanism = RandomizedResponse.from_scale(scale, categories)
        if 1e-150 < scale < 1e100:
            assert mechanism.scale == pytest.approx(scale, rel=1e-9)
        elif scale < 1:
            assert mechanism.epsilon == pytest.approx(-2 * math.log(scale))
        else:
            assert mechanism.epsilon == pytest.approx(math.sqrt(len(categories) - 1) / scale)


@pytest.mark.parametrize("bad", BAD_CATEGORIES + [(1,)])
def test_bad_categories(bad):
    with pytest.raises(ValueError, match="categories"):
        RandomizedResponse(1.0, bad)


def test_bad_input():
    for bad in (0, -1.0, np.nan, np.inf, None, True, "1"):
        with pytest.raises(ValueError, match="epsilon"):
            RandomizedResponse(bad)
    mechanism = RandomizedResponse(1.0)
    with pytest.raises(ValueError, match="reports"):
        mechanism.estimate_frequencies([0, 1, 2])
    with pytest.raises(ValueError, match="reports"):
        mechanism.confidence_interval([])
    for codes in ([2], [-2], [0.0]):
        with pytest.raises(ValueError, match="codes"):
            mechanism.release_codes(codes)


def test_a_ragged_list_is_refused():
    """One row of another length would make all others of one cell into cells that are lists."""
    response = RandomizedResponse(50.0, (0, 1))
    for first in ([1, 0], 1, [[1]], np.array([1, 0])):
        with pytest.raises(ValueError, match="ragged"):
            response.release([first, *[[1]] * 5])
