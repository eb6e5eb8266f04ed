"""Containers of scikit-learn whose fits check every step before the first charge."""

from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_tb

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp.base import terms_of
from skdp.pipeline._fit_params import check_fit_params, groups_of_steps
from skdp.pipeline._instances import fitted_params
from skdp.pipeline._kinds import is_private
from skdp.pipeline._known import find_entry, find_raw_steps
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._planning import check_accepted
from skdp.pipeline._selectable import check_selectable
from skdp.pipeline._steps import find_steps
from skdp.pipeline._trial import read_raw_cells
from skdp.utils._callers import register_step_reader
from skdp.utils._fit_arguments import forget_fitted
from skdp.utils._frames import check_names_differ
from skdp.utils._values import FrozenValue

# Private fits look at the pipelines around them, and stand below this package.
register_step_reader(find_raw_steps)

NO_COLUMNS = (
    "the steps of the ColumnTransformer made no column, as no category was found. What was "
    "charged stays charged. Declare the categories, or give DPOneHotEncoder(other=...) a label "
    "for all others, which has a column in any case"
)


@dataclass(frozen=True)
class BudgetPlan(FrozenValue):
    """What `split_budget` planned without an accountant, for reports.

    Parameters
    ----------
    planned : tuple of PlannedCharge
        What each private step was given.
    epsilon, delta : float
        What all of them cost together.
    """

    planned: tuple
    epsilon: float
    delta: float


class CheckedFitsMixin:
    """Fits that check all steps, their parameters and the raw cells before the first charge.

    The steps of a plan can be replaced by `set_params`, or by a search. So each fit judges those
    that are there now, as the plan judged those that were there then.

    Attributes
    ----------
    checks_fits : bool
        False in a trial of the fit.
    judges_steps : bool
        False in any trial, whose steps are readers in the place of those that will be fitted.
    """

    checks_fits = True
    judges_steps = True
    # What the plan was told: the names of steps that learn, and need no protection.
    _public_steps = ()
    # All private steps were planned together, before any of them ran, for the price of this plan.
    # None where a ledger has it, or where there is one step.
    _budget_plan = None

    def _fit_checked(self, fit, X, y, params):
        if self.checks_fits:
            try:
                if self.judges_steps:
                    self._check_steps()
                check_names_differ(X)
                check_selectable(self, X)
                check_fit_params(self, params)
                check_parameters(self, PublicTable.of_fit(self, X, y, params))
                read_raw_cells(self, X, y, params)
            except Exception:
                # As any refused fit, it leaves no model of an earlier one.
                self._forget_fits()
                raise
        with no_columns_named():
            return fit(X, y, **params)

    def _forget_fits(self):
        """Delete the fitted attributes of this container and of its private steps.

        Frozen models stay: they are not fitted again, and were paid for.
        """
        for part in (self, *filter(is_private, fitted_params(self).values())):
            forget_fitted(part)

    def _check_steps(self):
        """Refuse steps that learn without privacy, or charge nothing beside steps of a plan."""
        accountants = fitted_params(self, "accountant").values()
        by_person = any(terms_of(each).unit == "person" for each in accountants)
        steps = find_steps(self, by_person=by_person)
        # A step that was declared public may have been taken out.
        names = {name for step in steps for name in (step.name, step.title)}
        check_accepted(steps, [name for name in self._public_steps if name in names])
        private = [step for step in steps if step.kind == "private"]
        if any(hasattr(step.params["accountant"], "reservation") for step in private):
            for step in private:
                if step.params["accountant"] is None:
                    raise ValueError(
                        f"step {step.title!r} was put into a plan and has accountant=None, so that "
                        "nothing would charge it: make the plan again, of the new steps"
                    )

    def __sklearn_clone__(self):
        return self._judged_likewise(super().__sklearn_clone__())

    def _judged_likewise(self, other):
        other._public_steps = self._public_steps
        other.judges_steps = self.judges_steps
        other._budget_plan = self._budget_plan
        return other

    def fit(self, X, y=None, **params):
        return self._fit_checked(super().fit, X, y, params)

    def fit_transform(self, X, y=None, **params):
        return self._fit_checked(super().fit_transform, X, y, params)


@contextmanager
def no_columns_named():
    """Raise a `ValueError` that says what happened where a `ColumnTransformer` made no column."""
    try:
        yield
    except ZeroDivisionError as error:
        if _is_of_column_transformer(error):
            # It divides by the number of cells, to find the density of a sparse table.
            raise ValueError(NO_COLUMNS) from error
        raise


def _is_of_column_transformer(error):
    """Return whether a `ColumnTransformer` raised an error itself, and no step inside it."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == ColumnTransformer.__module__


class SplitPipeline(CheckedFitsMixin, Pipeline):
    """A `Pipeline` whose fits check all steps before the first one runs."""

    def __getitem__(self, ind):
        found = super().__getitem__(ind)
        return self._judged_likewise(found) if isinstance(ind, slice) else found

    def fit_predict(self, X, y=None, **params):
        return self._fit_checked(super().fit_predict, X, y, params)

    def _fit_checked(self, fit, X, y, params):
        return super()._fit_checked(fit, X, y, groups_of_steps(self, params))


class SplitFeatureUnion(CheckedFitsMixin, FeatureUnion):
    """A `FeatureUnion` whose fits check all parts before the first one runs."""


class SplitColumnTransformer(CheckedFitsMixin, ColumnTransformer):
    """A `ColumnTransformer` whose fits check all parts before the first one runs."""

    # It calls `fit_transform`, which checks.
    fit = ColumnTransformer.fit


CHECKED = {
    Pipeline: SplitPipeline,
    FeatureUnion: SplitFeatureUnion,
    ColumnTransformer: SplitColumnTransformer,
}


def with_checked_fits(pipe, public_steps=(), budget_plan=None):
    """Return a container whose fits check all steps and their parameters first.

    Parameters
    ----------
    pipe : estimator
        Not fitted. One that is no container checks its parameters itself.
    public_steps : sequence of str, default=()
        The names of steps that learn from data, declared not to need protection.
    budget_plan : BudgetPlan, default=None
        What the steps were planned to cost.

    Returns
    -------
    estimator
        With the same steps and settings.
    """
    kind = CHECKED.get(type(pipe))
    if kind is None and isinstance(pipe, Pipeline) and find_entry(pipe).kind == "container":
        # imbalanced-learn's. Without resamplers, which no plan accepts, it does the same.
        kind = SplitPipeline
    if kind is None:
        return pipe
    checked = kind(**pipe.get_params(deep=False))
    # `set_output` and requests for metadata are kept beside the parameters.
    vars(checked).update(vars(pipe))
    checked._public_steps = tuple(public_steps)
    checked._budget_plan = budget_plan
    return checked
