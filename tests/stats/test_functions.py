import itertools
import pickle
from functools import partial

import numpy as np
import pytest
from sklearn import config_context

from skdp import BudgetExceededError, PrivacyAccountant, stats
from skdp.base import TableShape
from skdp.noise import RandomSource
from skdp.stats import _moments, expected_error
from skdp.stats._moments import (
    bin_edges,
    plan_histogram,
    plan_moments,
    plan_nonzero_counts,
    plan_sums,
)
from skdp.stats._quantiles import plan_quantiles
from skdp.stats._release import plan_within_bounds
from tests._attacks import attack_choices
from tests._guarantees import meet
from tests._public import public_names

RELATIONS = ["add_remove", "replace_one"]
BOUNDS = ([0.0, -3.0], [1.0, 5.0])


def table(n=5000):
    return np.random.default_rng(0).uniform(*BOUNDS, size=(n, 2))


def calls(a=None, **options):
    """Every function with its own arguments, as a dict of callables."""
    a = table() if a is None else a
    column = a[:, 0] if np.ndim(a) == 2 and a.shape[1] else a
    axis = {"axis": 0} if np.ndim(a) == 2 else {}
    names = ("dp_mean", "dp_var", "dp_sum", "dp_median", "dp_histogram", "dp_count")
    found = {n: partial(getattr(stats, n), a, **axis, **options) for n in names}
    found["dp_quantile"] = lambda: stats.dp_quantile(a, [0.2, 0.7], **axis, **options)
    found["dp_histogram2d"] = lambda: stats.dp_histogram2d(column, column, **options)
    few = a[:, :2] if np.ndim(a) == 2 else a
    found["dp_histogramdd"] = lambda: stats.dp_histogramdd(few, bins=2, **options)
    found["dp_covariance"] = lambda: stats.dp_covariance(a, **options)
    found["dp_correlation"] = lambda: stats.dp_correlation(a, **options)
    found["estimate_bounds"] = lambda: stats.estimate_bounds(a, **axis, **options)
    return found


NAMES = sorted(calls())


def test_all_functions_are_here():
    # Labels are of any kind: those of test_tables.py. Whole tables are those of test_describe.py.
    others = {"expected_error", "dp_crosstab", "dp_mode", "dp_describe", "TableProfile"}
    assert set(NAMES) == set(public_names(stats)) - others


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_little_noise_gives_the_answer_of_numpy(delta):
    X = table()
    options = {"epsilon": 1e10, "delta": delta, "axis": 0}
    within = options | {"bounds": BOUNDS}
    span = np.subtract(*BOUNDS[::-1])

    def check(ours, theirs, scale=span):
        assert np.all(np.abs(ours - theirs) <= 1e-3 * scale)

    check(stats.dp_mean(X, **within), X.mean(axis=0))
    check(stats.dp_var(X, **within), X.var(axis=0), span**2)
    check(stats.dp_sum(X, **within), X.sum(axis=0), span * len(X))
    check(stats.dp_median(X, **within), np.median(X, axis=0))
    q = [0.1, 0.9]
    check(stats.dp_quantile(X, q, **within), np.quantile(X, q, axis=0))
    assert np.all(stats.dp_count(X > 0.5, **options) == np.count_nonzero(X > 0.5, axis=0))
    counts, edges = stats.dp_histogram(X, bins=20, range=BOUNDS, **options)
    for j in range(2):
        theirs = np.histogram(X[:, j], bins=20, range=(BOUNDS[0][j], BOUNDS[1][j]))
        np.testing.assert_array_equal(counts[j], theirs[0])
        np.testing.assert_array_equal(edges[j], theirs[1])
    ours = stats.dp_histogram2d(*X.T, 1e10, delta=delta, bins=(3, 4), range=((0, 1), (-3, 5)))
    theirs = np.histogram2d(*X.T, bins=(3, 4), range=((0, 1), (-3, 5)))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("relation", RELATIONS)
def test_shapes_are_those_of_numpy(relation):
    accountant = PrivacyAccountant(1e6, 0.1, relation=relation)
    X = table()
    flat, many = calls(X[:, 0], accountant=accountant), calls(X, accountant=accountant)
    for name in ("dp_mean", "dp_var", "dp_sum", "dp_median"):
        assert isinstance(flat[name](), float) and many[name]().shape == (2,)
    assert isinstance(flat["dp_count"](), int) and many["dp_count"]().shape == (2,)
    assert flat["dp_quantile"]().shape == (2,) and many["dp_quantile"]().shape == (2, 2)
    assert [x.shape for x in flat["dp_histogram"]()] == [(10,), (11,)]
    assert [x.shape for x in many["dp_histogram"]()] == [(2, 10), (2, 11)]
    assert [x.shape for x in flat["dp_histogram2d"]()] == [(10, 10), (11,), (11,)]
    assert all(isinstance(x, float) for x in flat["estimate_bounds"]())
    assert isinstance(stats.dp_quantile(X[:, 0], 0.5), float)
    assert stats.dp_quantile(X, 0.5, axis=0).shape == (2,)
    counts, edges = stats.dp_histogram2d(*X.T, bins=([0, 0.5, 1], 3))[:2]
    assert counts.shape == (2, 3) and counts.dtype == np.int64


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("relation", RELATIONS)
def test_one_charge_of_what_was_asked_for(name, delta, relation):
    accountant = PrivacyAccountant(1.0, 1e-5, relation=relation)
    calls(delta=delta, epsilon=0.6, accountant=accountant)[name]()
    (spend,) = accountant.charges
    assert (spend.label, spend.epsilon, spend.delta) == (name, 0.6, delta)
    with pytest.raises(BudgetExceededError):
        calls(delta=delta, epsilon=0.6, accountant=accountant)[name]()
    assert len(accountant.charges) == 1


@pytest.mark.parametrize("name", NAMES)
def test_epsilon_is_that_of_the_group(name):
    accountant = PrivacyAccountant(10.0, 1e-3, unit="group", max_rows=3)
    calls(epsilon=0.5, accountant=accountant)[name]()
    assert accountant.epsilon_spent == 0.5


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", ["nan", "inf", "empty", "text", "no column", "epsilon", "state"])
def test_bad_input_is_refused_and_not_charged(name, bad):
    accountant = PrivacyAccountant(10.0, 1e-3)
    options = {"accountant": accountant}
    a = table(5)
    if bad in ("nan", "inf"):
        a[2, 0] = float(bad)
    a = {"empty": a[:0], "text": np.full((5, 2), "x"), "no column": a[:, :0]}.get(bad, a)
    options |= {"epsilon": {"epsilon": -1.0}, "state": {"random_state": "x"}}.get(bad, {})
    with pytest.raises(ValueError):
        calls(a[:, 0] if bad == "empty" else a, **options)[name]()
    assert accountant.charges == []


@pytest.mark.parametrize("name", NAMES)
def test_values_are_checked_whatever_the_setting(name):
    accountant = PrivacyAccountant(10.0, 1e-3)
    a = table(5)
    a[2] = np.nan
    with config_context(assume_finite=True), pytest.raises(ValueError, match="NaN"):
        calls(a, accountant=accountant)[name]()
    assert accountant.charges == []


@pytest.mark.parametrize(
    "bounds", [(1, 0), (0, np.nan), (0, np.inf), None, "automatic", (0, [1, 2, 3])]
)
def test_bad_bounds_are_refused_and_not_charged(bounds):
    accountant = PrivacyAccountant(10.0, 1e-3)
    options = {"axis": 0, "accountant": accountant}
    for name in ("dp_mean", "dp_var", "dp_sum", "dp_median"):
        with pytest.raises(ValueError):
            getattr(stats, name)(table(), bounds=bounds, **options)
    with pytest.raises(ValueError):
        stats.dp_histogram(table(), range=bounds, **options)
    with pytest.raises(ValueError):
        stats.dp_histogram2d(*table().T, range=bounds, accountant=accountant)
    assert accountant.charges == []


def test_bins_that_no_floats_can_tell_apart_are_refused_and_not_charged():
    accountant = PrivacyAccountant(10.0, 1e-3)
    narrow = (1e10, 1e10 + 2e-4)
    with pytest.raises(ValueError, match="too narrow"):
        stats.dp_histogram(table(), bins=200, range=narrow, axis=0, accountant=accountant)
    with pytest.raises(ValueError, match="too narrow"):
        stats.dp_histogram2d(*table().T, bins=200, range=((0, 1), narrow), accountant=accountant)
    assert accountant.charges == []


# That values lie beyond the search for bounds is said; NumPy must not warn of an overflow.
@pytest.mark.quick_cases(every=4)
@pytest.mark.filterwarnings("error", r"ignore:\w+ released little about some columns")
@pytest.mark.parametrize("name", NAMES)
def test_huge_values_do_not_warn(name):
    a = np.where(np.arange(3000)[:, None] % 2, 1e308, -1e308) * np.ones(2)
    calls(a)[name]()


# Of 50 rows nothing may be found; that warning follows from what was released.
@pytest.mark.filterwarnings("error", r"ignore:\w+ released little about some columns")
@pytest.mark.parametrize("name", NAMES)
def test_values_beyond_float64_do_not_warn(name):
    a = table(50).astype(np.longdouble)
    a[3] = np.finfo(np.longdouble).max
    joint = ("dp_histogramdd", "dp_covariance", "dp_correlation")
    if name not in ("dp_count", "estimate_bounds", *joint):
        key = "range" if name.startswith("dp_histogram") else "bounds"
        span = ((0, 1), (0, 1)) if name == "dp_histogram2d" else (0, 1)
        call = getattr(stats, name)
        columns = a.T if name == "dp_histogram2d" else (a,)
        options = {key: span} | ({} if name == "dp_histogram2d" else {"axis": 0})
        call(*columns, *([0.5] if name == "dp_quantile" else []), **options)
    calls(a)[name]()


def test_means_do_not_leave_the_bounds_by_rounding():
    rng = np.random.default_rng(0)
    low = rng.normal(size=1000)
    high = low + rng.exponential(size=1000)
    for end in (low, high):
        mean = stats.dp_mean(np.tile(end, (2, 1)), 1e9, bounds=(low, high), axis=0)
        assert ((mean >= low) & (mean <= high)).all()


@pytest.mark.parametrize("axis", [1, None, "rows", 2])
def test_only_rows_are_combined(axis):
    with pytest.raises(ValueError, match="axis"):
        stats.dp_mean(table(), axis=axis)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 3])
def test_few_rows_many_columns_and_constants(name, n):
    for a in (np.zeros(n), np.full(n, 7), np.full((n, 300), -1e200), np.array([True] * n)):
        calls(a)[name]()


@pytest.mark.thorough
def test_ten_thousand_columns():
    X = np.random.default_rng(0).random((3, 10_000))
    for name in ("dp_mean", "dp_median"):
        calls(X, delta=1e-6, bounds=(0, 1))[name]()
    assert stats.estimate_bounds(X, axis=0)[0].shape == (10_000,)


@pytest.mark.parametrize("relation", RELATIONS)
def test_brute_force_sensitivity_of_counts(relation):
    rows = np.array([[0.1, 0.1], [0.9, 0.1], [0.9, 0.9], [5.0, 0.1], [5.0, 5.0]])
    shape, bins = TableShape(n_rows=1, n_columns=2), (2, 2)
    edges = bin_edges(np.zeros(2), np.ones(2), bins)
    for joint in (False, True):
        plan = plan_histogram(shape, meet(1.0, 0.0, relation), bins=bins, joint=joint)
        count = _moments.count_cells if joint else _moments.count_bins
        counts = [np.concatenate(count(row[None], edges), axis=None) for row in rows]
        moves = counts
        if relation == "replace_one":
            moves = [a - b for a, b in itertools.combinations(counts, 2)]
        assert max(np.abs(move).sum() for move in moves) == plan.sensitivity
    columns = TableShape(n_rows=1, n_columns=3)
    assert plan_nonzero_counts(columns, meet(1.0)).sensitivity == 3


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 1.0), (17.0, 90.0)])
def test_brute_force_sensitivity_of_sums(relation, bounds, monkeypatch):
    ends = dict(zip(("low", "high"), (np.array([b]) for b in bounds), strict=True))
    guarantee, released = meet(1.0, 0.0, relation), []
    plan = plan_sums(TableShape(n_rows=7, n_columns=1), guarantee)

    def kept(self, sums, **_):
        released.append(sums)
        return sums

    monkeypatch.setattr(type(plan.mechanism), "release", kept)
    base = np.random.default_rng(0).uniform(*bounds, size=6)
    values = [-1e9, *bounds, sum(bounds) / 2, 0.0, 1e9]
    for value in values:
        plan.run(np.append(base, value)[:, None], None, **ends)
    if relation == "add_remove":
        plan.run(base[:, None], None, **ends)
        moves = [abs(x - released[-1])[0] for x in released]
    else:
        moves = [abs(x - y)[0] for x, y in itertools.combinations(released, 2)]
    assert 0.999 * plan.sensitivity < max(moves) <= plan.sensitivity


def errors(call, truth, runs=1000):
    return np.abs(np.array([call() for _ in range(runs)]) - truth)


@pytest.mark.quick_cases(every=20)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("statistic", ["mean", "sum", "var", "count", "histogram"])
def test_errors_are_the_expected_ones(statistic, delta, relation):
    # Far from where results are clipped. Five standard errors: a false alarm in 1e6 runs.
    n, d, bounds, source = 1000, 2, (-1.0, 3.0), RandomSource(0)
    X = np.tile(np.linspace(-0.9, 2.9, n)[:, None], d)
    low, high = np.full(d, -1.0), np.full(d, 3.0)
    settings = TableShape(n_rows=n, n_columns=d), meet(2.0, delta, relation)
    ends = {} if statistic == "count" else {"low": low, "high": high}
    plan, truth = {
        "mean": (plan_moments(*settings), X.mean(axis=0)),
        "var": (plan_moments(*settings, n_moments=2), X.var(axis=0)),
        "sum": (plan_sums(*settings), X.sum(axis=0)),
        "count": (plan_nonzero_counts(*settings), [n, n]),
        "histogram": (plan_histogram(*settings, bins=(1, 1)), [n, n]),
    }[statistic]

    def call():
        found = plan.run(X, source, **ends)
        if statistic in ("mean", "var"):
            found = found[statistic == "var"]
        return [x[0] for x in found[0]] if statistic == "histogram" else found

    found = errors(call, truth).ravel()
    options = {"delta": delta, "bounds": bounds, "n_columns": d, "relation": relation}
    expected = expected_error(statistic, n, 2.0, **options)
    # Rounded Gaussian noise on a count of scale above 1 is as large as its unrounded law.
    assert abs(found.mean() - expected) <= 5 * found.std() / np.sqrt(found.size) + 1e-3 * expected


@pytest.mark.thorough
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("q", [0.5, 0.9])
def test_rank_errors_are_the_expected_ones(q, relation):
    n = 1000
    x = (np.arange(n) + 0.5) / n
    accountant = PrivacyAccountant(1e9, 0.1, relation=relation)
    options = {"bounds": (0, 1), "epsilon": 0.2}
    if relation == "replace_one":
        options["accountant"] = accountant
    found = errors(lambda: stats.dp_quantile(x, q, **options), q, runs=400)
    expected = expected_error("quantile", n, 0.2, q=q, relation=relation)
    # A choice is uniform between two rows, which adds up to half a row.
    assert abs(found.mean() - expected) <= 5 * found.std() / np.sqrt(found.size) + 0.5 / n


@pytest.mark.parametrize("statistic", ["range", None])
def test_unknown_statistics_are_refused(statistic):
    with pytest.raises(ValueError, match="statistic"):
        expected_error(statistic, 10)


def released_counts(relation, rows, n, sensitivity=None):
    shape = TableShape(n_rows=len(rows), n_columns=1)
    mechanism = plan_histogram(shape, meet(1.0, 0.0, relation), bins=(2,)).mechanism
    if sensitivity is not None:
        mechanism = type(mechanism)(1.0, sensitivity)
    counts = np.histogram(rows, 2, (0, 1))[0]
    noisy = mechanism.release(np.tile(counts, (n, 1)), random_state=len(rows) + int(sum(rows) * 8))
    # Which side of the middle each count is on.
    return (noisy[:, 0] > 2) * 2 + (noisy[:, 1] > 2)


def test_a_distinguisher_finds_a_dropped_factor_of_replace_one():
    # Confidence 1 - 1e-6.
    one, other, n = [0.1] * 3 + [0.9] * 2, [0.1] * 2 + [0.9] * 3, 50_000
    kept = [released_counts("replace_one", rows, n) for rows in (one, other)]
    assert attack_choices(*kept, confidence=1 - 1e-6) <= 1.0
    dropped = [released_counts("replace_one", rows, n, sensitivity=1) for rows in (one, other)]
    assert attack_choices(*dropped, confidence=1 - 1e-6) > 1.0


def test_memory_maps_are_read(tmp_path):
    np.save(tmp_path / "a.npy", table())
    a = np.load(tmp_path / "a.npy", mmap_mode="r")
    for call in calls(a).values():
        call()


DATES = np.datetime64("2020-01-01") + np.arange(200)


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize("kind", ["date", "duration"])
@pytest.mark.parametrize("container", ["array", "Series", "DataFrame"])
@pytest.mark.parametrize("name", sorted(set(calls()) - {"dp_count", "estimate_bounds"}))
def test_dates_are_no_numbers(name, container, kind):
    """Read as numbers, dates count the unit of their type, which another container changes."""
    values = DATES if kind == "date" else DATES - DATES[0]
    if container != "array":
        pandas = pytest.importorskip("pandas")
        values = pandas.Series(values)
        if container == "DataFrame":
            values = pandas.DataFrame({"a": values, "b": values})
    accountant = PrivacyAccountant(1.0, 1e-6)
    function = getattr(stats, name)
    options = {"accountant": accountant, "epsilon": 0.5}
    arguments = [values]
    if name == "dp_quantile":
        arguments.append(0.5)
    if name == "dp_histogram2d":
        if container == "DataFrame":
            values = values["a"]
        arguments = [values, values]
        declared = [{"bins": (2, 3), "range": ((0, 1), (0, 1))}, {"bins": (2, [0.0, 1.0])}]
    elif name == "dp_histogramdd":
        declared = [{"bins": 2, "range": [(0, 1)] * 2}]
    elif name == "dp_histogram":
        declared = [{"bins": 2, "range": (0, 1)}, {"bins": [0, 1, 2]}]
    else:
        declared = [{"bounds": (0, 1)}, {"bounds": "auto"}]
    for declaration in declared:
        with pytest.raises(ValueError, match=f"contains {kind}s, and numbers are expected"):
            function(*arguments, **declaration, **options)
    assert accountant.epsilon_spent == 0.0


@pytest.mark.parametrize(
    "make_plan",
    [
        plan_moments,
        plan_sums,
        plan_nonzero_counts,
        partial(plan_histogram, bins=(2, 3)),
        partial(plan_quantiles, quantiles=[0.5]),
        partial(plan_within_bounds, plan_moments, (0.0, 1.0)),
        partial(plan_within_bounds, plan_moments, "auto"),
    ],
)
def test_a_plan_is_a_value(make_plan):
    plan = make_plan(TableShape(n_rows=100, n_columns=2), meet(1.0, 1e-6))
    again = pickle.loads(pickle.dumps(plan))
    assert (again.event, again.stages, again.epsilon) == (plan.event, plan.stages, plan.epsilon)


def test_bounds_reach_the_run_of_a_plan_only():
    """So no cost can depend on them: all declared bounds have the same plan."""
    shape, guarantee = TableShape(n_rows=100, n_columns=2), meet(1.0, 1e-6)
    plans = [
        plan_within_bounds(plan_moments, bounds, shape, guarantee)
        for bounds in ((0.0, 1.0), (-1e6, 1e6))
    ]
    assert plans[0] == plans[1]
