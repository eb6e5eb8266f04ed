"""Metrics agree with scikit-learn's where noise is negligible, and hide one row otherwise."""

import copy
import json
import pickle

import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn import metrics as sk
from sklearn.calibration import calibration_curve

from skdp import BudgetExceededError, PrivacyAccountant
from skdp import metrics as dp
from skdp.accounting import Guarantee, Neighbors, get_epsilon
from skdp.metrics._binary import BinaryCells
from skdp.metrics._grid import number_of_cells, probability_edges, score_cells
from skdp.metrics._releases import BinaryCounts, ErrorSums, LossSums, MatrixCounts, MulticlassCounts
from skdp.metrics._statistics import CellCounts
from skdp.noise import RandomSource
from tests._private import read_persons

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


# Sensitivities by brute force under both relations, for rows and persons; noise as stated.


RELATIONS = ("add_remove", "replace_one")


N = 12


# The probability with which a test of coverage or of noise fails although all is right.
FALSE_ALARM = 1e-6


def identity(values):
    return values


def plan_of(name, relation, unit="row"):
    guarantee = Guarantee(epsilon=0.5, neighbors=Neighbors(relation=relation, unit=unit))
    if name == "matrix":
        return MatrixCounts.of_shape((3, 3), N, guarantee)
    if name == "binary":
        return BinaryCounts.on_grid(N, guarantee, np.array([0, 1]), (0.0, 1.0))
    if name in ("classes", "areas"):
        return MulticlassCounts.of_classes(
            N, guarantee, 3, has_probabilities=True, has_areas=name == "areas"
        )
    if name == "loss":
        return LossSums(
            n_units=N, guarantee=guarantee, name_of_metric="loss", loss=identity, bound=5.0
        )
    return ErrorSums(n_units=N, guarantee=guarantee, target_bounds=(-1.0, 3.0))


NAMES = ("matrix", "binary", "classes", "areas", "loss", "numbers")


def draw_rows(name, rng, n):
    """Arguments of a plan's statistics, often at the ends of what they may be."""
    if name == "matrix":
        return rng.integers(0, 3, n), rng.integers(0, 3, n)
    if name == "binary":
        scores = rng.choice([0.0, 1.0, 0.5, -7.0, 9.0, np.nan, *rng.random(3)], n)
        return rng.integers(0, 2, n), scores
    if name in ("classes", "areas"):
        probabilities = rng.dirichlet([0.3] * 3, n)
        return rng.integers(0, 3, n), rng.integers(0, 3, n), probabilities
    if name == "loss":
        return (rng.choice([0.0, 5.0, np.inf, np.nan, -1.0, 2.0], n),)
    ends = [-1.0, 3.0, -1e300, 1e300, 1.0, 0.0]
    return rng.choice(ends, n), rng.choice([*ends, np.nan], n)


def take(rows, indices):
    return tuple(values[indices] for values in rows)


def changes(name, relation, by_person, trials=600):
    """Yield the differences of the statistics of neighboring tables."""
    rng = np.random.default_rng(0)
    plan = plan_of(name, relation, "person" if by_person else "row")
    for _ in range(trials):
        rows = draw_rows(name, rng, N)
        if not by_person:
            others = np.arange(1, N)
            base = plan.statistics(rows)
            if relation == "add_remove":
                yield base - plan.statistics(take(rows, others))
            else:
                new = draw_rows(name, rng, 1)
                replaced = tuple(np.concatenate([a, b[1:]]) for a, b in zip(new, rows, strict=True))
                yield base - plan.statistics(replaced)
            continue
        # One person with 1 to 5 rows beside others, whose rows and weights stay.
        statistics = []
        shared = rng.integers(1, 4, N - 5)
        for _ in range(2):
            n_rows = int(rng.integers(1, 6))
            person = draw_rows(name, rng, n_rows)
            ids = np.concatenate([np.zeros(n_rows, dtype=int), shared])
            joined = tuple(
                np.concatenate([a, b[: N - 5]]) for a, b in zip(person, rows, strict=True)
            )
            weights = read_persons(ids, len(ids)).row_weights
            statistics.append(plan.statistics(joined, weights))
            if relation == "add_remove":
                others = np.arange(n_rows, len(ids))
                statistics.append(plan.statistics(take(joined, others), weights[others]))
                break
        yield statistics[0] - statistics[1]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("by_person", [False, True], ids=["rows", "persons"])
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_no_neighbor_moves_the_statistics_by_more_than_the_sensitivity(name, relation, by_person):
    plan = plan_of(name, relation, "person" if by_person else "row")
    l1, l2 = plan.sensitivities
    differences = np.array(list(changes(name, relation, by_person)), dtype=float)
    largest_l1 = np.abs(differences).sum(axis=1).max()
    largest_l2 = np.sqrt(np.square(differences).sum(axis=1)).max()
    assert largest_l1 <= l1
    assert largest_l2 <= l2
    # The search comes near, so that half the sensitivity would be noticed.
    assert largest_l1 > 0.7 * l1
    assert largest_l2 > 0.7 * l2


@pytest.mark.parametrize("n_rows", [1, 7, 1 << 8, 1 << 16])
@pytest.mark.parametrize("name", ["loss", "numbers"])
def test_the_rounding_of_rows_does_not_depend_on_the_number_of_rows(name, n_rows):
    """By persons it is private: a grid that followed it would shift the sums of all others."""
    plan = plan_of(name, "add_remove", "person")
    rng = np.random.default_rng(0)
    others = rng.uniform(-1.0, 1.0, (N - 1, plan.size))
    # A person of any number of rows whose values add nothing to the centered sums.
    person = np.zeros((n_rows, plan.size))
    values = np.vstack([person, others]) / np.array(plan.factors) + np.array(plan.center)
    values[:n_rows] = plan.center
    weights = np.append(np.full(n_rows, 1.0 / n_rows), np.ones(N - 1))
    alone = plan.exact_sums(values[n_rows:], np.ones(N - 1))
    np.testing.assert_array_equal(plan.exact_sums(values, weights), alone)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_the_mechanism_has_that_sensitivity_and_the_epsilon_of_the_release(name, relation):
    plan = plan_of(name, relation)
    assert plan.mechanism.sensitivity in plan.sensitivities
    assert get_epsilon(plan.plan().event, 0.0) == pytest.approx(0.5, rel=1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
def test_many_blocks_of_counts_have_gaussian_noise(relation):
    guarantee = Guarantee(epsilon=0.5, delta=1e-3, neighbors=Neighbors(relation=relation))
    mechanism = CellCounts(sizes=(10,) * 100, guarantee=guarantee).mechanism
    factor = 2 if relation == "replace_one" else 1
    assert mechanism.sensitivity == pytest.approx(np.sqrt(100 * factor))


@pytest.mark.parametrize("relation", RELATIONS)
def test_known_sensitivities(relation):
    factor = 2 if relation == "replace_one" else 1
    assert plan_of("matrix", relation).sensitivities == pytest.approx((factor, factor**0.5))
    assert plan_of("classes", relation).sensitivities[0] == 2 * factor
    # One against rest histograms of k classes add k.
    assert plan_of("areas", relation).sensitivities[0] == 5 * factor


def noise_of(release, n=300):
    return np.array([release() for _ in range(n)])


def check_scale(errors, std):
    """Assert that the standard deviation of errors is the stated one, up to chance."""
    # With Laplace noise the relative standard error of a standard deviation is sqrt(1.25 / n). 4.9
    # of them have a false alarm of 1e-6.
    assert np.std(errors) == pytest.approx(std, rel=4.9 * np.sqrt(1.25 / len(errors)))


@pytest.mark.thorough
@pytest.mark.parametrize("relation", RELATIONS)
def test_released_metrics_have_the_noise_of_their_epsilon(relation):
    factor = 2 if relation == "replace_one" else 1
    n, epsilon = 400, 0.5
    accountant = PrivacyAccountant(1e6, 0.0, relation=relation, ledger="memory://")
    y = np.arange(n) % 2
    options = {"epsilon": epsilon, "accountant": accountant}
    # The sum of right and wrong predictions is public, so that half of their difference is noise.
    accuracies = noise_of(lambda: dp.dp_accuracy_score(y, np.arange(n) // 2 % 2, **options))
    check_scale(accuracies * n, factor / epsilon)
    options["target_bounds"] = (0.0, 1.0)
    errors = noise_of(lambda: dp.dp_mean_absolute_error(y, np.full(n, 0.5), **options))
    # The L1 sensitivity of the values about 1/2 and of a fifth of their squares is .6 or 1.2.
    check_scale(errors * n, np.sqrt(2.0) * 0.6 * factor / epsilon)


def coverage_of_cells(rate, n_runs=150, n=10_000):
    """Count the noise intervals that contain the metric of the raw counts."""
    rng = np.random.default_rng(1)
    guarantee = Guarantee(epsilon=0.5)
    plan = BinaryCounts.on_grid(n, guarantee, np.array([0, 1]), (0.0, 1.0))
    y = (rng.random(n) < rate).astype(int)
    logits = np.log(rate / (1.0 - rate)) + 1.5 * (rng.normal(size=n) + 1.5 * y) - 1.125
    rows = y, 1.0 / (1.0 + np.exp(-logits))
    counts = plan.statistics(rows)
    exact = plan.metrics(counts.astype(float), plan.mechanism, RandomSource())
    hits = dict.fromkeys(("roc_auc", "brier_score", "average_precision"), 0)
    for _ in range(n_runs):
        cells = plan.release(counts, RandomSource())
        for name in hits:
            raw = getattr(BinaryCells, name)(exact)
            low, high = getattr(cells, name)().noise_interval
            hits[name] += low <= raw <= high
    return hits


@pytest.mark.thorough
@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_intervals_of_the_noise_cover(rate):
    """At least 93 % cover: chance alone fails with a probability of `FALSE_ALARM`."""
    hits = coverage_of_cells(rate)
    for name, count in hits.items():
        assert count >= binom.ppf(FALSE_ALARM, 150, 0.93), (name, count)


def test_both_intervals_of_a_mean_cover():
    """At least 93 % of 300 intervals cover: a false alarm has a probability of `FALSE_ALARM`."""
    rng = np.random.default_rng(2)
    hits = np.zeros(2, dtype=int)
    for _ in range(300):
        losses = rng.beta(2, 5, 2000)
        score = dp.dp_mean_absolute_error(losses, np.zeros(2000), epsilon=0.5, target_bounds=(0, 1))
        for i, (truth, interval) in enumerate(
            [(losses.mean(), score.noise_interval), (2 / 7, score.interval)]
        ):
            hits[i] += interval[0] <= truth <= interval[1]
    assert (hits >= binom.ppf(FALSE_ALARM, 300, 0.93)).all()
    assert (hits[:1] <= binom.ppf(1 - FALSE_ALARM, 300, 0.97)).all()
