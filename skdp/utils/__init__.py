"""Helpers for users and developers."""

from skdp.utils._chunked import ChunkedArray
from skdp.utils._clipping import clip_features, clip_rows
from skdp.utils._limit_rows import limit_rows
from skdp.utils._sums import exact_counts, exact_sum, sum_grid
from skdp.utils._units import UnitText

__all__ = [
    "ChunkedArray",
    "UnitText",
    "clip_features",
    "clip_rows",
    "exact_counts",
    "exact_sum",
    "limit_rows",
    "sum_grid",
]
