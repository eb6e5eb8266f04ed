"""scikit-learn containers whose fits call the checks of other modules before the first charge.

`skdp.pipeline._parameters` checks the parameters, and `skdp.pipeline._known` the kinds of steps.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from traceback import walk_tb

from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from skdp._data._chunked import ChunkedArray
from skdp._data._frames import check_names_differ
from skdp._data._labels import category_codes
from skdp._data._lengths import computed_column, opened_table, shape_of
from skdp._data._tables import check_not_empty, target_array
from skdp._fitting._fit_context import forget_fitted
from skdp._fitting._members import register_member_check, register_parameter_check
from skdp._fitting._raw_parts import register_plan_reader, register_step_reader
from skdp._reports._line import PrivacyLineMixin
from skdp._tools._registry import find_entry
from skdp.base import terms_of
from skdp.mechanisms._randomized_response import categories_array
from skdp.pipeline._fit_params import params_of_steps, routed_groups
from skdp.pipeline._instances import fitted_params, step_message
from skdp.pipeline._kinds import is_private
from skdp.pipeline._known import find_raw_steps
from skdp.pipeline._members import check_members, check_tool
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._planning import check_accepted, refusal_of_steps
from skdp.pipeline._selectable import check_selectable
from skdp.pipeline._steps import find_steps
from skdp.pipeline._trial import read_raw_cells
from skdp.utils._values import FrozenValue

# Private fits inspect the pipelines around them, but must not import this package.
register_step_reader(find_raw_steps)
register_plan_reader(refusal_of_steps)
register_member_check(check_tool)
register_parameter_check(check_members)

NO_COLUMNS = (
    "a step returned no columns, because no category was found or frequent enough. Charges are not "
    "refunded. Declare the categories, or pass a label for all others to "
    "DPOneHotEncoder(other=...), which always has a column"
)


@dataclass(frozen=True)
class BudgetPlan(FrozenValue):
    """Plan of `split_budget` without an accountant, for reports.

    Parameters
    ----------
    planned : tuple of PlannedCharge
        Planned charge of each private step.
    epsilon, delta : float
        Cost of all steps together.
    """

    planned: tuple
    epsilon: float
    delta: float


class CheckedFitsMixin(PrivacyLineMixin):
    """Mixin whose fits check all steps, parameters and raw cells before the first charge.

    The steps of a plan can be replaced with `set_params`, or by a search. So each fit checks its
    current steps, just as the plan checked the original ones.

    Attributes
    ----------
    checks_fits : bool
        False in a dry run of the fit.
    judges_steps : bool
        False in a dry run, in which readers replace the steps.
    """

    checks_fits = True
    judges_steps = True
    # Names of steps that learn from data and are declared public.
    _public_steps = ()
    # Plan of `split_budget` without an accountant, for reports: the charges of all private steps,
    # or of the only one. None with an accountant, whose ledger contains the plan, and for
    # containers without a common budget.
    _budget_plan = None
    # True if the steps of the original plan had an accountant.
    _has_accountant = False
    # The labels of y for which the plan was made; None if they were not declared.
    _classes = None

    def _fit_checked(self, fit, X, y, params):
        """Call a fit with the routed persons, after the checks unless in a dry run."""
        with routed_groups(self, params) as received:
            if self.checks_fits:
                return self._check_and_fit(fit, X, y, received)
            with no_columns_named():
                return fit(X, y, **received)

    def _check_and_fit(self, fit, X, y, params):
        """Check all steps, and run a fit.

        Parameters
        ----------
        fit : callable
            The bound method of scikit-learn, `fit` or another one that fits.
        X, y : array-like
        params : dict
            Further arguments of the fit, as routed.

        Returns
        -------
        object
            The output of the method.
        """
        table = X
        is_fitted = False
        try:
            if self.judges_steps:
                self.check_steps()
                self._check_list(X)
            check_names_differ(X)
            check_selectable(self, X)
            # Lazy data are computed once for all steps: a lazy plan that samples or shuffles would
            # yield different rows each time, and lengths must be known before the first charge.
            table = opened_table(X)
            if len(shape_of(table)) == 2:
                check_not_empty(shape_of(table), X)
            y = computed_column(y)
            self._check_labels(y)
            params = {name: computed_column(value) for name, value in params.items()}
            step_params = params_of_steps(self, params, fit.__name__)
            check_parameters(self, PublicTable.of_fit(self, table, y, step_params))
            read_raw_cells(self, table, y, params)
        except Exception:
            # After a refused fit, the model of an earlier fit must not remain.
            self._forget_fits()
            _close_opened(table, X)
            raise
        try:
            with no_columns_named():
                output = fit(table, y, **params)
            is_fitted = True
            return output
        finally:
            # A lazy output reads the table later, so the table's file is removed only with its last
            # reference.
            if not (is_fitted and isinstance(output, ChunkedArray)):
                _close_opened(table, X)

    def _check_labels(self, y):
        """Raise `ValueError` if y has a label for which the plan was not made.

        The noise of the steps was planned for the classes that were declared to `split_budget`. The
        final step refuses a y that is not one-dimensional if it cannot read it.
        """
        if self._classes is None or y is None:
            return
        labels = target_array(y)
        if labels.ndim == 1 and (category_codes(labels, categories_array(self._classes)) < 0).any():
            raise ValueError(
                f"y has labels that the plan's classes {list(self._classes)!r} do not contain: "
                "split the budget again, with classes=[...] of all labels"
            )

    def _forget_fits(self):
        """Delete the fitted attributes of this container and of its private steps.

        Frozen models are kept: they were charged earlier and are not fitted again.
        """
        for part in (self, *filter(is_private, fitted_params(self).values())):
            forget_fitted(part)

    def check_steps(self):
        """Raise `ValueError` for steps that learn without privacy or without a charge."""
        accountants = fitted_params(self, "accountant").values()
        by_person = any(terms_of(accountant).unit == "person" for accountant in accountants)
        steps = find_steps(self, by_person=by_person)
        # A step that was declared public may have been removed.
        names = {name for step in steps for name in (step.name, step.title)}
        check_accepted(steps, [name for name in self._public_steps if name in names])
        private = [step for step in steps if step.kind == "private"]
        has_reservation = any(hasattr(step.params["accountant"], "reservation") for step in private)
        if has_reservation or self._has_accountant:
            for step in private:
                if step.params["accountant"] is None:
                    raise ValueError(
                        f"step {step.title!r} was put into a plan and has accountant=None, so its "
                        "fit would not be charged: split the budget again, with the new steps"
                    )

    def _check_list(self, X):
        """Raise `ValueError` if the types that NumPy infers for a list of rows change a step."""
        if not isinstance(X, list | tuple):
            return
        others = {step.name for step in find_raw_steps(self)}
        for step in find_raw_steps(self, is_list=True):
            if step.name not in others:
                raise ValueError(step_message(step.name, step.advice))

    def __sklearn_clone__(self):
        return self._copy_settings_to(super().__sklearn_clone__())

    def _copy_settings_to(self, other):
        """Return another container with this one's settings for the checks."""
        other._public_steps = self._public_steps
        other.judges_steps = self.judges_steps
        other._budget_plan = self._budget_plan
        other._has_accountant = self._has_accountant
        other._classes = self._classes
        return other

    def fit(self, X, y=None, **params):
        return self._fit_checked(super().fit, X, y, params)

    def fit_transform(self, X, y=None, **params):
        return self._fit_checked(super().fit_transform, X, y, params)


def _close_opened(table, X):
    """Remove the temporary files of a table that was opened for a fit to X."""
    if table is not X and isinstance(table, ChunkedArray):
        table.close()


@contextmanager
def no_columns_named():
    """Replace an error about a table without columns, which a step returned, with a clear one.

    Tables that the check before the charge finds without columns are not fitted.
    """
    try:
        yield
    except ValueError as error:
        if str(error).startswith("Found array with 0 feature(s)"):
            raise ValueError(NO_COLUMNS) from error
        raise
    except ZeroDivisionError as error:
        if _is_of_column_transformer(error):
            # scikit-learn divides by the number of cells to compute the density of a sparse table.
            raise ValueError(NO_COLUMNS) from error
        raise


def _is_of_column_transformer(error):
    """Return True if a `ColumnTransformer` raised an error itself, rather than a step inside it."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_globals.get("__name__") == ColumnTransformer.__module__


class SplitPipeline(CheckedFitsMixin, Pipeline):
    """A `Pipeline` whose fits check all steps before the first one runs."""

    def __getitem__(self, ind):
        item = super().__getitem__(ind)
        return self._copy_settings_to(item) if isinstance(ind, slice) else item

    def fit_predict(self, X, y=None, **params):
        return self._fit_checked(super().fit_predict, X, y, params)


class SplitFeatureUnion(CheckedFitsMixin, FeatureUnion):
    """A `FeatureUnion` whose fits check all parts before the first one runs."""


class SplitColumnTransformer(CheckedFitsMixin, ColumnTransformer):
    """A `ColumnTransformer` whose fits check all parts before the first one runs."""

    def fit(self, X, y=None, **params):
        with routed_groups(self, params) as received:
            # The original method calls `fit_transform`, which runs the checks.
            return ColumnTransformer.fit(self, X, y, **received)


CHECKED = {
    Pipeline: SplitPipeline,
    FeatureUnion: SplitFeatureUnion,
    ColumnTransformer: SplitColumnTransformer,
}


def with_checked_fits(pipe, public_steps=(), budget_plan=None, classes=None):
    """Return a container whose fits check all steps and their parameters first.

    Parameters
    ----------
    pipe : estimator
        An unfitted estimator. If it is not a container, it is returned unchanged.
    public_steps : sequence of str, default=()
        Names of steps that learn from data and are declared public.
    budget_plan : BudgetPlan, default=None
        The joint plan of the steps.
    classes : sequence, default=None
        The declared labels of y.

    Returns
    -------
    estimator
        A container with the same steps and settings.
    """
    kind = CHECKED.get(type(pipe))
    if kind is None and isinstance(pipe, Pipeline) and find_entry(pipe).kind == "container":
        # imbalanced-learn's pipeline behaves like this one without resamplers, which plans refuse.
        kind = SplitPipeline
    if kind is None:
        return pipe
    checked = kind(**pipe.get_params(deep=False))
    # `set_output` and metadata requests are attributes, not parameters.
    vars(checked).update(vars(pipe))
    checked._public_steps = tuple(public_steps)
    checked._budget_plan = budget_plan
    accountants = fitted_params(checked, "accountant").values()
    checked._has_accountant = any(accountant is not None for accountant in accountants)
    checked._classes = classes
    return checked
