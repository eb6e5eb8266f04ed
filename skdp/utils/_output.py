"""What scikit-learn will make of a transformer's output, asked before the output is there."""

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin


class _Probe(TransformerMixin, BaseEstimator):
    """A transformer of the same settings, whose output is a single zero."""

    def __init__(self, estimator, sparse):
        # scikit-learn keeps what `set_output` was told among the attributes.
        vars(self).update(vars(estimator))
        self._sparse = sparse

    def transform(self, X):
        return csr_array(X) if self._sparse else X

    def get_feature_names_out(self, input_features=None):
        return np.array(["x0"], dtype=object)


def check_output_setting(estimator, *, sparse=False):
    """Raise what scikit-learn will raise when it puts the output in the container asked for.

    Its containers are set by ``set_output``, or for all transformers by ``set_config``. Some
    take no sparse matrix, and some are made by a library that may be missing.

    Parameters
    ----------
    estimator : estimator
        Not asked where it has no output setting.
    sparse : bool, default=False
        Whether its output is sparse.

    Raises
    ------
    ValueError, ImportError
        If the output cannot be put in that container.
    """
    if hasattr(estimator, "set_output"):
        _Probe(estimator, sparse).transform(np.zeros((1, 1)))


def asks_for_frame(estimator):
    """Return True if scikit-learn is told to make a data frame of a transformer's output.

    Parameters
    ----------
    estimator : estimator
        Without names of its output it is left as it is.

    Returns
    -------
    bool
    """
    return frame_library(estimator) != ""


def frame_library(estimator):
    """Return the library of the frame that scikit-learn is told to make of a transformer's output.

    Parameters
    ----------
    estimator : estimator
        Without names of its output it is left as it is.

    Returns
    -------
    str
        "pandas" or "polars"; "" for none, "missing" for one that is not installed.
    """
    if not (hasattr(estimator, "set_output") and hasattr(estimator, "get_feature_names_out")):
        return ""
    try:
        made = _Probe(estimator, sparse=False).transform(np.zeros((1, 1)))
    except ImportError:
        return "missing"
    return "" if isinstance(made, np.ndarray) else type(made).__module__.partition(".")[0]
