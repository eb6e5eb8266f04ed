"""Metrics against scikit-learn's on the raw rows, where the noise is negligible."""

import copy
import json
import pickle

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from skdp import BudgetExceededError, PrivacyAccountant
from skdp import metrics as dp
from skdp.accounting import Guarantee
from skdp.metrics._grid import number_of_cells, probability_edges, score_cells

pytestmark = pytest.mark.filterwarnings("ignore::skdp.SeededNoiseWarning")

# Noise of this epsilon is far below the tolerances.
ALMOST_NONE = 1e9
BOUNDS = (-1.0, 3.0)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 3000
    y = rng.integers(0, 2, n)
    scores = 1.0 / (1.0 + np.exp(-(2.0 * y - 1.0 + 1.5 * rng.normal(size=n))))
    numbers = rng.uniform(*BOUNDS, n)
    predicted = np.clip(numbers + rng.normal(size=n), *BOUNDS)
    persons = rng.integers(0, 700, n)
    return {
        "y": y,
        "scores": scores,
        "labels": (scores > 0.5).astype(int),
        "three": np.where(numbers > 1.5, 2, y),
        "predicted three": np.where(predicted > 1.5, 2, y),
        "numbers": numbers,
        "predicted": predicted,
        "persons": persons,
    }


def weights_of(persons):
    return 1.0 / np.bincount(persons)[persons]


EXACT = {
    "accuracy": ("dp_accuracy_score", sk.accuracy_score, "y", "labels"),
    "accuracy of three": ("dp_accuracy_score", sk.accuracy_score, "three", "predicted three"),
    "balanced": ("dp_balanced_accuracy_score", sk.balanced_accuracy_score, "y", "labels"),
    "balanced of three": (
        "dp_balanced_accuracy_score",
        sk.balanced_accuracy_score,
        "three",
        "predicted three",
    ),
    "confusion": ("dp_confusion_matrix", sk.confusion_matrix, "three", "predicted three"),
    "Brier": ("dp_brier_score", sk.brier_score_loss, "y", "scores"),
    "R2": ("dp_r2_score", sk.r2_score, "numbers", "predicted"),
    "MAE": ("dp_mean_absolute_error", sk.mean_absolute_error, "numbers", "predicted"),
    "MSE": ("dp_mean_squared_error", sk.mean_squared_error, "numbers", "predicted"),
}


@pytest.mark.parametrize("by_person", [False, True], ids=["rows", "persons"])
@pytest.mark.parametrize("name", EXACT)
def test_counts_and_sums_are_those_of_sklearn(name, by_person, rows):
    function, reference, true, predicted = EXACT[name]
    y_true = rows[true]
    y_pred = rows[predicted]
    options = {"groups": rows["persons"]} if by_person else {}
    if name in ("R2", "MAE", "MSE"):
        options["target_bounds"] = BOUNDS
    value = getattr(dp, function)(y_true, y_pred, epsilon=ALMOST_NONE, **options)
    weights = weights_of(rows["persons"]) if by_person else None
    expected = reference(y_true, y_pred, sample_weight=weights)
    # Row weights are multiples of 2**-26, rounded down: counts of hundreds differ by 1e-5.
    atol = 1e-5 if name == "confusion" else 1e-6
    assert np.allclose(np.asarray(value), expected, rtol=1e-6, atol=atol)


def test_brier_score_of_several_classes(rows):
    probabilities = np.column_stack([rows["scores"] / 2, 1 - rows["scores"], rows["scores"] / 2])
    one_hot = rows["three"][:, None] == np.arange(3)
    value = dp.dp_brier_score(rows["three"], probabilities, epsilon=ALMOST_NONE)
    assert value == pytest.approx(np.square(probabilities - one_hot).sum(axis=1).mean(), abs=1e-6)


def test_log_loss_is_that_of_clipped_probabilities(rows):
    probabilities = np.column_stack([1.0 - rows["scores"], rows["scores"]])
    probabilities[:20] = [[1.0, 0.0]] * 20
    label = probabilities[np.arange(len(rows["y"])), rows["y"]]
    value = dp.dp_log_loss(rows["y"], probabilities, epsilon=ALMOST_NONE, bound=4.0)
    expected = -np.log(np.maximum(label, np.exp(-4.0))).mean()
    assert value == pytest.approx(expected, abs=1e-6)
    inner = np.clip(rows["scores"], 0.02, 0.98)
    assert dp.dp_log_loss(rows["y"], inner, epsilon=ALMOST_NONE) == pytest.approx(
        sk.log_loss(rows["y"], inner), abs=1e-6
    )


def test_errors_are_clipped_by_the_bounds_of_targets_and_predictions_only():
    y = np.array([0.0, 1.0, 0.0, 1.0] * 50)
    predicted = np.array([5.0, -5.0, np.inf, 0.0] * 50)
    predicted[2::4] = 1e300
    clipped = np.clip(predicted, 0.0, 1.0)
    value = dp.dp_r2_score(y, predicted, epsilon=ALMOST_NONE, target_bounds=(0, 1))
    assert value == pytest.approx(sk.r2_score(y, clipped), abs=1e-6)
    assert value < -2.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("by_person", [False, True], ids=["rows", "persons"])
def test_metrics_of_cells_are_within_their_bounds(by_person, rows):
    y, scores = rows["y"], rows["scores"]
    options = {"epsilon": ALMOST_NONE}
    weights = None
    if by_person:
        options["groups"] = rows["persons"]
        weights = weights_of(rows["persons"])
    n_units = len(np.unique(rows["persons"])) if by_person else len(y)
    guarantee = Guarantee(epsilon=ALMOST_NONE)
    edges = probability_edges(number_of_cells(n_units, guarantee))
    cells = score_cells(scores, edges)
    unit_weights = np.ones(len(y)) if weights is None else weights
    counts = [np.bincount(cells[y == c], unit_weights[y == c], len(edges) + 1) for c in (0, 1)]
    fractions = [class_counts / class_counts.sum() for class_counts in counts]
    bound = 0.5 * np.dot(*fractions)
    area = dp.dp_roc_auc_score(y, scores, **options)
    assert abs(area - sk.roc_auc_score(y, scores, sample_weight=weights)) <= bound + 1e-6
    precision = dp.dp_average_precision_score(y, scores, **options)
    low, high = precision.noise_interval
    assert low - 1e-9 <= sk.average_precision_score(y, scores, sample_weight=weights) <= high + 1e-9
    assert high - low < 0.05


def test_curves_have_the_points_of_sklearn_at_their_thresholds(rows):
    y, scores = rows["y"], rows["scores"]
    fpr, tpr, thresholds = dp.dp_roc_curve(y, scores, epsilon=ALMOST_NONE)
    for threshold, false, true in zip(thresholds, fpr, tpr, strict=True):
        assert false == pytest.approx(np.mean(scores[y == 0] >= threshold), abs=1e-6)
        assert true == pytest.approx(np.mean(scores[y == 1] >= threshold), abs=1e-6)
    for n_bins in (5, 8, 7):
        true, predicted = dp.dp_calibration_curve(y, scores, epsilon=ALMOST_NONE, n_bins=n_bins)
        expected, centers = calibration_curve(y, scores, n_bins=n_bins)
        assert np.allclose(true, expected, atol=1e-6)
        assert np.allclose(predicted, centers, atol=0.01)


def test_quantile_bins_have_their_part_of_the_rows_and_their_fractions(rows):
    y, scores = rows["y"], rows["scores"]
    for n_bins in (1, 4, 8):
        curve = dp.dp_calibration_curve(
            y, scores, epsilon=ALMOST_NONE, n_bins=n_bins, strategy="quantile"
        )
        edges = curve.bin_edges
        assert edges[0] == 0.0 and edges[-1] == 1.0 and np.all(np.diff(edges) > 0.0)
        bins = np.searchsorted(edges[1:-1], scores, side="left")
        totals = np.bincount(bins, minlength=len(edges) - 1)
        assert np.all(totals >= len(y) // n_bins - 1)
        assert np.allclose(curve.y, np.bincount(bins, y) / totals, atol=1e-6)


def test_bins_of_a_rare_class_are_known_and_those_of_equal_width_are_not():
    rng = np.random.default_rng(0)
    scores = rng.beta(0.2, 20.0, 5000)
    y = (rng.random(5000) < scores).astype(int)
    options = {"epsilon": 0.5, "n_bins": 8, "random_state": 0}
    widths = {}
    for strategy in ("uniform", "quantile"):
        low, high = dp.dp_calibration_curve(y, scores, strategy=strategy, **options).noise_interval
        widths[strategy] = np.max(high - low)
    assert widths["quantile"] < 0.1 < widths["uniform"]


def test_the_interval_of_r2_follows_the_covariance_of_errors_and_targets():
    rng = np.random.default_rng(0)
    n = 50_000
    y = rng.uniform(-1.0, 1.0, n)
    noise = rng.normal(size=n)
    widths = []
    for scale in (np.abs(y), 1.0 - np.abs(y)):
        predicted = np.clip(y + 0.3 * scale * noise, -1.0, 1.0)
        score = dp.dp_r2_score(y, predicted, epsilon=1e4, target_bounds=(-1, 1), random_state=0)
        # The standard error of R^2 from its influence on each row.
        error, distance = (y - predicted) ** 2, (y - y.mean()) ** 2
        influence = (error - error.mean() / distance.mean() * distance) / distance.mean()
        widths.append(np.diff(score.interval)[0] * np.sqrt(n) / (2 * 1.96 * np.std(influence)))
    assert widths == pytest.approx([1.0, 1.0], abs=0.1)


def test_scores_without_a_range_are_those_of_their_logistic_function(rows):
    y, scores = rows["y"], rows["scores"]
    decisions = np.log(scores / (1.0 - scores))
    by_range = dp.dp_roc_auc_score(y, 10 * scores - 5, score_bounds=(-5, 5), random_state=0)
    without = dp.dp_roc_auc_score(y, decisions, score_bounds=None, random_state=0)
    assert by_range == pytest.approx(dp.dp_roc_auc_score(y, scores, random_state=0), abs=1e-3)
    assert without == pytest.approx(dp.dp_roc_auc_score(y, scores, random_state=0), abs=1e-3)


def test_a_score_at_the_threshold_is_negative_as_in_predict():
    edges = probability_edges(16)
    middle = int(np.searchsorted(edges, 0.5))
    below, at, above = score_cells(np.array([0.4999, 0.5, np.nextafter(0.5, 1)]), edges)
    assert below == at == middle
    assert above == middle + 1
    assert score_cells(np.array([0.0, 5e-324]), edges, None).tolist() == [middle, middle + 1]


def test_the_grid_follows_from_public_numbers():
    guarantee = Guarantee(epsilon=0.5)
    # Where few rows are in a cell, noise outweighs the error from the width of cells.
    assert 16 <= number_of_cells(5000, guarantee) <= 64
    sizes = [number_of_cells(n, guarantee) for n in (1, 100, 10**4, 10**6, 10**9)]
    assert sizes == sorted(sizes)
    for size in (*sizes, 16, 512):
        edges = probability_edges(size)
        assert (np.diff(edges) > 0).all()
        assert np.isin(np.arange(1, 8) / 8, edges).all()
        assert size - 3 <= len(edges) + 1 <= size + 9


CONTAINERS = {
    "list": lambda a: a.tolist(),
    "Series": lambda a: pd.Series(a, index=np.arange(len(a))[::-1]),
    "polars": pl.Series,
    "dask": lambda a: dask.dataframe.from_pandas(pd.Series(a), npartitions=3),
    "column": lambda a: a[:, None],
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_of_the_same_rows_give_the_same_value(name, rows):
    pack = CONTAINERS[name]
    options = {"epsilon": 1.0, "random_state": 0}
    y, scores, labels = rows["y"], rows["scores"], rows["labels"]
    assert dp.dp_accuracy_score(pack(y), pack(labels), **options) == dp.dp_accuracy_score(
        y, labels, **options
    )
    if name != "column":
        assert dp.dp_roc_auc_score(pack(y), pack(scores), **options) == dp.dp_roc_auc_score(
            y, scores, **options
        )
    options["target_bounds"] = BOUNDS
    numbers, predicted = rows["numbers"], rows["predicted"]
    assert dp.dp_r2_score(pack(numbers), pack(predicted), **options) == dp.dp_r2_score(
        numbers, predicted, **options
    )


def test_labels_are_strings_too(rows):
    names = np.array(["no", "yes"])
    value = dp.dp_roc_auc_score(names[rows["y"]], rows["scores"], random_state=0)
    assert value == dp.dp_roc_auc_score(rows["y"], rows["scores"], random_state=0)


WRONG = [
    ("dp_accuracy_score", ([0, 1, 1], [0, 1]), {}),
    ("dp_accuracy_score", ([0, 1, 1], [0, 1, 2]), {}),
    ("dp_accuracy_score", ([1, 1, 1], [1, 1, 1]), {}),
    ("dp_accuracy_score", ([0, 1, 3], [0, 1, 1]), {"classes": [0, 1]}),
    ("dp_accuracy_score", ([0, None, 1], [0, 1, 1]), {}),
    ("dp_accuracy_score", ([0, 1], [0, 1]), {"epsilon": 0.0}),
    ("dp_accuracy_score", ([0, 1], [0, 1]), {"groups": [1, 2]}),
    ("dp_roc_auc_score", ([0, 1, 2], [0.1, 0.2, 0.3]), {}),
    ("dp_roc_auc_score", ([0, 1, 1], [0.1, np.nan, 0.3]), {}),
    ("dp_roc_auc_score", ([0, 1, 1], [[0.1] * 3] * 3), {}),
    ("dp_roc_auc_score", ([0, 1, 1], [0.1, 0.2, 0.3]), {"score_bounds": (1.0, 0.0)}),
    ("dp_calibration_curve", ([0, 1, 1], [0.1, 0.2, 0.3]), {"n_bins": 0}),
    ("dp_calibration_curve", ([0, 1, 1], [0.1, 0.2, 0.3]), {"strategy": "equal"}),
    ("dp_log_loss", ([0, 1, 1], [0.1, 0.2, 0.3]), {"bound": -1.0}),
    ("dp_log_loss", ([0, 1, 2], [0.1, 0.2, 0.3]), {}),
    ("dp_r2_score", ([0.0, 1.0], [0.0, np.inf]), {"target_bounds": (0, 1)}),
    ("dp_r2_score", ([0.0, 1.0], [0.0, 1.0]), {"target_bounds": (1, 0)}),
    ("dp_r2_score", ([], []), {"target_bounds": (0, 1)}),
]


@pytest.mark.parametrize(("name", "data", "options"), WRONG)
def test_invalid_input_is_refused_before_the_charge(name, data, options):
    accountant = PrivacyAccountant(1.0, 0.0)
    with pytest.raises(ValueError):
        getattr(dp, name)(*data, accountant=accountant, **options)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_each_call_is_charged_once_by_its_name(relation, rows):
    accountant = PrivacyAccountant(1.0, 0.0, relation=relation)
    y, scores = rows["y"], rows["scores"]
    dp.dp_roc_auc_score(y, scores, epsilon=0.4, accountant=accountant)
    bounds = {"target_bounds": BOUNDS}
    dp.dp_r2_score(rows["numbers"], rows["predicted"], epsilon=0.5, accountant=accountant, **bounds)
    assert accountant.epsilon_spent == pytest.approx(0.9)
    assert [charge.label for charge in accountant.charges] == ["dp_roc_auc_score", "dp_r2_score"]
    with pytest.raises(BudgetExceededError):
        dp.dp_brier_score(y, scores, epsilon=0.2, accountant=accountant)
    assert accountant.epsilon_spent == pytest.approx(0.9)


def test_groups_of_rows_get_more_noise(rows):
    accountant = PrivacyAccountant(10.0, 0.0, unit="group", max_rows=5)
    y, labels = rows["y"], rows["labels"]
    score = dp.dp_accuracy_score(y, labels, epsilon=1.0, accountant=accountant)
    single = dp.dp_accuracy_score(y, labels, epsilon=1.0)
    assert score.noise_std == pytest.approx(5 * single.noise_std, rel=0.3)


def test_a_released_score_is_a_frozen_number(rows):
    score = dp.dp_accuracy_score(rows["y"], rows["labels"], random_state=0)
    assert isinstance(score, float)
    assert score + 1.0 == float(score) + 1.0
    assert score.noise_interval[0] <= score <= score.noise_interval[1]
    assert score.interval[0] <= score.noise_interval[0]
    with pytest.raises(AttributeError):
        score.name = "other"
    for same in (copy.copy(score), copy.deepcopy(score), pickle.loads(pickle.dumps(score))):
        assert same == score
        assert same.to_dict() == score.to_dict()
    assert "accuracy" in repr(score)
    json.dumps(score.to_dict())
    for name in ("dp_roc_curve", "dp_calibration_curve"):
        json.dumps(getattr(dp, name)(rows["y"], rows["scores"]).to_dict())
    matrix = dp.dp_confusion_matrix(rows["y"], rows["labels"])
    json.dumps(matrix.to_dict())
    assert np.asarray(matrix, dtype=int).shape == (2, 2)


def test_a_target_that_does_not_vary_has_no_known_r2():
    y = np.full(1000, 0.5)
    score = dp.dp_r2_score(y, y, epsilon=0.5, target_bounds=(0, 1))
    assert score.interval == (-np.inf, 1.0)
