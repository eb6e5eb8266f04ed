import math
import tracemalloc
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse
from threadpoolctl import threadpool_limits

from skdp import ChunkedArray
from skdp._optim import _clipped_sums
from skdp._optim._clipped_sums import ClippedSums, sum_rounding
from tests._containers import counted
from tests._private import (
    BinaryHuberizedHingeLoss,
    BinaryLogisticLoss,
    ClassWeightedLoss,
    ClippedPoissonLoss,
    HuberLoss,
    MulticlassHuberizedHingeLoss,
    MultinomialLogisticLoss,
    OneVersusRestLoss,
    Run,
    SquaredHingeLoss,
    as_chunked,
    get_loops,
    has_numba,
    read_persons,
)

# Sums see of a loss its residuals and their shape alone: a new one need not stand here.
BINARY = {
    "logistic": BinaryLogisticLoss(),
    "hinge": BinaryHuberizedHingeLoss(0.1),
    "poisson": ClippedPoissonLoss(3.0),
    "weighted": ClassWeightedLoss(BinaryLogisticLoss(), (0.5, 3.0)),
}
SEVERAL = {
    "softmax": MultinomialLogisticLoss(3),
    "hinges": MulticlassHuberizedHingeLoss(3, 0.1),
    "weighted softmax": ClassWeightedLoss(MultinomialLogisticLoss(3), (1.0, 0.1, 5.0)),
}
LOSSES = BINARY | SEVERAL
N, D = 300, 6
needs_numba = pytest.mark.skipif(not has_numba(), reason="numba is not installed")
VERSIONS = ["numpy", pytest.param("numba", marks=needs_numba)]


def table(loss, seed=0, n=N, scale=1.0):
    rng = np.random.default_rng(seed)
    X = scale * rng.normal(size=(n, D)) * rng.choice([0.01, 1.0, 30.0], size=(n, 1))
    y = rng.integers(max(2, *loss.weights_shape, 2), size=n)
    return X, y if isinstance(loss, ClassWeightedLoss) or loss.weights_shape else y.astype(float)


def weights_for(loss, constant, seed=1):
    return np.random.default_rng(seed).normal(size=(*loss.weights_shape, D + (constant != 0)))


def clipped_rows(X, y, loss, constant, clip, norm, weights):
    """The clipped gradient of every row, formed one by one."""
    X = np.asarray(X, dtype=np.float64)
    rows = np.column_stack([X, np.full(len(X), constant)]) if constant else X
    residual = loss.residual(rows @ weights.T, y)
    gradients = np.einsum("n...,nd->n...d", residual, rows)
    flat = gradients.reshape(len(X), -1)
    norms = np.abs(flat).sum(axis=1) if norm == "l1" else np.sqrt((flat**2).sum(axis=1))
    clips = clip * np.broadcast_to(loss.relative_weights(y), len(X))
    factors = np.minimum(1.0, clips / np.maximum(norms, 1e-300))
    return gradients * factors.reshape(-1, *[1] * (gradients.ndim - 1))


def test_each_class_is_clipped_before_it_is_weighted():
    """Balanced classes that are all clipped have gradients of the same length by class."""
    weights = (0.5, 50.0)
    loss = ClassWeightedLoss(BinaryLogisticLoss(), weights)
    y = np.repeat([0, 1], [1000, 10])
    X = np.where(y[:, np.newaxis] == 1, 1.0, -1.0)
    sums = ClippedSums(X, y, loss, constant=1.0, clip=5.0)
    # The residual at the score 0 is a half, and a clip of 5 is a tenth of the largest weight.
    intercept = sums.sums(np.zeros(2), None)[1]
    assert abs(intercept) < 1e-9
    by_class = [sums.sums(np.zeros(2), np.flatnonzero(y == c))[1] for c in (0, 1)]
    np.testing.assert_allclose(np.abs(by_class), 10 * 5.0 / np.sqrt(2.0))


def test_no_loss_lengthens_the_clip(monkeypatch):
    """The bound on a row's gradient does not rely on the weights that a loss states."""
    loss = BinaryLogisticLoss()
    monkeypatch.setattr(BinaryLogisticLoss, "relative_weights", lambda self, y: 2.0)
    sums = ClippedSums(np.ones((1, 1)), np.ones(1), loss, constant=0.0, clip=0.1)
    assert np.abs(sums.sums(np.zeros(1), None)[0]) <= 0.1


def length(vector, norm):
    return np.abs(vector).sum() if norm == "l1" else np.linalg.norm(vector)


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr("skdp._data._batch_rows.TILE_BYTES", 1)
    monkeypatch.setattr("skdp._data._batch_rows.MIN_TILE_ROWS", 7)


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("loops", VERSIONS)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("constant", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("name", LOSSES)
def test_sums_of_clipped_gradients(name, constant, norm, loops):
    loss = LOSSES[name]
    (X, y), weights = table(loss), weights_for(loss, constant)
    sums = ClippedSums(X, y, loss, constant=constant, clip=0.7, norm=norm, loops=loops)
    rows = clipped_rows(X, y, loss, constant, 0.7, norm, weights)
    some = np.arange(0, N, 3)
    np.testing.assert_allclose(sums.sums(weights, None), rows.sum(axis=0), atol=1e-11)
    np.testing.assert_allclose(sums.sums(weights, some), rows[some].sum(axis=0), atol=1e-11)
    np.testing.assert_array_equal(sums.sums(weights, some[:0]), np.zeros_like(weights))
    lengths = np.array([length(row, norm) for row in rows])
    assert 0.1 < np.mean(lengths > 0.69) < 0.95


def storages(X, folder):
    np.save(folder / "first.npy", X[:110])
    np.save(folder / "second.npy", X[110:])
    memmap = np.lib.format.open_memmap(folder / "all.npy", "w+", X.dtype, X.shape)
    memmap[:] = X
    wide = np.zeros((len(X), 2 * D), dtype=X.dtype)
    wide[:, ::2] = X
    single = X.astype(np.float32)
    twice = np.repeat(np.arange(D), 2)
    halves = np.repeat(X, 2, axis=1) / 2
    doubled = csr_matrix(
        (halves.ravel(), np.tile(twice, len(X)), np.arange(len(X) + 1) * 2 * D), shape=X.shape
    )
    doubled.has_canonical_format = True
    yield "Fortran order", np.asfortranarray(X), X
    yield "every second column", wide[:, ::2], X
    yield "other byte order", X.astype(X.dtype.newbyteorder()), X
    yield "extended", X.astype(np.longdouble), X
    yield "float32", single, single
    yield "float32, Fortran order", np.asfortranarray(single), single
    yield "float16", X.astype(np.float16), X.astype(np.float16)
    yield "integers", np.rint(X).astype(np.int16), np.rint(X)
    yield "memmap", memmap, X
    yield "read-only memmap", np.load(folder / "all.npy", mmap_mode="r"), X
    yield "CSR matrix", csr_matrix(X), X
    yield "CSR array of float32", csr_array(single), single
    yield "CSR with duplicates", doubled, X
    yield "chunks in memory", ChunkedArray([X[:1], X[1:150], X[150:]]), X
    yield "chunks in files", ChunkedArray([folder / "first.npy", folder / "second.npy"]), X
    mixed = ChunkedArray([single[:40], X[40:41], np.asfortranarray(X[41:])])
    yield "mixed chunks", mixed, np.vstack([single[:40], X[40:]])
    yield "chunks that read themselves", ChunkedArray([SelfReading(X[:9]), SelfReading(X[9:])]), X


class SelfReading:
    """An array that gives slices of rows and nothing else."""

    def __init__(self, array):
        self._array, self.dtype, self.shape, self.ndim = array, array.dtype, array.shape, 2

    def __len__(self):
        return len(self._array)

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self._array[rows].copy()


@pytest.mark.parametrize(
    ("name", "loops"),
    [
        ("logistic", "numpy"),
        ("softmax", "numpy"),
        pytest.param("logistic", "numba", marks=needs_numba),
    ],
)
def test_every_storage_gives_the_same(name, loops, tmp_path, small_tiles):
    loss = LOSSES[name]
    (X, y), weights = table(loss), weights_for(loss, 1.0)
    rng = np.random.default_rng(3)
    batches = [np.sort(rng.choice(N, m, replace=False)) for m in (1, 6, 7, 8, 50, N)]
    for storage, stored, values in storages(X, tmp_path):
        sums = ClippedSums(stored, y, loss, constant=1.0, clip=0.7, loops=loops)
        rows = clipped_rows(values, y, loss, 1.0, 0.7, "l2", weights)
        atol = 1e-11
        for batch in [*batches, None]:
            expected = rows.sum(axis=0) if batch is None else rows[batch].sum(axis=0)
            found = sums.sums(weights, batch)
            np.testing.assert_allclose(found, expected, atol=atol, err_msg=storage)


def test_of_chunks_that_are_computed_a_batch_asks_for_its_own():
    loss = LOSSES["logistic"]
    (X, y), weights = table(loss), weights_for(loss, 1.0)
    lazy, computed = counted(X, (100, 0, 150, 50))
    sums = ClippedSums(as_chunked(lazy), y, loss, constant=1.0, clip=0.7)
    rows = clipped_rows(X, y, loss, 1.0, 0.7, "l2", weights)
    batches = {(0, 2, 3): np.arange(0, N, 11), (0, 3): np.array([3, 99, 270]), (2,): [120, 129]}
    with Run():
        # What is held of each row is made when it is first asked for.
        sums.sums(weights, None)
        for parts, some in batches.items():
            computed.clear()
            found = sums.sums(weights, np.asarray(some))
            np.testing.assert_allclose(found, rows[some].sum(axis=0), atol=1e-11)
            assert tuple(sorted(computed)) == parts


def neighbors(loss, rng):
    """Tables that differ in one row, from mild to absurd; the last is a null row's."""
    X, y = table(loss, seed=int(rng.integers(1000)))
    # The weights' own direction makes residuals and gradients as large as they get.
    direction = rng.normal(size=D)
    extremes = [direction * 10.0**e for e in (-200, -30, -3, 0, 1, 3, 30, 148, 200, 307)]
    for row in [*extremes, np.zeros(D), rng.normal(size=D)]:
        for label in np.unique(y):
            changed, labels = X.copy(), y.copy()
            changed[17], labels[17] = row, label
            yield changed, labels


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(
    ("name", "loops"),
    [
        *((name, "numpy") for name in LOSSES),
        *(pytest.param(name, "numba", marks=needs_numba) for name in BINARY),
    ],
)
def test_neighbors(name, loops, norm):
    loss, clip, constant = LOSSES[name], 0.4, 1.5
    rng, weights = np.random.default_rng(5), 20.0 * weights_for(LOSSES[name], 1.5)
    batch = np.arange(0, N, 1)
    without = np.delete(batch, 17)
    slack = 2.0 * sum_rounding(D, max(1, *loss.weights_shape, 1), clip, N)
    sums, reach = [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X, y in neighbors(loss, np.random.default_rng(rng.integers(9))):
            engine = ClippedSums(X, y, loss, constant=constant, clip=clip, norm=norm, loops=loops)
            sums.append(engine.sums(weights, batch))
            assert np.isfinite(sums[-1]).all()
            moved = length(sums[-1] - engine.sums(weights, without), norm)
            assert moved <= clip + slack
            reach = max(reach, moved)
    assert reach > 0.999 * clip
    apart = max(length(one - other, norm) for one in sums for other in sums)
    assert clip < apart <= 2.0 * clip + slack


# With the part of the bound that the rows below reach.
GAINS = [(HuberLoss(), 0.85), (HuberLoss(0.5), 0.85), (BinaryLogisticLoss(), 0.85)]
GAINS += [(loss, 0.4) for loss in SEVERAL.values()]


def clipped_vectors(vectors, unit):
    vectors = vectors.reshape(len(vectors), -1) / unit
    return vectors / np.maximum(1.0, np.sqrt((vectors**2).sum(axis=1, keepdims=True)))


@pytest.mark.quick_cases(every=12)
@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("loss", "reached"), GAINS, ids=lambda one: type(one).__name__)
def test_gains_of_a_row(loss, reached, norm, small_tiles):
    """Against the formula, to the grid; and what one row moves, to the last bit."""
    (X, y), clip, batch = table(loss), 0.4, np.arange(0, N, 2)
    start, weights, units = weights_for(loss, 1.5), -2.0 * weights_for(loss, 1.5), (2.0, 0.3)

    def loss_decreases(X, y, batch):
        engine = ClippedSums(X, y, loss, constant=1.5, clip=clip, norm=norm)
        return engine.loss_decreases(start, weights, batch, units)

    rows = np.column_stack([X, np.full(N, 1.5)])[batch]
    moved = clipped_vectors(rows @ (weights - start).T, 2.0)
    first, last = (
        clipped_vectors(loss.residual(rows @ one.T, y[batch]), 0.3) for one in (start, weights)
    )
    expected = np.zeros(start.shape)
    products = -first * moved, last * moved, 0.25 * first**2
    expected.flat[:3] = [product.sum() for product in products]
    expected *= clip / {"l1": 2.5, "l2": 1.5}[norm]
    np.testing.assert_allclose(loss_decreases(X, y, batch), expected, atol=N * 2e-6)
    np.testing.assert_array_equal(loss_decreases(X, y, batch[:0]), np.zeros(start.shape))

    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for changed, labels in neighbors(loss, np.random.default_rng(1)):
            total = loss_decreases(changed, labels, np.arange(N))
            assert np.isfinite(total).all()
            seen.append(total - loss_decreases(changed, labels, np.delete(np.arange(N), 17)))
    assert reached * clip < max(length(one, norm) for one in seen) <= clip


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_person_gains_what_a_row_does(norm, small_tiles):
    """Twelve rows of one person among persons of one row each; without shares it is twelve."""
    loss, clip, alone = GAINS[0][0], 0.4, N - 12
    X, y = table(loss)
    persons = read_persons(np.minimum(np.arange(N), alone), N)
    start, weights = weights_for(loss, 1.5), -2.0 * weights_for(loss, 1.5)
    lengths = []
    for scale in (0.1, 1.0, 100.0):
        X[alone:], y[alone:] = scale * np.sign(weights[:D]), 100.0
        engine = ClippedSums(X, y, loss, constant=1.5, clip=clip, norm=norm, persons=persons)
        batches = np.arange(alone + 1), np.arange(alone)
        with_one, without = (engine.loss_decreases(start, weights, b, (2.0, 0.3)) for b in batches)
        lengths.append(length(with_one - without, norm))
        everyone = engine.loss_decreases(start, weights, None, (2.0, 0.3))
        np.testing.assert_allclose(everyone, with_one, rtol=0, atol=1e-12)
    assert 0.85 * clip < max(lengths) <= clip


def exact_norm_squared(values):
    return sum(Fraction(v) ** 2 for v in np.ravel(values).tolist())


@pytest.mark.parametrize("scale", [1e-160, 1e-20, 1.0, 1e3, 1e120, 1e148])
def test_exact_norms_never_exceed_the_clip(scale):
    rng, clip = np.random.default_rng(0), 0.3
    X = scale * rng.normal(size=(100, D))
    for constant in (0.0, 1.0, scale):
        for norm in ("l1", "l2"):
            loss = MultinomialLogisticLoss(3)
            engine = ClippedSums(
                X, np.zeros(100, int), loss, constant=constant, clip=clip, norm=norm
            )
            residual = rng.normal(size=(100, 3)) * rng.choice([1e-3, 1.0, 1e3], size=(100, 1))
            _clipped_sums._clip_vectors(residual, engine._caps, norm)
            single = np.full(100, np.inf)
            _clipped_sums._clip_numbers(single, engine._caps.copy())
            for row, r, one in zip(X, residual, single, strict=True):
                row = np.append(row, constant)
                if norm == "l2":
                    bound, size = Fraction(clip) ** 2, exact_norm_squared(row)
                    lengths = exact_norm_squared(r) * size, Fraction(one) ** 2 * size
                else:
                    bound = Fraction(clip)
                    size = sum(abs(Fraction(v)) for v in row.tolist())
                    total = sum(abs(Fraction(v)) for v in r.tolist())
                    lengths = total * size, abs(Fraction(one)) * size
                assert max(lengths) <= bound
                if scale >= 1.0:
                    assert lengths[1] >= bound * (1 - Fraction(1, 10**12))


class GivenResiduals:
    """The residuals of a row are its target, times 1, -1, 1 ... for several scores."""

    def __init__(self, n_outputs=1):
        self.weights_shape = () if n_outputs == 1 else (n_outputs,)

    def relative_weights(self, y):
        return 1.0

    def residual(self, scores, y):
        signs = (-1.0) ** np.arange(math.prod(self.weights_shape))
        return y[:, None] * signs if self.weights_shape else y.copy()


def adversarial(n, d, dtype, rng):
    """Rows at the clip whose sums cancel, with a last digit that is lost when they are added."""
    X = np.ones((n, d), dtype=dtype)
    X[n // 2 :, 1::3] = -1.0
    X[:, 2::3] = rng.normal(size=(n, len(range(2, d, 3))))
    return X, np.where(rng.uniform(size=n) < 0.9, 1.0, 1.0 / 3.0) * (1 + 1e-9 * rng.normal(size=n))


def halves(values):
    """Split doubles into two parts of half the digits each (Veltkamp 1968)."""
    shifted = (2.0**27 + 1.0) * values
    high = shifted - (shifted - values)
    return high, values - high


def inner_product(one, other):
    """The inner product in exact arithmetic, rounded once (Dekker 1971; Shewchuk 1997)."""
    products = one * other
    (a, b), (c, d) = halves(one), halves(other)
    errors = ((a * c - products) + a * d + b * c) + b * d
    return math.fsum([*products.tolist(), *errors.tolist()])


def tiles_of(engine, weights, indices):
    batch = engine._batch(indices)
    return (
        (tile.block, tile.clipped_residuals(weights))
        for tile in map(batch.__getitem__, batch.blocks())
    )


def error_of(sums, engine, weights, indices, constant):
    """The distance of sums from the exact ones, and how far these are known, added up."""
    tiles = [
        (b.toarray() if issparse(b) else b.copy(), r) for b, r in tiles_of(engine, weights, indices)
    ]
    rows, residual = (np.concatenate(parts) for parts in zip(*tiles, strict=True))
    rows = np.column_stack([rows, np.full(len(rows), constant)])
    exact = [
        [inner_product(numbers, column) for column in rows.T]
        for numbers in residual.reshape(len(rows), -1).T
    ]
    exact = np.reshape(exact, sums.shape)
    return np.linalg.norm(sums - exact) + 2.0**-52 * np.linalg.norm(exact)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("loops", VERSIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(1, 1, 1), (2, 1, 1), (127, 3, 1), (3000, 3, 1), (5000, 1, 2), (700, 99, 3)]
)
def test_sums_are_within_the_bound_of_exact_sums(n, d, k, dtype, loops):
    rng, constant = np.random.default_rng(n), 0.7
    X, y = adversarial(n, d, dtype, rng)
    weights = np.zeros((k, d + 1)) if k > 1 else np.zeros(d + 1)
    chunks = ChunkedArray([X[: n // 3], X[n // 3 :]])
    some = np.sort(rng.choice(n, -(-9 * n // 10), replace=False))
    for stored in (X, chunks, csr_array(X)):
        engine = ClippedSums(stored, y, GivenResiduals(k), constant=constant, clip=1.0, loops=loops)
        for batch in (None, some):
            size = n if batch is None else len(batch)
            error = error_of(engine.sums(weights, batch), engine, weights, batch, constant)
            assert error <= sum_rounding(d, k, 1.0, size)


def test_single_precision_would_break_the_bound():
    rng, n = np.random.default_rng(0), 3000
    X, y = adversarial(n, 3, np.float32, rng)
    engine = ClippedSums(X, y, GivenResiduals(), constant=1.0, clip=1.0)
    weights = np.zeros(4)
    residual = residuals(engine, weights, None).astype(np.float32)
    single = (residual @ np.column_stack([X, np.ones(n, np.float32)])).astype(np.float64)
    assert error_of(single, engine, weights, None, 1.0) > sum_rounding(3, 1, 1.0, n)


def test_the_bound_is_small_and_grows_with_the_batch():
    bounds = [sum_rounding(100, 1, 1.0, m) for m in (1, 10, 1000, 100_000, 10_000_000)]
    assert bounds == sorted(bounds)
    assert bounds[2] < 1e-9 and bounds[3] < 1e-7 and bounds[4] < 1e-3
    assert sum_rounding(100, 1, 2.0, 1000) == pytest.approx(2.0 * bounds[2])


BITWISE = {
    **{name: LOSSES[name] for name in ("logistic", "softmax")},
    "hinge": BinaryHuberizedHingeLoss(2.0**-10),
    "hinges": OneVersusRestLoss(BinaryHuberizedHingeLoss(2.0**-10), 5),
    "weighted": ClassWeightedLoss(MultinomialLogisticLoss(10), tuple(np.linspace(0.5, 3.0, 10))),
    "squared": HuberLoss(),
}


def residuals(engine, weights, indices):
    return np.concatenate([one.copy() for _, one in tiles_of(engine, weights, indices)])


def assert_residuals_depend_on_the_row_alone(stored, y, loss, batches, rng):
    d = stored.shape[1]
    engine = ClippedSums(stored, y, loss, constant=0.3, clip=1.0)
    weights = rng.normal(size=(*loss.weights_shape, d + 1)) * 3 / np.sqrt(d)
    expected = residuals(engine, weights, None)
    for batch in batches:
        np.testing.assert_array_equal(residuals(engine, weights, batch), expected[batch])


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", BITWISE)
@pytest.mark.parametrize("d", [1, 2, 3, 7, 16, 33, 100, 257, 784])
def test_a_residual_depends_on_its_row_alone_to_the_last_bit(d, name, threads):
    """Wherever the row stands, however many others there are, and whatever they hold."""
    loss, rng, n = BITWISE[name], np.random.default_rng(d), 300
    X, y = rng.normal(size=(n, d)), rng.integers(2, size=n)
    X[::17] *= 1e30
    y = y if loss.weights_shape or name == "weighted" else y.astype(float)
    chosen = [np.sort(rng.choice(n, m, replace=False)) for m in (1, 2, 3, 15, 16, 17, 40, 299)]
    batches = [*chosen, *(np.delete(chosen[-2], i) for i in range(0, 40, 3)), np.arange(5, 295)]
    chunks = ChunkedArray([X[:7], X[7:130].astype(np.float32), X[130:]])
    sparse = csr_array(np.where(rng.uniform(size=X.shape) < 0.5, X, 0.0))
    with threadpool_limits(threads, "blas"):
        for stored in (X, X.astype(np.float32), np.asfortranarray(X), chunks, sparse):
            assert_residuals_depend_on_the_row_alone(stored, y, loss, batches, rng)


def test_scores_that_depend_on_the_place_are_told(monkeypatch):
    def by_place(block, weights):
        return np.nextafter(block @ weights, np.where(np.arange(len(block)) % 2, -np.inf, np.inf))

    monkeypatch.setattr(_clipped_sums, "row_scores_function", lambda *measures: by_place)
    rng = np.random.default_rng(0)
    X, y, loss = (
        rng.normal(size=(50, 9)),
        rng.integers(2, size=50).astype(float),
        BITWISE["squared"],
    )
    with pytest.raises(AssertionError):
        assert_residuals_depend_on_the_row_alone(X, y, loss, [np.arange(1, 50)], rng)


@pytest.mark.parametrize("shape", [(), (4,)])
def test_a_library_that_looks_at_places_is_not_asked(shape, monkeypatch):
    def unequal(block, weights):
        scores = np.matmul(block, weights.T)
        scores[-1] = np.nextafter(scores[-1], np.inf)
        return scores

    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(50, 12)), rng.normal(size=(*shape, 12))
    monkeypatch.setattr(_clipped_sums, "_scores_by_blas", unequal)
    found = _clipped_sums.row_scores_function(12, shape)(X, weights)
    np.testing.assert_allclose(found, X @ weights.T, atol=1e-12)
    one_by_one = [_clipped_sums._scores_by_sums(X[i : i + 1], weights)[0] for i in range(50)]
    np.testing.assert_array_equal(found, one_by_one)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("value", [1e151, 1e200, 1e307])
def test_rows_too_long_count_as_zero(value, norm):
    """Their caps would be so small that underflow could round a summand up."""
    loss = LOSSES["logistic"]
    X, y = np.array([[value, value], [1.0, 2.0]]), np.array([1.0, 1.0])
    weights = np.array([1.0, -1.0, 0.5])
    for stored in (X, csr_array(X)):
        engine = ClippedSums(stored, y, loss, constant=1.0, clip=1e-16, norm=norm)
        alone = ClippedSums(stored[1:], y[1:], loss, constant=1.0, clip=1e-16, norm=norm)
        np.testing.assert_array_equal(engine.sums(weights, None), alone.sums(weights, None))


@pytest.mark.parametrize("clip", [1e-20, 1.0])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_underflow_of_several_residuals_does_not_escape_the_clip(norm, clip):
    """Squares of tiny ones vanish; the factor for huge ones may be rounded up to twice itself."""
    loss, weights = LOSSES["softmax"], np.array([[0.0, 0.0], [0.0, -1.0], [0.0, -1.0]])
    squared = OneVersusRestLoss(SquaredHingeLoss(), 3)
    for exponent in (300.0, 380.0, 500.0):
        X = np.array([[1e149, exponent]])
        engine = ClippedSums(X, np.array([0]), loss, constant=0.0, clip=clip, norm=norm)
        assert length(engine.sums(weights, None), norm) <= clip
    for size in np.geomspace(1e150, 1e175, 500):
        X = np.array([[9e149]])
        engine = ClippedSums(X, np.array([0]), squared, constant=0.0, clip=clip, norm=norm)
        away = np.array([[-1.0], [1.0], [1.0]]) * (size / X[0, 0])
        assert length(engine.sums(away, None), norm) <= clip


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_rows_of_zeros(norm):
    loss, y = LOSSES["logistic"], np.zeros(9)
    for X in (np.zeros((9, 2)), csr_array((9, 2))):
        engine = ClippedSums(X, y, loss, constant=1.0, clip=0.1, norm=norm)
        expected = [0.0, 0.0, 0.9]
        np.testing.assert_allclose(engine.sums(np.zeros(3), None), expected, atol=1e-12)
        engine = ClippedSums(X, y, loss, constant=0.0, clip=0.1, norm=norm)
        np.testing.assert_array_equal(engine.sums(np.zeros(2), None), np.zeros(2))


@pytest.mark.parametrize("name", LOSSES)
def test_scores_that_overflow_do_no_harm(name):
    loss = LOSSES[name]
    X, y = table(loss)
    X[:5] = np.sign(X[:5]) * 1e149
    weights = weights_for(loss, 1.0) * 1e200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = ClippedSums(X, y, loss, constant=1.0, clip=1.0).sums(weights, np.arange(5))
    assert length(total, "l2") <= 5.0


def mutated_reach(mutate, loss):
    """How far one row moves the sums of a mutated engine, over the clip."""
    weights, reach = weights_for(loss, 1.5), 0.0
    for X, y in neighbors(loss, np.random.default_rng(1)):
        engine = ClippedSums(X, y, loss, constant=1.5, clip=0.4)
        mutate(engine)
        batch = np.arange(N)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = engine.sums(weights, batch) - engine.sums(weights, np.delete(batch, 17))
            reach = max(reach, length(sums, "l2") / 0.4)
    return reach


def without_the_constant(engine):
    norms = np.array([np.linalg.norm(row / 1e200) * 1e200 for row in engine.X])
    with np.errstate(divide="ignore"):
        engine._caps[:] = np.minimum(0.4 / norms, 1e30)


def without_a_clip(engine):
    engine._caps[:] = 1e30


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_neighbors_tell_mutations(name):
    loss = LOSSES[name]
    assert mutated_reach(lambda engine: None, loss) <= 1.0 + 1e-9
    assert mutated_reach(without_the_constant, loss) > 1.5
    assert mutated_reach(without_a_clip, loss) > 1.5


def test_clipping_each_row_is_not_clipping_the_sum():
    loss = LOSSES["logistic"]
    (X, y), weights = table(loss), weights_for(loss, 1.0)
    total = ClippedSums(X, y, loss, constant=1.0, clip=0.1).sums(weights, None)
    assert length(total, "l2") > 0.2
    unclipped = clipped_rows(X, y, loss, 1.0, np.inf, "l2", weights).sum(axis=0)
    after = unclipped * min(1.0, 0.1 / np.linalg.norm(unclipped))
    assert length(total - after, "l2") > 0.1


def test_classes_are_clipped_together():
    loss = LOSSES["softmax"]
    X, y = np.array([[3.0, 4.0]]), np.array([0])
    total = ClippedSums(X, y, loss, constant=0.0, clip=0.5).sums(np.zeros((3, 2)), None)
    residual = np.array([-2.0, 1.0, 1.0]) / 3.0
    expected = np.outer(residual, X[0])
    np.testing.assert_allclose(total, 0.5 * expected / np.linalg.norm(expected), rtol=1e-12)


def test_memory_beside_the_data_is_small():
    X = np.zeros((200_000, 50), dtype=np.float32)
    tracemalloc.start()
    engine = ClippedSums(X, np.zeros(len(X)), BINARY["logistic"], constant=1.0, clip=1.0)
    engine.sums(np.zeros(51), np.arange(0, len(X), 9))
    engine.sums(np.zeros(51), None)
    assert tracemalloc.get_traced_memory()[1] < 8e6
    tracemalloc.stop()


@pytest.mark.parametrize("clip", [0.0, -1.0, np.nan, np.inf, 1e101, 1e-101])
def test_bad_clips(clip):
    with pytest.raises(ValueError, match="clip"):
        ClippedSums(np.ones((2, 2)), np.ones(2), BINARY["logistic"], constant=0.0, clip=clip)


def test_bad_norms():
    with pytest.raises(ValueError, match="norm"):
        ClippedSums(
            np.ones((2, 2)), np.ones(2), BINARY["logistic"], constant=0.0, clip=1.0, norm="max"
        )


def test_batches_are_sent_in_few_bytes():
    """As steps from one row of a part to the next, from which the same rows come back."""
    rng, loss = np.random.default_rng(8), LOSSES["logistic"]
    (X, y), offsets = table(loss), (0, 100, 100, 250, N)
    chunks = ChunkedArray([X[a:b] for a, b in pairwise(offsets)])
    sums = ClippedSums(chunks, y, loss, constant=1.0, clip=0.7)
    for size in (0, 1, 3, 40, N):
        rows = np.sort(rng.choice(N, size, replace=False))
        batch = sums._batch(rows)
        for number, (start, stop) in enumerate(pairwise(offsets)):
            sent = batch.detach(number)
            assert sent._indices.dtype == np.uint8
            got = sent.attach(X[start:stop], (y[start:stop], None, None))
            np.testing.assert_array_equal(
                got._indices, rows[(rows >= start) & (rows < stop)] - start
            )
            assert got.offsets == (0, len(got._indices))


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
@pytest.mark.parametrize("n_repeated", [3, 17, 40])
def test_the_order_of_one_sparse_row_changes_no_other(kind, n_repeated):
    """SciPy sorts all rows if one is not sorted; the order of equal columns is then arbitrary.

    Other rows have many entries of one column whose sum depends on their order.
    """
    values = [1e17, 3.0, *[0.0] * (n_repeated - 3), -1e17]
    sums = []
    for first in ([0, 1], [1, 0]):
        indices = np.array(first + [0] * (49 * n_repeated), dtype=np.int32)
        ends = np.append(0, 2 + n_repeated * np.arange(50)).astype(np.int32)
        X = kind((np.array([0.0, 0.0] + values * 49), indices, ends), shape=(50, 2))
        batches = ClippedSums(X, np.zeros(50), BinaryLogisticLoss(), constant=0.0, clip=1.0)
        sums.append([batches.sums(np.zeros(2), rows) for rows in (None, np.arange(1, 50))])
    np.testing.assert_array_equal(*sums)


class RecordedScores:
    """Residuals that are the scores, which are kept."""

    weights_shape = ()

    def __init__(self):
        self.scores = []

    def relative_weights(self, y):
        return 1.0

    def residual(self, scores, y):
        self.scores.append(scores.copy())
        return scores - y


@needs_numba
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_scores_depend_on_their_row_alone(dtype, monkeypatch):
    """To the last bit, in batches of any size, and within the error of a sum of products."""
    monkeypatch.setattr(get_loops("numba"), "BATCH_BYTES", 1)
    rng = np.random.default_rng(0)
    for d in (1, 2, 7, 8, 15, 16, 17, 33, 100):
        X = (rng.normal(size=(N, d)) * 10.0 ** rng.integers(-8, 8, d)).astype(dtype)
        weights, loss = rng.normal(size=d + 1), RecordedScores()
        sums = ClippedSums(X, np.zeros(N), loss, constant=0.5, clip=1.0, loops="numba")
        sums.sums(weights, np.arange(N))
        assert len(loss.scores) > 1
        scores = np.concatenate(loss.scores)
        rows = np.column_stack([X.astype(np.float64), np.full(N, 0.5)])
        exact = [inner_product(row, weights) for row in rows]
        magnitudes = np.abs(rows) @ np.abs(weights)
        assert (np.abs(scores - exact) <= (d + 3) * 2.0**-53 * magnitudes).all()
        for size in (1, 2, 9, 40, 299):
            loss.scores.clear()
            batch = np.sort(rng.choice(N, size, replace=False))
            sums.sums(weights, batch)
            np.testing.assert_array_equal(np.concatenate(loss.scores), scores[batch])


@needs_numba
@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("has_factors", [False, True])
@pytest.mark.parametrize("name", BINARY)
def test_versions_differ_by_rounding_alone(name, has_factors):
    """With centered rows, too. A score's error enters a gradient by the loss's curvature."""
    loss, clip = LOSSES[name], 0.7
    (X, y), weights = table(loss, n=9000), weights_for(loss, 1.0)
    center = np.random.default_rng(2).normal(size=D)
    factors = np.linspace(0.5, 3.0, D) if has_factors else None
    options = {"constant": 1.0, "clip": clip, "center": center, "column_factors": factors}
    numpy, numba = (ClippedSums(X, y, loss, **options, loops=v) for v in ("numpy", "numba"))
    centered = (X - center) * (1.0 if factors is None else factors)
    norms = np.hypot(np.linalg.norm(centered, axis=1), 1.0)
    magnitudes = (np.abs(X) + np.abs(center)) @ np.abs(
        weights[:D] * (factors if has_factors else 1)
    )
    score_errors = 2.0 * (D + 8) * 2.0**-53 * (magnitudes + np.abs(weights[D]))
    curvature = 2.0 * loss.curvature_bound
    for size in (1, 100, 9000):
        batch = np.sort(np.random.default_rng(size).choice(9000, size, replace=False))
        bound = curvature * (score_errors * norms)[batch].sum()
        # Sums are of rows that are not centered yet. A tile has at most 8192 rows.
        summed = (clip / norms * (np.linalg.norm(X, axis=1) + np.linalg.norm(center) + 1.0))[batch]
        bound += 2.0 * (8192 + 69) * 2.0**-53 * summed.sum() * 3.0
        distance = np.linalg.norm(numpy.sums(weights, batch) - numba.sums(weights, batch))
        assert distance <= bound


@needs_numba
def test_other_tables_and_losses_have_the_bits_of_numpy(tmp_path):
    """Persons, several scores, full batches and other containers are summed by NumPy."""
    for name, stored in [
        ("softmax", None),
        ("logistic", "F"),
        ("logistic", "persons"),
        ("hinge", 0),
    ]:
        loss = LOSSES[name]
        (X, y), weights, persons = table(loss), weights_for(loss, 1.0), None
        batch = np.arange(0, N, 3)
        if stored == "F":
            X = np.asfortranarray(X)
        elif stored == "persons":
            persons = read_persons(np.arange(N) // 2, N)
            batch = np.arange(0, N // 2, 3)
        elif stored == 0:
            batch = None
        options = {"constant": 1.0, "clip": 0.7, "persons": persons}
        sums = [
            ClippedSums(X, y, loss, **options, loops=version).sums(weights, batch)
            for version in ("numpy", "numba")
        ]
        np.testing.assert_array_equal(*sums, err_msg=str(stored))
