"""The person as the unit: every estimator and statistic that takes `groups`, by brute force.

A call is added by one line of `CALLS`: with declared bounds, and no intercept where one would be
centered by a release of its own, so that the first release is a function of the table alone.
"""

import math
from dataclasses import replace
from decimal import Decimal
from functools import partial

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPAdditiveRegressor,
    DPDecisionTreeClassifier,
    DPGaussianNB,
    DPHistogramNB,
    DPHistogramTransformer,
    DPKBinsDiscretizer,
    DPKMeans,
    DPLinearRegression,
    DPLinearSVC,
    DPLogisticRegression,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPPoissonRegressor,
    DPRandomForestClassifier,
    DPRandomForestRegressor,
    DPRidge,
    DPSGDClassifier,
    DPSGDRegressor,
    DPSimpleImputer,
    DPStandardScaler,
    DPTableVectorizer,
    DPTargetEncoder,
    LedgerError,
    PrivacyAccountant,
    RandomizedResponseTransformer,
    stats,
)
from skdp.accounting import Gaussian, Neighbors, PoissonSampled, PureDP, SampledWithoutReplacement
from skdp.base import fitted_names
from skdp.mechanisms import (
    GammaNormMechanism,
    GaussianMechanism,
    GeometricMechanism,
    LaplaceMechanism,
)
from skdp.model_selection import PersonKFold, dp_cross_val_score
from tests._private import GaussianNoise, LaplaceNoise, read_persons
from tests._replay import replayed

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

BOUNDS = {"bounds": (-1.0, 1.0)}
GAUSSIAN = {"delta": 1e-6}
NO_INTERCEPT = {"fit_intercept": False}


def without_axis(statistic, **options):
    return lambda X, axis, **terms: statistic(X, **options, **terms)


CALLS = {
    "scaler": DPStandardScaler(**BOUNDS),
    "scaler, Gaussian": DPStandardScaler(**BOUNDS, **GAUSSIAN),
    "means": DPMeanTransformer(**BOUNDS),
    "means, noisy count": DPMeanTransformer(**BOUNDS, **GAUSSIAN, count="noisy"),
    "means, bounds": DPMeanTransformer(),
    "dp_mean": partial(stats.dp_mean, **BOUNDS),
    "dp_var": partial(stats.dp_var, **BOUNDS, **GAUSSIAN),
    "dp_sum": partial(stats.dp_sum, bounds=(-1.0, 0.5)),
    "dp_count": stats.dp_count,
    "dp_count, Gaussian": partial(stats.dp_count, delta=0.2),
    "dp_histogram": partial(stats.dp_histogram, bins=3, range=(-1.0, 1.0)),
    "dp_var, gaps": partial(stats.dp_var, **BOUNDS, nan_policy="omit"),
    "dp_histogramdd": without_axis(stats.dp_histogramdd, bins=3, range=[(-1.0, 1.0)] * 2),
    "dp_covariance": without_axis(stats.dp_covariance, **BOUNDS),
    "dp_correlation": without_axis(stats.dp_correlation, **BOUNDS, **GAUSSIAN),
    "estimate_bounds": stats.estimate_bounds,
    "histograms": DPHistogramTransformer(**BOUNDS, edges="uniform", n_bins=3),
    "labels": DPHistogramTransformer(edges=[-1.0, 0.0, 1.0], categories={1: [-1.0, 1.0]}),
    "bins": DPKBinsDiscretizer(),
    "one-hot": DPOneHotEncoder(categories=[-1.0, 1.0], min_frequency=2),
    "one-hot, Gaussian": DPOneHotEncoder(categories=[-1.0, 1.0], min_frequency=0.1, **GAUSSIAN),
    "target": DPTargetEncoder(categories=[-1.0, 1.0], target_bounds=(0.0, 1.0)),
    "target, classes": DPTargetEncoder(categories=[-1.0, 1.0], **GAUSSIAN),
    "imputer": DPSimpleImputer(**BOUNDS),
    "imputer, labels": DPSimpleImputer(strategy="most_frequent", categories=[-1.0, 1.0]),
    "pca": DPPCA(),
    "pca, Gaussian": DPPCA(data_norm=2.0, center=None, **GAUSSIAN),
    "pca, norm": DPPCA(data_norm="auto"),
    "k-means": DPKMeans(n_clusters=2, **BOUNDS),
    "vectorizer": DPTableVectorizer(**BOUNDS),
    "vectorizer, bounds": DPTableVectorizer(delta=0.0, categories={}),
    "logistic, output": DPLogisticRegression(mechanism="output", C=0.1),
    "logistic, pure": DPLogisticRegression(mechanism="output", C=0.1, delta=0.0),
    "logistic, center": DPLogisticRegression(mechanism="gradient"),
    "logistic, gradient": DPLogisticRegression(mechanism="gradient", **NO_INTERCEPT),
    "poisson": DPPoissonRegressor(target_bounds=(0.0, 1.0), mechanism="output", **NO_INTERCEPT),
    "ridge": DPRidge(target_bounds=(0.0, 1.0), mechanism="sufficient_statistics"),
    "least squares, pure": DPLinearRegression(
        target_bounds=(0.0, 1.0), mechanism="sufficient_statistics", delta=0.0, **NO_INTERCEPT
    ),
    "svc, output": DPLinearSVC(mechanism="output", C=0.1),
    "svc, gradient": DPLinearSVC(mechanism="gradient", **NO_INTERCEPT),
    "sgd": DPSGDClassifier(**NO_INTERCEPT),
    "sgd, L1": DPSGDClassifier(delta=0.0, max_iter=3, **NO_INTERCEPT),
    "sgd, hinge": DPSGDClassifier(loss="hinge", max_grad_norm=0.1, **NO_INTERCEPT),
    "sgd, regressor": DPSGDRegressor(target_bounds=(0.0, 1.0), **NO_INTERCEPT),
    "sgd, mean": DPSGDRegressor(target_bounds=(0.0, 1.0)),
    "additive": DPAdditiveClassifier(**BOUNDS),
    "additive, bounds": DPAdditiveClassifier(),
    "additive, pure": DPAdditiveClassifier(**BOUNDS, delta=0.0),
    "additive, pairs": DPAdditiveRegressor(**BOUNDS, target_bounds=(0.0, 1.0), interactions=1),
    "additive, counts": DPAdditiveRegressor(**BOUNDS, target_bounds=(0.0, 1.0), loss="poisson"),
    "additive, labels": DPAdditiveClassifier(categories={0: [-1, 0, 1], 1: [-1, 1]}),
    "Gaussian Bayes": DPGaussianNB(**BOUNDS),
    "Gaussian Bayes, pure": DPGaussianNB(**BOUNDS, delta=0.0),
    "histogram Bayes": DPHistogramNB(**BOUNDS),
    "histogram Bayes, pure": DPHistogramNB(delta=0.0, categories=[-1.0, 1.0]),
    "forest": DPRandomForestClassifier(**BOUNDS, n_estimators=5),
    "forest, numbers": DPRandomForestRegressor(**BOUNDS, target_bounds=(0.0, 1.0), n_estimators=5),
    "tree": DPDecisionTreeClassifier(max_depth=2),
    "tree, pure": DPDecisionTreeClassifier(**BOUNDS, delta=0.0, max_depth=2),
}
# Whose noise is of whole numbers only where each row counts as one.
WHOLE = {"dp_count", "dp_histogram", "dp_histogramdd", "estimate_bounds", "means, bounds"}
# Whose price of curvature is that of a person with any number of rows.
RANKED = {"additive, pure", "tree, pure"}
# Whose order of releases is drawn, or whose batches are: for the equality of single rows.
SAMPLED = {
    "sgd, Poisson": DPSGDClassifier(sampling="poisson", batch_size=4),
    "sgd, sampled": DPSGDClassifier(delta=0.0, sampling="without_replacement", batch_size=3),
}
# Whose first release is no sum: `linear_model/test_objective_perturbation.py` has its brute force.
OBJECTIVE = {"objective": DPLogisticRegression(mechanism="objective")}
REFUSED = {
    "standard errors": DPLogisticRegression(standard_errors="total"),
    "randomized response": RandomizedResponseTransformer(categories=[-1.0, 1.0]),
}
# The rest is slow.
FAST = {
    "histogram Bayes",
    "Gaussian Bayes, pure",
    "scaler",
    "means",
    "dp_sum",
    "dp_count",
    "logistic, output",
    "sgd, hinge",
}
WHOLE |= {"k-means", "histograms", "labels", "bins", "one-hot", "imputer, labels", "pca, norm"}
WHOLE |= {"vectorizer, bounds"}
# The noise multiplier of dp_accounting for 100 Poisson samples of rate .05 and (1, 1e-6).
SAMPLED_NOISE = {"add_remove": 2.4013854452688745, "replace_one": 4.225949172453002}
OTHERS = 9
CORNERS = {"high": (1.0, 1.0, 1), "low": (-1.0, -1.0, 0), "across": (1.0, -1.0, 0)}
NORMS = {LaplaceMechanism: 1, GeometricMechanism: 1, LaplaceNoise: 1}


def table_of(person, n_rows):
    """Return a table of ten persons, of whom the last has some rows of a kind."""
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 5, OTHERS)
    others = np.column_stack([rng.uniform(-1, 1, (counts.sum(), 2)), np.arange(counts.sum()) % 2])
    kinds = list(CORNERS.values()) if person == "mixed" else [CORNERS[person]]
    own = np.resize(np.array(kinds), (n_rows, 3))
    rows = np.vstack([others, own])
    ids = np.append(np.repeat(np.arange(OTHERS), counts), np.full(n_rows, OTHERS))
    order = rng.permutation(len(rows))
    return rows[order, :2], rows[order, 2].astype(int), ids[order]


def accountant_of(unit="person", relation="add_remove"):
    return PrivacyAccountant(1e6, 0.5, unit=unit, relation=relation)


def as_lists(value):
    """Return arrays as lists, those of arrays too: so they can be compared."""
    if isinstance(value, np.ndarray | list | tuple):
        return [as_lists(each) for each in value]
    return value


def run(call, X, y, accountant=None, **groups):
    """Return what an estimator publishes, or what a statistic returns."""
    if not isinstance(call, BaseEstimator):
        return {"": as_lists(call(X, axis=0, accountant=accountant, random_state=0, **groups))}
    model = clone(call).set_params(accountant=accountant, random_state=0).fit(X, y, **groups)
    for name in {"shape_functions_", "trees_"} & vars(model).keys():
        setattr(model, name, [vars(each) for each in getattr(model, name)])
    found = {name: getattr(model, name) for name in fitted_names(model) if name != "privacy_"}
    return {name: as_lists(value) for name, value in found.items()}


def first_release(monkeypatch, call, table, relation, *, n_persons=OTHERS + 1, row_weights=None):
    """Return the norm, the sensitivity and the exact values of the first release."""
    records = []

    def reading(groups, n_rows, missing):
        persons = replace(read_persons(groups, n_rows, missing), n_persons=n_persons)
        if row_weights is None:
            return persons
        return replace(persons, row_weights=row_weights * np.ones(n_rows))

    def recording(kind, name):
        released = getattr(kind, name)

        def recorded(self, values, *args, **kwargs):
            sensitivity = getattr(self, "sensitivity", None)
            records.append((NORMS.get(kind, 2), sensitivity, np.array(values, dtype=float)))
            return released(self, values, *args, **kwargs)

        patch.setattr(kind, name, recorded)

    with monkeypatch.context() as patch:
        patch.setattr("skdp._fitting._release_context.read_persons", reading)
        for kind in (LaplaceMechanism, GaussianMechanism, GammaNormMechanism, GeometricMechanism):
            recording(kind, "release")
        for kind in (GaussianNoise, LaplaceNoise):
            recording(kind, "add")
        X, y, groups = table
        run(call, X, y, accountant_of(relation=relation), groups=groups)
    return records[0]


def largest_moves(monkeypatch, call, relation, sizes, persons, **wrong):
    """Return how far a person moves the first release at most, over the claim, by its rows."""
    found = {
        (n, person): first_release(monkeypatch, call, table_of(person, n), relation, **wrong)
        for n in sizes
        for person in persons
    }
    X, y, ids = table_of("high", 1)
    null = tuple(values[ids < OTHERS] for values in (X, y, ids))
    absent = {(0, "null"): first_release(monkeypatch, call, null, relation, **wrong)}
    neighbors = absent if relation == "add_remove" else found
    norm, sensitivity, _ = absent[0, "null"]
    assert all(each[1] == sensitivity for each in found.values())
    return {
        size: max(
            np.linalg.norm(np.ravel(one - other), norm) / sensitivity
            for (n, _), (_, _, one) in found.items()
            for _, _, other in neighbors.values()
            if n == size
        )
        for size in sizes
    }


# Chooses quantiles, and within an interval by the values there.
NOT_REPLAYED = {"bins"}
CHECKED = {
    "logistic, checked": DPLogisticRegression(mechanism="gradient"),
    "logistic, objective": DPLogisticRegression(mechanism="objective"),
    "svc, checked": DPLinearSVC(),
    "crosstab": lambda X, axis, **terms: stats.dp_crosstab(
        *X.T[:2], epsilon=0.01, categories=([-1.0, 1.0], [-1.0, 1.0]), **terms
    ),
}


def tables_of(n_persons, n_columns, n_rows):
    """Return a table of persons of one row each, and one in which the last has that row often."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], size=(n_persons, n_columns))
    y = rng.integers(0, 2, n_persons)
    places = np.append(np.arange(n_persons), np.full(n_rows - 1, n_persons - 1))
    return (X, y, np.arange(n_persons)), (X[places], y[places], places)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("name", "tables"),
    [(name, (60, 2, 600)) for name in CALLS if name not in NOT_REPLAYED]
    + [(name, (400, 20, 20_000)) for name in CHECKED],
)
def test_what_is_not_released_does_not_follow_the_rows_of_a_person(name, tables):
    """The number of rows is not public: with the same releases a fit is the same."""
    call = (CALLS | CHECKED)[name]
    one, other = replayed(
        *(partial(run, call, X, y, accountant_of(), groups=ids) for X, y, ids in tables_of(*tables))
    )
    np.testing.assert_equal(other, one)


def each(names):
    """Return names as a test's parameters, most of them slow ones."""
    return [
        pytest.param(name, marks=[] if name in FAST else [pytest.mark.slow], id=name)
        for name in names
    ]


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", sorted(FAST))
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_a_person_moves_a_release_by_what_a_row_does(name, relation, monkeypatch):
    moves = largest_moves(monkeypatch, CALLS[name], relation, (1, 500), ["high", "low"])
    assert max(moves.values()) <= 1.0
    assert moves[500] >= 0.9 * moves[1]


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", CALLS)
def test_a_person_of_any_number_of_rows_moves_a_release_by_what_a_row_does(
    name, relation, monkeypatch
):
    if name == "means, noisy count" and relation == "replace_one":
        pytest.skip("it is refused")
    moves = largest_moves(monkeypatch, CALLS[name], relation, (1, 2, 7, 500), [*CORNERS, "mixed"])
    assert max(moves.values()) <= 1.0
    assert max(moves[7], moves[500]) >= 0.9 * moves[1]


@pytest.mark.parametrize("name", each(CALLS))
def test_rows_that_count_one_each_are_noticed(name, monkeypatch):
    moves = largest_moves(
        monkeypatch, CALLS[name], "add_remove", (1, 40), CORNERS, row_weights=1.0, n_persons=99
    )
    assert moves[40] > 1.0 and moves[40] > 5.0 * moves[1]


@pytest.mark.parametrize("name", each([*(c for c in CALLS if c not in WHOLE | RANKED), *SAMPLED]))
def test_with_one_row_a_person_values_and_cost_are_those_of_rows(name):
    call = (CALLS | SAMPLED)[name]
    X, y, _ = table_of("high", 4)
    ids = [f"person {7 * i % 31}" for i in range(len(X))]
    of_rows, of_persons = accountant_of("row"), accountant_of()
    one = run(call, X, y, of_rows)
    other = run(call, X, y, of_persons, groups=ids)
    assert one.keys() == other.keys() and of_rows.charges[0].event == of_persons.charges[0].event
    np.testing.assert_equal(one, other)
    assert of_rows.epsilon_spent == of_persons.epsilon_spent > 0.0


@pytest.mark.parametrize("name", each([*CALLS, *SAMPLED, *OBJECTIVE, *REFUSED]))
def test_what_is_refused_costs_nothing(name):
    call = (CALLS | SAMPLED | OBJECTIVE | REFUSED)[name]
    X, y, ids = table_of("high", 3)
    person, row, group = (
        accountant_of(),
        accountant_of("row"),
        PrivacyAccountant(1e6, 0.5, unit="group", max_rows=3),
    )
    with pytest.raises(ValueError, match="pass groups"):
        run(call, np.sign(X), y, person)
    for other in (row, group):
        with pytest.raises(ValueError, match="unit='person'"):
            run(call, np.sign(X), y, other, groups=ids)
    if name in REFUSED:
        for accountant in (person, None):
            with pytest.raises(ValueError, match="no release whose unit is a person"):
                run(call, np.sign(X), y, accountant, groups=ids)
    missing = [None, *ids[1:].tolist()]
    for groups in (missing, ids[1:]):
        with pytest.raises(ValueError):
            run(call, X, y, person, groups=groups)
    assert [a.epsilon_spent for a in (person, row, group)] == [0.0, 0.0, 0.0]


def test_an_additive_model_finds_the_categories_of_persons():
    """500 values are one person's, of whom one counts; it is found with a probability of 1e-5."""
    ids = np.append(np.arange(600) // 2, np.full(500, 300))
    X = np.append(np.where(ids[:600] % 2, "a", "b"), [f"own {i}" for i in range(500)])[:, None]
    model = DPAdditiveClassifier(
        20.0, categories=["auto"], delta=1e-4, random_state=0, accountant=accountant_of()
    )
    model.fit(X.astype(object), ids % 2, groups=ids)
    assert list(model.shape_functions_[0].edges[0]) == ["a", "b"]


def test_shares_add_up_to_one_at_most_and_a_single_rows_is_one():
    counts = [1, 2, 3, 5, 10, 11, 500, 4097]
    persons = read_persons(np.repeat(np.arange(len(counts)), counts), sum(counts))
    totals = np.bincount(persons.codes, persons.row_weights)
    assert persons.n_persons == len(counts) and totals[0] == 1.0
    assert (totals <= 1.0).all() and (totals > 1.0 - 2.0**-13).all()
    np.testing.assert_array_equal(persons.row_weights % 2.0**-26, 0.0)
    assert persons.row_weights[0] == 1.0


def test_batches_are_of_whole_persons():
    ids = np.random.default_rng(0).integers(0, 40, 300)
    persons = read_persons(ids, 300)
    for some in ([], [0], [3, 17, persons.n_persons - 1]):
        rows = persons.rows_of(np.array(some, dtype=np.int64))
        np.testing.assert_array_equal(rows, np.flatnonzero(np.isin(persons.codes, some)))
    alone = read_persons(np.random.default_rng(1).permutation(50), 50)
    np.testing.assert_array_equal(alone.rows_of(np.array([2, 7, 49])), [2, 7, 49])


@pytest.mark.parametrize(
    "odd", [7.5, "x", b"x", Decimal("0.5"), (1, 2), np.datetime64("2020-01-01")]
)
def test_an_id_of_another_type_changes_no_others(odd):
    """The ids 3, 3.0 and np.int8(3) are one person's, as labels are equal."""
    ids = [3, "a", 3.0, "b", np.int8(3), "a", 10**30]
    plain, mixed = read_persons([*ids, "c"], 8), read_persons([*ids, odd], 8)
    np.testing.assert_array_equal(plain.codes, [0, 1, 0, 2, 0, 1, 3, 4])
    np.testing.assert_array_equal(mixed.codes, plain.codes)
    as_strings, as_numbers = np.array(["p", "q", "p"]), np.array([5.0, -1.0, 5.0])
    for column in (as_strings, as_numbers, as_strings.astype(object), list("pqp")):
        np.testing.assert_array_equal(read_persons(column, 3).codes, [0, 1, 0])


@pytest.mark.parametrize("missing", [None, np.nan, np.datetime64("NaT")])
def test_a_missing_id_is_refused_without_a_word_of_others(missing):
    with pytest.raises(ValueError, match="missing_ids='distinct'") as caught:
        read_persons(["secret name", missing], 2)
    assert "secret" not in str(caught.value)


def test_a_masked_id_is_missing():
    ids = np.ma.array([1, 2], mask=[False, True])
    with pytest.raises(ValueError, match="missing_ids='distinct'"):
        read_persons(ids, 2)
    np.testing.assert_array_equal(read_persons(ids, 2, "distinct").codes, [0, 1])
    assert read_persons(np.ma.array([1, 2]), 2).n_persons == 2


def test_missing_ids_can_be_declared_to_be_distinct_persons(tmp_path):
    X = np.tile([[1.0, -1.0]], (6, 1))
    ledger, declared = tmp_path / "ledger.db", {"missing_ids": "distinct"}
    accountant = PrivacyAccountant(9.0, 0.0, unit="person", ledger=ledger, **declared)
    for ids in (["a", None, "a", np.nan, None, "b"], np.array([1, np.nan, 1, np.nan, np.nan, 2])):
        persons = read_persons(ids, 6, "distinct")
        np.testing.assert_array_equal(persons.codes, [0, 1, 0, 2, 3, 4])
        np.testing.assert_array_equal(persons.row_weights, [0.5, 1.0, 0.5, 1.0, 1.0, 1.0])
        scaler = DPStandardScaler(**BOUNDS, accountant=accountant).fit(X, groups=ids)
        assert "declared to belong to distinct persons" in scaler.privacy_.unit
    assert "to distinct persons" in str(accountant.report())
    assert read_persons([None, np.nan, None], 3, "distinct").n_persons == 3
    # What is no id, though it is there, is refused; and so are folds, which only ids can name.
    with pytest.raises(ValueError, match="another type") as refused:
        read_persons(["a", [1], None], 3, "distinct")
    # It does not advise what is declared.
    assert "missing_ids" not in str(refused.value)
    for cv in (2, PersonKFold(2)):
        with pytest.raises(ValueError, match="missing, .*: leave such rows out$"):
            model = DPLogisticRegression()
            y = np.arange(6) % 2
            dp_cross_val_score(model, X, y, groups=ids, cv=cv, accountant=accountant)
    assert accountant.epsilon_spent == 2.0
    with pytest.raises(LedgerError, match="another configuration"):
        PrivacyAccountant(9.0, 0.0, unit="person", ledger=ledger)
    with pytest.raises(ValueError, match="unit='person'"):
        PrivacyAccountant(9.0, 0.0, **declared)
    with pytest.raises(ValueError, match="missing_ids"):
        PrivacyAccountant(9.0, 0.0, unit="person", missing_ids="ignore")


def test_the_statement_is_of_persons_and_no_attribute_holds_an_id_or_the_number_of_rows():
    X, y, _ = table_of("high", 7)
    ids = [f"person-{i % 10}" for i in range(len(X))]
    for accountant in (accountant_of(), None):
        scaler = DPStandardScaler(**BOUNDS, accountant=accountant).fit(X, groups=ids)
        statement = scaler.privacy_
        assert statement.unit == "person, however many rows each has"
        assert statement.sampler == "all persons, once"
        assert statement.public == ("the numbers of persons and columns", "bounds")
        assert "person-" not in repr(scaler.__getstate__())
    accountant = accountant_of()
    run(DPStandardScaler(**BOUNDS), X, y, accountant, groups=ids)
    assert "person-" not in str(accountant.report().to_dict())


@pytest.mark.parametrize("relation, multiplier", SAMPLED_NOISE.items())
def test_sampled_persons_are_priced_by_their_number(relation, multiplier):
    """100 batches of 50 of 1,000 persons; the number of rows, about 2,500, has no say."""
    ids = np.repeat(np.arange(1000), np.random.default_rng(0).integers(1, 5, 1000))
    X = np.random.default_rng(1).uniform(-1.0, 1.0, (len(ids), 2))
    accountant = accountant_of(relation=relation)
    options = {"batch_size": 50, "max_iter": 5, "data_norm": 2.0, "accountant": accountant}
    for delta, sampling in ((1e-6, "poisson"), (0.0, "without_replacement")):
        model = DPSGDClassifier(1.0, delta=delta, sampling=sampling, **options, **NO_INTERCEPT)
        model.fit(X, (X[:, 0] > 0).astype(int), groups=ids)
    poisson, fixed = (spend.event for spend in accountant.charges)
    noise = poisson.event.event.noise_multiplier
    assert multiplier <= noise * (1 + 1e-6) and noise <= multiplier * (1 + 1e-3)
    assert poisson == PoissonSampled(0.05, Gaussian(noise)) * 100
    # Balle, Barthe and Gaboardi (2018): each step costs ln(1 + m/n (e^(2 epsilon_0) - 1)).
    least = math.log1p((math.exp(0.01) - 1.0) * 1000 / 50) / 2
    assert fixed.event.event.epsilon == pytest.approx(least, rel=1e-9)
    assert fixed == SampledWithoutReplacement(1000, 50, fixed.event.event) * 100


def test_a_ledger_has_one_unit(tmp_path):
    address = str(tmp_path / "budget.db")
    PrivacyAccountant(1.0, 1e-6, unit="person", ledger=address)
    for other in ({"unit": "row"}, {"unit": "group", "max_rows": 2}):
        with pytest.raises(LedgerError):
            PrivacyAccountant(1.0, 1e-6, ledger=address, **other)
    assert PrivacyAccountant(1.0, 1e-6, unit="person", ledger=address).unit == "person"
    with pytest.raises(ValueError, match="max_rows"):
        Neighbors(unit="person", max_rows=2)


def test_parts_of_rows_add_up_where_any_part_may_hold_rows_of_a_person():
    accountant = PrivacyAccountant(3.0, 0.0, unit="person")
    for part in accountant.disjoint("months", 3):
        part.charge(PureDP(1.0))
    assert accountant.epsilon_spent == 3.0


def test_groups_are_routed_where_the_unit_is_a_person_unless_it_is_said_otherwise():
    X, y, ids = table_of("high", 4)

    def request(model, method="fit"):
        return getattr(model.get_metadata_routing(), method).requests["groups"]

    assert request(DPStandardScaler()) is False
    assert request(DPStandardScaler(accountant=accountant_of("row"))) is False
    assert request(DPSGDClassifier(accountant=accountant_of()), "partial_fit") is True
    with config_context(enable_metadata_routing=True):
        scaler = DPStandardScaler(**BOUNDS, accountant=accountant_of())
        model = DPLogisticRegression(mechanism="output", accountant=scaler.accountant)
        assert request(clone(model)) is True
        pipe = make_pipeline(scaler, model).fit(X, y, groups=ids)
        assert pipe[-1].privacy_.unit == pipe[0].privacy_.unit != "row"
        assert request(model.set_fit_request(groups=False)) is False
        assert request(DPStandardScaler().set_fit_request(groups="patient")) == "patient"
        plain = make_pipeline(StandardScaler(), DPLogisticRegression(mechanism="output"))
        cross_val_score(plain, X, y, cv=GroupKFold(2), params={"groups": ids})


@pytest.mark.parametrize("unit", ["row", "person"])
def test_a_fitted_pipeline_scores_with_routing_where_its_ledger_is_not(tmp_path, unit):
    X, y, ids = table_of("high", 4)
    groups = {"groups": ids} if unit == "person" else {}
    accountant = PrivacyAccountant(1e3, 1e-3, unit=unit, ledger=tmp_path / "ledger.db")
    scaler = DPStandardScaler(**BOUNDS, accountant=accountant)
    model = DPLogisticRegression(mechanism="output", accountant=accountant)
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(scaler, model).fit(X, y, **groups)
        (tmp_path / "ledger.db").unlink()
        assert pipe.score(X, y) == np.mean(pipe.predict(X) == y)
        # It is a sentence of the ledger, with groups as without.
        for given in ({}, {"groups": ids}):
            with pytest.raises(LedgerError, match="ledger"):
                pipe.fit(X, y, **given)


def test_partial_fit_takes_groups():
    X, y, ids = table_of("high", 4)
    model = DPSGDClassifier(accountant=accountant_of(), max_iter=2)
    model.partial_fit(X, y, classes=[0, 1], groups=ids).partial_fit(X, y, groups=ids)
    assert model.privacy_.unit.startswith("person") and model.n_partial_fits_ == 2
    with pytest.raises(ValueError, match="pass groups"):
        model.partial_fit(X, y)
    regressor = DPSGDRegressor(target_bounds=(0, 1), max_iter=2)
    assert regressor.partial_fit(X, y, groups=ids).privacy_.unit.startswith("person")


def test_the_number_of_rows_does_not_say_how_an_additive_model_rounds_the_scores_of_others(
    monkeypatch,
):
    packs = []
    monkeypatch.setattr(
        "skdp.gam._descent.residual_sums",
        lambda cells, layout, residuals, weights, step: (
            packs.append(list(cells._groups)) or np.zeros(weights.shape)
        ),
    )
    labels = list(range(8))
    model = DPAdditiveClassifier(
        delta=1e-6, categories={0: labels, 1: labels}, interactions=[(0, 1)], random_state=0
    )
    for own in (1, 500):
        groups = np.repeat(np.arange(40), [own] + [1] * 39)
        X = np.column_stack([groups % 8, groups % 7])
        model.fit(X, groups % 2, groups=groups)
    assert all(each == packs[0] for each in packs)
