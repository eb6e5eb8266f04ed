"""Columns of the output have distinct names, whatever the columns and their categories are called.

Frames of polars and later steps refuse equal names, which would be after the charge.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import skdp
from skdp import DPAdditiveClassifier, PrivacyAccountant
from skdp.pipeline import split_budget

N_ROWS = 400
CODES = np.random.default_rng(0).integers(0, 2, (N_ROWS, 2))
Y = CODES[:, 0]
OBJECTS = np.array([1, "1"], dtype=object)
TABLES = {
    "labels and names": {
        "a": np.array(["b_c", "x"])[CODES[:, 0]],
        "a_b": np.array(["c", "x"])[CODES[:, 1]],
    },
    "names of other values": {
        "a": np.array(["other", "missing"])[CODES[:, 0]],
        "b": np.array(["infrequent", "infrequent_sklearn"])[CODES[:, 1]],
    },
    "numbers and text": {"a": OBJECTS[CODES[:, 0]]},
    "underscores": {
        "a": np.array(["b_c", "b_c_"])[CODES[:, 0]],
        "a_b": np.array(["c", "c_"])[CODES[:, 1]],
    },
}
TRANSFORMERS = {
    "DPTableVectorizer": {},
    "DPOneHotEncoder": {"sparse_output": False},
    "DPHistogramTransformer": {},
}
# Those that can find categories.
FINDERS = ["DPTableVectorizer", "DPOneHotEncoder"]


@pytest.mark.filterwarnings("ignore:the categories of:UserWarning")
@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "name, found", [(name, False) for name in TRANSFORMERS] + [(name, True) for name in FINDERS]
)
def test_names_of_the_output_are_distinct(name, table, output, found):
    X = pd.DataFrame(TABLES[table])
    categories = {column: sorted(set(X[column]), key=repr) for column in X}
    if found:
        categories = "auto"
    accountant = PrivacyAccountant(1000.0, 0.1)
    params = {"delta": 1e-6, "categories": categories, "random_state": 0} | TRANSFORMERS[name]
    transformer = getattr(skdp, name)(50.0, accountant=accountant, **params)
    transformer.set_output(transform=output)
    encoded = transformer.fit_transform(X, Y)
    names = transformer.get_feature_names_out().tolist()
    assert len(set(names)) == len(names) == encoded.shape[1]
    if output != "default":
        assert list(encoded.columns) == names
        steps = make_pipeline(transformer.set_params(accountant=None), DPAdditiveClassifier())
        split = split_budget(steps, 50.0, delta=1e-3, accountant=accountant)
        split.set_output(transform=output).fit(X, Y).predict(X)


def test_names_that_differ_stay_as_they_are():
    encoder = skdp.DPOneHotEncoder(categories={"a": ["u", "v"]})
    names = encoder.fit(pd.DataFrame({"a": ["u", "v"]})).get_feature_names_out()
    assert names.tolist() == ["a_u", "a_v"]
