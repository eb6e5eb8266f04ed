"""What fits do before their charge, for the errors that bad parameters and bad data raise."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
from joblib import parallel_config
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from skdp.accounting._state import NotCopied
from skdp.base import NOTHING, guarantee_of
from skdp.model_selection._candidates import quiet, silence
from skdp.pipeline._instances import gives_numbers, of_skdp
from skdp.pipeline._kinds import is_estimator, plans_its_fit
from skdp.pipeline._steps import find_steps
from skdp.pipeline._verified import fails_on, verified
from skdp.pipeline._widths import output_width, sparsity

# Widths of which a model that refuses its parameters at every one is taken to refuse them at any.
WIDTHS_TRIED = (1, 10, 1000)
# Parameters that hold several values, none of which is of a column.
OF_NO_COLUMN = {"classes", "class_weight", "target_bounds"}


class _Charged(Exception):
    """Somebody else's step would charge now: everything before it is done."""


class _NoCharge(NotCopied):
    """An accountant, of a step of a plan, that ends a fit at its first charge."""

    planned = None

    def __init__(self, terms):
        self.terms = terms

    def charge(self, event, **words):
        raise _Charged


class _Rehearsed(NotCopied, TransformerMixin, BaseEstimator):
    """A private step that is fitted up to its charge, and makes ones of every row."""

    def __init__(self, estimator, planned, raises):
        # scikit-learn keeps what `set_output` was told among the attributes.
        vars(self).update(vars(estimator))
        self.estimator, self.planned, self.raises = estimator, planned, raises
        self.reads = self.has_made = False

    def fit(self, X, y=None, **params):
        self.reads, self.sparse_ = True, sparsity(self.estimator) == "made"
        try:
            self._fit(X, y, **params)
        except self.raises:
            raise
        except Exception:
            _check_targets(self.estimator, y)
        validate_data(self, X, reset=True, skip_check_array=True)
        self.reads = False
        return self

    def _fit(self, X, y, **params):
        if not of_skdp(self.estimator):
            with suppress(_Charged):
                self.estimator.fit(X, y, **params)
            return
        plan = self.estimator._rehearse(X, y, **params)
        # Types of columns that a step changed may have another price.
        if self.planned is not None and plan.event != NOTHING:
            terms = self.estimator.accountant.terms
            self.planned.price(plan.event, plan.epsilon, plan.delta, terms)

    def transform(self, X):
        self.has_made = True
        shape = X.shape[0], self._width
        return csr_array(shape) if self.sparse_ else np.ones(shape)

    def get_feature_names_out(self, input_features=None):
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


def rehearse(pipeline, guarantee, rows, charges=None):
    """Do what each private step does before its charge, for the errors that it raises.

    Nothing is released, and nothing is kept. What a private transformer will make is not known
    before its charge: in its place the steps behind it read ones, and what those raise ends the
    rehearsal if the ones may be its cause.

    Parameters
    ----------
    pipeline : skdp.pipeline.PipelinePlan
    guarantee : Guarantee
        What the steps share.
    rows : Rows
    charges : tuple of PlannedCharge, default=None
        Of the steps' fits to so many rows; None asks no step whether it keeps to them.

    Raises
    ------
    ValueError
        Whatever a step raises before it charges, unless the ones may be the cause; targets and
        parameters that a step of skdp refuses in any case.
    """
    steps = find_steps(pipeline.pipe, rows.n_columns)
    # Of somebody else's it is not known whether they write into the rows that they are given.
    if any(is_estimator(step.estimator) and not of_skdp(step.estimator) for step in steps):
        rows = rows.take(np.arange(rows.n_units))
    charges = charges or [None] * len(pipeline.steps)
    handles = [_NoCharge(rows.terms)] * len(pipeline.steps)
    model = quiet(pipeline.with_budget(guarantee.epsilon, guarantee.delta, handles))
    parts = model.get_params()
    parts = {
        step.name: _Rehearsed(parts[step.name] if step.name else model, planned, raises)
        for step, planned in zip(pipeline.steps, charges, strict=True)
        for raises in [_not_by_ones(steps, {step.name, *step.before})]
    }
    model = parts[""] if "" in parts else model.set_params(**parts)
    try:
        with silence(), parallel_config("sequential"):
            rows.fit(model)
    except Exception as error:
        made = any(part.has_made for part in parts.values())
        refused = any(part.reads for part in parts.values())
        if refused or not made or isinstance(error, _not_by_ones(steps)):
            raise
        for part in parts.values():
            _check_targets(part.estimator, rows.y)


def _check_targets(estimator, y):
    """Raise what a step of skdp says of its targets and parameters, whatever the rows hold."""
    reads = get_tags(estimator).target_tags.required and hasattr(estimator, "_read_table")
    if not (reads and plans_its_fit(estimator)):
        return
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


def _not_by_ones(steps, way=None):
    """Return the errors of which ones in the place of releases are sure to be no cause.

    So are all if the release is as many numbers, and is read, in columns that were chosen before
    it, by steps of skdp and verified ones that no number makes fail. Other numbers than ones
    are refused like them if their type is.

    Parameters
    ----------
    steps : list of Step
    way : set of str, default=None
        The names of those that read; None takes all.

    Returns
    -------
    tuple of type
    """
    private = {step.name: step for step in steps if step.kind == "private"}
    errors = (Exception,)
    for step in steps:
        before = [private[name] for name in step.before if name in private]
        if not before or (way and step.name not in way) or not is_estimator(step.estimator):
            continue
        if not all(of_skdp(part.estimator) and gives_numbers(part.estimator) for part in before):
            return ()
        chosen = {step.columns} - {"", *(part.columns for part in before)}
        trusted = of_skdp(step.estimator) or verified(step.estimator)
        if chosen or step.n_features is None or not trusted or fails_on(step.estimator):
            errors = (TypeError,)
    return errors


def rehearse_runs(plan, rows):
    """Rehearse each candidate on its smallest training set.

    All were rehearsed on all rows before the plan was made. Where that says everything they are
    not fitted again.

    Parameters
    ----------
    plan : SearchPlan
    rows : Rows

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
        # Steps of skdp read each row by itself. Where their widths are known, the plan has asked
        # each of them what the number of rows and the budget decide.
        planned = all(
            of_skdp(step.estimator) and step.n_features and plans_its_fit(step.estimator)
            for step in find_steps(fit.pipeline.pipe, rows.n_columns)
        )
        if not planned:
            rehearse(fit.pipeline, fit.guarantee, rows.take(train[smallest]), fit.charges)
