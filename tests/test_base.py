"""What every private fit has from `PrivateFit`."""

from inspect import Parameter, signature

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from skdp.base import PrivateEstimator, PrivateFit
from skdp.testing import dp_checks
from tests.test_contract import ESTIMATORS


@pytest.mark.quick_cases(one_per=lambda estimator: type(estimator))
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_values_are_checked_whatever_the_setting(estimator):
    check = next(check for check in dp_checks() if check.__name__ == "check_failed_fit")
    with config_context(assume_finite=True):
        check(estimator)


class Transformer(BaseEstimator):
    accountant = random_state = None


class Classifier(ClassifierMixin, Transformer):
    """A kind of estimator that scikit-learn gives labels."""


def test_targets_that_are_required_are_not_forgotten():
    with PrivateFit(Classifier()) as fit, pytest.raises(ValueError, match="requires y"):
        fit.read(np.ones((3, 2)), None)
    with PrivateFit(Transformer()) as fit:
        assert fit.read(np.ones((3, 2))).shape == (3, 2)


class Declared(PrivateEstimator):
    weights: dict | None = None
    clip: float = 1.0


class Narrow(Declared):
    """Takes fewer parameters than it stores."""

    def __init__(self, epsilon=1.0):
        super().__init__(epsilon, clip=2.0)


def test_declared_parameters_are_stored_as_they_were_given():
    weights = {0: 2.0}
    estimator = Declared(0.5, weights=weights)
    common = {"accountant": None, "epsilon": 0.5, "random_state": None}
    assert estimator.get_params() == common | {"clip": 1.0, "weights": weights}
    assert estimator.weights is weights and str(estimator).startswith("Declared(epsilon=0.5")
    assert clone(estimator).get_params() == estimator.get_params()
    assert estimator != Declared(0.5, weights=weights) and hash(estimator) != hash(Declared())
    with pytest.raises(TypeError, match="positional"):
        Declared(0.5, weights)


def test_a_subclass_may_have_an_init_of_its_own():
    assert Narrow(0.5).get_params() == {"epsilon": 0.5} and Narrow().clip == 2.0


@pytest.mark.parametrize("kind", {type(e): e for e in ESTIMATORS}, ids=lambda kind: kind.__name__)
def test_parameters_that_all_estimators_have_stand_first_and_last(kind):
    if "estimator" in signature(kind).parameters:
        pytest.skip("a search: what it searches stands first")
    first, *others = signature(kind).parameters.values()
    assert first.name == "epsilon" and first.kind is Parameter.POSITIONAL_OR_KEYWORD
    assert {p.kind for p in others} == {Parameter.KEYWORD_ONLY}
    last = [p.name for p in others if p.name != "verbose"][-2:]
    assert last == ["accountant", "random_state"]
