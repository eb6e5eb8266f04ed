"""Findings about columns of a release, collected for one warning after the release.

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
NO_CATEGORIES = "categories"
NO_MATCH = "match"
IDENTIFIERS = "identifiers"
MANY_LABELS = "many labels"
ONE_BIN = "bin"
NO_NORM = "norm"

# Message of each finding, in the order in which they are shown. A column is listed in the first
# message that applies to it.
MESSAGES = {
    NO_BOUNDS: (
        "No value but 0 stood out of the noise in {columns}, so the bounds are a guess, and may be "
        "useless: declare the bounds, to which all values are clipped, or give more epsilon."
    ),
    ROUGH_BOUNDS: (
        "The values of {columns} are of one size, and noise hides whether they fill the bounds "
        "that were found or a small part of them: declare the bounds, or give more epsilon."
    ),
    NO_CATEGORIES: (
        "No category stood out of the noise in {columns}, so all values count as one: leave a "
        "column out whose values are nearly all different, as identifiers are; of others declare "
        "the categories, or give more epsilon or delta."
    ),
    IDENTIFIERS: (
        "By the name, {columns} may hold identifiers, from which a model learns nothing about new "
        "rows: leave such columns out, or declare the categories of what is none."
    ),
    MANY_LABELS: (
        "There are nearly as many rows as categories of {columns}, as of identifiers, from which a "
        "model learns nothing about new rows: leave such columns out, or declare fewer categories."
    ),
    NO_MATCH: (
        "Nearly no value of {columns} is one of the column's categories, so nearly all count as "
        "one: declare the values as the table writes them, capitals and blanks included."
    ),
    ONE_BIN: (
        "Nearly all values of {columns} are in one bin, so the model hardly tells them apart: if "
        "the bounds are much wider than the values can be, declare narrower ones."
    ),
    NO_NORM: (
        "No norm of a row stood out of the noise, so data_norm=1 was taken: declare data_norm, or "
        "give more epsilon."
    ),
}
# Words that mark a column as an identifier.
IDENTIFYING_WORDS = {"id", "ids", "uuid", "guid", "ssn", "iban", "email"}
# Found categories are taken for identifiers if there are at least MIN_IDENTIFIERS of them, with at
# most ROWS_PER_IDENTIFIER rows each on average. Declared categories are taken for identifiers if
# there are as many as rows.
MIN_IDENTIFIERS = 20
ROWS_PER_IDENTIFIER = 10
# A column is reported if no more than this fraction of its rows match its categories, and if the
# noise of their number is no more than that fraction.
MAX_MATCHED = 0.02
# A word in names such as customer_id and customerID.
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Maximum number of column names in a message; the number of further columns follows.
MAX_NAMES = 20

_FINDINGS = ContextVar("findings", default=None)
_IS_MUTED = ContextVar("is_muted", default=False)


@contextmanager
def collect_findings():
    """Yield a list to which releases in this context add their findings."""
    findings = []
    token = _FINDINGS.set(findings)
    try:
        yield findings
    finally:
        _FINDINGS.reset(token)


@contextmanager
def muted_findings():
    """Context without warnings of findings, for audits, which fit thousands of synthetic tables."""
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
        Indices of the columns; empty if there are none, or if the finding is about the table. They
        must be computed from noisy or public values.
    """
    findings = _FINDINGS.get()
    if findings is not None and (len(columns) or kind == NO_NORM):
        findings.append((kind, [int(j) for j in columns]))


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
    """Report columns of which nearly no value is one of the categories.

    Parameters
    ----------
    matched : dict of int to float
        Noisy number of rows of each column whose values are among its categories.
    deviations : dict of int to float
        Standard deviations of the noise of these numbers.
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


def report_many_labels(n_labels, n_units):
    """Report columns for which nearly as many categories were found as there are rows.

    Parameters
    ----------
    n_labels : dict of int to int
        Number of released categories by column.
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
    lists = _declared_lists(params.get("categories"), names, n_columns)
    limit = max(MIN_IDENTIFIERS, n_units)
    report_finding(MANY_LABELS, [j for j, labels in lists.items() if len(labels) >= limit])
    if "bounds" in params and names is not None:
        # A numeric column with the name of identifiers is reported even if it has bounds.
        numbers = set(range(n_columns)) - set(lists)
        report_finding(IDENTIFIERS, sorted(j for j in numbers if is_identifier(names[j])))


def _declared_lists(categories, names, n_columns):
    """Return the declared labels by column.

    A plan has accepted the parameter, or ignores it, in which case it may be any object.
    """
    if not _is_list(categories):
        return {}
    if isinstance(categories, Mapping):
        positions = {} if names is None else {name: j for j, name in enumerate(names)}
        entries = {positions.get(name, name): labels for name, labels in categories.items()}
    elif any(isinstance(labels, list | tuple | np.ndarray) for labels in categories):
        entries = dict(enumerate(categories))
    else:
        # A flat list applies to each column.
        entries = dict.fromkeys(range(n_columns), categories)
    return {j: labels for j, labels in entries.items() if _is_list(labels)}


def _is_list(value):
    """Return True for a list, an array or a dict of values, False for a string or a number."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def is_identifier(name):
    """Return True for a name of identifiers, such as customer_id or customerID."""
    words = WORD.findall(name) if isinstance(name, str) else []
    return any(word.lower() in IDENTIFYING_WORDS for word in words)


def warn_of_findings(label, findings, names=None):
    """Emit one `UserWarning` with all findings of a release, if there are any.

    Parameters
    ----------
    label : str
        Name of the estimator or function.
    findings : list
        Findings of `collect_findings`.
    names : sequence, default=None
        Names of the table's columns; None uses their indices.
    """
    if _IS_MUTED.get():
        return
    sentences = []
    named = set()
    for kind, message in MESSAGES.items():
        reported = [columns for finding, columns in findings if finding == kind]
        columns = sorted(set().union(*reported) - named)
        if columns:
            sentences.append(message.format(columns=_column_names(columns, names)))
            named.update(columns)
        elif reported and kind == NO_NORM:
            sentences.append(message)
    if sentences:
        text = "\n".join(sentences)
        warn_user(
            f"{label} released little of some columns. This warning is computed from released or "
            f"public values only, and costs nothing.\n{text}"
        )


def _column_names(columns, names):
    """Return a text that lists columns."""
    shown = [repr(j if names is None else names[j]) for j in columns[:MAX_NAMES]]
    rest = len(columns) - len(shown)
    word = "column" if len(columns) == 1 else "columns"
    return f"{word} {', '.join(shown)}" + (f" and {rest} more" if rest else "")
