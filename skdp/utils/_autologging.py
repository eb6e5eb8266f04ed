"""Fits inside a private fit are kept out of the logs of tracking tools."""

import sys
from contextlib import nullcontext


def without_autologging():
    """Return a context in which mlflow logs no fit of scikit-learn by itself.

    What an estimator fits to its own released values is no model of the user's, and its parameters
    are not those that the user set. mlflow is not imported where it was not.
    """
    settings = sys.modules.get("mlflow.utils.autologging_utils")
    disable = getattr(settings, "disable_autologging", nullcontext)
    return disable()
