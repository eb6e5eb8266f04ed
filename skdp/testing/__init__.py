"""The contract that every private estimator keeps, as checks, beside scikit-learn's own."""

from skdp.testing._checks import check_dp_estimator, dp_checks, parametrize_with_dp_checks

__all__ = ["check_dp_estimator", "dp_checks", "parametrize_with_dp_checks"]
