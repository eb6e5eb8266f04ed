"""Plans of whole pipelines: the charges of all private steps, calibrated together."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import compress
from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator, clone

from skdp._data._forms import TableForm
from skdp._fitting._release_context import guarantee_under
from skdp._tools._entries import REASONS
from skdp.accounting._events import leaves
from skdp.base import EMPTY_EVENT, TableShape, terms_of
from skdp.ledger import PlannedCharge, plan_event
from skdp.ledger._reservation import covering_event
from skdp.ledger._state import LedgerConfig
from skdp.mechanisms._stages import stages_of
from skdp.mechanisms._unknown_shape import SHAPES, names_in
from skdp.pipeline._instances import is_estimator, of_skdp, step_message
from skdp.pipeline._kinds import plans_its_fit
from skdp.pipeline._steps import check_step_names, find_steps, unaccepted, warn_of_values
from skdp.utils._types import Classes
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# Fraction of the remaining budget that each transformer receives.
TRANSFORMER_FRACTION = 0.15


def planned_charge(
    estimator: BaseEstimator,
    n_samples: int | None = None,
    n_features: int | None = None,
    *,
    classes: Classes | None = None,
    terms: LedgerConfig | None = None,
    name: str = "",
    columns: dict | None = None,
    holds_numbers: bool = False,
) -> PlannedCharge:
    """Return the charge of a private estimator's fit before it sees a table.

    Parameters
    ----------
    estimator : estimator
        Private estimator with `epsilon` (and `delta`) set. Its accountant is not used.
    n_samples, n_features : int, default=None
        Shape of the table. With None, the charge is exact only for estimators whose charge does not
        depend on the shape.
    classes : array-like, default=None
        Labels of y. None uses the labels that the estimator declares, or 0 and 1.
    terms : LedgerConfig, default=None
        Configuration of the accountant that will be charged; see `skdp.base.terms_of`.
    name : str, default=""
        Name of the step; empty uses the name of the class.
    columns : dict, default=None
        The `names` and `kinds` of a `TableShape` with `n_features` columns, if they are known.
    holds_numbers : bool, default=False
        True if all columns are known to be numeric. Otherwise, if the kinds of the columns are
        unknown, the charge also covers a fit that finds categories.

    Returns
    -------
    PlannedCharge
        If the charge depends on an unknown shape or the estimator has no ``plan_fit``, the event is
        ``ApproximateDP(epsilon, delta)``, or `PureDP` with delta = 0. It is empty if nothing is
        released.

    Raises
    ------
    ValueError
        If a fit to a table of that shape refuses a parameter.

    Examples
    --------
    >>> from skdp import DPStandardScaler
    >>> from skdp.pipeline import planned_charge
    >>> planned_charge(DPStandardScaler(epsilon=0.5, bounds=(0, 1))).event
    Laplace(epsilon=0.5)
    """
    if terms is None:
        terms = terms_of(None)
    params = estimator.get_params(deep=False)
    delta = params.get("delta") or 0.0
    guarantee = guarantee_under(None, terms, params["epsilon"], delta)
    name = name or type(estimator).__name__
    planned = PlannedCharge(name, guarantee.per_row.event, guarantee.epsilon, guarantee.delta)
    unknown = None in (n_samples, n_features)
    same = not unknown or (of_skdp(estimator) and estimator._charge_needs_no_shape())
    if not (plans_its_fit(estimator) and (same or may_release_nothing(estimator))):
        return planned
    classes = labels_of(params, classes)
    # A list with one entry per column determines the number of columns.
    lists = [(SHAPES[0][0], len(v)) for v in params.values() if isinstance(v, list | tuple) and v]
    shapes = dict.fromkeys((n_samples or n, n_features or d) for n, d in (*SHAPES, *lists))
    plans = []
    for n, d in shapes:
        facts = columns or {"names": names_in(params, d)}
        names = facts.get("names")
        kinds = facts.get("kinds")
        shape = TableShape(n_rows=n, n_columns=d, classes=classes, names=names, kinds=kinds)
        try:
            plans.append(estimator.plan_fit(shape, guarantee))
        except ValueError:
            if not unknown:
                raise
        if shape.kinds is None and not holds_numbers:
            # The columns may contain strings whose categories have to be found. A fit that cannot
            # find categories refuses such a table.
            with suppress(ValueError):
                of_words = replace(shape, kinds=["object"] * d)
                plans.append(estimator.plan_fit(of_words, guarantee))
    if not plans:
        return planned
    events = [plan.event for plan in plans]
    if not any(map(leaves, events)):
        return replace(planned, event=EMPTY_EVENT)
    if len(set(events)) == 1:
        event = events[0]
    else:
        event = covering_event(events)
    if not same or event is None:
        return planned
    price = guarantee
    if guarantee.neighbors.max_rows == 1:
        price = plans[0]
    # The plan of an estimator outside skdp may be a mechanism, which has no stages.
    stages = stages_of(plans[0])
    if unknown or any(stages_of(plan) != stages for plan in plans):
        stages = ()
    return PlannedCharge(name, event, price.epsilon, price.delta, stages)


def labels_of(params, classes=None):
    """Return the labels in `classes`, the argument or `class_weight`, otherwise 0 and 1."""
    declared = params.get("classes")
    weights = params.get("class_weight")
    if declared is not None:
        classes = declared
    if classes is None and isinstance(weights, dict) and weights:
        # A classifier needs at least two labels, so a second label is added to a single weighted
        # one.
        if len(weights) == 1:
            classes = [*weights, *map(_other_label, weights)]
        else:
            classes = [*weights]
    if classes is None:
        classes = [0, 1]
    return np.unique(classes)


def _other_label(label):
    """Return a label that differs from the given one."""
    if not isinstance(label, str | Real | np.bool_):
        raise ValueError(
            f"class_weight has only the label {label!r}: declare all labels in `classes`"
        )
    if isinstance(label, str):
        return f"{label}1"
    return int(not label)


def may_release_nothing(estimator):
    """Return True if a fit releases nothing when its parameters declare everything."""
    return of_skdp(estimator) and getattr(estimator, "_may_release_nothing", False)


@dataclass(frozen=True)
class PipelinePlan(FrozenValue):
    """Plan of the charges of a pipeline's private steps, as a function of the budget.

    Parameters
    ----------
    pipe : estimator
        A clone of the pipeline.
    steps : tuple of Step
        Its private steps, in the order in which they are fitted.
    fractions : tuple of float
        Budget fractions of the steps, which sum to 1. A step that releases nothing has the fraction
        0, and its epsilon and delta are not changed.
    n_samples : int or None
        Number of rows, None if it is unknown.
    classes : array-like or None
        Labels of y, None if they are unknown.
    terms : LedgerConfig
        Configuration of the accountant that will be charged.
    columns : dict or None, default=None
        The `names` and `kinds` of the table's columns, None if they are unknown.
    """

    pipe: object
    steps: tuple
    fractions: tuple
    n_samples: int | None
    classes: object
    terms: object
    columns: dict | None = None

    def charges(self, epsilon, delta):
        """Return the charge of each step for a total budget.

        Parameters
        ----------
        epsilon, delta : float
            Budget that the steps share.

        Returns
        -------
        tuple of PlannedCharge
        """
        return tuple(
            self._charge(step, budget) for step, budget in self._step_budgets(epsilon, delta)
        )

    def _step_budgets(self, epsilon, delta):
        """Yield each step with its budget as a dict of parameters, empty if it releases nothing."""
        takes_delta = ["delta" in step.params for step in self.steps]
        with_delta = math.fsum(compress(self.fractions, takes_delta)) or 1.0
        if len(self.steps) > 1:
            # Rounding must not make the sum of the deltas exceed the total.
            with_delta *= 1 + 1e-12
        for step, fraction, has_delta in zip(self.steps, self.fractions, takes_delta, strict=True):
            budget = {"epsilon": epsilon * fraction}
            if has_delta:
                budget["delta"] = delta * fraction / with_delta
            if budget["epsilon"] <= 0.0:
                budget = {}
            yield step, budget

    def _charge(self, step, budget):
        """Return the `PlannedCharge` of a step with a budget."""
        if not budget:
            # The step releases nothing, and its planned charge allows no release.
            delta = step.params.get("delta") or 0.0
            return PlannedCharge(step.title, EMPTY_EVENT, step.params["epsilon"], delta)
        estimator = clone(step.estimator).set_params(**budget)
        columns = None
        if not (step.before or step.columns or may_release_nothing(step.estimator)):
            columns = self.columns
        try:
            return planned_charge(
                estimator,
                self.n_samples,
                step.n_features,
                classes=self.classes,
                terms=self.terms,
                name=step.title,
                columns=columns,
                holds_numbers=step.form.holds_numbers,
            )
        except ValueError as error:
            raise ValueError(step_message(step.title, error)) from error

    def event(self, epsilon, delta):
        """Return the composed event of all steps for a total budget.

        Parameters
        ----------
        epsilon, delta : float
            Budget that the steps share.

        Returns
        -------
        Composed
        """
        return plan_event(self.charges(epsilon, delta))

    def with_budget(self, epsilon, delta, accountants=None):
        """Return the pipeline with the budget and the accountant of each step set.

        Parameters
        ----------
        epsilon, delta : float
            Budget that the steps share.
        accountants : sequence, default=None
            One per step: `Allowance`, `ReservedStep`, an accountant or None.

        Returns
        -------
        estimator
            A clone of the pipeline.
        """
        if accountants is None:
            accountants = [None] * len(self.steps)
        params = {}
        budgets = self._step_budgets(epsilon, delta)
        for (step, budget), handle in zip(budgets, accountants, strict=True):
            step_params = budget | {"accountant": handle}
            for name, value in step_params.items():
                params[step.parameter(name)] = value
        return clone(self.pipe).set_params(**params)


def _releases(step):
    """Return True if a fit of a step releases anything, which requires columns."""
    if step.n_features == 0:
        return False
    if not may_release_nothing(step.estimator):
        return True
    try:
        return planned_charge(step.estimator).event != EMPTY_EVENT
    except ValueError as error:
        raise ValueError(step_message(step.title, error)) from error


def plan_pipeline(
    pipe: BaseEstimator,
    n_samples: int | None = None,
    n_features: int | None = None,
    *,
    classes: Classes | None = None,
    terms: LedgerConfig | None = None,
    fractions: dict[str, float] | None = None,
    public_steps: Sequence[str] = (),
    columns: dict | None = None,
) -> PipelinePlan:
    """Return the plan of a pipeline in which all steps are private or learn nothing.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
    n_samples, n_features : int, default=None
        Shape of the table. If the charge of a step depends on an unknown shape, it is planned by
        its (epsilon, delta), which composes less tightly.
    classes : array-like, default=None
        Labels of y.
    terms : LedgerConfig, default=None
        Configuration of the accountant that will be charged; see `skdp.base.terms_of`.
    fractions : dict of str to float, default=None
        Relative budget of each private step. By default, the final estimator after k transformers
        receives the fraction ``0.85**k``, and the transformers share the rest equally. Without a
        private final estimator, all steps receive equal fractions.
    public_steps : sequence of str, default=()
        Names of steps that learn from data and are declared public.
    columns : dict, default=None
        The `names` and `kinds` of the table's columns, on which the charges of some steps depend.

    Returns
    -------
    PipelinePlan

    Raises
    ------
    ValueError
        If a step is neither private nor known to learn nothing, if no private step releases
        anything, if none of the `n_features` columns is left for a remainder, or if the shape is
        impossible.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression, DPStandardScaler
    >>> from skdp.pipeline import plan_pipeline
    >>> pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression(data_norm=2.0))
    >>> plan_pipeline(pipe).fractions
    (0.15, 0.85)
    """
    if n_samples is not None:
        n_samples = check_integer(n_samples, "n_samples", 1)
    if terms is None:
        terms = terms_of(None)
    elif not isinstance(terms, LedgerConfig):
        raise ValueError(
            "terms must be the terms of an accountant, as skdp.base.terms_of returns them, got "
            f"{terms!r}"
        )
    form = TableForm(n_rows=n_samples, classes=classes)
    steps = find_steps(pipe, n_features, form=form, by_person=terms.unit == "person")
    check_accepted(steps, public_steps)
    warn_of_values(steps)
    # A step that would receive columns only from a wider table has no plan.
    planned = {step.name for step in steps}
    for step in find_steps(pipe):
        if step.name not in planned and is_estimator(step.estimator):
            raise ValueError(
                f"step {step.title!r} receives no column of a table with n_features columns: use "
                "remainder='drop'"
            )
    private = tuple(s for s in steps if s.kind == "private")
    if not private:
        raise ValueError("no step is private: there is nothing to charge")
    releasing = [step for step in private if _releases(step)]
    if not releasing:
        raise ValueError("no private step releases anything: there is nothing to charge")
    # Steps are calibrated for one row, even if the plan is charged for a group.
    terms = terms.per_row
    shared = dict(
        zip((s.name for s in releasing), _check_fractions(releasing, fractions), strict=True)
    )
    step_fractions = tuple(shared.get(step.name, 0.0) for step in private)
    return PipelinePlan(clone(pipe), private, step_fractions, n_samples, classes, terms, columns)


def check_accepted(steps, public_steps=()):
    """Raise `ValueError` for steps that learn from data without a charge.

    Parameters
    ----------
    steps : list of Step
    public_steps : sequence of str, default=()

    Raises
    ------
    ValueError
        If `public_steps` does not name all such steps.
    """
    problems = unaccepted(steps, public_steps)
    if problems:
        raise ValueError(f"{'; '.join(map(_reason, problems))}; see check_pipeline")


def refusal_of_steps(pipe, public_steps=()):
    """Return the reason why no plan covers the steps of an estimator, or "".

    Parameters
    ----------
    pipe : estimator
    public_steps : sequence of str, default=()
    """
    try:
        public_steps = check_step_names(public_steps)
    except ValueError:
        # The check of the parameters will raise the error.
        return ""
    try:
        check_accepted(find_steps(pipe), public_steps)
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def _reason(step):
    """Return the reason why a step is not accepted, and a remedy."""
    reason = f"step {step.title!r} {REASONS[step.kind]}"
    if not is_estimator(step.estimator):
        # This "step" is a parameter through which a container learns.
        return f"{reason}: {step.advice}"
    if step.kind == "wrapper":
        return f"{reason}: use its inner estimators directly"
    if step.kind in ("learns", "unknown"):
        return f"{reason}: {step.advice}, or name it in public_steps if what it learns is public"
    if step.kind in ("resamples", "calibrates", "cross_validates"):
        return f"{reason}: {step.advice}"
    return f"{reason}; use a private step, or name it in public_steps if what it learns is public"


def _check_fractions(steps, fractions):
    """Return the budget fractions of the steps, which sum to 1.

    Parameters
    ----------
    steps : list of Step
        The private steps that release something, in the order of the pipeline.
    fractions : dict of str to float, or None
        Fractions by step, which are divided by their sum. If None, a model after n transformers
        receives ``(1 - TRANSFORMER_FRACTION)**n`` and they share the rest equally; transformers
        without a model share everything equally.
    """
    names = [step.title for step in steps]
    weights = [1.0] * len(steps)
    if fractions is not None:
        if set(fractions) != set(names):
            raise ValueError(
                f"fractions must name the private steps that release something, {names}, got "
                f"{list(fractions)}"
            )
        weights = [float(fractions[name]) for name in names]
    elif len(steps) > 1 and hasattr(steps[-1].estimator, "predict"):
        transformers = len(steps) - 1
        final = round((1.0 - TRANSFORMER_FRACTION) ** transformers, 6)
        weights = [round((1.0 - final) / transformers, 6)] * transformers + [final]
    if not all(0.0 < weight < math.inf for weight in weights):
        raise ValueError(f"fractions must be positive, got {fractions!r}")
    return tuple(weight / math.fsum(weights) for weight in weights)
