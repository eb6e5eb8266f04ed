"""The steps of a pipeline, whatever is nested in what."""

from dataclasses import dataclass

import numpy as np
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp.pipeline._dry_run import output_width
from skdp.pipeline._kinds import step_kind

__all__ = ["Step", "find_steps"]


@dataclass(frozen=True)
class Step:
    """One step of a pipeline, with nothing nested in it.

    Parameters
    ----------
    name : str
        Its name, as in `set_params`: ``"preparation__scale"``; "" for a single estimator.
    estimator : estimator, "passthrough", "drop" or None
    kind : str
        As `step_kind` says.
    n_features : int or None
        How many columns it is fitted to, None if that is not known.
    columns : str, default=""
        In words, the columns that it is given by a `ColumnTransformer`.
    before : tuple of str
        The names of what is fitted before it on the way to it, in order; the last one is that
        of the step, or of several side by side, whose output it is fitted to.
    """

    name: str
    estimator: object
    kind: str
    n_features: int | None
    columns: str = ""
    before: tuple = ()

    @property
    def title(self):
        """The name, or the class of a single estimator."""
        return self.name or type(self.estimator).__name__


def find_steps(pipe, n_features=None, prefix=""):
    """Return the steps of a pipeline in the order in which they are fitted.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
    n_features : int, default=None
        The columns of the table.
    prefix : str, default=""
        What the names begin with.

    Returns
    -------
    list of Step
    """
    return _find(pipe, prefix, n_features, "", ())[0]


def _join(*names):
    return "__".join(filter(None, names))


def _find(estimator, name, width, columns, before):
    """Return the steps, how many columns come out of them, and what was fitted before the next.

    The last name in the latter is that of what makes the next step's whole table.
    """
    if isinstance(estimator, Pipeline):
        return _in_pipeline(estimator, name, width, columns, before)
    if isinstance(estimator, FeatureUnion):
        named = [(part, inner, width, columns) for part, inner in estimator.transformer_list]
        return _side_by_side(named, name, before)
    if isinstance(estimator, ColumnTransformer):
        found, out, before = _side_by_side(_of_columns(estimator, width), name, before)
        return _choices_of_columns(estimator, name) + found, out, before
    step = Step(name, estimator, step_kind(estimator), width, columns, before)
    return [step], output_width(estimator, width), (*before, name)


def _in_pipeline(pipe, name, width, columns, before):
    found = []
    for part, inner in pipe.steps:
        steps, width, before = _find(inner, _join(name, part), width, columns, before)
        found += steps
    return found, width, before


def _side_by_side(named, name, before):
    found, widths = [], []
    for part, inner, width, columns in named:
        steps, out, _ = _find(inner, _join(name, part), width, columns, before)
        found += steps
        widths.append(out)
    after = (*before, *(step.name for step in found), name)
    return found, None if None in widths else sum(widths), after


def _of_columns(transformer, width):
    """Yield each part of a ColumnTransformer with its columns, the remainder last."""
    used = set()
    for part, inner, columns in transformer.transformers:
        places = _places(columns, width)
        used = None if None in (used, places) else used | places
        yield part, inner, None if places is None else len(places), _column_words(columns)
    # A name and a position may mean the same column.
    if used is None or len({isinstance(place, str) for place in used}) > 1:
        width = None
    left = None if width is None else max(width - len(used), 0)
    if left != 0 and transformer.remainder != "drop":
        yield "remainder", transformer.remainder, left, "the remaining columns"


def _choices_of_columns(transformer, name):
    """Return a step for each function that sees the table and chooses columns of it."""
    return [
        Step(_join(name, part, "columns"), columns, "learns", None)
        for part, _, columns in transformer.transformers
        if callable(columns) and not isinstance(columns, make_column_selector)
    ]


def _places(columns, width):
    """Return the columns that are meant, as a set of names or of positions, None if unknown."""
    if callable(columns):
        return None
    if isinstance(columns, slice):
        named = any(isinstance(end, str) for end in (columns.start, columns.stop))
        if named or (width is None and (columns.stop is None or columns.stop < 0)):
            return None
        return set(range(*columns.indices(columns.stop if width is None else width)))
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    if values and all(isinstance(value, bool | np.bool_) for value in values):
        return {place for place, chosen in enumerate(values) if chosen}
    if width is None:
        return set(values)
    return {value if isinstance(value, str) else value % width for value in values}


def _column_words(columns):
    if callable(columns):
        return f"columns chosen by {getattr(columns, '__name__', type(columns).__name__)}"
    if isinstance(columns, slice):
        return f"columns {columns.start}:{columns.stop}"
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    return "columns " + ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
