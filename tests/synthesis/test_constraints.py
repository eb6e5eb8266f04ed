"""Constraints on synthetic rows."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdp import PrivacyAccountant
from skdp.synthesis import DPTableSynthesizer, _plan

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")

STATUS = ["child", "single", "married"]
YEARS = {"child": 4, "single": 12, "married": 16}


def make_frame(n_rows=2000):
    rng = np.random.default_rng(0)
    age = rng.integers(0, 90, n_rows)
    adult = rng.choice(["single", "married"], n_rows)
    status = np.where(age < 16, "child", adult)
    return pd.DataFrame(
        {
            "age": age,
            "status": status,
            "income": np.where(age < 16, 0.0, rng.exponential(20.0, n_rows)),
            "years": [YEARS[value] for value in status],
            "age_again": age,
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(age, unit="D"),
        }
    )


FRAME = make_frame()
BOUNDS = {"age": (0, 90), "income": (0, 100), "years": (0, 20), "age_again": (0, 90)}
BOUNDS["day"] = ("2020-01-01", "2020-06-30")


def synthesizer(epsilon=0.5, **params):
    params = {"categories": {"status": STATUS}, "random_state": 0} | params
    return DPTableSynthesizer(epsilon, bounds=BOUNDS, **params)


def test_forbidden_pairs_occur_in_no_row():
    forbidden = {
        ("age", "status"): [((0, 15), "married"), ((0, 15), "single"), ((16, 90), "child")],
        ("income", "status"): [((5e-324, 100), "child")],
        ("day", "status"): [("2020-01-01", "child"), (("2020-01-20", "2020-06-30"), "child")],
    }
    rows = synthesizer(forbidden=forbidden).fit(FRAME).sample(20_000, random_state=1)
    is_child = rows["status"] == "child"
    assert ((rows["age"] < 16) == is_child).all()
    assert (rows["income"][is_child] == 0.0).all()
    free = synthesizer().fit(FRAME).sample(20_000, random_state=1)
    assert ((free["age"] < 16) != (free["status"] == "child")).any()


def test_forbidden_pairs_are_excluded_before_rows_are_refused():
    forbidden = {("age", "status"): [((0, 15), "married"), ((0, 15), "single")]}
    with_pairs = synthesizer(5.0, forbidden=forbidden).fit(FRAME)
    assert with_pairs.refused_fraction(random_state=0) < 0.05


def test_a_condition_refuses_rows():
    synth = synthesizer().fit(FRAME)
    rows = synth.sample(500, random_state=0, where=lambda rows: rows["age"] >= 18)
    assert len(rows) == 500 and (rows["age"] >= 18).all()
    refused = synth.refused_fraction(5000, random_state=0, where=lambda rows: rows["age"] >= 45)
    assert 0.4 < refused < 0.6
    with pytest.raises(ValueError, match="accept only 0"):
        synth.sample(10, where=lambda rows: rows["age"] > 1000)


def test_a_few_rows_are_drawn_until_the_condition_holds():
    """A condition that one row in a hundred meets refuses the first few rows, most likely."""
    synth = synthesizer().fit(FRAME)
    for seed in range(5):
        rows = synth.sample(1, random_state=seed, where=lambda rows: rows["age"] == 40)
        assert rows["age"].tolist() == [40]


def test_copied_columns():
    same_as = {"age_again": "age", "years": ("status", YEARS)}
    synth = synthesizer(same_as=same_as).fit(FRAME)
    rows = synth.sample(1000, random_state=0)
    assert list(rows.columns) == list(FRAME.columns) and rows.dtypes.equals(FRAME.dtypes)
    assert (rows["age_again"] == rows["age"]).all()
    assert (rows["years"] == rows["status"].map(YEARS)).all()
    assert len(synth.counts_) == 4
    with pytest.raises(ValueError, match="same_as"):
        synth.marginal("years")


def test_a_workload_is_measured():
    workload = [("age", "status"), ("age", "income", "status")]
    synth = synthesizer(5.0, workload=workload).fit(FRAME)
    table = synth.marginal("status", "age", "income")
    assert table.counts.shape == tuple(map(len, table.groups))
    assert table.columns == ("status", "age", "income")
    assert abs(table.counts.sum() - len(FRAME)) < 6 * table.standard_error * table.counts.size**0.5
    assert synth.marginal("status", "age").to_pandas().index.names == ["status", "age"]
    rows = synth.sample(5000, random_state=0)
    assert ((rows["status"] == "child") & (rows["income"] > 1)).mean() < 0.03


def test_a_large_table_has_fewer_groups(monkeypatch):
    """A table with all cells may need more memory than there is, after the charge."""
    monkeypatch.setattr(_plan, "MAX_TABLE_CELLS", 20_000)
    labels = [str(i) for i in range(40)]
    frame = pd.DataFrame(dict.fromkeys("abcd", labels * 10))
    synth = DPTableSynthesizer(
        1e4, categories=dict.fromkeys(frame, labels), workload=[tuple(frame)], random_state=0
    ).fit(frame)
    n_groups = synth.marginal(*frame).counts.shape
    assert np.prod(n_groups) <= 20_000 and max(n_groups) > 10
    assert len(synth.sample(100)) == 100


def test_tables_that_were_not_measured_are_refused():
    synth = synthesizer(0.01).fit(FRAME)
    with pytest.raises(ValueError, match="workload"):
        synth.marginal("age", "status", "income")


@pytest.mark.parametrize(
    "params",
    [
        # The column's type would change the values of the other one, or of the dict.
        {"same_as": {"years": "income"}},
        {"same_as": {"status": "age"}},
        {"same_as": {"status": "income"}},
        {"same_as": {"day": "age"}},
        {"same_as": {"years": ("status", dict.fromkeys(STATUS, 2.5))}},
        {"same_as": {"years": ("status", dict.fromkeys(STATUS, 1e30))}},
        {"same_as": {"status": ("age", {age: age for age in range(91)})}},
        {"same_as": {"status": ("age", {age: [age] for age in range(91)})}},
        {"same_as": {"income": ("status", {"child": 0.0, "single": "x", "married": pd.NA})}},
        {"forbidden": {("day", "status"): [(pd.NaT, "child")]}},
        {"forbidden": {("age", "status"): [(pd.NA, "child")]}},
        {"same_as": {"income": ("day", {pd.NaT: 1.0})}},
        {"target": "nothing"},
        {"target": ["age", "age"]},
        {"workload": [("age",)]},
        {"workload": ["age"]},
        {"workload": "age"},
        {"decimals": {"age": 0.5}},
        {"decimals": 2},
        {"same_as": {"age": "age"}},
        {"same_as": {"age": "years", "years": "age"}},
        {"same_as": {"age": "nothing"}},
        {"forbidden": [("age", "status")]},
        {"forbidden": {("age", "status"): [1]}},
        {"forbidden": {("age",): [(1, 2)]}},
        {"target": "age", "same_as": {"age": "years"}},
        {"decimals": {"status": 2}},
        {"forbidden": {("age", "status"): [("x", "child")]}},
        {"forbidden": {("age", "status"): [((0, "x"), "child")]}},
        {"forbidden": {("age", "status"): [((0, 1, 2), "child")]}},
        {"forbidden": {("age", "status"): [(None, "child")]}},
        {"forbidden": {("age", "status"): [(3, "maried")]}},
        {"forbidden": {("day", "status"): [("x", "child")]}},
        {"forbidden": {("day", "status"): [(3, "child")]}},
        {"same_as": {"years": "status"}},
        {"same_as": {"years": "day"}},
        {"same_as": {"years": ("status", {"child": "four"})}},
        {"same_as": {"years": ("status", {"child": 4})}},
        # No value of the other column is a key, so that all values would be missing.
        {"same_as": {"years": ("status", {})}},
        {"same_as": {"years": ("status", {0: 4, 1: 12, 2: 16})}},
        {"same_as": {"years": ("age", {str(age): age for age in range(91)})}},
        {"same_as": {"income": ("day", {"one": 1.0})}},
        # A number without an entry would be 0 in a column of integers.
        {"same_as": {"years": ("age", {age: age for age in range(90)})}},
        {"same_as": {"years": ("income", {0.0: 1})}},
        # A range in the wrong order contains nothing.
        {"forbidden": {("age", "status"): [((15, 0), "child")]}},
        {"forbidden": {("day", "status"): [(("2020-02-01", "2020-01-01"), "child")]}},
        # An iterator can be read once only.
        {"forbidden": {("age", "status"): iter([((0, 15), "single")])}},
        # No row could be drawn.
        {"forbidden": {("age", "status"): [((0, 90), status) for status in STATUS]}},
    ],
)
def test_wrong_parameters_cost_nothing(params):
    accountant = PrivacyAccountant(1.0, 1e-5)
    # pandas 2 gives strings the dtype object, whose cells can hold any copied value.
    frame = FRAME.astype({"status": "string"})
    with pytest.raises(ValueError, match=next(iter(params))):
        synthesizer(accountant=accountant, **params).fit(frame)
    assert accountant.epsilon_spent == 0.0


KINDS = {
    "int": lambda rng: rng.integers(0, 5, 60),
    "int8": lambda rng: rng.integers(0, 5, 60).astype(np.int8),
    "float": lambda rng: rng.random(60),
    "boolean": lambda rng: rng.random(60) > 0.5,
    "text": lambda rng: rng.choice(["10", "20"], 60),
    "words": lambda rng: rng.choice(["x", "y"], 60),
    "date": lambda rng: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, 60), "D"),
    "duration": lambda rng: pd.to_timedelta(rng.integers(0, 9, 60), "h"),
    "nullable": lambda rng: pd.array(rng.integers(0, 5, 60), dtype="Int64"),
}
CONTAINERS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.quick_cases(every=6)
@pytest.mark.filterwarnings("ignore:No category")
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_copy_is_equal_or_refused(source, target, container):
    """Whatever the two types are: nothing is converted silently, and nothing raises when drawn."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": KINDS[source](rng), "b": KINDS[target](rng)})
    for params in ({}, {"decimals": {"a": 0}}):
        if params and source not in ("float", "date"):
            continue
        accountant = PrivacyAccountant(1000.0, 1e-3)
        synth = DPTableSynthesizer(
            100.0, same_as={"b": "a"}, accountant=accountant, random_state=0, **params
        )
        try:
            synth.fit(CONTAINERS[container](frame))
        except ValueError as error:
            assert not accountant.charges
            assert source != target and "same_as" in str(error)
            continue
        rows = synth.sample(50, random_state=0)
        rows = rows if container == "pandas" else rows.to_pandas()
        assert rows["a"].tolist() == rows["b"].tolist()


def test_a_dict_whose_keys_cannot_be_drawn_is_warned_about():
    """A drawn number without decimals equals none of a few keys."""
    mapping = {0.5: "single", 7.25: "married"}
    synth = synthesizer(categories="auto", same_as={"status": ("income", mapping)})
    with pytest.warns(UserWarning, match="no key of the dict"):
        synth.fit(FRAME)


def test_a_column_of_which_no_category_was_found_may_be_in_forbidden_pairs():
    frame = pd.DataFrame({"code": np.arange(200).astype(str), "status": STATUS * 66 + STATUS[:2]})
    synth = DPTableSynthesizer(
        categories={"status": STATUS}, forbidden={("code", "status"): [("7", "child")]}
    )
    with pytest.warns(UserWarning, match="No category"):
        synth.fit(frame)
    assert len(synth.sample(10)) == 10


def test_a_dict_of_dates_may_be_written_in_any_type_of_dates():
    days = [pd.Timestamp("2020-01-01") + pd.Timedelta(i, "D") for i in range(91)]
    for convert in (lambda day: day, lambda day: day.date(), lambda day: str(day.date())):
        mapping = {convert(day): float(i) for i, day in enumerate(days)}
        synth = synthesizer(same_as={"income": ("day", mapping)}, decimals={"day": 0})
        rows = synth.set_params(bounds=BOUNDS | {"day": (days[0], days[-1])}).fit(FRAME).sample(50)
        assert rows["income"].tolist() == (rows["day"] - days[0]).dt.days.tolist()


def test_a_dict_for_none_of_the_found_categories_is_warned_about():
    synth = DPTableSynthesizer(5.0, bounds=BOUNDS, same_as={"years": ("status", {"Child": 4.0})})
    frame = FRAME.astype({"years": float})
    with pytest.warns(UserWarning, match="none of the categories that were found"):
        synth.fit(frame)


@pytest.mark.parametrize("declared", [["u", None], [None, "u", "v"]])
def test_none_among_the_categories_of_a_categorical_type(declared):
    """No categorical type lists None: it is a missing value."""
    frame = pd.DataFrame({"x": pd.Categorical(["u", "v"] * 50)})
    rows = DPTableSynthesizer(categories={"x": declared}).fit(frame).sample(20)
    assert None not in rows["x"].cat.categories.tolist()


@pytest.mark.parametrize("dtype", ["int8", "bool", "int64"])
def test_none_is_no_category_of_a_type_without_missing_values(dtype):
    accountant = PrivacyAccountant(10.0, 0.1)
    frame = pd.DataFrame({"x": np.array([0, 1] * 50, dtype=dtype)})
    synth = DPTableSynthesizer(categories={"x": [0, 1, None]}, accountant=accountant)
    with pytest.raises(ValueError, match="cannot hold None among its categories"):
        synth.fit(frame)
    assert accountant.epsilon_spent == 0.0
