"""Naive Bayes on private histograms: sensitivities, the price of both stages, what it learns."""

import itertools
import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.naive_bayes import CategoricalNB

from skdp import ChunkedArray, DPGaussianNB, DPHistogramNB, PrivacyAccountant, tabular_pipeline
from skdp.accounting import gaussian_delta, get_epsilon
from skdp.base import TableShape
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.naive_bayes._calibration import SLOPES, calibrate, evidence_bins, n_evidence_bins
from skdp.naive_bayes._gaussian_nb import plan_class_moments
from skdp.naive_bayes._histogram_nb import (
    HistogramNBFit,
    _add_losses,
    _class_probabilities,
    _ColumnSummary,
    _count_evidence,
    _parent_counts,
    _pool_class_counts,
)
from skdp.noise import RandomSource
from tests._guarantees import meet
from tests._private import RowsAndTarget, Term, cells_of, declared_columns, read_kinds, sum_over

RELATIONS = ("add_remove", "replace_one")
COLORS = ["red", "green", "blue"]
BOUNDS, CATEGORIES = {0: (-1.0, 1.0), 1: (0.0, 10.0)}, {2: COLORS}


def make_rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n, 3), dtype=object)
    X[:, 0], X[:, 1] = rng.uniform(-1, 1, n), rng.normal(5, 2, n)
    X[:, 2] = rng.choice(COLORS, n)
    return X, rng.integers(0, 3, n)


def with_row(X, row):
    """Return the rows and another one, whose cells stay the objects that they are."""
    return np.vstack([X, np.array([row], dtype=object)])


def plan_of(guarantee, n=301, categories=CATEGORIES, n_classes=3):
    columns = declared_columns(["object"] * 3, BOUNDS, categories, None)
    return HistogramNBFit(columns=columns, n_rows=n, n_classes=n_classes, guarantee=guarantee)


def table_of(rows):
    return read_kinds(DPHistogramNB(), rows)[0]


def exact_counts(plan, X, y, monkeypatch):
    """Return what the first noise of a run is added to."""
    seen = []

    def kept(self, values, *, random_state):
        seen.append(values.copy())
        return values

    with monkeypatch.context() as patch:
        for kind in (GaussianMechanism, LaplaceMechanism):
            patch.setattr(kind, "release", kept)
        plan.run(RowsAndTarget(table_of(X), y), RandomSource(0))
    return seen[0]


def neighbors():
    """A row in any cell, of any class: at the ends, outside, missing, undeclared."""
    for a in (-1.0, 1.0, None):
        for color in ("red", "other", None):
            yield from (([a, 10.0 * (a == 1.0), color], label) for label in (0, 2))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_the_counts(relation, delta, monkeypatch):
    plan, order = plan_of(meet(1.0, delta, relation)), 2 if delta else 1
    X, y = make_rows()
    found = [
        exact_counts(plan, with_row(X, row), np.append(y, label), monkeypatch)
        for row, label in neighbors()
    ]
    others = found if relation == "replace_one" else [exact_counts(plan, X, y, monkeypatch)]
    moves = [np.linalg.norm(np.ravel(a - b), order) for a in found for b in others]
    assert 0.999 * plan.sensitivity < max(moves) <= plan.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_the_losses(relation):
    """Whatever was released before: also of a model that is sure, and right or wrong."""
    X, y = make_rows()
    terms = [Term(features=(0,), kinds=("label",), edges=(np.array(COLORS),))]
    for delta, order in ((0.0, 1), (1e-6, 2)):
        plan, largest = plan_of(meet(1.0, delta, relation)), 0.0
        claimed = plan._losses_mechanism.sensitivity
        for sure in (0.0, 3.0, 900.0):
            values = [sure * np.random.default_rng(1).normal(size=(5, 3))]
            moves = [-sure * np.random.default_rng(2).uniform(size=(5, 3))]

            def losses(X, y, sure=sure, values=values, moves=moves):
                cells, start = cells_of(table_of(X[:, 2:]), terms), np.array([0.0, -sure, -sure])
                known = values, moves, start
                return sum_over(cells, _add_losses, np.zeros(5), *known, row_args=(y, None))

            found = [losses(with_row(X, row), np.append(y, label)) for row, label in neighbors()]
            others = found if relation == "replace_one" else [losses(X, y)]
            moves = [np.linalg.norm(a - b, order) for a in found for b in others]
            assert max(moves) <= claimed
            largest = max(largest, max(moves))
        # A model that is sure at each temperature.
        assert largest > 0.999 * claimed


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_the_counts_of_the_evidence(relation):
    """Whatever was released before: rows with any evidence, of either class."""
    X, y = make_rows()
    y = y % 2
    terms = [Term(features=(0,), kinds=("label",), edges=(np.array(COLORS),))]
    values = [np.array([-900.0, -1.0, 0.5, 3.0, 900.0])]
    moves = [np.array([[0.3, -0.1], [0.2, -2.0], [0.0, 0.0], [5.0, -5.0], [1.0, -1.0]])]
    edges = np.array([-2.0, 0.0, 1.0])

    def counts(X, y):
        cells, known = cells_of(table_of(X[:, 2:]), terms), (values, moves, edges)
        return sum_over(cells, _count_evidence, np.zeros(8), *known, row_args=(y, None))

    found = [
        counts(with_row(X, row), np.append(y, label % 2 if label != 2 else 1))
        for row, label in neighbors()
    ]
    others = found if relation == "replace_one" else [counts(X, y)]
    for delta, order in ((0.0, 1), (1e-6, 2)):
        claimed = plan_of(
            meet(1.0, delta, relation), n_classes=2
        )._calibration_mechanism.sensitivity
        moved = [np.linalg.norm(a - b, order) for a in found for b in others]
        assert 0.999 * claimed < max(moved) <= claimed


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("categories", [CATEGORIES, {2: "auto"}])
def test_both_stages_cost_what_is_charged(delta, n_classes, categories):
    if delta == 0.0 and categories is not CATEGORIES:
        with pytest.raises(ValueError, match="delta > 0"):
            plan_of(meet(1.0, 0.0), categories=categories)
        return
    plan = plan_of(meet(1.0, delta), categories=categories, n_classes=n_classes)
    noises = [plan._counts_mechanism]
    noises.append(plan._calibration_mechanism if n_classes == 2 else plan._losses_mechanism)
    if plan.limits_levels:
        noises.append(plan._classes_mechanism)
    assert plan.limits_levels == (n_classes == 2 and delta > 0.0)
    parts = [noise.sensitivity / noise.scale for noise in noises]
    if plan.key_selection is not None:
        parts.append(plan.key_selection._noise.sensitivity / plan.key_selection._noise.scale)
    assert get_epsilon(plan.budget.event, delta) <= 1.0
    if delta == 0.0:
        assert 0.999 < sum(parts) <= 1.0
    else:
        mu = math.sqrt(sum(part**2 for part in parts))
        left = delta - plan.budget.threshold_delta
        assert 0.999 * left < gaussian_delta(1.0 / mu, 1.0) <= left


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("max_level", [1, 3])
def test_brute_force_sensitivity_at_each_level(max_level, relation, monkeypatch):
    """The event is the same at every level that the released class counts allow."""
    plan = plan_of(meet(1.0, 1e-6, relation), n_classes=2)
    limited = replace(plan, max_level=max_level)
    assert limited.budget.event == plan.budget.event
    multipliers = [[stage.noise_multiplier for stage in p.stages] for p in (limited, plan)]
    np.testing.assert_allclose(*multipliers, rtol=1e-12)
    X, y = make_rows()
    y = (y > 1).astype(int)
    monkeypatch.setattr(HistogramNBFit, "_max_level", lambda *_: max_level)
    rows = [(row, min(label, 1)) for row, label in neighbors()]
    found = [
        exact_counts(plan, with_row(X, row), np.append(y, label), monkeypatch)
        for row, label in rows
    ]
    others = found if relation == "replace_one" else [exact_counts(plan, X, y, monkeypatch)]
    moves = [np.linalg.norm(np.ravel(a - b)) for a in found for b in others]
    assert 0.999 * limited.sensitivity < max(moves) <= limited.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_the_class_counts(relation, monkeypatch):
    plan = plan_of(meet(1.0, 1e-6, relation), n_classes=2)
    X, y = make_rows()
    y = (y > 1).astype(int)
    found = [exact_counts(plan, X, np.append(y[1:], last), monkeypatch) for last in (0, 1)]
    others = found
    if relation == "add_remove":
        others = [exact_counts(plan, X[1:], y[1:], monkeypatch)]
    moves = [np.linalg.norm(a - b) for a in found for b in others]
    claimed = plan._classes_mechanism.sensitivity
    assert 0.999 * claimed < max(moves) <= claimed


def test_a_rarer_class_has_fewer_levels():
    plan = plan_of(meet(1.0, 1e-6), n=75_000, n_classes=2)
    levels = []
    for n_rare in (20, 75, 750, 7_500, 37_500):
        codes = (np.arange(75_000) < n_rare).astype(int)
        found = {plan._max_level(codes, None, RandomSource(seed)) for seed in range(5)}
        # Both classes are treated alike.
        found |= {plan._max_level(1 - codes, None, RandomSource(seed)) for seed in range(5)}
        assert max(found) - min(found) <= 3
        levels.append(np.mean(list(found)))
    assert levels == sorted(levels)
    assert levels[0] <= 2.5
    assert levels[-1] == plan.levels[-1]


def test_one_positive_in_a_thousand_is_found():
    """With all levels, the noise hides the class."""
    scores = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(80_000, 3)).clip(-4.0, 4.0)
        score = X @ [1.5, 1.0, 0.5] + rng.normal(size=len(X))
        y = score > np.quantile(score, 0.999)
        model = DPHistogramNB(1.0, bounds=(-4.0, 4.0)).fit(X[:60_000], y[:60_000])
        scores.append(roc_auc_score(y[60_000:], model.decision_function(X[60_000:])))
    assert np.mean(scores) > 0.9


def test_without_noise_it_is_naive_bayes_on_the_cells():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 3000)
    X = (rng.uniform(size=(3000, 4)) < 0.3 + 0.2 * y[:, None]).astype(int)
    theirs = CategoricalNB(alpha=1e-9).fit(X, y)
    ours = DPHistogramNB(1e10, categories=[0, 1]).fit(X, y)
    # Columns that are independent ask for no temperature.
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


def test_what_columns_share_is_not_counted_twice():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 2, (4000, 1))
    y = np.where(rng.uniform(size=4000) < 0.7, one[:, 0], 1 - one[:, 0])
    X = np.repeat(one, 8, axis=1)
    model = DPHistogramNB(10.0, categories=[0, 1]).fit(X, y)
    # Eight times one column's evidence at a temperature of eight.
    np.testing.assert_allclose(model.predict_proba([[1] * 8])[0, 1], 0.7, atol=0.05)


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_each_column_counts_the_classes_again(delta, monkeypatch):
    """The deviation of 8000 estimates is known to 1 %: 10 % are beyond any false alarm."""
    plan, (X, y) = plan_of(meet(1.0, delta)), make_rows()
    exact, (first, *_), last = exact_counts(plan, X, y, monkeypatch), plan.levels, plan.levels[-1]
    size = sum(2**level for level in plan.levels) + 1
    sizes = [size, size, len(COLORS) + 2]
    rng, found = np.random.default_rng(0), []
    for _ in range(8000 // 3):
        noisy = exact + rng.normal(size=exact.shape)
        *columns, own = np.split(noisy, np.cumsum(sizes), axis=1)
        found.append(
            _pool_class_counts(plan._finest_terms(plan.columns), columns, own, first)
            - np.bincount(y)
        )
    expected = 1.0 / math.sqrt(1.0 + 2.0 / (2**first + 1) + 1.0 / 5.0)
    assert first == (last if delta == 0.0 else 1)
    assert np.std(found) == pytest.approx(expected, rel=0.1)
    assert abs(np.mean(found)) < 0.1 * expected


def test_temperatures_that_noise_cannot_tell_apart_are_averaged(monkeypatch):
    X, y = np.zeros((600, 1)), np.arange(600) % 3

    def values_at(losses):
        """The values of cells, some of which say something, when these losses are released."""

        def released(self, values, **source):
            return losses if values.shape == (5,) else values + 30.0 * np.eye(*values.shape)

        monkeypatch.setattr(GaussianMechanism, "release", released)
        return DPHistogramNB(1.0, categories=[0, 1]).fit(X, y).shape_functions_[0].values

    whole, mean = (values_at(np.array([first, 0.0, 0.0, 0.0, 0.0])) for first in (-1e9, 0.0))
    assert np.abs(whole).max() > 0.0
    np.testing.assert_allclose(mean, whole * (1 + 1 / 2 + 1 / 4 + 1 / 8 + 1 / 16) / 5)


def bins_of(n_columns, n_bins):
    """The bins of columns whose evidence is normal, each of variance 1."""
    value = np.linspace(-4.0, 4.0, 201)
    return evidence_bins([value] * n_columns, [np.exp(-0.5 * value**2)] * n_columns, n_bins)


@pytest.mark.parametrize("prior", [0.5, 0.06, 0.001])
@pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.125, 0.3), (0.05, -0.5)])
def test_slope_and_shift_of_the_evidence_are_found(prior, slope, shift):
    """Without noise, and with 10^8 rows, they are those that made the classes."""
    n_rows, n_columns = 10**8, 4
    edges, evidence = bins_of(n_columns, 64)
    fine = np.linspace(edges[0] - 4.0, edges[-1] + 4.0, 20_001)
    masses = np.exp(-0.5 * fine**2 / n_columns)
    masses *= n_rows / masses.sum()
    odds = prior / (1.0 - prior) * np.exp(shift + slope * fine)
    p = odds / (1.0 + odds)
    counts = np.array(
        [np.bincount(np.searchsorted(edges, fine), m, 64) for m in (masses * (1 - p), masses * p)]
    )
    frequency = counts[1].sum() / n_rows
    found_shift, found_slope = calibrate(counts, evidence, frequency, 1e-3, n_rows)
    # The grid of slopes has steps of a factor of the root of 2; bins are not points.
    assert 0.8 * slope < found_slope < 1.25 * slope
    scores = np.log(frequency / (1 - frequency)) + found_shift + found_slope * fine
    assert (masses / (1.0 + np.exp(-scores))).sum() == pytest.approx(n_rows * frequency, rel=0.05)


@pytest.mark.thorough
def test_noise_that_hides_the_evidence_leaves_the_frequency_of_the_classes():
    """The mean probability is about that of the class, whatever noise says of the bins."""
    n_rows, prior, deviation, means = 2000, 0.05, 500.0, []
    _, evidence = bins_of(30, 8)
    rng = np.random.default_rng(0)
    for _ in range(50):
        noisy = rng.normal(0, deviation, (2, 8))
        shift, slope = calibrate(noisy, evidence, prior, deviation, n_rows)
        assert SLOPES[0] <= slope <= SLOPES[-1]
        scores = np.log(prior / (1 - prior)) + shift + slope * evidence
        means.append(np.mean(1.0 / (1.0 + np.exp(-scores))))
    # Where noise makes bins of quite other sizes, which is seldom, the mean is farther away.
    assert 0.5 * prior < np.median(means) < 1.5 * prior
    assert np.quantile(means, 0.8) < 3.0 * prior


def test_more_rows_beside_the_noise_have_more_bins():
    assert [n_evidence_bins(n, 10.0) for n in (100, 2400, 6000, 10**9)] == [8, 8, 20, 64]


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_probabilities_of_a_rare_class_are_not_far_too_small(delta):
    """Eighty columns that say the same in groups of ten, one class of 6 %.

    With a temperature by Brier scores the log loss was up to twice that of the frequencies.
    """
    n, losses, means = 4000, [], []
    rng = np.random.default_rng(0)

    def draw(n):
        same = rng.normal(size=(n, 8))
        X = np.repeat(same, 10, axis=1) + 0.7 * rng.normal(size=(n, 80))
        y = 0.25 * same.sum(axis=1) - 3.0 + rng.logistic(size=n) > 0
        return np.clip(np.round(np.exp(0.8 * X)), 0, 9), y

    (X, y), (other, labels) = draw(n), draw(10_000)
    for _ in range(5):
        p = DPHistogramNB(1.0, delta=delta, bounds=(0, 9)).fit(X, y).predict_proba(other)
        losses.append(log_loss(labels, p))
        means.append(p[:, 1].mean())
    frequency = log_loss(labels, np.tile([1 - y.mean(), y.mean()], (len(labels), 1)))
    assert np.mean(losses) < frequency + 0.02
    assert 0.5 * y.mean() < np.mean(means) < 2.0 * y.mean()


def made(kind, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 10))
    score = {"one": 2.2 * (X[:, 0] > 0.5) - 1.1, "none": np.zeros(n), "wave": np.sin(12 * X[:, 0])}
    return X, rng.uniform(size=n) < 1 / (1 + np.exp(-score[kind]))


@pytest.mark.thorough
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("kind", ["one", "none", "wave"])
def test_less_noise_is_no_worse(kind, delta):
    """Of 600 rows in 10 columns: cells of one row each do not say what a class is."""
    rows, (other, labels) = made(kind, 600, 0), made(kind, 4000, 1)
    losses = {}
    for epsilon in (1.0, 1e10):
        fits = [DPHistogramNB(epsilon, delta=delta, bounds=(0, 1)).fit(*rows) for _ in range(5)]
        losses[epsilon] = np.mean([log_loss(labels, fit.predict_proba(other)) for fit in fits])
    prior = log_loss(labels, np.tile([1 - rows[1].mean(), rows[1].mean()], (4000, 1)))
    assert losses[1e10] < min(losses[1.0], prior) + 0.02


@pytest.mark.parametrize("k", [2, 3])
def test_parents_count_by_what_cells_tell_apart(k):
    """Chance tells little; classes from a Dirichlet distribution about a parent's are found."""
    rng = np.random.default_rng(0)
    chances = np.full(k, 1.0 / k)
    masses = rng.multinomial(50 * 512, np.full(512, 1 / 512))
    alike = rng.multinomial(masses, chances).T.astype(float)
    assert _parent_counts(alike, 256, 0.0).min() > 200.0
    for strength in (2.0, 20.0):
        own = rng.dirichlet(strength * chances, 512)
        counts = np.array([rng.multinomial(*each) for each in zip(masses, own, strict=True)]).T
        # Their noise is no difference.
        for scale in (0.0, 5.0):
            noisy = counts + scale * rng.normal(size=counts.shape)
            found = np.median(_parent_counts(noisy, 256, scale**2))
            assert 0.4 * strength < found + 1.0 < 2.5 * strength
    # What is all of its parent says nothing that is new.
    whole = np.zeros((k, 2))
    whole[:, 0] = 50.0
    assert _parent_counts(whole, 1, 0.0)[0] > 1e9


def test_temperatures_are_of_rows_that_are_not_counted():
    """In tables without a row, its cells have what the corrections say."""
    levels = [(np.array([[3.0, 1.0], [2.0, 6.0]]), np.array([4.0, 4.0]))]
    prior, none = np.array([0.5, 0.5]), np.zeros((2, 0))
    summary = _ColumnSummary(np.zeros(2), levels, none)
    less = _class_probabilities(summary, prior, 2.0, np.array([[1.0], [0.0]]))
    np.testing.assert_allclose(less[0], [(2 + 3) / (4 + 6), (0 + 3) / (6 + 6)])


def two_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "money": np.where(rng.uniform(size=n) < 0.8, 0.0, rng.lognormal(8, 1, n)),
            "age": rng.integers(17, 90, n).astype(float),
            "job": rng.choice(["a", "b", "c"], n),
            "since": pd.Timestamp("2000-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
        }
    )
    score = 2.0 * (X["money"] > 500) + 1.5 * (abs(X["age"] - 50) < 15) + 2.0 * (X["job"] == "c")
    y = np.where(rng.uniform(size=n) < 1 / (1 + np.exp(2.5 - score)), "yes", "no")
    X.loc[::9, "age"] = np.nan
    return X, y


@pytest.mark.parametrize(("delta", "least"), [(1e-6, 0.76), (0.0, 0.74)])
def test_raw_tables_are_learned(delta, least):
    """The best score there is has an AUC of 0.80; the spread of a fit's is below 0.01."""
    X, y = two_classes(20_000)
    other, labels = two_classes(5000, seed=1)
    declared = {
        "bounds": {
            "money": (0, 1e5),
            "age": (17, 90),
            "since": (pd.Timestamp("2000-01-01"), pd.Timestamp("2030-01-01")),
        },
        "categories": {"job": ["a", "b", "c"]},
    }
    for parameters in (declared,) if delta == 0.0 else (declared, {}):
        model = DPHistogramNB(1.0, delta=delta, **parameters).fit(X, y)
        chances = model.predict_proba(other)
        assert roc_auc_score(labels == "yes", chances[:, 1]) > least
        # Probabilities, not only an order.
        share = np.mean(labels == "yes")
        assert log_loss(labels, chances) < 0.95 * log_loss(labels, [[1 - share, share]] * 5000)
        total = model.explain(other).sum(axis=1) + model.intercept_
        np.testing.assert_allclose(total, model.decision_function(other), atol=1e-9)


def test_in_a_pipeline_of_raw_tables():
    X, y = two_classes(5000)
    bounds = {"money": (0, 1e5), "age": (17, 90)}
    own = {"bounds": bounds, "categories": {"job": ["a", "b", "c"]}}
    pipe = tabular_pipeline(DPHistogramNB, **own)
    assert len(pipe) == 1 and pipe[0].bounds == bounds
    assert pipe.fit(X, y).score(X, y) > np.mean(y == "no") - 0.01
    # Bell curves of one-hot columns mean nothing, and a front's rows are sparse.
    with pytest.raises(ValueError, match="raw tables or sparse rows"):
        tabular_pipeline(DPGaussianNB, **own)


def test_what_cannot_be_drawn_is_refused_before_the_charge():
    accountant, y = PrivacyAccountant(1.0, 0.0), np.arange(200) % 2
    for epsilon in np.geomspace(1e-14, 1e-12, 9):
        model = DPHistogramNB(epsilon, delta=0.0, categories=[["a", "b"]], accountant=accountant)
        spent = accountant.epsilon_spent
        try:
            model.fit(np.where(y[:, None] == 0, "a", "b").astype(object), y)
        except ValueError:
            assert accountant.epsilon_spent == spent


def test_it_is_read_like_an_additive_model():
    X, y = two_classes(2000)
    model = DPHistogramNB(bounds={"money": (0, 1e5)}).fit(X, y)
    assert [shape.name for shape in model.shape_functions_] == [*X.columns]
    assert "money" in model._repr_html_() and model.feature_importances_.sum() == pytest.approx(1)
    none = model.edit("job", 0.0)
    assert (none.explain(X)[:, 2] == 0.0).all() and not (model.explain(X)[:, 2] == 0.0).all()


def test_where_noise_rules_it_is_the_majority():
    X, y = two_classes(3000)
    rare = np.where((y == "yes") & (np.arange(3000) % 4 == 0), "yes", "no")
    least = np.mean(rare == "no")
    bounds, categories = {"money": (0, 1e5), "age": (17, 90)}, {"job": ["a", "b", "c"]}
    table = X[["money", "age", "job"]]
    scores = [
        DPHistogramNB(0.2, bounds=bounds, categories=categories).fit(table, rare).score(table, rare)
        for _ in range(20)
    ]
    # The mean of 20 fits; without a temperature it is lower by more than 0.1.
    assert np.mean(scores) > least - 0.03


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_noise_says_how_fine_cells_are(delta):
    plans = [plan_of(meet(epsilon, delta), n=10_000) for epsilon in (1e-3, 0.1, 1.0, 1e3)]
    finest = [plan.levels[-1] for plan in plans]
    assert finest[0] == 1 and finest[-1] == 10 and finest == sorted(finest)
    # Two columns of numbers, one of labels, and the classes.
    counts_of_row = [2 * (1 if delta == 0.0 else last) + 2 for last in finest]
    moved = counts_of_row if delta == 0.0 else np.sqrt(counts_of_row)
    np.testing.assert_allclose([plan.sensitivity for plan in plans], moved)


def test_chunks_and_their_table_are_one():
    X, y = np.random.default_rng(0).uniform(size=(3000, 2)), np.arange(3000) % 2
    parts = ChunkedArray(np.array_split(X, 4))
    one, other = (DPHistogramNB(bounds=(0, 1), random_state=0).fit(T, y) for T in (X, parts))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(parts))


def test_the_largest_doubles_are_read_quietly():
    X, y = np.random.default_rng(0).choice([1e308, -1e308, 0.0], (400, 2)), np.arange(400) % 2
    model = DPHistogramNB(bounds=(-1, 1)).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.explain(X)).all()


# Moments of classes.


KINDS = {0.0: LaplaceMechanism, 1e-6: GaussianMechanism}


def plan_of_moments(d, guarantee, n=21, **changes):
    return plan_class_moments(TableShape(n_rows=n, n_columns=d), guarantee, n_classes=3, **changes)


def exact_sums(plan, X, y, monkeypatch):
    """Return what noise is added to."""
    seen = []
    kind = type(plan.mechanism)

    def kept(self, values, **_):
        seen.append(values.copy())
        return values

    with monkeypatch.context() as patch:
        patch.setattr(kind, "release", kept)
        d = X.shape[1]
        plan.run(RowsAndTarget(X, y), RandomSource(0), low=np.zeros(d), high=np.full(d, 2.0))
    return seen[0]


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("prior", [None, np.array([0.2, 0.5, 0.3])])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("delta", KINDS)
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity(relation, delta, d, prior, monkeypatch):
    plan, order = plan_of_moments(d, meet(1.0, delta, relation), prior=prior), 2 if delta else 1
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 2, (20, d)), rng.integers(0, 3, 20)
    without = exact_sums(plan, X, y, monkeypatch)
    found = [
        exact_sums(plan, np.vstack([X, row]), np.append(y, label), monkeypatch)
        for row in itertools.product((-5.0, 1.0, 1.7, 2.0), repeat=d)
        for label in (0, 2)
    ]
    others = found if relation == "replace_one" else [without]
    moves = [np.linalg.norm(np.ravel(a - b), order) for a in found for b in others]
    claimed = plan.mechanism.sensitivity
    assert 0.999 * claimed < max(moves) <= claimed


def test_sensitivities_are_those_that_are_derived():
    for d in (1, 2, 5):
        pure, both = (
            [plan_of_moments(d, meet(1.0, delta, r)) for r in RELATIONS] for delta in KINDS
        )
        for plan, l1 in zip(pure, (1.5 * d + 1, 3 * d + 2), strict=True):
            assert plan.mechanism.sensitivity == pytest.approx(l1, rel=1e-9)
        for plan, squares in zip(both, (1.25 * d + 1, max(4 * d, 2.5 * d + 2)), strict=True):
            assert plan.mechanism.sensitivity == pytest.approx(math.sqrt(squares), rel=1e-9)
