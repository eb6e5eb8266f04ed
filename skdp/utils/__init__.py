"""Helpers for users and developers."""

from skdp.utils._chunked import ChunkedArray as ChunkedArray
from skdp.utils._clipping import clip_features as clip_features
from skdp.utils._clipping import clip_rows as clip_rows
from skdp.utils._limit_rows import limit_rows as limit_rows
from skdp.utils._sums import exact_counts as exact_counts
from skdp.utils._sums import exact_sum as exact_sum
from skdp.utils._sums import sum_grid as sum_grid
from skdp.utils._units import UnitText as UnitText
