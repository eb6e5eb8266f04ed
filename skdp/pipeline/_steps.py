"""The steps of a pipeline, nested in any way."""

import re
import sys
from collections.abc import Collection
from dataclasses import dataclass, replace
from inspect import signature
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp._data._columns import has_length
from skdp._data._forms import UNKNOWN_FORM, TableForm
from skdp._tools._advice import CALLBACKS, COLUMNS, DENSITY, FRAMES, MEMORY, SELECTOR
from skdp._tools._entries import ACCEPTED
from skdp._tools._functions import has_non_finite_values
from skdp._tools._parts import raw_callbacks
from skdp._tools._registry import find_entry
from skdp._tools._step_conditions import selects_by_values
from skdp.pipeline._containers import check_container, check_joined_names, check_joined_times
from skdp.pipeline._forms import joined_form, output_form
from skdp.pipeline._instances import (
    check_parts,
    gives_numbers,
    infers_types,
    is_estimator,
    of_skdp,
    step_message,
    with_params,
)
from skdp.pipeline._kinds import held, is_private, judge_step, sparsity
from skdp.pipeline._known import (
    hides_number_of_rows,
    is_row_wise,
    is_skrub_container,
    join_names,
    selects_by_type,
)
from skdp.utils._documents import count_of
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
        Names of the steps whose outputs lead to it, in order. It receives the output of the last
        one, which may be a container of parallel steps.
    fits : int or None, default=1
        Number of its fits in one fit of the pipeline; None if that depends on the table or is
        unknown.
    form : TableForm, default=UNKNOWN_FORM
        Public information about the table to which it is fitted.
    by_person : bool, default=False
        True if the pipeline is charged by person, so the number of rows is private.
    """

    name: str
    columns: str = ""
    before: tuple = ()
    fits: int | None = 1
    form: TableForm = UNKNOWN_FORM
    by_person: bool = False

    @property
    def n_features(self):
        """Number of columns that the estimator receives; None if unknown."""
        return self.form.n_columns

    def inside(self, part, **changes):
        """Return the place of a nested part of the estimator at this place."""
        return replace(self, name=join_names(self.name, part), **changes)

    def choice(self, *part, by, advice):
        """Return a step that represents what a container itself learns from the table."""
        name = join_names(self.name, *part)
        return Step(name=name, estimator=by, kind="learns", advice=advice, fits=self.fits)


@dataclass(frozen=True, kw_only=True)
class Step(Place):
    """One step of a pipeline, without nested estimators.

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
        """The name of the step, or the class name of a single estimator."""
        return self.name or type(self.estimator).__name__

    @property
    def hides_number_of_rows(self):
        """True if the step is private and its guarantee treats the number of rows as private."""
        if self.kind != "private":
            return False
        return self.by_person or hides_number_of_rows(
            self.params["accountant"], self.params.get("count")
        )

    def parameter(self, name):
        """Return the name of a step's parameter in `set_params` of the pipeline."""
        return join_names(self.name, name)

    def fitted_in(self, model):
        """Return the fitted estimator of this step from a fitted model."""
        for part in filter(None, self.name.split("__")):
            # A ColumnTransformer fits clones of the parts in its parameters, except parts without
            # columns.
            fitted = getattr(model, "named_transformers_", {})
            if is_skrub_container(model) and hasattr(model, "transformer_"):
                fitted = {"transformer": model.transformer_}
            model = (model.get_params() | fitted)[part]
        return model

    def holds(self, other):
        """Return True if another step is nested in this one."""
        return other is not self and other.name.startswith(self.name and f"{self.name}__")


class Walk:
    """Result of a walk through a pipeline.

    Attributes
    ----------
    steps : list of Step
        In the order in which they are fitted.
    refusals : list of (Step, Exception)
        Containers whose fit would raise an error for a parameter, with the error.
    """

    def __init__(self):
        self.steps = []
        self.refusals = []

    def add_choice(self, place, *part, by, advice):
        """Add a step that represents what the container at a place learns from the table."""
        self.steps.append(place.choice(*part, by=by, advice=advice))

    def check(self, container, place, check, *arguments):
        """Store the error that a check of a container raises."""
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
        Number of columns of the table.
    prefix : str, default=""
        Prefix of the names.
    before : tuple of str, default=()
        Names of the steps that come before, as in `Place`.
    form : TableForm, default=UNKNOWN_FORM
        Further public information about the table.
    by_person : bool, default=False
        True if the pipeline is charged by person, regardless of the accountants of its steps.

    Returns
    -------
    list of Step
        A private search is followed by its inner steps that it refuses. If a container learns from
        the table through one of its parameters, or a parameter has a value of which this is not
        known, an additional step is named after the parameter.

    Raises
    ------
    ValueError
        If `n_features` is not a positive integer, or a step selects columns that its table lacks.
    """
    if n_features is not None:
        n_features = check_integer(n_features, "n_features", 1)
        form = replace(form, n_columns=n_features)
    return walk_through(pipe, prefix, before, form, by_person).steps


def walk_through(pipe, prefix="", before=(), form=UNKNOWN_FORM, by_person=False):
    """Return the `Walk` through a pipeline; see `find_steps`."""
    walk = Walk()
    place = Place(name=prefix, before=before, form=form, by_person=by_person)
    _walk(pipe, place, walk)
    walk.steps = _with_private_number_of_rows(walk.steps)
    return walk


def _with_private_number_of_rows(steps):
    """Return the steps; the kind of those that reveal the number of rows is "not_row_wise".

    If one person's number of rows changes the rounding of other rows, a later bin, threshold or
    clip can turn this difference into a change of all these rows.
    """
    behind = {name for step in steps if step.hides_number_of_rows for name in step.before}
    learns_nothing = ("stateless", "declared", "frozen")
    result = []
    for step in steps:
        is_behind = step.kind in learns_nothing and step.name in behind
        if is_behind and not is_row_wise(step.estimator):
            step = replace(step, kind="not_row_wise")
        result.append(step)
    return result


def _walk(estimator, place, walk):
    """Add the steps at a place to a `Walk`.

    Returns
    -------
    Place
        Place of the next step. The last name in its `before` is that of the step that returns its
        whole table.
    """
    try:
        check_parts(estimator)
    except ValueError as error:
        if not place.name:
            raise
        raise ValueError(step_message(place.name, error)) from None
    for callback in raw_callbacks(estimator):
        walk.add_choice(place, "callbacks", by=callback, advice=CALLBACKS)
    kind, advice = judge_step(estimator)
    if kind != "container":
        step = Step(estimator=estimator, kind=kind, advice=advice, **vars(place))
        walk.steps += [step, *_refused_by_search(step)]
        form = output_form(estimator, place.form)
        if place.fits is None and place.n_features is None:
            # Without input columns, the step has no output.
            form = form.with_columns(None)
        before = (*place.before, place.name)
        return replace(place, before=before, form=form)
    if isinstance(estimator, Pipeline):
        return _walk_pipeline(estimator, place, walk)
    if is_skrub_container(estimator):
        return _walk_skrub_container(estimator, place, walk)
    return _walk_side_by_side(estimator, place, walk)


def _walk_pipeline(pipe, place, walk):
    """Add the steps of a `Pipeline`, as `_walk` does."""
    # Repeating a release from `memory` would reveal that no row has changed.
    remembers = pipe.memory is not None
    if remembers:
        walk.add_choice(place, "memory", by="memory", advice=MEMORY)
    walk.check(pipe, place, check_container)
    fits = place.fits
    if remembers:
        fits = None
    after = place
    for part, inner in pipe.steps:
        inside = place.inside(part, before=after.before, form=after.form, fits=fits)
        after = _walk(inner, inside, walk)
    return after


def _walk_side_by_side(container, place, walk):
    """Add the steps of a `FeatureUnion` or a `ColumnTransformer`, as `_walk` does."""
    threshold = None
    if isinstance(container, FeatureUnion):
        parts = [(inner, place.inside(part)) for part, inner in container.transformer_list]
    else:
        threshold = container.sparse_threshold
        parts = list(_of_columns(container, place))
        for part, _, columns in container.transformers:
            if _is_by_values(columns, place.before):
                walk.add_choice(place, part, "columns", by=columns, advice=COLUMNS)
    # The dtypes of the joined frame may depend on values.
    if infers_types(container):
        walk.add_choice(place, "set_output", by="set_output", advice=FRAMES)
    first = len(walk.steps)
    names = [inside.name.rpartition("__")[2] for _, inside in parts]
    walk.check(container, place, check_container)
    outputs = [_walk(inner, inside, walk) for inner, inside in parts]
    inner_steps = walk.steps[first:]
    if threshold is not None and _density_decides(container, place, inner_steps):
        walk.add_choice(place, "sparse_threshold", by=threshold, advice=DENSITY)
    forms = [output.form for output in outputs]
    walk.check(container, place, check_joined_names, names, forms)
    walk.check(container, place, check_joined_times, forms)
    return replace(
        place,
        before=(*place.before, *(step.name for step in inner_steps), place.name),
        form=joined_form(container, place.form, names, forms, threshold),
    )


def _walk_skrub_container(container, place, walk):
    """Add the steps of skrub's `ApplyToCols` or `ApplyToFrame`, as `_walk` does."""
    cols = container.cols
    if selects_by_values(cols) or selects_by_values(getattr(container, "exclude_cols", None)):
        walk.add_choice(place, "cols", by=cols, advice=SELECTOR)
    # The container configures its transformer to return a frame.
    if not gives_numbers(container.transformer):
        walk.add_choice(place, "set_output", by="set_output", advice=FRAMES)
    # A selector may select no columns. In versions of skrub that have ApplyToFrame, ApplyToCols
    # fits one clone per column.
    is_sure = isinstance(cols, str | list | tuple) or type(cols).__name__ in ("All", "Cols")
    is_by_column = hasattr(sys.modules.get("skrub"), "ApplyToFrame")
    if type(container).__name__ == "ApplyToCols" and is_by_column:
        is_sure = False
    fits = None
    if is_sure:
        fits = place.fits
    inside = place.inside("transformer", columns=str(cols), fits=fits, form=UNKNOWN_FORM)
    first = len(walk.steps)
    _walk(container.transformer, inside, walk)
    before = (*place.before, *(step.name for step in walk.steps[first:]), place.name)
    return replace(place, before=before, form=UNKNOWN_FORM)


def with_dense_columns(pipe, public_steps=()):
    """Return a clone whose column transformers return dense tables where density would decide.

    With scikit-learn's default `sparse_threshold`, a `ColumnTransformer` with a part that may be
    sparse publishes whether an exact count of stored entries is above a limit. With 0, its output
    is always dense. A threshold that was set, or is named in `public_steps`, is not changed.

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
    if names:
        return clone(pipe).set_params(**dict.fromkeys(names, 0))
    return pipe


def steps_of_search(step):
    """Return one list of steps per candidate of a private search; empty for other estimators."""
    search = step.estimator
    if not _is_search(step):
        return []
    try:
        if not is_estimator(search.estimator):
            raise ValueError(f"estimator must be an estimator, got {search.estimator!r}")
        every = ({}, *search._candidate_params())
    except (TypeError, ValueError) as error:
        raise ValueError(step_message(step.title, error)) from error
    name = join_names(step.name, "estimator")
    tried = (with_params(search.estimator, params) for params in every)
    by_person = step.hides_number_of_rows
    return [
        find_steps(candidate, None, name, step.before, by_person=by_person) for candidate in tried
    ]


def _is_search(step):
    """Return True for a private search, which fits pipelines and declares public steps."""
    search = step.estimator
    return step.kind == "private" and of_skdp(search) and hasattr(search, "public_steps")


def _refused_by_search(step):
    """Return the inner steps that a private search refuses; its cost covers only private steps."""
    if not _is_search(step):
        return []
    candidates = steps_of_search(step)
    try:
        parts = check_step_names(step.estimator.public_steps)
    except ValueError as error:
        raise ValueError(step_message(step.title, error)) from error
    public = [join_names(step.name, "estimator", part) for part in parts]
    refused = {}
    for steps in candidates:
        refused |= {part.name: part for part in unaccepted(steps, public)}
    return list(refused.values())


def check_step_names(public_steps):
    """Return the names in `public_steps` as a tuple, or raise `ValueError`.

    An iterator is refused: it would be empty when the names are read a second time.
    """
    has_names = isinstance(public_steps, Collection) and has_length(public_steps)
    if not has_names or isinstance(public_steps, str | bytes):
        raise ValueError(f"public_steps must be a tuple of names of steps, got {public_steps!r}")
    for name in public_steps:
        if not isinstance(name, str):
            raise ValueError(f"public_steps contains {name!r}, which is not the name of a step")
    return tuple(public_steps)


def unaccepted(steps, public_steps=()):
    """Return the steps that learn from data without a charge."""
    public_steps = check_step_names(public_steps)
    names = {step.name for step in steps} | {step.title for step in steps}
    unknown = [name for name in public_steps if name not in names]
    if unknown:
        raise ValueError(f"public_steps contains {unknown[0]!r}, which is not the name of a step")

    def is_excused(step):
        """Return True if the user declares the step public, which a charged one must not be."""
        # Frozen estimators are not fitted again, and therefore not charged again.
        is_charged = step.kind != "opaque" and holds_private(step.estimator)
        named = {step.name, step.title} & set(public_steps)
        return named and not (step.kind in ("local", "resamples") or is_charged)

    return [step for step in steps if step.kind not in ACCEPTED and not is_excused(step)]


def fails_by_values(step):
    """Return a description of values for which a step's fit raises an error, with a remedy."""
    part = step.estimator
    if step.kind == "frozen":
        part = step.estimator.estimator
    return find_entry(part).fails_on(part)


def warn_of_values(steps):
    """Warn about steps after private steps if their fits raise errors for some values.

    The warning depends only on the steps. Columns that no private step changed are tested before
    the charge.

    Parameters
    ----------
    steps : list of Step
    """
    private = {step.name for step in steps if step.kind == "private"}
    for step in steps:
        values = ""
        if private.intersection(step.before):
            values = fails_by_values(step)
        if values and not _fails_for_large_numbers_alone(step.estimator):
            warn_user(
                step_message(
                    step.title,
                    f"its fit raises on {values}. It follows a private step, whose charge is not "
                    "refunded",
                )
            )


def _fails_for_large_numbers_alone(estimator):
    """Return True for functions such as `np.exp` that overflow only for large numbers."""
    is_function = type(estimator) is FunctionTransformer
    return is_function and not has_non_finite_values(estimator.func, largest=100.0)


def holds_private(estimator):
    """Return True if an estimator, or one nested in it at any depth, is charged."""
    return any(map(is_private, held(estimator)))


def _of_columns(transformer, place):
    """Yield each part of a ColumnTransformer with its place, the remainder last.

    A part without columns is not fitted. With a selector, or an unknown number of columns, it is
    unknown whether a part receives any columns.
    """
    selected = set()
    width = place.n_features
    for part, inner, columns in transformer.transformers:
        try:
            places = chosen_places(columns, width, place.form)
        except ValueError as error:
            name = join_names(place.name, part)
            raise ValueError(step_message(name, f"columns: {error}")) from None
        if selected is None or places is None:
            selected = None
        else:
            selected = selected | set(places)
        n_chosen = None
        if places is not None:
            n_chosen = len(places)
        # A table of unknown width has at least one column.
        unsure = places is None and (callable(columns) or chosen_places(columns, 1) == [])
        fits = None
        if not unsure:
            fits = place.fits and int(n_chosen != 0)
        words = _column_words(columns)
        form = place.form.take(places)
        yield inner, place.inside(part, columns=words, fits=fits, form=form)
    # A name and a position may refer to the same column.
    if selected is None or len({isinstance(chosen, str) for chosen in selected}) > 1:
        width = None
    n_remaining = None
    if width is not None:
        n_remaining = max(width - len(selected), 0)
    if n_remaining != 0 and transformer.remainder != "drop":
        fits = place.fits
        if n_remaining is None:
            fits = None
        form = _rest_of(place.form, selected, n_remaining)
        inside = place.inside("remainder", columns=REMAINDER, fits=fits, form=form)
        yield transformer.remainder, inside


def _rest_of(form, selected, n_left):
    """Return the form of the remaining columns, of which perhaps only the number is known."""
    if n_left is None or any(isinstance(column, str) for column in selected):
        return form.with_columns(n_left)
    return form.take([j for j in range(form.n_columns) if j not in selected])


def _is_by_values(columns, before):
    """Return True if columns are selected by values, or by dtypes that a step may determine."""
    if type(columns) is not make_column_selector:
        return callable(columns)
    return selects_by_type(columns) and bool(before)


def _density_decides(transformer, place, steps):
    """Return True if a ColumnTransformer may compare its density with its threshold.

    It publishes the result, whether an exact count of stored entries is above a limit, as
    `sparse_output_`. The comparison is made if the output of any part is sparse. By the keywords of
    `sparsity`, that of a "made" part may be. That of a "kept" part is sparse only if the input is a
    sparse matrix. This is impossible if columns are chosen by name, or if a step that certainly
    reads the table has the keyword "refused", because its fit raises an error.
    """
    # For another table, the remainder may have more columns, or none. Its output may therefore be
    # sparse even if it has no columns here, and it does not certainly read the table.
    sparsities = {sparsity(part) for part in (transformer.remainder, *(s.estimator for s in steps))}
    named = any(are_names(columns) for _, _, columns in transformer.transformers)
    readers = [s for s in steps if s.before == place.before and s.columns != REMAINDER]
    refused = any(sparsity(step.estimator) == "refused" and step.fits for step in readers)
    may_keep_sparse = "kept" in sparsities and not (named or refused)
    threshold = transformer.sparse_threshold
    if not isinstance(threshold, Real):
        # The check of the container raises an error that names the parameter.
        return False
    return threshold > 0 and ("made" in sparsities or may_keep_sparse)


def are_names(columns):
    """Return True if columns are chosen by name, which only a data frame has."""
    if isinstance(columns, slice):
        return any(isinstance(end, str) for end in (columns.start, columns.stop))
    values = []
    if not callable(columns):
        values = np.atleast_1d(np.asarray(columns, object))
    return any(isinstance(value, str) for value in values)


def chosen_places(columns, width, form=UNKNOWN_FORM):
    """Return the selected columns as names or positions; None if unknown.

    A column that is selected twice occurs twice. If the table's names are known, names are
    converted to positions.

    Raises
    ------
    ValueError
        If a column is not in the table, or cannot be selected from its container.
    """
    places = _places_by_rules(columns, width, form)
    is_resolved = _has_known_container(form)
    if callable(columns):
        # User-defined functions are not called. A table of positions would not have the types of
        # the columns.
        reads_types = selects_by_type(columns)
        is_resolved &= type(columns) is make_column_selector and not reads_types
        if reads_types and form.empty is not None and form.names is None:
            is_resolved = True
            columns = columns(form.empty)
    if is_resolved:
        return _check_resolved(columns, form)
    return places


def _places_by_rules(columns, width, form):
    """Return the selected columns as `chosen_places` does, for any container."""
    if callable(columns):
        return _selected(columns, form)
    if are_names(columns) and form.library == "":
        raise ValueError(
            f"{_column_words(columns)} are selected by name, but the step receives an array "
            'without names; use positions, or set_output(transform="pandas") on the step before'
        )
    if isinstance(columns, slice):
        if form.library == "" and columns.start is None and columns.stop is None:
            raise ValueError(
                f"{_column_words(columns)} have no ends, but the step receives an array, which "
                f"scikit-learn reads by position: write slice(0, None, {columns.step})"
            )
        if are_names(columns):
            _check_possible([columns.start, columns.stop], form)
            if form.names is None:
                return None
            return _named_slice(columns, form.names)
        if width is None:
            return None
        return list(range(*columns.indices(width)))
    values = _values_of(columns)
    wrong = [v for v in values if not isinstance(v, str | Integral | np.bool_)]
    if wrong:
        raise ValueError(f"a column must be a name or a position, got {wrong[0]!r}")
    _check_possible(values, form)
    if values and all(isinstance(value, bool | np.bool_) for value in values):
        if width is not None and len(values) != width:
            raise ValueError(
                f"{count_of(len(values), 'entry', 'entries')} to select columns, but the table "
                f"has {count_of(width, 'column')}"
            )
        return [place for place, is_selected in enumerate(values) if is_selected]
    if form.names is not None:
        values = [_position(v, form.names) if isinstance(v, str) else v for v in values]
    if width is None:
        return values
    out_of_range = [v for v in values if not isinstance(v, str) and not -width <= v < width]
    if out_of_range:
        raise ValueError(
            f"column {out_of_range[0]} is selected, but the table has {count_of(width, 'column')}"
        )
    return [value if isinstance(value, str) else value % width for value in values]


def _check_possible(columns, form):
    """Raise `ValueError` for a name that no column can have, even if some are yet to be found."""
    for name in columns:
        if form.names is None and isinstance(name, str) and form.lacks(name):
            raise ValueError(f"column {name!r} is selected, but {possible_names(form)}")


def possible_names(form):
    """Return a description of the possible column names, some of which are yet to be found."""
    starts = " or ".join(map(repr, form.name_prefixes))
    if not form.known_names:
        return f"all names begin with {starts}"
    known = ", ".join(map(repr, form.known_names[:8]))
    more = ""
    if len(form.known_names) > 8:
        more = ", ..."
    return f"the names are {known}{more}, and others that begin with {starts}"


def _check_resolved(columns, form):
    """Return the positions that scikit-learn selects from a table of a known container.

    Containers differ in the selections that they support: an array supports no ``slice(None)``, a
    frame no slice with a step, and polars no selector. So scikit-learn itself selects from a row of
    synthetic positions in the same container.

    Raises
    ------
    ValueError
        If scikit-learn would raise an error.
    """
    selected = columns
    if isinstance(columns, str | Integral) and not isinstance(columns, bool):
        selected = [columns]
    reader = FunctionTransformer(np.asarray).set_output(transform="default")
    transformer = ColumnTransformer([("part", reader, selected)])
    try:
        row = transformer.set_output(transform="default").fit_transform(_row_of_positions(form))
    except Exception as error:
        # Frame libraries raise errors of other classes.
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(
            f"{_column_words(columns)} cannot be selected ({reason}); write a list of names or a "
            "list of positions"
        ) from error
    places = [int(place) for place in np.asarray(row).ravel()]
    if isinstance(columns, slice) and not places:
        # scikit-learn fits a step with an empty slice, but not one with an empty list.
        raise ValueError(f"{_column_words(columns)} select no column; use [] to select none")
    return places


def _row_of_positions(form):
    """Return a table of one row, in the container of a form, with each column's position."""
    row = np.arange(form.n_columns)[None, :]
    if not form.library:
        return row
    library = sys.modules[form.library]
    if form.library == "pandas":
        labels = form.input_names
        if form.empty is not None:
            labels = form.empty.columns
        return library.DataFrame(row, columns=labels)
    columns = {name: [place] for place, name in enumerate(form.input_names)}
    if form.library == "polars":
        return library.DataFrame(columns)
    return library.table(columns)


def _has_known_container(form):
    """Return True if the container, the width and the names of a table are known."""
    is_known = form.library in ("", "pandas", "polars", "pyarrow")
    return is_known and None not in (form.n_columns, form.has_names) and form.n_columns > 0


def _selected(selector, form):
    """Return the positions that a selector chooses by pattern and dtype; None if unknown."""
    if type(selector) is make_column_selector and form.library in ("", "polars", "pyarrow"):
        container = "an array"
        if form.library:
            container = f"a {form.library} frame"
        raise ValueError(
            f"make_column_selector reads pandas frames, but the step receives {container}; use "
            'positions, or set_output(transform="pandas") on the step before'
        )
    if type(selector) is not make_column_selector or form.names is None:
        return None
    if not selects_by_type(selector):
        pattern = selector.pattern
        if selector.pattern is None:
            pattern = ""
        return [j for j, name in enumerate(form.names) if re.search(pattern, name)]
    if form.empty is None:
        return None
    return [form.names.index(name) for name in selector(form.empty)]


def _position(name, names):
    """Return the position of a column name; raise `ValueError` if the table has no such column."""
    if name not in names:
        shown = ", ".join(map(repr, names[:8]))
        if len(names) > 8:
            shown += ", ..."
        raise ValueError(f"column {name!r} is selected, but the table has {shown}")
    return names.index(name)


def _named_slice(columns, names):
    """Return the positions of a slice of names, which includes its end."""
    start = 0
    if columns.start is not None:
        start = _position(columns.start, names)
    if columns.stop is None:
        stop = len(names)
    else:
        stop = _position(columns.stop, names) + 1
    if stop <= start:
        raise ValueError(
            f"{_column_words(columns)} select no column, because {columns.start!r} is after "
            f"{columns.stop!r}"
        )
    return list(range(start, stop))[:: columns.step]


def _values_of(columns):
    """Return the entries of a list-like selection of columns."""
    has_entries = hasattr(columns, "__iter__") and getattr(columns, "ndim", 1) > 0
    is_scalar = isinstance(columns, str) or not has_entries
    if is_scalar:
        return [columns]
    return list(columns)


def _column_words(columns):
    """Return the description of a selection of columns, for the texts about a step."""
    if callable(columns):
        return f"columns chosen by {getattr(columns, '__name__', type(columns).__name__)}"
    if isinstance(columns, slice):
        ends = ["" if end is None else str(end) for end in (columns.start, columns.stop)]
        step = []
        if columns.step is not None:
            step = [str(columns.step)]
        return f"columns {':'.join(ends + step)}"
    values = _values_of(columns)
    if not values:
        return "columns of an empty list"
    words = ", ".join(map(str, values[:6]))
    if len(values) > 6:
        words += ", ..."
    return f"columns {words}"
