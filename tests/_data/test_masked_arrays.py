"""Arrays that hide cells by a mask: NumPy would drop the mask, so they are refused at no cost."""

import inspect

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skdp
from skdp import ChunkedArray, PrivacyAccountant
from skdp.metrics import dp_accuracy_score
from skdp.pipeline import split_budget
from skdp.stats import dp_count, dp_describe, dp_mean, dp_mode
from tests._estimators import LISTED
from tests._public import ESTIMATORS

N_ROWS = 60
VALUES = np.random.default_rng(0).integers(0, 2, (N_ROWS, 2))
Y = VALUES[:, 0]
MASK = np.zeros((N_ROWS, 2), dtype=bool)
MASK[7] = True
ONE_OF_EACH = {type(estimator): estimator for estimator in reversed(LISTED)}
REFUSAL = "hides cells by its mask"


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_masked_cells_and_targets_are_refused_at_no_cost(kind):
    accountant = PrivacyAccountant(1000.0, 0.1)
    estimator = clone(ONE_OF_EACH.get(kind) or kind())
    estimator.set_params(accountant=accountant)
    learn = getattr(estimator, "fit_transform", estimator.fit)
    for dtype in (float, int, object):
        with pytest.raises(ValueError, match=REFUSAL):
            learn(np.ma.array(VALUES.astype(dtype), mask=MASK), Y)
    if hasattr(estimator, "predict") and "y" in inspect.signature(kind.fit).parameters:
        required = inspect.signature(kind.fit).parameters["y"].default is inspect.Parameter.empty
        if required:
            with pytest.raises(ValueError, match=REFUSAL):
                learn(VALUES, np.ma.array(Y, mask=MASK[:, 0]))
    assert accountant.epsilon_spent == 0.0


def test_masked_samples_are_refused():
    model = skdp.DPAdditiveClassifier(bounds=(0, 1), random_state=0).fit(VALUES, Y)
    with pytest.raises(ValueError, match=REFUSAL):
        model.predict(np.ma.array(VALUES, mask=MASK))
    # A mask that hides nothing is no reason to refuse the array.
    np.testing.assert_array_equal(model.predict(np.ma.array(VALUES)), model.predict(VALUES))


def test_functions_and_pipelines_refuse_masked_arrays():
    accountant = PrivacyAccountant(1000.0, 0.1)
    masked = np.ma.array(VALUES, mask=MASK)
    column = masked[:, 0]
    pipeline = make_pipeline(skdp.DPStandardScaler(bounds=(0, 1)), skdp.DPLogisticRegression())
    split = split_budget(pipeline, 1.0, delta=1e-6, accountant=accountant)
    cases = [
        lambda: dp_mean(column, bounds=(0, 1), accountant=accountant),
        lambda: dp_count(column, accountant=accountant),
        lambda: dp_mode(column, categories=[0, 1], accountant=accountant),
        lambda: dp_describe(masked, accountant=accountant),
        lambda: dp_accuracy_score(column, Y, classes=[0, 1], accountant=accountant),
        lambda: dp_accuracy_score(Y, column, classes=[0, 1], accountant=accountant),
        lambda: split.fit(masked, Y),
        lambda: split.fit(VALUES, column),
        lambda: ChunkedArray([masked]),
    ]
    for case in cases:
        with pytest.raises(ValueError, match=REFUSAL):
            case()
    assert accountant.epsilon_spent == 0.0
