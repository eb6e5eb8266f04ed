"""What fits do before their charge, for the errors that bad parameters and bad data raise."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from numbers import Real

import numpy as np
from joblib import parallel_config
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.base import NOTHING, guarantee_of
from skdp.impute import DPSimpleImputer
from skdp.model_selection._progress import quiet, silence
from skdp.pipeline._instances import of_skdp
from skdp.pipeline._kinds import estimators_in, is_estimator, plans_its_fit
from skdp.pipeline._steps import find_steps
from skdp.pipeline._verified import sklearn_name
from skdp.pipeline._widths import may_be_sparse, output_width

# How many rows are tried alone where an error can be that of the ones in a release's place.
ROWS_TRIED = 4
# Widths of which a model that refuses its parameters at every one is taken to refuse them at any.
WIDTHS_TRIED = (1, 10, 1000)
# Parameters that hold several values, none of which is of a column.
OF_NO_COLUMN = {"classes", "class_weight", "target_bounds"}
# Of a data frame some read the columns that they know by name, and functions may read any.
TAKE_OTHER_WIDTHS = {"", "ColumnTransformer", "FunctionTransformer"}


class _Charged(Exception):
    """Somebody else's step would charge now: everything before it is done."""


class _NoCharge:
    """An accountant that ends a fit at its first charge."""

    def __init__(self, terms, planned):
        self.terms, self.planned = terms, planned

    def check(self, plan):
        """Raise what a charge would: types of columns that a step changed may have a price."""
        if self.planned is not None:
            self.planned.price(plan.event, plan.epsilon, plan.delta, self.terms)

    def charge(self, event, **words):
        raise _Charged

    def __sklearn_clone__(self):
        return self


class _Rehearsed(TransformerMixin, BaseEstimator):
    """A private step that is fitted up to its charge, and makes ones of every row."""

    def __init__(self, estimator):
        # scikit-learn keeps what `set_output` was told among the attributes.
        vars(self).update(vars(estimator))
        self.estimator = estimator
        self.was_read = False

    def fit(self, X, y=None, **params):
        estimator, self.sparse_ = clone(self.estimator), may_be_sparse(self.estimator, issparse(X))
        # What transforms rows in its place, None for ones: nothing is released.
        self.fitted_ = None
        if of_skdp(estimator) and (plan := estimator._rehearse(X, y, **params)).event != NOTHING:
            estimator.accountant.check(plan)
            self.fitted_ = _filling_at_random(estimator, X)
        else:
            with suppress(_Charged):
                self.fitted_ = estimator.fit(X, y, **params)
        validate_data(self, X, reset=True, skip_check_array=True)
        return self

    def transform(self, X):
        if self.fitted_ is not None:
            self.was_read |= _fills_in(self.fitted_, X)
            return self.fitted_.transform(X)
        self.was_read = True
        shape = X.shape[0], self._width
        return csr_array(shape) if self.sparse_ else np.ones(shape)

    def get_feature_names_out(self, input_features=None):
        if self.fitted_ is not None:
            return self.fitted_.get_feature_names_out(input_features)
        names = getattr(self, "feature_names_in_", input_features)
        if names is None or len(names) != self._width:
            names = [f"x{j}" for j in range(self._width)]
        return np.asarray(names, dtype=object)

    def get_metadata_routing(self):
        return self.estimator.get_metadata_routing()

    @property
    def _width(self):
        width = output_width(self.estimator, self.n_features_in_)
        return 1 if width is None else width

    def __sklearn_clone__(self):
        return self


def _filling_at_random(estimator, X):
    """Return an imputer that fills in some category, None in the place of other steps.

    What is present comes out of it as it is, and the next step may refuse that. Where it would
    discover categories, a column's first one stands for them: nothing is released.
    """
    if not isinstance(estimator, DPSimpleImputer) or estimator.strategy != "most_frequent":
        return None
    imputer = clone(estimator).set_params(accountant=None)
    if estimator.categories is None:
        table, other = imputer._read(X), [imputer.fill_value or 0]
        columns = (table.column(j).whole().tolist() for j in range(table.shape[1]))
        found = ([v for v in column if isinstance(v, str | Real) and v == v] for column in columns)
        imputer.set_params(categories=[(values or other)[:1] for values in found])
    imputer.fit(np.full((1, X.shape[1]), None, dtype=object))
    validate_data(imputer, X, reset=True, skip_check_array=True)
    return imputer


def _fills_in(stand_in, X):
    """Say whether a stand-in's guess is in what it makes; other steps release nothing, and know."""
    if not isinstance(stand_in, DPSimpleImputer) or stand_in.strategy != "most_frequent":
        return False
    marked = copy(stand_in).set_params(add_indicator=True).transform(X)
    return bool(np.asarray(marked)[:, X.shape[1] :].any())


def rehearse(pipeline, guarantee, rows, terms, charges=None):
    """Do what each private step does before its charge, for the errors that it raises.

    Nothing is released, and nothing is kept. What a private transformer will make is not known
    before its charge: in its place the steps behind it read ones.

    Parameters
    ----------
    pipeline : skdp.pipeline.PipelinePlan
    guarantee : Guarantee
        What the steps share.
    rows : Rows
    terms : Terms
    charges : tuple of PlannedCharge, default=None
        Of the steps' fits to so many rows; None asks no step whether it keeps to them.

    Raises
    ------
    ValueError
        Whatever a step raises before it charges, unless the ones alone can be the cause.
    """

    def fit(model, rows):
        steps = find_steps(pipeline.pipe)
        # Of somebody else's it is not known whether they write into the rows that they are given.
        if any(is_estimator(s.estimator) and not of_skdp(s.estimator) for s in steps):
            rows = rows.take(np.arange(rows.n_units))
        with silence(), parallel_config("sequential"):
            rows.fit(model)

    charges = charges or [None] * len(pipeline.steps)
    model = _rehearsed(pipeline, guarantee, terms, charges)
    try:
        fit(model, rows)
    except Exception as error:
        read_ones = _guesses_are_read(model)
        # Other numbers than ones are refused like them if their type is.
        typed = isinstance(error, TypeError) and all(map(_makes_numbers, pipeline.steps))
        if not read_ones or typed or _ones_are_read(pipeline, rows.X):
            raise
        for part in model.get_params().values():
            if isinstance(part, _Rehearsed) and get_tags(part.estimator).target_tags.required:
                _check_targets(part.estimator, rows.y)
        for row in np.linspace(0, len(rows.y) - 1, ROWS_TRIED).astype(int):
            # The ones are in every row: if a table of this row alone is read, so are they.
            alone = rows.take_rows(np.full(len(rows.y), row))
            model = _rehearsed(pipeline, guarantee, terms, charges)
            try:
                fit(model, alone)
            except Exception as again:
                if _guesses_are_read(model) or repr(again) != repr(error):
                    continue
            raise


def _guesses_are_read(model):
    return any(getattr(part, "was_read", False) is True for part in model.get_params().values())


def _check_targets(estimator, y):
    """Raise what a step of skdp says of its targets and parameters, whatever the rows hold."""
    if not (hasattr(estimator, "_read_table") and plans_its_fit(estimator)):
        return
    estimator = clone(estimator)
    shape, errors = estimator._read_table(np.ones((len(y), 1)), y).shape, []
    for width in WIDTHS_TRIED:
        try:
            estimator.plan_fit(replace(shape, n_columns=width, names=None), guarantee_of(estimator))
        except ValueError as error:
            errors.append(error)
    params = estimator.get_params(deep=False).items()
    several = {name for name, v in params if np.iterable(v) and not isinstance(v, str)}
    if len(errors) == len(WIDTHS_TRIED) and several <= OF_NO_COLUMN:
        raise errors[0]


def _rehearsed(pipeline, guarantee, terms, charges):
    """Return the pipeline with each private step replaced."""
    handles = [_NoCharge(terms, planned) for planned in charges]
    model = quiet(pipeline.with_budget(guarantee.epsilon, guarantee.delta, handles))
    parts = model.get_params()
    if pipeline.steps[0].name == "":
        return _Rehearsed(model)
    return model.set_params(**{s.name: _Rehearsed(parts[s.name]) for s in pipeline.steps})


def _makes_numbers(step):
    return of_skdp(step.estimator) and not isinstance(step.estimator, DPSimpleImputer)


def _ones_are_read(pipeline, X):
    """Say whether ones in the place of what private steps make are sure to be read.

    So it is if nothing but private steps reads them, as many as the release, and in no chosen
    columns.
    """
    steps = find_steps(pipeline.pipe, X.shape[1])
    private = {step.name: step for step in steps if step.kind == "private"}
    for step in steps:
        before = [private[name] for name in step.before if name in private]
        computes = step.kind != "private" and is_estimator(step.estimator)
        unknown = any(output_width(part.estimator, part.n_features) is None for part in before)
        if before and (computes or step.columns or unknown):
            return False
    return True


def check_frozen(pipe, X):
    """Refuse what is frozen unfitted or of another width: it reads rows after the charge alone.

    Raises
    ------
    ValueError
    """
    for step in find_steps(pipe, *X.shape[1:2]):
        if isinstance(step.estimator, FrozenEstimator):
            check_is_fitted(step.estimator)
            names = {sklearn_name(part) for part in estimators_in(step.estimator, set())}
            widths = {step.n_features, getattr(step.estimator, "n_features_in_", None)} - {None}
            if len(widths) > 1 and not names & TAKE_OTHER_WIDTHS:
                raise ValueError(f"{step.title!r} was fitted to another width: {widths}")


def rehearse_runs(plan, rows, terms):
    """Rehearse each candidate on its smallest training set.

    All were rehearsed on all rows before the plan was made. Where that says everything they are
    not fitted again.

    Parameters
    ----------
    plan : SearchPlan
    rows : Rows
    terms : Terms

    Raises
    ------
    ValueError
        Whatever `rehearse` raises, or if so many scores cannot be released.
    """
    plan.noisy.check_size(plan.released_together)
    train = plan.layout.splits.train
    # A table whose rows cannot be taken by number is refused here, before the charge.
    rows.take(train[0])
    for candidate, splits in enumerate(plan.layout.of_candidate):
        smallest = min(splits, key=lambda s: len(train[s]))
        fit = plan.runs[candidate, smallest]
        if not _is_planned(fit.pipeline):
            own = rows.take(train[smallest])
            rehearse(fit.pipeline, fit.guarantee, own, terms, fit.charges)


def _is_planned(pipeline):
    """Say whether a plan and the reading of all rows raise whatever a fit to some of them would.

    So it is if there are only steps of skdp one behind the other, of known widths: these read
    each row by itself, and the plan has asked each of them what the number of rows and the budget
    decide.
    """
    pipe = pipeline.pipe
    parts = [part for _, part in pipe.steps] if type(pipe) is Pipeline else [pipe]
    return all(map(of_skdp, parts)) and all(
        step.n_features is not None and plans_its_fit(step.estimator) for step in pipeline.steps
    )
