"""The steps of a pipeline, whatever is nested in what."""

from dataclasses import dataclass

import numpy as np
from sklearn.compose import ColumnTransformer
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
        The names of the steps whose output it is fitted to, in order.
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


def find_steps(pipe, n_features=None):
    """Return the steps of a pipeline in the order in which they are fitted.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
    n_features : int, default=None
        The columns of the table.

    Returns
    -------
    list of Step
    """
    return _find(pipe, "", n_features, "", ())[0]


def _join(*names):
    return "__".join(filter(None, names))


def _find(estimator, name, width, columns, before):
    """Return the steps and the number of columns that come out of them."""
    if isinstance(estimator, Pipeline):
        return _in_pipeline(estimator, name, width, columns, before)
    if isinstance(estimator, FeatureUnion):
        named = [(part, inner, width, columns) for part, inner in estimator.transformer_list]
        return _side_by_side(named, name, before)
    if isinstance(estimator, ColumnTransformer):
        return _side_by_side(_of_columns(estimator, width), name, before)
    step = Step(name, estimator, step_kind(estimator), width, columns, before)
    return [step], output_width(estimator, width)


def _in_pipeline(pipe, name, width, columns, before):
    found = []
    for part, inner in pipe.steps:
        steps, width = _find(inner, _join(name, part), width, columns, before)
        found += steps
        before = (*before, *(step.name for step in steps))
    return found, width


def _side_by_side(named, name, before):
    found, widths = [], []
    for part, inner, width, columns in named:
        steps, out = _find(inner, _join(name, part), width, columns, before)
        found += steps
        widths.append(out)
    return found, None if None in widths else sum(widths)


def _of_columns(transformer, width):
    """Yield each part of a ColumnTransformer with its columns, the remainder last."""
    used = []
    for part, inner, columns in transformer.transformers:
        count = _count(columns, width)
        used.append(count)
        yield part, inner, count, _column_words(columns)
    left = None if None in (width, *used) else max(width - sum(used), 0)
    if left is None or left > 0:
        yield "remainder", transformer.remainder, left, "the remaining columns"


def _count(columns, width):
    if callable(columns):
        return None
    if isinstance(columns, str) or np.ndim(columns) == 0 and not isinstance(columns, slice):
        return 1
    if isinstance(columns, slice):
        whole = all(not isinstance(v, str) for v in (columns.start, columns.stop))
        return None if width is None or not whole else len(range(*columns.indices(width)))
    values = np.asarray(columns, dtype=object)
    booleans = all(isinstance(v, bool | np.bool_) for v in values)
    return int(sum(values)) if len(values) and booleans else len(values)


def _column_words(columns):
    if callable(columns):
        return f"columns chosen by {getattr(columns, '__name__', type(columns).__name__)}"
    if isinstance(columns, slice):
        return f"columns {columns.start}:{columns.stop}"
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    return "columns " + ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
