import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

from skdp import DPLogisticRegression, DPStandardScaler
from skdp.audit import audit_epsilon, membership_inference
from skdp.audit._tables import (
    append_row,
    as_table,
    canary_tables,
    default_canaries,
    other_tables,
    with_as_many_rows,
)
from tests._private import take_rows

N = 24
FRAME = pd.DataFrame(
    {
        "age": np.linspace(0.0, 1.0, N),
        "income": np.r_[np.nan, np.ones(N - 1)],
        "town": ["north", *["south"] * (N - 1)],
        "kind": pd.Categorical(["p", "q"] * (N // 2)),
        "visits": np.arange(N),
    },
    index=np.repeat([3, 5], N // 2),
)
Y = np.arange(N) % 2
TABLES = {
    "frame": FRAME,
    "polars": pl.from_pandas(FRAME.reset_index(drop=True)),
    "objects": FRAME.to_numpy(dtype=object),
    "lists": FRAME.to_numpy(dtype=object).tolist(),
    "numbers": FRAME[["age", "visits"]].to_numpy(),
    "sparse": csr_array(FRAME[["age", "visits"]].to_numpy()),
}


@pytest.mark.parametrize("container", TABLES)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_worlds_keep_the_container(container, relation):
    X = TABLES[container]
    far, near = default_canaries(DPLogisticRegression(), X, Y)
    worlds = canary_tables(X, Y, near, relation)
    assert worlds.X_in.shape[0] == N + 1
    assert worlds.X_out.shape[0] == N + (relation == "replace_one")
    same = with_as_many_rows(worlds) if relation == "add_remove" else worlds
    found = [worlds.X_in, worlds.X_out, same.X_out, as_table(X)]
    if relation == "add_remove":
        found += [table for table, _ in other_tables(worlds)]
    assert len({type(table) for table in found}) == 1
    if container == "frame":
        assert all((table.dtypes == FRAME.dtypes)[:4].all() for table in found)
        assert worlds.X_in.iloc[-1]["town"] == "north"
    if container in ("objects", "lists"):
        cells = [list(map(type, row)) for row in (worlds.X_in[0], TABLES["objects"][0])]
        assert cells[0] == cells[1]


def test_a_canary_that_a_column_cannot_hold():
    with pytest.raises(ValueError, match="'kind'"):
        append_row(FRAME, [0.0, 0.0, "east", "unknown", 1])
    longer = append_row(FRAME, [0.0, 0.0, "east", "p", 0.5])
    # Whole numbers turn into fractions, in both tables.
    worlds = canary_tables(FRAME, Y, (longer.iloc[-1], 1), "add_remove")
    assert worlds.X_in["visits"].dtype == worlds.X_out["visits"].dtype == float


def test_rows_by_mask_and_by_position():
    for X in TABLES.values():
        rows = take_rows(X, np.arange(N) == 2)
        assert (len(rows) if isinstance(rows, list) else rows.shape[0]) == 1


def nest(numbers, texts):
    scale = DPStandardScaler(epsilon=50.0, bounds=(0, 1))
    encode = OneHotEncoder(categories=[["north", "south"]], sparse_output=False)
    columns = ColumnTransformer([("n", scale, numbers), ("t", encode, texts)])
    prepare = Pipeline([("union", FeatureUnion([("columns", columns)]))])
    model = DPLogisticRegression(epsilon=50.0, mechanism="output", C=1.0)
    return Pipeline([("prepare", prepare), ("model", Pipeline([("inner", model)]))])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("container", "places"),
    [
        ("frame", (["age", "visits"], ["town"])),
        ("polars", (["age", "visits"], ["town"])),
        ("objects", ([0, 4], [2])),
    ],
)
def test_audits_take_nests_by_name_and_by_position(container, places):
    X, model = TABLES[container], nest(*places)
    claim = {"epsilon": 100.0, "delta": 1e-5}
    assert not audit_epsilon(model, X, Y, method="two_worlds", n_fits=20, **claim).violation
    found = audit_epsilon(
        model, X, Y, method="one_run", n_canaries=20, random_state=0, canary_norm=1.0, **claim
    )
    assert not found.violation
    attacked = membership_inference(model, X, Y, n_shadow=4, access="parameters", random_state=0)
    assert len(attacked.scores) == N


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
def test_sparse_tables():
    X = TABLES["sparse"]
    model = Pipeline(
        [
            (
                "columns",
                ColumnTransformer([("scale", MaxAbsScaler(), [0])], remainder="passthrough"),
            ),
            ("model", DPLogisticRegression(epsilon=50.0, mechanism="output", C=1.0)),
        ]
    )
    with pytest.warns(match="VIOLATION"):
        canary = np.array([50.0, 0.0]), 1
        audit_epsilon(
            model, X, Y, method="two_worlds", epsilon=0.1, delta=0.0, n_fits=24, canary=canary
        )
    membership_inference(model, X, Y, attack="loss", random_state=0)


def test_the_worst_case_of_a_nest_takes_the_parameters_of_its_parts():
    model = DPLogisticRegression(
        epsilon=50.0, mechanism="output", C=1.0, data_norm=3.0, classes=["a", "b"]
    )
    nested = Pipeline([("outer", Pipeline([("inner", model)]))])
    found = audit_epsilon(nested, epsilon=50.0, delta=0.0, n_fits=20, n_samples=10)
    assert not found.violation
