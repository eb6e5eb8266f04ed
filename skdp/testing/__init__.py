"""Checks of the contract of private estimators, in addition to scikit-learn's checks."""

from skdp.testing._checks import check_dp_estimator, dp_checks, parametrize_with_dp_checks
from skdp.testing._wrong_values import WRONG_VALUES, wrong_values, wrong_widths

__all__ = [
    "WRONG_VALUES",
    "check_dp_estimator",
    "dp_checks",
    "parametrize_with_dp_checks",
    "wrong_values",
    "wrong_widths",
]
