"""A first look at a table: sensitivities, the price of all stages, and what the document says."""

import json
import math
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.stats import norm

from skdp import (
    BudgetExceededError,
    DPAdditiveClassifier,
    DPTableVectorizer,
    PrivacyAccountant,
    stats,
)
from skdp.accounting import ApproximateDP, Gaussian, get_epsilon
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from skdp.noise import RandomSource
from skdp.stats import dp_describe
from skdp.stats._column_plan import plan_columns
from skdp.stats._count_tree import CountTree
from skdp.stats._describe_plan import DescriptionFit
from skdp.stats._profile_columns import critical_value
from tests._attacks import epsilon_lower_bound
from tests._guarantees import meet
from tests._private import declared_columns, read_kinds, read_persons

RELATIONS = ["add_remove", "replace_one"]
BOUNDS = {"size": (0.0, 10.0), "rooms": (0, 40)}
CATEGORIES = {"color": ["red", "green", "blue"]}
NAMES = ["size", "rooms", "color", "new"]


def make_frame(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.gamma(2.0, 1.5, size=n)
    frame = pd.DataFrame(
        {
            "size": size,
            "rooms": np.minimum(rng.poisson(1.0 + 3.0 * size), 60),
            "color": rng.choice(["red", "green", "blue", "gray"], p=[0.5, 0.3, 0.15, 0.05], size=n),
            "new": rng.uniform(size=n) < 0.3,
        }
    )
    frame.loc[rng.uniform(size=n) < 0.1, "size"] = np.nan
    return frame


def make_plan(n, guarantee, bounds=BOUNDS, categories=CATEGORIES, **params):
    kinds = ["number", "number", "label", "boolean"]
    return DescriptionFit(
        columns=declared_columns(kinds, bounds, categories, np.array(NAMES)),
        n_rows=n,
        n_bins=8,
        guarantee=guarantee,
        is_integer=(False, True, False, False),
        **params,
    )


class Reader:
    """What `read_kinds` needs of an estimator."""

    def __sklearn_tags__(self):
        return DPTableVectorizer().__sklearn_tags__()


class Recorder:
    """Replaces the noise of mechanisms: keeps the exact values, and returns fixed ones."""

    def __init__(self, monkeypatch, answers=()):
        self.exact = []
        self.answers = list(answers)

        def release(mechanism, values, *, random_state=None):
            values = np.asarray(values, dtype=np.float64)
            self.exact.append((mechanism, values.copy()))
            k = len(self.exact) - 1
            return self.answers[k] if k < len(self.answers) else values

        for cls in (GaussianMechanism, LaplaceMechanism):
            monkeypatch.setattr(cls, "release", release)


def exact_values(monkeypatch, plan, frame, groups=None, answers=()):
    """Return the mechanism and the exact values of each release of a plan."""
    recorder = Recorder(monkeypatch, answers)
    table, _ = read_kinds(Reader(), frame)
    persons = None if groups is None else read_persons(groups, len(frame))
    plan.run(table, RandomSource(0), persons)
    return recorder.exact


def neighbors(frame, relation, rng):
    """Yield tables with a row less, or with an extreme row in the place of one."""
    rows = [
        {"size": 99.0, "rooms": 99, "color": "blue", "new": True},
        {"size": np.nan, "rooms": 0, "color": None, "new": False},
        {"size": 0.0, "rooms": 7, "color": "other", "new": True},
    ]
    for i in rng.choice(len(frame), 8, replace=False):
        rest = frame.drop(index=frame.index[i])
        if relation == "add_remove":
            yield rest
            continue
        for row in rows:
            yield pd.concat([rest, pd.DataFrame([row])], ignore_index=True)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_every_stage(monkeypatch, relation, delta):
    rng = np.random.default_rng(0)
    frame = make_frame(60)
    plan = make_plan(60, meet(200.0, delta, relation))
    assert plan.releases_scores
    base = exact_values(monkeypatch, plan, frame)
    answers = [values for _, values in base]
    largest = np.zeros(2)
    for neighbor in neighbors(frame, relation, rng):
        # The stage after the counts reads what they released, which is the same for both tables.
        moved = exact_values(monkeypatch, plan, neighbor, answers=answers)
        assert len(moved) == len(base) == 2
        for k, ((mechanism, exact), (_, other)) in enumerate(zip(base, moved, strict=True)):
            move = np.linalg.norm((exact - other).ravel(), 2 if delta else 1)
            assert move <= mechanism.sensitivity
            largest[k] = max(largest[k], move / mechanism.sensitivity)
    assert largest[0] > 0.7
    assert largest[1] > 0.6


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_worst_row_moves_every_stage_by_the_claim(monkeypatch, relation):
    """Rows of one value each: where a row goes, it changes one entry of every table."""
    frame = pd.DataFrame({"size": [9.0] * 50, "rooms": 39, "color": "blue", "new": True})
    other = pd.DataFrame([{"size": 0.5, "rooms": 0, "color": "red", "new": False}])
    plan = make_plan(50, meet(200.0, 1e-6, relation))
    first = exact_values(monkeypatch, plan, frame)
    neighbor = frame.iloc[:-1]
    if relation == "replace_one":
        neighbor = pd.concat([neighbor, other], ignore_index=True)
    answers = [values for _, values in first]
    second = exact_values(monkeypatch, plan, neighbor, answers=answers)
    for (mechanism, exact), (_, moved) in zip(first, second, strict=True):
        move = np.linalg.norm((exact - moved).ravel())
        # Columns of few integers have fewer levels than are charged for.
        assert 0.85 * mechanism.sensitivity < move <= mechanism.sensitivity


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_person_moves_no_more_than_a_row(monkeypatch, relation):
    rng = np.random.default_rng(1)
    frame = make_frame(80)
    ids = np.repeat(np.arange(20), 4)
    guarantee = meet(200.0, 1e-6, relation)
    guarantee = replace(guarantee, neighbors=replace(guarantee.neighbors, unit="person"))
    plan = make_plan(20, guarantee)
    base = exact_values(monkeypatch, plan, frame, ids)
    answers = [values for _, values in base]
    largest = 0.0
    for person in rng.choice(20, 6, replace=False):
        keep = ids != person
        neighbor, others = frame[keep], ids[keep]
        if relation == "replace_one":
            new = make_frame(7, seed=int(person)).assign(size=99.0)
            neighbor = pd.concat([neighbor, new], ignore_index=True)
            others = np.append(others, np.full(7, 99))
        moved = exact_values(monkeypatch, plan, neighbor, others, answers=answers)
        for (mechanism, exact), (_, values) in zip(base, moved, strict=True):
            move = np.linalg.norm((exact - values).ravel())
            assert move <= mechanism.sensitivity
            largest = max(largest, move / mechanism.sensitivity)
    assert largest > 0.5


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n", [30, 3000, 300_000])
def test_all_stages_together_are_the_event(relation, n):
    """Gaussian stages whose mu squared add up to that of the event, and a part of delta."""
    for bounds, categories in ((BOUNDS, CATEGORIES), ("auto", "auto"), (BOUNDS, "auto")):
        plan = make_plan(n, meet(1.0, 1e-6, relation), bounds, categories)
        assert get_epsilon(plan_columns(plan).event, 1e-6) <= 1.0 + 1e-9
        mu_squared, failure = 0.0, 0.0
        for stage in plan.stages:
            for event in getattr(stage.event, "events", (stage.event,)):
                if isinstance(event, ApproximateDP):
                    failure += event.delta
                else:
                    assert isinstance(event, Gaussian)
                    mu_squared += event.noise_multiplier**-2
        assert mu_squared <= plan.budget.multiplier**-2 * (1.0 + 1e-12)
        assert mu_squared > 0.99 * plan.budget.multiplier**-2
        assert failure == (1e-7 if categories == "auto" else 0.0)


@pytest.mark.parametrize("relation", RELATIONS)
def test_stages_add_up_to_epsilon_without_delta(relation):
    plan = make_plan(3000, meet(1.0, 0.0, relation), "auto")
    assert 0.99 < sum(get_epsilon(stage.event, 0.0) for stage in plan.stages) <= 1.0


def test_scores_are_left_out_by_public_facts_only():
    assert not make_plan(40, meet(0.5, 1e-6, "add_remove")).releases_scores
    large = make_plan(40_000, meet(0.5, 1e-6, "add_remove"))
    assert large.releases_scores
    assert not replace(large, uses_associations=False).releases_scores
    fractions = make_plan(40, meet(0.5, 1e-6, "add_remove")).budget_fractions
    assert fractions["pair_scores"] == 0.0
    assert 0.999 < sum(fractions.values()) <= 1.0


def describe(frame, epsilon=1e6, delta=1e-6, **params):
    params = {"bounds": BOUNDS, "categories": CATEGORIES} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dp_describe(frame, epsilon=epsilon, delta=delta, **params)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_without_noise_it_is_the_description_of_the_rows(delta):
    frame = make_frame()
    profile = describe(frame, epsilon=1e9, delta=delta)
    size = np.clip(frame["size"].dropna(), 0.0, 10.0)
    column = profile["size"]
    assert column.missing == pytest.approx(frame["size"].isna().mean(), abs=1e-6)
    assert column.mean == pytest.approx(size.mean(), abs=0.02)
    assert column.std == pytest.approx(size.std(), abs=0.02)
    for fraction, value in column.quantiles.items():
        assert value == pytest.approx(size.quantile(fraction), abs=0.03)
        low, high = column.quantile_intervals[fraction]
        assert low <= size.quantile(fraction) <= high
    histogram = column.histogram
    edges = np.append(histogram.edges[:-1], np.inf)
    np.testing.assert_allclose(histogram.counts, np.histogram(size, edges)[0], atol=0.01)
    rooms = np.clip(frame["rooms"], 0, 40)
    assert profile["rooms"].quantiles[0.5] == rooms.median()
    assert profile["rooms"].mean == pytest.approx(rooms.mean(), abs=1e-3)
    color = profile["color"]
    assert color.categories == ["red", "green", "blue"]
    counts = [(frame["color"] == label).sum() for label in color.categories]
    np.testing.assert_allclose(color.counts, counts, atol=0.01)
    assert color.other == pytest.approx((frame["color"] == "gray").mean(), abs=1e-5)
    assert profile["new"].frequencies.sum() == pytest.approx(1.0, abs=1e-6)
    values = {a.columns: a for a in profile.associations}
    assert values["size", "rooms"].is_visible
    assert not values["color", "new"].is_visible
    assert values["size", "rooms"].value > 0.3 > values["size", "color"].value


def test_integers_are_whole_and_their_bins_hold_whole_numbers():
    profile = describe(make_frame(), epsilon=1.0)
    column = profile["rooms"]
    assert all(isinstance(value, int) for value in column.quantiles.values())
    edges = column.histogram.edges
    assert (edges % 1.0 == 0.5).all()
    assert len(set(np.diff(edges))) == 1
    wide = pd.DataFrame({"gain": [0] * 900 + [12_345] * 100})
    column = dp_describe(wide, epsilon=1e4, delta=1e-6, bounds=(0, 100_000))["gain"]
    assert column.quantiles[0.5] == 0
    assert column.quantile_intervals[0.5] == (0, 0)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_numbers_are_within_three_standard_errors(relation, delta):
    frame = make_frame(8000)
    exact = describe(frame, epsilon=1e9, delta=delta)
    beyond = []
    for seed in range(8):
        accountant = PrivacyAccountant(10.0, 1e-3, relation=relation)
        profile = describe(
            frame, epsilon=2.0, delta=delta, accountant=accountant, random_state=seed
        )
        for name in ("color", "new"):
            column = profile[name]
            true = dict(zip(exact[name].categories, exact[name].counts, strict=True))
            errors = [c - true[k] for k, c in zip(column.categories, column.counts, strict=True)]
            beyond.extend(np.abs(errors) > 3.0 * column.count_std)
        for name in ("size", "rooms"):
            column = profile[name]
            beyond.append(abs(column.missing - exact[name].missing) > 3.0 * column.missing_std)
            beyond.append(abs(column.mean - exact[name].mean) > 3.0 * column.mean_std)
            for fraction, (low, high) in column.quantile_intervals.items():
                beyond.append(not low <= exact[name].quantiles[fraction] <= high)
    # Laplace noise has 1.4 % beyond three standard deviations.
    assert np.mean(beyond) < (0.02 if delta else 0.04)


def test_independent_columns_have_no_visible_association():
    rng = np.random.default_rng(0)
    n = 6000
    frame = pd.DataFrame(
        {
            "skewed": rng.gamma(0.5, 2.0, size=n),
            "zeros": np.where(rng.uniform(size=n) < 0.05, rng.exponential(size=n), 0.0),
            "label": rng.choice(list("abcdef"), p=[0.4, 0.3, 0.15, 0.1, 0.04, 0.01], size=n),
            "flag": rng.uniform(size=n) < 0.5,
        }
    )
    n_visible = 0
    for seed in range(15):
        profile = describe(frame, epsilon=1.0, bounds="auto", categories="auto", random_state=seed)
        assert len(profile.associations) == 6
        n_visible += sum(a.is_visible for a in profile.associations)
    # The probability of one in a table is at most 5 %.
    assert n_visible <= 3


def test_bands_contain_all_bins_at_once():
    """Of 200 tables, about 5 % have a bin outside its band."""
    rng = np.random.default_rng(0)
    exact = rng.multinomial(3000, np.full(16, 1 / 16)).astype(np.float64)
    counts = np.append(np.concatenate([exact.reshape(-1, 2**k).sum(1) for k in range(4)]), 50.0)
    margin = critical_value(16, is_gaussian=True)
    outside = []
    for _ in range(400):
        tree = CountTree(counts + rng.normal(0.0, 10.0, size=len(counts)), 10.0, 3050)
        estimates, stds = tree.bin_counts(4)
        outside.append((np.abs(estimates - exact) > margin * stds).any())
    assert 0.015 < np.mean(outside) < 0.1


def test_standard_deviations_of_trees_are_those_of_simulations():
    rng = np.random.default_rng(1)
    exact = rng.multinomial(5000, rng.dirichlet(np.full(32, 2.0))).astype(np.float64)
    for coarsest in (1, 3, 5):
        levels = [exact.reshape(-1, 2**k).sum(1) for k in range(6 - coarsest)]
        counts = np.append(np.concatenate(levels), 200.0)
        totals, bins, last, ranks, means = [], [], [], [], []
        centers = np.linspace(0.0, 3.0, 32) ** 2
        for _ in range(1000):
            tree = CountTree(counts + rng.normal(0.0, 5.0, len(counts)), 5.0, 5200, coarsest)
            totals.append(tree.total)
            bins.append(tree.linear_counts.reshape(8, -1).sum(axis=1))
            last.append(bins[-1][5:].sum())
            below = np.append(0.0, np.cumsum(tree.linear_counts))
            ranks.append(below - 0.3 * tree._total[0])
            means.append(centers.dot(tree.linear_counts) / tree.linear_counts.sum())
        assert np.std(totals) == pytest.approx(tree.total_std, rel=0.1)
        _, stds = tree.bin_counts(3, 6)
        assert np.std(bins, axis=0).mean() == pytest.approx(stds[0], rel=0.1)
        assert np.std(last) == pytest.approx(stds[-1], rel=0.1)
        assert np.std(means) == pytest.approx(tree.mean_std(centers, np.mean(means)), rel=0.07)
        np.testing.assert_allclose(np.std(ranks, axis=0), tree.rank_stds(0.3), rtol=0.12, atol=0.1)


def test_critical_values():
    assert critical_value(1, is_gaussian=True) == pytest.approx(norm.ppf(0.975))
    z = critical_value(20, is_gaussian=True)
    assert (2.0 * norm.cdf(z) - 1.0) ** 20 == pytest.approx(0.95)
    laplace = critical_value(20, is_gaussian=False)
    assert 20 * math.exp(-math.sqrt(2.0) * laplace) == pytest.approx(0.05)


def containers(frame, path):
    """Yield the table in several containers."""
    yield "polars", pl.from_pandas(frame)
    yield "pyarrow", pa.Table.from_pandas(frame)
    dask_frame = pytest.importorskip("dask.dataframe")
    yield "dask", dask_frame.from_pandas(frame, npartitions=3)
    parquet.write_table(pa.Table.from_pandas(frame), path / "rows.parquet", row_group_size=499)
    yield "parquet", path / "rows.parquet"


def test_every_container_gives_the_same_release(tmp_path):
    frame = make_frame(1500)
    ids = np.arange(len(frame)) // 3
    for params in ({}, {"groups": ids, "bounds": "auto", "categories": "auto"}):
        expected = describe(frame, epsilon=1.0, random_state=3, **params).to_dict()
        expected.pop("privacy")
        for name, table in containers(frame, tmp_path):
            result = describe(table, epsilon=1.0, random_state=3, **params).to_dict()
            result.pop("privacy")
            assert result == expected, name


def test_arrays_are_described_by_position():
    X = np.random.default_rng(0).uniform(0.0, 1.0, size=(2000, 2))
    profile = dp_describe(X, epsilon=2.0, delta=1e-6, bounds=(0.0, 1.0))
    assert list(profile.columns) == [0, 1]
    assert profile.schema["bounds"] == {0: (0, 1), 1: (0, 1)}
    assert abs(profile[0].mean - 0.5) < 0.05


@pytest.mark.parametrize("kind", ["date", "bytes", "period", "tuple", "integer"])
def test_labels_of_every_type_become_json(kind):
    labels = {
        "date": list(pd.date_range("2020-01-01", periods=2)),
        "bytes": [b"a", b"b"],
        "period": list(pd.period_range("2020", periods=2, freq="Y")),
        "tuple": [("a", 1), ("b", 2)],
        "integer": [np.int64(3), np.int64(1)],
    }[kind]
    frame = pd.DataFrame(np.random.default_rng(0).random((500, 2)))
    frame.columns = pd.Index(labels, tupleize_cols=False)
    profile = dp_describe(frame, epsilon=5.0, delta=1e-6, bounds=(0, 1))
    assert list(json.loads(json.dumps(profile.to_dict()))["columns"]) == list(map(str, labels))


def test_dates_and_durations_have_their_types():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 3000), "D"),
            "wait": pd.to_timedelta(rng.exponential(30.0, 3000), "h"),
        }
    )
    profile = dp_describe(frame, epsilon=2.0, delta=1e-6)
    day, wait = profile["day"], profile["wait"]
    assert abs(day.quantiles[0.5] - np.datetime64("2021-03-25")) < np.timedelta64(60, "D")
    assert isinstance(wait.mean, np.timedelta64)
    assert day.bounds[0] < day.quantiles[0.05] < day.quantiles[0.95] < day.bounds[1]
    y = (frame["day"] > pd.Timestamp("2021-06-01")).to_numpy()
    model = DPAdditiveClassifier(5.0, delta=1e-6, **profile.schema).fit(frame, y)
    assert model.score(frame, y) > 0.8
    json.dumps(profile.to_dict())
    assert "2020" in str(profile)
    assert "days" not in repr(profile.schema)


def test_the_schema_is_for_fits_at_no_further_cost():
    frame = make_frame(20_000).assign(id=[f"c{i}" for i in range(20_000)])
    accountant = PrivacyAccountant(3.0, 1e-5, composition="zcdp")
    with pytest.warns(UserWarning, match="'id'"):
        profile = dp_describe(frame, epsilon=1.0, delta=1e-6, accountant=accountant)
    assert len(accountant.charges) == 1
    assert profile.schema.blanks == ["id"]
    schema = profile.schema.drop(["id", "new"])
    assert set(schema.bounds) == {"size", "rooms"}
    assert set(schema.categories["color"]) == {"red", "green", "blue", "gray"}
    X = frame.drop(columns=["id", "new"])
    model = DPAdditiveClassifier(
        1.0, delta=1e-6, bounds=schema.bounds, categories=schema.categories, accountant=accountant
    ).fit(X, frame["new"])
    assert len(accountant.charges) == 2
    names = [stage.name for stage in model.privacy_.stages]
    assert not any("bounds" in name or "categories" in name for name in names)


def test_it_is_one_charge_before_the_data():
    frame = make_frame()
    accountant = PrivacyAccountant(1.0, 1e-6)
    profile = describe(frame, epsilon=0.5, delta=1e-7, accountant=accountant)
    (charge,) = accountant.charges
    assert charge.label == "dp_describe"
    assert charge.epsilon == 0.5
    assert profile.privacy.epsilon == 0.5
    assert len(profile.privacy.stages) == 2
    with pytest.raises(BudgetExceededError):
        describe(frame, epsilon=0.6, delta=1e-7, accountant=accountant)
    assert len(accountant.charges) == 1


@pytest.mark.parametrize(
    "params, match",
    [
        ({"delta": 0.0, "categories": "auto"}, "delta"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"bounds": {"size": (3, 1)}}, "size"),
        ({"bounds": {"weight": (0, 1)}}, "weight"),
        ({"categories": {"color": []}}, "color"),
        ({"categories": {"color": [1, 2]}}, "color"),
        ({"associations": 1}, "associations"),
        ({"groups": [1, 2]}, "groups"),
    ],
)
def test_wrong_parameters_cost_nothing(params, match):
    accountant = PrivacyAccountant(10.0, 1e-3)
    params = {"epsilon": 1.0, "delta": 1e-6, "accountant": accountant} | params
    if "groups" in params:
        params["accountant"] = accountant = PrivacyAccountant(10.0, 1e-3, unit="person")
    with pytest.raises(ValueError, match=match):
        describe(make_frame(50), **params)
    assert not accountant.charges


def test_infinite_numbers_cost_nothing():
    frame = make_frame(100)
    frame.loc[3, "size"] = np.inf
    accountant = PrivacyAccountant(10.0, 1e-3)
    with pytest.raises(ValueError, match="size"):
        describe(frame, epsilon=1.0, accountant=accountant)
    assert not accountant.charges


def test_persons_count_once_and_rows_are_estimated():
    rng = np.random.default_rng(0)
    n_rows = rng.choice([1, 2, 5, 20], p=[0.5, 0.3, 0.15, 0.05], size=3000)
    ids = np.repeat(np.arange(3000), n_rows)
    age = np.repeat(rng.integers(20, 60, size=3000), n_rows)
    accountant = PrivacyAccountant(5.0, 1e-5, unit="person")
    profile = dp_describe(
        pd.DataFrame({"age": age}),
        epsilon=2.0,
        delta=1e-6,
        bounds=(18, 70),
        groups=ids,
        accountant=accountant,
    )
    assert profile.unit == "person"
    assert profile.n_units == 3000
    low, high = profile.n_rows_interval
    assert low <= len(ids) <= high
    assert profile.n_rows == pytest.approx(len(ids), rel=0.15)
    assert "3,000 persons" in str(profile)
    by_person = pd.Series(age).groupby(ids).first()
    assert profile["age"].mean == pytest.approx(by_person.mean(), abs=1.0)
    with pytest.raises(ValueError, match="groups are missing"):
        dp_describe(pd.DataFrame({"age": age}), epsilon=1.0, delta=1e-6, accountant=accountant)


def test_groups_of_rows_have_more_noise():
    frame = make_frame()
    single = describe(frame, epsilon=1.0)
    accountant = PrivacyAccountant(2.0, 1e-5, unit="group", max_rows=3)
    triple = describe(frame, epsilon=1.0, accountant=accountant)
    assert triple["new"].count_std > 2.5 * single["new"].count_std


def test_the_document_escapes_text_and_is_json():
    label = "<b>x</b>\n"
    frame = pd.DataFrame({"<i>name": [label, "y"] * 500, "n": np.arange(1000) % 7})
    profile = dp_describe(
        frame, epsilon=5.0, delta=1e-6, bounds={"n": (0, 6)}, categories={"<i>name": [label, "y"]}
    )
    html = profile._repr_html_()
    assert "<b>x" not in html
    assert "<i>name" not in html
    assert "<svg" in html
    assert repr(profile) == str(profile)
    assert "(5.0, 1e-06)" in str(profile) or "(5, 1e-06)" in str(profile)
    json.dumps(profile.to_dict())
    restored = pickle.loads(pickle.dumps(profile))
    assert str(restored) == str(profile)


def test_frames_of_the_profile():
    profile = describe(make_frame(), epsilon=2.0)
    columns = profile.to_pandas()
    assert list(columns.index) == NAMES
    assert {"missing", "mean", "mean_std", "50%", "low", "high"} <= set(columns.columns)
    cells = profile.to_pandas("cells")
    assert (cells["band_low"] <= cells["count"]).all()
    assert (cells["count"] <= cells["band_high"]).all()
    assert len(profile.to_pandas("associations")) == 6
    with pytest.raises(ValueError, match="table"):
        profile.to_pandas("rows")


def test_identifiers_and_empty_columns_are_described():
    n = 2000
    frame = pd.DataFrame(
        {"nothing": np.full(n, np.nan), "one": np.ones(n), "code": [f"k{i}" for i in range(n)]}
    )
    profile = describe(frame, epsilon=2.0, bounds="auto", categories="auto")
    assert profile["nothing"].missing > 0.9
    assert profile["code"].categories == []
    assert profile["code"].other > 0.9
    str(profile)
    profile._repr_html_()
    assert profile.to_pandas().loc["code", "categories"] == 0


def test_the_rows_of_a_person_are_priced():
    """A person is in one entry of the counts of each level, and in one of the rows per person."""
    by_person = make_plan(50, meet(5.0, 1e-6, unit="person"))
    by_row = make_plan(50, meet(5.0, 1e-6))
    squares = [plan._counts_mechanism.sensitivity**2 for plan in (by_person, by_row)]
    assert squares[0] - squares[1] == pytest.approx(1.0, abs=1e-9)


def test_no_exact_value_is_kept(monkeypatch):
    """Everything is a function of the noisy values: the exact ones are released by no mechanism."""
    frame = make_frame()
    profile = describe(frame, epsilon=1.0)
    exact = []
    for mechanism, values in exact_values(monkeypatch, make_plan(4000, meet(1.0, 1e-6)), frame):
        assert mechanism.scale > 1.0
        exact.append(values.ravel())
    for column in profile.columns.values():
        counts = column.counts if column.kind == "label" else column.histogram.counts
        inside = counts[(counts > 0.0) & (counts < 4000.0)]
        assert (inside != np.rint(inside)).all()


def test_scores_have_the_noise_of_their_mechanism(monkeypatch):
    """With counts without noise, associations still differ by what the mechanism states."""

    def exact_counts(plan, exact, source):
        return [counts.astype(np.float64) for counts in exact]

    monkeypatch.setattr(DescriptionFit, "_release_counts", exact_counts)
    plan = make_plan(4000, meet(2.0, 1e-6))
    table, _ = read_kinds(Reader(), make_frame())
    source = RandomSource(0)
    scores = [plan.run(table, source).pair_scores for _ in range(60)]
    deviations = np.std([s.associations for s in scores], axis=0)
    is_inside = scores[0].associations > 0.1
    scale = plan.scores_mechanism.scale
    stds = scores[0].stds[is_inside]
    assert is_inside.sum() >= 1
    # The stated standard error includes the noise of the counts, which was left out here.
    assert (deviations[is_inside] < 1.2 * stds).all()
    assert (deviations[is_inside] > 0.8 * scale / (2.0 * 4000)).all()


def certified_by_scores(monkeypatch, n_runs=1200):
    """Return the epsilon that the best attack on the noisy scores certifies.

    The neighbors have rows of zeros, and one of them a row less. The attacker knows all counts.
    """
    names = [f"x{j}" for j in range(12)]
    frame = pd.DataFrame({name: np.zeros(5000, dtype=np.int64) for name in names})
    plan = DescriptionFit(
        columns=declared_columns(["number"] * 12, {n: (0, 1) for n in names}, None, names),
        n_rows=5000,
        n_bins=8,
        guarantee=meet(1.0, 1e-6),
        is_integer=(True,) * 12,
    )
    with monkeypatch.context() as patch:
        base = exact_values(patch, plan, frame)
        answers = [values for _, values in base]
        other = exact_values(patch, plan, frame.iloc[1:], answers=answers)
    mechanism = plan.scores_mechanism
    first, second = base[1][1], other[1][1]
    assert np.linalg.norm(first - second) > 7.0
    source = RandomSource(0)
    sums = [
        np.array([mechanism.release(v, random_state=source).sum() for _ in range(n_runs)])
        for v in (first, second)
    ]
    if sums[0].mean() > sums[1].mean():
        sums.reverse()
    # The event is chosen on one half of the runs, and certified on the other.
    threshold = np.quantile(sums[0][::2], 0.98)
    hits, false_hits = ((s[1::2] > threshold).sum() for s in (sums[1], sums[0]))
    half = n_runs // 2
    return epsilon_lower_bound(hits, half, false_hits, half, delta=1e-6), mechanism


def test_an_attack_finds_scores_with_the_noise_of_a_single_one(monkeypatch):
    certified, mechanism = certified_by_scores(monkeypatch)
    allowed = get_epsilon(mechanism.event, 1e-6)
    assert certified <= allowed
    # A mutant that forgets that a row changes the scores of all pairs.
    monkeypatch.setattr("skdp.stats._describe_plan.score_sensitivity", lambda n, factor: (1.0, 1.0))
    certified, mechanism = certified_by_scores(monkeypatch)
    assert certified > get_epsilon(mechanism.event, 1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 1e4])
def test_any_epsilon_gives_a_document(epsilon):
    for n in (3, 300):
        profile = describe(make_frame(n), epsilon=epsilon)
        str(profile)
        profile._repr_html_()
        for column in profile.columns.values():
            assert 0.0 <= column.missing <= 1.0


def test_it_is_in_the_namespace():
    assert stats.dp_describe is dp_describe


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_the_number_of_rows_of_persons_is_in_its_interval_or_unknown(epsilon):
    ids = np.repeat(np.arange(100), 3)
    frame = pd.DataFrame({"x": np.linspace(0.0, 1.0, len(ids))})
    profile = dp_describe(frame, epsilon=epsilon, bounds={"x": (0, 1)}, groups=ids, random_state=0)
    low, high = profile.n_rows_interval
    text = " ".join(str(profile).split())
    assert low >= 100
    if np.isnan(profile.n_rows):
        assert high == np.inf
        assert profile.to_dict()["n_rows"] is None
        assert "unknown, because noise hides how many rows the 100 persons have" in text
    else:
        assert low <= profile.n_rows <= high
        assert f"(between {low:,.0f} and {high:,.0f}) of 100 persons" in text
    if epsilon == 0.01:
        assert np.isnan(profile.n_rows)
    if epsilon == 100.0:
        assert low <= len(ids) <= high


def amounts(rng, n):
    """Return prices, of which two fifths are spread over six powers of ten."""
    return np.where(rng.random(n) < 0.6, rng.uniform(1, 50, n), 10 ** rng.uniform(3, 9, n))


SPREADS = {
    "amounts": amounts,
    "both signs": lambda rng, n: amounts(rng, n) * rng.choice([-1.0, 1.0], n),
    "normal": lambda rng, n: rng.normal(50.0, 10.0, n),
    "half missing": lambda rng, n: np.where(rng.random(n) < 0.5, np.nan, rng.exponential(50, n)),
    "lognormal": lambda rng, n: np.exp(rng.normal(8.0, 1.0, n)),
    "flag": lambda rng, n: rng.integers(0, 2, n).astype(float),
}


@pytest.mark.parametrize("unit", ["row", "person"])
@pytest.mark.parametrize("name", SPREADS)
def test_found_bounds_that_clip_many_values_are_reported(name, unit):
    n = 1000
    groups = {"groups": np.arange(n)} if unit == "person" else {}
    for seed in range(5):
        values = SPREADS[name](np.random.default_rng(seed), n)
        frame = pd.DataFrame({"price": values})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            profile = dp_describe(frame, random_state=seed, **groups)
        low, high = profile["price"].bounds
        clipped = np.mean((values < low) | (values > high))
        messages = "\n".join(str(warning.message) for warning in caught)
        is_reported = "more than a tenth of the values of column 'price'" in messages
        assert is_reported == (clipped > 0.3)
        if is_reported:
            # The remedy: all values are within declared bounds.
            bounds = {"price": (values.min(), values.max())}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                dp_describe(frame, bounds=bounds, random_state=seed, **groups)
            assert not any("beyond the bounds" in str(w.message) for w in caught)
    if name == "amounts":
        assert clipped > 0.3
