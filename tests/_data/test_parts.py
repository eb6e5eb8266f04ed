"""A table is read part by part, and its sums are those of the whole, within a public bound."""

import gc
import math
import weakref

import numpy as np
import pytest
from sklearn.base import clone

from skdp import (
    DPPCA,
    ChunkedArray,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMeanTransformer,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
)
from skdp._data._batch_rows import open_rows
from skdp._data._bounded import BoundedRows
from skdp._data._parts import Rows, max_additions, row_blocks, sum_over
from tests._data.test_chunked import counted
from tests._guarantees import of_rows
from tests._private import (
    BinaryLogisticLoss,
    ClippedSums,
    MultinomialLogisticLoss,
    _centered_sums,
    gradient_rounding,
    loss_gradient,
    sum_rounding,
)

HEIGHTS = (7, 1, 160, 90, 42)
N, D = sum(HEIGHTS), 3
UNIT = 2.0**-53

ESTIMATORS = [
    DPLogisticRegression(C=0.1),
    DPLogisticRegression(C=0.1, mechanism="gradient", standard_errors="total"),
    DPLogisticRegression(data_norm="auto", classes=[0, 1, 2]),
    DPLinearSVC(C=0.1),
    DPLinearRegression(target_bounds=(0, 1)),
    DPRidge(target_bounds=(0, 1)),
    DPPoissonRegressor(alpha=0.1, target_bounds=(0, 1)),
    DPSGDClassifier(max_iter=3, batch_size=N),
    DPPCA(data_norm="auto"),
    DPMeanTransformer(bounds=(-1, 1)),
    DPStandardScaler(bounds="auto"),
    DPMinMaxScaler(bounds="auto"),
    DPHistogramTransformer(bounds="auto"),
    DPHistogramTransformer(bounds="auto", edges="quantile"),
    DPKBinsDiscretizer(bounds="auto"),
    DPOneHotEncoder(categories=[0, 1]),
    DPTargetEncoder(categories=[0, 1], classes=[0, 1]),
    DPSimpleImputer(bounds="auto"),
    DPSimpleImputer(strategy="most_frequent", categories=[0, 1]),
]


def make_table():
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, size=(N, D)) + 0.0, rng.integers(0, 2, size=N)


def in_parts(X, heights=HEIGHTS):
    return ChunkedArray(np.split(X, np.cumsum(heights)[:-1]))


@pytest.mark.quick_cases(every=10)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_parts_are_computed_once_in_a_pass(estimator, monkeypatch):
    """No block lies across two parts; a part that is computed is computed once in each pass."""
    read = ChunkedArray.__getitem__

    def within_a_part(self, rows):
        start, stop, _ = rows.indices(len(self))
        assert not any(start < border < stop for border in self.offsets)
        return read(self, rows)

    monkeypatch.setattr(ChunkedArray, "__getitem__", within_a_part)
    # Blocks of 64 rows, so that some parts have several and some are shorter than one.
    monkeypatch.setattr("skdp._data._parts.BLOCK_BYTES", 1)
    X, y = make_table()
    lazy, computed = counted(X, HEIGHTS)
    clone(estimator).fit(lazy, y)
    assert np.ptp(np.bincount(computed, minlength=len(HEIGHTS))) == 0 < len(computed)


def test_blocks_cover_the_rows_and_lie_in_parts():
    X = in_parts(np.zeros((20, 1)), (0, 3, 0, 9, 8, 0))
    blocks = [(rows.start, rows.stop) for rows in row_blocks(X, 4)]
    assert blocks == [(0, 3), (3, 7), (7, 11), (11, 12), (12, 16), (16, 20)]


def add_rows(total, block, weights):
    total += weights @ block


def add_columns(total, block):
    total += np.add.accumulate(block, axis=0)[-1]


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("heights", [(2**14,), (1,) * 2**14, (3000, 1, 8383, 5000)])
def test_sums_are_within_the_bound_however_the_rows_are_cut(heights):
    """Rows that a running sum from the first of them on would lose; the bound knows no number."""
    n = sum(heights)
    x = np.full((n, 1), 0.99 * UNIT)
    x[0] = 1.0
    total = sum_over(Rows(in_parts(x, heights), 2), add_columns, np.zeros(1))
    error = abs(total[0] - math.fsum(x[:, 0]))
    bound = max_additions(2) * UNIT * np.abs(x).sum()
    running = abs(np.add.accumulate(x[:, 0])[-1] - math.fsum(x[:, 0]))
    assert error <= bound < running


def test_what_goes_with_the_rows_is_cut_with_them():
    X, rng = make_table()[0], np.random.default_rng(1)
    weights, whole = rng.normal(size=N), np.zeros(D)
    table = Rows(in_parts(X), 64)

    def add(total, block, pair, nothing, factor):
        assert nothing is None and len(pair[0]) == len(pair[1]) == len(block)
        add_rows(total, block, factor * (pair[0] + pair[1]))

    sum_over(table, add, whole, 0.5, row_args=((weights, weights), None))
    np.testing.assert_allclose(whole, weights @ X, atol=1e-12)


@pytest.mark.parametrize("heights", [HEIGHTS, (1,) * N])
@pytest.mark.parametrize("loss", [BinaryLogisticLoss(), MultinomialLogisticLoss(3)], ids=str)
def test_gradients_of_parts_are_those_in_memory_within_the_rounding_that_is_charged(loss, heights):
    (X, y), rng = make_table(), np.random.default_rng(2)
    weights = rng.normal(size=(*loss.weights_shape, D + 1))
    one, other = (BoundedRows(table, 1.0, 0.5) for table in (X, in_parts(X, heights)))
    problem = of_rows(loss, N, D + 1, one.norm)
    rounding = gradient_rounding(problem, 1.0, np.linalg.norm(weights))
    apart = loss_gradient(loss, one, y, weights) - loss_gradient(loss, other, y, weights)
    assert np.linalg.norm(apart) <= 2.0 * rounding
    one, other = (
        ClippedSums(table, y + 0.0 if not loss.weights_shape else y, loss, constant=0.5, clip=1.0)
        for table in (X, in_parts(X, heights))
    )
    apart = one.sums(weights, None) - other.sums(weights, None)
    assert np.linalg.norm(apart) <= 2.0 * sum_rounding(D, math.prod(loss.weights_shape), 1.0, N)


@pytest.mark.parametrize("heights", [HEIGHTS, (1,) * N])
def test_moments_of_parts_are_those_in_memory_within_the_rounding_that_is_charged(heights):
    X, bounds = np.random.default_rng(3).normal(size=(N, D)), (np.full(D, -1.0), np.full(D, 2.0))
    apart = _centered_sums(X, *bounds, 2) - _centered_sums(in_parts(X, heights), *bounds, 2)
    assert np.abs(apart).max() <= 2.0 * (max_additions(4096) + 5) * N * UNIT


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_part_is_forgotten_with_what_read_its_rows(dtype):
    """Without a search for cycles, which may come after a gigabyte."""
    gc.disable()
    try:
        part = np.ones((10, 2), dtype)
        reader, forgotten = open_rows(part), weakref.ref(part)
        assert reader.read(np.array([1, 3])).shape == reader.read(slice(4, 6)).shape == (2, 2)
        del part, reader
        assert forgotten() is None
    finally:
        gc.enable()
