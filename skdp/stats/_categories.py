"""Categories of columns: declared, or found privately by a stability threshold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain

import numpy as np

from skdp._data._chunked import ChunkedArray
from skdp._data._classes import code_type
from skdp._data._columns import all_declared, column_entries, split_by_column
from skdp._data._errors import column_name, join_messages
from skdp._data._frames import objects
from skdp._data._labels import (
    MAX_EXACT_INTEGER,
    UNDECLARED,
    canonical_label,
    category_codes,
    distinct_cells,
    has_kind,
    label_kinds,
)
from skdp._data._parts import gather_over
from skdp._data._persons import n_units, row_weights_of, units_of_labels
from skdp._data._tables import names_for_keys
from skdp._fitting._findings import (
    NO_CATEGORIES,
    report_finding,
    report_identifiers,
    report_many_labels,
    report_one_label,
    report_unmatched,
)
from skdp.accounting import ApproximateDP, Guarantee
from skdp.mechanisms import GeometricMechanism, NoRelease
from skdp.mechanisms._plan import noise_of_cell_weights, plan_release
from skdp.mechanisms._randomized_response import categories_array, labels_array
from skdp.utils._validation import is_auto
from skdp.utils._values import FrozenValue
from skdp.utils._warnings import warn_user

# Name of the stage that finds categories.
CATEGORIES = "categories and their counts"


def check_categories(categories, shape):
    """Return one array of declared categories per column.

    It is for estimators that cannot find categories, such as randomized response, and refuses None
    and "auto". Others use `category_lists`, which permits them.

    Parameters
    ----------
    categories : list, or dict of column to list
        One list per column, or one flat list for every column.
    shape : TableShape

    Raises
    ------
    ValueError
        If `categories` has another form or is a set, if a dict lacks a column or has a key that is
        not a column, if the number of lists is not that of the columns, or if `categories_array`
        refuses the labels of a column: there are none, or one is missing, repeated or not hashable.
    """
    # A set is ordered differently in each process.
    if isinstance(categories, set | frozenset) or not _has_items(categories):
        raise ValueError(
            "categories must be declared: one list per column, or one list for every column"
        )
    if not isinstance(categories, Mapping) and all(np.ndim(item) == 0 for item in categories):
        categories = [categories] * shape.n_columns
    columns = all_declared(categories, shape, "categories", range(shape.n_columns))
    return _arrays_of_labels(columns, shape.names)


def _arrays_of_labels(entries, names):
    """Return one array of labels per column, or raise one `ValueError` for all columns."""
    arrays = []
    columns_by_error = {}
    for j, entry in enumerate(entries):
        if entry is None:
            arrays.append(None)
            continue
        try:
            arrays.append(categories_array(entry))
        except ValueError as error:
            columns_by_error.setdefault(str(error), []).append(column_name(j, names))
    if columns_by_error:
        raise ValueError(
            join_messages(
                f"{', '.join(columns)}: {error}" for error, columns in columns_by_error.items()
            )
        )
    return arrays


def category_lists(categories, shape):
    """Return one array of declared categories per column, or None if they are to be found.

    Parameters
    ----------
    categories : None, "auto", list, or dict of column to list or "auto"
        As in `check_categories`, with "auto" instead of a column's list.
    shape : TableShape

    Raises
    ------
    ValueError
        As in `check_categories`, except for None and "auto".
    """
    if finds_all(categories):
        return [None] * shape.n_columns
    if isinstance(categories, str):
        raise ValueError(
            f'categories must be "auto", one list per column or a dict of columns, got '
            f"{categories!r}"
        )
    if not (isinstance(categories, Mapping) or is_per_column(categories)):
        return check_categories(categories, shape)
    entries = all_declared(categories, shape, "categories", range(shape.n_columns))
    entries = [None if is_auto(entry) else entry for entry in entries]
    return _arrays_of_labels(entries, shape.names)


def position_of(other, labels):
    """Return the code of the category for undeclared values, or -1 if there is none."""
    if other is None:
        return UNDECLARED
    return int(category_codes(objects([other]), labels)[0])


@dataclass(frozen=True, eq=False)
class Declared(NoRelease):
    """Declared values of columns, if nothing is computed from the data.

    Parameters
    ----------
    values : sequence
        One value per column.
    """

    values: object

    def run(self, table, source, persons=None):
        """Return the values, and None instead of counts."""
        return self.values, None


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredCounts(FrozenValue):
    """Noisy counts of each column's declared categories.

    Parameters
    ----------
    categories : list of ndarray
    other : label or None
        Category that represents undeclared values, in columns that have it.
    noise : GeometricMechanism or GaussianMechanism
        Mechanism of the counts.
    """

    categories: list
    other: object
    noise: object

    def run(self, table, source, persons=None):
        """Return the categories of each column, and their noisy counts."""
        others = [position_of(self.other, labels) for labels in self.categories]
        exact = table.label_counts(
            range(len(others)), self.categories, others, row_weights_of(persons)
        )
        noisy = self.noise.release(np.concatenate(exact), random_state=source)
        counts = split_by_column(noisy.astype(np.float64), exact)
        report_no_match(
            dict(enumerate(counts)), dict(enumerate(others)), self.noise, n_units(table, persons)
        )
        return self.categories, counts


def report_no_match(counts, others, mechanism, n_units):
    """Report to the user columns in which almost no value is among the categories.

    It is computed from released counts; the user sees a warning after the fit.

    Parameters
    ----------
    counts : dict of int to ndarray
        Noisy counts of each column's categories.
    others : dict of int to int
        Index of the category for undeclared values, negative if there is none.
    mechanism : mechanism
        Mechanism of the noise.
    n_units : int
        Public number of rows, or of persons.
    """
    masks = {j: np.arange(len(values)) != others[j] for j, values in counts.items()}
    # A column whose only category is the one for undeclared values has nothing to match.
    masks = {j: mask for j, mask in masks.items() if mask.any()}
    matched = {j: counts[j][mask].sum() for j, mask in masks.items()}
    size = max(1, sum(map(len, counts.values())))
    noise = mechanism.deviation(size)
    deviations = {j: noise * math.sqrt(mask.sum()) for j, mask in masks.items()}
    report_unmatched(matched, deviations, n_units)


def report_constant(counts, others, mechanism, n_units):
    """Report to the user columns in which nearly all values are one category.

    It calls `report_one_label` for the released counts of categorical transformers, without the
    category for undeclared values. The parameters are those of `report_no_match`.
    """
    labels = dict(counts)
    for j, other in others.items():
        if other >= 0:
            labels[j] = np.delete(labels[j], other)
    size = max(1, sum(map(len, counts.values())))
    report_one_label(labels, mechanism.deviation(size), n_units)


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedCategories(FrozenValue):
    """Categories that are declared for some columns and found in the others.

    If declared categories are counted, all counts form one release, in which a row counts once per
    column. Undeclared values are released if their count reaches a threshold. A declared category
    needs no threshold, because its name reveals nothing.

    Parameters
    ----------
    categories : list of ndarray or None
        Declared categories of each column; None if they are to be found.
    other : label or None
        See `DeclaredCounts`.
    is_counted : bool
        True if declared categories are also counted.
    threshold : StabilityThreshold
    """

    categories: list
    other: object
    is_counted: bool
    threshold: object

    @property
    def noise(self):
        """Mechanism of the counts."""
        return self.threshold.noise

    def run(self, table, source, persons=None):
        """Return the categories of each column, and their noisy counts or None."""
        threshold = self.threshold
        undeclared = [j for j, labels in enumerate(self.categories) if labels is None]
        released = threshold.release_labels(table.select(undeclared), source, persons)
        report_identifiers(table, undeclared)
        categories = list(self.categories)
        counts = [None] * len(self.categories)
        for j, (labels, noisy) in zip(undeclared, released, strict=True):
            categories[j] = labels
            counts[j] = noisy
        n_labels = {j: len(categories[j]) for j in undeclared}
        report_many_labels(n_labels, n_units(table, persons))
        report_finding(NO_CATEGORIES, [j for j, n in n_labels.items() if not n])
        if self.is_counted:
            declared = [j for j in range(len(categories)) if j not in undeclared]
            exact = self._declared_counts(table, declared, persons)
            noisy = self.noise.release(np.concatenate(exact), random_state=source)
            by_column = split_by_column(noisy.astype(np.float64), exact)
            for j, values in zip(declared, by_column, strict=True):
                counts[j] = values
            places = {j: position_of(self.other, self.categories[j]) for j in declared}
            noisy_counts = {j: counts[j] for j in declared}
            report_no_match(noisy_counts, places, self.noise, n_units(table, persons))
        return categories, counts

    def _declared_counts(self, table, declared, persons):
        """Return the exact counts of the categories of each column in `declared`."""
        lists = [self.categories[j] for j in declared]
        others = [position_of(self.other, labels) for labels in lists]
        if persons is None:
            return table.label_counts(declared, lists, others)
        # As with found categories, a person counts with one value per column, so counts are
        # integers.
        codes = table.codes(declared, lists, others)
        return [
            units_of_labels(column_codes, len(labels), persons)
            for column_codes, labels in zip(codes.T, lists, strict=True)
        ]


def check_declared(table, release):
    """Raise `ValueError` if a table contains labels that a release cannot count.

    Labels whose kind no declared category has are refused. Where categories have yet to be found,
    labels that cannot be categories are refused.

    Parameters
    ----------
    table : ColumnTable
    release : Declared, DeclaredCounts, MixedCategories or StabilityThreshold
        The `mechanism` of a plan that releases categories.
    """
    if isinstance(release, Declared):
        lists = release.values
    elif isinstance(release, DeclaredCounts | MixedCategories):
        lists = release.categories
    else:
        lists = [None] * table.shape[1]
    declared = {j: labels for j, labels in enumerate(lists) if labels is not None}
    other = getattr(release, "other", None)
    # The category that represents undeclared values need not occur in the column.
    expected = {j: _without(other, labels) for j, labels in declared.items()}
    found_columns = [j for j in range(len(lists)) if j not in declared]
    table.check({}, declared, found_columns=found_columns, expected=expected)


def _without(other, labels):
    """Return the categories of a column, except the one for undeclared values."""
    if other is None:
        return labels
    return labels[np.arange(len(labels)) != position_of(other, labels)]


def check_served(table, categories, declared):
    """Raise `ValueError` if samples contain labels whose kind no category of a model has.

    Columns with found categories are checked only if their dtype determines the kind of all values.
    In an object column, the categories that were found do not determine the kinds of rare values,
    and rows that were used in the fit must not be refused. Values that cannot be categories are
    refused, as in the fit.

    Parameters
    ----------
    table : ColumnTable
        Samples.
    categories : dict of column to ndarray
        Categories of the fitted model.
    declared : collection of int
        Columns whose categories were declared.
    """
    checked = {
        j: labels for j, labels in categories.items() if j in declared or table.kind_is_public(j)
    }
    table.check({}, checked, found_columns=[j for j in categories if j not in declared])
    for j, labels in categories.items():
        kinds = label_kinds(labels)
        if j in checked or not kinds or isinstance(table.matrix, ChunkedArray):
            continue
        if not has_kind(table.whole_column(j), kinds):
            warn_user(
                f"{table.name(j)}: no value is {' or '.join(sorted(kinds))}, as all categories are "
                "that the fit found, so each row counts as another value: convert the column to "
                "the type that it had in the fit"
            )


def check_encoded(encoder, table):
    """Raise `ValueError` if samples contain labels of a kind that `categories_` does not have."""
    categories = encoded_categories(encoder)
    names = names_for_keys(encoder)
    declared = declared_places(encoder.categories, names, len(categories))
    check_served(table, categories, declared)


def encoded_categories(encoder):
    """Return each column's `categories_` of an encoder, except the one for undeclared values.

    That category is left out because its kind does not determine the kind of the column.
    """
    categories = encoder.categories_
    other = getattr(encoder, "other", None)
    if other is not None:
        categories = [_without(other, labels) for labels in categories]
    return dict(enumerate(categories))


def first_labels(categories):
    """Return the first category of each column that has categories.

    Parameters
    ----------
    categories : dict of column to ndarray
    """
    return {j: labels[:1].tolist()[0] for j, labels in categories.items() if len(labels)}


def finds_all(categories):
    """Return True if the categories of all columns are to be found privately."""
    return categories is None or is_auto(categories)


def declared_places(categories, names, n_features):
    """Return the positions of the columns with declared categories."""
    if finds_all(categories):
        return ()
    if isinstance(categories, Mapping) or is_per_column(categories):
        entries = column_entries(categories, names, n_features, "categories")
        return [j for j, entry in enumerate(entries) if not (entry is None or is_auto(entry))]
    return range(n_features)


def declared_labels(categories, names, n_features):
    """Yield the positions of columns and their declared lists of labels.

    Parameters
    ----------
    categories : None, "auto", list, or dict of column to list or "auto"
    names : sequence of str or None
    n_features : int or None
        If None, the positions of lists are unknown, and None is yielded for them.

    Yields
    ------
    position : int or None
    labels : sequence
    """
    if finds_all(categories):
        return
    is_flat = not (isinstance(categories, Mapping) or is_per_column(categories))
    if n_features is None:
        lists = categories
        if is_flat:
            lists = [categories]
        elif isinstance(categories, Mapping):
            lists = categories.values()
        entries = [(None, labels) for labels in lists]
    elif is_flat:
        entries = [(j, categories) for j in range(n_features)]
    else:
        entries = enumerate(column_entries(categories, names, n_features, "categories"))
    for position, labels in entries:
        if not (labels is None or is_auto(labels)):
            yield position, labels


def is_per_column(categories):
    """Return True if a sequence has one entry per column, False for a flat list of labels."""
    if not _has_items(categories):
        return False
    items = [*categories]
    if not items:
        return False
    # In a list with other scalars, such as ["auto", "manual"], "auto" is a label.
    if all(map(is_auto, items)):
        return True
    return any(item is None or np.ndim(item) > 0 for item in items)


def _has_items(value):
    """Return True for a list or another container of labels, False for text and scalars."""
    is_text = isinstance(value, str | bytes)
    return hasattr(value, "__len__") and not is_text and getattr(value, "shape", None) != ()


def plan_counts(categories, other, shape, guarantee):
    """Return the plan that counts declared or found categories.

    Parameters
    ----------
    categories : None, "auto", list, or dict of column to list or "auto"
    other : label or None
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    Plan
        Its `run` returns the categories of each column and their noisy counts. Its mechanism is the
        `DeclaredCounts`, `MixedCategories` or `StabilityThreshold`.
    """
    categories = category_lists(categories, shape)
    if any(labels is None for labels in categories):
        return plan_discovery(categories, other, guarantee, is_counted=True)
    noise = noise_of_cell_weights(shape.n_columns, guarantee, whole=True)
    counts = DeclaredCounts(categories=categories, other=other, noise=noise)
    n_counts = sum(map(len, categories))
    plan = plan_release(noise, counts.run, stage_name="counts of categories", size=n_counts)
    return replace(plan, mechanism=counts)


def plan_discovery(categories, other, guarantee, *, is_counted):
    """Return the plan that finds the undeclared categories, with counts.

    Parameters
    ----------
    categories : list of ndarray or None
        Output of `category_lists`, with None for at least one column.
    other : label or None
    guarantee : Guarantee
    is_counted : bool
        True if declared categories are counted in the same release.

    Returns
    -------
    Plan
        Its `run` returns the categories of each column, and their noisy counts or None. Its
        mechanism is the `MixedCategories` or `StabilityThreshold`.
    """
    n_undeclared = sum(labels is None for labels in categories)
    n_declared = len(categories) - n_undeclared
    n_counted = 0
    if is_counted:
        n_counted = n_declared
    threshold = StabilityThreshold(
        n_columns=n_undeclared, n_declared=n_counted, guarantee=guarantee
    )
    release = threshold
    if n_declared:
        release = MixedCategories(
            categories=categories, other=other, is_counted=is_counted, threshold=threshold
        )
    plan = plan_release(threshold, release.run, stage_name=CATEGORIES)
    return replace(plan, mechanism=release)


@dataclass(frozen=True, kw_only=True, eq=False)
class StabilityThreshold(FrozenValue):
    r"""Release of the values whose noisy counts reach a threshold, and of these counts.

    Discrete Laplace noise of scale :math:`s = m d / \varepsilon`, where m is 1 under add/remove and
    2 under replace-one, is added to the count of each value that occurs. A value that occurs in one
    row is released with probability :math:`P(1 + Z \ge \tau) \le \delta / d`. The proof, for a row
    that has a value in each of d columns, is in ``docs/theory/encoders.md``. A person counts as one
    row, with their most frequent value in each column.

    Parameters
    ----------
    n_columns : int
        Number d of columns whose categories are to be found.
    n_declared : int, default=0
        Number of columns whose declared categories are counted with the same noise. The scale is
        then that for d plus this number of columns. Declared categories need no threshold.
    guarantee : Guarantee
        Guarantee with a positive delta.

    Attributes
    ----------
    threshold : int
        Threshold of the noisy counts.
    noise : GeometricMechanism
        Mechanism of the counts.
    scale, sensitivity : float
        Scale of the noise, and sensitivity of the counts.
    event : skdp.accounting.ApproximateDP
        Privacy event of the release.

    References
    ----------
    A. Korolova, K. Kenthapadi, N. Mishra and A. Ntoulas. Releasing search queries and clicks
    privately. WWW 2009. R. J. Wilson, C. Y. Zhang, W. Lam, D. Desfontaines, D. Simmons-Marengo
    and B. Gipson. Differentially private SQL with bounded user contribution. PoPETs 2020.
    """

    n_columns: int
    n_declared: int = 0
    guarantee: Guarantee

    name = "Geometric mechanism with a stability threshold"

    def __post_init__(self):
        if self.guarantee.delta == 0.0:
            raise ValueError(
                "undeclared categories are found by a stability threshold, which needs delta > 0; "
                "declare categories, or set delta"
            )

    @property
    def epsilon(self):
        return self.guarantee.epsilon

    @property
    def delta(self):
        return self.guarantee.delta

    @cached_property
    def noise(self):
        """The mechanism of the counts, for all columns together."""
        n_columns = self.n_columns + self.n_declared
        sensitivity = self.guarantee.neighbors.sensitivity_factor * n_columns
        return GeometricMechanism(self.epsilon, sensitivity)

    @property
    def scale(self):
        return self.noise.scale

    @property
    def sensitivity(self):
        return self.noise.sensitivity

    @property
    def event(self):
        return ApproximateDP(self.epsilon, self.delta)

    @property
    def threshold(self):
        """Noisy count from which a value is released."""
        # P(Z >= t) = a**t / (1 + a) for t >= 1, a = exp(-1 / s); the factor covers rounding.
        a = math.exp(-1.0 / self.scale)
        t = self.scale * math.log(self.n_columns / (self.delta * (1.0 + a)))
        return 1 + max(1, math.ceil(t * (1.0 + 1e-9) + 1e-9))

    def run(self, table, source, persons=None):
        """Return the released values of each column, in order, and their noisy counts.

        Parameters
        ----------
        table : ColumnTable
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.

        Returns
        -------
        categories : list of ndarray
            Sorted categories, numbers before strings.
        counts : list of ndarray of float
        """
        columns = self.release_labels(table.select(range(self.n_columns)), source, persons)
        report_identifiers(table, range(self.n_columns))
        n_labels = {j: len(labels) for j, (labels, _) in enumerate(columns)}
        report_many_labels(n_labels, n_units(table, persons))
        report_finding(NO_CATEGORIES, [j for j, n in n_labels.items() if not n])
        return [labels for labels, _ in columns], [counts for _, counts in columns]

    def release(self, counts, *, random_state):
        """Return the noisy counts of the values of one column."""
        return self.noise.release(counts, random_state=random_state)

    def release_labels(self, columns, source, persons):
        """Return the released labels and counts of each column selected by `ColumnTable.select`."""
        return [
            self._select(labels, counts, source) for labels, counts in _all_counts(columns, persons)
        ]

    def _select(self, labels, exact, source):
        """Return the labels whose noisy count reaches the threshold, and these counts."""
        noisy = exact
        if len(exact):
            noisy = self.release(exact, random_state=source)
        selected = np.flatnonzero(noisy >= self.threshold)
        released = _released_labels([labels[i] for i in selected])
        return released, noisy[selected].astype(np.float64)


def _all_counts(columns, persons):
    """Return the possible categories of each column, and their exact counts.

    Parameters
    ----------
    columns : Rows
        Rows whose blocks are lists of columns.
    persons : Persons or None
        Persons of the rows. A person's rows can be in several partitions, so the value counted for
        each person is chosen here, from the codes of all rows.
    """
    if persons is None:
        return gather_over(
            columns, partial(_map_columns, _value_counts), partial(_merge_columns, _add_counts)
        )
    coded = gather_over(
        columns, partial(_map_columns, _encode), partial(_merge_columns, _concatenate_codes)
    )
    return [_person_counts(labels, codes, persons) for labels, codes in coded]


def _person_counts(labels, codes, persons):
    """Return the labels that count for at least one person, and their numbers of persons."""
    counts = units_of_labels(codes, len(labels), persons)
    # Only one of a person's values is counted, so the others must not be candidates for release.
    counted = np.flatnonzero(counts)
    return [labels[i] for i in counted], counts[counted]


def _map_columns(function, columns):
    """Return a function of each column of a block, for `gather_over`."""
    return [function(values) for values in columns]


def _merge_columns(merge, partitions):
    """Merge the results of `_map_columns` column by column, for `gather_over`."""
    return [merge(column_parts) for column_parts in zip(*partitions, strict=True)]


def _add_counts(partitions):
    """Merge the results of `_value_counts` for one column."""
    labels, indices = _merge_labels(partitions)
    counts = np.concatenate([counts for _, counts in partitions])
    return labels, np.bincount(np.concatenate(indices), counts, len(labels)).astype(np.int64)


def _concatenate_codes(partitions):
    """Merge the results of `_encode` for one column, with one list of labels for all rows."""
    labels, indices = _merge_labels(partitions)
    codes = []
    for (_, partition_codes), label_indices in zip(partitions, indices, strict=True):
        # Values that cannot be categories have the last index as their code.
        new_codes = np.append(label_indices, UNDECLARED).astype(code_type(labels))
        codes.append(new_codes[partition_codes])
    return labels, np.concatenate(codes)


def _merge_labels(partitions):
    """Return the sorted labels of all partitions, with the indices of each partition's labels."""
    label_lists = [labels for labels, _ in partitions]
    if all(isinstance(labels, np.ndarray) for labels in label_lists):
        merged = np.unique(np.concatenate(label_lists))
        return merged, [np.searchsorted(merged, labels) for labels in label_lists]
    merged = sorted(set(chain.from_iterable(label_lists)), key=_sort_key)
    index = {label: i for i, label in enumerate(merged)}
    indices = []
    for labels in label_lists:
        indices.append(np.array([index[label] for label in labels], dtype=np.intp))
    return merged, indices


def _sort_key(label):
    """Return a key that sorts numbers before text, which Python cannot compare."""
    return isinstance(label, str), label


def _value_counts(values):
    """Return the values of a block that can be categories, and their numbers of rows."""
    labels, codes = _encode(values)
    return labels, units_of_labels(codes, len(labels), None)


def _encode(values):
    """Return the sorted values that can be categories, and the code of each row.

    Labels are an array if values are numbers, otherwise a list.
    """
    if values.dtype.kind in "biuf" and values.dtype.itemsize <= 8:
        with np.errstate(all="ignore"):
            unique, codes = np.unique(values.astype(np.float64), return_inverse=True)
            is_label = np.abs(unique) < MAX_EXACT_INTEGER
        labels = unique[is_label]
        indices = np.where(is_label, np.cumsum(is_label) - 1, UNDECLARED)
    else:
        distinct, codes = distinct_cells(values)
        if distinct is None:
            distinct = values
            codes = slice(None)
        canonical = [canonical_label(value) for value in distinct]
        labels = sorted(set(canonical) - {None}, key=_sort_key)
        index = {label: i for i, label in enumerate(labels)}
        indices = np.array([index.get(label, UNDECLARED) for label in canonical], int)
    return labels, indices.astype(code_type(labels))[codes]


def _released_labels(labels):
    """Return released labels as an array whose dtype is independent of unreleased labels."""
    if labels:
        return labels_array([canonical_label(label) for label in labels])
    return np.empty(0, dtype=object)
