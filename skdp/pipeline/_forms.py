"""Public information about the table that reaches a step: names, dtypes and container."""

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, SequentialFeatureSelector
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from skdp._data._chunked import meta_of
from skdp._data._forms import UNKNOWN_FORM, TableForm
from skdp._data._frames import TIME_KINDS, is_frame, label_kind_of, with_plain_names
from skdp._data._kinds import container_kinds, types_of
from skdp._data._output import frame_library
from skdp.pipeline._combinations import n_selected_columns
from skdp.pipeline._instances import gives_numbers, is_estimator, of_skdp, sklearn_name
from skdp.pipeline._kinds import step_kind
from skdp.pipeline._known import accepted_entry


def form_of_table(X):
    """Return the form of a table without reading any value.

    Parameters
    ----------
    X : array, sparse matrix, ChunkedArray or DataFrame

    Returns
    -------
    TableForm
    """
    if len(getattr(X, "shape", ())) != 2:
        return UNKNOWN_FORM
    empty = meta_of(X)
    reader = BaseEstimator()
    validate_data(reader, with_plain_names(empty), skip_check_array=True)
    names = getattr(reader, "feature_names_in_", None)
    library = ""
    if is_frame(empty):
        library = type(empty).__module__.partition(".")[0]
    return TableForm(
        n_columns=X.shape[1],
        names=names,
        kinds=container_kinds(X),
        examples=_words_in(empty),
        library=library,
        has_names=names is not None,
        is_sparse=hasattr(X, "tocsr"),
        empty=X.iloc[:0] if _is_pandas(X) else None,
    )


def _words_in(table):
    """Return an example value for each frame column whose dtype declares strings."""
    if not is_frame(table):
        return {}
    types = enumerate(types_of(table))
    return {j: ["a"] for j, dtype in types if label_kind_of(dtype) == "text"}


def _is_pandas(X):
    return type(X).__module__.partition(".")[0] == "pandas"


def output_form(estimator, form):
    """Return the form of a step's output, from the form of its input.

    skdp's transformers define ``_output_form``. For scikit-learn steps that learn nothing, the
    table of known classes has an entry. Nothing is fitted.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step without nested estimators.
    form : TableForm
        Form of the step's input.

    Returns
    -------
    TableForm
        For all other steps, and for those with an invalid parameter, only the number of rows is
        set.
    """
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return form
    # A step may rename columns whose names are only partly known.
    form = replace(form, name_prefixes=None, known_names=())
    if isinstance(estimator, str):
        # The step is "drop".
        return replace(form.with_columns(0, names=(), kinds=()), is_sparse=False)
    if form.n_columns == 0:
        # Without columns, a step is not fitted and has no output.
        return form
    unknown = TableForm(n_rows=form.n_rows, classes=form.classes)
    if not is_estimator(estimator):
        # The step is an object with `transform` but without parameters.
        return unknown
    if step_kind(estimator) == "frozen":
        return _form_of_frozen(estimator.estimator, unknown)
    if step_kind(estimator) not in ("private", "stateless", "declared"):
        if sklearn_name(estimator):
            return _form_of_learned(estimator, form)
        return unknown
    try:
        entry = accepted_entry(estimator)
        if entry is not None:
            return entry.output_form(estimator, form)
        if of_skdp(estimator) and hasattr(estimator, "_output_form"):
            return estimator._output_form(form)
    except (ValueError, TypeError, LookupError, ArithmeticError):
        # The step's own check raises an error that names the parameter.
        pass
    return unknown


def _form_of_learned(estimator, form):
    """Return the form of the output of a step of scikit-learn that learns from public rows."""
    params = estimator.get_params(deep=False)
    kind = type(estimator)
    width = None
    names = None
    if isinstance(estimator, OneToOneFeatureMixin):
        width = form.n_columns
        names = form.input_names
    elif kind is SelectKBest and isinstance(estimator.k, Integral) and form.n_columns is not None:
        width = min(estimator.k, form.n_columns)
    elif kind in (RFE, SelectFromModel, SequentialFeatureSelector):
        width = n_selected_columns(estimator, form.n_columns)
    elif kind.__module__.startswith("sklearn.decomposition") and kind is not KernelPCA:
        components = params.get("n_components")
        width = None
        if isinstance(components, Integral):
            width = components
        if width is not None:
            names = [f"{kind.__name__.lower()}{j}" for j in range(width)]
    library = frame_library(estimator)
    if not library:
        names = None
    return TableForm(
        n_rows=form.n_rows, classes=form.classes, n_columns=width, library=library, names=names
    )


def _form_of_frozen(fitted, unknown):
    """Return the form of a fitted transformer's output."""
    if not (of_skdp(fitted) and hasattr(fitted, "get_feature_names_out")):
        return unknown
    try:
        names = fitted.get_feature_names_out()
    except NotFittedError:
        # The step's own check reports the error.
        return unknown
    n_columns = len(names)
    library = frame_library(fitted)
    if not library:
        names = None
    return replace(
        unknown,
        n_columns=n_columns,
        names=names,
        library=library,
        is_sparse=getattr(fitted, "_makes_sparse", False),
        holds_numbers=gives_numbers(fitted),
    )


def joined_form(container, form, parts, forms, sparse_threshold=None):
    """Return the form of the output of a `ColumnTransformer` or `FeatureUnion`.

    Parameters
    ----------
    container : estimator
    form : TableForm
        Form of its input, of which only the number of rows and the classes are kept.
    parts : list of str
        The names of its parts.
    forms : list of TableForm
        Forms of the outputs of the parts, before they are multiplied by `transformer_weights`.
    sparse_threshold : float, default=None
        Parameter of a `ColumnTransformer`; None for a `FeatureUnion`.

    Returns
    -------
    TableForm
    """
    library = frame_library(container)
    name_prefixes = None
    known_names = ()
    n_columns = None
    if all(output.n_columns is not None for output in forms):
        n_columns = sum(output.n_columns for output in forms)
    kinds = names = None
    outputs = _weighted_forms(container, parts, forms)
    examples = {}
    if all(output.kinds is not None for output in outputs):
        kinds = []
        for output in outputs:
            if library:
                kinds += output.kinds
            else:
                # The type of a column of strings is lost in an array.
                kinds += _with_text(output)
        is_of_times = len(set(kinds)) == 1 and kinds[0] in TIME_KINDS
        if set(kinds) - {"number"} and not is_of_times:
            if library:
                # The library may infer the dtypes of other columns from their values.
                kinds = None
            else:
                kinds = _kinds_in_array(kinds)
        if kinds is not None:
            examples = _joined_examples(outputs)
    if library and all(output.names is not None for output in outputs):
        # The names are unknown if their format raises an error. `check_joined_names` reports it.
        with suppress(Exception):
            names = joined_names(container, parts, [output.names for output in outputs])
    elif library:
        with suppress(Exception):
            known_names, name_prefixes = _partial_names(container, parts, outputs)
    return replace(
        form,
        n_columns=n_columns,
        names=names,
        kinds=kinds,
        library=library,
        has_names=None,
        examples=examples,
        is_sparse=_joined_sparsity(outputs, sparse_threshold),
        name_prefixes=name_prefixes,
        known_names=known_names,
        empty=None,
        holds_numbers=all(output.holds_numbers for output in outputs),
    )


def _joined_sparsity(forms, sparse_threshold):
    """Return True if a container's output is sparse, False if it is dense, and None if unknown."""
    if all(form.is_sparse is False for form in forms):
        return False
    if sparse_threshold is None and any(form.is_sparse for form in forms):
        # A `FeatureUnion` returns a sparse matrix if the output of any part is sparse.
        return True
    if sparse_threshold == 0:
        return False
    # The sparsity of a part is unknown, or the density of the output determines its format.
    return None


def _weighted_forms(container, parts, forms):
    """Return the forms of the outputs of the parts after multiplication by their weights."""
    weights = getattr(container, "transformer_weights", None) or {}
    weighted = []
    for part, form in zip(parts, forms, strict=True):
        if part in weights:
            # The columns become numeric, unless their values are not numbers.
            form = replace(form, kinds=None, holds_numbers=form.holds_numbers)
        weighted.append(form)
    return weighted


def _partial_names(container, parts, forms):
    """Return the known column names of a container's frame, and prefixes of all others or None.

    The names of found categories are unknown, but the name of their part and the names of other
    parts are known.
    """
    known = []
    beginnings = []
    for form in forms:
        if form.names is not None:
            known.append(form.names)
            beginnings.append(())
        elif form.name_prefixes is not None:
            known.append(form.known_names)
            beginnings.append(form.name_prefixes)
        else:
            # Every name begins with "", so nothing is known about the names.
            known.append(form.known_names)
            beginnings.append(("",))
    known_names = tuple(joined_names(container, parts, known))
    # The text after this mark is cut off.
    mark = "\0"
    marked = [[f"{beginning}{mark}" for beginning in begins] for begins in beginnings]
    if callable(container.verbose_feature_names_out):
        names = []
    else:
        names = joined_names(container, parts, marked)
    prefixes = tuple(name.partition(mark)[0] for name in names)
    if not all(prefixes):
        # An empty prefix says nothing about the names.
        return known_names, None
    return known_names, prefixes or None


def _with_text(form):
    """Return the kinds of a form's columns; columns known to contain strings are "text"."""
    kinds = list(form.kinds)
    for j, kind in enumerate(kinds):
        if kind in ("label", "object") and form.examples.get(j) == ["a"]:
            kinds[j] = "text"
    return kinds


def _kinds_in_array(kinds):
    """Return the kinds of columns that are joined into one array, None if unknown.

    If one column contains objects, all columns of the array become objects with unchanged cells.
    """
    if not {"text", "mixed"} & set(kinds) or {"date", "duration"} & set(kinds):
        return None
    known = ("number", "text", "mixed")
    return [kind if kind in known else "cells" for kind in kinds]


def _joined_examples(forms):
    """Return the `examples` of tables that stand side by side."""
    examples = {}
    first = 0
    for form in forms:
        examples |= {first + j: values for j, values in form.examples.items()}
        first += form.n_columns
    return examples


def joined_names(container, parts, names):
    """Return the names of the columns of a container's frame.

    Parameters
    ----------
    container : ColumnTransformer or FeatureUnion
    parts : list of str
    names : list of sequence of str
        Names of the output columns of each part.

    Raises
    ------
    Exception
        If ``verbose_feature_names_out`` is an invalid format string, or a function that raises.
    """
    prefixed = container.verbose_feature_names_out
    pairs = [
        (part, name) for part, part_names in zip(parts, names, strict=True) for name in part_names
    ]
    if isinstance(prefixed, bool | np.bool_):
        if prefixed:
            return [f"{part}__{name}" for part, name in pairs]
        return [name for _, name in pairs]
    if isinstance(prefixed, str):
        return [prefixed.format(transformer_name=part, feature_name=name) for part, name in pairs]
    return [prefixed(part, name) for part, name in pairs]


def repeated_names(names):
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def refuses_sparse(estimator):
    """Return True if an estimator is known to raise an error for a sparse matrix.

    It concerns the tables that are fitted or predicted. The entry of an accepted class describes
    both input and output by one word, `sparse`. It is "made" if the output is sparse for every
    input, and then does not say whether a sparse input is refused; False is returned.
    """
    if not is_estimator(estimator):
        return False
    if of_skdp(estimator):
        return not get_tags(estimator).input_tags.sparse
    entry = accepted_entry(estimator)
    return entry is not None and entry.sparse == "refused"
