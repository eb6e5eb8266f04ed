"""The container that `set_output` requests from a transformer, determined before the fit."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin


class _Probe(TransformerMixin, BaseEstimator):
    """A transformer that outputs a single zero, with the output setting of an estimator."""

    def __init__(self, estimator, sparse):
        # scikit-learn stores the setting of `set_output` as an attribute.
        vars(self).update(vars(estimator))
        self._sparse = sparse

    def transform(self, X):
        """Return the table, as a sparse one if the estimator's output is sparse."""
        if self._sparse:
            return csr_array(X)
        return X

    def get_feature_names_out(self, input_features=None):
        return np.array(["x0"], dtype=object)


def check_output_setting(estimator, *, sparse=False):
    """Raise the error that scikit-learn would raise for the output of a transformer.

    The container is set with ``set_output``, or with ``set_config`` for all transformers. Frames
    cannot hold sparse output, and the library of a frame may not be installed. The error must come
    before the charge.

    Parameters
    ----------
    estimator : estimator
        Transformer. Nothing is checked if it has no `set_output`.
    sparse : bool, default=False
        True if its output is sparse.

    Raises
    ------
    ValueError, ImportError
        If the output cannot be converted to the container.
    """
    if hasattr(estimator, "set_output"):
        _Probe(estimator, sparse).transform(np.zeros((1, 1)))


def asks_for_frame(estimator):
    """Return True if scikit-learn converts a transformer's output to a data frame.

    Parameters
    ----------
    estimator : estimator
        Output is never converted without `get_feature_names_out`.

    Returns
    -------
    bool
    """
    return frame_library(estimator) != ""


def frame_library(estimator):
    """Return the library of the frame to which scikit-learn converts a transformer's output.

    Parameters
    ----------
    estimator : estimator
        Output is never converted without `get_feature_names_out`.

    Returns
    -------
    str
        "pandas" or "polars", "" if there is no frame, or "missing" if the library is not installed.
    """
    if not (hasattr(estimator, "set_output") and hasattr(estimator, "get_feature_names_out")):
        return ""
    try:
        output = _Probe(estimator, sparse=False).transform(np.zeros((1, 1)))
    except ImportError:
        return "missing"
    if isinstance(output, np.ndarray):
        return ""
    return type(output).__module__.partition(".")[0]
