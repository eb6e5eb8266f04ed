"""Runs of DP-SGD: batches, noise, steps, and the check of what weights explain by chance."""

import itertools
import math
import tracemalloc
import warnings
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdp._optim import _batches, _gradient_noise
from skdp._optim._batches import FixedSizeBatches, FullBatches, PoissonBatches
from skdp._optim._clipped_sums import sum_loss_decreases
from skdp._optim._default_settings import LossSpec
from skdp._optim._gradient_noise import GaussianNoise, LaplaceNoise
from skdp._optim._noisy_gradients import LEARNING_RATES, OPTIMIZERS, ShrinkageRule, Update, run_sgd
from skdp._optim._sgd_plan import plan_sgd
from skdp.exceptions import SeededNoiseWarning
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from tests._guarantees import meet, of_rows
from tests._private import BinaryLogisticLoss, HuberLoss, has_numba

N, D = 200, 3


def make_table(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    return X, (X[:, 0] > 0.3).astype(float), BinaryLogisticLoss()


def make_plan(epsilon=1.0, sampling="full", n_steps=25, delta=1e-6, clip=1.0):
    problem = of_rows(HuberLoss(), N, D, 1.0, meet(epsilon, delta), constant=0.5)
    return plan_sgd(problem, clip, sampling, 20, n_steps)


def make_update(n_steps=25, eta0=0.5):
    return Update("sgd", "constant", eta0, 0.5, 0.0, n_steps, 1)


def run(plan, table, alpha=0.0, start=None, seed=0, after_step=None, update=None):
    start = np.zeros(D + 1) if start is None else start
    update = update or make_update(plan.n_steps)
    return run_sgd(plan, plan.sums(*table), update, start, alpha, RandomSource(seed), after_step)


def test_without_noise_it_is_gradient_descent():
    X, y, loss = table = make_table()
    result = run(make_plan(1e12, clip=50.0), table, alpha=0.1)
    rows, weights = np.column_stack([X, np.full(N, 0.5)]), np.zeros(D + 1)
    for _ in range(25):
        gradient = loss.residual(rows @ weights, y) @ rows / N
        gradient[:D] += 0.1 * weights[:D]
        weights -= 0.5 * gradient
    np.testing.assert_allclose(result, weights, atol=1e-4)


def test_the_intercept_is_not_penalized():
    X, _, loss = make_table()
    plan, update = make_plan(1e12, n_steps=600), make_update(600, eta0=0.1)
    result = run(plan, (X, np.ones(N), loss), alpha=10.0, update=update)
    assert np.abs(result[:D]).max() < 0.02 < 1.0 < result[D]


def test_the_start_is_where_it_starts_and_stays_as_it_was():
    start = np.array([1.0, 2.0, 3.0, 4.0])
    update = make_update(1, eta0=1e-40)
    result = run(make_plan(n_steps=1), make_table(), start=start, update=update)
    np.testing.assert_array_equal(result, start)
    np.testing.assert_array_equal(start, [1.0, 2.0, 3.0, 4.0])


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_every_planned_step_is_taken_and_none_else(sampling):
    steps = []
    run(make_plan(sampling=sampling, n_steps=17), make_table(), after_step=steps.append)
    assert steps == list(range(1, 18))


def test_an_update_of_other_length_would_not_average_what_it_says():
    with pytest.raises(ValueError, match="steps"):
        run(make_plan(n_steps=5), make_table(), update=make_update(6))


def run_checked(y, sampling, start, epsilon, seed):
    """Return the weights of 60 steps, of which the last ten check them, and of the first 50."""
    X, weights = make_table()[0], []
    for n_checked in (10, 0):
        plan = make_plan(epsilon, sampling, 50 + n_checked, clip=2.0)
        rule = ShrinkageRule(
            n_checked, norm=1.5, residual=0.5, null_fraction=0.02, null_decrease_factor=2.0
        )
        given = make_update(50, eta0=0.1), start, 0.0, RandomSource(seed)
        sums = plan.sums(X, y, HuberLoss())
        weights.append(run_sgd(plan, sums, *given, shrinkage=rule))
    return weights


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_weights_that_explain_nothing_go_back_to_the_start(sampling):
    """What is kept of ten moves: about a tenth of the move, unchecked all of it."""
    start = np.array([0.3, -0.2, 0.1, 0.5])
    score = np.column_stack([make_table()[0], np.full(N, 0.5)]) @ start
    y = score + np.random.default_rng(4).choice([-0.5, 0.5], N)
    moves = [
        [np.linalg.norm(one - start) for one in run_checked(y, sampling, start, 0.5, seed)]
        for seed in range(10)
    ]
    checked, unchecked = np.mean(moves, axis=0)
    assert checked < 0.35 * unchecked


def test_weights_that_explain_much_stay():
    y = make_table()[0] @ [1.0, -1.0, 0.5]
    checked, unchecked = run_checked(y, "full", np.zeros(4), 5.0, 0)
    assert np.linalg.norm(unchecked) > 1.0
    np.testing.assert_allclose(checked, unchecked, atol=0.2)


@pytest.mark.parametrize("sampling", ["full", "poisson"])
def test_a_whole_run_with_shared_noise(sampling, monkeypatch):
    """At the iterates of one run, batches and noise shared, the sums of a neighbor's run."""
    (X, y, loss), plan = make_table(), make_plan(sampling=sampling, n_steps=40)
    X[0] = [1e3, -1e3, 5.0]
    other = X.copy()
    other[0] = 0.0
    others, moved, seen = plan.sums(other, y, loss), [], []
    sums = type(others).sums

    def compared(self, weights, rows):
        total = sums(self, weights, rows)
        without = np.delete(np.arange(N), 0) if rows is None else rows[rows != 0]
        moved.append(np.linalg.norm(total - sums(others, weights, without)))
        seen.append(rows is None or 0 in rows)
        return total

    monkeypatch.setattr(type(others), "sums", compared)
    run(plan, (X, y, loss))
    moved, seen = np.array(moved), np.array(seen)
    assert len(moved) == 40 and seen.any()
    assert np.all(moved[seen] <= plan.sensitivity) and np.max(moved) > 0.99
    # Where the row is not in the batch nothing moves, but for rounding.
    assert np.all(moved[~seen] <= plan.sensitivity - plan.clip)


# Batches. Seeds are fixed; false alarm rates are those for a random one, 1e-7 each.
RARE = 1e-7


def stream(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeededNoiseWarning)
        return RandomSource(seed).stream()


def membership(batches, n_steps, seed=0):
    """One line of zeros and ones for each step."""
    table = np.zeros((n_steps, batches.n_rows))
    for step, rows in enumerate(batches.draw(n_steps, stream(seed))):
        assert rows.dtype == np.int64
        assert np.all(np.diff(rows) > 0)
        table[step, rows] = 1.0
    return table


def poisson_p_values(table, rate):
    """P-values of what Poisson sampling promises; each is uniform under it."""
    n_steps, n_rows = table.shape
    each = table.sum(axis=0)
    yield stats.binomtest(int(table.sum()), table.size, rate).pvalue
    variance = n_steps * rate * (1 - rate)
    yield stats.chi2.sf(np.sum((each - n_steps * rate) ** 2) / variance, n_rows)
    sizes = table.sum(axis=1)
    variance = n_rows * rate * (1 - rate)
    kurtosis = 2.0 + (1.0 - 6.0 * rate * (1 - rate)) / variance
    spread = np.mean((sizes - n_rows * rate) ** 2) / variance - 1.0
    yield 2.0 * stats.norm.sf(abs(spread) / np.sqrt(kurtosis / n_steps))
    centered = (table - rate) / np.sqrt(rate * (1 - rate))
    pairs = (centered.T @ centered)[np.triu_indices(n_rows, 1)] / np.sqrt(n_steps)
    yield min(1.0, 2.0 * stats.norm.sf(np.abs(pairs).max()) * pairs.size)
    for lag in (1, 2):
        products = np.sum(centered[lag:] * centered[:-lag]) / np.sqrt(centered[lag:].size)
        yield 2.0 * stats.norm.sf(abs(products))


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("block", [1, 64, 1 << 14])
@pytest.mark.parametrize("rate", [0.03, 0.4, 0.9])
def test_poisson_law(rate, block, monkeypatch):
    monkeypatch.setattr(_batches, "BLOCK_ROWS", block)
    table = membership(PoissonBatches(40, rate), 4000, seed=block)
    assert min(poisson_p_values(table, rate)) > RARE


def test_the_law_is_not_that_of_other_batches():
    rng, rate = np.random.default_rng(0), 0.1
    epochs = [rng.permutation(40).reshape(10, 4) for _ in range(400)]
    shuffled = np.zeros((4000, 40))
    shuffled[np.arange(4000)[:, None], np.concatenate(epochs)] = 1.0
    assert min(poisson_p_values(shuffled, rate)) < RARE
    fixed = membership(FixedSizeBatches(40, 4), 4000)
    assert min(poisson_p_values(fixed, rate)) < RARE
    together = np.repeat(rng.uniform(size=(4000, 20)) < rate, 2, axis=1).astype(float)
    assert min(poisson_p_values(together, rate)) < RARE
    repeated = np.repeat(rng.uniform(size=(2000, 40)) < rate, 2, axis=0).astype(float)
    assert min(poisson_p_values(repeated, rate)) < RARE


def test_sizes_are_binomial():
    sizes = [len(rows) for rows in PoissonBatches(30, 0.1).draw(20_000, stream())]
    counts = np.bincount(np.minimum(sizes, 9), minlength=10)
    law = stats.binom(30, 0.1)
    expected = 20_000 * np.append(law.pmf(np.arange(9)), law.sf(8))
    assert counts[0] > 0
    assert stats.chisquare(counts, expected).pvalue > RARE


@pytest.mark.parametrize(
    "rate", [1e-12, 1e-5, 0.01, 0.1, 1 / 3, 0.5, 0.999, 1 - 2.0**-40, 1 - 2.0**-53]
)
def test_the_exact_rate_is_at_most_the_rate(rate):
    with mpmath.workdps(80):
        exact = -mpmath.expm1(-1 / mpmath.mpf(PoissonBatches(10, rate)._scale))
        assert rate * (1 - mpmath.mpf(2) ** -48) <= exact <= rate


@pytest.mark.parametrize("block", [1, 5, 100])
def test_waiting_times_become_rows_of_steps(block, monkeypatch):
    """Every trial of the sequence stands for one row of one step; none is lost at a border."""
    monkeypatch.setattr(_batches, "BLOCK_ROWS", block)
    n_rows, n_steps, drawn = 7, 60, []

    def waits(scale, size, stream):
        drawn.append(np.random.default_rng(len(drawn)).geometric(0.2, size=size) - 1)
        return drawn[-1].copy()

    monkeypatch.setattr(_batches, "geometric", waits)
    batches = PoissonBatches(n_rows, 0.2)
    found = list(batches.draw(n_steps, None))
    at_once = max(1, int(block / (batches.expected_size + 1.0)))
    expected, drawn = [], iter(drawn)
    for first in range(0, n_steps, at_once):
        n_trials, position, successes = n_rows * min(at_once, n_steps - first), -1, []
        while position < n_trials:
            for wait in next(drawn).tolist():
                position += wait + 1
                successes.append(position)
        expected += [
            [s - step * n_rows for s in successes if step * n_rows <= s < (step + 1) * n_rows]
            for step in range(n_trials // n_rows)
        ]
    assert [rows.tolist() for rows in found] == expected


def test_no_cost_grows_with_the_rows():
    tracemalloc.start()
    batches = PoissonBatches(10**12, 1e-9)
    sizes = [len(rows) for rows in batches.draw(200, stream())]
    sizes += [len(rows) for rows in FixedSizeBatches(10**12, 1000).draw(20, stream())]
    assert tracemalloc.get_traced_memory()[1] < 8e6
    tracemalloc.stop()
    assert 900 < np.mean(sizes[:200]) < 1100


def test_empty_batches_are_ordinary():
    batches = list(PoissonBatches(3, 1e-6).draw(500, stream()))
    assert len(batches) == 500
    assert all(rows.shape == (0,) for rows in batches)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("block", [1, 50, 1 << 14])
def test_every_subset_is_as_likely(size, block, monkeypatch):
    monkeypatch.setattr(_batches, "BLOCK_ROWS", block)
    subsets = {s: i for i, s in enumerate(itertools.combinations(range(6), size))}
    drawn = FixedSizeBatches(6, size).draw(4000, stream(size))
    codes = np.array([subsets[tuple(rows.tolist())] for rows in drawn])
    assert stats.chisquare(np.bincount(codes, minlength=len(subsets))).pvalue > RARE
    pairs = np.bincount(codes[1:] * len(subsets) + codes[:-1], minlength=len(subsets) ** 2)
    assert stats.chisquare(pairs).pvalue > RARE


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("size", [300, 501, 999])
def test_large_subsets(size):
    table = membership(FixedSizeBatches(1000, size), 300)
    assert (table.sum(axis=1) == size).all()
    z = (table.sum(axis=0) - 0.3 * size) / np.sqrt(300 * size / 1000 * (1 - size / 1000))
    assert stats.chi2.sf(np.sum(z**2) * 999 / 1000, 999) > RARE


def test_all_rows():
    for batches in (FixedSizeBatches(5, 5), PoissonBatches(5, 1.0)):
        drawn = list(batches.draw(3, stream()))
        assert [rows.tolist() for rows in drawn] == [[0, 1, 2, 3, 4]] * 3
    assert list(FullBatches(5).draw(3, stream())) == [None] * 3


def test_what_a_plan_asks():
    assert PoissonBatches(100, 0.25).max_size == 100
    assert PoissonBatches(100, 0.25).expected_size == 25.0
    assert FixedSizeBatches(100, 7).max_size == FixedSizeBatches(100, 7).expected_size == 7
    assert FullBatches(100).max_size == FullBatches(100).expected_size == 100


def test_different_streams_give_different_batches():
    one, other = (list(PoissonBatches(1000, 0.1).draw(5, stream(seed))) for seed in (1, 2))
    assert all(a.tolist() != b.tolist() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.5, np.nan, 1e-16])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="rate"):
        PoissonBatches(10, rate)


@pytest.mark.parametrize("size", [0, -1, 11])
def test_bad_sizes(size):
    with pytest.raises(ValueError, match="size"):
        FixedSizeBatches(10, size)


# Noise of gradients.
KINDS = {"gaussian": GaussianNoise, "laplace": LaplaceNoise}


LAWS = {"gaussian": stats.norm, "laplace": stats.laplace}


def noise_table(noise, n_steps, seed=0):
    drawn = [vector.copy() for vector in noise.draw(n_steps, stream(seed))]
    return np.array([noise.add(np.zeros(noise.size), vector) for vector in drawn])


def dependence(table, kind):
    """P-values of independence among coordinates and between steps, and of the law."""
    z = stats.norm.ppf(np.clip(LAWS[kind].cdf(table), 1e-12, 1.0 - 1e-12))
    n_steps, size = z.shape
    pairs = (z.T @ z)[np.triu_indices(size, 1)] / math.sqrt(n_steps)
    yield min(1.0, 2.0 * stats.norm.sf(np.abs(pairs).max()) * pairs.size)
    for lag in (1, 2):
        yield 2.0 * stats.norm.sf(abs(np.sum(z[lag:] * z[:-lag])) / math.sqrt(z[lag:].size))
    yield stats.kstest(table.ravel(), LAWS[kind].cdf).pvalue


@pytest.mark.parametrize("block", [1, 100, 1 << 14])
@pytest.mark.parametrize("kind", KINDS)
def test_law_and_independence(kind, block, monkeypatch):
    monkeypatch.setattr(_gradient_noise, "BLOCK_VALUES", block)
    noise = KINDS[kind](3.0, 12, 1.0)
    assert min(dependence(noise_table(noise, 3000, block) / noise.drawn_scale, kind)) > RARE


@pytest.mark.parametrize("kind", KINDS)
def test_shared_or_halved_noise_is_told(kind):
    noise = KINDS[kind](3.0, 12, 1.0)
    table = noise_table(noise, 3000) / noise.drawn_scale
    one_for_all_classes = np.tile(table[:, :4], (1, 3))
    one_for_two_steps = np.repeat(table[::2], 2, axis=0)
    for mutated in (one_for_all_classes, one_for_two_steps, 0.5 * table, 2.0 * table):
        assert min(dependence(mutated, kind)) < RARE


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_rounded_before_noise_is_added(kind):
    noise = KINDS[kind](1.0, 5, 1.0)
    rng = np.random.default_rng(0)
    vector = next(noise.draw(1, stream()))
    values = rng.normal(size=5) * 100.0
    released = noise.add(values, vector)
    np.testing.assert_array_equal(released / noise.step, np.rint(released / noise.step))
    assert np.abs(released - vector * noise.step - values).max() <= 0.5 * noise.step
    rounded = np.rint(values / noise.step) * noise.step
    np.testing.assert_array_equal(noise.add(rounded, vector), released)


@pytest.mark.parametrize("kind", KINDS)
def test_large_values_are_added_exactly(kind):
    noise = KINDS[kind](1.0, 4, 1.0)
    vector = next(noise.draw(1, stream()))
    values = np.array([2.0**45, -(2.0**70), 1e100, 3.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = noise.add(values, vector)
    step = Fraction(noise.step)
    exact = [
        round(Fraction(v) / step) * step + int(z) * step
        for v, z in zip(values.tolist(), vector.tolist(), strict=True)
    ]
    assert [Fraction(v) for v in released.tolist()] == [Fraction(float(v)) for v in exact]


def test_shapes():
    noise = GaussianNoise(1.0, 6, 1.0)
    vector = next(noise.draw(1, stream()))
    assert vector.shape == (6,) and vector.dtype == np.int64
    released = noise.add(np.zeros((2, 3)), vector)
    np.testing.assert_array_equal(released.ravel(), noise.add(np.zeros(6), vector))
    assert released.shape == (2, 3)


@pytest.mark.parametrize("n_steps", [0, 1, 7])
def test_numbers_of_steps(n_steps, monkeypatch):
    monkeypatch.setattr(_gradient_noise, "BLOCK_VALUES", 8)
    for kind in KINDS.values():
        assert len(list(kind(1.0, 3, 1.0).draw(n_steps, stream()))) == n_steps


CASES = [
    (scale, size, sensitivity)
    for scale in (1e-50, 0.01, 0.9, 3e5)
    for size in (1, 10, 10_000)
    for sensitivity in (scale, 0.03 * scale, 7.0 * scale)
]


@pytest.mark.parametrize("scale, size, sensitivity", CASES)
def test_scales_pay_for_rounding(scale, size, sensitivity):
    """In rational numbers: what the accountant was told is what remains after all slack."""
    exact, moved = Fraction(scale), Fraction(sensitivity)
    noise = GaussianNoise(scale, size, sensitivity)
    step = Fraction(noise.step)
    priced = (Fraction(noise.scale_in_steps) ** 2 - 16) * step**2
    # A little more than the root: the test errs on the strict side.
    root = Fraction(math.isqrt(size * 10**40) + 1, 10**20)
    assert priced >= (exact / moved * (moved + root * step)) ** 2
    noise = LaplaceNoise(scale, size, sensitivity)
    step = Fraction(noise.step)
    least = exact / moved * (moved / step + size * (1 + Fraction(1, 2**20)))
    assert Fraction(noise.scale_in_steps) >= least


@pytest.mark.parametrize("scale, size, sensitivity", CASES)
def test_scales_are_those_of_the_mechanisms(scale, size, sensitivity):
    gaussian = GaussianMechanism.from_scale(scale, sensitivity, 1e-5)
    laplace = LaplaceMechanism.from_scale(scale, sensitivity)
    noise = GaussianNoise(scale, size, sensitivity)
    assert noise.drawn_scale == pytest.approx(gaussian.scale_for(size), rel=1e-11)
    assert noise.drawn_scale <= scale * (1.0 + 2.0**-15)
    noise = LaplaceNoise(scale, size, sensitivity)
    assert noise.drawn_scale == pytest.approx(laplace.scale_for(size), rel=1e-11)
    assert noise.drawn_scale <= scale * (1.0 + 2.0**-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scale, sensitivity", [(1e200, 1.0), (1e-200, 1.0), (np.nan, 1.0), (1e30, 1e-30)]
)
def test_noise_that_cannot_be_drawn(kind, scale, sensitivity):
    with pytest.raises(ValueError, match="cannot be sampled"):
        KINDS[kind](scale, 10, sensitivity)


def test_steps_move_by_no_more_than_is_charged():
    """Rounded sums of neighbors come apart by the sensitivity and the rounding."""
    rng = np.random.default_rng(0)
    noise = GaussianNoise(1.0, 50, 1.0)
    zero = np.zeros(50, dtype=np.int64)
    for _ in range(200):
        sums, move = rng.normal(size=50) * 1e3, rng.normal(size=50)
        move /= np.linalg.norm(move)
        apart = noise.add(sums + move, zero) - noise.add(sums, zero)
        assert np.linalg.norm(apart) <= 1.0 + math.sqrt(50) * noise.step


@pytest.mark.skipif(not has_numba(), reason="numba is not installed")
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_compiled_noise_has_the_same_bits(scale):
    """Also where a value is beyond the range of the integers, which only NumPy's version covers."""
    rng = np.random.default_rng(0)
    noise = GaussianNoise(scale, 6, scale)
    step = noise.step
    middles = (rng.integers(-1000, 1000, 6) + 0.5) * step
    vectors = [scale * rng.normal(size=6), np.zeros(6), -np.zeros(6), middles, -middles]
    vectors += [
        step * np.array([2.0**61, -(2.0**61), 2.0**60, 1.0, 0.4, 0.6]),
        vectors[0] * 2.0**70,
    ]
    for values, drawn in zip(vectors, noise.draw(len(vectors), stream()), strict=True):
        for shaped in (values, values.reshape(2, 3)):
            results = [noise.add(shaped, drawn, loops) for loops in ("numpy", "numba")]
            np.testing.assert_array_equal(*results)
            assert results[1].shape == shaped.shape
    for value in (np.nan, np.inf):
        with pytest.raises((ValueError, OverflowError)):
            noise.add(np.full(6, value), drawn, "numba")


# Steps, learning rates, averages and projections.


CURVATURES = np.array([1.0, 0.1])


MINIMIZER = np.array([2.0, -1.0])


def update_of(optimizer="sgd", learning_rate="constant", eta0=0.5, momentum=0.0, n_steps=400, **k):
    settings = {"power_t": 0.5, "n_averaged": 1} | k
    return Update(
        optimizer=optimizer,
        learning_rate=learning_rate,
        eta0=eta0,
        momentum=momentum,
        n_steps=n_steps,
        **settings,
    )


def descend(update, start=(0.0, 0.0)):
    state = update.begin(np.array(start))
    for _ in range(update.n_steps):
        state.step(CURVATURES * (state.lookahead - MINIMIZER))
    return state.average


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("n_averaged", [1, 50])
@pytest.mark.parametrize("momentum", [0.0, 0.5])
@pytest.mark.parametrize("learning_rate", LEARNING_RATES)
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_every_optimizer_finds_a_minimum(optimizer, learning_rate, momentum, n_averaged):
    eta0 = 0.1 if optimizer == "adam" else 0.5
    update = update_of(
        optimizer, learning_rate, eta0, momentum, 4000, power_t=0.2, n_averaged=n_averaged
    )
    np.testing.assert_allclose(descend(update), MINIMIZER, atol=1e-2)


def test_learning_rates():
    rates = {name: update_of(learning_rate=name, n_steps=4).rate for name in LEARNING_RATES}
    assert [rates["constant"](t) for t in (1, 4)] == [0.5, 0.5]
    assert [rates["invscaling"](t) for t in (1, 4)] == [0.5, 0.25]
    assert [rates["linear"](t) for t in (1, 4)] == [0.5, 0.125]


def test_a_learning_rate_that_vanishes():
    rate = update_of(learning_rate="invscaling", n_steps=4, power_t=1e50).rate
    assert [rate(t) for t in (1, 2, 4)] == [0.5, 0.0, 0.0]


def test_first_steps_by_hand():
    gradient = np.array([1.0, 2.0])
    heavy = update_of("sgd", momentum=0.5).begin(np.zeros(2))
    ahead = update_of("nesterov", momentum=0.5).begin(np.zeros(2))
    for state in (heavy, ahead):
        state.step(gradient)
        state.step(gradient)
    # Velocities 1 and 1.5 times the gradient; Nesterov's look-ahead is half a step further.
    np.testing.assert_allclose(heavy.iterate, -0.5 * 2.5 * gradient)
    np.testing.assert_allclose(ahead.iterate, -0.5 * 2.5 * gradient)
    np.testing.assert_allclose(ahead.lookahead, ahead.iterate - 0.25 * 1.5 * gradient)


def test_adam_by_its_definition():
    rng, beta1, beta2, eta = np.random.default_rng(0), 0.9, 0.999, 0.01
    state = update_of("adam", eta0=eta, momentum=beta1).begin(np.zeros(3))
    w, m, v = np.zeros(3), np.zeros(3), np.zeros(3)
    for t in range(1, 30):
        g = rng.normal(size=3)
        state.step(g)
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        w = w - eta * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + 1e-8)
    np.testing.assert_allclose(state.iterate, w, rtol=1e-10)


@pytest.mark.parametrize("n_averaged", [1, 3, 10])
def test_the_result_is_the_mean_of_the_last_iterates(n_averaged):
    update = update_of(n_steps=10, n_averaged=n_averaged)
    state, iterates = update.begin(np.zeros(2)), []
    for step in range(10):
        state.step(np.array([1.0, step]))
        iterates.append(state.iterate.copy())
    np.testing.assert_allclose(state.average, np.mean(iterates[-n_averaged:], axis=0))


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_projection(optimizer):
    update = update_of(optimizer, radius=0.7, momentum=0.3)
    state = update.begin(np.array([5.0, 0.0]))
    assert np.linalg.norm(state.lookahead) == pytest.approx(0.7)
    for _ in range(20):
        state.step(np.array([-3.0, 4.0]))
        assert np.linalg.norm(state.lookahead) <= 0.7 * (1 + 1e-12)
        assert np.linalg.norm(state.iterate) <= 0.7 * (1 + 1e-12)
    assert np.linalg.norm(state.average) <= 0.7 * (1 + 1e-12)
    np.testing.assert_array_equal(update.project(np.array([0.1, 0.2])), [0.1, 0.2])


@pytest.mark.parametrize("momentum", [0.0, 0.99])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_weights_stay_finite_whatever_happens(optimizer, momentum):
    state = update_of(optimizer, eta0=1e50, momentum=momentum, n_averaged=5, n_steps=50).begin(
        np.zeros(2)
    )
    rng = np.random.default_rng(0)
    for _ in range(50):
        state.step(rng.normal(size=2) * 1e200 + 1e50 * state.lookahead)
        assert np.isfinite(state.lookahead).all()
    assert np.isfinite(state.average).all() and math.isfinite(np.linalg.norm(state.average))


# What weights explain by chance, as the check of a linear model finds it from what it releases.


N_ROWS, N_COLUMNS = 4000, 30


def loss_spec(curvature_from="residuals"):
    return LossSpec(
        HuberLoss(1.0), 1.0, 1.0, 10.0, shrinkage_residual=0.15, curvature_from=curvature_from
    )


def rule_and_decreases(rows, alpha=1e-3, factor=None):
    """Return the check of ridge weights that were fitted to targets without information."""
    rng = np.random.default_rng(1)
    y = 0.1 * rng.normal(size=len(rows))
    weights = np.linalg.solve(
        rows.T @ rows / len(rows) + alpha * np.eye(N_COLUMNS), rows.T @ y / len(rows)
    )
    rule = loss_spec().shrinkage_rule(1.0, N_COLUMNS, len(rows), alpha)
    scores = rows @ weights
    loss_decreases = sum_loss_decreases(
        scores, -y, scores - y, rule.clip_norms(weights), None
    ) / len(rows)
    return rule, loss_decreases, weights


def rows_of_spectrum(spectrum):
    rng = np.random.default_rng(0)
    spectrum = np.asarray(spectrum, dtype=float)
    return rng.normal(size=(N_ROWS, N_COLUMNS)) * np.sqrt(spectrum / max(1.0, spectrum.sum()))


@pytest.mark.parametrize(
    "spectrum",
    [
        np.full(N_COLUMNS, 1.0 / N_COLUMNS),
        np.full(N_COLUMNS, 0.02 / N_COLUMNS),
        np.where(np.arange(N_COLUMNS) < 3, 0.3, 1e-6),
    ],
    ids=["all directions", "short rows", "three directions"],
)
def test_degrees_follow_the_rows_and_not_the_bound_on_their_norm(spectrum):
    rows = rows_of_spectrum(spectrum)
    rule, loss_decreases, weights = rule_and_decreases(rows)
    curvatures = np.linalg.eigvalsh(rows.T @ rows / N_ROWS)
    exact = np.sum(curvatures / (curvatures + 1e-3))
    first, last, squares = loss_decreases
    spread = rule.relative_curvature((first, last, 4.0 * squares), weights)
    assert 0.6 * exact < rule.effective_dof(spread) < 2.1 * exact
    if spectrum[0] != 1.0 / N_COLUMNS:
        assert rule.effective_dof(1.0) > 1.8 * exact


def test_noise_leaves_the_spread_at_one():
    rule, loss_decreases, weights = rule_and_decreases(
        rows_of_spectrum(np.full(N_COLUMNS, 0.02 / N_COLUMNS))
    )
    loud = type(rule)(
        **{name: getattr(rule, name) for name in rule.__annotations__}
        | {
            "n_steps": 1,
            "norm": rule.norm,
            "residual": rule.residual,
            "null_fraction": 0.0,
            "noise_std": 1.0,
        }
    )
    first, last, squares = loss_decreases
    assert loud.relative_curvature((first, last, 4.0 * squares), weights) == 1.0


def test_chance_is_subtracted_only_where_it_is_little():
    assert loss_spec().shrinkage_rule(1.0, N_COLUMNS, N_ROWS, 1e-3).null_decrease_factor == 1.5
    assert (
        loss_spec().shrinkage_rule(1.0, N_COLUMNS, 4 * N_COLUMNS, 1e-6).null_decrease_factor == 0.0
    )
    assert (
        loss_spec(None)
        .shrinkage_rule(1.0, N_COLUMNS, N_ROWS, 1e-3)
        .relative_curvature((0.5, 0.5, 0.5), np.ones(N_COLUMNS))
        == 1.0
    )
