"""Parameters at the edge: refused before the charge, or everything that comes out is finite."""

import inspect
import warnings

import numpy as np
import pytest

from skdp import PrivacyAccountant
from skdp import metrics as dp
from tests._public import public_names
from tests.test_edges import PAIRS, SCALARS

FUNCTIONS = [name for name in public_names(dp) if name.startswith("dp_")]
Y = np.arange(40) % 2
SCORES = np.linspace(0.0, 1.0, 40)
DATA = {"y_pred of labels": Y[::-1], "y_pred": SCORES, "y_score": SCORES, "y_prob": SCORES}


def data_of(name):
    names = list(inspect.signature(getattr(dp, name)).parameters)[:2]
    if name in ("dp_accuracy_score", "dp_balanced_accuracy_score", "dp_confusion_matrix"):
        return Y, Y[::-1]
    if "target_bounds" in inspect.signature(getattr(dp, name)).parameters:
        return SCORES, SCORES[::-1]
    return Y, DATA[names[1]]


def parts(value):
    """Return all numbers of a result, without the ends of an R^2 that is not known."""
    if isinstance(value, dp.NoisyScore):
        return [float(value), *np.nan_to_num(value.noise_interval, neginf=0.0)]
    if isinstance(value, dp.NoisyConfusionMatrix):
        return np.asarray(value).ravel()
    return [*value.x, *value.y, *np.concatenate(value.interval)]


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_at_the_edge(name):
    function = getattr(dp, name)
    parameters = inspect.signature(function).parameters
    needed = {"target_bounds": (0, 1)} if "target_bounds" in parameters else {}
    for parameter in ("epsilon", "delta", "bound", "n_bins", "score_bounds", "target_bounds"):
        if parameter not in parameters:
            continue
        values = [*SCALARS, *PAIRS] if parameter.endswith("bounds") else SCALARS
        for value in values:
            accountant = PrivacyAccountant(1e15, 0.9, ledger="memory://")
            options = {**needed, "epsilon": 1.0, parameter: value}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                try:
                    result = function(*data_of(name), accountant=accountant, **options)
                except ValueError:
                    assert accountant.epsilon_spent == 0.0, (parameter, value)
                    continue
            assert np.isfinite(parts(result)).all(), (parameter, value)
