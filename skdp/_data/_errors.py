"""Errors about cells that an estimator cannot read: the column, and how to convert it."""

import numpy as np
from sklearn.utils import assert_all_finite

from skdp._data._labels import is_missing

# Number of values up to which NumPy's check runs before scikit-learn's. The latter takes 20
# microseconds, which is long if many columns are checked one by one.
MAX_NUMPY_CHECK = 1 << 12
MISSING_HINT = (
    "Fill missing values with DPSimpleImputer, or with a constant that you choose without looking "
    "at the rows. tabular_pipeline and the additive models (DPAdditiveClassifier, "
    "DPAdditiveRegressor) accept missing values."
)
MISSING_TARGET_HINT = "Leave out rows without a target; decide from each row alone."
ENCODE_HINT = (
    "put DPTableVectorizer (or DPOneHotEncoder, for labels) before the model, or use "
    "tabular_pipeline, which prepares raw tables; if the estimator has the parameter categories, "
    "declare"
)
FILL_VALUE_HINT = (
    ". Other values of the column are of their type: if an earlier DPSimpleImputer fills in "
    "missing values, use a fill_value of the type of the categories"
)
SAMPLES_HINT = "convert the samples to numbers, in the same way as the rows of the fit"
TO_NUMBERS = "by astype(float) in pandas and NumPy or cast(pl.Float64) in polars."

# Hints for values that are neither text nor numbers. Python's dates and durations are stored in
# columns of objects, whose dtype does not show that they are dates.
DATE_HINT = (
    "DPTableVectorizer and the models of raw tables, such as DPAdditiveClassifier, read a column "
    "as dates if it has a type of dates: pd.to_datetime(X[column]) in pandas, "
    "pl.Series(values, dtype=pl.Datetime) in polars, values.astype('datetime64[us]') in NumPy"
)
DURATION_HINT = (
    "DPTableVectorizer and the models of raw tables, such as DPAdditiveClassifier, read a column "
    "as durations if it has a type of durations: pd.to_timedelta(X[column]) in pandas, "
    "pl.Series(values, dtype=pl.Duration) in polars, values.astype('timedelta64[us]') in NumPy"
)
# Expressions that return dates and durations in days.
DAYS_OF = {
    "date": (
        "(pd.to_datetime(X[column]) - pd.Timestamp('2000-01-01')).dt.days in pandas, "
        "(pl.col(column) - pl.date(2000, 1, 1)).dt.total_days() in polars"
    ),
    "duration": (
        "pd.to_timedelta(X[column]).dt.total_seconds() / 86_400 in pandas, "
        "pl.col(column).dt.total_seconds() / 86_400 in polars"
    ),
}
IDENTIFIER_HINT = (
    "leave a column of identifiers out, because a model learns nothing from it about new rows"
)
# Hints by the kinds of `skdp._data._labels.kind_without_form`.
HINTS = {
    "dates": DATE_HINT,
    "dates with a time zone": DATE_HINT,
    "durations": DURATION_HINT,
    "values of type UUID": IDENTIFIER_HINT,
}


class HintedError(ValueError):
    """An error with a general hint, instead of which a caller that knows more gives its own.

    Parameters
    ----------
    message : str
        The complete message.
    without_hint : str
        The message without the hint.
    """

    def __init__(self, message, without_hint):
        super().__init__(message, without_hint)
        self.without_hint = without_hint

    def __str__(self):
        return self.args[0]


def message_without_hint(error):
    """Return the message of an error, without the hint of a `HintedError`."""
    if isinstance(error, HintedError):
        return error.without_hint
    return str(error)


def join_errors(errors):
    """Return one error that joins the messages of errors about several columns."""
    message = join_messages(map(str, errors))
    if not any(isinstance(error, HintedError) for error in errors):
        return ValueError(message)
    return HintedError(message, join_messages(map(message_without_hint, errors)))


def column_name(j, names=None):
    """Return "column" with its name for messages, or its index if its name is unknown.

    Before a table is known, a dict with the key 0 names only a position.
    """
    if names is None or names[j] is None:
        return f"column {int(j)}"
    return f"column {label_text(names[j])}"


def label_text(label):
    """Return the label of a column as it is written in a program; a NumPy number as its digits."""
    if isinstance(label, np.generic):
        label = label.item()
    return repr(label)


def join_messages(messages):
    """Return one message that joins the messages about several columns, one per line."""
    return "\n".join(messages)


def check_finite(values, name, *, allow_nan=False, names=None):
    """Raise `ValueError` if a value is infinite or, unless that is allowed, missing.

    Parameters
    ----------
    values : array or sparse matrix
    name : str
        Name of the values in messages: "y" for targets.
    allow_nan : bool, default=False
        True to accept NaN.
    names : sequence, default=None
        Names of the columns of a matrix.
    """
    is_small = isinstance(values, np.ndarray) and values.size <= MAX_NUMPY_CHECK
    if is_small and values.dtype.kind in "biuf":
        if allow_nan:
            is_allowed = ~np.isinf(values)
        else:
            is_allowed = np.isfinite(values)
        if is_allowed.all():
            return
    try:
        # scikit-learn sums the values first, which may overflow.
        with np.errstate(all="ignore"):
            assert_all_finite(values, allow_nan=allow_nan, input_name=name)
    except ValueError as error:
        if "NaN" not in str(error):
            raise
        position = ""
        if names is not None:
            position = _first_missing(values, names)
        hint = MISSING_HINT
        if name == "y":
            hint = MISSING_TARGET_HINT
        raise ValueError(f"{error} {position}{hint}") from None


def check_no_label_is_missing(y):
    """Raise `ValueError` if a label of an array of objects or dates is missing.

    The message is the same as scikit-learn's for numbers.
    """
    missing = False
    if y.dtype.kind == "O":
        # Strings and integers are never missing, so checking types is enough for most labels.
        other_types = {
            cls for cls in set(map(type, y)) if not issubclass(cls, str | int | np.integer)
        }
        missing = bool(other_types) and any(is_missing(v) for v in y if type(v) in other_types)
    elif y.dtype.kind in "mM":
        missing = np.isnat(y).any()
    if missing:
        raise ValueError(f"Input y contains NaN. {MISSING_TARGET_HINT}")


class NotNumericError(ValueError):
    """An error about columns, or y, with values of a kind that is not numeric.

    Parameters
    ----------
    names : tuple of str
        Names as in messages: "y", or names of columns by `column_name`.
    kind : {"date", "duration"} or None
        None for text, or for a mixture of kinds.
    after_fit : bool
        True for samples passed to a fitted estimator, which can only be converted.
    """

    def __init__(self, names, kind, after_fit):
        super().__init__(names, kind, after_fit)
        self.names = names
        self.kind = kind
        self.after_fit = after_fit

    def __str__(self):
        subject = f"{self.names[0]} contains"
        column = "the column"
        labels = "the column's labels"
        its = "its"
        if len(self.names) > 1:
            subject = f"{', '.join(self.names[:-1])} and {self.names[-1]} contain"
            column = "each column"
            labels = "their labels"
            its = "their"
        content = "strings or dates"
        if self.kind is not None:
            content = f"{self.kind}s"
        if self.after_fit:
            return f"{subject} {content}, not numbers as in the fit: {SAMPLES_HINT}"
        if self.kind is not None:
            return (
                f"{subject} {content}, and numbers are expected: use DPTableVectorizer, which "
                f"reads {content}, or convert {column} to numbers first, such as days: "
                f"{DAYS_OF[self.kind]}"
            )
        hint = f"{ENCODE_HINT} {labels} there"
        if self.names == ("y",):
            hint = "use a classifier if they are labels"
        return (
            f"{subject} {content}, not numbers: {hint}. If {its} values are numbers that are "
            f"stored as text or categories, convert them first, {TO_NUMBERS}"
        )


def non_numeric_error(name, after_fit=False):
    """Return the error about a column, or y, of strings or dates where numbers are expected."""
    return NotNumericError((name,), None, after_fit)


def times_error(name, kind, after_fit=False):
    """Return the error about dates or durations where numbers are expected.

    Read as numbers, they would be counts of the unit of their type, such as microseconds, and the
    units of the same table differ between containers.
    """
    return NotNumericError((name,), kind, after_fit)


def join_not_numeric(errors):
    """Return one error for several `NotNumericError`, which names all columns."""
    names_by_kind = {}
    for error in errors:
        names_by_kind.setdefault((error.kind, error.after_fit), []).extend(error.names)
    joined = [NotNumericError(tuple(names), *key) for key, names in names_by_kind.items()]
    if len(joined) == 1:
        return joined[0]
    return join_errors(joined)


def _first_missing(values, names):
    """Return a sentence with the name of the first column that has a missing value."""
    j = (values != values).any(axis=0).argmax()
    return f"The first missing value is in {column_name(j, names)}. "
