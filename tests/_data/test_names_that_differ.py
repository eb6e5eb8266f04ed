"""Two columns of one name: refused before the charge, by every estimator and container."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import skdp
from skdp import PrivacyAccountant, tabular_pipeline

CELLS = np.random.default_rng(0).random((50, 3))
NAMES = ["a", "b", "a"]
TABLES = {
    "pandas": pd.DataFrame(CELLS, columns=NAMES),
    "arrow": pa.table([pa.array(column) for column in CELLS.T], names=NAMES),
}
ESTIMATORS = {
    "DPStandardScaler": {},
    "DPPCA": {},
    "DPOneHotEncoder": {"delta": 1e-6},
    "DPTableVectorizer": {"delta": 1e-6},
    "DPLogisticRegression": {"data_norm": 2.0},
    "DPAdditiveClassifier": {"bounds": {"a": (0, 1)}},
    "DPHistogramNB": {"bounds": (0, 1)},
    "DPRandomForestClassifier": {"bounds": (0, 1)},
    "tabular_pipeline": {},
}


@pytest.mark.parametrize("form", TABLES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_two_columns_of_one_name_cost_nothing(name, form):
    accountant = PrivacyAccountant(10.0, 1e-3)
    params = ESTIMATORS[name] | {"accountant": accountant}
    if name == "tabular_pipeline":
        model = tabular_pipeline("classifier", **params)
    else:
        model = getattr(skdp, name)(**params)
    with pytest.raises(
        ValueError, match=r"several columns with the same name \('a'\): rename them"
    ):
        model.fit(TABLES[form], CELLS[:, 0] > 0.5)
    assert not accountant.charges
