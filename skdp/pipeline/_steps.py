"""The steps of a pipeline, whatever is nested in what."""

from dataclasses import dataclass, replace

import joblib
import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp.pipeline._functions import is_plain
from skdp.pipeline._instances import infers_types, is_changed, is_estimator, of_skdp
from skdp.pipeline._kinds import ACCEPTED, is_private, step_kind
from skdp.pipeline._widths import density_decides, output_width
from skdp.utils._validation import check_integer

STEPS = ("steps", "transformer_list", "transformers")
PLAIN = {
    *("n_jobs", "verbose", "sparse_threshold", "transformer_weights", "transform_input"),
    *("verbose_feature_names_out", "force_int_remainder_cols", "remainder"),
}


@dataclass(frozen=True)
class Fits:
    """A number of fits.

    Parameters
    ----------
    least : int, default=1
        That many, or more.
    exact : bool, default=True
        Whether it is never more.
    """

    least: int = 1
    exact: bool = True

    def __mul__(self, other):
        return Fits(self.least * other.least, self.exact and other.exact)


UNKNOWN = Fits(0, exact=False)


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
    fits : Fits, default=Fits()
        How often a fit of the whole fits it.
    """

    name: str
    estimator: object
    kind: str
    n_features: int | None
    columns: str = ""
    before: tuple = ()
    fits: Fits = Fits()

    @property
    def title(self):
        """The name, or the class of a single estimator."""
        return self.name or type(self.estimator).__name__

    def parameter(self, name):
        """Return the name by which `set_params` of the whole knows a parameter of the step."""
        return _join(self.name, name)

    def holds(self, other):
        """Say whether another step stands in this one."""
        return other is not self and other.name.startswith(self.name and f"{self.name}__")


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
        What a container itself computes from the table, or does in ways that were not
        verified, is a step too, named after the parameter that makes it do so.

    Raises
    ------
    ValueError
        If `n_features` is no positive integer, or too small for the columns that are chosen.
    """
    if n_features is not None:
        n_features = check_integer(n_features, "n_features", 1)
    return _find(pipe, prefix, n_features, "", ())[0]


def _join(*names):
    return "__".join(filter(None, names))


def _find(estimator, name, width, columns, before):
    """Return the steps, how many columns come out of them, and what was fitted before the next.

    The last name in the latter is that of what makes the next step's whole table.
    """
    kind = type(estimator) if _is_as_made(estimator) else None
    if kind is Pipeline:
        return _in_pipeline(estimator, name, width, columns, before)
    if kind is FeatureUnion:
        named = [(part, each, width, columns, Fits()) for part, each in estimator.transformer_list]
        found, out, before = _side_by_side(named, name, before)
        return _types_of_frames(estimator, name) + found, out, before
    if kind is ColumnTransformer:
        own = _choices_of_columns(estimator, name, width, before) + _types_of_frames(
            estimator, name
        )
        found, out, before = _side_by_side(_of_columns(estimator, width), name, before)
        return own + found, out, before
    step = Step(name, estimator, step_kind(estimator), width, columns, before)
    found = [step, *_refused_by_search(step)]
    return found, output_width(estimator, width), (*before, name)


def steps_of_search(step):
    """Return the steps of what a private search fits, one list a candidate; of others nothing."""
    search = step.estimator
    if step.kind != "private" or not (of_skdp(search) and hasattr(search, "public_steps")):
        return []
    tried = [
        clone(search.estimator).set_params(**clone(params, safe=False))
        for params in search._candidate_params()
    ]
    name = _join(step.name, "estimator")
    return [find_steps(each, None, name) for each in (search.estimator, *tried)]


def _refused_by_search(step):
    """Return what a private search would refuse; its own price covers what is private in it."""
    refused = {}
    for inside in steps_of_search(step):
        public = [_join(step.name, "estimator", part) for part in step.estimator.public_steps]
        refused |= {part.name: part for part in unaccepted(inside, public)}
    return list(refused.values())


def unaccepted(steps, public_steps=()):
    """Return the steps that learn from data in a way that no budget pays for."""
    names = {step.name for step in steps} | {step.title for step in steps}
    unknown = [name for name in public_steps if name not in names]
    if unknown:
        raise ValueError(f"public_steps names {unknown[0]!r}, which is no step")
    public = set(public_steps)
    return [
        step
        for step in steps
        if step.kind not in ACCEPTED
        and (
            step.kind == "local"
            or not {step.name, step.title} & public
            or holds_private(step.estimator)
        )
    ]


def holds_private(estimator):
    """Say whether a private estimator is among the parameters of an estimator, at any depth."""
    return is_estimator(estimator) and any(map(is_private, estimator.get_params().values()))


def _is_as_made(container):
    """Say whether a container has no methods of its own and all but its steps is plain data."""
    if type(container) not in (Pipeline, FeatureUnion, ColumnTransformer) or is_changed(container):
        return False
    params = vars(container)
    lists = [params[name] for name in STEPS if name in params]
    parts = [part for named in lists if type(named) in (list, tuple) for part in named]
    if not all(type(part) in (list, tuple) for part in lists + parts):
        return False
    # Every other one is a name, or chosen columns, between which stands an estimator.
    words = [word for part in parts for word in part[::2]]
    words += [value for name, value in params.items() if name in PLAIN]
    return all(is_plain(word) or callable(word) or is_estimator(word) for word in words)


def _in_pipeline(pipe, name, width, columns, before):
    found = []
    memory = pipe.memory
    if type(memory) not in (type(None), str, joblib.Memory) or is_changed(memory):
        found.append(Step(_join(name, "memory"), memory, "learns", None))
    for part, inner in pipe.steps:
        steps, width, before = _find(inner, _join(name, part), width, columns, before)
        if pipe.memory is not None and part != pipe.steps[-1][0]:
            # What it remembers it does not fit again.
            steps = [replace(step, fits=UNKNOWN) for step in steps]
        found += steps
    return found, width, before


def _side_by_side(named, name, before):
    found, widths = [], []
    for part, inner, width, columns, fits in named:
        steps, out, _ = _find(inner, _join(name, part), width, columns, before)
        found += [replace(step, fits=step.fits * fits) for step in steps]
        widths.append(out)
    after = (*before, *(step.name for step in found), name)
    return found, None if None in widths else sum(widths), after


def _of_columns(transformer, width):
    """Yield each part of a ColumnTransformer with its columns, the remainder last.

    What gets no column is not fitted; so may be what a selector, or a table of a width that is
    not known, leaves without.
    """
    used = set()
    for part, inner, columns in transformer.transformers:
        places = _places(columns, width)
        used = None if used is None or places is None else used | set(places)
        n_chosen = None if places is None else len(places)
        fits = UNKNOWN if callable(columns) else Fits(int(n_chosen != 0))
        yield part, inner, n_chosen, _column_words(columns), fits
    # A name and a position may mean the same column.
    if used is None or len({isinstance(place, str) for place in used}) > 1:
        width = None
    left = None if width is None else max(width - len(used), 0)
    if left != 0 and transformer.remainder != "drop":
        fits = UNKNOWN if left is None else Fits()
        yield "remainder", transformer.remainder, left, "the remaining columns", fits


def _is_by_values(columns, before):
    """Say whether columns are chosen by values, or by types that a step may have made of them."""
    if type(columns) is not make_column_selector or is_changed(columns):
        return callable(columns)
    by_type = columns.dtype_include is not None or columns.dtype_exclude is not None
    return by_type and bool(before)


def _choices_of_columns(transformer, name, width, before):
    """Return a step for each choice that is made by looking at the values of the table."""
    found = [
        Step(_join(name, part, "columns"), columns, "learns", None)
        for part, _, columns in transformer.transformers
        if _is_by_values(columns, before)
    ]
    if density_decides(transformer, width):
        threshold = transformer.sparse_threshold
        found.append(Step(_join(name, "sparse_threshold"), threshold, "learns", None))
    return found


def _types_of_frames(union, name):
    """Return a step if the frame that a union makes of its parts takes its types from values."""
    if not infers_types(union):
        return []
    return [Step(_join(name, "set_output"), "set_output", "learns", None)]


def _places(columns, width):
    """Return the columns that are meant, each a name or a position, None if that is not known.

    A column that is chosen twice is there twice.
    """
    if callable(columns):
        return None
    if isinstance(columns, slice):
        named = any(isinstance(end, str) for end in (columns.start, columns.stop))
        return None if named or width is None else list(range(*columns.indices(width)))
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    if values and all(isinstance(value, bool | np.bool_) for value in values):
        if width is not None and len(values) != width:
            raise ValueError(f"{len(values)} columns are chosen from, but there are {width}")
        return [place for place, chosen in enumerate(values) if chosen]
    if width is None:
        return values
    beyond = [v for v in values if not isinstance(v, str) and not -width <= v < width]
    if beyond:
        raise ValueError(f"column {beyond[0]} is chosen, but there are {width} columns")
    return [value if isinstance(value, str) else value % width for value in values]


def _column_words(columns):
    if callable(columns):
        return f"columns chosen by {getattr(columns, '__name__', type(columns).__name__)}"
    if isinstance(columns, slice):
        return f"columns {columns.start}:{columns.stop}"
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    return "columns " + ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
