"""The made table of people: the same for everyone, worth learning from, and as it declares."""

import sys

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from skdp import DPAdditiveClassifier
from skdp.datasets import make_customers


def test_a_seed_makes_the_same_table_again():
    one, two, other = make_customers(300), make_customers(300), make_customers(300, random_state=1)
    assert one.data.equals(two.data) and np.array_equal(one.target, two.target)
    assert not one.data.equals(other.data)
    assert np.array_equal(np.unique(one.groups), np.arange(300))


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("library", ["pandas", None])
def test_what_the_form_declares_holds_and_models_learn(library, monkeypatch):
    with monkeypatch.context() as patch:
        if library is None:
            patch.setitem(sys.modules, "pandas", None)
        people = make_customers()
    assert isinstance(people.data, np.ndarray) == (library is None)
    column = (lambda key: people.data[:, key]) if library is None else people.data.get
    bounds, categories = people.schema["bounds"], people.schema["categories"]
    assert len(bounds) + len(categories) == people.data.shape[1]
    for key, (low, high) in bounds.items():
        values = [value for value in column(key) if value == value]
        low, high = map(type(values[0]), (low, high))
        assert all(low <= value <= high for value in values)
        assert (len(values) < 20_000) == (key in ("income", 4))
    for key, labels in categories.items():
        assert set(column(key)) == set(labels)
    assert 0.3 < people.target.mean() < 0.4
    train, test = slice(0, 15_000), slice(15_000, None)
    rows = people.data if library is None else people.data.iloc
    model = DPAdditiveClassifier(delta=1e-6, **people.schema, random_state=0)
    model.fit(rows[train], people.target[train])
    scores = model.decision_function(rows[test])
    assert roc_auc_score(people.target[test], scores) > 0.84


def test_a_person_may_have_several_rows():
    people = make_customers(3000, rows_per_person=3)
    persons, first, counts = np.unique(people.groups, return_index=True, return_counts=True)
    assert set(counts) == {1, 2, 3} and 1400 < len(persons) < 1600
    same = people.data.iloc[first[people.groups]].reset_index(drop=True)
    for name in ("age", "education", "job", "region"):
        assert same[name].equals(people.data[name])
    assert not same["visits"].equals(people.data["visits"])


def test_a_table_may_be_changed_without_changing_the_next():
    make_customers(10).schema["bounds"]["age"] = None
    assert make_customers(10).schema["bounds"]["age"] == (18, 100)


@pytest.mark.parametrize("params", [{"n_samples": 0}, {"rows_per_person": 0}])
def test_a_table_without_rows_is_refused(params):
    with pytest.raises(ValueError, match="at least 1"):
        make_customers(**params)
