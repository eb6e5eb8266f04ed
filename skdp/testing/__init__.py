"""The contract that every private estimator keeps, as checks, beside scikit-learn's own."""

from skdp.testing._checks import check_dp_estimator as check_dp_estimator
from skdp.testing._checks import dp_checks as dp_checks
from skdp.testing._checks import parametrize_with_dp_checks as parametrize_with_dp_checks
from skdp.testing._wrong_values import WRONG_VALUES as WRONG_VALUES
from skdp.testing._wrong_values import wrong_values as wrong_values
from skdp.testing._wrong_values import wrong_widths as wrong_widths
