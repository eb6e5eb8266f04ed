"""Constraints on simulated rows: forbidden pairs of values, grids of values, and copied columns."""

import datetime
import numbers
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skdp._data._columns import column_entries
from skdp._data._errors import column_name
from skdp._data._frames import TIMES, objects
from skdp._data._labels import is_missing
from skdp.synthesis._table_form import MICROSECONDS_PER_DAY
from skdp.synthesis._values import placeholder
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue
from skdp.utils._warnings import warn_user

# Largest magnitude of a number of decimals.
MAX_DECIMALS = 15


@dataclass(frozen=True, kw_only=True, eq=False)
class ForbiddenPairs(FrozenValue):
    """Values of two columns that never occur in the same row.

    Parameters
    ----------
    columns : (int, int)
        Positions of the columns.
    values : list of (object, object)
        Pairs of values. A tuple (low, high) is a range of a numeric column, including both ends.
    """

    columns: tuple
    values: list

    def is_violated(self, first, second):
        """Return, for each row, whether its values in the two columns are forbidden."""
        violated = np.zeros(len(first), dtype=bool)
        for first_value, second_value in self.values:
            violated |= matches(first, first_value) & matches(second, second_value)
        return violated

    def excluded_groups(self, first, second):
        """Return a table of the pairs of groups in which all rows would be forbidden.

        Parameters
        ----------
        first, second : GroupedColumn
        """
        excluded = np.zeros((first.n_groups, second.n_groups), dtype=bool)
        for first_value, second_value in self.values:
            excluded |= np.outer(
                _groups_within(first, first_value), _groups_within(second, second_value)
            )
        return excluded


@dataclass(frozen=True, kw_only=True, eq=False)
class CopiedColumn(FrozenValue):
    """A column whose values are a function of another column's values.

    Parameters
    ----------
    source : int
        Position of the other column.
    mapping : dict or None
        Value for each value of the other column; None if they are equal.
    """

    source: int
    mapping: dict | None

    def values(self, values):
        """Return the values of the column; None for values without an entry in the mapping."""
        if self.mapping is None:
            return values
        mapping = self.mapping
        if values.dtype.kind in TIMES:
            # A date and the datetime of its midnight have different hashes.
            convert = np.datetime64 if values.dtype.kind == "M" else np.timedelta64
            mapping = {convert(key, "us").item(): value for key, value in mapping.items()}
            values = values.astype(f"{values.dtype.kind}8[us]")
        mapped = objects([mapping.get(value) for value in values.tolist()])
        is_number = all(isinstance(v, int | float) or v is None for v in self.mapping.values())
        if is_number:
            return mapped.astype(np.float64)
        return mapped


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredConstraints:
    """The constraints that an estimator's parameters declare, by the positions of columns.

    Parameters
    ----------
    steps : dict of int to float
        Steps of the grids on which values lie.
    copies : dict of int to CopiedColumn
    forbidden : list of ForbiddenPairs
    """

    steps: dict
    copies: dict
    forbidden: list


def column_position(key, names, n_columns, parameter):
    """Return the position of a column that a parameter names, or raise `ValueError`."""
    try:
        entries = column_entries({key: True}, names, n_columns, parameter)
    except TypeError:
        raise ValueError(f"{parameter}: {key!r} is not a name or position of a column") from None
    return entries.index(True)


def check_columns(value, names, n_columns, parameter):
    """Return the positions of one column or of a list of distinct columns; () for None."""
    if value is None:
        return ()
    keys = value
    if not isinstance(value, list | tuple):
        keys = [value]
    positions = tuple(column_position(key, names, n_columns, parameter) for key in keys)
    if len(set(positions)) < len(positions):
        raise ValueError(f"{parameter} names a column twice: {value!r}")
    return positions


def check_workload(workload, names, n_columns, max_columns=4):
    """Return the sorted positions of the columns of each declared table."""
    if workload is None:
        return ()
    if not isinstance(workload, list | tuple):
        raise ValueError(f"workload must be a list of tuples of columns, got {workload!r}")
    subsets = []
    for entry in workload:
        if not isinstance(entry, list | tuple):
            raise ValueError(f"each entry of workload must be a tuple of columns, got {entry!r}")
        subset = tuple(sorted(check_columns(entry, names, n_columns, "workload")))
        if not 2 <= len(subset) <= max_columns:
            raise ValueError(
                f"workload: a table has two to {max_columns} columns, got {entry!r}; single "
                "columns are released in any case"
            )
        subsets.append(subset)
    return tuple(dict.fromkeys(subsets))


def check_decimals(decimals, names, n_columns):
    """Return the grid step of each column that `decimals` names, by position."""
    if decimals is None:
        return {}
    if not isinstance(decimals, Mapping):
        raise ValueError(f"decimals must be a dict of column to int, got {decimals!r}")
    entries = column_entries(decimals, names, n_columns, "decimals")
    steps = {}
    for j, entry in enumerate(entries):
        if entry is not None:
            n_decimals = check_integer(entry, "decimals", -MAX_DECIMALS, MAX_DECIMALS)
            steps[j] = float(f"1e{-n_decimals}")
    return steps


def check_copies(same_as, names, n_columns):
    """Return the `CopiedColumn` of each column that `same_as` names, by position."""
    if same_as is None:
        return {}
    if not isinstance(same_as, Mapping):
        raise ValueError(f"same_as must be a dict of column to column, got {same_as!r}")
    copies = {}
    for j, entry in enumerate(column_entries(same_as, names, n_columns, "same_as")):
        if entry is None:
            continue
        mapping = None
        if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], Mapping):
            entry, mapping = entry[0], _without_missing(entry[1])
        source = column_position(entry, names, n_columns, "same_as")
        copies[j] = CopiedColumn(source=source, mapping=mapping)
    for j, copied in copies.items():
        if copied.source in copies:
            raise ValueError(
                f"same_as: column {j} is a copy of column {copied.source}, which is in same_as "
                "as well; name a column that is not in same_as"
            )
    return copies


def check_forbidden(forbidden, names, n_columns, copies):
    """Return a list of `ForbiddenPairs`, or raise `ValueError`."""
    if forbidden is None:
        return []
    if not isinstance(forbidden, Mapping):
        raise ValueError(
            "forbidden must be a dict of (column, column) to a list of (value, value), got "
            f"{forbidden!r}"
        )
    checked = []
    for columns, values in forbidden.items():
        positions = check_columns(columns, names, n_columns, "forbidden")
        if len(positions) != 2:
            raise ValueError(f"forbidden: a key must be a pair of columns, got {columns!r}")
        if set(positions) & set(copies):
            raise ValueError(f"forbidden: {columns!r} has a column in same_as; name its source")
        # An iterator could be read only once.
        is_list = isinstance(values, list | tuple | set | frozenset)
        if not is_list or not all(isinstance(v, list | tuple) and len(v) == 2 for v in values):
            raise ValueError(
                f"forbidden: the values of {columns!r} must be a list of pairs (value, value), got "
                f"{values!r}"
            )
        pairs = [tuple(map(_as_none, pair)) for pair in values]
        checked.append(ForbiddenPairs(columns=positions, values=pairs))
    return checked


def _without_missing(mapping):
    """Return a dict with None in place of all missing keys and values, such as pandas' NA."""
    return {_as_none(key): _as_none(value) for key, value in mapping.items()}


def _as_none(value):
    """Return None for a missing value, a tuple with such values replaced, or the value itself."""
    if isinstance(value, tuple):
        return tuple(map(_as_none, value))
    if is_missing(value):
        return None
    return value


def check_constraint_kinds(constraints, columns, names):
    """Raise `ValueError` for constraints that do not suit the kinds of their columns.

    Parameters
    ----------
    constraints : DeclaredConstraints
    columns : list of Column
    names : ndarray of str or None
    """
    for j in constraints.steps:
        if columns[j].is_categorical:
            raise ValueError(
                f"decimals: {column_name(j, names)} is not a column of numbers or dates"
            )
    for pairs in constraints.forbidden:
        for pair in pairs.values:
            for j, value in zip(pairs.columns, pair, strict=True):
                if not _is_value_of(columns[j], value):
                    raise ValueError(
                        f"forbidden: {value!r} is not a value of {column_name(j, names)}: write "
                        "one of its categories, a number, a date, or a range (low, high)"
                    )
        first, second = (_all_declared(columns[j]) for j in pairs.columns)
        if first and second and all(_forbids(pairs, a, b) for a in first for b in second):
            described = " and ".join(column_name(j, names) for j in pairs.columns)
            raise ValueError(
                f"forbidden: all declared values of {described} are forbidden, so that no row "
                "could be drawn"
            )
    for copied in constraints.copies.values():
        source = column_name(copied.source, names)
        if copied.mapping is not None and not copied.mapping:
            raise ValueError(f"same_as: the dict for the values of {source} is empty")
        for key in copied.mapping or ():
            if isinstance(key, tuple) or not _is_value_of(columns[copied.source], key):
                raise ValueError(
                    f"same_as: {key!r} is not a value of {source}: the keys of the dict must be "
                    "its categories, numbers or dates, of the type that its values have"
                )


def _all_declared(column):
    """Return the declared categories, or the declared range of numbers; None if not declared."""
    if column.domain is None:
        return None
    if column.is_categorical:
        return column.domain.tolist()
    if column.kind == "number":
        return [tuple(column.domain)]
    return None


def _forbids(pairs, first, second):
    """Return True if two categories, or all numbers of a range, are forbidden together."""
    return any(_covers(a, first) and _covers(b, second) for a, b in pairs.values)


def _covers(value, declared):
    """Return True if a value, range or tuple of categories contains a category or a range."""
    if isinstance(declared, tuple):
        low, high = _ends(value)
        return low <= declared[0] and declared[1] <= high
    return declared in _options(value)


def warn_of_unmapped_copies(copies, grids, names):
    """Warn about copied columns that have a value for none of the values that can be drawn.

    Parameters
    ----------
    copies : dict of int to CopiedColumn
    grids : list of CategoryCells or NumericCells
        Released grids of the modeled columns.
    names : ndarray of str or None
    """
    for grid in grids:
        for j, copied in copies.items():
            if copied.source != grid.index or copied.mapping is None:
                continue
            name = column_name(j, names)
            source = column_name(copied.source, names)
            if not grid.is_categorical:
                if not any(_can_be_drawn(grid, key) for key in copied.mapping):
                    warn_user(
                        f"same_as: no key of the dict of {name} can be a drawn value of {source}, "
                        "so that all values of the drawn rows are missing: declare the decimals "
                        f"of {source}, and keys within its bounds"
                    )
            elif len(grid.categories) and not any(
                label in copied.mapping for label in grid.categories.tolist()
            ):
                warn_user(
                    f"same_as: the dict of {name} has none of the categories that were found in "
                    f"{source}, so that all values of the drawn rows are missing: write its keys "
                    "in the type of the column's values"
                )


def _can_be_drawn(grid, key):
    """Return True if a number, date or duration can be drawn as it is."""
    number = key
    if grid.kind != "number":
        convert = np.timedelta64
        if grid.kind == "date":
            convert = np.datetime64
        number = convert(key, "us").astype(np.int64) / MICROSECONDS_PER_DAY
    low, high = grid.bounds
    if not low <= number <= high:
        return False
    if (grid.atoms == number).any():
        return True
    if grid.step == 0.0:
        return False
    n_steps = float(number) / grid.step
    return abs(n_steps - round(n_steps)) < 1e-6


def _options(value):
    """Return the values in a tuple, or a single value, as a tuple."""
    if isinstance(value, tuple):
        return value
    return (value,)


def _ends(value):
    """Return the ends of a range; a single value is both ends."""
    if isinstance(value, tuple):
        return value
    return value, value


def _is_value_of(column, value):
    """Return True if a value, range or tuple of categories suits a column."""
    options = _options(value)
    if column.is_categorical:
        if column.domain is None:
            return True
        listed = [*column.domain.tolist(), placeholder(column.domain), None]
        return all(option in listed for option in options)
    if isinstance(value, tuple) and len(value) != 2:
        return False
    if column.kind == "number":
        are_numbers = all(isinstance(o, numbers.Real) and o == o for o in options)
        return are_numbers and options[0] <= options[-1]
    types = (np.timedelta64, datetime.timedelta)
    convert = np.timedelta64
    if column.kind == "date":
        types = (np.datetime64, datetime.date, str)
        convert = np.datetime64
    try:
        if not all(isinstance(option, types) for option in options):
            return False
        times = [convert(option, "us") for option in options]
    except ValueError:
        return False
    # The comparison with NaT is False.
    return bool(times[0] <= times[-1])


def matches(values, value):
    """Return, for each value of a column, whether it equals a value or is in a range."""
    if values.dtype.kind == "O":
        options = _options(value)
        # Without the type, the array of no values would be one of floats.
        are_equal = [any(v == option for option in options) for v in values.tolist()]
        return np.array(are_equal, dtype=bool)
    low, high = _ends(value)
    if values.dtype.kind in "mM":
        convert = np.timedelta64
        if values.dtype.kind == "M":
            convert = np.datetime64
        low, high = convert(low, "us"), convert(high, "us")
    with np.errstate(invalid="ignore"):
        return (values >= low) & (values <= high)


def _groups_within(column, value):
    """Return, for each group, whether all of its possible cells match a value or range."""
    grid = column.grid
    if grid.is_categorical:
        is_within = np.append(matches(objects(grid.categories.tolist()), value), [False, False])
    elif grid.kind == "number":
        low, high = _ends(value)
        starts = grid.equal_edges[:-1]
        ends = grid.equal_edges[1:]
        if grid.has_value_cells:
            # The edges are half a step away from the values.
            starts = starts + 0.5 * grid.step
            ends = starts
        is_equal_within = (starts >= low) & (ends <= high)
        is_atom_within = (grid.atoms >= low) & (grid.atoms <= high)
        is_within = np.concatenate([is_equal_within, is_atom_within, [False]])
    else:
        is_within = np.zeros(grid.n_cells, dtype=bool)
    n_outside = np.bincount(
        column.groups[column.is_possible & ~is_within], minlength=column.n_groups
    )
    n_possible = np.bincount(column.groups[column.is_possible], minlength=column.n_groups)
    return (n_outside == 0) & (n_possible > 0)
