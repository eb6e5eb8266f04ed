"""Conditions on the parameters of steps that learn nothing, and the widths of their outputs."""

from functools import partial
from math import comb
from numbers import Integral, Real

import numpy as np
import sklearn.preprocessing
from sklearn.base import is_classifier

from skdp._tools._classes import behaves_as
from skdp._tools._functions import (
    has_non_finite_values,
    is_elementwise,
    refers_to_table,
    rounds_elements_alone,
    treats_rows_alone,
)
from skdp._tools._scores_and_folds import (
    INDEX_SPLITTERS,
    PERSON_FOLDS,
    has_private_scores,
    is_by_person,
    scorers_of,
)

# What to use instead of scikit-learn's functions, which are not steps themselves.
CLASSES_OF_FUNCTIONS = {
    "binarize": "Binarizer",
    "maxabs_scale": "DPMaxAbsScaler",
    "minmax_scale": "DPMinMaxScaler",
    "normalize": "Normalizer",
    "power_transform": "DPQuantileTransformer",
    "quantile_transform": "DPQuantileTransformer",
    "robust_scale": "DPRobustScaler",
    "scale": "DPStandardScaler",
}


def has_index_folds(cv, estimator):
    """Return True if the assignment of rows to folds depends only on row numbers.

    Parameters
    ----------
    cv : splitter, int, None or iterable
    estimator : estimator
        The estimator that is fitted. scikit-learn stratifies the default folds of classifiers.
    """
    if cv is None or isinstance(cv, Integral):
        return not (hasattr(estimator, "fit") and is_classifier(estimator))
    return behaves_as(cv, INDEX_SPLITTERS)


def selects_by_model_alone(selection):
    """Return True if no function that could read the table chooses the columns."""
    is_function = callable(getattr(selection, "max_features", None))
    return not (is_function or refers_to_table(selection.importance_getter))


def scores_privately(search):
    """Return True if a search releases its scores privately and splits rows by their numbers alone.

    A function as `refit` or `importance_getter` could read the table, so it must not refer to one.
    """
    functions = [getattr(search, name, None) for name in ("refit", "importance_getter")]
    if not has_private_scores(search.scoring) or any(map(refers_to_table, functions)):
        return False
    # The rows of a person must be in one fold.
    if is_by_person(*scorers_of(search.scoring)):
        return behaves_as(search.cv, PERSON_FOLDS)
    return has_index_folds(search.cv, search.estimator)


def stacks_with_index_folds(stack):
    """Return True if the folds of a stack depend only on row numbers."""
    # With "prefit", none of the inner estimators are fitted.
    return isinstance(stack.cv, str) or has_index_folds(stack.cv, stack)


def transforms_targets_alone(regressor):
    """Return True if functions transform each target separately."""
    # A transformer of the targets learns from them and is checked as a part.
    return treats_rows_alone(regressor.func) and treats_rows_alone(regressor.inverse_func)


def uses_true_labels(chain):
    return chain.cv is None


def adds_in_fixed_order(hasher):
    """Return True if the sum of colliding features does not depend on other rows."""
    # The order in which colliding features are added depends on whether the indices of other rows
    # are sorted.
    return hasher.input_type == "string" or np.dtype(hasher.dtype).kind in "iu"


def fails_on_other_labels(encoder):
    """Return the description of values at which an encoder fails, with the remedy, or ""."""
    if encoder.handle_unknown != "error":
        return ""
    ignoring = "use_encoded_value" if hasattr(encoder, "unknown_value") else "ignore"
    return f"an unknown category: use handle_unknown={ignoring!r}"


def fails_beyond_knots(splines):
    """Return the description of values at which splines fail, with the remedy, or ""."""
    if splines.extrapolation != "error":
        return ""
    return "a value beyond the knots: use another extrapolation"


def fails_on_negative_numbers(sampler):
    return "a value of -skewedness or less: bound the values before"


def fails_outside_domain(step):
    """Return the description of values of which a function makes NaN or infinity, or ""."""
    if not has_non_finite_values(step.func):
        return ""
    return "a value that its function turns to NaN or infinity: bound the values before"


def hashed_width(hasher, d):
    return hasher.n_features


def component_width(step, d):
    return int(step.n_components)


def declares_components(step):
    return isinstance(step.n_components, Integral)


def declares_gamma(sampler):
    return isinstance(sampler.gamma, Real)


def declares_knots(splines):
    return np.ndim(splines.knots) == 2


def marks_every_column(indicator):
    return indicator.features == "all"


def declares_words(encoder):
    """Return True if no category can be parsed as a number, a date or a boolean.

    scikit-learn converts declared categories to the dtype of the column, and a single missing value
    changes that dtype: integers to floats, booleans to objects. Strings that are not numbers, dates
    or booleans stay objects, or the fit raises an error.
    """
    rare = getattr(encoder, "min_frequency", None), getattr(encoder, "max_categories", None)
    lists = encoder.categories
    if rare != (None, None) or not isinstance(lists, list | tuple | np.ndarray):
        return False
    return all(_only_words(labels) for labels in lists)


def _only_words(labels):
    """Return True if the labels are strings or missing, and no conversion keeps them distinct."""
    are_words = all(isinstance(v, str) or v is None or v is np.nan for v in labels)
    if isinstance(labels, str) or not are_words:
        return False
    return not any(_converts(labels, dtype) for dtype in ("f8", "c16", "i8", "?", "M8", "m8"))


def _converts(labels, dtype):
    """Return True if the labels can be converted to a dtype and stay distinct."""
    try:
        values = np.array(list(labels), dtype=dtype)
    except (TypeError, ValueError):
        return False
    return len(np.unique(values)) == len(values)


def indicator_width(encoder, d):
    """Return the number of output columns of a one-hot encoder with declared categories, or None.

    None means that the number is unknown: the number of lists is not that of the columns, or `drop`
    lists a category for some columns only. (None in `drop` keeps all categories of its column.)

    Parameters
    ----------
    encoder : sklearn.preprocessing.OneHotEncoder
    d : int or None
        Number of input columns; None if it is unknown.
    """
    sizes = [len(labels) for labels in encoder.categories]
    drop = encoder.drop
    if d is not None and len(sizes) != d:
        return None
    if drop is None or isinstance(drop, str):
        return sum(size - (drop == "first" or (bool(drop) and size == 2)) for size in sizes)
    return sum(sizes) - len(sizes) if all(v is not None for v in drop) else None


def monomial_width(step, d):
    """Return the number of monomials of `PolynomialFeatures` for d columns; None if d is None.

    There are comb(d, k) monomials of degree k without powers, and comb(d + k - 1, k) with them.
    """
    if d is None:
        return None
    degree = step.degree
    low, high = degree if isinstance(degree, tuple | list) else (0, degree)
    sizes = range(max(low, 1), high + 1)
    if step.interaction_only:
        n_monomials = sum(comb(d, k) for k in sizes)
    else:
        n_monomials = sum(comb(d + k - 1, k) for k in sizes)
    return n_monomials + bool(step.include_bias)


def spline_width(splines, d):
    """Return the number of splines for d columns; None if the knots are for another number."""
    n_knots, width = np.shape(splines.knots)
    degree = 0 if splines.extrapolation == "periodic" else splines.degree
    # The array of knots determines the number of columns.
    per_column = n_knots - 1 + degree - (not splines.include_bias)
    return width * per_column if d in (None, width) else None


def fills_a_word(imputer):
    """Return True if an imputer replaces missing values by a declared string."""
    # A single missing value can change the dtype of numbers, whereas a string is always stored as
    # an object.
    if not imputer.keep_empty_features or imputer.add_indicator:
        return False
    return imputer.strategy == "constant" and isinstance(imputer.fill_value, str)


def has_row_function(step):
    """Return True if a function and its inverse compute each row separately."""
    return treats_rows_alone(step.func, step.kw_args) and treats_rows_alone(
        step.inverse_func, step.inv_kw_args
    )


def class_of_function(step):
    """Return the advice to use the class of a scikit-learn function, or a private one, or ""."""
    function = step.func
    arguments = step.kw_args or {}
    while isinstance(function, partial):
        arguments = {**function.keywords, **arguments}
        function = function.func
    name = getattr(function, "__name__", "")
    if name not in CLASSES_OF_FUNCTIONS or getattr(sklearn.preprocessing, name) is not function:
        return ""
    if name == "normalize" and arguments.get("axis", 1) == 0:
        return "use DPMaxAbsScaler or DPStandardScaler"
    return f"use {CLASSES_OF_FUNCTIONS[name]}"


def function_width(step, d):
    """Return the number of columns that a function returns for d columns; None if unknown."""
    # An array argument broadcasts a single column to several.
    keeps_width = d != 1 or type(step.func) is not partial
    return d if keeps_width and is_elementwise(step.func, step.kw_args) else None


def rounds_rows_alone(step):
    return rounds_elements_alone(step.func)


def reads_words_itself(vectorizer):
    """Return True if a vectorizer splits each text without a user-defined function."""
    has_functions = vectorizer.preprocessor is not None or vectorizer.tokenizer is not None
    if has_functions or callable(vectorizer.strip_accents):
        return False
    # With other inputs, two rows may refer to the same file object, which can be read only once.
    return isinstance(vectorizer.analyzer, str) and vectorizer.input == "content"


def counts_listed_words(vectorizer):
    """Return True if the words that a vectorizer counts are declared, so that it learns none."""
    words = vectorizer.vocabulary
    is_listed = hasattr(words, "__len__") and not isinstance(words, str)
    return is_listed and reads_words_itself(vectorizer)


def weights_listed_words_alone(vectorizer):
    return counts_listed_words(vectorizer) and not vectorizer.use_idf


def weights_rows_alone(transformer):
    # The logarithm of a negative number, which hashed words may have, is NaN.
    return not (transformer.use_idf or transformer.sublinear_tf)


def vocabulary_width(vectorizer, d):
    return len(vectorizer.vocabulary)


# skrub selectors that use only names and dtypes.
SELECTORS = {"All", "Cols", "NameFilter"}
DTYPE_FILTERS = {"numeric", "integer", "float", "has_dtype", "any_date", "categorical", "boolean"}


def selects_by_values(selector):
    """Return True if columns may be selected by the values of their cells.

    A selector that is not known, such as one of a later release of skrub, may read cells.

    Parameters
    ----------
    selector : str, list of str or selector of skrub
        Selectors can be combined by operators: the combination then has the attributes `left` and
        `right`, or `complement`, and reads cells if one of these selectors does.
    """
    if selector is None or isinstance(selector, str | list | tuple):
        return False
    kind = type(selector).__name__
    if kind in SELECTORS:
        return False
    if kind == "Filter":
        return selector.name not in DTYPE_FILTERS
    parts = [vars(selector).get(name) for name in ("left", "right", "complement")]
    return not any(parts) or any(selects_by_values(part) for part in parts)


def selects_by_name_or_dtype(step):
    return not selects_by_values(step.cols)


def unknown_width(step, d):
    return None


def scales_by_largest(normalizer):
    """Return True if each row is divided by its largest absolute value."""
    # The other norms are sums, and their order of addition depends on the layout or the number of
    # rows.
    return normalizer.norm == "max"


def never(step):
    return False
