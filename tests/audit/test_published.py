"""What an audit reads: published values, copies of tables, and scores of an attack."""

import pickle
import re
import threading
import zlib
from collections import defaultdict, deque
from functools import partial
from itertools import count

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from scipy.special import ndtri
from scipy.stats import binom
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant
from skdp.accounting import gaussian_noise_multiplier
from skdp.audit import (
    _distinguish,
    audit_epsilon,
    gaussian_epsilon_from_rates,
    membership_inference,
)
from skdp.audit._bounds import clopper_pearson, halved_epsilon
from skdp.audit._epsilon import _table_order
from skdp.audit._outputs import per_row_statistic, relation_in, without_accountant
from skdp.audit._published import as_matrix, observe
from skdp.audit._scores import area_under_curve, attack_accuracy, rate_at
from skdp.audit._tables import (
    append_row,
    as_table,
    canary_tables,
    default_canaries,
    other_tables,
    with_as_many_rows,
)
from skdp.exceptions import PrivacyViolationWarning
from skdp.mechanisms import GaussianMechanism, LaplaceMechanism
from tests._private import take_rows


def published_floats(estimator):
    return np.concatenate([np.empty(0), *observe(estimator).values()])


class Part:
    def __init__(self, **parts):
        vars(self).update(parts)

    def shown(self):
        return 1


class Slotted(Part):
    __slots__ = ("hidden",)

    def __init__(self, hidden):
        super().__init__(shown=1)
        self.hidden = hidden


SECRET = 0.12345
# Numbers of objects, by id, that are in no attribute.
ELSEWHERE = {}


class AddsToItsPickle(BaseEstimator):
    """Adds a number to its attributes when it is pickled."""

    def __init__(self, hidden=None):
        ELSEWHERE[id(self)] = hidden
        self.hidden = None

    def __getstate__(self):
        return super().__getstate__() | {"added": ELSEWHERE[id(self)]}


class PicklesOnlyItsState(Part):
    """Has attributes, and pickles a number instead."""

    def __getstate__(self):
        return ELSEWHERE[self.key]


class ReducesToANumber(PicklesOnlyItsState):
    def __reduce_ex__(self, protocol):
        return Part, (), {"added": ELSEWHERE[self.key]}


ELSEWHERE["state"] = [SECRET]


@pytest.mark.parametrize(
    "place",
    [
        SECRET,
        np.float32(SECRET),
        [1, SECRET],
        ("a", None, [SECRET]),
        {"a": {SECRET: "b"}},
        {SECRET},
        np.array([[SECRET, 1.0]]),
        np.array([None, np.array([SECRET])], dtype=object),
        np.array([(1, SECRET)], dtype=[("a", int), ("b", float)]),
        np.array([SECRET + 1j]),
        csr_array([[0.0, SECRET]]),
        pd.Series([SECRET]),
        Part(hidden=Part(deeper_=SECRET)),
        partial(max, SECRET),
        lambda secret=SECRET: secret,
        Part(hidden=SECRET).shown,
        count(SECRET),
        deque([SECRET]),
        Slotted(SECRET),
        AddsToItsPickle(SECRET),
        PicklesOnlyItsState(key="state"),
        ReducesToANumber(key="state"),
    ],
    ids=lambda place: type(place).__name__,
)
def test_a_number_is_seen_wherever_it_is(place):
    seen = published_floats(Part(_kept=[("step", Part(steps={"a": place}))]))
    assert np.isclose(seen, SECRET).any()


class Words(list):
    pass


def words_about(secret):
    words = Words([1.0])
    words.secret = secret
    return words


@pytest.mark.parametrize(
    "hold",
    [
        lambda secret: pd.Series([1.0], index=[secret]),
        lambda secret: pd.DataFrame({str(secret): [1.0]}),
        lambda secret: pd.Categorical([1.0], categories=[1.0, secret]),
        lambda secret: np.ma.array([secret], mask=[True]),
        lambda secret: dict.fromkeys(["a", "b"] if secret < 0.5 else ["b", "a"]),
        lambda secret: np.ones(2, "f4" if secret < 0.5 else "f8"),
        lambda secret: np.ones((0, round(10 * secret))),
        lambda secret: [None] * round(10 * secret),
        words_about,
        lambda secret: defaultdict(lambda: secret),
        lambda secret: re.compile(str(secret)),
        # Of nine zeros some are stored.
        lambda secret: csr_array((np.zeros(n := round(10 * secret)), range(n), [0, n]), (1, 9)),
        lambda secret: -0.0 if secret < 0.5 else 0.0,
        lambda secret: np.array([-0.0 if secret < 0.5 else 0.0]),
        lambda secret: 1e200 * secret,
        lambda secret: np.array([[1e200 * secret]]),
        lambda secret: 2**60 + round(10 * secret),
        lambda secret: np.array([2**60 + round(10 * secret)]),
        lambda secret: True if secret < 0.5 else 1,
        lambda secret: [1] if secret < 0.5 else (1,),
        lambda secret: np.ones((2, 2), order="C" if secret < 0.5 else "F"),
        lambda secret: memoryview(np.array([secret])),
    ],
    ids=["index", "column", "category", "masked", "order", "dtype", "shape", "size"]
    + ["attribute of a list", "default of a dict", "pattern", "stored zeros"]
    + ["sign of a zero", "sign of an array's zero", "huge", "huge in an array"]
    + ["whole number", "whole number in an array", "type", "kind of list", "layout", "view"],
)
def test_what_a_container_tells_beside_its_numbers_is_seen(hold):
    values, _ = as_matrix([observe(Part(kept_=hold(secret))) for secret in (SECRET, 1.0 - SECRET)])
    assert (values[0] != values[1]).any()
    values, _ = as_matrix([observe(Part(kept_=hold(SECRET))) for _ in range(2)])
    assert (values[0] == values[1]).all()


def test_what_is_not_a_number():
    assert zlib.crc32(b"text") in published_floats(Part(mode_=np.array(["text"], dtype=object)))
    assert zlib.crc32(b"text") in published_floats(Part(mode_=np.array(["text"])))
    date = np.datetime64("1970-01-02", "D")
    assert 1.0 in published_floats(Part(first_=np.array([date])))
    assert len(published_floats(Part(huge=2**100))) == 1
    nothing = Part(lock=threading.Lock(), none=None, code=len, module=np, kind=Part)
    nothing.method = BaseEstimator.get_params
    assert not published_floats(nothing).size
    accountant = PrivacyAccountant(1.0, 0.0)
    assert not published_floats(Part(accountant=accountant)).size


def test_a_function_may_name_what_is_not_there_yet():
    def of_later():
        return later

    assert SECRET not in published_floats(Part(kept_=of_later))
    later = SECRET
    assert SECRET in published_floats(Part(kept_=of_later))


def test_differences_of_the_rows_of_a_matrix():
    seen = published_floats(Part(coef_=np.array([[1.0, 2.0], [4.0, 8.0]]), count_=3))
    assert sorted(seen) == [1.0, 2.0, 3.0, 3.0, 4.0, 6.0, 8.0]


def test_what_holds_itself_is_looked_into_once():
    part = Part(value=SECRET)
    part.me, part.list = part, [part]
    assert np.sum(published_floats(part) == SECRET) == 1


def test_models_that_keep_their_state_to_themselves():
    X, y = np.arange(20.0)[:, None] + SECRET, np.arange(20) % 2
    assert np.isclose(published_floats(KNeighborsClassifier(1).fit(X, y)), SECRET).any()
    forest = RandomForestClassifier(2, bootstrap=False).fit(X, y)
    thresholds = published_floats(forest)
    assert np.isin(forest.estimators_[0].tree_.threshold, thresholds).all()


class Refuses(BaseEstimator):
    def transform(self, X):
        raise ValueError("unknown category")


def test_a_refusal_is_an_answer():
    seen = observe(Refuses(), np.zeros((1, 1)))
    assert any(zlib.crc32(b"ValueError") in numbers for numbers in seen.values())
    assert any("output for the canary" in name for name in seen)


def test_fits_that_show_differently_many_numbers():
    """A number stands in its own column, whatever is before it."""
    shown = [observe(Part(a=np.arange(size, dtype=float), b=7.0)) for size in (2, 3)]
    values, names = as_matrix([*shown, observe(Part(b=np.nan))])
    assert np.array_equal(values[:2, names.index("published number b")], [7.0, 7.0])
    assert list(values[:, names.index("the number of values in published number a")]) == [
        2.0,
        3.0,
        -1.0,
    ]
    assert np.isfinite(values).all() and values[2, names.index("published number b")] != 0.0


class RowsInItsPickle(BaseEstimator):
    """Publishes noise, but its pickle contains the exact mean of the rows."""

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def fit(self, X, y=None):
        ELSEWHERE[id(self)] = float(np.mean(X))
        self.noise_ = np.random.default_rng().normal()
        return self

    def __getstate__(self):
        return super().__getstate__() | {"mean": ELSEWHERE[id(self)]}


def test_an_audit_finds_what_only_a_pickle_contains():
    with pytest.warns(PrivacyViolationWarning):
        assert audit_epsilon(RowsInItsPickle(), n_fits=100, relation="replace_one").violation


def test_an_attribute_is_seen_once_although_the_pickle_contains_it():
    names = [name for name in observe(AddsToItsPickle()) if "hidden" in name]
    model = BaseEstimator()
    model.kept_ = np.arange(3.0)
    assert names == [] and sum("kept_" in name for name in observe(model)) == 1


N = 24


FRAME = pd.DataFrame(
    {
        "age": np.linspace(0.0, 1.0, N),
        "income": np.r_[np.nan, np.ones(N - 1)],
        "town": ["north", *["south"] * (N - 1)],
        "kind": pd.Categorical(["p", "q"] * (N // 2)),
        "visits": np.arange(N),
    },
    index=np.repeat([3, 5], N // 2),
)


Y = np.arange(N) % 2


TABLES = {
    "frame": FRAME,
    "polars": pl.from_pandas(FRAME.reset_index(drop=True)),
    "objects": FRAME.to_numpy(dtype=object),
    "lists": FRAME.to_numpy(dtype=object).tolist(),
    "numbers": FRAME[["age", "visits"]].to_numpy(),
    "sparse": csr_array(FRAME[["age", "visits"]].to_numpy()),
}


@pytest.mark.parametrize("container", TABLES)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_worlds_keep_the_container(container, relation):
    X = TABLES[container]
    far, near = default_canaries(DPLogisticRegression(), X, Y)
    worlds = canary_tables(X, Y, near, relation)
    assert worlds.X_in.shape[0] == N + 1
    assert worlds.X_out.shape[0] == N + (relation == "replace_one")
    same = with_as_many_rows(worlds) if relation == "add_remove" else worlds
    found = [worlds.X_in, worlds.X_out, same.X_out, as_table(X)]
    if relation == "add_remove":
        found += [table for table, _ in other_tables(worlds)]
    assert len({type(table) for table in found}) == 1
    if container == "frame":
        assert all((table.dtypes == FRAME.dtypes)[:4].all() for table in found)
        assert worlds.X_in.iloc[-1]["town"] == "north"
    if container in ("objects", "lists"):
        cells = [list(map(type, row)) for row in (worlds.X_in[0], TABLES["objects"][0])]
        assert cells[0] == cells[1]


def test_a_canary_that_a_column_cannot_hold():
    with pytest.raises(ValueError, match="'kind'"):
        append_row(FRAME, [0.0, 0.0, "east", "unknown", 1])
    longer = append_row(FRAME, [0.0, 0.0, "east", "p", 0.5])
    # Whole numbers turn into fractions, in both tables.
    worlds = canary_tables(FRAME, Y, (longer.iloc[-1], 1), "add_remove")
    assert worlds.X_in["visits"].dtype == worlds.X_out["visits"].dtype == float


def test_rows_by_mask_and_by_position():
    for X in TABLES.values():
        rows = take_rows(X, np.arange(N) == 2)
        assert (len(rows) if isinstance(rows, list) else rows.shape[0]) == 1


def nest(numbers, texts):
    scale = DPStandardScaler(epsilon=50.0, bounds=(0, 1))
    encode = OneHotEncoder(categories=[["north", "south"]], sparse_output=False)
    columns = ColumnTransformer([("n", scale, numbers), ("t", encode, texts)])
    prepare = Pipeline([("union", FeatureUnion([("columns", columns)]))])
    model = DPLogisticRegression(epsilon=50.0, mechanism="output", C=1.0)
    return Pipeline([("prepare", prepare), ("model", Pipeline([("inner", model)]))])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("container", "places"),
    [
        ("frame", (["age", "visits"], ["town"])),
        ("polars", (["age", "visits"], ["town"])),
        ("objects", ([0, 4], [2])),
    ],
)
def test_audits_take_nests_by_name_and_by_position(container, places):
    X, model = TABLES[container], nest(*places)
    claim = {"epsilon": 100.0, "delta": 1e-5}
    assert not audit_epsilon(model, X, Y, method="two_worlds", n_fits=20, **claim).violation
    found = audit_epsilon(
        model, X, Y, method="one_run", n_canaries=20, random_state=0, canary_norm=1.0, **claim
    )
    assert not found.violation
    attacked = membership_inference(model, X, Y, n_shadow=4, access="parameters", random_state=0)
    assert len(attacked.scores) == N


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
def test_sparse_tables():
    X = TABLES["sparse"]
    model = Pipeline(
        [
            (
                "columns",
                ColumnTransformer([("scale", MaxAbsScaler(), [0])], remainder="passthrough"),
            ),
            ("model", DPLogisticRegression(epsilon=50.0, mechanism="output", C=1.0)),
        ]
    )
    with pytest.warns(match="VIOLATION"):
        canary = np.array([50.0, 0.0]), 1
        audit_epsilon(
            model, X, Y, method="two_worlds", epsilon=0.1, delta=0.0, n_fits=24, canary=canary
        )
    membership_inference(model, X, Y, attack="loss", random_state=0)


def test_the_worst_case_of_a_nest_takes_the_parameters_of_its_parts():
    model = DPLogisticRegression(
        epsilon=50.0, mechanism="output", C=1.0, data_norm=3.0, classes=["a", "b"]
    )
    nested = Pipeline([("outer", Pipeline([("inner", model)]))])
    found = audit_epsilon(nested, epsilon=50.0, delta=0.0, n_fits=20, n_samples=10)
    assert not found.violation


# Copies without their accountant, and what a removal and an addition certify.


def unit_rows(n=300, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), rng.integers(0, 2, n)


OUTPUT = {"mechanism": "output", "C": 1.0, "fit_intercept": False}


def test_a_ledger_within_a_pipeline_says_the_relation():
    accountant = PrivacyAccountant(1e6, 0.5, relation="replace_one")
    pipe = make_pipeline(DPStandardScaler(accountant=accountant), LogisticRegression())
    assert relation_in(pipe) == "replace_one"
    assert relation_in(make_pipeline(LogisticRegression())) == "add_remove"
    X, y = unit_rows(10, 2)
    canary = default_canaries(pipe, X, y)[0]
    worlds = canary_tables(X, y, canary, "replace_one")
    # A replaced row leaves as many.
    assert len(worlds.X_in) == len(worlds.X_out) == 11
    assert np.sum(worlds.y_in != worlds.y_out) == 1


def test_clones_keep_the_relation_of_the_accountant():
    accountant = PrivacyAccountant(1e6, 0.5, relation="replace_one")
    pipe = make_pipeline(DPStandardScaler(bounds=(-1, 1), accountant=accountant))
    fitted = without_accountant(pipe).fit(np.eye(20))
    assert fitted[0].privacy_.relation == "replace_one" and not accountant.charges
    pickle.loads(pickle.dumps(fitted))


@pytest.mark.parametrize("grid", ["{}", "[{}]"])
def test_an_accountant_in_a_grid_is_not_charged(grid):
    accountant = PrivacyAccountant(1e6, 0.5, relation="replace_one")
    candidates = {"epsilon": [1.0], "accountant": [accountant]}
    search = GridSearchCV(
        DPLogisticRegression(**OUTPUT), candidates if grid == "{}" else [candidates], cv=2
    )
    assert relation_in(search) == "replace_one"
    X, y = unit_rows(20)
    fitted = without_accountant(search).fit(X, y)
    assert fitted.best_estimator_.privacy_.relation == "replace_one" and not accountant.charges


def test_what_a_removal_and_an_addition_certify():
    # Each of two steps of randomized response has e^2 between its chances.
    counts = 982_014, 1_000_000, 17_986, 1_000_000
    assert abs(halved_epsilon(counts, delta=0.0, confidence=0.95) - 2.0) < 0.02
    assert halved_epsilon(counts, delta=1e-3, confidence=0.95) < 1.99
    both = gaussian_epsilon_from_rates(*counts, delta=1e-5)
    one = halved_epsilon(counts, delta=1e-5, confidence=0.95, gaussian=True)
    assert 0.3 * both < one < 0.5 * both


def test_what_all_steps_of_a_pipeline_publish_is_seen():
    X, y = unit_rows(100, 3)
    scaled = make_pipeline(
        DPStandardScaler(epsilon=0.5, bounds=(-1, 1)), DPLogisticRegression(epsilon=0.5)
    )
    assert sum(map(len, observe(scaled.fit(X, y)).values())) > 9


@pytest.mark.parametrize("n_fits", [1, 8, 51])
def test_the_worlds_take_table_order(n_fits):
    turns = np.array(_table_order(n_fits))
    assert turns.sum() == n_fits
    assert np.abs(np.cumsum(2 * turns - 1)).max() == 1
    # Nor is one of them in even turns more often.
    assert abs(turns[::2].sum() - turns[1::2].sum()) <= 2


# Scores of an attack, with their intervals.


def test_the_gradient_of_a_softmax_is_the_true_one():
    """Against finite differences of the loss of one row."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    model = LogisticRegression().fit(X, y)
    found = -per_row_statistic(model, X, y, "parameters")
    parameters = np.column_stack([model.coef_, model.intercept_])

    def loss(flat, i):
        scores = flat.reshape(3, 5) @ np.append(X[i], 1.0)
        return np.log(np.exp(scores).sum()) - scores[y[i]]

    for i in (0, 7, 31):
        gradient = approx_fprime(parameters.ravel(), loss, 1e-7, i)
        assert found[i] == pytest.approx(np.linalg.norm(gradient), rel=1e-4)


@pytest.mark.thorough
def test_the_accuracy_of_an_attack_on_noise_is_that_of_guessing():
    """P(Binomial(400, .95) < 350) < 1e-8; the best threshold of all would pass .5 always."""
    rng, covered = np.random.default_rng(0), 0
    members = np.repeat([True, False], 50)
    for _ in range(400):
        found = attack_accuracy(members, rng.normal(size=100), 0.95)
        covered += found.low <= 0.5 <= found.high
    assert covered >= 350


def test_the_interval_of_the_area_covers_it():
    """Two shifted normals with a known area; P(Binomial(400, .95) < 350) < 1e-8."""
    rng, covered = np.random.default_rng(0), 0
    members = np.repeat([True, False], 100)
    for _ in range(400):
        found = area_under_curve(members, rng.normal(size=200) + members, 0.95)
        covered += found.low <= 0.760249 <= found.high
    assert covered >= 350


def test_the_rate_at_a_false_alarm_rate_allows_no_more_alarms():
    members = np.repeat([True, False], [100, 200])
    scores = np.concatenate([np.full(100, 2.0), np.repeat([3.0, 2.0, 1.0], [2, 8, 190])])
    assert rate_at(members, scores, 0.01, 0.95).value == 0.0
    assert rate_at(members, scores, 0.05, 0.95).value == 1.0
    assert rate_at(members, scores, 0.001, 0.95).value == 0.0


@pytest.mark.parametrize(("n", "area"), [(5, 0.5), (10, 0.95), (30, 0.99), (100, 0.999)])
def test_the_interval_of_the_area_covers_near_one_as_well(n, area):
    """Of 400 repetitions at least 350 but for P(Binomial(400, .95) < 350) < 1e-8."""
    rng = np.random.default_rng(0)
    members = np.arange(2 * n) < n
    shift = np.sqrt(2.0) * ndtri(area)
    found = [
        area_under_curve(members, rng.normal(size=2 * n) + shift * members, 0.95)
        for _ in range(400)
    ]
    assert sum(one.low <= area <= one.high for one in found) >= 350


def test_a_perfect_separation_of_few_rows_is_no_certainty():
    members = np.arange(20) < 10
    scores = members.astype(float)
    area = area_under_curve(members, scores, 0.95)
    assert area.value == 1.0 and area.low == pytest.approx(0.025**0.1)
    assert area_under_curve(members, -scores, 0.95).high == pytest.approx(1.0 - 0.025**0.1)
    accuracy = attack_accuracy(members, scores, 0.95)
    assert accuracy.value == 1.0 and 0.7 < accuracy.low < 0.9 and accuracy.high == 1.0


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("n_others", [10, 100, 1000])
def test_few_others_raise_no_alarm_at_a_rate_that_they_do_not_show(n_others):
    """Of noise the rate found is the rate allowed. P(Binomial(400, .025) > 30) = 1e-7."""
    rng, members = np.random.default_rng(0), np.arange(2 * n_others) < n_others
    above, beyond = 0, 0
    for _ in range(400):
        found = rate_at(members, rng.normal(size=2 * n_others), 0.01, 0.95)
        above, beyond = above + (found.low > 0.01), beyond + (found.high < 0.01)
        assert found.low <= found.value <= found.high
    assert max(above, beyond) <= 30


def test_many_others_show_what_is_found_at_a_rate():
    members, scores = np.arange(4000) < 2000, np.random.default_rng(0).normal(size=4000)
    scores[:500] += 20.0
    found = rate_at(members, scores, 0.01, 0.95)
    assert 0.2 < found.low < 0.25 < found.high < 0.35


def test_limits_of_a_rate_are_exact():
    for n, hits in ((10, 0), (10, 10), (50, 7)):
        low, high = clopper_pearson(hits, n, 0.9)
        if hits:
            assert binom.sf(hits - 1, n, low) == pytest.approx(0.05)
        if hits < n:
            assert binom.cdf(hits, n, high) == pytest.approx(0.05)


DELTA = 1e-5


def distinguish(inside, outside, **options):
    names = [f"number {place}" for place in range(inside.shape[1])]
    return _distinguish.distinguish(inside, outside, names=names, **options)


def worlds(mechanism, n):
    return (mechanism.release(np.full(n, value))[:, None] for value in (1.0, 0.0))


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("gaussian", "share"), [(False, 0.4), (True, 0.85)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_gaussian_mechanism(epsilon, gaussian, share):
    """The bounds that are asked for, from 1e5 runs a world; the median of five such audits."""
    rng, mu = np.random.default_rng(0), 1.0 / gaussian_noise_multiplier(epsilon, DELTA)
    options = {"delta": DELTA, "confidence": 0.95, "gaussian": gaussian}
    found = []
    for _ in range(5):
        inside, outside = rng.normal(mu, size=(100_000, 1)), rng.normal(size=(100_000, 1))
        found.append(distinguish(inside, outside, **options).epsilon)
    assert share * epsilon <= np.median(found) <= epsilon


@pytest.mark.thorough
@pytest.mark.parametrize("gaussian", [False, True])
def test_the_truth_is_passed_at_most_at_the_stated_rate(gaussian):
    """P(Binomial(200, 0.05) > 28) < 1e-6, thresholds and tests chosen by the data."""
    mechanism, passed = GaussianMechanism(1.0, DELTA, sensitivity=1.0), 0
    for _ in range(200):
        inside, outside = worlds(mechanism, 1000)
        options = {"delta": DELTA, "confidence": 0.95, "gaussian": gaussian}
        passed += distinguish(inside, outside, **options).epsilon > 1.0
    assert passed <= 28


def test_most_of_a_pure_claim_is_found():
    inside, outside = worlds(LaplaceMechanism(2.0, sensitivity=1.0), 20_000)
    found = distinguish(inside, outside, delta=0.0, confidence=0.999)
    assert 0.85 * 2.0 <= found.epsilon <= 2.0


def test_what_numbers_say_together_under_laplace_noise():
    """Four of them, each moved by 1.5 scales, are (6, 0)-private; a discriminant finds 2.5."""
    rng, found = np.random.default_rng(0), []
    for _ in range(5):
        inside, outside = rng.laplace(size=(2000, 4)) + 1.5, rng.laplace(size=(2000, 4))
        found.append(distinguish(inside, outside, delta=0.0, confidence=0.999).epsilon)
    assert 2.8 < np.median(found) <= 6.0


def test_noise_that_numbers_share_is_taken_away():
    noise = np.random.default_rng(0).laplace(size=(2, 100, 1)) * [1.0, 3.0]
    inside, outside = noise[0] + [1e-3, 0.0], noise[1]
    found = distinguish(inside, outside, delta=0.0, confidence=0.999)
    assert found.epsilon > 1.0 and found.test == "a linear discriminant"


@pytest.mark.parametrize("narrow", ["inside", "outside"])
def test_laws_of_one_mean_are_told_apart_by_their_spread(narrow):
    rng = np.random.default_rng(0)
    small, large = 0.05 * rng.normal(size=(2000, 1)), rng.normal(size=(2000, 1))
    pair = (small, large) if narrow == "inside" else (large, small)
    found = distinguish(*pair, delta=0.0, confidence=0.999)
    assert found.epsilon > 1.5 and "the distance of" in found.test


def test_nothing_to_tell_apart():
    nothing = np.empty((40, 0))
    assert distinguish(nothing, nothing, delta=0.0, confidence=0.95).epsilon == 0.0
    constant = np.ones((40, 2))
    assert distinguish(constant, constant, delta=0.0, confidence=0.95).epsilon == 0.0
    found = distinguish(constant, 2.0 * constant, delta=0.0, confidence=0.95)
    assert found.epsilon > 1.0


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
def test_a_number_that_hardly_ever_moves():
    """Equal numbers have a variance above 0 by rounding; which ones depends on the processor."""
    rng = np.random.default_rng(0)
    for value in rng.uniform(size=100):
        constant, moving = np.full(100, value), rng.normal(size=(2, 2, 100))
        inside, outside = (np.column_stack([constant, *world]) for world in moving)
        inside[1, 0] += 0.5
        found = distinguish(inside, outside, delta=0.0, confidence=0.999)
        assert found.epsilon < 0.5


def test_a_number_that_is_shown_twice_counts_once():
    """Of forty runs in a world a discriminant takes five numbers; so many copies would fill it."""
    noise = np.random.default_rng(0).laplace(size=(2, 40, 1)) * [1.0, 3.0]
    inside, outside = noise[0] + [1e-3, 0.0], noise[1]
    copies = [np.hstack([np.tile(world[:, :1], 9), world]) for world in (inside, outside)]
    options = {"delta": 0.0, "confidence": 0.999}
    assert distinguish(*copies, **options) == distinguish(inside, outside, **options)
