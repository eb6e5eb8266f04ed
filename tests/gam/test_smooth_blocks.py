"""Blocks with a smooth prior: norms of rows, exact sums, and the covariance of cells."""

from dataclasses import replace

import numpy as np
import pytest

from skdp.gam._blocks import SMOOTHNESS_MARGIN, WEIGHT_STEP, BlockDesign, joint_design, main_design
from skdp.gam._evidence import spectrum
from skdp.gam._smooth_blocks import (
    CORRELATION_LENGTH,
    INDEPENDENT_PART,
    SmoothBlock,
    centered_loadings,
    smooth_loadings,
    table_loadings,
)
from skdp.gam._tables import TABLE_CELLS, make_table
from tests._private import Term


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
