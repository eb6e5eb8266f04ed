"""The plan of a fit to a table of which the shape, or the columns, are not known yet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np

from skdp.utils._values import FrozenValue

# Shapes (rows, columns) at which a plan is made where the table's is not known.
SHAPES = ((2_000, 8), (100_000, 4), (2_000, 1), (60, 100))
# Number of rows with which widths that parameters mention are tried: noise is small beside it.
MANY_ROWS = 100_000
# Widths and numbers of rows that parameters mention beyond these are not tried.
MAX_WIDTH = 10_000
MAX_ROWS = 10**7


@dataclass(frozen=True, kw_only=True)
class UnknownShapePlan(FrozenValue):
    """The plan of a fit whose table's shape is not known: its parameters were checked.

    Parameters
    ----------
    name : str
        The mechanism's name.
    event : Event
        It holds for every shape: it is the (epsilon, delta) of the guarantee itself.
    epsilon, delta : float
        The guarantee's.
    by_person : bool
        True if the unit of the release may be a person.
    sparse_output : bool
        True if the transformed table is sparse.
    """

    name: str
    event: object
    epsilon: float
    delta: float
    by_person: bool
    sparse_output: bool


def plan_unknown_shape(make_plan, params, shape, guarantee):
    """Return a plan for a table whose number of rows or columns is None.

    Shapes are tried until one is accepted. A parameter that is wrong whatever the table is is
    refused at every one of them. The shapes include the sizes that parameters mention, so that
    a right parameter is accepted at one.

    Parameters
    ----------
    make_plan : callable
        Maps a `TableShape` without None to a plan.
    params : dict of str to object
        The estimator's parameters.
    shape : TableShape
        What is known.
    guarantee : Guarantee

    Returns
    -------
    UnknownShapePlan

    Raises
    ------
    ValueError
        If a parameter is refused at every shape.
    """
    refusal = None
    for tried in _possible_shapes(params, shape):
        try:
            plan = make_plan(tried)
        except ValueError as error:
            # The first shape has as many columns as the parameters mention, so what is said of
            # it fits best.
            refusal = refusal or error
            continue
        return UnknownShapePlan(
            name=getattr(plan, "name", ""),
            event=guarantee.per_row.event,
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            by_person=getattr(plan, "by_person", False),
            sparse_output=getattr(plan, "sparse_output", False),
        )
    raise refusal


def _possible_shapes(params, shape):
    """Yield shapes that a table may have, those that the parameters mention first."""
    lengths, integers = sizes_in(params)
    widths = [n for n in lengths if n <= MAX_WIDTH]
    sizes = [(MANY_ROWS, n) for n in sorted(widths, reverse=True)]
    sizes += SHAPES
    # A batch has no more rows than the table, components are no more than columns, and a column
    # that is named by its position is there.
    rows = [n for n in integers if 2_000 < n <= MAX_ROWS]
    columns = [n + 1 for n in integers if 0 < n < MAX_WIDTH]
    sizes += [(MANY_ROWS, n) for n in columns]
    sizes += [(n, d) for n in rows for d in (8, *widths, *columns)]
    for n_rows, n_columns in dict.fromkeys(sizes):
        sized = replace(
            shape,
            n_rows=n_rows if shape.n_rows is None else shape.n_rows,
            n_columns=n_columns if shape.n_columns is None else shape.n_columns,
        )
        if shape.n_columns is not None:
            yield sized
            continue
        names = names_in(params, n_columns)
        yield replace(sized, names=names, kinds=None)
        for kinds in kinds_of_bounds(params.get("bounds"), names):
            yield replace(sized, names=names, kinds=kinds)


def sizes_in(params):
    """Return the lengths of lists in parameters, and the integers in them."""
    lengths = {}
    integers = {}
    values = [(value, 0) for value in params.values()]
    while values:
        value, depth = values.pop()
        if isinstance(value, bool | np.bool_ | str | bytes):
            continue
        if isinstance(value, Integral):
            integers[abs(int(value))] = True
        elif isinstance(value, Mapping):
            lengths[len(value)] = True
            values += [(part, depth + 1) for part in value] if depth < 2 else []
        elif isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            lengths[len(value)] = True
            values += [(part, depth + 1) for part in value] if depth < 2 else []
    return [n for n in lengths if n], list(integers)


def kinds_of_bounds(bounds, names):
    """Yield the kinds that columns may have whose declared bounds are dates or durations.

    Parameters
    ----------
    bounds : object
        An estimator's parameter.
    names : sequence of str or None
        The columns' names.

    Yields
    ------
    list of str
        One kind a column, nothing where all bounds are numbers.
    """
    if not isinstance(bounds, Mapping):
        by_column = {j: bounds for j in range(len(names))}
    else:
        by_column = {j: bounds.get(j, bounds.get(name)) for j, name in enumerate(names)}
    others = {j for j, ends in by_column.items() if _are_no_numbers(ends)}
    for kind in ("date", "duration") if others else ():
        yield [kind if j in others else "object" for j in range(len(names))]


def _are_no_numbers(ends):
    """Return True if the ends of a range are dates or durations."""
    if not isinstance(ends, list | tuple) or len(ends) != 2:
        return False
    return any(end is not None and not isinstance(end, Real) and np.ndim(end) == 0 for end in ends)


def names_in(params, n_features):
    """Return names for columns of which no table was seen: those that parameters mention.

    They stand where no parameter names a column by its position.

    Parameters
    ----------
    params : dict of str to object
        An estimator's.
    n_features : int

    Returns
    -------
    list of str or None
    """
    keys = [key for _, key in columns_named(params)]
    named = iter(dict.fromkeys(key for key in keys if isinstance(key, str)))
    return [None if j in keys else next(named, None) for j in range(n_features)]


def columns_named(params):
    """Yield the columns that parameters name, each with its parameter.

    Parameters
    ----------
    params : dict of str to object
        An estimator's.

    Yields
    ------
    parameter : str
    column : str or int
        A name or a position.
    """
    for name in ("bounds", "categories", "edges", "monotonic_cst"):
        value = params.get(name)
        keys = value if isinstance(value, Mapping) else ()
        yield from ((name, key) for key in keys if isinstance(key, str | Integral))
    pairs = params.get("interactions")
    for pair in pairs if isinstance(pairs, list) else ():
        keys = pair if isinstance(pair, list | tuple | np.ndarray) else ()
        yield from (("interactions", key) for key in keys if isinstance(key, str | Integral))
