"""Plans of fits to tables of unknown shape or unknown columns."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real

import numpy as np

from skdp.mechanisms._plan import Plan, plan_for

# Shapes (rows, columns) with which a plan is tried if the table's shape is unknown.
SHAPES = ((2_000, 8), (100_000, 4), (2_000, 1), (60, 100))
# Number of rows that is tried with widths from the parameters: large enough for the noise to be
# relatively small.
MANY_ROWS = 100_000
# Larger widths and numbers of rows from the parameters are not tried.
MAX_WIDTH = 10_000
MAX_ROWS = 10**7


def plan_unknown_shape(make_plan, params, shape, guarantee):
    """Return a plan for a table whose number of rows or columns is None.

    Shapes are tried until one is accepted. A parameter that is invalid for every table is refused
    for each of them. The shapes include all sizes that the parameters contain, so a valid
    parameter is accepted for one of them.

    Parameters
    ----------
    make_plan : callable
        ``make_plan(shape, guarantee)`` returns the plan for one unit and a shape without None.
    params : dict of str to object
        The estimator's parameters.
    shape : TableShape
        The known part of the shape.
    guarantee : Guarantee

    Returns
    -------
    Plan
        A plan without a `run`. Its event is the (epsilon, delta) of the guarantee, which holds for
        every shape.

    Raises
    ------
    ValueError
        If a parameter is refused for every shape.
    """
    first_error = None
    for possible_shape in _possible_shapes(params, shape):
        try:
            plan = plan_for(partial(make_plan, possible_shape), guarantee)
        except ValueError as error:
            # The first shape has the number of columns that the parameters suggest, so its error
            # is the most useful one.
            first_error = first_error or error
            continue
        return Plan(
            name=getattr(plan, "name", ""),
            event=guarantee.per_row.event,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            scale=None,
            sensitivity=None,
            by_person=getattr(plan, "by_person", False),
            sparse_output=getattr(plan, "sparse_output", False),
        )
    raise first_error


def holds_for_every_shape(plan):
    """Return True if `plan_unknown_shape` made the plan."""
    return isinstance(plan, Plan) and plan.run is None


def _possible_shapes(params, shape):
    """Yield possible shapes of the table, first those that the parameters suggest."""
    lengths, integers = sizes_in(params)
    widths = [n for n in lengths if n <= MAX_WIDTH]
    sizes = [(MANY_ROWS, n) for n in sorted(widths, reverse=True)]
    sizes += SHAPES
    # The table must have enough rows for a batch, enough columns for the components, and all
    # columns that are named by position.
    rows = [n for n in integers if 2_000 < n <= MAX_ROWS]
    columns = [n + 1 for n in integers if 0 < n < MAX_WIDTH]
    sizes += [(MANY_ROWS, n) for n in columns]
    sizes += [(n, d) for n in rows for d in (8, *widths, *columns)]
    for n_rows, n_columns in dict.fromkeys(sizes):
        if shape.n_rows is not None:
            n_rows = shape.n_rows
        if shape.n_columns is not None:
            n_columns = shape.n_columns
        sized = replace(shape, n_rows=n_rows, n_columns=n_columns)
        if shape.n_columns is not None:
            yield sized
            continue
        names = names_in(params, n_columns)
        yield replace(sized, names=names, kinds=None)
        for kinds in kinds_of_bounds(params.get("bounds"), names):
            yield replace(sized, names=names, kinds=kinds)


def sizes_in(params):
    """Return the lengths of all lists in the parameters, and all integers in them."""
    lengths = {}
    integers = {}
    # Values, with their depth of nesting. Sizes are nested no deeper than in lists of lists.
    values = [(value, 0) for value in params.values()]
    while values:
        value, depth = values.pop()
        if isinstance(value, bool | np.bool_ | str | bytes):
            continue
        is_array = isinstance(value, np.ndarray) and value.ndim
        if isinstance(value, Integral):
            integers[abs(int(value))] = True
        elif isinstance(value, Mapping | list | tuple) or is_array:
            lengths[len(value)] = True
            if depth < 2:
                values += [(item, depth + 1) for item in value]
    return [n for n in lengths if n], list(integers)


def kinds_of_bounds(bounds, names):
    """Yield possible kinds of the columns if declared bounds are dates or durations.

    Parameters
    ----------
    bounds : object
        Value of an estimator's parameter.
    names : sequence of str or None
        Names of the columns.

    Yields
    ------
    list of str
        The kind of each column. Nothing is yielded if all bounds are numbers.
    """
    if isinstance(bounds, Mapping):
        by_column = {j: bounds.get(j, bounds.get(name)) for j, name in enumerate(names)}
    else:
        by_column = {j: bounds for j in range(len(names))}
    time_columns = {j for j, pair in by_column.items() if _is_time_range(pair)}
    if time_columns:
        for kind in ("date", "duration"):
            kinds = ["object"] * len(names)
            for j in time_columns:
                kinds[j] = kind
            yield kinds


def _is_time_range(pair):
    """Return True if a (low, high) pair consists of dates or durations."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return False
    return any(end is not None and not isinstance(end, Real) and np.ndim(end) == 0 for end in pair)


def names_in(params, n_features):
    """Return possible column names of an unknown table: the names that parameters contain.

    Columns that a parameter names by a position have no name. If any number cannot be a position,
    all keys are column labels, as in a frame with the labels 5 and 3.

    Parameters
    ----------
    params : dict of str to object
        Parameters of an estimator.
    n_features : int

    Returns
    -------
    list of str or None, or of labels
    """
    keys = [key for _, key in columns_named(params)]
    if any(_is_label(key, n_features) for key in keys):
        labels = [*dict.fromkeys(keys)][:n_features]
        return labels + [None] * (n_features - len(labels))
    names = iter(dict.fromkeys(key for key in keys if isinstance(key, str)))
    names_of_columns = []
    for j in range(n_features):
        # A column that is named by its position has no other name in parameters.
        name = None
        if j not in keys:
            name = next(names, None)
        names_of_columns.append(name)
    return names_of_columns


def _is_label(key, n_features):
    """Return True if a key is neither a name nor a position in a table of this width."""
    if isinstance(key, str):
        return False
    return isinstance(key, bool) or not 0 <= key < n_features


def columns_named(params):
    """Yield the columns that parameters name, with the name of the parameter.

    Parameters
    ----------
    params : dict of str to object
        The parameters of an estimator.

    Yields
    ------
    parameter : str
    column : str or int
        A name or a position.
    """
    for name in ("bounds", "categories", "edges", "monotonic_cst", "decimals", "same_as"):
        if isinstance(params.get(name), Mapping):
            for key in params[name]:
                if isinstance(key, str | Integral):
                    yield name, key
    if isinstance(params.get("same_as"), Mapping):
        for source in params["same_as"].values():
            # An entry is the column that is copied, or that column and a dict of its values.
            if isinstance(source, tuple) and source:
                source = source[0]
            if isinstance(source, str | Integral):
                yield "same_as", source
    targets = params.get("target")
    for key in targets if isinstance(targets, list | tuple) else [targets]:
        if isinstance(key, str | Integral) and not isinstance(key, bool):
            yield "target", key
    for name in ("interactions", "workload", "forbidden"):
        if isinstance(params.get(name), list | tuple | Mapping):
            for columns in params[name]:
                if isinstance(columns, list | tuple | np.ndarray):
                    for key in columns:
                        if isinstance(key, str | Integral):
                            yield name, key
