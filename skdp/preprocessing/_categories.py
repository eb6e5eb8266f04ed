"""Categories of columns: declared, or discovered by a stability threshold."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from skdp._data._columns import all_declared, column_entries, names_for_keys, split_by_column
from skdp._data._parts import gather_over
from skdp._data._persons import n_units, shares_of, units_of_labels
from skdp._data._refusals import column_name, in_one
from skdp.accounting import ApproximateDP
from skdp.mechanisms import GeometricMechanism, NoRelease
from skdp.mechanisms._plan import MechanismPlan, PlanValue, plan_cell_weights
from skdp.mechanisms._randomized_response import categories_array, labels_array
from skdp.stats._moments import StatisticPlan
from skdp.utils._findings import (
    NO_CATEGORIES,
    report_finding,
    report_identifiers,
    report_many_labels,
    report_unmatched,
)
from skdp.utils._frames import objects
from skdp.utils._labels import INTEGERS_APART, UNDECLARED, canonical_label, category_codes
from skdp.utils._validation import code_type, is_auto


def check_categories(categories, shape):
    """Return one array of declared categories a column.

    Parameters
    ----------
    categories : list, or dict of column to list
        One list a column, or one flat list for every column.
    shape : TableShape

    Raises
    ------
    ValueError
        If they are not that, or a column's labels are not distinct.
    """
    single = isinstance(categories, np.ndarray) and categories.ndim == 0
    if categories is None or single or isinstance(categories, str | set | numbers.Number):
        raise ValueError("categories must be declared: one list a column, or one for every column")
    if not isinstance(categories, Mapping) and all(np.ndim(item) == 0 for item in categories):
        categories = [categories] * shape.n_columns
    columns = all_declared(categories, shape, "categories", range(shape.n_columns))
    return _arrays_of_labels(columns, shape.names)


def _arrays_of_labels(entries, names):
    """Return an array for each column's list of labels, or raise one `ValueError` about all."""
    arrays = []
    refused = {}
    for j, entry in enumerate(entries):
        try:
            arrays.append(None if entry is None else categories_array(entry))
        except ValueError as error:
            refused.setdefault(str(error), []).append(column_name(j, names))
    if refused:
        raise ValueError(in_one(f"{', '.join(own)}: {error}" for error, own in refused.items()))
    return arrays


def category_lists(categories, shape):
    """Return one array of declared categories a column, None where they are to be found.

    Parameters
    ----------
    categories : None, "auto", list, or dict of column to list or "auto"
        As `check_categories` takes it, with "auto" in place of a column's list.
    shape : TableShape

    Raises
    ------
    ValueError
        If they are not that, or a column's labels are not distinct.
    """
    if finds_all(categories):
        return [None] * shape.n_columns
    if not (isinstance(categories, Mapping) or is_per_column(categories)):
        return check_categories(categories, shape)
    entries = all_declared(categories, shape, "categories", range(shape.n_columns))
    return _arrays_of_labels([None if is_auto(own) else own for own in entries], shape.names)


def position_of(other, labels):
    """Return the code of the category of other values, -1 if there is none."""
    return UNDECLARED if other is None else int(category_codes(objects([other]), labels)[0])


@dataclass(frozen=True, eq=False)
class Declared(NoRelease):
    """What is declared of columns, where nothing is counted.

    Parameters
    ----------
    values : sequence
        One a column.
    """

    values: object

    def run(self, table, source, persons=None):
        """Return the values, and no counts."""
        return self.values, None


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredCounts(MechanismPlan):
    """Noisy counts of each column's declared categories.

    Parameters
    ----------
    categories : list of ndarray
    other : label or None
        What is not among a column's categories is counted as this, if it is one of them.
    mechanism : GeometricMechanism or GaussianMechanism
    """

    categories: list
    other: object
    mechanism: object

    by_person = True
    released = "counts of categories"

    def run(self, table, source, persons=None):
        """Return the categories of each column, and their noisy counts."""
        others = [position_of(self.other, labels) for labels in self.categories]
        exact = table.label_counts(range(len(others)), self.categories, others, shares_of(persons))
        noisy = self.mechanism.release(np.concatenate(exact), random_state=source)
        counts = split_by_column(noisy.astype(np.float64), exact)
        report_no_match(
            dict(enumerate(counts)),
            dict(enumerate(others)),
            self.mechanism,
            n_units(table, persons),
        )
        return self.categories, counts


def report_no_match(counts, others, mechanism, n_units):
    """Report columns of whose values nearly none are among the categories.

    Parameters
    ----------
    counts : dict of int to ndarray
        The noisy counts of each column's categories.
    others : dict of int to int
        The place of the category of other values, negative if there is none.
    mechanism : MechanismPlan
        Of the noise.
    n_units : int
        The public number of rows, or of persons.
    """
    own = {j: np.arange(len(values)) != others[j] for j, values in counts.items()}
    # A column whose only category is that of other values has none of its own.
    own = {j: is_own for j, is_own in own.items() if is_own.any()}
    matched = {j: counts[j][is_own].sum() for j, is_own in own.items()}
    size = max(1, sum(map(len, counts.values())))
    noise = mechanism.deviation(size)
    deviations = {j: noise * math.sqrt(is_own.sum()) for j, is_own in own.items()}
    report_unmatched(matched, deviations, n_units)


@dataclass(frozen=True, kw_only=True, eq=False)
class MixedCategories(MechanismPlan):
    """Categories that are declared for some columns and found in the others.

    Where declared categories are counted, all counts of a row are one release: a row counts once
    in each column, whether its categories are declared or found, and values that nothing declares
    are released above a threshold. A declared category is released whatever its count, as one
    that occurs in both neighboring tables.

    Parameters
    ----------
    categories : list of ndarray or None
        None where they are to be found.
    other : label or None
        As of `DeclaredCounts`.
    is_counted : bool
        Whether declared categories are counted, too.
    mechanism : StabilityThreshold
    """

    categories: list
    other: object
    is_counted: bool
    mechanism: object

    by_person = True
    released = "categories and their counts"

    def run(self, table, source, persons=None):
        """Return the categories of each column, and their noisy counts or None."""
        threshold = self.mechanism
        sought = [j for j, own in enumerate(self.categories) if own is None]
        columns = threshold.found(table.several(sought), source, persons)
        report_identifiers(table, sought)
        n_labels = {j: len(own) for j, (own, _) in zip(sought, columns, strict=True)}
        report_many_labels(n_labels, n_units(table, persons))
        report_finding(
            NO_CATEGORIES, [j for j, own in zip(sought, columns, strict=True) if not len(own[0])]
        )
        categories = list(self.categories)
        counts = [None] * len(self.categories)
        for j, (labels, noisy) in zip(sought, columns, strict=True):
            categories[j], counts[j] = labels, noisy
        if self.is_counted:
            declared = [j for j in range(len(categories)) if j not in sought]
            exact = self._declared_counts(table, declared, persons)
            noisy = threshold.mechanism.release(np.concatenate(exact), random_state=source)
            own = split_by_column(noisy.astype(np.float64), exact)
            for j, values in zip(declared, own, strict=True):
                counts[j] = values
            places = {j: position_of(self.other, self.categories[j]) for j in declared}
            known = {j: counts[j] for j in declared}
            report_no_match(known, places, threshold.mechanism, n_units(table, persons))
        return categories, counts

    def _declared_counts(self, table, declared, persons):
        lists = [self.categories[j] for j in declared]
        others = [position_of(self.other, labels) for labels in lists]
        if persons is None:
            return table.label_counts(declared, lists, others)
        # As in discovery a person counts one value of each column, so that counts stay whole.
        codes = table.codes(declared, lists, others)
        return [
            units_of_labels(own, len(labels), persons)
            for own, labels in zip(codes.T, lists, strict=True)
        ]


def check_declared(table, plan):
    """Raise `ValueError` if a table holds labels that cannot be counted as a plan counts them.

    Parameters
    ----------
    table : ColumnTable
    plan : Declared, DeclaredCounts, MixedCategories or StabilityThreshold
        Labels of other kinds than are declared are refused, and where categories are to be found
        those of which none can be.
    """
    if isinstance(plan, Declared):
        lists = plan.values
    elif isinstance(plan, DeclaredCounts | MixedCategories):
        lists = plan.categories
    else:
        lists = [None] * table.shape[1]
    declared = {j: labels for j, labels in enumerate(lists) if labels is not None}
    other = getattr(plan, "other", None)
    # The category of other values is not one of the column's own.
    expected = {j: _without(other, labels) for j, labels in declared.items()}
    found = [j for j in range(len(lists)) if j not in declared]
    table.check({}, declared, found=found, expected=expected)


def _without(other, labels):
    """Return the categories of a column but that of other values."""
    return labels if other is None else labels[np.arange(len(labels)) != position_of(other, labels)]


def check_served(table, categories, declared):
    """Raise `ValueError` if samples hold labels of other kinds than a fitted model's categories.

    Parameters
    ----------
    table : ColumnTable
    categories : dict of column to ndarray
    declared : collection of int
        The columns whose categories were declared. What was discovered in a column of objects
        says nothing of the kinds of its rare values, and its own rows must not be refused: other
        columns are checked where their type says the kind of all their values. Values of which
        no category can be found were refused by the fit, and are refused here.
    """
    checked = {
        j: labels for j, labels in categories.items() if j in declared or table.kind_is_public(j)
    }
    table.check({}, checked, found=[j for j in categories if j not in declared])


def check_encoded(encoder, table):
    """Raise `ValueError` if samples hold labels of other kinds than an encoder's `categories_`."""
    categories = encoded_categories(encoder)
    names = names_for_keys(encoder)
    declared = declared_places(encoder.categories, names, len(categories))
    check_served(table, categories, declared)


def encoded_categories(encoder):
    """Return an encoder's `categories_` by column, without that of other values.

    This stands for other values, and its own kind says nothing of a column's.
    """
    categories = encoder.categories_
    other = getattr(encoder, "other", None)
    if other is not None:
        categories = [_without(other, own) for own in categories]
    return dict(enumerate(categories))


def first_labels(categories):
    """Return the first of each column's categories, of those that have some.

    Parameters
    ----------
    categories : dict of column to ndarray
    """
    return {j: own[:1].tolist()[0] for j, own in categories.items() if len(own)}


def finds_all(categories):
    """Return whether the categories of all columns of a table are to be found privately."""
    return categories is None or is_auto(categories)


def declared_places(categories, names, n_features):
    """Return the columns whose categories are declared, and not "auto" or left out."""
    if finds_all(categories):
        return ()
    if isinstance(categories, Mapping) or is_per_column(categories):
        entries = column_entries(categories, names, n_features, "categories")
        return [j for j, own in enumerate(entries) if not (own is None or is_auto(own))]
    return range(n_features)


def declared_labels(categories, names, n_features):
    """Yield the places of columns and their declared lists of labels.

    Parameters
    ----------
    categories : None, "auto", list, or dict of column to list or "auto"
    names : sequence of str or None
    n_features : int or None
        Where it is not known, neither is the place of a list, which is None then.

    Yields
    ------
    place : int or None
    labels : sequence
    """
    if finds_all(categories):
        return
    is_flat = not (isinstance(categories, Mapping) or is_per_column(categories))
    if n_features is None:
        every = categories.values() if isinstance(categories, Mapping) else categories
        entries = [(None, own) for own in ([categories] if is_flat else every)]
    elif is_flat:
        entries = [(j, categories) for j in range(n_features)]
    else:
        entries = enumerate(column_entries(categories, names, n_features, "categories"))
    yield from ((j, own) for j, own in entries if not (own is None or is_auto(own)))


def is_per_column(categories):
    """Return whether a sequence has an entry for each column, and is no flat list of labels."""
    if not _has_items(categories):
        return False
    items = [*categories]
    # "auto" and "manual" may be labels.
    return bool(items) and (
        all(map(is_auto, items)) or any(item is None or np.ndim(item) > 0 for item in items)
    )


def _has_items(value):
    is_text = isinstance(value, str | bytes)
    return hasattr(value, "__len__") and not is_text and getattr(value, "shape", None) != ()


def plan_counts(categories, other, shape, guarantee):
    """Plan the counts of declared categories, or of those that are discovered.

    Parameters
    ----------
    categories : None, "auto", list, or dict of column to list or "auto"
    other : label or None
    shape : TableShape
    guarantee : Guarantee

    Returns
    -------
    DeclaredCounts, MixedCategories or StabilityThreshold
    """
    categories = category_lists(categories, shape)
    if any(own is None for own in categories):
        return plan_discovery(categories, other, guarantee, is_counted=True)
    mechanism = plan_cell_weights(shape.n_columns, guarantee, whole=True)
    mechanism.check_size(sum(map(len, categories)))
    return DeclaredCounts(categories=categories, other=other, mechanism=mechanism)


def plan_discovery(categories, other, guarantee, *, is_counted):
    """Plan the discovery of the categories that are not declared, with counts.

    Parameters
    ----------
    categories : list of ndarray or None
        From `category_lists`; None, of one column at least, where they are to be found.
    other : label or None
    guarantee : Guarantee
    is_counted : bool
        Whether declared categories are counted in the same release.

    Returns
    -------
    MixedCategories or StabilityThreshold
    """
    n_sought = sum(own is None for own in categories)
    n_declared = len(categories) - n_sought
    if not n_declared:
        return StabilityThreshold(n_columns=n_sought, guarantee=guarantee)
    n_counted = n_declared if is_counted else 0
    threshold = StabilityThreshold(n_columns=n_sought, n_declared=n_counted, guarantee=guarantee)
    return MixedCategories(
        categories=categories, other=other, is_counted=is_counted, mechanism=threshold
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class StabilityThreshold(StatisticPlan):
    r"""Release the values of columns whose noisy count reaches a threshold, and these counts.

    Discrete Laplace noise of scale :math:`s = m d / \varepsilon`, m = 1 under add/remove and 2
    under replace-one, is added to the count of each value that occurs. A value that occurs in
    one row is released with probability :math:`P(1 + Z \ge \tau) \le \delta / d`. The proof, for
    a row that has a value in each of d columns, is in ``docs/encoders.md``. A person counts as one
    row, of the most frequent value of each column, whatever number of rows there are.

    Parameters
    ----------
    n_columns : int
        The number d of columns whose categories are sought.
    n_declared : int, default=0
        The number of columns whose declared categories are counted with the same noise: the scale
        is then that for d and these together. Declared categories need no threshold.
    guarantee : Guarantee
        Of positive delta.

    Attributes
    ----------
    threshold : int
        The threshold.
    scale, sensitivity : float
        Of the counts' noise.
    event : skdp.accounting.ApproximateDP
        What the release costs.

    References
    ----------
    A. Korolova, K. Kenthapadi, N. Mishra and A. Ntoulas. Releasing search queries and clicks
    privately. WWW 2009. R. J. Wilson, C. Y. Zhang, W. Lam, D. Desfontaines, D. Simmons-Marengo
    and B. Gipson. Differentially private SQL with bounded user contribution. PoPETs 2020.
    """

    n_columns: int
    n_declared: int = 0

    name = "Geometric mechanism with a stability threshold"
    released = "categories and their counts"
    stages = PlanValue.stages

    def __post_init__(self):
        if self.guarantee.delta == 0.0:
            raise ValueError(
                "categories that are not declared are found by a stability threshold, which needs "
                "delta > 0; declare categories, or give delta"
            )
        moved = self.guarantee.neighbors.sensitivity_factor * (self.n_columns + self.n_declared)
        object.__setattr__(self, "mechanism", GeometricMechanism(self.epsilon, moved))

    @property
    def event(self):
        return ApproximateDP(self.epsilon, self.delta)

    @property
    def threshold(self):
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
            Whose the rows are.

        Returns
        -------
        categories : list of ndarray
                Sorted: numbers, then strings.
        counts : list of ndarray of float
        """
        columns = self.found(table.several(range(self.n_columns)), source, persons)
        report_identifiers(table, range(self.n_columns))
        n_labels = {j: len(own) for j, (own, _) in enumerate(columns)}
        report_many_labels(n_labels, n_units(table, persons))
        report_finding(NO_CATEGORIES, [j for j, (own, _) in enumerate(columns) if not len(own)])
        return [labels for labels, _ in columns], [counts for _, counts in columns]

    def found(self, columns, source, persons):
        """Return what is released of each of some columns, as `ColumnTable.several` gives them."""
        return [self._discover(*own, source) for own in _all_counts(columns, persons)]

    def _discover(self, labels, exact, source):
        noisy = self.mechanism.release(exact, random_state=source) if len(exact) else exact
        kept = np.flatnonzero(noisy >= self.threshold)
        return _released_labels([labels[i] for i in kept]), noisy[kept].astype(np.float64)


def _all_counts(columns, persons):
    """Return of each column the values that can be categories and count, and their counts.

    Parameters
    ----------
    columns : Rows
        Of a list of columns a block.
    persons : Persons or None
        Whose rows may lie in several parts: which of their values counts is known here alone, of
        the places of all rows' values.
    """
    if persons is None:
        return gather_over(columns, partial(_each, _value_counts), partial(_merged, _added_counts))
    found = gather_over(columns, partial(_each, _coded), partial(_merged, _joined_codes))
    return [_counts_of_persons(*own, persons) for own in found]


def _counts_of_persons(labels, codes, persons):
    counts = units_of_labels(codes, len(labels), persons)
    # Where a person counts one of many values, the others must not be there to be released.
    seen = np.flatnonzero(counts)
    return [labels[place] for place in seen], counts[seen]


def _each(function, columns):
    return [function(values) for values in columns]


def _merged(merge, parts):
    return [merge(own) for own in zip(*parts, strict=True)]


def _added_counts(parts):
    labels, places = _joined_labels(parts)
    counts = np.concatenate([own for _, own in parts])
    return labels, np.bincount(np.concatenate(places), counts, len(labels)).astype(np.int64)


def _joined_codes(parts):
    labels, places = _joined_labels(parts)
    # The last place is that of what is no label.
    places = (np.append(where, UNDECLARED).astype(code_type(labels)) for where in places)
    codes = [where[own] for (_, own), where in zip(parts, places, strict=True)]
    return labels, np.concatenate(codes)


def _joined_labels(parts):
    """Return the labels of all parts, sorted, and the places of each part's among them."""
    own = [labels for labels, _ in parts]
    if all(isinstance(labels, np.ndarray) for labels in own):
        found = np.unique(np.concatenate(own))
        return found, [np.searchsorted(found, labels) for labels in own]
    found = sorted(set(chain.from_iterable(own)), key=_order)
    at = {label: place for place, label in enumerate(found)}
    return found, [np.array([at[label] for label in labels], dtype=np.intp) for labels in own]


def _order(label):
    return isinstance(label, str), label


def _value_counts(values):
    labels, codes = _coded(values)
    return labels, units_of_labels(codes, len(labels), None)


def _coded(values):
    """Return the values of rows that can be categories, sorted, and the place of each row's.

    Numbers are an array, others a list.
    """
    if values.dtype.kind in "biuf" and values.dtype.itemsize <= 8:
        with np.errstate(all="ignore"):
            found, codes = np.unique(values.astype(np.float64), return_inverse=True)
            known = np.abs(found) < INTEGERS_APART
        labels = found[known]
        places = np.where(known, np.cumsum(known) - 1, UNDECLARED)
    else:
        found = [canonical_label(value) for value in values]
        labels = sorted(set(found) - {None}, key=_order)
        at = {label: place for place, label in enumerate(labels)}
        places = np.array([at.get(label, UNDECLARED) for label in found], int)
        codes = slice(None)
    return labels, places.astype(code_type(labels))[codes]


def _released_labels(labels):
    """Return released labels as an array whose type says nothing of those that were not."""
    if labels:
        return labels_array([canonical_label(label) for label in labels])
    return np.empty(0, dtype=object)
