"""A ColumnTransformer that is given a table that is not in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, make_pipeline

import skdp
from skdp.model_selection import dp_cross_val_score
from skdp.pipeline import split_budget

N = 120
FRAME = pd.DataFrame(
    {"a": np.linspace(0, 1, N), "b": np.arange(N) % 5 / 5, "w": ["x", "y"] * (N // 2)}
)
Y = np.arange(N) % 2


def polars_frame(tmp_path):
    return pytest.importorskip("polars").DataFrame(FRAME.to_dict("list")).lazy()


def dask_frame(tmp_path):
    return pytest.importorskip("dask.dataframe").from_pandas(FRAME, npartitions=2)


def arrow_dataset(tmp_path):
    arrow, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.Table.from_pandas(FRAME), tmp_path / "table.parquet")
    return dataset.dataset(tmp_path / "table.parquet")


TABLES = {
    polars_frame: lambda table: table.collect(),
    dask_frame: lambda table: table.compute(),
    arrow_dataset: lambda table: table.to_table().to_pandas(),
}


def columns(by_position=False):
    numbers, words = ([0, 1], [2]) if by_position else (["a", "b"], ["w"])
    return ColumnTransformer(
        [
            ("numbers", skdp.DPStandardScaler(bounds=(0, 1)), numbers),
            ("words", skdp.DPOneHotEncoder(categories=[["x", "y"]]), words),
        ]
    )


def split(pipe, accountant):
    return split_budget(pipe, 1.0, 1e-6, accountant)


def search(pipe, accountant):
    grid = {"dplogisticregression__C": [0.1, 1.0]}
    return skdp.DPGridSearchCV(pipe, grid, accountant=accountant)


def scores(pipe, accountant, X):
    return dp_cross_val_score(pipe, X, Y, accountant=accountant)


LOGISTIC = skdp.DPLogisticRegression()
FITS = {
    "columns": lambda acc, X: split(columns(), acc).fit(X, Y),
    "positions": lambda acc, X: split(columns(by_position=True), acc).fit(X, Y),
    "pipeline": lambda acc, X: split(make_pipeline(columns(), LOGISTIC), acc).fit(X, Y),
    "nested": lambda acc, X: split(
        make_pipeline(make_pipeline("passthrough", columns()), LOGISTIC), acc
    ).fit(X, Y),
    "union": lambda acc, X: split(
        FeatureUnion([("vectorizer", skdp.DPTableVectorizer()), ("columns", columns())]), acc
    ).fit(X, Y),
    "search": lambda acc, X: search(make_pipeline(columns(), LOGISTIC), acc).fit(X, Y),
    "scores": lambda acc, X: scores(make_pipeline(columns(), LOGISTIC), acc, X),
}


@pytest.mark.quick_cases(every=21)
@pytest.mark.parametrize("make_table", TABLES, ids=lambda make: make.__name__)
@pytest.mark.parametrize("name", FITS)
def test_it_is_refused_before_the_charge_with_a_remedy_that_works(name, make_table, tmp_path):
    table = make_table(tmp_path)
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    with pytest.raises(ValueError, match="from tables in memory: pass X") as error:
        FITS[name](accountant, table)
    assert accountant.epsilon_spent == 0.0 and "DPTableVectorizer" in str(error.value)
    FITS[name](accountant, TABLES[make_table](table))
    assert accountant.epsilon_spent == 1.0


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("make_table", [polars_frame, dask_frame], ids=lambda make: make.__name__)
def test_the_table_vectorizer_takes_its_place(make_table, tmp_path):
    accountant = skdp.PrivacyAccountant(10.0, 0.1)
    front = skdp.DPTableVectorizer(bounds={"a": (0, 1), "b": (0, 1)}, categories={"w": ["x", "y"]})
    model = split(make_pipeline(front, LOGISTIC), accountant).fit(make_table(tmp_path), Y)
    assert accountant.epsilon_spent == 1.0 and len(model.predict(FRAME)) == N
