"""What a release shows about its columns, collected for one warning after the release.

A warning is public, as the release is, so it may say nothing that the release does not say. What
is reported here is computed from noisy values alone, which makes it post-processing: it costs
nothing. Nothing may be reported that was computed from rows.
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

# How each finding reads, in the order in which they are shown. A column is named in the first of
# them that holds for it.
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
# Words that name identifiers, and what a word is in names such as customer_id and customerID.
IDENTIFYING_WORDS = {"id", "ids", "uuid", "guid", "ssn", "iban", "email"}
# A found list of categories is one of identifiers if it is long, and a category has so few rows on
# average; a declared one if it is as long as the table.
MIN_IDENTIFIERS = 20
ROWS_OF_AN_IDENTIFIER = 10
# No more than this fraction of the rows match the categories of a column that is reported, and the
# noise of their number is no more than that fraction.
MAX_MATCHED = 0.02
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# A warning names so many columns at most; the number of the others follows.
MOST_NAMES = 20

_FINDINGS = ContextVar("findings", default=None)
_IS_MUTED = ContextVar("is_muted", default=False)


@contextmanager
def collect_findings():
    """Yield a list to which the releases inside this context add what they show."""
    findings = []
    token = _FINDINGS.set(findings)
    try:
        yield findings
    finally:
        _FINDINGS.reset(token)


@contextmanager
def muted_findings():
    """Warn of no findings inside this context: an audit fits thousands of synthetic tables."""
    token = _IS_MUTED.set(True)
    try:
        yield
    finally:
        _IS_MUTED.reset(token)


def report_finding(kind, columns=()):
    """Add a finding to the list of the release that runs, if there is one.

    Parameters
    ----------
    kind : str
        One of the constants of this module.
    columns : sequence of int, default=()
        The positions of the columns in the table, empty if there are none or where the finding is
        about the whole table. They must follow from noisy values.
    """
    findings = _FINDINGS.get()
    if findings is not None and (len(columns) or kind == NO_NORM):
        findings.append((kind, [int(j) for j in columns]))


def report_identifiers(table, columns):
    """Report those of some columns whose public names say that they hold identifiers.

    Parameters
    ----------
    table : ColumnTable
    columns : iterable of int
        Those of which no categories are declared.
    """
    report_finding(IDENTIFIERS, [j for j in columns if is_identifier(table.label(j))])


def report_unmatched(matched, deviations, n_units):
    """Report columns of which nearly no value is one of the categories.

    Parameters
    ----------
    matched : dict of int to float
        Of each column, the noisy number of rows whose values are among its categories.
    deviations : dict of int to float
        Of the noise of these numbers.
    n_units : int
        The public number of rows, or of persons.
    """
    most = MAX_MATCHED * n_units
    report_finding(
        NO_MATCH,
        [j for j, own in matched.items() if deviations[j] <= most and own <= most + deviations[j]],
    )


def report_many_labels(n_labels, n_units):
    """Report columns of which nearly as many categories were found as there are rows.

    Parameters
    ----------
    n_labels : dict of int to int
        How many categories were released of each column.
    n_units : int
        The public number of rows, or of persons.
    """
    report_finding(
        MANY_LABELS,
        [
            j
            for j, n_found in n_labels.items()
            if n_found >= max(MIN_IDENTIFIERS, n_units / ROWS_OF_AN_IDENTIFIER)
        ],
    )


def report_declared_identifiers(params, names, n_columns, n_units):
    """Report columns that are declared, but whose declaration is one of identifiers.

    Parameters
    ----------
    params : dict
        The estimator's parameters, of which `categories` and `bounds` are read.
    names : sequence or None
        The names of the table's columns.
    n_columns : int
    n_units : int
        The public number of rows, or of persons.
    """
    lists = _declared_lists(params.get("categories"), names, n_columns)
    most = max(MIN_IDENTIFIERS, n_units)
    report_finding(MANY_LABELS, [j for j, labels in lists.items() if len(labels) >= most])
    if "bounds" in params and names is not None:
        # Numbers that are called identifiers are, also where bounds are declared for them.
        numbers = set(range(n_columns)) - set(lists)
        report_finding(IDENTIFIERS, sorted(j for j in numbers if is_identifier(names[j])))


def _declared_lists(categories, names, n_columns):
    """Return the lists of labels in a parameter, by column.

    A plan has accepted the parameter, or does not read it: then it may be anything.
    """
    if not _is_list(categories):
        return {}
    if isinstance(categories, Mapping):
        positions = {} if names is None else {name: j for j, name in enumerate(names)}
        entries = {positions.get(name, name): own for name, own in categories.items()}
    elif any(isinstance(own, list | tuple | np.ndarray) for own in categories):
        entries = dict(enumerate(categories))
    else:
        # One flat list is for every column.
        entries = dict.fromkeys(range(n_columns), categories)
    return {j: own for j, own in entries.items() if _is_list(own)}


def _is_list(value):
    """Return True for a list, an array or a dict of values, False for a word or a number."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return hasattr(value, "__len__") and not isinstance(value, str | bytes)


def is_identifier(name):
    """Return True if a column's name, such as customer_id or customerID, is that of identifiers."""
    words = WORD.findall(name) if isinstance(name, str) else []
    return any(word.lower() in IDENTIFYING_WORDS for word in words)


def warn_of_findings(label, findings, names=None):
    """Emit one `UserWarning` with all findings of a release, none if there are none.

    Parameters
    ----------
    label : str
        What made the release.
    findings : list
        From `collect_findings`.
    names : sequence, default=None
        The names of the table's columns; None names them by their positions.
    """
    if _IS_MUTED.get():
        return
    sentences = []
    named = set()
    for kind, message in MESSAGES.items():
        reported = [columns for found, columns in findings if found == kind]
        columns = sorted({j for own in reported for j in own} - named)
        if columns:
            sentences.append(message.format(columns=_column_names(columns, names)))
            named.update(columns)
        elif reported and kind == NO_NORM:
            sentences.append(message)
    if sentences:
        text = "\n".join(sentences)
        warn_user(
            f"{label} released little of some columns. This warning is computed from what was "
            f"released or is public, and costs nothing.\n{text}"
        )


def _column_names(columns, names):
    shown = [repr(j if names is None else names[j]) for j in columns[:MOST_NAMES]]
    rest = len(columns) - len(shown)
    word = "column" if len(columns) == 1 else "columns"
    return f"{word} {', '.join(shown)}" + (f" and {rest} more" if rest else "")
