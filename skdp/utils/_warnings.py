"""Warnings that point to the caller's line."""

import warnings
from inspect import currentframe

BETWEEN = ("skdp", "sklearn", "joblib", "contextlib")


def _is_between(module):
    return module.partition(".")[0] in BETWEEN


def warn_user(message, category=UserWarning, is_between=_is_between):
    """Warn of the line that called into skdp, also through scikit-learn.

    Parameters
    ----------
    message : str
    category : type, default=UserWarning
    is_between : callable
        Says of a module's name whether its calls stand between that line and skdp.
    """
    frame = currentframe()
    level = 1
    while frame.f_back is not None and is_between(frame.f_globals.get("__name__") or ""):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)
