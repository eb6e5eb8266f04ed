"""The contract that every private estimator keeps, as checks, beside scikit-learn's own."""

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
