"""The steps of a pipeline, however they are nested."""

import re
import sys
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp._data._forms import UNKNOWN_FORM, TableForm
from skdp.pipeline._containers import check_container, check_joined_names
from skdp.pipeline._forms import joined_form, output_form
from skdp.pipeline._functions import has_bounded_domain
from skdp.pipeline._instances import (
    gives_numbers,
    infers_types,
    of_skdp,
    raw_callbacks,
    step_message,
    with_params,
)
from skdp.pipeline._kinds import held, is_private, is_row_wise, judge_step, sparsity
from skdp.pipeline._known import (
    ACCEPTED,
    CALLBACKS,
    COLUMNS,
    DENSITY,
    FRAMES,
    MEMORY,
    SELECTOR,
    find_entry,
    is_skrub_container,
    join_names,
    selects_by_values,
)
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue
from skdp.utils._warnings import warn_user

REMAINDER = "the remaining columns"


@dataclass(frozen=True, kw_only=True)
class Place(FrozenValue):
    """The location of an estimator in a pipeline, and the table that it receives.

    Parameters
    ----------
    name : str
        Name, as in `set_params`: ``"preparation__scale"``; "" for a single estimator.
    columns : str, default=""
        Description of the columns that it receives from a `ColumnTransformer`.
    before : tuple of str
        The names of what is fitted before it on the way to it, in order; the last one is that
        of the step, or of several side by side, whose output it is fitted to.
    fits : int or None, default=1
        Number of its fits in one fit of the whole, None if it depends on the table or is unknown.
    form : TableForm, default=UNKNOWN_FORM
        Public information on the table that it is fitted to.
    by_person : bool, default=False
        True if the whole is charged by person, so that the number of rows is private.
    is_series : bool, default=False
        True if its column is selected without a list, and so is a one-dimensional array.
    """

    name: str
    columns: str = ""
    before: tuple = ()
    fits: int | None = 1
    form: TableForm = UNKNOWN_FORM
    by_person: bool = False
    is_series: bool = False

    @property
    def n_features(self):
        """Number of columns that it is fitted to, None if unknown."""
        return self.form.n_columns

    def inside(self, part, **given):
        """Return the place of a part of what stands here."""
        return replace(self, name=join_names(self.name, part), **given)

    def choice(self, *part, by, advice):
        """Return a step for what a container learns from the table."""
        name = join_names(self.name, *part)
        return Step(name=name, estimator=by, kind="learns", advice=advice, fits=self.fits)


@dataclass(frozen=True, kw_only=True)
class Step(Place):
    """One step of a pipeline, with nothing nested in it.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
    kind : str
        Kind of the step, see `step_kind`.
    advice : str, default=""
        Remedy, if the kind is not accepted.
    **place
        Fields of `Place`.
    """

    estimator: object
    kind: str
    advice: str = ""

    @property
    def params(self):
        """The parameters of the estimator itself."""
        return self.estimator.get_params(deep=False)

    @property
    def title(self):
        """The name, or the class of a single estimator."""
        return self.name or type(self.estimator).__name__

    @property
    def hides_number_of_rows(self):
        """True if the step is private and the number of rows is private in its guarantee."""
        if self.kind != "private":
            return False
        terms = getattr(self.params["accountant"], "config", None)
        count = self.params.get("count")
        is_noisy = isinstance(count, str) and count == "noisy"
        return self.by_person or getattr(terms, "unit", None) == "person" or is_noisy

    def parameter(self, name):
        """Return the name by which `set_params` of the whole knows a parameter of the step."""
        return join_names(self.name, name)

    def fitted_in(self, model):
        """Return the fitted estimator of this step in a fitted model."""
        for part in filter(None, self.name.split("__")):
            # A ColumnTransformer fits clones of its parameters, and none for no columns.
            fitted = getattr(model, "named_transformers_", {})
            if is_skrub_container(model) and hasattr(model, "transformer_"):
                fitted = {"transformer": model.transformer_}
            model = (model.get_params() | fitted)[part]
        return model

    def holds(self, other):
        """Return True if another step stands in this one."""
        return other is not self and other.name.startswith(self.name and f"{self.name}__")


class Walk:
    """Result of a walk through a pipeline.

    Attributes
    ----------
    steps : list of Step
        In the order in which they are fitted.
    refusals : list of (Step, Exception)
        Containers whose fit would raise for their parameters, with the error.
    """

    def __init__(self):
        self.steps = []
        self.refusals = []

    def add_choice(self, place, *part, by, advice):
        """Add a step for what the container at a place learns from the table."""
        self.steps.append(place.choice(*part, by=by, advice=advice))

    def check(self, container, place, check, *arguments):
        """Note what a check of a container raises."""
        try:
            check(container, *arguments)
        except (ValueError, TypeError) as error:
            step = Step(estimator=container, kind="container", **vars(place))
            self.refusals.append((step, error))


def find_steps(pipe, n_features=None, prefix="", before=(), form=UNKNOWN_FORM, by_person=False):
    """Return the steps of a pipeline in the order in which they are fitted.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
    n_features : int, default=None
        The columns of the table.
    prefix : str, default=""
        What the names begin with.
    before : tuple of str, default=()
        The names of what is fitted before it, see `Step`.
    form : TableForm, default=UNKNOWN_FORM
        What else is known of the table.
    by_person : bool, default=False
        Whether all of it is charged by person, whatever accountants its steps have now.

    Returns
    -------
    list of Step
        What a container itself computes from the table, or does in ways that were not
        verified, is a step too, named after the parameter that makes it do so.

    Raises
    ------
    ValueError
        If `n_features` is no positive integer, or a step's columns are not in its table.
    """
    if n_features is not None:
        n_features = check_integer(n_features, "n_features", 1)
        form = replace(form, n_columns=n_features)
    return walk_through(pipe, prefix, before, form, by_person).steps


def walk_through(pipe, prefix="", before=(), form=UNKNOWN_FORM, by_person=False):
    """Return the `Walk` through a pipeline; see `find_steps`."""
    found = Walk()
    place = Place(name=prefix, before=before, form=form, by_person=by_person)
    _walk(pipe, place, found)
    found.steps = _with_private_number_of_rows(found.steps)
    return found


def _with_private_number_of_rows(steps):
    """Return steps with the kind "not_row_wise" of those that would reveal the number of rows.

    A last bit of other persons' rows, which depends on how many rows one person has, is a whole
    unit of theirs behind a bin, a threshold or a clip.
    """
    behind = {name for step in steps if step.hides_number_of_rows for name in step.before}
    learns_nothing = ("stateless", "declared", "frozen")
    return [
        replace(step, kind="not_row_wise")
        if step.kind in learns_nothing and step.name in behind and not is_row_wise(step.estimator)
        else step
        for step in steps
    ]


def _walk(estimator, place, found):
    """Add the steps that stand at a place to a `Walk`.

    Returns
    -------
    Place
        What the next step is given. The last name in its `before` is that of what makes its
        whole table.
    """
    for callback in raw_callbacks(estimator):
        found.add_choice(place, "callbacks", by=callback, advice=CALLBACKS)
    kind, advice = judge_step(estimator)
    if kind != "container":
        step = Step(estimator=estimator, kind=kind, advice=advice, **vars(place))
        found.steps += [step, *_refused_by_search(step)]
        form = output_form(estimator, place.form)
        if place.fits is None and place.n_features is None:
            # It may get no column, and then makes none.
            form = form.with_columns(None)
        before = (*place.before, place.name)
        return replace(place, before=before, form=form, is_series=False)
    if isinstance(estimator, Pipeline):
        return _walk_pipeline(estimator, place, found)
    if is_skrub_container(estimator):
        return _walk_skrub_container(estimator, place, found)
    return _walk_side_by_side(estimator, place, found)


def _walk_pipeline(pipe, place, found):
    """Do what `_walk` does for a `Pipeline`."""
    # A release that a memory makes again tells that no row has changed.
    remembers = pipe.memory is not None
    if remembers:
        found.add_choice(place, "memory", by="memory", advice=MEMORY)
    found.check(pipe, place, check_container)
    fits = None if remembers else place.fits
    after = place
    for part, inner in pipe.steps:
        given = {"before": after.before, "form": after.form, "is_series": after.is_series}
        after = _walk(inner, place.inside(part, **given, fits=fits), found)
    return after


def _walk_side_by_side(container, place, found):
    """Do what `_walk` does for a `FeatureUnion` or a `ColumnTransformer`."""
    threshold = None
    if isinstance(container, FeatureUnion):
        parts = [(inner, place.inside(part)) for part, inner in container.transformer_list]
    else:
        threshold = container.sparse_threshold
        parts = list(_of_columns(container, place))
        for part, _, columns in container.transformers:
            if _is_by_values(columns, place.before):
                found.add_choice(place, part, "columns", by=columns, advice=COLUMNS)
    # The frame that is made of the parts may take its types from values.
    if infers_types(container):
        found.add_choice(place, "set_output", by="set_output", advice=FRAMES)
    first = len(found.steps)
    names = [inside.name.rpartition("__")[2] for _, inside in parts]
    found.check(container, place, check_container)
    outputs = [_walk(inner, inside, found) for inner, inside in parts]
    inner_steps = found.steps[first:]
    if threshold is not None and _density_decides(container, place, inner_steps):
        found.add_choice(place, "sparse_threshold", by=threshold, advice=DENSITY)
    forms = [output.form for output in outputs]
    found.check(container, place, check_joined_names, names, forms)
    return replace(
        place,
        before=(*place.before, *(step.name for step in inner_steps), place.name),
        form=joined_form(container, place.form, names, forms, threshold),
        is_series=False,
    )


def _walk_skrub_container(container, place, found):
    """Do what `_walk` does for an `ApplyToCols` or `ApplyToFrame` of skrub."""
    cols = container.cols
    if selects_by_values(cols) or selects_by_values(getattr(container, "exclude_cols", None)):
        found.add_choice(place, "cols", by=cols, advice=SELECTOR)
    # It tells its transformer to make a frame.
    if not gives_numbers(container.transformer):
        found.add_choice(place, "set_output", by="set_output", advice=FRAMES)
    # A selector may select nothing. Versions of skrub that have ApplyToFrame fit a clone for each
    # column in ApplyToCols.
    is_sure = isinstance(cols, str | list | tuple) or type(cols).__name__ in ("All", "Cols")
    is_by_column = hasattr(sys.modules.get("skrub"), "ApplyToFrame")
    if type(container).__name__ == "ApplyToCols" and is_by_column:
        is_sure = False
    inside = place.inside(
        "transformer", columns=str(cols), fits=place.fits if is_sure else None, form=UNKNOWN_FORM
    )
    first = len(found.steps)
    _walk(container.transformer, inside, found)
    before = (*place.before, *(step.name for step in found.steps[first:]), place.name)
    return replace(place, before=before, form=UNKNOWN_FORM)


def with_dense_columns(pipe, public_steps=()):
    """Return a clone whose column transformers make dense tables where density would decide.

    At scikit-learn's default `sparse_threshold` a `ColumnTransformer` with a part that may be
    sparse publishes whether an exact count of stored entries is above a limit. With 0 its table
    is dense whatever the rows are. A threshold that was set, or is named in `public_steps`, stays.

    Parameters
    ----------
    pipe : estimator
    public_steps : sequence of str, default=()

    Returns
    -------
    estimator
    """
    default = signature(ColumnTransformer).parameters["sparse_threshold"].default
    names = [
        step.name
        for step in find_steps(pipe)
        if step.name.rpartition("__")[2] == "sparse_threshold"
        and type(step.estimator) is float
        and step.estimator == default
        and step.name not in public_steps
    ]
    return clone(pipe).set_params(**dict.fromkeys(names, 0)) if names else pipe


def steps_of_search(step):
    """Return the steps of what a private search fits, one list a candidate; of others nothing."""
    search = step.estimator
    if step.kind != "private" or not (of_skdp(search) and hasattr(search, "public_steps")):
        return []
    name = join_names(step.name, "estimator")
    every = ({}, *search._candidate_params())
    tried = (with_params(search.estimator, params) for params in every)
    by_person = step.hides_number_of_rows
    return [find_steps(each, None, name, step.before, by_person=by_person) for each in tried]


def _refused_by_search(step):
    """Return the inner steps that a private search refuses; its cost covers private ones."""
    refused = {}
    for inside in steps_of_search(step):
        public = [join_names(step.name, "estimator", part) for part in step.estimator.public_steps]
        refused |= {part.name: part for part in unaccepted(inside, public)}
    return list(refused.values())


def unaccepted(steps, public_steps=()):
    """Return the steps that learn from data in a way that no budget pays for."""
    names = {step.name for step in steps} | {step.title for step in steps}
    unknown = [name for name in public_steps if name not in names]
    if unknown:
        raise ValueError(f"public_steps names {unknown[0]!r}, which is no step")

    def is_excused(step):
        # What is frozen is not fitted, and not charged again.
        is_charged = step.kind != "opaque" and holds_private(step.estimator)
        named = {step.name, step.title} & set(public_steps)
        return named and not (step.kind in ("local", "resamples") or is_charged)

    return [step for step in steps if step.kind not in ACCEPTED and not is_excused(step)]


def fails_by_values(step):
    """Return in words the values on which a step's fit would raise, with a remedy; "" for none."""
    part = step.estimator.estimator if step.kind == "frozen" else step.estimator
    return find_entry(part).fails_on(part)


def warn_of_values(steps):
    """Warn of steps behind private ones that raise on some values, when the charge is made.

    What the warning says follows from the steps alone. Columns that no private step has changed
    are tried before the charge.

    Parameters
    ----------
    steps : list of Step
    """
    private = {step.name for step in steps if step.kind == "private"}
    for step in steps:
        values = fails_by_values(step) if private.intersection(step.before) else ""
        if values and not _fails_for_large_numbers_alone(step.estimator):
            warn_user(
                step_message(
                    step.title,
                    f"its fit raises on {values}. It stands behind a private step, whose charge "
                    "stays then",
                )
            )


def _fails_for_large_numbers_alone(estimator):
    """Return True for functions such as `np.exp`, which numbers of usual sizes do not overflow."""
    is_function = type(estimator) is FunctionTransformer
    return is_function and not has_bounded_domain(estimator.func, largest=100.0)


def holds_private(estimator):
    """Return True if an estimator, or one that it holds at any depth, is charged."""
    return any(map(is_private, held(estimator)))


def _of_columns(transformer, place):
    """Yield each part of a ColumnTransformer and its place, the remainder last.

    What gets no column is not fitted; so may be what a selector, or a table of a width that is
    not known, leaves without.
    """
    used = set()
    width = place.n_features
    for part, inner, columns in transformer.transformers:
        try:
            places = chosen_places(columns, width, place.form)
        except ValueError as error:
            name = join_names(place.name, part)
            raise ValueError(step_message(name, f"columns: {error}")) from None
        used = None if used is None or places is None else used | set(places)
        n_chosen = None if places is None else len(places)
        # A table of unknown width certainly has only a first column.
        unsure = places is None and (callable(columns) or chosen_places(columns, 1) == [])
        fits = None if unsure else place.fits and int(n_chosen != 0)
        words = _column_words(columns)
        form = place.form.take(places)
        is_series = isinstance(columns, str | Integral)
        given = {"columns": words, "fits": fits, "form": form, "is_series": is_series}
        yield inner, place.inside(part, **given)
    # A name and a position may mean the same column.
    if used is None or len({isinstance(chosen, str) for chosen in used}) > 1:
        width = None
    left = None if width is None else max(width - len(used), 0)
    if left != 0 and transformer.remainder != "drop":
        fits = None if left is None else place.fits
        form = _rest_of(place.form, used, left)
        given = {"columns": REMAINDER, "fits": fits, "form": form, "is_series": False}
        yield transformer.remainder, place.inside("remainder", **given)


def _rest_of(form, used, n_left):
    """Return the form of the columns that are left, of which it may only be known how many."""
    if n_left is None or any(isinstance(chosen, str) for chosen in used):
        return form.with_columns(n_left)
    return form.take([j for j in range(form.n_columns) if j not in used])


def _is_by_values(columns, before):
    """Return True if columns are chosen by values, or by types that a step may have made."""
    if type(columns) is not make_column_selector:
        return callable(columns)
    by_type = columns.dtype_include is not None or columns.dtype_exclude is not None
    return by_type and bool(before)


def _density_decides(transformer, place, steps):
    """Return True if a ColumnTransformer may compare its density with its threshold.

    It keeps the answer as `sparse_output_`: an exact count of what is stored, above or below a
    limit. What is "kept" is so of a sparse matrix alone, which has no names of columns, and
    which one of the steps that read the table may be sure to refuse.
    """
    # With another table the remainder may have more columns, or none.
    made = {sparsity(part) for part in (transformer.remainder, *(s.estimator for s in steps))}
    named = any(are_names(columns) for _, _, columns in transformer.transformers)
    readers = [s for s in steps if s.before == place.before and s.columns != REMAINDER]
    refused = any(sparsity(step.estimator) == "refused" and step.fits for step in readers)
    may_keep_sparse = "kept" in made and not (named or refused)
    return transformer.sparse_threshold > 0 and ("made" in made or may_keep_sparse)


def are_names(columns):
    """Return True if columns are chosen by name, which only a data frame has."""
    if isinstance(columns, slice):
        return any(isinstance(end, str) for end in (columns.start, columns.stop))
    values = [] if callable(columns) else np.atleast_1d(np.asarray(columns, object))
    return any(isinstance(value, str) for value in values)


def chosen_places(columns, width, form=UNKNOWN_FORM):
    """Return the columns that are meant, each a name or a position, None if that is not known.

    A column that is chosen twice is there twice. Where the table's names are known, names become
    positions.

    Raises
    ------
    ValueError
        If a column is not in the table.
    """
    if callable(columns):
        return _selected(columns, form)
    if are_names(columns) and form.is_frame is False:
        raise ValueError(
            f"{_column_words(columns)} are chosen by name, but the table that reaches this step "
            'is an array without names: choose positions, or call set_output(transform="pandas") '
            "on the step before"
        )
    if isinstance(columns, slice):
        if are_names(columns):
            return None if form.names is None else _named_slice(columns, form.names)
        return None if width is None else list(range(*columns.indices(width)))
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    wrong = [v for v in values if not isinstance(v, str | Integral | np.bool_)]
    if wrong:
        raise ValueError(f"a column must be a name or a position, got {wrong[0]!r}")
    if values and all(isinstance(value, bool | np.bool_) for value in values):
        if width is not None and len(values) != width:
            raise ValueError(f"{len(values)} columns are chosen from, but there are {width}")
        return [place for place, chosen in enumerate(values) if chosen]
    if form.names is not None:
        values = [_position(v, form.names) if isinstance(v, str) else v for v in values]
    if width is None:
        return values
    beyond = [v for v in values if not isinstance(v, str) and not -width <= v < width]
    if beyond:
        raise ValueError(f"column {beyond[0]} is chosen, but there are {width} columns")
    return [value if isinstance(value, str) else value % width for value in values]


def _selected(selector, form):
    """Return the positions that a selector chooses by pattern and dtype, None if not known."""
    if type(selector) is not make_column_selector or form.names is None:
        return None
    if selector.dtype_include is None and selector.dtype_exclude is None:
        pattern = "" if selector.pattern is None else selector.pattern
        return [j for j, name in enumerate(form.names) if re.search(pattern, name)]
    if form.empty is None:
        return None
    return [form.names.index(name) for name in selector(form.empty)]


def _position(name, names):
    if name not in names:
        shown = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"column {name!r} is chosen, but the table has {shown}")
    return names.index(name)


def _named_slice(columns, names):
    """Return the positions of a slice of names, which includes its end."""
    start = 0 if columns.start is None else _position(columns.start, names)
    stop = len(names) if columns.stop is None else _position(columns.stop, names) + 1
    return list(range(start, stop))[:: columns.step]


def _column_words(columns):
    if callable(columns):
        return f"columns chosen by {getattr(columns, '__name__', type(columns).__name__)}"
    if isinstance(columns, slice):
        return f"columns {columns.start}:{columns.stop}"
    values = [columns] if np.ndim(columns) == 0 else list(columns)
    return "columns " + ", ".join(map(str, values[:6])) + (", ..." if len(values) > 6 else "")
