"""A draft of a schema comes from names and types alone, and what is filled in is what counts."""

import datetime
import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from skdp import DPAdditiveClassifier, DPStandardScaler, PrivacyAccountant, Schema, schema_from
from skdp.datasets import make_customers

DRAFT = {
    "bounds": dict.fromkeys(["age", "income", "hours", "visits", "joined"]),
    "categories": dict.fromkeys(["education", "job", "region"]),
}


def test_equal_names_and_types_give_equal_drafts():
    one, two = make_customers(50).data, make_customers(90, random_state=1).data
    two["job"] = two["job"].cat.add_categories(["secret"]).cat.remove_categories(["care"])
    two.loc[:, "income"] = np.nan
    two.loc[0, "visits"] = 10**9
    assert schema_from(one) == schema_from(two) == schema_from(one.iloc[:0]) == DRAFT


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_other_frames_have_the_same_draft(convert):
    assert schema_from(convert(make_customers(20).data)) == DRAFT


def test_every_type_has_its_place():
    table = pd.DataFrame(
        {
            "objects": np.array(["a", None], dtype=object),
            "strings": pd.array(["a", None], dtype="string"),
            "yes": [True, False],
            "maybe": pd.array([True, None], dtype="boolean"),
            "span": pd.to_timedelta([1, 2], unit="h"),
            "gaps": pd.array([1, None], dtype="Int64"),
            "zone": pd.to_datetime([0, 1]).tz_localize("UTC"),
        }
    )
    found = schema_from(table)
    assert list(found["bounds"]) == ["span", "gaps", "zone"]
    assert list(found["categories"]) == ["objects", "strings"]


def test_no_value_is_read(monkeypatch):
    table = make_customers(20).data

    def read(*args, **kwargs):
        raise AssertionError("a value was read")

    for name in ("__getitem__", "to_numpy", "__array__", "iloc", "items", "isna", "_values"):
        monkeypatch.setattr(
            pd.DataFrame, name, property(read) if name in ("iloc", "_values") else read
        )
    assert schema_from(table) == DRAFT


def test_a_file_that_was_signed_off_declares_all(tmp_path):
    people, file = make_customers(2000), tmp_path / "schema.json"
    file.write_text(json.dumps(people.schema, indent=1))
    read = json.loads(file.read_text())
    assert {what: list(read[what]) for what in read} == {what: list(DRAFT[what]) for what in DRAFT}
    scores = [
        DPAdditiveClassifier(**schema, random_state=0)
        .fit(people.data, people.target)
        .decision_function(people.data)
        for schema in (people.schema, read)
    ]
    assert np.array_equal(*scores)


def test_blanks_are_found_privately_or_refused():
    people, accountant = make_customers(2000), PrivacyAccountant(epsilon=1.0, delta=1e-6)
    draft = schema_from(people.data)
    model = DPAdditiveClassifier(**draft, random_state=0).fit(people.data, people.target)
    free = DPAdditiveClassifier(random_state=0).fit(people.data, people.target)
    assert np.array_equal(*(m.decision_function(people.data) for m in (model, free)))
    scaler = DPStandardScaler(bounds={"age": None, "hours": (0, 80)}, accountant=accountant)
    with pytest.raises(ValueError, match=r"bounds has no entry for the columns \['age'\]"):
        scaler.fit(people.data[["age", "hours"]])
    assert not accountant.charges


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones((3, 2)), "got a ndarray"),
        ([[1, 2]], "got a list"),
        (pd.DataFrame({0: [1], 1: [2]}), "names are strings"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"same name \('a'\): rename them"),
        (pd.Series([1, 2], name="a"), "got a Series"),
        (pd.DataFrame(), "no columns"),
        (None, "got a NoneType"),
    ],
)
def test_what_has_no_names_is_refused(table, message):
    with pytest.raises(ValueError, match=message):
        schema_from(table)


@pytest.mark.parametrize(
    "labels",
    [
        [0, 1],
        ["a", 1],
        [("a", "x"), ("a", "y")],
        pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]),
        pd.date_range("2020", periods=2),
    ],
)
def test_the_remedy_for_labels_that_are_not_strings_works(labels):
    table = pd.DataFrame([[1, 2]])
    table.columns = pd.Index(labels, tupleize_cols=False)
    with pytest.raises(ValueError, match="names are strings") as refusal:
        schema_from(table)
    remedy = re.search(r"write (X\.columns = .*) in pandas", str(refusal.value)).group(1)
    exec(remedy, {"X": table})
    assert len(schema_from(table)["bounds"]) == 2


def test_a_schema_is_a_file_of_a_line_a_column_and_is_read_again(tmp_path):
    people, file = make_customers(50), tmp_path / "schema.json"
    schema = schema_from(people.data)
    assert isinstance(schema, Schema) and schema.blanks == [*DRAFT["bounds"], *DRAFT["categories"]]
    schema["bounds"] |= {
        "age": np.array([18, 100]),
        "income": (np.int64(0), 1.5e5),
        "joined": (pd.Timestamp("2012-01-01"), datetime.date(2026, 1, 1)),
    }
    schema["categories"]["job"] = np.array(["ärztin", 'a "b"'], dtype=object)
    schema.save(file)
    read = Schema.load(file)
    assert read["bounds"]["age"] == [18, 100] and read["bounds"]["income"] == [0, 1.5e5]
    assert read["bounds"]["joined"] == ["2012-01-01T00:00:00", "2026-01-01"]
    assert read["categories"]["job"] == ["ärztin", 'a "b"']
    assert read.blanks == schema.blanks == ["hours", "visits", "education", "region"]
    text = file.read_text("utf-8")
    assert text == f"{read}\n" == f"{schema}\n" and len(text.splitlines()) == 8 + 6
    shown = schema._repr_html_()
    assert all(name in shown for name in people.data) and "<b" not in shown
    assert isinstance(pickle.loads(pickle.dumps(read)), Schema)


@pytest.mark.parametrize("text", ["[]", "{}", '{"bounds": {}}', '{"bounds": {}, "categories": 1}'])
def test_a_file_that_is_no_schema_is_refused(text, tmp_path):
    (tmp_path / "schema.json").write_text(text)
    with pytest.raises(ValueError, match="must contain an object with 'bounds' and 'categories'"):
        Schema.load(tmp_path / "schema.json")


PAIRS = [(0, 1), [0, 1], np.array([0, 1]), ("2015", datetime.date(2016, 1, 31))]
LABELS = [("a", "b"), ["a", "b"], np.array(["a", "b"]), None]


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
@pytest.mark.parametrize("labels", LABELS, ids=repr)
def test_a_schema_equals_the_one_in_its_file(tmp_path, pair, labels):
    schema = Schema(bounds={"x": pair, "empty": None}, categories={"w": labels})
    schema.save(tmp_path / "schema.json")
    loaded = Schema.load(tmp_path / "schema.json")
    assert loaded == schema and schema == loaded and not schema != loaded
    for other in (
        Schema(bounds={"x": (0, 2), "empty": None}, categories={"w": labels}),
        Schema(bounds={"x": pair, "empty": None}, categories={"w": ["a"]}),
        Schema(bounds={"x": pair}, categories={"w": labels}),
    ):
        assert other != schema and not other == loaded


def test_the_label_of_a_column_is_not_its_text():
    assert Schema(bounds={1: (0, 1)}, categories={}) != Schema(bounds={"1": (0, 1)}, categories={})
