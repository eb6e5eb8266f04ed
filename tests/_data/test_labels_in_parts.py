"""Estimators of labels answer tables in parts as they answer the same tables in memory."""

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from scipy.sparse import issparse
from sklearn.base import clone

import skdp
from skdp import ChunkedArray

N = 12
COLUMNS = {"words": ["a", "b", "c"] * 4, "numbers": [1, 2, 3] * 4, "booleans": [True, False] * 6}
OF_ANOTHER_KIND = {"words": "numbers", "numbers": "words", "booleans": "words"}
ESTIMATORS = {
    "one-hot": skdp.DPOneHotEncoder(sparse_output=False),
    "one-hot with other": skdp.DPOneHotEncoder(other="rest", sparse_output=False),
    "target": skdp.DPTargetEncoder(),
    "histogram": skdp.DPHistogramTransformer(sparse_output=False),
    "vectorizer": skdp.DPTableVectorizer(),
    "scaled vectorizer": skdp.DPTableVectorizer(numeric="scaled"),
    "additive model": skdp.DPAdditiveClassifier(),
    "forest": skdp.DPRandomForestRegressor(n_estimators=2, target_bounds=(0, 1)),
    "naive Bayes": skdp.DPHistogramNB(),
}


def dense(answer):
    return answer.toarray() if issparse(answer) else np.asarray(answer)


def table(kind):
    return pyarrow.table({"x": COLUMNS[kind], "y": COLUMNS["words"]})


def in_parts(rows, folder):
    parquet.write_table(rows, folder / "rows.parquet", row_group_size=5)
    return ChunkedArray(folder / "rows.parquet")


def fitted(name, kind):
    categories = [sorted(set(COLUMNS[kind])), ["a", "b", "c"]]
    model = clone(ESTIMATORS[name]).set_params(categories=categories)
    return model.fit(table(kind), np.arange(N) % 2)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_table_in_parts_is_answered_as_one_in_memory(name, kind, tmp_path):
    model, rows = fitted(name, kind), table(kind)
    answer = getattr(model, "transform", None) or model.predict
    lazy = answer(in_parts(rows, tmp_path))
    assert isinstance(lazy, ChunkedArray) == hasattr(model, "transform")
    np.testing.assert_array_equal(dense(lazy), dense(answer(rows)))


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_labels_of_another_kind_are_refused_in_parts_too(name, kind, tmp_path):
    model, rows = fitted(name, kind), table(OF_ANOTHER_KIND[kind])
    answer = getattr(model, "transform", None) or model.predict
    with pytest.raises(ValueError, match="which never equal"):
        answer(rows)
    with pytest.raises(ValueError, match="which never equal"):
        dense(answer(in_parts(rows, tmp_path)))
