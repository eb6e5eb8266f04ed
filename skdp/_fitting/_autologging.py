"""Suspension of automatic logging by tracking tools during a private fit."""

import sys
from contextlib import nullcontext


def without_autologging():
    """Return a context in which mlflow does not log fits of scikit-learn.

    A private estimator may fit an internal scikit-learn model to released values, whose parameters
    must not be logged as the user's. This function does not import mlflow.
    """
    settings = sys.modules.get("mlflow.utils.autologging_utils")
    disable = getattr(settings, "disable_autologging", nullcontext)
    return disable()
