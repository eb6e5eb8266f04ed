"""What an answer costs: how often tables are read does not grow with their columns."""

from collections import Counter
from functools import wraps

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone

import skdp
from skdp._data import _columns, _frames, _histogram, _tables

# What reads, converts or checks cells.
READERS = [
    (_columns, "as_numbers"),
    (_columns, "check_finite"),
    (_columns.ColumnTable, "values"),
    (_tables, "check_finite"),
    (_tables._containers, "as_numbers"),
    (_tables._frames, "column_values"),
    (_histogram.Bins, "__init__"),
]
FEW, MANY = 4, 40
KNOWN = {"epsilon": 10.0, "random_state": 0}
OF_NUMBERS = [
    skdp.DPAdditiveClassifier(bounds=(0, 1), **KNOWN),
    skdp.DPHistogramNB(bounds=(0, 1), **KNOWN),
    skdp.DPDecisionTreeClassifier(bounds=(0, 1), max_depth=1, **KNOWN),
    skdp.DPTableVectorizer(bounds=(0, 1), **KNOWN),
    skdp.DPTableVectorizer(bounds=(0, 1), numeric="scaled", **KNOWN),
    skdp.DPSimpleImputer(bounds=(0, 1), **KNOWN),
    skdp.DPStandardScaler(bounds=(0, 1), **KNOWN),
]


def numbers(kind, n_columns, n_rows=40):
    values = np.random.default_rng(0).uniform(size=(n_rows, n_columns))
    if kind == "array":
        return values
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(n_columns)])
    return frame if kind == "frame" else frame.astype({"x0": np.float32, "x1": np.float32})


def calls_of(answer, rows):
    """Return how often each reader is called while rows are answered."""
    counts = Counter()

    def counted(function, name):
        @wraps(function)
        def counting(*args, **kwargs):
            counts[name] += 1
            return function(*args, **kwargs)

        return counting

    with pytest.MonkeyPatch.context() as patched:
        for owner, name in READERS:
            patched.setattr(owner, name, counted(getattr(owner, name), f"{owner}.{name}"))
        answer(rows)
    return counts


@pytest.mark.quick_cases(cover="values")
@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.parametrize("kind", ["array", "frame", "frame of two types"])
@pytest.mark.parametrize("model", OF_NUMBERS, ids=lambda model: type(model).__name__)
def test_columns_of_one_type_are_read_together(model, kind):
    counts = []
    for n_columns in (FEW, MANY):
        table = numbers(kind, n_columns)
        fitted = clone(model).fit(table, np.arange(len(table)) % 2)
        answer = getattr(fitted, "predict", None) or fitted.transform
        counts.append(calls_of(answer, table[:1]))
    assert counts[0] == counts[1]


class CountedTable:
    """An Arrow table that counts how often the list of its columns is made."""

    column_names = ()

    def __init__(self, table):
        self.table = table
        self.n_lists = 0

    @property
    def columns(self):
        self.n_lists += 1
        return self.table.columns


def test_the_columns_of_an_arrow_table_are_listed_once():
    """Arrow makes a new list at each access, so a list for each column takes quadratic time."""
    table = pa.table({f"x{j}": [float(j)] for j in range(MANY)})
    counted = CountedTable(table)
    columns = _frames.columns_of(counted, range(1, MANY))
    assert counted.n_lists == 1
    assert [column.to_pylist() for column in columns] == [[float(j)] for j in range(1, MANY)]
