"""Warnings that point to the caller's line."""

import warnings
from inspect import currentframe

BETWEEN = ("skdp", "sklearn", "joblib", "contextlib")


def warn_user(message, category=UserWarning):
    """Warn of the line that called into skdp, also through scikit-learn."""
    frame, level = currentframe(), 1
    while (
        frame.f_back is not None
        and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN
    ):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
