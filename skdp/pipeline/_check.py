"""What a pipeline learns without privacy, pays for twice, and costs."""

import math
from dataclasses import asdict, dataclass
from html import escape

from sklearn.base import is_classifier
from sklearn.model_selection import ParameterGrid, check_cv

from skdp.accounting import epsilon as event_epsilon
from skdp.accounting import plan_event
from skdp.base import terms_of
from skdp.pipeline._kinds import REASONS, is_estimator
from skdp.pipeline._planning import planned_charge, unaccepted
from skdp.pipeline._steps import find_steps
from skdp.pipeline._twice import paid_twice

__all__ = ["Finding", "PipelineCheck", "StepCost", "check_pipeline"]


@dataclass(frozen=True)
class Finding:
    """Something about a pipeline that its owner should know.

    Parameters
    ----------
    step : str
        The step's name.
    problem : str
        "not private", "raw scores", "stratified folds", "paid twice", "local", "not checkable",
        "declared public", "no accountant", "several accountants" or "cached rows".
    message : str
        What to do about it.
    """

    step: str
    problem: str
    message: str

    def __str__(self):
        return f"{self.step}: {self.problem}: {self.message}"


@dataclass(frozen=True)
class StepCost:
    """One step of a pipeline and what one fit of it costs.

    Parameters
    ----------
    step : str
        The step's name.
    estimator : str
        Its class, or "passthrough" or "drop".
    kind : str
        As `step_kind` says.
    reason : str
        What that means.
    epsilon, delta : float
        The price of a fit for one row, 0 where nothing is charged.
    event : Event or None
        What is charged.
    columns : str
        The columns that it is given, in words; empty for all.
    """

    step: str
    estimator: str
    kind: str
    reason: str
    epsilon: float = 0.0
    delta: float = 0.0
    event: object = None
    columns: str = ""


@dataclass(frozen=True)
class PipelineCheck:
    """What `check_pipeline` found; iterating gives the findings, printing gives all.

    Parameters
    ----------
    findings : tuple of Finding
    steps : tuple of StepCost
        Every step, in the order in which they are fitted.
    epsilon, delta : float
        What one fit of the pipeline costs if its steps are charged one by one: the sums.
    joint_epsilon : float
        What the same releases cost at that delta if they are charged as one plan.
    fits : int
        How often a search that the pipeline is in fits it; 1 without one.
    accepted : bool
        Whether every step is private, learns nothing or is declared public.
    """

    findings: tuple
    steps: tuple
    epsilon: float
    delta: float
    joint_epsilon: float
    fits: int
    accepted: bool

    def __iter__(self):
        return iter(self.findings)

    def to_dict(self):
        """Return the result as JSON values.

        Returns
        -------
        dict
        """
        steps = [
            {**vars(step), "event": None if step.event is None else step.event.to_json()}
            for step in self.steps
        ]
        totals = ("epsilon", "delta", "joint_epsilon", "fits", "accepted")
        return {
            "findings": [asdict(finding) for finding in self.findings],
            "steps": steps,
            **{name: getattr(self, name) for name in totals},
        }

    def _rows(self):
        for step in self.steps:
            where = f" on {step.columns}" if step.columns else ""
            price = f"({step.epsilon:.6g}, {step.delta:.6g})" if step.event else "-"
            yield step.step, step.estimator + where, step.kind, price

    def _totals(self):
        times = "" if self.fits == 1 else f", {self.fits} times in the search"
        price = f"({self.epsilon:.6g}, {self.delta:.6g})"
        if self.joint_epsilon < self.epsilon:
            joint = f"({self.joint_epsilon:.6g}, {self.delta:.6g})"
            price = f"{price} step by step, {joint} as one plan"
        return f"one fit costs {price}{times}"

    def __str__(self):
        rows = list(self._rows())
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            for row in rows
        ]
        lines = ["Steps", *(line.rstrip() for line in lines), "", f"Cost: {self._totals()}"]
        found = [f"  {finding}" for finding in self.findings]
        return "\n".join([*lines, "", "Findings", *(found or ["  none"])])

    def _repr_html_(self):
        def row(cells):
            return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"

        steps = "".join(map(row, self._rows()))
        found = "".join(f"<li>{escape(str(finding))}</li>" for finding in self.findings)
        return (
            f"<table><caption>Steps</caption>{steps}</table>"
            f"<p>{escape(self._totals())}</p><ul>{found or '<li>no findings</li>'}</ul>"
        )


def check_pipeline(pipe, *, n_samples=None, n_features=None, public_steps=()):
    """Say what a pipeline learns without privacy, what it pays for twice, and what it costs.

    Nothing is fitted to data.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, a search over
        one, or one estimator.
    n_samples, n_features : int, default=None
        The shape of the table, on which the cost of some steps depends.
    public_steps : sequence of str, default=()
        Names of steps that learn from the data, declared not to need protection.

    Returns
    -------
    PipelineCheck

    Raises
    ------
    ValueError
        If `public_steps` names no step, or a private step's epsilon is out of range.

    Notes
    -----
    Kinds of steps are those of `step_kind`. Not every mistake can be seen from outside: a
    `FunctionTransformer` is taken to treat each row by itself, and the columns that a
    `ColumnTransformer` selects by their dtype are taken to be public.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPLogisticRegression
    >>> from skdp.pipeline import check_pipeline
    >>> result = check_pipeline(make_pipeline(StandardScaler(), DPLogisticRegression()))
    >>> result.accepted
    False
    >>> for finding in result:
    ...     print(finding.step, "|", finding.problem)
    standardscaler | not private
    dplogisticregression | no accountant
    """
    steps, fits, findings = _look_inside(pipe, "", n_features)
    left = unaccepted(steps, public_steps)
    findings += [_finding(step) for step in left if step.kind != "cross_validates"]
    findings += [
        Finding(step.title, "declared public", f"{REASONS[step.kind]}, which you allow")
        for step in unaccepted(steps)
        if step not in left
    ]
    findings += [Finding(s.title, "paid twice", message) for s, message in paid_twice(steps)]
    findings += _caches(pipe)
    private = [step for step in steps if step.kind in ("private", "local")]
    findings += _accountants(private)
    terms = terms_of(next(filter(None, map(_accountant, private)), None))
    charges = {
        step.name: planned_charge(
            step.estimator, n_samples, step.n_features, terms=terms, name=step.title
        )
        for step in private
    }
    epsilon, delta, joint = _totals(private, charges, terms)
    return PipelineCheck(
        findings=tuple(findings),
        steps=tuple(_cost(step, charges.get(step.name)) for step in steps),
        epsilon=epsilon,
        delta=delta,
        joint_epsilon=joint,
        fits=fits,
        accepted=not left,
    )


def _look_inside(pipe, prefix, n_features):
    """Return the steps, also those in wrappers, how often they are fitted, and findings."""
    found, fits, findings = [], 1, []
    for step in find_steps(pipe, n_features, prefix):
        found.append(step)
        if step.kind not in ("cross_validates", "wrapper"):
            continue
        if step.kind == "cross_validates":
            findings += _of_cross_validator(step)
            fits *= _number_of_fits(step.estimator)
        for name, inner in _parts(step.estimator):
            path = "__".join(filter(None, (step.name, name)))
            steps, times, more = _look_inside(inner, path, step.n_features)
            found, fits, findings = found + steps, fits * times, findings + more
            if step.kind == "cross_validates":
                findings += _refitted(step, steps)
    return found, fits, findings


def _parts(estimator):
    """Yield the names and the estimators that are parameters of an estimator."""
    for name, value in estimator.get_params(deep=False).items():
        if is_estimator(value):
            yield name, value
        elif isinstance(value, list):
            yield from (pair for pair in value if isinstance(pair, tuple) and len(pair) == 2)


def _finding(step):
    if step.kind == "local":
        message = "each transform is a charge, predictions too; no plan of fits can hold it"
        return Finding(step.title, "local", message)
    if step.kind == "wrapper":
        message = f"{REASONS['wrapper']}; name it in public_steps if it learns nothing else"
        return Finding(step.title, "not checkable", message)
    message = f"{type(step.estimator).__name__} {REASONS['learns']}"
    return Finding(step.title, "not private", f"{message}; {_remedy(step.estimator)}")


def _remedy(estimator):
    name = type(estimator).__name__
    if not is_estimator(estimator):
        return "list the columns, or choose them by make_column_selector"
    if name in ("OneHotEncoder", "OrdinalEncoder"):
        return "declare its categories as lists, without min_frequency and max_categories"
    if name == "SplineTransformer":
        return "declare its knots"
    if name == "SimpleImputer":
        return "use strategy='constant' with a fill_value and keep_empty_features=True"
    return "use a private one, or name it in public_steps if what it learns is public"


def _of_cross_validator(step):
    message = "its scores, and what is chosen by them, are raw; use skdp.model_selection"
    yield Finding(step.title, "raw scores", message)
    cv = step.estimator.get_params(deep=False)["cv"]
    inner = step.estimator.get_params(deep=False).get("estimator", step.estimator)
    by_default = (cv is None or isinstance(cv, int)) and is_classifier(inner)
    if by_default or "Stratified" in type(cv).__name__:
        message = (
            "which rows are in a fold depends on labels, so that the sum of charges is no "
            "guarantee; use cv=KFold(k, shuffle=True, random_state=0)"
        )
        yield Finding(step.title, "stratified folds", message)


def _number_of_fits(search):
    params = search.get_params(deep=False)
    try:
        folds = check_cv(params["cv"]).get_n_splits()
    except (TypeError, ValueError):
        return 1
    if "param_grid" in params:
        return len(ParameterGrid(params["param_grid"])) * folds + bool(params.get("refit"))
    return params.get("n_iter", 1) * folds + bool(params.get("refit"))


def _refitted(search, steps):
    params = search.estimator.get_params(deep=False)
    grid = params.get("param_grid", params.get("param_distributions"))
    if grid is None:
        return
    tried = " ".join(k for part in (grid if isinstance(grid, list) else [grid]) for k in part)
    for step in steps:
        inner = step.name.removeprefix(search.name + "__" if search.name else "")
        inner = inner.partition("__")[2]
        if step.kind == "private" and hasattr(step.estimator, "transform") and inner not in tried:
            message = "the search fits and charges it again for every candidate and fold, but"
            message += " tries nothing of it: fit it once, before the search"
            yield Finding(step.title, "paid twice", message)


def _caches(pipe):
    params = pipe.get_params(deep=True) if is_estimator(pipe) else {}
    for name, value in params.items():
        if name.split("__")[-1] == "memory" and value is not None:
            where = name.rpartition("__")[0] or type(pipe).__name__
            message = "memory keeps the transformed rows on disk, in clear"
            yield Finding(where, "cached rows", message)


def _accountant(step):
    return step.estimator.get_params(deep=False)["accountant"]


def _accountants(private):
    without = [step.title for step in private if _accountant(step) is None]
    budgets = {id(getattr(h, "reservation", h)) for h in map(_accountant, private)}
    if without:
        message = "its fits are not charged anywhere"
        yield from (Finding(name, "no accountant", message) for name in without)
    elif len(budgets) > 1:
        message = "the steps learn from the same rows but charge different budgets"
        yield Finding(private[-1].title, "several accountants", message)


def _cost(step, planned):
    estimator = step.estimator
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    name = "passthrough" if estimator is None else name
    base = (step.title, name, step.kind, REASONS[step.kind])
    if planned is None:
        return StepCost(*base, columns=step.columns)
    return StepCost(*base, planned.epsilon, planned.delta, planned.event, step.columns)


def _totals(private, charges, terms):
    """Return the sums of epsilons and deltas, and the joint epsilon at that delta."""
    if not private:
        return 0.0, 0.0, 0.0
    planned = [charges[step.name] for step in private]
    reserved = {getattr(h, "reservation", None) for h in map(_accountant, private)}
    at = {"relation": terms.relation, "group_size": terms.max_rows}
    delta = min(math.fsum(p.delta for p in planned), 1.0)
    joint = event_epsilon(plan_event(planned), delta, **at)
    epsilon = math.fsum(p.epsilon for p in planned)
    if terms.max_rows > 1:
        epsilon = math.fsum(event_epsilon(p.event, p.delta, **at) for p in planned)
    whole = reserved.pop() if len(reserved) == 1 else None
    if whole is not None:
        return whole.epsilon, whole.delta, whole.epsilon
    return epsilon, delta, min(joint, epsilon)
