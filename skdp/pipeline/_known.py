"""The table of known classes: which information each class learns from its training rows.

Classes are identified by their public module and name, so that no other library is imported here. A
class that is not in the table is "unknown": it is accepted only if it declares its kind by an
attribute ``__skdp_kind__``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import takewhile
from math import comb
from numbers import Integral, Real

import numpy as np
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags

from skdp._data._forms import TableForm
from skdp._data._frames import kind_of
from skdp._data._output import frame_library
from skdp._fitting._known_callers import is_step, parts_of
from skdp.base import PrivateEstimator, terms_of
from skdp.pipeline._functions import (
    has_bounded_domain,
    is_elementwise,
    rounds_elements_alone,
    treats_rows_alone,
)
from skdp.pipeline._instances import is_estimator, raw_callbacks
from skdp.utils._values import FrozenValue

# Description of each kind of step that `step_kind` returns.
REASONS = {
    "private": "its fit is charged",
    "local": "each row's transform is charged, in predictions too",
    "stateless": "learns nothing",
    "frozen": "was fitted before and is not fitted again",
    "opaque": "was fitted before, and what it makes of a row may depend on other rows",
    "declared": "learns nothing beyond what its parameters declare",
    "container": "fits the steps inside it, each once",
    "learns": "learns from the data without privacy",
    "not_row_wise": (
        "may round a row by how many rows stand beside it, and their number is private here"
    ),
    "resamples": "fits rows that repeat, are left out or were made of other rows",
    "calibrates": "fits its last stage to raw rows",
    "cross_validates": "chooses by scores on private rows, which are raw",
    "wrapper": "fits the estimators inside it in a way that no plan covers",
    "unknown": "is not known, and may learn from the data without privacy",
}
ACCEPTED = ("private", "stateless", "frozen", "declared")


def _always(step):
    return True


def _on_no_value(step):
    return ""


def _same_width(step, d):
    return d


@dataclass(frozen=True, kw_only=True)
class Known(FrozenValue):
    """An entry of the table of known classes.

    Parameters
    ----------
    kind : str
        Kind of an instance whose parameters fulfill the condition; a key of `REASONS`.
    condition : callable
        Maps an instance to False if its parameters contradict the kind.
    otherwise : str
        Kind of an instance that does not fulfill the condition.
    advice : str
        Advice on a replacement, for kinds that are not accepted.
    inner : tuple of str
        The parameters that hold the estimators that it fits.
    defaults : dict of str to callable
        Functions that return the estimator that it fits in place of None, by parameter.
    fails_on : callable
        Maps an instance to a description of the values on which its fit raises an error, with the
        remedy; "" if there are none.
    width : callable
        Maps (instance, d) to the number of output columns for `d` input columns; None if unknown.
    cells : str
        Kind of the output columns, as in `TableShape`; "" if unknown.
    sparse : {"refused", "kept", "dense", "made"}
        Treatment of a sparse table. "made": dense tables also become sparse.
    is_row_wise : callable
        Maps an instance to True if each output row depends only on its input row, to the last bit,
        because only operations listed in `skdp._data._row_wise` are used. A matrix product is not
        listed, because its rounding depends on the number of rows.
    """

    kind: str
    condition: Callable = _always
    otherwise: str = "learns"
    advice: str = ""
    inner: tuple = ()
    defaults: Mapping = field(default_factory=dict)
    fails_on: Callable = _on_no_value
    width: Callable = _same_width
    cells: str = "number"
    sparse: str = "refused"
    is_row_wise: Callable = _always

    def output_form(self, step, form):
        """Return the form of an accepted step's output, from the form of its input."""
        output = form.with_columns(self.width(step, form.n_columns))
        cells = self.cells
        library = frame_library(step)
        names = None
        if not cells:
            # A function may return another container than the one that it receives. Functions of
            # NumPy return a pandas frame with the same columns for a pandas frame.
            is_known = form.library in ("", "pandas") and is_elementwise(step.func, step.kw_args)
            if not (is_known and form.holds_numbers):
                return TableForm(
                    n_rows=form.n_rows, classes=form.classes, n_columns=output.n_columns
                )
            cells = kind_of(np.asarray(_of_one(step.func)).dtype)
            if form.library and not step.validate and library in ("", form.library):
                library = form.library
                names = form.names
        return replace(
            output,
            kinds=None if output.n_columns is None else (cells,) * output.n_columns,
            holds_numbers=cells == "number",
            library=library,
            names=names,
            has_names=None,
            is_sparse=self._makes_sparse(step, form),
        )

    def _makes_sparse(self, step, form):
        params = step.get_params(deep=False)
        sparse_output = params.get("sparse_output", params.get("sparse"))
        if isinstance(sparse_output, bool):
            return sparse_output
        # A step that refuses sparse tables never receives one.
        return {"kept": form.is_sparse, "made": True, "dense": False, "refused": False}[self.sparse]


@dataclass(frozen=True, eq=False)
class RawStep(FrozenValue):
    """A part of an estimator that learns from rows without privacy, or may do so.

    Parameters
    ----------
    name : str
        Name as in `set_params`; "" for the estimator itself.
    estimator : object
        An estimator, or the parameter by which a container learns.
    kind : str
        "learns", "resamples", "calibrates", "cross_validates" or "unknown"; see `REASONS`.
    advice : str
        Advice on a replacement.
    """

    name: str
    estimator: object
    kind: str
    advice: str


# Advice on replacements.
DECLARE = (
    "if what it makes of a row depends on that row alone, declare it by the attribute "
    "__skdp_kind__ = 'stateless' of its class; if its fit is charged, by 'private'"
)
MEMORY = (
    "use None: it keeps rows on disk, in clear, and a private step that is remembered makes "
    "the same release again if no row has changed, and so tells of each"
)
COLUMNS = (
    "list the columns, or choose them by make_column_selector, behind another step by "
    "pattern alone: pandas makes types of the values of what a function returns"
)
SELECTOR = (
    "select columns by name or by dtype: which columns are selected by cardinality, by missing "
    "values or by a function of one's own depends on the rows"
)
CALLBACKS = "it is given the rows and may keep them, or scores of them: ProgressBar keeps nothing"
WORDS = (
    "declare its categories as lists of words, without min_frequency and max_categories; "
    "for categories that are numbers use DPOneHotEncoder(categories=...), which charges "
    "nothing for them: scikit-learn's keep them in the column's type, which one missing value "
    "changes, so that the fitted encoder tells of it"
)
HASHES = (
    "it adds colliding numbers in an order that other rows decide, so that their sum may round "
    "differently: use input_type='string', or an integer dtype"
)
IMPUTER = (
    "use DPSimpleImputer, which charges nothing with strategy='constant'; SimpleImputer "
    "keeps a number in the column's type, which one missing value changes, and is accepted "
    "only for a word: strategy='constant', fill_value='?', keep_empty_features=True"
)
FUNCTION = (
    "use a ufunc of numpy or scipy without kw_args (np.clip and np.nan_to_num only in "
    "one of yours that makes the table an array of doubles first), or declare that yours "
    "treats each row by itself by its own attribute __skdp_kind__ = 'stateless'"
)
FUNCTION_INSTEAD = "use a FunctionTransformer of a function that declares what it does"
COLUMNS_INSTEAD = "choose columns by a ColumnTransformer, or before the pipeline"
DECLARED_COMPONENTS = "declare n_components as a number: 'auto' counts rows"
ENSEMBLE = (
    "a row is in several fits, or several times in one, and the ensemble sets and keeps the seeds "
    "of the noise: use DPRandomForestClassifier, DPRandomForestRegressor, an additive model "
    "(DPAdditiveClassifier, DPAdditiveRegressor), or VotingClassifier or VotingRegressor of "
    "private models, which fit each row once in each model"
)
RESAMPLER = (
    "leave it out: one person's row is repeated or moves others, so that its charge does not "
    "cover it; weigh rare classes by class_weight={label: weight} of the private model"
)
CALIBRATION = (
    "leave it out and use predict_proba of the private model, or fit it to rows that are public"
)
THRESHOLD = (
    "choose the threshold without looking at rows and set it by FixedThresholdClassifier, or "
    "weigh the classes by class_weight={label: weight} of the private model"
)
STACKING = (
    "give it a private final_estimator and cv='prefit' or cv=KFold(k, shuffle=True, "
    "random_state=0), or use VotingClassifier or VotingRegressor, whose last stage learns nothing"
)
SEARCH = (
    "use DPGridSearchCV or DPRandomizedSearchCV, or scoring=make_dp_scorer(...) with "
    "cv=KFold(k, shuffle=True, random_state=0)"
)
SELECTION = (
    "select features by SelectFromModel of a private model, or give it "
    "scoring=make_dp_scorer(...) and cv=KFold(k, shuffle=True, random_state=0)"
)
RAW_SELECTION = "select features by SelectFromModel of a private model, or list them"
FINAL_STAGE = (
    "its last stage is computed from raw rows: fit it to rows that are public, or release what it "
    "computes by functions of skdp.stats"
)
CHAIN = "use cv=None"
FRAMES = (
    "a data frame of what may be words takes its types from all cells, so that one changes "
    "the others: use set_output(transform='default')"
)
DENSITY = "sparse_output_ reveals an exact count: use sparse_threshold=0, or dense steps"
LOCAL = "each transform is a charge, predictions too; no plan of fits can hold it"
FROZEN = "name it in public_steps if what it makes of a row depends on that row alone"
FITTED = (
    "it has learned from rows that skdp does not know: if these were private, use a private step; "
    "if they were public, name it in public_steps of split_budget, or ignore this warning"
)
TARGETS = (
    "use a ufunc of numpy or scipy as func and inverse_func, or declare that yours treat each "
    "target by itself by their own attributes __skdp_kind__ = 'stateless'"
)


def _is_private_scorer(scoring):
    """Return True for a scorer of `make_dp_scorer`, by its name, as it cannot be imported here."""
    kind = type(scoring)
    return kind.__name__ == "DPScorer" and kind.__module__.startswith("skdp.")


# Splitters whose folds depend on row numbers alone, or on a keyed hash of a person's id.
INDEX_SPLITTERS = {
    "KFold",
    "RepeatedKFold",
    "ShuffleSplit",
    "LeaveOneOut",
    "TimeSeriesSplit",
    "PredefinedSplit",
    "PersonKFold",
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
    return type(cv).__name__ in INDEX_SPLITTERS


def _scores_privately(search):
    scoring = search.scoring
    scorers = list(scoring.values()) if isinstance(scoring, dict) else [scoring]
    if not scorers or not all(_is_private_scorer(scorer) for scorer in scorers):
        return False
    # The rows of a person must be in one fold.
    if any(terms_of(scorer.accountant).unit == "person" for scorer in scorers):
        return type(search.cv).__name__ == "PersonKFold"
    return has_index_folds(search.cv, search.estimator)


def _stacks_privately(stack):
    # "prefit" fits none of the estimators inside.
    prefit = isinstance(stack.cv, str)
    if stack.final_estimator is None or not (prefit or has_index_folds(stack.cv, stack)):
        return False
    return not find_raw_steps(stack.final_estimator)


def _transforms_targets_alone(regressor):
    # A transformer of the targets learns from them and is checked as a part.
    return treats_rows_alone(regressor.func) and treats_rows_alone(regressor.inverse_func)


def _uses_true_labels(chain):
    return chain.cv is None


# Conditions on parameters, and widths, of steps that learn nothing.


def _adds_in_fixed_order(hasher):
    # The order in which colliding features are added depends on whether the indices of other rows
    # are sorted.
    return hasher.input_type == "string" or np.dtype(hasher.dtype).kind in "iu"


def _fails_on_other_labels(encoder):
    if encoder.handle_unknown != "error":
        return ""
    ignoring = "use_encoded_value" if hasattr(encoder, "unknown_value") else "ignore"
    return f"an unknown category: use handle_unknown={ignoring!r}"


def _fails_beyond_knots(splines):
    if splines.extrapolation != "error":
        return ""
    return "a value beyond the knots: use another extrapolation"


def _fails_on_negative_numbers(sampler):
    return "a value of -skewedness or less: bound the values before"


def _fails_outside_domain(step):
    if not has_bounded_domain(step.func):
        return ""
    return "a value that its function turns to NaN or infinity: bound the values before"


def _hashed_width(hasher, d):
    return hasher.n_features


def _component_width(step, d):
    return int(step.n_components)


def _declares_components(step):
    return isinstance(step.n_components, Integral)


def _declares_gamma(sampler):
    return isinstance(sampler.gamma, Real)


def _declares_knots(splines):
    return np.ndim(splines.knots) == 2


def _marks_every_column(indicator):
    return indicator.features == "all"


def _declares_words(encoder):
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
    are_words = all(isinstance(v, str) or v is None or v is np.nan for v in labels)
    if isinstance(labels, str) or not are_words:
        return False
    return not any(_converts(labels, dtype) for dtype in ("f8", "c16", "i8", "?", "M8", "m8"))


def _converts(labels, dtype):
    try:
        values = np.array(list(labels), dtype=dtype)
    except (TypeError, ValueError):
        return False
    return len(np.unique(values)) == len(values)


def _indicator_width(encoder, d):
    sizes = [len(labels) for labels in encoder.categories]
    drop = encoder.drop
    if d is not None and len(sizes) != d:
        return None
    if drop is None or isinstance(drop, str):
        return sum(size - (drop == "first" or (bool(drop) and size == 2)) for size in sizes)
    return sum(sizes) - len(sizes) if all(v is not None for v in drop) else None


def _monomial_width(step, d):
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


def _spline_width(splines, d):
    n_knots, width = np.shape(splines.knots)
    degree = 0 if splines.extrapolation == "periodic" else splines.degree
    # The array of knots determines the number of columns.
    per_column = n_knots - 1 + degree - (not splines.include_bias)
    return width * per_column if d in (None, width) else None


def _fills_a_word(imputer):
    # One missing value can change the dtype of numbers. A string is always stored as an object.
    if not imputer.keep_empty_features or imputer.add_indicator:
        return False
    return imputer.strategy == "constant" and isinstance(imputer.fill_value, str)


def _has_row_function(step):
    return treats_rows_alone(step.func, step.kw_args) and treats_rows_alone(
        step.inverse_func, step.inv_kw_args
    )


def _function_width(step, d):
    # An array argument broadcasts a single column to several.
    keeps_width = d != 1 or type(step.func) is not partial
    return d if keeps_width and is_elementwise(step.func, step.kw_args) else None


def _of_one(function):
    """Return the value of an elementwise function (None: identity) at a table of one 1."""
    with np.errstate(all="ignore"):
        return np.ones((1, 1)) if function is None else function(np.ones((1, 1)))


def _rounds_rows_alone(step):
    return rounds_elements_alone(step.func)


def _reads_words_itself(vectorizer):
    has_functions = vectorizer.preprocessor is not None or vectorizer.tokenizer is not None
    if has_functions or callable(vectorizer.strip_accents):
        return False
    # With other inputs, two rows may refer to one file object, which can be read only once.
    return isinstance(vectorizer.analyzer, str) and vectorizer.input == "content"


def _selects_by_name_or_dtype(step):
    return not selects_by_values(step.cols)


def _unknown_width(step, d):
    return None


def _scales_by_largest(normalizer):
    # The other norms are sums, whose order of addition depends on the layout or the number of rows.
    return normalizer.norm == "max"


def _never(step):
    return False


def learns(private=None):
    """Return an entry for a class that learns, with the private class to use instead."""
    return Known(kind="learns", advice=f"use {private or 'a private one'}")


def wrapper(*inner):
    """Return an entry for a class that learns nothing beyond what its inner estimators learn."""
    return Known(kind="wrapper", inner=inner)


def ensemble(*inner):
    """Return an entry for a class that fits repeated rows."""
    return Known(kind="resamples", advice=ENSEMBLE, inner=inner)


def search(*inner, advice=SEARCH):
    """Return an entry for a class that selects by scores, which may be private."""
    return Known(
        kind="wrapper",
        condition=_scores_privately,
        otherwise="cross_validates",
        advice=advice,
        inner=inner,
    )


def stacking():
    """Return an entry for a class whose last stage is fitted to predictions of raw rows."""
    return Known(
        kind="wrapper",
        condition=_stacks_privately,
        otherwise="calibrates",
        advice=STACKING,
        inner=("estimators", "final_estimator"),
    )


def chain():
    """Return an entry for a class that predicts targets one after the other."""
    return Known(
        kind="wrapper",
        condition=_uses_true_labels,
        otherwise="calibrates",
        advice=CHAIN,
        inner=("estimator", "base_estimator"),
    )


# Keys are the public module and name of a class, or a module for all its other classes. Classes of
# modules without an entry are "unknown".
KNOWN = {
    # Containers, whose steps are checked one by one.
    "sklearn.pipeline.Pipeline": Known(kind="container", inner=("steps",)),
    "sklearn.pipeline.FeatureUnion": Known(kind="container", inner=("transformer_list",)),
    "sklearn.compose.ColumnTransformer": Known(
        kind="container", inner=("transformers", "remainder")
    ),
    "skdp.pipeline.SplitPipeline": Known(kind="container", inner=("steps",)),
    "skdp.pipeline.SplitFeatureUnion": Known(kind="container", inner=("transformer_list",)),
    "skdp.pipeline.SplitColumnTransformer": Known(
        kind="container", inner=("transformers", "remainder")
    ),
    "imblearn.pipeline.Pipeline": Known(kind="container", inner=("steps",)),
    # The kind depends on the frozen estimator and is determined before this table is read.
    "sklearn.frozen.FrozenEstimator": Known(kind="opaque", advice=FROZEN),
    # Steps of scikit-learn that learn nothing, at least with some parameters.
    "sklearn.feature_extraction.FeatureHasher": Known(
        kind="stateless",
        condition=_adds_in_fixed_order,
        advice=HASHES,
        width=_hashed_width,
        sparse="made",
    ),
    "sklearn.feature_extraction.text.HashingVectorizer": Known(
        kind="stateless",
        condition=_reads_words_itself,
        otherwise="unknown",
        advice="use input='content' and a named analyzer, without functions of your own",
        width=_hashed_width,
        sparse="made",
    ),
    "sklearn.impute.MissingIndicator": Known(
        kind="declared",
        condition=_marks_every_column,
        advice="use features='all'",
        cells="boolean",
        sparse="kept",
    ),
    "sklearn.impute.SimpleImputer": Known(
        kind="declared", condition=_fills_a_word, advice=IMPUTER, cells="cells"
    ),
    "sklearn.kernel_approximation.PolynomialCountSketch": Known(
        kind="declared", width=_component_width, sparse="dense", is_row_wise=_never
    ),
    "sklearn.kernel_approximation.RBFSampler": Known(
        kind="declared",
        condition=_declares_gamma,
        advice="declare gamma as a number: 'scale' is computed from the rows",
        width=_component_width,
        sparse="dense",
        is_row_wise=_never,
    ),
    "sklearn.kernel_approximation.SkewedChi2Sampler": Known(
        kind="declared",
        fails_on=_fails_on_negative_numbers,
        width=_component_width,
        is_row_wise=_never,
    ),
    "sklearn.preprocessing.Binarizer": Known(kind="stateless", sparse="kept"),
    "sklearn.preprocessing.FunctionTransformer": Known(
        kind="stateless",
        condition=_has_row_function,
        otherwise="unknown",
        advice=FUNCTION,
        fails_on=_fails_outside_domain,
        width=_function_width,
        # Its function may return another container than the one that it receives.
        cells="",
        sparse="kept",
        is_row_wise=_rounds_rows_alone,
    ),
    "sklearn.preprocessing.Normalizer": Known(
        kind="stateless", sparse="kept", is_row_wise=_scales_by_largest
    ),
    "sklearn.preprocessing.OneHotEncoder": Known(
        kind="declared",
        condition=_declares_words,
        advice=WORDS,
        fails_on=_fails_on_other_labels,
        width=_indicator_width,
    ),
    "sklearn.preprocessing.OrdinalEncoder": Known(
        kind="declared", condition=_declares_words, advice=WORDS, fails_on=_fails_on_other_labels
    ),
    "sklearn.preprocessing.PolynomialFeatures": Known(
        kind="declared", width=_monomial_width, sparse="kept"
    ),
    "sklearn.preprocessing.SplineTransformer": Known(
        kind="declared",
        condition=_declares_knots,
        advice="declare its knots",
        fails_on=_fails_beyond_knots,
        width=_spline_width,
    ),
    "sklearn.random_projection.GaussianRandomProjection": Known(
        kind="declared",
        condition=_declares_components,
        advice=DECLARED_COMPONENTS,
        width=_component_width,
        sparse="dense",
        is_row_wise=_never,
    ),
    "sklearn.random_projection.SparseRandomProjection": Known(
        kind="declared",
        condition=_declares_components,
        advice=DECLARED_COMPONENTS,
        width=_component_width,
        sparse="kept",
        is_row_wise=_never,
    ),
    # Steps of scikit-learn that learn from the rows, in modules in which other classes do not.
    "sklearn.feature_extraction.DictVectorizer": learns(),
    "sklearn.feature_extraction.image.PatchExtractor": Known(
        kind="resamples", advice="extract patches before, so that a row is one patch or image"
    ),
    "sklearn.feature_extraction.text.CountVectorizer": learns("HashingVectorizer"),
    "sklearn.feature_extraction.text.TfidfTransformer": learns("HashingVectorizer"),
    "sklearn.feature_extraction.text.TfidfVectorizer": learns("HashingVectorizer"),
    "sklearn.feature_selection.GenericUnivariateSelect": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.feature_selection.SelectFdr": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.feature_selection.SelectFpr": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.feature_selection.SelectFwe": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.feature_selection.SelectKBest": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.feature_selection.SelectPercentile": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.feature_selection.VarianceThreshold": Known(kind="learns", advice=RAW_SELECTION),
    "sklearn.impute.IterativeImputer": Known(kind="learns", advice="use DPSimpleImputer"),
    "sklearn.impute.KNNImputer": Known(kind="learns", advice="use DPSimpleImputer"),
    "sklearn.kernel_approximation.AdditiveChi2Sampler": learns(),
    "sklearn.kernel_approximation.Nystroem": learns("RBFSampler(gamma=...), a number"),
    "sklearn.preprocessing.KBinsDiscretizer": learns("DPKBinsDiscretizer"),
    "sklearn.preprocessing.KernelCenterer": learns(),
    "sklearn.preprocessing.LabelBinarizer": learns("DPOneHotEncoder(categories=...)"),
    "sklearn.preprocessing.LabelEncoder": learns("the parameter classes of the private model"),
    "sklearn.preprocessing.MaxAbsScaler": learns("DPMaxAbsScaler"),
    "sklearn.preprocessing.MinMaxScaler": learns("DPMinMaxScaler"),
    "sklearn.preprocessing.MultiLabelBinarizer": learns(),
    "sklearn.preprocessing.PowerTransformer": learns("DPQuantileTransformer"),
    "sklearn.preprocessing.QuantileTransformer": learns("DPQuantileTransformer"),
    "sklearn.preprocessing.RobustScaler": learns("DPRobustScaler"),
    "sklearn.preprocessing.StandardScaler": learns("DPStandardScaler"),
    "sklearn.preprocessing.TargetEncoder": learns("DPTargetEncoder"),
    # Modules of scikit-learn in which all classes without an entry learn from the rows.
    "sklearn.cluster": learns("DPKMeans"),
    "sklearn.covariance": learns("functions of skdp.stats"),
    "sklearn.cross_decomposition": learns("DPPCA"),
    "sklearn.decomposition": learns("DPPCA"),
    "sklearn.discriminant_analysis": learns("DPGaussianNB"),
    "sklearn.dummy": learns(),
    "sklearn.gaussian_process": learns(),
    "sklearn.isotonic": learns("DPAdditiveRegressor, with monotonic_cst"),
    "sklearn.kernel_ridge": learns("DPRidge"),
    "sklearn.linear_model": learns("DPLogisticRegression, DPRidge or another model of skdp"),
    "sklearn.manifold": learns("DPPCA"),
    "sklearn.mixture": learns("DPKMeans"),
    "sklearn.naive_bayes": learns("DPGaussianNB or DPHistogramNB"),
    "sklearn.neighbors": learns(),
    "sklearn.neural_network": learns("DPSGDClassifier or DPSGDRegressor"),
    "sklearn.semi_supervised": learns("DPLogisticRegression or another model of skdp"),
    "sklearn.svm": learns("DPLinearSVC or another model of skdp"),
    "sklearn.tree": learns("DPDecisionTreeClassifier or an additive model of skdp"),
    # Wrappers of scikit-learn that learn nothing beyond what their inner estimators learn.
    "sklearn.compose.TransformedTargetRegressor": Known(
        kind="wrapper",
        condition=_transforms_targets_alone,
        otherwise="unknown",
        advice=TARGETS,
        inner=("regressor", "transformer"),
        defaults={"regressor": LinearRegression},
    ),
    "sklearn.ensemble.VotingClassifier": wrapper("estimators"),
    "sklearn.ensemble.VotingRegressor": wrapper("estimators"),
    "sklearn.feature_selection.RFE": wrapper("estimator"),
    "sklearn.feature_selection.SelectFromModel": wrapper("estimator"),
    "sklearn.model_selection.FixedThresholdClassifier": wrapper("estimator"),
    "sklearn.multiclass.OneVsRestClassifier": wrapper("estimator"),
    "sklearn.multiclass.OutputCodeClassifier": wrapper("estimator"),
    "sklearn.multioutput.MultiOutputClassifier": wrapper("estimator"),
    "sklearn.multioutput.MultiOutputRegressor": wrapper("estimator"),
    "sklearn.multioutput.ClassifierChain": chain(),
    "sklearn.multioutput.RegressorChain": chain(),
    # Wrappers of scikit-learn that repeat or select training rows.
    "sklearn.ensemble.AdaBoostClassifier": ensemble("estimator"),
    "sklearn.ensemble.AdaBoostRegressor": ensemble("estimator"),
    "sklearn.ensemble.BaggingClassifier": ensemble("estimator"),
    "sklearn.ensemble.BaggingRegressor": ensemble("estimator"),
    "sklearn.linear_model.RANSACRegressor": Known(
        kind="resamples",
        advice="use DPRidge or DPLinearRegression, whose targets are clipped",
        inner=("estimator",),
    ),
    "sklearn.multiclass.OneVsOneClassifier": Known(
        kind="resamples",
        advice=(
            "each fit has the rows of two classes, whose number is a count that nothing protects: "
            "use OneVsRestClassifier"
        ),
        inner=("estimator",),
    ),
    "sklearn.semi_supervised.SelfTrainingClassifier": Known(
        kind="resamples",
        advice="it chooses the rows of later fits: leave it out, and fit the labeled rows",
        inner=("estimator", "base_estimator"),
    ),
    "sklearn.ensemble": learns("DPRandomForestClassifier or DPRandomForestRegressor"),
    # Wrappers of scikit-learn whose last stage, selection or score uses raw rows.
    "sklearn.calibration.CalibratedClassifierCV": Known(
        kind="calibrates", advice=CALIBRATION, inner=("estimator",)
    ),
    "sklearn.ensemble.StackingClassifier": stacking(),
    "sklearn.ensemble.StackingRegressor": stacking(),
    "sklearn.feature_selection.RFECV": search("estimator", advice=SELECTION),
    "sklearn.feature_selection.SequentialFeatureSelector": search("estimator", advice=SELECTION),
    "sklearn.model_selection.GridSearchCV": search("estimator"),
    "sklearn.model_selection.RandomizedSearchCV": search("estimator"),
    "sklearn.model_selection.HalvingGridSearchCV": Known(
        kind="cross_validates", advice=SEARCH, inner=("estimator",)
    ),
    "sklearn.model_selection.HalvingRandomSearchCV": Known(
        kind="cross_validates", advice=SEARCH, inner=("estimator",)
    ),
    "sklearn.model_selection.TunedThresholdClassifierCV": Known(
        kind="calibrates", advice=THRESHOLD, inner=("estimator",)
    ),
    # Other libraries.
    "boruta": Known(kind="cross_validates", advice=RAW_SELECTION, inner=("estimator",)),
    "catboost": learns("DPAdditiveClassifier or DPAdditiveRegressor"),
    "category_encoders": learns("DPOneHotEncoder or DPTargetEncoder"),
    "cleanlab": Known(
        kind="resamples",
        advice="it leaves out rows by what other rows say: fit the private model to all rows",
        inner=("clf",),
    ),
    "dask_ml.model_selection": Known(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    "dask_ml": learns(),
    "econml": Known(kind="calibrates", advice=FINAL_STAGE),
    "econml.metalearners.SLearner": wrapper("overall_model"),
    "econml.metalearners.TLearner": wrapper("models"),
    "econml.metalearners.XLearner": wrapper("models", "cate_models", "propensity_model"),
    "fairlearn.adversarial": learns(),
    "fairlearn.postprocessing": Known(kind="calibrates", advice=THRESHOLD, inner=("estimator",)),
    "fairlearn.preprocessing": learns(),
    "fairlearn.reductions": Known(
        kind="calibrates",
        advice="it weighs rows by violations that it counts: use class_weight={label: weight}",
        inner=("estimator",),
    ),
    "feature_engine": learns("DPTableVectorizer or another step of skdp"),
    "feature_engine.pipeline.pipeline.Pipeline": Known(kind="container", inner=("steps",)),
    "feature_engine.creation.MathFeatures": Known(kind="unknown", advice=FUNCTION_INSTEAD),
    "feature_engine.creation.RelativeFeatures": Known(kind="unknown", advice=FUNCTION_INSTEAD),
    "feature_engine.selection.DropFeatures": Known(kind="unknown", advice=COLUMNS_INSTEAD),
    "feature_engine.selection": Known(
        kind="cross_validates", advice=RAW_SELECTION, inner=("estimator",)
    ),
    "feature_engine.selection.RecursiveFeatureAddition": search("estimator", advice=SELECTION),
    "feature_engine.selection.RecursiveFeatureElimination": search("estimator", advice=SELECTION),
    "feature_engine.selection.SelectBySingleFeaturePerformance": search(
        "estimator", advice=SELECTION
    ),
    "imblearn": Known(kind="resamples", advice=RESAMPLER),
    "imblearn.ensemble": ensemble("estimator"),
    "lightgbm": learns("DPAdditiveClassifier or DPAdditiveRegressor"),
    "mapie": Known(
        kind="calibrates",
        advice="it keeps a raw residual of each row: fit it to rows that are public",
        inner=("estimator",),
    ),
    "mlxtend.classifier.EnsembleVoteClassifier": wrapper("clfs"),
    "mlxtend.classifier.StackingCVClassifier": Known(
        kind="calibrates", advice=STACKING, inner=("classifiers", "meta_classifier")
    ),
    "mlxtend.classifier.StackingClassifier": Known(
        kind="calibrates", advice=STACKING, inner=("classifiers", "meta_classifier")
    ),
    "mlxtend.regressor.StackingCVRegressor": Known(
        kind="calibrates", advice=STACKING, inner=("regressors", "meta_regressor")
    ),
    "mlxtend.regressor.StackingRegressor": Known(
        kind="calibrates", advice=STACKING, inner=("regressors", "meta_regressor")
    ),
    "mlxtend.preprocessing.CopyTransformer": Known(kind="stateless", sparse="kept"),
    "mlxtend.feature_selection.ColumnSelector": Known(kind="unknown", advice=COLUMNS_INSTEAD),
    "mlxtend.feature_selection": Known(
        kind="cross_validates", advice=RAW_SELECTION, inner=("estimator",)
    ),
    "mlxtend": learns(),
    "optuna": Known(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    "optuna_integration": Known(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    "pyod": learns(),
    "skopt": Known(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    "skrub": learns("DPTableVectorizer or another step of skdp"),
    "skrub.ApplyToCols": Known(kind="container", inner=("transformer",)),
    "skrub.ApplyToFrame": Known(kind="container", inner=("transformer",)),
    "skrub.DropCols": Known(
        kind="declared",
        condition=_selects_by_name_or_dtype,
        advice=SELECTOR,
        width=_unknown_width,
        sparse="kept",
    ),
    "skrub.SelectCols": Known(
        kind="declared",
        condition=_selects_by_name_or_dtype,
        advice=SELECTOR,
        width=_unknown_width,
        sparse="kept",
    ),
    "sklearn_genetic": Known(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    "tpot": Known(kind="cross_validates", advice=SEARCH),
    "tune_sklearn": Known(kind="cross_validates", advice=SEARCH, inner=("estimator",)),
    "umap": learns("DPPCA"),
    "xgboost": learns("DPAdditiveClassifier or DPAdditiveRegressor"),
}
UNKNOWN = Known(kind="unknown", advice=DECLARE)


@cache
def find_class(module, name):
    """Return the entry of the table for a class.

    Parameters
    ----------
    module, name : str
        The class's ``__module__`` and ``__name__``.

    Returns
    -------
    Known
        The entry with the longest matching name, or `UNKNOWN`.
    """
    # Libraries define their classes in private modules of public packages.
    packages = list(takewhile(lambda part: not part.startswith("_"), module.split(".")))
    paths = [".".join(packages[:n]) for n in range(len(packages), 0, -1)]
    keys = [f"{path}.{name}" for path in paths] + paths
    return next((KNOWN[key] for key in keys if key in KNOWN), UNKNOWN)


def find_entry(estimator):
    """Return the entry of the table for the class of an estimator, `UNKNOWN` for others."""
    return find_class(type(estimator).__module__, type(estimator).__name__)


def kind_by_table(estimator):
    """Return the kind of a step by its class and parameters, and advice on a replacement.

    Output settings and inner estimators are ignored.

    Parameters
    ----------
    estimator : estimator
        An estimator that is neither private nor frozen and does not declare its kind.

    Returns
    -------
    kind : str
        A key of `REASONS`.
    advice : str
    """
    entry = find_entry(estimator)
    try:
        fulfilled = entry.condition(estimator)
    except (TypeError, ValueError, AttributeError):
        # The condition cannot read the parameters; the class's own check refuses them.
        fulfilled = False
    return entry.kind if fulfilled else entry.otherwise, entry.advice


def accepted_entry(estimator):
    """Return the entry of a step that learns nothing with its parameters, or None.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None

    Returns
    -------
    Known or None
    """
    entry = find_entry(estimator)
    if entry.kind not in ("stateless", "declared"):
        return None
    return entry if kind_by_table(estimator)[0] == entry.kind else None


def find_raw_steps(estimator, with_fitted=False):
    """Return the parts of an estimator that learn from rows without privacy, or may do so.

    Nothing is fitted or copied. Private steps, steps that learn nothing, frozen steps and
    subclasses of skdp's estimators are omitted.

    Parameters
    ----------
    estimator : estimator
        A pipeline, a search or another estimator, fitted or not. It is looked at from outside,
        together with the estimators inside it.
    with_fitted : bool, default=False
        If True, frozen estimators and the model of a selection with ``prefit=True`` are included,
        with the kind "opaque".

    Returns
    -------
    list of RawStep
        From the outside in.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPLogisticRegression
    >>> from skdp.pipeline._known import find_raw_steps
    >>> for step in find_raw_steps(make_pipeline(StandardScaler(), DPLogisticRegression())):
    ...     print(step.name, "|", step.kind, "|", step.advice)
    standardscaler | learns | use DPStandardScaler
    """
    raw_steps = []
    _add_raw_steps(estimator, "", raw_steps, with_fitted)
    return raw_steps


def _add_raw_steps(estimator, name, raw_steps, with_fitted):
    # Some classes have no `get_params`, or other methods than steps have.
    is_part = is_step(estimator) or find_entry(estimator) is not UNKNOWN
    if not is_part or isinstance(estimator, PrivateEstimator):
        return
    if isinstance(estimator, FrozenEstimator):
        if with_fitted and find_raw_steps(estimator.estimator):
            raw_steps.append(RawStep(name, estimator, "opaque", FITTED))
        return
    kind = vars(type(estimator)).get("__skdp_kind__")
    advice = DECLARE
    if kind is None:
        kind, advice = kind_by_table(estimator)
    if kind not in (*ACCEPTED, "container", "wrapper", "local"):
        raw_steps.append(RawStep(name, estimator, kind, advice))
    for part, value, reason in _raw_choices(estimator):
        raw_steps.append(RawStep(join_names(name, part), value, "learns", reason))
    is_prefit = getattr(estimator, "prefit", None) is True
    earlier = []
    for part, inner in (*inner_parts(estimator), *candidates_of(estimator)):
        if is_prefit and is_estimator(inner):
            inner = FrozenEstimator(inner)
        # Behind private reports of the rows a step computes from these alone.
        if not (_ignores_targets(inner) and any(map(_reports_rows, earlier))):
            _add_raw_steps(inner, join_names(name, part), raw_steps, with_fitted)
        if hasattr(estimator, "steps"):
            earlier.append(inner)


def _reports_rows(step):
    """Return True for a step whose `transform` charges, so that its output may be published."""
    if isinstance(step, FrozenEstimator):
        step = step.estimator
    return isinstance(step, PrivateEstimator) and get_tags(step).non_deterministic


# An estimator's tags tell whether it requires targets, but not whether it reads optional ones.
IGNORE_TARGETS = frozenset(
    "sklearn.cluster sklearn.covariance sklearn.decomposition sklearn.manifold sklearn.mixture "
    "sklearn.impute.SimpleImputer sklearn.preprocessing.KBinsDiscretizer "
    "sklearn.preprocessing.MaxAbsScaler sklearn.preprocessing.MinMaxScaler "
    "sklearn.preprocessing.OneHotEncoder sklearn.preprocessing.OrdinalEncoder "
    "sklearn.preprocessing.PowerTransformer sklearn.preprocessing.QuantileTransformer "
    "sklearn.preprocessing.RobustScaler sklearn.preprocessing.SplineTransformer "
    "sklearn.preprocessing.StandardScaler".split()
)


def _ignores_targets(step):
    """Return True for a step of scikit-learn that ignores the targets."""
    module = type(step).__module__
    name = type(step).__name__
    package = ".".join(module.split(".")[:2])
    return package in IGNORE_TARGETS or f"{package}.{name}" in IGNORE_TARGETS


def _raw_choices(estimator):
    """Yield name, value and advice for parameters by which a container learns or stores rows."""
    if getattr(estimator, "memory", None) is not None and hasattr(estimator, "steps"):
        yield "memory", estimator.memory, MEMORY
    if isinstance(estimator, ColumnTransformer):
        for part in estimator.transformers:
            if callable(part[-1]) and type(part[-1]) is not make_column_selector:
                yield f"{part[0]}__columns", part[-1], COLUMNS
        if estimator.sparse_threshold and any(makes_sparse(p) for _, p in inner_parts(estimator)):
            yield "sparse_threshold", estimator.sparse_threshold, DENSITY
    elif is_skrub_container(estimator) and selects_by_values(estimator.cols):
        yield "cols", estimator.cols, SELECTOR
    for callback in raw_callbacks(estimator):
        yield "callbacks", callback, CALLBACKS


def candidates_of(search):
    """Yield the names of a search's parameters and the estimators that it tries for them.

    Parameters
    ----------
    search : estimator
        A search; for other estimators nothing is yielded.

    Yields
    ------
    name : str
    candidate : object
    """
    grids = getattr(search, "param_grid", getattr(search, "param_distributions", None))
    if isinstance(grids, dict):
        grids = [grids]
    if not isinstance(grids, list | tuple):
        return
    for grid in grids:
        for name, values in grid.items():
            # Other values are distributions, which are sampled.
            if isinstance(values, list | tuple | np.ndarray):
                for value in values:
                    yield f"estimator__{name}", value


def makes_sparse(estimator):
    """Return True if a step is known to return a sparse table for a dense one."""
    if isinstance(estimator, Pipeline):
        return bool(estimator.steps) and makes_sparse(estimator.steps[-1][1])
    if isinstance(estimator, FeatureUnion):
        return any(makes_sparse(part) for _, part in estimator.transformer_list)
    sparse_output = getattr(estimator, "sparse_output", None)
    return sparse_output is True or (
        sparse_output is None and find_entry(estimator).sparse == "made"
    )


# Selectors of skrub that use only names and dtypes.
SELECTORS = {"All", "Cols", "NameFilter"}
DTYPE_FILTERS = {"numeric", "integer", "float", "has_dtype", "any_date", "categorical", "boolean"}


def is_skrub_container(estimator):
    """Return True for skrub's `ApplyToCols` and `ApplyToFrame`."""
    return find_entry(estimator).inner == ("transformer",)


def selects_by_values(selector):
    """Return True if columns may be selected by the values of their cells.

    Parameters
    ----------
    selector : str, list of str or selector of skrub
        Selectors can be combined by operators.
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


def inner_parts(estimator):
    """Yield names and values of the steps, or other estimators, that an estimator fits.

    Parameters
    ----------
    estimator : estimator

    Yields
    ------
    name : str
        Name as in `set_params`.
    part : estimator, "passthrough", "drop" or None
        For a parameter that is None, the estimator that is fitted by default, if there is one.
    """
    entry = find_entry(estimator)
    if entry is UNKNOWN:
        yield from parts_of(estimator)
        return
    for name in entry.inner:
        value = getattr(estimator, name, None)
        if value is None and name in entry.defaults:
            value = entry.defaults[name]()
        if is_step(value):
            yield name, value
        if not isinstance(value, list | tuple):
            continue
        for part in value:
            # Steps are pairs (name, step), or triples that also contain columns.
            is_named = isinstance(part, list | tuple)
            yield (part[0], part[1]) if is_named else (name, part)


def join_names(*names):
    """Return the name of a nested estimator, as in `set_params`."""
    return "__".join(filter(None, names))
