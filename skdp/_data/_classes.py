"""Checks of declared and found class labels, and the codes of the labels."""

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.multiclass import check_classification_targets

from skdp._data._labels import category_codes, text_array
from skdp.utils._documents import count_of

# Number of rows whose labels are looked up together.
LABEL_BLOCK_ROWS = 1 << 16
# Description of the parameter `classes` among the facts that are assumed to be public.
DECLARED_CLASSES = "the declared classes"
LABEL_SET = "the label set"


def check_classes(classes, y):
    """Return (classes, codes): the sorted labels, and the index of each label of y.

    Codes have the minimum integer type.

    Parameters
    ----------
    classes : array-like or None
        Declared labels; None uses the labels of y.
    y : array of shape (n_samples,)

    Raises
    ------
    ValueError
        If there are fewer than two classes, or a label of y is not among them.
    """
    if classes is None:
        # scikit-learn's check is slow, because it looks for distinct values twice. Integers need it
        # only if there are very many of them.
        is_integer_type = y.ndim == 1 and y.dtype.kind in "biu"
        if not is_integer_type:
            check_classification_targets(y)
        if y.dtype.kind == "O":
            # `unique` returns the first of several equal labels. Whether its type is Python's,
            # NumPy's or an enum must not depend on single rows.
            y = np.array([str.__str__(label) for label in y], dtype=object)
        # The inverse of `unique` is not used, because it needs four times the memory of the codes.
        classes = np.unique(y)
        if is_integer_type and len(classes) > len(y) / 2:
            check_classification_targets(y)
        if len(classes) < 2:
            raise ValueError(
                f"y holds one class only, {classes.tolist()}: if other classes can occur, declare "
                "all of them, as classes=[...]"
            )
        # -0.0 becomes 0.0, because single rows determine which of the two `unique` returns.
        if classes.dtype.kind == "f":
            classes += 0.0
        return classes, np.searchsorted(classes, y).astype(code_type(classes))
    if isinstance(classes, list | tuple) and all(isinstance(label, str) for label in classes):
        classes = text_array([str.__str__(label) for label in classes])
    message = f"classes must be a flat list of labels of one type, got {classes!r}"
    if np.ma.is_masked(classes):
        # `asarray` would return the label that the mask hides.
        raise ValueError(message)
    try:
        classes = np.asarray(classes)
    except ValueError:
        # The list contains lists of different lengths.
        raise ValueError(message) from None
    has_nan = classes.dtype.kind == "f" and np.isnan(classes).any()
    if classes.ndim != 1 or has_nan or len(set(map(type, classes.tolist()))) != 1:
        raise ValueError(message)
    try:
        classes = np.unique(classes)
    except TypeError:
        raise ValueError(
            "classes must be labels that can be sorted, such as numbers or strings, got "
            f"{classes!r}"
        ) from None
    if len(classes) < 2:
        raise ValueError(f"classes must list at least two labels, got {classes!r}")
    blocks = (y[rows] for rows in gen_batches(len(y), LABEL_BLOCK_ROWS))
    dtype = code_type(classes)
    codes = np.concatenate([category_codes(block, classes).astype(dtype) for block in blocks])
    if (codes < 0).any():
        raise ValueError(f"y holds labels that are not among the declared classes{_codes_hint(y)}")
    return classes, codes


def _codes_hint(y):
    """Return the end of a message: why labels may have been replaced by integers."""
    if y.dtype.kind not in "iu":
        return ""
    return (
        "; scikit-learn's cross_val_predict replaces labels by 0, 1, ... before a fit if its "
        "method is predict_proba, predict_log_proba or decision_function: declare "
        "classes=[0, 1, ...] there, one for each label of y and no more"
    )


def too_many_classes_problem(estimator, label_encoder):
    """Return the problem of a classifier whose declared labels differ from those in y, or "".

    `cross_val_predict` replaces the labels of y with 0, 1, ... if its method returns a column for
    each label, and fails after the first fit was charged if there are more columns than labels.

    Parameters
    ----------
    estimator : estimator
        Classifier, or a pipeline that ends with one.
    label_encoder : LabelEncoder or None
        Fitted to y; None if the labels are not replaced.

    Returns
    -------
    str
        End of a sentence that begins with the name of the tool.
    """
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    classes = getattr(estimator, "classes", None)
    labels = getattr(label_encoder, "classes_", None)
    if classes is None or labels is None or len(np.unique(classes)) <= len(labels):
        return ""
    return (
        f"replaces the labels of y by 0, 1, ... and fails after the first fit was charged: "
        f"{type(estimator).__name__} declares "
        f"{count_of(len(np.unique(classes)), 'class', 'classes')}, and y holds "
        f"{len(labels)} (declare classes={list(range(len(labels)))}, or use method='predict')"
    )


def code_type(classes):
    """Return the minimum integer type for class codes and -1."""
    return np.min_scalar_type(-max(len(classes), 1))
