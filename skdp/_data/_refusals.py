"""The words for cells that an estimator cannot take: which column, and what to do instead."""

import numpy as np
from sklearn.utils import assert_all_finite

from skdp.utils._labels import is_missing

# Up to so many values are checked by numpy before scikit-learn is asked.
FEW_VALUES = 1 << 12
GAPS = (
    "Fill gaps with DPSimpleImputer, or with a constant that you choose without looking at the "
    "rows; tabular_pipeline and the additive models (DPAdditiveClassifier, DPAdditiveRegressor) "
    "take them as they are."
)
NO_TARGET = "Leave out rows without one, by looking at each row alone."
PREPARED = (
    "put DPTableVectorizer (or DPOneHotEncoder, for labels) before the model, or take "
    "tabular_pipeline, which prepares raw tables; if the estimator has the parameter categories, "
    "declare the column's labels there"
)

# What to do with values that are neither text nor numbers. Python's dates and durations lie in
# columns of objects, whose type says nothing of them.
TYPED_DATES = (
    "to use it as a date, give the column a type of dates: pd.to_datetime(X[column]) in pandas, "
    "pl.Series(values, dtype=pl.Datetime) in polars, values.astype('datetime64[us]') in NumPy"
)
TYPED_DURATIONS = (
    "to use it as a duration, give the column a type of durations: pd.to_timedelta(X[column]) in "
    "pandas, pl.Series(values, dtype=pl.Duration) in polars, values.astype('timedelta64[us]') in "
    "NumPy"
)
NO_IDENTIFIERS = (
    "leave a column of identifiers out, as a model learns nothing from it about new rows"
)
TYPED = {
    "dates": TYPED_DATES,
    "dates with a time zone": TYPED_DATES,
    "durations": TYPED_DURATIONS,
    "values of type UUID": NO_IDENTIFIERS,
}


def column_name(j, names=None):
    """Return what a column is called in an error: by its name where there are names."""
    return f"column {int(j) if names is None else names[j]!r}"


def in_one(messages):
    """Return one message that holds those about several columns, one a line."""
    return "\n".join(messages)


def check_finite(values, name, *, allow_nan=False, names=None):
    """Raise `ValueError` if a value is infinite or, unless that is allowed, missing.

    Parameters
    ----------
    values : array or sparse matrix
    name : str
        What they are: "y" of targets.
    allow_nan : bool, default=False
    names : sequence, default=None
        Of the columns of a matrix.
    """
    if isinstance(values, np.ndarray) and values.size <= FEW_VALUES and values.dtype.kind in "biuf":
        # scikit-learn's check takes 20 microseconds, which is much for each of many columns.
        is_allowed = ~np.isinf(values) if allow_nan else np.isfinite(values)
        if is_allowed.all():
            return
    try:
        # It sums them first, which may overflow in both directions.
        with np.errstate(all="ignore"):
            assert_all_finite(values, allow_nan=allow_nan, input_name=name)
    except ValueError as error:
        if "NaN" not in str(error):
            raise
        where = "" if names is None else _first_gap(values, names)
        raise ValueError(f"{error} {where}{NO_TARGET if name == 'y' else GAPS}") from None


def check_no_label_is_missing(y):
    """Raise `ValueError` if a label of an array of objects or dates is missing.

    Of labels, too, it says what scikit-learn says of numbers.
    """
    missing = False
    if y.dtype.kind == "O":
        # Strings and whole numbers are there; to look at their types alone is quick.
        others = {
            kind for kind in set(map(type, y)) if not issubclass(kind, str | int | np.integer)
        }
        missing = bool(others) and any(is_missing(v) for v in y if type(v) in others)
    elif y.dtype.kind in "mM":
        missing = np.isnat(y).any()
    if missing:
        raise ValueError(f"Input y contains NaN. {NO_TARGET}")


def no_numbers(name):
    """Return the error about a column, or y, of words or of dates where numbers are needed."""
    remedy = "use a classifier if they are labels" if name == "y" else PREPARED
    return ValueError(f"{name} holds words or dates, not numbers: {remedy}")


def _first_gap(values, names):
    j = (values != values).any(axis=0).argmax()
    return f"The first gap is in {column_name(j, names)}. "
