"""What every private fit has from `PrivateFit`."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp.base import PrivateFit
from skdp.testing import dp_checks
from tests.test_contract import ESTIMATORS


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
