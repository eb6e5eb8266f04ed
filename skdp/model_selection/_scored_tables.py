"""Checks of a scored table's public properties against a fitted model, before the charge."""

import warnings
from functools import partial

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._data._chunked import meta_of
from skdp._data._errors import column_name, non_numeric_error
from skdp._data._frames import with_plain_names
from skdp._data._labels import kind_of_others, label_kinds
from skdp.ledger._state import NotCopied
from skdp.mechanisms._randomized_response import categories_array
from skdp.pipeline._forms import form_of_table, refuses_sparse
from skdp.pipeline._instances import is_estimator, of_skdp, sklearn_name
from skdp.pipeline._known import accepted_entry


def check_scored_table(estimator, X):
    """Raise the error that a model would raise for the names or the container of a table.

    Parameters
    ----------
    estimator : estimator
        The model. For a model from another library, only the names of the columns are
        checked.
    X : table that can be indexed by row number

    Raises
    ------
    ValueError
        If a model from skdp or scikit-learn is not fitted, was fitted to other columns, selects by
        name from a table without names, or refuses sparse tables or strings.
    """
    if of_skdp(estimator) or sklearn_name(estimator):
        check_is_fitted(estimator)
    if len(X.shape) == 2:
        form = form_of_table(X)
        for reader in _readers(estimator):
            _check_reader(reader, X, form)


def is_read_before_charge(model):
    """Return True for a model that reads the rows that it scores before they are charged.

    Only its prediction shows whether a model refuses a cell. Models from skdp and scikit-learn
    predict row by row and do nothing else, so their predictions serve to check the cells. The code
    of other models runs after the charge, as do reports that are themselves charged.
    """
    if not is_estimator(model):
        return False
    parts = [part for part in (model, *model.get_params().values()) if is_estimator(part)]
    return all(map(_is_known, parts))


def _is_known(part):
    """Return True for a part from skdp or scikit-learn that computes no user-defined function."""
    if of_skdp(part):
        return not get_tags(part).non_deterministic
    # User-defined functions are in no table of accepted steps.
    is_function = isinstance(part, FunctionTransformer) and accepted_entry(part) is None
    return bool(sklearn_name(part)) and not is_function


class PredictedModel(NotCopied):
    """A model with its predictions for one table, from which the table's score is computed.

    Parameters
    ----------
    model : estimator
    X : table
    methods : sequence of str
        Names of methods, of which the first one that the model has is called.
    """

    def __init__(self, model, X, methods):
        self._model = model
        self._X = X
        self._answers = {}
        for method in [name for name in methods if hasattr(model, name)][:1]:
            self._answers[method] = getattr(model, method)(X)

    def __getattr__(self, name):
        value = getattr(vars(self)["_model"], name)
        if name in self._answers:
            return partial(self._answer, name)
        return value

    def _answer(self, method, X):
        """Return the stored answer for the predicted rows; for others, the answer of the model."""
        if X is self._X:
            return self._answers[method]
        return getattr(self._model, method)(X)


def _readers(estimator):
    """Yield the fitted estimators inside a model that receive the table itself."""
    if isinstance(estimator, Pipeline):
        for _, step in estimator.steps:
            # A step that is "passthrough" passes the table on.
            if is_estimator(step):
                yield from _readers(step)
                return
    elif isinstance(estimator, FeatureUnion):
        for _, part in estimator.transformer_list:
            if is_estimator(part):
                yield from _readers(part)
    elif isinstance(estimator, FrozenEstimator):
        yield from _readers(estimator.estimator)
    elif is_estimator(getattr(estimator, "best_estimator_", None)):
        yield from _readers(estimator.best_estimator_)
    else:
        yield estimator


def _check_reader(reader, X, form):
    """Raise `ValueError` if a fitted estimator cannot read a table's container or names."""
    name = type(reader).__name__
    if not hasattr(reader, "__sklearn_tags__"):
        # Any object with a `predict` method can be scored.
        return
    if isinstance(reader, ColumnTransformer):
        _check_selection(reader, form)
        return
    if form.is_sparse and refuses_sparse(reader):
        raise ValueError(f"{name} does not accept sparse tables, and X is one: pass X.toarray()")
    with warnings.catch_warnings():
        # Only one of the two has names; `predict` warns about that.
        warnings.simplefilter("ignore")
        validate_data(reader, with_plain_names(meta_of(X)), reset=False, skip_check_array=True)
    tags = get_tags(reader).input_tags
    if of_skdp(reader) and not (tags.string or tags.categorical):
        for j in form.examples:
            raise non_numeric_error(column_name(j, form.names))


def _check_selection(transformer, form):
    """Raise `ValueError` if a fitted `ColumnTransformer` selects names that a table lacks."""
    fitted_names = getattr(transformer, "feature_names_in_", None)
    if fitted_names is None:
        return
    parts = [part for part in transformer.transformers_ if part[1] != "drop"]
    if form.names is None:
        if any(_selects_by_name(columns) for *_, columns in parts):
            raise ValueError(
                "ColumnTransformer selects columns by name, and X has no column names: pass a data "
                "frame with the columns of its fit"
            )
        return
    positions = transformer._transformer_to_input_indices
    selected = {fitted_names[j] for name, *_ in parts for j in positions[name]}
    missing = [name for name in fitted_names if name in selected and name not in form.names]
    if missing:
        raise ValueError(
            f"X has no column {', '.join(map(repr, missing))}, which ColumnTransformer selects: "
            "pass the columns of its fit"
        )


def _selects_by_name(columns):
    """Return True if a selection of columns contains a name."""
    if isinstance(columns, slice):
        return isinstance(columns.start, str) or isinstance(columns.stop, str)
    columns = np.atleast_1d(np.asarray(columns, dtype=object))
    return any(isinstance(column, str) for column in columns)


def check_scored_labels(score, estimator, y):
    """Raise `ValueError` if a score does not suit a model, or no label can equal its classes.

    Parameters
    ----------
    score : BoundedScore
    estimator : estimator
    y : ndarray of shape (n_rows,)
        Labels or targets. Each label is checked independently of others.
    """
    check_suits(score, estimator)
    classes = None
    if score.of_labels:
        classes = getattr(estimator, "classes_", None)
    if isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes):
        check_class_counts(score, classes)
        kinds = label_kinds(categories_array(classes))
        other_kind = kind_of_others(y, kinds)
        if other_kind is not None:
            raise ValueError(
                f"y holds {other_kind}, but the classes {classes[:3].tolist()} of the model are "
                f"{' and '.join(sorted(kinds))}, which never equal {other_kind}: pass labels of "
                "the type that the model was fitted to"
            )


def check_suits(score, estimator):
    """Raise `ValueError` if a score is not for an estimator of this type, fitted or not.

    Parameters
    ----------
    score : BoundedScore
    estimator : estimator
    """
    is_other = is_classifier
    if score.of_labels:
        is_other = is_regressor
    # Any object with a `predict` method can be scored.
    if hasattr(estimator, "__sklearn_tags__") and is_other(estimator):
        expected = "a regressor"
        if score.of_labels:
            expected = "a classifier"
        name = getattr(score, "name", type(score).__name__)
        raise ValueError(f"the score {name!r} needs {expected}, got {type(estimator).__name__}")


def check_class_counts(score, classes):
    """Raise `ValueError` if a score has no class count for a class of a model.

    A fold may lack a rare class, so the counts may include further labels.

    Parameters
    ----------
    score : BoundedScore
    classes : ndarray
    """
    counts = dict(getattr(score, "class_counts", None) or ())
    labels = classes.tolist()
    if counts and not set(labels) <= set(counts):
        raise ValueError(
            f"class_counts of the score {score.name!r} must have the labels {labels}, got "
            f"{list(counts)}"
        )
