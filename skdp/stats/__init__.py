"""Differentially private statistics with the shapes of numpy's."""

from skdp.stats._errors import expected_error as expected_error
from skdp.stats._functions import dp_count as dp_count
from skdp.stats._functions import dp_histogram as dp_histogram
from skdp.stats._functions import dp_histogram2d as dp_histogram2d
from skdp.stats._functions import dp_histogramdd as dp_histogramdd
from skdp.stats._functions import dp_mean as dp_mean
from skdp.stats._functions import dp_median as dp_median
from skdp.stats._functions import dp_quantile as dp_quantile
from skdp.stats._functions import dp_sum as dp_sum
from skdp.stats._functions import dp_var as dp_var
from skdp.stats._functions import estimate_bounds as estimate_bounds
from skdp.stats._tables import dp_correlation as dp_correlation
from skdp.stats._tables import dp_covariance as dp_covariance
from skdp.stats._tables import dp_crosstab as dp_crosstab
from skdp.stats._tables import dp_mode as dp_mode
