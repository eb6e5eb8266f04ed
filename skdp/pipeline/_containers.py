"""Checks of the parameters of scikit-learn's containers, before the first charge."""

from collections.abc import Mapping, Sequence
from numbers import Integral, Real

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from skdp._data._frames import TIME_KINDS
from skdp._data._output import asks_for_frame, frame_library
from skdp._tools._classes import is_of_classes
from skdp._tools._functions import is_elementwise
from skdp._tools._parts import is_private
from skdp.pipeline._forms import joined_names, repeated_names
from skdp.pipeline._instances import is_estimator, sklearn_name
from skdp.utils._validation import check_n_jobs


def check_container(container):
    """Raise `ValueError` if a container's own fit would refuse a parameter.

    Parameters
    ----------
    container : Pipeline, ColumnTransformer or FeatureUnion
        Of containers from other libraries, only pipelines of imbalanced-learn are checked.
    """
    if is_of_classes(container, "imblearn.Pipeline"):
        _check_no_inner_pipelines(container)
        return
    if not type(container).__module__.startswith(("sklearn.", "skdp.")):
        return
    if isinstance(container, FeatureUnion):
        # `FeatureUnion` declares no parameter constraints.
        parameter = "transformer_list"
        others = []
    else:
        _check_threshold(container)
        container._validate_params()
        parameter = "transformers"
        others = ["remainder"]
        if isinstance(container, Pipeline):
            parameter = "steps"
            others = []
    parts = [part[:2] for part in getattr(container, parameter)]
    names = [name for name, _ in parts]
    _check_names(container, parameter, names)
    _check_parts(container, parameter, parts)
    if isinstance(container, ColumnTransformer):
        _check_selected_columns(container)
    if isinstance(container, Pipeline):
        _check_transform_input(container)
    else:
        check_n_jobs(container.n_jobs)
        _check_weights(container.transformer_weights, [*names, *others])


def _check_no_inner_pipelines(container):
    """Raise `ValueError` if a pipeline of imbalanced-learn has a pipeline before its last step."""
    for name, step in container.steps[:-1]:
        if isinstance(step, Pipeline):
            raise ValueError(
                f"steps: {name!r} is a Pipeline, which imbalanced-learn accepts only as the last "
                "step: list its steps one by one, or use a Pipeline of scikit-learn around them"
            )


def _check_names(container, parameter, names):
    """Raise `ValueError` if names of steps repeat, contain "__" or are names of parameters."""
    if len(set(names)) < len(names):
        raise ValueError(f"{parameter}: names must differ, got {names}")
    params = container.get_params(deep=False)
    for name in names:
        if "__" in name or name in params:
            raise ValueError(
                f"{parameter}: {name!r} is not a valid name of a step: it must not contain two "
                "underscores in a row or be the name of a parameter"
            )


def _check_parts(container, parameter, parts):
    """Raise `ValueError` if a step whose output is needed has no `transform`.

    `parts` are pairs of a name and a step; `parameter` is the parameter that holds them.
    """
    # The last step of a pipeline may be a model.
    inner = parts
    if isinstance(container, Pipeline):
        inner = parts[:-1]
    for name, part in inner:
        if is_estimator(part) and not hasattr(part, "transform"):
            raise ValueError(
                f"{parameter}: {name!r} is a {type(part).__name__}, which has no transform: only "
                "the last step of a pipeline may lack one"
            )


def _check_selected_columns(transformer):
    """Raise `ValueError` if a step receives one dimension where it needs two, or the reverse.

    A column that is selected without a list is a one-dimensional array, which only steps that read
    text or dictionaries accept. Conversely, iterating over a data frame yields the names of its
    columns, so these steps would take the names for the texts of the rows.
    """
    for name, part, columns in transformer.transformers:
        if callable(columns) or _is_drop(part):
            # The dimension of a function's selection is unknown.
            continue
        is_series = isinstance(columns, str | Integral) and not isinstance(columns, bool)
        readers = _readers(part)
        if is_series and (readers is None or any(map(_needs_table, readers))):
            raise ValueError(
                f"columns: {columns!r} selects a one-dimensional array for the step {name!r}; "
                f"write [{columns!r}] instead of {columns!r}"
            )
        if not is_series and any(map(_reads_single_column, readers or ())):
            raise ValueError(
                f"columns: {columns!r} selects a table for the step {name!r}, which reads one "
                "column of texts or dictionaries: write the name of the column without a list, and "
                "a step for each column"
            )


def _readers(part):
    """Return the estimators that receive a part's columns as they were selected.

    Returns None if the part passes them on unchanged, at least in one branch of a `FeatureUnion`.
    """
    if isinstance(part, Pipeline):
        for _, step in part.steps:
            readers = _readers(step)
            if readers is not None:
                return readers
        return None
    if isinstance(part, FeatureUnion):
        readers = [_readers(inner) for _, inner in part.transformer_list if not _is_drop(inner)]
        if any(inner is None for inner in readers):
            return None
        return [step for inner in readers for step in inner]
    is_passed_on = part is None or isinstance(part, str)
    if isinstance(part, FunctionTransformer):
        is_passed_on = not part.validate and is_elementwise(part.func, part.kw_args)
    if is_passed_on:
        return None
    return [part]


def _is_drop(part):
    return isinstance(part, str) and part == "drop"


def _needs_table(step):
    """Return True if a step refuses one-dimensional columns.

    All private steps do. Of other libraries than scikit-learn, nothing is known about a step:
    the result is False, and the step itself raises an error if it needs a table.
    """
    if is_private(step):
        return True
    if not sklearn_name(step):
        return False
    if isinstance(step, FunctionTransformer):
        return bool(step.validate)
    tags = get_tags(step).input_tags
    return tags.two_d_array and not tags.one_d_array


def _reads_single_column(step):
    """Return True for a step of scikit-learn that reads a list of texts or dictionaries."""
    if not sklearn_name(step):
        return False
    tags = get_tags(step).input_tags
    return (tags.string or tags.dict) and not tags.two_d_array


# Largest absolute value of a weight. Bounds are at most 1e150, so products stay finite.
MOST_WEIGHT = 1e150


def _check_threshold(container):
    """Raise `ValueError` if the `sparse_threshold` of a container is not a number."""
    threshold = getattr(container, "sparse_threshold", 0)
    if not isinstance(threshold, Real):
        raise ValueError(f"sparse_threshold must be a number from 0 to 1, got {threshold!r}")


def _check_transform_input(pipe):
    """Raise `ValueError` if a pipeline would transform person ids as if they were a table."""
    names = getattr(pipe, "transform_input", None)
    if names is None:
        return
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ValueError(f"transform_input must be a list of parameter names, got {names!r}")
    if "groups" in names:
        raise ValueError(
            "transform_input contains 'groups', which has one id per row and is not a table: "
            "remove it"
        )


def _check_weights(weights, names):
    """Raise `ValueError` if a weight is not a number within limits or belongs to no part."""
    if not isinstance(weights, Mapping | None):
        raise ValueError(
            f"transformer_weights must be a dict of the name of a part to a number, got {weights!r}"
        )
    for name, weight in (weights or {}).items():
        if name not in names:
            raise ValueError(f"transformer_weights names {name!r}, but the parts are {names}")
        if not (isinstance(weight, Real) and abs(weight) <= MOST_WEIGHT):
            raise ValueError(
                f"transformer_weights must be finite numbers, within {-MOST_WEIGHT} and "
                f"{MOST_WEIGHT}, got {weight!r} for {name!r}"
            )


def check_joined_times(container, forms):
    """Raise `ValueError` if an array would mix columns of dates or durations with numbers.

    NumPy has no type for dates mixed with numbers, and converts numbers to durations if the two are
    mixed.
    """
    if asks_for_frame(container):
        return
    # A part without columns adds nothing.
    forms = [form for form in forms if form.n_columns != 0]
    kinds = {kind for form in forms for kind in form.kinds or ()}
    is_with_numbers = kinds & {"number", "boolean"} or any(form.holds_numbers for form in forms)
    if kinds & set(TIME_KINDS) and is_with_numbers and not kinds & {"object", "label", "cells"}:
        raise ValueError(
            "columns of dates or durations are joined with columns of numbers in one array: use "
            "DPTableVectorizer, which reads both, or convert them to numbers first"
        )


def check_joined_names(container, parts, forms):
    """Raise `ValueError` if the column names of a container's output are invalid or not unique.

    Parameters
    ----------
    container : ColumnTransformer or FeatureUnion
    parts : list of str
    forms : list of TableForm
        Forms of the output tables of the parts.
    """
    weights = getattr(container, "transformer_weights", None) or {}
    for part, form in zip(parts, forms, strict=True):
        if part in weights and {"text", "mixed"} & set(form.kinds or ()):
            raise ValueError(
                f"transformer_weights has a weight for {part!r}, whose columns may hold strings: "
                "remove it"
            )
    library = frame_library(container)
    if not library:
        return
    named = [(part, form.names) for part, form in zip(parts, forms, strict=True) if form.names]
    try:
        names = joined_names(
            container, [part for part, _ in named], [part_names for _, part_names in named]
        )
        # With a dummy name, errors are found even if no name is known yet.
        joined_names(container, ["part"], [["column"]])
    except Exception as error:
        # A user-defined function may raise any exception.
        raise ValueError(
            f"verbose_feature_names_out={container.verbose_feature_names_out!r} cannot be "
            f"formatted with transformer_name and feature_name: {type(error).__name__}: {error}"
        ) from error
    check_unique_names(
        names,
        library,
        is_checked=container.verbose_feature_names_out is False,
        remedy="verbose_feature_names_out=True puts the names of the parts before them",
    )


def check_unique_names(names, library, *, is_checked=False, remedy="rename the input's columns"):
    """Raise `ValueError` for duplicate names in a frame that does not allow them.

    Parameters
    ----------
    names : sequence of str
    library : str
        Library of the frame; polars does not allow duplicate names.
    is_checked : bool, default=False
        True if scikit-learn refuses duplicate names in every frame.
    remedy : str
    """
    repeated = repeated_names(names)
    if repeated and (is_checked or library == "polars"):
        raise ValueError(
            f"verbose_feature_names_out or set_output: several columns of the output would be "
            f"named {', '.join(map(repr, repeated[:5]))}: {remedy}"
        )
