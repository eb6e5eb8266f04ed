import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from skdp import BudgetExceededError, PrivacyAccountant, RandomizedResponseTransformer
from skdp.accounting import RandomizedResponse

CATEGORIES = [["no", "yes"], ["a", "b", "c", "d"]]


def make_table(n=4000):
    rng = np.random.default_rng(0)
    return np.column_stack([rng.choice(c, size=n) for c in CATEGORIES]).astype(object)


def test_transform_charges_and_fit_does_not():
    accountant = PrivacyAccountant(3.0, 0.0)
    transformer = RandomizedResponseTransformer(
        epsilon=1.0, categories=CATEGORIES, accountant=accountant
    )
    transformer.fit(make_table())
    assert accountant.charges == []
    before = dict(vars(transformer))
    reports = [transformer.transform(make_table()) for _ in range(3)]
    assert vars(transformer) == before
    assert accountant.epsilon_spent == 3.0
    assert not np.array_equal(reports[0], reports[1])
    with pytest.raises(BudgetExceededError):
        transformer.transform(make_table())


def test_columns_share_the_budget_of_a_row():
    accountant = PrivacyAccountant(1.0, 0.0)
    transformer = RandomizedResponseTransformer(
        epsilon=1.0, categories=[[0, 1]] * 7, accountant=accountant
    )
    transformer.fit_transform(np.zeros((10, 7)))
    events = accountant.charges[0].event.events
    assert len(events) == 7
    assert math.fsum(event.epsilon for event in events) <= 1.0
    assert all(isinstance(event, RandomizedResponse) for event in events)


def test_the_truth_is_told_as_often_as_stated():
    X = np.full((20_000, 1), "b", dtype=object)
    transformer = RandomizedResponseTransformer(epsilon=1.5, categories=CATEGORIES[1])
    truths = np.sum(transformer.fit_transform(X) == "b")
    probability = math.exp(1.5) / (3 + math.exp(1.5))
    # Outside this interval with a probability of 1e-6.
    low, high = binom.interval(1 - 1e-6, len(X), probability)
    assert low <= truths <= high


def test_frequencies_are_recovered():
    X = make_table(20_000)
    transformer = RandomizedResponseTransformer(epsilon=4.0, categories=CATEGORIES)
    reports = transformer.fit_transform(X)
    estimates = transformer.estimate_frequencies(reports)
    # Wide enough that a share is missed once in 1e7.
    intervals = transformer.confidence_intervals(reports, confidence=1 - 1e-7)
    for j, categories in enumerate(CATEGORIES):
        shares = np.array([(X[:, j] == c).mean() for c in categories])
        assert estimates[j].sum() == pytest.approx(1.0)
        assert ((intervals[j][:, 0] <= shares) & (shares <= intervals[j][:, 1])).all()


def test_unknown_values_report_uniformly():
    X = np.full((20_000, 1), "unheard of", dtype=object)
    reports = RandomizedResponseTransformer(epsilon=5.0, categories=CATEGORIES[1]).fit_transform(X)
    counts = [np.sum(reports == c) for c in CATEGORIES[1]]
    low, high = binom.interval(1 - 1e-7, len(X), 0.25)
    assert low <= min(counts) and max(counts) <= high


def test_output_has_the_type_of_the_categories():
    strings = RandomizedResponseTransformer(categories=CATEGORIES).fit_transform(make_table(10))
    assert strings.dtype.kind == "U"
    numbers = RandomizedResponseTransformer(categories=[0, 1]).fit_transform([[0], [1]])
    assert numbers.dtype.kind == "i"
    both = RandomizedResponseTransformer(categories=[[0, 1], ["a", "b"]])
    mixed = both.fit_transform(np.array([[0, "a"], [1, "b"]], dtype=object))
    assert set(map(type, mixed[0])) == {int, str}


@pytest.mark.filterwarnings("ignore:the categories of column")
def test_categories_of_mixed_types_stay_what_they_are():
    X = np.array([[1], ["a"]] * 5000, dtype=object)
    transformer = RandomizedResponseTransformer(epsilon=5.0, categories=[1, "a"])
    reports = transformer.fit_transform(X)
    assert set(reports[:, 0]) == {1, "a"}
    np.testing.assert_allclose(transformer.estimate_frequencies(reports)[0], 0.5, atol=0.05)


def test_frames_in_and_out():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_table(50), columns=["answer", "group"])
    transformer = RandomizedResponseTransformer(categories=CATEGORIES)
    reports = transformer.set_output(transform="pandas").fit_transform(frame)
    assert list(reports.columns) == ["answer", "group"]
    assert set(reports["group"]) <= set(CATEGORIES[1])


@pytest.mark.parametrize(
    "categories",
    [None, [], "abc", [["a", "b"]], [["a"], ["b", "c"]], [["a", "a"], ["b", "c"]], 5, {"a", "b"}],
)
def test_bad_categories_are_refused(categories):
    with pytest.raises(ValueError):
        RandomizedResponseTransformer(categories=categories).fit(make_table(10))


@pytest.mark.parametrize(
    "change", [{"epsilon": 20.0}, {"random_state": 0}, {"accountant": PrivacyAccountant(1.0, 0.0)}]
)
def test_parameters_cannot_change_between_statement_and_release(change):
    X = make_table(50)
    transformer = RandomizedResponseTransformer(epsilon=0.1, categories=CATEGORIES).fit(X)
    transformer.set_params(**change)
    with pytest.raises(ValueError, match="fit again"):
        transformer.transform(X)


@pytest.mark.parametrize("epsilon", [1.8238409695, 0.1, 1e-9, 7.7])
@pytest.mark.parametrize("n_columns", [1, 3, 7, 11])
def test_shares_never_exceed_the_whole(epsilon, n_columns):
    accountant = PrivacyAccountant(epsilon, 0.0)
    transformer = RandomizedResponseTransformer(epsilon, categories=[0, 1], accountant=accountant)
    transformer.fit_transform(np.zeros((5, n_columns)))
    event = accountant.charges[0].event
    assert sum(Fraction(e.epsilon) for e in event.events) <= Fraction(epsilon)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_what_is_missing_is_the_null_record_unless_it_is_declared(missing):
    X = np.array([["a"], [missing]] * 500, dtype=object)
    null = RandomizedResponseTransformer(epsilon=60.0, categories=["a", "b"], random_state=0)
    reports = null.fit_transform(X)
    assert (reports[::2] == "a").all()
    # A fair coin of 500 throws: all but one in 1e9 are within 6 deviations.
    assert abs((reports[1::2] == "a").sum() - 250) < 6 * np.sqrt(125)
    declared = RandomizedResponseTransformer(epsilon=60.0, categories=["a", None], random_state=0)
    if missing is None:
        assert (declared.fit_transform(X) == X).all()
