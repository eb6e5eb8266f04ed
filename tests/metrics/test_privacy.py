"""Sensitivities by brute force under both relations, for rows and persons; noise as stated."""

import numpy as np
import pytest
from scipy.stats import binom

from skdp import PrivacyAccountant
from skdp import metrics as dp
from skdp.accounting import Guarantee, Neighbors, get_epsilon
from skdp.metrics._binary import BinaryCells
from skdp.metrics._releases import BinaryCounts, ErrorSums, LossSums, MatrixCounts, MulticlassCounts
from skdp.metrics._statistics import CellCounts
from skdp.noise import RandomSource
from tests._private import read_persons

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
