from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context

from skdp import BudgetExceededError, PrivacyAccountant, stats
from skdp.stats import expected_error
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


@pytest.mark.parametrize("axis", [1, None, "rows", 2, np.array([0, 1]), pd.NA])
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


def errors(call, truth, runs=1000):
    return np.abs(np.array([call() for _ in range(runs)]) - truth)


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
        with pytest.raises(ValueError, match=f"contains? {kind}s, and numbers are expected"):
            function(*arguments, **declaration, **options)
    assert accountant.epsilon_spent == 0.0
