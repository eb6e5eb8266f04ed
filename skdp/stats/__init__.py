"""Differentially private statistics whose results are shaped like NumPy's."""

from skdp.stats._describe import dp_describe
from skdp.stats._errors import expected_error
from skdp.stats._functions import (
    dp_count,
    dp_histogram,
    dp_histogram2d,
    dp_histogramdd,
    dp_mean,
    dp_median,
    dp_quantile,
    dp_sum,
    dp_var,
    estimate_bounds,
)
from skdp.stats._profile import TableProfile
from skdp.stats._tables import dp_correlation, dp_covariance, dp_crosstab, dp_mode

__all__ = [
    "TableProfile",
    "dp_correlation",
    "dp_count",
    "dp_covariance",
    "dp_crosstab",
    "dp_describe",
    "dp_histogram",
    "dp_histogram2d",
    "dp_histogramdd",
    "dp_mean",
    "dp_median",
    "dp_mode",
    "dp_quantile",
    "dp_sum",
    "dp_var",
    "estimate_bounds",
    "expected_error",
]
