"""Steps of a fit against other formulas: evidence, smooth blocks, standard errors, levels."""

import copy
import math
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.gam._blocks import (
    SMOOTHNESS_MARGIN,
    WEIGHT_STEP,
    Block,
    BlockDesign,
    joint_design,
    main_design,
)
from skdp.gam._descent import Schedule, descend
from skdp.gam._evidence import (
    averaged_response,
    chance_dof,
    penalty_by_evidence,
    spectrum,
    unclipped_fraction,
)
from skdp.gam._plan import AdditiveFit
from skdp.gam._smooth_blocks import (
    CORRELATION_LENGTH,
    INDEPENDENT_PART,
    SmoothBlock,
    centered_loadings,
    smooth_loadings,
    table_loadings,
)
from skdp.gam._standard_errors import IterateDrift, noise_gain
from skdp.gam._tables import TABLE_CELLS, make_table
from skdp.gam._tasks import BinaryTask, MultinomialTask
from skdp.mechanisms import GaussianMechanism
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._private import (
    BAND_WIDTH,
    GaussianNoise,
    PoissonTask,
    Term,
    beyond_noise,
    cell_reader,
    read_kinds,
    read_persons,
)
from tests.gam._rows import classifier, two_classes
from tests.gam.test_interactions import state_of
from tests.gam.test_plan import make_rows, odd_rows, plan_of, released_before_noise, targets_of

SCHEDULE = Schedule(loss_smoothness=50.0, l2_reg_strength=0.5, penalty_to_noise=1.0)


def layout_of(n_terms=6, n_cells=16, n_rows=1600.0, resolutions=(1, 4)):
    """Return terms of equally full cells, each of them at several resolutions."""
    weight = 1.0 / math.sqrt(2.0 * max(n_terms, 1) * len(resolutions))
    blocks = [Block(term=-1, weight=0.5, groups=np.zeros(1, dtype=int), counts=np.array([n_rows]))]
    for term in range(n_terms):
        for coarser in resolutions:
            groups = np.arange(n_cells) // coarser
            counts = np.bincount(groups, weights=np.full(n_cells, n_rows / n_cells))
            blocks.append(Block(term=term, weight=weight, groups=groups, counts=counts))
    return BlockDesign(blocks)


def early_mean(gradient, schedule, size):
    """Return the mean of the iterates of the second quarter of the steps."""
    told = []

    def penalty(weights):
        told.append(weights)
        return 0.0

    descend(gradient, schedule, np.zeros((size, 1)), math.inf, penalty=penalty)
    return told[0]


def test_response_is_that_of_the_steps():
    curvatures = np.array([0.0, 0.02, 0.3, 4.0, 50.0])
    gain, noise_gain = averaged_response(curvatures, SCHEDULE)

    def answer(gradient):
        column = curvatures[:, np.newaxis]
        steps = iter(gradient)
        return early_mean(lambda w: column * w + next(steps), SCHEDULE, 5)[:, 0]

    n_steps = SCHEDULE.n_steps
    np.testing.assert_allclose(gain, answer(np.full((n_steps, 5, 1), -1.0)), rtol=0.02)
    rng = np.random.default_rng(0)
    draws = [answer(rng.normal(size=(n_steps, 5, 1))) for _ in range(4000)]
    # The relative standard error of a variance of 4,000 draws is sqrt(2 / 4000) = .022: five of
    # them, of five variances.
    np.testing.assert_allclose(noise_gain, np.var(draws, axis=0), rtol=0.11)


def test_spectrum_is_that_of_the_centered_features():
    design, rng = layout_of(n_terms=1), np.random.default_rng(0)
    curvatures, rotated = spectrum(design, rng.normal(size=(design.size, 1)))
    # 1,600 rows, a hundred in each of the sixteen cells.
    cells = np.repeat(np.arange(16), 100)
    fine, coarse = design.blocks[1], design.blocks[2]
    features = np.hstack(
        [
            fine.weight * np.equal.outer(cells, np.arange(16)),
            coarse.weight * np.equal.outer(cells // 4, np.arange(4)),
        ]
    )
    features -= features.mean(axis=0)
    expected = np.linalg.eigvalsh(features.T @ features)
    np.testing.assert_allclose(np.sort(curvatures), np.maximum(expected, 0.0), atol=1e-9)
    assert rotated.shape == (20, 1)


@pytest.mark.parametrize("signal", [0.0, 0.05, 0.3])
def test_variance_of_weights_is_found(signal):
    """Weights of a known variance give a penalty near the best one; without any it is large."""
    rng, variance, step_noise = np.random.default_rng(1), 0.04, 0.5
    moments, _ = spectrum(layout_of(n_terms=20))
    # In the basis of eigenvectors a gradient is the curvature times the distance of the weights,
    # sampling noise and the noise of the step.
    basis = BlockDesign(
        layout_of(n_terms=0).blocks
        + [
            Block(term=j, weight=1.0 / 64.0, groups=np.zeros(1, dtype=int), counts=np.array([m]))
            for j, m in enumerate(64.0**2 * moments[:400])
        ]
    )
    curvatures, _ = spectrum(basis)
    true = np.concatenate([[0.0], signal * rng.normal(size=400)])[:, np.newaxis]
    h = np.concatenate([[0.0], curvatures])[:, np.newaxis]
    sampling = np.sqrt(h * variance) * rng.normal(size=h.shape)

    def gradient(weights):
        return h * (weights - true) + sampling + step_noise * rng.normal(size=h.shape)

    weights = early_mean(gradient, SCHEDULE, 401)
    known = {"variance": variance, "step_noise": step_noise}
    found = penalty_by_evidence(basis, weights, SCHEDULE, noise=0.0, **known)
    if signal == 0.0:
        # The best is infinite; what is left of a feature of the largest curvature is little.
        assert found > curvatures.max()
    else:
        best = max(variance / signal**2, SCHEDULE.l2_reg_strength)
        assert 0.6 * best < found < 1.7 * best


def schedule_of(strength, smoothness=50.0, log_ratio=7.0):
    ratio = math.exp(log_ratio)
    return Schedule(loss_smoothness=smoothness, l2_reg_strength=strength, penalty_to_noise=ratio)


def test_chance_falls_with_the_penalty():
    design = layout_of()
    degrees = [
        chance_dof(design, schedule_of(strength, strength + 50.0), strength)
        for strength in (1e-3, 1.0, 1e6)
    ]
    moments, _ = spectrum(design)
    # Six columns of sixteen cells, less the mean of each.
    assert degrees[0] == pytest.approx(90.0, rel=1e-2)
    # The steps have converged: the trace of a ridge regression.
    assert degrees[1] == pytest.approx(np.sum(moments / (moments + 1.0)), rel=1e-3)
    assert degrees[2] < 1e-3


@pytest.mark.parametrize(("strength", "slope"), [(0.5, 1.0), (20.0, 1.0), (20.0, 0.6)])
def test_chance_is_the_covariance_of_fitted_values_and_targets(strength, slope):
    """Targets that columns do not explain have this covariance with the mean of the last steps."""
    design = layout_of()
    moments, _ = spectrum(design)
    column = moments[:, np.newaxis]
    # The gradient at weights 0 has the variance of the targets times the second moments.
    gradients = np.sqrt(column) * np.random.default_rng(2).normal(size=(len(moments), 4000))
    weights, last_strength = descend(
        lambda w: slope * column * w - gradients,
        SCHEDULE,
        np.zeros_like(gradients),
        math.inf,
        penalty=lambda _: strength,
    )
    assert last_strength == strength
    covariances = np.sum(weights * gradients, axis=0)
    error = covariances.std() / math.sqrt(len(covariances))
    found = chance_dof(design, SCHEDULE, strength, slope)
    # Six standard errors.
    assert abs(found - covariances.mean()) < 6.0 * error
    if strength > SCHEDULE.l2_reg_strength:
        # The mean contains iterates of the first steps, whose penalty was smaller.
        assert found > 1.02 * np.sum(moments / (slope * moments + strength))


@pytest.mark.parametrize("clip", [0.6, 1.0, 2.0, 5.0])
def test_mean_clipped_squares_tell_how_many_residuals_are_clipped(clip):
    grid = np.linspace(-12.0, 12.0, 200_001)
    density = np.exp(-(grid**2) / 2.0)
    density /= density.sum()
    mean_square = density @ np.minimum(grid**2, clip**2) / clip**2
    inside = density @ (np.abs(grid) < clip)
    assert unclipped_fraction(mean_square) == pytest.approx(inside, abs=1e-4)


def test_impossible_mean_squares_give_the_limits():
    assert 0.39 < unclipped_fraction(1.5) < 0.41
    assert unclipped_fraction(-1.0) == pytest.approx(1.0)


# Blocks with a smooth prior: norms of rows, exact sums, and the covariance of cells.


def number(j, counts):
    counts = np.array(counts, dtype=float)
    edges = np.arange(float(len(counts)))
    return Term(features=(j,), kinds=("number",), edges=(edges,), counts=counts)


def design_of(n_terms=3, seed=0):
    rng = np.random.default_rng(seed)
    terms = [number(j, [*rng.uniform(50, 150, 20), 30.0]) for j in range(n_terms)]
    main = main_design(terms, 2000, trend_fraction=0.2, is_smooth=True)
    tables = [
        make_table(terms, indices, TABLE_CELLS[len(indices)], 2000, is_smooth=True)
        for indices in ((0, 1), (0, 1, 2))
    ]
    return joint_design(main, tables, 0.7), terms


def test_a_row_has_at_most_norm_1_and_nearly_that():
    design, _ = design_of()
    smooth = [block for block in design.blocks if isinstance(block, SmoothBlock)]
    assert len(smooth) == 5
    for block in smooth:
        norms = np.linalg.norm(block.matrix, axis=1)
        assert norms.max() <= block.weight and norms.min() > 0.98 * block.weight
        assert np.all(block.matrix / WEIGHT_STEP == np.rint(block.matrix / WEIGHT_STEP))
    long = replace(smooth[0], weight=1.0)
    with pytest.raises(ValueError, match="more than 1"):
        BlockDesign([*design.blocks, long])


def test_neighbors_are_correlated_and_missing_values_stand_alone():
    loadings = smooth_loadings(10, True)
    covariance = loadings @ loadings.T
    np.testing.assert_allclose(np.diag(covariance), 1.0)
    expected = (1.0 - INDEPENDENT_PART) * np.exp(-0.1 / CORRELATION_LENGTH)
    np.testing.assert_allclose(np.diag(covariance, 1)[:-1], expected)
    np.testing.assert_allclose(covariance[-1, :-1], 0.0, atol=1e-12)
    np.testing.assert_allclose(smooth_loadings(2, True) @ smooth_loadings(2, True).T, np.eye(3))
    labels = table_loadings((11, 4), ("number", "label"))
    np.testing.assert_allclose(labels @ labels.T, np.kron(covariance, np.eye(4)), atol=1e-12)


@pytest.mark.parametrize("has_missing", [True, False])
@pytest.mark.parametrize("n_bins", [2, 3, 12, 32])
def test_centered_loadings_leave_out_the_largest_constant(n_bins, has_missing):
    n_cells = n_bins + has_missing
    loadings = centered_loadings(n_bins, has_missing)
    covariance = (loadings @ loadings.T)[:n_cells, :n_cells]
    full = (smooth_loadings(n_bins, True) @ smooth_loadings(n_bins, True).T)[:n_cells, :n_cells]
    # Rows have norm 1, and all distances between cells grow by the same factor.
    np.testing.assert_allclose(np.diag(covariance), 1.0)
    assert np.linalg.norm(loadings, axis=1).max() <= 1.0 + 1e-15
    growth = (1.0 - covariance[0, 1:]) / (1.0 - full[0, 1:])
    np.testing.assert_allclose(growth, growth[0])
    constant = 1.0 - 1.0 / growth[0]
    assert np.linalg.eigvalsh(full - constant)[0] == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.eigvalsh(full - 1.01 * constant)[0] < -1e-6
    assert loadings.shape == (n_bins + 1, n_cells - 1)
    if not has_missing:
        assert not loadings[-1].any()
    if n_bins == 2 and not has_missing:
        # The feature of a column of two values is 1 or -1.
        np.testing.assert_allclose(loadings[0], -loadings[1])


@pytest.mark.parametrize("n_missing", [0.0, 30.0, 500.0])
def test_rows_of_a_centered_design_have_at_most_the_norm_of_their_column(n_missing):
    counts = [np.append(np.full(n_bins, 50.0), n_missing) for n_bins in (1, 2, 3, 20)]
    terms = [number(j, column_counts) for j, column_counts in enumerate(counts)]
    kwargs = {"trend_fraction": 0.2, "is_smooth": True}
    full = main_design(terms, 2000, **kwargs)
    design = main_design(terms, 2000, min_missing=60.0, **kwargs)
    pairs = list(zip(design.blocks, full.blocks, strict=True))
    for block, full_block in pairs:
        assert block.weight == full_block.weight
        assert block.squared_norm <= block.weight**2
        if isinstance(block, SmoothBlock):
            assert np.all(block.matrix / WEIGHT_STEP == np.rint(block.matrix / WEIGHT_STEP))
            # A few missing values have no feature; many have one of full norm. A column of one bin
            # has nothing else to distinguish.
            norm = np.linalg.norm(block.matrix[-1])
            is_distinct = n_missing > 60.0 or block.term == 0
            assert (norm > 0.98 * block.weight) == is_distinct
            assert (norm == 0.0) == (not is_distinct)
    assert sum(isinstance(block, SmoothBlock) for block, _ in pairs) == len(terms)


def test_gradients_are_exact_and_transpose_the_values():
    design, terms = design_of()
    rng = np.random.default_rng(1)
    sizes = {block.term: len(block.matrix) for block in design.blocks}
    # Whole numbers of steps, as large as the sums of a fit may be.
    sums = {
        term: rng.integers(-(2**36), 2**36, (size, 1)).astype(float) for term, size in sizes.items()
    }
    gradient = design.rmatvec(sums)
    weights = rng.normal(size=(design.size, 1))
    values = design.bin_values(weights)
    product = sum(float(np.vdot(values[term], sums[term])) for term in sizes)
    assert float(np.vdot(gradient, weights)) == pytest.approx(product, rel=1e-9)
    for block, start in zip(design.blocks, design.offsets, strict=False):
        exact = [
            sum(
                int(f / WEIGHT_STEP) * int(s)
                for f, s in zip(column, sums[block.term][:, 0], strict=True)
            )
            for column in block.matrix.T
        ]
        found = gradient[start : start + block.size, 0] / WEIGHT_STEP
        assert [int(value) for value in found] == exact
    assert len(terms) == 3


def test_the_spectrum_is_that_of_centered_features():
    design, terms = design_of(n_terms=3)
    curvatures, rotated = spectrum(design, np.ones((design.size, 1)))
    block, trend = design.blocks[1], design.blocks[2]
    features = np.concatenate([block.matrix, trend.matrix], axis=1)
    counts = terms[0].counts
    features -= counts @ features / counts.sum()
    expected = np.linalg.eigvalsh(features.T @ (counts[:, np.newaxis] * features))
    np.testing.assert_allclose(curvatures[: len(expected)], np.maximum(expected, 0.0), atol=1e-8)
    assert rotated.shape == (design.size - 1, 1) and len(curvatures) == design.size - 1
    # The bound on the step size holds for any dependence of cells within the blocks' bounds.
    total = np.concatenate([b.matrix for b in design.blocks if b.term == 0], axis=1)
    largest = np.linalg.eigvalsh(total.T @ (counts[:, np.newaxis] * total))[-1]
    assert largest <= sum(b.max_moment for b in design.blocks if b.term == 0) * (1 + 1e-12)


@pytest.mark.parametrize("weight", [0.1, 0.5])
def test_the_eigenvectors_of_a_table_are_nearly_those_of_its_features(weight):
    """Features are truncated loadings; the table computes eigenvectors of the loadings once."""
    _, terms = design_of(n_terms=3)
    table = make_table(terms, (0, 1), 144, 2000, is_smooth=True)
    block = table.block(3, weight)
    counts = table.expected_counts
    centered = block.matrix - counts @ block.matrix / counts.sum()
    covariance = centered.T @ (counts[:, np.newaxis] * centered)
    values, vectors = table.decomposition
    rotated = vectors.T @ covariance @ vectors
    scale = weight**2 * values.max()
    np.testing.assert_allclose(rotated, np.diag(weight**2 * values), atol=0.03 * scale)
    moment = block.matrix.T @ (table.most_counts[:, np.newaxis] * block.matrix)
    exact = np.linalg.eigvalsh(moment)[-1]
    assert exact <= SMOOTHNESS_MARGIN * block.max_moment <= 1.25 * exact
    # Blocks of other designs share the eigenvectors.
    assert table.block(4, 0.3).table.decomposition is table.decomposition


def test_a_longer_design_goes_on_from_the_values_of_a_shorter_one():
    design, terms = design_of()
    main = main_design(terms, 2000, trend_fraction=0.2, is_smooth=True)
    weights = np.random.default_rng(2).normal(size=(main.size, 1))
    values = main.bin_values(weights)
    joint_values = design.bin_values(design.weights_from(main, weights))
    for term in range(3):
        # Features are rounded to multiples of 2**-12.
        np.testing.assert_allclose(joint_values[term], values[term], atol=0.02)
    assert not joint_values[3].any()


# Standard errors of an additive model's values, and explanations of its scores.


N = 4000


def draw_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.uniform(17, 90, size=N),
            "job": pd.array(rng.choice(["works", "studies", "retired"], size=N), dtype="string"),
        },
        index=[f"p{i}" for i in range(N)],
    )
    score = 0.05 * (table["age"] - 50) + 1.5 * (table["job"] == "works").to_numpy(dtype=float)
    return table, score.to_numpy() + rng.logistic(size=N)


DECLARED = {"bounds": {"age": (17, 90)}, "categories": {"job": ["works", "studies", "retired"]}}


@pytest.fixture(scope="module")
def fitted():
    table, score = draw_table()
    return DPAdditiveClassifier(1.0, **DECLARED, random_state=0).fit(table, score > 0)


def test_gain_is_that_of_the_steps():
    """The standard deviation of a linear filter is the norm of its responses to single steps."""
    schedule = Schedule(loss_smoothness=3.0, l2_reg_strength=0.1, penalty_to_noise=5.0)
    curvatures = np.array([0.0, 0.3, 2.5])
    stronger = 0.4

    def mean_of(impulse_step):
        drift = IterateDrift(schedule)
        step = iter(range(schedule.n_steps))

        def gradient(weights):
            drift.add(weights)
            return curvatures * weights + float(next(step) == impulse_step)

        mean, _ = descend(gradient, schedule, np.zeros(3), np.inf, penalty=lambda _: stronger)
        return mean, drift.value

    responses = [mean_of(step) for step in range(schedule.n_steps)]
    means, drifts = (np.linalg.norm(values, axis=0) for values in zip(*responses, strict=True))
    half = schedule.n_steps // 2
    last = Schedule(loss_smoothness=3.0, l2_reg_strength=stronger, penalty_to_noise=5.0)
    schedules = [schedule] * half + [last] * (schedule.n_steps - half)
    averaged = np.zeros(schedule.n_steps)
    averaged[-schedule.n_averaged :] = 1.0 / schedule.n_averaged
    np.testing.assert_allclose(noise_gain(curvatures, schedules, of_iterates=averaged), means)
    coefficients = IterateDrift(schedule).coefficients()
    np.testing.assert_allclose(
        noise_gain(curvatures, schedules, of_lookaheads=coefficients), drifts
    )
    assert coefficients.sum() == pytest.approx(0.0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_of_all_kinds_have_standard_errors(n_classes):
    table, score = draw_table()
    y = np.digitize(score, [-1.0, 1.0][: n_classes - 1])
    model = DPAdditiveClassifier(1.0, interactions=[("age", "job")], **DECLARED).fit(table, y)
    for shape in model.shape_functions_:
        assert shape.standard_errors.shape == shape.values.shape
        assert (shape.standard_errors >= 0.0).all()
    edited = model.edit("age", 0.0)
    assert edited.shape_functions_[0].standard_errors is None
    assert edited.shape_functions_[1].standard_errors is not None


def test_without_steps_there_are_none():
    table, score = draw_table()
    model = DPAdditiveClassifier(1.0, delta=0.0, **DECLARED).fit(table, score > 0)
    assert all(shape.standard_errors is None for shape in model.shape_functions_)


def test_they_are_in_units_of_the_target():
    table, score = draw_table()
    errors = []
    for unit in (1.0, 1000.0):
        model = DPAdditiveRegressor(
            1.0, target_bounds=(-8 * unit, 8 * unit), **DECLARED, random_state=0
        )
        model.fit(table, unit * np.clip(score, -8, 8))
        errors.append(model.shape_functions_[0].standard_errors / unit)
    np.testing.assert_allclose(*errors, rtol=1e-3)


def test_bands_cover_the_values_without_noise(monkeypatch):
    """Of all cells of some fits; docs/benchmarks/bands.py measures it on real tables."""
    table, score = draw_table()
    add = GaussianNoise.add

    def values_of(seed, model=DPAdditiveClassifier):
        return model(1.0, **DECLARED, random_state=seed).fit(table, score > 0).shape_functions_

    distances = []
    for seed in range(6):
        noisy = values_of(seed)
        with monkeypatch.context() as patch:
            patch.setattr(GaussianNoise, "add", lambda self, values, *_: add(self, values, 0))
            exact = values_of(seed)
        for shape, target in zip(noisy, exact, strict=True):
            cells = slice(0, 3) if shape.kinds == ("label",) else slice(0, -1)
            scaled = (shape.values - target.values) / shape.standard_errors
            distances.append(scaled[cells])
    covered = np.mean(np.abs(np.concatenate(distances)) <= BAND_WIDTH)
    assert covered >= 0.85
    # Bands are of the size of the noise: they are not wide for the sake of coverage.
    assert np.sqrt(np.mean(np.concatenate(distances) ** 2)) > 0.2


def test_explanation_is_an_array_with_names(fitted):
    table, _ = draw_table()
    explanation = fitted.explain(table[:9])
    array = np.asarray(explanation)
    assert type(array) is np.ndarray and explanation.names == ["age", "job"]
    assert explanation.shape == array.shape == (9, 2) and len(explanation) == 9
    assert explanation.dtype == array.dtype and explanation.ndim == 2
    np.testing.assert_array_equal([*explanation], array)
    np.testing.assert_array_equal(explanation[2:4, 1], array[2:4, 1])
    np.testing.assert_array_equal(explanation + 1.0, array + 1.0)
    np.testing.assert_array_equal(np.concatenate([explanation, explanation])[:9], array)
    np.testing.assert_allclose(
        explanation.sum(axis=1) + fitted.intercept_, fitted.decision_function(table[:9])
    )
    assert (explanation[:, 1] == 0.0).dtype == bool
    for other in (pickle.loads(pickle.dumps(explanation)), copy.deepcopy(explanation)):
        np.testing.assert_array_equal(other, array)
        assert other.names == explanation.names


def test_explanation_is_shown(fitted):
    table, _ = draw_table()
    explanation = fitted.explain(table[:9])
    lines = repr(explanation).splitlines()
    assert lines[0] == "Contributions of 2 terms to the scores of 9 rows, the first 5 shown"
    assert len(lines) == 7 and lines[2].startswith("p0") and "job" in lines[2]
    assert "object at 0x" not in repr(explanation)
    assert explanation._repr_html_().startswith('<div class="skdp-document">')


def test_values_are_in_the_selected_container(fitted):
    polars = pytest.importorskip("polars")
    table, _ = draw_table()
    model = copy.copy(fitted)
    assert type(model.explain(table[:3]).values) is np.ndarray
    with config_context(transform_output="pandas"):
        frame = model.explain(table[:3]).values
    assert list(frame.columns) == ["age", "job"] and list(frame.index) == ["p0", "p1", "p2"]
    assert model.set_output(transform="polars") is model
    assert isinstance(model.explain(table[:3]).values, polars.DataFrame)
    assert isinstance(model.set_output().explain(table[:3]).values, polars.DataFrame)
    assert clone(model)._sklearn_output_config == {"transform": "polars"}
    with pytest.raises(ValueError, match="transform"):
        model.set_output(transform="table")


def test_explanation_of_several_classes():
    table, score = draw_table()
    model = DPAdditiveClassifier(1.0, **DECLARED).fit(table, np.digitize(score, [-1.0, 1.0]))
    explanation = model.explain(table[:3])
    frame = explanation.to_pandas()
    assert explanation.shape == (3, 2, 3) and list(frame.columns)[:2] == ["age: 0", "age: 1"]
    np.testing.assert_array_equal(frame.to_numpy().reshape(3, 2, 3), explanation)
    assert "class" in repr(explanation).splitlines()[1]


# Fits against the penalized optimum, and probabilities of clipped losses.


def huberized(task, f, y):
    """The loss whose slope is the clipped residual: of a margin m = (2 y - 1) f."""
    margin = (2 * y - 1) * f
    # Linear where the logistic loss would be steeper than the clip, from margin 0 downwards.
    return np.where(margin > 0, np.logaddexp(0, -margin), np.log(2) - 0.5 * margin)


def optimum(plan, design, asked, cells_of, y):
    """The penalized optimum on the released blocks, by another solver."""
    matrix = np.zeros((len(y), design.size))
    for block, start in zip(design.blocks, design.offsets, strict=False):
        cells = cells_of[block.term] if block.term >= 0 else np.zeros(len(y), dtype=int)
        matrix[:, start : start + block.size] = block.matrix[cells]
    strength = max(plan._problem(design).l2_reg_strength, asked)
    tied = strength if plan.guarantee.delta == 0.0 else 0.0
    # Rows that are longer than 1 count less.
    factors = 1.0 / np.maximum(np.linalg.norm(matrix, axis=1), 1.0)

    def loss(w):
        f = matrix @ w
        residual = factors * np.clip(expit(f) - y, -0.5, 0.5)
        bent = strength * w + tied * design.roughness_gradient(w[:, np.newaxis])[:, 0]
        value = factors @ huberized(plan.task, f, y) + 0.5 * bent @ w
        return value, matrix.T @ residual + bent

    found = minimize(
        loss,
        np.zeros(design.size),
        jac=True,
        method="L-BFGS-B",
        tol=1e-15,
        options={"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-16, "gtol": 1e-9},
    )
    return matrix @ found.x


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_without_noise_it_is_the_penalized_optimum(monkeypatch, delta):
    X, y = two_classes(1500)
    seen, make = {"asked": []}, AdditiveFit._descent

    def kept(self, cells, design, *rest, **shares):
        seen.update(plan=self, design=design)
        return make(self, cells, design, *rest, **shares)

    evident = AdditiveFit._evidence_penalty

    def asked(self, *terms):
        seen["asked"].append(evident(self, *terms))
        return seen["asked"][-1]

    monkeypatch.setattr(AdditiveFit, "_descent", kept)
    monkeypatch.setattr(AdditiveFit, "_evidence_penalty", asked)
    model = classifier(1e10, delta=delta, interactions=0).fit(X, y)
    plan, design = seen["plan"], seen["design"]
    table, _ = read_kinds(model, X, reset=False)
    cells = cell_reader(model.shape_functions_)(table, slice(0, 1500))
    # The steps ask first; the check of the weights asks again at its end.
    asked_by_steps = seen["asked"][0] if seen["asked"] else 0.0
    best = optimum(plan, design, asked_by_steps, cells, y)
    gap = np.abs(model.decision_function(X) - best)
    assert gap.max() < 1e-3 * max(1.0, np.abs(best).max())


def rare_class(seed, n=15_000):
    """Rows of which one in a hundred is positive, by a straight line of two of three columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).clip(-4, 4)
    score = X @ [1.5, 0.7, 0.0] + rng.normal(size=n)
    return X, (score > np.quantile(score, 0.99)).astype(int)


def test_a_rare_class_is_learned_from_all_cells_together(monkeypatch):
    """The best order has .986. Means of four fits are .977, with cells alone .969 and less."""
    (X, y), (other, labels) = rare_class(0), rare_class(1)

    def mean_auc():
        params = {"delta": 1e-6, "bounds": (-4, 4)}
        fits = (DPAdditiveClassifier(1.0, **params, random_state=k).fit(X, y) for k in range(4))
        return np.mean([roc_auc_score(labels, fit.decision_function(other)) for fit in fits])

    with_trends = mean_auc()
    monkeypatch.setattr(AdditiveFit, "has_trends", False)
    assert with_trends > max(0.972, mean_auc() + 0.003)


def test_probabilities_undo_the_clip_of_two_classes():
    p = np.linspace(0.02, 0.98, 25)
    task = BinaryTask()
    for each in p:
        f = np.linspace(-20, 20, 400_001)
        q = expit(f)
        mean = (1 - each) * np.minimum(q, 0.5) - each * np.minimum(1 - q, 0.5)
        root = f[np.abs(mean).argmin()]
        assert task.probabilities(np.array([[root]]))[0, 1] == pytest.approx(each, abs=1e-4)


def test_probabilities_undo_the_clip_of_several_classes():
    task = MultinomialTask(weights=(1.0, 1.0, 1.0))
    scores = np.random.default_rng(0).normal(0, 2, size=(50, 3))
    p = task.probabilities(scores)
    # At these probabilities the clipped residuals have the mean 0.
    residuals = [task.residuals(scores, np.full(50, k)) for k in range(3)]
    mean = sum(p[:, k : k + 1] * residuals[k] for k in range(3))
    np.testing.assert_allclose(mean, 0.0, atol=1e-12)
    order = softmax(scores, axis=1).argsort(axis=1)
    np.testing.assert_array_equal(p.argsort(axis=1), order)


def test_what_is_published_follows_from_what_was_released(monkeypatch):
    """With the same noisy values, other rows give the same model to the last bit."""

    def constant(self, values, noise):
        return np.cos(np.arange(float(values.size))).reshape(values.shape) * 50.0

    def released(self, values, **source):
        return constant(self, np.atleast_1d(values), None)

    monkeypatch.setattr(GaussianNoise, "add", constant)
    monkeypatch.setattr(GaussianMechanism, "release", released)
    X, y = two_classes(200)
    one, two = classifier().fit(X, y), classifier().fit(-X, 1 - y)
    for a, b in zip(one.shape_functions_, two.shape_functions_, strict=True):
        np.testing.assert_array_equal(a.values, b.values)
        np.testing.assert_array_equal(a.counts, b.counts)
        np.testing.assert_array_equal(a.edges[0], b.edges[0])
    assert one.intercept_ == two.intercept_
    assert one.privacy_.to_dict() == two.privacy_.to_dict()


# The level of a Poisson loss.


TASK = PoissonTask(mean=0.3, clip=0.8)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_brute_force_sensitivity_of_the_level(relation, monkeypatch):
    """Rows and persons of all kinds, by the sum to which noise is added."""
    plan = plan_of(TASK, meet(1.0, 1e-6, relation), n=41)
    base, targets = make_rows(), targets_of(TASK, 40)

    def total_of(rows, y, row_weights=None):
        state = replace(state_of(plan, rows, y, row_weights), variance=0.1)
        bin_values = state.design.bin_values(state.weights)
        run = partial(plan._level_correction, state, bin_values, RandomSource(0))
        return float(released_before_noise(monkeypatch, run)[0])

    for k in (None, 7):
        weights = None if k is None else np.ones(40)
        values = [total_of(base, targets, weights)] if relation == "add_remove" else []
        for row in odd_rows()[::5]:
            rows = np.vstack([base, np.array([row] * (k or 1), dtype=object)])
            for end in (-1.0, 1.0):
                y = np.append(targets, [end] * (k or 1))
                row_weights = None
                if k is not None:
                    ids = np.append(np.arange(40), np.full(k, 40))
                    row_weights = read_persons(ids, len(rows)).row_weights
                values.append(total_of(rows, y, row_weights))
        claimed = plan.level_mechanism.sensitivity
        moved = max(values) - min(values)
        if relation == "add_remove":
            moved = max(abs(value - values[0]) for value in values)
        assert 0.99 * claimed < moved <= claimed * (1 + 2.0**-50)


@pytest.mark.parametrize("clip", [1e-3, 0.3, 50.0])
@pytest.mark.parametrize("offset, mean", [(1.0, 2.0**-12), (1.0, 1.9), (1e6, 1e6)])
def test_residuals_are_finite_and_clipped_for_every_score(offset, mean, clip):
    task = PoissonTask(offset=offset, mean=mean, clip=clip)
    scores = np.array([-1e300, -50.0, 0.0, 50.0, 1e4, 1e300])[:, np.newaxis]
    for target in (-1.0, 0.0, 1.0):
        with np.errstate(all="raise", under="ignore"):
            residuals = task.residuals(scores, np.full(6, target))
        assert np.abs(residuals).max() <= clip
        assert residuals[-1, 0] == clip
        assert (np.diff(residuals[:, 0]) >= 0.0).all()


def test_the_event_is_that_of_the_budget():
    plan = plan_of(PoissonTask(), meet(1.0, 1e-6), n=1000)
    assert math.fsum(plan.budget_fractions.values()) <= 1.0
    names = [stage.name for stage in plan.stages]
    assert names.index("mean residual of the model") == len(names) - 1
    squares = sum(1.0 / stage.event.noise_multiplier**2 for stage in plan.stages)
    assert squares <= (1.0 / plan.budget.multiplier) ** 2 * (1 + 1e-9)


def test_the_part_beyond_noise():
    assert beyond_noise(0.0, 1.0) == beyond_noise(0.5, 1.0) == 0.0
    assert beyond_noise(-10.0, 1.0) == pytest.approx(-9.9)
