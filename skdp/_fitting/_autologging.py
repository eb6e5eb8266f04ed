"""Suspension of automatic logging by tracking tools during a private fit."""

import sys
from contextlib import nullcontext


def without_autologging():
    """Return a context in which mlflow does not log fits of scikit-learn.

    A private estimator may fit a scikit-learn model to released values. This model is an internal
    one, so its parameters must not be logged as the user's. mlflow is not imported by this
    function.
    """
    settings = sys.modules.get("mlflow.utils.autologging_utils")
    disable = getattr(settings, "disable_autologging", nullcontext)
    return disable()
