"""What every private fit has from `PrivateFit`."""

import pytest
from sklearn import config_context

from skdp.testing import dp_checks
from tests.test_contract import ESTIMATORS


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_values_are_checked_whatever_the_setting(estimator):
    check = next(check for check in dp_checks() if check.__name__ == "check_failed_fit")
    with config_context(assume_finite=True):
        check(estimator)
