"""Reading and checking labels, scores and numbers; nothing is computed from their values."""

import numpy as np
from sklearn.utils import column_or_1d

from skdp._data._classes import check_classes
from skdp._data._errors import check_finite, check_no_label_is_missing
from skdp._data._labels import category_codes
from skdp._data._lengths import computed_column
from skdp._data._tables import number_array, target_array


def read_labels(y, name, n_rows=None):
    """Return labels as a vector, each read independently of the others."""
    y = column_or_1d(target_array(computed_column(y)))
    check_no_label_is_missing(y)
    check_finite(y, name)
    _check_length(y, name, n_rows)
    return y


def _check_length(values, name, n_rows):
    """Raise `ValueError` unless there is one value per row and at least one row."""
    if n_rows is not None and len(values) != n_rows:
        raise ValueError(f"{name} has {len(values)} rows, but y_true has {n_rows}")
    if not len(values):
        raise ValueError(f"{name} must have at least one row, got none")


def read_codes(y_true, classes):
    """Return the sorted label set and the code of each true label.

    Raises
    ------
    ValueError
        If there are fewer than two classes, or a label is not among the declared ones.
    """
    classes, codes = check_classes(classes, read_labels(y_true, "y_true"))
    return classes, codes.astype(np.int64)


def read_predicted_codes(y_pred, classes, n_rows):
    """Return the code of each predicted label.

    Raises
    ------
    ValueError
        If a label is not among the classes.
    """
    codes = category_codes(read_labels(y_pred, "y_pred", n_rows), classes)
    if (codes < 0).any():
        raise ValueError(
            "y_pred has labels that are not among the classes "
            f"{classes.tolist()}: declare all labels that can occur, as classes=[...]"
        )
    return codes


def read_numbers(y, name, n_rows=None):
    """Return numbers as a float64 vector."""
    values = column_or_1d(np.asarray(number_array(computed_column(y)), dtype=np.float64))
    check_finite(values, name)
    _check_length(values, name, n_rows)
    return values


def read_scores(y_score, name, n_rows):
    """Return one score per row, from a vector or from the columns of two classes."""
    values = np.asarray(number_array(computed_column(y_score)), dtype=np.float64)
    if values.ndim == 2 and values.shape[1] == 2:
        values = np.ascontiguousarray(values[:, 1])
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have one score per row, larger for a more likely second class, or two "
            f"columns of probabilities, got shape {values.shape}"
        )
    check_finite(values, name)
    _check_length(values, name, n_rows)
    return values


def read_probabilities(y_prob, name, n_rows, n_classes):
    """Return the probability of each class, an array of shape (n_rows, n_classes).

    A vector is the probability of the second of two classes.
    """
    values = np.asarray(number_array(computed_column(y_prob)), dtype=np.float64)
    if values.ndim == 1 and n_classes == 2:
        values = np.column_stack([1.0 - values, values])
    if values.ndim != 2 or values.shape[1] != n_classes:
        raise ValueError(
            f"{name} must have one column per class, here {n_classes}, got shape {values.shape}"
        )
    check_finite(values, name)
    _check_length(values, name, n_rows)
    return np.clip(values, 0.0, 1.0)


def check_two_classes(classes, name):
    """Raise `ValueError` unless there are two classes."""
    if len(classes) != 2:
        raise ValueError(
            f"{name} needs two classes, got {len(classes)}: {classes.tolist()}. For several "
            "classes use dp_confusion_matrix, or dp_evaluate with metrics=['roc_auc_ovr']"
        )
