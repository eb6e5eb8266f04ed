"""Findings about the columns of a release, collected for one warning after the release.

A warning is public, so it may reveal nothing that the release does not. Findings are computed from
noisy or public values only, which is post-processing and costs nothing. Nothing that was computed
from rows may be reported.
"""

import re
from collections.abc import Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from skdp.utils._warnings import warn_user

NO_BOUNDS = "bounds"
ROUGH_BOUNDS = "rough bounds"
FAR_VALUES = "far values"
CLIPPED_VALUES = "clipped values"
NO_CATEGORIES = "categories"
NO_MATCH = "match"
IDENTIFIERS = "identifiers"
MANY_LABELS = "many labels"
ONE_BIN = "bin"
ONE_LABEL = "label"
ONE_ENCODING = "encoding"
UNFILLED = "unfilled"
NO_NORM = "norm"
NO_VALUES = "values"

# Message of each finding, in the order in which they are shown. A column is listed in the first
# message that applies to it.
MESSAGES = {
    NO_VALUES: (
        "Nearly all values of {columns} are missing, as far as the noise shows, so the result "
        "depends on the bounds alone: leave such columns out, or write their values in a form "
        "that is read as numbers."
    ),
    NO_BOUNDS: (
        "No value but 0 stood out from the noise in {columns}, so the bounds are a guess and may "
        "be useless: declare the bounds, to which all values are clipped, or use a larger epsilon."
    ),
    FAR_VALUES: (
        "The search for bounds ends at 1.3e30, and values of {columns} are there or beyond, so "
        "they cannot be told apart, and smaller values hardly can: declare the bounds, or turn "
        "numbers that mean a missing value, such as 1e300, into NaN."
    ),
    CLIPPED_VALUES: (
        "As far as the noise shows, more than a tenth of the values of {columns} are beyond the "
        "bounds that were found, to which they are clipped: declare the bounds, or use a larger "
        "epsilon."
    ),
    ROUGH_BOUNDS: (
        "The values of {columns} have similar magnitudes, and noise hides whether they fill the "
        "bounds that were found or only a small part of them: declare the bounds, or use a larger "
        "epsilon."
    ),
    NO_CATEGORIES: (
        "No category stood out from the noise in {columns}, so all values count as one: leave out "
        "a column whose values are nearly all different, such as identifiers; for other columns, "
        "declare the categories, or use a larger epsilon or delta."
    ),
    IDENTIFIERS: (
        "Judging by the name, {columns} may hold identifiers, from which a model learns nothing "
        "about new rows: leave such columns out, or declare the categories if they are something "
        "else."
    ),
    MANY_LABELS: (
        "There are nearly as many categories of {columns} as rows, as with identifiers, from which "
        "a model learns nothing about new rows: leave such columns out, or declare fewer "
        "categories."
    ),
    NO_MATCH: (
        "Almost no value of {columns} is one of the column's categories, so nearly all count as "
        "one: declare the values exactly as the table writes them, including capitals and blanks."
    ),
    ONE_BIN: (
        "Nearly all values of {columns} are in one bin, so the model can hardly tell them apart: "
        "if the bounds are much wider than the possible values, declare narrower ones."
    ),
    ONE_LABEL: (
        "Nearly all values of {columns} are one category, from which a model learns almost "
        "nothing: leave such columns out unless their rare values matter."
    ),
    ONE_ENCODING: (
        "All values of {columns} have the same encoding: the column has one category, and other "
        "values are encoded by the mean target of the categories. Turn the other values, such as "
        "missing ones, into a category, or use DPOneHotEncoder."
    ),
    UNFILLED: (
        "As far as the noise shows, nearly all values of {columns} are at one end of the bounds, "
        "to which values beyond are clipped, or fill only a small part of the bounds: declare "
        "bounds, in the column's unit, that its values fill."
    ),
    NO_NORM: (
        "No row norm stood out from the noise, so data_norm=1 was used: declare data_norm, or use "
        "a larger epsilon."
    ),
}
# Words in a name that mark a column as an identifier.
IDENTIFYING_WORDS = {"id", "ids", "uuid", "guid", "ssn", "iban", "email", "userid", "rowid"}
# Full names of columns that number the rows. pandas reads an index that was written to a file as
# "Unnamed: 0".
ROW_NUMBER = re.compile(r"unnamed: \d+|index|idx|row[ _]?(no|number|num|names?)|rownames", re.I)
# Found categories are taken for identifiers if there are at least MIN_IDENTIFIERS of them, with at
# most ROWS_PER_IDENTIFIER rows each on average. Declared categories are taken for identifiers if
# there are as many categories as rows.
MIN_IDENTIFIERS = 20
ROWS_PER_IDENTIFIER = 10
# A column is reported if no more than this fraction of its rows match its categories, and if the
# noise in their number does not exceed this fraction, either.
MAX_MATCHED = 0.02
# A column is reported as missing if the noisy number of its values is at most this many standard
# deviations of the noise, and if the noise is at most the fraction `MAX_MATCHED` of the rows.
MAX_NOISE_OF_NO_VALUES = 3.0
# Bounds are reported as unfilled based on a statistic that is 0 if all values are at one end of
# them: the distance from the mean to the nearer end, or the variance, of values scaled to [-1, 1].
# It must be within `UNFILLED_NOISE` standard deviations of 0 and, even after adding `CERTAIN_NOISE`
# standard deviations, at most a limit. So with Laplace noise, a column whose statistic is above the
# limit is reported with a probability of at most exp(-3 sqrt(2)) / 2 = .7 %.
UNFILLED_NOISE = 6.0
CERTAIN_NOISE = 3.0
MIN_DISTANCE_OF_MEAN = 0.04
MIN_VARIANCE = 0.04
# Bounds are also reported as unfilled if all released quantiles are within `MAX_SPREAD` of the
# range from one end, or from each other, and at most `MAX_ROWS_ELSEWHERE` of the rows can be
# elsewhere. A quantile is used only if it is unlikely to be an empty cell of the grid, whose rank
# is 0 or the number n of rows. There are 2**24 cells, and among n equal values one in n positions
# has a given rank. So the quantile's rank must be ln(2**24 n) + `CERTAIN_RANK` noise scales away
# from these ranks.
MAX_SPREAD = 1e-3
LOG_N_CELLS = 24.0 * np.log(2.0)
CERTAIN_RANK = 14.0
MAX_NOISE_OF_RANK = 0.01
MAX_ROWS_ELSEWHERE = 0.55
# Quantiles at this distance, relative to the range, are 16 points of their grid apart. So they
# distinguish values if this fraction of the rows is between them, even within bounds that are much
# wider than the values.
MIN_RESOLVED_SPREAD = 2.0**-20
MIN_ROWS_BETWEEN = 0.2
# Bins distinguish values if none of them has more than this fraction of the rows.
MAX_LARGEST_BIN = 0.5
# Quantiles that are closer than this to each other or to an end count as equal.
EQUAL_SPREAD = 2.0**-20
# A warning says that a column is in one bin if the other bins have at most this fraction of the
# rows, and if the noise in a count does not exceed it, either.
MAX_OTHER_BINS = 0.05
MAX_NOISE_OF_ONE_BIN = 0.02
# Flags and amounts of rare events have one of these values in most rows, which does not show that
# the bounds are wrong. So a warning requires that fewer rows than this have other values. With
# bounds that were found, this holds only for bins up to the given width, because wider bins may
# contain many other values.
TYPICAL_VALUES = np.array([-1.0, 0.0, 1.0])
MAX_OTHERS_OF_TYPICAL_VALUE = 0.005
MAX_WIDTH_OF_TYPICAL_VALUE = 1.0
# A word in names such as customer_id and customerID.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Maximum number of column names in a message; the number of further columns follows.
MAX_NAMES = 20

_FINDINGS = ContextVar("findings", default=None)
_IS_MUTED = ContextVar("is_muted", default=False)


class Findings(list):
    """Findings of a release, as tuples of the kind and the indices of the columns.

    Attributes
    ----------
    columns_with_found_bounds : set of int
        Columns whose bounds were found.
    resolved : set of int
        Columns whose values can be told apart within the bounds, according to later released
        values.
    """

    def __init__(self):
        super().__init__()
        self.columns_with_found_bounds = set()
        self.resolved = set()

    def messages(self):
        """Yield the kind and the columns of each finding that no later released value refutes.

        If noise hides the values of a narrow column, bounds that were found are far wider than the
        values. Quantiles and bins may still resolve them.
        """
        refuted = self.columns_with_found_bounds & self.resolved
        for kind, columns in self:
            if kind in (ROUGH_BOUNDS, UNFILLED):
                remaining = [j for j in columns if j not in refuted]
                if remaining:
                    yield kind, remaining
            else:
                yield kind, columns


@contextmanager
def collect_findings():
    """Yield the `Findings` to which releases in this context add theirs."""
    findings = Findings()
    token = _FINDINGS.set(findings)
    try:
        yield findings
    finally:
        _FINDINGS.reset(token)


@contextmanager
def muted_findings():
    """Suppress warnings about findings, for audits that fit thousands of synthetic tables."""
    token = _IS_MUTED.set(True)
    try:
        yield
    finally:
        _IS_MUTED.reset(token)


def report_finding(kind, columns=()):
    """Add a finding to the list of the current release, if there is one.

    Parameters
    ----------
    kind : str
        One of the constants of this module.
    columns : sequence of int, default=()
        Indices of the columns, which must be computed from noisy or public values; empty if there
        are none or the finding is about the whole table.
    """
    findings = _FINDINGS.get()
    if findings is not None and (len(columns) or kind == NO_NORM):
        findings.append((kind, [int(j) for j in columns]))


def report_found_bounds(columns):
    """Note that the bounds of columns, given by their indices, were found."""
    findings = _FINDINGS.get()
    if findings is not None:
        findings.columns_with_found_bounds.update(int(j) for j in columns)


def report_resolved(columns):
    """Note the columns whose values can be distinguished according to released numbers.

    Parameters
    ----------
    columns : sequence of int
        Indices of the columns, computed from noisy or public values.
    """
    findings = _FINDINGS.get()
    if findings is not None:
        findings.resolved.update(int(j) for j in columns)


def report_resolved_bins(largest_counts, noise_std, n_units):
    """Note that bins resolve a column if none of them contains most rows, even allowing for noise.

    `Findings.messages` then leaves out the warning that the bounds of such a column are too wide.

    Parameters
    ----------
    largest_counts : dict of int to float
        Noisy count of the largest bin of each column.
    noise_std : float
        Standard deviation of the noise in a count.
    n_units : int
        Public number of rows, or of persons.
    """
    limit = MAX_LARGEST_BIN * n_units - CERTAIN_NOISE * noise_std
    report_resolved([j for j, count in largest_counts.items() if count <= limit])


def report_identifiers(table, columns):
    """Report the columns whose public names look like identifiers.

    Parameters
    ----------
    table : ColumnTable
    columns : iterable of int
        Columns without declared categories.
    """
    report_finding(IDENTIFIERS, [j for j in columns if is_identifier(table.label(j))])


def report_unmatched(matched, deviations, n_units):
    """Report columns in which almost no value is one of the categories.

    Parameters
    ----------
    matched : dict of int to float
        Noisy number of rows of each column whose values are among its categories.
    deviations : dict of int to float
        Standard deviations of the noise in these numbers.
    n_units : int
        Public number of rows, or of persons.
    """
    max_matched = MAX_MATCHED * n_units
    unmatched = []
    for j, n_matched in matched.items():
        deviation = deviations[j]
        if deviation <= max_matched and n_matched <= max_matched + deviation:
            unmatched.append(j)
    report_finding(NO_MATCH, unmatched)


def report_one_label(counts, noise_std, n_units):
    """Report columns in which one category has nearly all rows, even allowing for noise.

    Callers that have counts with a category for undeclared values use `report_constant`.

    Flags of rare events have one value in most rows, so columns with several categories have the
    limit for typical values. The noise must be as small as that limit, or a flag would be reported
    because noise hides its rare value. Columns with a single category have the limits for bins.

    Parameters
    ----------
    counts : dict of int to ndarray
        Noisy counts of each column's categories, without the one for undeclared values.
    noise_std : float
        Standard deviation of the noise in a count.
    n_units : int
        Public number of rows, or of persons.
    """
    reported = []
    for j, values in counts.items():
        if len(values) == 1:
            max_others, max_noise = MAX_OTHER_BINS, MAX_NOISE_OF_ONE_BIN
        else:
            max_others = max_noise = MAX_OTHERS_OF_TYPICAL_VALUE
        if not len(values) or noise_std > max_noise * n_units:
            continue
        # The number of rows is public, so only the largest count is noisy.
        if n_units - values.max() <= max_others * n_units:
            reported.append(j)
    report_finding(ONE_LABEL, reported)


def report_no_values(n_values, noise_std, n_units):
    """Report columns whose noisy number of present values may be 0.

    Parameters
    ----------
    n_values : ndarray of shape (n_columns,)
        Noisy numbers of the values that are not missing.
    noise_std : float
        Standard deviation of the noise in each number.
    n_units : int
        Public number of rows, or of persons.
    """
    if noise_std <= MAX_MATCHED * n_units:
        report_finding(NO_VALUES, np.flatnonzero(n_values <= MAX_NOISE_OF_NO_VALUES * noise_std))


def report_unfilled_means(means, noise_std, low, high):
    """Report columns whose mean is at one of their bounds, even after allowing for noise.

    Nearly all values are then at this end of the bounds, or so close to it that they are lost.

    Parameters
    ----------
    means : ndarray of shape (n_columns,)
        Noisy means of the values, scaled from their bounds to [-1, 1].
    noise_std : float or ndarray of shape (n_columns,)
        Standard deviations of their noise.
    low, high : ndarray of shape (n_columns,)
        Bounds.
    """
    is_typical = np.isin(np.where(means < 0.0, low, high), TYPICAL_VALUES)
    # If a fraction p of flags has the other value, the mean is shifted by 2 p.
    limits = np.where(is_typical, 2.0 * MAX_OTHERS_OF_TYPICAL_VALUE, MIN_DISTANCE_OF_MEAN)
    _report_unfilled(1.0 - np.abs(means), noise_std, limits)


def report_unfilled_variances(means, mean_squares, noise_std, low, high):
    """Report columns whose noisy variance does not exceed its noise.

    Parameters
    ----------
    means, mean_squares : ndarray of shape (n_columns,)
        Noisy means of the values, scaled to [-1, 1], and of their squares.
    noise_std : float or ndarray of shape (n_columns,)
        Standard deviations of the noise in either mean.
    low, high : ndarray of shape (n_columns,)
        Bounds.
    """
    is_typical = np.isin(np.where(means < 0.0, low, high), TYPICAL_VALUES)
    # If a fraction p of flags has the other value, their variance is 4 p (1 - p).
    limits = np.where(is_typical, 4.0 * MAX_OTHERS_OF_TYPICAL_VALUE, MIN_VARIANCE)
    # The square of the mean is also noisy.
    noise_std = noise_std * np.hypot(1.0, 2.0 * means)
    _report_unfilled(mean_squares - means**2, noise_std, limits)


def report_unfilled_quantiles(released, fractions, scale, n_units, low, high, columns=None):
    """Report columns whose released quantiles show that their values do not fill the bounds.

    Parameters
    ----------
    released : ndarray of shape (n_quantiles, n_columns)
        Released quantiles.
    fractions : ndarray of shape (n_quantiles,)
        Fraction of the rows that should be below each quantile.
    scale : float
        Scale of the errors of ranks.
    n_units : int
        Public number of rows, or of persons.
    low, high : ndarray of shape (n_columns,)
        Bounds.
    columns : ndarray of int, default=None
        Indices of the columns in the estimator's table; None if they are all its columns.
    """
    rank_noise = scale / n_units
    margin = (LOG_N_CELLS + np.log(n_units) + CERTAIN_RANK) * rank_noise
    is_certain = (fractions >= margin) & (fractions <= 1.0 - margin)
    if rank_noise > MAX_NOISE_OF_RANK or not is_certain.any():
        return
    fractions = fractions[is_certain]
    # Halves are used, because the range of extreme bounds overflows.
    half_range = 0.5 * high - 0.5 * low
    positions = (0.5 * released[is_certain] - 0.5 * low) / half_range
    first, last = positions.min(axis=0), positions.max(axis=0)
    noise = CERTAIN_NOISE * rank_noise
    is_unfilled = np.zeros(len(low), dtype=bool)
    has_typical_value = np.zeros(len(low), dtype=bool)
    for end, nearest, farthest, rows_elsewhere in (
        (low, first, last, 1.0 - fractions.max()),
        (high, 1.0 - last, 1.0 - first, fractions.min()),
    ):
        is_typical = np.isin(end, TYPICAL_VALUES) & (nearest <= EQUAL_SPREAD)
        limits = np.where(is_typical, MAX_OTHERS_OF_TYPICAL_VALUE, MAX_ROWS_ELSEWHERE)
        is_unfilled |= (farthest <= MAX_SPREAD) & (rows_elsewhere + noise <= limits)
        has_typical_value |= is_typical
    # Equal quantiles mean that many rows have the same value.
    is_narrow = (last - first > EQUAL_SPREAD) & (last - first <= MAX_SPREAD) & ~has_typical_value
    rows_elsewhere = 1.0 - (fractions.max() - fractions.min())
    is_unfilled |= is_narrow & (rows_elsewhere + noise <= MAX_ROWS_ELSEWHERE)
    if columns is None:
        columns = np.arange(len(low))
    else:
        columns = np.asarray(columns)
    report_finding(UNFILLED, columns[is_unfilled])
    # Rows between these quantiles are on both sides of many grid points.
    has_rows_between = fractions.max() - fractions.min() - 2.0 * noise >= MIN_ROWS_BETWEEN
    report_resolved(columns[(last - first >= MIN_RESOLVED_SPREAD) & has_rows_between])


def _report_unfilled(statistic, noise_std, limits):
    """Report columns whose statistic is within its noise of 0 and certainly below its limit."""
    is_zero = statistic <= UNFILLED_NOISE * noise_std
    is_certain = statistic + CERTAIN_NOISE * noise_std <= limits
    columns = np.flatnonzero(is_zero & is_certain)
    if len(columns):
        report_finding(UNFILLED, columns)


def is_in_one_bin(counts, others, edges, noise_std, n_units, *, has_values=True, is_declared=True):
    """Return True if noisy counts show that one bin contains nearly all rows of a column.

    Returns False if the noise is too large to show it.

    Parameters
    ----------
    counts : ndarray of shape (n_bins,)
        Noisy counts of the bins.
    others : float
        Noisy number of rows that are not in the largest bin.
    edges : ndarray of shape (n_bins + 1,)
        Edges of the bins. The outermost bins contain the values beyond the outermost edges.
    noise_std : float
        Standard deviation of the noise in a count.
    n_units : int
        Public number of rows, or of persons.
    has_values : bool, default=True
        False if the edges are not values of the column, but for example times of day.
    is_declared : bool, default=True
        True if the bounds or the edges are declared.
    """
    if noise_std > MAX_NOISE_OF_ONE_BIN * n_units:
        return False
    k = int(counts.argmax())
    fraction = MAX_OTHER_BINS
    if has_values and (is_declared or edges[k + 1] - edges[k] <= MAX_WIDTH_OF_TYPICAL_VALUE):
        if k:
            low = edges[k]
        else:
            low = -np.inf
        if k + 2 < len(edges):
            high = edges[k + 1]
        else:
            high = np.inf
        if ((low <= TYPICAL_VALUES) & (TYPICAL_VALUES < high)).any():
            fraction = MAX_OTHERS_OF_TYPICAL_VALUE
    return others <= fraction * n_units + noise_std


def report_many_labels(n_labels, n_units):
    """Report columns for which nearly as many categories were found as there are rows.

    Parameters
    ----------
    n_labels : dict of int to int
        Number of released categories per column.
    n_units : int
        Public number of rows, or of persons.
    """
    limit = max(MIN_IDENTIFIERS, n_units / ROWS_PER_IDENTIFIER)
    report_finding(MANY_LABELS, [j for j, n_found in n_labels.items() if n_found >= limit])


def report_declared_identifiers(params, names, n_columns, n_units):
    """Report declared columns whose declaration or name looks like an identifier.

    Parameters
    ----------
    params : dict
        Parameters of the estimator, of which `categories` and `bounds` are used.
    names : sequence or None
        Names of the table's columns.
    n_columns : int
    n_units : int
        Public number of rows, or of persons.
    """
    lists = {}
    if params.get("categories") is not None:
        lists = _declared_lists(params["categories"], names, n_columns)
        limit = max(MIN_IDENTIFIERS, n_units)
        report_finding(MANY_LABELS, [j for j, labels in lists.items() if len(labels) >= limit])
    if "bounds" in params and names is not None:
        # A numeric column whose name suggests identifiers is reported even if it has bounds.
        numbers = set(range(n_columns)) - set(lists)
        report_finding(IDENTIFIERS, sorted(j for j in numbers if is_identifier(names[j])))


def _declared_lists(categories, names, n_columns):
    """Return the declared labels by column.

    A plan has either accepted the parameter, or ignores it; then it may be any object.
    """
    if not _is_list(categories):
        return {}
    if isinstance(categories, Mapping):
        if names is None:
            positions = {}
        else:
            positions = {name: j for j, name in enumerate(names)}
        entries = {positions.get(name, name): labels for name, labels in categories.items()}
    elif any(isinstance(labels, list | tuple | np.ndarray) for labels in categories):
        entries = dict(enumerate(categories))
    else:
        # A flat list applies to each column.
        entries = dict.fromkeys(range(n_columns), categories)
    return {j: labels for j, labels in entries.items() if _is_list(labels)}


def _is_list(value):
    """Return True for a list, an array or a dict of values; False for a string or a number."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def is_identifier(name):
    """Return True for a name that suggests identifiers, such as customer_id or customerID."""
    if not isinstance(name, str):
        return False
    words = WORD.findall(name)
    return ROW_NUMBER.fullmatch(name.strip()) is not None or any(
        word.lower() in IDENTIFYING_WORDS for word in words
    )


def warn_of_findings(label, findings, names=None):
    """Emit one `UserWarning` with all findings of a release, if there are any.

    Parameters
    ----------
    label : str
        Name of the estimator or function.
    findings : Findings
        Findings of `collect_findings`.
    names : sequence, default=None
        Names of the table's columns; None uses their indices.
    """
    if _IS_MUTED.get() or not findings:
        return
    sentences = []
    named = set()
    for kind, message in MESSAGES.items():
        reported = [columns for finding, columns in findings.messages() if finding == kind]
        columns = sorted(set().union(*reported) - named)
        if columns:
            sentences.append(message.format(columns=_column_names(columns, names)))
            named.update(columns)
        elif reported and kind == NO_NORM:
            sentences.append(message)
    if sentences:
        text = "\n".join(sentences)
        warn_user(
            f"{label} released little about some columns. This warning is computed from released "
            f"or public values only and costs nothing.\n{text}"
        )


def _column_names(columns, names):
    """Return a text that lists columns."""
    shown = columns[:MAX_NAMES]
    if names is not None:
        shown = [names[j] for j in shown]
    word = "columns"
    if len(columns) == 1:
        word = "column"
    text = f"{word} {', '.join(map(repr, shown))}"
    if len(columns) > MAX_NAMES:
        text += f" and {len(columns) - MAX_NAMES} more"
    return text
