"""Warnings at the line of the user's call."""

import warnings
from inspect import currentframe

# Packages whose stack frames are skipped in the search for the user's line.
SKIPPED_PACKAGES = ("skdp", "sklearn", "joblib", "contextlib")


def _is_skipped(module):
    return module.partition(".")[0] in SKIPPED_PACKAGES


def warn_user(message, category=UserWarning, is_skipped=_is_skipped):
    """Emit a warning at the line that called skdp, directly or through scikit-learn.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
    is_skipped : callable
        Function of a module's name that returns True if frames of the module are skipped.
    """
    frame = currentframe()
    level = 1
    while frame.f_back is not None and is_skipped(frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)
