"""Two columns of one name are refused before the charge; names of any type of string are names."""

from enum import StrEnum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

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


class Column(StrEnum):
    """Names of columns, as members of an enumeration."""

    Z = "z"
    C = "c"


#: Labels that are strings, but of a subclass of str, as pandas before version 3 keeps them.
STRING_LABELS = {"NumPy": [np.str_("z"), np.str_("c")], "enumeration": list(Column)}


def labeled_table(labels):
    """Return a table of two columns of numbers with these labels."""
    columns = pd.DataFrame({"z": CELLS[:, 0], "c": CELLS[:, 1]})
    return columns.set_axis(pd.Index(labels, dtype=object), axis=1)


@pytest.mark.parametrize("kind", STRING_LABELS)
@pytest.mark.parametrize(
    "model",
    [
        skdp.DPAdditiveClassifier(delta=1e-6, bounds={"z": (0, 1), "c": (0, 2)}, random_state=0),
        skdp.DPHistogramNB(delta=1e-6, bounds={"z": (0, 1), "c": (0, 2)}, random_state=0),
        skdp.DPGaussianNB(bounds=(0, 1), random_state=0),
        skdp.DPTableVectorizer(delta=1e-6, bounds={"z": (0, 1), "c": (0, 2)}, random_state=0),
        skdp.DPStandardScaler(bounds=(0, 1), random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_names_of_a_subclass_of_str_are_names(model, kind):
    plain, labeled = labeled_table(["z", "c"]), labeled_table(STRING_LABELS[kind])
    method = "transform" if hasattr(model, "transform") else "predict_proba"
    y = CELLS[:, 2] > 0.5
    expected = clone(model).fit(plain, y)
    fitted = clone(model).fit(labeled, y)
    assert list(fitted.feature_names_in_) == ["z", "c"]
    assert {type(name) for name in fitted.feature_names_in_} == {str}
    answers = [getattr(m, method)(X) for m in (expected, fitted) for X in (plain, labeled)]
    for answer in answers[1:]:
        difference = csr_array(answer) - csr_array(answers[0])
        assert abs(difference).sum() == 0
    for m in (expected, fitted):
        # Without names, the columns would be taken by position.
        with pytest.raises(ValueError, match="same order"):
            getattr(m, method)(labeled.iloc[:, ::-1])
