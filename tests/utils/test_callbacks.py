"""Every private fit tells callbacks that it begins and ends, and nothing of the rows."""

import numpy as np
import pytest
from sklearn.base import clone

from skdp import (
    DPLogisticRegression,
    DPMinMaxScaler,
    DPOneHotEncoder,
    DPRidge,
    DPTableVectorizer,
    RandomizedResponseTransformer,
)

X = np.random.default_rng(0).integers(0, 2, size=(100, 2)).astype(float)
ESTIMATORS = [
    DPLogisticRegression(),
    DPRidge(target_bounds=(0, 1)),
    DPMinMaxScaler(bounds=(0, 1)),
    DPOneHotEncoder(categories=[0.0, 1.0]),
    DPTableVectorizer(delta=1e-6),
    RandomizedResponseTransformer(categories=[0.0, 1.0]),
]


class Recorder:
    """A callback of scikit-learn that asks for everything."""

    def __init__(self):
        self.told = []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is metadata is fitted_estimator is None
        self.told.append("begin")

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        assert X is y is metadata is fitted_estimator is None
        self.told.append("end")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_fit_is_one_task(estimator):
    pytest.importorskip("sklearn.callback")
    recorder = Recorder()
    model = clone(estimator).set_callbacks(recorder)
    model.fit(X, X[:, 0])
    assert recorder.told == ["setup", "begin", "end", "teardown"]
    recorder.told.clear()
    with pytest.raises(ValueError, match="epsilon must be"):
        model.set_params(epsilon=-1.0).fit(X, X[:, 0])
    assert recorder.told == ["setup", "begin", "teardown"]
