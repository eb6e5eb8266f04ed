"""Differentially private statistics with the shapes of numpy's."""

from skdp.stats._errors import expected_error
from skdp.stats._functions import (
    dp_count,
    dp_histogram,
    dp_histogram2d,
    dp_mean,
    dp_median,
    dp_quantile,
    dp_sum,
    dp_var,
    estimate_bounds,
)

__all__ = [
    "dp_count",
    "dp_histogram",
    "dp_histogram2d",
    "dp_mean",
    "dp_median",
    "dp_quantile",
    "dp_sum",
    "dp_var",
    "estimate_bounds",
    "expected_error",
]
