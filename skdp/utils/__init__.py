"""Checks of parameters, and tools for tables that custom estimators may use.

The tools are defined in modules that import the checks from this package, so they are imported only
when they are first used.
"""

import importlib

from skdp.utils._units import UnitText

__all__ = ["UnitText"]

_TOOLS = {
    "ChunkedArray": "skdp._data._chunked",
    "clip_features": "skdp._data._clipping",
    "clip_rows": "skdp._data._clipping",
    "exact_counts": "skdp._data._sums",
    "exact_sum": "skdp._data._sums",
    "limit_rows": "skdp._data._limit_rows",
    "sum_grid": "skdp._data._sums",
}


def __getattr__(name):
    """Return a tool for tables, such as `skdp.utils.limit_rows`."""
    if name not in _TOOLS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_TOOLS[name]), name)


def __dir__():
    return sorted([*__all__, *_TOOLS])
