"""Plans of whole pipelines: every private step's charge, calibrated together."""

import math
from dataclasses import dataclass, replace
from itertools import compress
from numbers import Real

import numpy as np
from sklearn.base import clone

from skdp._data._forms import TableForm
from skdp.accounting import Guarantee
from skdp.accounting._events import leaves
from skdp.base import EMPTY_EVENT, TableShape, terms_of
from skdp.ledger import PlannedCharge, plan_event
from skdp.ledger._reservation import covering_gaussian
from skdp.mechanisms._unknown_shape import SHAPES, names_in
from skdp.pipeline._instances import is_estimator, of_skdp, step_message
from skdp.pipeline._kinds import plans_its_fit
from skdp.pipeline._known import REASONS
from skdp.pipeline._steps import find_steps, unaccepted, warn_of_values
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# Each transformer takes this share of what is left for the others.
TRANSFORMER_SHARE = 0.15


def planned_charge(
    estimator, n_samples=None, n_features=None, *, classes=None, terms=None, name="", columns=None
):
    """Return what a private estimator's fit will charge, before it sees a table.

    Parameters
    ----------
    estimator : estimator
        Private, with `epsilon` (and `delta`) set. Its accountant is not used.
    n_samples, n_features : int, default=None
        The table's shape. With None the charge is exact for estimators that charge the same for
        every shape.
    classes : array-like, default=None
        The labels of y; None takes the estimator's declared ones, or 0 and 1.
    terms : Terms, default=None
        Of the accountant that will be charged, as `skdp.base.terms_of` gives them.
    name : str, default=""
        What the step is called; empty takes the class.
    columns : dict, default=None
        The `names` and `kinds` of a `TableShape` of `n_features` columns, where they are known.

    Returns
    -------
    PlannedCharge
        With ``ApproximateDP(epsilon, delta)`` as its event, or `PureDP` at delta = 0, where the
        charge depends on a shape that is not known, or the estimator has no ``plan_fit``; and
        with an empty event where nothing is released.

    Raises
    ------
    ValueError
        If a fit to a table of that shape would refuse a parameter.

    Examples
    --------
    >>> from skdp import DPStandardScaler
    >>> from skdp.pipeline import planned_charge
    >>> planned_charge(DPStandardScaler(epsilon=0.5, bounds=(0, 1))).event
    Laplace(epsilon=0.5)
    """
    terms = terms_of(None) if terms is None else terms
    params = estimator.get_params(deep=False)
    asked = {"epsilon": params["epsilon"], "delta": params.get("delta") or 0.0}
    guarantee = Guarantee(**asked, neighbors=terms.neighbors)
    name = name or type(estimator).__name__
    planned = PlannedCharge(name, guarantee.per_row.event, guarantee.epsilon, guarantee.delta)
    unknown = None in (n_samples, n_features)
    same = not unknown or (of_skdp(estimator) and estimator._charge_needs_no_shape())
    if not (plans_its_fit(estimator) and (same or may_release_nothing(estimator))):
        return planned
    classes = labels_of(params, classes)
    # A list that has an entry a column says how many there are.
    lists = [(SHAPES[0][0], len(v)) for v in params.values() if isinstance(v, list | tuple) and v]
    shapes = dict.fromkeys((n_samples or n, n_features or d) for n, d in (*SHAPES, *lists))
    plans = []
    for n, d in shapes:
        known = columns or {"names": names_in(params, d)}
        shape = TableShape(n_rows=n, n_columns=d, classes=classes, **known)
        try:
            plans.append(estimator.plan_fit(shape, guarantee))
        except ValueError:
            if not unknown:
                raise
    if not plans:
        return planned
    events = [plan.event for plan in plans]
    if not any(map(leaves, events)):
        return replace(planned, event=EMPTY_EVENT)
    event = events[0] if len(set(events)) == 1 else covering_gaussian(events)
    if not same or event is None:
        return planned
    price = plans[0] if guarantee.neighbors.max_rows == 1 else guarantee
    return PlannedCharge(name, event, price.epsilon, price.delta)


def labels_of(params, classes=None):
    """Return the labels that a model declares, those given, those that it weighs, or 0 and 1."""
    declared = params.get("classes")
    weights = params.get("class_weight")
    classes = classes if declared is None else declared
    if classes is None and isinstance(weights, dict) and weights:
        # There are two labels or more.
        classes = [*weights, *map(_another, weights)] if len(weights) == 1 else [*weights]
    return np.unique([0, 1] if classes is None else classes)


def _another(label):
    if not isinstance(label, str | Real | np.bool_):
        raise ValueError(f"class_weight names {label!r} alone: a plan needs the other classes")
    return f"{label}1" if isinstance(label, str) else int(not label)


def may_release_nothing(estimator):
    """Say whether a fit releases nothing if its parameters declare everything."""
    return of_skdp(estimator) and getattr(estimator, "_may_release_nothing", False)


@dataclass(frozen=True)
class PipelinePlan(FrozenValue):
    """What the private steps of a pipeline will charge, as a function of the budget.

    Parameters
    ----------
    pipe : estimator
        A clone of the pipeline.
    steps : tuple of Step
        Its private steps, in the order in which they are fitted.
    fractions : tuple of float
        Each step's share of epsilon and delta; they sum to 1. A step that releases nothing has
        none, and keeps the epsilon and delta that it has.
    n_samples : int or None
        The number of rows, if it is known.
    classes : array-like or None
        The labels of y, if they are known.
    terms : Terms
        Of the accountant that will be charged.
    columns : dict or None, default=None
        The `names` and `kinds` of the table's columns, if they are known.
    """

    pipe: object
    steps: tuple
    fractions: tuple
    n_samples: int | None
    classes: object
    terms: object
    columns: dict = None

    def charges(self, epsilon, delta):
        """Return what each step charges if it gets its share of (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            What the steps share.

        Returns
        -------
        tuple of PlannedCharge
        """
        return tuple(self._charge(step, own) for step, own in self._budgeted(epsilon, delta))

    def _budgeted(self, epsilon, delta):
        """Yield each step, and its share as its parameters: none where it releases nothing."""
        takes_delta = ["delta" in step.params for step in self.steps]
        with_delta = math.fsum(compress(self.fractions, takes_delta)) or 1.0
        if len(self.steps) > 1:
            # Deltas must not add up to more, by a rounding, than there is.
            with_delta *= 1 + 1e-12
        for step, share, takes in zip(self.steps, self.fractions, takes_delta, strict=True):
            given = {"epsilon": epsilon * share}
            given |= {"delta": delta * share / with_delta} if takes else {}
            yield step, given if given["epsilon"] > 0.0 else {}

    def _charge(self, step, share):
        if not share:
            # It releases nothing, and what is planned for it covers no release.
            own = step.params
            return PlannedCharge(step.title, EMPTY_EVENT, own["epsilon"], own.get("delta") or 0.0)
        estimator = clone(step.estimator).set_params(**share)
        known = {"classes": self.classes, "terms": self.terms, "name": step.title}
        if not (step.before or step.columns or may_release_nothing(step.estimator)):
            known["columns"] = self.columns
        try:
            return planned_charge(estimator, self.n_samples, step.n_features, **known)
        except ValueError as error:
            raise ValueError(step_message(step.title, error)) from error

    def event(self, epsilon, delta):
        """Return what all steps together charge if they share (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            What the steps share.

        Returns
        -------
        Composed
            What they cost together.
        """
        return plan_event(self.charges(epsilon, delta))

    def with_budget(self, epsilon, delta, accountants=None):
        """Return the pipeline with each step's share and accountant set.

        Parameters
        ----------
        epsilon, delta : float
            What the steps share.
        accountants : sequence, default=None
            One a step: `Allowance`, `ReservedStep`, an accountant or None.

        Returns
        -------
        estimator
            A clone of the pipeline.
        """
        accountants = [None] * len(self.steps) if accountants is None else accountants
        params = {}
        budgeted = self._budgeted(epsilon, delta)
        for (step, share), handle in zip(budgeted, accountants, strict=True):
            own = share | {"accountant": handle}
            params |= {step.parameter(name): value for name, value in own.items()}
        return clone(self.pipe).set_params(**params)


def _releases(step):
    """Say whether a fit of a step releases anything: not if it gets no column."""
    may = may_release_nothing(step.estimator)
    return step.n_features != 0 and not (
        may and planned_charge(step.estimator).event == EMPTY_EVENT
    )


def plan_pipeline(
    pipe,
    n_samples=None,
    n_features=None,
    *,
    classes=None,
    terms=None,
    fractions=None,
    public_steps=(),
    columns=None,
):
    """Return the plan of a pipeline whose every step is private or learns nothing.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
    n_samples, n_features : int, default=None
        The shape of the table. Steps whose charge depends on a shape that is not known are
        planned by their (epsilon, delta), which composes less tightly.
    classes : array-like, default=None
        The labels of y.
    terms : Terms, default=None
        Of the accountant that will be charged, as `skdp.base.terms_of` gives them.
    fractions : dict of str to float, default=None
        Each private step's share of the budget, in any unit. By default the final estimator
        after k transformers gets ``0.85**k``, and the transformers share the rest equally.
        Without a private final estimator all steps get the same.
    public_steps : sequence of str, default=()
        Names of steps that learn from data which are public.
    columns : dict, default=None
        The `names` and `kinds` of the table's columns: some steps' charges depend on them.

    Returns
    -------
    PipelinePlan

    Raises
    ------
    ValueError
        If a step is neither private nor known to learn nothing, if no step is private or none
        releases anything, if a remainder gets no column of `n_features`, or if the shape is
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
    terms = terms_of(None) if terms is None else terms
    form = TableForm(n_rows=n_samples, classes=classes)
    steps = find_steps(pipe, n_features, form=form, by_person=terms.unit == "person")
    check_accepted(steps, public_steps)
    warn_of_values(steps)
    # What only a wider table would have fitted has no plan.
    planned = {step.name for step in steps}
    for step in find_steps(pipe):
        if step.name not in planned and is_estimator(step.estimator):
            raise ValueError(
                f"step {step.title!r} gets no column of a table of n_features columns; use "
                "remainder='drop'"
            )
    private = tuple(s for s in steps if s.kind == "private")
    if not private:
        raise ValueError("no step is private: there is nothing to charge")
    releasing = [step for step in private if _releases(step)]
    if not releasing:
        raise ValueError("no private step releases anything: there is nothing to charge")
    # A step is calibrated for one row, also where the plan is priced for a group.
    terms = terms.per_row
    shared = dict(
        zip((s.name for s in releasing), _check_fractions(releasing, fractions), strict=True)
    )
    fractions = tuple(shared.get(step.name, 0.0) for step in private)
    return PipelinePlan(clone(pipe), private, fractions, n_samples, classes, terms, columns)


def check_accepted(steps, public_steps=()):
    """Refuse steps that learn from data in a way that no budget pays for.

    Parameters
    ----------
    steps : list of Step
    public_steps : sequence of str, default=()

    Raises
    ------
    ValueError
        If there are such steps, and `public_steps` does not name them.
    """
    problems = unaccepted(steps, public_steps)
    if problems:
        raise ValueError(f"{'; '.join(map(_reason, problems))}; see check_pipeline")


def _reason(step):
    """Return why a step is not accepted, and what to write instead."""
    reason = f"step {step.title!r} {REASONS[step.kind]}"
    if not is_estimator(step.estimator):
        # A parameter by which a container learns.
        return f"{reason}: {step.advice}"
    if step.kind == "wrapper":
        return f"{reason}: use the estimators inside it by themselves, or fit it without a plan"
    if step.kind in ("learns", "unknown"):
        return f"{reason}: {step.advice}, or name it in public_steps if what it learns is public"
    if step.kind in ("resamples", "calibrates", "cross_validates"):
        return f"{reason}: {step.advice}"
    return f"{reason}; take a private one, or name it in public_steps if what it learns is public"


def _check_fractions(steps, fractions):
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
        final = round((1.0 - TRANSFORMER_SHARE) ** transformers, 6)
        weights = [round((1.0 - final) / transformers, 6)] * transformers + [final]
    if not all(0.0 < weight < math.inf for weight in weights):
        raise ValueError(f"fractions must be positive, got {fractions!r}")
    return tuple(weight / math.fsum(weights) for weight in weights)
