"""Integers that floats do not represent are never read as the category of another integer."""

from decimal import Decimal
from functools import partial

import numpy as np
import polars
import pyarrow
import pytest
from pyarrow import parquet

import skdp
from skdp import ChunkedArray, PrivacyAccountant

N = 40
FIRST = 2**53
IDS = [FIRST + k % 2 for k in range(N)]
Y = np.arange(N) % 2
ESTIMATORS = {
    "one-hot": skdp.DPOneHotEncoder,
    "target": skdp.DPTargetEncoder,
    "histogram": skdp.DPHistogramTransformer,
    "vectorizer": skdp.DPTableVectorizer,
    "additive model": partial(skdp.DPAdditiveClassifier, interactions=0),
    "forest": partial(skdp.DPRandomForestClassifier, n_estimators=2),
    "naive Bayes": skdp.DPHistogramNB,
}
TYPES = {"integers": pyarrow.int64(), "decimals": pyarrow.decimal128(20, 0)}


def table(kind, values=IDS):
    cells = [Decimal(value) if kind == "decimals" else value for value in values]
    return pyarrow.table({"id": pyarrow.array(cells, TYPES[kind]), "word": ["a", "b"] * (N // 2)})


def numbers_in_parts(kind, folder):
    parquet.write_table(table(kind).select(["id"]), folder / "rows.parquet", row_group_size=9)
    return ChunkedArray(folder / "rows.parquet")


def parts_with_words(kind, folder):
    return polars.from_arrow(table(kind)).lazy()


def make(name, accountant, n_columns, first=FIRST):
    categories = [[first, first + 1], ["a", "b"]][:n_columns]
    return ESTIMATORS[name](5.0, categories=categories, accountant=accountant)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("read", [numbers_in_parts, parts_with_words])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_large_categories_of_a_table_in_parts_are_refused_before_the_charge(
    name, kind, read, tmp_path
):
    accountant = PrivacyAccountant(100.0, 1e-3)
    rows = read(kind, tmp_path)
    n_columns = 1 if read is numbers_in_parts else 2
    with pytest.raises(ValueError, match="column 'id' .* to which others are rounded"):
        make(name, accountant, n_columns).fit(rows, Y)
    assert not accountant.charges


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("read", [numbers_in_parts, parts_with_words])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_large_categories_are_refused_when_a_table_in_parts_is_served(name, read, tmp_path):
    is_narrow = read is numbers_in_parts
    rows = table("integers").select(["id"]) if is_narrow else table("integers")
    model = make(name, None, 1 if is_narrow else 2).fit(rows, Y)
    answer = getattr(model, "transform", None) or model.predict
    answer(rows)
    with pytest.raises(ValueError, match="to which others are rounded"):
        np.asarray(answer(read("integers", tmp_path)))


def test_large_categories_of_doubles_are_doubles():
    accountant = PrivacyAccountant(100.0, 1e-3)
    column = np.array(IDS, dtype=np.float64).reshape(-1, 1)
    with pytest.raises(ValueError, match="holds float64 values by its type"):
        make("naive Bayes", accountant, 1).fit(column, Y)
    for huge in (10**400, FIRST + 3):
        model = skdp.DPHistogramNB(categories=[[0, huge]], accountant=accountant)
        with pytest.raises(ValueError, match="holds float64 values by its type"):
            model.fit(column, Y)
    assert not accountant.charges
    skdp.DPHistogramNB(categories=[[FIRST, FIRST + 2]], accountant=accountant).fit(column, Y)


def test_small_categories_of_a_table_in_parts_are_found(tmp_path):
    rows = polars.from_arrow(table("integers", [2**53 - 2 + k % 2 for k in range(N)])).lazy()
    model = make("naive Bayes", None, 2, first=2**53 - 2).fit(rows, Y)
    assert (np.asarray(model.predict(rows)) == Y).mean() > 0.5
