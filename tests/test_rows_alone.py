"""A row's answer, and its part of a fit, are to the last bit what they are of the row alone."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import get_tags

import skdp
from skdp import DPPCA, ChunkedArray, DPGaussianNB, DPKMeans, DPLogisticRegression, DPSGDClassifier
from skdp.base import clip_rows
from tests._estimators import CENTRAL_TRANSFORMERS, completed
from tests._private import (
    BinaryLogisticLoss,
    BoundedRows,
    Cells,
    ClippedSums,
    MulticlassHuberizedHingeLoss,
    MultinomialLogisticLoss,
    MultinomialTask,
    read_persons,
    row_norms,
    spaced_bins,
)
from tests._public import ESTIMATORS, missing

HEIGHTS = (1, 2, 3, 5, 4096)
TYPES = (np.float64, np.float32, np.float16, np.int64)
ANSWERS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_log_proba",
    "transform",
    "inverse_transform",
)
N_CLASSES = 11
BOUNDS = {"bounds": (-4, 4)}
TARGETS = {"target_bounds": (-4, 4)}
SEARCH = DPLogisticRegression(data_norm=3.0)

# Every public estimator with an answer of a row. Transformers that need nothing but bounds are
# not listed.
LISTED = [
    DPLogisticRegression(data_norm=3.0, mechanism="gradient"),
    skdp.DPLinearSVC(data_norm=3.0),
    skdp.DPLinearRegression(data_norm=3.0, **TARGETS),
    skdp.DPRidge(data_norm=3.0, **TARGETS),
    skdp.DPPoissonRegressor(data_norm=3.0, target_bounds=(0, 11)),
    DPSGDClassifier(max_iter=1),
    DPSGDClassifier(max_iter=1, loss="modified_huber"),
    skdp.DPSGDRegressor(max_iter=1, **TARGETS),
    DPGaussianNB(**BOUNDS),
    skdp.DPHistogramNB(**BOUNDS),
    skdp.DPAdditiveClassifier(**BOUNDS),
    skdp.DPAdditiveRegressor(**BOUNDS, **TARGETS),
    skdp.DPAdditiveRegressor(**BOUNDS, target_bounds=(0.0, 1.0), loss="poisson"),
    skdp.DPDecisionTreeClassifier(max_depth=2, **BOUNDS),
    skdp.DPRandomForestClassifier(n_estimators=10, **BOUNDS),
    skdp.DPRandomForestRegressor(n_estimators=10, **BOUNDS, **TARGETS),
    DPKMeans(n_clusters=5, **BOUNDS),
    DPPCA(data_norm=3.0),
    skdp.DPQuantileTransformer(n_quantiles=9, output_distribution="normal", **BOUNDS),
    skdp.DPKBinsDiscretizer(encode="ordinal", **BOUNDS),
    skdp.DPHistogramTransformer(encode="density", **BOUNDS),
    skdp.DPTargetEncoder(categories=[-1, 0, 1], target_bounds=(0, 11)),
    skdp.DPOneHotEncoder(categories=[-1, 0, 1], sparse_output=False),
    skdp.DPGridSearchCV(SEARCH, {"C": [1.0]}, strategy="holdout"),
    skdp.DPRandomizedSearchCV(SEARCH, {"C": [1.0]}, n_iter=1, strategy="holdout"),
    skdp.DPTunedThresholdClassifierCV(SEARCH),
    skdp.DPCalibratedClassifierCV(SEARCH),
    skdp.DPCalibratedClassifierCV(SEARCH, method="isotonic"),
]
# Their answers are random.
RANDOM = [skdp.RandomizedResponseTransformer, skdp.DPTableSynthesizer]
MODELS = completed(LISTED, CENTRAL_TRANSFORMERS, **BOUNDS)
# Whose fits are cheap for very wide tables.
OF_WIDE_TABLES = [DPGaussianNB, DPSGDClassifier, DPKMeans, skdp.DPStandardScaler]
IDS = [f"{i}-{type(model).__name__}" for i, model in enumerate(MODELS)]


def test_no_estimator_is_missing():
    assert missing(ESTIMATORS, [*MODELS, *RANDOM]) == []


def table(n_rows, n_columns, dtype, seed=0):
    rows = 2.0 * np.random.default_rng(seed).normal(size=(7, n_columns))
    return np.resize(rows.astype(dtype), (n_rows, n_columns))


def fitted(model, n_columns):
    model = clone(model).set_params(epsilon=1e3)
    rng = np.random.default_rng(n_columns)
    X = rng.normal(size=(200, n_columns))
    tags = get_tags(model).classifier_tags
    n_classes = N_CLASSES if tags is None or tags.multi_class else 2
    y = np.arange(200) % n_classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def dense(answer):
    answer = answer.toarray() if hasattr(answer, "toarray") else np.asarray(answer)
    return answer.astype(np.float64) if answer.dtype.kind in "biu" else answer


def edges(n_rows):
    """Some of the first and of the last rows, which kernels may treat in another way."""
    return sorted({*range(min(4, n_rows)), *range(max(n_rows - 4, 0), n_rows)})


def assert_alone_as_among(answer, X):
    """Compare what is answered for a table, in either order and in parts, with rows alone."""
    own = {i: dense(answer(X[i : i + 1].copy()))[0] for i in edges(len(X))}
    tables = [np.ascontiguousarray(X), np.asfortranarray(X)]
    if len(X) > 1:
        # The last row is a block of its own.
        tables.append(ChunkedArray([np.asfortranarray(X[:-1]), X[-1:].copy()]))
    for given in tables:
        try:
            among = dense(answer(given))
        except (TypeError, ValueError):
            assert isinstance(given, ChunkedArray)
            continue
        for i, expected in own.items():
            np.testing.assert_array_equal(among[i], expected)


def assert_answers_alone(model, n_columns, heights=HEIGHTS, types=TYPES):
    for name in ANSWERS:
        if not hasattr(model, name):
            continue
        width = n_columns
        if name == "inverse_transform":
            width = dense(model.transform(table(2, n_columns, np.float64))).shape[1]
        for dtype in types:
            for n_rows in heights:
                assert_alone_as_among(getattr(model, name), table(n_rows, width, dtype))


@pytest.mark.quick_cases(every=175)
@pytest.mark.parametrize("n_columns", [1, 2, 3, 9, 20])
@pytest.mark.parametrize("model", MODELS, ids=IDS)
def test_answers(model, n_columns):
    assert_answers_alone(fitted(model, n_columns), n_columns)


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("kind", [*OF_WIDE_TABLES, DPPCA], ids=lambda kind: kind.__name__)
def test_answers_of_wide_tables(kind):
    model = next(model for model in MODELS if type(model) is kind)
    assert_answers_alone(fitted(model, 300), 300, (1, 2, 3, 5, 300))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", OF_WIDE_TABLES, ids=lambda kind: kind.__name__)
def test_answers_of_very_wide_tables(kind):
    """Of 9,000 columns a block has fewer than 60 rows: these are several."""
    model = next(model for model in MODELS if type(model) is kind)
    if kind is DPGaussianNB:
        model = clone(model).set_params(classes=[*range(N_CLASSES)])
    assert_answers_alone(fitted(model, 9000), 9000, (1, 2, 70), (np.float32,))


def labels(n_rows):
    return np.arange(n_rows) % N_CLASSES


def clipped_residuals(loss, norm="l2", constant=0.5):
    """The clipped residuals of rows, which DP-SGD sums."""

    def parts(X):
        n_columns = X.shape[1]
        y = np.zeros(len(X), dtype=np.int64)
        y = y if loss.weights_shape else y.astype(float)
        weights = np.random.default_rng(1).normal(size=(*loss.weights_shape, n_columns + 1))
        sums = ClippedSums(X, y, loss, constant=constant, clip=0.3, norm=norm)
        tiles = [sums[rows].clipped_residuals(weights).copy() for rows in sums.blocks()]
        return np.concatenate(tiles)

    return parts


def bounded_factors(X):
    return BoundedRows(X, 1.5, 0.5).row_args[0]


def residuals_of_cells(X):
    task = MultinomialTask(weights=(1.0,) * 11)
    scores = np.tile(X.astype(float), (1, 11))[:, :11]
    return task.residuals(scores, np.zeros(len(X), dtype=np.int64))


def cells(X):
    n_columns = X.shape[1]
    intervals = np.where(np.arange(n_columns) < 8, 2, 1)
    grid = Cells(np.full(n_columns, 0.1), np.full(n_columns, 0.9), intervals)
    return grid.cell_indices(X.astype(float))


PARTS_OF_FITS = {
    "norms": lambda X: row_norms(X.astype(float)),
    "bins of norms": lambda X: spaced_bins(row_norms(X.astype(float)), 6),
    "clipped rows": lambda X: clip_rows(X, 1.0),
    "factors": bounded_factors,
    "residuals": clipped_residuals(BinaryLogisticLoss()),
    "residuals, l1": clipped_residuals(BinaryLogisticLoss(), "l1"),
    "residuals of classes": clipped_residuals(MultinomialLogisticLoss(11)),
    "residuals of classes, l1": clipped_residuals(MultinomialLogisticLoss(11), "l1"),
    "residuals of hinges": clipped_residuals(MulticlassHuberizedHingeLoss(11, 0.1)),
    "residuals of cells": residuals_of_cells,
    "cells": cells,
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("n_columns", [1, 2, 3, 9, 20, 300, 9000])
@pytest.mark.parametrize("name", PARTS_OF_FITS)
def test_parts_of_fits(name, n_columns):
    heights = HEIGHTS if n_columns <= 20 else (1, 2, 3, 5, 70)
    for dtype in TYPES if n_columns < 9000 else (np.float64, np.float16):
        for n_rows in heights:
            X, part = table(n_rows, n_columns, dtype), PARTS_OF_FITS[name]
            among = [part(lay_out(X)) for lay_out in (np.ascontiguousarray, np.asfortranarray)]
            for i in edges(n_rows):
                own = part(X[i : i + 1].copy())
                for each in among:
                    np.testing.assert_array_equal(each[i : i + 1], own)


def at_an_edge(n_rows, n_columns):
    """Rows whose norms are an edge of the bins, but for what rounding makes of them."""
    X = np.random.default_rng(0).normal(size=(n_rows, n_columns))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def test_found_norms_do_not_depend_on_who_stands_beside_a_row():
    """Counts of norms at an edge: rows alone in their parts, and rows in one table in F order."""
    X = at_an_edge(400, 100)
    among, alone = np.asfortranarray(X), ChunkedArray([X[i : i + 1] for i in range(len(X))])
    # Nearly no noise: a row in another bin shows.
    norms = [
        [
            DPPCA(1e4, data_norm="auto", center=None, n_components=1, random_state=seed)
            .fit(table)
            .data_norm_
            for seed in range(3)
        ]
        for table in (among, alone)
    ]
    assert norms[0] == norms[1]
    bins = [spaced_bins(row_norms(rows), 6) for rows in (among, X)]
    np.testing.assert_array_equal(*bins)
    # The edge lies between them: the test would see what moves a last bit.
    assert len(np.unique(bins[0])) == 2
    products = np.sqrt(np.matmul(among[:, None, :], among[:, :, None])[:, 0, 0])
    alone = [np.sqrt(np.matmul(row[None, None], row[None, :, None]))[0, 0, 0] for row in X]
    assert (spaced_bins(products, 6) != spaced_bins(np.array(alone), 6)).any()


def test_rows_of_persons_are_shared_out_by_their_number_alone():
    ids = np.repeat(np.arange(40), np.arange(1, 41))
    whole = read_persons(ids, len(ids)).row_weights
    for person in range(40):
        own = ids[ids == person]
        np.testing.assert_array_equal(read_persons(own, len(own)).row_weights, whole[ids == person])


def test_log_likelihoods_by_the_layout_are_found():
    """Scores of naive Bayes as sums in the table's own layout: the tests above can fail."""
    model = fitted(DPGaussianNB(**BOUNDS), 20)

    def in_any_layout(X):
        apart = np.clip(X, *model.bounds_)[:, np.newaxis] - model.theta_
        return (apart**2 / model.var_).sum(axis=2)

    with pytest.raises(AssertionError):
        for n_rows in HEIGHTS:
            assert_alone_as_among(in_any_layout, table(n_rows, 20, np.float64))


# What NumPy may not use: the first sets leave it other algorithms for exp and log.
WITHOUT = [
    "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
    "AVX2 FMA3 X86_V3 "
    "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
]
OF_EXP_AND_LOG = ("LogisticRegression", "Poisson", "SGDClassifier", "NB", "Additive")


@pytest.mark.slow
@pytest.mark.parametrize("features", WITHOUT)
def test_answers_with_other_instructions(features):
    """Answers that take NumPy's exp and log, and rows alone, on what older processors do."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    known = {*found.get("found", ()), *found.get("not found", ())}
    names = " ".join(name for name in features.split() if name in known)
    if not names:
        pytest.skip("this NumPy or processor has none of these")
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": names, "PYTHONWARNINGS": "ignore"}
    chosen = " or ".join((*OF_EXP_AND_LOG, "test_parts_of_fits", "layout"))
    tests = [__file__, str(Path(__file__).parent / "utils" / "test_row_wise.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", chosen, *tests]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
