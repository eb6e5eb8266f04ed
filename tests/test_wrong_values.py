"""Every parameter of every estimator refuses wrong values before the charge."""

import inspect
import re

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.testing import wrong_values
from tests._public import ESTIMATORS

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(60, 2))
Y = (X[:, 0] > 0.5).astype(int)
# Each of these values of a parameter is valid for the parameters at their defaults or for none.
UNCHECKED = {
    # Any label can be the category of undeclared values; `DPOneHotEncoder` adds it.
    "other"
}


def right(kind):
    """Return an estimator whose fit to the table is refused for nothing."""
    params = inspect.signature(kind).parameters
    if kind.__name__.endswith("SearchCV"):
        grid = {"C": [0.1, 1.0]}
        return kind(DPLogisticRegression(data_norm=2.0), grid)
    if "estimator" in params:
        return kind(DPLogisticRegression(data_norm=2.0))
    given = {"target_bounds": (0, 1), "data_norm": 2.0, "bounds": (0, 1), "delta": 1e-6}
    if kind.__name__ == "DPTargetEncoder":
        del given["target_bounds"]
    if "categories" in params and "bounds" not in params:
        given["categories"] = [0.0, 1.0]
    return kind(**{name: value for name, value in given.items() if name in params})


def fit(estimator):
    """Fit to numbers, or to the same numbers rounded if the estimator reads categories only."""
    reads_labels = hasattr(estimator, "categories") and not hasattr(estimator, "bounds")
    return estimator.fit(X.round() if reads_labels else X, Y)


def refusal_of(estimator, name, value):
    """Return the message with which a fit refuses a value, and what it charged before that."""
    accountant = PrivacyAccountant(100.0, 0.5)
    estimator = clone(estimator).set_params(accountant=accountant)
    # `set_params` would look for parameters inside of what is no estimator.
    setattr(estimator, name, value)
    with pytest.raises(ValueError) as caught:
        fit(estimator)
    return str(caught.value), accountant.epsilon_spent


def variants(base):
    """Yield an estimator with every value of every choice that can be fitted.

    The values are read off the message that refuses another one, so that a new one is tested, too.
    """
    for name, value in wrong_values(base):
        if not isinstance(value, str) or value != "no such choice":
            continue
        message, _ = refusal_of(base, name, value)
        for choice in re.findall(r"'([a-z_0-9]+)'", message.partition(", got")[0]):
            variant = clone(base).set_params(**{name: choice})
            try:
                fit(clone(variant))
            except ValueError:
                continue
            yield variant


def assert_wrong_values_are_refused(estimator):
    for name, value in wrong_values(estimator):
        message, spent = refusal_of(estimator, name, value)
        assert spent == 0.0 and name in message, (estimator, name, value, message)


@pytest.mark.quick_cases(every=34)
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_wrong_values_are_refused_before_the_charge(kind):
    base = right(kind)
    fit(clone(base))
    assert_wrong_values_are_refused(base)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_wrong_values_are_refused_whatever_is_chosen(kind):
    """Also where a choice does not use the parameter."""
    for estimator in variants(right(kind)):
        assert_wrong_values_are_refused(estimator)


def test_every_parameter_has_wrong_values():
    unknown = set()
    for kind in ESTIMATORS:
        base = right(kind)
        unknown |= set(base.get_params(deep=False)) - {name for name, _ in wrong_values(base)}
    assert unknown == UNCHECKED
